-- Functions with which a DBA ends a lease, or confirms that leases were lost. A DBA can repeat a call of
-- revoke_lease(), confirm_dead(), confirm_no_data_loss() or confirm_data_loss(). With dry_run => true, a function only
-- returns the changes that it would make.

CREATE FUNCTION snowflake_fleet.require_row(held snowflake_fleet.region, number integer) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF held.region IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('region %s was never leased', coalesce(number::text, 'null')),
      HINT = 'Find the region in the view snowflake_fleet.regions.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_row(snowflake_fleet.region, integer) IS
  'Internal: raises an error (42704) if no row of the table snowflake_fleet.region has this region, because the '
  'region was never leased';

CREATE FUNCTION snowflake_fleet.revoke_lease(region integer, incarnation bigint DEFAULT NULL,
                                             dry_run boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  held snowflake_fleet.region;
BEGIN
  PERFORM snowflake_fleet.lock_fleet(), snowflake_fleet.require_settled();
  SELECT r.* INTO held FROM snowflake_fleet.region AS r WHERE r.region = revoke_lease.region;
  PERFORM snowflake_fleet.require_row(held, region);
  IF held.incarnation = 0 THEN
    RETURN format('No server holds region %s.', region);
  ELSIF revoke_lease.incarnation <> held.incarnation THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('incarnation %s does not hold region %s', revoke_lease.incarnation, region),
      DETAIL = format('The region is leased to incarnation (run) %s of server %s.', held.incarnation,
                      quote_ident(held.server)),
      HINT = 'Read the view snowflake_fleet.regions again.';
  ELSIF dry_run IS NOT FALSE THEN
    RETURN format('The lease would be revoked: %s.', snowflake_fleet.lease_text(held));
  END IF;
  PERFORM snowflake_fleet.end_lease(held), snowflake_fleet.sign_rows();
  RETURN format('The lease is revoked: %s.', snowflake_fleet.lease_text(held));
END
$$;
COMMENT ON FUNCTION snowflake_fleet.revoke_lease(integer, bigint, boolean) IS
  'Revokes the lease of a region. If you pass an incarnation (the number of a server run), only the lease of this '
  'server run is revoked. The lease is not renewed, and the region is free when the lease ends. The server that holds '
  'the lease may mint until the lease ends, or until its next request. When its lease has ended, this server leases '
  'another of the regions that it may lease';

CREATE FUNCTION snowflake_fleet.ahead_in_ms(ahead interval) RETURNS bigint
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ahead_ms CONSTANT numeric := floor(extract(epoch FROM ahead) * 1000);
BEGIN
  IF (ahead_ms BETWEEN 0 AND 604800000) IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = '"ahead" is out of range',
      DETAIL = format('"ahead" is %s, and must be 0 to 7 days.',
                      coalesce(ahead::text, 'null')),
      HINT =
        'Pass the sum of "snowflake.max_lead" and "snowflake.reserve" of the server, for example ahead => ''2 s''.';
  END IF;
  RETURN ahead_ms;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.ahead_in_ms(interval) IS
  'Internal: converts the argument "ahead" to milliseconds. "ahead" is the time by which ids of a server may be ahead '
  'of its clock. Raises an error (22023) unless "ahead" is 0 to 7 days';

CREATE FUNCTION snowflake_fleet.confirm_dead(region integer, ahead interval, holder_is_stopped boolean DEFAULT false,
                                             dry_run boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own snowflake_fleet.fleet;
  held snowflake_fleet.region;
  now_ms bigint;
  ahead_ms CONSTANT bigint := snowflake_fleet.ahead_in_ms(ahead);
  free_ms bigint;
BEGIN
  IF holder_is_stopped IS NOT TRUE AND dry_run IS FALSE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the server has not been confirmed as stopped',
      DETAIL = 'A server that was only suspended or disconnected from the network may mint ids until its lease ends. '
               'The next server with this region would mint the same ids.',
      HINT = 'Stop the server that holds the lease, and pass holder_is_stopped => true. '
             'Or run snowflake_fleet.revoke_lease(), and wait until the lease ends.';
  END IF;
  own := snowflake_fleet.lock_fleet();
  PERFORM snowflake_fleet.require_settled();
  SELECT r.* INTO held FROM snowflake_fleet.region AS r WHERE r.region = confirm_dead.region;
  PERFORM snowflake_fleet.require_row(held, region);
  now_ms := snowflake_fleet.to_ms(clock_timestamp());
  PERFORM snowflake_fleet.require_clock(own, now_ms);
  free_ms := greatest(held.floor_ms, least(held.until_ms, now_ms + ahead_ms + own.skew_ms));
  IF dry_run IS NOT FALSE THEN
    RETURN format('Region %s would be free at %s: %s.', region, snowflake_fleet.from_ms(free_ms),
                  snowflake_fleet.lease_text(held));
  END IF;
  UPDATE snowflake_fleet.region AS r SET incarnation = 0, state = 'revoked', until_ms = free_ms
   WHERE r.region = held.region;
  PERFORM snowflake_fleet.sign_rows();
  RAISE LOG 'snowflake_fleet: an operator confirmed that the holder is stopped: %', snowflake_fleet.lease_text(held);
  RETURN format('Region %s is free at %s: %s.', region, snowflake_fleet.from_ms(free_ms),
                snowflake_fleet.lease_text(held));
END
$$;
COMMENT ON FUNCTION snowflake_fleet.confirm_dead(integer, interval, boolean, boolean) IS
  'Ends the lease of a region if the server that holds the lease is stopped, for example after a power loss. The '
  'region is free after the interval `ahead` plus max_skew has passed. For `ahead`, pass the sum of max_lead and '
  'reserve of the server. Duplicate ids are possible if the server that holds the lease still runs, or if its clock '
  'was ahead by more than max_skew. Duplicate ids are also possible if the clock of this database is behind by more '
  'than max_skew';

CREATE FUNCTION snowflake_fleet.require_old_stopped(confirmed boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF confirmed IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'the old lease server has not been confirmed as stopped',
      DETAIL = 'If the old lease server still runs, it can grant a region a second time. '
               'Two servers would then mint the same ids.',
      HINT = 'Stop the old lease server permanently, and pass old_is_stopped => true.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_old_stopped(boolean) IS
  'Internal: raises an error (22023) unless the operator has confirmed that the old lease server is stopped';

CREATE FUNCTION snowflake_fleet.begin_term(now_ms bigint, salt bigint) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  UPDATE snowflake_fleet.fleet AS f
     SET term = greatest((now_ms << 20) | (salt & 1048575), f.term + 1, f.reported_term + 1),
         began = f.newest, halted = false, halted_by = NULL
$$;
COMMENT ON FUNCTION snowflake_fleet.begin_term(bigint, bigint) IS
  'Internal: begins a new term (a numbered period of the lease server). After a server has received an answer of the '
  'new term, it ignores answers of lease servers in an earlier term';

CREATE FUNCTION snowflake_fleet.lose_leases(now_ms bigint, salt bigint, silent boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fleet snowflake_fleet.fleet;
BEGIN
  SELECT f.* INTO STRICT fleet FROM snowflake_fleet.fleet AS f;
  UPDATE snowflake_fleet.region AS r
     SET state = CASE r.state WHEN 'revoked' THEN 'revoked' ELSE 'lost' END, incarnation = 0, server = NULL,
         until_ms = greatest(r.floor_ms, r.until_ms, now_ms + fleet.longest_ms + fleet.skew_ms);
  PERFORM snowflake_fleet.begin_term(now_ms, salt);
  UPDATE snowflake_fleet.fleet AS f
     SET lasting = f.term, fresh_ms = now_ms + f.longest_ms + f.skew_ms, newest_ms = now_ms,
         adopt_ms = CASE WHEN silent THEN now_ms + 2 * f.skew_ms ELSE 0 END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.lose_leases(bigint, bigint, boolean) IS
  'Internal: prevents new leases of every region until all leases that may exist have ended. Pass true for `silent` '
  'only if this database has granted no lease since it was restored. Servers may then continue leases that have not '
  'ended';

CREATE FUNCTION snowflake_fleet.confirm_no_data_loss(old_is_stopped boolean DEFAULT false,
                                                     dry_run boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own snowflake_fleet.fleet;
  now_ms bigint;
  leases text;
BEGIN
  PERFORM snowflake_fleet.require_old_stopped(old_is_stopped OR dry_run), snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  now_ms := snowflake_fleet.to_ms(clock_timestamp());
  IF own.halted
     AND NOT EXISTS (SELECT FROM snowflake_fleet.server AS s WHERE s.name = own.halted_by AND s.removed IS NOT NULL)
  THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'this database has lost a lease',
      DETAIL = format('Server %s has a lease that this database does not contain.', quote_ident(own.halted_by)),
      HINT = format('Run snowflake_fleet.confirm_data_loss(now, old_is_stopped => true). '
                    'If the report of the server is wrong, run snowflake_fleet.remove_server(%L), and repeat this '
                    'call.', own.halted_by);
  ELSIF NOT own.halted AND NOT (snowflake_fleet.has_moved()).moved THEN
    RETURN 'Nothing to confirm: this database contains the newest leases.';
  END IF;
  PERFORM snowflake_fleet.require_clock(own, now_ms);
  leases := coalesce((SELECT 'These leases continue: '
                      || string_agg(snowflake_fleet.lease_text(r), ', ' ORDER BY r.region) || '.'
                        FROM snowflake_fleet.region AS r WHERE r.incarnation <> 0), 'No lease continues.');
  IF dry_run IS NOT FALSE THEN
    RETURN leases;
  END IF;
  PERFORM snowflake_fleet.begin_term(now_ms, snowflake_fleet.random_number()), snowflake_fleet.settle_here();
  RAISE LOG 'snowflake_fleet: an operator confirmed that no grant was lost';
  RETURN leases;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.confirm_no_data_loss(boolean, boolean) IS
  'Confirms that no lease was lost, and continues all leases. Call this function after a switch-over, a failover to a '
  'synchronous standby, or pg_upgrade, when the old lease server is stopped permanently. If a lease was lost, two '
  'runs of one server may mint the same ids. If you do not know whether a lease was lost, call confirm_data_loss()';

CREATE FUNCTION snowflake_fleet.check_operators_time(now timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (now BETWEEN clock_timestamp() - interval '15 minutes' AND clock_timestamp() + interval '15 minutes') IS NOT TRUE
  THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE =
      'the clock of the lease server differs from the argument "now"',
      DETAIL = format('The clock shows %s. The argument is %s. The difference may be at most 15 minutes.',
                      clock_timestamp(),
                      coalesce(now::text, 'null')),
      HINT = 'Correct the clock, or pass the correct time.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_operators_time(timestamptz) IS
  'Internal: raises an error (22023) if the time that the operator passed and the clock of this database differ by '
  'more than 15 minutes';

CREATE FUNCTION snowflake_fleet.confirm_data_loss(now timestamptz, old_is_stopped boolean DEFAULT false,
                                                  although_healthy boolean DEFAULT false, dry_run boolean DEFAULT false)
  RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own snowflake_fleet.fleet;
  silent boolean;
  now_ms bigint;
  free_ms bigint;
  effect text;
BEGIN
  PERFORM snowflake_fleet.require_old_stopped(old_is_stopped OR dry_run), snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  PERFORM snowflake_fleet.check_operators_time(now);
  -- If the lease server is restored from a disk snapshot, the function has_moved() does not detect the restore. A
  -- restored lease server may grant leases until a server with a lease newer than the snapshot sends a request.
  silent := (snowflake_fleet.has_moved()).moved;
  IF NOT silent AND NOT own.halted AND although_healthy IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database does not seem to be restored to an older state',
      DETAIL = 'This database was not moved or copied after its last lease, and no server has reported a newer lease. '
               'After this call, every server would lose its lease.',
      HINT = 'If the disk of this server was restored from a snapshot, pass although_healthy => true.';
  END IF;
  now_ms := snowflake_fleet.to_ms(greatest(now, clock_timestamp()));
  PERFORM snowflake_fleet.require_clock(own, now_ms);
  free_ms := now_ms + own.longest_ms + own.skew_ms;
  effect := format(
    '%s Other regions are free at %s. New servers, and servers that restart after an unclean stop, wait until then.',
    CASE WHEN silent
         THEN format('Servers keep leases that end after %s.', snowflake_fleet.from_ms(now_ms + 2 * own.skew_ms))
         ELSE 'All leases end.' END, snowflake_fleet.from_ms(free_ms));
  IF dry_run IS NOT FALSE THEN
    RETURN effect;
  END IF;
  PERFORM snowflake_fleet.lose_leases(now_ms, snowflake_fleet.random_number(), silent), snowflake_fleet.settle_here();
  RAISE LOG 'snowflake_fleet: an operator confirmed that grants were lost: %', effect;
  RETURN effect;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.confirm_data_loss(timestamptz, boolean, boolean, boolean) IS
  'Confirms that leases may be lost. Call this function after this database was restored to an earlier time, or '
  'after a failover to a standby that may lack commits. The old lease server must be stopped permanently. The '
  'argument `now` is the present time by a clock that the operator trusts. Servers keep their leases. But if this '
  'database may have granted leases before the loss was detected, all leases end. Returns the time from which a '
  'region that no server holds may be leased again';

CREATE FUNCTION snowflake_fleet.guard_leases() RETURNS event_trigger
  LANGUAGE plpgsql PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  held snowflake_fleet.region;
BEGIN
  SELECT r.* INTO held FROM snowflake_fleet.region AS r
   WHERE r.until_ms > snowflake_fleet.to_ms(clock_timestamp())
     AND strpos(lower(current_query()), 'snowflake_fleet') <> 0
   ORDER BY r.until_ms DESC LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = 'the fleet has leases that have not ended',
      DETAIL = format('The lease that ends last is the lease of %s. '
                      'A new fleet could lease this region to another server before this lease ends.',
                      snowflake_fleet.lease_text(held)),
      HINT = 'Stop all servers, wait until the leases have ended, and run the command again. '
             'Restore a dump into a new database.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.guard_leases() IS
  'Internal: an event trigger calls this function, which prevents DROP EXTENSION before all leases have ended';

DO $$
BEGIN
  IF (SELECT r.rolsuper FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) current_user) THEN
    CREATE EVENT TRIGGER snowflake_fleet_guard_leases ON ddl_command_start WHEN TAG IN ('DROP EXTENSION', 'DROP SCHEMA')
      EXECUTE FUNCTION snowflake_fleet.guard_leases();
    COMMENT ON EVENT TRIGGER snowflake_fleet_guard_leases IS 'Prevents dropping the fleet before all leases have '
                                                             'ended';
  END IF;
END
$$;
