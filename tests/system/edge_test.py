#!/usr/bin/env python3
"""weir as an edge proxy for curl and Chromium, over HTTP/1.1 and HTTP/2: which route a request gets, redirects, and routes that
change header fields and paths. No client can inject a header line, a second value or a host."""

import subprocess
import unittest

from browser import Browser, find_chromium
from explain_test import ExplainTestCase
from harness import PATIENCE, Response, Upstream, Weir, answer, config, eventually, logged_requests, main, rule
from http2_client import Http2TestCase
from http2_server import Http2Server
from http2_websocket_test import WebSocket, echo
from usage_test import SECRET, token

LISTENERS = """name = "plain"
protocols = ["http/1.1", "h2c"]
[[listener]]
name = "secure"
address = "127.0.0.1:0"
tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }
"""
JWT = f'jwt = {{ algorithm = "HS256", secret = "{SECRET}" }}\n'
# Options of curl for each protocol, and whether they use TLS.
PROTOCOLS = [(["--http1.1"], False), (["--http2-prior-knowledge"], False), (["--http1.1"], True), (["--http2"], True)]


class Answer:
    """An answer with its head, as curl printed it."""

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
    command = ["curl", "-sS", "-i", "-k", "-g", "--path-as-is", "--max-time", str(PATIENCE), "--resolve", f"*:{port}:127.0.0.1", *options, *more, url]
    done = subprocess.run(command, capture_output=True, timeout=2 * PATIENCE, check=True)
    return Answer(done.stdout)


def responding(name, match):
    return f'[[route]]\nname = "{name}"\nmatch = {match}\nrespond = {{ body = "{name}" }}\n'


class EdgeTestCase(Http2TestCase):
    def edge(self, routes, **more):
        return self.start(Weir(config(self.upstream.port, listener=LISTENERS, routes=routes, **more), self.files))


class RouteChoice(EdgeTestCase):
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

    def test_x_forwarded_proto_is_used_only_from_trusted_proxies(self):
        routes = responding("https", '{ scheme = "https" }') + responding("http", "{}")
        claim = ["-H", "X-Forwarded-Proto: https"]
        self.assertEqual(curl(self.edge(routes), more=claim).body, b"http")
        self.assertEqual(curl(self.edge(routes, client='trusted_proxies = ["127.0.0.1"]'), more=claim).body, b"https")

    def test_rule_applies_to_the_routes_that_it_names(self):
        weir = self.edge(responding("login", '{ path = "/login" }') + responding("other", "{}"),
                         rules=rule(limit="1/1000day", key="[]", match='{ route = "login" }'))
        self.assertEqual([curl(weir, path).status for path in ("/login", "/login", "/", "/")], [200, 429, 200, 200])


class Redirects(EdgeTestCase):
    TO_HTTPS = ('[[route]]\nname = "to-https"\nmatch = { scheme = "http" }\n'
                'respond = { status = 308, location = "https://{host}{uri}", headers = { X-Why = "{method} {path}" } }\n')

    def test_redirect_keeps_host_path_and_query(self):
        weir = self.edge(self.TO_HTTPS + responding("secure", "{}"))
        for options, tls in PROTOCOLS:
            got = curl(weir, "/a%2Fb/;v=1?x=1,2&y=%0d%0a", "WWW.Example.com", options, tls)
            with self.subTest(options=options, tls=tls):
                if tls:
                    self.assertEqual(got.status, 200)
                else:
                    self.assertEqual((got.status, got.all("location")), (308, ["https://www.example.com/a%2Fb/;v=1?x=1,2&y=%0d%0a"]))
                    self.assertEqual(got["x-why"], "GET /a%2Fb/")

    def test_path_of_a_request_cannot_set_the_host_of_a_redirect(self):
        weir = self.edge(self.TO_HTTPS.replace("https://{host}{uri}", "{uri}"))
        for path, location in (("//evil.example/x", "/evil.example/x"), ("////evil.example", "/evil.example"),
                               ("/%2Fevil.example", "/%2Fevil.example"), ("/./%5Cevil.example", "/./%5Cevil.example")):
            for options in ("--http1.1", "--http2-prior-knowledge"):
                self.assertEqual(curl(weir, path, options=[options])["location"], location)

    def test_redirect_encodes_octets_that_a_url_cannot_have(self):
        weir = self.edge(self.TO_HTTPS)
        with weir.connect() as client:
            client.send(b"GET /<a>{b}?\"c\"=\\^`|\xe9 HTTP/1.1\r\nHost: example.com\r\n\r\n")
            got = client.read()
        self.assertIn(got["location"], (None, "https://example.com/%3Ca%3E%7Bb%7D?%22c%22=%5C%5E%60%7C%E9"))
        self.assertIn(got.status, (308, 400))

    def test_request_without_a_host_gets_400_instead_of_a_redirect(self):
        weir = self.edge(self.TO_HTTPS)
        with weir.connect() as client:
            client.send(b"GET /evil.example/ HTTP/1.0\r\n\r\n")
            got = client.read()
        self.assertEqual((got.status, got["location"]), (400, None))

    def test_redirects_are_limited_like_other_answers(self):
        weir = self.edge(self.TO_HTTPS, rules=rule(limit="1/1000day", key="[]"))
        self.assertEqual([curl(weir).status for _ in range(2)], [308, 429])

    @unittest.skipUnless(find_chromium(), "needs Chromium")
    def test_chromium_follows_the_redirect(self):
        target = self.start(Upstream(lambda exchange: exchange.send(answer(
            b"<title>%s</title>" % exchange.target.encode(), headers="Content-Type: text/html\r\n"))))
        weir = self.edge(f'[[route]]\nrespond = {{ status = 307, location = "http://{{host}}:{target.port}{{uri}}" }}\n')
        with Browser() as browser:
            page = browser.open(f"http://127.0.0.1:{weir.port}/a/b?c=d")
            page.await_true("document.title === '/a/b?c=d'")
            self.assertEqual(page.evaluate("location.port"), str(target.port))


