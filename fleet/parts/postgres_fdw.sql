-- postgres_fdw: a table that is PARTITION BY HASH (id snowflake.by_shard) whose partitions are foreign
-- tables, one for each shard of the map. PostgreSQL then finds the one server that has a row.

CREATE FUNCTION snowflake_fleet.fdw_server_name(server text) RETURNS name
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT ('snowflake_' OPERATOR(pg_catalog.||) server)::name $$;
COMMENT ON FUNCTION snowflake_fleet.fdw_server_name(text) IS
  'Behind snowflake_fleet.use_postgres_fdw: what a server of the map is called as a foreign server';

-- What the map says, and what there is: two connection strings mean the same where their options do.
CREATE FUNCTION snowflake_fleet.make_fdw_servers() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  wanted record;
  change text;
BEGIN
  FOR wanted IN
    SELECT snowflake_fleet.fdw_server_name(s.name) AS fdw,
           coalesce((SELECT jsonb_object_agg(option, value) FROM snowflake_fleet.options_of(s.conninfo)
                      WHERE option NOT IN ('user', 'password')), '{}') AS options,
           (SELECT value FROM snowflake_fleet.options_of(s.conninfo) WHERE option = 'user') AS login,
           (SELECT coalesce(jsonb_object_agg(option_name, option_value), '{}')
              FROM pg_foreign_server, pg_options_to_table(srvoptions)
             WHERE srvname = snowflake_fleet.fdw_server_name(s.name)) AS had,
           EXISTS (SELECT FROM pg_foreign_server WHERE srvname = snowflake_fleet.fdw_server_name(s.name)) AS exists
      FROM snowflake_fleet.map_server AS s
     WHERE EXISTS (SELECT FROM snowflake_fleet.map_shard AS m WHERE m.server = s.name)
     ORDER BY s.name
  LOOP
    IF NOT wanted.exists THEN
      EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw', wanted.fdw);
    END IF;
    FOR change IN
      SELECT format('DROP %I', key) FROM jsonb_object_keys(wanted.had) AS key
       WHERE NOT wanted.options ? key AND key IN ('host', 'hostaddr', 'port', 'dbname', 'service')
      UNION ALL
      SELECT format('%s %I %L', CASE WHEN wanted.had ? key THEN 'SET' ELSE 'ADD' END, key, value)
        FROM jsonb_each_text(wanted.options) WHERE wanted.had ->> key IS DISTINCT FROM value
    LOOP
      EXECUTE format('ALTER SERVER %I OPTIONS (%s)', wanted.fdw, change);
    END LOOP;
    IF NOT EXISTS (SELECT FROM pg_user_mappings WHERE srvname = wanted.fdw) THEN
      EXECUTE format('CREATE USER MAPPING FOR CURRENT_USER SERVER %I%s', wanted.fdw,
                     CASE WHEN wanted.login IS NOT NULL THEN format(' OPTIONS (user %L)', wanted.login) END);
      RAISE NOTICE USING MESSAGE = format('server %s has a user mapping for %s only', wanted.fdw, quote_ident(current_user)),
        HINT = 'Make one for each role that routes.';
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.make_fdw_servers() IS
  'Behind snowflake_fleet.use_postgres_fdw: foreign servers as the map says';

-- The remote table of a shard: %s in `remote` is the shard's number.
CREATE FUNCTION snowflake_fleet.remote_name(remote text, shard integer, OUT schema text, OUT relation text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  part CONSTANT text[] := parse_ident(replace(remote, '%s', shard::text));
BEGIN
  IF cardinality(part) <> 2 OR strpos(remote, '%s') = 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('"%s" names no table of a shard', remote),
      DETAIL = 'It takes a schema and a table, and %s where the shard''s number belongs.',
      HINT = 'Write it as ''shard_%s.photos'' or ''public.photos_%s''.';
  END IF;
  schema := part[1];
  relation := part[2];
END
$$;
COMMENT ON FUNCTION snowflake_fleet.remote_name(text, integer) IS
  'Behind snowflake_fleet.use_postgres_fdw: schema and name of a shard''s table on its server';

CREATE FUNCTION snowflake_fleet.check_fdw_parent(parent regclass) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'postgres_fdw') THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'extension "postgres_fdw" is not installed in this database',
      DETAIL = 'The partitions are to be foreign tables.',
      HINT = 'Run CREATE EXTENSION postgres_fdw.';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_partitioned_table JOIN pg_opclass AS o ON o.oid = partclass[0]
                  WHERE partrelid = parent AND partnatts = 1 AND opcname = 'by_shard'
                    AND opcnamespace = to_regnamespace('snowflake')) THEN
    RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
      MESSAGE = format('%s is not partitioned by shard', coalesce(parent::text, 'null')),
      DETAIL = 'Its partition key has to be one column, with the operator class snowflake.by_shard.',
      HINT = 'Make it with PARTITION BY HASH (id snowflake.by_shard).';
  END IF;
  IF EXISTS (SELECT FROM pg_index WHERE indrelid = parent AND indisunique) THEN
    RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
      MESSAGE = format('%s has a key', parent),
      DETAIL = 'PostgreSQL has no keys over foreign tables; each shard''s table keeps its own.',
      HINT = 'Drop the key here.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_fdw_parent(regclass) IS
  'Behind snowflake_fleet.use_postgres_fdw: raises the error that fits the table';

