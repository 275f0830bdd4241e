"""Load over HTTP/1.1 by wrk: as much as the proxy takes."""

import json
import math
import pathlib
import subprocess

import modes
import processes

REPORT = pathlib.Path(__file__).resolve().parent / "report.lua"
LAST_SECONDS = 0.5  # of wrk, after a measurement


def start(stage, url, connections, seconds, body=0):
    command = ["wrk", "-t", "1", "-c", connections, "-d", f"{math.ceil(seconds)}s", "--latency", "--timeout", "10s",
               "-s", REPORT, url, *([body] if body else [])]
    return subprocess.Popen(stage.on_load_cpu(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(wrk):
    """Waits for the end of wrk. Returns what it has counted."""
    said, _ = wrk.communicate(timeout=60)
    if wrk.returncode != 0:
        raise processes.BenchError(f"wrk failed: {said}")
    return json.loads(said.strip().splitlines()[-1])


def run_steadily(stage, server, mode, connections, warm_seconds, seconds):
    """Returns what wrk has counted, and the requests, seconds and CPU of a time in which all connections were open."""
    body = processes.LARGE_OCTETS if mode.endswith("upload") else 0
    running = start(stage, modes.url_of(server, mode), connections, warm_seconds + seconds + LAST_SECONDS, body)
    samples = processes.sample(server, running.pid, (warm_seconds, seconds))
    return processes.share(samples, end(running))
