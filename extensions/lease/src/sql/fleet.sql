-- The table "fleet" with its single row, and the functions that create, lock, check and change the row.

CREATE SCHEMA snowflake_fleet;
COMMENT ON SCHEMA snowflake_fleet IS
  'The lease server of a fleet: grants each server of the fleet the right to mint snowflake ids in a region';

-- Times are ms since 1970.
CREATE TABLE snowflake_fleet.fleet (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id bigint NOT NULL CHECK (id > 0),             -- a random number that identifies the fleet
  -- A new term begins when an administrator calls confirm_data_loss() or confirm_no_data_loss(). The upper bits of
  -- `term` are the time of this call, and the lower 20 bits are random.
  term bigint NOT NULL,
  newest bigint NOT NULL DEFAULT 0,              -- number of the newest answer
  -- newest_ms is the latest time of a request. If the clocks of the server and of the lease server differ, the earlier
  -- of the two times counts.
  newest_ms bigint NOT NULL DEFAULT 0,
  longest_ms bigint NOT NULL CHECK (longest_ms > 0),  -- the longest lease of a region, plus max_lead of create_fleet()
  skew_ms bigint NOT NULL CHECK (skew_ms > 0),   -- how far the clock of a server may be ahead of this database's clock
  halted boolean NOT NULL DEFAULT false,         -- true if a server has a lease that this database lacks
  halted_by text,                                -- that server
  reported_term bigint NOT NULL DEFAULT 0,       -- the greatest value of `term` in the requests of servers
  began bigint NOT NULL DEFAULT 0,               -- `newest` when the term began
  lasting bigint NOT NULL,                       -- leases of an older `term` cannot be renewed
  -- A server may renew a lease from before confirm_data_loss() only if the lease ends after the time adopt_ms. If
  -- adopt_ms is 0, no server may renew a lease from before confirm_data_loss().
  adopt_ms bigint NOT NULL DEFAULT 0,
  -- confirm_data_loss() sets the time fresh_ms. The time fresh_ms is the latest possible end of a lease that this
  -- database has lost. If a region has no row in the table "region", the first lease of the region begins at fresh_ms.
  fresh_ms bigint NOT NULL DEFAULT 0,
  -- The column seal contains the bit layout, time unit (tick) and epoch of ids as one number. The column seal is null
  -- until the first request of a server sets the id layout of the fleet.
  seal bigint,
  -- The columns system_identifier, timeline, database and directory contain the result of whereabouts() when the lease
  -- server last sent an answer. If whereabouts() later returns another result, the lease server detects that the
  -- database was copied.
  system_identifier bigint NOT NULL DEFAULT 0,
  timeline integer NOT NULL DEFAULT 0,
  database oid NOT NULL DEFAULT 0,
  directory timestamptz,
  region_rows bigint NOT NULL DEFAULT 0,         -- how many rows the table `region` has
  signature bigint NOT NULL DEFAULT 0            -- detects manual changes of the row, see signature_of()
);
COMMENT ON TABLE snowflake_fleet.fleet IS
  'The state of the lease server, in one row. Only functions of the schema snowflake_fleet may change this table';

