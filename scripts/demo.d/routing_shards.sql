-- Sets up a data server: its shards, which are copies of a template, and the functions that PL/Proxy calls.
CREATE SCHEMA template;
CREATE TABLE template.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), name text NOT NULL);
CALL snowflake.create_shards('template', :'range');

CREATE FUNCTION sign_up(near bigint, name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  id bigint;
BEGIN
  EXECUTE format('INSERT INTO %I.users (name) VALUES ($1) RETURNING id', snowflake.schema_of(near)) INTO id USING name;
  RETURN id;
END
$$;

CREATE FUNCTION user_name(id bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  name text;
BEGIN
  EXECUTE format('SELECT name FROM %I.users WHERE id = $1', snowflake.schema_of(id)) INTO name USING id;
  RETURN name;
END
$$;

SELECT format('INSERT INTO %I.users (name) SELECT ''user '' || n FROM generate_series(1, 10000) AS n', nspname)
  FROM pg_namespace WHERE nspname LIKE 'shard\_%' \gexec
