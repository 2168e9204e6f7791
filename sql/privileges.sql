-- An ordinary role can insert rows with ids, read them, and dump its tables. An ordinary role cannot cause a duplicate
-- id, raise the high-water mark far ahead, or keep other roles from minting.
CREATE ROLE regress_snowflake_user LOGIN;
CREATE TABLE shared (id bigint PRIMARY KEY DEFAULT snowflake.next_id(65), who name DEFAULT current_user);
GRANT SELECT, INSERT ON shared TO regress_snowflake_user;
CREATE SCHEMA own AUTHORIZATION regress_snowflake_user;
SELECT snowflake.next_id(65) AS before \gset
SELECT current_user AS boss \gset

\c - regress_snowflake_user
-- An ordinary role can mint ids, also into tables of its own
INSERT INTO shared DEFAULT VALUES RETURNING id > :before AS minted;
INSERT INTO shared SELECT FROM generate_series(1, 1000);
CREATE TABLE own.t (id bigint PRIMARY KEY DEFAULT snowflake.next_id(), note text);
SET snowflake.default_shard = 66;
INSERT INTO own.t (note) VALUES ('mine'), ('mine too');
SELECT cardinality(snowflake.next_ids(66, 1000)), snowflake.last_id() > :before AS last_id;
-- An ordinary role can decode ids, compute bounds of ids and read the views
SELECT region, shard, sequence >= 0 AS sequence FROM snowflake.decode(snowflake.last_id());
SELECT snowflake.time_of(:before) = snowflake.time_of(snowflake.make_id(snowflake.time_of(:before), 1, 1)) AS decoded,
       snowflake.region_of(:before), snowflake.shard_of(:before), snowflake.sequence_of(:before) >= 0 AS sequence,
       snowflake.id_range(tstzrange(NULL, now())) @> :before AS range,
       snowflake.created_within(:before, now() - interval '1 hour', now() + interval '1 hour') AS within;
SELECT bits FROM snowflake.layout;
SELECT ids FROM snowflake.shard_stats WHERE shard = 66;
SELECT count(*) FROM snowflake.clock_history;
-- An ordinary role can read and lock the extension's sequences, as its own pg_dump does
SELECT count(*) FROM snowflake.high_water, snowflake.seal, snowflake.seal_local;
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;
LOCK TABLE own.t, shared IN ACCESS SHARE MODE;
COPY (SELECT count(*) FROM own.t) TO stdout;
COMMIT;

