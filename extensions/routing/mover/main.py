"""Reads the command line, and runs the steps of a move."""
import argparse
import signal
import sys

import psycopg

from . import VERSION
from .check import check
from .copying import clear, copy, try_out
from .errors import Refused, Stale, complain, say, words
from .fence import BEFORE_THE_FENCE, resume, take_over
from .finish import abort, drop_source, finish, forget_side
from .endpoints import Move, is_elsewhere

ABOUT = """Moves schema shard_N from one server to another by logical replication, with a pause for its writers of some
milliseconds. TARGET and SOURCE are connection strings ('host=db2 dbname=app'), or, with --control, names of the map in
the control database; SOURCE is then where the map has the shard. The map is changed at the moment at which the target
takes over, and pushed to all its servers. On the source the schema is renamed and stays, fenced, until --drop-source.

Run it again after a crash, its own or a server's, with the same arguments: it continues from there. If a server is gone
for good, --forget cleans the other one.
"""
AFTER = """Connects as superuser, with PGHOST and its like as defaults; passwords belong into a passfile or a service,
and are refused in connection strings. Needs extensions snowflake and snowflake_routing in both databases.
Exit status: 0 done, 1 failed, 2 not as called."""


def arguments():
    parser = argparse.ArgumentParser(prog="snowflake-move-shard", description=ABOUT, epilog=AFTER, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"snowflake-move-shard {VERSION}")
    add = parser.add_argument
    add("--shard", type=int, default=-1, metavar="N")
    add("--to", dest="target", metavar="TARGET")
    add("--from", dest="source", metavar="SOURCE")
    add("--control", metavar="CONNINFO", help="connection string of the control database, which has the map")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="only show whether the shard can be moved")
    what.add_argument("--abort", action="store_true", help="cancel a move that has not changed the map")
    what.add_argument("--forget", choices=["source", "target"],
                      help="end a move only on this side, if the other server is permanently lost")
    what.add_argument("--until", choices=["copied"],
                      help="stop when the target has caught up, before the pause; run the command again to continue")
    what.add_argument("--drop-source", action="store_true", help="drop the schema that the source has kept, if no "
                      "other object depends on it and the target has taken over")
    add("--force", action="store_true", help="finish a move although the rows differ or were not counted; with "
        "--drop-source: although the server that took over cannot be reached, or has no record of the take-over")
    add("--verify", action="store_true", help="after the move, compare hashes of all rows, not only the number of rows")
    add("--schema", metavar="NAME", help="name of the schema, if it is not shard_N")
    add("--source-for-target", metavar="CONNINFO",
        help="connection string with which the target connects to the source, if this program uses another one")
    add("--lock-timeout", type=int, default=300, metavar="MS", help="how long writers wait in one attempt (300)")
    add("--level-timeout", type=int, default=2000, metavar="MS", help="how long the target may need to catch up (2000)")
    add("--shared-timeout", type=int, default=10, metavar="SECONDS",
        help="how long writers of referenced tables in other schemas wait while rows are compared (10)")
    add("--wait", type=int, default=30, metavar="SECONDS", help="how long to wait for sessions of a killed program, "
        "for a control database that does not answer, and for each server to receive the map (30)")
    options = parser.parse_args()
    if options.shard < 0 or not (options.source or options.control or options.forget == "target"):
        parser.error("pass --shard, and --from or --control")
    elif options.target is None and not options.drop_source and options.forget != "source":
        parser.error("pass --to")
    elif options.source is None and (options.drop_source or options.forget == "source"):
        parser.error("pass --from")
    elif options.wait < 0 or min(options.lock_timeout, options.level_timeout, options.shared_timeout) < 1:
        parser.error("timeouts must be at least 1, and --wait at least 0")
    return options


def proceed(move):
    """Copies the rows, as often as necessary, and then lets the target take over."""
    while True:
        try:
            move.stands = BEFORE_THE_FENCE
            copy(move)
            if move.options.until:
                move.stands = None
                return say("the target has caught up")
            take_over(move)
            return finish(move)
        except Stale as error:
            say(f"{error}: the copy starts again")
            clear(move)


def run(move):
    options = move.options
    if options.control is not None:
        move.open_control()
    if options.forget == "target":
        move.open_target()
        return forget_side(move)
    if options.forget or options.drop_source:
        move.open_source()
        return forget_side(move) if options.forget else drop_source(move)
    move.open_target()
    if move.control is not None and not has_source(move):
        return say(f"shard {move.shard} is on the target")
    move.open_source()
    if options.abort:
        return abort(move)
    if move.is_flipped():
        if not options.check:
            return finish(move)
        return say(f"shard {move.shard} is on the target: run this command without --check to finish the move")
    row = move.source_row()
    if row is not None and row.state == "fenced" and not options.check:
        # A shard is fenced (closed for writes) to move to one target server. Only this target server can have a record
        # that it has taken over the shard.
        if is_elsewhere(row, move.target_identity):
            raise Refused(f"shard {move.shard} is fenced for a move to another server, {row.other}\n  Run with --to "
                          "and that server. If that server is permanently lost, run with --forget source.")
        resume(move)
        return finish(move)
    check(move)
    if not options.check:
        return proceed(move)
    if row is None and move.target_row() is None:
        try_out(move)
    return say(f"shard {move.shard} can be moved")


def has_source(move):
    """Finds the source of the move in the map. If the map already assigns the shard to the target, the source is in the
    target's record of the interrupted move. Returns false if no move is left to finish."""
    where = move.map_says()
    row = move.target_row() if where == move.to_name else None
    move.from_name = move.from_name or (row.other if row else where)
    if where != move.to_name or row or move.options.source:
        return True
    if move.options.abort:
        raise Refused(f"shard {move.shard} is already on the target, and the move has ended\n  Move the shard back.")
    if not move.has_schema(move.target, move.schema):
        raise Refused(f"in the shard map, shard {move.shard} is on {move.to_name}, which has no schema {move.schema}\n"
                      "  Correct the map, or pass the server that has the schema with --from.")
    return False


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)    # as Ctrl-C
    move = Move(options)
    try:
        run(move)
        return 0
    except Refused as error:
        complain(str(error))
    except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable) as error:
        complain(f"{words(error)}\n  The program may have waited for the lock of another session, such as a migration. "
                 "See pg_locks, and run this command again.")
    except psycopg.Error as error:
        gone = [f"{session.label}: " for session in (move.control, move.source, move.target)
                if session is not None and session.connection.broken]
        complain("".join(gone) + words(error))
    except KeyboardInterrupt:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        complain("interrupted")
    if move.stands:
        complain(move.stands)
    for session in (move.counting, move.probe, move.source, move.target, move.control):
        if session is not None:
            session.close()
    return 1


if __name__ == "__main__":
    sys.exit(main())
