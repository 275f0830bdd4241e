#!/usr/bin/env python3
"""Costs in bytes: what bodies of requests and answers cost over HTTP/1.1 and HTTP/2, also if the client leaves."""

import threading

from harness import PATIENCE, Client, Redis, Upstream, Weir, answer, chunked, eventually, main, request_bytes, rule
from protocol_pair import Ask, SettledTestCase
from tunnel_test import ASK, SWITCH

LIMIT = 1_000_000
BODIES = ("response", "request", "both")


def bytes_rule(bodies, more="", **keys):
    """Returns a rule for the path "/BODIES", where BODIES is `bodies`. One unit of its cost is 1,000 octets."""
    settings = dict(key="[]", algorithm='"fixed_window"', match=f'{{ path = "/{bodies}" }}',
                    cost=f'{{ bytes = "{bodies}", per = 1000{more} }}')
    return rule(bodies, f"{LIMIT}/3000day", **{**settings, **keys})


def serves(whole):
    """Returns a reply function that sends the response `whole`. To a HEAD request it sends only the head of the response."""
    def reply(exchange):
        exchange.read_body()
        exchange.send(whole[:whole.index(b"\r\n\r\n") + 4] if exchange.method == "HEAD" else whole)
    return reply


class ByteCosts(SettledTestCase):
    def spent(self, ask, bodies):
        """Returns what the rule has charged. `ask`: sends a request. An answer to HEAD has no body, so it costs nothing."""
        response = ask(Ask(f"/{bodies}", "HEAD"))
        self.assertEqual(response.status, 200)
        return LIMIT - int(response["x-ratelimit-remaining"]) - 1  # 1: the reserve of this request

    def spends(self, weir, bodies, cost):
        with Client(weir.port) as client:
            eventually(lambda: self.spent(lambda ask: client.request(ask.method, ask.path), bodies) == cost, f"{bodies} costs {cost}")


