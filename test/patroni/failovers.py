#!/usr/bin/python3
"""Makes the primary fail while clients mint, checks all ids, and reports in TAP. See scripts/patroni."""
import argparse
import collections
import multiprocessing
import os
import random
import signal
import statistics
import time

import psycopg
from cluster import Cluster, wait_for

TIMEOUT = 4  # seconds to wait for a response, because a frozen server accepts a statement and does not respond


class Faults:
    """Each method makes the primary fail, and returns a function for repairs that Patroni does not make."""

    def __init__(self, cluster):
        self.cluster = cluster

    def machine_killed(self, leader):
        leader.signal_patroni(signal.SIGKILL)
        leader.signal_postgres(signal.SIGKILL)
        return leader.start

    def postgres_killed(self, leader):
        leader.signal_postgres(signal.SIGKILL)

    def patroni_killed(self, leader):
        leader.signal_patroni(signal.SIGKILL)
        return leader.start

    def patroni_frozen(self, leader):
        leader.signal_patroni(signal.SIGSTOP)
        return lambda: leader.signal_patroni(signal.SIGCONT)

    def machine_frozen(self, leader):
        leader.signal_patroni(signal.SIGSTOP)
        leader.signal_postgres(signal.SIGSTOP)

        def wake():
            leader.signal_postgres(signal.SIGCONT)
            time.sleep(1)  # PostgreSQL is sometimes ready before Patroni reports the server as running
            leader.signal_patroni(signal.SIGCONT)
        return wake

    def switchover(self, leader):
        wait_for("the switchover", 60, lambda: self.cluster.leader(but=leader) or leader.ask("/switchover", {"leader": leader.name}))


FAULTS = [name for name in vars(Faults) if not name.startswith("_")]
TWO_PRIMARIES = ("patroni_killed", "patroni_frozen")  # faults in which the old primary continues to run


def mint(number, cluster, path, stop):
    """Simulates a client that mints, and writes a line for each result: its time, the server's port, and the ids."""
    choose = random.Random(number)
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)

    def too_long(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, too_long)
    statements = ("INSERT INTO rows DEFAULT VALUES RETURNING ARRAY[id]", "SELECT snowflake.next_ids(5, 50)",
                  "SELECT ARRAY[snowflake.next_id(6)]")
    connection, count, parent = None, 0, os.getppid()
    with open(path, "w", encoding="utf8") as log:
        while not stop.is_set() and os.getppid() == parent:
            try:
                signal.setitimer(signal.ITIMER_REAL, TIMEOUT)
                if connection is None:
                    port = choose.choice(cluster.members).port
                    connection = cluster.connect(port)
                count += 1
                ids = connection.execute(statements[count % len(statements)]).fetchone()[0]
                signal.setitimer(signal.ITIMER_REAL, 0)
                log.write(f"{time.monotonic():.4f} {port} {' '.join(map(str, ids))}\n")
                time.sleep(0.01)
            except (psycopg.Error, TimeoutError):
                signal.setitimer(signal.ITIMER_REAL, 0)
                if connection is not None:
                    connection.pgconn.finish()
                connection = None
                time.sleep(0.05)


class Answers:
    """Contains the results that all clients received."""

    def __init__(self, paths):
        self.clients, self.ids, self.by_port = [], [], collections.defaultdict(list)
        for path in paths:
            times = []
            with open(path, encoding="utf8") as log:
                for line in log:
                    at, port, *ids = line.split()
                    times.append(float(at))
                    self.ids.extend(map(int, ids))
                    self.by_port[int(port)].append((float(at), len(ids)))
            self.clients.append(times)
        self.ids.sort()

    def waits(self, begin, end):
        """Returns for each client its longest wait that overlaps the time from `begin` to `end`."""
        for times in self.clients:
            yield max((after - before for before, after in zip(times, times[1:]) if before < end and after > begin), default=float("inf"))

    def minted(self, port, begin, end):
        return sum(count for at, count in self.by_port[port] if begin <= at < end)


