#!/usr/bin/env python3
"""Runs each file of config/examples in a weir. Only addresses are changed. An hour is shortened if a test cannot wait that long.
Each test checks the numbers that its file states."""

import datetime
import math
import re
import subprocess
import threading
import time
import unittest
import zoneinfo

import example_costs_test  # its tests run here as well
from country_file import country_file
from examples import BESIDE, DAY, FOLDER, HOUR, Example
from harness import WEIR, Client, TestCase, Upstream, Weir, answer, config, eventually, main, request_bytes, rule, together


class ExampleFiles(unittest.TestCase):
    def test_each_example_is_valid_without_warnings(self):
        for file in sorted(FOLDER.glob("*.toml")):
            if file.name in BESIDE:
                continue
            with self.subTest(file.name):
                run = subprocess.run([WEIR, "check", "--config", file], capture_output=True, text=True, timeout=60)
                self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
                self.assertTrue(file.read_text().startswith("# "), "the file begins with a comment")

    def test_each_example_has_a_test(self):
        tested = {example.name for example in Example.__subclasses__()}
        self.assertEqual(tested, {file.stem for file in FOLDER.glob("*.toml") if file.name not in BESIDE})

    def test_the_country_file_has_the_named_countries(self):
        self.assertEqual((FOLDER / "countries.mmdb").read_bytes(),
                         country_file({"127.0.0.2/32": "CH", "127.0.0.3/32": "JP", "127.0.0.4/32": "DE"}))


class SignUps(Example):
    name = "sign_ups"

    def test_each_address_is_limited_to_twenty_sign_ups_a_day(self):
        weir = self.weir()
        self.admits(weir, 20, method="POST", path="/signup")
        # the wait lasts until the first of the 20 sign-ups is a day old
        self.refuses(weir, "sign-ups", DAY, method="POST", path="/signup")
        for spelt in ("/signup/", "/SignUp"):  # some servers treat these paths alike
            self.refuses(weir, "sign-ups", DAY, method="POST", path=spelt)
        self.admits(weir, 1, method="POST", path="/signup", source="127.0.0.2")
        self.admits(weir, 1, path="/signup")  # the form itself is free


