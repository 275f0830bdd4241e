#!/usr/bin/env python3
"""Measures the cost of an idle connection. Clients connect one after another, send a request each, read the response and stay.
The result is the growth of a proxy's resident memory per connection, and the CPU time while no client sends anything. Compares
weir, nginx and HAProxy with the configurations of `./dev bench`, plain and over TLS 1.3. Ignores the memory of the first
hundred clients, most of which is not the connections'."""

import argparse
import contextlib
import pathlib
import resource
import socket
import ssl
import sys
import time

import contestants
import processes

FIRST = 100  # clients before the first measurement of memory
SETTLED_SECONDS = 2
SILENT_SECONDS = 5
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
MODES = {"limited": "plain", "tls": "TLS 1.3"}


def resident_bytes(pid):
    """Returns VmRSS of a process tree (proc(5))."""
    total = 0
    for each in processes.processes_below(pid):
        status = pathlib.Path(f"/proc/{each}/status").read_text()
        total += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) * 1024
    return total


def settled_bytes(pid):
    """Waits until memory no longer shrinks, because buffers may be released only when a connection has been idle for a while."""
    least, since = resident_bytes(pid), time.monotonic()
    while time.monotonic() - since < SETTLED_SECONDS:
        time.sleep(0.1)
        now = resident_bytes(pid)
        if now < least:
            least, since = now, time.monotonic()
    return least


def ask(connection):
    connection.sendall(REQUEST)
    seen = b""
    while not seen.endswith(processes.ANSWER.encode()):
        more = connection.recv(4096)
        if not more:
            raise processes.BenchError(f"the connection ended after {seen[:200]!r}")
        seen += more


def connect(port, tls):
    connection = socket.create_connection(("127.0.0.1", port), 10)
    if tls:
        connection = tls.wrap_socket(connection)
    ask(connection)
    return connection


def silent_share(pid):
    """Returns the share of a core that is used while no client sends anything."""
    before = processes.cpu_seconds(pid)
    time.sleep(SILENT_SECONDS)
    return (processes.cpu_seconds(pid) - before) / SILENT_SECONDS


def measure(stage, name, mode, count):
    """Returns the resident bytes for each of `count` connections, and the share of a core for all of them."""
    server = contestants.start(stage, name, mode)
    tls = ssl._create_unverified_context() if mode == "tls" else None
    with contextlib.ExitStack() as clients:
        for _ in range(FIRST):
            clients.enter_context(connect(server.port, tls))
        before = settled_bytes(server.process.pid)
        for _ in range(count):
            clients.enter_context(connect(server.port, tls))
        spent = settled_bytes(server.process.pid) - before
        share = silent_share(server.process.pid)
    stage.stop(server)
    return spent / count, share


def main():
    parser = argparse.ArgumentParser(prog="./dev idle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--connections", type=int, default=10_000)
    options = parser.parse_args()
    count = min(options.connections, contestants.MOST_CONNECTIONS - FIRST - 10)  # a system may allow fewer descriptors
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with processes.on_stage("idle", options.weir) as stage:
        stage.start_upstream()
        print(f"{count} connections\n")
        print("| KiB a connection, % of a core | nginx | haproxy | weir |\n|---|---:|---:|---:|")
        for mode, title in MODES.items():
            figures = [measure(stage, name, mode, count) for name in ("nginx", "haproxy", "weir")]
            print(f"| {title} | {' | '.join(f'{each / 1024:.1f}, {share:.1%}' for each, share in figures)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
