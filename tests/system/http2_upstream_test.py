#!/usr/bin/env python3
"""Requests and answers between clients and servers of HTTP/1.1 and HTTP/2: bodies, fields, trailers, interim answers."""

import threading

from harness import PATIENCE, Upstream, answer, chunked, main, request_bytes
from http2_client import WINDOW_UPDATE, frame
from http2_upstream import BOTH, Http2UpstreamTestCase, ask, of_connection, of_stream
from wire import CRLF2, Response

SIZES = (0, 1, 16 << 10, 64 << 10, (64 << 10) + 1, 1 << 20)


def echo(request):
    """Answers with the body of the request. The path decides whether the answer has a content-length."""
    request.answer(request.read_body(), length=request.path == "/known")


def echo_of_http1(exchange):
    body = exchange.read_body()
    if exchange.target == "/known":
        exchange.send(answer(body))
    else:
        exchange.send(answer(length=False, body=chunked(body), headers="Transfer-Encoding: chunked\r\n"))


class AllVersions(Http2UpstreamTestCase):
    """Each client version with each server version."""

    def pairs(self, reply, reply_of_http1, **more):
        for served in BOTH:
            if served == "HTTP/2":
                weir = self.weir(self.serve(reply), **more)
            else:
                weir = self.weir(self.start(Upstream(reply_of_http1)), protocol="http/1.1", **more)
            for spoken in BOTH:
                with self.subTest(client=spoken, server=served):
                    yield self.client(weir, spoken), spoken, served

    def test_bodies_of_all_sizes_pass_in_both_directions(self):
        for client, _, _ in self.pairs(echo, echo_of_http1):
            for size in SIZES:
                body = bytes(range(251)) * (size // 251 + 1)
                for path in ("/known", "/any"):
                    for streamed in (False, True):
                        got = ask(client, "POST", path, body=body[:size], streamed=streamed)
                        self.assertEqual((got.status, len(got.body), got.is_whole), (200, size, True), (path, streamed))
                        self.assertTrue(got.body == body[:size])
                        if path == "/known":
                            self.assertEqual(got.answer["content-length"], str(size))

    def test_answers_without_a_body_are_forwarded(self):
        def reply(request):
            request.read_body()
            status = int(request.path[1:])
            request.head(status, [("x-a", "b"), *([] if status == 204 else [("content-length", "1000")])], end=True)

        def reply_of_http1(exchange):
            status = int(exchange.target[1:])
            length = "" if status == 204 else "Content-Length: 1000\r\n"
            exchange.send(answer(b"", f"{status} Any", "X-A: b\r\n" + length, length=False))

        for client, _, _ in self.pairs(reply, reply_of_http1):
            for method, status in (("HEAD", 200), ("GET", 204), ("GET", 304), ("HEAD", 404), ("DELETE", 204)):
                got = ask(client, method, f"/{status}")
                length = None if status == 204 else "1000"
                self.assertEqual((got.status, got.body, got.is_whole, got.answer["x-a"]), (status, b"", True, "b"))
                self.assertEqual(got.answer["content-length"], length, (method, status))

    def test_trailers_reach_clients_of_http2(self):
        def reply(request):
            request.answer(b"abc", length=False, trailers=[("x-sum", "7")])

        def reply_of_http1(exchange):
            exchange.send(answer(length=False, body=b"3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n", headers="Transfer-Encoding: chunked\r\n"))

        for client, spoken, _ in self.pairs(reply, reply_of_http1):
            for _ in range(2):
                got = ask(client)
                self.assertEqual((got.status, got.body, got.is_whole), (200, b"abc", True))
                if spoken == "HTTP/2":
                    self.assertEqual(got.answer.trailers, [("x-sum", "7")])

    def test_trailers_of_a_request_do_not_change_its_body(self):
        for client, spoken, served in self.pairs(echo, echo_of_http1):
            if spoken == "HTTP/2":
                stream = client.open("POST", "/known", end=False)
                client.h2.send_data(stream, b"abc")
                client.h2.send_headers(stream, [("x-sum", "7")], end_stream=True)
                client.push()
                got = of_stream(client.read(stream))
            else:
                client.send(request_bytes("POST", "/known", {"Transfer-Encoding": "chunked"}) + b"3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n")
                got = of_connection(client)
            self.assertEqual((got.status, got.body), (200, b"abc"), served)

    def test_interim_answer_103_is_forwarded_before_the_answer(self):
        def reply(request):
            request.interim(103, [("link", "</a.css>")])
            request.interim(103, [("link", "</b.css>")])
            request.answer()

        def reply_of_http1(exchange):
            exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\n" + answer())

        for client, _, _ in self.pairs(reply, reply_of_http1):
            got = ask(client)
            self.assertEqual((got.interim, got.status, got.body), ((103, 103), 200, b"ok"))


class Continue(Http2UpstreamTestCase):
    def expect(self, client, version):
        """Sends a head with Expect, and returns a function that sends the body and reads the answer."""
        fields = [("expect", "100-continue"), ("content-length", "4")]
        if version == "HTTP/2":
            stream = client.open("POST", "/", fields, end=False)
            client.wait(lambda: client.answers[stream].interim or client.answers[stream].status)

            def finish():
                client.send_body(stream, b"abcd")
                return of_stream(client.read(stream))

            return client.answers[stream].interim, finish
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        head = Response(client.wire.read_until(CRLF2))

        def finish_http1():
            client.send(b"abcd")
            return of_connection(client, "POST")

        return head.status == 100, finish_http1

    def test_server_that_sends_100_continue_gets_the_body(self):
        def reply(request):
            self.assertEqual(request["expect"], "100-continue")
            self.assertEqual(request.size, 0)
            request.interim(100)
            request.answer(request.read_body())

        weir = self.weir(self.serve(reply), upstream='timeouts = { expect_continue = "20s" }')
        for version in BOTH:
            with self.subTest(version):
                asked, finish = self.expect(self.client(weir, version), version)
                self.assertTrue(asked)
                got = finish()
                self.assertEqual((got.status, got.body), (200, b"abcd"))

    def test_weir_sends_100_continue_if_the_server_does_not(self):
        weir = self.weir(self.serve(echo), upstream='timeouts = { expect_continue = "50ms" }')
        for version in BOTH:
            with self.subTest(version):
                asked, finish = self.expect(self.client(weir, version), version)
                self.assertTrue(asked)
                self.assertEqual(finish().body, b"abcd")

    def test_refusal_by_a_server_that_sends_no_100_continue_reaches_the_client_before_the_upload(self):
        weir = self.weir(self.serve(lambda request: request.answer(b"too large", 413)), upstream='timeouts = { expect_continue = "20s" }')
        client = self.client(weir)
        stream = client.open("POST", "/", [("expect", "100-continue"), ("content-length", "4")], end=False)
        got = of_stream(client.read(stream))
        self.assertEqual((got.status, got.body, got.interim), (413, b"too large", ()))
        client = self.client(weir, "HTTP/1.1")
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        self.assertEqual(of_connection(client).body, b"too large")


class Fields(Http2UpstreamTestCase):
    def test_http2_server_gets_pseudo_headers_and_no_connection_fields(self):
        server = self.serve()
        weir = self.weir(server)
        for number, version in enumerate(BOTH):
            client = self.client(weir, version)
            self.assertEqual(ask(client, "PUT", "/a?b=c", [("x-a", "1"), ("cookie", "a=b")], b"abc").status, 200)
            request = server.requests[number]
            pseudo = [pair for pair in request.fields if pair[0].startswith(":")]
            self.assertEqual(sorted(pseudo), [(":authority", "localhost"), (":method", "PUT"), (":path", "/a?b=c"), (":scheme", "http")])
            self.assertEqual(request.fields[:4], pseudo, "pseudo-header fields come first")
            names = {name for name, _ in request.fields}
            self.assertLessEqual({"x-a", "via", "x-forwarded-for", "content-length", "cookie"}, names)
            self.assertEqual(names & {"connection", "host", "keep-alive", "transfer-encoding", "upgrade", "te"}, set())
            self.assertEqual((request["x-a"], request["content-length"], request.body), ("1", "3", b"abc"))

    def test_grpc_call_to_an_http2_server_has_te_trailers(self):
        server = self.serve(lambda request: request.answer(b"\0\0\0\0\0", fields=[("content-type", "application/grpc")], length=False,
                                                           trailers=[("grpc-status", "0"), ("grpc-message", "fine")]))
        client = self.client(self.weir(server))
        got = client.request("POST", "/a.B/C", [("content-type", "application/grpc"), ("te", "trailers")], b"\0\0\0\0\0")
        self.assertEqual(server.requests[0]["te"], "trailers")
        self.assertEqual((got.status, got.body, got.trailers), (200, b"\0\0\0\0\0", [("grpc-status", "0"), ("grpc-message", "fine")]))

    def test_upgrade_is_not_requested_from_an_http2_server(self):
        server = self.serve()
        client = self.client(self.weir(server), "HTTP/1.1")
        got = client.get("/chat", Connection="Upgrade", Upgrade="websocket", Sec_WebSocket_Version="13", Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==")
        self.assertEqual((got.status, got.body), (200, b"ok"))
        self.assertNotIn("upgrade", server.requests[0])

    def test_cookies_and_repeated_fields_of_an_answer_stay_apart(self):
        fields = [("set-cookie", "a=1"), ("set-cookie", "b=2"), ("x-twice", "1"), ("x-twice", "2"), (b"x-bytes", b"\xe4\xff"), ("x-empty", "")]
        weir = self.weir(self.serve(lambda request: request.answer(fields=fields)))
        for version in BOTH:
            got = ask(self.client(weir, version)).answer
            self.assertEqual((got.all("set-cookie"), got.all("x-twice"), got["x-bytes"], got["x-empty"]),
                             (["a=1", "b=2"], ["1", "2"], "\xe4\xff", ""), version)


class SmallMessages(Http2UpstreamTestCase):
    def test_client_may_send_window_updates_after_each_small_message(self):
        """gRPC libraries send a WINDOW_UPDATE after each message. The messages are small because the server sends small messages,
        not because the window is small."""
        go_on = threading.Semaphore(0)

        def reply(request):
            request.head()
            for _ in range(1500):
                request.send(b"123456789")
                go_on.acquire(timeout=PATIENCE)
            request.send(b"", end=True)

        client = self.client(self.weir(self.serve(reply)))
        client.permits = False
        stream = client.open()
        for number in range(1, 1501):
            client.wait(lambda number=number: client.answers[stream].size >= 9 * number)
            client.send(frame(WINDOW_UPDATE, 0, stream, (9).to_bytes(4, "big")))
            go_on.release()
        got = client.read(stream)
        self.assertEqual((got.size, got.ended, client.goaways), (9 * 1500, True, []))


if __name__ == "__main__":
    main()
