"""The steps before the fence: a place among the target's subscriptions, the slot, the schema, the rows."""
import time

import psycopg
from psycopg import sql

from .check import WHEREABOUTS, check, of_premade, of_settings
from .definition import called_as_superuser, description, differences, dump_of, run_script
from .errors import Refused, in_bytes, say
from .session import LOCK_MS, WHO

PROGRESS = """
SELECT count(*) FILTER (WHERE srsubstate IN ('r', 's') AND srrelid <> 'snowflake_fleet.move_mark'::pg_catalog.regclass) AS ready,
       count(*) FILTER (WHERE srrelid <> 'snowflake_fleet.move_mark'::pg_catalog.regclass) AS tables,
       (SELECT coalesce(sum(bytes_processed), 0)::bigint FROM pg_catalog.pg_stat_progress_copy AS p
         WHERE datname = pg_catalog.current_database() AND p.relid IN (SELECT srrelid FROM pg_catalog.pg_subscription_rel WHERE srsubid = s.oid)),
       (SELECT coalesce(sum(pg_catalog.pg_relation_size(srrelid)), 0)::bigint FROM pg_catalog.pg_subscription_rel
         WHERE srsubid = s.oid),
       (SELECT coalesce(sum(apply_error_count + sync_error_count), 0) FROM pg_catalog.pg_stat_subscription_stats WHERE subid = s.oid),
       coalesce(bool_and(srsubstate IN ('r', 's')), false),
       (SELECT count(*) FROM pg_catalog.pg_stat_subscription WHERE subid = s.oid AND pid IS NOT NULL)
  FROM pg_catalog.pg_subscription AS s LEFT JOIN pg_catalog.pg_subscription_rel ON srsubid = s.oid
 WHERE subname = %s AND subdbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) GROUP BY s.oid"""
# By the names of the slots from which they are to go on.
COPIED = """SELECT pg_catalog.format('pg_%%s_sync_%%s_%%s', srsubid, srrelid, (SELECT system_identifier FROM pg_catalog.pg_control_system()))
  FROM pg_catalog.pg_subscription_rel JOIN pg_catalog.pg_subscription AS s ON s.oid = srsubid
 WHERE subname = %s AND subdbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) AND srsubstate = 'f'"""
BLOCKERS = f"""SELECT DISTINCT {WHO}
  FROM pg_catalog.pg_stat_subscription AS s CROSS JOIN pg_catalog.unnest(pg_catalog.pg_blocking_pids(s.pid)) AS blocking LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = blocking
 WHERE s.subname = %s AND s.pid IS NOT NULL LIMIT 5"""
FORGOTTEN = 10        # seconds that a slot is gone and the note has not come
# Of statements that have ended; prepared transactions hold theirs.
OLD_NOTES = """DELETE FROM snowflake_fleet.move_note WHERE (pid, at, transaction) IN (
  SELECT pid, at, transaction FROM snowflake_fleet.move_note WHERE at < pg_catalog.clock_timestamp() - interval '1 day' FOR UPDATE SKIP LOCKED)"""
FIRES = """SELECT pg_catalog.quote_ident(tgname), tgrelid::pg_catalog.regclass::text FROM pg_catalog.pg_trigger
 WHERE tgrelid IN (SELECT t FROM snowflake_fleet.tables_of(%s) AS t) AND tgenabled NOT IN ('O', 'D')"""
# Those who have begun to write, anywhere on the server: a slot begins when they have ended.
WRITERS = """
SELECT format('process %%s (%%s of database %%s, since %%s)', pid, usename, datname, date_trunc('second', xact_start))
  FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> ALL (%s) AND backend_type <> 'walsender'
UNION ALL SELECT format('prepared transaction %%s of database %%s', gid, database) FROM pg_catalog.pg_prepared_xacts"""


