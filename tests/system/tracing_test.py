#!/usr/bin/env python3
"""Spans of requests, posted to a collector and decoded with OpenTelemetry's own messages (npm's @opentelemetry/otlp-transformer)."""

import base64
import json
import signal
import subprocess
import unittest

from documents import TREE
from harness import PATIENCE, Redis, TestCase, Upstream, Weir, answer, closed_port, config, eventually, main, rule
from upstream import bound_socket

PACKAGES = TREE / "build/otlp"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRUSTED = 'trusted_proxies = ["127.0.0.1/32"]'


def parent(flags="01"):
    return f"00-{TRACE}-{PARENT}-{flags}"


class Span:
    """One decoded span. `attributes` holds texts and numbers by their names."""

    def __init__(self, fields):
        self.fields = fields
        self.trace, self.id = (base64.b64decode(fields[name]).hex() for name in ("traceId", "spanId"))
        self.parent = base64.b64decode(fields.get("parentSpanId", "")).hex()
        self.name, self.kind = fields["name"], fields["kind"]
        self.attributes = {pair["key"]: self.value(pair["value"]) for pair in fields["attributes"]}
        self.failed = fields.get("status", {}).get("code") == "STATUS_CODE_ERROR"

    @staticmethod
    def value(value):
        return value["stringValue"] if "stringValue" in value else int(value["intValue"])


class Collector(Upstream):
    """Records the posts of weir."""

    def resources(self):
        """Returns the ResourceSpans of all posts, decoded."""
        lines = "".join(base64.b64encode(exchange.body).decode() + "\n" for exchange in list(self.exchanges) if exchange.body)
        done = subprocess.run(["node", TREE / "tests/otlp/decode.js", PACKAGES], input=lines, capture_output=True, text=True,
                              timeout=2 * PATIENCE, check=True)
        return [resource for line in done.stdout.splitlines() for resource in json.loads(line)["resourceSpans"]]

    def spans(self):
        return [Span(fields) for resource in self.resources() for scope in resource["scopeSpans"] for fields in scope["spans"]]


@unittest.skipUnless((PACKAGES / "node_modules").is_dir(), f"{PACKAGES} is not there: ./dev test installs it if npm reaches its registry")
class TracingTestCase(TestCase):
    def setUp(self):
        self.collector = self.start(Collector())
        self.server = self.start(Upstream())

    def text(self, *rules, more="", sample="100%", port=None, **settings):
        endpoint = f"http://127.0.0.1:{port or self.collector.port}/v1/traces"
        tracing = f'[tracing]\nendpoint = "{endpoint}"\nsample = "{sample}"\ninterval = "50ms"\n{more}\n'
        return config(self.server.port, rules="\n".join(rules) + "\n" + tracing, **settings)

    def weir(self, *rules, **settings):
        return self.start(Weir(self.text(*rules, **settings)))

    def exported(self, weir, count):
        """Waits until the collector has accepted this many spans, and returns them."""
        self.await_metric(weir, count, "weir_spans_exported_total")
        return self.collector.spans()

    def traceparent(self, index=-1):
        """Returns the traceparent that the server received, in its parts."""
        return self.server.exchanges[index].head["traceparent"].split("-")


