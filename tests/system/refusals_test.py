#!/usr/bin/env python3
"""Settings of refusals: a random addition to Retry-After, and the rule's own header fields and content type."""

import re
import time

from harness import PATIENCE, Client, main, request_bytes, rule
from http2_client import Http2TestCase
from reload_test import ReloadTestCase

# A zone whose day ends in four hours or more, so that the waits of refusals are long.
ZONE = "UTC" if time.gmtime().tm_hour < 20 else "Asia/Tokyo"
DAILY = {"key": "[]", "algorithm": '"fixed_window"', "align": '"day"', "timezone": f'"{ZONE}"'}


class Jitter(Http2TestCase):
    def refusals(self, weir, count=1000, at_once=100):
        """Sends requests that weir refuses, many at once. Returns the refusals, each with the time at which it was read."""
        refusals = []
        with Client(weir.port) as client:
            client.get("/")
            for _ in range(count // at_once):
                client.send(request_bytes("GET", "/") * at_once)
                refusals += [(client.read(), time.time()) for _ in range(at_once)]
        return refusals

    def test_jitter_spreads_the_retry_times_of_1000_refused_clients_and_makes_none_too_early(self):
        weir = self.plain_weir(rule(limit="1/day", **DAILY), server='retry_after_jitter = "10%"')
        before = time.time()
        refusals = self.refusals(weir)
        end = int(refusals[0][0]["x-ratelimit-reset"])
        bins = [0] * 10
        for refused, read in refusals:
            wait = int(refused["retry-after"])
            self.assertEqual((refused.status, int(refused["x-ratelimit-reset"])), (429, end))
            self.assertGreaterEqual(read + wait, end, "early")
            longest = end - before + 1
            self.assertLessEqual(wait, 1.1 * longest)
            self.assertEqual(refused.json()["retry_after_seconds"], wait)
            self.assertAlmostEqual(int(re.search(r";t=(\d+)", refused["ratelimit"])[1]), end - read, delta=PATIENCE)
            bins[min(9, int((wait - (end - read)) / (end - read) * 100))] += 1
        # Each tenth of the range gets about 100 of 1,000 clients. By chance, a tenth gets fewer than 40 in one of 10^10 runs.
        self.assertGreater(min(bins), 40, bins)

    def test_retry_after_is_the_end_of_the_window_for_all_clients_without_jitter(self):
        weir = self.plain_weir(rule(limit="1/day", **DAILY))
        for refused, read in self.refusals(weir, 100):
            self.assertLessEqual(int(refused["retry-after"]), int(refused["x-ratelimit-reset"]) - read + PATIENCE)

    def test_jitter_of_a_rule_replaces_the_jitter_of_the_server_section(self):
        weir = self.plain_weir(rule(limit="1/day", retry_after_jitter='"0%"', **DAILY), server='retry_after_jitter = "100%"')
        for refused, read in self.refusals(weir, 100):
            self.assertLessEqual(int(refused["retry-after"]), int(refused["x-ratelimit-reset"]) - read + PATIENCE)

    def test_grpc_pushback_equals_retry_after_in_milliseconds(self):
        weir = self.weir(rules=rule(limit="1/day", retry_after_jitter='"100%"', **DAILY))
        client = self.client(weir)
        client.get("/")
        told = set()
        for _ in range(5):
            refused = client.get("/", content_type="application/grpc", te="trailers")
            self.assertEqual(refused["grpc-retry-pushback-ms"], refused["retry-after"] + "000")
            told.add(refused["retry-after"])
        self.assertGreater(len(told), 1, "by chance only in one of 10^16 runs")


class OwnWords(Http2TestCase):
    RULE = {"key": '["ip"]', "status": 402, "body": "'{\"code\":\"quota\"}'", "content_type": '"application/vnd.quota+json"',
            "headers": '{ X-Reason = "free plan", Link = "</plans>; rel=help" }'}

    def expect_own_words(self, refused):
        self.assertEqual((refused.status, refused["content-type"]), (402, "application/vnd.quota+json"))
        self.assertEqual((refused["x-reason"], refused["link"]), ("free plan", "</plans>; rel=help"))
        self.assertEqual(refused["cache-control"], "no-store")
        self.assertIn("retry-after", refused)

    def test_refusal_has_the_headers_and_the_content_type_of_the_rule(self):
        weir = self.weir(rules=rule(limit="1/day", **self.RULE))
        admitted = weir.get("/")
        self.assertNotIn("x-reason", admitted)
        refused = weir.get("/")
        self.expect_own_words(refused)
        self.assertEqual(refused.json(), {"code": "quota"})
        for secure in (False, True):
            self.expect_own_words(self.client(weir, secure).get("/"))

    def test_rule_can_add_headers_to_a_refusal_that_keeps_its_usual_body(self):
        weir = self.plain_weir(rule(limit="1/day", key='["ip"]', headers='{ X-Reason = "quota" }'))
        weir.get("/")
        refused = weir.get("/")
        self.assertEqual((refused["x-reason"], refused["content-type"]), ("quota", "application/json"))
        self.assertEqual(refused.json()["rule"], "per-ip")


class ReloadedWords(ReloadTestCase):
    def test_reload_changes_headers_and_jitter_of_refusals(self):
        def words(reason, jitter):
            return rule(limit="1/day", headers=f'{{ X-Reason = "{reason}" }}', retry_after_jitter=f'"{jitter}"', **DAILY)

        weir = self.weir(rules=words("old", "0%"))
        weir.get("/")
        self.assertEqual(weir.get("/")["x-reason"], "old")
        self.change(weir, rules=words("new", "100%"))
        weir.wait_for(r"now: .*refusals with X-Reason: new, Retry-After up to 100% longer")
        refusals = [weir.get("/") for _ in range(5)]
        self.assertEqual({refused["x-reason"] for refused in refusals}, {"new"})
        self.assertGreater(len({refused["retry-after"] for refused in refusals}), 1, "by chance only in one of 10^16 runs")


if __name__ == "__main__":
    main()