def begin(move):
    """From here on DDL on the schema is refused. The row of the target takes a place among its subscriptions."""
    if move.target_row() is None:
        reserve(move)
    row, there = move.source_row(), move.target_row()
    # What was copied for a slot that is gone lacks all that came since: taken back while the target was away, or a source
    # that was restored.
    if there.state != "reserved" and (row is None or row.state == "begun"):
        raise Refused("the target has rows of a move that the source knows no more, and may lack changes\n  Run with --abort, then again.")
    if row is None:
        with move.source.transaction():
            move.source.execute("INSERT INTO snowflake_fleet.moving (shard, schema, side, state, other, other_database, fingerprint) "
                                "VALUES (%s, %s, 'source', 'begun', %s, %s, snowflake_fleet.fingerprint(%s))",
                                (move.shard, move.schema, move.to_name, move.target_database, move.schema))


def reserve(move):
    """One subscription less than there are workers: the last worker copies, for each of them in its turn."""
    target, said = move.target, False
    while True:
        with target.transaction():
            # The catalogue is the server's, so this is one at a time over all its databases.
            target.execute("LOCK TABLE pg_catalog.pg_subscription IN SHARE ROW EXCLUSIVE MODE")
            workers, used, who = target.row(
                "SELECT pg_catalog.current_setting('max_logical_replication_workers')::int, count(*), string_agg(subname, ', ') FROM pg_catalog.pg_subscription "
                "WHERE subenabled OR subname ~ '^snowflake_move_[0-9]+$'")
            if used + 2 <= workers:
                target.execute(sql.SQL("CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {} WITH (connect = false, slot_name = {}, synchronous_commit = 'off', streaming = off)").format(
                    sql.Identifier(move.name), sql.Literal(move.source_for_target), sql.Identifier(move.name), sql.Literal(move.slot)))
                target.execute(f"INSERT INTO snowflake_fleet.moving (shard, schema, side, state, other, other_database, whereabouts) SELECT %s, %s, 'target', 'reserved', %s, %s, ({WHEREABOUTS})",
                               (move.shard, move.schema, move.from_name, move.source_database))
                return
        if not said:
            say(f"the target has {workers} workers for subscriptions, and {used} are taken ({who}): waiting until one ends")
            said = True
        time.sleep(0.5)


def refuse_old_snapshots(session):
    """From here on the guard refuses DDL in snapshots that do not see what the caller has committed."""
    with session.transaction():
        session.execute("LOCK TABLE snowflake_fleet.moving IN SHARE UPDATE EXCLUSIVE MODE")    # one move at a time
        boundary = session.value("SELECT pg_catalog.pg_current_xact_id()::text")
        session.execute(sql.SQL("CREATE OR REPLACE FUNCTION snowflake_fleet.move_boundary() RETURNS pg_catalog.xid8 LANGUAGE plpgsql STABLE AS {}").format(
            sql.Literal(f"BEGIN RETURN '{int(boundary)}'; END")))


def wait_for_transactions(session, writers):
    """What began before now does not see that the schema moves, and its DDL is not refused. Twice in a row nobody: a snapshot
    is handed on while both have it, and the activity of all is not read at one moment."""
    refuse_old_snapshots(session)
    boundary = session.value("SELECT pg_catalog.pg_current_xact_id()::text")    # all that were given away before are less
    clear, began = 0, time.monotonic()
    said = began - 3
    while clear < 2:
        older = [who for who, in session.rows("SELECT * FROM snowflake_fleet.older_transactions(%s::text::xid8, %s)", (boundary, writers))]
        clear = 0 if older else clear + 1
        now = time.monotonic()
        if older and now - said > 5:
            said = now
            say(f"{session.label}: waiting for transactions from before the move, {now - began:.0f} s: " + "; ".join(older[:5]))
        if clear < 2:
            time.sleep(0.01 if now - began < 1 else 0.2)


