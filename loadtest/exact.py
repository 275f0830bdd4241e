#!/usr/bin/env python3
"""Checks that the limit is exact. wrk sends a million requests of one client over 200 connections. The number of admitted
requests is compared, to the request, with what the limit allows: burst + rate × time − the rest in the bucket at the end. The
test runs in memory with two workers, and then with two weirs of two workers that share one Redis.

The time runs from the first admitted request, before which the bucket is full, to a last one whose response gives the rest. In
between the bucket never fills up. Both times are known to within the round trip of the request, and so is the count."""

import argparse
import http.client
import json
import pathlib
import re
import subprocess
import sys
import threading
import time

import processes

HERE = pathlib.Path(__file__).resolve().parent
RATE, BURST = 1000, 1000
KEY = {"X-API-Key": "hot"}


def start_weir(stage, name, store):
    port, admin = processes.free_port(), processes.free_port()
    state = f'[state]\nkey_secret = "exact"\nredis = {{ url = "redis://127.0.0.1:{stage.redis}", timeout = "2s" }}' \
        if store == "redis" else ""
    config = stage.folder / f"{name}.toml"
    config.write_text(f"""
[server]
workers = 2
[log]
access = "off"
[[listener]]
address = "127.0.0.1:{port}"
[admin]
address = "127.0.0.1:{admin}"
{state}
[[route]]
respond = {{ status = 200, body = "ok" }}
[[rule]]
name = "hot"
key = ["api_key"]
limit = "{RATE}/s"
burst = {BURST}
store = "{store}"
{'on_store_failure = "closed"' if store == "redis" else ""}
""")
    server = stage.start(name, [stage.weir, "run", "--config", config], port, None)
    server.admin = admin
    return server


def admitted_by(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.admin, timeout=5)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return sum(int(float(value)) for value in
               re.findall(r'^weir_decisions_total\{[^}]*outcome="admitted"[^}]*\} (\S+)$', text, re.M))


class Prober:
    """Sends one request at a time, and knows the times between which it was decided."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        self.connection.connect()

    def ask(self):
        before = time.monotonic()
        self.connection.request("GET", "/", headers=KEY)
        answer = self.connection.getresponse()
        answer.read()
        return before, time.monotonic(), answer.status, int(answer.getheader("X-RateLimit-Remaining"))


def run_wrk(server, connections, seconds):
    command = ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "-H", "X-API-Key: hot",
               "-s", str(HERE / "report.lua"), f"http://127.0.0.1:{server.port}/"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def load(servers, connections, wanted):
    """Runs wrk on all servers at once, repeatedly, until so many requests were answered."""
    reports = []
    while sum(report["requests"] for report in reports) < wanted:
        threads = [threading.Thread(target=lambda one=server: reports.append(
            run_wrk(one, connections // len(servers), 10))) for server in servers]
        for thread in threads:
            thread.start()
        drain = Prober(servers[0].port)  # keeps the bucket from filling up between two runs of wrk
        while any(thread.is_alive() for thread in threads):
            drain.ask()
        for thread in threads:
            thread.join()
    return reports


def measure(name, servers, options):
    before = sum(admitted_by(server) for server in servers)
    prober = Prober(servers[0].port)
    began = prober.ask()
    for _ in range(BURST // 2):
        prober.ask()
    reports = load(servers, options.connections, options.requests)
    ended = prober.ask()
    admitted = sum(admitted_by(server) for server in servers) - before
    least = BURST + RATE * (ended[0] - began[1]) - ended[3]
    most = BURST + RATE * (ended[1] - began[0]) - ended[3]
    exact = int(least) - 1 <= admitted <= most + 1
    requests = sum(report["requests"] for report in reports)
    faults = sum(report["faults"] for report in reports)
    print(f"{name}: {requests} requests, {admitted} admitted; {least:.1f} to {most:.1f} allowed, {faults} failed: "
          f"{'exact' if exact and not faults else 'NOT EXACT'}")
    return exact and not faults


def main():
    parser = argparse.ArgumentParser(prog="./dev exact", description=__doc__)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--connections", type=int, default=200)
    options = parser.parse_args()
    with processes.on_stage("exact", options.weir) as stage:
        stage.start_redis()
        exact = measure("memory, one weir of two workers", [start_weir(stage, "alone", "memory")], options)
        pair = [start_weir(stage, f"pair{number}", "redis") for number in (1, 2)]
        exact &= measure("Redis, two weirs of two workers", pair, options)
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
