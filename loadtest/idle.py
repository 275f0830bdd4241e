#!/usr/bin/env python3
"""Measures the cost of an idle connection. Clients connect one after another, send a request each, read the response and stay.
The result is the growth of a proxy's resident memory per connection, and the CPU time while no client sends anything. Compares
weir, nginx and HAProxy with the configurations of `./dev bench`, over HTTP/1.1 and HTTP/2, plain and over TLS 1.3. Ignores the
memory for the first hundred clients, because most of it does not belong to connections. For HTTP/2 it also measures what
nghttp2 alone takes for such a session (nghttp2_alone.py)."""

import argparse
import contextlib
import pathlib
import resource
import socket
import ssl
import sys
import time

import contestants
import http2_client
import modes
import nghttp2_alone
import processes

FIRST = 100  # clients before the first measurement of memory
SETTLED_SECONDS = 5  # weir keeps free buffers for up to four seconds
SILENT_SECONDS = 5
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
MODES = {"limited": "plain", "tls": "TLS 1.3", "h2c": "HTTP/2, plain", "h2": "HTTP/2, TLS 1.3"}


def settled_bytes(pid):
    """Waits until memory no longer shrinks, because buffers may be released only when a connection has been idle for a while."""
    least, since = processes.resident_bytes(pid), time.monotonic()
    while time.monotonic() - since < SETTLED_SECONDS:
        time.sleep(0.1)
        now = processes.resident_bytes(pid)
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


def connect_http2(port, tls):
    client = http2_client.Http2Client(port, tls)
    client.request()
    while not client.answered:
        client.exchange()
        if client.ended or client.lost:
            raise processes.BenchError("a connection ended without an answer")
    client.flush()
    return client


def connect(port, mode, tls):
    if mode in modes.HTTP2:
        return connect_http2(port, tls)
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
    tls = ssl._create_unverified_context() if mode in modes.TLS else None
    if tls and mode in modes.HTTP2:
        tls.set_alpn_protocols(["h2"])
    with contextlib.ExitStack() as clients:
        for _ in range(FIRST):
            clients.enter_context(connect(server.port, mode, tls))
        before = settled_bytes(server.process.pid)
        for _ in range(count):
            clients.enter_context(connect(server.port, mode, tls))
        spent = settled_bytes(server.process.pid) - before
        share = silent_share(server.process.pid)
    stage.stop(server)
    return spent / count, share


def alone(stage):
    """Returns the resident and the allocated bytes that nghttp2 itself takes for a session with the fields of weir's answer."""
    server = contestants.start(stage, "weir", "h2c")
    octets = nghttp2_alone.session_octets(server.port)
    stage.stop(server)
    return octets


def main():
    parser = argparse.ArgumentParser(prog="./dev idle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=list(MODES))
    options = parser.parse_args()
    count = min(options.connections, contestants.MOST_CONNECTIONS - FIRST - 10)  # a system may allow fewer descriptors
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with processes.on_stage("idle", options.weir) as stage:
        stage.start_upstream()
        own, allocated = alone(stage) if "h2c" in options.modes else (0, 0)
        print(f"{count} connections\n")
        print("| KiB a connection, % of a core | nginx | haproxy | weir |\n|---|---:|---:|---:|")
        for mode in options.modes:
            figures = [measure(stage, name, mode, count) for name in ("nginx", "haproxy", "weir")]
            print(f"| {MODES[mode]} | {' | '.join(f'{each / 1024:.1f}, {share:.1%}' for each, share in figures)} |", flush=True)
            if mode == "h2c":
                spent = figures[-1][0]
        if "h2c" in options.modes:
            print(f"\nnghttp2 alone takes {own / 1024:.1f} KiB for a plain session (allocated: {allocated / 1024:.1f} KiB); "
                  f"weir takes {(spent - own) / 1024:.1f} KiB beyond that.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
