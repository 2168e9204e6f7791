-- Servers, by the names of their roles: hostile names, roles that are there, and who speaks for whom.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE EXTENSION snowflake_fleet;
SELECT snowflake_fleet.retire('nobody');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.recovered(now(), old_is_stopped => true);
\echo SQLSTATE :SQLSTATE

-- Names
SELECT snowflake_fleet.enroll(NULL);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.enroll('');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.enroll(repeat('x', 64));
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.enroll('pg_signal');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.enroll(U&'regress_fleet_\00FC"; DROP SCHEMA snowflake_fleet CASCADE; --');
SELECT snowflake_fleet.enroll('regress_fleet''; SELECT 1; --');
SELECT snowflake_fleet.enroll('regress_fleet_%I %s $1 \');
SELECT snowflake_fleet.enroll('regress_fleet_a');
SELECT snowflake_fleet.enroll('regress_fleet_a');
SELECT server, retired, heard, regions FROM snowflake_fleet.servers ORDER BY server COLLATE "C";
SELECT rolname, rolcanlogin, rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS more,
       rolpassword FROM pg_authid WHERE rolname LIKE 'regress\_fleet%' ORDER BY rolname COLLATE "C";

-- Roles that are there
CREATE ROLE regress_fleet_group;
CREATE ROLE regress_fleet_boss SUPERUSER LOGIN;
CREATE ROLE regress_fleet_b LOGIN;
CREATE ROLE regress_fleet_stranger LOGIN;
SELECT snowflake_fleet.enroll('regress_fleet_group');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.enroll('regress_fleet_boss');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.enroll('regress_fleet_b');

-- Who may not: a stranger, a superuser who is no server, one server for another
SET SESSION AUTHORIZATION regress_fleet_stranger;
SELECT snowflake_fleet.acquire(0, 1, 0, 0, 0, 1, 0, 1, 1, 86400000, 0, 1);
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.acquire(0, 1, 0, 0, 0, 1, 0, 1, 1, 86400000, 0, 1);
\echo SQLSTATE :SQLSTATE
GRANT regress_fleet_a TO regress_fleet_stranger;
SET SESSION AUTHORIZATION regress_fleet_stranger;
SET ROLE regress_fleet_a;
SELECT snowflake_fleet.acquire(0, 1, 0, 0, 0, 1, 0, 1, 1, 86400000, 0, 1);
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;

-- A server may call three functions, and see nothing
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT * FROM snowflake_fleet.fleet;
\echo SQLSTATE :SQLSTATE
SELECT * FROM snowflake_fleet.regions;
\echo SQLSTATE :SQLSTATE
UPDATE snowflake_fleet.region SET until_ms = 0;
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.enroll('regress_fleet_c');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.evict(0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.recovered(now(), old_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.ask(NULL, 0, 0, 0, 0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.decide(NULL, 0);
\echo SQLSTATE :SQLSTATE
SELECT p.proname AS may_call FROM pg_proc p
 WHERE pronamespace = 'snowflake_fleet'::regnamespace AND has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1;
RESET SESSION AUTHORIZATION;

-- Retired, and back again
SELECT snowflake_fleet.retire('regress_fleet_a');
SELECT snowflake_fleet.retire('regress_fleet_a');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.retire(NULL);
\echo SQLSTATE :SQLSTATE
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT snowflake_fleet.acquire(0, 1, 0, 0, 0, 1, 0, 1, 1, 86400000, 0, 1);
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;
-- Kept from an earlier GRANT, it would help as little
GRANT USAGE ON SCHEMA snowflake_fleet TO regress_fleet_a;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_fleet TO regress_fleet_a;
SET SESSION AUTHORIZATION regress_fleet_a;
DO $$
BEGIN
  PERFORM snowflake_fleet.acquire(0, 1, 0, 0, 0, 1, 0, 1, 1, 86400000, 0, 1);
EXCEPTION WHEN OTHERS THEN
  RAISE WARNING '%: %', SQLSTATE, regexp_replace(SQLERRM, ' at .*', '');
END
$$;
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.enroll('regress_fleet_a');
SELECT server, retired FROM snowflake_fleet.servers WHERE server = 'regress_fleet_a';

DROP EXTENSION snowflake_fleet CASCADE;
SELECT current_database() AS here \gset
DO $$
DECLARE
  role name;
BEGIN
  FOR role IN SELECT rolname FROM pg_roles WHERE rolname LIKE 'regress\_fleet%' LOOP
    EXECUTE format('DROP OWNED BY %1$I; DROP ROLE %1$I', role);
  END LOOP;
END
$$;
