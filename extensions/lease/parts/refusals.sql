-- Refusals: told in this database's log, with the reason, which the views have as well.
--
-- An error undoes what its transaction wrote, so it is in the log alone, where PostgreSQL puts it.

CREATE TABLE snowflake_fleet.refusal (
  server text NOT NULL,
  cause text NOT NULL,
  since timestamptz,
  last timestamptz NOT NULL,
  times bigint NOT NULL,
  logged timestamptz,
  PRIMARY KEY (server, cause)
);
COMMENT ON TABLE snowflake_fleet.refusal IS
  'Answers that granted nothing, by server and cause: full, halted, clock_ahead, unproven, lost; to be changed by the functions only';
COMMENT ON COLUMN snowflake_fleet.refusal.since IS 'When the refusals that go on began; null: it was granted a region since';
COMMENT ON COLUMN snowflake_fleet.refusal.times IS 'How often since the fleet was made';
COMMENT ON COLUMN snowflake_fleet.refusal.logged IS 'When the log last had a line of it: one a minute at most';

CREATE FUNCTION snowflake_fleet.note_refusal(asks text, why text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  now CONSTANT timestamptz := clock_timestamp();
  due boolean;
BEGIN
  INSERT INTO snowflake_fleet.refusal AS f (server, cause, since, last, times, logged)
  VALUES (asks, why, now, now, 1, NULL)
  ON CONFLICT (server, cause) DO UPDATE
    SET since = coalesce(f.since, now), last = now, times = f.times + 1;
  -- A clock that went back is no reason to be silent.
  UPDATE snowflake_fleet.refusal AS f SET logged = now
   WHERE f.server = asks AND f.cause = why
     AND (f.logged IS NULL OR f.logged NOT BETWEEN now - interval '1 minute' AND now)
  RETURNING true INTO due;
  RETURN due IS TRUE;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.note_refusal(text, text) IS
  'Internal: counts an answer that granted nothing; returns whether the log is to have a line of it';

CREATE FUNCTION snowflake_fleet.note_answer(request snowflake_fleet.request, answer snowflake_fleet.answer) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  log boolean := request.call <> 'renew' OR answer.grant_number = answer.number;   -- goes on after a recovery
  region CONSTANT integer := greatest(answer.region, request.region);
BEGIN
  IF answer.status = 'granted' THEN
    UPDATE snowflake_fleet.refusal AS f SET since = NULL WHERE f.server = request.server AND f.since IS NOT NULL;
  ELSIF answer.status NOT IN ('given_back', 'term_over') THEN
    log := snowflake_fleet.note_refusal(request.server, answer.status);
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
COMMENT ON FUNCTION snowflake_fleet.note_answer(snowflake_fleet.request, snowflake_fleet.answer) IS
  'Internal: logs what a server was told: grants of regions, and refusals, of these one a minute for each server and cause';
