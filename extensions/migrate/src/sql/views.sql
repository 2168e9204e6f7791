-- If a view shows a column, or if a trigger, a rule or a policy names the column, PostgreSQL refuses to change the type
-- of the column. adopt() drops these objects and creates them again with the same definition.

-- Readers lock a view before its tables, and adopt() uses the same order. In this result, a view comes after the
-- relations that it reads; lock_steps() reverses this order.
CREATE FUNCTION snowflake.views_over(columns snowflake.key_column[], OUT view regclass, OUT level integer)
  RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE over (relation, attnum, level) AS (
    SELECT a.relation::oid, a.attnum::integer, 0 FROM snowflake.attributes_of(columns) AS a
    UNION
    SELECT ev_class, 0, level + 1
      FROM over AS o JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = o.relation
       AND (o.attnum = 0 OR d.refobjsubid = o.attnum) AND d.classid = 'pg_rewrite'::regclass
      JOIN pg_rewrite AS r ON r.oid = d.objid JOIN pg_class AS c ON c.oid = ev_class
     WHERE rulename = '_RETURN' AND relkind IN ('v', 'm') AND ev_class <> o.relation)
  SELECT o.relation::regclass, max(o.level) FROM over AS o WHERE o.level > 0 GROUP BY 1 ORDER BY 2, 1
$$;
COMMENT ON FUNCTION snowflake.views_over(snowflake.key_column[]) IS
  'Internal: for adopt(): the views that show columns, directly or through other views; a view comes after those '
  'that it reads';

-- Returns statements that create, in this order, the view, its parts, its comments, its privileges.
CREATE FUNCTION snowflake.view_statements(view regclass, OUT role oid, OUT statement text) RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT c.relowner, format('CREATE %sVIEW %s%s%s AS %s%s', CASE relkind WHEN 'm' THEN 'MATERIALIZED ' END, view,
      ' WITH (' || array_to_string(reloptions, ', ') || ')', ' TABLESPACE ' || quote_ident(spcname),
      rtrim(pg_get_viewdef(view), ';'), CASE WHEN NOT relispopulated THEN ' WITH NO DATA' END)
    FROM pg_class AS c LEFT JOIN pg_tablespace AS t ON t.oid = reltablespace WHERE c.oid = view
  UNION ALL
  SELECT c.relowner, o.statement
    FROM pg_class AS c, (SELECT p FROM snowflake.parts_of_view(view) AS p
                         UNION ALL
                         SELECT d FROM (SELECT view::oid UNION SELECT indexrelid FROM pg_index WHERE indrelid = view)
                           AS i (object), snowflake.comments_on('pg_class', i.object) AS d
                         UNION ALL
                         SELECT d FROM pg_statistic_ext AS x, snowflake.comments_on('pg_statistic_ext', x.oid) AS d
                          WHERE stxrelid = view) AS o (statement)
   WHERE c.oid = view
  UNION ALL
  SELECT g.role, g.statement FROM snowflake.grants_on_view(view) AS g
$$;
COMMENT ON FUNCTION snowflake.view_statements IS 'Internal: for adopt(): what creates a view again, and as whom';

CREATE FUNCTION snowflake.comments_on(class regclass, object oid) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT format('COMMENT ON %s %s IS %L',
                CASE i.type WHEN 'view column' THEN 'COLUMN' WHEN 'materialized view column' THEN 'COLUMN'
                            WHEN 'statistics object' THEN 'STATISTICS' ELSE upper(i.type) END, i.identity, description)
    FROM pg_description, pg_identify_object(class, object, objsubid) AS i WHERE classoid = class AND objoid = object
   ORDER BY i.identity
$$;
COMMENT ON FUNCTION snowflake.comments_on IS 'Internal: for adopt(): the comments on an object and its columns';

-- Triggers and rules on the views are not returned, because view_statements() creates them again. A trigger of a
-- partition is created together with the trigger of its parent.
CREATE FUNCTION snowflake.parts_over(columns snowflake.key_column[], OUT class regclass, OUT object oid,
                                     OUT relation regclass, OUT identity text) RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  WITH named (relation, attnum) AS (
    SELECT a.relation, a.attnum FROM snowflake.attributes_of(columns) AS a
    UNION ALL SELECT v.view, NULL FROM snowflake.views_over(columns) AS v)
  SELECT DISTINCT d.classid::regclass, d.objid, p.relation::regclass, upper(i.type) || ' ' || i.identity
    FROM named AS n JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = n.relation
      AND d.refobjsubid = coalesce(n.attnum, d.refobjsubid)
    JOIN (SELECT 'pg_trigger'::regclass, oid, tgrelid FROM pg_trigger WHERE tgparentid = 0 AND NOT tgisinternal
          UNION ALL SELECT 'pg_rewrite'::regclass, oid, ev_class FROM pg_rewrite WHERE rulename <> '_RETURN'
          UNION ALL SELECT 'pg_policy'::regclass, oid, polrelid FROM pg_policy) AS p (class, object, relation)
      ON p.class = d.classid AND p.object = d.objid,
         pg_identify_object(d.classid, d.objid, 0) AS i
   WHERE p.relation NOT IN (SELECT view FROM snowflake.views_over(columns))
     AND NOT EXISTS (SELECT FROM pg_depend AS e
                      WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype IN ('e', 'x'))
