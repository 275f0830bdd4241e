#!/usr/bin/env python3
"""Settlement (the correction of charges by responses) in a running weir. A login limit counts only failures, however many logins
are tried at once. A budget is charged the cost in each response. Charges of open requests are settled, however the requests end."""

import gzip
import json
import math
import threading
import time

from harness import Client, TestCase, Upstream, Weir, answer, chunked, closed_port, config, eventually, main, request_bytes, rule, \
    together

LOGIN = dict(name="login", limit="5/day", key='["ip"]', algorithm='"sliding_log"', charge='{ status = ["401", "403"] }')
DENIED = answer(b"no", status="401 Unauthorized")


class Settlement(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, *rules, port=None, **more):
        return self.start(Weir(config(port or self.upstream.port, rules="\n".join(rules), **more)))

    def settled(self, weir, rule_name):
        """Returns how often each settlement result of the rule has occurred."""
        names = ("charged", "refunded", "surplus", "debt", "untold", "unreadable", "unanswered", "estimated", "cut")
        counts = {name: int(weir.metric("weir_settlements_total", rule=rule_name, outcome=name)) for name in names}
        return {name: count for name, count in counts.items() if count}

    def await_settled(self, weir, rule_name, **expected):
        eventually(lambda: self.settled(weir, rule_name) == expected,
                   f"{rule_name} settled {expected}, now {self.settled(weir, rule_name)}")


