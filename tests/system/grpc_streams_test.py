#!/usr/bin/env python3
"""Calls of Google's gRPC client through weir to Google's gRPC server, with and without TLS on either side: messages, metadata and
statuses arrive as they were sent."""

import functools
import queue

import grpc
from grpc_peer import MESSAGE, GrpcServer, GrpcTestCase, stream, unary
from harness import PATIENCE, Weir, main
from http2_client import Http2Client

FRAME = b"\0\0\0\0\3abc"  # a message of three octets, as gRPC frames it


def each_way(test):
    """Runs a test with each kind of client and each protocol of the upstream."""
    @functools.wraps(test)
    def run(self):
        for client, channel in self.channels.items():
            for service in ("h2c", "h2", "auto"):
                with self.subTest(client=client, server=service):
                    test(self, channel, service)
    return run


class EachWay(GrpcTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.enterClassContext(GrpcServer(cls.files))
        tls = f'servers = ["https://127.0.0.1:{cls.server.tls_port}"]\ntls = {{ ca = "server.crt" }}\nprotocol = '
        upstreams = {"h2c": f'servers = ["127.0.0.1:{cls.server.port}"]\nprotocol = "h2c"', "h2": tls + '"h2"', "auto": tls + '"auto"'}
        cls.proxy = cls.enterClassContext(Weir(cls.config(upstreams), files=cls.files))
        cls.channels = {name: cls.enterClassContext(cls.open(cls.proxy, secure)) for name, secure in (("plain", False), ("TLS", True))}

    @each_way
    def test_unary_calls_return_their_answer(self, channel, service):
        self.assertEqual(unary(channel, service=service)(b"one", timeout=PATIENCE), b"one")
        self.assertEqual(unary(channel, service=service)(b"", timeout=PATIENCE), b"")

    @each_way
    def test_client_streams_arrive_whole_and_in_order(self, channel, service):
        messages = [b"%d," % number for number in range(500)]
        call = channel.stream_unary(f"/{service}.Service/Sum")
        self.assertEqual(call(iter(messages), timeout=PATIENCE), b"".join(messages))
        self.assertEqual(call(iter(()), timeout=PATIENCE), b"")

    @each_way
    def test_server_streams_arrive_whole_and_in_order(self, channel, service):
        call = channel.unary_stream(f"/{service}.Service/Count")
        self.assertEqual(list(call(b"500", timeout=PATIENCE)), [b"%d" % number for number in range(500)])
        self.assertEqual(list(call(b"0", timeout=PATIENCE)), [])

    @each_way
    def test_messages_of_a_bidirectional_stream_pass_at_once(self, channel, service):
        """The client sends a message only after it has received the answer to the previous message."""
        outgoing = queue.Queue()
        answers = stream(channel, service=service)(iter(outgoing.get, None), timeout=PATIENCE)
        for number in range(50):
            outgoing.put(b"%d" % number)
            self.assertEqual(next(answers), b"%d" % number)
        outgoing.put(None)
        self.assertEqual(list(answers), [])
        self.assertEqual(answers.code(), grpc.StatusCode.OK)

    @each_way
    def test_status_reaches_the_client_before_the_client_has_sent_all_messages(self, channel, service):
        outgoing = queue.Queue()
        outgoing.put(b"first")
        answers = stream(channel, "FailEarly", service)(iter(outgoing.get, None), timeout=PATIENCE, metadata=[("x-status", "9")])
        self.assertEqual(self.refused(answers, grpc.StatusCode.FAILED_PRECONDITION).details(), MESSAGE)
        outgoing.put(None)

    @each_way
    def test_metadata_pass_both_ways_as_text_and_octets(self, channel, service):
        octets = bytes(range(256))
        sent = [("first-text", "a, b; c"), ("first-octets-bin", octets), ("last-text", "z"), ("last-octets-bin", b""), ("last-more-bin", octets)]
        answers = stream(channel, service=service)(iter([b"x"]), timeout=PATIENCE, metadata=sent)
        self.assertEqual(list(answers), [b"x"])
        received = self.server.calls[-1].metadata
        self.assertEqual({name: received[name] for name, _ in sent}, dict(sent))
        self.assertLessEqual(set(sent[:2]), set(answers.initial_metadata()))
        self.assertLessEqual(set(sent[2:]), set(answers.trailing_metadata()))

    @each_way
    def test_messages_of_four_megabytes_pass_both_ways(self, channel, service):
        large = bytes(range(256)) * (1 << 14)
        self.assertEqual(unary(channel, service=service)(large, timeout=PATIENCE), large)
        self.assertEqual(list(stream(channel, service=service)(iter([large, b"", large]), timeout=PATIENCE)), [large, b"", large])

    @each_way
    def test_each_status_of_the_server_passes_with_its_message_and_details(self, channel, service):
        details = b"\x08\x05\x12\x04gone"  # google.rpc.Status { code = 5, message = "gone" }
        for status in list(grpc.StatusCode)[1:]:
            sent = [("x-status", str(status.value[0])), ("last-details-bin", details)]
            for call, method in ((channel.unary_unary, "Fail"), (channel.unary_stream, "FailLate")):
                error = self.refused(lambda: call(f"/{service}.Service/{method}")(b"", timeout=PATIENCE, metadata=sent), status)  # noqa: B023
                self.assertEqual(error.details(), MESSAGE)
                self.assertEqual(dict(error.trailing_metadata())["last-details-bin"], details)

    def test_trailers_only_answer_is_forwarded_as_a_single_head(self):
        fields = [("content-type", "application/grpc"), ("te", "trailers"), ("x-status", "5")]
        with Http2Client(self.proxy.port) as client:
            for service in ("h2c", "h2", "auto"):
                answer = client.request("POST", f"/{service}.Service/Fail", fields, FRAME)
                self.assertEqual((answer.status, answer["grpc-status"], answer.trailers), (200, "5", []))
                answer = client.request("POST", f"/{service}.Service/FailLate", fields, FRAME)
                self.assertEqual((answer.body, answer["grpc-status"], dict(answer.trailers)["grpc-status"]), (FRAME, None, "5"))


class Compression(GrpcTestCase):
    def test_compressed_messages_pass_compressed_both_ways(self):
        """Uncompressed, the request would exceed max_body."""
        weir = self.weir(self.serve(compression=grpc.Compression.Gzip), server='max_body = "64KiB"')
        zeros = bytes(4 << 20)
        with self.open(weir, compression=grpc.Compression.Gzip) as channel:
            self.assertEqual(unary(channel)(zeros, timeout=PATIENCE), zeros)
            self.assertEqual(list(stream(channel)(iter([zeros, zeros]), timeout=PATIENCE)), [zeros, zeros])
        fields = [("content-type", "application/grpc"), ("te", "trailers"), ("grpc-accept-encoding", "gzip")]
        with Http2Client(weir.port) as client:
            answer = client.request("POST", "/h2c.Service/Unary", fields, b"\0" + (30_000).to_bytes(4, "big") + bytes(30_000))
        self.assertEqual((answer["grpc-encoding"], answer.body[0]), ("gzip", 1))
        self.assertLess(answer.size, 1000)

    def test_messages_larger_than_max_body_get_resource_exhausted(self):
        weir = self.weir(self.serve(), server='max_body = "64KiB"')
        for secure in (False, True):
            channel = self.channel(weir, secure)
            self.refused(lambda: unary(channel)(bytes(1 << 20), timeout=PATIENCE), grpc.StatusCode.RESOURCE_EXHAUSTED)  # noqa: B023
            self.assertEqual(unary(channel)(bytes(60 << 10), timeout=PATIENCE), bytes(60 << 10))


if __name__ == "__main__":
    main()
