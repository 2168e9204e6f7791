-- A schema, described by names: to be compared with another server's.

CREATE FUNCTION snowflake_fleet.description_of(schema name)
  RETURNS TABLE (printed boolean, line text)
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH inside AS MATERIALIZED (
    SELECT c.classid, c.objid, i.identity, i.type
      FROM snowflake_fleet.contents_of(schema) AS c, pg_identify_object(c.classid, c.objid, 0) AS i
     WHERE NOT (c.classid = 'pg_class'::regclass AND i.type LIKE 'toast%' OR i.type = 'index' AND i.schema = 'pg_toast')
       AND c.classid NOT IN ('pg_publication_rel'::regclass, 'pg_attrdef'::regclass)
       -- PostgreSQL's own names of these have numbers in them
       AND NOT (c.classid = 'pg_trigger'::regclass AND (SELECT tgisinternal OR tgname = 'snowflake_move' FROM pg_trigger AS t WHERE t.oid = c.objid))
  ), rel AS (
    SELECT identity, c.* FROM inside JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
  ), acl (identity, owner, acl) AS (
    SELECT identity, relowner, coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)) FROM rel WHERE relkind NOT IN ('i', 'I', 'c')
    UNION ALL
    SELECT identity, nspowner, coalesce(nspacl, acldefault('n', nspowner)) FROM inside JOIN pg_namespace AS n ON classid = 'pg_namespace'::regclass AND n.oid = objid
    UNION ALL
    SELECT identity, proowner, coalesce(proacl, acldefault('f', proowner)) FROM inside JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
    UNION ALL
    -- A multirange has its range's privileges; before version 17 it stays, and its array, with who made it.
    SELECT identity, typowner, coalesce(typacl, acldefault('T', typowner)) FROM inside JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid
     WHERE typtype <> 'm' AND NOT EXISTS (SELECT FROM pg_type AS m WHERE m.typarray = t.oid AND m.typtype = 'm')
    UNION ALL
    SELECT identity || ' default', defaclrole, defaclacl FROM inside JOIN pg_default_acl AS a ON classid = 'pg_default_acl'::regclass AND a.oid = objid
    UNION ALL
    SELECT format('%s.%I', identity, attname), relowner, attacl FROM rel JOIN pg_attribute ON attrelid = rel.oid AND attacl IS NOT NULL
  )
  SELECT false, type || ' ' || identity FROM inside
  UNION ALL
  SELECT false, format('%s belongs to %s', identity, owner::regrole) FROM acl
  UNION ALL
  SELECT false, format('%s: %s granted %s to %s%s', identity, grantor::regrole, privilege_type,
                       CASE grantee WHEN 0 THEN 'everybody' ELSE grantee::regrole::text END, CASE WHEN is_grantable THEN ' to be granted' END)
    FROM acl, aclexplode(acl)
  UNION ALL
  SELECT false, concat_ws(' ', identity, relkind, relpersistence, relrowsecurity, relforcerowsecurity, relreplident, relispartition,
                          (SELECT string_agg(o, ',' ORDER BY o) FROM unnest(reloptions) AS o), (SELECT spcname FROM pg_tablespace AS s WHERE s.oid = reltablespace),
                          (SELECT amname FROM pg_am AS a WHERE a.oid = relam), CASE WHEN reloftype <> 0 THEN reloftype::regtype END,
                          (SELECT string_agg(o, ',' ORDER BY o) FROM pg_class AS t, unnest(t.reloptions) AS o WHERE t.oid = rel.reltoastrelid))
    FROM rel
  UNION ALL
  SELECT false, concat_ws(' ', identity, row_number() OVER (PARTITION BY attrelid ORDER BY attnum), quote_ident(attname), format_type(atttypid, atttypmod), attnotnull, attcollation::regcollation,
                          attstorage, attcompression, attidentity, attgenerated, attislocal, attinhcount, nullif(attstattarget, -1),
                          -- recent minor versions keep notes of their own there, too
                          (SELECT string_agg(o, ',' ORDER BY o) FROM unnest(attoptions) AS o WHERE o LIKE 'n\_distinct%'))
    FROM rel JOIN pg_attribute ON attrelid = rel.oid AND attnum > 0 AND NOT attisdropped AND relkind NOT IN ('i', 'I', 'S')
  UNION ALL
  SELECT true, format('%s.%I default %s', identity, attname, pg_get_expr(adbin, adrelid))
    FROM rel JOIN pg_attrdef ON adrelid = rel.oid JOIN pg_attribute ON attrelid = rel.oid AND attnum = adnum
  UNION ALL
  SELECT true, format('%s %s %s', identity, pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid)) FROM rel WHERE relpartbound IS NOT NULL OR relkind = 'p'
  UNION ALL
  SELECT false, format('%s heir of %s', identity, inhparent::regclass) FROM rel JOIN pg_inherits ON inhrelid = rel.oid
  UNION ALL
  SELECT true, format('%s %s', identity, pg_get_constraintdef(c.oid)) FROM inside JOIN pg_constraint AS c ON classid = 'pg_constraint'::regclass AND c.oid = objid
  UNION ALL
  SELECT false, concat_ws(' ', identity, contype, condeferrable, condeferred, convalidated, confrelid::regclass, confupdtype, confdeltype, CASE contype WHEN 'c' THEN connoinherit END)
    FROM inside JOIN pg_constraint AS c ON classid = 'pg_constraint'::regclass AND c.oid = objid
  UNION ALL
  SELECT true, format('%s %s', identity, pg_get_indexdef(oid)) FROM rel WHERE relkind IN ('i', 'I')
  UNION ALL
  SELECT false, concat_ws(' ', identity, indisunique, indisprimary, indisexclusion, indimmediate, indisclustered, indisvalid, indisreplident)
    FROM rel JOIN pg_index ON indexrelid = rel.oid
  UNION ALL
  SELECT true, format('%s %s', identity, pg_get_triggerdef(t.oid)) FROM inside JOIN pg_trigger AS t ON classid = 'pg_trigger'::regclass AND t.oid = objid
  UNION ALL
  SELECT false, format('%s %s', identity, tgenabled) FROM inside JOIN pg_trigger AS t ON classid = 'pg_trigger'::regclass AND t.oid = objid
  UNION ALL
  SELECT true, format('%s %s', identity, pg_get_ruledef(r.oid)) FROM inside JOIN pg_rewrite AS r ON classid = 'pg_rewrite'::regclass AND r.oid = objid
  UNION ALL
  SELECT false, format('%s %s', identity, ev_enabled) FROM inside JOIN pg_rewrite AS r ON classid = 'pg_rewrite'::regclass AND r.oid = objid
  UNION ALL
  SELECT true, format('%s %s %s', identity, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)) FROM inside JOIN pg_policy AS p ON classid = 'pg_policy'::regclass AND p.oid = objid
  UNION ALL
  SELECT false, format('%s %s %s %s', identity, polcmd, polpermissive, (SELECT string_agg(r::regrole::text, ' ' ORDER BY r::regrole::text) FROM unnest(polroles) AS r))
    FROM inside JOIN pg_policy AS p ON classid = 'pg_policy'::regclass AND p.oid = objid
  UNION ALL
  SELECT prosqlbody IS NOT NULL, format('%s %s', identity, pg_get_functiondef(p.oid)) FROM inside JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid WHERE prokind <> 'a'
  UNION ALL
  SELECT false, concat_ws(' ', identity, aggkind, aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn, aggmtransfn, aggminvtransfn, aggmfinalfn,
                          aggfinalextra, aggfinalmodify, aggtranstype::regtype, agginitval, aggminitval)
    FROM inside JOIN pg_aggregate AS a ON classid = 'pg_proc'::regclass AND a.aggfnoid = objid
  UNION ALL
  SELECT false, concat_ws(' ', identity, oprcode, oprrest, oprjoin, oprcom::regoperator, oprnegate::regoperator, oprcanmerge, oprcanhash)
    FROM inside JOIN pg_operator AS o ON classid = 'pg_operator'::regclass AND o.oid = objid
  UNION ALL
  SELECT false, concat_ws(' ', identity, typtype, typnotnull, typbasetype::regtype, typtypmod, typcollation::regcollation,
                          (SELECT string_agg(quote_literal(enumlabel), ',' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid),
                          (SELECT concat_ws(' ', rngsubtype::regtype, rngcollation::regcollation, rngcanonical, rngsubdiff) FROM pg_range WHERE rngtypid = t.oid))
    FROM inside JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid
  UNION ALL
  SELECT true, format('%s default %s', identity, typdefault) FROM inside JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid WHERE typdefault IS NOT NULL
  UNION ALL
  SELECT false, concat_ws(' ', identity, seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle,
                          (SELECT format('of %s.%s', refobjid::regclass, refobjsubid > 0) FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = rel.oid
                              AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i')))
    FROM rel JOIN pg_sequence ON seqrelid = rel.oid
  UNION ALL
  SELECT true, format('%s %s', identity, pg_get_statisticsobjdef(s.oid)) FROM inside JOIN pg_statistic_ext AS s ON classid = 'pg_statistic_ext'::regclass AND s.oid = objid
  UNION ALL
  SELECT false, concat_ws(' ', identity, collprovider, collisdeterministic, collcollate, collctype) FROM inside JOIN pg_collation AS c ON classid = 'pg_collation'::regclass AND c.oid = objid
  UNION ALL
  SELECT false, format('%s %s is said to be %L', identity,
                       (SELECT attname FROM pg_attribute WHERE classoid = 'pg_class'::regclass AND attrelid = objoid AND attnum = objsubid AND objsubid > 0), description)
    FROM inside JOIN pg_description ON classoid = classid AND objoid = objid
$$;
COMMENT ON FUNCTION snowflake_fleet.description_of(name) IS
  'Behind snowflake-move-shard: lines that say what a schema is, owners and privileges included. Those with an expression that the server '
  'prints differ between a table and its restored dump; the others are the same on both sides of a move';

REVOKE ALL ON FUNCTION snowflake_fleet.description_of(name) FROM PUBLIC;
