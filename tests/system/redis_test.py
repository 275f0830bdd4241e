#!/usr/bin/env python3
"""weir instances that share a Redis, and requests while Redis is unavailable."""

import json
import pathlib
import signal
import socket
import tempfile
import threading
import time

from harness import PATIENCE, SANITIZED, Client, Redis, TestCase, Upstream, Weir, closed_port, config, eventually, get
from harness import main, rule, together


# Each rule admits 100 requests during a test: no window ends during a test, because windows last for years and the zone's
# midnight is hours away.
ZONE = "UTC" if 1 <= time.gmtime().tm_hour < 23 else "Asia/Tokyo"
HUNDRED = {
    "token_bucket": {"limit": "1/day", "burst": 100},
    "stepwise": {"limit": "1/day", "burst": 100, "refill": '"stepwise"', "algorithm": '"token_bucket"'},
    "gcra": {"limit": "1/day", "burst": 99},
    "fixed_window": {"limit": "100/3000day"},
    "calendar": {"limit": "100/day", "algorithm": '"fixed_window"', "align": '"day"', "timezone": f'"{ZONE}"'},
    "sliding_window": {"limit": "100/3000day"},
    "buckets": {"limit": "100/3000day", "algorithm": '"sliding_window"', "buckets": 7},
    "sliding_log": {"limit": "100/day"},
}


def hundred(kind, **more):
    return shared(kind, **{"algorithm": f'"{kind}"', **HUNDRED[kind], **more})


def shared(name="shared", limit="1/day", **more):
    return rule(name, limit, store='"redis"', **{"key": "[]", **more})


