-- Moving in: columns that have their numbers from elsewhere mint from now on. A plan is a list of steps of one
-- transaction.

CREATE TYPE snowflake.step AS (locks regclass, role oid, statement text);
COMMENT ON TYPE snowflake.step IS
  'Internal: for adopt(): a statement, the role as whom it runs, and the relation if it only takes the lock that '
  'later steps need';

-- Readers lock a view before its tables. A change of owner that changes nothing takes the lock on the view alone.
CREATE FUNCTION snowflake.lock_steps(key snowflake.key_column, columns snowflake.key_column[])
  RETURNS SETOF snowflake.step
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  (SELECT v.view, relowner, format('ALTER TABLE %s OWNER TO %s', v.view, relowner::regrole)
     FROM snowflake.views_over(columns) AS v JOIN pg_class ON oid = v.view ORDER BY v.level DESC, v.view)
  UNION ALL
  (SELECT t.relation, quote_ident(current_user)::regrole::oid, format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE',
    t.relation)
     FROM (SELECT snowflake.with_partitions(key.relation) WHERE key.relation IS NOT NULL
           UNION SELECT snowflake.with_partitions(k.relation) FROM unnest(columns) AS k
           UNION SELECT unnest(ARRAY[conrelid, confrelid])::regclass
                   FROM snowflake.foreign_keys_of(columns) AS f (key) JOIN pg_constraint ON oid = f.key) AS t (relation)
    ORDER BY snowflake.root_of(t.relation) IS DISTINCT FROM key.relation, snowflake.root_of(t.relation),
             t.relation <> snowflake.root_of(t.relation), t.relation)
$$;
COMMENT ON FUNCTION snowflake.lock_steps(snowflake.key_column, snowflake.key_column[]) IS
  'Internal: for adopt(): the locks on views, on top first, and on all tables that take part';

-- Each table is written once.
CREATE FUNCTION snowflake.widen_steps(columns snowflake.key_column[]) RETURNS SETOF snowflake.step
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  (SELECT NULL::regclass, relowner, format('DROP %sVIEW %s', CASE relkind WHEN 'm' THEN 'MATERIALIZED ' END, v.view)
     FROM snowflake.views_over(columns) AS v JOIN pg_class ON oid = v.view ORDER BY v.level DESC, v.view)
  UNION ALL
  (SELECT NULL, relowner, format('ALTER TABLE %s %s', w.relation, w.changes)
     FROM snowflake.changes_of(columns) AS w JOIN pg_class ON oid = w.relation)
  UNION ALL
  (SELECT NULL, s.role, s.statement
     FROM snowflake.views_over(columns) AS v CROSS
       JOIN snowflake.view_statements(v.view) WITH ORDINALITY AS s (role, statement, n)
    ORDER BY v.level, v.view, s.n)
$$;
COMMENT ON FUNCTION snowflake.widen_steps(snowflake.key_column[]) IS
  'Internal: for adopt(): drops the views over columns, makes the columns wider, and creates the views again';

CREATE FUNCTION snowflake.sequences_of(key snowflake.key_column) RETURNS SETOF regclass
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT DISTINCT s.oid::regclass
    FROM snowflake.with_partitions(key.relation) AS t (relation)
    JOIN pg_attribute ON attrelid = t.relation AND attname = key.attribute
    LEFT JOIN pg_attrdef AS d ON adrelid = attrelid AND adnum = attnum
    JOIN pg_depend AS u ON u.classid = 'pg_class'::regclass AND u.refclassid = 'pg_class'::regclass
                           AND u.refobjid = attrelid AND u.refobjsubid = attnum AND u.deptype = 'a'
                        OR u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
                          AND u.refclassid = 'pg_class'::regclass
    JOIN pg_class AS s ON s.oid IN (u.objid, u.refobjid) AND relkind = 'S'
$$;
COMMENT ON FUNCTION snowflake.sequences_of(snowflake.key_column) IS
  'Internal: for adopt(): the sequences that a column owns, or that its default uses; not that of an identity';

