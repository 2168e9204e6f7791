-- adopt() changes the default of existing key columns. New rows then get minted ids instead of values of a sequence or
-- of the application. A plan of adopt() is a list of SQL statements for one transaction.

CREATE TYPE snowflake.step AS (locks regclass, role oid, statement text);
COMMENT ON TYPE snowflake.step IS
  'Internal: for adopt(): a statement, and the role that runs the statement. If the statement only locks a relation '
  'for the next steps, the attribute "locks" is this relation; otherwise it is null';

CREATE FUNCTION snowflake.sequences_of(key snowflake.key_column) RETURNS SETOF regclass
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT DISTINCT s.oid::regclass
    FROM snowflake.with_children(key.relation) AS t (relation)
    JOIN pg_attribute ON attrelid = t.relation AND attname = key.attribute
    LEFT JOIN pg_attrdef AS d ON adrelid = attrelid AND adnum = attnum
    JOIN pg_depend AS u ON u.classid = 'pg_class'::regclass AND u.refclassid = 'pg_class'::regclass
                           AND u.refobjid = attrelid AND u.refobjsubid = attnum AND u.deptype = 'a'
                        OR u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
                          AND u.refclassid = 'pg_class'::regclass
    JOIN pg_class AS s ON s.oid IN (u.objid, u.refobjid) AND relkind = 'S'
$$;
COMMENT ON FUNCTION snowflake.sequences_of(snowflake.key_column) IS
  'Internal: for adopt(): returns the sequences that a column owns, or that its default uses, except the sequence of '
  'an identity column';

CREATE FUNCTION snowflake.other_uses(sequence regclass, keys snowflake.key_column[]) RETURNS text
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT string_agg(o, ', ')
    FROM (SELECT pg_describe_object(u.classid, u.objid, u.objsubid)
            FROM pg_depend AS u
           WHERE u.refclassid = 'pg_class'::regclass AND u.refobjid = sequence AND u.deptype = 'n'
             AND NOT EXISTS (SELECT FROM snowflake.attributes_of(keys) AS a JOIN pg_attrdef AS d
                                       ON adrelid = a.relation AND adnum = a.attnum
                              WHERE u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid)
          UNION ALL
          SELECT pg_describe_object(refclassid, refobjid, refobjsubid)
            FROM pg_depend
           WHERE classid = 'pg_class'::regclass AND objid = sequence AND deptype IN ('a', 'i')
             AND refobjid NOT IN (SELECT a.relation FROM snowflake.attributes_of(keys) AS a)) AS f (o)
$$;
COMMENT ON FUNCTION snowflake.other_uses IS
  'Internal: for adopt(): returns the defaults and other objects that use a sequence, and the column that owns the '
  'sequence. The result does not contain the key columns themselves. The result is null if no other object uses the '
  'sequence';

-- A reader locks a view before the tables of the view. A writer locks a table before the table's sequence. LOCK TABLE
-- cannot lock a sequence or a foreign table, and also locks the tables of a view. The procedure adopt() locks views,
-- sequences and foreign tables by an ALTER TABLE that sets the owner to the current owner.
CREATE FUNCTION snowflake.lock_steps(keys snowflake.key_column[], columns snowflake.key_column[])
  RETURNS SETOF snowflake.step
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  WITH again AS MATERIALIZED (
    SELECT d.relation, coalesce(max(d.level) FILTER (WHERE d.class = 'pg_class'::regclass), 0) AS level
      FROM snowflake.dependents(columns) AS d GROUP BY 1)
  (SELECT a.relation, relowner, format('ALTER TABLE %s OWNER TO %s', a.relation, relowner::regrole)
     FROM again AS a JOIN pg_class ON oid = a.relation WHERE relkind IN ('v', 'm') ORDER BY a.level DESC, a.relation)
  UNION ALL
  (SELECT t.relation, CASE relkind WHEN 'f' THEN relowner ELSE quote_ident(current_user)::regrole::oid END,
          format(CASE relkind WHEN 'f' THEN 'ALTER TABLE %s OWNER TO %s'
                              ELSE 'LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE' END, t.relation, relowner::regrole)
     FROM (SELECT l.relation, min(l.root::oid)::regclass
             FROM (SELECT snowflake.with_children(k.relation), k.relation FROM unnest(keys || columns) AS k
                   UNION ALL
                   SELECT r, coalesce(pg_partition_root(r), r)
                     FROM snowflake.foreign_keys_of(columns), unnest(ARRAY[conrelid, confrelid]::regclass[]) AS r
                   UNION ALL
                   SELECT a.relation, a.relation FROM again AS a) AS l (relation, root)
            GROUP BY 1) AS t (relation, root) JOIN pg_class ON oid = t.relation
    WHERE relkind NOT IN ('v', 'm')
    ORDER BY t.root IS DISTINCT FROM (keys[1]).relation, t.root, t.relation <> t.root, t.relation)
  UNION ALL
  (SELECT s.sequence, relowner, format('ALTER TABLE %s OWNER TO %s', s.sequence, relowner::regrole)
     FROM unnest(keys) AS k, snowflake.sequences_of(k) AS s (sequence) JOIN pg_class ON oid = s.sequence
    ORDER BY s.sequence)
