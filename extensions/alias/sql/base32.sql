-- Compares texts in Crockford's base32 with long division in SQL.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake_alias CASCADE;
CREATE SCHEMA base32;
SET search_path = base32;
SELECT id, snowflake.to_base32(id), snowflake.to_base32(id, true) AS checked
  FROM unnest(ARRAY[0, 1, 61, 62, 1234, 123456789012345678, 499712025023222784, 9223372036854775807]) AS id;
-- Computes the symbols by division of numeric values, which do not overflow at 64 bits
CREATE FUNCTION by_division(number numeric, symbols text, base integer, width integer) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg(substr(symbols, (div(number, trunc(base::numeric ^ place)) % base)::integer + 1, 1), '' ORDER BY place DESC)
    FROM generate_series(0, width - 1) AS place
$$;
CREATE TABLE tried (id bigint PRIMARY KEY);
INSERT INTO tried
  SELECT DISTINCT id::bigint FROM (
    SELECT trunc(2::numeric ^ e) + d FROM generate_series(0, 63) e, generate_series(-2, 1) d
    UNION ALL SELECT trunc(random()::numeric * 2::numeric ^ e) FROM generate_series(1, 62) e, generate_series(1, 20)) t (id)
   WHERE id BETWEEN 0 AND 9223372036854775807;
SELECT count(*) > 1000 AS many, bool_and(snowflake.to_base32(id) = by_division(id, '0123456789ABCDEFGHJKMNPQRSTVWXYZ', 32, 13)) AS base32,
       bool_and(snowflake.to_base32(id, true) = snowflake.to_base32(id)
                || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U', (id % 37)::integer + 1, 1)) AS checked,
       bool_and(snowflake.from_base32(snowflake.to_base32(id)) = id) AS back,
       bool_and(snowflake.from_base32(snowflake.to_base32(id, true), true) = id) AS checked_back,
       array_agg(id ORDER BY snowflake.to_base32(id) COLLATE "C") = array_agg(id ORDER BY id) AS sorts
  FROM tried;

-- Functions that read base32 accept the variants that Crockford allows
SELECT snowflake.from_base32(encoded)
  FROM unnest(ARRAY['000000000016J', '000000000016j', '0-0000-0000-016J', 'oOo000000016j', 'OOOOOOOOOOi6j', '0000000000L6J', '0000000000l6J',
                    '-000000000016J-']) AS encoded;
SELECT encoded, snowflake.from_base32(encoded, true)
  FROM unnest(ARRAY['000000000016JD', '000000000016jd', '000000000016j-d', '0000000000010*', '0000000000011~', '0000000000012$',
                    '0000000000013=', '0000000000014U', '0000000000014u', '0000000000001i', 'ooooooooooooLl', '0000000000000o']) AS encoded;

SELECT snowflake.to_base32(NULL) IS NULL AND snowflake.to_base32(1, NULL) IS NULL AND snowflake.from_base32(NULL) IS NULL
   AND snowflake.from_base32('x', NULL) IS NULL AS nulls;
-- What is refused
SELECT snowflake.to_base32(-9223372036854775808);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_base32('000000000000U');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_base32('--日本------0');
SELECT snowflake.from_base32('000000000000');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_base32('0000-0000-0000');
SELECT snowflake.from_base32('000000000016JD');
SELECT snowflake.from_base32('000000000016J', true);
SELECT snowflake.from_base32('8000000000000');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_base32('ZZZZZZZZZZZZZ0', true);
SELECT snowflake.from_base32('000000000016JE', true);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_base32('000000000061JD', true);
SELECT snowflake.from_base32('00000000001*6JD', true);
-- For any text, from_base32() either returns an id whose text is equivalent, or raises an error of snowflake
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
  SELECT CASE WHEN random() < 0.5 THEN anything() ELSE left('0' || anything(), 13) END AS encoded FROM generate_series(1, 2000);
SELECT outcome, count(*) > 0 AS seen
  FROM (SELECT o.outcome
          FROM fuzzed, LATERAL (VALUES (outcome_of(format('SELECT snowflake.from_base32(%L)', encoded))),
                                       (outcome_of(format('SELECT snowflake.from_base32(%L, true)', encoded)))) o (outcome)) t
 GROUP BY 1 ORDER BY 1;
SELECT outcome_of('SELECT snowflake.from_base32(repeat(''-'', 1000000) || ''0000000000000'')') AS hyphens,
       outcome_of('SELECT snowflake.from_base32(repeat(''0'', 1000000))') AS long32;
CREATE TABLE toasted AS SELECT repeat('0-', 13) || repeat('-', 100000) AS encoded;
SELECT snowflake.from_base32(encoded) FROM toasted;
