"""The steps of a move before writes are refused (the fence): reserve a worker for the subscription, create the
replication slot and the schema, and copy the rows."""
import time

import psycopg
from psycopg import sql

from .check import refusals
from .errors import Refused, Stale, indented, say
from .endpoints import database_of
from .session import LOCK_MS

# SUBSCRIPTION is a condition for queries of "pg_subscription AS s". The condition selects the subscription that copies
# the moving shard.
SUBSCRIPTION = """s.subname = %s
  AND s.subdbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())"""
IS_ENABLED = f"SELECT subenabled FROM pg_catalog.pg_subscription AS s WHERE {SUBSCRIPTION}"
PROGRESS = f"""
SELECT count(*) FILTER (WHERE srsubstate IN ('r', 's')), count(*),
       (SELECT coalesce(sum(pg_catalog.pg_relation_size(srrelid)), 0)::bigint
          FROM pg_catalog.pg_subscription_rel WHERE srsubid = s.oid),
       (SELECT coalesce(sum(apply_error_count + sync_error_count), 0)
          FROM pg_catalog.pg_stat_subscription_stats WHERE subid = s.oid),
       coalesce(bool_and(srsubstate = 'r'), false),
       (SELECT count(*) FROM pg_catalog.pg_stat_subscription WHERE subid = s.oid AND pid IS NOT NULL),
       (SELECT coalesce(max(pg_catalog.pg_wal_lsn_diff(latest_end_lsn, '0/0')), 0)
          FROM pg_catalog.pg_stat_subscription WHERE subid = s.oid)
  FROM pg_catalog.pg_subscription AS s LEFT JOIN pg_catalog.pg_subscription_rel ON srsubid = s.oid
 WHERE {SUBSCRIPTION} GROUP BY s.oid"""
BEHIND = """SELECT pg_catalog.pg_size_pretty(
    pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), confirmed_flush_lsn))
  FROM pg_catalog.pg_replication_slots WHERE slot_name = %s"""
DROP_SLOT = """SELECT pg_catalog.pg_drop_replication_slot(slot_name)
  FROM pg_catalog.pg_replication_slots WHERE slot_name = %s AND NOT active"""
# Returns why a table of the subscription is not ready yet.
UNREADY = f"""
SELECT pg_catalog.concat_ws(' ', 'table', srrelid::pg_catalog.regclass, CASE WHEN w.pid IS NOT NULL THEN 'is copied'
         ELSE pg_catalog.format('has not begun: no worker copies it (max_sync_workers_per_subscription = %%s)',
                                pg_catalog.current_setting('max_sync_workers_per_subscription')) END,
         'and waits for ' || a.wait_event)
  FROM pg_catalog.pg_subscription AS s JOIN pg_catalog.pg_subscription_rel ON srsubid = s.oid
  LEFT JOIN pg_catalog.pg_stat_subscription AS w ON w.subid = s.oid AND w.relid = srrelid
  LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = w.pid
 WHERE {SUBSCRIPTION} AND srsubstate NOT IN ('r', 's') ORDER BY 1 LIMIT 3"""
# Lists the transactions that have begun to write, in all databases of the server. PostgreSQL creates a replication slot
# only after all transactions with writes have ended.
WRITERS = """
SELECT format('process %s (%s of database %s, since %s)', pid, usename, datname, date_trunc('second', xact_start))
  FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL AND backend_type <> 'walsender'
UNION ALL SELECT format('prepared transaction %s of database %s', gid, database) FROM pg_catalog.pg_prepared_xacts"""
USED_WORKERS = """SELECT pg_catalog.current_setting('max_logical_replication_workers')::int, count(*),
    string_agg(subname, ', ')
  FROM pg_catalog.pg_subscription WHERE subenabled OR subname ~ '^snowflake_move_[0-9]+$'"""
RECORD_SOURCE = """INSERT INTO snowflake_fleet.moving
    (shard, schema, side, state, other, other_identity, slots, fingerprint)
  VALUES (%s, %s, 'source', 'copying', %s, %s, %s, %s)"""
