-- Regions and their leases. decide() is a transcription of src/core/lease_control.hpp, which is where
-- the reasons are; a test replays the same requests through both.

CREATE TABLE snowflake_fleet.region (
  region integer PRIMARY KEY CHECK (region >= 0),
  floor_ms bigint NOT NULL DEFAULT 0,
  until_ms bigint NOT NULL DEFAULT 0 CHECK (until_ms >= floor_ms),
  incarnation bigint NOT NULL DEFAULT 0,
  grant_number bigint NOT NULL DEFAULT 0,
  nonce bigint NOT NULL DEFAULT 0,
  server text REFERENCES snowflake_fleet.server,
  given_back boolean NOT NULL DEFAULT false,
  since timestamptz,
  heard timestamptz,
  clock_offset_ms bigint
);
COMMENT ON TABLE snowflake_fleet.region IS
  'Who may mint ids of a region: none of a time before floor_ms, none of until_ms or later';
COMMENT ON COLUMN snowflake_fleet.region.floor_ms IS 'In ms since 1970; only rises, but where a holder goes on after a recovery';
COMMENT ON COLUMN snowflake_fleet.region.until_ms IS
  'In ms since 1970; the next holder begins there. Only rises, but when the region is given back, or its holder is dead';
COMMENT ON COLUMN snowflake_fleet.region.incarnation IS
  'The holder: one life of a server, drawn at random; 0: nobody';
COMMENT ON COLUMN snowflake_fleet.region.server IS 'The holder''s server, or the last one''s';
COMMENT ON COLUMN snowflake_fleet.region.clock_offset_ms IS
  'Clock of the server less that of this database at the last exchange, less what that took';

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_extension
              WHERE extname OPERATOR(pg_catalog.=) 'snowflake_fleet') THEN
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.region', '');
  END IF;
END
$$;

-- struct LeaseRequest, struct LeaseAnswer
CREATE TYPE snowflake_fleet.request AS (
  call text, server text, incarnation bigint, term bigint, newest bigint, proven boolean, nonce bigint, acked bigint,
  clock_ms bigint, length_ms bigint, age_ms bigint, ahead_ms bigint, region integer, floor_ms bigint, until_ms bigint,
  titled boolean, grant_number bigint, highest_ms bigint);
COMMENT ON TYPE snowflake_fleet.request IS 'What a server asks: acquire, renew or give_back';

CREATE TYPE snowflake_fleet.answer AS (
  status text, fleet bigint, term bigint, number bigint, proof bigint, region integer, grant_number bigint,
  floor_ms bigint, until_ms bigint, title bigint, clock_ms bigint, detail text);
COMMENT ON TYPE snowflake_fleet.answer IS
  'What it is told: granted, given_back, lost, full, halted, clock_ahead, unproven or term_over';

CREATE FUNCTION snowflake_fleet.evict_region(number integer) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  AS $$ UPDATE snowflake_fleet.region SET incarnation = 0, given_back = false
         WHERE region.region OPERATOR(pg_catalog.=) number $$;
COMMENT ON FUNCTION snowflake_fleet.evict_region(integer) IS 'Internal: ends the holder''s lease';

CREATE FUNCTION snowflake_fleet.begin_term(now_ms bigint, salt bigint) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  UPDATE snowflake_fleet.fleet AS f
     SET term = greatest(snowflake_fleet.term_at(now_ms, salt), greatest(f.term, f.heard_term) + 1),
         newest = snowflake_fleet.newest_said(), began = snowflake_fleet.newest_said(), halted = false
$$;
COMMENT ON FUNCTION snowflake_fleet.begin_term(bigint, bigint) IS
  'Internal: makes the answers of every other copy of this database old to each server that hears of it';

