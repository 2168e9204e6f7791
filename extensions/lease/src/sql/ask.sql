-- ask(), by which the lease worker of a server requests a lease, and the checks of its arguments.

-- Two server runs that report one static (not leased) region conflict only if their reports overlap in time. A restart
-- is not a conflict, because the old run sends no more reports.
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
  'Internal: describes another server that mints in the same region. Returns null if the function finds no other '
  'server in the region';

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
  'Internal: records that a server reported its static region. Returns a description of another server that mints in '
  'the same region, or null';

CREATE FUNCTION snowflake_fleet.check_request(request snowflake_fleet.request, seal bigint, fleet bigint)
  RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  count CONSTANT integer := 1 << greatest(0, seal / 2300 % 25)::integer;
BEGIN
  IF NOT (request IS NOT NULL) OR num_nulls(seal, fleet) <> 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'no argument of ask() may be null',
      HINT = 'Do not call ask(), which only the lease workers of servers use.';
  END IF;
  IF request.call <> ALL (ARRAY['acquire', 'renew', 'give_back', 'report']) OR request.incarnation < 1 OR
     request.term < 0 OR request.newest < 0 OR request.nonce < 0 OR request.acked < 0 OR
     request.clock_ms NOT BETWEEN 0 AND 8796093022207 OR request.highest_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.length_ms NOT BETWEEN 0 AND 8796093022207 OR request.age_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.floor_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.until_ms NOT BETWEEN request.floor_ms AND 8796093022207 OR
     seal < 0 OR seal / 57500 % 35 = 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'an argument of ask() is out of range',
      DETAIL = 'A time is in milliseconds since 1970, and less than 2^43. '
               'An incarnation (the number of a server run) is positive.',
      HINT = 'Do not call ask(), which only the lease workers of servers use.';
  END IF;
  IF (request.call = 'acquire' AND coalesce(cardinality(request.regions), 0) NOT BETWEEN 1 AND 64) OR
     (request.call <> 'acquire' AND request.region NOT BETWEEN 0 AND count - 1) OR
     EXISTS (SELECT FROM unnest(request.regions) AS n WHERE n IS NULL OR n NOT BETWEEN 0 AND count - 1) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'a requested region does not exist in the layout',
      DETAIL = format('The layout has regions 0 to %s. The server requested %s.', count - 1,
                      coalesce(request.regions::text, request.region::text)),
      HINT = 'In "snowflake.leased_regions" of the server, list at least one and at most 64 regions of the layout.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_request(snowflake_fleet.request, bigint, bigint) IS
  'Internal: raises an error (22004, 22023) if an argument of a request is null or out of range';

