"""Where things are: the servers of a move, who moves, and how far it is."""
import time
from typing import NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from .errors import Refused
from .session import KEEPALIVE, Session, parse

DATABASE = """SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()) || '/' ||
  (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())"""
# identity() changes with a restart as well, for a disk that was put back needs one.
IDENTITY = "SELECT snowflake_fleet.identity()"
ORDINARY_OWNER = """SELECT rolname FROM (
    SELECT nspowner AS owner FROM pg_catalog.pg_namespace WHERE nspname = 'snowflake_fleet'
    UNION SELECT relowner FROM pg_catalog.pg_class WHERE relnamespace = 'snowflake_fleet'::pg_catalog.regnamespace
    UNION SELECT proowner FROM pg_catalog.pg_proc WHERE pronamespace = 'snowflake_fleet'::pg_catalog.regnamespace
  ) AS of_objects JOIN pg_catalog.pg_roles ON oid = owner WHERE NOT rolsuper ORDER BY rolname LIMIT 1"""
# Of this program's connection to the source, the server of the target is to use these.
CONNECTION = ("host", "hostaddr", "port", "dbname", "user")
ROW = """SELECT id::text, shard, schema, side, state, other, other_database, other_identity, role, fence
  FROM snowflake_fleet.moving WHERE shard = %s AND side = %s"""


def require_trusted(session):
    """What an ordinary role owns it may alter, and this program would run it as a superuser."""
    if session.value("SELECT pg_catalog.to_regclass('snowflake_fleet.map_state')") is None:
        raise Refused(f"{session.label}: extension snowflake_routing has to be installed")
    owner = session.value(ORDINARY_OWNER)
    if owner is not None and session.value("SHOW is_superuser") == "on":
        raise Refused(f"{session.label}: schema snowflake_fleet has objects of role {owner}, who is no superuser, and this would run them as one\n"
                      f"  Connect as {owner} there.")


def is_string(server):
    return "=" in server or "://" in server


class Row(NamedTuple):
    """A row of snowflake_fleet.moving, as it was when it was read."""
    id: str
    shard: int
    schema: str
    side: str
    state: str
    other: str
    other_database: str
    other_identity: str
    role: str
    fence: dict

    def fence_id(self):
        return self.fence and self.fence["id"]