def forwarding(more, match="{}"):
    return f'[[route]]\nname = "api"\nmatch = {match}\nupstream = "api"\n{more}'


class Edits(EdgeTestCase):
    TRUSTING = 'trusted_proxies = ["127.0.0.1"]\nuser = { header = "X-User" }\norg = { header = "X-Org" }\n'

    def seen(self):
        """Returns the head of the last request that the server received."""
        return self.upstream.exchanges[-1].head

    def test_header_fields_of_requests_are_set_added_and_removed(self):
        weir = self.edge(forwarding('headers.request = { set = { X-Client = "{client_ip}", X-Line = "{method} {host} {path} {query}" }, '
                                    'add = { X-Tag = "weir" }, remove = ["X-Debug-*", "Cookie"] }\n'))
        for options, tls in PROTOCOLS:
            more = [each for line in ("X-Client: 10.0.0.1", "x_client: 10.0.0.2", "X-Tag: own", "X-Debug-A: 1", "Cookie: a=b", "X-Kept: 1")
                    for each in ("-H", line)]
            self.assertEqual(curl(weir, "/a/./b?q=1", options=options, tls=tls, more=more).status, 200)
            head = self.seen()
            with self.subTest(options=options, tls=tls):
                self.assertEqual((head.all("x-client"), head.all("x_client")), (["127.0.0.1"], []))
                self.assertEqual(head.all("x-line"), ["GET example.com /a/b q=1"])
                self.assertEqual(head.all("x-tag"), ["own", "weir"])
                self.assertEqual((head["x-debug-a"], head["cookie"], head["x-kept"]), (None, None, "1"))
                self.assertEqual(head["x-request-id"] is None, False)

    def test_header_field_is_removed_if_its_placeholder_is_empty(self):
        weir = self.edge(forwarding('headers.request.set = { X-Plan = "{org}" }\n'), client=self.TRUSTING)
        curl(weir, more=["-H", "X-Plan: gold"])
        self.assertNotIn("x-plan", self.seen())
        curl(weir, more=["-H", "X-Plan: gold", "-H", "X-Org: acme"])
        self.assertEqual(self.seen().all("x-plan"), ["acme"])

    def test_client_cannot_inject_a_header_line_or_a_second_value_through_a_placeholder(self):
        weir = self.edge(forwarding('headers.request.set = { X-Who = "{user}", X-Uri = "{uri}" }\n'
                                    'headers.response.set = { X-Who = "{user}" }\n'),
                         client='user = { claim = "sub" }\n' + JWT)
        for user, written in (("ada, root", "ada%2C%20root"), ("ada\r\nX-Role: root", "ada%0D%0AX-Role:%20root"), ("ada\0", "ada%00"),
                              (" ada", "%20ada"), ("ad\u00e4", "ad%C3%A4"), ("ada", "ada")):
            for options, tls in PROTOCOLS:
                got = curl(weir, "/a,b?c=%0d%0aX-D:,1", options=options, tls=tls, more=["-H", f"Authorization: Bearer {token(sub=user)}"])
                with self.subTest(user=user, options=options, tls=tls):
                    self.assertEqual((self.seen().all("x-who"), got.all("x-who")), ([written], [written]))
                    self.assertEqual(self.seen().all("x-uri"), ["/a%2Cb?c=%0d%0aX-D:%2C1"])
                    self.assertEqual((self.seen()["x-role"], got["x-role"]), (None, None))

    def test_user_placeholder_is_empty_if_the_token_has_no_valid_signature(self):
        weir = self.edge(forwarding('headers.request.set = { X-Who = "{user}" }\n'),
                         client='user = { claim = "sub" }\n' + JWT)
        self.assertEqual(curl(weir, more=["-H", f"Authorization: Bearer {token(sub='ada')}x"]).status, 200)
        self.assertNotIn("x-who", self.seen())

    def test_answers_of_a_respond_route_name_the_user_of_the_token(self):
        named = 'headers.response.set = { X-Who = "{user}" }\n'
        weir = self.edge(f'[[route]]\nmatch = {{ path = "/usage" }}\nrespond = "usage"\n{named}[[route]]\nrespond = {{ body = "own" }}\n{named}',
                         client='user = { claim = "sub" }\n' + JWT)
        for path in ("/", "/usage"):
            for end, written in (("", ["ada"]), ("x", [])):
                got = curl(weir, path, more=["-H", f"Authorization: Bearer {token(sub='ada')}{end}"])
                self.assertEqual((got.status, got.all("x-who")), (200, written))

    def test_refusals_name_the_user_only_if_a_rule_verified_the_token(self):
        for key, written in (('["ip"]', []), ('["user"]', ["ada"])):
            weir = self.edge(forwarding('headers.response.set = { X-Who = "{user}" }\n'), client='user = { claim = "sub" }\n' + JWT,
                             rules=rule(limit="1/1000day", key=key))
            got = [curl(weir, more=["-H", f"Authorization: Bearer {token(sub='ada')}"]) for _ in range(2)]
            self.assertEqual([(each.status, each.all("x-who")) for each in got], [(200, ["ada"]), (429, written)])

    def test_header_fields_of_answers_are_set_added_and_removed(self):
        self.upstream.reply = answer(headers="Server: old/1.0\r\nX-Powered-By: rust\r\nX-Frame-Options: ALLOW\r\nLink: </a>\r\n")
        weir = self.edge(forwarding('headers.response = { set = { X-Frame-Options = "DENY", Strict-Transport-Security = "max-age=1" }, '
                                    'add = { Link = "</b>" }, remove = ["Server", "X-Powered-*"] }\n'))
        for options, tls in PROTOCOLS:
            got = curl(weir, options=options, tls=tls)
            with self.subTest(options=options, tls=tls):
                self.assertEqual((got["server"], got["x-powered-by"]), (None, None))
                self.assertEqual((got.all("x-frame-options"), got.all("link")), (["DENY"], ["</a>", "</b>"]))
                self.assertEqual(got["strict-transport-security"], "max-age=1")

    def test_answers_of_weir_itself_get_the_header_fields_that_do_not_describe_a_body(self):
        weir = self.edge(forwarding('headers.response = { set = { X-Frame-Options = "DENY", X-Reason = "route", Cache-Control = "public", Content-Security-Policy = "default-src" } }\n'),
                         rules=rule(limit="1/1000day", key="[]", headers='{ X-Reason = "rule" }'))
        self.assertEqual((curl(weir)["cache-control"]), "public")
        for options, tls in PROTOCOLS:
            got = curl(weir, options=options, tls=tls)
            with self.subTest(options=options, tls=tls):
                self.assertEqual((got.status, got.all("x-frame-options"), got.all("x-reason")), (429, ["DENY"], ["route"]))
                self.assertEqual((got.all("cache-control"), got.all("content-security-policy")), (["no-store"], ["default-src"]))
                self.assertIsNotNone(got["retry-after"])

    def test_502_response_gets_the_header_fields_of_the_route(self):
        self.upstream.reply = lambda exchange: exchange.close()
        got = curl(self.edge(forwarding('headers.response.set = { X-Frame-Options = "DENY" }\n')))
        self.assertEqual((got.status, got["x-frame-options"]), (502, "DENY"))

    def test_websocket_gets_the_header_fields_and_path_of_the_route(self):
        self.upstream.reply = echo
        weir = self.edge(forwarding('strip_prefix = "/ws"\nheaders.request = { set = { X-Path = "{path}" }, remove = ["X-Kept"] }\n'
                                    'headers.response = { set = { X-Frame-Options = "DENY" }, remove = ["X-Kept"] }\n'))
        with weir.connect() as client:
            client.send(b"GET /ws/chat HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        b"X-Kept: 1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            got = Response(client.wire.read_until(b"\r\n\r\n"))
        self.assertEqual((got.status, got["x-frame-options"], got["x-kept"]), (101, "DENY", None))
        socket = WebSocket(self.client(weir), "/ws/chat")
        self.assertEqual((socket.answer.status, socket.answer["x-frame-options"], socket.answer["x-kept"]), (200, "DENY", None))
        for exchange in self.upstream.exchanges:
            self.assertEqual((exchange.target, exchange.head["x-path"], exchange.head["x-kept"]), ("/chat", "/ws/chat", None))

    def test_rules_use_the_path_and_fields_that_the_client_sent(self):
        weir = self.edge(forwarding('strip_prefix = "/api"\nheaders.request = { remove = ["X-Team"] }\n'),
                         rules=rule(limit="1/1000day", key='["header:X-Team"]', match='{ path = "/api/*" }'))
        statuses = [curl(weir, "/api/x", more=["-H", f"X-Team: {team}"]).status for team in ("a", "a", "b")]
        self.assertEqual(statuses, [200, 429, 200])
        self.assertEqual([exchange.target for exchange in self.upstream.exchanges], ["/x", "/x"])


class Paths(EdgeTestCase):
    CASES = [('strip_prefix = "/api"\n', (("/api/users/7?full=1", "/users/7?full=1"), ("/api", "/"), ("/apiary", "/apiary"),
                                          ("/api//x/../y;v=1", "/y"), ("/%61pi/x%2fy", "/x%2Fy"), ("//api/x", "/x"))),
             ('add_prefix = "/v2"\n', (("/users?", "/v2/users"), ("/", "/v2/"), ("/a/./b", "/v2/a/b"))),
             ('strip_prefix = "/v1"\nadd_prefix = "/v2"\n', (("/v1/a", "/v2/a"), ("/a/./b", "/a/./b"))),
             ('rewrite = { pattern = "^/users/([0-9]+)/(.*)$", to = "/u/{1}/x/{2}" }\n',
              (("/users/7/a/b?c", "/u/7/x/a/b?c"), ("/users/x", "/users/x"))),
             ('rewrite = { pattern = "^/go(.*)$", to = "/{1}" }\n', (("/go/evil.example", "/evil.example"), ("/go%3Fa", "/%3Fa")))]

    def test_server_gets_the_rewritten_path_and_the_unchanged_query(self):
        for more, paths in self.CASES:
            weir = self.edge(forwarding(more))
            for options, tls in PROTOCOLS:
                for path, forwarded in paths:
                    with self.subTest(more=more, path=path, options=options, tls=tls):
                        self.assertEqual(curl(weir, path, options=options, tls=tls).status, 200)
                        self.assertEqual(self.upstream.exchanges[-1].target, forwarded)

    def test_request_whose_rewritten_path_leads_out_of_the_configured_prefix_gets_400(self):
        cases = (('add_prefix = "/v2/public"\n', ("/..%2f..%2fadmin/secret", "/a/..%2f..%2f..%2f..%2fadmin/x", "/..%5c..%5cadmin",
                                                  "/%252e%252e/%252e%252e/admin"), "/group%2fproject"),
                 ('rewrite = { pattern = "^/u/([^-/]+)-(.+)$", to = "/users/{1}/{2}" }\n',
                  ("/u/..-admin/secret", "/u/..-..%2fadmin/x", "/u/7-..%2f..%2f..%2fadmin"), "/u/7-x.y"),
                 ('rewrite = { pattern = "^/(.+)\\\\.html$", to = "/pages/{1}" }\n', ("/...html",), "/a.b.html"))
        for more, escapes, path in cases:
            text = config(self.upstream.port, listener=LISTENERS, routes=forwarding(more))
            weir = self.start(Weir(text.replace('access = "off"', 'access = "access.log"'), self.files))
            for options, tls in PROTOCOLS:
                self.upstream.exchanges.clear()
                got = [curl(weir, each, options=options, tls=tls) for each in escapes]
                with self.subTest(more=more, options=options, tls=tls):
                    self.assertEqual([each.status for each in got], [400] * len(escapes))
                    self.assertIn(b"lead out of the place to which its route forwards", got[0].body)
                    self.assertEqual(self.upstream.exchanges, [])
                    self.assertEqual(curl(weir, path, options=options, tls=tls).status, 200)
            websocket = curl(weir, escapes[0], more=["-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13",
                                                     "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="])
            self.assertEqual((websocket.status, WebSocket(self.client(weir), escapes[0]).answer.status), (400, 400))
            number = len(PROTOCOLS) * len(escapes) + 2
            self.assertEqual(weir.metric("weir_client_errors_total", kind="bad_head"), number)
            lines = eventually(lambda: (read := logged_requests(weir.folder / "access.log"))[number + len(PROTOCOLS) - 1:] and read,
                               "the requests are logged")
            self.assertEqual([line["error"] for line in lines if line["status"] == 400], ["ambiguous_path"] * number)

    def test_encoded_slashes_are_forwarded_if_ambiguous_paths_is_set_to_pass(self):
        weir = self.edge(forwarding('add_prefix = "/v2"\nambiguous_paths = "pass"\n'))
        self.assertEqual(curl(weir, "/..%2fx").status, 200)
        self.assertEqual(self.upstream.exchanges[-1].target, "/v2/..%2Fx")

    def test_http2_server_gets_the_rewritten_path_and_fields(self):
        seen = []

        def reply(request):
            seen.append((request.path, request["x-path"], request["x-gone"]))
            request.answer(b"", fields=[("server", "old"), ("x-kept", "1")])

        server = self.start(Http2Server(reply))
        weir = self.start(Weir(config(server.port, listener=LISTENERS, upstream='protocol = "h2c"\n', routes=forwarding(
            'strip_prefix = "/api"\nheaders = { request = { set = { X-Path = "{path}" }, remove = ["X-Gone"] }, '
            'response = { set = { X-Route = "api" }, remove = ["Server"] } }\n')), self.files))
        for options, tls in PROTOCOLS:
            got = curl(weir, "/api/a?b", options=options, tls=tls, more=["-H", "X-Gone: 1"])
            self.assertEqual((got.status, got["server"], got["x-route"], got["x-kept"]), (200, None, "api", "1"))
        self.assertEqual(seen, [("/a?b", "/api/a", None)] * len(PROTOCOLS))

    def test_options_request_for_the_whole_server_keeps_its_asterisk_target(self):
        weir = self.edge(forwarding('add_prefix = "/v2"\n'))
        curl(weir, more=["-X", "OPTIONS", "--request-target", "*"])
        self.assertEqual(self.upstream.exchanges[-1].target, "*")


class Explained(ExplainTestCase):
    def test_explanation_says_that_the_path_leads_out_of_its_prefix(self):
        self.begin("", routes=forwarding('add_prefix = "/v2"\n'))
        said = self.explain(path="/..%2fadmin")["verdict"]
        self.assertEqual(said["status"], 400)
        self.assertIn("lead out of the place to which its route forwards", str(said))

    def test_explanation_assumes_https_unless_the_explained_request_has_a_scheme(self):
        self.begin("", routes=responding("http", '{ scheme = "http" }') + responding("any", "{}"))
        self.assertEqual(self.explain(path="/")["route"]["name"], "any")
        self.assertEqual(self.explain(path="/")["route"]["passed_over"][0]["why"], "scheme https is not http")
        self.assertEqual(self.explain(path="/", scheme="http")["route"]["name"], "http")

    def test_explanation_shows_the_redirect_and_the_fields_of_the_route(self):
        self.begin("", routes='[[route]]\nrespond = { status = 301, location = "https://{host}{uri}" }\n'
                              'headers.response.set = { X-Frame-Options = "DENY" }\n')
        said = self.explain(host="example.com", path="/a?b=c")["verdict"]
        self.assertEqual((said["status"], said["headers"]["Location"], said["headers"]["X-Frame-Options"]),
                         (301, "https://example.com/a?b=c", "DENY"))


if __name__ == "__main__":
    main()
