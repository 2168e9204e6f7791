"""What stands against a move: found before anything is done, each a sentence."""
import hashlib
from shlex import quote
from typing import NamedTuple

import psycopg
from psycopg import sql

from .errors import Refused, in_bytes, printable, say
from .session import LOCK_MS

OTHER_WAYS = "  Other ways to move it are Citus, pgcopydb, and replication of your own with fence_shard() and take_over(): see doc/routing.md."
SHARED = "SELECT kind, object, definition FROM snowflake_fleet.shared_of(%s) ORDER BY 1, 2"
SHARED_THERE = """SELECT kind, object, snowflake_fleet.shared_definition(kind, object)
  FROM ROWS FROM (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::text[])) AS shared (kind, object) ORDER BY 1, 2"""
ENCODING = "SELECT pg_catalog.pg_encoding_to_char(encoding) FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()"
SENDERS = """SELECT pg_catalog.current_setting('wal_level'),
  pg_catalog.current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_catalog.pg_replication_slots),
  pg_catalog.current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'walsender')"""
# The setting for replication origins is another one from version 18 on.
WORKERS = """SELECT pg_catalog.current_setting('max_logical_replication_workers')::int - (SELECT count(*) FROM pg_catalog.pg_subscription WHERE subenabled AND subname !~ '^snowflake_move_'),
  pg_catalog.current_setting('max_worker_processes')::int - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type ~ 'logical replication|parallel worker'),
  coalesce(pg_catalog.current_setting('max_active_replication_origins', true), pg_catalog.current_setting('max_replication_slots'))::int
    - (SELECT count(*) FROM pg_catalog.pg_replication_origin), pg_catalog.current_setting('max_sync_workers_per_subscription')::int"""
PREPARED = "SELECT gid, database, owner FROM pg_catalog.pg_prepared_xacts ORDER BY prepared"
GREATEST_IDS = "SELECT col, id FROM snowflake_fleet.greatest_ids(%s::pg_catalog.regclass[], %s::pg_catalog.name[])"
LOCKED = """SELECT NOT EXISTS (SELECT FROM snowflake_fleet.tables_of(%s) AS t WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_locks
  WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation' AND relation = t AND granted AND mode = 'ShareUpdateExclusiveLock'))"""
DISK = "CREATE TEMPORARY TABLE pg_temp.disk (line text) ON COMMIT DROP"


class Column(NamedTuple):
    relation: str
    attribute: str
    name: str
    is_indexed: bool


def refusals(move, session):
    return [sentence for sentence, in session.rows("SELECT DISTINCT * FROM snowflake_fleet.refusals(%s, %s)", (move.schema, move.shard))]


def lookups(move):
    """The tables of other schemas that foreign keys refer to."""
    return [name for kind, name, _ in move.source.rows(SHARED, (move.schema,)) if kind == "table"]


def content(session, table):
    """A number that tells the rows of a shared table. COPY plans no query, in which a superuser would call functions of the table's owner."""
    columns = [sql.Identifier(name) for name, in session.rows("SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = %s::pg_catalog.regclass "
                                                             "AND attnum > 0 AND NOT attisdropped ORDER BY attname", (table,))]
    total, lines = 0, b""
    session.execute("SELECT 1", seconds=10)
    with session.connection.cursor() as cursor, cursor.copy(sql.SQL("COPY {} ({}) TO STDOUT").format(sql.SQL(table), sql.SQL(", ").join(columns))) as rows:
        for data in rows:
            *whole, lines = (lines + bytes(data)).split(b"\n")
            total += sum(int.from_bytes(hashlib.sha256(line).digest()[:16], "big") for line in whole)
    return total


def of_shared(move):
    """What the schema uses outside of itself has to be the same on both servers."""
    here = move.source.rows(SHARED, (move.schema,))
    there = move.target.rows(SHARED_THERE, ([kind for kind, _, _ in here], [name for _, name, _ in here]))
    for (kind, name, definition), (_, _, other) in zip(here, there):
        if other is None:
            yield f"The target has no {kind} {name}, which the schema uses: make it there as it is on the source."
        elif definition != other:
            yield f"The {kind} {name} is not the same on both servers: the source has {definition}, the target {other}."
        elif kind == "table" and content(move.source, name) != content(move.target, name):
            yield f"The table {name}, to which a foreign key refers, has other rows on the target."


