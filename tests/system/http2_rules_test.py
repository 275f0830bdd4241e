#!/usr/bin/env python3
"""Rules decide an HTTP/2 request like the same request in HTTP/1.1: each algorithm, key, match, cost and kind of refusal. Both
protocols share the counts of a client."""

from country_file import country_file
from harness import eventually, main, rule
from protocol_pair import Ask, NewClient, OldClient, PairTestCase

LONG = "5/3000day"  # its window does not end near the test


def plain(name, **more):
    """Returns a rule without the limit that rule() always writes."""
    return "\n".join(["[[rule]]", f'name = "{name}"', *(f"{key} = {value}" for key, value in more.items())]) + "\n"


def at(path, **more):
    return {"match": f'{{ path = "{path}" }}', **more}


ALGORITHMS = {
    "token_bucket": rule("token_bucket", "5/day", **at("/token_bucket")),
    "stepwise": rule("stepwise", "2/day", burst=5, refill='"stepwise"', **at("/stepwise")),
    "gcra": rule("gcra", "1/day", burst=4, algorithm='"gcra"', **at("/gcra")),
    "leaky_bucket": rule("leaky_bucket", "1/day", queue=0, algorithm='"leaky_bucket"', **at("/leaky_bucket")),
    "fixed_window": rule("fixed_window", LONG, algorithm='"fixed_window"', **at("/fixed_window")),
    "month": rule("month", "5/month", algorithm='"fixed_window"', align='"month"', **at("/month")),
    "sliding_log": rule("sliding_log", LONG, algorithm='"sliding_log"', **at("/sliding_log")),
    "sliding_window": rule("sliding_window", LONG, algorithm='"sliding_window"', **at("/sliding_window")),
    "buckets": rule("buckets", LONG, algorithm='"sliding_window"', buckets=7, **at("/buckets")),
    "concurrency": plain("concurrency", algorithm='"concurrency"', limit=3, **at("/concurrency")),
    "adaptive_concurrency": plain("adaptive_concurrency", algorithm='"adaptive_concurrency"', min=2, max=50, key="[]",
                                  **at("/adaptive_concurrency")),
}
COUNTING = [name for name in ALGORITHMS if "concurrency" not in name and name != "leaky_bucket"]


class Algorithms(PairTestCase):
    def test_each_algorithm_decides_and_reports_as_in_http_1_1(self):
        pair = self.pair(*ALGORITHMS.values())
        for name in ALGORITHMS:
            with self.subTest(name):
                count = 1 if "concurrency" in name else 7  # a permit is released shortly after the answer
                answers = self.same(pair, [Ask(f"/{name}")] * count)
                admitted = min(count, 1 if name == "leaky_bucket" else 5)
                self.assertEqual([each.status for each in answers], [200] * admitted + [429] * (count - admitted))
                self.assertTrue(answers[0]["ratelimit-policy"].startswith(f'"{name}";q='))

    def test_each_algorithm_charges_costs_as_in_http_1_1(self):
        pair = self.pair(*(ALGORITHMS[name] + 'cost = { header = "X-Cost" }\n' for name in COUNTING))
        for name in COUNTING:
            with self.subTest(name):
                statuses = self.statuses_of(pair, [Ask(f"/{name}", fields={"x_cost": cost}) for cost in ("2", "4", "3", "1", "6")])
                self.assertEqual(statuses, [200, 429, 200, 429, 429])

    def test_both_protocols_share_the_count_of_a_client(self):
        weir = self.plain_weir(*ALGORITHMS.values())
        old, new = self.start(OldClient(weir.port)), self.start(NewClient(weir.port))
        for name in COUNTING:
            with self.subTest(name):
                answers = [client.ask(Ask(f"/{name}")) for client in (old, new) * 3]
                self.assertEqual([each.status for each in answers], [200] * 5 + [429])
                self.assertEqual([each["x-ratelimit-remaining"] for each in answers], list("432100"))

    def test_stream_is_charged_to_all_of_its_rules_or_to_none(self):
        week = '{ days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], hours = "00:00-24:00" }'
        rules = rule("many", "9/day") + rule("few", "2/day", **at("/few")) + rule("hours", "9/day", match=week)
        answers = self.same(self.pair(rules), [Ask("/few")] * 4 + [Ask("/"), Ask("/few"), Ask("/")])
        self.assertEqual([each.status for each in answers], [200, 200, 429, 429, 200, 429, 200])
        self.assertEqual([answers[4]["x-ratelimit-remaining"], answers[6]["x-ratelimit-remaining"]], ["6", "5"])


