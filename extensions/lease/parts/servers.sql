-- The servers of the fleet: each has a login role of its own, and nobody speaks for another.

CREATE TABLE snowflake_fleet.server (
  name text PRIMARY KEY CHECK (name OPERATOR(pg_catalog.<>) ''),
  enrolled timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  retired timestamptz,
  heard timestamptz,
  pool int4range CHECK (NOT pg_catalog.isempty(pool))
);
COMMENT ON TABLE snowflake_fleet.server IS
  'Servers by the name of their login role; to be changed by the functions only';
COMMENT ON COLUMN snowflake_fleet.server.heard IS 'When it last asked for something';
COMMENT ON COLUMN snowflake_fleet.server.pool IS
  'The regions that it may be granted; null: those that are in no server''s pool';

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_extension
              WHERE extname OPERATOR(pg_catalog.=) 'snowflake_fleet') THEN
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.server', '');
  END IF;
END
$$;

-- The server that this session speaks for. `session_user` stays what it was at login, whatever
-- SET ROLE and SECURITY DEFINER do.
CREATE FUNCTION snowflake_fleet.speaker() RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  server snowflake_fleet.server;
BEGIN
  SELECT s.* INTO server FROM snowflake_fleet.server AS s WHERE s.name = session_user::text;
  IF NOT FOUND OR server.retired IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
      MESSAGE = format('role %s is not a server of this fleet', quote_ident(session_user::text)),
      DETAIL = CASE WHEN server.retired IS NULL THEN 'It was never enrolled.'
                    ELSE format('It was retired at %s.', server.retired) END,
      HINT = 'Run snowflake_fleet.enroll() in the control database.';
  END IF;
  RETURN server.name;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.speaker() IS
  'Internal: name of the server that this session logged in as; an error (42501) where it is none';

CREATE FUNCTION snowflake_fleet.check_server_name(server text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF server IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'server must not be null',
      HINT = 'Give the name of the server''s login role.';
  END IF;
  IF octet_length(server) NOT BETWEEN 1 AND 63 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'a server''s name has 1 to 63 bytes',
      DETAIL = format('This one has %s.', octet_length(server)),
      HINT = 'It is the name of a role: choose a shorter one.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_server_name(text) IS 'Internal: refuses what cannot name a role';

-- Pools are places: two servers have the same one or have none in common, or a region would be of two places.
CREATE FUNCTION snowflake_fleet.check_pool(server text, pool int4range) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  count integer;
  other record;
BEGIN
  SELECT nullif(count(*), 0) INTO count FROM snowflake_fleet.region;
  IF isempty(pool) OR lower_inf(pool) <> upper_inf(pool) OR lower(pool) < 0 OR upper(pool) > coalesce(count, 1024) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('there are no such regions: %s', pool),
      DETAIL = CASE WHEN count IS NULL THEN 'A fleet has 1024 regions at most.'
                    ELSE format('The fleet has regions 0 to %s.', count - 1) END,
      HINT = 'Write the pool as ''[0,16)'', or as ''(,)'' for a server that is to have none.';
  END IF;
  SELECT s.name, s.pool INTO other FROM snowflake_fleet.server AS s
   WHERE s.name <> check_pool.server AND s.pool && check_pool.pool AND s.pool <> check_pool.pool
     AND NOT lower_inf(check_pool.pool) ORDER BY s.name LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('pool %s overlaps that of server %s', pool, quote_ident(other.name)),
      DETAIL = format('Server %s has %s. Servers of one place have the same pool, others have no region in common.',
                      quote_ident(other.name), other.pool),
      HINT = 'Choose the same pool, or one beside it.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_pool(text, int4range) IS
  'Behind snowflake_fleet.enroll: refuses a pool that the layout does not have, or that overlaps another server''s';

CREATE FUNCTION snowflake_fleet.enroll(server text, regions int4range DEFAULT NULL) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  role record;
BEGIN
  PERFORM snowflake_fleet.check_server_name(server);
  IF NOT EXISTS (SELECT FROM snowflake_fleet.fleet) THEN
    PERFORM snowflake_fleet.create_fleet();
  END IF;
  PERFORM snowflake_fleet.lock_fleet();
  IF regions IS NOT NULL THEN
    PERFORM snowflake_fleet.check_pool(server, regions);
  END IF;

  SELECT r.rolcanlogin, r.rolsuper INTO role FROM pg_catalog.pg_roles AS r WHERE r.rolname = server;
  IF NOT FOUND THEN
    EXECUTE format('CREATE ROLE %I LOGIN', server);
  ELSIF role.rolsuper OR NOT role.rolcanlogin THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('role %s cannot be a server', quote_ident(server)),
      DETAIL = CASE WHEN role.rolsuper THEN 'It is a superuser.' ELSE 'It may not log in.' END,
      HINT = 'Choose another name: a role is made for it.';
  END IF;
  -- So that the owner may end a session that keeps the lock on the fleet.
  IF NOT pg_has_role(current_user, server, 'USAGE') THEN
    EXECUTE format('GRANT %I TO %I', server, current_user);
  END IF;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), server);
  EXECUTE format('GRANT USAGE ON SCHEMA snowflake_fleet TO %I', server);
  EXECUTE format('GRANT EXECUTE ON FUNCTION '
    'snowflake_fleet.acquire(bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint), '
    'snowflake_fleet.renew(bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, integer, bigint, bigint, bigint), '
    'snowflake_fleet.give_back(bigint, bigint, bigint, bigint, bigint, bigint, integer, bigint, bigint) TO %I', server);
  INSERT INTO snowflake_fleet.server AS s (name) VALUES (server)
  ON CONFLICT (name) DO UPDATE SET retired = NULL;
  IF regions IS NOT NULL THEN
    UPDATE snowflake_fleet.server AS s SET pool = CASE WHEN NOT lower_inf(regions) THEN regions END
     WHERE s.name = enroll.server;
    PERFORM snowflake_fleet.tell_of_strangers();
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.enroll(text, int4range) IS
  'Lets a server take part: makes its login role, without a password, where there is none. `regions` is its pool: it '
  'is granted regions of the pool only, and servers without a pool are granted none of it. Null leaves the pool as it '
  'is, ''(,)'' takes it away. Servers of one place share a pool; 22023 where two pools overlap otherwise';

CREATE FUNCTION snowflake_fleet.retire(server text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM snowflake_fleet.check_server_name(server);
  PERFORM snowflake_fleet.lock_fleet();
  UPDATE snowflake_fleet.server AS s SET retired = clock_timestamp(), pool = NULL
   WHERE s.name = retire.server AND s.retired IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('there is no server %s in this fleet', quote_ident(server)),
      HINT = 'The view snowflake_fleet.servers has them all.';
  END IF;
  PERFORM snowflake_fleet.end_lease(r) FROM snowflake_fleet.region AS r
    WHERE r.server = retire.server AND r.incarnation <> 0;
  IF EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = retire.server) THEN
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_fleet FROM %I', server);
    EXECUTE format('REVOKE USAGE ON SCHEMA snowflake_fleet FROM %I', server);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.retire(text) IS
  'Ends the leases of a server, all its clones included, grants it no other, and takes its pool away. It may '
  'mint until its leases end; its role stays, to be dropped by hand';

REVOKE ALL ON FUNCTION snowflake_fleet.speaker(), snowflake_fleet.check_server_name(text),
  snowflake_fleet.check_pool(text, int4range), snowflake_fleet.enroll(text, int4range), snowflake_fleet.retire(text) FROM PUBLIC;
