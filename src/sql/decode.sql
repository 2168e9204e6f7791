
-- The decoding functions are IMMUTABLE, because a result depends only on the argument and on the layout, which never
-- changes. A number that is not an id of the database's layout, such as a negative number, is an error.

CREATE FUNCTION snowflake.decode(id bigint, OUT created_at timestamptz, OUT region integer,
                                 OUT shard integer, OUT sequence integer)
  AS 'MODULE_PATHNAME', 'snowflake_decode'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.decode(bigint) IS
  'The fields of an id: its time (the start of its tick), region, shard, and sequence number in the tick';

CREATE FUNCTION snowflake.time_of(id bigint) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'snowflake_time_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.time_of(bigint) IS 'The time of an id: the start of its tick';

CREATE FUNCTION snowflake.shard_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_of(bigint) IS
  'The shard that an id belongs to';

CREATE FUNCTION snowflake.region_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_region_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.region_of(bigint) IS
  'The region that minted an id; 0 if the layout has no regions';

CREATE FUNCTION snowflake.sequence_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_sequence_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.sequence_of(bigint) IS
  'The sequence number of an id within its tick and shard';

-- shard_for() returns a shard for a key that is not an id. The shard of a key never changes, because the layout of a
-- database never changes.

CREATE FUNCTION snowflake.shard_for(key bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_number'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(bigint) IS
  'A permanent shard for a number that is not an id: the shard of its decimal digits as text';

CREATE FUNCTION snowflake.shard_for(key uuid) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(uuid) IS
  'A permanent shard for a UUID: the shard of its 36 characters in lower case as text';

CREATE FUNCTION snowflake.shard_for(key text) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_text'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(text) IS
  'A permanent, evenly distributed shard for a text: the first 32 bits of the SHA-256 of its UTF-8 form, times the '
  'number of shards, divided by 2^32. Refuses nondeterministic collations';

-- shard_for(key, shards) returns a shard from 0 to shards - 1.
CREATE FUNCTION snowflake.shard_for(key bigint, shards integer) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_number'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(bigint, integer) IS
  'A permanent shard, less than "shards", for a number that is not an id';

CREATE FUNCTION snowflake.shard_for(key uuid, shards integer) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(uuid, integer) IS
  'A permanent shard, less than "shards", for a UUID';

CREATE FUNCTION snowflake.shard_for(key text, shards integer) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_text'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(text, integer) IS
  'A permanent shard, less than "shards", for a text';
