#!/usr/bin/env python3
"""Refunds in a Redis Cluster. Each charge is refunded on the node that stored it, by that node's clock, even if its slot has
moved to another node since."""

import pathlib
import threading

from harness import (PATIENCE, Client, TestCase, Upstream, Weir, answer, closed_port, config, eventually, main, request_bytes, rule,
                     together)
from redis_cluster import Node, form, keys_of, move_slot, state

FAKETIME = next(iter(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
# Loads libc before jemalloc, because the malloc of jemalloc reads the time before libfaketime is ready.
AHEAD = {"LD_PRELOAD": f"{FAKETIME} libc.so.6", "FAKETIME": "+20m", "FAKETIME_DONT_FAKE_MONOTONIC": "1"} if FAKETIME else {}
ROUTES = '[[route]]\nmatch = { path = "/own" }\nrespond = { status = 200, body = "ok" }\n[[route]]\nupstream = "api"\n'
MOST = 100


class ClusterRefunds(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = [cls.enterClassContext(Node(environment=environment)) for environment in ({}, AHEAD, {})]
        form(cls.nodes)

    def daily(self, name, **more):
        """Returns a daily rule whose key is the header X-NAME. The rule uses a sliding log, which finds the charge to refund by
        the time of the charge."""
        return rule(name, f"{MOST}/day", algorithm='"sliding_log"', key=f'["header:X-{name}"]', store='"redis"',
                    on_store_failure='"closed"', **more)

    def weir(self, port, rules, places=0):
        text = config(port, rules=rules, routes=ROUTES, state=state(self.nodes, timeout="1s"))
        weir = self.start(Weir(text.replace(f'"127.0.0.1:{port}"', f'{{ address = "127.0.0.1:{port}", max_in_flight = {places} }}')))
        eventually(lambda: weir.metric("weir_redis_up") == 2, "all nodes are up")
        return weir

    def await_charged(self, weir, charged, **headers):
        """Waits until the remaining units show that `charged` units are charged. Each request by which the test reads the remaining units
        costs one unit, too."""
        asked = []

        def remaining():
            self.assertLess(len(asked), MOST // 2, f"not given back but for {charged}: {asked}")
            asked.append(int(weir.get("/own", **headers)["x-ratelimit-remaining"]))
            return asked[-1] == MOST - charged - len(asked)

        eventually(remaining, f"given back but for {charged}")

    def home_of(self, weir, **headers):
        """Sends one request of a new client. Returns the client's key and the node that stores the key."""
        before = set(keys_of(*self.nodes))
        self.assertEqual(weir.get("/own", **headers).status, 200)
        return next((key, node) for node in self.nodes for key in keys_of(node) if key not in before)

    def test_charges_on_two_nodes_are_refunded_if_no_server_can_be_reached(self):
        """Charges on two nodes, in either order. The clock of one node is fast."""
        weir = self.weir(closed_port(), self.daily("A") + self.daily("B"))
        names = [f"unreached {number}" for number in range(9)]
        self.assertEqual([weir.get("/", x_a=name, x_b=f"{name} b").status for name in names for _ in range(3)], [502] * 27)
        for name in names:
            self.await_charged(weir, 0, x_a=name, x_b=f"{name} b")
        self.assertTrue(all(keys_of(node) for node in self.nodes), "keys are on all nodes")

    def test_charges_on_two_nodes_are_refunded_if_the_server_is_full(self):
        """The first request takes the only unit of the server's max_in_flight."""
        gate = threading.Event()
        upstream = self.start(Upstream(lambda exchange: (gate.wait(PATIENCE), exchange.send(answer()))))
        weir = self.weir(upstream.port, self.daily("C"), places=1)
        first = self.start(Client(weir.port))
        first.send(request_bytes("GET", "/", {"X-C": "crowd"}))
        eventually(lambda: len(upstream.exchanges) == 1, "the upstream has the first request")
        self.assertEqual(together(2, lambda _: weir.get("/", x_c="crowd").status), [503, 503])
        gate.set()
        self.assertEqual(first.read().status, 200)
        self.await_charged(weir, 1, x_c="crowd")

    def test_refund_is_sent_to_the_node_to_which_the_slot_has_moved(self):
        """A client leaves the queue after the slot of its charge has moved to another node."""
        queue = rule("queue", "1/min", algorithm='"leaky_bucket"', key="[]", queue=5, match='{ path = "/queue" }')
        weir = self.weir(self.start(Upstream()).port, self.daily("D") + queue)
        self.assertEqual(weir.get("/queue", x_d="other").status, 200)
        key, source = self.home_of(weir, x_d="leaving")
        with Client(weir.port) as leaving:
            leaving.send(request_bytes("GET", "/queue", {"X-D": "leaving"}))
            eventually(lambda: weir.metric("weir_queue_depth") == 1, "the request waits in the queue")
            slot = source.command("CLUSTER", "KEYSLOT", key)
            move_slot(slot, source, self.nodes[2] if source is self.nodes[0] else self.nodes[0], self.nodes)
            leaving.leave()  # resets the connection, because weir would still respond after a half-close
        eventually(lambda: weir.metric("weir_queue_depth") == 0, "the client has left the queue")
        self.await_charged(weir, 1, x_d="leaving")

    def test_unreachable_node_causes_refunds_of_charges_on_other_nodes(self):
        """The rules whose keys are on the stopped node refuse the request, so the charges on other nodes are refunded."""
        weir = self.weir(self.start(Upstream()).port, self.daily("E") + self.daily("F", match='{ path = "/both" }'))
        there = {f"staying {number}": self.home_of(weir, x_e=f"staying {number}")[1] for number in range(12)}
        staying = [name for name, node in there.items() if node is not self.nodes[2]]
        self.assertGreater(len(staying), 4)
        self.nodes[2].kill()
        for name in staying:
            admitted = [weir.get("/both", x_e=name, x_f=f"{name} {number}").status for number in range(12)]
            self.assertEqual(set(admitted), {200, 503}, "some rules have their keys on the node that is down")
            self.await_charged(weir, 1 + admitted.count(200), x_e=name)


if __name__ == "__main__":
    main()
