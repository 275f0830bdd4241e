#!/usr/bin/env python3
"""Requests that an HTTP/2 server has not processed (REFUSED_STREAM, GOAWAY): weir sends them again, and charges for none of those
that no server processes."""

import collections
import threading

from harness import PATIENCE, eventually, main, rule, together
from http2_client import REFUSED
from http2_server import FOREVER
from http2_upstream import BOTH, Http2UpstreamTestCase, ask, of_connection, of_stream

BODY = b"x" * 5000
ONE = rule("one", "1/day", algorithm='"fixed_window"', key="[]")


class Refused(Http2UpstreamTestCase):
    def test_a_request_refused_once_is_sent_again_whatever_its_method(self):
        def reply(request):
            body = request.read_body()
            if request["x-id"] not in seen:
                seen.add(request["x-id"])
                request.reset(REFUSED)
            else:
                request.answer(body)

        seen = set()
        server = self.serve(reply)
        weir = self.weir(server, upstream="retry = { attempts = 1 }")
        for version in BOTH:
            for method, body in (("GET", None), ("POST", BODY), ("PATCH", b"")):
                with self.subTest(version, method=method):
                    client = self.client(weir, version)
                    got = ask(client, method, fields=[("x-id", f"{version} {method}")], body=body)
                    self.assertEqual((got.status, len(got.body)), (200, len(body or b"")))
        self.assertEqual(len(server.requests), 12)
        first, second = server.requests[:2]
        self.assertIsNot(first.connection, second.connection, "on another connection")

    def test_request_refused_twice_gets_503_and_is_not_charged(self):
        server = self.serve(lambda request: request.reset(REFUSED))
        weir = self.weir(server, rules=ONE)
        for version in BOTH:
            for method, body in (("GET", None), ("POST", BODY)):
                with self.subTest(version, method=method):
                    self.assert_own_error(ask(self.client(weir, version), method, body=body).answer, 503)
        self.assertEqual(len(server.requests), 8)
        self.assertEqual(weir.metric("weir_upstream_healthy", upstream="api"), 1, "a refusal is no failure")
        server.reply = lambda request: request.answer()
        self.assertEqual(self.statuses(weir.port, 2), [200, 429])

    def test_request_that_one_server_refuses_is_sent_to_another_server(self):
        refusing = self.serve(lambda request: request.reset(REFUSED))
        good = self.serve(lambda request: request.answer(request.read_body()))
        weir = self.weir(refusing, good, upstream='balance = "round_robin"')
        client = self.client(weir)
        statuses = [ask(client, "POST", body=BODY).status for _ in range(10)]
        self.assertLessEqual(set(statuses), {200, 503})
        self.assertGreaterEqual(statuses.count(200), 5)

    def test_a_body_that_has_begun_is_not_sent_again(self):
        """The first octets are gone, so weir answers 503. The client may still send the request again."""
        def reply(request):
            request.wait(lambda: request.size > 0)
            request.reset(REFUSED)

        server = self.serve(reply)
        weir = self.weir(server, rules=ONE)
        client = self.client(weir)
        stream = client.open("POST", end=False)
        client.send_body(stream, BODY, end=False)
        self.assert_own_error(client.read(stream), 503)
        old = self.client(weir, "HTTP/1.1")
        old.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        self.assert_own_error(of_connection(old).answer, 503)
        self.assertEqual(len(server.requests), 2)

    def test_a_body_that_has_not_begun_is_sent_again(self):
        def reply(request):
            if len(server.requests) == 1:
                request.reset(REFUSED)
            else:
                request.answer(request.read_body())

        server = self.serve(reply)
        client = self.client(self.weir(server, upstream='timeouts = { expect_continue = "20s" }'), "HTTP/1.1")
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        self.await_requests(server, 2)
        client.send(b"abc")
        self.assertEqual(of_connection(client).body, b"abc")

    def test_a_reset_after_the_head_is_no_refusal(self):
        def reply(request):
            request.head()
            request.reset(REFUSED)

        server = self.serve(reply)
        client = self.client(self.weir(server, upstream="eject = { failures = 1000 }"))
        stream = client.open()
        got = client.read(stream)
        self.assertFalse(got.ended, got.raw)
        self.assertEqual(len(server.requests), 1)


