-- The map contains the server of each shard. Only the control database changes the map of shards. Every data server and
-- router has a copy of the map, so routing needs no remote query. If a server receives a newer version of the map, the
-- server replaces its whole copy.

CREATE TABLE snowflake_fleet.map_state (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
  is_copy boolean NOT NULL DEFAULT false,
  changed timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  history bigint[] NOT NULL DEFAULT '{}',
  newer bigint,
  system_identifier bigint,
  timeline integer,
  database oid
);
INSERT INTO snowflake_fleet.map_state DEFAULT VALUES;
COMMENT ON TABLE snowflake_fleet.map_state IS
  'The state of the map of shards, in one row. Only functions of the schema snowflake_fleet may change this table';
COMMENT ON COLUMN snowflake_fleet.map_state.version IS
  'The version of the map of shards to servers, which rises with each change of the map. A new version is the time of '
  'the change in milliseconds since 1970, or the previous version plus 1, whichever is greater';
COMMENT ON COLUMN snowflake_fleet.map_state.is_copy IS
  'Whether the map of shards in this database is a copy of the map in the control database';
COMMENT ON COLUMN snowflake_fleet.map_state.changed IS 'The time at which this database last changed its map of shards';
COMMENT ON COLUMN snowflake_fleet.map_state.history IS
  'The last 1000 versions of the map of shards before the present version. If the version of an older copy is not in '
  'the column history, the copy contains changes that this database has lost. The exception is a copy that is older '
  'than all 1000 listed versions';
COMMENT ON COLUMN snowflake_fleet.map_state.newer IS
  'In the control database, the version of a copy that is newer than the control database''s map of shards, or null. '
  'While a newer copy is recorded, the map of shards cannot be changed';
COMMENT ON COLUMN snowflake_fleet.map_state.timeline IS
  'The timeline of the control database when it last changed the map of shards. The columns timeline, '
  'system_identifier and database show whether the control database was restored, promoted or copied after its last '
  'change of the map';

CREATE TABLE snowflake_fleet.map_server (
  name text PRIMARY KEY CHECK (name OPERATOR(pg_catalog.<>) ''),
  conninfo text NOT NULL
);
COMMENT ON TABLE snowflake_fleet.map_server IS
  'The servers that have shards or a copy of the map of shards. Only functions of the schema snowflake_fleet may '
  'change this table';
COMMENT ON COLUMN snowflake_fleet.map_server.conninfo IS
  'The connection string of the server, in the form of libpq. The connection string contains no password, because '
  'every role may read the connection string';

CREATE TABLE snowflake_fleet.map_shard (
  shard integer PRIMARY KEY CHECK (shard OPERATOR(pg_catalog.>=) 0),
  server text NOT NULL REFERENCES snowflake_fleet.map_server
);
COMMENT ON TABLE snowflake_fleet.map_shard IS
  'For each shard, the server that stores the rows of the shard. Only functions of the schema snowflake_fleet may '
  'change this table';

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_extension
              WHERE extname OPERATOR(pg_catalog.=) 'snowflake_routing') THEN
    -- A dump does not contain map_state, because CREATE EXTENSION inserts the only row of map_state.
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.map_server', '');
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.map_shard', '');
  END IF;
END
$$;

CREATE VIEW snowflake_fleet.map AS
  SELECT m.shard, m.server, s.conninfo, v.version
    FROM snowflake_fleet.map_shard AS m
    JOIN snowflake_fleet.map_server AS s ON s.name OPERATOR(pg_catalog.=) m.server
   CROSS JOIN snowflake_fleet.map_state AS v;
COMMENT ON VIEW snowflake_fleet.map IS
  'Shows for each shard the server that has the rows, the connection string of the server, and the version of the map';

CREATE FUNCTION snowflake_fleet.map_version() RETURNS bigint
  LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT version FROM snowflake_fleet.map_state $$;
COMMENT ON FUNCTION snowflake_fleet.map_version() IS
  'Returns the version of the map of shards in this database. A client that has cached another version must read the '
  'map of shards again';

