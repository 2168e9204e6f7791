-- Statements about a table of another role. Checks, index predicates, triggers and policies of a table are code of its owner.
-- Such code must not run with the rights of a superuser who calls one of the functions here.

CREATE FUNCTION snowflake.run_as(role oid, statement text, path text DEFAULT 'pg_catalog, pg_temp') RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_run_as'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.run_as(oid, text, text) IS
  'Internal: for procedures: runs a statement as another role, in a security-restricted operation, with this search_path. The caller must have the rights of the role. Settings are restored';

CREATE FUNCTION snowflake.ask_as(role oid, statement text, path text DEFAULT 'pg_catalog, pg_temp') RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_ask_as'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.ask_as(oid, text, text) IS
  'Internal: for procedures: as run_as(), and returns the rows of the statement';

-- The planner of a query evaluates predicates and checks. These functions read the column without a query.
CREATE FUNCTION snowflake.ends_of(relation regclass, id_column name, OUT lowest bigint, OUT highest bigint)
  AS 'MODULE_PATHNAME', 'snowflake_ends_of'
  LANGUAGE C STABLE STRICT PARALLEL UNSAFE SET row_security = off;
COMMENT ON FUNCTION snowflake.ends_of(regclass, name) IS
  'The least and the greatest integer in a column of a table and its child tables; null if there is none. Runs no code of the table''s owner. Reads a view or a foreign table as its owner, whose rights the caller must have';

CREATE FUNCTION snowflake.audited(relation regclass, id_column name, sample double precision, early bigint, mark bigint,
                                  OUT kind text, OUT region integer, OUT shard integer, OUT ids bigint, OUT lowest bigint, OUT highest bigint)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_audited'
  LANGUAGE C STABLE STRICT PARALLEL UNSAFE ROWS 100 SET row_security = off;
COMMENT ON FUNCTION snowflake.audited(regclass, name, double precision, bigint, bigint) IS
  'Internal: behind audit(): reads a column as ends_of() does, and counts its ids by kind, region and shard';

-- The lock keeps the owner of the schema from putting another table in the place of this one, whose owner it would not be.
CREATE FUNCTION snowflake.owner_of(relation regclass) RETURNS oid
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', relation);
  RETURN (SELECT relowner FROM pg_class WHERE oid = relation);
END
$$;
COMMENT ON FUNCTION snowflake.owner_of(regclass) IS
  'Internal: for procedures: the role for run_as(), of a table that stays what it is until the transaction ends';