$$;
COMMENT ON FUNCTION snowflake.lock_steps IS
  'Internal: for adopt(): returns the statements that lock views, tables and sequences';

-- Each table is rewritten once. A session compiles a PL/pgSQL routine again after ALTER ROUTINE. Without ALTER ROUTINE,
-- open sessions would keep the old types in trigger functions and in variables that are declared with %TYPE.
CREATE FUNCTION snowflake.widen_steps(columns snowflake.key_column[]) RETURNS SETOF snowflake.step
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  WITH again AS MATERIALIZED (
    SELECT d.*, relowner, concat(upper(i.type), ' ', i.identity) AS name
      FROM snowflake.dependents(columns) AS d JOIN pg_class ON oid = d.relation,
           pg_identify_object(d.class, d.object, 0) AS i)
  (SELECT NULL::regclass, proowner, format('ALTER ROUTINE %s SECURITY %s', p.oid::regprocedure,
                                          CASE WHEN prosecdef THEN 'DEFINER' ELSE 'INVOKER' END)
     FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
    WHERE lanname = 'plpgsql' AND pg_has_role(proowner, 'USAGE')
      AND EXISTS (SELECT FROM snowflake.attributes_of(columns) AS a JOIN pg_class AS c ON c.oid = a.relation
                   WHERE p.oid IN (SELECT tgfoid FROM pg_trigger WHERE tgrelid = a.relation)
                      OR prosrc ~* ('\m' || regexp_replace(relname, '\W', '.', 'g') || '\M.*%\s*TYPE\M'))
      AND snowflake.is_of_application('pg_proc'::regclass, p.oid, pronamespace) ORDER BY 3)
  UNION ALL
  (SELECT NULL, a.relowner, 'DROP ' || a.name FROM again AS a ORDER BY a.level DESC, a.name)
  UNION ALL
  (SELECT NULL, relowner, format('ALTER TABLE %s %s', w.relation, w.changes)
     FROM snowflake.changes_of(columns) AS w JOIN pg_class ON oid = w.relation ORDER BY w.relation)
  UNION ALL
  (SELECT NULL, coalesce(s.role, a.relowner), s.statement
     FROM again AS a, snowflake.recreate_statements(a.class, a.object) AS s ORDER BY a.level, a.name, s.n, s.statement)
$$;
COMMENT ON FUNCTION snowflake.widen_steps(snowflake.key_column[]) IS
  'Internal: for adopt(): returns the steps that drop the views and other objects over the columns, make the columns '
  'wider, and create these objects again';

