#!/usr/bin/env python3
"""Rules whose keys and conditions read the body: members of JSON and fields of forms. Requests over HTTP/1.1 and HTTP/2 get the
same decisions."""

import gzip
import json

from country_file import asn_file, city_file
from harness import Client, Redis, Upstream, Weir, answer, chunked, config, eventually, main, rule
from protocol_pair import Ask, PairTestCase

FORM = {"content_type": "application/x-www-form-urlencoded"}
HEAD = b"POST /login HTTP/1.1\r\nHost: a\r\n"


def logins(**more):
    """Returns a rule that admits one failed login of each account."""
    return rule("logins", "1/day", key='["json:/email|form:email"]', match='{ path = "/login" }', **more)


def login(email, **more):
    return Ask("/login", "POST", body=json.dumps({"password": "x", "email": email}).encode(), **more)


class Accounts(PairTestCase):
    def test_each_account_has_a_limit_of_its_own(self):
        pair = self.pair(logins())
        asks = [login("ada"), login("ada"), login("bob"), Ask("/login", "POST", FORM, b"email=eve"), Ask("/login", "POST", FORM, b"x=1&%65mail=eve"),
                Ask("/login", "POST", FORM, b"email=ada"), Ask("/login", "POST", body=b'{"email":5.0}'), Ask("/login", "POST", body=b'{"email":5e0}')]
        self.assertEqual(self.statuses_of(pair, asks), [200, 429, 200, 200, 429, 200, 200, 429])

    def test_rule_is_skipped_if_the_body_lacks_the_key(self):
        pair = self.pair(logins())
        asks = [Ask("/login", "POST", fields, body) for fields, body in [({}, b"{}"), ({}, b'{"email":null}'), (FORM, b"email="), (FORM, b"name=a")]]
        self.assertEqual(self.statuses_of(pair, [each for ask in [*asks, Ask("/login")] for each in (ask, ask)]), [200] * 10)

    def test_request_without_the_key_is_refused_if_on_missing_is_reject(self):
        pair = self.pair(logins(on_missing='"reject"'))
        for fields, body in [({}, b"{}"), ({}, b'{"email":null}'), (FORM, b"name=a"), ({}, b"")]:
            for response in self.same(pair, [Ask("/login", "POST", fields, body)]):
                self.assert_own_refusal(response, 400, "rule logins needs the JSON member /email or the form field email in the request body")

    def test_body_that_cannot_be_read_is_refused(self):
        pair = self.pair(logins(max_body='"64B"'))
        cases = [({}, b'{"email":"a","email":"a"}', 400, "the JSON member /email more than once"), (FORM, b"email=a&email=a", 400, "the form field email"),
                 ({}, b'{"email":', 400, "ends within its JSON value"), ({}, b'{"email":"' + b"x" * 64 + b'"}', 413, "64 bytes"),
                 ({}, b'{"email":{"$eq":"a"}}', 400, "is an object or an array"), ({}, b'{"email":"a","Email":"b"}', 400, "more than once"),
                 (FORM, b"+email=a", 400, "only some servers take for the form field email"), (FORM, b'{"email":NaN}', 400, "is not JSON"),
                 (FORM, b'{"email":"r1","x":"&email=a&"}', 400, "the request has both the JSON member /email and the form field email"),
                 ({"content_type": "text/plain"}, b"email=a", 400, "its Content-Type is not that of a form"),
                 (FORM, b"email=r1&email]=ada", 400, "only some servers take for the form field email"),
                 (FORM, b"email=r1&?email=ada", 400, "only some servers take for the form field email"), (FORM, b"?email=ada&email=r1", 400, "is not JSON"),
                 (FORM, b"email=r1&%u0065mail=ada", 400, "only some servers take for the form field email"),
                 ({}, '{"email":"r1","ema\u0131l":"ada"}'.encode(), 400, "more than once"),
                 ({"content_type": "application/x-www-form-urlencoded+json"}, b'{"email":"r1"}', 400, "not one media type"),
                 ({"content_type": "application/json, text/plain"}, b'{"email":"a"}', 400, "not one media type"),
                 ({"content_type": "application/json; charset=utf-7"}, b'{"email":"a"}', 415, "another charset"),
                 ({"content_type": "multipart/form-data; boundary=x"}, b"--x--", 415, "is a multipart form"),
                 ({"content_encoding": "gzip"}, gzip.compress(b'{"email":"a"}'), 415, "Content-Encoding")]
        for fields, body, status, word in cases:
            for response in self.same(pair, [Ask("/login", "POST", fields, body)]):
                self.assert_own_refusal(response, status, word)
                self.assertEqual(response["accept-encoding"], "identity" if "content_encoding" in fields else None, "it names the cause")
        self.assertEqual(self.statuses_of(pair, [Ask("/else", "POST", body=b'{"email":')]), [200], "the rule does not apply")

    def test_request_that_has_the_form_field_in_its_query_is_refused(self):
        pair = self.pair(logins(), rule("either", "1/day", key='["query:email|form:email"]', match='{ path = "/either" }'))
        for path, body in [("/login?email=ada", b"email=r1"), ("/login?x=1&Email%5B%5D=ada", b"email=r1"), ("/login?email=ada", b""), ("/either?email=r1", b"email=ada")]:
            for response in self.same(pair, [Ask(path, "POST", FORM, body)]):
                self.assert_own_refusal(response, 400, "the query of the request has the form field email")
        asks = [Ask("/login?x=email", "POST", FORM, b"email=ada"), Ask("/either?email=ada"), Ask("/either?email=ada"), Ask("/either?x=1", "POST", FORM, b"email=ada"),
                Ask("/else?email=ada", "POST", FORM, b"email=ada")]
        self.assertEqual(self.statuses_of(pair, asks), [200, 200, 429, 200, 200])

    def test_parameter_that_a_client_invents_does_not_hide_the_account_in_the_body(self):
        pair = self.pair(rule("either", "1/day", key='["query:user|json:/email"]', match='{ path = "/login" }'))
        asks = [login("ada"), Ask("/login?user=r1"), Ask("/login?user=r1"), Ask("/login?user=r2", "POST", body=b'{"email":null}'), login("ada")]
        self.assertEqual(self.statuses_of(pair, asks), [200, 200, 429, 200, 429])
        for body, sentence in ((b'{"email":"ada"}', "both the query parameter user and the JSON member /email"), (b'{"email":', "ends within its JSON value")):
            for response in self.same(pair, [Ask("/login?user=r3", "POST", body=body)]):
                self.assert_own_refusal(response, 400, sentence)

    def test_weir_waits_for_a_late_body_that_may_contradict_the_key_in_the_query(self):
        weir = self.start(Weir(config(self.start(Upstream()).port, rules=rule("either", "1/day", key='["query:user|json:/email"]'))))
        small = b'{"x":1}'
        bodies = [(b"Transfer-Encoding: chunked", chunked(small), 200), (b"Content-Length: 7", small, 200),
                  (b"Transfer-Encoding: chunked", chunked(b'{"email":"ada"}'), 400)]
        for number, (framing, body, status) in enumerate(bodies):
            with weir.connect() as client:
                client.send(b"POST /?user=r%d HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n%s\r\n\r\n" % (number, framing))
                self.assertEqual(client.read().status, 100, "weir waits for the body")
                client.send(body)
                self.assertEqual(client.read().status, status)

    def test_forms_with_too_many_fields_are_refused(self):
        pair = self.pair(logins(), server="max_parameters = 3")
        self.assertEqual(self.statuses_of(pair, [Ask("/login", "POST", FORM, body) for body in (b"a&b&email=a", b"a&b&c&email=a")]), [200, 400])
        for weir in pair:
            self.await_metric(weir, 1, "weir_client_errors_total", kind="too_many_parameters")

    def test_rule_applies_only_if_all_json_conditions_hold(self):
        pair = self.pair(rule("models", "1/day", key="[]", match='{ methods = ["POST"], json = { "/model" = "~^gpt-4", "/stream" = "true" } }'))
        bodies = [b'{"model":"gpt-4o","stream":true}'] * 2 + [b'{"model":"gpt-4o","stream":false}', b'{"model":"gpt-3","stream":true}', b"{}"]
        self.assertEqual(self.statuses_of(pair, [Ask("/", "POST", body=body) for body in bodies]), [200, 429, 200, 200, 200])

    def test_path_segment_can_be_a_key(self):
        pair = self.pair(rule("orgs", "1/day", key='["path:2"]'))
        asks = [Ask(path) for path in ("/orgs/a/x", "/users/a", "/orgs/b", "/orgs", "/orgs", "/orgs/", "/orgs/%61?q")]
        self.assertEqual(self.statuses_of(pair, asks), [200, 429, 200, 200, 200, 200, 429])


