-- Sets up a database for measurements: the compared generators, a table for samples, and the functions that time calls.

CREATE EXTENSION snowflake;
CREATE SCHEMA bench;
CREATE EXTENSION snowflake_bench;
CREATE EXTENSION pgstattuple;

-- The rivals.

CREATE SEQUENCE one;
CREATE SEQUENCE hundred CACHE 100;

-- Creates Instagram's function as published in 2012, with its layout and the sequence modulo 1024. The first form of
-- Instagram's function, with a statement for each step, is the form that is usually copied. The second form of
-- Instagram's function is a single expression.
CREATE SEQUENCE instagram_sequence;

CREATE FUNCTION instagram() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  epoch bigint := 1735689600000;
  number bigint;
  now_ms bigint;
  shard integer := 5;
  id bigint;
BEGIN
  SELECT nextval('instagram_sequence') % 1024 INTO number;
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO now_ms;
  id := (now_ms - epoch) << 23;
  id := id | (shard << 10);
  id := id | number;
  RETURN id;
END
$$;

CREATE FUNCTION instagram_tight() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1735689600000) << 23)
         | (5 << 10) | (nextval('instagram_sequence') & 1023);
END
$$;

-- Creates UUIDs of version 7, with the server's own function from PostgreSQL 18 on.
DO $$
BEGIN
  IF current_setting('server_version_num')::int >= 180000 THEN
    CREATE FUNCTION bench.uuid7_name() RETURNS text LANGUAGE sql AS $sql$ SELECT 'uuidv7()' $sql$;
  ELSE
    CREATE FUNCTION bench.uuid7_name() RETURNS text LANGUAGE sql AS $sql$ SELECT 'bench.uuidv7()' $sql$;
  END IF;
END
$$;

CREATE TABLE bench.key (
  place integer,
  name text PRIMARY KEY,
  type text,
  made_by text          -- SHARD stands for a shard that no earlier run of the measurement used
);
INSERT INTO bench.key VALUES
  (1, 'supplied', 'bigint', NULL),
  (2, 'next_id', 'bigint', 'snowflake.next_id(SHARD)'),
  (3, 'nextval cache 1', 'bigint', 'nextval(''one'')'),
  (4, 'nextval cache 100', 'bigint', 'nextval(''hundred'')'),
  (5, 'identity', 'bigint', 'IDENTITY'),
  (6, 'Instagram, one expression', 'bigint', 'instagram_tight()'),
  (7, 'Instagram, as pasted', 'bigint', 'instagram()'),
  (8, 'UUID v4', 'uuid', 'gen_random_uuid()'),
  (9, 'UUID v7', 'uuid', bench.uuid7_name()),
  (10, 'ULID', 'uuid', 'bench.ulid()'),
  (11, 'ULID, text', 'text COLLATE "C"', 'bench.ulid_text()'),
  (12, 'KSUID', 'bytea', 'bench.ksuid()'),
  (13, 'KSUID, text', 'text COLLATE "C"', 'bench.ksuid_text()'),
  (14, 'NanoID', 'text COLLATE "C"', 'bench.nanoid()');

-- The tables store the measured values (samples) and the names of what was measured.

CREATE UNLOGGED TABLE bench.sample (subject text, metric text, run integer, value float8);

CREATE SEQUENCE bench.shards MINVALUE 0 MAXVALUE 8191;
CREATE FUNCTION bench.with_shard(expression text) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN expression LIKE '%SHARD%'
              THEN replace(expression, 'SHARD', (SELECT nextval('bench.shards') % shards FROM snowflake.layout)::text)
              ELSE expression END
$$;

-- Returns the CPU time of a query in nanoseconds, without fetching its result.
CREATE FUNCTION bench.cost(query text) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  before bigint := bench.cpu_ns();
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF) ' || query LOOP
  END LOOP;
  RETURN bench.cpu_ns() - before;
END
$$;

-- Lists the expressions whose cost measure_calls() and similar procedures measure. In an expression, SHARD stands for
-- an unused shard, and NTH for the number of the column, 1 to 10.
CREATE TABLE bench.subject (place serial, name text, metric text, expression text, rows integer);

-- Measures the costs of calls, ten calls per row, for all subjects in turn. The argument `source` is a query that
-- returns the columns, with %s instead of the number of rows.
CREATE PROCEDURE bench.measure_round(run integer, source text DEFAULT
    '(SELECT i, now() AS t, tstzrange(now(), now() + ''1 day'') AS r FROM generate_series(1::bigint, %s) AS i OFFSET 0)')
LANGUAGE plpgsql AS $$
DECLARE
  s record;
  columns text;
BEGIN
  FOR s IN SELECT * FROM bench.subject ORDER BY place LOOP
    SELECT string_agg(replace(e, 'NTH', n::text), ', ') INTO columns
      FROM (SELECT bench.with_shard(s.expression) AS e OFFSET 0) x, generate_series(1, 10) AS n;
    INSERT INTO bench.sample
    SELECT s.name, s.metric, run, bench.cost(
             'SELECT ' || columns || ' FROM ' || format(source, s.rows) || ' AS row') / (s.rows * 10);
  END LOOP;
END
$$;

-- Subtracts the cost of ten trivial columns, and deletes run 0, which was for warming up.
CREATE PROCEDURE bench.net_calls() LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM bench.sample WHERE run = 0;
  UPDATE bench.sample AS s SET value = value - (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY c.value)
                                                  FROM bench.sample AS c
                                                 WHERE c.subject = '(a column)' AND c.metric = s.metric)
   WHERE subject <> '(a column)' AND metric IN (SELECT metric FROM bench.sample WHERE subject = '(a column)');
  DELETE FROM bench.sample WHERE subject = '(a column)';
END
$$;

CREATE PROCEDURE bench.measure_calls(runs integer, source text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
  FOR run IN 0 .. runs LOOP
    IF source IS NULL THEN CALL bench.measure_round(run); ELSE CALL bench.measure_round(run, source); END IF;
  END LOOP;
  CALL bench.net_calls();
END
$$;