CREATE FUNCTION snowflake.mint_steps(key snowflake.key_column, shard integer, drop_sequence boolean)
  RETURNS SETOF snowflake.step
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT NULL::regclass, s.role, s.statement
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace,
         LATERAL (SELECT quote_ident(current_user)::regrole::oid) AS caller (role),
         LATERAL (
           SELECT 1, c.relowner, format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', key.relation, key.attribute)
            WHERE (snowflake.attribute_of(key)).attidentity <> ''
           UNION ALL
           SELECT 2, c.relowner, format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT snowflake.next_id(%s)',
                                        key.relation, key.attribute, shard)
           UNION ALL
           SELECT 3, s.relowner, format(CASE WHEN drop_sequence AND snowflake.other_uses(q.sequence, ARRAY[key]) IS NULL
                                             THEN 'DROP SEQUENCE %s' ELSE 'ALTER SEQUENCE %s OWNED BY NONE' END,
                                        q.sequence)
             FROM snowflake.sequences_of(key) AS q (sequence) JOIN pg_class AS s ON s.oid = q.sequence
            WHERE NOT EXISTS (SELECT FROM pg_depend
                               WHERE classid = 'pg_class'::regclass AND objid = s.oid AND deptype IN ('a', 'i')
                                 AND refobjid NOT IN (SELECT snowflake.with_children(key.relation)))
           UNION ALL
           SELECT 4, caller.role, format('SELECT snowflake.observe(highest) FROM snowflake.ends_of(%L, %L) '
                                         'WHERE highest IS NOT NULL', key.relation, key.attribute)
           UNION ALL
           SELECT 5, caller.role, format('INSERT INTO snowflake.adopted VALUES (%L, %L) ON CONFLICT DO NOTHING',
                                         format('%I.%I', nspname, relname), key.attribute)) AS s (n, role, statement)
   WHERE c.oid = key.relation ORDER BY s.n, s.statement
$$;
COMMENT ON FUNCTION snowflake.mint_steps IS
  'Internal: for adopt(): returns the steps that set a default that mints ids, and record the column in the table '
  'snowflake.adopted';

CREATE FUNCTION snowflake.refuse_rights(steps snowflake.step[]) RETURNS void
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT snowflake.refuse('42501', format('role %I does not have the rights for adopt()', current_user),
           coalesce('The role does not own ' || n.relations || '.',
                    'The role is not a member of ' || r.roles || ', which granted privileges on a view.',
                    'The role may not call snowflake.observe().'),
           'Call adopt() as a superuser, or as the owner of the database if it also owns these relations.')
    FROM (SELECT string_agg(DISTINCT oid::regclass::text, ', ') FROM pg_class
           WHERE oid IN (SELECT s.locks FROM unnest(steps) AS s) AND NOT pg_has_role(relowner, 'USAGE'))
      AS n (relations),
         (SELECT string_agg(DISTINCT s.role::regrole::text, ', ') FROM unnest(steps) AS s
           WHERE NOT pg_has_role(s.role, 'USAGE')) AS r (roles)
   WHERE concat(n.relations, r.roles) <> '' OR NOT has_function_privilege('snowflake.observe(bigint)', 'EXECUTE')
$$;
COMMENT ON FUNCTION snowflake.refuse_rights(snowflake.step[]) IS
  'Internal: for adopt(): raises an error if the caller does not have the rights of a role that runs a step, or that '
  'owns a locked relation';

-- If `columns` is null, adopt_steps() uses the keys and all columns that refer to the keys by foreign keys. It looks up
-- the columns at each call.
CREATE FUNCTION snowflake.adopt_steps(keys snowflake.key_column[], columns snowflake.key_column[], shard integer,
                                      rewrite boolean, drop_sequence boolean, published boolean)
  RETURNS SETOF snowflake.step
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
  steps snowflake.step[];
BEGIN
  -- adopt_steps() raises the error SFOK0 itself, to roll back the subtransaction of the checks. The rollback releases
  -- the locks of the checks, before adopt() waits for the locks of its steps.
  BEGIN
    columns := coalesce(columns, ARRAY(SELECT r FROM snowflake.referring_columns(keys) AS r));
    columns := ARRAY(SELECT k FROM unnest(columns) AS k
      WHERE snowflake.wide_type((snowflake.attribute_of(k)).atttypid) IS NOT NULL);
    PERFORM snowflake.refuse_key(k.relation, snowflake.attribute_of(k)) FROM unnest(keys) AS k;
    steps := ARRAY(SELECT s FROM snowflake.lock_steps(keys, columns) AS s);
    PERFORM snowflake.refuse_rights(steps);
    -- Calls next_id(), so that adopt() raises an error if the new default could not mint ids.
    PERFORM snowflake.next_id(shard);
    IF columns <> '{}' THEN
      PERFORM snowflake.refuse_wide(columns, rewrite, published);
    END IF;
    PERFORM snowflake.refuse_future_ids(k.relation, k.attribute),
            snowflake.refuse_shared_function(k.relation, (snowflake.attribute_of(k)).attnum) FROM unnest(keys) AS k;
    steps := steps || ARRAY(SELECT s FROM snowflake.widen_steps(columns) AS s)
      || ARRAY(SELECT s FROM unnest(keys) AS k, snowflake.mint_steps(k, shard, drop_sequence) AS s);
    PERFORM snowflake.refuse_rights(steps);
    RAISE SQLSTATE 'SFOK0';
  EXCEPTION WHEN SQLSTATE 'SFOK0' THEN
    RETURN QUERY SELECT * FROM unnest(steps);
  END;
