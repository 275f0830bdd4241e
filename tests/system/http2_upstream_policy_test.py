#!/usr/bin/env python3
"""weir treats HTTP/2 servers like HTTP/1.1 servers: deadlines, ejection, retries, health probes, settlement, and mistakes in the
configuration."""

import socket
import threading

from harness import PATIENCE, Weir, eventually, main, rule, run_weir
from http2_client import CALM, CANCEL, SETTINGS, frame
from http2_server import MOST_STREAMS, hello
from http2_upstream import BOTH, Http2UpstreamTestCase, ask, of_stream

INTERNAL = 2
SERVING, NOT_SERVING = b"\0\0\0\0\2\x08\1", b"\0\0\0\0\2\x08\2"


class Deadlines(Http2UpstreamTestCase):
    def test_late_answer_gives_504_and_resets_only_its_stream(self):
        server = self.serve(lambda request: request.wait_for_reset() if request.path == "/late" else hello(request))
        weir = self.weir(server, upstream='timeouts = { response = "2s" }\neject = { failures = 1000 }')
        for number, version in enumerate(BOTH, 1):
            with self.subTest(version):
                self.assert_own_error(ask(self.client(weir, version), "POST", "/late", body=b"abc").answer, 504)
                self.await_error(server.requests[2 * number - 2], CANCEL)
                self.assertEqual(ask(self.client(weir, version)).status, 200)
        self.assertEqual(server.connections, 1)

    def test_answer_that_stops_arriving_is_cut_off_at_the_client(self):
        def reply(request):
            request.head()
            request.send(b"abc")
            request.wait_for_reset()

        server = self.serve(reply)
        client = self.client(self.weir(server, upstream='timeouts = { response = "2s" }\neject = { failures = 1000 }'))
        got = of_stream(client.read(client.open()))
        self.assertEqual((got.status, got.body, got.is_whole), (200, b"abc", False))
        self.await_error(server.requests[0], CANCEL)

    def test_server_that_accepts_and_sends_nothing_gives_504(self):
        silent = threading.Event()
        server = self.serve(ahead=lambda _: silent.wait(PATIENCE))
        self.addCleanup(silent.set)
        weir = self.weir(server, upstream='timeouts = { response = "2s" }')
        for version in BOTH:
            self.assert_own_error(ask(self.client(weir, version)).answer, 504)

    def test_a_server_that_permits_no_stream_is_not_flooded_with_connections(self):
        server = self.serve(settings={MOST_STREAMS: 0})
        weir = self.weir(server, upstream='timeouts = { response = "2s", total = "2s" }')
        for version in BOTH:
            self.assertIn(ask(self.client(weir, version)).status, (502, 503))
        self.assertLess(server.connections, 6)

    def test_a_server_that_ends_each_connection_is_not_flooded_with_connections(self):
        for ahead in (lambda sock: sock.shutdown(socket.SHUT_RDWR), lambda sock: (sock.recv(24), sock.shutdown(socket.SHUT_RDWR)),
                      lambda sock: (sock.sendall(frame(SETTINGS, 0, 0)), sock.recv(24), sock.shutdown(socket.SHUT_RDWR))):
            server = self.serve(ahead=ahead)
            client = self.client(self.weir(server, upstream="eject = { failures = 1000 }"))
            with client.one_write():
                streams = [client.open() for _ in range(20)]
            for stream in streams:
                self.assert_own_error(client.read(stream), 502)
            self.assertLess(server.connections, 6)