CREATE FUNCTION snowflake_fleet.recover_fleet(now_ms bigint, salt bigint, silent boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  fleet snowflake_fleet.fleet;
BEGIN
  SELECT f.* INTO STRICT fleet FROM snowflake_fleet.fleet AS f;
  PERFORM snowflake_fleet.evict_region(r.region) FROM snowflake_fleet.region AS r;
  UPDATE snowflake_fleet.region AS r
     SET until_ms = greatest(r.floor_ms, r.until_ms, now_ms + fleet.longest_ms + fleet.skew_ms);
  PERFORM snowflake_fleet.begin_term(now_ms, salt);
  UPDATE snowflake_fleet.fleet AS f
     SET lasting = f.term, lost_number = f.newest, fresh_ms = now_ms + f.longest_ms + f.skew_ms,
         adopt_ms = CASE WHEN silent THEN now_ms + 2 * f.skew_ms ELSE 0 END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.recover_fleet(bigint, bigint, boolean) IS
  'Internal: ends all leases and has regions begin above all that may have been granted; `silent`: this copy of the database has '
  'granted nothing since it was recovered, so holders whose lease goes on may keep it';

CREATE FUNCTION snowflake_fleet.end_dead(number integer, now_ms bigint, told_ahead_ms bigint) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  UPDATE snowflake_fleet.region AS r
     SET incarnation = 0, given_back = false,
         until_ms = greatest(r.floor_ms, least(r.until_ms, now_ms + greatest(f.ahead_ms, told_ahead_ms) + f.skew_ms))
    FROM snowflake_fleet.fleet AS f
   WHERE r.region = number
$$;
COMMENT ON FUNCTION snowflake_fleet.end_dead(integer, bigint, bigint) IS
  'Internal: ends the lease of a region whose holders have stopped where their ids can have ended at the latest';

CREATE FUNCTION snowflake_fleet.free_from(r snowflake_fleet.region) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT CASE WHEN r.given_back THEN r.until_ms OPERATOR(pg_catalog.-) 10000
                    ELSE r.until_ms END $$;
COMMENT ON FUNCTION snowflake_fleet.free_from(snowflake_fleet.region) IS
  'Internal: from when on (in ms since 1970) the region may be granted to somebody else';

CREATE FUNCTION snowflake_fleet.notice(request snowflake_fleet.request) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  fleet snowflake_fleet.fleet;
BEGIN
  SELECT f.* INTO STRICT fleet FROM snowflake_fleet.fleet AS f;
  IF request.term <= fleet.term AND
     (request.term = 0 OR request.term < fleet.lasting OR
      request.newest <= CASE WHEN request.term = fleet.term THEN snowflake_fleet.newest_said() ELSE fleet.began END) THEN
    RETURN true;
  END IF;
  IF NOT request.proven THEN
    RETURN false;
  END IF;
  UPDATE snowflake_fleet.fleet AS f SET heard_term = greatest(f.heard_term, request.term), halted = true;
  RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.notice(snowflake_fleet.request) IS
  'Internal: halts the fleet where a server has heard more than this database ever said; false where it only says so';

CREATE FUNCTION snowflake_fleet.granted_until(request snowflake_fleet.request, taken integer, longest_ms bigint, now_ms bigint) RETURNS bigint
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT least(request.clock_ms, now_ms) +
         least(greatest(request.age_ms, 60000 >> least(count(*), 10)::integer, 2000),
               greatest(0, least(request.length_ms, longest_ms)))
    FROM snowflake_fleet.region AS r
   WHERE r.region <> taken AND r.server = request.server AND r.incarnation <> request.incarnation AND NOT r.given_back AND r.until_ms > now_ms
$$;
COMMENT ON FUNCTION snowflake_fleet.granted_until(snowflake_fleet.request, integer, bigint, bigint) IS
  'Internal: until when a request is granted the region `taken`, in ms since 1970: for as long as the incarnation is old and a minute at least, '
  'half of that for each region that its server has left behind';

-- The caller holds the lock on the fleet and commits what this leaves.
CREATE FUNCTION snowflake_fleet.decide(request snowflake_fleet.request, now_ms bigint)
  RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  fleet snowflake_fleet.fleet;
  held snowflake_fleet.region;
  answer snowflake_fleet.answer;
  earlier bigint := least(request.clock_ms, now_ms);
  anew boolean := false;
  adoptable boolean := false;
  known boolean := snowflake_fleet.notice(request);
BEGIN
  SELECT f.* INTO STRICT fleet FROM snowflake_fleet.fleet AS f;
  answer.fleet := fleet.id;
  answer.term := fleet.term;
  answer.number := 0;
  answer.region := -1;
  answer.grant_number := 0;
  answer.floor_ms := 0;
  answer.until_ms := 0;
  answer.clock_ms := now_ms;
  IF NOT known THEN
    answer.status := 'unproven';
    RETURN answer;
  END IF;
  IF fleet.halted THEN
    answer.status := 'halted';
    RETURN answer;
  END IF;
  IF request.call = 'renew' AND request.term <> 0 AND request.titled AND fleet.adopt_ms <> 0 AND request.until_ms > fleet.adopt_ms THEN
    SELECT r.* INTO held FROM snowflake_fleet.region AS r
     WHERE r.region = request.region AND r.incarnation = 0 AND r.grant_number <= fleet.lost_number
       AND NOT snowflake_fleet.is_static(r.region);
    adoptable := held.region IS NOT NULL;
  END IF;
  IF request.term <> 0 AND request.term < fleet.lasting AND
     NOT (request.call = 'renew' AND
          EXISTS (SELECT FROM snowflake_fleet.region AS r
                   WHERE r.region = request.region AND r.incarnation = request.incarnation AND r.incarnation <> 0
                     AND r.server = request.server)) THEN
    answer.number := snowflake_fleet.next_number();
    answer.status := CASE WHEN adoptable THEN 'term_over' ELSE 'lost' END;
    RETURN answer;
  END IF;
  IF request.call <> 'give_back' AND request.clock_ms - now_ms > fleet.skew_ms THEN
    answer.status := 'clock_ahead';
    RETURN answer;
  END IF;

  UPDATE snowflake_fleet.fleet AS f SET ahead_ms = request.ahead_ms WHERE f.ahead_ms < request.ahead_ms;
  answer.number := snowflake_fleet.next_number();
  answer.status := 'lost';

  IF NOT adoptable THEN
    SELECT r.* INTO held FROM snowflake_fleet.region AS r
     WHERE r.incarnation = request.incarnation AND r.incarnation <> 0 AND r.server = request.server
       AND (request.call = 'acquire' OR r.region = request.region)
     ORDER BY r.region LIMIT 1;
  END IF;

  IF request.call = 'give_back' THEN
    IF held.region IS NULL OR held.grant_number <> request.grant_number OR
       request.grant_number > request.newest THEN
      RETURN answer;
    END IF;
    held.floor_ms := greatest(held.floor_ms, least(request.highest_ms, held.until_ms));
    UPDATE snowflake_fleet.region AS r
       SET floor_ms = held.floor_ms, until_ms = held.floor_ms, incarnation = 0, given_back = true
     WHERE r.region = held.region;
    answer.status := 'given_back';
    RETURN answer;
  END IF;

  IF adoptable THEN
    anew := true;
    held.floor_ms := request.floor_ms;
    held.until_ms := greatest(held.until_ms, request.until_ms);
    held.incarnation := request.incarnation;
    held.server := request.server;
    held.given_back := false;
    held.since := snowflake_fleet.from_ms(now_ms);
  ELSIF request.call = 'renew' THEN
    IF held.region IS NULL OR
       (request.acked <> 0 AND held.nonce <> request.acked AND held.nonce <> request.nonce) THEN
      RETURN answer;
    END IF;
  ELSE
    anew := true;
    IF held.region IS NULL THEN
      SELECT r.* INTO held FROM snowflake_fleet.regions_for(request.server) AS r
       WHERE snowflake_fleet.free_from(r) <= now_ms AND r.given_back AND r.server = request.server
         AND r.until_ms <= earlier
       ORDER BY r.grant_number DESC, r.region LIMIT 1;
      IF NOT FOUND THEN
        SELECT r.* INTO held FROM snowflake_fleet.regions_for(request.server) AS r
         WHERE snowflake_fleet.free_from(r) <= now_ms
         ORDER BY r.until_ms, r.region LIMIT 1;
      END IF;
      IF NOT FOUND THEN
        SELECT coalesce(min(snowflake_fleet.free_from(r)), 0) INTO answer.until_ms
          FROM snowflake_fleet.regions_for(request.server) AS r;
        answer.status := 'full';
        RETURN answer;
      END IF;
      held.floor_ms := greatest(held.floor_ms, held.until_ms);
      held.until_ms := held.floor_ms;
      held.incarnation := request.incarnation;
      held.server := request.server;
      held.given_back := false;
      held.since := snowflake_fleet.from_ms(now_ms);
    END IF;
  END IF;

  answer.until_ms := greatest(held.floor_ms, snowflake_fleet.granted_until(request, held.region, fleet.longest_ms, now_ms));
  held.until_ms := greatest(held.until_ms, answer.until_ms);
  held.nonce := request.nonce;
  IF anew THEN
    held.grant_number := answer.number;
  END IF;
  UPDATE snowflake_fleet.region AS r
     SET floor_ms = held.floor_ms, until_ms = held.until_ms, incarnation = held.incarnation,
         grant_number = held.grant_number, nonce = held.nonce, server = held.server,
         given_back = held.given_back, since = held.since
   WHERE r.region = held.region;
  answer.status := 'granted';
  answer.region := held.region;
  answer.grant_number := held.grant_number;
  answer.floor_ms := held.floor_ms;
  RETURN answer;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.decide(snowflake_fleet.request, bigint) IS
  'Internal: answers a request as of a time in ms since 1970; the three functions below check who asks';

-- Common to the three functions: who asks, where, and whether an answer could last.
CREATE FUNCTION snowflake_fleet.ask(request snowflake_fleet.request, proof bigint, title bigint, fleet bigint, seal bigint)
  RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  place record;
  answer snowflake_fleet.answer;
  arrived bigint := snowflake_fleet.to_ms(statement_timestamp());
  now_ms bigint;
BEGIN
  IF request.incarnation IS NULL OR request.term IS NULL OR request.newest IS NULL OR
     request.nonce IS NULL OR request.acked IS NULL OR request.clock_ms IS NULL OR
     request.length_ms IS NULL OR request.age_ms IS NULL OR request.ahead_ms IS NULL OR request.region IS NULL OR
     request.floor_ms IS NULL OR request.until_ms IS NULL OR request.grant_number IS NULL OR
     request.highest_ms IS NULL OR proof IS NULL OR title IS NULL OR fleet IS NULL OR seal IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
      MESSAGE = format('no argument of %s() may be null', request.call),
      HINT = 'These functions are for the servers'' own use.';
  END IF;
  IF request.incarnation < 1 OR request.term < 0 OR request.newest < 0 OR request.nonce < 0 OR
     request.acked < 0 OR request.clock_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.highest_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.length_ms NOT BETWEEN 0 AND 8796093022207 OR request.age_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.ahead_ms NOT BETWEEN 0 AND 604800000 OR request.floor_ms NOT BETWEEN 0 AND 8796093022207 OR
     request.until_ms NOT BETWEEN request.floor_ms AND 8796093022207 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('an argument of %s() is out of range', request.call),
      DETAIL = 'Times are milliseconds since 1970, below 2^43; an incarnation is positive.',
      HINT = 'These functions are for the servers'' own use.';
  END IF;
  request.server := snowflake_fleet.speaker();
  PERFORM snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  now_ms := snowflake_fleet.to_ms(clock_timestamp());

  request.proven := proof = snowflake_fleet.sign(format('heard %s %s', request.term, request.newest));
  request.titled := title = snowflake_fleet.title(request.server, request.incarnation, request.region, request.floor_ms, request.until_ms);
  IF fleet <> 0 AND fleet <> own.id THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this is the control database of another fleet',
      DETAIL = format('The server belongs to fleet %s, this is %s.', fleet, own.id),
      HINT = 'Correct "snowflake.fleet" of the server.';
  END IF;
  -- A dump of the first day knows no layout, and its fleet has servers by now.
  IF own.seal IS NULL AND (request.call = 'acquire' OR (request.call = 'renew' AND request.titled)) THEN
    PERFORM snowflake_fleet.adopt_layout(seal);
    own.seal := seal;
  END IF;
  IF own.seal IS DISTINCT FROM seal THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the server''s layout is not the fleet''s',
      DETAIL = format('The fleet has %s, the server %s.', snowflake_fleet.layout_text(own.seal),
                      snowflake_fleet.layout_text(seal)),
      HINT = 'Correct "snowflake.layout", "snowflake.tick" and "snowflake.epoch" of the server.';
  END IF;
  IF request.call <> 'acquire' AND
     NOT EXISTS (SELECT FROM snowflake_fleet.region AS r WHERE r.region = request.region) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('there is no region %s', request.region),
      HINT = 'These functions are for the servers'' own use.';
  END IF;
  UPDATE snowflake_fleet.server AS s SET heard = clock_timestamp() WHERE s.name = request.server;

  SELECT * INTO STRICT place FROM snowflake_fleet.has_moved();
  IF place.moved THEN
    -- What shows that something was lost is kept: nothing_lost() looks at it.
    PERFORM snowflake_fleet.notice(request);
    answer.status := 'halted';
    answer.fleet := own.id;
    answer.clock_ms := now_ms;
    answer.detail := place.detail;
    PERFORM snowflake_fleet.note_answer(request, answer);
    RETURN answer;
  END IF;

  answer := snowflake_fleet.decide(request, now_ms);
  answer.proof := snowflake_fleet.sign(format('heard %s %s', answer.term, answer.number));
  answer.title := snowflake_fleet.title(request.server, request.incarnation, answer.region, answer.floor_ms, answer.until_ms);
  UPDATE snowflake_fleet.region AS r
     SET heard = clock_timestamp(), clock_offset_ms = request.clock_ms - arrived
   WHERE answer.status = 'granted' AND r.region = answer.region;
  answer.detail := CASE answer.status
    WHEN 'full' THEN snowflake_fleet.why_full(request.server)
    WHEN 'halted' THEN 'A server knows of newer grants: the control database is an older copy of itself.'
    WHEN 'clock_ahead' THEN format('The server''s clock is %s ms ahead of the control database''s.',
                                   request.clock_ms - now_ms)
    WHEN 'unproven' THEN 'The server claims to have heard what this database never said, or of another copy of it; a claim that is not signed halts nobody.'
    WHEN 'lost' THEN CASE WHEN request.term <> 0 AND request.term < own.lasting
                          THEN 'The control database was recovered.'
                          ELSE 'The lease was ended, or renewed by a copy of this server''s memory.' END
    END;
  PERFORM snowflake_fleet.note_answer(request, answer);
  RETURN answer;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.ask(snowflake_fleet.request, bigint, bigint, bigint, bigint) IS
  'Internal: checks who asks and where, and decides';

CREATE FUNCTION snowflake_fleet.title(server text, incarnation bigint, region integer, floor_ms bigint, until_ms bigint) RETURNS bigint
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_fleet.sign(format('holds %s %s %s %s %s', incarnation, region, floor_ms, until_ms, server)) $$;
COMMENT ON FUNCTION snowflake_fleet.title(text, bigint, integer, bigint, bigint) IS
  'Internal: the fleet''s signature of what an incarnation holds: what it goes on with after a recovery';

-- Layouts, as src/core/seal.hpp packs them.
CREATE FUNCTION snowflake_fleet.layout_text(seal bigint) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE WHEN seal IS NULL THEN 'none yet' ELSE
    format('%s/%s%s/%s of %s ms since %s', seal / 57500 % 35 + 19,
           CASE WHEN seal / 2300 % 25 <> 0 THEN format('%s+', seal / 2300 % 25) END,
           seal / 92 % 25, seal / 4 % 23, (ARRAY[1, 10, 100, 1000])[seal % 4 + 1],
           to_char(snowflake_fleet.from_ms(seal / 2012500) AT TIME ZONE 'UTC',
                   'YYYY-MM-DD HH24:MI:SS.MS'))
    END
$$;
COMMENT ON FUNCTION snowflake_fleet.layout_text(bigint) IS 'Internal: a packed layout, for people';

CREATE FUNCTION snowflake_fleet.adopt_layout(seal bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  region_bits integer := seal / 2300 % 25;
BEGIN
  IF seal / 57500 % 35 + 19 NOT BETWEEN 20 AND 53 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('%s is no layout', seal),
      HINT = 'These functions are for the servers'' own use.';
  END IF;
  UPDATE snowflake_fleet.fleet AS f SET seal = adopt_layout.seal;
  -- More than a thousand servers and spares nobody has.
  INSERT INTO snowflake_fleet.region (region, until_ms)
  SELECT generate_series(0, (1 << least(region_bits, 10)) - 1), f.fresh_ms FROM snowflake_fleet.fleet AS f;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.adopt_layout(bigint) IS
  'Internal: makes the layout of the first server that of the fleet, with 2^region_bits regions, 1024 at most, which begin '
  'above all that may have been granted before a recovery';

-- For the servers. SECURITY DEFINER, because nobody but these functions writes the tables. The lock first:
-- functions that declare rows of the tables wait for these when they are compiled, and end nobody.

CREATE FUNCTION snowflake_fleet.acquire(fleet bigint, incarnation bigint, term bigint, newest bigint, proof bigint,
                                        nonce bigint, acked bigint, clock_ms bigint, length_ms bigint,
                                        age_ms bigint, ahead_ms bigint, seal bigint)
  RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM snowflake_fleet.take_lock();
  RETURN snowflake_fleet.ask(ROW('acquire', NULL, incarnation, term, newest, NULL, nonce, acked, clock_ms, length_ms,
                                 age_ms, ahead_ms, -1, 0, 0, NULL, 0, 0)::snowflake_fleet.request, proof, 0, fleet, seal);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.acquire(bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint) IS
  'For a server''s worker: a free region, or the one that the incarnation has';

CREATE FUNCTION snowflake_fleet.renew(fleet bigint, incarnation bigint, term bigint, newest bigint, proof bigint,
                                      nonce bigint, acked bigint, clock_ms bigint, length_ms bigint,
                                      age_ms bigint, ahead_ms bigint, seal bigint,
                                      region integer, floor_ms bigint, until_ms bigint, title bigint)
  RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM snowflake_fleet.take_lock();
  RETURN snowflake_fleet.ask(ROW('renew', NULL, incarnation, term, newest, NULL, nonce, acked, clock_ms, length_ms,
                                 age_ms, ahead_ms, region, floor_ms, until_ms, NULL, 0, 0)::snowflake_fleet.request,
                             proof, title, fleet, seal);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.renew(bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, integer, bigint, bigint, bigint) IS
  'For a server''s worker: more time for the region that the incarnation has';

CREATE FUNCTION snowflake_fleet.give_back(fleet bigint, incarnation bigint, term bigint, newest bigint, proof bigint,
                                          seal bigint, region integer, grant_number bigint,
                                          highest_ms bigint)
  RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM snowflake_fleet.take_lock();
  RETURN snowflake_fleet.ask(ROW('give_back', NULL, incarnation, term, newest, NULL, 0, 0, 0, 0, 0, 0, region, 0, 0, NULL,
                                 grant_number, highest_ms)::snowflake_fleet.request, proof, 0, fleet, seal);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.give_back(bigint, bigint, bigint, bigint, bigint, bigint, integer, bigint, bigint) IS
  'For a server''s worker: it issues no id of the region of highest_ms or later';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_fleet FROM PUBLIC;
