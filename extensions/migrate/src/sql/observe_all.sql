-- Finds the columns that mint, by the dependencies of their defaults and triggers; and the greatest id in all of them.

CREATE FUNCTION snowflake.minting_columns(OUT relation regclass, OUT attribute name)
  RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 50 SET search_path = pg_catalog, pg_temp AS $$
  SELECT f.relation, f.attribute FROM snowflake.filled_columns() AS f WHERE f.holds_ids
$$;
COMMENT ON FUNCTION snowflake.minting_columns() IS
  'The bigint columns that mint by their default, by that of their domain, or by the trigger set_id(). A function in a '
  'default must be BEGIN ATOMIC. Columns of views and of other sessions'' temporary tables are not listed';

CREATE FUNCTION snowflake.refuse_unreadable() RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  closed text;
BEGIN
  SELECT string_agg(format('%s.%I', m.relation, m.attribute), ', ') INTO closed
    FROM snowflake.minting_columns() AS m JOIN pg_class AS c ON c.oid = m.relation
   WHERE NOT (has_schema_privilege(relnamespace, 'USAGE') AND has_column_privilege(m.relation, m.attribute, 'SELECT'));
  IF closed IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
      MESSAGE = 'not every column that mints may be read',
      DETAIL = format('Role %s may not read %s. Nothing was observed.', quote_ident(current_user), closed),
      HINT = 'Call observe_all() as a role that may, such as a superuser.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_unreadable() IS
  'Internal: for observe_all(): an error (42501) if the caller may not read a column that mints';

CREATE FUNCTION snowflake.warn_of_unread() RETURNS void
  LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  unread text;
BEGIN
  SELECT string_agg(format('%s.%I %s', f.relation, f.attribute, format_type(atttypid, atttypmod)), ', '
                    ORDER BY f.relation::text, f.attribute) INTO unread
    FROM snowflake.filled_columns() AS f JOIN pg_attribute ON attrelid = f.relation AND attname = f.attribute
   WHERE NOT f.holds_ids;
  IF unread IS NOT NULL THEN
    RAISE WARNING USING ERRCODE = '01000',
      MESSAGE = 'not every column whose default mints was observed',
      DETAIL = format('They are %s.', unread),
      HINT = 'Read the greatest id of each back, with from_uuid(), from_base62() and the like, or from the table of a '
             'view, and pass it to observe().';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.warn_of_unread() IS
  'Internal: for observe_all(): a warning of the columns whose ids it cannot read';

-- A parent stands for all its child tables.
CREATE FUNCTION snowflake.observe_all() RETURNS bigint
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
  asked record;
  found bigint;
  greatest_id bigint;
  greatest_of text;
BEGIN
  PERFORM snowflake.refuse_snapshot('observe_all()');
  PERFORM snowflake.refuse_unreadable();
  FOR asked IN
    SELECT m.* FROM snowflake.minting_columns() AS m
     WHERE NOT EXISTS (SELECT FROM pg_inherits JOIN snowflake.minting_columns() AS p ON p.relation = inhparent
                        WHERE inhrelid = m.relation AND p.attribute = m.attribute)
  LOOP
    SELECT e.highest INTO found FROM snowflake.ends_of(asked.relation, asked.attribute) AS e;
    IF found > greatest_id OR greatest_id IS NULL AND found IS NOT NULL THEN
      greatest_id := found;
      greatest_of := format('%s.%I', asked.relation, asked.attribute);
    END IF;
  END LOOP;
  IF greatest_id > snowflake.max_id(clock_timestamp() + current_setting('snowflake.max_lead')::interval) THEN
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
      MESSAGE = format('id %s of %s is ahead of the clock', greatest_id, greatest_of),
      DETAIL = format('Ids of now end at %s.', snowflake.max_id(clock_timestamp())),
      HINT = 'Correct the clock, or examine the number with explain_id().';
  END IF;
  PERFORM snowflake.observe(greatest_id);
  PERFORM snowflake.warn_of_unread();
  RETURN greatest_id;
END
$$;
COMMENT ON FUNCTION snowflake.observe_all() IS
  'Makes every later id of this database greater than all ids in columns that mint. Returns the greatest of them, or '
  'null. It fails if it may not read such a column, and warns of defaults that mint into another type or through a '
  'view';
-- The same privileges as observe().
REVOKE ALL ON FUNCTION snowflake.observe_all() FROM PUBLIC;
