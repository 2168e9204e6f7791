-- Tests every way in which PostgreSQL evaluates a column default. All returned ids are in child tables of one parent
-- table. The parent table contains no id twice, and the ids of each shard increase in the order in which they were
-- returned.
CREATE SEQUENCE arrival;
CREATE TABLE minted (
  n bigint NOT NULL DEFAULT nextval('arrival'),
  id bigint NOT NULL DEFAULT snowflake.next_id(100),
  note text
);
CREATE VIEW verdict AS
  SELECT count(*) AS ids, count(*) - count(DISTINCT id) AS duplicates,
         count(*) FILTER (WHERE id <= previous) AS not_ascending
    FROM (SELECT id, lag(id) OVER (PARTITION BY snowflake.shard_of(id) ORDER BY n) AS previous
            FROM minted) AS m;

-- Mints by INSERT with one row, many rows, the keyword DEFAULT, SELECT, SELECT ... ORDER BY, and RETURNING
CREATE TABLE photos (PRIMARY KEY (id)) INHERITS (minted);
INSERT INTO photos (note) VALUES ('one');
INSERT INTO photos DEFAULT VALUES;
INSERT INTO photos (id, note) VALUES (DEFAULT, 'a'), (DEFAULT, 'b'), (DEFAULT, 'c');
INSERT INTO photos (note) SELECT 'series' FROM generate_series(1, 5000);
INSERT INTO photos (note) SELECT 'sorted ' || g FROM generate_series(1, 50) g ORDER BY g DESC LIMIT 20;
INSERT INTO photos (note) VALUES ('returned') RETURNING id = snowflake.last_id() AS returned_is_last,
  snowflake.shard_of(id) AS shard;
SELECT * FROM verdict;

-- If the argument of next_id() is a constant, each row gets its own id in every plan
SELECT count(*) AS rows, count(DISTINCT id) AS ids
  FROM (SELECT snowflake.next_id(101) AS id FROM generate_series(1, 3000)) s;
SELECT count(DISTINCT id) AS ids
  FROM (SELECT unnest(ARRAY[snowflake.next_id(101), snowflake.next_id(101)]) AS id
          FROM generate_series(1, 200)) s;

-- Mints by COPY: text, CSV with a column list, a WHERE clause
COPY photos (note) FROM stdin;
copied 1
copied 2
copied 3
\.
COPY photos (note) FROM stdin WITH (FORMAT csv);
"copied, quoted"
plain
\.
COPY photos (note) FROM stdin WHERE note <> 'left out';
kept
left out
\.
SELECT count(*) FROM photos WHERE note LIKE 'copied%' OR note IN ('plain', 'kept');
SELECT * FROM verdict;

-- The shard of each id comes from a column, with several shards in one statement
CREATE TABLE likes (PRIMARY KEY (id)) INHERITS (minted);
INSERT INTO likes (id) SELECT snowflake.next_id(110 + g % 7) FROM generate_series(1, 700) g;
SELECT snowflake.shard_of(id) AS shard, count(*) FROM likes GROUP BY 1 ORDER BY 1;

-- next_id() uses the value that snowflake.default_shard has when the row is made
CREATE TABLE defaulted (PRIMARY KEY (id)) INHERITS (minted);
ALTER TABLE defaulted ALTER id SET DEFAULT snowflake.next_id();
SET snowflake.default_shard = 120;
INSERT INTO defaulted (note) VALUES ('session');
BEGIN;
SET LOCAL snowflake.default_shard = 121;
INSERT INTO defaulted (note) VALUES ('local');
COMMIT;
INSERT INTO defaulted (note) VALUES ('session again');
RESET snowflake.default_shard;
SELECT note, snowflake.shard_of(id) AS shard FROM defaulted ORDER BY n;

-- Mints in PL/pgSQL: assignment, a loop, an exception that rolls back, COMMIT inside of a procedure
DO $$
DECLARE
  mine bigint;
