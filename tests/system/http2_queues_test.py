#!/usr/bin/env python3
"""Queues, priorities, shedding and concurrency limits among the streams of one HTTP/2 connection."""

import signal
import threading
import time

from harness import PATIENCE, SANITIZED, Weir, answer, eventually, main, rule
from explain_test import post
from http2_client import Http2TestCase

KEYS = "".join(f'[[key]]\nkey = "{name}"\n' for name in "abcd") + '[[key]]\nkey = "gold"\ntier = "pro"\n'
CLASSES = "".join(f'[[route]]\nupstream = "api"\nmatch = {{ headers = {{ X-Class = "{name}" }} }}\npriority = {priority}\n'
                  for name, priority in (("urgent", 0), ("batch", 9))) + '[[route]]\nupstream = "api"\n'
UNHURRIED = "1/2s" if SANITIZED else "2/s"  # all requests must be read within the first interval


def queue_rule(limit, queue, **more):
    return rule("queue", limit, algorithm='"leaky_bucket"', key="[]", queue=queue, match='{ path = "/queue*" }', **more)


def open_together(client, asks):
    """Opens a stream for each pair of path and fields, and sends all heads at once. So weir reads all of them before it answers one."""
    with client.corked():
        return [client.open(path=path, fields=[(name.replace("_", "-"), value) for name, value in fields.items()]) for path, fields in asks]


class QueueTestCase(Http2TestCase):
    def keyed(self, *rules, **more):
        text = self.text(doors=[False], rules="".join(rules), client='keys = "keys.toml"', **more)
        return self.start(Weir(text, {**self.files, "keys.toml": KEYS}))

    def names(self):
        return [exchange.head["x-name"] for exchange in self.upstream.exchanges]

    def wait_for_depth(self, weir, depth, name="weir_queue_depth"):
        self.await_metric(weir, depth, name)


class Order(QueueTestCase):
    def test_queued_streams_of_one_client_depart_in_order(self):
        client, began = self.client(self.plain_weir(queue_rule("20/s", 50))), time.monotonic()
        streams = open_together(client, [("/queue", {"x_name": f"{number:02}"}) for number in range(20)])
        self.assertEqual({client.read(stream).status for stream in streams}, {200})
        self.assertEqual(self.names(), [f"{number:02}" for number in range(20)])
        self.assertGreater(self.upstream.exchanges[-1].arrived - began, 0.94, "the last leaves 19 intervals after the first")

    def test_clients_on_one_connection_take_turns(self):
        """A proxy in front of weir may send the requests of several clients on one connection."""
        client = self.client(self.keyed(queue_rule(UNHURRIED, 20)))
        asks = [("/queue", {"x_name": name, "x_api_key": name[0]}) for name in ("d0", "a1", "a2", "a3", "b1", "b2", "c1")]
        streams = open_together(client, asks)
        self.assertEqual({client.read(stream).status for stream in streams}, {200})
        self.assertEqual(self.names(), ["d0", "a1", "b1", "c1", "a2", "b2", "a3"])

    def test_request_of_better_priority_departs_first(self):
        tiers = rule("tiers", "1000/s", key='["ip"]', tiers='{ pro = { limit = "1000/s", priority = 1 } }')
        client = self.client(self.keyed(queue_rule(UNHURRIED, 20), tiers, routes=CLASSES))
        asks = [{"x_name": "first"}, {"x_name": "batch", "x_class": "batch"}, {"x_name": "middle"},
                {"x_name": "gold", "x_api_key": "gold"}, {"x_name": "urgent", "x_class": "urgent"}]
        streams = open_together(client, [("/queue", fields) for fields in asks])
        self.assertEqual({client.read(stream).status for stream in streams}, {200})
        self.assertEqual(self.names(), ["first", "urgent", "gold", "middle", "batch"])

    def test_http_2_and_http_1_1_clients_share_a_queue(self):
        weir = self.keyed(queue_rule(UNHURRIED, 20))
        client = self.client(weir)
        first, waiting = open_together(client, [("/queue", {"x_name": name, "x_api_key": name[0]}) for name in ("d0", "a1")])
        self.assertEqual(client.read(first).status, 200)
        self.assertEqual(weir.get("/queue", x_name="b1", x_api_key="b").status, 200)
        self.assertEqual((client.read(waiting).status, self.names()), (200, ["d0", "a1", "b1"]))


