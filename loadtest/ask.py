#!/usr/bin/env python3
"""Compares decisions for other proxies on this machine, with the state in memory and in Redis. Contestants are weir by gRPC (rls) and by
JSON (decide), and nginx with Lua and one EVALSHA a decision. Nobody forwards a request.

CPU is the user and system time of the deciding process, divided by the decisions. The time of Redis is shown beside it. The contestants
take turns within one run, because times on shared machines drift. Prints medians over the rounds."""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

import processes
from contestants import PLENTY
from h2load import CALL, microseconds

HERE = pathlib.Path(__file__).resolve().parent
METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
QUESTION = '{"ip":"203.0.113.7","path":"/orders"}'
CONNECTIONS, STREAMS = 64, 16  # of wrk, and calls at once on each of the 8 connections of h2load
CONTESTANTS = ("nginx", "decide", "rls", "decide-redis", "rls-redis")


def field(number, text):
    return bytes([number << 3 | 2, len(text)]) + text


def rate_limit_request():
    """Returns a RateLimitRequest with one descriptor, as gRPC frames it."""
    entry = field(1, b"remote_address") + field(2, b"203.0.113.7")
    message = field(1, b"edge") + field(2, field(1, entry))
    return b"\0" + len(message).to_bytes(4, "big") + message


def nginx(stage, port):
    config = processes.nginx_config(stage.folder, "ask", processes.LUA_MODULES, f"""
            lua_package_path "{HERE}/?.lua;;";
            init_by_lua_block {{ gcra = require "nginx_gcra" }}
            server {{
                listen 127.0.0.1:{port};
                location / {{
                    access_by_lua_block {{ gcra.limit({stage.redis}, {PLENTY}, {PLENTY}) }}
                    content_by_lua_block {{ ngx.say("{{}}") }}
                }}
            }}""")
    return ["nginx", "-c", config, "-p", stage.folder]


def weir(stage, name, port):
    api, _, store = name.partition("-")
    config = stage.folder / f"{name}.toml"
    config.write_text(f"""
[server]
workers = 1
[log]
access = "off"
[[listener]]
address = "127.0.0.1:{port}"
serves = "{api}"
[state]
key_secret = "bench"
redis = {{ url = "redis://127.0.0.1:{stage.redis}", timeout = "1s" }}
[[rule]]
name = "per-client"
key = ["{'ip' if api == 'decide' else 'descriptor:remote_address'}"]
limit = "{PLENTY}/s"
burst = {PLENTY}
store = "{store or 'memory'}"
""")
    return [stage.weir, "run", "--config", config]


def command_of(stage, name, server, seconds):
    if name.startswith("rls"):
        message = stage.folder / "message"
        message.write_bytes(rate_limit_request())
        return ["h2load", "-t", "1", "-c", "8", "-m", str(STREAMS), "-D", str(seconds), "-d", message, *CALL,
                f"http://127.0.0.1:{server.port}{METHOD}"]
    script = stage.folder / f"{name}.lua"
    body = f"wrk.method = 'POST'\nwrk.body = '{QUESTION}'\n" if name.startswith("decide") else ""
    script.write_text(body + (HERE / "report.lua").read_text())
    return ["wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", f"{seconds}s", "--latency", "-s", script,
            f"http://127.0.0.1:{server.port}/v1/decide"]


def put_load(stage, name, server, seconds):
    """Returns how many decisions were made, and their latencies: p50 and p99 of wrk, mean and max of h2load."""
    command = list(map(str, command_of(stage, name, server, seconds)))
    if stage.load_cpu is not None:
        command = ["taskset", "-c", str(stage.load_cpu), *command]
    said = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, check=False).stdout
    if name.startswith("rls"):
        counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored", said)
        waits = re.search(r"time for request: +(\S+) +(\S+) +(\S+)", said)
        if not counts or not waits or any(map(int, counts.groups()[1:])):
            raise processes.BenchError(f"h2load failed: {said}")
        return int(counts.group(1)), microseconds(waits.group(3)), microseconds(waits.group(2))
    try:
        seen = json.loads(said.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise processes.BenchError(f"wrk failed: {said}") from error
    if seen["faults"] or seen["refused"]:
        raise processes.BenchError(f"{name}: {seen['refused']} answers were not 200, {seen['faults']} failed")
    return seen["requests"], seen["p50_us"], seen["p99_us"]


def measure(stage, name, server, seconds):
    redis = next(each for each in stage.servers if each.name == "redis")
    before, redis_before = server.cpu_seconds(), redis.cpu_seconds()
    count, usual, high = put_load(stage, name, server, seconds)
    return {"own": (server.cpu_seconds() - before) * 1e6 / count, "redis": (redis.cpu_seconds() - redis_before) * 1e6 / count,
            "usual": usual, "high": high}


def run(stage, options):
    servers, results = {}, {name: [] for name in CONTESTANTS}
    for name in CONTESTANTS:
        port = processes.free_port()
        command = nginx(stage, port) if name == "nginx" else weir(stage, name, port)
        servers[name] = stage.start(name, command, port, stage.proxy_cpu)
        put_load(stage, name, servers[name], 1)  # warms connections, tables and branch predictors
    for turn in range(options.rounds):
        for name, server in servers.items():
            results[name].append(measure(stage, name, server, options.seconds))
            print(f"  {turn + 1}/{options.rounds} {name}: {results[name][-1]['own']:.2f} µs", file=sys.stderr)
    return results


def show(results):
    def median(name, what):
        return statistics.median(each[what] for each in results[name])

    print("| contestant | µs of CPU a decision | of Redis | decisions a CPU second, by those of nginx | p50 or mean, µs | p99 or max, µs |")
    print("|---|---|---|---|---|---|")
    for name in CONTESTANTS:
        own, redis, usual, high = (median(name, what) for what in ("own", "redis", "usual", "high"))
        print(f"| {name} | {own:.2f} | {redis:.2f} | {median('nginx', 'own') / own:.1f} | {usual:.0f} | {high:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="length of a measurement")
    options = parser.parse_args()
    with processes.on_stage("ask", options.weir) as stage:
        stage.start_redis()
        show(run(stage, options))


if __name__ == "__main__":
    main()
