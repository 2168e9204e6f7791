-- PostgreSQL does not change the type of a column that a view shows, or that a trigger, a rule or a policy names. So
-- adopt() drops the view, trigger, rule or policy, and then creates the same object again.

-- An object has a higher level than the views that the object reads. A reader locks a view before the tables of the
-- view, and adopt() uses the same order. A trigger of a partition is created together with the trigger of the parent
-- table.
CREATE FUNCTION snowflake.dependents(columns snowflake.key_column[], OUT class regclass, OUT object oid,
                                     OUT relation regclass, OUT level integer) RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE parts (class, object, relation, is_view) AS (
    SELECT 'pg_rewrite'::regclass, oid, ev_class, rulename = '_RETURN' FROM pg_rewrite
    UNION ALL SELECT 'pg_policy'::regclass, oid, polrelid, false FROM pg_policy
    UNION ALL
    SELECT 'pg_trigger'::regclass, oid, tgrelid, false FROM pg_trigger WHERE tgparentid = 0 AND NOT tgisinternal),
  found (class, object, relation, is_view, attnum, level) AS (
    SELECT NULL::regclass, NULL::oid, a.relation::oid, true, a.attnum::integer, 0
      FROM snowflake.attributes_of(columns) AS a
    UNION
    SELECT p.class, p.object, p.relation, p.is_view, NULL, f.level + 1
      FROM found AS f JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation
                                         AND d.refobjsubid = coalesce(f.attnum, d.refobjsubid)
      JOIN parts AS p ON p.class = d.classid AND p.object = d.objid
     WHERE f.is_view AND NOT (p.is_view AND p.relation = f.relation)
       AND NOT EXISTS (SELECT FROM pg_depend AS e
                        WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype IN ('e', 'x')))
  SELECT CASE WHEN f.is_view THEN 'pg_class' ELSE f.class END, CASE WHEN f.is_view THEN f.relation ELSE f.object END,
         f.relation, max(f.level)
    FROM found AS f WHERE f.level > 0 GROUP BY 1, 2, 3 ORDER BY 4, 3, 2
$$;
COMMENT ON FUNCTION snowflake.dependents(snowflake.key_column[]) IS
  'Internal: for adopt(): returns the views that show columns, directly or through other views. Also returns the '
  'triggers, rules and policies that name the columns or these views';

CREATE FUNCTION snowflake.narrow_calls(columns snowflake.key_column[], OUT caller text, OUT routine regprocedure)
  RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT DISTINCT pg_describe_object(d.class, d.object, 0), p.oid::regprocedure
    FROM snowflake.dependents(columns) AS d
    LEFT JOIN pg_rewrite AS r ON d.class = 'pg_class'::regclass AND ev_class = d.relation AND rulename = '_RETURN'
    JOIN pg_depend AS u ON u.classid = CASE WHEN r.oid IS NULL THEN d.class ELSE 'pg_rewrite'::regclass END
                       AND u.objid = coalesce(r.oid, d.object)
    JOIN pg_proc AS p ON u.refclassid = 'pg_proc'::regclass AND p.oid = u.refobjid
   WHERE snowflake.is_of_application('pg_proc'::regclass, p.oid, pronamespace)
     AND EXISTS (SELECT FROM unnest(proargtypes) AS t WHERE snowflake.wide_type(t) IS NOT NULL)
$$;
COMMENT ON FUNCTION snowflake.narrow_calls IS
  'Internal: for adopt(): returns the functions with integer arguments that views, triggers, rules and policies of '
  'these columns call. Also returns the views, triggers, rules and policies that call such a function';

