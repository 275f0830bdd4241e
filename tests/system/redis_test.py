#!/usr/bin/env python3
"""Weirs that share a Redis, and what becomes of requests when it goes away."""

import signal
import threading
import time

from harness import Client, Redis, TestCase, Upstream, Weir, closed_port, config, eventually, main, rule, together


def shared(name="shared", limit="1/day", **more):
    return rule(name, limit, store='"redis"', **{"key": "[]", **more})


class Shared(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())
        self.redis = self.start(Redis())

    def weir(self, *rules, timeout="2s"):
        state = f'key_secret = "test"\nredis = {{ url = "{self.redis.url}", timeout = "{timeout}" }}'
        weir = self.start(Weir(config(self.upstream.port, rules="\n".join(rules), state=state)))
        return weir

    def test_two_weirs_admit_exactly_the_limit_together(self):
        for algorithm, burst in (("token_bucket", 100), ("gcra", 99)):
            with self.subTest(algorithm):
                rules = shared(algorithm, burst=burst, algorithm=f'"{algorithm}"')
                ports = [self.weir(rules).port, self.weir(rules).port]
                statuses = sum(together(8, lambda index: self.statuses(ports[index % 2], 40)), [])  # noqa: B023
                self.assertEqual((statuses.count(200), statuses.count(429)), (100, 220))

    def test_one_round_trip_whatever_the_rules(self):
        weir = self.weir(*(shared(f"r{number}", "1000/s", key='["ip"]') for number in range(5)))
        self.statuses(weir.port, 5)
        before = self.redis.calls("evalsha")
        self.assertEqual(self.statuses(weir.port, 50), [200] * 50)
        self.assertEqual(self.redis.calls("evalsha") - before, 50)

    def test_a_refused_request_consumes_nothing_anywhere(self):
        weir = self.weir(shared("everybody", burst=5), shared("each", burst=2, key='["api_key"]'),
                         rule("local", "1/day", burst=4, key="[]"))
        self.assertEqual(self.statuses(weir.port, 4, x_api_key="a"), [200, 200, 429, 429])
        self.assertEqual(self.statuses(weir.port, 4, x_api_key="b"), [200, 200, 429, 429])
        self.assertEqual(self.statuses(weir.port, 4, x_api_key="c"), [429] * 4)

    def test_retry_after_is_never_early(self):
        weir = self.weir(shared(limit="1/2s"))
        with Client(weir.port) as client:
            self.assertEqual(client.get("/").status, 200)
            refused = client.get("/")
            self.assertEqual(refused.status, 429)
            time.sleep(int(refused["retry-after"]))  # the law under test: admitted at that moment
            self.assertEqual(client.get("/").status, 200)

    def test_the_queue_is_shared(self):
        rules = shared("queue", "10/s", algorithm='"leaky_bucket"', queue=50)
        ports = [self.weir(rules).port, self.weir(rules).port]
        began = time.monotonic()
        self.assertEqual(sum(together(8, lambda index: self.statuses(ports[index % 2], 2)), []), [200] * 16)
        self.assertGreater(time.monotonic() - began, 1.4)

    def test_keys_expire_and_hold_no_secret(self):
        weir = self.weir(shared(burst=5, key='["api_key"]'), shared("second", burst=5, key='["ip"]'))
        self.statuses(weir.port, 2, x_api_key="very-secret-key")
        keys = self.redis.command("KEYS", "*")
        self.assertEqual(len([key for key in keys if key != b"weir:probe"]), 2)
        for key in keys:
            self.assertNotIn(b"very-secret-key", key)
            self.assertTrue(key.startswith(b"weir"), key)
            self.assertGreater(self.redis.command("PTTL", key.decode("latin-1")), 0)

    def test_a_flushed_script_is_loaded_again(self):
        weir = self.weir(shared(burst=100))
        self.assertEqual(self.statuses(weir.port, 3), [200] * 3)
        self.redis.command("SCRIPT", "FLUSH")
        self.assertEqual(self.statuses(weir.port, 3), [200] * 3)
        self.assertEqual(weir.metric("weir_decisions_total", outcome="store_failed"), 0)

    def test_a_frozen_redis_costs_no_more_than_the_timeout(self):
        weir = self.weir(shared(limit="1000/s", on_store_failure='"open"'), timeout="50ms")
        self.assertEqual(weir.get("/").status, 200)
        self.redis.process.send_signal(signal.SIGSTOP)
        try:
            slowest, statuses = 0.0, []
            for _ in range(10):
                began = time.monotonic()
                statuses.append(weir.get("/").status)
                slowest = max(slowest, time.monotonic() - began)
            self.assertEqual(statuses, [200] * 10)
            self.assertLess(slowest, 1.0)
        finally:
            self.redis.process.send_signal(signal.SIGCONT)

    def test_what_a_late_reply_charged_is_given_back(self):
        weir = self.weir(shared(limit="10/day", on_store_failure='"closed"'), timeout="50ms")
        self.assertEqual(weir.get("/")["x-ratelimit-remaining"], "9")
        self.redis.process.send_signal(signal.SIGSTOP)
        try:
            self.assertEqual(self.statuses(weir.port, 3), [503] * 3)
        finally:
            self.redis.process.send_signal(signal.SIGCONT)
        eventually(lambda: self.redis.calls("evalsha") >= 7, "three late charges and their refunds")
        self.assertEqual(weir.get("/")["x-ratelimit-remaining"], "8")

    def test_redis_killed_under_load_loses_no_request(self):
        weir = self.weir(shared(limit="100000/s", burst=100000), timeout="50ms")
        stop, results = threading.Event(), []

        def hammer():
            with Client(weir.port) as client:
                while not stop.is_set():
                    began = time.monotonic()
                    results.append((client.get("/").status, time.monotonic() - began))

        clients = [threading.Thread(target=hammer, daemon=True) for _ in range(4)]
        for client in clients:
            client.start()
        for phase in (lambda: None, self.redis.kill, self.redis.start):
            phase()
            seen = len(results)
            eventually(lambda: len(results) > seen + 300, "requests go on")  # noqa: B023
        eventually(lambda: self.redis.calls("evalsha") > 20, "weir is back at Redis")
        stop.set()
        for client in clients:
            client.join(10)
        self.assertEqual({status for status, _ in results}, {200})
        print(f"\n{len(results)} requests, slowest {max(took for _, took in results) * 1000:.0f} ms", flush=True)
        self.assertLess(max(took for _, took in results), 1.5)


class Absent(TestCase):
    def test_the_start_does_not_wait_for_ever(self):
        weir = self.weir("open", start_wait="0s")
        self.assertEqual(weir.get("/").status, 200)

    def weir(self, policy, start_wait="50ms", **more):
        upstream = self.start(Upstream())
        state = f'key_secret = "test"\nredis = {{ url = "redis://127.0.0.1:{closed_port()}", timeout = "50ms", start_wait = "{start_wait}" }}\nreplicas = 2'
        return self.start(Weir(config(upstream.port, state=state, rules=shared(on_store_failure=f'"{policy}"', **more))))

    def test_open_admits(self):
        weir = self.weir("open")
        self.assertEqual(self.statuses(weir.port, 5), [200] * 5)
        self.assertGreaterEqual(weir.metric("weir_decisions_total", outcome="store_failed"), 5)

    def test_closed_refuses_with_503(self):
        weir = self.weir("closed")
        self.assert_own_error(weir.get("/"), 503)

    def test_local_enforces_its_share(self):
        weir = self.weir("local", burst=10)
        self.assertEqual(self.statuses(weir.port, 8), [200] * 5 + [429] * 3)


if __name__ == "__main__":
    main()
