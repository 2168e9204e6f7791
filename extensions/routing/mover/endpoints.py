"""The source, the target and the control database of a move, the sessions on them, and the state of the move."""
import time
from types import SimpleNamespace

from psycopg import sql
from psycopg.conninfo import make_conninfo

from .errors import Refused
from .session import KEEPALIVE, Session, parse

# The identity of a server changes at each restart, because the disk of the server may have been restored from a
# snapshot before the restart.
IDENTITY = "SELECT snowflake_fleet.identity()"
ORDINARY_OWNER = """SELECT rolname FROM (
    SELECT nspowner AS owner FROM pg_catalog.pg_namespace WHERE nspname = 'snowflake_fleet'
    UNION SELECT relowner FROM pg_catalog.pg_class WHERE relnamespace = 'snowflake_fleet'::pg_catalog.regnamespace
    UNION SELECT proowner FROM pg_catalog.pg_proc WHERE pronamespace = 'snowflake_fleet'::pg_catalog.regnamespace
  ) AS of_objects JOIN pg_catalog.pg_roles ON oid = owner WHERE NOT rolsuper ORDER BY rolname LIMIT 1"""
# The target connects to the source with the following options of the program's own connection.
CONNECTION = ("host", "hostaddr", "port", "dbname", "user")
ROW = """SELECT pg_catalog.to_jsonb(m) || pg_catalog.jsonb_build_object('fence_id', fence ->> 'id')
  FROM snowflake_fleet.moving AS m WHERE shard = %s AND side = %s AND """
HAS_SLOT = """SELECT count(*) = 1 FROM pg_catalog.pg_replication_slots
  WHERE slot_name = %s AND database = pg_catalog.current_database() AND wal_status <> 'lost'"""


def require(session, *extensions):
    """Raises Refused if an extension is missing, or if a superuser would run objects of a role that is not a
    superuser."""
    for extension, relation in (("snowflake_routing", "snowflake_fleet.map_state"), *extensions):
        if session.value("SELECT pg_catalog.to_regclass(%s)", (relation,)) is None:
            raise Refused(f"{session.label}: extension {extension} is not installed")
    owner = session.value(ORDINARY_OWNER)
    if owner is not None and session.value("SHOW is_superuser") == "on":
        raise Refused(f"{session.label}: role {owner} owns objects in schema snowflake_fleet and is not a superuser, "
                      f"so a superuser must not run these objects\n  Connect to this server as {owner}.")


def require_data_server(session):
    require(session, ("snowflake", "snowflake.layout"))
    if session.value("SHOW is_superuser") != "on":
        raise Refused(f"{session.label}: the role is not a superuser")
    if session.value("SELECT pg_catalog.pg_is_in_recovery()"):
        raise Refused(f"{session.label}: the server is a standby")


# Returns the system identifier and the oid of the database, which never change.
def database_of(identity):
    return identity.split("/")[0:3:2]


def is_elsewhere(row, identity):
    """Returns whether the other server of a recorded move is a different database than the one with the given
    identity."""
    return row is not None and database_of(row.other_identity) != database_of(identity)


