-- Tests the views layout, shard_stats, health and clock_history.
SET timezone = 'UTC';
SET datestyle = ISO;

-- layout: the columns
SELECT bits, time_bits, region_bits, shard_bits, sequence_bits FROM snowflake.layout;
SELECT tick_ms, epoch, regions, shards, ids_per_second, ends_at FROM snowflake.layout;
SELECT abs(used_percent - 100 * extract(epoch FROM now() - epoch) / extract(epoch FROM ends_at - epoch)) < 0.02 AS used
  FROM snowflake.layout;
-- The view layout shows the same layout as the functions that decode ids
SELECT snowflake.time_of(0) = epoch AS epoch,
       snowflake.make_id(ends_at - tick_ms * interval '1 ms', shards - 1, ids_per_second::int * tick_ms / 1000 - 1, regions - 1) = 9223372036854775807 AS last_id,
       shards = 2 ^ shard_bits AND regions = 2 ^ region_bits AND ids_per_second = 2 ^ sequence_bits * 1000 / tick_ms AS powers
  FROM snowflake.layout;

-- shard_stats has no row for a shard that has not minted
SELECT count(*) FROM snowflake.shard_stats WHERE shard BETWEEN 180 AND 189;

-- Every id is counted, even if its transaction was rolled back. In shard_stats, a batch counts as one call.
SELECT snowflake.next_id(180) AS a, snowflake.next_id(180) AS b \gset
SELECT count(snowflake.next_id(180)) FROM generate_series(1, 1000);
SELECT cardinality(snowflake.next_ids(180, 10)), cardinality(snowflake.next_ids(180, 5000));
BEGIN;
SELECT count(snowflake.next_id(180)) FROM generate_series(1, 100);
SELECT ids, batches FROM snowflake.shard_stats WHERE shard = 180;
ROLLBACK;
SELECT snowflake.next_id(181) > 0 AS a, snowflake.next_id(180) > 0 AS b, snowflake.next_id(181) > 0 AS c;
SELECT shard, ids, batches, refusals FROM snowflake.shard_stats WHERE shard BETWEEN 180 AND 189 ORDER BY shard;
SELECT s.last_id = snowflake.last_id() AS last_id, s.last_time = snowflake.time_of(s.last_id) AS last_time
  FROM snowflake.shard_stats s WHERE shard = 181;

-- All sessions of a database share the counters of shard_stats
\c -
SET timezone = 'UTC';
SELECT shard, ids, batches FROM snowflake.shard_stats WHERE shard BETWEEN 180 AND 189 ORDER BY shard;
SELECT snowflake.next_id(180) > 0 AS minted;
SELECT ids FROM snowflake.shard_stats WHERE shard = 180;

-- A call with wrong arguments is not counted for the shard
SELECT snowflake.next_ids(180, 0);
BEGIN READ ONLY;
SELECT snowflake.next_id(180);
ROLLBACK;
SELECT ids, refusals FROM snowflake.shard_stats WHERE shard = 180;

-- A burst of 20,000 ids needs 20 time units (ticks), so it runs ahead of the clock
SELECT cardinality(snowflake.next_ids(182, 20000));
SELECT ids, batches, borrowed_ticks BETWEEN 1 AND 20 AS borrowed FROM snowflake.shard_stats WHERE shard = 182;
-- Not only batches, but also single ids run ahead of the clock
SELECT count(snowflake.next_id(183)) FROM generate_series(1, 50000);
SELECT ids, borrowed_ticks BETWEEN 0 AND 49 AS borrowed FROM snowflake.shard_stats WHERE shard = 183;

-- A call for 600,000 ids waits, because max_lead allows only a sixth of them ahead of the clock
SELECT cardinality(snowflake.next_ids(184, 600000));
SELECT ids, batches, borrowed_ticks > 0 AS borrowed, waits > 0 AS waited, wait_time > 0 AS wait_time, refusals
  FROM snowflake.shard_stats WHERE shard = 184;
-- A call that would have to wait longer than max_wait is refused
SET snowflake.max_wait = 0;
\set VERBOSITY terse
SELECT cardinality(snowflake.next_ids(185, 1000000));
\set VERBOSITY default
RESET snowflake.max_wait;
SELECT ids < 1000000 AS some, waits, wait_time, refusals FROM snowflake.shard_stats WHERE shard = 185;
SELECT snowflake.next_id(185) > last_id AS minting_goes_on FROM snowflake.shard_stats WHERE shard = 185;

-- health and clock_history show the clock, the limit, and how far ids are ahead
SELECT snowflake.next_id(186) AS id \gset
SELECT clock BETWEEN now() - interval '1 s' AND clock_timestamp() AS clock,
       minting, reason, covered_until > snowflake.time_of(:id) AS covered,
       covered_until < clock + interval '2 s' AS covered_until_is_near,
       lead_ms BETWEEN 0 AND 100 AS lead, abs(drift_ms) < 3600000 AS drift, backward_steps >= 0 AS steps,
       largest_backward_step_ms >= 0 AS largest
  FROM snowflake.health, snowflake.clock_history;
SELECT to_timestamp(last_value / 1000.0) >= covered_until AS stored_is_not_below_it
  FROM snowflake.high_water, snowflake.health;
-- After a burst, health shows how far ids are ahead of the clock. The test repeats the burst, because on a slow machine
-- the clock may catch up before health is read.
DO $$
BEGIN
  FOR i IN 1..100 LOOP
    PERFORM snowflake.next_ids(186, 40000);
    IF (SELECT lead_ms > 0 FROM snowflake.health) THEN RETURN; END IF;
  END LOOP;
  RAISE 'ids are never ahead of the clock';
END $$;

-- If a database is idle, its limit is behind the clock, and health shows no problem
SELECT pg_sleep(1.6);
SELECT minting, reason, covered_until, lead_ms FROM snowflake.health;
SELECT snowflake.next_id(186) > :id AS minting_goes_on;
SELECT minting, reason, covered_until > clock AS covered FROM snowflake.health;

-- Lists the column names of the views, on which users' queries depend
SELECT attrelid::regclass AS view, string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) AS columns
  FROM pg_attribute
 WHERE attrelid IN ('snowflake.layout'::regclass, 'snowflake.shard_stats'::regclass, 'snowflake.health'::regclass, 'snowflake.clock_history'::regclass)
   AND attnum > 0
 GROUP BY attrelid ORDER BY attrelid::regclass::text;
-- No column is in both health and clock_history
SELECT attname AS twice FROM pg_attribute WHERE attrelid IN ('snowflake.health'::regclass, 'snowflake.clock_history'::regclass) AND attnum > 0
 GROUP BY attname HAVING count(*) > 1;
