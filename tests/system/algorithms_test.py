#!/usr/bin/env python3
"""Every algorithm in a running weir: which requests it admits, and what its headers say. A concurrency permit is released,
however the exchange ends."""

import datetime
import threading
import time

from harness import Client, TestCase, Upstream, Weir, answer, closed_port, config, eventually, main, request_bytes, rule, together


def plain(name, **more):
    """Returns a rule without the limit that rule() always writes."""
    return "\n".join(["[[rule]]", f'name = "{name}"', *(f"{key} = {value}" for key, value in more.items())]) + "\n"


class Algorithms(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, *rules, port=None):
        return self.start(Weir(config(port or self.upstream.port, rules="\n".join(rules))))

    def admitted(self, weir, count):
        return self.statuses(weir.port, count).count(200)

    def test_each_counting_algorithm_admits_exactly_its_limit(self):
        for more in ({"algorithm": '"fixed_window"'}, {"algorithm": '"sliding_log"'}, {"algorithm": '"sliding_window"'},
                     {"algorithm": '"sliding_window"', "buckets": "10"}, {"refill": '"stepwise"'},
                     {"algorithm": '"fixed_window"', "align": '"day"', "timezone": '"America/New_York"'}):
            with self.subTest(**more):
                weir = self.weir(rule(limit="5/day", key='["ip"]', **more))
                with weir.connect() as client:
                    answers = [client.get("/") for _ in range(8)]
                self.assertEqual([a.status for a in answers], [200] * 5 + [429] * 3)
                self.assertEqual([a["x-ratelimit-remaining"] for a in answers[:5]], list("43210"))
                self.assertTrue(answers[0]["ratelimit-policy"].startswith('"per-ip";q=5;w='))
                self.assertIn("retry-after", answers[-1])

    def test_monthly_limit_is_reset_at_the_end_of_the_calendar_month(self):
        weir = self.weir(rule(limit="1/month", key='["ip"]', algorithm='"fixed_window"', align='"month"'))
        weir.get("/")
        refused = weir.get("/")
        now = datetime.datetime.now(datetime.timezone.utc)
        first = (now.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + datetime.timedelta(days=32)).replace(day=1)
        self.assertEqual(refused.status, 429)
        self.assertEqual(int(refused["x-ratelimit-reset"]), int(first.timestamp()))

    def test_weekly_limit_is_reset_at_the_beginning_of_monday(self):
        weir = self.weir(rule(limit="1/week", key='["ip"]', algorithm='"fixed_window"', align='"week"'))
        weir.get("/")
        refused = weir.get("/")
        self.assertEqual((refused.status, refused["ratelimit-policy"]), (429, '"per-ip";q=1;w=604800'))
        reset = datetime.datetime.fromtimestamp(int(refused["x-ratelimit-reset"]), datetime.timezone.utc)
        self.assertEqual((reset.weekday(), reset.hour, reset.minute, reset.second), (0, 0, 0, 0))
        self.assertLessEqual(reset.timestamp() - time.time(), 7 * 86400)

    def test_queue_length_counts_requests_and_not_their_costs(self):
        """The first request is sent at once and takes no place in the queue. Three requests wait 5 hours each. The fifth
        request finds the queue full."""
        queue = {"algorithm": '"leaky_bucket"', "queue": 3, "cost": 5}
        weir = self.weir(rule(limit="1/h", key="[]", **queue))
        self.assertEqual(weir.get("/").status, 200)
        for _ in range(3):
            self.start(Client(weir.port)).send(request_bytes("GET", "/"))
        eventually(lambda: weir.metric("weir_queue_depth") == 3, "three requests wait")
        refused = weir.get("/")
        self.assertEqual((refused.status, refused["x-ratelimit-limit"], refused["x-ratelimit-remaining"]), (429, "3", "0"))

    def test_sliding_log_admits_again_after_retry_after(self):
        weir = self.weir(rule(limit="2/2s", key='["ip"]', algorithm='"sliding_log"'))
        with weir.connect() as client:
            self.assertEqual([client.get("/").status for _ in range(2)], [200, 200])
            refused = client.get("/")
            self.assertEqual((refused.status, refused["ratelimit-policy"]), (429, '"per-ip";q=2;w=2'))
            time.sleep(int(refused["retry-after"]))  # Retry-After promises that weir admits a request after this time
            self.assertEqual(client.get("/").status, 200)