def fail_once(cluster, name):
    """Makes one fault, waits until all members work again, and returns the members and times for the report."""
    leader = wait_for("a leader", 60, cluster.leader)
    begin, postmaster = time.monotonic(), leader.postmaster()
    put_right = getattr(Faults(cluster), name)(leader)
    if name == "postgres_killed":  # after a kill, Patroni restarts the killed server or promotes another one
        new = wait_for("a leader", 120, lambda: leader.postmaster() not in (None, postmaster) and cluster.leader() or cluster.leader(but=leader))
    else:
        new = wait_for("another leader", 120, lambda: cluster.leader(but=leader))
    promoted = time.monotonic()
    if name in TWO_PRIMARIES:
        time.sleep(5)
    righted = time.monotonic()
    if put_right:
        put_right()
    cluster.wait_until_whole()
    time.sleep(2)
    return {"name": name, "old": leader, "new": new, "begin": begin, "promoted": promoted, "righted": righted, "end": time.monotonic()}


def report(good, name):
    report.number += 1
    report.failed += not good
    print(f"{'ok' if good else 'not ok'} {report.number} - {name}", flush=True)


report.number = report.failed = 0


def tell(events, answers):
    print(f"# {'fault':<17} {'leader':>6} {'then':>6} {'promoted after':>15} {'clients waited, median and most':>32} {'ids of the old one beside':>26}")
    for event in events:
        waits = list(answers.waits(event["begin"], event["end"]))
        beside = answers.minted(event["old"].port, event["promoted"], event["end"]) if event["new"] is not event["old"] else 0
        print(f"# {event['name']:<17} {event['old'].name:>6} {event['new'].name:>6} {event['promoted'] - event['begin']:>13.1f} s "
              f"{statistics.median(waits):>22.1f} s {max(waits):>5.1f} s {beside:>26}")
        event["waits"], event["beside"] = waits, beside


def main():
    parser = argparse.ArgumentParser()
    for name in ("--directory", "--etcd", "--page"):
        parser.add_argument(name, required=True)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=lambda names: names.split(","), default=FAULTS)
    parser.add_argument("--without-leases", action="store_true")
    arguments = parser.parse_args()
    if set(arguments.faults) - set(FAULTS):
        parser.error(f"the faults are {', '.join(FAULTS)}")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)

    with open(f"{arguments.directory}/driver.pid", "w", encoding="utf8") as file:
        file.write(str(os.getpid()))
    choose = random.Random(arguments.seed)
    cluster = Cluster(arguments.directory, arguments.etcd, arguments.page, not arguments.without_leases)
    stop, clients, events, stuck = multiprocessing.Event(), [], [], None
    paths = [f"{arguments.directory}/ids.{number}" for number in range(arguments.clients)]
    try:
        cluster.start_lease_server()
        cluster.start_members()
        report(True, "three members follow one leader")
        clients = [multiprocessing.Process(target=mint, args=(number, cluster, path, stop)) for number, path in enumerate(paths)]
        for client in clients:
            client.start()
        time.sleep(3)
        until = time.monotonic() + arguments.seconds
        round_of_faults = []
        while time.monotonic() < until or len(events) < len(arguments.faults):
            round_of_faults = round_of_faults or choose.sample(arguments.faults, len(arguments.faults))
            try:
                events.append(fail_once(cluster, round_of_faults.pop()))
            except TimeoutError as error:
                stuck = str(error)
                cluster.tell_logs()
                break
            print(f"# {events[-1]['name']}: {events[-1]['old'].name}, then {events[-1]['new'].name}", flush=True)
        stop.set()
        for client in clients:
            client.join()
        regions = None
        if cluster.leases:
            with cluster.lease_server() as connection:
                regions = connection.execute("SELECT count(DISTINCT region), max(region) FROM snowflake_fleet.regions WHERE until IS NOT NULL").fetchone()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        stop.set()
        cluster.stop()

    answers = Answers(paths)
    tell(events, answers)
    twice = [id for id, following in zip(answers.ids, answers.ids[1:]) if id == following]
    report(stuck is None, f"the members are one set again after each of {len(events)} faults" + (f": {stuck}" if stuck else ""))
    report(len(answers.ids) > 1000 * len(events), f"{len(answers.ids)} ids")
    report(not twice, f"{len(twice)} twice" + (f", {twice[0]} first" if twice else ""))
    report(all(wait < 60 for event in events for wait in event["waits"]), "each client mints again within 60 s of each fault")
    if any(event["name"] in TWO_PRIMARIES for event in events):
        report(any(event["beside"] for event in events), "a primary that was not the leader any more has minted beside the new one")
    if regions:
        report(regions[0] > 1 and regions[1] <= 7, f"{regions[0]} regions of the set were leased")
    print(f"1..{report.number}")
    raise SystemExit(report.failed != 0)


if __name__ == "__main__":
    main()
