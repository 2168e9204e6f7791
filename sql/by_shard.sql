-- Tests partitions by shard: PARTITION BY HASH (id snowflake.by_shard).
SET timezone = 'UTC';
CREATE SCHEMA by_shard;
SET search_path = by_shard;

-- Of eight partitions, partition p has the shards s with s % 8 = p. This holds for every shard of the layout and for
-- ids of all servers.
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)
  PARTITION BY HASH (id snowflake.by_shard);
SELECT format('CREATE TABLE photos_%s PARTITION OF photos FOR VALUES WITH (MODULUS 8, REMAINDER %1$s)', r)
  FROM generate_series(0, 7) AS r \gexec
INSERT INTO photos
  SELECT snowflake.make_id(timestamptz '2026-01-01' + shard * interval '1.7 s', shard, shard, region), 'imported'
    FROM generate_series(0, 255) AS shard, generate_series(0, 31) AS region;
CREATE VIEW misplaced AS
  SELECT tableoid::regclass AS partition, id, caption FROM photos
   WHERE tableoid::regclass::text <> 'photos_' || snowflake.shard_of(id) % 8;
SELECT count(*) AS rows, count(DISTINCT tableoid) AS partitions FROM photos;
SELECT * FROM misplaced;
-- Tests rows whose ids come from DEFAULT, from COPY and from a query, and an UPDATE that moves the row
INSERT INTO photos (caption) SELECT 'minted' FROM generate_series(1, 100);
INSERT INTO photos SELECT snowflake.next_id(n), 'minted' FROM generate_series(16, 31) AS n;
COPY photos FROM STDIN;
0	foreign
1023	foreign
1024	foreign
-1	foreign
-9223372036854775808	foreign
9223372036854775807	foreign
\.
SELECT tableoid::regclass AS partition, id FROM photos WHERE caption = 'foreign' ORDER BY id;
SELECT * FROM misplaced WHERE id >= 0;
UPDATE photos SET id = snowflake.make_id('2026-02-01', 6, 0) WHERE id = snowflake.make_id('2026-01-01', 0, 0)
  RETURNING tableoid::regclass AS partition;
SELECT tableoid::regclass AS partition, count(*) FROM photos WHERE caption = 'minted' GROUP BY 1 ORDER BY 1;
-- If a row is inserted into the wrong partition, the partition refuses the row
INSERT INTO photos_3 VALUES (snowflake.make_id('2026-02-01', 4, 0));
\echo SQLSTATE :SQLSTATE
INSERT INTO photos_3 VALUES (snowflake.make_id('2026-02-01', 11, 0));

-- The primary key is unique over all partitions
INSERT INTO photos VALUES (snowflake.make_id('2026-02-01', 6, 0), 'twice');
\echo SQLSTATE :SQLSTATE
INSERT INTO photos VALUES (snowflake.make_id('2026-02-01', 6, 0), 'upserted'), (snowflake.make_id('2026-02-01', 7, 0), 'new')
  ON CONFLICT (id) DO UPDATE SET caption = excluded.caption RETURNING tableoid::regclass AS partition, caption;
MERGE INTO photos AS p USING (VALUES (snowflake.make_id('2026-02-01', 7, 0))) AS v (id) ON p.id = v.id
  WHEN MATCHED THEN UPDATE SET caption = 'merged';
SELECT tableoid::regclass AS partition, caption FROM photos WHERE id = snowflake.make_id('2026-02-01', 7, 0);
DELETE FROM photos WHERE id = snowflake.make_id('2026-02-01', 7, 0) RETURNING tableoid::regclass AS partition;

-- Tests foreign keys between tables that are partitioned by shard
CREATE TABLE likes (id bigint PRIMARY KEY, photo_id bigint NOT NULL REFERENCES photos ON DELETE CASCADE)
  PARTITION BY HASH (id snowflake.by_shard);
SELECT format('CREATE TABLE likes_%s PARTITION OF likes FOR VALUES WITH (MODULUS 8, REMAINDER %1$s)', r)
  FROM generate_series(0, 7) AS r \gexec
INSERT INTO likes SELECT snowflake.next_id(snowflake.shard_of(id)), id FROM photos WHERE caption = 'minted';
SELECT count(*) AS likes, count(*) FILTER (WHERE snowflake.shard_of(l.id) = snowflake.shard_of(p.id)) AS beside_their_photo
  FROM likes AS l JOIN photos AS p ON p.id = photo_id;
INSERT INTO likes VALUES (snowflake.next_id(5), snowflake.make_id('2027-01-01', 5, 0));
\echo SQLSTATE :SQLSTATE
DELETE FROM photos WHERE caption = 'minted' AND snowflake.shard_of(id) = 16;
SELECT count(*) AS likes FROM likes;

