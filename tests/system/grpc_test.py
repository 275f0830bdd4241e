#!/usr/bin/env python3
"""Calls of gRPC clients that weir answers itself. The clients get a gRPC status, a message and a retry time."""

import grpc

from harness import TestCase, Weir, main, closed_port

CONFIG = """
[server]
workers = 1
[[listener]]
address = "127.0.0.1:0"
protocols = ["http/1.1", "h2c"]
[[upstream]]
name = "away"
servers = ["127.0.0.1:{port}"]
[[route]]
name = "teapot"
match = {{ path = "~^/shop.Cart/(Forbidden|Limited)$" }}
respond = {{ status = 403 }}
[[route]]
name = "calls"
match = {{ path = "/shop.Cart/*" }}
upstream = "away"
[[rule]]
name = "limited"
match = {{ path = "/shop.Cart/Limited" }}
key = ["ip"]
algorithm = "fixed_window"
limit = "1/day"
"""


class Refusals(TestCase):
    def call(self, weir, method, **options):
        with grpc.insecure_channel(f"127.0.0.1:{weir.port}", options=[("grpc.enable_retries", 0)]) as channel:
            return channel.unary_unary(f"/shop.Cart/{method}").with_call(b"abc", timeout=10, **options)

    def refused(self, weir, method, **options):
        with self.assertRaises(grpc.RpcError) as raised:
            self.call(weir, method, **options)
        return raised.exception

    def weir(self):
        return self.start(Weir(CONFIG.format(port=closed_port())))

    def test_call_above_the_limit_gets_resource_exhausted_and_a_retry_time(self):
        weir = self.weir()
        self.assertEqual(self.refused(weir, "Limited").code(), grpc.StatusCode.PERMISSION_DENIED)  # the rule admits this call
        error = self.refused(weir, "Limited")
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("Too many requests. Please retry after", error.details())
        fields = {key: value for key, value in (*error.initial_metadata(), *error.trailing_metadata())}
        self.assertEqual(fields["x-ratelimit-remaining"], "0")
        self.assertEqual(int(fields["grpc-retry-pushback-ms"]), 1000 * int(fields["retry-after"]))

    def test_call_to_an_unreachable_server_gets_unavailable(self):
        self.assertEqual(self.refused(self.weir(), "Any").code(), grpc.StatusCode.UNAVAILABLE)

    def test_call_to_a_route_that_responds_403_gets_permission_denied(self):
        self.assertEqual(self.refused(self.weir(), "Forbidden").code(), grpc.StatusCode.PERMISSION_DENIED)

    def test_call_without_a_matching_route_gets_unimplemented(self):
        weir = self.weir()
        with grpc.insecure_channel(f"127.0.0.1:{weir.port}") as channel, self.assertRaises(grpc.RpcError) as raised:
            channel.unary_unary("/other.Service/Method")(b"", timeout=10)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)


if __name__ == "__main__":
    main()
