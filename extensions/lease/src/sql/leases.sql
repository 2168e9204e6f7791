-- The tables of leased regions and static regions, and the types and functions for a single lease.

CREATE TABLE snowflake_fleet.region (
  region integer PRIMARY KEY CHECK (region >= 0),
  server text REFERENCES snowflake_fleet.server, -- the server to which the region belongs; null: no server
  -- The state "given_back" is also the state of a region that was never leased. The state "lost" means that this
  -- database may lack the newest lease of the region. After confirm_data_loss(), the server that has the newest lease
  -- of a lost region may renew the lease only if fleet.adopt_ms permits this.
  state text NOT NULL DEFAULT 'given_back'
    CHECK (state OPERATOR(pg_catalog.=) ANY (ARRAY['given_back', 'held', 'revoked', 'lost'])),
  floor_ms bigint NOT NULL DEFAULT 0,            -- floor_ms decreases only after confirm_data_loss()
  -- until_ms decreases only when a server gives its lease back, and in confirm_dead().
  until_ms bigint NOT NULL DEFAULT 0 CHECK (until_ms >= floor_ms),
  -- The column incarnation identifies the run of the postmaster that holds the lease.
  incarnation bigint NOT NULL DEFAULT 0 CHECK ((incarnation <> 0) = (state = 'held')),
  grant_number bigint NOT NULL DEFAULT 0,
  nonce bigint NOT NULL DEFAULT 0,
  since timestamptz,
  last_request timestamptz,
  clock_offset_ms bigint,                        -- the server's clock minus the lease server's
  client_addr inet,                              -- client address of the last request; null: a Unix socket
  signature bigint NOT NULL DEFAULT 0            -- as in snowflake_fleet.fleet
);
COMMENT ON TABLE snowflake_fleet.region IS
  'The regions of the fleet, and the servers that hold the leases of the regions (holders). All ids that the holder '
  'of a lease mints have times from floor_ms to before until_ms. The row of a region is created when a server first '
  'requests the region';

-- The table static_region contains the regions that servers use without a lease (static regions), as reported by the
-- servers. A dump does not contain the table static_region.
CREATE TABLE snowflake_fleet.static_region (
  region integer NOT NULL,
  incarnation bigint NOT NULL,
  server text NOT NULL,
  client_addr inet,
  since timestamptz NOT NULL,                    -- the time of the first report of this server run (incarnation)
  last_request timestamptz NOT NULL,
  PRIMARY KEY (region, incarnation)
);
COMMENT ON TABLE snowflake_fleet.static_region IS
  'The servers that have their region from the setting snowflake.region. Each run of a server has its own row. A '
  'server with a static region reports the region every 10 seconds, and holds no lease';

-- struct LeaseRequest, struct LeaseAnswer
CREATE TYPE snowflake_fleet.request AS (
  call text, server text, incarnation bigint, term bigint, newest bigint, nonce bigint, acked bigint, clock_ms bigint,
  length_ms bigint, age_ms bigint, regions integer[], region integer, floor_ms bigint, until_ms bigint,
  grant_number bigint, highest_ms bigint);
COMMENT ON TYPE snowflake_fleet.request IS
  'The request of a server to the lease server. The field `call` of the request is acquire, renew, give_back or report';

CREATE TYPE snowflake_fleet.answer AS (
  status text, fleet bigint, term bigint, number bigint, region integer, grant_number bigint, floor_ms bigint,
  until_ms bigint, clock_ms bigint, detail text);
COMMENT ON TYPE snowflake_fleet.answer IS
  'The lease server''s answer to a request. The field `status` of the answer is granted, given_back, lost, full, '
  'halted, clock_ahead, term_over, taken or registered';

CREATE FUNCTION snowflake_fleet.lease_text(held snowflake_fleet.region) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('region %s of server %s until %s%s', held.region, coalesce(quote_ident(held.server), '?'),
                snowflake_fleet.from_ms(held.until_ms),
           CASE WHEN held.incarnation <> 0
                THEN format(' (incarnation %s, address %s)', held.incarnation,
                            coalesce(host(held.client_addr), 'local')) END)
$$;
COMMENT ON FUNCTION snowflake_fleet.lease_text(snowflake_fleet.region) IS
  'Internal: returns a text that describes a lease';

CREATE FUNCTION snowflake_fleet.end_lease(held snowflake_fleet.region) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE snowflake_fleet.region AS r SET incarnation = 0, state = 'revoked' WHERE r.region = held.region;
  RAISE LOG 'snowflake_fleet: revoked the lease of %', snowflake_fleet.lease_text(held);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.end_lease(snowflake_fleet.region) IS
  'Internal: revokes a lease, and writes to the log that the lease was revoked';

CREATE FUNCTION snowflake_fleet.free_from(r snowflake_fleet.region) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT CASE r.state WHEN 'given_back' THEN r.until_ms OPERATOR(pg_catalog.-) 10000
                            ELSE r.until_ms END $$;
COMMENT ON FUNCTION snowflake_fleet.free_from(snowflake_fleet.region) IS
  'Internal: returns the time, in ms since 1970, from which the region may be leased again';
