"""The fence, and the moment at which the target takes over.

Before the COMMIT on the source everything is taken back by an end of the program. The fence is durable before the map says
so: a fence that a crash takes away would let those write here who have the old map.
"""
import json
import time
from secrets import token_hex

import psycopg
from psycopg import sql

from .copying import analyze, catch_up, is_level, standing_of, start_over, wait_for_copy
from .errors import Refused, complain, in_millis, say
from .ids import GREATEST_IDS, arguments, id_columns, observed_columns
from .session import LOCK_MS, lost

LOCK_MAP = "SELECT (SELECT m.server FROM snowflake_fleet.map_shard AS m WHERE m.shard = %s) FROM snowflake_fleet.map_state AS s FOR UPDATE"
MOVE = "SELECT pg_catalog.set_config('lock_timeout', '0', true), snowflake_fleet.move(%s, %s, %s)"
# The source's sequences and ids, set after the target has applied the rows: the commit makes both durable, on a synchronous standby as well.
SETTLE = """
WITH sequence AS (
  SELECT pg_catalog.setval(pg_catalog.format('%%I.%%I', %(schema)s::text, name), last, called)
    FROM pg_catalog.jsonb_to_recordset(%(sequences)s::jsonb) AS s (name text, last bigint, called boolean)
), observed AS (
  SELECT snowflake.observe(id) FROM pg_catalog.unnest(%(ids)s::bigint[]) AS id
)
UPDATE snowflake_fleet.moving SET state = 'level', changed = pg_catalog.clock_timestamp()
 WHERE shard = %(shard)s AND side = 'target' AND (SELECT count(*) FROM sequence) + (SELECT count(*) FROM observed) >= 0"""
GREATEST = f"SELECT pg_catalog.max(id) FROM ({GREATEST_IDS}) AS g"
# A table that somebody has taken out of the publication stands still on the target, and the marks arrive.
PUBLISHED = """
SELECT count(*) FROM snowflake_fleet.tables_of(%s) AS t
 WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_publication AS p JOIN pg_catalog.pg_publication_rel AS r ON r.prpubid = p.oid
                    WHERE pubname = %s AND pubinsert AND pubupdate AND pubdelete AND pubtruncate AND NOT pubviaroot AND prrelid = t AND prqual IS NULL AND prattrs IS NULL)"""


def rehearse(move, columns):
    """What is done while writers wait is done here before, and taken back: functions are compiled, statements are planned,
    catalogues are read, and what would fail fails."""
    rehearse_fence(move)
    for _ in range(2):
        move.source.value(GREATEST, columns)
        move.source.value("SELECT snowflake_fleet.is_altered(m) FROM snowflake_fleet.moving AS m WHERE schema = %s AND side = 'source'", (move.schema,))
        is_level(move, 1)
        move.target.begin()
        try:
            settle(move, "[]", None)
        finally:
            move.target.rollback()
        if move.control is not None:
            begin_control(move)
            ask_control(move)
            move.control.execute(MOVE, (move.shard, move.from_name, move.to_name))
            move.control.rollback()


# Nobody waits for it, and a busy server takes its time to compile what it runs for the first time.
REHEARSAL_MS = 30_000


def rehearse_fence(move):
    """On a schema of one table and one sequence, which nobody sees: PL/pgSQL compiles and plans what it runs for the first time."""
    source, name = move.source, f"{move.name}_rehearsal_{token_hex(4)}"    # nobody can have taken it
    source.begin()
    try:
        source.execute(sql.SQL("CREATE SCHEMA {0}; CREATE TABLE {0}.t (id bigint PRIMARY KEY); CREATE SEQUENCE {0}.s").format(sql.Identifier(name)))
        source.execute("INSERT INTO snowflake_fleet.moving (shard, schema, side, state, other, other_database, fingerprint, changed) "
                       "SELECT -1 - %s, %s, 'source', 'copying', '', '', snowflake_fleet.fingerprint(%s), '-infinity'", (move.shard, name, name))
        for _ in range(2):
            source.execute("SAVEPOINT once")
            source.value("SELECT snowflake_fleet.fence(%s, %s)", (name, REHEARSAL_MS))
            source.execute("ROLLBACK TO once")
    finally:
        source.rollback()


def begin_control(move):
    """What ask_control() need not do while writers wait."""
    if move.control is not None:
        move.control.rollback()
        # Writers may be waiting: what does not answer is given up soon.
        move.control.begin(seconds=10)
        move.control.execute("SELECT pg_catalog.set_config('lock_timeout', %s, true)", (str(move.options.lock_timeout),))


