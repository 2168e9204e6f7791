-- Sets up a router: PL/Proxy and postgres_fdw with the shard map, and the same foreign tables without pruning.
CREATE EXTENSION plproxy;
CREATE EXTENSION postgres_fdw;
CALL snowflake_fleet.use_plproxy();
CREATE FUNCTION user_name(id bigint) RETURNS text LANGUAGE plproxy AS
  $$ CLUSTER 'snowflake'; RUN ON snowflake_fleet.run_on(id); $$;
CREATE TABLE users (id bigint NOT NULL, name text NOT NULL) PARTITION BY HASH (id snowflake.by_shard);
CALL snowflake_fleet.use_postgres_fdw('users');
CREATE VIEW unpruned AS SELECT * FROM users_shard_0;
SELECT format('CREATE OR REPLACE VIEW unpruned AS %s',
              string_agg(format('SELECT * FROM users_shard_%s', shard), ' UNION ALL '))
  FROM snowflake_fleet.map_shard \gexec
