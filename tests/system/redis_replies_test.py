#!/usr/bin/env python3
"""A proxy before Redis whose replies are too long, unrequested, or errors with long texts."""

import contextlib
import itertools
import socket
import threading

from harness import PATIENCE, Redis, TestCase, Upstream, Weir, config, eventually, main, rss_kib, rule

WORD = b"$1048576\r\n" + b"x" * (1 << 20) + b"\r\n"
WORDS = 200


class Impostor:
    """A proxy before a Redis. It forwards everything until `reply`, an iterable of octets, is set. Then it sends `reply` as
    the answer to the next command."""

    def __init__(self, port):
        self.target, self.reply, self.octets, self.ended = port, None, 0, threading.Event()
        self.clients = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, server = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.target))
                self.clients.append(client)
                threading.Thread(target=self.ask, args=(client, server), daemon=True).start()
                threading.Thread(target=self.answer, args=(server, client), daemon=True).start()

    def ask(self, client, server):
        with client, server, contextlib.suppress(OSError):
            while data := client.recv(65536):
                if (reply := self.reply) is None:
                    server.sendall(data)
                    continue
                self.reply = None
                try:
                    for piece in reply:
                        client.sendall(piece)
                        self.octets += len(piece)
                finally:
                    self.ended.set()

    @staticmethod
    def answer(server, client):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)

    def interject(self, octets):
        """Sends the bytes on each connection, although weir has sent no command on it."""
        for client in self.clients:
            with contextlib.suppress(OSError):
                client.sendall(octets)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class RedisReplies(TestCase):
    def setUp(self):
        self.impostor = self.start(Impostor(self.start(Redis()).port))
        state = f'key_secret = "test"\nredis = {{ url = "redis://127.0.0.1:{self.impostor.port}", timeout = "10s" }}'
        text = config(self.start(Upstream()).port, state=state,
                      rules=rule(limit="1000/day", key='["header:X-Name"]', store='"redis"', on_store_failure='"closed"'))
        self.weir = self.start(Weir(text.replace("workers = 2", "workers = 1")))
        eventually(self.weir.is_ready, "weir is connected to Redis")
        self.names = itertools.count()
        self.assertEqual(self.ask(), 200)

    def ask(self):
        return self.weir.get("/", x_name=f"somebody-{next(self.names)}").status

    def well_again(self):
        eventually(lambda: self.ask() == 200, "weir has connected again")

    def test_array_reply_that_is_too_large_takes_no_memory(self):
        before = rss_kib(self.weir.pid)
        self.impostor.reply = itertools.chain([b"*%d\r\n" % WORDS], itertools.repeat(WORD, WORDS))
        self.assertEqual(self.ask(), 503)
        self.assertTrue(self.impostor.ended.wait(PATIENCE))
        self.assertLess(self.impostor.octets, WORDS // 4 * len(WORD), "weir has closed the connection")
        self.assertLess(rss_kib(self.weir.pid) - before, 32 * 1024, "KiB more resident than before")
        self.well_again()

    def test_unrequested_reply_closes_the_connection(self):
        for reply in (b"+OK\r\n", b"$1000000\r\n" + b"x" * 500_000, b"*2\r\n$7\r\nmessage\r\n$1\r\nx\r\n", b"-ERR no\r\n"):
            with self.subTest(reply):
                before = len(self.impostor.clients)
                self.impostor.interject(reply)
                eventually(lambda: len(self.impostor.clients) > before, "weir has connected again")  # noqa: B023
                self.well_again()

    def test_log_shows_the_beginning_of_an_error_reply_without_control_characters(self):
        self.impostor.reply = [b"-ERR out\x1b[31m of " + b"luck" * 4000 + b"\r\n"]
        self.assertEqual(self.ask(), 503)
        line = self.weir.wait_for(r".*luckluck.*")[0].group()
        self.assertLess(len(line), 400)
        self.assertNotIn("\x1b", line)
        self.well_again()


if __name__ == "__main__":
    main()
