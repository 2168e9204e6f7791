-- Functions for copies of the shard map, which lists the server of each shard. Data servers and programs that route
-- queries have copies of the shard map. The function import_map() receives a newer shard map as one JSON document, and
-- replaces the whole copy.

-- Returns the options of a connection string in libpq's form: name = value. A value can be 'quoted', and a backslash
-- escapes the next character. URIs are refused. The error does not show the connection string, because the string may
-- contain a password.
CREATE FUNCTION snowflake_fleet.options_of(conninfo text)
  RETURNS TABLE (option text, value text)
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  rest text := ltrim(conninfo, E' \t\n\r\f\v');
  matched text[];
BEGIN
  WHILE rest <> '' LOOP
    matched := regexp_match(rest, '^([a-z_]+)\s*=\s*(?:''((?:[^\\'']|\\.)*)''|((?:[^\\\s'']|\\.)*))(?:\s+|$)(.*)$');
    IF matched IS NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
        MESSAGE = 'connection string is invalid',
        DETAIL = format('The invalid part of the connection string begins at position %s.',
                        length(conninfo) - length(rest) + 1),
        HINT = 'Write the connection string as ''host=db1 port=5432 dbname=app'', not as a URI.';
    END IF;
    option := matched[1];
    value := regexp_replace(coalesce(matched[2], matched[3]), '\\(.)', '\1', 'g');
    rest := matched[4];
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.options_of(text) IS
  'Internal: returns the options of a connection string that has libpq''s form name=value';

-- with_timeouts() inserts time limits before the options of the connection string `conninfo`. If an option appears
-- twice, libpq uses the last value, so time limits in `conninfo` override the inserted time limits. The password in a
-- URI may contain a question mark.
CREATE FUNCTION snowflake_fleet.with_timeouts(conninfo text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN conninfo ~ '^postgres(ql)?://'
    THEN regexp_replace(conninfo, '^(postgres(?:ql)?://(?:[^@/]*@)?[^?]*)\??', '\1?' || replace(limits, ' ', '&'))
    ELSE limits || conninfo END
  FROM (VALUES ('connect_timeout=10 keepalives_idle=30 keepalives_interval=10 keepalives_count=3 '
                'tcp_user_timeout=60000 ')) AS l (limits)
$$;
COMMENT ON FUNCTION snowflake_fleet.with_timeouts(text) IS
  'Internal: adds time limits to a connection string that has none. A connection attempt may take 10 s, and a '
  'connection ends 60 s after the network has failed';

CREATE FUNCTION snowflake_fleet.export_map() RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'version', (SELECT version FROM snowflake_fleet.map_state),
    'history', (SELECT to_jsonb(history) FROM snowflake_fleet.map_state),
    'servers', (SELECT coalesce(jsonb_object_agg(name, conninfo), '{}') FROM snowflake_fleet.map_server),
    'shards', (SELECT coalesce(jsonb_object_agg(server, shards), '{}')
                 FROM (SELECT server, jsonb_agg(shard ORDER BY shard) AS shards
                         FROM snowflake_fleet.map_shard GROUP BY server) AS s))
$$;
COMMENT ON FUNCTION snowflake_fleet.export_map() IS
  'Returns the whole map of shards as one document. The document contains the version of the map, the earlier '
  'versions, the servers with their connection strings, and the shards of each server';

CREATE FUNCTION snowflake_fleet.check_map(map jsonb) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF map IS NULL OR jsonb_typeof(map -> 'version') IS DISTINCT FROM 'number'
     OR jsonb_typeof(map -> 'history') IS DISTINCT FROM 'array'
     OR jsonb_typeof(map -> 'servers') IS DISTINCT FROM 'object'
     OR jsonb_typeof(map -> 'shards') IS DISTINCT FROM 'object' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'the document is not a map of shards',
      DETAIL = 'A map consists of a version, a history, servers and shards.',
      HINT = 'Pass a result of snowflake_fleet.export_map().';
  END IF;
  PERFORM snowflake_fleet.check_conninfo(value) FROM jsonb_each_text(map -> 'servers');
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_map(jsonb) IS
  'Internal: raises an error if a document is not a result of export_map()';

CREATE FUNCTION snowflake_fleet.replace_map(map jsonb) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM snowflake_fleet.map_shard;
  DELETE FROM snowflake_fleet.map_server;
  INSERT INTO snowflake_fleet.map_server (name, conninfo)
  SELECT key, value FROM jsonb_each_text(map -> 'servers');
  INSERT INTO snowflake_fleet.map_shard (shard, server)
  SELECT shard::integer, key FROM jsonb_each(map -> 'shards'), jsonb_array_elements_text(value) AS shard;
  PERFORM snowflake_fleet.follow_map();
END
$$;
COMMENT ON FUNCTION snowflake_fleet.replace_map(jsonb) IS
  'Internal: for import_map() and map_recovered(): replaces the servers and shards in the map of this database by the '
  'servers and shards of a document';

CREATE FUNCTION snowflake_fleet.import_map(map jsonb) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  state snowflake_fleet.map_state;
  arrived bigint;
  followed bigint[];
