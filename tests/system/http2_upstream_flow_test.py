#!/usr/bin/env python3
"""Flow control towards HTTP/2 servers: slow readers on either side bound what weir keeps, and delay no other request."""

import socket
import threading
import time

from harness import PATIENCE, SANITIZED, eventually, main, rss_kib
from http2_client import END_HEADERS, HEADERS, PING, frame
from http2_server import FOREVER, WINDOW, hello, literal
from http2_upstream import BOTH, Http2UpstreamTestCase, of_connection, of_stream

KIB, MIB = 1 << 10, 1 << 20


def settled(value, seconds=0.3):
    """Waits until the value has not changed for some time, and returns it. The test bounds the value from above, so a busy machine
    can make it pass too early but never fail."""
    seen, since, deadline = value(), time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() < min(deadline, since + seconds):
        time.sleep(0.02)
        if (now := value()) != seen:
            seen, since = now, time.monotonic()
    return seen


class SlowClients(Http2UpstreamTestCase):
    def large(self, size):
        """Returns a server that sends `size` octets for /large."""
        def reply(request):
            if request.path != "/large":
                return hello(request)
            request.head(fields=[("content-length", str(size))])
            return request.send(b"x" * size, end=True)

        return self.serve(reply)

    def test_weir_buffers_little_of_an_answer_that_its_client_does_not_read(self):
        server = self.large(8 * MIB)
        weir = self.weir(server)
        client = self.client(weir, window=1000)
        stream = client.open(path="/large")
        self.assertTrue(client.wait(lambda: client.answers[stream].size == 1000))
        request = server.requests[0]
        self.assertLess(settled(lambda: request.sent), 256 * KIB)
        self.assertEqual([client.get().status for _ in range(5)], [200] * 5, "the other requests go on")
        client.permits = True
        client.permit(FOREVER - 1000, stream)
        client.permit(FOREVER - 65535)
        got = of_stream(client.read(stream))
        self.assertEqual((len(got.body), got.is_whole, server.connections), (8 * MIB, True, 1))

    def test_weir_buffers_little_of_an_answer_that_an_http_1_1_client_does_not_read(self):
        server = self.large(32 * MIB)
        weir = self.weir(server)
        client = self.client(weir, "HTTP/1.1")
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        request = self.await_requests(server, 1)
        self.assertLess(settled(lambda: request.sent), 8 * MIB, "the kernel's buffers hold most of it")
        self.assertEqual(self.client(weir).get().status, 200)
        got = of_connection(client)
        self.assertEqual((len(got.body), got.is_whole), (32 * MIB, True))

    def test_many_slow_clients_delay_no_other_client_and_take_bounded_memory(self):
        """Together the clients leave more octets unread than the window of any connection."""
        server = self.large(4 * MIB)
        weir = self.weir(server, upstream="max_streams = 1000")
        for _ in range(5):
            self.client(weir).get()
        before = rss_kib(weir.pid)
        slow = [self.client(weir, window=0) for _ in range(2)]
        streams = [client.open(path="/large") for client in slow for _ in range(90)]
        self.assertEqual(len(streams), 180)
        self.await_requests(server, 185)
        sent = settled(lambda: sum(request.sent for request in server.requests))
        self.assertLess(sent, 180 * 128 * KIB)
        quick = self.client(weir)
        self.assertEqual([quick.get().status for _ in range(20)], [200] * 20)
        got = quick.request("GET", "/large")
        self.assertEqual((got.size, got.ended), (4 * MIB, True))
        self.assertEqual(server.connections, 1)
        if not SANITIZED:
            self.assertLess(rss_kib(weir.pid) - before, 180 * 256)
        for client in slow:
            client.sock.close()
        eventually(lambda: sum(request.error is not None for request in server.requests) == 180, "all slow streams are reset")
        got = quick.request("GET", "/large")
        self.assertEqual((got.size, got.ended), (4 * MIB, True), "the windows of the reset streams are free again")

    def test_octets_of_cancelled_answers_are_returned_to_the_window(self):
        server = self.large(4 * MIB)
        client = self.client(self.weir(server), window=0)
        for number in range(60):
            stream = client.open(path="/large")
            request = self.await_requests(server, number + 1)
            eventually(lambda request=request: request.sent >= 32 * KIB, "the window is in use")
            client.reset(stream)
            request.wait_for_reset()
        client.h2.update_settings({WINDOW: FOREVER})
        client.permits = True
        client.permit(FOREVER - 65535)
        got = client.request("GET", "/large")
        self.assertEqual((got.size, got.ended, server.connections), (4 * MIB, True, 1))


