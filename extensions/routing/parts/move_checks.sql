-- The list of what snowflake-move-shard can move. All else is refused, each in a sentence, before anything is done.

-- The contents of a schema, and whether their kinds are known.
CREATE FUNCTION snowflake_fleet.contents_of(schema name)
  RETURNS TABLE (classid oid, objid oid, refusal text)
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH space AS (
    SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema
  ), rel AS (
    SELECT c.*, c.oid::regclass AS name FROM pg_class AS c JOIN space ON relnamespace = space.oid
  ), typ AS (
    SELECT t.* FROM pg_type AS t JOIN space ON typnamespace = space.oid
  )
  SELECT 'pg_namespace'::regclass::oid, oid, NULL FROM space
  UNION ALL
  SELECT 'pg_class'::regclass, oid, CASE
      WHEN relkind = 'm' THEN format('Materialized view %s is not moved: drop it, and make it on the target.', name)
      WHEN relkind = 'f' THEN format('Foreign table %s is not moved: drop it, and make it on the target.', name)
      WHEN relkind NOT IN ('r', 'p', 'i', 'I', 'S', 'v', 'c') THEN format('%s is of a kind (%s) that is not known here: drop it.', name, relkind)
      WHEN relpersistence <> 'p' THEN format('%s %s is unlogged: its rows are not in the WAL. Run ALTER ... SET LOGGED.',
                                             CASE relkind WHEN 'S' THEN 'Sequence' WHEN 'r' THEN 'Table' ELSE 'Relation' END, name)
      WHEN relkind = 'r' AND (relreplident = 'n'
           OR relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = rel.oid AND indisprimary AND indimmediate)
           OR relreplident = 'i' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = rel.oid AND indisreplident))
           THEN format('Table %s has no replica identity: give it a primary key that is not deferrable, or ALTER TABLE ... REPLICA IDENTITY.', name)
      -- The target would take the first row that compares equal, 1.0 for 1.00, and some types do not compare.
      WHEN relkind = 'r' AND relreplident = 'f' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = rel.oid AND indisprimary AND indimmediate)
           THEN format('Table %s has REPLICA IDENTITY FULL and no primary key, and rows may compare equal that are not the same: give it a primary key that is not deferrable.', name)
      -- Since PostgreSQL 16 a subscription writes as the owner of the table, and would try again without end.
      WHEN relkind IN ('r', 'p') AND NOT has_schema_privilege(relowner, relnamespace, 'USAGE')
           THEN format('Role %I owns table %s, and rows are copied as its owner, who has no USAGE on the schema: GRANT it.',
                       pg_get_userbyid(relowner), name)
      WHEN relkind IN ('r', 'p') AND NOT (SELECT bool_and(has_table_privilege(relowner, rel.oid, needed))
                                          FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) AS needed)
           THEN format('Role %I owns table %s, and rows are copied as its owner, who has taken privileges on it from himself: GRANT them.',
                       pg_get_userbyid(relowner), name)
      -- By the hash of an enum's number, say, rows would arrive for another partition, and be tried without end.
      WHEN relkind = 'p' AND EXISTS (SELECT FROM pg_partitioned_table, unnest(partclass) AS part (opclass) JOIN pg_opclass AS c ON c.oid = opclass
                                      WHERE partrelid = rel.oid AND partstrat = 'h' AND opcintype <> ALL (ARRAY[
                                        'bool', 'int2', 'int4', 'int8', 'numeric', 'float4', 'float8', 'money', 'text', 'bpchar', 'bytea', 'uuid', 'date',
                                        'time', 'timetz', 'timestamp', 'timestamptz', 'interval', 'inet', 'macaddr', 'macaddr8', 'jsonb']::regtype[]))
           THEN format('Table %s is partitioned by a hash that may be another on the target: partition it by that of a number, a text or a time.', name)
      WHEN relkind = 'r' AND relam <> (SELECT oid FROM pg_am WHERE amname = 'heap') THEN format('Table %s is no heap: ALTER TABLE ... SET ACCESS METHOD heap.', name)
      WHEN EXISTS (SELECT FROM pg_attribute WHERE attrelid = rel.oid AND attnum > 0 AND attgenerated NOT IN ('', 's'))
           THEN format('Table %s has generated columns of a kind that is not known here: drop them.', name)
    END
    FROM rel
  UNION ALL
  SELECT 'pg_class'::regclass, reltoastrelid, NULL FROM rel WHERE reltoastrelid <> 0
  UNION ALL
  SELECT 'pg_class'::regclass, indexrelid, NULL FROM rel JOIN pg_index ON indrelid = reltoastrelid
  UNION ALL
  SELECT 'pg_type'::regclass, oid, CASE
      WHEN NOT (typtype IN ('c', 'd', 'e', 'r', 'm') OR typtype = 'b' AND typcategory = 'A' AND typelem <> 0)
           THEN format('Type %s is of a kind that is not known here: make it on the target as part of an extension.', oid::regtype) END
    FROM typ
  UNION ALL
  SELECT 'pg_proc'::regclass, p.oid, CASE
      WHEN prokind NOT IN ('f', 'p', 'a', 'w') THEN format('Function %s is of a kind (%s) that is not known here: drop it.', p.oid::regprocedure, prokind)
      WHEN lanname NOT IN ('sql', 'plpgsql', 'internal')
           THEN format('Function %s is in language %s, of which the program knows nothing: move it to another schema, or drop it.', p.oid::regprocedure, lanname) END
    FROM pg_proc AS p JOIN space ON pronamespace = space.oid JOIN pg_language AS l ON l.oid = prolang
  UNION ALL
  SELECT 'pg_operator'::regclass, o.oid, NULL FROM pg_operator AS o JOIN space ON oprnamespace = space.oid
  UNION ALL
  SELECT 'pg_opclass'::regclass, o.oid, NULL FROM pg_opclass AS o JOIN space ON opcnamespace = space.oid
  UNION ALL
  SELECT 'pg_opfamily'::regclass, o.oid, NULL FROM pg_opfamily AS o JOIN space ON opfnamespace = space.oid
  UNION ALL
  SELECT 'pg_amop'::regclass, a.oid, NULL FROM pg_amop AS a JOIN pg_opfamily AS o ON o.oid = amopfamily JOIN space ON opfnamespace = space.oid
  UNION ALL
  SELECT 'pg_amproc'::regclass, a.oid, NULL FROM pg_amproc AS a JOIN pg_opfamily AS o ON o.oid = amprocfamily JOIN space ON opfnamespace = space.oid
  UNION ALL
  SELECT 'pg_collation'::regclass, c.oid, NULL FROM pg_collation AS c JOIN space ON collnamespace = space.oid
  UNION ALL
  SELECT 'pg_statistic_ext'::regclass, s.oid, CASE WHEN stxrelid NOT IN (SELECT oid FROM rel) THEN format('Statistics %I are of a table outside of the schema: drop them.', stxname) END
    FROM pg_statistic_ext AS s JOIN space ON stxnamespace = space.oid
  UNION ALL
  SELECT 'pg_default_acl'::regclass, a.oid, NULL FROM pg_default_acl AS a JOIN space ON defaclnamespace = space.oid
  UNION ALL
  SELECT 'pg_constraint'::regclass, c.oid, CASE
      WHEN contype NOT IN ('c', 'f', 'p', 'u', 'x', 't', 'n') THEN format('Constraint %I of %s is of a kind (%s) that is not known here: drop it.', conname, conrelid::regclass, contype) END
    FROM pg_constraint AS c WHERE conrelid IN (SELECT oid FROM rel) OR contypid IN (SELECT oid FROM typ)
  UNION ALL
  SELECT 'pg_attrdef'::regclass, d.oid, NULL FROM pg_attrdef AS d JOIN rel ON adrelid = rel.oid
  UNION ALL
  -- Those that fire when changes are applied would do on the target what was done on the source, and as who applies.
  SELECT 'pg_trigger'::regclass, t.oid, CASE
      WHEN tgname = 'snowflake_move' THEN NULL
      WHEN tgenabled NOT IN ('O', 'D') THEN format('Trigger %I of table %s is ENABLE %s: it would fire for each row that is copied. ALTER TABLE ... ENABLE TRIGGER.',
                                                   tgname, rel.name, CASE tgenabled WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' ELSE tgenabled::text END) END
    FROM pg_trigger AS t JOIN rel ON tgrelid = rel.oid
  UNION ALL
  SELECT 'pg_rewrite'::regclass, r.oid, CASE
      WHEN ev_enabled NOT IN ('O', 'D') THEN format('Rule %I of %s is ENABLE ALWAYS or REPLICA. ALTER TABLE ... ENABLE RULE.', rulename, rel.name) END
    FROM pg_rewrite AS r JOIN rel ON ev_class = rel.oid
  UNION ALL
  SELECT 'pg_policy'::regclass, p.oid, NULL FROM pg_policy AS p JOIN rel ON polrelid = rel.oid
  UNION ALL
  SELECT 'pg_publication_rel'::regclass, r.oid, NULL
    FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = prpubid JOIN rel ON prrelid = rel.oid WHERE pubname ~ '^snowflake_move_[0-9]+$'
$$;
COMMENT ON FUNCTION snowflake_fleet.contents_of(name) IS
  'Behind snowflake-move-shard: everything that is part of a schema, and why it cannot be moved, or NULL';

-- How a person would call it: the thing that hangs there, not the rule or the default by which it does.
CREATE FUNCTION snowflake_fleet.called(classid oid, objid oid) RETURNS text
  LANGUAGE sql STABLE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE classid
    WHEN 'pg_rewrite'::regclass THEN (SELECT pg_describe_object('pg_class'::regclass, ev_class, 0) FROM pg_rewrite AS r WHERE r.oid = objid)
    WHEN 'pg_constraint'::regclass THEN (SELECT format('%s %I of table %s', CASE contype WHEN 'f' THEN 'Foreign key' ELSE 'Constraint' END, conname, conrelid::regclass)
                                           FROM pg_constraint AS c WHERE c.oid = objid AND conrelid <> 0)
  END
$$;
COMMENT ON FUNCTION snowflake_fleet.called(oid, oid) IS
  'Behind snowflake-move-shard: a better name for some objects than pg_describe_object() has, or NULL';

-- What an extension has, and who may alter it if he is no superuser: who owns an extension may have added things of his own.
CREATE FUNCTION snowflake_fleet.extension_members() RETURNS TABLE (classid oid, objid oid, extension name, ordinary_owner name)
  LANGUAGE sql STABLE
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH member AS (
    SELECT d.classid, d.objid, extname FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = refobjid
     WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
  ), owner AS (
    SELECT s.classid, s.objid, rolname FROM pg_shdepend AS s JOIN pg_roles AS r ON r.oid = s.refobjid
     WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND s.refclassid = 'pg_authid'::regclass AND s.deptype = 'o' AND NOT rolsuper
  )
  SELECT m.classid, m.objid, m.extname, o.rolname FROM member AS m LEFT JOIN owner AS o USING (classid, objid)
  UNION ALL
  -- An array's type is nobody's member.
  SELECT m.classid, typarray, m.extname, o.rolname
    FROM member AS m JOIN pg_type AS t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid AND typarray <> 0 LEFT JOIN owner AS o USING (classid, objid)
$$;
COMMENT ON FUNCTION snowflake_fleet.extension_members() IS
  'Behind snowflake-move-shard: the objects of extensions, and their owners where those are no superusers';

-- Functions of roles that are no superusers, where a server evaluates them by itself, which it does as a superuser while
-- rows are copied and applied. In any schema: the owner of an extension may add functions and types of his own to it. And on
-- the target also, where the same name may be somebody else's.
CREATE FUNCTION snowflake_fleet.called_as_superuser(schema name) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE inside AS MATERIALIZED (
    SELECT c.classid, c.objid FROM snowflake_fleet.contents_of(schema) AS c
  ), ordinary AS (
    SELECT 'pg_proc'::regclass::oid AS classid, p.oid AS objid, p.oid AS function
      FROM pg_proc AS p JOIN pg_roles AS r ON r.oid = proowner WHERE NOT rolsuper
    UNION
    SELECT next.classid, next.objid, o.function FROM ordinary AS o, LATERAL (
        SELECT d.classid, d.objid FROM pg_depend AS d
         WHERE d.refclassid = o.classid AND d.refobjid = o.objid
           AND (o.classid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass, 'pg_opfamily'::regclass,
                              'pg_amop'::regclass, 'pg_amproc'::regclass, 'pg_type'::regclass)
             OR o.classid = 'pg_class'::regclass AND (SELECT relkind FROM pg_class WHERE oid = o.objid) = 'c')
        UNION ALL
        SELECT 'pg_type'::regclass, contypid FROM pg_constraint AS c
         WHERE o.classid = 'pg_constraint'::regclass AND c.oid = o.objid AND contypid <> 0) AS next
  )
  SELECT DISTINCT format('Function %s belongs to role %s, and the target would call it as a superuser for %s: run ALTER FUNCTION ... OWNER TO a superuser.',
                o.function::regprocedure, (SELECT proowner::regrole FROM pg_proc WHERE oid = o.function),
                coalesce(snowflake_fleet.called(o.classid, o.objid), pg_describe_object(o.classid, o.objid, 0)))
    FROM ordinary AS o
   WHERE (o.classid, o.objid) IN (SELECT x.classid, x.objid FROM inside AS x)
     AND (o.classid IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass)
       OR o.classid = 'pg_class'::regclass AND (SELECT relkind FROM pg_class WHERE oid = o.objid) IN ('i', 'I', 'p', 'r')
       OR o.classid = 'pg_attrdef'::regclass AND (SELECT attgenerated FROM pg_attrdef AS a JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
                                                   WHERE a.oid = o.objid) <> '')
  UNION ALL
  -- Functions of the server's look casts up by themselves, as to_jsonb() does.
  SELECT format('Function %s belongs to role %s, and the target may call it as a superuser for the cast of %s to %s: drop the cast.',
                p.oid::regprocedure, proowner::regrole, castsource::regtype, casttarget::regtype)
    FROM pg_cast JOIN pg_proc AS p ON p.oid = castfunc JOIN pg_roles AS r ON r.oid = proowner
   WHERE NOT rolsuper AND EXISTS (SELECT FROM inside AS x WHERE x.classid = 'pg_type'::regclass AND x.objid IN (castsource, casttarget))
  UNION ALL
  -- Of the server's own functions and of extensions' those may stand in a check that do nothing but compute: others change
  -- settings, write files, or run what their arguments or the catalogues name, as database_to_xml() runs every view. pg_depend
  -- does not have the server's own. What is immutable computes; of the rest, what is listed.
  SELECT DISTINCT format('%s calls %s, which may do more than compute, and the target would call it as a superuser: drop the constraint, or have it call a function of a superuser''s that calls it.',
                coalesce(snowflake_fleet.called('pg_constraint'::regclass, c.oid), pg_describe_object('pg_constraint'::regclass, c.oid, 0)), p.oid::regprocedure)
    FROM pg_constraint AS c, LATERAL regexp_matches(conbin::text, ':(?:op)?funcid ([0-9]+)', 'g') AS found JOIN pg_proc AS p ON p.oid = found[1]::oid
   WHERE contype = 'c'
     AND (EXISTS (SELECT FROM inside AS x WHERE x.classid = 'pg_constraint'::regclass AND x.objid = c.oid)
       OR EXISTS (SELECT FROM inside AS x WHERE x.classid = 'pg_type'::regclass AND x.objid = contypid))
     AND (p.oid < 16384 OR EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'))
     AND provolatile <> 'i'
     AND NOT (p.oid < 16384 AND proname ~ (
       '^(clock_timestamp|timeofday|random|gen_random_uuid|now|(statement|transaction)_timestamp|current_user|session_user'
       '|age|date|time|timetz|timestamp|timestamptz|date_(part|trunc)|extract|make_timestamptz|timezone|overlaps|in_range'
       '|(date|timestamp|timestamptz|interval)_(cmp|eq|ge|gt|le|lt|ne|mi|pl)_(date|timestamp|timestamptz|interval)|to_(char|date|number|timestamp)'
       '|money|numeric|concat|concat_ws|textanycat|anytextcat|format|quote_(literal|nullable)|array_to_(string|json)|enum_(first|last|range)'
       '|to_jsonb?|row_to_json|jsonb?_build_(array|object)|xml|xml_is_well_formed|pg_typeof|pg_column_size)$'))
     AND NOT (provolatile = 's' AND (SELECT lanname FROM pg_language AS l WHERE l.oid = prolang) = 'c'
              AND EXISTS (SELECT FROM snowflake_fleet.extension_members() AS e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid
                             AND e.ordinary_owner IS NULL AND e.extension IN ('snowflake', 'snowflake_alias')))
$$;
COMMENT ON FUNCTION snowflake_fleet.called_as_superuser(name) IS
  'Behind snowflake-move-shard: functions of ordinary roles that applying rows to a schema would call, in sentences';

-- It would be asked, emptied or in the way along with the schema. An heir's indexes are planned with a query of the table.
CREATE FUNCTION snowflake_fleet.attached_from_outside(schema name) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH inside AS MATERIALIZED (
    SELECT c.classid, c.objid FROM snowflake_fleet.contents_of(schema) AS c
  ), tab AS MATERIALIZED (
    SELECT t::oid AS oid FROM snowflake_fleet.tables_of(schema) AS t
  )
  SELECT DISTINCT format('Table %s takes part in the partitioning or inheritance of a table outside of the schema: detach it, or move both.', tab.oid::regclass)
    FROM tab JOIN pg_inherits ON tab.oid IN (inhrelid, inhparent)
   WHERE inhrelid NOT IN (SELECT i.oid FROM tab AS i) OR inhparent NOT IN (SELECT i.oid FROM tab AS i)
  UNION ALL
  -- What hangs on it from outside, whatever it is. What hangs on that in its turn need not be listed.
  SELECT DISTINCT CASE WHEN d.classid = 'pg_constraint'::regclass
                  THEN format('%s refers to the schema from outside: drop it.', coalesce(snowflake_fleet.called(d.classid, d.objid), pg_describe_object(d.classid, d.objid, 0)))
                  WHEN d.refclassid = 'pg_namespace'::regclass
                  THEN format('%s is of a kind that is not known here: drop it, or put it into another schema.', pg_describe_object(d.classid, d.objid, d.objsubid))
                  ELSE format('%s is outside of the schema and uses %s: drop it, or move it into the schema.',
                              coalesce(snowflake_fleet.called(d.classid, d.objid), pg_describe_object(d.classid, d.objid, d.objsubid)),
                              coalesce(CASE WHEN d.refclassid = 'pg_class'::regclass THEN d.refobjid::regclass::text END, pg_describe_object(d.refclassid, d.refobjid, 0))) END
    FROM inside AS i JOIN pg_depend AS d ON d.refclassid = i.classid AND d.refobjid = i.objid
   WHERE (d.classid, d.objid) NOT IN (SELECT x.classid, x.objid FROM inside AS x)
     AND d.classid NOT IN ('pg_publication_rel'::regclass, 'pg_publication_namespace'::regclass)
     AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE d.classid = 'pg_trigger'::regclass AND t.oid = d.objid AND tgisinternal)
     -- the cast of a range to its multirange, say
     AND NOT EXISTS (SELECT FROM pg_depend AS p JOIN inside AS x ON p.refclassid = x.classid AND p.refobjid = x.objid
                      WHERE p.classid = d.classid AND p.objid = d.objid AND p.deptype = 'i')
