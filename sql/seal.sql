-- The seal records the layout. If the layout that CREATE EXTENSION stored and the layout of a dump (the seals) differ,
-- every function fails. The test has pauses, because the server reads the stored layout (seal) only once a second.
SET timezone = 'UTC';
SELECT current_database() AS home \gset
CREATE DATABASE regress_snowflake;
\c regress_snowflake
SET timezone = 'UTC';
CREATE EXTENSION snowflake;
SELECT s.last_value AS seal, s.last_value = h.last_value AS same, s.is_called AS set, h.is_called AS used
  FROM snowflake.seal s, snowflake.seal_local h;
SELECT last_value AS seal FROM snowflake.seal \gset
SELECT snowflake.next_id(220) AS id \gset
-- The seal has digits of mixed radix: epoch in milliseconds, bits of time, region, shard and sequence, tick
SELECT :seal / 2012500 = extract(epoch FROM timestamptz '2025-01-01 00:00+00') * 1000 AS epoch,
       :seal / 57500 % 35 + 19 AS time_bits, :seal / 2300 % 25 AS region_bits, :seal / 92 % 25 AS shard_bits,
       :seal / 4 % 23 AS sequence_bits, :seal % 4 AS tick;

-- A dump of another layout (twitter's, of 2010) is restored over the seal
SELECT setval('snowflake.seal', 1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4) <> :seal AS restored, pg_sleep(1.2);
SELECT snowflake.shard_of(:id);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(220);
\echo SQLSTATE :SQLSTATE
-- After the restore of another layout every function fails, in this session and in other sessions
\c -
SET timezone = 'UTC';
\set VERBOSITY terse
SELECT snowflake.next_id(220);
SELECT snowflake.next_ids(220, 5);
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
SELECT backward_steps >= 0 AS steps FROM snowflake.clock_history;
\set VERBOSITY default
-- The functions in other databases of the server do not fail
\c :home
SELECT snowflake.next_id(220) > 0 AS minting_goes_on;
\c regress_snowflake
SET timezone = 'UTC';

-- Functions fail if both snowflake.seal and snowflake.seal_local contain the other layout
SELECT setval('snowflake.seal_local', last_value) <> :seal AS copied FROM snowflake.seal;
SELECT snowflake.next_id(220);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.shard_of(:id);
\echo SQLSTATE :SQLSTATE

-- Functions fail if snowflake.seal_local contains the other layout, and snowflake.seal the right one
SELECT setval('snowflake.seal', :seal) = :seal AS restored;
SELECT snowflake.next_id(220);
\echo SQLSTATE :SQLSTATE

-- Tests a database without a stored layout (seal), and a seal that is not a valid layout
SELECT setval('snowflake.seal_local', 0);
SELECT snowflake.next_id(220);
\echo SQLSTATE :SQLSTATE
SELECT setval('snowflake.seal_local', 9223372036854775807);
SELECT snowflake.next_id(220);
\echo SQLSTATE :SQLSTATE
SELECT setval('snowflake.seal_local', 1);
SELECT snowflake.shard_of(:id);
\echo SQLSTATE :SQLSTATE
SELECT setval('snowflake.seal_local', :seal) = :seal AS as_it_was, setval('snowflake.seal', 1);
SELECT snowflake.next_id(220);
\echo SQLSTATE :SQLSTATE

-- When a dump is restored, it inserts its layout (seal) as a row. If the seal of the dump equals the seal of the
-- database, the seal is accepted and not stored. Another seal stops minting in the database, even if the restoring role
-- is only the owner of a table.
SELECT setval('snowflake.seal', :seal) = :seal AS as_it_was;
INSERT INTO snowflake.dumped_seal VALUES (:seal);
SELECT snowflake.next_id(220) > :id AS minting_goes_on, count(*) AS rows FROM snowflake.dumped_seal;
INSERT INTO snowflake.dumped_seal VALUES (0);
\echo SQLSTATE :SQLSTATE
INSERT INTO snowflake.dumped_seal VALUES (NULL);
CREATE ROLE regress_snowflake_restorer;
-- The trigger function for seals refuses triggers of other tables. A trigger of another table that calls the trigger
-- function for seals cannot stop the database.
SELECT DISTINCT p.oid::regprocedure FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
 WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake') AND prorettype IN ('trigger'::regtype, 'event_trigger'::regtype)
   AND has_function_privilege('regress_snowflake_restorer', p.oid, 'EXECUTE') ORDER BY 1;
GRANT EXECUTE ON FUNCTION snowflake.present_seal() TO regress_snowflake_restorer;
SET ROLE regress_snowflake_restorer;
INSERT INTO snowflake.dumped_seal VALUES (:seal);
INSERT INTO snowflake.dumped_seal VALUES (1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id(220) > :id AS minting_goes_on;
-- Neither a table that any role may create nor the trigger function alone can stop the database
CREATE TEMPORARY TABLE own (seal bigint);
\set VERBOSITY terse
INSERT INTO snowflake.dumped_seal VALUES (1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4);
\set VERBOSITY default
SELECT snowflake.present_seal();
\echo SQLSTATE :SQLSTATE
\set VERBOSITY terse
CREATE TRIGGER by_statement BEFORE INSERT ON own EXECUTE FUNCTION snowflake.present_seal();
INSERT INTO own VALUES (:seal);
DROP TRIGGER by_statement ON own;
CREATE TRIGGER after_all AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION snowflake.present_seal();
INSERT INTO own VALUES (:seal);
DROP TRIGGER after_all ON own;
CREATE TRIGGER on_truncate BEFORE TRUNCATE ON own EXECUTE FUNCTION snowflake.present_seal();
TRUNCATE own;
DROP TABLE own;
CREATE TEMPORARY TABLE own (seal text);
CREATE TRIGGER by_row BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION snowflake.present_seal();
INSERT INTO own VALUES ('text');
ALTER TABLE own DROP COLUMN seal;
INSERT INTO own DEFAULT VALUES;
DROP TABLE own;
CREATE TEMPORARY TABLE own ();
CREATE TRIGGER by_row BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION snowflake.present_seal();
INSERT INTO own DEFAULT VALUES;
DROP TABLE own;
\set VERBOSITY default
SELECT snowflake.next_id(220) > :id AS minting_goes_on;
RESET ROLE;
CREATE TABLE restored (id bigint);
ALTER TABLE restored OWNER TO regress_snowflake_restorer;
SET ROLE regress_snowflake_restorer;
INSERT INTO snowflake.dumped_seal VALUES (1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4);
\echo SQLSTATE :SQLSTATE
RESET ROLE;
\set VERBOSITY terse
SELECT snowflake.shard_of(:id);
SELECT snowflake.next_id(220);
SELECT count(*) FROM snowflake.dumped_seal;
\set VERBOSITY default
-- Another seal stops the database even if it comes by replication, or if triggers are disabled for a session
SELECT setval('snowflake.seal', :seal) = :seal AS as_it_was;
SET session_replication_role = replica;
INSERT INTO snowflake.dumped_seal VALUES (1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4);
\echo SQLSTATE :SQLSTATE
RESET session_replication_role;
-- Another seal stops the database even if the inserting role is only a member of the role that owns the restored tables
SELECT setval('snowflake.seal', :seal) = :seal AS as_it_was;
CREATE ROLE regress_snowflake_member IN ROLE regress_snowflake_restorer;
SET ROLE regress_snowflake_member;
\set VERBOSITY terse
INSERT INTO snowflake.dumped_seal VALUES (1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4);
\set VERBOSITY default
RESET ROLE;
DROP ROLE regress_snowflake_member;
DROP TABLE restored;
DROP OWNED BY regress_snowflake_restorer;
DROP ROLE regress_snowflake_restorer;

-- When the original seal is restored, all functions work again, and the next id is greater than all earlier ids
SELECT setval('snowflake.seal', :seal) = :seal AS as_it_was;
SELECT snowflake.next_id(220) > :id AS minting_goes_on, snowflake.shard_of(:id) AS shard;

-- A session detects another seal even within a long statement that mints, when the statement writes the high-water mark
SELECT setval('snowflake.seal', 0);
SELECT sum(cardinality(snowflake.next_ids(220, 1000000))) FROM generate_series(1, 2);
\echo SQLSTATE :SQLSTATE
SELECT setval('snowflake.seal', :seal) = :seal AS as_it_was;
SELECT snowflake.next_id(220) > :id AS minting_goes_on;
\c :home
DROP DATABASE regress_snowflake;
