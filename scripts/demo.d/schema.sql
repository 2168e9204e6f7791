-- A photo application over 16 logical shards: a schema each, as the template is, with defaults that
-- mint for the shard.
CREATE EXTENSION IF NOT EXISTS snowflake_shards;
CREATE SCHEMA template;
CREATE TABLE template.users (
  id bigint PRIMARY KEY DEFAULT snowflake.next_id(0),
  name text NOT NULL);
CREATE TABLE template.photos (
  id bigint PRIMARY KEY DEFAULT snowflake.next_id(0),
  user_id bigint NOT NULL REFERENCES template.users,
  caption text NOT NULL);
CREATE TABLE template.likes (
  id bigint PRIMARY KEY DEFAULT snowflake.next_id(0),
  user_id bigint NOT NULL REFERENCES template.users,
  photo_id bigint NOT NULL REFERENCES template.photos);
CALL snowflake.create_shards('template', '[0,16)');

-- The same rows could be in one table, with a partition for every two shards.
CREATE TABLE messages (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), text text NOT NULL)
  PARTITION BY HASH (id snowflake.by_shard);
SELECT format('CREATE TABLE messages_%s PARTITION OF messages FOR VALUES WITH (MODULUS 8, REMAINDER %1$s)', r)
  FROM generate_series(0, 7) AS r
\gexec

-- The tables of pgbench -i, with a key. pgbench's script names the columns that it inserts, so the id comes from the
-- default.
ALTER TABLE pgbench_history ADD COLUMN id bigint PRIMARY KEY DEFAULT snowflake.next_id(16);

-- Every id there is, with the table it is in and the shard that this table belongs to.
SELECT 'CREATE VIEW all_ids AS '
    || string_agg(format('SELECT %L AS kind, %s AS home, id FROM shard_%2$s.%1$I', kind, shard),
                  ' UNION ALL ' ORDER BY shard)
    || ' UNION ALL SELECT ''pgbench'', 16, id FROM pgbench_history'
  FROM generate_series(0, 15) AS shard, unnest(ARRAY['users', 'photos', 'likes']) AS kind
\gexec
