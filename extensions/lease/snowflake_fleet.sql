-- If no files can be installed on the server, create the objects of the extension snowflake_fleet with this script:
--
--   psql -f extensions/lease/snowflake_fleet.sql
--
-- The role that runs the script becomes the owner of the objects. The role needs CREATE on the database, and CREATEROLE
-- to call add_server().
\set ON_ERROR_STOP on
BEGIN;
\ir src/sql/fleet.sql
\ir src/sql/servers.sql
\ir src/sql/leases.sql
\ir src/sql/same_database.sql
\ir src/sql/decide.sql
\ir src/sql/ask.sql
\ir src/sql/operator.sql
\ir src/sql/health.sql
\ir src/sql/privileges.sql
COMMIT;
