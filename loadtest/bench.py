#!/usr/bin/env python3
"""Compares weir with nginx, HAProxy and nghttpx on this machine: CPU per request, and latency as wrk and h2load measure it.

CPU is the user and system time of the proxy's processes, divided by the served requests. With wrk, neither counts the time in which
the connections are made. The contestants take turns within one run, because times on shared machines drift. Prints medians over the
rounds, and ratios to nginx."""

import argparse
import contextlib
import json
import math
import pathlib
import platform
import ssl
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import contestants
import h2load
import handshakes
import processes

HERE = pathlib.Path(__file__).resolve().parent
OCTETS_OF_A_QUESTION = 64  # least bytes of a call to Redis: eight doubles a limit from weir; digest, key and numbers from nginx's script
EXPECTED = {mode: 429 if mode.startswith("refused") else 200 for mode in contestants.MODES}
WARM_SECONDS = 2  # of wrk, before a measurement
LAST_SECONDS = 0.5  # of wrk, after a measurement
TITLES = {
    "limited": "Proxied and limited (98-byte answer, limit never reached)",
    "refused": "Refused (429)",
    "tls": "Proxied and limited over TLS 1.3, keep-alive",
    "redis": "Proxied and limited, state in Redis (nginx: Lua and one EVALSHA a request)",
    "rules": f"Proxied and limited by {contestants.RULES} limits at once",
    "watched": "Proxied and limited, access log to a file, weir's metrics read each second",
    "h2": f"Proxied and limited over HTTP/2 and TLS 1.3: {h2load.CONNECTIONS} connections of {h2load.STREAMS} streams",
    "h2c": f"Proxied and limited over HTTP/2 without TLS: {h2load.CONNECTIONS} connections of {h2load.STREAMS} streams",
    "limited-1000": "Proxied and limited, 1,000 connections",
    "limited-5000": "Proxied and limited, 5,000 connections",
    "refused-1000": "Refused (429), 1,000 connections",
    "refused-5000": "Refused (429), 5,000 connections",
    "download": "Answers of 1 MiB",
    "upload": "Requests of 1 MiB",
    "tls-download": "Answers of 1 MiB over TLS 1.3",
    "tls-upload": "Requests of 1 MiB over TLS 1.3",
    "grpc": f"gRPC unary calls, proxied and limited, without TLS: {h2load.CONNECTIONS} connections of {h2load.STREAMS} calls",
    "tls-full": "Full handshakes of TLS 1.3 (figures: of a handshake)",
    "tls-resumed": "Resumed handshakes of TLS 1.3 (figures: of a handshake)",
    "tls12-full": "Full handshakes of TLS 1.2 (figures: of a handshake)",
    "tls12-resumed": "Resumed handshakes of TLS 1.2 (figures: of a handshake)",
}


def url_of(server, mode):
    path = processes.LARGE_PATH if mode.endswith("download") else processes.BODY_PATH if mode.endswith("upload") else "/"
    return f"{'https' if mode.startswith('tls') else 'http'}://127.0.0.1:{server.port}{path}"


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=5, context=ssl._create_unverified_context()) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        return refusal.code


def check_behaviour(stage, server, mode):
    """Checks that the second of two requests gets the response of the mode. Otherwise there is nothing to compare."""
    if mode in contestants.HTTP2:
        h2load.check_behaviour(stage, server, mode)
        return
    if mode in handshakes.MODES:
        handshakes.check_behaviour(stage, server, mode)
        return
    status_of(url_of(server, mode))
    status = status_of(url_of(server, mode))
    if status != EXPECTED[mode]:
        raise processes.BenchError(f"{server.name} answers {status} where {EXPECTED[mode]} is expected:\n"
                                     f"{server.log.read_text(errors='replace')[-2000:]}")