CREATE FUNCTION snowflake.mint_steps(key snowflake.key_column, shard integer, drop_sequence boolean)
  RETURNS SETOF snowflake.step
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  WITH class AS (SELECT c.*, nspname
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = key.relation),
  caller (role) AS (SELECT quote_ident(current_user)::regrole::oid)
  SELECT NULL::regclass, relowner, format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', key.relation, key.attribute)
    FROM class WHERE (snowflake.attribute_of(key)).attidentity <> ''
  UNION ALL
  SELECT NULL, relowner, format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT snowflake.next_id(%s)', key.relation,
    key.attribute, shard) FROM class
  UNION ALL
  (SELECT NULL, s.relowner, format(CASE WHEN drop_sequence
    THEN 'DROP SEQUENCE %s' ELSE 'ALTER SEQUENCE %s OWNED BY NONE' END, s.oid::regclass)
     FROM snowflake.sequences_of(key) AS q (sequence) JOIN pg_class AS s ON s.oid = q.sequence ORDER BY s.oid)
  UNION ALL
  SELECT NULL, caller.role, format('SELECT snowflake.observe(highest) FROM snowflake.ends_of(%L, %L)', key.relation,
    key.attribute) FROM caller
  UNION ALL
  SELECT NULL, caller.role, format('INSERT INTO snowflake.adopted VALUES (%L, %L) ON CONFLICT DO NOTHING',
    format('%I.%I', nspname, relname), key.attribute)
    FROM class, caller
$$;
COMMENT ON FUNCTION snowflake.mint_steps(snowflake.key_column, integer, boolean) IS
  'Internal: for adopt(): makes a bigint column mint ids that are greater than all in it, and remembers the column';

CREATE FUNCTION snowflake.adopt_steps(relation regclass, shard integer, id_column name, rewrite boolean,
  drop_sequence boolean, published boolean)
  RETURNS SETOF snowflake.step
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
  id pg_attribute;
  key snowflake.key_column;
  columns snowflake.key_column[];
BEGIN
  PERFORM snowflake.refuse_null('adopt()', relation::text, shard::text, rewrite::text, drop_sequence::text,
    published::text);
  id := snowflake.column_of(relation, id_column);
  key := (relation, id.attname);
  PERFORM snowflake.refuse_key(relation, id);
  columns := ARRAY(SELECT n FROM snowflake.narrow_columns(ARRAY[key]) AS n);
  PERFORM snowflake.refuse_rights(ARRAY(SELECT s.locks FROM snowflake.lock_steps(key, columns) AS s));
  -- Whatever would keep the default from minting is an error of its own.
  PERFORM snowflake.next_id(shard);
  IF columns <> '{}' THEN
    PERFORM snowflake.refuse_wide(columns, rewrite, published);
  END IF;
  PERFORM snowflake.refuse_future_ids(relation, id.attname, false), snowflake.refuse_shared_function(relation,
    id.attnum);
  RETURN QUERY SELECT * FROM snowflake.lock_steps(key, columns);
  RETURN QUERY SELECT * FROM snowflake.widen_steps(columns);
  RETURN QUERY SELECT * FROM snowflake.mint_steps(key, shard, drop_sequence);
END
$$;
COMMENT ON FUNCTION snowflake.adopt_steps(regclass, integer, name, boolean, boolean, boolean) IS
  'Internal: for adopt(): its steps, after all checks';

CREATE FUNCTION snowflake.adopt_statements(relation regclass, shard integer, id_column name DEFAULT NULL,
                                           rewrite boolean DEFAULT false, drop_sequence boolean DEFAULT false,
                                           published boolean DEFAULT false)
  RETURNS SETOF text
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
  SELECT s.statement FROM snowflake.adopt_steps(relation, shard, id_column, rewrite, drop_sequence, published) AS s
$$;
COMMENT ON FUNCTION snowflake.adopt_statements(regclass, integer, name, boolean, boolean, boolean) IS
  'The statements of adopt(), one a row, after the same checks; changes nothing but that an id is minted';

