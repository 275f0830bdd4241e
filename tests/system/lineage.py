"""A weir process and the processes that take over from it one after another, with a base class for their tests."""

import contextlib
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

from harness import PATIENCE, WEIR, Client, Process, TestCase, Upstream, answer, config, get, metric

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """Makes orphaned weir processes children of this process. So this process can read their exit status."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Lineage(Process):
    """A weir process and its successors, with one common log. `pid` is the process that serves."""

    def __init__(self, text, files=None, environment=None):
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-test-")
        self.folder = pathlib.Path(self.scratch.name)
        self.binary = self.folder / "weir"
        self.binary.symlink_to(WEIR)
        for name, content in {"weir.toml": text, **(files or {})}.items():
            (self.folder / name).write_text(content)
        super().__init__([str(self.binary), "run", "--config", str(self.folder / "weir.toml")],
                         env={**os.environ, **(environment or {})}, process_group=0)
        listeners = len(re.findall(r'address = "127\.0\.0\.1:0"', text)) - 1
        self.ports = [int(match.group(1)) for match in self.wait_for(r"listening on \S*:(\d+)", listeners)]
        self.port = self.ports[0]
        self.admin = int(self.wait_for(r"admin on \S*:(\d+)")[0].group(1))
        self.ended, self.count = [], 0

    def write(self, text):
        (self.folder / "weir.toml.new").write_text(text)
        (self.folder / "weir.toml.new").rename(self.folder / "weir.toml")

    def install(self, script):
        """Replaces the binary by a script; None restores the weir binary."""
        fresh = self.folder / "weir.new"
        if script is None:
            fresh.symlink_to(WEIR)
        else:
            fresh.write_text("#!/bin/sh\n" + script + "\n")
            fresh.chmod(0o755)
        fresh.rename(self.binary)

    def signal(self, which):
        os.kill(self.pid, which)

    def upgrade(self):
        """Starts an upgrade, waits until the new process serves, and returns its process ID."""
        self.count += 1
        self.signal(signal.SIGUSR2)
        return self.taken_over()

    def taken_over(self):
        successor = int(self.wait_for(r"upgrade: process (\d+) has taken over", self.count)[-1].group(1))
        self.ended.append(self.pid)
        self.pid = successor
        return self.pid

    def fails(self, why):
        """Checks that an upgrade fails with this reason."""
        before = len([line for line in self.lines if "this process continues" in line])
        self.signal(signal.SIGUSR2)
        said = self.wait_for(r"error upgrade: (.*); this process continues", before + 1)[-1].group(1)
        if not re.search(why, said):
            raise AssertionError(f"{said!r} does not say {why!r}")

    def ask(self, *arguments):
        return subprocess.run([WEIR, *arguments, "--config", self.folder / "weir.toml", "--admin", f"127.0.0.1:{self.admin}"],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)

    def status_of(self, pid):
        """Waits for the end of the process, and returns its exit status."""
        if pid == self.process.pid:
            return self.process.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while (found := os.waitpid(pid, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:
                raise AssertionError(f"process {pid} does not end:\n{self.log()}")
            time.sleep(0.01)
        return os.waitstatus_to_exitcode(found[1])

    def connect(self, **options):
        return Client(self.port, **options)

    def get(self, path="/"):
        return get(self.port, path)

    def metric(self, name, **labels):
        return metric(self.admin, name, **labels)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.signal(signal.SIGTERM)
            statuses = [self.status_of(pid) for pid in (*self.ended, self.pid)]
        except BaseException:
            # Kills processes that still run, such as the new process of an upgrade that took too long. They
            # keep the pipe open. So close() would wait for the reader, and the reader for these processes.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            raise
        finally:
            self.reader.join(PATIENCE)
            self.process.stderr.close()
            self.scratch.cleanup()
        self.check_reports()
        if kind is None and any(statuses):
            raise AssertionError(f"they ended with {statuses}:\n{self.log()}")


class Upgrade(TestCase):
    FREE = '[[route]]\nrespond = { status = 200, body = "here" }'

    @classmethod
    def setUpClass(cls):
        adopt_orphans()

    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, files=None, environment=None, drain="5s", **given):
        text = config(self.upstream.port, **given).replace('drain = "5s"', f'drain = "{drain}"')
        return self.start(Lineage(text, files, environment))

    def hold_requests(self):
        """Returns an event. The upstream sends no response before the event is set."""
        release = threading.Event()

        def hold(exchange):
            release.wait(PATIENCE)
            exchange.send(answer(b"late"))

        self.upstream.reply = hold
        return release
