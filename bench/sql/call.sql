-- Cost of a call: ten calls a row, less ten columns that cost nothing; all subjects in turn, in each run.
-- Run 0 warms up and is forgotten.

CREATE TABLE subject (place serial, name text, metric text, expression text, rows integer);
INSERT INTO subject (name, metric, expression, rows) VALUES
  ('(a column)', 'ns', 'i', :rows),
  ('C: counter', 'ns', 'bench.counter(5)', :rows),
  ('C: clock', 'ns', 'bench.clock(5)', :rows),
  ('C: clock and swap', 'ns', 'bench.id(5)', :rows),
  ('next_id', 'ns', 'snowflake.next_id(SHARD)', :rows),
  ('next_id, default_shard', 'ns', 'snowflake.next_id()', :rows),
  ('nextval cache 1', 'ns', 'nextval(''one'')', :rows),
  ('nextval cache 100', 'ns', 'nextval(''hundred'')', :rows),
  ('Instagram, one expression', 'ns', 'instagram_tight()', :rows / 10),
  ('Instagram, as pasted', 'ns', 'instagram()', :rows / 10),
  ('UUID v4', 'ns', 'gen_random_uuid()', :rows / 10),
  ('UUID v7', 'ns', bench.uuid7_name(), :rows / 10),
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
  ('decode', 'ns', 'snowflake.decode(i)', :rows / 10);

DO $$
DECLARE
  s record;
  columns text;
BEGIN
  PERFORM set_config('snowflake.default_shard', '8000', false);
  FOR run IN 0 .. current_setting('bench.runs')::int LOOP
    FOR s IN SELECT * FROM subject ORDER BY place LOOP
      SELECT string_agg(e, ', ') INTO columns
        FROM (SELECT bench.with_shard(s.expression) AS e OFFSET 0) x, generate_series(1, 10);
      INSERT INTO bench.sample
      SELECT s.name, s.metric, run, bench.cost(format(
               'SELECT %s FROM (SELECT i, now() AS t, tstzrange(now(), now() + ''1 day'') AS r
                  FROM generate_series(1::bigint, %s) AS i OFFSET 0) AS row', columns, s.rows))
             / (s.rows * 10);
    END LOOP;
  END LOOP;
END
$$;

UPDATE bench.sample SET value = value - (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY value)
                                           FROM bench.sample WHERE subject = '(a column)')
 WHERE subject <> '(a column)';
DELETE FROM bench.sample WHERE subject = '(a column)';

-- Batches, per id. Here the query's own cost is part of what the user pays, and stays in.
TRUNCATE subject;
INSERT INTO subject (name, metric, expression, rows) VALUES
  ('next_ids(10)', 'ns an id', 'SELECT snowflake.next_ids(SHARD, 10) FROM generate_series(1, 20000)', 200000),
  ('next_ids(100)', 'ns an id', 'SELECT snowflake.next_ids(SHARD, 100) FROM generate_series(1, 10000)', 1000000),
  ('next_ids(1000)', 'ns an id', 'SELECT snowflake.next_ids(SHARD, 1000) FROM generate_series(1, 2000)', 2000000),
  ('next_ids(10000)', 'ns an id', 'SELECT snowflake.next_ids(SHARD, 10000) FROM generate_series(1, 200)', 2000000),
  ('next_ids(1000000)', 'ns an id', 'SELECT snowflake.next_ids(SHARD, 1000000) FROM generate_series(1, 5)', 5000000),
  ('unnest(next_ids(1000))', 'ns an id',
   'SELECT unnest(snowflake.next_ids(SHARD, 1000)) FROM generate_series(1, 200)', 200000),
  ('array_agg(nextval)', 'ns an id',
   'SELECT (SELECT array_agg(nextval(''one'')) FROM generate_series(1, 1000 + 0 * j)) FROM generate_series(1, 200) AS j',
   200000);

DO $$
DECLARE
  s record;
BEGIN
  FOR run IN 0 .. current_setting('bench.runs')::int LOOP
    FOR s IN SELECT * FROM subject ORDER BY place LOOP
      INSERT INTO bench.sample
      SELECT s.name, s.metric, run, bench.cost(bench.with_shard(s.expression)) / s.rows;
    END LOOP;
  END LOOP;
END
$$;

DELETE FROM bench.sample WHERE run = 0;

-- Waiting would have cost no CPU time, and so would not show.
DO $$
BEGIN
  ASSERT (SELECT coalesce(sum(waits), 0) = 0 FROM snowflake.shard_stats), 'pacing was in the way';
END
$$;
