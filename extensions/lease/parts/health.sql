-- Whether this database grants leases, and if not, why, and what to do. It looks and waits for nothing: it takes no
-- lock, and works on a standby.

CREATE FUNCTION snowflake_fleet.way_out() RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT 'Make sure that the old control database is stopped for good. Then run snowflake_fleet.nothing_lost(old_is_stopped => true) '
         'after a switch-over, pg_upgrade or the promotion of a synchronous standby: leases go on. '
         'Otherwise, and in doubt, snowflake_fleet.recovered(''the time from a clock that you trust'', old_is_stopped => true): servers go on with the leases that they '
         'have, and no region is free before the longest that may be lost has ended.'
$$;
COMMENT ON FUNCTION snowflake_fleet.way_out() IS
  'Internal: what an operator is told whose control database was promoted, restored or copied: the harmless call first, the other with its price';

-- Somebody waits: for the synchronous standby, or for a transaction that holds the lock on the fleet.
CREATE FUNCTION snowflake_fleet.waiting(OUT reason text, OUT advice text, OUT since timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  waiter record;
  blocker record;
BEGIN
  SELECT a.pid, a.wait_event, a.query_start INTO waiter FROM pg_stat_activity AS a JOIN snowflake_fleet.server AS s ON s.name = a.usename
   WHERE a.datname = current_database() AND a.query_start < clock_timestamp() - interval '2 seconds'
     AND (a.wait_event = 'SyncRep' OR a.wait_event_type = 'Lock')
   ORDER BY a.wait_event <> 'SyncRep', a.query_start LIMIT 1;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  since := waiter.query_start;
  IF waiter.wait_event = 'SyncRep' THEN
    reason := 'grants wait for the synchronous standby';
    advice := 'Bring the standby back, or take it out of "synchronous_standby_names": then a failover to it may lose grants.';
    RETURN;
  END IF;
  SELECT b.pid, b.usename INTO blocker FROM unnest(pg_blocking_pids(waiter.pid)) AS p JOIN pg_stat_activity AS b ON b.pid = p LIMIT 1;
  reason := format('grants wait for a transaction of %s', coalesce(quote_ident(blocker.usename), 'somebody'));
  advice := format('Run pg_terminate_backend(%s).', coalesce(blocker.pid::text, 'pid'))
            || CASE WHEN EXISTS (SELECT FROM snowflake_fleet.server AS s WHERE s.name = blocker.usename)
                    THEN ' If it comes again, snowflake_fleet.retire() takes that role out.' ELSE '' END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.waiting() IS
  'Internal: what servers that ask have been waiting for in this database for more than two seconds, and since when; null: for nothing';

CREATE FUNCTION snowflake_fleet.health(OUT granting boolean, OUT reason text, OUT advice text, OUT since timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  place record;
  refused record;
BEGIN
  granting := false;
  SELECT f.* INTO own FROM snowflake_fleet.fleet AS f;
  IF own.id IS NULL THEN
    reason := 'there is no fleet yet';
    advice := 'Run snowflake_fleet.enroll() for each server.';
    RETURN;
  ELSIF pg_is_in_recovery() THEN
    reason := 'a standby';
    advice := 'Ask its primary server; if that is gone for good, promote this one.';
    RETURN;
  ELSIF current_setting('fsync') = 'off' OR current_setting('synchronous_commit') = 'off' THEN
    reason := 'it could forget what it grants';
    advice := 'Turn "fsync" and "synchronous_commit" on.';
    RETURN;
  ELSIF current_setting('default_transaction_read_only') = 'on' THEN
    reason := 'it is read-only';
    advice := 'Turn "default_transaction_read_only" off.';
    RETURN;
  END IF;
  -- Nobody is told of a promotion: what is known is when the first server was refused for it.
  SELECT min(f.since) INTO since FROM snowflake_fleet.refusal AS f WHERE f.cause = 'halted';
  SELECT * INTO place FROM snowflake_fleet.has_moved();
  IF own.halted THEN
    reason := 'a server knows of grants that are not here: something was lost';
    advice := 'Make sure that every other copy of this database is stopped for good, then run '
              'snowflake_fleet.recovered(''the time from a clock that you trust'', old_is_stopped => true).';
    RETURN;
  ELSIF place.moved THEN
    reason := 'it was promoted, restored or copied';
    advice := snowflake_fleet.way_out();
    RETURN;
  END IF;
  SELECT w.reason, w.advice, w.since INTO reason, advice, since FROM snowflake_fleet.waiting() AS w;
  IF reason IS NOT NULL THEN
    RETURN;
  END IF;
  granting := true;
  SELECT f.* INTO refused FROM snowflake_fleet.refusal AS f
   WHERE f.since IS NOT NULL AND f.cause IN ('full', 'clock_ahead')
     AND f.last > clock_timestamp() - interval '1 minute'  -- who is refused asks again in 10 s, or asks no more
   ORDER BY f.since LIMIT 1;
  IF FOUND THEN
    reason := CASE refused.cause WHEN 'full' THEN format('no region is free for server %s', quote_ident(refused.server))
                                 ELSE format('the clock of server %s is ahead', quote_ident(refused.server)) END;
    advice := CASE refused.cause
      WHEN 'full' THEN 'See who holds them in snowflake_fleet.regions: wait for the end of a lease, or evict a server that is gone.'
      ELSE 'Check the time synchronization of that server and of this one.' END;
    since := refused.since;
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.health() IS 'Behind the view snowflake_fleet.health';

CREATE VIEW snowflake_fleet.health AS SELECT * FROM snowflake_fleet.health();
COMMENT ON VIEW snowflake_fleet.health IS
  'Whether this database grants leases; if not, why, what to do, and since when that is known (the first server that was '
  'refused for it). With granting true, a reason is of one server: no region is free for it, or its clock is ahead';

REVOKE ALL ON FUNCTION snowflake_fleet.way_out(), snowflake_fleet.waiting(), snowflake_fleet.health() FROM PUBLIC;