RECORD_TARGET = """INSERT INTO snowflake_fleet.moving
    (shard, schema, side, state, other, other_identity, role, statements)
  VALUES (%s, %s, 'target', 'arriving', %s, %s, %s, %s)"""
# CREATE SUBSCRIPTION warns that the publication does not exist yet.
CREATE_SUBSCRIPTION = """CREATE SUBSCRIPTION {subscription} CONNECTION {conninfo} PUBLICATION {subscription}
  WITH (enabled = false, create_slot = false, slot_name = {slot}, synchronous_commit = 'off', streaming = off{more})"""
# With a connection limit of 0, clients cannot connect as the role. The connection limit does not count background
# workers.
CREATE_ROLE = "CREATE ROLE {role} LOGIN CONNECTION LIMIT 0 PASSWORD NULL"
GIVE_SUBSCRIPTION = """ALTER ROLE {role} SUPERUSER; ALTER SUBSCRIPTION {subscription} OWNER TO {role};
  ALTER ROLE {role} NOSUPERUSER"""
# Settings of the role that runs the apply workers of logical replication.
APPLY = {"array_nulls": "on", "xmloption": "content", "default_transaction_read_only": "off", "lock_timeout": "0",
         "row_security": "off"}
STALLED = 10          # seconds without progress, after which the program reports the cause


def is_enabled(move):
    return move.target.value(IS_ENABLED, (move.name,))


def believe(move):
    """Raises Stale if the program cannot continue with the existing copy. For example, a server that was restarted may
    have been restored from a backup."""
    here, there = move.source_row(), move.target_row()
    if here is None and there is None:
        return
    if here is None and is_enabled(move):
        raise Refused("the target has rows of a move that the source has not recorded, and these rows may be the only "
                      "ones\n  To delete these rows, run with --abort. Then run the move again.")
    if here is None or there is None:
        raise Stale("the move has not begun on both servers")
    if here.other_identity != move.target_identity or there.other_identity != move.source_identity:
        side = "source" if there.other_identity != move.source_identity else "target"
        raise Stale(f"the {side} was restarted, promoted or restored after the copy began")
    if there.state == "level":
        raise Stale("the target is prepared for the take-over, but the source is not fenced")
    require_slot(move)


def require_slot(move):
    if not move.has_slot():
        raise Stale("the replication slot does not exist any more, for example after a failover")


def begin(move):
    """Records the move on source and target, each with the identity of the other server. After this step, DDL on the
    schema is refused."""
    system, _ = database_of(move.target_identity)
    fingerprint = move.source.value("SELECT snowflake_fleet.fingerprint(%s)", (move.schema,))
    while not try_to_reserve(move):
        time.sleep(0.5)
    say(f"created schema {move.schema} on the target")
    subscription = move.target.value(f"SELECT oid FROM pg_catalog.pg_subscription AS s WHERE {SUBSCRIPTION}",
                                     (move.name,))
    slots = f"^({move.slot}|pg_{subscription}_sync_[0-9]+_{system})$"

    def insert():
        # Locking the tables waits for open transactions that have run DDL on the tables.
        move.source.execute("SELECT snowflake_fleet.lock_tables(%s)", (move.schema,))
        move.source.execute(RECORD_SOURCE, (move.shard, move.schema, move.to_name, move.target_identity, slots,
                                            fingerprint))
    move.source.patiently("recording the move", LOCK_MS, insert)
    make_slot(move)
    if move.is_altered():
        raise Stale("the schema was altered while it was created on the target")


def try_to_reserve(move):
    """Calls reserve() if the target has at least two free workers for subscriptions, and returns whether it has. One
    worker stays free to copy the tables of all subscriptions in turn."""
    target = move.target
    with target.transaction():
        # The lock prevents two moves from counting the same free workers for subscriptions. All databases of the server
        # share pg_subscription.
        target.execute("LOCK TABLE pg_catalog.pg_subscription IN SHARE ROW EXCLUSIVE MODE")
        workers, used, who = target.row(USED_WORKERS)
        if used + 2 <= workers:
            reserve(move)
            return True
    if not move.waits:
        move.waits = True
        say(f"the target has {workers} workers for subscriptions, and {used} are used ({who}): waiting until one ends")
    return False


