-- Tests CREATE EXTENSION and DROP EXTENSION of snowflake, snowflake_shards and snowflake_migrate.
SET client_min_messages = warning;

-- Lists the members of snowflake and of the two other extensions
CREATE EXTENSION snowflake_shards;
CREATE EXTENSION snowflake_migrate;
SELECT extname, member
  FROM pg_extension, pg_depend, pg_describe_object(classid, objid, 0) AS member
 WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
   AND refobjid = pg_extension.oid AND extname IN ('snowflake', 'snowflake_shards', 'snowflake_migrate')
   AND classid <> 'pg_type'::regclass
 ORDER BY extname, member COLLATE "C";
SELECT extversion, extrelocatable, extconfig::regclass[] AS dumped, nspname
  FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'snowflake';
SELECT version, superuser, trusted, relocatable, schema, comment FROM pg_available_extension_versions
 WHERE name = 'snowflake' AND installed;

-- Shows how functions are declared: only functions that mint ids or read the clock are volatile. Functions that mint
-- ids are declared PARALLEL UNSAFE. Functions that take a shard are not strict, because a NULL shard is an error.
SELECT p.oid::regprocedure AS function, provolatile AS volatile, proparallel AS parallel, proisstrict AS strict,
       prosecdef AS definer, proconfig IS NOT NULL AS config, proretset AS set, l.lanname AS language
  FROM pg_proc p JOIN pg_language l ON l.oid = prolang
 WHERE pronamespace = 'snowflake'::regnamespace ORDER BY p.oid::regprocedure::text COLLATE "C";

-- Every object has a comment
SELECT pg_describe_object(classid, objid, 0) AS uncommented
  FROM pg_depend
 WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
   AND refobjid IN (SELECT oid FROM pg_extension WHERE extname ~ '^snowflake')
   AND classid <> 'pg_type'::regclass
   AND coalesce(obj_description(objid, classid::regclass::name), '') = '';
SELECT count(*) AS arguments_without_a_name FROM pg_proc
 WHERE pronamespace = 'snowflake'::regnamespace AND pronargs > 0 AND proargnames IS NULL;

DROP EXTENSION snowflake_shards, snowflake_migrate;

SELECT current_database() AS home \gset
CREATE DATABASE regress_snowflake;
\c regress_snowflake
SET client_min_messages = warning;
-- Creates and drops the three extensions in every order. CREATE EXTENSION with CASCADE creates the missing extensions,
-- and snowflake is dropped last.
DO $$
DECLARE
  names CONSTANT text[] := '{snowflake,snowflake_shards,snowflake_migrate}';
  chosen text[];
  name text;
BEGIN
  FOR chosen IN SELECT ARRAY[a, b, c] FROM unnest(names) a, unnest(names) b, unnest(names) c WHERE a <> b AND b <> c AND a <> c LOOP
    FOREACH name IN ARRAY chosen LOOP
      EXECUTE format('CREATE EXTENSION IF NOT EXISTS %I CASCADE', name);
    END LOOP;
    ASSERT (SELECT count(*) = 3 FROM pg_extension WHERE extname = ANY (names)), chosen;
    FOREACH name IN ARRAY chosen LOOP
      BEGIN
        EXECUTE format('DROP EXTENSION %I', name);
      EXCEPTION WHEN dependent_objects_still_exist THEN
        ASSERT name = 'snowflake', chosen;
      END;
    END LOOP;
    DROP EXTENSION IF EXISTS snowflake;
    ASSERT NOT EXISTS (SELECT FROM pg_extension WHERE extname = ANY (names)) AND to_regnamespace('snowflake') IS NULL, chosen;
  END LOOP;
END
$$;

-- CREATE EXTENSION fails if another role owns a schema named snowflake
\set SHOW_CONTEXT never
CREATE SCHEMA snowflake;
CREATE EXTENSION snowflake;
\echo SQLSTATE :SQLSTATE
CREATE EXTENSION snowflake SCHEMA public;
\echo SQLSTATE :SQLSTATE
DROP SCHEMA snowflake;
-- The owner of a database may not create the extension, because the extension uses state of the whole server
CREATE ROLE regress_snowflake_owner;
ALTER DATABASE regress_snowflake OWNER TO regress_snowflake_owner;
SET SESSION AUTHORIZATION regress_snowflake_owner;
CREATE EXTENSION snowflake;
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;

-- The extension is created and used in one transaction, in a database that has never minted
BEGIN;
CREATE EXTENSION snowflake;
CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake.next_id(200));
INSERT INTO t SELECT FROM generate_series(1, 3000);
SELECT count(*), bool_and(snowflake.shard_of(id) = 200) AS shard FROM t;
COMMIT;
INSERT INTO t SELECT FROM generate_series(1, 1000);
SELECT count(*), count(DISTINCT id) AS ids FROM t;

-- If one transaction creates the extension twice, the second extension can mint, because no other session has used the
-- first one
DROP EXTENSION snowflake CASCADE;
BEGIN;
CREATE EXTENSION snowflake;
SELECT snowflake.next_id(200) > 0 AS minted;
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake;
SELECT snowflake.next_id(200) > max(id) AS above FROM t;
COMMIT;

