#!/usr/bin/env python3
"""Programs ask weir on a listener with serves = "decide". weir decides by its rules and charges them, as for a request that it
proxies."""

import json
import pathlib
import signal
import tempfile

from ask_client import Asker, AskTestCase
from harness import (PATIENCE, Redis, Upstream, Weir, client_tls, config, eventually, logged_requests, main, make_authority,
                     make_certificate, make_client_certificate, rule, together)
from http2_client import Http2Client
from key_issuer import Ed25519Issuer, KeyServer
from usage_test import SECRET, token

KEYS = '[[key]]\nkey = "plain"\nuser = "ada"\n[[key]]\nkey = "gold"\nuser = "bob"\ntier = "gold"\n'
LISTENER = '[[listener]]\naddress = "127.0.0.1:0"\nserves = "decide"\n'
ADA, BOB = "203.0.113.7", "203.0.113.8"
BY_IP = {"key": '["ip"]', "algorithm": '"fixed_window"'}


class Decide(AskTestCase):
    def test_a_question_is_charged_like_a_request_of_its_client(self):
        weir = self.ask_weir(rule("minute", "3/1000day", **BY_IP))
        asker = self.asker(weir)
        answers = [asker.decide(ip=ADA) for _ in range(4)]
        self.assertEqual([answer["allowed"] for answer in answers], [True, True, True, False])
        first, last = answers[0], answers[3]
        self.assertEqual((first["status"], first["rule"], first["limit"], first["remaining"], first["wait_seconds"]), (200, "minute", 3, 2, 0))
        self.assertEqual(first["headers"]["X-RateLimit-Remaining"], "2")
        self.assertEqual((last["status"], last["rule"], last["remaining"]), (429, "minute", 0))
        self.assertEqual(last["headers"]["Retry-After"], str(last["retry_after_seconds"]))
        self.assertEqual(json.loads(last["body"])["error"], "rate_limit_exceeded")
        self.assertEqual(last["content_type"], "application/json")
        self.assertTrue(asker.decide(ip=BOB)["allowed"])
        self.assertEqual(weir.metric("weir_decide_questions_total", api="decide", result="allowed"), 4)
        self.assertEqual(weir.metric("weir_decide_questions_total", api="decide", result="refused"), 1)
        self.assertEqual(weir.metric("weir_decide_seconds_count"), 5)

    def test_questions_and_requests_share_a_limit(self):
        weir = self.ask_weir(rule("minute", "3/1000day", **BY_IP))
        asker = self.asker(weir)
        self.assertTrue(asker.decide(ip="127.0.0.1")["allowed"])
        self.assertEqual(self.statuses(weir.port, 1), [200])
        self.assertTrue(asker.decide(ip="127.0.0.1")["allowed"])
        self.assertEqual(self.statuses(weir.port, 1), [429])
        self.assertFalse(asker.decide(ip="127.0.0.1")["allowed"])

    def test_conditions_see_the_request_that_the_question_describes(self):
        posts = rule("posts", "1/1000day", key="[]", algorithm='"fixed_window"',
                     match='{ methods = ["POST"], path = "/orders/*", host = "api.example.com" }')
        header = rule("header", "1/1000day", key='["header:X-Tenant"]', match='{ headers = { X-Tenant = true } }', algorithm='"fixed_window"')
        weir = self.ask_weir(posts, header)
        asker = self.asker(weir)
        order = {"method": "POST", "host": "api.example.com", "path": "/orders/1?x=y"}
        self.assertEqual(asker.decide(**order)["rule"], "posts")
        self.assertFalse(asker.decide(**order)["allowed"])
        self.assertNotIn("rule", asker.decide(method="GET", host="api.example.com", path="/orders/1"))
        self.assertNotIn("rule", asker.decide(method="POST", host="other.example.com", path="/orders/1"))
        self.assertEqual([asker.decide(headers={"x-tenant": name})["allowed"] for name in ("a", "a", "b")], [True, False, True])

    def test_rules_can_use_the_attributes_and_the_domain_of_a_question(self):
        weir = self.ask_weir(rule("customers", "2/1000day", key='["descriptor:customer"]', algorithm='"fixed_window"',
                                  match='{ descriptor = { plan = "free" }, domains = ["billing"] }'))
        asker = self.asker(weir)

        def ask(customer, plan="free", domain="billing", **more):
            return asker.decide(domain=domain, attributes={"customer": customer, "plan": plan, "more": "x"}, **more)
        self.assertEqual([ask("a")["allowed"] for _ in range(3)], [True, True, False])
        self.assertTrue(ask("b")["allowed"])
        self.assertNotIn("rule", ask("a", plan="gold"))
        self.assertNotIn("rule", ask("a", domain="other"))
        self.assertNotIn("rule", asker.decide(domain="billing"))

    def test_a_question_is_charged_the_cost_that_it_states(self):
        weir = self.ask_weir(rule("tokens", "10/1000day", **BY_IP))
        asker = self.asker(weir)
        self.assertEqual(asker.decide(ip=ADA, cost=7)["remaining"], 3)
        self.assertFalse(asker.decide(ip=ADA, cost=4)["allowed"])
        self.assertEqual(asker.decide(ip=ADA, cost=3)["remaining"], 0)

    def test_a_batch_is_decided_in_its_order(self):
        weir = self.ask_weir(rule("minute", "3/1000day", **BY_IP))
        asker = self.asker(weir)
        questions = [{"ip": ip} for ip in (ADA, ADA, BOB, ADA, ADA, BOB)]
        answers = asker.decide(questions)
        self.assertEqual([answer["allowed"] for answer in answers], [True, True, True, True, False, True])
        self.assertEqual([answer["remaining"] for answer in answers], [2, 1, 2, 0, 0, 1])
        self.assertEqual(len(asker.decide([{"ip": ADA}] * 100)), 100)
        self.assertEqual(asker.post("/v1/decide", [{}] * 101).status, 400)

    def test_invalid_call_gets_an_error_and_charges_nothing(self):
        weir = self.ask_weir(rule("minute", "3/1000day", **BY_IP))
        asker = self.asker(weir)
        cases = [({"ip": "nobody"}, '"ip" is not an IP address'), ({"pth": "/"}, 'there is no member "pth"; write "path"'),
                 ([{"ip": ADA}, {"cost": -1}], 'question 2: "cost" is not a whole number'), (b"{", "not valid JSON"), (b"", "not valid JSON")]
        for body, message in cases:
            with self.subTest(body=body):
                response = asker.post("/v1/decide", body)
                self.assert_own_error(response, 400)
                self.assertIn(message, response.json()["message"])
        self.assertEqual(asker.request("GET", "/v1/decide").status, 405)
        self.assertEqual(asker.request("GET", "/").status, 404)
        self.assertEqual(asker.decide(ip=ADA)["remaining"], 2)
        self.assertEqual(weir.metric("weir_decide_questions_total", result="error"), len(cases))

    def test_question_about_a_request_that_the_proxy_would_reject_is_refused(self):
        weir = self.ask_weir(rule("keys", "3/1000day", key='["api_key"]', on_missing='"reject"'))
        asker = self.asker(weir)
        for question, status in (({"path": "a b"}, 400), ({}, 401), ({"headers": {"Host": "a", "X": "a\r\nb"}}, 400)):
            with self.subTest(question=question):
                answer = asker.decide(question)
                self.assertEqual((answer["allowed"], answer["status"]), (False, status))
                self.assertIn("message", json.loads(answer["body"]))
        answer = asker.decide({})
        self.assertEqual((answer["rule"], "WWW-Authenticate" in answer["headers"]), ("keys", True))

    def test_answer_says_how_long_a_queued_request_must_wait(self):
        weir = self.ask_weir(rule("queue", "1/100s", key="[]", algorithm='"leaky_bucket"', queue=2))
        asker = self.asker(weir)
        waits = [asker.decide(ip=ADA) for _ in range(4)]
        self.assertEqual([answer["allowed"] for answer in waits], [True, True, True, False])
        self.assertEqual(waits[0]["wait_seconds"], 0)
        self.assertTrue(90 < waits[1]["wait_seconds"] <= 100, waits[1])
        self.assertTrue(190 < waits[2]["wait_seconds"] <= 200, waits[2])

    def test_shadow_rules_refuse_nothing(self):
        weir = self.ask_weir(rule("trial", "1/1000day", mode='"shadow"', **BY_IP))
        asker = self.asker(weir)
        self.assertEqual([asker.decide(ip=ADA)["allowed"] for _ in range(3)], [True] * 3)
        self.assertEqual(weir.metric("weir_decisions_total", rule="trial", outcome="shadow_refused"), 2)

    def test_refusal_during_a_penalty_does_not_start_another_penalty(self):
        weir = self.ask_weir(rule("minute", "1/1000day", penalty='{ for = "1h" }', **BY_IP))
        asker = self.asker(weir)
        self.assertEqual([asker.decide(ip=ADA)["allowed"] for _ in range(3)], [True, False, False])
        self.assertEqual(weir.metric("weir_penalties_total", rule="minute"), 1)

    def test_question_is_decided_by_the_limit_of_its_api_keys_tier(self):
        weir = self.ask_weir(rule("minute", "1/1000day", key='["api_key"]', algorithm='"fixed_window"', tiers='{ gold = { limit = "3/1000day" } }'),
                             client='keys = "keys.toml"\nunknown_keys = "reject"', files={"keys.toml": KEYS})
        asker = self.asker(weir)

        def ask(key, count):
            return [asker.decide(headers={"X-API-Key": key})["status"] for _ in range(count)]
        self.assertEqual(ask("plain", 2), [200, 429])
        self.assertEqual(ask("gold", 4), [200, 200, 200, 429])
        self.assertEqual(ask("unknown", 1), [401])

    def test_listener_can_be_a_condition(self):
        weir = self.ask_weir(rule("asked", "1/1000day", match='{ listener = "ask" }', **BY_IP))
        asker = self.asker(weir)
        self.assertEqual([asker.decide(ip="127.0.0.1")["allowed"] for _ in range(2)], [True, False])
        self.assertEqual(self.statuses(weir.port, 2), [200, 200])

    def test_late_body_of_a_question_is_awaited_until_head_timeout(self):
        weir = self.ask_weir(rule("minute", "3/1000day", **BY_IP), server='head_timeout = "1s"')
        asker = self.asker(weir)
        head = b"POST /v1/decide HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        asker.send(head)
        self.assertEqual(asker.read().status, 100)
        asker.send(b"{}")
        self.assertTrue(asker.read().json()["allowed"])
        asker.send(head + b"{")
        self.assertEqual([asker.read().status for _ in range(2)], [100, 408])
        self.assertEqual([weir.metric("weir_decide_questions_total", result=result) for result in ("allowed", "error")], [1, 1])

    def test_decisions_are_answered_over_http2(self):
        weir = self.ask_weir(rule("minute", "3/1000day", **BY_IP), decide='protocols = ["http/1.1", "h2c"]')
        client = self.start(Http2Client(weir.ask_port))
        body = json.dumps({"ip": ADA}).encode()
        answers = [client.request("POST", "/v1/decide", body=body).json() for _ in range(4)]
        self.assertEqual([answer["allowed"] for answer in answers], [True, True, True, False])

    def test_limits_are_exact_for_many_askers_at_once(self):
        weir = self.ask_weir(rule("minute", "100/1000day", **BY_IP))

        def ask(_):
            with Asker(weir.ask_port) as asker:
                return [asker.decide(ip=ADA)["allowed"] for _ in range(25)]
        allowed = sum(sum(results) for results in together(8, ask))
        self.assertEqual(allowed, 100)

    def test_access_log_has_the_request_that_the_question_describes(self):
        scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-test-")))
        upstream = self.start(Upstream())
        text = config(upstream.port, rules=rule("minute", "1/1000day", **BY_IP) + LISTENER).replace('access = "off"', f'access = "{scratch / "log"}"')
        weir = self.start(Weir(text))
        with Asker(weir.ports[1]) as asker:
            for _ in range(2):
                asker.decide(ip=ADA, method="POST", host="api.example.com", path="/orders?id=1")
        eventually(lambda: len(logged_requests(scratch / "log")) == 2, "two lines")
        for line, verdict, status in zip(logged_requests(scratch / "log"), ("forward", "reject"), (200, 429)):
            self.assertEqual((line["client"], line["method"], line["host"], line["target"], line["verdict"], line["rule"], line["status"]),
                             (ADA, "POST", "api.example.com", "/orders?id=1", verdict, "minute", status))

    def test_token_in_a_question_identifies_the_client(self):
        weir = self.ask_weir(rule("users", "1/1000day", key='["user"]', on_missing='"reject"', algorithm='"fixed_window"'),
                             client=f'jwt = {{ algorithm = "HS256", secret = "{SECRET}" }}\nuser = {{ claim = "sub" }}')
        asker = self.asker(weir)

        def ask(user):
            return asker.decide(headers={"Authorization": "Bearer " + token(sub=user)})
        self.assertEqual([ask(user)["status"] for user in ("ada", "ada", "bob")], [200, 429, 200])
        self.assertEqual(asker.decide(headers={"Authorization": "Bearer x.y.z"})["status"], 401)

    def test_question_waits_until_its_token_key_is_fetched(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-test-")))
        issuer = Ed25519Issuer(folder, "login")
        keys = self.start(KeyServer(folder, issuer))
        fetch = f'cooldown = "100ms", wait = "{PATIENCE}s", ca = "{folder / "login.crt"}"'
        weir = self.ask_weir(rule("claim", "1/1000day", key='["claim:sub"]', on_missing='"reject"', algorithm='"fixed_window"'),
                             client=f'jwt = {{ issuer = "login", jwks = "{keys.url}", fetch = {{ {fetch} }} }}')
        asker = self.asker(weir)
        keys.rotate("1", "2")
        self.assertEqual([asker.decide(headers={"Authorization": "Bearer " + issuer.token("2")})["status"] for _ in range(2)], [200, 429])

    def test_two_weirs_share_a_limit_in_redis(self):
        redis = self.start(Redis())
        state = f'redis = {{ url = "redis://127.0.0.1:{redis.port}" }}'
        limit = rule("minute", "5/1000day", store='"redis"', **BY_IP)
        askers = [self.asker(self.ask_weir(limit, state=state)) for _ in range(2)]
        allowed = [askers[number % 2].decide(ip=ADA)["allowed"] for number in range(8)]
        self.assertEqual(allowed, [True] * 5 + [False] * 3)

    def test_question_gets_503_while_redis_is_down_if_on_store_failure_is_closed(self):
        redis = self.start(Redis())
        state = f'redis = {{ url = "redis://127.0.0.1:{redis.port}" }}'
        weir = self.ask_weir(rule("minute", "5/1000day", store='"redis"', on_store_failure='"closed"', **BY_IP), state=state)
        asker = self.asker(weir)
        self.assertTrue(asker.decide(ip=ADA)["allowed"])
        redis.kill()
        answer = asker.decide(ip=ADA)
        self.assertEqual((answer["allowed"], answer["status"], answer["rule"]), (False, 503, "minute"))

    def test_a_reload_changes_rules_and_token(self):
        upstream = self.start(Upstream())

        def text(limit, token_line):
            return config(upstream.port, rules=rule("minute", limit, **BY_IP) + LISTENER + token_line)
        weir = self.start(Weir(text("1/1000day", "")))
        asker = self.start(Asker(weir.ports[1]))
        self.assertEqual([asker.decide(ip=ADA)["allowed"] for _ in range(2)], [True, False])
        (weir.folder / "weir.toml").write_text(text("3/1000day", 'token = "open-sesame-1234"\n'))
        weir.signal(signal.SIGHUP)
        weir.wait_for("reloaded")
        self.assertEqual(asker.post("/v1/decide", {"ip": ADA}).status, 401)
        allowed = self.start(Asker(weir.ports[1], headers={"X-Weir-Token": "open-sesame-1234"}))
        self.assertEqual([allowed.decide(ip=BOB)["allowed"] for _ in range(4)], [True, True, True, False])


class Access(AskTestCase):
    def test_asker_without_the_token_of_the_listener_gets_401(self):
        weir = self.ask_weir(decide='token = "open-sesame-1234"')
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "open-sesame-1234"}, {"X-Weir-Token": "wrong"}):
            with self.subTest(headers=headers):
                response = self.asker(weir, headers=headers).post("/v1/decide", {})
                self.assert_own_error(response, 401)
                self.assertEqual(response["www-authenticate"], "Bearer")
        self.assertEqual(weir.metric("weir_decide_denied_total"), 4)
        for headers in ({"Authorization": "Bearer open-sesame-1234"}, {"X-Weir-Token": "open-sesame-1234"}):
            self.assertTrue(self.asker(weir, headers=headers).decide({})["allowed"])

    def test_certificate_admits_the_asker_but_does_not_identify_the_client(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-test-")))
        files = {**make_certificate(folder), **make_authority(folder)}
        make_client_certificate(folder, "edge-proxy", "/CN=edge-proxy")
        tls = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }], client_ca = "ca.crt", client_auth = "require" }'
        cert = rule("cert", "1/1000day", key='["cert:subject"]', on_missing='"reject"')
        weir = self.ask_weir(cert, decide=tls, files=files)
        asker = self.asker(weir, tls=client_tls(files["edge.crt"], shown=folder / "edge-proxy"))
        answer = asker.decide(ip=ADA)
        self.assertEqual((answer["allowed"], answer["status"]), (False, 401), "the asker's certificate is not the client's")
        with self.assertRaises(OSError):
            self.asker(weir, tls=client_tls(files["edge.crt"])).decide(ip=ADA)

    def test_questions_that_pages_in_browsers_send_are_refused(self):
        weir = self.ask_weir(rule("minute", "2/1000day", **BY_IP))
        asker = self.asker(weir)
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            for path in ("/v1/decide", "/v1/settle"):
                self.assert_own_error(asker.post(path, {"ip": ADA}, headers), 403)
        self.assertEqual(asker.forward_auth(ip=ADA, Origin="https://shop.example").status, 200)
        self.assertEqual(asker.decide(ip=ADA)["remaining"], 0)

    def test_openapi_document_names_every_member_of_questions_answers_and_settlements(self):
        weir = self.ask_weir(rule("minute", "1/1000day", penalty='{ for = "1h" }', **BY_IP))
        asker = self.asker(weir)
        document = asker.get("/v1/openapi.json").json()
        self.assertEqual(document["openapi"], "3.1.0")
        schemas = document["components"]["schemas"]
        answers = [asker.decide(ip=ADA, permit=True), asker.decide(ip=ADA), asker.decide(path="a b")]
        for answer in answers:
            self.assertLessEqual(answer.keys(), schemas["Answer"]["properties"].keys())
            self.assertLessEqual(set(schemas["Answer"]["required"]), answer.keys())
        for path, schema in (("/v1/decide", "Question"), ("/v1/settle", "Settlement")):
            message = asker.post(path, {"unknown": 1}).json()["message"]
            known = message.rpartition("expected one of ")[2].replace(" and ", ", ").split(", ")
            self.assertEqual(known, list(schemas[schema]["properties"]))
        self.assertEqual(set(document["paths"]), {"/v1/decide", "/v1/settle", "/v1/forward-auth", "/v1/openapi.json"})


if __name__ == "__main__":
    main()
