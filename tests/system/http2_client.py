"""HTTP/2 on a socket: a client that opens streams and reads answers, an attacker that sends any frames, and a base class for
tests. Needs python3-h2."""

import collections
import contextlib
import json
import socket
import ssl
import tempfile

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hpack
from harness import PATIENCE, TestCase, Upstream, Weir, client_tls, config, make_certificate

PROTOCOL_ERROR, REFUSED, CANCEL, COMPRESSION, CALM = 1, 7, 8, 9, 11  # errors of RST_STREAM and GOAWAY
WINDOW = h2.settings.SettingCodes.INITIAL_WINDOW_SIZE
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4
MOST_WINDOW = (1 << 31) - 1
GONE = (ConnectionError, ssl.SSLEOFError)  # what a send raises after the other side has closed the connection


class Connection(h2.connection.H2Connection):
    """The library reads nothing after a GOAWAY. This class continues to read the answers of open streams."""

    def _receive_goaway_frame(self, frame):
        state = self.state_machine.state
        result = super()._receive_goaway_frame(frame)
        self.state_machine.state = state
        return result


class Answer:
    """The response on one stream, as far as it has arrived."""

    def __init__(self):
        self.status, self.fields, self.interim, self.trailers = None, [], [], []
        self.pieces, self.size = [], 0
        self.ended, self.was_reset, self.error = False, False, None  # `error`: a reset's code; -1: the connection ended early

    @property
    def body(self):
        return b"".join(self.pieces)

    @property
    def raw(self):
        return repr((self.status, self.fields, self.error)).encode()

    def all(self, name):
        return [value for each, value in self.fields if each == name]

    def __getitem__(self, name):
        return next(iter(self.all(name)), None)

    def __contains__(self, name):
        return bool(self.all(name))

    def json(self):
        return json.loads(self.body)


