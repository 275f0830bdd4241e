"""A client of HTTP/2 that costs little: a thousand requests a second take a few per cent of a core, and 10,000 of them fit in one
process. It reads no fields, so it needs no HPACK decoder; the octets of bodies say what was answered."""

import contextlib
import socket

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = END_STREAM = 1
END_HEADERS = 4
REFUSED = 7
WIDE = (1 << 31) - 1 - 65535  # added to the connection's window, so that it never closes
PATIENCE = 20  # seconds


def frame(kind, flags=0, stream=0, content=b""):
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def head(secure):
    """Returns the head of a GET of "/" in HPACK: four indexed fields or names, as RFC 7541 numbers them."""
    return b"\x82" + (b"\x87" if secure else b"\x86") + b"\x84" + b"\x41\x09localhost" + b"\x7a\x08loadtest" + b"\x53\x03*/*"


def head_again(secure):
    """Returns the head for a further GET on the same connection. The three fields that head() has sent as literals are now in the
    HPACK table, the latest first."""
    return b"\x82" + (b"\x87" if secure else b"\x86") + b"\x84" + b"\xc0\xbf\xbe"


def preface():
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS) + frame(WINDOW_UPDATE, content=WIDE.to_bytes(4, "big"))


class Http2Client:
    """A connection to 127.0.0.1:port. Sends nothing but the preface before the server's SETTINGS have come. Raises ConnectionError
    if they do not.

    Each request ends in one of three ways:

    - The client gets the answer, whose body is in `answered`.
    - The server says that it did not process the request. `unprocessed` counts these requests, which the caller sends again.
    - The request is lost."""

    def __init__(self, port, tls=None):
        sock = socket.create_connection(("127.0.0.1", port), PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.secure, self.open, self.answered, self.unprocessed, self.lost = tls is not None, {}, [], 0, 0
        self.buffer, self.out, self.next, self.settled, self.leaving, self.ended = b"", preface(), 1, False, False, False
        try:
            if tls:
                self.sock = tls.wrap_socket(sock)
            while not self.settled:
                self.exchange()
                if self.ended:
                    raise ConnectionError("the server sent no SETTINGS")
        except BaseException:
            self.sock.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def request(self):
        """Opens a stream. The next exchange() sends it."""
        block = head(self.secure) if self.next == 1 else head_again(self.secure)
        self.out += frame(HEADERS, END_STREAM | END_HEADERS, self.next, block)
        self.open[self.next] = b""
        self.next += 2

    def exchange(self):
        """Sends what is due, and reads once."""
        try:
            if self.out:
                self.sock.sendall(self.out)
                self.out = b""
            data = self.sock.recv(1 << 16)
        except OSError:  # a TLS error, a closed connection, or a time-out
            data = b""
        if not data:
            self.ended = True
            self.lost += len(self.open)
            self.open = {}
            return
        self.buffer += data
        at = 0
        while len(self.buffer) >= at + 9 and len(self.buffer) >= (end := at + 9 + int.from_bytes(self.buffer[at:at + 3], "big")):
            self.take(self.buffer[at + 3], self.buffer[at + 4], int.from_bytes(self.buffer[at + 5:at + 9], "big"), self.buffer[at + 9:end])
            at = end
        self.buffer = self.buffer[at:]

    def take(self, kind, flags, stream, content):
        if kind == DATA and stream in self.open:
            self.open[stream] += content
        if kind in (DATA, HEADERS) and flags & END_STREAM and stream in self.open:
            self.answered.append(self.open.pop(stream))
        elif kind == RST_STREAM and stream in self.open:
            del self.open[stream]
            refused = int.from_bytes(content, "big") == REFUSED
            self.unprocessed += refused
            self.lost += not refused
        elif kind == GOAWAY:
            self.leaving = True
            for late in [each for each in self.open if each > int.from_bytes(content[:4], "big")]:
                del self.open[late]
                self.unprocessed += 1
        elif kind == SETTINGS and not flags & ACK:
            self.settled = True
            self.out += frame(SETTINGS, ACK)
        elif kind == PING and not flags & ACK:
            self.out += frame(PING, ACK, 0, content)

    def flush(self):
        with contextlib.suppress(OSError):
            self.sock.sendall(self.out)
        self.out = b""
