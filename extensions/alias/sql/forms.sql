-- Tests aliases of decimal digits, prefixes of aliases, and functions that return NULL for a wrong text. The test uses
-- functions of alias.sql, which compute the cipher FF1 in SQL.
SET client_min_messages = warning;
\set photos '\'\\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\''
\set posts '\'\\x8fe07d5cbd1a2c8f5d4cbb1e8a3b1ec0f4f8f6dd3df7a1f4e8f6a0b9d1c2e3f4\''
CREATE FUNCTION digits_by_hand(id bigint, length integer, version integer, key bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT version || in_radix(ff1(derived(key, 'compact'), '', 10, length - 1, id), 10, length - 1)
$$;

-- The vectors of the documentation
SELECT id, snowflake.digits(id, 'photos') FROM unnest(ARRAY[0, 1, 2, 499712025023222784, 499712025023222785, 9223372036854775807]) AS id;
SELECT id, length, snowflake.digits(id, 'photos', length) FROM (VALUES (0, 7), (999999, 7), (1234, 8), (1234, 9), (1235, 9)) v (id, length);
-- Aliases of every number of digits equal the result of FF1, and are decoded to the same id
CREATE TABLE numbered AS
  SELECT length, id FROM generate_series(7, 20) length,
       LATERAL (SELECT 0 UNION SELECT 1 UNION SELECT least(trunc(10::numeric ^ (length - 1)) - 1, 9223372036854775807)
                UNION SELECT trunc(random()::numeric * least(trunc(10::numeric ^ (length - 1)), 9223372036854775808)) FROM generate_series(1, 20)) s (id);
SELECT count(*) > 250 AS many, bool_and(snowflake.digits(id::bigint, 'photos', length) = digits_by_hand(id::bigint, length, 0, :photos)) AS as_by_hand,
       bool_and(snowflake.digits(id::bigint, 'posts', length) = digits_by_hand(id::bigint, length, 4, :posts)) AS of_version_4,
       bool_and(snowflake.from_digits(snowflake.digits(id::bigint, name, length), name, length) = id) AS back,
       bool_and(snowflake.try_from_digits(snowflake.digits(id::bigint, name, length), name, length) = id) AS tried,
       bool_and(snowflake.from_digits(digits_by_hand(id::bigint, length, 0, '\xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'), 'posts', length) = id) AS old
  FROM numbered, unnest(ARRAY['photos', 'posts']) name;
-- A hundred thousand ids in a row have different aliases, which are in no order
SELECT count(DISTINCT digits) AS different, min(length(digits)), max(length(digits)), bool_and(digits ~ '^0[0-9]{6}$') AS only_digits,
       bool_and(snowflake.from_digits(digits, 'photos', 7) = i) AS all_back,
       abs(corr(digits::integer, i)) < 0.01 AS no_order
  FROM generate_series(0, 99999) i, LATERAL (SELECT snowflake.digits(i, 'photos', 7) OFFSET 0) d (digits);

-- Digits that are refused
SELECT snowflake.digits(1000000, 'photos', 7);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.digits(-1, 'photos', 7);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.digits(1, 'photos', 6);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.digits(1, 'photos', 21);
SELECT snowflake.from_digits('0', 'photos', -2147483648);
SELECT snowflake.try_from_digits('0', 'photos', 2147483647);
SELECT snowflake.from_digits('012345', 'photos', 7);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_digits('01234567', 'photos', 7);
SELECT snowflake.from_digits('', 'photos', 7);
SELECT snowflake.from_digits('012345x', 'photos', 7);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_digits('x123456', 'photos', 7);
SELECT snowflake.from_digits('01234٥6', 'photos', 7);
SELECT snowflake.from_digits('1123456', 'photos', 7);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_digits('9123456', 'photos', 7);
SELECT snowflake.digits(1, 'nobody''s', 7);
SELECT snowflake.try_from_digits('', 'nobody''s', 7);
\echo SQLSTATE :SQLSTATE
-- One in ten numbers of twenty digits is not the alias of an id
SELECT count(*) FILTER (WHERE id IS NULL) BETWEEN 30 AND 140 AS some_are_no_ids, bool_and(snowflake.digits(id, 'photos') = text) AS others_come_back
  FROM (SELECT '0' || lpad(trunc(random()::numeric * 1e19)::text, 19, '0') AS text FROM generate_series(1, 1000)) t,
       LATERAL (SELECT snowflake.try_from_digits(text, 'photos') OFFSET 0) r (id);
SELECT outcome_of(format('SELECT snowflake.from_digits(%L, ''photos'')', text)) AS outcome, bool_and(snowflake.try_from_digits(text, 'photos') IS NULL) AS "null"
  FROM (SELECT '0' || lpad(trunc(random()::numeric * 1e19)::text, 19, '0') AS text FROM generate_series(1, 1000)) t GROUP BY 1 ORDER BY 1;

-- Prefixes
SELECT snowflake.alias(1, 'photos', 'user_'), snowflake.token(1, 'photos', 'key_live_'), snowflake.digits(1234, 'photos', 9, 'order-');
SELECT snowflake.from_alias('user_7SusesbH8N6', 'photos', 'user_'), snowflake.from_token('key_live_1sGGdz264qVc4YNoWwPI8z', 'photos', 'key_live_'),
       snowflake.from_digits(snowflake.digits(1234, 'photos', 9, 'order-'), 'photos', 9, 'order-');
SELECT bool_and(snowflake.alias(id, 'posts', p) = p || snowflake.alias(id, 'posts') AND snowflake.from_alias(snowflake.alias(id, 'posts', p), 'posts', p) = id
                AND snowflake.token(id, 'posts', p) = p || snowflake.token(id, 'posts') AND snowflake.try_from_token(snowflake.token(id, 'posts', p), 'posts', p) = id) AS all_forms
  FROM generate_series(1, 100) id, unnest(ARRAY['_', '-', 'a_', '0-', 'user__', repeat('x', 31) || '_']) p;
SELECT snowflake.from_alias('post_7SusesbH8N6', 'photos', 'user_');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_alias('7SusesbH8N6', 'photos', 'user_');
SELECT snowflake.from_alias('USER_7SusesbH8N6', 'photos', 'user_');
SELECT snowflake.from_alias('user', 'photos', 'user_');
SELECT snowflake.from_alias('', 'photos', 'user_');
SELECT snowflake.from_alias('user_7SusesbH8N6', 'photos');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_alias('user_', 'photos', 'user_');
SELECT snowflake.from_alias('user_user_7SusesbH8N6', 'photos', 'user_');
SELECT snowflake.from_token('user_7SusesbH8N6', 'photos', 'user_');
SELECT snowflake.from_digits('order-012345x', 'photos', 7, 'order-');
SELECT snowflake.from_token('key_1sGGdz264qVc4YNoWwPI8z', 'photos', repeat('é', 1000));
\echo SQLSTATE :SQLSTATE
SELECT prefix, outcome_of(format('SELECT snowflake.from_alias(snowflake.alias(1, ''photos'', %L), ''photos'', %1$L)', prefix)) AS outcome,
       outcome_of(format('SELECT snowflake.try_from_alias(''x'', ''photos'', %L)', prefix)) AS tried
  FROM unnest(ARRAY['', 'user', 'us er_', 'ü_', 'user_ ', 'user_
', '%_', 'u''_', repeat('x', 32) || '_', repeat('x', 31) || '_']) prefix;

-- Functions try_from_...() return NULL if the text is wrong, and fail for all other errors
SELECT snowflake.try_from_alias('7SusesbH8N6', 'photos') AS alias, snowflake.try_from_token('1sGGdz264qVc4YNoWwPI8z', 'photos') AS token;
SELECT form, count(*), bool_and(n IS NULL) AS all_null FROM
  (SELECT form, CASE form WHEN 'alias' THEN snowflake.try_from_alias(t, 'photos') WHEN 'token' THEN snowflake.try_from_token(t, 'photos')
                          WHEN 'digits' THEN snowflake.try_from_digits(t, 'photos') ELSE snowflake.try_from_alias(t, 'photos', 'user_') END AS n
     FROM unnest(ARRAY['', ' ', '0', 'swhhx2kPhse', 'zzzzzzzzzzz', 'ZZZZZZZZZZZ', 'zzzzzzzzzzzzzzzzzzzzzz', '0000000000000000000000', '0000000000é', '７SusesbH8N6',
                       ' 7SusesbH8N6', '7SusesbH8N6 ', E'7SusesbH8N6\n', 'post_7SusesbH8N6', 'user_', 'user_7SusesbH8N', '90000000000000000000', '٠١٢٣٤٥٦٧٨٩٠١٢٣٤٥٦٧٨',
                       '+0000000000000000001', repeat('0', 1000000), repeat('é', 100000)]) t,
          unnest(ARRAY['alias', 'token', 'digits', 'prefix']) form) s
 GROUP BY 1 ORDER BY 1;
-- A function try_from_...() returns NULL exactly if the function from_...() fails
SELECT function, count(*) FILTER (WHERE id IS NULL) > 0 AS some_null, bool_and((id IS NULL) = (outcome <> 'an id')) AS agree
  FROM (SELECT function, t, outcome_of(format('SELECT snowflake.from_%s(%L, ''posts'')', function, t)) AS outcome,
               CASE function WHEN 'alias' THEN snowflake.try_from_alias(t, 'posts') WHEN 'token' THEN snowflake.try_from_token(t, 'posts')
                             ELSE snowflake.try_from_digits(t, 'posts') END AS id
          FROM (SELECT CASE WHEN i % 3 = 0 THEN lpad(trunc(random()::numeric * 1e20)::text, 20, '0') WHEN i % 50 = 1 THEN snowflake.token(i, 'posts') ELSE anything() END AS t
                  FROM generate_series(1, 3000) i OFFSET 0) s,
               unnest(ARRAY['alias', 'token', 'digits']) function) r GROUP BY 1 ORDER BY 1;
SELECT snowflake.try_from_alias('7SusesbH8N6', 'nobody''s');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.try_from_token('', 'nobody''s');
SELECT snowflake.try_from_alias(NULL, 'photos') IS NULL AND snowflake.try_from_alias('', NULL) IS NULL AND snowflake.try_from_token('', 'photos', NULL) IS NULL
   AND snowflake.digits(NULL, 'photos') IS NULL AND snowflake.digits(1, 'photos', NULL) IS NULL AND snowflake.from_digits('', 'photos', 7, NULL) IS NULL AS nulls;
CREATE TABLE orders (id bigint PRIMARY KEY);
INSERT INTO orders SELECT generate_series(1, 10000);
ANALYZE orders;
SET plan_cache_mode = force_generic_plan;
PREPARE by_digits(text) AS SELECT id FROM orders WHERE id = snowflake.try_from_digits($1, 'photos', 9);
EXPLAIN (COSTS OFF) EXECUTE by_digits('');
SELECT snowflake.digits(4321, 'photos', 9) AS digits \gset
EXECUTE by_digits(:'digits');
EXECUTE by_digits('no number');

-- By default no role may call the functions of snowflake_alias
CREATE ROLE web_server;
SET ROLE web_server;
SELECT outcome_of(call) FROM unnest(ARRAY['SELECT snowflake.from_digits('''', '''')', 'SELECT snowflake.try_from_digits('''', '''')', 'SELECT snowflake.try_from_alias('''', '''')',
  'SELECT snowflake.try_from_token('''', '''', '''')', 'SELECT snowflake.from_alias('''', '''', '''')']) call;
SELECT snowflake.digits(1, '');
\echo SQLSTATE :SQLSTATE
RESET ROLE;
DROP ROLE web_server;
