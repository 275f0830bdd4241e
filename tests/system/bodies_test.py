#!/usr/bin/env python3
"""Rules that read request bodies: costs in a JSON member, and bodies with listed words. weir forwards the body unchanged."""

import contextlib
import select
import socket
import threading
import time

from harness import PATIENCE, Client, Redis, TestCase, Upstream, Weir, answer, chunked, config, eventually, main, request_bytes, rule

HEAD = b"POST /messages HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def risky(**more):
    return rule("risky", "1/day", key="[]", match='{ path = "/messages", body_contains = ["wire transfer", "Free"] }', **more)


class BodiesTestCase(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, *rules, **more):
        return self.start(Weir(config(self.upstream.port, rules="\n".join(rules), **more)))

    def post(self, weir, body, path="/messages", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        with weir.connect() as client:
            return client.request("POST", path, headers, body)

    def sent(self):
        return [exchange.body for exchange in self.upstream.exchanges]


class RefusalsByTheHead(BodiesTestCase):
    """A rule that needs no body refuses the request before the client sends the body."""

    def ask(self, weir, fields=""):
        """Sends the head of a request, but no body. Returns the response."""
        with weir.connect() as client:
            client.send(HEAD + fields.encode() + b"Content-Length: 50000\r\n\r\n")
            return client.read()

    def test_refusal_by_a_rule_without_body_conditions_does_not_wait_for_the_body(self):
        weir = self.weir(rule("few", "2/day", key='["ip"]'), rule("strict", key='["header:X-Who"]', on_missing='"reject"'), risky())
        with weir.connect() as client:
            left = client.request("POST", "/messages", {"X-Who": "me"}, b"x")["x-ratelimit-remaining"]
        self.assert_own_error(self.ask(weir), 400)
        refused = self.ask(weir, "X-Who: me\r\n")
        self.assertEqual((left, refused.status, refused.json()["rule"]), ("0", 429, "strict"))
        self.assertEqual(self.ask(weir, "X-Who: me\r\nExpect: 100-continue\r\n").status, 429)
        self.await_metric(weir, 2, "weir_decisions_total", rule="strict", outcome="refused")
        self.assertEqual(weir.metric("weir_decisions_total", rule="few", outcome="refused"), 0)
        self.assertEqual(self.post(weir, b"x", X_Who="you").status, 200, "the rejected requests charged nothing")
        self.assertEqual(self.post(weir, b"x", X_Who="they").json()["rule"], "few")

    def test_cached_refusal_of_redis_does_not_wait_for_the_body(self):
        redis = self.start(Redis())
        weir = self.weir(rule("shared", "1/day", key='["ip"]', store='"redis"'), risky(),
                         state=f'redis = {{ url = "{redis.url}" }}\nkey_secret = "0123456789abcdef"')
        eventually(weir.is_ready, "weir is ready")
        self.assertEqual([self.post(weir, b"x").status for _ in range(2)], [200, 429])
        with weir.connect() as client:  # the connection may belong to the other worker, which has not cached the refusal
            client.send(HEAD + b"Content-Length: 1\r\n\r\n")
            client.send(b"x")
            self.assertEqual(client.read().status, 429)
            client.send(HEAD + b"Content-Length: 50000\r\n\r\n")
            self.assertEqual(client.read().status, 429)

    def test_refusal_by_a_full_queue_waits_for_the_body(self):
        weir = self.weir(rule("queue", "1/h", algorithm='"leaky_bucket"', queue=1, key="[]"), risky())
        self.assertEqual(self.post(weir, b"x").status, 200)
        with weir.connect() as waiting, weir.connect() as late:
            waiting.send(HEAD + b"Content-Length: 1\r\n\r\nx")
            self.await_metric(weir, 1, "weir_queue_depth")
            late.send(HEAD + b"Content-Length: 2\r\n\r\n")
            late.send(b"xx")
            self.assertEqual(late.read().status, 429)


class CostsInBodies(BodiesTestCase):
    def spending(self, cost='{ json = "/amount" }', **more):
        return self.weir(rule("spending", "15/day", key="[]", cost=cost, match='{ path = "/pay" }', **more))

    def pay(self, weir, body, **headers):
        return self.post(weir, body, "/pay", **headers)

    def test_cost_in_the_body_is_charged(self):
        weir = self.spending()
        with weir.connect() as client:
            answers = [client.request("POST", "/pay", body=b'{"amount": %d}' % amount) for amount in (10, 6, 5, 1)]
        self.assertEqual([answer.status for answer in answers], [200, 429, 200, 429])
        self.assertEqual([answer["x-ratelimit-remaining"] for answer in answers], ["5", "5", "0", "0"])
        self.assertEqual(self.sent(), [b'{"amount": 10}', b'{"amount": 5}'])

    def test_decimal_amounts_in_the_body_are_scaled_to_cents(self):
        weir = self.spending('{ json = "/order/total", scale = 100, default = 5 }', burst=2000)
        self.assertEqual(self.pay(weir, b'{"order": {"total": 12.345}}')["x-ratelimit-remaining"], "765")
        self.assertEqual(self.pay(weir, b'{"order": {"total": "7.00"}}')["x-ratelimit-remaining"], "65")
        self.assertEqual(self.pay(weir, b'{"order": {}}')["x-ratelimit-remaining"], "60", "a body without a cost is charged the default")
        self.assertEqual(self.pay(weir, b"")["x-ratelimit-remaining"], "55", "a request without a body is charged the default")

    def test_whole_number_costs_the_same_in_every_json_notation(self):
        weir = self.spending(burst=2000)
        spent, left = [], 2000
        for amount in ("5", "5.0", "5e0", '"5"', '"5.0"', "50e-1", "0.5E1", '"1e3"'):
            left_before, left = left, int(self.pay(weir, b'{"amount": %s}' % amount.encode())["x-ratelimit-remaining"])
            spent.append(left_before - left)
        self.assertEqual(spent, [5] * 7 + [1000])
        for amount in ("5.5", '"5.5"', "1e-3", '"1e"', '"0x5"', '" 5"'):
            self.assert_own_error(self.pay(weir, b'{"amount": %s}' % amount.encode()), 400)

    def test_body_without_a_valid_cost_gets_400_and_is_not_charged(self):
        weir = self.spending()
        for faulty in (b"amount=1", b'{"amount": 0}', b'{"amount": -5}', b'{"amount": 1.5}', b'{"amount": 1, "amount": 9}',
                       b'{"amount": null}', b'{"amount": 1', b'\xef\xbb\xbf{"amount": 1}', b'{"amount": 1e999}'):
            with self.subTest(faulty):
                refused = self.pay(weir, faulty)
                self.assert_own_error(refused, 400)
                self.assertIn("json /amount", refused.json()["message"])
        self.assertEqual(self.pay(weir, b'{"amount": 15}').status, 200)
        self.assertEqual(len(self.sent()), 1)

    def test_client_cannot_evade_a_cost_in_the_body_by_padding_or_content_coding(self):
        weir = self.spending('{ json = "/amount", max_body = 100 }')
        head = b"POST /pay HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        padded = b'{"amount": 1}' + b" " * 88
        with weir.connect() as client:
            for request in (request_bytes("POST", "/pay", body=padded), head + chunked(padded, 7)):
                client.send(request)
                refused = client.read()
                self.assert_own_error(refused, 413)
                self.assertIn("the request body is longer than the 100 bytes that rule spending reads", refused.json()["message"])
            self.assertEqual(client.request("POST", "/pay", body=padded[:100]).status, 200, "the connection stays open")
        coded = self.pay(weir, b'{"amount": 1}', content_encoding="gzip")
        self.assert_own_error(coded, 415)
        self.assertEqual(coded["accept-encoding"], "identity")
        self.assertEqual(self.pay(weir, b'{"amount": 1}', content_encoding="identity").status, 200)
        self.assertEqual(len(self.sent()), 2)

    def test_cost_in_the_body_works_in_redis_together_with_another_rule(self):
        redis = self.start(Redis())
        weir = self.weir(rule("spending", "15/day", key="[]", cost='{ json = "/amount" }', store='"redis"'),
                         rule("count", "2/day", key="[]"), state=f'redis = {{ url = "{redis.url}", timeout = "5s" }}')
        self.assertEqual([self.pay(weir, b'{"amount": %d}' % amount).status for amount in (14, 2, 1, 1)], [200, 429, 200, 429])


class WordsInBodies(BodiesTestCase):
    def test_messages_with_listed_words_are_limited_to_one_a_day(self):
        weir = self.weir(risky())
        with weir.connect() as client:
            bodies = (b"hello", b"a WIRE Transfer please", b"hello again", b'{"text": "fr\\u0065e"}', b"t=wire+tr%61nsfer", b"fre e")
            statuses = [client.request("POST", "/messages", body=body).status for body in bodies]
        self.assertEqual(statuses, [200, 200, 200, 429, 429, 200])
        self.assertEqual(self.sent(), [b"hello", b"a WIRE Transfer please", b"hello again", b"fre e"])

    def test_word_in_a_body_that_arrives_in_pieces_is_found(self):
        weir = self.weir(risky())
        for expected in (200, 429):
            with weir.connect() as client:
                client.send(CHUNKED)
                for piece in (b"4\r\nwir", b"e\r\n", b"4;x=y\r\n tra", b"\r\n8\r\nnsfer it\r\n0\r\nTrailer: x\r\n", b"\r\n"):
                    client.send(piece)
                self.assertEqual(client.read().status, expected)
        self.assertEqual(self.sent(), [b"wire transfer it"])

    def test_condition_on_words_in_the_body_applies_inside_not_and_in_overrides(self):
        friendly = '{ path = "/messages", not = { body_contains = "please" } }'
        overrides = '[{ match = { body_contains = "urgent" }, limit = "1/day" }]'
        weir = self.weir(rule("impolite", "2/day", key="[]", match=friendly, overrides=overrides))
        self.assertEqual([self.post(weir, body).status for body in (b"now", b"now", b"now", b"now please", b"urgent", b"urgent")],
                         [200, 200, 429, 200, 200, 429])
        self.assert_own_error(self.post(weir, b"now please" + b"x" * 66_000), 413)

    def test_client_cannot_evade_a_rule_by_a_body_longer_than_max_body(self):
        weir = self.weir(risky())
        body = b"x" * (64 << 10) + b"free"
        self.assert_own_error(self.post(weir, body), 413)
        with Client(weir.port) as client, contextlib.suppress(ConnectionError):
            client.send(CHUNKED + chunked(body))
            self.assert_own_error(client.read(), 413)
        self.assertEqual(self.sent(), [])

    def test_shadow_rule_on_bodies_refuses_nothing_and_changes_no_body(self):
        weir = self.weir(risky(mode='"shadow"'))
        bodies = [b"free", b"free again", b"x" * 300_000 + b"free"]
        self.assertEqual([self.post(weir, body).status for body in bodies], [200] * 3)
        self.assertEqual(exchange_chunked(weir, bodies[2]).status, 200)
        self.assertEqual(self.post(weir, b"free", content_encoding="gzip").status, 200)
        self.assertEqual(self.sent(), [*bodies, bodies[2], b"free"])
        self.await_metric(weir, 1, "weir_decisions_total", rule="risky", outcome="shadow_refused")

    def test_upstream_receives_the_inspected_body_unchanged(self):
        weir = self.weir(rule("words", "100/s", key="[]", match='{ body_contains = "never", max_body = "1MiB" }'))
        body = bytes(range(256)) * 3000
        with weir.connect() as client:
            for size in (0, 1, 100, 5000, 40_000, len(body)):
                self.assertEqual(client.request("PUT", "/", body=body[:size]).status, 200)
                client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body[:size], 997))
                self.assertEqual(client.read().status, 200)
                self.assertEqual(self.sent()[-2:], [body[:size]] * 2, size)

    def test_bytes_after_an_inspected_body_are_the_next_request(self):
        weir = self.weir(risky())
        with weir.connect() as client:
            client.send(CHUNKED + chunked(b"free") + request_bytes("POST", "/messages", body=b"free too")
                        + request_bytes("POST", "/messages", body=b"dear") + request_bytes("GET", "/messages"))
            self.assertEqual([client.read().status for _ in range(4)], [200, 429, 200, 200])
        self.assertEqual(self.sent(), [b"free", b"dear", b""])


    def test_connection_stays_open_after_a_refusal_with_a_complete_body(self):
        weir = self.weir(rule("words", "1/day", key="[]", match='{ body_contains = "free", max_body = "1MiB" }'))
        with weir.connect() as client:
            self.assertEqual([client.request("POST", "/", body=b"free" + b"x" * 300_000).status for _ in range(3)], [200, 429, 429])
            self.assertEqual(client.get("/").status, 200)


