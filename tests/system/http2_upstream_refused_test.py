#!/usr/bin/env python3
"""Requests that an HTTP/2 server has not processed (REFUSED_STREAM, GOAWAY): weir sends such a request again. If no server
processes the request, weir does not charge it."""

import collections
import queue
import socket
import threading

import grpc

from harness import PATIENCE, eventually, main, request_bytes, rule, together
from http2_client import GOAWAY, REFUSED, SETTINGS, Http2Client, frame
from http2_server import FOREVER, Http2Server
from http2_upstream import BOTH, Http2UpstreamTestCase, ask, of_connection, of_stream

BODY = b"x" * 5000
ONE = rule("one", "1/day", algorithm='"fixed_window"', key="[]")


class Begun:
    """A request whose body follows in parts."""

    def __init__(self, client, length=None):
        self.client, self.chunked = client, length is None
        size = [] if length is None else [("content-length", str(length))]
        if isinstance(client, Http2Client):
            self.stream = client.open("POST", fields=size, end=False)
            return
        client.send(request_bytes("POST", "/", dict(size) or {"Transfer-Encoding": "chunked"}))

    def send(self, octets, end=False):
        if isinstance(self.client, Http2Client):
            self.client.send_body(self.stream, octets, end=end)
        elif self.chunked:
            self.client.send(b"%x\r\n%b\r\n" % (len(octets), octets) + (b"0\r\n\r\n" if end else b""))
        else:
            self.client.send(octets)

    def answer(self):
        return of_stream(self.client.read(self.stream)) if isinstance(self.client, Http2Client) else of_connection(self.client)


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

    def test_refused_request_is_sent_again_with_the_body_received_so_far_and_the_rest(self):
        def reply(request):
            if len(server.requests) % 2 == 1:
                request.wait(lambda: request.size >= len(BODY))
                request.reset(REFUSED)
            else:
                request.answer(request.read_body())

        server = self.serve(reply)
        weir = self.weir(server)
        for version in BOTH:
            for length in (True, False):
                with self.subTest(version, length=length):
                    before = len(server.requests)
                    body = Begun(self.client(weir, version), 2 * len(BODY) if length else None)
                    body.send(BODY)
                    again = self.await_requests(server, before + 2)
                    again.wait(lambda again=again: again.size >= len(BODY))
                    self.assertFalse(again.ended)
                    body.send(b"y" * len(BODY), end=True)
                    got = body.answer()
                    self.assertEqual((got.status, got.body), (200, BODY + b"y" * len(BODY)))
                    self.assertEqual(again["content-length"], str(2 * len(BODY)) if length else None)

    def test_request_with_a_partly_sent_body_succeeds_after_two_servers_refused_it(self):
        def refuse(request):
            request.wait(lambda: request.size >= len(BODY))
            request.reset(REFUSED)

        refusing = [self.serve(refuse), self.serve(refuse)]
        good = self.serve(lambda request: request.answer(request.read_body()))
        weir = self.weir(*refusing, good, upstream='retry = { attempts = 3 }')
        client = self.client(weir)
        for number in range(3):
            body = Begun(client)
            body.send(BODY)
            self.await_requests(good, number + 1).wait(lambda number=number: good.requests[number].size >= len(BODY))
            body.send(BODY, end=True)
            self.assertEqual(body.answer().body, 2 * BODY)

    def test_request_with_a_long_partly_sent_body_is_not_sent_again(self):
        """weir has not kept the first octets, so it answers 503. The client may still send the request
        again."""
        size = 80_000

        def reply(request):
            request.wait(lambda: request.size >= size)
            request.reset(REFUSED)

        server = self.serve(reply)
        weir = self.weir(server, rules=ONE)
        for version in BOTH:
            body = Begun(self.client(weir, version))
            body.send(bytes(size))
            self.assert_own_error(body.answer().answer, 503)
        self.assertEqual(len(server.requests), 2)
        server.reply = lambda request: request.answer()
        self.assertEqual(self.statuses(weir.port, 2), [200, 429])

    def test_refused_request_whose_body_has_not_begun_is_sent_again(self):
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

    def test_request_whose_stream_is_reset_after_the_head_is_not_sent_again(self):
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

    def test_request_above_the_last_stream_of_a_goaway_is_sent_again(self):
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

    def test_partly_sent_upload_above_the_last_stream_of_a_goaway_is_sent_again(self):
        def reply(request):
            if request.connection.number == 1:
                request.wait(lambda: request.size >= len(BODY))
                request.connection.goaway(0)
                return
            request.answer(request.read_body())

        for version in BOTH:
            with self.subTest(version):
                server = self.serve(reply)
                body = Begun(self.client(self.weir(server), version))
                body.send(BODY)
                self.await_requests(server, 2)
                body.send(BODY, end=True)
                got = body.answer()
                self.assertEqual((got.status, got.body), (200, 2 * BODY))

    def test_request_is_sent_to_another_server_or_gets_503_if_its_connection_ends_at_once(self):
        """The server accepts connections, but no requests. Another server gets the requests. Without another
        server, each request gets 503."""
        def go_away(sock):
            release.wait(PATIENCE)
            sock.sendall(frame(SETTINGS, 0, 0, b"") + frame(GOAWAY, 0, 0, bytes(8)))
            if not stays:
                sock.shutdown(socket.SHUT_WR)
            while sock.recv(1 << 16):
                pass
            raise EOFError

        release = threading.Event()
        for stays in (True, False):
            for others, status in (((), 503), ((self.serve(),), 200)):
                with self.subTest(stays=stays, status=status):
                    release.clear()
                    server = self.start(Http2Server(ahead=go_away))
                    weir = self.weir(server, *others, upstream='timeouts = { connect = "20s" }', rules=rule("many", "10/day", key="[]"))
                    client = self.client(weir)
                    streams = [client.open() for _ in range(10)]
                    if not others:
                        self.await_metric(weir, 10, "weir_http2_streams")
                    eventually(lambda server=server: server.connections == 1, "weir connects")
                    release.set()
                    self.assertEqual([client.read(stream).status for stream in streams], [status] * 10)
                    self.assertIn(server.connections, (2,) if not others else range(2, 11))
                    self.assertEqual(weir.metric("weir_upstream_healthy", upstream="api"), len(others) + 1)
                    self.assertEqual(client.get().status, 429 if others else 503, "a request that no server took costs nothing")

    def test_no_request_is_lost_or_doubled_while_the_server_ends_connections(self):
        """The server ends each connection after a few requests. The other requests arrive on another connection."""
        processed, tops, lock = collections.Counter(), collections.Counter(), threading.Lock()

        def reply(request):
            body = request.read_body()
            session = request.connection
            with session.changed:
                if request.stream > session.last:
                    return  # the stream is above the last stream of the GOAWAY
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


