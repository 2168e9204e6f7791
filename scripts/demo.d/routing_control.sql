-- Sets up the routing server: the cluster functions of PL/Proxy, and a table with foreign partitions. Both use the
-- shard map.
CREATE EXTENSION plproxy;
CREATE EXTENSION postgres_fdw;
CALL snowflake_fleet.use_plproxy();
CREATE FUNCTION sign_up(near bigint, name text) RETURNS bigint LANGUAGE plproxy AS
  $$ CLUSTER 'snowflake'; RUN ON snowflake_fleet.run_on(near); $$;
CREATE FUNCTION user_name(id bigint) RETURNS text LANGUAGE plproxy AS
  $$ CLUSTER 'snowflake'; RUN ON snowflake_fleet.run_on(id); $$;

CREATE TABLE users (id bigint NOT NULL DEFAULT snowflake.next_id(0), name text NOT NULL)
  PARTITION BY HASH (id snowflake.by_shard);
CALL snowflake_fleet.use_postgres_fdw('users');
