-- For each move, the program snowflake-move-shard calls fence_shard(), take_over() and release_shard(). If you
-- replicate the tables by other means, you can call fence_shard(), take_over() and release_shard() yourself.

-- If the schema of a shard refuses a write, the client must read the map of shards again and retry its transaction. The
-- error has the SQLSTATE of a serialization failure, because applications and drivers retry after a serialization
-- failure.
CREATE FUNCTION snowflake_fleet.refuse_write() RETURNS trigger
  LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
    MESSAGE = pg_catalog.format('shard %s moves to another server', TG_ARGV[0]),
    DETAIL = pg_catalog.format('Table %I.%I no longer accepts changes.', TG_TABLE_SCHEMA, TG_TABLE_NAME),
    HINT = 'Read the map again, and retry the transaction on the new server.';
END
$$;
COMMENT ON FUNCTION snowflake_fleet.refuse_write() IS
  'Internal: the function of the triggers that prevent writes to the tables of a fenced shard';

-- `bound` is the last value of a sequence, after which nextval() fails with NO CYCLE.
CREATE FUNCTION snowflake_fleet.sequences_of(schema name)
  RETURNS TABLE (name name, of text[], bound bigint, cache bigint, cycle boolean, last bigint, called boolean)
  LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  FOR name, of, bound, cache, cycle IN
    SELECT relname,
           (SELECT ARRAY[t.relname, attname] FROM pg_depend AS i JOIN pg_class AS t ON t.oid = i.refobjid
              JOIN pg_attribute ON attrelid = t.oid AND attnum = i.refobjsubid
             WHERE i.classid = 'pg_class'::regclass AND i.objid = c.oid AND i.refclassid = 'pg_class'::regclass
               AND i.deptype = 'i'),
           CASE WHEN seqincrement > 0 THEN seqmax ELSE seqmin END, seqcache, seqcycle
      FROM pg_depend JOIN pg_sequence ON classid = 'pg_class'::regclass AND seqrelid = objid
      JOIN pg_class AS c ON c.oid = seqrelid
     WHERE refclassid = 'pg_namespace'::regclass
       AND refobjid = (SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema)
  LOOP
    EXECUTE format('SELECT last_value, is_called FROM %I.%I', schema, name) INTO last, called;
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.sequences_of(name) IS
  'Internal: returns the sequences of a schema, and their last values';

CREATE FUNCTION snowflake_fleet.lock_tables(schema name, mode text DEFAULT 'SHARE UPDATE EXCLUSIVE',
                                            until timestamptz DEFAULT pg_catalog.clock_timestamp()
                                              OPERATOR(pg_catalog.+) '5 s'::interval) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name regclass;
BEGIN
  FOR name IN SELECT t FROM snowflake_fleet.tables_of(schema) AS t LOOP
    PERFORM set_config('lock_timeout', greatest(1, extract(epoch FROM until - clock_timestamp()) * 1000)::integer::text,
                       true);
    EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', name, mode);
  END LOOP;
  -- Checks the locks by oid, because LOCK TABLE finds tables by name, and another table may have got the name.
  IF EXISTS (SELECT FROM snowflake_fleet.tables_of(schema) AS t WHERE NOT EXISTS (
               SELECT FROM pg_locks
                WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation = t AND granted
                  AND pg_locks.mode = replace(initcap(lock_tables.mode), ' ', '') || 'Lock')) THEN
    RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
      MESSAGE = format('schema %I was altered while it was locked', schema);
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.lock_tables(name, text, timestamptz) IS
  'Internal: locks all tables of a shard''s schema';

