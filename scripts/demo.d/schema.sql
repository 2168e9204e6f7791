-- Sets up a photo application with 16 shards. Each shard is a schema that is copied from a template. The column
-- defaults of each schema mint ids in the shard of this schema.
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

-- Creates a table with one partition for every two shards, as an alternative to one schema for each shard.
CREATE TABLE messages (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), text text NOT NULL)
  PARTITION BY HASH (id snowflake.by_shard);
SELECT format('CREATE TABLE messages_%s PARTITION OF messages FOR VALUES WITH (MODULUS 8, REMAINDER %1$s)', r)
  FROM generate_series(0, 7) AS r
\gexec

-- pgbench -i has created the table pgbench_history. Adds a column "id" as primary key, with a default that mints ids.
-- The script of pgbench does not insert the new column, so the id comes from the column default.
ALTER TABLE pgbench_history ADD COLUMN id bigint PRIMARY KEY DEFAULT snowflake.next_id(16);

-- The view all_ids shows each id of the shard schemas and of pgbench_history, with its table and shard. The view does
-- not show ids of the table messages.
SELECT 'CREATE VIEW all_ids AS '
    || string_agg(format('SELECT %L AS kind, %s AS home, id FROM shard_%2$s.%1$I', kind, shard),
                  ' UNION ALL ' ORDER BY shard)
    || ' UNION ALL SELECT ''pgbench'', 16, id FROM pgbench_history'
  FROM generate_series(0, 15) AS shard, unnest(ARRAY['users', 'photos', 'likes']) AS kind
\gexec
