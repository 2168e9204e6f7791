-- Moving in: a column that has its numbers from elsewhere is given ids of this extension.

CREATE FUNCTION snowflake.column_of(relation regclass, wanted name) RETURNS pg_attribute
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  found pg_attribute;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_class WHERE oid = relation) THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_table',
      MESSAGE = format('relation %s does not exist', relation),
      DETAIL = 'No table has this number.', HINT = 'Pass the name of a table.';
  END IF;
  IF (SELECT relkind NOT IN ('r', 'p', 'f', 'v', 'm') FROM pg_class WHERE oid = relation) THEN
    RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
      MESSAGE = format('%s is not a table', relation),
      DETAIL = format('It is of kind %s.', (SELECT (pg_identify_object('pg_class'::regclass, relation, 0)).type)), HINT = 'Pass the name of a table.';
  END IF;
  IF wanted IS NULL THEN
    SELECT a.* INTO found
      FROM pg_index AS i JOIN pg_attribute AS a ON attrelid = indrelid AND attnum = indkey[0]
     WHERE indrelid = relation AND indisprimary AND indnkeyatts = 1;
  ELSE
    SELECT * INTO found FROM pg_attribute WHERE attrelid = relation AND attname = wanted AND attnum > 0 AND NOT attisdropped;
  END IF;
  IF found IS NULL OR found.attrelid IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_column',
      MESSAGE = CASE WHEN wanted IS NULL THEN format('table %s has no primary key of one column', relation)
                     ELSE format('table %s has no column "%s"', relation, wanted) END,
      DETAIL = format('Its columns are %s.', (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
                                               WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped)),
      HINT = 'Name the column that holds the ids: id_column => ''...''.';
  END IF;
  RETURN found;
END
$$;
COMMENT ON FUNCTION snowflake.column_of(regclass, name) IS
  'Internal: for procedures: a column by its name, by default that of the primary key; an error where there is none';

CREATE FUNCTION snowflake.refuse_inheritance(relation regclass, routine text, advice text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = relation;
BEGIN
  IF class.relkind <> 'r' OR class.relpersistence = 't' OR EXISTS (SELECT FROM pg_inherits WHERE relation IN (inhrelid, inhparent)) THEN
    RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
      MESSAGE = format('%s does not know tables such as %s', routine, relation),
      DETAIL = CASE WHEN class.relkind = 'p' THEN 'It is partitioned.'
                    WHEN class.relkind <> 'r' THEN format('It is no table, but of kind "%s".', class.relkind)
                    WHEN class.relpersistence = 't' THEN 'It is temporary.'
                    WHEN class.relispartition THEN format('It is a partition of %s.', (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = relation))
                    ELSE 'It inherits, or others inherit from it.' END,
      HINT = advice;
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_inheritance(regclass, text, text) IS
  'Internal: for procedures: an error for everything but plain tables';

-- The column, and all that refer to it, at any depth.
CREATE FUNCTION snowflake.referring_columns(relation regclass, attribute smallint, OUT referring regclass, OUT number smallint)
  RETURNS SETOF record
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE keys (relid, attnum) AS (
    SELECT relation::oid, attribute
    UNION
    SELECT conrelid, pair.referring
      FROM keys JOIN pg_constraint ON contype = 'f' AND confrelid = relid,
           unnest(conkey, confkey) AS pair (referring, referenced)
     WHERE pair.referenced = keys.attnum)
  SELECT relid::regclass, attnum FROM keys ORDER BY relid <> relation, relid, attnum
$$;
COMMENT ON FUNCTION snowflake.referring_columns(regclass, smallint) IS
  'Internal: for adopt(): a column, first, and those that refer to it by foreign keys, at any depth';

-- A change of type is known to be harmless for keys, indexes, defaults and statistics. What else depends on
-- the column, of whatever kind, is named.
CREATE FUNCTION snowflake.hindrances(relation regclass, attribute smallint) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)
    FROM pg_depend AS d
   WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = relation AND d.refobjsubid = attribute
     AND NOT (d.classid = 'pg_constraint'::regclass OR d.classid = 'pg_statistic_ext'::regclass
              OR d.classid = 'pg_class'::regclass AND d.objsubid = 0
                 AND (SELECT relkind IN ('i', 'S') FROM pg_class WHERE oid = d.objid)
              OR d.classid = 'pg_attrdef'::regclass
                 AND EXISTS (SELECT FROM pg_attrdef WHERE oid = d.objid AND adrelid = relation AND adnum = attribute))
  UNION ALL
  SELECT 'publication ' || quote_ident(pubname)
    FROM pg_publication AS p
   WHERE puballtables OR EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = p.oid AND prrelid = relation)
      OR EXISTS (SELECT FROM pg_publication_namespace JOIN pg_class ON relnamespace = pnnspid
                  WHERE pnpubid = p.oid AND pg_class.oid = relation)
  UNION ALL
  SELECT CASE relkind WHEN 'p' THEN 'partitions of ' ELSE 'inheritance of ' END || oid::regclass
    FROM pg_class
   WHERE oid = relation AND (relkind <> 'r' OR EXISTS (SELECT FROM pg_inherits WHERE relation IN (inhrelid, inhparent)))
  UNION ALL
  SELECT 'type ' || reloftype::regtype FROM pg_class WHERE oid = relation AND reloftype <> 0
  UNION ALL
  SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)
    FROM pg_class AS c JOIN pg_type AS t ON t.oid = c.reltype
    JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)
   WHERE c.oid = relation AND d.classid = 'pg_class'::regclass AND d.objsubid <> 0
