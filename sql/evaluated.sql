-- Tests how often a statement calls next_id() in each form of doc/using.md: the number of rows, of different ids, and
-- of calls.
CREATE EXTENSION snowflake_migrate;
CREATE TABLE src (n int);
INSERT INTO src SELECT generate_series(1, 10);
CREATE TABLE target (n int, id bigint DEFAULT snowflake.next_id(60));
-- Returns the form, the number of distinct ids in target, the number of rows, and the number of calls of next_id()
CREATE FUNCTION counted(form text, VARIADIC commands text[]) RETURNS TABLE (what text, ids bigint, rows bigint, calls bigint) LANGUAGE plpgsql AS $$
DECLARE
  before bigint := coalesce((SELECT s.ids FROM snowflake.shard_stats AS s WHERE shard = 60), 0);
  command text;
BEGIN
  FOREACH command IN ARRAY commands LOOP EXECUTE command; END LOOP;
  RETURN QUERY SELECT form, count(DISTINCT t.id), count(t.id), (SELECT s.ids FROM snowflake.shard_stats AS s WHERE shard = 60) - before FROM target AS t;
  TRUNCATE target;
END $$;

-- A call for each row
SELECT * FROM counted('default', 'INSERT INTO target (n) SELECT n FROM src');
SELECT * FROM counted('VALUES', 'INSERT INTO target VALUES (1, DEFAULT), (2, DEFAULT), (3, snowflake.next_id(60))');
SELECT * FROM counted('select list', 'INSERT INTO target SELECT n, snowflake.next_id(60) FROM src');
SELECT * FROM counted('UPDATE', 'INSERT INTO target SELECT n, 0 FROM src', 'UPDATE target SET id = snowflake.next_id(60)');
SELECT * FROM counted('ADD COLUMN', 'CREATE TABLE added AS TABLE src', 'ALTER TABLE added ADD COLUMN id bigint DEFAULT snowflake.next_id(60)', 'INSERT INTO target SELECT n, id FROM added');
SELECT * FROM counted('LATERAL that refers to the row', 'INSERT INTO target SELECT n, id FROM src, LATERAL (SELECT snowflake.next_id(60 + 0 * n) AS id) AS new');
SELECT * FROM counted('ORDER BY ... LIMIT', 'INSERT INTO target SELECT n, snowflake.next_id(60) FROM src ORDER BY n LIMIT 3');
-- Tests forms in which a statement calls next_id() only once for all rows
SELECT * FROM counted('scalar subquery', 'INSERT INTO target SELECT n, (SELECT snowflake.next_id(60)) FROM src');
SELECT * FROM counted('UPDATE from a subquery', 'INSERT INTO target SELECT n, 0 FROM src', 'UPDATE target SET id = (SELECT snowflake.next_id(60))');
SELECT * FROM counted('UPDATE of a row', 'INSERT INTO target SELECT n, 0 FROM src', 'UPDATE target SET (n, id) = (SELECT 7, snowflake.next_id(60))');
SELECT * FROM counted('FROM', 'INSERT INTO target SELECT n, id FROM src, snowflake.next_id(60) AS id');
SELECT * FROM counted('LATERAL that does not', 'INSERT INTO target SELECT n, id FROM src, LATERAL (SELECT snowflake.next_id(60) AS id OFFSET 0) AS new');
SELECT * FROM counted('WITH', 'WITH new AS (SELECT snowflake.next_id(60) AS id) INSERT INTO target SELECT n, id FROM src, new');
SELECT * FROM counted('PL/pgSQL variable', 'DO $do$ DECLARE new bigint := snowflake.next_id(60); BEGIN INSERT INTO target SELECT n, new FROM src; END $do$');
CREATE FUNCTION falsely_immutable() RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN snowflake.next_id(60); END';
SELECT * FROM counted('a function that says IMMUTABLE', 'INSERT INTO target SELECT n, falsely_immutable() FROM src');
CREATE VIEW labelled AS SELECT n, snowflake.next_id(60) AS id FROM src;
SELECT * FROM counted('statement trigger', 'CREATE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN UPDATE target SET id = minted FROM snowflake.next_id(60) AS minted; RETURN NULL; END $f$',
  'CREATE TRIGGER once AFTER INSERT ON target EXECUTE FUNCTION once()', 'INSERT INTO target SELECT n, 0 FROM src', 'DROP TRIGGER once ON target');
