-- Views that show the refused requests for leases, the leases, and the health of the lease server. The view "health"
-- does not call lock_fleet(), so the view also works on a standby.

CREATE TABLE snowflake_fleet.refusal (
  server text NOT NULL,
  cause text NOT NULL,
  since timestamptz,            -- the first refusal since the last lease was granted, or null
  last timestamptz NOT NULL,
  logged timestamptz,           -- when a refusal of this server and cause was last logged
  PRIMARY KEY (server, cause)
);
COMMENT ON TABLE snowflake_fleet.refusal IS
  'The requests of servers that the lease server refused, by server and cause. The cause of a refused request for a '
  'lease is "full", "halted", "clock_ahead", "taken" or "lost". The cause "conflict" means that another server mints '
  'in the same region';

CREATE FUNCTION snowflake_fleet.record_refusal(asks text, why text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now CONSTANT timestamptz := clock_timestamp();
  due boolean;
BEGIN
  INSERT INTO snowflake_fleet.refusal AS f (server, cause, since, last)
  VALUES (asks, why, now, now)
  ON CONFLICT (server, cause) DO UPDATE SET since = coalesce(f.since, now), last = now;
  -- If the clock was set back after the last logged refusal, the next refusal is logged at once.
  UPDATE snowflake_fleet.refusal AS f SET logged = now
   WHERE f.server = asks AND f.cause = why
     AND (f.logged IS NULL OR f.logged NOT BETWEEN now - interval '1 minute' AND now)
  RETURNING true INTO due;
  RETURN due IS TRUE;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.record_refusal(text, text) IS
  'Internal: records that the lease server refused a request. Returns whether the lease server must log the refusal';

CREATE FUNCTION snowflake_fleet.record_answer(request snowflake_fleet.request, answer snowflake_fleet.answer)
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  log boolean := request.call <> 'renew' OR answer.grant_number = answer.number;   -- continues after a recovery
  region CONSTANT integer := greatest(answer.region, request.region);
BEGIN
  IF answer.status = 'granted' THEN
    UPDATE snowflake_fleet.refusal AS f SET since = NULL WHERE f.server = request.server AND f.since IS NOT NULL;
    IF answer.detail IS NOT NULL THEN
      log := snowflake_fleet.record_refusal(request.server, 'conflict');
    END IF;
  ELSIF answer.status NOT IN ('given_back', 'term_over') THEN
    log := snowflake_fleet.record_refusal(request.server, answer.status);
  END IF;
  IF log THEN
    RAISE LOG 'snowflake_fleet: % of server % (incarnation %, address %): %', request.call, quote_ident(request.server),
      request.incarnation, coalesce(host(inet_client_addr()), 'local'),
      answer.status || CASE WHEN region >= 0 THEN format(', region %s', region) ELSE '' END
                    || CASE WHEN answer.status = 'granted'
                            THEN format(', until %s', snowflake_fleet.from_ms(answer.until_ms)) ELSE '' END
                    || coalesce('. ' || answer.detail, '');
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.record_answer(snowflake_fleet.request, snowflake_fleet.answer) IS
  'Internal: logs each new lease, and at most one refusal a minute for each server and cause';

CREATE VIEW snowflake_fleet.regions AS
  SELECT r.region, r.server, r.state,
         CASE WHEN r.until_ms OPERATOR(pg_catalog.>) 0 THEN snowflake_fleet.from_ms(r.until_ms) END AS until,
         CASE WHEN r.state OPERATOR(pg_catalog.=) 'held' THEN r.since END AS since, r.last_request,
         CASE WHEN r.state OPERATOR(pg_catalog.=) 'held'
              THEN pg_catalog.make_interval(secs =>
                     r.clock_offset_ms::double precision OPERATOR(pg_catalog./) 1000) END AS clock_offset,
         snowflake_fleet.free_from(r.*) OPERATOR(pg_catalog.<=)
           snowflake_fleet.to_ms(pg_catalog.clock_timestamp()) AS free,
         NULLIF(r.incarnation, 0) AS incarnation,
         CASE WHEN r.state OPERATOR(pg_catalog.=) 'held' THEN r.client_addr END AS client_addr
    FROM snowflake_fleet.region AS r
  UNION ALL
  SELECT s.region, s.server, 'static', NULL, s.since, s.last_request, NULL, false, s.incarnation, s.client_addr
    FROM snowflake_fleet.static_region AS s
   WHERE s.last_request
     OPERATOR(pg_catalog.>) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) interval '1 minute');
