#!/usr/bin/env python3
"""Measures how long a client waits for the first event of a stream. In turns, because times on shared machines drift, the client
asks the server itself and asks through weir, which reads the cost in the events and may cut the stream. The server sends an event
at once and the others later, so that a proxy that waits for more events is found. Prints the median and the 99th percentile of
the times from the request to the first event. The test does not pass or fail."""

import argparse
import pathlib
import socket
import statistics
import sys
import threading
import time

import processes

GAP_SECONDS = 0.02  # between the first event and the rest
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
FIRST = b'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n'
REST = b'data: {"choices":[],"usage":{"total_tokens":3}}\n\ndata: [DONE]\n\n'


def configuration(port, upstream):
    return f"""
[server]
workers = 1
[log]
access = "off"
[[listener]]
address = "127.0.0.1:{port}"
[[upstream]]
name = "model"
servers = ["127.0.0.1:{upstream}"]
[[route]]
upstream = "model"
[[rule]]
name = "tokens"
key = ["ip"]
limit = "1000000000/day"
algorithm = "fixed_window"
charge = {{ status = ["2xx"] }}
cost = {{ response_json = "/usage/total_tokens", reserve = 10, stream = {{ per_event = 1, cut = true }} }}
"""


def chunk(text):
    return b"%x\r\n%s\r\n" % (len(text), text)


def serve(connection):
    """Answers every request of a connection with a stream."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        while connection.recv(65536):
            connection.sendall(HEAD + chunk(FIRST))
            time.sleep(GAP_SECONDS)
            connection.sendall(chunk(REST) + b"0\r\n\r\n")


def start_server():
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def first_event(connection):
    """Returns the microseconds until the first event of one request, then reads the rest of the answer."""
    began = time.perf_counter()
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    text = b""
    took = None
    while not text.endswith(b"0\r\n\r\n"):
        piece = connection.recv(65536)
        if not piece:
            raise processes.BenchError("the answer ended early")
        text += piece
        if took is None and FIRST in text:
            took = 1e6 * (time.perf_counter() - began)
    return took


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def measure(stage, requests):
    upstream, port = start_server(), processes.free_port()
    config = stage.folder / "weir.toml"
    config.write_text(configuration(port, upstream))
    stage.start("weir", [stage.weir, "run", "--config", config], port, stage.proxy_cpu)
    contestants = {"the server itself": connect(upstream), "through weir": connect(port)}
    times = {name: [] for name in contestants}
    for _ in range(requests):
        for name, connection in contestants.items():
            times[name].append(first_event(connection))
    return times


def main():
    parser = argparse.ArgumentParser(prog="./dev stream", description=__doc__)
    parser.add_argument("--weir", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--requests", type=int, default=500, help="of each of the two")
    options = parser.parse_args()
    with processes.on_stage("first-event", options.weir) as stage:
        times = measure(stage, options.requests)
    print(f"{options.requests} requests each\n\n| first event | median µs | p99 µs |\n|---|---:|---:|")
    for name, each in times.items():
        print(f"| {name} | {statistics.median(each):.0f} | {statistics.quantiles(each, n=100)[98]:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
