"""What stands against a move: found before anything is done, each a sentence."""
import re
from shlex import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from .definition import called_as_superuser, description, differences, dump_of, lacking, made_aside, used_of_extensions
from .errors import Refused, in_bytes, printable, say
from .ids import GREATEST_IDS, arguments, id_columns, observed_columns
from .session import LOCK_MS

DISK = "CREATE TEMPORARY TABLE pg_temp.disk (line text) ON COMMIT DROP"
WORKERS = """SELECT pg_catalog.current_setting('max_logical_replication_workers')::int,
  (SELECT count(*) FROM pg_catalog.pg_subscription WHERE subenabled OR subname ~ '^snowflake_move_[0-9]+$'),
  (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type ~ 'logical replication|parallel worker' AND backend_type !~ 'launcher'),
  pg_catalog.current_setting('max_worker_processes')::int,
  pg_catalog.current_setting('max_replication_slots')::int,
  (SELECT count(*) FROM pg_catalog.pg_replication_origin)"""
SENDERS = """SELECT pg_catalog.current_setting('wal_level'),
  pg_catalog.current_setting('max_replication_slots')::int, (SELECT count(*) FROM pg_catalog.pg_replication_slots),
  pg_catalog.current_setting('max_wal_senders')::int, (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'walsender')"""
# A server that was promoted or restored may lack what it had applied and confirmed: the source does not send it again.
WHEREABOUTS = "SELECT (system_identifier, timeline, database, directory)::text FROM snowflake_fleet.whereabouts()"
# COPY by a role that policies apply to leaves out the rows that they hide, without a word.
HIDDEN = """SELECT t::text FROM snowflake_fleet.tables_of(%(schema)s) AS t JOIN pg_catalog.pg_class AS c ON c.oid = t
 WHERE relrowsecurity AND NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE rolname = %(role)s
       AND (rolsuper OR rolbypassrls OR NOT relforcerowsecurity AND pg_catalog.pg_has_role(r.oid, relowner, 'USAGE')))"""
FORCED = """SELECT t::text, pg_catalog.pg_get_userbyid(relowner) FROM snowflake_fleet.tables_of(%s) AS t JOIN pg_catalog.pg_class AS c ON c.oid = t
 WHERE relrowsecurity AND relforcerowsecurity"""
# Settings of the workers that apply rows, and how rows as text are read with what they are to have.
APPLIED = {"array_nulls": "on", "xmloption": "content", "default_transaction_read_only": "off"}
MEANS = {"on": ("true", "yes", "1"), "off": ("false", "no", "0"), "content": ()}
# With which functions that are called immutable give other results; as pg_settings spells them.
COMPUTED = ("bytea_output", "extra_float_digits", "quote_all_identifiers", "TimeZone", "timezone_abbreviations", "DateStyle", "IntervalStyle",
            "xmlbinary", "lc_monetary", "lc_time")
ALSO_UTC = ("etc/utc", "uct", "etc/uct", "zulu", "etc/zulu", "universal", "etc/universal")
# Columns of money, of arrays, domains and ranges of it, and of composite types of the schema.
MONEY = """WITH RECURSIVE money (type) AS (
  SELECT 'pg_catalog.money'::pg_catalog.regtype::oid
  UNION
  SELECT next.type FROM money, LATERAL (
    SELECT oid FROM pg_catalog.pg_type WHERE typbasetype = money.type OR typelem = money.type AND typcategory = 'A'
    UNION ALL SELECT rngtypid FROM pg_catalog.pg_range WHERE rngsubtype = money.type
    UNION ALL SELECT rngmultitypid FROM pg_catalog.pg_range WHERE rngsubtype = money.type) AS next (type))
SELECT pg_catalog.format('%%I.%%I', relname, attname)
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace
  JOIN pg_catalog.pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
 WHERE nspname = %s AND relkind IN ('r', 'p', 'c') AND atttypid IN (SELECT type FROM money) ORDER BY 1"""
