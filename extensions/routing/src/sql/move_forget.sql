-- Removes the records of a move, and the copied rows, from one server.

-- Drops a schema without CASCADE. If an object outside the schema depends on a table in the schema, PostgreSQL raises
-- an error and drops no table.
CREATE FUNCTION snowflake_fleet.drop_schema(schema name) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  stated text;
BEGIN
  FOR stated IN
    SELECT format('DROP TABLE %s RESTRICT', string_agg(t::text, ', '))
      FROM snowflake_fleet.tables_of(schema) AS t HAVING count(*) > 0
    UNION ALL
    SELECT format('DROP SEQUENCE IF EXISTS %I.%I RESTRICT', schema, relname)
      FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident(schema)) AND relkind = 'S'
  LOOP
    EXECUTE stated;
  END LOOP;
  EXECUTE format('DROP SCHEMA %I RESTRICT', schema);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.drop_schema(name) IS
  'Internal: drops the tables and sequences of a schema, and then the schema if it is empty';

CREATE FUNCTION snowflake_fleet.forget_arrival(moving snowflake_fleet.moving, drop_rows boolean) RETURNS text
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name CONSTANT name := 'snowflake_move_' || moving.shard;
  gone CONSTANT boolean := to_regnamespace(quote_ident(moving.schema)) IS NULL;    -- dropped by hand
  left_over text := '';
BEGIN
  IF EXISTS (SELECT FROM pg_subscription
              WHERE subname = name AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN
    -- Sets a connection string that fails at once, so that DROP SUBSCRIPTION does not wait for the source.
    EXECUTE format('ALTER SUBSCRIPTION %I CONNECTION %L', name, 'host=/nowhere');
    EXECUTE format('ALTER SUBSCRIPTION %I DISABLE', name);
    EXECUTE format('ALTER SUBSCRIPTION %I SET (slot_name = NONE)', name);
    EXECUTE format('DROP SUBSCRIPTION %I', name);
  END IF;
  IF gone THEN
    left_over := format('schema %I does not exist', moving.schema);
  ELSIF drop_rows AND moving.state <> 'here' THEN
    PERFORM snowflake_fleet.drop_schema(moving.schema);
  ELSIF moving.state = 'arriving' THEN
    left_over := format('schema %I contains the copied rows, and belongs to role %s. Drop both, or give the schema to '
                        'its owner with REASSIGN OWNED and drop the role',
                        moving.schema, (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = moving.schema));
  ELSE
    left_over := format('schema %I is kept as it was after the take-over', moving.schema);
  END IF;
  -- A superuser must not own tables that were copied from another server. ANALYZE and autovacuum evaluate expressions
  -- of indexes with the rights of the table's owner.
  IF (gone OR drop_rows OR moving.state <> 'arriving') AND to_regrole(moving.role) IS NOT NULL THEN
    EXECUTE format('REASSIGN OWNED BY %I TO CURRENT_USER; DROP ROLE %1$I', moving.role);
  END IF;
  IF moving.state = 'level' AND NOT drop_rows THEN
    UPDATE snowflake_fleet.moving AS m SET state = 'here', role = NULL, changed = clock_timestamp()
     WHERE m.id = moving.id;
  ELSE
    DELETE FROM snowflake_fleet.moving AS m WHERE m.id = moving.id AND m.state <> 'here';
  END IF;
  RETURN left_over;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.forget_arrival(snowflake_fleet.moving, boolean) IS
  'Internal: for forget_move(): ends the move of a shard in the target database';

-- Removes the records of a move only on this server, because the other server may no longer exist. Drops rows only with
-- drop_rows => true.
CREATE FUNCTION snowflake_fleet.forget_move(shard integer, side text, drop_rows boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  moving snowflake_fleet.moving;
BEGIN
  SELECT m.* INTO moving FROM snowflake_fleet.moving AS m WHERE m.shard = shard AND m.side = side
   ORDER BY m.state IN ('kept', 'here'), m.changed DESC LIMIT 1 FOR UPDATE;
  IF moving.state = 'fenced' THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('shard %s is fenced in this database, and the target may have taken over the shard', shard),
      HINT = format('If the target never took over, call snowflake_fleet.release_shard(%s), and repeat this call. '
                    'If the target has taken over, call release_shard() with the receipt of take_over().', shard);
  END IF;
  IF moving.id IS NULL THEN
    RETURN 'this database contains no part of a move';
  END IF;
  IF side = 'target' THEN
    RETURN snowflake_fleet.forget_arrival(moving, drop_rows);
  END IF;
  EXECUTE format('DROP PUBLICATION IF EXISTS %I', 'snowflake_move_' || shard);
  DELETE FROM snowflake_fleet.moving AS m WHERE m.id = moving.id AND m.state = 'copying';
  -- While the target server runs, its worker reconnects to the replication slot after wal_retrieve_retry_interval. The
  -- timeout of pg_terminate_backend() is not used, because it checks only every 100 ms whether the worker has ended.
  FOR attempt IN 1 .. 60 LOOP
    BEGIN
      PERFORM pg_terminate_backend(active_pid), pg_sleep(0.01 * attempt) FROM pg_replication_slots
       WHERE database = current_database() AND slot_name ~ moving.slots AND active;
      PERFORM pg_drop_replication_slot(slot_name) FROM pg_replication_slots
       WHERE database = current_database() AND slot_name ~ moving.slots;
      EXIT;
    EXCEPTION WHEN object_in_use OR undefined_object THEN
      IF attempt = 60 THEN
        RAISE;
      END IF;
    END;
  END LOOP;
  RETURN CASE moving.state WHEN 'kept' THEN format('schema %I is kept', moving.schema) ELSE '' END;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.forget_move(integer, text, boolean) IS
  'Ends the move of a shard only on this server (source or target), after the other server is permanently lost. '
  'Returns a note about the schema of the shard, for example that the schema is kept or contains the copied rows. '
  'Raises an error (55000) if the shard is fenced and release_shard() has not been called';
