#!/usr/bin/env python3
"""HTTP/2 requests whose client resets the stream or leaves, and requests without an answer: what they are charged, and when their
permits are released."""

import threading

from harness import PATIENCE, answer, closed_port, eventually, get, main, rule
from http2_charges_test import BUDGET, JSON_COST, LOGIN, STATUS, usage
from protocol_pair import Ask, SettledTestCase


class WithoutAnswer(SettledTestCase):
    def setUp(self):
        super().setUp()
        self.go = threading.Event()
        self.addCleanup(lambda: self.go.set())

    def hold(self, whole, before=0):
        """Makes the server send `before` octets of its answer, and the rest when the test permits it."""
        asked, go = self.asked, self.go = threading.Semaphore(0), threading.Event()

        def reply(exchange):
            exchange.read_body()
            exchange.send(whole[:before])
            asked.release()
            go.wait(PATIENCE)
            exchange.send(whole[before:])

        self.upstream.reply = reply

    def reset(self, client, **more):
        """Resets a stream whose request is at the server, and waits until weir has read the reset."""
        stream = client.open(**more)
        self.assertTrue(self.asked.acquire(timeout=PATIENCE))
        client.reset(stream)
        client.ping()

    def test_reset_stream_is_charged_by_the_answer_that_the_server_still_sends(self):
        for status, outcome in (("401", "charged"), ("200", "refunded")):
            with self.subTest(status=status):
                self.hold(answer(status=STATUS[status]))
                weir = self.plain_weir(rule(**LOGIN))
                client = self.client(weir)
                self.reset(client)
                self.assertEqual(self.settled(weir, "login"), {})
                self.go.set()
                self.await_settled(weir, "login", **{outcome: 1})
                self.assertEqual(client.get("/")["x-ratelimit-remaining"], "3" if outcome == "charged" else "5")

    def test_a_client_that_leaves_is_charged_the_cost_in_the_rest_of_the_answer(self):
        for way in ("reset", "close"):
            with self.subTest(way):
                self.hold(answer(usage(3000)), before=50)
                weir = self.plain_weir(rule(**BUDGET, cost=JSON_COST))
                client = self.client(weir)
                stream = client.open(fields=[("x-case", "a")])
                client.wait(lambda: client.answers[stream].size)  # noqa: B023
                client.reset(stream) if way == "reset" else client.sock.close()
                self.await_metric(weir, 1, "weir_client_errors_total", kind="left")
                self.assertEqual(self.settled(weir, "tokens"), {})
                self.go.set()
                self.await_settled(weir, "tokens", debt=1)
                self.await_metric(weir, 1, "weir_abandoned_answers_total", read="whole")

    def test_client_that_leaves_is_charged_if_weir_does_not_read_the_answer(self):
        self.hold(answer())
        weir = self.plain_weir(rule(**LOGIN), upstream='timeouts = { abandoned = "0s" }')
        self.reset(self.client(weir))
        self.await_settled(weir, "login", unanswered=1)
        client = self.client(weir)
        client.open()
        self.assertTrue(self.asked.acquire(timeout=PATIENCE))
        client.sock.close()
        self.await_settled(weir, "login", unanswered=2)

    def test_requests_that_no_server_received_are_refunded(self):
        self.upstream.port = closed_port()
        pair = self.pair(rule("day", "5/day") + rule(**LOGIN))
        self.assertEqual(self.statuses_of(pair, [Ask()] * 7), [502] * 7)
        client = self.client(pair[1])
        self.assertEqual({client.read(stream).status for stream in [client.open() for _ in range(5)]}, {502})
        self.assertEqual(get(pair[1].admin, "/api/keys?rule=day&key=127.0.0.1").json()["limits"][0]["remaining"], 5)
        self.assertEqual(self.settled(pair[1], "login"), {})

    def test_requests_with_late_or_lost_answers_are_charged(self):
        self.upstream.reply = lambda exchange: exchange.wait_for_close() if exchange.target == "/late" else exchange.close()
        weir = self.plain_weir(rule(**LOGIN), upstream='timeouts = { response = "2s" }\nretry = { on = [] }')
        client = self.client(weir)
        self.assertEqual([client.get("/late").status, client.request("POST", "/lost", body=b"x").status], [504, 502])
        self.await_settled(weir, "login", unanswered=2)

    def test_reset_upload_is_charged_unless_a_rule_still_waits_for_its_body(self):
        weir = self.plain_weir(rule("words", "5/day", match='{ path = "/words", body_contains = "x" }'),
                               rule("plain", "5/day", match='{ path = "/plain" }'))
        client = self.client(weir)
        for path in ("/words", "/plain"):
            stream = client.open("POST", path, end=False)
            client.send_body(stream, b"x" * 1000, end=False)
            if path == "/plain":
                eventually(lambda: self.upstream.exchanges, "the head is at the server")
            client.reset(stream)
            self.await_metric(weir, 0, "weir_http2_streams")
        self.assertEqual([client.request("POST", path, body=b"x")["x-ratelimit-remaining"] for path in ("/words", "/plain")], ["4", "3"])

    def test_permit_of_a_client_that_left_is_held_until_the_answer_if_hold_is_set_to_answer(self):
        self.hold(answer())
        permits = '[[rule]]\nname = "two"\nalgorithm = "concurrency"\nlimit = 2\nkey = ["ip"]\nhold = "{}"\n'
        weir = self.plain_weir(permits.format("answer"))
        client = self.client(weir)
        for _ in range(2):
            self.reset(client)
        self.assertEqual([client.get("/").status for _ in range(5)], [429] * 5)
        self.go.set()
        eventually(lambda: client.get("/").status == 200, "the permits are free")

    def test_a_reset_frees_a_permit_at_once_by_default(self):
        self.hold(answer())
        client = self.client(self.plain_weir('[[rule]]\nname = "two"\nalgorithm = "concurrency"\nlimit = 2\nkey = ["ip"]\n'))
        for _ in range(6):
            stream = client.open()
            self.assertTrue(self.asked.acquire(timeout=PATIENCE))
            client.reset(stream)
            client.ping()


if __name__ == "__main__":
    main()