class Spans(TracingTestCase):
    def test_span_of_a_forwarded_request_has_its_decision_route_and_server(self):
        weir = self.weir(rule("per-ip", "5/day", key='["ip"]'), routes='[[route]]\nname = "all"\nupstream = "api"')
        weir.get("/a/b?c=d", host="shop.example:8080", user_agent="tester", x_request_id="ignored")
        (span,) = self.exported(weir, 1)
        self.assertEqual((span.name, span.kind, span.parent, span.failed), ("GET all", "SPAN_KIND_SERVER", "", False))
        expected = {"http.request.method": "GET", "url.scheme": "http", "url.path": "/a/b", "url.query": "c=d", "client.address": "127.0.0.1",
                    "server.address": "shop.example", "server.port": 8080,
                    "user_agent.original": "tester", "network.protocol.version": "1.1", "http.response.status_code": 200, "weir.route": "all",
                    "weir.upstream": "api", "weir.server": self.server.address, "weir.verdict": "forward", "weir.rule": "per-ip",
                    "weir.limit": 5, "weir.remaining": 4}
        self.assertEqual({name: span.attributes.get(name) for name in expected}, expected)
        self.assertEqual(span.attributes["weir.request_id"], self.server.exchanges[0].head["x-request-id"])
        self.assertLess(int(span.fields["startTimeUnixNano"]), int(span.fields["endTimeUnixNano"]))
        self.assertEqual(self.traceparent(), ["00", span.trace, span.id, "01"])
        resource = self.collector.resources()[0]
        self.assertEqual(resource["resource"]["attributes"][0], {"key": "service.name", "value": {"stringValue": "weir"}})

    def test_refused_request_has_a_span_even_if_no_request_is_sampled(self):
        weir = self.weir(rule("per-ip", "1/day", key='["ip"]'), sample="0%")
        self.assertEqual([weir.get().status, weir.get().status], [200, 429])
        (span,) = self.exported(weir, 1)
        self.assertEqual([span.attributes[name] for name in ("http.response.status_code", "weir.verdict", "weir.rule", "weir.remaining")],
                         [429, "reject", "per-ip", 0])
        self.assertEqual(self.traceparent()[3], "00")

    def test_refused_request_has_no_span_if_spans_of_refusals_are_switched_off(self):
        weir = self.weir(rule("per-ip", "1/day", key='["ip"]'), sample="0%", more="refusals = false")
        self.assertEqual([weir.get().status, weir.get().status], [200, 429])
        self.assertEqual(weir.stop(), 0)
        self.assertEqual(self.collector.exchanges, [])

    def test_span_of_a_failed_request_has_the_status_error(self):
        self.server.reply = answer(status="503 Busy")
        weir = self.weir()
        weir.get()
        (span,) = self.exported(weir, 1)
        self.assertTrue(span.failed)
        self.assertEqual(span.attributes["http.response.status_code"], 503)

    def test_span_shows_the_wait_for_redis(self):
        redis = self.start(Redis())
        weir = self.weir(rule("shared", "5/day", key='["ip"]', store='"redis"'),
                         state=f'redis = {{ url = "{redis.url}" }}\nkey_secret = "0123456789abcdef"')
        eventually(lambda: weir.get().status == 200 and weir.metric("weir_redis_up") == 2, "both workers reach Redis")
        eventually(lambda: any(span.attributes.get("weir.redis_us", 0) > 0 for span in self.collector.spans()), "a span has a wait for Redis")

    def test_secret_parameters_are_hidden_in_spans(self):
        weir = self.weir()
        weir.get("/?access_token=secret&a=b")
        (span,) = self.exported(weir, 1)
        self.assertEqual(span.attributes["url.query"], "access_token=***&a=b")

    def test_octets_in_spans_that_are_no_utf_8_are_replaced(self):
        weir = self.weir()
        with weir.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: \xc3\xa9 \xff\xfe\r\n\r\n")
            self.assertEqual(client.read().status, 200)
        (span,) = self.exported(weir, 1)
        self.assertEqual(span.attributes["user_agent.original"], "é ??")

    def test_log_line_of_a_request_has_the_trace_id_of_its_span(self):
        weir = self.start(Weir(self.text().replace('access = "off"', 'access = "access.log"')))
        weir.get()
        (span,) = self.exported(weir, 1)
        eventually(lambda: span.trace in (weir.folder / "access.log").read_text(), "the line has the trace id")


