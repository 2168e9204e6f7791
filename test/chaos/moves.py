#!/usr/bin/python3
"""Moves a shard under faults, and reports in TAP. See scripts/chaos."""
import argparse
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import psycopg

SHARD, SCHEMA = 5, "shard_5"
HANGS = 150    # seconds; the timeouts of snowflake-move-shard are shorter, so a call that takes longer has hung
RETRIED = ("40001", "40P01", "42P01", "3F000", "55P03")


def report(good, name, faults=()):
    report.number += 1
    report.failed += not good
    print(f"{'ok' if good else 'not ok'} {report.number} - {name}", flush=True)
    for fault in [] if good else list(faults)[:10]:
        print(f"#   {fault}", flush=True)


report.number = report.failed = 0


class Server:
    def __init__(self, directory, name, number):
        self.name, self.data, self.log = name, f"{directory}/{name}", f"{directory}/{name}.log"
        self.conninfo = f"host={directory} port={5600 + number} dbname=postgres user=chaos"
        subprocess.run(["initdb", "-D", self.data, "-A", "trust", "-U", "chaos", "--no-sync", "--locale=C.UTF-8", "-E", "UTF8"],
                       check=True, stdout=subprocess.DEVNULL)
        with open(f"{self.data}/postgresql.conf", "a", encoding="utf8") as file:
            # Data that servers have written survives without fsync, because the test stops only servers, not the
            # machine.
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{directory}'\nport = {5600 + number}\nfsync = off\n"
                       f"shared_preload_libraries = 'snowflake'\nsnowflake.region = {number}\nwal_level = logical\n"
                       "wal_retrieve_retry_interval = 200ms\nmax_prepared_transactions = 5\n")
        self.start()
        self.run("CREATE EXTENSION snowflake_shards CASCADE; CREATE EXTENSION snowflake_routing CASCADE")

    def start(self):
        subprocess.run(["pg_ctl", "-s", "-w", "-D", self.data, "-l", self.log, "start"], check=True)

    def crash(self):
        subprocess.run(["pg_ctl", "-s", "-w", "-D", self.data, "-m", "immediate", "stop"], check=True)

    def snapshot(self):
        """Stops the server cleanly, copies its data files like a snapshot of its disk, and starts it again."""
        copy = f"{self.data}.snapshot"
        shutil.rmtree(copy, ignore_errors=True)
        subprocess.run(["pg_ctl", "-s", "-w", "-D", self.data, "-m", "fast", "stop"], check=True)
        subprocess.run(["cp", "-a", self.data, copy], check=True)
        self.start()

    def put_back(self):
        self.crash()
        shutil.rmtree(self.data)
        os.rename(f"{self.data}.snapshot", self.data)
        self.start()

    def run(self, query):
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else None


