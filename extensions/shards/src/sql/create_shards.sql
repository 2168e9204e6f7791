
-- When create_shards() creates a table, the functions in the table's expressions are found by name. A role that can
-- create functions in the schema could make the expression run a function with the rights of the table's owner.
CREATE FUNCTION snowflake.refuse_creators(schema regnamespace) RETURNS void
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  trap record;
BEGIN
  SELECT c.oid::regclass AS relation, relowner::regrole AS owner,
         CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END AS creator INTO trap
    FROM pg_namespace AS n JOIN pg_class AS c ON relnamespace = n.oid AND relkind IN ('r', 'p'),
         LATERAL (SELECT nspowner UNION SELECT grantee FROM aclexplode(nspacl)
                   WHERE privilege_type = 'CREATE') AS g (given),
         LATERAL (SELECT coalesce((SELECT datdba FROM pg_database
                                    WHERE datname = current_database() AND given = 'pg_database_owner'::regrole),
                                  given)) AS r (role)
   WHERE n.oid = schema AND (role = 0 OR NOT pg_has_role(role, relowner, 'USAGE'))
   ORDER BY 1, 3 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('table %s belongs to %s, but %s may create functions in its schema', trap.relation, trap.owner,
                       trap.creator),
      DETAIL = 'A role that may create functions in the schema could run code with the rights of the table''s owner.',
      HINT = format('Revoke CREATE on schema %s from the other role, or give the table to the other role.', schema);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_creators(regnamespace) IS
  'Internal: for create_shards() and alter_shards(): raises an error if a role may create objects in the schema of a '
  'table, but does not have the rights of the table''s owner';

-- If the table's owner may not create objects in the shard's schema, make_table() creates the table in a new schema of
-- the owner. At the end, make_table() moves the new table to the shard's schema.
CREATE FUNCTION snowflake.make_table(source regclass, shard integer, target name) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  class CONSTANT pg_class := c FROM pg_class AS c WHERE oid = source;
  home name := target;
  moved text;
BEGIN
  IF NOT has_schema_privilege(class.relowner, quote_ident(target)::regnamespace, 'CREATE') THEN
    home := snowflake.make_scratch(class.relowner);
  END IF;
  -- The template's schema is in search_path, because an expression may use an object that create_shards(partial =>
  -- true) has not copied.
  PERFORM snowflake.run_steps(source, shard, '{0,1,2}', true,
    concat_ws(', ', nullif(quote_ident(home), quote_ident(target)), quote_ident(target),
              class.relnamespace::regnamespace, 'pg_temp'));
  IF home <> target THEN
    FOR moved IN
      SELECT format('ALTER TABLE %I.%I SET SCHEMA %I', home, class.relname, target)
      UNION ALL
      SELECT format('ALTER STATISTICS %I.%I SET SCHEMA %I', home, stxname, target)
        FROM pg_statistic_ext WHERE stxnamespace = quote_ident(home)::regnamespace
      UNION ALL
      SELECT format('DROP SCHEMA %I', home)
    LOOP
      EXECUTE moved;
    END LOOP;
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.make_table(regclass, integer, name) IS
  'Internal: for create_shards(): copies a table of the template into the schema of a shard, with its indexes and '
  'checks';

-- Marks a foreign key of an empty table as valid. The foreign key was created NOT VALID, because PostgreSQL would check
-- a valid foreign key by a query with the owner's rights. The owner of the new table may be unable to read the
-- referenced table.
CREATE FUNCTION snowflake.validate_empty(relation regclass, key name) RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_validate_empty'
  LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.validate_empty(regclass, name) IS
  'Internal: for create_shards(): marks a foreign key as valid if this transaction has created the table and the '
  'table is empty';

CREATE FUNCTION snowflake.make_references(source regclass, shard integer, target name) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  home CONSTANT name := relnamespace::regnamespace FROM pg_class WHERE oid = source;
  stated text;
