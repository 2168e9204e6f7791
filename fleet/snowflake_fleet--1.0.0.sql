/* snowflake_fleet--1.0.0.sql */

\echo Use "CREATE EXTENSION snowflake_fleet" to load this file. \quit

-- The fleet: one row, and the one lock that everything here takes first.

CREATE SCHEMA snowflake_fleet;
COMMENT ON SCHEMA snowflake_fleet IS
  'Control database of a fleet of servers that mint snowflake ids';

CREATE TABLE snowflake_fleet.fleet (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id bigint NOT NULL CHECK (id > 0),
  founded timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  term bigint NOT NULL,
  newest bigint NOT NULL DEFAULT 0,
  longest_ms bigint NOT NULL CHECK (longest_ms > 0),
  skew_ms bigint NOT NULL CHECK (skew_ms > 0),
  halted boolean NOT NULL DEFAULT false,
  heard_term bigint NOT NULL DEFAULT 0,
  began bigint NOT NULL DEFAULT 0,
  lasting bigint NOT NULL,
  lost_number bigint NOT NULL DEFAULT 0,
  adopt_ms bigint NOT NULL DEFAULT 0,
  ahead_ms bigint NOT NULL DEFAULT 0,
  seal bigint,
  secret bytea NOT NULL DEFAULT pg_catalog.uuid_send(pg_catalog.gen_random_uuid())
    OPERATOR(pg_catalog.||) pg_catalog.uuid_send(pg_catalog.gen_random_uuid()),
  system_identifier bigint NOT NULL,
  timeline integer NOT NULL,
  database oid NOT NULL,
  fleet_table oid NOT NULL,
  directory timestamptz
);
COMMENT ON TABLE snowflake_fleet.fleet IS 'The fleet; to be changed by the functions only';
COMMENT ON COLUMN snowflake_fleet.fleet.id IS 'Drawn at random; servers remember it';
COMMENT ON COLUMN snowflake_fleet.fleet.term IS
  'When the fleet was made, or recovered() or nothing_lost() was last said: ms since 1970, times 2^20, and 20 random bits';
COMMENT ON COLUMN snowflake_fleet.fleet.newest IS 'Number of the newest answer';
COMMENT ON COLUMN snowflake_fleet.fleet.longest_ms IS
  'No grant is longer: the longest snowflake.lease and snowflake.max_lead, in ms';
COMMENT ON COLUMN snowflake_fleet.fleet.skew_ms IS
  'How far a server''s clock may be ahead of this database''s, in ms';
COMMENT ON COLUMN snowflake_fleet.fleet.halted IS
  'A server knew more than this database: nothing is granted before recovered()';
COMMENT ON COLUMN snowflake_fleet.fleet.heard_term IS 'The newest term that a server has proven';
COMMENT ON COLUMN snowflake_fleet.fleet.began IS 'The newest answer''s number when the term began';
COMMENT ON COLUMN snowflake_fleet.fleet.lasting IS
  'The oldest term whose leases go on: that of the last recovered(), or of the fleet''s first day';
COMMENT ON COLUMN snowflake_fleet.fleet.lost_number IS 'The newest answer''s number when that one began';
COMMENT ON COLUMN snowflake_fleet.fleet.adopt_ms IS
  'Holders of before the last recovered() go on where their lease ends later, in ms since 1970; 0: none does';
COMMENT ON COLUMN snowflake_fleet.fleet.ahead_ms IS
  'How far any server has issued ids ahead of its clock at most: snowflake.max_lead and snowflake.reserve, in ms';
COMMENT ON COLUMN snowflake_fleet.fleet.secret IS
  'What answers are signed with. Whoever knows it can stop the fleet; dumps carry it';
COMMENT ON COLUMN snowflake_fleet.fleet.seal IS
  'Layout, tick and epoch, packed: that of the first server that asked, and then of all';
COMMENT ON COLUMN snowflake_fleet.fleet.timeline IS
  'With system_identifier, database, fleet_table and directory: where answers were last given, see whereabouts()';

-- A dump of the control database carries the fleet. Restored elsewhere, it waits for recovered().
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_extension
              WHERE extname OPERATOR(pg_catalog.=) 'snowflake_fleet') THEN
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.fleet', '');
  END IF;
END
$$;

CREATE FUNCTION snowflake_fleet.to_ms(at timestamptz) RETURNS bigint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT pg_catalog.floor(pg_catalog.date_part('epoch', at)
          OPERATOR(pg_catalog.*) 1000)::bigint $$;
COMMENT ON FUNCTION snowflake_fleet.to_ms(timestamptz) IS 'Internal: milliseconds since 1970';

CREATE FUNCTION snowflake_fleet.from_ms(ms bigint) RETURNS timestamptz
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT pg_catalog.to_timestamp(
          ms::double precision OPERATOR(pg_catalog./) 1000) $$;
COMMENT ON FUNCTION snowflake_fleet.from_ms(bigint) IS 'Internal: the time of milliseconds since 1970';

CREATE FUNCTION snowflake_fleet.random_number() RETURNS bigint
  LANGUAGE sql VOLATILE PARALLEL SAFE
  AS $$ SELECT ('x' OPERATOR(pg_catalog.||) pg_catalog.right(
          pg_catalog.gen_random_uuid()::text, 12))::bit(48)::bigint
          OPERATOR(pg_catalog.+) 1 $$;
COMMENT ON FUNCTION snowflake_fleet.random_number() IS 'Internal: 1 to 2^48, from a cryptographic source';

CREATE FUNCTION snowflake_fleet.term_at(now_ms bigint, salt bigint) RETURNS bigint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT (now_ms OPERATOR(pg_catalog.<<) 20)
               OPERATOR(pg_catalog.|) (salt OPERATOR(pg_catalog.&) 1048575) $$;
COMMENT ON FUNCTION snowflake_fleet.term_at(bigint, bigint) IS
  'Internal: the term that begins at a time: terms are in the order of the recoveries that begin them';

-- 63 bits are enough of it: whoever guesses has to ask here.
CREATE FUNCTION snowflake_fleet.sign(words text) RETURNS bigint
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT ('x' || left(encode(sha256(f.secret || convert_to(words, 'UTF8')), 'hex'), 16))::bit(64)::bigint & 9223372036854775807
    FROM snowflake_fleet.fleet AS f
$$;
COMMENT ON FUNCTION snowflake_fleet.sign(text) IS 'Internal: the fleet''s signature of a text, 0 to 2^63 - 1';

-- Timeline from the WAL, not from the control file: that has the old one for a while after a
-- promotion. The table, because a dump that is restored in place makes it anew. The data directory,
-- because a copy of its files, unlike a snapshot of its disk, cannot have their time of change. By the
-- owner's rights, so that it is the same whoever asks.
CREATE FUNCTION snowflake_fleet.whereabouts(OUT system_identifier bigint, OUT timeline integer,
                                            OUT database oid, OUT fleet_table oid, OUT directory timestamptz)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE') THEN
    SELECT s.system_identifier INTO system_identifier FROM pg_catalog.pg_control_system() AS s;
  ELSE
    system_identifier := 0;  -- a managed service: the timeline is what there is
  END IF;
  IF has_function_privilege('pg_catalog.pg_stat_file(text)', 'EXECUTE') THEN
    SELECT s.change INTO directory FROM pg_catalog.pg_stat_file('PG_VERSION') AS s;
  END IF;
  timeline := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer;
  SELECT d.oid INTO database FROM pg_catalog.pg_database AS d WHERE d.datname = current_database();
  fleet_table := 'snowflake_fleet.fleet'::regclass;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.whereabouts() IS
  'Internal: what changes when this database is restored, recovered, promoted or copied. `directory` is when its file PG_VERSION was '
  'last changed in any way, as a copy is and the original is not; null where that may not be asked. The snapshot of a disk has all of it';

CREATE FUNCTION snowflake_fleet.has_moved(OUT moved boolean, OUT detail text)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  place record;
BEGIN
  SELECT f.* INTO STRICT own FROM snowflake_fleet.fleet AS f;
  SELECT w.* INTO STRICT place FROM snowflake_fleet.whereabouts() AS w;
  moved := (place.system_identifier, place.timeline, place.database, place.fleet_table, place.directory) IS DISTINCT FROM
           (own.system_identifier, own.timeline, own.database, own.fleet_table, own.directory);
  IF moved THEN
    detail := format('It was recovered, promoted or copied: timeline %s of system %s, database %s, table %s, files of %s, '
      'was timeline %s of system %s, database %s, table %s, files of %s.',
      place.timeline, place.system_identifier, place.database, place.fleet_table, coalesce(place.directory::text, '?'),
      own.timeline, own.system_identifier, own.database, own.fleet_table, coalesce(own.directory::text, '?'));
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.has_moved() IS
  'Internal: whether this database is not, or not where, it was when an operator last spoke, and what is different';

CREATE FUNCTION snowflake_fleet.create_fleet(lease interval DEFAULT '1 hour',
                                             max_lead interval DEFAULT '1 minute',
                                             max_skew interval DEFAULT '10 seconds')
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  lease_ms bigint := floor(extract(epoch FROM lease) * 1000);
  lead_ms bigint := floor(extract(epoch FROM max_lead) * 1000);
  skew_ms bigint := floor(extract(epoch FROM max_skew) * 1000);
  began bigint := snowflake_fleet.term_at(snowflake_fleet.to_ms(clock_timestamp()), snowflake_fleet.random_number());
  id bigint;
BEGIN
  IF lease IS NULL OR max_lead IS NULL OR max_skew IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
      MESSAGE = 'lease, max_lead and max_skew must not be null',
      HINT = 'Leave out what is to have its default.';
  END IF;
  IF lease_ms NOT BETWEEN 1000 AND 604800000 OR lead_ms NOT BETWEEN 0 AND 60000 OR
     skew_ms < 1 OR skew_ms * 3 >= lease_ms THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'lease, max_lead or max_skew is out of range',
      DETAIL = format('lease is %s (1 second to 7 days), max_lead %s (0 to 1 minute), max_skew %s '
                      '(less than a third of the lease).', lease, max_lead, max_skew),
      HINT = 'Give the longest that any server of the fleet will use.';
  END IF;
  PERFORM snowflake_fleet.take_lock();
  INSERT INTO snowflake_fleet.fleet (id, term, lasting, longest_ms, skew_ms, system_identifier, timeline, database,
                                     fleet_table, directory)
  SELECT snowflake_fleet.random_number(), began, began, lease_ms + lead_ms, skew_ms, w.*
    FROM snowflake_fleet.whereabouts() AS w
  ON CONFLICT (one) DO NOTHING
  RETURNING fleet.id INTO id;
  IF id IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'duplicate_object',
      MESSAGE = 'the fleet exists',
      DETAIL = 'A longer lease than was promised would outlast a recovery of this database.',
      HINT = 'A shorter lease is a matter of the server''s setting "snowflake.lease".';
  END IF;
  RETURN id;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.create_fleet(interval, interval, interval) IS
  'Makes the fleet with the longest lease, lead and difference of clocks that any server may use, '
  'for ever; enroll() does it with the defaults. Returns the fleet''s number';

-- Until the transaction ends, so whoever keeps it open keeps all servers from their leases. An
-- operator may have a reason; a server's role has none to hold it for longer than a moment, and its
-- session is ended by the next that waits. A lock on the table, not on its row: that shows who holds it.
CREATE FUNCTION snowflake_fleet.take_lock() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  patience CONSTANT text := current_setting('lock_timeout');
  began CONSTANT timestamptz := clock_timestamp();
  seen text;
  holder text;
BEGIN
  LOOP
    BEGIN
      PERFORM set_config('lock_timeout', '1s', true);
      LOCK TABLE snowflake_fleet.fleet IN EXCLUSIVE MODE;
      PERFORM set_config('lock_timeout', patience, true);
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      IF patience <> '0' AND clock_timestamp() - began >= patience::interval THEN
        RAISE;
      END IF;
    END;
    holder := snowflake_fleet.lock_holder();
    -- The same transaction as a second ago.
    IF holder = seen THEN
      PERFORM snowflake_fleet.end_holder(split_part(holder, ' ', 1)::integer);
    END IF;
    seen := holder;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.take_lock() IS
  'Internal: takes the one lock on the fleet; ends the session of a server that has held it for more than a second';

CREATE FUNCTION snowflake_fleet.lock_holder() RETURNS text
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT l.pid || ' ' || l.virtualtransaction FROM pg_catalog.pg_locks AS l
   WHERE l.locktype = 'relation' AND l.relation = 'snowflake_fleet.fleet'::regclass AND l.mode = 'ExclusiveLock' AND l.granted
     AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
$$;
COMMENT ON FUNCTION snowflake_fleet.lock_holder() IS
  'Internal: process and transaction that hold the lock on the fleet; null: nobody, or a prepared transaction';

-- Not who waits for the synchronous standby: that is a commit, and the standby is what is missing. All
-- sessions of the role that are at the lock: the next one in the queue would do the same.
CREATE FUNCTION snowflake_fleet.end_holder(holder integer) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  other record;
BEGIN
  FOR other IN
    SELECT a.pid, a.usename FROM pg_catalog.pg_stat_activity AS a
      JOIN pg_catalog.pg_stat_activity AS h ON h.usesysid = a.usesysid
      JOIN snowflake_fleet.server AS s ON s.name = h.usename
     WHERE h.pid = holder AND a.pid <> pg_backend_pid() AND h.wait_event IS DISTINCT FROM 'SyncRep'
       AND a.pid IN (SELECT l.pid FROM pg_catalog.pg_locks AS l
                      WHERE l.locktype = 'relation' AND l.relation = 'snowflake_fleet.fleet'::regclass)
  LOOP
    RAISE LOG 'snowflake_fleet: session % of server % is ended: it has kept the lock on the fleet', other.pid, quote_ident(other.usename);
    PERFORM pg_terminate_backend(other.pid);
  END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE LOG 'snowflake_fleet: the owner of the fleet may not end session %, which keeps the lock on it: %', holder, SQLERRM;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.end_holder(integer) IS
  'Internal: ends a server''s session that has held the lock on the fleet for too long, and the others of its role that wait for it';

-- Every function begins with it: READ COMMITTED, because what was decided while this waits for the
-- lock has to be seen.
CREATE FUNCTION snowflake_fleet.lock_fleet() RETURNS snowflake_fleet.fleet
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  fleet snowflake_fleet.fleet;
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
      MESSAGE = 'the control database is a standby',
      HINT = 'Connect to its primary server: list all hosts and add target_session_attrs=read-write '
             'to "snowflake.fleet".';
  END IF;
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_transaction_state',
      MESSAGE = 'leases are decided in READ COMMITTED transactions only',
      DETAIL = format('This transaction is %s.', upper(current_setting('transaction_isolation'))),
      HINT = 'Set "default_transaction_isolation" to "read committed" for the server''s role.';
  END IF;
  PERFORM snowflake_fleet.take_lock();
  SELECT f.* INTO fleet FROM snowflake_fleet.fleet AS f;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'there is no fleet yet',
      HINT = 'Make it with snowflake_fleet.enroll() or snowflake_fleet.create_fleet().';
  END IF;
  RETURN fleet;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.lock_fleet() IS 'Internal: takes the one lock on the fleet; returns its row';

-- A grant that a crash of this database forgets would be granted again.
CREATE FUNCTION snowflake_fleet.require_durability() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
  IF pg_catalog.current_setting('fsync') OPERATOR(pg_catalog.=) 'off' OR
     pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the control database could forget what it grants',
      DETAIL = pg_catalog.format('"fsync" is %s, "synchronous_commit" is %s.',
                 pg_catalog.current_setting('fsync'), pg_catalog.current_setting('synchronous_commit')),
      HINT = 'Turn both on in the control database.';
  END IF;
  -- With synchronous standbys they have it as well. Not a SET clause of a function: that would be
  -- undone before the commit.
  IF pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=)
     ANY (ARRAY['local', 'remote_write']) THEN
    PERFORM pg_catalog.set_config('synchronous_commit', 'on', true);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_durability() IS
  'Internal: refuses to go on where a commit may be lost; asks for synchronous replication';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_fleet FROM PUBLIC;
-- The servers of the fleet: each has a login role of its own, and nobody speaks for another.

CREATE TABLE snowflake_fleet.server (
  name text PRIMARY KEY CHECK (name OPERATOR(pg_catalog.<>) ''),
  enrolled timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  retired timestamptz,
  heard timestamptz,
  pool int4range CHECK (NOT pg_catalog.isempty(pool))
);
COMMENT ON TABLE snowflake_fleet.server IS
  'Servers by the name of their login role; to be changed by the functions only';
COMMENT ON COLUMN snowflake_fleet.server.heard IS 'When it last asked for something';
COMMENT ON COLUMN snowflake_fleet.server.pool IS
  'The regions that it may be granted; null: those that are in no server''s pool';

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_extension
              WHERE extname OPERATOR(pg_catalog.=) 'snowflake_fleet') THEN
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.server', '');
  END IF;
END
$$;

-- The server that this session speaks for. `session_user` stays what it was at login, whatever
-- SET ROLE and SECURITY DEFINER do.
CREATE FUNCTION snowflake_fleet.speaker() RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  server snowflake_fleet.server;
BEGIN
  SELECT s.* INTO server FROM snowflake_fleet.server AS s WHERE s.name = session_user::text;
  IF NOT FOUND OR server.retired IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
      MESSAGE = format('role %s is not a server of this fleet', quote_ident(session_user::text)),
      DETAIL = CASE WHEN server.retired IS NULL THEN 'It was never enrolled.'
                    ELSE format('It was retired at %s.', server.retired) END,
      HINT = 'Run snowflake_fleet.enroll() in the control database.';
  END IF;
  RETURN server.name;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.speaker() IS
  'Internal: name of the server that this session logged in as; an error (42501) where it is none';

