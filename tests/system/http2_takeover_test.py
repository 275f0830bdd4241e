#!/usr/bin/env python3
"""Drains, reloads and upgrades while HTTP/2 clients send requests. weir sends a GOAWAY before it closes a connection, and no
request is lost."""

import contextlib
import re
import signal
import subprocess
import tempfile
import threading

from harness import PATIENCE, Weir, answer, client_tls, eventually, main, make_certificate, rule
from http2_client import GONE, REFUSED, Http2Client, Http2TestCase
from lineage import Lineage, adopt_orphans

UPGRADES = 3


class Load:
    """Clients with several open requests on each connection. They send requests until they are stopped. `tls`: for each listener,
    a TLS context or None. After a GOAWAY a client opens no more streams, and opens a new connection if `reconnects` is true. A
    request is lost if it got no answer and no frame said that weir has not processed it."""

    def __init__(self, weir, tls, reconnects=True):
        self.ending, self.reconnects = threading.Event(), reconnects
        self.statuses, self.lost, self.unprocessed, self.refused, self.goodbyes = [], [], 0, 0, 0
        self.threads = [threading.Thread(target=self.run, args=(port, tls), daemon=True)
                        for port, tls in zip(weir.ports, tls) for _ in range(3)]
        for thread in self.threads:
            thread.start()
        self.goes_on()

    def goes_on(self, count=300):
        seen = len(self.statuses)
        eventually(lambda: self.lost or len(self.statuses) > seen + count, "requests go on")

    def run(self, port, tls):
        while not self.ending.is_set():
            try:
                with Http2Client(port, tls=tls) as client:
                    self.use(client)
            except Exception as fault:  # each exception is a failed connection of a client
                self.lost.append(repr(fault))
            if not self.reconnects:
                return

    def use(self, client):
        opened = []
        while not (self.ending.is_set() or client.goaways or client.ended):
            while len(opened) < 8:
                opened.append(client.h2.get_next_available_stream_id())
                # weir may have closed the connection after its GOAWAY, which this slow client has yet to read.
                with contextlib.suppress(*GONE):
                    client.open()
            client.receive()
            opened = [stream for stream in opened if not self.is_over(client, stream)]
        for stream in opened:
            client.read(stream)
            self.is_over(client, stream)
        self.goodbyes += bool(client.goaways)

    def is_over(self, client, stream):
        response = client.answers[stream]
        if response.ended:
            self.statuses.append(response.status)
        elif response.error is not None:
            last = client.goaways[-1][1] if client.goaways else stream
            if response.error == REFUSED or stream > last:
                self.unprocessed += 1
                self.refused += response.error == REFUSED
            else:
                self.lost.append((stream, response.error, client.goaways))
        return response.ended or response.error is not None

    def stop(self):
        """Returns the requests that were lost."""
        self.ending.set()
        for thread in self.threads:
            thread.join(2 * PATIENCE)
        print(f"\n{len(self.statuses)} answers, {self.goodbyes} connections with GOAWAY, {self.unprocessed} requests to be sent again",
              flush=True)
        return self.lost


class H2load:
    """The program h2load. After a GOAWAY it opens no new connection, and reports the requests that it could not send as failed."""

    def __init__(self, url, upstream, count):
        self.process = subprocess.Popen(["h2load", "-n", str(count), "-c", "4", "-m", "8", url], stdout=subprocess.PIPE, text=True)
        self.upstream = upstream
        eventually(lambda: len(upstream.exchanges) > 200, "its requests reach the upstream")

    def finish(self):
        """Returns the number of requests that h2load got an answer to, and the number of requests that the upstream received."""
        told = self.process.communicate(timeout=4 * PATIENCE)[0]
        print("\n" + re.search("requests: .*", told)[0], flush=True)
        return int(re.search(r"(\d+) succeeded", told)[1]), len(self.upstream.exchanges)