class Limits(PairTestCase):
    def test_shadow_soft_and_overridden_limits_decide_as_in_http_1_1(self):
        rules = (rule("shadow", "1/day", mode='"shadow"', **at("/shadow")),
                 rule("soft", "4/day", soft='"50%"', **at("/soft")),
                 rule("other", "1/day", burst=3, match='{ path = "/other*" }',
                      overrides='[{ match = { path = "/other/few", query = { deep = true } }, limit = "1/day" }]'))
        pair = self.pair(*rules)
        self.assertEqual(self.statuses_of(pair, [Ask("/shadow")] * 3), [200] * 3)
        for weir in pair:
            self.await_metric(weir, 2, "weir_decisions_total", rule="shadow", outcome="shadow_refused")
        soft = self.same(pair, [Ask("/soft")] * 7)
        self.assertEqual([each.status for each in soft], [200] * 6 + [429])
        self.assertEqual(["x-ratelimit-exceeded" in each for each in soft], [False] * 4 + [True] * 2 + [False])
        asks = [Ask("/other/few?deep=1"), Ask("/other/few?%64eep=2"), *[Ask("/other/few")] * 4]
        self.assertEqual(self.statuses_of(pair, asks), [200, 429, 200, 200, 200, 429])

    def test_elastic_limit_admits_more_http2_requests_at_low_load(self):
        client = self.client(self.plain_weir(rule(limit="100/day", elastic='{ limit = "500/day", while_load_below = 1 }')))
        eventually(lambda: client.get("/")["x-ratelimit-limit"] == "500", "the elastic limit is used")

    def test_tiers_of_the_keys_file_apply_to_streams(self):
        keys = '[[key]]\nkey = "free-key"\nuser = "ann"\ntier = "free"\n[[key]]\nkey = "pro-key"\nuser = "bob"\ntier = "pro"\n'
        plan = rule("plan", "1/day", tiers='{ pro = { limit = "3/day" } }')
        pair = self.pair(plan, client='keys = "keys.toml"', files={"keys.toml": keys})
        for key, admitted in (("free-key", 1), ("pro-key", 3), ("unknown", 1)):
            statuses = self.statuses_of(pair, [Ask(fields={"x_api_key": key})] * 5)
            self.assertEqual(statuses, [200] * admitted + [429] * (5 - admitted), key)

    def test_unknown_api_keys_are_rejected(self):
        pair = self.pair(rule(), client='keys = "keys.toml"\nunknown_keys = "reject"', files={"keys.toml": '[[key]]\nkey = "known"\n'})
        answers = self.same(pair, [Ask(fields={"x_api_key": key}) for key in ("known", "unknown")])
        self.assertEqual([each.status for each in answers], [200, 401])


