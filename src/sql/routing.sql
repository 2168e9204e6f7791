
-- Functions that find the rows of a shard on one server, by conditions, columns or schemas

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

-- A default has a dependency on each object that it uses: a domain, or a function whose body is parsed SQL (BEGIN
-- ATOMIC). The body of any other function is text, in which dependencies cannot be found.
CREATE FUNCTION snowflake.filled_columns(OUT relation regclass, OUT attribute name, OUT holds_ids boolean)
  RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 50 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE minting (function) AS (
    SELECT oid FROM pg_proc
     WHERE pronamespace = to_regnamespace('snowflake')
       AND proname IN ('next_id', 'next_id_in', 'next_id_near', 'next_ids', 'next_ids_in')
    UNION
    SELECT objid FROM minting JOIN pg_depend ON refclassid = 'pg_proc'::regclass AND refobjid = function
     WHERE classid = 'pg_proc'::regclass),
  bigints (type) AS (
    SELECT 'bigint'::regtype::oid
    UNION
    SELECT oid FROM bigints JOIN pg_type ON typbasetype = type),
  defaults (classid, objid) AS (
    SELECT classid, objid FROM minting JOIN pg_depend ON refclassid = 'pg_proc'::regclass AND refobjid = function)
  SELECT DISTINCT c.oid::regclass, a.attname, relkind <> 'v' AND a.atttypid IN (SELECT type FROM bigints)
    FROM (SELECT adrelid, adnum
            FROM defaults JOIN pg_attrdef AS e ON e.oid = objid
           WHERE classid = 'pg_attrdef'::regclass
          UNION
          SELECT attrelid, attnum
            FROM defaults JOIN pg_attribute ON atttypid = objid
           WHERE classid = 'pg_type'::regclass AND NOT atthasdef AND NOT attisdropped AND attnum > 0
          UNION
          SELECT tgrelid, attnum
            FROM pg_trigger JOIN pg_proc AS p ON p.oid = tgfoid
           CROSS JOIN LATERAL (SELECT array_agg(convert_from(decode(m[1], 'hex'), getdatabaseencoding()))
                                 FROM regexp_matches(encode(tgargs, 'hex'), '((?:0[1-9a-f]|[1-9a-f].)*)00',
                                                     'g') AS m) AS t (given)
            JOIN pg_attribute ON attrelid = tgrelid
             AND attname = CASE WHEN tgnargs = 2 AND given[2] <> 'hash' OR tgnargs = 3 THEN given[2] ELSE 'id' END
           WHERE pronamespace = to_regnamespace('snowflake') AND proname = 'set_id'
             AND given[1] <> '') AS m (relid, attnum)
    JOIN pg_class AS c ON c.oid = m.relid JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = m.attnum
   WHERE relkind IN ('r', 'p', 'f', 'v') AND NOT pg_is_other_temp_schema(relnamespace)
$$;
COMMENT ON FUNCTION snowflake.filled_columns() IS
  'Internal: for minting_columns(): the columns whose default mints, of whatever type and of views, and whether it '
  'is of a table and bigint or a domain over it';
