-- For the operator: who holds what, and how to end it.

-- Two machines with one role are told apart by the incarnation, and by where they ask from.
CREATE FUNCTION snowflake_fleet.evict(region integer, incarnation bigint DEFAULT NULL) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  held snowflake_fleet.region;
BEGIN
  IF region IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'region must not be null',
      HINT = 'The view snowflake_fleet.regions has them all.';
  END IF;
  PERFORM snowflake_fleet.lock_fleet();
  SELECT r.* INTO held FROM snowflake_fleet.region AS r WHERE r.region = evict.region;
  IF held.incarnation IS NULL OR held.incarnation = 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('nobody holds region %s', region),
      HINT = 'The view snowflake_fleet.regions has those that somebody holds.';
  END IF;
  IF evict.incarnation <> held.incarnation THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('incarnation %s does not hold region %s', evict.incarnation, region),
      DETAIL = format('Incarnation %s of server %s does.', held.incarnation, quote_ident(held.server)),
      HINT = 'Look at the view snowflake_fleet.regions again.';
  END IF;
  PERFORM snowflake_fleet.end_lease(held);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.evict(integer, bigint) IS
  'Ends the lease of a region, if this incarnation holds it where one is named: it is not renewed, and free once its time '
  'is past. The holder may mint until then or until it hears of it, and takes another region. 42704 where nobody holds it';

CREATE FUNCTION snowflake_fleet.end_lease(held snowflake_fleet.region) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM snowflake_fleet.evict_region(held.region);
  RAISE LOG 'snowflake_fleet: server % (incarnation %) is evicted from region %, which is free at %',
    quote_ident(held.server), held.incarnation, held.region, snowflake_fleet.from_ms(held.until_ms);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.end_lease(snowflake_fleet.region) IS 'Internal: evicts a holder, and logs it';

-- Only where no server can have minted. The number of a layout is in ids for ever, so no other fleet may be changed.
CREATE FUNCTION snowflake_fleet.forget_layout() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  used snowflake_fleet.region;
BEGIN
  own := snowflake_fleet.lock_fleet();
  SELECT r.* INTO used FROM snowflake_fleet.region AS r WHERE r.incarnation <> 0 OR r.until_ms <> 0
   ORDER BY r.incarnation = 0, r.region LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_in_use',
      MESSAGE = 'somebody may have minted with this layout',
      DETAIL = format('%s, %s region %s until %s.', snowflake_fleet.layout_text(own.seal),
        CASE WHEN used.incarnation <> 0 THEN format('and server %s holds', quote_ident(used.server))
             ELSE format('and server %s had', coalesce(quote_ident(used.server), '?')) END,
        used.region, snowflake_fleet.from_ms(used.until_ms)),
      HINT = CASE WHEN used.incarnation <> 0 THEN 'Stop that server first: it gives its region back.'
                  ELSE 'Keep the layout; or make a new fleet, for databases without ids of this one.' END;
  END IF;
  DELETE FROM snowflake_fleet.region;
  UPDATE snowflake_fleet.fleet AS f SET seal = NULL;
  RAISE LOG 'snowflake_fleet: the layout % is forgotten; the next server that asks settles it',
    snowflake_fleet.layout_text(own.seal);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.forget_layout() IS
  'Where the first server that asked had the wrong layout, tick or epoch and has given its region back without minting: '
  'the next one that asks settles them. 55006 where somebody may have minted';

-- Views

CREATE VIEW snowflake_fleet.regions AS
  SELECT r.region,
         CASE WHEN r.incarnation OPERATOR(pg_catalog.<>) 0 THEN r.server END AS holder,
         CASE WHEN r.until_ms OPERATOR(pg_catalog.>) 0 THEN snowflake_fleet.from_ms(r.until_ms) END AS until,
         CASE WHEN r.incarnation OPERATOR(pg_catalog.<>) 0 THEN r.since END AS since,
         CASE WHEN r.incarnation OPERATOR(pg_catalog.<>) 0 THEN r.heard END AS heard,
         CASE WHEN r.incarnation OPERATOR(pg_catalog.<>) 0
              THEN pg_catalog.make_interval(secs =>
                     r.clock_offset_ms::double precision OPERATOR(pg_catalog./) 1000) END AS clock_offset,
         NOT g.static AND snowflake_fleet.free_from(r.*) OPERATOR(pg_catalog.<=)
           snowflake_fleet.to_ms(pg_catalog.clock_timestamp()) AS free,
         NULLIF(r.incarnation, 0) AS incarnation,
         CASE WHEN r.incarnation OPERATOR(pg_catalog.<>) 0 THEN g.client_addr END AS client_addr,
         g.static
    FROM snowflake_fleet.region AS r
    CROSS JOIN LATERAL (
      SELECT EXISTS (SELECT FROM snowflake_fleet.grants AS x
                      WHERE x.region OPERATOR(pg_catalog.=) r.region AND x.incarnation IS NULL AND x.given_back IS NULL) AS static,
             (SELECT x.client_addr FROM snowflake_fleet.grants AS x
               WHERE x.region OPERATOR(pg_catalog.=) r.region AND x.incarnation OPERATOR(pg_catalog.=) r.incarnation
                 AND x.granted OPERATOR(pg_catalog.=) snowflake_fleet.latest_grant(r.region)) AS client_addr) AS g;
COMMENT ON VIEW snowflake_fleet.regions IS
  'Regions: who holds each, until when and since when; when the holder was last heard of, how far its '
  'clock was ahead then; whether the region can be granted to somebody else; which life of the server holds it, as '
  'snowflake.lease shows it there, and where that asked from; whether the region was taken out of the pool';

CREATE VIEW snowflake_fleet.servers AS
  SELECT s.name AS server, s.enrolled, s.retired, s.heard,
         ARRAY(SELECT r.region FROM snowflake_fleet.regions AS r
                WHERE r.holder OPERATOR(pg_catalog.=) s.name ORDER BY r.region) AS regions,
         ARRAY(SELECT r.incarnation FROM snowflake_fleet.regions AS r
                WHERE r.holder OPERATOR(pg_catalog.=) s.name ORDER BY r.region) AS incarnations,
         ARRAY(SELECT r.client_addr FROM snowflake_fleet.regions AS r
                WHERE r.holder OPERATOR(pg_catalog.=) s.name ORDER BY r.region) AS client_addrs,
         s.pool, f.refused, f.refused_since
    FROM snowflake_fleet.server AS s
    LEFT JOIN LATERAL (
      SELECT x.cause AS refused, x.since AS refused_since FROM snowflake_fleet.refusal AS x
       WHERE x.server OPERATOR(pg_catalog.=) s.name AND x.since IS NOT NULL
       ORDER BY x.last DESC LIMIT 1) AS f ON true;
COMMENT ON VIEW snowflake_fleet.servers IS
  'Servers: when each was enrolled, retired, last heard of; the regions that it and its clones hold, and in the same order '
  'which incarnations hold them and where these asked from; its pool; why it was refused and since when, if it still is';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_fleet FROM PUBLIC;
