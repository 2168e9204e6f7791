-- For each request for a lease, decide() computes which rows of the lease server change. The reference model of
-- decide() is test/core/lease_server.hpp, which explains the rules.

-- A lease ends when both the server's clock and the lease server's clock have reached the end time.
CREATE FUNCTION snowflake_fleet.earlier_clock(request snowflake_fleet.request, now_ms bigint) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT least(request.clock_ms, now_ms)
$$;
COMMENT ON FUNCTION snowflake_fleet.earlier_clock(snowflake_fleet.request, bigint) IS
  'Internal: compares the clock of the server that sent the request with the clock of this database, and returns the '
  'earlier time';

CREATE FUNCTION snowflake_fleet.halt_if_behind(request snowflake_fleet.request) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fleet snowflake_fleet.fleet;
BEGIN
  SELECT f.* INTO STRICT fleet FROM snowflake_fleet.fleet AS f;
  IF request.term <= fleet.term AND
     (request.term = 0 OR request.term < fleet.lasting OR
      request.newest <= CASE WHEN request.term = fleet.term THEN fleet.newest ELSE fleet.began END) THEN
    RETURN;
  END IF;
  UPDATE snowflake_fleet.fleet AS f
     SET reported_term = greatest(f.reported_term, request.term), halted = true,
         halted_by = coalesce(f.halted_by, request.server);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.halt_if_behind(snowflake_fleet.request) IS
  'Internal: stops granting leases if a server has received an answer that this database does not contain. In this '
  'case the database lacks leases that it has granted';

CREATE FUNCTION snowflake_fleet.bind_regions(request snowflake_fleet.request, now_ms bigint) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked CONSTANT integer[] := CASE request.call WHEN 'renew' THEN ARRAY[request.region] ELSE request.regions END;
  other record;
BEGIN
  -- To let two servers exchange their regions, bind_regions() first takes from the server its free regions that are not
  -- in the request.
  IF request.call = 'acquire' THEN
    UPDATE snowflake_fleet.region AS r SET server = NULL
     WHERE r.server = request.server AND r.region <> ALL (asked) AND r.incarnation = 0
       AND snowflake_fleet.free_from(r) <= snowflake_fleet.earlier_clock(request, now_ms);
  END IF;
  SELECT r.region, r.server INTO other FROM snowflake_fleet.region AS r
   WHERE r.region = ANY (asked) AND r.server <> request.server ORDER BY r.region LIMIT 1;
  IF FOUND THEN
    RETURN format('Region %s belongs to server %s.', other.region, quote_ident(other.server));
  END IF;
  SELECT s.region, s.server INTO other FROM snowflake_fleet.static_region AS s
   WHERE s.region = ANY (asked) AND s.incarnation <> request.incarnation
     AND s.last_request > clock_timestamp() - interval '1 minute'
     AND request.call = 'acquire' ORDER BY s.region LIMIT 1;
  IF FOUND THEN
    RETURN format('Region %s was the static region of server %s less than a minute ago.', other.region,
                  quote_ident(other.server));
  END IF;
  INSERT INTO snowflake_fleet.region AS r (region, server, state, until_ms)
  SELECT DISTINCT n, request.server, CASE f.fresh_ms WHEN 0 THEN 'given_back' ELSE 'lost' END, f.fresh_ms
    FROM unnest(asked) AS n, snowflake_fleet.fleet AS f
  ON CONFLICT (region) DO UPDATE SET server = request.server WHERE r.server IS NULL;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.bind_regions(snowflake_fleet.request, bigint) IS
  'Internal: assigns the requested regions to a server. If the request is acquire, other regions of the server that '
  'are free no longer belong to the server. If a requested region belongs to another server, returns the reason and '
  'gives no region';

CREATE FUNCTION snowflake_fleet.holds_region(request snowflake_fleet.request) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM snowflake_fleet.region AS r
                  WHERE r.region = request.region AND r.incarnation = request.incarnation AND r.server = request.server)
$$;
COMMENT ON FUNCTION snowflake_fleet.holds_region(snowflake_fleet.request) IS
  'Internal: returns whether the server run (incarnation) that sent the request holds the lease of the region';

CREATE FUNCTION snowflake_fleet.may_adopt(fleet snowflake_fleet.fleet, request snowflake_fleet.request) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  held snowflake_fleet.region;
BEGIN
  IF request.call = 'renew' AND request.term <> 0 AND fleet.adopt_ms <> 0 AND request.until_ms > fleet.adopt_ms THEN
    SELECT r.* INTO held FROM snowflake_fleet.region AS r WHERE r.region = request.region;
    -- A restored lease server may lack the row of a leased region in the table "region". The server may renew a lease
    -- without a row only after confirm_data_loss(), which sets fresh_ms to a time other than 0.
    IF NOT FOUND THEN
      RETURN fleet.fresh_ms <> 0;
    END IF;
    RETURN held.state = 'lost' AND coalesce(held.server, request.server) = request.server;
  END IF;
  RETURN false;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.may_adopt(snowflake_fleet.fleet, snowflake_fleet.request) IS
  'Internal: returns whether a server may continue a lease that this database lost in a recovery';