$$;
COMMENT ON FUNCTION snowflake.parts_over IS
  'Internal: for adopt(): the triggers, rules and policies that name columns, or the views over them';

CREATE FUNCTION snowflake.part_statements(class regclass, object oid) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE triggers AS (
    SELECT t.* FROM pg_trigger AS t WHERE class = 'pg_trigger'::regclass AND oid = object
    UNION ALL SELECT c.* FROM triggers AS p JOIN pg_trigger AS c ON c.tgparentid = p.oid),
  rules AS (SELECT r.* FROM pg_rewrite AS r WHERE class = 'pg_rewrite'::regclass AND oid = object)
  SELECT pg_get_triggerdef(oid) FROM triggers WHERE oid = object
  UNION ALL
  SELECT rtrim(pg_get_ruledef(oid), ';') FROM rules
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
  SELECT format('ALTER TABLE ONLY %s %s %s %I', o.relation::regclass, s.verb, o.kind, o.name)
    FROM (SELECT tgrelid, 'TRIGGER', tgname, tgenabled FROM triggers
          UNION ALL SELECT ev_class, 'RULE', rulename, ev_enabled FROM rules) AS o (relation, kind, name, enabled)
    JOIN (VALUES ('D'::"char", 'DISABLE'), ('R', 'ENABLE REPLICA'), ('A', 'ENABLE ALWAYS')) AS s (enabled, verb)
      USING (enabled)
  UNION ALL
  SELECT c FROM (SELECT part_statements.object UNION SELECT oid FROM triggers) AS o (object),
                snowflake.comments_on(class, o.object) AS c
$$;
COMMENT ON FUNCTION snowflake.part_statements IS
  'Internal: for adopt(): what creates a trigger, a rule or a policy again, with its comment';

CREATE FUNCTION snowflake.parts_of_view(view regclass) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT p.statement FROM (
      SELECT 1, attnum::text, format('ALTER VIEW %s ALTER COLUMN %I SET DEFAULT %s', view, attname,
          pg_get_expr(adbin, adrelid))
        FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE adrelid = view
      UNION ALL
      SELECT 1, attnum::text, format('ALTER MATERIALIZED VIEW %s ALTER COLUMN %I SET STATISTICS %s', view, attname,
          attstattarget)
        FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid
       WHERE attrelid = view AND relkind = 'm' AND attnum > 0 AND attstattarget > -1
      UNION ALL
      SELECT 2, indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = view
      UNION ALL
      SELECT 3, i.indexrelid::regclass::text, format('ALTER MATERIALIZED VIEW %s CLUSTER ON %I', view, x.relname)
        FROM pg_index AS i JOIN pg_class AS x ON x.oid = indexrelid WHERE indrelid = view AND indisclustered
      UNION ALL
      SELECT 3, stxname, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext WHERE stxrelid = view
      UNION ALL
      SELECT 4, rulename, s FROM pg_rewrite, snowflake.part_statements('pg_rewrite', oid) AS s
       WHERE ev_class = view AND rulename <> '_RETURN'
      UNION ALL
      SELECT 5, tgname, s FROM pg_trigger, snowflake.part_statements('pg_trigger', oid) AS s
       WHERE tgrelid = view AND NOT tgisinternal)
    AS p (kind, name, statement) ORDER BY p.kind, p.name
$$;
COMMENT ON FUNCTION snowflake.parts_of_view IS 'Internal: for adopt(): what a view has: indexes, rules, triggers, ...';