class Places(QueueTestCase):
    """One request a day departs, so the queue changes only by what the test does."""

    def full(self, weir, client, asks):
        """Fills the queue: the first request leaves at once, and the others wait."""
        self.assertEqual(client.get("/queue").status, 200)
        streams = open_together(client, [("/queue", fields) for fields in asks])
        self.wait_for_depth(weir, len(asks))
        return streams

    def test_full_queue_refuses_a_stream_and_the_connection_stays_open(self):
        weir = self.plain_weir(queue_rule("1/day", 3), rule("day", "10/3000day", algorithm='"fixed_window"'))
        client = self.client(weir)
        self.full(weir, client, [{}] * 3)
        refused = client.get("/queue")
        self.assert_own_error(refused, 429)
        self.assertEqual((refused["x-ratelimit-limit"], refused["x-ratelimit-remaining"]), ("3", "0"))
        self.assertIn(int(refused["retry-after"]), range(86_400 - 60, 86_401))
        self.assertEqual(client.get("/")["x-ratelimit-remaining"], "5")

    def test_a_reset_stream_leaves_the_queue_and_is_refunded(self):
        weir = self.plain_weir(queue_rule("1/day", 3), rule("day", "10/3000day", algorithm='"fixed_window"'))
        client = self.client(weir)
        waiting = self.full(weir, client, [{}] * 3)
        client.reset(waiting[0])
        client.reset(waiting[2])
        self.wait_for_depth(weir, 1)
        self.assertEqual(client.get("/")["x-ratelimit-remaining"], "7", "one that left, one that waits, and this one are charged")
        open_together(client, [("/queue", {})] * 2)
        self.wait_for_depth(weir, 3)
        self.assertEqual(client.get("/queue").status, 429)
        self.assertEqual(len(self.upstream.exchanges), 2, "no request that was reset reaches the server")

    def test_streams_behind_a_reset_stream_move_up_in_the_queue(self):
        weir = self.plain_weir(queue_rule("1/day", 9))
        client = self.client(weir)
        waiting = self.full(weir, client, [{}] * 3)

        def newcomer():
            """Returns how many requests wait, and how many days another request would wait."""
            limit = post(weir.admin, "/api/explain", {"host": "localhost", "path": "/queue"}).json()["rules"][0]["limits"][0]
            return limit["waiting"], round(limit["delay_seconds"] / 86_400, 2)

        self.assertEqual(newcomer(), (3, 4))
        client.reset(waiting[0])
        client.reset(waiting[2])
        self.wait_for_depth(weir, 1)
        self.assertEqual(newcomer(), (1, 2))

    def test_queue_places_of_a_connection_are_freed_at_its_end(self):
        weir = self.plain_weir(queue_rule("1/day", 50))
        client = self.client(weir)
        self.full(weir, client, [{}] * 50)
        client.sock.close()
        self.wait_for_depth(weir, 0)
        self.await_metric(weir, 0, "weir_http2_streams")

    def test_request_of_better_priority_displaces_a_request_on_the_same_connection(self):
        weir = self.plain_weir(queue_rule("1/day", 3), routes=CLASSES)
        client = self.client(weir)
        waiting = self.full(weir, client, [{"x_class": "batch"}] * 3)
        open_together(client, [("/queue", {"x_class": "urgent"})])
        displaced = client.read(waiting[2])
        self.assert_own_error(displaced, 503)
        self.assertIn("others go first", displaced.json()["message"])
        self.await_metric(weir, 1, "weir_queue_refused_total", reason="displaced")
        self.assertEqual([client.answers[stream].status for stream in waiting[:2]], [None, None])

    def test_client_with_fewer_queued_requests_displaces_one_of_another_client_on_the_same_connection(self):
        weir = self.keyed(queue_rule("1/day", 6))
        client = self.client(weir)
        waiting = self.full(weir, client, [{"x_api_key": "a"}] * 6)
        for number in range(3):
            open_together(client, [("/queue", {"x_api_key": "b"})])
            self.assertEqual(client.read(waiting[5 - number]).json()["rule"], "queue")
        self.await_metric(weir, 3, "weir_queue_refused_total", reason="levelled")
        self.assertEqual(client.get("/queue", x_api_key="b").status, 429, "both have three places")

    def test_queued_requests_of_each_client_are_bounded(self):
        weir = self.keyed(queue_rule("1/day", 20, queue_per_client=2))
        client = self.client(weir)
        self.full(weir, client, [{"x_api_key": "a"}] * 2)
        self.assertEqual(client.get("/queue", x_api_key="a").status, 429)
        self.assertEqual(weir.metric("weir_queue_refused_total", reason="crowded"), 1)
        open_together(client, [("/queue", {"x_api_key": "b"})])
        self.wait_for_depth(weir, 3)

    def test_request_that_would_wait_longer_than_max_wait_is_refused_at_once(self):
        client = self.client(self.plain_weir(queue_rule("1/day", 10, max_wait='"500ms"')))
        self.assertEqual([client.get("/queue").status for _ in range(2)], [200, 429])

    def test_queued_streams_keep_their_places_over_a_reload(self):
        weir = self.plain_weir(queue_rule("1/day", 3))
        client = self.client(weir)
        waiting = self.full(weir, client, [{}] * 3)
        text = self.text(doors=[False], rules=queue_rule("1/day", 4))
        (weir.folder / "weir.toml").write_text(text)
        weir.signal(signal.SIGHUP)
        self.await_metric(weir, 1, "weir_reloads_total", result="ok")
        open_together(client, [("/queue", {})])
        self.wait_for_depth(weir, 4)
        self.assertEqual(client.get("/queue").status, 429)
        client.reset(waiting[0])
        self.wait_for_depth(weir, 3)
        self.assertEqual(client.goaways, [])


