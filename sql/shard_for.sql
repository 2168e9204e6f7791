-- shard_for() computes a shard for any key, by a hash that other programs can compute, too. The expected results of
-- shard_for() must never change, because applications store rows by the shard of their key.
CREATE EXTENSION snowflake_migrate;
CREATE SCHEMA by_hash;
SET search_path = by_hash;
SET timezone = 'UTC';
SET datestyle = ISO;
SELECT key, snowflake.shard_for(key) FROM unnest(ARRAY[0, 1, 5, -1, 9223372036854775807, -9223372036854775808]::bigint[]) AS key;
SELECT left(key, 20) AS key, snowflake.shard_for(key) FROM unnest(ARRAY['', 'ann@example.org', 'Ann@example.org', 'Müller', repeat('long', 1000)]) AS key;
SELECT key, snowflake.shard_for(key) FROM unnest(ARRAY['01941f29-7c00-7000-abcd-ef9876543210', '00000000-0000-0000-0000-000000000000']::uuid[]) AS key;

-- shard_for() returns the same shards as a computation with the server's SHA-256
CREATE FUNCTION pg_temp.worked_out(key text) RETURNS integer LANGUAGE sql AS $$
  SELECT (('x' || left(encode(sha256(convert_to(key, 'UTF8')), 'hex'), 8))::bit(32)::bigint * shards >> 32)::integer FROM snowflake.layout $$;
SELECT count(*) FILTER (WHERE snowflake.shard_for(n) <> pg_temp.worked_out(n::text)) AS numbers,
       count(*) FILTER (WHERE snowflake.shard_for(-n * 92233720368547758) <> pg_temp.worked_out((-n * 92233720368547758)::text)) AS negative,
       count(*) FILTER (WHERE snowflake.shard_for(repeat('ä' || n, n)) <> pg_temp.worked_out(repeat('ä' || n, n))) AS texts,
       count(*) FILTER (WHERE snowflake.shard_for(md5(n::text)::uuid) <> pg_temp.worked_out(md5(n::text)::uuid::text)) AS uuids,
       count(DISTINCT snowflake.shard_for(n)) AS shards
  FROM generate_series(1, 100) AS n;

-- A key has the same shard as a number, as text, as an untyped literal or parameter, and in every integer type
SELECT snowflake.shard_for(1234) = snowflake.shard_for('1234') AND snowflake.shard_for(1234::smallint) = snowflake.shard_for(1234::bigint) AS same;
PREPARE by_key AS SELECT snowflake.shard_for($1) = snowflake.shard_for(1234);
EXECUTE by_key('1234');
DEALLOCATE by_key;
SELECT snowflake.shard_for('01941F29-7C00-7000-ABCD-EF9876543210'::uuid) = snowflake.shard_for('01941f29-7c00-7000-abcd-ef9876543210'::text) AS same;

-- The collation of a key does not change its shard. shard_for() refuses a collation under which texts with different
-- bytes can be equal.
CREATE COLLATION german (provider = icu, locale = 'de');
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT snowflake.shard_for('ä' COLLATE german) = snowflake.shard_for('ä' COLLATE "C") AS same;
SELECT snowflake.shard_for('ä' COLLATE any_case);
\echo SQLSTATE :SQLSTATE
CREATE TABLE names (a text COLLATE german, b text COLLATE "C");
INSERT INTO names VALUES ('a', 'b');
SELECT snowflake.shard_for(a || b) FROM names;
\echo SQLSTATE :SQLSTATE
SELECT snowflake.shard_for(NULL::bigint) IS NULL AND snowflake.shard_for(NULL::uuid) IS NULL AND snowflake.shard_for(NULL::text) IS NULL AS null;

-- shard_for() can be used in an index, a generated column and a partition key
CREATE TABLE tenants (name text, shard integer GENERATED ALWAYS AS (snowflake.shard_for(name)) STORED);
CREATE INDEX ON tenants (snowflake.shard_for(name));
INSERT INTO tenants VALUES ('ann@example.org') RETURNING shard;

-- Keys are spread evenly: chi-square over the 256 shards is within six standard deviations of chance
SELECT kind, abs(sum((n - 20000 / 256.0) ^ 2 / (20000 / 256.0)) - 255) / sqrt(2 * 255) < 6 AS even
  FROM (SELECT 'number' AS kind, shard, count(k) AS n FROM generate_series(0, 255) AS shard LEFT JOIN generate_series(1, 20000) AS k ON snowflake.shard_for(k) = shard GROUP BY 2
        UNION ALL
        SELECT 'text', shard, count(k) FROM generate_series(0, 255) AS shard LEFT JOIN generate_series(1, 20000) AS k ON snowflake.shard_for('tenant ' || k) = shard GROUP BY 2) AS s
 GROUP BY kind ORDER BY kind;

