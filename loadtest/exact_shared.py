#!/usr/bin/env python3
"""Checks that three weirs with one Redis are one exact limiter: every algorithm that Redis keeps, ten runs each, wrk over 200
connections. Each run has a client of its own, whose limit is unused. The clock of one weir is a second fast, and that of
another one a second slow (libfaketime).

The number that one exact limiter admits in a run is known, because no units return to the limit during the run:

- buckets, windows, logs: TOTAL, which is the burst, or the limit of a window that lasts for years.
- leaky_bucket: one request departs at once and `queue` wait, for a minute each, until the first clients leave.
- concurrency: the limit. It is the highest number that the upstream had at once until the first clients leave. (A permit is released
  then, although the upstream may continue.)
- penalty, streams: as kinds.py says. They have at most three runs.
- a bucket that refills (100/s, never full again in a run): burst + rate x time - the rest. The time lies between the first and the
  last request. Unused prefetched units are subtracted.

The weirs' own counts (weir_decisions_total) are compared with that number. No client may have seen more admissions."""

import argparse
import asyncio
import http.client
import json
import pathlib
import re
import subprocess
import sys
import threading
import time

import kinds
import processes

HERE = pathlib.Path(__file__).resolve().parent
FAKETIME = next(iter(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
CLOCKS = ("+0s", "+1s", "-1s")
TOTAL, QUEUE, PLACES = 2000, 100, 50
RATE, BURST = 100, 1000
YEARS = f'limit = "{TOTAL}/3000day"'
CASES = {
    "token_bucket": f'limit = "1/day"\nburst = {TOTAL}',
    "token_bucket, leased": f'limit = "1/day"\nburst = {TOTAL}\nlease = "10%"',
    "stepwise": f'limit = "1/day"\nburst = {TOTAL}\nrefill = "stepwise"',
    "gcra": f'algorithm = "gcra"\nlimit = "1/day"\nburst = {TOTAL - 1}',
    "gcra, leased": f'algorithm = "gcra"\nlimit = "1/day"\nburst = {TOTAL - 1}\nlease = "10%"',
    "fixed_window": f'algorithm = "fixed_window"\n{YEARS}',
    "fixed_window, leased": f'algorithm = "fixed_window"\n{YEARS}\nlease = "10%"',
    "sliding_log": f'algorithm = "sliding_log"\nlimit = "{TOTAL}/day"',
    "sliding_window": f'algorithm = "sliding_window"\n{YEARS}',
    "sliding_window, leased": f'algorithm = "sliding_window"\n{YEARS}\nlease = "10%"',
    "sliding_window of 7": f'algorithm = "sliding_window"\nbuckets = 7\n{YEARS}',
    "leaky_bucket": f'algorithm = "leaky_bucket"\nlimit = "1/min"\nqueue = {QUEUE}\nmax_wait = "1day"',
    "concurrency": f'algorithm = "concurrency"\nlimit = {PLACES}',
    "penalty": kinds.PENALTY,
    "streams": kinds.STREAMS,
    "refilled": f'limit = "{RATE}/s"\nburst = {BURST}',
    "refilled, leased": f'limit = "{RATE}/s"\nburst = {BURST}\nlease = "10%"',
}


def path_of(case):
    return "/" + re.sub(r"\W+", "-", case)


class SlowUpstream:
    """Responds after 20 ms, and counts its concurrent requests."""

    def __init__(self):
        self.most = self.now = 0
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve(ready)), daemon=True).start()
        ready.wait(10)

    async def serve(self, ready):
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await server.serve_forever()

    async def answer(self, reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.now += 1
                self.most = max(self.most, self.now)
                await asyncio.sleep(0.02)
                self.now -= 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def configuration(redis, port, admin, upstream, streams):
    rules = "".join(f'[[rule]]\nname = "{case}"\nkey = ["api_key"]\nmatch = {{ path = "{path_of(case)}" }}\n{text}\n'
                    for case, text in CASES.items())
    return f"""
[server]
workers = 2
drain = "1s"
[log]
access = "off"
[[listener]]
address = "127.0.0.1:{port}"
[admin]
address = "127.0.0.1:{admin}"
[state]
store = "redis"
key_secret = "exact"
redis = {{ url = "redis://127.0.0.1:{redis}", timeout = "2s" }}
[[upstream]]
name = "slow"
servers = ["127.0.0.1:{upstream}"]
[[route]]
match = {{ path = "/concurrency" }}
upstream = "slow"
{kinds.routes(streams)}
[[route]]
respond = {{ status = 200, body = "ok" }}
{rules}"""


def faked(clock):
    """Returns the command under which a process has a wall clock with this difference."""
    if FAKETIME is None:
        raise processes.BenchError("libfaketime is missing: ./dev deps bench")
    return ["env", f"LD_PRELOAD={FAKETIME}", f"FAKETIME={clock}", "FAKETIME_DONT_FAKE_MONOTONIC=1"]


def start_weirs(stage, upstream, streams):
    weirs = []
    for number, clock in enumerate(CLOCKS):
        port, admin = processes.free_port(), processes.free_port()
        file = stage.folder / f"weir{number}.toml"
        file.write_text(configuration(stage.redis, port, admin, upstream, streams))
        told = subprocess.run([*faked(clock), stage.weir, "redis-check", "--config", file], capture_output=True, text=True, check=False)
        print(f"weir {number}: Redis's clock is", (re.search(r"clock +(.*)", told.stdout) or ["", "unknown"])[1], flush=True)
        weir = stage.start(f"weir{number}", [*faked(clock), stage.weir, "run", "--config", file], port, None)
        weir.admin = admin
        weirs.append(weir)
    return weirs


def metric(weirs, name):
    """Returns the samples of all weirs: labels and value."""
    samples = []
    for weir in weirs:
        connection = http.client.HTTPConnection("127.0.0.1", weir.admin, timeout=5)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        samples += [(labels, int(float(value))) for labels, value in re.findall(rf"^{name}\{{([^}}]*)\}} (\S+)$", text, re.M)]
    return samples


def admitted_by(weirs, case):
    return sum(value for labels, value in metric(weirs, "weir_decisions_total")
               if f'rule="{case}"' in labels and re.search('outcome="(admitted|delayed)"', labels))


def unspent_by(weirs):
    """Returns the number of prefetched units for which no request was admitted."""
    signs = {"taken": 1, "put_back": 1, "spent": -1, "returned": 0, "lost": 0}
    return sum(signs[labels.split('"')[1]] * value for labels, value in metric(weirs, "weir_lease_units_total"))


def ask(weir, case, client, count=1):
    """Sends requests one by one. Returns for each the times between which it was decided, its status, and the rest that it
    reports."""
    connection = http.client.HTTPConnection("127.0.0.1", weir.port, timeout=5)
    connection.connect()
    answers = []
    for _ in range(count):
        before = time.monotonic()
        connection.request("GET", path_of(case), headers={"X-API-Key": client})
        answer = connection.getresponse()
        answer.read()
        answers.append((before, time.monotonic(), answer.status, int(answer.getheader("X-RateLimit-Remaining"))))
    return answers


def wrk(weir, case, client, options):
    command = ["wrk", "-t", "1", "-c", str(options.connections // len(CLOCKS)), "-d", f"{options.seconds}s", "--timeout", "30s",
               "-H", f"X-API-Key: {client}", "-s", HERE / "report.lua", f"http://127.0.0.1:{weir.port}{path_of(case)}"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def flood(weirs, case, client, options):
    reports = []
    threads = [threading.Thread(target=lambda each=weir: reports.append(wrk(each, case, client, options))) for weir in weirs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(report["requests"] for report in reports), sum(report["requests"] - report["refused"] for report in reports)


def run_counted(weirs, case, client, options):
    """Returns the number of requests, the admitted ones, and the least and the most that one exact limiter can have admitted."""
    before = admitted_by(weirs, case)
    requests, seen = flood(weirs, case, client, options)
    return requests, max(admitted_by(weirs, case) - before, seen), TOTAL, TOTAL


def flood_watched(weirs, case, client, options, look):
    """Returns the number of requests, and the result of look() while all clients are still connected."""
    seen = []
    watch = threading.Timer(0.7 * options.seconds, lambda: seen.append(look()))
    watch.start()
    requests, _ = flood(weirs, case, client, options)
    watch.join()
    return requests, seen[0]


def run_queued(weirs, case, client, options):
    before = admitted_by(weirs, case)
    requests, admitted = flood_watched(weirs, case, client, options, lambda: admitted_by(weirs, case) - before)
    return requests, admitted, QUEUE + 1, QUEUE + 1


def run_held(weirs, case, client, options, upstream):
    while upstream.now:  # waits for requests of the previous run
        time.sleep(0.02)
    upstream.most = 0
    requests, most = flood_watched(weirs, case, client, options, lambda: upstream.most)
    return requests, most, PLACES, PLACES


def run_refilled(weirs, case, client, options):
    before, unspent = admitted_by(weirs, case), unspent_by(weirs)
    began = ask(weirs[0], case, client, BURST // 2)[0]  # so many that the bucket is not full before wrk starts
    requests, _ = flood(weirs, case, client, options)
    time.sleep(0.1)  # then units are left and no weir has prefetched any, so Redis decides the last request
    ended = ask(weirs[1], case, client)[0]
    admitted = admitted_by(weirs, case) - before
    most = BURST + RATE * (ended[1] - began[0])
    least = BURST + RATE * (ended[0] - began[1]) - ended[3] - (unspent_by(weirs) - unspent)
    return requests, admitted, int(least) - 1, int(most - ended[3]) + 1


def run_kind(weirs, case, client, options, streams):
    """Runs a penalty or streams. Returns the number of requests, the admitted requests or used units, and the right number of them
    (least, most)."""
    ports = [weir.port for weir in weirs]
    if case == "streams":
        asked, used, right = kinds.run_streams(ports, path_of(case), client, 500, 60, streams)
    else:
        asked, used, right = kinds.run_penalties(ports, path_of(case), client, options.seconds + 1, 60,
                                                 lambda: sum(value for _, value in metric(weirs, "weir_penalties_total")))
    return asked, used, right, right


def measure(weirs, case, options, upstream, streams):
    exact, requests, counts = 0, 0, set()
    runs = min(options.runs, 3) if case in ("penalty", "streams") else options.runs
    for number in range(runs):
        client = f"{case}-{number}"
        if case == "concurrency":
            asked, admitted, least, most = run_held(weirs, case, client, options, upstream)
        elif case == "leaky_bucket":
            asked, admitted, least, most = run_queued(weirs, case, client, options)
        elif case in ("penalty", "streams"):
            asked, admitted, least, most = run_kind(weirs, case, client, options, streams)
        elif case.startswith("refilled"):
            asked, admitted, least, most = run_refilled(weirs, case, client, options)
        else:
            asked, admitted, least, most = run_counted(weirs, case, client, options)
        requests += asked
        exact += least <= admitted <= most
        if not least <= admitted <= most:
            print(f"{case}, run {number}: {admitted} admitted, where it is {least} to {most}", flush=True)
        counts.add(f"{admitted}" if least == most else f"{admitted} of {least} to {most}")
    print(f"{case}: {exact} of {runs} runs exact, {requests} requests; {', '.join(sorted(counts)[:4])} admitted a run", flush=True)
    return exact == runs


def main():
    parser = argparse.ArgumentParser(prog="./dev exact shared", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=1, help="of a run")
    parser.add_argument("--case", action="append", choices=CASES, help="some alone; repeat it for several")
    options = parser.parse_args()
    upstream, streams = SlowUpstream(), kinds.StreamUpstream()
    with processes.on_stage("exact", options.weir) as stage:
        stage.start_redis()
        weirs = start_weirs(stage, upstream.port, streams)
        results = [measure(weirs, case, options, upstream, streams) for case in options.case or CASES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
