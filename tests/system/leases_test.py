#!/usr/bin/env python3
"""weir instances that take units of busy keys in advance from one Redis (prefetched units). Together the instances never exceed a
limit, need few round trips, and return all unused units."""

import signal
import socket
import struct
import time

from harness import PATIENCE, SANITIZED, Redis, TestCase, Weir, closed_port, config, eventually, main, rule, together
from resolve_test import Silent

CLIENTS = 3  # so few clients that their timeouts cannot open the circuit breaker
MANY = 4_000 if SANITIZED else 20_000


def leased(algorithm, limit, **more):
    return rule("hot", limit, **{"algorithm": f'"{algorithm}"', "key": "[]", "store": '"redis"', "lease": '"10%"',
                                 "on_store_failure": '"closed"', **more})


def ask(port, count, at_once=50):
    """Sends this number of requests on one connection, several at once. Returns the number of admitted requests."""
    admitted, last = 0, b""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as wire:
        for _ in range(count // at_once):
            wire.sendall(b"GET / HTTP/1.1\r\nHost: hot\r\n\r\n" * at_once)
            answers, rest = 0, b""
            while answers < at_once:
                text = rest + wire.recv(1 << 18)
                if len(text) == len(rest):
                    raise AssertionError("weir hung up")
                admitted += text.count(b"HTTP/1.1 200 ")
                answers += text.count(b"HTTP/1.1 200 ") + text.count(b"HTTP/1.1 429 ")
                rest = text[-12:]  # a status line that is not complete yet
                last = text
    return admitted, last


class Leases(TestCase):
    def setUp(self):
        self.redis = self.start(Redis())

    def weir(self, *rules, lease_return="1s", timeout="2s", **more):
        state = f'key_secret = "test"\nredis = {{ url = "{self.redis.url}", timeout = "{timeout}", lease_return = "{lease_return}" }}'
        more = {"routes": '[[route]]\nrespond = { status = 200, body = "ok" }\n', **more}
        weir = self.start(Weir(config(closed_port(), rules="\n".join(rules), state=state, **more)))
        eventually(weir.is_ready, "weir is connected to Redis")
        return weir

    def admit(self, weirs, each):
        """Runs two clients for each instance at the same time. Returns the number of admitted requests, and the round trips to
        Redis per request."""
        before = self.redis.calls("evalsha")
        results = together(2 * len(weirs), lambda index: ask(weirs[index % len(weirs)].port, each)[0])
        trips = (self.redis.calls("evalsha") - before) / (2 * len(weirs) * each)
        return sum(results), trips

    def state(self):
        (key,) = (key for key in self.redis.command("KEYS", "*") if not key.startswith(b"weir:probe:"))
        return self.redis.command("GET", key.decode())

    def counted(self, state):
        """Returns the count that Redis stores for a fixed window (src/redis/scripts/charge.lua)."""
        kind, _, used = struct.unpack("<Bdd", state[:17])
        self.assertEqual(kind, 3)
        return used

    def test_three_instances_together_admit_exactly_the_limit(self):
        for algorithm in ("fixed_window", "sliding_window", "token_bucket", "gcra"):
            with self.subTest(algorithm):
                self.redis.command("FLUSHALL")
                limits = {"token_bucket": {"limit": "1/day", "burst": MANY}, "gcra": {"limit": "1/day", "burst": MANY - 1}}
                rules = leased(algorithm, **limits.get(algorithm, {"limit": f"{MANY}/3000day"}))
                weirs = [self.weir(rules, lease_return="1min") for _ in range(3)]
                admitted, trips = self.admit(weirs, MANY // 4)
                for weir in weirs:
                    admitted += ask(weir.port, 1000)[0]  # spends the units that an instance may still have
                print(f"\n{algorithm}: {admitted} of {MANY} admitted, {trips:.4f} trips a request", flush=True)
                self.assertEqual(admitted, MANY)
                self.assertLess(trips, 0.05)

    def test_bucket_that_refills_is_never_overdrawn(self):
        rate, burst = 2000, 500
        rules = leased("token_bucket", f"{rate}/s", burst=burst)
        weirs = [self.weir(rules) for _ in range(3)]
        began = time.monotonic()
        admitted, _ = self.admit(weirs, MANY // 5)
        self.assertLessEqual(admitted, burst + rate * (time.monotonic() - began))
        self.assertGreater(admitted, burst)

    def test_unused_prefetched_units_are_returned_to_redis(self):
        rules = leased("fixed_window", f"{MANY}/3000day")
        weirs = [self.weir(rules, lease_return="300ms") for _ in range(3)]
        admitted = returned = rounds = 0
        while not returned and rounds < 3:  # by chance the requests may have used all prefetched units
            admitted += self.admit(weirs, MANY // 20)[0]  # the limit is not reached
            eventually(lambda: not any(weir.metric("weir_lease_units") for weir in weirs), "no instance holds prefetched units")
            returned = sum(weir.metric("weir_lease_units_total", event="returned") for weir in weirs)
            rounds += 1
        self.assertGreater(returned, 0)
        eventually(lambda: self.counted(self.state()) == admitted, "Redis has counted the admitted requests")

    def test_unused_prefetched_units_of_a_bucket_are_returned_to_redis(self):
        weir = self.weir(leased("token_bucket", "1/day", burst=MANY), lease_return="300ms")
        admitted, answer = ask(weir.port, 1000, at_once=1)
        eventually(lambda: weir.metric("weir_lease_units") == 0, "weir holds no prefetched units")
        held = weir.metric("weir_lease_units_total", event="returned")
        self.assertGreater(held, 0)
        self.assertEqual((admitted, weir.metric("weir_lease_units_total", event="lost")), (1000, 0))
        self.assertEqual(weir.get("/")["x-ratelimit-remaining"], str(MANY - 1001))
        self.assertIn(b"X-RateLimit-Remaining", answer)

    def test_instances_that_prefetch_and_return_units_of_a_bucket_admit_exactly_its_limit(self):
        """Three instances prefetch units, use some and become idle, several times. In the end exactly the whole limit was
        admitted."""
        weirs = [self.weir(leased("token_bucket", "1/day", burst=2000, lease='"5%"'), lease_return="200ms") for _ in range(3)]
        admitted = 0
        for _ in range(12):
            admitted += sum(together(3, lambda index: ask(weirs[index].port, 70, at_once=5)[0]))
            eventually(lambda: not any(weir.metric("weir_lease_units") for weir in weirs), "no instance holds prefetched units")
        lost = sum(weir.metric("weir_lease_units_total", event="lost") for weir in weirs)
        returned = sum(weir.metric("weir_lease_units_total", event="returned") for weir in weirs)
        print(f"\n{admitted} of 2000 admitted, {returned:.0f} units came back, {lost:.0f} were lost", flush=True)
        self.assertGreater(returned, 100)
        self.assertEqual(admitted, 2000)

    def test_refund_reaches_redis_even_if_the_other_prefetched_units_were_returned_long_before(self):
        """Redis has got back the other units of a grant (the units prefetched together) long before the refund."""
        away = self.start(Silent("127.0.0.1", 0))
        upstream = f'[[upstream]]\nname = "away"\nservers = ["127.0.0.1:{away.port}"]\ntimeouts = {{ connect = "700ms" }}\n'
        routes = '[[route]]\nmatch = { path = "/away" }\nupstream = "away"\n[[route]]\nrespond = { status = 200, body = "ok" }\n'
        for algorithm, limit in (("fixed_window", {"limit": "100/3000day"}), ("token_bucket", {"limit": "1/day", "burst": 100})):
            with self.subTest(algorithm):
                self.redis.command("FLUSHALL")
                weir = self.weir(leased(algorithm, lease='"25%"', **limit), lease_return="200ms", upstream=upstream, routes=routes)
                away_statuses = together(6, lambda _: self.statuses(weir.port, 4, "/away"))
                self.assertEqual({status for each in away_statuses for status in each}, {504})
                eventually(lambda: weir.metric("weir_lease_units") == 0, "weir holds no prefetched units")
                admitted = ask(weir.port, 150, at_once=1)[0]
                print(f"\n{algorithm}: {admitted} of 100 admitted", flush=True)
                self.assertGreaterEqual(admitted, 98, "the first slot of a full bucket expires at once")
                self.assertLessEqual(admitted, 100)

    def test_instance_that_stops_returns_all_prefetched_units(self):
        rules = leased("fixed_window", f"{MANY}/3000day")
        with self.weir(rules, lease_return="1min") as weir:
            admitted, _ = ask(weir.port, 1000)
            self.assertGreater(weir.metric("weir_lease_units"), 0)
        self.assertEqual(self.counted(self.state()), admitted)

    def test_request_that_another_rule_refuses_uses_no_prefetched_unit(self):
        rules = (leased("fixed_window", f"{MANY}/3000day", key='["host"]'),
                 rule("few", "600/3000day", algorithm='"fixed_window"', key="[]", store='"redis"'))
        weir = self.weir(*rules, lease_return="300ms")
        self.assertEqual(ask(weir.port, 1000)[0], 600)
        eventually(lambda: weir.metric("weir_lease_units") == 0, "weir holds no prefetched units")
        spent = {event: weir.metric("weir_lease_units_total", event=event) for event in ("spent", "put_back", "lost")}
        print(f"\n{spent}", flush=True)
        self.assertEqual(spent["lost"], 0)
        counts = [self.counted(self.redis.command("GET", key.decode()))
                  for key in self.redis.command("KEYS", "*") if not key.startswith(b"weir:probe:")]
        self.assertEqual(counts, [600, 600])

    def test_refunded_unit_is_added_to_the_prefetched_units(self):
        weir = self.weir(leased("fixed_window", f"{MANY}/3000day"), lease_return="300ms", routes="")
        self.assertEqual(self.statuses(weir.port, 200), [502] * 200)
        self.assertGreater(weir.metric("weir_lease_units_total", event="put_back"), 0)
        eventually(lambda: self.redis.command("KEYS", "*") == [], "every unit is returned")

    def test_few_units_are_lost_by_refunds_to_a_bucket_with_prefetched_units(self):
        weir = self.weir(leased("token_bucket", "1/day", burst=MANY), lease_return="300ms", routes="")
        self.assertEqual(self.statuses(weir.port, 200), [502] * 200)
        self.assertGreater(weir.metric("weir_lease_units_total", event="put_back"), 100)
        eventually(lambda: weir.metric("weir_lease_units") == 0, "weir holds no prefetched units")
        tat = struct.unpack("<dd", self.state())[0] if self.redis.command("DBSIZE") > 1 else 0
        self.assertLessEqual(tat / 86400e6 - time.time() / 86400, 3, "a slot that has begun cannot be returned")

    def test_prefetched_units_are_not_returned_after_redis_was_flushed(self):
        for number, (algorithm, more) in enumerate((("fixed_window", {}), ("sliding_window", {}), ("sliding_window", {"buckets": 4}))):
            with self.subTest(algorithm, **more):
                rules = leased(algorithm, "1000/3000day", lease='"25%"', key=f'["host", "header:x-{number}"]', on_missing='"ip"', **more)
                first, second = (self.weir(rules, lease_return="2s") for _ in range(2))
                ask(first.port, 280, at_once=1)
                self.assertGreater(first.metric("weir_lease_units"), 0)
                self.redis.command("FLUSHALL")
                admitted = ask(second.port, 700)[0]
                eventually(lambda: first.metric("weir_lease_units") == 0, "the instance has dropped its units")
                admitted += ask(second.port, 700)[0]
                self.assertLessEqual(admitted, 1000)
                self.assertGreater(admitted, 900)

    def test_at_most_the_units_of_one_prefetch_are_lost_by_each_late_redis_reply(self):
        weir = self.weir(leased("token_bucket", "1/day", burst=MANY, lease=200), lease_return="300ms", timeout="20ms")
        admitted = ask(weir.port, 300, at_once=1)[0]
        for _ in range(20):
            self.redis.process.send_signal(signal.SIGSTOP)
            admitted += sum(together(CLIENTS, lambda _: self.until_it_is_late(weir)))
            self.redis.process.send_signal(signal.SIGCONT)
            admitted += sum(self.answered(weir) for _ in range(30))
        eventually(lambda: weir.metric("weir_lease_units") == 0, "weir holds no prefetched units")
        while (said := weir.get("/")).status != 200:  # weir may be reconnecting
            self.assertEqual(said.status, 503)
        lost, reconnects = MANY - admitted - 1 - int(said["x-ratelimit-remaining"]), weir.metric("weir_redis_reconnects_total")
        print(f"\n{lost} of {admitted + 1} lost, {reconnects:.0f} connections", flush=True)
        most = 200 + CLIENTS  # units in a lost message, and units that are prefetched at the end
        self.assertLessEqual(lost, most * (1 + reconnects))
        self.assertGreater(weir.metric("weir_redis_timeouts_total"), 20)

    def until_it_is_late(self, weir):
        """Sends requests until a call to Redis times out. Returns the number of admitted requests."""
        admitted = 0
        while self.answered(weir):
            admitted += 1
        return admitted

    def answered(self, weir):
        """Sends a request. Returns 1 if it is admitted, else 0."""
        status = weir.get("/").status
        self.assertIn(status, (200, 503))
        return int(status == 200)

    def test_no_units_are_prefetched_for_a_key_with_few_requests(self):
        weir = self.weir(leased("fixed_window", f"{MANY}/3000day", key='["api_key"]'))
        before = self.redis.calls("evalsha")
        for client in range(30):
            self.assertEqual(weir.get("/", x_api_key=f"c{client}").status, 200)
        self.assertEqual(self.redis.calls("evalsha") - before, 30)
        self.assertEqual(weir.metric("weir_lease_units_total", event="taken"), 0)


if __name__ == "__main__":
    main()
