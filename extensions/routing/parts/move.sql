-- Moving a shard's schema to another server: what the program snowflake-move-shard keeps in the databases.
-- The target subscribes to the source's tables. When it has them, the source is fenced, the target takes over, the map is
-- changed, and the source's schema is renamed and kept, fenced.

CREATE TABLE snowflake_fleet.moving (
  id uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  shard integer NOT NULL,
  schema name NOT NULL,
  side text NOT NULL,
  state text NOT NULL,
  other text NOT NULL,
  other_database text NOT NULL DEFAULT '',
  other_identity text NOT NULL DEFAULT '',
  fingerprint text,
  slots text,
  role name,
  statements text[],
  fence jsonb,
  began timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  changed timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  CHECK (side OPERATOR(pg_catalog.=) 'source' AND state OPERATOR(pg_catalog.~) '^(copying|fenced|kept)$'
      OR side OPERATOR(pg_catalog.=) 'target' AND state OPERATOR(pg_catalog.~) '^(reserved|arriving|level|here)$')
);
-- A shard moves once at a time.
CREATE UNIQUE INDEX moving_once ON snowflake_fleet.moving (shard, side)
  WHERE state OPERATOR(pg_catalog.<>) 'kept' AND state OPERATOR(pg_catalog.<>) 'here';
COMMENT ON TABLE snowflake_fleet.moving IS
  'Moves of shards from and to this database, and how far they are';
COMMENT ON COLUMN snowflake_fleet.moving.schema IS 'Name of the schema here; a source''s is renamed at the end';
COMMENT ON COLUMN snowflake_fleet.moving.side IS 'Whether this database is the source or the target';
COMMENT ON COLUMN snowflake_fleet.moving.state IS
  'Of a source: copying (DDL is refused), fenced (writes are refused), kept (renamed, until --drop-source). Of a target: '
  'reserved (a place among the subscriptions), arriving, level (it has taken over, if the map says so), here (the end)';
COMMENT ON COLUMN snowflake_fleet.moving.other IS 'The other side: its name in the map, or how to connect to it';
COMMENT ON COLUMN snowflake_fleet.moving.other_database IS
  'The other side: system identifier and OID of its database, with a slash between them';
COMMENT ON COLUMN snowflake_fleet.moving.other_identity IS
  'identity() of the other side when the copy began: with another one the copy is not believed';
COMMENT ON COLUMN snowflake_fleet.moving.fingerprint IS 'Of a source: fingerprint() of the schema: DDL that would change it is refused';
COMMENT ON COLUMN snowflake_fleet.moving.slots IS 'Of a source: the replication slots of the move, as a regular expression';
COMMENT ON COLUMN snowflake_fleet.moving.role IS 'Of a target: the role of the move, which owns the schema until the target takes over';
COMMENT ON COLUMN snowflake_fleet.moving.statements IS 'Of a target: what gives the schema its owners and privileges when it takes over';
COMMENT ON COLUMN snowflake_fleet.moving.fence IS
  'What fence_shard() returned. A target that has it has all rows from before that fence';
COMMENT ON COLUMN snowflake_fleet.moving.changed IS 'When the state was last changed';

-- The session that moves a shard, as long as it lives. Only a superuser can pretend to be one, unlike with advisory locks;
-- and a row lock would hold up the slots of other moves.
CREATE TABLE snowflake_fleet.move_holder (
  shard integer NOT NULL,
  role text NOT NULL,
  pid integer NOT NULL,
  began timestamptz NOT NULL,
  PRIMARY KEY (shard, role)
);
COMMENT ON TABLE snowflake_fleet.move_holder IS
  'The session of snowflake-move-shard that moves a shard: a row counts while its backend lives';
COMMENT ON COLUMN snowflake_fleet.move_holder.role IS 'What this database is to the move: control, source or target';
COMMENT ON COLUMN snowflake_fleet.move_holder.began IS 'When the backend began, for process ids are used again';

-- Changes when the server is promoted, restored or copied, and when it is restarted: a disk that was put back needs a restart.
CREATE FUNCTION snowflake_fleet.identity() RETURNS text
  LANGUAGE sql VOLATILE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT concat_ws('/', system_identifier, timeline, database, extract(epoch FROM directory), extract(epoch FROM pg_postmaster_start_time()))
    FROM snowflake_fleet.whereabouts()
$$;
COMMENT ON FUNCTION snowflake_fleet.identity() IS
  'Internal: another text after the server was restarted, promoted, restored or copied';

CREATE FUNCTION snowflake_fleet.hold_move(shard integer, role text) RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  holder integer;
BEGIN
  INSERT INTO snowflake_fleet.move_holder AS h
  SELECT hold_move.shard, hold_move.role, pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()
  ON CONFLICT (shard, role) DO UPDATE SET pid = excluded.pid, began = excluded.began
   WHERE NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = h.pid AND a.backend_start = h.began AND a.pid <> pg_backend_pid());
  SELECT nullif(h.pid, pg_backend_pid()) INTO holder
    FROM snowflake_fleet.move_holder AS h WHERE h.shard = hold_move.shard AND h.role = hold_move.role;
  RETURN holder;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.hold_move(integer, text) IS
  'Behind snowflake-move-shard: makes this session the one that moves a shard; NULL, or the process id of another that does';

