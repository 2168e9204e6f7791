-- Checks that adopt() runs before it changes a column.

-- Both adopt() and backfill() call refuse_inheritance().
CREATE FUNCTION snowflake.refuse_inheritance(relation regclass, routine text, advice text) RETURNS void
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT snowflake.refuse('0A000', format('%s does not support table %s', routine, relation),
           CASE WHEN relkind = 'p' THEN 'The table is partitioned.'
                WHEN relkind <> 'r' THEN format('The relation is not a table. Its kind in pg_class.relkind is "%s".',
                                                relkind)
                WHEN relpersistence = 't' THEN 'The table is temporary.'
                WHEN relispartition THEN format('The table is a partition of %s.', pg_partition_root(relation))
                ELSE 'The table inherits from another table, or another table inherits from this one.' END, advice)
    FROM pg_class
   WHERE oid = relation AND (relkind <> 'r' OR relpersistence = 't'
                             OR EXISTS (SELECT FROM pg_inherits WHERE relation IN (inhrelid, inhparent)))
$$;
COMMENT ON FUNCTION snowflake.refuse_inheritance IS
  'Internal: for procedures: raises an error unless a relation is a plain table';

-- The catalogue pg_depend shows which columns a partition key uses, also in expressions: these columns depend on their
-- table. If ALTER TABLE changes the type of a foreign key's column, PostgreSQL enables the foreign key's disabled
-- triggers.
CREATE FUNCTION snowflake.column_hindrances(columns snowflake.key_column[]) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE WHEN EXISTS (SELECT FROM pg_depend WHERE objid = t.relation AND objsubid = t.attnum AND deptype = 'i'
                              AND refobjid = t.relation) THEN 'partition key of ' || t.relation
              WHEN EXISTS (SELECT FROM pg_index JOIN pg_inherits ON inhrelid = indexrelid
                            WHERE indrelid = t.relation AND indisreplident AND t.attnum = ANY (indkey::smallint[]))
              THEN 'replica identity of ' || t.relation
              WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = t.relation AND NOT indisvalid)
              THEN 'invalid index of ' || t.relation
              WHEN attinhcount > 1 THEN format('several parents of %s.%I', t.relation, t.attname)
              WHEN typtype = 'd' THEN format('domain %s of %s.%I', t.atttypid::regtype, t.relation, t.attname)
              WHEN reloftype <> 0 THEN 'type ' || reloftype::regtype END
    FROM snowflake.attributes_of(columns) AS t JOIN pg_class AS c ON c.oid = t.relation
    JOIN pg_type ON pg_type.oid = t.atttypid
    JOIN pg_attribute AS a ON attrelid = t.relation AND a.attnum = t.attnum
  UNION
  SELECT format('foreign key %I of %s, whose triggers are disabled', conname, conrelid::regclass)
    FROM snowflake.foreign_keys_of(columns) AS f JOIN pg_trigger ON tgconstraint = f.oid
   WHERE tgenabled <> 'O'
$$;
COMMENT ON FUNCTION snowflake.column_hindrances IS
  'Internal: for adopt(): returns the properties of columns and their foreign keys that prevent the columns from '
  'becoming wider. If a column can become wider, the result is null';

