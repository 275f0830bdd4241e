#!/usr/bin/env python3
"""Proxies ask weir about the requests of their clients: a real nginx by auth_request, and a real Caddy by forward_auth. A limit is exact to
the unit even if clients use both proxies, Envoy's call, /v1/decide and weir itself as a proxy at the same time."""

import pathlib
import time
import unittest

from ask_client import Asker, AskTestCase
from harness import Client, Upstream, eventually, main, rule, together
from proxies import Caddy, Nginx
from rls_client import OK, RlsClient, insecure

ADA = "203.0.113.7"
BY_IP = {"key": '["ip"]', "algorithm": '"fixed_window"'}

NGINX = """
server {
  listen 127.0.0.1:PORT;
  location / {
    auth_request /weir;
    auth_request_set $weir_retry_after $upstream_http_retry_after;
    auth_request_set $weir_remaining $upstream_http_x_ratelimit_remaining;
    add_header X-RateLimit-Remaining $weir_remaining always;
    error_page 403 = @refused;
    proxy_pass http://127.0.0.1:UPSTREAM;
  }
  location @refused {
    internal;
    add_header Retry-After $weir_retry_after always;
    add_header X-RateLimit-Remaining $weir_remaining always;
    return 429 "slow down\\n";
  }
  location = /weir {
    internal;
    proxy_pass http://127.0.0.1:WEIR/v1/forward-auth?refuse=403;
    proxy_pass_request_body off;
    proxy_set_header Content-Length "";
    proxy_set_header X-Forwarded-Method $request_method;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host $host;
    proxy_set_header X-Forwarded-Uri $request_uri;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Weir-Token "open-sesame-1234";
  }
}
"""


class ForwardAuth(AskTestCase):
    def test_answer_has_the_status_and_fields_of_the_decision(self):
        weir = self.ask_weir(rule("minute", "2/1000day", **BY_IP))
        asker = self.asker(weir)
        answers = [asker.forward_auth() for _ in range(3)]
        self.assertEqual([answer.status for answer in answers], [200, 200, 429])
        self.assertEqual([answer["x-ratelimit-remaining"] for answer in answers], ["1", "0", "0"])
        self.assertIn("retry-after", answers[2])
        self.assertEqual(answers[2].json()["error"], "rate_limit_exceeded")
        self.assertEqual(asker.forward_auth(query="?refuse=403").status, 403)
        self.assertEqual(asker.forward_auth(ip="203.0.113.8").status, 200)
        self.assertEqual(weir.metric("weir_decide_questions_total", api="forward_auth", result="allowed"), 3)

    def test_rules_see_the_clients_request(self):
        weir = self.ask_weir(rule("posts", "1/1000day", key='["header:X-Tenant"]',
                                  match='{ methods = ["POST"], path = "/a", host = "api.example.com" }'))
        asker = self.asker(weir)

        def ask(method, tenant):
            return asker.forward_auth(uri="/a?x=1", X_Forwarded_Method=method, X_Tenant=tenant).status
        self.assertEqual([ask("POST", "a"), ask("POST", "a"), ask("GET", "a"), ask("POST", "b")], [200, 429, 200, 200])

    def test_last_untrusted_forwarded_address_is_the_client(self):
        weir = self.ask_weir(rule("minute", "1/1000day", **BY_IP), client='trusted_proxies = ["10.0.0.0/8"]')
        asker = self.asker(weir)
        chains = ("198.51.100.1, 203.0.113.7", "198.51.100.2, 203.0.113.7", "198.51.100.1, 10.0.0.1", "198.51.100.2, 10.0.0.1",
                  "198.51.100.1, 10.0.0.2")
        self.assertEqual([asker.forward_auth(ip=chain).status for chain in chains], [200, 429, 200, 200, 429])

    def test_a_proxy_that_does_not_describe_the_request_gets_400(self):
        asker = self.asker(self.ask_weir())
        for headers in ({}, {"X-Forwarded-For": ADA}, {"X-Forwarded-Uri": "/"}, {"X-Forwarded-Uri": "/", "X-Forwarded-For": "unknown"}):
            self.assert_own_error(asker.request("GET", "/v1/forward-auth", headers), 400)
        self.assert_own_error(asker.forward_auth(query="?refuse=1"), 400)

    def test_authorization_field_is_read_as_the_clients_key_unless_it_has_the_proxys_token(self):
        weir = self.ask_weir(rule("keys", "1/1000day", key='["api_key"]', on_missing='"reject"', algorithm='"fixed_window"'),
                             decide='token = "open-sesame-1234"',
                             client='api_key = { bearer = true }\nunknown_keys = "accept"')
        own = self.asker(weir, headers={"X-Weir-Token": "open-sesame-1234"})
        self.assertEqual([own.forward_auth(Authorization=f"Bearer {key}").status for key in ("a", "a", "b")], [200, 429, 200])
        self.assertEqual(own.forward_auth().status, 401)
        shared = self.asker(weir, headers={"Authorization": "Bearer open-sesame-1234"})
        self.assertEqual(shared.forward_auth().status, 401, "the token is not the client's key")
        self.assertEqual(self.asker(weir).forward_auth().status, 500, "the proxy has no token")
        self.assertEqual(weir.metric("weir_decide_denied_total"), 1)

    def test_answer_waits_until_the_request_may_leave_the_queue(self):
        weir = self.ask_weir(rule("queue", "2/s", key="[]", algorithm='"leaky_bucket"', queue=5))
        began = time.monotonic()
        statuses = together(4, lambda _: Asker(weir.ask_port).forward_auth().status)
        self.assertEqual(statuses, [200] * 4)
        self.assertGreaterEqual(time.monotonic() - began, 1.45, "the last of four departs after 1.5 s")

    def test_asker_that_leaves_while_it_waits_is_refunded(self):
        weir = self.ask_weir(rule("queue", "1/1000s", key="[]", algorithm='"leaky_bucket"', queue=1), rule("minute", "100/1000day", **BY_IP))
        first = self.asker(weir)
        self.assertEqual(first.forward_auth().status, 200)
        waiting = Asker(weir.ask_port)
        waiting.send(b"GET /v1/forward-auth HTTP/1.1\r\nHost: a\r\nX-Forwarded-Uri: /\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n")
        eventually(lambda: weir.metric("weir_decide_questions_total", api="forward_auth", result="allowed") == 2, "the second question waits")
        waiting.leave()
        eventually(lambda: self.asker(weir).decide(ip=ADA)["allowed"], "the place in the queue is free again")


