-- Lists the columns for which adopt() has set a default or a trigger that mints ids. The table snowflake.adopted
-- belongs to the extension snowflake, because the extension snowflake_migrate may be dropped. If an upgrade of the
-- application replaces a default that mints, the view snowflake.health shows the column.

-- The column `relation` has the type text, not regclass. A regclass value that names a table which was not restored
-- would be an error during the restore.
CREATE TABLE snowflake.adopted (
  relation text NOT NULL,      -- the table's name with its schema, quoted if necessary
  attribute name NOT NULL,
  at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  PRIMARY KEY (relation, attribute));
COMMENT ON TABLE snowflake.adopted IS
  'The columns whose default was changed by adopt(), so that new rows get ids. If a column no longer needs ids, '
  'delete the row of this column from snowflake.adopted';
SELECT pg_catalog.pg_extension_config_dump('snowflake.adopted', '');

-- A default can call next_id() through a domain or a function with a BEGIN ATOMIC body. The catalogue pg_depend
-- contains the dependencies of a domain's default and of a BEGIN ATOMIC body. PostgreSQL stores no dependencies for a
-- function body that is a string.
CREATE FUNCTION snowflake.filled_columns(OUT relation regclass, OUT attribute name, OUT holds_ids boolean)
  RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 50 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE minting (function) AS (
    SELECT oid FROM pg_proc
     WHERE pronamespace = to_regnamespace('snowflake')
       AND proname IN ('next_id', 'next_id_in', 'next_id_near', 'next_ids', 'next_ids_in')
    UNION
    SELECT objid FROM minting JOIN pg_depend ON refclassid = 'pg_proc'::regclass AND refobjid = function
     WHERE classid = 'pg_proc'::regclass),
  bigints (type) AS (
    SELECT 'bigint'::regtype::oid
    UNION
    SELECT oid FROM bigints JOIN pg_type ON typbasetype = type),
  defaults (classid, objid) AS (
    SELECT classid, objid FROM minting JOIN pg_depend ON refclassid = 'pg_proc'::regclass AND refobjid = function)
  SELECT DISTINCT c.oid::regclass, a.attname, relkind <> 'v' AND a.atttypid IN (SELECT type FROM bigints)
    FROM (SELECT adrelid, adnum
            FROM defaults JOIN pg_attrdef AS e ON e.oid = objid
           WHERE classid = 'pg_attrdef'::regclass
          UNION
          SELECT attrelid, attnum
            FROM defaults JOIN pg_attribute ON atttypid = objid
           WHERE classid = 'pg_type'::regclass AND NOT atthasdef AND NOT attisdropped AND attnum > 0
          UNION
          SELECT tgrelid, attnum
            FROM pg_trigger JOIN pg_proc AS p ON p.oid = tgfoid
           CROSS JOIN LATERAL (SELECT array_agg(convert_from(decode(m[1], 'hex'), getdatabaseencoding()))
                                 FROM regexp_matches(encode(tgargs, 'hex'), '((?:0[1-9a-f]|[1-9a-f].)*)00',
                                                     'g') AS m) AS t (given)
            JOIN pg_attribute ON attrelid = tgrelid
             AND attname = CASE WHEN tgnargs = 2 AND given[2] <> 'hash' OR tgnargs = 3 THEN given[2] ELSE 'id' END
           WHERE pronamespace = to_regnamespace('snowflake') AND proname = 'set_id'
             AND given[1] <> '') AS m (relid, attnum)
    JOIN pg_class AS c ON c.oid = m.relid JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = m.attnum
   WHERE relkind IN ('r', 'p', 'f', 'v') AND NOT pg_is_other_temp_schema(relnamespace)
$$;
COMMENT ON FUNCTION snowflake.filled_columns() IS
  'Internal: for minting_columns(). Returns the columns of tables and views whose default mints ids. In the result, '
  'holds_ids is true if the column belongs to a table and has type bigint or a domain over bigint';

CREATE FUNCTION snowflake.adopted_columns(OUT relation text, OUT attribute name, OUT at timestamptz, OUT problem text)
  RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp
AS $$
  WITH minting AS MATERIALIZED (SELECT f.relation, f.attribute FROM snowflake.filled_columns() AS f)
  SELECT r.relation, r.attribute, r.at,
         CASE WHEN a.attnum IS NULL THEN 'the column does not exist'
              WHEN (c.oid, a.attname) NOT IN (SELECT m.relation, m.attribute
                FROM minting AS m) THEN 'its default does not mint ids'
              ELSE (SELECT 'columns that refer to it are too narrow for ids: '
                || string_agg(format('%s.%I %s', conrelid::regclass, f.attname,
                f.atttypid::regtype), ', ')
                      FROM pg_constraint CROSS JOIN unnest(conkey, confkey) AS pair (referring, referenced)
                      JOIN pg_attribute AS f ON f.attrelid = conrelid AND f.attnum = pair.referring
                     WHERE contype = 'f' AND confrelid = c.oid AND pair.referenced = a.attnum
                       AND f.atttypid IN ('smallint'::regtype, 'integer'::regtype)) END
    FROM snowflake.adopted AS r
    LEFT JOIN (pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace) ON format('%I.%I', nspname,
      relname) = r.relation
    LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = r.attribute AND a.attnum > 0
$$;
COMMENT ON FUNCTION snowflake.adopted_columns() IS
  'Returns the columns of the table snowflake.adopted and their problems. A problem is that the column does not '
  'exist, that its default does not mint ids, or that columns that refer to it are too narrow for ids. If a column '
  'has no problem, the column "problem" of the result is null';
