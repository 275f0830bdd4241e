#!/usr/bin/env python3
"""Each file of config/examples, driven through a running weir. The file itself is run: what differs is in its environment
(addresses, and where a test cannot wait, a shorter hour). Each test says the arithmetic that the file promises."""

import datetime
import math
import os
import pathlib
import re
import subprocess
import threading
import time
import unittest
import zoneinfo

from country_file import country_file
from harness import WEIR, Client, TestCase, Upstream, Weir, answer, config, eventually, main, request_bytes, rule, together

FOLDER = pathlib.Path(os.environ.get("WEIR_SOURCE", ".")) / "config/examples"
BESIDE = ("keys.toml", "countries.mmdb")  # what examples name; no configurations themselves
HOUR, DAY = 3600, 86400


class Example(TestCase):
    """A test of the example of this name. `reply`: what its upstream does."""

    name = None
    reply = staticmethod(lambda exchange: (exchange.read_body(), exchange.send(answer())))

    def setUp(self):
        self.upstream = self.start(Upstream(self.reply))
        self.began = time.monotonic()

    def weir(self, **environment):
        text = (FOLDER / f"{self.name}.toml").read_text()
        where = {"WEIR_LISTEN": "127.0.0.1:0", "WEIR_UPSTREAM": self.upstream.address}
        return self.start(Weir(text, {file: (FOLDER / file).read_bytes() for file in BESIDE}, {**where, **environment}))

    @staticmethod
    def send(weir, count, method="GET", path="/", source="127.0.0.1", body=b"", **headers):
        """So many requests of one client, one behind the other without waiting for answers."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        with Client(weir.port, source=source) as client:
            client.send(request_bytes(method, path, fields, body) * count)
            return [client.read(method) for _ in range(count)]

    def admits(self, weir, count, **request):
        """All of them."""
        self.assertEqual([response.status for response in self.send(weir, count, **request)], [200] * count)

    def refuses(self, weir, rule, within, status=429, **request):
        """One request, by this rule, whose Retry-After is `within` seconds less the time since the test began."""
        refused = self.send(weir, 1, **request)[0]
        self.assertEqual(refused.status, status, refused.raw + refused.body)
        self.assertEqual(refused.json().get("rule"), rule)
        least = within - math.ceil(time.monotonic() - self.began)
        self.assertTrue(max(1, least) <= int(refused["retry-after"]) <= within, refused.raw)
        return refused


class Files(unittest.TestCase):
    def test_each_is_understood_as_it_stands_and_without_a_doubt(self):
        for file in sorted(FOLDER.glob("*.toml")):
            if file.name in BESIDE:
                continue
            with self.subTest(file.name):
                run = subprocess.run([WEIR, "check", "--config", file], capture_output=True, text=True, timeout=60)
                self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
                self.assertTrue(file.read_text().startswith("# "), "opens with what it does")

    def test_each_has_a_test(self):
        tested = {example.name for example in Example.__subclasses__()}
        self.assertEqual(tested, {file.stem for file in FOLDER.glob("*.toml") if file.name not in BESIDE})

    def test_the_countries_are_those_that_their_example_names(self):
        self.assertEqual((FOLDER / "countries.mmdb").read_bytes(),
                         country_file({"127.0.0.2/32": "CH", "127.0.0.3/32": "JP", "127.0.0.4/32": "DE"}))


class SignUps(Example):
    name = "sign_ups"

    def test_twenty_a_day_for_each_address(self):
        weir = self.weir()
        self.admits(weir, 20, method="POST", path="/signup")
        self.refuses(weir, "sign-ups", DAY, method="POST", path="/signup")  # until the oldest of the 20 is a day old
        for spelt in ("/signup/", "/SignUp"):  # to some servers it is the same
            self.refuses(weir, "sign-ups", DAY, method="POST", path=spelt)
        self.admits(weir, 1, method="POST", path="/signup", source="127.0.0.2")
        self.admits(weir, 1, path="/signup")  # the form itself


class FiveKeys(Example):
    name = "five_keys"

    def test_the_arithmetic_that_it_opens_with(self):
        weir = self.weir()
        self.admits(weir, 10, path="/reports/2026", X_API_Key="ann-1")
        self.refuses(weir, "reports", 60, path="/reports/2026", X_API_Key="ann-1")
        self.refuses(weir, "reports", 60, path="/Reports/2026", X_API_Key="ann-1")  # to some servers it is the same
        self.admits(weir, 50, X_API_Key="ann-1")  # 10 + 50: the key's 60, and the refused report is not among them
        self.refused_by(weir, "api-key", X_API_Key="ann-1")
        self.admits(weir, 40, X_API_Key="ann-2")  # 60 + 40: Ann's 100
        self.refused_by(weir, "user", X_API_Key="ann-2")
        self.admits(weir, 50, X_API_Key="bob-1")  # 100 + 50: Acme's 150
        self.refused_by(weir, "organisation", X_API_Key="bob-1")
        self.admits(weir, 50, X_API_Key="eve-1")  # 150 + 50: the address's 200
        self.refuses(weir, "address", HOUR, X_API_Key="eve-1")
        self.admits(weir, 10, X_API_Key="eve-1", source="127.0.0.2")
        self.assertEqual(len(self.upstream.exchanges), 210)

    def test_a_key_that_nobody_holds(self):
        self.assert_own_error(self.send(self.weir(), 1, X_API_Key="invented")[0], 401)

    def refused_by(self, weir, rule, **request):
        """A sliding window: when it admits again depends on where in its hour the test runs."""
        refused = self.send(weir, 1, **request)[0]
        self.assertEqual((refused.status, refused.json()["rule"]), (429, rule))
        self.assertLessEqual(int(refused["retry-after"]), 2 * HOUR)

    HOUR_IN_TEST = 4.0  # seconds

    def test_84_in_the_last_hour_and_36_in_this_one(self):
        """With a quarter gone 84 × 3/4 + 36 = 99 are counted: one more is admitted of 100. Later in the hour fewer are, and
        what is expected is what the arithmetic says of the instants before and after each request."""
        for _ in range(5):  # a machine that stalls may miss the window: then with fresh counts
            left = self.two_windows()
            if left is not None:
                break
        self.assertIsNotNone(left, "five times the machine was too slow for a window of four seconds")
        least, told, most = left
        self.assertTrue(least <= told <= most, f"{told} left, of {least} to {most}")

    def two_windows(self):
        """(least, told, most) left after 84 in one window and 37 in the next, the last one after a quarter of it; None
        where they fell elsewhere. The 36 fit since 84 × overlap + 36 ≤ 100, that is from 0.238 of the window on."""
        hour = self.HOUR_IN_TEST
        with Weir((FOLDER / "five_keys.toml").read_text(), {"keys.toml": (FOLDER / "keys.toml").read_bytes()},
                  {"WEIR_LISTEN": "127.0.0.1:0", "WEIR_UPSTREAM": self.upstream.address, "WEIR_USER_LIMIT": "100/4s"}) as weir:
            start = math.ceil((time.time() + 0.3) / hour) * hour
            self.at(start + 0.1)
            for key in ("ann-1", "ann-2", "ann-3"):  # one key has 60 in a real hour
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
        """What is left of 100 so long after the start of the last window but one, after the 37th of this one."""
        overlap = 2 - since / self.HOUR_IN_TEST
        return max(0, math.floor(100 - 84 * overlap - 37))

    @staticmethod
    def at(instant):
        time.sleep(max(0.0, instant - time.time()))


class Tiers(Example):
    name = "tiers"

    def burst(self, weir, least, per_minute, **request):
        """`least` at once, and what came back meanwhile."""
        began = time.monotonic()
        answers = self.send(weir, least + 40, **request)
        most = least + math.floor((time.monotonic() - began) * per_minute / 60) + 1
        admitted = sum(response.status == 200 for response in answers)
        self.assertTrue(least <= admitted <= min(most, least + 40), f"{admitted} of {least} to {most}")
        return answers[-1]

    def test_each_plan_has_its_burst(self):
        weir = self.weir()
        self.assertEqual(self.burst(weir, 5, 6)["retry-after"], "10")
        self.assertEqual(self.burst(weir, 20, 12, X_API_Key="bob-1")["retry-after"], "5")  # 60 s ÷ 12
        self.assertEqual(self.burst(weir, 100, 120, X_API_Key="ann-1")["retry-after"], "1")
        self.burst(weir, 1000, 6000, X_API_Key="eve-1")

    def test_exports_count_apart(self):
        weir = self.weir()
        self.admits(weir, 5, path="/exports", X_API_Key="ann-1")
        for spelt in ("/exports", "/exports/", "/Exports"):  # to some servers it is the same
            self.refuses(weir, "plan", HOUR // 5, path=spelt, X_API_Key="ann-1")
        self.admits(weir, 100, X_API_Key="ann-1")  # nothing of her plan was taken
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
        """Its night began three hours ago there and ends in three: elsewhere it may be day."""
        now = datetime.datetime.now(zoneinfo.ZoneInfo(zone))
        begin, end = (now + datetime.timedelta(hours=hours) for hours in (-3, 3))
        return self.weir(WEIR_NIGHT=f"{begin:%H:%M}-{end:%H:%M}")

    def test_at_night_in_zurich_it_is_day_in_tokyo(self):
        weir = self.weir_at_night_in("Europe/Zurich")
        self.admits(weir, 3, source="127.0.0.2", **self.order)
        self.refuses(weir, "night-in-switzerland", HOUR, source="127.0.0.2", **self.order)
        self.refuses(weir, "night-in-switzerland", HOUR, source="127.0.0.2", method="POST", path="/Orders/")
        self.admits(weir, 60, source="127.0.0.3", **self.order)
        self.admits(weir, 60, source="127.0.0.2", path="/orders")  # to look at orders is free

    def test_at_night_in_tokyo_it_is_day_in_zurich(self):
        weir = self.weir_at_night_in("Asia/Tokyo")
        self.admits(weir, 2, source="127.0.0.3", **self.order)
        self.refuses(weir, "night-in-japan", HOUR, source="127.0.0.3", **self.order)
        self.admits(weir, 60, source="127.0.0.2", **self.order)

    def test_elsewhere_a_country_has_one_count_and_nowhere_an_address(self):
        weir = self.weir_at_night_in("UTC")
        self.admits(weir, 50, source="127.0.0.4", **self.order)
        self.refuses(weir, "night-elsewhere", HOUR, source="127.0.0.4", **self.order)
        for unknown in ("127.0.0.5", "127.0.0.6"):
            self.admits(weir, 50, source=unknown, **self.order)
            self.refuses(weir, "night-elsewhere", HOUR, source=unknown, **self.order)


class FragileUpstream(Example):
    name = "fragile_upstream"

    def test_twenty_five_at_once_leave_a_tenth_of_a_second_apart(self):
        weir = self.weir()
        began = time.monotonic()
        answers = together(25, lambda number: self.send(weir, 1, source=f"127.0.0.{2 + number}")[0])
        took = time.monotonic() - began
        admitted = [response for response in answers if response.status == 200]
        arrived = [exchange.arrived for exchange in self.upstream.exchanges]
        # 1 leaves at once and 20 wait; more only where the first of those had left before the last came.
        self.assertTrue(21 <= len(admitted) <= 21 + took * 10, len(admitted))
        self.assertEqual(len(arrived), len(admitted))
        for k, at in enumerate(sorted(arrived)):
            self.assertGreaterEqual(at - began, 0.1 * k, f"the {k}-th leaves {k} × 100 ms after the first")
        for refused in answers:
            if refused.status != 200:
                self.assertEqual((refused.status, refused["retry-after"], refused.json()["rule"]), (429, "1", "stream"))

    def test_one_client_has_five_places(self):
        weir = self.weir()
        statuses = together(25, lambda number: self.send(weir, 1, X_API_Key=f"invented-{number}")[0].status)
        took = time.monotonic() - self.began
        self.assertTrue(6 <= statuses.count(200) <= 6 + took * 10, statuses)
        self.assertEqual(self.send(weir, 1, source="127.0.0.2")[0].status, 200, "there is room for others")


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

    def test_eight_are_under_way_whoever_asks(self):
        weir = self.weir()
        clients = [self.start(Client(weir.port, source=f"127.0.0.{2 + number}")) for number in range(8)]
        for client in clients:
            client.send(request_bytes("GET", "/slow"))
        eventually(lambda: len(self.upstream.exchanges) == 8, "eight are at the upstream")
        refused = self.refuses(weir, "connections", 1, status=503)
        self.assertEqual(refused["ratelimit-policy"], '"connections";q=8;qu="concurrent-requests"')
        self.admits(weir, 60, path="/assets/logo.png")
        self.go.set()
        self.assertEqual([client.read().status for client in clients], [200] * 8)
        eventually(lambda: self.send(weir, 1)[0].status == 200, "their places are free")

    def test_one_address_cannot_close_it_for_everybody(self):
        weir = self.weir()
        greedy = [self.start(Client(weir.port)) for _ in range(8)]
        for client in greedy:  # an upload that never ends takes a connection as well
            client.send(b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\na")
        eventually(lambda: len(self.upstream.exchanges) == 4, "four are at the upstream")
        self.refuses(weir, "of-one-address", 1)
        self.admits(weir, 20, source="127.0.0.2")

    def test_fifty_at_once_and_a_hundred_a_second(self):
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

    def test_one_message_a_day_with_them(self):
        weir = self.weir()
        self.admits(weir, 1, body=b"Please buy a Gift Card for me", **self.message)
        for spelt in (b"GIFT CARD", b"a wire transfer", b'{"text": "gift\\u0020card"}', b"text=gift%20card"):
            self.refuses(weir, "risky-words", DAY, body=spelt, **self.message)
        for path in ("/messages/", "/Messages"):  # to some servers it is the same
            self.refuses(weir, "risky-words", DAY, body=b"gift card", method="POST", path=path)
        self.admits(weir, 59, body=b"Good morning", **self.message)  # the first was one of the 60, the refused are not
        self.refuses(weir, "messages", HOUR, body=b"Good night", **self.message)
        self.admits(weir, 1, body=b"a gift card", source="127.0.0.2", **self.message)

    def test_what_cannot_be_read_might_hold_anything(self):
        weir = self.weir()
        self.assert_own_error(self.send(weir, 1, body=b"a" * 17_000, **self.message)[0], 413)
        self.assert_own_error(self.send(weir, 1, body=b"x", Content_Encoding="gzip", **self.message)[0], 415)
        self.assertEqual(self.upstream.exchanges, [])


class Spending(Example):
    name = "spending"

    def pay(self, weir, dollars, key="ann-1"):
        return self.send(weir, 1, method="POST", path="/payments", body=b'{"amount": %s}' % dollars, X_API_Key=key)[0]

    def test_two_hundred_and_fifty_more_every_six_hours(self):
        weir = self.weir()
        paid = self.pay(weir, b"19.99")  # 20000 - 1999 cents are left
        self.assertEqual((paid.status, paid["x-ratelimit-limit"], paid["x-ratelimit-remaining"]), (200, "20000", "18001"))
        self.assertEqual(self.pay(weir, b"180.01", key="ann-2").status, 200)  # Ann has one purse for all her keys
        payment = {"method": "POST", "path": "/payments", "X_API_Key": "ann-1"}
        self.refuses(weir, "purse", 6 * HOUR, body=b'{"amount": 0.01}', **payment)  # the next $50
        self.refuses(weir, "purse", 6 * HOUR, body=b'{"amount": 50}', **payment)
        self.refuses(weir, "purse", 12 * HOUR, body=b'{"amount": 50.01}', **payment)
        self.refuses(weir, "purse", 24 * HOUR, body=b'{"amount": 200}', **payment)  # four times $50
        self.refuses(weir, "purse", 24 * HOUR, body=b'{"amount": 200}', **{**payment, "path": "/Payments/"})
        self.assertEqual(self.pay(weir, b"200", key="bob-1").status, 200)

    def test_more_than_the_purse_holds_never_passes(self):
        weir = self.weir()
        never = self.pay(weir, b"200.01")
        self.assertEqual((never.status, "retry-after" in never), (429, False))
        self.assertEqual(self.pay(weir, b"200").status, 200, "what was refused took nothing")
        for unsaid in (b'{"Amount": 190}', b"{}", b"", b'[{"amount": 5}]'):
            self.assertEqual(self.send(weir, 1, method="POST", path="/payments", body=unsaid, X_API_Key="bob-1")[0].status, 429)
        self.assert_own_error(self.pay(weir, b"-1", key="bob-1"), 400)
        self.assert_own_error(self.send(weir, 1, method="POST", path="/payments", body=b'{"amount": 1}')[0], 401)


class Logins(Example):
    name = "logins"
    login = {"method": "POST", "path": "/login"}

    @staticmethod
    def reply(exchange):
        right = exchange.read_body() == b"right"
        exchange.send(answer() if right else answer(status="401 Unauthorized"))

    def test_five_wrong_passwords_then_one_an_hour(self):
        weir = self.weir()
        self.admits(weir, 20, body=b"right", **self.login)  # these cost nothing
        attempts = [self.send(weir, 1, body=b"wrong", **self.login)[0].status for _ in range(5)]
        self.assertEqual(attempts, [401] * 5)
        self.refuses(weir, "failed-logins", HOUR, body=b"wrong", **self.login)  # 5 spent, one back in an hour
        self.refuses(weir, "failed-logins", HOUR, body=b"right", **self.login)
        for spelt in ("/login/", "/Login"):  # to some servers it is the same
            self.refuses(weir, "failed-logins", HOUR, body=b"wrong", method="POST", path=spelt)
        self.assertEqual(self.send(weir, 1, body=b"wrong", source="127.0.0.2", **self.login)[0].status, 401)

    def test_sixty_four_guesses_at_once(self):
        weir = self.weir()
        statuses = together(64, lambda _: self.send(weir, 1, body=b"wrong", **self.login)[0].status)
        self.assertEqual((statuses.count(401), statuses.count(429)), (5, 59))
        self.assertEqual(len(self.upstream.exchanges), 5)


class CardPayments(Example):
    name = "card_payments"

    @staticmethod
    def reply(exchange):
        good = exchange.read_body() == b"good"
        exchange.send(answer() if good else answer(status="402 Payment Required"))

    def pay(self, weir, count, body=b"declined", **request):
        return [self.send(weir, 1, method="POST", path="/payments", body=body, **request)[0].status for _ in range(count)]

    def test_five_a_day_for_a_device_and_twenty_for_an_address(self):
        weir = self.weir()
        payment = {"method": "POST", "path": "/payments", "body": b"declined"}
        self.assertEqual(self.pay(weir, 30, b"good", Cookie="device=d-1"), [200] * 30)
        for device in range(4):  # 4 × 5 are the address's 20
            self.assertEqual(self.pay(weir, 5, Cookie=f"device=d-{device}"), [402] * 5)
            if device < 3:
                self.refuses(weir, "declined-device", DAY, Cookie=f"device=d-{device}", **payment)
        self.refuses(weir, "declined-address", DAY, Cookie="device=d-4", **payment)
        self.assertEqual(self.pay(weir, 5, Cookie="device=d-4", source="127.0.0.2"), [402] * 5)
        self.refuses(weir, "declined-device", DAY, Cookie="device=d-4", source="127.0.0.3", **payment)
        self.refuses(weir, "declined-address", DAY, **{**payment, "path": "/Payments/"})  # to some servers it is the same

    def test_without_a_device_an_address_has_five(self):
        weir = self.weir()
        self.assertEqual(self.pay(weir, 6), [402] * 5 + [429])


class LlmTokens(Example):
    name = "llm_tokens"

    @staticmethod
    def reply(exchange):
        asked = exchange.read_body()
        text = b'{"text": "%s", "usage": {"total_tokens": %d}}' % (b"x" * (200_000 * asked.count(b"long")), int(asked.split()[0]))
        if b"stream" in asked:
            exchange.send(answer(b"data: " + text + b"\n\ndata: [DONE]\n\n", headers="Content-Type: text/event-stream\r\n"))
        else:
            exchange.send(answer(text, headers="Content-Type: application/json\r\n"))

    def ask(self, weir, tokens, key="ann-1", how=b"", path="/v1/completions"):
        return self.send(weir, 1, method="POST", path=path, body=b"%d %s" % (tokens, how), X_API_Key=key)[0]

    def left(self, weir, key="ann-1"):
        """Beside its own reserve of 2,000."""
        return int(self.ask(weir, 1, key)["x-ratelimit-remaining"])

    def test_what_the_answer_reports_is_charged(self):
        weir = self.weir()
        self.assertEqual(self.left(weir), 198_000)  # 200,000 less the reserve of this one, which takes 1
        self.assertEqual(int(self.ask(weir, 1200)["x-ratelimit-remaining"]), 197_999)
        self.assertEqual(self.left(weir), 200_000 - 1 - 1200 - 2000)  # of its 2,000 the second one gave 800 back

    def test_long_answers_are_read_and_streams_cost_the_reserve(self):
        weir = self.weir()
        self.assertEqual(self.ask(weir, 1200, how=b"long").status, 200)
        self.assertEqual(self.left(weir), 200_000 - 1200 - 2000)
        self.assertEqual(self.ask(weir, 1200, how=b"stream", path="/V1/completions").status, 200)
        self.assertEqual(self.left(weir), 200_000 - 1200 - 1 - 2000 - 2000)

    def test_a_budget_that_is_overdrawn_is_spent_for_the_day(self):
        weir = self.weir()
        self.assertEqual(self.ask(weir, 250_000).status, 200)
        refused = self.ask(weir, 1)
        now = datetime.datetime.now(datetime.timezone.utc)
        midnight = datetime.datetime.combine(now.date() + datetime.timedelta(days=1), datetime.time(), datetime.timezone.utc)
        self.assertEqual((refused.status, refused["x-ratelimit-remaining"]), (429, "0"))
        self.assertAlmostEqual(int(refused["retry-after"]), (midnight - now).total_seconds(), delta=10)
        self.assertEqual(self.ask(weir, 1, key="bob-1").status, 200)


class Reference(TestCase):
    """docs/limiters.md says which fields a client sees of a bucket of 10 at 6/min with 2 left."""

    def test_the_fields_that_it_shows(self):
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
