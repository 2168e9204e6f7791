-- Makes eight shards on the Citus coordinator, each a schema copied from a template, for scripts/citus.
CREATE EXTENSION snowflake_shards;
CREATE SCHEMA template;
CREATE TABLE template.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), name text NOT NULL);
CREATE TABLE template.photos (
  id bigint PRIMARY KEY DEFAULT snowflake.next_id(0),
  user_id bigint NOT NULL REFERENCES template.users);
-- Citus distributes tables that a client creates by a statement, but not tables that a procedure creates. The script
-- calls citus_schema_distribute() for each schema that the procedure create_shards() has created.
CALL snowflake.create_shards('template', '[0,8)', commit_each => true);
SELECT format('SELECT citus_schema_distribute(%L)', 'shard_' || s) FROM generate_series(0, 7) AS s \gexec
SELECT format('INSERT INTO shard_%s.users (name) SELECT ''user '' || n FROM generate_series(1, 500) AS n', s)
  FROM generate_series(0, 7) AS s \gexec
SELECT 'CREATE VIEW all_users AS ' || string_agg(format('SELECT %L AS home, id, name FROM shard_%s.users', 'shard_' || s, s), ' UNION ALL ')
  FROM generate_series(0, 7) AS s \gexec