COMMENT ON VIEW snowflake_fleet.regions IS
  'Shows the regions that servers have requested: the server, the state, and the end and the beginning of the lease. '
  'Other columns describe the server that holds the lease: its last request, how far its clock was ahead at that '
  'time, and its network address. The column "incarnation" identifies the run of the server, like the same column of '
  'the view snowflake.lease on that server. The column free shows whether the region is free now. If the state of a '
  'region is static, a server has reported the region within the last minute';

CREATE VIEW snowflake_fleet.servers AS
  SELECT s.name AS server, s.added, s.removed,
         GREATEST(s.last_request, (SELECT pg_catalog.max(t.last_request) FROM snowflake_fleet.static_region AS t
                             WHERE t.server OPERATOR(pg_catalog.=) s.name)) AS last_request,
         ARRAY(SELECT r.region FROM snowflake_fleet.region AS r
                WHERE r.server OPERATOR(pg_catalog.=) s.name ORDER BY r.region) AS regions,
         ARRAY(SELECT r.region FROM snowflake_fleet.regions AS r
                WHERE r.server OPERATOR(pg_catalog.=) s.name
                  AND r.state OPERATOR(pg_catalog.=) ANY (ARRAY['held', 'static'])
                ORDER BY r.region) AS in_use,
         f.refused, f.refused_since
    FROM snowflake_fleet.server AS s
    LEFT JOIN LATERAL (
      SELECT x.cause AS refused, x.since AS refused_since FROM snowflake_fleet.refusal AS x
       WHERE x.server OPERATOR(pg_catalog.=) s.name AND x.since IS NOT NULL
       ORDER BY x.last DESC LIMIT 1) AS f ON true;
COMMENT ON VIEW snowflake_fleet.servers IS
  'Shows the servers of the fleet: when each server was added and removed, and its last request. Other columns show '
  'the regions of the server, and the regions in which the server or its clone mints. If this database refuses '
  'requests of a server, the column "refused" shows the cause, and "refused_since" shows when the refusals began';

CREATE FUNCTION snowflake_fleet.why_not_usable(OUT reason text, OUT advice text)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  reason := CASE
    WHEN NOT EXISTS (SELECT FROM snowflake_fleet.fleet) THEN 'the fleet does not exist yet'
    WHEN pg_is_in_recovery() THEN 'this lease server is a standby'
    -- Settings of the present role or session are ignored, because the servers connect with other roles and sessions.
    WHEN EXISTS (SELECT FROM pg_settings AS g WHERE g.name IN ('fsync', 'synchronous_commit') AND g.setting = 'off'
                    AND g.source NOT IN ('user', 'database user', 'client', 'session'))
      THEN 'a crash could lose granted leases' END;
  advice := CASE reason
    WHEN 'the fleet does not exist yet' THEN 'Run snowflake_fleet.add_server() for each server.'
    WHEN 'this lease server is a '
         'standby' THEN 'Connect to the primary server. If the primary server is permanently lost, promote this '
                        'standby.'
    WHEN 'a crash could lose granted leases' THEN 'Set "fsync" and "synchronous_commit" to on.' END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.why_not_usable() IS
  'Internal: for the view health: returns the reason why this database cannot grant leases, or null if it can';

