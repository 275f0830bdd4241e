"""Load over HTTP/1.1 or by gRPC at a constant rate, by paced.cpp, which this module compiles."""

import json
import pathlib
import subprocess

import modes
import processes

SOURCE = pathlib.Path(__file__).resolve().parent / "paced.cpp"
WARM_SECONDS = 0.3  # of a load, which do not count
SEARCH_SECONDS = 0.5
SHARE_OF_LOAD = 1 / 3
MOST_RATE = 15_000  # requests a second; with more, the client and the upstream, which share a CPU, would measure themselves
STRAIGHT = "straight"  # the upstream alone, beside the contestants


def program(stage):
    """Returns the path of the compiled program. Compiles it once on each stage."""
    path = stage.folder / "paced"
    if not path.exists():
        subprocess.run(["g++", "-std=c++20", "-O2", "-o", path, SOURCE], check=True)
    return path


def get(path="/"):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(path, body, content_type):
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body)


def run(stage, port, connections, rate, seconds, request=None, path="h1", warm=WARM_SECONDS):
    """Sends so many requests a second to a port of 127.0.0.1; with a rate of 0, as many as the server answers. `path`: of gRPC calls,
    whose message is `request`; "h1": HTTP/1.1. Returns what paced.cpp has counted: "requests", "seconds", "refused", "faults", "p50_us",
    "p99_us", "max_us", and how late it sent them: "late_p50_us", "late_p99_us". Times count from when a request was due."""
    command = [program(stage), port, connections, rate, warm, seconds, path]
    done = subprocess.run(stage.on_load_cpu(command), input=request or get(), capture_output=True, timeout=warm + seconds + 30, check=False)
    if done.returncode != 0:
        raise processes.BenchError(f"paced failed: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)


def choose_rate(stage, mode, servers):
    """Chooses the rate of a mode: a third of what the slowest of these servers answers over the connections of the mode, and at
    most MOST_RATE. All get the same rate, so that their latencies compare."""
    rates = [run(stage, each.port, modes.PACED[mode], 0, SEARCH_SECONDS)["requests"] / SEARCH_SECONDS for each in servers]
    stage.rates[mode] = round(min(MOST_RATE, min(rates) * SHARE_OF_LOAD))


def run_counted(stage, server, mode, seconds):
    """Does the same as run() at the rate of the mode. "counted" and "seconds" are the requests and the time, "spent" is the CPU time of
    the server. All three contain the warm seconds."""
    before = server.cpu_seconds()
    seen = run(stage, server.port, modes.PACED[mode], stage.rates[mode], seconds)
    spent, in_all = server.cpu_seconds() - before, WARM_SECONDS + seconds
    return seen | {"spent": spent, "seconds": in_all, "counted": seen["requests"] * in_all / seconds}
