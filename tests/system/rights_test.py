#!/usr/bin/env python3
"""The rights that docs/distributed.md gives to weir's Redis user suffice for everything that weir does. Missing rights are
reported."""

import os
import pathlib
import re
import threading
import time

from harness import (PATIENCE, Client, Redis, TestCase, Upstream, Weir, answer, config, eventually, main, request_bytes, rule,
                     run_weir)
from redis_cluster import Node
from sentinel_test import MASTER, Sentinel

DOCUMENT = pathlib.Path(os.environ.get("WEIR_SOURCE", ".")) / "docs/distributed.md"
LINES = re.findall(r"^    (ACL SETUSER .*)$", DOCUMENT.read_text(), re.M)
REDIS, SENTINEL = (line.replace(">PASSWORD", ">secret").split() for line in LINES)
SECRET = ""  # empty, so weir reads the secret from Redis, which needs rights too
RULES = {
    "bucket": {"limit": "1000/s"},
    "stepwise": {"limit": "1000/s", "refill": '"stepwise"', "algorithm": '"token_bucket"'},
    "gcra": {"limit": "1000/s", "algorithm": '"gcra"'},
    "queue": {"limit": "1000/s", "algorithm": '"leaky_bucket"', "queue": 5},
    "window": {"limit": "1000/s", "algorithm": '"fixed_window"'},
    "day": {"limit": "1000/day", "algorithm": '"fixed_window"', "align": '"day"', "timezone": '"UTC"'},
    "sliding": {"limit": "1000/s", "algorithm": '"sliding_window"'},
    "parts": {"limit": "1000/s", "algorithm": '"sliding_window"', "buckets": 5},
    "log": {"limit": "30/s", "algorithm": '"sliding_log"'},
    "settled": {"limit": "100/s", "algorithm": '"sliding_log"', "cost": '{ response_header = "X-Cost", reserve = 2 }'},
    "free": {"limit": "100/day", "algorithm": '"sliding_log"', "charge": '{ status = ["401"] }'},
    "places": {"limit": "2", "algorithm": '"concurrency"'},
}


def rules(more=""):
    return "".join(rule(name, store='"redis"', on_store_failure='"closed"', key='["header:X-Key"]', match=f'{{ path = "/{name}" }}', **keys)
                   for name, keys in RULES.items()).replace('"2"', "2") + more


