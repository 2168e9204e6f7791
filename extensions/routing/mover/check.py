"""Checks whether a shard can be moved, before the program changes anything. Each reason against the move is a
sentence."""
import hashlib
import time
from shlex import quote

import psycopg
from psycopg import sql

from .errors import Refused, indented, printable
from .endpoints import is_elsewhere
from .session import GRACE, LOCK_MS, alarm

OTHER_WAYS = ("\n  Other ways to move it are Citus, pgcopydb, and replication of your own with fence_shard() and "
              "take_over(): see doc/routing.md.")
WRITERS_WAIT = ("\n  Run the program with a larger --shared-timeout. Before the fence, writers of such tables wait for "
                "this time.")
SHARED = "SELECT kind, object, definition FROM snowflake_fleet.shared_of(%s) ORDER BY 1, 2"
SHARED_THERE = """SELECT kind, object, snowflake_fleet.shared_definition(kind, object)
  FROM ROWS FROM (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::text[])) AS shared (kind, object)
  ORDER BY 1, 2"""
ENCODING = """SELECT pg_catalog.pg_encoding_to_char(encoding) FROM pg_catalog.pg_database
  WHERE datname = pg_catalog.current_database()"""
SENDERS = """SELECT
  pg_catalog.current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_catalog.pg_replication_slots),
  pg_catalog.current_setting('max_wal_senders')::int
    - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'walsender')"""
# From PostgreSQL 18 on, max_active_replication_origins limits the number of replication origins.
WORKERS = """SELECT
  pg_catalog.current_setting('max_logical_replication_workers')::int
    - (SELECT count(*) FROM pg_catalog.pg_subscription WHERE subenabled AND subname !~ '^snowflake_move_'),
  pg_catalog.current_setting('max_worker_processes')::int
    - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type ~ 'logical replication|parallel worker'),
  coalesce(pg_catalog.current_setting('max_active_replication_origins', true),
           pg_catalog.current_setting('max_replication_slots'))::int
    - (SELECT count(*) FROM pg_catalog.pg_replication_origin),
  pg_catalog.current_setting('max_sync_workers_per_subscription')::int"""
COLUMNS = """SELECT attname FROM pg_catalog.pg_attribute
  WHERE attrelid = %s::pg_catalog.regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attname"""
REGION = "SELECT snowflake.region_of(snowflake.next_id(%s))"
AHEAD = """SELECT snowflake.time_of(%s) - pg_catalog.clock_timestamp()
  - pg_catalog.current_setting('snowflake.max_lead')::interval"""
LAYOUT = "SELECT (bits, tick_ms, epoch, regions)::text FROM snowflake.layout"
PREPARED = "SELECT gid, database, owner FROM pg_catalog.pg_prepared_xacts ORDER BY prepared"


def refusals(move, session):
    return session.column("SELECT DISTINCT * FROM snowflake_fleet.refusals(%s, %s)", (move.schema, move.shard))


def content(session, table, seconds, more=""):
    """Returns the number of rows of a table and their hash. Reads the rows with COPY, because planning a query as a
    superuser could run functions of the table's owner."""
    columns = [sql.Identifier(name) for name in session.column(COLUMNS, (table,))]
    count, total, lines = 0, 0, b""
    copy = sql.SQL("COPY {} ({}) TO STDOUT").format(sql.SQL(table), sql.SQL(", ").join(columns))
    session.execute("SELECT 1", seconds=seconds)
    try:
        with alarm(seconds + GRACE, session.label), session.connection.cursor() as cursor, cursor.copy(copy) as rows:
            for data in rows:
                *whole, lines = (lines + bytes(data)).split(b"\n")
                count += len(whole)
                total += sum(int.from_bytes(hashlib.sha256(line).digest()[:16], "big") for line in whole)
    except psycopg.errors.QueryCanceled:
        raise Refused(f"{session.label}: the rows of table {table} could not be compared within {seconds:.0f} s"
                      + more) from None
    return f"{count} rows with hash {total % 2**64:x}"


def has_other_rows(move, table, until):
    """Returns whether a table to which foreign keys of the shard refer has different rows on source and target."""
    here, there = (content(session, table, max(1, until - time.monotonic()), WRITERS_WAIT)
                   for session in (move.source, move.target))
    return here != there


def of_shared(move):
    """Yields a sentence for each object outside the schema that the schema uses, and that differs between the two
    servers."""
    seconds = move.options.shared_timeout
    here, until = move.source.rows(SHARED, (move.schema,)), time.monotonic() + seconds
    for session in (move.source, move.target):    # each session is idle while the program queries the other one
        session.set_local("idle_in_transaction_session_timeout", f"{seconds + 60}s")
    there = move.target.rows(SHARED_THERE, ([kind for kind, _, _ in here], [name for _, name, _ in here]))
    for (kind, name, definition), (_, _, other) in zip(here, there):
        if other is None:
            yield (f"The schema uses {kind} {name}, which does not exist on the target. Create it there as on the "
                   "source.")
        elif definition != other:
            yield (f"The {kind} {name} differs between the servers: on the source it is {definition}, on the target "
                   f"{other}.")
        elif kind == "table" and has_other_rows(move, name, until):
            yield f"A foreign key refers to table {name}, which has different rows on source and target."


