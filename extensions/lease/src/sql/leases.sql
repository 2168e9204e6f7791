-- Regions and their leases. test/core/lease_control.hpp is the reference model of decide(), and has the
-- reasons. t/021 compares the two.

CREATE TABLE snowflake_fleet.region (
  region integer PRIMARY KEY CHECK (region >= 0),
  server text REFERENCES snowflake_fleet.server, -- its server, the first that asked for it; null: free for any server
  -- given_back is also the state before the first grant; lost: after confirm_data_loss(), its holder may continue
  state text NOT NULL DEFAULT 'given_back'
    CHECK (state OPERATOR(pg_catalog.=) ANY (ARRAY['given_back', 'held', 'revoked', 'lost'])),
  floor_ms bigint NOT NULL DEFAULT 0,            -- only rises, except when a holder continues after confirm_data_loss()
  -- only rises, except by give_back and confirm_dead()
  until_ms bigint NOT NULL DEFAULT 0 CHECK (until_ms >= floor_ms),
  -- of the holder, the number of a server run
  incarnation bigint NOT NULL DEFAULT 0 CHECK ((incarnation <> 0) = (state = 'held')),
  grant_number bigint NOT NULL DEFAULT 0,
  nonce bigint NOT NULL DEFAULT 0,
  since timestamptz,
  last_request timestamptz,
  clock_offset_ms bigint,                        -- the server's clock minus this database's, when the request arrived
  client_addr inet,                              -- address of the holder's last request; null: a Unix socket
  signature bigint NOT NULL DEFAULT 0            -- as in snowflake_fleet.fleet
);
COMMENT ON TABLE snowflake_fleet.region IS
  'Regions and their holders. The ids of a holder have times from floor_ms to before until_ms. A region has a row once '
  'a server has asked for it';

-- Static regions, for operators. A dump does not contain this table.
CREATE TABLE snowflake_fleet.static_region (
  region integer NOT NULL,
  incarnation bigint NOT NULL,
  server text NOT NULL,
  client_addr inet,
  since timestamptz NOT NULL,                    -- first report of this server run
  last_request timestamptz NOT NULL,
  PRIMARY KEY (region, incarnation)
);
COMMENT ON TABLE snowflake_fleet.static_region IS
  'Servers with a static region (snowflake.region), by region and server run. They report every 10 seconds and hold no '
  'lease';

-- struct LeaseRequest, struct LeaseAnswer
CREATE TYPE snowflake_fleet.request AS (
  call text, server text, incarnation bigint, term bigint, newest bigint, nonce bigint, acked bigint, clock_ms bigint,
  length_ms bigint, age_ms bigint, regions integer[], region integer, floor_ms bigint, until_ms bigint,
  grant_number bigint, highest_ms bigint);
COMMENT ON TYPE snowflake_fleet.request IS 'The request of a server: acquire, renew, give_back or report';

CREATE TYPE snowflake_fleet.answer AS (
  status text, fleet bigint, term bigint, number bigint, region integer, grant_number bigint, floor_ms bigint,
  until_ms bigint, clock_ms bigint, detail text);
COMMENT ON TYPE snowflake_fleet.answer IS
  'The answer to a request: granted, given_back, lost, full, halted, clock_ahead, term_over, taken or registered';

CREATE FUNCTION snowflake_fleet.lease_text(held snowflake_fleet.region) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('region %s of server %s until %s%s', held.region, coalesce(quote_ident(held.server), '?'),
                snowflake_fleet.from_ms(held.until_ms),
           CASE WHEN held.incarnation <> 0
                THEN format(' (incarnation %s, address %s)', held.incarnation,
                            coalesce(host(held.client_addr), 'local')) END)
$$;
COMMENT ON FUNCTION snowflake_fleet.lease_text(snowflake_fleet.region) IS 'Internal: a lease, for people';

CREATE FUNCTION snowflake_fleet.end_lease(held snowflake_fleet.region) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE snowflake_fleet.region AS r SET incarnation = 0, state = 'revoked' WHERE r.region = held.region;
  RAISE LOG 'snowflake_fleet: revoked: %', snowflake_fleet.lease_text(held);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.end_lease(snowflake_fleet.region) IS 'Internal: revokes a lease, and logs it';

