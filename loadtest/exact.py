#!/usr/bin/env python3
"""Checks that the limit is exact. wrk sends a million requests of one client over 200 connections. The number of admitted
requests must be exactly what the limit allows: the units in the bucket at the beginning + rate × time − the units at the end.
The test runs in memory with two workers, and then with two weirs of two workers that share one Redis. It does the same for
penalties and for costs that streams report (kinds.py).

A first load empties the bucket to less than half. Then the response to a single request says how many units are left at the
beginning. After the load, another response says how many are left at the end. No other request runs during these two requests.
In between the bucket never fills up, because that takes five seconds without requests. Both times are known to within the
round trip of the request, and so is the count."""

import argparse
import http.client
import json
import pathlib
import re
import subprocess
import sys
import threading
import time

import kinds
import processes

HERE = pathlib.Path(__file__).resolve().parent
RATE, BURST = 1000, 10_000
KEY = {"X-API-Key": "hot"}


def start_weir(stage, name, store, upstream):
    port, admin = processes.free_port(), processes.free_port()
    state = f'[state]\nkey_secret = "exact"\nredis = {{ url = "redis://127.0.0.1:{stage.redis}", timeout = "2s" }}' \
        if store == "redis" else ""
    shared = f'store = "{store}"' + ('\non_store_failure = "closed"' if store == "redis" else "")
    others = "".join(f'[[rule]]\nname = "{kind}"\nkey = ["api_key"]\nmatch = {{ path = "/{kind}" }}\n{text}\n{shared}\n'
                     for kind, text in (("penalty", kinds.PENALTY), ("streams", kinds.STREAMS)))
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
{kinds.routes(upstream)}
[[route]]
respond = {{ status = 200, body = "ok" }}
[[rule]]
name = "hot"
key = ["api_key"]
match = {{ path = "/" }}
limit = "{RATE}/s"
burst = {BURST}
{shared}
{others}
""")
    server = stage.start(name, [stage.weir, "run", "--config", config], port, None)
    server.admin = admin
    return server


def sum_of(server, sample):
    """Returns the sum of the samples of the metrics page that match."""
    connection = http.client.HTTPConnection("127.0.0.1", server.admin, timeout=5)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return sum(int(float(value)) for value in re.findall(rf"^{sample} (\S+)$", text, re.M))


def admitted_by(server):
    return sum_of(server, r'weir_decisions_total\{[^}]*outcome="admitted"[^}]*\}')


def penalties_of(servers):
    return sum(sum_of(server, r"weir_penalties_total\{[^}]*\}") for server in servers)


class Prober:
    """Sends one request at a time, and knows the times between which it was decided."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        self.connection.connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

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
        for thread in threads:
            thread.join()
    return reports


def ask_alone(servers):
    """Sends a request once all others have ended, even those whose clients have left. Returns what Prober.ask() returns, and
    the number of requests admitted so far."""
    with Prober(servers[0].port) as prober:
        deadline = time.monotonic() + 60
        while sum(sum_of(server, "weir_connections_open") for server in servers) > 1:
            if time.monotonic() > deadline:
                raise TimeoutError("connections of the load are still open")
            time.sleep(0.05)
        told = prober.ask()
        return *told, sum(admitted_by(server) for server in servers)


def measure(name, servers, options):
    began = ask_alone(servers)
    while began[3] > BURST // 2:
        run_wrk(servers[0], options.connections, 1)
        began = ask_alone(servers)
    reports = load(servers, options.connections, options.requests)
    ended = ask_alone(servers)
    admitted = ended[4] - began[4]
    least = began[3] + RATE * (ended[0] - began[1]) - ended[3]
    most = began[3] + RATE * (ended[1] - began[0]) - ended[3]
    exact = least - 1 <= admitted <= most + 1  # both numbers of units are rounded down
    requests = sum(report["requests"] for report in reports)
    faults = sum(report["faults"] for report in reports)
    print(f"{name}: {requests} requests, {admitted} admitted; {least:.1f} to {most:.1f} allowed, {faults} failed: "
          f"{'exact' if exact and not faults else 'NOT EXACT'}")
    return exact and not faults


def measure_kinds(name, servers, upstream):
    """Returns true if penalties and costs of streams are exact."""
    ports = [server.port for server in servers]
    asked, admitted, right = kinds.run_penalties(ports, "/penalty", "hot", 2, 50, lambda: penalties_of(servers))
    exact = admitted == right > 0
    print(f"{name}, penalties: {asked} requests, {admitted} admitted before {right // kinds.LIMIT} penalties, of {right}: "
          f"{'exact' if exact else 'NOT EXACT'}")
    answered, used, reported = kinds.run_streams(ports, "/streams", "hot", 1000, 50, upstream)
    print(f"{name}, streams: {answered} streams reported {reported} units, {used} used: {'exact' if used == reported else 'NOT EXACT'}")
    return exact and used == reported and answered > 0


def main():
    parser = argparse.ArgumentParser(prog="./dev exact", description=__doc__)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--connections", type=int, default=200)
    options = parser.parse_args()
    with processes.on_stage("exact", options.weir) as stage:
        stage.start_redis()
        upstream = kinds.StreamUpstream()
        alone = [start_weir(stage, "alone", "memory", upstream)]
        pair = [start_weir(stage, f"pair{number}", "redis", upstream) for number in (1, 2)]
        exact = True
        for name, servers in (("memory, one weir of two workers", alone), ("Redis, two weirs of two workers", pair)):
            exact &= measure(name, servers, options)
            exact &= measure_kinds(name, servers, upstream)
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