class Bodies(PairTestCase):
    def sent(self):
        return [exchange.body for exchange in self.upstream.exchanges]

    def begin(self, *rules, **more):
        return self.start(Weir(config(self.upstream.port, rules="\n".join(rules), **more)))

    def post(self, weir, body, path="/login", **headers):
        with weir.connect() as client:
            return client.request("POST", path, headers, body)

    def test_key_in_a_body_is_found_however_the_body_is_divided(self):
        weir = self.begin(rule("logins", "100/day", key='["json:/email"]', max_body='"1KiB"'))
        body = b'{"email":"\\u0061da"}'
        with weir.connect() as client:
            for number, cut in enumerate(range(len(body) + 1)):
                client.send(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:cut])
                client.send(body[cut:])
                self.assertEqual(client.read()["x-ratelimit-remaining"], str(99 - number))
            client.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            for octet in body:
                client.send(chunked(bytes([octet]))[:-5])
            client.send(b"0\r\n\r\n")
            self.assertEqual(client.read()["x-ratelimit-remaining"], str(99 - len(body) - 1))
        self.assertEqual(set(self.sent()), {body}, "weir forwards the body unchanged")

    def test_request_with_two_different_content_types_is_refused(self):
        weir = self.begin(logins())
        for types, status in ((b"application/json", 200), (b"application/x-www-form-urlencoded", 400)):
            with weir.connect() as client:
                client.send(HEAD + b"Content-Type: application/json\r\nContent-Type: " + types + b'\r\nContent-Length: 13\r\n\r\n{"email":"a"}')
                self.assertEqual(client.read().status, status)

    def test_key_split_over_many_http2_frames_is_read_as_one_value(self):
        client = self.client(self.plain_weir(logins()))
        body = b'{"email":"ada"}'
        for status in (200, 429):
            stream = client.open("POST", "/login", end=False)
            for octet in body[:-1]:
                client.send_body(stream, bytes([octet]), end=False)
            client.send_body(stream, body[-1:])
            self.assertEqual(client.read(stream).status, status)

    def test_only_failed_logins_of_an_account_are_charged(self):
        def reply(exchange):
            exchange.send(answer(status="200 OK" if b"right" in exchange.read_body() else "401 Unauthorized"))
        self.upstream.reply = reply
        weir = self.begin(rule("logins", "2/h", key='["json:/email"]', algorithm='"sliding_log"', charge='{ status = ["401"] }'))

        def ask(email, password):
            return self.post(weir, json.dumps({"email": email, "password": password}).encode()).status

        self.assertEqual([ask("ada", "right") for _ in range(4)], [200] * 4)
        self.assertEqual([ask("ada", "guess") for _ in range(3)], [401, 401, 429])
        self.assertEqual([ask("ada", "right"), ask("bob", "guess")], [429, 401])

    def test_rule_that_needs_no_body_refuses_before_the_body_is_read(self):
        weir = self.begin(rule("few", "1/day", key='["ip"]'), logins())
        self.assertEqual(self.post(weir, b'{"email":"a"}').status, 200)
        with weir.connect() as client:
            client.send(HEAD + b"Content-Length: 50000\r\n\r\n")
            self.assertEqual(client.read().json()["rule"], "few")

    def test_body_is_not_read_if_the_head_decides_the_key(self):
        weir = self.begin(rule("either", "1/day", key='["header:x-account|json:/email"]'))
        self.upstream.reply = lambda exchange: exchange.send(answer(b"ok"))
        with weir.connect() as client:
            client.send(HEAD + b"X-Account: a\r\nContent-Length: 5\r\n\r\n")
            self.assertEqual(client.read().status, 200, "the head is forwarded before the body arrives")

    def test_body_larger_than_max_body_memory_gets_413(self):
        weir = self.begin(logins(max_body='"1MiB"'), server='max_body_memory = "64KiB"')
        body = b'{"email":"%s"}' % (b"x" * 100_000)
        self.assertEqual(self.post(weir, body).status, 413)
        self.await_metric(weir, 1, "weir_body_memory_refused_total")
        self.assertEqual(self.post(weir, b'{"email":"a"}').status, 200)
        self.await_metric(weir, 0, "weir_body_memory_bytes")

    def test_two_instances_share_the_limit_of_an_account(self):
        redis = self.start(Redis())
        state = f'redis = {{ url = "{redis.url}" }}\nkey_secret = "0123456789abcdef"'
        weirs = [self.begin(logins(store='"redis"'), state=state) for _ in range(2)]
        for weir in weirs:
            eventually(weir.is_ready, "weir is ready")
        self.assertEqual([self.post(weir, b'{"email":"ada"}').status for weir in weirs], [200, 429])

    def test_explanation_shows_the_key_and_the_unmet_condition(self):
        weir = self.begin(logins(), rule("models", "1/day", key="[]", match='{ json = { "/model" = "gpt-4" } }'))

        def rules(body):
            inquiry = {"method": "POST", "path": "/login", "host": "a", "body": body}
            with Client(weir.admin) as client:
                told = client.request("POST", "/api/explain", {"Content-Type": "application/json"}, json.dumps(inquiry).encode()).json()
            return {each["name"]: each for each in told["rules"]}

        told = rules('{"email":"ada","model":"gpt-3"}')
        self.assertEqual(told["logins"]["key"], ["json:/email:ada"])
        self.assertEqual(told["models"]["why"], "the JSON member /model is absent or not gpt-4")
        self.assertIn("has no [json:/email|form:email]", rules("{}")["logins"]["why"])