CREATE FUNCTION snowflake_fleet.free_from(r snowflake_fleet.region) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT CASE r.state WHEN 'given_back' THEN r.until_ms OPERATOR(pg_catalog.-) 10000
                            ELSE r.until_ms END $$;
COMMENT ON FUNCTION snowflake_fleet.free_from(snowflake_fleet.region) IS
  'Internal: the time (in ms since 1970) from which the region may be granted';

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
  'Internal: halts the fleet if a server has a newer answer than this database';

CREATE FUNCTION snowflake_fleet.bind_regions(request snowflake_fleet.request, now_ms bigint) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked CONSTANT integer[] := CASE request.call WHEN 'renew' THEN ARRAY[request.region] ELSE request.regions END;
  other record;
BEGIN
  -- First, so that two servers can exchange regions.
  IF request.call = 'acquire' THEN
    UPDATE snowflake_fleet.region AS r SET server = NULL
     WHERE r.server = request.server AND r.region <> ALL (asked) AND r.incarnation = 0
       AND snowflake_fleet.free_from(r) <= least(request.clock_ms, now_ms);
  END IF;
  SELECT r.region, r.server INTO other FROM snowflake_fleet.region AS r
   WHERE r.region = ANY (asked) AND r.server <> request.server ORDER BY r.region LIMIT 1;
  IF FOUND THEN
    RETURN format('Region %s is server %s''s.', other.region, quote_ident(other.server));
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
  'Internal: gives a server the regions that it names, and releases its other regions that are free. If a named region '
  'belongs to another server, the function returns the reason and gives no region';

CREATE FUNCTION snowflake_fleet.decide(request snowflake_fleet.request, now_ms bigint) RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fleet snowflake_fleet.fleet;
  held snowflake_fleet.region;
  answer snowflake_fleet.answer;
  earlier CONSTANT bigint := least(request.clock_ms, now_ms);   -- a lease ends, and a region is free, by this one
  adoptable boolean := false;
