"""What a schema is: the statements that make it, and the lines that describe it."""
import os
import subprocess
import time

import psycopg
from psycopg import sql

from .errors import Refused
from .session import LOCK_MS

DESCRIPTION = "SELECT line FROM snowflake_fleet.description_of(%s) WHERE NOT printed OR %s ORDER BY line"


def description(move, session, printed):
    """With what the server prints of expressions, or without: those differ between a table and its restored dump."""
    return [line for line, in session.rows(DESCRIPTION, (move.schema, printed))]


def differences(one, other):
    """Lines that only one of them has: the first few, as text."""
    only = [f"only on the source: {line}" for line in sorted(set(one) - set(other))]
    only += [f"only on the target: {line}" for line in sorted(set(other) - set(one))]
    return [line.split("\n")[0][:200] for line in only[:6]]


def dump_of(move):
    """The statements that make the schema, and nothing that psql would take for a command of its own."""
    pattern = '"' + move.schema.replace('"', '""') + '"'
    command = ["pg_dump", "--schema-only", "--no-publications", "--no-subscriptions", "--lock-wait-timeout=30s", "--strict-names",
               "-n", pattern, "-d", move.source.conninfo]
    environment = dict(os.environ, PGAPPNAME="snowflake-move-shard", PGCLIENTENCODING="UTF8", PGCONNECT_TIMEOUT="20")
    environment["PGOPTIONS"] = environment.get("PGOPTIONS", "") + " -c statement_timeout=600s -c quote_all_identifiers=off -c idle_session_timeout=0 -c idle_in_transaction_session_timeout=0"
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=900, check=False)
    except FileNotFoundError:
        raise Refused("pg_dump is not in the PATH: install PostgreSQL's client programs") from None
    except subprocess.TimeoutExpired:
        raise Refused("pg_dump has not ended within 15 minutes") from None
    if done.returncode != 0:
        holders = move.source.holders([move.schema])
        raise Refused("pg_dump failed: " + done.stderr.decode(errors="replace").strip()
                      + ("\n  Locks on the schema's tables are held by " + "; ".join(holders) if holders else ""))
    lines = done.stdout.decode().split("\n")
    meta = [number for number, line in enumerate(lines) if line.startswith(("\\restrict ", "\\unrestrict "))]
    if meta:    # the first and the last; what is between them is the server's
        del lines[meta[-1]]
        del lines[meta[0]]
    return "\n".join(lines)


def called_as_superuser(move):
    """On the target, where what has the names of the source is somebody else's, perhaps."""
    return [sentence for sentence, in move.target.rows("SELECT * FROM snowflake_fleet.called_as_superuser(%s)", (move.schema,))]


def used_of_extensions(move):
    return move.source.rows("SELECT * FROM snowflake_fleet.used_of_extensions(%s)", (move.schema,))


def lacking(move, used):
    """What of used_of_extensions() the target has not under the same names, in sentences."""
    return [sentence for sentence, in move.target.rows("SELECT * FROM snowflake_fleet.lacking_of_extensions(%s::text[], %s::text[])",
                                                       ([extension for extension, _ in used], [name for _, name in used]))]


def keep_names(session):
    """Until the caller's transaction ends nobody makes functions, operators and types, or renames schemas. Others' DDL queues
    up behind an attempt."""
    until = time.monotonic() + 60
    while True:
        session.execute("SAVEPOINT names")
        try:
            session.execute("SELECT pg_catalog.set_config('lock_timeout', %s, true)", (str(LOCK_MS),))
            session.execute("LOCK TABLE pg_catalog.pg_namespace, pg_catalog.pg_proc, pg_catalog.pg_operator, pg_catalog.pg_type IN SHARE ROW EXCLUSIVE MODE")
            session.execute("SELECT pg_catalog.set_config('lock_timeout', '0', true)")
            return
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            session.rollback_to("names")
            if time.monotonic() > until:
                raise Refused(f"{session.label}: the catalogues are locked, by a long transaction with DDL perhaps\n  See pg_locks, and run this again.") from None
            time.sleep(0.2)


def run_script(move, script):
    """On the target, within the caller's transaction. A superuser runs it: what it names may not be an ordinary role's.
    The script's settings are taken back."""
    session = move.target
    used = used_of_extensions(move)
    keep_names(session)
    found = lacking(move, used)
    if found:
        raise Refused("the schema is not made on the target\n" + "\n".join(f"  {line}" for line in found))
    session.execute(script.encode(), seconds=600)
    session.connection.execute("SELECT pg_catalog.set_config('search_path', '', false), pg_catalog.set_config('client_min_messages', 'warning', false),"
                               " pg_catalog.set_config('row_security', 'off', false), pg_catalog.set_config('check_function_bodies', 'on', false),"
                               " pg_catalog.set_config('lock_timeout', '0', false), pg_catalog.set_config('idle_in_transaction_session_timeout', '0', false)")
    session.limit = None


def start_of(schema):
    """So much of a name that it is still one with an ending: names have up to 63 bytes."""
    return schema.encode()[:45].decode(errors="ignore")


def made_aside(move, script):
    """What the script makes of the schema on the target, beside the one that is there; then it is taken back, as far as the
    caller's transaction was."""
    target = move.target
    aside = f"{start_of(move.schema)}_{os.getpid()}_aside"
    target.execute("SAVEPOINT aside")
    try:
        target.execute(sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(sql.Identifier(move.schema), sql.Identifier(aside)))
        run_script(move, script)
        return description(move, target, True)
    finally:
        target.rollback_to("aside")
