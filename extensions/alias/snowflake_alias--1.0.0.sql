/* snowflake_alias--1.0.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_alias" to load this file. \quit

-- alias() is STABLE, not IMMUTABLE, because a reload of the configuration may change the keys. An index on the id can
-- find the row of an alias, but an alias must not be stored. alias() is PARALLEL RESTRICTED, because a parallel worker
-- would read the key file again. If the key file has changed, one statement would use two versions of a key.

CREATE FUNCTION snowflake.alias(id bigint, key_name text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.alias(bigint, text) IS
  'Hides an id: returns 11 characters from 0-9A-Za-z, computed with a key. A negative number is an error';

CREATE FUNCTION snowflake.alias(id bigint, key_name text, prefix text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.alias(bigint, text, text) IS
  'Returns a prefix such as user_ and then alias(). The prefix has 1 to 32 characters from 0-9A-Za-z_- and ends in _ '
  'or -';

CREATE FUNCTION snowflake.from_alias(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_alias(text, text) IS
  'Returns the id of an alias. Uses the version of the key that made the alias. Does not prove that alias() made the '
  'text';

CREATE FUNCTION snowflake.from_alias(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_alias(text, text, text) IS
  'Removes the prefix, and then does what the function without a prefix does. A different prefix is an error';

CREATE FUNCTION snowflake.try_from_alias(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_alias(text, text) IS
  'Like from_alias(), but returns NULL for an invalid text. A wrong key name or key file is an error';

CREATE FUNCTION snowflake.try_from_alias(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_alias(text, text, text) IS
  'Like from_alias() with a prefix, but returns NULL for an invalid text';

CREATE FUNCTION snowflake.digits(id bigint, key_name text, length integer DEFAULT 20) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.digits(bigint, text, integer) IS
  'Hides a number: returns length digits (7 to 20), computed with a key. The first digit is the version of the key. '
  'The number must have fewer than length digits';

CREATE FUNCTION snowflake.digits(id bigint, key_name text, length integer, prefix text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.digits(bigint, text, integer, text) IS
  'Returns a prefix such as order- and then digits()';

CREATE FUNCTION snowflake.from_digits(encoded text, key_name text, length integer DEFAULT 20) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_digits(text, text, integer) IS
  'Returns the number of a text of exactly length digits. Uses the version of the key that made the text. Does not '
  'prove that digits() made the text';

CREATE FUNCTION snowflake.from_digits(encoded text, key_name text, length integer, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_digits(text, text, integer, text) IS
  'Removes the prefix, and then does what from_digits() does. A different prefix is an error';

CREATE FUNCTION snowflake.try_from_digits(encoded text, key_name text, length integer DEFAULT 20) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_digits(text, text, integer) IS
  'Like from_digits(), but returns NULL for an invalid text. A wrong length, key name or key file is an error';

CREATE FUNCTION snowflake.try_from_digits(encoded text, key_name text, length integer, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_digits(text, text, integer, text) IS
  'Like from_digits() with a prefix, but returns NULL for an invalid text';

CREATE FUNCTION snowflake.token(id bigint, key_name text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.token(bigint, text) IS
  'Encrypts an id and 64 check bits with a key. Returns 22 characters from 0-9A-Za-z';

CREATE FUNCTION snowflake.token(id bigint, key_name text, prefix text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.token(bigint, text, text) IS
  'Returns a prefix such as user_ and then token()';

CREATE FUNCTION snowflake.from_token(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_token(text, text) IS
  'Returns the id of a token that any version of the key made. A text that token() did not make is an error';

CREATE FUNCTION snowflake.from_token(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_token(text, text, text) IS
  'Removes the prefix, and then does what the function without a prefix does. A different prefix is an error';

CREATE FUNCTION snowflake.try_from_token(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_token(text, text) IS
  'Like from_token(), but returns NULL for an invalid text. A wrong key name or key file is an error';

CREATE FUNCTION snowflake.try_from_token(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_token(text, text, text) IS
  'Like from_token() with a prefix, but returns NULL for an invalid text';

CREATE FUNCTION snowflake.alias_keys(OUT name text, OUT version integer, OUT writes boolean,
                                     OUT check_value text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_alias_keys'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION snowflake.alias_keys() IS
  'The keys that this session has read. If check_value is equal on two servers, both have the same key';

-- Functions that convert ids to texts for people, and to ULIDs. The texts need no key, and reveal everything that the
-- id reveals. The C functions are in the library of the extension snowflake, next to the functions of base62 and UUIDs.

CREATE FUNCTION snowflake.to_base32(id bigint, check_symbol boolean DEFAULT false) RETURNS text
  AS 'snowflake', 'snowflake_to_base32'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_base32(bigint, boolean) IS
  'Writes an id in 13 characters of Crockford''s base32, or in 14 with a check symbol. The texts sort like the ids '
  'under COLLATE "C". A negative number is an error';

CREATE FUNCTION snowflake.from_base32(encoded text, check_symbol boolean DEFAULT false) RETURNS bigint
  AS 'snowflake', 'snowflake_from_base32'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_base32(text, boolean) IS
  'Returns the id that to_base32() wrote. Accepts upper and lower case, o for 0, i and l for 1, and hyphens anywhere. '
  'Requires the check symbol if check_symbol is true, and refuses it otherwise';

CREATE FUNCTION snowflake.to_ulid(id bigint) RETURNS text
  AS 'snowflake', 'snowflake_to_ulid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_ulid(bigint) IS
  'Writes an id as a ULID: the 128 bits of to_uuid() in 26 characters of Crockford''s base32';

CREATE FUNCTION snowflake.from_ulid(encoded text) RETURNS bigint
  AS 'snowflake', 'snowflake_from_ulid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_ulid(text) IS
  'Returns the id from which to_ulid() made a ULID. Accepts the same spellings as from_base32(). Any other ULID is an '
  'error';

-- By default only the owner of the extension may call the alias functions, because from_alias() converts any alias to
-- its id.
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
