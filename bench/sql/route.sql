-- One row by its id: a plain table, 64 partitions by shard, and 64 partitions that the id does not prune.
-- A prepared statement in a loop, in each mode of planning; CPU time of the backend, less the empty loop.

CREATE TABLE plain (id bigint PRIMARY KEY, v integer);
CREATE TABLE by_shard (id bigint PRIMARY KEY, v integer) PARTITION BY HASH (id snowflake.by_shard);
CREATE TABLE by_hash (id bigint PRIMARY KEY, v integer) PARTITION BY HASH (id);
CREATE TABLE by_list (id bigint, v integer) PARTITION BY LIST ((snowflake.shard_of(id) % 64));
SELECT format('CREATE TABLE by_shard_%s PARTITION OF by_shard FOR VALUES WITH (MODULUS 64, REMAINDER %1$s);
               CREATE TABLE by_hash_%1$s PARTITION OF by_hash FOR VALUES WITH (MODULUS 64, REMAINDER %1$s);
               CREATE TABLE by_list_%1$s PARTITION OF by_list FOR VALUES IN (%1$s)', i)
  FROM generate_series(0, 63) AS i \gexec
INSERT INTO plain SELECT snowflake.make_id(timestamptz '2026-01-01Z' + i / 1000 * interval '1 ms', i % 256, i % 1000), i
  FROM generate_series(0, :rows - 1) AS i;
INSERT INTO by_shard SELECT * FROM plain;
INSERT INTO by_hash SELECT * FROM plain;
INSERT INTO by_list SELECT * FROM plain;
CREATE INDEX ON by_list (id);
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
          FROM unnest(ARRAY['plain', 'by_shard', 'by_hash', 'by_list']) AS t
        UNION ALL SELECT 'nothing', 'found := wanted & 1;') AS f (name, statement) \gexec

-- The same with the id written into the statement: pruned when it is planned, once.
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
          FROM unnest(ARRAY['plain', 'by_shard', 'by_hash']) AS t
        UNION ALL SELECT 'nothing', 'found := wanted & 1;') AS f (name, statement) \gexec

DO $$
DECLARE
  ids bigint[] := array_agg(id) FROM wanted;
  times integer;
  empty bigint;
  mode text;
  what text;
  taken bigint;
BEGIN
  FOR run IN 0 .. current_setting('bench.runs')::integer LOOP  -- 0 warms up
    empty := fetch_nothing(ids, 20);
    FOR mode, what IN
      SELECT m, t FROM unnest(ARRAY['force_custom_plan', 'force_generic_plan']) AS m,
                       unnest(ARRAY['plain', 'by_shard', 'by_hash', 'by_list']) AS t
    LOOP
      PERFORM set_config('plan_cache_mode', mode, false);
      times := CASE WHEN what = 'by_list' THEN 1 ELSE 5 END;
      EXECUTE format('SELECT fetch_%s($1, $2)', what) INTO taken USING ids, times;
      INSERT INTO bench.sample VALUES (what, 'CPU ns, ' || mode, run, taken - empty);
    END LOOP;
    PERFORM set_config('plan_cache_mode', 'auto', false);
    empty := fetch_one_nothing(20000);
    FOREACH what IN ARRAY ARRAY['plain', 'by_shard', 'by_hash'] LOOP
      EXECUTE format('SELECT fetch_one_%s(5000)', what) INTO taken;
      INSERT INTO bench.sample VALUES (what, 'CPU ns, constant', run, taken - empty);
    END LOOP;
  END LOOP;
END
$$;
DELETE FROM bench.sample WHERE run = 0;

-- For pgbench, as an application does it: the protocol and the transaction are part of what is compared.
CREATE TABLE cpu (what text, mode text, run integer, statements bigint, ns bigint);
