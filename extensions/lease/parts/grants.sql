-- The record: which server had which region when, and so which one minted an id. The regions' rows have the present only.
--
-- Kept by a trigger, so that it follows whatever changes a lease. Nothing in it may refuse a grant.

CREATE TABLE snowflake_fleet.grants (
  region integer NOT NULL,
  granted timestamptz NOT NULL,
  server text,
  incarnation bigint,
  client_addr inet,
  ids_from timestamptz NOT NULL,
  ids_until timestamptz NOT NULL,
  heard timestamptz,
  given_back timestamptz,
  evicted timestamptz,
  PRIMARY KEY (region, granted)
);
-- Each grant asks which regions are static, and a server that starts again and again leaves many rows.
CREATE INDEX grants_static ON snowflake_fleet.grants (region) WHERE incarnation IS NULL AND given_back IS NULL;
COMMENT ON TABLE snowflake_fleet.grants IS
  'The record of leases: a row for each time that a server took a region, a server''s start as a rule. Renewals change '
  'the row. Kept until prune_grants()';
COMMENT ON COLUMN snowflake_fleet.grants.granted IS 'When, by this database''s clock';
COMMENT ON COLUMN snowflake_fleet.grants.server IS 'Its role; for a static region what take_out() was told';
COMMENT ON COLUMN snowflake_fleet.grants.incarnation IS
  'One life of the server, as snowflake.lease shows it there; null: the region is static';
COMMENT ON COLUMN snowflake_fleet.grants.client_addr IS
  'Where it asked from last; null: a Unix socket, or the region is static';
COMMENT ON COLUMN snowflake_fleet.grants.ids_from IS 'No id of an earlier time is of this grant';
COMMENT ON COLUMN snowflake_fleet.grants.ids_until IS 'Nor one of this time or later';
COMMENT ON COLUMN snowflake_fleet.grants.heard IS 'When it was granted or renewed last';
COMMENT ON COLUMN snowflake_fleet.grants.given_back IS 'When the server gave it back; of a static region, when put_back() was called';
COMMENT ON COLUMN snowflake_fleet.grants.evicted IS 'When the lease was ended by an operator, or by a recovery of this database';

CREATE TABLE snowflake_fleet.grants_gap (
  ids_from timestamptz NOT NULL,
  ids_until timestamptz NOT NULL,
  why text NOT NULL CHECK (why OPERATOR(pg_catalog.=) ANY (ARRAY['pruned', 'recovered'])),
  at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
COMMENT ON TABLE snowflake_fleet.grants_gap IS
  'Times of ids for which the record may lack grants: those before it was pruned, and those of a recovery of this database';

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_extension
              WHERE extname OPERATOR(pg_catalog.=) 'snowflake_fleet') THEN
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.grants', '');
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.grants_gap', '');
  END IF;
END
$$;

CREATE FUNCTION snowflake_fleet.latest_grant(region integer) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
  AS $$ SELECT max(g.granted) FROM snowflake_fleet.grants AS g WHERE g.region = latest_grant.region $$;
COMMENT ON FUNCTION snowflake_fleet.latest_grant(integer) IS
  'Internal: when a region was granted last: with the region, the key of its newest row in snowflake_fleet.grants';

CREATE FUNCTION snowflake_fleet.record_grant(region integer, server text, incarnation bigint, client_addr inet,
                                             ids_from timestamptz, ids_until timestamptz) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  -- A clock that went back must not put a row before an older one, or two at one time.
  INSERT INTO snowflake_fleet.grants (region, granted, server, incarnation, client_addr, ids_from, ids_until, heard)
  VALUES (region, greatest(clock_timestamp(), snowflake_fleet.latest_grant(region) + interval '1 us'), server, incarnation,
          client_addr, ids_from, ids_until, CASE WHEN incarnation IS NOT NULL THEN clock_timestamp() END)
$$;
COMMENT ON FUNCTION snowflake_fleet.record_grant(integer, text, bigint, inet, timestamptz, timestamptz) IS
  'Internal: adds a row to snowflake_fleet.grants, newer than the others of the region';

