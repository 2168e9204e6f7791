-- PL/Proxy calls the cluster functions, which read the map of shards.
--
-- A PL/Proxy cluster has one partition for each shard of the layout, in the order of the shards. RUN ON
-- snowflake.shard_of(id) selects the partition of the id's shard. For a shard without a server in the map, partitions()
-- returns the invalid host "/shard N is not in the shard map". The error of a failed connection shows this text. The
-- function snowflake_fleet.run_on(id) refuses a shard outside the map with an error.

CREATE FUNCTION snowflake_fleet.run_on(id bigint) RETURNS integer
  LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $$
DECLARE
  wanted integer := snowflake.shard_of(id);
BEGIN
  IF NOT EXISTS (SELECT FROM snowflake_fleet.map_shard AS m WHERE m.shard OPERATOR(pg_catalog.=) wanted) THEN
    PERFORM snowflake_fleet.server_of_shard(wanted);
  END IF;
  RETURN wanted;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.run_on(bigint) IS
  'Returns the shard of an id, for the clause RUN ON of PL/Proxy. Raises an error (55000) if the map of shards does '
  'not contain the shard';

CREATE FUNCTION snowflake_fleet.partitions() RETURNS SETOF text
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY
  SELECT snowflake_fleet.with_timeouts(coalesce(m.conninfo,
                                                  format('host=''/shard %s is not in the shard map''', s.shard)))
    FROM snowflake.layout AS l, generate_series(0, l.shards - 1) AS s (shard)
    LEFT JOIN snowflake_fleet.map AS m ON m.shard = s.shard
   ORDER BY s.shard;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.partitions() IS
  'Returns one connection string for each shard of the layout, in the order of the shards. The connection strings '
  'have timeouts';

