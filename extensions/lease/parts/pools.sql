-- Pools: which regions a server may be granted. Static regions belong to servers that do not ask, and are in nobody's.

CREATE FUNCTION snowflake_fleet.regions_for(server text) RETURNS SETOF snowflake_fleet.region
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT r.*
    FROM snowflake_fleet.region AS r
    LEFT JOIN snowflake_fleet.server AS s ON s.name = regions_for.server
   WHERE NOT snowflake_fleet.is_static(r.region)
     AND CASE WHEN s.pool IS NOT NULL THEN r.region <@ s.pool
              ELSE NOT EXISTS (SELECT FROM snowflake_fleet.server AS other
                                WHERE other.pool @> r.region) END
$$;
COMMENT ON FUNCTION snowflake_fleet.regions_for(text) IS
  'Internal: the regions that a server may be granted: those of its pool, or those that are in nobody''s';

-- Who holds what until when, for an error that a server's users will read.
CREATE FUNCTION snowflake_fleet.holders(server text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT string_agg(format('%s %s until %s', r.region,
           CASE WHEN r.incarnation <> 0 THEN 'held by ' || quote_ident(r.server)
                WHEN r.server IS NULL THEN 'kept'
                ELSE 'last held by ' || quote_ident(r.server) END,
           to_char(snowflake_fleet.from_ms(r.until_ms), 'YYYY-MM-DD HH24:MI:SSOF')), ', '
           ORDER BY r.until_ms, r.region)
    FROM (SELECT * FROM snowflake_fleet.regions_for(holders.server) ORDER BY until_ms, region LIMIT 8) AS r
$$;
COMMENT ON FUNCTION snowflake_fleet.holders(text) IS
  'Internal: of the regions that a server may be granted, those that get free first, as text; null where there are none';

CREATE FUNCTION snowflake_fleet.why_full(server text) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  held CONSTANT text := snowflake_fleet.holders(server);
  pool CONSTANT int4range := (SELECT s.pool FROM snowflake_fleet.server AS s WHERE s.name = why_full.server);
BEGIN
  RETURN CASE
    WHEN pool IS NOT NULL AND held IS NULL
      THEN format('Pool %s of server %s has no region that is leased.', pool, quote_ident(server))
    WHEN pool IS NOT NULL THEN format('Pool %s of server %s: %s.', pool, quote_ident(server), held)
    WHEN held IS NULL
      THEN format('Every region is static or in another server''s pool, and server %s has no pool.', quote_ident(server))
    ELSE format('Regions: %s.', held)
    END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.why_full(text) IS
  'Internal: why a server is granted no region now: names its pool, and who holds what until when';

CREATE FUNCTION snowflake_fleet.tell_of_strangers() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  stranger snowflake_fleet.region;
BEGIN
  FOR stranger IN
    SELECT r.* FROM snowflake_fleet.region AS r
     WHERE r.incarnation <> 0
       AND NOT EXISTS (SELECT FROM snowflake_fleet.regions_for(r.server) AS own WHERE own.region = r.region)
     ORDER BY r.region
  LOOP
    RAISE WARNING USING
      MESSAGE = format('server %s holds region %s, which is not in its pool', quote_ident(stranger.server), stranger.region),
      DETAIL = format('It was granted before, is renewed, and ends at %s at the earliest.',
                      snowflake_fleet.from_ms(stranger.until_ms)),
      HINT = format('Run snowflake_fleet.evict(%s) to have it take another one.', stranger.region);
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.tell_of_strangers() IS
  'Behind snowflake_fleet.enroll: warns of servers that hold regions which they would not be granted now';

REVOKE ALL ON FUNCTION snowflake_fleet.regions_for(text), snowflake_fleet.holders(text), snowflake_fleet.why_full(text),
  snowflake_fleet.tell_of_strangers() FROM PUBLIC;
