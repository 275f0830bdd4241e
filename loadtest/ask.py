#!/usr/bin/env python3
"""Compares decisions for other proxies on this machine: their CPU, then their latency. Nobody forwards a request.

CPU: Contestants are weir by gRPC (rls) and by JSON (decide), with the state in memory and in Redis, and nginx with Lua and one EVALSHA
a decision. The figure is the user and system time of the deciding process, divided by the decisions. The time of Redis is shown beside
it.

Latency: Contestants are rls, decide, and weir as a proxy that answers by itself, all with the state in memory. The program
paced.cpp asks at a constant rate: a third of what each answers over the same connections. It does so in short windows.

The contestants take turns within one run, because times on shared machines drift. Prints medians over the rounds or windows."""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

import paced
import processes
from contestants import PLENTY
from h2load import CALL, microseconds

HERE = pathlib.Path(__file__).resolve().parent
METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
QUESTION = '{"ip":"203.0.113.7","path":"/orders"}'
CONNECTIONS, STREAMS = 64, 16  # of wrk, and calls at once on each of the 8 connections of h2load
CONTESTANTS = ("nginx", "decide", "rls", "decide-redis", "rls-redis")
PACED = ("proxy", "decide", "rls")
PACED_CONNECTIONS = 16
WARM_SECONDS = 1
# Short, because even with --realtime the kernel keeps 50 ms of each second for ordinary processes. They must fall into few windows.
PACED_SECONDS = 0.25


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
{f'serves = "{api}"' if api != "proxy" else ""}
[state]
key_secret = "bench"
redis = {{ url = "redis://127.0.0.1:{stage.redis}", timeout = "1s" }}
[[route]]
respond = {{ status = 200, body = "{{}}" }}
[[rule]]
name = "per-client"
key = ["{'descriptor:remote_address' if api == 'rls' else 'ip'}"]
limit = "{10 * PLENTY}/s"
burst = {10 * PLENTY}
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


def measure_cpu(stage, options):
    servers, results = {}, {name: [] for name in CONTESTANTS}
    for name in CONTESTANTS:
        port = processes.free_port()
        command = nginx(stage, port) if name == "nginx" else weir(stage, name, port)
        servers[name] = stage.start(name, command, port, stage.proxy_cpu)
        put_load(stage, name, servers[name], WARM_SECONDS)  # warms connections, tables and branch predictors
    for turn in range(options.rounds):
        for name, server in servers.items():
            results[name].append(measure(stage, name, server, options.seconds))
            print(f"  {turn + 1}/{options.rounds} {name}: {results[name][-1]['own']:.2f} µs", file=sys.stderr)
    for server in servers.values():
        stage.stop(server)
    return results


def request_octets(name):
    """Returns what paced.cpp sends to a contestant: a message of gRPC, or a whole request of HTTP/1.1."""
    if name == "rls":
        return rate_limit_request()
    return paced.get("/orders") if name == "proxy" else paced.post("/v1/decide", QUESTION.encode(), "application/json")


def ask_at_rate(stage, name, server, rate):
    """Asks a contestant at this rate, or as fast as it answers with a rate of 0. The first tenth of the time does not count. Returns
    what paced.cpp has counted."""
    warm = PACED_SECONDS / 10
    seen = paced.run(stage, server.port, PACED_CONNECTIONS, rate, PACED_SECONDS - warm, request_octets(name),
                     METHOD if name == "rls" else "h1", warm)
    if seen["refused"] or seen["faults"] or not seen["requests"]:
        raise processes.BenchError(f"{name}: not all questions were answered: {seen}")
    return seen


def measure_latency(stage, options):
    servers, rates, results = {}, {}, {name: [] for name in PACED}
    for name in PACED:
        port = processes.free_port()
        servers[name] = stage.start(f"paced-{name}", weir(stage, name, port), port, stage.proxy_cpu)
        most = [ask_at_rate(stage, name, servers[name], 0) for _ in range(5)]
        rates[name] = round(statistics.median(seen["requests"] / seen["seconds"] for seen in most) / 3)
    for _ in range(round(options.rounds * options.seconds / PACED_SECONDS)):
        for name, server in servers.items():
            results[name].append(ask_at_rate(stage, name, server, rates[name]))
    return rates, results


def median_of(results, name, what):
    return statistics.median(each[what] for each in results[name])


def show_latency(rates, results):
    print("| contestant | requests a second | p50, µs | p99, µs | p99 above that of the proxy, µs |")
    print("|---|---|---|---|---|")
    for name in PACED:
        above = statistics.median(own["p99_us"] - proxy["p99_us"] for own, proxy in zip(results[name], results["proxy"]))
        print(f"| {name} | {rates[name]} | {median_of(results, name, 'p50_us'):.0f} | {median_of(results, name, 'p99_us'):.0f} "
              f"| {above:.0f} |")


def show_cpu(results):
    def median(name, what):
        return median_of(results, name, what)

    print("| contestant | µs of CPU a decision | of Redis | decisions a CPU second, by those of nginx | p50 or mean, µs | p99 or max, µs |")
    print("|---|---|---|---|---|---|")
    for name in CONTESTANTS:
        own, redis, usual, high = (median(name, what) for what in ("own", "redis", "usual", "high"))
        more = statistics.median(nginx["own"] / each["own"] for nginx, each in zip(results["nginx"], results[name]))
        print(f"| {name} | {own:.2f} | {redis:.2f} | {more:.1f} | {usual:.0f} | {high:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="length of a measurement")
    parser.add_argument("--only", choices=("cpu", "latency"), help="one of both comparisons")
    parser.add_argument("--realtime", action="store_true",
                        help="measure latencies with processes that run before any other of the machine (SCHED_FIFO), for a busy machine; "
                             "needs root")
    options = parser.parse_args()
    with processes.on_stage("ask", options.weir) as stage:
        stage.start_redis()
        if options.only != "latency":
            show_cpu(measure_cpu(stage, options))
            print()
        if options.only != "cpu":
            stage.run_in_realtime(options.realtime)
            show_latency(*measure_latency(stage, options))


if __name__ == "__main__":
    main()
