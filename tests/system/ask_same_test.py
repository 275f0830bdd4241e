#!/usr/bin/env python3
"""The same requests get the same decisions, whether weir proxies them or a program asks about them."""

import json

from ask_client import AskTestCase
from harness import main, rule

KEYS = '[[key]]\nkey = "k"\nuser = "ada"\n'
TRUST = 'trusted_proxies = ["127.0.0.0/8"]\nunknown_keys = "accept"\n'
# Each case: rules, and requests as (method, path, headers). X-Forwarded-For names the client in both ways.
ADA, BOB = {"X-Forwarded-For": "203.0.113.7"}, {"X-Forwarded-For": "203.0.113.8"}
ALGORITHMS = ({"algorithm": '"fixed_window"'}, {"algorithm": '"sliding_window"'}, {"algorithm": '"sliding_log"'}, {"burst": 3}, {"refill": '"stepwise"'},
              {"algorithm": '"sliding_window"', "buckets": 10}, {"algorithm": '"fixed_window"', "align": '"day"'}, {"algorithm": '"leaky_bucket"', "queue": 0})
MIXED = [("GET", "/", ADA), ("GET", "/", BOB), ("POST", "/a?cost=2", ADA), ("GET", "/", ADA), ("DELETE", "/b", ADA), ("GET", "/", BOB), ("GET", "/a?cost=9", BOB),
         ("GET", "/a?cost=1&cost=2", ADA), ("GET", "/%2e%2e/x", ADA), ("GET", "/", {**ADA, "X-Api-Key": "k"}), ("GET", "/", {**BOB, "Accept": "application/problem+json"}),
         ("GET", "/", ADA), ("GET", "/", ADA), ("OPTIONS", "*", ADA)]
# Fields that depend on the time of the request.
TIMED = {"x-ratelimit-reset", "retry-after", "ratelimit"}


class Same(AskTestCase):
    def send(self, weir, requests):
        """Sends the requests to the proxy. Returns the status, the rate-limit fields and the body of each answer."""
        proxied = []
        with weir.connect() as client:
            for method, path, headers in requests:
                got = client.request(method, path, {"Host": "api.example.com", **headers})
                fields = {name: got[name] for name in ("x-ratelimit-limit", "x-ratelimit-remaining", "ratelimit-policy", "www-authenticate", "content-type")}
                proxied.append((got.status, {**fields, **{name: name in got for name in TIMED}}, got.json() if got.status >= 400 else None))
        return proxied

    def ask(self, weir, requests):
        """Asks about the requests. Returns what send() returns."""
        asker = self.asker(weir)
        asked = []
        for method, path, headers in requests:
            answer = asker.decide(method=method, path=path, host="api.example.com", scheme="http", ip="127.0.0.1", headers=headers)
            got = {name.lower(): value for name, value in answer["headers"].items()}
            fields = {name: got.get(name) for name in ("x-ratelimit-limit", "x-ratelimit-remaining", "ratelimit-policy", "www-authenticate")}
            fields["content-type"] = answer.get("content_type")
            asked.append((answer["status"], {**fields, **{name: name in got for name in TIMED}}, json.loads(answer["body"]) if answer["status"] >= 400 else None))
        return asked

    def assert_same(self, rules, requests, **more):
        more.setdefault("client", TRUST)
        proxied = self.send(self.ask_weir(*rules, **more), requests)
        asked = self.ask(self.ask_weir(*rules, **more), requests)
        for number, (one, other) in enumerate(zip(proxied, asked)):
            with self.subTest(request=requests[number], number=number):
                if one[0] < 400:  # the upstream's type is not weir's
                    one[1]["content-type"] = other[1]["content-type"] = None
                for outcome in (one, other):
                    if outcome[2]:
                        outcome[2].pop("retry_after_seconds", None)
                        outcome[2].pop("message", None)
                self.assertEqual(one, other)
        self.assertEqual(len(proxied), len(asked))

    def test_every_algorithm(self):
        for more in ALGORITHMS:
            with self.subTest(**more):
                self.assert_same([rule("each", "3/1000day" if "align" not in more else "3/day", key='["ip"]', **more)], MIXED)

    def test_costs_conditions_and_several_rules(self):
        rules = [rule("all", "20/1000day", key="[]", algorithm='"fixed_window"'),
                 rule("cost", "5/1000day", key='["ip"]', cost='{ query = "cost", default = 1 }', match='{ path = "/a" }', algorithm='"fixed_window"'),
                 rule("deletes", "1/1000day", key='["ip", "path"]', match='{ methods = ["DELETE"] }', algorithm='"fixed_window"'),
                 rule("trial", "1/1000day", key='["ip"]', mode='"shadow"', algorithm='"fixed_window"')]
        self.assert_same(rules, MIXED * 2)

    def test_missing_values(self):
        for on_missing in ("skip", "reject", "ip"):
            with self.subTest(on_missing):
                self.assert_same([rule("keys", "2/1000day", key='["api_key"]', on_missing=f'"{on_missing}"', algorithm='"fixed_window"')], MIXED)

    def test_penalties_and_overrides(self):
        penalty = rule("minute", "2/1000day", key='["ip"]', penalty='{ for = "1h" }', algorithm='"fixed_window"')
        self.assert_same([penalty], MIXED)

    def test_unknown_keys(self):
        self.assert_same([rule("keys", "2/1000day", key='["ip"]')], MIXED, client='trusted_proxies = ["127.0.0.0/8"]\nunknown_keys = "reject"\nkeys = "keys.toml"\n', files={"keys.toml": KEYS})


if __name__ == "__main__":
    main()