def apply_settings(target):
    yield from APPLY.items()
    yield "client_encoding", target.value("SHOW server_encoding")
    if target.version >= 170000:
        yield "transaction_timeout", "0"


def reserve(move):
    """Creates the disabled subscription and the schema on the target, in the caller's transaction. The role of the move
    owns both until the target takes over, so that no superuser applies rows. The role is a superuser only while it
    becomes the owner of the subscription, because PostgreSQL 15 requires a superuser."""
    target, role = move.target, f"snowflake_move_{database_of(move.target_identity)[1]}_{move.shard}"
    statements = move.source.rows("SELECT step, statement FROM snowflake_fleet.statements_of(%s, %s)",
                                  (move.schema, move.shard))
    needs = move.source.column("SELECT * FROM snowflake_fleet.needs_of(%s)", (move.schema,))
    first = [statement for step, statement in statements if step < 6]
    last = [statement for step, statement in statements if step >= 6]
    parts = {"subscription": sql.Identifier(move.name), "role": sql.Identifier(role), "slot": sql.Literal(move.slot),
             "conninfo": sql.Literal(move.source_for_target), "database": sql.Identifier(target.connection.info.dbname),
             "more": sql.SQL(", password_required = false" if target.version >= 160000 else "")}

    def run(statement, **more):
        target.execute(sql.SQL(statement).format(**parts, **more))
    try:
        run(CREATE_SUBSCRIPTION)
        run(CREATE_ROLE)
        target.execute("SELECT snowflake_fleet.make_schema(%s, %s, %s::text[], %s)",
                       (move.schema, role, needs, first), seconds=600)
        run(GIVE_SUBSCRIPTION)
        for name, value in apply_settings(target):
            run("ALTER ROLE {role} IN DATABASE {database} SET {name} = {value}", name=sql.Identifier(name),
                value=sql.Literal(value))
        target.execute(RECORD_TARGET, (move.shard, move.schema, move.from_name, move.source_identity, role, last))
    except psycopg.Error as error:
        if error.diag.message_primary is None:
            raise
        raise Refused("the target could not be prepared, and nothing was changed: "
                      f"{error.diag.message_primary.strip()}\n  If the target cannot connect to the source, use "
                      "--source-for-target.") from None
    # Checks again that no ordinary role has replaced an object that the statements name.
    found = refusals(move, target)
    if found:
        raise Refused("the target could not be prepared, and nothing was changed\n"
                      + indented(f"On the target: {sentence}" for sentence in found))


def try_out(move):
    """Tests for --check that the target can create the subscription and the schema, and then rolls back."""
    move.target.begin()
    reserve(move)
    move.target.rollback()


def make_slot(move):
    """Creates the publication and the replication slot. The publication is created first, because logical decoding uses
    the catalogue of the time of each change. The creation of the slot waits for all transactions that have written."""
    source, name = move.source, sql.Identifier(move.name)
    with source.transaction():
        source.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(name))
        tables = sql.SQL(", ").join(move.tables(source))
        source.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(name, tables))
    source.execute(DROP_SLOT, (move.slot,))
    say("creating a replication slot on the source")
    began, limit = time.monotonic(), LOCK_MS
    while True:
        try:
            with source.transaction():
                source.set_local("lock_timeout", limit, seconds=limit)
                return source.execute("SELECT pg_catalog.pg_create_logical_replication_slot(%s, 'pgoutput')",
                                      (move.slot,))
        except psycopg.errors.LockNotAvailable:
            # Creating a replication slot waits for all transactions that are already open. Each new attempt to create
            # the slot waits longer, so that short transactions cannot make all attempts fail.
            limit *= 2
            writers = source.column(WRITERS)
            say(f"waiting for transactions that have written, {time.monotonic() - began:.0f} s: "
                + ("; ".join(writers[:5]) or "no known transaction"))


def subscribe(move):
    """Enables the subscription. A subscription that is already enabled continues."""
    target, name = move.target, sql.Identifier(move.name)
    target.execute(sql.SQL("ALTER SUBSCRIPTION {} CONNECTION {}").format(name, sql.Literal(move.source_for_target)))
    if not is_enabled(move):
        say("enabling the subscription on the target")
        target.execute(sql.SQL("ALTER SUBSCRIPTION {} ENABLE").format(name))
    target.execute(sql.SQL("ALTER SUBSCRIPTION {} REFRESH PUBLICATION").format(name), seconds=120)


