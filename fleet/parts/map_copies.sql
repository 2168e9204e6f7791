-- Copies of the map on data servers and routers: taken as one document, and put in place of an older one.

-- Options of a connection string, as libpq reads it: name = value, where a value may be 'quoted', and
-- a backslash takes the next character as it is. URIs are not for the map.
CREATE FUNCTION snowflake_fleet.options_of(conninfo text)
  RETURNS TABLE (option text, value text)
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  rest text := ltrim(conninfo, E' \t\n\r\f\v');
  matched text[];
BEGIN
  WHILE rest <> '' LOOP
    matched := regexp_match(rest, '^([a-z_]+)\s*=\s*(?:''((?:[^\\'']|\\.)*)''|((?:[^\\\s'']|\\.)*))(?:\s+|$)(.*)$');
    IF matched IS NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
        MESSAGE = 'connection string cannot be read',
        DETAIL = format('What cannot be read begins with "%s".', left(rest, 20)),
        HINT = 'Write it as ''host=db1 port=5432 dbname=app''.';
    END IF;
    option := matched[1];
    value := regexp_replace(coalesce(matched[2], matched[3]), '\\(.)', '\1', 'g');
    rest := matched[4];
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.options_of(text) IS
  'The options of a connection string in libpq''s form name=value';

CREATE FUNCTION snowflake_fleet.export_map() RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT jsonb_build_object(
    'version', (SELECT version FROM snowflake_fleet.map_state),
    'servers', (SELECT coalesce(jsonb_object_agg(name, conninfo), '{}') FROM snowflake_fleet.map_server),
    'shards', (SELECT coalesce(jsonb_object_agg(server, shards), '{}')
                 FROM (SELECT server, jsonb_agg(shard ORDER BY shard) AS shards
                         FROM snowflake_fleet.map_shard GROUP BY server) AS s))
$$;
COMMENT ON FUNCTION snowflake_fleet.export_map() IS
  'The whole map as one document: version, servers with their connection strings, shards by server';

CREATE FUNCTION snowflake_fleet.import_map(map jsonb) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  state snowflake_fleet.map_state;
  arrived bigint;
BEGIN
  IF map IS NULL OR jsonb_typeof(map -> 'version') IS DISTINCT FROM 'number'
     OR jsonb_typeof(map -> 'servers') IS DISTINCT FROM 'object'
     OR jsonb_typeof(map -> 'shards') IS DISTINCT FROM 'object' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'this is no map',
      DETAIL = 'A map has a version, servers and shards.',
      HINT = 'Pass what snowflake_fleet.export_map() returns in the control database.';
  END IF;
  arrived := (map ->> 'version')::bigint;
  SELECT s.* INTO STRICT state FROM snowflake_fleet.map_state AS s FOR UPDATE;
  IF NOT state.is_copy AND state.version > 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database has a map of its own',
      DETAIL = format('It is the control database, with version %s.', state.version),
      HINT = 'Import the map where routing is done.';
  END IF;
  IF arrived <= state.version THEN
    RETURN false;
  END IF;
  DELETE FROM snowflake_fleet.map_shard;
  DELETE FROM snowflake_fleet.map_server;
  INSERT INTO snowflake_fleet.map_server (name, conninfo)
  SELECT key, value FROM jsonb_each_text(map -> 'servers');
  INSERT INTO snowflake_fleet.map_shard (shard, server)
  SELECT shard::integer, key FROM jsonb_each(map -> 'shards'), jsonb_array_elements_text(value) AS shard;
  UPDATE snowflake_fleet.map_state
     SET version = arrived, is_copy = true, changed = clock_timestamp();
  PERFORM pg_notify('snowflake_map', arrived::text);
  RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.import_map(jsonb) IS
  'Puts a map that is newer in place of the copy here; returns whether it was';

CREATE FUNCTION snowflake_fleet.pull_map(control text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  dblink text := (SELECT quote_ident(nspname) || '.dblink' FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace
                   WHERE extname = 'dblink');
  map jsonb;
BEGIN
  IF dblink IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'extension "dblink" is not installed in this database',
      DETAIL = 'It is what connects to the control database.',
      HINT = 'Run CREATE EXTENSION dblink, or push the map with the program snowflake-push-map.';
  END IF;
  EXECUTE format('SELECT map FROM %s($1, $2) AS map (map jsonb)', dblink)
     INTO map USING control, 'SELECT snowflake_fleet.export_map()';
  RETURN snowflake_fleet.import_map(map);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.pull_map(text) IS
  'Fetches the map from the control database, by its connection string, through extension dblink; '
  'returns whether it was newer';

-- The map is for everybody who routes; who may change it is the owner.
REVOKE ALL ON FUNCTION snowflake_fleet.change_map(), snowflake_fleet.set_server(text, text),
  snowflake_fleet.drop_server(text), snowflake_fleet.check_server(text), snowflake_fleet.assign(int4range, text),
  snowflake_fleet.move(integer, text, text), snowflake_fleet.import_map(jsonb),
  snowflake_fleet.pull_map(text) FROM PUBLIC;
GRANT USAGE ON SCHEMA snowflake_fleet TO PUBLIC;
GRANT SELECT ON snowflake_fleet.map, snowflake_fleet.map_state, snowflake_fleet.map_server,
  snowflake_fleet.map_shard TO PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_fleet.map_version(), snowflake_fleet.server_of(bigint),
  snowflake_fleet.server_of_shard(integer), snowflake_fleet.export_map(), snowflake_fleet.options_of(text) TO PUBLIC;
