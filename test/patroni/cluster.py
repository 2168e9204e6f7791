"""Starts three servers (members) under Patroni, etcd, and a lease server, with the commands of doc/patroni.md."""
import base64
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import psutil
import psycopg
import yaml

NAMES = ("north", "west", "south")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_for(what, seconds, condition):
    """Repeats a condition until it returns a true value, and returns this value. Failed connections count as false."""
    until = time.monotonic() + seconds
    while True:
        try:
            found = condition()
            if found:
                return found
        except (OSError, psycopg.Error, psutil.Error, ValueError, KeyError):
            pass
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


def start(command, log, **more):
    """Starts a program that is killed when the test program ends."""
    with open(log, "ab") as out:
        return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL, stdout=out,
                                stderr=out, start_new_session=True, **more)


def merge(into, values):
    for name, value in values.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = value


class Member:
    def __init__(self, cluster, name, port, rest_port):
        self.cluster, self.name, self.port, self.rest_port = cluster, name, port, rest_port
        self.directory = f"{cluster.directory}/{name}"
        self.data, self.config = f"{self.directory}/data", f"{self.directory}/config.yml"
        os.mkdir(self.directory, 0o700)
        self.patroni = None

    def start(self):
        self.patroni = start([sys.executable, "-m", "patroni", self.config], f"{self.directory}/log")

    def ask(self, path, content=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.rest_port}{path}",
                                         json.dumps(content).encode() if content else None)
        with urllib.request.urlopen(request, timeout=10 if content else 2) as answer:
            return answer.read().decode()

    def postmaster(self):
        """Returns the process id in postmaster.pid, or None if the file does not exist."""
        try:
            with open(f"{self.data}/postmaster.pid", encoding="utf8") as file:
                return int(file.readline())
        except (OSError, ValueError):
            return None

    def postgres(self):
        """Returns the postmaster and its child processes, in this order."""
        try:
            postmaster = psutil.Process(self.postmaster() or -1)
            if os.path.realpath(postmaster.cwd()) != os.path.realpath(self.data):
                return []
            return [postmaster, *postmaster.children(recursive=True)]
        except (OSError, ValueError, psutil.Error):
            return []

    def signal_postgres(self, number):
        if number == signal.SIGKILL:  # stops the postmaster first, so that it starts no new processes
            self.signal_postgres(signal.SIGSTOP)
        for process in self.postgres():
            try:
                process.send_signal(number)
            except psutil.Error:
                pass

    def signal_patroni(self, number):
        self.patroni.send_signal(number)
        if number == signal.SIGKILL:
            self.patroni.wait()


