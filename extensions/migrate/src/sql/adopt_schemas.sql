-- adopt() for all keys of some schemas. Columns become wider first, so that every id that is minted later fits
-- everywhere. Until then, foreign keys between integer and bigint columns still hold.

CREATE FUNCTION snowflake.keys_of_schemas(schemas regnamespace[], leave_out regclass[],
                                          OUT key snowflake.key_column, OUT filled_by text) RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp
AS $$
  WITH minting AS MATERIALIZED (SELECT f.relation, f.attribute FROM snowflake.filled_columns() AS f WHERE f.holds_ids),
  keys AS (
    SELECT (c.oid, attname)::snowflake.key_column AS key, relkind = 'p' AND indnkeyatts > 1 AS of_several,
           CASE WHEN (c.oid, attname) IN (SELECT relation, attribute FROM minting) THEN 'snowflake'
                WHEN attidentity <> '' OR EXISTS (SELECT snowflake.sequences_of((c.oid, attname))) THEN 'sequence'
                ELSE 'application' END AS filled_by
      FROM pg_class AS c JOIN pg_index ON indrelid = c.oid AND indisprimary
      JOIN pg_attribute ON attrelid = c.oid AND attnum = ANY (indkey::smallint[])
     WHERE relnamespace = ANY (schemas) AND relkind IN ('r', 'p') AND NOT relispartition AND c.oid <> ALL (leave_out)
       AND (indnkeyatts = 1 OR relkind = 'p')
         AND atttypid IN ('bigint'::regtype, 'integer'::regtype, 'smallint'::regtype)
       AND attgenerated = '' AND snowflake.is_of_application('pg_class'::regclass, c.oid, relnamespace)
       AND NOT EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = c.oid AND attnum = ANY (conkey)))
  SELECT k.key, k.filled_by FROM keys AS k
    WHERE k.filled_by <> 'application' OR NOT k.of_several ORDER BY (k.key).relation::text
$$;
COMMENT ON FUNCTION snowflake.keys_of_schemas(regnamespace[], regclass[]) IS
  'Internal: for adopt_schemas(): the primary keys of whole numbers that refer to no other table, and what fills them';

CREATE FUNCTION snowflake.filled_keys(schemas regnamespace[], leave_out regclass[], by text[])
  RETURNS snowflake.key_column[]
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(array_agg(k.key ORDER BY (k.key).relation::text), '{}')
    FROM snowflake.keys_of_schemas(schemas, leave_out) AS k WHERE k.filled_by = ANY (by)
$$;
COMMENT ON FUNCTION snowflake.filled_keys(regnamespace[], regclass[], text[]) IS
  'Internal: for adopt_schemas(): the keys that are filled by snowflake, sequence or application';

CREATE FUNCTION snowflake.can_be_wide(columns snowflake.key_column[]) RETURNS boolean
  LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT NOT EXISTS (SELECT snowflake.hindrances(columns)) AND NOT EXISTS (SELECT snowflake.try_wide(columns))
$$;
COMMENT ON FUNCTION snowflake.can_be_wide(snowflake.key_column[]) IS
  'Internal: for adopt_schemas(): whether nothing keeps columns from becoming wider; changes nothing';

-- Tables that one view reads are changed together, so that the view is created again once.
CREATE FUNCTION snowflake.changed_together(columns snowflake.key_column[])
  RETURNS TABLE (together snowflake.key_column[])
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE shown AS MATERIALIZED (
    SELECT k.relation, v.view FROM unnest(columns) AS k, LATERAL snowflake.views_over(ARRAY[k]) AS v),
  joined (relation, other) AS (
    SELECT k.relation, k.relation FROM unnest(columns) AS k
    UNION
    SELECT j.relation, b.relation
      FROM joined AS j JOIN shown AS a ON a.relation = j.other JOIN shown AS b ON b.view = a.view),
  first (relation, first) AS (SELECT j.relation, min(j.other::oid) FROM joined AS j GROUP BY 1)
  SELECT array_agg(k ORDER BY k.relation, k.attribute)
    FROM unnest(columns) AS k JOIN first AS f USING (relation) GROUP BY f.first ORDER BY f.first
$$;
COMMENT ON FUNCTION snowflake.changed_together(snowflake.key_column[]) IS
  'Internal: for adopt_schemas(): columns by transaction; tables that a view joins are together';

