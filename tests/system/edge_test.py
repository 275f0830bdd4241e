#!/usr/bin/env python3
"""Routes of an edge: which route takes a request by its host, scheme and listener, and which rules apply to named routes."""

import subprocess

from explain_test import ExplainTestCase
from harness import PATIENCE, Weir, config, main, rule
from http2_client import Http2TestCase

LISTENERS = """name = "plain"
protocols = ["http/1.1", "h2c"]
[[listener]]
name = "secure"
address = "127.0.0.1:0"
tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }
"""
# Options of curl for each protocol, and whether they use TLS.
PROTOCOLS = [(["--http1.1"], False), (["--http2-prior-knowledge"], False), (["--http1.1"], True), (["--http2"], True)]


class Answer:
    """What curl printed: an answer with its head."""

    def __init__(self, printed):
        head, _, self.body = printed.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.fields = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]

    def all(self, name):
        return [value for each, value in self.fields if each == name.lower()]

    def __getitem__(self, name):
        return next(iter(self.all(name)), None)


def curl(weir, path="/", host="example.com", options=("--http1.1",), tls=False, more=()):
    """Requests the path from weir with curl, as if weir had the address of `host`."""
    port = weir.ports[tls]
    url = f"{'https' if tls else 'http'}://{host}:{port}{path}"
    command = ["curl", "-sS", "-i", "-k", "--path-as-is", "--max-time", str(PATIENCE), "--resolve", f"*:{port}:127.0.0.1", *options, *more, url]
    done = subprocess.run(command, capture_output=True, timeout=2 * PATIENCE, check=True)
    return Answer(done.stdout)


def responding(name, match):
    return f'[[route]]\nname = "{name}"\nmatch = {match}\nrespond = {{ body = "{name}" }}\n'


class EdgeTestCase(Http2TestCase):
    def edge(self, routes, **more):
        return self.start(Weir(config(self.upstream.port, listener=LISTENERS, routes=routes, **more), self.files))


class Chosen(EdgeTestCase):
    def test_route_is_chosen_by_lists_wildcards_and_expressions_of_hosts(self):
        weir = self.edge(responding("exact", '{ host = ["example.com", "www.example.com"] }') +
                         responding("below", '{ host = "*.example.com" }') +
                         responding("regex", '{ host = "~^tenant-[0-9]+[.]example[.]net$" }') + responding("rest", "{}"))
        for options, tls in PROTOCOLS:
            for host, route in (("example.com", "exact"), ("WWW.example.com", "exact"), ("a.b.example.com", "below"),
                                ("xexample.com", "rest"), ("Tenant-7.example.net", "regex"), ("tenant-x.example.net", "rest")):
                with self.subTest(options=options, tls=tls, host=host):
                    self.assertEqual(curl(weir, host=host, options=options, tls=tls).body.decode(), route)

    def test_route_is_chosen_by_scheme_and_listener(self):
        weir = self.edge(responding("http", '{ scheme = "http", path = "/scheme" }') +
                         responding("https", '{ scheme = "https", path = "/scheme" }') +
                         responding("on-plain", '{ listener = "plain" }') + responding("on-secure", '{ listener = ["x", "secure"] }'),
                         rules='[[listener]]\nname = "x"\naddress = "127.0.0.1:0"\n')
        for options, tls in PROTOCOLS:
            with self.subTest(options=options, tls=tls):
                self.assertEqual(curl(weir, "/scheme", options=options, tls=tls).body, b"https" if tls else b"http")
                self.assertEqual(curl(weir, options=options, tls=tls).body, b"on-secure" if tls else b"on-plain")

    def test_only_a_trusted_proxy_may_claim_the_scheme(self):
        routes = responding("https", '{ scheme = "https" }') + responding("http", "{}")
        claim = ["-H", "X-Forwarded-Proto: https"]
        self.assertEqual(curl(self.edge(routes), more=claim).body, b"http")
        self.assertEqual(curl(self.edge(routes, client='trusted_proxies = ["127.0.0.1"]'), more=claim).body, b"https")

    def test_rule_applies_to_the_routes_that_it_names(self):
        weir = self.edge(responding("login", '{ path = "/login" }') + responding("other", "{}"),
                         rules=rule(limit="1/1000day", key="[]", match='{ route = "login" }'))
        self.assertEqual([curl(weir, path).status for path in ("/login", "/login", "/", "/")], [200, 429, 200, 200])


class Explained(ExplainTestCase):
    def test_explanation_assumes_https_unless_the_question_names_the_scheme(self):
        self.begin("", routes=responding("http", '{ scheme = "http" }') + responding("any", "{}"))
        self.assertEqual(self.explain(path="/")["route"]["name"], "any")
        self.assertEqual(self.explain(path="/")["route"]["passed_over"][0]["why"], "scheme https is not http")
        self.assertEqual(self.explain(path="/", scheme="http")["route"]["name"], "http")


if __name__ == "__main__":
    main()