$$;
COMMENT ON FUNCTION snowflake.hindrances(regclass, smallint) IS
  'Internal: for adopt(): what keeps a column from being written anew as bigint: views, rules, triggers, policies, functions, generated columns, publications, partitions, uses of its row type';

-- What a check or an index calls may take integer and no bigint: tried with empty tables of the same checks and indexes, in
-- the same schema. An owner who may not create them there learns it from the statements themselves.
CREATE FUNCTION snowflake.try_bigint(relation regclass, attribute smallint) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this record;
  trial text;
BEGIN
  FOR this IN
    SELECT r.referring, relowner, relnamespace::regnamespace AS home, string_agg(format('%I', attname), ', ' ORDER BY attnum) AS columns,
           string_agg(format('ALTER COLUMN %I TYPE bigint', attname), ', ' ORDER BY attnum) AS changes
      FROM snowflake.referring_columns(relation, attribute) AS r JOIN pg_attribute ON attrelid = r.referring AND attnum = r.number
      JOIN pg_class AS c ON c.oid = r.referring
     WHERE atttypid <> 'bigint'::regtype GROUP BY 1, 2, 3
  LOOP
    trial := format('%s.trial_%s', this.home, this.referring::oid);
    BEGIN
      PERFORM snowflake.run_as(snowflake.owner_of(this.referring), format('CREATE TABLE %s (LIKE %s INCLUDING CONSTRAINTS INCLUDING INDEXES INCLUDING STATISTICS)', trial, this.referring));
      PERFORM snowflake.run_as(this.relowner, format('ALTER TABLE %s %s', trial, this.changes));
      RAISE SQLSTATE 'SFOK0';
    EXCEPTION WHEN SQLSTATE 'SFOK0' OR insufficient_privilege THEN
      NULL;   -- well; and taken back
    WHEN undefined_function OR ambiguous_function OR datatype_mismatch OR invalid_object_definition OR feature_not_supported OR wrong_object_type THEN
      RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
        MESSAGE = format('%s.%s cannot be made bigint', this.referring, this.columns),
        DETAIL = format('Tried with an empty table of its checks and indexes: %s.', rtrim(SQLERRM, '.')),
        HINT = 'Make functions that they call for bigint as well, or take these checks and indexes away and make them anew.';
    END;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.try_bigint(regclass, smallint) IS
  'Internal: for adopt(): an error where a check or an index keeps a column, or one that refers to it, from becoming bigint; changes nothing';

