-- alter_shards() runs one statement in the schema of every shard. A statement of alter_shards() names tables without a
-- schema, and runs with only the shard's schema in search_path. A statement of alter_shards() does not find a table
-- that exists only in another schema.

CREATE FUNCTION snowflake.schemas_of_shards(shards int4range, prefix text, OUT shard integer, OUT schema name)
  RETURNS SETOF record
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  missing text;
  present int4multirange;
  owners text;
BEGIN
  PERFORM snowflake.check_shard_range(shards);
  SELECT string_agg(prefix || s, ', ' ORDER BY s) FILTER (WHERE oid IS NULL),
         range_agg(int4range(s, s + 1)) FILTER (WHERE oid IS NOT NULL) INTO missing, present
    FROM generate_series(lower(shards), upper(shards) - 1) AS s LEFT JOIN pg_namespace ON nspname = prefix || s;
  IF missing IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
      MESSAGE = format('some of the shards %s have no schema', shards),
      DETAIL = format('These schemas do not exist: %s.',
                      CASE WHEN length(missing) > 200 THEN left(missing, 200) || ' ...' ELSE missing END),
      HINT = format('Call alter_shards() separately for each range of schemas that exist: %s. '
                    'Or create the missing schemas with create_shards().',
                    coalesce(present, '{}'));
  END IF;
  -- If the schemas of the shards had several owners, a statement of alter_shards() could call one owner's function with
  -- another owner's rights.
  SELECT string_agg(DISTINCT nspowner::regrole::text, ', ') INTO owners
    FROM generate_series(lower(shards), upper(shards) - 1) AS s JOIN pg_namespace ON nspname = prefix || s
  HAVING count(DISTINCT nspowner) > 1;
  IF owners IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('the schemas of shards %s have several owners', shards),
      DETAIL = format('The owners are %s. '
                      'A statement of alter_shards() could call a function of one schema owner with the rights of '
                      'another schema owner.', owners),
      HINT = 'Give these schemas to one role, or pass shards whose schemas have one owner.';
  END IF;
  RETURN QUERY
    SELECT s, nspname FROM generate_series(lower(shards), upper(shards) - 1) AS s
      JOIN pg_namespace ON nspname = prefix || s ORDER BY s;
END
$$;
COMMENT ON FUNCTION snowflake.schemas_of_shards(int4range, text) IS
  'Internal: for alter_shards(): returns the schemas of a range of shards. Raises an error if a schema is missing, or '
  'if the schemas have several owners';

-- check_shard_statement() does not check the functions that the statement calls, for example in a default. The caller
-- of alter_shards() is responsible for the effects of functions that the statement calls.
CREATE FUNCTION snowflake.check_shard_statement(statement text) RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_check_shard_statement'
  LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.check_shard_statement(text) IS
  'Internal: for alter_shards(): raises an error if a statement names a schema, or could change objects that the '
  'statement does not name';

CREATE FUNCTION snowflake.owner_of_objects(schema name) RETURNS oid
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owners CONSTANT oid[] := ARRAY(
    SELECT DISTINCT r.oid
      FROM pg_namespace AS n
      LEFT JOIN pg_class AS c ON relnamespace = n.oid AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
      JOIN pg_roles AS r ON r.oid IN (nspowner, relowner) WHERE nspname = schema AND NOT rolsuper);
BEGIN
  IF cardinality(owners) > 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the objects of this schema have several owners',
      DETAIL = format('The owners are %s. The statement would run code of one owner with the rights of another '
                      'owner.',
                      (SELECT string_agg(o::regrole::text, ', ' ORDER BY o::regrole::text) FROM unnest(owners) AS o)),
      HINT = 'Give all objects of the schema to one role, or run the statement without alter_shards().';
  END IF;
  RETURN coalesce(owners[1], (SELECT nspowner FROM pg_namespace WHERE nspname = schema));
END
$$;
COMMENT ON FUNCTION snowflake.owner_of_objects(name) IS
  'Internal: for alter_shards(): returns the role that owns the objects of a schema, and ignores superusers if '
  'another role owns some objects. Raises an error if several roles that are not superusers own objects of the schema';

CREATE FUNCTION snowflake.refuse_effects_elsewhere(schema name, before text[], others oid[]) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  elsewhere text;
BEGIN
  -- A change of a table also changes its partitions and child tables in other schemas, so all tables that the statement
  -- has locked are checked.
  SELECT string_agg(DISTINCT c.oid::regclass::text, ', ') INTO elsewhere
    FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation JOIN pg_namespace AS n ON n.oid = relnamespace
   WHERE l.pid = pg_backend_pid() AND l.relation || l.mode <> ALL (before)
     AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                    'AccessExclusiveLock')
     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND nspname <> schema AND nspname NOT IN ('pg_toast', 'pg_catalog');
  IF elsewhere IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
      MESSAGE = format('the statement alters %s', elsewhere),
      DETAIL = format('The statement may change only tables of schema %I.', schema),
      HINT = 'Name the tables without their schema.';
  END IF;
  IF EXISTS (SELECT FROM unnest(others) AS o WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = o)) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
      MESSAGE = 'the statement drops objects outside of the schema',
      DETAIL = format(
        'The statement may drop only tables of schema %I, but no temporary tables and no partitions in other schemas.',
                      schema),
      HINT = 'Drop the other objects with separate statements, and write their names with a schema.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_effects_elsewhere(name, text[], oid[]) IS
  'Internal: for alter_shards(): raises an error if the statement has altered or dropped objects outside of the '
  'shard''s schema';