CREATE FUNCTION snowflake_fleet.check_server_name(server text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF server IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'server must not be null',
      HINT = 'Give the name of the server''s login role.';
  END IF;
  IF octet_length(server) NOT BETWEEN 1 AND 63 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'a server''s name has 1 to 63 bytes',
      DETAIL = format('This one has %s.', octet_length(server)),
      HINT = 'It is the name of a role: choose a shorter one.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_server_name(text) IS 'Internal: refuses what cannot name a role';

-- Pools are places: two servers have the same one or have none in common, or a region would be of two places.
CREATE FUNCTION snowflake_fleet.check_pool(server text, pool int4range) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  count integer;
  other record;
BEGIN
  SELECT nullif(count(*), 0) INTO count FROM snowflake_fleet.region;
  IF isempty(pool) OR lower_inf(pool) <> upper_inf(pool) OR lower(pool) < 0 OR upper(pool) > coalesce(count, 1024) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('there are no such regions: %s', pool),
      DETAIL = CASE WHEN count IS NULL THEN 'A fleet has 1024 regions at most.'
                    ELSE format('The fleet has regions 0 to %s.', count - 1) END,
      HINT = 'Write the pool as ''[0,16)'', or as ''(,)'' for a server that is to have none.';
  END IF;
  SELECT s.name, s.pool INTO other FROM snowflake_fleet.server AS s
   WHERE s.name <> check_pool.server AND s.pool && check_pool.pool AND s.pool <> check_pool.pool
     AND NOT lower_inf(check_pool.pool) ORDER BY s.name LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('pool %s overlaps that of server %s', pool, quote_ident(other.name)),
      DETAIL = format('Server %s has %s. Servers of one place have the same pool, others have no region in common.',
                      quote_ident(other.name), other.pool),
      HINT = 'Choose the same pool, or one beside it.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_pool(text, int4range) IS
  'Behind snowflake_fleet.enroll: refuses a pool that the layout does not have, or that overlaps another server''s';

CREATE FUNCTION snowflake_fleet.enroll(server text, regions int4range DEFAULT NULL) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  role record;
BEGIN
  PERFORM snowflake_fleet.check_server_name(server);
  IF NOT EXISTS (SELECT FROM snowflake_fleet.fleet) THEN
    PERFORM snowflake_fleet.create_fleet();
  END IF;
  PERFORM snowflake_fleet.lock_fleet();
  IF regions IS NOT NULL THEN
    PERFORM snowflake_fleet.check_pool(server, regions);
  END IF;

  SELECT r.rolcanlogin, r.rolsuper INTO role FROM pg_catalog.pg_roles AS r WHERE r.rolname = server;
  IF NOT FOUND THEN
    EXECUTE format('CREATE ROLE %I LOGIN', server);
  ELSIF role.rolsuper OR NOT role.rolcanlogin THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('role %s cannot be a server', quote_ident(server)),
      DETAIL = CASE WHEN role.rolsuper THEN 'It is a superuser.' ELSE 'It may not log in.' END,
      HINT = 'Choose another name: a role is made for it.';
  END IF;
  -- So that the owner may end a session that keeps the lock on the fleet.
  IF NOT pg_has_role(current_user, server, 'USAGE') THEN
    EXECUTE format('GRANT %I TO %I', server, current_user);
  END IF;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), server);
  EXECUTE format('GRANT USAGE ON SCHEMA snowflake_fleet TO %I', server);
  EXECUTE format('GRANT EXECUTE ON FUNCTION '
    'snowflake_fleet.acquire(bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint), '
    'snowflake_fleet.renew(bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, integer, bigint, bigint, bigint), '
    'snowflake_fleet.give_back(bigint, bigint, bigint, bigint, bigint, bigint, integer, bigint, bigint) TO %I', server);
  INSERT INTO snowflake_fleet.server AS s (name) VALUES (server)
  ON CONFLICT (name) DO UPDATE SET retired = NULL;
  IF regions IS NOT NULL THEN
    UPDATE snowflake_fleet.server AS s SET pool = CASE WHEN NOT lower_inf(regions) THEN regions END
     WHERE s.name = enroll.server;
    PERFORM snowflake_fleet.tell_of_strangers();
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.enroll(text, int4range) IS
  'Lets a server take part: makes its login role, without a password, where there is none. `regions` is its pool: it '
  'is granted regions of the pool only, and servers without a pool are granted none of it. Null leaves the pool as it '
  'is, ''(,)'' takes it away. Servers of one place share a pool; 22023 where two pools overlap otherwise';

CREATE FUNCTION snowflake_fleet.retire(server text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM snowflake_fleet.check_server_name(server);
  PERFORM snowflake_fleet.lock_fleet();
  UPDATE snowflake_fleet.server AS s SET retired = clock_timestamp(), pool = NULL
   WHERE s.name = retire.server AND s.retired IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('there is no server %s in this fleet', quote_ident(server)),
      HINT = 'The view snowflake_fleet.servers has them all.';
  END IF;
  PERFORM snowflake_fleet.end_lease(r) FROM snowflake_fleet.region AS r
    WHERE r.server = retire.server AND r.incarnation <> 0;
  IF EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = retire.server) THEN
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_fleet FROM %I', server);
    EXECUTE format('REVOKE USAGE ON SCHEMA snowflake_fleet FROM %I', server);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.retire(text) IS
  'Ends the leases of a server, all its clones included, grants it no other, and takes its pool away. It may '
  'mint until its leases end; its role stays, to be dropped by hand';

REVOKE ALL ON FUNCTION snowflake_fleet.speaker(), snowflake_fleet.check_server_name(text),
  snowflake_fleet.check_pool(text, int4range), snowflake_fleet.enroll(text, int4range), snowflake_fleet.retire(text) FROM PUBLIC;
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
COMMENT ON COLUMN snowflake_fleet.region.floor_ms IS 'In ms since 1970; only rises';
COMMENT ON COLUMN snowflake_fleet.region.until_ms IS
  'In ms since 1970; the next holder begins there. Only rises, but when the region is given back';
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
  'What it is told: granted, given_back, lost, full, halted, clock_ahead or unproven';

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
         began = f.newest, halted = false
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
     SET lasting = f.term, lost_number = f.newest,
         adopt_ms = CASE WHEN silent THEN now_ms + 2 * f.skew_ms ELSE 0 END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.recover_fleet(bigint, bigint, boolean) IS
  'Internal: ends all leases and has regions begin above all that may have been granted; `silent`: this copy of the database has '
  'granted nothing since it was recovered, so holders whose lease goes on may keep it';

CREATE FUNCTION snowflake_fleet.end_dead(number integer, now_ms bigint) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  UPDATE snowflake_fleet.region AS r
     SET incarnation = 0, given_back = false,
         until_ms = greatest(r.floor_ms, least(r.until_ms, now_ms + f.ahead_ms + f.skew_ms))
    FROM snowflake_fleet.fleet AS f
   WHERE r.region = number
$$;
COMMENT ON FUNCTION snowflake_fleet.end_dead(integer, bigint) IS
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
      request.newest <= CASE WHEN request.term = fleet.term THEN fleet.newest ELSE fleet.began END) THEN
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
  ended boolean := false;
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
  IF request.term <> 0 AND request.term < fleet.lasting AND
     NOT (request.call = 'renew' AND
          EXISTS (SELECT FROM snowflake_fleet.region AS r
                   WHERE r.region = request.region AND r.incarnation = request.incarnation AND r.incarnation <> 0
                     AND r.server = request.server)) THEN
    ended := true;
    IF request.call = 'renew' AND request.titled AND fleet.adopt_ms <> 0 AND request.until_ms > fleet.adopt_ms THEN
      SELECT r.* INTO held FROM snowflake_fleet.region AS r
       WHERE r.region = request.region AND r.incarnation = 0 AND r.grant_number <= fleet.lost_number
         AND NOT snowflake_fleet.is_static(r.region);
    END IF;
    IF held.region IS NULL THEN
      UPDATE snowflake_fleet.fleet AS f SET newest = f.newest + 1 RETURNING f.newest INTO answer.number;
      answer.status := 'lost';
      RETURN answer;
    END IF;
  END IF;
  IF request.call <> 'give_back' AND request.clock_ms - now_ms > fleet.skew_ms THEN
    answer.status := 'clock_ahead';
    RETURN answer;
  END IF;

  UPDATE snowflake_fleet.fleet AS f SET newest = f.newest + 1, ahead_ms = greatest(f.ahead_ms, request.ahead_ms)
  RETURNING f.newest INTO answer.number;
  answer.status := 'lost';

  IF NOT ended THEN
    SELECT r.* INTO held FROM snowflake_fleet.region AS r
     WHERE r.incarnation = request.incarnation AND r.incarnation <> 0 AND r.server = request.server
       AND (request.call = 'acquire' OR r.region = request.region)
     ORDER BY r.region LIMIT 1;
  END IF;

  IF request.call = 'give_back' THEN
    IF held.region IS NULL OR held.grant_number <> request.grant_number THEN
      RETURN answer;
    END IF;
    held.floor_ms := greatest(held.floor_ms, least(request.highest_ms, held.until_ms));
    UPDATE snowflake_fleet.region AS r
       SET floor_ms = held.floor_ms, until_ms = held.floor_ms, incarnation = 0, given_back = true
     WHERE r.region = held.region;
    answer.status := 'given_back';
    RETURN answer;
  END IF;

  IF ended THEN
    anew := true;
    held.floor_ms := request.floor_ms;
    held.until_ms := request.until_ms;
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

  held.until_ms := greatest(held.until_ms, snowflake_fleet.granted_until(request, held.region, fleet.longest_ms, now_ms));
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
  answer.until_ms := held.until_ms;
  RETURN answer;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.decide(snowflake_fleet.request, bigint) IS
  'Internal: answers a request as of a time in ms since 1970; the three functions below check who asks';

-- What the three functions have in common: who asks, where, and whether an answer could last.
CREATE FUNCTION snowflake_fleet.ask(request snowflake_fleet.request, proof bigint, title bigint, fleet bigint, seal bigint)
  RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  place record;
  answer snowflake_fleet.answer;
  arrived bigint := snowflake_fleet.to_ms(clock_timestamp());
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
  IF own.seal IS NULL AND request.call = 'acquire' THEN
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

-- Layouts, as src/core/seal.hpp packs them: epoch 41, time 6, region 5, shard 5, sequence 5, tick 2.
CREATE FUNCTION snowflake_fleet.layout_text(seal bigint) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE WHEN seal IS NULL THEN 'none yet' ELSE
    format('%s/%s%s/%s of %s ms since %s', seal >> 17 & 63,
           CASE WHEN seal >> 12 & 31 <> 0 THEN format('%s+', seal >> 12 & 31) END,
           seal >> 7 & 31, seal >> 2 & 31, (ARRAY[1, 10, 100, 1000])[(seal & 3) + 1],
           to_char(snowflake_fleet.from_ms(seal >> 23 & 2199023255551) AT TIME ZONE 'UTC',
                   'YYYY-MM-DD HH24:MI:SS.MS'))
    END
$$;
COMMENT ON FUNCTION snowflake_fleet.layout_text(bigint) IS 'Internal: a packed layout, for people';

CREATE FUNCTION snowflake_fleet.adopt_layout(seal bigint) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  region_bits integer := (seal >> 12 & 31)::integer;
BEGIN
  IF seal >> 17 & 63 NOT BETWEEN 20 AND 53 OR region_bits > 24 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('%s is no layout', seal),
      HINT = 'These functions are for the servers'' own use.';
  END IF;
  UPDATE snowflake_fleet.fleet AS f SET seal = adopt_layout.seal;
  -- More than a thousand servers and spares nobody has.
  INSERT INTO snowflake_fleet.region (region) SELECT generate_series(0, (1 << least(region_bits, 10)) - 1);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.adopt_layout(bigint) IS
  'Internal: makes the layout of the first server that of the fleet, with 2^region_bits regions, 1024 at most';

-- For the servers. SECURITY DEFINER, because nobody but these functions writes the tables.

CREATE FUNCTION snowflake_fleet.acquire(fleet bigint, incarnation bigint, term bigint, newest bigint, proof bigint,
                                        nonce bigint, acked bigint, clock_ms bigint, length_ms bigint,
                                        age_ms bigint, ahead_ms bigint, seal bigint)
  RETURNS snowflake_fleet.answer
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
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
  RETURN snowflake_fleet.ask(ROW('give_back', NULL, incarnation, term, newest, NULL, 0, 0, 0, 0, 0, 0, region, 0, 0, NULL,
                                 grant_number, highest_ms)::snowflake_fleet.request, proof, 0, fleet, seal);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.give_back(bigint, bigint, bigint, bigint, bigint, bigint, integer, bigint, bigint) IS
  'For a server''s worker: it issues no id of the region of highest_ms or later';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_fleet FROM PUBLIC;
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
  shift CONSTANT integer := (seal >> 7 & 31) + (seal >> 2 & 31);
  region_bits CONSTANT integer := seal >> 12 & 31;
  width CONSTANT integer := (seal >> 17 & 63) + region_bits + shift;
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
  made := snowflake_fleet.from_ms((seal >> 23 & 2199023255551)
                                  + (id >> shift + region_bits) * (ARRAY[1, 10, 100, 1000])[(seal & 3) + 1]);
  SELECT g.* INTO held FROM snowflake_fleet.grants AS g
   WHERE g.region = minted_by.region AND g.ids_from <= made AND made < g.ids_until
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
         until_ms = greatest(r.floor_ms, r.until_ms, snowflake_fleet.to_ms(free) + 1), given_back = false
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
-- What an operator has to say after this database was promoted, restored or copied, and of holders that are dead.

CREATE FUNCTION snowflake_fleet.require_old_stopped(said boolean) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF said IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'nobody has said that the old control database is stopped',
      DETAIL = 'While it runs, it goes on granting: two servers are given one region, and mint the same ids.',
      HINT = 'Stop it for good, then add "old_is_stopped => true".';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_old_stopped(boolean) IS 'Internal: refuses to go on where two control databases may grant';

CREATE FUNCTION snowflake_fleet.settle_here() RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  UPDATE snowflake_fleet.fleet AS f
     SET system_identifier = w.system_identifier, timeline = w.timeline, database = w.database,
         fleet_table = w.fleet_table, directory = w.directory
    FROM snowflake_fleet.whereabouts() AS w
$$;
COMMENT ON FUNCTION snowflake_fleet.settle_here() IS 'Internal: from now on this database is where the fleet is';

CREATE FUNCTION snowflake_fleet.recovered(now timestamptz, old_is_stopped boolean DEFAULT false,
                                          although_healthy boolean DEFAULT false) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  moved boolean;
  resumes timestamptz;
BEGIN
  IF now IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'now must not be null',
      HINT = 'Give the time from a clock that you trust, with its time zone.';
  END IF;
  PERFORM snowflake_fleet.require_old_stopped(old_is_stopped);
  PERFORM snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  IF NOT isfinite(now) OR now NOT BETWEEN clock_timestamp() - interval '15 minutes' AND clock_timestamp() + interval '15 minutes' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'the control database''s clock does not agree',
      DETAIL = format('It shows %s, you say %s; 15 minutes may be between.', clock_timestamp(), now),
      HINT = 'Correct the one that is wrong.';
  END IF;
  moved := (snowflake_fleet.has_moved()).moved;
  IF NOT moved AND NOT own.halted AND although_healthy IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'nothing shows that this database was recovered',
      DETAIL = 'It is where it was, and no server has heard more than it knows. Every server would lose its lease.',
      HINT = 'If its files were put back by the snapshot of a disk, add "although_healthy => true".';
  END IF;
  -- A copy that does not know what it is may have granted something before a server showed it.
  PERFORM snowflake_fleet.recover_fleet(snowflake_fleet.to_ms(greatest(now, clock_timestamp())), snowflake_fleet.random_number(), moved);
  PERFORM snowflake_fleet.settle_here();
  SELECT snowflake_fleet.from_ms(min(r.until_ms)) INTO resumes FROM snowflake_fleet.region AS r;
  RAISE LOG 'snowflake_fleet: recovered; ids of new leases begin at %; %', resumes,
    CASE WHEN moved THEN 'servers go on with the leases that they have' ELSE 'leases have ended' END;
  RETURN resumes;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.recovered(timestamptz, boolean, boolean) IS
  'After this database was recovered to an earlier time, or failed over to a standby that may lack something, and when the old '
  'one is stopped for good. `now` is the time by a clock that the operator trusts, to within 15 minutes. Servers go on with the '
  'leases that they have, unless this database may have granted something before it was known to be older: then all have ended. '
  'Returns when ids of new leases begin. 22023 where the old one was not said to be stopped, 55000 where nothing shows a recovery';

CREATE FUNCTION snowflake_fleet.nothing_lost(old_is_stopped boolean DEFAULT false) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
BEGIN
  PERFORM snowflake_fleet.require_old_stopped(old_is_stopped);
  PERFORM snowflake_fleet.require_durability();
  own := snowflake_fleet.lock_fleet();
  IF own.halted THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'something was lost',
      DETAIL = 'A server has named a grant that this database does not know.',
      HINT = 'Run snowflake_fleet.recovered(now, old_is_stopped => true).';
  END IF;
  IF NOT (snowflake_fleet.has_moved()).moved THEN
    RETURN;
  END IF;
  PERFORM snowflake_fleet.begin_term(snowflake_fleet.to_ms(clock_timestamp()), snowflake_fleet.random_number());
  PERFORM snowflake_fleet.settle_here();
  RAISE LOG 'snowflake_fleet: an operator says that nothing was lost; leases go on';
END
$$;
COMMENT ON FUNCTION snowflake_fleet.nothing_lost(boolean) IS
  'After a switch-over, a failover to a standby that was synchronous, or pg_upgrade, and when the old control database is '
  'stopped for good: leases go on. Where a grant was lost after all, two servers may mint the same ids: in doubt, recovered(). '
  'Does nothing where this database is where it was. 22023 where the old one was not said to be stopped';

CREATE FUNCTION snowflake_fleet.dead(region integer, holder_is_stopped boolean DEFAULT false) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  held snowflake_fleet.region;
BEGIN
  IF holder_is_stopped IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'nobody has said that the holder is stopped',
      DETAIL = 'A holder that still runs, as one that is cut off or frozen may, mints on to the end of its lease: the next one would mint the same ids.',
      HINT = 'Make sure that it runs nowhere, then add "holder_is_stopped => true"; or run snowflake_fleet.evict() and wait.';
  END IF;
  own := snowflake_fleet.lock_fleet();
  SELECT r.* INTO held FROM snowflake_fleet.region AS r WHERE r.region = dead.region;
  IF NOT FOUND OR snowflake_fleet.is_static(held.region) THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('region %s is not one that is leased', coalesce(region::text, 'null')),
      HINT = 'The view snowflake_fleet.regions has them all.';
  END IF;
  IF own.halted OR (snowflake_fleet.has_moved()).moved THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database may not know who had the region last',
      DETAIL = 'It was recovered, promoted or copied, and no operator has said what was lost.',
      HINT = 'Look at the view snowflake_fleet.health.';
  END IF;
  PERFORM snowflake_fleet.end_dead(held.region, snowflake_fleet.to_ms(clock_timestamp()));
  RAISE LOG 'snowflake_fleet: an operator says that server % (incarnation %), in region %, is stopped',
    coalesce(quote_ident(held.server), 'none'), held.incarnation, held.region;
  RETURN (SELECT snowflake_fleet.from_ms(r.until_ms) FROM snowflake_fleet.region AS r WHERE r.region = held.region);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.dead(integer, boolean) IS
  'Ends the lease of a region whose holder runs nowhere any more: after a power loss of everything, or after recovered() for '
  'regions that nobody had. Returns when the region is free: max_lead, reserve and max_skew from now, for no id of the holder is further '
  'ahead, unless its clock was, by more than max_skew. A holder that runs after all may mint what the next one mints. '
  '22023 where the holder was not said to be stopped, 42704 where the region is not leased';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_fleet FROM PUBLIC;
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
-- What a server was told, in this database's log; and why servers are refused, for the views.
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
  'Answers that granted nothing, by server and cause: full, halted, clock_ahead, lost; to be changed by the functions only';
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
  log boolean := request.call <> 'renew';
  region CONSTANT integer := greatest(answer.region, request.region);
