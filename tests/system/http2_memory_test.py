#!/usr/bin/env python3
"""A thousand HTTP/2 clients request 100 MiB each and read nothing. weir's memory stays within the bounds of
docs/http2.md."""

import contextlib
import resource
import selectors
import socket
import threading
import time
import unittest

import hpack

from harness import PATIENCE, SANITIZED, Weir, eventually, main, request_bytes, rss_kib
from http2_client import END_HEADERS, END_STREAM, HEADERS, SETTINGS, WINDOW_UPDATE, Http2TestCase, frame, head_block
from http2_websocket_test import switch
from proxy_test import MIB

COUNT = 1000
BUFFER = 4096  # about how many octets the kernel holds for a client
SIZE = 100 * MIB
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE
PIECE = b"x" * (256 << 10)
SETTLED = 1  # seconds in which weir takes no more memory and the server sends no octets
WINDOW = 1 << 30  # octets; more than any answer of this test
# Bounds in KiB of a request, of a session of HTTP/2, and of frames to send (docs/http2.md). They include the memory that malloc
# keeps while these buffers grow.
REQUEST, SESSION, OUTPUT = 80, 24, 112
LARGE = 2 * 128 * 128 / COUNT  # KiB for each client: 128 large blocks of 128 KiB of two workers (docs/design/connections.md)


WAVE = 200  # clients with a WebSocket
BURST = 60_000  # octets that the server sends on each WebSocket


class Pourer(threading.Thread):
    """A server that answers each request with 100 MiB, as fast as weir takes them. One thread serves all connections. `asked`: the
    requests; `poured`: the number of body octets that the server has sent."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=COUNT)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)  # accepted sockets inherit this
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.poured, self.asked, self.left, self.ending = 0, 0, {}, threading.Event()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)

    def run(self):
        while not self.ending.is_set():
            for key, events in self.selector.select(0.1):
                if key.fileobj is self.listener:
                    self.accept()
                elif not self.serve(key.fileobj, events):
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()

    def accept(self):
        sock = self.listener.accept()[0]
        sock.setblocking(False)
        self.left[sock] = 0
        self.selector.register(sock, selectors.EVENT_READ)

    def serve(self, sock, events):
        """Returns false after the end of the connection. A request's head comes in one piece."""
        with contextlib.suppress(BlockingIOError):
            try:
                if events & selectors.EVENT_READ:
                    if not sock.recv(1 << 16):
                        return False
                    sock.sendall(HEAD)
                    self.asked += 1
                    self.left[sock] = SIZE
                    self.selector.modify(sock, selectors.EVENT_WRITE)
                while self.left[sock]:
                    sent = sock.send(PIECE[:self.left[sock]])
                    self.left[sock] -= sent
                    self.poured += sent
                self.selector.modify(sock, selectors.EVENT_READ)
            except ConnectionError:
                return False
        return True

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(PATIENCE)


def ask(port, octets):
    """Connects, sends octets and reads nothing."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    sock.connect(("127.0.0.1", port))
    sock.sendall(octets)
    return sock


def http2_request(window, request=frame(HEADERS, END_STREAM | END_HEADERS, 1, head_block())):
    """Returns the octets by which a client requests an answer. `window`: octets that the client permits on each stream."""
    settings = b"\0\4" + window.to_bytes(4, "big")
    return (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, settings) +
            frame(WINDOW_UPDATE, 0, 0, WINDOW.to_bytes(4, "big")) + request)


@unittest.skipIf(SANITIZED, "a sanitizer keeps freed memory")
class Memory(Http2TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 4 * COUNT:
            raise unittest.SkipTest(f"{4 * COUNT} descriptors are needed")
        cls.addClassCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def setUp(self):
        self.upstream = self.start(Pourer())

    def settle(self, weir):
        """Waits until the server sends no more and weir takes no more memory. Returns the KiB that weir has."""
        state, since = None, time.monotonic()
        while time.monotonic() - since < SETTLED:
            now = (self.upstream.poured, rss_kib(weir.pid))
            if now != state:
                state, since = now, time.monotonic()
            time.sleep(0.05)
        return rss_kib(weir.pid)

    def kib_each(self, case, octets):
        """Returns the KiB that weir takes for each of a thousand clients that send these octets."""
        weir = self.weir(doors=(False,), server='write_timeout = "1h"\nmin_rate = "0B"')
        before = rss_kib(weir.pid)
        for _ in range(COUNT):
            self.start(ask(weir.port, octets))
        eventually(lambda: self.upstream.asked == COUNT, "all requests reach the server")
        each = (self.settle(weir) - before) / COUNT
        self.assertEqual(weir.metric("weir_connections_open"), COUNT)
        print(f"\n{COUNT} answers of 100 MiB, {case}: {each:.1f} KiB each, {self.upstream.poured >> 20} MiB left the server", flush=True)
        return each

    def test_answers_to_clients_that_open_no_window_take_bounded_memory(self):
        self.assertLess(self.kib_each("no window", http2_request(0)), REQUEST + SESSION)

    def test_answers_that_clients_do_not_read_take_bounded_memory(self):
        self.assertLess(self.kib_each("not read", http2_request(WINDOW)), REQUEST + SESSION + OUTPUT + LARGE)

    def test_http1_answers_that_clients_do_not_read_take_bounded_memory(self):
        self.assertLess(self.kib_each("HTTP/1.1, not read", request_bytes("GET", "/")), REQUEST + LARGE)


@unittest.skipIf(SANITIZED, "a sanitizer keeps freed memory")
class IdleWebSockets(Http2TestCase):
    """Clients whose only stream is an idle WebSocket."""

    PSEUDO = ((":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/"), (":authority", "localhost"))

    def open_some(self, weir):
        """Opens WebSockets of a wave of clients, and reads a burst of octets on each."""
        head = hpack.Encoder().encode([(name, value, True) for name, value in (*self.PSEUDO, ("sec-websocket-version", "13"))])
        octets = http2_request(WINDOW, frame(HEADERS, END_HEADERS, 1, head))
        for _ in range(WAVE):
            sock = self.start(socket.create_connection(("127.0.0.1", weir.port)))
            sock.settimeout(PATIENCE)
            sock.sendall(octets)
            got = 0
            while got < BURST:
                piece = sock.recv(1 << 16)
                self.assertTrue(piece, "weir has closed the connection")
                got += len(piece)
        self.assertGreater(got, BURST)
        return rss_kib(weir.pid)

    def test_connections_with_idle_websockets_hold_no_buffers(self):
        """The second wave uses the memory of the buffers that the first wave has given back after two seconds of silence."""
        self.upstream.reply = lambda exchange: (switch(exchange, bytes(BURST)), exchange.wait_for_close())
        weir = self.start(Weir(self.text(doors=(False,)).replace("workers = 2", "workers = 1"), self.files))
        before = rss_kib(weir.pid)
        first = self.open_some(weir)
        time.sleep(2 + 2)  # two seconds of silence, and then a tick, which may come a second later
        second = self.open_some(weir)
        each = ((first - before) / WAVE, (second - first) / WAVE)
        print(f"\n{WAVE} idle WebSockets: {each[0]:.1f} KiB each, the next {each[1]:.1f} KiB each", flush=True)
        self.assertEqual(weir.metric("weir_tunnels_open"), 2 * WAVE)
        self.assertLess(each[1], each[0] - 48)


if __name__ == "__main__":
    main()