-- A writer that waits for us gives up after deadlock_timeout; we after less, all locks together.
CREATE FUNCTION snowflake.take_locks(steps snowflake.step[]) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms'
AS $$
DECLARE
  until CONSTANT timestamptz := clock_timestamp() + least('500 ms', current_setting('deadlock_timeout')::interval / 2);
  this snowflake.step;
BEGIN
  FOREACH this IN ARRAY steps LOOP
    CONTINUE WHEN this.locks IS NULL;
    PERFORM set_config('lock_timeout', greatest(1, extract(epoch
      FROM until - clock_timestamp()) * 1000)::integer || 'ms', true);
    PERFORM snowflake.run_as(this.role, this.statement);
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.take_locks(snowflake.step[]) IS
  'Internal: for adopt(): takes the locks of a plan, in half of deadlock_timeout or not at all';

CREATE FUNCTION snowflake.refuse_locked(steps snowflake.step[], attempts integer) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  relations CONSTANT oid[] := ARRAY(SELECT s.locks FROM unnest(steps) AS s WHERE s.locks IS NOT NULL);
  holders CONSTANT text := (
    SELECT string_agg(DISTINCT format('%s of %s', l.relation::regclass,
             coalesce('prepared transaction ' || quote_literal(gid), format('process %s (%s)', l.pid,
               coalesce(backend_type, 'unknown')))), ', ')
      FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
      LEFT JOIN pg_locks AS own ON l.pid IS NULL AND own.pid IS NULL AND own.locktype = 'transactionid'
                               AND own.virtualtransaction = l.virtualtransaction
      LEFT JOIN pg_prepared_xacts AS x ON x.transaction = own.transactionid
     WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.relation = ANY (relations)
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()));
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
    MESSAGE = format('no lock on %s in %s attempts', (SELECT string_agg(r::regclass::text, ', ')
      FROM unnest(relations) AS r), attempts),
    DETAIL = format('This transaction has changed nothing. Locks are held now on %s.', coalesce(holders,
      'none of these')),
    HINT = 'Repeat the call when long transactions and vacuums are over, or with a longer timeout.';
END
$$;
COMMENT ON FUNCTION snowflake.refuse_locked(snowflake.step[], integer) IS
  'Internal: for adopt(): the error that names who holds the locks';

