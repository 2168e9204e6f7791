-- Decides whether the schema of a shard can move to another server. The schema may contain only objects that
-- create_shards() creates, and may use only objects that exist on both servers. The function statements_of() returns
-- the statements that create the schema on the target server.

-- Returns whether only superusers can alter an object. A trusted object is built into the server, or is a member of a
-- listed extension and belongs to a superuser.
CREATE FUNCTION snowflake_fleet.is_trusted(class oid, object oid) RETURNS boolean
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT object < 16384
      OR EXISTS (SELECT FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = refobjid
                  WHERE d.classid = class
                    AND d.objid = coalesce((SELECT typelem FROM pg_type AS t WHERE class = 'pg_type'::regclass
                                               AND t.oid = object AND typcategory = 'A'), object)
                    AND refclassid = 'pg_extension'::regclass AND deptype = 'e'
                    AND extname = ANY ('{snowflake,snowflake_alias,btree_gin,btree_gist,citext,cube,earthdistance,
                                         fuzzystrmatch,hstore,intarray,isn,lo,ltree,moddatetime,pg_trgm,pgcrypto,seg,
                                         unaccent,uuid-ossp,vector}'))
     AND NOT EXISTS (SELECT FROM pg_shdepend AS s JOIN pg_roles AS r ON r.oid = s.refobjid
                      WHERE s.classid = class AND s.objid = object
                        AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
                        AND s.refclassid = 'pg_authid'::regclass AND s.deptype = 'o' AND NOT rolsuper)
$$;
COMMENT ON FUNCTION snowflake_fleet.is_trusted(oid, oid) IS
  'Internal: returns whether an object is trusted, so that a shard that moves may use the object. A trusted object '
  'is built into PostgreSQL, or is in a known extension, such as citext, and belongs to a superuser';

CREATE FUNCTION snowflake_fleet.parts_of(schema name) RETURNS TABLE (classid oid, objid oid)
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  WITH rel AS MATERIALIZED (
    SELECT * FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident(schema)) AND relkind IN ('r', 'S', 'i')
  ), typ AS (
    SELECT t.oid, typarray FROM pg_type AS t JOIN rel ON typrelid = rel.oid
  )
  SELECT 'pg_class'::regclass::oid, oid FROM rel
  UNION ALL SELECT 'pg_class'::regclass, reltoastrelid FROM rel WHERE reltoastrelid <> 0
  UNION ALL SELECT 'pg_class'::regclass, indexrelid FROM rel JOIN pg_index ON indrelid = reltoastrelid
  UNION ALL SELECT 'pg_type'::regclass, unnest(ARRAY[oid, typarray]) FROM typ
  UNION ALL SELECT 'pg_attrdef'::regclass, d.oid FROM pg_attrdef AS d JOIN rel ON adrelid = rel.oid
  UNION ALL SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint AS c JOIN rel ON conrelid = rel.oid
  UNION ALL SELECT 'pg_trigger'::regclass, t.oid FROM pg_trigger AS t JOIN rel ON tgrelid = rel.oid
  UNION ALL SELECT 'pg_statistic_ext'::regclass, s.oid FROM pg_statistic_ext AS s JOIN rel ON stxrelid = rel.oid
$$;
COMMENT ON FUNCTION snowflake_fleet.parts_of(name) IS
  'Internal: returns the objects of a schema that snowflake-move-shard can move';

-- Returns the types of columns, including the base types of domains and the element types of arrays.
CREATE FUNCTION snowflake_fleet.types_of(schema name) RETURNS TABLE (col text, type oid)
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE used (col, type) AS (
    SELECT format('%s.%I', t, attname), atttypid
      FROM snowflake_fleet.tables_of(schema) AS t JOIN pg_attribute ON attrelid = t AND attnum > 0 AND NOT attisdropped
    UNION
    SELECT col, inner_type
      FROM used JOIN pg_type AS t ON t.oid = type,
           unnest(ARRAY[typbasetype, CASE typcategory WHEN 'A' THEN typelem END]) AS inner_type WHERE inner_type <> 0
  )
  SELECT used.col, used.type FROM used
