-- Revokes the privileges of PUBLIC and of ALTER DEFAULT PRIVILEGES on the new objects. Grants all roles the right to
-- read the map of shards. A role that can write the map can direct other roles to a server of its choice.

DO $$
DECLARE
  before CONSTANT text[] := pg_catalog.current_setting('snowflake_fleet.objects')::text[];
  privilege record;
BEGIN
  FOR privilege IN
    SELECT DISTINCT object.kind, identified.identity,
           CASE WHEN acl.grantee OPERATOR(pg_catalog.=) 0 THEN 'PUBLIC'
                ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(acl.grantee)::pg_catalog.text) END AS role
      FROM (SELECT 'pg_class' AS catalogue, oid, relnamespace AS schema, relowner AS owner, relacl AS acl,
                   CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind FROM pg_catalog.pg_class
            UNION ALL SELECT 'pg_proc', oid, pronamespace, proowner,
                             coalesce(proacl, pg_catalog.acldefault('f', proowner)), 'ROUTINE' FROM pg_catalog.pg_proc
            UNION ALL SELECT 'pg_type', oid, typnamespace, typowner, typacl, 'TYPE' FROM pg_catalog.pg_type) AS object
     CROSS JOIN LATERAL pg_catalog.aclexplode(object.acl) AS acl
     CROSS JOIN LATERAL pg_catalog.pg_identify_object(
             pg_catalog.concat('pg_catalog.', object.catalogue)::pg_catalog.regclass, object.oid, 0) AS identified
     WHERE object.schema OPERATOR(pg_catalog.=) 'snowflake_fleet'::pg_catalog.regnamespace
       AND pg_catalog.concat_ws(' ', object.catalogue, object.oid) OPERATOR(pg_catalog.<>) ALL (before)
       AND acl.grantee OPERATOR(pg_catalog.<>) object.owner
       AND (acl.grantee OPERATOR(pg_catalog.<>) 0 OR object.kind OPERATOR(pg_catalog.<>) 'TYPE')
  LOOP
    EXECUTE pg_catalog.format('REVOKE ALL ON %s %s FROM %s', privilege.kind, privilege.identity, privilege.role);
  END LOOP;
END
$$;

-- All roles may read the map of shards, but only the owner of its tables may change the map.
GRANT EXECUTE ON FUNCTION snowflake_fleet.map_version(), snowflake_fleet.server_of(bigint),
  snowflake_fleet.server_of_shard(integer), snowflake_fleet.export_map(), snowflake_fleet.options_of(text),
  snowflake_fleet.with_timeouts(text), snowflake_fleet.known_options(), snowflake_fleet.run_on(bigint),
  snowflake_fleet.partitions(), snowflake_fleet.fdw_server_name(integer), snowflake_fleet.remote_name(text, integer),
  snowflake_fleet.check_plproxy(text), snowflake_fleet.open_plproxy(text)
  TO PUBLIC;
GRANT SELECT ON snowflake_fleet.map, snowflake_fleet.map_state, snowflake_fleet.map_server,
  snowflake_fleet.map_shard TO PUBLIC;