BEGIN
  FOR stated IN
    SELECT s.statement || CASE WHEN s.statement ~ ' NOT (VALID|ENFORCED)$' THEN '' ELSE ' NOT VALID' END
      FROM snowflake.statements_of(source, shard) AS s WHERE s.step = 3 ORDER BY 1
  LOOP
    PERFORM snowflake.run_as(quote_ident(current_user)::regrole, stated,
                             concat_ws(', ', quote_ident(target), home, 'pg_temp'));
  END LOOP;
  PERFORM snowflake.validate_empty(format('%I.%I', target, relname)::regclass, conname)
    FROM pg_constraint JOIN pg_class AS c ON c.oid = conrelid
   WHERE conrelid = source AND contype = 'f' AND convalidated;
END
$$;
COMMENT ON FUNCTION snowflake.make_references(regclass, integer, name) IS
  'Internal: for create_shards(): creates the foreign keys of a shard''s table, as in the template';

-- If several sessions create the same schema, the first session creates the schema, and the other sessions wait for the
-- commit.
CREATE FUNCTION snowflake.open_schema(target name) RETURNS boolean
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM pg_namespace WHERE nspname = target) THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE SCHEMA %I', target);
  RETURN true;
EXCEPTION WHEN unique_violation OR duplicate_schema THEN
  IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = target) THEN
    RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
      MESSAGE = format('another session has created schema %s', quote_ident(target)),
      DETAIL = 'This transaction cannot see the new schema.', HINT = 'Retry the transaction.';
  END IF;
  RETURN false;
END
$$;
COMMENT ON FUNCTION snowflake.open_schema(name) IS
  'Internal: for create_shards(): creates the schema of a shard if it does not exist. Returns whether the schema was '
  'created';