CREATE FUNCTION snowflake_fleet.layout_text(seal bigint) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%s/%s%s/%s of %s ms since %s', seal / 57500 % 35 + 19,
                CASE WHEN seal / 2300 % 25 <> 0 THEN format('%s+', seal / 2300 % 25) END,
                seal / 92 % 25, seal / 4 % 23, (ARRAY[1, 10, 100, 1000])[seal % 4 + 1],
                to_char(snowflake_fleet.from_ms(seal / 2012500) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS'))
$$;
COMMENT ON FUNCTION snowflake_fleet.layout_text(bigint) IS
  'Internal: describes an id layout that is encoded as a number by src/core/seal.hpp';

CREATE FUNCTION snowflake_fleet.check_membership(own snowflake_fleet.fleet, fleet bigint, term bigint, now_ms bigint)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF fleet <> 0 AND fleet <> own.id THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this is the lease server of another fleet',
      DETAIL = format('The server belongs to fleet %s. This lease server belongs to fleet %s.', fleet, own.id),
      HINT = 'Correct "snowflake.lease_conninfo" of the server.';
  END IF;
  IF term > greatest(own.term, (now_ms + 86400000) << 20) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE =
      'the request has a later term than the lease server',
      DETAIL = format('The request has term number %s. The lease server has term number %s.',
                      term, own.term), HINT = 'Restart the server.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_membership(snowflake_fleet.fleet, bigint, bigint, bigint) IS
  'Internal: raises an error (55000) if the server belongs to another fleet. Raises an error (22023) if the term '
  'number of the request is greater than that of this database and more than a day ahead';

CREATE FUNCTION snowflake_fleet.check_seal(own snowflake_fleet.fleet, seal bigint, may_set boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- After a restore of the lease server, a request for a lease does not set the id layout. The restored database may
  -- lack the id layout that the request of another server set after the backup.
  IF own.seal IS NULL AND may_set THEN
    UPDATE snowflake_fleet.fleet AS f SET seal = check_seal.seal;
    PERFORM snowflake_fleet.sign_rows();
  ELSIF own.seal <> seal THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the server and the fleet have different id layouts',
      DETAIL = format('The fleet has layout %s. The server has layout %s.', snowflake_fleet.layout_text(own.seal),
                      snowflake_fleet.layout_text(seal)),
      HINT = 'Correct "snowflake.layout", "snowflake.tick" and "snowflake.epoch" of the server.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_seal(snowflake_fleet.fleet, bigint, boolean) IS
  'Internal: raises an error (55000) if the server and the fleet have different id layouts. The first server sets the '
  'layout of the fleet';

CREATE FUNCTION snowflake_fleet.decide_and_sign(request snowflake_fleet.request, now_ms bigint, arrived bigint)
  RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  answer snowflake_fleet.answer;
BEGIN
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
COMMENT ON FUNCTION snowflake_fleet.decide_and_sign(snowflake_fleet.request, bigint, bigint) IS
  'Internal: answers the request of a server, and records the server''s address and the time. Writes the signatures '
  'of all changed rows. The argument `arrived` is the time when the request arrived, by the clock of this database';

-- The function ask() is SECURITY DEFINER, because servers have no privileges to write the tables of leases. Locks the
-- fleet before reading rows, because a concurrent request may change the rows.
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
  request := ROW(call, snowflake_fleet.asking_server(), incarnation, term, newest, nonce, acked, clock_ms, length_ms,
                 age_ms, regions, region, floor_ms, until_ms, grant_number, highest_ms);
  PERFORM snowflake_fleet.check_request(request, seal, fleet), snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  PERFORM snowflake_fleet.asking_server();   -- the server may have been removed while ask() waited for the lock
  now_ms := snowflake_fleet.to_ms(clock_timestamp());
  PERFORM snowflake_fleet.check_membership(own, fleet, term, now_ms);
  SELECT * INTO STRICT place FROM snowflake_fleet.has_moved();
  PERFORM snowflake_fleet.check_seal(own, seal, may_set => call <> 'give_back' AND NOT place.moved);
  answer := ROW(NULL, own.id, own.term, 0, -1, 0, 0, 0, now_ms, NULL);
  -- Even after a restore, a server may report its static region (without a lease), because a report grants no lease.
  IF call = 'report' THEN
    answer.status := 'registered';
    answer.detail := snowflake_fleet.report_static(request);
  ELSIF place.moved THEN
    -- Records whether the server has a lease that this database lacks, for the check of confirm_no_data_loss().
    PERFORM snowflake_fleet.halt_if_behind(request);
    answer.status := 'halted';
    answer.detail := place.detail;
    PERFORM snowflake_fleet.record_answer(request, answer);
  ELSE
    answer := snowflake_fleet.decide_and_sign(request, now_ms, arrived);
  END IF;
  RETURN answer;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.ask(text, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint,
                                        bigint, integer[], integer, bigint, bigint, bigint, bigint) IS
  'Internal: only the lease worker of a server calls this function. The first argument names the request. "acquire" '
  'leases a free region of the server, or the region that this run of the server holds already. "renew" extends the '
  'lease. "give_back" ends the lease at highest_ms, because no id of the server has this or a later time. "report" '
  'records a static region';