-- If the type of a column changes, PostgreSQL adapts keys, indexes, defaults and statistics. The procedure adopt()
-- drops the objects that dependents() returns, such as views, and creates them again. The function hindrances() returns
-- the objects that prevent a change of the column's type, because neither PostgreSQL nor adopt() can adapt them.
CREATE FUNCTION snowflake.hindrances(columns snowflake.key_column[]) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  WITH changed AS MATERIALIZED (SELECT * FROM snowflake.attributes_of(columns)),
  again AS MATERIALIZED (SELECT * FROM snowflake.dependents(columns)),
  used (relation, attnum) AS (
    SELECT relation, attnum FROM changed UNION ALL SELECT relation, NULL FROM again WHERE class = 'pg_class'::regclass)
  SELECT h FROM (
      SELECT concat(pg_describe_object(d.classid, d.objid, d.objsubid),
                    CASE WHEN u.attnum IS NULL THEN ', which depends on view ' || u.relation END)
        FROM used AS u JOIN pg_class AS c ON c.oid = u.relation JOIN pg_type AS t ON t.oid = c.reltype
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = u.relation
                               AND d.refobjsubid = coalesce(u.attnum, d.refobjsubid)
                            OR d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)
                               AND (u.attnum IS NULL OR d.classid = 'pg_class'::regclass AND d.objsubid <> 0)
       WHERE d.deptype <> 'i' AND (d.classid, d.objid) NOT IN (SELECT class, object FROM again)
         AND (u.attnum IS NULL OR d.classid NOT IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass))
         AND NOT EXISTS (SELECT FROM (
                 SELECT 'pg_class'::regclass, oid FROM pg_class WHERE relkind IN ('i', 'I', 'S')
                 UNION ALL SELECT 'pg_rewrite'::regclass, oid FROM pg_rewrite WHERE rulename = '_RETURN'
                 UNION ALL SELECT 'pg_trigger'::regclass, oid FROM pg_trigger WHERE tgparentid <> 0
                 UNION ALL SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef
                            WHERE adrelid = u.relation AND adnum = u.attnum) AS adapted (class, object)
               WHERE adapted.class = d.classid AND adapted.object = d.objid)
      UNION
      SELECT snowflake.column_hindrances(columns)
      UNION
      SELECT snowflake.view_hindrances(ARRAY(SELECT relation FROM used WHERE attnum IS NULL))) AS f (h)
   WHERE h IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake.hindrances(snowflake.key_column[]) IS
  'Internal: for adopt(): returns the objects that prevent columns from becoming wider: functions, generated '
  'columns, partition keys, domains, uses of the row type, and views that cannot be created again';

-- A check or an index may call a function that exists only for integer, not for bigint. To test the checks and indexes
-- of a table, try_wide() creates an empty copy of the table, and changes its columns to bigint or bigint[]. The empty
-- table has a random name, so that no other role can create a table with the name first. A child table can have its own
-- checks, or its own indexes with expressions or conditions. The function try_wide() tests the child table in the same
-- way as its parent table. If a table's owner may not create tables in the schema, try_wide() cannot create the empty
-- copy. Without a test by try_wide(), the later ALTER TABLE of adopt() fails if a check or index does not accept
-- bigint.
CREATE FUNCTION snowflake.try_wide(columns snowflake.key_column[], OUT relation regclass, OUT reason text)
  RETURNS SETOF record
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this record;
  trial text;
BEGIN
  FOR this IN SELECT child AS relation, w.changes, relowner, relnamespace::regnamespace AS home
                FROM snowflake.changes_of(columns) AS w, snowflake.with_children(w.relation) AS child
                JOIN pg_class AS c ON c.oid = child
               WHERE child = w.relation
                  OR EXISTS (SELECT FROM pg_constraint WHERE conrelid = child AND contype = 'c' AND conislocal)
                  OR EXISTS (SELECT FROM pg_index WHERE indrelid = child AND concat(indexprs, indpred) <> ''
                                AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = indexrelid)) LOOP
    trial := format('%s.%I', this.home, 'trial_' || gen_random_uuid());
    BEGIN
      PERFORM snowflake.run_as(this.relowner, format('CREATE TABLE %s (LIKE %s INCLUDING CONSTRAINTS INCLUDING INDEXES '
                'INCLUDING STATISTICS)', trial, this.relation)),
              snowflake.run_as(this.relowner, format('ALTER TABLE %s %s', trial, this.changes));
      RAISE SQLSTATE 'SFOK0';
    EXCEPTION WHEN SQLSTATE 'SFOK0' OR insufficient_privilege THEN
      NULL;   -- The exception rolls back CREATE TABLE, so no trial table remains.
    WHEN undefined_function OR ambiguous_function OR datatype_mismatch OR invalid_object_definition
      OR feature_not_supported OR wrong_object_type OR undefined_object THEN
      relation := this.relation;
      reason := rtrim(SQLERRM, '.');
      RETURN NEXT;
    END;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.try_wide(snowflake.key_column[]) IS
  'Internal: for adopt(): returns the tables whose checks or indexes prevent columns from becoming wider, with the '
  'reasons. Changes nothing';