# What a role has of a setting in this database: the nearest counts.
CONFIGURED = """SELECT s.name, coalesce(
  (SELECT pg_catalog.split_part(line, '=', 2)
     FROM pg_catalog.pg_db_role_setting CROSS JOIN pg_catalog.unnest(setconfig) AS line
    WHERE setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))
      AND setrole IN (0, (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = %(role)s))
      AND pg_catalog.lower(pg_catalog.split_part(line, '=', 1)) = pg_catalog.lower(s.name)
    ORDER BY setrole <> 0 DESC, setdatabase <> 0 DESC LIMIT 1),
  (SELECT f.setting FROM pg_catalog.pg_file_settings AS f WHERE pg_catalog.lower(f.name) = pg_catalog.lower(s.name) AND applied ORDER BY seqno DESC LIMIT 1),
  s.boot_val, s.reset_val),
  pg_catalog.quote_ident(%(role)s), pg_catalog.quote_ident(pg_catalog.current_database())
  FROM pg_catalog.pg_settings AS s WHERE s.name = ANY (%(names)s)"""
GENERATED = """SELECT pg_catalog.format('%%I.%%I', relname, attname) FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_class AS c ON c.oid = attrelid
 WHERE attgenerated <> '' AND attrelid IN (SELECT t FROM snowflake_fleet.tables_of(%s) AS t) ORDER BY 1"""
# What to_tsvector() and its like go by. The server's own hang on nothing, and may be altered.
TEXT_SEARCH = """SELECT cfgname::text, pg_catalog.md5(pg_catalog.string_agg(pg_catalog.concat_ws(' ', maptokentype, mapseqno, dictname, tmplname, dictinitoption), ', ' ORDER BY maptokentype, mapseqno))
  FROM pg_catalog.pg_ts_config AS c JOIN pg_catalog.pg_ts_config_map ON mapcfg = c.oid JOIN pg_catalog.pg_ts_dict AS d ON d.oid = mapdict
  JOIN pg_catalog.pg_ts_template AS t ON t.oid = dicttemplate
 WHERE cfgnamespace = 'pg_catalog'::pg_catalog.regnamespace GROUP BY cfgname ORDER BY cfgname"""
RANGES = """SELECT c.oid::pg_catalog.regclass::text FROM pg_catalog.pg_partitioned_table JOIN pg_catalog.pg_class AS c ON c.oid = partrelid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace
 WHERE nspname = %s AND partstrat = 'r' AND EXISTS (SELECT FROM pg_catalog.unnest(partcollation) AS sorted (by) WHERE by <> 0) ORDER BY 1"""
# Of the provider there are other columns from version to version.
LOCALE = r"""SELECT pg_catalog.concat_ws(' and ', pg_catalog.regexp_replace(datcollate, '\.utf-?8$', '.utf8', 'i'), pg_catalog.regexp_replace(datctype, '\.utf-?8$', '.utf8', 'i'),
  'encoding ' || pg_catalog.pg_encoding_to_char(encoding), 'provider ' || nullif(to_jsonb(d) ->> 'datlocprovider', 'c'), to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')
  FROM pg_catalog.pg_database AS d WHERE datname = pg_catalog.current_database()"""
PREPARED = "SELECT gid, database, owner FROM pg_catalog.pg_prepared_xacts ORDER BY prepared"


def of_source(move):
    source = move.source
    for (sentence,) in source.rows("SELECT snowflake_fleet.immovable(%s)", (move.schema,)):
        yield sentence
    level, slots, used_slots, senders, used_senders = source.row(SENDERS)
    if level != "logical":
        yield f"The source has wal_level = {level}, and it takes logical."
    # One of each for the move, and one for a table that is copied.
    if not move.has_slot():
        if slots - used_slots < 2:
            yield f"The source has {slots - used_slots} replication slots left of {slots}, and it takes 2: raise max_replication_slots."
        if senders - used_senders < 2:
            yield f"The source has {senders - used_senders} WAL senders left of {senders}, and it takes 2: raise max_wal_senders."
        # Also those of other tables and databases: the slot is not made before they have ended.
        for gid, database, owner in source.rows(PREPARED):
            yield f"Prepared transaction {quote(printable(gid))} of database {database} is open: role {owner} has to commit it or roll it back."
    other = source.row("SELECT database, plugin FROM pg_catalog.pg_replication_slots WHERE slot_name = %s", (move.slot,))
    if other is not None and (move.source_row() is None or other[0] != source.connection.info.dbname):
        yield f"There is a replication slot {move.slot} on the source, of no move: drop it with pg_drop_replication_slot()."


