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
\ir ../routing/parts/map.sql
\ir ../routing/parts/map_copies.sql
\ir ../routing/parts/plproxy.sql
\ir ../routing/parts/postgres_fdw.sql
\ir ../routing/parts/move.sql
\ir ../routing/parts/move_guard.sql
\ir ../routing/parts/move_fence.sql
\ir ../routing/parts/move_checks.sql
\ir ../routing/parts/move_compare.sql
\ir parts/privileges.sql
\ir parts/sizing.sql
COMMIT;
