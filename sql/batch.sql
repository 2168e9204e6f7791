-- next_ids() and last_id().

-- Checks that a batch has as many ids as requested, that they ascend, and that all are of one shard.
CREATE FUNCTION verdict(ids bigint[], OUT ids bigint, OUT ascending bool, OUT shards int[], OUT ticks bigint)
LANGUAGE sql AS $$
  SELECT count(*), coalesce(bool_and(id > previous), true), array_agg(DISTINCT snowflake.shard_of(id)),
         count(DISTINCT snowflake.time_of(id))
    FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous
            FROM unnest($1) WITH ORDINALITY AS u (id, n)) s
$$;

-- In a new session last_id() fails
SELECT snowflake.last_id();
\echo SQLSTATE :SQLSTATE

-- Requests batches of one id, a few ids, and as many ids as a time unit (tick) has
SELECT ids, ascending, shards, ticks FROM verdict(snowflake.next_ids(200, 1));
SELECT ids, ascending, shards FROM verdict(snowflake.next_ids(200, 7));
SELECT ids, ascending, shards FROM verdict(snowflake.next_ids(200, 1024));

-- A time unit (tick) has 1,024 ids of a shard, so 3,000 ids take at least three time units
SELECT ids, ascending, shards, ticks >= 3 AS crosses_ticks FROM verdict(snowflake.next_ids(200, 3000));

-- A million ids are far more than max_lead allows ahead of the clock, so the call waits several times
CREATE TABLE batches (n int GENERATED ALWAYS AS IDENTITY, ids bigint[]);
INSERT INTO batches (ids) VALUES (snowflake.next_ids(201, 1000000));
SELECT v.ids, v.ascending, v.shards, v.ticks >= 977 AS crosses_ticks
  FROM batches, LATERAL verdict(batches.ids) v;
SELECT snowflake.last_id() = ids[1000000] AS last_is_last,
       snowflake.time_of(ids[1000000]) <= clock_timestamp() + interval '100 ms' AS within_the_lead
  FROM batches;

-- Requests a single id and a batch of the same shard in turn
INSERT INTO batches (ids) VALUES (snowflake.next_ids(202, 10)), (ARRAY[snowflake.next_id(202)]),
  (snowflake.next_ids(202, 2000)), (ARRAY[snowflake.next_id(202)]), (snowflake.next_ids(202, 1));
INSERT INTO batches (ids) SELECT snowflake.next_ids(202, 1 + g % 50) FROM generate_series(1, 500) g;
SELECT count(*) AS ids, count(*) - count(DISTINCT id) AS duplicates, bool_and(id > previous) AS ascending
  FROM (SELECT id, lag(id) OVER (ORDER BY n, i) AS previous
          FROM batches, unnest(ids) WITH ORDINALITY AS u (id, i) WHERE n > 1) s;

-- The result of next_ids() is an ordinary array
SELECT array_ndims(ids), array_lower(ids, 1), array_upper(ids, 1), cardinality(ids), pg_typeof(ids),
       array_position(ids, NULL) IS NULL AS no_nulls
  FROM (SELECT snowflake.next_ids(203, 5) AS ids OFFSET 0) s;
SELECT ids = ids::text::bigint[] AS text_round_trip, ids = array_agg(id) AS unnest_round_trip,
       ids[2:3] = ARRAY[ids[2], ids[3]] AS slice, ids || 0::bigint = array_append(ids, 0) AS append
  FROM (SELECT snowflake.next_ids(203, 5) AS ids OFFSET 0) s, unnest(ids) AS id GROUP BY ids;
CREATE TABLE rows_of_batch (id bigint PRIMARY KEY);
INSERT INTO rows_of_batch SELECT unnest(snowflake.next_ids(203, 5000));
SELECT count(*) FROM rows_of_batch;

-- last_id() returns the session's last id, even if the transaction was rolled back
BEGIN;
SELECT snowflake.next_id(204) AS lost \gset
ROLLBACK;
SELECT snowflake.last_id() = :lost AS after_rollback;
BEGIN;
SAVEPOINT s;
SELECT (snowflake.next_ids(204, 20))[20] AS lost \gset
ROLLBACK TO s;
SELECT snowflake.last_id() = :lost AS after_rollback_to;
COMMIT;
SELECT snowflake.next_id(256);
SELECT snowflake.next_ids(204, 0);
SELECT snowflake.last_id() = :lost AS after_errors;
SELECT snowflake.next_id(205) = snowflake.last_id() AS same_statement;

-- After a reconnect, last_id() fails until the new session has minted
\c -
SELECT snowflake.last_id();
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(204) > :lost AS above_what_was_lost;
SELECT snowflake.last_id() > :lost AS defined_now;
DISCARD ALL;
SELECT snowflake.last_id() > :lost AS after_discard_all;
DROP FUNCTION verdict;
