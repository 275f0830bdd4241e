#!/usr/bin/env python3
"""Records of HTTP/2 requests: each field of the access log, metrics, explanations, and the lists and resets of keys."""

import json
import os
import pathlib
import re
import threading

from country_file import country_file
from explain_test import ExplainTestCase
from harness import PATIENCE, Client, Upstream, answer, closed_port, eventually, get, main, request_bytes, rule
from http2_client import Http2Client
from protocol_pair import Ask, LoggedTestCase, NewClient, OldClient

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNLIKE = {"time", "protocol", "request_id", "key", "run", "clock_us", "at_us", "asked_us", "turn"}  # these differ between processes
TIMED = {"total_us", "queued_us", "upstream_us", "latency_us", "departure_us"}
CLIENT = 'keys = "keys.toml"\ntrusted_proxies = ["127.0.0.0/8"]\ngeo = "c.mmdb"\n' + "".join(
    f'{name} = {{ header = "X-{name.title()}" }}\n' for name in ("user", "org", "service", "device"))
FILES = {"c.mmdb": country_file({"203.0.113.0/24": "CH"}), "keys.toml": '[[key]]\nkey = "gold"\nuser = "paula"\ntier = "pro"\n'}
ROUTES = """
[[upstream]]
name = "away"
servers = ["127.0.0.1:{away}"]
[[upstream]]
name = "slow"
servers = ["127.0.0.1:{slow}"]
timeouts = {{ response = "100ms" }}
[[route]]
match = {{ path = "/own" }}
respond = {{ status = 200, body = "pong" }}
[[route]]
name = "gone"
match = {{ path = "/away" }}
upstream = "away"
[[route]]
match = {{ path = "/slow" }}
upstream = "slow"
[[route]]
match = {{ path = "/api/small" }}
upstream = "api"
max_body = "10B"
[[route]]
name = "api"
match = {{ path = "/api/*" }}
upstream = "api"
"""


def alike(value):
    """Returns a part of a log line without the fields that differ between two processes."""
    if isinstance(value, dict):
        return {name: "N" if name in TIMED else alike(each) for name, each in value.items() if name not in UNLIKE}
    return [alike(each) for each in value] if isinstance(value, list) else value