CREATE FUNCTION snowflake.together_steps(columns snowflake.key_column[], rewrite boolean, published boolean)
  RETURNS SETOF snowflake.step
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
BEGIN
  columns := ARRAY(SELECT k FROM unnest(columns) AS k
    WHERE snowflake.wide_type((snowflake.attribute_of(k)).atttypid) IS NOT NULL);
  IF columns <> '{}' THEN
    PERFORM snowflake.refuse_rights(ARRAY(SELECT s.locks FROM snowflake.lock_steps(NULL, columns) AS s));
    PERFORM snowflake.refuse_wide(columns, rewrite, published);
    RETURN QUERY SELECT * FROM snowflake.lock_steps(NULL, columns);
    RETURN QUERY SELECT * FROM snowflake.widen_steps(columns);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.together_steps(snowflake.key_column[], boolean, boolean) IS
  'Internal: for adopt_schemas(): the steps that make columns wider, after all checks';

CREATE FUNCTION snowflake.columns_of_schemas(schemas regnamespace[], leave_out regclass[], by_name boolean)
  RETURNS snowflake.key_column[]
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
  keys CONSTANT snowflake.key_column[] := snowflake.filled_keys(schemas, leave_out, '{snowflake,sequence}');
BEGIN
  RETURN ARRAY(SELECT n FROM snowflake.narrow_columns(keys) AS n)
         || ARRAY(SELECT n FROM snowflake.named_columns(keys) AS n JOIN pg_class AS c ON c.oid = n.relation
                   WHERE by_name AND relnamespace = ANY (schemas) AND c.oid <> ALL (leave_out)
                     AND pg_has_role(relowner, 'USAGE') AND snowflake.can_be_wide(ARRAY[n]));
END
$$;
COMMENT ON FUNCTION snowflake.columns_of_schemas(regnamespace[], regclass[], boolean) IS
  'Internal: for adopt_schemas(): the columns that become wider, by foreign keys and by their names';

