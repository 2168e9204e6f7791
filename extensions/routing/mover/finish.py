"""After the target has taken over; and the ways back: taking a move back, forgetting one, dropping what was kept."""
import json
import os
import subprocess
import sys

import psycopg
from psycopg import sql

from .check import of_rows
from .copying import forget
from .errors import Refused, say
from .fence import TAKEN_OVER, ask_control, begin_control, lift
from .session import Session

PUSH_SECONDS = 20


def counts(session, schema):
    """Rows of each table. COPY plans no query, in which a superuser would call functions of the table's owner: he may alter the target's tables already."""
    found = {}
    for table, column in session.rows("""
        SELECT relname::text, attname::text FROM snowflake_fleet.tables_of(%s) AS t JOIN pg_catalog.pg_class AS c ON c.oid = t
          JOIN pg_catalog.pg_index ON indrelid = t AND indisprimary JOIN pg_catalog.pg_attribute ON attrelid = t AND attnum = indkey[0]""", (schema,)):
        found[table] = session.execute(sql.SQL("COPY {} ({}) TO '/dev/null'").format(sql.Identifier(schema, table), sql.Identifier(column)), seconds=3600).rowcount
    return found


def require_proof(move, here, there):
    """A target that has the fence's record has every row from before it, whatever happened to the server since: it was committed after them."""
    if here is None or there is None or here.fence_id() != there.fence_id() or there.state not in ("level", "here"):
        raise Refused(f"the target has {'no record' if there is None else 'the record ' + there.state} of this move, as after a restore or a failover, and may lack rows\n"
                      f"  Nothing is finished, and the source is left as it is. Compare {here.schema if here else move.schema} on the source with {move.schema} on the target.")


def keep_source(move, here, there):
    """Renamed, so that a session with an old map does not find it, and fenced as it is."""
    source = move.source
    if not source.value("SELECT snowflake_fleet.fenced(%s)", (move.schema,)):
        raise Refused(f"the source's schema {move.schema} is not fenced, and is left alone\n"
                      "  The target has taken over; look for rows that were written to the source since.")
    altered = move.is_altered()
    name = source.patiently("renaming the schema", move.options.lock_timeout,
                            lambda: source.value("SELECT snowflake_fleet.release_shard(%s, %s::jsonb)", (move.shard, json.dumps({"id": there.fence_id()}))))
    say(f"the source's schema is kept as {name}, fenced: --drop-source drops it")
    if altered:
        raise Refused(f"the source's schema was altered while the target took over: compare {name} with the target's schema {move.schema} before you drop it")


