#!/usr/bin/env python3
"""Checks that weir can be changed under HTTP/2 load, plain and over TLS. h2load sends requests over 32 connections of eight
streams while weir reloads a hundred times. Then twenty new processes take over, and weir drains and starts again ten times.
h2load opens no new connection after a GOAWAY. So during upgrades and restarts, clients of this program send the requests. No
request may be lost: each gets an answer, or weir says that it did not process the request, and the client sends it again. The
admissions of a shared limit must be exactly that limit. Restarts are an exception, because a new process starts with empty
counts."""

import argparse
import pathlib
import ssl
import sys
import threading
import time

import h2load
import http2_client
import live
import processes

CLIENTS, STREAMS = 16, 8
LISTENERS = {"h2c": 'protocols = ["h2c"]', "h2": 'protocols = ["h2"]'}
REFUSAL = b'"error":"rate_limit_exceeded"'


class Client(threading.Thread):
    """Keeps eight requests under way, and opens another connection when the server has announced the end of this one."""

    def __init__(self, port, secure, ending):
        super().__init__(daemon=True)
        self.port, self.ending, self.tls = port, ending, None
        self.admitted, self.refused, self.failed, self.again = 0, 0, 0, 0
        if secure:
            self.tls = ssl._create_unverified_context()
            self.tls.set_alpn_protocols(["h2"])

    def run(self):
        while not self.ending.is_set():
            try:
                client = http2_client.Http2Client(self.port, self.tls)
            except OSError:
                time.sleep(0.005)  # between the end of a process and the start of the next one
                continue
            with client:
                self.use(client)

    def use(self, client):
        while not client.ended:
            while not (client.leaving or self.ending.is_set()) and len(client.open) < STREAMS:
                client.request()
            if not client.open:
                client.flush()
                break
            client.exchange()
            self.count(client)
        self.again += client.unprocessed
        self.failed += client.lost

    def count(self, client):
        for body in client.answered:
            self.admitted += body == b"ok"
            self.refused += REFUSAL in body
            self.failed += body != b"ok" and REFUSAL not in body
        client.answered.clear()


class Clients:
    """Sixteen clients, which run until finish() returns their counts."""

    def __init__(self, weir):
        self.began, self.ending = time.monotonic(), threading.Event()
        self.clients = [Client(weir.port, weir.mode == "h2", self.ending) for _ in range(CLIENTS)]
        for client in self.clients:
            client.start()

    def finish(self):
        self.ending.set()
        for client in self.clients:
            client.join(http2_client.PATIENCE)
        stuck = sum(client.is_alive() for client in self.clients)
        total = {name: sum(getattr(client, name) for client in self.clients) for name in ("admitted", "refused", "failed", "again")}
        return {"admitted": total["admitted"], "refused": total["refused"], "faults": total["failed"] + stuck * STREAMS,
                "again": total["again"], "seconds": time.monotonic() - self.began}


class H2load:
    """h2load, until its time is over."""

    def __init__(self, stage, weir, seconds):
        self.counts = None
        self.thread = threading.Thread(target=self.run, args=(stage, weir, seconds))
        self.thread.start()

    def run(self, *arguments):
        stage, weir, seconds = arguments
        self.counts = h2load.run(stage, weir.server, weir.mode, seconds)

    def finish(self):
        self.thread.join()
        if self.counts is None:
            raise processes.BenchError("h2load failed")
        return {**self.counts, "admitted": self.counts["requests"] - self.counts["refused"], "again": 0}


class Weir(live.Weir):
    """The process that serves at present. restart() drains it, and starts another one on the same port."""

    def __init__(self, stage, mode, limit):
        self.stage, self.mode = stage, mode
        super().__init__(stage, mode == "h2", limit, LISTENERS[mode])

    def restart(self, _number):
        self.server.process.terminate()
        status = self.server.process.wait(http2_client.PATIENCE)
        if status:
            raise processes.BenchError(f"weir ended with status {status}")
        self.stage.stop(self.server)
        self.start()


def measure(stage, mode, what, times, options):
    weir = Weir(stage, mode, options.limit)
    try:
        seconds = options.seconds
        load = H2load(stage, weir, seconds) if what == "reload" else Clients(weir)
        live.spread(weir, what, times, seconds)
        return report(weir, what, times, load.finish(), options.limit)
    finally:
        weir.stop()


def report(weir, what, times, said, limit):
    answers = said["admitted"] + said["refused"]
    exact = what == "restart" or said["admitted"] == limit
    print(f"{what} x {times}, {weir.mode}: {answers} answers, {answers / said['seconds']:,.0f}/s; {said['faults']} lost; "
          f"{said['again']} sent again; {said['admitted']} admitted" + (f" of {limit}" if what != "restart" else ""), flush=True)
    if pauses := sorted(weir.pauses()):
        print(f"  requests waited {pauses[len(pauses) // 2]} ms at the median, {pauses[-1]} ms at most")
    if what != "restart" and said["refused"] == 0:
        raise processes.BenchError("the limit was never reached: try --seconds or --limit")
    return said["faults"] == 0 and exact


def main():
    parser = argparse.ArgumentParser(prog="./dev live http2", description=__doc__)
    parser.add_argument("--weir", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, default=15, help="of each of the six")
    parser.add_argument("--limit", type=int, default=100_000, help="requests that all clients together may send")
    parser.add_argument("--reloads", type=int, default=100)
    parser.add_argument("--upgrades", type=int, default=20)
    parser.add_argument("--restarts", type=int, default=10)
    options = parser.parse_args()
    cases = {"reload": options.reloads, "upgrade": options.upgrades, "restart": options.restarts}
    with processes.on_stage("live", options.weir) as stage:
        kept = [measure(stage, mode, what, times, options) for what, times in cases.items() if times for mode in LISTENERS]
    sys.exit(0 if all(kept) else "a request was lost, or a limit was not kept")


if __name__ == "__main__":
    main()
