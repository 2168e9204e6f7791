-- With postgres_fdw, a table of the router is PARTITION BY HASH (id snowflake.by_shard). Each shard of the map has one
-- partition, which is a foreign table. For a query by id, PostgreSQL contacts only the server that has the row.
--
-- Each shard has a separate foreign server with connection options. If a shard moves, only the options of the shard's
-- foreign server change. ALTER SERVER, which changes the options, locks no table, and sessions reconnect with their
-- next transaction. Shards on the same data server do not share a foreign server, although sharing would save
-- connections. PostgreSQL cannot assign a foreign table to another foreign server. Replacing the foreign table of a
-- shard would wait for all readers of the partitioned table.

CREATE FUNCTION snowflake_fleet.fdw_server_name(shard integer) RETURNS name
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT ('snowflake_shard_' OPERATOR(pg_catalog.||) shard)::name $$;
COMMENT ON FUNCTION snowflake_fleet.fdw_server_name(integer) IS
  'Internal: for use_postgres_fdw(): returns the name of the foreign server of a shard';

-- follow_map() sets the libpq options of each foreign server from the map. follow_map() does not change options of
-- postgres_fdw, such as fetch_size.
CREATE FUNCTION snowflake_fleet.follow_map() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  this record;
  changes text;
BEGIN
  FOR this IN
    WITH home AS MATERIALIZED (
      SELECT s.name, (SELECT jsonb_object_agg(option, value)
                        FROM snowflake_fleet.options_of(snowflake_fleet.with_timeouts(s.conninfo))) AS options
        FROM snowflake_fleet.map_server AS s)
    SELECT srvname, srvowner::regrole AS owner, h.options ->> 'user' AS login,
           coalesce(h.options - '{user,client_encoding}'::text[], jsonb_build_object('host',
                    format('/shard %s is not in the shard map', substr(srvname, 17)))) AS wanted,
           (SELECT coalesce(jsonb_object_agg(option_name, option_value), '{}')
              FROM pg_options_to_table(srvoptions)) AS had,
           (SELECT jsonb_object_agg(option_name, option_value)
              FROM pg_user_mappings AS u, pg_options_to_table(umoptions)
             WHERE u.srvid = f.oid AND umuser = srvowner) AS mapped
      FROM pg_foreign_server AS f JOIN pg_foreign_data_wrapper AS w ON w.oid = srvfdw AND fdwname = 'postgres_fdw'
      LEFT JOIN snowflake_fleet.map_shard AS m ON srvname = snowflake_fleet.fdw_server_name(m.shard)
      LEFT JOIN home AS h ON h.name = m.server
     WHERE srvname ~ '^snowflake_shard_[0-9]+$' ORDER BY srvname
  LOOP
    SELECT string_agg(change, ', ') INTO changes FROM (
      SELECT format('DROP %I', key) FROM jsonb_object_keys(this.had) AS key
       WHERE NOT this.wanted ? key AND key = ANY (snowflake_fleet.known_options())
      UNION ALL
      SELECT format('%s %I %L', CASE WHEN this.had ? key THEN 'SET' ELSE 'ADD' END, key, value)
        FROM jsonb_each_text(this.wanted) WHERE this.had ->> key IS DISTINCT FROM value) AS c (change);
    IF changes IS NOT NULL THEN
      EXECUTE format('ALTER SERVER %I OPTIONS (%s)', this.srvname, changes);
    END IF;
    -- Changes only the user mapping of the foreign server's owner. User mappings of other roles stay unchanged.
    IF this.mapped ->> 'user' <> this.login THEN
      EXECUTE format('ALTER USER MAPPING FOR %s SERVER %I OPTIONS (SET user %L)', this.owner, this.srvname, this.login);
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.follow_map() IS
  'Internal: changes the options of the foreign servers that use_postgres_fdw() has created. Each foreign server '
  'then connects to the database that has its shard according to the map. Each function that changes the map or a '
  'copy calls follow_map()';

