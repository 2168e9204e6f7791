-- adopt_schemas() changes every primary key column that a sequence fills in the given schemas, in the same way as
-- adopt(). All columns become wider first, so that every id that is minted later fits into each column. PostgreSQL
-- supports foreign keys between integer and bigint columns, so one column can become wider before the other.

CREATE FUNCTION snowflake.keys_of_schemas(schemas name[], leave_out regclass[], filled_by text[])
  RETURNS snowflake.key_column[]
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  WITH minting AS MATERIALIZED (SELECT f.relation, f.attribute FROM snowflake.filled_columns() AS f WHERE f.holds_ids),
  keys AS (
    SELECT (c.oid, attname)::snowflake.key_column AS key, relkind = 'p' AND indnkeyatts > 1 AS of_several,
           CASE WHEN (c.oid, attname) IN (SELECT relation, attribute FROM minting) THEN 'snowflake'
                WHEN attidentity <> '' OR EXISTS (SELECT snowflake.sequences_of((c.oid, attname))) THEN 'sequence'
                ELSE 'application' END AS filled_by,
           EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = c.oid AND attnum = ANY (conkey))
             AS refers
      FROM pg_namespace AS n JOIN pg_class AS c ON relnamespace = n.oid
      JOIN pg_index ON indrelid = c.oid AND indisprimary
      JOIN pg_attribute ON attrelid = c.oid AND attnum = ANY (indkey::smallint[])
     WHERE nspname = ANY (schemas) AND relkind IN ('r', 'p') AND c.oid <> ALL (leave_out)
       AND (indnkeyatts = 1 OR relkind = 'p') AND attgenerated = '' AND attinhcount = 0
       AND atttypid IN ('bigint'::regtype, 'integer'::regtype, 'smallint'::regtype)
       AND snowflake.is_of_application('pg_class'::regclass, c.oid, relnamespace))
  SELECT CASE WHEN schemas IS NOT NULL THEN coalesce(array_agg(k.key ORDER BY (k.key).relation::text), '{}') END
    FROM keys AS k
   WHERE k.filled_by = ANY (keys_of_schemas.filled_by)
     AND (k.filled_by <> 'application' OR NOT k.of_several AND NOT k.refers)
$$;
COMMENT ON FUNCTION snowflake.keys_of_schemas IS
  'Internal: for adopt_schemas(): returns the primary keys that snowflake, a sequence or the application fills';

CREATE FUNCTION snowflake.remaining_keys(schemas name[], leave_out regclass[], shard integer) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT format('key %s.%I has no sequence: CALL snowflake.adopt(%1$L, %3$s, %2$L, rewrite => true);',
                k.relation, k.attribute, shard)
    FROM unnest(snowflake.keys_of_schemas(schemas, leave_out, '{application}')) AS k
  UNION ALL
  SELECT format('column %s.%I has a sequence, but is not a primary key: CALL snowflake.adopt(%1$L, %3$s, %2$L, '
                'rewrite => true);', c.oid::regclass, attname, shard)
    FROM pg_namespace AS n JOIN pg_class AS c ON relnamespace = n.oid JOIN pg_attribute ON attrelid = c.oid
   WHERE nspname = ANY (schemas) AND relkind IN ('r', 'p') AND c.oid <> ALL (leave_out)
     AND attnum > 0 AND attinhcount = 0 AND NOT attisdropped
     AND (attidentity <> '' OR atthasdef AND EXISTS (SELECT snowflake.sequences_of((c.oid, attname))))
     AND snowflake.is_of_application('pg_class'::regclass, c.oid, relnamespace)
     AND (c.oid, attname)::snowflake.key_column <> ALL (snowflake.keys_of_schemas(schemas, leave_out, '{sequence}'))
$$;
COMMENT ON FUNCTION snowflake.remaining_keys IS
  'Internal: for adopt_schemas(): returns keys that the application fills, and other columns that a sequence fills';