class SlowServers(Http2UpstreamTestCase):
    def test_upload_waits_until_the_server_opens_its_window(self):
        def reply(request):
            if request.path == "/large":
                go_on.wait(PATIENCE)
                while not request.ended:
                    time.sleep(0.001)
                    with request.connection.changed:
                        size = request.size - granted[0]
                        if size > 0:
                            granted[0] += size
                            request.connection.permit(size, request.stream)
                            request.connection.permit(size)
            request.read_body()
            request.answer(str(request.size).encode())

        go_on, granted = threading.Event(), [0]
        server = self.serve(reply, settings={WINDOW: 1000}, permits=False)
        weir = self.weir(server)
        client = self.client(weir)
        self.assertEqual(client.request("POST", body=b"x" * 1000).body, b"1000")
        server.sessions[0].permit(1000)
        stream = client.open("POST", "/large", end=False)
        body = b"x" * (2 * MIB)
        sent = 0
        with client.patience(0.5):
            while size := min(len(body) - sent, client.h2.local_flow_control_window(stream), 16384) or client.receive():
                if size is not True:
                    client.h2.send_data(stream, body[sent:sent + size])
                    client.push()
                    sent += size
        self.assertLess(sent, 256 * KIB, "weir permits the client little")
        self.assertEqual(server.requests[1].size, 1000)
        self.assertEqual(client.get().status, 200, "the other requests go on")
        self.assertEqual(client.request("POST", body=b"abc").body, b"3")
        go_on.set()
        client.send_body(stream, body[sent:])
        self.assertEqual(client.read(stream).body, str(len(body)).encode())
        self.assertEqual(server.connections, 1)

    def test_upload_to_a_server_that_reads_nothing_takes_bounded_memory(self):
        server = self.serve()
        weir = self.weir(server, upstream="max_streams = 1000")
        client = self.client(weir)
        client.get()
        server.sessions[0].reads.clear()
        before = rss_kib(weir.pid)
        streams = [client.open("POST", end=False) for _ in range(20)]
        with client.patience(0.5):
            while True:
                for stream in streams:
                    while size := min(client.h2.local_flow_control_window(stream), 16384):
                        client.h2.send_data(stream, b"x" * size)
                client.push()
                if not client.receive():
                    break
        if not SANITIZED:
            self.assertLess(rss_kib(weir.pid) - before, 20 * 256)
        server.sessions[0].reads.set()
        for stream in streams:
            client.send_body(stream, b"x" * 100_000)
        self.assertEqual([client.read(stream).status for stream in streams], [200] * 20)

    def test_slow_answer_delays_no_other_answer(self):
        release = threading.Event()

        def reply(request):
            if request.path == "/slow":
                request.head()
                request.send(b"a")
                release.wait(PATIENCE)
                request.send(b"z", end=True)
            else:
                hello(request)

        server = self.serve(reply)
        client = self.client(self.weir(server))
        streams = [client.open(path="/slow") for _ in range(20)]
        client.wait(lambda: all(client.answers[stream].size for stream in streams))
        self.assertEqual([client.get().status for _ in range(50)], [200] * 50)
        release.set()
        self.assertEqual([client.read(stream).body for stream in streams], [b"az"] * 20)
        self.assertEqual(server.connections, 1)

    def test_many_large_answers_arrive_unchanged_over_one_connection(self):
        def reply(request):
            request.answer(bytes([int(request.path[1:])]) * MIB)

        server = self.serve(reply)
        client = self.client(self.weir(server))
        streams = [client.open(path=f"/{number}") for number in range(20)]
        for number, stream in enumerate(streams):
            self.assertTrue(client.read(stream).body == bytes([number]) * MIB, number)
        self.assertEqual(server.connections, 1)

    def test_padding_octets_are_returned_to_the_flow_control_windows(self):
        def reply(request):
            if request.path == "/":
                return request.answer()
            request.head()
            for _ in range(3 * MIB // 255):
                request.wait(lambda: request.connection.h2.local_flow_control_window(request.stream) > 300)
                with request.using() as state:
                    state.send_data(request.stream, b"a", pad_length=255)
            return request.send(b"", end=True)

        server = self.serve(reply)
        client = self.client(self.weir(server))
        self.assertEqual(client.get("/padded").size, 3 * MIB // 255)
        self.assertEqual(client.get().status, 200)
        self.assertEqual(server.connections, 1)

    def test_endless_interim_answers_take_bounded_memory(self):
        """Flow control does not apply to interim answers. The client reads none of them."""
        def reply(request):
            if request.path == "/":
                return request.answer()
            try:
                for _ in range(4000):
                    request.raw((HEADERS, END_HEADERS, hint))
                return request.answer()
            finally:
                sent.set()

        hint = literal((":status", "103"), ("link", "a" * 14_000))
        server = self.serve(reply)
        weir = self.weir(server)
        self.assertEqual(self.client(weir).get().status, 200)
        for version in BOTH:
            with self.subTest(version):
                sent, before = threading.Event(), rss_kib(weir.pid)
                client = self.client(weir, version)
                if version == "HTTP/2":
                    client.open(path="/hints")
                else:
                    client.send(b"GET /hints HTTP/1.1\r\nHost: a\r\n\r\n")
                sent.wait(2 * PATIENCE)
                self.assertEqual(self.client(weir).get().status, 200, "weir has read it all")
                if not SANITIZED:
                    self.assertLess(rss_kib(weir.pid) - before, 16 * KIB)

    def test_endless_pings_take_bounded_memory(self):
        """The server sends PINGs and reads no answer to them."""
        def reply(request):
            if request.path == "/":
                return request.answer()
            request.connection.reads.clear()
            try:
                for _ in range(200):
                    request.connection.raw(frame(PING, 0, 0, bytes(8)) * 1000)
            finally:
                request.connection.reads.set()
                sent.set()
            return request.answer()

        sent = threading.Event()
        server = self.serve(reply)
        weir = self.weir(server)
        client = self.client(weir)
        self.assertEqual(client.get().status, 200)
        before = rss_kib(weir.pid)
        stream = client.open(path="/ping")
        sent.wait(2 * PATIENCE)
        self.assertIn(client.read(stream).status, (200, 502))
        self.assertEqual(client.get().status, 200)
        if not SANITIZED:
            self.assertLess(rss_kib(weir.pid) - before, 8 * KIB)


if __name__ == "__main__":
    main()
