#!/usr/bin/env python3
"""Limits stay exact while many HTTP/2 streams come at once, from several clients of several kinds, over a reload and over repeated
requests."""

import re
import signal
import subprocess
import threading

from harness import PATIENCE, Client, Upstream, Weir, answer, closed_port, config, eventually, main, rule, together
from http2_client import Http2Client
from protocol_pair import Ask, PairTestCase

LONG = "137/3000day"
KINDS = {
    "token_bucket": {"limit": "1/day", "burst": 137}, "gcra": {"limit": "1/day", "burst": 136}, "fixed_window": {"limit": LONG},
    "sliding_log": {"limit": LONG}, "sliding_window": {"limit": LONG},
    "buckets": {"limit": LONG, "algorithm": '"sliding_window"', "buckets": 5},
    "stepwise": {"limit": "1/day", "burst": 137, "algorithm": '"token_bucket"', "refill": '"stepwise"'},
}


class Parallel(PairTestCase):
    def test_many_streams_of_many_connections_admit_exactly_the_limit(self):
        """HTTP/2 connections with and without TLS and HTTP/1.1 clients share the key. Each algorithm has a rule of its own."""
        rules = [rule(name, **{"algorithm": f'"{name}"', "key": "[]", "match": f'{{ path = "/{name}" }}', **more})
                 for name, more in KINDS.items()]
        weir = self.weir(rules="".join(rules))

        def ask(number):
            statuses = {name: [] for name in KINDS}
            if number >= 6:
                with Client(weir.port) as client:
                    for name, seen in statuses.items():
                        seen += [client.get(f"/{name}").status for _ in range(20)]
                return statuses
            with Http2Client(weir.ports[number % 2], tls=self.tls if number % 2 else None) as client:
                for name, seen in statuses.items():
                    with client.corked():
                        streams = [client.open(path=f"/{name}") for _ in range(50)]
                    seen += [client.read(stream).status for stream in streams]
            return statuses

        each = together(8, ask)
        for name in KINDS:
            statuses = [status for one in each for status in one[name]]
            self.assertEqual((name, statuses.count(200), statuses.count(429)), (name, 137, 340 - 137))
        self.assertEqual(len(self.upstream.exchanges), 137 * len(KINDS))

    def test_stream_is_charged_to_all_of_its_rules_or_to_none(self):
        """Three rules count each request: by its API key, by its address, and all requests together."""
        weir = self.plain_weir(rule("all", "60/3000day", algorithm='"fixed_window"', key="[]"),
                               rule("ip", "50/3000day", algorithm='"sliding_log"', key='["ip"]'),
                               rule("key", "7/3000day", algorithm='"sliding_window"', key='["api_key"]'))
        asked = together(4, lambda number: self.hundred(weir, source=f"127.0.0.{number % 2 + 1}"))
        statuses = [status for one in asked for status in one]
        self.assertEqual(statuses.count(200), 60)
        keys = [exchange.head["x-api-key"] for exchange in self.upstream.exchanges]
        self.assertLessEqual(max(keys.count(key) for key in keys), 7)
        for name in ("all", "ip", "key"):
            self.assertEqual(weir.metric("weir_decisions_total", rule=name, outcome="admitted"), 60, name)

    def hundred(self, weir, source):
        with Http2Client(weir.port, source=source) as client:
            with client.corked():
                streams = [client.open(fields=[("x-api-key", f"k{number % 10}")]) for number in range(100)]
            return [client.read(stream).status for stream in streams]


