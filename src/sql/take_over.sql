-- Replaces existing SQL functions that mint ids in the database with the functions of the extension. The SQL functions
-- were created by the script of generator_sql(), a function of the extension snowflake_migrate. The schemas "snowflake"
-- and "snowflake_sql" belong to the role that ran the script of generator_sql(). The existing SQL functions become
-- members of the extension, so that CREATE OR REPLACE FUNCTION in the install script can replace the functions.
-- Defaults, indexes and views that use the functions stay valid. Until the transaction of CREATE EXTENSION ends, no
-- session can mint, because the sequences of the schemas "snowflake" and "snowflake_sql" are locked.
--
-- The functions move into a new schema, on which the former owner of the functions has no privileges. In the old
-- schema, the former owner could have created functions that the extension would call with the caller's rights.
DO $$
DECLARE
  function text;
  relation regclass;
BEGIN
  IF to_regclass('snowflake_sql.published') IS NULL
     OR NOT EXISTS (SELECT FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
                     WHERE pg_class.oid = to_regclass('snowflake.dumped_seal') AND relkind = 'r'
                       AND attname = 'seal' AND atttypid = 'bigint'::regtype)
     OR EXISTS (SELECT FROM pg_depend
                 WHERE classid = 'pg_namespace'::regclass AND objid = to_regnamespace('snowflake')
                   AND deptype = 'e') THEN
    RETURN;
  END IF;
  IF current_setting('lock_timeout') = '0' THEN
    PERFORM set_config('lock_timeout', '10s', true);
  END IF;
  EXECUTE format('ALTER SCHEMA snowflake OWNER TO %I', current_user);
  EXECUTE format('ALTER SCHEMA snowflake_sql OWNER TO %I', current_user);
  ALTER SCHEMA snowflake RENAME TO snowflake_taken;
  CREATE SCHEMA snowflake;
  FOR relation IN
    SELECT oid FROM pg_class
     WHERE relkind = 'S' AND relnamespace IN ('snowflake_taken'::regnamespace, 'snowflake_sql'::regnamespace)
     ORDER BY oid
  LOOP
    EXECUTE format('ALTER SEQUENCE %s OWNER TO %I', relation, current_user);
  END LOOP;
  ALTER SEQUENCE snowflake_taken.high_water SET SCHEMA snowflake_sql;
  ALTER TABLE snowflake_taken.dumped_seal SET SCHEMA snowflake_sql;
  -- The table dumped_seal still belongs to the role that ran the script of generator_sql(). The script taken_over.sql
  -- reads the table dumped_seal (id layout) with the rights of the table's owner. A superuser must not read
  -- dumped_seal, because indexes and statistics of the table can call functions of its owner.
  EXECUTE format('GRANT USAGE ON SCHEMA snowflake_sql TO %s',
                 (SELECT relowner::regrole FROM pg_class WHERE oid = 'snowflake_sql.dumped_seal'::regclass));
  DROP VIEW snowflake_taken.health, snowflake_taken.layout;
  DROP FUNCTION snowflake_taken.health(), snowflake_taken.layout();
  FOREACH function IN ARRAY ARRAY['next_id(integer)', 'next_id()', 'next_id(integer, bigint)', 'next_id_near(bigint)',
    'next_id_in(int4range)', 'next_ids(integer, integer)', 'next_ids(integer, integer, bigint)', 'decode(bigint)',
    'time_of(bigint)', 'region_of(bigint)', 'shard_of(bigint)', 'sequence_of(bigint)', 'shard_for(text)',
    'shard_for(bigint)', 'shard_for(uuid)', 'shard_for(text, integer)', 'shard_for(bigint, integer)',
    'shard_for(uuid, integer)',
    'min_id(timestamptz)', 'max_id(timestamptz)', 'id_range(tstzrange)', 'last_id_before(timestamptz)',
    'created_within(bigint, timestamptz, timestamptz)', 'make_id(timestamptz, integer, integer, integer)',
    'to_base62(bigint)', 'from_base62(text)', 'to_uuid(bigint)', 'from_uuid(uuid)',
    'has_id(bigint, bigint)', 'has_id(integer, bigint, bigint)', 'schema_of(bigint, text)', 'observe(bigint)',
    'set_mark(timestamptz)', 'accept_clock()']
  LOOP
    EXECUTE format('ALTER FUNCTION snowflake_taken.%s OWNER TO %I', function, current_user);
    EXECUTE format('ALTER FUNCTION snowflake_taken.%s SET SCHEMA snowflake', function);
    EXECUTE format('ALTER EXTENSION snowflake ADD FUNCTION snowflake.%s', function);
  END LOOP;
END
$$;

