#!/usr/bin/env python3
"""Weirs whose clocks are seconds apart are one limiter all the same: time is Redis's."""

import email.utils
import pathlib
import unittest

from harness import SANITIZED, Redis, TestCase, Weir, closed_port, config, eventually, get, main, rule, together

LIBRARY = next(iter(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
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
}


@unittest.skipIf(SANITIZED, "a sanitizer's library has to be the first")
@unittest.skipIf(LIBRARY is None, "libfaketime is not installed")
class SecondsApart(TestCase):
    def setUp(self):
        redis = self.start(Redis())
        rules = "".join(rule(name, store='"redis"', key="[]", match=f'{{ path = "/{name}" }}', **more) for name, more in HUNDRED.items())
        state = f'key_secret = "test"\nredis = {{ url = "{redis.url}", timeout = "2s", lease_return = "1min" }}'
        text = config(closed_port(), rules=rules, state=state, routes='[[route]]\nrespond = { status = 200, body = "ok" }\n')
        self.weirs = [self.start(Weir(text, environment={"LD_PRELOAD": str(LIBRARY), "FAKETIME": clock,
                                                         "FAKETIME_DONT_FAKE_MONOTONIC": "1"})) for clock in CLOCKS]
        for weir in self.weirs:
            eventually(weir.is_ready, "it is connected to Redis")

    def test_they_admit_exactly_the_limit_together(self):
        ahead, behind = (email.utils.parsedate_to_datetime(get(weir.port, "/")["date"]) for weir in self.weirs[1:])
        self.assertGreaterEqual((ahead - behind).total_seconds(), 1, "the clocks do differ")
        for name in HUNDRED:
            with self.subTest(name):
                statuses = sum(together(6, lambda index: self.statuses(self.weirs[index % 3].port, 60, f"/{name}")), [])  # noqa: B023
                for weir in self.weirs:  # what one of them may still hold
                    statuses += self.statuses(weir.port, 40, f"/{name}")
                self.assertEqual((statuses.count(200), statuses.count(429)), (100, 380))


if __name__ == "__main__":
    main()
