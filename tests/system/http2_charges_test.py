#!/usr/bin/env python3
"""weir corrects the charge of an HTTP/2 request by the status of its answer or by the cost in the answer. In
memory and in Redis."""

import gzip
import json
import threading

from harness import PATIENCE, Redis, answer, chunked, eventually, get, main, rule
from protocol_pair import Ask, SettledTestCase

LOGIN = dict(name="login", limit="5/3000day", key='["ip"]', algorithm='"sliding_log"', charge='{ status = ["401", "403"] }')
BUDGET = dict(name="tokens", limit="10000/3000day", key='["header:X-Case"]', algorithm='"fixed_window"')
JSON_COST = '{ response_json = "/usage/total_tokens", reserve = 1000 }'
STATUS = {"200": "200 OK", "302": "302 Found", "401": "401 Unauthorized", "403": "403 Forbidden", "404": "404 Not Found", "503": "503 Busy"}


def usage(tokens, padding=0):
    return json.dumps({"text": "x" * padding, "usage": {"total_tokens": tokens}}).encode()


class ByStatus(SettledTestCase):
    def setUp(self):
        super().setUp()
        self.upstream.reply = lambda exchange: exchange.send(answer(status=STATUS[exchange.head["x-say"]]))

    def say(self, *statuses, path="/"):
        return [Ask(path, fields={"x_say": status}) for status in statuses]

    def test_each_algorithm_charges_answers_by_status(self):
        names = {"token_bucket": {}, "gcra": {"burst": 4}, "fixed_window": {}, "sliding_log": {}, "sliding_window": {}}
        rules = [rule(name, LOGIN["limit"], algorithm=f'"{name}"', charge='{ status = ["401-403", "5xx"] }',
                      match=f'{{ path = "/{name}" }}', **more) for name, more in names.items()]
        pair = self.pair(*rules)
        for name in names:
            with self.subTest(name):
                answers = self.same(pair, self.say("404", "401", "403", "503", "200", "302", "401", "200", "401", "200", path=f"/{name}"))
                self.assertEqual([each["x-ratelimit-remaining"] for each in answers], list("5432221100"))
                self.assertEqual([each.status for each in answers[-2:]], [401, 429])

    def test_answers_by_weir_itself_are_charged_by_status(self):
        routes = '[[route]]\nmatch = { path = "/ping" }\nrespond = { status = 200 }\n' \
                 '[[route]]\nmatch = { path = "/api/*" }\nupstream = "api"'
        pair = self.pair(rule(**{**LOGIN, "charge": '{ status = ["404"] }'}), routes=routes)
        answers = self.same(pair, [Ask(path) for path in ("/ping", "/ping", "/no", "/no")])
        self.assertEqual([each["x-ratelimit-remaining"] for each in answers], ["5", "5", "4", "3"])

    def test_only_5_of_64_parallel_guesses_on_one_connection_reach_the_server(self):
        all_refused = threading.Event()
        self.addCleanup(all_refused.set)
        self.upstream.reply = lambda exchange: (exchange.read_body(), all_refused.wait(PATIENCE),
                                                exchange.send(answer(status=STATUS["401"])))
        weir = self.plain_weir(rule(**LOGIN))
        client = self.client(weir)
        streams = [client.open("POST", end=False) for _ in range(64)]
        for number, stream in enumerate(streams):
            client.send_body(stream, b"password=%d" % number)
        client.wait(lambda: sum(client.answers[stream].status == 429 for stream in streams) == 59)
        self.assertEqual(len([stream for stream in streams if client.answers[stream].status is None]), 5)
        all_refused.set()
        self.assertEqual(sorted(client.read(stream).status for stream in streams), [401] * 5 + [429] * 59)
        self.await_settled(weir, "login", charged=5)
        self.assertEqual((client.get("/").status, len(self.upstream.exchanges)), (429, 5))

    def test_parallel_successes_are_refunded_completely(self):
        weir = self.plain_weir(rule(**{**LOGIN, "limit": "100/3000day"}))
        client = self.client(weir)
        for _ in range(3):
            streams = [client.open(fields=[("x-say", "200")]) for _ in range(100)]
            self.assertEqual({client.read(stream).status for stream in streams}, {200})
        self.await_settled(weir, "login", refunded=300)
        self.assertEqual(client.get("/", x_say="200")["x-ratelimit-remaining"], "100")

    def test_answer_before_the_end_of_the_upload_is_charged_by_its_status(self):
        def refuse(exchange):
            exchange.send(answer(status=STATUS[exchange.head["x-say"]], headers="Connection: close\r\n"))
            exchange.wait_for_close()

        self.upstream.reply = refuse
        weir = self.plain_weir(rule(**LOGIN))
        client = self.client(weir)
        for status, left in (("401", "4"), ("200", "4"), ("403", "3")):
            stream = client.open("POST", fields=[("x-say", status)], end=False)
            client.send_body(stream, b"x" * 300_000)
            response = client.read(stream)
            self.assertEqual((response.status, response["x-ratelimit-remaining"]), (int(status), left))
        self.await_settled(weir, "login", charged=2, refunded=1)

    def test_charges_of_shadow_rules_overrides_and_queues_are_settled(self):
        weir = self.plain_weir(rule(**{**LOGIN, "name": "shadow"}, mode='"shadow"'),
                               rule("pace", "50/s", algorithm='"leaky_bucket"', queue=50, key="[]"),
                               rule(**{**LOGIN, "limit": "9/3000day"}, overrides='[{ match = { path = "/vip" }, limit = "2/3000day" }]'))
        client = self.client(weir)
        streams = [client.open(path=path, fields=[("x-say", "401")]) for path in ["/vip"] * 4 + ["/"] * 5]
        self.assertEqual(sorted(client.read(stream).status for stream in streams), [401] * 7 + [429] * 2)
        self.await_settled(weir, "login", charged=7)
        self.await_settled(weir, "shadow", charged=5)
        self.assertGreaterEqual(weir.metric("weir_decisions_total", rule="shadow", outcome="shadow_refused"), 2)


