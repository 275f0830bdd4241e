"""gRPC servers and channels for tests, with Google's library (python3-grpcio). Messages are plain octets, so no code is generated."""

import collections
import pathlib
import queue
import tempfile
import threading
from concurrent import futures

import grpc
from harness import PATIENCE, TestCase, Weir, eventually, make_certificate

SERVING, NOT_SERVING = 1, 2  # statuses in a grpc.health.v1.HealthCheckResponse
MESSAGE = "100 % café\n"  # the status message of the method Fail
TLS_LISTENER = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }\n'
UNLIMITED = ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)
PATIENT = {"timeout": PATIENCE}  # options of a call
WITHOUT_RETRIES = ("grpc.enable_retries", 0)


class Call:
    """A call from the server's view. `ended`: set once the call has ended. `cancelled`: true if the client or weir ended the
    call."""

    def __init__(self, method, metadata, peer):
        self.method, self.metadata, self.peer, self.answered = method, dict(metadata), peer, False
        self.received, self.ended, self.cancelled = 0, threading.Event(), None

    def end(self):
        self.cancelled = not self.answered
        self.ended.set()

    def wait_until_cancelled(self):
        if not self.ended.wait(PATIENCE):
            raise AssertionError(f"{self.method} goes on at the server")
        return self.cancelled


class GrpcServer(grpc.GenericRpcHandler):
    """A server without TLS. With `files` from make_certificate(), it also has a port with TLS. It accepts calls to every service. The
    method decides what the server sends:

    - Unary: the request.
    - Sum: all requests, joined.
    - Count: as many messages as the request says.
    - Chat: each request as soon as it arrives.
    - Fail, FailEarly, FailLate: the status in the metadata `x-status`. FailEarly sends it before the request has arrived, FailLate
      after a message.
    - Hold: the first request at once, and a message after release().
    - HoldUnary, HoldSum: a message after release().

    The server returns the client's metadata that begin with `first-` before the messages, and those that begin with `last-` after
    them. The health check answers `health`, a dictionary of statuses by service."""

    def __init__(self, files=None, port=0, health=None, compression=None, options=()):
        self.calls, self.health, self.health_checks, self.released = [], health or {}, 0, threading.Event()
        self.server = grpc.server(futures.ThreadPoolExecutor(150), handlers=(self,), options=[*UNLIMITED, *options], compression=compression)
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        if files:
            pair = files["server.key"].encode(), files["server.crt"].encode()
            self.tls_port = self.server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, grace=None):
        """Sends a GOAWAY. Cancels the calls that are open after `grace` seconds."""
        ended = self.server.stop(grace)
        if grace is None:
            self.released.set()
        ended.wait(PATIENCE)

    def release(self):
        self.released.set()

    def count(self, method):
        return sum(call.method == method for call in self.calls)

    def service(self, details):
        service, _, method = details.method[1:].partition("/")
        if service == "grpc.health.v1.Health":
            return grpc.unary_unary_rpc_method_handler(self.check_health)
        kind, behave = self.METHODS.get(method, ("unary_unary", GrpcServer.unary))
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(lambda request, context: self.begin(method, details, context, behave, request))

    def begin(self, method, details, context, behave, request):
        call = Call(method, details.invocation_metadata, context.peer())
        if not context.add_callback(call.end):
            call.end()
        self.calls.append(call)
        if first := [(name, value) for name, value in call.metadata.items() if name.startswith("first-")]:
            context.send_initial_metadata(first)
        context.set_trailing_metadata([(name, value) for name, value in call.metadata.items() if name.startswith("last-")])
        return behave(self, call, request, context)

    def unary(self, call, request, context):
        call.answered = context.is_active()
        return request

    def sum(self, call, requests, context):
        joined = b"".join(requests)
        call.answered = context.is_active()
        return joined

    def count_up(self, call, request, context):
        for number in range(int(request)):
            yield b"%d" % number
        call.answered = context.is_active()

    def chat(self, call, requests, context):
        for request in requests:
            call.received += 1
            yield request
        call.answered = context.is_active()

    def fail(self, call, _, context):
        call.answered = True
        status = next(status for status in grpc.StatusCode if status.value[0] == int(call.metadata["x-status"]))
        context.abort(status, MESSAGE)

    def fail_late(self, call, request, context):
        yield request
        self.fail(call, request, context)

    def hold(self, call, requests, context):
        context.send_initial_metadata(())
        for request in requests:
            call.received += 1
            yield request
            break
        yield self.hold_unary(call, b"released", context)

    def hold_unary(self, call, request, context):
        self.released.wait(PATIENCE)
        call.answered = context.is_active()
        return request

    def hold_sum(self, call, _, context):
        return self.hold_unary(call, b"released", context)

    def check_health(self, request, context):
        """Reads HealthCheckRequest { string service = 1; } and writes HealthCheckResponse { ServingStatus status = 1; }."""
        self.health_checks += 1
        status = self.health.get(request[2:].decode())
        if status is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return bytes([8, status])

    METHODS = {"Sum": ("stream_unary", sum), "Count": ("unary_stream", count_up), "Chat": ("stream_stream", chat),
               "Fail": ("unary_unary", fail), "FailEarly": ("stream_unary", fail), "FailLate": ("unary_stream", fail_late),
               "Hold": ("stream_stream", hold), "HoldUnary": ("unary_unary", hold_unary), "HoldSum": ("stream_unary", hold_sum)}


