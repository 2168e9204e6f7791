-- Without an extension, where no files can be installed on the server:
--
--   psql -f extensions/lease/snowflake_fleet.sql
--
-- As the role that is to own the fleet; it needs CREATE on the database, and CREATEROLE to add_server().
\set ON_ERROR_STOP on
BEGIN;
\ir parts/fleet.sql
\ir parts/servers.sql
\ir parts/leases.sql
\ir parts/operator.sql
\ir parts/health.sql
\ir parts/privileges.sql
COMMIT;