-- An ordinary role cannot call the administrator's functions
SELECT snowflake.observe(:before);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.accept_clock();
SELECT snowflake.accept_clone();
\echo SQLSTATE :SQLSTATE
-- An ordinary role cannot change the extension's sequences
SELECT nextval('snowflake.high_water');
\echo SQLSTATE :SQLSTATE
SELECT setval('snowflake.high_water', 1);
SELECT setval('snowflake.seal', 0);
SELECT setval('snowflake.seal_local', 0);
SELECT nextval('snowflake.seal');
ALTER SEQUENCE snowflake.high_water RESTART;
ALTER SEQUENCE snowflake.high_water SET UNLOGGED;
ALTER SEQUENCE snowflake.seal OWNER TO regress_snowflake_user;
BEGIN;
LOCK TABLE snowflake.high_water IN ACCESS EXCLUSIVE MODE;
ROLLBACK;
BEGIN;
LOCK TABLE snowflake.high_water IN ACCESS SHARE MODE;
ROLLBACK;
SELECT last_value FROM snowflake.high_water FOR UPDATE;
DROP SEQUENCE snowflake.high_water;
-- An ordinary role cannot change the schema snowflake or the extension
CREATE FUNCTION snowflake.next_id(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE OR REPLACE FUNCTION snowflake.next_id(integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE TABLE snowflake.t ();
ALTER FUNCTION snowflake.next_id(integer) STABLE;
ALTER VIEW snowflake.layout RENAME TO shape;
DROP EXTENSION snowflake;
ALTER EXTENSION snowflake DROP SEQUENCE snowflake.high_water;
GRANT EXECUTE ON FUNCTION snowflake.observe(bigint) TO PUBLIC;
CREATE FUNCTION own.observe(bigint) RETURNS void AS 'snowflake', 'snowflake_observe' LANGUAGE C;
-- An ordinary role cannot change the server's settings, not even for itself
ALTER SYSTEM SET snowflake.max_lead = 0;
SET snowflake.reserve = 60000;
SET snowflake.sequence_spread = 5;
SET snowflake.owned_shards = 'all';
SELECT set_config('snowflake.max_forward_jump', '2000000000', false);
ALTER ROLE regress_snowflake_user SET snowflake.max_lead = 0;
ALTER ROLE regress_snowflake_user SET snowflake.default_shard = 66;
SELECT set_config('snowflake.max_wait', '2147483647', false);

-- Settings that an ordinary role may change cause no duplicate id and no id far ahead of the clock, even at their
-- limits
CREATE TABLE own.all_ids (id bigint);
INSERT INTO own.all_ids SELECT unnest(snowflake.next_ids(66, 200000));
SET snowflake.max_wait = 0;
DO $$
BEGIN
  FOR i IN 1..20 LOOP
    BEGIN
      INSERT INTO own.all_ids SELECT unnest(snowflake.next_ids(66, 40000));
    EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL;
    END;
  END LOOP;
END $$;
RESET snowflake.max_wait;
SELECT count(*) - count(DISTINCT id) AS duplicates FROM (SELECT id FROM own.all_ids UNION ALL SELECT id FROM own.t) s;
SELECT last_value < extract(epoch FROM clock_timestamp()) * 1000 + 1200 AS mark_is_near FROM snowflake.high_water;
-- An id that an ordinary role invents has no effect on next_id()
INSERT INTO own.all_ids VALUES (snowflake.make_id('2050-01-01', 66, 0)), (9223372036854775807);
SELECT snowflake.next_id(66) < snowflake.min_id('2050-01-01') AS unimpressed;

-- If an ordinary role has read every sequence in a prepared transaction, other roles can mint
BEGIN;
SELECT count(*) FROM snowflake.high_water, snowflake.seal, snowflake.seal_local, snowflake.clock_history;
PREPARE TRANSACTION 'regress_snowflake_user';
\c - :boss
SELECT pg_sleep(1.3);
SELECT snowflake.next_id(65) > :before AS minting_goes_on;
-- The owner of the table sees the ids that the other role minted: in order, without a duplicate
SELECT count(*), count(DISTINCT id) AS ids, min(who), bool_and(id > :before) AS above FROM shared;
ROLLBACK PREPARED 'regress_snowflake_user';

-- If EXECUTE is revoked, a role cannot mint, so a shard can be reserved for some roles
REVOKE EXECUTE ON FUNCTION snowflake.next_id(integer) FROM PUBLIC;
SET SESSION AUTHORIZATION regress_snowflake_user;
SELECT snowflake.next_id(66);
\echo SQLSTATE :SQLSTATE
RESET SESSION AUTHORIZATION;
GRANT EXECUTE ON FUNCTION snowflake.next_id(integer) TO PUBLIC;
-- If EXECUTE is granted, a role can call the administrator's functions
GRANT EXECUTE ON FUNCTION snowflake.observe(bigint) TO regress_snowflake_user;
SET SESSION AUTHORIZATION regress_snowflake_user;
SELECT snowflake.observe(:before);
RESET SESSION AUTHORIZATION;

SELECT has_schema_privilege('regress_snowflake_user', 'snowflake', 'USAGE') AS usage,
       has_schema_privilege('regress_snowflake_user', 'snowflake', 'CREATE') AS "create";
SELECT relname, has_table_privilege('regress_snowflake_user', oid, 'SELECT') AS "select",
       has_table_privilege('regress_snowflake_user', oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') AS write
  FROM pg_class WHERE relnamespace = 'snowflake'::regnamespace AND relkind IN ('v', 'S') ORDER BY relname;
SET client_min_messages = warning;
DROP SCHEMA own CASCADE;
DROP OWNED BY regress_snowflake_user;
DROP ROLE regress_snowflake_user;