def make_slot(move):
    """A slot waits for all transactions that have begun to write, which may be older than the row that refuses DDL."""
    source, probe = move.source, move.probe
    probe.execute("SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots WHERE slot_name = %s AND NOT active", (move.slot,))
    say("the source makes a slot")
    source.send(f"SELECT pg_catalog.pg_create_logical_replication_slot('{move.slot}', 'pgoutput')")
    mine = [source.connection.info.backend_pid, probe.connection.info.backend_pid]
    began = said = time.monotonic()
    while not source.done():
        now = time.monotonic()
        if now - said > 5:
            said = now
            writers = [who for who, in probe.rows(WRITERS, (mine,))]
            say(f"waiting for transactions that have written, {now - began:.0f} s: " + ("; ".join(writers[:5]) or "none that is known"))
        time.sleep(0.01 if now - began < 1 else 0.1)
    source.limit = None


def published(move):
    return sql.SQL("TABLE {}, snowflake_fleet.move_mark WHERE (shard = {})").format(
        sql.SQL(", ").join(move.tables(move.source)), sql.Literal(move.shard))


def define(move):
    """The schema's fingerprint and the statements that make it, once nobody alters it any more."""
    source = move.source
    wait_for_transactions(source, False)    # for writers the slot waits
    # What the slot decodes is published by the catalogues of that time, so the publication comes first.
    with source.transaction():
        source.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(move.name)))
        source.execute("DELETE FROM snowflake_fleet.move_mark WHERE shard = %s", (move.shard,))
        source.execute(sql.SQL("CREATE PUBLICATION {} FOR {}").format(sql.Identifier(move.name), published(move)))
    make_slot(move)
    check(move, False)    # what was committed since the first look
    before = source.value("SELECT snowflake_fleet.fingerprint(%s)", (move.schema,))
    script = dump_of(move)
    with source.transaction():
        # With the tables of transactions that the slot has waited for.
        source.execute(sql.SQL("ALTER PUBLICATION {} SET {}").format(sql.Identifier(move.name), published(move)))
        source.execute("UPDATE snowflake_fleet.moving SET state = 'copying', fingerprint = snowflake_fleet.fingerprint(schema), definition = %s, "
                       "changed = pg_catalog.clock_timestamp() WHERE shard = %s AND side = 'source' AND state = 'begun'", (script, move.shard))
        if source.value("SELECT fingerprint FROM snowflake_fleet.moving WHERE shard = %s AND side = 'source' AND state = 'copying'", (move.shard,)) != before:
            raise Refused("the schema was altered while it was dumped\n  Run this again.")


def make_schema(move):
    """In one transaction with the note that it was made: a program that is killed leaves both or neither."""
    target, row = move.target, move.target_row()
    if row.state != "reserved":
        return
    made = not move.has_schema(target)
    with target.transaction():
        if made:
            say(f"schema {move.schema}: made on the target")
            try:
                run_script(move, move.source_row().definition)
            except psycopg.Error as error:
                if error.diag.message_primary is None:
                    raise
                raise Refused(f"the schema could not be made on the target, nothing is changed there\n  {str(error).strip()}\n"
                              "  Run with --abort, and again when that is mended.") from None
            found = differences(description(move, move.source, False), description(move, target, False))
            if found:
                raise Refused("the schema that was made on the target is not as the source's (default privileges of the target, perhaps)\n"
                              + "\n".join(f"  {line}" for line in found) + "\n  Run with --abort, and again when that is mended.")
        else:
            take_as_it_is(move)
        target.execute("UPDATE snowflake_fleet.moving SET state = 'arriving', made = %s, fingerprint = snowflake_fleet.fingerprint(schema), changed = pg_catalog.clock_timestamp() "
                       "WHERE shard = %s AND side = 'target'", (made, move.shard))
        # What is not there now, the fingerprint has not.
        found = called_as_superuser(move)
        if found:
            raise Refused("the schema on the target is not as the source's\n" + "\n".join(f"  {line}" for line in found) + "\n  Run with --abort, and again when that is mended.")


def take_as_it_is(move):
    """A schema that is there, perhaps since a moment ago. Whoever owns its tables cannot write to them or make triggers
    before the caller's transaction has ended, and from then on the guard refuses it."""
    found = list(of_premade(move, move.source_row().definition))
    if found:
        raise Refused("the schema that is on the target is not taken\n" + "\n".join(f"  {line}" for line in found) + "\n  Then run this again.")


