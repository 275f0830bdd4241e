#!/usr/bin/env python3
"""Clients that are slow to send a head or a body, to read a response, or to finish a handshake. weir bounds the time and the rate
of each step."""

import contextlib
import socket
import tempfile
import threading
import time

from defence_test import HALF_A_HEAD, MIB, UPLOAD
from harness import (PATIENCE, Client, TestCase, Upstream, Weir, answer, client_tls, config, eventually, main,
                     make_certificate, request_bytes, rule)


class SlowClients(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, server, **more):
        return self.start(Weir(config(self.upstream.port, server=server, **more)))

    def drip(self, client, count=10_000):
        """Sends a byte at intervals until weir ends the connection. Returns the response."""
        ended = threading.Event()

        def send():
            with contextlib.suppress(OSError):
                for _ in range(count):
                    client.send(b"x")
                    if ended.wait(0.02):
                        return

        dripping = threading.Thread(target=send, daemon=True)
        dripping.start()
        try:
            return client.read()
        finally:
            ended.set()
            dripping.join()

    def test_request_head_has_one_deadline_for_all_its_bytes(self):
        weir = self.weir('head_timeout = "500ms"')
        with weir.connect() as client:
            client.send(HALF_A_HEAD + b"X: ")
            self.assert_own_error(self.drip(client), 408)
            self.assertTrue(client.closed())
        self.await_metric(weir, 1, "weir_client_errors_total", kind="head_timeout")

    def test_bytes_that_cannot_become_a_request_head_are_rejected_at_once(self):
        weir = self.weir('head_timeout = "60s"')
        for begun in (b"GET / HTTP/1.1\nHost: a\n\n", b"GET /\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                      b"\r\n\r\nSSH-2.0-OpenSSH_9.2\r\n", HALF_A_HEAD + b"X: 1\n"):
            with self.subTest(begun), weir.connect() as client:
                client.send(begun)
                self.assert_own_error(client.read(), 400)
                self.assertTrue(client.closed())
        self.await_metric(weir, 5, "weir_client_errors_total", kind="bad_head")

    def test_request_body_below_the_minimum_rate_is_rejected(self):
        weir = self.weir('min_rate = "10KiB"\nmin_rate_grace = "300ms"')
        with weir.connect() as client:
            client.send(UPLOAD)
            response = self.drip(client)
            self.assert_own_error(response, 408)
            self.assertIn("too slowly", response.json()["message"])
            self.assertTrue(client.closed())
        self.await_metric(weir, 1, "weir_client_errors_total", kind="slow_body")
        eventually(lambda: not self.upstream.open, "the upstream connection is closed")
        self.assertTrue(all(exchange.body is None for exchange in self.upstream.exchanges))

    def test_request_body_that_a_rule_reads_has_a_minimum_rate(self):
        weir = self.weir('min_rate = "10KiB"\nmin_rate_grace = "300ms"',
                         rules=rule(match='{ body_contains = "x", max_body = "1MiB" }'))
        with weir.connect() as client:
            client.send(UPLOAD)
            self.assert_own_error(self.drip(client), 408)
        self.await_metric(weir, 1, "weir_client_errors_total", kind="slow_body")
        self.assertEqual(self.upstream.exchanges, [])

    def test_request_body_that_is_fast_enough_is_forwarded(self):
        weir = self.weir('min_rate = "100B"\nmin_rate_grace = "100ms"')
        with weir.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(20):
                client.send(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
                time.sleep(0.02)
            client.send(b"0\r\n\r\n")
            self.assertEqual(client.read().status, 200)

    def pour(self, size):
        self.upstream.reply = lambda exchange: exchange.send(answer(b"x" * size))

    def slow_reader(self, weir, buffer=4096):
        client = self.enterContext(weir.connect())
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        client.send(request_bytes("GET", "/"))
        return client

    def test_client_that_reads_below_the_minimum_rate_is_disconnected(self):
        self.pour(50 * MIB)
        weir = self.weir('min_rate = "10MiB"\nmin_rate_grace = "500ms"')
        client = self.slow_reader(weir)

        def takes_little_and_is_cut_off():
            with contextlib.suppress(ConnectionError):
                client.sock.recv(1024)
            return weir.metric("weir_client_errors_total", kind="slow_read") == 1

        eventually(takes_little_and_is_cut_off, "the slow reader is disconnected")
        eventually(lambda: not self.upstream.open, "the upstream connection is closed")

    def test_client_that_reads_slowly_is_not_disconnected_by_write_timeout(self):
        self.pour(12 * MIB)
        weir = self.weir('write_timeout = "500ms"\nmin_rate = "0B"')
        client = self.slow_reader(weir, 256 << 10)
        got = 0
        for _ in range(20):  # the kernel's buffers are large, and accept more data only after much was read
            got += len(client.sock.recv(64_000))
            time.sleep(0.1)
        while piece := client.sock.recv(MIB):
            got += len(piece)
            if got > 12 * MIB:
                break
        self.assertGreater(got, 12 * MIB)

    def test_client_that_sends_its_body_while_it_reads_slowly_is_not_disconnected(self):
        def pour_and_read(exchange):
            pouring = threading.Thread(target=exchange.send, args=(answer(b"x" * (12 * MIB)),), daemon=True)
            pouring.start()
            exchange.read_body()
            pouring.join()

        self.upstream.reply = pour_and_read
        weir = self.weir('min_rate = "500B"\nmin_rate_grace = "500ms"')
        client = self.enterContext(weir.connect())
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 10)
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        got = 0
        for _ in range(25):  # weir checks the reading rate while it waits for the client's body
            client.send(b"3e8\r\n" + b"y" * 1000 + b"\r\n")
            got += len(client.sock.recv(64_000))
            time.sleep(0.1)
        client.send(b"0\r\n\r\n")
        while got < 12 * MIB and (piece := client.sock.recv(MIB)):
            got += len(piece)
        self.assertGreater(got, 12 * MIB)
        eventually(lambda: self.upstream.exchanges[0].body == b"y" * 25_000, "the upstream has the complete body")

    def test_slow_reading_by_the_upstream_is_not_attributed_to_the_client(self):
        taking = threading.Event()

        def pour_and_read(exchange):
            whole = answer(b"x" * (12 * MIB))
            pouring = threading.Thread(target=exchange.send, args=(whole[:-1],), daemon=True)
            pouring.start()
            taking.wait(PATIENCE)
            exchange.read_body()
            pouring.join()
            exchange.send(whole[-1:])  # the server sends this byte last, because the end of the response ends the upload

        self.upstream.reply = pour_and_read
        weir = self.weir('min_rate = "500B"\nmin_rate_grace = "500ms"')
        client = self.enterContext(weir.connect())
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 10)
        body = request_bytes("POST", "/", body=b"y" * (12 * MIB))
        sending = threading.Thread(target=client.send, args=(body,), daemon=True)
        sending.start()
        got = 0
        for _ in range(20):
            got += len(client.sock.recv(64_000))
            time.sleep(0.1)
        taking.set()
        while got < 12 * MIB and (piece := client.sock.recv(MIB)):
            got += len(piece)
        self.assertGreater(got, 12 * MIB)
        eventually(lambda: len(self.upstream.exchanges[0].body or b"") == 12 * MIB, "the upstream has the complete body")

    def test_client_that_stops_reading_is_disconnected(self):
        self.pour(50 * MIB)
        weir = self.weir('write_timeout = "300ms"\nmin_rate = "0B"')
        self.slow_reader(weir)  # a client that never reads
        self.await_metric(weir, 1, "weir_client_errors_total", kind="write_timeout")

    def test_tls_handshake_has_a_deadline(self):
        files = make_certificate(self.enterContext(tempfile.TemporaryDirectory()))
        tls = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }'
        weir = self.start(Weir(config(self.upstream.port, server='head_timeout = "300ms"', listener=tls), files))
        for begun in (b"", b"\x16\x03\x01\x02\x00\x01\x00"):
            with socket.create_connection(("127.0.0.1", weir.port), PATIENCE) as silent:
                silent.sendall(begun)
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(silent.recv(100), b"")
        self.await_metric(weir, 2, "weir_client_errors_total", kind="handshake")
        with Client(weir.port, client_tls(files["edge.crt"])) as client:
            self.assertEqual(client.get("/").status, 200)


if __name__ == "__main__":
    main()
