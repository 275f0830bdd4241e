#!/usr/bin/env python3
"""Measures the cost of reading /metrics once a second, with an empty key table, with some keys and with a full one. Reports CPU
time as a share of a core, compared with the time without reading. Also reports the bytes of a page, the resident memory, and
the memory for the lists of heaviest clients.

wrk sends each request as another client until the table is full. The limit takes years to refill, so no client is evicted
meanwhile. CPU time comes from the process's own clock (clock_getcpuclockid(3)), which counts nanoseconds."""

import argparse
import pathlib
import subprocess
import sys
import time
import urllib.request

import processes

FEW = 10_000  # keys beyond which the lists of heaviest clients do not grow
FILL_SECONDS = 300  # a machine that needs longer is too slow for the rest


def configuration(port, admin, keys):
    return f"""
[server]
workers = 1
[log]
access = "off"
[admin]
address = "127.0.0.1:{admin}"
[[listener]]
address = "127.0.0.1:{port}"
[state]
memory = {{ max_keys = {keys} }}
[[route]]
respond = {{ status = 200, body = "ok" }}
[[rule]]
name = "each"
key = ["api_key"]
limit = "10/3000day"
"""


def read_page(admin):
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=10) as answer:
        return answer.read()


def metric(page, name):
    return next(float(line.split()[-1]) for line in page.decode().splitlines() if line.startswith(name + " "))


def fill(stage, weir, admin, keys):
    if metric(read_page(admin), "weir_keys") >= keys:
        return
    script = stage.folder / "each.lua"
    script.write_text('local n = 0\nfunction request()\n  n = n + 1\n'
                      '  return wrk.format("GET", "/", {["X-API-Key"] = "client-" .. n})\nend\n')
    pinned = ["taskset", "-c", str(stage.load_cpu)] if stage.load_cpu is not None else []
    command = [*pinned, "wrk", "-t", "1", "-c", "64", "-d", f"{FILL_SECONDS}s", "-s", script, f"http://127.0.0.1:{weir.port}/"]
    began = time.monotonic()
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL) as wrk:
        while wrk.poll() is None and metric(read_page(admin), "weir_keys") < keys:
            time.sleep(0.5)
        wrk.terminate()
    known = metric(read_page(admin), "weir_keys")
    if known < keys:
        raise processes.BenchError(f"the table knows {known:.0f} of {keys} keys after {time.monotonic() - began:.0f} s")
    print(f"filled with {known:.0f} keys in {time.monotonic() - began:.0f} s", file=sys.stderr)


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # of all its threads


def share_of_core(pid, seconds, each_second=lambda: None):
    """Returns the share of a core that the process uses, while `each_second` is called at the start of each second."""
    began, before = time.monotonic(), cpu_seconds(pid)
    for second in range(seconds):
        each_second()
        time.sleep(max(0.0, began + second + 1 - time.monotonic()))
    return (cpu_seconds(pid) - before) / (time.monotonic() - began)


def measure(weir, admin, seconds):
    pid = weir.process.pid
    idle = share_of_core(pid, seconds)
    scraped = share_of_core(pid, seconds, lambda: read_page(admin))
    page = read_page(admin)
    print(f"| {metric(page, 'weir_keys'):.0f} | {idle:.3%} | {scraped:.3%} | {(scraped - idle) * 1e3:.2f} | {len(page)} | "
          f"{processes.resident_bytes(pid) / 2**20:.1f} | {metric(page, 'weir_top_memory_bytes') / 1024:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev scrape", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=20, help="of each measurement")
    options = parser.parse_args()
    with processes.on_stage("scrape", options.weir) as stage:
        port, admin = processes.free_port(), processes.free_port()
        file = stage.folder / "weir.toml"
        file.write_text(configuration(port, admin, options.keys))
        weir = stage.start("weir", [stage.weir, "run", "--config", file], port, stage.proxy_cpu)
        print("| keys | nobody asks | read each second | ms a page | octets a page | resident MiB | of it who spends most, KiB |\n"
              "|---:|---:|---:|---:|---:|---:|---:|")
        for keys in (0, FEW, options.keys):
            fill(stage, weir, admin, keys)
            measure(weir, admin, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
