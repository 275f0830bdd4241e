#!/usr/bin/env python3
"""Rules, refusals, retries, deadlines and cancellations of calls between Google's gRPC client and server."""

import json
import queue
import socket
import threading

import grpc
from grpc_peer import PATIENT, GrpcTestCase, stream, unary
from harness import PATIENCE, Weir, closed_port, eventually, main, rule, together
from http2_client import Http2Client




def kinds(channel, more=(), service="h2c"):
    """Returns functions that call the methods of each kind, with these metadata, and return all messages."""
    options = {**PATIENT, "metadata": more}
    return {"unary": lambda: [unary(channel, service=service)(b"1", **options)],
            "client stream": lambda: [channel.stream_unary(f"/{service}.Service/Sum")(iter([b"1", b"2"]), **options)],
            "server stream": lambda: list(channel.unary_stream(f"/{service}.Service/Count")(b"3", **options)),
            "bidirectional": lambda: list(stream(channel, service=service)(iter([b"1", b"2"]), **options))}


def retry(*statuses, backoff="60s"):
    """Returns a channel option by which the client retries calls that end with these statuses. The pause before a retry is longer than the
    tests wait."""
    policy = {"maxAttempts": 3, "initialBackoff": backoff, "maxBackoff": "60s", "backoffMultiplier": 1, "retryableStatusCodes": statuses}
    return "grpc.service_config", json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": policy}]})


class Limits(GrpcTestCase):
    def test_call_of_each_kind_above_the_limit_gets_resource_exhausted_and_rate_limit_fields(self):
        server = self.serve()
        weir = self.weir(server, rules=rule("per-key", "3/day", key='["header:x-key"]', algorithm='"fixed_window"'))
        for secure in (False, True):
            channel = self.channel(weir, secure)
            for kind, work in kinds(channel).items():
                with self.subTest(kind, secure=secure):
                    self.check_limit(server, kinds(channel, [("x-key", f"{kind}{secure}")])[kind], work)

    def check_limit(self, server, work, unlimited):
        for _ in range(3):
            work()
        seen = len(server.calls)
        error = self.refused(work, grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertRegex(error.details(), r"^Too many requests\. Please retry after \d+ seconds?\.$")
        fields = {name: value for name, value in (*error.initial_metadata(), *error.trailing_metadata())}
        self.assertEqual((fields["x-ratelimit-limit"], fields["x-ratelimit-remaining"]), ("3", "0"))
        self.assertEqual(fields["grpc-retry-pushback-ms"], fields["retry-after"] + "000")
        self.assertEqual(len(server.calls), seen)
        unlimited()

    def test_admitted_calls_get_rate_limit_fields_as_initial_metadata(self):
        channel = self.channel(self.weir(self.serve(), rules=rule(limit="2/day", algorithm='"fixed_window"')))
        fields = dict(unary(channel).with_call(b"", **PATIENT)[1].initial_metadata())
        self.assertEqual(fields["x-ratelimit-remaining"], "1")

    def test_stream_holds_its_permit_until_it_ends(self):
        server = self.serve()
        limit = '[[rule]]\nname = "open"\nkey = ["ip"]\nalgorithm = "concurrency"\nlimit = 1\n'
        channel = self.channel(self.weir(server, rules=limit))
        for end in (lambda call: None, lambda call: call.cancel(), lambda call: None):
            call, requests = eventually(lambda: self.open_stream(channel), "a stream is admitted")
            self.refused(lambda: unary(channel)(b"", **PATIENT), grpc.StatusCode.RESOURCE_EXHAUSTED)
            end(call)
            requests.put(None)

    def open_stream(self, channel):
        """Returns a stream and the queue of its requests, or None if the rule refuses the stream."""
        requests = queue.Queue()
        requests.put(b"x")
        call = stream(channel)(iter(requests.get, None), **PATIENT)
        try:
            self.assertEqual(next(call), b"x")
            return call, requests
        except grpc.RpcError as error:
            requests.put(None)
            self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)


