"""HTTP on a socket, byte by byte: clients that send exactly the given bytes."""

import contextlib
import json
import os
import socket

PATIENCE = 30 if os.environ.get("WEIR_SANITIZE") else 15  # seconds; no single wait may take longer
CRLF2 = b"\r\n\r\n"


class Wire:
    """A socket, and bytes that were read from it but not consumed yet."""

    def __init__(self, sock):
        self.sock, self.buffer = sock, b""

    def fill(self):
        more = self.sock.recv(1 << 18)
        self.buffer += more
        return bool(more)

    def take(self, count):
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def read_until(self, mark):
        while (at := self.buffer.find(mark)) < 0:
            if not self.fill():
                raise EOFError(f"ended after {self.buffer[:200]!r}")
        return self.take(at + len(mark))

    def read_exactly(self, count):
        """Reads exactly this number of bytes. Collects pieces in a list: appending 50 MB to one string would take quadratic time."""
        pieces = [self.take(count)]
        left = count - len(pieces[0])
        while left:
            piece = self.sock.recv(min(left, 1 << 18))
            if not piece:
                raise EOFError(f"{left} of {count} bytes missing")
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def read_chunked(self):
        pieces = []
        while size := int(self.read_until(b"\r\n").split(b";")[0], 16):
            pieces.append(self.read_exactly(size))
            if self.read_exactly(2) != b"\r\n":
                raise ValueError("a chunk does not end in CRLF")
        while self.read_until(b"\r\n") != b"\r\n":
            pass
        return b"".join(pieces)

    def read_to_end(self):
        while self.fill():
            pass
        return self.take(len(self.buffer))

    def at_end(self):
        """Returns true if the other side has closed the connection and sent nothing more before that."""
        try:
            return not self.buffer and not self.fill()
        except ConnectionResetError:
            return True


class Head:
    """The first line and the fields of a request or response."""

    def __init__(self, raw):
        self.raw = raw
        lines = raw.decode("latin-1").split("\r\n")
        self.line = lines[0]
        self.fields = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:] if line)]

    def all(self, name):
        return [value for each, value in self.fields if each == name.lower()]

    def __getitem__(self, name):
        found = self.all(name)
        return found[0] if found else None

    def __contains__(self, name):
        return bool(self.all(name))


class Response(Head):
    def __init__(self, raw, body=b""):
        super().__init__(raw)
        self.status = int(self.line.split()[1])
        self.body = body

    def json(self):
        return json.loads(self.body)


def read_response(wire, method="GET"):
    response = Response(wire.read_until(CRLF2))
    if method == "HEAD" or response.status in (204, 304) or response.status < 200:
        return response
    if "chunked" in (response["transfer-encoding"] or ""):
        response.body = wire.read_chunked()
    elif (length := response["content-length"]) is not None:
        response.body = wire.read_exactly(int(length))
    else:
        response.body = wire.read_to_end()
    return response


def request_bytes(method, path, headers=None, body=b""):
    """Returns a request as bytes. Without a Host among the headers, its Host is "localhost", which the admin listener accepts
    without a token."""
    fields = {"Host": "localhost", **{"Host" if name == "host" else name: value for name, value in (headers or {}).items()}}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + CRLF2 + body


def chunked(body, size=16384):
    pieces = [b"%x\r\n%s\r\n" % (len(body[at:at + size]), body[at:at + size]) for at in range(0, len(body), size)]
    return b"".join(pieces) + b"0\r\n\r\n"


class Client:
    """A connection to 127.0.0.1:port. `tls` is an ssl.SSLContext; `source` is another loopback address from which the client
    connects."""

    def __init__(self, port, tls=None, name="localhost", source="127.0.0.1"):
        sock = socket.create_connection(("127.0.0.1", port), PATIENCE, (source, 0))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = tls.wrap_socket(sock, server_hostname=name, suppress_ragged_eofs=False) if tls else sock
        self.wire = Wire(self.sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def read(self, method="GET"):
        return read_response(self.wire, method)

    def request(self, method, path, headers=None, body=b""):
        self.send(request_bytes(method, path, headers, body))
        return self.read(method)

    def get(self, path="/", **headers):
        """Sends a GET. Underscores in names of headers stand for hyphens: get("/", x_api_key="k")."""
        return self.request("GET", path, {name.replace("_", "-"): value for name, value in headers.items()})

    def closed(self):
        return self.wire.at_end()

    def leave(self):
        """Closes the connection with a reset, as the kernel does for a killed client."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.sock.close()


def get(port, path="/", **headers):
    with Client(port) as client:
        return client.get(path, **headers)


def exchange_raw(port, data):
    """Sends bytes on a new connection and returns the first response."""
    with Client(port) as client:
        with contextlib.suppress(ConnectionError):  # refused before all of it was sent
            client.send(data)
        return client.read()
