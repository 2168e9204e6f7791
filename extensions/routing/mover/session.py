"""A connection to PostgreSQL that limits every wait, and uses the settings of this program instead of the settings of
the database."""
import contextlib
import os
import signal
import time

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from .errors import Refused, say

LOCK_MS = 5000        # lock_timeout in ms for locks that block no writer
# Default options of a connection, which the connection string can override.
KEEPALIVE = {"connect_timeout": "10", "keepalives": "1", "keepalives_idle": "10", "keepalives_interval": "5",
             "keepalives_count": "3", "tcp_user_timeout": "30000"}
SECONDS = 60          # the default limit for a statement
GRACE = 10            # A server must report a timeout within this number of seconds.
SETTINGS = {
    "client_encoding": "UTF8",
    "search_path": "", "client_min_messages": "warning", "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off", "idle_session_timeout": "0",
    # If the program or the network stops responding, the server ends the session and releases the locks of the session.
    "idle_in_transaction_session_timeout": "60s", "client_connection_check_interval": "1s", "tcp_user_timeout": "20s",
    "tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
    "lock_timeout": str(LOCK_MS), "row_security": "off", "jit": "off",
    "standard_conforming_strings": "on", "quote_all_identifiers": "off", "array_nulls": "on", "xmloption": "content",
    # The session plans each statement before the program stops the writers of the shard. PostgreSQL uses the generic
    # plans again, and does not plan statements while writers wait.
    "plan_cache_mode": "force_generic_plan",
    # A result that the program has reported must survive a crash, also on synchronous standbys.
    "synchronous_commit": "on",
    # The program compares rows of two servers as text, so the two sessions need equal output formats.
    "datestyle": "ISO, YMD", "intervalstyle": "postgres", "timezone": "UTC", "extra_float_digits": "1",
    "bytea_output": "hex"}
# Describes the sessions that hold locks. A lock without a session belongs to a prepared transaction.
HOLDERS = """
SELECT DISTINCT CASE WHEN a.pid IS NULL THEN 'a prepared transaction'
                ELSE pg_catalog.format('process %%s (%%s, since %%s)', a.pid, usename,
                                       pg_catalog.date_trunc('second', xact_start)) END
  FROM pg_catalog.pg_locks AS l LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
 WHERE locktype = 'relation' AND granted AND mode <> 'AccessShareLock' AND l.relation IN (
       SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace
        WHERE nspname = ANY (%s))
   AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
   AND a.application_name IS DISTINCT FROM 'snowflake-move-shard' LIMIT 5"""
SECRET = ("password", "sslpassword")
# libpq would read session settings from the following environment variables.
for variable in ("PGOPTIONS", "PGCLIENTENCODING", "PGDATESTYLE", "PGTZ", "PGGEQO"):
    os.environ.pop(variable, None)


class Silent(psycopg.OperationalError):
    """The server did not answer within the time limit."""


def parse(conninfo, what):
    """Returns the options of a connection string, which may be a URI. Error messages do not contain the string, because
    it may contain a password."""
    try:
        options = conninfo_to_dict(conninfo)
    except psycopg.Error:
        raise Refused(f"{what} is not a valid connection string of libpq") from None
    if any(options.get(option) for option in SECRET):
        raise Refused(f"{what} contains a password, which process lists and catalogs would show\n  Put the password "
                      "into a passfile, or use a service.")
    return options


@contextlib.contextmanager
def alarm(seconds, label):
    """Raises Silent if the body does not end in time, because timeouts of the server do not limit waits for the
    network. Raises Silent again every second, because the cleanup may wait for the same server."""
    def ring(_signal, _frame):
        raise Silent(f"{label} does not answer")
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def lost(error):
    """Returns whether the error broke the connection. The server may or may not have run the last statement."""
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "080")[:3] in ("080", "57P")


class Session:
    def __init__(self, label, conninfo):
        self.label, self.conninfo = label, conninfo
        options = {**KEEPALIVE, **parse(conninfo, f"the connection string of {label}"),
                   "application_name": "snowflake-move-shard"}
        try:
            with alarm(45, label):
                self.connection = psycopg.connect(make_conninfo(**options), autocommit=True, prepare_threshold=2)
        except psycopg.Error as error:
            raise psycopg.OperationalError(f"{label}: {str(error).strip()}") from None
        self.limit = None
        self.version = self.connection.info.server_version
        settings = dict(SETTINGS, transaction_timeout="0") if self.version >= 170000 else SETTINGS
        self.connection.execute("SELECT " + ", ".join(["pg_catalog.set_config(%s, %s, false)"] * len(settings)),
                                [text for setting in settings.items() for text in setting])

    def execute(self, query, params=None, seconds=None):
        """`seconds` limits the statement. If it is None, the transaction's last limit applies, or SECONDS."""
        if seconds is None:
            seconds = self.limit if self.in_transaction() and self.limit is not None else SECONDS
        if self.limit != seconds:
            self.connection.execute("SELECT pg_catalog.set_config('statement_timeout', %s, false)",
                                    (str(int(seconds * 1000)),))
            self.limit = seconds
        with alarm(seconds + GRACE, self.label):
            return self.connection.execute(query, params)

    def rows(self, query, params=None, seconds=None):
        return self.execute(query, params, seconds).fetchall()

    def row(self, query, params=None, seconds=None):
        return self.execute(query, params, seconds).fetchone()

    def value(self, query, params=None, seconds=None):
        row = self.row(query, params, seconds)
        return row[0] if row else None

    def column(self, query, params=None):
        return [row[0] for row in self.rows(query, params)]

    def set_local(self, name, value, seconds=None):
        """Changes a setting until the end of the transaction."""
        self.execute("SELECT pg_catalog.set_config(%s, %s, true)", (name, str(value)), seconds=seconds)

    def in_transaction(self):
        return self.connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS

    def begin(self, seconds=None):
        self.execute("BEGIN ISOLATION LEVEL READ COMMITTED", seconds=seconds)

    def commit(self):
        self.execute("COMMIT")

    def rollback(self):
        """Rolls back and raises no error, because the server also rolls back if the connection is broken."""
        with contextlib.suppress(psycopg.Error), alarm(SECONDS, self.label):
            self.connection.execute("ROLLBACK")
        # ROLLBACK also resets settings that were changed with SET LOCAL.
        self.limit = None

    @contextlib.contextmanager
    def transaction(self):
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.rollback()
            raise

    def patiently(self, what, lock_timeout, work, seconds=600):
        """Runs work() in a transaction, and tries again if a lock is not free. Each attempt waits only for
        `lock_timeout` ms, because other sessions wait behind its lock requests."""
        until = time.monotonic() + seconds
        attempt = 0
        while True:
            attempt += 1
            try:
                with self.transaction():
                    self.set_local("lock_timeout", lock_timeout)
                    return work()
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                if time.monotonic() > until:
                    raise Refused(f"{self.label}: {what}: other sessions have held locks for {seconds} s") from None
            if attempt % 20 == 1:
                say(f"{self.label}: {what}: waiting for locks of other sessions, attempt {attempt}")
            time.sleep(0.5)

    def holders(self, schemas):
        """Describes the sessions that hold locks on relations of the schemas, without the sessions of this program. The
        locks of SELECT (ACCESS SHARE) are left out."""
        return self.column(HOLDERS, (schemas,))

    def close(self):
        with contextlib.suppress(Exception):
            self.connection.close()

