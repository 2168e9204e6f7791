
SELECT snowflake.revoke_default_privileges('snowflake_migrate');
GRANT EXECUTE ON FUNCTION snowflake.observe_all(), snowflake.late_id(timestamptz, integer, integer),
  snowflake.column_of_origin(integer, integer, bigint),
  snowflake.has_ids_of_origin(regclass, name, integer, integer, bigint)
  TO pg_database_owner;
