"""An HTTP/2 server that behaves as the test requires, and records its connections and requests. Needs python3-h2.

Each request runs the function `reply` in a thread of its own. All state of a connection is protected by its condition
`changed`. The library checks what the client sends; a fault of the client is recorded in `Http2Server.faults`."""

import contextlib
import select
import socket
import ssl
import threading
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hpack
from http2_client import DATA, GOAWAY, PING, REFUSED, SETTINGS, Connection as LenientConnection, frame
from upstream import Upstream
from wire import PATIENCE

MOST_STREAMS = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS
WINDOW = h2.settings.SettingCodes.INITIAL_WINDOW_SIZE
PUSH_PROMISE = 5
FOREVER = (1 << 31) - 1


class Gone(EOFError):
    """The client has reset the stream, or the connection has ended."""


def literal(*fields):
    """Returns fields in a form that enters no table of HPACK. The library does not check them."""
    return hpack.Encoder().encode([(name, value, True) for name, value in fields])


def server_tls(certificate, key, alpn=("h2",)):
    """Returns a TLS context for a server, from the paths of its certificate and key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


class Request:
    """One stream as the server received it, with functions that send the response. `error`: the code of the client's
    reset; -1: the connection has ended. `sent`: octets of the response's body."""

    def __init__(self, connection, stream, fields):
        self.connection, self.stream, self.fields = connection, stream, fields
        self.arrived = time.monotonic()
        self.pieces, self.size, self.trailers = [], 0, []
        self.ended, self.error, self.sent, self.finished = False, None, 0, False

    def __getitem__(self, name):
        return next((value for each, value in self.fields if each == name), None)

    def __contains__(self, name):
        return self[name] is not None

    @property
    def method(self):
        return self[":method"]

    @property
    def path(self):
        return self[":path"]

    @property
    def body(self):
        return b"".join(self.pieces)

    def wait(self, holds, seconds=PATIENCE):
        """Waits until the condition is true. Raises Gone if the stream is over before."""
        self.connection.wait(lambda: self.error is not None or holds(), seconds)
        if self.error is not None:
            raise Gone(f"stream {self.stream}: error {self.error}")

    def read_body(self):
        self.wait(lambda: self.ended)
        return self.body

    def wait_for_reset(self):
        """Waits until the client resets the stream or the connection ends, and returns the error."""
        self.connection.wait(lambda: self.error is not None)
        return self.error

    @contextlib.contextmanager
    def using(self):
        """Within the block, the library may be used for this stream. Sends what was queued."""
        with self.connection.changed:
            if self.error is not None:
                raise Gone(f"stream {self.stream}: error {self.error}")
            yield self.connection.h2
            self.connection.push()

    def head(self, status=200, fields=(), end=False):
        with self.using() as state:
            state.send_headers(self.stream, [(":status", str(status)), *fields], end_stream=end)
            self.finished = self.finished or end

    def interim(self, status, fields=()):
        self.head(status, fields)

    def send_some(self, data):
        """Sends as many octets of the body as the windows permit now, and returns their number."""
        with self.using() as state:
            size = min(len(data), state.local_flow_control_window(self.stream))
            for at in range(0, size, state.max_outbound_frame_size):
                state.send_data(self.stream, bytes(data[at:min(size, at + state.max_outbound_frame_size)]))
            self.sent += size
        return size

    def send(self, data, end=False):
        """Sends octets of the body, and waits for the windows to open."""
        data = memoryview(data)
        while data:
            self.wait(lambda: self.connection.h2.local_flow_control_window(self.stream) > 0, 4 * PATIENCE)
            data = data[self.send_some(data):]
        if end:
            with self.using() as state:
                state.end_stream(self.stream)
                self.finished = True

    def send_trailers(self, fields):
        with self.using() as state:
            state.send_headers(self.stream, fields, end_stream=True)
            self.finished = True

    def answer(self, body=b"ok", status=200, fields=(), length=True, trailers=()):
        """Sends a whole response. `length`: whether the response has a content-length."""
        size = [("content-length", str(len(body)))] if length else []
        self.head(status, [*size, *fields], end=not body and not trailers)
        if body:
            self.send(body, end=not trailers)
        if trailers:
            self.send_trailers(trailers)

    def reset(self, error):
        with self.using() as state:
            state.reset_stream(self.stream, error)
            self.finished = True

    def raw(self, *frames):
        """Sends frames (kind, flags, content) on this stream. The library learns only how much DATA the frames have, so
        that its flow-control windows stay correct."""
        connection, data = self.connection, sum(len(content) for kind, _, content in frames if kind == DATA)
        with connection.changed:
            connection.h2.outbound_flow_control_window -= data
            if stream := connection.h2.streams.get(self.stream):
                stream.outbound_flow_control_window -= data
            connection.raw(b"".join(frame(kind, flags, self.stream, content) for kind, flags, content in frames))