class RealClients(PairTestCase):
    def run_client(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_h2load_gets_exactly_as_many_answers_as_the_limit_admits(self):
        weir = self.weir(rules=rule("few", "300/day", algorithm='"sliding_log"', key='["ip"]'))
        told = [self.run_client("h2load", "-n", "1500", "-c", "5", "-m", "30", f"{scheme}://127.0.0.1:{port}/")
                for scheme, port in zip(("http", "https"), weir.ports)]
        self.assertIn("status codes: 300 2xx, 0 3xx, 1200 4xx, 0 5xx", told[0])
        self.assertIn("status codes: 0 2xx, 0 3xx, 1500 4xx, 0 5xx", told[1])
        self.assertEqual(weir.metric("weir_http2_goaways_total", reason="resets"), 0)

    def test_h2load_never_exceeds_the_limit_of_concurrent_requests(self):
        most, now, lock = [0], [0], threading.Lock()

        def reply(exchange):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            threading.Event().wait(0.005)  # the duration of the work
            with lock:
                now[0] -= 1
            exchange.send(answer())

        self.upstream.reply = reply
        weir = self.plain_weir('[[rule]]\nname = "five"\nalgorithm = "concurrency"\nlimit = 5\nkey = []\n')
        told = self.run_client("h2load", "-n", "600", "-c", "3", "-m", "20", f"http://127.0.0.1:{weir.port}/")
        self.assertIn("600 total, 600 started, 600 done", told)
        self.assertLessEqual(most[0], 5)
        client = self.client(weir)
        eventually(lambda: client.get("/")["x-ratelimit-remaining"] == "4", "no permit is held")

    def test_nghttp_and_curl_get_as_many_answers_as_the_limit_admits(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(f"<{exchange.target}>".encode()))
        weir = self.weir(rules=rule("few", "7/day", match='{ path = "/n*" }') + rule("many", "9/day", match='{ path = "/c*" }'))
        told = self.run_client("nghttp", *(f"http://127.0.0.1:{weir.port}/n{number}" for number in range(20)))
        self.assertEqual((len(re.findall("<.*?>", told)), told.count("rate_limit_exceeded")), (7, 13))
        told = self.curl(weir, "/c[1-20]", "-Z", "-o", "/dev/null", "-w", "%{http_version} %{http_code}\\n")
        self.assertEqual((told.count("2 200\n"), told.count("2 429\n")), (9, 11))

    def test_curl_retries_successfully_after_the_time_in_the_refusal(self):
        weir = self.weir(rules=rule("one", "1/2s"))
        self.assert_answers(self.client(weir))
        told = self.curl(weir, "/", "--retry", "3", "-w", " %{http_version} %{http_code}")
        self.assertTrue(told.endswith("ok 2 200"), told)
        self.assertEqual(len(self.upstream.exchanges), 2)

    def curl(self, weir, path, *options):
        """Uses TLS, because curl 7.88 cannot send a second request on a connection that it has begun with prior knowledge."""
        return self.run_client("curl", "-sS", "--http2", "--cacert", weir.folder / "edge.crt", "--connect-to", "localhost::127.0.0.1:",
                               *options, f"https://localhost:{weir.ports[1]}{path}")


class Reloads(PairTestCase):
    def setUp(self):
        super().setUp()
        self.release = threading.Event()
        self.addCleanup(self.release.set)

    def reload(self, weir, *rules):
        before = weir.metric("weir_reloads_total", result="ok")
        (weir.folder / "weir.toml").write_text(self.text(doors=[False], rules="".join(rules)))
        weir.signal(signal.SIGHUP)
        self.await_metric(weir, before + 1, "weir_reloads_total", result="ok")

    def test_reload_keeps_the_counts_and_the_open_streams(self):
        self.upstream.reply = lambda exchange: (exchange.read_body(), self.release.wait(PATIENCE), exchange.send(answer()))
        limit = rule("day", "{}/3000day", algorithm='"fixed_window"')
        weir = self.plain_weir(limit.format(20))
        client = self.client(weir)
        upload = client.open("POST", end=False)
        client.send_body(upload, b"x" * 1000, end=False)
        streams = [client.open() for _ in range(9)]
        eventually(lambda: len(self.upstream.exchanges) == 10, "all requests are at the server")
        self.reload(weir, limit.format(40))
        self.release.set()
        client.send_body(upload, b"y" * 1000)
        self.assertEqual([client.read(stream).status for stream in (upload, *streams)], [200] * 10)
        self.assertEqual([exchange.body for exchange in self.upstream.exchanges if exchange.method == "POST"], [b"x" * 1000 + b"y" * 1000])
        told = client.get("/")
        self.assertEqual((told["x-ratelimit-limit"], told["x-ratelimit-remaining"]), ("40", "19"), "the used share is kept")
        self.assertEqual(client.goaways, [])

    def test_charges_and_permits_from_before_a_reload_are_settled(self):
        self.upstream.reply = lambda exchange: (self.release.wait(PATIENCE), exchange.send(answer()))

        def rules(most):
            return rule("login", "50/3000day", algorithm='"sliding_log"', charge='{ status = ["401"] }') + \
                f'[[rule]]\nname = "together"\nalgorithm = "concurrency"\nlimit = {most}\nkey = ["ip"]\n'

        weir = self.plain_weir(rules(5))
        client = self.client(weir)
        streams = [client.open() for _ in range(5)]
        eventually(lambda: len(self.upstream.exchanges) == 5, "all requests are at the server")
        self.assertEqual(client.get("/").status, 429)
        self.reload(weir, rules(6))
        streams.append(client.open())
        eventually(lambda: len(self.upstream.exchanges) == 6, "the new limit admits one more")
        self.assertEqual(client.get("/").status, 429)
        client.reset(streams.pop())
        self.release.set()
        self.assertEqual([client.read(stream).status for stream in streams], [200] * 5)
        self.await_metric(weir, 6, "weir_settlements_total", rule="login", outcome="refunded")
        eventually(lambda: client.get("/")["x-ratelimit-remaining"] == "5", "all permits but the own one are free")


class Repeated(PairTestCase):
    def test_a_stream_that_weir_sends_again_is_charged_once(self):
        broken = self.start(Upstream(lambda exchange: exchange.close()))
        retry = 'eject = { failures = 1000 }\nretry = { on = ["broken"], backoff = "0ms", budget = "100%" }\n'
        text = config(broken.port, self.upstream.port, listener='protocols = ["http/1.1", "h2c"]', rules=rule("day", "50/day"),
                      upstream=retry + 'balance = "round_robin"')
        weir = self.start(Weir(text))
        client = self.client(weir)
        answers = [client.read(stream) for stream in [client.open() for _ in range(20)]]
        self.assertEqual({each.status for each in answers}, {200})
        self.assertGreater(len(broken.exchanges), 0)
        self.assertEqual(client.get("/")["x-ratelimit-remaining"], "29")

    def test_request_whose_first_server_is_unreachable_is_charged_once(self):
        text = config(closed_port(), self.upstream.port, listener='protocols = ["http/1.1", "h2c"]', rules=rule("day", "50/day"))
        client = self.client(self.start(Weir(text)))
        self.assertEqual({client.read(stream).status for stream in [client.open("POST") for _ in range(20)]}, {200})
        self.assertEqual(client.get("/")["x-ratelimit-remaining"], "29")

    def test_requests_of_a_client_go_to_the_same_server_over_both_protocols(self):
        servers = [self.start(Upstream(answer(str(number).encode()))) for number in range(3)]
        text = config(*(server.port for server in servers), listener='protocols = ["http/1.1", "h2c"]',
                      state='key_secret = "the same everywhere"', upstream='balance = "hash"\nhash_key = ["cookie:session|ip"]')
        pair = [self.start(Weir(text)) for _ in range(2)]
        answers = self.same(pair, [Ask(fields={"cookie": f"a=1; session={number}"}) for number in range(20)] * 2)
        self.assertEqual([each.body for each in answers[:20]], [each.body for each in answers[20:]])
        self.assertGreater(len({each.body for each in answers}), 1)


if __name__ == "__main__":
    main()