-- Tests pruning with constants of every integer type, on either side of the operator, and with numbers that are no ids
ANALYZE photos, likes;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM photos WHERE id = 123456789012345678;
EXPLAIN (COSTS OFF) SELECT * FROM photos WHERE id IN (5120, 6144, 13312);
EXPLAIN (COSTS OFF) UPDATE photos SET caption = '' WHERE id = 5120;
RESET enable_bitmapscan;
RESET enable_seqscan;
-- Shows the partitions that a plan reads. If the plan prunes at execution, shows the partitions that were read.
CREATE FUNCTION partitions_read(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
  RETURN coalesce(string_agg(DISTINCT node ->> 'Relation Name', ' '), 'none')
    FROM jsonb_path_query(plan, '$.** ? (exists (@."Relation Name") && @."Actual Loops" > 0)') AS node;
END
$$;
SELECT condition, partitions_read('SELECT * FROM photos WHERE ' || condition)
  FROM unnest(ARRAY['id = 5120', 'id = 5120::smallint', '5120 = id', 'id = -1', 'id = -1::bigint', 'id = (-1)::smallint', 'id = 0',
    'id = ANY (''{-1,5120}'')', 'id IN (5120, 6144, 13312)', 'id = 5120 OR id = 6144', 'id = 5120 AND id = 6144',
    'id IS NULL', 'id = NULL', 'id = 9223372036854775807', 'id = (SELECT 5120)', 'id = 5120 AND caption IS NULL',
    'id > 5120']) AS condition;
SELECT partitions_read('DELETE FROM likes WHERE id = 5120'), partitions_read('UPDATE likes SET id = id WHERE id IN (-1, 0)');
-- Queries find the same rows with and without partition pruning
CREATE TABLE sample AS SELECT id FROM photos WHERE id <> -1 ORDER BY hashint8(id) LIMIT 1000;
INSERT INTO sample VALUES (-1), (0), (1023), (1024), (9223372036854775807), (-9223372036854775808);
ANALYZE sample;
CREATE FUNCTION found(bigint) RETURNS bigint LANGUAGE plpgsql
  AS 'BEGIN RETURN count(*) FROM photos WHERE id = $1; END';
SELECT count(*), min(found(id)) AS least, max(found(id)) AS most FROM sample;
SET plan_cache_mode = force_generic_plan;
SELECT count(*), min(found(id)) AS least, max(found(id)) AS most FROM sample;
-- Generic plans prune partitions at execution
PREPARE one(bigint) AS SELECT caption FROM photos WHERE id = $1;
EXPLAIN (COSTS OFF) EXECUTE one(5120);
PREPARE small(integer) AS SELECT caption FROM photos WHERE id = $1;
PREPARE several(bigint[]) AS SELECT caption FROM photos WHERE id = ANY ($1);
SELECT partitions_read('EXECUTE one(5120)') AS one, partitions_read('EXECUTE one(-1)') AS foreign,
       partitions_read('EXECUTE small(-1)') AS small, partitions_read('EXECUTE several(''{5120,6144,-1}'')') AS several;
EXECUTE several('{1024,1023,-1}');
RESET plan_cache_mode;
-- A nested loop join prunes partitions for each row
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT caption FROM (VALUES (1024::bigint), (1024 + 8192)) AS v (id) JOIN photos USING (id);
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT partitions_read('SELECT caption FROM (VALUES (1024::bigint), (1024 + 8192)) AS v (id) JOIN photos USING (id)');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;

-- Tests joins and aggregates partition by partition. Table tags is partitioned by a column that refers to photos, so
-- its rows are next to the rows of photos.
CREATE TABLE tags (photo_id bigint NOT NULL, tag text) PARTITION BY HASH (photo_id snowflake.by_shard);
SELECT format('CREATE TABLE tags_%s PARTITION OF tags FOR VALUES WITH (MODULUS 8, REMAINDER %1$s)', r)
  FROM generate_series(0, 7) AS r \gexec
INSERT INTO tags SELECT id, 'tag ' || n FROM photos, generate_series(1, 2) AS n WHERE id > 0;
ANALYZE tags;
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
EXPLAIN (COSTS OFF) SELECT count(*) FROM photos JOIN tags ON id = photo_id;
EXPLAIN (COSTS OFF) SELECT photo_id, count(*) FROM tags GROUP BY photo_id;
SELECT count(*) FROM photos JOIN tags ON id = photo_id;
SELECT count(*), sum(n) FROM (SELECT photo_id, count(*) AS n FROM tags GROUP BY photo_id) AS t;
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;
SELECT count(*) FROM photos JOIN tags ON id = photo_id;

-- Splits four partitions into eight, one after the other
CREATE TABLE split (id bigint PRIMARY KEY, n int) PARTITION BY HASH (id snowflake.by_shard);
SELECT format('CREATE TABLE split_4_%s PARTITION OF split FOR VALUES WITH (MODULUS 4, REMAINDER %1$s)', r)
  FROM generate_series(0, 3) AS r \gexec
INSERT INTO split SELECT snowflake.make_id('2026-01-01', n % 256, n / 8, n % 32), n FROM generate_series(0, 8191) AS n;
SELECT format($$
  BEGIN;
  ALTER TABLE split DETACH PARTITION split_4_%1$s;
  CREATE TABLE split_8_%1$s PARTITION OF split FOR VALUES WITH (MODULUS 8, REMAINDER %1$s);
  CREATE TABLE split_8_%2$s PARTITION OF split FOR VALUES WITH (MODULUS 8, REMAINDER %2$s);
  INSERT INTO split SELECT * FROM split_4_%1$s;
  DROP TABLE split_4_%1$s;
  COMMIT
  $$, r, r + 4) FROM generate_series(0, 1) AS r \gexec
SELECT tableoid::regclass AS partition, count(*),
       string_agg(DISTINCT (snowflake.shard_of(id) % 8)::text, ',') AS shards_modulo_8
  FROM split GROUP BY 1 ORDER BY 1::text;
-- ATTACH PARTITION checks every row
CREATE TABLE split_other (LIKE split INCLUDING ALL);
INSERT INTO split_other SELECT * FROM split_4_2;
INSERT INTO split_other VALUES (snowflake.make_id('2026-01-01', 3, 1));
ALTER TABLE split DETACH PARTITION split_4_2;
ALTER TABLE split ATTACH PARTITION split_other FOR VALUES WITH (MODULUS 4, REMAINDER 2);
\echo SQLSTATE :SQLSTATE
DELETE FROM split_other WHERE snowflake.shard_of(id) = 3;
ALTER TABLE split ATTACH PARTITION split_other FOR VALUES WITH (MODULUS 4, REMAINDER 2);
SELECT count(*), sum(n) FROM split;

-- The operator class by_shard does not affect other uses of bigint: hashint8, the default operator class, joins,
-- indexes, DISTINCT
SELECT opcname, opcnamespace::regnamespace FROM pg_opclass
 WHERE opcintype = 'bigint'::regtype AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'hash') AND opcdefault;