$$;
COMMENT ON FUNCTION snowflake_fleet.types_of(name) IS 'Internal: returns the data types that columns of a schema use';

CREATE FUNCTION snowflake_fleet.refused_tables(schema name) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  WITH tab AS MATERIALIZED (
    SELECT c.*, c.oid::regclass AS name FROM snowflake_fleet.tables_of(schema) AS t JOIN pg_class AS c ON c.oid = t
  )
  SELECT format('Table %s %s.', name, why) FROM tab, LATERAL (VALUES
      (relreplident = 'n' OR NOT EXISTS (
         SELECT FROM pg_index WHERE indrelid = tab.oid AND indisprimary AND indimmediate),
       'needs a primary key that is not deferrable, and a replica identity'),
      (relpersistence <> 'p', 'is unlogged, so its rows are not in the WAL'),
      (relrowsecurity OR relforcerowsecurity, 'has row security'),
      (relispartition OR EXISTS (SELECT FROM pg_inherits WHERE tab.oid IN (inhrelid, inhparent)),
       'is a parent or child in table inheritance, or is a partition'),
      (reloftype <> 0 OR reltablespace <> 0 OR relam <> (SELECT oid FROM pg_am WHERE amname = 'heap'),
       'is a typed table, has its own tablespace, or has an access method other than heap'),
      (true, (SELECT format('has the generated column %I', attname)
                FROM pg_attribute WHERE attrelid = tab.oid AND attgenerated <> '' ORDER BY attname LIMIT 1)),
      (true, (SELECT format('has the trigger %I, which is ENABLE ALWAYS or REPLICA, or has the same name as a fence',
                            tgname)
                FROM pg_trigger JOIN pg_proc AS p ON p.oid = tgfoid
               WHERE tgrelid = tab.oid AND (tgenabled NOT IN ('O', 'D') OR tgname = 'snowflake_move')
                 AND NOT (tgname = 'snowflake_move' AND proname = 'refuse_write'
                          AND pronamespace = 'snowflake_fleet'::regnamespace) ORDER BY tgname LIMIT 1)),
      (true, (SELECT format('is filled by %s %I', CASE WHEN subname ~ '^snowflake_move_' THEN 'the move of'
                                                  ELSE 'subscription' END, subname)
                FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
               WHERE srrelid = tab.oid LIMIT 1))
    ) AS v (found, why) WHERE found AND why IS NOT NULL
  UNION ALL
  SELECT format('Column %s has type %s, whose values have another meaning on another server.',
                col, format_type(type, NULL))
    FROM snowflake_fleet.types_of(schema) WHERE type IN ('oid'::regtype, 'money'::regtype)
  UNION ALL
  SELECT format('Foreign key %I of table %s changes rows when the shared table %s is changed.',
                conname, conrelid::regclass, confrelid::regclass)
    FROM pg_constraint
   WHERE contype = 'f' AND conrelid IN (SELECT oid FROM tab) AND confrelid NOT IN (SELECT oid FROM tab)
     AND (confupdtype NOT IN ('a', 'r') OR confdeltype NOT IN ('a', 'r'))
$$;
COMMENT ON FUNCTION snowflake_fleet.refused_tables(name) IS
  'Internal: returns the reasons why tables of a schema cannot be moved to another server, one sentence for each '
  'reason';

