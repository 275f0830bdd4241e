"""An upstream that behaves as the test requires, and records its requests."""

import contextlib
import socket
import ssl
import threading
import time

from wire import CRLF2, Head, Wire


def answer(body=b"ok", status="200 OK", headers="", length=True):
    """Returns a complete response as bytes. `headers` consists of whole lines that end in CRLF."""
    framing = f"Content-Length: {len(body)}\r\n" if length else ""
    return f"HTTP/1.1 {status}\r\n{framing}{headers}\r\n".encode() + body


class Exchange:
    """One request as the upstream received it, with functions that send the response."""

    def __init__(self, wire, connection):
        self.head = Head(wire.read_until(CRLF2))
        self.arrived = time.monotonic()
        self.wire, self.connection = wire, connection
        self.method, self.target, self.version = self.head.line.split(" ")
        self.body = None

    def read_body(self):
        if self.body is None:
            if self.head["transfer-encoding"]:
                self.body = self.wire.read_chunked()
            else:
                self.body = self.wire.read_exactly(int(self.head["content-length"] or 0))
        return self.body

    def send(self, data):
        self.wire.sock.sendall(data)

    def close(self):
        self.wire.sock.shutdown(socket.SHUT_RDWR)

    def wait_for_close(self):
        """Waits until the other side closes the connection. Used for a server that never responds."""
        with contextlib.suppress(OSError):
            while self.wire.fill():
                pass


class Upstream:
    """An upstream server. `reply`: the bytes that it sends after each request, or a function of the Exchange. `port`: 0 means a
    free port. `bound`: a socket of bound_socket(), in place of `port`. `tls`: an ssl.SSLContext. `host`: an address of this
    machine. `ahead`: a function that is called with the socket of each new connection."""

    def __init__(self, reply=answer(), port=0, tls=None, host="127.0.0.1", ahead=None, bound=None):
        self.reply, self.tls, self.ahead = reply, tls, ahead
        self.exchanges, self.failures = [], []
        self.connections = 0
        self.open = set()
        self.listener = bound or socket.create_server((host, port))
        self.listener.listen(1024)
        self.port = self.listener.getsockname()[1]
        self.address = f"{host}:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.connections += 1
                self.open.add(sock)
                threading.Thread(target=self.serve, args=(sock, self.connections), daemon=True).start()

    def serve(self, sock, number):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire = Wire(sock)
        try:
            if self.ahead:
                self.ahead(sock)
            if self.tls:
                self.open.discard(sock)
                sock = wire.sock = self.tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                self.open.add(sock)
                self.shake_hands(sock)
            while True:
                exchange = Exchange(wire, number)
                self.exchanges.append(exchange)
                if callable(self.reply):
                    self.reply(exchange)
                else:
                    exchange.read_body()
                    exchange.send(self.reply)
        except (EOFError, OSError, ValueError) as fault:
            if str(fault) != "ended after b''":
                self.failures.append(fault)  # a request that was cut short, or is not HTTP; a test may check it
        finally:
            self.open.discard(sock)
            sock.close()

    @staticmethod
    def shake_hands(sock):
        """After a failed handshake, reads until the client closes. If unread bytes were left, the close would be a reset,
        which may overtake the alert."""
        try:
            sock.do_handshake()
        except ssl.SSLError:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65536):
                    pass
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for sock in list(self.open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


KEPT_CLOSED = []


def bound_socket():
    """Returns a socket that refuses connections to its port, until Upstream(bound=…) makes it listen. No other program can listen on
    the port."""
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    return probe


def closed_port():
    """Returns a port that refuses connections. The port stays bound, so that no other program listens on it."""
    KEPT_CLOSED.append(bound_socket())
    return KEPT_CLOSED[-1].getsockname()[1]


def at_one_port(kind, *replies):
    """Returns a server of this kind for each reply, at 127.0.0.2, 127.0.0.3 and so on, all with one port."""
    for _ in range(20):
        servers = [kind(replies[0], host="127.0.0.2")]
        try:
            for place, reply in enumerate(replies[1:], start=3):
                servers.append(kind(reply, host=f"127.0.0.{place}", port=servers[0].port))
            return servers
        except OSError:  # another process uses this port at one of the addresses
            for server in servers:
                server.__exit__()
    raise AssertionError("no port is free at all these addresses")