CREATE FUNCTION snowflake_fleet.require_unaltered(moving snowflake_fleet.moving) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  this record;
BEGIN
  -- Event triggers do not detect DDL in a transaction that began before the move of the shard. An old transaction may
  -- not see the new row in the table "moving", which the event triggers read.
  SELECT pid INTO this FROM pg_stat_activity
   WHERE datname = current_database() AND backend_xid IS NOT NULL AND xact_start < moving.changed
     AND pid <> pg_backend_pid() LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
      MESSAGE = format('process %s has a transaction that began before the move', this.pid);
  END IF;
  -- Workers of subscriptions could write to the fenced tables, because they do not fire statement triggers.
  SELECT subname INTO this FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
   WHERE srrelid IN (SELECT t FROM snowflake_fleet.tables_of(moving.schema) AS t);
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('schema %I is filled by subscription %I', moving.schema, this.subname),
      DETAIL = 'fence_shard() cannot stop the writes of a subscription.',
      HINT = 'Drop the subscription, and repeat the call.';
  END IF;
  IF snowflake_fleet.is_altered(moving) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('schema %I was altered since the move began', moving.schema),
      HINT = 'Run snowflake-move-shard --abort, and then move the shard again.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_unaltered(snowflake_fleet.moving) IS
  'Internal: raises an error if the schema of a moving shard may have changed since the move began';

-- Returns for each publication the tables that it publishes with all rows, columns and operations.
CREATE FUNCTION snowflake_fleet.published_whole(schema name) RETURNS jsonb
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_object_agg(pubname, tables), '{}') FROM (
    SELECT p.pubname, jsonb_agg(tablename) AS tables
      FROM pg_publication AS p JOIN pg_publication_tables AS t ON t.pubname = p.pubname
     WHERE schemaname = schema AND rowfilter IS NULL AND pubinsert AND pubupdate AND pubdelete AND pubtruncate
       AND NOT EXISTS (SELECT FROM pg_attribute
                        WHERE attrelid = format('%I.%I', schemaname, tablename)::regclass AND attnum > 0
                          AND NOT attisdropped AND attgenerated = '' AND attname <> ALL (attnames))
     GROUP BY p.pubname) AS publication
$$;
COMMENT ON FUNCTION snowflake_fleet.published_whole(name) IS
  'Internal: returns publications, each with those tables of a schema whose rows, columns and operations it '
  'publishes completely';

CREATE FUNCTION snowflake_fleet.fence_sequences(schema name, until timestamptz) RETURNS jsonb
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  this record;
  every jsonb;
BEGIN
  -- ALTER SEQUENCE makes no change here, but waits for transactions that have used the sequence. The values of the
  -- sequences are read after ALTER SEQUENCE has returned.
  FOR this IN SELECT * FROM snowflake_fleet.sequences_of(schema) LOOP
    PERFORM set_config('lock_timeout', greatest(1, extract(epoch FROM until - clock_timestamp()) * 1000)::integer::text,
                       true);
    EXECUTE format('ALTER SEQUENCE %I.%I CACHE %s', schema, this.name, this.cache);
  END LOOP;
  every := (SELECT coalesce(jsonb_agg(s), '[]') FROM snowflake_fleet.sequences_of(schema) AS s);
  -- RESTART gives the sequence a new file, so a rollback restores the old file. RESTART also discards the numbers that
  -- sessions have cached. To make nextval() fail, setval() then sets the sequence to its end: its maximum, or its
  -- minimum if the sequence descends.
  FOR this IN SELECT * FROM jsonb_to_recordset(every) AS s (name name, bound bigint) LOOP
    EXECUTE format('ALTER SEQUENCE %I.%I RESTART %s NO CYCLE', schema, this.name, this.bound);
    PERFORM setval(format('%I.%I', schema, this.name), this.bound, true);
  END LOOP;
  RETURN every;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.fence_sequences(name, timestamptz) IS
  'Internal: sets the sequences of a schema to their end, so that nextval() fails. Returns the values that the '
  'sequences had before they were set to their end';

-- last_id() is written in PL/pgSQL, because an SQL function could not be created in a control database without the
-- extension snowflake.
CREATE FUNCTION snowflake_fleet.last_id(shard integer) RETURNS bigint
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN snowflake.max_id(snowflake.time_of(snowflake.next_id(shard)));
EXCEPTION WHEN object_not_in_prerequisite_state THEN
  -- next_id() fails, for example, if the server no longer owns the shard.
  RETURN snowflake.max_id(clock_timestamp());
END
$$;
COMMENT ON FUNCTION snowflake_fleet.last_id(integer) IS
  'Internal: returns an id that is at least as great as every id that this database has minted or observed for a shard';

