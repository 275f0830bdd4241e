#!/usr/bin/env python3
"""Identities and conditions of rules: tokens, countries, overrides, hours, queries."""

import base64
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

from country_file import country_file
from harness import TestCase, Upstream, Weir, config, eventually, get, main, request_bytes, rule

PROXIED = 'trusted_proxies = ["127.0.0.0/8"]'


def base64url(octets):
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


class Issuer:
    """Signs tokens with a key of its own, using the openssl program."""

    def __init__(self, folder):
        self.key = pathlib.Path(folder) / "jwt.key"
        self.openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.key)
        self.public = self.openssl("pkey", "-in", self.key, "-pubout").decode()

    @staticmethod
    def openssl(*arguments, stdin=b""):
        return subprocess.run(["openssl", *arguments], input=stdin, check=True, capture_output=True).stdout

    def token(self, **claims):
        text = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
        return text + "." + base64url(self.openssl("dgst", "-sha256", "-sign", self.key, stdin=text.encode()))


class Identity(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, *rules, files=None, **more):
        return self.start(Weir(config(self.upstream.port, rules="\n".join(rules), **more), files))

    def test_claim_of_a_verified_token_can_be_a_key(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        issuer = Issuer(folder)
        weir = self.weir(rule(limit="1/day", burst=2, key='["claim:sub|ip"]'), files={"jwt.pem": issuer.public},
                         client='jwt = { algorithm = "RS256", public_key = "jwt.pem" }')

        def ask(token):
            return get(weir.port, authorization=f"Bearer {token}").status

        soon = int(time.time()) + 3600
        ann, bob = issuer.token(sub="ann", exp=soon), issuer.token(sub="bob", exp=soon)
        self.assertEqual([ask(ann), ask(bob), ask(issuer.token(sub="ann", jti="another")), ask(bob)], [200] * 4)
        self.assertEqual([ask(ann), ask(bob)], [429, 429])
        # The claims of an unverified token are ignored, so its clients share the limit of their address.
        head, claims, _ = ann.split(".")
        none = base64url(b'{"alg":"none"}')
        self.assertEqual([ask(issuer.token(sub="eve", exp=soon - 7200)), ask(f"{none}.{claims}.")], [200, 200])
        self.assertEqual([ask(f"{head}.{claims}.{base64url(bytes(256))}"), ask("rubbish"), weir.get("/").status], [429] * 3)

    def test_rule_can_require_a_claim(self):
        weir = self.weir(rule(limit="9/day", key='["claim:sub"]', on_missing='"reject"'),
                         client=f'jwt = {{ algorithm = "HS256", secret = "{"s" * 32}" }}')
        self.assert_own_error(weir.get("/"), 401)

    def test_rule_can_match_the_country_of_the_client(self):
        weir = self.weir(rule("abroad", "1/day", key='["ip"]', match='{ not = { country = ["CH", "LI"] } }'),
                         rule("by-country", "1/day", burst=3, key='["country"]'),
                         client=f'{PROXIED}\ngeo = "c.mmdb"',
                         files={"c.mmdb": country_file({"203.0.113.0/24": "CH", "198.51.100.0/24": "DE", "2001:db8::/32": "LI"})})

        def ask(address, count):
            return [get(weir.port, x_forwarded_for=address).status for _ in range(count)]

        self.assertEqual(ask("203.0.113.7", 2) + ask("203.0.113.8", 2), [200] * 3 + [429])
        self.assertEqual(ask("198.51.100.7", 2) + ask("198.51.100.8", 2), [200, 429] * 2)
        self.assertEqual(ask("2001:db8::1", 4), [200] * 3 + [429])
        self.assertEqual(ask("192.0.2.1", 2), [200, 429], "an address without a country is not in CH")

    def test_first_matching_override_applies_and_counts_separately(self):
        overrides = ('[{ match = { path = "/search", query = { deep = true } }, limit = "1/day" },'
                     ' { match = { path = "/search" }, limit = "1/day", burst = 2 }]')
        weir = self.weir(rule(limit="1/day", burst=3, key='["ip"]', overrides=overrides))
        self.assertEqual(self.statuses(weir.port, 3, "/search?deep=1"), [200, 429, 429])
        self.assertEqual(self.statuses(weir.port, 3, "/search"), [200, 200, 429])
        self.assertEqual(self.statuses(weir.port, 4, "/else"), [200, 200, 200, 429])
        self.assertEqual(self.statuses(weir.port, 1, "/search?%64eep"), [429], "a parameter name is compared after decoding")

    def test_request_header_can_state_the_cost(self):
        weir = self.weir(rule(limit="100/day", key='["ip"]', cost='{ header = "X-Cost", default = 10, scale = 100 }'))
        with weir.connect() as client:
            self.assertEqual([client.get("/", x_cost=cost)["x-ratelimit-remaining"] for cost in ("0.3", "0.201", "0.09")],
                             ["70", "49", "40"])
            self.assertEqual(client.get("/")["x-ratelimit-remaining"], "30")
            refused = client.get("/", x_cost="0.31")
            self.assertEqual((refused.status, refused["x-ratelimit-remaining"]), (429, "30"))
            for faulty in ("-1", "x", "0", "1e", "1e400", "21474836.49"):
                answer = client.get("/", x_cost=faulty)
                self.assert_own_error(answer, 400)
                self.assertIn("header X-Cost", answer.json()["message"])
            self.assertEqual(client.get("/", x_cost="0.30").status, 200, "requests with an invalid cost charged nothing")
            never = client.get("/", x_cost="1.01")
            self.assertEqual((never.status, "retry-after" in never), (429, False))

    def test_soft_limit_admits_its_margin_and_reports_that_the_limit_is_exceeded(self):
        weir = self.weir(rule(limit="4/day", key='["ip"]', soft='"50%"'))
        with weir.connect() as client:
            answers = [client.get("/") for _ in range(7)]
        self.assertEqual([answer.status for answer in answers], [200] * 6 + [429])
        self.assertEqual([answer["x-ratelimit-remaining"] for answer in answers], ["3", "2", "1", "0", "0", "0", "0"])
        self.assertEqual(["x-ratelimit-exceeded" in answer for answer in answers], [False] * 4 + [True] * 2 + [False])
        self.assertEqual((answers[4]["x-ratelimit-exceeded"], answers[4]["x-ratelimit-limit"]), ("soft", "4"))

    def test_elastic_limit_admits_more_at_low_load(self):
        weir = self.weir(rule(limit="100/day", key='["ip"]', elastic='{ limit = "500/day", while_load_below = 1 }'))
        eventually(lambda: weir.get("/")["x-ratelimit-limit"] == "500", "the elastic limit is used")
        self.assertEqual(weir.metric("weir_decisions_total", rule="per-ip", outcome="shadow_refused"), 0)

    def test_conflicting_api_keys_are_rejected_before_any_rule(self):
        headers = ("X-API-Key: A\r\nX-API-Key: B", "X-API-Key:\r\nX-API-Key: A")
        schemes = ("Authorization: Bearer A\r\nAuthorization: Basic x",)
        for source, path, twice in ('{ header = "X-API-Key" }', "/", headers), ("{ bearer = true }", "/", schemes), \
                ('{ query = "key" }', "/?key=&key=A", ("X: y",)), ('{ query = "key" }', "/?key=junk&k%65y=A", ("X: y",)):
            folder = self.enterContext(tempfile.TemporaryDirectory())
            log = pathlib.Path(folder) / "access.log"
            text = config(self.upstream.port, client=f"api_key = {source}",
                          rules=rule(limit="9/day", key='["api_key"]', on_missing='"skip"'))
            weir = self.start(Weir(text.replace('access = "off"', f'access = "{log}"')))
            for lines in twice:
                with weir.connect() as client:
                    client.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n".encode())
                    refused = client.read()
                    self.assert_own_error(refused, 400)
                    self.assertEqual(refused.json()["message"], "the request carries more than one API key")
                    self.assertNotIn("x-ratelimit-limit", refused)
                    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                    self.assertEqual(client.read().status, 200, "the connection stays open")
            self.await_metric(weir, len(twice), "weir_client_errors_total", kind="bad_head")
            eventually(lambda: log.exists() and log.read_text().count("ambiguous_credential") == len(twice), "the log has the reason")
        self.assertEqual({exchange.target for exchange in self.upstream.exchanges}, {"/"})

    def test_conflicting_identity_cookies_are_rejected(self):
        weir = self.weir(rule(limit="2/day", key='["device"]'), client='device = { cookie = "d" }')
        with weir.connect() as client:
            for cookies, status in (("Cookie: d=A; d=B", 400), ("Cookie: d=A\r\nCookie: a=b; d=", 400),
                                    ("Cookie: d=A; d=A", 200), ("Cookie: d=A\r\nCookie: d=A", 200), ("Cookie: d=A", 429)):
                client.send(f"GET / HTTP/1.1\r\nHost: a\r\n{cookies}\r\n\r\n".encode())
                response = client.read()
                self.assertEqual(response.status, status, cookies)
                if status == 400:
                    self.assertEqual(response.json()["message"], "the request names more than one device")

    def test_header_name_with_underscores_is_not_read_as_the_name_with_hyphens(self):
        twins = {"X_API_Key": "A", "X_Forwarded_For": "6.6.6.6", "Transfer_Encoding": "chunked"}
        for server, arrives in (("", False), ("underscores_in_headers = true", True)):
            weir = self.weir(rule(limit="9/day", key='["api_key"]'), server=server)
            with weir.connect() as client:
                client.send(request_bytes("GET", "/", {**twins, "X-API-Key": "B", "X-Plain": "a_b"}))
                self.assertEqual(client.read().status, 200)
            head = self.upstream.exchanges[-1].head
            # A server could read X_Forwarded_For as X-Forwarded-For. weir sets that field, and untrusted clients must not.
            self.assertEqual([name in head for name in twins], [arrives, False, arrives], head.raw)
            as_cgi = [name.upper().replace("-", "_") for name, _ in head.fields]
            self.assertEqual(as_cgi.count("X_API_KEY"), 1 + arrives, head.raw)
            self.assertEqual((head["x-api-key"], head["x-plain"]), ("B", "a_b"))

    def forwarded(self, fields, client="", server=""):
        """Sends a request with these fields. Returns the fields that the server receives."""
        weir = self.weir(rule(limit="99/s"), client=client, server=server)
        with weir.connect() as connection:
            connection.send(request_bytes("GET", "/", fields))
            self.assertEqual(connection.read().status, 200)
        return self.upstream.exchanges[-1].head

    def admitted_of(self, addresses):
        """Sends one request from each of these addresses, as a trusted proxy reports them. Each client may send one request.
        Returns the number of admitted requests."""
        weir = self.weir(rule(limit="1/day", key='["ip"]'), client=PROXIED)
        return [get(weir.port, x_forwarded_for=address).status for address in addresses].count(200)

    def test_ipv4_hosts_behind_nat64_or_6to4_have_separate_limits(self):
        for block in ("64:ff9b::{:x}", "64:ff9b:1::{:x}", "::ffff:0:cb00:{:x}", "2002:cb00:{:x}::1", "2001:0:102:304:0:ffff:34ff:{:x}",
                      "fe80::{:x}", "fe80::{:x}%eth0"):
            with self.subTest(block):
                self.assertEqual(self.admitted_of([block.format(0x7100 + host) for host in range(20)]), 20)
        for same in (["2001:db8::1", "2001:db8::2"], ["64:ff9b::203.0.113.7", "203.0.113.7", "::ffff:203.0.113.7", "2002:cb00:7107::9"],
                     ["2001:0:102:304:0:ffff:34ff:8ef8", "2001:0:506:708:8000:1111:34ff:8ef8"], ["fe80::1%eth0", "fe80::1%eth1", "fe80::1"]):
            with self.subTest(same):
                self.assertEqual(self.admitted_of(same), 1)

    def test_leading_zeros_in_a_forwarded_address_are_invalid_in_ipv4_but_not_in_mapped_ipv6(self):
        """If the forwarded address is unreadable, the limit applies to the address of the proxy."""
        self.assertEqual(self.admitted_of(["203.0.113.007", "127.0.0.1"]), 1)
        self.assertEqual(self.admitted_of(["203.0.113.007", "203.0.113.7"]), 2)
        self.assertEqual(self.admitted_of(["::203.0.113.7", "203.0.113.7"]), 1)

    def test_rule_applies_to_every_spelling_of_an_ipv6_host(self):
        weir = self.weir(rule(limit="1/day", key="[]", match='{ host = "[::1]" }'))
        spellings = ("[::1]", "[0:0:0:0:0:0:0:1]", "[::0001]", "[::1]:8080", "[0000:0000:0000:0000:0000:0000:0000:0001]:80")
        self.assertEqual([get(weir.port, host=host).status for host in spellings], [200] + [429] * 4)

    WHO = {"X-Real-IP": "6.6.6.6", "X-Forwarded-User": "root", "X-Forwarded-Client-Cert": "Hash=1", "X-Forwarded-Port": "1",
           "X-Forwarded-Prefix": "/admin", "True-Client-IP": "6.6.6.6", "X-Original-URL": "/admin", "X-Rewrite-URL": "/admin",
           "X-SSL-Client-Verify": "SUCCESS", "x-ssl-client-s-dn": "CN=root", "Proxy": "evil.example:80", "Client-IP": "6.6.6.6",
           "CF-Connecting-IP": "6.6.6.6", "X-User-ID": "root", "x-org-id": "root", "X-Service": "root"}
    IDENTITY = 'user = { header = "X-User-ID" }\norg = { header = "X-Org-ID" }\nservice = { header = "X-Service" }\n' \
               'device = { header = "X-Device" }\n'

    def test_identity_header_fields_are_forwarded_only_from_trusted_peers(self):
        plain = {"X-API-Key": "k", "X-Device": "d", "X-Requested-With": "x", "Authorization": "Basic x"}
        for client, arrive in (("", False), (PROXIED + "\n", True)):
            head = self.forwarded({**self.WHO, **plain}, client + self.IDENTITY)
            self.assertEqual([name for name in self.WHO if (name in head) != arrive], [], head.raw)
            self.assertEqual([name for name in plain if name not in head], [], head.raw)
            self.assertEqual(head["x-forwarded-for"], "127.0.0.1")

    def test_every_documented_identity_field_is_forwarded_only_from_trusted_peers(self):
        page = pathlib.Path(os.environ.get("WEIR_SOURCE", "."), "docs", "security.md").read_text().split("## Fields of trusted proxies")[1].split("\n\nCase does not matter")[0]
        names = re.findall("`([A-Z][A-Za-z0-9-]*[*]?)`", page)
        self.assertGreater(len(names), 60)
        said = {name.replace("*", "Anything"): "x" for name in names if "Forwarded" not in name}
        for client, arrive in (("", False), (PROXIED + "\n", True)):
            head = self.forwarded(said, client)
            self.assertEqual([name for name in said if (name in head) != arrive], [], head.raw)

    def test_no_spelling_of_an_identity_field_is_forwarded_from_untrusted_peers(self):
        twins = {"X_Real_IP": "1", "x_forwarded_user": "1", "X_User_ID": "1", "X.Real.IP": "1", "X-REAL-ip": "1"}
        head = self.forwarded(twins, self.IDENTITY, server="underscores_in_headers = true")
        self.assertEqual([name for name in twins if name in head], [], head.raw)

    def test_list_of_identity_fields_of_trusted_proxies_can_be_extended_or_empty(self):
        more = {"X-Auth-User": "root", "x-auth-groups": "wheel", "X-Tenant": "t"}
        longer = 'trusted_fields = ["X-Auth-*", "X-Tenant"]\n' + self.IDENTITY
        head = self.forwarded({**self.WHO, **more}, longer)
        self.assertEqual([name for name in (*self.WHO, *more) if name in head], [], head.raw)
        head = self.forwarded({**self.WHO, **more}, "trusted_fields = []\n" + self.IDENTITY)
        self.assertEqual([name for name in (*self.WHO, *more) if name not in head], [], head.raw)

    def test_rule_can_match_hours_of_the_day(self):
        now = time.gmtime(time.time() + 6 * 3600)  # the middle of the range, so that the duration of the test does not matter
        before = time.gmtime(time.time() - 6 * 3600)
        hours = f"{before.tm_hour:02}:{before.tm_min:02}-{now.tm_hour:02}:{now.tm_min:02}"
        weir = self.weir(rule("now", "1/day", key="[]", match=f'{{ path = "/now", hours = "{hours}" }}'),
                         rule("later", "1/day", key="[]", match=f'{{ path = "/later", not = {{ hours = "{hours}" }} }}'))
        self.assertEqual(self.statuses(weir.port, 2, "/now"), [200, 429])
        told = int(weir.get("/now")["retry-after"])
        self.assertIn(told, range(6 * 3600 - 120, 6 * 3600 + 1), "retry_after ends with the hours of the rule")
        self.assertEqual(self.statuses(weir.port, 2, "/later"), [200, 200])


if __name__ == "__main__":
    main()
