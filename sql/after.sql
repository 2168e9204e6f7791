-- next_id(shard, after) returns an id that is greater than an id that was minted elsewhere. A hybrid logical clock
-- follows the rule of next_id(shard, after) for messages that it receives. The function next_id_near(id) mints in the
-- shard of another id. The server that runs the test has region 3. Ids of other servers are up to 90 ms ahead of this
-- server's clock; max_lead is 100 ms.
SELECT snowflake.next_id(240) AS first \gset

-- The ids after which next_id() mints are from lower, equal and higher regions and shards, at both ends of a tick. Each
-- id is passed to next_id() in a separate statement.
CREATE TABLE posts (ahead int, region int, shard int, sequence int, id bigint, reply bigint, replies bigint[]);
DO $$
DECLARE
  r int; s int; q int; ahead int; post bigint;
BEGIN
  FOREACH ahead IN ARRAY ARRAY[-86400000, 0, 40, 90] LOOP
    FOREACH r IN ARRAY ARRAY[0, 2, 3, 4, 31] LOOP
      FOREACH s IN ARRAY ARRAY[0, 239, 240, 241, 255] LOOP
        FOREACH q IN ARRAY ARRAY[0, 511, 1023] LOOP
          post := snowflake.make_id(clock_timestamp() + ahead * interval '1 ms', s, q, r);
          INSERT INTO posts VALUES (ahead, r, s, q, post, snowflake.next_id(240, post), snowflake.next_ids(241, 3, post));
        END LOOP;
      END LOOP;
    END LOOP;
  END LOOP;
END $$;
SELECT count(*) AS posts, count(*) FILTER (WHERE reply > id) AS replies_after,
       count(*) FILTER (WHERE replies[1] > id AND replies[2] > replies[1] AND replies[3] > replies[2]) AS batches_after,
       count(DISTINCT reply) AS replies, bool_and(snowflake.shard_of(reply) = 240 AND snowflake.region_of(reply) = 3) AS here
  FROM posts;
-- The new id is at most one time unit (tick) after the given id, unless its shard was already ahead of the clock
SELECT count(*) FILTER (WHERE snowflake.time_of(reply) > greatest(snowflake.time_of(id), snowflake.time_of(:first)) + interval '2 s') AS too_far
  FROM posts WHERE ahead >= 0;

-- If calls pass the last id of the same shard and region, the next ids are in the same time unit (tick)
SELECT pg_sleep(0.2);
DO $$
DECLARE
  post bigint;
  reply bigint;
BEGIN
  LOOP  -- repeats the test if the clock has reached the time of the first id
    post := snowflake.make_id(clock_timestamp() + interval '90 ms', 242, 7, 3);
    reply := snowflake.next_id(242, post);
    EXIT WHEN clock_timestamp() < snowflake.time_of(post);
  END LOOP;
  ASSERT reply = post + 1, 'the next of the same origin';
  LOOP
    post := snowflake.make_id(greatest(clock_timestamp(), snowflake.time_of(reply)) + interval '5 ms', 242, 1000, 2);
    reply := snowflake.next_id(242, post);
    EXIT WHEN clock_timestamp() < snowflake.time_of(post);
  END LOOP;
  ASSERT reply = snowflake.make_id(snowflake.time_of(post), 242, 0, 3), 'a lower region: the same tick';
END $$;

-- If the argument "after" is NULL or 0, next_id() mints as without this argument
SELECT snowflake.next_id(240, NULL) > :first AS null_asks_nothing, cardinality(snowflake.next_ids(240, 5, NULL)) AS batch,
       snowflake.next_id(240, 0) > :first AS zero;

-- If the given id is too far ahead of the clock, the call waits for at most max_wait
SELECT snowflake.make_id(clock_timestamp() + interval '400 ms', 1, 1) AS post \gset
SELECT snowflake.next_id(243, :post) > :post AS waited;
-- If the wait would be longer than max_wait, the call fails, so no caller can push a shard far ahead
SET snowflake.max_wait = 0;
\set VERBOSITY sqlstate
SELECT snowflake.next_id(244, snowflake.make_id(now() + interval '1 min', 1, 1));
SELECT snowflake.next_ids(244, 3, snowflake.make_id(now() + interval '1 min', 1, 1));
SELECT snowflake.next_id(244, snowflake.make_id(now() + interval '10 years', 1, 1));
SELECT snowflake.next_id(244, 9223372036854775807);
\set VERBOSITY default
-- The time in the hint of a refused call is never in the past. A batch may run ahead by only half of max_lead, and the
-- hint of its error names a later time.
CREATE FUNCTION said_of_batch(OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
  LOOP  -- repeats a call that succeeded because the server paused for 40 ms
    PERFORM snowflake.next_ids(244, 3, snowflake.make_id(clock_timestamp() + interval '90 ms', 1, 1));
  END LOOP;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
SELECT detail LIKE '%is 100 ms. The ids of a batch may be ahead of the clock by at most half of "snowflake.max_lead".' AS detail, hint ~ 'again in \d+ ms\.$' AS hint FROM said_of_batch();
DROP FUNCTION said_of_batch();
RESET snowflake.max_wait;
SELECT snowflake.time_of(snowflake.next_id(244)) < clock_timestamp() + interval '50 ms' AS not_thrown_ahead;

-- Bad arguments
SELECT snowflake.next_id(NULL, 1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(256, 1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(1, -1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(1, 0, 1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(1, NULL, 1);
\echo SQLSTATE :SQLSTATE
BEGIN READ ONLY;
SELECT snowflake.next_id(1, 1);
\echo SQLSTATE :SQLSTATE
ROLLBACK;

-- next_id_near() uses the shard of the given id, whichever server minted the given id
SELECT snowflake.shard_of(snowflake.next_id_near(snowflake.make_id('2026-01-01', 245, 9, 17))) AS shard,
       snowflake.region_of(snowflake.next_id_near(snowflake.make_id('2026-01-01', 245, 9, 17))) AS region,
       snowflake.next_id_near(:first) > :first AS greater_in_its_own_shard;
SELECT snowflake.next_id_near(snowflake.make_id('2026-01-01', 252, 0));
\echo SQLSTATE :SQLSTATE
CREATE TABLE authors (id bigint PRIMARY KEY DEFAULT snowflake.next_id(246));
CREATE TABLE snapshots (id bigint PRIMARY KEY, user_id bigint NOT NULL REFERENCES authors);
INSERT INTO authors SELECT FROM generate_series(1, 3);
INSERT INTO snapshots SELECT snowflake.next_id_near(id), id FROM authors, generate_series(1, 100);
SELECT count(*), bool_and(snowflake.shard_of(id) = snowflake.shard_of(user_id)) AS colocated FROM snapshots;
