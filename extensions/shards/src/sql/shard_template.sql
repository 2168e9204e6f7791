-- Creates a schema for each shard of a server, as a copy of a template schema. The function definition_of() sets
-- search_path to the template's schema, so that PostgreSQL prints the names of the template's objects without a schema.
-- The function create_shards() runs the printed definitions with the shard's schema before the template's schema in
-- search_path. The names in the definitions then refer to objects of the shard.

CREATE FUNCTION snowflake.definition_of(catalogue regclass, object oid, schema name) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kind CONSTANT text := catalogue::text;
  expression pg_node_tree;
  relation oid;
BEGIN
  IF kind = 'pg_attrdef' THEN
    SELECT adbin, adrelid INTO expression, relation FROM pg_attrdef WHERE oid = object;
  END IF;
  PERFORM set_config('search_path', quote_ident(schema) || ', pg_temp', true);
  CASE kind
    WHEN 'pg_attrdef' THEN RETURN pg_catalog.pg_get_expr(expression, relation, true);
    WHEN 'pg_constraint' THEN RETURN pg_catalog.pg_get_constraintdef(object, true);
    WHEN 'pg_class' THEN RETURN pg_catalog.pg_get_indexdef(object, 0, true);
    WHEN 'pg_trigger' THEN RETURN pg_catalog.pg_get_triggerdef(object, true);
    WHEN 'pg_type' THEN RETURN pg_catalog.format_type(object, -1);
    WHEN 'pg_statistic_ext' THEN RETURN pg_catalog.pg_get_statisticsobjdef(object);
  END CASE;
END
$$;
COMMENT ON FUNCTION snowflake.definition_of(regclass, oid, name) IS
  'Internal: for create_shards(): returns the definition of an object, as PostgreSQL prints it if search_path is a '
  'given schema';

-- create_shards() adapts a default or constraint to its shard only if it has the form next_id(N) or CHECK
-- (shard_of(column) = N). If create_shards() cannot adapt a default or constraint that refers to a shard, it raises an
-- error, or a warning with partial => true. To detect an expression that refers to a shard, names_shard() searches
-- pg_depend for the snowflake functions that the expression calls.

CREATE FUNCTION snowflake.with_shard(definition text, shard integer) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN definition ~ '^snowflake\.next_id\(\d+\)$' THEN format('snowflake.next_id(%s)', shard)
              WHEN definition
                ~ '^CHECK \(snowflake\.shard_of\(("([^"]|"")+"|[a-z_][a-z0-9_]*)\) = \d+\)( NO INHERIT| NOT VALID)*$'
              THEN regexp_replace(definition, ' = \d+\)(?=[A-Z ]*$)', format(' = %s)', shard))
         END
$$;
COMMENT ON FUNCTION snowflake.with_shard(text, integer) IS
  'Internal: for create_shards(): converts the default next_id(N), or the constraint CHECK (shard_of(column) = N), '
  'to another shard. Returns null for a default or constraint in any other form';

