
-- Defines the operator class snowflake.by_shard, for hash partitions of a table by the shard of the id.

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
  'Internal: hash function of the operator class snowflake.by_shard. With modulus m, shard s is in the partition '
  'with remainder s % m';
COMMENT ON FUNCTION snowflake.hash_by_shard(integer, bigint) IS
  'Internal: hash function of the operator class snowflake.by_shard for integer constants';
COMMENT ON FUNCTION snowflake.hash_by_shard(smallint, bigint) IS
  'Internal: hash function of the operator class snowflake.by_shard for smallint constants';

-- Hash joins may use support function 1 of an operator class, so support function 1 is PostgreSQL's hash of a bigint.
-- Only hash partitions use support function 2 of an operator class. The operator family also contains the smaller
-- integer types, like PostgreSQL's family, so that WHERE id = 5 prunes partitions.
CREATE OPERATOR FAMILY snowflake.by_shard USING hash;
COMMENT ON OPERATOR FAMILY snowflake.by_shard USING hash IS
  'Hashes the shard of an id to find the hash partition of a row. Hash joins use PostgreSQL''s own hash of the whole '
  'id';
CREATE OPERATOR CLASS snowflake.by_shard FOR TYPE bigint USING hash FAMILY snowflake.by_shard AS
  OPERATOR 1 pg_catalog.=,
  FUNCTION 1 pg_catalog.hashint8(bigint),
  FUNCTION 2 snowflake.hash_by_shard(bigint, bigint);
COMMENT ON OPERATOR CLASS snowflake.by_shard USING hash IS
  'With PARTITION BY HASH (id snowflake.by_shard), a row of shard s is in the partition with remainder s % modulus';
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

-- Raises an error if this version of PostgreSQL combines the hashes of a partition key's columns in another way.
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
      MESSAGE = 'this version of PostgreSQL computes hash partitions in an unsupported way',
      DETAIL =
        'In tables that are partitioned by snowflake.by_shard, rows would not be in the partition of their shard.',
      HINT = 'Use a version of snowflake that supports this version of PostgreSQL.';
  END IF;
  DROP TABLE snowflake.probe;
END
$$;

-- The DO block above calls make_id() and hash_by_shard(), which mark the layout of ids as used. No ids of the layout
-- exist yet, so the call of setval() marks the layout as unused: is_called of the sequence snowflake.seal_local becomes
-- false.
SELECT pg_catalog.setval('snowflake.seal_local', last_value, false) FROM snowflake.seal_local;