def rest(move):
    """Disables the subscription, because an enabled subscription connects again and uses the replication slot that the
    source will drop."""
    if is_enabled(move):
        move.target.execute(sql.SQL("ALTER SUBSCRIPTION {} DISABLE").format(sql.Identifier(move.name)))


def forget(session, move, side, drop_rows):
    """Removes the record of the move from a server. Returns a description of the objects that remain on the server."""
    return session.patiently("ending the move", move.options.lock_timeout, lambda: session.value(
        "SELECT snowflake_fleet.forget_move(%s, %s, %s)", (move.shard, side, drop_rows)))


def clear(move):
    """Drops the copied rows and removes the records of the move from both servers. The target is cleaned first, because
    its subscription uses the replication slot of the source."""
    forget(move.target, move, "target", True)
    forget(move.source, move, "source", True)


def progress(move):
    row = move.target.row(PROGRESS, (move.name,))
    if row is None:
        raise Refused(f"subscription {move.name} no longer exists on the target\n  Run with --abort, then run the move "
                      "again.")
    return row


def standing(move, stalled):
    """Returns a text with the progress of the copy, and with the causes if the subscription makes no progress."""
    ready, tables, size, errors, is_copied, workers, _ = progress(move)
    if is_copied:
        text = "catching up: " + (move.source.value(BEHIND, (move.slot,)) or "nothing") + " behind"
    else:
        size = move.target.value("SELECT pg_catalog.pg_size_pretty(%s::bigint)", (size,))
        text = f"copying: {ready} of {tables} tables, {size}"
    if errors:
        text += f"; {errors} errors, see the logs of both servers"
    if workers == 0:
        text += ("; no worker applies changes: the subscription is disabled, all workers of the target are in use, or "
                 "the source does not answer")
    if stalled > STALLED:
        text += f"; no progress for {stalled:.0f} s"
        text += "".join(f"; {what}" for what in move.target.column(UNREADY, (move.name,)))
        text += "".join(f"; waiting for {who}" for who in move.target.holders([move.schema]))
    return text


def is_level(move, seconds):
    """Returns whether the target applies all changes that the source has committed so far, within the given number of
    seconds."""
    until = time.monotonic() + seconds
    # The call of pg_logical_emit_message() is a transaction of its own, whose commit flushes the WAL. The source server
    # sends only flushed WAL to the target server of the move.
    lsn = move.probe.value("SELECT pg_catalog.pg_logical_emit_message(true, 'snowflake_move', '')::text")
    while not move.target.value("SELECT snowflake_fleet.has_applied(%s, %s)", (move.name, lsn)):
        if time.monotonic() > until:
            return False
        time.sleep(0.0005)
    return True


def follow(move):
    """Waits until the target has copied all tables, and applies a new change of the source within 0.1 s plus a tenth of
    --level-timeout."""
    level = move.options.level_timeout / 1000
    began = moved = time.monotonic()
    said_at, said, before = 0, "", None
    while True:
        require_slot(move)
        row, asked = progress(move), time.monotonic()
        if row[4] and is_level(move, 0.5 * level) and time.monotonic() - asked < 0.1 + 0.1 * level:
            return
        now = time.monotonic()
        if row != before:
            before, moved = row, now
        if now - said_at >= (1 if now - began < 10 else 10):
            text = standing(move, now - moved)
            if text != said:
                say(text)
            said_at, said = now, text
        time.sleep(0.05 if now - began < 3 else 0.5)


def analyze(move):
    """Runs ANALYZE on the copied tables, so that the target has statistics before its first query."""
    for table in move.tables(move.target):
        move.target.execute(sql.SQL("ANALYZE (SKIP_LOCKED) {}").format(table), seconds=3600)


def copy(move):
    believe(move)
    if move.source_row() is None:
        begin(move)
    subscribe(move)
    follow(move)
    analyze(move)
    follow(move)
