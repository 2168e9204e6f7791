-- The functions run_as() and query_as() run a statement on a table with the rights of the table's owner. Checks, index
-- predicates, triggers and policies of a table can call functions of the table's owner. If a superuser calls run_as(),
-- code of the table's owner must not get the superuser's rights.

CREATE FUNCTION snowflake.run_as(role oid, statement text, path text DEFAULT 'pg_catalog, pg_temp') RETURNS void
  AS 'MODULE_PATHNAME', 'snowflake_run_as'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.run_as(oid, text, text) IS
  'Internal: for procedures. Runs a statement as another role, in a security-restricted operation, with the given '
  'search_path. The caller must have the privileges of the role. When the call ends, all settings have their '
  'previous values';

CREATE FUNCTION snowflake.query_as(role oid, statement text, path text DEFAULT 'pg_catalog, pg_temp')
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'snowflake_query_as'
  LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake.query_as(oid, text, text) IS
  'Internal: for procedures. Runs a statement as run_as() does, and returns the rows of the statement';

CREATE FUNCTION snowflake.refuse_null(routine text, VARIADIC arguments text[]) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF array_position(arguments, NULL) IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
      MESSAGE = format('%s does not accept null arguments', routine),
      DETAIL = format('Argument %s is null.', array_position(arguments, NULL)),
      HINT = 'Pass a value, or leave out arguments that have a default.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_null(text, text[]) IS
  'Internal: for procedures. Raises an error if an argument is null';

-- owner_of() locks the table, so that the schema's owner cannot replace it by a table of another role.
CREATE FUNCTION snowflake.owner_of(relation regclass) RETURNS oid
  LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', relation);
  RETURN (SELECT relowner FROM pg_class WHERE oid = relation);
END
$$;
COMMENT ON FUNCTION snowflake.owner_of(regclass) IS
  'Internal: for procedures. Returns the owner of a table for run_as(). Locks the table until the transaction ends';
