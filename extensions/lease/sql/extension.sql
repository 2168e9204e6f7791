-- Tests the objects of snowflake_fleet, the data in its dump, and the privileges of its functions.
SET client_min_messages = warning;
CREATE EXTENSION snowflake_fleet;
SELECT member
  FROM pg_depend, pg_describe_object(classid, objid, 0) AS member
 WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_fleet')
   AND classid <> 'pg_type'::regclass
 ORDER BY member COLLATE "C";
SELECT extversion, extrelocatable, extconfig::regclass[] AS dumped, nspname
  FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'snowflake_fleet';

-- Labels of the functions. Functions that run with the owner's rights set a search path of their own
SELECT p.proname AS function, provolatile AS volatile, proparallel AS parallel, prosecdef AS definer,
       proconfig AS config, l.lanname AS language
  FROM pg_proc p JOIN pg_language l ON l.oid = prolang
 WHERE pronamespace = 'snowflake_fleet'::regnamespace ORDER BY p.proname COLLATE "C";
SELECT count(*) AS definers_without_a_path FROM pg_proc
 WHERE pronamespace = 'snowflake_fleet'::regnamespace AND prosecdef
   AND coalesce(array_to_string(proconfig, ','), '') <> 'search_path=pg_catalog, pg_temp';

-- Every object has a comment, and every argument has a name
SELECT pg_describe_object(classid, objid, 0) AS uncommented
  FROM pg_depend
 WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_fleet')
   AND (classid <> 'pg_type'::regclass OR
        EXISTS (SELECT FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid
                 WHERE t.oid = objid AND c.relkind = 'c'))
   AND coalesce(obj_description(objid, classid::regclass::name), '') = '';
SELECT count(*) AS arguments_without_a_name FROM pg_proc
 WHERE pronamespace = 'snowflake_fleet'::regnamespace AND pronargs > 0 AND proargnames IS NULL;

-- PUBLIC has no privileges on the objects of the extension
SELECT p.oid::regprocedure AS open_to_public FROM pg_proc p
 WHERE pronamespace = 'snowflake_fleet'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE')
 ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT c.oid::regclass AS open_to_public FROM pg_class c
 WHERE relnamespace = 'snowflake_fleet'::regnamespace AND relkind IN ('r', 'v', 'S')
   AND has_table_privilege('public', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
 ORDER BY c.relname COLLATE "C";
SELECT has_schema_privilege('public', 'snowflake_fleet', 'USAGE, CREATE') AS open_to_public;

-- create_fleet() can change the fleet's limits while no lease was granted
SELECT snowflake_fleet.create_fleet(lease => '8 days');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.create_fleet(lease => '10 s');
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.create_fleet(max_lead => NULL);
\echo SQLSTATE :SQLSTATE
SELECT snowflake_fleet.create_fleet();
SELECT snowflake_fleet.create_fleet(lease => '10 s', max_lead => '100 ms', max_skew => '3 s');
SELECT longest_ms, skew_ms, halted, seal, timeline,
       abs(term / 1048576 - extract(epoch FROM now()) * 1000) < 60000 AS term FROM snowflake_fleet.fleet;

-- CREATE EXTENSION revokes privileges that ALTER DEFAULT PRIVILEGES granted
CREATE TEMPORARY VIEW privileges AS
  SELECT o.name, a.grantee, a.privilege_type, a.is_grantable
    FROM (SELECT relname::text AS name, coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)) AS acl
            FROM pg_class WHERE relnamespace = to_regnamespace('snowflake_fleet') AND relkind IN ('r', 'v', 'S')
          UNION ALL SELECT p.oid::regprocedure::text, coalesce(proacl, acldefault('f', proowner))
            FROM pg_proc AS p WHERE pronamespace = to_regnamespace('snowflake_fleet')
          UNION ALL SELECT typname, coalesce(typacl, acldefault('T', typowner)) FROM pg_type WHERE typnamespace = to_regnamespace('snowflake_fleet')
          UNION ALL SELECT nspname, nspacl FROM pg_namespace WHERE nspname = 'snowflake_fleet') AS o, aclexplode(o.acl) AS a;
CREATE TEMPORARY TABLE privileges_before AS SELECT * FROM privileges;
DROP EXTENSION snowflake_fleet CASCADE;
CREATE ROLE generous_app;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO generous_app, pg_monitor, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO generous_app WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO generous_app, pg_monitor;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO generous_app;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO generous_app, pg_monitor, PUBLIC;
CREATE EXTENSION snowflake_fleet;
(TABLE privileges EXCEPT TABLE privileges_before) UNION ALL (TABLE privileges_before EXCEPT TABLE privileges);
SELECT count(*) > 50 AS some_are_given FROM privileges;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM generous_app, pg_monitor, PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM generous_app;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM generous_app, pg_monitor;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TYPES FROM generous_app;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM generous_app, pg_monitor, PUBLIC;
DROP ROLE generous_app;
DROP VIEW privileges;

-- DROP EXTENSION removes everything that CREATE EXTENSION made
DROP EXTENSION snowflake_fleet CASCADE;
SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake_fleet';
CREATE SCHEMA snowflake_fleet;
\set SHOW_CONTEXT never
CREATE EXTENSION snowflake_fleet;
\echo SQLSTATE :SQLSTATE
DROP SCHEMA snowflake_fleet;
