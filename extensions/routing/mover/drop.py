"""Drops a schema, object by object, and never what hangs on it from elsewhere: no CASCADE."""
import psycopg
from psycopg import sql

from .errors import Refused

# Dropped by themselves; the rest are parts of these. Tables and views refer to each other within their kind, and go in
# one statement each.
TOGETHER = """
SELECT relname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace
 WHERE nspname = %s AND relkind = ANY (%s) AND NOT relispartition AND NOT EXISTS (
       SELECT FROM pg_catalog.pg_depend AS d WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i', 'e')
          AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND c.relkind = 'S')"""
IDENTITY = """
SELECT i.type, i.identity FROM snowflake_fleet.contents_of(%s) AS c, pg_catalog.pg_identify_object(c.classid, c.objid, 0) AS i
 WHERE i.type = ANY (%s) AND NOT EXISTS (
       SELECT FROM pg_catalog.pg_depend AS d WHERE d.classid = c.classid AND d.objid = c.objid AND d.deptype IN ('i', 'e'))"""
KINDS = {"function": "FUNCTION", "procedure": "PROCEDURE", "aggregate": "AGGREGATE", "type": "TYPE", "operator": "OPERATOR",
         "operator class": "OPERATOR CLASS", "operator family": "OPERATOR FAMILY", "collation": "COLLATION", "statistics object": "STATISTICS"}


def statements(session, schema):
    for kind, kinds in (("VIEW", ["v"]), ("TABLE", ["r", "p"]), ("SEQUENCE", ["S"])):
        found = [sql.Identifier(schema, name) for name, in session.rows(TOGETHER, (schema, kinds))]
        if found:
            yield sql.SQL("DROP {} {} RESTRICT").format(sql.SQL(kind), sql.SQL(", ").join(found))
    for kind, identity in session.rows(IDENTITY, (schema, list(KINDS))):
        # The server's own quoting: an identity is what DROP takes.
        yield sql.SQL("DROP {} {} RESTRICT").format(sql.SQL(KINDS[kind]), sql.SQL(identity))


def drop_schema(session, schema):
    """In the caller's transaction: all of it, or an error that names what hangs on it."""
    reason = None
    while True:
        progress = False
        for statement in list(statements(session, schema)):
            session.execute("SAVEPOINT one")
            try:
                session.execute(statement)
                progress = True
            except (psycopg.errors.DependentObjectsStillExist, psycopg.errors.UndefinedObject, psycopg.errors.UndefinedFunction) as error:
                reason = error
                session.execute("ROLLBACK TO one")
            session.execute("RELEASE one")
        if not progress:
            break
    session.execute("SAVEPOINT one")
    try:
        session.execute(sql.SQL("DROP SCHEMA {} RESTRICT").format(sql.Identifier(schema)))
    except psycopg.errors.DependentObjectsStillExist as error:
        reason = reason or error
        detail = (reason.diag.message_detail or "").strip()
        raise Refused(f"{session.label}: schema {schema} is not dropped, for something else hangs on it\n  {detail}\n  Drop that first, or keep the schema.") from None
