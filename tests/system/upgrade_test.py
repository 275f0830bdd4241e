#!/usr/bin/env python3
"""A new process of the binary takes over: no connection refused, none lost, no count reset, and nothing at all changed
where it cannot."""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

from alerts_test import Receiver, alert
from harness import (PATIENCE, SANITIZED, WEIR, Client, Process, TestCase, Upstream, answer, client_tls, config, eventually, get,
                     main, make_certificate, metric, request_bytes, rule)
from supervision_test import Manager

UPGRADES = int(os.environ.get("WEIR_UPGRADES", "5"))
PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """What a weir leaves behind when it ends becomes a child of this process, which so hears how it ended."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def sockets_of(pid):
    """The inodes of what it has open, the standard streams aside."""
    inodes = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            link = os.readlink(fd)
            if int(fd.name) > 2 and link.startswith("socket:["):
                inodes.add(link[8:-1])
    return inodes


def listening_at(port, pid):
    """The inodes of its sockets that listen there."""
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {line[9] for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "0A"} & sockets_of(pid)


def has_ended(pid):
    """Whether nothing is left of it but what its parent may ask."""
    try:
        return (pathlib.Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Lineage(Process):
    """A weir and those that take over from it, as one log; `pid` is of the one that serves."""

    def __init__(self, text, files=None, environment=None):
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-test-")
        self.folder = pathlib.Path(self.scratch.name)
        self.binary = self.folder / "weir"
        self.binary.symlink_to(WEIR)
        for name, content in {"weir.toml": text, **(files or {})}.items():
            (self.folder / name).write_text(content)
        super().__init__([str(self.binary), "run", "--config", str(self.folder / "weir.toml")],
                         env={**os.environ, **(environment or {})})
        listeners = len(re.findall(r'address = "127\.0\.0\.1:0"', text)) - 1
        self.ports = [int(match.group(1)) for match in self.wait_for(r"listening on \S*:(\d+)", listeners)]
        self.port = self.ports[0]
        self.admin = int(self.wait_for(r"admin on \S*:(\d+)")[0].group(1))
        self.ended, self.count = [], 0

    def write(self, text):
        (self.folder / "weir.toml.new").write_text(text)
        (self.folder / "weir.toml.new").rename(self.folder / "weir.toml")

    def install(self, script):
        """Another binary in the place of this one; None: weir again."""
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
        """Waits until another process serves; returns its number."""
        self.count += 1
        self.signal(signal.SIGUSR2)
        return self.taken_over()

    def taken_over(self):
        self.ended.append(self.pid)
        self.pid = int(self.wait_for(r"upgrade: process (\d+) has taken over", self.count)[-1].group(1))
        return self.pid

    def fails(self, why):
        """An upgrade that comes to nothing."""
        before = len([line for line in self.lines if "goes on as it was" in line])
        self.signal(signal.SIGUSR2)
        said = self.wait_for(r"error upgrade: (.*); this weir goes on as it was", before + 1)[-1].group(1)
        if not re.search(why, said):
            raise AssertionError(f"{said!r} does not say {why!r}")

    def ask(self, *arguments):
        return subprocess.run([WEIR, *arguments, "--config", self.folder / "weir.toml", "--admin", f"127.0.0.1:{self.admin}"],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)

    def status_of(self, pid):
        """How it ends, which it does soon."""
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
            self.reader.join(PATIENCE)
        finally:
            self.process.stderr.close()
            self.scratch.cleanup()
        self.check_reports()
        if kind is None and any(statuses):
            raise AssertionError(f"they ended with {statuses}:\n{self.log()}")


# A process that takes over in word alone; then comes what it does.
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


class Clients:
    """Some that keep their connections and some that open one for each request, until they are told to stop. A
    connection is given up where the answer says so, and for no other reason."""

    def __init__(self, port, kept=6, fresh=2):
        self.port, self.ending, self.statuses, self.faults, self.closed = port, threading.Event(), [], [], 0
        self.threads = [threading.Thread(target=self.ask, args=(number < kept,), daemon=True) for number in range(kept + fresh)]
        for thread in self.threads:
            thread.start()

    def ask(self, keeps):
        while not self.ending.is_set():
            try:
                with Client(self.port) as client:
                    self.use(client, keeps)
            except Exception as fault:  # each is a client's failed request
                self.faults.append(repr(fault))

    def use(self, client, keeps):
        while not self.ending.is_set():
            said = client.get("/")
            self.statuses.append(said.status)
            if not keeps:
                return
            if said["connection"] == "close":
                self.closed += 1
                return

    def went_on(self, count):
        seen = len(self.statuses)
        eventually(lambda: len(self.statuses) > seen + count, "requests go on")

    def stop(self):
        self.ending.set()
        for thread in self.threads:
            thread.join(PATIENCE)


class Upgrade(TestCase):
    @classmethod
    def setUpClass(cls):
        adopt_orphans()

    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, files=None, environment=None, **given):
        return self.start(Lineage(config(self.upstream.port, **given), files, environment))

    def hold_requests(self):
        """Those that go to the upstream are answered once the event is set."""
        release = threading.Event()

        def hold(exchange):
            release.wait(PATIENCE)
            exchange.send(answer(b"late"))

        self.upstream.reply = hold
        return release


class Serving(Upgrade):
    LIMIT = rule("all", "2000/day", algorithm='"fixed_window"', key="[]")
    FREE = '[[route]]\nrespond = { status = 200, body = "here" }'

    def test_no_request_fails_and_no_limit_is_exceeded_or_reset(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        clients = Clients(weir.port)
        for number in range(UPGRADES):
            clients.went_on(150)
            if number % 2:
                weir.upgrade()
            else:
                weir.count += 1
                told = weir.ask("upgrade")
                self.assertEqual((told.returncode, told.stderr), (0, ""))
                self.assertIn(f"process {weir.taken_over()} has taken over", told.stdout)
        eventually(lambda: 429 in clients.statuses, "the limit is reached")
        clients.went_on(100)
        clients.stop()
        admitted = clients.statuses.count(200)
        print(f"\n{len(clients.statuses)} requests, {admitted} admitted, {clients.closed} connections closed with an answer", flush=True)
        self.assertEqual(clients.faults, [])
        self.assertEqual(set(clients.statuses), {200, 429})
        self.assertEqual(clients.closed, 0)
        self.assertEqual(admitted, 2000)
        self.assertEqual(weir.metric("weir_upgrades_total", result="ok"), UPGRADES)

    def test_a_request_under_way_is_finished_by_the_one_that_began_it(self):
        release = self.hold_requests()
        weir = self.weir(rules=rule("all", "2/day", algorithm='"fixed_window"', key="[]"))
        with weir.connect() as client:
            client.send(request_bytes("GET", "/"))
            eventually(lambda: self.upstream.exchanges, "it is under way")
            weir.upgrade()
            with weir.connect() as other:
                other.send(request_bytes("GET", "/"))
                eventually(lambda: len(self.upstream.exchanges) == 2, "the new one serves")
                self.assertEqual(weir.get("/").status, 429)
                release.set()
                self.assertEqual([client.read().body, other.read().body], [b"late", b"late"])
        self.assertEqual(weir.status_of(weir.ended.pop()), 0)

    def begin(self, client):
        """A request that is under way."""
        seen = len(self.upstream.exchanges)
        client.send(request_bytes("GET", "/slow"))
        eventually(lambda: len(self.upstream.exchanges) > seen, "it is under way")

    SLOW = '[[route]]\nmatch = { path = "/slow" }\nupstream = "api"\n'

    def test_a_reload_does_not_stand_in_the_way_of_an_upgrade_nor_of_connections_that_come_over(self):
        release = self.hold_requests()
        weir = self.weir(routes=self.SLOW + self.FREE)
        weir.signal(signal.SIGHUP)
        weir.wait_for("was read anew")
        with weir.connect() as client:
            self.begin(client)
            weir.upgrade()
            self.assertEqual(weir.get("/").status, 200)
            weir.signal(signal.SIGHUP)
            weir.wait_for("was read anew", 2)
            release.set()
            self.assertEqual([client.read().body, client.get("/").body], [b"late", b"here"])

    def test_of_what_the_old_one_has_open_only_what_listens_goes_over(self):
        release = self.hold_requests()
        weir = self.weir(routes=self.SLOW + self.FREE)
        with weir.connect() as client, Client(weir.admin) as operator:
            self.begin(client)
            self.assertEqual(operator.get("/healthz").status, 200)
            old = weir.pid
            listening = listening_at(weir.port, old) | listening_at(weir.admin, old)
            weir.upgrade()
            self.assertEqual((sockets_of(weir.pid) & sockets_of(old)) - listening, set())
            release.set()
            self.assertEqual(client.read().body, b"late")

    def test_connections_pass_through_a_process_that_has_been_replaced_itself(self):
        """The first one finishes a request when the second, which has nothing to finish, has given place to a third. A first
        SIGTERM, which a service manager sends to all of them, ends none of that."""
        release = self.hold_requests()
        weir = self.weir(routes=self.SLOW + self.FREE)
        with weir.connect() as client:
            self.begin(client)
            weir.upgrade()
            weir.upgrade()
            os.kill(weir.ended[0], signal.SIGTERM)
            release.set()
            self.assertEqual(client.read().body, b"late")
            said = client.get("/")
            self.assertEqual((said.status, said["connection"]), (200, None))
            self.assertEqual([weir.status_of(pid) for pid in weir.ended], [0, 0])
            self.assertEqual(client.get("/").status, 200)
            weir.ended.clear()

    def test_a_connection_that_comes_over_is_not_turned_away_for_newcomers(self):
        release = self.hold_requests()
        weir = self.weir(routes=self.SLOW + self.FREE, server="max_connections_per_ip = 1")
        with weir.connect() as client:
            self.begin(client)
            weir.upgrade()
            with weir.connect() as newcomer:
                self.assertEqual(newcomer.get("/").status, 200)
                release.set()
                self.assertEqual(client.read().body, b"late")
                self.assertEqual([one.get("/").status for one in (client, newcomer)], [200, 200])

    def test_a_head_that_is_too_large_to_move_is_answered_here_and_others_go_over(self):
        weir = self.start(Lineage(config(self.upstream.port, routes=self.FREE, server='max_head = "64KiB"').replace("workers = 2", "workers = 1")))
        with weir.connect() as large, weir.connect() as idle:
            self.assertEqual(idle.get("/").status, 200)
            large.send(b"GET / HTTP/1.1\r\nHost: weir\r\n" + (b"A: " + b"x" * 1000 + b"\r\n") * 40 + b"Z: ")
            before, weir.count = len(weir.lines), 1
            weir.signal(signal.SIGUSR2)
            while not any("has taken over" in line for line in weir.lines[before:]):
                large.send(b"z")  # each makes it look whether it may go
                time.sleep(0.002)
            for _ in range(20):
                large.send(b"z")
                time.sleep(0.005)
            weir.taken_over()
            large.send(b"\r\n\r\n")
            said = [large.read(), large.get("/"), idle.get("/")]
            self.assertEqual([(one.status, one["connection"]) for one in said], [(200, None)] * 3)

    def test_every_socket_goes_over_however_many_there_are(self):
        """They come in several messages."""
        weir = self.start(Lineage(config(self.upstream.port, routes=self.FREE).replace("workers = 2", "workers = 130")))
        before = listening_at(weir.port, weir.pid)
        weir.upgrade()
        self.assertEqual(len(before), 130)
        self.assertEqual(listening_at(weir.port, weir.pid), before)

    def test_an_idle_connection_is_not_closed_under_its_client(self):
        with tempfile.TemporaryDirectory() as folder:
            files = make_certificate(folder)
            tls = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }\n'
            weir = self.weir(files, listener=tls, routes=self.FREE)
            with Client(weir.port, tls=client_tls(files["edge.crt"])) as client:
                self.assertEqual(client.get("/").status, 200)
                weir.upgrade()
                time.sleep(0.3)  # six ticks, each of which would close what is idle
                said = client.get("/")
                self.assertEqual((said.status, said["connection"]), (200, "close"))
            weir.wait_for("upgrade: requests decided here since the other took over: 0$")

    def test_whoever_asks_is_told_whose_state_did_not_go_over(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        self.assertEqual(weir.get("/").status, 200)
        weir.write((weir.folder / "weir.toml").read_text().replace("fixed_window", "sliding_window"))
        weir.count += 1
        told = weir.ask("upgrade")
        weir.taken_over()
        self.assertIn("with the state of 0 keys; 1 was of a rule that is gone or counts otherwise", told.stdout)
        weir.wait_for("has taken over, with the state of 0 keys; 1 was of a rule that is gone or counts otherwise")

    def test_a_rule_whose_limit_the_file_has_changed_keeps_the_share_that_was_used(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        self.statuses(weir.port, 500)
        weir.write((weir.folder / "weir.toml").read_text().replace("2000/day", "1000/day"))
        weir.upgrade()
        self.assertEqual(int(weir.get("/")["x-ratelimit-remaining"]), 749)

    def test_the_number_of_workers_may_change(self):
        """Each inherited socket has somebody who accepts there: the kernel spreads connections over all."""
        weir = self.weir(routes=self.FREE)
        listening = listening_at(weir.port, weir.pid)
        for workers in (1, 5, 2):
            weir.write(config(self.upstream.port, routes=self.FREE).replace("workers = 2", f"workers = {workers}"))
            weir.upgrade()
            self.assertEqual([weir.get("/").status for _ in range(40)], [200] * 40)
            self.assertEqual(weir.metric("weir_workers"), workers)
            self.assertEqual(listening_at(weir.port, weir.pid), listening)

    def test_unix_sockets_go_over_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/weir.sock"
            weir = self.weir(listener=f'[[listener]]\naddress = "unix:{path}"', routes=self.FREE)
            weir.upgrade()
            self.assertEqual(weir.status_of(weir.ended.pop()), 0)  # and has left the file where it is
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(PATIENCE)
                client.connect(path)
                client.sendall(request_bytes("GET", "/"))
                self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200"))

    def test_what_is_saved_on_the_disk_is_what_the_last_one_knows(self):
        with tempfile.TemporaryDirectory() as folder:
            state = f'memory = {{ max_keys = 1000, snapshot = "{folder}/state" }}'
            limited = {"rules": rule("all", "3/day", algorithm='"fixed_window"', key="[]"), "state": state, "routes": self.FREE}
            with Lineage(config(self.upstream.port, **limited)) as weir:
                self.assertEqual(weir.get("/").status, 200)
                weir.upgrade()
                self.assertEqual(weir.status_of(weir.ended.pop()), 0)
                self.assertFalse(os.path.exists(f"{folder}/state"))
                self.assertEqual(weir.get("/").status, 200)
            weir = self.weir(**limited)
            self.assertEqual([weir.get("/").status for _ in range(2)], [200, 429])

    def test_a_log_across_an_upgrade_is_replayed_as_it_was(self):
        """What the old process gives back after it has handed over nobody counts, and neither does a replay."""
        release = self.hold_requests()
        weir = self.weir(rules=rule("failures", "3/day", algorithm='"fixed_window"', key="[]", charge='{ status = ["404"] }'),
                         routes=self.SLOW + '[[route]]\nrespond = { status = 404 }')
        log = weir.folder / "access.log"
        logged = (weir.folder / "weir.toml").read_text().replace('access = "off"', f'access = "{log}"\nfields = ["usual", "replay"]')
        weir.write(logged)
        weir.upgrade()  # [log] access is asked for at start
        with weir.connect() as client:
            self.begin(client)
            weir.upgrade()
            release.set()
            self.assertEqual(client.read().body, b"late")
        self.assertEqual([weir.get("/").status for _ in range(3)], [404, 404, 429])
        eventually(lambda: log.read_text().count("\n") == 4, "every line is written")
        told = subprocess.run([WEIR, "replay", "--json", "--config", weir.folder / "weir.toml", log],
                              capture_output=True, text=True, timeout=PATIENCE, check=True)
        said = json.loads(told.stdout)
        self.assertEqual((said["requests"], said["refused_now"], said["newly_admitted"], said["left_out"]), (4, 1, 0, {}))

    def test_an_alert_that_fires_is_told_of_once_and_its_end_as_well(self):
        """But one that the new file lacks has ended, which the old process says, who is here yet."""
        receiver, other, release = self.start(Receiver()), self.start(Receiver()), self.hold_requests()
        stays = alert(receiver.port, what='rule = "some"', name='"stays"')
        limit = rule("some", "1/day", key="[]", match='{ path = "/" }')
        weir = self.weir(rules=limit + stays + alert(other.port, what='rule = "some"', name='"goes"'), routes=self.SLOW + self.FREE)
        with weir.connect() as client:
            self.begin(client)
            self.statuses(weir.port, 6)
            for name in ("stays", "goes"):
                self.await_metric(weir, 1, "weir_alert_posts_total", alert=name)
            weir.write(config(self.upstream.port, rules=limit + stays, routes=self.SLOW + self.FREE))
            weir.upgrade()
            self.assertEqual(weir.metric("weir_alert_firing", alert="stays"), 1)
            eventually(lambda: len(other.posts) > 1, "its end is told")
            release.set()
            self.assertEqual(client.read().body, b"late")
        weir.upgrade()
        eventually(lambda: len(receiver.posts) > 1, "its end is told")
        self.assertEqual(receiver.states(), [("stays", "firing"), ("stays", "ended")])
        self.assertEqual(other.states(), [("goes", "firing"), ("goes", "ended")])
        self.assertEqual(receiver.posts[1][3]["since"], receiver.posts[0][3]["since"])

    def test_a_service_manager_is_told_who_serves(self):
        with Manager() as manager:
            weir = self.weir(environment={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "200000"}, routes=self.FREE)
            self.assertEqual(manager.hear_of("READY")["READY"], "1")
            successor = weir.upgrade()
            while "MAINPID" not in (said := manager.hear()):
                self.assertIn("WATCHDOG", said)
            self.assertEqual(said, {"MAINPID": str(successor)})
            self.assertEqual(manager.hear_of("READY")["STATUS"], "serving")
            for _ in range(3):
                self.assertEqual(manager.hear(), {"WATCHDOG": "1"})


class Failing(Upgrade):
    LIMIT = rule("all", "10/day", algorithm='"fixed_window"', key="[]")
    FREE = Serving.FREE

    def test_whatever_fails_the_old_one_goes_on(self):
        given = {"rules": self.LIMIT, "routes": self.FREE, "server": 'upgrade_timeout = "400ms"'}
        good = config(self.upstream.port, **given)
        weir = self.weir(**given)
        kept = self.enterContext(weir.connect())
        for number, (script, text, why) in enumerate((
                (None, good.replace("10/day", "lots"), r"weir\.toml:\d+: rule\[all\]\.limit"),
                ("kill -SEGV $$", good, "it was ended by signal 11"),
                ("exit 3", good, "it ended with status 3"),
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

    def test_one_that_is_late_with_the_state_is_ended_and_requests_go_on(self):
        """It says that it is ready and then nothing."""
        weir = self.weir(rules=self.LIMIT, routes=self.FREE, server='upgrade_pause = "300ms"')
        weir.install("exec python3 -c 'import os, socket, time; "
                     's = socket.socket(fileno=int(os.environ["WEIR_UPGRADE_FD"])); s.send(b"ready"); time.sleep(30)\'')
        kept = self.enterContext(weir.connect())
        self.assertEqual(kept.get("/").status, 200)
        weir.signal(signal.SIGUSR2)
        weir.wait_for("upgrade: started process")
        statuses = []
        while not any("goes on as it was" in line for line in weir.lines) or len(statuses) < 5:
            statuses.append(kept.get("/").status)
            time.sleep(0.005)
        weir.wait_for("it did not take over within upgrade_pause; this weir goes on")
        self.assertEqual(set(statuses) - {429}, {200})
        self.assertEqual(statuses.count(200), min(9, len(statuses)))

    def test_one_that_dies_once_it_serves_and_before_it_is_told_that_it_is_weir_is_not(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        weir.install(IMPOSTOR % 'os.kill(os.getppid(), signal.SIGSTOP); channel.send(b"serving"); os._exit(9)')
        weir.signal(signal.SIGUSR2)
        eventually(lambda: has_ended(weir.wait_for(r"upgrade: started process (\d+)")[0].group(1)), "it is dead")
        weir.signal(signal.SIGCONT)
        weir.wait_for("it ended with status 9; this weir goes on as it was")
        self.assertEqual(weir.get("/").status, 200)

    def test_connections_stay_where_nobody_takes_them(self):
        """The new process is gone before a connection is free to go over: who has one hears of it with an answer."""
        release = self.hold_requests()
        weir = self.weir()
        weir.install(IMPOSTOR % 'channel.send(b"serving"); hear(b"over"); os._exit(0)')
        clients = [self.enterContext(weir.connect()) for _ in range(6)]
        for client in clients:
            client.send(request_bytes("GET", "/"))
        eventually(lambda: len(self.upstream.exchanges) == 6, "all are under way")
        weir.signal(signal.SIGUSR2)
        weir.wait_for("has taken over")
        eventually(lambda: has_ended(weir.wait_for(r"upgrade: started process (\d+)")[0].group(1)), "nobody takes them")
        release.set()
        answers = [client.read() for client in clients]
        self.assertEqual([said.status for said in answers], [200] * 6)
        # The first of each worker was to go over; by the next it knows that nobody takes them.
        kept = [client for client, said in zip(clients, answers) if said["connection"] != "close"]
        self.assertTrue(kept)
        time.sleep(0.3)  # six ticks, at each of which they might be closed
        for client in kept:
            said = client.get("/")
            self.assertEqual((said.status, said["connection"]), (200, "close"))
        self.assertEqual(weir.process.wait(PATIENCE), 0)
        weir.signal = lambda _: None

    def test_one_that_fails_late_leaves_the_admin_listener_to_the_one_that_runs(self):
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

    def test_the_pause_has_one_bound_for_all_of_it(self):
        """It restores and opens, and is too late with both together."""
        weir = self.weir(rules=self.LIMIT, routes=self.FREE, server='upgrade_pause = "600ms"')
        late = 'time.sleep(0.4); channel.send(b"%s")'
        weir.install((IMPOSTOR % (late % "serving")).replace('channel.send(b"restored")', late % "restored"))
        weir.fails("within upgrade_pause")
        self.assertEqual(weir.get("/").status, 200)

    def test_whoever_asks_is_told_why(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        weir.install("exit 7")
        told = weir.ask("upgrade")
        self.assertEqual((told.returncode, told.stdout), (1, ""))
        self.assertRegex(told.stderr, r"weir: 127\.0\.0\.1:\d+: no upgrade: it ended with status 7")
        weir.write("[server]\nworkers = true\n")
        self.assertEqual(weir.ask("upgrade").returncode, 2)
        self.assertEqual(weir.get("/").status, 200)

    def test_a_weir_that_is_to_end_takes_the_new_one_with_it(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        weir.install("exec sleep 30")
        weir.signal(signal.SIGUSR2)
        started = int(weir.wait_for(r"upgrade: started process (\d+)")[0].group(1))
        weir.signal(signal.SIGTERM)
        weir.wait_for("upgrade: process .*: weir is to end; this weir goes on as it was")
        self.assertEqual(weir.process.wait(PATIENCE), 0)
        self.assertFalse(pathlib.Path(f"/proc/{started}").exists())
        weir.signal = lambda _: None


if __name__ == "__main__":
    main()