BEGIN
  IF answer.status = 'granted' THEN
    UPDATE snowflake_fleet.refusal AS f SET since = NULL WHERE f.server = request.server AND f.since IS NOT NULL;
  ELSIF answer.status <> 'given_back' THEN
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

-- Where no server can have minted. The number of a layout is in ids for ever, so no other fleet may be changed.
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
      SELECT pg_catalog.bool_or(x.incarnation IS NULL AND x.given_back IS NULL) IS TRUE AS static,
             pg_catalog.max(x.client_addr) FILTER (WHERE x.incarnation OPERATOR(pg_catalog.=) r.incarnation
               AND x.granted OPERATOR(pg_catalog.=) snowflake_fleet.latest_grant(r.region)) AS client_addr
        FROM snowflake_fleet.grants AS x WHERE x.region OPERATOR(pg_catalog.=) r.region) AS g;
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
-- Whether this database grants leases, and if not, why, and what to do. It looks and waits for nothing: it takes no
-- lock, and works on a standby.

CREATE FUNCTION snowflake_fleet.way_out() RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT 'Make sure that the old control database is stopped for good. Then run snowflake_fleet.nothing_lost(old_is_stopped => true) '
         'after a switch-over, pg_upgrade or the promotion of a synchronous standby: leases go on. '
         'Otherwise, and in doubt, snowflake_fleet.recovered(now(), old_is_stopped => true): servers go on with the leases that they '
         'have, and no region is free before the longest that may be lost has ended.'
$$;
COMMENT ON FUNCTION snowflake_fleet.way_out() IS
  'Internal: what an operator is told whose control database was promoted, restored or copied: the harmless call first, the other with its price';

-- Somebody waits: for the synchronous standby, or for a transaction that holds the lock on the fleet.
CREATE FUNCTION snowflake_fleet.waiting(OUT reason text, OUT advice text, OUT since timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  waiter record;
  blocker record;
BEGIN
  SELECT a.pid, a.wait_event, a.query_start INTO waiter FROM pg_stat_activity AS a JOIN snowflake_fleet.server AS s ON s.name = a.usename
   WHERE a.datname = current_database() AND a.query_start < clock_timestamp() - interval '2 seconds'
     AND (a.wait_event = 'SyncRep' OR a.wait_event_type = 'Lock')
   ORDER BY a.wait_event <> 'SyncRep', a.query_start LIMIT 1;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  since := waiter.query_start;
  IF waiter.wait_event = 'SyncRep' THEN
    reason := 'grants wait for the synchronous standby';
    advice := 'Bring the standby back, or take it out of "synchronous_standby_names": then a failover to it may lose grants.';
    RETURN;
  END IF;
  SELECT b.pid, b.usename INTO blocker FROM unnest(pg_blocking_pids(waiter.pid)) AS p JOIN pg_stat_activity AS b ON b.pid = p LIMIT 1;
  reason := format('grants wait for a transaction of %s', coalesce(quote_ident(blocker.usename), 'somebody'));
  advice := format('Run pg_terminate_backend(%s).', coalesce(blocker.pid::text, 'pid'))
            || CASE WHEN EXISTS (SELECT FROM snowflake_fleet.server AS s WHERE s.name = blocker.usename)
                    THEN ' If it comes again, snowflake_fleet.retire() takes that role out.' ELSE '' END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.waiting() IS
  'Internal: what servers that ask have been waiting for in this database for more than two seconds, and since when; null: for nothing';

CREATE FUNCTION snowflake_fleet.health(OUT granting boolean, OUT reason text, OUT advice text, OUT since timestamptz)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  own snowflake_fleet.fleet;
  place record;
  refused record;
BEGIN
  granting := false;
  SELECT f.* INTO own FROM snowflake_fleet.fleet AS f;
  IF own.id IS NULL THEN
    reason := 'there is no fleet yet';
    advice := 'Run snowflake_fleet.enroll() for each server.';
    RETURN;
  ELSIF pg_is_in_recovery() THEN
    reason := 'a standby';
    advice := 'Ask its primary server; if that is gone for good, promote this one.';
    RETURN;
  ELSIF current_setting('fsync') = 'off' OR current_setting('synchronous_commit') = 'off' THEN
    reason := 'it could forget what it grants';
    advice := 'Turn "fsync" and "synchronous_commit" on.';
    RETURN;
  ELSIF current_setting('default_transaction_read_only') = 'on' THEN
    reason := 'it is read-only';
    advice := 'Turn "default_transaction_read_only" off.';
    RETURN;
  END IF;
  -- Nobody is told of a promotion: what is known is when the first server was refused for it.
  SELECT min(f.since) INTO since FROM snowflake_fleet.refusal AS f WHERE f.cause = 'halted';
  SELECT * INTO place FROM snowflake_fleet.has_moved();
  IF own.halted THEN
    reason := 'a server knows of grants that are not here: something was lost';
    advice := 'Make sure that every other copy of this database is stopped for good, then run '
              'snowflake_fleet.recovered(now(), old_is_stopped => true).';
    RETURN;
  ELSIF place.moved THEN
    reason := 'it was promoted, restored or copied';
    advice := snowflake_fleet.way_out();
    RETURN;
  END IF;
  SELECT w.reason, w.advice, w.since INTO reason, advice, since FROM snowflake_fleet.waiting() AS w;
  IF reason IS NOT NULL THEN
    RETURN;
  END IF;
  granting := true;
  SELECT f.* INTO refused FROM snowflake_fleet.refusal AS f
   WHERE f.since IS NOT NULL AND f.cause IN ('full', 'clock_ahead') ORDER BY f.since LIMIT 1;
  IF FOUND THEN
    reason := CASE refused.cause WHEN 'full' THEN format('no region is free for server %s', quote_ident(refused.server))
                                 ELSE format('the clock of server %s is ahead', quote_ident(refused.server)) END;
    advice := CASE refused.cause
      WHEN 'full' THEN 'See who holds them in snowflake_fleet.regions: wait for the end of a lease, or evict a server that is gone.'
      ELSE 'Check the time synchronization of that server and of this one.' END;
    since := refused.since;
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.health() IS 'Behind the view snowflake_fleet.health';

CREATE VIEW snowflake_fleet.health AS SELECT * FROM snowflake_fleet.health();
COMMENT ON VIEW snowflake_fleet.health IS
  'Whether this database grants leases; if not, why, what to do, and since when that is known (the first server that was '
  'refused for it). With granting true, a reason is of one server: no region is free for it, or its clock is ahead';

REVOKE ALL ON FUNCTION snowflake_fleet.way_out(), snowflake_fleet.waiting(), snowflake_fleet.health() FROM PUBLIC;
-- The map: which server has the rows of which shard. The control database decides; every data server
-- and router has a copy, so that routing asks nobody. A copy is replaced as a whole, by a newer one.

CREATE TABLE snowflake_fleet.map_state (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
  is_copy boolean NOT NULL DEFAULT false,
  changed timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  history bigint[] NOT NULL DEFAULT '{}',
  newer bigint,
  system_identifier bigint,
  timeline integer,
  database oid
);
INSERT INTO snowflake_fleet.map_state DEFAULT VALUES;
COMMENT ON TABLE snowflake_fleet.map_state IS 'One row; to be changed by the functions only';
COMMENT ON COLUMN snowflake_fleet.map_state.version IS
  'Rises with each change: ms since 1970 of the change, or one more than before';
COMMENT ON COLUMN snowflake_fleet.map_state.is_copy IS 'Whether the map came from elsewhere';
COMMENT ON COLUMN snowflake_fleet.map_state.changed IS 'When this database last changed its map';
COMMENT ON COLUMN snowflake_fleet.map_state.history IS
  'The versions before this one, the last 1000 of them: a copy of another version was taken from a map that this one does not follow';
COMMENT ON COLUMN snowflake_fleet.map_state.newer IS
  'In the control database: the version of a copy that is newer than the map here, which so is no longer changed';
COMMENT ON COLUMN snowflake_fleet.map_state.timeline IS
  'With system_identifier and database: where the control database was when it last changed the map';

CREATE TABLE snowflake_fleet.map_server (
  name text PRIMARY KEY CHECK (name OPERATOR(pg_catalog.<>) ''),
  conninfo text NOT NULL
);
COMMENT ON TABLE snowflake_fleet.map_server IS
  'Servers that have shards or a copy of the map; to be changed by the functions only';
COMMENT ON COLUMN snowflake_fleet.map_server.conninfo IS
  'Connection string of libpq, without a password: everybody may read it';

CREATE TABLE snowflake_fleet.map_shard (
  shard integer PRIMARY KEY CHECK (shard OPERATOR(pg_catalog.>=) 0),
  server text NOT NULL REFERENCES snowflake_fleet.map_server
);
COMMENT ON TABLE snowflake_fleet.map_shard IS
  'Which server has the rows of a shard; to be changed by the functions only';

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_extension
              WHERE extname OPERATOR(pg_catalog.=) 'snowflake_fleet') THEN
    -- The one row of the state is made anew by CREATE EXTENSION: a dump replaces it.
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.map_server', '');
    PERFORM pg_catalog.pg_extension_config_dump('snowflake_fleet.map_shard', '');
  END IF;
END
$$;

CREATE VIEW snowflake_fleet.map AS
  SELECT m.shard, m.server, s.conninfo, v.version
    FROM snowflake_fleet.map_shard AS m
    JOIN snowflake_fleet.map_server AS s ON s.name OPERATOR(pg_catalog.=) m.server
   CROSS JOIN snowflake_fleet.map_state AS v;
COMMENT ON VIEW snowflake_fleet.map IS
  'Which server has the rows of which shard, how to connect to it, and the version of all of it';

CREATE FUNCTION snowflake_fleet.map_version() RETURNS bigint
  LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT version FROM snowflake_fleet.map_state $$;
COMMENT ON FUNCTION snowflake_fleet.map_version() IS
  'Version of the map here: what was cached under another is to be read again';

-- The rows of an id.

CREATE FUNCTION snowflake_fleet.server_of_shard(shard integer) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  found text := (SELECT m.server FROM snowflake_fleet.map_shard AS m
                  WHERE m.shard OPERATOR(pg_catalog.=) server_of_shard.shard);
BEGIN
  IF found IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = pg_catalog.format('shard %s is not in the map', shard),
      DETAIL = pg_catalog.format('The map of version %s says of no server that it has its rows.',
                                 snowflake_fleet.map_version()),
      HINT = 'Run snowflake_fleet.assign() in the control database.';
  END IF;
  RETURN found;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.server_of_shard(integer) IS
  'Name of the server that has the rows of a shard; an error (55000) where the map does not say';

CREATE FUNCTION snowflake_fleet.server_of(id bigint) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
AS $$
BEGIN
  IF pg_catalog.to_regnamespace('snowflake') IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'extension "snowflake" is not installed in this database',
      DETAIL = 'It says to which shard an id belongs.',
      HINT = 'Ask a data server or a router, or call snowflake_fleet.server_of_shard() with the shard.';
  END IF;
  RETURN snowflake_fleet.server_of_shard(snowflake.shard_of(id));
END
$$;
COMMENT ON FUNCTION snowflake_fleet.server_of(bigint) IS
  'Name of the server that has the row of an id; needs extension snowflake in this database';

-- For the operator, in the control database.

-- A control database that was restored, recovered or promoted may have a map from before a move. Changed,
-- and so newer than the copies that know of the move, it would lead to rows that are no longer there.
CREATE FUNCTION snowflake_fleet.check_map_state(state snowflake_fleet.map_state) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  here record;
  cause text;
BEGIN
  SELECT * INTO here FROM snowflake_fleet.whereabouts();
  cause := CASE
    WHEN state.newer > state.version THEN format('A copy has version %s; the map here has version %s.', state.newer, state.version)
    WHEN state.version = 0 AND EXISTS (SELECT FROM snowflake_fleet.map_server)
    THEN 'This database was restored from a dump, which has the servers and shards of its time.'
    WHEN state.version > 0 AND (state.system_identifier, state.timeline, state.database)
                               IS DISTINCT FROM (here.system_identifier, here.timeline, here.database)
    THEN 'This database was restored, recovered, promoted or copied since the map was last changed.'
  END;
  IF cause IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'the map here may be older than its copies',
      DETAIL = cause,
      HINT = 'Run "snowflake-push-map --recover", which asks the copies; where there are none, snowflake_fleet.map_recovered().';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_map_state(snowflake_fleet.map_state) IS
  'Internal: refuses (55000) a change of a map that may be older than copies of it';

-- Two changes at a time would have one version.
CREATE FUNCTION snowflake_fleet.change_map() RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  state snowflake_fleet.map_state;
BEGIN
  SELECT s.* INTO STRICT state FROM snowflake_fleet.map_state AS s FOR UPDATE;
  IF state.is_copy THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database has a copy of the map',
      DETAIL = format('It is a copy of version %s, which another one would replace.', state.version),
      HINT = 'Change the map in the control database.';
  END IF;
  PERFORM snowflake_fleet.check_map_state(state);
  RETURN snowflake_fleet.begin_version(state.version, state.history);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.change_map() IS
  'Internal: gives the map a new version, which sessions that LISTEN snowflake_map are told';

CREATE FUNCTION snowflake_fleet.begin_version(after bigint, before bigint[]) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  fresh CONSTANT bigint := greatest(after + 1, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
BEGIN
  UPDATE snowflake_fleet.map_state AS s
     SET version = fresh, changed = clock_timestamp(), is_copy = false, newer = NULL, system_identifier = w.system_identifier,
         timeline = w.timeline, database = w.database,
         history = ARRAY(SELECT v FROM (SELECT DISTINCT v FROM unnest(before || after) AS v WHERE v > 0 ORDER BY v DESC LIMIT 1000) AS l ORDER BY v)
    FROM snowflake_fleet.whereabouts() AS w;
  PERFORM pg_notify('snowflake_map', fresh::text);
  RETURN fresh;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.begin_version(bigint, bigint[]) IS
  'Behind change_map() and map_recovered(): the map''s next version, greater than `after`, and which it follows';

-- What libpq may add one day can be a secret.
CREATE FUNCTION snowflake_fleet.known_options() RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT '{host,hostaddr,port,dbname,user,passfile,service,options,application_name,connect_timeout,client_encoding,
           keepalives,keepalives_idle,keepalives_interval,keepalives_count,tcp_user_timeout,target_session_attrs,
           load_balance_hosts,channel_binding,require_auth,requirepeer,sslmode,sslnegotiation,sslcompression,sslcert,
           sslcertmode,sslkey,sslrootcert,sslcrl,sslcrldir,sslsni,ssl_min_protocol_version,ssl_max_protocol_version,
           gssencmode,krbsrvname,gsslib,gssdelegation}'::text[]
$$;
COMMENT ON FUNCTION snowflake_fleet.known_options() IS
  'Internal: what a connection string of the map may say: libpq''s options, but for those that are secrets';