CREATE FUNCTION snowflake_fleet.check_fdw_owners() RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  this record;
BEGIN
  SELECT srvname, rolname INTO this FROM pg_foreign_server JOIN pg_roles AS r ON r.oid = srvowner
   WHERE srvname ~ '^snowflake_shard_[0-9]+$' AND NOT rolsuper AND rolname <> current_user ORDER BY srvname LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
      MESSAGE = format('foreign server %s belongs to role %s', this.srvname, quote_ident(this.rolname)),
      DETAIL = 'The owner of the foreign server could change its connection options. '
               'This role would then receive the rows and passwords of other roles.',
      HINT = 'Drop the foreign server, call this procedure as its owner, or change the owner with ALTER SERVER ... '
             'OWNER TO.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_fdw_owners() IS
  'Internal: raises an error (42501) if another role that is not a superuser owns the foreign server of a shard';

CREATE FUNCTION snowflake_fleet.make_fdw_servers() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  this record;
  mapping record;
  made integer := 0;
  -- New foreign servers get the user mappings of the existing foreign servers.
  model CONSTANT oid := min(oid) FROM pg_foreign_server WHERE srvname ~ '^snowflake_shard_[0-9]+$';
BEGIN
  PERFORM snowflake_fleet.check_fdw_owners();
  FOR this IN
    SELECT snowflake_fleet.fdw_server_name(m.shard) AS fdw,
           (SELECT value FROM snowflake_fleet.options_of(m.conninfo) WHERE option = 'user') AS login
      FROM snowflake_fleet.map AS m
     WHERE NOT EXISTS (SELECT FROM pg_foreign_server WHERE srvname = snowflake_fleet.fdw_server_name(m.shard))
     ORDER BY m.shard
  LOOP
    EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw', this.fdw);
    FOR mapping IN
      SELECT CASE umuser WHEN 0 THEN 'PUBLIC' ELSE quote_ident(usename) END AS role,
             (SELECT string_agg(format('%I %L', option_name, option_value), ', ')
                FROM pg_options_to_table(umoptions)) AS options
        FROM pg_user_mappings WHERE srvid = model
      UNION ALL
      SELECT 'CURRENT_USER', 'user ' || quote_literal(this.login) WHERE model IS NULL
    LOOP
      EXECUTE format('CREATE USER MAPPING FOR %s SERVER %I%s', mapping.role, this.fdw,
                     ' OPTIONS (' || mapping.options || ')');
    END LOOP;
    made := made + 1;
  END LOOP;
  IF made > 0 AND model IS NULL THEN
    RAISE NOTICE USING MESSAGE = format('%s foreign servers have a user mapping for %s only', made,
                                        quote_ident(current_user)),
      HINT = 'Create a user mapping for each role that queries the partitioned table.';
  END IF;
  PERFORM snowflake_fleet.follow_map();
END
$$;
COMMENT ON FUNCTION snowflake_fleet.make_fdw_servers() IS
  'Internal: for use_postgres_fdw(): creates a foreign server for each shard of the map. Raises an error (42501) if a '
  'foreign server belongs to another role that is not a superuser';

-- Returns the remote table of a shard. In `remote`, %s stands for the shard's number.
CREATE FUNCTION snowflake_fleet.remote_name(remote text, shard integer, OUT schema text, OUT relation text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part CONSTANT text[] := parse_ident(replace(remote, '%s', shard::text));
BEGIN
  IF cardinality(part) <> 2 OR strpos(remote, '%s') = 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('"%s" is not a format for the names of the shards'' tables', remote),
      DETAIL = 'The format must contain a schema, a table, and %s at the place of the shard number.',
      HINT = 'Pass a format such as ''shard_%s.photos'' or ''public.photos_%s''.';
  END IF;
  schema := part[1];
  relation := part[2];
END
$$;
COMMENT ON FUNCTION snowflake_fleet.remote_name(text, integer) IS
  'Internal: for use_postgres_fdw(): returns the schema and the name of a shard''s table on the server of the shard';

CREATE FUNCTION snowflake_fleet.check_fdw_parent(parent regclass) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'postgres_fdw') THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'extension "postgres_fdw" is not installed in this database',
      DETAIL = 'use_postgres_fdw() creates the partitions as foreign tables.',
      HINT = 'Run CREATE EXTENSION postgres_fdw.';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_partitioned_table JOIN pg_opclass AS o ON o.oid = partclass[0]
                  WHERE partrelid = parent AND partnatts = 1 AND partattrs[0] <> 0 AND opcname = 'by_shard'
                    AND opcnamespace = to_regnamespace('snowflake')) THEN
    RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
      MESSAGE = format('table %s is not partitioned by shard', coalesce(parent::text, 'null')),
      DETAIL = 'The partition key must be one column with the operator class snowflake.by_shard.',
      HINT = 'Create the table with PARTITION BY HASH (id snowflake.by_shard).';
  END IF;
  IF EXISTS (SELECT FROM pg_index WHERE indrelid = parent AND indisunique) THEN
    RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
      MESSAGE = format('table %s has a primary key or a unique constraint', parent),
      DETAIL = 'PostgreSQL does not support keys over foreign tables. '
               'The tables of the shards can still have primary keys and unique constraints.',
      HINT = 'Drop the primary key or the unique constraint in this database.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_fdw_parent(regclass) IS
  'Internal: for use_postgres_fdw(): raises an error if the partitioned table is not supported';

