#!/usr/bin/env python3
"""Identities of HTTP/2 clients: tokens, certificates, proxies that name other clients, the PROXY protocol, and what weir tells servers
about clients."""

import contextlib
import os
import pathlib
import re
import subprocess
import tempfile
import time

from harness import PATIENCE, Weir, client_tls, config, main, make_authority, make_certificate, make_client_certificate, rule
from http2_client import Http2Client
from preamble_test import SIGNATURE, first, second
from protocol_pair import Ask, NewClient, OldClient, PairTestCase
from token_test import TokenIssuer, base64url

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PROXIED = 'trusted_proxies = ["127.0.0.1"]'
CERTIFICATES = 'tls = {{ certificates = [{{ cert = "edge.crt", key = "edge.key" }}], client_ca = "ca.crt", client_auth = "{}" }}\n'


class Tokens(PairTestCase):
    def test_tokens_are_verified_and_rejected_as_in_http_1_1(self):
        issuer = TokenIssuer(self.enterContext(tempfile.TemporaryDirectory()))
        more = 'issuer = "me", audience = "api", leeway = "1s", require_exp = true'
        pair = self.pair(rule("claim", "2/day", key='["claim:sub"]', on_missing='"reject"'), files={"jwt.pem": issuer.public},
                         client=f'jwt = {{ algorithm = "ES256", public_key = "jwt.pem", {more} }}')
        now = int(time.time())
        good = {"sub": "ann", "iss": "me", "aud": "api", "exp": now + 3600}
        head, claims, _ = issuer.token(**good).split(".")
        tokens = {"malformed": "rubbish", "algorithm": issuer.token({"alg": "none"}, **good),
                  "expired": issuer.token(**{**good, "exp": now - 600}),
                  "extension": issuer.token({"alg": "ES256", "crit": ["exp"]}, **good),
                  "not_yet": issuer.token(**good, nbf=now + 1800),
                  "signature": f"{head}.{claims}.{base64url(bytes(64))}", "issuer": issuer.token(**{**good, "iss": "you"}),
                  "audience": issuer.token(**{**good, "aud": "web"}), "claim": issuer.token(iss="me", aud="api", exp=now + 3600)}
        asks = [Ask(fields={"authorization": f"Bearer {token}"}) for token in tokens.values()]
        for reason, response in zip(tokens, self.same(pair, [*asks, Ask()])):
            self.assert_own_error(response, 401)
            self.assertTrue(response["www-authenticate"].startswith("Bearer error="), reason)
        for weir in pair:
            for reason in (*tokens, "missing"):
                self.assertEqual(weir.metric("weir_token_faults_total", reason=reason), 1, reason)
        mine = [Ask(fields={"authorization": f"Bearer {issuer.token(**good, jti=number)}"}) for number in range(3)]
        other = Ask(fields={"authorization": f"Bearer {issuer.token(**{**good, 'sub': 'bob'})}"})
        self.assertEqual(self.statuses_of(pair, [*mine, other]), [200, 200, 429, 200])

    def test_streams_of_one_connection_are_distinguished_by_their_tokens(self):
        issuer = TokenIssuer(self.enterContext(tempfile.TemporaryDirectory()))
        text = self.text(doors=[False], rules=rule("claim", "3/day", key='["claim:sub|ip"]'),
                         client='jwt = { algorithm = "ES256", public_key = "jwt.pem" }')
        client = self.client(self.start(Weir(text, {**self.files, "jwt.pem": issuer.public})))
        tokens = {name: issuer.token(sub=name) for name in ("ann", "bob", "eve")}
        tokens["forged"] = "x.y.z"
        streams = [(name, client.open(fields=[("authorization", f"Bearer {token}")])) for _ in range(5) for name, token in tokens.items()]
        admitted = [name for name, stream in streams if client.read(stream).status == 200]
        self.assertEqual({name: admitted.count(name) for name, _ in streams}, dict.fromkeys(tokens, 3))