class Failures(Http2UpstreamTestCase):
    def test_a_server_that_resets_its_streams_is_ejected(self):
        for method in ("GET", "POST"):
            with self.subTest(method):
                bad = self.serve(lambda request: request.answer() if request.path == "/good" else request.reset(INTERNAL))
                good = self.serve()
                weir = self.weir(bad, good, upstream='eject = { failures = 3, least = "60s", most = "60s" }\nbalance = "round_robin"')
                client = self.client(weir)
                for _ in range(4):
                    self.assertEqual(client.get("/good").status, 200)
                statuses = [ask(client, method, body=None if method == "GET" else b"abc").status for _ in range(12)]
                self.assertEqual(set(statuses), {200} if method == "GET" else {200, 502})
                self.assertEqual(statuses.count(502), 0 if method == "GET" else 3)
                self.await_metric(weir, 0, "weir_upstream_healthy", server=bad.address)

    def test_server_that_ends_a_connection_with_open_requests_is_ejected(self):
        server = self.serve(lambda request: None if request.path == "/held" else request.answer())
        weir = self.weir(server, upstream='eject = { failures = 1, least = "60s", most = "60s" }')
        client = self.client(weir)
        self.assertEqual(client.get().status, 200)
        stream = client.open(path="/held")
        self.await_requests(server, 2)
        self.assertEqual(client.get().status, 200)
        server.reply = hello
        server.sessions[0].close()
        self.assert_own_error(client.read(stream), 502)
        self.await_metric(weir, 0, "weir_upstream_healthy", server=server.address)
        self.await_metric(weir, 1, "weir_upstream_failures_total", upstream="api")
        self.await_metric(weir, 0, "weir_upstream_retries_total", upstream="api")

    def test_server_that_sends_endless_unknown_frames_counts_as_failed(self):
        flood = frame(0xBE, 0, 0) * 1001
        server = self.serve(lambda request: request.connection.raw(flood) if request.path == "/flood" else request.answer())
        weir = self.weir(server)
        client = self.client(weir)
        self.assertEqual(client.get().status, 200)
        self.assert_own_error(client.get("/flood"), 502)
        server.sessions[0].wait(lambda: server.sessions[0].goaways == [CALM])
        self.await_metric(weir, 1, "weir_upstream_failures_total", upstream="api")
        self.await_metric(weir, 0, "weir_upstream_retries_total", upstream="api")

    def test_request_is_sent_again_if_the_server_has_just_closed_its_idle_connection(self):
        server = self.serve(lambda request: request.connection.close() if request.path == "/first" else request.answer())
        weir = self.weir(server, upstream='retry = { budget = "0%" }')
        client = self.client(weir)
        self.assertEqual(client.get().status, 200)
        server.sessions[0].wait(lambda: not server.sessions[0].h2.open_inbound_streams)
        stream = client.open(path="/first")
        self.await_requests(server, 2)
        eventually(lambda: len(server.sessions) == 2, "the request is sent again")
        self.await_metric(weir, 1, "weir_upstream_retries_total", upstream="api")
        self.assert_own_error(client.read(stream), 502)
        self.await_metric(weir, 1, "weir_upstream_failures_total", upstream="api")

    def test_requests_that_cross_the_close_of_an_idle_connection_are_sent_again(self):
        server = self.serve(lambda request: request.connection.close() if request.path == "/burst" and request.connection is server.sessions[0]
                            else request.answer())
        weir = self.weir(server, upstream='retry = { budget = "0%" }\neject = { failures = 1, least = "60s", most = "60s" }')
        client = self.client(weir)
        self.assertEqual(client.get().status, 200)
        server.sessions[0].wait(lambda: not server.sessions[0].h2.open_inbound_streams)
        with client.one_write():
            streams = [client.open(path="/burst") for _ in range(10)]
        self.assertEqual([client.read(stream).status for stream in streams], [200] * 10)
        self.assertGreater(weir.metric("weir_upstream_retries_total", upstream="api"), 0)
        self.assertEqual(weir.metric("weir_upstream_failures_total", upstream="api"), 0)

    def test_request_is_sent_to_another_server_if_the_status_is_in_retry_on(self):
        bad = self.serve(lambda request: request.answer(b"busy", 503, fields=[("x-bad", "1")]))
        good = self.serve(lambda request: request.answer(request.read_body()))
        weir = self.weir(bad, good, upstream='retry = { attempts = 2, on = ["broken", "503"], backoff = "0s" }\nbalance = "round_robin"')
        for version in BOTH:
            client = self.client(weir, version)
            got = [ask(client, "PUT", body=b"abc") for _ in range(4)]
            self.assertEqual([(each.status, each.body) for each in got], [(200, b"abc")] * 4)
            self.assertEqual({ask(client, "POST", body=b"abc").status for _ in range(4)}, {200, 503})
        self.assertEqual({len(server.sessions) for server in (bad, good)}, {1})

    def test_request_without_an_answer_in_time_is_sent_to_another_server(self):
        late = self.serve(lambda request: request.wait_for_reset())
        good = self.serve()
        weir = self.weir(late, good, upstream='timeouts = { response = "2s" }\nretry = { attempts = 2, on = ["late"] }\nbalance = "round_robin"')
        self.assertEqual([self.client(weir).get().status for _ in range(4)], [200] * 4)
        self.await_error(late.requests[0], CANCEL)

    def test_response_head_that_is_too_large_is_not_counted_as_a_server_failure(self):
        server = self.serve(lambda request: request.answer(fields=[("x-large", "a" * 20_000)] if request.path == "/large" else []))
        weir = self.weir(server, upstream="eject = { failures = 1 }")
        for version in BOTH:
            client = self.client(weir, version)
            self.assert_own_error(ask(client, path="/large").answer, 502)
            self.assertEqual(ask(client).status, 200)
        self.assertEqual(weir.metric("weir_upstream_oversized_heads_total"), 2)
        self.assertEqual((weir.metric("weir_upstream_healthy", upstream="api"), server.connections), (1, 1))

    def test_max_in_flight_bounds_the_streams_of_a_connection(self):
        release = threading.Event()

        def reply(request):
            release.wait(PATIENCE)
            request.answer()

        server = self.serve(reply)
        text = self.text(server, upstream='max_wait = "15s"').replace(
            f'"{server.address}"', f'{{ address = "{server.address}", max_in_flight = 2 }}')
        weir = self.start(Weir(text))
        client = self.client(weir)
        streams = [client.open() for _ in range(5)]
        self.await_metric(weir, 3, "weir_upstream_queue_depth")
        self.await_requests(server, 2)
        self.assertEqual(len(server.requests), 2)
        release.set()
        self.assertEqual([client.read(stream).status for stream in streams], [200] * 5)

    def test_servers_of_an_upstream_are_balanced(self):
        servers = [self.serve() for _ in range(3)]
        client = self.client(self.weir(*servers, upstream='balance = "round_robin"'))
        for _ in range(9):
            self.assertEqual(client.get().status, 200)
        self.assertEqual([(len(server.requests), server.connections) for server in servers], [(3, 1)] * 3)