CREATE FUNCTION snowflake.changes_of(columns snowflake.key_column[], OUT relation regclass, OUT changes text)
  RETURNS SETOF record
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT k.relation, string_agg(format('ALTER COLUMN %I TYPE %s', k.attribute, snowflake.wide_type(atttypid)), ', '
    ORDER BY attnum)
    FROM unnest(columns) AS k JOIN pg_attribute ON attrelid = k.relation AND attname = k.attribute
   WHERE snowflake.wide_type(atttypid) IS NOT NULL GROUP BY k.relation ORDER BY k.relation
$$;
COMMENT ON FUNCTION snowflake.changes_of IS
  'Internal: for adopt(): returns the actions of ALTER TABLE that change the type of columns to bigint or bigint[], '
  'for each table';

CREATE FUNCTION snowflake.foreign_keys_of(columns snowflake.key_column[]) RETURNS SETOF pg_constraint
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT f.* FROM pg_constraint AS f
   WHERE contype = 'f' AND EXISTS (SELECT FROM snowflake.attributes_of(columns) AS a
           WHERE a.relation = conrelid AND a.attnum = ANY (conkey)
              OR a.relation = confrelid AND a.attnum = ANY (confkey))
$$;
COMMENT ON FUNCTION snowflake.foreign_keys_of IS
  'Internal: for adopt(): returns the foreign keys that contain these columns, as referencing or as referenced '
  'columns';

-- If the type of a foreign key's column changes, PostgreSQL checks the foreign key again. PostgreSQL checks the foreign
-- key with the rights of the changed table's owner. If an id does not fit into a subscriber's integer column, the
-- subscription stops.
CREATE FUNCTION snowflake.refuse_connected(columns snowflake.key_column[], published boolean) RETURNS void
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT snowflake.refuse('55000', 'tables of several owners are connected: ' || string_agg(c.name, ', ' ORDER BY name),
           'Rewriting these tables would run code of one owner with the rights of the other owner.',
           'Give the tables to one role. Or drop these foreign keys, call adopt(), and create the foreign keys again '
           'in the same transaction.')
    FROM (SELECT format('foreign key %I of %s', conname, conrelid::regclass), conrelid, confrelid
            FROM snowflake.foreign_keys_of(columns)
          UNION
          SELECT format('child table %s', child), k.relation, child
            FROM unnest(columns) AS k, snowflake.with_children(k.relation) AS child) AS c (name, one, other)
    JOIN pg_class AS a ON a.oid = c.one JOIN pg_class AS b ON b.oid = c.other WHERE a.relowner <> b.relowner;
  SELECT snowflake.refuse('55000', 'the tables to change belong to publications: '
           || string_agg(DISTINCT quote_ident(p.pubname), ', '),
           'A subscription stops at the first new id if the subscriber''s columns are not bigint.',
           (SELECT format('Run these statements on each subscriber, and then pass published => true: %s.',
                          string_agg(format('ALTER TABLE %s %s', w.relation, w.changes), '; '))
              FROM snowflake.changes_of(columns) AS w))
    FROM snowflake.attributes_of(columns) AS a JOIN pg_class AS c ON c.oid = a.relation
    JOIN pg_publication_tables AS p ON p.schemaname = relnamespace::regnamespace::name AND p.tablename = relname
   WHERE NOT published
$$;
COMMENT ON FUNCTION snowflake.refuse_connected(snowflake.key_column[], boolean) IS
  'Internal: for adopt(): raises an error if columns that become wider are published, or if a foreign key connects '
  'tables of two owners';

