#!/usr/bin/env python3
"""Clients that stop reading: if weir could send a response only in part, it sends nothing else on that connection.

A client requests pages until its socket is full, and reads none. Then it sends a request to which weir responds with an error
and a close. After that, the client reads to the end. It must find complete responses of weir, and at most one that is cut off."""

import contextlib
import json
import pathlib
import random
import socket
import ssl
import tempfile

from harness import PATIENCE, TestCase, Upstream, Weir, client_tls, config, eventually, main, make_certificate, rule
from wire import CRLF2, Head

PAGE = b"p" * 1000
EARLY = b"e" * 40
GET = b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n"
MOST = 4000  # more pages than fit into any socket's buffer


class Reader:
    """A client of a TCP port or a unix socket. It reads nothing before `read_to_end` is called."""

    def __init__(self, address, tls):
        sock = socket.socket(socket.AF_INET if isinstance(address, int) else socket.AF_UNIX)
        sock.settimeout(PATIENCE)
        if isinstance(address, int):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", address) if isinstance(address, int) else address)
        self.sock = tls.wrap_socket(sock, server_hostname="localhost", suppress_ragged_eofs=False) if tls else sock

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        with contextlib.suppress(OSError):  # weir may have closed the connection
            self.sock.sendall(data)

    def read_to_end(self):
        """Returns all bytes, and true if the connection ended without an error."""
        read = b""
        try:
            while piece := self.sock.recv(1 << 18):
                read += piece
        except OSError:
            return read, False
        return read, True


def texts_in(read):
    """Returns the responses that a client read, as (status, head, body), and whether the last one is cut off. Raises ValueError
    if the bytes are no HTTP."""
    texts = []
    while read:
        raw, mark, behind = read.partition(CRLF2)
        if not b"HTTP/1.1 ".startswith(raw[:9]) or b"HTTP/1.1" in raw[1:]:
            raise ValueError(f"no head behind {len(texts)} answers: {read[:400]!r}")
        if not mark:
            return texts, True
        status, size = int(raw[9:12]), int(Head(raw)["content-length"] or 0)
        body, read = behind[:size], behind[size:]
        if status >= 400 and len(body) == size:
            json.loads(body)
        elif not any(expected.startswith(body) for expected in (PAGE, EARLY)) if status < 400 else b"HTTP/1.1" in body:
            raise ValueError(f"no body behind {len(texts)} answers: {raw + mark + body[:400]!r}")
        if len(body) < size:
            return texts, True
        texts.append(status)
    return texts, False


def is_read(sock):
    """Returns true if the other end, a process on this machine, has read everything that was sent to it."""
    def hexed(address):
        return f"{int.from_bytes(socket.inet_aton(address[0]), 'little'):08X}:{address[1]:04X}"
    try:
        ends = [hexed(sock.getpeername()), hexed(sock.getsockname())]
    except OSError:  # the peer has closed
        return True
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1:3] == ends:
            return fields[4].endswith(":00000000")
    return True


