#!/usr/bin/env python3
"""Measures the load on a Redis that weirs share: memory per key (MEMORY USAGE), and CPU time per request.

One weir runs with one redis-server, each pinned to a processor of its own if there are two. wrk uses 64 connections
(--connections). It sends requests of 10,000 clients, each with its own API key, or of one client (hot). Redis's time is the
user plus system time of its process, divided by the requests answered. So it includes everything: reading, the script,
writing. A core carries 1,000,000 / us requests a second."""

import argparse
import json
import pathlib
import re
import socket
import statistics
import subprocess
import sys

import processes

HERE = pathlib.Path(__file__).resolve().parent
BUCKET = 'limit = "360/h"\nburst = 1000000'  # a request keeps its key alive for ten seconds
WINDOW = "1000000000/day"
CASES = {
    "token_bucket": [BUCKET],
    "gcra": [f'algorithm = "gcra"\n{BUCKET}'],
    # With less than 50,000 requests a second nobody waits, because each client comes less often than five times a second.
    "leaky_bucket": ['algorithm = "leaky_bucket"\nlimit = "5/s"\nqueue = 100'],
    "stepwise": [f'refill = "stepwise"\n{BUCKET}'],
    "fixed_window": [f'algorithm = "fixed_window"\nlimit = "{WINDOW}"'],
    "fixed_window of a calendar": [f'algorithm = "fixed_window"\nalign = "day"\nlimit = "{WINDOW}"'],
    "sliding_window": [f'algorithm = "sliding_window"\nlimit = "{WINDOW}"'],
    "sliding_window of 10": [f'algorithm = "sliding_window"\nbuckets = 10\nlimit = "{WINDOW}"'],
    "sliding_log": ['algorithm = "sliding_log"\nlimit = "10000/100ms"'],
    "concurrency": ['algorithm = "concurrency"\nlimit = 10000'],
    "two rules": [BUCKET] * 2,
    "four rules": [BUCKET] * 4,
    "eight rules": [BUCKET] * 8,
    "token_bucket, hot": ['limit = "1000000/s"'],
    "token_bucket, hot, leased": ['limit = "1000000/s"\nlease = "10%"'],
}


def configuration(stage, port, rules):
    named = "".join(f'[[rule]]\nname = "r{number}"\nkey = ["api_key"]\n{text}\n' for number, text in enumerate(rules))
    return f"""
[server]
workers = 1
[log]
access = "off"
[[listener]]
address = "127.0.0.1:{port}"
[state]
store = "redis"
key_secret = "sizing"
redis = {{ url = "redis://127.0.0.1:{stage.redis}", timeout = "2s" }}
[[route]]
respond = {{ status = 200, body = "ok" }}
{named}"""


def commands(stage, *lines):
    """Returns the replies to commands as one text."""
    with socket.create_connection(("127.0.0.1", stage.redis), 5) as connection:
        connection.sendall("".join(line + "\r\n" for line in (*lines, "QUIT")).encode())
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode("latin-1")


def bytes_per_key(stage):
    keys = [key for key in re.findall(r"^(weir:\S{22})\r$", commands(stage, "KEYS weir:*"), re.M)][:200]
    sizes = [int(size) for size in re.findall(r"^:(\d+)", commands(stage, *(f"MEMORY USAGE {key} SAMPLES 0" for key in keys)), re.M)]
    return statistics.mean(sizes) if sizes else 0


def wrk(port, script, options):
    command = ["wrk", "-t", "1", "-c", str(options.connections), "-d", f"{options.seconds}s", "-s", str(script), f"http://127.0.0.1:{port}/"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds + 60, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def scripts(folder):
    report = (HERE / "report.lua").read_text()
    many = folder / "many.lua"
    many.write_text('local n = 0\nfunction request()\n  n = (n * 21 + 11) % 10000\n'
                    '  return wrk.format("GET", "/", {["X-API-Key"] = "key" .. n})\nend\n' + report)
    one = folder / "one.lua"
    one.write_text('wrk.headers["X-API-Key"] = "hot"\n' + report)
    return many, one


def measure(stage, case, options):
    commands(stage, "FLUSHALL", "CONFIG RESETSTAT")
    port = processes.free_port()
    file = stage.folder / "weir.toml"
    file.write_text(configuration(stage, port, CASES[case]))
    weir = stage.start("weir", [stage.weir, "run", "--config", file], port, stage.proxy_cpu)
    redis = stage.servers[0]
    before, script = redis.cpu_seconds(), scripts(stage.folder)["hot" in case]
    report = wrk(port, script, options)
    spent = redis.cpu_seconds() - before
    told = commands(stage, "INFO commandstats")
    calls, usec = re.search(r"cmdstat_evalsha:calls=(\d+),usec=(\d+)", told).groups()
    memory = bytes_per_key(stage)
    stage.stop(weir)
    requests = report["requests"]
    print(f"| {case} | {memory:.0f} | {spent / requests * 1e6:.2f} | {int(usec) / requests:.2f} | {int(calls) / requests:.4f} | "
          f"{requests / report['seconds']:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev sizing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--case", action="append", choices=CASES, help="some alone; repeat it for several")
    options = parser.parse_args()
    with processes.on_stage("sizing", options.weir) as stage:
        stage.start_redis()
        print("| case | bytes a key | Redis us a request | of that in the script | calls a request | requests/s |\n"
              "|---|---|---|---|---|---|")
        for case in options.case or CASES:
            measure(stage, case, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