class Http2Client:
    """A connection to 127.0.0.1:port. `tls` is an ssl.SSLContext that offers "h2" by ALPN. `window`: octets that the other side may
    send on each stream before the client permits more; None: the client permits all. `ahead`: octets that the client sends before the
    TLS handshake."""

    def __init__(self, port, tls=None, name="localhost", source="127.0.0.1", window=None, ahead=b""):
        sock = socket.create_connection(("127.0.0.1", port), PATIENCE, (source, 0))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(ahead)
        self.sock = tls.wrap_socket(sock, server_hostname=name, suppress_ragged_eofs=False) if tls else sock
        self.scheme = "https" if tls else "http"
        self.permits, self.pongs, self.collects = window is None, True, False
        self.answers, self.goaways, self.ended, self.pings_answered, self.acknowledged = {}, [], False, 0, 0
        self.h2 = Connection(h2.config.H2Configuration(
            validate_outbound_headers=False, normalize_outbound_headers=False, header_encoding="latin-1"))
        self.h2.local_settings = h2.settings.Settings(client=True, initial_values={WINDOW: MOST_WINDOW if window is None else window})
        self.h2.initiate_connection()
        if window is None:
            self.h2.increment_flow_control_window(MOST_WINDOW - 65535)
        self.push()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def push(self):
        if not self.collects and (data := self.h2.data_to_send()):
            self.send(data)

    @contextlib.contextmanager
    def one_write(self):
        """Collects the frames of the block, and sends them at once."""
        self.collects = True
        try:
            yield
        finally:
            self.collects = False
            self.push()

    def send(self, data):
        self.sock.sendall(data)

    def open(self, method="GET", path="/", fields=(), end=True, authority="localhost", pseudo=()):
        """Sends the head of a request. Returns the number of the request's stream. `pseudo`: replaces the usual pseudo-header
        fields."""
        stream = self.h2.get_next_available_stream_id()
        usual = [(":method", method), (":scheme", self.scheme), (":path", path), (":authority", authority)]
        head = [(name, value) for name, value in pseudo or usual if value is not None]
        self.answers[stream] = Answer()
        self.h2.send_headers(stream, [*head, *fields], end_stream=end)
        self.push()
        return stream

    def send_body(self, stream, body, end=True):
        """Sends octets of a body as far as the windows permit, and waits until the windows open again. Stops if the other side
        resets the stream."""
        answer = self.answers[stream]
        while body and not answer.was_reset:
            size = min(len(body), self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if size == 0:
                self.receive()
                continue
            self.h2.send_data(stream, body[:size])
            body = body[size:]
            self.push()
        if end and not answer.was_reset:
            self.h2.end_stream(stream)
            self.push()

    def allow_streams(self, count):
        """Lets the client open streams that the other side does not permit."""
        self.h2.remote_settings[h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS] = count
        self.h2.remote_settings.acknowledge()

    @contextlib.contextmanager
    def patience(self, seconds):
        """Within the `with` block, a read waits at most this number of seconds and does not fail if nothing arrives."""
        self.sock.settimeout(seconds)
        try:
            with contextlib.suppress(TimeoutError):
                yield
        finally:
            self.sock.settimeout(PATIENCE)

    @contextlib.contextmanager
    def corked(self):
        """Sends the frames of the block at its end, all at once."""
        self.push = lambda: None
        try:
            yield
        finally:
            del self.push
            self.push()

    def permit(self, octets, stream=None):
        self.h2.increment_flow_control_window(octets, stream)
        self.push()

    def reset(self, stream, error=CANCEL):
        self.h2.reset_stream(stream, error)
        self.push()

    def receive(self):
        """Reads once. Returns false after the end of the connection."""
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            self.end()
            return False
        for event in self.h2.receive_data(data):
            self.note(event)
        if self.pongs:
            with contextlib.suppress(*GONE):  # the next read says that the other side has closed
                self.push()
        return True

    def end(self):
        self.ended = True
        for answer in self.answers.values():
            answer.was_reset = True
            if not answer.ended and answer.error is None:
                answer.error = -1

    def note(self, event):
        answer = self.answers.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.InformationalResponseReceived):
            answer.interim.append(event.headers)
        elif isinstance(event, h2.events.ResponseReceived):
            answer.status = int(dict(event.headers)[":status"])
            answer.fields = [(name, value) for name, value in event.headers if not name.startswith(":")]
        elif isinstance(event, h2.events.DataReceived):
            answer.pieces.append(event.data)
            answer.size += len(event.data)
            if self.permits and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = event.headers
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset):
            if answer is not None:
                answer.was_reset = True
                answer.error = None if answer.ended else int(event.error_code)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaways.append((int(event.error_code), event.last_stream_id))
        elif isinstance(event, h2.events.PingAckReceived):
            self.pings_answered += 1
        elif isinstance(event, h2.events.SettingsAcknowledged):
            self.acknowledged += 1

    def wait(self, holds):
        """Reads until the condition holds or the connection ends. Returns the value of the condition."""
        while not (result := holds()) and self.receive():
            pass
        return result or holds()

    def read(self, stream):
        """Returns the whole answer. If the stream is reset or the connection ends, returns the part that has arrived."""
        answer = self.answers[stream]
        self.wait(lambda: answer.ended or answer.error is not None)
        return answer

    def request(self, method="GET", path="/", fields=(), body=None, **more):
        stream = self.open(method, path, fields, end=body is None, **more)
        if body is not None:
            self.send_body(stream, body)
        return self.read(stream)

    def get(self, path="/", **fields):
        """Sends a GET. Underscores in names stand for hyphens."""
        return self.request("GET", path, [(name.replace("_", "-"), value) for name, value in fields.items()])

    def ping(self):
        """Sends a PING and waits for its answer. Afterwards the other side has handled everything that was sent before."""
        before = self.pings_answered
        self.h2.ping(b"a round!")
        self.push()
        self.wait(lambda: self.pings_answered > before)

    def closed(self):
        """Reads until the connection ends, and returns true."""
        while self.receive():
            pass
        return True


def frame(kind, flags, stream, content=b""):
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def head_block(*fields, path="/", method="GET"):
    """Returns the head of a request as an HPACK block. The block changes no table, so a test may send it any number of times."""
    pseudo = ((":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost"))
    return hpack.Encoder().encode([(name, value, True) for name, value in (*pseudo, *fields)])