class Certificates(PairTestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.files = make_certificate(cls.folder) | make_authority(cls.folder)
        make_authority(cls.folder, "other-ca")
        for name, subject, authority in (("alice", "alice", "ca"), ("alice-anew", "alice", "ca"), ("bob", "bob", "ca"),
                                         ("stranger", "alice", "other-ca")):
            make_client_certificate(cls.folder, name, f"/O=Example/CN={subject}", authority)

    def connect(self, weir, shown):
        tls = client_tls(self.files["edge.crt"], ["h2"], self.folder / shown if shown else None)
        return self.start(Http2Client(weir.port, tls=tls))

    def edge(self, auth, rules):
        return self.start(Weir(config(self.upstream.port, listener=CERTIFICATES.format(auth), rules=rules), self.files))

    def test_subject_of_a_certificate_is_the_key_of_all_streams(self):
        weir = self.edge("optional", rule("subject", "10/day", key='["cert:subject"]', on_missing='"reject"'))
        statuses = []
        for name in ("alice", "alice-anew", "bob"):
            client = self.connect(weir, name)
            streams = [client.open() for _ in range(8)]
            statuses.append([client.read(stream).status for stream in streams].count(200))
        self.assertEqual(statuses, [8, 2, 8])
        self.assert_own_error(self.connect(weir, None).get("/"), 401)

    def test_client_certificate_of_another_authority_is_rejected(self):
        weir = self.edge("require", rule())
        self.assertEqual(self.connect(weir, "alice").get("/").status, 200)
        for shown in (None, "stranger"):
            with contextlib.suppress(OSError):  # in TLS 1.3 the client's handshake ends before the rejection
                client = self.connect(weir, shown)
                self.assertIsNone(client.get("/").status)
        self.await_metric(weir, 2, "weir_tls_handshakes_total", outcome="untrusted")
        self.assertEqual(len(self.upstream.exchanges), 1)


class Proxies(PairTestCase):
    def test_clients_of_a_trusted_proxy_on_one_connection_have_separate_limits(self):
        weir = self.weir(doors=[False], rules=rule("ip", "3/day", key='["ip"]'), client=PROXIED, server="max_connections_per_ip = 1")
        client = self.client(weir)
        streams = [(number % 10, client.open(fields=[("x-forwarded-for", f"203.0.113.{number % 10}")])) for number in range(100)]
        admitted = [number for number, stream in streams if client.read(stream).status == 200]
        self.assertEqual([admitted.count(number) for number in range(10)], [3] * 10)
        stranger = self.client(weir, source="127.0.0.5")
        statuses = [stranger.get("/", x_forwarded_for=f"198.51.100.{number}").status for number in range(5)]
        self.assertEqual(statuses, [200] * 3 + [429] * 2)

    def test_forwarded_fields_identify_the_client_as_in_http_1_1(self):
        pair = self.pair(rule("ip", "1/day", key='["ip"]'), client=f'{PROXIED}\naddress_from = "forwarded"', server="forwarded = true")
        values = ("for=203.0.113.7;proto=https", 'for="203.0.113.8:4711"', 'for=198.51.100.1, for="203.0.113.7:1"', "for=unknown",
                  "for=_hidden")
        self.assertEqual(self.statuses_of(pair, [Ask(fields={"forwarded": value}) for value in values]), [200, 200, 429, 200, 429])

    def heads(self, fields, client="", **more):
        """Returns what the server gets of a request by HTTP/1.1 and by HTTP/2."""
        pair = self.pair(rule(limit="99/s"), client=client, **more)
        before = len(self.upstream.exchanges)
        self.same(pair, [Ask("/a?b", fields=fields, host="name.test:81")])
        old, new = (dict(exchange.head.fields) for exchange in self.upstream.exchanges[before:])
        for head in (old, new):
            self.assertRegex(head.pop("x-request-id"), "^([0-9a-f]{32}|edge-1)$")
        self.assertEqual((old.pop("via"), new.pop("via")), ("1.1 weir", "2 weir"))
        self.assertEqual(new, old)
        return new

    WHO = {"x-real-ip": "6.6.6.6", "x-forwarded-for": "6.6.6.6", "x-forwarded-user": "root", "x-forwarded-host": "h.test",
           "x-user-id": "root", "true-client-ip": "6.6.6.6", "x-original-url": "/admin", "x-ssl-client-verify": "SUCCESS",
           "proxy": "evil.test:80", "x-request-id": "edge-1", "x_api_key": "twin", "x-api-key": "k", "x-device": "d",
           "authorization": "Basic x", "cookie": "a=1; b=2", "traceparent": "00-none", "te": "trailers"}

    def test_server_gets_the_same_fields_about_a_client_as_in_http_1_1(self):
        for client in ("", PROXIED + "\n"):
            for server in ("", "underscores_in_headers = true\nforwarded = true"):
                with self.subTest(client=client, server=server):
                    head = self.heads(list(self.WHO.items()), client + 'user = { header = "X-User-ID" }', server=server)
                    self.assertEqual("x-real-ip" in head, bool(client))
                    self.assertEqual(head["x-forwarded-for"], "6.6.6.6, 127.0.0.1" if client else "127.0.0.1")

    def test_documented_identity_fields_of_untrusted_clients_are_dropped(self):
        page = pathlib.Path(os.environ.get("WEIR_SOURCE", "."), "docs", "security.md").read_text()
        listed = page.split("## Fields of trusted proxies")[1].split("\n\nCase does not matter")[0]
        names = re.findall("`([A-Z][A-Za-z0-9-]*[*]?)`", listed)
        self.assertGreater(len(names), 60)
        said = {name.replace("*", "anything").lower(): "x" for name in names if "Forwarded" not in name}
        for client, arrive in (("", False), (PROXIED, True)):
            weir = self.weir(doors=[False], client=client)
            self.assertEqual(self.client(weir).request(fields=list(said.items())).status, 200)
            head = self.upstream.exchanges[-1].head
            self.assertEqual([name for name in said if (name in head) != arrive], [])


class ProxyProtocol(PairTestCase):
    LISTENER = '[[listener]]\naddress = "127.0.0.1:0"\nproxy_protocol = true\n'

    def edge(self, *rules, **more):
        plain = 'proxy_protocol = true\nprotocols = ["http/1.1", "h2c"]\n'
        text = config(self.upstream.port, listener=plain + self.LISTENER + CERTIFICATES.format("optional"), rules="".join(rules),
                      client=PROXIED, **more)
        return self.start(Weir(text, {**self.files, **make_authority(self.enterContext(tempfile.TemporaryDirectory()))}))

    def test_proxy_header_of_each_version_names_the_client_of_all_streams(self):
        weir = self.edge(rule("ip", "5/day", key='["ip"]'))
        preambles = {"203.0.113.1": first("203.0.113.1"), "203.0.113.2": second("203.0.113.2"),
                     "203.0.113.3": second("203.0.113.3", tlvs=b"\x04\0\x02hi"), "2001:db8::7": first("2001:db8::7", "TCP6", "::1"),
                     "2001:db8:0:1::7": second("2001:db8:0:1::7", "::1")}
        for source, preamble in preambles.items():
            for port, tls in ((weir.ports[0], None), (weir.ports[1], self.tls)):
                with self.subTest(source=source, tls=bool(tls)):
                    client = self.start(Http2Client(port, tls=tls, ahead=preamble))
                    streams = [client.open() for _ in range(8)]
                    self.assertEqual([client.read(stream).status for stream in streams].count(200), 0 if tls else 5)
            self.assertEqual({exchange.head["x-forwarded-for"] for exchange in self.upstream.exchanges[-5:]}, {source})

    def test_client_has_the_address_of_the_proxy_if_the_proxy_header_has_no_addresses(self):
        weir = self.edge()
        for preamble in (b"PROXY UNKNOWN\r\n", SIGNATURE + b"\x20\0\0\0"):
            self.assertEqual(self.start(Http2Client(weir.port, ahead=preamble)).get("/").status, 200)
            self.assertEqual(self.upstream.exchanges[-1].head["x-forwarded-for"], "127.0.0.1")

    def test_connection_without_a_proxy_header_is_closed(self):
        weir = self.edge()
        self.assert_closed(weir, PREFACE)
        self.await_metric(weir, 1, "weir_client_errors_total", kind="preamble")

    def assert_closed(self, weir, data):
        with weir.connect() as client:
            client.send(data)
            self.assertTrue(client.closed(), "the connection is closed without an answer")

    def test_max_connections_per_ip_bounds_connections_but_not_streams_of_the_proxied_address(self):
        weir = self.edge(server="max_connections_per_ip = 2")

        def enter(source):
            client = self.start(Http2Client(weir.port, ahead=first(source)))
            return {client.read(stream).status for stream in [client.open() for _ in range(50)]}

        self.assertEqual([enter("203.0.113.7") for _ in range(2)], [{200}] * 2)
        self.assert_closed(weir, first("203.0.113.7") + PREFACE)
        self.assertEqual(enter("203.0.113.8"), {200})
        self.await_metric(weir, 1, "weir_connections_crowded_total")

    def test_both_protocols_share_the_count_of_a_client_behind_a_balancer(self):
        weir = self.edge(rule("ip", "4/day", key='["ip"]'))
        kinds = [self.start(kind(weir.port, ahead=first())) for kind in (OldClient, NewClient)]
        self.assertEqual([client.ask(Ask()).status for client in kinds * 3], [200] * 4 + [429] * 2)

    def test_proxy_header_that_curl_writes_is_accepted_before_http_2(self):
        weir = self.edge()
        done = subprocess.run(["curl", "-sS", "--haproxy-protocol", "--http2-prior-knowledge", "--max-time", str(PATIENCE),
                               "-w", "%{http_version}", f"http://127.0.0.1:{weir.port}/"], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "ok2", done.stderr)


if __name__ == "__main__":
    main()