CREATE FUNCTION snowflake.refuse_future_ids(relation regclass, attribute name, tell boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
  lowest bigint;
  highest bigint;
  read_as record;
  epoch timestamptz;
BEGIN
  SELECT e.lowest, e.highest INTO lowest, highest FROM snowflake.ends_of(relation, attribute) AS e;
  IF lowest < 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
      MESSAGE = format('%s.%I has negative numbers', relation, attribute),
      DETAIL = format('The least is %s, the greatest %s. No id is negative.', lowest, highest),
      HINT = 'Give these rows other keys first.';
  END IF;
  SELECT l.epoch INTO epoch FROM snowflake.layout AS l;
  SELECT * INTO read_as FROM snowflake.explain_id(highest);
  IF read_as.created_at > clock_timestamp() + current_setting('snowflake.max_lead')::interval
     OR highest IS NOT NULL AND read_as.created_at IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
      MESSAGE = format('%s.%I has numbers above the ids that would be minted', relation, attribute),
      DETAIL = format('The greatest is %s. As an id of this database it is %s. As a plain number, or as an id of another layout or epoch, it '
                      'would be met by later ids; those of now begin at %s.',
                      highest, coalesce('of ' || read_as.created_at, 'none that can be minted'), snowflake.min_id(clock_timestamp())),
      HINT = 'Create the extension with the layout and epoch of these ids, or with an earlier epoch; or give these rows other keys first.';
  END IF;
  IF tell AND read_as.created_at < epoch + interval '1 day' THEN
    RAISE NOTICE USING MESSAGE = format('the numbers of %s.%I are plain ones', relation, attribute),
      DETAIL = format('The greatest, %s, decodes as of %s, shard %s. They stay below all ids of now.', highest, read_as.created_at, read_as.shard),
      HINT = 'Do not ask created_within() about them.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_future_ids(regclass, name, boolean) IS
  'Internal: for adopt(): an error where a column has negative numbers or ids from the future; tells, where asked to, that its numbers are plain ones';

-- Each with the role as whom it runs: what can run an owner's code, as the owner.
CREATE FUNCTION snowflake.adopt_steps(relation regclass, shard integer, id_column name, rewrite boolean, drop_sequence boolean,
                                      OUT role oid, OUT statement text)
  RETURNS SETOF record
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
  caller CONSTANT oid := quote_ident(current_user)::regrole;
  id pg_attribute;
  type text;
  narrow regclass[];
  columns text;
  hindering text;
  foreign_keys text;
  not_owned text;
  bytes bigint;
BEGIN
  PERFORM snowflake.refuse_null('adopt()', relation::text, shard::text, rewrite::text, drop_sequence::text);
  id := snowflake.column_of(relation, id_column);
  type := format_type(id.atttypid, id.atttypmod);
  PERFORM snowflake.refuse_inheritance(relation, 'adopt()', 'Set the default of each of its tables yourself, in one transaction that locks them first and observes the greatest id last.');
  IF type NOT IN ('bigint', 'integer', 'smallint') OR id.attgenerated <> '' THEN
    RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
      MESSAGE = format('%s.%I cannot hold ids', relation, id.attname),
      DETAIL = format('It is %s%s; ids are bigint.', CASE WHEN id.attgenerated <> '' THEN 'a generated column of type ' ELSE '' END, type),
      HINT = 'Add a bigint column for them, and give old rows their ids with backfill().';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am AS m ON m.oid = relam
                  WHERE indrelid = relation AND indnkeyatts = 1 AND indkey[0] = id.attnum AND indpred IS NULL
                    AND indisunique AND indisvalid AND amname = 'btree') THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('%s.%I has no unique index of its own', relation, id.attname),
      DETAIL = 'The greatest id is looked up while nobody can write.',
      HINT = format('CREATE UNIQUE INDEX CONCURRENTLY ON %s (%I);', relation, id.attname);
  END IF;
  SELECT string_agg(DISTINCT r.referring::text, ', ') INTO not_owned
    FROM snowflake.referring_columns(relation, id.attnum) AS r JOIN pg_attribute ON attrelid = r.referring AND attnum = r.number
    JOIN pg_class AS c ON c.oid = r.referring
   WHERE (r.referring = relation OR atttypid <> 'bigint'::regtype) AND NOT pg_has_role(relowner, 'USAGE');
  IF not_owned IS NOT NULL OR NOT has_function_privilege('snowflake.observe(bigint)', 'EXECUTE') THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
      MESSAGE = format('role %s may not do what adopt() does', quote_ident(current_user)),
      DETAIL = coalesce('It does not own ' || not_owned || '.', 'It may not call snowflake.observe().'),
      HINT = 'Call adopt() as the owner of the database, who owns these tables as well, or as a superuser.';
  END IF;
  -- Whatever would keep the default from minting is said now, by an error of its own.
  PERFORM snowflake.next_id(shard);

  SELECT array_agg(DISTINCT r.referring), string_agg(format('%s.%I %s', r.referring, attname, format_type(atttypid, atttypmod)), ', ')
    INTO narrow, columns
    FROM snowflake.referring_columns(relation, id.attnum) AS r JOIN pg_attribute ON attrelid = r.referring AND attnum = r.number
   WHERE atttypid <> 'bigint'::regtype;
  IF narrow IS NOT NULL THEN
    SELECT string_agg(h, ', ') INTO hindering
      FROM snowflake.referring_columns(relation, id.attnum) AS r JOIN pg_attribute ON attrelid = r.referring AND attnum = r.number,
           snowflake.hindrances(r.referring, r.number) AS h
     WHERE atttypid <> 'bigint'::regtype;
    IF hindering IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
        MESSAGE = format('%s cannot be made bigint', columns),
        DETAIL = format('In the way: %s.', hindering),
        HINT = 'Take these away, and make them anew in the same transaction.';
    END IF;
    SELECT sum(pg_total_relation_size(t)) INTO bytes FROM unnest(narrow) AS t;
    IF NOT rewrite THEN
      RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = format('not all columns are bigint: %s', columns),
        DETAIL = format('Their tables, %s with all indexes, would be written anew. Meanwhile nobody reads or writes them: about %s seconds at 20 MB a second.',
                        pg_size_pretty(bytes), round(bytes / 2e7, 1)),
        HINT = 'Pass rewrite => true, or move to a column of its own as from UUIDs.';
    END IF;
    -- A changed type has PostgreSQL compare the rows of both tables again, as the owner of the one that is changed.
    SELECT string_agg(format('%s of %s', quote_ident(conname), conrelid::regclass), ', ' ORDER BY conname) INTO foreign_keys
      FROM pg_constraint AS k JOIN pg_class AS f ON f.oid = conrelid JOIN pg_class AS p ON p.oid = confrelid
     WHERE contype = 'f' AND f.relowner <> p.relowner
       AND EXISTS (SELECT FROM snowflake.referring_columns(relation, id.attnum) AS r JOIN pg_attribute ON attrelid = r.referring AND attnum = r.number
                    WHERE atttypid <> 'bigint'::regtype
                      AND (r.referring = conrelid AND r.number = ANY (conkey) OR r.referring = confrelid AND r.number = ANY (confkey)));
    IF foreign_keys IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = format('foreign keys connect tables of several owners: %s', foreign_keys),
        DETAIL = 'To check them again would run code of one owner with the rights of the other.',
        HINT = 'Give the tables to one role, or drop these foreign keys, and create them again in the same transaction.';
    END IF;
    PERFORM snowflake.try_bigint(relation, id.attnum);
  END IF;
  PERFORM snowflake.refuse_future_ids(relation, id.attname, false);

  RETURN QUERY
    SELECT caller, format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', string_agg(t::text, ', ' ORDER BY t <> relation, t))
      FROM unnest(array_remove(narrow, relation) || relation) AS t;
  RETURN QUERY
    SELECT relowner, format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint', r.referring, attname)
      FROM snowflake.referring_columns(relation, id.attnum) AS r JOIN pg_attribute ON attrelid = r.referring AND attnum = r.number
      JOIN pg_class AS c ON c.oid = r.referring
     WHERE atttypid <> 'bigint'::regtype ORDER BY r.referring <> relation, r.referring, r.number;
  role := (SELECT relowner FROM pg_class WHERE oid = relation);
  IF id.attidentity <> '' THEN
    statement := format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', relation, id.attname);
    RETURN NEXT;
  END IF;
  statement := format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT snowflake.next_id(%s)', relation, id.attname, shard);
  RETURN NEXT;
  RETURN QUERY
    SELECT adopt_steps.role, format(CASE WHEN drop_sequence THEN 'DROP SEQUENCE %s' ELSE 'ALTER SEQUENCE %s OWNED BY NONE' END, s.objid::regclass)
      FROM pg_depend AS s
     WHERE s.classid = 'pg_class'::regclass AND s.refclassid = 'pg_class'::regclass AND s.refobjid = relation
       AND s.refobjsubid = id.attnum AND s.deptype = 'a' AND (SELECT relkind = 'S' FROM pg_class WHERE oid = s.objid);
  role := caller;
  statement := format('SELECT snowflake.observe(highest) FROM snowflake.ends_of(%L, %L)', relation, id.attname);
  RETURN NEXT;