class Attacker:
    """A connection that can send any frame and answers no frame. It counts the frames that arrive, and keeps the error codes of
    GOAWAY and RST_STREAM."""

    def __init__(self, port, settings=b"", buffer=None, acknowledges=True):
        """`buffer`: about how many octets the kernel holds for this client. `acknowledges`: if true, the client acknowledges
        weir's SETTINGS, and from then on weir enforces its maximum number of streams."""
        self.sock = socket.socket()
        self.sock.settimeout(PATIENCE)
        if buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.frames, self.goaways, self.resets, self.ended = b"", collections.Counter(), [], [], False
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, settings))
        self.wait(lambda: self.frames[SETTINGS] > 1)
        if acknowledges:
            self.send(frame(SETTINGS, 1, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        """Sends octets, and reads what has arrived. Ignores that weir may have closed the connection."""
        try:
            self.sock.sendall(data)
            self.sock.settimeout(0.0005)
            while self.receive():
                pass
        except TimeoutError:
            pass
        except ConnectionError:
            self.end()
        self.sock.settimeout(PATIENCE)

    def end(self):
        """Reads until weir closes the connection."""
        self.sock.settimeout(PATIENCE)
        while self.receive():
            pass

    def receive(self):
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionError:
            data = b""
        self.ended = self.ended or not data
        self.buffer += data
        while len(self.buffer) >= 9 and len(self.buffer) >= 9 + (size := int.from_bytes(self.buffer[:3], "big")):
            self.note(self.buffer[3], self.buffer[9:9 + size])
            self.buffer = self.buffer[9 + size:]
        return bool(data)

    def note(self, kind, content):
        self.frames[kind] += 1
        if kind == GOAWAY:
            self.goaways.append(int.from_bytes(content[4:8], "big"))
        if kind == RST_STREAM:
            self.resets.append(int.from_bytes(content, "big"))

    def wait(self, holds):
        while not (result := holds()) and self.receive():
            pass
        return result or holds()

    def flood(self, next_frames, count=1000, batch=100, ready=lambda sent: True):
        """Sends next_frames(0), next_frames(1) … until weir closes the connection, at most count * batch times. After each batch
        waits until ready(sent). Returns the number of calls of next_frames()."""
        sent = 0
        while not self.ended and sent < count * batch:
            self.send(b"".join(next_frames(number) for number in range(sent, sent + batch)))
            sent += batch
            self.wait(lambda: self.ended or ready(sent))  # noqa: B023
        self.wait(lambda: self.ended)
        return sent


class Http2TestCase(TestCase):
    """A test case with an upstream. Its weir has a listener without TLS for HTTP/1.1 and HTTP/2, and a listener with TLS."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.files = make_certificate(folder)
        cls.tls = client_tls(cls.files["edge.crt"], ["h2"])

    def setUp(self):
        self.upstream = self.start(Upstream())

    def text(self, http2="", doors=(False, True), **more):
        """Returns a configuration. `http2`: values of the key `http2`. `doors`: for each listener, true if it uses TLS."""
        bounds = f"http2 = {{ {http2} }}\n" if http2 else ""
        secure = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }\n'
        lines = [(secure if door else 'protocols = ["http/1.1", "h2c"]\n') + bounds for door in doors]
        return config(self.upstream.port, listener='[[listener]]\naddress = "127.0.0.1:0"\n'.join(lines), **more)

    def weir(self, http2="", **more):
        return self.start(Weir(self.text(http2, **more), self.files))

    def plain_weir(self, *rules, **more):
        """Returns a weir with these rules and only the plain listener."""
        return self.weir(doors=[False], rules="".join(rules), **more)

    def client(self, weir, secure=False, **more):
        if secure:
            more["tls"] = self.tls
        return self.start(Http2Client(weir.ports[secure], **more))

    def assert_answers(self, client):
        """Checks that the connection still serves requests."""
        self.assertEqual(client.get("/").status, 200)