class ByCost(SettledTestCase):
    def remaining(self, weir, case):
        return get(weir.admin, f"/api/keys?rule=tokens&key={case}").json()["limits"][0]["remaining"]

    def test_costs_in_response_fields_are_settled_as_in_http_1_1(self):
        cases = {"surplus": ("X-Tokens: 250\r\n", 250), "debt": ("X-Tokens: 2250\r\n", 2250), "nothing": ("X-Tokens: 0\r\n", 0),
                 "same": ("X-Tokens: 1000\r\n", 1000), "none": ("", 1000), "negative": ("X-Tokens: -5\r\n", 1000),
                 "two": ("X-Tokens: 1\r\nX-Tokens: 2\r\n", 1000)}
        self.upstream.reply = lambda exchange: exchange.send(answer(headers=cases[exchange.head["x-case"]][0]))
        pair = self.pair(rule(**BUDGET, cost='{ response_header = "X-Tokens", reserve = 1000 }'))
        answers = self.same(pair, [Ask(fields={"x_case": case}) for case in cases])
        self.assertEqual([int(each["x-ratelimit-remaining"]) for each in answers], [10_000 - cost for _, cost in cases.values()])
        for weir in pair:
            self.await_settled(weir, "tokens", surplus=1, debt=1, refunded=1, charged=1, untold=1, unreadable=2)

    def test_costs_in_json_bodies_are_settled_as_in_http_1_1(self):
        whole, coded = usage(3000, 9000), answer(gzip.compress(usage(5)), headers="Content-Encoding: gzip\r\n")
        replies = {"length": (answer(whole), 3000),
                   "chunks": (answer(chunked(whole, 700), headers="Transfer-Encoding: chunked\r\n", length=False), 3000),
                   "close": (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + whole, 3000), "number": (answer(usage(25.0)), 25),
                   "huge": (answer(b'{"usage":{"total_tokens":1e400}}'), 10_000), "none": (answer(b"{}"), 1000), "coded": (coded, 1000),
                   "empty": (answer(b"", status="204 No Content"), 1000), "long": (answer(usage(5, 70_000)), 1000),
                   "events": (answer(b"data: {}\n\n", headers="Content-Type: text/event-stream\r\n"), 1000)}

        def reply(exchange):
            exchange.send(replies[exchange.head["x-case"]][0])
            if exchange.head["x-case"] == "close":
                exchange.close()

        self.upstream.reply = reply
        pair = self.pair(rule(**BUDGET, cost=JSON_COST))
        answers = self.same(pair, [Ask(fields={"x_case": case}) for case in replies])
        self.assertEqual([each.body for each in answers[:3]], [whole] * 3)
        for weir in pair:
            self.await_settled(weir, "tokens", debt=4, surplus=1, untold=3, unreadable=2)
            spent = {case: 10_000 - self.remaining(weir, case) for case in replies}
            self.assertEqual(spent, {case: cost for case, (_, cost) in replies.items()})

    def test_weir_asks_the_server_for_no_coding_or_range_that_would_hide_the_cost(self):
        self.upstream.reply = answer(usage(5))
        client = self.client(self.plain_weir(rule(**BUDGET, cost=JSON_COST)))
        client.get("/", x_case="a", accept_encoding="gzip", range="bytes=0-0")
        head = self.upstream.exchanges[0].head
        self.assertEqual((head.all("accept-encoding"), head["range"]), (["identity"], None))

    def test_cost_is_read_only_from_answers_with_a_charged_status(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(status=STATUS[exchange.target[1:]], headers="X-Tokens: 50\r\n"))
        cost = '{ response_header = "X-Tokens", reserve = 1000 }'
        answers = self.same(self.pair(rule(**BUDGET, cost=cost, charge='{ status = ["2xx"] }')),
                            [Ask(f"/{status}", fields={"x_case": "a"}) for status in ("200", "503", "200")])
        self.assertEqual([each["x-ratelimit-remaining"] for each in answers], ["9950", "9950", "9900"])

    def test_truncated_answer_is_charged_the_reserved_cost(self):
        cut = b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n" + usage(5)
        self.upstream.reply = lambda exchange: (exchange.send(cut), exchange.close())
        weir = self.plain_weir(rule(**BUDGET, cost=JSON_COST))
        self.assertIsNotNone(self.client(weir).get("/", x_case="a").error)
        self.await_settled(weir, "tokens", unreadable=1)

    def test_each_of_a_hundred_streams_reserves_its_own_cost(self):
        go = threading.Event()
        self.addCleanup(go.set)
        self.upstream.reply = lambda exchange: (go.wait(PATIENCE), exchange.send(answer(headers="X-Tokens: 10\r\n")))
        weir = self.plain_weir(rule(**BUDGET, cost='{ response_header = "X-Tokens", reserve = 250 }'))
        client = self.client(weir)
        streams = [client.open(fields=[("x-case", "a")]) for _ in range(100)]
        client.wait(lambda: sum(client.answers[stream].status == 429 for stream in streams) == 60)
        eventually(lambda: len(self.upstream.exchanges) == 40, "forty requests are at the server")
        go.set()
        statuses = [client.read(stream).status for stream in streams]
        self.assertEqual((statuses.count(200), statuses.count(429)), (40, 60))
        self.await_settled(weir, "tokens", surplus=40)
        self.assertEqual(self.remaining(weir, "a"), 10_000 - 400)


