#!/usr/bin/env python3
"""An upgrade in which the new process cannot take over, or falsely claims that it can. Nothing changes for clients."""

import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

from harness import PATIENCE, WEIR, config, eventually, main, request_bytes, rule
from lineage import Upgrade

# A process that claims that it can take over. The caller appends its further behaviour.
IMPOSTOR = """exec python3 -c '
import os, signal, socket, time
channel = socket.socket(fileno=int(os.environ["WEIR_UPGRADE_FD"]))
def hear(word):
    while channel.recv(65536).split(b"\\n")[0] != word: pass
channel.send(b"ready")
hear(b"state")
channel.send(b"restored")
hear(b"open")
%s'"""


def has_ended(pid):
    """Returns true if the process has ended and only its exit status is left."""
    try:
        return (pathlib.Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


class UpgradeFailure(Upgrade):
    LIMIT = rule("all", "10/day", algorithm='"fixed_window"', key="[]")

    def test_old_process_continues_after_any_failure_of_the_new_process(self):
        given = {"rules": self.LIMIT, "routes": self.FREE, "server": 'upgrade_timeout = "400ms"'}
        good = config(self.upstream.port, **given)
        weir = self.weir(**given)
        kept = self.enterContext(weir.connect())
        for number, (script, text, why) in enumerate((
                (None, good.replace("10/day", "lots"), r"weir\.toml:\d+: rule\[all\]\.limit"),
                ("kill -SEGV $$", good, "it was killed by signal 11"),
                ("exit 3", good, "it exited with status 3"),
                ("exec sleep 30", good, "it was not ready within upgrade_timeout"))):
            with self.subTest(why):
                weir.install(script)
                weir.write(text)
                weir.fails(why)
                self.assertEqual(int(kept.get("/")["x-ratelimit-remaining"]), 9 - 2 * number)
                self.assertEqual(int(weir.get("/")["x-ratelimit-remaining"]), 8 - 2 * number)
        weir.binary.unlink()
        weir.fails("cannot start .*weir: No such file")
        self.assertEqual(weir.metric("weir_upgrades_total", result="failed"), 5)
        weir.install(None)
        weir.upgrade()
        self.assertEqual(weir.get("/").status, 200)
        self.assertEqual(weir.metric("weir_upgrades_total", result="failed"), 5)

    def test_new_process_that_does_not_restore_the_state_in_time_is_killed(self):
        """The new process reports that it is ready, and then sends nothing more."""
        weir = self.weir(rules=self.LIMIT, routes=self.FREE, server='upgrade_pause = "300ms"')
        weir.install("exec python3 -c 'import os, socket, time; "
                     's = socket.socket(fileno=int(os.environ["WEIR_UPGRADE_FD"])); s.send(b"ready"); time.sleep(30)\'')
        kept = self.enterContext(weir.connect())
        self.assertEqual(kept.get("/").status, 200)
        weir.signal(signal.SIGUSR2)
        weir.wait_for("upgrade: started process")
        statuses = []
        while not any("this process continues" in line for line in weir.lines) or len(statuses) < 5:
            statuses.append(kept.get("/").status)
            time.sleep(0.005)
        weir.wait_for("it did not take over within upgrade_pause; this process continues")
        self.assertEqual(set(statuses) - {429}, {200})
        self.assertEqual(statuses.count(200), min(9, len(statuses)))

    def test_request_during_the_upgrade_pause_is_not_timed_out(self):
        """The pause must not count as idle time of the request's connection."""
        weir = self.weir(routes=self.FREE, server='upgrade_pause = "1s"\nidle_timeout = "400ms"')
        weir.install(IMPOSTOR.split("hear(b\"state\")")[0] + "hear(b\"state\")\ntime.sleep(30)'")
        kept = self.enterContext(weir.connect())
        self.assertEqual(kept.get("/").status, 200)
        weir.signal(signal.SIGUSR2)
        weir.wait_for("upgrade: started process")
        paused = time.monotonic()
        while time.monotonic() < paused + 2 and not any("this process continues" in line for line in weir.lines):
            self.assertEqual(kept.get("/").status, 200)
        weir.wait_for("it did not take over within upgrade_pause; this process continues")

    def test_sighup_during_a_failed_upgrade_is_not_lost(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE, server='upgrade_timeout = "700ms"')
        weir.install("exec sleep 30")
        weir.signal(signal.SIGUSR2)
        weir.wait_for("upgrade: started process")
        weir.write(config(self.upstream.port, rules=self.LIMIT.replace("10/day", "20/day"), routes=self.FREE,
                          server='upgrade_timeout = "700ms"'))
        asked = weir.ask("reload")
        self.assertEqual(asked.returncode, 1)
        self.assertIn("an upgrade is in progress; try again", asked.stderr)
        weir.signal(signal.SIGHUP)
        weir.wait_for("it was not ready within upgrade_timeout; this process continues")
        weir.wait_for("reload: the configuration was reloaded")
        self.assertEqual(weir.get("/")["x-ratelimit-limit"], "20")

    def test_sighup_during_an_upgrade_reaches_the_new_process(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        weir.install(f'sleep 0.5; exec {WEIR} "$@"')
        weir.signal(signal.SIGUSR2)
        weir.count += 1
        weir.wait_for("upgrade: started process")
        weir.signal(signal.SIGHUP)
        weir.taken_over()
        weir.wait_for("reloads the configuration")
        weir.wait_for("reload: the configuration was reloaded")
        self.assertEqual(weir.get("/").status, 200)

    def test_new_process_that_dies_before_the_end_of_the_handover_does_not_take_over(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        weir.install(IMPOSTOR % 'os.kill(os.getppid(), signal.SIGSTOP); channel.send(b"serving"); os._exit(9)')
        weir.signal(signal.SIGUSR2)
        eventually(lambda: has_ended(weir.wait_for(r"upgrade: started process (\d+)")[0].group(1)), "the new process has ended")
        weir.signal(signal.SIGCONT)
        weir.wait_for("it exited with status 9; this process continues")
        self.assertEqual(weir.get("/").status, 200)

    def test_connections_stay_with_the_old_process_if_the_new_process_is_gone(self):
        """The new process ends before the old one has passed a connection to it. The next response to each client contains
        `Connection: close`."""
        release = self.hold_requests()
        weir = self.weir()
        weir.install(IMPOSTOR % 'channel.send(b"serving"); hear(b"over"); os._exit(0)')
        clients = [self.enterContext(weir.connect()) for _ in range(6)]
        for client in clients:
            client.send(request_bytes("GET", "/"))
        eventually(lambda: len(self.upstream.exchanges) == 6, "all requests are at the upstream")
        weir.signal(signal.SIGUSR2)
        weir.wait_for("has taken over")
        eventually(lambda: has_ended(weir.wait_for(r"upgrade: started process (\d+)")[0].group(1)), "the new process has ended")
        release.set()
        answers = [client.read() for client in clients]
        self.assertEqual([said.status for said in answers], [200] * 6)
        # Each worker tries to pass on its first connection. The attempt fails, and the worker keeps its other connections.
        kept = [client for client, said in zip(clients, answers) if said["connection"] != "close"]
        self.assertTrue(kept)
        time.sleep(0.3)  # six watchdog ticks, each of which could close the connections
        for client in kept:
            said = client.get("/")
            self.assertEqual((said.status, said["connection"]), (200, "close"))
        self.assertEqual(weir.process.wait(PATIENCE), 0)
        weir.signal = lambda _: None

    def test_late_failure_of_an_upgrade_leaves_the_admin_listener_to_the_old_process(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as admin:
            path = pathlib.Path(folder) / "admin.sock"
            admin.bind(str(path))
            admin.listen()
            text = config(self.upstream.port, routes=self.FREE)
            file = pathlib.Path(folder) / "weir.toml"
            file.write_text(text.replace('[admin]\naddress = "127.0.0.1:0"', f'[admin]\naddress = "unix:{path}"'))
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with ours, theirs:
                environment = {**os.environ, "WEIR_UPGRADE_FD": str(theirs.fileno())}
                process = subprocess.Popen([WEIR, "run", "--config", file], env=environment, pass_fds=[theirs.fileno()],
                                           stderr=subprocess.DEVNULL)
                ours.send(b"\n".join([b"hello", b"weir upgrade 2", *[b"0"] * 7]))
                socket.send_fds(ours, [f"admin\nunix:{path}".encode()], [admin.fileno()])
                ours.send(b"inherited")
                ours.settimeout(PATIENCE)
                self.assertEqual(ours.recv(1000), b"ready")
                state = os.memfd_create("state")
                os.write(state, b"nothing that it knows")
                socket.send_fds(ours, [b"state"], [state])
                os.close(state)
                self.assertIn(b"failed", ours.recv(1000))
                self.assertNotEqual(process.wait(PATIENCE), 0)
            self.assertTrue(path.exists())

    def test_one_deadline_bounds_the_whole_upgrade_pause(self):
        """The new process restores the state and opens its listeners. Both steps together exceed the deadline."""
        weir = self.weir(rules=self.LIMIT, routes=self.FREE, server='upgrade_pause = "600ms"')
        late = 'time.sleep(0.4); channel.send(b"%s")'
        weir.install((IMPOSTOR % (late % "serving")).replace('channel.send(b"restored")', late % "restored"))
        weir.fails("within upgrade_pause")
        self.assertEqual(weir.get("/").status, 200)

    def test_upgrade_command_prints_the_reason_of_a_failure(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        weir.install("exit 7")
        told = weir.ask("upgrade")
        self.assertEqual((told.returncode, told.stdout), (1, ""))
        self.assertRegex(told.stderr, r"weir: 127\.0\.0\.1:\d+: no upgrade: it exited with status 7; the running process continues\n")
        weir.write("[server]\nworkers = true\n")
        self.assertEqual(weir.ask("upgrade").returncode, 2)
        self.assertEqual(weir.get("/").status, 200)

    def test_stop_during_an_upgrade_ends_the_new_process(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        weir.install("exec sleep 30")
        weir.signal(signal.SIGUSR2)
        started = int(weir.wait_for(r"upgrade: started process (\d+)")[0].group(1))
        weir.signal(signal.SIGTERM)
        weir.wait_for("upgrade: process .*: weir is stopping; this process continues")
        self.assertEqual(weir.process.wait(PATIENCE), 0)
        self.assertFalse(pathlib.Path(f"/proc/{started}").exists())
        weir.signal = lambda _: None


if __name__ == "__main__":
    main()
