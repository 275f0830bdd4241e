#!/usr/bin/env python3
"""Envoy's rate limit service (serves = "rls"), asked with Google's gRPC library: decisions, descriptors, costs and the fields for
clients."""

import json
import random
import time

from harness import Client, Redis, TestCase, Upstream, Weir, eventually, main, rule, together
from rls_client import DAY, OK, OVER_LIMIT, RlsClient, fields_of, insecure

WINDOW = {"algorithm": '"fixed_window"'}


def by(*keys):
    return "[" + ", ".join(f'"descriptor:{key}"' for key in keys) + "]"


def rls_config(*rules, descriptors="together", more="", listeners="", state="", server=""):
    """Returns a configuration with an admin listener and a listener with serves = "rls", which is the first one."""
    return f"""
[server]
workers = 2
drain = "5s"
{server}
[log]
access = "off"
[[listener]]
address = "127.0.0.1:0"
serves = "rls"
descriptors = "{descriptors}"
{more}
{listeners}
[admin]
address = "127.0.0.1:0"
[state]
{state}
{"".join(rules)}
"""


class RlsTestCase(TestCase):
    def weir(self, *rules, files=None, **more):
        weir = self.start(Weir(rls_config(*rules, **more), files))
        eventually(weir.is_ready, "weir is ready")
        return weir

    def client(self, weir, **more):
        return RlsClient(self.start(insecure(f"127.0.0.1:{weir.ports[0]}")), **more)

    def service(self, *rules, **more):
        """Starts a weir. Returns a client of it."""
        return self.client(self.weir(*rules, **more))

    def codes(self, client, count, *question, **options):
        return [client.code(*question, **options) for _ in range(count)]


class Decisions(RlsTestCase):
    def test_calls_within_the_limit_are_ok_and_show_what_remains(self):
        client = self.service(rule("logins", "3/day", key=by("path"), **WINDOW))
        for remaining in (2, 1, 0):
            answer = client.ask("edge", {"path": "/login"})
            self.assertEqual(answer.overall_code, OK)
            (status,) = answer.statuses
            limit = status.current_limit
            self.assertEqual((status.code, limit.requests_per_unit, limit.unit, limit.name), (OK, 3, DAY, "logins"))
            self.assertEqual(status.limit_remaining, remaining)
            self.assertIn(status.duration_until_reset.seconds, range(86401))
            fields = fields_of(answer)
            self.assertEqual((fields["x-ratelimit-limit"], fields["x-ratelimit-remaining"]), ("3", str(remaining)))
            self.assertEqual((answer.raw_body, "retry-after" in fields), (b"", False))

    def test_call_over_the_limit_has_the_refusal_that_the_proxy_would_send(self):
        client = self.service(rule("logins", "3/day", key=by("path"), **WINDOW))
        self.assertEqual(self.codes(client, 3, "edge", {"path": "/login"}), [OK] * 3)
        answer = client.ask("edge", {"path": "/login"})
        fields, (status,) = fields_of(answer), answer.statuses
        self.assertEqual((answer.overall_code, status.code, status.limit_remaining), (OVER_LIMIT, OVER_LIMIT, 0))
        self.assertGreater(int(fields["retry-after"]), 0)
        self.assertEqual((fields["x-ratelimit-remaining"], fields["content-type"]), ("0", "application/json"))
        body = json.loads(answer.raw_body)
        self.assertEqual((body["error"], body["rule"]), ("rate_limit_exceeded", "logins"))
        self.assertEqual(body["retry_after_seconds"], int(fields["retry-after"]))
        self.assertEqual(client.code("edge", {"path": "/other"}), OK)

    def test_descriptor_without_a_rule_is_ok_and_has_no_limit(self):
        answer = self.service(rule("logins", "3/day", key=by("path"))).ask("edge", {"user": "ann"})
        self.assertEqual((answer.overall_code, answer.statuses[0].code), (OK, OK))
        self.assertFalse(answer.statuses[0].HasField("current_limit"))
        self.assertEqual(fields_of(answer), {})

    def test_rules_of_a_domain_apply_only_to_its_calls(self):
        client = self.service(rule("edge", "1/day", key=by("path"), match='{ domains = ["edge"] }'),
                              rule("all", "9/day", key='["domain"]', algorithm='"fixed_window"'))
        self.assertEqual(self.codes(client, 2, "edge", {"path": "/"}), [OK, OVER_LIMIT])
        self.assertEqual(self.codes(client, 10, "mesh", {"path": "/"}), [OK] * 9 + [OVER_LIMIT])

    def test_rule_in_shadow_mode_refuses_nothing(self):
        weir = self.weir(rule("trial", "1/day", key=by("path"), mode='"shadow"'))
        client = self.client(weir)
        self.assertEqual(self.codes(client, 3, "edge", {"path": "/"}), [OK] * 3)
        self.assertEqual(weir.metric("weir_decisions_total", rule="trial", outcome="shadow_refused"), 2)

    def test_penalty_makes_a_refusal_last_longer(self):
        client = self.service(rule("guesses", "1/5min", key=by("user"), penalty='{ after = 2, for = "1h" }'))
        self.assertEqual(client.code("edge", {"user": "ann"}), OK)
        self.assertLessEqual(int(fields_of(client.ask("edge", {"user": "ann"}))["retry-after"]), 300)
        self.assertGreater(int(fields_of(client.ask("edge", {"user": "ann"}))["retry-after"]), 3000)

    def test_refused_calls_cost_nothing(self):
        client = self.service(rule("units", "10/day", key=by("user"), **WINDOW))
        self.assertEqual([client.code("edge", {"user": "ann"}, hits=hits) for hits in (8, 5, 2, 1)], [OK, OVER_LIMIT, OK, OVER_LIMIT])

    def test_answer_waits_until_the_call_may_leave_the_queue(self):
        weir = self.weir(rule("spaced", "5/s", key=by("user"), algorithm='"leaky_bucket"', queue=3))
        client = self.client(weir)
        began = time.monotonic()
        codes = together(5, lambda _: client.code("edge", {"user": "ann"}))
        self.assertGreater(time.monotonic() - began, 0.58)  # the fourth departs 600 ms after the first
        self.assertLessEqual(codes.count(OVER_LIMIT), 1)
        self.assertGreaterEqual(codes.count(OK), 4)


