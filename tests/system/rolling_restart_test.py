#!/usr/bin/env python3
"""Two weir instances behind HAProxy are restarted in turn under load. HAProxy has the configuration of
docs/guides/rolling-updates.md, which asks /readyz. With drain_delay no request is lost.

$WEIR_ROLLING_REQUESTS is the least number of requests (`./dev live rolling` sends 100,000). Each instance is restarted twice, and
again until all requests are sent."""

import csv
import itertools
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from documents import TREE, blocks
from harness import BELOW_EPHEMERAL, PATIENCE, SANITIZED, Echo, Load, Process, TestCase, Weir, config, eventually, main

REQUESTS = int(os.environ.get("WEIR_ROLLING_REQUESTS", "10000"))
CONNECTIONS = 8
GUIDE = TREE / "docs/guides/rolling-updates.md"
# HAProxy checks ten times a second here, and notices after two failed checks. The rest is for busy machines.
DELAY = "4s" if SANITIZED else "2s"


def free_port():
    """Returns a port that no outgoing connection can take while a weir is down."""
    while True:
        port = random.randrange(*BELOW_EPHEMERAL)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Member:
    """A weir that keeps its ports when it is restarted."""

    def __init__(self, name, upstream, server):
        self.name, self.port, self.admin = name, free_port(), free_port()
        text = config(upstream, server=server)
        for port in (self.port, self.admin):
            text = text.replace('"127.0.0.1:0"', f'"127.0.0.1:{port}"', 1)
        self.text = text
        self.weir = Weir(text)

    def await_end(self):
        """Waits until weir has ended by itself, and checks its exit status."""
        self.weir.wait()
        self.weir.__exit__(None)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.weir.process.poll() is None:
            self.weir.signal(signal.SIGTERM)
            self.weir.signal(signal.SIGTERM)  # skips drain_delay
        self.weir.__exit__(kind)


def configuration(members, listener, stats):
    """Returns the guide's configuration of HAProxy for these instances. HAProxy repeats no request here, so that each failure is
    visible to the clients."""
    text = next(blocks(GUIDE, "haproxy")).text
    changes = [("mode http\n", "mode http\n  retries 0\n"), ("bind :80", f"bind fd@{listener.fileno()}"), (" inter 1s ", " inter 100ms ")]
    for member, server in zip(members, ("a 10.0.0.1:8080", "b 10.0.0.2:8080"), strict=True):
        changes.append((f"server {server}", f"server {member.name} 127.0.0.1:{member.port} port {member.admin}"))
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return f"global\n  maxconn 200\n  stats socket {stats}\n{text}"


class Haproxy(Process):
    """HAProxy in front of these instances."""

    def __init__(self, members):
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-haproxy-")
        self.stats = pathlib.Path(self.scratch.name) / "stats"
        file = pathlib.Path(self.scratch.name) / "haproxy.cfg"
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            file.write_text(configuration(members, listener, self.stats))
            super().__init__(["haproxy", "-db", "-f", str(file)], pass_fds=[listener.fileno()])
        eventually(self.stats.exists, "HAProxy has started")

    def statistics(self, name):
        """Returns what HAProxy says about this server."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.stats))
            client.sendall(b"show stat\n")
            text = b"".join(iter(lambda: client.recv(65536), b"")).decode()
        rows = csv.DictReader(text.lstrip("# ").splitlines())
        return next(row for row in rows if (row["pxname"], row["svname"]) == ("weirs", name))

    def await_status(self, name, status):
        eventually(lambda: self.statistics(name)["status"] == status, f"HAProxy says that {name} is {status}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.scratch.cleanup()


@unittest.skipUnless(shutil.which("haproxy"), "needs HAProxy: ./dev deps test")
class RollingRestart(TestCase):
    def begin(self, server):
        """Starts an upstream, two weir instances, HAProxy and a load. Returns them without the upstream."""
        upstream = self.start(Echo())
        members = [self.start(Member(name, upstream.port, server)) for name in ("a", "b")]
        haproxy = self.start(Haproxy(members))
        for member in members:
            haproxy.await_status(member.name, "UP")
        return members, haproxy, Load([haproxy.port] * CONNECTIONS)

    def restart(self, member, haproxy):
        member.weir.signal(signal.SIGTERM)
        haproxy.await_status(member.name, "DOWN")
        member.await_end()
        member.weir = Weir(member.text)
        haproxy.await_status(member.name, "UP")

    def test_no_request_is_lost_with_a_drain_delay(self):
        members, haproxy, load = self.begin(f'drain_delay = "{DELAY}"')
        load.goes_on()
        began, restarts = time.monotonic(), 0
        for member in itertools.cycle(members):
            self.restart(member, haproxy)
            restarts += 1
            if restarts >= 4 and len(load.results) >= REQUESTS:
                break
            self.assertLess(time.monotonic() - began, 240, f"{len(load.results)} of {REQUESTS} requests are sent")
        statuses = load.stop()
        lost = sum(status != 200 for status, _ in load.results)
        shares = [int(haproxy.statistics(member.name)["stot"]) for member in members]
        print(f"{len(load.results)} requests to two weirs ({shares[0]} + {shares[1]}), {restarts} restarts, {lost} lost", flush=True)
        self.assertEqual(sum(shares), len(load.results))
        self.assertGreater(min(shares), len(load.results) // 10)
        self.assertEqual((statuses, lost), ({200}, 0))

    def test_haproxy_accepts_the_configurations_of_the_guide(self):
        whole, part = (block.text for block in blocks(GUIDE, "haproxy"))
        with_names = whole[:whole.index("\nbackend weirs")] + "\n" + part
        for text in whole, with_names:
            with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
                file.write(text)
                file.flush()
                done = subprocess.run(["haproxy", "-c", "-f", file.name], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_requests_are_lost_without_a_drain_delay(self):
        """Shows that test_no_request_is_lost_with_a_drain_delay would notice lost requests."""
        members, haproxy, load = self.begin("")
        load.goes_on()
        self.restart(members[0], haproxy)
        load.stop()
        lost = sum(status != 200 for status, _ in load.results)
        print(f"{lost} lost", flush=True)
        self.assertGreater(lost, 0)


if __name__ == "__main__":
    main()
