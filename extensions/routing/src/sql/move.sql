-- The program snowflake-move-shard records its moves in the following tables. A move takes the schema of a shard to
-- another server. The target server subscribes to the tables of the source server. After the target has received all
-- rows, the source refuses writes (the fence). The target then takes over the shard, the map is changed, and the schema
-- of the source is renamed. The renamed schema still refuses writes.

CREATE TABLE snowflake_fleet.moving (
  id uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  shard integer NOT NULL,
  schema name NOT NULL,
  side text NOT NULL,
  state text NOT NULL,
  other text NOT NULL,
  other_identity text NOT NULL DEFAULT '',
  fingerprint text,
  slots text,
  role name,
  statements text[],
  fence jsonb,
  began timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  changed timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  CHECK (side OPERATOR(pg_catalog.=) 'source' AND state OPERATOR(pg_catalog.~) '^(copying|fenced|kept)$'
      OR side OPERATOR(pg_catalog.=) 'target' AND state OPERATOR(pg_catalog.~) '^(arriving|level|here)$')
);
-- For each shard, a database is the source of at most one open move, and the target of at most one.
CREATE UNIQUE INDEX moving_once ON snowflake_fleet.moving (shard, side)
  WHERE state OPERATOR(pg_catalog.<>) 'kept' AND state OPERATOR(pg_catalog.<>) 'here';
COMMENT ON TABLE snowflake_fleet.moving IS
  'The moves of shards from and to this database, and the states of these moves. The page doc/routing.md explains '
  'each value of the column `state`. The column `schema` is the name of the shard''s schema in this database. The '
  'column `other` is the database on the other side of the move, and `other_identity` is the result of identity() in '
  'that database. If the identity of the other database changes while rows are copied, snowflake-move-shard copies '
  'all rows again. The column `fence` is the result of fence_shard(). In the source database, the JSON in `fence` '
  'has a key `compared`, which lists the differences between the rows of the source and the target. If no difference '
  'was found, `compared` is empty';

-- move_holder has one row for each session that moves a shard. Advisory locks are not used, because any role can take
-- any advisory lock. Row locks are not used, because a row lock needs an open transaction. Creating the replication
-- slot of another move would wait for the open transaction.
CREATE TABLE snowflake_fleet.move_holder (
  shard integer NOT NULL,
  role text NOT NULL,
  pid integer NOT NULL,
  began timestamptz NOT NULL,
  PRIMARY KEY (shard, role)
);
COMMENT ON TABLE snowflake_fleet.move_holder IS
  'The sessions of snowflake-move-shard that move a shard. A row is valid while the backend of the session runs';

-- The identity of a server changes when the server is promoted, restored, copied or restarted. The result of identity()
-- includes the start time of the server, because only the start time changes if the disk is restored from a snapshot.
CREATE FUNCTION snowflake_fleet.identity() RETURNS text
  LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT concat_ws('/', system_identifier, timeline, database, extract(epoch FROM directory),
                   extract(epoch FROM pg_postmaster_start_time()))
    FROM snowflake_fleet.whereabouts()
$$;
COMMENT ON FUNCTION snowflake_fleet.identity() IS
  'Internal: returns a text that identifies this database, and that changes if the server is restarted, promoted, '
  'restored or copied';

CREATE FUNCTION snowflake_fleet.hold_move(shard integer, role text) RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  holder integer;
BEGIN
  INSERT INTO snowflake_fleet.move_holder AS h
  SELECT hold_move.shard, hold_move.role, pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()
  ON CONFLICT (shard, role) DO UPDATE SET pid = excluded.pid, began = excluded.began
   WHERE NOT EXISTS (SELECT FROM pg_stat_activity AS a
                      WHERE a.pid = h.pid AND a.backend_start = h.began AND a.pid <> pg_backend_pid());
  SELECT nullif(h.pid, pg_backend_pid()) INTO holder
    FROM snowflake_fleet.move_holder AS h WHERE h.shard = hold_move.shard AND h.role = hold_move.role;
  RETURN holder;