class Parents(TracingTestCase):
    def test_trace_begun_by_a_trusted_proxy_is_continued(self):
        weir = self.weir(sample="0%", client=TRUSTED)
        weir.get(traceparent=parent(), tracestate="vendor=1")
        (span,) = self.exported(weir, 1)
        self.assertEqual((span.trace, span.parent), (TRACE, PARENT))
        self.assertEqual(self.traceparent(), ["00", TRACE, span.id, "01"])
        self.assertEqual(self.server.exchanges[0].head["tracestate"], "vendor=1")

    def test_request_that_a_trusted_proxy_does_not_sample_has_no_span(self):
        weir = self.weir(client=TRUSTED)
        weir.get(traceparent=parent("00"))
        self.assertEqual(self.traceparent()[::3], ["00", "00"])
        weir.get()
        (span,) = self.exported(weir, 1)
        self.assertNotEqual(span.trace, TRACE)

    def test_sampling_percentage_decides_if_follow_parent_is_false_and_the_trace_id_is_kept(self):
        weir = self.weir(client=TRUSTED, more="follow_parent = false")
        weir.get(traceparent=parent("00"))
        (span,) = self.exported(weir, 1)
        self.assertEqual((span.trace, span.parent), (TRACE, PARENT))

    def test_request_of_an_untrusted_client_begins_a_new_trace(self):
        weir = self.weir()
        weir.get(traceparent=parent(), tracestate="vendor=1")
        (span,) = self.exported(weir, 1)
        self.assertNotEqual(span.trace, TRACE)
        self.assertEqual(span.parent, "")
        self.assertEqual(self.traceparent()[1:3], [span.trace, span.id])
        self.assertFalse(self.server.exchanges[0].head["tracestate"], "the state belongs to the trace that ended")

    def test_request_with_an_invalid_or_repeated_traceparent_begins_a_new_trace(self):
        weir = self.weir(client=TRUSTED)
        for lines in (f"traceparent: 00-{TRACE}-{PARENT}\r\n", f"traceparent: {parent()}\r\nTraceparent: {parent()}\r\n"):
            with weir.connect() as client:
                client.send(f"GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode())
                self.assertEqual(client.read().status, 200)
            received = self.server.exchanges[-1].head
            self.assertEqual(len(received.all("traceparent")), 1)
            self.assertNotEqual(self.traceparent()[1], TRACE)

    def test_without_tracing_settings_the_server_gets_the_trace_fields_of_the_client(self):
        weir = self.start(Weir(config(self.server.port)))
        weir.get(traceparent=parent(), tracestate="vendor=1")
        self.assertEqual(self.server.exchanges[0].head["traceparent"], parent())
        self.assertEqual(self.server.exchanges[0].head["tracestate"], "vendor=1")


class Collectors(TracingTestCase):
    def test_spans_are_queued_while_the_collector_is_unreachable(self):
        away = bound_socket()
        weir = self.weir(port=away.getsockname()[1], more="max_queue = 3")
        for _ in range(16):
            self.assertEqual(weir.get().status, 200)
        weir.wait_for("tracing: cannot export spans to ")
        eventually(lambda: weir.metric("weir_spans_dropped_total", reason="full") > 0, "the queue is full")
        back = self.start(Collector(bound=away))
        weir.wait_for("tracing: spans are exported again")

        def ended():
            return weir.metric("weir_spans_exported_total") + weir.metric("weir_spans_dropped_total", reason="full")

        eventually(lambda: ended() == 16, "each span was exported or dropped")
        self.assertEqual(len({span.id for span in back.spans()}), weir.metric("weir_spans_exported_total"))
        self.assertGreaterEqual(weir.metric("weir_span_posts_failed_total"), 1)

    def test_collector_that_asks_for_a_retry_gets_the_same_spans_again(self):
        replies = [answer(status="503 Busy"), answer(status="429 Slow"), answer(b"")]

        def reply(exchange):
            exchange.read_body()
            exchange.send(replies.pop(0) if len(replies) > 1 else replies[0])

        self.collector.reply = reply
        weir = self.weir()
        weir.get()
        self.await_metric(weir, 1, "weir_spans_exported_total")
        self.assertEqual(weir.metric("weir_span_posts_failed_total"), 2)
        self.assertEqual(len({exchange.body for exchange in self.collector.exchanges}), 1)

    def test_spans_that_the_collector_rejects_are_dropped_and_counted(self):
        self.collector.reply = answer(status="400 Bad")
        weir = self.weir()
        weir.get()
        self.await_metric(weir, 1, "weir_spans_dropped_total", reason="rejected")
        weir.wait_for("it rejected 1 spans with status 400")
        self.collector.reply = answer(b"\x0a\x02\x08\x01")  # a partial success: one span was rejected
        weir.get()
        self.await_metric(weir, 2, "weir_spans_dropped_total", reason="rejected")
        self.assertEqual(weir.metric("weir_spans_exported_total"), 0)

    def test_posts_to_the_collector_have_the_configured_header_fields(self):
        weir = self.weir(more='headers = { Authorization = "Bearer abc" }\nservice = "edge"')
        weir.get()
        self.exported(weir, 1)
        head = self.collector.exchanges[0].head
        self.assertEqual((head["authorization"], head["content-type"]), ("Bearer abc", "application/x-protobuf"))
        self.assertEqual(self.collector.resources()[0]["resource"]["attributes"][0]["value"]["stringValue"], "edge")

    def test_queued_spans_are_exported_when_weir_stops(self):
        weir = self.start(Weir(self.text().replace('interval = "50ms"', 'interval = "1min"')))
        weir.get()
        self.assertEqual(weir.stop(), 0)
        self.assertEqual(len(self.collector.spans()), 1)

    def test_reload_changes_the_sampling_percentage_but_not_the_endpoint(self):
        weir = self.weir(sample="0%")
        weir.get()
        (weir.folder / "weir.toml").write_text(self.text(sample="100%"))
        weir.signal(signal.SIGHUP)
        weir.wait_for("reloaded")
        weir.get()
        self.exported(weir, 1)
        (weir.folder / "weir.toml").write_text(self.text(port=closed_port()))
        weir.signal(signal.SIGHUP)
        weir.wait_for("tracing: found another endpoint")
        (weir.folder / "weir.toml").write_text(config(self.server.port))
        weir.signal(signal.SIGHUP)
        weir.wait_for("tracing: the table is missing; weir runs with it")


if __name__ == "__main__":
    main()
