#!/usr/bin/python3
"""A client of a router: client.py CONNINFO NAME STATEMENT SHARD COUNT. Signs up COUNT users in a shard by a statement that
returns the id, and tries again while the shard moves."""
import sys
import time

import psycopg

MOVED = ("40001", "42P01", "3F000")


def main():
    conninfo, name, statement, shard, count = sys.argv[1:]
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for number in range(int(count)):
            until = time.monotonic() + 60
            while True:
                try:
                    (user,) = connection.execute(statement, [int(shard), f"{name} {number}"]).fetchone()
                    break
                except psycopg.Error as error:
                    if error.sqlstate not in MOVED or time.monotonic() > until:
                        raise
                    time.sleep(0.005)
            print(user, f"{name} {number}", flush=True)
            time.sleep(0.01)


main()