-- A new view has the privileges of ALTER DEFAULT PRIVILEGES: they are revoked first.
CREATE FUNCTION snowflake.grants_on_view(view regclass, OUT role oid, OUT statement text) RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
  WITH class AS (SELECT c.* FROM pg_class AS c WHERE oid = view),
  preset (grantee) AS (
    SELECT DISTINCT (aclexplode(defaclacl)).grantee FROM pg_default_acl, class
     WHERE defaclrole = relowner AND defaclobjtype = 'r' AND defaclnamespace IN (0, relnamespace)),
  names (grantee, name) AS (SELECT 0::oid, 'PUBLIC' UNION ALL SELECT oid, oid::regrole::text FROM pg_roles),
  given (acl, columns) AS (
    SELECT coalesce(relacl, acldefault('r', relowner)), NULL FROM class
     WHERE relacl IS NOT NULL OR EXISTS (SELECT FROM preset)
    UNION ALL
    SELECT attacl, format(' (%I)', attname)
      FROM pg_attribute WHERE attrelid = view AND attacl IS NOT NULL AND NOT attisdropped)
  SELECT relowner, format('REVOKE ALL ON %s FROM %s', view, string_agg(n.name, ', ' ORDER BY r.grantee))
    FROM class, (SELECT grantee FROM preset UNION SELECT relowner FROM class) AS r JOIN names AS n USING (grantee)
   WHERE EXISTS (SELECT FROM given) GROUP BY 1
  UNION ALL
  (SELECT a.grantor, format('GRANT %s ON %s TO %s%s', string_agg(a.privilege_type || coalesce(columns, ''), ', '
    ORDER BY a.privilege_type, columns), view, n.name, CASE WHEN g.grantable THEN ' WITH GRANT OPTION' END)
     FROM class, given, aclexplode(acl) AS a JOIN names AS n USING (grantee),
          LATERAL (SELECT a.is_grantable AND a.grantee <> relowner) AS g (grantable)
    GROUP BY relowner, a.grantor, a.grantee, n.name, g.grantable
    ORDER BY a.grantor <> relowner, a.grantor, a.grantee, g.grantable)
$$;
COMMENT ON FUNCTION snowflake.grants_on_view IS 'Internal: for adopt(): the privileges on a view, and who granted them';

-- Objects that belong to a view are created again with the view. view_hindrances() returns every other object that
-- needs the view.
CREATE FUNCTION snowflake.view_hindrances(views regclass[], parts oid[]) RETURNS SETOF text
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT format('%s, which needs view %s', pg_describe_object(d.classid, d.objid, d.objsubid), c.oid::regclass)
    FROM pg_class AS c JOIN pg_type AS t ON t.oid = reltype
    JOIN pg_depend AS d ON d.deptype <> 'i' AND (d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
                             OR d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray))
   WHERE c.oid = ANY (views) AND d.classid <> 'pg_statistic_ext'::regclass AND d.objid <> ALL (parts)
     AND NOT EXISTS (SELECT FROM pg_rewrite WHERE d.classid = 'pg_rewrite'::regclass AND oid = d.objid
                        AND (ev_class = c.oid OR rulename = '_RETURN' AND ev_class = ANY (views)))
     AND NOT EXISTS (SELECT FROM pg_class WHERE d.classid = 'pg_class'::regclass AND oid = d.objid AND relkind = 'i')
     AND NOT EXISTS (SELECT FROM pg_attrdef
                      WHERE d.classid = 'pg_attrdef'::regclass AND oid = d.objid AND adrelid = c.oid)
     AND NOT EXISTS (SELECT FROM pg_trigger
                      WHERE d.classid = 'pg_trigger'::regclass AND oid = d.objid AND tgrelid = c.oid)
  UNION ALL
  SELECT 'view ' || c.oid::regclass || ', ' || CASE
           WHEN relnamespace::regnamespace::text ~ '^"?pg_temp_' THEN 'which is temporary'
           WHEN NOT snowflake.is_of_application('pg_class'::regclass, c.oid, relnamespace)
           THEN 'which an extension owns'
           WHEN NOT has_schema_privilege(relowner, relnamespace, 'CREATE')
           THEN format('whose owner %s may not create it in schema %s', relowner::regrole, relnamespace::regnamespace)
           WHEN EXISTS (SELECT FROM pg_seclabel WHERE classoid = 'pg_class'::regclass AND objoid = c.oid)
           THEN 'which has a security label'
           WHEN EXISTS (SELECT FROM pg_attribute JOIN pg_type AS t ON t.oid = atttypid
                         WHERE attrelid = c.oid AND attnum > 0
                           AND (attoptions::text ~ 'n_distinct' OR attcompression <> '' OR attstorage <> typstorage))
             OR EXISTS (SELECT FROM pg_class AS t WHERE t.oid = c.reltoastrelid AND t.reloptions IS NOT NULL)
           THEN 'which has settings of columns'
           WHEN relam <> 0 AND (SELECT amname <> 'heap' FROM pg_am WHERE oid = relam) THEN 'which is not a heap'
         END
    FROM pg_class AS c WHERE c.oid = ANY (views)
$$;
COMMENT ON FUNCTION snowflake.view_hindrances(regclass[], oid[]) IS
  'Internal: for adopt(): what keeps views from being dropped and created again as they were; null for a view without';