def of_target(move):
    target = move.target
    workers, subscriptions, processes, most, origins, used = target.row(WORKERS)
    if workers < 2:
        yield f"The target has max_logical_replication_workers = {workers}, and a move takes 2: one that applies, one that copies."
    elif most < 2:
        yield f"The target has max_worker_processes = {most}, and a move takes 2."
    # Moves wait for each other; what is not a move will not end.
    others = target.value("SELECT count(*) FROM pg_catalog.pg_subscription WHERE subenabled AND subname !~ '^snowflake_move_[0-9]+$'")
    if workers >= 2 and others + 2 > workers:
        yield f"The target has max_logical_replication_workers = {workers}, of which {others} subscriptions take one each; a move takes 2."
    if most >= 2 and processes >= most - 1 and not move.has_subscription():
        yield f"The target has {most - processes} background workers left of {most}, and it takes 2: raise max_worker_processes."
    if not move.has_subscription() and origins - used < 2:
        yield f"The target has {origins - used} replication origins left of {origins}, and it takes 2: raise max_replication_slots."
    there = {"role": "SELECT rolname FROM pg_catalog.pg_roles", "tablespace": "SELECT spcname FROM pg_catalog.pg_tablespace"}
    for kind, name in move.source.rows("SELECT * FROM snowflake_fleet.requirements_of(%s)", (move.schema,)):
        if (name,) not in target.rows(there[kind]):
            yield f"The target has no {kind} {name}, which the schema needs: run CREATE {kind.upper()} there."
    found = lacking(move, used_of_extensions(move))
    yield from found
    yield from of_settings(move)
    yield from of_locale(move)
    yield from of_computed(move)
    yield from of_row_security(move)
    row = move.target_row()
    if row is None or row.state in ("reserved", "arriving"):
        yield from of_timeouts(move)
    if row is not None and row.other_database != move.source_database:
        yield f"The target is waiting for shard {move.shard} from another server, {row.other}: end that move first."
    if row is not None and target.value(f"SELECT whereabouts IS DISTINCT FROM ({WHEREABOUTS}) FROM snowflake_fleet.moving WHERE shard = %s AND side = 'target'", (move.shard,)):
        yield "The target was promoted, restored or copied since the move began, and may lack rows that it had taken: run with --abort, then again."
    # It may have altered the schema, or another that its tables call, and is waited for before rows come.
    if row is None or row.state == "reserved":
        for gid, owner in target.rows("SELECT gid, owner FROM pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database() ORDER BY prepared"):
            yield f"Prepared transaction {quote(printable(gid))} is open on the target: role {owner} has to commit it or roll it back."
    if row is None and move.has_subscription():
        yield f"The target has a subscription {move.name}, of no move: drop it."
    if not found and (row is None or row.state == "reserved") and move.has_schema(target):
        with target.transaction():
            found = list(of_premade(move, dump_of(move)))
        yield from found


def configured(move, names):
    """Of the role as which the target's server connects to the source."""
    return move.source.rows(CONFIGURED, {"role": conninfo_to_dict(move.source_for_target).get("user"), "names": names})


def applied(move, names):
    """Of the subscription's workers: what it is after the next reload, and what it is now, be it by the server's command line or environment."""
    role = move.target.value("SELECT CURRENT_USER::text")
    values = {name: [value] for name, value, _, _ in move.target.rows(CONFIGURED, {"role": role, "names": names})}
    for name, value in move.target.rows("SELECT name, reset_val FROM pg_catalog.pg_settings WHERE name = ANY (%s)", (names,)):
        values[name].append(value)
    return values


def of_settings(move):
    """With which rows would arrive as others, or not at all: the workers that apply them have what the role and the database have."""
    there = applied(move, [*APPLIED, "lc_monetary", "client_encoding"])
    database = move.target.connection.info.dbname
    for name, needed in APPLIED.items():
        wrong = [value for value in there[name] if value.lower() not in (needed, *MEANS[needed])]
        if wrong:
            yield f"The target has {name} = {wrong[0]} for its database or role, and rows take {needed}: run ALTER DATABASE {quote(database)} SET {name} = {needed} there."
    encoding = move.target.value("SELECT pg_catalog.current_setting('server_encoding')")
    wrong = [value for value in there["client_encoding"] if move.target.value(
        "SELECT pg_catalog.pg_char_to_encoding(%s) NOT IN (pg_catalog.pg_char_to_encoding(%s), pg_catalog.pg_char_to_encoding('SQL_ASCII'))", (value, encoding))]
    if wrong:
        yield (f"The target has client_encoding = {wrong[0]} for its database or role, in which its workers would read rows of {encoding}: "
               f"run ALTER DATABASE {quote(database)} SET client_encoding = {encoding} there, or the same of the role.")
    columns = [column for column, in move.source.rows(MONEY, (move.schema,))]
    for _, value, _, _ in configured(move, ["lc_monetary"]) if columns else []:
        wrong = [other for other in there["lc_monetary"] if other != value]
        if wrong:
            yield (f"Columns of type money ({', '.join(columns[:3])}) would arrive as other amounts: the source has lc_monetary = {value}, the target {wrong[0]}. "
                   f"Run ALTER DATABASE {quote(database)} SET lc_monetary = {quote(value)} there.")