class Drain(Http2TestCase):
    def test_drain_finishes_open_requests_and_excludes_later_requests_by_a_goaway(self):
        release = threading.Event()
        self.upstream.reply = lambda exchange: (exchange.read_body(), release.wait(PATIENCE), exchange.send(answer(b"late")))
        weir = self.weir()
        clients = [self.client(weir), self.client(weir, secure=True)]
        opened = [[client.open("POST", end=False) for _ in range(10)] for client in clients]
        for client, streams in zip(clients, opened):
            client.send_body(streams[0], b"x" * 100)
        eventually(lambda: len(self.upstream.exchanges) == 20, "all requests reach the upstream")
        weir.signal(signal.SIGTERM)
        for client, streams in zip(clients, opened):
            client.wait(lambda: len(client.goaways) == 2)  # noqa: B023
            self.assertEqual(client.goaways, [(0, (1 << 31) - 1), (0, streams[-1])])
            for stream in streams[1:]:
                client.send_body(stream, b"x" * 100_000)
        late = clients[0].open()
        release.set()
        for client, streams in zip(clients, opened):
            self.assertEqual([client.read(stream).body for stream in streams], [b"late"] * 10)
            self.assertTrue(client.closed())
        self.assertEqual(clients[0].answers[late].status, None)
        self.assertEqual(weir.wait(), 0)
        self.assertEqual(len(self.upstream.exchanges), 20)

    def test_drain_closes_idle_connections_at_once_with_a_goaway(self):
        weir = self.weir(server='idle_timeout = "1h"')
        clients = [self.client(weir), self.client(weir, secure=True)]
        for client in clients:
            self.assert_answers(client)
        weir.signal(signal.SIGTERM)
        for client in clients:
            self.assertTrue(client.closed())
            self.assertEqual(client.goaways[-1], (0, 1))
        self.assertEqual(weir.wait(), 0)

    def test_a_drain_under_load_loses_no_request(self):
        weir = self.weir()
        load = Load(weir, (None, self.tls), reconnects=False)
        weir.signal(signal.SIGTERM)
        self.assertEqual(weir.wait(), 0)
        self.assertEqual(load.stop(), [])
        self.assertEqual(set(load.statuses), {200})
        self.assertEqual(load.goodbyes, 6)

    def test_each_request_that_is_forwarded_during_a_drain_gets_an_answer(self):
        for door, scheme in enumerate(("http", "https")):
            self.upstream.exchanges.clear()
            weir = self.weir()
            load = H2load(f"{scheme}://127.0.0.1:{weir.ports[door]}/", self.upstream, 100_000)
            weir.signal(signal.SIGTERM)
            answered, forwarded = load.finish()
            self.assertEqual(answered, forwarded)
            self.assertEqual(weir.wait(), 0)

    def test_requests_that_are_open_at_the_drain_deadline_are_ended(self):
        self.upstream.reply = lambda exchange: exchange.wait_for_close()
        weir = self.start(Weir(self.text().replace('drain = "5s"', 'drain = "500ms"'), self.files))
        client = self.client(weir)
        stream = client.open()
        eventually(lambda: self.upstream.exchanges, "the request reaches the upstream")
        weir.signal(signal.SIGTERM)
        self.assertTrue(client.closed())
        self.assertIsNotNone(client.answers[stream].error or client.answers[stream].status)
        weir.wait()