def ask_control(move):
    """The control database is alive, and nobody else changes the map until this session has."""
    if move.control is not None and (where := move.control.value(LOCK_MAP, (move.shard,))) != move.from_name:
        raise Refused(f"the map says now that shard {move.shard} is on server {where}")


class Busy(Exception):
    """Somebody holds what the target is to change while writers wait."""


def settle(move, sequences, greatest):
    """Within a transaction of the target's."""
    try:
        move.target.execute("SELECT pg_catalog.set_config('lock_timeout', %s, true)", (str(move.options.lock_timeout),))
        move.target.execute(SETTLE, {"schema": move.schema, "sequences": sequences, "ids": [] if greatest is None else [greatest], "shard": move.shard})
    except psycopg.errors.LockNotAvailable:
        raise Busy from None


def wait_for_target(move, and_writers):
    who = move.target.holders([move.schema, "snowflake", "snowflake_fleet"])
    say(f"what the target has to change is locked{and_writers}; waiting for " + ("; ".join(who) or "somebody who has gone since"))
    time.sleep(1)


def fence(move):
    """Returns when the writers began to wait, and the sequences. Those that are not done in time go on, and it is tried again."""
    source, options, attempt = move.source, move.options, 0
    tables = move.tables(source)
    while True:
        attempt, began = attempt + 1, None
        begin_control(move)
        source.begin(seconds=3600)
        try:
            # Vacuum has this one, and holds no writer up. Who has it waits for no writer either, perhaps for ever.
            source.execute("SELECT pg_catalog.set_config('lock_timeout', %s, true)", (str(LOCK_MS),))
            source.execute(sql.SQL("LOCK TABLE {} IN SHARE UPDATE EXCLUSIVE MODE").format(sql.SQL(", ").join(tables)))
            source.execute("SELECT pg_catalog.set_config('lock_timeout', '0', true)")
            began = time.monotonic()
            return began, source.value("SELECT snowflake_fleet.fence(%s, %s)", (move.schema, options.lock_timeout))
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            source.rollback()
            if attempt % 10 == 1:
                who = move.probe.holders([move.schema, "snowflake_fleet"])
                what = f"the writers were not done in {options.lock_timeout} ms" if began else f"no lock on the tables in {LOCK_MS} ms"
                say(f"{what}: attempt {attempt}; waiting for "
                    + ("; ".join(who) or "somebody who has gone since"))
            time.sleep(0.1 * min(attempt, 20))
        except BaseException:
            source.rollback()
            raise


def wait_behind_the_fence(move):
    """Writers are refused meanwhile: what keeps the target from becoming level is said."""
    until = time.monotonic() + 3600
    while not is_level(move, 5):
        if not move.has_slot():
            raise Refused("the slot is gone, as after a failover of the source, and the target may lack the last changes\n  Run with --abort, then again.")
        say(f"the target is not level: {standing_of(move)}")
        if time.monotonic() > until:
            raise Refused("the target has not become level within an hour\n  Run this again, or with --abort.")


def verify(move):
    """Counts and hashes of every table on both sides, while nobody writes. format() calls no cast, which may be somebody's."""
    for (name,) in move.source.rows("SELECT relname FROM pg_catalog.pg_class AS c JOIN snowflake_fleet.tables_of(%s) AS t ON c.oid = t WHERE relkind = 'r'", (move.schema,)):
        query = sql.SQL("SELECT count(*), coalesce(sum(pg_catalog.hashtextextended(pg_catalog.format('%s', snowflake_row.*), 0)), 0)::text FROM ONLY {} AS snowflake_row").format(
            sql.Identifier(move.schema, name))
        there = [session.row(query, seconds=7200) for session in (move.source, move.target)]
        if there[0] != there[1]:
            raise Refused(f"table {name} differs: {there[0][0]} rows with hash {there[0][1]} on the source, {there[1][0]} with {there[1][1]} on the target\n"
                          "  The target does not take over. Run with --abort, then again.")
    say("verified: the same rows on both sides")


