-- What snowflake-move-shard cannot move as it is: each a sentence, found before anything is done.

CREATE FUNCTION snowflake_fleet.immovable(schema name) RETURNS SETOF text
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  space oid := (SELECT oid FROM pg_namespace WHERE nspname = schema);
BEGIN
  IF space IS NULL THEN
    RETURN NEXT format('There is no schema %I.', schema);
    RETURN;
  END IF;
  IF current_setting('wal_level') <> 'logical' THEN
    RETURN NEXT format('The source has wal_level = %s, and it takes logical.', current_setting('wal_level'));
  END IF;
  IF NOT EXISTS (SELECT FROM snowflake_fleet.tables_of(schema)) THEN
    RETURN NEXT format('Schema %I has no tables.', schema);
  END IF;
  RETURN QUERY
  WITH tab AS (
    SELECT c.*, c.oid::regclass AS name FROM pg_class AS c WHERE relnamespace = space AND relkind IN ('r', 'p')
  )
  SELECT format('Table %s has no replica identity: give it a primary key, or ALTER TABLE ... REPLICA IDENTITY.', name)
    FROM tab
   WHERE relkind = 'r' AND (relreplident = 'n'
      OR relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = tab.oid AND indisprimary)
      OR relreplident = 'i' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = tab.oid AND indisreplident))
  UNION ALL
  SELECT format('Table %s is unlogged: its rows are not in the WAL.', name) FROM tab WHERE relpersistence = 'u'
  UNION ALL
  SELECT format('Foreign table %s is not moved.', oid::regclass) FROM pg_class WHERE relnamespace = space AND relkind = 'f'
  UNION ALL
  SELECT format('Materialized view %s is not moved.', oid::regclass) FROM pg_class WHERE relnamespace = space AND relkind = 'm'
  UNION ALL
  SELECT format('Foreign key %s of table %s refers to the schema from outside.', conname, conrelid::regclass)
    FROM pg_constraint WHERE contype = 'f' AND confrelid IN (SELECT oid FROM tab) AND conrelid NOT IN (SELECT oid FROM tab)
  UNION ALL
  SELECT format('Foreign key %s of table %s refers to %s, outside of the schema.', conname, conrelid::regclass, confrelid::regclass)
    FROM pg_constraint WHERE contype = 'f' AND conrelid IN (SELECT oid FROM tab) AND confrelid NOT IN (SELECT oid FROM tab)
  UNION ALL
  SELECT DISTINCT format('Table %s has a column of type %s, and this database has large objects.', name, format_type(atttypid, NULL))
    FROM tab JOIN pg_attribute ON attrelid = tab.oid AND attnum > 0 AND NOT attisdropped
    JOIN pg_type AS t ON t.oid = atttypid
   WHERE (atttypid = 'oid'::regtype OR typbasetype = 'oid'::regtype) AND EXISTS (SELECT FROM pg_largeobject_metadata)
  UNION ALL
  -- Also those of other tables and databases: the slot is not made before they have ended.
  SELECT format('Prepared transaction %s of database %s is open.', gid, database) FROM pg_prepared_xacts
  UNION ALL
  SELECT format('Table %s takes part in the partitioning or inheritance of a table outside of the schema.', c.name)
    FROM tab AS c JOIN pg_inherits ON c.oid IN (inhrelid, inhparent)
   WHERE inhrelid NOT IN (SELECT oid FROM tab) OR inhparent NOT IN (SELECT oid FROM tab)
  UNION ALL
  SELECT DISTINCT format('%s is outside of the schema and uses %s.', pg_describe_object('pg_class'::regclass, v.oid, 0), d.refobjid::regclass)
    FROM pg_depend AS d JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    JOIN pg_class AS v ON v.oid = ev_class
   WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid IN (SELECT oid FROM pg_class WHERE relnamespace = space)
     AND v.relnamespace <> space
  UNION ALL
  SELECT format('Table %s is filled by a subscription.', name) FROM tab WHERE oid IN (SELECT srrelid FROM pg_subscription_rel);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.immovable(name) IS
  'What keeps a schema from being moved by snowflake-move-shard, in sentences; none where it can be';

REVOKE ALL ON FUNCTION snowflake_fleet.fence(integer, name), snowflake_fleet.unfence(name),
  snowflake_fleet.shape_of(name), snowflake_fleet.sequences_of(name), snowflake_fleet.greatest_id(name),
  snowflake_fleet.immovable(name), snowflake_fleet.tables_of(name), snowflake_fleet.fenced(name), snowflake_fleet.refuse_write() FROM PUBLIC;
