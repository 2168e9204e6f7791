-- Tests that each database of a server is a separate generator.
SELECT current_database() AS home \gset
SET client_min_messages = warning;
CREATE DATABASE regress_snowflake_1;
\c regress_snowflake_1
SET client_min_messages = warning;
CREATE EXTENSION snowflake;
SELECT snowflake.next_id(230) AS id \gset
\c :home
CREATE DATABASE regress_snowflake_2 TEMPLATE regress_snowflake_1;
CREATE DATABASE regress_snowflake_3 TEMPLATE regress_snowflake_1;

-- A copied database mints above the ids of its template. Minting in one database has no effect on another database.
\c regress_snowflake_2
SELECT snowflake.next_id(230) > :id AS above;
SELECT count(DISTINCT id) AS ids FROM unnest(snowflake.next_ids(230, 50000)) id;
SELECT ids, batches FROM snowflake.shard_stats WHERE shard = 230;
\c regress_snowflake_3
SELECT snowflake.next_id(230) > :id AS above;
SELECT ids, batches, last_time < clock_timestamp() AS in_step FROM snowflake.shard_stats WHERE shard = 230;
SELECT lead_ms < 10 AS in_step FROM snowflake.health;

-- A high-water mark that is a day ahead of the clock stops only its own database
\c regress_snowflake_2
SELECT snowflake.next_id(230) > :id AS minted;
SELECT last_value AS mark FROM snowflake.high_water \gset
SELECT setval('snowflake.high_water', :mark + 86400000) > 0 AS a_day_ahead;
-- observe() does not succeed for an id that only the raised high-water mark covers
\set VERBOSITY sqlstate
SELECT snowflake.observe(:id);
\c -
\set VERBOSITY terse
SELECT snowflake.observe(:id);
\set VERBOSITY sqlstate
SELECT snowflake.next_id(230);
SELECT snowflake.next_ids(231, 5);
SELECT snowflake.next_id(231, :id);
SELECT snowflake.next_id_near(:id);
\set VERBOSITY default
SELECT minting, reason FROM snowflake.health;
BEGIN;
DROP EXTENSION snowflake;
ROLLBACK;
-- A superuser can set the high-water mark to any number
SELECT setval('snowflake.high_water', 9223372036854775807) > 0 AS at_the_end_of_numbers;
DO $$
DECLARE detail text;
BEGIN
  PERFORM snowflake.next_id(230);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
  RAISE NOTICE '%', substring(detail FOR 47);
END $$;
\c regress_snowflake_3
SET snowflake.max_wait = 0;
SELECT snowflake.next_id(230) > :id AS next_door, minting, reason FROM snowflake.health;
-- When the high-water mark was set back to the right value, neither memory nor disk contains the wrong value
\c regress_snowflake_2
SELECT setval('snowflake.high_water', :mark) = :mark AS lowered;
SELECT snowflake.observe(:id);
SELECT snowflake.time_of(snowflake.next_id(230)) < clock_timestamp() + interval '1 second' AS minting_goes_on;
SELECT snowflake.time_of(snowflake.next_id(231)) < clock_timestamp() + interval '1 second' AS minting_goes_on;
SELECT last_value < :mark + 60000 AS stays_lowered FROM snowflake.high_water;
SELECT minting, reason FROM snowflake.health;
DROP EXTENSION snowflake;
SET client_min_messages = warning;
CREATE EXTENSION snowflake;
SELECT last_value < :mark + 60000 AS also_in_a_new_extension FROM snowflake.high_water;
SELECT snowflake.next_id(230) > :id AS above;
RESET client_min_messages;

\c :home
DROP DATABASE regress_snowflake_1;
DROP DATABASE regress_snowflake_2;
DROP DATABASE regress_snowflake_3;
SELECT snowflake.next_id(230) > 0 AS minting_goes_on;