def of_start(move):
    """Checks what is needed only to start a copy: free replication slots, WAL senders and workers, and no prepared
    transaction."""
    slots, senders = move.source.row(SENDERS)
    if min(slots, senders) < 2:
        yield (f"The source has {slots} free replication slots and {senders} free WAL senders. A move needs 2 of each. "
               "Raise max_replication_slots or max_wal_senders.")
    workers, processes, origins, syncs = move.target.row(WORKERS)
    if min(workers, processes, origins) < 2 or syncs < 1:
        yield (f"The target has {workers} free workers for subscriptions, {processes} free background workers and "
               f"{origins} free replication origins, and max_sync_workers_per_subscription is {syncs}. A move needs "
               "2, 2, 2 and 1. Raise max_logical_replication_workers, max_worker_processes, max_replication_slots (on "
               "PostgreSQL 18 max_active_replication_origins) or max_sync_workers_per_subscription.")
    # Lists the prepared transactions of all databases, because PostgreSQL creates a replication slot only after all
    # open transactions have ended.
    for gid, database, owner in move.source.rows(PREPARED):
        yield (f"Prepared transaction {quote(printable(gid))} of database {database} is open. Role {owner} must commit "
               "it or roll it back.")


def of_servers(move):
    source, target = move.source, move.target
    level = source.value("SHOW wal_level")
    if level != "logical":
        yield f"On the source, wal_level is {level}. Set it to logical, and restart the source."
    if move.source_row() is None:
        yield from of_start(move)
    for publication in source.column("SELECT pubname FROM pg_catalog.pg_publication WHERE puballtables"):
        yield (f"Publication {publication} is FOR ALL TABLES. Its subscribers would no longer receive changes of the "
               "shard. Drop the publication.")
    encodings = [session.value(ENCODING) for session in (source, target)]
    if encodings[0] != encodings[1] and "SQL_ASCII" in encodings:
        yield (f"The encoding of the source database is {encodings[0]}, and that of the target database "
               f"{encodings[1]}. Text in SQL_ASCII cannot be converted.")
    layouts = [session.value(LAYOUT) for session in (source, target)]
    if layouts[0] != layouts[1]:
        yield f"The layouts differ: the source has {layouts[0]}, and the target has {layouts[1]}."
    else:
        yield from of_ids(move)


def of_rows(move):
    """Yields a sentence for each recorded move of the shard, to or from a third server, that has not ended."""
    here, there = move.source_row(), move.target_row()
    if is_elsewhere(here, move.target_identity):
        yield (f"A move of shard {move.shard} to another server, {here.other}, has not ended. Finish that move, or run "
               "it with --abort. If that server is permanently lost, run --forget source.")
    if is_elsewhere(there, move.source_identity):
        yield (f"A move of shard {move.shard} from another server, {there.other}, to the target has not ended. Finish "
               "that move. If that server is permanently lost, run --forget target.")


def of_ids(move):
    """Checks that the target can mint ids of the shard, in another region than the source and above all ids of the
    source. The source may no longer own the shard."""
    shard = (move.shard,)
    try:
        region = move.source.value(REGION, shard)
    except psycopg.errors.ObjectNotInPrerequisiteState:
        region = None
    last = move.source.value("SELECT snowflake_fleet.last_id(%s)", shard)
    try:
        if move.target.value(REGION, shard) == region:
            yield f"Both servers mint ids of shard {move.shard} in region {region}, so they could mint the same ids."
    except psycopg.Error as error:
        yield f"The target cannot mint for shard {move.shard}: {error.diag.message_primary or error}"
    # Reads the clock of the target server after the source server has minted the id. If the program read the clock
    # first, the id could seem to be ahead of the clock.
    ahead = move.target.value(AHEAD, (last,))
    if ahead.total_seconds() > 0:
        yield (f"The source has minted ids of shard {move.shard} that are ahead of the target's clock, and new ids of "
               f"the target would be smaller. Set the clocks, and wait {ahead.total_seconds():.1f} s.")


def of_schema(move):
    """Returns the reasons why the schema cannot be moved. Locks the tables first, so that the result stays valid until
    the end of the caller's transaction on the source."""
    move.source.execute("SELECT snowflake_fleet.lock_tables(%s)", (move.schema,))
    return refusals(move, move.source) or list(of_shared(move))


def check(move):
    """Raises Refused with all reasons against the move."""
    before = move.source.value("SELECT other FROM snowflake_fleet.moving WHERE shard = %s AND side = 'target' "
                               "AND state <> 'here'", (move.shard,))
    if before is not None:
        raise Refused(f"the move of shard {move.shard} from {before} to {move.from_name} has not ended\n  Finish that "
                      f"move with --to {quote(move.from_name)}. If {before} is permanently lost, run --forget "
                      "target.")
    try:
        kinds = refusals(move, move.source)
        sentences = kinds + list(of_rows(move)) + list(of_servers(move))
        if not kinds:
            with move.source.transaction():
                sentences += of_schema(move)
    except psycopg.errors.LockNotAvailable:
        who = "; ".join(move.source.holders([move.schema])) or "a session that has ended"
        raise Refused(f"a table of schema {move.schema} is locked, or vacuumed: the lock was not granted within "
                      f"{LOCK_MS} ms\n  Locks are held by {who}") from None
    if sentences:
        raise Refused(f"shard {move.shard} cannot be moved\n{indented(sorted(set(sentences)))}"
                      + (OTHER_WAYS if kinds else ""))
