-- A cursor that loses nothing.

CREATE FUNCTION snowflake.settled_before() RETURNS bigint
  AS 'MODULE_PATHNAME', 'snowflake_settled_before'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.settled_before() IS
  'In every snapshot that is taken after it returned, the rows below this id are final whose ids were minted by the '
  'transaction that inserts them: ask in a statement of its own, before the one that reads. NULL where that is not known; '
  'the view settled says why';

CREATE FUNCTION snowflake.settled(
    OUT settled_before bigint, OUT held_back_by text, OUT pid integer, OUT transaction xid, OUT since timestamptz)
  AS 'MODULE_PATHNAME', 'snowflake_settled'
  LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake.settled() IS 'Behind the view snowflake.settled';

CREATE VIEW snowflake.settled AS
  SELECT s.settled_before, s.held_back_by, s.pid, p.gid, s.since
    FROM snowflake.settled() AS s
    LEFT JOIN pg_catalog.pg_prepared_xacts AS p ON p.transaction OPERATOR(pg_catalog.=) s.transaction;
COMMENT ON VIEW snowflake.settled IS
  'What settled_before() says, and what holds it back: the session (pid) or the prepared transaction (gid) that minted first, '
  'and when; held_back_by is NULL where nothing does';