CREATE FUNCTION snowflake_fleet.refused_uses(schema name) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  WITH part AS MATERIALIZED (
    SELECT p.* FROM snowflake_fleet.parts_of(schema) AS p
  )
  SELECT format('%s is in the schema, but cannot be moved.', pg_describe_object(classid, objid, 0))
    FROM pg_depend
   WHERE refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace(quote_ident(schema))
     AND (classid, objid) NOT IN (TABLE part)
  UNION ALL
  SELECT DISTINCT format('%s uses %s, which cannot be moved. A schema may use only known extensions, enums, domains, '
                         'trigger functions, and tables to which a foreign key refers.',
                         pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, 0))
    FROM part JOIN pg_depend USING (classid, objid)
   WHERE (refclassid, refobjid) NOT IN (TABLE part) AND NOT snowflake_fleet.is_trusted(refclassid, refobjid)
     AND NOT (refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace(quote_ident(schema)))
     AND NOT EXISTS (SELECT FROM pg_type AS t LEFT JOIN pg_type AS e ON e.oid = t.typelem AND t.typcategory = 'A'
                      WHERE refclassid = 'pg_type'::regclass AND t.oid = refobjid
                        AND coalesce(e.typtype, t.typtype) IN ('d', 'e'))
     AND NOT EXISTS (SELECT FROM pg_trigger WHERE classid = 'pg_trigger'::regclass AND oid = objid
                        AND (tgisinternal OR tgfoid = refobjid))
     AND NOT EXISTS (SELECT FROM pg_constraint WHERE classid = 'pg_constraint'::regclass AND oid = objid
                        AND contype = 'f' AND refobjid IN (confrelid, conindid))
  UNION ALL
  SELECT DISTINCT format('%s depends on %s.', pg_describe_object(d.classid, d.objid, d.objsubid),
                         pg_describe_object(d.refclassid, d.refobjid, 0))
    FROM part AS p JOIN pg_depend AS d ON d.refclassid = p.classid AND d.refobjid = p.objid
   WHERE (d.classid, d.objid) NOT IN (TABLE part)
     AND NOT EXISTS (SELECT FROM pg_trigger WHERE d.classid = 'pg_trigger'::regclass AND oid = d.objid AND tgisinternal)
     AND NOT EXISTS (SELECT FROM pg_publication_rel AS r JOIN pg_publication AS b ON b.oid = prpubid
                      WHERE d.classid = 'pg_publication_rel'::regclass AND r.oid = d.objid
                        AND pubname ~ '^snowflake_move_[0-9]+$')
  UNION ALL
  SELECT format('%s has a security label.', pg_describe_object(classid, objid, 0))
    FROM part JOIN pg_seclabel ON classoid = classid AND objoid = objid
$$;
COMMENT ON FUNCTION snowflake_fleet.refused_uses(name) IS
  'Internal: returns a sentence for each object that prevents moving a schema. Objects in the schema, objects that '
  'the schema uses, and objects that depend on the schema can prevent the move';

CREATE FUNCTION snowflake_fleet.refusals(schema name, shard integer) RETURNS SETOF text
  LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM snowflake_fleet.tables_of(schema)) THEN
    RETURN NEXT format('Schema %I does not exist, or has no tables.', schema);
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'snowflake_shards') THEN
    RETURN NEXT 'Extension snowflake_shards is not installed in this database: run CREATE EXTENSION snowflake_shards.';
    RETURN;
  END IF;
  IF (SELECT count(*) FROM pg_event_trigger WHERE evtname ~ '^snowflake_move_guard' AND evtenabled = 'A') <> 3 THEN
    RETURN NEXT 'An event trigger snowflake_move_guard, snowflake_move_guard_start or snowflake_move_guard_rewrite is '
                'missing, or is not ENABLE ALWAYS. Without this trigger, the schema could be altered during the '
                'move.';
  END IF;
  RETURN QUERY
  SELECT t FROM snowflake_fleet.refused_tables(schema) AS t
  UNION ALL
  SELECT u FROM snowflake_fleet.refused_uses(schema) AS u
  UNION ALL
  -- Finds column defaults and constraints that refer to another shard, or that refer to a shard in another form than
  -- create_shards() writes.
  SELECT format('%s mints or compares another shard, or in another form than next_id(%s) and CHECK '
                '(snowflake.shard_of(column) = %2$s).', pg_describe_object(catalogue, object, 0), shard)
    FROM (SELECT 'pg_attrdef'::regclass, d.oid, adbin::text
            FROM snowflake_fleet.tables_of(schema) AS t JOIN pg_attrdef AS d ON adrelid = t
          UNION ALL
          SELECT 'pg_constraint'::regclass, k.oid, conbin::text
            FROM snowflake_fleet.tables_of(schema) AS t JOIN pg_constraint AS k ON conrelid = t)
         AS m (catalogue, object, expression), snowflake.definition_of(catalogue, object, schema) AS definition
   WHERE snowflake.names_shard(catalogue, object, expression) IS NOT NULL
     AND snowflake.with_shard(definition, shard) IS DISTINCT FROM definition;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.refusals(name, integer) IS
  'Internal: for snowflake-move-shard: returns sentences with the reasons why a schema cannot be moved. Returns no '
  'row if the schema can be moved';