class Log(LoggedTestCase):
    def pair_with_logs(self, *rules, **more):
        pairs = [self.logged(*rules, name=name, **more) for name in ("old.log", "new.log")]
        return [weir for weir, _ in pairs], [path for _, path in pairs]

    def test_each_log_field_is_the_same_as_for_http_1_1(self):
        slow = self.start(Upstream(lambda exchange: exchange.wait_for_close()))

        def reply(exchange):
            exchange.read_body()
            exchange.send(answer(status="404 Not Found" if "no" in exchange.target else "200 OK", headers="X-Tokens: 7\r\n"))

        self.upstream.reply = reply
        rules = [rule("per-key", "3/day", key='["api_key|ip"]', match='{ path = "/api/key" }', tiers='{ pro = { limit = "5/day" } }'),
                 rule("per-ip", "90/day", key='["ip"]', cost='{ header = "X-Cost" }',
                      overrides='[{ match = { path = "/own" }, limit = "80/day" }]'),
                 rule("failures", "9/3000day", key='["ip"]', algorithm='"sliding_log"', charge='{ status = ["404"] }'),
                 rule("tokens", "900/day", key='["user"]', cost='{ response_header = "X-Tokens", reserve = 9 }'),
                 rule("users", "9/day", key='["user"]', on_missing='"reject"', match='{ path = "/api/users" }'),
                 rule("trial", "2/day", key="[]", mode='"shadow"'), rule("country", "90/day", key='["country"]'),
                 rule("word", "9/day", match='{ path = "/api/words", body_contains = "x" }'),
                 '[[rule]]\nname = "together"\nlimit = 9\nalgorithm = "concurrency"\nkey = ["ip"]\n']
        pair, paths = self.pair_with_logs(*rules, client=CLIENT, files=FILES, routes=ROUTES.format(away=closed_port(), slow=slow.port),
                                          state='key_secret = "the same at both weirs"')
        who = {"x_user": "ann", "x_org": "acme", "x_service": "shop", "x_device": "phone", "x_forwarded_for": "203.0.113.7"}
        asks = [Ask("/api/a?b=c&access_token=t", fields={**who, "user_agent": "test/1", "traceparent": TRACE}, host="shop.test:80"),
                *[Ask("/api/key", fields={"x_api_key": "gold"})] * 6, Ask("/api/key", fields={"x_api_key": "unknown", "x_cost": "2"}),
                Ask("/api/up", "PUT", body=b"12345"), Ask("/api/head", "HEAD"), Ask("/api/no"), Ask("/own"), Ask("/none"), Ask("/away"),
                Ask("/slow"), Ask("/api/users"), Ask("/api/words", "POST", body=b"no"), Ask("/api/words", "POST", body=b"x"),
                Ask("/api/words", "POST", [("content-encoding", "gzip")], b"x"), Ask("/x/..;/api/key"),
                *[Ask("/api/a", fields=fields) for fields in ({"x_cost": "x"}, {"x_request_id": "edge-1"}, {"traceparent": "00-none"})]]
        answers = self.same(pair, asks)
        self.assertEqual({each.status for each in answers}, {200, 400, 401, 404, 415, 429, 502, 504})
        old, new = (self.lines(path, len(asks)) for path in paths)
        for ask, one, other, response in zip(asks, old, new, answers):
            if "server" not in one:  # weir itself answered, perhaps before the whole body arrived
                one["bytes_in"] = other["bytes_in"] = 0
            self.assertEqual(alike(other), alike(one), ask)
            self.assertEqual((one["protocol"], other["protocol"], other["status"]), ("HTTP/1.1", "HTTP/2", response.status))
            self.assertRegex(other.get("key", "0" * 32), "^[0-9a-f]{32}$")
            self.assertIn(response["x-request-id"], (None, other["request_id"]))
        self.assertEqual(self.documented() - {name for line in new for name in line}, {"queued_us", "paced_us", "question"})
        self.assertEqual([line["bytes_in"] for line in new if line["target"] == "/api/up"], [5])
        self.assertNotIn("gold", paths[1].read_text())

    def documented(self):
        """Returns the names of the fields in the table of docs/observability.md."""
        page = pathlib.Path(os.environ.get("WEIR_SOURCE", "."), "docs", "observability.md").read_text()
        rows = re.findall(r"^\| (`[^|]*) \|", page.split("| field | value |")[1].split("\n\n")[0], re.M)
        return set(re.findall("`(\\w+)`", " ".join(rows)))

    def test_a_delayed_stream_is_logged_with_its_time_in_the_queue(self):
        weir, path = self.logged(rule("queue", "4/s", key="[]", algorithm='"leaky_bucket"', queue=9))
        client = self.client(weir)
        with client.corked():
            streams = [client.open(path=f"/{number}") for number in range(3)]
        self.assertEqual({client.read(stream).status for stream in streams}, {200})
        lines = self.lines(path, 3)
        self.assertEqual([(line["target"], line["verdict"]) for line in lines], [("/0", "forward"), ("/1", "delay"), ("/2", "delay")])
        self.assertGreater(lines[2]["queued_us"], lines[1]["queued_us"])
        self.assertGreaterEqual(lines[2]["total_us"], lines[2]["queued_us"])

    def test_stream_that_the_client_resets_is_logged_as_a_client_that_left(self):
        asked = threading.Semaphore(0)

        def reply(exchange):
            if exchange.target != "/silent":
                exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
            asked.release()
            exchange.wait_for_close()

        def leave(weir, kind, path):
            """Sends a request, and leaves when it is at the server or in the queue."""
            if kind is OldClient:
                client = Client(weir.port)
                client.send(request_bytes("GET", path))
            else:
                client = self.client(weir)
                stream = client.open(path=path)
            if path == "/queue":
                self.await_metric(weir, 1, "weir_queue_depth")
            else:
                self.assertTrue(asked.acquire(timeout=PATIENCE))
            client.leave() if kind is OldClient else client.reset(stream)

        self.upstream.reply = reply
        queue = rule("queue", "1/day", key="[]", algorithm='"leaky_bucket"', queue=9, match='{ path = "/queue*" }')
        pair, paths = self.pair_with_logs(rule("day", "9/day"), queue)
        for weir, kind in zip(pair, (OldClient, NewClient)):
            for number, path in enumerate(("/silent", "/head", "/queue/first", "/queue"), 1):
                leave(weir, kind, path)
                self.await_metric(weir, number, "weir_client_errors_total", kind="left")
        old, new = (self.lines(path, 4) for path in paths)
        self.assertEqual([alike(line) for line in new], [alike(line) for line in old])
        self.assertEqual([(line["status"], line["error"]) for line in new], [(status, "client_left") for status in (0, 200, 200, 0)])
        self.assertEqual([line["verdict"] for line in new], ["forward", "forward", "forward", "delay"])

    def test_a_log_has_only_the_configured_fields(self):
        weir, path = self.logged(rule(), fields='fields = ["status", "protocol", "rule"]')
        self.client(weir).get("/a")
        line, = self.lines(path, 1)
        del line["time"]
        self.assertEqual(line, {"status": 200, "protocol": "HTTP/2", "rule": "per-ip"})

    def test_metrics_count_the_same_as_for_http_1_1(self):
        slow = self.start(Upstream(lambda exchange: exchange.wait_for_close()))
        rules = [rule("per-key", "3/day", key='["api_key|ip"]'),
                 rule("word", "9/day", match='{ path = "/api/words", body_contains = "x" }'),
                 rule("failures", "9/day", key='["ip"]', charge='{ status = ["404"] }'), rule("trial", "2/day", key="[]", mode='"shadow"')]
        pair = self.pair(*rules, files=FILES, client=CLIENT, routes=ROUTES.format(away=closed_port(), slow=slow.port))
        paths = ("/api/a", "/own", "/none", "/away", "/slow", "/x/..;/api", "/api/a")
        asks = [Ask(path, fields={"x_api_key": "gold"} if number % 2 else {}) for number, path in enumerate(paths)]
        asks += [Ask("/api/words", "POST", body=b"x" * 70_000), Ask("/api/small", "PUT", body=b"x" * 11)]
        self.same(pair, asks)
        names = "requests|decisions|verdicts|settlements|client_errors|shed|upstream_failures|upstream_errors|keys|key_overflows"

        def counts(weir):
            page = get(weir.admin, "/metrics").body.decode()
            return sorted(re.findall(rf"^weir_(?:{names})(?:_total)?[ {{].*", page, re.M))

        eventually(lambda: all(weir.metric("weir_requests_total") == len(asks) for weir in pair), "all requests have ended")
        self.assertEqual(*(re.sub(r"127\.0\.0\.1:\d+", "server", "\n".join(counts(weir))) for weir in pair))


