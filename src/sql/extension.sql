-- A schema of this name belongs to somebody else, who could plant overloads in it; pgEdge's extension
-- of the same name leaves one behind.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_namespace
              WHERE nspname OPERATOR(pg_catalog.=) 'snowflake') THEN
    RAISE EXCEPTION USING
      ERRCODE = 'duplicate_schema',
      MESSAGE = 'schema "snowflake" already exists',
      DETAIL = 'The extension makes the schema itself. pgEdge''s extension of the same name leaves '
               'a schema "snowflake" behind when it is dropped.',
      HINT = 'Drop or rename the schema.';
  END IF;
END
$$;

CREATE SCHEMA snowflake;
COMMENT ON SCHEMA snowflake IS '64-bit time-sortable ids: mint, decode, route';

-- State. Five sequences, because a sequence's value is WAL-logged, replicated, carried by base
-- backups and pg_upgrade, and read without a snapshot. PUBLIC may read them, so that a table
-- owner's pg_dump works.

CREATE SEQUENCE snowflake.high_water AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake.high_water IS
  'Durable high-water mark, in milliseconds since 1970: no id of this time or later has been issued';

CREATE SEQUENCE snowflake.seal AS bigint MINVALUE -9223372036854775808 START 0;
COMMENT ON SEQUENCE snowflake.seal IS
  'Layout, tick and epoch of the ids in this database, packed; other than seal_local where a dump brought ids of another layout';

CREATE SEQUENCE snowflake.seal_local AS bigint MINVALUE -9223372036854775808 START 0;
COMMENT ON SEQUENCE snowflake.seal_local IS
  'Layout, tick and epoch that CREATE EXTENSION sealed, packed';

CREATE SEQUENCE snowflake.fleet AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake.fleet IS
  'The fleet under whose leases ids of this database are minted; 0: under none; 9223372036854775807: under leases of a fleet '
  'that this server had not heard of when the extension was created; it is written with the first id';

CREATE SEQUENCE snowflake.fingerprint AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE snowflake.fingerprint IS
  'Where this database last minted: a few bits each of hashes of system identifier, machine, disk and files, packed; accept_copy() writes it anew';

