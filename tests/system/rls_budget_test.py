#!/usr/bin/env python3
"""Budgets of costs that are known only after the answer. The tests ask as Envoy AI Gateway and Envoy's apply_on_stream_done do: a check
with 0 hits before each request, and afterwards a charge of what the request has used."""

import signal
import time

from ask_client import Asker
from harness import Redis, eventually, main, rule, together
from rls_client import OK, OVER_LIMIT, fields_of
from rls_test import RlsTestCase, WINDOW, by

DECIDE = '[[listener]]\naddress = "127.0.0.1:0"\nserves = "decide"\n'
ALGORITHMS = ({"algorithm": '"fixed_window"'}, {"algorithm": '"sliding_window"'}, {"algorithm": '"sliding_log"'}, {"burst": 100},
              {"refill": '"stepwise"'}, {"algorithm": '"gcra"', "burst": 99}, {"algorithm": '"sliding_window"', "buckets": 10})


class Budgets(RlsTestCase):
    """Tests with limits in memory. The subclass runs the same tests with limits in Redis."""

    def stored(self):
        """Returns the settings of [state]."""
        return ""

    def budget(self, *more_rules, limit="100/1000day", descriptors="together", **settings):
        """Starts a weir with a budget of tokens for each user. Returns the weir and a client."""
        weir = self.weir(rule("tokens", limit, key=by("user"), overdraft="true", **settings), *more_rules, state=self.stored(),
                         descriptors=descriptors, listeners=DECIDE)
        return weir, self.client(weir)

    def check(self, client, user="ann"):
        """Asks as Envoy does before a request. Returns the code and the remaining tokens."""
        (status,) = client.ask("ai", {"user": user, "hits": 0}).statuses
        return status.code, status.limit_remaining

    def charge(self, client, tokens, user="ann"):
        """Charges as Envoy does when a stream is done. Returns the code."""
        return client.code("ai", {"user": user, "hits": tokens})

    def test_check_after_a_charge_shows_the_remaining_budget(self):
        for settings in ALGORITHMS:
            with self.subTest(settings):
                _, client = self.budget(**settings)
                for _ in range(3):
                    self.assertEqual(self.check(client), (OK, 100))
                self.assertEqual(self.charge(client, 60), OK)
                self.assertEqual(self.check(client), (OK, 40))
                self.assertEqual(self.charge(client, 90), OK)  # more than is left
                self.assertEqual(self.check(client), (OVER_LIMIT, 0))
                self.assertEqual(self.charge(client, 1), OVER_LIMIT)
                self.assertEqual(self.check(client, "bob"), (OK, 100))

    def test_refused_check_says_when_the_debt_is_paid(self):
        _, client = self.budget(limit="100/100h", burst=100)
        self.assertEqual(self.charge(client, 250), OK)
        answer = client.ask("ai", {"user": "ann", "hits": 0})
        fields = fields_of(answer)
        self.assertIn(int(fields["retry-after"]), range(150 * 3600, 151 * 3600 + 1))
        self.assertEqual((fields["x-ratelimit-remaining"], answer.statuses[0].current_limit.name), ("0", "tokens"))
        self.assertEqual(self.charge(client, 50), OVER_LIMIT)
        self.assertIn(int(fields_of(client.ask("ai", {"user": "ann", "hits": 0}))["retry-after"]), range(200 * 3600, 201 * 3600 + 1))

    def test_debt_decreases_as_time_passes(self):
        _, client = self.budget(limit="10/s", burst=10)
        began = time.monotonic()
        self.assertEqual(self.charge(client, 25), OK)
        self.assertEqual(self.check(client)[0], OVER_LIMIT)
        eventually(lambda: self.check(client)[0] == OK, "the debt is paid")
        self.assertGreaterEqual(time.monotonic() - began, 1.6)  # 15 units of debt, and one for the check

    def test_concurrent_checks_charge_nothing(self):
        weir, client = self.budget(**WINDOW)
        codes = together(40, lambda _: self.check(client)[0])
        self.assertEqual(codes, [OK] * 40)
        self.assertEqual(self.check(client), (OK, 100))
        self.assertEqual(weir.metric("weir_decide_questions_total", api="rls", result="allowed"), 41)

    def test_no_charge_is_lost_if_many_are_concurrent(self):
        weir, client = self.budget(limit="1000/1000day", **WINDOW)
        together(40, lambda _: self.charge(client, 20))
        self.assertEqual(self.check(client), (OK, 200))
        self.assertEqual(weir.metric("weir_settlements_total", rule="tokens", outcome="debt"), 40)

    def test_check_and_charge_of_one_call_are_decided_together(self):
        _, client = self.budget(rule("calls", "2/1000day", key=by("path"), **WINDOW), **WINDOW)
        question = ("ai", {"path": "/chat"}, {"user": "ann", "hits": 0})
        answer = client.ask(*question)
        self.assertEqual([(status.code, status.limit_remaining) for status in answer.statuses], [(OK, 1), (OK, 100)])
        self.assertEqual(self.charge(client, 150), OK)
        answer = client.ask(*question)
        self.assertEqual((answer.overall_code, [status.code for status in answer.statuses]), (OVER_LIMIT, [OK, OVER_LIMIT]))
        self.assertEqual(client.ask("ai", {"path": "/chat"}).statuses[0].limit_remaining, 0)  # the refused call has charged nothing

    def test_check_and_charge_of_one_call_are_decided_separately_if_descriptors_is_each(self):
        _, client = self.budget(rule("calls", "2/1000day", key=by("path"), **WINDOW), descriptors="each", **WINDOW)
        self.assertEqual(client.code("ai", {"path": "/chat"}, {"user": "ann", "hits": 150}), OK)
        answer = client.ask("ai", {"path": "/chat"}, {"user": "ann", "hits": 0})
        self.assertEqual((answer.overall_code, [status.code for status in answer.statuses]), (OVER_LIMIT, [OK, OVER_LIMIT]))

    def test_check_does_not_charge_a_rule_that_needs_no_descriptor(self):
        _, client = self.budget(rule("all", "3/1000day", key="[]", **WINDOW), **WINDOW)
        for _ in range(5):
            self.assertEqual(client.code("ai", {"user": "ann", "hits": 0}), OK)
        self.assertEqual(self.charge(client, 10), OK)

    def test_decide_listener_checks_and_charges_as_an_rls_listener_does(self):
        weir, client = self.budget(rule("calls", "2/1000day", key='["ip"]', **WINDOW), **WINDOW)
        asker = self.start(Asker(weir.ports[1]))
        question = {"ip": "203.0.113.7", "attributes": {"user": "ann"}}
        for _ in range(3):
            answer = asker.decide(cost=0, **question)
            self.assertEqual((answer["allowed"], answer["rule"], answer["remaining"]), (True, "tokens", 100))
        answer = asker.decide(cost=2, **question)
        self.assertEqual((answer["allowed"], answer["rule"], answer["remaining"]), (True, "calls", 0))
        answer = asker.decide(cost=0, **question)
        self.assertEqual((answer["allowed"], answer["status"], answer["rule"]), (False, 429, "calls"))
        self.assertNotIn("permit", answer)
        self.assertFalse(asker.decide(cost=200, **question)["allowed"])  # refused by "calls", but charged to "tokens"
        # another worker may serve this client, and weir does not wait until Redis has made the charge
        eventually(lambda: self.check(client) == (OVER_LIMIT, 0), "the charge is visible")

    def test_charge_above_the_remaining_budget_is_refused_without_overdraft(self):
        weir = self.weir(rule("tokens", "100/1000day", key=by("user"), **WINDOW), state=self.stored())
        client = self.client(weir)
        self.assertEqual(self.charge(client, 101), OVER_LIMIT)
        self.assertEqual(self.check(client), (OK, 100))
        self.assertEqual(self.charge(client, 100), OK)
        self.assertEqual(self.check(client), (OVER_LIMIT, 0))

    def test_check_is_refused_during_a_penalty_but_starts_no_penalty(self):
        weir = self.weir(rule("calls", "1/30day", key=by("user"), penalty='{ after = 2, for = "366day", most = "366day" }', **WINDOW),
                         state=self.stored())
        client = self.client(weir)

        def retry_after():
            return int(fields_of(client.ask("ai", {"user": "ann", "hits": 0}))["retry-after"])

        self.assertEqual(self.charge(client, 1), OK)
        for _ in range(4):
            self.assertLessEqual(retry_after(), 30 * 86400)
        for _ in range(2):
            self.assertEqual(self.charge(client, 1), OVER_LIMIT)
        self.assertGreater(retry_after(), 365 * 86400)

    def test_check_charges_neither_limit_of_an_elastic_rule(self):
        weir = self.weir(rule("calls", "2/1000day", key=by("user"), elastic='{ limit = "4/1000day", while_load_below = 1 }', **WINDOW),
                         state=self.stored())
        client = self.client(weir)
        for used in (0, 1):
            for _ in range(5):  # the load of the machine decides which limit holds
                self.assertIn(self.check(client), [(OK, 2 - used), (OK, 4 - used)])
            self.assertEqual(self.charge(client, 1), OK)


