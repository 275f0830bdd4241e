#!/usr/bin/env python3
"""The leaky bucket as a queue. The queue delays requests without blocking a worker, and keeps its bounds and its order over all
workers. A client that leaves frees its place. The tests print the intervals at the upstream, but check only order, counts, and
whatever a slow machine cannot change."""

import statistics
import threading
import time

from harness import SANITIZED, Client, TestCase, Upstream, Weir, closed_port, config, eventually, get, main, request_bytes, rule, together

KEYS = "".join(f'[[key]]\nkey = "{name}"\n' for name in ("a", "b", "c", "another"))  # API keys of clients with the same address
UNHURRIED = "1/3s" if SANITIZED else "1/2s"  # all requests must arrive within the first interval


def queue_rule(limit, queue, **more):
    return rule("queue", limit, algorithm='"leaky_bucket"', key="[]", queue=queue, match='{ path = "/queue" }', **more)


class Shaper(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, limit, queue, **more):
        return self.start(Weir(config(self.upstream.port, client='keys = "keys.toml"', rules=queue_rule(limit, queue, **more)),
                               {"keys.toml": KEYS}))

    def waiting_client(self, weir, headers=None):
        client = Client(weir.port)
        self.addCleanup(client.sock.close)
        client.send(request_bytes("GET", "/queue", headers or {}))
        return client

    def fill(self, weir, count):
        """Sends one request, which departs at once. Afterwards sends `count` requests, which wait in this order."""
        self.assertEqual(weir.get("/queue").status, 200)
        clients = []
        for number in range(count):
            clients.append(self.waiting_client(weir))
            eventually(lambda: weir.metric("weir_queue_depth") == number + 1, f"{number + 1} wait")  # noqa: B023
        return clients

    def test_requests_of_sixty_clients_depart_ten_milliseconds_apart(self):
        weir = self.weir("100/s", 100)
        began = time.monotonic()
        statuses = together(60, lambda _: weir.get("/queue").status)
        self.assertEqual(statuses, [200] * 60)
        arrived = sorted(exchange.arrived for exchange in self.upstream.exchanges)
        gaps = sorted((later - earlier) * 1000 for earlier, later in zip(arrived, arrived[1:]))
        near = sum(abs(gap - 10) <= 1 for gap in gaps)
        print(f"\n{len(gaps)} gaps at the upstream: median {statistics.median(gaps):.2f} ms, least {gaps[0]:.2f}, "
              f"most {gaps[-1]:.2f}, {near} within 1 ms of 10", flush=True)
        self.assertGreaterEqual((arrived[-1] - began) * 1000, 590, "the last may not depart before 59 intervals")

    def order_at_upstream(self):
        """Returns the X-Name of each request in the order in which the upstream received them."""
        order = []

        def reply(exchange):
            order.append(exchange.head["x-name"])
            exchange.send(b"HTTP/1.1 204 No Content\r\n\r\n")

        self.upstream.reply = reply
        return order

    def enqueue(self, weir, name, **headers):
        """Sends a request that must wait. Any worker may accept its connection."""
        depth = weir.metric("weir_queue_depth")
        client = self.waiting_client(weir, {"X-Name": name, **headers})
        eventually(lambda: weir.metric("weir_queue_depth") == depth + 1, f"{name} waits")
        return client

    def test_queued_requests_of_one_client_are_sent_in_order(self):
        order = self.order_at_upstream()
        weir = self.weir(UNHURRIED, 20)
        self.assertEqual(weir.get("/queue").status, 204)
        clients = [self.enqueue(weir, str(number)) for number in range(6)]
        self.assertEqual([client.read().status for client in clients], [204] * 6)
        self.assertEqual(order[1:], sorted(order[1:]))

    def test_queued_clients_take_turns(self):
        order = self.order_at_upstream()
        weir = self.weir(UNHURRIED, 20)
        self.assertEqual(weir.get("/queue").status, 204)
        clients = [self.enqueue(weir, name, **{"X-API-Key": name[0]}) for name in ("a1", "a2", "a3", "b1", "b2", "c1")]
        self.assertEqual([client.read().status for client in clients], [204] * 6)
        self.assertEqual(order[1:], ["a1", "b1", "c1", "a2", "b2", "a3"])

    def test_queued_request_of_higher_priority_departs_first_whatever_its_worker(self):
        order = self.order_at_upstream()
        routes = "".join(f'[[route]]\nupstream = "api"\nmatch = {{ headers = {{ X-Class = "{name}" }} }}\n'
                         f"priority = {priority}\n" for name, priority in (("urgent", 0), ("batch", 9)))
        keys = '[[key]]\nkey = "gold"\ntier = "pro"\n'
        rules = queue_rule(UNHURRIED, 20) + rule("tiers", "1000/s", key='["ip"]',
                                              tiers="{ pro = { limit = \"1000/s\", priority = 1 } }")
        weir = self.start(Weir(config(self.upstream.port, client='keys = "keys.toml"', rules=rules,
                                      routes=routes + '[[route]]\nupstream = "api"'), {"keys.toml": keys}))
        self.assertEqual(weir.get("/queue").status, 204)
        clients = [self.enqueue(weir, "batch", **{"X-Class": "batch"}),
                   self.enqueue(weir, "middle"),
                   self.enqueue(weir, "gold", **{"X-API-Key": "gold", "X-Class": "batch"}),
                   self.enqueue(weir, "urgent", **{"X-Class": "urgent"})]
        self.assertEqual([client.read().status for client in clients], [204] * 4)
        self.assertEqual(order[1:], ["urgent", "gold", "middle", "batch"])

    def test_queue_per_client_bounds_the_queued_requests_of_each_client(self):
        weir = self.weir("1/3s", 20, queue_per_client=2)
        self.fill(weir, 2)
        refused = weir.get("/queue")
        self.assertEqual(refused.status, 429)
        self.assertIn(int(refused["retry-after"]), (1, 2, 3))
        self.assertEqual(refused["x-ratelimit-remaining"], "0")
        self.assertEqual(weir.metric("weir_queue_refused_total", reason="crowded"), 1)
        self.enqueue(weir, "other", **{"X-API-Key": "another"})

    def test_request_is_refused_at_once_if_overtaking_makes_its_wait_exceed_max_wait(self):
        """The request itself could depart in time, but requests with a higher priority take its departure and the next
        departures. The refusal comes long before max_wait has passed."""
        routes = ('[[route]]\nupstream = "api"\nmatch = { headers = { X-Class = "urgent" } }\npriority = 0\n'
                  '[[route]]\nupstream = "api"')
        weir = self.start(Weir(config(self.upstream.port, routes=routes, rules=queue_rule("1/4s", 20, max_wait='"60s"'))))
        self.assertEqual(weir.get("/queue").status, 200)
        began = time.monotonic()
        low = self.enqueue(weir, "low")
        sent = 2

        def overtake():
            """Sends requests one after another while the last request waits at most 60 s. No request is refused or displaced."""
            nonlocal sent
            if weir.metric("weir_queue_refused_total", reason="overdue") == 1:
                return True
            if weir.metric("weir_queue_depth") + len(self.upstream.exchanges) == sent and weir.metric("weir_queue_depth") < 15:
                self.waiting_client(weir, {"X-Class": "urgent"})
                sent += 1
            return False

        eventually(overtake, "the overtaken request is refused")
        refused = low.read()
        self.assertEqual(refused.status, 429)
        self.assertGreater(int(refused["retry-after"]), 60 - (time.monotonic() - began), "retry_after is the departure of a retry")
        self.assertLessEqual(int(refused["retry-after"]), 65)
        self.assertEqual(weir.metric("weir_queue_refused_total", reason="displaced"), 0)

    def test_wait_of_an_overtaken_request_is_bounded_even_without_max_wait(self):
        """Without max_wait, the bound is twice the time in which ten requests depart at 5/s, plus a second."""
        routes = ('[[route]]\nupstream = "api"\nmatch = { headers = { X-Class = "urgent" } }\npriority = 0\n'
                  '[[route]]\nupstream = "api"')
        weir = self.start(Weir(config(self.upstream.port, routes=routes, rules=queue_rule("5/s", 10))))
        low = self.fill(weir, 1)[0]
        over = threading.Event()

        def hurry():
            with Client(weir.port) as client:
                while not over.is_set():
                    client.get("/queue", X_Class="urgent")

        urgent = [threading.Thread(target=hurry) for _ in range(8)]
        for thread in urgent:
            thread.start()
        try:
            self.assertEqual(low.read().status, 429)
        finally:
            over.set()
            for thread in urgent:
                thread.join()
        self.assertEqual(weir.metric("weir_queue_refused_total", reason="overdue"), 1)

    def test_full_queue_displaces_the_request_of_lowest_priority(self):
        """The last request of the lowest priority is displaced, whichever worker has it. If all requests have the same
        priority, none is displaced."""
        routes = "".join(f'[[route]]\nupstream = "api"\nmatch = {{ headers = {{ X-Class = "{name}" }} }}\n'
                         f"priority = {priority}\n" for name, priority in (("urgent", 0), ("batch", 9)))
        rules = queue_rule("1/60s", 3) + rule("spent", "100/day", key="[]")
        weir = self.start(Weir(config(self.upstream.port, client='keys = "keys.toml"', rules=rules,
                                      routes=routes + '[[route]]\nupstream = "api"'), {"keys.toml": KEYS}))
        self.assertEqual(weir.get("/queue").status, 200)
        batch = [self.enqueue(weir, name, **{"X-Class": "batch", "X-API-Key": name[0]}) for name in ("b1", "b2", "c1")]
        again = weir.get("/queue", X_Class="batch", X_API_Key="c")
        self.assertEqual(again.status, 429, "no waiting request has a lower priority or a client with two places more")
        urgent = [self.waiting_client(weir, {"X-Class": "urgent"}) for _ in range(3)]
        for client in batch:
            displaced = client.read()
            self.assert_own_error(displaced, 503)
            self.assertIn(int(displaced["retry-after"]), range(1, 61))
            self.assertIn("others go first", displaced.json()["message"])
        self.await_metric(weir, 3, "weir_queue_refused_total", reason="displaced")
        self.await_metric(weir, 3, "weir_shed_total", priority="9")
        self.assertEqual(weir.get("/queue", X_Class="urgent").status, 429)
        self.assertEqual(weir.get("/queue").status, 429)
        self.assertEqual(weir.metric("weir_queue_depth"), 3)
        self.assertEqual(weir.get("/other")["x-ratelimit-remaining"], "95",
                         "the displaced request is refunded, and refused requests are not charged")
        for client in urgent:
            client.leave()
        eventually(lambda: weir.metric("weir_queue_depth") == 0, "the urgent requests have departed")
        self.enqueue(weir, "and there is room again")

    def test_request_that_another_rule_refuses_displaces_no_queued_request(self):
        routes = ('[[route]]\nupstream = "api"\nmatch = { headers = { X-Class = "urgent" } }\npriority = 0\n'
                  '[[route]]\nupstream = "api"')
        rules = queue_rule("1/60s", 1) + rule("one", "1/day", key="[]", match='{ headers = { X-Class = "urgent" } }')
        weir = self.start(Weir(config(self.upstream.port, rules=rules, routes=routes)))
        self.assertEqual(weir.get("/queue", X_Class="urgent").status, 200)
        self.enqueue(weir, "patient")
        self.assertEqual(weir.get("/queue", X_Class="urgent").status, 429)
        self.assertEqual(weir.metric("weir_queue_depth"), 1)

    def test_queue_bounds_the_number_of_waiting_requests(self):
        weir = self.weir("1/2s", 2)
        self.fill(weir, 2)
        refused = weir.get("/queue")
        self.assertEqual(refused.status, 429)
        self.assertIn(int(refused["retry-after"]), (1, 2))

    def test_max_wait_bounds_the_wait_in_the_queue(self):
        weir = self.weir("1/2s", 10, max_wait='"500ms"')
        self.assertEqual(weir.get("/queue").status, 200)
        self.assertEqual(weir.get("/queue").status, 429)

    def test_client_that_leaves_frees_its_place_in_the_queue(self):
        weir = self.weir("1/3s", 2)
        began = time.monotonic()
        first, second = self.fill(weir, 2)
        self.assertEqual(weir.get("/queue").status, 429)
        first.leave()
        eventually(lambda: weir.metric("weir_queue_depth") == 1, "the place is free")
        third = self.waiting_client(weir)
        eventually(lambda: weir.metric("weir_queue_depth") == 2, "the new request waits")
        self.assertEqual(second.read().status, 200)
        print(f"\nthe second moved up: after {time.monotonic() - began:.2f} s, not 6", flush=True)
        self.assertEqual(third.read().status, 200)
        self.assertEqual(len(self.upstream.exchanges), 3, "the request of the client that left never reached the upstream")

    def test_failure_of_a_request_that_overtook_another_frees_no_place_in_the_queue(self):
        """The urgent request has taken the departure time of a waiting request, which now departs later. If the urgent request
        fails, no place in the queue becomes free."""
        routes = ('[[upstream]]\nname = "dead"\nservers = ["127.0.0.1:%d"]\n' % closed_port() +
                  '[[route]]\nupstream = "dead"\nmatch = { headers = { X-Class = "urgent" } }\npriority = 0\n'
                  '[[route]]\nupstream = "api"\n')
        weir = self.start(Weir(config(self.upstream.port, routes=routes, rules=queue_rule("1/4s", 2))))
        self.assertEqual(weir.get("/queue").status, 200)
        self.enqueue(weir, "patient")
        urgent = self.enqueue(weir, "urgent", **{"X-Class": "urgent"})
        self.assertEqual(urgent.read().status, 502)
        self.enqueue(weir, "next")
        self.assertEqual(weir.get("/queue").status, 429, "both places are taken")

    def test_queue_places_of_clients_that_left_are_reused_by_all_workers(self):
        """Ten requests wait. All of them except the last leave, and ten new requests come. If each worker had its own queue, the
        freed departures would be lost and the new requests refused."""
        weir = self.weir("1/4s", 10)
        clients = self.fill(weir, 10)
        self.assertEqual(weir.get("/queue").status, 429)
        for client in clients[:-1]:
            client.leave()
        eventually(lambda: weir.metric("weir_queue_depth") == 1, "nine requests have left the queue")
        for number in range(9):
            self.enqueue(weir, str(number))
        self.assertEqual(clients[-1].read().status, 200)
        self.assertEqual(len(self.upstream.exchanges), 2, "the request took the first departure, in the place of all requests that left")

    def test_waiting_requests_do_not_delay_requests_outside_the_queue(self):
        weir = self.weir("1/3s", 10)
        self.fill(weir, 5)
        began = time.monotonic()
        for _ in range(50):
            self.assertEqual(get(weir.port, "/other").status, 200)
        self.assertLess(time.monotonic() - began, 2.5)


if __name__ == "__main__":
    main()
