-- Tests the objects of snowflake_routing, the data in its dump, and the privileges of its functions.
SET client_min_messages = warning;
CREATE EXTENSION snowflake_fleet;
CREATE TEMPORARY VIEW privileges AS
  SELECT o.name, a.grantee, a.privilege_type, a.is_grantable
    FROM (SELECT relname::text AS name, coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)) AS acl
            FROM pg_class WHERE relnamespace = to_regnamespace('snowflake_fleet') AND relkind IN ('r', 'v', 'S')
          UNION ALL SELECT p.oid::regprocedure::text, coalesce(proacl, acldefault('f', proowner))
            FROM pg_proc AS p WHERE pronamespace = to_regnamespace('snowflake_fleet')
          UNION ALL SELECT typname, coalesce(typacl, acldefault('T', typowner)) FROM pg_type WHERE typnamespace = to_regnamespace('snowflake_fleet')
          UNION ALL SELECT nspname, nspacl FROM pg_namespace WHERE nspname = 'snowflake_fleet') AS o, aclexplode(o.acl) AS a;
CREATE TEMPORARY TABLE privileges_of_leases AS SELECT * FROM privileges;
CREATE EXTENSION snowflake_routing;
CREATE TEMPORARY TABLE privileges_before AS SELECT * FROM privileges;
CREATE TEMPORARY VIEW members AS
  SELECT classid, objid, pg_describe_object(classid, objid, 0) AS member
    FROM pg_depend
   WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
     AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_routing');
SELECT member FROM members WHERE classid <> 'pg_type'::regclass ORDER BY member COLLATE "C";
SELECT extversion, extrelocatable, extconfig::regclass[] AS dumped, nspname
  FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'snowflake_routing';

-- Labels of the functions. Functions that run with the owner's rights set a search path of their own
SELECT p.proname AS function, provolatile AS volatile, proparallel AS parallel, prosecdef AS definer,
       proconfig AS config, l.lanname AS language
  FROM pg_proc p JOIN pg_language l ON l.oid = prolang JOIN members ON classid = 'pg_proc'::regclass AND objid = p.oid
 ORDER BY p.proname COLLATE "C";
SELECT count(*) AS definers_without_a_path FROM pg_proc
 WHERE pronamespace = 'snowflake_fleet'::regnamespace AND prosecdef
   AND coalesce(array_to_string(proconfig, ','), '') <> 'search_path=pg_catalog, pg_temp';

-- Every object has a comment, and every argument has a name
SELECT member AS uncommented FROM members
 WHERE (classid <> 'pg_type'::regclass OR
        EXISTS (SELECT FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid WHERE t.oid = objid AND c.relkind = 'c'))
   AND coalesce(obj_description(objid, classid::regclass::name), '') = '';
SELECT count(*) AS arguments_without_a_name FROM pg_proc
 WHERE pronamespace = 'snowflake_fleet'::regnamespace AND pronargs > 0 AND proargnames IS NULL;

-- Every role can read the shard map, but only privileged roles can change the map
SELECT p.oid::regprocedure AS open_to_public FROM pg_proc p
 WHERE pronamespace = 'snowflake_fleet'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE')
 ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT c.oid::regclass AS open_to_public FROM pg_class c
 WHERE relnamespace = 'snowflake_fleet'::regnamespace AND relkind IN ('r', 'v', 'S')
   AND has_table_privilege('public', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
 ORDER BY c.relname COLLATE "C";
SELECT c.oid::regclass AS written_by_public FROM pg_class c
 WHERE relnamespace = 'snowflake_fleet'::regnamespace AND relkind IN ('r', 'v', 'S')
   AND has_table_privilege('public', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER');

-- DROP EXTENSION removes everything that CREATE EXTENSION made, and does not affect leases
SELECT snowflake_fleet.add_server('regress_routing_a') IS NOT NULL AS added;
CREATE TEMPORARY TABLE privileges_added AS SELECT * FROM privileges;
DROP EXTENSION snowflake_fleet;
\echo SQLSTATE :SQLSTATE
DROP EXTENSION snowflake_routing;
(TABLE privileges_of_leases EXCEPT TABLE privileges);

-- CREATE EXTENSION revokes privileges that ALTER DEFAULT PRIVILEGES granted
CREATE ROLE generous_app;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO generous_app, pg_monitor, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO generous_app WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO generous_app, pg_monitor;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO generous_app;
CREATE EXTENSION snowflake_routing;
(TABLE privileges EXCEPT TABLE privileges_added) UNION ALL (TABLE privileges_added EXCEPT TABLE privileges);
DROP EXTENSION snowflake_routing;
SELECT snowflake_fleet.remove_server('regress_routing_a') IS NOT NULL AS removed;
DROP EXTENSION snowflake_fleet CASCADE;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO generous_app, pg_monitor, PUBLIC;
CREATE EXTENSION snowflake_routing CASCADE;
(TABLE privileges EXCEPT TABLE privileges_before) UNION ALL (TABLE privileges_before EXCEPT TABLE privileges);
SELECT count(*) > 100 AS some_are_given FROM privileges;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM generous_app, pg_monitor, PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM generous_app;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM generous_app, pg_monitor;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TYPES FROM generous_app;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM generous_app, pg_monitor, PUBLIC;
DROP ROLE generous_app;
DROP EXTENSION snowflake_fleet CASCADE;
SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake_fleet';
SELECT count(*) FROM pg_event_trigger;
