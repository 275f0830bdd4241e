#!/usr/bin/env python3
"""Costs that streams report: event streams and JSON lines, with the state in this process and in Redis."""

import json
import signal
import threading
import time

import settlement_test
import shared_settlement_test
from harness import PATIENCE, Client, answer, chunked, eventually, main, request_bytes, rule, together
from http2_client import Http2Client

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
H2C = dict(listener='protocols = ["http/1.1", "h2c"]')
COST = '{ response_json = "/usage/total_tokens|/response/usage/total_tokens", reserve = 1000 }'


def event(**data):
    return f"data: {json.dumps(data)}\n\n".encode()


def one_chunk(text):
    return b"%x\r\n%s\r\n" % (len(text), text)


class StreamCosts(settlement_test.Settlement):
    LIMIT = 10_000

    def budget(self, cost=COST, limit=LIMIT, **more):
        return self.weir(rule("tokens", f"{limit}/day", key='["ip"]', algorithm='"fixed_window"', cost=cost), **more)

    def left(self, weir, reserve=1000):
        """Returns the remaining units. The settlement refunds the request with which the test asks."""
        self.upstream.reply = answer(b'{"usage":{"total_tokens":0}}')
        response = weir.get("/")
        return int(response["x-ratelimit-remaining"]) + reserve if response.status == 200 else 0


class StreamsInMemory(StreamCosts):
    def test_last_cost_in_a_stream_is_charged_in_every_body_framing(self):
        events = event(usage=None) + event(usage={"total_tokens": 7}) + b": ping\n\n" + event(usage={"total_tokens": 40}) + \
            b"data: [DONE]\n\n"
        lines = b'{"text":"a"}\n{"response":{"usage":{"total_tokens":40}}}\n'
        for kind, body in (("text/event-stream; charset=utf-8", events), ("application/x-ndjson", lines), ("application/jsonl", lines)):
            headers = f"Content-Type: {kind}\r\n"
            in_chunks = answer(b"", headers=headers + "Transfer-Encoding: chunked\r\n", length=False)
            weir = self.budget()
            for number, reply in enumerate((answer(body, headers=headers), in_chunks + chunked(body, 1), in_chunks + chunked(body)), 1):
                with self.subTest(kind=kind, number=number):
                    self.upstream.reply = reply
                    self.assertEqual(weir.get("/").body, body)
                    self.await_settled(weir, "tokens", surplus=number, **({"refunded": number - 1} if number > 1 else {}))
                    self.assertEqual(self.left(weir), self.LIMIT - 40 * number)

    def test_stream_longer_than_max_body_is_charged_its_reported_cost(self):
        weir = self.budget(COST.replace("}", ', max_body = "1KiB" }'))
        self.upstream.reply = HEAD + chunked(event(text="x" * 300_000) * 3 + event(usage={"total_tokens": 4000}), 5000)
        self.assertEqual(weir.get("/").status, 200)
        self.await_settled(weir, "tokens", debt=1)
        self.assertEqual(self.left(weir), self.LIMIT - 4000)

    def test_stream_without_a_cost_or_without_an_end_is_charged_the_reserve(self):
        weir = self.budget()
        self.upstream.reply = HEAD + chunked(event(text="a") + b"data: [DONE]\n\n")
        self.assertEqual(weir.get("/").status, 200)
        self.await_settled(weir, "tokens", untold=1)

        def break_off(exchange):
            exchange.read_body()
            exchange.send(HEAD + one_chunk(event(usage={"total_tokens": 5})))
            exchange.close()

        self.upstream.reply = break_off
        with self.assertRaises(EOFError):
            weir.get("/")
        self.await_settled(weir, "tokens", untold=1, unreadable=1)
        self.assertEqual(self.left(weir), self.LIMIT - 2000)

    def test_each_event_reaches_the_client_before_the_server_sends_the_next_event(self):
        received = threading.Semaphore(0)

        def step_by_step(exchange):
            exchange.read_body()
            exchange.send(HEAD)
            for number in range(20):
                exchange.send(one_chunk(event(number=number)))
                received.acquire(timeout=30)
            exchange.send(b"0\r\n\r\n")

        self.upstream.reply = step_by_step
        weir = self.budget()
        with Client(weir.port) as client:
            client.send(request_bytes("GET", "/"))
            for number in range(20):
                client.wire.read_until(event(number=number))
                received.release()
            client.wire.read_until(b"0\r\n\r\n")

    def test_amount_that_the_request_asks_for_is_reserved_up_to_the_maximum(self):
        weir = self.budget('{ response_json = "/n", reserve = { json = "/max", default = 300, most = 900 }, max_body = "1KiB" }')
        self.upstream.reply = answer(b"{}")  # states no cost, so the reserved amount stays charged
        spent = 0
        with weir.connect() as client:
            for body, reserve in ((b'{"max":50}', 50), (b'{"max":901}', 900), (b'{"max":null}', 300), (b"{}", 300), (b"", 300)):
                spent += reserve
                self.assertEqual(client.request("POST", "/", body=body)["x-ratelimit-remaining"], str(self.LIMIT - spent), body)
        for body, status in ((b"max=5", 400), (b'{"max":5,"max":6}', 400), (b'"%s"' % (b"x" * 1024), 413)):
            with weir.connect() as client:
                self.assert_own_error(client.request("POST", "/", body=body), status)