CREATE FUNCTION snowflake_fleet.check_conninfo(conninfo text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  refused text;
BEGIN
  SELECT o.option INTO refused FROM snowflake_fleet.options_of(conninfo) AS o
   WHERE o.option <> ALL (snowflake_fleet.known_options()) LIMIT 1;
  IF refused IN ('password', 'sslpassword') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'a connection string of the map has no password',
      DETAIL = 'Everybody who may connect may read the map.',
      HINT = 'Put the password into a passfile on the machine that connects.';
  ELSIF refused IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'a connection string of the map has an option that is not known',
      DETAIL = format('It is called "%s". Everybody who may connect may read the map, so a secret may not be in it.', left(refused, 30)),
      HINT = 'Leave it out, or set it where the connection is made.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_conninfo(text) IS
  'Internal: refuses a connection string for the map that cannot be read, or holds a password or an option that is not known';

CREATE FUNCTION snowflake_fleet.set_server(name text, conninfo text) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  fresh bigint;
BEGIN
  IF set_server.name IS NULL OR set_server.conninfo IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
      MESSAGE = 'name and conninfo must not be null',
      HINT = 'Give a name and a connection string, such as ''host=db1 dbname=app''.';
  END IF;
  IF octet_length(set_server.name) NOT BETWEEN 1 AND 50 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'a server''s name has 1 to 50 bytes',
      DETAIL = format('This one has %s.', octet_length(set_server.name)),
      HINT = 'Choose another name.';
  END IF;
  PERFORM snowflake_fleet.check_conninfo(set_server.conninfo);
  fresh := snowflake_fleet.change_map();
  INSERT INTO snowflake_fleet.map_server (name, conninfo) VALUES (set_server.name, set_server.conninfo)
  ON CONFLICT (name) DO UPDATE SET conninfo = excluded.conninfo;
  PERFORM snowflake_fleet.follow_map();
  RETURN fresh;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.set_server(text, text) IS
  'Puts a server into the map, or says how it is reached from now on; returns the map''s version';

CREATE FUNCTION snowflake_fleet.drop_server(name text) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  fresh bigint := snowflake_fleet.change_map();
  has bigint := count(*) FROM snowflake_fleet.map_shard AS m WHERE m.server = drop_server.name;
BEGIN
  IF has <> 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
      MESSAGE = format('server %s still has shards', quote_ident(drop_server.name)),
      DETAIL = format('The map says that %s are there.', has),
      HINT = 'Move them to other servers first.';
  END IF;
  DELETE FROM snowflake_fleet.map_server AS s WHERE s.name = drop_server.name;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('there is no server %s in the map', quote_ident(drop_server.name)),
      HINT = 'The table snowflake_fleet.map_server has them all.';
  END IF;
  RETURN fresh;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.drop_server(text) IS
  'Takes a server without shards out of the map; returns the map''s version';

CREATE FUNCTION snowflake_fleet.check_server(server text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM snowflake_fleet.map_server AS s WHERE s.name = server) OR server IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('there is no server %s in the map', coalesce(quote_ident(server), 'null')),
      HINT = 'Put it there with snowflake_fleet.set_server().';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_server(text) IS 'Internal: refuses a server that is not in the map';

CREATE FUNCTION snowflake_fleet.assign(shards int4range, server text) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  fresh bigint := snowflake_fleet.change_map();
  taken record;
BEGIN
  PERFORM snowflake_fleet.check_server(assign.server);
  IF shards IS NULL OR isempty(shards) OR lower_inf(shards) OR upper_inf(shards) OR lower(shards) < 0
     OR upper(shards) > 16777216 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('shards %s are out of range', coalesce(shards::text, 'null')),
      DETAIL = 'A layout has 16777216 shards at most.',
      HINT = 'Give a range of shards, such as ''[0,16)''.';
  END IF;
  -- That the map changes does not move a row.
  SELECT m.* INTO taken FROM snowflake_fleet.map_shard AS m
   WHERE m.shard <@ shards AND m.server <> assign.server ORDER BY m.shard LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_in_use',
      MESSAGE = format('shard %s has its rows on server %s', taken.shard, quote_ident(taken.server)),
      DETAIL = 'They would not be found any more.',
      HINT = 'Move it with the program snowflake-move-shard.';
  END IF;
  INSERT INTO snowflake_fleet.map_shard (shard, server)
  SELECT shard, assign.server FROM generate_series(lower(shards), upper(shards) - 1) AS shard
  ON CONFLICT (shard) DO NOTHING;
  PERFORM snowflake_fleet.follow_map();
  RETURN fresh;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.assign(int4range, text) IS
  'Says that shards which had no rows anywhere are on a server; returns the map''s version';

CREATE FUNCTION snowflake_fleet.move(shard integer, source text, target text) RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  fresh bigint := snowflake_fleet.change_map();
  found text := m.server FROM snowflake_fleet.map_shard AS m WHERE m.shard = move.shard;
BEGIN
  PERFORM snowflake_fleet.check_server(target);
  IF found IS DISTINCT FROM source THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('shard %s is not on server %s', move.shard, coalesce(quote_ident(source), 'null')),
      DETAIL = CASE WHEN found IS NULL THEN 'It is not in the map.'
                    ELSE format('The map says that it is on server %s.', quote_ident(found)) END,
      HINT = 'The view snowflake_fleet.map has what is.';
  END IF;
  UPDATE snowflake_fleet.map_shard AS m SET server = target WHERE m.shard = move.shard;
  PERFORM snowflake_fleet.follow_map();
  RETURN fresh;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.move(integer, text, text) IS
  'Internal: says that a shard is on another server than before. Its rows have to be there already: the '
  'program snowflake-move-shard calls this at the right moment';
-- Copies of the map on data servers and routers: taken as one document, and put in place of an older one.

-- Options of a connection string, as libpq reads it: name = value, where a value may be 'quoted', and
-- a backslash takes the next character as it is. URIs are not for the map. An error repeats nothing of the
-- string: a password may be in it.
CREATE FUNCTION snowflake_fleet.options_of(conninfo text)
  RETURNS TABLE (option text, value text)
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  rest text := ltrim(conninfo, E' \t\n\r\f\v');
  matched text[];
BEGIN
  WHILE rest <> '' LOOP
    matched := regexp_match(rest, '^([a-z_]+)\s*=\s*(?:''((?:[^\\'']|\\.)*)''|((?:[^\\\s'']|\\.)*))(?:\s+|$)(.*)$');
    IF matched IS NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
        MESSAGE = 'connection string cannot be read',
        DETAIL = format('What cannot be read begins with character %s.', length(conninfo) - length(rest) + 1),
        HINT = 'Write it as ''host=db1 port=5432 dbname=app'', and no URI.';
    END IF;
    option := matched[1];
    value := regexp_replace(coalesce(matched[2], matched[3]), '\\(.)', '\1', 'g');
    rest := matched[4];
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.options_of(text) IS
  'Internal: the options of a connection string in libpq''s form name=value';

-- Of an option that is there twice libpq takes the last.
CREATE FUNCTION snowflake_fleet.with_timeouts(conninfo text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT 'connect_timeout=10 keepalives_idle=30 keepalives_interval=10 keepalives_count=3 tcp_user_timeout=60000 ' || conninfo
$$;
COMMENT ON FUNCTION snowflake_fleet.with_timeouts(text) IS
  'Internal: the connection string, with time limits where it has none: 10 s to connect, 60 s for a network that is gone';

CREATE FUNCTION snowflake_fleet.export_map() RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT jsonb_build_object(
    'version', (SELECT version FROM snowflake_fleet.map_state),
    'history', (SELECT to_jsonb(history) FROM snowflake_fleet.map_state),
    'servers', (SELECT coalesce(jsonb_object_agg(name, conninfo), '{}') FROM snowflake_fleet.map_server),
    'shards', (SELECT coalesce(jsonb_object_agg(server, shards), '{}')
                 FROM (SELECT server, jsonb_agg(shard ORDER BY shard) AS shards
                         FROM snowflake_fleet.map_shard GROUP BY server) AS s))
$$;
COMMENT ON FUNCTION snowflake_fleet.export_map() IS
  'The whole map as one document: version and those before it, servers with their connection strings, shards by server';

CREATE FUNCTION snowflake_fleet.check_map(map jsonb) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF map IS NULL OR jsonb_typeof(map -> 'version') IS DISTINCT FROM 'number'
     OR jsonb_typeof(map -> 'history') IS DISTINCT FROM 'array'
     OR jsonb_typeof(map -> 'servers') IS DISTINCT FROM 'object'
     OR jsonb_typeof(map -> 'shards') IS DISTINCT FROM 'object' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'this is no map',
      DETAIL = 'A map has a version, a history, servers and shards.',
      HINT = 'Pass what snowflake_fleet.export_map() returns.';
  END IF;
  PERFORM snowflake_fleet.check_conninfo(value) FROM jsonb_each_text(map -> 'servers');
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_map(jsonb) IS 'Internal: refuses what export_map() does not return';

CREATE FUNCTION snowflake_fleet.replace_map(map jsonb) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  DELETE FROM snowflake_fleet.map_shard;
  DELETE FROM snowflake_fleet.map_server;
  INSERT INTO snowflake_fleet.map_server (name, conninfo)
  SELECT key, value FROM jsonb_each_text(map -> 'servers');
  INSERT INTO snowflake_fleet.map_shard (shard, server)
  SELECT shard::integer, key FROM jsonb_each(map -> 'shards'), jsonb_array_elements_text(value) AS shard;
  PERFORM snowflake_fleet.follow_map();
END
$$;
COMMENT ON FUNCTION snowflake_fleet.replace_map(jsonb) IS
  'Behind import_map() and map_recovered(): servers and shards as the document has them';

CREATE FUNCTION snowflake_fleet.import_map(map jsonb) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  state snowflake_fleet.map_state;
  arrived bigint;
  followed bigint[];
BEGIN
  PERFORM snowflake_fleet.check_map(map);
  arrived := (map ->> 'version')::bigint;
  followed := ARRAY(SELECT v::bigint FROM jsonb_array_elements_text(map -> 'history') AS v ORDER BY 1);
  SELECT s.* INTO STRICT state FROM snowflake_fleet.map_state AS s FOR UPDATE;
  IF NOT state.is_copy AND state.version > 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database has a map of its own',
      DETAIL = format('It is the control database, with version %s.', state.version),
      HINT = 'Import the map where routing is done.';
  END IF;
  IF arrived <= state.version THEN
    RETURN false;
  END IF;
  -- Versions older than the history are not known one by one.
  IF state.version > 0 AND state.version <> ALL (followed) AND (cardinality(followed) < 1000 OR state.version > followed[1]) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('the map that arrives does not follow version %s, which is here', state.version),
      DETAIL = format('It has version %s. The control database went back to a time before the map here, and was changed since.', arrived),
      HINT = 'Run "snowflake-push-map --recover", which asks all copies.';
  END IF;
  PERFORM snowflake_fleet.replace_map(map);
  UPDATE snowflake_fleet.map_state
     SET version = arrived, history = followed, is_copy = true, changed = clock_timestamp();
  PERFORM pg_notify('snowflake_map', arrived::text);
  RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.import_map(jsonb) IS
  'Puts a map that is newer in place of the copy here; returns whether it was. An error (55000) where it does not follow the copy';

-- The control database after it was restored, recovered or promoted.

CREATE FUNCTION snowflake_fleet.map_is_behind(newer bigint) RETURNS void
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
  UPDATE snowflake_fleet.map_state AS s SET newer = greatest(s.newer, map_is_behind.newer)
   WHERE NOT is_copy AND map_is_behind.newer > version
$$;
COMMENT ON FUNCTION snowflake_fleet.map_is_behind(bigint) IS
  'Internal: in the control database: says that a copy has a newer version. The map is then not changed before map_recovered()';

CREATE FUNCTION snowflake_fleet.map_recovered(newest jsonb DEFAULT NULL, others bigint[] DEFAULT '{}') RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  state snowflake_fleet.map_state;
  known bigint[];
  difference record;
BEGIN
  SELECT s.* INTO STRICT state FROM snowflake_fleet.map_state AS s FOR UPDATE;
  IF state.is_copy THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'this database has a copy of the map',
      DETAIL = 'What is recovered is the map of the control database.',
      HINT = 'Call it in the control database.';
  END IF;
  known := state.history || state.version || others;
  -- A copy whose version this map follows knows nothing that is not here.
  IF newest IS NOT NULL AND NOT (newest ->> 'version')::bigint = ANY (state.history || state.version) THEN
    PERFORM snowflake_fleet.check_map(newest);
    FOR difference IN
      SELECT shard, h.server AS here, n.server AS there
        FROM snowflake_fleet.map_shard AS h
        FULL JOIN (SELECT s::integer AS shard, key AS server FROM jsonb_each(newest -> 'shards'), jsonb_array_elements_text(value) AS s) AS n
       USING (shard)
       WHERE h.server IS DISTINCT FROM n.server ORDER BY shard
    LOOP
      RAISE NOTICE 'shard % is %, as in the copy; here it was %', difference.shard,
        coalesce('on server ' || quote_ident(difference.there), 'in no server'), coalesce('on server ' || quote_ident(difference.here), 'in no server');
    END LOOP;
    PERFORM snowflake_fleet.replace_map(newest);
    known := known || (newest ->> 'version')::bigint || ARRAY(SELECT v::bigint FROM jsonb_array_elements_text(newest -> 'history') AS v);
  END IF;
  RETURN snowflake_fleet.begin_version((SELECT max(v) FROM unnest(known) AS v), known);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.map_recovered(jsonb, bigint[]) IS
  'In the control database after it was restored, recovered or promoted: takes the newest copy, as export_map() has it, unless the map here follows it, and may be changed again. `others`: versions of other copies, which are to give way. The program "snowflake-push-map --recover" collects both. Without a copy, the caller says that none knows more. Returns the map''s version';

CREATE FUNCTION snowflake_fleet.pull_map(control text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  dblink text := (SELECT quote_ident(nspname) || '.dblink' FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace
                   WHERE extname = 'dblink');
  map jsonb;
BEGIN
  IF dblink IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'extension "dblink" is not installed in this database',
      DETAIL = 'It is what connects to the control database.',
      HINT = 'Run CREATE EXTENSION dblink, or push the map with the program snowflake-push-map.';
  END IF;
  EXECUTE format('SELECT map FROM %s($1, $2) AS map (map jsonb)', dblink)
     INTO map USING CASE WHEN control ~ '^postgres(ql)?://' THEN control ELSE snowflake_fleet.with_timeouts(control) END,
                    'SELECT snowflake_fleet.export_map()';
  RETURN snowflake_fleet.import_map(map);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.pull_map(text) IS
  'Fetches the map from the control database, by its connection string, through extension dblink; '
  'returns whether it was newer';

-- The map is for everybody who routes; who may change it is the owner.
REVOKE ALL ON FUNCTION snowflake_fleet.change_map(), snowflake_fleet.set_server(text, text),
  snowflake_fleet.drop_server(text), snowflake_fleet.check_server(text), snowflake_fleet.assign(int4range, text),
  snowflake_fleet.move(integer, text, text), snowflake_fleet.import_map(jsonb), snowflake_fleet.replace_map(jsonb),
  snowflake_fleet.check_map_state(snowflake_fleet.map_state), snowflake_fleet.begin_version(bigint, bigint[]),
  snowflake_fleet.map_is_behind(bigint), snowflake_fleet.map_recovered(jsonb, bigint[]),
  snowflake_fleet.check_conninfo(text), snowflake_fleet.check_map(jsonb),
  snowflake_fleet.pull_map(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_fleet.map_version(), snowflake_fleet.server_of(bigint),
  snowflake_fleet.server_of_shard(integer), snowflake_fleet.export_map(), snowflake_fleet.options_of(text),
  snowflake_fleet.with_timeouts(text) TO PUBLIC;
-- PL/Proxy: the cluster functions that it asks, answered from the map.
--
-- A cluster has as many partitions as the layout has shards, in their order, so that RUN ON
-- snowflake.shard_of(id) is the partition. Shards that are not in the map have a partition that
-- nobody can connect to, and whose name says so; snowflake_fleet.run_on(id) refuses them properly.

CREATE FUNCTION snowflake_fleet.run_on(id bigint) RETURNS integer
  LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  wanted integer := snowflake.shard_of(id);
BEGIN
  IF NOT EXISTS (SELECT FROM snowflake_fleet.map_shard AS m WHERE m.shard OPERATOR(pg_catalog.=) wanted) THEN
    PERFORM snowflake_fleet.server_of_shard(wanted);
  END IF;
  RETURN wanted;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.run_on(bigint) IS
  'For RUN ON in PL/Proxy: the shard of an id; an error (55000) where the map does not have it';

CREATE FUNCTION snowflake_fleet.partitions() RETURNS SETOF text
  LANGUAGE plpgsql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN QUERY
  SELECT snowflake_fleet.with_timeouts(coalesce(m.conninfo, format('host=''/shard %s is not in the map''', s.shard)))
    FROM snowflake.layout AS l, generate_series(0, l.shards - 1) AS s (shard)
    LEFT JOIN snowflake_fleet.map AS m ON m.shard = s.shard
   ORDER BY s.shard;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.partitions() IS
  'Connection strings in the order of the shards, one for each shard of the layout, with time limits';

CREATE PROCEDURE snowflake_fleet.use_plproxy(cluster text DEFAULT 'snowflake')
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- What follows the BEGIN of each function, so that ours are known again.
  mark CONSTANT text := '-- made by snowflake_fleet.use_plproxy()';
  body CONSTANT text := E'\nBEGIN\n  ' || mark || E'\n'
    '  IF cluster_name IS DISTINCT FROM %1$L THEN\n'
    '    RAISE EXCEPTION USING ERRCODE = ''undefined_object'',\n'
    '      MESSAGE = format(''there is no cluster %%s'', quote_ident(cluster_name)),\n'
    '      DETAIL = ''The cluster that the map of snowflake_fleet makes is called "'' || %1$L || ''".'',\n'
    '      HINT = ''Name that one in CLUSTER.'';\n'
    '  END IF;\n'
    '  %2$s\n'
    'END\n';
  foreign_one text;
BEGIN
  IF cluster IS NULL OR cluster = '' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'the cluster needs a name',
      HINT = 'Leave out the argument for the name "snowflake".';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'plproxy')
     OR NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'snowflake') THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'extensions "plproxy" and "snowflake" have to be installed in this database',
      DETAIL = 'PL/Proxy calls, and snowflake says to which shard an id belongs.',
      HINT = 'Run CREATE EXTENSION for both.';
  END IF;
  -- There can be one set of these functions in a database.
  SELECT p.oid::regprocedure::text INTO foreign_one
    FROM pg_proc AS p
   WHERE pronamespace = to_regnamespace('plproxy')
     AND proname IN ('get_cluster_version', 'get_cluster_partitions', 'get_cluster_config')
     AND strpos(prosrc, mark) = 0 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'duplicate_function',
      MESSAGE = format('function %s exists already', foreign_one),
      DETAIL = 'This database has clusters of its own.',
      HINT = 'Drop the functions of PL/Proxy''s clusters, or have yours answer from snowflake_fleet.partitions().';
  END IF;

  CREATE SCHEMA IF NOT EXISTS plproxy;
  -- Whoever calls a function of PL/Proxy has these functions called, as himself. They tell what the map tells everybody, so
  -- the schema is opened to everybody, unless there is more in it, or its privileges were chosen already.
  IF NOT EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = 'plproxy'::regnamespace
                    AND NOT (classid = 'pg_proc'::regclass AND objid IN
                             (SELECT oid FROM pg_proc WHERE pronamespace = 'plproxy'::regnamespace AND strpos(prosrc, mark) > 0)))
     AND (SELECT nspacl FROM pg_namespace WHERE nspname = 'plproxy') IS NULL THEN
    GRANT USAGE ON SCHEMA plproxy TO PUBLIC;
  ELSIF NOT EXISTS (SELECT FROM pg_namespace, aclexplode(nspacl) AS a
                     WHERE nspname = 'plproxy' AND grantee = 0 AND a.privilege_type = 'USAGE') THEN
    RAISE NOTICE USING MESSAGE = 'schema plproxy is not for everybody',
      DETAIL = 'It has privileges or objects that were not made here.',
      HINT = 'GRANT USAGE ON SCHEMA plproxy to the roles that call functions of PL/Proxy.';
  END IF;
  -- PL/Proxy looks for another number, not for a greater one; the version does not fit its integer.
  EXECUTE format('CREATE OR REPLACE FUNCTION plproxy.get_cluster_version(cluster_name text) RETURNS integer '
    'LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS %L',
    format(body, cluster, 'RETURN snowflake_fleet.map_version() % 2147483647;'));
  EXECUTE format('CREATE OR REPLACE FUNCTION plproxy.get_cluster_partitions(cluster_name text) RETURNS SETOF text '
    'LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS %L',
    format(body, cluster, 'RETURN QUERY SELECT p FROM snowflake_fleet.partitions() AS p;'));
  EXECUTE format('CREATE OR REPLACE FUNCTION plproxy.get_cluster_config('
    'IN cluster_name text, OUT key text, OUT val text) RETURNS SETOF record '
    'LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS %L',
    format(body, cluster, 'RETURN;'));
END
$$;
COMMENT ON PROCEDURE snowflake_fleet.use_plproxy(text) IS
  'Makes the functions by which PL/Proxy learns of a cluster answer from the map; they follow it when it changes. Opens their schema, plproxy, to all roles where nothing else is in it';

REVOKE ALL ON PROCEDURE snowflake_fleet.use_plproxy(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_fleet.run_on(bigint), snowflake_fleet.partitions() TO PUBLIC;
-- postgres_fdw: a table that is PARTITION BY HASH (id snowflake.by_shard) whose partitions are foreign
-- tables, one for each shard of the map. PostgreSQL then finds the one server that has a row.
--
-- Each shard has a foreign server of its own, whose options say where the shard is. When it moves, these
-- options change and nothing else does: no table is locked, and sessions connect anew with their next
-- transaction. A foreign server for each server of the map would take fewer connections, but a foreign
-- table can change its server only by being made anew, behind everybody who reads the whole table.

CREATE FUNCTION snowflake_fleet.fdw_server_name(shard integer) RETURNS name
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT ('snowflake_shard_' OPERATOR(pg_catalog.||) shard)::name $$;
COMMENT ON FUNCTION snowflake_fleet.fdw_server_name(integer) IS
  'Behind snowflake_fleet.use_postgres_fdw: what the foreign server of a shard is called';

-- Options that are libpq's are the map's to say; postgres_fdw's own, such as fetch_size, are left alone.
CREATE FUNCTION snowflake_fleet.follow_map() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this record;
  changes text;
BEGIN
  FOR this IN
    WITH home AS MATERIALIZED (
      SELECT s.name, (SELECT jsonb_object_agg(option, value)
                        FROM snowflake_fleet.options_of(snowflake_fleet.with_timeouts(s.conninfo))) AS options
        FROM snowflake_fleet.map_server AS s
    )
    SELECT srvname, srvowner::regrole AS owner, h.options ->> 'user' AS login,
           coalesce(h.options - '{user,client_encoding}'::text[],
                    jsonb_build_object('host', format('/shard %s is not in the map', substr(srvname, 17)))) AS wanted,
           (SELECT coalesce(jsonb_object_agg(option_name, option_value), '{}') FROM pg_options_to_table(srvoptions)) AS had,
           (SELECT jsonb_object_agg(option_name, option_value)
              FROM pg_user_mappings AS u, pg_options_to_table(umoptions) WHERE u.srvid = f.oid AND umuser = srvowner) AS mapped
      FROM pg_foreign_server AS f JOIN pg_foreign_data_wrapper AS w ON w.oid = srvfdw AND fdwname = 'postgres_fdw'
      LEFT JOIN snowflake_fleet.map_shard AS m ON srvname = snowflake_fleet.fdw_server_name(m.shard)
      LEFT JOIN home AS h ON h.name = m.server
     WHERE srvname ~ '^snowflake_shard_[0-9]+$' ORDER BY srvname
  LOOP
    SELECT string_agg(change, ', ') INTO changes FROM (
      SELECT format('DROP %I', key) FROM jsonb_object_keys(this.had) AS key
       WHERE NOT this.wanted ? key AND key = ANY (snowflake_fleet.known_options())
      UNION ALL
      SELECT format('%s %I %L', CASE WHEN this.had ? key THEN 'SET' ELSE 'ADD' END, key, value)
        FROM jsonb_each_text(this.wanted) WHERE this.had ->> key IS DISTINCT FROM value) AS c (change);
    IF changes IS NOT NULL THEN
      EXECUTE format('ALTER SERVER %I OPTIONS (%s)', this.srvname, changes);
    END IF;
    -- The user of the map is for the mapping that was made here; those of others are theirs.
    IF this.mapped ->> 'user' <> this.login THEN
      EXECUTE format('ALTER USER MAPPING FOR %s SERVER %I OPTIONS (SET user %L)', this.owner, this.srvname, this.login);
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.follow_map() IS
  'Internal: has the foreign servers of use_postgres_fdw() lead to where the map says that their shards are; whatever changes the map or its copy calls it';

CREATE FUNCTION snowflake_fleet.make_fdw_servers() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this record;
  mapping record;
  made integer := 0;
  -- The roles that one of the servers knows are known by the new ones.
  model CONSTANT oid := min(oid) FROM pg_foreign_server WHERE srvname ~ '^snowflake_shard_[0-9]+$';
BEGIN
  FOR this IN
    SELECT snowflake_fleet.fdw_server_name(m.shard) AS fdw, (SELECT value FROM snowflake_fleet.options_of(m.conninfo) WHERE option = 'user') AS login
      FROM snowflake_fleet.map AS m
     WHERE NOT EXISTS (SELECT FROM pg_foreign_server WHERE srvname = snowflake_fleet.fdw_server_name(m.shard)) ORDER BY m.shard
  LOOP
    EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw', this.fdw);
    FOR mapping IN
      SELECT CASE umuser WHEN 0 THEN 'PUBLIC' ELSE quote_ident(usename) END AS role,
             (SELECT string_agg(format('%I %L', option_name, option_value), ', ') FROM pg_options_to_table(umoptions)) AS options
        FROM pg_user_mappings WHERE srvid = model
      UNION ALL
      SELECT 'CURRENT_USER', 'user ' || quote_literal(this.login) WHERE model IS NULL
    LOOP
      EXECUTE format('CREATE USER MAPPING FOR %s SERVER %I%s', mapping.role, this.fdw, ' OPTIONS (' || mapping.options || ')');
    END LOOP;
    made := made + 1;
  END LOOP;
  IF made > 0 AND model IS NULL THEN
    RAISE NOTICE USING MESSAGE = format('%s foreign servers have a user mapping for %s only', made, quote_ident(current_user)),
      HINT = 'Make one for each role that routes.';
  END IF;
  PERFORM snowflake_fleet.follow_map();
END
$$;
COMMENT ON FUNCTION snowflake_fleet.make_fdw_servers() IS
  'Behind snowflake_fleet.use_postgres_fdw: a foreign server for each shard of the map';

-- The remote table of a shard: %s in `remote` is the shard's number.
CREATE FUNCTION snowflake_fleet.remote_name(remote text, shard integer, OUT schema text, OUT relation text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  part CONSTANT text[] := parse_ident(replace(remote, '%s', shard::text));
BEGIN
  IF cardinality(part) <> 2 OR strpos(remote, '%s') = 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('"%s" names no table of a shard', remote),
      DETAIL = 'It takes a schema and a table, and %s where the shard''s number belongs.',
      HINT = 'Write it as ''shard_%s.photos'' or ''public.photos_%s''.';
  END IF;
  schema := part[1];
  relation := part[2];
END
$$;
COMMENT ON FUNCTION snowflake_fleet.remote_name(text, integer) IS
  'Behind snowflake_fleet.use_postgres_fdw: schema and name of a shard''s table on its server';

CREATE FUNCTION snowflake_fleet.check_fdw_parent(parent regclass) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'postgres_fdw') THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = 'extension "postgres_fdw" is not installed in this database',
      DETAIL = 'The partitions are to be foreign tables.',
      HINT = 'Run CREATE EXTENSION postgres_fdw.';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_partitioned_table JOIN pg_opclass AS o ON o.oid = partclass[0]
                  WHERE partrelid = parent AND partnatts = 1 AND opcname = 'by_shard'
                    AND opcnamespace = to_regnamespace('snowflake')) THEN
    RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
      MESSAGE = format('%s is not partitioned by shard', coalesce(parent::text, 'null')),
      DETAIL = 'Its partition key has to be one column, with the operator class snowflake.by_shard.',
      HINT = 'Make it with PARTITION BY HASH (id snowflake.by_shard).';
  END IF;
  IF EXISTS (SELECT FROM pg_index WHERE indrelid = parent AND indisunique) THEN
    RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
      MESSAGE = format('%s has a key', parent),
      DETAIL = 'PostgreSQL has no keys over foreign tables; each shard''s table keeps its own.',
      HINT = 'Drop the key here.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_fdw_parent(regclass) IS
  'Behind snowflake_fleet.use_postgres_fdw: raises the error that fits the table';

CREATE FUNCTION snowflake_fleet.check_partitions(parent regclass, remote text) RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  places CONSTANT integer := l.shards FROM snowflake.layout AS l;
  odd record;
BEGIN
  SELECT h.* INTO odd
    FROM (SELECT c.oid::regclass AS partition, s.srvname, b.bound[1]::integer AS modulus, b.bound[2]::integer AS shard,
                 (SELECT jsonb_object_agg(option_name, option_value) FROM pg_options_to_table(t.ftoptions)) AS options
            FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
            CROSS JOIN LATERAL (SELECT regexp_match(pg_get_expr(c.relpartbound, c.oid), 'modulus (\d+), remainder (\d+)')) AS b (bound)
            LEFT JOIN pg_foreign_table AS t ON ftrelid = c.oid LEFT JOIN pg_foreign_server AS s ON s.oid = ftserver
           WHERE inhparent = parent) AS h
    LEFT JOIN LATERAL snowflake_fleet.remote_name(remote, h.shard) AS r ON true
   WHERE (h.modulus, h.srvname, h.options ->> 'schema_name', h.options ->> 'table_name')
         IS DISTINCT FROM (places, snowflake_fleet.fdw_server_name(h.shard), r.schema, r.relation)
   ORDER BY h.partition::text LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
      MESSAGE = format('partition %s was not made by use_postgres_fdw()', odd.partition),
      DETAIL = format('It has modulus %s, foreign server %s and table %s.%s; wanted are modulus %s, server %s and table %s.', odd.modulus,
                      coalesce(odd.srvname, '(none)'), coalesce(odd.options ->> 'schema_name', '(none)'),
                      coalesce(odd.options ->> 'table_name', '(none)'), places, snowflake_fleet.fdw_server_name(odd.shard),
                      replace(remote, '%s', odd.shard::text)),
      HINT = 'Detach it.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.check_partitions(regclass, text) IS
  'Behind snowflake_fleet.use_postgres_fdw: refuses partitions that are not as it makes them';

-- Whoever comes while the lock is waited for waits as well, so each attempt is short.
CREATE FUNCTION snowflake_fleet.lock_shortly(parent regclass) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  before CONSTANT text := current_setting('lock_timeout');
BEGIN
  FOR attempt IN 1 .. 50 LOOP
    BEGIN
      PERFORM set_config('lock_timeout', '200ms', true);
      EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', parent);
      PERFORM set_config('lock_timeout', before, true);
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      PERFORM pg_sleep(0.01 * attempt);
    END;
  END LOOP;
  RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
    MESSAGE = format('table %s could not be locked', parent),
    DETAIL = 'Others use it in transactions that do not end; it was tried 50 times, for 200 ms each.',
    HINT = 'Call it again when they have ended.';
END
$$;
COMMENT ON FUNCTION snowflake_fleet.lock_shortly(regclass) IS
  'Behind snowflake_fleet.use_postgres_fdw: locks a table in attempts of 200 ms; an error (55P03) where 50 do not get it';

CREATE PROCEDURE snowflake_fleet.use_postgres_fdw(parent regclass, remote text DEFAULT NULL)
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  places CONSTANT integer := l.shards FROM snowflake.layout AS l;
  home name;
  base name;
  pattern text;
  wanted record;
  locked boolean := false;
BEGIN
  PERFORM snowflake_fleet.check_fdw_parent(parent);
  SELECT n.nspname, c.relname INTO home, base
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = parent;
  pattern := coalesce(remote, 'shard_%s.' || quote_ident(base));
  PERFORM snowflake_fleet.remote_name(pattern, 0);
  PERFORM snowflake_fleet.check_partitions(parent, pattern);
  PERFORM snowflake_fleet.make_fdw_servers();
  FOR wanted IN
    SELECT m.shard, r.*
      FROM snowflake_fleet.map_shard AS m, snowflake_fleet.remote_name(pattern, m.shard) AS r
     WHERE NOT EXISTS (SELECT FROM pg_inherits JOIN pg_foreign_table ON ftrelid = inhrelid JOIN pg_foreign_server AS s ON s.oid = ftserver
                        WHERE inhparent = parent AND srvname = snowflake_fleet.fdw_server_name(m.shard))
     ORDER BY m.shard
  LOOP
    IF NOT locked THEN
      PERFORM snowflake_fleet.lock_shortly(parent);
      locked := true;
    END IF;
    EXECUTE format('CREATE FOREIGN TABLE %I.%I PARTITION OF %s FOR VALUES WITH (MODULUS %s, REMAINDER %s) '
                   'SERVER %I OPTIONS (schema_name %L, table_name %L)',
                   home, left(base, 40) || '_shard_' || wanted.shard, parent, places, wanted.shard,
                   snowflake_fleet.fdw_server_name(wanted.shard), wanted.schema, wanted.relation);
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake_fleet.use_postgres_fdw(regclass, text) IS
  'Gives a table partitioned by shard a foreign partition for each shard of the map, or those that it lacks. When a shard moves they follow by themselves. `remote` names the table of a shard, as in ''shard_%s.photos'', the default';

CREATE PROCEDURE snowflake_fleet.use_postgres_fdw()
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this record;
BEGIN
  FOR this IN
    WITH partition AS (
      SELECT inhparent, substr(srvname, 17) AS shard,
             (SELECT option_value FROM pg_options_to_table(ftoptions) WHERE option_name = 'schema_name') AS schema,
             (SELECT option_value FROM pg_options_to_table(ftoptions) WHERE option_name = 'table_name') AS relation
        FROM pg_inherits JOIN pg_foreign_table ON ftrelid = inhrelid JOIN pg_foreign_server AS s ON s.oid = ftserver
       WHERE srvname ~ '^snowflake_shard_[0-9]+$'
    ), parent AS (
      SELECT inhparent, count(*) AS partitions FROM partition GROUP BY 1
    )
    -- The pattern that the tables of all shards have: the number stands in the schema, the table, or both.
    SELECT o.inhparent::regclass AS parent, min(v.pattern) AS pattern
      FROM parent AS o CROSS JOIN LATERAL (
        SELECT c.pattern
          FROM partition AS p, LATERAL (VALUES
            (format('%I.%I', replace(p.schema, p.shard, '%s'), p.relation)),
            (format('%I.%I', p.schema, replace(p.relation, p.shard, '%s'))),
            (format('%I.%I', replace(p.schema, p.shard, '%s'), replace(p.relation, p.shard, '%s')))) AS c (pattern)
         WHERE p.inhparent = o.inhparent AND strpos(c.pattern, '%s') > 0
         GROUP BY c.pattern HAVING count(DISTINCT p.shard) = o.partitions) AS v
     GROUP BY o.inhparent ORDER BY o.inhparent
  LOOP
    CALL snowflake_fleet.use_postgres_fdw(this.parent, this.pattern);
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake_fleet.use_postgres_fdw() IS
  'Gives each table that has foreign partitions of use_postgres_fdw() those for shards that are new in the map';

REVOKE ALL ON PROCEDURE snowflake_fleet.use_postgres_fdw(regclass, text), snowflake_fleet.use_postgres_fdw() FROM PUBLIC;
REVOKE ALL ON FUNCTION snowflake_fleet.follow_map(), snowflake_fleet.make_fdw_servers(), snowflake_fleet.check_fdw_parent(regclass),
  snowflake_fleet.check_partitions(regclass, text), snowflake_fleet.lock_shortly(regclass) FROM PUBLIC;
-- Moving a shard's schema to another server: what the program snowflake-move-shard keeps in the databases.
-- The target subscribes to the source's tables; when they are level, the source is fenced, the last changes
-- arrive, the map is changed, and the source's schema is renamed and kept, fenced.

CREATE TABLE snowflake_fleet.moving (
  shard integer NOT NULL,
  schema name NOT NULL,
  side text NOT NULL CHECK (side OPERATOR(pg_catalog.=) 'source' OR side OPERATOR(pg_catalog.=) 'target'),
  state text NOT NULL,
  other text NOT NULL,
  other_database text NOT NULL,
  made boolean NOT NULL DEFAULT false,
  fingerprint text,
  definition text,
  sequences jsonb,
  began timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  changed timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  PRIMARY KEY (schema, side),
  CHECK (side OPERATOR(pg_catalog.=) 'source' AND state OPERATOR(pg_catalog.~) '^(begun|copying|fenced|moved|kept)$'
      OR side OPERATOR(pg_catalog.=) 'target' AND state OPERATOR(pg_catalog.~) '^(reserved|arriving|level|here)$')
);
-- A shard moves once at a time.
CREATE UNIQUE INDEX moving_once ON snowflake_fleet.moving (shard, side) WHERE state OPERATOR(pg_catalog.<>) 'kept';
COMMENT ON TABLE snowflake_fleet.moving IS
  'Moves of shards from and to this database by the program snowflake-move-shard, and how far they are';
COMMENT ON COLUMN snowflake_fleet.moving.schema IS 'Name of the schema here; a source''s is renamed at the end';
COMMENT ON COLUMN snowflake_fleet.moving.side IS 'Whether this database is the source or the target';
COMMENT ON COLUMN snowflake_fleet.moving.state IS
  'Of a source: begun (DDL is refused), copying, fenced (writes are refused), moved (the target has taken over), kept '
  '(renamed, until --drop-source). Of a target: reserved (a place among the subscriptions), arriving, level (the fence '
  'is up, all changes are there), here (it has taken over)';
COMMENT ON COLUMN snowflake_fleet.moving.other IS 'The other side: its name in the map, or how to connect to it';
COMMENT ON COLUMN snowflake_fleet.moving.other_database IS
  'The other side: system identifier and OID of its database, with a slash between them';
COMMENT ON COLUMN snowflake_fleet.moving.made IS
  'Of a target: whether the move made the schema; otherwise it was there, empty, and stays when the move is taken back';
COMMENT ON COLUMN snowflake_fleet.moving.fingerprint IS 'fingerprint() of the schema here: DDL that would change it is refused';
COMMENT ON COLUMN snowflake_fleet.moving.definition IS 'Of a source: the statements that make the schema on the target';
COMMENT ON COLUMN snowflake_fleet.moving.sequences IS
  'Of a source that is fenced: its sequences as they were, for the target, and for this server when the fence is lifted';
COMMENT ON COLUMN snowflake_fleet.moving.changed IS 'When the state was last changed';

-- Who moves a shard: a backend, for as long as it lives. Nobody but a superuser can pretend to be one, which
-- cannot be said of advisory locks; and a row lock would hold up the slots of other moves.
CREATE TABLE snowflake_fleet.move_holder (
  shard integer NOT NULL,
  role text NOT NULL,
  pid integer NOT NULL,
  began timestamptz NOT NULL,
  PRIMARY KEY (shard, role)
);
COMMENT ON TABLE snowflake_fleet.move_holder IS
  'The session of snowflake-move-shard that moves a shard: a row counts while its backend lives';
COMMENT ON COLUMN snowflake_fleet.move_holder.role IS 'What this database is to the move: control, source or target';
COMMENT ON COLUMN snowflake_fleet.move_holder.began IS 'When the backend began, for process ids are used again';

CREATE FUNCTION snowflake_fleet.hold_move(shard integer, role text) RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  holder integer;
BEGIN
  INSERT INTO snowflake_fleet.move_holder AS h
  SELECT hold_move.shard, hold_move.role, pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()
  ON CONFLICT (shard, role) DO UPDATE SET pid = excluded.pid, began = excluded.began
   WHERE NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = h.pid AND a.backend_start = h.began AND a.pid <> pg_backend_pid());
  SELECT nullif(h.pid, pg_backend_pid()) INTO holder
    FROM snowflake_fleet.move_holder AS h WHERE h.shard = hold_move.shard AND h.role = hold_move.role;
  RETURN holder;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.hold_move(integer, text) IS
  'Behind snowflake-move-shard: makes this session the one that moves a shard; NULL, or the process id of another that does';

