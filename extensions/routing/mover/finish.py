"""After the target has taken over; and the two ways back: taking a move back, dropping what was kept."""
import json

import psycopg
from psycopg import sql

from .copying import empty_tables, forget_publication, forget_slots, forget_subscription
from .definition import start_of
from .drop import drop_schema
from .errors import Refused, say
from .fence import ask_control, begin_control
from .places import IDENTITY, INSTANCE, require_trusted
from .session import Session

FREE_NAME = """
SELECT name FROM (SELECT %(start)s || '_moved' || CASE n WHEN 1 THEN '' ELSE '_' || n END AS name, n FROM generate_series(1, 1000) AS n) AS s
 WHERE pg_catalog.to_regnamespace(quote_ident(name)) IS NULL ORDER BY n LIMIT 1"""
KEPT = "SELECT schema FROM snowflake_fleet.moving WHERE shard = %s AND side = 'source' AND state = 'kept' ORDER BY changed"


def keep_source(move):
    """Renamed, so that nobody finds it who follows an old map, and fenced as it is."""
    row = move.source_row()
    if row is None:
        return
    source = move.source
    if not source.value("SELECT snowflake_fleet.fenced(%s)", (move.schema,)):
        raise Refused(f"the source's schema {move.schema} is not fenced, and is left alone\n"
                      "  The target has taken over; look for rows that were written to the source since.")
    altered = source.value("SELECT snowflake_fleet.is_altered(m) FROM snowflake_fleet.moving AS m WHERE schema = %s AND side = 'source'", (move.schema,))
    with source.transaction():
        name = source.value(FREE_NAME, {"start": start_of(move.schema)})
        source.execute(sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(sql.Identifier(move.schema), sql.Identifier(name)))
        source.execute("UPDATE snowflake_fleet.moving SET state = 'kept', schema = %s, definition = NULL, changed = pg_catalog.clock_timestamp() "
                       "WHERE shard = %s AND side = 'source' AND state <> 'kept'", (name, move.shard))
        source.execute("UPDATE snowflake_fleet.moving SET fingerprint = snowflake_fleet.fingerprint(schema) WHERE schema = %s AND side = 'source'", (name,))
    say(f"the source's schema is kept as {name}, fenced: --drop-source drops it")
    if altered:
        raise Refused(f"the source's schema was altered while the target took over: compare {name} with the target's schema {move.schema} before you drop it")


def push_map(move):
    if move.control is None:
        return
    document = json.dumps(move.control.value("SELECT snowflake_fleet.export_map()"))
    servers = move.control.rows("SELECT name, conninfo FROM snowflake_fleet.map_server ORDER BY name")
    taken, control = 0, [move.control.value(IDENTITY), move.control.row(INSTANCE)]
    for name, conninfo in servers:
        session = None
        try:
            session = move.target if name == move.to_name else move.source if name == move.from_name else None
            if session is None:
                session = Session(f"server {name}", conninfo)
                require_trusted(session)
            if [session.value(IDENTITY), session.row(INSTANCE)] != control:
                session.execute("SELECT snowflake_fleet.import_map(%s::jsonb)", (document,), seconds=20)
            taken += 1
        except psycopg.errors.ObjectNotInPrerequisiteState as error:
            say(f"server {name} refuses the map: {error.diag.message_primary}")
        except (psycopg.Error, Refused) as error:
            say(f"server {name} did not take the map: {str(error).strip().splitlines()[0]}")
            if session is move.target or session is move.source:
                raise
        finally:
            if session is not None and session not in (move.target, move.source):
                session.close()
    say(f"the map is pushed to {taken} of {len(servers)} servers" + ("" if taken == len(servers) else ": run snowflake-push-map for the others"))


def finish(move):
    move.stands = "The target has taken over: run this again to finish."
    row = move.target_row()
    if row is not None and row.state != "here":
        move.set_state(move.target, "target", "here")
    keep_source(move)
    push_map(move)
    forget_subscription(move)
    forget_slots(move)
    forget_publication(move)
    move.target.execute("DELETE FROM snowflake_fleet.moving WHERE shard = %s AND side = 'target'", (move.shard,))
    move.stands = None
    say(f"shard {move.shard} is on the target")