def subscribe(move):
    """Idempotent: what is subscribed already goes on."""
    name, target = sql.Identifier(move.name), move.target
    if not move.has_subscription():
        raise Refused(f"the target has no subscription {move.name} any more\n  Run with --abort, then again.")
    target.execute(sql.SQL("ALTER SUBSCRIPTION {} CONNECTION {}").format(name, sql.Literal(move.source_for_target)))
    if not target.value("SELECT subenabled FROM pg_catalog.pg_subscription WHERE subname = %s AND subdbid = "
                        "(SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())", (move.name,)):
        # Not before anybody can have made a trigger that the guard did not see.
        wait_for_transactions(target, True)
        found = list(of_settings(move))    # since the first look
        if found:
            raise Refused("the rows are not copied\n" + "\n".join(f"  {line}" for line in found))
        if target.value("SELECT snowflake_fleet.is_altered(m) FROM snowflake_fleet.moving AS m WHERE shard = %s AND side = 'target'", (move.shard,)):
            raise Refused(f"schema {move.schema} was altered on the target\n  Run with --abort, then again.")
        say("the target subscribes")
        target.execute(sql.SQL("ALTER SUBSCRIPTION {} ENABLE").format(name))
    refresh(move)


def refresh(move):
    """Not within a transaction, so the limit for locks is the session's. Other moves to this target wait behind an attempt."""
    target, attempt = move.target, 0
    while True:
        attempt += 1
        target.execute("SELECT pg_catalog.set_config('lock_timeout', %s, false)", (str(LOCK_MS),))
        try:
            return target.execute(sql.SQL("ALTER SUBSCRIPTION {} REFRESH PUBLICATION").format(sql.Identifier(move.name)), seconds=120)
        except psycopg.errors.LockNotAvailable:
            say(f"tables of the target are locked, attempt {attempt}: waiting for " + ("; ".join(target.holders([move.schema])) or "somebody who has gone since"))
        finally:
            if not target.connection.broken:
                target.execute("SELECT pg_catalog.set_config('lock_timeout', '0', false)")
        time.sleep(1)


def empty_tables(move):
    """On the target, within the caller's transaction. The tables' owners have triggers, which would fire as this superuser:
    those that fire in replication as well are not run."""
    move.target.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.SQL(", ").join(move.tables(move.target))))
    found = move.target.rows(FIRES, (move.schema,))
    if found:
        raise Refused("the target's tables are not emptied, for a trigger would run\n" + "\n".join(
            f"  Trigger {trigger} of table {table} is ENABLE ALWAYS or REPLICA: ALTER TABLE ... ENABLE TRIGGER." for trigger, table in found))
    move.target.execute("SELECT pg_catalog.set_config('session_replication_role', 'replica', true)")
    # ONLY: heirs are not of the move. Of a partitioned table the partitions are.
    move.target.execute(sql.SQL("TRUNCATE {}").format(sql.SQL(", ").join(
        table if partitioned else sql.SQL("ONLY {}").format(table) for table, partitioned in move.tables_by_kind(move.target))))
    move.target.execute("SELECT pg_catalog.set_config('session_replication_role', 'origin', true)")


def start_over(move, why="the slot is gone, as after a failover of the source"):
    """What was copied is thrown away."""
    say(f"{why}: the copy starts over")
    forget_subscription(move)
    if move.has_schema(move.target):
        with move.target.transaction():
            empty_tables(move)
            move.target.execute("DELETE FROM snowflake_fleet.move_mark WHERE shard = %s", (move.shard,))
    with move.target.transaction():
        move.target.execute(sql.SQL("CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {} WITH (connect = false, slot_name = {}, synchronous_commit = 'off', streaming = off)").format(
            sql.Identifier(move.name), sql.Literal(move.source_for_target), sql.Identifier(move.name), sql.Literal(move.slot)))
    forget_slots(move)
    make_slot(move)
    subscribe(move)