class Places(PairTestCase):
    def test_city_region_and_asn_can_be_keys_and_conditions(self):
        files = {"city.mmdb": city_file({"203.0.113.0/24": ("CH", "GE", "Geneva"), "198.51.100.0/24": ("CH", "ZH", "Zurich")}),
                 "asn.mmdb": asn_file({"203.0.113.0/25": 3303, "198.51.100.0/24": 3303})}
        rules = [rule(name, "1/day", key=f'["{name}"]', match=f'{{ path = "/{name}" }}') for name in ("city", "region", "asn")]
        rules.append(rule("match", "1/day", key="[]", match='{ path = "/match", city = "Geneva", region = "CH-GE", asn = ["AS3303", "AS1"] }'))
        pair = self.pair(*rules, files=files, client='trusted_proxies = ["127.0.0.0/8"]\ngeo = ["city.mmdb", "asn.mmdb"]')

        def ask(path, *addresses):
            return self.statuses_of(pair, [Ask(path, fields={"x_forwarded_for": address}) for address in addresses])

        geneva, other, zurich, nowhere = "203.0.113.7", "203.0.113.200", "198.51.100.7", "192.0.2.7"
        for path, expected in (("/city", [200, 429, 200, 200, 200]), ("/region", [200, 429, 200, 200, 200]), ("/asn", [200, 200, 429, 200, 200])):
            self.assertEqual(ask(path, geneva, other, zurich, nowhere, nowhere), expected, path)
        self.assertEqual(ask("/match", geneva, geneva, other, zurich), [200, 429, 200, 200])


if __name__ == "__main__":
    main()
