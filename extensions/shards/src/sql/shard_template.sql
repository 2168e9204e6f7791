-- Routing within a server: a schema for each shard, made from a template. Definitions are printed while search_path
-- contains only the template's schema, so they name its objects without a schema. When search_path contains only the
-- shard's schema, the same text refers to the objects there.

CREATE FUNCTION snowflake.definition_of(catalogue regclass, object oid, schema name) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
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
  'Internal: for create_shards(): how an object is defined, as seen from a schema';

-- An expression that refers to a shard is adapted only in two exact forms, and otherwise not copied. The dependencies
-- of an expression decide this, never its text.

CREATE FUNCTION snowflake.with_shard(definition text, shard integer) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE WHEN definition ~ '^snowflake\.next_id\(\d+\)$' THEN format('snowflake.next_id(%s)', shard)
              WHEN definition
                ~ '^CHECK \(snowflake\.shard_of\(("([^"]|"")+"|[a-z_][a-z0-9_]*)\) = \d+\)( NO INHERIT| NOT VALID)*$'
              THEN regexp_replace(definition, ' = \d+\)(?=[A-Z ]*$)', format(' = %s)', shard))
         END
$$;
COMMENT ON FUNCTION snowflake.with_shard(text, integer) IS
  'Internal: for create_shards(): the default next_id(N), or the constraint CHECK (shard_of(column) = N), for '
  'another shard; null for anything else';