END
$$;
COMMENT ON FUNCTION snowflake_fleet.hold_move(integer, text) IS
  'Internal: for snowflake-move-shard: records that this session moves a shard, and returns NULL. If another session '
  'moves the shard, returns the process id of that session';

CREATE FUNCTION snowflake_fleet.holds_move() RETURNS boolean
  LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM snowflake_fleet.move_holder AS h
                  WHERE h.pid = pg_backend_pid()
                    AND h.began = (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid())))
$$;
COMMENT ON FUNCTION snowflake_fleet.holds_move() IS
  'Internal: for snowflake-move-shard: returns whether this session moves a shard';

CREATE FUNCTION snowflake_fleet.tables_of(schema name) RETURNS SETOF regclass
  LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT c.oid::regclass
    FROM pg_depend AS d JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
   WHERE d.refclassid = 'pg_namespace'::regclass
     AND d.refobjid = (SELECT n.oid FROM pg_namespace AS n WHERE nspname = schema)
     AND d.refobjid = c.relnamespace AND relkind = 'r'
   ORDER BY c.relname
$$;
COMMENT ON FUNCTION snowflake_fleet.tables_of(name) IS
  'Internal: for snowflake-move-shard: returns the tables of a schema';

-- Returns whether the apply worker has reported to the source that it has applied everything before a WAL position.
CREATE FUNCTION snowflake_fleet.has_applied(subscription name, lsn pg_lsn) RETURNS boolean
  LANGUAGE sql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(bool_and(
           EXISTS (SELECT FROM pg_stat_subscription AS w
                    WHERE w.subid = s.oid AND w.relid IS NULL AND w.pid IS NOT NULL AND w.latest_end_lsn >= lsn)
           AND NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubid = s.oid AND srsubstate <> 'r')), false)
    FROM pg_subscription AS s
   WHERE subname = subscription AND subdbid = (SELECT d.oid FROM pg_database AS d WHERE datname = current_database())
$$;
COMMENT ON FUNCTION snowflake_fleet.has_applied(name, pg_lsn) IS
  'Returns whether a subscription has copied its tables, and has applied all transactions that the source committed '
  'before a WAL position';

CREATE VIEW snowflake_fleet.moves AS
  SELECT shard, schema, side, state, other, began, changed,
         EXISTS (SELECT FROM snowflake_fleet.move_holder AS h
                   JOIN pg_catalog.pg_stat_activity AS a ON a.pid OPERATOR(pg_catalog.=) h.pid
                  WHERE h.shard OPERATOR(pg_catalog.=) m.shard
                    AND a.backend_start OPERATOR(pg_catalog.=) h.began) AS is_running,
         wal_status, safe_wal_size,
         pg_catalog.pg_wal_lsn_diff(CASE WHEN NOT pg_catalog.pg_is_in_recovery()
                                         THEN pg_catalog.pg_current_wal_lsn() END, restart_lsn) AS wal_held
    FROM snowflake_fleet.moving AS m LEFT JOIN pg_catalog.pg_replication_slots AS s
      ON database OPERATOR(pg_catalog.=) pg_catalog.current_database() AND slot_name OPERATOR(pg_catalog.~) slots
   WHERE state OPERATOR(pg_catalog.<>) 'here';
COMMENT ON VIEW snowflake_fleet.moves IS
  'Shows the open moves of shards, and the schemas that are kept after a move. Other columns show whether the '
  'program snowflake-move-shard runs for the shard, whether its replication slot is lost, and how many bytes of WAL '
  'the slot retains';

-- snowflake-move-shard runs statements from the following tables as a superuser, so members of pg_write_all_data must
-- not write the tables. The row security policies do not apply to the owner of the tables and to superusers.
ALTER TABLE snowflake_fleet.moving ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_only ON snowflake_fleet.moving FOR SELECT USING (true);
ALTER TABLE snowflake_fleet.move_holder ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_only ON snowflake_fleet.move_holder FOR SELECT USING (true);
