#!/usr/bin/env python3
"""weir instances with a Redis Cluster of three masters and three replicas. Together they enforce one limit for keys in all
slots, while slots move, and after a replica has replaced a killed master."""

import itertools
import re
import signal
import threading
import time

from harness import (PATIENCE, SANITIZED, Client, Load, TestCase, Upstream, Weir, answer, config, eventually, main, request_bytes, rule,
                     run_weir, together)
from redis_cluster import Node, form, keys_of, move_slot, slots_of, state


TIMEOUT = 1  # seconds for a call to Redis when a master is killed; enough for a machine that is ten times slower
AT_ONCE = 3.0 if SANITIZED else 1.0  # seconds within which the instances must enforce one limit again


class Walk(Load):
    """A load of many clients whose keys are distributed over all nodes."""

    def get(self, client, number):
        return client.get("/", x_load=str(number % 97))


class Cluster(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = [cls.enterClassContext(Node()) for _ in range(6)]
        form(cls.nodes, replicas=1)
        cls.masters = [node for node in cls.nodes if b"role:master" in node.command("INFO", "replication")]
        for node in cls.nodes:
            if node not in cls.masters:
                eventually(lambda node=node: b"master_link_status:up" in node.command("INFO", "replication"), "replicas follow")

    def setUp(self):
        self.timeout = "5s"  # long enough for a busy machine; after that, on_store_failure applies
        self.upstream = self.start(Upstream())

    def state(self, more="", nodes=None):
        return state(nodes or self.nodes, more, self.timeout)

    def weir(self, *rules, policy="open", nodes=None, more=""):
        """Starts an instance. Each rule is given as a limit, a burst, and the headers that form its key."""
        rules = [rule(f"rule-{number}", limit, burst=burst, store='"redis"', key=key, on_store_failure=f'"{policy}"')
                 for number, (limit, burst, key) in enumerate(rules)]
        weir = self.start(Weir(config(self.upstream.port, rules="\n".join(rules), state=self.state(more, nodes))))
        eventually(lambda: weir.metric("weir_redis_up") == 2, "all nodes are up")
        return weir

    def flood(self, weirs, count, **headers):
        """Returns the statuses of `count` requests over fifty connections."""
        return [status for statuses in together(50, lambda i: self.statuses(weirs[i % len(weirs)].port, count // 50, **headers))
                for status in statuses]

    def keys(self, *nodes):
        """Returns the keys of clients that are stored on these nodes, or on all masters."""
        return keys_of(*nodes or self.masters)

    def test_1_two_instances_share_one_limit(self):
        """Fifty connections to two instances. The number of admitted requests is exact, whether the charges of a request are in
        one slot or in two."""
        weirs = [self.weir(("1/day", 200, '["header:X-A"]'), ("1/day", 1000, '["header:X-A", "path"]'),
                           ("1/day", 900, '["header:X-B"]'), ("1000000/s", 1000000, "[]")) for _ in range(2)]
        for name in ("one", "two"):
            statuses = self.flood(weirs, 500, x_a=name, x_b="both")
            self.assertEqual((statuses.count(200), statuses.count(429)), (200, 300), name)
        # The third rule got back the charges of requests that the first rule refused: 900 - 400 units are left.
        spent = itertools.count(401)
        eventually(lambda: weirs[0].get("/", x_a="three", x_b="both")["x-ratelimit-remaining"] == str(900 - next(spent)),
                   "the refused charges are refunded")
        statuses = [status for i in range(4) for status in self.flood(weirs, 200, x_a=f"more {i}", x_b="both")]
        statuses += [weirs[0].get("/", x_a=f"rest {i}", x_b="both").status for i in range(100)]
        self.assertEqual(statuses.count(200), 901 - next(spent))
        self.assertEqual(sum(weir.metric("weir_decisions_total", outcome="store_failed") for weir in weirs), 0)
        self.assertGreater(min(node.calls("evalsha") for node in self.masters), 0)

    def test_2_keys_of_one_client_are_in_the_same_slot(self):
        weir = self.weir(("1/day", 5, '["header:X-C"]'), ("1/day", 5, '["path", "header:X-C"]'), ("1/day", 5, '["header:X-D"]'))
        before = set(self.keys())
        weir.get("/", x_c="a", x_d="a")
        names = [key for key in self.keys() if key not in before]
        tags = [re.fullmatch(r"weir:\{([\w-]{3})\}[\w-]{22}", name).group(1) for name in names]
        self.assertEqual((len(tags), len(set(tags))), (3, 2))

    def test_3_flood_of_refused_requests_sends_few_commands_to_redis(self):
        weir = self.weir(("1/day", 5, '["header:X-E"]'), ("1000000/s", 1000000, '["header:X-F"]'))
        self.statuses(weir.port, 10, x_e="a", x_f="a")
        before = sum(node.calls("evalsha") for node in self.masters)
        began = time.monotonic()
        self.assertEqual(set(self.flood([weir], 2000, x_e="a", x_f="a")), {429})
        trips = sum(node.calls("evalsha") for node in self.masters) - before
        self.assertLess(trips, 100 * max(1, time.monotonic() - began))

    def test_4_permits_are_held_and_released_on_every_node(self):
        rules = [rule("held", "3", algorithm='"concurrency"', store='"redis"', key='["header:X-G"]', on_store_failure='"closed"')
                 .replace('"3"', "3"),
                 rule("count", "1/day", burst=1000, store='"redis"', key='["header:X-H"]', on_store_failure='"closed"')]
        weirs = [self.start(Weir(config(self.upstream.port, rules="\n".join(rules), state=self.state()))) for _ in range(2)]
        for name in "abcd":
            gate = threading.Event()
            self.upstream.reply = lambda exchange, gate=gate: (gate.wait(PATIENCE), exchange.send(answer()))
            seen = len(self.upstream.exchanges)
            waiting = [self.start(Client(weirs[i % 2].port)) for i in range(3)]
            for client in waiting:
                client.send(request_bytes("GET", "/", {"X-G": name, "X-H": name}))
            eventually(lambda seen=seen: len(self.upstream.exchanges) == seen + 3, "three requests are at the upstream")
            self.assertEqual([weir.get("/", x_g=name, x_h=name).status for weir in weirs], [429, 429])
            gate.set()
            self.assertEqual([client.read().status for client in waiting], [200] * 3)
            self.upstream.reply = answer()
            eventually(lambda name=name: weirs[0].get("/", x_g=name, x_h=name).status == 200, "the permits are released")

    def test_6_requests_succeed_and_limits_are_exact_while_a_slot_moves(self):
        weirs = [self.weir(("1/day", 500, '["header:X-M"]'), ("1/day", 40, '["header:X-M", "path"]'),
                           ("1000000/s", 1000000, '["header:X-Load"]'), nodes=self.nodes[:1]) for _ in range(2)]
        before = set(self.keys())
        self.assertEqual(weirs[0].get("/first", x_m="moving").status, 200)
        name = next(key for key in self.keys() if key not in before)
        source = next(node for node in self.masters if name in self.keys(node))
        target = next(node for node in self.masters if node is not source)
        load = Walk([weir.port for weir in weirs], self.upstream.port)
        load.goes_on(200)
        load.fails_from_here()
        admitted, path = [1], itertools.count()

        def ask():
            for _ in range(3):  # each path admits 40 and refuses 10
                statuses = self.flood_path(weirs, f"/{next(path)}", x_m="moving")
                self.assertEqual((statuses.count(200), statuses.count(429)), (40, 10))
                admitted[0] += 40

        move_slot(source.command("CLUSTER", "KEYSLOT", name), source, target, self.masters, ask)
        load.goes_on(200)
        statuses = [weirs[i % 2].get(f"/rest/{i}", x_m="moving").status for i in range(320)]
        self.assertEqual(admitted[0] + statuses.count(200), 500, "exactly 500 requests are admitted")
        self.assertEqual(load.stop(TIMEOUT), {200})
        self.assertEqual([weir.process.poll() for weir in weirs], [None, None])
        self.assertEqual(sum(weir.metric("weir_decisions_total", outcome="store_failed") for weir in weirs), 0)
        self.assertGreater(sum(node.calls("asking") for node in self.masters), 0)
        self.assertGreater(target.calls("evalsha"), 0)

    def test_5_sliding_log_stays_exact_and_grows_while_its_slot_moves(self):
        """While a slot moves, its key must remain a Redis string. Redis could not create a list with the key on the node that the
        slot is leaving."""
        rules = rule("long", "150/day", algorithm='"sliding_log"', store='"redis"', key='["header:X-Long"]', on_store_failure='"closed"')
        weir = self.start(Weir(config(self.upstream.port, rules=rules, state=self.state())))
        eventually(lambda: weir.metric("weir_redis_up") == 2, "all nodes are up")
        before = set(self.keys())
        self.assertEqual([weir.get("/", x_long="a").status for _ in range(60)], [200] * 60)
        name = next(key for key in self.keys() if key not in before)
        source = next(node for node in self.masters if name in self.keys(node))
        target = next(node for node in self.masters if node is not source)
        asked = []
        move_slot(source.command("CLUSTER", "KEYSLOT", name), source, target, self.masters,
                  lambda: asked.extend(weir.get("/", x_long="a").status for _ in range(20)))
        asked.extend(weir.get("/", x_long="a").status for _ in range(60))
        self.assertEqual(asked, [200] * 90 + [429] * 30)

    def flood_path(self, weirs, path, **headers):
        return together(50, lambda i: self.statuses(weirs[i % 2].port, 1, path, **headers)[0])

    def shares(self, weirs, name):
        statuses = [weir.get("/", x_n=name).status for weir in weirs for _ in range(15)]
        return (statuses.count(200), statuses.count(429)) == (20, 15 * len(weirs) - 20)

    def test_7_killed_master_is_replaced_and_clients_of_other_nodes_notice_nothing(self):
        """Clients whose keys are on other nodes notice nothing. Clients whose keys were on the killed node wait at most the
        timeout. After the replica is promoted, the limit is shared again."""
        weirs = [self.weir(("1/day", 20, '["header:X-N"]'), ("1000000/s", 1000000, '["header:X-Load"]')) for _ in range(2)]
        self.assertTrue(self.shares(weirs, "before"))
        victim, others = self.masters[0], self.masters[1:]
        names = [f"name {i}" for i in range(40)]
        before = {}
        for name in names:  # finds the node that stores each name
            known = set(self.keys())
            weirs[0].get("/", x_n=name)
            before[name] = next(node for node in self.masters if set(self.keys(node)) - known)
        spared = [name for name in names if before[name] is not victim]
        self.assertGreater(len(spared), 5)
        load = Walk([weir.port for weir in weirs for _ in range(2)], self.upstream.port)
        load.goes_on(200)
        load.fails_from_here()
        victim.kill()
        for name in spared[:10]:
            statuses = [weirs[i % 2].get("/", x_n=name).status for i in range(25)]
            self.assertEqual(statuses.count(200), 19, "the limit on another node is exact all the time")
        lost = [name for name in names if before[name] is victim]
        eventually(lambda: any(len(slots_of(node)) and node not in self.masters for node in self.nodes if node is not victim),
                   "a replica is promoted", 30)
        promoted = time.monotonic()
        eventually(lambda: all(weir.metric("weir_redis_up") == 2 for weir in weirs), "all slots are served")
        whole = time.monotonic() - promoted
        print(f"\nwhole again {whole:.2f} s after the promotion", flush=True)
        self.assertLess(whole, AT_ONCE)
        for number, name in enumerate(lost[:6]):
            self.assertTrue(self.shares(weirs, f"{name} again {number}"))
        load.goes_on(200)
        self.assertEqual(load.stop(TIMEOUT), {200})
        self.assertEqual([weir.process.poll() for weir in weirs], [None, None])
        self.assertGreater(len(others), 1)

    def test_redis_check_reports_every_master_of_the_cluster(self):
        status, said, errors = run_weir("redis-check", config=config(9, state=self.state()))
        self.assertEqual((status, errors), (0, ""))
        self.assertRegex(said, r"(?m)^redis 127\.0\.0\.1:\d+ of a cluster$")
        self.assertRegex(said, r"(?m)^  scripts +load, charge and refund$")

    def test_redis_check_continues_after_a_node_that_does_not_respond(self):
        """The kernel accepts connections to the frozen node, but Redis does not answer. redis-check then checks the next node."""
        alive = [node for node in self.nodes if node.process.poll() is None]
        frozen = next(node for node in alive if b"role:slave" in node.command("INFO", "replication"))
        frozen.process.send_signal(signal.SIGSTOP)
        try:
            nodes = [frozen, *(node for node in self.nodes if node is not frozen)]
            status, said, errors = run_weir("redis-check", config=config(9, state=self.state(nodes=nodes)))
        finally:
            frozen.process.send_signal(signal.SIGCONT)
        self.assertEqual((status, errors), (0, ""))
        self.assertNotIn(f":{frozen.port} ", said)


if __name__ == "__main__":
    main()
