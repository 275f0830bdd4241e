"""A base class for tests of weir with HTTP/2 servers, and functions that send requests in the same way by
HTTP/1.1 and by HTTP/2."""

import contextlib
import dataclasses

from harness import PATIENCE, Client, TestCase, Weir, chunked, config, eventually, request_bytes
from http2_client import Http2Client
from http2_server import Http2Server, hello
from wire import Response

BOTH = ("HTTP/1.1", "HTTP/2")


@dataclasses.dataclass
class Got:
    """The answer as a client got it. `is_whole`: true if the answer was not cut off. `interim`: statuses of the interim
    answers."""

    status: int
    body: bytes
    is_whole: bool
    answer: object
    interim: tuple = ()


def ask(client, method="GET", path="/", fields=(), body=None, streamed=False):
    """Sends a request and reads the answer. A short body arrives together with its head. `streamed`: the body has no
    content-length."""
    if isinstance(client, Http2Client):
        length = [] if body is None or streamed else [("content-length", str(len(body)))]
        is_short = body is not None and len(body) <= 16384
        with client.one_write() if is_short else contextlib.nullcontext():
            stream = client.open(method, path, [*length, *fields], end=body is None)
            if is_short:
                client.send_body(stream, body)
        if body is not None and not is_short:
            client.send_body(stream, body)
        return of_stream(client.read(stream))
    if streamed:
        client.send(request_bytes(method, path, {**dict(fields), "Transfer-Encoding": "chunked"}) + chunked(body))
    else:
        length = {"Content-Length": "0"} if body == b"" else {}
        client.send(request_bytes(method, path, {**length, **dict(fields)}, body or b""))
    return of_connection(client, method)


def of_stream(answer):
    """Returns what an Http2Client has got. The answer must have ended."""
    interim = tuple(int(dict(each)[":status"]) for each in answer.interim)
    return Got(answer.status, answer.body, answer.ended, answer, interim)


def of_connection(client, method="GET"):
    """Reads the next answer of a Client."""
    interim = []
    while (answer := Response(client.wire.read_until(b"\r\n\r\n"))).status < 200:
        interim.append(answer.status)
    has_body = method != "HEAD" and answer.status not in (204, 304)
    is_whole = True
    try:
        if has_body and answer["transfer-encoding"]:
            answer.body = client.wire.read_chunked()
        elif has_body:
            answer.body = client.wire.read_exactly(int(answer["content-length"]))
    except (EOFError, ConnectionError):
        is_whole = False
    return Got(answer.status, answer.body, is_whole, answer, tuple(interim))


class Http2UpstreamTestCase(TestCase):
    """Starts HTTP/2 servers and weir instances. Each instance has one worker and serves HTTP/1.1 and HTTP/2 clients."""

    def serve(self, reply=hello, allows_faults=False, **options):
        server = self.start(Http2Server(reply, **options))
        if not allows_faults:
            self.addCleanup(lambda: self.assertEqual(server.faults, [], "weir sent what is not HTTP/2"))
        return server

    def text(self, *servers, protocol="h2c", upstream="", workers=1, scheme="", **more):
        """Returns a configuration. `scheme`: "https://" for servers with TLS."""
        text = config(*(server.port for server in servers), listener='protocols = ["http/1.1", "h2c"]\n',
                      upstream=f'protocol = "{protocol}"\n{upstream}', **more)
        return text.replace("workers = 2", f"workers = {workers}").replace('"127.0.0.1:', f'"{scheme}127.0.0.1:') \
            .replace(f'address = "{scheme}', 'address = "')

    def weir(self, *servers, files=None, **more):
        return self.start(Weir(self.text(*servers, **more), files))

    def client(self, weir, version="HTTP/2", **options):
        kind = Http2Client if version == "HTTP/2" else Client
        return self.start(kind(weir.port, **options))

    def await_requests(self, server, count):
        """Waits until the server has the heads of `count` requests, and returns the last one."""
        eventually(lambda: len(server.requests) >= count, f"{count} requests reach the server")
        return server.requests[count - 1]

    def await_error(self, request, error):
        """Waits until the client of the server's stream has reset it."""
        request.connection.wait(lambda: request.error is not None, PATIENCE)
        self.assertEqual(request.error, error)
