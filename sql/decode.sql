-- Tests ids and their fields in the default layout: 41 bits of time in milliseconds since
-- 2025-01-01, 5 bits of region, 8 bits of shard, 10 bits of sequence. The server that runs the test has region 3.
SET timezone = 'UTC';
SET datestyle = ISO;

-- Tests the fields of an id one by one, and all fields together
CREATE TABLE corner (id bigint);
INSERT INTO corner VALUES (0), (1), (1023), (1024), (8388607), (8388608), (123456789012345678),
  (262143), (262144), (9223372036854775807);
SELECT id, d.* FROM corner, LATERAL snowflake.decode(id) d;
SELECT count(*) AS ids,
       bool_and(snowflake.decode(id) = ROW (snowflake.time_of(id), snowflake.region_of(id),
                                            snowflake.shard_of(id), snowflake.sequence_of(id))) AS decode_agrees
  FROM corner;

-- Numbers that no server of this layout can mint are refused by all functions that accept ids
\set VERBOSITY sqlstate
SELECT snowflake.decode(-1);
SELECT snowflake.time_of(-9223372036854775808);
SELECT snowflake.region_of(-1);
SELECT snowflake.shard_of(-1);
SELECT snowflake.sequence_of(-1);
SELECT snowflake.next_id(1, -1);
SELECT snowflake.next_ids(1, 1, -1);
SELECT snowflake.next_id_near(-1);
SELECT snowflake.observe(-1);
\set VERBOSITY default
SELECT snowflake.shard_of(-1);

-- make_id() returns the same numbers as a computation with bit shifts
SELECT count(*) AS ids,
       bool_and(id = ((ms << 23) | (region::bigint << 18) | (shard::bigint << 10) | sequence)) AS put_together,
       bool_and(snowflake.time_of(id) = at) AS time_back,
       bool_and(snowflake.region_of(id) = region) AS region_back,
       bool_and(snowflake.shard_of(id) = shard) AS shard_back,
       bool_and(snowflake.sequence_of(id) = sequence) AS sequence_back
  FROM unnest(ARRAY[0, 1, 999, 1000, 86400000, 58000000000, 1099511627775]::bigint[]) AS ms,
       unnest(ARRAY[0, 1, 15, 16, 31]) AS region,
       unnest(ARRAY[0, 1, 127, 128, 255]) AS shard,
       unnest(ARRAY[0, 1, 511, 1023]) AS sequence,
       LATERAL (SELECT timestamptz '2025-01-01 00:00:00+00' + ms * interval '1 ms') t (at),
       LATERAL (SELECT snowflake.make_id(at, shard, sequence, region)) m (id);
-- If no region is given, make_id() uses region 0, even on a server with another region
SELECT snowflake.region_of(snowflake.make_id('2026-01-01', 7, 42)) AS region,
       snowflake.make_id('2026-01-01', 7, 42) = snowflake.make_id('2026-01-01', 7, 42, 0) AS the_same;

-- make_id() uses the time unit (tick) that contains the given time
SELECT d.* FROM unnest(ARRAY['2026-03-01 12:00:00.1239', '2026-03-01 12:00:00.123', '2026-03-01 14:00:00.123+02',
  '2025-01-01 00:00:00.0009']::timestamptz[]) AS at, LATERAL snowflake.decode(snowflake.make_id(at, 7, 42)) d;

-- Decoding a minted id returns the time, region and shard of its minting
SELECT clock_timestamp() AS before \gset
SELECT snowflake.next_id(255) AS id \gset
SELECT region, shard, created_at >= date_trunc('milliseconds', timestamptz :'before') AS not_before,
       created_at <= clock_timestamp() + interval '100 ms' AS not_after, sequence BETWEEN 0 AND 1023 AS sequence
  FROM snowflake.decode(:id);
SELECT snowflake.make_id(created_at, shard, sequence, region) = :id AS put_together
  FROM snowflake.decode(:id);

-- NULL in, NULL out
SELECT snowflake.time_of(NULL) IS NULL AND snowflake.shard_of(NULL) IS NULL AND snowflake.region_of(NULL) IS NULL
   AND snowflake.sequence_of(NULL) IS NULL AND snowflake.make_id(NULL, 1, 1) IS NULL
   AND snowflake.make_id(now(), NULL, 1) IS NULL AND snowflake.make_id(now(), 1, NULL) IS NULL
   AND snowflake.make_id(now(), 1, 1, NULL) IS NULL AS nulls;
SELECT * FROM snowflake.decode(NULL);

-- The time zone changes how times are shown, but not which time an id has
SET timezone = 'Asia/Kolkata';
SELECT snowflake.time_of(123456789012345678), snowflake.make_id('2026-03-01 12:00:00+00', 7, 42);
SET timezone = 'UTC';

-- The order of ids is the order of (time, region, shard, sequence)
SELECT bool_and(id > previous) AS ordered
  FROM (SELECT id, lag(id) OVER (ORDER BY created_at, region, shard, sequence) AS previous
          FROM generate_series(0, 3) ms, generate_series(0, 31, 5) r, generate_series(0, 255, 17) s, generate_series(0, 1023, 100) q,
               LATERAL (SELECT snowflake.make_id(timestamptz '2030-01-01+00' + ms * interval '1 ms', s, q, r)) m (id),
               LATERAL snowflake.decode(id)) o;

-- Fields out of range
SELECT snowflake.make_id('2026-01-01', -1, 0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2026-01-01', 256, 0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2026-01-01', 0, -1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2026-01-01', 0, 1024);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2024-12-31 23:59:59.999999+00', 0, 0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2059-11-04 19:53:47.775999+00', 255, 1023, 31) AS the_last;
SELECT snowflake.make_id('2026-01-01', 1, 0, 32);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2026-01-01', 1, 0, -1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2059-11-04 19:53:47.776+00', 0, 0);
\echo SQLSTATE :SQLSTATE

-- Shows the day on which ids get a 19th digit, which doc/clients.md mentions
SELECT snowflake.time_of(1000000000000000000) AT TIME ZONE 'UTC' AS "19 digits from", length(snowflake.max_id(snowflake.time_of(1000000000000000000) - interval '1 ms')::text) AS before,
       length(snowflake.min_id(snowflake.time_of(1000000000000000000) + interval '1 ms')::text) AS after;
