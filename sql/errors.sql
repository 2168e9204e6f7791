-- Tests each refusal of a call, with SQLSTATE, detail and hint. A refused call changes nothing.
SET timezone = 'UTC';
SELECT snowflake.next_id(60) AS last \gset
SELECT last_value AS mark FROM snowflake.high_water \gset

-- Shards
SELECT snowflake.next_id(-1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(256);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(2147483647);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(-2147483648);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(NULL);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(252);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(-1, 1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(256, 1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(NULL, 1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(252, 1);
\echo SQLSTATE :SQLSTATE

-- Tests a default shard that is unset, and one that the layout or this server does not have
SELECT snowflake.next_id();
\echo SQLSTATE :SQLSTATE
SET snowflake.default_shard = 256;
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id();
SET snowflake.default_shard = 252;
SELECT snowflake.next_id();
\echo SQLSTATE :SQLSTATE
SET snowflake.default_shard = -1;
SELECT snowflake.next_id();
\echo SQLSTATE :SQLSTATE
RESET snowflake.default_shard;

-- Counts
SELECT snowflake.next_ids(60, 0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(60, -1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(60, 1000001);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(60, 2147483647);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids(60, NULL);
\echo SQLSTATE :SQLSTATE

-- Calls that mint in a read-only transaction are refused, even if they would not have to write
BEGIN READ ONLY;
SELECT snowflake.next_id(60);
\echo SQLSTATE :SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
SELECT snowflake.next_ids(60, 10);
\echo SQLSTATE :SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
SELECT snowflake.observe(:last);
\echo SQLSTATE :SQLSTATE
ROLLBACK;
SET default_transaction_read_only = on;
SELECT snowflake.next_id(60);
\echo SQLSTATE :SQLSTATE
SET snowflake.default_shard = 60;
SELECT snowflake.next_id();
\echo SQLSTATE :SQLSTATE
RESET snowflake.default_shard;
-- Functions that only read work in read-only transactions
SELECT snowflake.last_id() = :last AS last_id, snowflake.shard_of(:last) AS shard,
       snowflake.min_id('2025-01-01') < :last AS bound FROM snowflake.layout, snowflake.health;
RESET default_transaction_read_only;
BEGIN;
SET TRANSACTION READ ONLY;
SAVEPOINT s;
SELECT snowflake.next_id(60);
\echo SQLSTATE :SQLSTATE
ROLLBACK TO s;
SELECT snowflake.shard_of(:last) AS shard;
COMMIT;

-- Ids to observe
SELECT snowflake.observe(NULL);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id_near(NULL);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.observe(-1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.observe(-9223372036854775808);
\echo SQLSTATE :SQLSTATE
-- The error messages of the next calls contain the current time
\set VERBOSITY sqlstate
SELECT snowflake.observe(9223372036854775807);
SELECT snowflake.observe(snowflake.make_id(now() + interval '1 hour', 1, 0));
\set VERBOSITY default
DO $$
DECLARE
  message text; detail text; hint text;
BEGIN
  PERFORM snowflake.observe(9223372036854775807);
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RAISE INFO '%', message;
  RAISE INFO '%', regexp_replace(regexp_replace(detail, 'shows \d{4}-\d\d-\d\d [\d:.]+\+00', 'shows <now>'),
                                 'epoch \d{4}-\d\d-\d\d, the', 'epoch <then>, the');
  RAISE INFO '%', hint;
END $$;

-- Shows that the refused calls have changed neither the ids nor the high-water mark
SELECT snowflake.last_id() = :last AS last_id, last_value = :mark AS mark FROM snowflake.high_water;
SELECT ids FROM snowflake.shard_stats WHERE shard = 60;
SELECT snowflake.next_id(60) > :last AS minting_goes_on;

-- If a statement fails in the middle, its rows are rolled back, but their ids are not minted again
CREATE TABLE attempts (id bigint PRIMARY KEY, n int);
INSERT INTO attempts SELECT snowflake.next_id(60 + CASE WHEN g = 50 THEN 9000 ELSE 0 END), g FROM generate_series(1, 100) g;
\echo SQLSTATE :SQLSTATE
SELECT count(*) FROM attempts;
SELECT snowflake.last_id() AS lost \gset
INSERT INTO attempts SELECT snowflake.next_id(60), g FROM generate_series(1, 100) g;
SELECT count(*), min(id) > :lost AS above FROM attempts;
-- COPY fails without a default shard, and succeeds after the shard was set
ALTER TABLE attempts ALTER id SET DEFAULT snowflake.next_id();
\set SHOW_CONTEXT never
COPY attempts (n) FROM stdin;
1
\.
SET snowflake.default_shard = 60;
COPY attempts (n) FROM stdin;
1
\.
SELECT count(*) FROM attempts;

-- After a refused call in a longer transaction, ROLLBACK TO SAVEPOINT works
BEGIN;
INSERT INTO attempts (n) VALUES (1001);
SAVEPOINT s;
INSERT INTO attempts VALUES (snowflake.next_id(256), 1002);
ROLLBACK TO s;
INSERT INTO attempts (n) VALUES (1003);
COMMIT;
SELECT count(*), count(DISTINCT id) FROM attempts WHERE n > 1000;
