#!/usr/bin/env python3
"""Rules with `messages` limit the messages of gRPC calls. The client is python3-grpcio. The server speaks HTTP/1.1 with trailers, and
sends each message back."""

import contextlib
import queue
import time

import grpc

from harness import PATIENCE, Client, TestCase, Upstream, Weir, chunked, config, eventually, main, rule
from http2_client import Http2Client

EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\ngrpc-status: 0\r\n\r\n"


def message(content):
    return b"\0" + len(content).to_bytes(4, "big") + content


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


class GrpcMessages(TestCase):
    def setUp(self):
        self.got = b""  # octets of bodies that the server has received
        self.upstream = self.start(Upstream(self.echo))

    def pieces(self, exchange):
        if exchange.head["content-length"]:
            yield exchange.read_body()
            return
        while size := int(exchange.wire.read_until(b"\r\n"), 16):
            yield exchange.wire.read_exactly(size + 2)[:-2]
        exchange.wire.read_until(b"\r\n")

    def echo(self, exchange):
        exchange.send(HEAD)
        for piece in self.pieces(exchange):
            self.got += piece
            exchange.send(chunk(piece))
        exchange.send(END)

    def weir(self, messages, **more):
        options = {"messages": f'"{messages}"', "key": '["ip"]', **more}
        weir = self.start(Weir(config(self.upstream.port, rules=rule("chat", "1000/s", **options),
                                      listener='protocols = ["http/1.1", "h2c"]')))
        self.channel = self.start(grpc.insecure_channel(f"127.0.0.1:{weir.port}", options=[("grpc.enable_retries", 0)]))
        return weir

    def unary(self, content=b"abc", timeout=PATIENCE):
        return self.channel.unary_unary("/chat.Room/Say")(content, timeout=timeout)

    def refused(self, call):
        with self.assertRaises(grpc.RpcError) as raised:
            call()
        return raised.exception

    def stream(self, contents):
        return self.channel.stream_stream("/chat.Room/Talk")(iter(contents), timeout=PATIENCE)

    def answer_with(self, *contents):
        """Makes the server send these messages, whatever it gets."""
        def reply(exchange):
            exchange.read_body()
            exchange.send(HEAD)
            with contextlib.suppress(OSError):
                for content in contents:
                    exchange.send(chunk(message(content)))
                exchange.send(END)
        self.upstream.reply = reply

    def test_messages_above_the_limit_are_delayed_and_not_lost_by_default(self):
        weir = self.weir("20/s", messages_burst=2)
        contents = [b"%d" % number for number in range(8)]
        began = time.monotonic()
        self.assertEqual(list(self.stream(contents)), contents)
        self.assertGreaterEqual(time.monotonic() - began, 6 / 20 - 0.001, "two messages at once, then one every 50 ms")
        self.await_metric(weir, 8, "weir_messages_total", rule="chat")
        self.assertGreater(weir.metric("weir_messages_total", outcome="delayed"), 0)

    def test_no_octet_of_a_delayed_message_reaches_the_server(self):
        weir = self.weir("2/day")
        call = self.stream([b"one", bytes(100_000), b"late"])
        self.assertEqual([len(next(call)), len(next(call))], [3, 100_000])
        other = self.refused(lambda: self.unary(timeout=0.3))
        self.assertEqual(other.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        call.cancel()
        self.await_metric(weir, 2, "weir_messages_total")
        eventually(lambda: not self.upstream.open, "weir ends the request to the server")
        self.assertEqual(self.got, message(b"one") + message(bytes(100_000)))

    def test_call_charged_by_status_ends_at_the_server_when_its_client_leaves_during_a_delay(self):
        sent = queue.Queue()

        def silent(exchange):
            for piece in self.pieces(exchange):
                sent.put(piece)

        self.upstream.reply = silent
        weir = self.weir("1/day", charge='{ grpc_status = ["UNAUTHENTICATED"] }')
        client = self.start(Http2Client(weir.port))
        call = client.open("POST", "/chat.Room/Talk", [("content-type", "application/grpc"), ("te", "trailers")], end=False)
        client.send_body(call, message(b"one") + message(b"late"), end=False)
        self.assertEqual(sent.get(timeout=PATIENCE), message(b"one"))
        client.reset(call)
        eventually(lambda: not self.upstream.open, "weir ends the request to the server")
        self.await_metric(weir, 1, "weir_settlements_total", rule="chat", outcome="unanswered")

    def test_a_message_above_the_limit_ends_the_call_if_configured(self):
        weir = self.weir("2/day", messages_over='"close"')
        contents = queue.Queue()
        call = self.stream(iter(contents.get, None))
        for content in (b"one", b"two"):
            contents.put(content)
            self.assertEqual(next(call), content)
        contents.put(b"three")
        error = self.refused(lambda: next(call))
        self.assertEqual((error.code(), error.details()), (EXHAUSTED, "too many messages"))
        contents.put(None)
        self.await_metric(weir, 1, "weir_messages_total", outcome="refused")
        eventually(lambda: not self.upstream.open, "weir ends the request to the server")
        self.assertEqual(self.got, message(b"one") + message(b"two"))

    def test_call_that_weir_ends_for_too_many_client_messages_is_not_refunded(self):
        """Otherwise a client could guess, see in the server's message that the guess is wrong, and get a refund by sending one
        message too many."""
        weir = self.weir("1/day", messages_over='"close"', charge='{ grpc_status = ["UNAUTHENTICATED"] }')
        contents = queue.Queue()
        call = self.stream(iter(contents.get, None))
        contents.put(b"guess")
        self.assertEqual(next(call), b"guess")
        contents.put(b"one too many")
        self.assertEqual(self.refused(lambda: next(call)).code(), EXHAUSTED)
        contents.put(None)
        self.await_metric(weir, 1, "weir_settlements_total", rule="chat", outcome="unanswered")
        self.assertEqual(weir.metric("weir_settlements_total", rule="chat", outcome="refunded"), 0)

    def test_call_is_refunded_if_the_server_exceeds_the_message_limit(self):
        weir = self.weir("1/day", messages_over='"close"', direction='"server"', charge='{ grpc_status = ["UNAUTHENTICATED"] }')
        self.answer_with(b"one", b"two")
        call = self.stream([b"abc"])
        self.assertEqual(next(call), b"one")
        self.assertEqual(self.refused(lambda: next(call)).code(), EXHAUSTED)
        self.await_metric(weir, 1, "weir_settlements_total", rule="chat", outcome="refunded")

    def test_unary_call_above_the_limit_is_refused_if_configured(self):
        weir = self.weir("2/day", messages_over='"close"')
        self.assertEqual([self.unary(), self.unary()], [b"abc", b"abc"])
        error = self.refused(self.unary)
        self.assertEqual((error.code(), error.details()), (EXHAUSTED, "too many messages"))
        self.assertEqual(len(self.upstream.exchanges), 2)
        self.await_metric(weir, 1, "weir_messages_total", outcome="refused")

    def test_unary_calls_above_the_limit_are_delayed_by_default(self):
        self.weir("20/s", messages_burst=1)
        began = time.monotonic()
        self.assertEqual([self.unary() for _ in range(4)], [b"abc"] * 4)
        self.assertGreaterEqual(time.monotonic() - began, 3 / 20 - 0.001)

    def test_a_deadline_ends_the_delay_of_a_unary_call(self):
        self.weir("1/day")
        self.unary()
        self.assertEqual(self.refused(lambda: self.unary(timeout=0.3)).code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertEqual(len(self.upstream.exchanges), 1)

    def test_messages_of_servers_count_only_if_configured(self):
        self.answer_with(*[b"x"] * 50)
        self.weir("1/day", messages_over='"close"')
        self.assertEqual(len(list(self.stream([b"all"]))), 50)

    def test_messages_of_a_server_above_the_limit_end_the_call_if_configured(self):
        self.answer_with(*[b"%d" % number for number in range(50)])
        weir = self.weir("3/day", messages_over='"close"', direction='"server"')
        call = self.stream([b"one", b"two", b"three", b"four"])
        self.assertEqual([next(call) for _ in range(3)], [b"0", b"1", b"2"])
        self.assertEqual(self.refused(lambda: next(call)).code(), EXHAUSTED)
        self.await_metric(weir, 3, "weir_messages_total", outcome="admitted")
        self.await_metric(weir, 1, "weir_messages_total", outcome="refused")

    def test_messages_of_a_server_above_the_limit_are_delayed_by_default(self):
        contents = [b"%d" % number * 5000 for number in range(8)]
        self.answer_with(*contents)
        self.weir("20/s", messages_burst=2, direction='"server"')
        began = time.monotonic()
        self.assertEqual(list(self.stream([b"all"])), contents)
        self.assertGreaterEqual(time.monotonic() - began, 6 / 20 - 0.001)

    def test_client_and_server_of_a_call_share_one_message_limit(self):
        self.weir("4/day", messages_over='"close"', direction='"both"')
        contents = queue.Queue()
        call = self.stream(iter(contents.get, None))
        for content in (b"one", b"two"):
            contents.put(content)
            self.assertEqual(next(call), content)
        contents.put(b"three")
        self.assertEqual(self.refused(lambda: next(call)).code(), EXHAUSTED)
        contents.put(None)

    def test_shadow_rule_counts_messages_but_delays_and_refuses_none(self):
        weir = self.weir("1/day", mode='"shadow"', messages_over='"close"')
        self.assertEqual(len(list(self.stream([b"x"] * 3))), 3)
        self.await_metric(weir, 2, "weir_messages_total", outcome="shadow_refused")

    def test_http_1_call_above_the_limit_is_cut_off_without_trailers(self):
        self.answer_with(b"one", b"two")
        weir = self.weir("1/day", messages_over='"close"', direction='"server"')
        with Client(weir.port) as client:
            client.send(b"POST /chat.Room/Talk HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\r\n")
            received = client.wire.read_to_end()
        self.assertTrue(received.endswith(chunk(message(b"one"))), received)

    def test_bodies_of_requests_that_are_no_grpc_calls_are_not_limited(self):
        self.answer_with(b"x", b"y")
        weir = self.weir("1/day", messages_over='"close"', direction='"both"')
        with Client(weir.port) as client:
            for _ in range(3):
                answer = client.request("POST", "/", body=message(b"one") + message(b"two"))
                self.assertEqual(answer.body, message(b"x") + message(b"y"))


if __name__ == "__main__":
    main()
