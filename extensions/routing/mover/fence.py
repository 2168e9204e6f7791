"""Makes the source refuse writes (the fence), and lets the target take over the shard.

If the program ends before the COMMIT on the source, the source is unchanged. The fence is durable before the map
changes. If a crash removed the fence after the map had changed, clients with an old map could write on the source."""
import json
import time
from secrets import token_hex

import psycopg
from psycopg import sql

from .check import SHARED, of_schema
from .copying import follow, is_level, require_slot
from .errors import Refused, complain, indented, say, words
from .session import lost

LOCK_MAP = """SELECT (SELECT m.server FROM snowflake_fleet.map_shard AS m WHERE m.shard = %s)
  FROM snowflake_fleet.map_state AS s FOR UPDATE"""
MOVE = "SELECT pg_catalog.set_config('lock_timeout', '0', true), snowflake_fleet.move(%s, %s, %s)"
FENCE = "SELECT snowflake_fleet.fence_shard(%s, %s, %s)"
TAKE_OVER = "SELECT snowflake_fleet.take_over(%s::jsonb, %s)"
RECORD_TAKE_OVER = """UPDATE snowflake_fleet.moving SET state = 'here', changed = pg_catalog.clock_timestamp()
  WHERE shard = %s AND side = 'target' AND state = 'level'"""
SNAPSHOT = """BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = 0;
  SET LOCAL idle_in_transaction_session_timeout = '600s'; SELECT 1"""
# The function rehearse() tests fence_shard(), which makes the source refuse writes, on a schema that exists only during
# the test.
REHEARSAL = "CREATE SCHEMA {0}; CREATE TABLE {0}.t (id bigint PRIMARY KEY); CREATE SEQUENCE {0}.s"
REHEARSED = """UPDATE snowflake_fleet.moving
  SET schema = %s, fingerprint = snowflake_fleet.fingerprint(%s), changed = '-infinity'
  WHERE shard = %s AND side = 'source' AND state = 'copying'"""
REHEARSAL_MS = 30_000     # how long a rehearsed fence_shard() may wait for locks, in ms, while writers continue
FENCED = "The source refuses writes. Run this command again to continue, or with --abort to cancel the move."
BEFORE_THE_FENCE = ("The source accepts writes as before. Run this command again to continue, or with --abort to "
                    "cancel the move.")


def rehearse(move):
    """Runs the statements for which writers will wait, and rolls them back. The rehearsal compiles functions, plans
    statements and reads the catalogue, so that writers wait for less time. Errors occur before writers wait. The
    program rehearses the fence on a schema that no other session sees."""
    source, name = move.source, f"{move.name}_rehearsal_{token_hex(4)}"
    source.begin()
    source.execute(sql.SQL(REHEARSAL).format(sql.Identifier(name)))
    source.execute(REHEARSED, (name, name, move.shard))
    for _ in range(2):
        source.execute("SAVEPOINT once")
        source.value(FENCE, (move.shard, None, REHEARSAL_MS))
        source.execute("ROLLBACK TO once")
    source.rollback()
    document = json.dumps({"id": "", "shard": move.shard, "schema": move.schema, "lsn": "0/0", "tables": [],
                           "sequences": []})
    for _ in range(2):
        if not is_level(move, 5):
            raise TimeoutError
        move.target.begin()
        move.target.execute(TAKE_OVER, (document, move.name))
        begin_control(move)
        ask_control(move)
        if move.control is not None:
            move.control.execute(MOVE, (move.shard, move.from_name, move.to_name))
        back(move)


def begin_control(move):
    """Begins the transaction on the control database, so that ask_control() needs less time while writers wait."""
    if move.control is not None:
        move.control.rollback()
        # Writers may be waiting, so the program waits at most 10 s for an answer of the control database.
        move.control.begin(seconds=10)
        move.control.set_local("lock_timeout", move.options.lock_timeout)


def ask_control(move):
    """Locks the map, so that no other session changes it before this session does. Raises an error if the control
    database does not answer, or if the map does not assign the shard to the source."""
    if move.control is not None and (where := move.control.value(LOCK_MAP, (move.shard,))) != move.from_name:
        raise Refused(f"in the shard map, shard {move.shard} is now on server {where}")


def begin_both(move):
    """Begins a transaction on source and target, locks the shared tables, and checks the schema again. If the program
    stops responding, timeouts of the servers end the transactions."""
    tables = [sql.SQL(name) for kind, name, _ in move.source.rows(SHARED, (move.schema,)) if kind == "table"]
    move.source.begin(seconds=30)
    move.source.execute("SELECT snowflake_fleet.lock_tables(%s)", (move.schema,))
    move.target.begin(seconds=30)
    for session in (move.source, move.target):
        session.set_local("lock_timeout", move.options.lock_timeout)
        if tables:
            session.execute(sql.SQL("LOCK TABLE ONLY {} IN SHARE MODE").format(sql.SQL(", ONLY ").join(tables)))
    found = of_schema(move)
    if found:
        raise Refused(f"the schema cannot be moved in its present state\n{indented(found)}\n  Correct this and run the "
                      "command again, or run it with --abort.")
    for session in (move.source, move.target):
        session.set_local("idle_in_transaction_session_timeout", move.options.level_timeout + 5000, seconds=30)