CREATE FUNCTION snowflake.refuse_wide(columns snowflake.key_column[], rewrite boolean, published boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  named CONSTANT text := (SELECT string_agg(format('%s.%I %s', k.relation, k.attribute,
    (snowflake.attribute_of(k)).atttypid::regtype), ', ') FROM unnest(columns) AS k);
  bytes CONSTANT numeric := (SELECT sum(pg_total_relation_size(r))
    FROM unnest(ARRAY(SELECT DISTINCT a.relation FROM snowflake.attributes_of(columns) AS a)) AS r);
BEGIN
  PERFORM snowflake.refuse('0A000', 'some columns that contain ids cannot be made bigint',
            format('These objects prevent the change: %s.', names),
            CASE WHEN names ~ '(^|, )partition key of' THEN 'See "A partition key that is integer" in doc/moving.md.'
                 WHEN names ~ '(^|, )domain ' THEN 'Change these columns to bigint, and repeat the call.'
                 ELSE 'Drop these objects, repeat the call, and create the objects again.' END)
     FROM array_to_string(ARRAY(SELECT snowflake.hindrances(columns) ORDER BY 1), ', ') AS names WHERE names <> '';
  PERFORM snowflake.refuse('55000', CASE WHEN NOT rewrite THEN format('not all columns are bigint: %s', named) END,
            format('The tables of these columns, %s with all indexes, would be rewritten. No session could read or '
                   'write these tables for about %s seconds, at 20 MB a second.',
                   pg_size_pretty(bytes), round(bytes / 2e7, 1)),
            'Pass rewrite => true, or add a bigint column and fill it with backfill().'),
          snowflake.refuse_connected(columns, published);
  PERFORM snowflake.refuse('0A000', format('columns of %s cannot be made bigint', t.relation),
            format('A trial with an empty table with the same checks and indexes failed: %s.', t.reason),
            'Create the functions that these checks and indexes call also for bigint arguments. Or drop these checks '
            'and indexes, repeat the call, and create them again.')
     FROM snowflake.try_wide(columns) AS t;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_wide(snowflake.key_column[], boolean, boolean) IS
  'Internal: for adopt(): raises an error if columns cannot become wider, or if the caller did not allow the rewrite';

CREATE FUNCTION snowflake.refuse_key(relation regclass, id pg_attribute) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = relation;
  root CONSTANT regclass := snowflake.root_of((relation, id.attname));
  type CONSTANT text := format_type(id.atttypid, id.atttypmod);
BEGIN
  IF class.relkind NOT IN ('r', 'p') OR class.relpersistence = 't' OR root <> relation THEN
    PERFORM snowflake.refuse_inheritance(relation, 'adopt()', CASE WHEN root = relation
      THEN 'Set the default of the column with ALTER TABLE.' ELSE format('Call adopt() for table %s.', root) END);
  END IF;
  PERFORM snowflake.refuse('42804', CASE WHEN type NOT IN ('bigint', 'integer', 'smallint') OR id.attgenerated <> ''
                                         THEN format('column %s.%I cannot contain ids', relation, id.attname) END,
            format('The column is %s%s. Ids need a plain bigint column.',
              CASE WHEN id.attgenerated <> '' THEN 'a generated column of type ' END, type),
            'Add a bigint column for the ids, and fill the column of old rows with backfill().');
  PERFORM snowflake.refuse('55000', format('the identity sequence of column %s.%I has other uses',
                                           relation, id.attname),
            format('The sequence is dropped with the identity. It is also used by %s.', u.uses),
            'Change these uses to a sequence of their own, and repeat the call.')
     FROM snowflake.other_uses(CASE WHEN id.attidentity <> '' THEN
            pg_get_serial_sequence(relation::text, id.attname)::regclass END,
            ARRAY[(relation, id.attname)::snowflake.key_column]) AS u (uses)
    WHERE u.uses IS NOT NULL;
  PERFORM snowflake.refuse('55000', format('column %s.%I has no unique index without other columns',
                                           relation, id.attname),
            'adopt() needs this index to find the greatest id quickly while no session can write to the table.',
            format('CREATE UNIQUE INDEX CONCURRENTLY ON %s (%I);', relation, id.attname))
    WHERE class.relkind <> 'p'
      AND NOT EXISTS (SELECT FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am AS m ON m.oid = relam
                       WHERE indrelid = relation AND indnkeyatts = 1 AND indkey[0] = id.attnum AND indpred IS NULL
                         AND indisunique AND indisvalid AND amname = 'btree');
END
$$;
COMMENT ON FUNCTION snowflake.refuse_key IS
  'Internal: for adopt(): raises an error if a column cannot be a key whose default mints ids';

CREATE FUNCTION snowflake.refuse_future_ids(relation regclass, attribute name) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
  ends record;
  read_as record;
BEGIN
  SELECT * INTO ends FROM snowflake.ends_of(relation, attribute);
  PERFORM snowflake.refuse('22003', CASE WHEN ends.lowest < 0
                                         THEN format('column %s.%I contains negative numbers', relation, attribute) END,
            format('The least number is %s, and the greatest is %s. Ids are not negative.',
                   ends.lowest, ends.highest),
            'Give the rows with negative numbers other keys, and repeat the call.');
  SELECT * INTO read_as FROM snowflake.explain_id(ends.highest);
  PERFORM snowflake.refuse('22003', format('column %s.%I contains numbers greater than new ids', relation, attribute),
            format('The greatest number in the column is %s. Read as an id of this database, this number is %s. New '
                   'ids begin at %s, and would later be equal to numbers in the column.', ends.highest,
              coalesce('an id of ' || read_as.created_at, 'invalid'), snowflake.min_id(clock_timestamp())),
            'Create the extension with the layout and epoch of these ids, or with an earlier epoch. Or give these '
            'rows other keys, and repeat the call.')
    WHERE read_as.created_at > clock_timestamp() + current_setting('snowflake.max_lead')::interval
       OR ends.highest IS NOT NULL AND read_as.created_at IS NULL;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_future_ids(regclass, name) IS
  'Internal: for adopt(): raises an error if a column contains negative numbers, or ids whose time is in the future';

-- One function of the application may create the ids of several columns. If adopt() changed the default of only one
-- column to next_id(), the function of the application and next_id() could create equal ids.
CREATE FUNCTION snowflake.refuse_shared_function(relation regclass, attribute smallint) RETURNS void
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT snowflake.refuse('55000',
           format('the function that creates the ids of %s also fills other columns', relation),
           format('The other columns are %s. The function may give these columns an id that next_id() has minted.',
                  string_agg(DISTINCT format('%s.%I', o.adrelid::regclass, attname), ', ')),
           'In one transaction, lock the tables of all these columns with LOCK TABLE, and call adopt() for each '
           'column.')
    FROM pg_attrdef AS d JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
    JOIN pg_proc AS p ON u.refclassid = 'pg_proc'::regclass AND p.oid = u.refobjid
    JOIN pg_depend AS v ON v.classid = u.classid AND v.refclassid = u.refclassid AND v.refobjid = u.refobjid
    JOIN pg_attrdef AS o ON o.oid = v.objid AND o.oid <> d.oid
    JOIN pg_attribute AS a ON a.attrelid = o.adrelid AND a.attnum = o.adnum
   WHERE d.adrelid = relation AND d.adnum = attribute AND a.atttypid = 'bigint'::regtype
     AND pronamespace NOT IN ('pg_catalog'::regnamespace, 'snowflake'::regnamespace)
     AND NOT EXISTS (SELECT FROM pg_locks AS l
                      WHERE l.pid = pg_backend_pid() AND l.relation = o.adrelid AND l.mode = 'AccessExclusiveLock'
                        AND l.granted)
  HAVING count(*) > 0
$$;
COMMENT ON FUNCTION snowflake.refuse_shared_function(regclass, smallint) IS
  'Internal: for adopt(): raises an error if the function in a default also fills another column whose table is not '
  'locked';

CREATE FUNCTION snowflake.refuse_snapshot(routine text) RETURNS void
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT snowflake.refuse('25001', format('%s needs isolation level read committed', routine),
           format('At isolation level %s, the call would not see rows that other sessions write in the meantime.',
                  i.level),
           'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;')
    FROM (SELECT current_setting('transaction_isolation')) AS i (level)
   WHERE i.level NOT IN ('read committed', 'read uncommitted')
$$;
COMMENT ON FUNCTION snowflake.refuse_snapshot(text) IS
  'Internal: for procedures: raises an error if the transaction sees only rows that were committed before it began';