CREATE FUNCTION snowflake_fleet.holds_move() RETURNS boolean
  LANGUAGE sql STABLE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT EXISTS (SELECT FROM snowflake_fleet.move_holder AS h
                  WHERE h.pid = pg_backend_pid() AND h.began = (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid())))
$$;
COMMENT ON FUNCTION snowflake_fleet.holds_move() IS 'Behind snowflake-move-shard: whether this session moves a shard';

-- A row that is written on the source and arrives on the target: all that was committed before it has
-- arrived as well. Which is known at once, and by no feedback that may be late.
CREATE TABLE snowflake_fleet.move_mark (
  shard integer,
  number bigint,
  PRIMARY KEY (shard, number)
);
COMMENT ON TABLE snowflake_fleet.move_mark IS 'Replicated by snowflake-move-shard along with a shard''s tables';

CREATE FUNCTION snowflake_fleet.tables_of(schema name) RETURNS SETOF regclass
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT c.oid::regclass
    FROM pg_depend AS d JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
   WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = (SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema)
     AND d.refobjid = c.relnamespace AND relkind IN ('r', 'p')
   ORDER BY c.relname
$$;
COMMENT ON FUNCTION snowflake_fleet.tables_of(name) IS 'Behind snowflake-move-shard: the tables of a schema';