BEGIN
  PERFORM snowflake_fleet.halt_if_behind(request);
  SELECT f.* INTO STRICT fleet FROM snowflake_fleet.fleet AS f;
  answer := ROW(NULL, fleet.id, fleet.term, 0, -1, 0, 0, 0, now_ms, NULL);
  IF fleet.halted THEN
    answer.status := 'halted';
    answer.detail := format('Server %s has a newer grant: the lease server was put back to an older state.',
                            quote_ident(fleet.halted_by));
    RETURN answer;
  END IF;
  IF request.call = 'renew' AND request.term <> 0 AND fleet.adopt_ms <> 0 AND request.until_ms > fleet.adopt_ms THEN
    SELECT r.* INTO held FROM snowflake_fleet.region AS r WHERE r.region = request.region;
    -- bind_regions() makes a lost row in the same way.
    IF NOT FOUND AND fleet.fresh_ms <> 0 THEN
      held.region := request.region;
      held.state := 'lost';
    END IF;
    adoptable := held.state = 'lost' AND coalesce(held.server, request.server) = request.server;
  END IF;
  IF request.term <> 0 AND request.term < fleet.lasting AND
     NOT (request.call = 'renew' AND
          EXISTS (SELECT FROM snowflake_fleet.region AS r
                   WHERE r.region = request.region AND r.incarnation = request.incarnation
                     AND r.server = request.server)) THEN
    UPDATE snowflake_fleet.fleet AS f SET newest = f.newest + 1 RETURNING f.newest INTO answer.number;
    answer.status := CASE WHEN adoptable THEN 'term_over' ELSE 'lost' END;
    answer.detail := 'The lease server was put back to an older state, and an operator confirmed it.';
    RETURN answer;
  END IF;
  IF request.call <> 'give_back' THEN
    IF request.clock_ms - now_ms > fleet.skew_ms THEN
      answer.status := 'clock_ahead';
      answer.detail := format('The server''s clock is %s ms ahead of the lease server''s.', request.clock_ms - now_ms);
      RETURN answer;
    END IF;
    answer.detail := snowflake_fleet.bind_regions(request, now_ms);
    IF answer.detail IS NOT NULL THEN
      answer.status := 'taken';
      RETURN answer;
    END IF;
    UPDATE snowflake_fleet.fleet AS f SET newest_ms = greatest(f.newest_ms, earlier);
  END IF;

  UPDATE snowflake_fleet.fleet AS f SET newest = f.newest + 1 RETURNING f.newest INTO answer.number;
  answer.status := 'lost';
  answer.detail := 'The lease was revoked, or renewed by a copy of this server''s memory.';

  SELECT r.* INTO held FROM snowflake_fleet.region AS r
   WHERE CASE WHEN adoptable THEN r.region = request.region
              ELSE r.incarnation = request.incarnation AND r.server = request.server
                   AND CASE request.call WHEN 'acquire' THEN r.region = ANY (request.regions)
                                         ELSE r.region = request.region END END
   ORDER BY r.region LIMIT 1;

  IF request.call = 'give_back' THEN
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
  END IF;

  IF adoptable THEN
    held.floor_ms := request.floor_ms;
    held.until_ms := greatest(held.until_ms, request.until_ms);
    held.since := snowflake_fleet.from_ms(now_ms);
  ELSIF request.call = 'renew' THEN
    IF held.region IS NULL OR (request.acked <> 0 AND held.nonce <> request.acked AND held.nonce <> request.nonce) THEN
      RETURN answer;
    END IF;
  ELSIF held.region IS NULL THEN
    SELECT r.* INTO held FROM snowflake_fleet.region AS r
     WHERE r.region = ANY (request.regions) AND snowflake_fleet.free_from(r) <= earlier
     ORDER BY r.state = 'given_back' AND r.until_ms <= earlier DESC,
              CASE WHEN r.state = 'given_back' AND r.until_ms <= earlier THEN -r.grant_number ELSE r.until_ms END,
              r.region LIMIT 1;
    IF NOT FOUND THEN
      SELECT min(snowflake_fleet.free_from(r)),
             format('Regions of the server: %s.',
                    string_agg(snowflake_fleet.lease_text(r), ', ' ORDER BY r.until_ms, r.region))
        INTO answer.until_ms, answer.detail FROM snowflake_fleet.region AS r WHERE r.region = ANY (request.regions);
      answer.status := 'full';
      RETURN answer;
    END IF;
    held.floor_ms := greatest(held.floor_ms, held.until_ms);
    held.until_ms := held.floor_ms;
    held.since := snowflake_fleet.from_ms(now_ms);
  END IF;

  -- A grant lasts as long as the incarnation has run, at least a minute.
  answer.until_ms := greatest(held.floor_ms,
                              earlier + least(greatest(request.age_ms, 60000),
                                              greatest(0, least(request.length_ms, fleet.longest_ms))));
  IF adoptable OR request.call = 'acquire' THEN
    held.grant_number := answer.number;
  END IF;
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
COMMENT ON FUNCTION snowflake_fleet.decide(snowflake_fleet.request, bigint) IS
  'Internal: answers a request as of a time in ms since 1970. REQUIRES the lock on the fleet';

-- Two server runs are in a region at once if each has reported after the first report of the other.
CREATE FUNCTION snowflake_fleet.conflict_of(asked integer, own bigint, began timestamptz) RETURNS text
  LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('Region %s is used by another server as well: %s (incarnation %s, address %s).', asked,
                coalesce(quote_ident(o.server), '?'), o.incarnation, coalesce(host(o.client_addr), 'local'))
    FROM (SELECT s.server, s.incarnation, s.client_addr, s.last_request FROM snowflake_fleet.static_region AS s
           WHERE s.region = asked AND s.last_request > clock_timestamp() - interval '1 minute'
             AND s.last_request > began
          UNION ALL SELECT r.server, r.incarnation, r.client_addr, r.last_request FROM snowflake_fleet.region AS r
           WHERE r.region = asked AND r.incarnation <> 0 AND r.until_ms > snowflake_fleet.to_ms(clock_timestamp())) AS o
   WHERE o.incarnation <> own ORDER BY o.last_request DESC LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_fleet.conflict_of(integer, bigint, timestamptz) IS
  'Internal: the other server run that mints in the same region, for people; null if there is none on record';

