-- Lists the objects that adopt() cannot change and that the application must change. For each object, the list contains
-- a statement that shows or changes the object.

CREATE FUNCTION snowflake.narrow_routines(relations regclass[]) RETURNS SETOF regprocedure
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT p.oid::regprocedure
    FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
   WHERE lanname NOT IN ('c', 'internal') AND prokind IN ('f', 'p')
     AND (prosrc ~* '\m(integer|int|int4|smallint|int2)\M'
          OR EXISTS (SELECT FROM unnest(coalesce(proallargtypes, proargtypes) || prorettype) AS t
            WHERE snowflake.wide_type(t) IS NOT NULL))
     AND (EXISTS (SELECT FROM pg_trigger WHERE tgfoid = p.oid AND tgrelid = ANY (relations))
          OR EXISTS (SELECT FROM unnest(proargnames) AS n WHERE snowflake.names_id(n))
          OR EXISTS (SELECT FROM pg_class AS c WHERE c.oid = ANY (relations)
                        AND prosrc ~* ('\m' || regexp_replace(relname, '\W', '.', 'g') || '\M')))
     AND snowflake.is_of_application('pg_proc'::regclass, p.oid, pronamespace)
   ORDER BY p.oid::regprocedure::text
$$;
COMMENT ON FUNCTION snowflake.narrow_routines(regclass[]) IS
  'Internal: for adopt(): returns functions that declare integers and belong to one of three kinds: triggers of '
  'these relations, functions that contain the name of a relation, and functions with a parameter whose name looks '
  'like an id';

CREATE FUNCTION snowflake.limits_on_ids(columns snowflake.key_column[]) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  WITH ids AS MATERIALIZED (SELECT * FROM snowflake.attributes_of(columns))
  SELECT DISTINCT format('check %I of table %s may reject ids: SELECT pg_get_constraintdef(oid) FROM pg_constraint '
                         'WHERE conname = %L;', conname, conrelid::regclass, conname)
    FROM ids AS i JOIN pg_constraint ON conrelid = i.relation AND i.attnum = ANY (conkey)
   WHERE contype = 'c' AND conislocal
  UNION ALL
  SELECT DISTINCT format('index %s casts to integer: SELECT pg_get_indexdef(%L::regclass);', o, o::text)
    FROM ids AS i JOIN pg_index ON indrelid = i.relation, CAST(indexrelid AS regclass) AS o
   WHERE pg_get_indexdef(indexrelid) ~ '::(integer|smallint)'
  UNION ALL
  SELECT format('table %s may have no partition for new ids: CALL snowflake.create_time_partitions(%L, ''1 month'');',
                i.relation, i.relation::text)
    FROM ids AS i JOIN pg_partitioned_table ON partrelid = i.relation
   WHERE partstrat <> 'h' AND i.attnum = ANY (partattrs::smallint[])
  UNION ALL
  SELECT format('function %s calls currval() or lastval(), which do not return new ids: SELECT '
                'pg_get_functiondef(%L::regprocedure);', p.oid::regprocedure, p.oid::regprocedure)
    FROM pg_proc AS p
   WHERE prosrc ~* '\m(currval|lastval)\M' AND prokind IN ('f', 'p')
     AND snowflake.is_of_application('pg_proc'::regclass, p.oid, pronamespace)
$$;
COMMENT ON FUNCTION snowflake.limits_on_ids IS
  'Internal: for adopt(): lists the checks, indexes, partitions and functions that may not accept new ids';

CREATE FUNCTION snowflake.kept_sequences(keys snowflake.key_column[], drop_sequence boolean) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT format('sequence %s is kept, and %s could use it: DROP SEQUENCE %1$s;', s.sequence,
                coalesce(o.uses, 'an old default or program'))
    FROM unnest(keys) AS k, snowflake.sequences_of(k) AS s (sequence),
         snowflake.other_uses(s.sequence, keys) AS o (uses)
   WHERE (NOT drop_sequence OR o.uses IS NOT NULL)
     AND NOT EXISTS (SELECT FROM pg_depend
                      WHERE classid = 'pg_class'::regclass AND objid = s.sequence AND deptype = 'i')
   ORDER BY s.sequence::text COLLATE "C"
$$;
COMMENT ON FUNCTION snowflake.kept_sequences IS
  'Internal: for adopt(): lists the sequences that adopt() does not drop, each with the objects that may still use '
  'the sequence';

