
-- If the library is not preloaded, a session that has not used the extension lacks the extension's hooks. The hooks
-- refuse to drop tables by CASCADE, record a dropped mark, and check privileges before a lock. This event trigger loads
-- the library before commands that need the hooks.
CREATE FUNCTION snowflake.guard_commands() RETURNS event_trigger
  AS 'MODULE_PATHNAME', 'snowflake_guard_commands'
  LANGUAGE C PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.guard_commands() IS 'Internal: function of the event trigger snowflake_guard_commands';
CREATE EVENT TRIGGER snowflake_guard_commands ON ddl_command_start
  WHEN TAG IN ('ALTER EXTENSION', 'ALTER FUNCTION', 'ALTER INDEX', 'ALTER MATERIALIZED VIEW', 'ALTER PROCEDURE',
               'ALTER ROUTINE', 'ALTER TABLE', 'ALTER TRIGGER', 'CREATE FOREIGN TABLE', 'CREATE RULE', 'CREATE SCHEMA',
               'CREATE TABLE', 'CREATE TRIGGER', 'DROP EXTENSION', 'DROP OWNED', 'DROP SCHEMA', 'DROP SEQUENCE')
  EXECUTE FUNCTION snowflake.guard_commands();
ALTER EVENT TRIGGER snowflake_guard_commands ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER snowflake_guard_commands IS
  'Loads the library snowflake before commands that the library may have to refuse';
