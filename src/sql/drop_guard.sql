
-- Hooks of the library refuse DROP EXTENSION with CASCADE if it would drop tables, and check privileges before a
-- command waits for a lock. If the library is not preloaded, a session has the hooks only after it has used the
-- extension. The event trigger snowflake_guard_commands loads the library before each command that needs the hooks.
CREATE FUNCTION snowflake.guard_commands() RETURNS event_trigger
  AS 'MODULE_PATHNAME', 'snowflake_guard_commands'
  LANGUAGE C PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.guard_commands() IS
  'Internal: the function that the event trigger snowflake_guard_commands calls';
CREATE EVENT TRIGGER snowflake_guard_commands ON ddl_command_start
  WHEN TAG IN ('ALTER EXTENSION', 'ALTER FUNCTION', 'ALTER INDEX', 'ALTER MATERIALIZED VIEW', 'ALTER PROCEDURE',
               'ALTER ROUTINE', 'ALTER TABLE', 'ALTER TRIGGER', 'CREATE FOREIGN TABLE', 'CREATE RULE', 'CREATE SCHEMA',
               'CREATE TABLE', 'CREATE TRIGGER', 'DROP EXTENSION', 'DROP OWNED', 'DROP SCHEMA', 'DROP SEQUENCE')
  EXECUTE FUNCTION snowflake.guard_commands();
ALTER EVENT TRIGGER snowflake_guard_commands ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER snowflake_guard_commands IS
  'Loads the library snowflake before commands that the library checks and may refuse';