CREATE FUNCTION snowflake.remaining(keys snowflake.key_column[], changed snowflake.key_column[], drop_sequence boolean)
  RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  WITH referring AS MATERIALIZED (SELECT r.relation, r.attribute FROM snowflake.referring_columns(keys) AS r),
  relations (relation) AS (SELECT DISTINCT snowflake.with_children(k.relation)
                             FROM (TABLE referring UNION ALL SELECT c.* FROM unnest(changed) AS c) AS k),
  views (view) AS MATERIALIZED (
    SELECT d.relation FROM snowflake.dependents(ARRAY(SELECT r::snowflake.key_column FROM referring AS r)) AS d
     WHERE d.class = 'pg_class'::regclass)
  SELECT format('column %s.%I (%s) may contain ids: ALTER TABLE %1$s ALTER COLUMN %2$I TYPE %4$s;',
                n.relation, n.attribute, format_type(atttypid, atttypmod), snowflake.type_for_ids(atttypid, atttypmod))
    FROM snowflake.named_columns(keys) AS n JOIN pg_attribute ON attrelid = n.relation AND attname = n.attribute
   WHERE (n.relation, n.attribute)::snowflake.key_column <> ALL (changed)
  UNION ALL
  SELECT format('column %s.%I becomes bigint[], and statements must cast arrays: SELECT * FROM %1$s WHERE %2$I @> '
                'ARRAY[5]::bigint[];',
                c.relation, c.attribute)
    FROM unnest(changed) AS c WHERE snowflake.wide_type((snowflake.attribute_of(c)).atttypid) = 'bigint[]'
  UNION ALL
  SELECT format('function %s declares integers: SELECT pg_get_functiondef(%L::regprocedure);', r, r::text)
    FROM snowflake.narrow_routines(ARRAY(SELECT relation FROM relations)) AS r
  UNION ALL
  SELECT format('view %s casts to integer: SELECT pg_get_viewdef(%L::regclass);', v.view, v.view::text)
    FROM views AS v WHERE pg_get_viewdef(v.view) ~ '::(integer|smallint)'
  UNION ALL
  SELECT format('%s calls %s, which must also exist for bigint: SELECT pg_get_functiondef(%L::regprocedure);',
                n.caller, n.routine, n.routine)
    FROM snowflake.narrow_calls(ARRAY(SELECT r::snowflake.key_column FROM referring AS r)) AS n
  UNION ALL
  SELECT format('trigger %I of table %s may replace ids: SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = '
                '%L;', tgname, k.relation, tgname)
    FROM unnest(keys) AS k JOIN pg_trigger ON tgrelid = k.relation JOIN pg_proc AS p ON p.oid = tgfoid
   WHERE NOT tgisinternal AND tgenabled <> 'D' AND tgtype & 7 = 7   -- for each row, before, INSERT
     AND NOT (proname = 'set_id' AND pronamespace = 'snowflake'::regnamespace)
  UNION ALL
  SELECT snowflake.limits_on_ids(ARRAY(SELECT r::snowflake.key_column FROM referring AS r UNION SELECT unnest(changed)))
  UNION ALL
  SELECT snowflake.kept_sequences(keys, drop_sequence)
$$;
COMMENT ON FUNCTION snowflake.remaining(snowflake.key_column[], snowflake.key_column[], boolean) IS
  'Internal: for adopt(): returns the objects that the application must change: columns whose names look like ids, '
  'functions that declare integers, views that cast to integer, triggers before INSERT, and sequences';

CREATE FUNCTION snowflake.tell_remaining(lines text[]) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF lines <> '{}' THEN
    RAISE NOTICE USING MESSAGE = 'the application must change the objects that adopt() cannot change',
      DETAIL = array_to_string(lines, E'\n'),
      HINT = 'Check these objects, and the ORM models of the application, before the first new id is minted.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.tell_remaining IS
  'Internal: for adopt(): raises a notice with the objects that the application must change';

CREATE FUNCTION snowflake.plan_lines(steps snowflake.step[], columns snowflake.key_column[]) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT format('-- This transaction locks %s for %s:',
           (SELECT string_agg(s.locks::text, ', ') FROM unnest(steps) AS s
             WHERE s.locks NOT IN (SELECT oid FROM pg_class WHERE relkind IN ('v', 'm'))),
           coalesce('about ' || round(sum(pg_total_relation_size(c)) / 2e7, 1) || ' seconds, at 20 MB a second',
                    'milliseconds'))
    FROM snowflake.changes_of(columns) AS w, snowflake.with_children(w.relation) AS c
  UNION ALL
  SELECT s.statement || ';' FROM unnest(steps) AS s
   WHERE s.locks IS NULL AND s.statement ~ '^(ALTER TABLE|ALTER SEQUENCE|DROP SEQUENCE) '
  UNION ALL
  SELECT '-- Dropped, and created again with their privileges and comments: '
         || string_agg(DISTINCT lower(o.name[1]) || ' ' || o.name[2], ', ')
    FROM unnest(steps) AS s,
         regexp_match(s.statement, '^DROP (MATERIALIZED VIEW|VIEW|TRIGGER|RULE|POLICY) (.*)') AS o (name)
  HAVING count(o.name) > 0
$$;
COMMENT ON FUNCTION snowflake.plan_lines IS
  'Internal: for adopt(): returns the lines of a dry run that describe the locks and the changes of a transaction';

CREATE FUNCTION snowflake.tell_plan(lines text[]) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  line text;
BEGIN
  FOREACH line IN ARRAY lines LOOP
    RAISE INFO '%', line;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.tell_plan IS 'Internal: for adopt(): shows the lines of a dry run';
