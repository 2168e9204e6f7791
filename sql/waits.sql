-- Tests calls while the clock is behind the ids that were already minted. This test cannot step the real clock. Instead
-- of a clock step, the test mints ids 55 seconds ahead of the clock under the greatest max_lead, and then lowers
-- max_lead. The test has its own database, so no other test has to wait for the clock.
SELECT current_database() AS home \gset
CREATE DATABASE regress_snowflake_waits;
\c regress_snowflake_waits
SET client_min_messages = warning;
CREATE EXTENSION snowflake;
RESET client_min_messages;
SET timezone = 'UTC';

-- Shows the error of a refused call, with the times masked
CREATE FUNCTION refusal(command text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  message text; detail text; hint text;
BEGIN
  EXECUTE command;
  RETURN NEXT 'not refused';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN QUERY VALUES (SQLSTATE), (message),
    (regexp_replace(regexp_replace(detail, '\d{4}-\d\d-\d\d [\d:.]+\+00', '<time>', 'g'), '(wait|waited) [\d.]+ m?s', '\1 <span>')),
    (hint);
END $$;

SELECT snowflake.next_id(150) > 0 AS minted;

-- A call that needs more ids than the shard has, and may not wait, is refused
SET snowflake.max_wait = 0;
SELECT * FROM refusal('SELECT snowflake.next_ids(150, 1000000)');
RESET snowflake.max_wait;
-- A call that may wait long enough gets the ids
SELECT cardinality(snowflake.next_ids(150, 200000));

ALTER SYSTEM SET snowflake.max_lead = '60s';
SELECT pg_reload_conf();
\c -
SET timezone = 'UTC';
-- A batch may run ahead of the clock by half of max_lead, 30 seconds
SET snowflake.max_wait = 0;
SELECT snowflake.next_id(151, after => snowflake.make_id(clock_timestamp() + interval '25 s', 151, 0)) > 0 AS "25 s ahead";
SELECT cardinality(snowflake.next_ids(151, 1000000));
SELECT snowflake.next_id(151, after => snowflake.make_id(clock_timestamp() + interval '55 s', 151, 0)) > 0 AS "55 s ahead";
SELECT * FROM refusal('SELECT snowflake.next_ids(151, 10)');
-- Single ids may run ahead of the clock by the whole max_lead
SELECT count(snowflake.next_id(151)) FROM generate_series(1, 10000);
RESET snowflake.max_wait;
SELECT snowflake.last_id() AS last \gset
SELECT snowflake.time_of(:last) > clock_timestamp() + interval '20 seconds' AS far_ahead;
SELECT lead_ms > 20000 AS lead FROM snowflake.health;
-- The high-water mark is above all ids that are ahead of the clock
SELECT last_value > extract(epoch FROM snowflake.time_of(:last)) * 1000 AS covered FROM snowflake.high_water;

-- The lead is lowered
ALTER SYSTEM SET snowflake.max_lead = 0;
SELECT pg_reload_conf();
\c -
SET timezone = 'UTC';
SELECT last_value AS mark FROM snowflake.high_water \gset
SELECT refusals AS before FROM snowflake.shard_stats WHERE shard = 151 \gset
SELECT * FROM refusal('SELECT snowflake.next_id(151)');
SELECT * FROM refusal('SELECT snowflake.next_ids(151, 10)');
-- Refused calls do not write to disk, and are counted
SELECT last_value = :mark AS mark_same FROM snowflake.high_water;
SELECT refusals - :before AS refusals FROM snowflake.shard_stats WHERE shard = 151;
-- A call in another shard succeeds, because only one shard is far ahead of the clock
SELECT snowflake.next_id(152) > 0 AS another_shard;

-- A call that waits for the clock can be interrupted
SET snowflake.max_wait = '1h';
SET statement_timeout = '100ms';
SELECT snowflake.next_id(151);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(151, 1000000);
\echo SQLSTATE :SQLSTATE
RESET statement_timeout;
SELECT snowflake.time_of(:last) > clock_timestamp() + interval '5 seconds' AS long_before_it_could_be_had;
SELECT waits >= 2 AS waits, wait_time >= 100 AS wait_time FROM snowflake.shard_stats WHERE shard = 151;

-- When max_lead is raised again, new ids are above all earlier ids
ALTER SYSTEM SET snowflake.max_lead = '60s';
SELECT pg_reload_conf();
\c -
SELECT snowflake.next_id(151) > :last AS above;
ALTER SYSTEM RESET snowflake.max_lead;
SELECT pg_reload_conf();
\c -
SHOW snowflake.max_lead;

-- If the high-water mark is far ahead, as after a start with the clock set back, calls are refused. Calls that are
-- refused for this reason do not move the high-water mark. If each refused call moved the high-water mark, a server
-- that restarts in a loop would move it further and further ahead.
SET timezone = 'UTC';
SELECT setval('snowflake.high_water', (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 100000) AS raised \gset
\c -
SET timezone = 'UTC';
SELECT * FROM refusal('SELECT snowflake.next_id(152)');
SELECT * FROM refusal('SELECT snowflake.next_id(153)');
SELECT last_value = :raised AS mark_same FROM snowflake.high_water;
-- The view health shows why calls are refused
SELECT minting, reason FROM snowflake.health;
\c :"home"
DROP DATABASE regress_snowflake_waits;
