-- Sets all privileges on the schema snowflake_fleet and on its objects. First revokes the privileges that ALTER DEFAULT
-- PRIVILEGES has granted. A role that can write the table region could lease a region to two servers.

DO $$
DECLARE
  privilege record;
BEGIN
  FOR privilege IN
    SELECT DISTINCT object.kind, identified.identity,
           CASE WHEN acl.grantee OPERATOR(pg_catalog.=) 0 THEN 'PUBLIC'
                ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(acl.grantee)::pg_catalog.text) END AS role
      FROM (SELECT 'pg_catalog.pg_class'::pg_catalog.regclass AS catalogue, oid, relnamespace AS schema,
                   relowner AS owner, relacl AS acl,
                   CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind FROM pg_catalog.pg_class
            UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, oid, pronamespace, proowner, proacl, 'ROUTINE'
                        FROM pg_catalog.pg_proc
            UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, oid, typnamespace, typowner, typacl, 'TYPE'
                        FROM pg_catalog.pg_type
            UNION ALL SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass, oid, oid, nspowner, nspacl, 'SCHEMA'
                        FROM pg_catalog.pg_namespace) AS object
     CROSS JOIN LATERAL pg_catalog.aclexplode(object.acl) AS acl
     CROSS JOIN LATERAL pg_catalog.pg_identify_object(object.catalogue, object.oid, 0) AS identified
     WHERE object.schema OPERATOR(pg_catalog.=) 'snowflake_fleet'::pg_catalog.regnamespace
       AND acl.grantee OPERATOR(pg_catalog.<>) object.owner
       AND (acl.grantee OPERATOR(pg_catalog.<>) 0
            OR object.kind OPERATOR(pg_catalog.=) ANY (ARRAY['TABLE', 'SEQUENCE', 'SCHEMA']))
  LOOP
    EXECUTE pg_catalog.format('REVOKE ALL ON %s %s FROM %s', privilege.kind, privilege.identity, privilege.role);
  END LOOP;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_fleet FROM PUBLIC;
GRANT USAGE ON SCHEMA snowflake_fleet TO PUBLIC, pg_monitor;
GRANT SELECT ON snowflake_fleet.regions, snowflake_fleet.servers, snowflake_fleet.health TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_fleet.from_ms(bigint), snowflake_fleet.to_ms(timestamptz),
  snowflake_fleet.free_from(snowflake_fleet.region), snowflake_fleet.health() TO pg_monitor;

-- A dump contains the tables "fleet", "server" and "region" of the lease server. After a restore, the lease server
-- grants no lease until an operator confirms that no lease was lost.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'snowflake_fleet') THEN
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.fleet', '');
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.server', '');
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.region', '');
  END IF;
END
$$;