END
$$;
COMMENT ON FUNCTION snowflake.adopt_steps(regclass, integer, name, boolean, boolean) IS
  'Internal: for adopt(): its statements in their order, and with whose rights each of them runs';

CREATE FUNCTION snowflake.adopt_statements(relation regclass, shard integer, id_column name DEFAULT NULL,
                                           rewrite boolean DEFAULT false, drop_sequence boolean DEFAULT false)
  RETURNS SETOF text
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
  SELECT s.statement FROM snowflake.adopt_steps(relation, shard, id_column, rewrite, drop_sequence) AS s
$$;
COMMENT ON FUNCTION snowflake.adopt_statements(regclass, integer, name, boolean, boolean) IS
  'The statements of adopt(), one a row, after the same checks; changes nothing but that an id is minted';

-- They run after the default, and what they do with the column cannot be seen.
CREATE FUNCTION snowflake.tell_triggers(relation regclass, attribute name) RETURNS void
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  before_insert text;
BEGIN
  SELECT string_agg(quote_ident(tgname), ', ' ORDER BY tgname) INTO before_insert
    FROM pg_trigger JOIN pg_proc AS p ON p.oid = tgfoid
   WHERE tgrelid = relation AND NOT tgisinternal AND tgenabled <> 'D'
     AND tgtype & 7 = 7   -- for each row, before, INSERT
     AND NOT (proname = 'set_id' AND pronamespace = 'snowflake'::regnamespace);
  IF before_insert IS NOT NULL THEN
    RAISE NOTICE USING MESSAGE = format('triggers of %s run after the default of %I, and may put another number there', relation, attribute),
      DETAIL = format('They are %s.', before_insert),
      HINT = 'Drop the one that has filled the column so far, if one has, in the same transaction.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.tell_triggers(regclass, name) IS 'Internal: for adopt(): a notice of triggers before INSERT';