$$;
COMMENT ON FUNCTION snowflake_fleet.attached_from_outside(name) IS
  'Behind snowflake-move-shard: what is outside of a schema and hangs on it, in sentences';

CREATE FUNCTION snowflake_fleet.immovable(schema name) RETURNS SETOF text
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  space CONSTANT oid := (SELECT oid FROM pg_namespace WHERE nspname = schema);
BEGIN
  IF space IS NULL THEN
    RETURN NEXT format('There is no schema %I.', schema);
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM snowflake_fleet.tables_of(schema)) THEN
    RETURN NEXT format('Schema %I has no tables.', schema);
  END IF;
  -- An ordinary role that made these objects without the extension could not make event triggers.
  IF (SELECT count(*) FROM pg_event_trigger WHERE evtname IN ('snowflake_move_guard', 'snowflake_move_guard_start', 'snowflake_move_guard_rewrite') AND evtenabled = 'A') <> 3 THEN
    RETURN NEXT 'Nothing keeps the schema from being changed meanwhile: one of the event triggers snowflake_move_guard, snowflake_move_guard_start and snowflake_move_guard_rewrite is missing, or not ENABLE ALWAYS.';
  END IF;
  RETURN QUERY
  WITH inside AS MATERIALIZED (
    SELECT c.classid, c.objid, c.refusal FROM snowflake_fleet.contents_of(schema) AS c
  ), extension_member AS MATERIALIZED (
    SELECT m.classid, m.objid, m.extension AS extname, m.ordinary_owner FROM snowflake_fleet.extension_members() AS m
  )
  SELECT refusal FROM inside WHERE refusal IS NOT NULL
  UNION ALL
  SELECT * FROM snowflake_fleet.attached_from_outside(schema)
  UNION ALL
  SELECT DISTINCT format('Publication %I publishes its tables, and would go on without them: take them out of it, or drop it.', pubname)
    FROM pg_publication AS p
   WHERE pubname !~ '^snowflake_move_[0-9]+$'
     AND (puballtables OR p.oid IN (SELECT prpubid FROM pg_publication_rel JOIN pg_class AS c ON c.oid = prrelid WHERE relnamespace = space)
                       OR p.oid IN (SELECT pnpubid FROM pg_publication_namespace WHERE pnnspid = space))
  UNION ALL
  -- What it uses outside, but for extensions, and what every server has.
  SELECT DISTINCT CASE WHEN d.classid = 'pg_constraint'::regclass AND d.refclassid = 'pg_class'::regclass
                  THEN format('%s refers to %s, outside of the schema: drop it.', snowflake_fleet.called(d.classid, d.objid), d.refobjid::regclass)
                  ELSE format('%s uses %s, which is outside of the schema and of no extension: move it into the schema.',
                              coalesce(snowflake_fleet.called(d.classid, d.objid), pg_describe_object(d.classid, d.objid, d.objsubid)),
                              pg_describe_object(d.refclassid, d.refobjid, 0)) END
    FROM inside AS i JOIN pg_depend AS d ON d.classid = i.classid AND d.objid = i.objid
   WHERE (d.refclassid, d.refobjid) NOT IN (SELECT x.classid, x.objid FROM inside AS x)
     AND d.refobjid >= 16384 AND d.refclassid NOT IN ('pg_extension'::regclass, 'pg_publication'::regclass)
     AND (d.refclassid, d.refobjid) NOT IN (SELECT e.classid, e.objid FROM extension_member AS e)
     AND NOT (d.refclassid = 'pg_class'::regclass AND EXISTS (SELECT FROM pg_index WHERE indexrelid = d.refobjid))
     AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE d.classid = 'pg_trigger'::regclass AND t.oid = d.objid AND (tgisinternal OR tgname = 'snowflake_move'))
  UNION ALL
  SELECT DISTINCT format('%s uses %s of extension %I, which role %I owns and may alter when a superuser applies rows: have a superuser own it.',
                         coalesce(snowflake_fleet.called(d.classid, d.objid), pg_describe_object(d.classid, d.objid, d.objsubid)),
                         pg_describe_object(d.refclassid, d.refobjid, 0), e.extname, e.ordinary_owner)
    FROM inside AS i JOIN pg_depend AS d ON d.classid = i.classid AND d.objid = i.objid
    JOIN extension_member AS e ON (e.classid, e.objid) = (d.refclassid, d.refobjid)
   WHERE e.ordinary_owner IS NOT NULL
  UNION ALL
  SELECT format('%s belongs to extension %I: run ALTER EXTENSION ... DROP.', pg_describe_object(i.classid, i.objid, 0), e.extname)
    FROM inside AS i JOIN extension_member AS e USING (classid, objid) WHERE i.classid <> 'pg_namespace'::regclass
  UNION ALL
  SELECT * FROM snowflake_fleet.called_as_superuser(schema)
  UNION ALL
  SELECT DISTINCT format('Table %s has a column of type %s, and this database has large objects: keep them elsewhere.', c.oid::regclass, format_type(atttypid, NULL))
    FROM pg_class AS c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped JOIN pg_type AS t ON t.oid = atttypid
   WHERE relnamespace = space AND relkind = 'r'
     AND 'oid'::regtype IN (atttypid, typbasetype, typelem) AND EXISTS (SELECT FROM pg_largeobject_metadata)
  UNION ALL
  SELECT CASE WHEN subname ~ '^snowflake_move_[0-9]+$' THEN format('Table %s is filled by a move that has not ended: run that one again.', srrelid::regclass)
              ELSE format('Table %s is filled by subscription %I: drop that first.', srrelid::regclass, subname) END
    FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid JOIN pg_class AS c ON c.oid = srrelid WHERE relnamespace = space
  UNION ALL
  SELECT format('%s has a security label: the program knows no provider of them.', pg_describe_object(i.classid, i.objid, 0))
    FROM inside AS i JOIN pg_seclabel AS l ON l.classoid = i.classid AND l.objoid = i.objid;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.immovable(name) IS
  'Internal: what keeps a schema from being moved by snowflake-move-shard, in sentences; none where it can be';

