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
  fresh_ms bigint NOT NULL DEFAULT 0,
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
  'How far any server has issued ids ahead of its clock at most: snowflake.max_lead and snowflake.reserve, in ms; does not go '
  'down by itself, and dead() waits for it';
COMMENT ON COLUMN snowflake_fleet.fleet.fresh_ms IS
  'Regions that are made later begin here, in ms since 1970: above all that may have been granted before the last recovered()';
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

-- Who rolls back has been told a signed number that the table does not have: said later, it would show
-- that something was lost. A sequence keeps it. setval() and not nextval(), which a crash puts ahead.
CREATE SEQUENCE snowflake_fleet.said MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake_fleet.said IS
  'Number of the newest answer, those included whose transactions were rolled back';

CREATE FUNCTION snowflake_fleet.newest_said() RETURNS bigint
  LANGUAGE sql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
  AS $$ SELECT greatest(f.newest, s.last_value) FROM snowflake_fleet.fleet AS f, snowflake_fleet.said AS s $$;
COMMENT ON FUNCTION snowflake_fleet.newest_said() IS 'Internal: the newest number that anybody can have been told';

CREATE FUNCTION snowflake_fleet.next_number() RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  number CONSTANT bigint := snowflake_fleet.newest_said() + 1;
BEGIN
  UPDATE snowflake_fleet.fleet SET newest = number;
  PERFORM setval('snowflake_fleet.said', number);
  RETURN number;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.next_number() IS 'Internal: the number of an answer, above all that were ever given';

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
-- operator may have a reason; any other role has none to be in the way for longer than a moment, and
-- its sessions are ended by the next that waits. Locks on tables, not on rows: those show who holds
-- them. All tables that an answer writes: who waited at the second one would seem to keep the first.
CREATE FUNCTION snowflake_fleet.take_lock() RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  patience CONSTANT text := current_setting('lock_timeout');
  began CONSTANT timestamptz := clock_timestamp();
  holder record;
  -- At the last look, at this one; roles also at the look before.
  kept text[] := '{}';
  keeps text[];
  roles_before text[] := '{}';
  roles_kept text[] := '{}';
  roles text[];
BEGIN
  IF pg_is_in_recovery() THEN
    RETURN;  -- lock_fleet() has the error
  END IF;
  LOOP
    BEGIN
      PERFORM set_config('lock_timeout', '1s', true);
      LOCK TABLE snowflake_fleet.fleet IN EXCLUSIVE MODE;
      LOCK TABLE snowflake_fleet.server, snowflake_fleet.region, snowflake_fleet.grants, snowflake_fleet.grants_gap,
        snowflake_fleet.refusal IN ROW EXCLUSIVE MODE;
      PERFORM s.last_value FROM snowflake_fleet.said AS s;
      PERFORM set_config('lock_timeout', patience, true);
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      IF patience <> '0' AND clock_timestamp() - began >= patience::interval THEN
        RAISE;
      END IF;
    END;
    keeps := '{}';
    roles := '{}';
    FOR holder IN SELECT h.* FROM snowflake_fleet.lock_holders() AS h LOOP
      keeps := keeps || holder.transaction;
      roles := roles || holder.role;
      -- The same transaction as a second ago; or another role for two seconds, its sessions in turns.
      IF holder.transaction = ANY (kept) OR
         (holder.role = ANY (roles_kept) AND holder.role = ANY (roles_before) AND holder.role <> session_user::text) THEN
        PERFORM snowflake_fleet.end_holder(holder.role);
      END IF;
    END LOOP;
    kept := keeps;
    roles_before := roles_kept;
    roles_kept := roles;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.take_lock() IS
  'Internal: takes the one lock on the fleet; ends the sessions of a role, not an operator''s, that has been in the way for more than a second';

-- Any role may have such a lock: PREPARE takes it before anybody asks for privileges, as some commands
-- do that wait for it. Not who waits for the synchronous standby: that is a commit, and the standby is
-- what is missing. Nor who waits here.
CREATE FUNCTION snowflake_fleet.lock_holders(OUT pid integer, OUT transaction text, OUT role text) RETURNS SETOF record
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN QUERY SELECT DISTINCT l.pid, l.pid || ' ' || l.virtualtransaction, a.usename::text
    FROM pg_catalog.pg_locks AS l
    JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
    JOIN pg_catalog.pg_roles AS r ON r.oid = a.usesysid
   WHERE l.locktype = 'relation' AND l.pid <> pg_backend_pid()
     AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
     AND CASE WHEN l.relation = 'snowflake_fleet.fleet'::regclass
              THEN l.mode <> 'AccessShareLock' AND (l.granted OR l.mode <> 'ExclusiveLock')
              ELSE l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
                   AND l.relation IN ('snowflake_fleet.server'::regclass, 'snowflake_fleet.region'::regclass,
                     'snowflake_fleet.grants'::regclass, 'snowflake_fleet.grants_gap'::regclass, 'snowflake_fleet.refusal'::regclass,
                     'snowflake_fleet.said'::regclass) END
     AND a.wait_event IS DISTINCT FROM 'SyncRep'
     AND NOT r.rolsuper AND NOT pg_has_role(r.oid, current_user, 'MEMBER');
END
$$;
COMMENT ON FUNCTION snowflake_fleet.lock_holders() IS
  'Internal: sessions whose lock on a table of the fleet, had or waited for, keeps others from deciding: process, transaction, role. '
  'Without operators (superusers, and members of the owner), who waits for the synchronous standby, and prepared transactions';

-- All sessions of the role that are at the lock: the next one in the queue would do the same.
CREATE FUNCTION snowflake_fleet.end_holder(holder text) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  other record;
BEGIN
  FOR other IN
    SELECT a.pid FROM pg_catalog.pg_stat_activity AS a
     WHERE a.usename = holder AND a.pid <> pg_backend_pid() AND a.wait_event IS DISTINCT FROM 'SyncRep'
       AND (a.pid IN (SELECT h.pid FROM snowflake_fleet.lock_holders() AS h)
            OR a.pid IN (SELECT l.pid FROM pg_catalog.pg_locks AS l
                          WHERE l.locktype = 'relation' AND l.relation = 'snowflake_fleet.fleet'::regclass AND l.mode = 'ExclusiveLock'))
  LOOP
    RAISE LOG 'snowflake_fleet: session % of role % is ended: it has kept the lock on the fleet', other.pid, quote_ident(holder);
    PERFORM pg_terminate_backend(other.pid);
  END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE LOG 'snowflake_fleet: the owner of the fleet may not end session %, which keeps the lock on it: %', other.pid, SQLERRM;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.end_holder(text) IS
  'Internal: ends the sessions of a role that has held the lock on the fleet for too long, those that wait for it as well';

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
