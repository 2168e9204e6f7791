#!/usr/bin/python3
"""Routes by id from an application, with psycopg: the map is cached by its version.

router.py CONNINFO SHARD COUNT [NAME]: signs up COUNT users in a shard and reads each by its id. CONNINFO is a database
that has the map and the extension snowflake, which knows the layout of ids: a data server or a router; the
control database where both are installed there. Take the class Router; it is for one thread.
"""
import sys
import time

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

# While a shard moves, its source server first fails writes with a serialization failure (40001). After the source
# server has renamed the schema of the shard, the table (42P01) or the schema (3F000) is missing.
MOVED = ("40001", "42P01", "3F000")
# The following limits apply unless the connection string sets other limits.
LIMITS = {"connect_timeout": "10", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3",
          "options": "-c statement_timeout=30s"}


class Router:
    def __init__(self, conninfo):
        self.conninfo, self.version, self.servers, self.connections = conninfo, None, {}, {}
        row = self.connection(conninfo).execute("SELECT sequence_bits, shards FROM snowflake.layout").fetchone()
        self.sequence_bits, self.shards = row
        self.refresh()

    def connection(self, conninfo):
        """The connection that is kept, or a new one where there is none or it broke."""
        found = self.connections.get(conninfo)
        if found is None or found.closed:
            limited = make_conninfo(**{**LIMITS, **conninfo_to_dict(conninfo)})
            found = self.connections[conninfo] = psycopg.connect(limited, autocommit=True)
        return found

    def refresh(self):
        """Reads the map again if it has changed: one number where it has not."""
        where = self.connection(self.conninfo)
        version = where.execute("SELECT snowflake_fleet.map_version()").fetchone()[0]
        if version == self.version:
            return
        rows = where.execute("SELECT shard, conninfo, version FROM snowflake_fleet.map").fetchall()
        self.servers = {shard: conninfo for shard, conninfo, _ in rows}
        self.version = rows[0][2] if rows else version

    def shard_of(self, number):
        return number >> self.sequence_bits & self.shards - 1

    def run(self, shard, work, timeout=30):
        """Returns work(connection, schema), run as a transaction where the shard is.

        It runs again where the shard moves meanwhile, for `timeout` seconds. Of a connection that
        breaks the caller is told: whether a commit was done then, only the data can say.
        """
        until, pause = time.monotonic() + timeout, 0.005
        while True:
            if shard not in self.servers:
                self.refresh()
            if shard not in self.servers:
                raise LookupError(f"shard {shard} is not in the map of version {self.version}")
            connection = self.connection(self.servers[shard])
            try:
                with connection.transaction():
                    return work(connection, f"shard_{shard}")
            except psycopg.Error as error:
                if error.sqlstate not in MOVED or time.monotonic() > until:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
            self.refresh()

    def close(self):
        for connection in self.connections.values():
            connection.close()


def main():
    router = Router(sys.argv[1])
    shard, count = map(int, sys.argv[2:4])
    name_of_all = sys.argv[4] if len(sys.argv) > 4 else "python"
    for number in range(count):
        wanted = f"{name_of_all} {number}"
        (user,) = router.run(shard, lambda connection, schema: connection.execute(
            f"INSERT INTO {schema}.users (name) VALUES (%s) RETURNING id", [wanted]).fetchone())
        (name,) = router.run(router.shard_of(user), lambda connection, schema: connection.execute(
            f"SELECT name FROM {schema}.users WHERE id = %s", [user]).fetchone())
        assert name == wanted
        print(user, name, flush=True)
        time.sleep(0.01)
    router.close()


if __name__ == "__main__":
    main()
