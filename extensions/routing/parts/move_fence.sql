-- The fence: nobody uses the shard here any more, whoever he is.

-- A writer that meets the fence has to begin its transaction anew, with the map as it is then. The
-- SQLSTATE is that of a serialization failure, which applications and drivers retry.
CREATE FUNCTION snowflake_fleet.refuse_write() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
    MESSAGE = pg_catalog.format('shard %s moves to another server', TG_ARGV[0]),
    DETAIL = pg_catalog.format('Table %I.%I takes no more changes.', TG_TABLE_SCHEMA, TG_TABLE_NAME),
    HINT = 'Read the map again and retry the transaction.';
END
$$;
COMMENT ON FUNCTION snowflake_fleet.refuse_write() IS
  'Internal: the fence: a trigger on the tables of a shard that moves away';

CREATE FUNCTION snowflake_fleet.sequences_of(schema name) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  this record;
  one record;
  every jsonb := '[]';
BEGIN
  FOR this IN
    SELECT c.oid::regclass AS sequence, relname, s.* FROM pg_depend JOIN pg_sequence AS s ON classid = 'pg_class'::regclass AND seqrelid = objid
      JOIN pg_class AS c ON c.oid = seqrelid
     WHERE refclassid = 'pg_namespace'::regclass AND refobjid = (SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema)
  LOOP
    EXECUTE format('SELECT last_value, is_called FROM %s', this.sequence) INTO one;
    every := every || jsonb_build_object('name', this.relname, 'start', this.seqstart, 'increment', this.seqincrement,
      'min', this.seqmin, 'max', this.seqmax, 'cache', this.seqcache, 'cycle', this.seqcycle,
      'last', one.last_value, 'called', one.is_called);
  END LOOP;
  RETURN every;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.sequences_of(name) IS
  'Behind snowflake-move-shard: how the sequences of a schema are made, and where they are';

-- Locks and fences in the caller's transaction, within so many milliseconds in all. EXCLUSIVE waits for
-- whoever has begun to write, prepared transactions among them: when it is had, they have committed or rolled
-- back. Readers go on. The caller holds SHARE UPDATE EXCLUSIVE already, so that this does not wait for a vacuum.
CREATE FUNCTION snowflake_fleet.fence(schema name, budget integer) RETURNS jsonb
  LANGUAGE plpgsql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  until CONSTANT timestamptz := clock_timestamp() + budget * interval '1 ms';
  moving snowflake_fleet.moving;
  this record;
BEGIN
  FOR this IN SELECT t AS name FROM snowflake_fleet.tables_of(schema) AS t LOOP
    PERFORM snowflake_fleet.limit_wait(until);
    EXECUTE format('LOCK TABLE %s IN EXCLUSIVE MODE', this.name);
  END LOOP;
  SELECT m.* INTO STRICT moving FROM snowflake_fleet.moving AS m WHERE m.schema = fence.schema AND m.side = 'source';
  -- Its snapshot may be older than the row that refuses DDL.
  SELECT pid INTO this FROM pg_stat_activity
   WHERE datname = current_database() AND backend_xid IS NOT NULL AND xact_start < moving.changed AND pid <> pg_backend_pid() LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'lock_not_available', MESSAGE = format('process %s has a transaction from before the move', this.pid);
  END IF;
  IF snowflake_fleet.is_altered(moving) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
      MESSAGE = format('schema %I was altered since the move began', schema),
      HINT = 'Run snowflake-move-shard --abort, then move it again.';
  END IF;
  FOR this IN SELECT t AS name FROM snowflake_fleet.tables_of(schema) AS t LOOP
    PERFORM snowflake_fleet.limit_wait(until);
    EXECUTE format('CREATE OR REPLACE TRIGGER snowflake_move BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION snowflake_fleet.refuse_write(%L)', this.name, moving.shard);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER snowflake_move', this.name);
  END LOOP;
  -- First a change of no consequence, which waits for transactions that have taken numbers, then where they are.
  FOR this IN SELECT s FROM jsonb_array_elements(snowflake_fleet.sequences_of(schema)) AS s LOOP
    PERFORM snowflake_fleet.limit_wait(until);
    EXECUTE format('ALTER SEQUENCE %I.%I CACHE %s', schema, this.s ->> 'name', this.s ->> 'cache');
  END LOOP;
  moving.sequences := snowflake_fleet.sequences_of(schema);
  -- A sequence of one and two that has come to two. In a new file, so that a rollback takes it back, and with
  -- it the numbers that sessions had in stock are void.
  FOR this IN SELECT s FROM jsonb_array_elements(moving.sequences) AS s LOOP
    EXECUTE format('ALTER SEQUENCE %I.%I INCREMENT 1 MINVALUE 1 MAXVALUE 2 START 2 RESTART 2 CACHE 1 NO CYCLE', schema, this.s ->> 'name');
    PERFORM setval(format('%I.%I', schema, this.s ->> 'name'), 2, true);
  END LOOP;
  UPDATE snowflake_fleet.moving AS m SET state = 'fenced', sequences = moving.sequences, changed = clock_timestamp()
   WHERE m.schema = fence.schema AND m.side = 'source';
  PERFORM set_config('lock_timeout', '0', true);
  RETURN moving.sequences;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.fence(name, integer) IS
  'Behind snowflake-move-shard: waits for the writers of a shard''s tables, all in all as many ms, and refuses all others from now on; '
  'returns its sequences';