CREATE FUNCTION snowflake.create_statement(class regclass, object oid) RETURNS text
  LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE class WHEN 'pg_trigger'::regclass THEN pg_get_triggerdef(object)
                    WHEN 'pg_rewrite'::regclass THEN rtrim(pg_get_ruledef(object), ';') END
   WHERE class IN ('pg_trigger'::regclass, 'pg_rewrite'::regclass)
  UNION ALL
  SELECT format('CREATE POLICY %I ON %s AS %s FOR %s TO %s', polname, polrelid::regclass,
             CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
             CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
                         ELSE 'ALL' END,
             (SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE r::regrole::text END, ', ')
                FROM unnest(polroles) AS r))
           || coalesce(' USING (' || pg_get_expr(polqual, polrelid) || ')', '')
           || coalesce(' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')', '')
    FROM pg_policy WHERE class = 'pg_policy'::regclass AND oid = object
  UNION ALL
  SELECT format('CREATE %sVIEW %s%s%s AS %s%s', CASE relkind WHEN 'm' THEN 'MATERIALIZED ' END, c.oid::regclass,
      ' WITH (' || array_to_string(reloptions, ', ') || ')', ' TABLESPACE ' || quote_ident(spcname),
      rtrim(pg_get_viewdef(c.oid), ';'), CASE WHEN NOT relispopulated THEN ' WITH NO DATA' END)
    FROM pg_class AS c LEFT JOIN pg_tablespace AS t ON t.oid = reltablespace
   WHERE class = 'pg_class'::regclass AND c.oid = object
$$;
COMMENT ON FUNCTION snowflake.create_statement IS
  'Internal: for adopt(): returns the statement that creates a view, a trigger, a rule or a policy again';

-- If `role` is null, the owner of the relation runs the statement. The statements are ordered by `n`.
CREATE FUNCTION snowflake.recreate_statements(class regclass, object oid, OUT n integer, OUT role oid,
                                              OUT statement text) RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE objects (class, object) AS (
    SELECT recreate_statements.class::oid, recreate_statements.object
    UNION
    SELECT o.class, p.object
      FROM objects AS o JOIN (SELECT 'pg_class'::regclass, indrelid, indexrelid FROM pg_index
                              UNION ALL SELECT 'pg_trigger'::regclass, tgparentid, oid FROM pg_trigger)
        AS p (class, owner, object) ON p.class = o.class AND p.owner = o.object)
  SELECT 1, NULL::oid, snowflake.create_statement(class, object)
  UNION ALL
  SELECT 2, NULL, pg_get_indexdef(o.object)
    FROM objects AS o WHERE o.class = 'pg_class'::regclass AND o.object <> recreate_statements.object
  UNION ALL
  SELECT 3, NULL, format('ALTER MATERIALIZED VIEW %s CLUSTER ON %I', indrelid::regclass, relname)
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
   WHERE class = 'pg_class'::regclass AND indrelid = object AND indisclustered
  UNION ALL
  SELECT 3, NULL, format('ALTER TABLE ONLY %s %s %s %I', e.relation::regclass, s.verb, e.kind, e.name)
    FROM (SELECT 'pg_trigger'::regclass::oid, oid, tgrelid, 'TRIGGER', tgname, tgenabled FROM pg_trigger
          UNION ALL SELECT 'pg_rewrite'::regclass, oid, ev_class, 'RULE', rulename, ev_enabled FROM pg_rewrite)
      AS e (class, object, relation, kind, name, enabled) JOIN objects USING (class, object)
    JOIN (VALUES ('D'::"char", 'DISABLE'), ('R', 'ENABLE REPLICA'), ('A', 'ENABLE ALWAYS')) AS s (enabled, verb)
      USING (enabled)
  UNION ALL
  SELECT 4, NULL, format('COMMENT ON %s %s IS %L', CASE WHEN i.type ~ ' column$' THEN 'COLUMN' ELSE upper(i.type) END,
                         i.identity, description)
    FROM objects AS o JOIN pg_description ON classoid = o.class AND objoid = o.object,
         pg_identify_object(classoid, objoid, objsubid) AS i
  UNION ALL
  SELECT g.n, g.role, g.statement FROM snowflake.grants_on_view(object) AS g WHERE class = 'pg_class'::regclass
$$;
COMMENT ON FUNCTION snowflake.recreate_statements IS
  'Internal: for adopt(): returns the statements that create a view, a trigger, a rule or a policy again. The '
  'statements also create indexes and comments, set the states of triggers, and grant privileges';

