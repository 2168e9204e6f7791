-- From ids to their fields and back, in the default layout: 41 bits of time in milliseconds since
-- 2025-01-01, 13 bits of shard, 10 bits of sequence.
SET timezone = 'UTC';
SET datestyle = ISO;

-- Each field by itself, all of them, and ids that no server minted: the bits count as unsigned
CREATE TABLE corner (id bigint);
INSERT INTO corner VALUES (0), (1), (1023), (1024), (8388607), (8388608), (123456789012345678),
  (9223372036854775807), (-9223372036854775808), (-1);
SELECT id, d.* FROM corner, LATERAL snowflake.decode(id) d;
SELECT count(*) AS ids,
       bool_and(snowflake.decode(id) = ROW (snowflake.time_of(id), snowflake.shard_of(id),
                                            snowflake.sequence_of(id))) AS decode_agrees,
       bool_and(snowflake.region_of(id) = 0) AS no_region
  FROM corner;

-- make_id() against the layout, written out with shifts
SELECT count(*) AS ids,
       bool_and(id = ((ms << 23) | (shard::bigint << 10) | sequence)) AS put_together,
       bool_and(snowflake.time_of(id) = at) AS time_back,
       bool_and(snowflake.shard_of(id) = shard) AS shard_back,
       bool_and(snowflake.sequence_of(id) = sequence) AS sequence_back
  FROM unnest(ARRAY[0, 1, 999, 1000, 86400000, 58000000000, 1099511627775]::bigint[]) AS ms,
       unnest(ARRAY[0, 1, 4095, 4096, 8191]) AS shard,
       unnest(ARRAY[0, 1, 511, 1023]) AS sequence,
       LATERAL (SELECT timestamptz '2025-01-01 00:00:00+00' + ms * interval '1 ms') t (at),
       LATERAL (SELECT snowflake.make_id(at, shard, sequence)) m (id);

-- make_id() takes the tick that the time falls into
SELECT d.* FROM unnest(ARRAY['2026-03-01 12:00:00.1239', '2026-03-01 12:00:00.123', '2026-03-01 14:00:00.123+02',
  '2025-01-01 00:00:00.0009']::timestamptz[]) AS at, LATERAL snowflake.decode(snowflake.make_id(at, 7, 42)) d;

-- What was minted decodes to when and where that was
SELECT clock_timestamp() AS before \gset
SELECT snowflake.next_id(8191) AS id \gset
SELECT shard, created_at >= date_trunc('milliseconds', timestamptz :'before') AS not_before,
       created_at <= clock_timestamp() + interval '100 ms' AS not_after, sequence BETWEEN 0 AND 1023 AS sequence
  FROM snowflake.decode(:id);
SELECT snowflake.make_id(created_at, shard, sequence) = :id AS put_together
  FROM snowflake.decode(:id);

-- NULL in, NULL out
SELECT snowflake.time_of(NULL) IS NULL AND snowflake.shard_of(NULL) IS NULL AND snowflake.region_of(NULL) IS NULL
   AND snowflake.sequence_of(NULL) IS NULL AND snowflake.make_id(NULL, 1, 1) IS NULL
   AND snowflake.make_id(now(), NULL, 1) IS NULL AND snowflake.make_id(now(), 1, NULL) IS NULL AS nulls;
SELECT * FROM snowflake.decode(NULL);

-- The time zone changes what is shown, not what is meant
SET timezone = 'Asia/Kolkata';
SELECT snowflake.time_of(123456789012345678), snowflake.make_id('2026-03-01 12:00:00+00', 7, 42);
SET timezone = 'UTC';

-- The order of ids is the order of (time, shard, sequence)
SELECT bool_and(id > previous) AS ordered
  FROM (SELECT id, lag(id) OVER (ORDER BY created_at, shard, sequence) AS previous
          FROM generate_series(0, 3) ms, generate_series(0, 8191, 1000) s, generate_series(0, 1023, 100) q,
               LATERAL (SELECT snowflake.make_id(timestamptz '2030-01-01+00' + ms * interval '1 ms', s, q)) m (id),
               LATERAL snowflake.decode(id)) o;

-- Fields out of range
SELECT snowflake.make_id('2026-01-01', -1, 0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2026-01-01', 8192, 0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2026-01-01', 0, -1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2026-01-01', 0, 1024);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2024-12-31 23:59:59.999999+00', 0, 0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.make_id('2059-11-04 19:53:47.775999+00', 8191, 1023) AS the_last;
SELECT snowflake.make_id('2059-11-04 19:53:47.776+00', 0, 0);
\echo SQLSTATE :SQLSTATE
