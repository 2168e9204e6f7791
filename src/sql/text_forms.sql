
-- The base62 text of an id depends only on the id's value (bigint). The UUID of an id depends on the id's value
-- (bigint) and on the id layout.

CREATE FUNCTION snowflake.to_base62(id bigint) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_to_base62'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_base62(bigint) IS
  'Converts an id to a text of 11 characters 0-9A-Za-z. Under COLLATE "C", the texts sort like the ids. A negative '
  'number is an error';

CREATE FUNCTION snowflake.from_base62(encoded text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_base62'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_base62(text) IS
  'Converts a result of to_base62() back to the id. A text that is not a base62 id is an error';

CREATE FUNCTION snowflake.to_uuid(id bigint) RETURNS uuid
  AS 'MODULE_PATHNAME', 'snowflake_to_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_uuid(bigint) IS
  'Converts an id to a UUID of version 7 with the time of the id. The UUIDs sort like the ids. The time of the id '
  'must be before 10889-08-02';

CREATE FUNCTION snowflake.from_uuid(encoded uuid) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_uuid(uuid) IS
  'Converts a result of to_uuid() back to the id. A UUID that was not made from an id is an error';
