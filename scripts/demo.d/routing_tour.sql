\echo :bold'\nAn id says where its row is':plain
SELECT sign_up(snowflake.make_id('2026-01-01', 9, 0), 'Ann') AS id \gset
SELECT :id AS id, snowflake.shard_of(:id) AS shard, snowflake_fleet.server_of(:id) AS server, snowflake.region_of(:id) AS "minted in region";

\echo :bold'Through PL/Proxy: a function call goes to that server':plain
\echo 'SELECT user_name(':id')'
SELECT user_name(:id);

\echo :bold'Through postgres_fdw: PostgreSQL prunes to the one foreign partition':plain
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM users WHERE id = :id;
SELECT * FROM users WHERE id = :id;

\echo :bold'An INSERT through the router mints in the router\'s region':plain
INSERT INTO users (id, name) VALUES (snowflake.next_id_near(:id), 'Bob')
  RETURNING tableoid::regclass AS partition, id, snowflake.region_of(id) AS region;

\echo :bold'All of them together':plain
SELECT server, count(*) AS users, count(DISTINCT id) AS "distinct"
  FROM users JOIN snowflake_fleet.map ON shard = snowflake.shard_of(id) GROUP BY server ORDER BY server;
