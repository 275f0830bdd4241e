#!/usr/bin/env python3
"""Measures how constant the rate of the queue is.

wrk keeps 60 clients waiting in a queue of 100/s, and an upstream records when each request arrives. The gaps should be 10 ms. The
result includes the upstream's own scheduling, so a busy machine shows in it. The test does not pass or fail."""

import argparse
import asyncio
import pathlib
import sys
import time

import processes

RATE, CLIENTS = 100, 60
SETTLED = 5  # gaps at the start, before any request waits


class Upstream(asyncio.Protocol):
    """Responds at once, and records when each request arrived."""

    def __init__(self, arrivals):
        self.arrivals = arrivals

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, _):
        self.arrivals.append(time.monotonic())
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def start_weir(stage, workers, upstream):
    port = processes.free_port()
    config = stage.folder / f"gaps-{workers}.toml"
    config.write_text(f"""
[server]
workers = {workers}
[log]
access = "off"
[[listener]]
address = "127.0.0.1:{port}"
[[upstream]]
name = "api"
servers = ["127.0.0.1:{upstream}"]
[[route]]
upstream = "api"
[[rule]]
name = "queue"
key = []
algorithm = "leaky_bucket"
limit = "{RATE}/s"
queue = 100
""")
    return stage.start(f"weir-{workers}", [stage.weir, "run", "--config", config], port, None)


def report(workers, arrivals):
    wanted = 1000 / RATE
    gaps = sorted((later - earlier) * 1000 for earlier, later in zip(arrivals[SETTLED:], arrivals[SETTLED + 1:]))
    strays = sorted(abs(gap - wanted) for gap in gaps)
    of = lambda values, share: values[min(len(values) - 1, int(len(values) * share))]
    print(f"{workers} worker{'s' if workers > 1 else ''}: {len(gaps)} gaps, median {of(gaps, 0.5):.3f} ms; "
          f"off by {of(strays, 0.5):.3f} ms at the median, {of(strays, 0.99):.2f} at p99; "
          f"{100 * sum(stray <= 1 for stray in strays) / len(strays):.1f} % within 1 ms")


async def measure(stage, workers, seconds):
    arrivals = []
    server = await asyncio.get_running_loop().create_server(lambda: Upstream(arrivals), "127.0.0.1", 0)
    weir = start_weir(stage, workers, server.sockets[0].getsockname()[1])
    wrk = await asyncio.create_subprocess_exec("wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", f"http://127.0.0.1:{weir.port}/",
                                               stdout=asyncio.subprocess.DEVNULL)
    await wrk.wait()
    stage.stop(weir)
    server.close()
    report(workers, arrivals)


def main():
    parser = argparse.ArgumentParser(prog="./dev gaps", description=__doc__)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    with processes.on_stage("gaps", options.weir) as stage:
        for workers in (1, 2):
            asyncio.run(measure(stage, workers, options.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
