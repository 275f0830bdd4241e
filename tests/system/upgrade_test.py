#!/usr/bin/env python3
"""A new process of the same binary takes over: no connection is refused or lost, and no count is reset."""

import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time

from alerts_test import Receiver, alert
from harness import PATIENCE, WEIR, Client, client_tls, config, eventually, main, make_certificate, request_bytes, rule
from lineage import Lineage, Upgrade
from supervision_test import Manager

UPGRADES = int(os.environ.get("WEIR_UPGRADES", "5"))
LONG = "1min"  # a drain in which a slow machine can start two processes


def sockets_of(pid):
    """Returns the inodes of the process's open sockets, except its standard streams."""
    inodes = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor was closed meanwhile
            link = os.readlink(fd)
            if int(fd.name) > 2 and link.startswith("socket:["):
                inodes.add(link[8:-1])
    return inodes


def listening_at(port, pid):
    """Returns the inodes of the process's sockets that listen on the port."""
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {line[9] for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "0A"} & sockets_of(pid)


class Clients:
    """Clients that keep their connections, and clients that open a connection for each request. They send requests until they are
    stopped. A client closes a kept connection only if the response says so."""

    def __init__(self, port, kept=6, fresh=2, path="/"):
        self.port, self.path, self.ending, self.statuses, self.faults, self.closed = port, path, threading.Event(), [], [], 0
        self.threads = [threading.Thread(target=self.ask, args=(number < kept,), daemon=True) for number in range(kept + fresh)]
        for thread in self.threads:
            thread.start()

    def ask(self, keeps):
        while not self.ending.is_set():
            try:
                with Client(self.port) as client:
                    self.use(client, keeps)
            except Exception as fault:  # each exception is a failed request of a client
                self.faults.append(repr(fault))

    def use(self, client, keeps):
        while not self.ending.is_set():
            said = client.get(self.path)
            self.statuses.append(said.status)
            if not keeps:
                return
            if said["connection"] == "close":
                self.closed += 1
                return

    def went_on(self, count):
        seen = len(self.statuses)
        eventually(lambda: len(self.statuses) > seen + count, "more requests are answered")

    def stop(self):
        self.ending.set()
        for thread in self.threads:
            thread.join(PATIENCE)