-- columns_of_schemas() finds columns by foreign keys, and by names that look like ids. If a column was found only by
-- its name, and its type cannot become bigint or bigint[], columns_of_schemas() omits the column.
CREATE FUNCTION snowflake.columns_of_schemas(keys snowflake.key_column[], schemas name[], leave_out regclass[],
                                             by_name boolean) RETURNS SETOF snowflake.key_column
  LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
  SELECT r.* FROM snowflake.referring_columns(keys) AS r
   WHERE snowflake.wide_type((snowflake.attribute_of(r)).atttypid) IS NOT NULL
  UNION ALL
  SELECT n.relation, n.attribute
    FROM snowflake.named_columns(keys) AS n JOIN pg_class AS c ON c.oid = n.relation,
         LATERAL (SELECT ARRAY[(n.relation, n.attribute)::snowflake.key_column]) AS own (columns)
   WHERE by_name AND relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname = ANY (schemas))
     AND c.oid <> ALL (leave_out) AND pg_has_role(relowner, 'USAGE')
     AND snowflake.wide_type((snowflake.attribute_of((n.relation, n.attribute))).atttypid) IS NOT NULL
     AND NOT EXISTS (SELECT snowflake.hindrances(own.columns))
     AND NOT EXISTS (SELECT snowflake.narrow_calls(own.columns)) AND NOT EXISTS (SELECT snowflake.try_wide(own.columns))
$$;
COMMENT ON FUNCTION snowflake.columns_of_schemas IS
  'Internal: for adopt_schemas(): returns the columns whose type will become bigint or bigint[]';

-- Tables that one view reads are changed together, so that the view is created again only once.
CREATE FUNCTION snowflake.transactions(changed snowflake.key_column[], minting snowflake.key_column[])
  RETURNS TABLE (columns snowflake.key_column[], keys snowflake.key_column[])
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE shown AS MATERIALIZED (
    SELECT k.relation, d.relation AS view FROM unnest(changed) AS k, LATERAL snowflake.dependents(ARRAY[k]) AS d
     WHERE d.class = 'pg_class'::regclass),
  joined (relation, other) AS (
    SELECT k.relation, k.relation FROM unnest(changed) AS k
    UNION
    SELECT j.relation, b.relation
      FROM joined AS j JOIN shown AS a ON a.relation = j.other JOIN shown AS b ON b.view = a.view),
  first (relation, first) AS (SELECT j.relation, min(j.other::oid) FROM joined AS j GROUP BY 1)
  (SELECT array_agg(k ORDER BY k.relation, k.attribute), '{}'::snowflake.key_column[]
     FROM unnest(changed) AS k JOIN first AS f USING (relation) GROUP BY f.first ORDER BY f.first)
  UNION ALL
  SELECT NULL, ARRAY[m] FROM unnest(minting) AS m
$$;
COMMENT ON FUNCTION snowflake.transactions(snowflake.key_column[], snowflake.key_column[]) IS
  'Internal: for adopt_schemas(): returns the transactions: first the transactions that make columns wider, then the '
  'transactions that set a default that mints ids';

CREATE FUNCTION snowflake.refuse_schemas(schemas name[], leave_out regclass[]) RETURNS void
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT snowflake.refuse('22004', CASE WHEN array_position(schemas, NULL) > 0 THEN 'the list of schemas contains null'
                                        WHEN array_position(leave_out, NULL) > 0 THEN 'leave_out contains null' END,
           format('The schemas passed are %s, and the tables to leave out are %s.', schemas, leave_out),
           'Pass only names that are not null.');
  SELECT snowflake.refuse('3F000', coalesce('schema ' || string_agg(quote_ident(n), ', ') || ' does not exist',
                                            CASE WHEN schemas = '{}' THEN 'the list of schemas is empty' END),
           format('The schemas passed are %s.', schemas), 'Pass the names of schemas: ''{public}''.')
    FROM unnest(schemas) AS n WHERE n NOT IN (SELECT nspname FROM pg_namespace)
$$;
COMMENT ON FUNCTION snowflake.refuse_schemas IS
  'Internal: for adopt_schemas(): raises an error if a schema does not exist, or if a list contains null';

-- All checks run before the first change. A statement that recreates a view or another dependent object can fail
-- although all checks have passed.
CREATE FUNCTION snowflake.plan(INOUT keys snowflake.key_column[], schemas name[], leave_out regclass[], by_name boolean,
                               shard integer, rewrite boolean, drop_sequence boolean, published boolean,
                               timeout interval, OUT columns snowflake.key_column[], OUT lines text[],
                               OUT remaining text[]) RETURNS record
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' SET row_security = off
  SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET extra_float_digits = 3 SET array_nulls = on
  SET standard_conforming_strings = on SET quote_all_identifiers = off SET default_tablespace = ''
AS $$
DECLARE
  give_up CONSTANT timestamptz := clock_timestamp() + timeout;
  this record;