-- The greatest id of each column that mints or is a key of one bigint: by its index, at once.
CREATE FUNCTION snowflake_fleet.greatest_ids(schema name, not_ids text[]) RETURNS TABLE (col text, id bigint)
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  this record;
  last_one CONSTANT bigint := CASE WHEN time_bits + region_bits + shard_bits + sequence_bits = 64 THEN 9223372036854775807
                              ELSE (1::bigint << (time_bits + region_bits + shard_bits + sequence_bits)) - 1 END
                              FROM snowflake.layout;
BEGIN
  FOR this IN
    SELECT attrelid::regclass AS relation, attname, format('%I.%I', relname, attname) AS col
      FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid
     WHERE attrelid IN (SELECT t FROM snowflake_fleet.tables_of(schema) AS t) AND attnum > 0 AND atttypid = 'bigint'::regtype
       AND NOT attisdropped
       AND EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indkey[0] = attnum AND indpred IS NULL)
       AND (EXISTS (SELECT FROM pg_attrdef AS d WHERE adrelid = attrelid AND adnum = attnum
                       AND pg_get_expr(adbin, adrelid) LIKE '%snowflake.next_id%')
            OR EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary AND indnatts = 1 AND indkey[0] = attnum))
  LOOP
    CONTINUE WHEN this.col = ANY (not_ids);
    col := this.col;
    EXECUTE format('SELECT max(%I) FROM %s WHERE %1$I <= %3$s', this.attname, this.relation, last_one) INTO id;
    IF id IS NOT NULL THEN
      RETURN NEXT;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.greatest_ids(name, text[]) IS
  'Behind snowflake-move-shard: the greatest id of each column that has ids, but for those that are named; the target is to '
  'observe them';

REVOKE ALL ON FUNCTION snowflake_fleet.hold_move(integer, text), snowflake_fleet.holds_move(),
  snowflake_fleet.tables_of(name), snowflake_fleet.greatest_ids(name, text[]) FROM PUBLIC;
-- A schema stands still while it moves: DDL that would change it is refused, whatever its form. It is not the
-- statement that is looked at, but what it has done to the catalogues.

-- Every row of the catalogues that belongs to the schema, but for what changes by itself (vacuum, analyze,
-- rewriting) and the fence. Two parts: the second is of sequences, whose limits the fence changes. Found by
-- indexes alone: it is computed while writers wait.
CREATE FUNCTION snowflake_fleet.fingerprint(schema name) RETURNS text
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  space CONSTANT oid := (SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema);
  described text;
  sequences text;
BEGIN
  IF space IS NULL THEN
    RETURN NULL;
  END IF;
  WITH contained AS MATERIALIZED (
    SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = space
  ), rel AS MATERIALIZED (
    SELECT c.* FROM contained JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
     WHERE relnamespace = space
    UNION ALL
    SELECT c.* FROM contained JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid
      JOIN pg_class AS c ON c.oid = typrelid AND c.relkind = 'c'
  ), ind AS MATERIALIZED (
    SELECT i.* FROM rel JOIN pg_index AS i ON indrelid = rel.oid
  ), typ AS MATERIALIZED (
    SELECT objid AS oid FROM contained WHERE classid = 'pg_type'::regclass
    UNION SELECT reltype FROM rel WHERE reltype <> 0
    UNION SELECT typarray FROM rel JOIN pg_type AS t ON t.oid = reltype WHERE typarray <> 0
    UNION SELECT typarray FROM contained JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid WHERE typarray <> 0
  ), con AS MATERIALIZED (
    SELECT c.* FROM rel JOIN pg_constraint AS c ON conrelid = rel.oid
    UNION ALL
    SELECT c.* FROM typ JOIN pg_constraint AS c ON contypid = typ.oid AND contypid <> 0
  ), part (classid, objid, line) AS MATERIALIZED (
    SELECT 'pg_namespace'::regclass::oid, n.oid, to_jsonb(n)::text || nspowner::regrole FROM pg_namespace AS n WHERE n.oid = space
    UNION ALL
    SELECT 'pg_class'::regclass, c.oid, (to_jsonb(c) - ARRAY['relfilenode', 'relpages', 'reltuples', 'relallvisible', 'relallfrozen',
                                   'relfrozenxid', 'relminmxid', 'relhasindex', 'relhastriggers', 'relhasrules', 'relrewrite'])::text || relowner::regrole
      FROM (SELECT * FROM rel UNION ALL SELECT c.* FROM ind JOIN pg_class AS c ON c.oid = indexrelid) AS c
    UNION ALL
    SELECT 'pg_class'::regclass, t.oid, t.reloptions::text FROM rel JOIN pg_class AS t ON t.oid = rel.reltoastrelid
    UNION ALL
    SELECT 0, 0, (to_jsonb(a) - ARRAY['attcacheoff', 'attmissingval', 'atthasmissing'])::text
      FROM rel JOIN pg_attribute AS a ON attrelid = rel.oid WHERE attnum > 0
    UNION ALL
    SELECT 0, 0, (to_jsonb(a) - ARRAY['attcacheoff'])::text FROM ind JOIN pg_attribute AS a ON attrelid = indexrelid
    UNION ALL
    SELECT 0, 0, (to_jsonb(i) - 'indcheckxmin')::text FROM ind AS i
    UNION ALL
    SELECT 'pg_attrdef'::regclass, d.oid, to_jsonb(d)::text FROM rel JOIN pg_attrdef AS d ON adrelid = rel.oid
    UNION ALL
    SELECT 'pg_constraint'::regclass, con.oid, to_jsonb(con)::text FROM con
    UNION ALL
    SELECT 'pg_trigger'::regclass, t.oid, to_jsonb(t)::text FROM rel JOIN pg_trigger AS t ON tgrelid = rel.oid WHERE tgname <> 'snowflake_move'
    UNION ALL
    SELECT 'pg_rewrite'::regclass, r.oid, to_jsonb(r)::text FROM rel JOIN pg_rewrite AS r ON ev_class = rel.oid
    UNION ALL
    SELECT 'pg_policy'::regclass, p.oid, to_jsonb(p)::text || (SELECT string_agg(role::regrole::text, ' ') FROM unnest(polroles) AS role)
      FROM rel JOIN pg_policy AS p ON polrelid = rel.oid
    UNION ALL
    SELECT 0, 0, to_jsonb(i)::text FROM rel JOIN pg_inherits AS i ON inhrelid = rel.oid
    UNION ALL
    SELECT 0, 0, to_jsonb(p)::text FROM rel JOIN pg_partitioned_table AS p ON partrelid = rel.oid
    UNION ALL
    SELECT 'pg_type'::regclass, t.oid, to_jsonb(t)::text || typowner::regrole FROM typ JOIN pg_type AS t USING (oid)
    UNION ALL
    SELECT 0, 0, to_jsonb(e)::text FROM typ JOIN pg_enum AS e ON enumtypid = typ.oid
    UNION ALL
    SELECT 0, 0, to_jsonb(r)::text FROM typ JOIN pg_range AS r ON rngtypid = typ.oid
    UNION ALL
    SELECT 'pg_proc'::regclass, p.oid, to_jsonb(p)::text || proowner::regrole
      FROM contained JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
    UNION ALL
    SELECT 0, 0, to_jsonb(a)::text FROM contained JOIN pg_aggregate AS a ON classid = 'pg_proc'::regclass AND aggfnoid = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_operator AS o ON classid = 'pg_operator'::regclass AND o.oid = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_opclass AS o ON classid = 'pg_opclass'::regclass AND o.oid = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_opfamily AS o ON classid = 'pg_opfamily'::regclass AND o.oid = objid
    UNION ALL
    SELECT 0, 0, to_jsonb(o)::text FROM contained JOIN pg_amop AS o ON classid = 'pg_opfamily'::regclass AND amopfamily = objid
    UNION ALL
    SELECT 0, 0, to_jsonb(o)::text FROM contained JOIN pg_amproc AS o ON classid = 'pg_opfamily'::regclass AND amprocfamily = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_collation AS o ON classid = 'pg_collation'::regclass AND o.oid = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_statistic_ext AS o ON classid = 'pg_statistic_ext'::regclass AND o.oid = objid
    UNION ALL
    SELECT classid, objid, to_jsonb(o)::text FROM contained JOIN pg_default_acl AS o ON classid = 'pg_default_acl'::regclass AND o.oid = objid
    UNION ALL
    -- Also what there is of other kinds, if not how it is made: those are refused before.
    SELECT classid, objid, 'contains' FROM contained
    UNION ALL
    -- Who owns a sequence; what belongs to an extension.
    SELECT 0, 0, format('%s %s %s', d.objid, d.refobjid, d.refobjsubid)
      FROM rel JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = rel.oid AND deptype IN ('a', 'i', 'e', 'x')
    UNION ALL
    -- What hangs on the tables, wherever it is; not the fence, and not the move's own publication.
    SELECT 0, 0, format('%s %s %s %s', d.classid, d.objid, d.objsubid, d.refobjid)
      FROM rel JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = rel.oid AND d.classid <> 'pg_trigger'::regclass
       AND NOT (d.classid = 'pg_publication_rel'::regclass AND EXISTS (
                SELECT FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = prpubid
                 WHERE r.oid = d.objid AND pubname ~ '^snowflake_move_[0-9]+$'))
  )
  SELECT md5(string_agg(line, E'\n' ORDER BY line COLLATE "C")) INTO described FROM (
    SELECT line FROM part
    UNION ALL
    SELECT to_jsonb(c)::text FROM part JOIN pg_description AS c ON objoid = part.objid AND classoid = part.classid WHERE line <> 'contains'
    UNION ALL
    SELECT to_jsonb(c)::text FROM part JOIN pg_seclabel AS c ON objoid = part.objid AND classoid = part.classid WHERE line <> 'contains') AS all_of_it;

  SELECT coalesce(md5(string_agg(to_jsonb(s)::text, E'\n' ORDER BY seqrelid)), '') INTO sequences
    FROM pg_depend AS d JOIN pg_sequence AS s ON classid = 'pg_class'::regclass AND seqrelid = objid
   WHERE refclassid = 'pg_namespace'::regclass AND refobjid = space;
  RETURN described || ' ' || sequences;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.fingerprint(name) IS
  'Behind snowflake-move-shard: the same as long as nothing alters a schema, that is, as long as pg_dump --schema-only would '
  'print the same; comparable within one database only. NULL where there is no such schema';

CREATE FUNCTION snowflake_fleet.is_altered(moving snowflake_fleet.moving) RETURNS boolean
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  now_is CONSTANT text := snowflake_fleet.fingerprint(moving.schema);
BEGIN
  -- The fence has taken the sequences out of use.
  RETURN CASE WHEN moving.sequences IS NULL THEN now_is IS DISTINCT FROM moving.fingerprint
              ELSE split_part(now_is, ' ', 1) IS DISTINCT FROM split_part(moving.fingerprint, ' ', 1) END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.is_altered(snowflake_fleet.moving) IS
  'Behind snowflake-move-shard: whether a schema is not any more what it was when its row was written';

-- With the rights of the owner: whoever runs DDL need not read the table. Snapshots of REPEATABLE READ that are
-- older than the move do not see its row; the move waits for such transactions, and looks again at the fence.
CREATE FUNCTION snowflake_fleet.refuse_ddl() RETURNS event_trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this snowflake_fleet.moving;
BEGIN
  IF snowflake_fleet.holds_move() THEN
    RETURN;
  END IF;
  -- One statement: the row and the catalogues are seen as of one moment.
  FOR this IN
    SELECT m.* FROM snowflake_fleet.moving AS m
     WHERE m.fingerprint IS NOT NULL
       AND CASE WHEN tg_event = 'ddl_command_end' THEN snowflake_fleet.is_altered(m)
                -- These commit before they end: what they did could not be taken back.
                ELSE current_query() ~* '\mconcurrently\M' AND strpos(current_query(), m.schema) > 0 END
  LOOP
    RAISE EXCEPTION USING ERRCODE = 'object_in_use',
      MESSAGE = CASE WHEN this.state = 'kept' THEN format('schema %I is what was left of shard %s when it moved away', this.schema, this.shard)
                     ELSE format('schema %I moves to another server', this.schema) END,
      DETAIL = format('%s would change it.', tg_tag),
      HINT = CASE WHEN this.state = 'kept' THEN 'To remove it, run snowflake-move-shard --drop-source.'
                  ELSE 'Do it when the move has ended, or end it with snowflake-move-shard --abort.' END;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.refuse_ddl() IS
  'Internal: refuses DDL that changes a schema which is moving';

-- It takes a superuser. A control database that an ordinary role made has no shards, so nothing moves there; immovable()
-- looks for them.
DO $$
BEGIN
  IF NOT (SELECT r.rolsuper FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) CURRENT_USER) THEN
    RETURN;
  END IF;
  CREATE EVENT TRIGGER snowflake_move_guard ON ddl_command_end EXECUTE FUNCTION snowflake_fleet.refuse_ddl();
  ALTER EVENT TRIGGER snowflake_move_guard ENABLE ALWAYS;
  COMMENT ON EVENT TRIGGER snowflake_move_guard IS 'A schema stands still while snowflake-move-shard moves it';
  CREATE EVENT TRIGGER snowflake_move_guard_start ON ddl_command_start
    WHEN TAG IN ('CREATE INDEX', 'DROP INDEX', 'ALTER TABLE') EXECUTE FUNCTION snowflake_fleet.refuse_ddl();
  ALTER EVENT TRIGGER snowflake_move_guard_start ENABLE ALWAYS;
  COMMENT ON EVENT TRIGGER snowflake_move_guard_start IS 'The same for what commits while it runs: CONCURRENTLY';
END
$$;

REVOKE ALL ON FUNCTION snowflake_fleet.fingerprint(name), snowflake_fleet.is_altered(snowflake_fleet.moving),
  snowflake_fleet.refuse_ddl() FROM PUBLIC;
-- The fence: nobody uses the shard here any more, whoever he is.

-- A writer that meets the fence has to begin its transaction anew, with the map as it is then. The
-- SQLSTATE is that of a serialization failure, which applications and drivers retry.
CREATE FUNCTION snowflake_fleet.refuse_write() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
    MESSAGE = pg_catalog.format('shard %s moves to another server', TG_ARGV[0]),
    DETAIL = pg_catalog.format('Table %I.%I takes no more changes.', TG_TABLE_SCHEMA, TG_TABLE_NAME),
    HINT = 'Read the map again and retry the transaction.';
END
$$;
COMMENT ON FUNCTION snowflake_fleet.refuse_write() IS
  'Internal: the fence: a trigger on the tables of a shard that moves away';

CREATE FUNCTION snowflake_fleet.sequences_of(schema name) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this record;
  one record;
  every jsonb := '[]';
BEGIN
  FOR this IN
    SELECT c.oid::regclass AS sequence, relname, s.* FROM pg_depend JOIN pg_sequence AS s ON classid = 'pg_class'::regclass AND seqrelid = objid
      JOIN pg_class AS c ON c.oid = seqrelid
     WHERE refclassid = 'pg_namespace'::regclass AND refobjid = (SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema)
  LOOP
    EXECUTE format('SELECT last_value, is_called FROM %s', this.sequence) INTO one;
    every := every || jsonb_build_object('name', this.relname, 'start', this.seqstart, 'increment', this.seqincrement,
      'min', this.seqmin, 'max', this.seqmax, 'cache', this.seqcache, 'cycle', this.seqcycle,
      'last', one.last_value, 'called', one.is_called);
  END LOOP;
  RETURN every;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.sequences_of(name) IS
  'Behind snowflake-move-shard: how the sequences of a schema are made, and where they are';

-- Locks and fences in the caller's transaction, within so many milliseconds in all. EXCLUSIVE waits for
-- whoever has begun to write, prepared transactions among them: when it is had, they have committed or rolled
-- back. Readers go on. The caller holds SHARE UPDATE EXCLUSIVE already, so that this does not wait for a vacuum.
CREATE FUNCTION snowflake_fleet.fence(schema name, budget integer) RETURNS jsonb
  LANGUAGE plpgsql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  until CONSTANT timestamptz := clock_timestamp() + budget * interval '1 ms';
  moving snowflake_fleet.moving;
  this record;
