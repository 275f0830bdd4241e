#!/usr/bin/env python3
"""`weir echo --grpc`, the gRPC server of demos and tests, tested with another project's client (python3-grpcio)."""

import queue
import time

import grpc

from harness import PATIENCE, Echo, TestCase, main
from http2_client import Http2Client

METHOD = "/any.Service/Method"


def status_of(call):
    """Returns the status code with which the call ends."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


class GrpcEcho(TestCase):
    def channel(self, *arguments):
        return self.start(grpc.insecure_channel(f"127.0.0.1:{self.start(Echo('--grpc', *arguments)).port}"))

    def test_a_unary_call_gets_its_message_back(self):
        unary = self.channel().unary_unary(METHOD)
        for message in (b"", b"abc", bytes(3_000_000)):
            self.assertEqual(unary(message, timeout=PATIENCE), message)

    def test_stream_gets_each_message_back_before_the_next_message_is_sent(self):
        messages = queue.Queue()
        call = self.channel().stream_stream(METHOD)(iter(messages.get, None), timeout=PATIENCE)
        for message in (b"one", b"", bytes(200_000), b"four"):
            messages.put(message)
            self.assertEqual(next(call), message)
        messages.put(None)
        self.assertEqual(list(call), [])
        self.assertEqual(call.code(), grpc.StatusCode.OK)

    def test_calls_of_one_connection_are_independent(self):
        channel = self.channel()
        waiting = queue.Queue()
        first = channel.stream_stream(METHOD)(iter(waiting.get, None), timeout=PATIENCE)
        messages = [b"%d" % number for number in range(50)]
        self.assertEqual(list(channel.stream_stream(METHOD)(iter(messages), timeout=PATIENCE)), messages)
        waiting.put(b"late")
        self.assertEqual(next(first), b"late")
        waiting.put(None)

    def test_metadata_of_a_call_choose_the_status_that_ends_it(self):
        call = self.channel().stream_stream(METHOD)(iter([b"a", b"b"]), timeout=PATIENCE, metadata=[("x-grpc-status", "16")])
        self.assertEqual([next(call), next(call)], [b"a", b"b"])
        self.assertEqual(status_of(lambda: next(call)), grpc.StatusCode.UNAUTHENTICATED)

    def test_a_call_without_messages_gets_its_status_at_once(self):
        stream = self.channel().stream_stream(METHOD)
        for number, code in (("0", grpc.StatusCode.OK), ("8", grpc.StatusCode.RESOURCE_EXHAUSTED)):
            call = stream(iter(()), timeout=PATIENCE, metadata=[("x-grpc-status", number)])
            self.assertEqual(status_of(lambda call=call: list(call)), code)
            self.assertEqual(dict(call.initial_metadata()), {})  # the answer has only trailers

    def test_the_health_check_answers_serving(self):
        check = self.channel().unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(check(b"\x0a\x04shop", timeout=PATIENCE), b"\x08\x01")

    def test_option_delay_delays_each_answer(self):
        unary = self.channel("--delay", "300ms").unary_unary(METHOD)
        started = time.monotonic()
        self.assertEqual(unary(b"abc", timeout=PATIENCE), b"abc")
        self.assertGreaterEqual(time.monotonic() - started, 0.3)
        self.assertEqual(status_of(lambda: unary(b"abc", timeout=0.1)), grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_request_with_another_content_type_gets_415(self):
        echo = self.start(Echo("--grpc"))
        client = self.start(Http2Client(echo.port))
        self.assertEqual(client.get("/").status, 415)


if __name__ == "__main__":
    main()
