
-- DROP EXTENSION ... CASCADE is refused by the library, while it would take tables with it. This refuses it where the
-- library is not loaded, and so not asked. The objects that a command will drop are unknown before it, and after it
-- this trigger does not exist any more.
CREATE FUNCTION snowflake.guard_tables() RETURNS event_trigger
  LANGUAGE plpgsql PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  lost text;
BEGIN
  IF EXISTS (SELECT FROM pg_settings WHERE name = 'snowflake.layout') THEN
    RETURN;
  END IF;
  SELECT string_agg(DISTINCT d.objid::regclass::text, ', ') INTO lost
    FROM pg_depend AS m
    JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid
    JOIN pg_class AS c ON c.oid = d.objid
   WHERE m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e'
     AND m.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
     AND d.classid = 'pg_class'::regclass AND d.objsubid = 0 AND d.deptype = 'n' AND relkind IN ('p', 'r')
     AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype = 'e');
  IF lost IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
      MESSAGE = format('%s is refused because tables are partitioned by extension snowflake, whose library is not '
                       'loaded', tg_tag),
      DETAIL = format('With CASCADE these tables would be dropped with their rows: %s.', lost),
      HINT = 'Add snowflake to "shared_preload_libraries" and restart the server, or drop these tables first.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.guard_tables() IS
  'Internal: event trigger that refuses, where the library is not loaded, commands that can drop the extension '
  'while tables are partitioned by it';
CREATE EVENT TRIGGER snowflake_guard_tables ON ddl_command_start
  WHEN TAG IN ('DROP EXTENSION', 'DROP OWNED') EXECUTE FUNCTION snowflake.guard_tables();
ALTER EVENT TRIGGER snowflake_guard_tables ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER snowflake_guard_tables IS
  'Refuses to drop tables that are partitioned by extension snowflake together with it, if its library is not loaded';