class FiveKeys(Example):
    name = "five_keys"

    def test_limit_of_each_of_the_five_keys_applies(self):
        weir = self.weir()
        self.admits(weir, 10, path="/reports/2026", X_API_Key="ann-1")
        self.refuses(weir, "reports", 60, path="/reports/2026", X_API_Key="ann-1")
        self.refuses(weir, "reports", 60, path="/Reports/2026", X_API_Key="ann-1")  # some servers treat these paths alike
        self.admits(weir, 50, X_API_Key="ann-1")  # 10 + 50 = 60 requests of the key; the refused request is not counted
        self.refused_by(weir, "api-key", X_API_Key="ann-1")
        self.admits(weir, 40, X_API_Key="ann-2")  # 60 + 40 = 100 requests of Ann
        self.refused_by(weir, "user", X_API_Key="ann-2")
        self.admits(weir, 50, X_API_Key="bob-1")  # 100 + 50 = 150 requests of Acme
        self.refused_by(weir, "organisation", X_API_Key="bob-1")
        self.admits(weir, 50, X_API_Key="eve-1")  # 150 + 50 = 200 requests of the address
        self.refuses(weir, "address", HOUR, X_API_Key="eve-1")
        self.admits(weir, 10, X_API_Key="eve-1", source="127.0.0.2")
        self.assertEqual(len(self.upstream.exchanges), 210)

    def test_unknown_api_key_is_rejected(self):
        self.assert_own_error(self.send(self.weir(), 1, X_API_Key="invented")[0], 401)

    def refused_by(self, weir, rule, **request):
        """Checks that this rule refuses the request. In a sliding window, Retry-After depends on the time within the hour."""
        refused = self.send(weir, 1, **request)[0]
        self.assertEqual((refused.status, refused.json()["rule"]), (429, rule))
        self.assertLessEqual(int(refused["retry-after"]), 2 * HOUR)

    HOUR_IN_TEST = 4.0  # seconds

    def test_sliding_window_counts_part_of_the_previous_hour(self):
        """After a quarter of the hour, 84 × 3/4 + 36 = 99 requests are counted, so only one more of 100 is admitted. The count
        falls with time. The test computes the expected counts for the times before and after each request."""
        for _ in range(5):  # a slow machine may miss the window; the next try begins with empty counters
            left = self.two_windows()
            if left is not None:
                break
        self.assertIsNotNone(left, "five times the machine was too slow for a window of four seconds")
        least, told, most = left
        self.assertTrue(least <= told <= most, f"{told} left, of {least} to {most}")

    def two_windows(self):
        """Sends 84 requests in one window and 37 in the next window, the last one after a quarter of that window. Returns
        (least, told, most): the least and the most remaining requests that are possible, and the number that weir reports.
        Returns None if the requests fell into other windows. The first 36 fit if 84 × overlap + 36 ≤ 100, which is true after
        0.238 of the window."""
        hour = self.HOUR_IN_TEST
        with Weir((FOLDER / "five_keys.toml").read_text(), {"keys.toml": (FOLDER / "keys.toml").read_bytes()},
                  {"WEIR_LISTEN": "127.0.0.1:0", "WEIR_UPSTREAM": self.upstream.address, "WEIR_USER_LIMIT": "100/4s"}) as weir:
            start = math.ceil((time.time() + 0.3) / hour) * hour
            self.at(start + 0.1)
            for key in ("ann-1", "ann-2", "ann-3"):  # each key may send 60 requests in a real hour
                self.admits(weir, 28, X_API_Key=key)
            if time.time() > start + hour - 0.1:
                return None
            self.at(start + 1.242 * hour)
            for key in ("ann-1", "ann-2", "ann-3"):
                self.admits(weir, 12, X_API_Key=key)
            self.at(start + 1.25 * hour)
            before = time.time()
            last = self.send(weir, 1, X_API_Key="ann-3")[0]
            after = time.time()
            if after > start + 1.5 * hour:
                return None
            self.assertEqual(last.status, 200)
            return (self.left(before - start - 0.01), int(last["x-ratelimit-remaining"]), self.left(after - start + 0.01))

    def left(self, since):
        """Returns how many of 100 requests remain. `since`: the time since the start of the previous window. The present window
        contains 37 requests."""
        overlap = 2 - since / self.HOUR_IN_TEST
        return max(0, math.floor(100 - 84 * overlap - 37))

    @staticmethod
    def at(instant):
        time.sleep(max(0.0, instant - time.time()))


