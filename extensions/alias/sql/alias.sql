-- Compares aliases and tokens with FF1, HKDF and AES that SQL computes from pgcrypto's AES and HMAC.
SET timezone = 'UTC';
SET client_min_messages = warning;
CREATE EXTENSION snowflake_alias CASCADE;
CREATE EXTENSION pgcrypto;

SELECT p.oid::regprocedure AS function, provolatile AS volatile, proparallel AS parallel, proisstrict AS strict,
       proacl IS NOT NULL AND NOT has_function_privilege('pg_read_all_data', p.oid, 'EXECUTE') AS not_for_public,
       obj_description(p.oid) IS NOT NULL AS comment
  FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
 WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_alias') ORDER BY 1;

-- Calls that need a key fail if there is no key file. If the key file has several versions of a key, the first of them
-- is used to make aliases.
\set VERBOSITY terse
SELECT snowflake.alias(1, 'photos');
\set VERBOSITY default
COPY (VALUES ('# made up for this test'), (''),
  ('photos 0 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'),
  ('  photos   4  2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94  '),
  ('posts  4 8fe07d5cbd1a2c8f5d4cbb1e8a3b1ec0f4f8f6dd3df7a1f4e8f6a0b9d1c2e3f4'),
  ('posts  0 ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'))
  TO PROGRAM 'umask 077; cat >snowflake_alias.keys';
SELECT name, version, writes, check_value FROM snowflake.alias_keys();

-- Computes FF1 as the standard defines it, for any radix and tweak, with the halves as numbers
CREATE FUNCTION bytes(number numeric, count integer) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT decode(string_agg(lpad(to_hex((div(number, trunc(256::numeric ^ i)) % 256)::integer), 2, '0'), '' ORDER BY i DESC), 'hex')
    FROM generate_series(0, count - 1) i
$$;
CREATE FUNCTION number(bytes bytea) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
  SELECT sum(get_byte(bytes, i) * trunc(256::numeric ^ (length(bytes) - 1 - i))) FROM generate_series(0, length(bytes) - 1) i
