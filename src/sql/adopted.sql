-- The columns for which adopt() of snowflake_migrate has set a default or trigger that mints. The table belongs to the
-- core, because snowflake_migrate may be dropped. Dumps contain the rows. A later upgrade of an application may set
-- another default, and no error would show that.

-- The table stores names instead of oids, because a dump can be restored without some of the tables.
CREATE TABLE snowflake.adopted (
  relation text NOT NULL,      -- the table's name with its schema, quoted if necessary
  attribute name NOT NULL,
  at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  PRIMARY KEY (relation, attribute));
COMMENT ON TABLE snowflake.adopted IS
  'The columns that adopt() has made mint; delete the row of a column that need not mint any more';
SELECT pg_catalog.pg_extension_config_dump('snowflake.adopted', '');

CREATE FUNCTION snowflake.adopted_columns(OUT relation text, OUT attribute name, OUT at timestamptz, OUT problem text)
  RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp
AS $$
  WITH minting AS MATERIALIZED (SELECT f.relation, f.attribute FROM snowflake.filled_columns() AS f)
  SELECT r.relation, r.attribute, r.at,
         CASE WHEN a.attnum IS NULL THEN 'the column does not exist'
              WHEN (c.oid, a.attname) NOT IN (SELECT m.relation, m.attribute
                FROM minting AS m) THEN 'its default does not mint'
              ELSE (SELECT 'too narrow: ' || string_agg(format('%s.%I %s', conrelid::regclass, f.attname,
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
  'The columns that adopt() has made mint, and what is wrong with them now: the column does not exist, its default '
  'does not mint, or a foreign key refers to it from a column that cannot hold ids; null if nothing is wrong';