class Tiers(Example):
    name = "tiers"

    def burst(self, weir, least, per_minute, **request):
        """Checks that `least` requests are admitted at once, in addition to the requests for which the bucket has regained
        units."""
        began = time.monotonic()
        answers = self.send(weir, least + 40, **request)
        most = least + math.floor((time.monotonic() - began) * per_minute / 60) + 1
        admitted = sum(response.status == 200 for response in answers)
        self.assertTrue(least <= admitted <= min(most, least + 40), f"{admitted} of {least} to {most}")
        return answers[-1]

    def test_each_tier_has_its_own_burst(self):
        weir = self.weir()
        self.assertEqual(self.burst(weir, 5, 6)["retry-after"], "10")
        self.assertEqual(self.burst(weir, 20, 12, X_API_Key="bob-1")["retry-after"], "5")  # 60 s ÷ 12
        self.assertEqual(self.burst(weir, 100, 120, X_API_Key="ann-1")["retry-after"], "1")
        self.burst(weir, 1000, 6000, X_API_Key="eve-1")

    def test_export_requests_have_a_separate_limit(self):
        weir = self.weir()
        self.admits(weir, 5, path="/exports", X_API_Key="ann-1")
        for spelt in ("/exports", "/exports/", "/Exports"):  # some servers treat these paths alike
            self.refuses(weir, "plan", HOUR // 5, path=spelt, X_API_Key="ann-1")
        self.admits(weir, 100, X_API_Key="ann-1")  # the refused requests used nothing of her plan
        self.admits(weir, 1, path="/exports", X_API_Key="bob-1")
        self.refuses(weir, "plan", DAY, path="/exports", X_API_Key="bob-1")
        self.admits(weir, 1, path="/exports")
        self.refuses(weir, "plan", DAY, path="/exports")
        exported = self.send(weir, 1, path="/exports", X_API_Key="eve-1")[0]
        self.assertEqual((exported.status, exported["x-ratelimit-limit"]), (200, "1000"))


class Night(Example):
    name = "night"
    order = {"method": "POST", "path": "/orders"}

    def weir_at_night_in(self, zone):
        """Starts a weir with a night that began three hours ago and ends in three hours, in the time of this zone. In other
        zones it may be day."""
        now = datetime.datetime.now(zoneinfo.ZoneInfo(zone))
        begin, end = (now + datetime.timedelta(hours=hours) for hours in (-3, 3))
        return self.weir(WEIR_NIGHT=f"{begin:%H:%M}-{end:%H:%M}")

    def test_night_limit_applies_only_to_switzerland_when_it_is_night_in_zurich(self):
        weir = self.weir_at_night_in("Europe/Zurich")
        self.admits(weir, 3, source="127.0.0.2", **self.order)
        self.refuses(weir, "night-in-switzerland", HOUR, source="127.0.0.2", **self.order)
        self.refuses(weir, "night-in-switzerland", HOUR, source="127.0.0.2", method="POST", path="/Orders/")
        self.admits(weir, 60, source="127.0.0.3", **self.order)
        self.admits(weir, 60, source="127.0.0.2", path="/orders")  # looking at orders is free

    def test_night_limit_applies_only_to_japan_when_it_is_night_in_tokyo(self):
        weir = self.weir_at_night_in("Asia/Tokyo")
        self.admits(weir, 2, source="127.0.0.3", **self.order)
        self.refuses(weir, "night-in-japan", HOUR, source="127.0.0.3", **self.order)
        self.admits(weir, 60, source="127.0.0.2", **self.order)

    def test_each_other_country_has_one_limit_and_each_address_without_a_country_has_its_own(self):
        weir = self.weir_at_night_in("UTC")
        self.admits(weir, 50, source="127.0.0.4", **self.order)
        self.refuses(weir, "night-elsewhere", HOUR, source="127.0.0.4", **self.order)
        for unknown in ("127.0.0.5", "127.0.0.6"):
            self.admits(weir, 50, source=unknown, **self.order)
            self.refuses(weir, "night-elsewhere", HOUR, source=unknown, **self.order)


class FragileUpstream(Example):
    name = "fragile_upstream"

    def test_queued_requests_reach_the_upstream_100_ms_apart(self):
        weir = self.weir()
        began = time.monotonic()
        answers = together(25, lambda number: self.send(weir, 1, source=f"127.0.0.{2 + number}")[0])
        took = time.monotonic() - began
        admitted = [response for response in answers if response.status == 200]
        arrived = [exchange.arrived for exchange in self.upstream.exchanges]
        # One request is sent at once, and 20 requests wait. Each waiting request that is sent before the last request arrives
        # makes room for one more.
        self.assertTrue(21 <= len(admitted) <= 21 + took * 10, len(admitted))
        self.assertEqual(len(arrived), len(admitted))
        for k, at in enumerate(sorted(arrived)):
            self.assertGreaterEqual(at - began, 0.1 * k, f"the {k}-th leaves {k} × 100 ms after the first")
        for refused in answers:
            if refused.status != 200:
                self.assertEqual((refused.status, refused["retry-after"], refused.json()["rule"]), (429, "1", "stream"))

    def test_one_client_has_at_most_five_places_in_the_queue(self):
        weir = self.weir()
        statuses = together(25, lambda number: self.send(weir, 1, X_API_Key=f"invented-{number}")[0].status)
        took = time.monotonic() - self.began
        self.assertTrue(6 <= statuses.count(200) <= 6 + took * 10, statuses)
        self.assertEqual(self.send(weir, 1, source="127.0.0.2")[0].status, 200, "other clients find places in the queue")


class DatabaseCeiling(Example):
    name = "database_ceiling"

    def reply(self, exchange):
        exchange.read_body()
        if exchange.target == "/slow":
            self.go.wait(60)
        exchange.send(answer())

    def setUp(self):
        self.go = threading.Event()
        self.addCleanup(self.go.set)
        super().setUp()

    def test_at_most_eight_requests_are_concurrent_at_the_upstream(self):
        weir = self.weir()
        clients = [self.start(Client(weir.port, source=f"127.0.0.{2 + number}")) for number in range(8)]
        for client in clients:
            client.send(request_bytes("GET", "/slow"))
        eventually(lambda: len(self.upstream.exchanges) == 8, "eight requests are at the upstream")
        refused = self.refuses(weir, "connections", 1, status=503)
        self.assertEqual(refused["ratelimit-policy"], '"connections";q=8;qu="concurrent-requests"')
        self.admits(weir, 60, path="/assets/logo.png")
        self.go.set()
        self.assertEqual([client.read().status for client in clients], [200] * 8)
        eventually(lambda: self.send(weir, 1)[0].status == 200, "the permits are released")

    def test_one_address_cannot_use_up_all_concurrency_permits(self):
        weir = self.weir()
        greedy = [self.start(Client(weir.port)) for _ in range(8)]
        for client in greedy:  # an endless upload holds a connection as well
            client.send(b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\na")
        eventually(lambda: len(self.upstream.exchanges) == 4, "four requests are at the upstream")
        self.refuses(weir, "of-one-address", 1)
        self.admits(weir, 20, source="127.0.0.2")

    def test_fifty_requests_at_once_and_then_a_hundred_a_second_are_admitted(self):
        weir = self.weir()
        began = time.monotonic()
        answers = self.send(weir, 400)
        most = 50 + 100 * (time.monotonic() - began)
        admitted = sum(response.status == 200 for response in answers)
        self.assertTrue(50 <= admitted <= most + 1, f"{admitted} of 50 to {most}")
        self.assertEqual({response.status for response in answers if response.status != 200}, {503})


class RiskyWords(Example):
    name = "risky_words"
    message = {"method": "POST", "path": "/messages"}

    def test_each_client_is_limited_to_one_message_with_risky_words_a_day(self):
        weir = self.weir()
        self.admits(weir, 1, body=b"Please buy a Gift Card for me", **self.message)
        for spelt in (b"GIFT CARD", b"a wire transfer", b'{"text": "gift\\u0020card"}', b"text=gift%20card"):
            self.refuses(weir, "risky-words", DAY, body=spelt, **self.message)
        for path in ("/messages/", "/Messages"):  # some servers treat these paths alike
            self.refuses(weir, "risky-words", DAY, body=b"gift card", method="POST", path=path)
        self.admits(weir, 59, body=b"Good morning", **self.message)  # 60 - 1: refused requests are not counted
        self.refuses(weir, "messages", HOUR, body=b"Good night", **self.message)
        self.admits(weir, 1, body=b"a gift card", source="127.0.0.2", **self.message)

    def test_message_whose_body_cannot_be_read_is_rejected(self):
        weir = self.weir()
        self.assert_own_error(self.send(weir, 1, body=b"a" * 17_000, **self.message)[0], 413)
        self.assert_own_error(self.send(weir, 1, body=b"x", Content_Encoding="gzip", **self.message)[0], 415)
        self.assertEqual(self.upstream.exchanges, [])


class Reference(TestCase):
    """The header fields that docs/limiters.md shows for a bucket of 10 at 6/min with 2 units left."""

    def test_header_fields_shown_in_limiters_md_are_sent(self):
        text = (FOLDER / "../../docs/limiters.md").read_text()
        shown = dict(re.findall(r"^\| `(\S+)` \| `([^`]+)` \|", text[text.index("## What clients are told"):], re.MULTILINE))
        upstream = self.start(Upstream())
        weir = self.start(Weir(config(upstream.port, rules=rule("per-client", "6/min", burst=10, key='["ip"]', cost=8))))
        told = weir.get()
        self.assertAlmostEqual(int(told["x-ratelimit-reset"]), time.time() + 80, delta=10)
        for field in ("X-RateLimit-Limit", "X-RateLimit-Remaining", "RateLimit-Policy", "RateLimit"):
            self.assertEqual(told[field], shown[field])


if __name__ == "__main__":
    main()
