/* snowflake_alias--1.0.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_alias" to load this file. \quit

-- alias() is STABLE, not IMMUTABLE, because a reload of the configuration may change the keys. To find the row of an
-- alias, decode the alias with from_alias(), and use an index on the id. Do not store an alias, because the alias of an
-- id changes with the keys. The function alias() is PARALLEL RESTRICTED, because a parallel worker would read the key
-- file again. If the key file has changed since the leader read it, a parallel worker and its leader would use
-- different keys.

CREATE FUNCTION snowflake.alias(id bigint, key_name text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.alias(bigint, text) IS
  'Hides an id: returns a text of 11 characters from 0-9A-Za-z that is computed with a key. A negative number is an '
  'error';

CREATE FUNCTION snowflake.alias(id bigint, key_name text, prefix text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.alias(bigint, text, text) IS
  'Returns a prefix such as user_, followed by the result of alias(). The prefix has 1 to 32 characters from '
  '0-9A-Za-z_- and ends in _ or -';

CREATE FUNCTION snowflake.from_alias(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_alias(text, text) IS
  'Returns the id that alias() hid in a text. The function uses the version of the key with which the alias was '
  'made. from_alias() can also return an id for a text that alias() did not make';

CREATE FUNCTION snowflake.from_alias(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_alias(text, text, text) IS
  'Removes the prefix from a text, and decodes the rest to the id. A text with a different prefix is an error';

CREATE FUNCTION snowflake.try_from_alias(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_alias(text, text) IS
  'Does the same as from_alias(), but returns NULL for an invalid text. A wrong key name or key file is an error';

CREATE FUNCTION snowflake.try_from_alias(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_alias'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_alias(text, text, text) IS
  'Does the same as from_alias() with a prefix, but returns NULL for an invalid text';

CREATE FUNCTION snowflake.digits(id bigint, key_name text, length integer DEFAULT 20) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.digits(bigint, text, integer) IS
  'Hides a number: returns digits that are computed with a key. The argument "length" (7 to 20) is the number of '
  'digits. The first digit of the result is the version of the key. The number that is passed must have fewer than '
  '"length" digits';

CREATE FUNCTION snowflake.digits(id bigint, key_name text, length integer, prefix text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.digits(bigint, text, integer, text) IS
  'Returns a prefix such as order-, followed by the result of digits()';

CREATE FUNCTION snowflake.from_digits(encoded text, key_name text, length integer DEFAULT 20) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_digits(text, text, integer) IS
  'Returns the number that digits() hid in a text. The text must have exactly as many digits as the argument '
  '"length". The function uses the version of the key with which the text was made. from_digits() can also return a '
  'number for a text that digits() did not make';

CREATE FUNCTION snowflake.from_digits(encoded text, key_name text, length integer, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_digits(text, text, integer, text) IS
  'Removes the prefix from a text, and returns the number that digits() hid in the rest. A text with a different '
  'prefix is an error';

CREATE FUNCTION snowflake.try_from_digits(encoded text, key_name text, length integer DEFAULT 20) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_digits(text, text, integer) IS
  'Does the same as from_digits(), but returns NULL for an invalid text. A wrong length, key name or key file is an '
  'error';

CREATE FUNCTION snowflake.try_from_digits(encoded text, key_name text, length integer, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_digits'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_digits(text, text, integer, text) IS
  'Does the same as from_digits() with a prefix, but returns NULL for an invalid text';

CREATE FUNCTION snowflake.token(id bigint, key_name text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.token(bigint, text) IS
  'Encrypts an id and 64 check bits with a key. Returns a text of 22 characters from 0-9A-Za-z';

CREATE FUNCTION snowflake.token(id bigint, key_name text, prefix text) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.token(bigint, text, text) IS
  'Returns a prefix such as user_, followed by the result of token()';

CREATE FUNCTION snowflake.from_token(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_token(text, text) IS
  'Decrypts a token, and returns the id. The token can be from any version of the key in the key file. A text that '
  'token() did not make is an error';

CREATE FUNCTION snowflake.from_token(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.from_token(text, text, text) IS
  'Removes the prefix from a text, and decodes the rest to the id. A text with a different prefix is an error';

CREATE FUNCTION snowflake.try_from_token(encoded text, key_name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_token(text, text) IS
  'Does the same as from_token(), but returns NULL for an invalid text. A wrong key name or key file is an error';

CREATE FUNCTION snowflake.try_from_token(encoded text, key_name text, prefix text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_try_from_token'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.try_from_token(text, text, text) IS
  'Does the same as from_token() with a prefix, but returns NULL for an invalid text';

CREATE FUNCTION snowflake.alias_keys(OUT name text, OUT version integer, OUT writes boolean,
                                     OUT check_value text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_alias_keys'
  LANGUAGE C STABLE STRICT PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION snowflake.alias_keys() IS
  'Returns the keys that this session has read from the key file. If the check_value of a key is equal on two '
  'servers, both servers have the same key';

-- Functions that convert ids to texts for people, and to ULIDs. The functions to_base32() and to_ulid() need no key,
-- and their results reveal everything that the id reveals.

CREATE FUNCTION snowflake.to_base32(id bigint, check_symbol boolean DEFAULT false) RETURNS text
  AS 'snowflake', 'snowflake_to_base32'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_base32(bigint, boolean) IS
  'Converts an id to 13 characters of Crockford''s base32, or to 14 characters with a check symbol. Under COLLATE '
  '"C", the texts sort like the ids. A negative number is an error';

CREATE FUNCTION snowflake.from_base32(encoded text, check_symbol boolean DEFAULT false) RETURNS bigint
  AS 'snowflake', 'snowflake_from_base32'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_base32(text, boolean) IS
  'Converts a result of to_base32() back to the id. The text may contain upper and lower case, o for 0, i and l for '
  '1, and hyphens anywhere. If check_symbol is true, the text must have a check symbol. If check_symbol is false, a '
  'text with a check symbol is an error';

CREATE FUNCTION snowflake.to_ulid(id bigint) RETURNS text
  AS 'snowflake', 'snowflake_to_ulid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_ulid(bigint) IS
  'Converts an id to a ULID. The ULID is the 128 bits of to_uuid() in 26 characters of Crockford''s base32';

CREATE FUNCTION snowflake.from_ulid(encoded text) RETURNS bigint
  AS 'snowflake', 'snowflake_from_ulid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_ulid(text) IS
  'Converts a result of to_ulid() back to the id. Accepts the same spellings as from_base32(). A ULID that was not '
  'made from an id is an error';

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
