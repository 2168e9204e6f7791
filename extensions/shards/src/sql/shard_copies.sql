-- Copies tables of the template schema, and compares each copy with its template.

CREATE FUNCTION snowflake.shard_checks(source regclass, shard integer) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
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
  'Internal: for create_shards(): returns statements that add missing CHECK constraints. A CHECK constraint permits '
  'only ids of the shard in a column whose default mints ids';

-- run_steps() runs each statement with the rights of the table's owner, because the statement can call functions that
-- the owner has written.
CREATE FUNCTION snowflake.run_steps(source regclass, shard integer, steps integer[], checks boolean, path text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
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
  'Internal: for create_shards(): runs, as the owner of a table, the statements of statements_of() whose step is in '
  'the argument `steps`';

CREATE FUNCTION snowflake.make_scratch(owner oid) RETURNS name
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  scratch CONSTANT name := 'scratch_of_snowflake_' || pg_backend_pid();
BEGIN
  EXECUTE format('CREATE SCHEMA %I AUTHORIZATION %s', scratch, owner::regrole);
  RETURN scratch;
END
$$;
COMMENT ON FUNCTION snowflake.make_scratch(oid) IS
  'Internal: for create_shards(): creates a temporary schema in which a role may create objects';

-- PostgreSQL may print an expression in another form after it has read its own output, for example CHECK (status IN
-- (...)) on varchar. If two tables differ, both are created again from their printed definitions, and compared again.
CREATE FUNCTION snowflake.printed_again(source regclass, shard integer) RETURNS SETOF text
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = source;
  -- The array `steps` lists the step numbers of statements that can contain an SQL expression, such as a default or a
  -- check. Foreign keys, privileges and comments, for example, contain no expressions.
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
  RAISE EXCEPTION USING ERRCODE = 'SFUND';  -- undoes everything except the variable
EXCEPTION
  WHEN SQLSTATE 'SFUND' THEN RETURN QUERY SELECT unnest(again);
  WHEN insufficient_privilege THEN RETURN QUERY SELECT s.statement FROM snowflake.statements_of(source, shard) AS s;
END
$$;
COMMENT ON FUNCTION snowflake.printed_again(regclass, integer) IS
  'Internal: for create_shards(): returns the statements that create a table, as PostgreSQL prints them for a copy '
  'of the table. The function printed_again() rolls the copy back';

CREATE FUNCTION snowflake.unlike(template regclass, existing regclass, shard integer, OUT missing text, OUT extra text)
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
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
    -- If the two tables have different owners, the second comparison would also find a difference, so unlike() skips
    -- the second comparison.
    EXIT WHEN missing IS NULL AND extra IS NULL
           OR (SELECT count(DISTINCT relowner) > 1 FROM pg_class WHERE oid IN (template, existing));
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.unlike(regclass, regclass, integer) IS
  'Internal: for create_shards(): returns the statements by which a table of a shard and a table of the template '
  'differ, or nulls if the tables are the same';
