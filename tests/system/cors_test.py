#!/usr/bin/env python3
"""CORS: what pages of other origins may read in answers of weir and of servers, and how weir treats preflights. No rule
charges a preflight."""

import json
import unittest

from browser import Browser, find_chromium
from explain_test import ExplainTestCase
from harness import Upstream, answer, main, rule
from http2_client import Http2TestCase

APP = "https://app.example.com"
ASKS = {"Origin": APP, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type,x-api-key"}
LIMIT = rule(limit="2/1000day", key='["ip"]', algorithm='"fixed_window"', headers='{ X-Reason = "quota" }')
USAGE = '[[route]]\nmatch = { path = "/usage" }\nrespond = "usage"\n[[route]]\nmatch = { path = "/own" }\nrespond = { body = "own" }\n'
NAMED = 'headers.response.set = { X-Served-By = "edge" }\n'
TO_SERVER = '[[route]]\nmatch = { path = "/api/*" }\nupstream = "api"\n'


def cors(*origins, **more):
    lines = [f"origins = {json.dumps(origins)}", *(f"{key} = {value}" for key, value in more.items())]
    return "[cors]\n" + "\n".join(lines) + "\n"


class CorsTestCase(Http2TestCase):
    def cors_weir(self, *origins, rules=LIMIT, **more):
        return self.weir(rules=rules, routes=cors(*(origins or (APP,)), **more) + USAGE + TO_SERVER)

    def requesters(self, weir):
        """Returns functions that send a request, one for each protocol."""
        http1 = weir.connect()
        self.start(http1)
        clients = [self.client(weir), self.client(weir, secure=True)]

        def over_http2(client):
            return lambda method, path, fields: client.request(method, path, [(name.lower(), value) for name, value in fields.items()])

        return [http1.request, *map(over_http2, clients)]

    def assert_readable(self, response, origin=APP):
        self.assertEqual(response["access-control-allow-origin"], origin)
        self.assertIn("Origin", response.all("vary"))

    def exposed(self, response):
        return {name.strip().lower() for line in response.all("access-control-expose-headers") for name in line.split(",")}


class OwnAnswers(CorsTestCase):
    def test_page_of_an_allowed_origin_may_read_retry_after_and_rate_limit_fields_of_a_refusal(self):
        weir = self.cors_weir()
        self.statuses(weir.port, 2, "/api/a")
        for request in self.requesters(weir):
            refused = request("GET", "/api/a", {"Origin": APP})
            self.assertEqual(refused.status, 429)
            self.assert_readable(refused)
            self.assertNotIn("access-control-allow-credentials", refused)
            for name in ("retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit",
                         "ratelimit-policy", "x-reason", "x-request-id"):
                self.assertIn(name, self.exposed(refused))
                self.assertIn(name, refused)

    def test_page_of_an_allowed_origin_may_read_every_answer_of_weir(self):
        self.upstream.reply = lambda exchange: exchange.close()
        weir = self.cors_weir(rules=rule(limit="9/1000day", key='["header:X-Who"]', on_missing='"reject"'), credentials="true")
        for path, who, status in (("/nowhere", "a", 404), ("/own", "a", 200), ("/usage", "a", 200), ("/api/a", None, 400),
                                  ("/api/a", "a", 502)):
            with self.subTest(path=path, status=status), weir.connect() as client:
                got = client.request("GET", path, {"Origin": APP} | ({"X-Who": who} if who else {}))
                self.assertEqual(got.status, status)
                self.assert_readable(got)
                self.assertEqual(got["access-control-allow-credentials"], "true")

    def test_page_of_an_origin_that_is_not_allowed_may_not_read_answers(self):
        weir = self.cors_weir()
        for fields in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
            with weir.connect() as client:
                got = client.request("GET", "/own", fields)
            self.assertNotIn("access-control-allow-origin", got)
            self.assertEqual(got["vary"], "Origin")

    def test_page_of_any_origin_may_read_answers_if_all_origins_are_allowed(self):
        weir = self.cors_weir("*")
        got = weir.get("/own", origin="https://any.example")
        self.assertEqual((got["access-control-allow-origin"], got["vary"]), ("*", None))
        self.assertEqual(weir.get("/own")["access-control-allow-origin"], "*", "a cache may give this answer to a page")


class AnswersOfServers(CorsTestCase):
    def test_origins_allowed_by_the_server_stay_and_weir_exposes_its_rate_limit_fields(self):
        self.upstream.reply = answer(headers="Access-Control-Allow-Origin: https://other.example\r\n"
                                             "Access-Control-Expose-Headers: X-Total\r\n")
        weir = self.cors_weir(rules=rule(limit="9/1000day", key='["ip"]'))
        for request in self.requesters(weir):
            got = request("GET", "/api/a", {"Origin": APP})
            self.assertEqual(got.all("access-control-allow-origin"), ["https://other.example"])
            self.assertEqual(self.exposed(got), {"x-total", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset",
                                                 "ratelimit", "ratelimit-policy"})

    def test_fields_that_a_route_writes_are_exposed_in_answers_of_weir_and_of_servers(self):
        self.upstream.reply = answer(headers=f"Access-Control-Allow-Origin: {APP}\r\n")
        routes = cors(APP) + '[[route]]\nmatch = { path = "/own" }\nrespond = { body = "own" }\n' + NAMED + TO_SERVER + NAMED
        weir = self.weir(rules="", routes=routes)
        for request in self.requesters(weir):
            for path in ("/own", "/api/a"):
                got = request("GET", path, {"Origin": APP})
                self.assertEqual(got["x-served-by"], "edge")
                self.assertIn("x-served-by", self.exposed(got))

    def test_weir_adds_no_expose_headers_field_to_answers_without_its_rate_limit_fields(self):
        weir = self.cors_weir(rules="")
        self.assertNotIn("access-control-expose-headers", weir.get("/api/a", origin=APP))
        limited = self.cors_weir(rules=rule(limit="9/1000day", key='["ip"]'))
        for fields in ({}, {"origin": "https://evil.example"}):
            self.assertNotIn("access-control-expose-headers", limited.get("/api/a", **fields))


class Preflights(CorsTestCase):
    def test_preflight_is_forwarded_even_if_the_limit_is_used_up(self):
        self.upstream.reply = answer(b"", status="204 No Content", headers="Access-Control-Allow-Origin: *\r\n", length=False)
        weir = self.cors_weir()
        self.assertEqual(self.statuses(weir.port, 3, "/api/a"), [204, 204, 429])
        for request in self.requesters(weir):
            got = request("OPTIONS", "/api/a", ASKS)
            self.assertEqual((got.status, got.all("access-control-allow-origin")), (204, ["*"]))
            self.assertNotIn("x-ratelimit-limit", got)
        self.assertEqual([exchange.method for exchange in self.upstream.exchanges], ["GET"] * 2 + ["OPTIONS"] * 3)
        self.assertEqual(self.upstream.exchanges[-1].head["access-control-request-method"], "PUT")
        self.await_metric(weir, 3, "weir_preflights_total")

    def test_preflights_charge_nothing(self):
        weir = self.cors_weir()
        for request in self.requesters(weir):
            for _ in range(3):
                self.assertEqual(request("OPTIONS", "/api/a", ASKS).status, 200)
        self.assertEqual(weir.get("/api/a")["x-ratelimit-remaining"], "1")

    def test_weir_answers_preflights_itself_if_configured(self):
        weir = self.cors_weir(preflight='"answer"', max_age='"1h"')
        for request in self.requesters(weir):
            got = request("OPTIONS", "/api/a", ASKS)
            self.assertEqual(got.status, 204)
            self.assert_readable(got)
            self.assertEqual((got["access-control-allow-methods"], got["access-control-allow-headers"], got["access-control-max-age"]),
                             ("PUT", "content-type,x-api-key", "3600"))
        self.assertEqual(self.upstream.exchanges, [])
        self.assertEqual(weir.get("/api/a")["x-ratelimit-remaining"], "1")

    def test_request_that_asks_for_an_invalid_method_is_no_preflight(self):
        weir = self.cors_weir(preflight='"answer"')
        answers = [request("OPTIONS", "/api/a", {**ASKS, "Access-Control-Request-Method": "PUT, <b>"}) for request in self.requesters(weir)]
        self.assertEqual([each.status for each in answers], [200, 200, 429], "the rule admits two requests to the server")
        self.assertEqual([each["access-control-allow-methods"] for each in answers], [None] * 3)
        self.assertEqual(weir.metric("weir_preflights_total"), 0)

    def test_weir_answers_preflights_of_routes_without_an_upstream(self):
        weir = self.cors_weir()
        with weir.connect() as client:
            self.assertEqual([client.request("OPTIONS", path, ASKS).status for path in ("/own", "/usage", "/nowhere")], [204, 204, 404])

    def test_options_requests_that_are_not_preflights_are_charged(self):
        weir = self.cors_weir(preflight='"answer"')
        with weir.connect() as client:
            self.assertEqual(client.request("OPTIONS", "/api/a", {"Origin": APP}).status, 200)
            self.assertEqual(client.request("OPTIONS", "/api/a", ASKS | {"Origin": "https://evil.example"}).status, 200)
            self.assertEqual(client.request("OPTIONS", "/api/a", ASKS | {"Origin": "https://evil.example"}).status, 429)

    def test_options_request_with_a_field_that_no_preflight_has_is_charged(self):
        for field in ({"X-API-Key": "k"}, {"X-HTTP-Method-Override": "POST"}):
            weir = self.cors_weir()
            with self.subTest(**field), weir.connect() as client:
                got = [client.request("OPTIONS", "/api/a?login=a", ASKS | field).status for _ in range(3)]
                self.assertEqual(got, [200, 200, 429])
                self.assertEqual(weir.metric("weir_preflights_total"), 0)

    def test_without_cors_settings_preflights_are_treated_like_other_requests(self):
        weir = self.plain_weir(LIMIT)
        with weir.connect() as client:
            got = [client.request("OPTIONS", "/", ASKS) for _ in range(3)]
        self.assertEqual([each.status for each in got], [200, 200, 429])
        self.assertNotIn("access-control-allow-origin", got[2])


class Explained(ExplainTestCase):
    def test_explanation_says_that_the_request_is_a_preflight(self):
        weir = self.begin(LIMIT, routes=cors(APP, preflight='"answer"') + TO_SERVER)
        said = self.explain(method="OPTIONS", path="/api/a", headers=ASKS)
        self.assertEqual((said["verdict"]["verdict"], said["verdict"]["status"]), ("answer", 204))
        self.assertEqual(said["verdict"]["why"], "no limit is asked: it is a CORS preflight")
        with weir.connect() as client:
            got = client.request("OPTIONS", "/api/a", ASKS)
        for name in ("Access-Control-Allow-Methods", "Access-Control-Allow-Origin", "Access-Control-Max-Age"):
            self.assertEqual(said["verdict"]["headers"][name], got[name])

    def test_explanation_says_that_weir_answers_a_preflight_without_a_route(self):
        for preflight in ("forward", "answer"):
            with self.subTest(preflight=preflight):
                weir = self.begin(LIMIT, routes=cors(APP, preflight=f'"{preflight}"') + TO_SERVER)
                said = self.explain(method="OPTIONS", path="/nowhere", headers=ASKS)["verdict"]
                self.assertEqual((said["verdict"], said["status"], said["why"]), ("answer", 404, "no limit is asked: it is a CORS preflight"))
                with weir.connect() as client:
                    self.assertEqual(client.request("OPTIONS", "/nowhere", ASKS).status, 404)

    def test_explanation_says_that_a_preflight_is_forwarded(self):
        self.begin(LIMIT, routes=cors(APP) + TO_SERVER)
        said = self.explain(method="OPTIONS", path="/api/a", headers=ASKS)["verdict"]
        self.assertEqual((said["verdict"], said.get("status")), ("forward", None))

    def test_explanation_shows_the_fields_of_a_refusal(self):
        weir = self.begin(LIMIT, routes=cors(APP) + TO_SERVER)
        self.statuses(weir.port, 2, "/api/a")
        said = self.explain(path="/api/a", headers={"Origin": APP})["verdict"]
        self.assertEqual((said["status"], said["headers"]["Access-Control-Allow-Origin"], said["headers"]["X-Reason"]), (429, APP, "quota"))


@unittest.skipUnless(find_chromium(), "needs Chromium")
class InChromium(CorsTestCase):
    FETCH = """(async () => {
      const answer = await fetch("%s", { method: "PUT", headers: { "X-API-Key": "k" } });
      const names = ["Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy",
                     "X-Reason", "X-Total"];
      return { status: answer.status, body: await answer.text(), fields: names.map((name) => answer.headers.get(name)) };
    })().catch((error) => ({ fault: error.name }))"""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = cls.enterClassContext(Browser())

    def page(self):
        """Returns an origin, and a browser page of this origin."""
        site = self.start(Upstream(answer(b"<title>app</title>", headers="Content-Type: text/html\r\n")))
        origin = f"http://127.0.0.1:{site.port}"
        page = self.browser.open(origin)
        page.await_true("document.title === 'app'")
        return origin, page

    def reply(self, origin):
        def reply(exchange):
            permits = f"Access-Control-Allow-Origin: {origin}\r\nAccess-Control-Allow-Methods: PUT\r\n"
            more = ("Access-Control-Allow-Headers: x-api-key\r\nAccess-Control-Max-Age: 0\r\n" if exchange.method == "OPTIONS" else
                    "X-Total: 7\r\nAccess-Control-Expose-Headers: X-Total\r\n")
            exchange.read_body()
            exchange.send(answer(b"data", headers=permits + more))

        return reply

    def test_page_of_a_listed_origin_reads_status_body_and_limits_of_a_429(self):
        origin, page = self.page()
        self.upstream.reply = self.reply(origin)
        weir = self.cors_weir(origin)
        fetch = self.FETCH % f"http://127.0.0.1:{weir.port}/api/a"
        first, second, refused = (page.evaluate(fetch) for _ in range(3))
        self.assertEqual((first["status"], first["body"]), (200, "data"), first)
        self.assertEqual((first["fields"][1:3], first["fields"][-1]), (["2", "1"], "7"))
        self.assertEqual(second["fields"][1:3], ["2", "0"])
        self.assertEqual(refused["status"], 429, refused)
        self.assertEqual(json.loads(refused["body"])["rule"], "per-ip")
        retry_after, limit, remaining, reset, rate_limit, policy, reason, total = refused["fields"]
        self.assertEqual((limit, remaining, reason, total), ("2", "0", "quota", None))
        self.assertEqual(int(retry_after), json.loads(refused["body"])["retry_after_seconds"])
        self.assertTrue(reset.isdigit() and rate_limit.startswith('"per-ip";r=0') and policy.startswith('"per-ip";q=2'))
        self.assertEqual(weir.metric("weir_preflights_total"), 3)
        self.assertEqual([each.method for each in self.upstream.exchanges], ["OPTIONS", "PUT"] * 2 + ["OPTIONS"])

    def test_page_of_an_origin_that_is_not_listed_reads_nothing(self):
        _, page = self.page()
        weir = self.cors_weir(APP, preflight='"answer"')
        self.assertEqual(page.evaluate(self.FETCH % f"http://127.0.0.1:{weir.port}/own"), {"fault": "TypeError"})

    def test_page_reads_its_usage_after_a_preflight_that_weir_answers(self):
        origin, page = self.page()
        weir = self.cors_weir(origin, preflight='"answer"')
        self.assertEqual(weir.get("/api/a").status, 200)
        got = page.evaluate(self.FETCH % f"http://127.0.0.1:{weir.port}/usage")
        self.assertEqual(got["status"], 200, got)
        self.assertEqual(json.loads(got["body"])["limits"][0]["used"], 1)


if __name__ == "__main__":
    main()