def take_over(move):
    while True:
        row = move.source_row()
        fenced = row.state == "fenced"
        for session, side in ((move.source, "source"), (move.target, "target")):
            if session.value("SELECT snowflake_fleet.is_altered(m) FROM snowflake_fleet.moving AS m WHERE schema = %s AND side = %s", (move.schema, side)):
                raise Refused(f"schema {move.schema} of the {side} was altered since the move began\n  Run with --abort, then again.")
        columns = arguments(observed_columns(move, id_columns(move)))
        if move.source.value(PUBLISHED, (move.schema, move.name)) > 0:
            raise Refused(f"publication {move.name} was altered since the move began\n  Run with --abort, then again.")
        if fenced:
            say("the source is fenced already")
            move.stands = stands(move)
            began, sequences = time.monotonic(), row.sequences
            begin_control(move)
        else:
            try:
                rehearse(move, columns)
            except Busy:
                wait_for_target(move, "")
                continue
            except psycopg.errors.LockNotAvailable:
                if move.control is None:
                    raise
                wait_for_map(move)
                continue
            began, sequences = fence(move)
        try:
            if fenced:
                wait_behind_the_fence(move)
            elif not is_level(move, move.options.level_timeout / 1000):
                raise TimeoutError
            if move.options.verify:
                verify(move)
            greatest = move.source.value(GREATEST, columns)
            try:
                with move.target.transaction():
                    settle(move, json.dumps(sequences), greatest)
            except psycopg.Error as error:
                if error.diag.message_primary is None:
                    raise
                raise Refused("the target would mint below the ids that move there, or its sequences cannot be set\n  "
                              + str(error).strip()) from None
            ask_control(move)
            if not fenced:
                move.stands = "Whether the source is fenced is not known: run this again, or with --abort."
                move.source.commit()
                move.stands = stands(move)
        except TimeoutError:
            move.source.rollback()
            say(f"the target was not level within {move.options.level_timeout} ms: the writers go on, later again")
            if not move.has_slot():
                start_over(move)
                wait_for_copy(move)
                analyze(move)
            catch_up(move)
            continue
        except Busy:
            if not fenced:
                move.source.rollback()
            if move.control is not None:
                move.control.rollback()
            wait_for_target(move, "" if fenced else ": the writers go on, later again")
            continue
        except psycopg.errors.LockNotAvailable:
            if not fenced:
                move.source.rollback()
            if fenced or move.control is None:
                raise
            wait_for_map(move)
            continue
        except BaseException:
            if not fenced and move.stands == BEFORE_THE_FENCE:
                move.source.rollback()
            if move.control is not None:
                move.control.rollback()
            raise
        refused = time.monotonic()
        flip(move)
        move.stands = "The target has taken over: run this again to finish."
        end = time.monotonic()
        say(f"taken over, the fence took {in_millis(end - began)}: writers waited {in_millis(refused - began)}, then were refused for {in_millis(end - refused)}")
        return


def wait_for_map(move):
    """It is locked by somebody else."""
    move.control.rollback()
    say("somebody else changes the map: the writers go on, later again")
    time.sleep(1)


BEFORE_THE_FENCE = "The source takes writes as before: run this again to go on, or with --abort to take the move back."


def stands(move):
    return f"The source refuses writes to schema {move.schema}: run this again to go on, or with --abort to take the move back."


def flip(move):
    if move.control is None:
        move.set_state(move.target, "target", "here")
        return
    for attempt in (1, 2):
        sent = False
        try:
            move.control.execute(MOVE, (move.shard, move.from_name, move.to_name))
            sent = True
            move.control.commit()
            return
        except psycopg.Error as error:
            if not lost(error):
                move.control.rollback()
                lift(move)
                raise Refused(f"the map could not be changed, and the fence is lifted: {str(error).strip()}") from None
            complain(f"the control database is lost: {str(error).strip()}")
        if reconnected(move):
            # The session from before is gone: what the map says is what was committed.
            if move.map_says() == move.to_name:
                return
            if attempt == 1:
                begin_control(move)
                ask_control(move)
                continue
            lift(move)
            raise Refused("the map could not be changed, and the fence is lifted: run this again")
        if not sent:
            lift(move)
            raise Refused("the control database does not answer, and the fence is lifted: run this again when it does")
        raise Refused("the control database does not answer, and whether it has changed the map is not known")


def reconnected(move):
    until = time.monotonic() + move.options.wait
    while time.monotonic() < until:
        try:
            move.reconnect_control()
            return True
        except psycopg.Error:
            time.sleep(0.5)
    return False


def lift(move):
    """The writers go on at the source. Only where the map is known not to have changed."""
    move.source.patiently("lifting the fence", move.options.lock_timeout, lambda: move.source.execute("SELECT snowflake_fleet.unfence(%s)", (move.schema,)))
    move.stands = None
    say("the fence is lifted: the source takes writes")
