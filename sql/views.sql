-- The views: layout, shard_stats, clock_status.
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;

-- layout: the contract
SELECT layout, time_bits, region_bits, local_bits, sequence_bits FROM snowflake.layout;
SELECT tick, epoch, shards, ids_per_tick, ids_per_second, ends_at FROM snowflake.layout;
SELECT abs(used_percent - 100 * extract(epoch FROM now() - epoch) / extract(epoch FROM ends_at - epoch)) < 0.02 AS used
  FROM snowflake.layout;
-- ... agrees with what the functions do
SELECT snowflake.time_of(0) = epoch AS epoch,
       snowflake.make_id(ends_at - tick, shards - 1, ids_per_tick - 1) = 9223372036854775807 AS last_id,
       shards = 2 ^ (region_bits + local_bits) AND ids_per_tick = 2 ^ sequence_bits AS powers
  FROM snowflake.layout;

-- shard_stats knows nothing of a shard that nobody minted for
SELECT count(*) FROM snowflake.shard_stats WHERE shard BETWEEN 800 AND 809;

-- Every id counts, whatever became of its transaction; a batch counts once
SELECT snowflake.next_id(800) AS a, snowflake.next_id(800) AS b \gset
SELECT count(snowflake.next_id(800)) FROM generate_series(1, 1000);
SELECT cardinality(snowflake.next_ids(800, 10)), cardinality(snowflake.next_ids(800, 5000));
BEGIN;
SELECT count(snowflake.next_id(800)) FROM generate_series(1, 100);
SELECT ids, batches FROM snowflake.shard_stats WHERE shard = 800;
ROLLBACK;
SELECT snowflake.next_id(801) > 0 AS a, snowflake.next_id(800) > 0 AS b, snowflake.next_id(801) > 0 AS c;
SELECT shard, ids, batches, refusals FROM snowflake.shard_stats WHERE shard BETWEEN 800 AND 809 ORDER BY shard;
SELECT s.last_id = snowflake.last_id() AS last_id, s.last_time = snowflake.time_of(s.last_id) AS last_time
  FROM snowflake.shard_stats s WHERE shard = 801;

-- Another session sees the same, and adds to it
\c -
SET timezone = 'UTC';
SET intervalstyle = postgres;
SELECT shard, ids, batches FROM snowflake.shard_stats WHERE shard BETWEEN 800 AND 809 ORDER BY shard;
SELECT snowflake.next_id(800) > 0 AS minted;
SELECT ids FROM snowflake.shard_stats WHERE shard = 800;

-- A call that is refused for its arguments is not the shard's affair
SELECT snowflake.next_ids(800, 0);
BEGIN READ ONLY;
SELECT snowflake.next_id(800);
ROLLBACK;
SELECT ids, refusals FROM snowflake.shard_stats WHERE shard = 800;

-- A burst: 20,000 ids at once are 19 ticks more than the clock has had
SELECT cardinality(snowflake.next_ids(802, 20000));
SELECT ids, batches, borrowed_ticks BETWEEN 1 AND 20 AS borrowed FROM snowflake.shard_stats WHERE shard = 802;
-- ... single ids borrow as well
SELECT count(snowflake.next_id(803)) FROM generate_series(1, 50000);
SELECT ids, borrowed_ticks BETWEEN 0 AND 49 AS borrowed FROM snowflake.shard_stats WHERE shard = 803;

-- 300,000 at once are three times what may be borrowed: the call waits ...
SELECT cardinality(snowflake.next_ids(804, 300000));
SELECT ids, batches, borrowed_ticks > 0 AS borrowed, waits > 0 AS waited, wait_time > interval '0' AS wait_time, refusals
  FROM snowflake.shard_stats WHERE shard = 804;
-- ... or, where it may not, is refused
SET snowflake.max_wait = 0;
\set VERBOSITY terse
SELECT cardinality(snowflake.next_ids(805, 300000));
\set VERBOSITY default
RESET snowflake.max_wait;
SELECT ids < 300000 AS some, waits, wait_time, refusals FROM snowflake.shard_stats WHERE shard = 805;
SELECT snowflake.next_id(805) > last_id AS minting_goes_on FROM snowflake.shard_stats WHERE shard = 805;

-- clock_status: the clock, this database's floor and limit, how far ids are ahead
SELECT snowflake.next_id(806) AS id \gset
SELECT clock BETWEEN now() - interval '1 s' AND clock_timestamp() AS clock,
       floor < clock AS floor, "limit" > snowflake.time_of(:id) AS "limit",
       "limit" < clock + interval '2 s' AS limit_is_near,
       lead BETWEEN interval '0' AND interval '100 ms' AS lead,
       abs(extract(epoch FROM drift)) < 3600 AS drift, backward_steps >= 0 AS steps,
       largest_backward_step >= interval '0' AS largest
  FROM snowflake.clock_status;
SELECT to_timestamp(last_value / 1000.0) >= "limit" AS stored_is_not_below_the_limit
  FROM snowflake.high_water, snowflake.clock_status;
-- ... after a burst; more than once where the machine was too slow to see it
DO $$
BEGIN
  FOR i IN 1..100 LOOP
    PERFORM snowflake.next_ids(806, 40000);
    IF (SELECT lead > interval '0' FROM snowflake.clock_status) THEN RETURN; END IF;
  END LOOP;
  RAISE 'ids are never ahead of the clock';
END $$;

-- Columns, for those who select by name
SELECT attrelid::regclass AS view, string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) AS columns
  FROM pg_attribute
 WHERE attrelid IN ('snowflake.layout'::regclass, 'snowflake.shard_stats'::regclass, 'snowflake.clock_status'::regclass)
   AND attnum > 0
 GROUP BY attrelid ORDER BY attrelid::regclass::text;
