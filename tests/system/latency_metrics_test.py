#!/usr/bin/env python3
"""The histograms of routes and upstreams, the gauges of open requests, and weir_build_info (docs/metrics.md)."""

import re
import signal
import threading
import time

from harness import PATIENCE, Client, Upstream, Weir, answer, closed_port, config, eventually, get, main, rule, run_weir
from http2_client import Http2Client, Http2TestCase
from protocol_pair import Ask, NewClient, OldClient
from tunnel_test import ASK as UPGRADE
from tunnel_test import SWITCH

PROTOCOLS = (OldClient, NewClient)  # HTTP/1.1, HTTP/2
API = '[[route]]\nname = "api"\nupstream = "api"\nmatch = { path = "/api/*" }\n'
QUEUED = '[[route]]\nname = "queued"\nupstream = "api"\nmatch = { path = "/queued" }\n'
STATIC = '[[route]]\nname = "static"\nmatch = { path = "/static" }\nrespond = { status = 204 }\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


class Readings:
    """The metrics of one scrape, so that values can be compared with each other."""

    def __init__(self, weir):
        lines = get(weir.admin, "/metrics").body.decode().splitlines()
        self.lines = [(set(re.split("[{,}]", series.rstrip("}"))), value) for series, _, value in (line.rpartition(" ") for line in lines)]

    def of(self, name, **labels):
        """Returns the value of a series, or None if there is no such series."""
        wanted = {name, *(f'{key}="{value}"' for key, value in labels.items())}
        return next((float(value) for series, value in self.lines if series == wanted), None)


class LatencyTestCase(Http2TestCase):
    def setUp(self):
        super().setUp()
        self.released = threading.Event()
        self.addCleanup(self.released.set)

    def hold(self, exchange):
        """Answers once the test permits it."""
        self.released.wait(PATIENCE)
        exchange.send(answer())

    def ended(self, weir, count):
        """Waits until `count` requests have ended, and returns the metrics."""
        self.await_metric(weir, count, "weir_requests_total")
        return Readings(weir)

    def ask_ahead(self, weir, make, path):
        """Sends a request on a new connection. Returns two functions: one waits for the answer, the other closes the connection."""
        if make is NewClient:
            client = self.start(Http2Client(weir.port))
            stream = client.open(path=path)
            return lambda: client.read(stream), client.sock.close
        client = self.start(Client(weir.port))
        client.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return client.read, client.leave


