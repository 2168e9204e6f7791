"""Finishes a move after the target has taken over. Other functions of this file cancel a move, remove the records of a
move, and drop the schema that remained on the source."""
import json
import os
import subprocess
import sys

import psycopg
from psycopg import sql

from .check import content, of_rows
from .copying import clear, forget, rest
from .errors import Refused, say
from .fence import ask_control, begin_control, lift

TAKEN_OVER = "The target has taken over. Run this command again to finish the move."
SECONDS = 3600    # the timeout in seconds for reading one table, while no writer waits
PRIMARY_KEYS = """SELECT relname::text, t::text, pg_catalog.quote_ident(attname)
  FROM snowflake_fleet.tables_of(%s) AS t JOIN pg_catalog.pg_class AS c ON c.oid = t
  JOIN pg_catalog.pg_index ON indrelid = t AND indisprimary
  JOIN pg_catalog.pg_attribute ON attrelid = t AND attnum = indkey[0]"""
RECORD_COMPARED = """UPDATE snowflake_fleet.moving
  SET fence = fence || pg_catalog.jsonb_build_object('compared', %s::text) WHERE id = %s"""
UNCOUNTED = "the program ended before it had counted the rows of source and target at the time of the fence"


def rows_of(session, schema, verify=False):
    """Returns for each table of the schema its number of rows, or with `verify` also their hash. Reads the rows with
    COPY, because a query of a superuser could run functions of the table's owner, who may already have altered the
    tables of the target."""
    found = {}
    for name, table, column in session.rows(PRIMARY_KEYS, (schema,)):
        if verify:
            found[name] = content(session, table, SECONDS)
        else:
            count = sql.SQL("COPY {} ({}) TO '/dev/null'").format(sql.SQL(table), sql.SQL(column))
            found[name] = f"{session.execute(count, seconds=SECONDS).rowcount} rows"
    return found


def require_proof(move, here, there):
    """Raises Refused if the target has no record of the fence. The record was committed after the copied rows, so a
    target with the record has all rows, even after a restore or a failover."""
    if here is None or there is None or here.fence_id != there.fence_id or there.state not in ("level", "here"):
        record = "no record" if there is None else f"the record {there.state}"
        raise Refused(f"the target has {record} of this move, as after a restore or a failover, and may lack rows\n"
                      "  Nothing is finished, and the source is left as it is. Compare "
                      f"{here.schema if here else move.schema} on the source with {move.schema} on the target.")


def keep_source(move, row):
    """Renames the schema of the source, so that sessions with an old map do not find it. The renamed schema still
    refuses writes."""
    name = move.source.patiently("renaming the schema", move.options.lock_timeout, lambda: move.source.value(
        "SELECT snowflake_fleet.release_shard(%s, %s::jsonb)", (move.shard, json.dumps({"id": row.fence_id}))))
    say(f"the schema of the source is kept as {name}, and is fenced: drop it with --drop-source")