def fence(move):
    """Makes the target take over, and commits the fence on the source. Writers wait until the commit, and are then
    refused. Returns the time at which writers began to wait."""
    begin_control(move)
    begin_both(move)
    move.counting.execute("SELECT 1", seconds=5)    # sets statement_timeout now, while no writer waits
    document = move.source.value(FENCE, (move.shard, None, move.options.lock_timeout))
    began = time.monotonic() - float(document["ms"]) / 1000
    if not is_level(move, move.options.level_timeout / 1000):
        raise TimeoutError
    ask_control(move)
    try:
        move.target.execute(TAKE_OVER, (json.dumps(document), move.name))
    except psycopg.errors.LockNotAvailable:
        raise
    except psycopg.Error as error:
        if error.diag.message_primary is None:
            raise
        raise Refused(f"the target cannot take over\n  {words(error)}") from None
    move.target.commit()
    open_snapshot(move)
    move.stands = "The source may be fenced. Run this command again, or with --abort."
    move.source.commit()
    move.stands = FENCED
    return began


def open_snapshot(move):
    """Opens a snapshot of the target, which has the same rows as the source. The rows can then be counted later, while
    writers continue on the target."""
    move.counting.execute(SNAPSHOT, seconds=5)


def back(move):
    """Rolls back on all servers, so that writers continue on the source."""
    for session in (move.source, move.target, move.control):
        if session is not None:
            session.rollback()


def holders(move):
    schemas = [move.schema, "snowflake", "snowflake_fleet"]
    sessions = [session for session in (move.source, move.target, move.control) if session is not None]
    return "; ".join(who for session in sessions for who in session.holders(schemas)) or "a session that has ended"


def take_over(move):
    attempts = rehearsed = 0
    while True:
        try:
            if not rehearsed:
                rehearse(move)
                rehearsed = 1
            began = fence(move)
            break
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            back(move)
            if attempts % 10 == 0:
                say(f"writers or other locks did not end within {move.options.lock_timeout} ms: attempt "
                    f"{attempts + 1}; waiting for {holders(move)}")
            attempts += 1
            time.sleep(0.1 * min(attempts, 20))
        except TimeoutError:
            back(move)
            say(f"the target did not catch up within {move.options.level_timeout} ms: writers continue, and the fence "
                "is tried again later")
            require_slot(move)
            follow(move)
        except BaseException:
            if move.stands == BEFORE_THE_FENCE:
                back(move)
            raise
    refused = time.monotonic()
    flip(move)
    end = time.monotonic()
    stood, waited, closed = (f"{1000 * seconds:.1f} ms" for seconds in (end - began, refused - began, end - refused))
    say(f"the target has taken over, the fence took {stood}: writers waited {waited}, then were refused for {closed}")


def resume(move):
    """Continues a move whose source already refuses writes. If the target has a record of this fence, only the map must
    be changed."""
    move.stands = FENCED
    here = move.source_row()
    there = move.target_row(here.fence_id)
    if there is None or there.fence_id != here.fence_id:
        lift(move)
        raise Refused("the target has no record of the take-over, for example after a restore or a failover\n  Run "
                      "this command again: the copy starts again.")
    say("the source is already fenced")
    begin_control(move)
    ask_control(move)
    open_snapshot(move)
    flip(move)


def flip(move):
    if move.control is None:
        move.target.execute(RECORD_TAKE_OVER, (move.shard,))
        return
    sent = False
    try:
        move.control.execute(MOVE, (move.shard, move.from_name, move.to_name))
        sent = True
        return move.control.commit()
    except psycopg.Error as error:
        if not lost(error):
            move.control.rollback()
            lift(move)
            raise Refused(f"the map could not be changed, and the fence is removed: {words(error)}") from None
        complain(f"the connection to the control database is lost: {words(error)}")
    if reconnected(move):
        # reconnected() has waited until the lost session ended. The map of shards now shows whether the lost session
        # committed the move.
        if move.map_says() == move.to_name:
            return
    elif sent:
        raise Refused("the control database does not answer, and may have changed the map")
    lift(move)
    raise Refused("the control database did not change the map, and the fence is removed: run this command again")


def reconnected(move):
    until = time.monotonic() + move.options.wait
    while time.monotonic() < until:
        try:
            move.control.close()
            move.open_control()
            return True
        except psycopg.Error:
            time.sleep(0.5)
    return False


def lift(move):
    """Removes the fence, so that writers continue on the source. Call lift() only if it is certain that the map has not
    changed."""
    move.source.patiently("removing the fence", move.options.lock_timeout, lambda: move.source.execute(
        "SELECT snowflake_fleet.release_shard(%s)", (move.shard,)))
    move.stands = None
    say("the fence is removed, and the source accepts writes")