class BudgetsInRedis(Budgets):
    def stored(self):
        redis = self.start(Redis())
        return f'store = "redis"\nredis = {{ url = "{redis.url}", timeout = "10s" }}'

    def test_two_weirs_share_a_budget(self):
        redis = self.start(Redis())
        state = f'store = "redis"\nkey_secret = "0123456789abcdef0123456789abcdef"\nredis = {{ url = "{redis.url}", timeout = "10s" }}'
        tokens = rule("tokens", "100/1000day", key=by("user"), overdraft="true", **WINDOW)
        first, second = [self.client(self.weir(tokens, state=state)) for _ in range(2)]
        self.assertEqual(self.charge(first, 150), OK)
        eventually(lambda: self.check(second) == (OVER_LIMIT, 0), "the other weir sees the debt")

    def test_charge_reaches_redis_even_if_redis_answers_too_late(self):
        redis = self.start(Redis())
        weir = self.weir(rule("tokens", "100/1000day", key=by("user"), overdraft="true", **WINDOW),
                         state=f'store = "redis"\nredis = {{ url = "{redis.url}", timeout = "300ms" }}')
        client = self.client(weir)
        redis.process.send_signal(signal.SIGSTOP)
        self.addCleanup(redis.process.send_signal, signal.SIGCONT)
        self.assertEqual(self.charge(client, 150), OK)  # decided by this weir's share
        self.assertEqual(weir.metric("weir_redis_timeouts_total"), 1)
        redis.process.send_signal(signal.SIGCONT)
        eventually(lambda: self.check(client) == (OVER_LIMIT, 0), "Redis has made the charge")

    def test_check_uses_no_unit_of_a_rule_with_a_lease(self):
        weir = self.weir(rule("calls", "100/1000day", key=by("user"), lease='"10%"', **WINDOW), state=self.stored())
        client = self.client(weir)
        for _ in range(20):
            self.assertEqual(self.check(client), (OK, 100))
        for _ in range(100):
            self.assertEqual((self.check(client)[0], self.charge(client, 1)), (OK, OK))
        self.assertEqual(self.check(client)[0], OVER_LIMIT)


if __name__ == "__main__":
    main()
