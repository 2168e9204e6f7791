-- A cursor that loses nothing.

CREATE FUNCTION snowflake.settled_before() RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_settled_before'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.settled_before() IS
  'In every snapshot that is taken later, the rows below this id are final, if their ids were minted by the '
  'transaction '
  'that inserted them. Call it in a separate statement before the query. NULL if unknown; the view settled shows why';

CREATE FUNCTION snowflake.settled(
    OUT settled_before bigint, OUT held_back_by text, OUT pid integer, OUT transaction xid, OUT since timestamptz)
  AS 'MODULE_PATHNAME', 'snowflake_settled'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.settled() IS 'Internal: for the view snowflake.settled';

CREATE VIEW snowflake.settled AS
  SELECT s.settled_before, s.held_back_by, s.pid, p.gid, s.since
    FROM snowflake.settled() AS s
    LEFT JOIN pg_catalog.pg_prepared_xacts AS p ON p.transaction OPERATOR(pg_catalog.=) s.transaction;
COMMENT ON VIEW snowflake.settled IS
  'The value of settled_before() and the session (pid) or prepared transaction (gid) that holds it '
  'back, and since when; '
  'held_back_by is NULL if it is not held back';