class Retries(GrpcTestCase):
    def test_client_retries_a_refused_call_after_the_pushback_time(self):
        """The client's own policy would pause longer than the test waits. So the call succeeds only if the client uses the time
        that weir states."""
        server = self.serve()
        weir = self.weir(server, rules=rule("per-key", "1/4s", key='["header:x-key"]', algorithm='"token_bucket"', burst=1))
        for secure in (False, True):
            channel = self.channel(weir, secure, options=[retry("RESOURCE_EXHAUSTED")])
            all_kinds = [kinds(channel, [("x-key", f"{kind}{secure}")])[kind] for kind in kinds(channel)]
            for attempts in (None, "1"):
                seen = len(server.calls)
                together(4, lambda number: all_kinds[number]())  # noqa: B023
                self.assertEqual([call.metadata.get("grpc-previous-rpc-attempts") for call in server.calls[seen:]], [attempts] * 4)
        self.assertEqual(weir.metric("weir_decisions_total", outcome="refused"), 8)

    def test_client_does_not_retry_refusals_that_last_until_tomorrow(self):
        weir = self.weir(self.serve(), rules=rule(limit="1/day", algorithm='"fixed_window"'))
        channel = self.channel(weir, options=[retry("RESOURCE_EXHAUSTED")])
        unary(channel)(b"", **PATIENT)
        call = unary(channel).future(b"", timeout=1)
        self.assertEqual(call.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertEqual(weir.metric("weir_decisions_total", outcome="refused"), 1)

    def test_client_retries_until_a_server_has_room_below_max_in_flight(self):
        server = self.serve()
        weir = self.weir(server, "queue = 0", ", max_in_flight = 1")
        channel = self.channel(weir, options=[retry("UNAVAILABLE")])
        held = unary(channel, "HoldUnary").future(b"held", **PATIENT)
        eventually(lambda: server.count("HoldUnary") == 1, "the call reaches the server")
        waiting = unary(channel).future(b"waited", **PATIENT)
        eventually(lambda: weir.metric("weir_upstream_crowded_total") >= 1, "weir refuses a call")
        server.release()
        self.assertEqual((held.result(), waiting.result()), (b"held", b"waited"))
        self.assertEqual(server.count("Unary"), 1)


class Refusals(GrpcTestCase):
    def test_calls_to_servers_that_cannot_be_reached_fail(self):
        server = self.serve(files=self.files)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = closed_port()
            upstreams = {
                "away": f'servers = ["127.0.0.1:{port}"]\nprotocol = "h2c"',
                "untrusted": f'servers = ["https://127.0.0.1:{server.tls_port}"]\nprotocol = "h2"',
                "plain": f'servers = ["https://127.0.0.1:{server.port}"]\nprotocol = "h2"',
                "silent": f'servers = ["https://127.0.0.1:{silent.getsockname()[1]}"]\nprotocol = "h2"\ntimeouts = {{ connect = "300ms" }}'}
            weir = self.start(Weir(self.config(upstreams), files=self.files))
            for secure in (False, True):
                channel = self.channel(weir, secure)
                for service in upstreams:
                    status = grpc.StatusCode.DEADLINE_EXCEEDED if service == "silent" else grpc.StatusCode.UNAVAILABLE
                    with self.subTest(service=service, secure=secure):
                        all_kinds = list(kinds(channel, service=service).values())
                        together(4, lambda number: str(self.refused(all_kinds[number], status)))  # noqa: B023
        self.assertEqual(server.calls, [])


class Deadlines(GrpcTestCase):
    def test_deadline_of_the_client_ends_the_call_at_the_server(self):
        server = self.serve()
        weir = self.weir(server)
        channels = self.channel(weir), self.channel(weir, secure=True)
        calls = [unary(channel, "HoldUnary").future(b"", timeout=3) for channel in channels]
        calls += [stream(channel, "Hold")(iter([b""]), timeout=3) for channel in channels]
        for call in calls:
            self.assertEqual(call.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        eventually(lambda: [call.cancelled for call in server.calls] == [True] * 4, "the server sees that the calls have ended")

    def test_weir_enforces_the_deadline_if_the_server_does_not(self):
        """The client of this test does not end the call by itself, and the server accepts nothing."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            upstreams = {"h2c": f'servers = ["127.0.0.1:{silent.getsockname()[1]}"]\nprotocol = "h2c"'}
            weir = self.start(Weir(self.config(upstreams), files=self.files))
            with Http2Client(weir.port) as client:
                fields = [("content-type", "application/grpc"), ("te", "trailers"), ("grpc-timeout", "300m")]
                answer = client.request("POST", "/h2c.Service/Unary", fields, bytes(5))
        self.assertEqual((answer.status, answer["grpc-status"]), (200, "4"))

    def test_late_call_is_cancelled_at_the_server_and_its_client_gets_deadline_exceeded(self):
        server = self.serve()
        channel = self.channel(self.weir(server, 'timeouts = { response = "1500ms" }\nretry = { attempts = 1 }'))
        self.refused(lambda: unary(channel, "HoldUnary")(b"", **PATIENT), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertTrue(server.calls[0].wait_until_cancelled())


class Cancellations(GrpcTestCase):
    def test_cancelled_calls_of_each_kind_end_at_the_server(self):
        server = self.serve()
        weir = self.weir(server)
        for secure in (False, True):
            channel, ending = self.channel(weir, secure), threading.Event()
            # sends no message, and ends only once `ending` is set
            requests = iter(lambda: ending.wait(PATIENCE) and None, None)
            start = {"unary": lambda: unary(channel, "HoldUnary").future(b"", **PATIENT),  # noqa: B023
                     "server stream": lambda: stream(channel, "Hold")(iter([b""]), **PATIENT),  # noqa: B023
                     "bidirectional": lambda: stream(channel, "Hold")(requests, **PATIENT),  # noqa: B023
                     "client stream": lambda: channel.stream_unary("/h2c.Service/HoldSum").future(requests, **PATIENT)}  # noqa: B023
            for kind, begin in start.items():
                with self.subTest(kind, secure=secure):
                    seen = len(server.calls)
                    call = begin()
                    eventually(lambda: len(server.calls) > seen, "the call reaches the server")  # noqa: B023
                    call.cancel()
                    self.assertTrue(server.calls[-1].wait_until_cancelled())
            ending.set()
            self.assertEqual(unary(channel)(b"on", **PATIENT), b"on")

    def test_calls_of_a_closed_connection_end_at_the_server(self):
        server = self.serve()
        weir = self.weir(server)
        with self.open(weir) as channel:
            calls = [stream(channel, "Hold")(iter([b"x"]), **PATIENT) for _ in range(20)]
            self.assertEqual([next(call) for call in calls], [b"x"] * 20)
        eventually(lambda: [call.cancelled for call in server.calls] == [True] * 20, "the server sees that the client has left")
        self.await_metric(weir, 0, "weir_http2_streams")

    def test_cancelled_call_does_not_affect_other_calls_on_the_same_connections(self):
        server = self.serve()
        channel = self.channel(self.weir(server))
        calls = [stream(channel, "Hold")(iter([b"x"]), **PATIENT) for _ in range(20)]
        self.assertEqual([next(call) for call in calls], [b"x"] * 20)
        for call in calls[::2]:
            call.cancel()
        eventually(lambda: sum(call.cancelled is True for call in server.calls) == 10, "ten calls end at the server")
        server.release()
        self.assertEqual([list(call) for call in calls[1::2]], [[b"released"]] * 10)


if __name__ == "__main__":
    main()
