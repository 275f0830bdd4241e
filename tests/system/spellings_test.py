#!/usr/bin/env python3
"""No spelling of a request evades a rule: paths, parameters, cookies and headers as attackers write them."""

from harness import TestCase, Upstream, Weir, config, main, rule


class Spellings(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, *rules, **more):
        return self.start(Weir(config(self.upstream.port, rules="\n".join(rules), **more)))

    @staticmethod
    def statuses(client, *targets, lines=""):
        """Sends one request for each target, byte by byte as given. Returns the statuses."""
        seen = []
        for target in targets:
            client.send(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n" + lines.encode() + b"\r\n")
            seen.append(client.read().status)
        return seen


class PathSpellings(Spellings):
    def test_rule_applies_to_every_spelling_of_its_path(self):
        ways = {
            "/me@home": (b"/me@home", b"/me%40home", b"//m%65@home", b"/x/%2e%2E/me%40home", b"/me@home;v=1", b"/me%40home%3Bv"),
            "/a:b+c(d),$!%2A'&=": (b"/a%3Ab%2Bc%28d%29%2C%24%21%2A%27%26%3D", b"/a%3ab%2bc(d)%2c$!*'&="),
            "/café": ("/café".encode(), b"/caf%C3%A9", b"/caf%c3%a9", b"/caf\xc3%A9"),
            "/caf%c3%a8/*": ("/cafè/x".encode(), b"/caf%C3%A8/"),
            "/a b": (b"/a%20b",),
        }
        names = [f"rule-{number}" for number in range(len(ways))]
        weir = self.weir(*(rule(name, "1/day", burst=2, key="[]", match=f'{{ path = "{path}" }}')
                           for name, path in zip(names, ways)))
        with weir.connect() as client:
            for name, spellings in zip(names, ways.values()):
                asked = spellings + spellings[:1] * 2
                with self.subTest(spellings[0]):
                    self.assertEqual(self.statuses(client, *asked), [200] * 2 + [429] * (len(asked) - 2))
                    admitted = [exchange.target.encode("latin-1") for exchange in self.upstream.exchanges[-2:]]
                    self.assertEqual(admitted, list(asked[:2]), "admitted requests are forwarded unchanged")

    def test_rule_does_not_apply_to_other_paths(self):
        weir = self.weir(rule(limit="1/day", key='["path"]'))
        others = (b"/a", b"/a/", b"/A", b"/a%2Fb", b"/a/b", b"/a%3Fb", b"/a%20", b"/a.", b"/a%5C", b"/%2561", b"/%C0%AF")
        with weir.connect() as client:
            self.assertEqual(self.statuses(client, *others), [200] * len(others))
            self.assertEqual(self.statuses(client, *others), [429] * len(others))

    def test_path_that_servers_read_differently_is_rejected_if_a_rule_depends_on_it(self):
        weir = self.weir(rule(limit="1/day", key="[]", match='{ path = "/login*" }'))
        doubtful = (b"/x\\login", b"/login%00", b"/login/%00", b"/x/..;/login", b"/x//../login", b"/x/;/../login", b"/login/..;y",
                    b"/pub;%2f..%2flogin", b"/login%2fz/../secret", b"/x/..%2flogin", b"/x%5c../login",
                    b"/%2flogin", b"/%5clogin", b"/%256cogin", b"/x/%252e%252e/login", b"/x/%c0%ae%c0%ae/login", b"/%u006cogin",
                    b"/x%252f..%252flogin")
        for target in doubtful:
            with self.subTest(target), weir.connect() as client:
                client.send(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assert_own_error(client.read(), 400)
        self.assertEqual(self.upstream.exchanges, [])
        self.await_metric(weir, len(doubtful), "weir_client_errors_total", kind="bad_head")
        self.assertEqual(self.statuses_of(weir), [200, 429], "rejected requests charged nothing")

    ORDINARY = (b"/signin;returnPath=%2Ftrack", b"/sale;off=50%25", b"/a//b/../c", b"/x/..;/y", b"/x//../y", b"/a%2Fb/../c")

    def test_path_that_servers_read_differently_is_forwarded_unchanged_if_no_rule_depends_on_it(self):
        weir = self.weir(rule(limit="1/day", key="[]", match='{ path = "/login*" }'), rule("all", "99/day", key='["ip"]'))
        with weir.connect() as client:
            self.assertEqual(self.statuses(client, *self.ORDINARY), [200] * len(self.ORDINARY))
        self.assertEqual([exchange.target.encode() for exchange in self.upstream.exchanges], list(self.ORDINARY))

    def test_path_that_servers_read_differently_is_rejected_if_the_path_is_a_key(self):
        weir = self.weir(rule(limit="1/day", key='["ip", "path"]'))
        with weir.connect() as client:
            self.assertEqual(self.statuses(client, *self.ORDINARY), [400, 200, 200, 400, 400, 400])

    def routes(self, more=""):
        return ('[[route]]\nmatch = { path = "/admin/*" }\nrespond = { status = 403 }\n'
                f'[[route]]\nmatch = {{ path = "/*" }}\nupstream = "api"\n{more}')

    def test_path_that_some_servers_read_as_another_route_is_rejected_unless_allowed(self):
        hidden = (b"/x/..%2fadmin/a", b"/admin/..;/a", b"/x/..;/admin/a", b"/%2fadmin/a")
        weir = self.weir(routes=self.routes())
        with weir.connect() as client:
            self.assertEqual(self.statuses(client, *hidden, *self.ORDINARY), [400] * 4 + [200] * len(self.ORDINARY))
        weir = self.weir(rule(limit="3/day", key='["path"]'), routes=self.routes('ambiguous_paths = "pass"\n'))
        with weir.connect() as client:
            self.assertEqual(self.statuses(client, *hidden, *self.ORDINARY), [200, 200, 400, 200] + [200] * len(self.ORDINARY))
            self.assertEqual(self.statuses(client, *[self.ORDINARY[0]] * 3), [200, 200, 429], "the normal form of the path is counted")

    def statuses_of(self, weir):
        with weir.connect() as client:
            return self.statuses(client, b"/login", b"/login")


class NameSpellings(Spellings):
    def test_repeated_key_parameter_gives_no_second_limit(self):
        for key, said, twice in (("query:q", (b"/?q=1", ""), (b"/?q=1&q=2", "")),
                                 ("query:q", (b"/?q%75=&%71=1", ""), (b"/?q=2&%71=1", "")),
                                 ("cookie:s", (b"/", "Cookie: s=1\r\n"), (b"/", "Cookie: s=2; s=1\r\n")),
                                 ("header:X-T", (b"/", "X-T: 1\r\n"), (b"/", "X-T: 2\r\nx-t: 1\r\n"))):
            weir = self.weir(rule(limit="1/day", key=f'["{key}"]'))
            with self.subTest(twice), weir.connect() as client:
                self.assertEqual(self.statuses(client, said[0], said[0], lines=said[1]), [200, 429])
                client.send(b"GET " + twice[0] + b" HTTP/1.1\r\nHost: a\r\n" + twice[1].encode() + b"\r\n")
                refused = client.read()
                self.assert_own_error(refused, 400)
                place, name = {"q": "query parameter", "c": "cookie", "h": "header"}[key[0]], key.partition(":")[2].lower()
                self.assertEqual(refused.json()["message"].lower(), f"the request has several different values for the {place} {name}")

    def test_every_spelling_of_a_parameter_or_cookie_shares_one_count(self):
        weir = self.weir(rule(limit="1/day", key='["query:search term"]'), rule("by-cookie", "1/day", key='["cookie:s"]'))
        with weir.connect() as client:
            ways = (b"/?search+term=a+b", b"/?search%20term=a%20b", b"/?se%61rch+term=%61+b&search+term=a%20b")
            self.assertEqual(self.statuses(client, *ways), [200, 429, 429])
            for cookie, expected in (("ab", 200), ('"ab"', 429), ("%61b", 429)):
                self.assertEqual(self.statuses(client, b"/", lines=f"Cookie: s={cookie}\r\n"), [expected], cookie)

    def test_conflicting_values_for_a_condition_or_a_cost_are_rejected(self):
        weir = self.weir(rule("others", "1/day", key="[]", match='{ path = "/x", not = { query = { plan = "free" } } }'),
                         rule("priced", "9/day", key="[]", match='{ path = "/priced" }', cost='{ query = "n" }'),
                         rule("tried", "9/day", key='["query:plan"]', mode='"shadow"'))
        with weir.connect() as client:
            targets = (b"/x?plan=free", b"/x?plan=free&plan=dear", b"/x?plan=dear&pl%61n=free", b"/y?plan=free&plan=dear")
            self.assertEqual(self.statuses(client, *targets), [200, 400, 400, 200])
            self.assertEqual(self.statuses(client, b"/priced?n=1&n=9", b"/priced?n=2&%6e=2"), [400, 200])


if __name__ == "__main__":
    main()