CREATE FUNCTION snowflake_fleet.requirements_of(schema name)
  RETURNS TABLE (kind text, object_name text)
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH inside AS MATERIALIZED (
    SELECT c.classid, c.objid FROM snowflake_fleet.contents_of(schema) AS c
  )
  SELECT 'role', rolname::text FROM inside JOIN pg_shdepend AS d USING (classid, objid) JOIN pg_roles AS r ON r.oid = refobjid
   WHERE refclassid = 'pg_authid'::regclass AND d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  UNION
  SELECT 'role', pg_get_userbyid(relowner)::text FROM pg_class WHERE oid IN (SELECT t FROM snowflake_fleet.tables_of(schema) AS t)
  UNION
  SELECT 'tablespace', spcname::text FROM inside JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
    JOIN pg_tablespace AS s ON s.oid = reltablespace
$$;
COMMENT ON FUNCTION snowflake_fleet.requirements_of(name) IS
  'Behind snowflake-move-shard: roles and tablespaces that a target has to have';

-- Under the same name there may be somebody else's, which the statements that make the schema would call.
CREATE FUNCTION snowflake_fleet.used_of_extensions(schema name) RETURNS TABLE (extension text, object text)
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT DISTINCT e.extension::text, concat_ws(' ', o.type, o.identity)
    FROM snowflake_fleet.contents_of(schema) AS i JOIN pg_depend AS d USING (classid, objid)
    JOIN snowflake_fleet.extension_members() AS e ON e.classid = d.refclassid AND e.objid = d.refobjid,
         pg_identify_object(d.refclassid, d.refobjid, 0) AS o
