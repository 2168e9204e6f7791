
-- Ids outside the database. Text forms depend only on the number, and UUIDs on the number and the layout.

CREATE FUNCTION snowflake.to_base62(id bigint) RETURNS text
  AS 'MODULE_PATHNAME', 'snowflake_to_base62'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_base62(bigint) IS
  'An id in 11 characters 0-9A-Za-z; sorts as ids do under COLLATE "C"; refuses negative numbers';

CREATE FUNCTION snowflake.from_base62(encoded text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_base62'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_base62(text) IS
  'The id of a text of to_base62(); any other text is an error that shows the position';

CREATE FUNCTION snowflake.to_uuid(id bigint) RETURNS uuid
  AS 'MODULE_PATHNAME', 'snowflake_to_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.to_uuid(bigint) IS
  'An id as a UUID of version 7 with the id''s time; sorts as ids do; times up to 10889-08-02';

CREATE FUNCTION snowflake.from_uuid(encoded uuid) RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_from_uuid'
  LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake.from_uuid(uuid) IS 'The id of a UUID of to_uuid(); any other UUID is an error';