BEGIN
  FOR this IN SELECT t AS name FROM snowflake_fleet.tables_of(schema) AS t LOOP
    PERFORM snowflake_fleet.limit_wait(until);
    EXECUTE format('LOCK TABLE %s IN EXCLUSIVE MODE', this.name);
  END LOOP;
  SELECT m.* INTO STRICT moving FROM snowflake_fleet.moving AS m WHERE m.schema = fence.schema AND m.side = 'source';
  -- Its snapshot may be older than the row that refuses DDL.
  SELECT pid INTO this FROM pg_stat_activity
   WHERE datname = current_database() AND backend_xid IS NOT NULL AND xact_start < moving.changed AND pid <> pg_backend_pid() LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'lock_not_available', MESSAGE = format('process %s has a transaction from before the move', this.pid);
  END IF;
  IF snowflake_fleet.is_altered(moving) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('schema %I was altered since the move began', schema),
      HINT = 'Run snowflake-move-shard --abort, then move it again.';
  END IF;
  FOR this IN SELECT t AS name FROM snowflake_fleet.tables_of(schema) AS t LOOP
    PERFORM snowflake_fleet.limit_wait(until);
    EXECUTE format('CREATE OR REPLACE TRIGGER snowflake_move BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION snowflake_fleet.refuse_write(%L)', this.name, moving.shard);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER snowflake_move', this.name);
  END LOOP;
  -- First a change of no consequence, which waits for transactions that have taken numbers, then where they are.
  FOR this IN SELECT s FROM jsonb_array_elements(snowflake_fleet.sequences_of(schema)) AS s LOOP
    PERFORM snowflake_fleet.limit_wait(until);
    EXECUTE format('ALTER SEQUENCE %I.%I CACHE %s', schema, this.s ->> 'name', this.s ->> 'cache');
  END LOOP;
  moving.sequences := snowflake_fleet.sequences_of(schema);
  -- A sequence of one and two that has come to two. In a new file, so that a rollback takes it back, and with
  -- it the numbers that sessions had in stock are void.
  FOR this IN SELECT s FROM jsonb_array_elements(moving.sequences) AS s LOOP
    EXECUTE format('ALTER SEQUENCE %I.%I INCREMENT 1 MINVALUE 1 MAXVALUE 2 START 2 RESTART 2 CACHE 1 NO CYCLE', schema, this.s ->> 'name');
    PERFORM setval(format('%I.%I', schema, this.s ->> 'name'), 2, true);
  END LOOP;
  UPDATE snowflake_fleet.moving AS m SET state = 'fenced', sequences = moving.sequences, changed = clock_timestamp()
   WHERE m.schema = fence.schema AND m.side = 'source';
  PERFORM set_config('lock_timeout', '0', true);
  RETURN moving.sequences;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.fence(name, integer) IS
  'Behind snowflake-move-shard: waits for the writers of a shard''s tables, all in all as many ms, and refuses all others from now on; '
  'returns its sequences';

CREATE FUNCTION snowflake_fleet.limit_wait(until timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  remaining CONSTANT integer := extract(epoch FROM until - clock_timestamp()) * 1000;
BEGIN
  IF remaining < 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'lock_not_available', MESSAGE = 'the time for locks is over';
  END IF;
  PERFORM set_config('lock_timeout', remaining::text, true);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.limit_wait(timestamptz) IS
  'Behind snowflake-move-shard: no lock is waited for after that moment, an error (55P03) if it is over';

CREATE FUNCTION snowflake_fleet.fenced(schema name) RETURNS boolean
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(bool_and(EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t AND tgname = 'snowflake_move' AND tgenabled = 'A')), false)
    FROM snowflake_fleet.tables_of(schema) AS t
$$;
COMMENT ON FUNCTION snowflake_fleet.fenced(name) IS 'Behind snowflake-move-shard: whether all tables of a schema are fenced';

CREATE FUNCTION snowflake_fleet.unfence(schema name) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  sequences jsonb := (SELECT m.sequences FROM snowflake_fleet.moving AS m WHERE m.schema = unfence.schema AND m.side = 'source');
  this record;
BEGIN
  FOR this IN SELECT t AS name FROM snowflake_fleet.tables_of(schema) AS t LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS snowflake_move ON %s', this.name);
  END LOOP;
  FOR this IN SELECT s.* FROM jsonb_to_recordset(sequences) AS s (name name, increment bigint, min bigint, max bigint, start bigint,
                                                                   last bigint, cache bigint, cycle boolean, called boolean) LOOP
    EXECUTE format('ALTER SEQUENCE %I.%I INCREMENT %s MINVALUE %s MAXVALUE %s START %s RESTART %s CACHE %s %s', schema, this.name,
      this.increment, this.min, this.max, this.start, this.last, this.cache, CASE WHEN this.cycle THEN 'CYCLE' ELSE 'NO CYCLE' END);
    PERFORM setval(format('%I.%I', schema, this.name), this.last, this.called);
  END LOOP;
  UPDATE snowflake_fleet.moving AS m SET state = 'copying', sequences = NULL, changed = clock_timestamp()
   WHERE m.schema = unfence.schema AND m.side = 'source' AND m.state = 'fenced';
END
$$;
COMMENT ON FUNCTION snowflake_fleet.unfence(name) IS 'Behind snowflake-move-shard: takes a fence away again';

REVOKE ALL ON FUNCTION snowflake_fleet.fence(name, integer), snowflake_fleet.unfence(name), snowflake_fleet.limit_wait(timestamptz),
  snowflake_fleet.sequences_of(name), snowflake_fleet.fenced(name), snowflake_fleet.refuse_write() FROM PUBLIC;
-- What snowflake-move-shard can move: a list. What is not on it is refused, each in a sentence, before anything is done.

-- What lies in a schema, and whether its kind is known.
CREATE FUNCTION snowflake_fleet.contents_of(schema name)
  RETURNS TABLE (classid oid, objid oid, refusal text)
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH space AS (
    SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema
  ), rel AS (
    SELECT c.*, c.oid::regclass AS name FROM pg_class AS c JOIN space ON relnamespace = space.oid
  ), typ AS (
    SELECT t.* FROM pg_type AS t JOIN space ON typnamespace = space.oid
  )
  SELECT 'pg_namespace'::regclass::oid, oid, NULL FROM space
  UNION ALL
  SELECT 'pg_class'::regclass, oid, CASE
      WHEN relkind = 'm' THEN format('Materialized view %s is not moved: drop it, and make it on the target.', name)
      WHEN relkind = 'f' THEN format('Foreign table %s is not moved: drop it, and make it on the target.', name)
      WHEN relkind NOT IN ('r', 'p', 'i', 'I', 'S', 'v', 'c') THEN format('%s is of a kind (%s) that is not known here: drop it.', name, relkind)
      WHEN relpersistence <> 'p' THEN format('%s %s is unlogged: its rows are not in the WAL. Run ALTER ... SET LOGGED.',
                                             CASE relkind WHEN 'S' THEN 'Sequence' WHEN 'r' THEN 'Table' ELSE 'Relation' END, name)
      WHEN relkind = 'r' AND (relreplident = 'n'
           OR relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = rel.oid AND indisprimary)
           OR relreplident = 'i' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = rel.oid AND indisreplident))
           THEN format('Table %s has no replica identity: give it a primary key, or ALTER TABLE ... REPLICA IDENTITY.', name)
      WHEN relkind = 'r' AND relam <> (SELECT oid FROM pg_am WHERE amname = 'heap') THEN format('Table %s is no heap: ALTER TABLE ... SET ACCESS METHOD heap.', name)
      WHEN EXISTS (SELECT FROM pg_attribute WHERE attrelid = rel.oid AND attnum > 0 AND attgenerated NOT IN ('', 's'))
           THEN format('Table %s has generated columns of a kind that is not known here: drop them.', name)
    END
    FROM rel
  UNION ALL
  SELECT 'pg_class'::regclass, reltoastrelid, NULL FROM rel WHERE reltoastrelid <> 0
  UNION ALL
  SELECT 'pg_class'::regclass, indexrelid, NULL FROM rel JOIN pg_index ON indrelid = reltoastrelid
  UNION ALL
  SELECT 'pg_type'::regclass, oid, CASE
      WHEN NOT (typtype IN ('c', 'd', 'e', 'r', 'm') OR typtype = 'b' AND typcategory = 'A' AND typelem <> 0)
           THEN format('Type %s is of a kind that is not known here: make it on the target as part of an extension.', oid::regtype) END
    FROM typ
  UNION ALL
  SELECT 'pg_proc'::regclass, p.oid, CASE
      WHEN prokind NOT IN ('f', 'p', 'a', 'w') THEN format('Function %s is of a kind (%s) that is not known here: drop it.', p.oid::regprocedure, prokind)
      WHEN lanname NOT IN ('sql', 'plpgsql', 'internal')
           THEN format('Function %s is in language %s, of which the program knows nothing: move it to another schema, or drop it.', p.oid::regprocedure, lanname) END
    FROM pg_proc AS p JOIN space ON pronamespace = space.oid JOIN pg_language AS l ON l.oid = prolang
  UNION ALL
  SELECT 'pg_operator'::regclass, o.oid, NULL FROM pg_operator AS o JOIN space ON oprnamespace = space.oid
  UNION ALL
  SELECT 'pg_opclass'::regclass, o.oid, NULL FROM pg_opclass AS o JOIN space ON opcnamespace = space.oid
  UNION ALL
  SELECT 'pg_opfamily'::regclass, o.oid, NULL FROM pg_opfamily AS o JOIN space ON opfnamespace = space.oid
  UNION ALL
  SELECT 'pg_amop'::regclass, a.oid, NULL FROM pg_amop AS a JOIN pg_opfamily AS o ON o.oid = amopfamily JOIN space ON opfnamespace = space.oid
  UNION ALL
  SELECT 'pg_amproc'::regclass, a.oid, NULL FROM pg_amproc AS a JOIN pg_opfamily AS o ON o.oid = amprocfamily JOIN space ON opfnamespace = space.oid
  UNION ALL
  SELECT 'pg_collation'::regclass, c.oid, NULL FROM pg_collation AS c JOIN space ON collnamespace = space.oid
  UNION ALL
  SELECT 'pg_statistic_ext'::regclass, s.oid, CASE WHEN stxrelid NOT IN (SELECT oid FROM rel) THEN format('Statistics %I are of a table outside of the schema: drop them.', stxname) END
    FROM pg_statistic_ext AS s JOIN space ON stxnamespace = space.oid
  UNION ALL
  SELECT 'pg_default_acl'::regclass, a.oid, NULL FROM pg_default_acl AS a JOIN space ON defaclnamespace = space.oid
  UNION ALL
  SELECT 'pg_constraint'::regclass, c.oid, CASE
      WHEN contype NOT IN ('c', 'f', 'p', 'u', 'x', 't', 'n') THEN format('Constraint %I of %s is of a kind (%s) that is not known here: drop it.', conname, conrelid::regclass, contype) END
    FROM pg_constraint AS c WHERE conrelid IN (SELECT oid FROM rel) OR contypid IN (SELECT oid FROM typ)
  UNION ALL
  SELECT 'pg_attrdef'::regclass, d.oid, NULL FROM pg_attrdef AS d JOIN rel ON adrelid = rel.oid
  UNION ALL
  -- Those that fire when changes are applied would do on the target what was done on the source, and as who applies.
  SELECT 'pg_trigger'::regclass, t.oid, CASE
      WHEN tgname = 'snowflake_move' THEN NULL
      WHEN tgenabled NOT IN ('O', 'D') THEN format('Trigger %I of table %s is ENABLE %s: it would fire for each row that is copied. ALTER TABLE ... ENABLE TRIGGER.',
                                                   tgname, rel.name, CASE tgenabled WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' ELSE tgenabled::text END) END
    FROM pg_trigger AS t JOIN rel ON tgrelid = rel.oid
  UNION ALL
  SELECT 'pg_rewrite'::regclass, r.oid, CASE
      WHEN ev_enabled NOT IN ('O', 'D') THEN format('Rule %I of %s is ENABLE ALWAYS or REPLICA. ALTER TABLE ... ENABLE RULE.', rulename, rel.name) END
    FROM pg_rewrite AS r JOIN rel ON ev_class = rel.oid
  UNION ALL
  SELECT 'pg_policy'::regclass, p.oid, NULL FROM pg_policy AS p JOIN rel ON polrelid = rel.oid
  UNION ALL
  SELECT 'pg_publication_rel'::regclass, r.oid, NULL
    FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = prpubid JOIN rel ON prrelid = rel.oid WHERE pubname ~ '^snowflake_move_[0-9]+$'
$$;
COMMENT ON FUNCTION snowflake_fleet.contents_of(name) IS
  'Behind snowflake-move-shard: everything that is part of a schema, and why it cannot be moved, or NULL';

-- How a person would call it: the thing that hangs there, not the rule or the default by which it does.
CREATE FUNCTION snowflake_fleet.called(classid oid, objid oid) RETURNS text
  LANGUAGE sql STABLE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE classid
    WHEN 'pg_rewrite'::regclass THEN (SELECT pg_describe_object('pg_class'::regclass, ev_class, 0) FROM pg_rewrite AS r WHERE r.oid = objid)
    WHEN 'pg_constraint'::regclass THEN (SELECT format('%s %I of table %s', CASE contype WHEN 'f' THEN 'Foreign key' ELSE 'Constraint' END, conname, conrelid::regclass)
                                           FROM pg_constraint AS c WHERE c.oid = objid AND conrelid <> 0)
  END
$$;
COMMENT ON FUNCTION snowflake_fleet.called(oid, oid) IS
  'Behind snowflake-move-shard: a better name for some objects than pg_describe_object() has, or NULL';

CREATE FUNCTION snowflake_fleet.immovable(schema name) RETURNS SETOF text
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  space CONSTANT oid := (SELECT oid FROM pg_namespace WHERE nspname = schema);
BEGIN
  IF space IS NULL THEN
    RETURN NEXT format('There is no schema %I.', schema);
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM snowflake_fleet.tables_of(schema)) THEN
    RETURN NEXT format('Schema %I has no tables.', schema);
  END IF;
  -- An ordinary role that made these objects without the extension could not make event triggers.
  IF (SELECT count(*) FROM pg_event_trigger WHERE evtname IN ('snowflake_move_guard', 'snowflake_move_guard_start') AND evtenabled = 'A') <> 2 THEN
    RETURN NEXT 'Nothing keeps the schema from being changed meanwhile: the event triggers snowflake_move_guard and snowflake_move_guard_start are missing, or not ENABLE ALWAYS.';
  END IF;
  RETURN QUERY
  WITH RECURSIVE inside AS MATERIALIZED (
    SELECT c.classid, c.objid, c.refusal FROM snowflake_fleet.contents_of(schema) AS c
  ), extension_member AS (
    SELECT d.classid, d.objid, extname FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = refobjid
     WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
  ), ordinary AS (
    -- Functions of roles that are no superusers, and what calls them where the target evaluates them by itself.
    SELECT 'pg_proc'::regclass::oid AS classid, p.oid AS objid, p.oid AS function
      FROM pg_proc AS p JOIN pg_roles AS r ON r.oid = proowner WHERE NOT rolsuper AND p.pronamespace = space
    UNION
    SELECT d.classid, d.objid, o.function FROM pg_depend AS d JOIN ordinary AS o ON d.refclassid = o.classid AND d.refobjid = o.objid
     WHERE o.classid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass, 'pg_opfamily'::regclass,
                         'pg_amop'::regclass, 'pg_amproc'::regclass, 'pg_type'::regclass)
  )
  SELECT refusal FROM inside WHERE refusal IS NOT NULL
  UNION ALL
  SELECT format('Table %s takes part in the partitioning or inheritance of a table outside of the schema: detach it, or move both.', c.oid::regclass)
    FROM pg_class AS c JOIN pg_inherits ON c.oid IN (inhrelid, inhparent)
   WHERE relnamespace = space AND relkind IN ('r', 'p')
     AND (inhrelid NOT IN (SELECT oid FROM pg_class WHERE relnamespace = space) OR inhparent NOT IN (SELECT oid FROM pg_class WHERE relnamespace = space))
  UNION ALL
  -- What hangs on it from outside, whatever it is. What hangs on that in its turn need not be listed.
  SELECT DISTINCT CASE WHEN d.classid = 'pg_constraint'::regclass
                  THEN format('%s refers to the schema from outside: drop it.', coalesce(snowflake_fleet.called(d.classid, d.objid), pg_describe_object(d.classid, d.objid, 0)))
                  WHEN d.refclassid = 'pg_namespace'::regclass
                  THEN format('%s is of a kind that is not known here: drop it, or put it into another schema.', pg_describe_object(d.classid, d.objid, d.objsubid))
                  ELSE format('%s is outside of the schema and uses %s: drop it, or move it into the schema.',
                              coalesce(snowflake_fleet.called(d.classid, d.objid), pg_describe_object(d.classid, d.objid, d.objsubid)),
                              coalesce(CASE WHEN d.refclassid = 'pg_class'::regclass THEN d.refobjid::regclass::text END, pg_describe_object(d.refclassid, d.refobjid, 0))) END
    FROM inside AS i JOIN pg_depend AS d ON d.refclassid = i.classid AND d.refobjid = i.objid
   WHERE (d.classid, d.objid) NOT IN (SELECT x.classid, x.objid FROM inside AS x)
     AND d.classid NOT IN ('pg_publication_rel'::regclass, 'pg_publication_namespace'::regclass)
     AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE d.classid = 'pg_trigger'::regclass AND t.oid = d.objid AND tgisinternal)
     -- the cast of a range to its multirange, say
     AND NOT EXISTS (SELECT FROM pg_depend AS p JOIN inside AS x ON p.refclassid = x.classid AND p.refobjid = x.objid
                      WHERE p.classid = d.classid AND p.objid = d.objid AND p.deptype = 'i')
  UNION ALL
  SELECT DISTINCT format('Publication %I publishes its tables, and would go on without them: take them out of it, or drop it.', pubname)
    FROM pg_publication AS p
   WHERE pubname !~ '^snowflake_move_[0-9]+$'
     AND (puballtables OR p.oid IN (SELECT prpubid FROM pg_publication_rel JOIN pg_class AS c ON c.oid = prrelid WHERE relnamespace = space)
                       OR p.oid IN (SELECT pnpubid FROM pg_publication_namespace WHERE pnnspid = space))
  UNION ALL
  -- What it uses outside, but for extensions, and what every server has.
  SELECT DISTINCT CASE WHEN d.classid = 'pg_constraint'::regclass AND d.refclassid = 'pg_class'::regclass
                  THEN format('%s refers to %s, outside of the schema: drop it.', snowflake_fleet.called(d.classid, d.objid), d.refobjid::regclass)
                  ELSE format('%s uses %s, which is outside of the schema and of no extension: move it into the schema.',
                              coalesce(snowflake_fleet.called(d.classid, d.objid), pg_describe_object(d.classid, d.objid, d.objsubid)),
                              pg_describe_object(d.refclassid, d.refobjid, 0)) END
    FROM inside AS i JOIN pg_depend AS d ON d.classid = i.classid AND d.objid = i.objid
   WHERE (d.refclassid, d.refobjid) NOT IN (SELECT x.classid, x.objid FROM inside AS x)
     AND d.refobjid >= 16384 AND d.refclassid NOT IN ('pg_extension'::regclass, 'pg_publication'::regclass)
     AND (d.refclassid, d.refobjid) NOT IN (SELECT e.classid, e.objid FROM extension_member AS e)
     AND NOT (d.refclassid = 'pg_class'::regclass AND EXISTS (SELECT FROM pg_index WHERE indexrelid = d.refobjid))
     AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE d.classid = 'pg_trigger'::regclass AND t.oid = d.objid AND (tgisinternal OR tgname = 'snowflake_move'))
  UNION ALL
  SELECT format('%s belongs to extension %I: run ALTER EXTENSION ... DROP.', pg_describe_object(i.classid, i.objid, 0), e.extname)
    FROM inside AS i JOIN extension_member AS e USING (classid, objid) WHERE i.classid <> 'pg_namespace'::regclass
  UNION ALL
  SELECT DISTINCT format('Function %s belongs to role %s, and the target would call it as a superuser for %s: run ALTER FUNCTION ... OWNER TO a superuser.',
                o.function::regprocedure, (SELECT proowner::regrole FROM pg_proc WHERE oid = o.function),
                coalesce(snowflake_fleet.called(o.classid, o.objid), pg_describe_object(o.classid, o.objid, 0)))
    FROM ordinary AS o
   WHERE o.classid IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass)
      OR o.classid = 'pg_class'::regclass AND (SELECT relkind FROM pg_class WHERE oid = o.objid) IN ('i', 'I', 'p', 'r')
      OR o.classid = 'pg_attrdef'::regclass AND (SELECT attgenerated FROM pg_attrdef AS a JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
                                                  WHERE a.oid = o.objid) <> ''
  UNION ALL
  SELECT DISTINCT format('Table %s has a column of type %s, and this database has large objects: keep them elsewhere.', c.oid::regclass, format_type(atttypid, NULL))
    FROM pg_class AS c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped JOIN pg_type AS t ON t.oid = atttypid
   WHERE relnamespace = space AND relkind = 'r'
     AND 'oid'::regtype IN (atttypid, typbasetype, typelem) AND EXISTS (SELECT FROM pg_largeobject_metadata)
  UNION ALL
  SELECT format('Table %s is filled by a subscription: drop that first.', srrelid::regclass)
    FROM pg_subscription_rel JOIN pg_class AS c ON c.oid = srrelid WHERE relnamespace = space
  UNION ALL
  SELECT format('%s has a security label: the program knows no provider of them.', pg_describe_object(i.classid, i.objid, 0))
    FROM inside AS i JOIN pg_seclabel AS l ON l.classoid = i.classid AND l.objoid = i.objid
  UNION ALL
  -- Where changes are applied as the tables' owners, which is from version 16 on.
  SELECT format('Table %s forces row security on its owner, as whom the target applies changes: ALTER TABLE ... NO FORCE ROW LEVEL SECURITY.', c.oid::regclass)
    FROM pg_class AS c JOIN pg_roles AS r ON r.oid = relowner
   WHERE relnamespace = space AND relforcerowsecurity AND NOT rolsuper AND NOT rolbypassrls AND current_setting('server_version_num')::int >= 160000;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.immovable(name) IS
  'Internal: what keeps a schema from being moved by snowflake-move-shard, in sentences; none where it can be';