class Cluster:
    def __init__(self, directory, etcd, page, leases):
        self.directory, self.leases = directory, leases
        with open(page, encoding="utf8") as file:
            self.blocks = re.findall(r"^```(\w+)\n(.*?)^```$", file.read().split("\n## Kubernetes")[0], re.M | re.S)
        self.etcd_port, peer_port, self.lease_server_port, *ports = free_ports(3 + 2 * len(NAMES))
        self.members = [Member(self, name, *ports[2 * i:2 * i + 2]) for i, name in enumerate(NAMES)]
        self.password = secrets.token_hex(16)
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{peer_port}"
        self.etcd = start([etcd, "--data-dir", f"{directory}/etcd", "--listen-client-urls", client, "--advertise-client-urls", client,
                           "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"],
                          f"{directory}/etcd.log")
        wait_for("etcd", 60, lambda: urllib.request.urlopen(f"{client}/health", timeout=2).status == 200)

    def block(self, language):
        """Returns the next code block of doc/patroni.md, with the names of machines and files in this test."""
        at = next(i for i, (found, _) in enumerate(self.blocks) if found == language)
        return (self.blocks.pop(at)[1].replace("host=leases port=5432", f"host={self.directory} port={self.lease_server_port}")
                .replace("leases:5432", f"{self.directory}:{self.lease_server_port}").replace("/var/lib/postgresql/", f"{self.directory}/"))

    def start_lease_server(self):
        data = f"{self.directory}/lease_server"
        subprocess.run(["initdb", "-D", data, "-A", "trust", "-U", "postgres", "--locale=C.UTF-8", "-E", "UTF8"],
                       check=True, stdout=subprocess.DEVNULL)
        with open(f"{data}/postgresql.conf", "a", encoding="utf8") as file:
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{self.directory}'\nport = {self.lease_server_port}\n")
        with open(f"{data}/pg_hba.conf", "w", encoding="utf8") as file:
            file.write("local fleet ids scram-sha-256\nlocal all all trust\n")
        subprocess.run(["pg_ctl", "-s", "-w", "-D", data, "-l", f"{self.directory}/lease_server.log", "start"], check=True)
        with self.lease_server("postgres") as connection:
            connection.execute("CREATE DATABASE fleet")
        with self.lease_server() as connection:
            connection.execute("CREATE EXTENSION snowflake_fleet")
            connection.execute(self.block("sql"))
        subprocess.run(["bash", "-euc", self.block("sh")], check=True)

    def lease_server(self, database="fleet"):
        return psycopg.connect(f"host={self.directory} port={self.lease_server_port} dbname={database} user=postgres", autocommit=True)

    def start_members(self):
        of_page = yaml.safe_load(self.block("yaml"))
        if not self.leases:
            of_page["bootstrap"]["dcs"]["postgresql"]["parameters"] = {"shared_preload_libraries": "snowflake", "snowflake.region": 0}
        for member in self.members:
            config = self.config_of(member)
            merge(config, of_page)
            with open(member.config, "w", encoding="utf8") as file:
                yaml.safe_dump(config, file)
            member.start()
        leader = wait_for("a leader", 120, self.leader)
        with self.connect(leader.port) as connection:
            connection.execute(self.block("sql"))
            connection.execute("CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5))")
        self.wait_until_whole()

    def config_of(self, member):
        def role(name):
            return {"username": name, "password": self.password}
        where = {"listen": f"127.0.0.1:{member.port}", "connect_address": f"127.0.0.1:{member.port}"}
        rest = {"listen": f"127.0.0.1:{member.rest_port}", "connect_address": f"127.0.0.1:{member.rest_port}"}
        return {
            "scope": "ids", "name": member.name, "restapi": rest, "etcd3": {"hosts": f"127.0.0.1:{self.etcd_port}"},
            "bootstrap": {
                "dcs": {"ttl": 20, "loop_wait": 2, "retry_timeout": 3, "maximum_lag_on_failover": 1 << 30,
                        "postgresql": {"use_pg_rewind": True, "use_slots": True, "parameters": {"wal_log_hints": "on"}}},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}]},
            "postgresql": {
                **where, "data_dir": member.data, "pgpass": f"{member.directory}/pgpass", "use_unix_socket": True,
                "basebackup": [{"checkpoint": "fast"}],
                "remove_data_directory_on_rewind_failure": True, "remove_data_directory_on_diverged_timelines": True,
                "authentication": {"superuser": role("postgres"), "replication": role("replicator"), "rewind": role("rewinder")},
                "parameters": {"unix_socket_directories": member.directory, "max_connections": 60, "log_min_messages": "warning"},
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 scram-sha-256",
                           "host replication replicator 127.0.0.1/32 scram-sha-256"]}}

    def connect(self, port):
        """Connects a client to the primary at this port, or fails if there is none. All waits have timeouts."""
        return psycopg.connect(f"host=127.0.0.1 port={port} dbname=postgres user=postgres password={self.password} connect_timeout=2 "
                               "target_session_attrs=read-write options='-c statement_timeout=5s'", autocommit=True)

    def leader(self, but=None):
        """Returns the member that etcd names as leader, except `but`, if its Patroni confirms that it is the primary.
        What other members report is not used, because it can be out of date."""
        key = base64.b64encode(b"/service/ids/leader").decode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.etcd_port}/v3/kv/range", json.dumps({"key": key}).encode())
        with urllib.request.urlopen(request, timeout=2) as answer:
            found = json.load(answer).get("kvs")
        name = base64.b64decode(found[0]["value"]).decode() if found else None
        member = next((each for each in self.members if each.name == name), None)
        if member is None or member is but or json.loads(member.ask("/primary"))["role"] not in ("master", "primary"):
            return None
        return member

    def is_whole(self):
        leader = self.leader()
        told = {member: json.loads(member.ask("/patroni")) for member in self.members}
        return leader and all(
            each["state"] == "running" and each["timeline"] == told[leader]["timeline"] and
            (member is leader) == (each["role"] in ("master", "primary")) for member, each in told.items())

    def wait_until_whole(self):
        wait_for("all members follow one leader", 180, self.is_whole)

    def tell_logs(self):
        for member in self.members:
            try:
                print(f"# {member.name}: {member.ask('/patroni')}", flush=True)
            except OSError as error:
                print(f"# {member.name}: {error}", flush=True)
            with open(f"{member.directory}/log", encoding="utf8", errors="replace") as log:
                for line in log.readlines()[-40:]:
                    print(f"#   {line.rstrip()}", flush=True)

    def stop(self):
        for member in self.members:
            if member.patroni:
                member.signal_patroni(signal.SIGKILL)
            member.signal_postgres(signal.SIGKILL)
        self.etcd.kill()
        self.etcd.wait()
        subprocess.run(["pg_ctl", "-s", "-D", f"{self.directory}/lease_server", "-m", "immediate", "stop"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