def push_map(move):
    """Runs snowflake-push-map, which sends the map to all servers at once, so that a server that does not answer delays
    no other."""
    if move.control is None:
        return
    program = os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), "snowflake-push-map")
    seconds = max(1, move.options.wait)
    try:
        ended = subprocess.run([sys.executable, program, "--timeout", str(seconds), move.options.control],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               timeout=5 * seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Refused("snowflake-push-map does not end: run it yourself to see which server does not answer") from None
    said = "all servers have the new map"
    if ended.returncode != 0:
        said = "some servers do not have the new map: run snowflake-push-map for these servers"
    say("\n  ".join([said, *ended.stdout.splitlines()]))


def differences(move, here):
    """Compares the rows of the target when it took over, in the snapshot of that time, with the rows of the source.
    Returns the differences as text."""
    if not move.counting.in_transaction():
        return UNCOUNTED
    verify = move.options.verify
    there, here = rows_of(move.counting, move.schema, verify), rows_of(move.source, here.schema, verify)
    move.counting.rollback()
    wrong = [f"  Table {name}: {here[name]} on the source, {there.get(name)} on the target"
             for name in here if here[name] != there.get(name)]
    if not wrong:
        say("source and target had the same rows" if verify else "source and target had the same number of rows")
    return "\n".join(["at the take-over, the target had different rows than the source", *wrong]) if wrong else ""


def compare_rows(move, here):
    """Compares the rows of source and target, and stores the result in the record of the move. If rows differ, every
    later run raises the error again, until an operator uses --force."""
    found = before = here.fence.get("compared")
    if before is None:
        found = differences(move, here)
        if not found and move.is_altered():
            found = "the schema of the source was altered during the take-over"
        move.source.execute(RECORD_COMPARED, (found, here.id))
    if found and not (before and move.options.force):
        move.stands = None    # omits the advice to run the command again
        raise Refused(f"{found}\n  The move is not finished, and the source is unchanged. Compare schema "
                      f"{move.schema} of both servers.\n  If the target has all rows, finish the move with --force.")


def finish(move):
    move.stands = TAKEN_OVER
    here = move.source_row() or next(iter(move.kept_rows()), None)
    there = move.target_row(here and here.fence_id)
    require_proof(move, here, there)
    push_map(move)
    if here.state == "fenced":
        if not move.source.value("SELECT snowflake_fleet.fenced(%s)", (move.schema,)):
            raise Refused(f"schema {move.schema} of the source is not fenced, and was not changed\n  The target has "
                          "taken over. Search the source for rows that were written after that.")
        compare_rows(move, here)
        keep_source(move, here)
    # The last step deletes the record of the move on the target server. If the program fails before this step, a later
    # run finds the record and cleans up.
    rest(move)
    forget(move.source, move, "source", False)
    forget(move.target, move, "target", False)
    move.stands = None
    say(f"shard {move.shard} is on the target")


def abort(move):
    if move.is_flipped():
        raise Refused(f"shard {move.shard} is already on the target\n  Run without --abort to finish the move. Then "
                      "move the shard back.")
    here, there = move.source_row(), move.target_row()
    # If the target has no record of the move, the target is a new server that has replaced the original target.
    if there is not None or here is not None and here.other != move.to_name:
        for sentence in of_rows(move):
            raise Refused(sentence)
    is_fenced = here is not None and here.state == "fenced"
    if is_fenced and move.control is None and (there is None or here.other != move.to_name):
        raise Refused(f"shard {move.shard} is fenced, and it is not known whether the target has taken over\n  If no "
                      f"server has taken over, call snowflake_fleet.release_shard({move.shard}) on the source, and "
                      "run this command again.")
    if is_fenced:
        # Updates the shard map on the source server first. The function lift() cannot permit writes on the source
        # server while its shard map assigns the shard to the target server.
        push_map(move)
        lift(move)
    clear(move)
    say(f"the move is canceled: shard {move.shard} is on the source, as before")


def forget_side(move):
    """Removes the record of a move from one server, because the other server is permanently lost. The program reports
    the objects that remain."""
    side = move.options.forget
    row = move.source_row() if side == "source" else None
    if row is not None and row.state == "fenced" and move.control is not None:
        begin_control(move)
        if move.map_says() == row.other:
            keep_source(move, row)    # the target has taken over the shard, so no client writes to the source any more
        else:
            ask_control(move)
            lift(move)
        move.control.rollback()
    left = forget(move.source or move.target, move, side, False)
    say(f"the {side} no longer has a record of the move of shard {move.shard}" + (f": {left}" if left else ""))


def drop_source(move):
    """Drops the renamed schemas of earlier moves of the shard away from this server. Without --force, each server that
    took over must still have its record of the move."""
    source = move.source
    kept = move.kept_rows()
    if not kept:
        raise Refused(f"server {move.from_name} has no kept schema of shard {move.shard}")
    for row in kept:
        if move.has_schema(source, row.schema):
            drop_kept(move, row)
        source.execute("DELETE FROM snowflake_fleet.moving WHERE id = %s", (row.id,))
        say(f"schema {row.schema} is dropped on the source")


def drop_kept(move, row):
    source = move.source
    if move.is_altered(row.schema):
        raise Refused(f"schema {row.schema} was changed after the move: check its contents, and drop it yourself")
    if not move.options.force:
        require_taker(move, row)
    try:
        source.patiently(f"dropping {row.schema}", move.options.lock_timeout, lambda: source.execute(
            "SELECT snowflake_fleet.drop_schema(%s)", (row.schema,)))
    except psycopg.errors.DependentObjectsStillExist as error:
        raise Refused(f"{source.label}: schema {row.schema} is not dropped, because other objects depend on it\n  "
                      f"{(error.diag.message_detail or '').strip()}\n  Drop these objects first, or keep the "
                      "schema.") from None


def require_taker(move, row):
    """Raises Refused if the server that took over does not have its record of the take-over. A server that has lost the
    record may also have lost rows."""
    try:
        move.options.target = row.other
        move.open_target()
        there = move.target_row(row.fence_id)
    except (psycopg.Error, Refused) as error:
        raise Refused(f"schema {row.schema} is not dropped, because the server that took over, {row.other}, cannot be "
                      f"reached: {str(error).strip().splitlines()[0]}\n  If that server is permanently lost, these "
                      "may be the only rows. If you do not need the rows, run with --force.") from None
    if there is None or there.state != "here":
        raise Refused(f"schema {row.schema} is not dropped: {row.other} has no record of the take-over, for example "
                      "after a restore or a failover, and may lack rows\n  Compare the schema with the rows of shard "
                      f"{move.shard}. If you do not need the schema, run with --force.")
    if move.has_schema(move.target, move.schema):
        here, now = rows_of(move.source, row.schema), rows_of(move.target, move.schema)
        counts = (f"{name} {here[name]} and {now.get(name, 'no table')}" for name in sorted(here))
        say(f"rows of {row.schema} and of the target now: " + "; ".join(counts))