def push_map(move):
    """To all servers at once: one that is silent holds up no other."""
    if move.control is None:
        return
    program = os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), "snowflake-push-map")
    try:
        ended = subprocess.run([sys.executable, program, "--timeout", str(PUSH_SECONDS), move.options.control], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=10 * PUSH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Refused("snowflake-push-map does not end: run it to see which server holds it up") from None
    say("\n  ".join(["the map is pushed", *ended.stdout.splitlines(), *(["Run snowflake-push-map for the others."] if ended.returncode else [])]))


def compare_counts(move, here):
    """What the target had when it took over, in a snapshot of then, with what the source has behind the fence."""
    if move.counting is None:
        return
    there, here = counts(move.counting, move.schema), counts(move.source, here.schema)
    move.counting.rollback()
    wrong = [f"  Table {name}: {here[name]} rows on the source, {there.get(name)} on the target" for name in here if here[name] != there.get(name)]
    if wrong:
        move.stands = None    # it would advise to finish
        raise Refused("the target took over with other rows than the source has\n" + "\n".join(wrong) + "\n  Nothing is finished, and the source is left as it is.")


def finish(move):
    move.stands = TAKEN_OVER
    here = move.source_row() or next(reversed(move.kept_rows()), None)
    there = move.target_row(here and here.fence_id())
    require_proof(move, here, there)
    push_map(move)
    compare_counts(move, here)
    if here.state == "fenced":
        keep_source(move, here, there)
    if move.has_subscription():
        forget(move.target, move, "target", False)
    forget(move.source, move, "source", False)
    # Without a subscription the record of the target is still to be closed, as after a crash just now.
    move.target.execute("UPDATE snowflake_fleet.moving SET state = 'here' WHERE shard = %s AND side = 'target' AND state = 'level'", (move.shard,))
    move.stands = None
    say(f"shard {move.shard} is on the target")


def abort(move):
    if move.is_flipped():
        raise Refused(f"shard {move.shard} is on the target already\n  Run without --abort to finish, then move it back.")
    here, there = move.source_row(), move.target_row()
    # A server of the same name that has no record of this move is not the one that had it: that is gone.
    if there is not None or here is not None and here.other != move.to_name:
        for sentence in of_rows(move):
            raise Refused(sentence)
    if here is not None and here.state == "fenced" and there is None and move.control is None:
        raise Refused(f"shard {move.shard} is fenced, and the target has no record of this move\n"
                      f"  If no server has taken over, call snowflake_fleet.release_shard({move.shard}) on the source, then run this again.")
    if here is not None and here.state == "fenced":
        push_map(move)    # the source refuses it while its copy of the map has the shard on the target
        lift(move)
    if there is not None:
        forget(move.target, move, "target", True)
    if here is not None:
        forget(move.source, move, "source", True)
    say(f"shard {move.shard} is on the source, as before")


def forget_side(move):
    """The other server is gone for good: one side is cleaned, and what it leaves is said."""
    side, options = move.options.forget, move.options
    session = move.source if side == "source" else move.target
    if side == "source":
        row = move.source_row()
        if row is not None and row.state == "fenced" and move.control is not None:
            begin_control(move)
            where = move.map_says()
            if where == row.other:
                # The target has taken over, and nothing writes here any more.
                say("the map has the shard on the target: the schema is kept as "
                    + session.patiently("renaming the schema", options.lock_timeout,
                                        lambda: session.value("SELECT snowflake_fleet.release_shard(%s, %s::jsonb)", (move.shard, json.dumps({"id": row.fence_id()})))))
            else:
                ask_control(move)
                lift(move)
            move.control.rollback()
    left = forget(session, move, side, False)
    say(f"the {side} has forgotten the move of shard {move.shard}" + (f": {left}" if left else ""))


def drop_source(move):
    """What was kept of moves of this shard away from here, if the target has the record of having taken over; and nothing else."""
    source = move.source
    kept = move.kept_rows()
    if not kept:
        raise Refused(f"nothing is kept of shard {move.shard} on {move.from_name}")
    for row in kept:
        if source.value("SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = %s", (row.schema,)) == 0:
            source.execute("DELETE FROM snowflake_fleet.moving WHERE id = %s", (row.id,))
            say(f"schema {row.schema} has been dropped already")
            continue
        if move.is_altered(row.schema):
            raise Refused(f"schema {row.schema} is not any more what was moved: drop it by hand, when you know what it has")
        if not move.options.force:
            require_taker(move, row)
        try:
            source.patiently(f"dropping {row.schema}", move.options.lock_timeout, lambda row=row: drop_kept(source, row))
        except psycopg.errors.DependentObjectsStillExist as error:
            raise Refused(f"{source.label}: schema {row.schema} is not dropped, for something else hangs on it\n  {(error.diag.message_detail or '').strip()}\n"
                          "  Drop that first, or keep the schema.") from None
        say(f"schema {row.schema} is dropped on the source")


def require_taker(move, row):
    """The server that took over is asked: its record outlasts everything but the loss of the rows that came with it."""
    try:
        move.to_name, conninfo = move.locate(row.other)
        move.target = Session("target", conninfo)
        move.require(move.target)
        there = move.target_row(row.fence_id())
    except (psycopg.Error, Refused) as error:
        raise Refused(f"schema {row.schema} is not dropped, for the server that took over, {row.other}, cannot be asked: {str(error).strip().splitlines()[0]}\n"
                      "  If it is gone for good, these may be the only rows. If you do not need them, run with --force.") from None
    if there is None or there.state != "here":
        raise Refused(f"schema {row.schema} is not dropped: {row.other} has no record of having taken over, as after a restore or a failover, and may lack rows\n"
                      f"  Compare it with the rows of shard {move.shard}. If you do not need it, run with --force.")
    if move.has_schema(move.target):
        here, now = counts(move.source, row.schema), counts(move.target, move.schema)
        say(f"rows of {row.schema} and of the target now: " + "; ".join(f"{name} {here[name]} and {now.get(name, 'no table')}" for name in sorted(here)))


def drop_kept(source, row):
    source.execute("SELECT snowflake_fleet.drop_schema(%s)", (row.schema,))
    source.execute("DELETE FROM snowflake_fleet.moving WHERE id = %s", (row.id,))