CREATE FUNCTION snowflake_fleet.put_fence(schema name, shard integer) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name regclass;
BEGIN
  FOR name IN SELECT t FROM snowflake_fleet.tables_of(schema) AS t LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER snowflake_move BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION snowflake_fleet.refuse_write(%L)', name, shard);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER snowflake_move', name);
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.put_fence(name, integer) IS
  'Internal: creates the triggers that prevent writes to the tables of a schema';

-- Locks the tables in the caller's transaction, and creates triggers that refuse writes (the fence). The lock EXCLUSIVE
-- waits for all transactions that have written to the tables, including prepared transactions, but readers continue.
-- First takes the lock SHARE UPDATE EXCLUSIVE, which waits for VACUUM while writers continue.
CREATE FUNCTION snowflake_fleet.fence_shard(shard integer, schema name DEFAULT NULL, lock_ms integer DEFAULT 300)
  RETURNS jsonb LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  moving snowflake_fleet.moving;
  began timestamptz;
BEGIN
  SELECT m.* INTO moving FROM snowflake_fleet.moving AS m
   WHERE m.shard = fence_shard.shard AND m.side = 'source' AND m.state <> 'kept' FOR UPDATE;
  schema := coalesce(moving.schema, schema, 'shard_' || shard);
  IF moving.state = 'fenced' OR NOT EXISTS (SELECT FROM snowflake_fleet.tables_of(schema)) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = CASE moving.state WHEN 'fenced' THEN format('shard %s is already fenced', shard)
                                  ELSE format('schema %I has no tables', schema) END,
      HINT = CASE moving.state WHEN 'fenced'
                               THEN format('Use the fence of snowflake_fleet.moving, or call release_shard(%s).', shard)
                               ELSE 'Pass the name of the schema.' END;
  END IF;
  PERFORM snowflake_fleet.lock_tables(schema);
  IF moving.id IS NULL THEN
    INSERT INTO snowflake_fleet.moving (shard, schema, side, state, other, fingerprint)
    VALUES (shard, schema, 'source', 'copying', 'replication of your own', snowflake_fleet.fingerprint(schema))
    RETURNING * INTO moving;
  END IF;
  PERFORM snowflake_fleet.require_unaltered(moving);
  moving.fence := jsonb_build_object('published', snowflake_fleet.published_whole(schema));
  began := clock_timestamp();
  PERFORM snowflake_fleet.lock_tables(schema, 'EXCLUSIVE', began + lock_ms * interval '1 ms');
  PERFORM snowflake_fleet.put_fence(schema, shard);
  moving.fence := moving.fence || jsonb_build_object('id', gen_random_uuid(), 'shard', shard, 'schema', schema,
    'tables', (SELECT jsonb_agg(relname) FROM snowflake_fleet.tables_of(schema) AS t JOIN pg_class AS c ON c.oid = t),
    'sequences', snowflake_fleet.fence_sequences(schema, began + lock_ms * interval '1 ms'),
    'greatest', snowflake_fleet.last_id(shard), 'lsn', pg_current_wal_insert_lsn());
  moving.fence['ms'] := to_jsonb(round(extract(epoch FROM clock_timestamp() - began) * 1000, 1));
  UPDATE snowflake_fleet.moving AS m SET state = 'fenced', fence = moving.fence, changed = clock_timestamp()
   WHERE m.id = moving.id;
  PERFORM set_config('lock_timeout', '0', true);
  RETURN moving.fence;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.fence_shard(integer, name, integer) IS
  'Call this function on the server from which the shard moves (source). The function waits up to lock_ms for the '
  'transactions that write to a shard. After the commit of the call, all writes to the tables of the shard fail on '
  'this server. Returns the argument for take_over()';

CREATE FUNCTION snowflake_fleet.fenced(schema name) RETURNS boolean
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(bool_and(EXISTS (SELECT FROM pg_trigger
                                    WHERE tgrelid = t AND tgname = 'snowflake_move' AND tgenabled = 'A')), false)
    FROM snowflake_fleet.tables_of(schema) AS t