-- Returns a text with the definition of an object that must have the same name and definition on both servers.
CREATE FUNCTION snowflake_fleet.shared_definition(kind text, object text) RETURNS text
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE kind
    WHEN 'enum' THEN (
      SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder)
        FROM pg_enum WHERE enumtypid = to_regtype(object))
    WHEN 'domain' THEN (
      SELECT concat_ws(' ', format_type(typbasetype, typtypmod), nullif(typcollation, 0)::regcollation,
                       CASE WHEN typnotnull THEN 'NOT NULL' END, 'DEFAULT ' || pg_get_expr(typdefaultbin, 0),
                       (SELECT string_agg(pg_get_constraintdef(c.oid), ' ' ORDER BY conname)
                          FROM pg_constraint AS c WHERE contypid = t.oid AND contype = 'c'))
        FROM pg_type AS t WHERE t.oid = to_regtype(object) AND typtype = 'd')
    WHEN 'trigger function' THEN (
      SELECT concat_ws(' ', lanname, prosecdef, proconfig, md5(prosrc), probin)
        FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang WHERE p.oid = to_regprocedure(object))
    WHEN 'table' THEN (
      SELECT string_agg(concat_ws(' ', quote_ident(attname), format_type(atttypid, atttypmod)), ', ' ORDER BY attname)
        FROM pg_attribute WHERE attrelid = to_regclass(object) AND attnum > 0 AND NOT attisdropped)
    WHEN 'role' THEN (SELECT 'is there' FROM pg_roles WHERE quote_ident(rolname) = object)
  END
$$;
COMMENT ON FUNCTION snowflake_fleet.shared_definition(text, text) IS
  'Internal: returns the properties of an object that must be the same on both servers, or null if the object does '
  'not exist';

CREATE FUNCTION snowflake_fleet.shared_of(schema name) RETURNS TABLE (kind text, object text, definition text)
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  WITH tab AS MATERIALIZED (
    SELECT t FROM snowflake_fleet.tables_of(schema) AS t
  )
  SELECT DISTINCT kind, object, snowflake_fleet.shared_definition(kind, object) FROM (
    SELECT CASE typtype WHEN 'e' THEN 'enum' ELSE 'domain' END AS kind, t.oid::regtype::text AS object
      FROM snowflake_fleet.types_of(schema) JOIN pg_type AS t ON t.oid = type
     WHERE typtype IN ('d', 'e') AND NOT snowflake_fleet.is_trusted('pg_type'::regclass, t.oid)
    UNION ALL
    SELECT 'trigger function', tgfoid::regprocedure::text FROM tab JOIN pg_trigger ON tgrelid = t
     WHERE NOT tgisinternal AND tgname <> 'snowflake_move'
       AND NOT snowflake_fleet.is_trusted('pg_proc'::regclass, tgfoid)
    UNION ALL
    SELECT 'table', confrelid::regclass::text FROM tab JOIN pg_constraint ON conrelid = t
     WHERE contype = 'f' AND confrelid NOT IN (TABLE tab)
    UNION ALL
    SELECT 'role', quote_ident(rolname) FROM pg_roles AS r WHERE r.oid IN (
      SELECT nspowner FROM pg_namespace WHERE nspname = schema
      UNION ALL SELECT grantee FROM pg_namespace, aclexplode(nspacl) WHERE nspname = schema
      UNION ALL SELECT unnest(ARRAY[relowner, grantee])
                  FROM snowflake_fleet.parts_of(schema)
                  JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
                  LEFT JOIN LATERAL aclexplode(relacl) ON true
      UNION ALL SELECT grantee FROM tab JOIN pg_attribute ON attrelid = t, aclexplode(attacl))) AS used
