#!/usr/bin/env python3
"""Runs the examples of config/examples in which the request or the response contains the cost."""

import datetime

from examples import DAY, HOUR, Example
from harness import answer, main, together


class Spending(Example):
    name = "spending"

    def pay(self, weir, dollars, key="ann-1"):
        return self.send(weir, 1, method="POST", path="/payments", body=b'{"amount": %s}' % dollars, X_API_Key=key)[0]

    def test_spending_limit_regains_a_quarter_every_six_hours(self):
        weir = self.weir()
        paid = self.pay(weir, b"19.99")  # 20000 - 1999 cents are left
        self.assertEqual((paid.status, paid["x-ratelimit-limit"], paid["x-ratelimit-remaining"]), (200, "20000", "18001"))
        self.assertEqual(self.pay(weir, b"180.01", key="ann-2").status, 200)  # all of Ann's keys share one spending limit
        payment = {"method": "POST", "path": "/payments", "X_API_Key": "ann-1"}
        self.refuses(weir, "purse", 6 * HOUR, body=b'{"amount": 0.01}', **payment)  # six hours: when $50 more may be spent
        self.refuses(weir, "purse", 6 * HOUR, body=b'{"amount": 50}', **payment)
        self.refuses(weir, "purse", 12 * HOUR, body=b'{"amount": 50.01}', **payment)
        self.refuses(weir, "purse", 24 * HOUR, body=b'{"amount": 200}', **payment)  # a day: when four times $50 have returned
        self.refuses(weir, "purse", 24 * HOUR, body=b'{"amount": 200}', **{**payment, "path": "/Payments/"})
        self.assertEqual(self.pay(weir, b"200", key="bob-1").status, 200)

    def test_payment_above_the_spending_limit_is_never_admitted(self):
        weir = self.weir()
        never = self.pay(weir, b"200.01")
        self.assertEqual((never.status, "retry-after" in never), (429, False))
        self.assertEqual(self.pay(weir, b"200").status, 200, "refused payments charged nothing")
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

    def test_five_wrong_passwords_are_admitted_and_then_one_each_hour(self):
        weir = self.weir()
        self.admits(weir, 20, body=b"right", **self.login)  # successful logins cost nothing
        attempts = [self.send(weir, 1, body=b"wrong", **self.login)[0].status for _ in range(5)]
        self.assertEqual(attempts, [401] * 5)
        self.refuses(weir, "failed-logins", HOUR, body=b"wrong", **self.login)  # five attempts are spent; one returns in an hour
        self.refuses(weir, "failed-logins", HOUR, body=b"right", **self.login)
        for spelt in ("/login/", "/Login"):  # some servers treat these paths alike
            self.refuses(weir, "failed-logins", HOUR, body=b"wrong", method="POST", path=spelt)
        self.assertEqual(self.send(weir, 1, body=b"wrong", source="127.0.0.2", **self.login)[0].status, 401)

    def test_sixty_four_concurrent_wrong_passwords_are_limited_to_five(self):
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

    def test_device_may_have_five_declined_payments_and_an_address_twenty(self):
        weir = self.weir()
        payment = {"method": "POST", "path": "/payments", "body": b"declined"}
        self.assertEqual(self.pay(weir, 30, b"good", Cookie="device=d-1"), [200] * 30)
        for device in range(4):  # 4 × 5 = 20 declined payments: all that the address may have
            self.assertEqual(self.pay(weir, 5, Cookie=f"device=d-{device}"), [402] * 5)
            if device < 3:
                self.refuses(weir, "declined-device", DAY, Cookie=f"device=d-{device}", **payment)
        self.refuses(weir, "declined-address", DAY, Cookie="device=d-4", **payment)
        self.assertEqual(self.pay(weir, 5, Cookie="device=d-4", source="127.0.0.2"), [402] * 5)
        self.refuses(weir, "declined-device", DAY, Cookie="device=d-4", source="127.0.0.3", **payment)
        self.refuses(weir, "declined-address", DAY, **{**payment, "path": "/Payments/"})  # some servers treat these paths alike

    def test_address_without_a_device_id_may_have_five_declined_payments(self):
        weir = self.weir()
        self.assertEqual(self.pay(weir, 6), [402] * 5 + [429])


class LlmTokens(Example):
    name = "llm_tokens"

    @staticmethod
    def reply(exchange):
        asked = exchange.read_body()
        text = b'{"text": "%s", "usage": {"total_tokens": %d}}' % (b"x" * (200_000 * asked.count(b"long")), int(asked.split()[0]))
        if b"fail" in asked:
            return exchange.send(answer(b'{"error": {}}', status=asked.split()[-1].decode() + " No", headers="Content-Type: application/json\r\n"))
        if b"stream" in asked:
            exchange.send(answer(b"data: " + text + b"\n\ndata: [DONE]\n\n", headers="Content-Type: text/event-stream\r\n"))
        else:
            exchange.send(answer(text, headers="Content-Type: application/json\r\n"))

    def test_provider_errors_cost_no_tokens(self):
        weir = self.weir()
        for status in (b"429", b"500", b"503", b"404"):
            for _ in range(101):  # a reserve of 2,000 for each would exceed the day's budget
                self.assertEqual(self.ask(weir, 1, how=b"fail " + status).status, int(status))
        self.assertEqual(self.left(weir), 198_000)

    def ask(self, weir, tokens, key="ann-1", how=b"", path="/v1/completions"):
        return self.send(weir, 1, method="POST", path=path, body=b"%d %s" % (tokens, how), X_API_Key=key)[0]

    def left(self, weir, key="ann-1"):
        """Returns the remaining units. The request that asks has itself reserved 2,000 units."""
        return int(self.ask(weir, 1, key)["x-ratelimit-remaining"])

    def test_reported_tokens_are_charged(self):
        weir = self.weir()
        self.assertEqual(self.left(weir), 198_000)  # 200,000 minus the 2,000 that this request reserves; finally it costs 1
        self.assertEqual(int(self.ask(weir, 1200)["x-ratelimit-remaining"]), 197_999)
        self.assertEqual(self.left(weir), 200_000 - 1 - 1200 - 2000)  # the second request refunded 800 of its 2,000

    def test_tokens_in_long_responses_are_charged_and_streams_are_charged_the_reserved_cost(self):
        weir = self.weir()
        self.assertEqual(self.ask(weir, 1200, how=b"long").status, 200)
        self.assertEqual(self.left(weir), 200_000 - 1200 - 2000)
        self.assertEqual(self.ask(weir, 1200, how=b"stream", path="/V1/completions").status, 200)
        self.assertEqual(self.left(weir), 200_000 - 1200 - 1 - 2000 - 2000)

    def test_overdrawn_token_budget_refuses_requests_until_midnight(self):
        weir = self.weir()
        self.assertEqual(self.ask(weir, 250_000).status, 200)
        refused = self.ask(weir, 1)
        now = datetime.datetime.now(datetime.timezone.utc)
        midnight = datetime.datetime.combine(now.date() + datetime.timedelta(days=1), datetime.time(), datetime.timezone.utc)
        self.assertEqual((refused.status, refused["x-ratelimit-remaining"]), (429, "0"))
        self.assertAlmostEqual(int(refused["retry-after"]), (midnight - now).total_seconds(), delta=10)
        self.assertEqual(self.ask(weir, 1, key="bob-1").status, 200)


if __name__ == "__main__":
    main()
