#!/usr/bin/env python3
"""weir under a service manager: its messages to $NOTIFY_SOCKET from the start to the end."""

import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import PATIENCE, WEIR, Client, TestCase, Upstream, Weir, answer, closed_port, config, main, request_bytes, rule


class Manager:
    """The socket of a service manager. If `abstract` is true, the socket has an abstract name and no file."""

    def __init__(self, abstract=False):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-notify-")
        path = str(pathlib.Path(self.folder.name) / "notify")
        self.name = "@" + path if abstract else path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind("\0" + path if abstract else path)
        self.socket.settimeout(PATIENCE)

    def hear(self):
        """Returns the next message as a dictionary."""
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().split("\n"))

    def hear_of(self, key):
        """Returns the next message that has this key. Skips the messages before it."""
        while key not in (message := self.hear()):
            pass
        return message

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.folder.cleanup()


class Supervision(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream(lambda exchange: (exchange.read_body(), exchange.send(answer()))))

    def weir(self, manager, text=None, **environment):
        return self.start(Weir(text or config(self.upstream.port), environment={"NOTIFY_SOCKET": manager.name, **environment}))

    def test_ready_reloading_and_stopping_are_sent_to_the_service_manager(self):
        for abstract in (False, True):
            with self.subTest(abstract=abstract), Manager(abstract) as manager:
                weir = self.weir(manager)
                self.assertEqual(manager.hear(), {"READY": "1", "STATUS": "serving"})
                self.assertEqual(weir.get("/").status, 200)
                weir.signal(signal.SIGHUP)
                said = manager.hear()
                self.assertEqual(said["RELOADING"], "1")
                self.assertLessEqual(int(said["MONOTONIC_USEC"]), time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
                self.assertEqual(manager.hear()["READY"], "1")
                weir.signal(signal.SIGTERM)
                said = manager.hear()
                self.assertEqual((said["STOPPING"], said["EXTEND_TIMEOUT_USEC"]), ("1", "65000000"))  # drain is 5 s
                self.assertEqual(weir.wait(), 0)

    def test_stopping_is_sent_when_the_drain_delay_begins_and_when_the_drain_begins(self):
        """systemd adds the time of the last message to the time at which it was sent."""
        manager = self.start(Manager())
        weir = self.weir(manager, config(self.upstream.port, server='drain_delay = "5min"'), WATCHDOG_USEC="200000")
        manager.hear_of("READY")
        weir.signal(signal.SIGTERM)
        said = manager.hear_of("STOPPING")
        self.assertEqual((said["STATUS"], said["EXTEND_TIMEOUT_USEC"]),
                         ("not ready any more; serving until drain_delay is over", "365000000"))  # 5 min, drain (5 s), 60 s
        weir.signal(signal.SIGHUP)  # refused, so the manager must not hear that weir is ready again
        weir.wait_for("reload: failed")
        for _ in range(3):
            self.assertEqual(manager.hear(), {"WATCHDOG": "1"})
        weir.signal(signal.SIGTERM)
        said = manager.hear_of("STOPPING")
        self.assertEqual((said["STATUS"], said["EXTEND_TIMEOUT_USEC"]), ("completing open requests", "65000000"))
        self.assertEqual(weir.wait(), 0)

    def test_ready_is_sent_only_when_requests_are_accepted(self):
        """Redis is unavailable. weir waits for Redis, and sends READY only afterwards."""
        manager = self.start(Manager())
        state = f'redis = {{ url = "redis://127.0.0.1:{closed_port()}", start_wait = "400ms" }}'
        began = time.monotonic()
        weir = self.weir(manager, config(self.upstream.port, state=state, rules=rule(store='"redis"')))
        self.assertEqual(manager.hear(), {"STATUS": "waiting for Redis before accepting requests"})
        self.assertEqual(manager.hear()["READY"], "1")
        self.assertGreaterEqual(time.monotonic() - began, 0.4)
        self.assertTrue(weir.is_ready())

    def test_watchdog_message_is_sent_twice_in_its_period(self):
        manager = self.start(Manager())
        self.weir(manager, WATCHDOG_USEC="400000")
        manager.hear_of("WATCHDOG")
        began = time.monotonic()
        for _ in range(3):
            manager.hear_of("WATCHDOG")
        self.assertLess(time.monotonic() - began, 3 * 0.4)
        self.assertGreater(time.monotonic() - began, 3 * 0.1)

    def test_watchdog_message_is_sent_during_the_drain(self):
        """Workers that have ended do not reply to the heartbeat. weir must not wait for them."""
        reached, release = threading.Event(), threading.Event()
        held = self.start(Upstream(lambda exchange: (reached.set(), release.wait(PATIENCE), exchange.send(answer()))))
        manager = self.start(Manager())
        weir = self.weir(manager, config(held.port), WATCHDOG_USEC="200000")
        with Client(weir.port) as client:
            client.send(request_bytes("GET", "/"))  # one worker waits for this request; the other worker ends
            self.assertTrue(reached.wait(PATIENCE))
            weir.signal(signal.SIGTERM)
            manager.hear_of("STOPPING")
            for _ in range(4):
                manager.hear_of("WATCHDOG")
            release.set()
            self.assertEqual(client.read().status, 200)
        self.assertEqual(weir.wait(), 0)

    def test_no_watchdog_message_is_sent_if_the_watchdog_is_meant_for_another_process(self):
        manager = self.start(Manager())
        weir = self.weir(manager, WATCHDOG_USEC="2000", WATCHDOG_PID="1")
        self.assertIn("READY", manager.hear())
        self.assertEqual(weir.get("/").status, 200)
        weir.signal(signal.SIGTERM)
        self.assertIn("STOPPING", manager.hear())

    def test_missing_service_manager_does_not_stop_weir(self):
        with Manager() as manager:
            gone = manager.name
        weir = self.start(Weir(config(self.upstream.port), environment={"NOTIFY_SOCKET": gone, "WATCHDOG_USEC": "2000"}))
        weir.wait_for("cannot send a message to the service manager: ")
        self.assertEqual(weir.get("/").status, 200)
        self.assertEqual(sum("cannot send a message to the service manager" in line for line in weir.lines), 1)


class StandardStreams(TestCase):
    """A caller may close standard input, output or error. Their numbers must not go to a socket or another file."""

    def test_closed_streams_become_dev_null(self):
        with tempfile.TemporaryDirectory(prefix="weir-streams-") as folder:
            file = pathlib.Path(folder, "weir.toml")
            file.write_text(config(closed_port()).replace('access = "off"', 'access = "-"'))
            with subprocess.Popen(["sh", "-c", 'exec "$0" run "$1" <&- >&-', WEIR, file], stderr=subprocess.PIPE, text=True) as weir:
                try:
                    self.assertTrue(any("listening on" in line for line in weir.stderr))
                    for number in (0, 1):
                        self.assertEqual(os.readlink(f"/proc/{weir.pid}/fd/{number}"), "/dev/null")
                finally:
                    weir.terminate()
                    weir.stderr.read()
            self.assertEqual(weir.returncode, 0)

    def test_command_whose_standard_output_is_closed_or_full_fails(self):
        with tempfile.TemporaryDirectory(prefix="weir-streams-") as folder:
            file = pathlib.Path(folder, "weir.toml")
            file.write_text(config(closed_port()))
            for output in (">&-", "> /dev/full"):
                for command in ('check "$1"', "version", "schema"):
                    with self.subTest(command=command, output=output):
                        done = subprocess.run(["sh", "-c", f'"$0" {command} {output}', WEIR, file], stderr=subprocess.PIPE, text=True,
                                              check=False, timeout=PATIENCE)
                        self.assertEqual(done.returncode, 1)
                        self.assertIn("weir: standard output cannot be written\n", done.stderr)


if __name__ == "__main__":
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
        os.environ.pop(name, None)
    main()
