-- The operator's calls after this database was promoted, restored or copied; and for holders that are dead.

CREATE FUNCTION snowflake_fleet.require_old_stopped(said boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF said IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'nobody has said that the old control database is stopped',
      DETAIL = 'While it runs, it goes on granting: two servers are given one region, and mint the same ids.',
      HINT = 'Stop it for good, then add "old_is_stopped => true".';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_old_stopped(boolean) IS 'Internal: refuses to go on where two control databases may grant';

CREATE FUNCTION snowflake_fleet.settle_here() RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  UPDATE snowflake_fleet.fleet AS f
     SET system_identifier = w.system_identifier, timeline = w.timeline, database = w.database,
         fleet_table = w.fleet_table, directory = w.directory
    FROM snowflake_fleet.whereabouts() AS w
$$;
COMMENT ON FUNCTION snowflake_fleet.settle_here() IS 'Internal: from now on this database is where the fleet is';

CREATE FUNCTION snowflake_fleet.recovered(now timestamptz, old_is_stopped boolean DEFAULT false,
                                          although_healthy boolean DEFAULT false) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  moved boolean;
  resumes timestamptz;
BEGIN
  IF now IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'now must not be null',
      HINT = 'Give the time from a clock that you trust, with its time zone.';
  END IF;
  PERFORM snowflake_fleet.require_old_stopped(old_is_stopped);
  PERFORM snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  IF NOT isfinite(now) OR now NOT BETWEEN clock_timestamp() - interval '15 minutes' AND clock_timestamp() + interval '15 minutes' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'the control database''s clock does not agree',
      DETAIL = format('It shows %s, you say %s; 15 minutes may be between.', clock_timestamp(), now),
      HINT = 'Correct the one that is wrong.';
  END IF;
  moved := (snowflake_fleet.has_moved()).moved;
  IF NOT moved AND NOT own.halted AND although_healthy IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'nothing shows that this database was recovered',
      DETAIL = 'It is where it was, and no server has heard more than it knows. Every server would lose its lease.',
      HINT = 'If its files were put back by the snapshot of a disk, add "although_healthy => true".';
  END IF;
  -- A copy that does not know what it is may have granted something before a server showed it.
  PERFORM snowflake_fleet.recover_fleet(snowflake_fleet.to_ms(greatest(now, clock_timestamp())), snowflake_fleet.random_number(), moved);
  PERFORM snowflake_fleet.settle_here();
  SELECT snowflake_fleet.from_ms(coalesce(min(r.until_ms), f.fresh_ms)) INTO resumes
    FROM snowflake_fleet.fleet AS f LEFT JOIN snowflake_fleet.region AS r ON true GROUP BY f.fresh_ms;
  RAISE LOG 'snowflake_fleet: recovered; ids of new leases begin at %; %', resumes,
    CASE WHEN moved THEN 'servers go on with the leases that they have' ELSE 'leases have ended' END;
  RETURN resumes;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.recovered(timestamptz, boolean, boolean) IS
  'After this database was recovered to an earlier time, or failed over to a standby that may lack something, and when the old '
  'one is stopped for good. `now` is the time by a clock that the operator trusts, to within 15 minutes. Servers go on with the '
  'leases that they have, unless this database may have granted something before it was known to be older: then all have ended. '
  'Returns when ids of new leases begin. 22023 where the old one was not said to be stopped, 55000 where nothing shows a recovery';

CREATE FUNCTION snowflake_fleet.nothing_lost(old_is_stopped boolean DEFAULT false) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
BEGIN
  PERFORM snowflake_fleet.require_old_stopped(old_is_stopped);
  PERFORM snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  IF own.halted THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'something was lost',
      DETAIL = 'A server has named a grant that this database does not know.',
      HINT = 'Run snowflake_fleet.recovered(now, old_is_stopped => true).';
  END IF;
  IF NOT (snowflake_fleet.has_moved()).moved THEN
    RETURN;
  END IF;
  PERFORM snowflake_fleet.begin_term(snowflake_fleet.to_ms(clock_timestamp()), snowflake_fleet.random_number());
  PERFORM snowflake_fleet.settle_here();
  RAISE LOG 'snowflake_fleet: an operator says that nothing was lost; leases go on';
END
$$;
COMMENT ON FUNCTION snowflake_fleet.nothing_lost(boolean) IS
  'After a switch-over, a failover to a standby that was synchronous, or pg_upgrade, and when the old control database is '
  'stopped for good: leases go on. Where a grant was lost after all, two servers may mint the same ids: in doubt, recovered(). '
  'Does nothing where this database is where it was. 22023 where the old one was not said to be stopped';

CREATE FUNCTION snowflake_fleet.dead(region integer, holder_is_stopped boolean DEFAULT false, ahead interval DEFAULT NULL)
  RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  held snowflake_fleet.region;
  now_ms bigint;
  ahead_ms CONSTANT numeric := floor(extract(epoch FROM ahead) * 1000);
BEGIN
  IF holder_is_stopped IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'nobody has said that the holder is stopped',
      DETAIL = 'A holder that still runs, as one that is cut off or frozen may, mints on to the end of its lease: the next one would mint the same ids.',
      HINT = 'Make sure that it runs nowhere, then add "holder_is_stopped => true"; or run snowflake_fleet.evict() and wait.';
  END IF;
  own := snowflake_fleet.lock_fleet();
  SELECT r.* INTO held FROM snowflake_fleet.region AS r WHERE r.region = dead.region;
  IF NOT FOUND OR snowflake_fleet.is_static(held.region) THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('region %s is not one that is leased', coalesce(region::text, 'null')),
      HINT = 'The view snowflake_fleet.regions has them all.';
  END IF;
  IF own.halted OR (snowflake_fleet.has_moved()).moved THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database may not know who had the region last',
      DETAIL = 'It was recovered, promoted or copied, and no operator has said what was lost.',
      HINT = 'Look at the view snowflake_fleet.health.';
  END IF;
  IF ahead_ms NOT BETWEEN 0 AND 604800000 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = '"ahead" is out of range',
      DETAIL = format('It is %s; servers issue ids from 0 to 7 days ahead of their clocks.', ahead),
      HINT = 'Say "snowflake.max_lead" and "snowflake.reserve" together.';
  END IF;
  now_ms := snowflake_fleet.to_ms(clock_timestamp());
  IF ahead IS NULL AND held.grant_number <= own.lost_number AND
     held.until_ms > greatest(held.floor_ms, now_ms + own.ahead_ms + own.skew_ms) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('how far the holder of region %s may have been ahead of its clock is not known', held.region),
      DETAIL = format('The region has not been granted since this database was recovered, which may have lost what the holder said. It is free at %s.',
                      snowflake_fleet.from_ms(held.until_ms)),
      HINT = 'Add "snowflake.max_lead" and "snowflake.reserve" together, the greatest of all servers that can have had the region: "ahead => ''2 s''" for the defaults.';
  END IF;
  PERFORM snowflake_fleet.end_dead(held.region, now_ms, coalesce(ahead_ms, 0)::bigint);
  RAISE LOG 'snowflake_fleet: an operator says that server % (incarnation %), in region %, is stopped',
    coalesce(quote_ident(held.server), 'none'), held.incarnation, held.region;
  RETURN (SELECT snowflake_fleet.from_ms(r.until_ms) FROM snowflake_fleet.region AS r WHERE r.region = held.region);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.dead(integer, boolean, interval) IS
  'Ends the lease of a region whose holder runs nowhere any more: after a power loss of everything, or after recovered() for '
  'regions that nobody had. Returns when the region is free: max_lead, reserve and max_skew from now, for no id of the holder is further '
  'ahead, unless its clock was, by more than max_skew. A holder that runs after all may mint what the next one mints. '
  '`ahead`, max_lead and reserve together, the greatest of all servers that can have had the region, is to be said where a recovery may have lost it: 55000 otherwise. '
  '22023 where the holder was not said to be stopped, 42704 where the region is not leased';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_fleet FROM PUBLIC;