def message(content):
    return b"\0" + len(content).to_bytes(4, "big") + content


class Calls(Http2UpstreamTestCase):
    """gRPC calls. The client is python3-grpcio, which sends the head and the messages of a call separately."""

    def serve_calls(self, refuse):
        """Starts a server for two calls. It calls `refuse` for the first call once a message has arrived, and sends each message of the
        second call back."""
        def reply(request):
            if len(server.requests) % 2 == 1:
                request.wait(lambda: request.size > 0)
                return refuse(request)
            request.head(200, [("content-type", "application/grpc")])
            sent = 0
            while sent < request.size or not request.ended:
                request.wait(lambda: request.size > sent or request.ended)
                request.send(request.body[sent:])
                sent = request.sent
            request.send_trailers([("grpc-status", "0")])

        server = self.serve(reply)
        return server

    def channel(self, server, **more):
        self.weir_ = self.weir(server, **more)
        return self.start(grpc.insecure_channel(f"127.0.0.1:{self.weir_.port}", options=[("grpc.enable_retries", 0)]))

    def refusals(self):
        yield "reset", lambda request: request.reset(REFUSED)
        yield "goaway", lambda request: request.connection.goaway(max(request.stream - 2, 0))

    def test_a_draining_server_loses_no_unary_call(self):
        for name, refuse in self.refusals():
            with self.subTest(name):
                say = self.channel(self.serve_calls(refuse)).unary_unary("/chat.Room/Say")
                self.assertEqual([say(b"abc" * 100, timeout=2 * PATIENCE) for _ in range(3)], [b"abc" * 100] * 3)

    def test_a_draining_server_loses_no_stream(self):
        for name, refuse in self.refusals():
            with self.subTest(name):
                contents = queue.Queue()
                call = self.channel(self.serve_calls(refuse)).stream_stream("/chat.Room/Talk")(
                    iter(contents.get, None), timeout=2 * PATIENCE)
                for number in range(20):
                    contents.put(b"%d" % number)
                    self.assertEqual(next(call), b"%d" % number)
                contents.put(None)
                self.assertEqual((list(call), call.code()), ([], grpc.StatusCode.OK))

    def test_messages_of_a_call_that_is_sent_again_are_counted_once(self):
        server = self.serve_calls(lambda request: request.reset(REFUSED))
        limit = rule("chat", "100/day", key='["ip"]', messages='"2/day"', messages_over='"close"')
        call = self.channel(server, rules=limit).stream_stream("/chat.Room/Talk")(iter([b"one", b"two"]), timeout=2 * PATIENCE)
        self.assertEqual(list(call), [b"one", b"two"])
        self.assertEqual(self.weir_.metric("weir_messages_total", rule="chat"), 2)


if __name__ == "__main__":
    main()
