SET timezone = 'UTC';

\echo :bold'\nAn id says when it was made, and for which shard':plain
SELECT kind, id, (snowflake.decode(id)).* FROM (
  (SELECT 'an imported photo' AS kind, min(id) AS id FROM shard_3.photos) UNION ALL
  (SELECT 'a photo that came by COPY', id FROM shard_3.photos WHERE caption = 'upload 25' LIMIT 1) UNION ALL
  (SELECT 'a like, by INSERT', max(id) FROM shard_11.likes) UNION ALL
  (SELECT 'a row of pgbench', max(id) FROM pgbench_history)) AS a_few
ORDER BY id;

\echo :bold'So the id is enough to find the row: it names the schema':plain
SELECT max(id) AS id, snowflake.schema_of(max(id)) AS home FROM shard_11.photos \gset
\echo 'SELECT * FROM ':home'.photos WHERE id = ':id
SELECT * FROM :home.photos WHERE id = :id;

\echo :bold'Or PostgreSQL finds it: in a table that is PARTITION BY HASH (id snowflake.by_shard), the id names the partition':plain
INSERT INTO messages SELECT snowflake.next_id(n % 16), 'message ' || n FROM generate_series(1, 16000) AS n;
SELECT min(id) AS message FROM messages WHERE snowflake.shard_of(id) = 13 \gset
EXPLAIN (COSTS OFF) SELECT text FROM messages WHERE id = :message;
SELECT tableoid::regclass AS partition, * FROM messages WHERE id = :message;

\echo :bold'Yesterday\'s photos, found through the primary key: there is no created_at, and no index on it':plain
SELECT current_date - 1 AS yesterday, current_date AS today \gset
\echo 'SELECT ... FROM shard_5.photos WHERE snowflake.created_within(id, \'':yesterday'\', \'':today'\')'
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT * FROM shard_5.photos WHERE snowflake.created_within(id, :'yesterday', :'today');
SELECT count(*) AS photos, snowflake.time_of(min(id)) AS first, snowflake.time_of(max(id)) AS last
  FROM shard_5.photos WHERE snowflake.created_within(id, :'yesterday', :'today');

\echo :bold'Rows per shard, by shard_of(id)':plain
SELECT snowflake.shard_of(id) AS shard,
       count(*) FILTER (WHERE kind = 'users') AS users,
       count(*) FILTER (WHERE kind = 'photos') AS photos,
       count(*) FILTER (WHERE kind = 'likes') AS likes,
       count(*) FILTER (WHERE kind = 'pgbench') AS pgbench,
       to_char(count(*), '999,999,999') AS rows,
       count(*) FILTER (WHERE snowflake.shard_of(id) <> home) AS "in the wrong schema"
  FROM all_ids GROUP BY 1 ORDER BY 1;

\echo :bold'Every id of every table together':plain
SELECT to_char(count(*), '999,999,999') AS ids,
       to_char(count(DISTINCT id), '999,999,999') AS "distinct",
       count(*) - count(DISTINCT id) AS duplicates,
       count(*) > count(DISTINCT id) AS broken
  FROM all_ids \gset
SELECT :'ids' AS ids, :'distinct' AS "distinct", :duplicates AS duplicates;
\if :broken
  DO $$ BEGIN RAISE EXCEPTION 'there are duplicates'; END $$;
\endif