class Descriptors(RlsTestCase):
    def test_rule_applies_only_to_descriptors_with_exactly_its_keys(self):
        client = self.service(rule("one", "1/day", key=by("a")), rule("two", "2/day", key=by("a", "b"), **WINDOW),
                              rule("named", "3/day", key=by("d"), match='{ descriptor = { c = "~x.*" } }', **WINDOW))
        self.assertEqual(self.codes(client, 3, "edge", {"a": "1", "b": "2"}), [OK, OK, OVER_LIMIT])
        self.assertEqual(client.code("edge", {"b": "2", "a": "1"}), OVER_LIMIT)
        self.assertEqual(self.codes(client, 2, "edge", {"a": "1"}), [OK, OVER_LIMIT])
        self.assertEqual(self.codes(client, 4, "edge", {"c": "xyz", "d": "1"}), [OK] * 3 + [OVER_LIMIT])
        for descriptor in ({"c": "y", "d": "1"}, {"d": "1"}, {"c": "xyz", "d": "1", "e": ""}, {"a": "1", "b": "2", "c": "3"}):
            with self.subTest(descriptor):
                self.assertFalse(client.ask("edge", descriptor).statuses[0].HasField("current_limit"))

    def test_call_charges_all_its_descriptors_or_none_if_descriptors_is_together(self):
        client = self.service(rule("wide", "5/day", key=by("path"), **WINDOW), rule("tight", "2/day", key=by("user"), **WINDOW))
        pair = {"path": "/"}, {"user": "ann"}
        self.assertEqual(self.codes(client, 2, "edge", *pair), [OK, OK])
        for _ in range(3):
            answer = client.ask("edge", *pair)
            self.assertEqual((answer.overall_code, [status.code for status in answer.statuses]), (OVER_LIMIT, [OK, OVER_LIMIT]))
        self.assertEqual(client.ask("edge", {"path": "/"}).statuses[0].limit_remaining, 2)

    def test_call_charges_every_descriptor_separately_if_descriptors_is_each(self):
        client = self.service(rule("wide", "5/day", key=by("path"), **WINDOW), rule("tight", "2/day", key=by("user"), **WINDOW),
                              descriptors="each")
        pair = {"path": "/"}, {"user": "ann"}
        self.assertEqual(self.codes(client, 2, "edge", *pair), [OK, OK])
        answer = client.ask("edge", *pair)
        self.assertEqual([(status.code, status.limit_remaining) for status in answer.statuses], [(OK, 2), (OVER_LIMIT, 0)])
        self.assertEqual(answer.overall_code, OVER_LIMIT)
        self.assertIn("retry-after", fields_of(answer))
        self.assertEqual(json.loads(answer.raw_body)["rule"], "tight")
        self.assertEqual(client.ask("edge", {"path": "/"}).statuses[0].limit_remaining, 1)

    def test_descriptors_with_the_same_values_are_charged_as_one(self):
        client = self.service(rule("paths", "5/day", key=by("path"), **WINDOW))
        answer = client.ask("edge", {"path": "/"}, {"path": "/"})
        self.assertEqual([status.limit_remaining for status in answer.statuses], [3, 3])
        self.assertEqual(self.codes(client, 2, "edge", {"path": "/"}, {"path": "/"}), [OK, OVER_LIMIT])

    def test_thirty_two_descriptors_are_charged_in_one_call(self):
        client = self.service(rule("paths", "2/day", key=by("path"), **WINDOW))
        many = [{"path": str(number)} for number in range(32)]
        for expected in ([1] * 32, [0] * 32):
            self.assertEqual([status.limit_remaining for status in client.ask("edge", *many).statuses], expected)
        self.assertEqual({status.code for status in client.ask("edge", *many).statuses}, {OVER_LIMIT})

    def test_concurrent_calls_are_charged_exactly(self):
        weir = self.weir(rule("wide", "300/3000day", key=by("path"), **WINDOW), rule("tight", "137/3000day", key=by("user"), **WINDOW))
        messages = self.client(weir).messages

        def ask(_):
            client = self.client(weir, messages=messages)
            return self.codes(client, 50, "edge", {"path": "/"}, {"user": "ann"})

        codes = [code for some in together(8, ask) for code in some]
        self.assertEqual((codes.count(OK), codes.count(OVER_LIMIT)), (137, 400 - 137))
        answer = self.client(weir, messages=messages).ask("edge", {"path": "/"})
        self.assertEqual(answer.statuses[0].limit_remaining, 300 - 137 - 1)


