-- Tests the counters of a database: database_stats, refusals, reset_stats().
SET timezone = 'UTC';
SET datestyle = ISO;
SELECT current_database() AS base \gset
CREATE DATABASE regress_statistics;
\c regress_statistics
CREATE EXTENSION snowflake;

-- Before the first id all counters are 0, and the view of refusals has one row for each cause
SELECT stats_since BETWEEN pg_postmaster_start_time() - interval '10 s' AND now() AS since, ids, batches,
       borrowed_ticks, waits, wait_time, refusals, mark_extensions, mark_flushes, mark_flush_time, longest_mark_flush,
       commit_waits, commit_wait_time, rate, capacity
  FROM snowflake.database_stats;
SELECT * FROM snowflake.refusals;

-- The counters include the ids of all shards, and ids of the present transaction. The first id makes the server write
-- and flush the high-water mark.
BEGIN;
SELECT count(snowflake.next_id(g % 7)) FROM generate_series(1, 700) g;
SELECT cardinality(snowflake.next_ids(9, 5000)), cardinality(snowflake.next_ids(8, 300));
SELECT ids, batches, waits, refusals, mark_extensions > 0 AS extensions, mark_flushes BETWEEN 1 AND mark_extensions AS flushes,
       longest_mark_flush BETWEEN 0.001 AND mark_flush_time AS times, rate > 0 AS rate, capacity
  FROM snowflake.database_stats;
ROLLBACK;
SELECT d.ids = s.ids AS ids, d.batches = s.batches AS batches, d.borrowed_ticks = s.borrowed AS borrowed, d.capacity = l.ids_per_second AS capacity
  FROM snowflake.database_stats d, snowflake.layout l,
       (SELECT sum(ids) AS ids, sum(batches) AS batches, sum(borrowed_ticks) AS borrowed FROM snowflake.shard_stats) s;
-- The rate of ids is an average since the time stats_since. To compute the rate between two times, subtract the counts
-- of ids at these times.
SELECT rate BETWEEN 0.99 * ids / extract(epoch FROM clock_timestamp() - stats_since) AND 1.01 * ids / extract(epoch FROM now() - stats_since) AS rate, capacity,
       stats_since = (SELECT stats_since FROM snowflake.database_stats) AS since
  FROM snowflake.shard_stats WHERE shard = 9;
-- The high-water mark is written once or twice a second if the database mints
SELECT mark_extensions AS extensions FROM snowflake.database_stats \gset
DO $$
DECLARE
  until timestamptz := clock_timestamp() + interval '1.7 s';
BEGIN
  WHILE clock_timestamp() < until LOOP
    PERFORM snowflake.next_id(1);
    PERFORM pg_sleep(0.001);
  END LOOP;
END $$;
SELECT mark_extensions - :extensions BETWEEN 1 AND 5 AS extensions FROM snowflake.database_stats;

-- Refusals by cause
\set VERBOSITY terse
SELECT snowflake.next_id(252);
SELECT snowflake.next_ids(252, 5);
BEGIN READ ONLY;
SELECT snowflake.next_id(1);
ROLLBACK;
SET snowflake.max_wait = 0;
DO $$ BEGIN PERFORM snowflake.next_ids(5, 1000000); EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; END $$;
DO $$
BEGIN
  PERFORM snowflake.next_id(6, after => snowflake.make_id(now() + interval '1 day', 6, 0));
EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL;
END $$;
SET snowflake.clock_error = 50;
SET snowflake.commit_wait = on;
BEGIN;
SELECT snowflake.next_id(1) > 0 AS minted;
COMMIT;
RESET snowflake.commit_wait;
RESET snowflake.max_wait;
\set VERBOSITY default
SELECT cause, refusals, last_at BETWEEN now() - interval '1 min' AND clock_timestamp() AS last_at, since <= last_at AS since
  FROM snowflake.refusals WHERE refusals > 0 ORDER BY cause;