CREATE FUNCTION snowflake_fleet.requirements_of(schema name)
  RETURNS TABLE (kind text, object_name text)
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH inside AS MATERIALIZED (
    SELECT c.classid, c.objid FROM snowflake_fleet.contents_of(schema) AS c
  )
  SELECT 'role', rolname::text FROM inside JOIN pg_shdepend AS d USING (classid, objid) JOIN pg_roles AS r ON r.oid = refobjid
   WHERE refclassid = 'pg_authid'::regclass AND d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  UNION
  SELECT 'role', pg_get_userbyid(relowner)::text FROM pg_class WHERE oid IN (SELECT t FROM snowflake_fleet.tables_of(schema) AS t)
  UNION
  SELECT 'tablespace', spcname::text FROM inside JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
    JOIN pg_tablespace AS s ON s.oid = reltablespace
  UNION
  SELECT 'extension', extname::text FROM inside JOIN pg_depend AS d USING (classid, objid)
    JOIN pg_depend AS e ON e.classid = d.refclassid AND e.objid = d.refobjid AND e.deptype = 'e'
    JOIN pg_extension AS x ON x.oid = e.refobjid
$$;
COMMENT ON FUNCTION snowflake_fleet.requirements_of(name) IS
  'Behind snowflake-move-shard: roles, tablespaces and extensions that a target has to have';

REVOKE ALL ON FUNCTION snowflake_fleet.contents_of(name), snowflake_fleet.called(oid, oid),
  snowflake_fleet.immovable(name), snowflake_fleet.requirements_of(name) FROM PUBLIC;
-- What a schema is, by names: to be compared with another server's.

CREATE FUNCTION snowflake_fleet.description_of(schema name)
  RETURNS TABLE (printed boolean, line text)
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH inside AS MATERIALIZED (
    SELECT c.classid, c.objid, i.identity, i.type
      FROM snowflake_fleet.contents_of(schema) AS c, pg_identify_object(c.classid, c.objid, 0) AS i
     WHERE NOT (c.classid = 'pg_class'::regclass AND i.type LIKE 'toast%' OR i.type = 'index' AND i.schema = 'pg_toast')
       AND c.classid NOT IN ('pg_publication_rel'::regclass, 'pg_attrdef'::regclass)
       -- PostgreSQL's own names of these have numbers in them
       AND NOT (c.classid = 'pg_trigger'::regclass AND (SELECT tgisinternal OR tgname = 'snowflake_move' FROM pg_trigger AS t WHERE t.oid = c.objid))
  ), rel AS (
    SELECT identity, c.* FROM inside JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
  ), acl (identity, owner, acl) AS (
    SELECT identity, relowner, coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)) FROM rel WHERE relkind NOT IN ('i', 'I', 'c')
    UNION ALL
    SELECT identity, nspowner, coalesce(nspacl, acldefault('n', nspowner)) FROM inside JOIN pg_namespace AS n ON classid = 'pg_namespace'::regclass AND n.oid = objid
    UNION ALL
    SELECT identity, proowner, coalesce(proacl, acldefault('f', proowner)) FROM inside JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
    UNION ALL
    SELECT identity, typowner, coalesce(typacl, acldefault('T', typowner)) FROM inside JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid
    UNION ALL
    SELECT identity || ' default', defaclrole, defaclacl FROM inside JOIN pg_default_acl AS a ON classid = 'pg_default_acl'::regclass AND a.oid = objid
    UNION ALL
    SELECT format('%s.%I', identity, attname), relowner, attacl FROM rel JOIN pg_attribute ON attrelid = rel.oid AND attacl IS NOT NULL
  )
  SELECT false, type || ' ' || identity FROM inside
  UNION ALL
  SELECT false, format('%s belongs to %s', identity, owner::regrole) FROM acl
  UNION ALL
  SELECT false, format('%s: %s granted %s to %s%s', identity, grantor::regrole, privilege_type,
                       CASE grantee WHEN 0 THEN 'everybody' ELSE grantee::regrole::text END, CASE WHEN is_grantable THEN ' to be granted' END)
    FROM acl, aclexplode(acl)
  UNION ALL
  SELECT false, concat_ws(' ', identity, relkind, relpersistence, relrowsecurity, relforcerowsecurity, relreplident, relispartition,
                          (SELECT string_agg(o, ',' ORDER BY o) FROM unnest(reloptions) AS o), (SELECT spcname FROM pg_tablespace AS s WHERE s.oid = reltablespace),
                          (SELECT amname FROM pg_am AS a WHERE a.oid = relam), CASE WHEN reloftype <> 0 THEN reloftype::regtype END,
                          (SELECT string_agg(o, ',' ORDER BY o) FROM pg_class AS t, unnest(t.reloptions) AS o WHERE t.oid = rel.reltoastrelid))
    FROM rel
  UNION ALL
  SELECT false, concat_ws(' ', identity, row_number() OVER (PARTITION BY attrelid ORDER BY attnum), quote_ident(attname), format_type(atttypid, atttypmod), attnotnull, attcollation::regcollation,
                          attstorage, attcompression, attidentity, attgenerated, attislocal, attinhcount, nullif(attstattarget, -1),
                          -- recent minor versions keep notes of their own there, too
                          (SELECT string_agg(o, ',' ORDER BY o) FROM unnest(attoptions) AS o WHERE o LIKE 'n\_distinct%'))
    FROM rel JOIN pg_attribute ON attrelid = rel.oid AND attnum > 0 AND NOT attisdropped AND relkind NOT IN ('i', 'I', 'S')
  UNION ALL
  SELECT true, format('%s.%I default %s', identity, attname, pg_get_expr(adbin, adrelid))
    FROM rel JOIN pg_attrdef ON adrelid = rel.oid JOIN pg_attribute ON attrelid = rel.oid AND attnum = adnum
  UNION ALL
  SELECT true, format('%s %s %s', identity, pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid)) FROM rel WHERE relpartbound IS NOT NULL OR relkind = 'p'
  UNION ALL
  SELECT false, format('%s heir of %s', identity, inhparent::regclass) FROM rel JOIN pg_inherits ON inhrelid = rel.oid
  UNION ALL
  SELECT true, format('%s %s', identity, pg_get_constraintdef(c.oid)) FROM inside JOIN pg_constraint AS c ON classid = 'pg_constraint'::regclass AND c.oid = objid
  UNION ALL
  SELECT false, concat_ws(' ', identity, contype, condeferrable, condeferred, convalidated, confrelid::regclass, confupdtype, confdeltype, CASE contype WHEN 'c' THEN connoinherit END)
    FROM inside JOIN pg_constraint AS c ON classid = 'pg_constraint'::regclass AND c.oid = objid
  UNION ALL
  SELECT true, format('%s %s', identity, pg_get_indexdef(oid)) FROM rel WHERE relkind IN ('i', 'I')
  UNION ALL
  SELECT false, concat_ws(' ', identity, indisunique, indisprimary, indisexclusion, indimmediate, indisclustered, indisvalid, indisreplident)
    FROM rel JOIN pg_index ON indexrelid = rel.oid
  UNION ALL
  SELECT true, format('%s %s', identity, pg_get_triggerdef(t.oid)) FROM inside JOIN pg_trigger AS t ON classid = 'pg_trigger'::regclass AND t.oid = objid
  UNION ALL
  SELECT false, format('%s %s', identity, tgenabled) FROM inside JOIN pg_trigger AS t ON classid = 'pg_trigger'::regclass AND t.oid = objid
  UNION ALL
  SELECT true, format('%s %s', identity, pg_get_ruledef(r.oid)) FROM inside JOIN pg_rewrite AS r ON classid = 'pg_rewrite'::regclass AND r.oid = objid
  UNION ALL
  SELECT false, format('%s %s', identity, ev_enabled) FROM inside JOIN pg_rewrite AS r ON classid = 'pg_rewrite'::regclass AND r.oid = objid
  UNION ALL
  SELECT true, format('%s %s %s', identity, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)) FROM inside JOIN pg_policy AS p ON classid = 'pg_policy'::regclass AND p.oid = objid
  UNION ALL
  SELECT false, format('%s %s %s %s', identity, polcmd, polpermissive, (SELECT string_agg(r::regrole::text, ' ' ORDER BY r::regrole::text) FROM unnest(polroles) AS r))
    FROM inside JOIN pg_policy AS p ON classid = 'pg_policy'::regclass AND p.oid = objid
  UNION ALL
  SELECT prosqlbody IS NOT NULL, format('%s %s', identity, pg_get_functiondef(p.oid)) FROM inside JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid WHERE prokind <> 'a'
  UNION ALL
  SELECT false, concat_ws(' ', identity, aggkind, aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn, aggmtransfn, aggminvtransfn, aggmfinalfn,
                          aggfinalextra, aggfinalmodify, aggtranstype::regtype, agginitval, aggminitval)
    FROM inside JOIN pg_aggregate AS a ON classid = 'pg_proc'::regclass AND a.aggfnoid = objid
  UNION ALL
  SELECT false, concat_ws(' ', identity, oprcode, oprrest, oprjoin, oprcom::regoperator, oprnegate::regoperator, oprcanmerge, oprcanhash)
    FROM inside JOIN pg_operator AS o ON classid = 'pg_operator'::regclass AND o.oid = objid
  UNION ALL
  SELECT false, concat_ws(' ', identity, typtype, typnotnull, typbasetype::regtype, typtypmod, typcollation::regcollation,
                          (SELECT string_agg(quote_literal(enumlabel), ',' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid),
                          (SELECT concat_ws(' ', rngsubtype::regtype, rngcollation::regcollation, rngcanonical, rngsubdiff) FROM pg_range WHERE rngtypid = t.oid))
    FROM inside JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid
  UNION ALL
  SELECT true, format('%s default %s', identity, typdefault) FROM inside JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid WHERE typdefault IS NOT NULL
  UNION ALL
  SELECT false, concat_ws(' ', identity, seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle,
                          (SELECT format('of %s.%s', refobjid::regclass, refobjsubid > 0) FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = rel.oid
                              AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i')))
    FROM rel JOIN pg_sequence ON seqrelid = rel.oid
  UNION ALL
  SELECT true, format('%s %s', identity, pg_get_statisticsobjdef(s.oid)) FROM inside JOIN pg_statistic_ext AS s ON classid = 'pg_statistic_ext'::regclass AND s.oid = objid
  UNION ALL
  SELECT false, concat_ws(' ', identity, collprovider, collisdeterministic, collcollate, collctype) FROM inside JOIN pg_collation AS c ON classid = 'pg_collation'::regclass AND c.oid = objid
  UNION ALL
  SELECT false, format('%s %s is said to be %L', identity,
                       (SELECT attname FROM pg_attribute WHERE classoid = 'pg_class'::regclass AND attrelid = objoid AND attnum = objsubid AND objsubid > 0), description)
    FROM inside JOIN pg_description ON classoid = classid AND objoid = objid
$$;
COMMENT ON FUNCTION snowflake_fleet.description_of(name) IS
  'Behind snowflake-move-shard: lines that say what a schema is, owners and privileges included. Those with an expression that the server '
  'prints differ between a table and its restored dump; the others are the same on both sides of a move';

REVOKE ALL ON FUNCTION snowflake_fleet.description_of(name) FROM PUBLIC;
-- Privileges of the schema and its relations: all of them here, after what ALTER DEFAULT PRIVILEGES gave is taken back. Whoever may
-- write a region has it granted twice; whoever may read the fleet's row has its secret. Of functions PUBLIC keeps what the parts left.

DO $$
DECLARE
  privilege record;
BEGIN
  FOR privilege IN
    SELECT DISTINCT object.kind, identified.identity,
           CASE WHEN acl.grantee OPERATOR(pg_catalog.=) 0 THEN 'PUBLIC'
                ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(acl.grantee)::pg_catalog.text) END AS role
      FROM (SELECT 'pg_catalog.pg_class'::pg_catalog.regclass AS catalogue, oid, relnamespace AS schema, relowner AS owner, relacl AS acl,
                   CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind FROM pg_catalog.pg_class
            UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, oid, pronamespace, proowner, proacl, 'ROUTINE' FROM pg_catalog.pg_proc
            UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, oid, typnamespace, typowner, typacl, 'TYPE' FROM pg_catalog.pg_type
            UNION ALL SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass, oid, oid, nspowner, nspacl, 'SCHEMA' FROM pg_catalog.pg_namespace) AS object
     CROSS JOIN LATERAL pg_catalog.aclexplode(object.acl) AS acl
     CROSS JOIN LATERAL pg_catalog.pg_identify_object(object.catalogue, object.oid, 0) AS identified
     WHERE object.schema OPERATOR(pg_catalog.=) 'snowflake_fleet'::pg_catalog.regnamespace
       AND acl.grantee OPERATOR(pg_catalog.<>) object.owner
       AND (acl.grantee OPERATOR(pg_catalog.<>) 0 OR object.kind OPERATOR(pg_catalog.=) ANY (ARRAY['TABLE', 'SEQUENCE', 'SCHEMA']))
  LOOP
    EXECUTE pg_catalog.format('REVOKE ALL ON %s %s FROM %s', privilege.kind, privilege.identity, privilege.role);
  END LOOP;
END
$$;

GRANT USAGE ON SCHEMA snowflake_fleet TO PUBLIC, pg_monitor;
GRANT SELECT ON snowflake_fleet.map, snowflake_fleet.map_state, snowflake_fleet.map_server,
  snowflake_fleet.map_shard TO PUBLIC;
GRANT SELECT ON snowflake_fleet.regions, snowflake_fleet.servers, snowflake_fleet.grants, snowflake_fleet.grants_gap,
  snowflake_fleet.health TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_fleet.from_ms(bigint), snowflake_fleet.to_ms(timestamptz),
  snowflake_fleet.free_from(snowflake_fleet.region), snowflake_fleet.latest_grant(integer),
  snowflake_fleet.minted_by(bigint), snowflake_fleet.health() TO pg_monitor;
-- Said when a fleet is made: a number that is found out too late, when everything comes back after a power loss at once.

DO $$
DECLARE
  level CONSTANT text := pg_catalog.current_setting('client_min_messages');
BEGIN
  -- CREATE EXTENSION silences notices while a script runs. Whoever connects without them gets none.
  IF level OPERATOR(pg_catalog.=) 'warning' AND NOT EXISTS (
       SELECT FROM pg_catalog.pg_settings AS s WHERE s.name OPERATOR(pg_catalog.=) 'client_min_messages'
          AND s.reset_val OPERATOR(pg_catalog.=) ANY (ARRAY['warning', 'error'])) THEN
    PERFORM pg_catalog.set_config('client_min_messages', 'notice', true);
  END IF;
  RAISE NOTICE USING
    MESSAGE = 'a fleet carries as many servers through a power loss of all of them as half of the regions of its layout',
    DETAIL = 'The default layout has 32 regions, so 16 servers: each takes another region when it is up again, '
             'for its old one is kept until its lease has ended.',
    HINT = 'For more servers choose a layout with more region bits before the first id.';
  PERFORM pg_catalog.set_config('client_min_messages', level, true);
END
$$;