-- Functions that return the server of a shard or of an id.

CREATE FUNCTION snowflake_fleet.server_of_shard(shard integer) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $$
DECLARE
  found text := (SELECT m.server FROM snowflake_fleet.map_shard AS m
                  WHERE m.shard OPERATOR(pg_catalog.=) server_of_shard.shard);
BEGIN
  IF found IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = pg_catalog.format('shard %s is not in the shard map', shard),
      DETAIL = pg_catalog.format('In version %s of the map, no server has the rows of this shard.',
                                 snowflake_fleet.map_version()),
      HINT = 'Run snowflake_fleet.assign() in the control database.';
  END IF;
  RETURN found;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.server_of_shard(integer) IS
  'Returns the name of the server that has the rows of a shard. Raises an error (55000) if the map of shards does not '
  'contain the shard';

CREATE FUNCTION snowflake_fleet.server_of(id bigint) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $$
BEGIN
  IF pg_catalog.to_regnamespace('snowflake') IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'extension "snowflake" is not installed in this database',
      DETAIL = 'This extension computes the shard of an id.',
      HINT = 'Run the query on a data server or a router, or call snowflake_fleet.server_of_shard() with the shard.';
  END IF;
  RETURN snowflake_fleet.server_of_shard(snowflake.shard_of(id));
END
$$;
COMMENT ON FUNCTION snowflake_fleet.server_of(bigint) IS
  'Returns the name of the server that has the row of an id. The function requires the extension snowflake in this '
  'database';

-- The operator calls the following functions in the control database, to change the map.

-- If the control database was restored, recovered or promoted, its map may be from before the move of a shard. If the
-- operator changed an outdated map of shards, the outdated map would get a higher version than the correct maps on
-- other servers. Databases that route queries would accept an outdated map with a higher version, and look for rows on
-- the wrong server.
CREATE FUNCTION snowflake_fleet.check_map_state(state snowflake_fleet.map_state) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  here record;
  cause text;
BEGIN
  SELECT * INTO here FROM snowflake_fleet.whereabouts();
  cause := CASE
    WHEN state.newer > state.version
      THEN format('A copy has version %s. The map in this database has version %s.', state.newer, state.version)
    WHEN state.version = 0 AND EXISTS (SELECT FROM snowflake_fleet.map_server)
    THEN 'This database was restored from a dump, which contains the servers and shards of the time of the dump.'
    WHEN state.version > 0 AND (state.system_identifier, state.timeline, state.database)
                               IS DISTINCT FROM (here.system_identifier, here.timeline, here.database)
    THEN 'This database was restored, recovered, promoted or copied since the map was last changed.'
  END;
  IF cause IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the shard map in this database may be older than its copies',
      DETAIL = cause,
      HINT = 'Run "snowflake-push-map --recover", which reads all copies of the shard map. '
             'If no server has a copy, run snowflake_fleet.map_recovered().';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_map_state(snowflake_fleet.map_state) IS
  'Internal: raises an error (55000) if the map of shards may be older than a copy of the map';

-- Locks the row of map_state, because two changes at the same time would otherwise get the same version of the map.
CREATE FUNCTION snowflake_fleet.change_map() RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  state snowflake_fleet.map_state;
BEGIN
  SELECT s.* INTO STRICT state FROM snowflake_fleet.map_state AS s FOR UPDATE;
  IF state.is_copy THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database has only a copy of the shard map',
      DETAIL = format('The copy has version %s. '
                      'A newer map from the control database would overwrite every change of the copy.',
                      state.version),
      HINT = 'Change the shard map in the control database.';
  END IF;
  PERFORM snowflake_fleet.check_map_state(state);
  RETURN snowflake_fleet.begin_version(state.version, state.history);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.change_map() IS
  'Internal: gives the map of shards a new version, and sends the version to the sessions that ran LISTEN '
  'snowflake_map';

