#!/usr/bin/env python3
"""gRPC calls through weir with the gRPC library on both sides: unary calls, streams, deadlines, cancelled calls and limits."""

import concurrent.futures
import threading

import grpc

from harness import PATIENCE, TestCase, Weir, config, eventually, main, rule


class Service(grpc.GenericRpcHandler):
    """Methods of /shop.Cart. Messages are bytes."""

    def __init__(self):
        self.metadata = []
        # events of a held call
        self.began, self.cancelled, self.release = threading.Event(), threading.Event(), threading.Event()
        self.is_serving = True

    def service(self, details):
        name = details.method.rsplit("/")[-1]
        self.metadata.append(dict(details.invocation_metadata))
        kinds = {"Echo": grpc.unary_unary_rpc_method_handler, "Fail": grpc.unary_unary_rpc_method_handler,
                 "Held": grpc.unary_unary_rpc_method_handler, "Count": grpc.unary_stream_rpc_method_handler,
                 "Check": grpc.unary_unary_rpc_method_handler, "Sum": grpc.stream_unary_rpc_method_handler, "Talk": grpc.stream_stream_rpc_method_handler}
        return kinds[name](getattr(self, name.lower())) if name in kinds else None

    def echo(self, message, context):
        context.send_initial_metadata((("x-first", "1"), ("x-bin", b"\0\xff")))
        context.set_trailing_metadata((("x-last", "2"),))
        return message

    def fail(self, message, context):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not so: 100 % \xe4")

    def held(self, message, context):
        self.began.set()
        if not context.add_callback(self.cancelled.set):
            self.cancelled.set()
        self.release.wait(PATIENCE)
        return message

    def check(self, message, context):
        """A health check. The only service is my.Cart."""
        if message not in (b"", b"\n\x07my.Cart"):
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return b"\x08\x01" if self.is_serving else b"\x08\x02"

    def count(self, message, context):
        for number in range(int(message)):
            yield b"%d" % number

    def sum(self, messages, context):
        return b"%d" % sum(int(message) for message in messages)

    def talk(self, messages, context):
        for message in messages:
            yield b"you said " + message


