-- Regions of static servers: taken out of the pool and put back. A static region is a grant without an end.

CREATE FUNCTION snowflake_fleet.is_static(region integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT EXISTS (SELECT FROM snowflake_fleet.grants AS g
                  WHERE g.region = is_static.region AND g.incarnation IS NULL AND g.given_back IS NULL)
$$;
COMMENT ON FUNCTION snowflake_fleet.is_static(integer) IS 'Internal: whether the region was taken out of the pool';

CREATE FUNCTION snowflake_fleet.check_regions(regions int4range) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  count CONSTANT integer := (SELECT nullif(count(*), 0) FROM snowflake_fleet.region);
BEGIN
  IF regions IS NULL OR isempty(regions) OR lower_inf(regions) OR upper_inf(regions) OR
     lower(regions) < 0 OR upper(regions) > coalesce(count, 1024) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('there are no such regions: %s', coalesce(regions::text, 'null')),
      DETAIL = CASE WHEN count IS NULL THEN 'A fleet has 1024 regions at most.'
                    ELSE format('The fleet has regions 0 to %s.', count - 1) END,
      HINT = 'Write one region as ''[3,3]'', several as ''[3,5]''.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_regions(int4range) IS 'Internal: refuses a range of regions that the layout does not have';

CREATE FUNCTION snowflake_fleet.take_out(regions int4range, server text DEFAULT NULL) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  busy snowflake_fleet.region;
  now_ms bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM snowflake_fleet.fleet) THEN
    PERFORM snowflake_fleet.create_fleet();
  END IF;
  own := snowflake_fleet.lock_fleet();
  PERFORM snowflake_fleet.check_regions(regions);
  now_ms := snowflake_fleet.to_ms(clock_timestamp());
  -- A static server begins at its own clock, which may be behind this one.
  SELECT r.* INTO busy FROM snowflake_fleet.region AS r
   WHERE r.region <@ regions AND NOT snowflake_fleet.is_static(r.region)
     AND (r.incarnation <> 0 OR r.until_ms + own.skew_ms >= now_ms) ORDER BY r.until_ms DESC LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_in_use',
      MESSAGE = format('region %s is not free', busy.region),
      DETAIL = format('%s Its ids may be of times up to %s, and clocks %s ms apart.',
        CASE WHEN busy.incarnation <> 0 THEN format('Server %s holds it.', quote_ident(busy.server))
             ELSE 'Nobody holds it.' END,
        snowflake_fleet.from_ms(busy.until_ms), own.skew_ms),
      HINT = CASE WHEN busy.incarnation <> 0
        THEN format('Choose another one; or run snowflake_fleet.evict(%s), and ask again when the lease has ended.',
                    busy.region)
        ELSE format('Choose another one, or ask again after %s.',
                    snowflake_fleet.from_ms(busy.until_ms + own.skew_ms)) END;
  END IF;
  PERFORM snowflake_fleet.record_grant(n, take_out.server, NULL, NULL,
            coalesce(snowflake_fleet.from_ms(nullif(r.until_ms, 0)), '-infinity'), 'infinity')
     FROM generate_series(lower(regions), upper(regions) - 1) AS n LEFT JOIN snowflake_fleet.region AS r ON r.region = n
    WHERE NOT snowflake_fleet.is_static(n);
  RAISE LOG 'snowflake_fleet: regions % are taken out of the pool', regions;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.take_out(int4range, text) IS
  'Takes regions out of the pool, for servers that set snowflake.region themselves; `server` is for the record. Before '
  'the first lease or later. 55006 where a region is held, or was so lately that its ids may be ahead of another clock';

CREATE FUNCTION snowflake_fleet.put_back(regions int4range, max_lead interval DEFAULT '1 minute',
                                         reserve interval DEFAULT '1 second') RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  wrong integer;
  free timestamptz;
BEGIN
  IF max_lead IS NULL OR reserve IS NULL OR max_lead < interval '0' OR reserve < interval '0' OR
     max_lead > interval '1 day' OR reserve > interval '1 hour' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'max_lead or reserve is out of range',
      DETAIL = format('They are %s (0 to 1 day) and %s (0 to 1 hour).', coalesce(max_lead::text, 'null'),
                      coalesce(reserve::text, 'null')),
      HINT = 'Give "snowflake.max_lead" and "snowflake.reserve" of the server that had the regions.';
  END IF;
  own := snowflake_fleet.lock_fleet();
  PERFORM snowflake_fleet.check_regions(regions);
  -- Regions that are made later begin with nothing: what the static servers minted would not be known then.
  IF NOT EXISTS (SELECT FROM snowflake_fleet.region) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the fleet has no layout yet',
      DETAIL = 'It is that of the first server that asks for a region, and none has.',
      HINT = 'Start a server with leases first.';
  END IF;
  SELECT min(n) INTO wrong FROM generate_series(lower(regions), upper(regions) - 1) AS n
   WHERE NOT snowflake_fleet.is_static(n);
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('region %s is not static', wrong),
      HINT = 'The view snowflake_fleet.regions has those that are.';
  END IF;
  free := clock_timestamp() + max_lead + reserve + make_interval(secs => own.skew_ms / 1000.0);
  UPDATE snowflake_fleet.region AS r
     SET floor_ms = greatest(r.floor_ms, r.until_ms, snowflake_fleet.to_ms(free) + 1),
         until_ms = greatest(r.floor_ms, r.until_ms, snowflake_fleet.to_ms(free) + 1), given_back = false,
         grant_number = snowflake_fleet.next_number()   -- leases of before it was static are over
   WHERE r.region <@ regions;
  UPDATE snowflake_fleet.grants AS g
     SET ids_until = coalesce((SELECT snowflake_fleet.from_ms(r.floor_ms) FROM snowflake_fleet.region AS r
                                WHERE r.region = g.region), free),
         given_back = clock_timestamp()
   WHERE g.region <@ regions AND g.incarnation IS NULL AND g.given_back IS NULL;
  RAISE LOG 'snowflake_fleet: regions % are put back, free at %', regions, free;
  RETURN (SELECT max(g.ids_until) FROM snowflake_fleet.grants AS g
           WHERE g.region <@ regions AND g.granted = snowflake_fleet.latest_grant(g.region));
END
$$;
COMMENT ON FUNCTION snowflake_fleet.put_back(int4range, interval, interval) IS
  'Puts static regions back into the pool, when their servers have stopped minting in them for good. They are free, and '
  'their ids begin, at the time that is returned: max_lead, reserve and the fleet''s max_skew from now, for no id is '
  'further ahead. 55000 where a region is not static';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_fleet FROM PUBLIC;
