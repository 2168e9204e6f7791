-- audit() shows which ids a column contains, and which of them the database cannot have minted.
CREATE EXTENSION snowflake_migrate;
CREATE SCHEMA audit;
SET search_path = audit;
SET timezone = 'UTC';
SET datestyle = ISO;
\set SHOW_CONTEXT never
CREATE TABLE photos (id bigint PRIMARY KEY, caption text);
SELECT count(*) FROM snowflake.audit('photos');

-- audit() shows no finding for ids that this database minted
INSERT INTO photos SELECT snowflake.next_id(231 + n % 3) FROM generate_series(1, 900) AS n;
SELECT a.region, a.shard, a.ids, a.oldest = snowflake.time_of(a.least_id) AND a.newest = snowflake.time_of(a.greatest_id) AS times,
       (a.least_id, a.greatest_id) = (SELECT min(id), max(id) FROM photos WHERE snowflake.shard_of(id) = a.shard) AS bounds, minted_by, finding
  FROM snowflake.audit('photos') AS a;

-- audit() returns a separate row for each kind of number that this database did not mint
INSERT INTO photos SELECT snowflake.make_id(now() - interval '1 day', 231, n, region => 4) FROM generate_series(0, 9) AS n;
INSERT INTO photos SELECT snowflake.make_id(now() - interval '1 day', 252, n, region => 3) FROM generate_series(0, 8) AS n;
INSERT INTO photos SELECT snowflake.make_id(now() + interval '1 day', 231, n, region => 3) FROM generate_series(0, 7) AS n;
INSERT INTO photos SELECT n FROM generate_series(1, 7) AS n;
INSERT INTO photos SELECT -n FROM generate_series(1, 6) AS n;
INSERT INTO photos SELECT snowflake.min_id(epoch + interval '1 hour') - 1 FROM snowflake.layout;
INSERT INTO photos SELECT snowflake.make_id(epoch + interval '1 hour', 231, 0, 3) FROM snowflake.layout;
SELECT region, shard, ids, least_id < 0 AS negative, minted_by, regexp_replace(finding, '\d{4}-[^;]*|\d+\.\d h', 'TIME', 'g') AS finding
  FROM snowflake.audit('photos', 'id');
SELECT sum(ids) = (SELECT count(*) FROM photos) AS every_row FROM snowflake.audit('photos');

-- Tests audit() of a column that is not a key and has NULLs, of a column of a domain type, and of a partitioned table
CREATE DOMAIN photo_id AS bigint;
CREATE TABLE comments (photo_id photo_id, note text) PARTITION BY LIST (note);
CREATE TABLE comments_a PARTITION OF comments FOR VALUES IN ('a');
CREATE TABLE comments_b PARTITION OF comments FOR VALUES IN ('b');
INSERT INTO comments SELECT id, CASE snowflake.shard_of(id) WHEN 232 THEN 'a' ELSE 'b' END FROM photos WHERE id > 0 AND snowflake.shard_of(id) IN (232, 233);
INSERT INTO comments VALUES (NULL, 'a'), (NULL, 'b');
SELECT region, shard, ids, minted_by, finding FROM snowflake.audit('comments', 'photo_id');
SELECT region, shard, ids, finding FROM snowflake.audit('comments_a', 'photo_id');

-- audit() treats ids that backfill() made like ids that the database has minted
CREATE TABLE old (id bigint DEFAULT snowflake.next_id(231), made timestamptz);
INSERT INTO old SELECT NULL, now() - n * interval '1 h' FROM generate_series(1, 50) AS n;
CREATE INDEX ON old (made) WHERE id IS NULL;
CALL snowflake.backfill('old', 'id', 'made', shard => 231, region => 28);
SELECT region, shard, ids, minted_by, finding FROM snowflake.audit('old', 'id');
INSERT INTO old SELECT snowflake.make_id(now() - interval '1 minute', 231, 0, region => 28);
SELECT region, shard, ids, minted_by, finding FROM snowflake.audit('old', 'id');

-- With a sample, audit() reads some pages, and shows only ids that are in these pages
CREATE TABLE many AS SELECT snowflake.next_id(231) AS id, repeat('x', 500) AS filler FROM generate_series(1, 20000);
SELECT ids = 20000 AS every_row FROM snowflake.audit('many', 'id');
SELECT sum(ids) BETWEEN 500 AND 12000 AS some FROM snowflake.audit('many', 'id', sample => 20);
SELECT count(*) <= 1 AS few FROM snowflake.audit('many', 'id', sample => 0.0001);

-- audit() only reads, does not wait for writers, and sees the snapshot of its statement
BEGIN READ ONLY;
SELECT sum(ids) FROM snowflake.audit('many', 'id');
COMMIT;
BEGIN;
INSERT INTO photos SELECT snowflake.next_id(230) FROM generate_series(1, 5000);
SELECT ids, finding FROM snowflake.audit('photos') WHERE shard = 230;
ROLLBACK;

-- The caller of audit() needs the right to read the rows, and statement_timeout ends audit()
CREATE ROLE regress_auditor;
GRANT USAGE ON SCHEMA audit TO regress_auditor;
GRANT SELECT (id) ON photos TO regress_auditor;
SET ROLE regress_auditor;
SELECT sum(ids) > 900 AS "by the column" FROM snowflake.audit('photos');
SELECT * FROM snowflake.audit('old', 'id');
\echo SQLSTATE :SQLSTATE
RESET ROLE;
ALTER TABLE photos ENABLE ROW LEVEL SECURITY;
SET ROLE regress_auditor;
SELECT * FROM snowflake.audit('photos');
\echo SQLSTATE :SQLSTATE
RESET ROLE;
ALTER TABLE photos DISABLE ROW LEVEL SECURITY;
CREATE VIEW slow AS SELECT id FROM photos, pg_sleep(60);
SET statement_timeout = '50ms';
SELECT * FROM snowflake.audit('slow', 'id');
\echo SQLSTATE :SQLSTATE
RESET statement_timeout;

-- Tests tables and columns for which audit() fails
SELECT * FROM snowflake.audit('photos', 'caption');
SELECT * FROM snowflake.audit('photos', 'nothing');
SELECT * FROM snowflake.audit('comments');
\echo SQLSTATE :SQLSTATE
SELECT * FROM snowflake.audit('photos', sample => 0);
SELECT * FROM snowflake.audit('photos', sample => 101);
SELECT * FROM snowflake.audit('photos', sample => 'NaN');
\echo SQLSTATE :SQLSTATE
SELECT * FROM snowflake.audit('photos', sample => NULL);
CREATE VIEW some_photos AS SELECT id FROM photos;
SELECT sum(ids) = (SELECT count(*) FROM photos) AS every_row FROM snowflake.audit('some_photos', 'id');
SELECT * FROM snowflake.audit('some_photos', 'id', sample => 50);
SELECT * FROM snowflake.audit('photos_pkey', 'id');
SELECT * FROM snowflake.audit(NULL);
\echo SQLSTATE :SQLSTATE
\set VERBOSITY terse
DROP OWNED BY regress_auditor;
DROP ROLE regress_auditor;
DELETE FROM snowflake.backfills WHERE relation = 'audit.old';
DROP SCHEMA audit CASCADE;
DROP EXTENSION snowflake_migrate;
