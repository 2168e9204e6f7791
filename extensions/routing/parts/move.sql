-- Moving a shard's schema to another server: what the program snowflake-move-shard keeps in the databases.
-- The target subscribes to the source's tables; when they are level, the source is fenced, the last changes
-- arrive, the map is changed, and the source's schema is renamed and kept, fenced.

CREATE TABLE snowflake_fleet.moving (
  shard integer NOT NULL,
  schema name NOT NULL,
  side text NOT NULL CHECK (side OPERATOR(pg_catalog.=) 'source' OR side OPERATOR(pg_catalog.=) 'target'),
  state text NOT NULL,
  other text NOT NULL,
  other_database text NOT NULL,
  whereabouts text,
  made boolean NOT NULL DEFAULT false,
  fingerprint text,
  definition text,
  sequences jsonb,
  began timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  changed timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  PRIMARY KEY (schema, side),
  CHECK (side OPERATOR(pg_catalog.=) 'source' AND state OPERATOR(pg_catalog.~) '^(begun|copying|fenced|moved|kept)$'
      OR side OPERATOR(pg_catalog.=) 'target' AND state OPERATOR(pg_catalog.~) '^(reserved|arriving|level|here)$')
);
-- A shard moves once at a time.
CREATE UNIQUE INDEX moving_once ON snowflake_fleet.moving (shard, side) WHERE state OPERATOR(pg_catalog.<>) 'kept';
COMMENT ON TABLE snowflake_fleet.moving IS
  'Moves of shards from and to this database by the program snowflake-move-shard, and how far they are';
COMMENT ON COLUMN snowflake_fleet.moving.schema IS 'Name of the schema here; a source''s is renamed at the end';
COMMENT ON COLUMN snowflake_fleet.moving.side IS 'Whether this database is the source or the target';
COMMENT ON COLUMN snowflake_fleet.moving.state IS
  'Of a source: begun (DDL is refused), copying, fenced (writes are refused), moved (the target has taken over), kept '
  '(renamed, until --drop-source). Of a target: reserved (a place among the subscriptions), arriving, level (the fence '
  'is up, all changes are there), here (it has taken over)';
COMMENT ON COLUMN snowflake_fleet.moving.other IS 'The other side: its name in the map, or how to connect to it';
COMMENT ON COLUMN snowflake_fleet.moving.other_database IS
  'The other side: system identifier and OID of its database, with a slash between them';
COMMENT ON COLUMN snowflake_fleet.moving.whereabouts IS
  'Of a target: whereabouts() when the move began; after a failover or a restore it is another, and rows may be missing';
COMMENT ON COLUMN snowflake_fleet.moving.made IS
  'Of a target: whether the move made the schema; otherwise it was there, empty, and stays when the move is taken back';
COMMENT ON COLUMN snowflake_fleet.moving.fingerprint IS 'fingerprint() of the schema here: DDL that would change it is refused';
COMMENT ON COLUMN snowflake_fleet.moving.definition IS 'Of a source: the statements that make the schema on the target';
COMMENT ON COLUMN snowflake_fleet.moving.sequences IS
  'Of a source that is fenced: its sequences as they were, for the target, and for this server when the fence is lifted';
COMMENT ON COLUMN snowflake_fleet.moving.changed IS 'When the state was last changed';

-- Who moves a shard: a backend, for as long as it lives. Nobody but a superuser can pretend to be one, which
-- cannot be said of advisory locks; and a row lock would hold up the slots of other moves.
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

-- What was altered already when a session began a command: refuse_ddl() writes and reads it.
CREATE TABLE snowflake_fleet.move_note (
  pid integer,
  at timestamptz,
  schemas name[] NOT NULL,
  -- Never changed, and one for each transaction of a statement: one that the session has prepared would hold it.
  transaction xid8 DEFAULT pg_catalog.pg_current_xact_id(),
  PRIMARY KEY (pid, at, transaction)
);
COMMENT ON TABLE snowflake_fleet.move_note IS
  'Of each statement of DDL during a move: the schemas that were altered before it';
COMMENT ON COLUMN snowflake_fleet.move_note.at IS 'statement_timestamp() of that statement';

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