$$;
COMMENT ON FUNCTION snowflake_fleet.shared_of(name) IS
  'Internal: returns the objects that a schema uses and that must exist on both servers of a move: enums, domains, '
  'trigger functions, tables to which foreign keys refer, and roles';

-- Privileges, as in GRANT.
CREATE FUNCTION snowflake_fleet.needs_of(schema name) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT format('USAGE ON SCHEMA %s', i.schema)
    FROM snowflake_fleet.parts_of(schema) JOIN pg_depend USING (classid, objid),
         pg_identify_object(refclassid, refobjid, 0) AS i
   WHERE i.schema NOT IN (quote_ident(needs_of.schema), 'pg_catalog', 'pg_toast')
  UNION ALL
  SELECT format('%s %s', CASE kind WHEN 'trigger function' THEN 'EXECUTE ON FUNCTION'
                                   WHEN 'table' THEN 'REFERENCES ON TABLE' ELSE 'USAGE ON TYPE' END, object)
    FROM snowflake_fleet.shared_of(schema) WHERE kind <> 'role'
$$;
COMMENT ON FUNCTION snowflake_fleet.needs_of(name) IS
  'Internal: returns the privileges that a role needs to create a copy of a schema';

-- Returns the statements that create the sequences of the schema, except sequences of identity columns. Also returns
-- the statements that set the owner, the privileges and the comments of the schema and its sequences. The numbers of
-- the steps have the same meaning as in snowflake.statements_of(table).
CREATE FUNCTION snowflake_fleet.statements_beside(schema name) RETURNS TABLE (step integer, statement text)
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  WITH sequence AS (
    SELECT s.*, quote_ident(relname) AS name, relowner, relacl, obj_description(c.oid, 'pg_class') AS comment,
           (SELECT format('%I.%I', t.relname, attname)
              FROM pg_depend JOIN pg_class AS t ON t.oid = refobjid
              JOIN pg_attribute ON attrelid = t.oid AND attnum = refobjsubid
             WHERE classid = 'pg_class'::regclass AND objid = c.oid AND refclassid = 'pg_class'::regclass
               AND deptype = 'a') AS owned_by
      FROM pg_sequence AS s JOIN pg_class AS c ON c.oid = seqrelid
     WHERE relnamespace = to_regnamespace(quote_ident(schema))
       AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'i')
  ), granted (kind, name, owner, acl) AS (
    SELECT 'SEQUENCE', name, relowner, relacl FROM sequence WHERE relacl IS NOT NULL
    UNION ALL
    SELECT 'SCHEMA', quote_ident(nspname), nspowner, nspacl
      FROM pg_namespace WHERE nspname = schema AND nspacl IS NOT NULL
  )
  SELECT -1, format('CREATE SEQUENCE %s AS %s INCREMENT %s MINVALUE %s MAXVALUE %s START %s CACHE %s%s', name,
                    seqtypid::regtype, seqincrement, seqmin, seqmax, seqstart, seqcache,
                    CASE WHEN seqcycle THEN ' CYCLE' END) FROM sequence
  UNION ALL
  SELECT 5, format('COMMENT ON SEQUENCE %s IS %L', name, comment) FROM sequence WHERE comment IS NOT NULL
  UNION ALL
  SELECT 5, format('ALTER SEQUENCE %s OWNED BY %s', name, owned_by) FROM sequence WHERE owned_by IS NOT NULL
  UNION ALL
  SELECT 5, format('COMMENT ON SCHEMA %I IS %L', schema, comment)
    FROM obj_description(to_regnamespace(quote_ident(schema)), 'pg_namespace') AS comment WHERE comment IS NOT NULL
  UNION ALL
  SELECT 6, format('ALTER SEQUENCE %s OWNER TO %s', name, relowner::regrole) FROM sequence WHERE owned_by IS NULL
  UNION ALL
  SELECT 6, format('ALTER SCHEMA %I OWNER TO %s', nspname, nspowner::regrole) FROM pg_namespace WHERE nspname = schema
  UNION ALL
  SELECT 7, format('REVOKE ALL ON %s %s FROM %s', kind, name, owner::regrole) FROM granted
  UNION ALL
  SELECT 8, format('GRANT %s ON %s %s TO %s%s', privilege_type, kind, name,
                   CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                   CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END) FROM granted, aclexplode(acl)
