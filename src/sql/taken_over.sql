-- Continues take_over.sql: the extension takes over the high-water mark of the SQL engine (SQL version of the
-- generator). The last steps drop the remaining objects of the schema snowflake_sql one by one, without CASCADE.
DO $$
DECLARE
  stated text;
  foreign_objects text;
BEGIN
  IF to_regclass('snowflake_sql.high_water') IS NULL THEN
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM snowflake.query_as(snowflake.owner_of('snowflake_sql.dumped_seal'),
                                            'SELECT seal FROM ONLY snowflake_sql.dumped_seal')
                      AS taken (seal bigint), snowflake.seal AS own WHERE taken.seal <> own.last_value) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the existing ids have another layout than the settings of this server',
      DETAIL = format('The settings have layout %s. '
                      'The comment of sequence snowflake.high_water shows the layout of the ids.',
                      (SELECT concat(bits, ', tick ', tick_ms, ' ms, epoch ', epoch) FROM snowflake.layout)),
      HINT = 'Set "snowflake.layout", "snowflake.tick" and "snowflake.epoch" to the layout of the ids. '
             'Then create the extension again.';
  END IF;
  PERFORM setval('snowflake.high_water', greatest(taken.last_value, own.last_value))
     FROM snowflake_sql.high_water AS taken, snowflake.high_water AS own WHERE taken.is_called;
  PERFORM setval('snowflake.seal_local', last_value) FROM snowflake.seal_local;  -- ids of this layout exist
  FOR stated IN
    SELECT format('DROP FUNCTION %s', oid::regprocedure) FROM pg_proc WHERE pronamespace = 'snowflake_sql'::regnamespace
    UNION ALL
    SELECT format('DROP %s %s', CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, oid::regclass)
      FROM pg_class WHERE relnamespace = 'snowflake_sql'::regnamespace AND relkind IN ('S', 'r')
  LOOP
    EXECUTE stated;
  END LOOP;
  DROP SCHEMA snowflake_sql;
  SELECT string_agg(replace(pg_describe_object(d.classid, d.objid, 0), 'snowflake_taken', 'snowflake'), ', ')
    INTO foreign_objects
    FROM pg_depend AS d
   WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = 'snowflake_taken'::regnamespace;
  IF foreign_objects IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
      MESSAGE = 'schema "snowflake" contains objects that a script of generator_sql() did not create',
      DETAIL = format('These objects are: %s.', foreign_objects),
      HINT = 'Move these objects to another schema, or drop the objects, and create the extension again.';
  END IF;
  DROP SCHEMA snowflake_taken;
END
$$;