class Move:
    """The servers of a move. If the servers use no map of shards, `control` is None."""
    def __init__(self, options):
        self.options, self.shard = options, options.shard
        self.schema = options.schema or f"shard_{options.shard}"
        self.name = f"snowflake_move_{options.shard}"    # the name of the publication and of the subscription
        self.control = self.source = self.target = self.probe = self.counting = None
        self.stands = None    # the message about the state of the move that the program prints if it fails
        self.waits = False    # true after the program has printed that it waits for a free worker of the target
        self.from_name, self.to_name = options.source, options.target

    # Connections

    def locate(self, server):
        """Returns the name and the connection string of a server. If there is a map, the argument may be the server's
        name in the map."""
        if self.control is None:
            if "=" not in server and "://" not in server:
                raise Refused("without --control, --from and --to must be connection strings")
            return server, server
        row = self.control.row("SELECT name, conninfo FROM snowflake_fleet.map_server WHERE %s IN (name, conninfo)",
                               (server,))
        if row is None:    # the argument may be a connection string with a password
            raise Refused("no server in the map has this name or connection string")
        return row

    def open_control(self):
        """Connects to the control database. Refuses a copy of the map, or a map from before a restore, because such a
        map may still assign a shard to the source after the target has taken over."""
        self.control = Session("control database", self.options.control)
        require(self.control)
        self.hold(self.control, "control")
        if self.control.value("SELECT is_copy FROM snowflake_fleet.map_state"):
            raise Refused("the database of --control has only a copy of the shard map: pass the control database")
        self.control.execute("SELECT snowflake_fleet.check_map_state(s) FROM snowflake_fleet.map_state AS s")

    def open_target(self):
        self.to_name, conninfo = self.locate(self.options.target)
        self.target, self.counting = Session("target", conninfo), Session("target", conninfo)
        require_data_server(self.target)
        self.hold(self.target, "target")
        self.target_identity = self.target.value(IDENTITY)

    def open_source(self):
        self.from_name, conninfo = self.locate(self.from_name)
        self.source, self.probe = Session("source", conninfo), Session("source", conninfo)
        require_data_server(self.source)
        self.hold(self.source, "source")
        own = self.options_for_target(conninfo)
        self.source_for_target = make_conninfo(**{**KEEPALIVE, "connect_timeout": "20", **own,
                                                  "application_name": self.name})
        self.source_identity = self.source.value(IDENTITY)
        # The name of the slot contains the oid of the database, because all databases of a server share the replication
        # slots.
        self.slot = f"snowflake_move_{database_of(self.source_identity)[1]}_{self.shard}"
        if self.target is not None and self.source_identity == self.target_identity:
            raise Refused("source and target are the same database")

    def options_for_target(self, conninfo):
        """Returns the options with which the target connects to the source. The connection string of the source may use
        a service or defaults of the program's machine, which the target's machine does not have."""
        if self.options.source_for_target:
            return parse(self.options.source_for_target, "--source-for-target")
        info = self.source.connection.info
        own = parse(conninfo, "the connection string of the source")
        own.pop("service", None)
        own.update((key, value) for key, value in info.get_parameters().items() if key in CONNECTION)
        own.update(port=str(info.port), dbname=info.dbname, user=info.user)
        if info.host:
            own["host"] = info.host
        return own

    def hold(self, session, role):
        """Waits until no other session moves the shard. If the program was killed, its session ends after its last
        statement, which may change the map. Until then, no other program may decide about the move."""
        until = time.monotonic() + self.options.wait
        while not self.options.check:
            pid = session.value("SELECT snowflake_fleet.hold_move(%s, %s)", (self.shard, role))
            if pid is None:
                return
            if time.monotonic() > until:
                raise Refused(f"another snowflake-move-shard moves shard {self.shard}\n  Its session on the "
                              f"{session.label} is process {pid}.")
            time.sleep(0.1)

    # The state of the move

    def rows_of(self, session, side, which, *params):
        return [SimpleNamespace(**row) for row, in session.rows(ROW + which, (self.shard, side, *params))]

    def row_of(self, *which):
        return next(iter(self.rows_of(*which)), None)

    def source_row(self):
        return self.row_of(self.source, "source", "state <> 'kept'")

    def kept_rows(self):
        """Returns the records of earlier moves whose renamed schemas are still on the source, the newest first."""
        return self.rows_of(self.source, "source", "state = 'kept' ORDER BY changed DESC")

    def target_row(self, fence_id=None):
        """Returns the target's record of the move that has not ended, or of the ended move with the given fence id."""
        return self.row_of(self.target, "target",
                           "(state <> 'here' OR fence ->> 'id' = %s) ORDER BY state = 'here'", fence_id)

    def map_says(self):
        return self.control.value("SELECT snowflake_fleet.server_of_shard(%s)", (self.shard,))

    def is_flipped(self):
        """Returns whether the target has taken over the shard, as the map shows. Without a map, the target's record of
        the move shows it."""
        if self.control is not None:
            return self.map_says() == self.to_name
        here = self.source_row()
        # When the source server renames the moved schema, the record of the move gets the state "kept". The function
        # source_row() ignores records with the state "kept".
        if here is None and not self.has_schema(self.source, self.schema):
            here = next(iter(self.kept_rows()), None)
        there = here and here.fence and self.target_row(here.fence_id)
        return bool(there) and there.state == "here"

    def has_schema(self, session, schema):
        return session.value("SELECT count(*) = 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,))

    def has_slot(self):
        return self.source.value(HAS_SLOT, (self.slot,))

    def tables(self, session):
        """Returns the quoted names of the schema's tables, as parts of SQL statements."""
        tables = session.column("SELECT t::text FROM snowflake_fleet.tables_of(%s) AS t", (self.schema,))
        return [sql.SQL(table) for table in tables]

    def is_altered(self, schema=None):
        return self.source.value("SELECT snowflake_fleet.is_altered(m) FROM snowflake_fleet.moving AS m "
                                 "WHERE schema = %s AND side = 'source'", (schema or self.schema,))
