-- The seal: what CREATE EXTENSION sealed here, what a dump brings, and the settings must agree, or
-- every function refuses. The seal is read again once a second: hence the pauses.
SET timezone = 'UTC';
SELECT current_database() AS home \gset
CREATE DATABASE regress_snowflake;
\c regress_snowflake
SET timezone = 'UTC';
CREATE EXTENSION snowflake;
SELECT s.last_value AS seal, s.last_value = h.last_value AS same, s.is_called AND h.is_called AS set
  FROM snowflake.seal s, snowflake.seal_here h;
SELECT last_value AS seal FROM snowflake.seal \gset
SELECT snowflake.next_id(920) AS id \gset
-- Epoch in milliseconds, 6 bits of time bits, 5 of region bits, 5 of local bits, 5 of sequence bits, 2 of tick
SELECT :seal >> 23 & ((1::bigint << 41) - 1) = extract(epoch FROM timestamptz '2025-01-01 00:00+00') * 1000 AS epoch,
       :seal >> 17 & 63 AS time_bits, :seal >> 12 & 31 AS region_bits, :seal >> 7 & 31 AS local_bits,
       :seal >> 2 & 31 AS sequence_bits, :seal & 3 AS tick;

-- A dump of another layout (twitter's, of 2010) has been restored over it
SELECT setval('snowflake.seal', (1288834974657 << 23) | (41 << 17) | (5 << 12) | (5 << 7) | (12 << 2)) <> :seal AS restored, pg_sleep(1.2);
SELECT snowflake.shard_of(:id);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(920);
\echo SQLSTATE :SQLSTATE
-- Every function refuses, and goes on doing so in other sessions
\c -
SET timezone = 'UTC';
\set VERBOSITY terse
SELECT snowflake.next_id(920);
SELECT snowflake.next_ids(920, 5);
SELECT snowflake.decode(:id);
SELECT snowflake.time_of(:id);
SELECT snowflake.shard_of(:id);
SELECT snowflake.region_of(:id);
SELECT snowflake.sequence_of(:id);
SELECT snowflake.min_id(now());
SELECT snowflake.max_id(now());
SELECT snowflake.id_range('[2026-01-01,2026-01-02)');
SELECT snowflake.created_within(:id, now(), now());
SELECT snowflake.make_id(now(), 1, 1);
SELECT snowflake.observe(:id);
SELECT * FROM snowflake.layout;
SELECT * FROM snowflake.shard_stats;
SELECT * FROM snowflake.clock_status;
\set VERBOSITY default
-- ... and other databases do not
\c :home
SELECT snowflake.next_id(920) > 0 AS minting_goes_on;
\c regress_snowflake
SET timezone = 'UTC';

-- Both of another layout than the settings: a copy of another server's database
SELECT setval('snowflake.seal_here', last_value) <> :seal AS copied FROM snowflake.seal;
SELECT snowflake.next_id(920);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.shard_of(:id);
\echo SQLSTATE :SQLSTATE

-- Only here: the same as above with the roles changed
SELECT setval('snowflake.seal', :seal) = :seal AS restored;
SELECT snowflake.next_id(920);
\echo SQLSTATE :SQLSTATE

-- Never sealed, and a seal that no layout has
SELECT setval('snowflake.seal_here', 0);
SELECT snowflake.next_id(920);
\echo SQLSTATE :SQLSTATE
SELECT setval('snowflake.seal_here', 9223372036854775807);
SELECT snowflake.next_id(920);
\echo SQLSTATE :SQLSTATE
SELECT setval('snowflake.seal_here', -1);
SELECT snowflake.shard_of(:id);
\echo SQLSTATE :SQLSTATE
SELECT setval('snowflake.seal_here', :seal) = :seal AS as_it_was, setval('snowflake.seal', -9223372036854775808);
SELECT snowflake.next_id(920);
\echo SQLSTATE :SQLSTATE

-- As it was: everything works again, in order
SELECT setval('snowflake.seal', :seal) = :seal AS as_it_was;
SELECT snowflake.next_id(920) > :id AS minting_goes_on, snowflake.shard_of(:id) AS shard;

-- A session that mints without a pause finds out as well: at the next write of the mark, in the
-- middle of a statement that takes two seconds
SELECT setval('snowflake.seal', 0);
SELECT sum(cardinality(snowflake.next_ids(920, 1000000))) FROM generate_series(1, 2);
\echo SQLSTATE :SQLSTATE
SELECT setval('snowflake.seal', :seal) = :seal AS as_it_was;
SELECT snowflake.next_id(920) > :id AS minting_goes_on;
\c :home
DROP DATABASE regress_snowflake;
