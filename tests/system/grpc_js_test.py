#!/usr/bin/env python3
"""Calls of the gRPC library for Node.js through weir to Google's gRPC server, with and without TLS on either side."""

import functools
import json

from grpc_peer import MESSAGE, GrpcServer, GrpcTestCase
from harness import Weir, eventually, main, rule
from js_client import JsClient

OK, CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED = 0, 1, 4, 8
KINDS = {"unary": ("Unary", [b"1"]), "client": ("Sum", [b"1", b"2"]), "server": ("Count", [b"3"]), "both": ("Chat", [b"1", b"2"])}
ANSWERS = {"unary": [b"1"], "client": [b"12"], "server": [b"0", b"1", b"2"], "both": [b"1", b"2"]}
GZIP = {"grpc.default_compression_algorithm": 2}
WAYS = [(secure, service) for secure in (False, True) for service in ("h2c", "h2", "auto")]


def each_way(test):
    """Runs a test with each kind of client and each protocol of the upstream."""
    @functools.wraps(test)
    def run(self):
        for secure, service in WAYS:
            with self.subTest(secure=secure, server=service):
                test(self, functools.partial(self.node.begin, self.proxy, secure=secure), f"/{service}.Service/")
    return run


class JsTestCase(GrpcTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node = cls.enterClassContext(JsClient(cls.files["edge.crt"]))

    def call(self, weir, kind="unary", **options):
        """Calls a method of this kind. Returns the call and its messages."""
        method, messages = KINDS[kind]
        return self.node.call(weir, f"/h2c.Service/{method}", *messages, kind=kind, **options)


class EachWay(JsTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.enterClassContext(GrpcServer(cls.files))
        tls = f'servers = ["https://127.0.0.1:{cls.server.tls_port}"]\ntls = {{ ca = "server.crt" }}\nprotocol = '
        upstreams = {"h2c": f'servers = ["127.0.0.1:{cls.server.port}"]\nprotocol = "h2c"', "h2": tls + '"h2"', "auto": tls + '"auto"'}
        cls.proxy = cls.enterClassContext(Weir(cls.config(upstreams), files=cls.files))

    @each_way
    def test_calls_of_each_kind_pass_with_metadata_both_ways(self, begin, service):
        octets = bytes(range(256))
        sent = {"first-text": "a, b; c", "first-octets-bin": octets, "last-text": "z", "last-octets-bin": octets}
        for kind, (method, messages) in KINDS.items():
            call = begin(service + method, *messages, kind=kind, metadata=sent.items())
            self.assertEqual((call.finish(), call.code), (ANSWERS[kind], OK), kind)
            received = self.server.calls[-1].metadata
            self.assertEqual({name: received[name] for name in sent}, sent)
            self.assertEqual({**call.initial, **call.trailing}, {**call.initial, **call.trailing, **sent})
            self.assertEqual([name for name in sent if name in call.trailing], ["last-text", "last-octets-bin"])

    @each_way
    def test_messages_of_a_bidirectional_stream_pass_at_once(self, begin, service):
        call = begin(service + "Chat", kind="both", stays_open=True)
        for number in range(30):
            call.send(b"%d" % number)
            self.assertEqual(call.receive(), b"%d" % number)
        call.tell(end=True)
        self.assertEqual((call.finish(), call.code), ([], OK))

    @each_way
    def test_large_messages_pass_plain_and_compressed(self, begin, service):
        large = bytes(range(256)) * (1 << 14)
        self.assertEqual(begin(service + "Unary", large).finish(), [large])
        self.assertEqual(begin(service + "Chat", large[:1 << 18], b"", kind="both", options=GZIP).finish(), [large[:1 << 18], b""])

    @each_way
    def test_statuses_of_the_server_pass_with_message_and_details(self, begin, service):
        sent = [("x-status", "5"), ("last-details-bin", b"\x08\x05")]
        for method, kind, messages in (("Fail", "unary", []), ("FailEarly", "client", []), ("FailLate", "server", [b"late"])):
            call = begin(service + method, b"late", kind=kind, metadata=sent)
            self.assertEqual((call.finish(), call.code, call.details), (messages, 5, MESSAGE), method)
            self.assertEqual(call.trailing["last-details-bin"], b"\x08\x05")

    @each_way
    def test_hundred_streams_can_be_open_at_once(self, begin, service):
        streams = [begin(service + "Chat", b"first", kind="both", stays_open=True) for _ in range(100)]
        self.assertEqual([stream.receive() for stream in streams], [b"first"] * 100)
        for stream in streams:
            stream.send(b"second")
        self.assertEqual([stream.receive() for stream in streams], [b"second"] * 100)
        for stream in streams:
            stream.tell(end=True)
        self.assertEqual([(stream.finish(), stream.code) for stream in streams], [([], OK)] * 100)


class Limits(JsTestCase):
    def test_call_of_each_kind_above_the_limit_gets_resource_exhausted_and_rate_limit_fields(self):
        server = self.serve()
        weir = self.weir(server, rules=rule("per-key", "1/day", key='["header:x-key"]', algorithm='"fixed_window"'))
        for secure in (False, True):
            for kind, messages in ANSWERS.items():
                with self.subTest(kind, secure=secure):
                    key = {"metadata": [("x-key", f"{kind}{secure}")], "secure": secure}
                    self.assertEqual(self.call(weir, kind, **key)[1], messages)
                    seen = len(server.calls)
                    call, messages = self.call(weir, kind, **key)
                    self.assertEqual((messages, call.code), ([], RESOURCE_EXHAUSTED))
                    self.assertRegex(call.details, r"^Too many requests\. Please retry after \d+ seconds?\.$")
                    fields = {**call.initial, **call.trailing}
                    self.assertEqual((fields["x-ratelimit-limit"], fields["x-ratelimit-remaining"]), ("1", "0"))
                    self.assertEqual(fields["grpc-retry-pushback-ms"], fields["retry-after"] + "000")
                    self.assertEqual(len(server.calls), seen)

    def test_client_retries_a_refused_call_after_the_pushback_time(self):
        """The client's own policy would pause longer than the test waits. So the call succeeds only if the
        client uses weir's retry time."""
        policy = {"maxAttempts": 3, "initialBackoff": "60s", "maxBackoff": "60s", "backoffMultiplier": 1,
                  "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}
        options = {"grpc.service_config": json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": policy}]})}
        server = self.serve()
        weir = self.weir(server, rules=rule("per-key", "1/4s", key='["header:x-key"]', algorithm='"token_bucket"', burst=1))
        keys = [(kind, {"metadata": [("x-key", f"{kind}{secure}")], "secure": secure, "options": options})
                for kind in KINDS for secure in (False, True)]
        for attempts in (None, "1"):
            seen = len(server.calls)
            begun = [self.node.begin(weir, f"/h2c.Service/{KINDS[kind][0]}", *KINDS[kind][1], kind=kind, **key) for kind, key in keys]
            self.assertEqual([(call.finish(), call.code) for call in begun], [(ANSWERS[kind], OK) for kind, _ in keys])
            self.assertEqual([call.metadata.get("grpc-previous-rpc-attempts") for call in server.calls[seen:]], [attempts] * 8)
        self.assertEqual(weir.metric("weir_decisions_total", outcome="refused"), 8)


class Ends(JsTestCase):
    def test_deadline_of_the_client_ends_the_call_at_the_server(self):
        server = self.serve()
        weir = self.weir(server)
        begun = [self.node.begin(weir, f"/h2c.Service/{method}", b"x", kind=kind, secure=secure, timeout=3)
                 for secure in (False, True) for method, kind in (("HoldUnary", "unary"), ("Hold", "both"))]
        self.assertEqual([(call.finish(), call.code) for call in begun], [([], DEADLINE_EXCEEDED), ([b"x"], DEADLINE_EXCEEDED)] * 2)
        eventually(lambda: [call.cancelled for call in server.calls] == [True] * 4, "the server sees that the calls have ended")

    def test_late_call_is_cancelled_at_the_server_and_its_client_gets_deadline_exceeded(self):
        server = self.serve()
        weir = self.weir(server, 'timeouts = { response = "1500ms" }\nretry = { attempts = 1 }')
        self.assertEqual(self.node.call(weir, "/h2c.Service/HoldUnary", b"")[0].code, DEADLINE_EXCEEDED)
        self.assertTrue(server.calls[0].wait_until_cancelled())

    def test_cancelled_calls_of_each_kind_end_at_the_server(self):
        server = self.serve()
        weir = self.weir(server)
        for secure in (False, True):
            for method, kind in (("HoldUnary", "unary"), ("HoldSum", "client"), ("Hold", "server"), ("Hold", "both")):
                with self.subTest(kind, secure=secure):
                    seen = len(server.calls)
                    call = self.node.begin(weir, f"/h2c.Service/{method}", b"x", kind=kind, secure=secure, stays_open=True)
                    eventually(lambda: len(server.calls) > seen, "the call reaches the server")  # noqa: B023
                    call.tell(cancel=True)
                    call.finish()
                    self.assertEqual(call.code, CANCELLED)
                    self.assertTrue(server.calls[-1].wait_until_cancelled())


if __name__ == "__main__":
    main()