$$;
COMMENT ON FUNCTION snowflake_fleet.fenced(name) IS
  'Internal: returns whether all tables of a schema have the triggers that prevent writes';

CREATE FUNCTION snowflake_fleet.require_applied(fence jsonb, subscription name) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  this record;
BEGIN
  SELECT format('%I.%I', fence ->> 'schema', name) AS name INTO this
    FROM jsonb_array_elements_text(fence -> 'tables') AS name
   WHERE NOT EXISTS (SELECT FROM pg_subscription_rel
                       JOIN pg_subscription AS s ON s.oid = srsubid, unnest(subpublications) AS publication
                      WHERE subname = subscription AND srrelid = to_regclass(format('%I.%I', fence ->> 'schema', name))
                        AND fence -> 'published' -> publication ? name);
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('table %s is not copied completely by subscription %I', this.name, subscription),
      DETAIL = 'The subscription does not have the table, or does not receive all its rows. '
               'The publication must not have a row filter or a column list, or omit an operation.',
      HINT = 'Publish the whole table, let the subscription copy the table, and call fence_shard() again.';
  END IF;
  IF snowflake_fleet.has_applied(subscription, (fence ->> 'lsn')::pg_lsn) IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('subscription %I has not applied all transactions that were committed before fence_shard()',
                       subscription),
      DETAIL = format('The shard was fenced at WAL position %s. The subscription has reached WAL position %s.',
                      fence ->> 'lsn', coalesce((SELECT max(latest_end_lsn)::text FROM pg_stat_subscription
                                                  WHERE subname = subscription AND relid IS NULL), 'unknown')),
      HINT = 'Wait, and call take_over() again.';
  END IF;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.require_applied(jsonb, name) IS
  'Internal: raises an error if a subscription lacks rows that were committed before the shard was fenced';

CREATE FUNCTION snowflake_fleet.take_over(fence jsonb, subscription name) RETURNS jsonb
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  shard CONSTANT integer := fence ->> 'shard';
  schema CONSTANT name := fence ->> 'schema';
  moving snowflake_fleet.moving;
  stated text;
BEGIN
  SELECT m.* INTO moving FROM snowflake_fleet.moving AS m
   WHERE m.shard = shard AND m.side = 'target'
     AND (m.state <> 'here' OR m.fence ->> 'id' = take_over.fence ->> 'id') FOR UPDATE;
  IF moving.state IN ('level', 'here') THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('shard %s has been taken over already', shard), HINT = 'Call move() and release_shard().';
  END IF;
  PERFORM snowflake_fleet.require_applied(fence, subscription);
  -- The following statements restore the owners and privileges that the schema had on the source.
  PERFORM set_config('search_path', quote_ident(schema) || ', pg_temp', true);
  FOREACH stated IN ARRAY coalesce(moving.statements, '{}') LOOP
    EXECUTE stated;
  END LOOP;
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  -- On the target, the sequence of an identity column may have another name.
  PERFORM setval(CASE WHEN of IS NULL THEN format('%I.%I', schema, name)
                      ELSE pg_get_serial_sequence(format('%I.%I', schema, of[1]), of[2]) END, last, called)
     FROM jsonb_to_recordset(fence -> 'sequences') AS s (name text, of text[], last bigint, called boolean);
  PERFORM snowflake.observe((fence ->> 'greatest')::bigint);
  IF moving.id IS NULL THEN
    INSERT INTO snowflake_fleet.moving (shard, schema, side, state, other, fence)
    VALUES (shard, schema, 'target', 'here', 'replication of your own', fence);
  ELSE
    UPDATE snowflake_fleet.moving AS m SET state = 'level', fence = take_over.fence, changed = clock_timestamp()
     WHERE m.id = moving.id;
  END IF;
  RETURN jsonb_build_object('id', fence ->> 'id', 'shard', shard, 'taken', clock_timestamp());
END
$$;
COMMENT ON FUNCTION snowflake_fleet.take_over(jsonb, name) IS
  'Call this function on the server to which the shard moves (target). The function sets the sequences of the shard '
  'to their values on the source, and makes new ids greater than all ids of the fenced shard. If a subscription '
  'lacks rows that were committed before the shard was fenced, the function raises an error. Returns the receipt for '
  'release_shard()';

