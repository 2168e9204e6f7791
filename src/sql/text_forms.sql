
-- Ids outside the database. The text forms are functions of the number alone; UUIDs and ULIDs of the
-- number and the layout.

CREATE FUNCTION snowflake.to_base62(id bigint) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_to_base62'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_base62(bigint) IS
  'An id in 11 characters 0-9A-Za-z; sorts as ids do under COLLATE "C"; refuses negative numbers';

CREATE FUNCTION snowflake.from_base62(encoded text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_base62'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_base62(text) IS
  'The id that to_base62() wrote; anything else is an error with the position';

CREATE FUNCTION snowflake.to_base32(id bigint, check_symbol boolean DEFAULT false) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_to_base32'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_base32(bigint, boolean) IS
  'An id in 13 characters of Crockford''s base32, sorting as ids do under COLLATE "C"; with a check symbol 14; refuses negative numbers';

CREATE FUNCTION snowflake.from_base32(encoded text, check_symbol boolean DEFAULT false) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_base32'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_base32(text, boolean) IS
  'The id that to_base32() wrote; upper or lower case, o for 0, i and l for 1, hyphens anywhere; the check symbol must be there if and only if asked for';

CREATE FUNCTION snowflake.to_uuid(id bigint) RETURNS uuid
  AS 'MODULE_PATHNAME', 'snowflake_to_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_uuid(bigint) IS
  'An id as a UUID of version 7 with the id''s time; sorts as ids do; times up to 10889-08-02';

CREATE FUNCTION snowflake.from_uuid(encoded uuid) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_uuid(uuid) IS
  'The id of which to_uuid() made this; any other UUID is an error';

CREATE FUNCTION snowflake.to_ulid(id bigint) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_to_ulid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_ulid(bigint) IS
  'An id as a ULID, 26 characters of Crockford''s base32: the 128 bits of to_uuid()';

CREATE FUNCTION snowflake.from_ulid(encoded text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_ulid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_ulid(text) IS
  'The id of which to_ulid() made this, read as forgivingly as base32; any other ULID is an error';
