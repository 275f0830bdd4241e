#!/usr/bin/env python3
"""HTTP/2 connections whose client reads slowly or not at all. Each wait of weir ends, and a client that reads loses no answer."""

import contextlib
import json
import signal
import socket
import tempfile
import threading
import time
import unittest

from harness import PATIENCE, SANITIZED, Weir, answer, eventually, main, rss_kib
from http2_client import Http2TestCase
from proxy_test import MIB

NO_ERROR = 0


def fill(client, sender):
    """Requests a long answer, and waits until the server can send no more of it. The client reads nothing."""
    client.open(path="/large")
    count = -1
    while count != sender.count or count == 0:
        count = sender.count
        threading.Event().wait(0.5)


def read_away(sock):
    """Reads until the connection ends, and sends nothing."""
    with contextlib.suppress(OSError):
        while sock.recv(1 << 16):
            pass


class Pouring:
    """A reply that sends an endless body for /large and counts the sent pieces. For other paths it waits for `release`, and then
    calls `small`."""

    def __init__(self, small=None):
        self.count, self.waiting, self.small = 0, [], small
        self.release, self.stopped, self.answered = threading.Event(), threading.Event(), threading.Semaphore(0)

    def __call__(self, exchange):
        if exchange.target != "/large":
            self.waiting.append(exchange)
            self.release.wait(PATIENCE)
            self.small(exchange)
            return self.answered.release()
        exchange.send(answer(b"", headers=f"Content-Length: {1000 * MIB}\r\n", length=False))
        try:
            for _ in range(10_000):
                exchange.send(b"x" * (MIB // 10))
                self.count += 1
        except OSError:
            self.stopped.set()
        return None


class DeafClients(Http2TestCase):
    def setUp(self):
        super().setUp()
        self.upstream.reply = answer(b"x" * (8 << 10))

    def deaf(self, weir):
        """Returns a client that reads nothing. It sends 3000 requests, as fast as weir can serve them."""
        client = self.client(weir)
        client.sock.settimeout(0.3)
        client.allow_streams(100_000)
        with contextlib.suppress(TimeoutError, ConnectionError):
            for _ in range(3000):
                client.open()
                time.sleep(0.0005)
        return client

    def test_client_that_reads_nothing_does_not_delay_the_end_of_the_process(self):
        weir = self.start(Weir(self.text(server='write_timeout = "60s"').replace('drain = "5s"', 'drain = "1500ms"'), self.files))
        self.deaf(weir)
        weir.signal(signal.SIGTERM)
        self.assertEqual(weir.wait(), 0)

    def test_client_that_reads_nothing_is_disconnected_after_write_timeout(self):
        weir = self.weir(server='write_timeout = "1s"\nidle_timeout = "300ms"')
        self.deaf(weir)
        self.await_metric(weir, 0, "weir_connections", protocol="HTTP/2")
        self.await_metric(weir, 0, "weir_http2_streams")


class FullOutput(Http2TestCase):
    def test_answers_after_interim_answers_arrive_completely(self):
        self.upstream.reply = b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n" + answer(b"y" * 90_000)
        client = self.client(self.weir())
        for _ in range(40):
            streams = [client.open() for _ in range(20)]
            self.assertEqual({client.read(stream).size for stream in streams}, {90_000})

    def assert_arrives(self, small, expected, path="/small", fields=()):
        self.upstream.reply = sender = Pouring(small)
        weir = self.weir()
        client = self.client(weir)
        streams = [client.open("POST", path, fields, end=False) for _ in range(5)]
        eventually(lambda: len(sender.waiting) == 5, "the requests reach the server")
        fill(client, sender)
        sender.release.set()
        for _ in streams:
            self.assertTrue(sender.answered.acquire(timeout=PATIENCE), "the server has answered")
        self.assertEqual([weir.get("/done").status for _ in range(20)], [200] * 20)
        for stream in streams:
            response = client.read(stream)
            self.assertEqual((response.status, response.ended, response["grpc-status"]), (*expected[:1], True, *expected[1:]))

    def test_empty_answer_that_refuses_an_upload_arrives_even_if_the_client_reads_late(self):
        for status in ("403 Forbidden", "429 Too Many Requests"):
            with self.subTest(status=status):
                def small(exchange):
                    exchange.send(answer(b"", "200 OK" if exchange.target == "/done" else status))  # noqa: B023

                self.assert_arrives(small, (int(status[:3]), None))

    def test_refusal_of_an_unfinished_grpc_call_arrives_even_if_the_client_reads_late(self):
        self.assert_arrives(
            lambda exchange: exchange.close() if exchange.target != "/done" else exchange.send(answer()), (200, "14"),
            fields=[("content-type", "application/grpc"), ("te", "trailers")])


class Leaving(Http2TestCase):
    def test_stream_that_the_client_resets_without_an_error_ends_the_connection_to_the_server(self):
        self.upstream.reply = sender = Pouring()
        weir = self.weir(server='write_timeout = "60s"')
        client = self.client(weir)
        stream = client.open(path="/large")
        client.wait(lambda: client.answers[stream].size > MIB)
        client.reset(stream, NO_ERROR)
        drain = threading.Thread(target=read_away, args=(client.sock,), daemon=True)
        drain.start()
        self.assertTrue(sender.stopped.wait(PATIENCE), "weir closes the connection to the server")
        self.await_metric(weir, 1, "weir_client_errors_total", kind="left")
        client.sock.shutdown(socket.SHUT_RDWR)
        drain.join(PATIENCE)


class Slow(Http2TestCase):
    @unittest.skipIf(SANITIZED, "a sanitizer keeps freed memory")
    def test_an_upload_to_a_slow_server_takes_bounded_memory(self):
        """The server reads slowly and steadily, so the window of the stream is never empty for long."""
        self.upstream.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)
        self.upstream.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)

        def slow(exchange):
            while exchange.wire.sock.recv(4096):
                time.sleep(0.0001)

        self.upstream.reply = slow
        weir = self.weir('stream_window = "1MiB"', server='max_body = "1GiB"')
        client = self.client(weir)
        stream = client.open("POST", end=False)
        client.send_body(stream, b"x" * (4 * MIB), end=False)
        before = rss_kib(weir.pid)
        for _ in range(100):
            client.send_body(stream, b"x" * MIB, end=False)
        grown = rss_kib(weir.pid) - before
        print(f"\n100 MiB to a slow server: {grown} KiB more resident", flush=True)
        self.assertLess(grown, 8 << 10, "KiB")
        client.reset(stream)

    def read_slowly(self, weir):
        """Reads a long answer slowly but steadily for longer than the timeouts of `weir`. Afterwards reads the rest at once."""
        self.upstream.reply = lambda exchange: exchange.send(answer(b"x" * 30 * MIB))
        client = self.client(weir)
        stream = client.open()
        end = time.monotonic() + 6
        while time.monotonic() < end:
            self.assertTrue(client.receive(), "the connection goes on")
            time.sleep(0.1)
        self.assertEqual(client.read(stream).size, 30 * MIB)

    def test_client_that_reads_slowly_is_not_disconnected_for_a_late_ping_answer(self):
        """The PING waits behind the octets in the sockets' buffers, so the client cannot answer it in time."""
        self.read_slowly(self.weir('ping = "2s"'))

    def test_client_that_reads_slowly_is_not_disconnected_by_write_timeout(self):
        self.read_slowly(self.weir(server='write_timeout = "2s"'))