-- More calls than rows
SELECT * FROM counted('next to unnest()', 'INSERT INTO target SELECT unnest(ARRAY[1, 2, 3]), snowflake.next_id(60)');
SELECT * FROM counted('OFFSET', 'INSERT INTO target SELECT n, snowflake.next_id(60) FROM src OFFSET 7');
SELECT * FROM counted('WHERE', 'INSERT INTO target SELECT n, 1 FROM src WHERE n > snowflake.next_id(60)');
SELECT * FROM counted('SELECT DISTINCT', 'INSERT INTO target SELECT DISTINCT 1, snowflake.next_id(60) FROM src');
CREATE UNIQUE INDEX by_n ON target (n);
SELECT * FROM counted('ON CONFLICT', 'INSERT INTO target (n) SELECT n FROM src', 'INSERT INTO target (n) SELECT n FROM src ON CONFLICT DO NOTHING');
DROP INDEX by_n;
-- Tests statements that return an id which differs from the id of the inserted row
SELECT * FROM counted('(...).*', 'CREATE TYPE parts AS (a bigint, b bigint)', 'CREATE FUNCTION parted(bigint) RETURNS parts LANGUAGE sql AS ''SELECT $1, $1''',
  'CREATE TABLE expanded AS SELECT (parted(snowflake.next_id(60))).*', 'INSERT INTO target (id) SELECT unnest(ARRAY[a, b]) FROM expanded');
SELECT * FROM counted('FROM instead', 'CREATE TABLE joined AS SELECT p.* FROM parted(snowflake.next_id(60)) AS p', 'INSERT INTO target (id) SELECT unnest(ARRAY[a, b]) FROM joined');
SELECT * FROM counted('a view, read twice', 'INSERT INTO target TABLE labelled', 'INSERT INTO target TABLE labelled');
SELECT * FROM counted('a materialized view, refreshed', 'CREATE MATERIALIZED VIEW stored AS TABLE labelled', 'INSERT INTO target TABLE stored',
  'REFRESH MATERIALIZED VIEW stored', 'INSERT INTO target TABLE stored');
CREATE TABLE log (id bigint);
CREATE RULE logged AS ON INSERT TO target DO ALSO INSERT INTO log VALUES (NEW.id);
SELECT * FROM counted('rule', 'INSERT INTO target (n) SELECT n FROM src', 'INSERT INTO target (id) SELECT id FROM log') AS c;
DROP RULE logged ON target;
BEGIN;
DECLARE forth SCROLL CURSOR FOR SELECT snowflake.next_id(60) AS id FROM src;
FETCH FIRST FROM forth \gset one_
FETCH LAST FROM forth \gset last_
FETCH FIRST FROM forth \gset again_
SELECT :one_id = :again_id AS "fetched again the same";
COMMIT;
DROP MATERIALIZED VIEW stored;
DROP VIEW labelled;
DROP TABLE src, target, log, added, expanded, joined;
DROP FUNCTION counted, falsely_immutable, once, parted;
DROP TYPE parts;

-- A foreign table whose default was imported mints on the near server. If no default was imported, the trigger set_id()
-- mints on the far server.
SELECT current_database() AS near \gset
\getenv host PGHOST
\getenv port PGPORT
CREATE DATABASE regress_far;
\c regress_far
SET client_min_messages = warning;
CREATE EXTENSION snowflake;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(61), caption text);
CREATE TRIGGER set_id BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION snowflake.set_id();
\c :near
SET client_min_messages = warning;
CREATE EXTENSION postgres_fdw;
CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'host', port :'port', dbname 'regress_far');
CREATE USER MAPPING FOR CURRENT_USER SERVER far;
CREATE SCHEMA with_default;
CREATE SCHEMA without;
IMPORT FOREIGN SCHEMA public LIMIT TO (photos) FROM SERVER far INTO with_default OPTIONS (import_default 'true');
IMPORT FOREIGN SCHEMA public LIMIT TO (photos) FROM SERVER far INTO without;
SELECT coalesce(sum(ids), 0) AS before FROM snowflake.shard_stats WHERE shard = 61 \gset
INSERT INTO with_default.photos (caption) VALUES ('by the near server');
SELECT sum(ids) - :before AS minted FROM snowflake.shard_stats WHERE shard = 61;
INSERT INTO without.photos (caption) VALUES ('by the far server') RETURNING snowflake.shard_of(id);
SELECT sum(ids) - :before AS minted FROM snowflake.shard_stats WHERE shard = 61;
SELECT relation FROM snowflake.minting_columns() WHERE relation IN ('with_default.photos'::regclass, 'without.photos'::regclass);
DROP SCHEMA with_default, without CASCADE;
DROP EXTENSION postgres_fdw CASCADE;
DROP DATABASE regress_far;
DROP EXTENSION snowflake_migrate;
