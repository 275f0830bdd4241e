#!/usr/bin/env python3
"""Clients that close their sending side after a request and still read (half-close), and clients that leave."""

import socket
import tempfile
import threading

from harness import PATIENCE, Client, TestCase, Upstream, Weir, answer, client_tls, config, eventually, main, make_certificate, rule
from wire import Wire, read_response

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
QUEUE = rule("queue", "10/s", algorithm='"leaky_bucket"', queue=20, key="[]")


class HalfClose(TestCase):
    def slow(self, upstream="", **given):
        """Starts a weir whose upstream responds when the test allows it."""
        self.may_answer, self.asked = threading.Event(), threading.Semaphore(0)

        def reply(exchange):
            exchange.read_body()
            self.asked.release()
            self.may_answer.wait(PATIENCE)
            exchange.send(answer(b"late"))

        port = self.start(Upstream(reply)).port
        text = config(port, **given)
        return self.start(Weir(text.replace(f'servers = ["127.0.0.1:{port}"]', upstream.replace("SERVER", f"127.0.0.1:{port}")) if upstream else text))

    def half_close(self, weir, data=GET, **options):
        client = self.start(Client(weir.port, **options))
        client.send(data)
        socket.socket.shutdown(client.sock, socket.SHUT_WR)  # Python's own method would close both directions of TLS
        return client

    def some_ticks_pass(self, weir):
        """Waits for ticks of weir's watchdog, at which weir notices clients that have left. The test resets another connection
        and waits until weir has noticed the reset."""
        left = weir.metric("weir_client_errors_total", kind="left")
        with Client(weir.port) as other:
            other.send(GET)
            self.assertTrue(self.asked.acquire(timeout=PATIENCE))
            other.leave()
            eventually(lambda: weir.metric("weir_client_errors_total", kind="left") > left, "weir has noticed the reset")

    def test_half_closed_client_gets_its_response(self):
        weir = self.slow()
        for data in (GET, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
                     b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                     b"GET / HTTP/1.0\r\nHost: a\r\n\r\n"):
            self.may_answer.clear()
            client = self.half_close(weir, data)
            self.assertTrue(self.asked.acquire(timeout=PATIENCE))
            self.some_ticks_pass(weir)
            self.may_answer.set()
            self.assertEqual(client.read().body, b"late", data)
            self.assertTrue(client.closed())

    def test_all_requests_sent_before_the_half_close_are_answered(self):
        weir = self.slow()
        self.may_answer.set()
        client = self.half_close(weir, 3 * GET)
        self.assertEqual([client.read().body for _ in range(3)], [b"late"] * 3)
        self.assertTrue(client.closed())

    def test_request_of_a_half_closed_client_that_waits_in_a_queue_is_answered(self):
        weir = self.slow(rules=QUEUE)
        self.may_answer.set()
        clients = [self.half_close(weir) for _ in range(4)]
        self.assertEqual([client.read().status for client in clients], [200] * 4)
        self.assertEqual(weir.metric("weir_client_errors_total"), 0)

    def test_request_of_a_half_closed_client_that_waits_for_a_free_server_is_answered(self):
        weir = self.slow(upstream='servers = [{ address = "SERVER", max_in_flight = 1 }]\nmax_wait = "15s"')
        clients = [self.half_close(weir) for _ in range(3)]
        self.assertTrue(self.asked.acquire(timeout=PATIENCE))
        self.may_answer.set()
        self.assertEqual([client.read().status for client in clients], [200] * 3)

    def test_incomplete_request_of_a_half_closed_client_gets_400(self):
        weir = self.slow(rules=rule("words", "1000/s", match='{ path = "/words", body_contains = ["x"] }'))
        self.may_answer.set()
        for path in (b"/words", b"/"):
            client = self.half_close(weir, b"POST " + path + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
            self.assert_own_error(client.read(), 400)

    def test_connection_reset_ends_the_request(self):
        weir = self.slow()
        self.addCleanup(self.may_answer.set)
        client = Client(weir.port)
        client.send(GET)
        self.assertTrue(self.asked.acquire(timeout=PATIENCE))
        client.leave()
        self.await_metric(weir, 1, "weir_client_errors_total", kind="left")

    def test_close_of_a_unix_socket_ends_the_request_and_half_close_does_not(self):
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-half-"))
        weir = self.slow(listener=f'[[ listener ]]\naddress = "unix:{folder}/s"')
        self.addCleanup(self.may_answer.set)
        stays, leaves = (socket.socket(socket.AF_UNIX) for _ in range(2))
        for sock in (stays, leaves):
            sock.settimeout(PATIENCE)
            sock.connect(f"{folder}/s")
            sock.sendall(GET)
            self.assertTrue(self.asked.acquire(timeout=PATIENCE))
        stays.shutdown(socket.SHUT_WR)
        leaves.close()
        self.await_metric(weir, 1, "weir_client_errors_total", kind="left")
        self.may_answer.set()
        with stays:
            self.assertEqual(read_response(Wire(stays)).body, b"late")

    def test_half_closed_tls_client_gets_its_response(self):
        with tempfile.TemporaryDirectory() as folder:
            files = make_certificate(folder)
        upstream = self.start(Upstream(answer(b"late")))
        tls = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }'
        weir = self.start(Weir(config(upstream.port, listener=tls, rules=QUEUE), files))
        clients = [self.half_close(weir, tls=client_tls(files["edge.crt"])) for _ in range(3)]
        self.assertEqual([client.read().body for client in clients], [b"late"] * 3)

    def test_half_close_ends_the_request_if_configured(self):
        weir = self.slow(server='half_close = "end"')
        self.addCleanup(self.may_answer.set)
        client = self.half_close(weir)
        self.assertTrue(self.asked.acquire(timeout=PATIENCE))
        self.await_metric(weir, 1, "weir_client_errors_total", kind="left")
        self.assertEqual(client.wire.read_to_end(), b"")


if __name__ == "__main__":
    main()
