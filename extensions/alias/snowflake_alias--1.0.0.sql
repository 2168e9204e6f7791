/* snowflake_alias--1.0.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_alias" to load this file. \quit

-- STABLE, not IMMUTABLE, because a reload may change the keys. An alias can be looked up by an index over the id, but
-- must not be stored. PARALLEL RESTRICTED, because a worker would read the key file again, and one statement could write
-- under two versions of a key.

CREATE FUNCTION snowflake.alias(id bigint, key_name text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.alias(bigint, text) IS
  'An id, permuted under a key, in 11 characters 0-9A-Za-z; an error for negative numbers';

CREATE FUNCTION snowflake.alias(id bigint, key_name text, prefix text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.alias(bigint, text, text) IS
  'alias() after a prefix such as user_: 1 to 32 characters 0-9A-Za-z_-, the last one _ or -';

CREATE FUNCTION snowflake.from_alias(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_alias(text, text) IS
  'The id of an alias, under the version of the key that made it; not a proof that alias() made it';

CREATE FUNCTION snowflake.from_alias(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_alias(text, text, text) IS
  'As without a prefix, for a text after a prefix; another prefix is an error';

CREATE FUNCTION snowflake.try_from_alias(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_alias(text, text) IS
  'from_alias(), but NULL for an invalid text; a wrong key name or key file is an error';

CREATE FUNCTION snowflake.try_from_alias(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_alias(text, text, text) IS
  'from_alias() with a prefix, but NULL for an invalid text';

CREATE FUNCTION snowflake.digits(id bigint, key_name text, length integer DEFAULT 20) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.digits(bigint, text, integer) IS
  'A number with fewer than length digits (7 to 20), permuted under a key; the first digit is the version of the key';

CREATE FUNCTION snowflake.digits(id bigint, key_name text, length integer, prefix text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.digits(bigint, text, integer, text) IS
  'digits() after a prefix such as order-';

CREATE FUNCTION snowflake.from_digits(encoded text, key_name text, length integer DEFAULT 20) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_digits(text, text, integer) IS
  'The number of exactly length digits, under the version of the key that made them; not a proof that digits() made them';

CREATE FUNCTION snowflake.from_digits(encoded text, key_name text, length integer, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_digits(text, text, integer, text) IS
  'from_digits() for digits after a prefix; another prefix is an error';

CREATE FUNCTION snowflake.try_from_digits(encoded text, key_name text, length integer DEFAULT 20) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_digits(text, text, integer) IS
  'from_digits(), but NULL for an invalid text; a wrong length, key name or key file is an error';

CREATE FUNCTION snowflake.try_from_digits(encoded text, key_name text, length integer, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_digits(text, text, integer, text) IS
  'from_digits() with a prefix, but NULL for an invalid text';

CREATE FUNCTION snowflake.token(id bigint, key_name text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.token(bigint, text) IS
  'An id and 64 bits of redundancy, enciphered under a key, in 22 characters 0-9A-Za-z';

CREATE FUNCTION snowflake.token(id bigint, key_name text, prefix text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.token(bigint, text, text) IS
  'token() after a prefix such as user_';

CREATE FUNCTION snowflake.from_token(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_token(text, text) IS
  'The id of a token, under any version of the key; a token that token() did not make is an error';

CREATE FUNCTION snowflake.from_token(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_token(text, text, text) IS
  'As without a prefix, for a text after a prefix; another prefix is an error';

CREATE FUNCTION snowflake.try_from_token(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_token(text, text) IS
  'from_token(), but NULL for an invalid text; a wrong key name or key file is an error';

CREATE FUNCTION snowflake.try_from_token(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_token(text, text, text) IS
  'from_token() with a prefix, but NULL for an invalid text';

CREATE FUNCTION snowflake.alias_keys(OUT name text, OUT version integer, OUT writes boolean,
                                     OUT check_value text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_alias_keys'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION snowflake.alias_keys() IS
  'The keys that this session has read, each with a value to compare with other servers';

-- Text for people and for systems with ULIDs. These forms need no key and reveal what the id does. Their C functions
-- are in the library of the generator, next to those of base62 and UUIDs.

CREATE FUNCTION snowflake.to_base32(id bigint, check_symbol boolean DEFAULT false) RETURNS text
  AS 'snowflake', 'snowflake_to_base32'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_base32(bigint, boolean) IS
  'An id in 13 characters of Crockford''s base32, sorting as ids do under COLLATE "C"; with a check symbol 14; refuses negative numbers';

CREATE FUNCTION snowflake.from_base32(encoded text, check_symbol boolean DEFAULT false) RETURNS bigint
  AS 'snowflake', 'snowflake_from_base32'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_base32(text, boolean) IS
  'The id that to_base32() wrote; upper or lower case, o for 0, i and l for 1, hyphens anywhere; the check symbol must be there if and only if asked for';

CREATE FUNCTION snowflake.to_ulid(id bigint) RETURNS text
  AS 'snowflake', 'snowflake_to_ulid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_ulid(bigint) IS
  'An id as a ULID, 26 characters of Crockford''s base32: the 128 bits of to_uuid()';

CREATE FUNCTION snowflake.from_ulid(encoded text) RETURNS bigint
  AS 'snowflake', 'snowflake_from_ulid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_ulid(text) IS
  'The id of which to_ulid() made this, read as forgivingly as base32; any other ULID is an error';

-- A role that may call these can turn any alias into its id, so no role may by default.
REVOKE ALL ON FUNCTION
  snowflake.alias(bigint, text), snowflake.alias(bigint, text, text),
  snowflake.from_alias(text, text), snowflake.from_alias(text, text, text),
  snowflake.try_from_alias(text, text), snowflake.try_from_alias(text, text, text),
  snowflake.digits(bigint, text, integer), snowflake.digits(bigint, text, integer, text),
  snowflake.from_digits(text, text, integer), snowflake.from_digits(text, text, integer, text),
  snowflake.try_from_digits(text, text, integer), snowflake.try_from_digits(text, text, integer, text),
  snowflake.token(bigint, text), snowflake.token(bigint, text, text),
  snowflake.from_token(text, text), snowflake.from_token(text, text, text),
  snowflake.try_from_token(text, text), snowflake.try_from_token(text, text, text),
  snowflake.alias_keys() FROM PUBLIC;
