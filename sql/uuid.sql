-- Compares ids as UUIDs of version 7 with fields that are computed by RFC 9562 in numeric.
CREATE SCHEMA uuids;
SET search_path = uuids;
SET timezone = 'UTC';

SELECT id, snowflake.to_uuid(id)
  FROM unnest(ARRAY[0, 1, 1024, 8388607, 8388608, 123456789012345678, 499712025023222784, 9223372036854775807]) AS id;

-- Reads a value of 16 bytes as a number, and extracts some bits of the number
CREATE FUNCTION number_of(uuid) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
  SELECT sum(get_byte(uuid_send($1), 15 - i) * trunc(256::numeric ^ i)) FROM generate_series(0, 15) i
$$;
CREATE FUNCTION bits(number numeric, low integer, count integer) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
  SELECT div(number, trunc(2::numeric ^ low)) % trunc(2::numeric ^ count)
$$;
CREATE TABLE tried AS
  SELECT DISTINCT id FROM (
    SELECT (trunc(2::numeric ^ e) + d)::bigint FROM generate_series(0, 62) e, generate_series(-1, 1) d
    UNION ALL SELECT 9223372036854775807
    UNION ALL SELECT trunc(random()::numeric * 9223372036854775808)::bigint FROM generate_series(1, 1000)
    UNION ALL SELECT snowflake.min_id(at) + d
                FROM generate_series(timestamptz '2025-01-02', '2055-01-01', '111 days 01:23:45.678') at, generate_series(-2, 2) d
    UNION ALL SELECT snowflake.next_id(6) FROM generate_series(1, 100)) t (id);
CREATE TABLE made AS SELECT id, snowflake.to_uuid(id) AS uuid FROM tried;
SELECT count(*) > 1500 AS many,
       bool_and(bits(n, 80, 48) = extract(epoch FROM snowflake.time_of(id)) * 1000) AS time,
       bool_and(bits(n, 76, 4) = 7) AS version,
       bool_and(bits(n, 62, 2) = 2) AS variant,
       bool_and(bits(n, 64, 12) * 4294967296 + bits(n, 30, 32) = id % per_tick) AS rest,
       bool_and(bits(n, 0, 30) = bits(id * 11400714819323198485, 34, 30)) AS check_bits
  FROM made, number_of(uuid) n,
       (SELECT trunc(2::numeric ^ (region_bits + shard_bits + sequence_bits)) AS per_tick FROM snowflake.layout) l;
-- Every id is read back from its UUID, no two ids have the same UUID, and the order is the same
SELECT bool_and(snowflake.from_uuid(uuid) = id) AS uuid_back, count(DISTINCT uuid) = count(*) AS own,
       array_agg(id ORDER BY uuid) = array_agg(id ORDER BY id) AS uuid_sorts
  FROM made;

SELECT snowflake.to_uuid(NULL) IS NULL AND snowflake.from_uuid(NULL) IS NULL AS nulls;

-- What is refused
\set VERBOSITY sqlstate
SELECT snowflake.to_uuid(-1);
SELECT snowflake.to_uuid(-9223372036854775808);
\set VERBOSITY default
SELECT snowflake.to_uuid(499712025023222784) AS uuid \gset
SELECT snowflake.from_uuid('e5f1d4e6-0f0b-4c3e-9d2c-0a8b7a1f4c11');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_uuid('00000000-0000-0000-0000-000000000000');
SELECT snowflake.from_uuid('ffffffff-ffff-ffff-ffff-ffffffffffff');
SELECT snowflake.from_uuid('0194185f-abff-7000-8000-000000000000');
SELECT snowflake.from_uuid('ffffffff-ffff-7000-8000-000000000000');
SELECT snowflake.from_uuid('01967c3a-1b2c-7abc-8def-0123456789ab');
SELECT snowflake.from_uuid(overlay(:'uuid' PLACING '0' FROM 36)::uuid);
-- other programs use the smallest UUID of a millisecond for bounds
SELECT snowflake.from_uuid('01967c3a-1b2c-7000-8000-000000000000');

-- A version 7 UUID of another program is never an id, even if its time is in the layout. Every changed bit is detected.
CREATE FUNCTION outcome_of(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  id bigint;
  state text;
BEGIN
  EXECUTE call INTO id;
  RETURN 'an id';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE;
  RETURN state;
END $$;
SELECT outcome_of(format('SELECT snowflake.from_uuid(%L)', uuid)) AS outcome, count(*)
  FROM (SELECT overlay(overlay(gen_random_uuid()::text PLACING left(snowflake.to_uuid(id)::text, 13) FROM 1) PLACING '7' FROM 15) AS uuid
          FROM tried, generate_series(1, 3) LIMIT 3000) t
 GROUP BY 1;
SELECT outcome_of(format('SELECT snowflake.from_uuid(%L)', encode(set_bit(uuid_send(uuid), bit, 1 - get_bit(uuid_send(uuid), bit)), 'hex'))) AS outcome,
       count(*)
  FROM (SELECT uuid FROM made ORDER BY id LIMIT 20 OFFSET 500) m, generate_series(0, 127) bit
 GROUP BY 1;

-- A search by the UUID uses the index of the primary key. A table that had UUIDs before can have a generated column
-- with the UUIDs of its ids, and an index on this column.
CREATE TABLE posts (id bigint PRIMARY KEY, uuid uuid GENERATED ALWAYS AS (snowflake.to_uuid(id)) STORED UNIQUE, title text);
INSERT INTO posts (id, title) SELECT snowflake.min_id(timestamptz '2025-03-01' + n * interval '1 minute'), 'post ' || n FROM generate_series(1, 5000) n;
VACUUM ANALYZE posts;
PREPARE by_uuid(uuid) AS SELECT title FROM posts WHERE id = snowflake.from_uuid($1);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_uuid(:'uuid');
SELECT uuid FROM posts WHERE title = 'post 77' \gset
EXECUTE by_uuid(:'uuid');
RESET plan_cache_mode;
EXPLAIN (COSTS OFF) SELECT title FROM posts WHERE uuid = '01954f47-2ee0-7000-8000-000033453a85';
SELECT array_agg(title ORDER BY uuid) = array_agg(title ORDER BY id) AS same_order FROM posts;