-- A function that has made ids so far goes on with it for other tables: those might be ids that are minted now.
CREATE FUNCTION snowflake.refuse_shared_function(relation regclass, attribute smallint) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  others text;
BEGIN
  SELECT string_agg(DISTINCT format('%s.%I', o.adrelid::regclass, attname), ', ') INTO others
    FROM pg_attrdef AS d JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
    JOIN pg_proc AS p ON u.refclassid = 'pg_proc'::regclass AND p.oid = u.refobjid
    JOIN pg_depend AS v ON v.classid = u.classid AND v.refclassid = u.refclassid AND v.refobjid = u.refobjid
    JOIN pg_attrdef AS o ON o.oid = v.objid AND o.oid <> d.oid
    JOIN pg_attribute AS a ON a.attrelid = o.adrelid AND a.attnum = o.adnum
   WHERE d.adrelid = refuse_shared_function.relation AND d.adnum = attribute AND a.atttypid = 'bigint'::regtype
     AND pronamespace NOT IN ('pg_catalog'::regnamespace, 'snowflake'::regnamespace)
     AND NOT EXISTS (SELECT FROM pg_locks AS l
                      WHERE l.pid = pg_backend_pid() AND l.relation = o.adrelid AND l.mode = 'AccessExclusiveLock' AND l.granted);
  IF others IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('the function that makes the ids of %s makes those of other columns', relation),
      DETAIL = format('They are %s. What it gives them later may be an id that next_id() has minted.', others),
      HINT = 'In one transaction, LOCK TABLE all of them, and adopt each.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_shared_function(regclass, smallint) IS
  'Internal: for adopt(): an error where the function in a default is in that of another column, whose table is not locked';

CREATE FUNCTION snowflake.refuse_snapshot(routine text) RETURNS void
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION USING ERRCODE = 'active_sql_transaction',
      MESSAGE = format('%s needs isolation level read committed', routine),
      DETAIL = format('At %s it would not see the rows that others write meanwhile.', current_setting('transaction_isolation')),
      HINT = 'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_snapshot(text) IS
  'Internal: for procedures: an error where a transaction sees only what was there when it began';