def write(control, number, seed, journal_name, stop):
    """Simulates a client that writes to the server in the map, and records for each change whether it was committed,
    was refused, or is in doubt."""
    choose = random.Random(seed * 100 + number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connections, rows, count = {}, {}, 0

    def connection(conninfo):
        found = connections.get(conninfo)
        if found is None or found.closed or found.broken:
            found = connections[conninfo] = psycopg.connect(conninfo, autocommit=True, connect_timeout=5)
            found.execute("SET statement_timeout = '30s'")
        return found

    with open(journal_name, "w", buffering=1, encoding="utf8") as journal:
        def commit(query, params):
            """Returns the rows of the statement, or None if the client cannot know whether it was committed."""
            while True:
                try:
                    row = connection(control).execute("SELECT conninfo FROM snowflake_fleet.map WHERE shard = %s", (SHARD,)).fetchone()
                    there = connection(row[0])
                except psycopg.Error:
                    time.sleep(0.05)
                    continue
                try:
                    if number % 2:    # every second client uses BEGIN with REPEATABLE READ, and COMMIT
                        there.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                        result = there.execute(query, params).fetchall()
                        there.execute("COMMIT")
                        return result
                    return there.execute(query, params).fetchall()
                except psycopg.Error as error:
                    if error.sqlstate in RETRIED or error.sqlstate == "57014":
                        there.rollback()
                        time.sleep(0.005)
                        continue
                    return None

        while not os.path.exists(stop):
            time.sleep(0.01)
            if os.path.exists(f"{stop}.pause"):
                open(f"{stop}.paused{number}", "w", encoding="utf8").close()
                continue
            what = choose.random()
            if what < 0.5 or not rows:
                count += 1
                key = f"w{number}_{count}"
                result = commit(f"INSERT INTO {SCHEMA}.users (name) VALUES (%s) RETURNING id", (f"{key}:0",))
                journal.write(f"insert {key} 0 {'doubt' if result is None else result[0][0]}\n")
                if result is not None:
                    rows[key] = [result[0][0], 0]
                continue
            key = choose.choice(list(rows))
            row_id, version = rows[key]
            if what < 0.85:
                result = commit(f"UPDATE {SCHEMA}.users SET name = %s WHERE id = %s RETURNING id", (f"{key}:{version + 1}", row_id))
                action, rows[key][1] = "update", version + 1
            else:
                result = commit(f"DELETE FROM {SCHEMA}.users WHERE id = %s RETURNING id", (row_id,))
                action = "delete"
            journal.write(f"{action} {key} {version + 1} {'doubt' if result is None else 'gone' if not result else row_id}\n")
            if result is None or not result or action == "delete":
                del rows[key]


def expected(journals):
    """Returns the names that each key may have (None if the row may be missing), and faults in the journals."""
    may, ids, wrong = {}, {}, []
    for name in journals:
        with open(name, encoding="utf8") as journal:
            for line in journal:
                if not line.endswith("\n"):
                    continue
                what, key, version, result = line.split()
                new = None if what == "delete" else f"{key}:{version}"
                before = may.get(key, {None})
                if result == "gone":
                    wrong.append(f"missing when it was to be changed: {key}")
                may[key] = before | {new} if result == "doubt" else {new}
                if what == "insert" and result != "doubt":
                    if result in ids:
                        wrong.append(f"id {result} twice: {key} and {ids[result]}")
                    ids[result] = key
    return may, wrong


class Chaos:
    def __init__(self, options):
        self.options, self.choose = options, random.Random(options.seed)
        self.control, *self.servers = [Server(options.directory, name, number) for number, name in ((1, "control"), (2, "a"), (3, "b"))]
        self.counts, self.columns, self.hangs, self.broken, self.moves = {}, [], [], [], 0
        a, b = self.servers
        a.run(f"CREATE SCHEMA {SCHEMA}; CREATE TABLE {SCHEMA}.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id({SHARD}), name text NOT NULL); "
              f"CREATE SEQUENCE {SCHEMA}.numbers; INSERT INTO {SCHEMA}.users (name) SELECT 'old:' || n FROM generate_series(1, 5000) AS n")
        for server in (a, b):
            self.control.run(f"SELECT snowflake_fleet.set_server('{server.name}', '{server.conninfo}')")
        self.control.run(f"SELECT snowflake_fleet.assign('[{SHARD},{SHARD}]', 'a')")

    def where(self):
        return self.control.run(f"SELECT snowflake_fleet.server_of_shard({SHARD})")[0][0]

    def start(self, *arguments):
        return subprocess.Popen([self.options.program, "--shard", str(SHARD), "--control", self.control.conninfo, "--wait", "20", *arguments],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self, process):
        try:
            output, _ = process.communicate(timeout=HANGS)
        except subprocess.TimeoutExpired:
            process.kill()
            self.hangs.append(process.communicate()[0].strip().splitlines()[-1:])
            return None, ""
        if "Traceback" in output or "had different rows than the source" in output:
            self.broken.append(output)
        return process.returncode, output

    def fault(self, process, target):
        """Makes a random fault while snowflake-move-shard runs, and starts crashed servers again."""
        what = self.choose.choice(["kill", "kill", "crash", "crash", "ddl", "ddl", "open", "silent", "silent", "nothing"])
        time.sleep(self.choose.random() ** 2 * 3)
        if what == "kill":
            process.kill()
        elif what == "crash":
            server = self.choose.choice([self.control, *self.servers])
            what = f"crash of {'control' if server is self.control else 'target' if server.name == target else 'source'}"
            server.crash()
            time.sleep(self.choose.random() * 2 * self.choose.randrange(2))
            server.start()
        elif what == "ddl":
            what = self.alter()
        elif what == "open":
            self.hold_open(self.choose.random() * 2)
        elif what == "silent":
            self.silence(process)
        self.counts[what] = self.counts.get(what, 0) + 1

    def silence(self, process):
        """Suspends snowflake-move-shard, as if its network failed. Writers must not wait longer than 25 seconds."""
        process.send_signal(signal.SIGSTOP)
        try:
            for server in self.servers:
                server.run(f"SET statement_timeout = '25s'; UPDATE {SCHEMA}.users SET name = name WHERE name = 'old:1'")
        except psycopg.Error as error:
            if error.sqlstate == "57014":
                self.hangs.append("a writer waited for a program that is silent")
        process.send_signal(signal.SIGCONT)

    def pause(self):
        """Waits until no client has an open transaction."""
        open(f"{self.stop}.pause", "w", encoding="utf8").close()
        until = time.monotonic() + 120
        while not all(os.path.exists(f"{self.stop}.paused{n}") for n in range(self.options.writers)):
            time.sleep(0.05)
            if time.monotonic() > until:
                self.hangs.append("a writer did not pause")
                return

    def resume(self):
        os.remove(f"{self.stop}.pause")
        for n in range(self.options.writers):
            if os.path.exists(f"{self.stop}.paused{n}"):
                os.remove(f"{self.stop}.paused{n}")

    def copied(self, target):
        for _ in range(6):
            if self.finish(self.start("--to", target, "--until", "copied"))[0] == 0:
                return
        self.broken.append(f"no copy on {target}")

    def put_source_back(self, source, target):
        """Restores the source to an earlier time. Rows that the source has lost must not be on the target."""
        self.copied(target)
        self.pause()
        here = next(s for s in self.servers if s.name == source)
        here.snapshot()
        here.run(f"INSERT INTO {SCHEMA}.users (name) SELECT 'undone:' || n FROM generate_series(1, 100) AS n")
        time.sleep(self.choose.random() * 2)
        here.put_back()
        self.resume()

    def lose_target_after_the_map(self, source, target):
        """Restores the target to a time before it took over. The move must detect this and keep the source's rows."""
        self.copied(target)
        self.pause()
        there = next(s for s in self.servers if s.name == target)
        there.snapshot()
        process = self.start("--to", target)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "taken over" in line:
                break
        process.kill()
        process.wait()
        if self.where() != target:
            self.resume()
            return
        there.put_back()
        code, output = self.finish(self.start("--to", target))
        if code == 0 or "after a restore or a failover" not in output:
            self.broken.append(f"a target that was put back is believed: {output}")
        self.control.run(f"SELECT snowflake_fleet.move({SHARD}, '{target}', '{source}')")
        code, output = self.finish(self.start("--to", target, "--from", source, "--abort"))
        if code != 0:
            self.broken.append(f"--abort with the map back: {output}")
        self.resume()

    def lose_for_good(self, source, target):
        """Calls --forget for one server while the other server is stopped, and later for the other server."""
        self.copied(target)
        gone, (side, other) = self.choose.choice([(source, ("target", target)), (target, ("source", source))])
        server = next(s for s in self.servers if s.name == gone)
        server.crash()
        for step in ((side, other), ("source" if side == "target" else "target", gone)):
            code, output = self.finish(self.start("--forget", step[0], "--from" if step[0] == "source" else "--to", step[1]))
            if code != 0:
                self.broken.append(f"--forget {step[0]}: {output}")
            if step == (side, other):
                server.start()
        # Drops the received rows and the role that owns them, because `--forget target` leaves both on the target.
        arrived = next(s for s in self.servers if s.name == target)
        arrived.run(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        for (role,) in arrived.run("SELECT quote_ident(rolname) FROM pg_roles WHERE rolname LIKE 'snowflake_move_%'"):
            arrived.run(f"DROP ROLE {role}")

    def alter(self):
        """Adds a column, which must exist after each move of the shard."""
        column = f"c{len(self.columns) + self.counts.get('ddl, refused', 0)}_{self.choose.randrange(1000)}"
        server = next(s for s in self.servers if s.name == self.where())
        try:
            server.run(f"SET lock_timeout = '2s'; ALTER TABLE {SCHEMA}.users ADD COLUMN {column} int DEFAULT 7")
        except psycopg.Error as error:
            return "ddl, refused" if error.sqlstate == "55006" else "ddl, no such table or lock"
        self.columns.append(column)
        return "ddl, taken"

    def hold_open(self, seconds):
        for server in self.servers:
            try:
                with psycopg.connect(server.conninfo) as connection:
                    connection.execute(f"SELECT count(*) FROM {SCHEMA}.users")
                    connection.execute("SELECT pg_current_xact_id()")
                    time.sleep(seconds)
                    connection.rollback()
            except psycopg.Error:
                pass

    def settle(self, target):
        """Repeats the move until it succeeds, or aborts it after six failed attempts. All servers run."""
        confirm = ()
        for attempt in range(6):
            code, output = self.finish(self.start("--to", target, *confirm))
            if code == 0:
                self.moves += 1
                return
            # The test finishes a move with --force if snowflake-move-shard was killed before it compared the rows of
            # source and target. After all moves of the shard, the function verdict() compares the rows with the changes
            # that clients have committed.
            confirm = ("--force",) if "finish the move with --force" in output else ()
            self.counts["confirmed"] = self.counts.get("confirmed", 0) + len(confirm)
        self.broken.append(f"six attempts to move to {target} failed: {output}")
        self.finish(self.start("--to", target, "--abort", "--from", "a" if target == "b" else "b"))

    def drop_kept(self):
        for server in self.servers:
            if server.run("SELECT count(*) FROM snowflake_fleet.moving WHERE state = 'kept'")[0][0]:
                code, output = self.finish(self.start("--from", server.name, "--drop-source"))
                # After a restore from a backup, a server may have no record of the move of the shard.
                if code != 0 and "no record of the take-over" in output:
                    self.counts["kept by --drop-source"] = self.counts.get("kept by --drop-source", 0) + 1
                    code, output = self.finish(self.start("--from", server.name, "--drop-source", "--force"))
                if code != 0:
                    self.broken.append(f"--drop-source: {output}")

    def run(self):
        stop = self.stop = f"{self.options.directory}/stop"
        journals = [f"{self.options.directory}/journal_{n}" for n in range(self.options.writers)]
        writers = [multiprocessing.Process(target=write, args=(self.control.conninfo, n, self.options.seed, journals[n], stop), daemon=True) for n in range(self.options.writers)]
        for writer in writers:
            writer.start()
        until = time.monotonic() + self.options.seconds
        while time.monotonic() < until and not self.broken and not self.hangs:
            source = self.where()
            target = "b" if source == "a" else "a"
            if self.choose.random() < 0.3:
                scenario = self.choose.choice([self.put_source_back, self.lose_target_after_the_map, self.lose_for_good])
                scenario(source, target)
                self.counts[scenario.__name__.replace("_", " ")] = self.counts.get(scenario.__name__.replace("_", " "), 0) + 1
            process = self.start("--to", target)
            self.fault(process, target)
            code, _ = self.finish(process)
            if code == 0:
                self.moves += 1
            elif self.choose.random() < 0.25 and self.where() == source:
                self.finish(self.start("--to", target, "--abort"))
                self.counts["taken back"] = self.counts.get("taken back", 0) + 1
            else:
                self.settle(target)
            self.drop_kept()
        open(stop, "w", encoding="utf8").close()
        for writer in writers:
            writer.join(90)
            if writer.is_alive():
                writer.terminate()
                self.broken.append("a writer hung")
        self.verdict(journals)

    def verdict(self, journals):
        may, wrong = expected(journals)
        there = next(s for s in self.servers if s.name == self.where())
        other = next(s for s in self.servers if s is not there)
        if self.counts:
            # If faults have interrupted the move of the shard, finishes or aborts the move before the rows are counted.
            self.finish(self.start("--to", other.name, "--abort"))
        rows, twice = {}, []
        for name, in there.run(f"SELECT name FROM {SCHEMA}.users WHERE name NOT LIKE 'old:%'"):
            key = name.split(":")[0]
            if key in rows:
                twice.append(f"twice: {key}")
            rows[key] = name
        for key, names in may.items():
            if rows.get(key) not in names:
                wrong.append(f"{key} is {rows.get(key)}, and may be {names}")
        # Reports every row that has no entry in the journals of the writers. The transaction of the row was rolled
        # back, so a reader must not see the row.
        wrong += [f"of nobody: {key}" for key in rows if key not in may]
        old = there.run(f"SELECT count(*), count(DISTINCT name) FROM {SCHEMA}.users WHERE name LIKE 'old:%'")[0]
        columns = {name for name, in there.run(f"SELECT attname::text FROM pg_attribute WHERE attrelid = '{SCHEMA}.users'::regclass AND NOT attisdropped")}
        lost_columns = [column for column in self.columns if column not in columns]
        left = [f"{server.name}: {row}" for server in self.servers for row in server.run(
            "SELECT 'slot ' || slot_name FROM pg_replication_slots UNION ALL SELECT 'subscription ' || subname FROM pg_subscription UNION ALL "
            "SELECT 'publication ' || pubname FROM pg_publication UNION ALL SELECT 'role ' || rolname FROM pg_roles WHERE rolname ~ '^snowflake_move' UNION ALL "
            "SELECT 'moving ' || state FROM snowflake_fleet.moving WHERE state NOT IN ('kept', 'here')")]
        report(not wrong and not twice, f"{len(may)} rows of {self.options.writers} writers: none lost, wrong or twice", wrong + twice)
        report(tuple(old) == (5000, 5000), "the rows from before are all there", [str(old)])
        report(not lost_columns, f"{len(self.columns)} columns that were added are there", lost_columns)
        report(not self.hangs, "the program has always ended", self.hangs)
        report(not self.broken, "and every move could be finished", self.broken)
        report(not left, "nothing is left over", left)
        report(self.moves > 0, f"{self.moves} moves; " + ", ".join(f"{what}: {n}" for what, n in sorted(self.counts.items())))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--writers", type=int, default=3)
    options = parser.parse_args()
    print(f"# seed {options.seed}, {options.seconds} s", flush=True)
    Chaos(options).run()
    print(f"1..{report.number}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