def of_locale(move):
    """What is generated is computed on the target again, lower() and upper() by the locale of its database. Texts are sorted by it."""
    generated = [column for column, in move.source.rows(GENERATED, (move.schema,))]
    ranges = [table for table, in move.source.rows(RANGES, (move.schema,))]
    if generated or ranges:
        here, there = (session.value(LOCALE) for session in (move.source, move.target))
        what = (f"Generated columns ({', '.join(generated[:3])}) might get other values" if generated
                else f"Rows of {', '.join(ranges[:3])} might belong to other partitions")
        if here != there:
            yield (f"{what}: the source's database has LC_COLLATE and LC_CTYPE {here}, the target's {there}. Make a database there with the source's.")


def of_computed(move):
    """What is generated from what a number, a time, bytes or a name are as text, or from the words of a text."""
    generated = [column for column, in move.source.rows(GENERATED, (move.schema,))]
    if not generated:
        return
    there = applied(move, list(COMPUTED))
    for name, value, _, _ in configured(move, list(COMPUTED)):
        wrong = [other for other in there[name] if meaning(name, other) != meaning(name, value)]
        if wrong:
            yield (f"Generated columns ({', '.join(generated[:3])}) might get other values: the source has {name} = {value}, the target {wrong[0]}. "
                   f"Run ALTER DATABASE {quote(move.target.connection.info.dbname)} SET {name} = {quote(value)} there.")
    here, there = (dict(session.rows(TEXT_SEARCH)) for session in (move.source, move.target))
    for name, words in here.items():
        if there.get(name, words) != words:
            yield (f"Generated columns ({', '.join(generated[:3])}) might get other values: text search configuration {name} is not the same on both servers: "
                   "ALTER TEXT SEARCH CONFIGURATION there.")


def meaning(name, value):
    """One text for what means the same; what it does not know is itself, however it is written."""
    if name == "TimeZone" and value.lower() in ALSO_UTC:
        return "utc"
    if name == "extra_float_digits" and re.fullmatch(r"0*[1-9][0-9]*", value):    # whatever is above 0 is the shortest text that is exact
        return "1"
    return next((word for word, others in MEANS.items() if value.lower() in others), value.lower())


def of_timeouts(move):
    """What would end the copy of a table, again and again."""
    for name, value, role, database in configured(move, ["statement_timeout", "transaction_timeout"]):
        if not re.fullmatch(r"0+(\.0*)?\s*[a-z]*", value.strip()):
            yield (f"The source ends what takes longer than {name} = {value}, the copy of a table as well: "
                   f"run ALTER ROLE {role or '(that of --source-for-target)'} IN DATABASE {database} SET {name} = 0 there.")


def of_row_security(move):
    """Rows that a policy hides from who copies them, or refuses to who applies changes: by the attributes that roles have there."""
    role = conninfo_to_dict(move.source_for_target).get("user")
    for (table,) in move.source.rows(HIDDEN, {"schema": move.schema, "role": role}):
        who = f"role {role}" if role else "a role that it does not name"
        yield (f"Table {table} has row security, and --source-for-target copies it as {who}, which may not see all rows: "
               "name a role there that has BYPASSRLS.")
    # From version 16 on the target applies as the owner of the table.
    if move.target.version >= 160000:
        for table, owner in move.source.rows(FORCED, (move.schema,)):
            if move.target.value("SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = %s AND NOT rolsuper AND NOT rolbypassrls)", (owner,)):
                yield (f"Table {table} forces row security on its owner, role {owner}, as whom the target applies changes: "
                       "ALTER TABLE ... NO FORCE ROW LEVEL SECURITY.")