class GrpcTestCase(TestCase):
    """A test case with a certificate of weir (edge) and one of a server (server)."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="weir-grpc-")))
        cls.files = {**make_certificate(cls.folder), **make_certificate(cls.folder, "server", "grpc.test", "127.0.0.1")}

    def serve(self, **options):
        return self.start(GrpcServer(**options))

    @classmethod
    def config(cls, upstreams, rules="", server="", workers=2, doors=(False, True)):
        """`upstreams`: the text of an [[upstream]] without its name, for each service. `doors`: for each listener, true if it uses TLS."""
        text = f"""
[server]
workers = {workers}
drain = "5s"
{server}
[log]
access = "off"
[admin]
address = "127.0.0.1:0"
"""
        for secure in doors:
            text += '[[listener]]\naddress = "127.0.0.1:0"\n' + (TLS_LISTENER if secure else 'protocols = ["http/1.1", "h2c"]\n')
        for name, more in upstreams.items():
            text += f'[[upstream]]\nname = "{name}"\n{more}\n[[route]]\nmatch = {{ path = "/{name}.Service/*" }}\nupstream = "{name}"\n'
        return text + rules

    def weir(self, peer, upstream="", bounds="", **more):
        """Starts a weir with one server, which gets the service `h2c`. `upstream`, `bounds`: more keys of the upstream and the server."""
        upstreams = {"h2c": f'servers = [{{ address = "127.0.0.1:{peer.port}"{bounds} }}]\nprotocol = "h2c"\n{upstream}'}
        return self.start(Weir(self.config(upstreams, **more), files=self.files))

    @classmethod
    def open(cls, weir, secure=False, options=(WITHOUT_RETRIES,), **more):
        """Returns a channel with a connection of its own."""
        options = [*UNLIMITED, *options, ("grpc.use_local_subchannel_pool", 1)]
        if not secure:
            return grpc.insecure_channel(f"127.0.0.1:{weir.ports[0]}", options, **more)
        trust = grpc.ssl_channel_credentials(cls.files["edge.crt"].encode())
        return grpc.secure_channel(f"127.0.0.1:{weir.ports[-1]}", trust, [*options, ("grpc.ssl_target_name_override", "localhost")], **more)

    def channel(self, weir, secure=False, **more):
        return self.start(self.open(weir, secure, **more))

    def refused(self, call, status):
        """Checks that a call, or a function that calls, fails with this status. Returns the error."""
        with self.assertRaises(grpc.RpcError) as raised:
            list(call() if callable(call) else call)
        self.assertEqual(raised.exception.code(), status, raised.exception)
        return raised.exception


def unary(channel, method="Unary", service="h2c"):
    return channel.unary_unary(f"/{service}.Service/{method}")


def stream(channel, method="Chat", service="h2c"):
    return channel.stream_stream(f"/{service}.Service/{method}")


class Conversation:
    """A bidirectional stream that stays open."""

    def __init__(self, channel):
        self.requests = queue.Queue()
        self.answers = stream(channel)(iter(self.requests.get, None), **PATIENT)

    def says(self, message):
        """Sends a message, and returns true if the server sends it back."""
        self.requests.put(message)
        return next(self.answers) == message

    def ends(self):
        """Returns true if the stream ends with status 0."""
        self.requests.put(None)
        return list(self.answers) == [] and self.answers.code() == grpc.StatusCode.OK


def caller(channel, number):
    """Returns a function that makes a unary call or a short stream. The function returns None, or the status and message of a
    failure."""
    def call():
        try:
            assert unary(channel)(b"x", **PATIENT) == b"x" if number % 2 else list(stream(channel)(iter([b"x", b"y"]), **PATIENT)) == [b"x", b"y"]
            return None
        except grpc.RpcError as error:
            return error.code().name, error.details()
    return call


class Load:
    """Clients that call until they are stopped. `callers`: for each client a function that makes a call, and returns a failure or None."""

    def __init__(self, callers):
        self.ending, self.answered, self.failures = threading.Event(), 0, collections.Counter()
        self.threads = [threading.Thread(target=self.run, args=(call,), daemon=True) for call in callers]
        for thread in self.threads:
            thread.start()

    def __enter__(self):
        self.goes_on()
        return self

    def __exit__(self, *_):
        self.ending.set()

    def run(self, call):
        while not self.ending.is_set():
            try:
                failure = call()
            except Exception as fault:  # each exception is a lost call
                failure = repr(fault)
            if failure is None:
                self.answered += 1
            else:
                self.failures[failure] += 1

    def goes_on(self, count=200):
        seen = self.answered
        eventually(lambda: self.answered > seen + count, "calls are answered")

    def stop(self):
        """Returns how often each failure has happened."""
        self.ending.set()
        for thread in self.threads:
            thread.join(2 * PATIENCE)
        print(f"\n{self.answered} calls answered, {self.failures.total()} failed", flush=True)
        return self.failures
