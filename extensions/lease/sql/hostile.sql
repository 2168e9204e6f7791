-- A server's role that means harm: what it can plant, leave out, or turn off.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE EXTENSION snowflake_fleet;
SELECT snowflake_fleet.enroll('regress_fleet_a');
CREATE OR REPLACE FUNCTION snowflake_fleet.require_durability() RETURNS void LANGUAGE sql AS '';
CREATE SCHEMA planted AUTHORIZATION regress_fleet_a;
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql
  AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
SELECT 1735689600000 * 2012500 + 22 * 57500 + 1 * 2300 + 12 * 92 + 10 * 4 AS seal \gset
SET SESSION AUTHORIZATION regress_fleet_a;

-- NULL anywhere
SELECT format('SELECT snowflake_fleet.acquire(%s)', string_agg(CASE WHEN i = n THEN 'NULL' ELSE '1' END, ', ' ORDER BY i))
  FROM generate_series(1, 12) AS n, generate_series(1, 12) AS i GROUP BY n ORDER BY n \gexec
SELECT format('SELECT snowflake_fleet.renew(%s)', string_agg(CASE WHEN i = n THEN 'NULL' ELSE '1' END, ', ' ORDER BY i))
  FROM generate_series(1, 16) AS n, generate_series(1, 16) AS i GROUP BY n ORDER BY n \gexec
SELECT format('SELECT snowflake_fleet.give_back(%s)', string_agg(CASE WHEN i = n THEN 'NULL' ELSE '1' END, ', ' ORDER BY i))
  FROM generate_series(1, 9) AS n, generate_series(1, 9) AS i GROUP BY n ORDER BY n \gexec

-- The ends of the ranges: an error or an answer, and never one of PostgreSQL's own
CREATE FUNCTION planted.try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  status text;
BEGIN
  EXECUTE 'SELECT status FROM ' || statement INTO status;
  RETURN status;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;
SELECT planted.try(format('snowflake_fleet.acquire(0, 1, 0, 0, 0, 1, 0, %s, 10000, 86400000, 0, %s)', now_ms(), :seal));
SELECT which, planted.try(format('snowflake_fleet.renew(%s, %s, %s, %s, 0, %s, %s, %s, %s, 86400000, 0, %s, %s, 0, 0, 0)',
         CASE which WHEN 1 THEN v ELSE 0 END, CASE which WHEN 2 THEN v ELSE 1 END, CASE which WHEN 3 THEN v ELSE 0 END,
         CASE which WHEN 4 THEN v ELSE 0 END, CASE which WHEN 5 THEN v ELSE 1 END, CASE which WHEN 6 THEN v ELSE 0 END,
         CASE which WHEN 7 THEN v ELSE now_ms() END, CASE which WHEN 8 THEN v ELSE 1 END,
         CASE which WHEN 9 THEN v ELSE :seal END, CASE which WHEN 10 THEN v::int ELSE 0 END)) AS told, v
  FROM generate_series(1, 10) AS which,
       unnest(ARRAY[-1, 2147483647, 9223372036854775807, -9223372036854775808]) AS v
 WHERE which <> 10 OR v BETWEEN -1 AND 2147483647
   AND NOT (which = 3 AND v > 0)
 ORDER BY which, v;
SELECT planted.try(format('snowflake_fleet.give_back(0, 1, 0, 0, 0, %s, 0, 1, %s)', :seal, v)), v
  FROM unnest(ARRAY[-1, 9223372036854775807]) AS v;
-- Planted, where a careless function would look
SELECT now_ms() AS now \gset
SET search_path = planted, pg_catalog;
CREATE FUNCTION planted.to_ms(timestamptz) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION planted.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT ''infinity''::timestamptz';
CREATE FUNCTION planted.lt(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1';
CREATE OPERATOR planted.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = planted.lt);
CREATE OPERATOR planted.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = planted.lt);
CREATE OPERATOR planted.- (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = planted.lt);
CREATE TEMP TABLE fleet (id bigint, halted boolean);
CREATE TEMP TABLE region (region integer);
CREATE TEMP TABLE server (name text);
CREATE TYPE pg_temp.answer AS (status text);
CREATE FUNCTION planted.least(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
SELECT status, region FROM snowflake_fleet.acquire(0, 1, 0, 0, 0, 1, 0, :now, 10000, 86400000, 0, :seal);
RESET search_path;

-- Its own view of time: an older snapshot does not see what was granted since
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_fleet.acquire(0, 2, 0, 0, 0, 1, 0, now_ms(), 10000, 86400000, 0, :seal);
\echo SQLSTATE :SQLSTATE
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT snowflake_fleet.acquire(0, 2, 0, 0, 0, 1, 0, now_ms(), 10000, 86400000, 0, :seal);
\echo SQLSTATE :SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
SELECT snowflake_fleet.acquire(0, 2, 0, 0, 0, 1, 0, now_ms(), 10000, 86400000, 0, :seal);
\echo SQLSTATE :SQLSTATE
ROLLBACK;
-- What is rolled back was not said
BEGIN;
SELECT status, region FROM snowflake_fleet.acquire(0, 2, 0, 0, 0, 1, 0, now_ms(), 10000, 86400000, 0, :seal);
ROLLBACK;
RESET SESSION AUTHORIZATION;
SELECT region, holder FROM snowflake_fleet.regions ORDER BY region;

-- The owner's part of durability
SELECT prosecdef, proconfig FROM pg_proc WHERE oid = 'snowflake_fleet.require_durability()'::regprocedure;

DROP EXTENSION snowflake_fleet CASCADE;
DROP FUNCTION now_ms();
DROP SCHEMA planted CASCADE;
DROP OWNED BY regress_fleet_a;
DROP ROLE regress_fleet_a;
