#!/usr/bin/env python3
"""Each counter increases when the event that it names happens, and at no other time."""

import threading

from harness import (TestCase, Upstream, Weir, answer, chunked, closed_port, config, eventually, main, request_bytes)


class Counters(TestCase):
    def failures(self, weir):
        return weir.metric("weir_upstream_failures_total")

    def test_bytes_of_bodies_are_counted(self):
        upstream = self.start(Upstream(lambda exchange: (exchange.read_body(), exchange.send(answer()))))
        weir = self.start(Weir(config(upstream.port)))
        with weir.connect() as client:
            self.assertEqual(client.request("POST", "/", body=b"x" * 3_000_000).status, 200)
            self.await_at_least(weir, 3_000_000, "weir_received_bytes_total")

    def await_at_least(self, weir, least, name):
        eventually(lambda: weir.metric(name) >= least, f"{name} is at least {least}")
        self.assertLess(weir.metric(name), least * 1.01)

    def test_too_slow_and_too_large_bodies_are_counted_as_client_errors(self):
        upstream = self.start(Upstream(lambda exchange: (exchange.read_body(), exchange.send(answer()))))
        weir = self.start(Weir(config(upstream.port, server='body_timeout = "300ms"\nmax_body = "64KiB"')))
        with weir.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
            self.assertEqual(client.read().status, 408)
        with weir.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"x" * 100_000, 50_000))
            self.assertEqual(client.read().status, 413)
        self.await_metric(weir, 1, "weir_client_errors_total", kind="body_timeout")
        self.await_metric(weir, 1, "weir_client_errors_total", kind="body_too_large")
        self.assertEqual(self.failures(weir), 0)

    def test_client_that_leaves_is_not_counted_as_an_upstream_failure(self):
        asked = threading.Event()
        upstream = self.start(Upstream(lambda exchange: (asked.set(), exchange.wait_for_close())))
        weir = self.start(Weir(config(upstream.port)))
        with weir.connect() as client:
            client.send(request_bytes("GET", "/"))
            asked.wait()
            client.leave()
        self.await_metric(weir, 1, "weir_client_errors_total", kind="left")
        self.assertEqual(self.failures(weir), 0)

    def test_truncated_response_is_counted_as_an_upstream_failure(self):
        def cut(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
            exchange.close()

        weir = self.start(Weir(config(self.start(Upstream(cut)).port)))
        with weir.connect() as client:
            client.send(request_bytes("GET", "/"))
            self.assertRaises((EOFError, ConnectionError), client.read)
        eventually(lambda: self.failures(weir) == 1, "the failure is counted")

    def test_unreachable_server_is_counted_as_an_upstream_failure(self):
        weir = self.start(Weir(config(closed_port())))
        self.assertEqual(weir.get("/").status, 502)
        self.assertEqual(self.failures(weir), 1)

    def test_request_rejected_for_its_size_is_counted_for_its_route(self):
        weir = self.start(Weir(config(closed_port(), server='max_body = "1KiB"',
                                      routes='[[route]]\nname = "all"\nupstream = "api"')))
        with weir.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n")
            self.assertEqual(client.read().status, 413)
        self.await_metric(weir, 1, "weir_requests_total", route="all", code="413")


if __name__ == "__main__":
    main()