CREATE FUNCTION snowflake_fleet.to_ms(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT pg_catalog.floor(pg_catalog.date_part('epoch', at) OPERATOR(pg_catalog.*) 1000)::bigint $$;
COMMENT ON FUNCTION snowflake_fleet.to_ms(timestamptz) IS 'Internal: converts a time to milliseconds since 1970';

CREATE FUNCTION snowflake_fleet.from_ms(ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT pg_catalog.to_timestamp(ms::double precision OPERATOR(pg_catalog./) 1000) $$;
COMMENT ON FUNCTION snowflake_fleet.from_ms(bigint) IS 'Internal: converts milliseconds since 1970 to a time';

CREATE FUNCTION snowflake_fleet.random_number() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
  AS $$
  SELECT ('x' OPERATOR(pg_catalog.||) pg_catalog.right(pg_catalog.gen_random_uuid()::text, 12))::bit(48)::bigint
    OPERATOR(pg_catalog.+) 1
$$;
COMMENT ON FUNCTION snowflake_fleet.random_number() IS
  'Internal: returns a random number from 1 to 2^48, from a cryptographic source';

-- The function lock_fleet() needs READ COMMITTED, because a caller that has waited for the lock must see the changes of
-- the previous lock holder. It takes a table lock, because the view pg_locks shows table locks, but no row locks.
CREATE FUNCTION snowflake_fleet.lock_fleet() RETURNS snowflake_fleet.fleet
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fleet snowflake_fleet.fleet;
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction', MESSAGE = 'the lease server is a standby',
      HINT = 'Connect to the primary server. '
             'In "snowflake.lease_conninfo", list all hosts, and add target_session_attrs=read-write.';
  END IF;
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_transaction_state',
      MESSAGE = 'leases can be requested only in READ COMMITTED transactions',
      DETAIL = format('The isolation level of this transaction is %s.',
                      upper(current_setting('transaction_isolation'))),
      HINT = 'Set "default_transaction_isolation" to "read committed" for the server''s role.';
  END IF;
  LOCK TABLE snowflake_fleet.fleet IN EXCLUSIVE MODE;
  SELECT f.* INTO fleet FROM snowflake_fleet.fleet AS f;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'the fleet does not exist yet',
      HINT = 'Run snowflake_fleet.add_server() for each server.';
  END IF;
  RETURN fleet;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.lock_fleet() IS
  'Internal: locks the row of the table fleet, and returns the row. Each function that changes servers, regions or '
  'leases calls lock_fleet() first';

-- If a crash of the lease server lost a granted lease, two servers could lease the same region.
CREATE FUNCTION snowflake_fleet.require_durability() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
  IF pg_catalog.current_setting('fsync') OPERATOR(pg_catalog.=) 'off' OR
     pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'a crash of the lease server could lose granted leases',
      DETAIL = pg_catalog.format('"fsync" is %s, "synchronous_commit" is %s.', pg_catalog.current_setting('fsync'),
                                 pg_catalog.current_setting('synchronous_commit')),
      HINT = 'Set "fsync" and "synchronous_commit" to on in the lease server.';
  END IF;
  -- The commit of a lease must wait for synchronous standbys. The setting synchronous_commit is changed by
  -- set_config(), because a SET clause of the function would end before the commit.
  IF pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) ANY (ARRAY['local', 'remote_write']) THEN
    PERFORM pg_catalog.set_config('synchronous_commit', 'on', true);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_durability() IS
  'Internal: sets synchronous_commit to on, and raises an error (55000) if a crash could still lose a commit';

CREATE FUNCTION snowflake_fleet.require_clock(own snowflake_fleet.fleet, now_ms bigint) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF now_ms + own.skew_ms < own.newest_ms THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the clock of the lease server is behind the newest recorded time',
      DETAIL = format('The time of the call is %s. The last request of a server was at %s.',
                      snowflake_fleet.from_ms(now_ms), snowflake_fleet.from_ms(own.newest_ms)),
      HINT = 'Correct the clock of the lease server, and run the call again.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_clock(snowflake_fleet.fleet, bigint) IS
  'Internal: raises an error (55000) if the time of a call is more than max_skew before the newest time that this '
  'database has recorded';

CREATE FUNCTION snowflake_fleet.replace_fleet(longest_ms bigint, skew_ms bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  used record;
BEGIN
  PERFORM snowflake_fleet.lock_fleet(), snowflake_fleet.require_settled();
  SELECT r.* INTO used FROM snowflake_fleet.region AS r WHERE r.incarnation <> 0 OR r.until_ms <> 0
   ORDER BY r.until_ms DESC LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = 'the fleet has granted leases and cannot be replaced',
      DETAIL = format('The last lease, of region %s, ends at %s. '
                      'After the first lease, the settings of a fleet cannot change. '
                      'After a restore, this database relies on the recorded maximum length of leases.',
                      used.region, snowflake_fleet.from_ms(used.until_ms)),
      HINT = 'For shorter leases, set "snowflake.lease" of the servers. '
             'If no server has minted, you can also wait until all leases have ended, run DROP EXTENSION '
             'snowflake_fleet, and create the fleet again.';
  END IF;
  DELETE FROM snowflake_fleet.region;
  -- Replaces the id of the fleet, so that servers reject a lease server that is restored from an earlier dump. The
  -- maximum length of leases (longest_ms) in the dump may be less than the new maximum.
  UPDATE snowflake_fleet.fleet AS f
     SET id = snowflake_fleet.random_number(), longest_ms = replace_fleet.longest_ms, skew_ms = replace_fleet.skew_ms,
         seal = NULL;
  PERFORM snowflake_fleet.sign_rows();
END
$$;
COMMENT ON FUNCTION snowflake_fleet.replace_fleet(bigint, bigint) IS
  'Internal: creates a new fleet in place of a fleet without leases. Raises an error (55006) if the fleet has granted '
  'a lease';

CREATE FUNCTION snowflake_fleet.create_fleet(lease interval DEFAULT '1 hour', max_lead interval DEFAULT '1 minute',
                                             max_skew interval DEFAULT '10 seconds') RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  lease_ms bigint := floor(extract(epoch FROM lease) * 1000);
  lead_ms bigint := floor(extract(epoch FROM max_lead) * 1000);
  new_skew_ms bigint := floor(extract(epoch FROM max_skew) * 1000);
  began bigint := (snowflake_fleet.to_ms(clock_timestamp()) << 20) | (snowflake_fleet.random_number() & 1048575);
BEGIN
  IF (lease_ms BETWEEN 1000 AND 604800000 AND lead_ms BETWEEN 0 AND 60000 AND new_skew_ms > 0
      AND new_skew_ms * 3 < lease_ms) IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'lease, max_lead or max_skew is out of range',
      DETAIL = format(
        'lease is %s (1 second to 7 days), max_lead %s (0 to 1 minute), max_skew %s (less than a third of the lease).',
        coalesce(lease::text, 'null'), coalesce(max_lead::text, 'null'), coalesce(max_skew::text, 'null')),
      HINT = 'Pass the greatest lease, max_lead and max_skew that any server of the fleet will use.';
  END IF;
  INSERT INTO snowflake_fleet.fleet (id, term, lasting, longest_ms, skew_ms)
  VALUES (snowflake_fleet.random_number(), began, began, lease_ms + lead_ms, new_skew_ms)
  ON CONFLICT (one) DO NOTHING;
  IF NOT FOUND THEN
    PERFORM snowflake_fleet.replace_fleet(lease_ms + lead_ms, new_skew_ms);
  ELSE
    PERFORM snowflake_fleet.settle_here();
  END IF;
  RETURN format('Leases last up to %s. The next server that requests a lease sets the layout of the fleet.', lease);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.create_fleet(interval, interval, interval) IS
  'Creates the fleet. The arguments are the longest lease, the longest lead (max_lead) and the greatest difference of '
  'clocks (max_skew) that a server may use. If there is no fleet, add_server() creates a fleet with the defaults. '
  'Until a server has a lease, you can call create_fleet() again. Each call creates a new fleet without an id layout';
