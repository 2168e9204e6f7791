"""The steps before the fence: a place among the target's subscriptions, the slot, the schema, the rows."""
import time

import psycopg
from psycopg import sql

from .check import make_schema
from .errors import Refused, Stale, in_bytes, say
from .session import LOCK_MS, WHO

SUBSCRIPTION = "s.subname = %s AND s.subdbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())"
PROGRESS = f"""
SELECT count(*) FILTER (WHERE srsubstate IN ('r', 's')), count(*),
       (SELECT coalesce(sum(bytes_processed), 0)::bigint FROM pg_catalog.pg_stat_progress_copy AS p
         WHERE datname = pg_catalog.current_database() AND p.relid IN (SELECT srrelid FROM pg_catalog.pg_subscription_rel WHERE srsubid = s.oid)),
       (SELECT coalesce(sum(pg_catalog.pg_relation_size(srrelid)), 0)::bigint FROM pg_catalog.pg_subscription_rel WHERE srsubid = s.oid),
       (SELECT coalesce(sum(apply_error_count + sync_error_count), 0) FROM pg_catalog.pg_stat_subscription_stats WHERE subid = s.oid),
       coalesce(bool_and(srsubstate = 'r'), false),
       (SELECT count(*) FROM pg_catalog.pg_stat_subscription WHERE subid = s.oid AND pid IS NOT NULL),
       (SELECT coalesce(max(pg_catalog.pg_wal_lsn_diff(latest_end_lsn, '0/0')), 0) FROM pg_catalog.pg_stat_subscription WHERE subid = s.oid)
  FROM pg_catalog.pg_subscription AS s LEFT JOIN pg_catalog.pg_subscription_rel ON srsubid = s.oid WHERE {SUBSCRIPTION} GROUP BY s.oid"""
# What each table that is not ready waits for.
UNREADY = f"""
SELECT pg_catalog.format('table %%s %%s', srrelid::pg_catalog.regclass, CASE
         WHEN srsubstate = 'i' AND w.pid IS NULL THEN pg_catalog.format('has not begun: no worker copies it (max_sync_workers_per_subscription = %%s)',
                                                                       pg_catalog.current_setting('max_sync_workers_per_subscription'))
         WHEN w.pid IS NULL THEN 'has no worker' WHEN srsubstate = 'f' THEN 'is copied, and catches up'
         ELSE 'is copied' || coalesce(', waiting for ' || a.wait_event, '') END)
  FROM pg_catalog.pg_subscription AS s JOIN pg_catalog.pg_subscription_rel ON srsubid = s.oid LEFT JOIN pg_catalog.pg_stat_subscription AS w ON w.subid = s.oid AND w.relid = srrelid
  LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = w.pid WHERE {SUBSCRIPTION} AND srsubstate NOT IN ('r', 's') ORDER BY 1 LIMIT 3"""
BLOCKERS = f"""SELECT DISTINCT {WHO}
  FROM pg_catalog.pg_stat_subscription AS s CROSS JOIN pg_catalog.unnest(pg_catalog.pg_blocking_pids(s.pid)) AS blocking LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = blocking
 WHERE s.subname = %s AND s.pid IS NOT NULL LIMIT 5"""
# Transactions that have begun to write, anywhere on the server: a slot begins when they have ended.
WRITERS = """
SELECT format('process %%s (%%s of database %%s, since %%s)', pid, usename, datname, date_trunc('second', xact_start))
  FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> ALL (%s) AND backend_type <> 'walsender'
UNION ALL SELECT format('prepared transaction %%s of database %%s', gid, database) FROM pg_catalog.pg_prepared_xacts"""
# The settings of the processes that write the rows are those of their role: so these are as the rows need them.
APPLY = {"array_nulls": "on", "xmloption": "content", "default_transaction_read_only": "off", "lock_timeout": "0", "row_security": "off"}
STALLED = 10          # seconds without progress after which it is reported what is waited for