CREATE FUNCTION snowflake_fleet.begin_version(after bigint, before bigint[]) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fresh CONSTANT bigint := greatest(after + 1, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
BEGIN
  UPDATE snowflake_fleet.map_state AS s
     SET version = fresh, changed = clock_timestamp(), is_copy = false, newer = NULL,
         system_identifier = w.system_identifier, timeline = w.timeline, database = w.database,
         history = ARRAY(SELECT v
                           FROM (SELECT DISTINCT v FROM unnest(before || after) AS v WHERE v > 0
                                  ORDER BY v DESC LIMIT 1000) AS l ORDER BY v)
    FROM snowflake_fleet.whereabouts() AS w;
  PERFORM pg_notify('snowflake_map', fresh::text);
  RETURN fresh;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.begin_version(bigint, bigint[]) IS
  'Internal: for change_map() and map_recovered(): gives the map of shards a version number above `after`, and '
  'records the earlier version numbers';

-- Lists the options that a connection string may contain. Options that are not in the list are refused, because a later
-- libpq may add options that contain secrets.
CREATE FUNCTION snowflake_fleet.known_options() RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT '{host,hostaddr,port,dbname,user,passfile,service,options,application_name,connect_timeout,client_encoding,
           keepalives,keepalives_idle,keepalives_interval,keepalives_count,tcp_user_timeout,target_session_attrs,
           load_balance_hosts,channel_binding,require_auth,requirepeer,sslmode,sslnegotiation,sslcompression,sslcert,
           sslcertmode,sslkey,sslrootcert,sslcrl,sslcrldir,sslsni,ssl_min_protocol_version,ssl_max_protocol_version,
           gssencmode,krbsrvname,gsslib,gssdelegation}'::text[]
$$;
COMMENT ON FUNCTION snowflake_fleet.known_options() IS
  'Internal: returns the options that a connection string of the map may contain: all options of libpq that are not '
  'secrets';

