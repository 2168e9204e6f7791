-- The functions of this file find the rows of a shard by a condition or by the schema of the shard. The trigger
-- set_id() chooses the shard of a new row.

CREATE FUNCTION snowflake.has_id(id bigint, key bigint) RETURNS boolean
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id OPERATOR(pg_catalog.=) key
       AND snowflake.shard_of(id) OPERATOR(pg_catalog.=) snowflake.shard_of(key);
  END;
COMMENT ON FUNCTION snowflake.has_id(bigint, bigint) IS
  'Returns whether id = key. If a table is partitioned or indexed by shard_of(id), a query with has_id() reads only '
  'one shard';

CREATE FUNCTION snowflake.has_id(shard integer, id bigint, key bigint) RETURNS boolean
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id OPERATOR(pg_catalog.=) key
       AND shard OPERATOR(pg_catalog.=) snowflake.shard_of(key);
  END;
COMMENT ON FUNCTION snowflake.has_id(integer, bigint, bigint) IS
  'Returns whether id = key. If a table is partitioned, indexed or distributed by its shard column, a query with '
  'has_id() reads only one shard';

CREATE FUNCTION snowflake.set_id() RETURNS trigger
  AS 'MODULE_PATHNAME', 'snowflake_set_id'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.set_id() IS
  'The function of a trigger BEFORE INSERT, which mints an id for each row whose id is NULL. set_id(''user_id'') '
  'mints in the shard of the id in column user_id. set_id(''user_id'', ''hash'') mints in the shard '
  'shard_for(user_id). set_id(''user_id'', ''hash'', ''2000'') mints in the shard shard_for(user_id, 2000). If the '
  'id column is not named "id", pass its name as the second argument. Without a first argument, or with an empty '
  'first argument, set_id() uses the default of the id column';

CREATE FUNCTION snowflake.schema_of(id bigint, prefix text DEFAULT 'shard_') RETURNS text
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT prefix OPERATOR(pg_catalog.||) snowflake.shard_of(id)::text;
  END;
COMMENT ON FUNCTION snowflake.schema_of(bigint, text) IS
  'Returns the name of the schema of an id''s shard, if each shard has a schema';
