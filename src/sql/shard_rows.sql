-- Finds the rows of a shard on one server: by a condition, by the schema of the shard, by a column that set_id() fills.

CREATE FUNCTION snowflake.has_id(id bigint, key bigint) RETURNS boolean
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id OPERATOR(pg_catalog.=) key
       AND snowflake.shard_of(id) OPERATOR(pg_catalog.=) snowflake.shard_of(key);
  END;
COMMENT ON FUNCTION snowflake.has_id(bigint, bigint) IS
  'id = key, also for tables that are partitioned or indexed by shard_of(id): prunes to the shard of the key';

CREATE FUNCTION snowflake.has_id(shard integer, id bigint, key bigint) RETURNS boolean
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id OPERATOR(pg_catalog.=) key
       AND shard OPERATOR(pg_catalog.=) snowflake.shard_of(key);
  END;
COMMENT ON FUNCTION snowflake.has_id(integer, bigint, bigint) IS
  'id = key, for a table that has the shard in a column and is partitioned, indexed or distributed by it';

CREATE FUNCTION snowflake.set_id() RETURNS trigger
  AS 'MODULE_PATHNAME', 'snowflake_set_id'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.set_id() IS
  'Trigger before INSERT for rows without an id. set_id(''user_id''): an id in the shard of the id in user_id. '
  'set_id(''user_id'', ''hash''): in shard_for(user_id). set_id(''user_id'', ''hash'', ''2000''): in '
  'shard_for(user_id, 2000). An argument before ''hash'' names the id''s column. set_id(), or set_id('''', '
  '''photo_id''): the column''s default, for clients that insert NULL';

CREATE FUNCTION snowflake.schema_of(id bigint, prefix text DEFAULT 'shard_') RETURNS text
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT prefix OPERATOR(pg_catalog.||) snowflake.shard_of(id)::text;
  END;
COMMENT ON FUNCTION snowflake.schema_of(bigint, text) IS 'The schema of an id''s shard, if each shard has a schema';
