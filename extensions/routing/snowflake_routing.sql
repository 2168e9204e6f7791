-- If you cannot install files on the server, run this script in every database that has shards or routes queries to
-- shards:
--
--   psql -f extensions/lease/snowflake_fleet.sql -f extensions/routing/snowflake_routing.sql
--
-- The role that runs the scripts becomes the owner of the tables of the shard map and of the leases.
\set ON_ERROR_STOP on
BEGIN;
\ir src/sql/begin.sql
\ir src/sql/map.sql
\ir src/sql/map_copies.sql
\ir src/sql/plproxy.sql
\ir src/sql/postgres_fdw.sql
\ir src/sql/move.sql
\ir src/sql/move_schema.sql
\ir src/sql/move_forget.sql
\ir src/sql/move_fence.sql
\ir src/sql/move_guard.sql
\ir src/sql/privileges.sql
COMMIT;
