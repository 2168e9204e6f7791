-- Finds objects that create_shards() cannot copy.

CREATE FUNCTION snowflake.odd_objects(template regnamespace)
  RETURNS TABLE (classid oid, objid oid, why text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  tab CONSTANT oid[] := ARRAY(SELECT oid FROM pg_class WHERE relnamespace = template AND relkind = 'r');
BEGIN
  RETURN QUERY
  SELECT classid, objid, 'is not an ordinary table, and is not copied'
    FROM pg_depend AS d
   WHERE refclassid = 'pg_namespace'::regclass AND refobjid = template AND deptype IN ('n', 'a')
     AND classid <> 'pg_statistic_ext'::regclass
     AND NOT (classid = 'pg_class'::regclass AND objid = ANY (tab))
     -- Members of an extension, and sequences of identity columns, need no copy. CREATE EXTENSION creates the members
     -- of an extension, and CREATE TABLE creates the sequences of identity columns.
     AND NOT EXISTS (SELECT FROM pg_depend AS m WHERE m.classid = d.classid AND m.objid = d.objid
                                                  AND m.objsubid = 0 AND m.deptype IN ('e', 'i'));
END
$$;
COMMENT ON FUNCTION snowflake.odd_objects(regnamespace) IS
  'Internal: for uncopyable(): returns the objects of a template that are not ordinary tables';

CREATE FUNCTION snowflake.uses_of_template(template regnamespace)
  RETURNS TABLE (classid oid, objid oid, why text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  tab CONSTANT oid[] := ARRAY(SELECT oid FROM pg_class WHERE relnamespace = template AND relkind = 'r');
  schema CONSTANT name := (SELECT nspname FROM pg_namespace WHERE oid = template);
BEGIN
  RETURN QUERY
  WITH part (classid, objid) AS (
    SELECT 'pg_class'::regclass::oid, unnest(tab)
    UNION ALL
    SELECT 'pg_class'::regclass, indexrelid FROM pg_index WHERE indrelid = ANY (tab)
    UNION ALL
    SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid = ANY (tab)
    UNION ALL
    SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE conrelid = ANY (tab)
    UNION ALL
    SELECT 'pg_trigger'::regclass, oid FROM pg_trigger WHERE tgrelid = ANY (tab) AND NOT tgisinternal
  )
  SELECT p.classid, p.objid, format('uses %s, which belongs to the template',
                                    pg_describe_object(o.classid, o.objid, 0))
    FROM part AS p JOIN pg_depend AS d ON d.classid = p.classid AND d.objid = p.objid AND d.deptype = 'n'
    JOIN snowflake.odd_objects(template) AS o ON d.refclassid = o.classid AND d.refobjid = o.objid
  UNION ALL
  SELECT 'pg_class'::regclass::oid, a.attrelid, format('has column %I with the row type of a template table', attname)
    FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = atttypid
    LEFT JOIN pg_type AS e ON e.oid = t.typelem
   WHERE attrelid = ANY (tab) AND attnum > 0
     AND (t.typrelid = ANY (tab) OR e.typrelid = ANY (tab))
  UNION ALL
  SELECT 'pg_trigger'::regclass, oid, 'contains the name of the template, or of another table'
    FROM pg_trigger
   WHERE tgrelid = ANY (tab) AND NOT tgisinternal
     AND (tgconstrrelid <> 0
          OR strpos(encode(tgargs, 'escape'), schema || '.') > 0
          OR strpos(encode(tgargs, 'escape'), quote_ident(schema) || '.') > 0
          OR encode(tgargs, 'escape') ~ ('(^|\\000)' || regexp_replace(schema, '(\W)', '\\\1', 'g') || '\\000'));
END
$$;
COMMENT ON FUNCTION snowflake.uses_of_template(regnamespace) IS
  'Internal: for uncopyable(): returns the parts of tables whose copies would still refer to objects of the template';

CREATE FUNCTION snowflake.shard_defaults(template regnamespace)
  RETURNS TABLE (classid oid, objid oid, why text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  tab CONSTANT oid[] := ARRAY(SELECT oid FROM pg_class WHERE relnamespace = template AND relkind = 'r');
  schema CONSTANT name := (SELECT nspname FROM pg_namespace WHERE oid = template);
BEGIN
  RETURN QUERY
  SELECT 'pg_attrdef'::regclass::oid, d.oid,
         CASE named WHEN 'mints' THEN 'mints an id in an expression other than snowflake.next_id(N)'
                    ELSE 'compares a shard number with a constant' END
    FROM pg_attrdef AS d, snowflake.names_shard('pg_attrdef', d.oid, adbin::text) AS named
   WHERE adrelid = ANY (tab)
     AND (named = 'compares' OR named = 'mints'
          AND snowflake.with_shard(snowflake.definition_of('pg_attrdef', d.oid, schema), 0) IS NULL)
  UNION ALL
  SELECT 'pg_attrdef'::regclass, d.oid, format('calls %s, which may mint for any shard', p.oid::regprocedure)
    FROM pg_attrdef AS d JOIN pg_attribute AS a ON attrelid = adrelid AND attnum = adnum
    JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
     AND u.refclassid = 'pg_proc'::regclass
    JOIN pg_proc AS p ON p.oid = u.refobjid
   WHERE adrelid = ANY (tab) AND format_type(atttypid, -1) = ANY ('{bigint,numeric,text}')
     AND provolatile = 'v'
     AND NOT EXISTS (SELECT FROM pg_depend AS m
                      WHERE m.classid = 'pg_proc'::regclass AND m.objid = p.oid AND m.deptype = 'e');
END
$$;
COMMENT ON FUNCTION snowflake.shard_defaults(regnamespace) IS
  'Internal: for uncopyable(): returns the column defaults of a template that create_shards() cannot adapt to '
  'another shard';

CREATE FUNCTION snowflake.shard_domains(template regnamespace)
  RETURNS TABLE (classid oid, objid oid, why text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  tab CONSTANT oid[] := ARRAY(SELECT oid FROM pg_class WHERE relnamespace = template AND relkind = 'r');
BEGIN
  RETURN QUERY
  SELECT 'pg_class'::regclass::oid, c.attrelid,
         format('has column %I of type %s, which %s', c.attname, c.type::regtype, c.named)
    FROM (WITH RECURSIVE chain (attrelid, attname, type) AS (
            SELECT attrelid, attname, atttypid FROM pg_attribute
             WHERE attrelid = ANY (tab) AND attnum > 0 AND NOT attisdropped
            UNION
            SELECT attrelid, attname, typbasetype FROM chain JOIN pg_type ON oid = type WHERE typtype = 'd')
          SELECT attrelid, attname, type,
                 CASE WHEN snowflake.names_shard('pg_type', type, typdefaultbin::text) IS NOT NULL
                      THEN 'mints an id in its default' ELSE 'compares a shard number with a constant' END AS named
            FROM chain JOIN pg_type AS t ON t.oid = type
           WHERE typtype = 'd' AND (snowflake.names_shard('pg_type', type, typdefaultbin::text) IS NOT NULL
             OR EXISTS (SELECT FROM pg_constraint AS k WHERE contypid = type
                           AND snowflake.names_shard('pg_constraint', k.oid, conbin::text) IS NOT NULL))) AS c;
END
$$;
COMMENT ON FUNCTION snowflake.shard_domains(regnamespace) IS
  'Internal: for uncopyable(): returns the columns whose domain mints an id or compares a shard number with a constant';

CREATE FUNCTION snowflake.shard_expressions(template regnamespace)
  RETURNS TABLE (classid oid, objid oid, why text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  tab CONSTANT oid[] := ARRAY(SELECT oid FROM pg_class WHERE relnamespace = template AND relkind = 'r');
  schema CONSTANT name := (SELECT nspname FROM pg_namespace WHERE oid = template);
BEGIN
  RETURN QUERY
  SELECT 'pg_constraint'::regclass::oid, k.oid,
         'compares a shard number in a form other than CHECK (snowflake.shard_of(column) = N)'
    FROM pg_constraint AS k
   WHERE conrelid = ANY (tab) AND snowflake.names_shard('pg_constraint', k.oid, conbin::text) IS NOT NULL
     AND snowflake.with_shard(snowflake.definition_of('pg_constraint', k.oid, schema), 0) IS NULL
  UNION ALL
  SELECT 'pg_class'::regclass, indexrelid, 'compares a shard number with a constant'
    FROM pg_index
   WHERE indrelid = ANY (tab)
     AND snowflake.names_shard('pg_class', indexrelid, concat(indexprs, indpred)) IS NOT NULL
  UNION ALL
  SELECT 'pg_statistic_ext'::regclass, oid, 'compares a shard number with a constant'
    FROM pg_statistic_ext
   WHERE stxrelid = ANY (tab)
     AND snowflake.names_shard('pg_statistic_ext', oid, stxexprs::text) IS NOT NULL
  UNION ALL
  SELECT 'pg_trigger'::regclass, t.oid,
         CASE WHEN prosrc ~ '\mnext_id(s|_in)?\s*\(' THEN format('calls %s, which mints an id', p.oid::regprocedure)
              ELSE 'compares a shard number with a constant' END
    FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = tgfoid
   WHERE tgrelid = ANY (tab) AND NOT tgisinternal
     AND (prosrc ~ '\mnext_id(s|_in)?\s*\(' OR snowflake.names_shard('pg_trigger', t.oid, tgqual::text) IS NOT NULL);
END
$$;
COMMENT ON FUNCTION snowflake.shard_expressions(regnamespace) IS
  'Internal: for uncopyable(): returns the constraints, indexes, statistics and triggers that mint an id or compare a '
  'shard number with a constant';

CREATE FUNCTION snowflake.odd_tables(template regnamespace)
  RETURNS TABLE (classid oid, objid oid, why text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  tab CONSTANT oid[] := ARRAY(SELECT oid FROM pg_class WHERE relnamespace = template AND relkind = 'r');
BEGIN
  RETURN QUERY
  SELECT 'pg_rewrite'::regclass::oid, oid, 'is not copied' FROM pg_rewrite WHERE ev_class = ANY (tab)
  UNION ALL
  SELECT 'pg_policy'::regclass, oid, 'is not copied' FROM pg_policy WHERE polrelid = ANY (tab)
  UNION ALL
  SELECT 'pg_class'::regclass, oid, r
    FROM pg_class, LATERAL (VALUES
      (CASE WHEN relrowsecurity OR relforcerowsecurity THEN 'has row security' END),
      (CASE WHEN reloftype <> 0 THEN 'is a typed table (OF a composite type)' END),
      (CASE WHEN reltablespace <> 0 THEN 'has its own tablespace' END),
      (CASE WHEN relispartition THEN 'is a partition'
            WHEN EXISTS (SELECT FROM pg_inherits WHERE oid IN (inhrelid, inhparent)) THEN 'inherits' END)
    ) AS v (r) WHERE oid = ANY (tab) AND r IS NOT NULL;
END
$$;
COMMENT ON FUNCTION snowflake.odd_tables(regnamespace) IS
  'Internal: for uncopyable(): returns the properties of tables that create_shards() does not copy';

CREATE FUNCTION snowflake.uncopyable(template regnamespace)
  RETURNS TABLE (object text, reason text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY
  SELECT pg_describe_object(f.classid, f.objid, 0), f.why
    FROM (SELECT * FROM snowflake.odd_objects(template)
          UNION ALL SELECT * FROM snowflake.uses_of_template(template)
          UNION ALL SELECT * FROM snowflake.shard_defaults(template)
          UNION ALL SELECT * FROM snowflake.shard_domains(template)
          UNION ALL SELECT * FROM snowflake.shard_expressions(template)
          UNION ALL SELECT * FROM snowflake.odd_tables(template)) AS f
   ORDER BY 1, 2;
END
$$;
COMMENT ON FUNCTION snowflake.uncopyable(regnamespace) IS
  'Returns the parts of a template schema that create_shards() cannot copy, with the reasons';