class Probes(Http2UpstreamTestCase):
    HEALTH = 'health = { KEY, interval = "50ms", timeout = "5s", unhealthy_after = 2, healthy_after = 2 }'

    def follows(self, key, reply, good, bad):
        """Checks that the server's health follows its answers to probes."""
        self.reply_now = good
        server = self.serve(reply)
        weir = self.weir(server, upstream=self.HEALTH.replace("KEY", key))
        self.await_requests(server, 2)
        self.assertEqual(weir.metric("weir_upstream_healthy", upstream="api"), 1)
        self.reply_now = bad
        self.await_metric(weir, 0, "weir_upstream_healthy", upstream="api")
        self.reply_now = good
        self.await_metric(weir, 1, "weir_upstream_healthy", upstream="api")
        return server.requests[0]

    def test_health_probe_requests_the_configured_path(self):
        probe = self.follows('path = "/healthz?a"', lambda request: request.answer(status=self.reply_now), 200, 503)
        self.assertEqual((probe.method, probe.path, probe["user-agent"]), ("GET", "/healthz?a", "weir-health"))

    def grpc(self, request):
        body = request.read_body()
        self.assertEqual((request.method, request.path), ("POST", "/grpc.health.v1.Health/Check"))
        self.assertEqual((request["content-type"].split("+")[0], request["te"]), ("application/grpc", "trailers"))
        self.asked = body
        if isinstance(self.reply_now, int):
            request.head(200, [("content-type", "application/grpc"), ("grpc-status", str(self.reply_now))], end=True)
        else:
            request.answer(self.reply_now, fields=[("content-type", "application/grpc")], length=False, trailers=[("grpc-status", "0")])

    def test_health_probe_can_ask_about_a_grpc_service(self):
        self.follows('grpc = "my.Service"', self.grpc, SERVING, NOT_SERVING)
        self.assertEqual(self.asked, b"\0\0\0\0\x0c\n\x0amy.Service")

    def test_health_probe_can_ask_about_a_whole_grpc_server(self):
        for bad in (5, 12, b"", b"\0\0\0\0\0", b"\0\0\0\0\2\x08"):
            with self.subTest(bad):
                self.follows('grpc = ""', self.grpc, SERVING, bad)
                self.assertIn(self.asked, (b"\0\0\0\0\0", b"\0\0\0\0\2\n\0"))


