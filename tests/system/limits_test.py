#!/usr/bin/env python3
"""Rules from a client's view: bursts, refusals, keys, tiers, chains of proxies."""

import pathlib
import signal
import time

from harness import TestCase, Upstream, Weir, answer, config, eventually, get, main, request_bytes, rule, together

KEYS = """
[[key]]
key = "free-key"
user = "ann"
tier = "free"
[[key]]
key = "pro-key"
user = "bob"
tier = "pro"
"""


class Limits(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, *rules, files=None, **more):
        return self.start(Weir(config(self.upstream.port, rules="\n".join(rules), **more), files))

    def test_requests_after_a_burst_get_429_until_retry_after(self):
        weir = self.weir(rule(limit='1/2s', key='["ip"]', burst=3))
        with weir.connect() as client:
            self.assertEqual([client.get("/").status for _ in range(3)], [200] * 3)
            refused = client.get("/")
            self.check_refusal(refused)
            time.sleep(int(refused["retry-after"]))  # Retry-After promises that weir admits a request after this time
            self.assertEqual(client.get("/").status, 200)
        self.assertEqual(len(self.upstream.exchanges), 4)

    def test_rule_keyed_by_upstream_counts_the_requests_of_all_routes_to_the_upstream(self):
        other = f'[[upstream]]\nname = "other"\nservers = ["127.0.0.1:{self.upstream.port}"]\n'
        routes = "".join(f'[[route]]\nmatch = {{ path = "/{path}" }}\nupstream = "{name}"\n'
                         for path, name in (("a", "api"), ("b", "api"), ("c", "other")))
        own = '[[route]]\nrespond = { status = 200 }\n'
        weir = self.weir(rule(limit="2/day", key='["upstream"]'), routes=other + routes + own)
        statuses = [get(weir.port, path).status for path in ("/a", "/b", "/a", "/b", "/c", "/c", "/c", "/d", "/d", "/d")]
        self.assertEqual(statuses, [200, 200, 429, 429, 200, 200, 429, 200, 200, 200])

    def test_request_that_reached_no_server_is_refunded(self):
        weir = self.weir(rule(limit="10/day", key="[]"))
        with weir.connect() as client:
            self.assertEqual(client.get("/")["x-ratelimit-remaining"], "9")
            weir.signal(signal.SIGSTOP)  # so that weir writes to a connection that is closed already
            stopped = pathlib.Path(f"/proc/{weir.pid}/stat")
            eventually(lambda: stopped.read_text().rpartition(")")[2].split()[0] == "T", "the process has stopped")
            client.send(request_bytes("GET", "/"))
            self.upstream.__exit__()
            weir.signal(signal.SIGCONT)
            self.assert_own_error(client.read(), 502)
            self.start(Upstream(port=self.upstream.port))
            self.assertEqual(client.get("/")["x-ratelimit-remaining"], "8")

    def check_refusal(self, refused):
        wait = int(refused["retry-after"])
        self.assertEqual(refused.status, 429)
        self.assertIn(wait, (1, 2))
        self.assertEqual((refused["cache-control"], refused["content-type"]), ("no-store", "application/json"))
        self.assertEqual(refused.json(), {
            "error": "rate_limit_exceeded", "rule": "per-ip", "retry_after_seconds": wait,
            "message": f"Too many requests. Please retry after {wait} second{'s' if wait > 1 else ''}."})
        self.assertEqual((refused["x-ratelimit-limit"], refused["x-ratelimit-remaining"]), ("3", "0"))
        self.assertEqual(refused["ratelimit-policy"], '"per-ip";q=3;w=6')
        self.assertEqual(refused["ratelimit"], f'"per-ip";r=0;t={wait}')
        self.assertLessEqual(abs(int(refused["x-ratelimit-reset"]) - time.time() - 6), 2)

    def test_admitted_responses_show_the_remaining_count(self):
        weir = self.weir(rule(limit="10/day", key='["ip"]'))
        with weir.connect() as client:
            self.assertEqual([client.get("/")["x-ratelimit-remaining"] for _ in range(3)], ["9", "8", "7"])
            self.assertRegex(client.get("/")["ratelimit"], r'^"per-ip";r=6;t=\d+$')

    def test_headers_show_the_stricter_limit_if_weir_and_the_upstream_both_state_one(self):
        said = 'X-RateLimit-Limit: 3\r\nX-RateLimit-Remaining: {}\r\nRateLimit: "theirs";r=1\r\n'
        weir = self.weir(rule(limit="10/day", key='["ip"]'))
        for theirs, limits, left in ((20, ["10"], ["9"]), (2, ["3"], ["2"])):
            self.upstream.reply = answer(headers=said.format(theirs))
            told = weir.get("/")
            self.assertEqual((told.all("x-ratelimit-limit"), told.all("x-ratelimit-remaining")), (limits, left))
            self.assertEqual([line.partition(";")[0] for line in told.all("ratelimit")], ['"theirs"', '"per-ip"'])

    def test_setting_ratelimit_headers_chooses_which_rate_limit_fields_are_sent(self):
        weir = self.weir(rule(), server='ratelimit_headers = ["ietf"]')
        response = weir.get("/")
        self.assertEqual(("x-ratelimit-limit" in response, "ratelimit" in response), (False, True))

    def test_refusal_is_a_problem_details_document_if_accept_asks_for_it(self):
        weir = self.weir(rule(limit="1/day"))
        weir.get("/")
        refused = weir.get("/", accept="application/problem+json")
        self.assertEqual((refused.status, refused["content-type"]), (429, "application/problem+json"))
        problem = refused.json()
        self.assertEqual((problem["status"], problem["violated-policies"]), (429, ["per-ip"]))

    def test_error_response_has_no_rate_limit_headers_of_an_earlier_request(self):
        weir = self.weir(rule(limit="1/day"), server='max_body = "1KiB"')
        for _ in range(8):  # so that both workers reuse memory of earlier requests
            weir.get("/")
            with weir.connect() as client:
                refused = client.request("POST", "/", body=b"x" * 5000)
            self.assertEqual(refused.status, 413)
            self.assertEqual([refused[name] for name in ("ratelimit", "x-ratelimit-limit", "retry-after")], [None] * 3)

    def test_limits_are_exact_for_many_concurrent_clients(self):
        weir = self.weir(rule(limit="1/day", burst=100, key="[]"))
        statuses = sum(together(8, lambda _: self.statuses(weir.port, 50)), [])
        self.assertEqual((statuses.count(200), statuses.count(429)), (100, 300))
        self.assertEqual(len(self.upstream.exchanges), 100)
        self.await_metric(weir, 300, "weir_decisions_total", rule="per-ip", outcome="refused")

    def test_gcra_admits_one_request_plus_the_burst(self):
        weir = self.weir(rule(limit="1/day", burst=4, algorithm='"gcra"', key='["ip"]'))
        self.assertEqual(self.statuses(weir.port, 8), [200] * 5 + [429] * 3)

    def test_refused_request_is_not_charged_by_any_rule(self):
        weir = self.weir(rule("everybody", "1/day", burst=5, key="[]"), rule("each", "1/day", burst=2, key='["api_key"]'))
        self.assertEqual(self.statuses(weir.port, 4, x_api_key="a"), [200, 200, 429, 429])
        self.assertEqual(self.statuses(weir.port, 4, x_api_key="b"), [200, 200, 429, 429])
        self.assertEqual(self.statuses(weir.port, 4, x_api_key="c"), [200, 429, 429, 429])
        self.assertEqual(get(weir.port, x_api_key="d").json()["rule"], "everybody")

    def test_longest_wait_of_several_refusals_is_reported(self):
        weir = self.weir(rule("short", "1/10s", key="[]"), rule("long", "1/h", key="[]"))
        weir.get("/")
        refused = weir.get("/")
        self.assertEqual((refused.json()["rule"], refused["retry-after"]), ("long", "3600"))

    def test_tier_of_a_client_comes_from_the_keys_file(self):
        tiers = '{ free = { limit = "1/day", burst = 1 }, pro = { limit = "1/day", burst = 3 } }'
        weir = self.weir(rule(limit="1/day", burst=2, key='["api_key|ip"]', tiers=tiers), client='keys = "keys.toml"',
                         files={"keys.toml": KEYS})
        self.assertEqual(self.statuses(weir.port, 5, x_api_key="free-key").count(200), 1)
        self.assertEqual(self.statuses(weir.port, 5, x_api_key="pro-key").count(200), 3)
        self.assertEqual(self.statuses(weir.port, 5).count(200), 2)
        self.assertEqual(get(weir.port, x_api_key="invented").status, 429, "an unknown key is limited by its address")

    def test_unknown_api_keys_can_be_rejected(self):
        weir = self.weir(rule(limit="100/s"), client='keys = "keys.toml"\nunknown_keys = "reject"', files={"keys.toml": KEYS})
        rejected = get(weir.port, x_api_key="invented")
        self.assert_own_error(rejected, 401)
        self.assertEqual(rejected["www-authenticate"], "ApiKey")
        self.assertEqual(get(weir.port, x_api_key="pro-key").status, 200)

    def test_spoofed_forwarded_address_is_ignored(self):
        weir = self.weir(rule(limit="1/day", burst=2, key='["ip"]'))
        statuses = [get(weir.port, x_forwarded_for=f"10.1.1.{number}").status for number in range(5)]
        self.assertEqual(statuses, [200, 200, 429, 429, 429])

    def test_rightmost_untrusted_address_behind_trusted_proxies_is_the_client(self):
        weir = self.weir(rule(limit="1/day", key='["ip"]'), client='trusted_proxies = ["127.0.0.0/8"]')
        self.assertEqual(get(weir.port, x_forwarded_for="9.9.9.1, 203.0.113.7").status, 200)
        self.assertEqual(get(weir.port, x_forwarded_for="9.9.9.2, 203.0.113.7").status, 429)
        self.assertEqual(get(weir.port, x_forwarded_for="9.9.9.2, 203.0.113.7, 127.0.0.3").status, 429)
        self.assertEqual(get(weir.port, x_forwarded_for="203.0.113.8").status, 200)

    def test_ipv6_clients_are_grouped_by_prefix(self):
        weir = self.weir(rule(limit="1/day", key='["ip"]'), client='trusted_proxies = ["127.0.0.0/8"]')
        self.assertEqual(get(weir.port, x_forwarded_for="2001:db8:0:1::1").status, 200)
        self.assertEqual(get(weir.port, x_forwarded_for="2001:db8:0:1:ffff::2").status, 429)
        self.assertEqual(get(weir.port, x_forwarded_for="2001:db8:0:2::1").status, 200)

    def test_user_header_is_used_only_from_trusted_proxies(self):
        user = 'user = { header = "X-User-ID" }'
        believed = self.weir(rule(limit="1/day", key='["user|ip"]'), client=f'trusted_proxies = ["127.0.0.0/8"]\n{user}')
        self.assertEqual([get(believed.port, x_user_id=user).status for user in "ab"], [200, 200])
        doubted = self.weir(rule(limit="1/day", key='["user|ip"]'), client=user)
        self.assertEqual([get(doubted.port, x_user_id=user).status for user in "ab"], [200, 429])

    def test_api_key_that_looks_like_an_address_has_a_limit_of_its_own(self):
        weir = self.weir(rule(limit="1/day", key='["api_key|ip"]'))
        self.assertEqual([weir.get("/").status, get(weir.port, x_api_key="127.0.0.1").status], [200, 200])

    def test_rule_can_limit_one_endpoint(self):
        weir = self.weir(rule("login", "1/day", key='["ip"]', match='{ path = "/login", methods = ["POST"] }'))
        with weir.connect() as client:
            self.assertEqual([client.request("POST", path).status for path in ("/login", "//login", "/./login", "/%6cogin")],
                             [200, 429, 429, 429])
            self.assertEqual([client.get("/login").status, client.request("POST", "/login/").status], [200, 200])

    def test_shadow_rule_counts_but_refuses_nothing(self):
        weir = self.weir(rule("tried", "1/day", key="[]", mode='"shadow"'), rule("real", "1/day", burst=3, key="[]"))
        self.assertEqual(self.statuses(weir.port, 5), [200] * 3 + [429] * 2)
        eventually(lambda: weir.metric("weir_decisions_total", rule="tried", outcome="shadow_refused") >= 2, "two shadow refusals")

    def test_setting_on_missing_decides_about_a_request_without_an_attribute_of_the_key(self):
        for name, key, on_missing, expected in (("skipped", '["api_key"]', "skip", [200, 200]),
                                                ("by ip", '["api_key"]', "ip", [200, 429]),
                                                ("credential", '["api_key"]', "reject", [401, 401]),
                                                ("plain", '["header:X-Plan"]', "reject", [400, 400])):
            with self.subTest(name):
                weir = self.weir(rule(limit="1/day", key=key, on_missing=f'"{on_missing}"'))
                self.assertEqual(self.statuses(weir.port, 2), expected)

    def test_responses_by_weir_itself_are_charged(self):
        weir = self.weir(rule(limit="1/day", burst=2, key="[]"),
                         routes='[[route]]\nmatch = { path = "/pong" }\nrespond = { status = 200, body = "pong" }')
        self.assertEqual([weir.get("/pong").body, weir.get("/nowhere").status, weir.get("/pong").status], [b"pong", 404, 429])

    def test_refused_upload_gets_429_and_its_connection_stays_usable(self):
        weir = self.weir(rule(limit="1/day", key="[]"))
        weir.get("/")
        with weir.connect() as client:
            client.send(request_bytes("POST", "/", body=b"x" * 1000))
            self.assertEqual(client.read().status, 429)
            client.send(request_bytes("GET", "/"))
            self.assertEqual(client.read().status, 429)
        with weir.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 100_000)
            self.assertEqual(client.read().status, 429)
        self.assertEqual(len(self.upstream.exchanges), 1)


if __name__ == "__main__":
    main()
