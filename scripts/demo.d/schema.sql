-- A photo application over 16 logical shards: a schema each, ids minted for the shard by default.
SELECT format($ddl$
  CREATE SCHEMA shard_%1$s;
  CREATE TABLE shard_%1$s.users (
    id bigint PRIMARY KEY DEFAULT snowflake.next_id(%1$s),
    name text NOT NULL);
  CREATE TABLE shard_%1$s.photos (
    id bigint PRIMARY KEY DEFAULT snowflake.next_id(%1$s),
    user_id bigint NOT NULL REFERENCES shard_%1$s.users,
    caption text NOT NULL);
  CREATE TABLE shard_%1$s.likes (
    id bigint PRIMARY KEY DEFAULT snowflake.next_id(%1$s),
    user_id bigint NOT NULL REFERENCES shard_%1$s.users,
    photo_id bigint NOT NULL REFERENCES shard_%1$s.photos);
$ddl$, shard) FROM generate_series(0, 15) AS shard
\gexec

-- What pgbench -i made, with a key: its own script names the columns that it inserts, so the id
-- comes from the default.
ALTER TABLE pgbench_history ADD COLUMN id bigint PRIMARY KEY DEFAULT snowflake.next_id(16);

-- Every id there is, with the table it is in and the shard that this table belongs to.
SELECT 'CREATE VIEW all_ids AS '
    || string_agg(format('SELECT %L AS kind, %s AS home, id FROM shard_%2$s.%1$I', kind, shard),
                  ' UNION ALL ' ORDER BY shard)
    || ' UNION ALL SELECT ''pgbench'', 16, id FROM pgbench_history'
  FROM generate_series(0, 15) AS shard, unnest(ARRAY['users', 'photos', 'likes']) AS kind
\gexec