CREATE FUNCTION snowflake_fleet.check_partitions(parent regclass, remote text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  shards CONSTANT integer := l.shards FROM snowflake.layout AS l;
  odd record;
BEGIN
  SELECT h.* INTO odd
    FROM (SELECT c.oid::regclass AS partition, s.srvname, b.bound[1]::integer AS modulus, b.bound[2]::integer AS shard,
                 (SELECT jsonb_object_agg(option_name, option_value) FROM pg_options_to_table(t.ftoptions)) AS options
            FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
            CROSS JOIN LATERAL (SELECT regexp_match(pg_get_expr(c.relpartbound, c.oid),
                                                    'modulus (\d+), remainder (\d+)')) AS b (bound)
            LEFT JOIN pg_foreign_table AS t ON ftrelid = c.oid LEFT JOIN pg_foreign_server AS s ON s.oid = ftserver
           WHERE inhparent = parent) AS h
    LEFT JOIN LATERAL snowflake_fleet.remote_name(remote, h.shard) AS r ON true
   WHERE (h.modulus, h.srvname, h.options ->> 'schema_name', h.options ->> 'table_name')
         IS DISTINCT FROM (shards, snowflake_fleet.fdw_server_name(h.shard), r.schema, r.relation)
   ORDER BY h.partition::text LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
      MESSAGE = format('partition %s was not created by use_postgres_fdw()', odd.partition),
      DETAIL = format('The partition has modulus %s, foreign server %s and table %s.%s. '
                      'The partition must have modulus %s, server %s and table %s.',
                      odd.modulus, coalesce(odd.srvname, '(none)'),
                      coalesce(odd.options ->> 'schema_name', '(none)'),
                      coalesce(odd.options ->> 'table_name', '(none)'), shards,
                      snowflake_fleet.fdw_server_name(odd.shard), replace(remote, '%s', odd.shard::text)),
      HINT = 'Detach the partition.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_partitions(regclass, text) IS
  'Internal: for use_postgres_fdw(): raises an error if the table has a partition that use_postgres_fdw() did not '
  'create';

-- Each attempt to lock the table is short, because all later sessions wait behind the attempt.
CREATE FUNCTION snowflake_fleet.lock_shortly(parent regclass) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before CONSTANT text := current_setting('lock_timeout');
BEGIN
  FOR attempt IN 1 .. 50 LOOP
    BEGIN
      PERFORM set_config('lock_timeout', '200ms', true);
      EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', parent);
      PERFORM set_config('lock_timeout', before, true);
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      PERFORM pg_sleep(0.01 * attempt);
    END;
  END LOOP;
  RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
    MESSAGE = format('table %s could not be locked', parent),
    DETAIL = 'Long transactions of other sessions use the table. 50 attempts of 200 ms failed.',
    HINT = 'Call the procedure again after these transactions have ended.';
END
$$;
COMMENT ON FUNCTION snowflake_fleet.lock_shortly(regclass) IS
  'Internal: for use_postgres_fdw(): tries up to 50 times to lock a table, for 200 ms each. Raises an error (55P03) '
  'if all 50 attempts to lock the table fail';

CREATE PROCEDURE snowflake_fleet.use_postgres_fdw(parent regclass, remote text DEFAULT NULL)
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  shards CONSTANT integer := l.shards FROM snowflake.layout AS l;
  home name;
  base name;
  pattern text;
  wanted record;
  locked boolean := false;
BEGIN
  PERFORM snowflake_fleet.check_fdw_parent(parent);
  SELECT n.nspname, c.relname INTO home, base
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = parent;
  pattern := coalesce(remote, 'shard_%s.' || quote_ident(base));
  PERFORM snowflake_fleet.remote_name(pattern, 0);
  PERFORM snowflake_fleet.check_partitions(parent, pattern);
  PERFORM snowflake_fleet.make_fdw_servers();
  FOR wanted IN
    SELECT m.shard, r.*
      FROM snowflake_fleet.map_shard AS m, snowflake_fleet.remote_name(pattern, m.shard) AS r
     WHERE NOT EXISTS (SELECT FROM pg_inherits JOIN pg_foreign_table ON ftrelid = inhrelid
                         JOIN pg_foreign_server AS s ON s.oid = ftserver
                        WHERE inhparent = parent AND srvname = snowflake_fleet.fdw_server_name(m.shard))
     ORDER BY m.shard
  LOOP
    IF NOT locked THEN
      PERFORM snowflake_fleet.lock_shortly(parent);
      locked := true;
    END IF;
    EXECUTE format('CREATE FOREIGN TABLE %I.%I PARTITION OF %s FOR VALUES WITH (MODULUS %s, REMAINDER %s) '
                   'SERVER %I OPTIONS (schema_name %L, table_name %L)',
                   home, left(base, 40) || '_shard_' || wanted.shard, parent, shards, wanted.shard,
                   snowflake_fleet.fdw_server_name(wanted.shard), wanted.schema, wanted.relation);
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake_fleet.use_postgres_fdw(regclass, text) IS
  'Creates the missing foreign partitions of a table that is partitioned by shard, one for each shard of the map. '
  'When a shard moves to another server, the foreign partition of the shard reads from the new server. The argument '
  '`remote` is the format of the table names of the shards. By default, the format is like ''shard_%s.photos''';

CREATE PROCEDURE snowflake_fleet.use_postgres_fdw()
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  this record;
BEGIN
  FOR this IN
    WITH partition AS (
      SELECT inhparent, substr(srvname, 17) AS shard,
             (SELECT option_value FROM pg_options_to_table(ftoptions) WHERE option_name = 'schema_name') AS schema,
             (SELECT option_value FROM pg_options_to_table(ftoptions) WHERE option_name = 'table_name') AS relation
        FROM pg_inherits JOIN pg_foreign_table ON ftrelid = inhrelid JOIN pg_foreign_server AS s ON s.oid = ftserver
       WHERE srvname ~ '^snowflake_shard_[0-9]+$'
    ), parent AS (
      SELECT inhparent, count(*) AS partitions FROM partition GROUP BY 1
    )
    -- Computes the format of the remote table names, such as shard_%s.photos, from the existing foreign tables. The
    -- shard's number is in the schema name, in the table name, or in both.
    SELECT o.inhparent::regclass AS parent, min(v.pattern) AS pattern
      FROM parent AS o CROSS JOIN LATERAL (
        SELECT c.pattern
          FROM partition AS p, LATERAL (VALUES
            (format('%I.%I', replace(p.schema, p.shard, '%s'), p.relation)),
            (format('%I.%I', p.schema, replace(p.relation, p.shard, '%s'))),
            (format('%I.%I', replace(p.schema, p.shard, '%s'), replace(p.relation, p.shard, '%s')))) AS c (pattern)
         WHERE p.inhparent = o.inhparent AND strpos(c.pattern, '%s') > 0
         GROUP BY c.pattern HAVING count(DISTINCT p.shard) = o.partitions) AS v
     GROUP BY o.inhparent ORDER BY o.inhparent
  LOOP
    CALL snowflake_fleet.use_postgres_fdw(this.parent, this.pattern);
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake_fleet.use_postgres_fdw() IS
  'Creates the foreign partitions of new shards, in every table to which use_postgres_fdw(parent, remote) has '
  'already added foreign partitions';
