#!/usr/bin/env python3
"""Many requests on one HTTP/2 connection: limits and queues per request, cancelled requests, slow streams and silent clients."""

import contextlib
import threading
import time
import unittest

from harness import PATIENCE, SANITIZED, answer, eventually, main, rss_kib, rule
from http2_client import HEADERS, REFUSED, RST_STREAM, Attacker, Http2Client, Http2TestCase, frame, head_block
from proxy_test import MIB


class Held:
    """A reply that waits for `release`, and counts the requests whose connection weir closes before `release`."""

    def __init__(self):
        self.release, self.closed, self.paths = threading.Event(), threading.Semaphore(0), []

    def __call__(self, exchange):
        self.paths.append(exchange.target)
        if exchange.target.startswith("/held"):
            threading.Thread(target=self.watch, args=(exchange,), daemon=True).start()
            self.release.wait(PATIENCE)
        exchange.send(answer(exchange.target.encode(), headers="Connection: close\r\n"))

    def watch(self, exchange):
        exchange.wait_for_close()
        self.closed.release()


class Limits(Http2TestCase):
    def test_refusal_of_a_stream_does_not_affect_other_streams(self):
        weir = self.weir(rules=rule("few", "2/day", algorithm='"fixed_window"', key='["ip"]', match='{ path = "/few" }'))
        client = self.client(weir)
        streams = [client.open(path="/few" if number % 2 else "/free") for number in range(8)]
        answers = [client.read(stream) for stream in streams]
        self.assertEqual(sorted(each.status for each in answers), [200] * 6 + [429] * 2)
        self.assertEqual([each.status for each in answers[::2]], [200] * 4)
        refused = next(each for each in answers if each.status == 429)
        self.assert_own_error(refused, 429)
        self.assertEqual((refused["x-ratelimit-limit"], refused["x-ratelimit-remaining"]), ("2", "0"))
        self.assertGreater(int(refused["retry-after"]), 0)
        self.assertNotIn("connection", refused)

    def test_limit_is_exact_for_concurrent_streams_of_a_connection(self):
        weir = self.weir(rules=rule("forty", "40/day", algorithm='"fixed_window"', key='["ip"]'))
        client = self.client(weir, secure=True)
        streams = [client.open() for _ in range(100)]
        statuses = [client.read(stream).status for stream in streams]
        self.assertEqual((statuses.count(200), statuses.count(429)), (40, 60))
        self.assertEqual(len(self.upstream.exchanges), 40)

    def test_streams_above_max_streams_are_refused(self):
        """Before the client knows the maximum, weir refuses only the streams above it. Afterwards weir ends the connection."""
        self.upstream.reply = held = Held()
        client = self.client(self.weir("max_streams = 5"))
        streams = [client.open(path="/held") for _ in range(8)]
        self.assertEqual([client.read(stream).error for stream in streams[5:]], [REFUSED] * 3)
        eventually(lambda: len(held.paths) == 5, "five requests reach the upstream")
        self.assertEqual(client.h2.remote_settings.max_concurrent_streams, 5)
        held.release.set()
        self.assertEqual([client.read(stream).status for stream in streams[:5]], [200] * 5)
        self.assertEqual(held.paths, ["/held"] * 5)
        client.allow_streams(1000)
        held.release.clear()
        streams = [client.open(path="/held") for _ in range(6)]
        self.assertTrue(client.closed())
        self.assertEqual([error for error, _ in client.goaways], [1])
        self.assertEqual(client.answers[streams[5]].status, None)

    def test_queued_stream_delays_no_other_stream(self):
        weir = self.weir(rules=rule("queue", "1/hour", algorithm='"leaky_bucket"', key="[]", queue=10, match='{ path = "/queue" }'))
        client = self.client(weir)
        self.assertEqual(client.get("/queue").status, 200)
        waiting = [client.open(path="/queue") for _ in range(3)]
        self.await_metric(weir, 3, "weir_queue_depth")
        self.assertEqual([client.get("/").status for _ in range(20)], [200] * 20)
        self.assertEqual(client.request("POST", body=b"x" * 200_000).status, 200)
        self.assertEqual([client.answers[stream].status for stream in waiting], [None] * 3)
        for stream in waiting:
            client.reset(stream)
        self.await_metric(weir, 0, "weir_queue_depth")

    def test_each_stream_counts_as_a_concurrent_request(self):
        self.upstream.reply = held = Held()
        weir = self.weir(rules='[[rule]]\nname = "two"\nalgorithm = "concurrency"\nlimit = 2\nkey = ["ip"]\n')
        client = self.client(weir)
        streams = [client.open(path="/held") for _ in range(2)]
        eventually(lambda: len(held.paths) == 2, "two requests reach the upstream")
        self.assertEqual(client.get("/held").status, 429)
        held.release.set()
        self.assertEqual([client.read(stream).status for stream in streams], [200] * 2)
        eventually(lambda: client.get("/").status == 200, "the permits are free")