class Reload(Http2TestCase):
    def replace(self, weir, text):
        (weir.folder / "weir.toml.new").write_text(text)
        (weir.folder / "weir.toml.new").rename(weir.folder / "weir.toml")

    def reload(self, weir):
        before = weir.metric("weir_reloads_total", result="ok")
        weir.signal(signal.SIGHUP)
        eventually(lambda: weir.metric("weir_reloads_total", result="ok") == before + 1, "the reload has ended")

    def test_reloads_of_certificates_under_load_lose_no_request(self):
        weir = self.weir()
        with tempfile.TemporaryDirectory() as folder:
            fresh = make_certificate(folder)
        both = client_tls(self.files["edge.crt"] + fresh["edge.crt"], ["h2"])
        load = Load(weir, (None, both))
        for files in (fresh, self.files, fresh):
            for name, content in files.items():
                (weir.folder / name).write_text(content)
            self.reload(weir)
            load.goes_on()
            with Http2Client(weir.ports[1], tls=client_tls(files["edge.crt"], ["h2"])) as client:
                self.assert_answers(client)
        self.assertEqual(load.stop(), [])
        self.assertEqual(set(load.statuses), {200})
        self.assertGreaterEqual(load.goodbyes, 3 * 3, "no connection goes on with an old certificate")

    def test_each_request_that_is_forwarded_during_a_reload_gets_an_answer(self):
        weir = self.weir()
        load = H2load(f"https://127.0.0.1:{weir.ports[1]}/", self.upstream, 100_000)
        with tempfile.TemporaryDirectory() as folder:
            fresh = make_certificate(folder)
        for name, content in fresh.items():
            (weir.folder / name).write_text(content)
        self.reload(weir)
        answered, forwarded = load.finish()
        self.assertEqual(answered, forwarded)

    def test_connections_of_a_removed_listener_end_without_losing_a_request(self):
        for secure in (False, True):
            with self.subTest(secure=secure):
                weir = self.start(Weir(self.text(doors=[secure]), self.files))
                load = Load(weir, [self.tls if secure else None], reconnects=False)
                text = self.text(doors=[secure])
                self.replace(weir, text.replace('[[listener]]\naddress = "127.0.0.1:0"', '[[listener]]\naddress = "127.0.0.2:0"'))
                self.reload(weir)
                for thread in load.threads:
                    thread.join(PATIENCE)
                self.assertEqual(load.stop(), [])
                self.assertEqual((set(load.statuses), load.goodbyes), ({200}, 3))

    def test_changed_limit_applies_to_open_connections(self):
        weir = self.weir(rules=rule("all", "1000/day", algorithm='"fixed_window"', key='["ip"]'))
        client = self.client(weir)
        self.assert_answers(client)
        self.replace(weir, self.text(rules=rule("all", "1/day", algorithm='"fixed_window"', key='["ip"]')))
        self.reload(weir)
        self.assertEqual(client.get("/").status, 429)


class Upgrade(Http2TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        adopt_orphans()

    def lineage(self, secure, **more):
        return self.start(Lineage(self.text(doors=[secure], **more), self.files))

    def test_upgrades_under_load_lose_no_request_and_keep_the_limit_exact(self):
        for secure in (False, True):
            with self.subTest(secure=secure):
                weir = self.lineage(secure, rules=rule("all", "5000/day", algorithm='"fixed_window"', key="[]"))
                load = Load(weir, [self.tls if secure else None])
                for _ in range(UPGRADES):
                    load.goes_on()
                    weir.upgrade()
                eventually(lambda: load.lost or 429 in load.statuses, "the limit is reached")  # noqa: B023
                self.assertEqual(load.stop(), [])
                self.assertEqual(load.refused, 0, "libraries for gRPC do not repeat calls that were reset")
                self.assertEqual(load.statuses.count(200), 5000)
                self.assertEqual(set(load.statuses), {200, 429})
                self.assertGreaterEqual(load.goodbyes, 3 * UPGRADES)

    def test_each_request_that_is_forwarded_during_an_upgrade_gets_an_answer(self):
        for secure, scheme in ((False, "http"), (True, "https")):
            self.upstream.exchanges.clear()
            weir = self.lineage(secure)
            load = H2load(f"{scheme}://127.0.0.1:{weir.port}/", self.upstream, 100_000)
            weir.upgrade()
            answered, forwarded = load.finish()
            self.assertEqual(answered, forwarded)

    def test_open_requests_are_finished_by_the_old_process(self):
        release = threading.Event()
        self.upstream.reply = lambda exchange: (exchange.target == "/held" and release.wait(PATIENCE),
                                                exchange.send(answer(exchange.target.encode())))
        for secure in (False, True):
            with self.subTest(secure=secure):
                release.clear()
                weir = self.lineage(secure)
                client = self.start(Http2Client(weir.port, tls=self.tls if secure else None))
                seen = len(self.upstream.exchanges)
                stream = client.open(path="/held")
                eventually(lambda: len(self.upstream.exchanges) > seen, "the request reaches the upstream")  # noqa: B023
                weir.upgrade()
                client.wait(lambda: len(client.goaways) == 2)  # noqa: B023
                self.assertEqual(client.goaways[-1], (0, 1))
                self.assert_answers(self.start(Http2Client(weir.port, tls=self.tls if secure else None)))
                release.set()
                self.assertEqual(client.read(stream).body, b"/held")
                self.assertTrue(client.closed())


if __name__ == "__main__":
    main()