class Objections(RlsTestCase):
    """Envoy admits a request if the call fails. So weir answers OVER_LIMIT where it would refuse the request by itself."""

    USERS = rule("users", "3/day", key='["descriptor:user|header:x-user"]', on_missing='"reject"', **WINDOW)

    def objection(self, client, *descriptors):
        """Asks. Returns the sentence of the refusal, and the fields for the client."""
        answer = client.ask("edge", *descriptors)
        self.assertEqual((answer.overall_code, [status.code for status in answer.statuses]),
                         (OVER_LIMIT, [OVER_LIMIT] * len(descriptors)))
        self.assertFalse(any(status.HasField("current_limit") for status in answer.statuses))
        fields = fields_of(answer)
        self.assertEqual((fields["content-type"], "retry-after" in fields), ("application/json", False))
        return json.loads(answer.raw_body)["message"], fields

    def test_call_without_the_key_of_the_rule_is_over_limit(self):
        weir = self.weir(self.USERS)
        client = self.client(weir)
        self.assertIn("nothing that identifies", self.objection(client, {"path": "/"}, {"path": "/x"})[0])
        self.assertEqual(client.ask("edge", {"user": "ann"}).statuses[0].limit_remaining, 2)
        self.assertEqual(weir.metric("weir_decide_questions_total", api="rls", result="refused"), 1)

    def test_call_without_a_required_credential_is_over_limit(self):
        client = self.service(rule("keys", "3/day", key='["api_key"]', on_missing='"reject"'))
        self.assertIn("www-authenticate", self.objection(client, {"path": "/"})[1])

    def test_call_that_needs_too_many_charges_is_over_limit(self):
        rules = [rule(name, "9/day", key=by("path"), **WINDOW) for name in ("one", "two")]
        client = self.service(*rules)
        many = [{"path": str(number)} for number in range(17)]
        self.objection(client, *many)
        self.assertEqual(client.ask("edge", *many[:16]).statuses[0].limit_remaining, 8)

    def test_other_descriptors_are_charged_if_one_lacks_the_key_and_descriptors_is_each(self):
        client = self.service(self.USERS, descriptors="each")
        answer = client.ask("edge", {"user": "ann"}, {"path": "/"}, {"user": "ann"})
        self.assertEqual((answer.overall_code, [status.code for status in answer.statuses]), (OVER_LIMIT, [OK, OVER_LIMIT, OK]))
        self.assertEqual([status.limit_remaining for status in answer.statuses], [2, 0, 1])


class Costs(RlsTestCase):
    def setUp(self):
        self.client_of = self.service(rule("units", "100/day", key=by("user"), cost=3, **WINDOW))

    def remaining(self, *descriptors, **options):
        return [status.limit_remaining for status in self.client_of.ask("edge", *descriptors, **options).statuses]

    def test_rule_states_the_cost_of_calls_without_hits_addend(self):
        self.assertEqual(self.remaining({"user": "ann"}), [97])

    def test_hits_addend_is_the_cost_of_the_call(self):
        self.assertEqual(self.remaining({"user": "ann"}, hits=10), [90])
        self.assertEqual(self.client_of.code("edge", {"user": "ann"}, hits=91), OVER_LIMIT)
        self.assertEqual(self.remaining({"user": "ann"}, hits=90), [0])

    def test_hits_addend_of_a_descriptor_replaces_that_of_the_call(self):
        self.assertEqual(self.remaining({"user": "ann", "hits": 20}, {"user": "bob"}, hits=10), [80, 90])

    def test_descriptor_with_a_hits_addend_of_0_is_checked_and_not_charged(self):
        self.assertEqual(self.remaining({"user": "ann", "hits": 0}, {"user": "bob", "hits": 1}), [100, 99])
        self.assertEqual(self.remaining({"user": "ann", "hits": 1}), [99])

    def test_cost_beyond_the_limit_is_never_admitted(self):
        answer = self.client_of.ask("edge", {"user": "ann"}, hits=101)
        self.assertEqual(answer.overall_code, OVER_LIMIT)
        self.assertNotIn("retry-after", fields_of(answer))


