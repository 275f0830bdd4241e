#!/usr/bin/env python3
"""The leaky bucket as a queue: it delays without blocking, keeps its bounds, and gives places back. Intervals are
measured at the upstream and printed; what is asserted allows for a slow machine."""

import statistics
import time

from harness import SANITIZED, Client, TestCase, Upstream, Weir, config, eventually, get, main, request_bytes, rule, together


def queue_rule(limit, queue, **more):
    return rule("queue", limit, algorithm='"leaky_bucket"', key="[]", queue=queue, match='{ path = "/queue" }', **more)


class Shaper(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, limit, queue, **more):
        return self.start(Weir(config(self.upstream.port, rules=queue_rule(limit, queue, **more))))

    def waiting_client(self, weir):
        client = Client(weir.port)
        self.addCleanup(client.sock.close)
        client.send(request_bytes("GET", "/queue"))
        return client

    def fill(self, weir, count):
        """One has departed, `count` wait, in this order."""
        self.assertEqual(weir.get("/queue").status, 200)
        clients = []
        for number in range(count):
            clients.append(self.waiting_client(weir))
            eventually(lambda: weir.metric("weir_queue_depth") == number + 1, f"{number + 1} wait")  # noqa: B023
        return clients

    def test_sixty_clients_depart_ten_milliseconds_apart(self):
        weir = self.weir("100/s", 100)
        statuses = together(60, lambda _: weir.get("/queue").status)
        self.assertEqual(statuses, [200] * 60)
        arrived = sorted(exchange.arrived for exchange in self.upstream.exchanges)
        gaps = sorted((later - earlier) * 1000 for earlier, later in zip(arrived, arrived[1:]))
        near = sum(abs(gap - 10) <= 1 for gap in gaps) / len(gaps)
        print(f"\ngaps at the upstream: median {statistics.median(gaps):.2f} ms, least {gaps[0]:.2f}, most {gaps[-1]:.2f}, "
              f"{near:.0%} within 1 ms of 10", flush=True)
        self.assertAlmostEqual((arrived[-1] - arrived[0]) * 1000, 590, delta=400 if SANITIZED else 120)
        self.assertAlmostEqual(statistics.median(gaps), 10, delta=5 if SANITIZED else 2)

    def test_first_come_first_served_within_one_client(self):
        order = []

        def reply(exchange):
            order.append(exchange.head["x-number"])
            exchange.send(b"HTTP/1.1 204 No Content\r\n\r\n")

        self.upstream.reply = reply
        weir = self.weir("20/s", 20)
        clients = []
        for number in range(8):
            client = Client(weir.port)
            self.addCleanup(client.sock.close)
            client.send(request_bytes("GET", "/queue", {"X-Number": str(number)}))
            clients.append(client)
            eventually(lambda: len(order) + weir.metric("weir_queue_depth") >= number + 1, "it is taken in")  # noqa: B023
        self.assertEqual([client.read().status for client in clients], [204] * 8)
        self.assertEqual(order, sorted(order))

    def test_the_queue_has_a_bound(self):
        weir = self.weir("1/2s", 2)
        self.fill(weir, 2)
        refused = weir.get("/queue")
        self.assertEqual(refused.status, 429)
        self.assertIn(int(refused["retry-after"]), (1, 2))

    def test_the_wait_has_a_bound(self):
        weir = self.weir("1/2s", 10, max_wait='"500ms"')
        self.assertEqual(weir.get("/queue").status, 200)
        self.assertEqual(weir.get("/queue").status, 429)

    def test_a_client_that_leaves_frees_its_place(self):
        text = config(self.upstream.port, rules=queue_rule("1/3s", 2)).replace("workers = 2", "workers = 1")
        weir = self.start(Weir(text))  # each worker has its own line: places move up within it
        began = time.monotonic()
        first, second = self.fill(weir, 2)
        self.assertEqual(weir.get("/queue").status, 429)
        first.leave()
        eventually(lambda: weir.metric("weir_queue_depth") == 1, "the place is free")
        third = self.waiting_client(weir)
        eventually(lambda: weir.metric("weir_queue_depth") == 2, "the newcomer waits")
        self.assertEqual(second.read().status, 200)
        self.assertLess(time.monotonic() - began, 5.5, "the second moved up to the first's departure")
        self.assertEqual(third.read().status, 200)
        self.assertEqual(len(self.upstream.exchanges), 3, "who left never reached the upstream")

    def test_others_are_not_held_up(self):
        weir = self.weir("1/3s", 10)
        self.fill(weir, 5)
        began = time.monotonic()
        for _ in range(50):
            self.assertEqual(get(weir.port, "/other").status, 200)
        self.assertLess(time.monotonic() - began, 2.5)


if __name__ == "__main__":
    main()