class OfWholeBodies(ByteCosts):
    def test_body_bytes_are_charged_before_the_client_gets_the_end_of_the_answer(self):
        for whole in (answer(b"x" * 67_890), answer(chunked(b"x" * 67_890), headers="Transfer-Encoding: chunked\r\n", length=False)):
            self.upstream.reply = serves(whole)
            for size in (12_345, 0):
                asks = [each for bodies in BODIES for each in (
                    Ask(f"/{bodies}", "POST", body=b"y" * size), Ask(f"/{bodies}", "HEAD"))]
                with self.subTest(size=size):
                    told = self.same(self.pair(*map(bytes_rule, BODIES)), asks)
                    left = [LIMIT - int(each["x-ratelimit-remaining"]) for each in told]
                    # Charged after the POST: its reserve. Charged after the HEAD: the cost of the POST and the reserve of the HEAD.
                    reserve, request, both = (13, 13, 81) if size else (1, 0, 68)
                    self.assertEqual(left, [1, 69, reserve, request + 1, reserve, both + 1])

    def test_answers_without_a_body_cost_nothing(self):
        known = answer(b"", status="304 Not Modified", headers="Content-Length: 5000\r\n", length=False)
        whole = serves(answer(b"x" * 5000))
        self.upstream.reply = lambda exchange: exchange.send(known) if "if-none-match" in exchange.head else whole(exchange)
        pair = self.pair(bytes_rule("response"))
        told = self.same(pair, [Ask("/response", "HEAD"), Ask("/response", fields={"if_none_match": '"a"'}), Ask("/response", "HEAD")])
        self.assertEqual([each["x-ratelimit-remaining"] for each in told], [str(LIMIT - 1)] * 3)
        for weir in pair:
            self.await_settled(weir, "response", refunded=3)

    def test_answers_whose_status_is_not_charged_cost_nothing(self):
        self.upstream.reply = answer(b"x" * 5000, status="404 Not Found")
        pair = self.pair(bytes_rule("both", charge='{ status = "2xx" }'))
        told = self.same(pair, [Ask("/both", "POST", body=b"y" * 3000)] * 2)
        self.assertEqual([each["x-ratelimit-remaining"] for each in told], [str(LIMIT)] * 2)

    def test_error_response_of_weir_itself_costs_no_bytes(self):
        def reply(exchange):
            exchange.read_body()
            exchange.close()

        for charge in ({}, {"charge": '{ status = "2xx" }'}):
            with self.subTest(**charge):
                weir = self.start(Weir(self.text(doors=[False], rules="".join(bytes_rule(bodies, **charge) for bodies in BODIES)), self.files))
                for bodies, cost in (("response", 0), ("request", 3), ("both", 3)):
                    self.upstream.reply = reply
                    with Client(weir.port) as client:
                        self.assertEqual(client.request("POST", f"/{bodies}", body=b"y" * 3000).status, 502)
                    self.upstream.reply = serves(answer(b""))
                    self.spends(weir, bodies, cost)

    def test_request_whose_length_exceeds_the_remaining_units_is_refused(self):
        keys = dict(key="[]", algorithm='"fixed_window"', cost='{ bytes = "request", per = 1000 }')
        told = self.same(self.pair(rule("request", "20/3000day", **keys)), [
            Ask("/", "POST", body=b"y" * 15_000), Ask("/", "POST", body=b"y" * 5_001), Ask("/", "POST", body=b"y" * 5_000)])
        self.assertEqual([(each.status, each["x-ratelimit-remaining"]) for each in told], [(200, "5"), (429, "5"), (200, "0")])

    def test_chunked_upload_reserves_the_configured_units_and_then_owes_what_exceeds_them(self):
        for reserve, statuses in (("", [200, 200]), (", reserve = 15", [200, 429])):
            go = threading.Event()
            self.addCleanup(go.set)

            def reply(exchange, go=go):
                exchange.read_body()
                go.wait(PATIENCE)
                exchange.send(answer(b""))

            self.upstream.reply = reply
            weir = self.plain_weir(rule("request", "20/3000day", key="[]", algorithm='"fixed_window"',
                                        cost=f'{{ bytes = "request", per = 1000{reserve} }}'))
            upload = request_bytes("POST", "/", {"Transfer-Encoding": "chunked"}) + chunked(b"y" * 15_000)
            with self.subTest(reserve=reserve), weir.connect() as first, weir.connect() as second:
                seen = len(self.upstream.exchanges)
                first.send(upload)
                eventually(lambda: len(self.upstream.exchanges) == seen + 1, "the first upload is forwarded")  # noqa: B023
                second.send(upload)
                if statuses[1] == 200:
                    eventually(lambda: len(self.upstream.exchanges) == seen + 2, "so is the second one")  # noqa: B023
                    go.set()
                self.assertEqual(second.read().status, statuses[1])
                go.set()
                self.assertEqual(first.read().status, statuses[0])
                self.assertEqual(first.request("POST", "/", body=b"y" * 6000).status, 429, "more than what is left")

    def test_answer_larger_than_the_remaining_units_is_sent_and_the_excess_is_owed(self):
        self.upstream.reply = answer(b"x" * 50_000)
        keys = dict(key="[]", algorithm='"fixed_window"', cost='{ bytes = "response", per = 1000 }')
        told = self.same(self.pair(rule("response", "20/3000day", **keys)), [Ask(), Ask()])
        self.assertEqual([each.status for each in told], [200, 429])

    def test_request_that_is_sent_to_a_second_server_is_charged_once(self):
        busy = self.start(Upstream(serves(answer(b"x" * 9000, status="503 Busy"))))
        self.upstream.reply = serves(answer(b"x" * 2000))
        settings = 'retry = { on = ["503"], backoff = "0ms", budget = "100%" }\neject = { failures = 1000 }'
        servers = self.text(doors=[False], rules=bytes_rule("both"), upstream=settings).replace(
            f"127.0.0.1:{self.upstream.port}", f'127.0.0.1:{busy.port}", "127.0.0.1:{self.upstream.port}')
        weir = self.start(Weir(servers, self.files))
        with Client(weir.port) as client:
            for _ in range(4):
                self.assertEqual(client.request("PUT", "/both", body=b"y" * 3000).status, 200)
        self.assertTrue(busy.exchanges)
        self.spends(weir, "both", 20)