class Move:
    """The servers of a move. With a map there is a control database, without one `control` is None."""
    def __init__(self, options):
        self.options, self.shard = options, options.shard
        self.schema = options.schema or f"shard_{options.shard}"
        self.name = f"snowflake_move_{options.shard}"          # of publication and subscription, which are a database's
        self.control = self.source = self.target = self.probe = self.counting = None
        self.stands = None    # what the user has to know if the program ends now
        self.waits = False    # for a worker, which has been said
        self.from_name, self.to_name = options.source, options.target

    # Connections

    def locate(self, server):
        """Name and connection string of a server, which with a map may be given by its name there."""
        if self.control is None:
            if not is_string(server):
                raise Refused("without --control, servers are given by connection strings")
            parse(server, "the connection string")
            return server, server
        column = "conninfo" if is_string(server) else "name"
        if is_string(server):
            parse(server, "the connection string")
        row = self.control.row(sql.SQL("SELECT name, conninfo FROM snowflake_fleet.map_server WHERE {} = %s").format(sql.Identifier(column)), (server,))
        if row is None:
            raise Refused("the map has no such server" if is_string(server) else f"the map has no server {server}")
        return row

    def open_control(self):
        """A copy of the map, or a map of before a restore, may say that the source has what the target has taken over."""
        self.control = Session("control database", self.options.control)
        require_trusted(self.control)
        if self.control.value("SELECT is_copy FROM snowflake_fleet.map_state"):
            raise Refused("the database of --control has a copy of the map: name the one that decides")
        self.control.execute("SELECT snowflake_fleet.check_map_state(s) FROM snowflake_fleet.map_state AS s")

    def open_target(self):
        self.to_name, conninfo = self.locate(self.options.target)
        self.target = Session("target", conninfo)
        self.require(self.target)
        self.target_database, self.target_identity = self.target.value(DATABASE), self.target.value(IDENTITY)
        return self.target

    def open_source(self):
        found, conninfo = self.locate(self.from_name)
        self.from_name = found
        self.source = Session("source", conninfo)
        self.require(self.source)
        self.probe = Session("source", conninfo)
        # A server of the map may be known by a service or a default of this machine: the target's server knows neither.
        info = self.source.connection.info
        own = {key: value for key, value in parse(conninfo, "the connection string of the source").items() if key != "service"}
        own.update({key: value for key, value in info.get_parameters().items() if key in CONNECTION}, port=str(info.port), dbname=info.dbname, user=info.user)
        if info.host:
            own["host"] = info.host
        if self.options.source_for_target:
            own = parse(self.options.source_for_target, "--source-for-target")
        self.source_for_target = make_conninfo(**{**KEEPALIVE, "connect_timeout": "20", **own, "application_name": self.name})
        self.source_database, self.source_identity = self.source.value(DATABASE), self.source.value(IDENTITY)
        # Slots are the server's, not the database's.
        self.slot = f"snowflake_move_{self.source_database.split('/')[1]}_{self.shard}"
        if self.target is not None and self.source_identity == self.target_identity:
            raise Refused("source and target are one database")
        return self.source

    def require(self, session):
        installed = session.value("SELECT count(*) FROM pg_catalog.pg_extension WHERE extname IN ('snowflake', 'snowflake_routing')")
        if installed != 2:
            raise Refused(f"{session.label}: extensions snowflake and snowflake_routing have to be installed")
        require_trusted(session)
        if session.value("SHOW is_superuser") != "on":
            raise Refused(f"{session.label}: the role is no superuser")
        if session.value("SELECT pg_catalog.pg_is_in_recovery()"):
            raise Refused(f"{session.label}: the server is a standby")

    def hold(self):
        """One at a time. A session of a program that was killed ends when its statement does, which may be the one that
        changes the map: until then nobody else decides anything."""
        for role, session in (("control", self.control), ("source", self.source), ("target", self.target)):
            if session is not None:
                self.hold_one(session, role, self.options.wait)

    def hold_one(self, session, role, seconds):
        until = time.monotonic() + seconds
        while (pid := session.value("SELECT snowflake_fleet.hold_move(%s, %s)", (self.shard, role))) is not None:
            if time.monotonic() > until:
                raise Refused(f"shard {self.shard} is being moved by another snowflake-move-shard\n  Its session in the {session.label} is process {pid}.")
            time.sleep(0.1)

    def reconnect_control(self):
        self.control.close()
        self.open_control()
        self.hold_one(self.control, "control", self.options.wait)

    # How far it is

    def source_row(self):
        row = self.source.row(ROW + " AND state <> 'kept'", (self.shard, "source"))
        return row and Row(*row)

    def kept_rows(self):
        return [Row(*row) for row in self.source.rows(ROW + " AND state = 'kept' ORDER BY changed", (self.shard, "source"))]

    def target_row(self, fence_id=None):
        """Of the move that is open, or of the one with this fence."""
        row = self.target.row(ROW + " AND (state <> 'here' OR fence ->> 'id' = %s) ORDER BY state = 'here' LIMIT 1", (self.shard, "target", fence_id))
        return row and Row(*row)

    def map_says(self):
        return self.control.value("SELECT snowflake_fleet.server_of_shard(%s)", (self.shard,))

    def is_flipped(self):
        """Whether the target has taken over: the map says so, or without a map the target."""
        if self.control is not None:
            return self.map_says() == self.to_name
        here = self.source_row()
        if here is None and not self.has_schema(self.source):    # renamed already; it may have come back since an earlier move
            here = next(reversed(self.kept_rows()), None)
        there = here and here.fence and self.target_row(here.fence_id())
        return bool(there) and there.state == "here"

    def has_schema(self, session):
        return session.value("SELECT pg_catalog.count(*) FROM pg_catalog.pg_namespace WHERE nspname = %s", (self.schema,)) == 1

    def has_subscription(self):
        return self.target.value("SELECT count(*) FROM pg_catalog.pg_subscription WHERE subname = %s AND subdbid = "
                                 "(SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())", (self.name,)) == 1

    def has_slot(self):
        return self.source.value("SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE slot_name = %s AND database = pg_catalog.current_database() "
                                 "AND wal_status <> 'lost'", (self.slot,)) == 1

    def names(self, session):
        return [name for name, in session.rows("SELECT relname::text FROM snowflake_fleet.tables_of(%s) AS t JOIN pg_catalog.pg_class AS c ON c.oid = t ORDER BY 1", (self.schema,))]

    def tables(self, session):
        """The schema's tables, as identifiers to be put into statements."""
        return [sql.Identifier(self.schema, name) for name in self.names(session)]

    def is_altered(self, schema=None):
        return self.source.value("SELECT snowflake_fleet.is_altered(m) FROM snowflake_fleet.moving AS m WHERE schema = %s AND side = 'source'", (schema or self.schema,))
