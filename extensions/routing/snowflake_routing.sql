-- Without an extension, where no files can be installed on the server: in every database that routes or has shards,
--
--   psql -f extensions/lease/snowflake_fleet.sql -f extensions/routing/snowflake_routing.sql
--
-- As the role that is to own both.
\set ON_ERROR_STOP on
BEGIN;
\ir parts/begin.sql
\ir parts/map.sql
\ir parts/map_copies.sql
\ir parts/plproxy.sql
\ir parts/postgres_fdw.sql
\ir parts/move.sql
\ir parts/move_schema.sql
\ir parts/move_fence.sql
\ir parts/move_guard.sql
\ir parts/privileges.sql
COMMIT;
