-- Tests the defaults of the settings, which roles may change a setting at which time, and which values are refused.
LOAD 'snowflake';
SELECT name, setting, unit, context, vartype FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name COLLATE "C";
SELECT count(*) AS undescribed FROM pg_settings WHERE name LIKE 'snowflake.%' AND (short_desc IS NULL OR short_desc NOT LIKE '%.');

-- Tests settings that a session may change, with values in range and out of range
SET snowflake.default_shard = 16777216;
\echo SQLSTATE :SQLSTATE
SET snowflake.default_shard = -2;
\echo SQLSTATE :SQLSTATE
SET snowflake.default_shard = 'x';
\echo SQLSTATE :SQLSTATE
\set VERBOSITY sqlstate
SET snowflake.max_wait = -1;
\set VERBOSITY default
SET snowflake.max_wait = '3 apples';
\echo SQLSTATE :SQLSTATE
SET snowflake.max_wait = '1min';
SHOW snowflake.max_wait;
RESET snowflake.max_wait;
SHOW snowflake.default_shard;
SELECT boot_val || unit AS default_lead FROM pg_settings WHERE name = 'snowflake.max_lead';

-- Tests settings that a session may not change
SET snowflake.max_lead = 0;
\echo SQLSTATE :SQLSTATE
SET snowflake.reserve = 0;
\echo SQLSTATE :SQLSTATE
SET snowflake.max_forward_jump = '1d';
\echo SQLSTATE :SQLSTATE
SET snowflake.sequence_spread = 8;
\echo SQLSTATE :SQLSTATE
SET snowflake.owned_shards = 'all';
\echo SQLSTATE :SQLSTATE
SET snowflake.layout = 'twitter';
\echo SQLSTATE :SQLSTATE
SET snowflake.tick = 10;
\echo SQLSTATE :SQLSTATE
SET snowflake.epoch = '2020-01-01';
\echo SQLSTATE :SQLSTATE
-- A mistyped name of a setting is an error
SET snowflake.defualt_shard = 5;
\echo SQLSTATE :SQLSTATE

-- Tests one example of each kind of invalid value. Unit tests check all other invalid values (shard_set_test,
-- layout_parse_test, epoch_test). The list of owned shards
ALTER SYSTEM SET snowflake.owned_shards = '5-2';
\echo SQLSTATE :SQLSTATE
ALTER SYSTEM SET snowflake.owned_shards = 'x';
ALTER SYSTEM SET snowflake.owned_shards = '';
ALTER SYSTEM SET snowflake.owned_shards = '0-10,5';
ALTER SYSTEM SET snowflake.owned_shards = '99999999999999999999';
\echo SQLSTATE :SQLSTATE

-- The layout
ALTER SYSTEM SET snowflake.layout = '41/13/11';
\echo SQLSTATE :SQLSTATE
ALTER SYSTEM SET snowflake.layout = '41/13';
ALTER SYSTEM SET snowflake.layout = '41/25/0';
ALTER SYSTEM SET snowflake.layout = '20/0/23';
ALTER SYSTEM SET snowflake.layout = '54/0/0';
\echo SQLSTATE :SQLSTATE

