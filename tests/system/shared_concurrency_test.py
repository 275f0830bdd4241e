#!/usr/bin/env python3
"""Concurrent requests, counted over several weir instances in one Redis. The upstream never has more than the limit. If an
instance dies, its permits expire after the lease time."""

import re
import signal
import threading
import time

from harness import Client, Redis, TestCase, Upstream, Weir, answer, config, eventually, main, request_bytes, rule, together
from redis_failure_test import Way

# A script that returns the number of permits of a key (src/redis/scripts/held_state.lua).
HELD = """local state = redis.call('MGET', KEYS[1])[1]
if state then return state:byte() == 7 and #state % 27 == 22 and (struct.unpack('<I7', state, 2)) or 0 end
return -(redis.call('ZSCORE', KEYS[1], '') or 0)"""
TEN = dict(name="ten", limit=10, key="[]", algorithm='"concurrency"', store='"redis"')


def at_once(**more):
    return re.sub(r'limit = "(\d+)"', r"limit = \1", rule(**{**TEN, **more}))


class Gauge:
    """An upstream that counts its concurrent requests, and sends no response until the test allows it."""

    def __init__(self, hold=None):
        self.lock, self.hold, self.now, self.most = threading.Lock(), hold, 0, 0

    def __call__(self, exchange):
        exchange.read_body()
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        if self.hold is not None:
            self.hold.wait(60)
        with self.lock:
            self.now -= 1
        exchange.send(answer())