CREATE FUNCTION snowflake.names_shard(catalogue regclass, object oid, expression text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
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
  'Internal: for create_shards(): whether an expression, given as its node tree, mints or compares a shard with a '
  'constant; null where it does neither';

CREATE FUNCTION snowflake.statements_of(source regclass, shard integer)
  RETURNS TABLE (step integer, statement text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  class pg_class;
  schema name;
  home text;  -- the schema's name with its dot, as others print it
  this text;
BEGIN
  SELECT * INTO class FROM pg_class WHERE oid = source;
  SELECT nspname INTO schema FROM pg_namespace WHERE oid = class.relnamespace;
  home := quote_ident(schema) || '.';
  this := quote_ident(class.relname);
  RETURN QUERY
  WITH attribute AS (
    SELECT a.*, quote_ident(attname) AS col, t.typcollation, t.typstorage
      FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = atttypid
     WHERE attrelid = source AND attnum > 0 AND NOT attisdropped
  ), identity AS (
    SELECT refobjsubid AS attnum, s.*
      FROM pg_depend JOIN pg_sequence AS s ON seqrelid = objid
     WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = source
       AND deptype = 'i'
  ), columns AS (
    SELECT attnum, concat_ws(' ', col, format_type(atttypid, atttypmod),
             CASE WHEN attcollation <> typcollation THEN 'COLLATE ' || attcollation::regcollation END,
             CASE WHEN attgenerated <> ''
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
             END,
             -- From PostgreSQL 18 on, NOT NULL has a name. A comment may need it.
             (SELECT format('CONSTRAINT %I', conname) FROM pg_constraint
               WHERE conrelid = source AND contype = 'n' AND conkey[1] = attnum
                 AND conname <> format('%s_%s_not_null', class.relname, attname)),
             CASE WHEN attnotnull THEN 'NOT NULL' END) AS definition
      FROM attribute LEFT JOIN pg_attrdef AS d ON adrelid = source AND adnum = attnum
      LEFT JOIN identity USING (attnum)
  ), settings AS (
    SELECT option FROM unnest(class.reloptions) AS option
    UNION ALL
    SELECT 'toast.' || option FROM pg_class AS toast, unnest(toast.reloptions) AS option
     WHERE toast.oid = class.reltoastrelid
  ), commented (what, text) AS (
    SELECT 'TABLE ' || this, obj_description(source, 'pg_class')
    UNION ALL
    SELECT format('COLUMN %s.%s', this, col), col_description(source, attnum) FROM attribute
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
      FROM pg_statistic_ext WHERE stxrelid = source
  ), granted AS (
    SELECT this AS target, '' AS col, acl.* FROM aclexplode(class.relacl) AS acl
    UNION ALL
    SELECT this, format(' (%s)', col), acl.* FROM attribute, aclexplode(attacl) AS acl
  ), made (step, statement) AS (
    SELECT 0, format('CREATE %sTABLE %s (%s) USING %I',
                     CASE class.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END, this,
                     (SELECT string_agg(definition, ', ' ORDER BY attnum) FROM columns), amname)
      FROM pg_am WHERE oid = class.relam
    UNION ALL
    SELECT 1, format('ALTER TABLE %s SET (%s)', this,
                     string_agg(format('%s = %L', split_part(option, '=', 1),
                                       substr(option, strpos(option, '=') + 1)), ', ' ORDER BY option))
      FROM settings HAVING count(*) > 0
    UNION ALL
    SELECT 1, format('ALTER TABLE %s ALTER COLUMN %s SET %s', this, col, change)
      FROM attribute, LATERAL (VALUES
        (CASE WHEN attstorage <> typstorage THEN 'STORAGE ' || CASE attstorage
           WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END),
        (CASE attcompression WHEN 'p' THEN 'COMPRESSION pglz' WHEN 'l' THEN 'COMPRESSION lz4' END),
        (CASE WHEN attstattarget >= 0 THEN 'STATISTICS ' || attstattarget END),
        -- Recent minor versions also store internal options there.
        ((SELECT '(' || string_agg(option, ', ' ORDER BY option) || ')'
            FROM unnest(attoptions) AS option WHERE option LIKE 'n\_distinct%'))
      ) AS changes (change) WHERE change IS NOT NULL
    UNION ALL
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
      FROM pg_statistic_ext WHERE stxrelid = source
    UNION ALL
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
      FROM pg_trigger WHERE tgrelid = source AND NOT tgisinternal AND tgenabled <> 'O'
    UNION ALL
    SELECT 5, format('COMMENT ON %s IS %L', what, text) FROM commented WHERE text IS NOT NULL
    UNION ALL
    SELECT 7, format('REVOKE ALL ON TABLE %s FROM %s', this, class.relowner::regrole) WHERE class.relacl IS NOT NULL
    UNION ALL
    SELECT 8, format('GRANT %s%s ON TABLE %s TO %s%s', privilege_type, col, target,
                     CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                     CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
      FROM granted
    UNION ALL
    SELECT 6, format('ALTER TABLE %s OWNER TO %s', this, class.relowner::regrole)
  )
  SELECT m.step, m.statement FROM made AS m;
END
$$;
COMMENT ON FUNCTION snowflake.statements_of(regclass, integer) IS
  'Internal: for create_shards(): the statements that make a table again, for a shard, in another schema';

CREATE FUNCTION snowflake.shard_checks(source regclass, shard integer) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (snowflake.shard_of(%I) = %s)', relname,
                CASE WHEN octet_length(attname) <= 54 THEN 'shard_of_' || attname ELSE 'shard_of_' || md5(attname) END,
                attname, shard)
    FROM pg_attrdef AS d JOIN pg_attribute AS a ON attrelid = adrelid AND attnum = adnum
    JOIN pg_class AS c ON c.oid = adrelid
    JOIN pg_namespace AS n ON n.oid = relnamespace
   WHERE adrelid = source AND snowflake.names_shard('pg_attrdef', d.oid, adbin::text) = 'mints'
     AND snowflake.with_shard(snowflake.definition_of('pg_attrdef', d.oid, nspname), shard) IS NOT NULL
     AND NOT EXISTS
       (SELECT FROM pg_constraint AS k
         WHERE conrelid = source AND contype = 'c' AND conkey = ARRAY[attnum]
           AND snowflake.names_shard('pg_constraint', k.oid, conbin::text) = 'compares'
           AND snowflake.with_shard(snowflake.definition_of('pg_constraint', k.oid, nspname), shard) IS NOT NULL)
$$;
COMMENT ON FUNCTION snowflake.shard_checks(regclass, integer) IS
  'Internal: for create_shards(): statements for the constraint that a column which mints takes ids of its shard '
  'only, where the table has none';

-- A new object belongs to its owner from the beginning, because planning its expressions runs the owner's code.
CREATE FUNCTION snowflake.run_steps(source regclass, shard integer, steps integer[], checks boolean, path text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  owner CONSTANT oid := relowner FROM pg_class WHERE oid = source;
  stated text;
BEGIN
  FOR stated IN
    SELECT m.statement
      FROM (SELECT s.* FROM snowflake.statements_of(source, shard) AS s WHERE s.step = ANY (steps)
            UNION ALL
            SELECT 1, c FROM snowflake.shard_checks(source, shard) AS c WHERE checks) AS m
     ORDER BY m.step, m.statement
  LOOP
    PERFORM snowflake.run_as(owner, stated, path);
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.run_steps(regclass, integer, integer[], boolean, text) IS
  'Internal: for create_shards(): runs those of a table''s statements that belong to these steps, as the table''s '
  'owner';

CREATE FUNCTION snowflake.make_scratch(owner oid) RETURNS name
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  scratch CONSTANT name := 'scratch_of_snowflake_' || pg_backend_pid();
BEGIN
  EXECUTE format('CREATE SCHEMA %I AUTHORIZATION %s', scratch, owner::regrole);
  RETURN scratch;
END
$$;
COMMENT ON FUNCTION snowflake.make_scratch(oid) IS
  'Internal: for create_shards(): makes a schema in which this role may create';

-- An expression may print otherwise once it was read from its own text: CHECK (status IN (...)) on varchar
-- does. So tables that differ are compared again, by what both print after that.
CREATE FUNCTION snowflake.printed_again(source regclass, shard integer) RETURNS SETOF text
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = source;
  -- Foreign keys, owners, privileges and comments, the other steps, hold no expressions.
  steps CONSTANT integer[] := '{0,1,2,4}';
  scratch name;
  again text[];
BEGIN
  scratch := snowflake.make_scratch(class.relowner);
  PERFORM snowflake.run_steps(source, shard, steps, false,
                              concat_ws(', ', quote_ident(scratch), class.relnamespace::regnamespace, 'pg_temp'));
  SELECT array_agg(w.statement) INTO again FROM (
    SELECT s.statement FROM snowflake.statements_of(format('%I.%I', scratch, class.relname)::regclass, shard) AS s
     WHERE s.step = ANY (steps)
    UNION ALL
    SELECT s.statement FROM snowflake.statements_of(source, shard) AS s WHERE s.step <> ALL (steps)) AS w;
  RAISE EXCEPTION USING ERRCODE = 'SFUND';  -- undoes all of it but the variable
EXCEPTION
  WHEN SQLSTATE 'SFUND' THEN RETURN QUERY SELECT unnest(again);
  WHEN insufficient_privilege THEN RETURN QUERY SELECT s.statement FROM snowflake.statements_of(source, shard) AS s;
END
$$;
COMMENT ON FUNCTION snowflake.printed_again(regclass, integer) IS
  'Internal: for create_shards(): the statements that make a table, as they read after one copy, which is made and '
  'undone';

CREATE FUNCTION snowflake.unlike(template regclass, existing regclass, shard integer, OUT missing text, OUT extra text)
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  FOR attempt IN 1 .. 2 LOOP
    SELECT string_agg(statement, '; ' ORDER BY statement) FILTER (WHERE theirs IS NULL),
           string_agg(statement, '; ' ORDER BY statement) FILTER (WHERE ours IS NULL)
      INTO missing, extra
      FROM (SELECT s.statement, true AS ours FROM snowflake.statements_of(template, shard) AS s WHERE attempt = 1
            UNION ALL
            SELECT s, true FROM snowflake.printed_again(template, shard) AS s WHERE attempt = 2
            UNION ALL
            SELECT c, true FROM snowflake.shard_checks(template, shard) AS c) AS o
      FULL JOIN (SELECT s.statement, true AS theirs FROM snowflake.statements_of(existing, shard) AS s WHERE attempt = 1
                 UNION ALL
                 SELECT s, true FROM snowflake.printed_again(existing, shard) AS s
                  WHERE attempt = 2) AS t USING (statement);
    -- A table of another owner is unlike the template by that alone.
    EXIT WHEN missing IS NULL AND extra IS NULL
           OR (SELECT count(DISTINCT relowner) > 1 FROM pg_class WHERE oid IN (template, existing));
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.unlike(regclass, regclass, integer) IS
  'Internal: for create_shards(): the statements by which a shard''s table and the template''s differ; nulls where '
  'they do not';

CREATE FUNCTION snowflake.uncopyable(template regnamespace)
  RETURNS TABLE (object text, reason text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  schema CONSTANT name := (SELECT nspname FROM pg_namespace WHERE oid = template);
BEGIN
  RETURN QUERY
  WITH tab AS (
    SELECT c.* FROM pg_class AS c WHERE relnamespace = template AND relkind = 'r'
  ), odd (classid, objid, why) AS (
    -- Objects in the schema other than tables.
    SELECT classid, objid, 'is no ordinary table, and stays in the template'
      FROM pg_depend AS d
     WHERE refclassid = 'pg_namespace'::regclass AND refobjid = template AND deptype IN ('n', 'a')
       AND classid <> 'pg_statistic_ext'::regclass
       AND NOT (classid = 'pg_class'::regclass AND objid IN (SELECT oid FROM tab))
       -- members of an extension come with it, and the sequence of an identity column with its table
       AND NOT EXISTS (SELECT FROM pg_depend AS m WHERE m.classid = d.classid AND m.objid = d.objid
                                                    AND m.objsubid = 0 AND m.deptype IN ('e', 'i'))
  ), part (classid, objid) AS (
    SELECT 'pg_class'::regclass::oid, oid FROM tab
    UNION ALL
    SELECT 'pg_class'::regclass, indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM tab)
    UNION ALL
    SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid IN (SELECT oid FROM tab)
    UNION ALL
    SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE conrelid IN (SELECT oid FROM tab)
    UNION ALL
    SELECT 'pg_trigger'::regclass, oid FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM tab) AND NOT tgisinternal
  ), found AS (
    SELECT * FROM odd
    UNION ALL
    -- Parts of tables that would go on to mean the template's objects.
    SELECT p.classid, p.objid, format('uses %s of the template', pg_describe_object(o.classid, o.objid, 0))
      FROM part AS p JOIN pg_depend AS d ON d.classid = p.classid AND d.objid = p.objid AND d.deptype = 'n'
      JOIN odd AS o ON d.refclassid = o.classid AND d.refobjid = o.objid
    UNION ALL
    SELECT 'pg_class'::regclass, a.attrelid, format('column %I has the row type of a table of the template', attname)
      FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = atttypid
      LEFT JOIN pg_type AS e ON e.oid = t.typelem
     WHERE attrelid IN (SELECT oid FROM tab) AND attnum > 0
       AND (t.typrelid IN (SELECT oid FROM tab) OR e.typrelid IN (SELECT oid FROM tab))
    UNION ALL
    SELECT 'pg_trigger'::regclass, oid, 'names the template'
      FROM pg_trigger
     WHERE tgrelid IN (SELECT oid FROM tab) AND NOT tgisinternal
       AND (tgconstrrelid <> 0
            OR strpos(encode(tgargs, 'escape'), schema || '.') > 0
            OR strpos(encode(tgargs, 'escape'), quote_ident(schema) || '.') > 0
            OR encode(tgargs, 'escape') ~ ('(^|\\000)' || regexp_replace(schema, '(\W)', '\\\1', 'g') || '\\000'))
    UNION ALL
    -- Expressions that would mint for the template's shard, or compare with it, in every schema.
    SELECT 'pg_attrdef'::regclass, d.oid,
           CASE named WHEN 'mints' THEN 'mints, and is not snowflake.next_id(N) by itself'
                      ELSE 'compares a shard with a constant' END
      FROM pg_attrdef AS d, snowflake.names_shard('pg_attrdef', d.oid, adbin::text) AS named
     WHERE adrelid IN (SELECT oid FROM tab)
       AND (named = 'compares' OR named = 'mints'
            AND snowflake.with_shard(snowflake.definition_of('pg_attrdef', d.oid, schema), 0) IS NULL)
    UNION ALL
    SELECT 'pg_attrdef'::regclass, d.oid, format('calls %s, which may mint for any shard', p.oid::regprocedure)
      FROM pg_attrdef AS d JOIN pg_attribute AS a ON attrelid = adrelid AND attnum = adnum
      JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
       AND u.refclassid = 'pg_proc'::regclass
      JOIN pg_proc AS p ON p.oid = u.refobjid
     WHERE adrelid IN (SELECT oid FROM tab) AND format_type(atttypid, -1) = ANY ('{bigint,numeric,text}')
       AND provolatile = 'v'
       AND NOT EXISTS (SELECT FROM pg_depend AS m
                        WHERE m.classid = 'pg_proc'::regclass AND m.objid = p.oid AND m.deptype = 'e')
    UNION ALL
    SELECT 'pg_class'::regclass, c.attrelid,
           format('column %I has type %s, which %s', c.attname, c.type::regtype, c.named)
      FROM (WITH RECURSIVE chain (attrelid, attname, type) AS (
              SELECT attrelid, attname, atttypid FROM pg_attribute
               WHERE attrelid IN (SELECT oid FROM tab) AND attnum > 0 AND NOT attisdropped
              UNION
              SELECT attrelid, attname, typbasetype FROM chain JOIN pg_type ON oid = type WHERE typtype = 'd')
            SELECT attrelid, attname, type,
                   CASE WHEN snowflake.names_shard('pg_type', type, typdefaultbin::text) IS NOT NULL
                        THEN 'mints by its default' ELSE 'compares a shard with a constant' END AS named
              FROM chain JOIN pg_type AS t ON t.oid = type
             WHERE typtype = 'd' AND (snowflake.names_shard('pg_type', type, typdefaultbin::text) IS NOT NULL
               OR EXISTS (SELECT FROM pg_constraint AS k WHERE contypid = type
                             AND snowflake.names_shard('pg_constraint', k.oid, conbin::text) IS NOT NULL))) AS c
    UNION ALL
    SELECT 'pg_constraint'::regclass, k.oid,
           'compares a shard, and is not CHECK (snowflake.shard_of(column) = N) by itself'
      FROM pg_constraint AS k
     WHERE conrelid IN (SELECT oid FROM tab) AND snowflake.names_shard('pg_constraint', k.oid, conbin::text) IS NOT NULL
       AND snowflake.with_shard(snowflake.definition_of('pg_constraint', k.oid, schema), 0) IS NULL
    UNION ALL
    SELECT 'pg_class'::regclass, indexrelid, 'compares a shard with a constant'
      FROM pg_index
     WHERE indrelid IN (SELECT oid FROM tab)
       AND snowflake.names_shard('pg_class', indexrelid, concat(indexprs, indpred)) IS NOT NULL
    UNION ALL
    SELECT 'pg_statistic_ext'::regclass, oid, 'compares a shard with a constant'
      FROM pg_statistic_ext
     WHERE stxrelid IN (SELECT oid FROM tab)
       AND snowflake.names_shard('pg_statistic_ext', oid, stxexprs::text) IS NOT NULL
    UNION ALL
    SELECT 'pg_trigger'::regclass, t.oid,
           CASE WHEN prosrc ~ '\mnext_id(s|_in)?\s*\(' THEN format('calls %s, which mints', p.oid::regprocedure)
                                               ELSE 'compares a shard with a constant' END
      FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = tgfoid
     WHERE tgrelid IN (SELECT oid FROM tab) AND NOT tgisinternal
       AND (prosrc ~ '\mnext_id(s|_in)?\s*\(' OR snowflake.names_shard('pg_trigger', t.oid, tgqual::text) IS NOT NULL)
    UNION ALL
    SELECT 'pg_rewrite'::regclass, oid, 'is not copied' FROM pg_rewrite WHERE ev_class IN (SELECT oid FROM tab)
    UNION ALL
    SELECT 'pg_policy'::regclass, oid, 'is not copied' FROM pg_policy WHERE polrelid IN (SELECT oid FROM tab)
    UNION ALL
    SELECT 'pg_class'::regclass, oid, r
      FROM tab, LATERAL (VALUES
        (CASE WHEN relrowsecurity OR relforcerowsecurity THEN 'has row security' END),
        (CASE WHEN reloftype <> 0 THEN 'is of a type' END),
        (CASE WHEN reltablespace <> 0 THEN 'has a tablespace of its own' END),
        (CASE WHEN relispartition THEN 'is a partition'
              WHEN EXISTS (SELECT FROM pg_inherits WHERE oid IN (inhrelid, inhparent)) THEN 'inherits' END)
      ) AS v (r) WHERE r IS NOT NULL
  )
  SELECT pg_describe_object(f.classid, f.objid, 0), f.why FROM found AS f ORDER BY 1, 2;
END
$$;
COMMENT ON FUNCTION snowflake.uncopyable(regnamespace) IS
  'The parts of a template schema that create_shards() cannot copy, with the reasons';