def start_wrk(stage, url, connections, seconds, body=0):
    command = ["wrk", "-t", "1", "-c", str(connections), "-d", f"{math.ceil(seconds)}s", "--latency", "--timeout", "10s",
               "-s", str(HERE / "report.lua"), url, *([str(body)] if body else [])]
    return subprocess.Popen(stage.on_load_cpu(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end_wrk(wrk):
    """Waits for the end of wrk. Returns what it has counted."""
    said, _ = wrk.communicate(timeout=60)
    if wrk.returncode != 0:
        raise processes.BenchError(f"wrk failed: {said}")
    return json.loads(said.strip().splitlines()[-1])


def run_wrk(stage, url, options, seconds):
    return end_wrk(start_wrk(stage, url, options.connections, seconds))


def put_load_by_wrk(stage, server, mode, options):
    """Returns what wrk has counted, but the requests, seconds and CPU only of a time in which all connections were open."""
    body = processes.LARGE_OCTETS if mode.endswith("upload") else 0
    connections = contestants.CONNECTIONS.get(mode, options.connections)
    wrk = start_wrk(stage, url_of(server, mode), connections, WARM_SECONDS + options.seconds + LAST_SECONDS, body)
    samples = []
    for wait in (WARM_SECONDS, options.seconds):
        time.sleep(wait)
        samples.append((time.monotonic(), server.cpu_seconds(), processes.octets_read(wrk.pid)))
    seen = end_wrk(wrk)
    seconds, spent, octets = (last - first for first, last in zip(*samples))
    share = octets / max(seen["octets"], 1)
    return seen | {"spent": spent, "counted": share * seen["requests"], "seconds": seconds}


def put_load(stage, server, mode, options):
    """Returns what wrk or h2load has counted. The latencies of wrk are p50 and p99, those of h2load mean and max."""
    if mode not in contestants.HTTP2 and mode not in handshakes.MODES:
        return put_load_by_wrk(stage, server, mode, options)
    before = server.cpu_seconds()
    run = handshakes.run if mode in handshakes.MODES else h2load.run
    seen = run(stage, server, mode, options.seconds)
    return seen | {"spent": server.cpu_seconds() - before, "counted": seen["requests"]}


@contextlib.contextmanager
def metrics_read(admin):
    """Reads /metrics once a second from this port while the block runs. Does nothing if the port is None."""
    left = threading.Event()

    def read():
        while not left.wait(1):
            urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=5).read()

    reader = threading.Thread(target=read)
    if admin:
        reader.start()
    try:
        yield
    finally:
        left.set()
        if admin:
            reader.join()


def latencies(mode):
    return ("mean_us", "max_us") if mode in contestants.HTTP2 else ("p50_us", "p99_us")


def measure(stage, server, mode, options):
    octets = stage.redis_octets() if mode == "redis" else 0
    with metrics_read(stage.admins.get(server.port)):
        seen = put_load(stage, server, mode, options)
    if mode == "redis" and stage.redis_octets() - octets < OCTETS_OF_A_QUESTION * seen["requests"]:
        raise processes.BenchError(f"{server.name} did not ask Redis about every request: that is another comparison")
    others = seen["requests"] - seen["refused"] if EXPECTED[mode] == 429 else seen["refused"]
    if others > seen["requests"] // 1000 or seen["faults"]:
        raise processes.BenchError(f"{server.name}: {others} answers were not {EXPECTED[mode]}, {seen['faults']} failed")
    return {"cpu_us": seen["spent"] * 1e6 / seen["counted"], "rate": seen["counted"] / seen["seconds"],
            **{name: seen[name] for name in latencies(mode)}}


def run(stage, options):
    """Returns {mode: {contestant: [one measurement a round]}}. Each round measures all modes, so that modes can be compared, too."""
    servers = {}
    for mode in options.modes:
        for name in options.contestants:
            server = contestants.start(stage, name, mode)
            if server:
                servers[mode, name] = server
                check_behaviour(stage, server, mode)
                if mode in handshakes.MODES:
                    handshakes.run(stage, server, mode, 1)
                if mode in contestants.HTTP2:
                    h2load.run(stage, server, mode, 1)  # warms connections, tables and branch predictors
    results = {mode: {} for mode in options.modes}
    for turn in range(options.rounds):
        for (mode, name), server in servers.items():
            measured = measure(stage, server, mode, options)
            results[mode].setdefault(name, []).append(measured)
            print(f"  {mode} {turn + 1}/{options.rounds} {name}: {measured['cpu_us']:.2f} µs", file=sys.stderr)
    return results


def table(mode, results):
    def median(name, figure):
        return statistics.median(each[figure] for each in results[name])

    waits = latencies(mode)
    titles = " | ".join(name.replace("_us", " µs") for name in waits)
    lines = [f"\n{TITLES[mode]}\n", f"| | CPU µs/request | (min–max) | to nginx | {titles} | requests/s |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for name, rounds in results.items():
        costs = [each["cpu_us"] for each in rounds]
        ratio = f"×{median(name, 'cpu_us') / median('nginx', 'cpu_us'):.2f}" if "nginx" in results else ""
        lines.append(f"| {name} | {median(name, 'cpu_us'):.2f} | {min(costs):.2f}–{max(costs):.2f} | {ratio} | "
                     f"{' | '.join(f'{median(name, each):.0f}' for each in waits)} | {median(name, 'rate'):.0f} |")
    return "\n".join(lines)


def version_of(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[0]


def describe_machine(stage, options):
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    versions = [version_of(command) for command in (["nginx", "-v"], ["haproxy", "-v"], ["nghttpx", "--version"], [str(stage.weir), "version"])]
    pinning = (f"proxy on CPU {stage.proxy_cpu}, load, upstream and Redis on CPU {stage.load_cpu}"
               if stage.load_cpu is not None else "nothing pinned")
    return (f"{model}, {platform.system()} {platform.release()}; {'; '.join(versions)}\n"
            f"./dev bench {' '.join(sys.argv[3:])}: {options.rounds} rounds of {options.seconds} s, "
            f"{options.connections} keep-alive connections, one worker each; {pinning}")


def parse_options():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--modes", nargs="+", default=contestants.MODES, choices=contestants.MODES)
    parser.add_argument("--contestants", nargs="+", default=list(contestants.CONTESTANTS),
                        choices=list(contestants.CONTESTANTS))
    parser.add_argument("--other", type=pathlib.Path, metavar="WEIR", help="another build of weir that takes turns as well")
    parser.add_argument("--json", type=pathlib.Path, help="write every measurement there")
    return parser.parse_args()


def main():
    options = parse_options()
    with processes.on_stage("bench", options.weir, options.other) as stage:
        stage.start_upstream()
        if "redis" in options.modes:
            stage.start_redis()
        if "grpc" in options.modes:
            stage.start_grpc_upstream()
        results = run(stage, options)
        print(describe_machine(stage, options))
        for mode, measured in results.items():
            print(table(mode, measured))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