class RedisRights(TestCase):
    def setUp(self):
        self.gate = threading.Event()
        self.upstream = self.start(Upstream(self.reply))

    def reply(self, exchange):
        if "held" in exchange.target:
            self.gate.wait(PATIENCE)
        exchange.send(answer(headers="X-Cost: 5\r\n"))

    def denied(self, redis):
        """Returns the commands that Redis has denied since the last call."""
        said = redis.command("ACL", "LOG")
        redis.command("ACL", "LOG", "RESET")
        return [dict(zip(entry[::2], entry[1::2], strict=False)).get(b"object") for entry in said]

    def settings(self, redis, more=""):
        url = f"redis://weir:secret@127.0.0.1:{redis.port}"
        return f'{SECRET}redis = {{ url = "{url}", timeout = "10s", lease_time = "1s"{more} }}'

    def live(self, redis, state):
        """Makes weir use every command that it needs. Redis must deny no command, and no request may fail."""
        weir = self.start(Weir(config(self.upstream.port, rules=rules(), state=state)))
        eventually(lambda: weir.metric("weir_redis_up") == 2, "weir is connected to Redis")
        held = [self.start(Client(weir.port)) for _ in range(2)]
        for client in held:
            client.send(request_bytes("GET", "/places?held", {"X-Key": "held"}))
        eventually(lambda: len(self.upstream.exchanges) == 2, "two requests are at the upstream")
        self.assertEqual(weir.get("/places", x_key="held").status, 429)
        ended = time.monotonic() + 1.2  # longer than the interval of permit renewals
        while time.monotonic() < ended:
            for name in RULES:
                self.assertIn(weir.get(f"/{name}", x_key="a").status, (200, 429), name)
        with Client(weir.admin) as admin:
            self.assertEqual(admin.request("DELETE", "/api/keys?rule=bucket&key=a").status, 200)
        redis.command("SCRIPT", "FLUSH")
        self.assertEqual(weir.get("/bucket", x_key="a").status, 200)
        self.gate.set()
        self.assertEqual([client.read().status for client in held], [200, 200])
        eventually(lambda: weir.get("/places", x_key="held").status == 200, "the permits are released")
        for name in ("weir_store_failures_total", "weir_redis_failures_total", "weir_redis_amendments_lost_total"):
            self.assertEqual(weir.metric(name), 0, name)
        status, said, errors = run_weir("redis-check", config=config(9, state=state))
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("\n  eviction ", said)
        self.assertEqual(self.denied(redis), [])

    def test_documented_rights_suffice_for_one_redis(self):
        redis = self.start(Redis())
        self.assertEqual(redis.command(*REDIS), b"OK")
        self.live(redis, self.settings(redis).replace(f":{redis.port}\"", f":{redis.port}/3\""))

    def test_documented_rights_suffice_for_a_cluster(self):
        node = self.start(Node())
        node.ok("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        eventually(lambda: b"cluster_state:ok" in node.command("CLUSTER", "INFO"), "the cluster is ok")
        self.assertEqual(node.command(*REDIS), b"OK")
        self.live(node, self.settings(node, f', topology = "cluster", nodes = ["127.0.0.1:{node.port}"]'))

    def test_documented_rights_suffice_for_sentinels(self):
        redis = self.start(Redis())
        sentinel = self.start(Sentinel(redis))
        self.assertEqual((redis.command(*REDIS), sentinel.command(*SENTINEL)), (b"OK", b"OK"))
        self.live(redis, self.settings(redis, f', topology = "sentinel", master = "{MASTER}", sentinels = ["127.0.0.1:{sentinel.port}"], '
                                              f'sentinel_user = "weir", sentinel_password = "secret"'))
        self.assertEqual(self.denied(sentinel), [])

    def test_every_documented_right_is_needed(self):
        """If any one of the rights is missing, redis-check reports it, or Redis denies a command."""
        redis = self.start(Redis())
        redis.command(*REDIS)
        elsewhere = {"+select", "+role", "+cluster|nodes", "+asking"}  # only needed with another topology or database
        for right in [word for word in REDIS if word.startswith("+") and word not in elsewhere]:
            redis.command("ACL", "SETUSER", "weir", right.replace("+", "-"))
            self.denied(redis)
            status, _, errors = run_weir("redis-check", config=config(9, state=self.settings(redis)))
            # Without the last four of these rights, weir keeps strings and converts none of them to a list or set.
            if right in ("+info", "+ping", "+client|setname", "+rpush", "+zadd", "+pexpire", "+rename"):
                self.assertTrue(self.denied(redis), right)
            else:
                self.assertEqual(status, 1, f"{right} {errors}")
                self.assertIn("docs/distributed.md, Rights", errors)
            redis.command("ACL", "SETUSER", "weir", right)

    def test_missing_right_affects_only_the_rules_that_need_it(self):
        redis = self.start(Redis())
        redis.command(*REDIS)
        redis.command("ACL", "SETUSER", "weir", "-exists")
        weir = self.start(Weir(config(self.upstream.port, rules=rules(), state=self.settings(redis))))
        eventually(lambda: weir.metric("weir_redis_up") == 2, "weir is connected to Redis")
        for _ in range(20):
            self.assertEqual([weir.get(f"/{name}", x_key="b").status for name in ("bucket", "places", "window")], [200, 503, 200])
        said = [line for line in weir.lines if "fails at" in line]
        self.assertIn(len(said), (1, 2), "each worker with a request logs one line")
        self.assertRegex(said[0], r"fails at concurrency: ERR .*\(docs/distributed\.md, Rights")
        self.assertEqual(weir.metric("weir_redis_up"), 2)

    def test_counts_are_exact_without_the_rights_for_lists_and_sets(self):
        redis = self.start(Redis())
        redis.command(*REDIS)
        long = rule("long", "100/day", algorithm='"sliding_log"', store='"redis"', on_store_failure='"closed"', key='["header:X-Key"]',
                    match='{ path = "/long" }')
        many = rule("many", "2", algorithm='"concurrency"', store='"redis"', on_store_failure='"closed"', key='["header:X-Key"]',
                    match='{ path = "/many" }').replace('"2"', "40")
        weir = self.start(Weir(config(self.upstream.port, rules=long + many, state=self.settings(redis))))
        eventually(lambda: weir.metric("weir_redis_up") == 2, "weir is connected to Redis")
        for right in ("-rpush", "-zadd", "-rename"):
            with self.subTest(right):
                redis.command("ACL", "SETUSER", "weir", right)
                self.assertEqual([weir.get("/long", x_key=right).status for _ in range(130)], 100 * [200] + 30 * [429])
                self.gate.clear()
                seen = len(self.upstream.exchanges)
                held = [self.start(Client(weir.port)) for _ in range(40)]
                for client in held:
                    client.send(request_bytes("GET", "/many?held", {"X-Key": right}))
                eventually(lambda seen=seen: len(self.upstream.exchanges) == seen + 40, "all requests are at the upstream")
                self.assertEqual([weir.get("/many", x_key=right).status for _ in range(5)], 5 * [429])
                self.gate.set()
                self.assertEqual({client.read().status for client in held}, {200})
                eventually(lambda right=right: weir.get("/many", x_key=right).status == 200, "the permits are released")
                redis.command("ACL", "SETUSER", "weir", right.replace("-", "+"))


class RejectedConnections(TestCase):
    def test_redis_that_accepts_no_more_clients_is_reported(self):
        redis = self.start(Redis("--maxclients", "2"))
        for _ in range(2):
            self.start(Client(redis.port))
        state = f'{SECRET}redis = {{ url = "{redis.url}", start_wait = "0s" }}'
        weir = self.start(Weir(config(9, rules=rule(store='"redis"'), state=state)))
        weir.wait_for(r"is down: server_error, ERR max number of clients reached")
        status, _, errors = run_weir("redis-check", config=config(9, state=state))
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"^weir: ERR max number of clients reached \(expected .* raise maxclients of that Redis\)\n$")

    def test_redis_that_needs_a_password_is_reported(self):
        redis = self.start(Redis())
        redis.command("CONFIG", "SET", "requirepass", "secret")
        state = f'{SECRET}redis = {{ url = "{redis.url}", start_wait = "0s" }}'
        weir = self.start(Weir(config(9, rules=rule(store='"redis"'), state=state)))
        weir.wait_for(r"is down: not_allowed, NOAUTH Authentication required")
        status, said, errors = run_weir("redis-check", config=config(9, state=state))
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"^weir: NOAUTH Authentication required\. \(expected .*username and password of \[state\.redis\].*\)\n$")
        self.assertRegex(said, r"(?m)^  reachable +no$")


if __name__ == "__main__":
    main()