-- set_id('...', 'hash') takes the shard of a key that is not an id
CREATE TABLE orders (id bigint PRIMARY KEY, customer text);
CREATE TRIGGER orders_id BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('customer', 'hash');
CREATE TABLE owned AS SELECT 'customer ' || n AS customer FROM generate_series(1, 2000) AS n WHERE snowflake.shard_for('customer ' || n) < 60;
INSERT INTO orders (customer) SELECT customer FROM owned;
SELECT count(*) = (SELECT count(*) FROM owned) AND count(*) > 380 AS "all", count(*) FILTER (WHERE snowflake.shard_of(id) <> snowflake.shard_for(customer)) AS elsewhere,
       count(DISTINCT snowflake.shard_of(id)) = 60 AS spread FROM orders;
INSERT INTO orders (customer) VALUES (NULL);
\echo SQLSTATE :SQLSTATE
INSERT INTO orders VALUES (17, 'brings its own') RETURNING id;
-- The trigger set_id() accepts keys of every type that shard_for() accepts, and can set another column than "id"
CREATE DOMAIN code AS varchar CHECK (value <> '');
CREATE TABLE keyed (a smallint, b integer, c bigint, d uuid, e varchar(20), f code, hash bigint);
CREATE FUNCTION pg_temp.mints_by(key text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  same boolean;
BEGIN
  EXECUTE format('CREATE TRIGGER keyed_id BEFORE INSERT ON keyed FOR EACH ROW EXECUTE FUNCTION snowflake.set_id(%L, ''hash'', ''hash'')', key);
  EXECUTE format('INSERT INTO keyed VALUES (5, 6, 7, ''01941f29-7c00-7000-abcd-ef9876543210'', ''e'', ''f'') RETURNING snowflake.shard_of(hash) = snowflake.shard_for(%I)', key) INTO same;
  DROP TRIGGER keyed_id ON keyed;
  RETURN same;
END $$;
SELECT key, pg_temp.mints_by(key) FROM unnest(ARRAY['a', 'b', 'c', 'd', 'e', 'f']) AS key;
-- The trigger set_id() refuses keys of other types, and arguments in which 'hash' could be the name of a column
CREATE TABLE refused (id bigint, hash bigint, price numeric, name text COLLATE any_case, customer text);
CREATE OR REPLACE TRIGGER t BEFORE INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('customer', 'id', 'hash');
INSERT INTO refused (customer) VALUES ('ann') RETURNING snowflake.shard_of(id) = snowflake.shard_for(customer) AS same;
CREATE OR REPLACE TRIGGER t BEFORE INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('customer', 'hash');
\echo SQLSTATE :SQLSTATE
CREATE OR REPLACE TRIGGER t BEFORE INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('price', 'id', 'hash');
\echo SQLSTATE :SQLSTATE
CREATE OR REPLACE TRIGGER t BEFORE INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('name', 'id', 'hash');
\echo SQLSTATE :SQLSTATE
CREATE OR REPLACE TRIGGER t BEFORE INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('customer', 'id', 'hsah');
\echo SQLSTATE :SQLSTATE
-- The column of the key cannot be the column of the id
CREATE TABLE one_column (id bigint);
CREATE TRIGGER t BEFORE INSERT ON one_column FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('id', 'hash');
\echo SQLSTATE :SQLSTATE
-- If CREATE TRIGGER is refused, the table's existing trigger stays
INSERT INTO refused (customer) VALUES ('bob') RETURNING snowflake.shard_of(id) = snowflake.shard_for(customer) AS same;

-- If a shard map has fewer shards than the layout, the number of shards is passed to shard_for(). With the number of
-- shards of a map, shard_for() returns only shards of the map.
SELECT count(*) FILTER (WHERE snowflake.shard_for(n, shards) <> snowflake.shard_for(n, 256)::bigint * shards / 256
                          AND snowflake.shard_for(n, shards) <> (snowflake.shard_for(n, 256) + 1)::bigint * shards / 256) AS elsewhere,
       min(snowflake.shard_for(n, shards)), max(snowflake.shard_for(n, shards)), count(DISTINCT snowflake.shard_for(n, shards))
  FROM generate_series(1, 3000) AS n, (VALUES (1), (60), (200), (256)) AS s (shards) GROUP BY shards ORDER BY shards;
SELECT snowflake.shard_for('ann@example.org', 200), snowflake.shard_for(5, 200) = snowflake.shard_for('5', 200) AS same, snowflake.shard_for('00000000-0000-0000-0000-000000000000'::uuid, 200),
       snowflake.shard_for(5, NULL) IS NULL AND snowflake.shard_for(NULL::text, 5) IS NULL AS null;
SELECT snowflake.shard_for(5, 0);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.shard_for('5', -1);
SELECT snowflake.shard_for('00000000-0000-0000-0000-000000000000'::uuid, 257);
CREATE TABLE mapped (id bigint, hash bigint, customer text);
CREATE TRIGGER mapped_id BEFORE INSERT ON mapped FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('customer', 'hash', '60');
INSERT INTO mapped (customer) SELECT 'customer ' || n FROM generate_series(1, 1000) AS n;
SELECT count(*) FILTER (WHERE snowflake.shard_of(id) <> snowflake.shard_for(customer, 60)) AS elsewhere, count(DISTINCT snowflake.shard_of(id)) AS shards, count(hash) FROM mapped;
CREATE OR REPLACE TRIGGER mapped_id BEFORE INSERT ON mapped FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('customer', 'hash', 'hash', '7');
INSERT INTO mapped (id, customer) VALUES (1, 'ann') RETURNING snowflake.shard_of(hash) = snowflake.shard_for(customer, 7) AS same;
CREATE FUNCTION pg_temp.refusal(VARIADIC arguments text[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'CREATE TRIGGER t BEFORE INSERT ON mapped FOR EACH ROW EXECUTE FUNCTION snowflake.set_id(' || (SELECT string_agg(quote_literal(a), ', ') FROM unnest(arguments) AS a) || ')';
  RETURN 'made';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT pg_temp.refusal('customer', 'hash', '0'), pg_temp.refusal('customer', 'hash', '257'), pg_temp.refusal('customer', 'hash', '+7'), pg_temp.refusal('customer', 'hash', '7 '),
       pg_temp.refusal('customer', 'hash', ''), pg_temp.refusal('customer', 'hash', '99999999999999999999'), pg_temp.refusal('customer', 'id', 'hash', '-1'),
       pg_temp.refusal('id'), pg_temp.refusal('id', 'hash'), pg_temp.refusal('id', 'hash', '7'), pg_temp.refusal('customer', 'customer', 'hash'),
       pg_temp.refusal('customer', 'id', '7'), pg_temp.refusal('customer', '7'), pg_temp.refusal('customer', 'id', 'hash', '7', '7') \gx

CREATE TABLE anywhere (id bigint DEFAULT snowflake.next_id_in('[0,16)'));
CREATE TRIGGER keyed_id BEFORE INSERT ON keyed FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('a', 'hash', 'hash');
SELECT m.* FROM snowflake.minting_columns() AS m JOIN pg_class ON oid = relation WHERE relnamespace = 'by_hash'::regnamespace ORDER BY 1;

-- set_id('...') accepts only ids, because a plain number could decode to any shard
CREATE TABLE photos (id bigint, user_id bigint);
CREATE TRIGGER photos_id BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION snowflake.set_id('user_id');
INSERT INTO photos (user_id) VALUES (4711);
\echo SQLSTATE :SQLSTATE
INSERT INTO photos (user_id) SELECT snowflake.min_id(epoch + interval '1 hour') - 1 FROM snowflake.layout;
INSERT INTO photos (user_id) SELECT snowflake.min_id(epoch + interval '1 hour') FROM snowflake.layout RETURNING snowflake.shard_of(id);
INSERT INTO photos (user_id) VALUES (-1);
SELECT count(*) FROM photos;

-- next_id_in() continues with a shard while the shard is not ahead of the clock
DO $$
BEGIN
  CREATE TABLE calm (id bigint);
  PERFORM pg_sleep(0.2);
  FOR n IN 1 .. 20 LOOP
    INSERT INTO calm VALUES (snowflake.next_id_in('[20,24)'));
    PERFORM pg_sleep(0.003);
  END LOOP;
END $$;
SELECT count(DISTINCT id) AS ids, count(DISTINCT snowflake.shard_of(id)) AS shards, min(snowflake.shard_of(id)) >= 20 AND max(snowflake.shard_of(id)) < 24 AS inside FROM calm;
-- If a shard is ahead, next_id_in() continues with the next owned shard that is not ahead. A shard whose last id is
-- ahead of the clock after the call was ahead during the call.
CREATE FUNCTION pg_temp.goes_over(shards int4range, ahead int[], OUT shard int) LANGUAGE plpgsql AS $$
DECLARE
  driven bigint[];
BEGIN
  LOOP
    PERFORM pg_sleep(0.1);  -- until the clock has passed the ids of the previous round
    driven := ARRAY(SELECT snowflake.next_id(s, after => snowflake.make_id(clock_timestamp() + interval '90 ms', s, 0)) FROM unnest(ahead) AS s);
    shard := snowflake.shard_of(snowflake.next_id_in(shards));
    EXIT WHEN clock_timestamp() < (SELECT min(snowflake.time_of(id)) FROM unnest(driven) AS id);
  END LOOP;
END $$;
SELECT pg_temp.goes_over('[20,24)', '{20,21,22}') AS "the last", pg_temp.goes_over('[20,24)', '{21,22,23}') AS "the first", pg_temp.goes_over('[20,24)', '{20,22,23}') AS "another",
       pg_temp.goes_over('[249,256)', '{249}') AS "the next owned", pg_temp.goes_over('[249,256)', '{255}') AS "and back";
-- In a burst, next_id_in() mints only in shards of the given range
CREATE TABLE burst AS SELECT snowflake.next_id_in('[20,24)') AS id, clock_timestamp() AS at FROM generate_series(1, 30000);
SELECT count(DISTINCT id) AS ids, min(snowflake.shard_of(id)) >= 20 AND max(snowflake.shard_of(id)) < 24 AS inside FROM burst;
-- The only shard of a range is used even if the shard is ahead of the clock
SELECT pg_temp.goes_over('[20,20]', '{20}') AS shard;
SELECT snowflake.next_id_in('[250,253]');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id_in('[250,257)');
SELECT snowflake.next_id_in('[-1,5)');
SELECT snowflake.next_id_in('[5,5)');
SELECT snowflake.next_id_in('[5,)');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_id_in(NULL);
\echo SQLSTATE :SQLSTATE
BEGIN READ ONLY;
SELECT snowflake.next_id_in('[20,24)');
ROLLBACK;

-- next_ids_in() mints equal parts of a batch in the range's owned shards, without a wait
SET snowflake.max_wait = 0;
CREATE TABLE batch AS SELECT id, n FROM unnest(snowflake.next_ids_in('[100,120)', 200000)) WITH ORDINALITY AS t (id, n);
RESET snowflake.max_wait;
SELECT count(*), count(DISTINCT id) AS ids, count(DISTINCT snowflake.shard_of(id)) AS shards, count(DISTINCT snowflake.region_of(id)) AS regions,
       min(snowflake.shard_of(id)), max(snowflake.shard_of(id)), bool_or(id = snowflake.last_id()) AS last FROM batch;
SELECT DISTINCT count(*) AS part, count(*) FILTER (WHERE next <= id) AS descending, count(*) FILTER (WHERE next_n <> n + 1) AS apart
  FROM (SELECT id, n, lead(id) OVER of_shard AS next, lead(n) OVER of_shard AS next_n FROM batch
        WINDOW of_shard AS (PARTITION BY snowflake.shard_of(id) ORDER BY n)) AS b GROUP BY snowflake.shard_of(id);
SELECT snowflake.shard_of(id) AS shard, count(*) FROM unnest(snowflake.next_ids_in('[248,256)', 3000)) AS id GROUP BY 1 ORDER BY 1;
SELECT array_agg(count ORDER BY count) AS parts FROM (SELECT count(*) FROM unnest(snowflake.next_ids_in('[20,24)', 10)) AS id GROUP BY snowflake.shard_of(id)) AS p;
-- If a batch has fewer ids than the range has shards, each call begins with another shard
SELECT count(DISTINCT snowflake.shard_of((snowflake.next_ids_in('[20,24)', 1))[1])) AS shards FROM generate_series(1, 4);
SELECT snowflake.next_ids_in('[250,253]', 5);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.next_ids_in('[250,257)', 5);
SELECT snowflake.next_ids_in('[20,24)', 0);
SELECT snowflake.next_ids_in('[20,24)', 1000001);
SELECT snowflake.next_ids_in('[20,24)', NULL);
SELECT snowflake.next_ids_in(NULL, 5);
SET snowflake.max_wait = 0;
\set VERBOSITY sqlstate
SELECT snowflake.next_ids_in('[20,22)', 1000000);
\set VERBOSITY default
RESET snowflake.max_wait;
BEGIN READ ONLY;
SELECT snowflake.next_ids_in('[20,24)', 5);
ROLLBACK;
-- In calls of next_ids() with untyped literals, the first argument is a shard
SELECT cardinality(snowflake.next_ids('5', '3')) AS of_literals, cardinality(snowflake.next_ids('5', '3', '7')) AS after;
-- The argument of next_id($1) is a shard, because no other next_id() has one argument
PREPARE of_shard AS SELECT snowflake.shard_of(snowflake.next_id($1));
EXECUTE of_shard(5);
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'of_shard';
DROP EXTENSION snowflake_migrate;
