-- Reads the rows of one day out of thirty, by the key alone and by a separate column with its own index. The ids of the
-- rows have times in the past, in order, and are evenly spread over 16 shards.

CREATE TABLE by_key (id bigint PRIMARY KEY, v integer);
CREATE TABLE by_column (id bigint PRIMARY KEY, created_at timestamptz NOT NULL, v integer);

INSERT INTO by_column
SELECT snowflake.make_id(at, i % 16, i / 16 % 1024), at, i
  FROM (SELECT i, '2025-06-01 00:00Z'::timestamptz + i * ('30 days'::interval / :rows) AS at
          FROM generate_series(0, :rows - 1) AS i OFFSET 0) AS x;
INSERT INTO by_key SELECT id, v FROM by_column;
CREATE INDEX by_column_created_at ON by_column (created_at);
VACUUM ANALYZE by_key, by_column;

CREATE FUNCTION bench.execution_ms(query text) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
  RETURN (plan->0->>'Execution Time')::float8;
END
$$;

DO $$
DECLARE
  day record;
  key_query text;
  column_query text;
  key_rows bigint;
  column_rows bigint;
BEGIN
  PERFORM set_config('max_parallel_workers_per_gather', '0', false);
  FOR run IN 0 .. current_setting('bench.runs')::int LOOP  -- 0 warms up
    SELECT at AS since, at + '1 day'::interval AS until INTO day
      FROM (SELECT '2025-06-01 00:00Z'::timestamptz + (run * 7 % 30) * '1 day'::interval AS at) x;
    key_query := format('SELECT count(*), sum(v) FROM by_key WHERE snowflake.created_within(id, %L, %L)',
                        day.since, day.until);
    column_query := format('SELECT count(*), sum(v) FROM by_column WHERE created_at >= %L AND created_at < %L',
                           day.since, day.until);
    INSERT INTO bench.sample VALUES
      ('a day by created_within(id)', 'ms', run, bench.execution_ms(key_query)),
      ('a day by created_at', 'ms', run, bench.execution_ms(column_query)),
      ('a day by created_within(id)', 'CPU ms', run, bench.cost(key_query) / 1e6),
      ('a day by created_at', 'CPU ms', run, bench.cost(column_query) / 1e6);
    EXECUTE key_query INTO key_rows;
    EXECUTE column_query INTO column_rows;
    ASSERT key_rows = column_rows AND key_rows > 0, 'the two queries differ';
    INSERT INTO bench.sample VALUES ('a day by created_within(id)', 'rows', run, key_rows);
  END LOOP;
END
$$;

DELETE FROM bench.sample WHERE run = 0;

INSERT INTO bench.sample
SELECT * FROM (VALUES
  ('key alone', 'table bytes', 1, pg_relation_size('by_key')),
  ('key alone', 'index bytes', 1, pg_indexes_size('by_key')),
  ('key and created_at', 'table bytes', 1, pg_relation_size('by_column')),
  ('key and created_at', 'index bytes', 1, pg_indexes_size('by_column')),
  ('created_at''s index', 'index bytes', 1, pg_relation_size('by_column_created_at')),
  ('rows', 'rows', 1, :rows)) AS x;
