-- Compares ids as base62 text with long division in SQL.
CREATE SCHEMA text_forms;
SET search_path = text_forms;
SET timezone = 'UTC';

-- Tests the least and the greatest id, and the examples of the documentation
SELECT id, snowflake.to_base62(id)
  FROM unnest(ARRAY[0, 1, 61, 62, 1234, 123456789012345678, 499712025023222784, 9223372036854775807]) AS id;

-- Computes the symbols by division of numeric values, which do not overflow at 64 bits
CREATE FUNCTION by_division(number numeric, symbols text, base integer, width integer) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg(substr(symbols, (div(number, trunc(base::numeric ^ place)) % base)::integer + 1, 1), '' ORDER BY place DESC)
    FROM generate_series(0, width - 1) AS place
$$;
CREATE TABLE tried (id bigint PRIMARY KEY);
-- Tests every power of 2 and of 62 with its neighbours, numbers of every length, and ids of the layout
INSERT INTO tried
  SELECT DISTINCT id::bigint FROM (
    SELECT trunc(2::numeric ^ e) + d FROM generate_series(0, 63) e, generate_series(-2, 1) d
    UNION ALL SELECT trunc(62::numeric ^ e) + d FROM generate_series(0, 10) e, generate_series(-2, 1) d
    UNION ALL SELECT trunc(random()::numeric * 2::numeric ^ e) FROM generate_series(1, 62) e, generate_series(1, 40)
    UNION ALL SELECT snowflake.min_id(timestamptz '2025-01-01' + random() * interval '30 years') FROM generate_series(1, 200)
    UNION ALL SELECT snowflake.next_id(5) FROM generate_series(1, 50)) t (id)
   WHERE id BETWEEN 0 AND 9223372036854775807;
