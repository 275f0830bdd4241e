#!/usr/bin/env python3
"""weir as process 1 of a container: signals, orphans that it adopts, and upgrades. The container is a PID namespace."""

import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from harness import PATIENCE, WEIR, Process, TestCase, Weir, config, eventually, main

CONTAINER = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
FREE = '[[route]]\nrespond = { status = 200, body = "here" }'


def works():
    return shutil.which("unshare") and shutil.which("nsenter") and subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode == 0


def children(pid):
    """Returns the processes whose parent is this one, with zombies."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(folder.name))
    return found


class Contained(Weir):
    """A weir that is process 1 of its PID namespace. `inner`: its process ID outside."""

    def __init__(self, text, **options):
        super().__init__(text, within=CONTAINER, **options)
        self.inner = children(self.pid)[0]

    def signal(self, which):
        os.kill(self.inner, which)

    def stop(self):
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            return self.wait()
        finally:
            self.process.stderr.close()


@unittest.skipUnless(works(), "needs the right to make a PID namespace: run the test as root")
class ProcessOne(TestCase):
    def weir(self, **given):
        weir = self.start(Contained(config(1, routes=FREE, **given)))
        self.assertRegex((pathlib.Path("/proc") / str(weir.inner) / "status").read_text(), r"NSpid:\s\d+\s1\n")
        return weir

    def test_stop_signals_drain_and_end_weir(self):
        for which in signal.SIGTERM, signal.SIGINT:
            with self.subTest(which):
                weir = self.weir()
                self.assertEqual(weir.get("/").status, 200)
                weir.signal(which)
                self.assertEqual(weir.wait(), 0)
                self.assertIn("info draining:", weir.log())

    def test_drain_delay_applies_if_weir_is_process_one(self):
        weir = self.weir(server='drain_delay = "5min"')
        weir.signal(signal.SIGTERM)
        weir.wait_for("stopping: not ready any more")
        self.assertEqual(weir.get("/").status, 200)
        weir.signal(signal.SIGTERM)
        self.assertEqual(weir.wait(), 0)

    def test_stop_signal_during_the_start_ends_weir(self):
        """The kernel drops a signal to process 1 that has no handler. The configuration comes through a pipe, so that weir
        cannot finish its start."""
        for which in signal.SIGTERM, signal.SIGINT:
            with self.subTest(which):
                weir = Process([*CONTAINER, WEIR, "run", "--config", "/dev/stdin"], stdin=subprocess.PIPE)
                self.addCleanup(weir.stop)
                with weir.process.stdin as pipe:
                    pipe.write("#" * 1_000_000 + "\n")  # more than a pipe holds: the write ends only if weir reads
                    pipe.flush()
                    os.kill(children(weir.pid)[0], which)
                    self.assertEqual(weir.wait(), 128 + which)

    def test_weir_reaps_orphaned_processes_that_end_if_weir_is_process_one(self):
        weir = self.weir()
        # The shell ends before its background process, whose new parent is then process 1.
        shell = ["nsenter", "--target", str(weir.inner), "--pid", "sh", "-c", "sleep 600 >/dev/null 2>&1 & sleep 601 >/dev/null 2>&1 &"]
        subprocess.run(shell, check=True, timeout=PATIENCE)
        orphans = eventually(lambda: len(found := children(weir.inner)) == 2 and found, "weir has adopted both processes")
        os.kill(orphans[0], signal.SIGTERM)
        eventually(lambda: children(weir.inner) == [orphans[1]], "the ended process is removed")
        self.assertEqual(weir.get("/").status, 200)
        weir.signal(signal.SIGTERM)
        self.assertEqual(weir.wait(), 0)
        eventually(lambda: not pathlib.Path(f"/proc/{orphans[1]}").exists(), "the other process ends with the container")

    def test_weir_refuses_an_upgrade_if_it_is_process_one(self):
        weir = self.weir()
        weir.signal(signal.SIGUSR2)
        weir.wait_for("error upgrade: weir is process 1 of a container, which stops with it; start another container; "
                      "this process continues")
        self.assertEqual(weir.get("/").status, 200)
        self.assertEqual(weir.metric("weir_upgrades_total", result="failed"), 1)

    def test_sighup_reloads_and_sigusr1_reopens_the_log_if_weir_is_process_one(self):
        weir = self.weir()
        weir.signal(signal.SIGHUP)
        weir.wait_for("info reload: the configuration was reloaded")
        weir.signal(signal.SIGUSR1)
        weir.wait_for("SIGUSR1: reopening the access log")
        self.assertEqual(weir.get("/").status, 200)

    def test_stop_signal_ends_an_echo_server(self):
        echo = Process([*CONTAINER, WEIR, "echo", "--listen", "127.0.0.1:0"])
        self.addCleanup(echo.stop)
        echo.wait_for("listening on")
        began = time.monotonic()
        os.kill(children(echo.pid)[0], signal.SIGTERM)
        self.assertEqual(echo.wait(), 0)
        self.assertLess(time.monotonic() - began, PATIENCE)


if __name__ == "__main__":
    main()