class Swapped(Exception):
    """The locks are on other tables than those that have the names now."""


def require_locked(session, move):
    """While a lock is waited for, a schema may be renamed, and back."""
    if session.value("SELECT EXISTS (SELECT FROM snowflake_fleet.tables_of(%s) AS t WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_locks "
                     "WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation' AND relation = t AND granted AND mode ~ '^Share(UpdateExclusive|RowExclusive)Lock$'))",
                     (move.schema,)):
        raise Swapped


def of_premade(move, script):
    """Within a transaction of the target's. A schema that is on the target already: the same as the one that the source's dump would make there, and empty."""
    target, tables = move.target, move.tables(move.target)
    try:
        if tables:
            # Nobody writes to them, makes triggers and indexes, or puts views in their place, before the transaction ends.
            target.execute("SELECT pg_catalog.set_config('lock_timeout', %s, true)", (str(LOCK_MS),))
            target.execute(sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(sql.SQL(", ").join(tables)))
            target.execute("SELECT pg_catalog.set_config('lock_timeout', '0', true)")
            require_locked(target, move)
    except psycopg.errors.LockNotAvailable:
        yield f"A table of schema {move.schema} is locked on the target: it was not had within {LOCK_MS} ms."
        return
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, Swapped):
        yield f"Schema {move.schema} was altered on the target during the check: run this again."
        return
    try:
        expected = made_aside(move, script)
    except psycopg.Error as error:
        yield f"The schema cannot be made on the target: {str(error).strip()}"
        return
    found = differences(expected, description(move, move.target, True)) + differences(
        description(move, move.source, False), description(move, move.target, False))
    if found:
        yield f"The target has a schema {move.schema} that is not as that of the source: drop it there, and it is made."
        yield from sorted(set(found))
        return
    # The plan of a query calls what the indexes of its table have, and of the table's heirs.
    found = called_as_superuser(move) + [
        sentence for sentence, in target.rows("SELECT * FROM snowflake_fleet.attached_from_outside(%s)", (move.schema,))]
    if found or tables != move.tables(target):
        yield from found or [f"Schema {move.schema} was altered on the target during the check: run this again."]
        return
    for (table,) in target.rows("SELECT t::text FROM snowflake_fleet.tables_of(%s) AS t", (move.schema,)):
        if target.value(sql.SQL("SELECT EXISTS (SELECT FROM ONLY {})").format(sql.SQL(table))):
            yield f"The target has rows in table {table}: truncate it, or drop the schema there."


def of_both(move):
    row = move.source_row()
    if re.fullmatch(r"shard_[0-9]+", move.schema) and move.schema != f"shard_{move.shard}":
        yield f"Schema {move.schema} is not that of shard {move.shard}."
    if row is not None and row.other_database != move.target_database:
        yield f"Shard {move.shard} is on its way to another server, {row.other}: end that move first, or take it back with --abort."
    layout = [s.value("SELECT (bits, tick_ms, epoch, regions)::text FROM snowflake.layout") for s in (move.source, move.target)]
    if layout[0] != layout[1]:
        yield f"The layouts differ: the source has {layout[0]}, the target {layout[1]}."
        return
    regions = []
    for session in (move.source, move.target):
        try:
            regions.append(session.value("SELECT snowflake.region_of(snowflake.next_id(%s))", (move.shard,)))
        except psycopg.Error as error:
            if session is move.target:
                yield f"The target cannot mint for shard {move.shard}: {error.diag.message_primary or error}"
            regions.append(None)
    if regions[0] is not None and regions[0] == regions[1]:
        yield f"Both servers mint ids of shard {move.shard} in region {regions[0]}: the same ids."