-- The tick
ALTER SYSTEM SET snowflake.tick = 5;
\echo SQLSTATE :SQLSTATE
-- The setting snowflake.tick is not rounded
ALTER SYSTEM SET snowflake.tick = '1499us';
ALTER SYSTEM SET snowflake.tick = 1.5;
-- (PostgreSQL's own message for a number out of range differs between versions)
\set VERBOSITY sqlstate
ALTER SYSTEM SET snowflake.tick = '2s';
ALTER SYSTEM SET snowflake.tick = -1;
\set VERBOSITY default

-- The epoch is a fixed time, so values that depend on the time or the session are refused
ALTER SYSTEM SET snowflake.epoch = '2040-01-01';
\echo SQLSTATE :SQLSTATE
ALTER SYSTEM SET snowflake.epoch = '1969-12-31 23:59:59';
ALTER SYSTEM SET snowflake.epoch = 'x';
ALTER SYSTEM SET snowflake.epoch = 'now';
\echo SQLSTATE :SQLSTATE

-- The layout must contain the region and the default shard
ALTER SYSTEM SET snowflake.region = 32;
\echo SQLSTATE :SQLSTATE
ALTER SYSTEM RESET snowflake.region;
ALTER SYSTEM SET snowflake.region = 16777216;
SET snowflake.default_shard = 256;
\echo SQLSTATE :SQLSTATE

-- Numbers
\set VERBOSITY sqlstate
ALTER SYSTEM SET snowflake.reserve = 1;
ALTER SYSTEM SET snowflake.max_lead = '86401s';
ALTER SYSTEM SET snowflake.max_forward_jump = 0;
\set VERBOSITY default
ALTER SYSTEM SET snowflake.sequence_spread = 1025;

-- Tests valid values, and resets them because they would affect later sessions
ALTER SYSTEM SET snowflake.owned_shards = ' 0-1023, 2048 ,4096 - 8191 ';
ALTER SYSTEM SET snowflake.layout = '41/3+10/10';
ALTER SYSTEM SET snowflake.layout = 'js53';
ALTER SYSTEM SET snowflake.tick = '1s';
ALTER SYSTEM SET snowflake.epoch = '1288834974657';
ALTER SYSTEM SET snowflake.epoch = '2020-02-29T12:00:00.123+02';
ALTER SYSTEM SET snowflake.epoch = '2020-02-29 12:00:00+05:30';
ALTER SYSTEM RESET snowflake.owned_shards;
ALTER SYSTEM RESET snowflake.layout;
ALTER SYSTEM RESET snowflake.tick;
ALTER SYSTEM RESET snowflake.epoch;

-- Tests a setting that is stored for a database, and a setting that is stored for a role
CREATE ROLE regress_snowflake_shard;
ALTER ROLE regress_snowflake_shard SET snowflake.default_shard = 70;
SELECT current_database() AS home \gset
ALTER DATABASE :"home" SET snowflake.default_shard = 71;
\c -
SELECT snowflake.shard_of(snowflake.next_id());
ALTER DATABASE :"home" RESET snowflake.default_shard;
DROP ROLE regress_snowflake_shard;
ALTER DATABASE :"home" SET snowflake.max_lead = 0;
\echo SQLSTATE :SQLSTATE

-- sequence_spread takes effect on reload. If each tick has only one id, the ids get different sequence numbers. Before
-- the setting was reloaded, such ids had the sequence number 0.
\c -
CREATE FUNCTION slowly(shard int, ids int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
  result int[] := '{}';
BEGIN
  FOR i IN 1..ids LOOP
    result := result || snowflake.sequence_of(snowflake.next_id(shard));
    PERFORM pg_sleep(0.003);
  END LOOP;
  RETURN result;
END $$;
-- (the pause lets the clock pass the ids that other tests minted ahead of the clock)
SELECT snowflake.next_id(72) > 0 AS minted, pg_sleep(0.2);
SELECT slowly(72, 6);
ALTER SYSTEM SET snowflake.sequence_spread = 4;
SELECT pg_reload_conf();
\c -
SELECT slowly(72, 8);
SELECT count(DISTINCT id) AS ids FROM unnest(snowflake.next_ids(72, 5000)) id;
ALTER SYSTEM RESET snowflake.sequence_spread;
SELECT pg_reload_conf();
\c -
SELECT (slowly(72, 6))[2:];

-- If max_lead is 0, no id is ahead of the clock, not even in a burst
ALTER SYSTEM SET snowflake.max_lead = 0;
SELECT pg_reload_conf();
\c -
SELECT count(*) AS ids, bool_and(snowflake.time_of(id) <= clock_timestamp()) AS none_ahead
  FROM unnest(snowflake.next_ids(73, 20000)) id;
SELECT count(*) FILTER (WHERE snowflake.time_of(id) > clock_timestamp()) AS ahead
  FROM (SELECT snowflake.next_id(73) AS id FROM generate_series(1, 20000)) s;
ALTER SYSTEM RESET snowflake.max_lead;
SELECT pg_reload_conf();
\c -
SHOW snowflake.max_lead;
