#!/usr/bin/env python3
"""weir's responses to errors of the request, the client or the upstream."""

import contextlib
import socket

from harness import (Client, TestCase, Upstream, Weir, answer, chunked, closed_port, config, eventually, exchange_raw, main,
                     request_bytes)

MALFORMED = {
    "no version": b"GET /\r\n\r\n",
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "two blanks": b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "blank before colon": b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n",
    "folded": b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
    "NUL": b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
    "bare CR": b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
    "CL and TE": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "signed length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
    "vast length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551621\r\n\r\nabcde",
    "TE not chunked": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
    "TE obscured": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\nabc",
    "TE twice": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


class Errors(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, **more):
        return self.start(Weir(config(self.upstream.port, **more)))

    def test_malformed_heads_are_rejected_and_never_forwarded(self):
        weir = self.weir()
        for name, head in MALFORMED.items():
            with self.subTest(name), weir.connect() as client:
                client.send(head + request_bytes("GET", "/smuggled"))
                response = client.read()
                self.assertIn(response.status, (400, 501), name)
                self.assertLessEqual({"error", "message"}, response.json().keys())
                self.assertTrue(client.closed(), "bytes after a rejected request are not read")
        self.assertEqual(self.upstream.exchanges, [])

    def test_request_body_with_invalid_chunks_is_never_forwarded_as_complete(self):
        weir = self.weir()
        for broken in (b"zz\r\nabc\r\n0\r\n\r\n", b"3\r\nabcd\r\n0\r\n\r\n", b"fffffffffffffffff\r\nabc"):
            with self.subTest(broken), weir.connect() as client:
                client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + broken)
                self.assertIn(client.read().status, (400, 502))
        self.assertTrue(all(exchange.body is None for exchange in self.upstream.exchanges))

    def test_truncated_request_body_is_never_forwarded_as_complete(self):
        weir = self.weir()
        with weir.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nonly this")
            client.sock.shutdown(socket.SHUT_WR)
            with contextlib.suppress(EOFError, ConnectionError):
                self.assertGreaterEqual(client.read().status, 400)
        eventually(lambda: not self.upstream.open, "the upstream connection is closed")
        self.assertTrue(all(exchange.body is None for exchange in self.upstream.exchanges))

    def test_request_without_a_matching_route_gets_404(self):
        weir = self.weir(routes='[[route]]\nmatch = { path = "/api/*" }\nupstream = "api"')
        self.assert_own_error(weir.get("/elsewhere"), 404)
        self.assertEqual(weir.get("/api/x").status, 200)

    def test_request_head_that_never_ends_gets_408(self):
        with self.weir(server='head_timeout = "300ms"').connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost:")
            self.assert_own_error(client.read(), 408)
            self.assertTrue(client.closed())

    def test_request_body_that_stops_arriving_gets_408(self):
        with self.weir(server='body_timeout = "300ms"').connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
            self.assert_own_error(client.read(), 408)

    def test_idle_connection_is_closed_without_a_response(self):
        with self.weir(server='idle_timeout = "300ms"').connect() as client:
            self.assertEqual(client.get("/").status, 200)
            self.assertTrue(client.closed())

    def test_request_body_that_is_too_large_gets_413_by_length_and_by_chunks(self):
        weir = self.weir(server='max_body = "1KiB"')
        self.assert_own_error(exchange_raw(weir.port, request_bytes("POST", "/", body=b"x" * 1025)), 413)
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assert_own_error(exchange_raw(weir.port, head + chunked(b"x" * 5000)), 413)
        self.assertEqual(exchange_raw(weir.port, request_bytes("POST", "/", body=b"x" * 1024)).status, 200)

    def test_request_head_that_is_too_large_gets_431(self):
        weir = self.weir()
        self.assert_own_error(exchange_raw(weir.port, request_bytes("GET", "/", {"X-Large": "x" * 20_000})), 431)
        self.assertEqual(exchange_raw(weir.port, request_bytes("GET", "/" + "x" * 8000)).status, 200)

    def test_unreachable_upstream_causes_502(self):
        weir = self.start(Weir(config(closed_port())))
        with weir.connect() as client:
            self.assert_own_error(client.get("/"), 502)
            self.assert_own_error(client.get("/"), 502)

    def test_response_that_is_not_http_causes_502(self):
        weir = self.weir()
        for reply in (b"nonsense\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                      b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"HTTP/1.1 200 O"):
            with self.subTest(reply):
                self.upstream.reply = lambda exchange, reply=reply: (exchange.send(reply), exchange.close())
                self.assert_own_error(weir.get("/"), 502)

    def test_upstream_that_does_not_respond_causes_504(self):
        weir = self.weir(upstream='timeouts = { response = "300ms" }')
        self.upstream.reply = lambda exchange: (exchange.wait_for_close(), exchange.close())
        self.assert_own_error(weir.get("/"), 504)

    def test_truncated_response_does_not_look_complete(self):
        weir = self.weir()
        for reply in (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
                      b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
                      b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n"):
            with self.subTest(reply), self.assertRaises((EOFError, ConnectionError)):
                self.upstream.reply = lambda exchange, reply=reply: (exchange.send(reply), exchange.close())
                weir.get("/")

    def test_bytes_after_a_response_reach_no_client(self):
        weir = self.weir()
        self.upstream.reply = answer(b"ok") + answer(b"stray")
        with weir.connect() as client:
            self.assertEqual([client.get("/").body for _ in range(10)], [b"ok"] * 10)

    def test_bytes_on_an_idle_upstream_connection_reach_no_client(self):
        weir = self.weir()
        self.upstream.reply = lambda exchange: exchange.send(answer(b"right"))
        for _ in range(10):
            self.assertEqual(weir.get("/").body, b"right")
            for exchange in self.upstream.exchanges:
                with contextlib.suppress(OSError):  # weir has closed it
                    exchange.send(answer(b"stray"))
            self.assertEqual(weir.get("/victim").body, b"right")

    def test_requests_go_to_the_other_server_if_one_server_is_down(self):
        weir = self.start(Weir(config(closed_port(), self.upstream.port)))
        answered = [Client(weir.port).get("/").status for _ in range(20)]
        self.assertGreaterEqual(answered.count(200), 10)


if __name__ == "__main__":
    main()