-- A row that is written on the source and arrives on the target: all that was committed before it has
-- arrived as well. Which is known at once, and by no feedback that may be late.
CREATE TABLE snowflake_fleet.move_mark (
  shard integer,
  number bigint,
  PRIMARY KEY (shard, number)
);
COMMENT ON TABLE snowflake_fleet.move_mark IS 'Replicated by snowflake-move-shard along with a shard''s tables';

CREATE FUNCTION snowflake_fleet.tables_of(schema name) RETURNS SETOF regclass
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT c.oid::regclass
    FROM pg_depend AS d JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
   WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = (SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema)
     AND d.refobjid = c.relnamespace AND relkind IN ('r', 'p')
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
    SELECT m.relation, m.attribute FROM snowflake.minting_columns() AS m
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
    SELECT relation, attribute, format('%I.%I', relname, attribute) AS col, CASE relkind WHEN 'p' THEN '' ELSE 'ONLY ' END AS only
      FROM unnest(relations, attributes) AS c (relation, attribute) JOIN pg_class ON oid = relation
  LOOP
    col := this.col;
    EXECUTE format('SELECT max(%I)::bigint FROM %s%s WHERE %1$I BETWEEN 0 AND %4$s', this.attribute, this.only, this.relation, last_one) INTO id;
    IF id IS NOT NULL THEN
      RETURN NEXT;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.greatest_ids(regclass[], name[]) IS
  'Behind snowflake-move-shard: the greatest id of each of these columns; the target is to observe them';

-- A superuser runs or believes what these tables say. Members of pg_write_all_data may read them, and no more; owner
-- and superusers pass.
ALTER TABLE snowflake_fleet.moving ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_only ON snowflake_fleet.moving FOR SELECT USING (true);
ALTER TABLE snowflake_fleet.move_holder ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_only ON snowflake_fleet.move_holder FOR SELECT USING (true);
ALTER TABLE snowflake_fleet.move_note ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_only ON snowflake_fleet.move_note FOR SELECT USING (true);
ALTER TABLE snowflake_fleet.move_mark ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_only ON snowflake_fleet.move_mark FOR SELECT USING (true);

-- Transactions in which refuse_ddl() may not see that a schema moves, or has not seen it: by their snapshots, for those of
-- REPEATABLE READ may last and others may run DDL as their next command, and by what they have done and not committed yet.
-- Left out is who runs nobody's commands: walsenders of superusers, and the workers of moves. Other walsenders run SQL, and
-- other subscriptions triggers.
CREATE FUNCTION snowflake_fleet.older_transactions(boundary xid8, writers boolean) RETURNS SETOF text
  LANGUAGE sql VOLATILE STRICT
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT format('process %s (%s, since %s)', pid, coalesce(usename, backend_type), date_trunc('second', xact_start)) FROM pg_stat_activity
   WHERE datname = current_database() AND pid <> pg_backend_pid()
     AND (writers AND age(backend_xid) > age(xid(boundary)) OR age(backend_xmin) > age(xid(boundary)) AND backend_type <> 'autovacuum worker')
     AND backend_type <> 'parallel worker'
     AND NOT (backend_type = 'walsender' AND EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = usesysid AND rolsuper))
     AND pid NOT IN (SELECT s.pid FROM pg_stat_subscription AS s JOIN pg_subscription AS p ON p.oid = s.subid JOIN pg_roles AS r ON r.oid = subowner
                      WHERE s.pid IS NOT NULL AND p.subname ~ '^snowflake_move_[0-9]+$' AND rolsuper)
  UNION ALL
  SELECT format('prepared transaction %s (%s, since %s)', gid, owner, date_trunc('second', prepared)) FROM pg_prepared_xacts
   WHERE writers AND database = current_database() AND age(transaction) > age(xid(boundary))
$$;
COMMENT ON FUNCTION snowflake_fleet.older_transactions(xid8, boolean) IS
  'Behind snowflake-move-shard: transactions of this database whose snapshots were taken, or that began to write where that is asked for, before this transaction id was given away';

REVOKE ALL ON FUNCTION snowflake_fleet.older_transactions(xid8, boolean), snowflake_fleet.hold_move(integer, text), snowflake_fleet.holds_move(),
  snowflake_fleet.tables_of(name), snowflake_fleet.id_columns(name), snowflake_fleet.greatest_ids(regclass[], name[]) FROM PUBLIC;
