#!/usr/bin/env python3
"""Measures the effect of slow clients on others. slowhttptest holds 1,000 connections that send their heads or bodies, or read
their responses, a few bytes at a time. Meanwhile wrk sends requests as an ordinary client, whose latency is compared with that
without slow clients. Attackers, clients, weir and upstream share the processors of one machine, which also costs time. So the
same attack is also run against another weir. The difference between the two results is caused by weir. All take turns, because
times on shared machines drift. Prints the median of p99 with its lowest and highest round. The test does not pass or fail."""

import argparse
import contextlib
import itertools
import pathlib
import statistics
import subprocess
import sys
import time

import bench
import contestants
import processes

ATTACKS = {
    "nobody": None,
    "slow heads": ["-H", "-i", "2", "-x", "24"],
    "slow bodies": ["-B", "-i", "2", "-x", "10", "-s", "8192"],
    "slow reads": ["-X", "-w", "10", "-y", "20", "-n", "2", "-z", "8", "-k", "3"],
}
LASTS = 60  # seconds after which an attack ends by itself


@contextlib.contextmanager
def attack(stage, server, arguments, options):
    """Runs slowhttptest until the `with` block ends. It holds its connections when the block starts."""
    if arguments is None:
        yield 0
        return
    # -p: once a probe has waited so long, slowhttptest 1.8.2 spins on a processor that other measurements need.
    command = ["slowhttptest", *arguments, "-c", str(options.slow), "-r", str(options.slow), "-l", str(LASTS), "-p", str(LASTS),
               "-u", bench.url_of(server, "limited")]
    if stage.load_cpu is not None:
        command = ["taskset", "-c", str(stage.load_cpu), *command]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=stage.folder) as running:
        try:
            yield wait_gathered(server, options)
        finally:
            running.kill()


def connections_of(server):
    """Returns the number of established connections to the server (proc(5), tcp: state 01)."""
    port = f":{server.port:04X}"
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(1 for line in lines if line.split()[1].endswith(port) and line.split()[3] == "01")


def wait_gathered(server, options):
    deadline = time.monotonic() + 10
    while connections_of(server) < options.slow and time.monotonic() < deadline:
        time.sleep(0.05)
    return connections_of(server)


def main():
    parser = argparse.ArgumentParser(prog="./dev slow", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--slow", type=int, default=1000, help="slow connections")
    parser.add_argument("--connections", type=int, default=32, help="ordinary ones")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    options = parser.parse_args()
    seen = {}
    with processes.on_stage("slow", options.weir) as stage:
        stage.upstream = processes.free_port()  # an upstream that waits for a request's body, unlike nginx's `return`
        stage.start("upstream", [stage.weir, "echo", "--listen", f"127.0.0.1:{stage.upstream}"], stage.upstream, stage.load_cpu)
        asked, beside = (contestants.start(stage, "weir", "limited") for _ in range(2))
        bench.run_wrk(stage, bench.url_of(asked, "limited"), options, 1)
        for _ in range(options.rounds):
            for (name, arguments), attacked in itertools.product(ATTACKS.items(), (asked, beside)):
                case = f"{name}{', at another weir' if attacked is beside else ''}"
                if arguments is None and attacked is beside:
                    continue
                with attack(stage, attacked, arguments, options) as held:
                    measured = bench.run_wrk(stage, bench.url_of(asked, "limited"), options, options.seconds)
                    held = min(held, connections_of(attacked))
                seen.setdefault(case, []).append({**measured, "held": held})
    print("| beside | slow connections held | p50 us | p99 us | lowest, highest | requests/s | faults |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, rounds in seen.items():
        p50, p99 = ([each[figure] for each in rounds] for figure in ("p50_us", "p99_us"))
        rate = statistics.median(each["requests"] / each["seconds"] for each in rounds)
        print(f"| {name} | {min(each['held'] for each in rounds)} | {statistics.median(p50):.0f} | {statistics.median(p99):.0f} | "
              f"{min(p99):.0f}, {max(p99):.0f} | {rate:.0f} | {sum(each['faults'] for each in rounds)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