SELECT count(*) > 2500 AS many, max(id) = 9223372036854775807 AS the_greatest,
       bool_and(snowflake.to_base62(id) = by_division(id, '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 62, 11)) AS base62
  FROM tried;
SELECT bool_and(snowflake.from_base62(snowflake.to_base62(id)) = id) AS base62_back
  FROM tried;
SELECT bool_and(base62 > before62) AS base62_sorts
  FROM (SELECT snowflake.to_base62(id) COLLATE "C" AS base62, lag(snowflake.to_base62(id)) OVER w COLLATE "C" AS before62
          FROM tried WINDOW w AS (ORDER BY id)) t;

-- NULL in, NULL out
SELECT snowflake.to_base62(NULL) IS NULL AND snowflake.from_base62(NULL) IS NULL AS nulls;

-- from_base62() refuses every text that to_base62() would not write
SELECT snowflake.to_base62(-1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.to_base62(-9223372036854775808);
SELECT snowflake.from_base62('0000000000-');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_base62(' 0000000000');
SELECT snowflake.from_base62('00000é00000');
SELECT snowflake.from_base62('ééé日本語🐘0?00');
SELECT snowflake.from_base62('0');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_base62('');
SELECT snowflake.from_base62('000000000000');
SELECT snowflake.from_base62('AzL8n0Y58m8');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_base62('zzzzzzzzzzz');

-- For any text, from_base62() either returns an id with this text, or raises an error of snowflake
CREATE FUNCTION outcome_of(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  id bigint;
  state text;
BEGIN
  EXECUTE call INTO id;
  RETURN 'an id';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE;
  RETURN state;
END $$;
CREATE FUNCTION anything() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  encoded text := '';
BEGIN
  FOR i IN 1 .. 10 + floor(random() * 6) LOOP
    encoded := encoded || CASE WHEN random() < 0.96
      THEN substr('0123456789ABCDEFGHJKMNPQRSTVWXYZabcxyzoilOIL-*~$=Uu', 1 + floor(random() * 51)::integer, 1)
      ELSE chr(1 + floor(random() * 50000)::integer) END;
  END LOOP;
  RETURN encoded;
END $$;
CREATE TABLE fuzzed AS
  SELECT CASE WHEN random() < 0.5 THEN anything() ELSE left('0' || anything(), 11 + 2 * (n % 2)) END AS encoded
    FROM generate_series(1, 5000) n;
SELECT outcome, count(*) > 0 AS seen
  FROM (SELECT o.outcome
          FROM fuzzed, LATERAL (VALUES (outcome_of(format('SELECT snowflake.from_base62(%L)', encoded)))) o (outcome)) t
 GROUP BY 1 ORDER BY 1;
SELECT bool_and(snowflake.to_base62(snowflake.from_base62(encoded)) = encoded) AS one_spelling
  FROM fuzzed WHERE encoded ~ '^[0-9A-Za-z]{11}$' AND encoded COLLATE "C" <= 'AzL8n0Y58m7';
-- Long texts are refused, too
SELECT outcome_of('SELECT snowflake.from_base62(repeat(''0'', 1000000))') AS long62;

-- A query that looks up an id by its text form uses the index of the primary key
CREATE TABLE posts (id bigint PRIMARY KEY, title text);
INSERT INTO posts SELECT snowflake.min_id(timestamptz '2025-03-01' + n * interval '1 minute'), 'post ' || n FROM generate_series(1, 5000) n;
VACUUM ANALYZE posts;
PREPARE by_base62(text) AS SELECT title FROM posts WHERE id = snowflake.from_base62($1);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_base62('00000000000');
SELECT snowflake.to_base62(id) AS base62 FROM posts WHERE title = 'post 77' \gset
EXECUTE by_base62(:'base62');
RESET plan_cache_mode;
-- If the text is a constant, the query uses the index of the primary key, too
EXPLAIN (COSTS OFF) SELECT title FROM posts WHERE id = snowflake.from_base62('0000009Zt7Q');
-- An index on to_base62(id) supports searches by the beginning of the text
CREATE INDEX posts_base62 ON posts (snowflake.to_base62(id) COLLATE "C");
ANALYZE posts;
EXPLAIN (COSTS OFF) SELECT title FROM posts WHERE snowflake.to_base62(id) COLLATE "C" LIKE '000A%';
-- Under COLLATE "C" texts have the order of the ids
SELECT array_agg(title ORDER BY snowflake.to_base62(id) COLLATE "C") = array_agg(title ORDER BY id) AS same_order FROM posts;

-- JavaScript rounds ids in JSON that are numbers, but not ids that are strings
SELECT to_json(9007199254740993) AS a_number, to_json(9007199254740993::text) AS a_string;
CREATE TABLE notes (
  id bigint PRIMARY KEY,
  public_id text COLLATE "C" GENERATED ALWAYS AS (snowflake.to_base62(id)) STORED UNIQUE,
  body text);
INSERT INTO notes (id, body) VALUES (499712025023222784, 'first'), (499712025023222785, 'second');
CREATE VIEW notes_json AS SELECT snowflake.to_base62(id) AS id, body FROM notes;
SELECT row_to_json(n) FROM notes_json n ORDER BY id;
SELECT json_agg(n ORDER BY id) FROM notes_json n;
SELECT row_to_json(n)->>'public_id' AS generated, jsonb_typeof(to_jsonb(n)->'public_id') AS type FROM notes n ORDER BY id LIMIT 1;
SELECT body FROM notes WHERE public_id = '0augYQesYgy';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT body FROM notes WHERE public_id = '0augYQesYgz';
-- A search by the text column of a view needs an index on to_base62(id)
CREATE INDEX ON notes (snowflake.to_base62(id));
EXPLAIN (COSTS OFF) SELECT body FROM notes_json WHERE id = '0augYQesYgz';
RESET enable_seqscan;
RESET enable_bitmapscan;
-- Texts of ids in JSON are converted back to the same ids
INSERT INTO notes (id, body) SELECT snowflake.from_base62(j->>'id'), j->>'body' FROM (VALUES ('{"id": "0000000001A", "body": "third"}'::json)) v (j);
SELECT id FROM notes WHERE body = 'third';
