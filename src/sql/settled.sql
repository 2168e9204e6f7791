CREATE FUNCTION snowflake.settled_before() RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_settled_before'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.settled_before() IS
  'Rows with smaller ids are final in every snapshot that is taken later. This requires that each transaction mints '
  'the ids of its rows itself. Call the function in a separate statement before the query. NULL means unknown; the '
  'view settled shows why';

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
  'The result of settled_before(), the session (pid) or prepared transaction (gid) that holds the result back, and '
  'since when. If nothing holds the result back, held_back_by is NULL';
