#!/usr/bin/env python3
"""Tiers and conditions that come from the claims of bearer tokens."""

import pathlib
import tempfile

from explain_test import ExplainTestCase
from harness import Client, Upstream, Weir, config, get, logged_requests, main, rule, eventually
from token_test import Ed25519Issuer

CLIENT = """
tier = { claim = "plan" }
user = { claim = "sub" }
keys = "keys.toml"
jwt = { issuer = "login", jwks = "login.json" }
"""
KEYS = """
[[key]]
key = "silver-key"
tier = "silver"
[[key]]
key = "plain-key"
user = "bob"
"""
PLANS = rule("plan", "2/day", key='["user|api_key|ip"]', algorithm='"fixed_window"',
             tiers='{ gold = { limit = "7/day" }, silver = { limit = "4/day" } }')


class TokenClaims(ExplainTestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-test-")))
        self.issuer = Ed25519Issuer(self.folder, "login")
        self.upstream = self.start(Upstream())

    def begin(self, *rules, routes=""):
        self.log = self.folder / "access.log"
        text = config(self.upstream.port, rules="".join(rules), client=CLIENT, routes=routes).replace(
            'access = "off"', f'access = "{self.log}"\nfields = ["usual", "replay"]').replace("workers = 2", "workers = 1")
        self.weir = self.start(Weir(text, {"login.json": self.issuer.key_set("1"), "keys.toml": KEYS}))

    def limit(self, path="/", key=None, **claims):
        """Returns X-RateLimit-Limit of the answer to a request with such a token."""
        headers = {"authorization": f"Bearer {self.issuer.token('1', **claims)}"} if claims else {}
        answer = get(self.weir.port, path, **headers, **({"x_api_key": key} if key else {}))
        return answer.status, answer["x-ratelimit-limit"]

    def test_claim_chooses_the_tier_and_unknown_tiers_get_the_default(self):
        self.begin(PLANS)
        self.assertEqual(self.limit(plan="gold"), (200, "7"))
        self.assertEqual(self.limit(sub="eve", plan="platinum"), (200, "2"))
        self.assertEqual(self.limit(sub="joe", plan=["gold"]), (200, "2"), "a list is no tier")
        self.assertEqual(self.limit(sub="sam", plan="gold", exp=1), (200, "2"), "an expired token grants nothing")
        self.assertEqual(self.limit(), (200, "2"))
        self.assertEqual(self.limit(key="silver-key", sub="kim", plan="gold"), (200, "4"), "the keys file goes before the token")
        self.assertEqual(self.limit(key="plain-key", plan="gold"), (200, "7"), "the keys file names no tier")
        eventually(lambda: len(logged_requests(self.log)) == 7, "the log has all requests")
        self.assertEqual([line["replay"].get("tier") for line in logged_requests(self.log)],
                         ["gold", "platinum", None, None, None, "silver", "gold"])
        said = self.explain(headers={"Authorization": f"Bearer {self.issuer.token('1', plan='gold')}"})
        self.assertEqual((said["client"]["tier"], said["verdict"]["headers"]["X-RateLimit-Limit"]), ("gold", "7"))

    def test_conditions_on_claims_choose_the_rules(self):
        self.begin(rule("admins", "9/day", key='["user"]', match='{ claims = { scope = "admin", groups = "~^ops-" } }'),
                   rule("others", "3/day", key='["user|ip"]', match='{ not = { claims = { scope = "admin" } } }'))
        self.assertEqual(self.limit(scope="read admin", groups=["web", "ops-1"]), (200, "9"))
        self.assertEqual(self.limit(sub="joe", scope="read admin", groups=["web"]), (200, None), "neither rule applies")
        self.assertEqual(self.limit(sub="eve", scope="administrator", groups=["ops-1"]), (200, "3"))
        self.assertEqual(self.limit(sub="sam", scope="admin", groups=["ops-1"], iss="else"), (200, "3"), "a token of another issuer")
        self.assertEqual(self.limit(), (200, "3"))

    def test_usage_and_explanation_show_an_override_that_a_claim_chooses(self):
        override = '[{ match = { claims = { beta = true } }, limit = "11/day" }]'
        routes = '[[route]]\nmatch = { path = "/limits" }\nrespond = "usage"\n[[route]]\nupstream = "api"'
        self.begin(rule("r", "2/day", key='["user"]', overrides=override), routes=routes)
        self.assertEqual(self.limit(beta=True), (200, "11"))
        token = self.issuer.token("1", beta=True)
        usage = get(self.weir.port, "/limits", authorization=f"Bearer {token}").json()["limits"]
        self.assertEqual([(line["rule"], line["limit"], line["used"]) for line in usage], [("r", 11, 1)])
        said = self.explain(headers={"Authorization": f"Bearer {token}"})
        self.assertIn("11", said["verdict"]["headers"]["X-RateLimit-Limit"])

    def test_tier_of_a_token_decides_the_priority_of_its_requests(self):
        plans = rule("plan", "100/day", key='["ip"]', tiers='{ gold = { limit = "100/day", priority = 1 } }', match='{ path = "/plan" }')
        self.begin(plans, rule("all", "100/day", key='["ip"]'))
        for path in ("/plan", "/"):  # the second rule alone needs no token
            said = self.explain(path=path, headers={"Authorization": f"Bearer {self.issuer.token('1', plan='gold')}"})
            self.assertEqual(said["route"]["priority"], 1, path)


if __name__ == "__main__":
    main()