class ServerConnection:
    """One connection. `goaways`: errors that the client has sent. `quiet`: kinds of frames (SETTINGS, PING) that the server does
    not acknowledge."""

    def __init__(self, server, sock, number):
        self.server, self.sock, self.number = server, sock, number
        self.changed = threading.Condition(threading.RLock())
        self.requests, self.goaways, self.pings = {}, [], 0
        self.ended, self.last, self.quiet = False, FOREVER, set(server.quiet)
        self.poll = select.poll()
        self.poll.register(sock, select.POLLIN)
        self.reads = threading.Event()
        self.reads.set()
        self.h2 = LenientConnection(h2.config.H2Configuration(
            client_side=False, validate_outbound_headers=False, normalize_outbound_headers=False, header_encoding="latin-1"))

    def wait(self, holds, seconds=PATIENCE):
        with self.changed:
            if not self.changed.wait_for(holds, seconds):
                raise TimeoutError(f"connection {self.number}: not within {seconds} s")

    def push(self):
        data = self.h2.data_to_send()
        if self.quiet:
            data = self.without_acknowledgements(data)
        if data:
            self.sock.sendall(data)

    def without_acknowledgements(self, data):
        kept = b""
        while data:
            size = 9 + int.from_bytes(data[:3], "big")
            if not (data[3] in self.quiet and data[4] & 1):
                kept += data[:size]
            data = data[size:]
        return kept

    def raw(self, data):
        with self.changed:
            self.sock.sendall(data)

    def goaway(self, last=None, error=0):
        """Sends GOAWAY. The server ignores later streams from then on. `last`: the last stream that it processes; None: the last
        one that has arrived."""
        with self.changed:
            last = max(self.requests, default=0) if last is None else last
            self.last = min(last, self.last)
            self.raw(frame(GOAWAY, 0, 0, last.to_bytes(4, "big") + error.to_bytes(4, "big")))

    def announce(self, settings):
        with self.changed:
            self.h2.update_settings(settings)
            self.push()

    def permit(self, octets, stream=None):
        with self.changed:
            self.h2.increment_flow_control_window(octets, stream)
            self.push()

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def begin(self):
        """Sends the SETTINGS. Afterwards the library permits any number of streams, because a client may open streams before it
        knows the bound. The server refuses streams above the bound."""
        with self.changed:
            settings = h2.settings.Settings(client=False, initial_values=dict(self.server.settings))
            self.h2.local_settings = settings
            self.h2.initiate_connection()
            if self.server.permits:
                self.h2.increment_flow_control_window(FOREVER - 65535)
            settings[MOST_STREAMS] = FOREVER
            settings.acknowledge()
            self.push()

    def run(self):
        self.begin()
        while self.receive():
            pass

    def receive(self):
        if not (isinstance(self.sock, ssl.SSLSocket) and self.sock.pending()):
            self.poll.poll()
        self.reads.wait()  # a test clears it to make the server read nothing
        with self.changed:
            data = self.sock.recv(1 << 16)
            for event in self.h2.receive_data(data) if data else ():
                self.note(event)
            self.push()
            self.changed.notify_all()
        return bool(data)

    def end(self):
        with self.changed:
            self.ended = True
            for request in self.requests.values():
                if request.error is None and not request.finished:
                    request.error = -1
            self.changed.notify_all()

    def note(self, event):
        request = self.requests.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.RequestReceived):
            self.open(event)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaways.append(int(event.error_code))
        elif isinstance(event, h2.events.PingReceived):
            self.pings += 1
        elif request is None:
            return
        elif isinstance(event, h2.events.DataReceived):
            request.pieces.append(event.data)
            request.size += len(event.data)
            if self.server.permits and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            request.trailers = event.headers
        elif isinstance(event, h2.events.StreamEnded):
            request.ended = True
        elif isinstance(event, h2.events.StreamReset):
            request.error = int(event.error_code)

    def open(self, event):
        if event.stream_id > self.last:
            self.server.ignored.append(event.stream_id)
            return
        at_once = sum(each.error is None and not (each.ended and each.finished) for each in self.requests.values())
        if at_once >= self.server.settings.get(MOST_STREAMS, FOREVER):
            self.server.refused.append(event.stream_id)
            self.h2.reset_stream(event.stream_id, REFUSED)
            return
        request = self.requests[event.stream_id] = Request(self, event.stream_id, event.headers)
        self.server.requests.append(request)
        threading.Thread(target=self.reply, args=(request,), daemon=True).start()

    def reply(self, request):
        try:
            self.server.reply(request)
        except (Gone, OSError) as fault:
            self.server.gone.append(fault)
        except Exception as fault:  # a fault of the test or of the client; the test checks that there is none
            self.server.faults.append(fault)


def hello(request):
    request.read_body()
    request.answer()


class Http2Server(Upstream):
    """A server that speaks HTTP/2 at once, or over TLS if `tls` is an ssl.SSLContext. `reply`: a function of the Request.
    `settings`: what SETTINGS announces. `permits`: the windows for request bodies are always open. `quiet`: kinds of frames that
    are not acknowledged.

    `sessions` are the connections. `ignored` and `refused` are streams after a GOAWAY, and above MAX_CONCURRENT_STREAMS.
    `gone`: replies that the client has cancelled. `faults`: violations of HTTP/2 by the client."""

    def __init__(self, reply=hello, settings=None, permits=True, quiet=(), **more):
        self.settings, self.permits, self.quiet = settings or {}, permits, quiet
        self.sessions, self.requests, self.ignored, self.refused, self.gone, self.faults = [], [], [], [], [], []
        super().__init__(reply, **more)

    def serve(self, sock, number):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = None
        try:
            if self.ahead:
                self.ahead(sock)
            if self.tls:
                self.open.discard(sock)
                sock = self.tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                self.open.add(sock)
                self.shake_hands(sock)
            connection = ServerConnection(self, sock, number)
            self.sessions.append(connection)
            connection.run()
        except (EOFError, OSError) as fault:
            self.failures.append(fault)
        except (h2.exceptions.ProtocolError, ValueError) as fault:
            self.faults.append(fault)
        finally:
            self.open.discard(sock)
            with contextlib.suppress(OSError):
                sock.close()
            if connection:
                connection.end()

    def __exit__(self, *_):
        for connection in self.sessions:
            connection.reads.set()
        super().__exit__()


__all__ = ["FOREVER", "MOST_STREAMS", "PING", "PUSH_PROMISE", "SETTINGS", "WINDOW", "Gone", "Http2Server", "Request",
           "ServerConnection", "hello", "literal", "server_tls"]