class Cancelled(Http2TestCase):
    RULES = rule("three", "3/day", algorithm='"fixed_window"', key="[]", match='{ path = "/held*" }') + \
        '[[rule]]\nname = "one"\nalgorithm = "concurrency"\nlimit = 1\nkey = []\nmatch = { path = "/held*" }\n'

    def setUp(self):
        super().setUp()
        self.upstream.reply = self.held = Held()

    def under_way(self, client, count):
        stream = client.open(path="/held")
        eventually(lambda: len(self.held.paths) == count, "the request reaches the upstream")
        return stream

    def test_stream_that_is_reset_releases_its_permit_and_stays_charged(self):
        weir = self.weir(rules=self.RULES)
        client = self.client(weir)
        for count in (1, 2, 3):
            stream = self.under_way(client, count)
            client.reset(stream)
            self.assertTrue(self.held.closed.acquire(timeout=PATIENCE), "the server's connection is closed")
            self.await_metric(weir, 0, "weir_http2_streams")
        refused = client.get("/held")
        self.assertEqual((refused.status, refused["x-ratelimit-limit"]), (429, "3"))
        self.assertEqual(client.get("/free").status, 200)
        self.await_metric(weir, 3, "weir_http2_resets_total", by="client")

    def test_repeated_resets_of_one_stream_are_counted_once(self):
        """Some clients cancel an answer and then send one more reset for each frame of the answer that still arrives."""
        weir = self.weir()
        client = self.client(weir)
        client.reset(self.under_way(client, 1))
        client.send(frame(RST_STREAM, 0, 1, bytes(4)) * 200)
        self.assertEqual(client.get("/free").status, 200)
        self.assertEqual(client.goaways, [])
        self.await_metric(weir, 1, "weir_http2_resets_total", by="client")

    def test_the_end_of_a_connection_cancels_all_its_streams(self):
        weir = self.weir()
        with Http2Client(weir.port) as client:
            for _ in range(20):
                client.open(path="/held")
            eventually(lambda: len(self.held.paths) == 20, "all requests reach the upstream")
        for _ in range(20):
            self.assertTrue(self.held.closed.acquire(timeout=PATIENCE), "each connection to the server is closed")
        self.await_metric(weir, 0, "weir_http2_streams")

    def test_reset_during_an_upload_ends_the_connection_to_the_server(self):
        ended = threading.Semaphore(0)

        def read(exchange):
            try:
                exchange.read_body()
            except (EOFError, ConnectionError):
                ended.release()
                raise

        self.upstream.reply = read
        client = self.client(self.weir())
        for count, fields in ((1, []), (2, [("content-length", "100000")])):
            stream = client.open("POST", fields=fields, end=False)
            client.send_body(stream, b"x" * 50_000, end=False)
            eventually(lambda: len(self.upstream.exchanges) == count, "the request reaches the upstream")  # noqa: B023
            client.reset(stream)
            self.assertTrue(ended.acquire(timeout=PATIENCE), "the server sees an incomplete body")
        self.upstream.reply = answer()
        self.assert_answers(client)

    def test_reset_during_an_answer_ends_the_connection_to_the_server(self):
        stopped = threading.Event()

        def pour(exchange):
            exchange.send(answer(b"", headers=f"Content-Length: {1000 * MIB}\r\n", length=False))
            try:
                for _ in range(1000):
                    exchange.send(b"x" * MIB)
            except OSError:
                stopped.set()

        self.upstream.reply = pour
        client = self.client(self.weir())
        stream = client.open()
        client.wait(lambda: client.answers[stream].size > MIB)
        client.reset(stream)
        self.assertTrue(stopped.wait(PATIENCE))
        self.upstream.reply = answer()
        self.assert_answers(client)