class StreamsInRedis(shared_settlement_test.SettlementInRedis, StreamsInMemory):
    pass


class EstimatesInMemory(StreamCosts):
    """Each event costs one unit. The provider sends many events."""

    def estimated(self, limit, cut=True, reserve=10, per_event=1, **more):
        stream = f"stream = {{ per_event = {per_event}, cut = {str(cut).lower()} }}"
        return self.budget(f'{{ response_json = "/usage/total_tokens", reserve = {reserve}, {stream} }}', limit, **more)

    def send(self, count, *last, pause=None):
        """Makes the upstream send this many events in pieces of different sizes, and then `last`."""
        def reply(exchange):
            exchange.read_body()
            exchange.send(HEAD)
            for number in range(count):
                if number == count // 2 and pause:
                    pause()
                exchange.send(one_chunk(event(number=number) if number % 3 else event(number=number) + b": comment\n\n"))
            exchange.send(b"".join(map(one_chunk, last)) + b"0\r\n\r\n")

        self.upstream.reply = reply

    @staticmethod
    def events_of(response):
        return response.body.count(b"data: {")

    def test_stream_ends_cleanly_when_the_budget_is_used_up(self):
        weir = self.estimated(100)
        self.send(500)
        with weir.connect() as client:
            response = client.get("/")  # raises an error if the body has no end
            self.assertEqual((response.status, self.events_of(response)), (200, 100))
            self.await_settled(weir, "tokens", cut=1)
            self.assertEqual(client.get("/").status, 429, "the connection stays open")

    def test_stream_over_http2_ends_cleanly_when_the_budget_is_used_up(self):
        weir = self.estimated(100, **H2C)
        self.send(500)
        with Http2Client(weir.port) as client:
            response = client.get("/")
            self.assertEqual((response.status, response.ended, response.error), (200, True, None))
            self.assertEqual(self.events_of(response), 100)
            self.await_settled(weir, "tokens", cut=1)
            self.assertEqual(client.get("/").status, 429, "the connection stays open")

    def test_event_stream_is_cut_even_if_its_request_is_a_grpc_call_with_a_message_limit(self):
        cost = '{ response_json = "/n", reserve = 10, stream = { cut = true } }'
        weir = self.weir(rule("tokens", "100/day", key='["ip"]', algorithm='"fixed_window"', cost=cost, messages='"100000/s"',
                              direction='"both"'))
        self.send(500)
        response = weir.get("/", content_type="application/grpc")
        self.assertEqual((response.status, self.events_of(response)), (200, 100))
        self.await_settled(weir, "tokens", cut=1)

    def test_stream_cut_by_one_rule_is_charged_its_reported_cost_by_the_other_rules(self):
        keys = {"key": '["ip"]', "algorithm": '"fixed_window"'}
        costs = (("cutting", ', stream = { cut = true }'), ("estimating", ", stream = { cut = false }"), ("reading", ""))
        weir = self.weir(*(rule(name, "100/day" if name == "cutting" else "10000/day", **keys,
                                cost=f'{{ response_json = "/n", reserve = 10{stream} }}') for name, stream in costs))
        self.upstream.reply = HEAD + chunked(event(n=150) + event(text="a") * 500)
        self.assertEqual(self.events_of(weir.get("/")), 100)
        self.await_settled(weir, "cutting", cut=1)
        for name in ("estimating", "reading"):
            self.await_settled(weir, name, debt=1)

    def test_stream_is_cut_before_the_end_of_an_event_that_arrives_in_pieces(self):
        begun = threading.Event()
        self.addCleanup(begun.set)

        def reply(exchange):
            exchange.read_body()
            exchange.send(HEAD + one_chunk(event(number=0) * 20 + b'data: {"number":'))
            begun.wait(PATIENCE)
            exchange.send(one_chunk(b"20}\n\n") + one_chunk(event(number=0)))

        self.upstream.reply = reply
        weir = self.estimated(20)
        with weir.connect() as client:
            client.send(request_bytes("GET", "/"))
            client.wire.read_until(b'data: {"number":\r\n')
            begun.set()
            rest = client.wire.read_until(b"0\r\n\r\n")
            self.assertNotIn(b"\n\n", rest, "the event has no end")
        self.await_settled(weir, "tokens", cut=1)

    def test_streams_of_one_http2_connection_together_never_exceed_their_budget(self):
        weir = self.estimated(300, **H2C)
        self.send(200)
        with Http2Client(weir.port) as client:
            responses = [client.read(stream) for stream in [client.open() for _ in range(8)]]
        self.assertLessEqual(sum(map(self.events_of, responses)), 300)
        self.assertGreater(sum(map(self.events_of, responses)), 200)

    def test_cut_answer_of_known_length_resets_its_http2_stream(self):
        weir = self.estimated(20, **H2C)
        self.upstream.reply = answer(event(text="a") * 50, headers="Content-Type: text/event-stream\r\n")
        with Http2Client(weir.port) as client:
            response = client.get("/")
            self.assertEqual((response.ended, response.error is not None), (False, True))
            self.assertLessEqual(self.events_of(response), 20)
            self.await_settled(weir, "tokens", cut=1)
            self.assertEqual(client.get("/").status, 429, "the connection stays open")

    def test_concurrent_streams_together_never_exceed_their_budget(self):
        weir = self.estimated(300)
        self.send(200)
        bodies = together(8, lambda _: self.events_of(weir.get("/")))
        self.assertLessEqual(sum(bodies), 300)
        self.assertGreater(sum(bodies), 200, bodies)

    def test_reported_cost_replaces_the_estimate(self):
        weir = self.estimated(1000)
        self.send(200, event(usage={"total_tokens": 37}))
        self.assertEqual(self.events_of(weir.get("/")), 201)
        self.await_settled(weir, "tokens", surplus=1)
        self.assertEqual(self.left(weir, 10), 963)

    def test_stream_that_reports_no_cost_is_charged_its_estimate(self):
        weir = self.estimated(1000, per_event=2)
        for count, spent in ((100, 200), (3, 206)):  # the second stream costs less than the reserve
            self.send(count)
            self.assertEqual(self.events_of(weir.get("/")), count)
            self.await_settled(weir, "tokens", estimated=1 + (count == 3), **({"refunded": 1} if count == 3 else {}))
            self.assertEqual(self.left(weir, 10), 1000 - spent)

    def test_stream_of_a_rule_that_does_not_cut_continues_and_is_charged_its_estimate(self):
        weir = self.estimated(50, cut=False)
        self.send(200)
        self.assertEqual(self.events_of(weir.get("/")), 200)
        self.await_settled(weir, "tokens", estimated=1)
        self.assertEqual(weir.get("/").status, 429)

    def test_client_that_leaves_is_charged_the_estimate_so_far(self):
        left = threading.Event()
        self.addCleanup(left.set)
        self.send(80, pause=lambda: left.wait(30))
        weir = self.estimated(1000, upstream='timeouts = { abandoned = "0s" }')
        client = Client(weir.port)
        client.send(request_bytes("GET", "/"))
        client.wire.read_until(event(number=39))
        client.leave()
        self.await_settled(weir, "tokens", estimated=1)
        left.set()
        self.assertEqual(self.left(weir, 10), 960)

    def test_cut_answer_of_known_length_ends_with_its_connection(self):
        weir = self.estimated(20)
        body = event(text="a") * 50
        self.upstream.reply = answer(body, headers="Content-Type: text/event-stream\r\n")
        with self.assertRaises(EOFError):
            weir.get("/")
        self.await_settled(weir, "tokens", cut=1)


