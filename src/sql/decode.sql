
-- The decoding functions are IMMUTABLE, because a result depends only on the argument and on the layout, which never
-- changes. A number that is not an id of the database's layout, such as a negative number, is an error.

CREATE FUNCTION snowflake.decode(id bigint, OUT created_at timestamptz, OUT region integer,
                                 OUT shard integer, OUT sequence integer)
  AS 'MODULE_PATHNAME', 'snowflake_decode'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.decode(bigint) IS
  'Returns the fields of an id: the time (start of its tick), the region, the shard, and the sequence number within '
  'the tick';

CREATE FUNCTION snowflake.time_of(id bigint) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'snowflake_time_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.time_of(bigint) IS
  'Returns the time of an id, which is the start of its time unit (tick)';

CREATE FUNCTION snowflake.shard_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_of(bigint) IS 'Returns the shard that an id belongs to';

CREATE FUNCTION snowflake.region_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_region_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.region_of(bigint) IS
  'Returns the region of the server that minted an id, or 0 if the layout has no regions';

CREATE FUNCTION snowflake.sequence_of(id bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_sequence_of'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.sequence_of(bigint) IS
  'Returns the sequence number of an id within its time unit (tick) and shard';

-- shard_for() returns a shard for a key that is not an id. The shard of a key never changes, because the layout of a
-- database never changes.

CREATE FUNCTION snowflake.shard_for(key bigint) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_number'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(bigint) IS
  'Computes the shard of a number that is not an id, always the same for the same number. The result equals '
  'shard_for(key::text)';

CREATE FUNCTION snowflake.shard_for(key uuid) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(uuid) IS
  'Computes the shard of a UUID, always the same for the same UUID. The result equals shard_for(key::text)';

CREATE FUNCTION snowflake.shard_for(key text) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_text'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(text) IS
  'Computes the shard of a text, always the same for the same text. The shards are evenly distributed: the shard is '
  'the first 32 bits of the SHA-256 of the text in UTF-8, times the number of shards, divided by 2^32. A text with a '
  'nondeterministic collation is an error';

-- shard_for(key, shards) returns a shard from 0 to shards - 1.
CREATE FUNCTION snowflake.shard_for(key bigint, shards integer) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_number'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(bigint, integer) IS
  'Computes the shard of a number that is not an id, always the same for the same number. The result is less than the '
  'argument "shards"';

CREATE FUNCTION snowflake.shard_for(key uuid, shards integer) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(uuid, integer) IS
  'Computes the shard of a UUID, always the same for the same UUID. The result is less than the argument "shards"';

CREATE FUNCTION snowflake.shard_for(key text, shards integer) RETURNS integer
  AS 'MODULE_PATHNAME', 'snowflake_shard_for_text'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.shard_for(text, integer) IS
  'Computes the shard of a text, always the same for the same text. The result is less than the argument "shards"';