SELECT hashint8(123456789012345678), hashint8extended(123456789012345678, 0);
CREATE TABLE plain (id bigint) PARTITION BY HASH (id);
SELECT format('CREATE TABLE plain_%s PARTITION OF plain FOR VALUES WITH (MODULUS 4, REMAINDER %1$s)', r)
  FROM generate_series(0, 3) AS r \gexec
INSERT INTO plain SELECT id FROM sample;
SELECT count(*) AS moved FROM plain
 WHERE NOT satisfies_hash_partition('plain'::regclass, 4, right(tableoid::regclass::text, 1)::int, id);
CREATE INDEX ON sample USING hash (id);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM sample WHERE id = 5120;
SELECT count(*) FROM sample WHERE id = 1024;
RESET enable_seqscan;
EXPLAIN (COSTS OFF) SELECT DISTINCT id FROM sample;
SELECT count(*) FROM (SELECT DISTINCT id FROM sample) AS s;
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM sample JOIN plain USING (id);
SELECT count(*) FROM sample JOIN plain USING (id);
SELECT count(*) FROM generate_series(1, 100) AS a (n) JOIN generate_series(50::bigint, 150) AS b (n) USING (n);
RESET enable_mergejoin;
RESET enable_nestloop;
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'by_shard';

-- DROP EXTENSION with CASCADE would drop tables that are partitioned by shard or by an expression, with their rows. For
-- this reason DROP EXTENSION with CASCADE is refused while such tables exist.
SET client_min_messages = error;
CREATE TABLE by_expression (id bigint) PARTITION BY LIST (snowflake.shard_of(id));
\set VERBOSITY sqlstate
DROP EXTENSION snowflake CASCADE;
\set VERBOSITY default
DROP TABLE likes, tags, photos, by_expression CASCADE;
DROP EXTENSION snowflake CASCADE;
\echo SQLSTATE :SQLSTATE
DROP OPERATOR CLASS snowflake.by_shard USING hash CASCADE;
\echo SQLSTATE :SQLSTATE
DROP SCHEMA snowflake CASCADE;
\echo SQLSTATE :SQLSTATE
SELECT count(*) FROM split;
BEGIN;
CREATE TABLE late (id bigint) PARTITION BY HASH (id snowflake.by_shard);
DROP TABLE split;
SAVEPOINT s;
DROP EXTENSION snowflake CASCADE;
\echo SQLSTATE :SQLSTATE
ROLLBACK TO s;
DROP TABLE late;
DROP EXTENSION snowflake CASCADE;
\echo SQLSTATE :SQLSTATE
ROLLBACK;
SELECT count(*) FROM split;
DROP TABLE split, plain, sample;