CREATE FUNCTION snowflake_fleet.check_conninfo(conninfo text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  refused text;
BEGIN
  SELECT o.option INTO refused FROM snowflake_fleet.options_of(conninfo) AS o
   WHERE o.option <> ALL (snowflake_fleet.known_options()) LIMIT 1;
  IF refused IN ('password', 'sslpassword') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'a connection string in the shard map must not contain a password',
      DETAIL = 'Every role that may connect to the database may read the shard map.',
      HINT = 'Remove the password, and put it into a passfile on the machine that connects.';
  ELSIF refused IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'a connection string in the shard map contains an unknown option',
      DETAIL = format('The option is "%s". '
                      'Every role that may connect to the database may read the shard map, '
                      'so the map must not contain a secret.',
                      left(refused, 30)),
      HINT = 'Remove the option, or set the option on the machine that connects.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_conninfo(text) IS
  'Internal: raises an error if a connection string for the map is invalid, or contains a password or an unknown '
  'option';

CREATE FUNCTION snowflake_fleet.set_server(name text, conninfo text) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  fresh bigint;
BEGIN
  IF set_server.name IS NULL OR set_server.conninfo IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
      MESSAGE = 'name and conninfo must not be null',
      HINT = 'Pass a name and a connection string, such as ''host=db1 dbname=app''.';
  END IF;
  IF octet_length(set_server.name) NOT BETWEEN 1 AND 50 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'the name of a server must have 1 to 50 bytes',
      DETAIL = format('The name that was passed has %s bytes.', octet_length(set_server.name)),
      HINT = 'Choose another name.';
  END IF;
  PERFORM snowflake_fleet.check_conninfo(set_server.conninfo);
  fresh := snowflake_fleet.change_map();
  INSERT INTO snowflake_fleet.map_server (name, conninfo) VALUES (set_server.name, set_server.conninfo)
  ON CONFLICT (name) DO UPDATE SET conninfo = excluded.conninfo;
  PERFORM snowflake_fleet.follow_map();
  RETURN fresh;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.set_server(text, text) IS
  'Adds a server to the map of shards, or changes the connection string of a server. Returns the new version number '
  'of the map';

CREATE FUNCTION snowflake_fleet.drop_server(name text) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  fresh bigint := snowflake_fleet.change_map();
  has bigint := count(*) FROM snowflake_fleet.map_shard AS m WHERE m.server = drop_server.name;
BEGIN
  IF has <> 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
      MESSAGE = format('server %s still has shards', quote_ident(drop_server.name)),
      DETAIL = format('In the map, the server has shards %s.', has),
      HINT = 'Move these shards to other servers, and repeat the call.';
  END IF;
  DELETE FROM snowflake_fleet.map_server AS s WHERE s.name = drop_server.name;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('server %s is not in the shard map', quote_ident(drop_server.name)),
      HINT = 'Find the name in the table snowflake_fleet.map_server.';
  END IF;
  RETURN fresh;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.drop_server(text) IS
  'Removes a server without shards from the map of shards. Returns the new version number of the map';

CREATE FUNCTION snowflake_fleet.check_server(server text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM snowflake_fleet.map_server AS s WHERE s.name = server) OR server IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('server %s is not in the shard map', coalesce(quote_ident(server), 'null')),
      HINT = 'Add the server with snowflake_fleet.set_server().';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_server(text) IS
  'Internal: raises an error if a server is not in the map of shards';

CREATE FUNCTION snowflake_fleet.assign(shards int4range, server text) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  fresh bigint := snowflake_fleet.change_map();
  taken record;
BEGIN
  PERFORM snowflake_fleet.check_server(assign.server);
  IF shards IS NULL OR isempty(shards) OR lower_inf(shards) OR upper_inf(shards) OR lower(shards) < 0
     OR upper(shards) > 16777216 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('shards %s are out of range', coalesce(shards::text, 'null')),
      DETAIL = 'A layout has at most 16777216 shards.',
      HINT = 'Pass a range of shards, such as ''[0,16)''.';
  END IF;
  -- assign() does not move rows, so assign() refuses shards whose rows are on another server.
  SELECT m.* INTO taken FROM snowflake_fleet.map_shard AS m
   WHERE m.shard <@ shards AND m.server <> assign.server ORDER BY m.shard LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_in_use',
      MESSAGE = format('shard %s has its rows on server %s', taken.shard, quote_ident(taken.server)),
      DETAIL = 'assign() does not move rows, so assign() cannot change the server of a shard.',
      HINT = 'Move the shard with the program snowflake-move-shard.';
  END IF;
  INSERT INTO snowflake_fleet.map_shard (shard, server)
  SELECT shard, assign.server FROM generate_series(lower(shards), upper(shards) - 1) AS shard
  ON CONFLICT (shard) DO NOTHING;
  PERFORM snowflake_fleet.follow_map();
  RETURN fresh;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.assign(int4range, text) IS
  'Assigns a range of shards to a server. The shards must not have rows on another server. Returns the new version '
  'number of the map of shards';

CREATE FUNCTION snowflake_fleet.move(shard integer, source text, target text) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  fresh bigint := snowflake_fleet.change_map();
  found text := m.server FROM snowflake_fleet.map_shard AS m WHERE m.shard = move.shard;
BEGIN
  PERFORM snowflake_fleet.check_server(target);
  IF found IS DISTINCT FROM source THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('shard %s is not on server %s', move.shard, coalesce(quote_ident(source), 'null')),
      DETAIL = CASE WHEN found IS NULL THEN 'The shard is not in the shard map.'
                    ELSE format('In the map, the shard is on server %s.', quote_ident(found)) END,
      HINT = 'Find the server of the shard in the view snowflake_fleet.map.';
  END IF;
  UPDATE snowflake_fleet.map_shard AS m SET server = target WHERE m.shard = move.shard;
  PERFORM snowflake_fleet.follow_map();
  RETURN fresh;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.move(integer, text, text) IS
  'Internal: for snowflake-move-shard: records in the map of shards that a shard is on the target server. The target '
  'server must already have the rows of the shard';