class ChargedByStatus(Settlement):
    def test_only_5_of_64_parallel_wrong_passwords_reach_the_upstream_with_a_limit_of_5(self):
        refused, all_refused = threading.Semaphore(0), threading.Event()

        def deny_once_all_are_in(exchange):
            exchange.read_body()
            all_refused.wait(30)
            exchange.send(DENIED)

        self.upstream.reply = deny_once_all_are_in
        weir = self.weir(rule(**LOGIN))

        def guess(number):
            with Client(weir.port) as client:
                response = client.request("POST", "/login", body=b"password=%d" % number)
            if response.status == 429:
                refused.release()
            return response

        def wait_for_the_refusals():
            for _ in range(59):
                refused.acquire(timeout=30)
            all_refused.set()

        waiter = threading.Thread(target=wait_for_the_refusals, daemon=True)
        waiter.start()
        answers = together(64, guess)
        waiter.join(30)
        self.assertEqual(len(self.upstream.exchanges), 5)
        statuses = [response.status for response in answers]
        self.assertEqual((statuses.count(401), statuses.count(429)), (5, 59))
        for response in answers:
            if response.status == 429:
                self.assertGreater(int(response["retry-after"]), 86_000)
        self.await_settled(weir, "login", charged=5)
        self.assertEqual(weir.get("/login").status, 429)

    def test_successes_that_are_not_charged_are_refunded_and_headers_show_the_refund(self):
        weir = self.weir(rule(**LOGIN))
        with weir.connect() as client:
            for _ in range(12):
                response = client.get("/login")
                self.assertEqual((response.status, response["x-ratelimit-remaining"]), (200, "5"))
            self.upstream.reply = DENIED
            self.assertEqual([client.get("/login")["x-ratelimit-remaining"] for _ in range(5)], list("43210"))
            self.upstream.reply = answer()
            self.assertEqual(client.get("/login").status, 429)
        self.await_settled(weir, "login", refunded=12, charged=5)

    def test_parallel_successes_are_refunded_completely(self):
        for algorithm in ('"sliding_log"', '"token_bucket"', '"fixed_window"', '"sliding_window"', '"gcra"'):
            with self.subTest(algorithm=algorithm):
                burst = {"burst": 63} if algorithm == '"gcra"' else {}
                weir = self.weir(rule(**{**LOGIN, "limit": "64/day", "algorithm": algorithm}, **burst))
                statuses = sum(together(16, lambda _, port=weir.port: self.statuses(port, 30)), [])
                self.assertEqual(set(statuses), {200})
                self.assertEqual(weir.get("/")["x-ratelimit-remaining"], "64")

    def test_status_classes_and_ranges_are_charged_as_configured(self):
        weir = self.weir(rule(**{**LOGIN, "charge": '{ status = ["400-403", "5xx"] }'}))
        with weir.connect() as client:
            for status, left in (("404 Not Found", 5), ("400 Bad Request", 4), ("403 Forbidden", 3), ("503 Busy", 2),
                                 ("200 OK", 2), ("302 Found", 2), ("599 Odd", 1)):
                self.upstream.reply = answer(status=status)
                self.assertEqual(client.get("/")["x-ratelimit-remaining"], str(left), status)

    def test_responses_by_weir_itself_are_charged_by_status(self):
        routes = '[[route]]\nmatch = { path = "/ping" }\nrespond = { status = 200, body = "pong" }\n' \
                 '[[route]]\nmatch = { path = "/api/*" }\nupstream = "api"'
        weir = self.weir(rule(**{**LOGIN, "charge": '{ status = ["404"] }'}), routes=routes)
        with weir.connect() as client:
            self.assertEqual([client.get(path)["x-ratelimit-remaining"] for path in ("/ping", "/ping", "/no", "/no")],
                             ["5", "5", "4", "3"])
        self.await_settled(weir, "login", refunded=2, charged=2)

    def test_client_that_leaves_before_weir_reads_the_response_is_charged(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def hesitate(exchange):
            exchange.read_body()
            go.wait(30)
            exchange.send(answer())

        self.upstream.reply = hesitate
        weir = self.weir(rule(**LOGIN), upstream='timeouts = { abandoned = "0s" }')
        client = Client(weir.port)
        client.send(request_bytes("GET", "/login"))
        eventually(lambda: len(self.upstream.exchanges) == 1, "the upstream has the request")
        client.leave()
        self.await_settled(weir, "login", unanswered=1)
        go.set()
        self.assertEqual(weir.get("/login")["x-ratelimit-remaining"], "4")

    def test_request_that_times_out_at_the_upstream_is_charged(self):
        self.upstream.reply = lambda exchange: exchange.wait_for_close()
        weir = self.weir(rule(**LOGIN), upstream='timeouts = { response = "200ms" }')
        self.assertEqual(weir.get("/login").status, 504)
        self.await_settled(weir, "login", unanswered=1)
        self.upstream.reply = answer()
        self.assertEqual(weir.get("/login")["x-ratelimit-remaining"], "4")

    def test_request_to_an_unreachable_upstream_is_not_charged(self):
        weir = self.weir(rule(**LOGIN), port=closed_port())
        self.assertEqual(self.statuses(weir.port, 12), [502] * 12)
        self.assertEqual(self.settled(weir, "login"), {})

    def test_request_that_another_rule_refuses_is_not_charged(self):
        weir = self.weir(rule(**LOGIN), rule("few", "2/day", key='["ip"]'))
        self.assertEqual(self.statuses(weir.port, 9), [200] * 2 + [429] * 7)
        self.await_settled(weir, "login", refunded=2)

    def test_charge_of_a_shadow_rule_is_corrected_like_that_of_an_enforced_rule(self):
        self.upstream.reply = DENIED
        weir = self.weir(rule(**LOGIN, mode='"shadow"'))
        self.assertEqual(self.statuses(weir.port, 8), [401] * 8)
        self.upstream.reply = answer()
        self.assertEqual(self.statuses(weir.port, 2), [200] * 2)
        self.await_settled(weir, "login", charged=5)
        self.assertEqual(weir.metric("weir_decisions_total", rule="login", outcome="shadow_refused"), 5)

    def test_request_that_also_waits_in_a_queue_is_settled_by_its_response(self):
        self.upstream.reply = DENIED
        weir = self.weir(rule(**LOGIN), rule("pace", "50/s", key="[]", algorithm='"leaky_bucket"', queue=20))
        statuses = together(12, lambda _: weir.get("/login").status)
        self.assertEqual((statuses.count(401), statuses.count(429)), (5, 7))
        self.await_settled(weir, "login", charged=5)

    def test_charge_of_an_override_is_corrected_in_its_own_counter(self):
        self.upstream.reply = DENIED
        more = {"overrides": '[{ match = { path = "/vip" }, limit = "2/day" }]'}
        weir = self.weir(rule(**LOGIN, **more))
        with weir.connect() as client:
            self.assertEqual([client.get("/vip").status for _ in range(3)], [401, 401, 429])
            self.assertEqual(client.get("/login")["x-ratelimit-remaining"], "4")


class CostOfTheAnswer(Settlement):
    TOKENS = dict(name="tokens", limit="10000/day", key='["ip"]', algorithm='"token_bucket"')

    def budget(self, cost, **more):
        return self.weir(rule(**{**self.TOKENS, **more}, cost=cost))

    def test_cost_in_a_response_header_refunds_the_unused_part_of_the_reserved_cost(self):
        self.upstream.reply = answer(headers="X-Tokens: 250\r\n")
        weir = self.budget('{ response_header = "X-Tokens", reserve = 1000 }')
        with weir.connect() as client:
            self.assertEqual([client.get("/")["x-ratelimit-remaining"] for _ in range(3)], ["9750", "9500", "9250"])
        self.await_settled(weir, "tokens", surplus=3)

    def test_cost_above_the_reserved_cost_is_owed_and_retry_after_is_exact(self):
        self.upstream.reply = answer(headers="X-Tokens: 2250\r\n")
        weir = self.budget('{ response_header = "X-Tokens", reserve = 1 }', limit="500/s", burst=800)
        with weir.connect() as client:
            began = time.monotonic()
            indebted = client.get("/")
            self.assertEqual((indebted.status, indebted["x-ratelimit-remaining"]), (200, "0"))
            refused = client.get("/")
            # The client owes 1450 units and needs one more. It regains 500 units a second, and some time has passed.
            self.assertEqual(refused.status, 429)
            self.assertIn(int(refused["retry-after"]), range(math.ceil(2.902 - (time.monotonic() - began)), 4))
            self.upstream.reply = answer(headers="X-Tokens: 0\r\n")
            time.sleep(int(refused["retry-after"]))  # Retry-After promises that weir admits a request after this time
            self.assertEqual(client.get("/").status, 200)
        self.await_settled(weir, "tokens", debt=1, refunded=1)

    def test_each_parallel_request_is_charged_its_own_reserved_cost(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def hesitate(exchange):
            exchange.read_body()
            go.wait(30)
            exchange.send(answer(headers="X-Tokens: 10\r\n"))

        self.upstream.reply = hesitate
        weir = self.budget('{ response_header = "X-Tokens", reserve = 2500 }')
        clients = [self.start(Client(weir.port)) for _ in range(4)]
        for client in clients:
            client.send(request_bytes("GET", "/"))
        eventually(lambda: len(self.upstream.exchanges) == 4, "four requests are at the upstream")
        self.assertEqual(weir.get("/").status, 429)
        go.set()
        for client in clients:
            client.read()
        self.await_settled(weir, "tokens", surplus=4)
        self.assertEqual(weir.get("/")["x-ratelimit-remaining"], "9950")

    def spent_by(self, reply, cost='{ response_json = "/usage/total_tokens", reserve = 1000 }'):
        """Sends a request that gets this response. Returns the remaining units of 10,000, and the name of the settlement
        result in the metrics."""
        self.upstream.reply = reply
        weir = self.budget(cost)
        response = weir.get("/chat")
        self.assertEqual(response["x-ratelimit-remaining"], "9000", "the head of the response shows the reserve")
        (outcome, count), = self.settled(weir, "tokens").items()
        self.assertEqual(count, 1)
        self.upstream.reply = answer(b'{"usage":{"total_tokens":0}}')
        return 9000 - int(weir.get("/")["x-ratelimit-remaining"]), outcome, response

    def test_cost_in_a_json_response_is_charged_and_the_body_is_unchanged(self):
        for tokens, outcome in ((250, "surplus"), (0, "refunded"), (1000, "charged"), (4000, "debt")):
            body = json.dumps({"choices": ["x" * 9000], "usage": {"total_tokens": tokens}}).encode()
            for reply in (answer(body), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body, 700),
                          b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body):
                with self.subTest(tokens=tokens, framing=reply[17:45]):
                    until_close = b"Connection: close" in reply

                    def send(exchange, reply=reply, until_close=until_close):
                        exchange.read_body()
                        exchange.send(reply)
                        if until_close:
                            exchange.close()

                    spent, said, response = self.spent_by(send)
                    self.assertEqual((spent, said), (tokens, outcome))
                    self.assertEqual(response.body, body)

    def test_cost_above_the_maximum_is_charged_as_the_maximum(self):
        for tokens in (b"2147483649", b"1e30", b"1e400", b'"1e400"'):
            with self.subTest(tokens=tokens):
                spent, said, _ = self.spent_by(answer(b'{"usage":{"total_tokens":%s}}' % tokens))
                self.assertEqual((spent, said), (9000, "debt"), "the debt leaves no remaining units")

    def test_whole_number_in_a_response_costs_the_same_in_every_notation(self):
        for tokens, cost in ((b"250.0", 250), (b"25e1", 250), (b'"250"', 250), (b'"1e3"', 1000), (b"0.0", 0)):
            with self.subTest(tokens=tokens):
                self.assertEqual(self.spent_by(answer(b'{"usage":{"total_tokens":%s}}' % tokens))[0], cost)

    def test_response_without_a_cost_is_charged_the_reserved_cost(self):
        told = b'{"usage":{"total_tokens":5}}'
        for reply, outcome in ((answer(b'{"usage":{}}'), "untold"), (answer(b"", status="204 No Content"), "untold"),
                               (answer(b"data: [DONE]\n\n"), "unreadable"),
                               (answer(b'{"usage":{"total_tokens":-5}}'), "unreadable"),
                               (answer(told, headers="Content-Encoding: gzip\r\n"), "unreadable")):
            with self.subTest(reply=reply):
                spent, said, _ = self.spent_by(reply)
                self.assertEqual((spent, said), (1000, outcome))

    def test_client_that_accepts_compression_is_charged_the_cost_in_the_response(self):
        def as_asked(exchange):
            exchange.read_body()
            body = b'{"usage":{"total_tokens":400}}'
            if "gzip" in (exchange.head["accept-encoding"] or ""):
                exchange.send(answer(gzip.compress(body), headers="Content-Encoding: gzip\r\n"))
            elif exchange.head["range"]:
                exchange.send(answer(body[:1], status="206 Partial Content", headers=f"Content-Range: bytes 0-0/{len(body)}\r\n"))
            else:
                exchange.send(answer(body))

        self.upstream.reply = as_asked
        weir = self.weir(rule("tokens", "10000/day", key='["ip"]', match='{ path = "/metered" }',
                              cost='{ response_json = "/usage/total_tokens", reserve = 1000 }'),
                         rule("tried", "10000/day", key='["ip"]', mode='"shadow"', match='{ path = "/tried" }',
                              cost='{ response_json = "/usage/total_tokens", reserve = 1000 }'),
                         rule("failures", "9/day", key='["ip"]', charge='{ status = ["5xx"] }'))
        with weir.connect() as client:
            for number, fields in enumerate(({"accept-encoding": "gzip"}, {"range": "bytes=0-0", "if-range": '"x"'},
                                             {"Accept-Encoding": "br;q=1, gzip", "Connection": "accept-encoding"}), 1):
                client.send(request_bytes("GET", "/metered", fields))
                self.assertEqual(client.read().json()["usage"]["total_tokens"], 400)
                self.await_settled(weir, "tokens", surplus=number)
                head = self.upstream.exchanges[-1].head
                self.assertEqual((head.all("accept-encoding"), head["range"], head["if-range"]), (["identity"], None, None))
            client.send(request_bytes("GET", "/", {"accept-encoding": "gzip"}))
            self.assertEqual(client.read()["content-encoding"], "gzip", "Accept-Encoding of other requests is unchanged")
            client.send(request_bytes("GET", "/tried", {"accept-encoding": "gzip"}))
            self.assertEqual(client.read()["content-encoding"], "gzip", "Accept-Encoding of requests for a shadow rule is unchanged")
            self.await_settled(weir, "tried", unreadable=1)

    def test_response_body_above_max_body_is_forwarded_and_charged_the_reserved_cost(self):
        body = json.dumps({"usage": {"total_tokens": 5}, "text": "x" * 5000}).encode()
        cost = '{ response_json = "/usage/total_tokens", reserve = 1000, max_body = "4KiB" }'
        for reply in (answer(body), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body)):
            spent, said, response = self.spent_by(reply, cost)
            self.assertEqual((spent, said), (1000, "unreadable"))
            self.assertEqual(response.body, body)

    def test_truncated_response_is_charged_the_reserved_cost(self):
        def break_off(exchange):
            exchange.read_body()
            exchange.send(b'HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"usage":{"total_tokens":5}}')
            exchange.close()

        self.upstream.reply = break_off
        weir = self.budget('{ response_json = "/usage/total_tokens", reserve = 1000 }')
        with self.assertRaises(EOFError):
            weir.get("/")
        self.await_settled(weir, "tokens", unreadable=1)

    def test_cost_is_read_only_from_responses_with_a_charged_status(self):
        weir = self.budget('{ response_header = "X-Tokens", reserve = 1000 }', charge='{ status = ["2xx"] }')
        with weir.connect() as client:
            for status, left in (("200 OK", "9950"), ("500 Oops", "9950"), ("201 Created", "9900")):
                self.upstream.reply = answer(status=status, headers="X-Tokens: 50\r\n")
                self.assertEqual(client.get("/")["x-ratelimit-remaining"], left)
        self.await_settled(weir, "tokens", surplus=2, refunded=1)

    def test_decimal_costs_in_responses_are_scaled(self):
        self.upstream.reply = answer(headers="X-Cost: 0.125\r\n")
        weir = self.budget('{ response_header = "X-Cost", reserve = 1000, scale = 100 }')
        self.assertEqual(weir.get("/")["x-ratelimit-remaining"], "9987")

    def test_both_limits_of_an_elastic_rule_are_corrected_by_the_response(self):
        self.upstream.reply = answer(headers="X-Tokens: 100\r\n")
        weir = self.budget('{ response_header = "X-Tokens", reserve = 1000 }',
                           elastic='{ limit = "20000/day", while_load_below = 1.0 }')
        answers = []
        with weir.connect() as client:
            def is_raised():
                answers.append(client.get("/"))
                return answers[-1]["x-ratelimit-limit"] == "20000"

            eventually(is_raised, "the load is measured, and the elastic limit applies")
            answers.append(client.get("/"))
        left = [int(answer["x-ratelimit-limit"]) - int(answer["x-ratelimit-remaining"]) for answer in answers]
        self.assertEqual(left, [100 * (n + 1) for n in range(len(answers))])
        self.await_settled(weir, "tokens", surplus=len(answers))

    def test_charge_in_the_overflow_cell_of_a_full_table_is_corrected_by_the_response(self):
        self.upstream.reply = answer(headers="X-Tokens: 7\r\n")
        weir = self.weir(rule(**{**self.TOKENS, "limit": "1000/day", "key": '["header:X-Who"]'},
                              cost='{ response_header = "X-Tokens", reserve = 100 }'),
                         state="[state.memory]\nmax_keys = 1")
        with weir.connect() as client:
            for number in range(60):
                last = client.get("/", x_who=str(number))
        shared = int(weir.metric("weir_key_overflows_total"))
        self.assertGreater(shared, 1)
        self.assertEqual(last["x-ratelimit-remaining"], str(1000 - 7 * shared))


if __name__ == "__main__":
    main()
