-- After observe(id) every new id of this database is greater than the given id of another server, even after a crash.
-- The observed ids are up to 90 ms ahead of the clock, and max_lead is 100 ms.
SELECT snowflake.next_id(190) > 0 AS minted;

-- After observe(), single ids and batches are greater than the observed id, in its own shard and in other shards. The
-- test makes all calls in one block, which ends well before the clock reaches the observed id.
CREATE TABLE observed (n int GENERATED ALWAYS AS IDENTITY, id bigint, later bigint);
DO $$
DECLARE
  elsewhere bigint := snowflake.make_id(clock_timestamp() + interval '90 ms', 252, 1023);
BEGIN
  PERFORM snowflake.observe(elsewhere);
  INSERT INTO observed (id, later) VALUES (elsewhere, snowflake.next_id(190)), (elsewhere, snowflake.next_id(0)),
    (elsewhere, snowflake.next_id(255)), (elsewhere, (snowflake.next_ids(191, 10))[1]),
    (elsewhere, snowflake.next_id(190));
END $$;
SELECT count(*) AS cases, bool_and(later > id) AS greater,
       bool_and(snowflake.time_of(later) > snowflake.time_of(id)) AS in_a_later_tick
  FROM observed;

-- observe() takes effect in every session, and a rollback does not undo the effect
SELECT pg_sleep(0.2);
BEGIN;
DO $$
BEGIN
  CREATE TEMP TABLE ahead AS SELECT snowflake.make_id(clock_timestamp() + interval '90 ms', 252, 0) AS id;
  PERFORM snowflake.observe(id) FROM ahead;
END $$;
SELECT id FROM ahead \gset
ROLLBACK;
SELECT snowflake.next_id(192) > :id AS greater;
\c -
SELECT snowflake.next_id(193) > :id AS greater;

-- observe() moves the high-water mark to just after the observed id. The mark is behind the clock before, because of a
-- pause longer than the reserve.
SELECT pg_sleep(1.3);
DO $$
DECLARE
  elsewhere bigint;
BEGIN
  LOOP
    elsewhere := snowflake.make_id(clock_timestamp() + interval '90 ms', 252, 7);
    PERFORM snowflake.observe(elsewhere);
    EXIT WHEN clock_timestamp() < snowflake.time_of(elsewhere);
    PERFORM pg_sleep(1.3);
  END LOOP;
  INSERT INTO observed (id) VALUES (elsewhere);
END $$;
SELECT to_timestamp(last_value / 1000.0) - snowflake.time_of(max(id)) AS mark_is_after_the_id
  FROM snowflake.high_water, observed GROUP BY last_value;

-- Observing an id that is behind the clock changes nothing
SELECT last_value AS mark FROM snowflake.high_water \gset
SELECT snowflake.observe(0), snowflake.observe(snowflake.make_id('2025-01-01 12:00+00', 5, 5)), snowflake.observe(max(id)) FROM observed;
SELECT last_value = :mark AS mark_same FROM snowflake.high_water;

-- observe() refuses an id that is too far ahead of the clock, and raises neither the shards nor the high-water mark
SELECT snowflake.next_id(194) AS before \gset
\set VERBOSITY sqlstate
SELECT snowflake.observe(snowflake.make_id(now() + interval '5 seconds', 1, 0));
SELECT snowflake.observe(snowflake.make_id(now() + interval '10 years', 1, 0));
\set VERBOSITY default
SELECT snowflake.time_of(snowflake.next_id(194)) < clock_timestamp() + interval '1 second' AS not_raised,
       last_value < extract(epoch FROM clock_timestamp()) * 1000 + 2000 AS mark_not_raised
  FROM snowflake.high_water;
SELECT snowflake.next_id(194) > :before AS minting_goes_on;
