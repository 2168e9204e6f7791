
-- Administration

CREATE FUNCTION snowflake.observe(id bigint) RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_observe'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.observe(bigint) IS
  'Makes every later id of this database greater than the passed id, which another server minted. A null argument has '
  'no effect';

CREATE FUNCTION snowflake.accept_clock() RETURNS interval
  AS 'MODULE_PATHNAME', 'snowflake_accept_clock'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.accept_clock() IS
  'Confirms that the clock of this server is right. Call this function after a step of the clock that you trust. '
  'Returns by how much the clock has moved, compared with the time since boot';

CREATE FUNCTION snowflake.accept_clone() RETURNS boolean
  AS 'MODULE_PATHNAME', 'snowflake_accept_clone'
  LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.accept_clone() IS
  'Confirms that this clone of the database mints ids from now on, and that no other clone does. Returns whether the '
  'database was a clone before the call. A rollback does not undo accept_clone()';

CREATE FUNCTION snowflake.set_mark(at timestamptz) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'snowflake_set_mark'
  LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.set_mark(timestamptz) IS
  'Sets the high-water mark to a time after every id of this database. If the database has an id with a time at or '
  'after the argument, ids can be minted twice. The function can lower the high-water mark, but not below a mark '
  'that was written since the server started. Returns the new high-water mark';

-- Only privileged roles may call the administration functions. If a role sets the high-water mark far ahead of the
-- clock, the database mints no ids. The function accept_clock() affects all databases of the server. A high-water mark
-- that is too low can cause duplicate ids. A clone of a database can also cause duplicate ids if it mints next to the
-- original.
REVOKE ALL ON FUNCTION snowflake.observe(bigint), snowflake.accept_clock(), snowflake.accept_clone(),
  snowflake.set_mark(timestamptz) FROM PUBLIC;