class Rejected(Http2TestCase):
    def heads(self, method):
        for path in ("/a", "http://shop.example/a"):
            yield path, ((":method", method), (":scheme", "foo"), (":path", path), (":authority", "shop.example"))

    def test_request_that_http_1_cannot_carry_gets_400_and_is_logged(self):
        with tempfile.NamedTemporaryFile() as log:
            weir = self.start(Weir(self.text().replace('access = "off"', f'access = "{log.name}"'), self.files))
            client = self.client(weir)
            for _, pseudo in self.heads("GET"):
                self.assert_own_error(client.read(client.open(pseudo=pseudo)), 400)

            def lines():
                with open(log.name) as file:
                    told = [json.loads(line) for line in file.read().splitlines()]
                return told if len(told) == 2 else None

            told = eventually(lines, "two lines are written")
        self.assertEqual([(line["status"], line["protocol"], line["method"], line["host"], line["target"]) for line in told],
                         [(400, "HTTP/2", "GET", "shop.example", path) for path, _ in self.heads("GET")])
        self.assertEqual(self.upstream.exchanges, [])
        self.assert_answers(client)

    def test_malformed_grpc_request_gets_a_grpc_status(self):
        client = self.client(self.weir())
        for _, pseudo in self.heads("POST"):
            response = client.read(client.open(fields=[("content-type", "application/grpc+proto")], pseudo=pseudo))
            self.assertEqual((response.status, response["grpc-status"], response.body), (200, "3", b""))
            self.assertEqual(response["content-type"], "application/grpc")


if __name__ == "__main__":
    main()