def believe(move):
    """Raises Stale if a server is another one than when the copy began, or was restarted since: it may have been put back."""
    here, there = move.source_row(), move.target_row()
    if here is None or there is None:
        return
    if here.other_identity != move.target_identity or there.other_identity != move.source_identity:
        raise Stale(f"the {'source' if there.other_identity != move.source_identity else 'target'} was restarted, promoted or restored since the copy began")
    if here.state == "copying" and there.state == "level":
        raise Stale("the target has prepared to take over, and the source is not fenced")
    if there.state == "arriving":
        require_slot(move)


def require_slot(move):
    if not move.has_slot():
        raise Stale("the slot is gone, as after a failover of the source")


def begin(move):
    """From here on DDL on the schema is refused. The row of the target takes a place among its subscriptions."""
    there = move.target_row()
    if there is None:
        reserve(move)
    elif move.source_row() is None and there.state != "reserved":
        raise Refused("the target has rows of a move that the source has no record of, and may lack changes\n  Run with --abort, then again.")
    if move.source_row() is not None:
        return
    subscription = move.target.value(f"SELECT oid FROM pg_catalog.pg_subscription AS s WHERE {SUBSCRIPTION}", (move.name,))
    slots = f"^({move.slot}|pg_{subscription}_sync_[0-9]+_{move.target_database.split('/')[0]})$"

    def insert():
        # The lock waits for DDL on these tables that has not been committed yet.
        move.source.execute(sql.SQL("LOCK TABLE ONLY {} IN SHARE UPDATE EXCLUSIVE MODE").format(sql.SQL(", ONLY ").join(move.tables(move.source))))
        move.source.execute("INSERT INTO snowflake_fleet.moving (shard, schema, side, state, other, other_database, other_identity, slots, fingerprint) "
                            "VALUES (%s, %s, 'source', 'copying', %s, %s, %s, %s, snowflake_fleet.fingerprint(%s))",
                            (move.shard, move.schema, move.to_name, move.target_database, move.target_identity, slots, move.schema))
    move.source.patiently("recording the move", LOCK_MS, insert)


def reserve(move):
    """One subscription less than there are workers: the last worker copies, for each of them in its turn. The role of the move owns
    what arrives, and no superuser applies it. Only version 15 wants a superuser for the owner of a subscription, until the commit."""
    target, said = move.target, False
    role = f"snowflake_move_{move.target_database.split('/')[1]}_{move.shard}"
    parts = {"subscription": sql.Identifier(move.name), "role": sql.Identifier(role), "conninfo": sql.Literal(move.source_for_target), "slot": sql.Literal(move.slot),
             "database": sql.Identifier(target.connection.info.dbname), "more": sql.SQL(", password_required = false" if target.version >= 160000 else "")}
    while True:
        with target.transaction():
            # The catalogue is the server's, so this is one at a time over all its databases.
            target.execute("LOCK TABLE pg_catalog.pg_subscription IN SHARE ROW EXCLUSIVE MODE")
            workers, used, who = target.row(
                "SELECT pg_catalog.current_setting('max_logical_replication_workers')::int, count(*), string_agg(subname, ', ') FROM pg_catalog.pg_subscription "
                "WHERE subenabled OR subname ~ '^snowflake_move_[0-9]+$'")
            if used + 2 <= workers:
                for statement in ("CREATE SUBSCRIPTION {subscription} CONNECTION {conninfo} PUBLICATION {subscription} WITH (connect = false, slot_name = {slot}, "
                                  "synchronous_commit = 'off', streaming = off{more})",
                                  # Clients cannot connect as this role: the limit does not count background workers.
                                  "CREATE ROLE {role} LOGIN CONNECTION LIMIT 0 PASSWORD NULL SUPERUSER", "ALTER SUBSCRIPTION {subscription} OWNER TO {role}", "ALTER ROLE {role} NOSUPERUSER"):
                    target.execute(sql.SQL(statement).format(**parts))
                for name, value in dict(APPLY, client_encoding=target.value("SHOW server_encoding"), **({"transaction_timeout": "0"} if target.version >= 170000 else {})).items():
                    target.execute(sql.SQL("ALTER ROLE {role} IN DATABASE {database} SET {name} = {value}").format(name=sql.Identifier(name), value=sql.Literal(value), **parts))
                target.execute("INSERT INTO snowflake_fleet.moving (shard, schema, side, state, other, other_database, other_identity, role) VALUES (%s, %s, 'target', 'reserved', %s, %s, %s, %s)",
                               (move.shard, move.schema, move.from_name, move.source_database, move.source_identity, role))
                return
        if not said:
            say(f"the target has {workers} workers for subscriptions, and {used} are taken ({who}): waiting until one ends")
            said = True
        time.sleep(0.5)