class Explained(ExplainTestCase):
    def begin(self, *rules, **more):
        super().begin(*rules, listener='protocols = ["h2c"]', **more)
        self.client = self.start(Http2Client(self.weir.port))

    def test_the_explanation_agrees_with_the_answer_to_a_stream(self):
        self.begin(rule("burst", "1/day", burst=2, key='["ip"]'))
        for status in (200, 200, 429, 429):
            said = self.explain(ip="127.0.0.1")["verdict"]
            got = self.client.get("/")
            self.assertEqual((got.status, said["verdict"]), (status, "forward" if status == 200 else "refuse"))
            for name in ("X-RateLimit-Limit", "X-RateLimit-Remaining", "RateLimit-Policy"):
                self.assertEqual(said["headers"][name], got[name.lower()], name)
            if status == 429:
                self.assertAlmostEqual(int(said["headers"]["Retry-After"]), int(got["retry-after"]), delta=PATIENCE)
                self.assertEqual(json.loads(said["body"])["rule"], got.json()["rule"])

    def test_used_up_key_can_be_shown_and_reset_by_its_address_or_its_digest(self):
        self.begin(rule("few", "2/day", key='["ip"]'), rule("busy", "9/day", key='["api_key|ip"]'))
        for text in ("127.0.0.1", None):
            streams = [self.client.open() for _ in range(20)]
            statuses = [self.client.read(stream).status for stream in streams]
            self.assertEqual((statuses.count(200), statuses.count(429)), (2, 18))
            top = get(self.weir.admin, "/api/top?rule=few").json()["top"][0]["refused"]
            text = text or top[0]["digest"]
            self.assertIn("0 of 2 left", self.command("keys", "show", "few", text)[1])
            self.assertEqual(self.command("keys", "reset", "few", text)[0], 0)
        self.assertEqual([self.client.get("/").status for _ in range(3)], [200, 200, 429])
        self.assertEqual(top[0]["client"], "127.0.0.1")
        self.assertGreaterEqual(top[0]["cost"], 18)

    def test_streams_that_end_after_a_reset_of_their_key_do_not_change_the_new_count(self):
        held, gate = threading.Semaphore(0), threading.Event()
        self.begin(rule("login", "5/3000day", algorithm='"sliding_log"', key='["ip"]', charge='{ status = ["401"] }'))
        self.upstream.reply = lambda exchange: (held.release(), gate.wait(PATIENCE), exchange.send(answer(status="200 OK")))
        streams = [self.client.open() for _ in range(4)]
        for _ in streams:
            self.assertTrue(held.acquire(timeout=PATIENCE))
        self.assertEqual(self.keys("rule=login&key=127.0.0.1", "DELETE")[0], 200)
        self.upstream.reply = answer(status="401 Unauthorized")
        with Http2Client(self.weir.port) as other:
            self.assertEqual([other.get("/").status for _ in range(6)], [401] * 5 + [429])
        gate.set()
        self.assertEqual({self.client.read(stream).status for stream in streams}, {200})
        self.await_metric(self.weir, 4, "weir_settlements_total", rule="login", outcome="refunded")
        self.assertEqual(self.client.get("/").status, 429)


if __name__ == "__main__":
    main()