CREATE FUNCTION snowflake_fleet.why_halted(own snowflake_fleet.fleet, OUT reason text, OUT advice text,
                                           OUT since timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  place record;
BEGIN
  -- The first refusal with cause "halted" shows since when the lease server grants no leases.
  SELECT min(f.since) INTO since FROM snowflake_fleet.refusal AS f WHERE f.cause = 'halted';
  SELECT * INTO place FROM snowflake_fleet.has_moved();
  IF own.halted THEN
    reason := format('leases were lost: server %s has a newer lease than this database', quote_ident(own.halted_by));
    advice := format('Stop every other copy of this database permanently. Then run '
                     'snowflake_fleet.confirm_data_loss(''the time by your watch'', old_is_stopped => true). If that '
                     'server reports a false lease, run instead snowflake_fleet.remove_server(%L) and '
                     'snowflake_fleet.confirm_no_data_loss(old_is_stopped => true).', own.halted_by);
  ELSIF place.moved THEN
    reason := 'leases may be lost. ' || place.detail;
    advice := 'Stop the old lease server permanently. After a switch-over, pg_upgrade or the promotion of a '
              'synchronous standby, or if these are the same files, run '
              'snowflake_fleet.confirm_no_data_loss(old_is_stopped => true). Otherwise, and in doubt, run '
              'snowflake_fleet.confirm_data_loss(''the time by your watch'', old_is_stopped => true). With dry_run => '
              'true, both functions only show what they would do.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.why_halted(snowflake_fleet.fleet) IS
  'Internal: for the view health: returns the reason why leases may be lost and an operator must confirm the loss, or '
  'null if no lease is lost';

CREATE FUNCTION snowflake_fleet.why_waiting(OUT reason text, OUT advice text, OUT since timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Finds a session that requests a lease and waits for the synchronous standby, or for a lock of another transaction.
  SELECT CASE WHEN a.wait_event = 'SyncRep' THEN 'requests for leases wait for the synchronous standby'
              ELSE format('requests for leases wait for a transaction of role %s',
                          coalesce(quote_ident(b.usename), '?')) END,
         CASE WHEN a.wait_event = 'SyncRep'
              THEN 'Start the standby. Or remove the standby from "synchronous_standby_names": a failover to this '
                   'standby may then lose leases.'
              ELSE format('Run pg_terminate_backend(%s).', coalesce(b.pid::text, 'pid')) END, a.query_start
    INTO reason, advice, since
    FROM pg_stat_activity AS a JOIN snowflake_fleet.server AS s ON s.name = a.usename
    LEFT JOIN pg_stat_activity AS b ON a.wait_event <> 'SyncRep' AND b.pid = (pg_blocking_pids(a.pid))[1]
   WHERE a.datname = current_database() AND a.query_start < clock_timestamp() - interval '2 seconds'
     AND (a.wait_event = 'SyncRep' OR a.wait_event_type = 'Lock')
   ORDER BY a.wait_event <> 'SyncRep', a.query_start LIMIT 1;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.why_waiting() IS
  'Internal: for the view health: returns the reason why requests for leases wait in this database, or null if no '
  'request waits';

CREATE FUNCTION snowflake_fleet.who_is_refused(OUT reason text, OUT advice text, OUT since timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  refused record;
BEGIN
  SELECT f.* INTO refused FROM snowflake_fleet.refusal AS f
   WHERE f.since IS NOT NULL AND f.cause IN ('full', 'clock_ahead', 'taken', 'conflict')
     AND f.last > clock_timestamp() - interval '1 minute'
   ORDER BY f.cause <> 'conflict', f.cause <> 'taken', f.since LIMIT 1;
  IF FOUND THEN
    reason := format(CASE refused.cause WHEN 'full' THEN 'no region of server %s is free'
                                        WHEN 'clock_ahead' THEN 'the clock of server %s is ahead of the lease '
                                                                'server''s clock'
                                        WHEN 'taken' THEN 'server %s requests a region of another server'
                                        ELSE 'server %s mints in the region of another server' END,
                     quote_ident(refused.server));
    advice := CASE refused.cause
      WHEN 'full'
        THEN 'Find the regions of the server in snowflake_fleet.regions. Wait until a lease ends, or run '
             'confirm_dead() for a lease whose holder is permanently stopped.'
      WHEN 'clock_ahead' THEN 'Check the time synchronization of that server and of this one.'
      ELSE 'Find both servers in snowflake_fleet.regions, and set different regions in their configuration.' END;
    since := refused.since;
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.who_is_refused() IS
  'Internal: for the view health: returns a server whose requests are refused, or whose region another server uses, or '
  'null if no server has one of these problems';

CREATE FUNCTION snowflake_fleet.health(OUT granting boolean, OUT reason text, OUT advice text, OUT since timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own snowflake_fleet.fleet;
BEGIN
  granting := false;
  SELECT u.* INTO reason, advice FROM snowflake_fleet.why_not_usable() AS u;
  IF reason IS NULL THEN
    SELECT f.* INTO own FROM snowflake_fleet.fleet AS f;
    SELECT h.* INTO reason, advice, since FROM snowflake_fleet.why_halted(own) AS h;
  END IF;
  IF reason IS NULL THEN
    SELECT w.* INTO reason, advice, since FROM snowflake_fleet.why_waiting() AS w;
  END IF;
  IF reason IS NOT NULL THEN
    RETURN;
  END IF;
  granting := true;
  IF snowflake_fleet.to_ms(clock_timestamp()) + own.skew_ms < own.newest_ms THEN
    reason := 'the clock is behind the newest recorded time';
    advice := 'Check the time synchronization of this machine.';
    RETURN;
  END IF;
  SELECT r.* INTO reason, advice, since FROM snowflake_fleet.who_is_refused() AS r;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.health() IS 'Internal: returns the row of the view snowflake_fleet.health';

CREATE VIEW snowflake_fleet.health AS SELECT * FROM snowflake_fleet.health();
COMMENT ON VIEW snowflake_fleet.health IS
  'Shows whether this database grants leases. If the database grants no leases, shows the reason, the advice, and '
  'the time when the problem was first detected. If "granting" is true and "reason" is not null, the problem '
  'concerns only one server. Either another server mints in the same region, or no region of the server is free, or '
  'the server requests a region of another server, or the server''s clock is ahead';
