-- Without an extension, where no files can be installed on the server:
--
--   psql -f extensions/lease/snowflake_fleet.sql
--
-- As the role that is to own the fleet; it needs CREATE on the database, and CREATEROLE to enroll().
\set ON_ERROR_STOP on
BEGIN;
\ir parts/fleet.sql
\ir parts/servers.sql
\ir parts/leases.sql
\ir parts/grants.sql
\ir parts/static_regions.sql
\ir parts/recovery.sql
\ir parts/pools.sql
\ir parts/refusals.sql
\ir parts/operator.sql
\ir parts/health.sql
\ir parts/privileges.sql
\ir parts/sizing.sql
COMMIT;