class Keys(PairTestCase):
    """Each value of the key is admitted once. So a second request with an equal value is refused."""

    CASES = {
        "api_key": [{"x_api_key": "a"}, {"x_api_key": "b"}],
        "user": [{"x_user": "a"}, {"x_user": "b"}],
        "org": [{"x_org": "a"}, {"x_org": "b"}],
        "service": [{"x_service": "a"}, {"x_service": "b"}],
        "device": [{"x_device": "a"}, {"x_device": "b"}],
        "ip": [{"x_forwarded_for": "203.0.113.7"}, {"x_forwarded_for": "198.51.100.7"}],
        "country": [{"x_forwarded_for": "203.0.113.8"}, {"x_forwarded_for": "198.51.100.8"}],
        "header:X-Tenant": [{"x_tenant": "a"}, {"x_tenant": "b"}],
        "cookie:session": [{"cookie": "session=a"}, {"cookie": "x=1; session=b"}],
    }
    CLIENT = 'trusted_proxies = ["127.0.0.0/8"]\ngeo = "c.mmdb"\n' + "".join(
        f'{name} = {{ header = "X-{name.title()}" }}\n' for name in ("user", "org", "service", "device"))
    FILES = {"c.mmdb": country_file({"203.0.113.0/24": "CH", "198.51.100.0/24": "DE"})}

    def test_each_attribute_that_is_read_from_a_field_can_be_a_key(self):
        rules = [rule(f"r{number}", "1/day", key=f'["{key}"]', **at(f"/{number}")) for number, key in enumerate(self.CASES)]
        pair = self.pair(*rules, client=self.CLIENT, files=self.FILES)
        for number, (key, (one, other)) in enumerate(self.CASES.items()):
            with self.subTest(key):
                asks = [Ask(f"/{number}", fields=fields) for fields in (one, one, other, other)]
                self.assertEqual(self.statuses_of(pair, asks), [200, 429, 200, 429])

    def test_each_attribute_that_is_read_from_the_request_line_can_be_a_key(self):
        cases = {"method": [Ask("/x/method"), Ask("/x/method", "PUT")],
                 "host": [Ask("/x/host", host="a.test"), Ask("/x/host", host="b.test:1")],
                 "path": [Ask("/x/path/a"), Ask("/x/path/b;c")], "query:q": [Ask("/x/query:q?q=a"), Ask("/x/query:q?r=1&%71=b+c")],
                 "route": [Ask("/x/route"), Ask("/x/route?other")], "upstream": [Ask("/x/upstream"), Ask("/x/upstream?other")],
                 "ip": [Ask("/x/ip"), None]}
        routes = '[[upstream]]\nname = "second"\nservers = ["127.0.0.1:{port}"]\n' \
                 '[[route]]\nname = "other"\nmatch = {{ query = {{ other = true }} }}\nupstream = "second"\n' \
                 '[[route]]\nname = "rest"\nupstream = "api"\n'
        rules = [rule(key.replace(":", "-"), "1/day", key=f'["{key}"]', match=f'{{ path = "/x/{key}*" }}') for key in cases]
        pair = self.pair(*rules, routes=routes.format(port=self.upstream.port))
        for key, (one, other) in cases.items():
            with self.subTest(key):
                asks = [one, one, other, other] if other else [one, one]
                self.assertEqual(self.statuses_of(pair, asks), [200, 429] * (len(asks) // 2))

    def test_setting_on_missing_decides_about_a_request_without_the_key(self):
        rules = [rule(name, "1/day", key='["header:X-Tenant"]', on_missing=f'"{name}"', **at(f"/{name}"))
                 for name in ("skip", "ip", "reject")]
        rules.append(rule("user", "1/day", key='["api_key"]', on_missing='"reject"', **at("/user")))
        pair = self.pair(*rules)
        for name, statuses in (("skip", [200, 200]), ("ip", [200, 429]), ("reject", [400, 400]), ("user", [401, 401])):
            self.assertEqual(self.statuses_of(pair, [Ask(f"/{name}")] * 2), statuses, name)

    def test_streams_of_one_connection_share_their_address_and_are_distinguished_by_their_api_keys(self):
        """A hundred streams are sent before the first answer is read."""
        weir = self.plain_weir(rule("ip", "40/day", **at("/ip", key='["ip"]')), rule("key", "3/day", **at("/key", key='["api_key"]')))
        client = self.client(weir)
        streams = [client.open(path="/ip") for _ in range(60)]
        keyed = [client.open(path="/key", fields=[("x-api-key", f"k{number % 8}")]) for number in range(40)]
        statuses = [client.read(stream).status for stream in streams]
        self.assertEqual((statuses.count(200), statuses.count(429)), (40, 20))
        by_key = [[client.read(stream).status for stream in keyed[number::8]] for number in range(8)]
        self.assertEqual([each.count(200) for each in by_key], [3] * 8)
        other = self.client(weir)
        self.assertEqual([other.get("/ip").status, other.get("/key", x_api_key="k1").status], [429, 429])
        self.assertEqual(self.client(weir, source="127.0.0.9").get("/ip").status, 200)

    def test_key_from_a_cookie_is_the_same_if_each_cookie_has_its_own_field(self):
        """HTTP/2 clients may send each cookie in a field of its own (RFC 9113, section 8.2.3)."""
        client = self.client(self.plain_weir(rule("session", "1/day", key='["cookie:session"]')))
        asks = [[("cookie", "a=1; session=x; b=2")], [("cookie", "b=2"), ("cookie", "session=x")],
                [("cookie", "session=y"), ("cookie", "a=1")]]
        self.assertEqual([client.request(fields=fields).status for fields in asks], [200, 429, 200])
        refused = client.request(fields=[("cookie", "session=x"), ("cookie", "session=z")])
        self.assert_own_refusal(refused, 400, "session")


class Conditions(PairTestCase):
    def test_each_condition_matches_as_in_http_1_1(self):
        conditions = {
            "methods": ('methods = ["PUT", "DELETE"]', Ask("/m", "PUT"), Ask("/m")),
            "path": ('path = "/a/login"', Ask("/a/%6cogin;v=1"), Ask("/a/other")),
            "regex": ('path = "~^/r/[0-9]+$"', Ask("/r/12"), Ask("/r/x")),
            "host": ('host = "shop.test"', Ask("/h", host="SHOP.test:8080"), Ask("/h", host="other.test")),
            "headers": ('headers = { X-Client = "~^mobile-", X-Is = true }', Ask("/f", fields={"x_client": "mobile-1", "x_is": ""}),
                        Ask("/f", fields={"x_client": "web"})),
            "query": ('query = { deep = "1" }', Ask("/q?deep=%31"), Ask("/q?deep=2")),
            "ip": ('ip = ["203.0.113.0/24"]', Ask("/i", fields={"x_forwarded_for": "203.0.113.9"}), Ask("/i")),
            "country": ('country = "CH"', Ask("/c", fields={"x_forwarded_for": "203.0.113.9"}), Ask("/c")),
            "body": ('path = "/b", body_contains = ["gift card"]', Ask("/b", "POST", body=b'{"t":"a GIFT\\u0020card"}'),
                     Ask("/b", "POST", body=b"none")),
            "not": ('not = { path = "/n*" }, headers = { X-Not = true }', Ask("/z", fields={"x_not": "1"}),
                    Ask("/n", fields={"x_not": "1"})),
        }
        for name, (condition, one, other) in conditions.items():
            with self.subTest(name):
                pair = self.pair(rule(name, "1/day", key="[]", match=f"{{ {condition} }}"), files=Keys.FILES,
                                 client='trusted_proxies = ["127.0.0.0/8"]\ngeo = "c.mmdb"')
                self.assertEqual(self.statuses_of(pair, [one, one, other, other]), [200, 429, 200, 200])

    def test_cost_may_be_in_a_header_field_the_query_or_the_body(self):
        pair = self.pair(rule("field", "100/day", cost='{ header = "X-Cost", scale = 100, default = 10 }', **at("/field")),
                         rule("query", "100/day", cost='{ query = "n" }', **at("/query")),
                         rule("json", "100/day", cost='{ json = "/amount" }', **at("/json")))
        def json(body):
            return Ask("/json", "POST", body=body)

        good = [Ask("/field", fields={"x_cost": "0.3"}), Ask("/field"), Ask("/query?n=30"), Ask("/query?n=3e1"),
                json(b'{"amount": 30}'), json(b'{"amount": "3e1"}')]
        self.assertEqual([each["x-ratelimit-remaining"] for each in self.same(pair, good)], ["70", "60", "70", "40", "70", "40"])
        for response in self.same(pair, [Ask("/field", fields={"x_cost": "-1"}), Ask("/query?n=x"), json(b"no"), json(b'{"amount":0}')]):
            self.assert_own_error(response, 400)
        for response in self.same(pair, [Ask("/field", fields={"x_cost": "1.01"}), Ask("/query?n=101"), json(b'{"amount":101}')]):
            self.assertEqual((response.status, "retry-after" in response), (429, False))

    def test_ambiguous_requests_are_refused_as_in_http_1_1(self):
        pair = self.pair(rule("signin", "9/day", **at("/signin")), rule("tenant", "9/day", key='["header:X-Tenant"]'),
                         rule("q", "9/day", key='["query:q"]'), server="max_parameters = 3\nmax_repeats = 2")
        asks = [Ask("/signin;a=%2Fx"), Ask("/x/..;/signin"), Ask("/a\\b"), Ask("/%00"), Ask("/", "get"), Ask("/?q=1&q=2"),
                Ask("/?a&b&c&d"), Ask("/?q&q&q"),
                Ask(fields=[("x-tenant", "a"), ("x-tenant", "b")]), Ask(fields=[("x-api-key", "a"), ("x-api-key", "b")])]
        for ask, response in zip(asks, self.same(pair, asks)):
            self.assertEqual(response.status, 400, ask)
        self.assertEqual(self.upstream.exchanges, [])


class Refusals(PairTestCase):
    def test_each_form_of_refusal_is_the_same_as_in_http_1_1(self):
        pair = self.pair(rule("json", "1/day", **at("/json")), rule("text", "1/day", status=503, body='"come later"', **at("/text")))
        asks = [Ask("/json"), Ask("/json"), Ask("/json", fields={"accept": "application/problem+json"}), Ask("/json", "HEAD"),
                Ask("/json", "POST", body=b"x" * 100), Ask("/text"), Ask("/text")]
        answers = self.same(pair, asks)
        self.assertEqual([each.status for each in answers], [200, 429, 429, 429, 429, 200, 503])
        self.assertEqual((answers[2]["content-type"], answers[6].body), ("application/problem+json", b"come later"))
        self.assertEqual((answers[3].body, answers[3].ended), (b"", True))

    def test_rate_limit_fields_are_the_same_as_in_http_1_1(self):
        said = 'X-RateLimit-Limit: 3\r\nX-RateLimit-Remaining: 2\r\nX-RateLimit-Reset: 9\r\nRateLimit: "theirs";r=1\r\nRetry-After: 7\r\n'
        self.upstream.reply = f"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{said}\r\nok".encode()
        for families in ('["x", "ietf"]', '["ietf"]', "[]"):
            told, = self.same(self.pair(rule(limit="10/day"), server=f"ratelimit_headers = {families}"), [Ask()])
            self.assertEqual(told.all("x-ratelimit-limit"), ["3"], families)
            self.assertEqual(len(told.all("ratelimit")), 2 if "ietf" in families else 1)

    def test_retry_after_of_a_server_applies_to_all_clients_as_in_http_1_1(self):
        self.upstream.reply = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\nRetry-After: 3000\r\n\r\nno"
        pair = self.pair(routes='[[route]]\nupstream = "api"\nhonor_upstream_retry_after = true')
        answers = self.same(pair, [Ask()] * 3)
        self.assertEqual(([each.status for each in answers], len(self.upstream.exchanges)), ([429] * 3, 2))
        self.assertIn(int(answers[2]["retry-after"]), range(2900, 3001))


if __name__ == "__main__":
    main()