class ConcurrencyLimits(TestCase):
    """The upstream of these tests responds when the test allows it."""

    def setUp(self):
        self.go = threading.Event()
        self.upstream = self.start(Upstream(self.reply))
        self.addCleanup(self.go.set)

    def reply(self, exchange):
        exchange.read_body()
        self.go.wait(30)
        exchange.send(answer())

    @staticmethod
    def work(exchange):
        exchange.read_body()
        time.sleep(0.05)  # the duration of each request, however many are concurrent
        exchange.send(answer())

    def weir(self, *rules, port=None, upstream=""):
        return self.start(Weir(config(port or self.upstream.port, rules="\n".join(rules), upstream=upstream)))

    def waiting_client(self, weir):
        client = Client(weir.port)
        self.addCleanup(client.sock.close)
        asked = len(self.upstream.exchanges)
        client.send(request_bytes("GET", "/"))
        eventually(lambda: len(self.upstream.exchanges) > asked, "the upstream has the request")
        return client

    CONCURRENCY = plain("at-once", algorithm='"concurrency"', limit=2, key='["ip"]')

    def test_concurrent_requests_stay_within_the_limit_and_headers_give_no_reset_time(self):
        weir = self.weir(self.CONCURRENCY)
        clients = [self.waiting_client(weir) for _ in range(2)]
        refused = weir.get("/")
        self.assertEqual((refused.status, refused["retry-after"]), (429, "1"))
        self.assertEqual(refused["ratelimit-policy"], '"at-once";q=2;qu="concurrent-requests"')
        self.assertEqual(refused["ratelimit"], '"at-once";r=0')
        self.assertNotIn("x-ratelimit-reset", refused)
        self.go.set()
        for client in clients:
            self.assertEqual(client.read().status, 200)
        eventually(lambda: weir.get("/")["x-ratelimit-remaining"] == "1", "both permits are released")

    def test_permit_is_released_when_the_client_leaves(self):
        ping = '[[route]]\nmatch = { path = "/ping" }\nrespond = { status = 204 }\n[[route]]\nupstream = "api"\n'
        weir = self.start(Weir(config(self.upstream.port, rules=self.CONCURRENCY, routes=ping)))
        clients = [self.waiting_client(weir) for _ in range(2)]
        self.assertEqual(weir.get("/").status, 429)
        for client in clients:
            client.leave()
        eventually(lambda: weir.get("/ping").status == 204, "permits of clients that left are released before the upstream responds")
        self.assertFalse(self.go.is_set())

    def test_permit_is_released_if_the_upstream_is_unreachable(self):
        weir = self.weir(self.CONCURRENCY, port=closed_port())
        self.assertEqual(self.statuses(weir.port, 10), [502] * 10)

    def test_adaptive_limit_falls_if_the_upstream_is_unreachable(self):
        weir = self.weir(plain("fragile", algorithm='"adaptive_concurrency"', min=2, max=50, key="[]"), port=closed_port())
        with weir.connect() as client:
            answers = [client.get("/") for _ in range(150)]
        self.assertEqual({a.status for a in answers}, {502})
        self.assertEqual((answers[0]["x-ratelimit-limit"], answers[-1]["x-ratelimit-limit"]), ("10", "2"))
        self.assertEqual((answers[0]["x-ratelimit-remaining"], answers[-1]["x-ratelimit-remaining"]), ("9", "1"))

    def test_request_that_another_rule_refuses_holds_no_permit(self):
        self.go.set()
        weir = self.weir(self.CONCURRENCY, rule("few", "1/day", key='["ip"]'))
        self.assertEqual(self.statuses(weir.port, 6), [200] + [429] * 5)
        with weir.connect() as client:
            self.assertEqual(client.get("/")["ratelimit-policy"], '"few";q=1;w=86400')

    def test_many_concurrent_clients_never_exceed_the_concurrency_limit(self):
        most, lock, flying = [0], threading.Lock(), [0]

        def reply(exchange):
            with lock:
                flying[0] += 1
                most[0] = max(most[0], flying[0])
            time.sleep(0.01)  # simulated work, not a wait for something
            with lock:
                flying[0] -= 1
            exchange.send(answer())

        self.upstream.reply = reply
        weir = self.weir(plain("at-once", algorithm='"concurrency"', limit=3, key="[]"))
        statuses = sum(together(8, lambda _: self.statuses(weir.port, 25)), [])
        self.assertEqual(set(statuses), {200, 429})
        self.assertLessEqual(most[0], 3)
        with weir.connect() as client:
            eventually(lambda: client.get("/")["x-ratelimit-remaining"] == "2", "no permit is held")

    def test_adaptive_limit_falls_with_failures_and_rises_with_responses(self):
        weir = self.weir(plain("fragile", algorithm='"adaptive_concurrency"', min=2, max=50, key="[]"),
                         upstream='timeouts = { response = "2s" }')
        first = [self.waiting_client(weir) for _ in range(10)]  # the first limit is √(2 × 50) = 10
        self.assertEqual(weir.get("/").status, 429)
        for client in first:
            self.assertEqual(client.read().status, 504)
        self.upstream.reply = self.work
        left = eventually(lambda: weir.get("/")["x-ratelimit-remaining"], "the upstream responds again")
        self.assertLess(int(left), 8)

        def healthy():
            together(8, lambda _: self.statuses(weir.port, 20))
            return int(weir.get("/")["x-ratelimit-remaining"]) > 9
        eventually(healthy, "the limit has risen above its former value")


if __name__ == "__main__":
    main()