@unittest.skipUnless(pathlib.Path("/usr/sbin/nginx").exists(), "needs nginx")
class BehindNginx(AskTestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def nginx(self, weir):
        return self.start(Nginx(NGINX.replace("UPSTREAM", str(self.upstream.port)).replace("WEIR", str(weir.ask_port))))

    def test_nginx_refuses_what_weir_refuses(self):
        weir = self.ask_weir(rule("minute", "2/1000day", **BY_IP), decide='token = "open-sesame-1234"', upstream=self.upstream)
        nginx = self.nginx(weir)
        with Client(nginx.port) as client:
            answers = [client.request("POST", "/a", body=b"x" * 1000) for _ in range(3)]
        self.assertEqual([answer.status for answer in answers], [200, 200, 429])
        self.assertEqual([answer["x-ratelimit-remaining"] for answer in answers], ["1", "0", "0"])
        self.assertGreater(int(answers[2]["retry-after"]), 0)


CADDY = """
http://:PORT {
  forward_auth 127.0.0.1:WEIR {
    uri /v1/forward-auth?
  }
  reverse_proxy 127.0.0.1:UPSTREAM
}
"""


class ByAllWays(AskTestCase):
    """Clients with one address use all ways to weir at the same time."""

    LIMIT, CLIENTS, REQUESTS = 100, 3, 30  # the limit; clients for each way; requests of each client

    def setUp(self):
        upstream = self.start(Upstream())
        rls = '[[listener]]\naddress = "127.0.0.1:0"\nserves = "rls"\n'
        self.weir = self.ask_weir(rule("minute", f"{self.LIMIT}/1000day", **BY_IP), upstream=upstream, decide=rls)
        self.ways = [self.through_weir, self.decide, self.call]
        ports = {"WEIR": str(self.weir.ask_port), "UPSTREAM": str(upstream.port)}
        for kind, text, program in ((Nginx, NGINX, "/usr/sbin/nginx"), (Caddy, CADDY, "/usr/bin/caddy")):
            if pathlib.Path(program).exists():
                for name, port in ports.items():
                    text = text.replace(name, port)
                self.ways.append(self.through(self.start(kind(text))))

    # Each way returns the number of units that one client gets.

    def through(self, proxy):
        return lambda: self.statuses(proxy.port, self.REQUESTS).count(200)

    def through_weir(self):
        return self.statuses(self.weir.port, self.REQUESTS).count(200)

    def decide(self, cost=2):
        with Asker(self.weir.ask_port) as asker:
            return sum(cost * asker.decide(ip="127.0.0.1", cost=cost)["allowed"] for _ in range(self.REQUESTS))

    def call(self, hits=3):
        with insecure(f"127.0.0.1:{self.weir.ports[2]}") as channel:
            client = RlsClient(channel)
            return sum(hits for _ in range(self.REQUESTS) if client.code("edge", {"a": "b"}, hits=hits) == OK)

    def test_limit_is_exact_across_all_ways_to_ask(self):
        units = together(len(self.ways) * self.CLIENTS, lambda number: self.ways[number % len(self.ways)]())
        left = self.decide(cost=1)  # the last units may have been too few for a cost of two or three
        self.assertEqual(sum(units) + left, self.LIMIT)
        self.assertLess(left, 3, "every way asked for more than was left")


if __name__ == "__main__":
    main()
