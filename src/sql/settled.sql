CREATE FUNCTION snowflake.settled_before() RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_settled_before'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.settled_before() IS
  'Returns an id below which no new row can appear in later snapshots. Each transaction must mint the ids of its '
  'rows itself. Call the function in a separate statement before the query that reads the rows. If the id is '
  'unknown, the result is NULL, and the view snowflake.settled shows the reason';

CREATE FUNCTION snowflake.settled(
    OUT settled_before bigint, OUT held_back_by text, OUT pid integer, OUT transaction xid, OUT since timestamptz)
  AS 'MODULE_PATHNAME', 'snowflake_settled'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.settled() IS 'Internal: returns the row of the view snowflake.settled';

CREATE VIEW snowflake.settled AS
  SELECT s.settled_before, s.held_back_by, s.pid, p.gid, s.since
    FROM snowflake.settled() AS s
    LEFT JOIN pg_catalog.pg_prepared_xacts AS p ON p.transaction OPERATOR(pg_catalog.=) s.transaction;
COMMENT ON VIEW snowflake.settled IS
  'Shows the result of settled_before(), and the session (pid) or prepared transaction (gid) because of which the '
  'result does not increase. The column "since" shows the time of the first id that this transaction minted. If the '
  'result can increase, the column "held_back_by" is NULL';
