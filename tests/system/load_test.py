#!/usr/bin/env python3
"""Elastic limits follow the load: they rise at low load, and fall when a queue or the upstreams are full."""

import threading

from harness import Client, TestCase, Upstream, Weir, config, eventually, main, request_bytes, rule

ROUTES = """
[[route]]
match = { path = "/ping" }
respond = { status = 200, body = "pong" }
[[route]]
upstream = "api"
priority = 0
"""
# The rule's base limit is used up by one request. After that, only the elastic limit admits requests.
ELASTIC = rule("elastic", "1/day", key="[]", match='{ path = "/ping" }',
               elastic='{ limit = "100000/day", while_load_below = 1 }')


class Load(TestCase):
    def setUp(self):
        self.gate = threading.Event()
        self.upstream = self.start(Upstream(self.reply))
        self.addCleanup(self.gate.set)

    def reply(self, exchange):
        self.gate.wait(60)
        exchange.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    def begin(self, weir, path):
        client = Client(weir.port)
        self.addCleanup(client.sock.close)
        client.send(request_bytes("GET", path))
        return client

    def await_ping(self, weir, status):
        eventually(lambda: weir.get("/ping").status == status, f"/ping is answered {status}")

    def await_load(self, weir, kind, value):
        eventually(lambda: weir.metric("weir_load", kind=kind) == value, f"load by {kind} is {value}")

    def await_open(self, weir):
        self.await_ping(weir, 200)
        self.await_ping(weir, 200)  # the second request exceeds the rule's base limit

    def test_elastic_limit_is_not_used_while_requests_in_flight_reach_max_in_flight(self):
        weir = self.start(Weir(config(self.upstream.port, server="max_in_flight = 2", routes=ROUTES, rules=ELASTIC)))
        self.await_open(weir)
        clients = [self.begin(weir, "/") for _ in range(2)]
        self.await_load(weir, "in_flight", 1)
        self.await_ping(weir, 429)
        self.gate.set()
        self.assertEqual([client.read().status for client in clients], [204, 204])
        self.await_load(weir, "in_flight", 0)
        self.await_ping(weir, 200)

    def test_elastic_limit_is_not_used_while_a_shared_queue_is_full(self):
        self.gate.set()
        queue = rule("queue", "1/60s", key="[]", match='{ path = "/queue" }', algorithm='"leaky_bucket"', queue=2)
        weir = self.start(Weir(config(self.upstream.port, routes=ROUTES, rules=queue + ELASTIC)))
        self.assertEqual(weir.get("/queue").status, 204)
        self.await_open(weir)
        clients = [self.begin(weir, "/queue") for _ in range(2)]
        self.await_load(weir, "queue", 1)
        self.await_ping(weir, 429)
        clients[0].leave()
        self.await_load(weir, "queue", 0.5)
        self.await_ping(weir, 200)

    def await_measurement(self, weir):
        """Waits until the measured values have changed twice in some worker. Then weir has measured the queues, too."""
        for _ in range(2):
            before = [weir.metric("weir_load", kind=kind) for kind in ("lag", "cpu")]
            eventually(lambda: [weir.metric("weir_load", kind=kind) for kind in ("lag", "cpu")] != before, "measured")  # noqa: B023

    def test_elastic_limit_is_used_while_the_queue_of_a_single_client_is_full(self):
        """If only one client uses a queue, a full queue is not treated as load."""
        self.gate.set()
        for key in ("ip", "path"):
            with self.subTest(key):
                queue = rule("queue", "1/60s", key=f'["{key}"]', match='{ path = "/queue" }', algorithm='"leaky_bucket"', queue=1)
                weir = self.start(Weir(config(self.upstream.port, routes=ROUTES, rules=queue + ELASTIC)))
                self.assertEqual(weir.get("/queue").status, 204)
                self.await_open(weir)
                self.begin(weir, "/queue")
                eventually(lambda: weir.metric("weir_queue_depth") == 1, "one request waits")  # noqa: B023
                self.await_measurement(weir)
                self.assertEqual(weir.metric("weir_load", kind="queue"), 0)

    def test_load_metrics_exist_if_a_rule_has_an_elastic_limit(self):
        weir = self.start(Weir(config(self.upstream.port, routes=ROUTES, rules=ELASTIC)))
        self.await_open(weir)
        for kind in ("lag", "cpu"):
            eventually(lambda: weir.metric("weir_load", kind=kind) < 1, f"{kind} is known")  # noqa: B023
        without = self.start(Weir(config(self.upstream.port, routes=ROUTES)))
        self.assertEqual(without.metric("weir_load"), 0)
        self.assertNotIn(b'kind="cpu"', self.page(without))
        self.assertIn(b'weir_load{kind="queue"} 0', self.page(without))

    def page(self, weir):
        with Client(weir.admin) as client:
            return client.get("/metrics").body


if __name__ == "__main__":
    main()
