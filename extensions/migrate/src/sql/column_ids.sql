
-- Planning a query can run code of a table's owner, in index predicates and check constraints. The functions of this
-- file read tables without a query, so that no code of a table's owner runs.
CREATE FUNCTION snowflake.ends_of(relation regclass, id_column name, OUT lowest bigint, OUT highest bigint)
  AS 'MODULE_PATHNAME', 'snowflake_ends_of'
  LANGUAGE C STABLE STRICT PARALLEL UNSAFE SET row_security = off;
COMMENT ON FUNCTION snowflake.ends_of(regclass, name) IS
  'Returns the smallest and the greatest integer in a column of a table and its child tables, or null if the column '
  'contains no integer. Runs no code of the table''s owner. Reads a view or a foreign table with the rights of its '
  'owner, so the caller must have these rights';

CREATE FUNCTION snowflake.audited(relation regclass, id_column name, sample double precision, early bigint, mark bigint,
                                  OUT kind text, OUT region integer, OUT shard integer, OUT ids bigint,
                                  OUT lowest bigint, OUT highest bigint)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_audited'
  LANGUAGE C STABLE STRICT PARALLEL UNSAFE ROWS 100 SET row_security = off;
COMMENT ON FUNCTION snowflake.audited(regclass, name, double precision, bigint, bigint) IS
  'Internal: for audit(): counts the ids of a column by kind, region and shard. Like ends_of(), the function reads '
  'the column without a query';