def flood(port, count, at_once=125):
    """Sends requests that weir refuses, many at once on one connection."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as wire:
        for _ in range(count // at_once):
            wire.sendall(b"GET / HTTP/1.1\r\nHost: flood\r\n\r\n" * at_once)
            seen, rest = 0, b""
            while seen < at_once:
                text = rest + wire.recv(1 << 18)
                seen += text.count(b"HTTP/1.1 429 ")
                rest = text[-12:]  # a status line that is not complete yet
                if len(text) == len(rest):
                    raise AssertionError("weir hung up")


class SharedLimits(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())
        self.redis = self.start(Redis())

    def weir(self, *rules, timeout="2s", port=None):
        state = f'key_secret = "test"\nredis = {{ url = "{self.redis.url}", timeout = "{timeout}" }}'
        weir = self.start(Weir(config(port or self.upstream.port, rules="\n".join(rules), state=state)))
        eventually(weir.is_ready, "weir is connected to Redis")
        return weir

    def test_two_instances_together_admit_exactly_the_limit(self):
        for kind in HUNDRED:
            with self.subTest(kind):
                rules = hundred(kind)
                ports = [self.weir(rules).port, self.weir(rules).port]
                statuses = sum(together(8, lambda index: self.statuses(ports[index % 2], 40)), [])  # noqa: B023
                self.assertEqual((statuses.count(200), statuses.count(429)), (100, 220))

    def test_every_algorithm_takes_one_round_trip_and_a_refusal_charges_no_rule(self):
        weir = self.weir(*(hundred(kind) for kind in HUNDRED), shared("least", burst=5))
        before = self.redis.calls("evalsha")
        self.assertEqual(self.statuses(weir.port, 5), [200] * 5)
        self.assertEqual(self.redis.calls("evalsha") - before, 5)
        self.assertEqual(self.statuses(weir.port, 15), [429] * 15)
        other = self.weir(*(hundred(kind) for kind in HUNDRED))
        self.assertEqual(other.get("/")["x-ratelimit-remaining"], "94")

    def test_requests_that_reached_no_server_are_refunded_in_redis(self):
        weir = self.weir(*(hundred(kind) for kind in HUNDRED), port=closed_port())
        self.assertEqual(self.statuses(weir.port, 5), [502] * 5)
        eventually(lambda: self.redis.command("KEYS", "*") == [], "every charge is refunded")

    def test_two_instances_share_the_margin_of_a_soft_limit(self):
        rules = hundred("fixed_window", limit="10/3000day", soft='"20%"')
        first, second = self.weir(rules), self.weir(rules)
        answers = [weir.get("/") for weir in (first, second) * 7]
        self.assertEqual([answer.status for answer in answers], [200] * 12 + [429] * 2)
        self.assertEqual([answer["x-ratelimit-exceeded"] for answer in answers[9:12]], [None, "soft", "soft"])

    def test_any_number_of_rules_takes_one_round_trip_to_redis(self):
        """A request for the path /3 matches the first three of eight rules, and a request for /N matches the first N."""
        weir = self.weir(*(shared(f"r{number}", "1000/s", key='["ip"]', match=f'{{ path = "~^/[{number}-8]$" }}')
                           for number in range(1, 9)))
        for rules in range(1, 9):
            before, admitted = self.redis.calls("evalsha"), weir.metric("weir_decisions_total", outcome="admitted")
            self.assertEqual(self.statuses(weir.port, 25, f"/{rules}"), [200] * 25)
            self.assertEqual(self.redis.calls("evalsha") - before, 25)
            self.await_metric(weir, admitted + 25 * rules, "weir_decisions_total", outcome="admitted")

    def test_refused_request_is_not_charged_by_any_rule_in_redis(self):
        weir = self.weir(shared("everybody", burst=5), shared("each", burst=2, key='["api_key"]'),
                         rule("local", "1/day", burst=4, key="[]"))
        self.assertEqual(self.statuses(weir.port, 4, x_api_key="a"), [200, 200, 429, 429])
        self.assertEqual(self.statuses(weir.port, 4, x_api_key="b"), [200, 200, 429, 429])
        self.assertEqual(self.statuses(weir.port, 4, x_api_key="c"), [429] * 4)

    def test_flood_of_refused_requests_rarely_reaches_redis(self):
        count = 10_000 if SANITIZED else 100_000
        weir = self.weir(shared("flooded", burst=5, key='["ip"]'), rule("local", "1000000/s"))
        self.assertEqual(self.statuses(weir.port, 6), [200] * 5 + [429])
        before = self.redis.calls("evalsha")
        together(4, lambda _: flood(weir.port, count // 4))
        trips = self.redis.calls("evalsha") - before
        print(f"\n{trips} commands for {count} refused requests", flush=True)
        self.assertLess(trips, 100)
        self.await_metric(weir, count + 1, "weir_decisions_total", rule="flooded", outcome="refused")
        self.assertGreater(weir.metric("weir_redis_denied_here_total", rule="flooded"), count - 100)

    def test_cached_refusal_has_the_same_headers_as_the_refusal_by_redis(self):
        weir = self.weir(hundred("sliding_window", limit="3/3000day"), shared("second", "1/2day", burst=2, key='["ip"]'))
        told = ("x-ratelimit-limit", "x-ratelimit-remaining", "ratelimit-policy")
        with Client(weir.port) as client:
            for _ in range(2):
                client.get("/")
            asked, known = client.get("/"), client.get("/")
        self.assertGreaterEqual(weir.metric("weir_redis_denied_here_total", rule="second"), 1)
        self.assertEqual((asked.status, known.status), (429, 429))
        self.assertEqual([asked[name] for name in told], [known[name] for name in told])
        self.assertIn(int(asked["retry-after"]) - int(known["retry-after"]), (0, 1))
        self.assertIn(int(asked["x-ratelimit-reset"]) - int(known["x-ratelimit-reset"]), (-1, 0, 1))
        self.assertEqual(asked.json()["rule"], known.json()["rule"])

    def test_cached_refusal_charges_no_rule_in_memory(self):
        weir = self.weir(shared("everybody", burst=2), rule("local", "1/day", burst=4, key="[]"))
        self.assertEqual(self.statuses(weir.port, 30), [200] * 2 + [429] * 28)
        self.redis.command("FLUSHALL")
        for _ in range(2):  # each worker caches refusals by itself
            eventually(lambda: weir.get("/").status == 200, "Redis's loss of data is noticed within a second")
        eventually(lambda: weir.get("/").json()["rule"] == "local", "only four requests were charged in memory")

    def test_retry_after_of_a_limit_in_redis_is_never_too_early(self):
        weir = self.weir(shared(limit="1/2s"))
        with Client(weir.port) as client:
            self.assertEqual(client.get("/").status, 200)
            refused = client.get("/")
            self.assertEqual(refused.status, 429)
            time.sleep(int(refused["retry-after"]))  # Retry-After promises that weir admits a request after this time
            self.assertEqual(client.get("/").status, 200)

    def test_two_instances_share_the_rate_of_a_queue(self):
        rules = shared("queue", "10/s", algorithm='"leaky_bucket"', queue=50)
        ports = [self.weir(rules).port, self.weir(rules).port]
        began = time.monotonic()
        self.assertEqual(sum(together(8, lambda index: self.statuses(ports[index % 2], 2)), []), [200] * 16)
        self.assertGreater(time.monotonic() - began, 1.4)

    def test_keys_in_redis_expire_and_contain_no_api_key(self):
        weir = self.weir(shared(burst=5, key='["api_key"]'), shared("second", burst=5, key='["ip"]'))
        self.statuses(weir.port, 2, x_api_key="very-secret-key")
        keys = self.redis.command("KEYS", "*")
        self.assertEqual(len([key for key in keys if not key.startswith(b"weir:probe:")]), 2)
        for key in keys:
            self.assertNotIn(b"very-secret-key", key)
            self.assertTrue(key.startswith(b"weir"), key)
            self.assertNotEqual(self.redis.command("PTTL", key.decode("latin-1")), -1,
                                "the key does not expire")  # the key of weir's test charge expires at once

    def test_client_has_the_same_digest_with_and_without_redis(self):
        log = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-test-"))) / "access.log"
        state = f'key_secret = "test"\nredis = {{ url = "{self.redis.url}", timeout = "2s" }}'
        text = config(self.upstream.port, state=state, rules=shared(burst=50, key='["ip"]', on_store_failure='"local"'))
        weir = self.start(Weir(text.replace('access = "off"', f'access = "{log}"')))
        eventually(weir.is_ready, "weir is connected to Redis")

        def failed():
            return weir.metric("weir_decisions_total", outcome="store_failed")

        def explained():
            with Client(weir.admin) as client:
                told = client.request("POST", "/api/explain", {"Content-Type": "application/json"}, b'{"path": "/"}').json()
            return {limit["digest"] for limit in told["rules"][0]["limits"]}

        weir.get()
        digest = get(weir.admin, "/api/keys?rule=shared&key=127.0.0.1").json()["limits"][0]["digest"]
        self.redis.kill()
        weir.get()
        self.assertEqual(failed(), 1)
        self.assertEqual(explained(), {digest})
        self.assertEqual(get(weir.admin, "/api/keys?rule=shared&key=127.0.0.1").json()["limits"][0]["digest"], digest)
        eventually(lambda: log.read_text().count("\n") == 2, "both lines are written")
        self.assertEqual([json.loads(line)["key"] for line in log.read_text().splitlines()], [digest, digest])
        [top] = get(weir.admin, "/api/top").json()["top"]
        self.assertEqual([(one["digest"], one["cost"]) for one in top["admitted"]], [(digest, 2)])

    def test_flushed_script_is_loaded_again(self):
        weir = self.weir(shared(burst=100))
        self.assertEqual(self.statuses(weir.port, 3), [200] * 3)
        self.redis.command("SCRIPT", "FLUSH")
        self.assertEqual(self.statuses(weir.port, 3), [200] * 3)
        self.assertEqual(weir.metric("weir_decisions_total", outcome="store_failed"), 0)

    def test_frozen_redis_delays_a_request_by_at_most_the_timeout(self):
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

    def test_charge_confirmed_by_a_late_reply_is_refunded(self):
        weir = self.weir(shared(limit="10/day", on_store_failure='"closed"'), timeout="50ms")
        self.assertEqual(weir.get("/")["x-ratelimit-remaining"], "9")
        self.redis.process.send_signal(signal.SIGSTOP)
        try:
            self.assertEqual(self.statuses(weir.port, 3), [503] * 3)
        finally:
            self.redis.process.send_signal(signal.SIGCONT)
        eventually(lambda: self.redis.calls("evalsha") >= 7, "three late charges and their refunds have reached Redis")
        self.assertEqual(weir.get("/")["x-ratelimit-remaining"], "8")

    def test_no_request_is_lost_when_redis_is_killed_under_load(self):
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
            eventually(lambda: len(results) > seen + 300, "more requests are answered")  # noqa: B023
        eventually(lambda: self.redis.calls("evalsha") > 20, "weir uses Redis again")
        stop.set()
        for client in clients:
            client.join(10)
        self.assertEqual({status for status, _ in results}, {200})
        print(f"\n{len(results)} requests, slowest {max(took for _, took in results) * 1000:.0f} ms", flush=True)
        self.assertLess(max(took for _, took in results), 1.5)


class UnreachableRedis(TestCase):
    def test_start_waits_for_redis_no_longer_than_start_wait(self):
        weir = self.weir("open", start_wait="0s")
        self.assertEqual(weir.get("/").status, 200)

    def test_weir_is_not_ready_before_it_accepts_requests(self):
        redis = self.start(Redis())
        redis.kill()
        weir = self.weir("open", start_wait="1h", port=redis.port)
        readiness = get(weir.admin, "/readyz")
        self.assertEqual((readiness.status, readiness.json()["detail"]), (503, "waiting for redis before accepting requests"))
        redis.start()
        eventually(weir.is_ready, "weir accepts requests")
        self.assertEqual(weir.get("/").status, 200)
        self.assertEqual(weir.metric("weir_decisions_total", outcome="store_failed"), 0)

    def test_readiness_page_says_that_redis_is_unreachable(self):
        weir = self.weir("open", start_wait="0s")
        detail = "redis does not answer or refuses; its rules follow on_store_failure"
        eventually(lambda: get(weir.admin, "/readyz").json() == {"ready": True, "detail": detail, "cause": "Connection refused"},
                   "the page has the error of the connection attempt")
        self.assertEqual(get(weir.admin, "/readyz", host="stranger.example").json(), {"ready": True, "detail": detail})
        redis = self.start(Redis())
        redis.command("ACL", "SETUSER", "default", "-evalsha")
        weir = self.weir("open", start_wait="0s", port=redis.port)
        eventually(lambda: "NOPERM" in get(weir.admin, "/readyz").json().get("cause", ""), "the page has the error of Redis")
        redis.command("ACL", "SETUSER", "default", "+evalsha")
        eventually(lambda: get(weir.admin, "/readyz").json() == {"ready": True}, "the page reports no problem any more")

    def weir(self, policy, start_wait="50ms", port=None, **more):
        upstream = self.start(Upstream())
        url = f"redis://127.0.0.1:{port or closed_port()}"
        state = f'key_secret = "test"\nredis = {{ url = "{url}", timeout = "50ms", start_wait = "{start_wait}" }}\nreplicas = 2'
        return self.start(Weir(config(upstream.port, state=state, rules=shared(on_store_failure=f'"{policy}"', **more))))

    def test_requests_are_admitted_without_redis_if_on_store_failure_is_open(self):
        weir = self.weir("open")
        self.assertEqual(self.statuses(weir.port, 5), [200] * 5)
        self.assertGreaterEqual(weir.metric("weir_decisions_total", outcome="store_failed"), 5)

    def test_requests_get_503_without_redis_if_on_store_failure_is_closed(self):
        weir = self.weir("closed")
        self.assert_own_error(weir.get("/"), 503)

    def test_local_share_is_enforced_without_redis_if_on_store_failure_is_local(self):
        weir = self.weir("local", burst=10)
        self.assertEqual(self.statuses(weir.port, 8), [200] * 5 + [429] * 3)

    def test_local_share_of_a_window_is_enforced_without_redis_if_on_store_failure_is_local(self):
        for kind in ("fixed_window", "calendar", "sliding_window", "buckets", "sliding_log"):
            with self.subTest(kind):
                more = {**HUNDRED[kind], "algorithm": HUNDRED[kind].get("algorithm", f'"{kind}"')}
                more["limit"] = more["limit"].replace("100/", "10/")
                self.assertEqual(self.statuses(self.weir("local", **more).port, 8), [200] * 5 + [429] * 3)


if __name__ == "__main__":
    main()