class SlowStreams(Http2TestCase):
    def pour(self, exchange):
        if exchange.target != "/large":
            return exchange.send(answer(b"y" * 100_000))
        exchange.send(answer(b"", headers=f"Content-Length: {100 * MIB}\r\n", length=False))
        with contextlib.suppress(OSError):
            for _ in range(100):
                exchange.send(b"x" * MIB)
                self.poured += 1
        return None

    def setUp(self):
        super().setUp()
        self.poured, self.upstream.reply = 0, self.pour

    def test_stream_whose_window_is_empty_delays_no_other_stream(self):
        for secure in (False, True):
            client = self.client(self.weir(), secure, window=0)
            stuck = [client.open(path="/large") for _ in range(20)]
            client.wait(lambda: all(client.answers[stream].status for stream in stuck))  # noqa: B023
            for _ in range(5):
                other = client.open()
                client.wait(lambda: client.answers[other].status)  # noqa: B023
                client.permit(200_000, other)
                client.permit(100_000)
                response = client.read(other)
                self.assertEqual((response.ended, response.size), (True, 100_000))
            self.assertEqual({client.answers[stream].size for stream in stuck}, {0})

    @unittest.skipIf(SANITIZED, "a sanitizer keeps freed memory")
    def test_answers_on_streams_whose_window_is_empty_take_bounded_memory(self):
        weir = self.weir()
        with Http2Client(weir.port) as client:
            self.assertEqual(client.request("POST", body=b"x" * 200_000).status, 200)
        before = rss_kib(weir.pid)
        clients = [self.client(weir, window=0) for _ in range(5)]
        streams = [[client.open(path="/large") for _ in range(20)] for client in clients]
        for client, opened in zip(clients, streams):
            client.wait(lambda: all(client.answers[stream].status for stream in opened))  # noqa: B023
        count = -1
        while count != self.poured:  # until the servers have sent nothing more for a while
            count = self.poured
            threading.Event().wait(0.5)
        grown = rss_kib(weir.pid) - before
        print(f"\n100 answers of 100 MiB without window: {grown} KiB more resident, {self.poured} MiB left the server", flush=True)
        self.assertLess(grown, 100 * 160, "KiB: a bounded part of each answer")

    @unittest.skipIf(SANITIZED, "a sanitizer keeps freed memory")
    def test_uploads_that_the_server_does_not_read_take_bounded_memory(self):
        release = threading.Event()
        self.upstream.reply = lambda exchange: (release.wait(2 * PATIENCE), exchange.read_body(), exchange.send(answer()))
        weir = self.weir()
        client = self.client(weir)
        before = rss_kib(weir.pid)
        sent = 0
        streams = [client.open("POST", end=False) for _ in range(50)]
        eventually(lambda: len(self.upstream.exchanges) == 50, "all requests reach the upstream")
        idle = time.monotonic() + 1
        while time.monotonic() < idle:  # until no window has opened for a while
            for stream in streams:
                size = min(client.h2.local_flow_control_window(stream), 16_384)
                if size:
                    client.h2.send_data(stream, b"x" * size)
                    client.push()
                    sent, idle = sent + size, time.monotonic() + 1
            with client.patience(0.1):
                client.receive()
        grown = rss_kib(weir.pid) - before
        print(f"\n50 uploads that the server does not read: {grown} KiB more resident, {sent >> 10} KiB sent", flush=True)
        self.assertLess(grown, 16 << 10)
        release.set()
        for stream in streams:
            client.send_body(stream, b"")
        self.assertEqual({client.read(stream).status for stream in streams}, {200})

    def test_slow_streams_share_a_connection_fairly(self):
        """No stream ends long before another stream begins."""
        size = MIB
        self.upstream.reply = lambda exchange: exchange.send(answer(b"z" * size))
        client = self.client(self.weir(), window=0)
        streams = [client.open() for _ in range(8)]
        client.wait(lambda: all(client.answers[stream].status for stream in streams))
        for stream in streams:
            client.permit(size, stream)
        client.permit(8 * size - 65_535)
        first = {}
        while len(first) < 8 and client.receive():
            for stream in streams:
                if client.answers[stream].size >= size // 2:
                    first.setdefault(stream, min(client.answers[each].size for each in streams))
        self.assertGreater(min(first.values()), size // 16, "the least that any stream had when one had a half")
        for stream in streams:
            self.assertEqual(client.read(stream).size, size)


class SilentClients(Http2TestCase):
    def test_idle_connection_gets_a_goaway_and_is_closed(self):
        weir = self.weir(server='idle_timeout = "300ms"')
        for secure in (False, True):
            client = self.client(weir, secure)
            self.assert_answers(client)
            self.assertTrue(client.closed())
            self.assertEqual(client.goaways, [(0, 1)])
        self.await_metric(weir, 2, "weir_http2_goaways_total", reason="idle")

    def test_a_connection_with_an_open_request_is_not_idle(self):
        self.upstream.reply = held = Held()
        weir = self.weir(server='idle_timeout = "100ms"')
        client, idle = self.client(weir), self.client(weir)
        stream = client.open(path="/held")
        self.assert_answers(idle)
        self.assertTrue(idle.closed())
        held.release.set()
        self.assertEqual(client.read(stream).status, 200)

    def test_client_that_does_not_answer_a_ping_is_disconnected(self):
        self.upstream.reply = held = Held()
        weir = self.weir('ping = "200ms"')
        client, lively = self.client(weir), self.client(weir)
        client.pongs = False
        client.open(path="/held")
        other = lively.open(path="/held")
        watcher = threading.Thread(target=lambda: lively.read(other), daemon=True)
        watcher.start()
        self.assertTrue(client.closed())
        self.assertTrue(held.closed.acquire(timeout=PATIENCE), "its request is abandoned")
        self.await_metric(weir, 1, "weir_http2_goaways_total", reason="silent")
        held.release.set()
        watcher.join(PATIENCE)
        self.assertEqual(lively.answers[other].status, 200)

    def test_client_that_reads_nothing_is_disconnected(self):
        """The client's windows are open, but the octets stay in the sockets' buffers."""
        self.upstream.reply = lambda exchange: exchange.send(answer(b"x" * 30 * MIB))
        weir = self.weir(server='write_timeout = "500ms"')
        client = self.client(weir)
        client.open()
        self.await_metric(weir, 1, "weir_client_errors_total", kind="write_timeout")
        self.await_metric(weir, 0, "weir_connections", protocol="HTTP/2")

    def test_client_that_sends_an_incomplete_preface_or_no_request_is_disconnected(self):
        weir = self.weir(server='head_timeout = "300ms"\nidle_timeout = "300ms"')
        for data in (b"PRI * HTTP/2.0\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0"):
            with self.subTest(data=data):
                client = self.enterContext(weir.connect())
                client.send(data)
                client.wire.read_to_end()

    def test_client_that_sends_an_incomplete_head_is_disconnected(self):
        weir = self.weir(server='idle_timeout = "300ms"')
        attacker = self.start(Attacker(weir.port))
        attacker.send(frame(HEADERS, 0, 1, head_block()[:3]))
        self.assertTrue(attacker.wait(lambda: attacker.ended))

    def test_request_whose_body_does_not_arrive_gets_408(self):
        client = self.client(self.weir(server='body_timeout = "300ms"'))
        stream = client.open("POST", end=False)
        self.assert_answers(client)
        self.assert_own_error(client.read(stream), 408)
        self.assert_answers(client)


if __name__ == "__main__":
    main()
