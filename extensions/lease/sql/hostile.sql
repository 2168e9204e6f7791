-- Tests requests of a server's role that no worker sends: objects in the search path, NULL arguments, disabled
-- settings.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE EXTENSION snowflake_fleet;
SELECT snowflake_fleet.add_server('regress_fleet_a');
CREATE OR REPLACE FUNCTION snowflake_fleet.require_durability() RETURNS void LANGUAGE sql AS '';
CREATE SCHEMA planted AUTHORIZATION regress_fleet_a;
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql
  AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
SELECT 1735689600000 * 2012500 + 22 * 57500 + 1 * 2300 + 12 * 92 + 10 * 4 AS seal \gset
SET SESSION AUTHORIZATION regress_fleet_a;

-- A request with NULL in any argument gets the same error
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
SELECT planted.try(format('snowflake_fleet.ask(%s)', string_agg(CASE WHEN i = n THEN 'NULL' WHEN i = 1 THEN '''acquire''' WHEN i = 12 THEN '''{1}''' ELSE '1' END, ', ' ORDER BY i))) AS told, count(*)
  FROM generate_series(1, 17) AS n, generate_series(1, 17) AS i GROUP BY n ORDER BY 1 LIMIT 3;

-- A request with extreme values gets an answer or an error of snowflake, never an error of PostgreSQL
SELECT which, v, planted.try(format('snowflake_fleet.ask(%L, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %L, %s, %s, %s, %s, %s)',
         CASE WHEN which > 11 THEN 'renew' ELSE 'acquire' END,
         CASE which WHEN 2 THEN v ELSE 0 END, CASE which WHEN 3 THEN v ELSE 1 END, CASE which WHEN 4 THEN v ELSE 0 END,
         CASE which WHEN 5 THEN v ELSE 0 END, CASE which WHEN 6 THEN v ELSE 1 END, CASE which WHEN 7 THEN v ELSE 0 END,
         CASE which WHEN 8 THEN v ELSE now_ms() END, CASE which WHEN 9 THEN v ELSE 1 END, CASE which WHEN 10 THEN v ELSE 0 END,
         CASE which WHEN 11 THEN v ELSE :seal END, '{0}', CASE which WHEN 13 THEN v ELSE 0 END, CASE which WHEN 14 THEN v ELSE 0 END,
         CASE which WHEN 15 THEN v ELSE 0 END, CASE which WHEN 16 THEN v ELSE 0 END, CASE which WHEN 17 THEN v ELSE 0 END)) AS told
  FROM generate_series(2, 17) AS which, unnest(ARRAY[-1, 2147483647, 9223372036854775807, -9223372036854775808]) AS v
 WHERE which <> 12 AND (which <> 13 OR v BETWEEN -1 AND 2147483647)
 ORDER BY which, v;
SELECT call, regions, planted.try(format('snowflake_fleet.ask(%L, 0, 1, 0, 0, 1, 0, %s, 1, 1, %s, %L, 0, 0, 0, 0, 0)', call, now_ms(), :seal, regions)) AS told
  FROM (VALUES ('nothing', '{0}'), ('acquire', '{}'), ('acquire', '{2}'), ('acquire', '{-1}'), ('acquire', '{NULL}'), ('acquire', '{{0},{1}}'),
               ('acquire', '{0,0}'), ('report', '{}')) AS v (call, regions);

RESET SESSION AUTHORIZATION;
DELETE FROM snowflake_fleet.static_region;
SET SESSION AUTHORIZATION regress_fleet_a;

-- The role creates objects that a function without a safe search_path would use
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
SELECT status, region FROM snowflake_fleet.ask('acquire', 0, 1, 0, 0, 1, 0, :now, 10000, 1, :seal, '{0,1}', -1, 0, 0, 0, 0);
RESET search_path;

-- A request in a transaction with an older snapshot would not see later grants
PREPARE question AS SELECT status, region FROM snowflake_fleet.ask('acquire', 0, 2, 0, 0, 1, 0, :now, 10000, 1, :seal, '{0,1}', -1, 0, 0, 0, 0);
BEGIN ISOLATION LEVEL REPEATABLE READ;
EXECUTE question;
\echo SQLSTATE :SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
EXECUTE question;
\echo SQLSTATE :SQLSTATE
ROLLBACK;
-- A lease whose grant was rolled back does not exist
BEGIN;
EXECUTE question;
ROLLBACK;
RESET SESSION AUTHORIZATION;
SELECT region, server, state FROM snowflake_fleet.regions ORDER BY region;
SELECT moved FROM snowflake_fleet.has_moved();

-- require_durability() runs with its owner's rights and with settings of its own
SELECT prosecdef, proconfig FROM pg_proc WHERE oid = 'snowflake_fleet.require_durability()'::regprocedure;

UPDATE snowflake_fleet.region SET floor_ms = 0, until_ms = 0;
DROP EXTENSION snowflake_fleet CASCADE;
DROP FUNCTION now_ms();
DROP SCHEMA planted CASCADE;
DROP OWNED BY regress_fleet_a;
DROP ROLE regress_fleet_a;
