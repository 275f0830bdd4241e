#!/usr/bin/env python3
"""Several weir instances whose clocks differ by seconds. They share one limit exactly, because they use the time of Redis."""

import email.utils
import pathlib
import threading
import time
import unittest

from harness import SANITIZED, Redis, TestCase, Upstream, Weir, config, eventually, get, main, rule, together
from shared_concurrency_test import Gauge, at_once

LIBRARY = next(iter(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
ZONE = "UTC" if 3 <= time.gmtime().tm_hour < 21 else "Asia/Tokyo"  # a zone whose midnight is hours away
CLOCKS = ("+0s", "+1s", "-1s")
HUNDRED = {
    "token_bucket": {"limit": "1/day", "burst": 100},
    "fixed_window": {"limit": "100/3000day", "algorithm": '"fixed_window"'},
    "leased": {"limit": "100/3000day", "algorithm": '"fixed_window"', "lease": '"20%"'},
    "sliding_window": {"limit": "100/3000day", "algorithm": '"sliding_window"'},
    "sliding_log": {"limit": "100/day", "algorithm": '"sliding_log"'},
    "gcra": {"limit": "1/day", "burst": 99, "algorithm": '"gcra"'},
    "stepwise": {"limit": "1/day", "burst": 100, "refill": '"stepwise"'},
    "buckets": {"limit": "100/3000day", "algorithm": '"sliding_window"', "buckets": 7},
    "calendar": {"limit": "100/month", "algorithm": '"fixed_window"', "align": '"month"', "timezone": f'"{ZONE}"'},
}
ROUTES = '''
[[route]]
match = { path = "/held" }
upstream = "api"
[[route]]
respond = { status = 200, body = "ok" }
'''


@unittest.skipIf(SANITIZED, "a sanitizer's library has to be the first")
@unittest.skipIf(LIBRARY is None, "libfaketime is not installed")
class InstancesWithDifferentClocks(TestCase):
    def setUp(self):
        redis = self.start(Redis())
        self.go = threading.Event()
        self.upstream = self.start(Upstream(Gauge(self.go)))
        self.addCleanup(self.go.set)
        more = {"paced": {"limit": "50/s", "algorithm": '"leaky_bucket"', "queue": 200}}
        rules = "".join(rule(name, store='"redis"', key="[]", match=f'{{ path = "/{name}" }}', **more)
                        for name, more in (HUNDRED | more).items())
        rules += at_once(name="held", match='{ path = "/held" }')
        state = f'key_secret = "test"\nredis = {{ url = "{redis.url}", timeout = "2s", lease_return = "1min" }}'
        text = config(self.upstream.port, rules=rules, state=state, routes=ROUTES)
        self.weirs = [self.start(Weir(text, environment={"LD_PRELOAD": str(LIBRARY), "FAKETIME": clock,
                                                         "FAKETIME_DONT_FAKE_MONOTONIC": "1"})) for clock in CLOCKS]
        for weir in self.weirs:
            eventually(weir.is_ready, "weir is connected to Redis")

    def test_responses_of_all_instances_state_the_same_reset_time(self):
        """Every response of every instance contains the same reset time, by the clock of Redis."""
        for name in HUNDRED:
            with self.subTest(name):
                answers = [get(weir.port, f"/{name}") for _ in range(40) for weir in self.weirs]
                refused = [answer["x-ratelimit-reset"] for answer in answers if answer.status == 429]
                self.assertEqual(len(refused), 20)
                self.assertEqual(len(set(refused)), 1, "all refusals state the same reset time")
                if name in ("fixed_window", "calendar"):
                    self.assertEqual({answer["x-ratelimit-reset"] for answer in answers}, {refused[0]})

    def test_all_instances_together_admit_exactly_the_limit(self):
        ahead, behind = (email.utils.parsedate_to_datetime(get(weir.port, "/")["date"]) for weir in self.weirs[1:])
        self.assertGreaterEqual((ahead - behind).total_seconds(), 1, "the clocks differ")
        for name in HUNDRED:
            with self.subTest(name):
                statuses = sum(together(6, lambda index: self.statuses(self.weirs[index % 3].port, 60, f"/{name}")), [])  # noqa: B023
                for weir in self.weirs:  # these requests spend units that an instance may still have prefetched
                    statuses += self.statuses(weir.port, 40, f"/{name}")
                self.assertEqual((statuses.count(200), statuses.count(429)), (100, 380))

    def test_all_instances_together_keep_the_rate_of_a_queue(self):
        began = time.monotonic()
        statuses = sum(together(30, lambda index: self.statuses(self.weirs[index % 3].port, 3, "/paced")), [])
        self.assertEqual(statuses, [200] * 90)
        self.assertGreaterEqual(time.monotonic() - began, 89 / 50)

    def test_all_instances_together_keep_a_concurrency_limit_of_ten(self):
        refused = threading.Semaphore(0)

        def ask(index):
            status = get(self.weirs[index % 3].port, "/held").status
            if status == 429:
                refused.release()
            return status

        answers = []
        asking = threading.Thread(target=lambda: answers.extend(together(30, ask)))
        asking.start()
        for _ in range(20):
            self.assertTrue(refused.acquire(timeout=30))
        eventually(lambda: self.upstream.reply.now == 10, "ten requests are at the upstream")
        self.go.set()
        asking.join()
        self.assertEqual((answers.count(200), answers.count(429), self.upstream.reply.most), (10, 20, 10))


if __name__ == "__main__":
    main()