class Calls(TestCase):
    def setUp(self):
        self.service = Service()
        self.addCleanup(self.service.release.set)
        options = [("grpc.max_receive_message_length", -1)]
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(32), handlers=[self.service], options=options)
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.addCleanup(lambda: self.server.stop(None))

    def channel(self, upstream="", **more):
        text = config(self.port, listener='protocols = ["http/1.1", "h2c"]\n', upstream='protocol = "h2c"\n' + upstream, **more)
        self.weir = self.start(Weir(text))
        options = [("grpc.enable_retries", 0), ("grpc.max_receive_message_length", -1)]
        return self.start(grpc.insecure_channel(f"127.0.0.1:{self.weir.port}", options=options))

    def test_unary_calls_of_all_sizes_succeed(self):
        echo = self.channel().unary_unary("/shop.Cart/Echo")
        for size in (0, 1, 16_384, 65_531, 65_536, 3 << 20):
            message, call = echo.with_call(b"x" * size, timeout=PATIENCE, metadata=(("x-mine", "a"), ("x-mine-bin", b"\1\2")))
            self.assertEqual(len(message), size)
            self.assertEqual(dict(call.initial_metadata())["x-first"], "1")
            self.assertEqual(dict(call.initial_metadata())["x-bin"], b"\0\xff")
            self.assertEqual(dict(call.trailing_metadata())["x-last"], "2")
        seen = self.service.metadata[-1]
        self.assertEqual((seen["x-mine"], seen["x-mine-bin"]), ("a", b"\1\2"))
        self.assertIn("via", seen)

    def test_many_parallel_calls_succeed(self):
        echo = self.channel("max_streams = 10").unary_unary("/shop.Cart/Echo")
        calls = [echo.future(b"%d" % number * 1000, timeout=2 * PATIENCE) for number in range(200)]
        self.assertEqual([call.result() for call in calls], [b"%d" % number * 1000 for number in range(200)])

    def test_a_status_of_the_server_passes_with_its_message(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.channel().unary_unary("/shop.Cart/Fail")(b"", timeout=PATIENCE)
        self.assertEqual((raised.exception.code(), raised.exception.details()), (grpc.StatusCode.FAILED_PRECONDITION, "not so: 100 % \xe4"))

    def test_an_unknown_method_is_unimplemented(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.channel().unary_unary("/shop.Cart/Unknown")(b"", timeout=PATIENCE)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_streams_pass_in_both_directions(self):
        channel = self.channel()
        self.assertEqual(list(channel.unary_stream("/shop.Cart/Count")(b"10000", timeout=2 * PATIENCE)),
                         [b"%d" % number for number in range(10_000)])
        numbers = (b"%d" % number for number in range(2000))
        self.assertEqual(channel.stream_unary("/shop.Cart/Sum")(numbers, timeout=2 * PATIENCE), b"1999000")

    def test_messages_of_a_bidirectional_stream_are_forwarded_at_once(self):
        """Each message is sent after the answer to the previous message."""
        said, go_on = [], threading.Semaphore(1)

        def messages():
            for number in range(50):
                go_on.acquire(timeout=PATIENCE)
                yield b"%d" % number

        for answer in self.channel().stream_stream("/shop.Cart/Talk")(messages(), timeout=2 * PATIENCE):
            said.append(answer)
            go_on.release()
        self.assertEqual(said, [b"you said %d" % number for number in range(50)])

    def test_a_cancelled_call_is_cancelled_at_the_server(self):
        call = self.channel().unary_unary("/shop.Cart/Held").future(b"", timeout=4 * PATIENCE)
        self.assertTrue(self.service.began.wait(PATIENCE), "the server has the message of the call")
        call.cancel()
        self.assertTrue(self.service.cancelled.wait(PATIENCE))

    def test_deadline_ends_the_call_at_the_client_and_at_the_server(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.channel().unary_unary("/shop.Cart/Held")(b"", timeout=3)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertTrue(self.service.cancelled.wait(PATIENCE))

    def test_calls_over_the_limit_are_refused(self):
        echo = self.channel(rules=rule("three", "3/day", key="[]", algorithm='"fixed_window"')).unary_unary("/shop.Cart/Echo")
        self.assertEqual([echo(b"a", timeout=PATIENCE) for _ in range(3)], [b"a"] * 3)
        with self.assertRaises(grpc.RpcError) as raised:
            echo(b"a", timeout=PATIENCE)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_health_check_follows_the_state_of_a_grpc_service(self):
        check = 'health = { grpc = "SERVICE", interval = "50ms", timeout = "2s", unhealthy_after = 2, healthy_after = 2 }'
        for service in ("", "my.Cart"):
            with self.subTest(service):
                self.channel(check.replace("SERVICE", service))
                before = len(self.service.metadata)
                eventually(lambda before=before: len(self.service.metadata) > before + 3, "the server is probed")
                self.assertEqual(self.weir.metric("weir_upstream_healthy", upstream="api"), 1)
                for is_serving in (False, True):
                    self.service.is_serving = is_serving
                    self.await_metric(self.weir, int(is_serving), "weir_upstream_healthy", upstream="api")
        self.channel(check.replace("SERVICE", "my.Other"))
        self.await_metric(self.weir, 0, "weir_upstream_healthy", upstream="api")
        self.weir.wait_for("is down: its grpc-status is 5")

    def test_a_server_that_stops_gracefully_loses_no_call(self):
        """The server's GOAWAY arrives while calls are in progress. Another server gets the later calls."""
        channel = self.channel('retry = { attempts = 2 }\neject = { least = "10ms", most = "10ms" }')
        calls = [channel.unary_unary("/shop.Cart/Held").future(b"%d" % number, timeout=2 * PATIENCE) for number in range(10)]
        eventually(lambda: len(self.service.metadata) == 10, "the calls reach the server")
        stopped = self.server.stop(PATIENCE)
        self.service.release.set()
        self.assertEqual([call.result() for call in calls], [b"%d" % number for number in range(10)])
        self.assertTrue(stopped.wait(PATIENCE))


if __name__ == "__main__":
    main()