def of_ids(move):
    """What the target would not observe: ids of a clock that is ahead, keys that are no ids, what cannot be looked up at once.
    Under locks: whoever owns a table could replace it by a view, or give it an index of his functions or heirs, which the plan
    of a superuser's query calls."""
    source = move.source
    before = source.rows("SELECT t::oid FROM snowflake_fleet.tables_of(%s) AS t", (move.schema,))
    tables = move.tables(source)
    source.begin()
    try:
        row = move.source_row()
        if row is None or row.state == "begun":    # then the guard keeps them as they are
            source.execute("SELECT pg_catalog.set_config('lock_timeout', %s, true)", (str(LOCK_MS),))
            source.execute(sql.SQL("LOCK TABLE {} IN SHARE UPDATE EXCLUSIVE MODE").format(sql.SQL(", ").join(tables)))
            require_locked(source, move)
        # Whoever held a lock has done by now what he was about.
        found = [sentence for sentence, in source.rows("SELECT * FROM snowflake_fleet.immovable(%s)", (move.schema,))]
        if found or before != source.rows("SELECT t::oid FROM snowflake_fleet.tables_of(%s) AS t", (move.schema,)):
            yield from found or [f"Schema {move.schema} was altered during the check: run this again."]
        else:
            yield from list(of_greatest_ids(move))
    except psycopg.errors.LockNotAvailable:
        source.rollback()
        yield (f"A table of schema {move.schema} is locked, or vacuumed: it was not had within {LOCK_MS} ms. Locks are held by "
               + ("; ".join(source.holders([move.schema])) or "somebody who has gone since") + ".")
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, Swapped):
        yield f"Schema {move.schema} was altered during the check: run this again."
    finally:
        source.rollback()


def of_greatest_ids(move):
    columns = id_columns(move)
    for named in sorted(set(move.options.not_ids) - {column.name for column in columns}):
        yield f"--not-ids {quote(named)} names no column of schema {move.schema} that mints or that a bigint key begins with: write TABLE.COLUMN, as SQL would quote them."
    observed = observed_columns(move, columns)
    for column in observed:
        if not column.is_indexed:
            yield (f"Column {column.name} mints, and no B-tree index begins with it, so its greatest id cannot be found while writers wait: "
                   f"make one, or if the target need not mint above its ids, say --not-ids {quote(column.name)}.")
    for name, number in move.source.rows(GREATEST_IDS, arguments([column for column in observed if column.is_indexed])):
        # By the clock as it is afterwards: ids are minted while the greatest are looked for.
        try:
            is_past = move.target.value("SELECT snowflake.time_of(%s) <= pg_catalog.clock_timestamp() + pg_catalog.current_setting('snowflake.max_lead')::interval", (number,))
        except psycopg.DataError:
            is_past = False
        if not is_past:
            yield (f"The greatest value of {name}, {number}, would be an id of the future, and the target would mint below the ids that move there: "
                   f"wait until it is past; or if the column has no ids, say --not-ids {quote(name)}.")


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


def disk(move):
    """Free disk where the target's data are, if its server can say; and what there is to copy."""
    size = move.source.value("SELECT sum(pg_catalog.pg_total_relation_size(t)) FROM snowflake_fleet.tables_of(%s) AS t", (move.schema,)) or 0
    free = None
    target = move.target
    target.begin()
    try:
        target.execute(DISK)
        target.execute("COPY pg_temp.disk FROM PROGRAM 'df -Pk . | tail -n 1'")
        free = int(target.value("SELECT line FROM pg_temp.disk").split()[3]) * 1024
    except (psycopg.DatabaseError, IndexError, ValueError, AttributeError):
        pass
    finally:
        target.rollback()
    return int(size), free


def check(move, first):
    """Raises Refused with all sentences. `first`: nothing has been copied yet."""
    before = move.source.value("SELECT other FROM snowflake_fleet.moving WHERE shard = %s AND side = 'target'", (move.shard,))
    if before is not None:
        raise Refused(f"the move of shard {move.shard} from {before} to {move.from_name} has not ended\n"
                      f"  Run that one again, with --to {quote(move.from_name)}.")
    sentences = list(of_both(move)) + list(of_source(move)) + (list(of_target(move)) if move.has_schema(move.source) else [])
    # Queries of tables, after it is known what their plans call.
    if not sentences:
        sentences += list(of_ids(move))
    if not sentences and first:
        sentences += list(connects(move))
        size, free = disk(move)
        if free is not None and free < size:
            sentences.append(f"The target has {in_bytes(free)} of disk left, and there are {in_bytes(size)} to copy.")
        if not sentences and move.options.check:
            say(f"{in_bytes(size)} to copy" + ("" if free is None else f", {in_bytes(free)} of disk left on the target"))
    if sentences:
        sentences.sort()
        raise Refused(f"shard {move.shard} cannot be moved\n" + "\n".join(f"  {sentence}" for sentence in sentences))
