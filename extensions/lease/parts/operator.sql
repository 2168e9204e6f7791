-- The operator's calls: to end a lease, and to confirm what was lost. Each can be repeated; with dry_run
-- each returns what it would do.

CREATE FUNCTION snowflake_fleet.require_row(held snowflake_fleet.region, number integer) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF held.region IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('region %s was never leased', coalesce(number::text, 'null')),
      HINT = 'The view snowflake_fleet.regions has those that were.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_row(snowflake_fleet.region, integer) IS 'Internal: an error (42704) if a region has no row';

-- Two machines with one role differ by the incarnation, and by their addresses.
CREATE FUNCTION snowflake_fleet.revoke_lease(region integer, incarnation bigint DEFAULT NULL, dry_run boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  held snowflake_fleet.region;
BEGIN
  PERFORM snowflake_fleet.lock_fleet(), snowflake_fleet.require_settled();
  SELECT r.* INTO held FROM snowflake_fleet.region AS r WHERE r.region = revoke_lease.region;
  PERFORM snowflake_fleet.require_row(held, region);
  IF held.incarnation = 0 THEN
    RETURN format('Nobody holds region %s.', region);
  ELSIF revoke_lease.incarnation <> held.incarnation THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('incarnation %s does not hold region %s', revoke_lease.incarnation, region),
      DETAIL = format('Incarnation %s of server %s does.', held.incarnation, quote_ident(held.server)),
      HINT = 'Look at the view snowflake_fleet.regions again.';
  ELSIF dry_run IS NOT FALSE THEN
    RETURN format('The lease would be revoked: %s.', snowflake_fleet.lease_text(held));
  END IF;
  PERFORM snowflake_fleet.end_lease(held), snowflake_fleet.sign_rows();
  RETURN format('The lease is revoked: %s.', snowflake_fleet.lease_text(held));
END
$$;
COMMENT ON FUNCTION snowflake_fleet.revoke_lease(integer, bigint, boolean) IS
  'Ends the lease of a region, if this incarnation holds it where one is named: it is not renewed, and the region is free once its '
  'time is past. The holder may mint until then or until it asks, and takes another region of its server';

CREATE FUNCTION snowflake_fleet.confirm_dead(region integer, ahead interval, holder_is_stopped boolean DEFAULT false,
                                             dry_run boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own snowflake_fleet.fleet;
  held snowflake_fleet.region;
  now_ms bigint;
  ahead_ms CONSTANT numeric := floor(extract(epoch FROM ahead) * 1000);
  free_ms bigint;
BEGIN
  IF (ahead_ms BETWEEN 0 AND 604800000) IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = '"ahead" is out of range',
      DETAIL = format('It is %s; servers issue ids from 0 to 7 days ahead of their clocks.', coalesce(ahead::text, 'null')),
      HINT = 'Pass the sum of "snowflake.max_lead" and "snowflake.reserve" of the server, for example ahead => ''2 s''.';
  END IF;
  IF holder_is_stopped IS NOT TRUE AND dry_run IS FALSE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the holder has not been confirmed as stopped',
      DETAIL = 'A holder that is only cut off or frozen mints to the end of its lease, and the next holder would mint the same ids.',
      HINT = 'Make sure that it runs nowhere, then add "holder_is_stopped => true"; or run snowflake_fleet.revoke_lease() and wait.';
  END IF;
  own := snowflake_fleet.lock_fleet();
  PERFORM snowflake_fleet.require_settled();
  SELECT r.* INTO held FROM snowflake_fleet.region AS r WHERE r.region = confirm_dead.region;
  PERFORM snowflake_fleet.require_row(held, region);
  now_ms := snowflake_fleet.to_ms(clock_timestamp());
  PERFORM snowflake_fleet.require_clock(own, now_ms);
  free_ms := greatest(held.floor_ms, least(held.until_ms, now_ms + ahead_ms::bigint + own.skew_ms));
  IF dry_run IS NOT FALSE THEN
    RETURN format('Region %s would be free at %s: %s.', region, snowflake_fleet.from_ms(free_ms), snowflake_fleet.lease_text(held));
  END IF;
  UPDATE snowflake_fleet.region AS r SET incarnation = 0, state = 'revoked', until_ms = free_ms WHERE r.region = held.region;
  PERFORM snowflake_fleet.sign_rows();
  RAISE LOG 'snowflake_fleet: an operator confirms as stopped: %', snowflake_fleet.lease_text(held);
  RETURN format('Region %s is free at %s: %s.', region, snowflake_fleet.from_ms(free_ms), snowflake_fleet.lease_text(held));
END
$$;
COMMENT ON FUNCTION snowflake_fleet.confirm_dead(integer, interval, boolean, boolean) IS
  'Ends the lease of a region whose holder runs nowhere any more, as after a power loss. The region is free `ahead`, max_lead and '
  'reserve of the server together, and max_skew from now: no id of the holder is further ahead, unless its clock was, or this '
  'database''s is behind. A holder that runs after all may mint what the next one mints';

CREATE FUNCTION snowflake_fleet.require_old_stopped(confirmed boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF confirmed IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the old lease server has not been confirmed as stopped',
      DETAIL = 'While it runs, it continues to grant: two runs of a server get one region, and mint the same ids.',
      HINT = 'Stop it for good, then add "old_is_stopped => true".';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_old_stopped(boolean) IS 'Internal: refuses to continue if two lease servers may grant';

CREATE FUNCTION snowflake_fleet.begin_term(now_ms bigint, salt bigint) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  UPDATE snowflake_fleet.fleet AS f
     SET term = greatest((now_ms << 20) | (salt & 1048575), f.term + 1, f.heard_term + 1),
         began = f.newest, halted = false, halted_by = NULL
$$;
COMMENT ON FUNCTION snowflake_fleet.begin_term(bigint, bigint) IS 'Internal: makes the answers of every other copy of this database old to each server that hears of it';

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
COMMENT ON FUNCTION snowflake_fleet.lose_leases(bigint, bigint, boolean) IS 'Internal: has regions begin above all that may have been granted; `silent`: this copy of the database has granted nothing since '
  'it was put back, so holders whose lease lasts may continue';

CREATE FUNCTION snowflake_fleet.confirm_no_data_loss(old_is_stopped boolean DEFAULT false, dry_run boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own snowflake_fleet.fleet;
  now_ms bigint;
  leases text;
BEGIN
  PERFORM snowflake_fleet.require_old_stopped(old_is_stopped OR dry_run);
  PERFORM snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  now_ms := snowflake_fleet.to_ms(clock_timestamp());
  IF own.halted THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'something was lost',
      DETAIL = format('Server %s has named a grant that this database does not know.', quote_ident(own.halted_by)),
      HINT = 'Run snowflake_fleet.confirm_data_loss(now, old_is_stopped => true).';
  ELSIF NOT (snowflake_fleet.has_moved()).moved THEN
    RETURN 'This database is the one that granted last: nothing to confirm.';
  END IF;
  PERFORM snowflake_fleet.require_clock(own, now_ms);
  leases := coalesce((SELECT 'Leases that continue: ' || string_agg(snowflake_fleet.lease_text(r), ', ' ORDER BY r.region) || '.'
                        FROM snowflake_fleet.region AS r WHERE r.incarnation <> 0), 'There is no lease that continues.');
  IF dry_run IS NOT FALSE THEN
    RETURN leases;
  END IF;
  PERFORM snowflake_fleet.begin_term(now_ms, snowflake_fleet.random_number()), snowflake_fleet.settle_here();
  RAISE LOG 'snowflake_fleet: an operator confirms that nothing was lost';
  RETURN leases;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.confirm_no_data_loss(boolean, boolean) IS
  'After a switch-over, a failover to a synchronous standby, or pg_upgrade, and when the old lease server is stopped for good: leases '
  'continue. If a grant was lost after all, two runs of one server may mint the same ids: in doubt, confirm_data_loss()';

CREATE FUNCTION snowflake_fleet.confirm_data_loss(now timestamptz, old_is_stopped boolean DEFAULT false,
                                                  although_healthy boolean DEFAULT false, dry_run boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own snowflake_fleet.fleet;
  silent boolean;
  now_ms bigint;
  free_ms bigint;
  effect text;
BEGIN
  PERFORM snowflake_fleet.require_old_stopped(old_is_stopped OR dry_run);
  PERFORM snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  IF (now BETWEEN clock_timestamp() - interval '15 minutes' AND clock_timestamp() + interval '15 minutes') IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the lease server''s clock does not agree',
      DETAIL = format('It shows %s, the time given is %s; 15 minutes may be between.', clock_timestamp(), coalesce(now::text, 'null')),
      HINT = 'Correct the one that is wrong.';
  END IF;
  -- A copy that does not know what it is may have granted something before a server showed it.
  silent := (snowflake_fleet.has_moved()).moved;
  IF NOT silent AND NOT own.halted AND although_healthy IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'nothing shows that this database was put back',
      DETAIL = 'It is where it was, and no server knows of newer grants. Every server would lose its lease.',
      HINT = 'If its files were put back by the snapshot of a disk, add "although_healthy => true".';
  END IF;
  now_ms := snowflake_fleet.to_ms(greatest(now, clock_timestamp()));
  PERFORM snowflake_fleet.require_clock(own, now_ms);
  free_ms := now_ms + own.longest_ms + own.skew_ms;
  effect := format('%s Regions that no server claims are free at %s; a server that restarts without a clean stop, or is new, waits until then.',
    CASE WHEN silent THEN format('Servers keep leases that end after %s.', snowflake_fleet.from_ms(now_ms + 2 * own.skew_ms))
         ELSE 'All leases end, and are not renewed.' END, snowflake_fleet.from_ms(free_ms));
  IF dry_run IS NOT FALSE THEN
    RETURN effect;
  END IF;
  PERFORM snowflake_fleet.lose_leases(now_ms, snowflake_fleet.random_number(), silent), snowflake_fleet.settle_here();
  RAISE LOG 'snowflake_fleet: an operator confirms that grants were lost: %', effect;
  RETURN effect;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.confirm_data_loss(timestamptz, boolean, boolean, boolean) IS
  'After this database was put back to an earlier time, or failed over to a standby that may lack something, and when the old one is '
  'stopped for good. `now` is the time by a clock that the operator trusts. Servers keep the leases that they have, unless this '
  'database may have granted something before that was noticed: then all end. Returns when unclaimed regions are free';

-- A fleet that is made anew knows no lease of this one.
CREATE FUNCTION snowflake_fleet.guard_leases() RETURNS event_trigger
  LANGUAGE plpgsql PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  held snowflake_fleet.region;
BEGIN
  IF strpos(lower(current_query()), 'snowflake_fleet') = 0 THEN
    RETURN;
  END IF;
  SELECT r.* INTO held FROM snowflake_fleet.region AS r WHERE r.until_ms > snowflake_fleet.to_ms(clock_timestamp())
   ORDER BY r.until_ms DESC LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = 'the fleet has leases that have not ended',
      DETAIL = format('The last is that of %s. A new fleet would not know of it.', snowflake_fleet.lease_text(held)),
      HINT = 'Stop all servers, and run the command when the leases have ended. Restore a dump into a new database.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.guard_leases() IS 'Internal: event trigger that keeps the fleet from being dropped while a lease lasts';

DO $$
BEGIN
  IF (SELECT r.rolsuper FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) current_user) THEN
    CREATE EVENT TRIGGER snowflake_fleet_guard_leases ON ddl_command_start WHEN TAG IN ('DROP EXTENSION', 'DROP SCHEMA') EXECUTE FUNCTION snowflake_fleet.guard_leases();
    COMMENT ON EVENT TRIGGER snowflake_fleet_guard_leases IS 'Keeps the fleet from being dropped while a lease lasts';
  END IF;
END
$$;
