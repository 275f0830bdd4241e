#!/usr/bin/env python3
"""A route with respond = "usage" shows each client its own limits, and charges nothing."""

import base64
import hashlib
import hmac
import json
import threading

from explain_test import ExplainTestCase
from harness import Redis, Weir, answer, config, eventually, main, rule, together
from http2_client import Http2TestCase

SECRET = "0123456789abcdef0123456789abcdef"
ROUTES = '[[route]]\nmatch = { path = "/usage" }\nrespond = "usage"\n[[route]]\nupstream = "api"\n'
BY_KEY = {"key": '["api_key"]', "algorithm": '"fixed_window"'}


def token(**claims):
    """Returns a token that is signed by SECRET."""
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "HS256"}, claims))
    signature = hmac.new(SECRET.encode(), head + b"." + body, hashlib.sha256).digest()
    return b".".join((head, body, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()


class UsageTestCase(Http2TestCase):
    def usage_weir(self, *rules, client='unknown_keys = "accept"', **more):
        return self.plain_weir(*rules, routes=ROUTES, client=client, **more)

    def usage(self, weir, **fields):
        got = weir.get("/usage", **fields)
        self.assertEqual((got.status, got["content-type"], got["cache-control"]), (200, "application/json", "no-store"))
        return got.json()["limits"]

    def numbers(self, weir, **fields):
        return {limit["rule"]: (limit["limit"], limit.get("used"), limit.get("remaining")) for limit in self.usage(weir, **fields)}


class Usage(UsageTestCase):
    def test_usage_shows_the_limits_of_the_asking_client(self):
        weir = self.usage_weir(rule("minute", "3/1000day", match='{ path = "/api/*" }', **BY_KEY), rule("all", "9/1000day", key="[]"),
                               rule("path", "9/1000day", key='["api_key", "path"]'),
                               rule("address", "100/1000day", burst=100, key='["ip"]'))
        self.assertEqual(self.statuses(weir.port, 4, "/api/a", x_api_key="ada"), [200] * 3 + [429])
        self.statuses(weir.port, 1, "/api/a", x_api_key="bob")
        limits = self.usage(weir, x_api_key="ada")
        self.assertEqual([limit["rule"] for limit in limits], ["minute", "address"])
        self.assertEqual((limits[0]["limit"], limits[0]["used"], limits[0]["remaining"]), (3, 3, 0))
        self.assertEqual(limits[0]["window_seconds"], 1000 * 86400)
        self.assertTrue(0 < limits[0]["reset_after_seconds"] <= 1000 * 86400)
        self.assertEqual(self.numbers(weir, x_api_key="bob"), {"minute": (3, 1, 2), "address": (100, 4, 96)})
        self.assertEqual(list(self.numbers(weir)), ["address"])

    def test_reading_the_usage_is_never_charged_or_refused_and_creates_no_key(self):
        weir = self.usage_weir(rule("all", "1/1000day", key='["ip"]'), rule("each", "5/1000day", **BY_KEY))
        before = weir.metric("weir_keys")
        for name in range(5):
            self.assertEqual(self.numbers(weir, x_api_key=f"key-{name}"), {"all": (1, 0, 1), "each": (5, 0, 5)})
        self.assertEqual(weir.metric("weir_keys"), before)
        self.assertEqual(weir.get("/", x_api_key="key-1").status, 200)
        self.assertEqual(self.numbers(weir, x_api_key="key-1"), {"all": (1, 1, 0), "each": (5, 1, 4)})
        self.assertEqual(weir.get("/", x_api_key="key-1").status, 429)
        self.assertNotIn("x-ratelimit-limit", weir.get("/usage"))

    def test_usage_shows_a_penalty_in_force(self):
        redis = self.start(Redis())
        rules = [rule(name, "1/1000day", penalty='{ for = "1h" }', store=f'"{name}"', **BY_KEY) for name in ("memory", "redis")]
        for name, limits in zip(("memory", "redis"), rules):
            with self.subTest(name):
                weir = self.usage_weir(limits, state=f'redis = {{ url = "redis://127.0.0.1:{redis.port}" }}')
                self.assertEqual(self.statuses(weir.port, 1, "/", x_api_key="ada"), [200])
                self.assertNotIn("penalty_seconds", self.usage(weir, x_api_key="ada")[0])
                self.assertEqual(self.statuses(weir.port, 1, "/", x_api_key="ada"), [429])
                for _ in range(2):  # reading the usage neither begins nor extends a penalty
                    limit, = self.usage(weir, x_api_key="ada")
                    self.assertTrue(0 < limit["penalty_seconds"] <= 3600, limit)
                    self.assertEqual(limit["remaining"], 0)
                self.assertNotIn("penalty_seconds", self.usage(weir, x_api_key="bob")[0])

    def test_usage_shows_the_limit_of_the_clients_tier(self):
        keys = '[[key]]\nkey = "ada"\ntier = "pro"\n[[key]]\nkey = "bob"\n'
        limits = rule("plan", "5/1000day", tiers='{ pro = { limit = "50/1000day" } }', **BY_KEY)
        pro = rule("only-pro", "7/1000day", match='{ tier = "pro" }', **BY_KEY)
        weir = self.start(Weir(config(self.upstream.port, rules=limits + pro, routes=ROUTES, client='keys = "keys.toml"'),
                               {"keys.toml": keys}))
        self.statuses(weir.port, 1, "/", x_api_key="ada")
        self.assertEqual(self.numbers(weir, x_api_key="ada"), {"plan": (50, 1, 49), "only-pro": (7, 1, 6)})
        self.assertEqual(self.numbers(weir, x_api_key="bob"), {"plan": (5, 0, 5)})

    def test_usage_shows_requests_in_progress(self):
        go = threading.Event()
        self.addCleanup(go.set)
        self.upstream.reply = lambda exchange: go.wait(20) and exchange.send(answer())
        weir = self.usage_weir(rule("flights", "3", key='["ip"]', algorithm='"concurrency"').replace('"3"', "3"))
        waiting = threading.Thread(target=weir.get, daemon=True)
        waiting.start()
        eventually(lambda: self.upstream.exchanges, "the request is under way")
        self.assertEqual(self.usage(weir), [{"rule": "flights", "limit": 3, "used": 1, "remaining": 2}])
        go.set()
        waiting.join()

    def test_token_is_verified_for_the_usage_if_a_limit_is_keyed_by_a_claim(self):
        client = f'unknown_keys = "accept"\njwt = {{ algorithm = "HS256", secret = "{SECRET}" }}\nuser = {{ claim = "sub" }}'
        weir = self.usage_weir(rule("user", "5/1000day", key='["user"]', algorithm='"fixed_window"'), client=client)
        ada = "Bearer " + token(sub="ada")
        self.statuses(weir.port, 2, "/", authorization=ada)
        self.assertEqual(self.numbers(weir, authorization=ada), {"user": (5, 2, 3)})
        self.assertEqual(self.usage(weir, authorization=ada[:-2]), [])

    def test_http2_clients_read_the_same_usage_as_http1_clients(self):
        weir = self.weir(rules=rule("minute", "3/1000day", **BY_KEY), routes=ROUTES, client='unknown_keys = "accept"')
        self.statuses(weir.port, 1, "/", x_api_key="ada")
        for secure in (False, True):
            got = self.client(weir, secure).get("/usage", x_api_key="ada")
            self.assertEqual((got.status, got.json()["limits"][0]["used"]), (200, 1))

    def test_reading_the_usage_many_times_at_once_charges_nothing(self):
        weir = self.usage_weir(rule("minute", "3/1000day", **BY_KEY))
        together(16, lambda _: self.assertEqual(self.statuses(weir.port, 20, "/usage", x_api_key="ada"), [200] * 20))
        self.assertEqual(self.numbers(weir, x_api_key="ada"), {"minute": (3, 0, 3)})


class UsageInRedis(UsageTestCase):
    def setUp(self):
        super().setUp()
        self.redis = self.start(Redis())

    def shared(self, **more):
        return self.usage_weir(rule("shared", "5/1000day", store='"redis"', **BY_KEY, **more), rule("here", "9/1000day", **BY_KEY),
                               state=f'redis = {{ url = "{self.redis.url}", timeout = "2s" }}')

    def test_usage_in_redis_shows_the_charges_of_all_instances_and_writes_nothing(self):
        one, other = self.shared(), self.shared()
        self.statuses(one.port, 1, "/", x_api_key="ada")
        self.statuses(other.port, 2, "/", x_api_key="ada")
        keys = set(self.redis.command("KEYS", "*"))
        for _ in range(3):
            self.assertEqual(self.numbers(other, x_api_key="ada"), {"shared": (5, 3, 2), "here": (9, 2, 7)})
            self.assertEqual(self.numbers(other, x_api_key="bob"), {"shared": (5, 0, 5), "here": (9, 0, 9)})
        self.assertLessEqual(set(self.redis.command("KEYS", "*")), keys)  # a key may expire meanwhile

    def test_usage_shows_no_numbers_of_redis_limits_while_redis_is_unreachable(self):
        weir = self.shared()
        self.redis.kill()
        eventually(lambda: "used" not in self.usage(weir, x_api_key="ada")[0], "weir notices that Redis is away")
        self.assertEqual(self.usage(weir, x_api_key="ada")[0], {"rule": "shared", "limit": 5, "window_seconds": 1000 * 86400})
        self.assertEqual(self.numbers(weir, x_api_key="ada")["here"], (9, 0, 9))


class Explained(ExplainTestCase):
    def test_explanation_of_the_usage_path_says_that_no_limit_is_checked(self):
        self.begin(rule("all", "1/1000day", key='["ip"]'), routes=ROUTES)
        said = self.explain(path="/usage")["verdict"]
        self.assertEqual((said["verdict"], said["status"]), ("answer", 200))
        self.assertIn("shows the client's own limits", said["why"])


if __name__ == "__main__":
    main()