BEGIN
  FOR attempt IN 1 .. 2147483647 LOOP
    BEGIN
      keys := coalesce(snowflake.keys_of_schemas(schemas, leave_out, '{snowflake,sequence}'), keys);
      columns := ARRAY(SELECT c FROM snowflake.columns_of_schemas(keys, schemas, leave_out, by_name) AS c);
      remaining := ARRAY(SELECT snowflake.remaining(keys, columns, drop_sequence)
                         UNION ALL SELECT snowflake.remaining_keys(schemas, leave_out, shard));
      keys := coalesce(snowflake.keys_of_schemas(schemas, leave_out, '{sequence}'), keys);
      PERFORM snowflake.refuse_wide(columns, rewrite, published) WHERE schemas IS NOT NULL AND columns <> '{}';
      lines := '{}';
      FOR this IN SELECT t.keys, t.columns FROM snowflake.transactions(columns, keys) AS t WHERE schemas IS NOT NULL
                  UNION ALL SELECT plan.keys, plan.columns WHERE schemas IS NULL LOOP
        lines := lines || ARRAY(SELECT snowflake.plan_lines(ARRAY(
          SELECT s FROM snowflake.adopt_steps(this.keys, coalesce(this.columns, '{}'), shard, rewrite, drop_sequence,
                                              published) AS s), coalesce(this.columns, '{}')));
      END LOOP;
      RAISE SQLSTATE 'SFOK0';
    EXCEPTION WHEN SQLSTATE 'SFOK0' THEN
      RETURN;
    WHEN lock_not_available OR deadlock_detected THEN
      IF clock_timestamp() >= give_up THEN
        PERFORM snowflake.refuse_locked(NULL, attempt, SQLERRM);
      END IF;
    END;
    PERFORM pg_sleep(least(0.05 * attempt, 2, extract(epoch FROM give_up - clock_timestamp())));
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.plan IS
  'Internal: for adopt() and adopt_schemas(): returns the keys that will get new defaults, the columns to make '
  'wider, the lines of the dry run, and what the application must change. If the argument schemas is null, returns '
  'the plan for the given keys';

-- A procedure with a SET clause cannot commit, so adopt_schemas() has no SET clause and qualifies every name with its
-- schema.
CREATE PROCEDURE snowflake.adopt_schemas(schemas name[], shard integer, leave_out regclass[] DEFAULT '{}',
                                         by_name boolean DEFAULT true, rewrite boolean DEFAULT false,
                                         drop_sequence boolean DEFAULT false, published boolean DEFAULT false,
                                         dry_run boolean DEFAULT false, timeout interval DEFAULT '1 min')
  LANGUAGE plpgsql
AS $$
DECLARE
  plan record;
  this record;
BEGIN
  PERFORM snowflake.refuse_null('adopt_schemas()', schemas::pg_catalog.text, shard::pg_catalog.text,
    leave_out::pg_catalog.text, by_name::pg_catalog.text, rewrite::pg_catalog.text,
    drop_sequence::pg_catalog.text, published::pg_catalog.text, dry_run::pg_catalog.text, timeout::pg_catalog.text),
    snowflake.refuse_snapshot('adopt_schemas()'), snowflake.refuse_schemas(schemas, leave_out);
  plan := snowflake.plan(NULL, schemas, leave_out, by_name, shard, rewrite, drop_sequence, published, timeout);
  PERFORM snowflake.tell_plan(plan.lines) WHERE dry_run;
  PERFORM snowflake.tell_remaining(plan.remaining);
  IF NOT dry_run THEN
    COMMIT;
    FOR this IN SELECT * FROM snowflake.transactions(plan.columns, plan.keys) LOOP
      CALL snowflake.carry_out(this.keys, this.columns, shard, rewrite, drop_sequence, published, timeout);
      COMMIT;
    END LOOP;
  END IF;
END
$$;
COMMENT ON PROCEDURE snowflake.adopt_schemas(name[], integer, regclass[], boolean, boolean, boolean, boolean, boolean,
  interval) IS
  'For all keys that a sequence fills, in the given schemas, does the same as adopt(). First, the keys and all '
  'columns that refer to them become bigint. Columns that refer to a key are found by foreign keys, and by their '
  'names unless by_name is false. The procedure uses one transaction for each table, or for all tables that a view '
  'joins. Then the default of each key is changed, so that new rows get ids. After an interruption, a repeated call '
  'continues. With dry_run => true, the call only shows all transactions, how long they hold locks, and what the '
  'application must change';
