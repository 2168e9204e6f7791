-- Tests changes that a superuser makes to the high-water mark. The server uses a raised high-water mark, repairs a
-- lowered one, and refuses to mint if the sequence no longer survives a crash. TAP tests check that the high-water mark
-- is durable.
SET timezone = 'UTC';
SELECT current_database() AS home \gset
CREATE DATABASE regress_snowflake;
\c regress_snowflake
SET client_min_messages = warning;
CREATE EXTENSION snowflake;
CREATE VIEW clock_ms AS SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now;
-- The high-water mark is above every id, and ahead of the clock by at most the sum of max_lead and reserve
CREATE VIEW verdict AS
  SELECT last_value > extract(epoch FROM snowflake.time_of(snowflake.last_id())) * 1000 AS above_ids,
         last_value <= now + 1101 AS near_the_clock
    FROM snowflake.high_water, clock_ms;

-- Before the first id is minted, the high-water mark is at or ahead of the clock
SELECT last_value >= now - 60000 AS started FROM snowflake.high_water, clock_ms;
SELECT snowflake.next_id(210) > 0 AS minted;
SELECT pg_sleep(1.3);
SELECT snowflake.next_id(210) AS a \gset
SELECT * FROM verdict;
-- The high-water mark does not move until a call moves it
SELECT last_value AS mark FROM snowflake.high_water \gset
SELECT pg_sleep(1.3);
SELECT last_value = :mark AS idle FROM snowflake.high_water;
SELECT snowflake.next_id(210) > :a AS minted;
SELECT last_value > :mark AS moved FROM snowflake.high_water;
SELECT * FROM verdict;

-- If an old dump has lowered the high-water mark, the next call of a running session corrects it
SELECT snowflake.next_id(210) AS a, last_value AS mark FROM snowflake.high_water \gset
SELECT setval('snowflake.high_water', 12345);
SELECT pg_sleep(1.3);
SELECT snowflake.next_id(210) > :a AS above;
SELECT last_value > :mark AS repaired FROM snowflake.high_water;
SELECT * FROM verdict;
-- A new session corrects a lowered high-water mark at once
SELECT snowflake.next_id(210) AS a, last_value AS mark FROM snowflake.high_water \gset
SELECT setval('snowflake.high_water', 0);
\c -
SELECT snowflake.next_id(210) > :a AS above;
SELECT last_value >= :mark AS repaired FROM snowflake.high_water;

-- If a dump of another server has raised the high-water mark, sessions use the new value when they extend it the next
-- time. New ids of every shard are above the raised high-water mark.
SELECT snowflake.next_id(210) > :a AS minted;
SELECT pg_sleep(1.3);
SELECT setval('snowflake.high_water', now + 1500) AS raised FROM clock_ms \gset
SELECT extract(epoch FROM snowflake.time_of(snowflake.next_id(210))) * 1000 >= :raised AS above_the_mark;
SELECT extract(epoch FROM snowflake.time_of(snowflake.next_id(211))) * 1000 >= :raised AS another_shard;
SELECT * FROM verdict;

-- nextval() and setval() work on the sequence of the high-water mark, and new ids stay above all earlier ids
SELECT nextval('snowflake.high_water') > :raised AS next;
SELECT last_value AS mark, is_called FROM snowflake.high_water \gset
SELECT nextval('snowflake.high_water') = :mark + 1 AS next;
SELECT snowflake.next_id(210) > :a AS minting_goes_on;

-- A transaction that has altered the high-water mark's sequence cannot mint, because a rollback may remove the new
-- storage
SELECT snowflake.next_id(210) AS a \gset
BEGIN;
ALTER SEQUENCE snowflake.high_water RESTART WITH 99999999;
SELECT snowflake.next_id(210);
\echo SQLSTATE :SQLSTATE
ROLLBACK;
SELECT snowflake.next_id(210) > :a AS after_rollback;
BEGIN;
SAVEPOINT s;
ALTER SEQUENCE snowflake.high_water RESTART WITH 99999999;
ROLLBACK TO s;
SELECT snowflake.next_id(210) > :a AS after_rollback_to;
COMMIT;
BEGIN;
ALTER SEQUENCE snowflake.high_water RESTART WITH 99999999;
SELECT snowflake.observe(:a);
\echo SQLSTATE :SQLSTATE
COMMIT;
-- When this transaction has committed, the sequence has other storage with a value that is too low. The next call of
-- next_id() corrects the value of the high-water mark.
ALTER SEQUENCE snowflake.high_water RESTART WITH 99999999;
SELECT snowflake.next_id(210) > :a AS after_commit;
SELECT * FROM verdict;