class InRedis(SettledTestCase):
    def test_rules_in_redis_count_and_settle_streams(self):
        redis = self.start(Redis())
        self.upstream.reply = lambda exchange: exchange.send(answer(status=STATUS[exchange.head["x-say"]]))
        weir = self.plain_weir(rule("day", "40/3000day", algorithm='"fixed_window"', store='"redis"', match='{ path = "/day" }'),
                               rule(**LOGIN, store='"redis"', match='{ path = "/login" }'),
                               rule("pace", "500/s", key="[]", algorithm='"leaky_bucket"', queue=100, store='"redis"'),
                               state=f'redis = {{ url = "{redis.url}", timeout = "2s" }}')
        eventually(weir.is_ready, "weir is connected to Redis")
        clients = [self.client(weir), self.client(weir)]
        opened = [(client, client.open(path="/day", fields=[("x-say", "200")])) for client in clients for _ in range(50)]
        statuses = [client.read(stream).status for client, stream in opened]
        self.assertEqual((statuses.count(200), statuses.count(429)), (40, 60))
        opened = [(client, client.open(path="/login", fields=[("x-say", "200")])) for client in clients for _ in range(2)]
        self.assertEqual({client.read(stream).status for client, stream in opened}, {200})
        self.await_settled(weir, "login", refunded=4)
        self.assertEqual([clients[0].get("/login", x_say="401").status for _ in range(6)], [401] * 5 + [429])


if __name__ == "__main__":
    main()
