-- Tests functions that find rows by the shard of their ids: conditions that prune partitions, the trigger set_id(), and
-- schemas by shard.
CREATE EXTENSION snowflake_migrate;
SET timezone = 'UTC';
CREATE SCHEMA routing;
SET search_path = routing;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- has_id(id, key) finds a row in a table that is partitioned or indexed by shard_of(id)
CREATE TABLE routed (id bigint, n int) PARTITION BY LIST (snowflake.shard_of(id));
CREATE TABLE routed_1 PARTITION OF routed FOR VALUES IN (1);
CREATE TABLE routed_2 PARTITION OF routed FOR VALUES IN (2);
CREATE INDEX ON routed (id);
INSERT INTO routed SELECT snowflake.make_id('2026-01-01', 1 + n % 2, n), n FROM generate_series(0, 99) AS n;
SELECT snowflake.make_id('2026-01-01', 2, 7) AS key \gset
EXPLAIN (COSTS OFF) SELECT n FROM routed WHERE snowflake.has_id(id, 287011189555202055);
SELECT n FROM routed WHERE snowflake.has_id(id, :key);
SELECT n FROM routed WHERE snowflake.has_id(id, :key + 1);
SET plan_cache_mode = force_generic_plan;
PREPARE by_key(bigint) AS SELECT n FROM routed WHERE snowflake.has_id(id, $1);
EXPLAIN (COSTS OFF) EXECUTE by_key(:key);
EXECUTE by_key(:key);
RESET plan_cache_mode;
SELECT count(*) FROM routed WHERE snowflake.has_id(id, NULL);

-- has_id(shard, id, key) finds a row in a table that has the shard in a column
CREATE TABLE carried (shard int, id bigint, n int, PRIMARY KEY (shard, id), CHECK (shard = snowflake.shard_of(id)))
  PARTITION BY LIST (shard);
CREATE TABLE carried_1 PARTITION OF carried FOR VALUES IN (1);
CREATE TABLE carried_2 PARTITION OF carried FOR VALUES IN (2);
INSERT INTO carried SELECT snowflake.shard_of(id), id, n FROM routed;
EXPLAIN (COSTS OFF) SELECT n FROM carried WHERE snowflake.has_id(shard, id, 287011189555202055);
SELECT n FROM carried WHERE snowflake.has_id(shard, id, :key);
SELECT n FROM carried WHERE snowflake.has_id(shard, id, NULL);
RESET enable_seqscan;
RESET enable_bitmapscan;

-- set_id() mints in the shard of another column's id
CREATE TABLE users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(7));
CREATE TABLE posts (id bigint PRIMARY KEY, user_id bigint REFERENCES users, note text);
CREATE TRIGGER posts_id BEFORE INSERT ON posts FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('user_id');
INSERT INTO users DEFAULT VALUES;
INSERT INTO users VALUES (snowflake.next_id(8));
INSERT INTO posts (user_id, note) SELECT id, 'one of ' || n FROM users, generate_series(1, 500) AS n;
SELECT snowflake.shard_of(user_id) AS user, snowflake.shard_of(id) AS post, count(*), count(DISTINCT id) AS ids
  FROM posts GROUP BY 1, 2 ORDER BY 1;