class SeveralWays(RlsTestCase):
    """Starts a weir with three listeners: for gRPC, for JSON, and one that proxies to an upstream."""

    def weir_of_three(self, *rules, **more):
        upstream = self.start(Upstream())
        listeners = f"""
[[listener]]
address = "127.0.0.1:0"
serves = "decide"
[[listener]]
address = "127.0.0.1:0"
[[upstream]]
name = "api"
servers = ["127.0.0.1:{upstream.port}"]
[[route]]
upstream = "api"
"""
        return self.weir(*rules, listeners=listeners, **more)


class SameAsTheProxy(SeveralWays):
    """The same sequence of costs has the same outcomes, whether weir proxies requests or Envoy asks about them."""

    ALGORITHMS = ({"algorithm": '"fixed_window"'}, {"algorithm": '"sliding_window"'}, {"algorithm": '"sliding_log"'}, {"burst": 30},
                  {"refill": '"stepwise"'}, {"algorithm": '"gcra"', "burst": 29}, {"algorithm": '"sliding_window"', "buckets": 10},
                  {"algorithm": '"fixed_window"', "penalty": '{ after = 3, for = "1h" }'})

    def test_calls_and_requests_have_the_same_outcomes_under_every_algorithm(self):
        for more in self.ALGORITHMS:
            seed = random.randrange(1 << 32)
            with self.subTest(seed=seed, **more):
                self.check(random.Random(seed), more)

    def check(self, chance, more):
        weir = self.weir_of_three(rule("sent", "30/1000day", key='["header:x-user"]', cost='{ header = "x-cost" }', **more),
                                  rule("asked", "30/1000day", key=by("user"), **more))
        asked = self.client(weir)
        with Client(weir.ports[2]) as sent:
            for _ in range(60):
                user, cost = chance.choice("abc"), chance.randint(1, 9)
                response = sent.get("/", x_user=user, x_cost=str(cost))
                answer = asked.ask("edge", {"user": user}, hits=cost)
                fields = fields_of(answer)
                self.assertEqual(answer.overall_code, {200: OK, 429: OVER_LIMIT}[response.status])
                for name in ("x-ratelimit-limit", "x-ratelimit-remaining"):
                    self.assertEqual(fields[name], response[name], name)
                self.assertEqual(str(answer.statuses[0].limit_remaining), response["x-ratelimit-remaining"])
                self.assertEqual("retry-after" in fields, "retry-after" in response)
                if "retry-after" in fields:
                    self.assertAlmostEqual(int(fields["retry-after"]), int(response["retry-after"]), delta=60)


class OneLimit(SeveralWays):
    """Limits are exact whatever the way by which requests and questions come."""

    def ask_all_ways(self, weir, limit):
        messages = self.client(weir).messages
        decide, proxy = weir.ports[1:]

        def ask(number):
            if number % 3 == 0:
                client = self.client(weir, messages=messages)
                return [code == OK for code in self.codes(client, 60, "edge", {"path": "/"})]
            with Client(decide if number % 3 == 1 else proxy) as client:
                if number % 3 == 2:
                    return [client.get("/").status == 200 for _ in range(60)]
                return [client.request("POST", "/v1/decide", body=b"{}").json()["allowed"] for _ in range(60)]

        results = together(9, ask)
        self.assertEqual(sum(map(sum, results)), limit)
        return results

    def test_limit_in_memory_is_exact_if_rls_and_decide_and_the_proxy_share_it(self):
        weir = self.weir_of_three(rule("all", "137/3000day", key="[]", **WINDOW))
        self.ask_all_ways(weir, 137)
        self.assertEqual(weir.metric("weir_decisions_total", rule="all", outcome="admitted"), 137)
        self.assertEqual(weir.metric("weir_decide_questions_total", api="rls"), 180)

    def test_limit_in_redis_is_exact_if_rls_and_decide_and_the_proxy_share_it(self):
        redis = self.start(Redis())
        weir = self.weir_of_three(rule("all", "137/3000day", key="[]", store='"redis"', **WINDOW),
                                  state=f'key_secret = "test"\nredis = {{ url = "{redis.url}", start_wait = "20s" }}')
        self.ask_all_ways(weir, 137)


if __name__ == "__main__":
    main()
