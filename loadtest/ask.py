#!/usr/bin/env python3
"""Compares how many decisions a processor second buys: weir asked by JSON (`serves = "decide"`) and by Envoy's protocol
(`serves = "rls"`), and nginx with Lua and one EVALSHA a request, which answers without a proxied request.

A decision costs the user and system time of the process that decides, without Redis. The contestants take turns within one run. Prints
medians over the rounds."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import contestants
import h2load
import processes

HERE = pathlib.Path(__file__).resolve().parent
DOMAIN, PATH = "edge", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
QUESTION = {"method": "GET", "host": "api.example.com", "path": "/v1/things?page=2", "ip": "203.0.113.7",
            "headers": {"user-agent": "curl/7.88.1", "accept": "*/*"}}
CONTESTANTS = ("nginx-lua-redis", "decide-memory", "decide-redis", "rls-memory", "rls-redis", "proxy-memory")


def field(number, value):
    """Returns a protobuf field that holds a text or a message of less than 128 octets."""
    return bytes([number << 3 | 2, len(value)]) + value


def rls_call():
    """Returns a RateLimitRequest of one descriptor with its gRPC framing."""
    entry = field(1, b"remote_address") + field(2, b"203.0.113.7")
    message = field(1, DOMAIN.encode()) + field(2, field(1, entry))
    return b"\0" + len(message).to_bytes(4, "big") + message


def weir_config(stage, name, port):
    api, store = name.split("-")
    serves = "" if api == "proxy" else f'serves = "{api}"'
    key = "descriptor:remote_address" if api == "rls" else "ip"
    state = f'[state]\nkey_secret = "bench"\nredis = {{ url = "redis://127.0.0.1:{stage.redis}", timeout = "1s" }}' if store == "redis" else ""
    forward = f'[[upstream]]\nname = "api"\nservers = ["127.0.0.1:{stage.upstream}"]\n[[route]]\nupstream = "api"' if api == "proxy" else ""
    config = stage.folder / f"{name}.toml"
    config.write_text(f"""
[server]
workers = 1
[log]
access = "off"
{state}
[[listener]]
address = "127.0.0.1:{port}"
{serves}
{forward}
[[rule]]
name = "per-client"
key = ["{key}"]
limit = "{contestants.PLENTY}/s"
burst = {contestants.PLENTY}
store = "{store}"
""")
    return [stage.weir, "run", "--config", config]


def nginx_config(stage, port):
    lua = f'lua_package_path "{HERE}/?.lua;;"; init_by_lua_block {{ gcra = require "nginx_gcra" }}'
    limit = f'content_by_lua_block {{ gcra.limit({stage.redis}, {contestants.PLENTY}, {contestants.PLENTY}); ngx.print("ok") }}'
    config = processes.nginx_config(stage.folder, "lua", processes.LUA_MODULES, f"""
            {lua}
            server {{ listen 127.0.0.1:{port}; location / {{ {limit} }} }}""")
    return ["nginx", "-c", config, "-p", stage.folder]


def start(stage, name):
    port = processes.free_port()
    command = nginx_config(stage, port) if name.startswith("nginx") else weir_config(stage, name, port)
    return stage.start(name, command, port, stage.proxy_cpu)


def pinned(stage, command):
    return ["taskset", "-c", str(stage.load_cpu), *command] if stage.load_cpu is not None else command


def run_wrk(stage, server, options):
    """Returns the requests and the latencies that wrk has counted."""
    command = ["wrk", "-t", "1", "-c", str(options.connections), "-d", f"{options.seconds}s", "--latency"]
    script = HERE / "report.lua"
    if server.name.startswith("decide"):
        script = stage.folder / "decide.lua"
        script.write_text(f"dofile({json.dumps(str(HERE / 'report.lua'))})\nwrk.method = 'POST'\n"
                          f"wrk.body = {json.dumps(json.dumps(QUESTION))}\nwrk.headers['Content-Type'] = 'application/json'\n")
    path = "/v1/decide" if server.name.startswith("decide") else "/"
    command = pinned(stage, [*command, "-s", str(script), f"http://127.0.0.1:{server.port}{path}"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds + 30, check=False)
    if done.returncode != 0:
        raise processes.BenchError(f"wrk failed: {done.stdout}{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_h2load(stage, server, options):
    message = stage.folder / "call.grpc"
    message.write_bytes(rls_call())
    command = ["h2load", "-t", "1", "-c", str(h2load.CONNECTIONS), "-m", str(h2load.STREAMS), "-D", str(options.seconds),
               "-d", str(message), *h2load.CALL, f"http://127.0.0.1:{server.port}{PATH}"]
    return h2load.count(pinned(stage, command), options.seconds)


def measure(stage, server, options):
    before = server.cpu_seconds()
    seen = (run_h2load if server.name.startswith("rls") else run_wrk)(stage, server, options)
    spent = server.cpu_seconds() - before
    if seen["refused"] or seen["faults"]:
        raise processes.BenchError(f"{server.name}: {seen['refused']} were refused, {seen['faults']} failed")
    return {"per_cpu_second": seen["requests"] / spent, "wait_us": seen.get("p99_us", seen.get("max_us"))}


def table(results):
    base = statistics.median(each["per_cpu_second"] for each in results[CONTESTANTS[0]])
    lines = ["| | decisions a CPU second | (min–max) | to nginx + Lua + EVALSHA | p99 µs (rls: longest) |", "|---|---:|---:|---:|---:|"]
    for name, rounds in results.items():
        rates = [each["per_cpu_second"] for each in rounds]
        middle = statistics.median(rates)
        wait = statistics.median(each["wait_us"] for each in rounds)
        lines.append(f"| {name} | {middle:.0f} | {min(rates):.0f}–{max(rates):.0f} | ×{middle / base:.2f} | {wait:.0f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="./dev ask", description=__doc__)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    parser.add_argument("--connections", type=int, default=64, help="of wrk; h2load has 32 with eight calls each")
    options = parser.parse_args()
    with processes.on_stage("ask", options.weir) as stage:
        stage.start_upstream()
        stage.start_redis()
        servers = [start(stage, name) for name in CONTESTANTS]
        results = {name: [] for name in CONTESTANTS}
        for turn in range(options.rounds + 1):  # the first round warms connections and tables
            for server in servers:
                measured = measure(stage, server, options)
                print(f"  {turn}/{options.rounds} {server.name}: {measured['per_cpu_second']:.0f}", file=sys.stderr)
                if turn:
                    results[server.name].append(measured)
        print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