$$;
CREATE FUNCTION ff1(key bytea, tweak bytea, radix integer, n integer, x numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  u integer := n / 2;
  v integer := n - u;
  a numeric := div(x, trunc(radix::numeric ^ v));
  b numeric := x % trunc(radix::numeric ^ v);
  t integer := length(tweak);
  width integer := 1;
  p bytea;
  q bytea;
  r bytea;
  c numeric;
BEGIN
  WHILE trunc(256::numeric ^ width) < trunc(radix::numeric ^ v) LOOP
    width := width + 1;
  END LOOP;
  p := '\x010201'::bytea || bytes(radix, 3) || '\x0a'::bytea || bytes(u % 256, 1) || bytes(n, 4) || bytes(t, 4);
  FOR i IN 0 .. 9 LOOP
    q := tweak || decode(repeat('00', ((- t - width - 1) % 16 + 16) % 16), 'hex') || bytes(i, 1) || bytes(b, width);
    r := encrypt(p || q, key, 'aes-cbc/pad:none');    -- the last block is the CBC-MAC of the whole message
    c := (a + number(substr(r, length(r) - 15, 4 * ((width + 3) / 4) + 4)))
         % trunc(radix::numeric ^ CASE i % 2 WHEN 0 THEN u ELSE v END);
    a := b;
    b := c;
  END LOOP;
  RETURN a * trunc(radix::numeric ^ v) + b;
END
$$;
-- FF1 in SQL gives the samples that NIST has published: radix 10 without and with a tweak, AES-128 and AES-256, and
-- radix 36
CREATE FUNCTION in_radix(number numeric, radix integer, width integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg(substr('0123456789abcdefghijklmnopqrstuvwxyz', (div(number, trunc(radix::numeric ^ i)) % radix)::integer + 1, 1), '' ORDER BY i DESC)
    FROM generate_series(0, width - 1) i
$$;
SELECT in_radix(ff1('\x2B7E151628AED2A6ABF7158809CF4F3C', '', 10, 10, 123456789), 10, 10) AS sample_1,
       in_radix(ff1('\x2B7E151628AED2A6ABF7158809CF4F3C', '\x39383736353433323130', 10, 10, 123456789), 10, 10) AS sample_2,
       in_radix(ff1('\x2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94', '', 10, 10, 123456789), 10, 10) AS sample_7,
       in_radix(ff1('\x2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94', '\x3737373770717273373737', 36, 19,
                    (SELECT sum(i * trunc(36::numeric ^ (18 - i))) FROM generate_series(0, 18) i)), 36, 19) AS sample_9;

-- Derives a separate key for each purpose, such as aliases, from a key of the key file, by HKDF-Expand
CREATE FUNCTION derived(key bytea, purpose text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT hmac(convert_to('snowflake_alias ' || purpose, 'UTF8') || '\x01'::bytea, key, 'sha256')
$$;
CREATE FUNCTION base62(number numeric, width integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg(substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (div(number, trunc(62::numeric ^ i)) % 62)::integer + 1, 1), '' ORDER BY i DESC)
    FROM generate_series(0, width - 1) i
$$;
CREATE FUNCTION alias_by_hand(id bigint, version integer, key bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT base62(version * 9223372036854775808 + ff1(derived(key, 'compact'), '', 2, 63, id), 11)
$$;
CREATE FUNCTION token_by_hand(id bigint, key bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT base62(number(encrypt(bytes(id, 8) || bytes(0, 8), derived(key, 'token'), 'aes-ecb/pad:none')), 22)
$$;
\set photos '\'\\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\''
\set posts '\'\\x8fe07d5cbd1a2c8f5d4cbb1e8a3b1ec0f4f8f6dd3df7a1f4e8f6a0b9d1c2e3f4\''
SELECT encode(substr(derived(:photos, 'check'), 1, 8), 'hex') AS check_value;

-- The vectors of the documentation
SELECT id, snowflake.alias(id, 'photos'), snowflake.token(id, 'photos')
  FROM unnest(ARRAY[0, 1, 2, 499712025023222784, 499712025023222785, 9223372036854775807]) AS id;
CREATE TABLE tried AS
  SELECT DISTINCT id FROM (
    SELECT (trunc(2::numeric ^ e) + d)::bigint FROM generate_series(1, 62, 3) e, generate_series(-1, 1) d
    UNION ALL SELECT unnest(ARRAY[0, 1, 4294967295, 4294967296, 9223372036854775806, 9223372036854775807])
    UNION ALL SELECT trunc(random()::numeric * 9223372036854775808)::bigint FROM generate_series(1, 60)) t (id);
SELECT count(*) > 100 AS many, bool_and(snowflake.alias(id, 'photos') = alias_by_hand(id, 0, :photos)) AS alias,
       bool_and(snowflake.alias(id, 'posts') = alias_by_hand(id, 4, :posts)) AS alias_version_4,
       bool_and(snowflake.token(id, 'photos') = token_by_hand(id, :photos)) AS token,
       bool_and(snowflake.token(id, 'posts') = token_by_hand(id, :posts)) AS other_token
  FROM tried;
SELECT bool_and(snowflake.from_alias(snowflake.alias(id, name), name) = id) AS alias_back,
       bool_and(snowflake.from_token(snowflake.token(id, name), name) = id) AS token_back
  FROM tried, unnest(ARRAY['photos', 'posts']) name;
-- Aliases that were made with an older version of a key can be decoded
SELECT bool_and(snowflake.from_alias(alias_by_hand(id, 0, '\xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'), 'posts') = id) AS old_alias,
       bool_and(snowflake.from_token(token_by_hand(id, '\xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'), 'posts') = id) AS old_token
  FROM (SELECT id FROM tried LIMIT 20) t;

-- A million ids in a row have aliases without order or repetition, and no bit is mostly 0 or 1. Aliases of photos use a
-- key of version 0, so the aliases are below 2^63.
CREATE TABLE shown AS
  SELECT i, alias, snowflake.from_base62(alias) AS number
    FROM generate_series(0, 999999) i, LATERAL (SELECT snowflake.alias(499712025023222784 + i, 'photos') OFFSET 0) a (alias);
SELECT count(DISTINCT alias) AS different, bool_and(snowflake.from_alias(alias, 'photos') = 499712025023222784 + i) AS all_back FROM shown;
SELECT round(avg((number > before)::integer), 2) AS ascents, round(corr(number, before)::numeric, 2) AS correlation_with_neighbour,
       round(corr(number, i)::numeric, 2) AS correlation_with_time,
       round(avg(bit_count(int8send(number # before))), 1) AS bits_that_change
  FROM (SELECT i, number, lag(number) OVER (ORDER BY i) AS before FROM shown) s;
SELECT bool_and(share BETWEEN 0.4925 AND 0.5075) AS every_bit_is_half_the_time_1
  FROM (SELECT avg((number >> bit & 1)::integer) AS share FROM shown, generate_series(0, 62) bit WHERE i % 10 = 3 GROUP BY bit) s;
-- The aliases are spread evenly over 256 ranges: chi square with 255 degrees of freedom
SELECT sum((n - 1000000 / 256.0) ^ 2 / (1000000 / 256.0)) BETWEEN 180 AND 340 AS even_over_the_range
  FROM (SELECT count(*) AS n FROM shown GROUP BY number >> 55) s;
-- If any bit of the id changes, each bit of the alias changes in half of the cases
SELECT bool_and(share BETWEEN 0.41 AND 0.59) AS each_bit, round(avg(share), 2) AS all_bits, count(*)
  FROM (SELECT avg((change >> output & 1)::integer) AS share
          FROM (SELECT input, snowflake.from_base62(snowflake.alias(id, 'photos')) # snowflake.from_base62(snowflake.alias(id # (1::bigint << input), 'photos')) AS change
                  FROM generate_series(0, 62) input, (SELECT i * 7919::bigint * 1000003 AS id FROM generate_series(1, 1000) i) s OFFSET 0) f,
               generate_series(0, 62) output
         GROUP BY input, output) s;

-- Forged tokens are refused: with every changed character, every changed bit of the block, and random text
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
SELECT outcome, count(*) > 0 AS seen
  FROM (SELECT outcome_of(format('SELECT snowflake.from_token(%L, ''photos'')', overlay(token PLACING symbol FROM at))) AS outcome
          FROM (SELECT snowflake.token(id, 'photos') AS token FROM tried LIMIT 10) t, generate_series(1, 22) at,
               unnest(string_to_array('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', NULL)) symbol
         WHERE substr(token, at, 1) <> symbol) s
 GROUP BY 1 ORDER BY 1;
SELECT outcome_of(format('SELECT snowflake.from_token(%L, ''photos'')', base62(number(set_bit(block, bit, 1 - get_bit(block, bit))), 22))) AS outcome, count(*)
  FROM (SELECT encrypt(bytes(id, 8) || bytes(0, 8), derived(:photos, 'token'), 'aes-ecb/pad:none') AS block FROM tried LIMIT 3) t,
       generate_series(0, 127) bit
 GROUP BY 1;
-- Blocks that can be decrypted but hold a negative id or other redundancy are refused, and one valid block is accepted
SELECT outcome_of(format('SELECT snowflake.from_token(%L, ''photos'')', base62(number(encrypt(plain, derived(:photos, 'token'), 'aes-ecb/pad:none')), 22)))
  FROM unnest(ARRAY['\x80000000000000000000000000000000', '\x00000000000000010000000000000001', '\x00000000000000010100000000000000',
                    '\x00000000000000010000000000000000']::bytea[]) plain;
SELECT snowflake.from_token(snowflake.token(1, 'posts'), 'photos');
\echo SQLSTATE :SQLSTATE

-- What is refused
SELECT snowflake.alias(-1, 'photos');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.token(-9223372036854775808, 'photos');
SELECT snowflake.alias(1, 'nobody''s');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_alias('00000000000', '');
SELECT snowflake.from_token('0000000000000000000000', repeat('é', 1000));
SELECT snowflake.from_alias('0000000000é', 'photos');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_alias('0', 'photos');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_alias('swhhx2kPhse', 'photos');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_alias('swhhx2kPhsd', 'photos') IS NOT NULL AS the_last_of_version_4;
SELECT snowflake.from_alias('ZZZZZZZZZZZ', 'photos');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_token('0', 'photos');
SELECT snowflake.from_token('zzzzzzzzzzzzzzzzzzzzzz', 'photos');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.alias(NULL, 'photos') IS NULL AND snowflake.alias(1, NULL) IS NULL AND snowflake.from_alias(NULL, 'photos') IS NULL
   AND snowflake.token(NULL, 'photos') IS NULL AND snowflake.from_token(NULL, 'x') IS NULL AS nulls;
CREATE FUNCTION anything() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  encoded text := '';
BEGIN
  FOR i IN 1 .. CASE WHEN random() < 0.7 THEN 11 * (1 + floor(random() * 2)) ELSE 30 * random() END LOOP
    encoded := encoded || CASE WHEN random() < 0.98
      THEN substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 1 + floor(random() * 62)::integer, 1)
      ELSE chr(1 + floor(random() * 50000)::integer) END;
  END LOOP;
  RETURN encoded;
END $$;
SELECT function, outcome, count(*) > 0 AS seen
  FROM (SELECT function, outcome_of(format('SELECT snowflake.%s(%L, ''photos'')', function, anything())) AS outcome
          FROM generate_series(1, 3000), unnest(ARRAY['from_alias', 'from_token']) function) s
 GROUP BY 1, 2 ORDER BY 1, 2;

-- A query that searches by an alias uses the index of the primary key
CREATE TABLE posts (id bigint PRIMARY KEY, title text);
INSERT INTO posts SELECT 499712025023222784 + n * 1024, 'post ' || n FROM generate_series(1, 5000) n;
VACUUM ANALYZE posts;
PREPARE by_alias(text) AS SELECT title FROM posts WHERE id = snowflake.from_alias($1, 'posts');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_alias('');
SELECT snowflake.alias(id, 'posts') AS alias FROM posts WHERE title = 'post 77' \gset
EXECUTE by_alias(:'alias');
EXPLAIN (COSTS OFF) SELECT title FROM posts WHERE id = snowflake.from_token(snowflake.token(5, 'posts'), 'posts');

-- No role may call the functions that make aliases before EXECUTE is granted. A function of another owner can make
-- aliases with one key, but cannot decode aliases.
CREATE ROLE web_server;
CREATE FUNCTION post_alias(id bigint) RETURNS text
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SECURITY DEFINER SET search_path = ''
  RETURN snowflake.alias(id, 'posts');
GRANT SELECT ON posts TO web_server;
SET ROLE web_server;
SELECT snowflake.alias(1, 'posts');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_alias('00000000000', 'posts');
SELECT snowflake.token(1, 'posts');
SELECT snowflake.from_token('0000000000000000000000', 'posts');
SELECT * FROM snowflake.alias_keys();
\set VERBOSITY sqlstate
SHOW snowflake_alias.key_file;
\set VERBOSITY default
SET snowflake_alias.key_file = '/tmp/mine';
SELECT post_alias(id) FROM posts WHERE title = 'post 77';
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake.from_alias(text, text) TO web_server;
SET ROLE web_server;
SELECT title FROM posts WHERE id = snowflake.from_alias(:'alias', 'posts');
RESET ROLE;
SET snowflake_alias.key_file = '/tmp/mine';

-- Creating and dropping snowflake_alias has no effect on new ids
DROP EXTENSION snowflake;
DROP FUNCTION post_alias;
DROP EXTENSION snowflake_alias;
SELECT count(*) FROM pg_proc WHERE proname IN ('alias', 'token', 'from_alias', 'from_token', 'alias_keys');
SELECT snowflake.time_of(snowflake.next_id(5)) IS NOT NULL AS the_generator_goes_on;
CREATE EXTENSION snowflake_alias;
DROP OWNED BY web_server;
DROP ROLE web_server;