CREATE FUNCTION snowflake_fleet.report_static(request snowflake_fleet.request) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  conflict text;
BEGIN
  DELETE FROM snowflake_fleet.static_region AS s
   WHERE s.last_request NOT BETWEEN clock_timestamp() - interval '1 day' AND clock_timestamp();
  INSERT INTO snowflake_fleet.static_region AS s (region, incarnation, server, client_addr, since, last_request)
  VALUES (request.region, request.incarnation, request.server, inet_client_addr(), clock_timestamp(), clock_timestamp())
  ON CONFLICT (region, incarnation) DO UPDATE
    SET server = request.server, client_addr = inet_client_addr(), last_request = clock_timestamp()
  RETURNING snowflake_fleet.conflict_of(s.region, s.incarnation, s.since) INTO conflict;
  IF conflict IS NOT NULL AND snowflake_fleet.record_refusal(request.server, 'conflict') THEN
    RAISE LOG 'snowflake_fleet: server % (incarnation %, address %): %', quote_ident(request.server),
      request.incarnation, coalesce(host(inet_client_addr()), 'local'), conflict;
  ELSIF conflict IS NULL THEN
    UPDATE snowflake_fleet.refusal AS f SET since = NULL WHERE f.server = request.server AND f.since IS NOT NULL;
  END IF;
  RETURN conflict;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.report_static(snowflake_fleet.request) IS
  'Internal: records the report of a server with a static region; returns the conflict with another server run, or '
  'null';

CREATE FUNCTION snowflake_fleet.check_request(request snowflake_fleet.request, seal bigint) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  count CONSTANT integer := 1 << greatest(0, seal / 2300 % 25)::integer;
BEGIN
  IF request.call <> ALL (ARRAY['acquire', 'renew', 'give_back', 'report']) OR request.incarnation < 1 OR
     request.term < 0 OR
     request.newest < 0 OR request.nonce < 0 OR request.acked < 0 OR request.clock_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.highest_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.length_ms NOT BETWEEN 0 AND 8796093022207 OR request.age_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.floor_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.until_ms NOT BETWEEN request.floor_ms AND 8796093022207 OR
     seal < 0 OR seal / 57500 % 35 = 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'an argument of ask() is out of range',
      DETAIL = 'Times are milliseconds since 1970, below 2^43; an incarnation is positive.',
      HINT = 'This function is for the servers'' own use.';
  END IF;
  IF (request.call = 'acquire' AND coalesce(cardinality(request.regions), 0) NOT BETWEEN 1 AND 64) OR
     (request.call <> 'acquire' AND request.region NOT BETWEEN 0 AND count - 1) OR
     EXISTS (SELECT FROM unnest(request.regions) AS n WHERE n IS NULL OR n NOT BETWEEN 0 AND count - 1) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'a region does not exist in the layout',
      DETAIL = format('The layout has regions 0 to %s; the server names %s.', count - 1,
                      coalesce(request.regions::text, request.region::text)),
      HINT = 'Set "snowflake.leased_regions" of the server to 1 to 64 regions of the layout.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_request(snowflake_fleet.request, bigint) IS
  'Internal: an error (22023) if a request is out of range';