def make_slot(move):
    """A slot waits for all transactions that have begun to write."""
    source, probe = move.source, move.probe
    probe.execute("SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots WHERE slot_name = %s AND NOT active", (move.slot,))
    say("the source makes a slot")
    source.send(f"SELECT pg_catalog.pg_create_logical_replication_slot('{move.slot}', 'pgoutput')", seconds=7 * 86400)
    mine = [source.connection.info.backend_pid, probe.connection.info.backend_pid]
    began = said = time.monotonic()
    while source.answer() is None:
        now = time.monotonic()
        if now - said > 5:
            said = now
            writers = [who for who, in probe.rows(WRITERS, (mine,))]
            say(f"waiting for transactions that have written, {now - began:.0f} s: " + ("; ".join(writers[:5]) or "none that is known"))
        time.sleep(0.01 if now - began < 1 else 0.1)


def prepare(move):
    """Publication, slot and schema. What the slot decodes is published by the catalogues of that time, so the publication comes first."""
    source, target = move.source, move.target
    with source.transaction():
        source.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(move.name)))
        source.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(sql.Identifier(move.name), sql.SQL(", ").join(move.tables(source))))
    make_slot(move)
    say(f"schema {move.schema}: made on the target")
    # In one transaction with the note that it was made: a program that is killed leaves both or neither.
    with target.transaction():
        found = make_schema(move, move.target_row().role)
        if found:
            raise Refused("the schema could not be made on the target, nothing is changed there\n" + "\n".join(f"  {line}" for line in found) + "\n  Run with --abort, and again when that is mended.")
        settle = [statement for _, statement in source.rows("SELECT step, statement FROM snowflake_fleet.statements_of(%s, %s) WHERE step >= 10", (move.schema, move.shard))]
        target.execute("UPDATE snowflake_fleet.moving SET state = 'arriving', statements = %s, changed = pg_catalog.clock_timestamp() WHERE shard = %s AND side = 'target' AND state = 'reserved'",
                       (settle, move.shard))
    if move.is_altered():
        raise Stale("the schema was altered while it was made on the target")


def subscribe(move):
    """Idempotent: a subscription that is enabled already continues."""
    target, name, attempt = move.target, sql.Identifier(move.name), 0
    target.execute(sql.SQL("ALTER SUBSCRIPTION {} CONNECTION {}").format(name, sql.Literal(move.source_for_target)))
    if not target.value(f"SELECT subenabled FROM pg_catalog.pg_subscription AS s WHERE {SUBSCRIPTION}", (move.name,)):
        say("the target subscribes")
        target.execute(sql.SQL("ALTER SUBSCRIPTION {} ENABLE").format(name))
    # Not within a transaction, so the limit for locks is the session's. Other moves to this target wait behind an attempt.
    while True:
        attempt += 1
        target.execute("SELECT pg_catalog.set_config('lock_timeout', %s, false)", (str(LOCK_MS),))
        try:
            return target.execute(sql.SQL("ALTER SUBSCRIPTION {} REFRESH PUBLICATION").format(name), seconds=120)
        except psycopg.errors.LockNotAvailable:
            say(f"tables of the target are locked, attempt {attempt}: waiting for " + ("; ".join(target.holders([move.schema])) or "a session that has gone since"))
        finally:
            if not target.connection.broken:
                target.execute("SELECT pg_catalog.set_config('lock_timeout', '0', false)")
        time.sleep(1)


def forget(session, move, side, drop_rows):
    """Returns what is left there."""
    return session.patiently("ending the move", move.options.lock_timeout, lambda: session.value("SELECT snowflake_fleet.forget_move(%s, %s, %s)", (move.shard, side, drop_rows)))


