#!/usr/bin/env python3
"""weir instances that take units of busy keys in advance from a Redis Cluster (prefetched units). Together the instances never
exceed a limit, need few round trips, and return all unused units. This also holds for requests with charges in several slots, and
while a slot moves to another node."""

import struct
import threading
from collections import Counter

from harness import Client, TestCase, Weir, closed_port, config, eventually, main, rule, together
from leases_test import MANY, ask, leased
from redis_cluster import Node, form, keys_of, move_slot, state


class ClusterLeases(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = [cls.enterClassContext(Node()) for _ in range(3)]
        form(cls.nodes)

    def setUp(self):
        for node in self.nodes:
            node.ok("FLUSHALL")

    def weir(self, *rules, lease_return="1min"):
        more = f', lease_return = "{lease_return}"'
        weir = self.start(Weir(config(closed_port(), rules="\n".join(rules), state=state(self.nodes, more, timeout="2s"),
                                      routes='[[route]]\nrespond = { status = 200, body = "ok" }\n')))
        eventually(lambda: weir.metric("weir_redis_up") == 2, "all nodes are up")
        return weir

    def calls(self):
        return sum(node.calls("evalsha") for node in self.nodes)

    def owner_of(self, key):
        return next(node for node in self.nodes if key in keys_of(node))

    def counts(self):
        """Returns the counts of all windows that Redis stores."""
        return sorted(struct.unpack("<Bdd", self.owner_of(key).command("GET", key)[:17])[2] for key in keys_of(*self.nodes))

    def flood(self, weirs, each):
        """Runs two clients for each instance at the same time. Returns the number of admitted requests."""
        return sum(together(2 * len(weirs), lambda index: ask(weirs[index % len(weirs)].port, each)[0]))

    def test_three_instances_together_admit_exactly_the_limit(self):
        for algorithm, limit in (("fixed_window", {"limit": f"{MANY}/3000day"}), ("token_bucket", {"limit": "1/day", "burst": MANY})):
            with self.subTest(algorithm):
                self.setUp()
                weirs = [self.weir(leased(algorithm, **limit)) for _ in range(3)]
                before = self.calls()
                admitted = self.flood(weirs, MANY // 4)
                trips = (self.calls() - before) / (6 * (MANY // 4))
                admitted += sum(ask(weir.port, 1000)[0] for weir in weirs)  # spends the units that an instance may still have
                print(f"\n{algorithm}: {admitted} of {MANY} admitted, {trips:.4f} trips a request", flush=True)
                self.assertEqual(admitted, MANY)
                self.assertLess(trips, 0.05)

    def test_prefetched_units_are_put_back_if_another_node_refuses_the_request(self):
        """One node charges a key, and another node refuses the request. The first node then refunds the charge. If prefetched
        units had paid for the charge, the instance puts them back."""
        weirs = [self.weir(leased("fixed_window", f"{MANY}/3000day", key='["host"]'),
                           rule("few", "600/3000day", algorithm='"fixed_window"', key='["path"]', store='"redis"'),
                           lease_return="300ms") for _ in range(2)]
        self.assertEqual(self.flood(weirs, 500), 600)
        eventually(lambda: not any(weir.metric("weir_lease_units") for weir in weirs), "no instance holds prefetched units")
        self.assertGreater(sum(weir.metric("weir_lease_units_total", event="spent") for weir in weirs), 0)
        self.assertEqual(sum(weir.metric("weir_lease_units_total", event="lost") for weir in weirs), 0)
        eventually(lambda: self.counts() == [600, 600], "refused requests are refunded")

    def test_instances_that_stop_return_all_prefetched_units(self):
        rules = leased("fixed_window", f"{MANY}/3000day", key='["path"]')
        with self.weir(rules) as weir:
            for name in "abcd":
                self.assertEqual(self.statuses(weir.port, 200, f"/{name}"), [200] * 200)
            self.assertGreater(weir.metric("weir_lease_units"), 0)
        self.assertEqual(self.counts(), [200] * 4)

    def test_instance_that_stops_returns_the_prefetched_units_of_many_keys(self):
        """The keys are in different slots, so several writes are needed to return their units. weir must not close the
        connections before the last write."""
        many, each = 1200, 5
        with self.weir(leased("fixed_window", f"{MANY}/3000day", key='["path"]')) as weir:
            with Client(weir.port) as client:
                for name in range(many):
                    self.assertEqual([client.get(f"/{name}").status for _ in range(each)], [200] * each)
            self.assertGreater(weir.metric("weir_lease_units"), many)
        self.assertEqual(Counter(self.counts()), {each: many})

    def test_limit_is_exact_if_a_slot_moves_while_its_units_are_prefetched(self):
        weirs = [self.weir(leased("fixed_window", f"{MANY}/3000day")) for _ in range(2)]
        admitted = [ask(weirs[0].port, 100)[0]]
        (key,) = keys_of(*self.nodes)
        source = self.owner_of(key)
        target = next(node for node in self.nodes if node is not source)
        ending = threading.Event()

        def go_on(index):
            while not ending.is_set():
                admitted.append(ask(weirs[index % 2].port, 100)[0])

        threads = [threading.Thread(target=go_on, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()

        def some_pass():
            seen = len(admitted)
            eventually(lambda: len(admitted) > seen + 4, "more requests are admitted")

        move_slot(source.command("CLUSTER", "KEYSLOT", key), source, target, self.nodes, some_pass)
        some_pass()
        ending.set()
        for thread in threads:
            thread.join()
        admitted += [ask(weir.port, MANY)[0] for weir in weirs]
        admitted += [ask(weir.port, 1000)[0] for weir in weirs]
        self.assertEqual(sum(admitted), MANY)
        self.assertEqual(self.owner_of(key), target)
        self.assertEqual(sum(weir.metric("weir_decisions_total", outcome="store_failed") for weir in weirs), 0)


if __name__ == "__main__":
    main()