-- A writer that waits for us gives up after deadlock_timeout; we after less, all tables together. lock_timeout is in
-- the SET clauses to be as before in the end.
CREATE PROCEDURE snowflake.adopt(relation regclass, shard integer, id_column name DEFAULT NULL, rewrite boolean DEFAULT false,
                                 drop_sequence boolean DEFAULT false, dry_run boolean DEFAULT false,
                                 patience interval DEFAULT '1 min')
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' SET row_security = off
AS $$
DECLARE
  give_up CONSTANT timestamptz := clock_timestamp() + patience;
  statements text[];
  roles oid[];
  tables integer;
  holders text;
BEGIN
  PERFORM snowflake.refuse_null('adopt()', dry_run::text, patience::text);
  PERFORM snowflake.refuse_snapshot('adopt()');
  SELECT array_agg(s.statement), array_agg(s.role) INTO statements, roles
    FROM snowflake.adopt_steps(relation, shard, id_column, rewrite, drop_sequence) AS s;
  PERFORM snowflake.refuse_future_ids(relation, (snowflake.column_of(relation, id_column)).attname, true);
  PERFORM snowflake.tell_triggers(relation, (snowflake.column_of(relation, id_column)).attname);
  IF dry_run THEN
    FOR n IN 1 .. cardinality(statements) LOOP
      RAISE INFO '%;', statements[n];
    END LOOP;
    PERFORM snowflake.refuse_shared_function(relation, (snowflake.column_of(relation, id_column)).attnum);
    RETURN;
  END IF;
  SELECT count(DISTINCT r.referring) INTO tables
    FROM snowflake.referring_columns(relation, (snowflake.column_of(relation, id_column)).attnum) AS r;
  PERFORM set_config('lock_timeout', greatest(1, least(500, extract(epoch FROM current_setting('deadlock_timeout')::interval) * 500)
                                                 / tables)::integer || 'ms', true);
  FOR attempt IN 1 .. 2147483647 LOOP
    BEGIN
      EXECUTE statements[1];
      -- What the tables are like is certain only now.
      IF EXISTS (SELECT FROM snowflake.adopt_steps(relation, shard, id_column, rewrite, drop_sequence) AS s
                 HAVING (array_agg(s.statement), array_agg(s.role)) IS DISTINCT FROM (statements, roles)) THEN
        RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
          MESSAGE = format('table %s, or one that refers to it, was altered meanwhile', relation),
          DETAIL = 'The statements are no longer those that were checked.', HINT = 'Call adopt() again.';
      END IF;
      PERFORM snowflake.refuse_shared_function(relation, (snowflake.column_of(relation, id_column)).attnum);
      FOR n IN 2 .. cardinality(statements) LOOP
        PERFORM snowflake.run_as(roles[n], statements[n]);
      END LOOP;
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      IF clock_timestamp() >= give_up THEN
        SELECT string_agg(DISTINCT format('%s of %s', l.relation::regclass,
                 coalesce('prepared transaction ' || quote_literal(gid), format('process %s (%s)', l.pid, coalesce(backend_type, 'unknown')))), ', ') INTO holders
          FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
          LEFT JOIN pg_locks AS own ON l.pid IS NULL AND own.pid IS NULL AND own.locktype = 'transactionid' AND own.virtualtransaction = l.virtualtransaction
          LEFT JOIN pg_prepared_xacts AS x ON x.transaction = own.transactionid
         WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND l.relation IN (SELECT r.referring FROM snowflake.referring_columns(adopt.relation, (snowflake.column_of(adopt.relation, id_column)).attnum) AS r);
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
          MESSAGE = format('no lock on %s in %s attempts', relation, attempt),
          DETAIL = format('Nothing has changed. Locks are held now on %s.', coalesce(holders, 'none of its tables')),
          HINT = 'Call adopt() again when long transactions and vacuums are over, or with more patience.';
      END IF;
    END;
    PERFORM pg_sleep(least(0.05 * attempt, 2));
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake.adopt(regclass, integer, name, boolean, boolean, boolean, interval) IS
  'Has a column mint from now on: bigserial, serial, identity, plain bigint, a function of others. Checks, then one transaction with short locks, tried again for as long as patience says; old ids stay below. Columns that are not bigint, at any depth of references, are written anew only with rewrite; the sequence is kept, without its owner, unless drop_sequence; dry_run says the statements and runs none';
