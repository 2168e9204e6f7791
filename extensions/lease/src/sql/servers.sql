-- The servers of the fleet. Each server has a login role, whose sessions can send requests only for this server.

CREATE TABLE snowflake_fleet.server (
  name text PRIMARY KEY CHECK (name OPERATOR(pg_catalog.<>) ''),
  role oid NOT NULL,            -- the role of the server, to detect that the role was renamed
  added timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  removed timestamptz,
  last_request timestamptz,            -- the time of the server's last request about a lease
  signature bigint NOT NULL DEFAULT 0  -- as in snowflake_fleet.fleet
);
COMMENT ON TABLE snowflake_fleet.server IS
  'The servers of the fleet, by the name of their login role. Only functions of the schema snowflake_fleet may change '
  'this table';

-- asking_server() uses session_user, because SET ROLE and SECURITY DEFINER do not change session_user.
CREATE FUNCTION snowflake_fleet.asking_server() RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asks CONSTANT text := session_user;
  server snowflake_fleet.server;
  renamed text;
BEGIN
  SELECT s.* INTO server FROM snowflake_fleet.server AS s WHERE s.name = asks;
  IF FOUND AND server.removed IS NULL THEN
    RETURN server.name;
  END IF;
  SELECT s.name INTO renamed FROM snowflake_fleet.server AS s JOIN pg_roles AS r ON r.oid = s.role
   WHERE r.rolname = asks AND s.name <> asks AND s.removed IS NULL;
  RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
    MESSAGE = format('role %s is not a server of this fleet', quote_ident(asks)),
    DETAIL = CASE WHEN renamed IS NOT NULL THEN format('The role was added under the name %s, and was renamed later.',
                                                       quote_ident(renamed))
                  WHEN server.name IS NULL THEN 'The role was never added.'
                  ELSE format('The server was removed at %s.', server.removed) END,
    HINT = CASE WHEN renamed IS NOT NULL
                THEN format('Run ALTER ROLE %I RENAME TO %I in the lease server.', asks, renamed)
                ELSE format('Run snowflake_fleet.add_server(%L) in the lease server.', asks) END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.asking_server() IS
  'Internal: returns the server whose role logged in to this session. Raises an error (42501) if the role is not a '
  'server';

CREATE FUNCTION snowflake_fleet.check_server_name(server text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF server IS NULL OR octet_length(server) NOT BETWEEN 1 AND 63 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the name of a server must have 1 to 63 bytes',
      DETAIL = format('The name that was passed has %s bytes.', coalesce(octet_length(server), 0)),
      HINT = 'Pass the name of the server''s login role.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_server_name(text) IS
  'Internal: raises an error (22023) if the text cannot be the name of a role';

CREATE FUNCTION snowflake_fleet.login_role(server text, OUT role oid, OUT made boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  login record;
BEGIN
  made := false;
  SELECT r.* INTO login FROM pg_catalog.pg_roles AS r WHERE r.rolname = server;
  IF NOT FOUND THEN
    IF NOT (SELECT r.rolsuper OR r.rolcreaterole FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user) THEN
      RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
        MESSAGE = format('permission denied to create role %s', quote_ident(server)),
        HINT = format('Run CREATE ROLE %I LOGIN as a role with CREATEROLE, and run add_server() again.', server);
    END IF;
    EXECUTE format('CREATE ROLE %I LOGIN', server);
    made := true;
  ELSIF login.rolsuper OR NOT login.rolcanlogin OR pg_has_role(login.oid, current_user, 'MEMBER') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('role %s cannot be the login role of a server', quote_ident(server)),
      DETAIL = CASE WHEN login.rolsuper THEN 'The role is a superuser.'
                    WHEN NOT login.rolcanlogin THEN 'The role may not log in.'
                    ELSE 'The role owns the fleet, or is a member of the owner.' END,
      HINT = 'Pass another name, for which add_server() creates a login role.';
  END IF;
  role := quote_ident(server)::regrole;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.login_role(text) IS
  'Internal: returns the login role of a server, and creates the role if it does not exist. Raises an error (22023) '
  'if the role cannot be the login role of a server';

CREATE FUNCTION snowflake_fleet.add_server(server text) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  login record;
BEGIN
  PERFORM snowflake_fleet.check_server_name(server);
  IF NOT EXISTS (SELECT FROM snowflake_fleet.fleet) THEN
    LOCK TABLE snowflake_fleet.fleet IN EXCLUSIVE MODE;   -- another session may be running create_fleet()
    PERFORM snowflake_fleet.create_fleet() WHERE NOT EXISTS (SELECT FROM snowflake_fleet.fleet);
  END IF;
  PERFORM snowflake_fleet.lock_fleet(), snowflake_fleet.require_settled();
  SELECT * INTO STRICT login FROM snowflake_fleet.login_role(server);
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), server);
  EXECUTE format('GRANT USAGE ON SCHEMA snowflake_fleet TO %I', server);
  EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_fleet.ask(text, bigint, bigint, bigint, bigint, bigint, bigint, '
                 'bigint, bigint, bigint, bigint, integer[], integer, bigint, bigint, bigint, bigint) TO %I', server);
  INSERT INTO snowflake_fleet.server AS s (name, role) VALUES (server, login.role)
  ON CONFLICT (name) DO UPDATE SET removed = NULL, role = login.role;
  PERFORM snowflake_fleet.sign_rows();
  RETURN format('Server %s may log in as role %s%s.', quote_ident(server), quote_ident(server),
                CASE WHEN login.made THEN ', which was created without a password' ELSE '' END);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.add_server(text) IS
  'Adds a server to the fleet, or adds a removed server again. If the login role of the server does not exist, '
  'creates the role without a password';

CREATE FUNCTION snowflake_fleet.remove_server(server text, dry_run boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own snowflake_fleet.server;
  leases text;
BEGIN
  PERFORM snowflake_fleet.check_server_name(server);
  PERFORM snowflake_fleet.lock_fleet(), snowflake_fleet.require_settled(although_halted => true);
  SELECT s.* INTO own FROM snowflake_fleet.server AS s WHERE s.name = remove_server.server;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('server %s does not exist in this fleet', quote_ident(server)),
      HINT = 'Find the name of the server in the view snowflake_fleet.servers.';
  END IF;
  leases := coalesce((SELECT 'These leases end: ' || string_agg(snowflake_fleet.lease_text(r), ', '
                                                                   ORDER BY r.region) || '.'
                        FROM snowflake_fleet.region AS r WHERE r.server = own.name AND r.incarnation <> 0),
                     'The server holds no lease.');
  IF dry_run IS NOT FALSE THEN
    RETURN format('Server %s would be removed. %s', quote_ident(server), leases);
  ELSIF own.removed IS NOT NULL THEN
    RETURN format('Server %s was removed at %s.', quote_ident(server), own.removed);
  END IF;
  UPDATE snowflake_fleet.server AS s SET removed = clock_timestamp() WHERE s.name = own.name;
  PERFORM snowflake_fleet.end_lease(r) FROM snowflake_fleet.region AS r
    WHERE r.server = own.name AND r.incarnation <> 0;
  UPDATE snowflake_fleet.region AS r SET server = NULL WHERE r.server = own.name;
  PERFORM snowflake_fleet.sign_rows();
  RETURN format('Server %s is removed. %s', quote_ident(server), leases);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.remove_server(text, boolean) IS
  'Removes a server: revokes its leases and those of its clones, and refuses new leases. The removed server may mint '
  'until its leases end. When these leases have ended, other servers may lease the same regions. The role is not '
  'dropped';