class GoneAway(Http2UpstreamTestCase):
    def test_open_requests_finish_after_goaway_and_new_requests_use_another_connection(self):
        release = threading.Event()

        def reply(request):
            body = request.read_body()
            if request.path == "/held":
                release.wait(PATIENCE)
            request.answer(body + b"y" * 50_000)

        for last in (None, FOREVER):
            with self.subTest(last=last):
                release.clear()
                server = self.serve(reply)
                client = self.client(self.weir(server))
                streams = [client.open(path="/held") for _ in range(3)]
                self.await_requests(server, 3)
                first = server.sessions[0]
                first.goaway(last)
                eventually(lambda: client.get().status == 200 and server.connections == 2, "another connection")  # noqa: B023
                release.set()
                self.assertEqual([client.read(stream).size for stream in streams], [50_000] * 3)
                self.assertEqual([request.error for request in first.requests.values() if request.path == "/held"], [None] * 3)
                first.wait(lambda: first.ended)  # noqa: B023
                self.assertEqual(server.ignored, [])

    def test_a_request_above_the_last_stream_is_sent_again(self):
        def reply(request):
            if request.connection.number == 1 and request.path != "/first":
                request.read_body()
                request.connection.goaway(request.stream - 2, error)
                return
            request.answer(request.read_body())

        for error in (0, 2):
            for version in BOTH:
                for method, body in (("GET", None), ("POST", BODY)):
                    with self.subTest(version, method=method, error=error):
                        server = self.serve(reply)
                        client = self.client(self.weir(server), version)
                        self.assertEqual(ask(client, path="/first").status, 200)
                        got = ask(client, method, "/second", body=body)
                        self.assertEqual((got.status, len(got.body)), (200, len(body or b"")))
                        self.assertEqual((server.connections, len(server.requests)), (2, 3))

    def test_request_that_every_goaway_excludes_gets_503_and_is_not_charged(self):
        server = self.serve(lambda request: request.connection.goaway(0))
        weir = self.weir(server, rules=ONE)
        self.assert_own_error(ask(self.client(weir), "POST", body=BODY).answer, 503)
        self.assertEqual(len(server.requests), 2)
        server.reply = lambda request: request.answer()
        self.assertEqual(self.statuses(weir.port, 2), [200, 429])

    def test_no_request_is_lost_or_doubled_while_connections_go_away(self):
        """The server ends each connection after a few requests. The other requests arrive on another connection."""
        processed, tops, lock = collections.Counter(), collections.Counter(), threading.Lock()

        def reply(request):
            body = request.read_body()
            session = request.connection
            with session.changed:
                if request.stream > session.last:
                    return  # above the last stream of the GOAWAY
                tops[session] = max(tops[session], request.stream)
                if tops[session] > 2 * 8:
                    session.goaway(tops[session])
            with lock:
                processed[request.path] += 1
            request.answer(body)

        server = self.serve(reply)
        weir = self.weir(server, workers=2)

        def work(number):
            with self.subTest(number):
                client = self.client(weir, BOTH[number % 2])
                results = []
                for turn in range(25):
                    body = None if turn % 3 == 0 else BODY
                    got = ask(client, "GET" if body is None else "POST", f"/{number}-{turn}", body=body)
                    results.append((got.status, got.body == (body or b"")))
                return results

        results = sum(together(8, work), [])
        self.assertEqual(collections.Counter(results), {(200, True): 200})
        self.assertEqual(set(processed.values()), {1})
        self.assertEqual(len(processed), 200)
        self.assertGreater(server.connections, 10)

    def test_goaway_in_two_steps_loses_no_request(self):
        """A server first permits every stream, and names the last permitted stream a round trip later (RFC 9113 §6.8)."""
        release = threading.Event()

        def reply(request):
            release.wait(PATIENCE)
            request.answer()

        server = self.serve(reply)
        client = self.client(self.weir(server))
        streams = [client.open() for _ in range(2)]
        self.await_requests(server, 2)
        session = server.sessions[0]
        session.goaway(FOREVER)
        streams.append(client.open())
        self.await_requests(server, 3)
        session.goaway()
        release.set()
        self.assertEqual([of_stream(client.read(stream)).status for stream in streams], [200] * 3)
        session.wait(lambda: session.ended)


if __name__ == "__main__":
    main()