-- One row for each transaction: columns that become wider, or a key that mints from then on. All is checked before
-- the first.
CREATE FUNCTION snowflake.schema_plan(keys snowflake.key_column[], columns snowflake.key_column[], shard integer,
                                      rewrite boolean, drop_sequence boolean, published boolean)
  RETURNS TABLE (together snowflake.key_column[], key snowflake.key_column, plan text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
  this snowflake.key_column;
BEGIN
  PERFORM snowflake.next_id(shard);
  FOR together IN SELECT t.together FROM snowflake.changed_together(columns) AS t LOOP
    PERFORM snowflake.together_steps(together, rewrite, published);
    plan := format('SELECT coalesce(array_agg(s), ''{}'') FROM snowflake.together_steps(%L, %L, %L) AS s',
                   together, rewrite, published);
    RETURN NEXT;
  END LOOP;
  together := NULL;
  FOREACH this IN ARRAY keys LOOP
    PERFORM snowflake.refuse_key(this.relation, snowflake.attribute_of(this)),
      snowflake.refuse_rights(ARRAY[this.relation]),
            snowflake.refuse_future_ids(this.relation, this.attribute, false);
    key := this;
    plan := format('SELECT array_agg(s) FROM snowflake.adopt_steps(%L, %L, %L, false, %L, false) AS s',
                   this.relation, shard, this.attribute, drop_sequence);
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.schema_plan(snowflake.key_column[], snowflake.key_column[], integer, boolean, boolean,
  boolean) IS
  'Internal: for adopt_schemas(): what each transaction changes, and the query of its steps, after all checks';

CREATE FUNCTION snowflake.tell_transaction(together snowflake.key_column[], key snowflake.key_column, shard integer,
  drop_sequence boolean)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM snowflake.tell_plan(
    ARRAY(SELECT s FROM snowflake.lock_steps(key, coalesce(together, '{}')) AS s)
    || CASE WHEN together IS NULL THEN ARRAY(SELECT s FROM snowflake.mint_steps(key, shard, drop_sequence) AS s)
            ELSE ARRAY(SELECT s FROM snowflake.widen_steps(together) AS s) END, coalesce(together, '{}'));
END
$$;
COMMENT ON FUNCTION snowflake.tell_transaction(snowflake.key_column[], snowflake.key_column, integer, boolean) IS
  'Internal: for adopt_schemas(): shows the steps of one transaction';

CREATE FUNCTION snowflake.remaining_in_schemas(schemas regnamespace[], leave_out regclass[],
                                               columns snowflake.key_column[], shard integer,
                                               drop_sequence boolean) RETURNS text
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT nullif(concat_ws(E'\n',
    snowflake.remaining_text(snowflake.filled_keys(schemas, leave_out, '{snowflake,sequence}'), columns, drop_sequence),
    (SELECT string_agg(format('key %s.%I has no sequence: CALL snowflake.adopt(%L, %s, %L, rewrite => true);',
                              k.relation, k.attribute, k.relation, shard, k.attribute), E'\n')
       FROM unnest(snowflake.filled_keys(schemas, leave_out, '{application}')) AS k)), '')
$$;
COMMENT ON FUNCTION snowflake.remaining_in_schemas(regnamespace[], regclass[], snowflake.key_column[], integer,
  boolean) IS
  'Internal: for adopt_schemas(): what the application has to change, as the lines of a message';

CREATE FUNCTION snowflake.schemas_named(names name[]) RETURNS regnamespace[]
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  missing CONSTANT text := (SELECT string_agg(quote_ident(n), ', ') FROM unnest(names) AS n
                             WHERE n NOT IN (SELECT nspname FROM pg_namespace));
BEGIN
  IF missing IS NOT NULL OR names = '{}' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
      MESSAGE = coalesce('schema ' || missing || ' does not exist', 'no schema is named'),
      DETAIL = format('The schemas passed are %s.', names), HINT = 'Pass the names of schemas: ''{public}''.';
  END IF;
  RETURN ARRAY(SELECT oid FROM pg_namespace WHERE nspname = ANY (names) ORDER BY nspname);
END
$$;
COMMENT ON FUNCTION snowflake.schemas_named(name[]) IS
  'Internal: for adopt_schemas(): schemas by their names; an error if one does not exist';

-- Without a SET clause, with which it could not commit: everything is named with its schema.
CREATE PROCEDURE snowflake.adopt_schemas(schemas name[], shard integer, leave_out regclass[] DEFAULT '{}',
                                         by_name boolean DEFAULT true, rewrite boolean DEFAULT false,
                                         drop_sequence boolean DEFAULT false, published boolean DEFAULT false,
                                         dry_run boolean DEFAULT false, timeout interval DEFAULT '1 min')
  LANGUAGE plpgsql
AS $$
DECLARE
  oids pg_catalog.regnamespace[];
  columns snowflake.key_column[];
  remaining pg_catalog.text;
  this record;
BEGIN
  PERFORM snowflake.refuse_null('adopt_schemas()', schemas::pg_catalog.text, shard::pg_catalog.text,
    leave_out::pg_catalog.text, by_name::pg_catalog.text, rewrite::pg_catalog.text,
    drop_sequence::pg_catalog.text, published::pg_catalog.text, dry_run::pg_catalog.text, timeout::pg_catalog.text);
  PERFORM snowflake.refuse_snapshot('adopt_schemas()');
  oids := snowflake.schemas_named(schemas);
  columns := snowflake.columns_of_schemas(oids, leave_out, by_name);
  remaining := snowflake.remaining_in_schemas(oids, leave_out, columns, shard, drop_sequence);
  FOR this IN SELECT * FROM snowflake.schema_plan(snowflake.filled_keys(oids, leave_out, '{sequence}'), columns,
                                                  shard, rewrite, drop_sequence, published) LOOP
    IF dry_run THEN
      PERFORM snowflake.tell_transaction(this.together, this.key, shard, drop_sequence);
    ELSE
      CALL snowflake.carry_out(this.plan, timeout);
      COMMIT;
    END IF;
  END LOOP;
  PERFORM snowflake.tell_remaining(remaining);
END
$$;
COMMENT ON PROCEDURE snowflake.adopt_schemas(name[], integer, regclass[], boolean, boolean, boolean, boolean, boolean,
  interval) IS
  'adopt() for all keys of schemas that a sequence fills. First all columns that hold ids, by foreign keys and, '
  'unless by_name is false, by their names, become bigint: one transaction for each table, or for the tables that a '
  'view joins. Then each key mints. Commits each transaction; called again after an interruption it continues. '
  'dry_run shows all transactions, how long their locks last, and what remains for the application';
