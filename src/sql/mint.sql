
-- Minting

CREATE FUNCTION snowflake.next_id_support(request internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'snowflake_next_id_support'
  LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.next_id_support(internal) IS
  'Internal: planner support function of next_id(). Replaces next_id() by next_id_for_copy() in column defaults '
  'during COPY';

CREATE FUNCTION snowflake.next_id(shard integer) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id(integer) IS
  'Mints an id for a shard. The id is greater than every earlier id of this shard';

CREATE FUNCTION snowflake.next_id() RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_default'
  LANGUAGE C VOLATILE PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id() IS
  'Mints an id for the shard in the setting snowflake.default_shard';

CREATE FUNCTION snowflake.next_id(shard integer, after bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_after'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id(integer, bigint) IS
  'Mints an id that is greater than the argument "after", an id of this server or of another server. For example, '
  'pass the id of a post to mint a greater id for a reply. If the id "after" is more than snowflake.max_lead ahead '
  'of the clock of this server, the call waits up to snowflake.max_wait, and then fails. The value null for "after" '
  'has no effect';

CREATE FUNCTION snowflake.next_id_near(id bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_near'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_id_near(bigint) IS 'Mints an id in the same shard as the passed id';

-- If next_id_in() were named next_id(), the call next_id('5') would be ambiguous.
CREATE FUNCTION snowflake.next_id_in(shards int4range) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_in'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id_in(int4range) IS
  'Mints an id for a shard of the given range. The server must own the shard. The function prefers the shard for '
  'which this session minted last. If the last id of this shard is ahead of the clock, the function uses another '
  'shard of the range';

-- next_id_support() replaces next_id() and next_id_in() by next_id_for_copy() in the defaults of a COPY. Users cannot
-- call next_id_for_copy(), because SQL cannot pass an argument of type internal.
CREATE FUNCTION snowflake.next_id_for_copy(unused internal) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_default'
  LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id_for_copy(internal) IS
  'Internal: replaces next_id() or next_id_in() in column defaults during COPY';
CREATE FUNCTION snowflake.next_id_for_copy(shard integer, unused internal) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id'
  LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id_for_copy(integer, internal) IS
  'Internal: replaces next_id() or next_id_in() in column defaults during COPY';
CREATE FUNCTION snowflake.next_id_for_copy(shard integer, after bigint, unused internal) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_after'
  LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id_for_copy(integer, bigint, internal) IS
  'Internal: replaces next_id() or next_id_in() in column defaults during COPY';
CREATE FUNCTION snowflake.next_id_for_copy(shards int4range, unused internal) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_next_id_in'
  LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE
  SUPPORT snowflake.next_id_support;
COMMENT ON FUNCTION snowflake.next_id_for_copy(int4range, internal) IS
  'Internal: replaces next_id() or next_id_in() in column defaults during COPY';

CREATE FUNCTION snowflake.next_ids(shard integer, count integer) RETURNS bigint[]
  AS 'MODULE_PATHNAME', 'snowflake_next_ids'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_ids(integer, integer) IS
  'Mints 1 to 1,000,000 ids for a shard, in ascending order. If the shard cannot mint so many ids at once, the call '
  'waits';

CREATE FUNCTION snowflake.next_ids(shard integer, count integer, after bigint) RETURNS bigint[]
  AS 'MODULE_PATHNAME', 'snowflake_next_ids_after'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_ids(integer, integer, bigint) IS
  'Mints 1 to 1,000,000 ids for a shard, in ascending order. The minted ids are greater than the argument "after", '
  'an id that any server may have minted';

-- If next_ids_in() were named next_ids(), the call next_ids('5', 3) would be ambiguous.
CREATE FUNCTION snowflake.next_ids_in(shards int4range, count integer) RETURNS bigint[]
  AS 'MODULE_PATHNAME', 'snowflake_next_ids_in'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.next_ids_in(int4range, integer) IS
  'One call mints 1 to 1,000,000 ids. Each shard of the range that this server owns gets the same number of ids. The '
  'ids of each shard are adjacent and in ascending order';

CREATE FUNCTION snowflake.last_id() RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_last_id'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.last_id() IS
  'Returns the last id that this session minted, even if the transaction of the id was rolled back';