def clear(move):
    """What was copied is thrown away, and both sides are as before the move. The subscription lets go of the slot first."""
    forget(move.target, move, "target", True)
    forget(move.source, move, "source", True)


def progress(move):
    row = move.target.row(PROGRESS, (move.name,))
    if row is None:
        raise Refused(f"the target has no subscription {move.name} any more\n  Run with --abort, then again.")
    return row


def ails(move, errors, workers, stalled):
    """What keeps the subscription from its work, as an ending of a sentence."""
    text = f"; {errors} errors, which the logs of both servers explain" if errors else ""
    if workers == 0:
        text += "; no worker runs for it: the subscription is disabled, or the target's workers are used up, or the source does not answer it"
    who = [holder for holder, in move.target.rows(BLOCKERS, (move.name,))]
    if who:
        text += f"; waiting for {'; '.join(who)}"
    if stalled:
        text += f"; no progress for {stalled:.0f} s" + "".join(f"; {what}" for what, in move.target.rows(UNREADY, (move.name,)))
    return text


def wait_for_copy(move):
    total = int(move.source.value("SELECT sum(pg_catalog.pg_relation_size(t) + pg_catalog.pg_relation_size(nullif(reltoastrelid, 0))) "
                                  "FROM snowflake_fleet.tables_of(%s) AS t JOIN pg_catalog.pg_class AS c ON c.oid = t", (move.schema,)) or 0)
    began = moved = time.monotonic()
    said_at, said, before, first = 0, "", None, None
    while True:
        require_slot(move)
        ready, tables, copied, size, errors, done, workers, _ = progress(move)
        now = time.monotonic()
        if before != (ready, copied, size):
            before, moved = (ready, copied, size), now
        first = first or (now, size)
        if done or now - said_at >= (1 if now - began < 10 else 10):
            text = f"copying: {ready} of {tables} tables, {in_bytes(size)} of about {in_bytes(max(total, size))}"
            if now - first[0] > 2 and size > first[1]:
                rate = (size - first[1]) / (now - first[0])
                text += f", {in_bytes(rate)}/s, {max(0, (total - size)) / rate:.0f} s to go"
            text += ails(move, errors, workers, now - moved if now - moved > STALLED and not done else 0)
            if text != said:
                say(text)
            said, said_at = text, now
        if done:
            return
        time.sleep(0.05 if now - began < 3 else 0.5)


def is_level(move, seconds):
    """Whether the target applies within so many seconds what the source has committed until now."""
    until = time.monotonic() + seconds
    # The commit of the message flushes the WAL, without which nothing is sent.
    lsn = move.probe.value("SELECT pg_catalog.pg_logical_emit_message(true, 'snowflake_move', '')::text")
    while not move.target.value("SELECT snowflake_fleet.has_applied(%s, %s)", (move.name, lsn)):
        if time.monotonic() > until:
            return False
        time.sleep(0.0005)
    return True


def catch_up(move):
    """Until the target is level soon after it was asked to be."""
    level = move.options.level_timeout / 1000
    said, behind, moved, position = time.monotonic(), None, time.monotonic(), None
    while True:
        require_slot(move)
        began = time.monotonic()
        if is_level(move, 0.5 * level) and time.monotonic() - began < 0.1 + 0.1 * level:
            return
        row, now = progress(move), time.monotonic()
        if position != row[7]:
            position, moved = row[7], now
        if now - said > 5 or behind is None:
            now_behind = float(move.source.value("SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), confirmed_flush_lsn) "
                                                 "FROM pg_catalog.pg_replication_slots WHERE slot_name = %s", (move.slot,)) or 0)
            say(f"catching up: {in_bytes(now_behind)} behind" + (f", {in_bytes((behind - now_behind) / max(1, now - said))}/s less" if behind is not None and behind > now_behind else "")
                + ails(move, row[4], row[6], now - moved if now - moved > STALLED else 0))
            said, behind = now, now_behind
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
    believe(move)
    begin(move)
    if move.target_row().state == "reserved":
        prepare(move)
    subscribe(move)
    wait_for_copy(move)
    analyze(move)
    catch_up(move)