class SharedConcurrency(TestCase):
    def setUp(self):
        self.go = threading.Event()
        self.upstream = self.start(Upstream(Gauge(self.go)))
        self.redis = self.start(Redis())
        self.addCleanup(self.go.set)

    def text(self, *rules, lease="1s", replicas=1, url=None, timeout="10s"):
        state = f'key_secret = "test"\nreplicas = {replicas}\n' \
                f'redis = {{ url = "{url or self.redis.url}", timeout = "{timeout}", start_wait = "20s", lease_time = "{lease}" }}'
        return config(self.upstream.port, rules="\n".join(rules or [at_once()]), state=state)

    def weir(self, *rules, **more):
        weir = self.start(Weir(self.text(*rules, **more)))
        eventually(weir.is_ready, "weir is connected to Redis")
        return weir

    def hold(self, weir, count):
        """Starts this number of requests, to which the upstream does not respond yet."""
        before = self.upstream.reply.now
        clients = [self.start(Client(weir.port)) for _ in range(count)]
        for client in clients:
            client.send(request_bytes("GET", "/"))
        eventually(lambda: self.upstream.reply.now == before + count, f"{count} more are under way")
        return clients

    def held(self):
        """Returns the number of permits that Redis stores."""
        keys = [key.decode() for key in self.redis.command("KEYS", "*") if not key.startswith(b"weir:probe:")]
        return sum(self.redis.command("EVAL", HELD, "1", key) for key in keys)

    def test_ten_of_sixty_parallel_requests_to_three_instances_are_admitted(self):
        refused, weirs = threading.Semaphore(0), [self.weir() for _ in range(3)]

        def ask(number):
            response = weirs[number % 3].get("/")
            if response.status == 429:
                refused.release()
            return response

        def let_go_once_all_others_are_refused():
            for _ in range(50):
                refused.acquire(timeout=30)
            eventually(lambda: self.upstream.reply.now == 10, "ten requests are at the upstream")
            self.go.set()

        waiter = threading.Thread(target=let_go_once_all_others_are_refused, daemon=True)
        waiter.start()
        answers = together(60, ask)
        waiter.join(30)
        self.assertEqual(self.upstream.reply.most, 10)
        statuses = [response.status for response in answers]
        self.assertEqual((statuses.count(200), statuses.count(429)), (10, 50))
        for response in answers:
            self.assertIn('qu="concurrent-requests"', response["ratelimit-policy"])
            self.assertEqual(response["retry-after"], "1" if response.status == 429 else None)
        eventually(lambda: self.held() == 0, "all permits are released")

    def test_concurrency_at_the_upstream_never_exceeds_the_limit_under_load(self):
        self.go.set()
        weirs = [self.weir() for _ in range(3)]
        statuses = sum(together(24, lambda index: self.statuses(weirs[index % 3].port, 60)), [])
        self.assertLessEqual(self.upstream.reply.most, 10)
        self.assertLessEqual(set(statuses), {200, 429})
        self.assertGreaterEqual(statuses.count(200), 60)
        eventually(lambda: self.held() == 0, "all permits are released")

    def test_permits_of_a_killed_instance_expire_after_the_lease_time(self):
        doomed = Weir(self.text())
        self.addCleanup(doomed.scratch.cleanup)
        self.addCleanup(doomed.process.stderr.close)
        other = self.weir()
        self.hold(doomed, 10)
        self.assertEqual(other.get("/").status, 429)
        doomed.signal(signal.SIGKILL)
        doomed.process.wait()
        eventually(lambda: self.redis.command("KEYS", "*") == [], "the permits have expired")
        self.hold(other, 10)
        self.assertEqual(other.get("/").status, 429)

    def test_instance_that_stops_normally_leaves_no_permits(self):
        weir = Weir(self.text(lease="1h"))
        self.addCleanup(weir.scratch.cleanup)
        self.hold(weir, 4)
        self.assertEqual(self.held(), 4)
        self.go.set()
        self.assertEqual(weir.stop(), 0)
        self.assertEqual(self.held(), 0)

    def test_requests_longer_than_the_lease_time_keep_their_permits(self):
        first, second = self.weir(), self.weir()
        self.hold(first, 7)
        self.hold(second, 3)
        time.sleep(2.5)  # two and a half times the lease time
        self.assertEqual(self.held(), 10)
        self.assertEqual([weir.get("/").status for weir in (first, second)], [429, 429])

    def test_permits_in_use_are_stored_in_redis_again_after_flushall(self):
        first, second = self.weir(), self.weir()
        self.hold(first, 6)
        self.hold(second, 4)
        self.redis.command("FLUSHALL")
        eventually(lambda: self.held() == 10, "renewals have entered the permits again")
        self.assertEqual([weir.get("/").status for weir in (first, second)], [429, 429])
        self.go.set()
        eventually(lambda: self.held() == 0, "all permits are released")

    def test_counts_recover_soon_after_flushall_under_load(self):
        self.go.set()
        weirs, ended = [self.weir() for _ in range(2)], threading.Event()

        def flush():
            while not ended.wait(0.05):
                self.redis.command("FLUSHALL")

        flusher = threading.Thread(target=flush, daemon=True)
        flusher.start()
        try:
            statuses = sum(together(16, lambda index: self.statuses(weirs[index % 2].port, 60)), [])
        finally:
            ended.set()
            flusher.join(30)
        self.assertLessEqual(set(statuses), {200, 429})
        eventually(lambda: self.held() == 0, "no permit of an ended request is counted")
        self.go.clear()
        self.hold(weirs[0], 10)
        self.assertEqual(weirs[1].get("/").status, 429)

    def test_permits_taken_without_redis_are_stored_in_redis_when_it_returns(self):
        weir = self.weir(replicas=2)
        self.hold(weir, 2)
        self.redis.kill()
        eventually(lambda: weir.metric("weir_redis_up") == 0, "weir has noticed that Redis is down")
        self.hold(weir, 5)
        self.assertEqual(weir.get("/").status, 429, "the local share of ten is five")
        self.redis.start()
        eventually(lambda: self.held() == 7, "Redis has all permits in use")
        self.hold(weir, 3)
        self.assertEqual(weir.get("/").status, 429)

    def test_connection_to_redis_that_gets_no_reply_is_replaced_before_permits_expire(self):
        """No other request could reveal the failure by a timeout."""
        way = self.start(Way(self.redis.port))
        one = at_once(limit=1)
        first = self.weir(one, lease="3s", url=f"redis://127.0.0.1:{way.port}", timeout="500ms")
        second = self.weir(one, lease="3s")
        self.hold(first, 1)
        way.forget()
        end = time.monotonic() + 6  # twice the lease time
        while time.monotonic() < end:
            self.assertEqual(second.get("/").status, 429)
            time.sleep(0.05)
        self.assertEqual(self.upstream.reply.most, 1)
        first.wait_for(r"is down: .*no reply to a command within 1s")
        self.assertGreaterEqual(first.metric("weir_redis_reconnects_total"), 1)
        self.go.set()
        eventually(lambda: self.held() == 0, "the permit is released again")

    def test_request_is_charged_by_all_its_rules_or_by_none(self):
        weir = self.weir(at_once(limit=3), rule("each", "2/day", key='["api_key"]', store='"redis"'), lease="1h")
        clients = [self.start(Client(weir.port)) for _ in range(3)]
        for client, key in zip(clients, "aab"):
            client.send(request_bytes("GET", "/", {"X-API-Key": key}))
        eventually(lambda: self.upstream.reply.now == 3, "three requests are at the upstream")
        self.assertEqual(weir.get("/", x_api_key="c").status, 429)
        self.go.set()
        for client in clients:
            client.read()
        eventually(lambda: self.held() == 0, "all permits are released")
        self.assertEqual(weir.get("/", x_api_key="a").status, 429)
        self.assertEqual(weir.get("/", x_api_key="c")["x-ratelimit-remaining"], "1")


if __name__ == "__main__":
    main()