class IncompleteBodies(ByteCosts):
    """The server sends 50,000 octets of its answer, or receives 50,000 octets of the request. Then the client leaves."""

    def test_client_that_leaves_is_charged_the_octets_that_weir_sent(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def reply(exchange):
            if exchange.method == "HEAD":
                return exchange.send(answer(b""))
            exchange.send(answer(b"x" * 200_000)[:-150_000])
            go.wait(PATIENCE)
            exchange.wait_for_close()

        self.upstream.reply = reply
        for way in ("http/1.1", "reset", "h2"):
            with self.subTest(way):
                weir = self.plain_weir(bytes_rule("response"))
                if way == "http/1.1":
                    client = self.start(weir.connect())
                    client.send(request_bytes("GET", "/response"))
                    client.wire.read_until(b"\r\n\r\n")
                    client.wire.read_exactly(50_000)
                    client.leave()
                else:
                    client = self.client(weir)
                    stream = client.open(path="/response")
                    client.wait(lambda: client.answers[stream].size >= 50_000)  # noqa: B023
                    client.reset(stream) if way == "reset" else client.sock.close()
                self.await_settled(weir, "response", debt=1)
                self.spends(weir, "response", 50)

    def test_client_that_leaves_during_its_upload_is_charged_the_octets_received(self):
        arrived = threading.Semaphore(0)

        def reply(exchange):
            if exchange.method == "HEAD":
                return exchange.send(answer(b""))
            exchange.wire.read_exactly(50_000)
            arrived.release()
            exchange.wait_for_close()

        self.upstream.reply = reply
        for way in ("http/1.1", "reset"):
            with self.subTest(way):
                weir = self.plain_weir(bytes_rule("both"))
                if way == "http/1.1":
                    client = self.start(weir.connect())
                    client.send(request_bytes("POST", "/both", {"Content-Length": "200000"}) + b"y" * 50_000)
                else:
                    client = self.client(weir)
                    stream = client.open("POST", "/both", [("content-length", "200000")], end=False)
                    client.send_body(stream, b"y" * 50_000, end=False)
                self.assertTrue(arrived.acquire(timeout=PATIENCE))
                client.leave() if way == "http/1.1" else client.reset(stream)
                self.await_settled(weir, "both", surplus=1)
                self.spends(weir, "both", 50)

    def test_websocket_is_charged_the_octets_of_both_directions_at_its_end(self):
        def reply(exchange):
            if exchange.method == "HEAD":
                return exchange.send(answer(b""))
            exchange.send(SWITCH)
            exchange.wire.read_exactly(5000)
            exchange.send(b"x" * 7001)
            exchange.wait_for_close()

        self.upstream.reply = reply
        weir = self.plain_weir(bytes_rule("both"))
        client = self.start(weir.connect())
        client.send(request_bytes("GET", "/both", ASK))
        self.assertEqual(client.read().status, 101)
        client.send(b"y" * 5000)
        client.wire.read_exactly(7001)
        self.spends(weir, "both", 1)  # the open WebSocket is charged only its reserve
        client.leave()
        self.await_settled(weir, "both", debt=1, refunded=1)
        self.spends(weir, "both", 13)


class InRedis(ByteCosts):
    def test_bytes_are_charged_in_redis(self):
        redis = self.start(Redis())
        self.upstream.reply = serves(answer(b"x" * 67_890))
        weir = self.plain_weir(*(bytes_rule(bodies, store='"redis"') for bodies in BODIES),
                               state=f'redis = {{ url = "{redis.url}", timeout = "10s" }}')
        eventually(weir.is_ready, "weir is connected to Redis")
        with Client(weir.port) as old:
            new = self.client(weir)
            for bodies in BODIES:
                self.assertEqual(old.request("POST", f"/{bodies}", body=b"y" * 12_345).status, 200)
                self.assertEqual(new.request("POST", f"/{bodies}", [("content-length", "12345")], b"y" * 12_345).status, 200)
        for bodies, cost in zip(BODIES, (136, 26, 162)):
            self.spends(weir, bodies, cost)


if __name__ == "__main__":
    main()