def forget_subscription(move):
    if not move.has_subscription():
        return
    name = sql.Identifier(move.name)
    # Without its slot, which is the source's and is dropped there: this must not depend on the source.
    move.target.execute(sql.SQL("ALTER SUBSCRIPTION {} DISABLE").format(name))
    move.target.execute(sql.SQL("ALTER SUBSCRIPTION {} SET (slot_name = NONE)").format(name))
    until = time.monotonic() + 60
    while True:
        try:
            move.target.execute(sql.SQL("DROP SUBSCRIPTION {}").format(name), seconds=120)
            return
        except psycopg.errors.DeadlockDetected:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def forget_slots(move):
    """The slot, and those of tables whose copy was cut off."""
    until = time.monotonic() + 60
    pattern = f"^{move.slot}$"
    while True:
        left = move.source.rows("SELECT slot_name, active_pid FROM pg_catalog.pg_replication_slots WHERE slot_name ~ %s AND database = pg_catalog.current_database()", (pattern,))
        if not left:
            return
        for slot, pid in left:
            if pid is not None:    # the walsender of a target that is gone without a word
                move.source.execute("SELECT pg_catalog.pg_terminate_backend(%s)", (pid,))
                continue
            try:
                move.source.execute("SELECT pg_catalog.pg_drop_replication_slot(%s)", (slot,))
            except (psycopg.errors.UndefinedObject, psycopg.errors.ObjectInUse):
                pass
        if time.monotonic() > until:
            raise Refused(f"the source's slot {move.slot} is in use, and does not come free")
        time.sleep(0.05)


def forget_publication(move, sessions=None):
    move.source.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(move.name)))
    for session in sessions or [move.source, move.target]:
        session.execute("DELETE FROM snowflake_fleet.move_mark WHERE shard = %s", (move.shard,))
        session.execute(OLD_NOTES)


def has_forgotten(move, missing):
    """Whether the target lacks the note that a table was copied, which it had not flushed when it crashed; the table's slot on
    the source was dropped by then, and its worker would ask for that without end. The slot goes just before the note is
    committed, or after: lost is a note that does not come."""
    copied = {slot for slot, in move.target.rows(COPIED, (move.name,))}
    slots = {slot for slot, in move.source.rows("SELECT slot_name::text FROM pg_catalog.pg_replication_slots")} if copied else set()
    now = time.monotonic()
    missing.update({slot: missing.get(slot, now) for slot in copied - slots})
    for slot in missing.keys() - (copied - slots):
        del missing[slot]
    return any(now - since > FORGOTTEN for since in missing.values())


def wait_for_copy(move):
    total = move.source.value("SELECT sum(pg_catalog.pg_relation_size(t) + pg_catalog.pg_relation_size(nullif(reltoastrelid, 0))) "
                              "FROM snowflake_fleet.tables_of(%s) AS t JOIN pg_catalog.pg_class AS c ON c.oid = t", (move.schema,)) or 0
    began, said, rounds, first, idle, missing = time.monotonic(), "", 0, None, None, {}
    while True:
        if not move.has_slot():
            start_over(move)
            first = None
        elif has_forgotten(move, missing):
            start_over(move, "the target has forgotten that it copied a table, as after a crash")
            first, missing = None, {}
        row = move.target.row(PROGRESS, (move.name,))
        if row is None:
            raise Refused(f"the target has no subscription {move.name} any more\n  Run with --abort, then again.")
        ready, tables, _, size, errors, done, workers = row
        now = time.monotonic()
        if first is None:
            first = (now, size)
        text = f"copying: {ready} of {tables} tables, {in_bytes(size)} of about {in_bytes(max(int(total), size))}"
        if now - first[0] > 2 and size > first[1]:
            rate = (size - first[1]) / (now - first[0])
            text += f", {in_bytes(rate)}/s, {max(0, (int(total) - size)) / rate:.0f} s to go"
        if errors:
            text += f"; {errors} errors, which the target's log explains"
        idle = (idle or now) if workers == 0 else None
        if idle and now - idle > 3:
            text += "; no worker runs for it: the target's max_logical_replication_workers or max_worker_processes are used up, or the source does not answer it"
        interval = 1 if now - began < 10 else 10
        if rounds == 0 or now - said_at >= interval:
            text += waits_for(move)
        if done or (rounds == 0 or now - said_at >= interval) and text != said:
            say(text)
            said, said_at = text, now
        elif rounds == 0:
            said_at = now
        if done:
            return
        rounds += 1
        time.sleep(0.05 if rounds < 50 else 0.5)