class Histograms(LatencyTestCase):
    def test_refusals_and_answers_of_weir_are_not_counted_in_the_latency_of_a_route(self):
        for make in PROTOCOLS:
            with self.subTest(make.__name__):
                few = rule("few", "2/1000day", key="[]", algorithm='"fixed_window"', match='{ path = "/api/*" }')
                weir = self.plain_weir(few, routes=API + STATIC)
                with make(weir.port) as client:
                    said = [client.ask(Ask(path)).status for path in ["/api/x"] * 5 + ["/static"] * 2 + ["/nothing"]]
                self.assertEqual(said, [200, 200, 429, 429, 429, 204, 204, 404])
                read = self.ended(weir, 8)
                self.assertEqual(read.of("weir_request_seconds_count", route="api"), 2)
                self.assertIsNone(read.of("weir_request_seconds_count", route="static"))
                self.assertEqual(read.of("weir_local_reply_seconds_count"), 6)
                self.assertEqual(read.of("weir_upstream_seconds_count", upstream="api"), 2)

    def test_latency_of_a_route_ends_with_the_body_and_latency_of_an_upstream_ends_with_the_head(self):
        for make in PROTOCOLS:
            with self.subTest(make.__name__):
                seen, never = threading.Event(), threading.Event()

                def reply(exchange, seen=seen, never=never):
                    never.wait(0.1)
                    exchange.send(HEAD)
                    seen.wait(PATIENCE)
                    never.wait(0.2)
                    exchange.send(b"body")

                self.upstream.reply = reply
                weir = self.plain_weir(routes=API)
                self.read_head_and_body(weir, make, seen)
                read = self.ended(weir, 1)
                whole, head = read.of("weir_request_seconds_sum", route="api"), read.of("weir_upstream_seconds_sum", upstream="api")
                self.assertGreaterEqual(head, 0.1)
                self.assertGreaterEqual(whole - head, 0.2)
                self.assertEqual(read.of("weir_request_seconds_bucket", route="api", le="0.25"), 0)

    def read_head_and_body(self, weir, make, seen):
        """Sends a request, and sets the event when the answer's head has arrived."""
        if make is NewClient:
            client = self.client(weir)
            stream = client.open(path="/api/x")
            client.wait(lambda: client.answers[stream].status)
            seen.set()
            self.assertEqual(client.read(stream).body, b"body")
            return
        client = self.start(weir.connect())
        client.send(b"GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
        client.wire.read_until(b"\r\n\r\n")
        seen.set()
        self.assertEqual(client.wire.read_exactly(4), b"body")

    def test_metric_of_an_upstream_counts_attempts_and_metric_of_a_route_counts_requests(self):
        def reply(exchange):
            exchange.send(answer(status="503 Busy") if len(self.upstream.exchanges) + len(other.exchanges) == 1 else answer())

        self.upstream.reply = reply
        other = self.start(Upstream(reply))
        weir = self.start(Weir(config(self.upstream.port, other.port, routes=API,
                                      upstream='retry = { on = ["503"], backoff = "0ms", budget = "100%" }')))
        self.assertEqual(weir.get("/api/x").status, 200)
        read = self.ended(weir, 1)
        self.assertEqual(read.of("weir_upstream_seconds_count", upstream="api"), 2)
        self.assertEqual(read.of("weir_request_seconds_count", route="api"), 1)

    def test_request_that_times_out_is_counted_with_its_waiting_time(self):
        self.upstream.reply = self.hold
        weir = self.start(Weir(config(self.upstream.port, routes=API, upstream='timeouts = { response = "200ms" }\nretry = { attempts = 1 }')))
        self.assertEqual(weir.get("/api/x").status, 504)
        read = self.ended(weir, 1)
        self.assertEqual(read.of("weir_upstream_seconds_count", upstream="api"), 1)
        self.assertGreaterEqual(read.of("weir_upstream_seconds_sum", upstream="api"), 0.2)
        self.assertEqual(read.of("weir_request_seconds_count", route="api"), 1)
        self.assertEqual(read.of("weir_local_reply_seconds_count"), 0)

    def test_request_that_no_server_got_is_not_counted_in_the_latency_of_a_route(self):
        weir = self.start(Weir(config(closed_port(), routes=API)))
        self.assertIn(weir.get("/api/x").status, (502, 503))
        read = self.ended(weir, 1)
        self.assertIsNone(read.of("weir_request_seconds_count", route="api"))
        self.assertEqual(read.of("weir_upstream_seconds_count", upstream="api"), 0)
        self.assertEqual(read.of("weir_local_reply_seconds_count"), 1)

    def test_tunnel_is_counted_with_the_time_until_it_opened(self):
        self.upstream.reply = lambda exchange: (exchange.send(SWITCH), exchange.wait_for_close())
        weir = self.start(Weir(config(self.upstream.port, routes=API)))
        began = time.monotonic()
        with weir.connect() as client:
            lines = "".join(f"{name}: {value}\r\n" for name, value in UPGRADE.items())
            client.send(f"GET /api/x HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode())
            self.assertEqual(client.read().status, 101)
            opened = time.monotonic() - began
            self.await_metric(weir, 1, "weir_route_requests_in_flight", route="api")
            self.await_metric(weir, 1, "weir_upstream_requests_in_flight", upstream="api")
            eventually(lambda: time.monotonic() - began > 2 * opened + 0.2, "the tunnel is open for longer than it took to open")
        read = self.ended(weir, 1)
        self.assertEqual(read.of("weir_request_seconds_count", route="api"), 1)
        self.assertLessEqual(read.of("weir_request_seconds_sum", route="api"), opened)
        self.assertEqual(read.of("weir_route_requests_in_flight", route="api"), 0)


class InFlight(LatencyTestCase):
    def gauges(self, weir):
        read = Readings(weir)
        return [read.of("weir_route_requests_in_flight", route="api"), read.of("weir_route_requests_in_flight", route="queued"),
                read.of("weir_upstream_requests_in_flight", upstream="api")]

    def await_gauges(self, weir, *expected):
        eventually(lambda: self.gauges(weir) == list(expected), f"{expected} requests are under way, now {self.gauges(weir)}")

    def test_gauges_count_open_requests_until_their_answers_end(self):
        queue = rule("queue", "1/1000day", key="[]", algorithm='"leaky_bucket"', queue=5, match='{ path = "/queued" }')
        for make in PROTOCOLS:
            with self.subTest(make.__name__):
                self.upstream.reply = self.hold
                self.released.clear()
                weir = self.plain_weir(queue, routes=API + QUEUED)
                self.await_gauges(weir, 0, 0, 0)
                asked = [self.ask_ahead(weir, make, path) for path in ("/api/1", "/api/2", "/queued")]
                self.await_gauges(weir, 2, 1, 3)
                _, leave = self.ask_ahead(weir, make, "/queued")
                self.await_gauges(weir, 2, 2, 3)  # a request in a queue is at no upstream yet
                leave()
                self.await_gauges(weir, 2, 1, 3)
                self.released.set()
                self.assertEqual([read().status for read, _ in asked], [200] * 3)
                self.await_gauges(weir, 0, 0, 0)


class Reload(LatencyTestCase):
    def reload(self, weir, routes):
        before = weir.metric("weir_reloads_total", result="ok")
        (weir.folder / "weir.toml.new").write_text(config(self.upstream.port, routes=routes))
        (weir.folder / "weir.toml.new").rename(weir.folder / "weir.toml")
        weir.signal(signal.SIGHUP)
        self.await_metric(weir, before + 1, "weir_reloads_total", result="ok")

    def test_reload_keeps_the_counts_of_kept_routes_and_clears_those_of_removed_routes(self):
        weir = self.start(Weir(config(self.upstream.port, routes=API + QUEUED)))
        self.assertEqual([weir.get(path).status for path in ("/api/x", "/queued", "/queued")], [200] * 3)
        self.ended(weir, 3)
        self.upstream.reply = self.hold
        read_answer, _ = self.ask_ahead(weir, OldClient, "/api/x")
        self.await_metric(weir, 1, "weir_route_requests_in_flight", route="api")
        self.reload(weir, STATIC + API)
        read = Readings(weir)
        self.assertEqual(read.of("weir_request_seconds_count", route="api"), 1)
        self.assertEqual(read.of("weir_route_requests_in_flight", route="api"), 1, "the request that began before the reload")
        self.assertIsNone(read.of("weir_route_requests_in_flight", route="queued"))
        self.assertIsNone(read.of("weir_request_seconds_count", route="queued"))
        self.released.set()
        self.assertEqual(read_answer().status, 200)
        self.await_metric(weir, 2, "weir_request_seconds_count", route="api")
        self.assertEqual(Readings(weir).of("weir_route_requests_in_flight", route="api"), 0)
        self.reload(weir, API + QUEUED)
        self.assertIsNone(Readings(weir).of("weir_request_seconds_count", route="queued"), "the route is another one of the same name")
        self.assertEqual(Readings(weir).of("weir_request_seconds_count", route="api"), 2)
        self.assertEqual(Readings(weir).of("weir_upstream_seconds_count", upstream="api"), 4)


class BuildInfo(LatencyTestCase):
    def test_build_info_has_the_version_and_commit_that_weir_version_prints(self):
        weir = self.start(Weir(config(self.upstream.port)))
        _, said, _ = run_weir("version")
        version, commit = re.fullmatch(r"weir (\S+)(?: \(commit (\w+), .*\))?\n", said).groups()
        self.assertEqual(Readings(weir).of("weir_build_info", commit=commit or "unknown", version=version), 1)


if __name__ == "__main__":
    main()