$$;
COMMENT ON FUNCTION snowflake_fleet.statements_beside(name) IS
  'Internal: returns the statements that create copies of a schema''s sequences, and set the owner, the privileges '
  'and the comments of the schema and its sequences';

-- To create the schema of a shard, the target server runs the returned statements with only the new schema in
-- search_path. Steps 6 and later run when the target takes over the shard.
CREATE FUNCTION snowflake_fleet.statements_of(schema name, shard integer) RETURNS TABLE (step integer, statement text)
  LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT s.step, s.statement FROM snowflake_fleet.statements_beside(schema) AS s
  UNION ALL
  SELECT s.step, s.statement FROM snowflake_fleet.tables_of(schema) AS t, snowflake.statements_of(t, shard) AS s
   WHERE s.statement !~ '^CREATE TRIGGER snowflake_move |^ALTER TABLE .* ENABLE ALWAYS TRIGGER snowflake_move$'
  UNION ALL
  SELECT 6, format('ALTER STATISTICS %I OWNER TO %s', stxname, stxowner::regrole)
    FROM snowflake_fleet.tables_of(schema) AS t JOIN pg_statistic_ext ON stxrelid = t
  UNION ALL
  -- If a table's owner has all table privileges on the source server, the owner gets all table privileges on the target
  -- server. The target server may run a newer PostgreSQL version, which has more table privileges.
  SELECT 9, format('GRANT ALL ON TABLE %I TO %s', relname, relowner::regrole)
    FROM snowflake_fleet.tables_of(schema) AS t JOIN pg_class AS c ON c.oid = t
   WHERE relacl IS NOT NULL
     AND NOT EXISTS (SELECT privilege_type FROM aclexplode(acldefault('r', relowner))
                     EXCEPT SELECT privilege_type FROM aclexplode(relacl) WHERE grantee = relowner)
   ORDER BY 1, 2;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.statements_of(name, integer) IS
  'Internal: returns the statements that create a copy of a schema, as create_shards() does. The column `step` of '
  'the result is 6 or more for statements that set owners and privileges';

-- For each move, snowflake-move-shard creates a database role, which owns the new schema on the target server. The
-- function make_schema() runs the statements that create the schema as the role of the move. While the statements run,
-- the role has the privileges that the statements need. A superuser must not run the statements, because planning a
-- statement can run code. Another role may have replaced an object that a statement names.
CREATE FUNCTION snowflake_fleet.make_schema(schema name, role name, needs text[], statements text[]) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  stated text;
BEGIN
  FOREACH stated IN ARRAY needs LOOP
    EXECUTE format('GRANT %s TO %I', stated, role);
  END LOOP;
  EXECUTE format('CREATE SCHEMA %I AUTHORIZATION %I', schema, role);
  FOREACH stated IN ARRAY statements LOOP
    PERFORM snowflake.run_as(to_regrole(quote_ident(role)), stated, quote_ident(schema) || ', pg_temp');
  END LOOP;
  FOREACH stated IN ARRAY needs LOOP
    EXECUTE format('REVOKE %s FROM %I', stated, role);
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.make_schema(name, name, text[], text[]) IS
  'Internal: creates the schema of a shard on the target server. The statements run as a role that was made for this '
  'move and owns the new schema';
