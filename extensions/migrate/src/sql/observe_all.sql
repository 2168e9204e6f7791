-- observe_all() finds the columns whose default or trigger mints ids, and reads the greatest id of these columns.

CREATE FUNCTION snowflake.minting_columns(OUT relation regclass, OUT attribute name)
  RETURNS SETOF record
  LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 50 SET search_path = pg_catalog, pg_temp AS $$
  SELECT f.relation, f.attribute FROM snowflake.filled_columns() AS f WHERE f.holds_ids
$$;
COMMENT ON FUNCTION snowflake.minting_columns() IS
  'Lists the bigint columns that mint by their default, by the default of their domain, or by a trigger that calls '
  'set_id(). If a default calls an SQL function, the column is listed only if the function has a BEGIN ATOMIC body. '
  'Columns of views and of temporary tables of other sessions are not listed';

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
      MESSAGE = 'permission denied for some columns that contain ids',
      DETAIL = format('Role %s may not read %s. observe_all() has changed nothing.', quote_ident(current_user), closed),
      HINT = 'Call observe_all() as a superuser, or as another role that may read all columns that contain ids.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.refuse_unreadable() IS
  'Internal: for observe_all(): raises an error (42501) if the caller may not read a column that mints';

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
      MESSAGE = 'observe_all() cannot read the ids in some columns',
      DETAIL = format('These columns are: %s.', unread),
      HINT = 'Find the greatest id in each of these columns, and pass it to observe(). '
             'Convert texts and UUIDs with functions such as from_base62() and from_uuid().';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake.warn_of_unread() IS
  'Internal: for observe_all(): raises a warning with the columns whose ids observe_all() cannot read';

-- Reads the ids of child tables through their parent table.
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
      DETAIL = format('The greatest possible id of the present time is %s.', snowflake.max_id(clock_timestamp())),
      HINT = 'Correct the clock, or examine the id with explain_id().';
  END IF;
  PERFORM snowflake.observe(greatest_id);
  PERFORM snowflake.warn_of_unread();
  RETURN greatest_id;
END
$$;
COMMENT ON FUNCTION snowflake.observe_all() IS
  'Makes every later id of this database greater than all ids in columns whose default or trigger mints. Returns the '
  'greatest of these ids, or null. Raises an error if the caller may not read one of these columns. Columns of views, '
  'and columns of other types than bigint, are not read: if their default mints, the call raises a warning';
-- Calling observe_all() needs the same privileges as observe().
REVOKE ALL ON FUNCTION snowflake.observe_all() FROM PUBLIC;