SELECT refusals = (SELECT sum(refusals) FROM snowflake.refusals) AS all_causes FROM snowflake.database_stats;
SELECT refusals FROM snowflake.shard_stats WHERE shard = 5;
-- Calls with wrong arguments, and calls that succeed after a wait, do not count as refusals
SELECT refusals AS before FROM snowflake.database_stats \gset
SELECT snowflake.next_id(-1);
SELECT snowflake.next_ids(1, 0);
SELECT snowflake.next_id(NULL);
SELECT snowflake.next_id(1) > 0 AS minted;
SELECT refusals - :before AS more FROM snowflake.database_stats;

-- If the high-water mark or the stored layout (seal) is wrong, refused calls are counted, and the counters can be read
SELECT last_value AS seal FROM snowflake.seal \gset
SELECT setval('snowflake.seal', 17) AS seal;
\set VERBOSITY terse
-- After a session has checked the seal, the session checks the seal again only after a second
SELECT pg_sleep(1.1);
\c -
SELECT snowflake.next_id(1);
SELECT cause, refusals FROM snowflake.refusals WHERE cause IN ('seal', 'mark_lost');
SELECT setval('snowflake.seal', :seal) = :seal AS put_back;
\set VERBOSITY default

-- Tests waits that are not counted for a shard: for a high-water mark that was set ahead, and for an id that is passed
-- to next_id()
SELECT waits AS before, wait_time AS before_ms FROM snowflake.database_stats \gset
\c -
SELECT setval('snowflake.high_water', (extract(epoch FROM clock_timestamp() + interval '900 ms') * 1000)::bigint) > 0 AS ahead, snowflake.next_id(1) > 0 AS minted;
SELECT snowflake.next_id(2, after => snowflake.make_id(clock_timestamp() + interval '900 ms', 2, 0)) > 0 AS minted;
SELECT waits - :before BETWEEN 2 AND 6 AS waits, wait_time - :before_ms > 300 AS wait_time FROM snowflake.database_stats;

-- Each database has separate counters of ids and refused calls
\c :base
SELECT stats_since BETWEEN pg_postmaster_start_time() - interval '10 s' AND now() AS since FROM snowflake.database_stats;
\c regress_statistics

-- After reset_stats() all sessions see counters of 0, but the last ids stay
SELECT max(last_id) AS last_id FROM snowflake.shard_stats WHERE shard = 9 \gset
SELECT snowflake.reset_stats();
SELECT clock_timestamp() - stats_since < interval '1 min' AS since, ids, batches, borrowed_ticks, waits, wait_time, refusals,
       mark_extensions, mark_flushes, mark_flush_time, longest_mark_flush, commit_waits, commit_wait_time, rate
  FROM snowflake.database_stats;
SELECT ids, batches, borrowed_ticks, waits, wait_time, refusals, rate, last_id = :last_id AS last_id FROM snowflake.shard_stats WHERE shard = 9;
SELECT count(*) FROM snowflake.refusals WHERE refusals > 0 OR last_at IS NOT NULL;
SELECT count(snowflake.next_id(9)) FROM generate_series(1, 10);
SELECT ids FROM snowflake.database_stats;
SELECT ids FROM snowflake.shard_stats WHERE shard = 9;

-- Tests which roles may read the counters, and which roles may reset them
CREATE ROLE regress_snowflake_monitor IN ROLE pg_monitor;
REVOKE SELECT ON ALL TABLES IN SCHEMA snowflake FROM PUBLIC;
SET ROLE regress_snowflake_monitor;
SELECT count(*) FROM snowflake.layout, snowflake.database_stats, snowflake.clock_history, snowflake.health;
SELECT count(*) > 0 AS readable FROM snowflake.shard_stats, snowflake.refusals;
SELECT snowflake.reset_stats();
\echo SQLSTATE :SQLSTATE
RESET ROLE;
\c :base
DROP DATABASE regress_statistics;
DROP ROLE regress_snowflake_monitor;
