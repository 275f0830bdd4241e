#!/usr/bin/env python3
"""The same requests get the same decisions, whether weir proxies them or a program asks about them."""

import json

from ask_client import AskTestCase
from harness import main, rule

KEYS = '[[key]]\nkey = "k"\nuser = "ada"\n'
TRUST = 'trusted_proxies = ["127.0.0.0/8"]\n'
ADA, BOB = {"X-Forwarded-For": "203.0.113.7"}, {"X-Forwarded-For": "203.0.113.8"}  # name the client in both ways
PROBLEM = {"Accept": "application/problem+json"}
ALGORITHMS = ({"algorithm": '"fixed_window"'}, {"algorithm": '"sliding_window"'}, {"algorithm": '"sliding_log"'}, {"burst": 3},
              {"refill": '"stepwise"'}, {"algorithm": '"sliding_window"', "buckets": 10},
              {"algorithm": '"fixed_window"', "align": '"day"'}, {"algorithm": '"leaky_bucket"', "queue": 0})
# Requests, each with its method, path and header fields.
MIXED = [("GET", "/", ADA), ("GET", "/", BOB), ("POST", "/a?cost=2", ADA), ("GET", "/", ADA), ("DELETE", "/b", ADA), ("GET", "/", BOB),
         ("GET", "/a?cost=9", BOB), ("GET", "/a?cost=1&cost=2", ADA), ("GET", "/%2e%2e/x", ADA), ("GET", "/", {**ADA, "X-Api-Key": "k"}),
         ("GET", "/", {**BOB, **PROBLEM}), ("GET", "/", ADA), ("GET", "/", ADA), ("OPTIONS", "*", ADA)]
SAME = ("x-ratelimit-limit", "x-ratelimit-remaining", "ratelimit-policy", "www-authenticate")  # fields with the same values
TIMED = ("x-ratelimit-reset", "retry-after", "ratelimit")  # fields whose values depend on the time of the request


def outcome(status, fields, kind, body):
    """Returns what must be the same for a request and a question. `kind`: the type of the body."""
    refusal = None
    if status >= 400:
        refusal = (kind, {name: value for name, value in json.loads(body).items() if name not in ("retry_after_seconds", "message", "detail")})
    return status, [fields.get(name) for name in SAME], [name in fields for name in TIMED], refusal


class SameAsRequests(AskTestCase):
    def send(self, weir, requests):
        """Sends the requests to the proxy. Returns their outcomes."""
        outcomes = []
        with weir.connect() as client:
            for method, path, headers in requests:
                got = client.request(method, path, {"Host": "api.example.com", **headers})
                fields = {name: got[name] for name in SAME + TIMED if name in got}
                outcomes.append(outcome(got.status, fields, got["content-type"], got.body))
        return outcomes

    def ask(self, weir, requests):
        """Asks about the requests. Returns their outcomes."""
        outcomes = []
        asker = self.asker(weir)
        for method, path, headers in requests:
            got = asker.decide(method=method, path=path, host="api.example.com", scheme="http", ip="127.0.0.1", headers=headers)
            fields = {name.lower(): value for name, value in got["headers"].items()}
            outcomes.append(outcome(got["status"], fields, got.get("content_type"), got.get("body")))
        return outcomes

    def assert_same(self, rules, requests, client='unknown_keys = "accept"', **more):
        weirs = [self.ask_weir(*rules, client=TRUST + client, **more) for _ in range(2)]
        proxied, asked = self.send(weirs[0], requests), self.ask(weirs[1], requests)
        self.assertEqual(len(proxied), len(asked))
        for number, request in enumerate(requests):
            with self.subTest(request=request, number=number):
                self.assertEqual(proxied[number], asked[number])
        self.assertGreater(len({status for status, *_ in asked}), 1, "some requests pass, and some do not")

    def test_questions_and_requests_have_the_same_outcomes_under_every_algorithm(self):
        for more in ALGORITHMS:
            with self.subTest(**more):
                self.assert_same([rule("each", "3/1000day" if "align" not in more else "3/day", key='["ip"]', **more)], MIXED)

    def test_questions_and_requests_have_the_same_outcomes_with_costs_and_conditions(self):
        rules = [rule("all", "20/1000day", key="[]", algorithm='"fixed_window"'),
                 rule("cost", "5/1000day", key='["ip"]', cost='{ query = "cost", default = 1 }', match='{ path = "/a" }', algorithm='"fixed_window"'),
                 rule("deletes", "1/1000day", key='["ip", "path"]', match='{ methods = ["DELETE"] }', algorithm='"fixed_window"'),
                 rule("trial", "1/1000day", key='["ip"]', mode='"shadow"', algorithm='"fixed_window"')]
        self.assert_same(rules, MIXED * 2)

    def test_questions_and_requests_have_the_same_outcomes_if_a_key_is_missing(self):
        requests = [*MIXED, *[("GET", "/", {**ADA, "X-Api-Key": "k"})] * 2]
        for on_missing in ("skip", "reject", "ip"):
            with self.subTest(on_missing):
                limit = rule("keys", "2/1000day", key='["api_key"]', on_missing=f'"{on_missing}"', algorithm='"fixed_window"')
                self.assert_same([limit], requests)

    def test_questions_and_requests_have_the_same_outcomes_during_penalties(self):
        penalty = rule("minute", "2/1000day", key='["ip"]', penalty='{ for = "1h" }', algorithm='"fixed_window"')
        self.assert_same([penalty], MIXED)

    def test_questions_and_requests_have_the_same_outcomes_with_unknown_api_keys(self):
        client = 'unknown_keys = "reject"\nkeys = "keys.toml"'
        requests = [*MIXED, ("GET", "/", {"X-Api-Key": "unknown"})]
        self.assert_same([rule("keys", "2/1000day", key='["ip"]')], requests, client=client, files={"keys.toml": KEYS})


if __name__ == "__main__":
    main()