class EstimatesInRedis(shared_settlement_test.SettlementInRedis, EstimatesInMemory):
    @staticmethod
    def read_events(client, count):
        text = b""
        while text.count(b"data: {") < count:
            text += client.wire.read_until(b"\n\n")

    def under_failure(self, on_failure):
        """Starts a weir whose rule has a budget of 100 units, of which a request reserves 10."""
        cost = '{ response_json = "/n", reserve = 10, stream = { cut = true } }'
        return self.weir(rule("tokens", "100/3000day", key='["ip"]', algorithm='"fixed_window"', cost=cost,
                              on_store_failure=f'"{on_failure}"'))

    def test_stream_continues_while_redis_is_frozen_and_is_cut_when_redis_answers(self):
        self.TIMEOUT = "300ms"
        for on_failure in ("open", "local"):
            with self.subTest(on_failure):
                frozen, thawed = threading.Event(), threading.Event()
                self.addCleanup(frozen.set)
                self.addCleanup(thawed.set)

                def reply(exchange, frozen=frozen, thawed=thawed):
                    exchange.read_body()
                    exchange.send(HEAD + one_chunk(event(number=0) * 10))
                    frozen.wait(PATIENCE)
                    exchange.send(one_chunk(event(number=1) * 200))
                    thawed.wait(PATIENCE)
                    deadline = time.monotonic() + PATIENCE
                    while time.monotonic() < deadline:  # ends earlier, when weir closes the connection
                        exchange.send(one_chunk(event(number=2)))
                        time.sleep(0.02)  # the interval of the events

                self.upstream.reply = reply
                weir = self.under_failure(on_failure)
                with weir.connect() as client:
                    client.send(request_bytes("GET", "/"))
                    self.read_events(client, 10)
                    self.redis.process.send_signal(signal.SIGSTOP)
                    try:
                        frozen.set()
                        self.read_events(client, 200)
                        self.assertGreater(weir.metric("weir_store_failures_total"), 0)
                    finally:
                        self.redis.process.send_signal(signal.SIGCONT)
                    eventually(lambda: weir.metric("weir_redis_up") == 1, "weir is connected to Redis again")  # noqa: B023
                    thawed.set()
                    client.wire.read_until(b"\r\n0\r\n\r\n")
                self.await_settled(weir, "tokens", cut=1)
                eventually(lambda: weir.get("/").status == 429, "the whole stream is charged")  # noqa: B023

    def test_stream_ends_while_redis_is_down_if_on_store_failure_is_closed(self):
        down = threading.Event()
        self.addCleanup(down.set)

        def reply(exchange):
            exchange.read_body()
            exchange.send(HEAD + one_chunk(event(number=0) * 10))
            down.wait(PATIENCE)
            exchange.send(one_chunk(event(number=1) * 200))
            exchange.wait_for_close()

        self.upstream.reply = reply
        weir = self.under_failure("closed")
        with weir.connect() as client:
            client.send(request_bytes("GET", "/"))
            self.read_events(client, 10)
            self.redis.kill()
            eventually(lambda: weir.metric("weir_redis_up") == 0, "weir has noticed that Redis is down")
            down.set()
            self.assertNotIn(b"data", client.wire.read_until(b"0\r\n\r\n"))
            self.await_settled(weir, "tokens", cut=1)
            self.assertEqual(weir.metric("weir_store_failures_total"), 1)
            self.assertEqual(client.get("/").status, 503, "the connection stays open")
            self.redis.start()
            self.upstream.reply = answer(b'{"n":1}')
            eventually(lambda: client.get("/").status == 200, "Redis answers again")

    def test_streams_through_two_instances_together_never_exceed_their_budget(self):
        cost = '{ response_json = "/n", reserve = 10, stream = { cut = true } }'
        one = rule("tokens", "300/day", key='["ip"]', algorithm='"fixed_window"', cost=cost)
        weirs = [self.weir(one, secret="test") for _ in range(2)]
        self.send(200)
        bodies = together(8, lambda number: self.events_of(weirs[number % 2].get("/")))
        self.assertLessEqual(sum(bodies), 300)
        self.assertGreater(sum(bodies), 200, bodies)


if __name__ == "__main__":
    main()