CREATE FUNCTION snowflake_fleet.held_region(request snowflake_fleet.request, adoptable boolean)
  RETURNS snowflake_fleet.region
  LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
  SELECT r FROM snowflake_fleet.region AS r
   WHERE CASE WHEN adoptable THEN r.region = request.region
              ELSE r.incarnation = request.incarnation AND r.server = request.server
                   AND CASE request.call WHEN 'acquire' THEN r.region = ANY (request.regions)
                                         ELSE r.region = request.region END END
   ORDER BY r.region LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_fleet.held_region(snowflake_fleet.request, boolean) IS
  'Internal: returns the region whose lease the requesting server holds, or may continue after a recovery of this '
  'database. Returns null if the server has no lease to continue';

CREATE FUNCTION snowflake_fleet.free_region(request snowflake_fleet.request, earlier bigint)
  RETURNS snowflake_fleet.region
  LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
  SELECT r FROM snowflake_fleet.region AS r
   WHERE r.region = ANY (request.regions) AND snowflake_fleet.free_from(r) <= earlier
   ORDER BY r.state = 'given_back' AND r.until_ms <= earlier DESC,
            CASE WHEN r.state = 'given_back' AND r.until_ms <= earlier THEN -r.grant_number ELSE r.until_ms END,
            r.region LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_fleet.free_region(snowflake_fleet.request, bigint) IS
  'Internal: returns the region to lease next: the requested free region that was given back last. Returns null if no '
  'requested region is free';

CREATE FUNCTION snowflake_fleet.give_back_region(request snowflake_fleet.request, held snowflake_fleet.region,
                                                 answer snowflake_fleet.answer) RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF held.region IS NULL OR held.grant_number <> request.grant_number OR request.grant_number > request.newest THEN
    RETURN answer;
  END IF;
  held.floor_ms := greatest(held.floor_ms, least(request.highest_ms, held.until_ms));
  UPDATE snowflake_fleet.region AS r
     SET floor_ms = held.floor_ms, until_ms = held.floor_ms, incarnation = 0, state = 'given_back'
   WHERE r.region = held.region;
  answer.status := 'given_back';
  answer.detail := NULL;
  RETURN answer;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.give_back_region(snowflake_fleet.request, snowflake_fleet.region,
                                                     snowflake_fleet.answer) IS
  'Internal: ends a lease that the server gives back. The lease ends at the earlier of highest_ms and its old end, '
  'but not before floor_ms. No id of the server has the time highest_ms or a later time';

CREATE FUNCTION snowflake_fleet.grant_region(request snowflake_fleet.request, held snowflake_fleet.region,
                                             answer snowflake_fleet.answer) RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  earlier CONSTANT bigint := snowflake_fleet.earlier_clock(request, answer.clock_ms);
  longest_ms CONSTANT bigint := (SELECT f.longest_ms FROM snowflake_fleet.fleet AS f);
BEGIN
  -- A lease lasts as long as the requesting server has already run, but at least a minute. A lease is never longer than
  -- the server requests (length_ms), and never longer than longest_ms.
  answer.until_ms := greatest(held.floor_ms,
                              earlier + least(greatest(request.age_ms, 60000),
                                              greatest(0, least(request.length_ms, longest_ms))));
  UPDATE snowflake_fleet.region AS r
     SET floor_ms = held.floor_ms, until_ms = greatest(held.until_ms, answer.until_ms),
         incarnation = request.incarnation, state = 'held', grant_number = held.grant_number, nonce = request.nonce,
         since = held.since
   WHERE r.region = held.region;
  answer.status := 'granted';
  answer.region := held.region;
  answer.grant_number := held.grant_number;
  answer.floor_ms := held.floor_ms;
  answer.detail := NULL;
  RETURN answer;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.grant_region(snowflake_fleet.request, snowflake_fleet.region,
                                                 snowflake_fleet.answer) IS
  'Internal: leases a region to the requesting server, or extends the server''s lease of the region';

CREATE FUNCTION snowflake_fleet.acquire_region(request snowflake_fleet.request, held snowflake_fleet.region,
                                               answer snowflake_fleet.answer) RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF held.region IS NULL THEN
    held := snowflake_fleet.free_region(request, snowflake_fleet.earlier_clock(request, answer.clock_ms));
    IF held.region IS NULL THEN
      SELECT min(snowflake_fleet.free_from(r)),
             format('Regions of the server: %s.',
                    string_agg(snowflake_fleet.lease_text(r), ', ' ORDER BY r.until_ms, r.region))
        INTO answer.until_ms, answer.detail FROM snowflake_fleet.region AS r WHERE r.region = ANY (request.regions);
      answer.status := 'full';
      RETURN answer;
    END IF;
    held.floor_ms := greatest(held.floor_ms, held.until_ms);
    held.until_ms := held.floor_ms;
    held.since := snowflake_fleet.from_ms(answer.clock_ms);
  END IF;
  held.grant_number := answer.number;
  RETURN snowflake_fleet.grant_region(request, held, answer);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.acquire_region(snowflake_fleet.request, snowflake_fleet.region,
                                                   snowflake_fleet.answer) IS
  'Internal: leases the region that the requesting server holds already, or one of its requested regions that is free';