CREATE FUNCTION snowflake_fleet.follow_region() RETURNS trigger
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NEW.incarnation <> 0 AND NEW.incarnation <> OLD.incarnation THEN
    PERFORM snowflake_fleet.record_grant(NEW.region, NEW.server, NEW.incarnation, inet_client_addr(),
      snowflake_fleet.from_ms(NEW.floor_ms), snowflake_fleet.from_ms(NEW.until_ms));
  ELSIF NEW.incarnation <> 0 THEN
    UPDATE snowflake_fleet.grants AS g
       SET ids_until = snowflake_fleet.from_ms(NEW.until_ms), heard = clock_timestamp(), client_addr = inet_client_addr()
     WHERE g.region = NEW.region AND g.granted = snowflake_fleet.latest_grant(NEW.region);
  ELSE
    -- A recovery raises the end as well, above all that may have been granted: that was not this holder's.
    UPDATE snowflake_fleet.grants AS g
       SET ids_until = least(g.ids_until, snowflake_fleet.from_ms(NEW.until_ms)),
           given_back = CASE WHEN OLD.incarnation <> 0 AND NEW.given_back THEN clock_timestamp() ELSE g.given_back END,
           evicted = CASE WHEN OLD.incarnation <> 0 AND NOT NEW.given_back THEN clock_timestamp() ELSE g.evicted END
     WHERE g.region = NEW.region AND g.granted = snowflake_fleet.latest_grant(NEW.region) AND g.incarnation IS NOT NULL;
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.follow_region() IS 'Internal: keeps snowflake_fleet.grants as regions change hands';

CREATE TRIGGER follow_region AFTER UPDATE ON snowflake_fleet.region FOR EACH ROW
  WHEN ((OLD.incarnation, OLD.until_ms) IS DISTINCT FROM (NEW.incarnation, NEW.until_ms))
  EXECUTE FUNCTION snowflake_fleet.follow_region();
COMMENT ON TRIGGER follow_region ON snowflake_fleet.region IS 'Keeps the record of leases';

-- What a lost state of this database had granted since its last word is not on record.
CREATE FUNCTION snowflake_fleet.follow_recovery() RETURNS trigger
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  INSERT INTO snowflake_fleet.grants_gap (ids_from, ids_until, why)
  SELECT coalesce(max(g.heard), NEW.founded) - make_interval(secs => NEW.skew_ms / 1000.0),
         (SELECT snowflake_fleet.from_ms(max(r.until_ms)) FROM snowflake_fleet.region AS r), 'recovered'
    FROM snowflake_fleet.grants AS g
  HAVING EXISTS (SELECT FROM snowflake_fleet.region);
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.follow_recovery() IS 'Internal: notes in snowflake_fleet.grants_gap what the record lacks';

CREATE TRIGGER follow_recovery AFTER UPDATE ON snowflake_fleet.fleet FOR EACH ROW
  WHEN (OLD.lasting IS DISTINCT FROM NEW.lasting) EXECUTE FUNCTION snowflake_fleet.follow_recovery();
COMMENT ON TRIGGER follow_recovery ON snowflake_fleet.fleet IS 'Keeps what the record of leases lacks';

CREATE FUNCTION snowflake_fleet.prune_grants(before timestamptz) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  pruned bigint;
BEGIN
  IF before IS NULL OR before > clock_timestamp() THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = '"before" has to be a time that has passed',
      DETAIL = format('It is %s.', coalesce(before::text, 'null')),
      HINT = 'Write it as now() - interval ''2 years''.';
  END IF;
  PERFORM snowflake_fleet.lock_fleet();
  DELETE FROM snowflake_fleet.grants AS g
   WHERE g.ids_until < before
     AND NOT EXISTS (SELECT FROM snowflake_fleet.region AS r
                      WHERE r.region = g.region AND r.incarnation = g.incarnation AND r.incarnation <> 0);
  GET DIAGNOSTICS pruned = ROW_COUNT;
  IF pruned > 0 THEN
    DELETE FROM snowflake_fleet.grants_gap AS gap WHERE gap.ids_until < before OR (gap.why = 'pruned' AND gap.ids_until = before);
    INSERT INTO snowflake_fleet.grants_gap (ids_from, ids_until, why) VALUES ('-infinity', before, 'pruned');
  END IF;
  RETURN pruned;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.prune_grants(timestamptz) IS
  'Deletes from snowflake_fleet.grants what ended before a time: minted_by() knows nothing of those ids any more. '
  'Returns how many rows that were';

