-- Tests the bounds of the clock's error: health, now_bounds() and commit_wait. The kernel's bound depends on the
-- machine, so snowflake.clock_error sets the bound here.
SET timezone = 'UTC';
SET datestyle = ISO;

-- With the kernel's bound of the clock error, now_bounds() returns bounds or an error, in agreement with health
DO $$
DECLARE
  s snowflake.health;
  b record;
BEGIN
  SELECT * INTO s FROM snowflake.health;
  ASSERT (s.synchronized IS NULL) = (s.maximum_error_ms IS NULL), 'half known';
  SELECT * INTO b FROM snowflake.now_bounds();
  ASSERT s.synchronized, 'bounds of a clock that is not synchronized';
EXCEPTION WHEN object_not_in_prerequisite_state THEN
  ASSERT s.synchronized IS NOT TRUE, 'no bounds of a clock that is synchronized';
END $$;

-- The setting clock_error replaces the kernel's bound of the clock error
SET snowflake.clock_error = '5ms';
SELECT synchronized, estimated_error_ms, maximum_error_ms FROM snowflake.health, snowflake.clock_history;
SELECT latest - earliest AS width, earliest + interval '5 ms' BETWEEN now() AND clock_timestamp() AS around_now FROM snowflake.now_bounds();
SET snowflake.clock_error = '250us';
SELECT latest - earliest AS width FROM snowflake.now_bounds();
SET snowflake.clock_error = 0;
SELECT latest - earliest AS width FROM snowflake.now_bounds();
-- clock_error must not exceed max_clock_error
SHOW snowflake.max_clock_error;
SET snowflake.clock_error = '100.5ms';
SELECT synchronized, maximum_error_ms FROM snowflake.health;
SELECT * FROM snowflake.now_bounds();
\echo SQLSTATE :SQLSTATE
SET snowflake.clock_error = '100ms';
SELECT latest - earliest AS width FROM snowflake.now_bounds();

-- Only a superuser may change clock_error, because a wrong value would break the promise for all other roles
CREATE ROLE regress_snowflake_nobody;
SET ROLE regress_snowflake_nobody;
SET snowflake.clock_error = 0;
\echo SQLSTATE :SQLSTATE
SET snowflake.max_clock_error = 0;
SELECT latest > earliest AS bounds FROM snowflake.now_bounds();
RESET ROLE;
DROP ROLE regress_snowflake_nobody;

-- With commit_wait, a commit returns only when the time of its ids is past even on the clock that is furthest behind.
-- The wait of a commit is the sum of the errors of this clock and of the other servers' clocks.
CREATE TABLE committed (id bigint, at timestamptz);
CREATE FUNCTION mint_and_commit(shard int, count int) RETURNS void LANGUAGE sql AS
  'INSERT INTO committed SELECT unnest(snowflake.next_ids(shard, count)), NULL';
CREATE PROCEDURE is_past(error interval) LANGUAGE plpgsql AS $$
BEGIN
  ASSERT (SELECT clock_timestamp() - error >= snowflake.time_of(max(id)) + interval '1 ms' FROM committed),
    'a clock may still be at the id''s tick';
  DELETE FROM committed;
END $$;
SET snowflake.clock_error = '10ms';
SET snowflake.commit_wait = on;
SELECT mint_and_commit(170, 1);
CALL is_past('110 ms');
-- A commit waits for the greatest id of its transaction, even if an id of another shard was minted later
BEGIN;
SELECT mint_and_commit(171, 50000);
SELECT mint_and_commit(172, 1);
SELECT count(*) > 0 AS looked FROM snowflake.shard_stats;
SELECT mint_and_commit(173, 1);
COMMIT;
CALL is_past('110 ms');
INSERT INTO committed VALUES ((snowflake.next_ids(171, 51000))[51000]), (snowflake.next_id(172)), (snowflake.next_id(173));
CALL is_past('110 ms');
-- A commit waits for ids of the transaction even if they were minted after a savepoint that was rolled back
BEGIN;
SAVEPOINT s;
SELECT snowflake.next_id(174) AS id \gset
ROLLBACK TO s;
COMMIT;
SELECT clock_timestamp() - interval '110 ms' >= snowflake.time_of(:id) + interval '1 ms' AS past;
-- The setting commit_wait applies to COPY, to COMMIT in a procedure, and to PREPARE TRANSACTION
BEGIN;
SELECT mint_and_commit(175, 1);
PREPARE TRANSACTION 'regress_commit_wait';
SELECT commit_waits > 0 AS waited FROM snowflake.database_stats;
COMMIT PREPARED 'regress_commit_wait';
CALL is_past('110 ms');
DO $$
BEGIN
  PERFORM mint_and_commit(176, 1);
  COMMIT;
  CALL is_past('110 ms');
END $$;
-- Waits are counted. Transactions that minted no id, were rolled back, or have commit_wait off do not wait.
SELECT commit_waits AS before, commit_wait_time AS ms FROM snowflake.database_stats \gset
BEGIN;
SELECT mint_and_commit(177, 1);
ROLLBACK;
BEGIN;
SELECT count(*) FROM committed;
COMMIT;
SELECT commit_waits - :before AS more FROM snowflake.database_stats;
SET snowflake.commit_wait = off;
SELECT mint_and_commit(177, 1);
BEGIN \; SELECT mint_and_commit(177, 1) \; SET LOCAL snowflake.commit_wait = on \; COMMIT;
SHOW snowflake.commit_wait;
SELECT commit_waits - :before AS more, commit_wait_time > :ms AS ms FROM snowflake.database_stats;
CALL is_past('110 ms');

-- A commit that would have to wait longer than max_wait, or whose clock is not synchronized, is refused. A refused
-- transaction commits nothing.
SET snowflake.commit_wait = on;
SET snowflake.clock_error = '100ms';
SET snowflake.max_wait = 0;
\set VERBOSITY terse
INSERT INTO committed VALUES (snowflake.next_id(178, after => snowflake.make_id(clock_timestamp() + interval '90 ms', 178, 0)));
\set VERBOSITY default
\echo SQLSTATE :SQLSTATE
RESET snowflake.max_wait;
SET snowflake.clock_error = '101ms';
SELECT mint_and_commit(178, 1);
\echo SQLSTATE :SQLSTATE
BEGIN;
SELECT mint_and_commit(178, 1);
PREPARE TRANSACTION 'regress_commit_wait';
\echo SQLSTATE :SQLSTATE
SELECT count(*) FROM committed;
SELECT count(*) FROM pg_prepared_xacts;
-- A session continues after its commit was refused
SET snowflake.clock_error = '1ms';
SELECT mint_and_commit(178, 1);
CALL is_past('101 ms');
RESET snowflake.clock_error;
RESET snowflake.commit_wait;
DROP PROCEDURE is_past;
DROP FUNCTION mint_and_commit;
DROP TABLE committed;