CREATE FUNCTION snowflake_fleet.renew_region(request snowflake_fleet.request, held snowflake_fleet.region,
                                             answer snowflake_fleet.answer, adoptable boolean)
  RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF adoptable THEN
    held.floor_ms := request.floor_ms;
    held.until_ms := greatest(held.until_ms, request.until_ms);
    held.since := snowflake_fleet.from_ms(answer.clock_ms);
    held.grant_number := answer.number;
  ELSIF held.region IS NULL OR (request.acked <> 0 AND held.nonce <> request.acked AND held.nonce <> request.nonce) THEN
    RETURN answer;
  END IF;
  RETURN snowflake_fleet.grant_region(request, held, answer);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.renew_region(snowflake_fleet.request, snowflake_fleet.region,
                                                 snowflake_fleet.answer, boolean) IS
  'Internal: extends a lease, unless a clone of the requesting server has renewed the same lease';

CREATE FUNCTION snowflake_fleet.next_number() RETURNS bigint
  LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
  UPDATE snowflake_fleet.fleet AS f SET newest = f.newest + 1 RETURNING f.newest
$$;
COMMENT ON FUNCTION snowflake_fleet.next_number() IS
  'Internal: returns the number that identifies the next answer to a server. Each call returns a greater number than '
  'the previous call';

CREATE FUNCTION snowflake_fleet.admit(request snowflake_fleet.request, now_ms bigint, OUT status text, OUT detail text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ahead_ms CONSTANT bigint := request.clock_ms - now_ms;
BEGIN
  IF ahead_ms > (SELECT f.skew_ms FROM snowflake_fleet.fleet AS f) THEN
    status := 'clock_ahead';
    detail := format('The server''s clock is %s ms ahead of the lease server''s clock.', ahead_ms);
    RETURN;
  END IF;
  detail := snowflake_fleet.bind_regions(request, now_ms);
  IF detail IS NOT NULL THEN
    status := 'taken';
    RETURN;
  END IF;
  UPDATE snowflake_fleet.fleet AS f
     SET newest_ms = greatest(f.newest_ms, snowflake_fleet.earlier_clock(request, now_ms));
END
$$;
COMMENT ON FUNCTION snowflake_fleet.admit(snowflake_fleet.request, bigint) IS
  'Internal: refuses a server that requests a region of another server, or whose clock is more than max_skew ahead '
  'of the clock of this database. Otherwise, assigns the requested regions to the server, and returns null as the '
  'status';

CREATE FUNCTION snowflake_fleet.decide(request snowflake_fleet.request, now_ms bigint) RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fleet snowflake_fleet.fleet;
  held snowflake_fleet.region;
  answer snowflake_fleet.answer;
  adoptable boolean;
BEGIN
  PERFORM snowflake_fleet.halt_if_behind(request);
  SELECT f.* INTO STRICT fleet FROM snowflake_fleet.fleet AS f;
  answer := ROW(NULL, fleet.id, fleet.term, 0, -1, 0, 0, 0, now_ms, NULL);
  IF fleet.halted THEN
    answer.status := 'halted';
    answer.detail := format('The lease server was restored to an older state than the newest lease of server %s.',
                            quote_ident(fleet.halted_by));
    RETURN answer;
  END IF;
  adoptable := snowflake_fleet.may_adopt(fleet, request);
  IF request.term <> 0 AND request.term < fleet.lasting AND
     NOT (request.call = 'renew' AND snowflake_fleet.holds_region(request)) THEN
    answer.number := snowflake_fleet.next_number();
    answer.status := CASE WHEN adoptable THEN 'term_over' ELSE 'lost' END;
    answer.detail := 'The lease server was restored to an older state, and an operator confirmed the loss of leases.';
    RETURN answer;
  END IF;
  IF request.call <> 'give_back' THEN
    SELECT a.status, a.detail INTO answer.status, answer.detail FROM snowflake_fleet.admit(request, now_ms) AS a;
    IF answer.status IS NOT NULL THEN
      RETURN answer;
    END IF;
  END IF;
  answer.number := snowflake_fleet.next_number();
  answer.status := 'lost';
  answer.detail := 'The lease was revoked, or a clone of this running server has renewed the lease.';
  held := snowflake_fleet.held_region(request, adoptable);
  RETURN CASE request.call WHEN 'give_back' THEN snowflake_fleet.give_back_region(request, held, answer)
                           WHEN 'acquire' THEN snowflake_fleet.acquire_region(request, held, answer)
                           ELSE snowflake_fleet.renew_region(request, held, answer, adoptable) END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.decide(snowflake_fleet.request, bigint) IS
  'Internal: answers a request of a server. The argument `now_ms` is the present time, in milliseconds since 1970. The '
  'caller of decide() must have called lock_fleet()';