CREATE FUNCTION snowflake_fleet.layout_text(seal bigint) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%s/%s%s/%s of %s ms since %s', seal / 57500 % 35 + 19,
                CASE WHEN seal / 2300 % 25 <> 0 THEN format('%s+', seal / 2300 % 25) END,
                seal / 92 % 25, seal / 4 % 23, (ARRAY[1, 10, 100, 1000])[seal % 4 + 1],
                to_char(snowflake_fleet.from_ms(seal / 2012500) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS'))
$$;
COMMENT ON FUNCTION snowflake_fleet.layout_text(bigint) IS
  'Internal: a layout that src/core/seal.hpp has packed, for people';

-- SECURITY DEFINER, because only these functions may write the tables. The lock is taken before the rows are
-- read: another request may change them while this one waits.
CREATE FUNCTION snowflake_fleet.ask(call text, fleet bigint, incarnation bigint, term bigint, newest bigint,
                                    nonce bigint, acked bigint, clock_ms bigint, length_ms bigint, age_ms bigint,
                                    seal bigint, regions integer[], region integer, floor_ms bigint, until_ms bigint,
                                    grant_number bigint, highest_ms bigint)
  RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own snowflake_fleet.fleet;
  request snowflake_fleet.request;
  place record;
  answer snowflake_fleet.answer;
  arrived CONSTANT bigint := snowflake_fleet.to_ms(statement_timestamp());
  now_ms bigint;
BEGIN
  IF num_nulls(call, fleet, incarnation, term, newest, nonce, acked, clock_ms, length_ms, age_ms, seal, regions, region,
               floor_ms, until_ms, grant_number, highest_ms) <> 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'no argument of ask() may be null',
      HINT = 'This function is for the servers'' own use.';
  END IF;
  request := ROW(call, snowflake_fleet.asking_server(), incarnation, term, newest, nonce, acked, clock_ms, length_ms,
                 age_ms, regions, region, floor_ms, until_ms, grant_number, highest_ms);
  PERFORM snowflake_fleet.check_request(request, seal), snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  PERFORM snowflake_fleet.asking_server();   -- it may have been removed during the wait
  now_ms := snowflake_fleet.to_ms(clock_timestamp());
  IF fleet <> 0 AND fleet <> own.id THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this is the lease server of another fleet',
      DETAIL = format('The server belongs to fleet %s, this is %s.', fleet, own.id),
      HINT = 'Correct "snowflake.lease_conninfo" of the server.';
  END IF;
  IF term > greatest(own.term, (now_ms + 86400000) << 20) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the term of a request lies in the future',
      DETAIL = format('It is %s, that of the lease server %s.', term, own.term), HINT = 'Restart the server.';
  END IF;
  SELECT * INTO STRICT place FROM snowflake_fleet.has_moved();
  -- After a restore the seal is not set: the dump may be older than the first server's request.
  IF own.seal IS NULL AND request.call <> 'give_back' AND NOT place.moved THEN
    UPDATE snowflake_fleet.fleet AS f SET seal = ask.seal;
    PERFORM snowflake_fleet.sign_rows();
    own.seal := seal;
  END IF;
  IF own.seal <> seal THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the server''s layout is not the fleet''s',
      DETAIL = format('The fleet has %s, the server %s.', snowflake_fleet.layout_text(own.seal),
                      snowflake_fleet.layout_text(seal)),
      HINT = 'Correct "snowflake.layout", "snowflake.tick" and "snowflake.epoch" of the server.';
  END IF;

  -- Reports are for people. They are accepted while the database is halted, and write no signed row.
  IF request.call = 'report' THEN
    answer := ROW('registered', own.id, own.term, 0, -1, 0, 0, 0, now_ms, snowflake_fleet.report_static(request));
    RETURN answer;
  END IF;
  IF place.moved THEN
    -- The claim is recorded for confirm_no_data_loss(). No row is signed.
    PERFORM snowflake_fleet.halt_if_behind(request);
    answer := ROW('halted', own.id, own.term, 0, -1, 0, 0, 0, now_ms, place.detail);
    PERFORM snowflake_fleet.record_answer(request, answer);
    RETURN answer;
  END IF;
  UPDATE snowflake_fleet.server AS s SET last_request = clock_timestamp() WHERE s.name = request.server;
  answer := snowflake_fleet.decide(request, now_ms);
  IF answer.status = 'granted' THEN
    UPDATE snowflake_fleet.region AS r
       SET last_request = clock_timestamp(), clock_offset_ms = request.clock_ms - arrived,
           client_addr = inet_client_addr()
     WHERE r.region = answer.region;
    SELECT snowflake_fleet.conflict_of(r.region, r.incarnation, r.since) INTO answer.detail
      FROM snowflake_fleet.region AS r WHERE r.region = answer.region;
  END IF;
  PERFORM snowflake_fleet.sign_rows(), snowflake_fleet.record_answer(request, answer);
  RETURN answer;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.ask(text, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint,
                                        bigint, integer[], integer, bigint, bigint, bigint, bigint) IS
  'For a server''s worker. acquire: takes a free region of the server, or the one that the incarnation has; renew: '
  'extends its lease; give_back: ends it at highest_ms, the first time of which the server has issued no id; report: '
  'reports a static region';