CREATE FUNCTION snowflake_fleet.minted_by(id bigint, OUT region integer, OUT made timestamptz, OUT server text,
    OUT incarnation bigint, OUT client_addr inet, OUT granted timestamptz, OUT note text)
  LANGUAGE plpgsql STABLE PARALLEL SAFE STRICT SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  seal CONSTANT bigint := (SELECT f.seal FROM snowflake_fleet.fleet AS f);
  shift CONSTANT integer := (seal / 92 % 25) + (seal / 4 % 23);
  region_bits CONSTANT integer := seal / 2300 % 25;
  width CONSTANT integer := (seal / 57500 % 35 + 19) + region_bits + shift;
  gap snowflake_fleet.grants_gap;
  held snowflake_fleet.grants;
BEGIN
  IF seal IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the fleet has no layout yet',
      DETAIL = 'It is that of the first server that asks for a region, and none has.',
      HINT = 'Ask again when a server has a lease: the view snowflake_fleet.regions shows it.';
  END IF;
  IF id < 0 OR (width < 63 AND id >> width <> 0) THEN
    note := format('It is no id of the fleet''s layout, %s.', snowflake_fleet.layout_text(seal));
    RETURN;
  END IF;
  region := id >> shift & (1 << region_bits) - 1;
  made := snowflake_fleet.from_ms(seal / 2012500
                                  + (id >> shift + region_bits) * (ARRAY[1, 10, 100, 1000])[seal % 4 + 1]);
  SELECT g.* INTO held FROM snowflake_fleet.grants AS g
   WHERE g.region = minted_by.region AND g.ids_from <= made AND made < g.ids_until
     -- A region's first grant has no beginning. Who minted in it before there was a fleet is not known here.
     AND (g.incarnation IS NULL OR
          made >= (SELECT f.founded - make_interval(secs => f.skew_ms / 1000.0) FROM snowflake_fleet.fleet AS f))
   ORDER BY g.granted DESC LIMIT 1;
  SELECT x.* INTO gap FROM snowflake_fleet.grants_gap AS x
   WHERE x.ids_from <= made AND made < x.ids_until ORDER BY x.at DESC LIMIT 1;
  server := held.server;
  incarnation := held.incarnation;
  client_addr := held.client_addr;
  granted := held.granted;
  note := CASE
    -- What was granted since the recovery is known.
    WHEN gap.why = 'recovered' AND (held.region IS NULL OR held.granted <= gap.at) THEN
      format('The control database was recovered at %s: grants of that time may be missing%s.', gap.at,
             CASE WHEN held.region IS NOT NULL THEN ', and this may have ended earlier' END)
    WHEN held.region IS NOT NULL AND held.incarnation IS NULL AND held.given_back IS NULL THEN
      format('The region is static since %s: whoever is configured with it.', held.granted)
    WHEN held.region IS NOT NULL AND held.incarnation IS NULL THEN
      format('The region was static from %s to %s: whoever was configured with it.', held.granted, held.given_back)
    WHEN held.region IS NOT NULL THEN NULL
    WHEN gap.why = 'pruned' THEN format('The record of grants before %s was pruned.', gap.ids_until)
    WHEN made < (SELECT f.founded FROM snowflake_fleet.fleet AS f) THEN 'It is older than the fleet.'
    WHEN made > clock_timestamp() + interval '1 minute' THEN 'Its time is ahead of the clock.'
    ELSE 'Nobody had the region leased then: it was made by make_id(), by a static server, or elsewhere.' END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.minted_by(bigint) IS
  'Which server had the region of an id leased at the id''s time, in which incarnation, from which address: nobody else '
  'of the fleet can have minted it. Whether it was minted at all is not known here. `note` says what is uncertain; null: nothing is';
