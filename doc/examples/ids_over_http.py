#!/usr/bin/python3
"""Ids over HTTP, as JSON strings: /v1/id, /v1/ids?count=, /v1/id/decode?id=, /health. See doc/http.md.

ids_over_http.py SHARD PORT CONNINFO listens on loopback; nothing else is configured. It keeps no state: run as
many as you like, over the same or other databases.
"""
import re
import sys

import psycopg
import waitress
from flask import Flask, abort, request
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool
from werkzeug.exceptions import HTTPException

SHARD, PORT, THREADS, MOST_IDS = int(sys.argv[1]), int(sys.argv[2]), 8, 1000  # of one request
# Without these defaults of the connection string, a wait for the database could last forever. A minting call may wait
# up to 2 s for the clock.
LIMITS = {"connect_timeout": "5", "tcp_user_timeout": "10000", "options": "-c statement_timeout=5s"}
pool = ConnectionPool(make_conninfo(**{**LIMITS, **conninfo_to_dict(sys.argv[3])}), min_size=1, max_size=THREADS,
                      timeout=5, kwargs={"autocommit": True, "row_factory": dict_row})
# Errors with these SQLSTATEs mean a wrong request (REFUSED), or a database that does not mint now (NOT_NOW). A value of
# two characters stands for a class of SQLSTATEs.
REFUSED = ("22003", "22004", "22008", "22023", "22P02")
NOT_NOW = ("55000", "25006", "2200H", "08", "53", "57")

app = Flask(__name__, static_folder=None)
app.json.sort_keys = False


def route(path, methods, parameters, statement):  # a request must contain each parameter whose default is None
    app.add_url_rule(path, path, lambda: answer(statement, numbers(parameters)), methods=methods)


def numbers(parameters):
    given = request.args.to_dict(flat=False)
    values = {**parameters, **{name: texts[0] for name, texts in given.items()}}
    if len(values) > len(parameters) or any(len(texts) > 1 for texts in given.values()):
        abort(400, f"takes {' and '.join(parameters) or 'no parameters'}, each once")
    for name, value in values.items():
        if not re.fullmatch("[0-9]{1,19}", str(value), re.ASCII):
            abort(400, f"{name} has to be a whole number of at most 19 digits, without a sign")
    if not 1 <= int(values.get("count", 1)) <= MOST_IDS:
        abort(400, f"count is 1 to {MOST_IDS}")
    return values


def answer(statement, values):
    for last_try in (False, True):
        with pool.connection() as connection:
            try:
                row = connection.execute(statement, values).fetchone()
                return told(row, 200 if row.get("minting", True) else 503)
            except psycopg.OperationalError:
                if not connection.broken or last_try:
                    raise
        pool.check()  # removes all broken connections, because a server restart breaks all of them


def told(content, status):
    # Prevents HTTP caches from storing an answer, because two clients would receive the same id.
    headers = {"Cache-Control": "no-store", **({"Retry-After": "1"} if status == 503 else {})}
    return {name: value for name, value in content.items() if value is not None}, status, headers


@app.errorhandler(psycopg.Error)
def of_the_database(error):
    app.logger.error("%s %s", error.sqlstate, error)
    state, said = error.sqlstate or "08", error.diag
    status = 400 if state in REFUSED else 503 if state.startswith(NOT_NOW) else 500
    if status == 500 or not said.message_primary:  # hides the message, because it may contain names of hosts and roles
        return told({"error": "the database cannot be asked; the log of this server says why"}, status)
    return told({"error": said.message_primary, "detail": said.message_detail, "hint": said.message_hint}, status)


@app.errorhandler(HTTPException)
def of_the_request(error):
    content, status, headers = told({"error": error.description}, error.code)
    return content, status, {**dict(error.get_headers()), "Content-Type": "application/json", **headers}


@app.before_request
def no_body():
    if request.content_length:
        abort(413, "takes no body")


route("/v1/id", ["GET", "POST"], {"shard": SHARD}, "SELECT snowflake.next_id(%(shard)s::int)::text AS id")
route("/v1/ids", ["GET", "POST"], {"shard": SHARD, "count": None},
      "SELECT snowflake.next_ids(%(shard)s::int, %(count)s::int)::text[] AS ids")
route("/v1/id/decode", ["GET"], {"id": None}, """SELECT %(id)s::bigint::text AS id, region, shard, sequence,
    to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at
    FROM snowflake.decode(%(id)s::bigint)""")
route("/health", ["GET"], {}, "SELECT minting, reason, advice FROM snowflake.health()")
server = waitress.create_server(app, host="127.0.0.1", port=PORT, threads=THREADS, connection_limit=100,
                                channel_timeout=10, cleanup_interval=5, max_request_body_size=1024)
print(f"http://127.0.0.1:{server.effective_port}", flush=True)
server.run()