def abort(move):
    if move.is_flipped():
        raise Refused(f"shard {move.shard} is on the target already\n  Run without --abort to finish, then move it back.")
    source, target, options = move.source, move.target, move.options
    row = move.source_row()
    if row is not None and row.other_database != move.target_database:
        raise Refused(f"shard {move.shard} is on its way to another server, {row.other}\n  Run with --abort and --to of that server.")
    there = move.target_row()
    if there is not None and there.other_database != move.source_database:
        raise Refused(f"the target waits for shard {move.shard} from another server, {there.other}")
    if row is not None and row.state == "fenced":
        source.patiently("lifting the fence", options.lock_timeout, lambda: source.execute("SELECT snowflake_fleet.unfence(%s)", (move.schema,)))
    if there is not None:
        forget_subscription(move)
        target.patiently("taking the schema away", options.lock_timeout, lambda: clear_target(move, there))
    if row is not None:
        forget_slots(move)
        forget_publication(move)
        source.execute("DELETE FROM snowflake_fleet.moving WHERE shard = %s AND side = 'source' AND state <> 'kept'", (move.shard,))
    say(f"shard {move.shard} is on the source, as before")


def abort_on_source(move, error):
    """The target does not answer: where the map says that it has not taken over, the writers do not wait for it."""
    move.from_name = move.map_says()
    if move.from_name == move.to_name:
        raise error
    move.open_source()
    move.hold()
    begin_control(move)
    ask_control(move)
    row = move.source_row()
    if row is not None and row.other != move.to_name:
        raise Refused(f"shard {move.shard} is on its way to another server, {row.other}\n  Run with --abort and --to of that server.")
    if row is not None:
        if row.state == "fenced":
            move.source.patiently("lifting the fence", move.options.lock_timeout,
                                  lambda: move.source.execute("SELECT snowflake_fleet.unfence(%s)", (move.schema,)))
        forget_slots(move)
        forget_publication(move, [move.source])
        move.source.execute("DELETE FROM snowflake_fleet.moving WHERE shard = %s AND side = 'source' AND state <> 'kept'", (move.shard,))
    move.control.rollback()
    raise Refused(f"{str(error).strip()}\n  Shard {move.shard} is on the source, as before. Run with --abort again when the target answers: it has not been cleared.")


def clear_target(move, row):
    if row.made and move.has_schema(move.target):
        drop_schema(move.target, move.schema)
    elif row.state != "reserved" and move.has_schema(move.target):
        empty_tables(move)
    move.target.execute("DELETE FROM snowflake_fleet.move_mark WHERE shard = %s", (move.shard,))
    move.target.execute("DELETE FROM snowflake_fleet.moving WHERE shard = %s AND side = 'target'", (move.shard,))


def drop_source(move):
    """What was kept of moves of this shard away from here; and nothing else."""
    source = move.source
    kept = [schema for schema, in source.rows(KEPT, (move.shard,))]
    if not kept:
        raise Refused(f"nothing is kept of shard {move.shard} on {move.from_name}")
    for schema in kept:
        if source.value("SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)) == 0:
            source.execute("DELETE FROM snowflake_fleet.moving WHERE schema = %s AND side = 'source'", (schema,))
            say(f"schema {schema} has been dropped already")
            continue
        if source.value("SELECT snowflake_fleet.is_altered(m) FROM snowflake_fleet.moving AS m WHERE schema = %s AND side = 'source'", (schema,)):
            raise Refused(f"schema {schema} is not any more what was moved: drop it by hand, when you know what it has")
        source.patiently(f"dropping {schema}", move.options.lock_timeout, lambda schema=schema: drop_kept(source, schema))
        say(f"schema {schema} is dropped on the source")


def drop_kept(source, schema):
    drop_schema(source, schema)
    source.execute("DELETE FROM snowflake_fleet.moving WHERE schema = %s AND side = 'source'", (schema,))
