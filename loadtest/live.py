#!/usr/bin/env python3
"""Checks that weir can be changed under load. wrk sends requests over 64 kept connections as fast as weir responds. Meanwhile
the configuration is reloaded a hundred times, and then twenty new processes take over. No request may fail. The admissions of
a shared limit must be exactly that limit: one more means that weir exceeded the limit, or that a process counted from zero
again. Then the upgrades are repeated over TLS, where the old process relays kept connections."""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import processes

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 100_000
CONNECTIONS = 64
PATIENCE = 20  # seconds


class Weir:
    """The process that serves at present."""

    def __init__(self, stage, tls, limit=LIMIT, listener=""):
        self.stage, self.limit, self.listener = stage, limit, listener
        self.tls = f'tls = {{ certificates = [{{ cert = "{stage.folder}/edge.crt", key = "{stage.folder}/edge.key" }}] }}' if tls else ""
        self.port, self.admin = processes.free_port(), processes.free_port()
        self.config = stage.folder / "live.toml"
        self.write(0)
        self.start()

    def start(self):
        self.server = self.stage.start("live", [self.stage.weir, "run", "--config", self.config], self.port, None)
        self.pid = self.server.process.pid

    def write(self, number):
        """Writes a configuration with another limit of an unused rule, and with another route, each time."""
        text = f"""
[server]
workers = 2
drain = "5s"
[log]
access = "off"
[[listener]]
address = "127.0.0.1:{self.port}"
{self.tls}
{self.listener}
[admin]
address = "127.0.0.1:{self.admin}"
[[route]]
match = {{ path = "/other-{number}" }}
respond = {{ status = 204 }}
[[route]]
respond = {{ status = 200, body = "ok" }}
[[rule]]
name = "all"
key = []
algorithm = "fixed_window"
limit = "{self.limit}/day"
[[rule]]
name = "never"
key = ["ip"]
limit = "{1_000_000 + number}/s"
"""
        fresh = self.config.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.config)

    def metric(self, name, result):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=5)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return int(re.search(rf'^{name}{{result="{result}"}} (\d+)', text, re.M).group(1))

    def await_count(self, name, count):
        deadline = time.monotonic() + PATIENCE
        while self.metric(name, "ok") < count:
            if time.monotonic() > deadline or self.metric(name, "failed"):
                log = pathlib.Path(self.server.log).read_text()
                raise processes.BenchError(f"{name} does not come to {count}:\n{log[-2000:]}")
            time.sleep(0.005)

    def reload(self, number):
        self.write(number)
        os.kill(self.pid, signal.SIGHUP)
        self.await_count("weir_reloads_total", number)

    def upgrade(self, number):
        os.kill(self.pid, signal.SIGUSR2)
        self.await_count("weir_upgrades_total", number)
        while len(taken := re.findall(r"upgrade: process (\d+) has taken over", pathlib.Path(self.server.log).read_text())) < number:
            time.sleep(0.005)
        self.pid = int(taken[-1])

    def pauses(self):
        log = pathlib.Path(self.server.log).read_text()
        return [int(ms) for ms in re.findall(r"requests waited (\d+) ms", log)]

    def stop(self):
        if self.pid != self.server.process.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)


def spread(weir, what, times, seconds):
    """Changes weir so many times, in equal intervals, within the time that the load lasts."""
    began = time.monotonic()
    for number in range(1, times + 1):
        due = began + (seconds - 2) * number / times
        time.sleep(max(0.0, due - time.monotonic()))
        getattr(weir, what)(number)
    changed = time.monotonic() - began
    if changed > seconds:
        raise processes.BenchError(f"{times} times took {changed:.1f} s, longer than the load: try --seconds")


def measure(stage, what, times, seconds, tls=False):
    weir = Weir(stage, tls)
    try:
        wrk = subprocess.Popen(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", HERE / "report.lua", f"http{'s' * tls}://127.0.0.1:{weir.port}/"],
                               stdout=subprocess.PIPE, text=True)
        spread(weir, what, times, seconds)
        said = json.loads(wrk.communicate()[0].splitlines()[-1])
        return report(weir, what, times, said)
    finally:
        weir.stop()


def report(weir, what, times, said):
    admitted = said["requests"] - said["refused"]
    rate = said["requests"] / said["seconds"]
    print(f"{what} x {times}{' over TLS' if weir.tls else ''}: {said['requests']} requests, {rate:,.0f}/s; {said['faults']} failed; {admitted} admitted of {LIMIT}; "
          f"p50 {said['p50_us'] / 1000:.2f} ms, p99 {said['p99_us'] / 1000:.2f} ms")
    if pauses := sorted(weir.pauses()):
        print(f"  requests waited {pauses[len(pauses) // 2]} ms at the median, {pauses[-1]} ms at most")
    if said["refused"] == 0:
        raise processes.BenchError("the limit was never reached: try --seconds")
    return said["faults"] == 0 and admitted == LIMIT


def main():
    parser = argparse.ArgumentParser(prog="./dev live", description=__doc__)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, default=15, help="of each of the three")
    parser.add_argument("--reloads", type=int, default=100)
    parser.add_argument("--upgrades", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-live-") as folder:
        stage = processes.Stage(pathlib.Path(folder), options.weir.resolve())
        try:
            kept = [measure(stage, what, times, options.seconds, tls)
                    for what, times, tls in (("reload", options.reloads, False), ("upgrade", options.upgrades, False),
                                             ("upgrade", options.upgrades, True)) if times]
        except processes.BenchError as error:
            sys.exit(f"{error}")
        finally:
            stage.stop_all()
    sys.exit(0 if all(kept) else "a request failed, or a limit was not kept")


if __name__ == "__main__":
    main()