CREATE FUNCTION snowflake.names_shard(catalogue regclass, object oid, expression text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
           WHEN bool_or(proname <> ALL ('{time_of,region_of,sequence_of,created_within,min_id,max_id,id_range,
                                          last_id_before,to_base62,from_base62,to_base32,from_base32,to_uuid,from_uuid,
                                          to_ulid,from_ulid,set_id,shard_of,shard_for,schema_of,has_id,decode}'))
             THEN 'mints'
           WHEN bool_or(proname = ANY ('{shard_of,shard_for,schema_of,has_id,decode}')) AND expression ~ '\{CONST '
             THEN 'compares'
         END
    FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.refobjid
   WHERE d.classid = catalogue AND d.objid = object AND d.refclassid = 'pg_proc'::regclass
     AND p.pronamespace = to_regnamespace('snowflake')
$$;
COMMENT ON FUNCTION snowflake.names_shard(regclass, oid, text) IS
  'Internal: for create_shards(): returns whether an expression (as a node tree) mints an id, or compares a shard '
  'with a constant. Returns null for an expression that neither mints an id nor compares a shard with a constant';

CREATE FUNCTION snowflake.column_value(source regclass, number smallint, shard integer) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  schema CONSTANT name := nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
                           WHERE c.oid = source;
BEGIN
  RETURN (
    WITH identity AS (
      SELECT s.* FROM pg_depend JOIN pg_sequence AS s ON seqrelid = objid
       WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = source
         AND refobjsubid = number AND deptype = 'i')
    SELECT CASE WHEN attgenerated <> ''
                THEN format('GENERATED ALWAYS AS (%s) %s',
                            snowflake.definition_of('pg_attrdef', d.oid, schema),
                            CASE attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL' END)
                WHEN snowflake.names_shard('pg_attrdef', d.oid, adbin::text) = 'mints'
                THEN 'DEFAULT ' || snowflake.with_shard(snowflake.definition_of('pg_attrdef', d.oid, schema), shard)
                WHEN d.oid IS NOT NULL
                THEN 'DEFAULT ' || snowflake.definition_of('pg_attrdef', d.oid, schema)
                WHEN attidentity <> ''
                THEN format('GENERATED %s AS IDENTITY (START %s INCREMENT %s MINVALUE %s MAXVALUE %s CACHE %s%s)',
                            CASE attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
                            seqstart, seqincrement, seqmin, seqmax, seqcache,
                            CASE WHEN seqcycle THEN ' CYCLE' ELSE '' END)
           END
      FROM pg_attribute LEFT JOIN pg_attrdef AS d ON adrelid = source AND adnum = number LEFT JOIN identity ON true
     WHERE attrelid = source AND attnum = number);
END
$$;
COMMENT ON FUNCTION snowflake.column_value(regclass, smallint, integer) IS
  'Internal: for create_shards(): returns the DEFAULT, GENERATED or IDENTITY clause of a column, or null if the '
  'column has no such clause';

CREATE FUNCTION snowflake.columns_of(source regclass, shard integer) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN (
    SELECT string_agg(concat_ws(' ', quote_ident(attname), format_type(atttypid, atttypmod),
             CASE WHEN attcollation <> typcollation THEN 'COLLATE ' || attcollation::regcollation END,
             snowflake.column_value(source, attnum, shard),
             -- From PostgreSQL 18 on, NOT NULL is a constraint with a name, which COMMENT ON can use.
             (SELECT format('CONSTRAINT %I', conname) FROM pg_constraint
               WHERE conrelid = source AND contype = 'n' AND conkey[1] = attnum
                 AND conname <> format('%s_%s_not_null', relname, attname)),
             CASE WHEN attnotnull THEN 'NOT NULL' END), ', ' ORDER BY attnum)
      FROM pg_attribute JOIN pg_type AS t ON t.oid = atttypid JOIN pg_class AS c ON c.oid = attrelid
     WHERE attrelid = source AND attnum > 0 AND NOT attisdropped);
END
$$;
COMMENT ON FUNCTION snowflake.columns_of(regclass, integer) IS
  'Internal: for create_shards(): returns the columns of a table, as CREATE TABLE lists them';

CREATE FUNCTION snowflake.table_statements(source regclass, shard integer)
  RETURNS TABLE (step integer, statement text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = source;
  this CONSTANT text := quote_ident(class.relname);
BEGIN
  RETURN QUERY
  WITH settings AS (
    SELECT option FROM unnest(class.reloptions) AS option
    UNION ALL
    SELECT 'toast.' || option FROM pg_class AS toast, unnest(toast.reloptions) AS option
     WHERE toast.oid = class.reltoastrelid
  )
  SELECT 0, format('CREATE %sTABLE %s (%s) USING %I',
                   CASE class.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END, this,
                   snowflake.columns_of(source, shard), amname)
    FROM pg_am WHERE oid = class.relam
  UNION ALL
  SELECT 1, format('ALTER TABLE %s SET (%s)', this,
                   string_agg(format('%s = %L', split_part(option, '=', 1),
                                     substr(option, strpos(option, '=') + 1)), ', ' ORDER BY option))
    FROM settings HAVING count(*) > 0
  UNION ALL
  SELECT 1, format('ALTER TABLE %s ALTER COLUMN %I SET %s', this, attname, change)
    FROM pg_attribute JOIN pg_type AS t ON t.oid = atttypid, LATERAL (VALUES
      (CASE WHEN attstorage <> typstorage THEN 'STORAGE ' || CASE attstorage
         WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END),
      (CASE attcompression WHEN 'p' THEN 'COMPRESSION pglz' WHEN 'l' THEN 'COMPRESSION lz4' END),
      (CASE WHEN attstattarget >= 0 THEN 'STATISTICS ' || attstattarget END),
      -- Copies only n_distinct, because recent minor versions of PostgreSQL store internal options in attoptions, too.
      ((SELECT '(' || string_agg(option, ', ' ORDER BY option) || ')'
          FROM unnest(attoptions) AS option WHERE option LIKE 'n\_distinct%'))
    ) AS changes (change)
   WHERE attrelid = source AND attnum > 0 AND NOT attisdropped AND change IS NOT NULL;
END
$$;
COMMENT ON FUNCTION snowflake.table_statements(regclass, integer) IS
  'Internal: for create_shards(): returns the statements that create a table with its columns, and set the storage of '
  'the columns';

CREATE FUNCTION snowflake.constraint_statements(source regclass, shard integer)
  RETURNS TABLE (step integer, statement text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = source;
  this CONSTANT text := quote_ident(class.relname);
  schema CONSTANT name := nspname FROM pg_namespace WHERE oid = class.relnamespace;
BEGIN
  RETURN QUERY
  SELECT CASE contype WHEN 'f' THEN 3 ELSE 1 END,
         format('ALTER TABLE %s ADD CONSTRAINT %I %s', this, conname,
                coalesce(CASE WHEN snowflake.names_shard('pg_constraint', oid, conbin::text) = 'compares'
                              THEN snowflake.with_shard(definition, shard) END, definition))
    FROM pg_constraint, snowflake.definition_of('pg_constraint', oid, schema) AS definition
   WHERE conrelid = source AND contype IN ('c', 'p', 'u', 'x', 'f')
  UNION ALL
  SELECT 2, format('ALTER INDEX %I SET (%s)', relname,
                   (SELECT string_agg(format('%s = %L', split_part(option, '=', 1),
                                             substr(option, strpos(option, '=') + 1)), ', ' ORDER BY option)
                      FROM unnest(i.reloptions) AS option))
    FROM pg_constraint JOIN pg_class AS i ON i.oid = conindid
   WHERE conrelid = source AND contype IN ('p', 'u', 'x') AND i.reloptions IS NOT NULL
  UNION ALL
  SELECT 2, snowflake.definition_of('pg_class', indexrelid, schema)
    FROM pg_index WHERE indrelid = source AND NOT EXISTS
      (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))
  UNION ALL
  SELECT 2, regexp_replace(snowflake.definition_of('pg_statistic_ext', oid, schema),
                           '^CREATE STATISTICS ("([^"]|"")+"|[^".]+)\.', 'CREATE STATISTICS ')
    FROM pg_statistic_ext WHERE stxrelid = source;
END
$$;
COMMENT ON FUNCTION snowflake.constraint_statements(regclass, integer) IS
  'Internal: for create_shards(): returns the statements that create the constraints, indexes and statistics of a '
  'table';

CREATE FUNCTION snowflake.trigger_statements(source regclass)
  RETURNS TABLE (step integer, statement text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = source;
  this CONSTANT text := quote_ident(class.relname);
  schema CONSTANT name := nspname FROM pg_namespace WHERE oid = class.relnamespace;
BEGIN
  RETURN QUERY
  SELECT 5, format('ALTER TABLE %s CLUSTER ON %I', this, relname)
    FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = source AND indisclustered
  UNION ALL
  SELECT 5, format('ALTER TABLE %s REPLICA IDENTITY %s', this,
                   CASE class.relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING'
                   ELSE 'USING INDEX ' || (SELECT quote_ident(relname) FROM pg_index JOIN pg_class ON oid = indexrelid
                                            WHERE indrelid = source AND indisreplident) END)
   WHERE class.relreplident <> 'd'
  UNION ALL
  SELECT 4, snowflake.definition_of('pg_trigger', oid, schema)
    FROM pg_trigger WHERE tgrelid = source AND NOT tgisinternal
  UNION ALL
  SELECT 5, format('ALTER TABLE %s %s TRIGGER %I', this,
                   CASE tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END,
                   tgname)
    FROM pg_trigger WHERE tgrelid = source AND NOT tgisinternal AND tgenabled <> 'O';
END
$$;
COMMENT ON FUNCTION snowflake.trigger_statements(regclass) IS
  'Internal: for create_shards(): returns the statements that create, enable and disable the triggers of a table, '
  'and set the clustered index and the replica identity';

CREATE FUNCTION snowflake.comment_statements(source regclass)
  RETURNS TABLE (step integer, statement text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = source;
  this CONSTANT text := quote_ident(class.relname);
BEGIN
  RETURN QUERY
  SELECT 5, format('COMMENT ON %s IS %L', what, text) FROM (
    SELECT 'TABLE ' || this, obj_description(source, 'pg_class')
    UNION ALL
    SELECT format('COLUMN %s.%I', this, attname), col_description(source, attnum)
      FROM pg_attribute WHERE attrelid = source AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT format('CONSTRAINT %I ON %s', conname, this), obj_description(oid, 'pg_constraint')
      FROM pg_constraint WHERE conrelid = source
    UNION ALL
    SELECT 'INDEX ' || quote_ident(relname), obj_description(indexrelid, 'pg_class')
      FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = source
    UNION ALL
    SELECT format('TRIGGER %I ON %s', tgname, this), obj_description(oid, 'pg_trigger')
      FROM pg_trigger WHERE tgrelid = source AND NOT tgisinternal
    UNION ALL
    SELECT 'STATISTICS ' || quote_ident(stxname), obj_description(oid, 'pg_statistic_ext')
      FROM pg_statistic_ext WHERE stxrelid = source) AS commented (what, text)
   WHERE text IS NOT NULL;
END
$$;
COMMENT ON FUNCTION snowflake.comment_statements(regclass) IS
  'Internal: for create_shards(): returns the statements that set the comments of a table, its columns and its other '
  'parts';

CREATE FUNCTION snowflake.privilege_statements(source regclass)
  RETURNS TABLE (step integer, statement text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = source;
  this CONSTANT text := quote_ident(class.relname);
BEGIN
  RETURN QUERY
  WITH granted AS (
    SELECT this AS target, '' AS col, acl.* FROM aclexplode(class.relacl) AS acl
    UNION ALL
    SELECT this, format(' (%I)', attname), acl.* FROM pg_attribute, aclexplode(attacl) AS acl
     WHERE attrelid = source AND attnum > 0 AND NOT attisdropped
  )
  SELECT 7, format('REVOKE ALL ON TABLE %s FROM %s', this, class.relowner::regrole) WHERE class.relacl IS NOT NULL
  UNION ALL
  SELECT 8, format('GRANT %s%s ON TABLE %s TO %s%s', privilege_type, col, target,
                   CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                   CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
    FROM granted
  UNION ALL
  SELECT 6, format('ALTER TABLE %s OWNER TO %s', this, class.relowner::regrole);
END
$$;
COMMENT ON FUNCTION snowflake.privilege_statements(regclass) IS
  'Internal: for create_shards(): returns the statements that set the owner and the privileges of a table';

CREATE FUNCTION snowflake.statements_of(source regclass, shard integer)
  RETURNS TABLE (step integer, statement text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY
  SELECT * FROM snowflake.table_statements(source, shard)
  UNION ALL SELECT * FROM snowflake.constraint_statements(source, shard)
  UNION ALL SELECT * FROM snowflake.trigger_statements(source)
  UNION ALL SELECT * FROM snowflake.comment_statements(source)
  UNION ALL SELECT * FROM snowflake.privilege_statements(source);
END
$$;
COMMENT ON FUNCTION snowflake.statements_of(regclass, integer) IS
  'Internal: for create_shards(): returns the statements that create a copy of a table for a shard, in another '
  'schema';
