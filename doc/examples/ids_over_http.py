#!/usr/bin/python3
"""Ids over HTTP, as JSON strings: /id, /ids?count=, /decode?id=, /health. See doc/http.md.

ids_over_http.py SHARD PORT CONNINFO listens on loopback; nothing else is configured. It keeps no state: run as
many as you like, over the same or other databases.
"""
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

SHARD, PORT = int(sys.argv[1]), int(sys.argv[2])
MOST_IDS = 1000  # of one request
# Where the connection string says nothing else: nothing waits for ever. A call may wait for the clock for 2 s.
LIMITS = {"connect_timeout": "5", "tcp_user_timeout": "10000", "options": "-c statement_timeout=5s"}
pool = ConnectionPool(make_conninfo(**{**LIMITS, **conninfo_to_dict(sys.argv[3])}), min_size=1, max_size=8,
                      max_waiting=64, timeout=5, kwargs={"autocommit": True, "row_factory": dict_row})

# path: methods, parameters with their defaults (None: must be given), statement
MINT, READ = ("GET", "POST"), ("GET",)
ROUTES = {
    "/id": (MINT, {"shard": SHARD}, "SELECT snowflake.next_id(%(shard)s::int)::text AS id"),
    "/ids": (MINT, {"shard": SHARD, "count": None},
             "SELECT snowflake.next_ids(%(shard)s::int, %(count)s::int)::text[] AS ids"),
    "/decode": (READ, {"id": None}, """SELECT %(id)s::bigint::text AS id, region, shard, sequence,
        to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at
        FROM snowflake.decode(%(id)s::bigint)"""),
    "/health": (READ, {}, "SELECT minting, reason, advice FROM snowflake.health()"),
}
# SQLSTATEs, and classes of them: what the caller sent is wrong; the database does not mint now.
REFUSED = ("22003", "22004", "22008", "22023", "22P02")
NOT_NOW = ("55000", "25006", "2200H", "08", "53", "57")


def parameters(query, defaults):
    given = parse_qsl(query, keep_blank_values=True, max_num_fields=8)
    values = {**defaults, **dict(given)}
    if len(values) > len(defaults) or len(dict(given)) < len(given):
        raise ValueError(f"takes {' and '.join(defaults) or 'no parameters'}, each once")
    for name, value in values.items():
        if not re.fullmatch("[0-9]{1,19}", str(value), re.ASCII):
            raise ValueError(f"{name} has to be a whole number")
    if int(values.get("count", 1)) > MOST_IDS:
        raise ValueError(f"count is at most {MOST_IDS}")
    return values


def ask(statement, values):
    for last_try in (False, True):
        with pool.connection() as connection:
            try:
                return connection.execute(statement, values).fetchone()
            except psycopg.OperationalError:
                if not connection.broken or last_try:
                    raise
        pool.check()  # the server was restarted: other connections are gone as well


def status_of(error):
    state = error.sqlstate or "08"
    return 400 if state in REFUSED else 503 if state.startswith(NOT_NOW) else 500


class Handler(BaseHTTPRequestHandler):
    timeout = 10  # for a client that sends nothing, in seconds

    def do_GET(self):
        try:
            url = urlsplit(self.path)
            if url.path not in ROUTES:
                return self.answer(404, {"error": "there are " + ", ".join(ROUTES)})
            methods, defaults, statement = ROUTES[url.path]
            if self.command not in methods:
                return self.answer(405, {"error": "takes " + ", ".join(methods)}, Allow=", ".join(methods))
            if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
                return self.answer(413, {"error": "takes no body"})
            row = ask(statement, parameters(url.query, defaults))
            self.answer(200 if row.get("minting", True) else 503, row)
        except ValueError as error:
            self.answer(400, {"error": str(error)})
        except psycopg.Error as error:
            self.log_error("%s %s", error.sqlstate, error)
            status, diagnosis = status_of(error), error.diag
            told = {"error": diagnosis.message_primary, "detail": diagnosis.message_detail, "hint": diagnosis.message_hint}
            if status == 500 or not told["error"]:  # names hosts and roles, perhaps
                told = {"error": "the database cannot be asked; the log of this server says why"}
            self.answer(status, told)

    do_POST = do_GET

    def answer(self, status, content, **headers):
        body = json.dumps({name: value for name, value in content.items() if value is not None}).encode() + b"\n"
        self.send_response(status)
        # What a cache gives out a second time is a duplicate.
        headers |= {"Cache-Control": "no-store", "Content-Type": "application/json", "Content-Length": str(len(body))}
        if status == 503:
            headers["Retry-After"] = "1"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_):
        pass


class Server(ThreadingHTTPServer):
    slots = threading.BoundedSemaphore(64)  # requests at a time; more wait to be accepted
    request_queue_size = 128

    def process_request(self, request, client_address):
        self.slots.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.slots.release()


if __name__ == "__main__":
    server = Server(("127.0.0.1", PORT), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