END
$$;
COMMENT ON FUNCTION snowflake.adopt_steps IS
  'Internal: for adopt(): returns all steps of a transaction, after all checks';

CREATE FUNCTION snowflake.refuse_locked(steps snowflake.step[], attempts integer, waited text) RETURNS void
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  WITH relations AS (
    SELECT s.locks AS relation FROM unnest(steps) AS s WHERE s.locks IS NOT NULL
    UNION ALL
    SELECT l.relation::regclass FROM pg_locks AS l WHERE steps IS NULL AND l.mode = 'AccessExclusiveLock'),
  holders (names) AS (
    SELECT string_agg(DISTINCT format('%s by %s', l.relation::regclass,
             coalesce('prepared transaction ' || quote_literal(gid), format('process %s (%s)', l.pid,
               coalesce(backend_type, 'unknown')))), ', ')
      FROM relations AS r JOIN pg_locks AS l USING (relation) LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
      LEFT JOIN pg_locks AS own ON l.pid IS NULL AND own.pid IS NULL AND own.locktype = 'transactionid'
                               AND own.virtualtransaction = l.virtualtransaction
      LEFT JOIN pg_prepared_xacts AS x ON x.transaction = own.transactionid
     WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
  SELECT snowflake.refuse('55P03', format('could not lock %s in %s attempts',
           CASE WHEN steps IS NULL THEN 'all tables of the plan'
                ELSE (SELECT string_agg(r.relation::text, ', ') FROM relations AS r) END, attempts),
           format('This transaction has changed nothing. These locks are held now: %s. The last wait for a lock ended '
                  'with: %s.',
             coalesce(holders.names, 'none'), waited),
           'Repeat the call after long transactions and vacuums have ended, or with a longer timeout.')
    FROM holders
$$;
COMMENT ON FUNCTION snowflake.refuse_locked IS
  'Internal: for adopt(): raises the error that lists the sessions and prepared transactions that hold the locks. If '
  'adopt() found locked tables before it had made a plan, the error lists all sessions that hold an ACCESS EXCLUSIVE '
  'lock';

-- A statement after the deadline still gets locks that are free.
CREATE FUNCTION snowflake.run_plan(steps snowflake.step[], that_lock boolean, until timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this snowflake.step;
BEGIN
  FOREACH this IN ARRAY steps LOOP
    CONTINUE WHEN (this.locks IS NOT NULL) <> that_lock;
    PERFORM set_config('lock_timeout', greatest(extract(epoch FROM until - clock_timestamp()) * 1000,
                                                CASE WHEN that_lock THEN 1 ELSE 10 END)::integer::text, true);
    PERFORM snowflake.run_as(this.role, this.statement);
  END LOOP;
EXCEPTION WHEN lock_not_available THEN
  PERFORM snowflake.refuse(SQLSTATE, this.statement, NULL, NULL);
WHEN syntax_error_or_access_rule_violation OR feature_not_supported THEN
  PERFORM snowflake.refuse(SQLSTATE, format('%s %s cannot be created again', lower(o.name[1]), o.name[2]),
            format('%s. This transaction has changed nothing.', rtrim(SQLERRM, '.')),
            'Create the functions that this object calls also for bigint arguments. Or drop this object, repeat the '
            'call, and create the object again.')
     FROM regexp_match(this.statement, '^CREATE (?:MATERIALIZED |CONSTRAINT )?(VIEW|TRIGGER|RULE|POLICY) '
                                       '((?:"(?:[^"]|"")*"|[^\s"])+)') AS o (name)
    WHERE o.name IS NOT NULL;
  RAISE;
END
$$;
COMMENT ON FUNCTION snowflake.run_plan(snowflake.step[], boolean, timestamptz) IS
  'Internal: for adopt(): runs either the steps that lock relations, or all other steps. Raises an error if a step '
  'would have to wait for a lock after the given time';

-- A relation can change until the relation is locked, so the plan is made again after all relations are locked. If a
-- writer and the transaction of adopt() wait for each other, the writer may fail after deadlock_timeout. The deadline
-- for all locks of adopt() is earlier than deadlock_timeout, so adopt() gives up before a writer fails.
CREATE PROCEDURE snowflake.carry_out(keys snowflake.key_column[], columns snowflake.key_column[], shard integer,
                                     rewrite boolean, drop_sequence boolean, published boolean, timeout interval)
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' SET row_security = off
  SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET extra_float_digits = 3 SET array_nulls = on
  SET standard_conforming_strings = on SET quote_all_identifiers = off SET default_tablespace = ''
AS $$
DECLARE
  give_up CONSTANT timestamptz := clock_timestamp() + timeout;
  until timestamptz;
  steps snowflake.step[];
BEGIN
  FOR attempt IN 1 .. 2147483647 LOOP
    BEGIN
      steps := NULL;
      steps := ARRAY(SELECT s FROM snowflake.adopt_steps(keys, columns, shard, rewrite, drop_sequence, published) AS s);
      until := clock_timestamp() + least('500 ms', current_setting('deadlock_timeout')::interval / 2);
      PERFORM snowflake.run_plan(steps, true, until);
      PERFORM snowflake.refuse('40001', format('%s or a relation that is changed with it was altered in the meantime',
                                               steps[1].locks),
                'The checked statements do not fit the altered relations.', 'Repeat the call.')
        WHERE steps <> ARRAY(SELECT s FROM snowflake.adopt_steps(keys, columns, shard, rewrite, drop_sequence,
                                                                 published) AS s);
      PERFORM snowflake.run_plan(steps, false, until);
      RETURN;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF clock_timestamp() >= give_up THEN
        PERFORM snowflake.refuse_locked(steps, attempt, SQLERRM);
      END IF;
    END;
    PERFORM pg_sleep(least(0.05 * attempt, 2, extract(epoch FROM give_up - clock_timestamp())));
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake.carry_out(snowflake.key_column[], snowflake.key_column[], integer, boolean, boolean,
  boolean, interval) IS
  'Internal: for adopt(): runs adopt_steps() in one transaction. If a lock is not available after a short wait, '
  'releases all locks and tries again later';

CREATE PROCEDURE snowflake.adopt(relation regclass, shard integer, id_column name DEFAULT NULL,
                                 rewrite boolean DEFAULT false, drop_sequence boolean DEFAULT false,
                                 dry_run boolean DEFAULT false, timeout interval DEFAULT '1 min',
                                 published boolean DEFAULT false)
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
  give_up CONSTANT timestamptz := clock_timestamp() + timeout;
  plan record;
BEGIN
  PERFORM snowflake.refuse_null('adopt()', relation::text, shard::text, rewrite::text, drop_sequence::text,
    published::text, dry_run::text, timeout::text), snowflake.refuse_snapshot('adopt()');
  plan := snowflake.plan(ARRAY[(relation, (snowflake.column_of(relation, id_column)).attname)::snowflake.key_column],
                         NULL, '{}', false, shard, rewrite, drop_sequence, published, timeout);
  IF dry_run THEN
    PERFORM snowflake.tell_plan(plan.lines);
  ELSE
    CALL snowflake.carry_out(plan.keys, NULL, shard, rewrite, drop_sequence, published, give_up - clock_timestamp());
  END IF;
  PERFORM snowflake.tell_remaining(plan.remaining);
END
$$;
COMMENT ON PROCEDURE snowflake.adopt(regclass, integer, name, boolean, boolean, boolean, interval, boolean) IS
  'Changes the default of a column, so that new rows get ids. The column may be serial, bigserial, an identity '
  'column, a plain bigint, or filled by another function. First checks the column, then changes it in one transaction '
  'with short waits for locks. Tries again until the timeout. New ids are greater than old ids. If the column or a '
  'column that refers to it is not bigint, pass rewrite => true to make these columns bigint. Views over these '
  'columns are then created again. Pass published => true if the columns of subscribers are bigint. The old sequence '
  'of the column is kept without an owner, unless drop_sequence is true. With dry_run => true, the call only shows '
  'the statements';
