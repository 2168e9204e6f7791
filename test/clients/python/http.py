"""Tests doc/examples/ids_over_http.py and the requests of doc/http.md."""
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
from tap import done, equal, ok

root = Path(__file__).resolve().parents[3]
program = root / "doc" / "examples" / "ids_over_http.py"
started = []


def start(conninfo, shard=5):
    process = subprocess.Popen(["/usr/bin/python3", program, str(shard), "0", conninfo], stdout=subprocess.PIPE, text=True)
    started.append(process)
    return int(process.stdout.readline().rsplit(":", 1)[1])


def ask(path, method="GET", headers=(), port=None, **more):
    connection = http.client.HTTPConnection("127.0.0.1", port or example, timeout=60)
    connection.request(method, path, headers=dict(headers), **more)
    response = connection.getresponse()
    content = json.loads(response.read())
    connection.close()
    return response.status, content, response.headers


def refused(path, status, words, what, **more):
    found, content, _ = ask(path, **more)
    ok(found == status and re.search(words, json.dumps(content)), f"{what}: {status}", (found, content))


admin = psycopg.connect("", autocommit=True)
try:
    example = start("user=application")

    # Sends the requests that doc/http.md shows, and compares only the form of the ids in the responses.
    page = (root / "doc" / "http.md").read_text()
    shown = re.findall(r"^\$ curl -s (-X \w+ )?'http://127\.0\.0\.1:8080(.*)'\n(.*)\n", page, re.M)
    equal(len(shown), 6, "commands of the page")
    equal(re.search(r"(\d+) lines", page)[1], str(len(program.read_text().splitlines())), "as long as the page says")
    for method, path, answer in shown:
        found = ask(path, method[3:].strip() or "GET")[1]
        told = json.loads(answer)
        if "decode" in path or "error" in told or "minting" in told:
            equal(found, told, f"as the page shows: {path}")
        else:
            equal(re.sub(r'"\d{18}"', "ID", json.dumps(found)), re.sub(r'"\d{18}"', "ID", json.dumps(told)), f"as the page shows: {path}")

    # Tests a request that mints: the response contains ids of the requested shard as strings, and forbids caches.
    status, content, headers = ask("/v1/id")
    decoded = admin.execute("SELECT shard FROM snowflake.decode(%s)", [int(content["id"])]).fetchone()
    ok(status == 200 and decoded == (5,), "an id of the program's shard", (status, content, decoded))
    equal(headers["Cache-Control"], "no-store", "responses forbid caching")
    content = ask("/v1/id?shard=7", "POST")[1]
    equal(ask(f"/v1/id/decode?id={content['id']}")[1]["shard"], 7, "an id of the shard that was named")

    ids, failed = [], []

    def client():
        for _ in range(20):
            status, content, _ = ask("/v1/ids?count=500&shard=6")
            (ids if status == 200 else failed).extend(content.get("ids", [content]))
    clients = [threading.Thread(target=client) for _ in range(16)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    equal(failed, [], "16 clients at a time: all are answered")
    equal((len(ids), len(set(ids))), (160000, 160000), "... and no id comes twice")
    ok(all(isinstance(id, str) for id in ids), "... all of them strings")
    equal(len(ask("/v1/ids?count=1000")[1]["ids"]), 1000, "the limit of one request")

    # Tests wrong requests: the response contains the error that the HTTP program or the database reports.
    refused("/v1/ids?count=1001", 400, "count is 1 to 1000", "more than the limit of one request")
    refused("/v1/ids?count=1000000", 400, "count is 1 to 1000", "the limit of next_ids()")
    refused("/v1/ids", 400, "count", "no count")
    refused("/v1/ids?count=0", 400, "count is 1 to 1000", "no id at all")
    refused("/v1/ids?count=", 400, "whole number", "an empty count")
    refused("/v1/ids?count=-1", 400, "count has to be a whole number of at most 19 digits, without a sign", "a negative count")
    refused("/v1/ids?count=1&count=2", 400, "each once", "a count twice")
    refused("/v1/id?shards=5", 400, "shard, each once", "another parameter")
    refused("/v1/id?shard=-1", 400, "at most 19 digits", "a negative shard")
    refused("/v1/id?shard=256", 400, "out of range.*hint", "a shard that the layout does not have")
    refused("/v1/id?shard=99999999999", 400, "out of range", "a shard that is no integer")
    refused("/v1/id?shard=5%00", 400, "whole number", "a zero byte")
    refused("/v1/id?shard=%D9%A5", 400, "whole number", "a digit that is not ASCII")
    refused("/v1/id?shard=5)::text;DROP--", 400, "whole number", "SQL")
    refused("/v1/id/decode?id=abc", 400, "whole number", "no number")
    refused("/v1/id/decode?id=9223372036854775808", 400, "out of range", "a number that is no bigint")
    refused("/v1/id/decode?id=" + "1" * 60000, 400, "whole number", "a long one")
    refused("/?" + "&".join(["a=1"] * 20), 404, "not found", "another path")
    refused("/v1/id?" + "&".join(["a=1"] * 20), 400, "shard, each once", "twenty parameters")
    refused("/v1/id/decode?id=1", 405, "not allowed", "decoding by POST", method="POST")
    equal(ask("/v1/id/decode?id=1", "POST")[2]["Allow"].replace("HEAD", "").replace("OPTIONS", "").strip(", "), "GET", "... says what is")
    equal({ask(path)[2]["Cache-Control"] for path in ("/", "/v1/id?shard=256", "/v1/ids")}, {"no-store"}, "errors forbid caching")
    refused("/v1/id", 413, "no body", "a body", method="POST", body="{}")

    # Tests a database that refuses to mint because its high-water mark is a day ahead of the clock.
    admin.execute("SELECT snowflake.set_mark(now() + interval '1 day')")
    until = time.monotonic() + 60
    while ask("/v1/id")[0] == 200 and time.monotonic() < until:  # minting continues for "snowflake.reserve"
        time.sleep(0.1)
    for path in ("/v1/id", "/v1/ids?count=2"):
        status, content, headers = ask(path)
        ok(status == 503 and headers["Retry-After"] and content["hint"], f"{path} while it does not mint: 503", (status, content))
    status, content, _ = ask("/health")
    ok(status == 503 and content["minting"] is False and content["advice"], "/health: 503", (status, content))
    equal(ask("/v1/id/decode?id=499712025023222784")[0], 200, "decoding still works")
    admin.execute("SELECT snowflake.set_mark(now())")
    equal(ask("/v1/id")[0], 200, "it mints again")

    # Tests that clients receive no error after all database connections of the HTTP program were terminated.
    gone = admin.execute("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'application'").fetchone()
    ok(gone[0] > 0, "its connections are ended")
    equal([ask("/v1/id")[0] for _ in range(10)], [200] * 10, "... and the client gets no error")
    admin.execute("ALTER ROLE application NOLOGIN")
    admin.execute("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = 'application'")
    refused("/v1/id", 503, "cannot be asked", "it may not log in any more")
    admin.execute("ALTER ROLE application LOGIN")

    # Tests an HTTP program that cannot reach its database. A response of the HTTP program must not contain the
    # connection string of the database.
    nowhere = start("host=127.0.0.1 port=1 user=application password=hunter2")
    status, content, _ = ask("/v1/id", port=nowhere)
    ok(status == 503 and set(content) == {"error"} and "127" not in content["error"], "no database: 503", (status, content))

    # Tests clients that connect to the HTTP program but send no request. Silent clients occupy connections of the HTTP
    # program until the timeout, but no threads.
    silent = [socket.create_connection(("127.0.0.1", example)) for _ in range(100)]

    def threads():
        return len(os.listdir(f"/proc/{started[0].pid}/task"))
    equal(ask("/v1/id")[0], 200, "silent clients are sent away")
    ok(threads() < 30, "... and took no threads", threads())
    for connection in silent:
        connection.close()
finally:
    for process in started:
        process.kill()
        process.wait()

done()