class Settlement(Http2UpstreamTestCase):
    def test_answers_of_http2_servers_settle_charges(self):
        body = b'{"usage": {"total_tokens": 30}}'
        server = self.serve(lambda request: request.answer(body, length=request.path == "/known", trailers=[("x-end", "1")]))
        cost = '{ response_json = "/usage/total_tokens", reserve = 40 }'
        weir = self.weir(server, rules=rule("budget", "100/day", key="[]", cost=cost, algorithm='"fixed_window"'))
        self.assertEqual(ask(self.client(weir), path="/known").body, body)
        self.await_metric(weir, 1, "weir_settlements_total", rule="budget", outcome="surplus")
        self.assertEqual(ask(self.client(weir, "HTTP/1.1")).body, body)
        self.await_metric(weir, 2, "weir_settlements_total", rule="budget", outcome="surplus")
        self.assertEqual(self.client(weir).get().status, 200)
        self.assertEqual(self.client(weir).get().status, 429)

    def test_charge_of_a_client_that_left_is_settled_by_the_answer(self):
        release = threading.Event()

        def reply(request):
            request.head()
            request.send(b'{"usage": {"total')
            release.wait(PATIENCE)
            request.send(b'_tokens": 30}}', end=True)

        server = self.serve(reply)
        cost = '{ response_json = "/usage/total_tokens", reserve = 40 }'
        weir = self.weir(server, rules=rule("budget", "100/day", key="[]", cost=cost, algorithm='"fixed_window"'))
        client = self.client(weir)
        stream = client.open()
        client.wait(lambda: client.answers[stream].size)
        client.reset(stream)
        client.ping()
        release.set()
        self.await_metric(weir, 1, "weir_settlements_total", rule="budget", outcome="surplus")
        self.assertIsNone(server.requests[0].error)

    def test_only_answers_with_a_charged_status_are_charged(self):
        server = self.serve(lambda request: request.answer(status=int(request.path[1:])))
        weir = self.weir(server, rules=rule("login", "2/day", key="[]", algorithm='"sliding_log"', charge='{ status = ["401"] }'))
        client = self.client(weir)
        self.assertEqual([client.get(f"/{status}").status for status in (200, 401, 200, 401)], [200, 401, 200, 401])
        self.assertEqual(client.get("/200").status, 429)


class Mistakes(Http2UpstreamTestCase):
    def refused(self, address, upstream):
        class Server:
            port = 9

        text = self.text(Server, protocol="http/1.1").replace('protocol = "http/1.1"\n', upstream + "\n") \
            .replace('servers = ["127.0.0.1:9"]', f'servers = ["{address}"]')
        status, _, errors = run_weir("check", config=text)
        return status, errors

    def test_configured_protocol_that_does_not_fit_the_server_address_is_rejected(self):
        for address, upstream, told in (
                ("https://127.0.0.1:9", 'protocol = "h2c"', "h2"), ("127.0.0.1:9", 'protocol = "h2"', "h2c"),
                ("127.0.0.1:9", 'protocol = "auto"', "h2c"), ("127.0.0.1:9", 'protocol = "h2c"\nproxy_protocol = true', "proxy_protocol"),
                ("127.0.0.1:9", 'protocol = "http2"', "h2c"), ("127.0.0.1:9", 'protocol = "h2c"\nmax_streams = 0', "max_streams"),
                ("127.0.0.1:9", 'protocol = "h2c"\nmax_streams = 10001', "max_streams"),
                ("127.0.0.1:9", 'health = { grpc = "" }', "h2c"), ("127.0.0.1:9", 'protocol = "h2c"\nhealth = { grpc = "", path = "/" }', "path")):
            with self.subTest(upstream, address=address):
                status, errors = self.refused(address, upstream)
                self.assertEqual(status, 2, errors)
                self.assertRegex(errors, rf"weir\.toml:\d+: upstream\[api\].*{told}")

    def test_configured_protocol_that_fits_the_server_address_is_accepted(self):
        for address, upstream in (("https://127.0.0.1:9", 'protocol = "h2"'), ("https://127.0.0.1:9", 'protocol = "auto"'),
                                  ("127.0.0.1:9", 'protocol = "h2c"'), ("unix:/tmp/a.sock", 'protocol = "h2c"\nmax_streams = 10000')):
            with self.subTest(upstream, address=address):
                status, errors = self.refused(address, upstream)
                self.assertEqual(status, 0, errors)


if __name__ == "__main__":
    main()