class AtTheServer(QueueTestCase):
    def setUp(self):
        super().setUp()
        self.tokens = threading.Semaphore(0)
        self.upstream.reply = self.reply
        self.addCleanup(self.tokens.release, 1000)

    def reply(self, exchange):
        self.tokens.acquire(timeout=PATIENCE)
        exchange.send(answer(exchange.target.encode()))

    def bounded(self, *rules, bound="max_in_flight = 1", upstream="", **more):
        text = self.text(doors=[False], rules="".join(rules), upstream=f'max_wait = "{PATIENCE}s"\n{upstream}', **more)
        servers = f'["127.0.0.1:{self.upstream.port}"]'
        return self.start(Weir(text.replace(servers, f'[{{ address = "127.0.0.1:{self.upstream.port}", {bound} }}]')))

    def arrived(self, count):
        eventually(lambda: len(self.upstream.exchanges) == count, f"{count} requests are at the server")

    def test_streams_wait_for_the_server_by_priority_and_then_in_order(self):
        client = self.client(self.bounded(routes=CLASSES))
        classes = [{"x_name": f"{name}{number}", "x_class": name} for number in range(2) for name in ("batch", "middle", "urgent")]
        streams = open_together(client, [("/", fields) for fields in [{"x_name": "first"}, *classes]])
        for number in range(7):
            self.arrived(number + 1)
            self.tokens.release()
        self.assertEqual({client.read(stream).status for stream in streams}, {200})
        self.assertEqual(self.names(), ["first", "urgent0", "urgent1", "middle0", "middle1", "batch0", "batch1"])

    def test_server_gets_the_next_stream_in_place_of_a_reset_stream(self):
        weir = self.bounded()
        client = self.client(weir)
        streams = open_together(client, [(f"/{number}", {}) for number in range(4)])
        self.wait_for_depth(weir, 3, "weir_upstream_queue_depth")
        client.reset(streams[1])
        self.wait_for_depth(weir, 2, "weir_upstream_queue_depth")
        self.tokens.release(3)
        self.assertEqual([client.read(streams[number]).body for number in (0, 2, 3)], [b"/0", b"/2", b"/3"])

    def test_a_full_server_queue_refuses_a_stream_without_a_charge(self):
        weir = self.bounded(rule("day", "5/3000day", algorithm='"fixed_window"'), upstream="queue = 2")
        client = self.client(weir)
        streams = open_together(client, [("/", {})] * 3)
        self.wait_for_depth(weir, 2, "weir_upstream_queue_depth")
        refused = client.get("/")
        self.assert_own_error(refused, 503)
        self.assertEqual(refused["retry-after"], "1")
        self.tokens.release(5)
        self.assertEqual([client.read(stream).status for stream in streams], [200] * 3)
        self.assertEqual([client.get("/").status for _ in range(3)], [200, 200, 429])

    def test_requests_of_the_lowest_priority_are_rejected_first(self):
        health = '[[route]]\nmatch = { path = "/health" }\nrespond = { status = 200 }\n'
        weir = self.plain_weir(server="max_in_flight = 20", routes=health + CLASSES)
        client, streams = self.client(weir), []
        for count, name, arrived in ((11, "batch", 11), (4, "middle", 15), (5, "urgent", 20)):
            streams += open_together(client, [("/", {"x_class": name})] * count)
            self.arrived(arrived)
            shed = client.get("/", x_class=name)
            self.assert_own_error(shed, 503)
            self.assertEqual(shed["retry-after"], "1")
        self.assertEqual(client.get("/health").status, 200)
        self.assertEqual([weir.metric("weir_shed_total", priority=priority) for priority in (0, 5, 9)], [1, 1, 1])
        client.reset(streams.pop())
        self.tokens.release(20)
        self.assertEqual([client.read(stream).status for stream in streams], [200] * 19)
        self.tokens.release()
        self.assertEqual(client.get("/", x_class="batch").status, 200)

    def test_only_ten_of_a_hundred_streams_are_at_the_server_at_once(self):
        weir = self.plain_weir('[[rule]]\nname = "ten"\nalgorithm = "concurrency"\nlimit = 10\nkey = ["ip"]\n')
        client = self.client(weir)
        streams = open_together(client, [("/", {})] * 100)
        client.wait(lambda: sum(client.answers[stream].status == 429 for stream in streams) == 90)
        self.arrived(10)
        open_ones = [stream for stream in streams if client.answers[stream].status is None]
        refused = next(client.answers[stream] for stream in streams if client.answers[stream].status)
        self.assertEqual((refused["retry-after"], refused["ratelimit-policy"]), ("1", '"ten";q=10;qu="concurrent-requests"'))
        client.reset(open_ones[0])
        client.reset(open_ones[1])
        self.await_metric(weir, 8, "weir_http2_streams")
        more = open_together(client, [("/", {})] * 3)
        self.arrived(12)
        self.tokens.release(13)
        statuses = [client.read(stream).status for stream in (*open_ones[2:], *more)]
        self.assertEqual((statuses.count(200), statuses.count(429)), (10, 1))
        eventually(lambda: (self.tokens.release(), client.get("/")["x-ratelimit-remaining"])[1] == "9", "no permit is held")

    def test_an_adaptive_limit_falls_when_streams_get_no_answer(self):
        weir = self.plain_weir('[[rule]]\nname = "fragile"\nalgorithm = "adaptive_concurrency"\nmin = 2\nmax = 50\nkey = []\n',
                               upstream='timeouts = { response = "1s" }')
        client = self.client(weir)
        streams = open_together(client, [("/", {})] * 11)
        self.assertEqual([client.read(stream).status for stream in streams], [504] * 10 + [429])
        self.tokens.release(100)
        self.assertLess(int(client.get("/")["x-ratelimit-limit"]), 10)

    def test_streams_obey_the_rate_limit_of_their_server(self):
        self.tokens.release(100)
        client, began = self.client(self.bounded(bound='limit = "5/s"')), time.monotonic()
        streams = open_together(client, [("/", {})] * 8)
        self.assertEqual([client.read(stream).status for stream in streams], [200] * 8)
        self.assertGreater(self.upstream.exchanges[-1].arrived - began, 0.55, "five at once, then one each fifth of a second")


if __name__ == "__main__":
    main()