BEGIN
  PERFORM snowflake_fleet.check_map(map);
  arrived := (map ->> 'version')::bigint;
  followed := ARRAY(SELECT v::bigint FROM jsonb_array_elements_text(map -> 'history') AS v ORDER BY 1);
  SELECT s.* INTO STRICT state FROM snowflake_fleet.map_state AS s FOR UPDATE;
  IF NOT state.is_copy AND state.version > 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database has its own map of shards, not a copy',
      DETAIL = format('This is the control database. The map of this database has version %s.', state.version),
      HINT = 'Import the shard map into the databases that route queries.';
  END IF;
  IF arrived <= state.version THEN
    RETURN false;
  END IF;
  -- The new map lists up to 1000 earlier map versions from which it was made. If the new map does not list the version
  -- of this database's map, import_map() raises an error. The exception is a map older than all listed versions, if the
  -- new map lists 1000 versions.
  IF state.version > 0 AND state.version <> ALL (followed)
     AND (cardinality(followed) < 1000 OR state.version > followed[1]) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('the new map was not made from version %s, which this database has', state.version),
      DETAIL = format('The new map has version %s, and lacks changes of the map in this database. '
                      'The control database has lost these changes, for example by a restore.', arrived),
      HINT = 'Run "snowflake-push-map --recover", which reads all copies of the map.';
  END IF;
  PERFORM snowflake_fleet.replace_map(map);
  UPDATE snowflake_fleet.map_state
     SET version = arrived, history = followed, is_copy = true, changed = clock_timestamp();
  PERFORM pg_notify('snowflake_map', arrived::text);
  RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.import_map(jsonb) IS
  'Replaces the copy of the map in this database if the passed map is newer. Returns whether the passed map was '
  'newer. Raises an error (55000) if the passed map is newer, but lacks changes that the copy in this database '
  'contains';

-- After the control database was restored, recovered or promoted, the following functions correct its map of shards.

CREATE FUNCTION snowflake_fleet.map_is_behind(newer bigint) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  UPDATE snowflake_fleet.map_state AS s SET newer = greatest(s.newer, map_is_behind.newer)
   WHERE NOT is_copy AND map_is_behind.newer > version
$$;
COMMENT ON FUNCTION snowflake_fleet.map_is_behind(bigint) IS
  'Internal: for the control database: records that a copy of the map of shards is newer than the map. The map of '
  'shards cannot be changed until map_recovered() is called';

CREATE FUNCTION snowflake_fleet.map_recovered(newest jsonb DEFAULT NULL, others bigint[] DEFAULT '{}') RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  state snowflake_fleet.map_state;
  known bigint[];
  difference record;
BEGIN
  SELECT s.* INTO STRICT state FROM snowflake_fleet.map_state AS s FOR UPDATE;
  IF state.is_copy THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database has only a copy of the shard map',
      DETAIL = 'map_recovered() must be called in the control database, which has the original map.',
      HINT = 'Call map_recovered() in the control database.';
  END IF;
  known := state.history || state.version || others;
  -- If the map of the control database has or had the version of the copy `newest`, the map already contains all
  -- changes of the copy.
  IF newest IS NOT NULL AND NOT (newest ->> 'version')::bigint = ANY (state.history || state.version) THEN
    PERFORM snowflake_fleet.check_map(newest);
    FOR difference IN
      SELECT shard, h.server AS here, n.server AS there
        FROM snowflake_fleet.map_shard AS h
        FULL JOIN (SELECT s::integer AS shard, key AS server
                     FROM jsonb_each(newest -> 'shards'), jsonb_array_elements_text(value) AS s) AS n
       USING (shard)
       WHERE h.server IS DISTINCT FROM n.server ORDER BY shard
    LOOP
      RAISE NOTICE 'in the shard map, shard % is now %, as in the newest copy; before map_recovered(), the shard was %',
        difference.shard,
        coalesce('on server ' || quote_ident(difference.there), 'in no server'),
        coalesce('on server ' || quote_ident(difference.here), 'in no server');
    END LOOP;
    PERFORM snowflake_fleet.replace_map(newest);
    known := known || (newest ->> 'version')::bigint
      || ARRAY(SELECT v::bigint FROM jsonb_array_elements_text(newest -> 'history') AS v);
  END IF;
  RETURN snowflake_fleet.begin_version((SELECT max(v) FROM unnest(known) AS v), known);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.map_recovered(jsonb, bigint[]) IS
  'Call this function in the control database after it was restored, recovered or promoted. After the call, the map '
  'can be changed again. Pass the newest copy, in the form that export_map() returns. The newest copy replaces the '
  'map, unless the map already contains all changes of the copy. The argument `others` lists the versions of all '
  'other copies of the map, so that the resulting map can replace the copies. The program "snowflake-push-map '
  '--recover" collects the copies and their versions. If you pass no copy, you confirm that no copy is newer than '
  'the map. Returns the version number of the resulting map';

CREATE FUNCTION snowflake_fleet.pull_map(control text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  dblink text := (SELECT quote_ident(nspname) || '.dblink' FROM pg_extension
                     JOIN pg_namespace AS n ON n.oid = extnamespace
                   WHERE extname = 'dblink');
  map jsonb;
BEGIN
  IF dblink IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'extension "dblink" is not installed in this database',
      DETAIL = 'pull_map() uses the extension "dblink" to connect to the control database.',
      HINT = 'Run CREATE EXTENSION dblink. Or push the map with the program snowflake-push-map.';
  END IF;
  EXECUTE format('SELECT map FROM %s($1, $2) AS map (map jsonb)', dblink)
     INTO map USING snowflake_fleet.with_timeouts(control), 'SELECT snowflake_fleet.export_map()';
  RETURN snowflake_fleet.import_map(map);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.pull_map(text) IS
  'Copies the map from the control database through extension dblink. Pass the connection string of the control '
  'database. Returns whether the map of the control database was newer than the copy in this database';