-- The second extension refuses to mint if ROLLBACK TO SAVEPOINT could restore the first high-water mark. The first
-- high-water mark does not cover the ids of the second one, which belongs to another extension or to other storage.
DROP EXTENSION snowflake CASCADE;
BEGIN;
CREATE EXTENSION snowflake;
SELECT snowflake.next_id(200) > max(id) AS above FROM t;
SAVEPOINT first;
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake;
SELECT snowflake.next_id(200);
\echo SQLSTATE :SQLSTATE
ROLLBACK TO first;
ALTER SEQUENCE snowflake.high_water START 7;
SELECT snowflake.next_id(200);
\echo SQLSTATE :SQLSTATE
ROLLBACK TO first;
SELECT snowflake.next_id(200) > max(id) AS above FROM t;
COMMIT;

-- If the transaction is rolled back, the next extension mints above the ids that the first one had returned
DROP EXTENSION snowflake CASCADE;
BEGIN;
CREATE EXTENSION snowflake;
SELECT max(id) AS lost FROM unnest(snowflake.next_ids(200, 1000)) id \gset
ROLLBACK;
CREATE EXTENSION snowflake;
SELECT snowflake.next_id(200) > :lost AND :lost > max(id) AS above FROM t;

-- If the extension is dropped and created again, the new high-water mark is above all ids that the old mark allowed. In
-- every shard the ids of the new extension are above the ids of the old extension.
SELECT snowflake.next_id(200) AS a, (snowflake.next_ids(201, 100))[100] AS b \gset
SELECT extract(epoch FROM covered_until) * 1000 AS "limit" FROM snowflake.health \gset
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake;
SELECT last_value >= :limit AS mark FROM snowflake.high_water;
SELECT snowflake.next_id(200) > :a AS a, snowflake.next_id(201) > :b AS b;

-- If a transaction drops and creates the extension, calls that mint in this transaction are refused. A rollback would
-- restore the old high-water mark, which would not cover the ids of such calls.
BEGIN;
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake;
SELECT snowflake.next_id(200);
\echo SQLSTATE :SQLSTATE
ROLLBACK;
SELECT snowflake.next_id(200) > :a AS after_rollback;
BEGIN;
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake;
SELECT snowflake.shard_of(:a) AS decoding_works;
COMMIT;
SELECT snowflake.next_id(200) > :a AS after_commit;
-- After ROLLBACK TO SAVEPOINT, calls of next_id() succeed again
BEGIN;
SAVEPOINT s;
DROP EXTENSION snowflake;
ROLLBACK TO s;
SELECT snowflake.next_id(200) > :a AS after_rollback_to;
COMMIT;

-- Without the extension, and in the transaction that drops it, the functions do not exist. A C function of the library
-- that still exists without the extension fails with an error.
CREATE FUNCTION left_over(integer) RETURNS bigint AS 'snowflake', 'snowflake_next_id' LANGUAGE C;
SELECT left_over(200) > :a AS works_as_well;
DROP EXTENSION snowflake;
SELECT left_over(200);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(200);
\echo SQLSTATE :SQLSTATE
CREATE EXTENSION snowflake;
SELECT left_over(200) > :a AS works_again;

-- The high-water mark is found as a member of the extension, whatever other sequences have its name, and whatever
-- search_path is
CREATE SCHEMA evil;
CREATE SEQUENCE evil.high_water MINVALUE 0 START 0;
CREATE SEQUENCE public.high_water MINVALUE 0 START 0;
SET search_path = evil, public;
SELECT snowflake.next_id(200) > :a AS minted;
SELECT e.last_value AS evil, p.last_value AS public FROM evil.high_water e, public.high_water p;
RESET search_path;

-- The extension cannot be moved to another schema, and tables that use it are lost only with CASCADE
ALTER EXTENSION snowflake SET SCHEMA public;
\echo SQLSTATE :SQLSTATE
ALTER TABLE t ALTER id SET DEFAULT snowflake.next_id(200);
DROP EXTENSION snowflake;
\echo SQLSTATE :SQLSTATE
DROP FUNCTION snowflake.next_id(integer);
\echo SQLSTATE :SQLSTATE
DROP SEQUENCE snowflake.seal;
\echo SQLSTATE :SQLSTATE
INSERT INTO t DEFAULT VALUES;
SELECT count(*), count(DISTINCT id) AS ids FROM t;

-- A copy of a database mints above the ids of its template
\c :home
CREATE DATABASE regress_snowflake_copy TEMPLATE regress_snowflake;
\c regress_snowflake_copy
SET client_min_messages = warning;
-- An extension named snowflake that has other members is refused, because it is another product
ALTER EXTENSION snowflake DROP SEQUENCE snowflake.high_water;
SELECT snowflake.next_id(200);
\echo SQLSTATE :SQLSTATE
ALTER EXTENSION snowflake ADD SEQUENCE snowflake.high_water;
-- Even if nothing has been minted, a transaction may not recreate the extension and mint
BEGIN;
DROP EXTENSION snowflake CASCADE;
CREATE EXTENSION snowflake;
SELECT snowflake.next_id(200);
\echo SQLSTATE :SQLSTATE
ROLLBACK;
BEGIN;
SAVEPOINT s;
DROP EXTENSION snowflake CASCADE;
CREATE EXTENSION snowflake;
ROLLBACK TO s;
INSERT INTO t DEFAULT VALUES RETURNING id > :a AS above_the_template;
ROLLBACK;
INSERT INTO t DEFAULT VALUES RETURNING id > :a AS above_the_template;
SELECT count(*), count(DISTINCT id) AS ids FROM t;
\c :home
DROP DATABASE regress_snowflake_copy;
DROP DATABASE regress_snowflake;
DROP ROLE regress_snowflake_owner;