CREATE FUNCTION snowflake_fleet.holds_move() RETURNS boolean
  LANGUAGE sql STABLE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT EXISTS (SELECT FROM snowflake_fleet.move_holder AS h
                  WHERE h.pid = pg_backend_pid() AND h.began = (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid())))
$$;
COMMENT ON FUNCTION snowflake_fleet.holds_move() IS 'Behind snowflake-move-shard: whether this session moves a shard';

CREATE FUNCTION snowflake_fleet.tables_of(schema name) RETURNS SETOF regclass
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT c.oid::regclass
    FROM pg_depend AS d JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
   WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = (SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema)
     AND d.refobjid = c.relnamespace AND relkind = 'r'
   ORDER BY c.relname
$$;
COMMENT ON FUNCTION snowflake_fleet.tables_of(name) IS 'Behind snowflake-move-shard: the tables of a schema';

-- Before anybody waits: the schema stands still from then on. Not in SQL: a control database need not have the generator.
CREATE FUNCTION snowflake_fleet.id_columns(schema name) RETURNS TABLE (relation regclass, attribute name, col text, is_indexed boolean)
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH RECURSIVE bigints (type) AS (
    SELECT 'bigint'::regtype::oid
    UNION
    SELECT oid FROM bigints JOIN pg_type ON typbasetype = type),
  found (relation, attribute) AS (
    SELECT m.relation, m.attribute FROM snowflake.filled_columns() AS m WHERE m.holds_ids
    UNION
    SELECT attrelid, attname
      FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
     WHERE indisprimary AND atttypid IN (SELECT type FROM bigints))
  SELECT f.relation, f.attribute, format('%I.%I', relname, f.attribute),
         EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am AS m ON m.oid = c.relam
                  WHERE indrelid = attrelid AND indkey[0] = attnum AND indpred IS NULL AND indisvalid AND amname = 'btree')
    FROM found AS f JOIN snowflake_fleet.tables_of(schema) AS t ON t = f.relation
    JOIN pg_class AS r ON r.oid = f.relation JOIN pg_attribute ON attrelid = f.relation AND attname = f.attribute
   ORDER BY 3;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.id_columns(name) IS
  'Behind snowflake-move-shard: the bigint columns of a schema that mint or with which a primary key begins, and whether a B-tree '
  'index begins with them';

-- By their indexes, at once.
CREATE FUNCTION snowflake_fleet.greatest_ids(relations regclass[], attributes name[]) RETURNS TABLE (col text, id bigint)
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  this record;
  last_one CONSTANT bigint := CASE WHEN time_bits + region_bits + shard_bits + sequence_bits = 64 THEN 9223372036854775807
                              ELSE (1::bigint << (time_bits + region_bits + shard_bits + sequence_bits)) - 1 END
                              FROM snowflake.layout;
BEGIN
  FOR this IN
    SELECT relation, attribute, format('%I.%I', relname, attribute) AS col
      FROM unnest(relations, attributes) AS c (relation, attribute) JOIN pg_class ON oid = relation
  LOOP
    col := this.col;
    EXECUTE format('SELECT max(%I)::bigint FROM ONLY %s WHERE %1$I BETWEEN 0 AND %3$s', this.attribute, this.relation, last_one) INTO id;
    IF id IS NOT NULL THEN
      RETURN NEXT;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.greatest_ids(regclass[], name[]) IS
  'Behind snowflake-move-shard: the greatest id of each of these columns; the target is to observe them';

-- The apply worker reports a position to its source after it has applied everything before that.
CREATE FUNCTION snowflake_fleet.has_applied(subscription name, lsn pg_lsn) RETURNS boolean
  LANGUAGE sql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(bool_and(
           EXISTS (SELECT FROM pg_stat_subscription AS w WHERE w.subid = s.oid AND w.relid IS NULL AND w.pid IS NOT NULL AND w.latest_end_lsn >= lsn)
           AND NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubid = s.oid AND srsubstate <> 'r')), false)
    FROM pg_subscription AS s
   WHERE subname = subscription AND subdbid = (SELECT d.oid FROM pg_database AS d WHERE datname = current_database())
$$;
COMMENT ON FUNCTION snowflake_fleet.has_applied(name, pg_lsn) IS
  'Whether a subscription has copied its tables and applied what its source committed before a position in the WAL';

-- The program runs as a superuser what these tables say. Members of pg_write_all_data may read them only; the owner and
-- superusers pass.
ALTER TABLE snowflake_fleet.moving ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_only ON snowflake_fleet.moving FOR SELECT USING (true);
ALTER TABLE snowflake_fleet.move_holder ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_only ON snowflake_fleet.move_holder FOR SELECT USING (true);

REVOKE ALL ON FUNCTION snowflake_fleet.identity(), snowflake_fleet.has_applied(name, pg_lsn), snowflake_fleet.hold_move(integer, text),
  snowflake_fleet.holds_move(), snowflake_fleet.tables_of(name), snowflake_fleet.id_columns(name),
  snowflake_fleet.greatest_ids(regclass[], name[]) FROM PUBLIC;