CREATE FUNCTION snowflake.refuse_other_defaults(schema name, shard integer) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  other text;
BEGIN
  SELECT string_agg(format('%s.%I', adrelid::regclass, attname), ', ') INTO other
    FROM pg_attrdef AS d JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
    JOIN pg_class AS c ON c.oid = adrelid
   WHERE relnamespace = to_regnamespace(quote_ident(schema))
     AND snowflake.names_shard('pg_attrdef', d.oid, adbin::text) = 'mints'
     AND snowflake.with_shard(pg_get_expr(adbin, adrelid), shard) <> pg_get_expr(adbin, adrelid);
  IF other IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_column_definition',
      MESSAGE = format('the default of column %s mints ids of another shard', other),
      DETAIL = format('The schema belongs to shard %s.', shard),
      HINT = 'Create the table in the template schema, and call create_shards().';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_other_defaults(name, integer) IS
  'Internal: for alter_shards(): raises an error if a column default in the schema of a shard mints ids of another '
  'shard';

CREATE FUNCTION snowflake.alter_shard(statement text, schema name, shard integer, rest text) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  state text;
  message text;
  detail text;
  advice text;
  before text[];
  owner oid;
  -- A DROP of a table may also drop temporary tables, and partitions in other schemas.
  others CONSTANT oid[] := ARRAY(
    SELECT c.oid FROM pg_class AS c WHERE relnamespace = pg_my_temp_schema()
    UNION ALL
    SELECT t.relid FROM pg_class AS c, pg_partition_tree(c.oid) AS t JOIN pg_class AS p ON p.oid = t.relid
     WHERE c.relkind = 'p' AND c.relnamespace = to_regnamespace(quote_ident(schema))
       AND p.relnamespace <> c.relnamespace);
  lock_limit CONSTANT text := current_setting('lock_timeout');
BEGIN
  PERFORM snowflake.refuse_creators(quote_ident(schema)::regnamespace);
  owner := snowflake.owner_of_objects(schema);
  before := ARRAY(SELECT l.relation || l.mode FROM pg_locks AS l
                   WHERE l.pid = pg_backend_pid() AND l.relation IS NOT NULL);
  -- Limits the wait for a lock, because later sessions wait behind the lock request of the statement.
  PERFORM set_config('lock_timeout', CASE lock_limit WHEN '0' THEN '3s' ELSE lock_limit END, true);
  PERFORM snowflake.run_as(owner, statement, concat_ws(', ', quote_ident(schema), 'pg_temp'));
  PERFORM set_config('lock_timeout', lock_limit, true);
  PERFORM snowflake.refuse_effects_elsewhere(schema, before, others);
  PERFORM snowflake.refuse_other_defaults(schema, shard);
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
    advice = PG_EXCEPTION_HINT;
  RAISE EXCEPTION USING ERRCODE = state,
    MESSAGE = format('in schema %I: %s', schema, message),
    DETAIL = concat_ws(' ', nullif(detail, ''), format('Nothing has changed in schema %I.', schema)),
    HINT = concat_ws(' ', nullif(advice, ''),
                     CASE WHEN state = '55P03'
                          THEN 'Other sessions hold locks on the table. To wait longer, set "lock_timeout".' END,
                     rest);
END
$$;
COMMENT ON FUNCTION snowflake.alter_shard(text, name, integer, text) IS
  'Internal: for alter_shards(): runs a statement with a schema as search_path. The errors contain the name of the '
  'schema and the remaining shards';

-- A procedure with a SET clause cannot commit, so alter_shards() has no SET clause and qualifies every name with its
-- schema.
CREATE PROCEDURE snowflake.alter_shards(statement text, shards int4range, prefix text DEFAULT 'shard_',
                                        commit_each boolean DEFAULT true)
  LANGUAGE plpgsql AS $$
DECLARE
  advice pg_catalog.text;
  targets pg_catalog.name[];
  numbers pg_catalog.int4[];
BEGIN
  PERFORM snowflake.refuse_null('alter_shards()', statement, shards::pg_catalog.text, prefix,
                                commit_each::pg_catalog.text);
  PERFORM snowflake.check_shard_statement(statement);
  SELECT pg_catalog.array_agg(s.schema), pg_catalog.array_agg(s.shard) INTO targets, numbers
    FROM snowflake.schemas_of_shards(shards, prefix) AS s;
  FOR place IN 1 .. pg_catalog.cardinality(targets) LOOP
    advice := CASE WHEN NOT commit_each THEN 'Correct the cause, and repeat the call.'
                   ELSE pg_catalog.format('Correct the cause, and continue with shards => ''[%s,%s)''.',
                                          numbers[place], pg_catalog.upper(shards)) END;
    PERFORM snowflake.alter_shard(statement, targets[place], numbers[place], advice);
    IF commit_each THEN
      COMMIT;
    END IF;
    RAISE NOTICE 'the statement has been run in schema %', pg_catalog.quote_ident(targets[place]::pg_catalog.text);
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake.alter_shards(text, int4range, text, boolean) IS
  'Runs a DDL statement in the schemas of a range of shards that create_shards() created, with the schema as '
  'search_path. The procedure commits after each schema. The procedure accepts CREATE, ALTER, DROP and COMMENT ON for '
  'tables, indexes, views, triggers and policies. In the statement, write names without a schema. The procedure waits '
  'up to 3 s for each lock, or up to lock_timeout if lock_timeout is not 0. If a schema fails, the error contains the '
  'range of the remaining shards';
