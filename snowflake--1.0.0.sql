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
  'Layout, tick and epoch of the ids in this database, packed; a dump carries it';

CREATE SEQUENCE snowflake.seal_here AS bigint MINVALUE -9223372036854775808 START 0;
COMMENT ON SEQUENCE snowflake.seal_here IS
  'Layout, tick and epoch that CREATE EXTENSION sealed, packed; a dump does not carry it';

GRANT SELECT ON SEQUENCE snowflake.high_water, snowflake.seal, snowflake.seal_here TO PUBLIC;

-- seal_here stays out: what a dump says of another server must not replace what was sealed here.
SELECT pg_catalog.pg_extension_config_dump('snowflake.high_water', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake.seal', '');

CREATE FUNCTION snowflake.initial_state(OUT seal bigint, OUT high_water bigint)
  AS 'MODULE_PATHNAME', 'snowflake_initial_state'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;

SELECT pg_catalog.setval('snowflake.seal', s.seal),
       pg_catalog.setval('snowflake.seal_here', s.seal),
       pg_catalog.setval('snowflake.high_water', s.high_water)
  FROM snowflake.initial_state() AS s;

DROP FUNCTION snowflake.initial_state();

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

CREATE FUNCTION snowflake.next_ids(shard integer, count integer) RETURNS bigint[]
  AS 'MODULE_PATHNAME', 'snowflake_next_ids'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_ids(integer, integer) IS
  'Mints 1 to 1,000,000 ids for a shard, ascending; pauses where the shard''s capacity asks for it';

CREATE FUNCTION snowflake.last_id() RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_last_id'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.last_id() IS
  'The id that this session minted last, whatever became of the transaction';

-- Decoding. IMMUTABLE is honest: every function refuses settings that contradict the seal.

CREATE FUNCTION snowflake.decode(id bigint, OUT created_at timestamptz, OUT shard integer,
                                 OUT sequence integer)
  AS 'MODULE_PATHNAME', 'snowflake_decode'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.decode(bigint) IS
  'When an id was made (start of its tick), for which shard, and its sequence number in the tick';

CREATE FUNCTION snowflake.time_of(id bigint) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'snowflake_time_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.time_of(bigint) IS
  'When an id was made: the start of its tick';

CREATE FUNCTION snowflake.shard_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_of(bigint) IS
  'The shard that an id was made for, region bits included';

CREATE FUNCTION snowflake.region_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_region_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.region_of(bigint) IS
  'The region bits of an id''s shard; 0 where the layout has none';

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

-- Not STRICT and without a SET clause, or the planner could not inline it into index conditions;
-- BEGIN ATOMIC binds the operators now, whatever search_path says later.
CREATE FUNCTION snowflake.created_within(id bigint, since timestamptz, until timestamptz)
  RETURNS boolean
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT id OPERATOR(pg_catalog.>=) snowflake.min_id(since)
       AND id OPERATOR(pg_catalog.<) snowflake.min_id(until);
  END;
COMMENT ON FUNCTION snowflake.created_within(bigint, timestamptz, timestamptz) IS
  'Whether an id''s time is at or after since and before until; uses an index on the id';

CREATE FUNCTION snowflake.make_id(at timestamptz, shard integer, sequence integer) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_make_id'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.make_id(timestamptz, integer, integer) IS
  'Puts an id together from its fields, for backfill and tests; next_id() knows nothing of it';

-- Administration

CREATE FUNCTION snowflake.observe(id bigint) RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_observe'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.observe(bigint) IS
  'Makes every later id of this server greater than an id that was minted elsewhere';

CREATE FUNCTION snowflake.accept_clock() RETURNS interval
  AS 'MODULE_PATHNAME', 'snowflake_accept_clock'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.accept_clock() IS
  'Confirms that the clock is right after it was stepped; returns how far it had moved';

-- A mark thrown ahead stops minting on the whole server: a decision for its owner.
REVOKE ALL ON FUNCTION snowflake.observe(bigint), snowflake.accept_clock() FROM PUBLIC;

-- Views

CREATE FUNCTION snowflake.layout(
    OUT layout text, OUT time_bits integer, OUT region_bits integer, OUT local_bits integer,
    OUT sequence_bits integer, OUT tick interval, OUT epoch timestamptz, OUT shards integer,
    OUT ids_per_tick integer, OUT ids_per_second bigint, OUT ends_at timestamptz,
    OUT used_percent double precision)
  AS 'MODULE_PATHNAME', 'snowflake_layout'
  LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.layout() IS 'Behind the view snowflake.layout';

CREATE VIEW snowflake.layout AS SELECT * FROM snowflake.layout();
COMMENT ON VIEW snowflake.layout IS
  'What the ids of this database look like: bits, tick, epoch, capacity of a shard, and when they run out';

CREATE FUNCTION snowflake.shard_stats(
    OUT shard integer, OUT last_id bigint, OUT last_time timestamptz, OUT ids bigint,
    OUT batches bigint, OUT borrowed_ticks bigint, OUT waits bigint, OUT wait_time interval,
    OUT refusals bigint)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_shard_stats'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION snowflake.shard_stats() IS 'Behind the view snowflake.shard_stats';

CREATE VIEW snowflake.shard_stats AS SELECT * FROM snowflake.shard_stats();
COMMENT ON VIEW snowflake.shard_stats IS
  'Per shard that minted since the server started, over all databases: last id, ids, batches, ticks borrowed ahead of the clock, waits, refusals';

CREATE FUNCTION snowflake.clock_status(
    OUT clock timestamptz, OUT floor timestamptz, OUT "limit" timestamptz, OUT lead interval,
    OUT drift interval, OUT backward_steps bigint, OUT largest_backward_step interval)
  AS 'MODULE_PATHNAME', 'snowflake_clock_status'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.clock_status() IS 'Behind the view snowflake.clock_status';

CREATE VIEW snowflake.clock_status AS SELECT * FROM snowflake.clock_status();
COMMENT ON VIEW snowflake.clock_status IS
  'Health of the clock: now, the floor and the limit of this database, how far ids are ahead, and the steps seen since the server started';

GRANT SELECT ON snowflake.layout, snowflake.shard_stats, snowflake.clock_status TO PUBLIC;

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
  'Behind the operator class snowflake.by_shard: hash partitions of modulus m have shard s in remainder s % m';
COMMENT ON FUNCTION snowflake.hash_by_shard(integer, bigint) IS
  'Behind the operator class snowflake.by_shard, for integer constants';
COMMENT ON FUNCTION snowflake.hash_by_shard(smallint, bigint) IS
  'Behind the operator class snowflake.by_shard, for smallint constants';

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
  PERFORM FROM (SELECT epoch, 1 << local_bits AS shards FROM snowflake.layout) AS l,
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
  'Trigger before INSERT: set_id(''user_id'') gives a row without an id one of the shard that user_id has; a second argument names the id''s column';

CREATE FUNCTION snowflake.schema_of(id bigint, prefix text DEFAULT 'shard_') RETURNS text
  LANGUAGE SQL IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
  BEGIN ATOMIC
    SELECT prefix OPERATOR(pg_catalog.||) snowflake.shard_of(id)::text;
  END;
COMMENT ON FUNCTION snowflake.schema_of(bigint, text) IS
  'The schema that holds the rows of an id''s shard, where each shard has a schema of its own';