CREATE FUNCTION snowflake_fleet.keep_schema(moving snowflake_fleet.moving) RETURNS name
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  free name;
BEGIN
  SELECT name INTO free
    FROM generate_series(1, 1000) AS n,
         concat(left(moving.schema, CASE WHEN octet_length(moving.schema) <= 50 THEN 50 ELSE 12 END), '_moved',
                '_' || nullif(n, 1)) AS name
   WHERE to_regnamespace(quote_ident(name)) IS NULL ORDER BY n LIMIT 1;
  UPDATE snowflake_fleet.moving AS m SET state = 'kept', schema = free, fingerprint = NULL, changed = clock_timestamp()
   WHERE m.id = moving.id;
  EXECUTE format('ALTER SCHEMA %I RENAME TO %I', moving.schema, free);
  UPDATE snowflake_fleet.moving AS m SET fingerprint = snowflake_fleet.fingerprint(free) WHERE m.id = moving.id;
  RETURN free;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.keep_schema(snowflake_fleet.moving) IS
  'Internal: renames the schema of a shard that another server has taken over, so that a session with an old map of '
  'shards finds no table';

CREATE FUNCTION snowflake_fleet.release_shard(shard integer, receipt jsonb DEFAULT NULL) RETURNS name
  LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  moving snowflake_fleet.moving;
  server CONSTANT text := (SELECT m.server FROM snowflake_fleet.map_shard AS m WHERE m.shard = release_shard.shard);
  this record;
BEGIN
  SELECT m.* INTO moving FROM snowflake_fleet.moving AS m
   WHERE m.shard = release_shard.shard AND m.side = 'source' AND m.state = 'fenced' FOR UPDATE;
  IF moving.id IS NULL OR receipt IS NULL AND server = moving.other
     OR receipt IS NOT NULL AND moving.fence ->> 'id' IS DISTINCT FROM receipt ->> 'id' THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = CASE WHEN moving.id IS NULL THEN format('shard %s is not fenced', shard)
                     WHEN receipt IS NULL THEN format('shard %s is on server %s by the map', shard, server)
                     ELSE format('the receipt is of another fence of shard %s', shard) END,
      HINT = CASE WHEN moving.id IS NULL THEN 'Find the state of the move in the table snowflake_fleet.moving.'
                  WHEN receipt IS NULL THEN 'Pass the receipt of take_over().'
                  ELSE 'Pass the receipt for the fence of snowflake_fleet.moving.' END;
  END IF;
  IF receipt IS NOT NULL THEN
    RETURN snowflake_fleet.keep_schema(moving);
  END IF;
  -- Updates the row of the shard in the table "moving" before the triggers are dropped. While the row has the state
  -- "fenced", event triggers refuse to drop the triggers that stop writers.
  DELETE FROM snowflake_fleet.moving AS m WHERE m.id = moving.id AND m.slots IS NULL;
  UPDATE snowflake_fleet.moving AS m SET state = 'copying', fence = NULL, changed = clock_timestamp()
   WHERE m.id = moving.id;
  FOR this IN SELECT * FROM jsonb_to_recordset(moving.fence -> 'sequences')
                         AS s (name name, cycle boolean, last bigint, called boolean) LOOP
    EXECUTE format('ALTER SEQUENCE %I.%I RESTART %s %s CYCLE', moving.schema, this.name, this.last,
                   CASE WHEN NOT this.cycle THEN 'NO' END);
    PERFORM setval(format('%I.%I', moving.schema, this.name), this.last, this.called);
  END LOOP;
  FOR this IN SELECT t AS name FROM snowflake_fleet.tables_of(moving.schema) AS t LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS snowflake_move ON %s', this.name);
  END LOOP;
  RETURN moving.schema;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.release_shard(integer, jsonb) IS
  'Call this function on the server from which the shard moves (source). If you pass the receipt of take_over(), the '
  'function renames the schema, and this server still refuses writes to the shard. If you pass no receipt of '
  'take_over(), release_shard() permits writes to the shard again. Returns the name of the schema';
