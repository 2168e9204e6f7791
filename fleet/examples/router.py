#!/usr/bin/python3
"""Routes by id from an application, with psycopg: the map is cached by its version.

router.py CONNINFO SHARD COUNT: signs up COUNT users in a shard and reads each by its id. CONNINFO is any
database that has the map, the control database or a copy.
"""
import sys
import time

import psycopg

# What a writer meets while its shard moves: the fence, then tables that are gone.
MOVED = ("40001", "42P01", "3F000")


class Router:
    def __init__(self, conninfo):
        self.map = psycopg.connect(conninfo, autocommit=True)
        row = self.map.execute("SELECT sequence_bits, shards FROM snowflake.layout").fetchone()
        self.sequence_bits, self.shards = row
        self.version, self.places, self.connections = None, {}, {}
        self.refresh()

    def refresh(self):
        """Reads the map again if it has changed: one number where it has not."""
        version = self.map.execute("SELECT snowflake_fleet.map_version()").fetchone()[0]
        if version == self.version:
            return
        rows = self.map.execute("SELECT shard, conninfo, version FROM snowflake_fleet.map").fetchall()
        self.places = {shard: conninfo for shard, conninfo, _ in rows}
        self.version = rows[0][2] if rows else version

    def shard_of(self, number):
        return number >> self.sequence_bits & self.shards - 1

    def run(self, shard, statement, values, patience=30):
        """Runs a statement of one transaction where the shard is; {schema} in it is the shard's schema."""
        until = time.monotonic() + patience
        while True:
            conninfo = self.places[shard]
            if conninfo not in self.connections:
                self.connections[conninfo] = psycopg.connect(conninfo, autocommit=True)
            try:
                return self.connections[conninfo].execute(statement.replace("{schema}", f"shard_{shard}"), values).fetchone()
            except psycopg.Error as error:
                if error.sqlstate not in MOVED or time.monotonic() > until:
                    raise
                time.sleep(0.005)
                self.refresh()


def main():
    router = Router(sys.argv[1])
    for number in range(int(sys.argv[3])):
        (user,) = router.run(int(sys.argv[2]), "INSERT INTO {schema}.users (name) VALUES (%s) RETURNING id", [f"python {number}"])
        (name,) = router.run(router.shard_of(user), "SELECT name FROM {schema}.users WHERE id = %s", [user])
        assert name == f"python {number}"
        print(user, name, flush=True)
        time.sleep(0.01)


main()
