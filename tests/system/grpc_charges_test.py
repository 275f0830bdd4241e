#!/usr/bin/env python3
"""Rules with `charge = { grpc_status = … }`: gRPC calls are charged by the status with which they end. The client is python3-grpcio.
The server speaks HTTP/1.1 with trailers, or HTTP/2."""

import grpc

from harness import PATIENCE, Client, TestCase, Upstream, Weir, answer, chunked, config, eventually, main, rule
from http2_server import Http2Server

OK, UNAUTHENTICATED, EXHAUSTED = grpc.StatusCode.OK, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.RESOURCE_EXHAUSTED
GRPC = "Content-Type: application/grpc\r\n"
HEAD = f"HTTP/1.1 200 OK\r\n{GRPC}Transfer-Encoding: chunked\r\nTrailer: grpc-status\r\n\r\n".encode()


def message(content):
    return b"\0" + len(content).to_bytes(4, "big") + content


def reply(exchange):
    """Sends a message, and then the status that the metadata of the request ask for."""
    exchange.read_body()
    status = exchange.head["x-grpc-status"] or "0"
    exchange.send(HEAD + chunked(message(b"answer"))[:-2] + f"grpc-status: {status}\r\n\r\n".encode())


def reply_without_messages(exchange):
    exchange.read_body()
    exchange.send(answer(b"", headers=f"{GRPC}grpc-status: {exchange.head['x-grpc-status']}\r\n"))


class GrpcCharges(TestCase):
    def weir(self, charge='{ grpc_status = ["UNAUTHENTICATED"] }', upstream_reply=reply, limit="2/day", http2=False):
        self.upstream = self.start((Http2Server if http2 else Upstream)(upstream_reply))
        rules = rule("failures", limit=limit, key='["ip"]', algorithm='"sliding_log"', charge=charge)
        upstream = 'protocol = "h2c"\n' if http2 else ""
        weir = self.start(Weir(config(self.upstream.port, rules=rules, listener='protocols = ["http/1.1", "h2c"]', upstream=upstream)))
        self.channel = self.start(grpc.insecure_channel(f"127.0.0.1:{weir.port}", options=[("grpc.enable_retries", 0)]))
        return weir

    def call(self, status=0):
        """Makes a call that asks the server for this status. Returns the status code with which the call ends."""
        try:
            self.channel.unary_unary("/shop.Cart/Get")(b"abc", timeout=PATIENCE, metadata=[("x-grpc-status", str(status))])
        except grpc.RpcError as error:
            return error.code()
        return OK

    def settled(self, weir, outcome):
        return int(weir.metric("weir_settlements_total", rule="failures", outcome=outcome))

    def test_only_calls_that_end_with_a_configured_status_are_charged(self):
        weir = self.weir()
        self.assertEqual([self.call(status) for status in (0, 16, 0, 5, 0, 16)],
                         [OK, UNAUTHENTICATED, OK, grpc.StatusCode.NOT_FOUND, OK, UNAUTHENTICATED])
        self.assertEqual(self.call(0), EXHAUSTED)
        self.assertEqual(len(self.upstream.exchanges), 6)
        self.assertEqual((self.settled(weir, "charged"), self.settled(weir, "refunded")), (2, 4))

    def test_call_is_settled_before_its_client_receives_the_status(self):
        self.weir(limit="1/day")
        self.assertEqual([self.call() for _ in range(200)], [OK] * 200)

    def test_status_in_trailers_counts_even_if_the_answer_has_a_content_length(self):
        def reply_with_length(request):
            request.read_body()
            request.answer(message(b"answer"), fields=[("content-type", "application/grpc")],
                           trailers=[("grpc-status", request["x-grpc-status"])])

        self.weir(upstream_reply=reply_with_length, http2=True)
        self.assertEqual([self.call(status) for status in (0, 16, 0, 16, 0)], [OK, UNAUTHENTICATED] * 2 + [EXHAUSTED])

    def test_grpc_call_without_messages_is_charged_by_its_status(self):
        self.weir(upstream_reply=reply_without_messages)
        self.assertEqual([self.call(status) for status in (7, 16, 7, 16, 7)],
                         [grpc.StatusCode.PERMISSION_DENIED, UNAUTHENTICATED] * 2 + [EXHAUSTED])

    def test_http_error_of_the_server_is_charged_as_the_grpc_status_that_clients_see(self):
        self.weir(upstream_reply=answer(b"", status="401 Unauthorized"))
        self.assertEqual([self.call(), self.call(), self.call()], [UNAUTHENTICATED, UNAUTHENTICATED, EXHAUSTED])

    def test_call_that_its_server_breaks_off_is_charged_as_unavailable(self):
        def break_off(exchange):
            exchange.read_body()
            exchange.send(HEAD + b"7\r\n\0\0\0")
            exchange.close()

        weir = self.weir('{ grpc_status = ["UNAVAILABLE", "13"] }', break_off)
        self.assertNotEqual(self.call(), EXHAUSTED)
        eventually(lambda: self.settled(weir, "charged") == 1, "the broken call is charged")

    def test_call_broken_off_by_its_server_is_refunded_if_status_unavailable_is_not_charged(self):
        def break_off(exchange):
            exchange.read_body()
            exchange.send(HEAD + b"7\r\n\0\0\0")
            exchange.close()

        weir = self.weir(upstream_reply=break_off)
        self.assertNotEqual(self.call(), EXHAUSTED)
        eventually(lambda: self.settled(weir, "refunded") == 1, "the broken call is refunded")

    def test_call_stays_charged_if_the_client_cancels_before_the_status(self):
        def begin(exchange):
            exchange.read_body()
            exchange.send(HEAD + b"b\r\n" + message(b"answer") + b"\r\n")
            exchange.wait_for_close()

        weir = self.weir(upstream_reply=begin)
        call = self.channel.stream_stream("/shop.Cart/Watch")(iter([b"abc"]), timeout=PATIENCE)
        self.assertEqual(next(call), b"answer")
        call.cancel()
        self.await_metric(weir, 1, "weir_http2_resets_total", by="client")
        self.upstream.exchanges[0].close()
        eventually(lambda: self.settled(weir, "unanswered") == 1, "the charge stands")

    def test_requests_that_are_no_grpc_calls_are_charged_by_their_http_status(self):
        weir = self.weir('{ status = "401", grpc_status = "16" }', answer(b"", status="401 Unauthorized"))
        with Client(weir.port) as client:
            self.assertEqual([client.request("GET", "/").status for _ in range(3)], [401, 401, 429])
        calls = self.weir('{ grpc_status = "16" }', answer(b"", status="401 Unauthorized"))
        with Client(calls.port) as client:
            self.assertEqual([client.request("GET", "/").status for _ in range(3)], [401, 401, 401])


if __name__ == "__main__":
    main()