CREATE FUNCTION snowflake_fleet.limit_wait(until timestamptz) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  remaining CONSTANT integer := extract(epoch FROM until - clock_timestamp()) * 1000;
BEGIN
  IF remaining < 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'lock_not_available', MESSAGE = 'the time for locks is over';
  END IF;
  PERFORM set_config('lock_timeout', remaining::text, true);
END
$$;
COMMENT ON FUNCTION snowflake_fleet.limit_wait(timestamptz) IS
  'Behind snowflake-move-shard: no lock is waited for after that moment, an error (55P03) if it is over';

CREATE FUNCTION snowflake_fleet.fenced(schema name) RETURNS boolean
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(bool_and(EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t AND tgname = 'snowflake_move' AND tgenabled = 'A')), false)
    FROM snowflake_fleet.tables_of(schema) AS t
$$;
COMMENT ON FUNCTION snowflake_fleet.fenced(name) IS 'Behind snowflake-move-shard: whether all tables of a schema are fenced';

CREATE FUNCTION snowflake_fleet.unfence(schema name) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  sequences jsonb := (SELECT m.sequences FROM snowflake_fleet.moving AS m WHERE m.schema = unfence.schema AND m.side = 'source');
  this record;
BEGIN
  -- In this order none of it is refused to an operator who calls this.
  FOR this IN SELECT s.* FROM jsonb_to_recordset(sequences) AS s (name name, increment bigint, min bigint, max bigint, start bigint,
                                                                   last bigint, cache bigint, cycle boolean, called boolean) LOOP
    EXECUTE format('ALTER SEQUENCE %I.%I INCREMENT %s MINVALUE %s MAXVALUE %s START %s RESTART %s CACHE %s %s', schema, this.name,
      this.increment, this.min, this.max, this.start, this.last, this.cache, CASE WHEN this.cycle THEN 'CYCLE' ELSE 'NO CYCLE' END);
    PERFORM setval(format('%I.%I', schema, this.name), this.last, this.called);
  END LOOP;
  UPDATE snowflake_fleet.moving AS m SET state = 'copying', sequences = NULL, changed = clock_timestamp()
   WHERE m.schema = unfence.schema AND m.side = 'source' AND m.state = 'fenced';
  FOR this IN SELECT t AS name FROM snowflake_fleet.tables_of(schema) AS t LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS snowflake_move ON %s', this.name);
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.unfence(name) IS 'Behind snowflake-move-shard: takes a fence away again';

REVOKE ALL ON FUNCTION snowflake_fleet.fence(name, integer), snowflake_fleet.unfence(name), snowflake_fleet.limit_wait(timestamptz),
  snowflake_fleet.sequences_of(name), snowflake_fleet.fenced(name), snowflake_fleet.refuse_write() FROM PUBLIC;