CREATE FUNCTION snowflake.dress_schema(source pg_namespace, target name, fresh boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  stated text;
BEGIN
  IF fresh THEN
    EXECUTE format('ALTER SCHEMA %I OWNER TO %s', target, source.nspowner::regrole);
    FOR stated IN
      SELECT format('REVOKE ALL ON SCHEMA %I FROM %s', target, source.nspowner::regrole) WHERE source.nspacl IS NOT NULL
      UNION ALL
      SELECT format('GRANT %s ON SCHEMA %I TO %s%s', privilege_type, target,
                    CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                    CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
        FROM aclexplode(source.nspacl)
      UNION ALL
      SELECT format('COMMENT ON SCHEMA %I IS %L', target, c) FROM obj_description(source.oid, 'pg_namespace') AS c
       WHERE c IS NOT NULL
    LOOP
      EXECUTE stated;
    END LOOP;
  ELSE
    -- COMMENT writes the same text again, to lock the schema. Only the owner of the schema can run COMMENT.
    EXECUTE format('COMMENT ON SCHEMA %I IS %s', target,
                   quote_nullable(obj_description(to_regnamespace(quote_ident(target)), 'pg_namespace')));
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.dress_schema(pg_namespace, name, boolean) IS
  'Internal: for create_shards(): gives a new schema the owner, privileges and comment of the template. If the schema '
  'exists, the function locks the schema';

CREATE FUNCTION snowflake.warn_of_unlike(template regnamespace, target name, shard integer) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  old record;
BEGIN
  FOR old IN
    SELECT t.oid::regclass AS existing, u.missing, u.extra
      FROM pg_class AS f JOIN pg_class AS t USING (relname) JOIN pg_namespace AS n ON n.oid = t.relnamespace,
           snowflake.unlike(f.oid, t.oid, shard) AS u
     WHERE f.relnamespace = template AND f.relkind = 'r' AND nspname = target
       AND (u.missing IS NOT NULL OR u.extra IS NOT NULL) ORDER BY relname
  LOOP
    RAISE WARNING USING ERRCODE = 'duplicate_table',
      MESSAGE = format('table %s differs from the template, and was not changed', old.existing),
      DETAIL = format('Only the template has: %s. Only the table has: %s.', coalesce(old.missing, 'nothing'),
                      coalesce(old.extra, 'nothing')),
      HINT = 'Alter the table to match the template, or drop the table and call create_shards() again.';
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.warn_of_unlike(regnamespace, name, integer) IS
  'Internal: for create_shards(): raises a warning for each table of a shard that differs from the template';

CREATE FUNCTION snowflake.make_shard(template regnamespace, shard integer, prefix text) RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  source CONSTANT pg_namespace := n FROM pg_namespace AS n WHERE oid = template;
  target CONSTANT name := prefix || shard;
  fresh boolean;
  made oid[];
BEGIN
  IF octet_length(prefix || shard) > 63 THEN
    RAISE EXCEPTION USING ERRCODE = 'name_too_long', MESSAGE = format('schema name "%s" is too long', prefix || shard),
      DETAIL = 'A name has 63 bytes at most.', HINT = 'Choose a shorter prefix.';
  END IF;
  IF target = source.nspname THEN
    RETURN 0;
  END IF;
  fresh := snowflake.open_schema(target);
  PERFORM snowflake.refuse_creators(template);
  -- If the owner of the shard's schema did not own the template, copied defaults could call functions of this owner.
  IF EXISTS (SELECT FROM pg_namespace WHERE nspname = target AND nspowner <> source.nspowner AND NOT fresh) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('schema %I and the template have different owners', target),
      DETAIL = format('The schema belongs to %s. The template belongs to %s.',
                      (SELECT nspowner FROM pg_namespace WHERE nspname = target)::regrole, source.nspowner::regrole),
      HINT = 'Change the owner of the schema to the owner of the template schema, or pass another prefix.';
  END IF;
  PERFORM snowflake.dress_schema(source, target, fresh);
  PERFORM snowflake.warn_of_unlike(template, target, shard);
  PERFORM snowflake.refuse_creators(quote_ident(target)::regnamespace);
  made := ARRAY(SELECT f.oid FROM pg_class AS f
                 WHERE relnamespace = template AND relkind = 'r' AND NOT EXISTS
                   (SELECT FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace
                     WHERE t.relname = f.relname AND nspname = target) ORDER BY f.oid);
  PERFORM snowflake.make_table(m, shard, target) FROM unnest(made) AS m;
  PERFORM snowflake.make_references(m, shard, target) FROM unnest(made) AS m;
  PERFORM snowflake.run_steps(m, shard, '{4,5,6,7,8}', false,
                              concat_ws(', ', quote_ident(target), quote_ident(source.nspname), 'pg_temp'))
     FROM unnest(made) AS m;
  RETURN cardinality(made);
END
$$;
COMMENT ON FUNCTION snowflake.make_shard(regnamespace, integer, text) IS
  'Internal: for create_shards(): creates the schema of one shard. The caller must have checked the template and the '
  'shard. Returns the number of new tables';

CREATE FUNCTION snowflake.check_shard_range(shards int4range) RETURNS void
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known CONSTANT integer := l.shards FROM snowflake.layout AS l;
BEGIN
  IF isempty(shards) OR lower_inf(shards) OR upper_inf(shards) OR lower(shards) < 0 OR upper(shards) > known THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('shards %s are out of range', shards),
      DETAIL = format('The layout has shards 0 to %s.', known - 1),
      HINT = 'Pass a range of shards, such as ''[0,16)''.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_shard_range(int4range) IS
  'Internal: raises an error (22023) if the layout does not have these shards';

CREATE FUNCTION snowflake.check_locks(template regnamespace, shards int4range) RETURNS void
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  locks bigint;
  room bigint;
BEGIN
  -- The transaction locks all new objects until it ends, so the lock table must have room for them.
  SELECT (upper(shards) - lower(shards)) * (2 + count(*) FILTER (WHERE relkind = 'r') * 3 + count(*)) INTO locks
    FROM pg_class WHERE relnamespace = template;
  room := current_setting('max_locks_per_transaction')::bigint
        * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint);
  IF locks > room THEN
    RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
      MESSAGE = format('%s schemas are too many for one transaction', upper(shards) - lower(shards)),
      DETAIL = format('The transaction would hold about %s locks. '
                      '"max_locks_per_transaction" and "max_connections" leave room for %s locks.', locks, room),
      HINT = 'Pass commit_each => true outside of a transaction block, or pass fewer shards.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_locks(regnamespace, int4range) IS
  'Internal: for create_shards(): raises an error (54000) if one transaction cannot hold the locks of all shards';

CREATE FUNCTION snowflake.check_template(template regnamespace, shards int4range, prefix text, partial boolean,
                                         commit_each boolean)
  RETURNS void
  LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  problem record;
  problems text;
BEGIN
  PERFORM snowflake.refuse_null('create_shards()', template::text, shards::text, prefix, partial::text,
                                commit_each::text);
  IF NOT EXISTS (SELECT FROM pg_namespace WHERE oid = template) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
      MESSAGE = format('schema %s does not exist', template::oid),
      DETAIL = 'The template is the schema whose tables are copied for each shard.',
      HINT = 'Pass the name of an existing schema.';
  END IF;
  PERFORM snowflake.check_shard_range(shards);
  IF partial THEN
    FOR problem IN SELECT * FROM snowflake.uncopyable(template) LOOP
      RAISE WARNING USING ERRCODE = 'feature_not_supported',
        MESSAGE = format('object is not copied exactly: %s', problem.object),
        DETAIL = format('This object %s.', problem.reason);
    END LOOP;
  ELSE
    SELECT string_agg(format('%s %s', object, reason), E'\n') INTO problems FROM snowflake.uncopyable(template);
    IF problems IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
        MESSAGE = format('schema %s contains objects that cannot be copied', template),
        DETAIL = problems,
        HINT = 'Move these objects to another schema. '
               'Or pass partial => true, and create these objects for each shard yourself.';
    END IF;
  END IF;
  IF NOT commit_each THEN
    PERFORM snowflake.check_locks(template, shards);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_template(regnamespace, int4range, text, boolean, boolean) IS
  'Internal: for create_shards(): raises an error if an argument is invalid. If partial is true, raises a warning for '
  'objects that are not copied';

CREATE FUNCTION snowflake.create_shard(template regnamespace, shard integer, prefix text DEFAULT 'shard_')
  RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM snowflake.check_template(template, int4range(shard, shard, '[]'), prefix, false, false);
  RETURN snowflake.make_shard(template, shard, prefix);
END
$$;
COMMENT ON FUNCTION snowflake.create_shard(regnamespace, integer, text) IS
  'Creates the schema of a shard as a copy of the template, or adds the missing tables. Returns the number of new '
  'tables. Raises the same errors as create_shards()';

-- A procedure with a SET clause cannot commit, so create_shards() has no SET clause and qualifies every name with its
-- schema.
CREATE PROCEDURE snowflake.create_shards(template regnamespace, shards int4range, prefix text DEFAULT 'shard_',
                                         partial boolean DEFAULT false, commit_each boolean DEFAULT false)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM snowflake.check_template(template, shards, prefix, partial, commit_each);
  FOR shard IN pg_catalog.lower(shards) .. pg_catalog.upper(shards) OPERATOR(pg_catalog.-) 1 LOOP
    PERFORM snowflake.make_shard(template, shard, prefix);
    IF commit_each THEN
      COMMIT;
    END IF;
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake.create_shards(regnamespace, int4range, text, boolean, boolean) IS
  'Creates a schema for each shard of a range, with copies of the template''s tables and of their keys, indexes, '
  'triggers, comments and privileges. A default next_id(N) becomes next_id(shard), and a CHECK constraint permits '
  'only ids of the shard in this column. Existing tables are not changed. Raises an error if the template contains '
  'objects that cannot be copied, unless partial is true';
