DO $check$
BEGIN
  IF current_setting('server_version_num')::integer < 150000 THEN
    RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
      MESSAGE = 'the SQL version of snowflake needs PostgreSQL 15 or later',
      DETAIL = 'The script uses unlogged sequences, which earlier versions do not have.',
      HINT = 'Upgrade the server.';
  END IF;
END
$check$;

-- The upper bits of a counter contain the number of a time unit (tick). The lower {{TICK_SHIFT}} bits of a counter
-- contain how many sequence numbers have been drawn in the tick. Only the first {{PER_TICK}} sequence numbers of a tick
-- are used for ids.
--
-- If the database already has the objects of this script, the script keeps the sequences and tables, and replaces the
-- functions. Other sessions can mint while this script runs: old and new functions use the same sequences, so no id is
-- minted twice.
DO $state$
DECLARE
  other_owner text;
BEGIN
  IF to_regclass('snowflake_sql.published') IS NOT NULL AND to_regclass('snowflake.dumped_seal') IS NOT NULL THEN
    SELECT min(pg_get_userbyid(o.owner)::text) INTO other_owner
      FROM (SELECT oid AS schema, nspowner AS owner FROM pg_namespace
            UNION ALL SELECT relnamespace, relowner FROM pg_class
            UNION ALL SELECT pronamespace, proowner FROM pg_proc) AS o
     WHERE o.schema IN ('snowflake'::regnamespace, 'snowflake_sql'::regnamespace) AND o.owner <> current_user::regrole;
    IF other_owner IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
        MESSAGE = 'schema snowflake or an object in it belongs to another role',
        DETAIL = format('Schema "snowflake", or an object in it, belongs to role "%s"; the current role is "%s".',
                        other_owner, current_user),
        HINT = 'Run the script as the role that owns schema "snowflake".';
    ELSIF EXISTS (SELECT FROM ONLY snowflake.dumped_seal WHERE seal <> {{SEAL}}) THEN
      RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = 'this script has another layout than the ids of this database',
        DETAIL = 'The script has layout {{LAYOUT}}. '
                 'The comment of sequence snowflake.high_water shows the layout of the ids.',
        HINT = 'Pass the layout of the ids to generator_sql(), and run the new script.';
    END IF;
    RETURN;
  END IF;

  CREATE SCHEMA snowflake;
  COMMENT ON SCHEMA snowflake IS '64-bit time-sortable ids: mint, decode (SQL engine)';
  CREATE SCHEMA snowflake_sql;
  COMMENT ON SCHEMA snowflake_sql IS 'State and internal functions of schema snowflake';
{{CREATE_COUNTERS}}
  CREATE UNLOGGED SEQUENCE snowflake_sql.published AS bigint MINVALUE 0 START 0;
  COMMENT ON SEQUENCE snowflake_sql.published IS
    'The part of snowflake.high_water that is flushed: ticks before it may be opened';
  CREATE SEQUENCE snowflake.high_water AS bigint MINVALUE 0 START 0;
  COMMENT ON SEQUENCE snowflake.high_water IS
    'Durable high-water mark, in milliseconds since 1970: no id of this time or later has been issued. The ids have '
    'layout {{LAYOUT}}';
  CREATE TABLE snowflake_sql.gate ();
  COMMENT ON TABLE snowflake_sql.gate IS 'Has no rows: its lock is held while a tick is opened';

  -- A dump contains the high-water mark, and the id layout as a row of the table dumped_seal. When a dump is restored,
  -- the CHECK constraint same_seal rejects an id layout that differs from the layout of the database.
  CREATE TABLE snowflake.dumped_seal (seal bigint NOT NULL CONSTRAINT same_seal CHECK (seal = {{SEAL}}));
  COMMENT ON TABLE snowflake.dumped_seal IS 'The seal as a dump carries it: layout, tick and epoch, packed';
  INSERT INTO snowflake.dumped_seal VALUES ({{SEAL}});

  PERFORM setval('snowflake.high_water',
                 greatest({{EPOCH_MS}}, (date_part('epoch', clock_timestamp()) * 1000)::bigint));
END
$state$;