COPY posts (user_id, note) FROM STDIN;
\N	of nobody
\.
-- A row that is inserted with an id keeps the id
INSERT INTO posts (id, note) VALUES (42, 'by hand') RETURNING *;
INSERT INTO posts (user_id, note) SELECT min(id), 'returned' FROM users RETURNING snowflake.shard_of(id), id = snowflake.last_id() AS last;
INSERT INTO posts (note) VALUES ('of nobody');
\echo SQLSTATE :SQLSTATE
-- set_id() can set another column for the id, and columns that ALTER TABLE added
CREATE TABLE comments (gone int, post_id bigint, note text);
ALTER TABLE comments DROP COLUMN gone;
ALTER TABLE comments ADD COLUMN comment_id bigint;
CREATE TRIGGER comments_id BEFORE INSERT ON comments FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('post_id', 'comment_id');
INSERT INTO comments (post_id, note) SELECT max(id), 'first' FROM posts RETURNING snowflake.shard_of(comment_id), note;
-- The table may be partitioned by the column from which set_id() takes the shard
CREATE TABLE by_user (id bigint, user_id bigint) PARTITION BY HASH (user_id snowflake.by_shard);
CREATE TABLE by_user_0 PARTITION OF by_user FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE by_user_1 PARTITION OF by_user FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TRIGGER by_user_id BEFORE INSERT ON by_user FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('user_id');
INSERT INTO by_user (user_id) SELECT id FROM users RETURNING tableoid::regclass, snowflake.shard_of(id);
-- The table may not be partitioned by the column that the trigger sets, because PostgreSQL chooses the partition before
-- the trigger runs
CREATE TABLE by_id (id bigint, user_id bigint) PARTITION BY HASH (id snowflake.by_shard);
CREATE TABLE by_id_0 PARTITION OF by_id FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE by_id_1 PARTITION OF by_id FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TRIGGER by_id_id BEFORE INSERT ON by_id FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('user_id');
\set VERBOSITY terse
INSERT INTO by_id (user_id) SELECT min(id) FROM users;
\set VERBOSITY default
\echo SQLSTATE :SQLSTATE
DROP TABLE by_id;
-- CREATE TRIGGER is refused if the trigger could not set an id
CREATE TRIGGER again BEFORE INSERT ON comments FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('nothing');
\echo SQLSTATE :SQLSTATE
CREATE TRIGGER again BEFORE INSERT ON comments FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('note', 'comment_id');
\echo SQLSTATE :SQLSTATE
CREATE TRIGGER again BEFORE INSERT ON comments FOR EACH ROW EXECUTE FUNCTION snowflake.set_id();
\echo SQLSTATE :SQLSTATE
CREATE TRIGGER again BEFORE INSERT ON comments FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('post_id', 'comment_id', 'note');
\echo SQLSTATE :SQLSTATE
CREATE TRIGGER again BEFORE INSERT ON comments FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('', 'comment_id', 'hash');
CREATE TRIGGER again BEFORE UPDATE ON comments FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('post_id', 'comment_id');
\echo SQLSTATE :SQLSTATE
CREATE TRIGGER again BEFORE INSERT OR UPDATE ON comments FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('post_id', 'comment_id');
CREATE TRIGGER again AFTER INSERT ON comments FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('post_id', 'comment_id');
CREATE TRIGGER again BEFORE INSERT ON comments FOR EACH STATEMENT EXECUTE FUNCTION snowflake.set_id('post_id', 'comment_id');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'comments'::regclass AND tgname = 'again';
-- The columns of each partition are checked like the columns of its table. If a column that the trigger uses is renamed
-- later, the next INSERT fails.
CREATE TABLE checked (id bigint, owner bigint) PARTITION BY LIST (owner);
CREATE TABLE checked_part (owner bigint, unused text, id bigint);
CREATE TRIGGER checked_id BEFORE INSERT ON checked FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('owner');
ALTER TABLE checked_part DROP COLUMN unused;
ALTER TABLE checked ATTACH PARTITION checked_part DEFAULT;
ALTER TABLE checked RENAME owner TO holder;
INSERT INTO checked (holder) SELECT max(id) FROM posts;
\echo SQLSTATE :SQLSTATE
DROP TABLE checked;
CREATE TRIGGER again BEFORE INSERT ON comments FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('', 'comment_id');
INSERT INTO comments (comment_id, post_id) VALUES (1, 1);
\echo SQLSTATE :SQLSTATE
DROP TRIGGER again ON comments;
SELECT snowflake.set_id();
\echo SQLSTATE :SQLSTATE

-- For clients that insert NULL, set_id() sets the value of the column's default
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), code text DEFAULT snowflake.to_base62(snowflake.next_id(6)), caption text);
CREATE TRIGGER photos_id BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION snowflake.set_id();
CREATE TRIGGER photos_code BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('', 'code');
INSERT INTO photos SELECT NULL, NULL, 'one of ' || n FROM generate_series(1, 500) AS n;
INSERT INTO photos SELECT p.* FROM json_populate_recordset(NULL::photos, '[{"id": null, "caption": "json"}, {"caption": "json"}]') AS p;
COPY photos FROM STDIN;
\N	\N	of nobody
42	by hand	brings both
\.
SELECT count(*), count(DISTINCT code) AS codes, count(*) FILTER (WHERE snowflake.shard_of(id) = 5) AS "5", count(*) FILTER (WHERE snowflake.shard_of(snowflake.from_base62(code)) = 6) AS "6"
  FROM photos WHERE id <> 42;
TABLE photos ORDER BY id LIMIT 1;
-- minting_columns() lists the column that set_id() fills, and set_id() refuses a default that does not mint
CREATE TABLE counted (id bigserial PRIMARY KEY, caption text);
CREATE TRIGGER counted_id BEFORE INSERT ON counted FOR EACH ROW EXECUTE FUNCTION snowflake.set_id();
INSERT INTO counted VALUES (NULL, 'by its sequence') RETURNING *;
SELECT * FROM snowflake.minting_columns() WHERE relation IN ('photos'::regclass, 'counted'::regclass);
-- set_id() uses the default of a partition and of a domain
CREATE DOMAIN key AS bigint DEFAULT snowflake.next_id(9);
CREATE TABLE parts (id key, n int) PARTITION BY LIST (n);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TRIGGER parts_id BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION snowflake.set_id();
INSERT INTO parts VALUES (NULL, 1) RETURNING snowflake.shard_of(id);
DROP TABLE photos, counted, parts;
DROP DOMAIN key;

-- schema_of() returns the name of the schema of an id's shard
SELECT snowflake.schema_of(:key), snowflake.schema_of(:key, 'photos_'), snowflake.schema_of(NULL) IS NULL AS null;
SELECT snowflake.schema_of(id) AS schema, count(*) FROM routed GROUP BY 1 ORDER BY 1;
DROP TABLE by_user, routed, carried, posts, users, comments;
DROP EXTENSION snowflake_migrate;