CREATE FUNCTION snowflake_fleet.check_plproxy(mark text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  foreign_one text;
  other record;
BEGIN
  -- PL/Proxy calls three cluster functions by fixed names. The function use_plproxy() must not replace cluster
  -- functions of another program.
  SELECT p.oid::regprocedure::text INTO foreign_one
    FROM pg_proc AS p
   WHERE pronamespace = to_regnamespace('plproxy')
     AND proname IN ('get_cluster_version', 'get_cluster_partitions', 'get_cluster_config')
     AND strpos(prosrc, mark) = 0 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'duplicate_function',
      MESSAGE = format('function %s already exists', foreign_one),
      DETAIL = 'This database already has cluster functions of PL/Proxy that snowflake did not create.',
      HINT =
        'Drop these cluster functions, or change them so that they return the rows of snowflake_fleet.partitions().';
  END IF;
  -- Another role that owns the schema plproxy or its functions could change the functions at any time.
  SELECT o.what, r.rolname INTO other
    FROM (SELECT 'schema plproxy' AS what, nspowner AS owner FROM pg_namespace WHERE nspname = 'plproxy'
          UNION ALL
          SELECT 'function ' || p.oid::regprocedure, proowner FROM pg_proc AS p WHERE strpos(prosrc, mark) > 0
             AND pronamespace = to_regnamespace('plproxy')) AS o
    JOIN pg_roles AS r ON r.oid = o.owner
   WHERE NOT r.rolsuper AND r.rolname <> current_user ORDER BY o.what LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
      MESSAGE = format('%s belongs to role %s', other.what, quote_ident(other.rolname)),
      DETAIL =
        'PL/Proxy runs the functions in the schema plproxy with the rights of the role that calls a PL/Proxy function.',
      HINT = 'Call use_plproxy() as the owner of the schema plproxy and of its functions. '
             'Or change their owner with ALTER ... OWNER TO.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_plproxy(text) IS
  'Internal: for use_plproxy(): raises an error if other cluster functions of PL/Proxy exist, or if another role can '
  'change those of snowflake';

CREATE FUNCTION snowflake_fleet.open_plproxy(mark text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF to_regnamespace('plproxy') IS NULL THEN
    CREATE SCHEMA plproxy;
  END IF;
  -- PL/Proxy calls the cluster functions with the rights of its caller, so all roles get USAGE on the schema plproxy.
  -- If the schema plproxy has privileges, or contains objects that use_plproxy() did not create, its privileges do not
  -- change.
  IF NOT EXISTS (SELECT FROM pg_depend
                  WHERE refclassid = 'pg_namespace'::regclass AND refobjid = 'plproxy'::regnamespace
                    AND NOT (classid = 'pg_proc'::regclass AND objid IN
                             (SELECT oid FROM pg_proc
                               WHERE pronamespace = 'plproxy'::regnamespace AND strpos(prosrc, mark) > 0)))
     AND (SELECT nspacl FROM pg_namespace WHERE nspname = 'plproxy') IS NULL THEN
    GRANT USAGE ON SCHEMA plproxy TO PUBLIC;
  ELSIF NOT EXISTS (SELECT FROM pg_namespace, aclexplode(nspacl) AS a
                     WHERE nspname = 'plproxy' AND grantee = 0 AND a.privilege_type = 'USAGE') THEN
    RAISE NOTICE USING MESSAGE = 'use_plproxy() did not grant USAGE on schema plproxy to PUBLIC',
      DETAIL = 'The schema has privileges or objects that use_plproxy() did not create.',
      HINT = 'Run GRANT USAGE ON SCHEMA plproxy for the roles that call functions of PL/Proxy.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.open_plproxy(text) IS
  'Internal: for use_plproxy(): creates the schema of PL/Proxy, and grants USAGE on this schema to all roles';

CREATE PROCEDURE snowflake_fleet.use_plproxy(cluster text DEFAULT 'snowflake')
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- The first line of each cluster function shows that use_plproxy() has created the function.
  mark CONSTANT text := '-- made by snowflake_fleet.use_plproxy()';
  body CONSTANT text := E'\nBEGIN\n  ' || mark || E'\n'
    '  IF cluster_name IS DISTINCT FROM %1$L THEN\n'
    '    RAISE EXCEPTION USING ERRCODE = ''undefined_object'',\n'
    '      MESSAGE = format(''there is no cluster %%s'', quote_ident(cluster_name)),\n'
    '      DETAIL = ''The cluster that the map of snowflake_routing makes is called "'' || %1$L || ''".'',\n'
    '      HINT = ''Name that one in CLUSTER.'';\n'
    '  END IF;\n'
    '  %2$s\n'
    'END\n';
BEGIN
  IF cluster IS NULL OR cluster = '' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the name of the cluster is null or empty',
      HINT = 'Pass a name, or omit the argument to use the name "snowflake".';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'plproxy')
     OR NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'snowflake') THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'extension "plproxy" or "snowflake" is not installed in this database',
      DETAIL = 'PL/Proxy runs the remote calls, and snowflake computes the shard of an id.',
      HINT = 'Run CREATE EXTENSION plproxy and CREATE EXTENSION snowflake.';
  END IF;
  PERFORM snowflake_fleet.check_plproxy(mark), snowflake_fleet.open_plproxy(mark);
  -- PL/Proxy only compares versions for equality, so the function returns the map version modulo 2147483647.
  EXECUTE format('CREATE OR REPLACE FUNCTION plproxy.get_cluster_version(cluster_name text) RETURNS integer '
    'LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS %L',
    format(body, cluster, 'RETURN snowflake_fleet.map_version() % 2147483647;'));
  EXECUTE format('CREATE OR REPLACE FUNCTION plproxy.get_cluster_partitions(cluster_name text) RETURNS SETOF text '
    'LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS %L',
    format(body, cluster, 'RETURN QUERY SELECT p FROM snowflake_fleet.partitions() AS p;'));
  EXECUTE format('CREATE OR REPLACE FUNCTION plproxy.get_cluster_config('
    'IN cluster_name text, OUT key text, OUT val text) RETURNS SETOF record '
    'LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS %L',
    format(body, cluster, 'RETURN;'));
END
$$;
COMMENT ON PROCEDURE snowflake_fleet.use_plproxy(text) IS
  'Creates the functions that describe a cluster to PL/Proxy, and that read the map. Grants USAGE on the schema '
  'plproxy to all roles if the schema contains only functions of use_plproxy(). Raises an error (42501) if the '
  'schema belongs to another role that is not a superuser';