def waits_for(move):
    """Whom the subscription's workers wait for, as an ending of a sentence."""
    who = [holder for holder, in move.target.rows(BLOCKERS, (move.name,))]
    return f"; waiting for {'; '.join(who)}" if who else ""


def lag(move):
    return move.source.value("SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), confirmed_flush_lsn) FROM pg_catalog.pg_replication_slots "
                             "WHERE slot_name = %s", (move.slot,)) or 0


def is_level(move, seconds):
    """Whether the target commits within so many seconds what the source has committed until now."""
    until = time.monotonic() + seconds
    number = move.probe.value("INSERT INTO snowflake_fleet.move_mark SELECT %s, coalesce(max(number), 0) + 1 FROM snowflake_fleet.move_mark WHERE shard = %s RETURNING number",
                              (move.shard, move.shard))
    while not move.target.value("SELECT EXISTS (SELECT FROM snowflake_fleet.move_mark WHERE shard = %s AND number = %s)", (move.shard, number)):
        if time.monotonic() > until:
            return False
        time.sleep(0.0005)
    return True


def standing_of(move):
    """How far behind the subscription is, and what ails it."""
    row = move.target.row(PROGRESS, (move.name,))
    if row is None:
        raise Refused(f"the target has no subscription {move.name} any more\n  Run with --abort, then again.")
    errors, workers = row[4], row[6]
    return (f"{in_bytes(float(lag(move)))} behind" + (f"; {errors} errors, which the target's log explains" if errors else "")
            + ("; no worker runs for it: the subscription is disabled, or workers are used up, or the source does not answer" if workers == 0 else waits_for(move)))


def catch_up(move):
    """Until a mark arrives soon after it was made."""
    level = move.options.level_timeout / 1000
    said, behind = time.monotonic(), None
    while True:
        if not move.has_slot():
            start_over(move)
            wait_for_copy(move)
        began = time.monotonic()
        if is_level(move, 0.5 * level) and time.monotonic() - began < 0.1 + 0.1 * level:
            return
        if time.monotonic() - said > 5 or behind is None:
            now_behind = lag(move)
            errors = move.target.row(PROGRESS, (move.name,))[4]
            say(f"catching up: {in_bytes(float(now_behind))} behind" + (
                f", {in_bytes(float(behind - now_behind) / max(1, time.monotonic() - said))}/s less" if behind is not None and behind > now_behind else "")
                + (f"; {errors} errors, which the target's log explains" if errors else "") + waits_for(move))
            said, behind = time.monotonic(), now_behind
        time.sleep(0.2)


def analyze(move):
    """Plans on the target are not guesses from the first query on."""
    for table in move.tables(move.target):
        try:
            with move.target.transaction():
                move.target.execute("SELECT pg_catalog.set_config('lock_timeout', %s, true)", (str(LOCK_MS),), seconds=3600)
                move.target.execute(sql.SQL("ANALYZE {}").format(table))
        except psycopg.errors.LockNotAvailable:
            say(f"table {table.as_string(move.target.connection)} of the target is not analyzed, for it is locked: run ANALYZE when the move has ended")


def copy(move):
    begin(move)
    if move.source_row().state == "begun":
        define(move)
    make_schema(move)
    if not move.has_slot():
        start_over(move)
    else:
        subscribe(move)
    wait_for_copy(move)
    analyze(move)
    catch_up(move)