CREATE PROCEDURE snowflake_fleet.use_postgres_fdw(parent regclass, remote text DEFAULT NULL)
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  places integer;
  home name;
  base name;
  pattern text;
  wanted record;
BEGIN
  PERFORM snowflake_fleet.check_fdw_parent(parent);
  SELECT l.shards INTO places FROM snowflake.layout AS l;
  SELECT n.nspname, c.relname INTO home, base
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = parent;
  pattern := coalesce(remote, 'shard_%s.' || quote_ident(base));
  PERFORM snowflake_fleet.make_fdw_servers();

  -- What is there and not as the map says goes; what the map has and is not there comes.
  FOR wanted IN
    WITH had AS (
      SELECT c.oid, c.relname, n.nspname, c.relkind, s.srvname,
             (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'modulus (\d+), remainder (\d+)'))[1]::integer AS modulus,
             (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'modulus (\d+), remainder (\d+)'))[2]::integer AS shard,
             (SELECT option_value FROM pg_options_to_table(t.ftoptions) WHERE option_name = 'schema_name') AS schema,
             (SELECT option_value FROM pg_options_to_table(t.ftoptions) WHERE option_name = 'table_name') AS relation
        FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        LEFT JOIN pg_foreign_table AS t ON ftrelid = c.oid LEFT JOIN pg_foreign_server AS s ON s.oid = ftserver
       WHERE inhparent = parent
    ), mapped AS (
      SELECT m.shard, snowflake_fleet.fdw_server_name(m.server) AS fdw, r.*
        FROM snowflake_fleet.map_shard AS m, snowflake_fleet.remote_name(pattern, m.shard) AS r
    )
    SELECT h.oid AS old, h.relkind, h.modulus, coalesce(h.shard, m.shard) AS shard, m.fdw, m.schema, m.relation,
           h.oid::regclass AS old_name
      FROM had AS h FULL JOIN mapped AS m ON m.shard = h.shard AND h.modulus = places
     WHERE m.shard IS NULL OR (h.srvname, h.schema, h.relation) IS DISTINCT FROM (m.fdw, m.schema, m.relation)
     ORDER BY 1 NULLS LAST, shard
  LOOP
    IF wanted.old IS NOT NULL THEN
      IF wanted.relkind <> 'f' OR wanted.modulus <> places THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
          MESSAGE = format('partition %s was not made by use_postgres_fdw()', wanted.old_name),
          DETAIL = format('It is for modulus %s, and the layout has %s shards; or it is no foreign table.', wanted.modulus, places),
          HINT = 'Detach it.';
      END IF;
      EXECUTE format('DROP FOREIGN TABLE %s', wanted.old_name);
    END IF;
    IF wanted.fdw IS NOT NULL THEN
      EXECUTE format('CREATE FOREIGN TABLE %I.%I PARTITION OF %s FOR VALUES WITH (MODULUS %s, REMAINDER %s) '
                     'SERVER %I OPTIONS (schema_name %L, table_name %L)',
                     home, left(base, 40) || '_shard_' || wanted.shard, parent, places, wanted.shard,
                     wanted.fdw, wanted.schema, wanted.relation);
    END IF;
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake_fleet.use_postgres_fdw(regclass, text) IS
  'Gives a table partitioned by shard a foreign partition for each shard of the map, and remakes those '
  'that the map has elsewhere now. `remote` names the table of a shard, as in ''shard_%s.photos'', the default';

REVOKE ALL ON PROCEDURE snowflake_fleet.use_postgres_fdw(regclass, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION snowflake_fleet.make_fdw_servers(), snowflake_fleet.check_fdw_parent(regclass) FROM PUBLIC;
