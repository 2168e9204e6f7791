-- Grants the privileges on relations and on the schema. This part of the install script runs after all objects are
-- created. The script first revokes the privileges that ALTER DEFAULT PRIVILEGES has granted on the objects.
CREATE FUNCTION snowflake.revoke_default_privileges(extension_name name) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
AS $$
DECLARE
  privilege record;
BEGIN
  FOR privilege IN
    SELECT DISTINCT object.kind, identified.identity, acl.grantee,
           CASE WHEN acl.grantee OPERATOR(pg_catalog.=) 0 THEN 'PUBLIC'
                ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(acl.grantee)::pg_catalog.text) END AS role
      FROM pg_catalog.pg_depend AS member
      JOIN pg_catalog.pg_extension AS extension
        ON member.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
       AND member.refobjid OPERATOR(pg_catalog.=) extension.oid AND member.deptype OPERATOR(pg_catalog.=) 'e'
      JOIN (SELECT 'pg_catalog.pg_class'::pg_catalog.regclass AS catalogue, oid, relowner AS owner, relacl AS acl,
                   CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind FROM pg_catalog.pg_class
            UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, oid, proowner, proacl, 'ROUTINE'
                        FROM pg_catalog.pg_proc
            UNION ALL SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass, oid, nspowner, nspacl, 'SCHEMA'
                        FROM pg_catalog.pg_namespace
            UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, oid, typowner, typacl, 'TYPE'
                        FROM pg_catalog.pg_type) AS object
        ON member.classid OPERATOR(pg_catalog.=) object.catalogue AND member.objid OPERATOR(pg_catalog.=) object.oid
     CROSS JOIN LATERAL pg_catalog.aclexplode(object.acl) AS acl
     CROSS JOIN LATERAL pg_catalog.pg_identify_object(member.classid, member.objid, 0) AS identified
     WHERE extension.extname OPERATOR(pg_catalog.=) extension_name
       AND acl.grantee OPERATOR(pg_catalog.<>) object.owner
       AND (acl.grantee OPERATOR(pg_catalog.<>) 0
            OR object.kind OPERATOR(pg_catalog.=) ANY (ARRAY['TABLE', 'SEQUENCE', 'SCHEMA']))
  LOOP
    EXECUTE pg_catalog.format('REVOKE ALL ON %s %s FROM %s', privilege.kind, privilege.identity, privilege.role);
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.revoke_default_privileges(name) IS
  'Internal: for install scripts. Revokes the privileges that ALTER DEFAULT PRIVILEGES granted on objects of an '
  'extension';
SELECT snowflake.revoke_default_privileges('snowflake');
REVOKE ALL ON FUNCTION snowflake.revoke_default_privileges(name) FROM PUBLIC;

-- A trigger runs without the EXECUTE privilege on its function. Roles need EXECUTE only on set_id(), to create triggers
-- on their tables.
REVOKE ALL ON FUNCTION snowflake.present_seal(), snowflake.keep_origin(), snowflake.guard_commands() FROM PUBLIC;
GRANT USAGE ON SCHEMA snowflake TO PUBLIC;
GRANT SELECT ON SEQUENCE snowflake.high_water, snowflake.seal, snowflake.seal_local, snowflake.fleet,
  snowflake.origin_fingerprint TO PUBLIC;
GRANT SELECT, INSERT ON snowflake.dumped_seal TO PUBLIC;
GRANT SELECT ON snowflake.layout, snowflake.shard_stats, snowflake.database_stats, snowflake.databases,
  snowflake.refusals, snowflake.clock_history, snowflake.health, snowflake.settled TO PUBLIC, pg_monitor;
GRANT SELECT ON snowflake.lease TO pg_monitor;
GRANT SELECT ON snowflake.backfills, snowflake.late_ids, snowflake.adopted TO PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake.lease() TO pg_monitor;
-- The owner of a database can restore a complete dump, including the high-water mark. The function setval() cannot
-- lower the high-water mark.
GRANT UPDATE ON SEQUENCE snowflake.high_water TO pg_database_owner;
GRANT EXECUTE ON FUNCTION snowflake.observe(bigint) TO pg_database_owner;
-- Only the owner of the database may reserve a region and a shard for the ids that backfill() and late_id() mint. The
-- function backfill() refuses a region and shard that are reserved for another column. To restore a dump, the owner
-- inserts rows into the tables snowflake.backfills, snowflake.adopted and snowflake.late_ids.
GRANT INSERT, UPDATE, DELETE ON snowflake.backfills, snowflake.adopted TO pg_database_owner;
GRANT INSERT ON snowflake.late_ids TO pg_database_owner;
