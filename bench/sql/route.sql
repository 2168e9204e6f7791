-- Reads one row by its id from a plain table, from 16, 64 and 256 partitions by shard, from 64 hash partitions of
-- PostgreSQL, and from 64 partitions that the id does not prune. Measures the backend's CPU time of a prepared
-- statement in a loop, in each mode of planning, without the time of an empty loop.

CREATE TABLE plain (id bigint PRIMARY KEY, v integer);
INSERT INTO plain SELECT snowflake.make_id(timestamptz '2026-01-01Z' + i / 1000 * interval '1 ms', i % 256, i % 1000), i
  FROM generate_series(0, :rows - 1) AS i;

CREATE TABLE way (place serial, name text, partitions integer, by text);
INSERT INTO way (name, partitions, by) VALUES
  ('by_shard_16', 16, 'id snowflake.by_shard'),
  ('by_shard_64', 64, 'id snowflake.by_shard'),
  ('by_shard_256', 256, 'id snowflake.by_shard'),
  ('by_hash_64', 64, 'id');
SELECT format('CREATE TABLE %I (id bigint PRIMARY KEY, v integer) PARTITION BY HASH (%s)', name, by) FROM way ORDER BY place \gexec
SELECT format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s)', name || '_' || i, name, partitions, i)
  FROM way, generate_series(0, partitions - 1) AS i \gexec
CREATE TABLE by_list_64 (id bigint, v integer) PARTITION BY LIST ((snowflake.shard_of(id) % 64));
SELECT format('CREATE TABLE by_list_64_%s PARTITION OF by_list_64 FOR VALUES IN (%1$s)', i) FROM generate_series(0, 63) AS i \gexec
INSERT INTO way (name) VALUES ('by_list_64');
SELECT format('INSERT INTO %I SELECT * FROM plain', name) FROM way ORDER BY place \gexec
CREATE INDEX ON by_list_64 (id);
VACUUM ANALYZE;

CREATE TABLE wanted AS SELECT id FROM plain ORDER BY hashint8(id) LIMIT 1000;
SELECT format($f$
  CREATE FUNCTION fetch_%1$s(ids bigint[], times integer) RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE
    began bigint := bench.cpu_ns();
    wanted bigint;
    found integer;
    n bigint := 0;
  BEGIN
    FOR i IN 1 .. times LOOP
      FOREACH wanted IN ARRAY ids LOOP
        %2$s
        n := n + 1;
      END LOOP;
    END LOOP;
    RETURN (bench.cpu_ns() - began) / n;
  END $$ $f$, name, statement)
  FROM (SELECT t, format('SELECT v INTO STRICT found FROM %s WHERE id = wanted;', t)
          FROM (SELECT name FROM way UNION ALL SELECT 'plain') AS x (t)
        UNION ALL SELECT 'nothing', 'found := wanted & 1;') AS f (name, statement) \gexec

-- Measures a statement that contains the id as a constant, so that partitions are pruned once, when the statement is
-- planned.
SELECT format($f$
  CREATE FUNCTION fetch_one_%1$s(times integer) RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE
    began bigint := bench.cpu_ns();
    wanted bigint := 1;
    found integer;
  BEGIN
    FOR i IN 1 .. times LOOP
      %2$s
    END LOOP;
    RETURN (bench.cpu_ns() - began) / times;
  END $$ $f$, name, statement)
  FROM (SELECT t, format('SELECT v INTO STRICT found FROM %s WHERE id = %s;', t, (SELECT min(id) FROM wanted))
          FROM unnest(ARRAY['plain', 'by_shard_64', 'by_hash_64']) AS t
        UNION ALL SELECT 'nothing', 'found := wanted & 1;') AS f (name, statement) \gexec

DO $$
DECLARE
  ids bigint[] := array_agg(id) FROM wanted;
  empty bigint;
  mode text;
  what text;
  taken bigint;
BEGIN
  FOR run IN 0 .. current_setting('bench.runs')::integer LOOP  -- 0 warms up
    empty := fetch_nothing(ids, 20);
    FOR mode, what IN
      SELECT m, t FROM unnest(ARRAY['force_custom_plan', 'force_generic_plan']) AS m,
                       (SELECT 'plain', 0 UNION ALL SELECT name, place FROM way) AS x (t, place) ORDER BY m, place
    LOOP
      PERFORM set_config('plan_cache_mode', mode, false);
      EXECUTE format('SELECT fetch_%s($1, $2)', what) INTO taken
        USING CASE WHEN what = 'by_list_64' THEN ids[:100] ELSE ids END, CASE WHEN what = 'by_list_64' THEN 1 ELSE 3 END;
      INSERT INTO bench.sample VALUES (what, 'CPU ns, ' || mode, run, taken - empty);
    END LOOP;
    PERFORM set_config('plan_cache_mode', 'auto', false);
    empty := fetch_one_nothing(20000);
    FOREACH what IN ARRAY ARRAY['plain', 'by_shard_64', 'by_hash_64'] LOOP
      EXECUTE format('SELECT fetch_one_%s(5000)', what) INTO taken;
      INSERT INTO bench.sample VALUES (what, 'CPU ns, constant', run, taken - empty);
    END LOOP;
  END LOOP;
END
$$;
DELETE FROM bench.sample WHERE run = 0;

-- Measures statements of an application with pgbench, including the protocol and the transaction.
CREATE TABLE cpu (what text, mode text, run integer, statements bigint, ns bigint);