-- An unlogged high-water mark is refused, because it would not survive a crash
ALTER SEQUENCE snowflake.high_water SET UNLOGGED;
SELECT snowflake.next_id(210);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.observe(:a);
\echo SQLSTATE :SQLSTATE
ALTER SEQUENCE snowflake.high_water SET LOGGED;
SELECT snowflake.next_id(210) > :a AS logged_again;
SELECT * FROM verdict;
-- The seal may be unlogged, because it is not written when ids are minted
SELECT snowflake.shard_of(:a);

-- Other properties of the sequence, such as INCREMENT, do not affect minting. INCREMENT and CACHE set the high-water
-- mark 20 ms ahead here, within max_lead.
ALTER SEQUENCE snowflake.high_water INCREMENT 2 CACHE 10 CYCLE;
SELECT nextval('snowflake.high_water') > 0 AS next;
SELECT snowflake.next_id(210) > :a AS minting_goes_on;
ALTER SEQUENCE snowflake.high_water INCREMENT 1 CACHE 1 NO CYCLE;

-- If the high-water mark is lowered before the first id of a server run, ids are still above the value that the server
-- had written
\c :home
DROP DATABASE regress_snowflake;
CREATE DATABASE regress_snowflake;
\c regress_snowflake
SET client_min_messages = warning;
CREATE EXTENSION snowflake;
SELECT last_value AS mark FROM snowflake.high_water \gset
SELECT setval('snowflake.high_water', 0);
SELECT round(extract(epoch FROM mark) * 1000) = :mark AS stands FROM snowflake.health;
SELECT extract(epoch FROM snowflake.time_of(snowflake.next_id(210))) * 1000 >= :mark AS above;
SELECT last_value >= :mark AS repaired FROM snowflake.high_water;

-- In a database that has not minted, replaces the high-water mark by another sequence with the same name. A high-water
-- mark before the first time of ids (the epoch) counts as lost, not as zero.
\c :home
DROP DATABASE regress_snowflake;
CREATE DATABASE regress_snowflake;
\c regress_snowflake
SET client_min_messages = warning;
CREATE EXTENSION snowflake;
BEGIN;
ALTER EXTENSION snowflake DROP SEQUENCE snowflake.high_water;
DROP SEQUENCE snowflake.high_water;
CREATE SEQUENCE snowflake.high_water AS bigint MINVALUE 0 START 0;
ALTER EXTENSION snowflake ADD SEQUENCE snowflake.high_water;
COMMIT;
SELECT snowflake.next_id(210);
\echo SQLSTATE :SQLSTATE
SELECT setval('snowflake.high_water', 1735689599999);
SELECT snowflake.next_id(210);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.observe(:a);
\echo SQLSTATE :SQLSTATE
-- set_mark() works as the hint describes, and refuses an infinite or invalid time
SELECT snowflake.set_mark('infinity');
SELECT snowflake.set_mark('2024-12-31');
SELECT snowflake.set_mark(NULL);
BEGIN READ ONLY;
SELECT snowflake.set_mark(now());
ROLLBACK;
SELECT snowflake.set_mark(clock_timestamp()) BETWEEN now() AND clock_timestamp() + interval '1 ms' AS set;
SELECT snowflake.next_id(210) > :a AS above;
-- The high-water mark cannot be set below the value that the server has written since its start
SELECT last_value AS mark FROM snowflake.high_water \gset
SELECT extract(epoch FROM snowflake.set_mark('2026-01-01')) * 1000 >= :mark AS not_lower;
SELECT snowflake.set_mark(clock_timestamp() + interval '1 h') > now() + interval '59 min' AS ahead;
SELECT reason FROM snowflake.health;
SELECT extract(epoch FROM snowflake.set_mark('2026-01-01')) * 1000 >= :mark AS lowered;
SELECT snowflake.next_id(210) > :a AS above;
\c :home
DROP DATABASE regress_snowflake;
