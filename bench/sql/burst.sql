-- Measures the cost of a call while ids are ahead of the clock, and the cost of batches.

INSERT INTO bench.subject (name, metric, expression, rows) VALUES
  ('(a column)', 'ns, ahead', 'i', :rows),
  ('C: clock and swap', 'ns, ahead', 'bench.id(5)', :rows),
  ('next_id', 'ns, ahead', 'snowflake.next_id(SHARD)', :rows),
  ('nextval cache 1', 'ns, ahead', 'nextval(''one'')', :rows),
  ('nextval cache 100', 'ns, ahead', 'nextval(''hundred'')', :rows);
UPDATE bench.subject SET metric = metric || :'suffix';
CALL bench.measure_calls(current_setting('bench.runs')::int);

-- Measures the cost per id of batches, including the cost of the query.
TRUNCATE bench.subject;
INSERT INTO bench.subject (name, metric, expression, rows) VALUES
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
UPDATE bench.subject SET metric = metric || :'suffix';

DO $$
DECLARE
  s record;
BEGIN
  FOR run IN 0 .. current_setting('bench.runs')::int LOOP
    FOR s IN SELECT * FROM bench.subject ORDER BY place LOOP
      INSERT INTO bench.sample
      SELECT s.name, s.metric, run, bench.cost(bench.with_shard(s.expression)) / s.rows;
    END LOOP;
  END LOOP;
END
$$;

DELETE FROM bench.sample WHERE run = 0;

-- Checks that no call has waited, because the measured CPU time would not show a wait.
DO $$
BEGIN
  ASSERT (SELECT coalesce(sum(waits), 0) = 0 FROM snowflake.shard_stats), 'pacing was in the way';
END
$$;