CREATE FUNCTION snowflake.initial_state(OUT seal bigint, OUT high_water bigint, OUT fleet bigint, OUT fingerprint bigint)
  AS 'MODULE_PATHNAME', 'snowflake_initial_state'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION snowflake.check_sequence_page(sequence regclass, value bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_check_sequence_page'
  LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

-- The library reads and writes the pages of sequences in place. What they look like is PostgreSQL's
-- internal, so each side is asked whether it sees what the other wrote.
DO $$
DECLARE
  before pg_catalog.int8;
  after record;
  next pg_catalog.int8;
  kept pg_catalog.int8;
BEGIN
  PERFORM pg_catalog.setval('snowflake.high_water', 20);
  before := snowflake.check_sequence_page('snowflake.high_water', 30);
  SELECT last_value, log_cnt, is_called INTO after FROM snowflake.high_water;
  next := pg_catalog.nextval('snowflake.high_water');
  PERFORM pg_catalog.setval('snowflake.high_water', 10);
  kept := snowflake.check_sequence_page('snowflake.high_water', 0);
  IF (before, after.last_value, after.log_cnt, after.is_called, next, kept)
       IS DISTINCT FROM (20::pg_catalog.int8, 30::pg_catalog.int8, 0::pg_catalog.int8, true, 31::pg_catalog.int8,
                         30::pg_catalog.int8) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'feature_not_supported',
      MESSAGE = 'this version of PostgreSQL stores sequences in a way that snowflake does not know',
      DETAIL = pg_catalog.format('Stored 20, then 30: read %s, %s, %s, %s, and %s next; lowered to 10, still %s.',
                                 before, after.last_value, after.log_cnt, after.is_called, next, kept),
      HINT = 'Install a version of snowflake that was tested with this version of PostgreSQL.';
  END IF;
END
$$;

SELECT pg_catalog.setval('snowflake.seal', s.seal),
       pg_catalog.setval('snowflake.seal_local', s.seal),
       pg_catalog.setval('snowflake.fleet', s.fleet, s.fleet OPERATOR(pg_catalog.<>) 0),
       pg_catalog.setval('snowflake.fingerprint', s.fingerprint),
       snowflake.check_sequence_page('snowflake.high_water', s.high_water)
  FROM snowflake.initial_state() AS s;

DROP FUNCTION snowflake.initial_state();
DROP FUNCTION snowflake.check_sequence_page(regclass, bigint);

-- What a dump carries: the mark as a sequence, the seal as the row of a table, which whoever
-- restores may insert. The row only has to match; one that does not stops the database, for its
-- rows were decoded under another layout. The trigger fires also for replication and under
-- session_replication_role; --disable-triggers switches it off, and cannot switch off the constraint.
CREATE FUNCTION snowflake.is_seal(seal bigint) RETURNS boolean
  AS 'MODULE_PATHNAME', 'snowflake_is_seal'
  LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.is_seal(bigint) IS 'Internal: behind the table snowflake.dumped_seal';

CREATE TABLE snowflake.dumped_seal (seal bigint NOT NULL CONSTRAINT same_seal CHECK (snowflake.is_seal(seal)));
COMMENT ON TABLE snowflake.dumped_seal IS
  'The seal as a dump carries it; a row that is inserted is compared with the seal of this database, and not kept';
INSERT INTO snowflake.dumped_seal SELECT last_value FROM snowflake.seal_local;

CREATE FUNCTION snowflake.present_seal() RETURNS trigger
  AS 'MODULE_PATHNAME', 'snowflake_present_seal'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.present_seal() IS 'Internal: behind the table snowflake.dumped_seal';

CREATE TRIGGER present_seal BEFORE INSERT ON snowflake.dumped_seal
  FOR EACH ROW EXECUTE FUNCTION snowflake.present_seal();
CREATE TRIGGER keep_row BEFORE UPDATE OR DELETE ON snowflake.dumped_seal
  FOR EACH ROW EXECUTE FUNCTION snowflake.present_seal();
CREATE TRIGGER keep_rows BEFORE TRUNCATE ON snowflake.dumped_seal
  FOR EACH STATEMENT EXECUTE FUNCTION snowflake.present_seal();
ALTER TABLE snowflake.dumped_seal ENABLE ALWAYS TRIGGER present_seal,
  ENABLE ALWAYS TRIGGER keep_row, ENABLE ALWAYS TRIGGER keep_rows;

SELECT pg_catalog.pg_extension_config_dump('snowflake.high_water', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake.dumped_seal', '');

-- Minting

CREATE FUNCTION snowflake.next_id_support(request internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'snowflake_next_id_support'
  LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.next_id_support(internal) IS
  'Internal: planner support; replaces next_id() by next_id_for_copy() in the defaults of a COPY';

CREATE FUNCTION snowflake.next_id(shard integer) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id(integer) IS
  'Mints an id for a shard (0 to the layout''s last); greater than every earlier id of that shard';

CREATE FUNCTION snowflake.next_id() RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_default'
  LANGUAGE C VOLATILE PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id() IS
  'Mints an id for the shard that snowflake.default_shard names';

CREATE FUNCTION snowflake.next_id(shard integer, after bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_after'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id(integer, bigint) IS
  'Mints an id greater than another, whoever minted that: a reply sorts after its post on every server; waits, then refuses, where the other is more than max_lead ahead of the clock; null asks for nothing';

CREATE FUNCTION snowflake.next_id_near(id bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_near'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_id_near(bigint) IS
  'Mints an id in the shard of another id';

-- Not another next_id(): with two that take one argument, next_id($1) and next_id('5') would be ambiguous.
CREATE FUNCTION snowflake.next_id_in(shards int4range) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_in'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id_in(int4range) IS
  'Mints an id for some shard of a range that this server owns: the one that this session used last, or the next one that is not ahead of the clock';

-- The same functions for the defaults of a COPY. They do not read the last argument. SQL cannot pass an argument of
-- type internal, so only next_id_support() makes such a call.
CREATE FUNCTION snowflake.next_id_for_copy(unused internal) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_default'
  LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_id_for_copy(internal) IS 'Internal: next_id() or next_id_in() in the defaults of a COPY';
CREATE FUNCTION snowflake.next_id_for_copy(shard integer, unused internal) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id'
  LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_id_for_copy(integer, internal) IS 'Internal: next_id() or next_id_in() in the defaults of a COPY';
CREATE FUNCTION snowflake.next_id_for_copy(shard integer, after bigint, unused internal) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_after'
  LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_id_for_copy(integer, bigint, internal) IS 'Internal: next_id() or next_id_in() in the defaults of a COPY';
CREATE FUNCTION snowflake.next_id_for_copy(shards int4range, unused internal) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_in'
  LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_id_for_copy(int4range, internal) IS 'Internal: next_id() or next_id_in() in the defaults of a COPY';

CREATE FUNCTION snowflake.next_ids(shard integer, count integer) RETURNS bigint[]
  AS 'MODULE_PATHNAME', 'snowflake_next_ids'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_ids(integer, integer) IS
  'Mints 1 to 1,000,000 ids for a shard, ascending; pauses where the shard''s capacity asks for it';

CREATE FUNCTION snowflake.next_ids(shard integer, count integer, after bigint) RETURNS bigint[]
  AS 'MODULE_PATHNAME', 'snowflake_next_ids_after'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_ids(integer, integer, bigint) IS
  'Mints 1 to 1,000,000 ids, ascending, all greater than another id, whoever minted that';

CREATE FUNCTION snowflake.last_id() RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_last_id'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.last_id() IS
  'The id that this session minted last, whatever became of the transaction';

-- Decoding. IMMUTABLE is honest: every function refuses settings that contradict the seal. Numbers
-- that no server of the layout can mint, negative ones among them, are errors.

CREATE FUNCTION snowflake.decode(id bigint, OUT created_at timestamptz, OUT region integer,
                                 OUT shard integer, OUT sequence integer)
  AS 'MODULE_PATHNAME', 'snowflake_decode'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.decode(bigint) IS
  'When an id was made (start of its tick), in which region, for which shard, and its sequence number in the tick';

CREATE FUNCTION snowflake.time_of(id bigint) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'snowflake_time_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.time_of(bigint) IS
  'When an id was made: the start of its tick';

CREATE FUNCTION snowflake.shard_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_of(bigint) IS
  'The shard that an id belongs to, whoever minted it';

CREATE FUNCTION snowflake.region_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_region_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.region_of(bigint) IS
  'The region that minted an id; 0 where the layout has none';

CREATE FUNCTION snowflake.sequence_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_sequence_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.sequence_of(bigint) IS
  'An id''s number within its tick and shard';

-- A shard for keys that are no ids. The layout is sealed, so it is the same for ever.

CREATE FUNCTION snowflake.shard_for(key bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_number'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(bigint) IS
  'A shard for a number that is no id: that of its decimal digits as text. Never changes';

CREATE FUNCTION snowflake.shard_for(key uuid) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(uuid) IS
  'A shard for a UUID: that of its 36 characters in lower case. Never changes';

CREATE FUNCTION snowflake.shard_for(key text) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_text'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(text) IS
  'A shard for a text, evenly spread: the first 32 bits of the SHA-256 of its UTF-8, times the number of shards, divided by 2^32. Never changes; refuses nondeterministic collations';

-- Bounds

CREATE FUNCTION snowflake.min_id(at timestamptz) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_min_id'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.min_id(timestamptz) IS
  'The smallest id whose time is this or later; as a half-open bound: id >= min_id(a) AND id < min_id(b)';

CREATE FUNCTION snowflake.max_id(at timestamptz) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_max_id'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.max_id(timestamptz) IS
  'The greatest id whose time is this or earlier';

CREATE FUNCTION snowflake.id_range(during tstzrange) RETURNS int8range
  AS 'MODULE_PATHNAME', 'snowflake_id_range'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.id_range(tstzrange) IS
  'The ids whose time lies in a range; unbounded stays unbounded, empty stays empty';

CREATE FUNCTION snowflake.last_id_before(at timestamptz) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_last_id_before'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.last_id_before(timestamptz) IS
  'The greatest id whose time is before this, for any time: -1 before the epoch, the layout''s last id past its end';

-- Both bounds by the last id before them: the first one since a time past the end would have to be
-- greater than any bigint. Each argument once, or an expensive one would keep it from being inlined.
-- Not STRICT and without a SET clause, or the planner could not inline it into index conditions;
-- BEGIN ATOMIC binds the operators now, whatever search_path says later.
CREATE FUNCTION snowflake.created_within(id bigint, since timestamptz, until timestamptz)
  RETURNS boolean
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id OPERATOR(pg_catalog.>) snowflake.last_id_before(since)
       AND id OPERATOR(pg_catalog.<=) snowflake.last_id_before(until);
  END;
COMMENT ON FUNCTION snowflake.created_within(bigint, timestamptz, timestamptz) IS
  'Whether an id''s time is at or after since and before until; uses an index on the id; takes any time, also infinite';

CREATE FUNCTION snowflake.make_id(at timestamptz, shard integer, sequence integer,
                                  region integer DEFAULT 0) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_make_id'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.make_id(timestamptz, integer, integer, integer) IS
  'Puts an id together from its fields, for backfill and tests; next_id() knows nothing of it';

-- Administration

CREATE FUNCTION snowflake.observe(id bigint) RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_observe'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.observe(bigint) IS
  'Makes every later id of this database greater than an id that was minted elsewhere; null does nothing';

CREATE FUNCTION snowflake.accept_clock() RETURNS interval
  AS 'MODULE_PATHNAME', 'snowflake_accept_clock'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.accept_clock() IS
  'Confirms that the clock is right after it was stepped; returns how far it had moved';

CREATE FUNCTION snowflake.accept_copy() RETURNS boolean
  AS 'MODULE_PATHNAME', 'snowflake_accept_copy'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.accept_copy() IS
  'Confirms that this database, which last minted elsewhere, mints here from now on, and nowhere else; returns whether it had minted elsewhere. A rollback does not undo it';

CREATE FUNCTION snowflake.set_mark(at timestamptz) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'snowflake_set_mark'
  LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.set_mark(timestamptz) IS
  'Sets the high-water mark, also lower than it is: to a time after every id of this database, or ids come again; not below what was written since the server started; returns what it is now';

-- A mark thrown ahead stops minting in the database, an accepted clock concerns the whole server, a
-- mark that is set too low, and a copy that mints beside its original, bring ids again: a decision
-- for their owners.
REVOKE ALL ON FUNCTION snowflake.observe(bigint), snowflake.accept_clock(), snowflake.accept_copy(),
  snowflake.set_mark(timestamptz) FROM PUBLIC;

-- Views. Durations are in milliseconds, as in pg_stat_*.

CREATE FUNCTION snowflake.layout(
    OUT bits text, OUT time_bits integer, OUT region_bits integer, OUT shard_bits integer,
    OUT sequence_bits integer, OUT tick_ms integer, OUT epoch timestamptz, OUT regions integer,
    OUT shards integer, OUT ids_per_second bigint, OUT ends_at timestamptz,
    OUT used_percent double precision)
  AS 'MODULE_PATHNAME', 'snowflake_layout'
  LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.layout() IS 'Behind the view snowflake.layout';

CREATE VIEW snowflake.layout AS SELECT * FROM snowflake.layout();
COMMENT ON VIEW snowflake.layout IS
  'What the ids of this database look like: bits, tick, epoch, capacity of a shard, and when they run out';

CREATE FUNCTION snowflake.preview_layout(layout text, tick text DEFAULT '0', epoch text DEFAULT '2025-01-01')
  RETURNS snowflake.layout
  AS 'MODULE_PATHNAME', 'snowflake_preview_layout'
  LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.preview_layout(text, text, text) IS
  'What the view layout would show of any layout, whatever this database is sealed with; tick and epoch as they would stand in postgresql.conf: tick 0 is the preset''s own, or 1 ms';

CREATE FUNCTION snowflake.shard_stats(
    OUT shard integer, OUT last_id bigint, OUT last_time timestamptz, OUT ids bigint,
    OUT batches bigint, OUT borrowed_ticks bigint, OUT waits bigint, OUT wait_time double precision,
    OUT refusals bigint, OUT rate double precision, OUT capacity bigint, OUT stats_since timestamptz)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_shard_stats'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION snowflake.shard_stats() IS 'Behind the view snowflake.shard_stats';

CREATE VIEW snowflake.shard_stats AS SELECT * FROM snowflake.shard_stats();
COMMENT ON VIEW snowflake.shard_stats IS
  'Per shard of this database that minted since the server started: last id and its time; since stats_since: ids, batches, ticks borrowed ahead of the clock, waits and ms waited, calls refused because of the clock, ids a second on average; capacity: ids a second that a shard can mint';

CREATE FUNCTION snowflake.database_stats(
    OUT stats_since timestamptz, OUT ids bigint, OUT batches bigint, OUT borrowed_ticks bigint,
    OUT waits bigint, OUT wait_time double precision, OUT refusals bigint,
    OUT mark_extensions bigint, OUT mark_flushes bigint, OUT mark_flush_time double precision,
    OUT longest_mark_flush double precision, OUT commit_waits bigint,
    OUT commit_wait_time double precision, OUT rate double precision, OUT capacity bigint)
  AS 'MODULE_PATHNAME', 'snowflake_database_stats'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.database_stats() IS 'Behind the view snowflake.database_stats';

CREATE VIEW snowflake.database_stats AS SELECT * FROM snowflake.database_stats();
COMMENT ON VIEW snowflake.database_stats IS
  'This database since stats_since: ids, batches, borrowed ticks, waits and ms waited of all shards, refusals of all causes; how often the high-water mark was written, and how often, how long in all and at most (ms) a call waited for its flush; waits before commits; ids a second on average, and the capacity of one shard';

CREATE FUNCTION snowflake.refusals(
    OUT cause text, OUT refusals bigint, OUT last_at timestamptz, OUT since timestamptz)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_refusals'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 15;
COMMENT ON FUNCTION snowflake.refusals() IS 'Behind the view snowflake.refusals';

CREATE VIEW snowflake.refusals AS SELECT * FROM snowflake.refusals();
COMMENT ON VIEW snowflake.refusals IS
  'Calls of this database that were refused since stats_since, a row for every cause: how many, when the last was, and since when they have been going on (null where they are over)';

CREATE FUNCTION snowflake.databases(OUT database text, OUT mark timestamptz, OUT ids bigint)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_databases'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION snowflake.databases() IS 'Behind the view snowflake.databases';

CREATE VIEW snowflake.databases AS SELECT * FROM snowflake.databases();
COMMENT ON VIEW snowflake.databases IS
  'The databases of this server that hold a place of snowflake.max_databases, because they have minted since it started: the mark of each as it is known, and its ids since its statistics begin. A place is free again when its database is dropped';

CREATE FUNCTION snowflake.clock_status(
    OUT clock timestamptz, OUT minting boolean, OUT reason text, OUT floor timestamptz,
    OUT covered_until timestamptz, OUT lead_ms double precision, OUT drift_ms double precision,
    OUT backward_steps bigint, OUT largest_backward_step_ms double precision,
    OUT forward_steps bigint, OUT largest_forward_step_ms double precision,
    OUT synchronized boolean, OUT offset_ms double precision,
    OUT estimated_error_ms double precision, OUT maximum_error_ms double precision)
  AS 'MODULE_PATHNAME', 'snowflake_clock_status'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.clock_status() IS 'Behind the view snowflake.clock_status';

CREATE VIEW snowflake.clock_status AS SELECT * FROM snowflake.clock_status();
COMMENT ON VIEW snowflake.clock_status IS
  'Whether this database mints, and if not why; the mark that was found, until when ids are covered by a mark (null when idle), how far ids are ahead, the steps of the clock since the server started, and what the kernel says of its error (null where it says nothing)';

CREATE FUNCTION snowflake.lease(
    OUT fleet bigint, OUT region integer, OUT until timestamptz, OUT published_until timestamptz,
    OUT length_ms double precision, OUT last_renewal timestamptz, OUT missed_renewals bigint,
    OUT last_contact timestamptz, OUT clocks_apart_ms double precision, OUT incarnation bigint, OUT last_message text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_lease'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 1;
COMMENT ON FUNCTION snowflake.lease() IS 'Behind the view snowflake.lease';

CREATE VIEW snowflake.lease AS SELECT * FROM snowflake.lease();
COMMENT ON VIEW snowflake.lease IS
  'Where regions are leased: the fleet and the region, until when ids of it may be minted and are published in any database, for how long it is asked for by now (as long as this incarnation is old, a minute at least, snowflake.lease and snowflake.max_lead at most), when it was last granted or renewed and how many attempts have failed since, when the control database last answered and how far this server''s clock was ahead of its (ms), the incarnation, and the last message of either side. No row where the region is static';

-- The last message may name other servers and hosts.
REVOKE ALL ON FUNCTION snowflake.lease() FROM PUBLIC;

CREATE FUNCTION snowflake.health(
    OUT minting boolean, OUT reason text, OUT advice text, OUT clock timestamptz,
    OUT mark timestamptz, OUT covered_until timestamptz, OUT lead_ms double precision,
    OUT drift_ms double precision, OUT synchronized boolean, OUT maximum_error_ms double precision,
    OUT last_refusal timestamptz, OUT last_refusal_cause text, OUT layout_ends_at timestamptz,
    OUT copied boolean)
  AS 'MODULE_PATHNAME', 'snowflake_health'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.health() IS 'Behind the view snowflake.health';

CREATE VIEW snowflake.health AS SELECT * FROM snowflake.health();
COMMENT ON VIEW snowflake.health IS
  'What a probe should ask: whether this database mints, if not why and what to do, and the numbers behind it; a reason beside minting is what an operator has to confirm: that this copy of the database is the one that mints. Always one row, also where every other function is refused';


CREATE FUNCTION snowflake.explain_id(
    INOUT id bigint, OUT created_at timestamptz, OUT age interval, OUT region integer,
    OUT shard integer, OUT sequence integer, OUT minted_by text, OUT possible boolean,
    OUT contradiction text)
  AS 'MODULE_PATHNAME', 'snowflake_explain_id'
  LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.explain_id(bigint) IS
  'What is to be known of any number as an id: its fields, its age, who mints such ids or for which table backfill() gave them, whether this database can have minted it, and what contradicts that';

CREATE FUNCTION snowflake.now_bounds(OUT earliest timestamptz, OUT latest timestamptz)
  AS 'MODULE_PATHNAME', 'snowflake_now_bounds'
  LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.now_bounds() IS
  'Between which times the true time lies: the clock, less and plus its maximum error; an error where the clock is not synchronized';

CREATE FUNCTION snowflake.reset_stats() RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_reset_stats'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.reset_stats() IS
  'Starts the counters of this database anew: shard_stats, database_stats, refusals';

-- As with pg_stat_reset(): who may look need not be who may wipe.
REVOKE ALL ON FUNCTION snowflake.reset_stats() FROM PUBLIC;

-- Ids outside the database. The text forms are functions of the number alone; UUIDs and ULIDs of the
-- number and the layout.

CREATE FUNCTION snowflake.to_base62(id bigint) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_to_base62'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_base62(bigint) IS
  'An id in 11 characters 0-9A-Za-z; sorts as ids do under COLLATE "C"; refuses negative numbers';

CREATE FUNCTION snowflake.from_base62(encoded text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_base62'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_base62(text) IS
  'The id that to_base62() wrote; anything else is an error with the position';

CREATE FUNCTION snowflake.to_base32(id bigint, check_symbol boolean DEFAULT false) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_to_base32'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_base32(bigint, boolean) IS
  'An id in 13 characters of Crockford''s base32, sorting as ids do under COLLATE "C"; with a check symbol 14; refuses negative numbers';

CREATE FUNCTION snowflake.from_base32(encoded text, check_symbol boolean DEFAULT false) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_base32'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_base32(text, boolean) IS
  'The id that to_base32() wrote; upper or lower case, o for 0, i and l for 1, hyphens anywhere; the check symbol must be there if and only if asked for';

CREATE FUNCTION snowflake.to_uuid(id bigint) RETURNS uuid
  AS 'MODULE_PATHNAME', 'snowflake_to_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_uuid(bigint) IS
  'An id as a UUID of version 7 with the id''s time; sorts as ids do; times up to 10889-08-02';

CREATE FUNCTION snowflake.from_uuid(encoded uuid) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_uuid(uuid) IS
  'The id of which to_uuid() made this; any other UUID is an error';

CREATE FUNCTION snowflake.to_ulid(id bigint) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_to_ulid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_ulid(bigint) IS
  'An id as a ULID, 26 characters of Crockford''s base32: the 128 bits of to_uuid()';

CREATE FUNCTION snowflake.from_ulid(encoded text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_ulid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_ulid(text) IS
  'The id of which to_ulid() made this, read as forgivingly as base32; any other ULID is an error';

-- Routing within a server: partitions by shard

CREATE FUNCTION snowflake.hash_by_shard(id bigint, seed bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_hash_by_shard'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION snowflake.hash_by_shard(id integer, seed bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_hash_integer_by_shard'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION snowflake.hash_by_shard(id smallint, seed bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_hash_smallint_by_shard'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.hash_by_shard(bigint, bigint) IS
  'Internal: behind the operator class snowflake.by_shard: hash partitions of modulus m have shard s in remainder s % m';
COMMENT ON FUNCTION snowflake.hash_by_shard(integer, bigint) IS
  'Internal: behind the operator class snowflake.by_shard, for integer constants';
COMMENT ON FUNCTION snowflake.hash_by_shard(smallint, bigint) IS
  'Internal: behind the operator class snowflake.by_shard, for smallint constants';

-- Function 1 is core's, for hash joins may pick it up; only hash partitions use function 2. The
-- smaller types are in the family as in core's, so that WHERE id = 5 prunes.
CREATE OPERATOR FAMILY snowflake.by_shard USING hash;
COMMENT ON OPERATOR FAMILY snowflake.by_shard USING hash IS
  'Ids and integers, hashed by the shard in hash partitions and as core does elsewhere';
CREATE OPERATOR CLASS snowflake.by_shard FOR TYPE bigint USING hash FAMILY snowflake.by_shard AS
  OPERATOR 1 pg_catalog.=,
  FUNCTION 1 pg_catalog.hashint8(bigint),
  FUNCTION 2 snowflake.hash_by_shard(bigint, bigint);
COMMENT ON OPERATOR CLASS snowflake.by_shard USING hash IS
  'PARTITION BY HASH (id snowflake.by_shard) places a row by the shard of its id: shard s in remainder s % modulus';
ALTER OPERATOR FAMILY snowflake.by_shard USING hash ADD
  FUNCTION 1 (integer) pg_catalog.hashint4(integer),
  FUNCTION 2 (integer) snowflake.hash_by_shard(integer, bigint),
  FUNCTION 1 (smallint) pg_catalog.hashint2(smallint),
  FUNCTION 2 (smallint) snowflake.hash_by_shard(smallint, bigint),
  OPERATOR 1 pg_catalog.= (bigint, integer),
  OPERATOR 1 pg_catalog.= (bigint, smallint),
  OPERATOR 1 pg_catalog.= (integer, bigint),
  OPERATOR 1 pg_catalog.= (integer, integer),
  OPERATOR 1 pg_catalog.= (integer, smallint),
  OPERATOR 1 pg_catalog.= (smallint, bigint),
  OPERATOR 1 pg_catalog.= (smallint, integer),
  OPERATOR 1 pg_catalog.= (smallint, smallint);

-- How PostgreSQL combines the hashes of a key's columns is its own affair. If a version did it
-- otherwise than those before it, nothing must be placed by it.
DO $$
BEGIN
  CREATE TABLE snowflake.probe (id bigint) PARTITION BY HASH (id snowflake.by_shard);
  PERFORM FROM snowflake.layout AS l,
               pg_catalog.generate_series(0, l.shards - 1, greatest(1, l.shards / 64)) AS shard
    WHERE NOT pg_catalog.satisfies_hash_partition('snowflake.probe'::pg_catalog.regclass, l.shards,
                                                  shard, snowflake.make_id(l.epoch, shard, 0));
  IF FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'feature_not_supported',
      MESSAGE = 'this version of PostgreSQL places rows in hash partitions in another way',
      DETAIL = 'Rows partitioned by snowflake.by_shard would not be in the partition of their shard.',
      HINT = 'Use a version of the extension that was made for this one.';
  END IF;
  DROP TABLE snowflake.probe;
END
$$;

-- Routing within a server: conditions, columns, schemas

CREATE FUNCTION snowflake.has_id(id bigint, key bigint) RETURNS boolean
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id OPERATOR(pg_catalog.=) key
       AND snowflake.shard_of(id) OPERATOR(pg_catalog.=) snowflake.shard_of(key);
  END;
COMMENT ON FUNCTION snowflake.has_id(bigint, bigint) IS
  'id = key, also where the table is partitioned or indexed by shard_of(id): prunes to the shard of the key';

CREATE FUNCTION snowflake.has_id(shard integer, id bigint, key bigint) RETURNS boolean
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id OPERATOR(pg_catalog.=) key
       AND shard OPERATOR(pg_catalog.=) snowflake.shard_of(key);
  END;
COMMENT ON FUNCTION snowflake.has_id(integer, bigint, bigint) IS
  'id = key, for a table that has the shard in a column and is partitioned, indexed or distributed by it';

CREATE FUNCTION snowflake.set_id() RETURNS trigger
  AS 'MODULE_PATHNAME', 'snowflake_set_id'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.set_id() IS
  'Trigger before INSERT: set_id(''user_id'') gives a row without an id one of the shard that the id in user_id has; set_id(''user_id'', ''hash'') one of shard_for(user_id); a second argument before that names the id''s column';

CREATE FUNCTION snowflake.schema_of(id bigint, prefix text DEFAULT 'shard_') RETURNS text
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT prefix OPERATOR(pg_catalog.||) snowflake.shard_of(id)::text;
  END;
COMMENT ON FUNCTION snowflake.schema_of(bigint, text) IS
  'The schema that holds the rows of an id''s shard, where each shard has a schema of its own';

-- Routing within a server: a schema for each shard, made from a template. What is printed while the
-- template's schema is all of search_path names its objects without a schema, and so means those of
-- the shard's schema when that takes its place.

CREATE FUNCTION snowflake.definition_of(catalogue regclass, object oid, schema name) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  kind CONSTANT text := catalogue::text;
  expression pg_node_tree;
  relation oid;
BEGIN
  IF kind = 'pg_attrdef' THEN
    SELECT adbin, adrelid INTO expression, relation FROM pg_attrdef WHERE oid = object;
  END IF;
  PERFORM set_config('search_path', quote_ident(schema) || ', pg_temp', true);
  CASE kind
    WHEN 'pg_attrdef' THEN RETURN pg_catalog.pg_get_expr(expression, relation, true);
    WHEN 'pg_constraint' THEN RETURN pg_catalog.pg_get_constraintdef(object, true);
    WHEN 'pg_class' THEN RETURN pg_catalog.pg_get_indexdef(object, 0, true);
    WHEN 'pg_trigger' THEN RETURN pg_catalog.pg_get_triggerdef(object, true);
    WHEN 'pg_type' THEN RETURN pg_catalog.format_type(object, -1);
    WHEN 'pg_statistic_ext' THEN RETURN pg_catalog.pg_get_statisticsobjdef(object);
  END CASE;
END
$$;
COMMENT ON FUNCTION snowflake.definition_of(regclass, oid, name) IS
  'Internal: for create_shards(): how an object is defined, as seen from a schema';

-- What names a shard is made another shard's where it is exactly one of two forms, and is otherwise not
-- copied: an expression is told apart by what it depends on, never by what its text holds.

CREATE FUNCTION snowflake.with_shard(definition text, shard integer) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE WHEN definition ~ '^snowflake\.next_id\(\d+\)$' THEN format('snowflake.next_id(%s)', shard)
              WHEN definition ~ '^CHECK \(snowflake\.shard_of\(("([^"]|"")+"|[a-z_][a-z0-9_]*)\) = \d+\)( NO INHERIT| NOT VALID)*$'
              THEN regexp_replace(definition, ' = \d+\)(?=[A-Z ]*$)', format(' = %s)', shard))
         END
$$;
COMMENT ON FUNCTION snowflake.with_shard(text, integer) IS
  'Internal: for create_shards(): the default next_id(N), or the constraint CHECK (shard_of(column) = N), for another shard; null for anything else';

CREATE FUNCTION snowflake.names_shard(catalogue regclass, object oid, expression text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE
           WHEN bool_or(proname <> ALL ('{time_of,region_of,sequence_of,created_within,min_id,max_id,id_range,last_id_before,
                                          to_base62,from_base62,to_base32,from_base32,to_uuid,from_uuid,to_ulid,from_ulid,set_id,
                                          shard_of,shard_for,schema_of,has_id,decode}')) THEN 'mints'
           WHEN bool_or(proname = ANY ('{shard_of,shard_for,schema_of,has_id,decode}')) AND expression ~ '\{CONST ' THEN 'compares'
         END
    FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.refobjid
   WHERE d.classid = catalogue AND d.objid = object AND d.refclassid = 'pg_proc'::regclass
     AND p.pronamespace = to_regnamespace('snowflake')
$$;
COMMENT ON FUNCTION snowflake.names_shard(regclass, oid, text) IS
  'Internal: for create_shards(): whether an expression, given as its node tree, mints or compares a shard with a constant; null where it does neither';

CREATE FUNCTION snowflake.statements_of(source regclass, shard integer)
  RETURNS TABLE (step integer, statement text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  class pg_class;
  schema name;
  home text;  -- the schema's name with its dot, as others print it
  this text;
BEGIN
  SELECT * INTO class FROM pg_class WHERE oid = source;
  SELECT nspname INTO schema FROM pg_namespace WHERE oid = class.relnamespace;
  home := quote_ident(schema) || '.';
  this := quote_ident(class.relname);
  RETURN QUERY
  WITH attribute AS (
    SELECT a.*, quote_ident(attname) AS col, t.typcollation, t.typstorage
      FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = atttypid
     WHERE attrelid = source AND attnum > 0 AND NOT attisdropped
  ), identity AS (
    SELECT refobjsubid AS attnum, s.*
      FROM pg_depend JOIN pg_sequence AS s ON seqrelid = objid
     WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = source
       AND deptype = 'i'
  ), columns AS (
    SELECT attnum, concat_ws(' ', col, format_type(atttypid, atttypmod),
             CASE WHEN attcollation <> typcollation THEN 'COLLATE ' || attcollation::regcollation END,
             CASE WHEN attgenerated <> ''
                  THEN format('GENERATED ALWAYS AS (%s) %s',
                              snowflake.definition_of('pg_attrdef', d.oid, schema),
                              CASE attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL' END)
                  WHEN snowflake.names_shard('pg_attrdef', d.oid, adbin::text) = 'mints'
                  THEN 'DEFAULT ' || snowflake.with_shard(snowflake.definition_of('pg_attrdef', d.oid, schema), shard)
                  WHEN d.oid IS NOT NULL
                  THEN 'DEFAULT ' || snowflake.definition_of('pg_attrdef', d.oid, schema)
                  WHEN attidentity <> ''
                  THEN format('GENERATED %s AS IDENTITY (START %s INCREMENT %s MINVALUE %s MAXVALUE %s CACHE %s%s)',
                              CASE attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
                              seqstart, seqincrement, seqmin, seqmax, seqcache,
                              CASE WHEN seqcycle THEN ' CYCLE' ELSE '' END)
             END,
             CASE WHEN attnotnull THEN 'NOT NULL' END) AS definition
      FROM attribute LEFT JOIN pg_attrdef AS d ON adrelid = source AND adnum = attnum
      LEFT JOIN identity USING (attnum)
  ), settings AS (
    SELECT option FROM unnest(class.reloptions) AS option
    UNION ALL
    SELECT 'toast.' || option FROM pg_class AS toast, unnest(toast.reloptions) AS option
     WHERE toast.oid = class.reltoastrelid
  ), commented (what, text) AS (
    SELECT 'TABLE ' || this, obj_description(source, 'pg_class')
    UNION ALL
    SELECT format('COLUMN %s.%s', this, col), col_description(source, attnum) FROM attribute
    UNION ALL
    SELECT format('CONSTRAINT %I ON %s', conname, this), obj_description(oid, 'pg_constraint')
      FROM pg_constraint WHERE conrelid = source
    UNION ALL
    SELECT 'INDEX ' || quote_ident(relname), obj_description(indexrelid, 'pg_class')
      FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = source
    UNION ALL
    SELECT format('TRIGGER %I ON %s', tgname, this), obj_description(oid, 'pg_trigger')
      FROM pg_trigger WHERE tgrelid = source AND NOT tgisinternal
    UNION ALL
    SELECT 'STATISTICS ' || quote_ident(stxname), obj_description(oid, 'pg_statistic_ext')
      FROM pg_statistic_ext WHERE stxrelid = source
  ), granted AS (
    SELECT this AS target, '' AS col, acl.* FROM aclexplode(class.relacl) AS acl
    UNION ALL
    SELECT this, format(' (%s)', col), acl.* FROM attribute, aclexplode(attacl) AS acl
  ), made (step, statement) AS (
    SELECT 0, format('CREATE %sTABLE %s (%s) USING %I',
                     CASE class.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END, this,
                     (SELECT string_agg(definition, ', ' ORDER BY attnum) FROM columns), amname)
      FROM pg_am WHERE oid = class.relam
    UNION ALL
    SELECT 1, format('ALTER TABLE %s SET (%s)', this,
                     string_agg(format('%s = %L', split_part(option, '=', 1),
                                       substr(option, strpos(option, '=') + 1)), ', ' ORDER BY option))
      FROM settings HAVING count(*) > 0
    UNION ALL
    SELECT 1, format('ALTER TABLE %s ALTER COLUMN %s SET %s', this, col, change)
      FROM attribute, LATERAL (VALUES
        (CASE WHEN attstorage <> typstorage THEN 'STORAGE ' || CASE attstorage
           WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END),
        (CASE attcompression WHEN 'p' THEN 'COMPRESSION pglz' WHEN 'l' THEN 'COMPRESSION lz4' END),
        (CASE WHEN attstattarget >= 0 THEN 'STATISTICS ' || attstattarget END),
        -- Recent minor versions keep notes of their own there, too.
        ((SELECT '(' || string_agg(option, ', ' ORDER BY option) || ')'
            FROM unnest(attoptions) AS option WHERE option LIKE 'n\_distinct%'))
      ) AS changes (change) WHERE change IS NOT NULL
    UNION ALL
    SELECT CASE contype WHEN 'f' THEN 3 ELSE 1 END,
           format('ALTER TABLE %s ADD CONSTRAINT %I %s', this, conname,
                  coalesce(CASE WHEN snowflake.names_shard('pg_constraint', oid, conbin::text) = 'compares'
                                THEN snowflake.with_shard(definition, shard) END, definition))
      FROM pg_constraint, snowflake.definition_of('pg_constraint', oid, schema) AS definition
     WHERE conrelid = source AND contype IN ('c', 'p', 'u', 'x', 'f')
    UNION ALL
    SELECT 2, format('ALTER INDEX %I SET (%s)', relname,
                     (SELECT string_agg(format('%s = %L', split_part(option, '=', 1), substr(option, strpos(option, '=') + 1)), ', ' ORDER BY option)
                        FROM unnest(i.reloptions) AS option))
      FROM pg_constraint JOIN pg_class AS i ON i.oid = conindid
     WHERE conrelid = source AND contype IN ('p', 'u', 'x') AND i.reloptions IS NOT NULL
    UNION ALL
    SELECT 2, snowflake.definition_of('pg_class', indexrelid, schema)
      FROM pg_index WHERE indrelid = source AND NOT EXISTS
        (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))
    UNION ALL
    SELECT 2, regexp_replace(snowflake.definition_of('pg_statistic_ext', oid, schema),
                             '^CREATE STATISTICS ("([^"]|"")+"|[^".]+)\.', 'CREATE STATISTICS ')
      FROM pg_statistic_ext WHERE stxrelid = source
    UNION ALL
    SELECT 3, format('ALTER TABLE %s CLUSTER ON %I', this, relname)
      FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = source AND indisclustered
    UNION ALL
    SELECT 3, format('ALTER TABLE %s REPLICA IDENTITY %s', this,
                     CASE class.relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING'
                     ELSE 'USING INDEX ' || (SELECT quote_ident(relname) FROM pg_index JOIN pg_class ON oid = indexrelid
                                              WHERE indrelid = source AND indisreplident) END)
     WHERE class.relreplident <> 'd'
    UNION ALL
    SELECT 4, snowflake.definition_of('pg_trigger', oid, schema)
      FROM pg_trigger WHERE tgrelid = source AND NOT tgisinternal
    UNION ALL
    SELECT 5, format('ALTER TABLE %s %s TRIGGER %I', this,
                     CASE tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, tgname)
      FROM pg_trigger WHERE tgrelid = source AND NOT tgisinternal AND tgenabled <> 'O'
    UNION ALL
    SELECT 5, format('COMMENT ON %s IS %L', what, text) FROM commented WHERE text IS NOT NULL
    UNION ALL
    SELECT 7, format('REVOKE ALL ON TABLE %s FROM %s', this, class.relowner::regrole) WHERE class.relacl IS NOT NULL
    UNION ALL
    SELECT 8, format('GRANT %s%s ON TABLE %s TO %s%s', privilege_type, col, target,
                     CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                     CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
      FROM granted
    UNION ALL
    SELECT 6, format('ALTER TABLE %s OWNER TO %s', this, class.relowner::regrole)
  )
  SELECT m.step, m.statement FROM made AS m;
END
$$;
COMMENT ON FUNCTION snowflake.statements_of(regclass, integer) IS
  'Internal: for create_shards(): the statements that make a table again, for a shard, in another schema';

CREATE FUNCTION snowflake.shard_checks(source regclass, shard integer) RETURNS SETOF text
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
  SELECT format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (snowflake.shard_of(%I) = %s)', relname,
                CASE WHEN octet_length(attname) <= 54 THEN 'shard_of_' || attname ELSE 'shard_of_' || md5(attname) END, attname, shard)
    FROM pg_attrdef AS d JOIN pg_attribute AS a ON attrelid = adrelid AND attnum = adnum JOIN pg_class AS c ON c.oid = adrelid
    JOIN pg_namespace AS n ON n.oid = relnamespace
   WHERE adrelid = source AND snowflake.names_shard('pg_attrdef', d.oid, adbin::text) = 'mints'
     AND snowflake.with_shard(snowflake.definition_of('pg_attrdef', d.oid, nspname), shard) IS NOT NULL
     AND NOT EXISTS
       (SELECT FROM pg_constraint AS k
         WHERE conrelid = source AND contype = 'c' AND conkey = ARRAY[attnum]
           AND snowflake.names_shard('pg_constraint', k.oid, conbin::text) = 'compares'
           AND snowflake.with_shard(snowflake.definition_of('pg_constraint', k.oid, nspname), shard) IS NOT NULL)
$$;
COMMENT ON FUNCTION snowflake.shard_checks(regclass, integer) IS
  'Internal: for create_shards(): statements for the constraint that a column which mints takes ids of its shard only, where the table has none';

-- An expression may print otherwise once it was read from its own text: CHECK (status IN (...)) on varchar
-- does. So tables that differ are compared again, by what both print after that.
CREATE FUNCTION snowflake.printed_again(source regclass, shard integer) RETURNS SETOF text
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  scratch CONSTANT name := 'scratch_of_snowflake_' || pg_backend_pid();
  home name;
  relation name;
  stated text;
  again text[];
BEGIN
  SELECT nspname, relname INTO home, relation FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = source;
  EXECUTE format('CREATE SCHEMA %I', scratch);
  -- Foreign keys, owners, privileges and comments, the other steps, hold no expressions.
  FOR stated IN
    SELECT s.statement FROM snowflake.statements_of(source, shard) AS s WHERE s.step IN (0, 1, 2, 4) ORDER BY s.step, s.statement
  LOOP
    -- For the statement alone: the owner of that schema may have a format() of his own in it.
    PERFORM set_config('search_path', concat_ws(', ', quote_ident(scratch), quote_ident(home), 'pg_temp'), true);
    EXECUTE stated;
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  END LOOP;
  SELECT array_agg(w.statement) INTO again FROM (
    SELECT s.statement FROM snowflake.statements_of(format('%I.%I', scratch, relation)::regclass, shard) AS s WHERE s.step IN (0, 1, 2, 4)
    UNION ALL
    SELECT s.statement FROM snowflake.statements_of(source, shard) AS s WHERE s.step NOT IN (0, 1, 2, 4)) AS w;
  RAISE EXCEPTION USING ERRCODE = 'SFUND';  -- undoes all of it but the variable
EXCEPTION
  WHEN SQLSTATE 'SFUND' THEN RETURN QUERY SELECT unnest(again);
  WHEN insufficient_privilege THEN RETURN QUERY SELECT s.statement FROM snowflake.statements_of(source, shard) AS s;
END
$$;
COMMENT ON FUNCTION snowflake.printed_again(regclass, integer) IS
  'Internal: for create_shards(): the statements that make a table, as they read after one copy, which is made and undone';

CREATE FUNCTION snowflake.unlike(template regclass, existing regclass, shard integer, OUT missing text, OUT extra text)
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  FOR attempt IN 1 .. 2 LOOP
    SELECT string_agg(statement, '; ' ORDER BY statement) FILTER (WHERE theirs IS NULL),
           string_agg(statement, '; ' ORDER BY statement) FILTER (WHERE ours IS NULL)
      INTO missing, extra
      FROM (SELECT s.statement, true AS ours FROM snowflake.statements_of(template, shard) AS s WHERE attempt = 1
            UNION ALL
            SELECT s, true FROM snowflake.printed_again(template, shard) AS s WHERE attempt = 2
            UNION ALL
            SELECT c, true FROM snowflake.shard_checks(template, shard) AS c) AS o
      FULL JOIN (SELECT s.statement, true AS theirs FROM snowflake.statements_of(existing, shard) AS s WHERE attempt = 1
                 UNION ALL
                 SELECT s, true FROM snowflake.printed_again(existing, shard) AS s WHERE attempt = 2) AS t USING (statement);
    -- The second time expressions are run, with the rights of the caller: not those of another owner than the template's.
    EXIT WHEN missing IS NULL AND extra IS NULL
           OR (SELECT count(DISTINCT relowner) > 1 FROM pg_class WHERE oid IN (template, existing));
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake.unlike(regclass, regclass, integer) IS
  'Internal: for create_shards(): the statements by which a shard''s table and the template''s differ; nulls where they do not';

CREATE FUNCTION snowflake.uncopyable(template regnamespace)
  RETURNS TABLE (object text, reason text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  schema CONSTANT name := (SELECT nspname FROM pg_namespace WHERE oid = template);
BEGIN
  RETURN QUERY
  WITH tab AS (
    SELECT c.* FROM pg_class AS c WHERE relnamespace = template AND relkind = 'r'
  ), odd (classid, objid, why) AS (
    -- What lies in the schema and is no table.
    SELECT classid, objid, 'is no ordinary table, and stays in the template'
      FROM pg_depend AS d
     WHERE refclassid = 'pg_namespace'::regclass AND refobjid = template AND deptype IN ('n', 'a')
       AND classid <> 'pg_statistic_ext'::regclass
       AND NOT (classid = 'pg_class'::regclass AND objid IN (SELECT oid FROM tab))
       -- members of an extension come with it, and the sequence of an identity column with its table
       AND NOT EXISTS (SELECT FROM pg_depend AS m WHERE m.classid = d.classid AND m.objid = d.objid
                                                    AND m.objsubid = 0 AND m.deptype IN ('e', 'i'))
  ), part (classid, objid) AS (
    SELECT 'pg_class'::regclass::oid, oid FROM tab
    UNION ALL
    SELECT 'pg_class'::regclass, indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM tab)
    UNION ALL
    SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid IN (SELECT oid FROM tab)
    UNION ALL
    SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE conrelid IN (SELECT oid FROM tab)
    UNION ALL
    SELECT 'pg_trigger'::regclass, oid FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM tab) AND NOT tgisinternal
  ), found AS (
    SELECT * FROM odd
    UNION ALL
    -- Parts of tables that would go on to mean the template's objects.
    SELECT p.classid, p.objid, format('uses %s of the template', pg_describe_object(o.classid, o.objid, 0))
      FROM part AS p JOIN pg_depend AS d ON d.classid = p.classid AND d.objid = p.objid AND d.deptype = 'n'
      JOIN odd AS o ON d.refclassid = o.classid AND d.refobjid = o.objid
    UNION ALL
    SELECT 'pg_class'::regclass, a.attrelid, format('column %I has the row type of a table of the template', attname)
      FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = atttypid
      LEFT JOIN pg_type AS e ON e.oid = t.typelem
     WHERE attrelid IN (SELECT oid FROM tab) AND attnum > 0
       AND (t.typrelid IN (SELECT oid FROM tab) OR e.typrelid IN (SELECT oid FROM tab))
    UNION ALL
    SELECT 'pg_trigger'::regclass, oid, 'names the template'
      FROM pg_trigger
     WHERE tgrelid IN (SELECT oid FROM tab) AND NOT tgisinternal
       AND (tgconstrrelid <> 0
            OR strpos(encode(tgargs, 'escape'), schema || '.') > 0 OR strpos(encode(tgargs, 'escape'), quote_ident(schema) || '.') > 0
            OR encode(tgargs, 'escape') ~ ('(^|\\000)' || regexp_replace(schema, '(\W)', '\\\1', 'g') || '\\000'))
    UNION ALL
    -- What would mint for the template's shard, or compare with it, in every schema.
    SELECT 'pg_attrdef'::regclass, d.oid, CASE named WHEN 'mints' THEN 'mints, and is not snowflake.next_id(N) by itself'
                                                     ELSE 'compares a shard with a constant' END
      FROM pg_attrdef AS d, snowflake.names_shard('pg_attrdef', d.oid, adbin::text) AS named
     WHERE adrelid IN (SELECT oid FROM tab)
       AND (named = 'compares' OR named = 'mints' AND snowflake.with_shard(snowflake.definition_of('pg_attrdef', d.oid, schema), 0) IS NULL)
    UNION ALL
    SELECT 'pg_attrdef'::regclass, d.oid, format('calls %s, which may mint for any shard', p.oid::regprocedure)
      FROM pg_attrdef AS d JOIN pg_attribute AS a ON attrelid = adrelid AND attnum = adnum
      JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_proc'::regclass
      JOIN pg_proc AS p ON p.oid = u.refobjid
     WHERE adrelid IN (SELECT oid FROM tab) AND format_type(atttypid, -1) = ANY ('{bigint,numeric,text}') AND provolatile = 'v'
       AND NOT EXISTS (SELECT FROM pg_depend AS m WHERE m.classid = 'pg_proc'::regclass AND m.objid = p.oid AND m.deptype = 'e')
    UNION ALL
    SELECT 'pg_class'::regclass, c.attrelid, format('column %I has type %s, which %s', c.attname, c.type::regtype, c.named)
      FROM (WITH RECURSIVE chain (attrelid, attname, type) AS (
              SELECT attrelid, attname, atttypid FROM pg_attribute WHERE attrelid IN (SELECT oid FROM tab) AND attnum > 0 AND NOT attisdropped
              UNION
              SELECT attrelid, attname, typbasetype FROM chain JOIN pg_type ON oid = type WHERE typtype = 'd')
            SELECT attrelid, attname, type, CASE WHEN snowflake.names_shard('pg_type', type, typdefaultbin::text) IS NOT NULL
                                                 THEN 'mints by its default' ELSE 'compares a shard with a constant' END AS named
              FROM chain JOIN pg_type AS t ON t.oid = type
             WHERE typtype = 'd' AND (snowflake.names_shard('pg_type', type, typdefaultbin::text) IS NOT NULL
               OR EXISTS (SELECT FROM pg_constraint AS k WHERE contypid = type
                             AND snowflake.names_shard('pg_constraint', k.oid, conbin::text) IS NOT NULL))) AS c
    UNION ALL
    SELECT 'pg_constraint'::regclass, k.oid, 'compares a shard, and is not CHECK (snowflake.shard_of(column) = N) by itself'
      FROM pg_constraint AS k
     WHERE conrelid IN (SELECT oid FROM tab) AND snowflake.names_shard('pg_constraint', k.oid, conbin::text) IS NOT NULL
       AND snowflake.with_shard(snowflake.definition_of('pg_constraint', k.oid, schema), 0) IS NULL
    UNION ALL
    SELECT 'pg_class'::regclass, indexrelid, 'compares a shard with a constant'
      FROM pg_index
     WHERE indrelid IN (SELECT oid FROM tab) AND snowflake.names_shard('pg_class', indexrelid, concat(indexprs, indpred)) IS NOT NULL
    UNION ALL
    SELECT 'pg_statistic_ext'::regclass, oid, 'compares a shard with a constant'
      FROM pg_statistic_ext
     WHERE stxrelid IN (SELECT oid FROM tab) AND snowflake.names_shard('pg_statistic_ext', oid, stxexprs::text) IS NOT NULL
    UNION ALL
    SELECT 'pg_trigger'::regclass, t.oid, CASE WHEN prosrc ~ '\mnext_id(s|_in)?\s*\(' THEN format('calls %s, which mints', p.oid::regprocedure)
                                               ELSE 'compares a shard with a constant' END
      FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = tgfoid
     WHERE tgrelid IN (SELECT oid FROM tab) AND NOT tgisinternal
       AND (prosrc ~ '\mnext_id(s|_in)?\s*\(' OR snowflake.names_shard('pg_trigger', t.oid, tgqual::text) IS NOT NULL)
    UNION ALL
    SELECT 'pg_rewrite'::regclass, oid, 'is not copied' FROM pg_rewrite WHERE ev_class IN (SELECT oid FROM tab)
    UNION ALL
    SELECT 'pg_policy'::regclass, oid, 'is not copied' FROM pg_policy WHERE polrelid IN (SELECT oid FROM tab)
    UNION ALL
    SELECT 'pg_class'::regclass, oid, r
      FROM tab, LATERAL (VALUES
        (CASE WHEN relrowsecurity OR relforcerowsecurity THEN 'has row security' END),
        (CASE WHEN reloftype <> 0 THEN 'is of a type' END),
        (CASE WHEN reltablespace <> 0 THEN 'has a tablespace of its own' END),
        (CASE WHEN relispartition THEN 'is a partition'
              WHEN EXISTS (SELECT FROM pg_inherits WHERE oid IN (inhrelid, inhparent)) THEN 'inherits' END)
      ) AS v (r) WHERE r IS NOT NULL
  )
  SELECT pg_describe_object(f.classid, f.objid, 0), f.why FROM found AS f ORDER BY 1, 2;
END
$$;
COMMENT ON FUNCTION snowflake.uncopyable(regnamespace) IS
  'What create_shards() cannot copy of a template schema, and why';

CREATE FUNCTION snowflake.make_shard(template regnamespace, shard integer, prefix text) RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  source pg_namespace;
  target CONSTANT name := prefix || shard;
  fresh boolean := false;
  made name[];
  old record;
  stated text;
BEGIN
  SELECT * INTO source FROM pg_namespace WHERE oid = template;
  IF octet_length(prefix || shard) > 63 THEN
    RAISE EXCEPTION USING ERRCODE = 'name_too_long',
      MESSAGE = format('schema name "%s" is too long', prefix || shard),
      DETAIL = 'A name has 63 bytes at most.', HINT = 'Choose a shorter prefix.';
  END IF;
  IF target = source.nspname THEN
    RETURN 0;
  END IF;

  -- Of several sessions that make the same shard one goes first; the others wait for its commit.
  BEGIN
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = target) THEN
      EXECUTE format('CREATE SCHEMA %I', target);
      fresh := true;
    END IF;
  EXCEPTION WHEN unique_violation OR duplicate_schema THEN
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = target) THEN
      RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
        MESSAGE = format('schema %s was made by another session', quote_ident(target)),
        DETAIL = 'This transaction does not see it yet.', HINT = 'Retry the transaction.';
    END IF;
  END;
  -- What somebody else has put into a schema of this name would be found by the copied expressions.
  IF EXISTS (SELECT FROM pg_namespace WHERE nspname = target AND nspowner <> source.nspowner AND NOT fresh) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('schema %I has another owner than the template', target),
      DETAIL = format('It belongs to %s, the template to %s.', (SELECT nspowner FROM pg_namespace WHERE nspname = target)::regrole, source.nspowner::regrole),
      HINT = 'Find out whose it is; give it to the owner of the template, or pass another prefix.';
  END IF;
  IF fresh THEN
    EXECUTE format('ALTER SCHEMA %I OWNER TO %s', target, source.nspowner::regrole);
    FOR stated IN
      SELECT format('REVOKE ALL ON SCHEMA %I FROM %s', target, source.nspowner::regrole) WHERE source.nspacl IS NOT NULL
      UNION ALL
      SELECT format('GRANT %s ON SCHEMA %I TO %s%s', privilege_type, target,
                    CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                    CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
        FROM aclexplode(source.nspacl)
      UNION ALL
      SELECT format('COMMENT ON SCHEMA %I IS %L', target, c) FROM obj_description(template, 'pg_namespace') AS c WHERE c IS NOT NULL
    LOOP
      EXECUTE stated;
    END LOOP;
  ELSE
    -- The same comment again, for its lock on the schema, which only an owner of it can take.
    EXECUTE format('COMMENT ON SCHEMA %I IS %s', target, quote_nullable(obj_description(to_regnamespace(quote_ident(target)), 'pg_namespace')));
  END IF;

  -- Tables that are there are left as they are; that they are otherwise is said.
  FOR old IN
    SELECT t.oid::regclass AS existing, u.missing, u.extra
      FROM pg_class AS f JOIN pg_class AS t USING (relname) JOIN pg_namespace AS n ON n.oid = t.relnamespace,
           snowflake.unlike(f.oid, t.oid, shard) AS u
     WHERE f.relnamespace = template AND f.relkind = 'r' AND nspname = target
       AND (u.missing IS NOT NULL OR u.extra IS NOT NULL) ORDER BY relname
  LOOP
    RAISE WARNING USING ERRCODE = 'duplicate_table',
      MESSAGE = format('table %s is not as in the template, and is left as it is', old.existing),
      DETAIL = format('By the template: %s. Instead: %s.', coalesce(old.missing, 'nothing'), coalesce(old.extra, 'nothing')),
      HINT = 'Alter the table, or drop it and call create_shards() again.';
  END LOOP;

  SELECT array_agg(relname) INTO made
    FROM pg_class AS f
   WHERE relnamespace = template AND relkind = 'r' AND NOT EXISTS
     (SELECT FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace
       WHERE t.relname = f.relname AND nspname = target);
  FOR stated IN
    SELECT statement
      FROM pg_class AS f, LATERAL (SELECT s.* FROM snowflake.statements_of(f.oid, shard) AS s
                                   UNION ALL
                                   SELECT 1, c FROM snowflake.shard_checks(f.oid, shard) AS c) AS m
     WHERE relnamespace = template AND relname = ANY (made) ORDER BY step, f.oid, statement
  LOOP
    -- What was not copied, if that was asked for, is found in the template.
    PERFORM set_config('search_path', concat_ws(', ', quote_ident(target), quote_ident(source.nspname), 'pg_temp'), true);
    EXECUTE stated;
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  END LOOP;
  RETURN coalesce(cardinality(made), 0);
END
$$;
COMMENT ON FUNCTION snowflake.make_shard(regnamespace, integer, text) IS
  'Internal: for create_shards(): one shard''s schema, of a template and a shard that were checked; returns how many tables were made';

CREATE FUNCTION snowflake.check_template(template regnamespace, shards int4range, prefix text, partial boolean,
                                         commit_each boolean)
  RETURNS void
  LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  known CONSTANT integer := l.shards FROM snowflake.layout AS l;
  problem record;
  problems text;
  locks bigint;
  room bigint;
BEGIN
  IF template IS NULL OR shards IS NULL OR prefix IS NULL OR partial IS NULL OR commit_each IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
      MESSAGE = 'create_shards() takes no null',
      DETAIL = 'A template schema, a range of shards, a prefix for names, and two booleans are needed.',
      HINT = 'Leave out what has a default.';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_namespace WHERE oid = template) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
      MESSAGE = format('schema %s does not exist', template::oid),
      DETAIL = 'The template is a schema with the tables that each shard is to have.',
      HINT = 'Pass the name of a schema.';
  END IF;
  IF isempty(shards) OR lower_inf(shards) OR upper_inf(shards) OR lower(shards) < 0 OR upper(shards) > known THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('shards %s are out of range', shards),
      DETAIL = format('The layout has shards 0 to %s.', known - 1),
      HINT = 'Pass a range of shards, such as ''[0,16)''.';
  END IF;

  IF partial THEN
    FOR problem IN SELECT * FROM snowflake.uncopyable(template) LOOP
      RAISE WARNING USING ERRCODE = 'feature_not_supported',
        MESSAGE = format('not copied as it is: %s', problem.object),
        DETAIL = format('It %s.', problem.reason);
    END LOOP;
  ELSE
    SELECT string_agg(format('%s %s', object, reason), E'\n') INTO problems FROM snowflake.uncopyable(template);
    IF problems IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
        MESSAGE = format('schema %s has what cannot be copied', template),
        DETAIL = problems,
        HINT = 'Move these out of the template, or pass partial => true and make them for each shard yourself.';
    END IF;
  END IF;

  -- Everything that is made is locked until the transaction ends.
  SELECT (upper(shards) - lower(shards)) * (2 + count(*) FILTER (WHERE relkind = 'r') * 3 + count(*)) INTO locks
    FROM pg_class WHERE relnamespace = template;
  room := current_setting('max_locks_per_transaction')::bigint
        * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint);
  IF locks > room AND NOT commit_each THEN
    RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
      MESSAGE = format('%s schemas are too many for one transaction', upper(shards) - lower(shards)),
      DETAIL = format('About %s locks would be held; "max_locks_per_transaction" and the number of connections leave room for %s.', locks, room),
      HINT = 'Pass commit_each => true outside of a transaction block, or fewer shards.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.check_template(regnamespace, int4range, text, boolean, boolean) IS
  'Internal: for create_shards(): raises the error that fits its arguments, warns of what is not copied';

CREATE FUNCTION snowflake.create_shard(template regnamespace, shard integer, prefix text DEFAULT 'shard_')
  RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM snowflake.check_template(template, int4range(shard, shard, '[]'), prefix, false, false);
  RETURN snowflake.make_shard(template, shard, prefix);
END
$$;
COMMENT ON FUNCTION snowflake.create_shard(regnamespace, integer, text) IS
  'Makes a shard''s schema as the template is, or adds what it lacks; returns how many tables were made. Fails where create_shards() would';

-- Without a SET clause, with which it could not commit: everything is named with its schema.
CREATE PROCEDURE snowflake.create_shards(template regnamespace, shards int4range, prefix text DEFAULT 'shard_',
                                         partial boolean DEFAULT false, commit_each boolean DEFAULT false)
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM snowflake.check_template(template, shards, prefix, partial, commit_each);
  FOR shard IN pg_catalog.lower(shards) .. pg_catalog.upper(shards) OPERATOR(pg_catalog.-) 1 LOOP
    PERFORM snowflake.make_shard(template, shard, prefix);
    IF commit_each THEN
      COMMIT;
    END IF;
  END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake.create_shards(regnamespace, int4range, text, boolean, boolean) IS
  'Makes a schema for each shard of a range: the tables of the template, with their keys, indexes, triggers, comments and privileges. A default next_id(N) mints for the shard, and its column takes ids of the shard only, by a CHECK. What is there stays. Fails where the template has what it cannot copy, unless partial';

-- DROP EXTENSION ... CASCADE is refused by the library, while it would take tables with it. This refuses
-- it where the library is not loaded, and so not asked. What a command would drop cannot be told before
-- it does, and after it this trigger is gone.
CREATE FUNCTION snowflake.guard_tables() RETURNS event_trigger
  LANGUAGE plpgsql PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  lost text;
BEGIN
  IF EXISTS (SELECT FROM pg_settings WHERE name = 'snowflake.layout') THEN
    RETURN;
  END IF;
  SELECT string_agg(DISTINCT d.objid::regclass::text, ', ') INTO lost
    FROM pg_depend AS m
    JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid
    JOIN pg_class AS c ON c.oid = d.objid
   WHERE m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e'
     AND m.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
     AND d.classid = 'pg_class'::regclass AND d.objsubid = 0 AND d.deptype = 'n' AND relkind IN ('p', 'r')
     AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype = 'e');
  IF lost IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
      MESSAGE = format('%s is refused because tables are partitioned by extension snowflake, whose library is not loaded', tg_tag),
      DETAIL = format('With CASCADE these tables would be dropped with their rows: %s.', lost),
      HINT = 'Add snowflake to "shared_preload_libraries" and restart the server, or drop these tables first.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.guard_tables() IS
  'Internal: event trigger that refuses, where the library is not loaded, commands that can drop the extension while tables are partitioned by it';
CREATE EVENT TRIGGER snowflake_guard_tables ON ddl_command_start
  WHEN TAG IN ('DROP EXTENSION', 'DROP OWNED') EXECUTE FUNCTION snowflake.guard_tables();
ALTER EVENT TRIGGER snowflake_guard_tables ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER snowflake_guard_tables IS
  'Keeps tables that are partitioned by extension snowflake from going with it, where its library is not loaded';