-- A new view has the privileges of ALTER DEFAULT PRIVILEGES, so the statements first revoke these privileges. As in
-- pg_dump, the GRANT statements keep the order of the view's list of privileges. Each role gets its grant option before
-- the role grants a privilege.
CREATE FUNCTION snowflake.grants_on_view(view oid, OUT n integer, OUT role oid, OUT statement text)
  RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  WITH class AS (SELECT c.* FROM pg_class AS c WHERE oid = view),
  names (grantee, name) AS (SELECT 0::oid, 'PUBLIC' UNION ALL SELECT oid, oid::regrole::text FROM pg_roles),
  given (acl, columns, first) AS (
    SELECT coalesce(relacl, acldefault('r', relowner)), NULL, 6 FROM class
    UNION ALL
    SELECT attacl, format(' (%I)', attname), 1000000
      FROM pg_attribute WHERE attrelid = view AND attacl IS NOT NULL AND NOT attisdropped)
  SELECT 5, relowner, format('REVOKE ALL ON %s FROM %s', view::regclass, string_agg(names.name, ', ' ORDER BY grantee))
    FROM class, (SELECT relowner FROM class
                 UNION
                 SELECT (aclexplode(defaclacl)).grantee FROM pg_default_acl, class
                  WHERE defaclrole = relowner AND defaclobjtype = 'r' AND defaclnamespace IN (0, relnamespace))
      AS r (grantee) JOIN names USING (grantee) GROUP BY relowner
  UNION ALL
  SELECT first + CASE a.grantor WHEN relowner THEN 0 ELSE a.n END, a.grantor,
         format('GRANT %s%s ON %s TO %s%s', a.privilege_type, columns, view::regclass, names.name,
                CASE WHEN a.is_grantable AND a.grantee <> relowner THEN ' WITH GRANT OPTION' END)
    FROM class, given,
         aclexplode(acl) WITH ORDINALITY AS a (grantor, grantee, privilege_type, is_grantable, n)
    JOIN names USING (grantee)
$$;
COMMENT ON FUNCTION snowflake.grants_on_view IS
  'Internal: for adopt(): returns the statements that grant the privileges on a view again, and the grantors who run '
  'them';

CREATE FUNCTION snowflake.view_hindrances(views regclass[]) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT 'view ' || c.oid::regclass || ', ' || CASE
           WHEN relnamespace::regnamespace::text ~ '^"?pg_temp_' THEN 'which is temporary'
           WHEN NOT snowflake.is_of_application('pg_class'::regclass, c.oid, relnamespace)
           THEN 'which an extension owns'
           WHEN NOT has_schema_privilege(relowner, relnamespace, 'CREATE')
           THEN format('whose owner %s may not create views in schema %s',
                       relowner::regrole, relnamespace::regnamespace)
           WHEN EXISTS (SELECT FROM pg_seclabel WHERE classoid = 'pg_class'::regclass AND objoid = c.oid)
           THEN 'which has a security label'
           WHEN EXISTS (SELECT FROM pg_attribute JOIN pg_type AS t ON t.oid = atttypid
                         WHERE attrelid = c.oid AND attnum > 0
                           AND (attoptions::text ~ 'n_distinct' OR attcompression <> '' OR attstorage <> typstorage
                                OR attstattarget > -1))
             OR EXISTS (SELECT FROM pg_class AS t WHERE t.oid = c.reltoastrelid AND t.reloptions IS NOT NULL)
             OR EXISTS (SELECT FROM pg_index JOIN pg_class AS i ON i.oid = indexrelid
                          JOIN pg_attribute ON attrelid = indexrelid
                         WHERE indrelid = c.oid AND (i.reltablespace <> 0 OR attstattarget > -1))
           THEN 'whose columns or indexes have storage settings'
           WHEN relam <> 0 AND (SELECT amname <> 'heap' FROM pg_am WHERE oid = relam)
           THEN 'whose access method is not heap'
         END
    FROM pg_class AS c WHERE c.oid = ANY (views)
$$;
COMMENT ON FUNCTION snowflake.view_hindrances(regclass[]) IS
  'Internal: for adopt(): returns the objects and properties that would be lost or changed if views were dropped and '
  'created again. If nothing would be lost or changed, the result is null';