class PartialWrites(TestCase):
    SERVER = 'write_timeout = "300ms"\nbody_timeout = "300ms"\nidle_timeout = "300ms"\nmax_body = "1KiB"\n'
    ROUTES = f"""
[[route]]
match = {{ path = "/page" }}
respond = {{ status = 200, body = "{PAGE.decode()}" }}
[[route]]
upstream = "api"
"""
    RULES = rule("words", "1000000/s", match='{ path = "/words", body_contains = ["secret"] }')  # weir itself sends 100 Continue

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.files = make_certificate(folder)
        cls.tls = client_tls(cls.files["edge.crt"])
        cls.tls.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # Debian's Python sets this option, which hides an end without close_notify

    def setUp(self):
        self.folder = self.start(tempfile.TemporaryDirectory(prefix="weir-owed-"))
        self.seed = random.randrange(1 << 32)
        self.random = random.Random(self.seed)

    def start_weir(self, upstream=1):
        tls = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }\n'
        more = tls + "".join((f'[[ listener ]]\naddress = "unix:{self.folder}/plain"\n', f'[[ listener ]]\naddress = "unix:{self.folder}/tls"\n', tls,
                              '[[listener]]\naddress = "127.0.0.1:0"\n'))
        self.weir = self.start(Weir(config(upstream, server=self.SERVER, listener=more, routes=self.ROUTES, rules=self.RULES), self.files))

    def given_up(self):
        return self.weir.metric("weir_client_errors_total")

    def pages_that_fit(self, address, tls):
        """Returns how many pages weir can send to a client that reads nothing."""
        before = self.weir.metric("weir_connections_accepted_total")
        with Reader(address, tls) as client:
            client.send(GET * MOST)
            eventually(lambda: self.weir.metric("weir_connections_accepted_total") > before, "weir has accepted the client")
            eventually(lambda: self.weir.metric("weir_connections_open") == 0, "weir has closed the connection")
            return len(texts_in(client.read_to_end()[0])[0])

    def at_every_level(self, ask):
        """Calls ask(clients) with clients that have requested as many pages as fit into their sockets, or fewer. Makes weir give
        up these clients. Returns the statuses that each client read."""
        everything = []
        for address, tls in ((f"{self.folder}/tls", self.tls), (f"{self.folder}/plain", None), (self.weir.ports[0], self.tls),
                             (self.weir.ports[1], None)):
            fit = self.pages_that_fit(address, tls)
            levels = sorted([0, 1, *range(max(0, fit - 5), fit), *[fit] * 4, *(self.random.randrange(fit) for _ in range(2))])
            before = self.given_up()
            with contextlib.ExitStack() as stack:
                clients = [stack.enter_context(Reader(address, tls)) for _ in levels]
                for client, level in zip(clients, levels, strict=True):
                    client.send(GET * level)
                ask(clients)
                eventually(lambda: self.given_up() >= before + len(levels), "weir has closed all connections")
                results = [client.read_to_end() for client in clients]
            for level, (read, clean) in zip(levels, results, strict=True):
                with self.subTest(address=str(address), level=level, fit=fit, seed=self.seed):
                    statuses, cut = texts_in(read)
                    self.assertFalse(tls and clean and cut, "a truncated response ends with close_notify")
                    self.assertLessEqual(statuses.count(200), level, "a truncated response looks complete")
                    everything.append(statuses)
        return everything

    def test_response_408_never_follows_a_partly_written_100_continue(self):
        self.start_weir()

        def ask(clients):
            for client in clients:
                client.send(b"POST /words HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")

        everything = self.at_every_level(ask)
        self.assertIn([100, 408], everything)
        self.assertIn([200, 100, 408], everything)

    def test_error_response_never_follows_a_response_that_was_partly_written(self):
        """The server responds before it has received the whole body. Then the body exceeds max_body."""
        asked = []

        def early(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(EARLY) + EARLY[:20])
            asked.append(exchange)
            exchange.wait_for_close()

        self.start_weir(self.start(Upstream(early)).port)

        def ask(clients):
            before, given_up = len(asked), self.given_up()
            for client in clients:
                client.send(b"POST /early HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
            eventually(lambda: len(asked) - before + self.given_up() - given_up >= len(clients),
                       "every client was answered or disconnected")
            eventually(lambda: all(is_read(exchange.wire.sock) for exchange in asked[before:]), "weir has read the early responses")
            for client in clients:
                client.send(b"800\r\n" + b"b" * 2048 + b"\r\n0\r\n\r\n")

        self.at_every_level(ask)

    def test_response_400_never_follows_a_partly_written_admin_page(self):
        self.start_weir()

        def ask(clients):
            for client in clients:
                client.send(b"NO HTTP\r\n\r\n")

        self.assertIn([200, 400], self.at_every_level(ask))


if __name__ == "__main__":
    main()
