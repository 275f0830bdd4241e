#!/usr/bin/env python3
"""Requests to HTTP/2 servers that end early: the client leaves, or the server resets the stream."""

import threading

from harness import PATIENCE, Client, main, request_bytes
from http2_client import CANCEL, Http2Client
from http2_upstream import BOTH, Http2UpstreamTestCase, ask, of_connection
from wire import CRLF2, Response

INTERNAL = 2


class Resets(Http2UpstreamTestCase):
    def leave(self, client, stream=None):
        if isinstance(client, Http2Client):
            client.reset(stream)
            client.ping()  # continues to read, like a client that keeps its connection
        else:
            client.leave()

    def begin(self, client, head=b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n", **more):
        if isinstance(client, Http2Client):
            return client.open(path="/held", **more)
        client.send(head)
        return None

    def test_weir_resets_only_the_stream_of_a_client_that_leaves(self):
        server = self.serve(lambda request: request.wait_for_reset() if request.path == "/held" else request.answer())
        weir = self.weir(server)
        other = self.client(weir)
        held = other.open(path="/held")
        self.await_requests(server, 1)
        for number, version in enumerate(BOTH, 2):
            with self.subTest(version):
                client = self.client(weir, version)
                stream = self.begin(client)
                request = self.await_requests(server, number)
                self.leave(client, stream)
                self.await_error(request, CANCEL)
        self.assertEqual(other.get("/free").status, 200)
        self.assertEqual((server.requests[0].error, server.connections), (None, 1))
        other.reset(held)
        self.await_error(server.requests[0], CANCEL)

    def test_stream_to_the_server_is_reset_if_the_client_leaves_during_its_upload(self):
        server = self.serve(lambda request: request.wait_for_reset())
        weir = self.weir(server)
        for number, version in enumerate(BOTH, 1):
            with self.subTest(version):
                client = self.client(weir, version)
                stream = self.begin(client, b"POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", method="POST", end=False)
                if stream:
                    client.send_body(stream, b"abc", end=False)
                request = self.await_requests(server, number)
                request.wait(lambda request=request: request.size == 3)
                self.leave(client, stream)
                self.await_error(request, CANCEL)
                self.assertFalse(request.ended)

    def test_stream_to_the_server_is_reset_if_the_client_leaves_during_the_answer(self):
        def reply(request):
            request.head()
            request.send(b"x" * (1 << 24))

        server = self.serve(reply)
        weir = self.weir(server)
        for number, version in enumerate(BOTH, 1):
            with self.subTest(version):
                client = self.client(weir, version)
                stream = self.begin(client)
                request = self.await_requests(server, number)
                if stream:
                    client.wait(lambda client=client, stream=stream: client.answers[stream].size > 0)
                else:
                    client.wire.read_until(CRLF2)
                self.leave(client, stream)
                self.await_error(request, CANCEL)
        self.assertEqual(server.connections, 1)

    def test_reset_before_the_head_gives_502(self):
        weir = self.weir(self.serve(lambda request: request.reset(INTERNAL)), upstream="eject = { failures = 1000 }")
        for version in BOTH:
            for method, body in (("GET", None), ("POST", b"abc")):
                with self.subTest(version, method=method):
                    self.assert_own_error(ask(self.client(weir, version), method, body=body).answer, 502)

    def test_reset_during_the_body_cuts_off_the_answer(self):
        def reply(request):
            request.head(fields=[("content-length", "10")] if request.path == "/known" else [])
            request.send(b"abc")
            go_on.wait(PATIENCE)
            request.reset(INTERNAL)

        go_on = threading.Event()
        weir = self.weir(self.serve(reply), upstream="eject = { failures = 1000 }")
        for version in BOTH:
            for path in ("/known", "/any"):
                with self.subTest(version, path=path):
                    client = self.client(weir, version)
                    go_on.clear()
                    if version == "HTTP/2":
                        stream = client.open(path=path)
                        client.wait(lambda client=client, stream=stream: client.answers[stream].size == 3)
                        go_on.set()
                        got = client.read(stream)
                        self.assertEqual((got.status, got.body, got.ended, got.error), (200, b"abc", False, INTERNAL))
                    else:
                        client.send(request_bytes("GET", path))
                        head = Response(client.wire.read_until(CRLF2))
                        client.wire.read_until(b"abc")
                        go_on.set()
                        rest = client.wire.read_to_end()
                        self.assertEqual(head.status, 200)
                        self.assertNotIn(b"0\r\n\r\n", rest)

    def test_stream_to_the_server_is_reset_after_an_answer_before_the_end_of_the_upload(self):
        """The server still waits for the body, so weir must reset the stream."""
        server = self.serve(lambda request: request.answer(b"no", 403))
        weir = self.weir(server)
        client = self.client(weir)
        got = client.read(client.open("POST", end=False))
        self.assertEqual((got.status, got.body), (403, b"no"))
        old = self.client(weir, "HTTP/1.1")
        old.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
        self.assertEqual(of_connection(old).status, 403)
        for request in server.requests:
            self.assertIn(request.wait_for_reset(), (0, CANCEL))
        self.assertEqual((len(server.requests), server.connections), (2, 1))

    def test_answer_before_the_end_of_the_upload_is_forwarded_completely(self):
        """A server may answer, and then reset the stream with NO_ERROR, because it needs no more of the body (RFC 9113 §8.1)."""
        def reply(request):
            request.answer(b"x" * 100_000, 403)
            request.reset(0)

        weir = self.weir(self.serve(reply))
        client = self.client(weir)
        stream = client.open("POST", end=False)
        got = client.read(stream)
        self.assertEqual((got.status, got.size, got.ended), (403, 100_000, True))
        with Client(weir.port) as old:
            old.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
            got = of_connection(old)
            self.assertEqual((got.status, len(got.body), got.is_whole), (403, 100_000, True))


if __name__ == "__main__":
    main()