def exchange_chunked(weir, body):
    with weir.connect() as client:
        client.send(CHUNKED + chunked(body))
        return client.read()


class WaitingForBodies(BodiesTestCase):
    def test_weir_does_not_wait_for_a_body_that_no_rule_reads(self):
        reached = threading.Event()

        def reply(exchange):
            reached.set()
            exchange.read_body()
            exchange.send(answer(b"ok"))
        self.upstream.reply = reply
        weir = self.weir(risky())
        with weir.connect() as client:
            client.send(b"POST /uploads HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nfr")
            self.assertTrue(reached.wait(PATIENCE), "the head is forwarded while the body still arrives")
            client.send(b"ee")
            self.assertEqual(client.read().status, 200)
            reached.clear()
            client.send(HEAD + b"Content-Length: 4\r\n\r\nfr")
            self.assertFalse(reached.wait(0.3))
            client.send(b"ee")
            self.assertEqual(client.read().status, 200)

    def test_body_that_stops_arriving_gets_408(self):
        weir = self.weir(risky(), server='body_timeout = "300ms"')
        for start in (HEAD + b"Content-Length: 40\r\n\r\nfree", CHUNKED + b"4\r\nfree\r\n"):
            with weir.connect() as client:
                client.send(start)
                self.assert_own_error(client.read(), 408)
                self.assertTrue(client.closed())
        self.assertEqual(self.upstream.exchanges, [])
        self.await_metric(weir, 2, "weir_client_errors_total", kind="body_timeout")
        self.assertEqual(self.post(weir, b"free").status, 200, "nothing was charged")

    def test_limits_are_charged_only_when_the_body_is_complete(self):
        weir = self.weir(rule("risky", "1/2s", key="[]", match='{ path = "/messages", body_contains = "free" }'))
        self.assertEqual(self.post(weir, b"free").status, 200)
        with weir.connect() as client:
            client.send(HEAD + b"Content-Length: 4\r\n\r\nfr")
            refused = self.post(weir, b"free")
            time.sleep(int(refused["retry-after"]))  # Retry-After promises that weir admits a request after this time
            client.send(b"ee")
            self.assertEqual((refused.status, client.read().status), (429, 200))

    def test_malformed_chunked_body_gets_400(self):
        weir = self.weir(risky())
        with weir.connect() as client:
            client.send(CHUNKED + b"4\r\nfreeX")
            self.assert_own_error(client.read(), 400)
            self.assertTrue(client.closed())
        self.assertEqual(self.upstream.exchanges, [])

    def test_body_above_max_body_of_the_server_gets_413(self):
        weir = self.weir(risky(), server='max_body = "1KiB"')
        self.assert_own_error(exchange_chunked(weir, b"x" * 1025), 413)
        self.assertEqual(exchange_chunked(weir, b"x" * 1024).status, 200)

    def test_body_that_ends_early_is_not_charged(self):
        weir = self.weir(risky())
        begun, received = HEAD + b"Content-Length: 40\r\n\r\nfree", 0
        for leave in (Client.leave, lambda client: client.sock.shutdown(socket.SHUT_RDWR)):
            received += len(begun)
            with weir.connect() as client:
                client.send(begun)
                self.await_metric(weir, received, "weir_received_bytes_total")
                leave(client)
        self.await_metric(weir, 1, "weir_client_errors_total", kind="left")  # a half-closed client would get an error response
        self.await_metric(weir, 0, "weir_connections_open")
        self.assertEqual(self.upstream.exchanges, [])
        self.assertEqual(self.post(weir, b"free").status, 200)

    def test_weir_sends_100_continue_if_a_rule_reads_the_body(self):
        weir = self.weir(risky())
        expecting = b"Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        with weir.connect() as client:
            for expected in (200, 429):
                client.send(HEAD + expecting)
                self.assertEqual(client.read().status, 100)
                client.send(b"free")
                self.assertEqual(client.read().status, expected)
            client.send(HEAD + expecting + b"dear")
            self.assertEqual(client.read().status, 200, "no 100 Continue is sent if the body is already there")
        self.assertEqual(self.sent(), [b"free", b"dear"])
        self.assertNotIn("expect", self.upstream.exchanges[0].head)

    def test_client_gets_100_continue_from_the_upstream_if_no_rule_reads_the_body(self):
        def reply(exchange):
            exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            exchange.read_body()
            exchange.send(answer(b"ok"))
        self.upstream.reply = reply
        with self.weir(risky()).connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
            self.assertEqual(client.read().status, 100)
            client.send(b"free")
            self.assertEqual(client.read().status, 200)
        self.assertIn("expect", self.upstream.exchanges[0].head)

    def test_no_100_continue_is_sent_for_a_body_that_is_too_long(self):
        with self.weir(risky()).connect() as client:
            client.send(HEAD + b"Content-Length: 65537\r\nExpect: 100-continue\r\n\r\n")
            self.assert_own_error(client.read(), 413)


