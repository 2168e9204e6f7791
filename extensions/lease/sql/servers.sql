-- Servers are identified by the names of their roles. Tests names that try to inject SQL, existing roles, and requests
-- that one server sends for another server.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE EXTENSION snowflake_fleet;
SELECT snowflake_fleet.remove_server('nobody');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.confirm_data_loss(now(), old_is_stopped => true);
\echo SQLSTATE :SQLSTATE

-- Names
SELECT snowflake_fleet.add_server(NULL);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.add_server('');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.add_server(repeat('x', 64));
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.add_server('pg_signal');
\echo SQLSTATE :SQLSTATE
\pset format unaligned
SELECT snowflake_fleet.add_server(U&'regress_fleet_\00FC"; DROP SCHEMA snowflake_fleet CASCADE; --');
SELECT snowflake_fleet.add_server('regress_fleet''; SELECT 1; --');
SELECT snowflake_fleet.add_server('regress_fleet_%I %s $1 \');
SELECT snowflake_fleet.add_server('regress_fleet_a');
SELECT snowflake_fleet.add_server('regress_fleet_a');
SELECT server, removed, last_request, regions FROM snowflake_fleet.servers ORDER BY server COLLATE "C";
SELECT rolname, rolcanlogin, rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS more,
       rolpassword FROM pg_authid WHERE rolname LIKE 'regress\_fleet%' ORDER BY rolname COLLATE "C";

-- Roles that exist
CREATE ROLE regress_fleet_group;
CREATE ROLE regress_fleet_boss SUPERUSER LOGIN;
CREATE ROLE regress_fleet_b LOGIN;
CREATE ROLE regress_fleet_stranger LOGIN;
SELECT snowflake_fleet.add_server('regress_fleet_group');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.add_server('regress_fleet_boss');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.add_server('regress_fleet_b');

-- Requests are refused for other roles: a stranger, a superuser that is not a server, and a server that sends the
-- request of another server
PREPARE question AS SELECT snowflake_fleet.ask('acquire', 0, 1, 0, 0, 1, 0, 1, 1, 86400000, 22 * 57500 + 5 * 2300, '{0}', -1, 0, 0, 0, 0);
SET SESSION AUTHORIZATION regress_fleet_stranger;
EXECUTE question;
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;
EXECUTE question;
\echo SQLSTATE :SQLSTATE
GRANT regress_fleet_a TO regress_fleet_stranger;
SET SESSION AUTHORIZATION regress_fleet_stranger;
SET ROLE regress_fleet_a;
EXECUTE question;
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;

-- The role of a server may call one function, and may not read any table
SET SESSION AUTHORIZATION regress_fleet_a;
SELECT * FROM snowflake_fleet.fleet;
\echo SQLSTATE :SQLSTATE
SELECT * FROM snowflake_fleet.regions;
\echo SQLSTATE :SQLSTATE
UPDATE snowflake_fleet.region SET until_ms = 0;
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.add_server('regress_fleet_c');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.revoke_lease(0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.confirm_data_loss(now(), old_is_stopped => true);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.decide(NULL, 0);
\echo SQLSTATE :SQLSTATE
SELECT p.proname AS may_call FROM pg_proc p
 WHERE pronamespace = 'snowflake_fleet'::regnamespace AND has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1;
RESET SESSION AUTHORIZATION;

-- An operator removes a server and adds it again
SELECT snowflake_fleet.remove_server('regress_fleet_a');
SELECT regexp_replace(snowflake_fleet.remove_server('regress_fleet_a'), ' at .*', '');
SELECT snowflake_fleet.remove_server(NULL);
\echo SQLSTATE :SQLSTATE
SET SESSION AUTHORIZATION regress_fleet_a;
\set VERBOSITY terse
EXECUTE question;
\set VERBOSITY default
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;
SELECT snowflake_fleet.add_server('regress_fleet_a');
SELECT server, removed FROM snowflake_fleet.servers WHERE server = 'regress_fleet_a';

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