BEGIN
  FOR i IN 1..100 LOOP
    mine := snowflake.next_id(100);
    INSERT INTO photos (id, note) VALUES (mine, 'assigned');
    IF mine <> snowflake.last_id() THEN RAISE 'last_id() is another id'; END IF;
  END LOOP;
  BEGIN
    INSERT INTO photos (note) VALUES ('rolled back') RETURNING id INTO mine;
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN
    INSERT INTO photos (id, note) VALUES (mine, 'returned, then rolled back');
  END;
  INSERT INTO photos (note) VALUES ('after the exception');
END $$;
CREATE PROCEDURE mint_and_commit(rounds int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..rounds LOOP
    INSERT INTO photos (note) SELECT 'procedure' FROM generate_series(1, 10);
    IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
  END LOOP;
END $$;
CALL mint_and_commit(10);
DROP PROCEDURE mint_and_commit;
SELECT count(*) FROM photos WHERE note = 'procedure';
SELECT * FROM verdict;

-- SQL functions, inlined and not
CREATE FUNCTION new_photo(text) RETURNS bigint LANGUAGE sql
  AS 'INSERT INTO photos (note) VALUES ($1) RETURNING id';
CREATE FUNCTION just_an_id() RETURNS bigint LANGUAGE sql AS 'SELECT snowflake.next_id(101)';
SELECT count(DISTINCT new_photo('function ' || g)) FROM generate_series(1, 20) g;
SELECT count(DISTINCT just_an_id()) FROM generate_series(1, 20) g;

-- Mints by prepared statements with custom plans and with generic plans
PREPARE add_photo(text) AS INSERT INTO photos (note) VALUES ($1);
EXECUTE add_photo('p1'); EXECUTE add_photo('p2'); EXECUTE add_photo('p3'); EXECUTE add_photo('p4');
EXECUTE add_photo('p5'); EXECUTE add_photo('p6'); EXECUTE add_photo('p7'); EXECUTE add_photo('p8');
SET plan_cache_mode = force_generic_plan;
PREPARE mint(int) AS INSERT INTO likes (id) VALUES (snowflake.next_id($1));
EXECUTE mint(110); EXECUTE mint(111); EXECUTE mint(110);
RESET plan_cache_mode;
SELECT count(*) FROM photos WHERE note LIKE 'p_';

-- An id that was minted in a subtransaction is never minted again, even after a rollback
BEGIN;
INSERT INTO photos (note) VALUES ('outer');
SAVEPOINT one;
SELECT snowflake.next_id(100) AS in_one, nextval('arrival') AS n_one \gset
SAVEPOINT two;
SELECT snowflake.next_id(100) AS in_two, nextval('arrival') AS n_two \gset
ROLLBACK TO two;
SELECT snowflake.last_id() = :in_two AS last_id_survives;
INSERT INTO photos (note) VALUES ('after two');
RELEASE two;
ROLLBACK TO one;
INSERT INTO photos (note) VALUES ('after one');
COMMIT;
INSERT INTO photos (n, id, note) VALUES (:n_one, :in_one, 'lost 1'), (:n_two, :in_two, 'lost 2');
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO photos (note) VALUES ('serializable');
COMMIT;
BEGIN;
INSERT INTO photos (note) VALUES ('prepared');
PREPARE TRANSACTION 'regress_snowflake';
INSERT INTO photos (note) VALUES ('beside it');
COMMIT PREPARED 'regress_snowflake';
SELECT * FROM verdict;

-- Tables made from queries
CREATE TABLE made AS SELECT snowflake.next_id(100) AS id FROM generate_series(1, 1000);
INSERT INTO photos (id, note) SELECT id, 'created as' FROM made ORDER BY id;
CREATE MATERIALIZED VIEW drawn AS SELECT snowflake.next_id(102) AS id FROM generate_series(1, 10);
SELECT max(id) AS drawn FROM drawn \gset
REFRESH MATERIALIZED VIEW drawn;
SELECT count(DISTINCT id) AS ids, min(id) > :drawn AS above_the_old FROM drawn;
SELECT snowflake.next_id(102) AS id INTO TEMP picked FROM generate_series(1, 3);
SELECT count(DISTINCT id) FROM picked;

-- A new column whose default is next_id() gives each row its own id. For a new column, PostgreSQL evaluates a default
-- once for all rows only if it is not volatile.
CREATE TABLE old (note text);
INSERT INTO old SELECT 'row ' || g FROM generate_series(1, 2500) g;
ALTER TABLE old ADD COLUMN id bigint PRIMARY KEY DEFAULT snowflake.next_id(100);
INSERT INTO old VALUES ('new row');
SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM old;
INSERT INTO photos (id, note) SELECT id, 'added column' FROM old ORDER BY id;
UPDATE old SET id = DEFAULT WHERE note LIKE 'row 1%';
SELECT count(DISTINCT id) AS ids FROM (SELECT id FROM old UNION SELECT id FROM photos) u;
SELECT * FROM verdict;

-- In tables that are partitioned by hash or by shard, the id from the default decides the partition of a row
CREATE TABLE hashed (id bigint PRIMARY KEY DEFAULT snowflake.next_id(100), note text)
  PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO hashed (note) SELECT 'hashed' FROM generate_series(1, 400);
COPY hashed (note) FROM stdin;
hashed by copy
hashed by copy
\.
SELECT count(*), count(DISTINCT id) AS ids, count(DISTINCT tableoid) AS partitions FROM hashed;
INSERT INTO photos (id, note) SELECT id, note FROM hashed ORDER BY id;
CREATE TABLE sharded (id bigint NOT NULL) PARTITION BY LIST (snowflake.shard_of(id));
CREATE TABLE sharded_130 PARTITION OF sharded FOR VALUES IN (130);
CREATE TABLE sharded_131 PARTITION OF sharded FOR VALUES IN (131);
INSERT INTO sharded SELECT snowflake.next_id(130 + g % 2) FROM generate_series(1, 100) g;
SELECT tableoid::regclass, count(*), min(snowflake.shard_of(id)), max(snowflake.shard_of(id))
  FROM sharded GROUP BY 1 ORDER BY 1;

-- ON CONFLICT uses up an id that no row gets. MERGE mints for the rows that it inserts.
CREATE TABLE users (name text UNIQUE) INHERITS (minted);
INSERT INTO users (name) VALUES ('ann'), ('ben') ON CONFLICT (name) DO NOTHING;
INSERT INTO users (name) VALUES ('ann'), ('cat') ON CONFLICT (name) DO NOTHING;
INSERT INTO users (name) VALUES ('ann') ON CONFLICT (name)
  DO UPDATE SET id = EXCLUDED.id, n = EXCLUDED.n
  RETURNING id = snowflake.last_id() AS excluded_is_last;
MERGE INTO users USING (VALUES ('ben'), ('dan')) AS v (name) ON users.name = v.name
  WHEN MATCHED THEN UPDATE SET note = 'merged'
  WHEN NOT MATCHED THEN INSERT (name) VALUES (v.name);
SELECT name, note FROM users ORDER BY name;
SELECT * FROM verdict;

-- Mints in triggers, views, foreign keys and data-modifying CTEs
CREATE TABLE audit (of bigint NOT NULL) INHERITS (minted);
CREATE FUNCTION note_it() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO audit (of) VALUES (NEW.id);
  RETURN NEW;
END $$;
CREATE TRIGGER noted AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION note_it();
CREATE FUNCTION give_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.id := snowflake.next_id(103);
  RETURN NEW;
END $$;
CREATE TABLE given (id bigint PRIMARY KEY, note text);
CREATE TRIGGER given BEFORE INSERT ON given FOR EACH ROW EXECUTE FUNCTION give_id();
INSERT INTO users (name) SELECT 'user ' || g FROM generate_series(1, 50) g;
INSERT INTO given (note) SELECT 'given' FROM generate_series(1, 50);
SELECT count(*) AS audited, bool_and(audit.id > of) AS later FROM audit JOIN users ON of = users.id;
SELECT count(*) AS given, bool_and(snowflake.shard_of(id) = 103) AS by_trigger FROM given;
CREATE VIEW album AS SELECT id, note FROM photos;
ALTER VIEW album ALTER id SET DEFAULT snowflake.next_id(104);
INSERT INTO album (note) VALUES ('by the view''s default')
  RETURNING snowflake.shard_of(id) AS shard;
DROP VIEW album;
ALTER TABLE given ADD COLUMN photo bigint REFERENCES photos (id);
WITH p AS (INSERT INTO photos (note) VALUES ('parent 1'), ('parent 2') RETURNING id)
INSERT INTO given (photo) SELECT id FROM p;
SELECT count(*) FROM given JOIN photos ON photos.id = photo;
SELECT * FROM verdict;

-- FETCH BACKWARD of a cursor evaluates next_id() again and mints new ids. A cursor WITH HOLD returns the same id again
-- after the commit.
BEGIN;
DECLARE forth SCROLL CURSOR FOR SELECT snowflake.next_id(100) AS id FROM generate_series(1, 5);
FETCH NEXT FROM forth \gset one_
FETCH NEXT FROM forth \gset two_
FETCH PRIOR FROM forth \gset back_
FETCH LAST FROM forth \gset five_
SELECT :one_id < :two_id AND :two_id < :back_id AND :back_id < :five_id AS ascending;
DECLARE kept SCROLL CURSOR WITH HOLD FOR SELECT snowflake.next_id(100) AS id FROM generate_series(1, 5);
COMMIT;
FETCH FIRST FROM kept \gset kept_
FETCH LAST FROM kept \gset last_
FETCH FIRST FROM kept \gset again_
SELECT :kept_id > :five_id AND :last_id > :kept_id AS ascending, :again_id = :kept_id AS kept;
CLOSE kept;
INSERT INTO photos (id, note) SELECT unnest(ARRAY[:one_id, :two_id, :back_id, :five_id, :kept_id, :last_id]), 'cursor';

-- Minting leaves no transaction id and no lock behind, even if the call writes the high-water mark. After the pause the
-- call must write the high-water mark, because the clock has passed it.
SELECT pg_sleep(1.3);
BEGIN;
SELECT last_value AS mark FROM snowflake.high_water \gset
SELECT snowflake.next_id(105) > 0 AS minted;
SELECT last_value > :mark AS mark_written FROM snowflake.high_water;
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
SELECT count(*) FILTER (WHERE mode <> 'AccessShareLock') AS locks_kept
  FROM pg_locks WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid';
COMMIT;

-- Unlogged and temporary tables mint like any other table
CREATE UNLOGGED TABLE fast (id bigint PRIMARY KEY DEFAULT snowflake.next_id(100));
CREATE TEMP TABLE scratch (id bigint PRIMARY KEY DEFAULT snowflake.next_id(100));
INSERT INTO fast SELECT FROM generate_series(1, 100);
INSERT INTO scratch SELECT FROM generate_series(1, 100);
INSERT INTO photos (id, note) SELECT id, 'fast' FROM fast ORDER BY id;
INSERT INTO photos (id, note) SELECT id, 'scratch' FROM scratch ORDER BY id;

-- The ids of a new session are greater than the ids of the previous session
SELECT max(id) AS before FROM photos \gset
\c -
INSERT INTO photos (note) VALUES ('new session') RETURNING id > :before AS above_all;
SELECT * FROM verdict;
SELECT count(*) - count(DISTINCT id) AS duplicates FROM (
  SELECT id FROM minted UNION ALL SELECT id FROM sharded UNION ALL SELECT id FROM given
  UNION ALL SELECT id FROM drawn) AS everywhere;