CREATE FUNCTION snowflake.refuse_view(statement text, state text, message text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF statement ~ '^CREATE (MATERIALIZED )?VIEW ' THEN
    RAISE EXCEPTION USING ERRCODE = state,
      MESSAGE = format('view %s cannot be created again',
                       substring(statement, 'VIEW (.*?) (?:WITH \(|TABLESPACE|AS )')),
      DETAIL = format('%s. This transaction has changed nothing.', rtrim(message, '.')),
      HINT = 'Make functions that it calls for bigint as well, or drop the view and create it again.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_view(text, text, text) IS
  'Internal: for adopt(): the error of CREATE VIEW, with the name of the view';

-- What relations are like is certain only when they are locked, so the plan is made again then. The views that were
-- created again are compared with what they were: only their definitions may read differently, because casts may be
-- gone.
CREATE PROCEDURE snowflake.carry_out(plan text, timeout interval)
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' SET row_security = off
AS $$
DECLARE
  give_up CONSTANT timestamptz := clock_timestamp() + timeout;
  steps snowflake.step[];
  again snowflake.step[];
  this snowflake.step;
BEGIN
  FOR attempt IN 1 .. 2147483647 LOOP
    BEGIN
      EXECUTE plan INTO steps;
      PERFORM snowflake.take_locks(steps);
      EXECUTE plan INTO again;
      IF again IS DISTINCT FROM steps THEN
        RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
          MESSAGE = format('%s, or a relation that belongs to it, was altered in the meantime',
            steps[cardinality(steps)].locks),
          DETAIL = 'The statements are no longer those that were checked.', HINT = 'Repeat the call.';
      END IF;
      FOREACH this IN ARRAY steps LOOP
        CONTINUE WHEN this.locks IS NOT NULL;
        PERFORM snowflake.run_as(this.role, this.statement);
      END LOOP;
      PERFORM snowflake.refuse_other_views(steps);
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      IF clock_timestamp() >= give_up THEN
        PERFORM snowflake.refuse_locked(steps, attempt);
      END IF;
    WHEN syntax_error_or_access_rule_violation OR feature_not_supported THEN
      PERFORM snowflake.refuse_view(this.statement, SQLSTATE, SQLERRM);
      RAISE;
    END;
    PERFORM pg_sleep(least(0.05 * attempt, 2));
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake.carry_out(text, interval) IS
  'Internal: for adopt(): runs the steps that a query returns as an array, in one transaction, with short waits for '
  'locks that are tried again';

CREATE FUNCTION snowflake.refuse_other_views(steps snowflake.step[]) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  other CONSTANT text := (
    SELECT string_agg(s.statement, '; ')
      FROM unnest(steps) AS d,
           LATERAL snowflake.view_statements(to_regclass(substring(d.statement,
             '^DROP (?:MATERIALIZED )?VIEW (.*)'))) AS s
     WHERE d.locks IS NULL AND d.statement ~ '^DROP (MATERIALIZED )?VIEW ' AND s.statement !~ '^CREATE '
       AND (s.role, s.statement) NOT IN (SELECT t.role, t.statement FROM unnest(steps) AS t));
BEGIN
  IF other IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'a view that was created again is not as it was',
      DETAIL = format('It has also: %s.', other),
      HINT = 'Drop the event trigger or the default privileges that add this, or drop the view first.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_other_views(snowflake.step[]) IS
  'Internal: for adopt(): an error where views that were created again have owners, privileges or comments that '
  'they had not';

CREATE PROCEDURE snowflake.adopt(relation regclass, shard integer, id_column name DEFAULT NULL,
                                 rewrite boolean DEFAULT false, drop_sequence boolean DEFAULT false,
                                 dry_run boolean DEFAULT false, timeout interval DEFAULT '1 min',
                                 published boolean DEFAULT false)
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
  plan CONSTANT text := format('SELECT array_agg(s) FROM snowflake.adopt_steps(%L, %L, %L, %L, %L, %L) AS s',
                               relation, shard, id_column, rewrite, drop_sequence, published);
  id pg_attribute;
  key snowflake.key_column;
  columns snowflake.key_column[];
  remaining text;
  steps snowflake.step[];
BEGIN
  PERFORM snowflake.refuse_null('adopt()', dry_run::text, timeout::text);
  PERFORM snowflake.refuse_snapshot('adopt()');
  EXECUTE plan INTO steps;
  id := snowflake.column_of(relation, id_column);
  key := (relation, id.attname);
  columns := ARRAY(SELECT n FROM snowflake.narrow_columns(ARRAY[key]) AS n);
  remaining := snowflake.remaining_text(ARRAY[key], columns, drop_sequence);
  PERFORM snowflake.refuse_future_ids(relation, id.attname, true), snowflake.tell_triggers(relation, id.attname);
  IF dry_run THEN
    PERFORM snowflake.tell_plan(steps, columns);
  ELSE
    CALL snowflake.carry_out(plan, timeout);
  END IF;
  PERFORM snowflake.tell_remaining(remaining);
END
$$;
COMMENT ON PROCEDURE snowflake.adopt(regclass, integer, name, boolean, boolean, boolean, interval, boolean) IS
  'Has a column mint from now on: bigserial, serial, identity, plain bigint, a function of others. Checks, then one '
  'transaction with short locks, tried again until the timeout; old ids stay below. Columns that are not '
  'bigint, at any depth of references, are written anew only with rewrite, and the views over them are created '
  'again; published tells that subscribers have bigint columns; the sequence is kept, without its owner, unless '
  'drop_sequence; dry_run shows the statements and runs none';
