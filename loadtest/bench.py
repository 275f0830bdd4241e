#!/usr/bin/env python3
"""Compares weir with nginx, HAProxy and nghttpx on this machine: CPU and instructions per request, and latency.

CPU is the user and system time of the proxy's processes, divided by the served requests. With wrk, neither counts the time in which
the connections are made. The contestants take turns within one run, because times on shared machines drift. Prints medians over the
rounds, and ratios to nginx."""

import argparse
import contextlib
import json
import pathlib
import ssl
import sys
import threading
import urllib.error
import urllib.request

import contestants
import h2load
import handshakes
import instructions
import modes
import paced
import processes
import tables
import wrk

OCTETS_OF_A_QUESTION = 64  # least bytes of a call to Redis: eight doubles a limit from weir; digest, key and numbers from nginx's script


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=5, context=ssl._create_unverified_context()) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        return refusal.code


def check_behaviour(stage, server, mode):
    """Checks that the second of two requests gets the response of the mode. Otherwise there is nothing to compare."""
    if mode in modes.HTTP2:
        h2load.check_behaviour(stage, server, mode)
        return
    if mode in handshakes.MODES:
        handshakes.check_behaviour(stage, server, mode)
        return
    url = modes.url_of(server, mode)
    status_of(url)
    status = status_of(url)
    if status != modes.expected_status(mode):
        raise processes.BenchError(f"{server.name} answers {status} where {modes.expected_status(mode)} is expected:\n"
                                   f"{server.log.read_text(errors='replace')[-2000:]}")


def put_load(stage, server, mode, options):
    """Returns what the client has counted. The latencies of wrk are p50 and p99, those of h2load mean and max."""
    if mode in modes.MANY_STREAMS:
        return h2load.run_steadily(stage, server, mode, options.warm, options.seconds)
    if mode in modes.PACED:
        return paced.run_counted(stage, server, mode, options.seconds)
    if mode not in modes.HTTP2 and mode not in handshakes.MODES:
        return wrk.run_steadily(stage, server, mode, modes.CONNECTIONS.get(mode, options.connections), options.warm, options.seconds)
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


def measure(stage, server, mode, options):
    octets = stage.redis_octets() if mode == "redis" else 0
    with metrics_read(stage.admins.get(server.port)):
        seen = put_load(stage, server, mode, options)
    if mode == "redis" and stage.redis_octets() - octets < OCTETS_OF_A_QUESTION * seen["requests"]:
        raise processes.BenchError(f"{server.name} did not ask Redis about every request: that is another comparison")
    others = seen["requests"] - seen["refused"] if modes.expected_status(mode) == 429 else seen["refused"]
    if others > seen["requests"] // 1000 or seen["faults"]:
        raise processes.BenchError(f"{server.name}: {others} answers were not {modes.expected_status(mode)}, {seen['faults']} failed")
    if not seen["counted"]:
        raise processes.BenchError(f"{server.name} answered nothing in {options.seconds} s")
    return {"cpu_us": seen["spent"] * 1e6 / seen["counted"], "rate": seen["counted"] / seen["seconds"],
            **{name: seen[name] for name in tables.latencies(mode)}}


def start_servers(stage, options):
    """Returns {(mode, contestant): server}. In modes at a constant rate, the upstream alone takes part as well."""
    servers = {}
    for mode in options.modes:
        if mode in modes.PACED:
            servers[mode, paced.STRAIGHT] = stage.upstream_server
        for name in options.contestants:
            server = contestants.start(stage, name, mode)
            if server:
                servers[mode, name] = server
                check_behaviour(stage, server, mode)
                if mode in handshakes.MODES:
                    handshakes.run(stage, server, mode, 1)
                if mode in modes.HTTP2 and mode not in modes.MANY_STREAMS:
                    h2load.run(stage, server, mode, 1)  # warms connections, tables and branch predictors
        if mode in modes.PACED:
            paced.choose_rate(stage, mode, [servers[each] for each in servers if each[0] == mode])
    return servers


def run(stage, options):
    """Returns {mode: {contestant: [one measurement a round]}}. Each round measures all modes, so that modes can be compared, too."""
    servers = start_servers(stage, options)
    results = {mode: {} for mode in options.modes}
    for turn in range(options.rounds):
        for (mode, name), server in servers.items():
            measured = measure(stage, server, mode, options)
            results[mode].setdefault(name, []).append(measured)
            print(f"  {mode} {turn + 1}/{options.rounds} {name}: {measured['cpu_us']:.2f} µs", file=sys.stderr)
    for server in set(servers.values()) - {stage.upstream_server}:
        stage.stop(server)
    return results


def parse_options():
    width = max(map(len, modes.MODES))
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="modes:\n" + "\n".join(f"  {mode:{width}}  {title}" for mode, title in modes.TITLES.items()))
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    parser.add_argument("--warm", type=float, default=2, metavar="SECONDS", help="of load before each measurement, by wrk or of many streams")
    parser.add_argument("--connections", type=int, default=64, help="of wrk, in modes that do not say how many")
    parser.add_argument("--modes", nargs="+", default=modes.MODES, choices=modes.MODES, metavar="MODE", help="as below; all by default")
    parser.add_argument("--contestants", nargs="+", default=list(contestants.CONTESTANTS), choices=list(contestants.CONTESTANTS))
    parser.add_argument("--other", type=pathlib.Path, metavar="WEIR", help="another build of weir that takes turns as well")
    parser.add_argument("--instructions", type=int, metavar="REQUESTS",
                        help="count the instructions of so many requests, too; needs valgrind, and takes a minute for each mode")
    parser.add_argument("--realtime", action="store_true",
                        help="run all processes before any other of the machine (SCHED_FIFO), for latencies on a busy one; needs root")
    parser.add_argument("--json", type=pathlib.Path, help="write every measurement there")
    return parser.parse_args()


def main():
    options = parse_options()
    with processes.on_stage("bench", options.weir, options.other, options.realtime) as stage:
        stage.start_upstream()
        if "redis" in options.modes:
            stage.start_redis()
        if "grpc" in options.modes:
            stage.start_grpc_upstream()
        results = run(stage, options)
        executed = {mode: instructions.count(stage, mode, list(results[mode]), options.instructions)
                    for mode in options.modes if options.instructions and mode not in modes.PACED}
        print(tables.describe_machine(stage, options))
        print(tables.all_of(results, executed))
    if options.json:
        options.json.write_text(json.dumps({"measurements": results, "instructions": executed}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
