#!/usr/bin/env python3
"""Runs the examples of config/examples in which the request or the response contains the cost."""

import datetime
import json

import language_model
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
        # 200,000 minus the 2,000 that this request reserves; at its end the request costs 1
        self.assertEqual(self.left(weir), 198_000)
        self.assertEqual(int(self.ask(weir, 1200)["x-ratelimit-remaining"]), 197_999)
        self.assertEqual(self.left(weir), 200_000 - 1 - 1200 - 2000)  # the second request refunded 800 of its 2,000

    def test_tokens_in_long_responses_and_in_streams_are_charged(self):
        weir = self.weir()
        self.assertEqual(self.ask(weir, 1200, how=b"long").status, 200)
        self.assertEqual(self.left(weir), 200_000 - 1200 - 2000)
        self.assertEqual(self.ask(weir, 1200, how=b"stream", path="/V1/completions").status, 200)
        self.assertEqual(self.left(weir), 200_000 - 1200 - 1 - 1200 - 2000)

    def test_overdrawn_token_budget_refuses_requests_until_midnight(self):
        weir = self.weir()
        self.assertEqual(self.ask(weir, 250_000).status, 200)
        refused = self.ask(weir, 1)
        now = datetime.datetime.now(datetime.timezone.utc)
        midnight = datetime.datetime.combine(now.date() + datetime.timedelta(days=1), datetime.time(), datetime.timezone.utc)
        self.assertEqual((refused.status, refused["x-ratelimit-remaining"]), (429, "0"))
        self.assertAlmostEqual(int(refused["retry-after"]), (midnight - now).total_seconds(), delta=10)
        self.assertEqual(self.ask(weir, 1, key="bob-1").status, 200)


class ModelExample:
    """Tests of an example for a provider of language models. `key_field` and `key_form`: how clients send their key."""

    key_field, key_form = "X_API_Key", "%s"

    def setUp(self):
        self.reply = language_model.LanguageModel()
        super().setUp()

    def ask(self, weir, path, key="ann-1", **asked):
        """Sends a request and returns the remaining units, minus what the request itself reserves."""
        body = json.dumps({"model": "m", **asked}).encode()
        response = self.send(weir, 1, method="POST", path=path, body=body, **{self.key_field: self.key_form % key})[0]
        self.assertEqual(response.status, 200, response.body)
        return int(response["x-ratelimit-remaining"])


class OpenAi(ModelExample, Example):
    name = "openai"
    key_field, key_form = "Authorization", "Bearer %s"

    def test_each_kind_of_answer_costs_the_tokens_that_it_reports(self):
        weir = self.weir()
        chat, responses = "/v1/chat/completions", "/v1/responses"
        told = {"stream": True, "stream_options": {"include_usage": True}}
        self.assertEqual(self.ask(weir, chat, messages=[{"content": "100 20"}]), 198_000)  # the request reserves 2,000
        self.assertEqual(self.ask(weir, chat, messages=[{"content": "100 3"}], max_tokens=500, **told), 200_000 - 120 - 500)
        self.assertEqual(self.ask(weir, responses, input="7 30", max_output_tokens=100_000), 200_000 - 223 - 32_000)
        self.assertEqual(self.ask(weir, responses, input="8 40", max_output_tokens=60, stream=True), 200_000 - 260 - 60)
        left = self.ask(weir, chat, messages=[{"content": "0 0"}], max_completion_tokens=1)
        self.assertEqual(left, 200_000 - 308 - 1)

    def test_stream_without_usage_is_charged_the_reserved_tokens(self):
        weir = self.weir()
        self.ask(weir, "/v1/chat/completions", messages=[{"content": "9 9"}], max_tokens=700, stream=True)
        left = self.ask(weir, "/v1/chat/completions", messages=[{"content": "1 1"}], max_tokens=1)
        self.assertEqual(left, 200_000 - 700 - 1)

    def test_requests_to_other_paths_cost_nothing_and_bodies_that_are_not_json_are_rejected(self):
        self.reply = self.upstream.reply = lambda exchange: (exchange.read_body(), exchange.send(answer()))
        weir = self.weir()
        self.assertNotIn("x-ratelimit-remaining", self.send(weir, 1, path="/v1/models", Authorization="Bearer ann-1")[0])
        chat = {"method": "POST", "path": "/v1/chat/completions", "body": b"model=m"}
        self.assert_own_error(self.send(weir, 1, Authorization="Bearer ann-1", **chat)[0], 400)
        self.assert_own_error(self.send(weir, 1, Authorization="Bearer invented", **chat)[0], 401)


class Anthropic(ModelExample, Example):
    name = "anthropic"

    def test_tokens_are_charged_by_their_price_in_streams_and_plain_answers(self):
        weir = self.weir()
        for spent, stream in enumerate((False, True)):
            left = self.ask(weir, "/v1/messages", messages=[{"content": "100 20"}], max_tokens=1000, stream=stream)
            self.assertEqual(left, 1_000_000 - 200 * spent - 5000)  # 100 + 20 × 5
        left = self.ask(weir, "/v1/messages", messages=[{"content": "0 0"}], max_tokens=1_000_000)
        self.assertEqual(left, 1_000_000 - 400 - 200_000)

    def test_cached_input_is_charged_at_its_own_price(self):
        usage = {"input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 101, "output_tokens": 4}
        body = json.dumps({"usage": usage}).encode()
        self.upstream.reply = lambda exchange: (exchange.read_body(), exchange.send(answer(body)))
        weir = self.weir()
        self.ask(weir, "/v1/messages")
        self.assertEqual(self.ask(weir, "/v1/messages"), 1_000_000 - 46 - 20_000)  # 3 + 12.5 + 10.1 + 20, rounded up


class Ollama(ModelExample, Example):
    name = "ollama"

    def test_prompt_and_answer_tokens_are_charged_in_streams_and_plain_answers(self):
        weir = self.weir()
        self.assertEqual(self.ask(weir, "/api/generate", prompt="26 259"), 199_000)
        self.assertEqual(self.ask(weir, "/api/generate", prompt="5 6", stream=False, options={"num_predict": -1}), 199_000 - 285)
        left = self.ask(weir, "/api/chat", messages=[{"content": "1 1"}], options={"num_predict": 9000})
        self.assertEqual(left, 200_000 - 296 - 8000)


if __name__ == "__main__":
    main()