$$;
COMMENT ON FUNCTION snowflake_fleet.used_of_extensions(name) IS
  'Behind snowflake-move-shard: the objects of extensions that a schema uses, by names that are the same on every server';

CREATE FUNCTION snowflake_fleet.lacking_of_extensions(extensions text[], objects text[]) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH needed AS (
    SELECT * FROM unnest(extensions, objects) AS needed (extension, object)
  ), there AS MATERIALIZED (
    SELECT e.extension::text, concat_ws(' ', o.type, o.identity) AS object, e.classid, e.objid, e.ordinary_owner
      FROM snowflake_fleet.extension_members() AS e, pg_identify_object(e.classid, e.objid, 0) AS o WHERE e.extension = ANY (extensions)
  )
  SELECT CASE WHEN EXISTS (SELECT FROM pg_extension WHERE extname = extension)
              THEN format('The target has no %s of extension %I that a superuser owns, which the schema needs: have the extension there in the same version and schema as on the source.', object, extension)
              ELSE format('The target has no extension %I, which the schema needs: run CREATE EXTENSION there.', extension) END
    FROM (SELECT extension, object FROM needed EXCEPT SELECT extension, object FROM there WHERE ordinary_owner IS NULL) AS lacking
  UNION
  -- A name is resolved anew on the target, where one that fits the arguments better wins. What it did is done when the schema is looked at.
  SELECT format('The target has %s %s of role %I beside that of extension %I, and what makes the schema might call it as a superuser: have a superuser own it, or drop it.',
                kind, identity, rolname, extension)
    FROM needed JOIN there USING (extension, object), LATERAL (
      SELECT 'function' AS kind, p.oid::regprocedure::text AS identity, p.proowner AS owner
        FROM pg_proc AS f JOIN pg_proc AS p ON p.pronamespace = f.pronamespace AND p.proname = f.proname
       WHERE there.classid = 'pg_proc'::regclass AND f.oid = there.objid
      UNION ALL
      SELECT 'operator', p.oid::regoperator::text, p.oprowner
        FROM pg_operator AS f JOIN pg_operator AS p ON p.oprnamespace = f.oprnamespace AND p.oprname = f.oprname
       WHERE there.classid = 'pg_operator'::regclass AND f.oid = there.objid) AS same JOIN pg_roles AS r ON r.oid = owner
   WHERE NOT rolsuper
   ORDER BY 1
$$;
COMMENT ON FUNCTION snowflake_fleet.lacking_of_extensions(text[], text[]) IS
  'Behind snowflake-move-shard: what of used_of_extensions() of another server is not the same here, or has a namesake of an ordinary role''s, in sentences';

REVOKE ALL ON FUNCTION snowflake_fleet.contents_of(name), snowflake_fleet.called(oid, oid), snowflake_fleet.called_as_superuser(name),
  snowflake_fleet.attached_from_outside(name), snowflake_fleet.extension_members(), snowflake_fleet.immovable(name),
  snowflake_fleet.requirements_of(name), snowflake_fleet.used_of_extensions(name),
  snowflake_fleet.lacking_of_extensions(text[], text[]) FROM PUBLIC;
