#!/usr/bin/env python3
"""Costs that streams report: event streams and JSON lines, with the state in this process and in Redis."""

import json
import threading

import settlement_test
import shared_settlement_test
from harness import Client, answer, chunked, main, request_bytes, rule

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
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
        """Returns the remaining units. The request that asks costs nothing in the end."""
        self.upstream.reply = answer(b'{"usage":{"total_tokens":0}}')
        response = weir.get("/")
        return int(response["x-ratelimit-remaining"]) + reserve if response.status == 200 else 0


class StreamsInMemory(StreamCosts):
    def test_last_cost_in_a_stream_is_charged_in_every_framing(self):
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

    def test_stream_longer_than_max_body_is_charged_what_it_reports(self):
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

    def test_each_event_reaches_the_client_before_the_next_one_is_sent(self):
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

    def test_reserve_is_what_the_request_asks_for(self):
        weir = self.budget('{ response_json = "/n", reserve = { json = "/max", default = 300, most = 900 }, max_body = "1KiB" }')
        self.upstream.reply = answer(b"{}")  # names no cost, so that the reserve stays
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


if __name__ == "__main__":
    main()