class BodiesBeforeForwarding(TestCase):
    """Tests bodies that weir has received completely, and that are larger than a server reads at once."""

    BODY = bytes(range(256)) * (32 << 10)  # 8 MiB
    WORDS = rule("words", "100/s", key="[]", match='{ body_contains = "never", max_body = "16MiB" }')

    def setUp(self):
        self.over = threading.Event()
        self.addCleanup(self.over.set)

    def upstreams(self, *replies):
        def takes_little(sock):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        return [self.start(Upstream(reply, ahead=takes_little)) for reply in replies]

    def weir(self, *upstreams, timeouts='response = "60s"', more=""):
        return self.start(Weir(config(*(each.port for each in upstreams), rules=self.WORDS,
                                      upstream=f'balance = "round_robin"\ntimeouts = {{ {timeouts} }}\n{more}')))

    def reads_no_more(self, exchange, *said):
        for each in said:
            exchange.send(each)
        self.over.wait(4 * PATIENCE)

    def full(self, exchange):
        self.reads_no_more(exchange, answer(b"big", "413 Too Large"))

    def test_early_response_reaches_the_client_and_the_body_is_not_sent_to_another_server(self):
        upstreams = self.upstreams(self.full, self.full)
        weir = self.weir(*upstreams, more='retry = { budget = "100%" }')
        for number, method in enumerate(("POST", "PUT"), 1):
            with weir.connect() as client:
                answered = client.request(method, "/", body=self.BODY)
                self.assertEqual((answered.status, answered.body), (413, b"big"))
                self.assertEqual(sum(len(each.exchanges) for each in upstreams), number)
        self.await_metric(weir, 0, "weir_upstream_failures_total")

    def test_weir_notices_that_a_client_leaves_while_its_body_is_sent(self):
        upstream, = self.upstreams(self.reads_no_more)
        weir = self.weir(upstream)
        with weir.connect() as client:
            client.send(request_bytes("POST", "/", body=self.BODY))
            eventually(lambda: upstream.exchanges, "a server has the request")
            client.leave()
        self.await_metric(weir, 0, "weir_connections_open")
        self.await_metric(weir, 1, "weir_client_errors_total", kind="left")

    def test_response_timeout_starts_after_a_slow_server_has_read_the_body(self):
        def slowly(exchange):
            for _ in range(16):
                time.sleep(0.1)
                exchange.body = (exchange.body or b"") + exchange.wire.read_exactly(len(self.BODY) // 16)
            exchange.send(answer(b"taken"))

        upstream, = self.upstreams(slowly)
        with self.weir(upstream, timeouts='response = "1s"').connect() as client:
            self.assertEqual(client.request("POST", "/", body=self.BODY).body, b"taken")
        self.assertTrue(upstream.exchanges[0].body == self.BODY)

    def test_server_that_stops_reading_the_body_times_out_with_504(self):
        for timeouts in ('response = "300ms"', 'response = "60s", total = "300ms"'):
            with self.weir(*self.upstreams(self.reads_no_more), timeouts=timeouts).connect() as client:
                self.assert_own_error(client.request("PUT", "/", body=self.BODY), 504)

    def test_whole_body_is_sent_to_another_server_after_a_failure(self):
        def dies(exchange):
            exchange.wire.read_exactly(100_000)
            exchange.close()

        def busy(exchange):
            self.reads_no_more(exchange, answer(b"busy", "503 Busy"))

        for bad in (dies, busy):
            faulty, good = self.upstreams(bad, answer(b"good"))
            weir = self.weir(faulty, good, more='retry = { on = ["broken", "503"] }\neject = { failures = 1000 }')
            with weir.connect() as client:
                for number in (1, 2, 3):
                    self.assertEqual(client.request("PUT", "/", body=self.BODY).body, b"good")
                    self.assertTrue(good.exchanges[-1].body == self.BODY)
                    self.assertEqual(len(good.exchanges), number)
            self.assertGreaterEqual(len(faulty.exchanges), 1)


class BodyMemory(BodiesTestCase):
    """All connections share one memory bound for the bodies that rules read."""

    def begin(self, weir, size, announced=100_000):
        """Returns a client that has sent part of its body."""
        client = self.start(weir.connect())
        client.send(HEAD + b"Content-Length: %d\r\n\r\n" % announced + b"x" * size)
        return client

    def weir(self, *rules, **more):
        words = rule("risky", "1000/day", key="[]", match='{ path = "/messages", body_contains = ["wire transfer"], max_body = "1MiB" }')
        return super().weir(*(rules or [words]), server='max_body_memory = "256KiB"', **more)

    def test_request_with_a_body_gets_503_if_the_body_memory_is_full(self):
        weir = self.weir()
        first = self.begin(weir, 90_000)
        eventually(lambda: weir.metric("weir_body_memory_bytes") >= 90_000, "the first body is read")
        others = [self.begin(weir, 90_000) for _ in range(4)]
        eventually(lambda: weir.metric("weir_body_memory_refused_total") >= 1, "a body is refused memory")
        self.assertLessEqual(weir.metric("weir_body_memory_bytes"), 256 << 10)
        by_socket = {client.sock: client for client in others}
        answered, _, _ = select.select(by_socket, [], [], PATIENCE)  # weir read the bodies in an order of its own
        self.assert_own_error(by_socket[answered[0]].read(), 503)
        first.send(b"x" * 10_000)
        self.assertEqual(first.read().status, 200, "the body in memory is not affected")

    def test_body_memory_is_released_after_each_request(self):
        weir = self.weir()
        for _ in range(8):
            self.assertEqual(self.post(weir, b"x" * 100_000).status, 200)
            eventually(lambda: weir.metric("weir_body_memory_bytes") == 0, "no memory is held")
        self.begin(weir, 90_000).leave()
        eventually(lambda: weir.metric("weir_body_memory_bytes") == 0, "no memory is held for a client that left")

    def test_body_as_large_as_the_whole_body_memory_is_read(self):
        weir = self.weir()
        for size in (200_000, 250_000, 256 << 10):
            client = self.begin(weir, size - 10_000, announced=size)
            eventually(lambda: weir.metric("weir_body_memory_bytes") >= size - 10_000, "the body is read")
            client.send(b"x" * 10_000)
            self.assertEqual(client.read().status, 200)
        self.assertEqual(weir.metric("weir_body_memory_refused_total"), 0)

    def test_body_larger_than_the_whole_body_memory_gets_413(self):
        """The body can never fit into the memory, so 503 and a retry would be wrong."""
        weir = self.weir()
        whole = self.post(weir, b"x" * ((256 << 10) + 1))
        with weir.connect() as client:
            client.send(CHUNKED + chunked(b"x" * 300_000))
            in_chunks = client.read()
        for refused in (whole, in_chunks):
            self.assertEqual(refused.status, 413)
            self.assertIn(b"the request body is longer than max_body_memory", refused.body)
        self.assertEqual(weir.metric("weir_body_memory_refused_total"), 2)

    def test_body_that_only_a_shadow_rule_reads_is_forwarded_if_the_body_memory_is_full(self):
        words = rule("risky", "1000/day", key="[]", mode='"shadow"',
                     match='{ path = "/messages", body_contains = ["wire transfer"], max_body = "1MiB" }')
        weir = self.weir(words)
        body = bytes(range(256)) * 1200  # 300 KiB
        self.assertEqual(self.post(weir, body).status, 200)
        self.assertTrue(self.upstream.exchanges[-1].body == body)
        with weir.connect() as client:
            client.send(CHUNKED + chunked(body))
            self.assertEqual(client.read().status, 200)
        self.assertTrue(self.upstream.exchanges[-1].body == body)
        self.assertEqual(weir.metric("weir_body_memory_refused_total"), 2)
        first = self.begin(weir, 190_000, announced=200_000)
        eventually(lambda: weir.metric("weir_body_memory_bytes") >= 190_000, "the bodies are read")
        with weir.connect() as client:
            client.send(CHUNKED + chunked(body[:200_000]))
            self.assertEqual(client.read().status, 200, "the memory is full, and no request gets 503")
        self.assertTrue(self.upstream.exchanges[-1].body == body[:200_000])
        self.assertEqual(weir.metric("weir_body_memory_refused_total"), 3)
        first.send(b"x" * 10_000)
        self.assertEqual(first.read().status, 200)

    def test_body_memory_is_released_as_soon_as_the_body_was_forwarded(self):
        """The response or a tunnel may last long after the body. weir must not keep the body in memory meanwhile."""
        goes_on = threading.Event()
        self.addCleanup(goes_on.set)
        for half in (b"", answer(b"x" * 10)[:-5]):
            got = threading.Semaphore(0)

            def reply(exchange):
                exchange.read_body()
                if half:
                    exchange.send(half)
                got.release()
                goes_on.wait(PATIENCE)

            self.upstream.reply = reply
            weir = self.weir()
            client = self.begin(weir, 90_000)
            eventually(lambda: weir.metric("weir_body_memory_bytes") >= 90_000, "the first body is read")
            client.send(b"x" * 10_000)
            self.assertTrue(got.acquire(timeout=PATIENCE))
            eventually(lambda: weir.metric("weir_body_memory_bytes") == 0, f"the server has it, and has answered {half}")

    def test_request_whose_body_no_rule_reads_needs_no_body_memory(self):
        weir = self.weir()
        with weir.connect() as client:
            self.assertEqual(client.request("POST", "/other", {}, b"x" * 500_000).status, 200)
        self.assertEqual(weir.metric("weir_body_memory_refused_total"), 0)

    def test_response_is_charged_the_reserved_cost_if_no_body_memory_is_free(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(b'{"n": 3, "text": "' + b"x" * 300_000 + b'"}'))
        tokens = rule("tokens", "100/day", key="[]", cost='{ response_json = "/n", reserve = 10, max_body = "1MiB" }')
        weir = self.weir(tokens)
        self.assertEqual(weir.get("/").status, 200)
        self.await_metric(weir, 1, "weir_settlements_total", rule="tokens", outcome="unreadable")
        self.assertEqual(weir.metric("weir_body_memory_refused_total"), 1)


if __name__ == "__main__":
    main()