def of_servers(move):
    source, target, row = move.source, move.target, move.source_row()
    level, slots, senders = source.row(SENDERS)
    if level != "logical":
        yield f"The source has wal_level = {level}, and it takes logical."
    workers, processes, origins, syncs = target.row(WORKERS)
    if row is None and min(slots, senders) < 2:
        yield f"The source has {slots} replication slots and {senders} WAL senders left, and it takes 2 of each: raise max_replication_slots or max_wal_senders."
    if row is None and (min(workers, processes, origins) < 2 or syncs < 1):
        yield (f"The target has {workers} workers for subscriptions, {processes} background workers and {origins} replication origins left, and {syncs} workers that copy for each "
               "subscription; it takes 2, 2, 2 and 1: raise max_logical_replication_workers, max_worker_processes, max_replication_slots or max_sync_workers_per_subscription.")
    for (publication,) in source.rows("SELECT pubname FROM pg_catalog.pg_publication WHERE puballtables"):
        yield f"Publication {publication} is FOR ALL TABLES, and its subscribers would continue without those of the shard: drop it."
    # Also those of other tables and databases: the slot is not made before they have ended.
    for gid, database, owner in source.rows(PREPARED) if row is None else []:
        yield f"Prepared transaction {quote(printable(gid))} of database {database} is open: role {owner} has to commit it or roll it back."
    encodings = [session.value(ENCODING) for session in (source, target)]
    if encodings[0] != encodings[1] and "SQL_ASCII" in encodings:
        yield f"The source's database has encoding {encodings[0]}, the target's {encodings[1]}: SQL_ASCII does not say which bytes are which characters."
    layouts = [session.value("SELECT (bits, tick_ms, epoch, regions)::text FROM snowflake.layout") for session in (source, target)]
    if layouts[0] != layouts[1]:
        yield f"The layouts differ: the source has {layouts[0]}, the target {layouts[1]}."
        return
    regions = []
    for session in (source, target):
        try:
            regions.append(session.value("SELECT snowflake.region_of(snowflake.next_id(%s))", (move.shard,)))
        except psycopg.Error as error:
            if session is target:
                yield f"The target cannot mint for shard {move.shard}: {error.diag.message_primary or error}"
            regions.append(None)
    if regions[0] is not None and regions[0] == regions[1]:
        yield f"Both servers mint ids of shard {move.shard} in region {regions[0]}: the same ids."


def of_rows(move):
    """What is recorded of moves, and what is in the way of this one."""
    here, there = move.source_row(), move.target_row()
    if here is not None and here.other_database != move.target_database:
        yield f"Shard {move.shard} is on its way to another server, {here.other}: end that move first, take it back with --abort, or with --forget source if that server is gone for good."
    if there is not None and there.other_database != move.source_database:
        yield f"The target waits for shard {move.shard} from another server, {there.other}: end that move first, or run --forget target if that server is gone for good."
    if there is None and move.has_subscription():
        yield f"The target has a subscription {move.name}, of no move: drop it."
    if (there is None or there.state == "reserved") and move.has_schema(move.target):
        yield f"The target has a schema {move.schema}: drop it there, or rename it."


def of_ids(move):
    """What the target would not observe: ids of a clock that is ahead, keys that are no ids, what cannot be looked up at once.
    Under locks: whoever owns a table could give it an index of functions of his own, which the plan of a superuser's query calls."""
    source = move.source
    with source.transaction():
        source.execute(sql.SQL("LOCK TABLE ONLY {} IN SHARE UPDATE EXCLUSIVE MODE").format(sql.SQL(", ONLY ").join(move.tables(source))))
        # Sessions that held a lock have altered by now what they were about to; a schema of this name may be another one.
        if not source.value(LOCKED, (move.schema,)):
            raise Refused(f"schema {move.schema} was altered during the check\n  Run this again.")
        return refusals(move, source) or list(of_greatest_ids(move))


def of_greatest_ids(move):
    columns = [Column(*row) for row in move.source.rows("SELECT relation::text, attribute::text, col, is_indexed FROM snowflake_fleet.id_columns(%s)", (move.schema,))]
    for named in sorted(set(move.options.not_ids) - {column.name for column in columns}):
        yield f"--not-ids {quote(named)} names no column of schema {move.schema} that mints or that a bigint key begins with: write TABLE.COLUMN, as SQL would quote them."
    observed = [column for column in columns if column.name not in move.options.not_ids]
    for column in observed:
        if not column.is_indexed:
            yield (f"Column {column.name} mints, and no B-tree index begins with it, so its greatest id cannot be found while writers wait: "
                   f"make one, or if the target need not mint above its ids, pass --not-ids {quote(column.name)}.")
    indexed = [column for column in observed if column.is_indexed]
    for name, number in move.source.rows(GREATEST_IDS, ([column.relation for column in indexed], [column.attribute for column in indexed])):
        # By the clock as it is afterwards: ids are minted while the greatest are looked for.
        try:
            is_past = move.target.value("SELECT snowflake.time_of(%s) <= pg_catalog.clock_timestamp() + pg_catalog.current_setting('snowflake.max_lead')::interval", (number,))
        except psycopg.DataError:
            is_past = False
        if not is_past:
            yield (f"The greatest value of {name}, {number}, would be an id of the future, and the target would mint below the ids that move there: "
                   f"wait until it is past; or if the column has no ids, pass --not-ids {quote(name)}.")