class Upgrade(Upgrade):
    LIMIT = rule("all", "2000/day", algorithm='"fixed_window"', key="[]")

    def test_upgrades_under_load_fail_no_request_and_keep_limits_exact(self):
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

    def test_request_in_progress_is_finished_by_the_old_process(self):
        release = self.hold_requests()
        weir = self.weir(rules=rule("all", "2/day", algorithm='"fixed_window"', key="[]"), drain=LONG)
        with weir.connect() as client:
            client.send(request_bytes("GET", "/"))
            eventually(lambda: self.upstream.exchanges, "the upstream has the request")
            weir.upgrade()
            with weir.connect() as other:
                other.send(request_bytes("GET", "/"))
                eventually(lambda: len(self.upstream.exchanges) == 2, "the new process has the second request")
                self.assertEqual(weir.get("/").status, 429)
                release.set()
                self.assertEqual([client.read().body, other.read().body], [b"late", b"late"])
        self.assertEqual(weir.status_of(weir.ended.pop()), 0)

    TWO = '[[rule]]\nname = "two"\nalgorithm = "concurrency"\nlimit = 2\nkey = []\nmatch = { path = "/slow" }\n'

    def test_new_process_counts_permits_held_by_the_old_process(self):
        release = self.hold_requests()
        weir = self.weir(rules=self.TWO, routes=self.SLOW + self.FREE, drain=LONG)
        with weir.connect() as first, weir.connect() as second:
            self.begin(first)
            weir.upgrade()
            weir.wait_for("1 concurrency permits are still held by the old process")
            self.begin(second)
            self.assertEqual(weir.get("/slow").status, 429)
            release.set()
            self.assertEqual([client.read().body for client in (first, second)], [b"late", b"late"])
            release.clear()
            with weir.connect() as third, weir.connect() as fourth:
                # The permit is released shortly after the last byte of the response.
                eventually(lambda: self.begins(third), "the permit of the new process is released")
                eventually(lambda: self.begins(fourth), "the permit of the old process is released")
                self.assertEqual(weir.get("/slow").status, 429)
                release.set()
                self.assertEqual([client.read().body for client in (third, fourth)], [b"late", b"late"])

    def begins(self, client):
        """Returns true if a request is admitted. The request then stays in progress."""
        seen = len(self.upstream.exchanges)
        client.send(request_bytes("GET", "/slow"))
        while len(self.upstream.exchanges) == seen:
            if select.select([client.sock], [], [], 0.01)[0]:
                self.assertEqual(client.read().status, 429)
                return False
        return True

    def test_third_process_counts_permits_held_by_the_first_process(self):
        release = self.hold_requests()
        weir = self.weir(rules=self.TWO, routes=self.SLOW + self.FREE, drain=LONG)
        with weir.connect() as first, weir.connect() as second:
            self.begin(first)
            weir.upgrade()
            self.begin(second)
            weir.upgrade()
            weir.wait_for("2 concurrency permits are still held by the old process")
            self.assertEqual(weir.get("/slow").status, 429)
            os.kill(weir.ended[0], signal.SIGKILL)
            with weir.connect() as third:  # an earlier connection might belong to the killed process
                eventually(lambda: self.begins(third), "the permit of the request is released")
                self.assertEqual(weir.get("/slow").status, 429)
                release.set()
                self.assertEqual([client.read().body for client in (second, third)], [b"late", b"late"])
        self.assertEqual([weir.status_of(pid) for pid in weir.ended], [-signal.SIGKILL, 0])
        weir.ended.clear()

    def begin(self, client):
        """Starts a request that stays in progress."""
        seen = len(self.upstream.exchanges)
        client.send(request_bytes("GET", "/slow"))
        eventually(lambda: len(self.upstream.exchanges) > seen, "the upstream has the request")

    SLOW = '[[route]]\nmatch = { path = "/slow" }\nupstream = "api"\n'

    def test_connections_are_passed_to_the_new_process_also_after_a_reload(self):
        release = self.hold_requests()
        weir = self.weir(routes=self.SLOW + self.FREE)
        weir.signal(signal.SIGHUP)
        weir.wait_for("was reloaded")
        with weir.connect() as client:
            self.begin(client)
            weir.upgrade()
            self.assertEqual(weir.get("/").status, 200)
            weir.signal(signal.SIGHUP)
            weir.wait_for("was reloaded", 2)
            release.set()
            self.assertEqual([client.read().body, client.get("/").body], [b"late", b"here"])

    def test_new_process_inherits_only_listening_sockets(self):
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

    def test_connection_with_an_open_request_serves_further_requests_after_two_upgrades(self):
        """The first process is still finishing a request when the second process hands over to a third. A SIGTERM to all
        processes must not end that request."""
        release = self.hold_requests()
        weir = self.weir(routes=self.SLOW + self.FREE, drain=LONG)
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

    def test_connection_passed_by_an_upgrade_is_not_closed_in_favour_of_new_connections(self):
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

    def test_old_process_relays_a_connection_whose_incomplete_head_is_large(self):
        weir = self.start(Lineage(config(self.upstream.port, routes=self.FREE, server='max_head = "64KiB"').replace("workers = 2", "workers = 1")))
        with weir.connect() as large, weir.connect() as idle:
            self.assertEqual(idle.get("/").status, 200)
            large.send(b"GET / HTTP/1.1\r\nHost: weir\r\n" + (b"A: " + b"x" * 1000 + b"\r\n") * 40 + b"Z: ")
            before, weir.count = len(weir.lines), 1
            weir.signal(signal.SIGUSR2)
            while not any("has taken over" in line for line in weir.lines[before:]):
                large.send(b"z")  # after each byte, the process checks whether it may pass on the connection
                time.sleep(0.002)
            for _ in range(20):
                large.send(b"z")
                time.sleep(0.005)
            weir.taken_over()
            large.send(b"\r\n\r\n")
            said = [large.read(), idle.get("/")]
            self.assertEqual([(one.status, one["connection"]) for one in said], [(200, "close"), (200, None)])
            self.assertTrue(large.closed())
        weir.wait_for("upgrade: requests decided by the old process since the new one took over: 0$")

    def test_any_number_of_listening_sockets_is_passed_on(self):
        """There are more sockets than fit into one message, so the old process sends several messages."""
        weir = self.start(Lineage(config(self.upstream.port, routes=self.FREE).replace("workers = 2", "workers = 130")))
        before = listening_at(weir.port, weir.pid)
        weir.upgrade()
        self.assertEqual(len(before), 130)
        self.assertEqual(listening_at(weir.port, weir.pid), before)

    def test_idle_connection_is_not_closed_by_an_upgrade(self):
        with tempfile.TemporaryDirectory() as folder:
            files = make_certificate(folder)
            tls = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }\n'
            weir = self.weir(files, listener=tls, routes=self.FREE)
            with Client(weir.port, tls=client_tls(files["edge.crt"])) as client:
                self.assertEqual(client.get("/").status, 200)
                weir.upgrade()
                time.sleep(0.3)  # six watchdog ticks, each of which would close idle connections
                said = client.get("/")
                self.assertEqual((said.status, said["connection"]), (200, "close"))
            weir.wait_for("upgrade: requests decided by the old process since the new one took over: 0$")

    def test_connections_that_were_silent_for_more_than_a_second_are_not_closed_by_an_upgrade(self):
        """Such connections hold neither a buffer nor coroutines that serve requests. The second upgrade passes them on while they
        are silent again."""
        with tempfile.TemporaryDirectory() as folder:
            files = make_certificate(folder)
            tls = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }\n'
            weir = self.weir(files, listener=tls, routes=self.FREE)
            plain = self.weir(routes=self.FREE)
            with Client(weir.port, tls=client_tls(files["edge.crt"])) as relayed, plain.connect() as passed, plain.connect() as unused:
                self.assertEqual([relayed.get("/").status, passed.get("/").status], [200, 200])
                for _ in range(2):
                    time.sleep(1.5)  # the subject of this test is silence of more than a second
                    plain.upgrade()
                weir.upgrade()
                said = [relayed.get("/"), passed.get("/"), unused.get("/")]
                self.assertEqual([(one.status, one["connection"]) for one in said], [(200, "close"), (200, None), (200, None)])
            for each in (weir, plain):
                each.wait_for("upgrade: requests decided by the old process since the new one took over: 0$")

    def test_keys_that_the_new_process_did_not_restore_are_reported(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        self.assertEqual(weir.get("/").status, 200)
        weir.write((weir.folder / "weir.toml").read_text().replace("fixed_window", "sliding_window"))
        weir.count += 1
        told = weir.ask("upgrade")
        weir.taken_over()
        self.assertIn("with the state of 0 keys; 1 belonged to a removed or changed rule", told.stdout)
        weir.wait_for("has taken over, with the state of 0 keys; 1 belonged to a removed or changed rule")

    def test_limit_that_an_upgrade_changes_keeps_the_percentage_that_is_used(self):
        weir = self.weir(rules=self.LIMIT, routes=self.FREE)
        self.statuses(weir.port, 500)
        weir.write((weir.folder / "weir.toml").read_text().replace("2000/day", "1000/day"))
        weir.upgrade()
        self.assertEqual(int(weir.get("/")["x-ratelimit-remaining"]), 749)

    def test_number_of_workers_may_change_with_an_upgrade(self):
        """Each inherited socket needs a worker that accepts on it, because the kernel spreads connections over all sockets."""
        weir = self.weir(routes=self.FREE)
        listening = listening_at(weir.port, weir.pid)
        for workers in (1, 5, 2):
            weir.write(config(self.upstream.port, routes=self.FREE).replace("workers = 2", f"workers = {workers}"))
            weir.upgrade()
            self.assertEqual([weir.get("/").status for _ in range(40)], [200] * 40)
            self.assertEqual(weir.metric("weir_workers"), workers)
            self.assertEqual(listening_at(weir.port, weir.pid), listening)

    def test_unix_listening_sockets_are_passed_on(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/weir.sock"
            weir = self.weir(listener=f'[[listener]]\naddress = "unix:{path}"', routes=self.FREE)
            weir.upgrade()
            self.assertEqual(weir.status_of(weir.ended.pop()), 0)  # the old process has ended and has not removed the file
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(PATIENCE)
                client.connect(path)
                client.sendall(request_bytes("GET", "/"))
                self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200"))

    def test_file_of_a_removed_unix_listener_is_deleted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/weir.sock"
            weir = self.weir(listener=f'[[listener]]\naddress = "unix:{path}"', routes=self.FREE)
            self.assertTrue(os.path.exists(path))
            weir.write(config(self.upstream.port, routes=self.FREE))
            weir.upgrade()
            eventually(lambda: not os.path.exists(path), "the socket file is removed")
            self.assertEqual(weir.get("/").status, 200)

    def test_snapshot_is_written_by_the_newest_process(self):
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

    def test_access_log_written_across_an_upgrade_replays_with_the_same_decisions(self):
        """The old process refunds charges after the handover. Neither the new process nor a replay counts these refunds."""
        release = self.hold_requests()
        weir = self.weir(rules=rule("failures", "3/day", algorithm='"fixed_window"', key="[]", charge='{ status = ["404"] }'),
                         routes=self.SLOW + '[[route]]\nrespond = { status = 404 }')
        log = weir.folder / "access.log"
        logged = (weir.folder / "weir.toml").read_text().replace('access = "off"', f'access = "{log}"\nfields = ["usual", "replay"]')
        weir.write(logged)
        weir.upgrade()  # a new process is needed, because [log] access takes effect only at the start
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

    def test_firing_alert_and_its_end_are_posted_once_across_an_upgrade(self):
        """The alert is not in the new configuration, so it has ended. The old process still runs and posts the end."""
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
            eventually(lambda: len(other.posts) > 1, "the end of the alert is posted")
            release.set()
            self.assertEqual(client.read().body, b"late")
        weir.upgrade()
        eventually(lambda: len(receiver.posts) > 1, "the end of the alert is posted")
        self.assertEqual(receiver.states(), [("stays", "firing"), ("stays", "ended")])
        self.assertEqual(other.states(), [("goes", "firing"), ("goes", "ended")])
        self.assertEqual(receiver.posts[1][3]["since"], receiver.posts[0][3]["since"])

    def test_service_manager_gets_the_process_id_of_the_new_process(self):
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


if __name__ == "__main__":
    main()
