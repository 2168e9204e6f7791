/* snowflake--1.0.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

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
GRANT USAGE ON SCHEMA snowflake TO PUBLIC;

-- State. Three sequences, because a sequence's value is WAL-logged, replicated, carried by base
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

GRANT SELECT ON SEQUENCE snowflake.high_water, snowflake.seal, snowflake.seal_local TO PUBLIC;

CREATE FUNCTION snowflake.initial_state(OUT seal bigint, OUT high_water bigint)
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
BEGIN
  PERFORM pg_catalog.setval('snowflake.high_water', 20);
  before := snowflake.check_sequence_page('snowflake.high_water', 30);
  SELECT last_value, log_cnt, is_called INTO after FROM snowflake.high_water;
  next := pg_catalog.nextval('snowflake.high_water');
  IF (before, after.last_value, after.log_cnt, after.is_called, next)
       IS DISTINCT FROM (20::pg_catalog.int8, 30::pg_catalog.int8, 0::pg_catalog.int8, true, 31::pg_catalog.int8) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'feature_not_supported',
      MESSAGE = 'this version of PostgreSQL stores sequences in a way that snowflake does not know',
      DETAIL = pg_catalog.format('Stored 20, then 30: read %s, %s, %s, %s, and %s next.',
                                 before, after.last_value, after.log_cnt, after.is_called, next),
      HINT = 'Install a version of snowflake that was tested with this version of PostgreSQL.';
  END IF;
END
$$;

SELECT pg_catalog.setval('snowflake.seal', s.seal),
       pg_catalog.setval('snowflake.seal_local', s.seal),
       pg_catalog.setval('snowflake.high_water', s.high_water)
  FROM snowflake.initial_state() AS s;

DROP FUNCTION snowflake.initial_state();
DROP FUNCTION snowflake.check_sequence_page(regclass, bigint);

-- What a dump carries: the mark as a sequence, the seal as the row of a table, which whoever
-- restores may insert. The row only has to match; one that does not stops the database, for its
-- rows were decoded under another layout. Fires also for replication and for --disable-triggers'
-- lesser form, session_replication_role.
CREATE TABLE snowflake.dumped_seal (seal bigint NOT NULL);
COMMENT ON TABLE snowflake.dumped_seal IS
  'The seal as a dump carries it; a row that is inserted is compared with the seal of this database, and not kept';
INSERT INTO snowflake.dumped_seal SELECT last_value FROM snowflake.seal_local;

CREATE FUNCTION snowflake.present_seal() RETURNS trigger
  AS 'MODULE_PATHNAME', 'snowflake_present_seal'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.present_seal() IS 'Behind the table snowflake.dumped_seal';

CREATE TRIGGER present_seal BEFORE INSERT ON snowflake.dumped_seal
  FOR EACH ROW EXECUTE FUNCTION snowflake.present_seal();
ALTER TABLE snowflake.dumped_seal ENABLE ALWAYS TRIGGER present_seal;
GRANT SELECT, INSERT ON snowflake.dumped_seal TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('snowflake.high_water', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake.dumped_seal', '');

-- Minting

CREATE FUNCTION snowflake.next_id(shard integer) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_id(integer) IS
  'Mints an id for a shard (0 to the layout''s last); greater than every earlier id of that shard';

CREATE FUNCTION snowflake.next_id() RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_default'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_id() IS
  'Mints an id for the shard that snowflake.default_shard names';

CREATE FUNCTION snowflake.next_id(shard integer, after bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_after'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_id(integer, bigint) IS
  'Mints an id greater than another, whoever minted that: a reply sorts after its post on every server; waits, then refuses, where the other is more than max_lead ahead of the clock; null asks for nothing';

CREATE FUNCTION snowflake.next_id_near(id bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_near'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_id_near(bigint) IS
  'Mints an id in the shard of another id';

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

CREATE FUNCTION snowflake.first_id_since(at timestamptz) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_first_id_since'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.first_id_since(timestamptz) IS
  'As min_id(), for any time: 0 before the epoch, the greatest bigint past the layout''s end';

CREATE FUNCTION snowflake.last_id_before(at timestamptz) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_last_id_before'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.last_id_before(timestamptz) IS
  'The greatest id whose time is before this, for any time: -1 before the epoch, the layout''s last id past its end';

-- Not STRICT and without a SET clause, or the planner could not inline it into index conditions;
-- BEGIN ATOMIC binds the operators now, whatever search_path says later.
CREATE FUNCTION snowflake.created_within(id bigint, since timestamptz, until timestamptz)
  RETURNS boolean
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id OPERATOR(pg_catalog.>=) snowflake.first_id_since(since)
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

-- A mark thrown ahead stops minting in the database, an accepted clock concerns the whole server: a
-- decision for their owners.
REVOKE ALL ON FUNCTION snowflake.observe(bigint), snowflake.accept_clock() FROM PUBLIC;

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
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 13;
COMMENT ON FUNCTION snowflake.refusals() IS 'Behind the view snowflake.refusals';

CREATE VIEW snowflake.refusals AS SELECT * FROM snowflake.refusals();
COMMENT ON VIEW snowflake.refusals IS
  'Calls of this database that were refused since stats_since, a row for every cause: how many, when the last was, and since when they have been going on (null where they are over)';

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

CREATE FUNCTION snowflake.health(
    OUT minting boolean, OUT reason text, OUT advice text, OUT clock timestamptz,
    OUT mark timestamptz, OUT covered_until timestamptz, OUT lead_ms double precision,
    OUT drift_ms double precision, OUT synchronized boolean, OUT maximum_error_ms double precision,
    OUT last_refusal timestamptz, OUT last_refusal_cause text, OUT layout_ends_at timestamptz)
  AS 'MODULE_PATHNAME', 'snowflake_health'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.health() IS 'Behind the view snowflake.health';

CREATE VIEW snowflake.health AS SELECT * FROM snowflake.health();
COMMENT ON VIEW snowflake.health IS
  'What a probe should ask: whether this database mints, if not why and what to do, and the numbers behind it. Always one row, also where every other function is refused';

GRANT SELECT ON snowflake.layout, snowflake.shard_stats, snowflake.database_stats, snowflake.refusals,
  snowflake.clock_status, snowflake.health TO PUBLIC, pg_monitor;

CREATE FUNCTION snowflake.explain_id(
    INOUT id bigint, OUT created_at timestamptz, OUT age interval, OUT region integer,
    OUT shard integer, OUT sequence integer, OUT minted_by text, OUT possible boolean,
    OUT contradiction text)
  AS 'MODULE_PATHNAME', 'snowflake_explain_id'
  LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.explain_id(bigint) IS
  'What is to be known of any number as an id: its fields, its age, who mints such ids, whether this database can have minted it, and what contradicts that';

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
  'An id in 13 characters of Crockford''s base32, sorting as ids do; with a check symbol 14; refuses negative numbers';

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