def connects(move):
    """The target's server has to reach the source's: tried with a subscription that is rolled back."""
    target = move.target
    target.begin()
    try:
        target.execute(sql.SQL("CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {} WITH (enabled = false, create_slot = false, slot_name = NONE)").format(
            sql.Identifier(f"{move.name}_check"), sql.Literal(move.source_for_target), sql.Identifier(move.name)))
    except psycopg.Error as error:
        if error.diag.message_primary is None:
            raise
        yield f"The target's server cannot connect to the source: {error.diag.message_primary.strip()}: see --source-for-target."
    finally:
        target.rollback()


def made(move):
    """The schema can be made on the target: tried, and rolled back."""
    target = move.target
    target.begin()
    try:
        target.execute("CREATE ROLE snowflake_move_check")
        yield from make_schema(move, "snowflake_move_check")
    finally:
        target.rollback()


def make_schema(move, role):
    """Within the caller's transaction on the target. What its statements name there must not be what an ordinary role has put in its place."""
    statements = [statement for step, statement in move.source.rows("SELECT step, statement FROM snowflake_fleet.statements_of(%s, %s)", (move.schema, move.shard)) if step < 10]
    try:
        move.target.execute("SELECT pg_catalog.set_config('lock_timeout', %s, true)", (str(LOCK_MS),))
        move.target.execute("SELECT snowflake_fleet.make_schema(%s, %s, %s)", (move.schema, role, statements), seconds=600)
    except psycopg.Error as error:
        if error.diag.message_primary is None:
            raise
        return [f"The schema cannot be made on the target: {error.diag.message_primary}."]
    return [f"On the target: {sentence}" for sentence in refusals(move, move.target)]


def disk(move):
    """Free disk where the target's data are, if its server can say; and what there is to copy."""
    size = move.source.value("SELECT sum(pg_catalog.pg_total_relation_size(t)) FROM snowflake_fleet.tables_of(%s) AS t", (move.schema,)) or 0
    free = None
    move.target.begin()
    try:
        move.target.execute(DISK)
        move.target.execute("COPY pg_temp.disk FROM PROGRAM 'df -Pk . | tail -n 1'")
        free = int(move.target.value("SELECT line FROM pg_temp.disk").split()[3]) * 1024
    except (psycopg.DatabaseError, IndexError, ValueError, AttributeError):
        pass
    finally:
        move.target.rollback()
    return int(size), free


def check(move):
    """Raises Refused with all sentences."""
    before = move.source.value("SELECT other FROM snowflake_fleet.moving WHERE shard = %s AND side = 'target' AND state <> 'here'", (move.shard,))
    if before is not None:
        raise Refused(f"the move of shard {move.shard} from {before} to {move.from_name} has not ended\n"
                      f"  Run that one again, with --to {quote(move.from_name)}; or with --forget target, if {before} is gone for good.")
    source = move.source
    source.execute("SELECT pg_catalog.set_config('lock_timeout', %s, false)", (str(LOCK_MS),))
    try:
        look(move)
    except psycopg.errors.LockNotAvailable:
        raise Refused(f"a table of schema {move.schema} is locked, or vacuumed: the lock was not granted within {LOCK_MS} ms\n  Locks are held by "
                      + ("; ".join(source.holders([move.schema])) or "a session that has gone since")) from None
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        raise Refused(f"schema {move.schema} was altered during the check\n  Run this again.") from None
    finally:
        if not source.connection.broken:
            source.rollback()
            source.execute("SELECT pg_catalog.set_config('lock_timeout', '0', false)")


def look(move):
    first = move.source_row() is None and move.target_row() is None
    kinds = refusals(move, move.source)
    sentences = kinds + list(of_rows(move)) + list(of_servers(move))
    if not kinds:
        sentences += list(of_shared(move)) + list(of_ids(move))
    if not sentences and first:
        sentences += list(connects(move)) + list(made(move))
        size, free = disk(move)
        if free is not None and free < size:
            sentences.append(f"The target has {in_bytes(free)} of disk left, and there are {in_bytes(size)} to copy.")
        if not sentences and move.options.check:
            say(f"{in_bytes(size)} to copy" + ("" if free is None else f", {in_bytes(free)} of disk left on the target"))
    if sentences:
        raise Refused(f"shard {move.shard} cannot be moved\n" + "\n".join(f"  {sentence}" for sentence in sorted(set(sentences))) + ("\n" + OTHER_WAYS if kinds else ""))
