-- Compares ids as ULIDs with the 128 bits of to_uuid() in Crockford's base32.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake_alias CASCADE;
CREATE SCHEMA ulid;
SET search_path = ulid;
SELECT id, snowflake.to_ulid(id) FROM unnest(ARRAY[0, 1, 499712025023222784, 9223372036854775807]) AS id;
CREATE FUNCTION by_hand(uuid) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substring(bits FROM place FOR 5)::bit(5)::integer + 1, 1), '' ORDER BY place)
    FROM CAST(B'00' || ('x' || replace($1::text, '-', ''))::bit(128) AS bit varying) AS bits, generate_series(1, 126, 5) AS place
$$;
CREATE TABLE ulids AS
  SELECT id, snowflake.to_ulid(id) AS ulid
    FROM (SELECT trunc(random()::numeric * 9223372036854775808)::bigint FROM generate_series(1, 1000)) AS s (id);
SELECT count(*), bool_and(ulid = by_hand(snowflake.to_uuid(id))) AS by_hand, bool_and(snowflake.from_ulid(ulid) = id) AS back,
       bool_and(snowflake.from_ulid('-' || translate(lower(ulid), '01', 'oi')) = id) AS as_typed,
       array_agg(id ORDER BY ulid COLLATE "C") = array_agg(id ORDER BY id) AS sorts
  FROM ulids;
SELECT snowflake.to_ulid(NULL) IS NULL AND snowflake.from_ulid(NULL) IS NULL AS nulls;
-- A query that searches by a ULID uses the index of the primary key
CREATE TABLE posts (id bigint PRIMARY KEY);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
PREPARE by_ulid(text) AS SELECT id FROM posts WHERE id = snowflake.from_ulid($1);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_ulid('01ARZ3NDEKTSV4RRFFQ69G5FAV');
-- What is refused
SELECT snowflake.to_ulid(-1);
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_ulid('01ARZ3NDEKTSV4RRFFQ69G5FAV');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_ulid('01ARZ3NDEKTSV4RRFFQ69G5FAU');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.from_ulid('01ARZ3NDEKTSV4RRFFQ69G5FA');
SELECT snowflake.from_ulid('81ARZ3NDEKTSV4RRFFQ69G5FAV');
\echo SQLSTATE :SQLSTATE
