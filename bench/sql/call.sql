-- Measures the cost of a call whose ids do not run ahead of the clock.

-- Creates the functions of the SQL engine with names that differ from the extension's names.
CREATE EXTENSION IF NOT EXISTS snowflake_migrate;
SELECT replace(replace(snowflake.generator_sql(0), 'snowflake_sql', 'engine_sql'), 'snowflake', 'engine') \gexec

INSERT INTO bench.subject (name, metric, expression, rows) VALUES
  ('(a column)', 'ns', 'i', :rows),
  ('C: counter', 'ns', 'bench.counter(5)', :rows),
  ('C: clock', 'ns', 'bench.clock(5)', :rows),
  ('C: clock and swap', 'ns', 'bench.id(5)', :rows),
  ('next_id', 'ns', 'snowflake.next_id(SHARD)', :rows),
  ('next_id, 8 shards in turn', 'ns', 'snowflake.next_id(NTH % 8)', :rows),
  ('next_id, default_shard', 'ns', 'snowflake.next_id()', :rows),
  ('nextval cache 1', 'ns', 'nextval(''one'')', :rows),
  ('nextval cache 100', 'ns', 'nextval(''hundred'')', :rows),
  ('Instagram, one expression', 'ns', 'instagram_tight()', :rows / 10),
  ('Instagram, as pasted', 'ns', 'instagram()', :rows / 10),
  ('SQL engine', 'ns', 'engine.next_id(5)', :rows / 10),
  ('UUID v4', 'ns', 'gen_random_uuid()', :rows / 10),
  ('UUID v7', 'ns', bench.uuid7_name(), :rows / 2),
  ('ULID', 'ns', 'bench.ulid()', :rows / 2),
  ('ULID, text', 'ns', 'bench.ulid_text()', :rows / 2),
  ('KSUID', 'ns', 'bench.ksuid()', :rows / 2),
  ('KSUID, text', 'ns', 'bench.ksuid_text()', :rows / 2),
  ('NanoID', 'ns', 'bench.nanoid()', :rows / 2),
  ('C: shift and mask', 'ns', 'bench.field(i)', :rows),
  ('shard_of', 'ns', 'snowflake.shard_of(i)', :rows),
  ('sequence_of', 'ns', 'snowflake.sequence_of(i)', :rows),
  ('region_of', 'ns', 'snowflake.region_of(i)', :rows),
  ('time_of', 'ns', 'snowflake.time_of(i)', :rows),
  ('min_id', 'ns', 'snowflake.min_id(t)', :rows),
  ('max_id', 'ns', 'snowflake.max_id(t)', :rows),
  ('make_id', 'ns', 'snowflake.make_id(t, 5, 7)', :rows),
  ('created_within', 'ns', 'snowflake.created_within(i, now(), now())', :rows),
  ('id_range', 'ns', 'snowflake.id_range(r)', :rows / 10),
  ('decode', 'ns', 'snowflake.decode(i)', :rows / 10),
  ('settled_before', 'ns', 'snowflake.settled_before()', :rows / 10);

-- If the time stamp counter is not used, measures only functions that mint, and alternatives to these functions.
DELETE FROM bench.subject WHERE :'suffix' <> '' AND name !~ '^(\(a column\)|C: cl|next_id|nextval)';
UPDATE bench.subject SET metric = metric || :'suffix';

SET snowflake.default_shard = 7;
CALL bench.measure_calls(current_setting('bench.runs')::int);

-- Shows that no shard was ahead of the clock.
DO $$
BEGIN
  ASSERT (SELECT coalesce(sum(borrowed_ticks), 0) = 0 FROM snowflake.shard_stats), 'not in step with the clock';
END
$$;
