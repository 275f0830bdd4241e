#!/usr/bin/env python3
"""Clients that leave before the end of their response. Two kinds of rules need the end of the response: rules whose cost is in the
response, and `concurrency` rules, which count the requests that the server processes."""

import json
import threading
import types

from harness import PATIENCE, Client, TestCase, Upstream, Weir, answer, chunked, config, eventually, main, request_bytes, rule

TOKENS = dict(name="tokens", limit="100000/day", algorithm='"fixed_window"', key="[]")


def tokens(max_body="64KiB", reserve=1):
    return rule(**TOKENS, cost=f'{{ response_json = "/usage/total_tokens", reserve = {reserve}, max_body = "{max_body}" }}')


def said(cost, padding=0):
    return json.dumps({"text": "x" * padding, "usage": {"total_tokens": cost}}).encode()


class Abandoned(TestCase):
    """An upstream that sends the beginning of its response. It sends the rest when the test allows it."""

    HALF = 20

    def start_weir(self, body, rules, head=True, upstream="", server="", whole=None):
        server += 'idle_timeout = "200ms"\n'
        self.goes_on, self.asked = threading.Event(), threading.Semaphore(0)
        # counts the requests of this upstream only, because those of an earlier upstream may still end
        requests = self.requests = types.SimpleNamespace(now=0, most=0)
        self.addCleanup(self.goes_on.set)
        whole, lock = whole or answer(body), threading.Lock()
        half = whole.index(b"\r\n\r\n") + self.HALF if head else 0

        def reply(exchange):
            exchange.read_body()
            with lock:
                requests.now += 1
                requests.most = max(requests.most, requests.now)
            try:
                exchange.send(whole[:half])
                self.asked.release()
                self.goes_on.wait(PATIENCE)
                with lock:
                    requests.now -= 1
                exchange.send(whole[half:])
            except OSError:
                pass

        self.weir = self.start(Weir(config(self.start(Upstream(reply)).port, rules=rules, upstream=upstream, server=server)))

    def ask_and_leave(self, leave=Client.leave, head=True):
        client = Client(self.weir.port)
        client.send(request_bytes("GET", "/"))
        self.assertTrue(self.asked.acquire(timeout=PATIENCE))
        if head:
            client.wire.read_until(b"\r\n\r\n")
        leave(client)
        # Waits for a tick of weir's timer. At each tick weir closes idle connections, and notices that
        # clients have left.
        with Client(self.weir.port) as idle:
            self.assertTrue(idle.closed())

    def settled(self, outcome):
        eventually(lambda: self.weir.metric("weir_settlements_total", outcome=outcome) == 1, f"the charge is settled: {outcome}")
        self.assertEqual(self.weir.metric("weir_settlements_total"), 1)

    def remaining(self):
        return int(self.weir.get("/")["x-ratelimit-remaining"])


class ChargesOfAbandonedRequests(Abandoned):
    def test_client_that_leaves_during_the_response_is_charged_the_cost_in_the_response(self):
        for whole in (answer(said(3000)), answer(chunked(said(3000)), headers="Transfer-Encoding: chunked\r\n", length=False)):
            for leave in (Client.leave, lambda client: client.sock.close()):
                with self.subTest(whole=whole, leave=leave):
                    self.start_weir(b"", tokens(), whole=whole)
                    self.ask_and_leave(leave)
                    self.goes_on.set()
                    self.settled("debt")
                    self.assertEqual(self.remaining(), 100_000 - 3000 - 1)

    def test_client_that_leaves_before_the_response_head_is_charged_the_cost_in_the_response(self):
        for leave in (Client.leave, lambda client: client.sock.close()):
            self.start_weir(said(3000), tokens(), head=False)
            self.ask_and_leave(leave, head=False)
            self.goes_on.set()
            self.settled("debt")
            self.assertEqual(self.remaining(), 100_000 - 3000 - 1)

    def test_client_that_leaves_is_charged_the_cost_in_the_response_header(self):
        self.start_weir(b"", rule(**TOKENS, cost='{ response_header = "X-Cost", reserve = 1 }'), head=False,
                        whole=answer(b"ok", headers="X-Cost: 700\r\n"))
        self.ask_and_leave(head=False)
        self.goes_on.set()
        self.settled("debt")

    def test_client_that_stops_reading_is_charged_the_cost_in_the_response(self):
        """The response is larger than all buffers. weir reads the end of the response after the client's write timeout."""
        self.start_weir(said(3000, 12 << 20), tokens("16MiB"), server='write_timeout = "300ms"\n')
        self.goes_on.set()
        with Client(self.weir.port) as client:
            client.send(request_bytes("GET", "/"))
            self.settled("debt")
        self.await_metric(self.weir, 1, "weir_abandoned_answers_total", read="whole")

    def test_endless_response_to_a_client_that_left_is_charged_the_reserved_cost_after_a_while(self):
        self.start_weir(said(3000), tokens(), upstream='timeouts = { abandoned = "200ms" }')
        self.ask_and_leave()
        self.settled("unreadable")
        self.await_metric(self.weir, 1, "weir_abandoned_answers_total", read="part")

    def test_response_to_a_client_that_left_is_not_read_beyond_max_body(self):
        whole = answer(chunked(said(3000, 20_000)), headers="Transfer-Encoding: chunked\r\n", length=False)
        self.HALF = 18_000
        self.start_weir(b"", tokens("16KiB"), whole=whole)
        client = Client(self.weir.port)
        client.send(request_bytes("GET", "/"))
        client.wire.read_until(b"x" * 16_000)
        client.leave()
        self.settled("unreadable")
        self.assertEqual(self.weir.metric("weir_abandoned_answers_total"), 0)

    def test_response_to_a_client_that_left_is_not_read_if_timeouts_abandoned_is_zero(self):
        self.start_weir(said(3000), tokens(), upstream='timeouts = { abandoned = "0s" }')
        self.ask_and_leave()
        self.settled("unreadable")
        self.assertEqual(self.weir.metric("weir_abandoned_answers_total"), 0)

    def test_response_to_a_client_that_left_is_not_read_if_no_rule_charges_by_responses(self):
        self.start_weir(said(3000), rule())
        self.ask_and_leave()
        self.await_metric(self.weir, 1, "weir_client_errors_total", kind="left")
        self.await_metric(self.weir, 0, "weir_connections_open")
        self.assertEqual(self.weir.metric("weir_abandoned_answers_total"), 0)


class PermitsOfAbandonedRequests(Abandoned):
    @staticmethod
    def held(hold, **more):
        return rule("at-once", "2", algorithm='"concurrency"', key="[]", **({"hold": f'"{hold}"'} if hold else {}), **more).replace(
            'limit = "2"', "limit = 2")

    def test_permit_of_a_client_that_left_is_held_until_the_server_has_responded(self):
        """A client that leaves does not release its permit, so the server never has more than two requests."""
        for head in (True, False):
            with self.subTest(head=head):
                self.start_weir(b"x" * 100, self.held("answer"), head=head)
                for _ in range(2):
                    self.ask_and_leave(head=head)
                if head:  # the response head alone does not release the permit
                    eventually(lambda: self.weir.metric("weir_client_errors_total", kind="left") == 2,
                               "weir has noticed that the client left")
                self.assertEqual([self.weir.get("/").status for _ in range(10)], [429] * 10)
                self.goes_on.set()
                eventually(lambda: self.weir.get("/").status == 200, "the permits are released")
                self.assertEqual(self.requests.most, 2)

    def test_permit_of_a_client_that_left_is_held_for_a_bounded_time(self):
        self.start_weir(b"x" * 100, self.held("answer"), upstream='timeouts = { abandoned = "200ms" }')
        for _ in range(2):
            self.ask_and_leave()
        eventually(lambda: self.weir.metric("weir_abandoned_answers_total", read="part") == 2,
                   "weir has stopped reading the abandoned responses")
        self.ask_and_leave()

    def test_without_the_hold_setting_a_permit_is_released_when_the_client_leaves(self):
        for hold in (None, "client"):
            self.start_weir(b"x" * 100, self.held(hold))
            for _ in range(6):
                before = self.weir.metric("weir_client_errors_total", kind="left")
                self.ask_and_leave()
                eventually(lambda: self.weir.metric("weir_client_errors_total", kind="left") > before,
                           "weir has noticed that the client left")
            self.assertGreater(self.requests.most, 2)


class FailuresOfAbandonedRequests(Abandoned):
    """Upstreams that receive a request whose client has left, and close the connection without a response."""

    def start_servers(self, early=b""):
        self.goes_on, self.asked = threading.Event(), threading.Semaphore(0)
        self.addCleanup(self.goes_on.set)

        def fail(exchange):
            exchange.read_body()
            self.asked.release()
            self.goes_on.wait(PATIENCE)
            if early:
                exchange.send(early)
            exchange.close()

        self.servers = [self.start(Upstream(fail)) for _ in range(2)]
        self.weir = self.start(Weir(config(*(server.port for server in self.servers), rules=tokens(),
                                           server='idle_timeout = "200ms"',
                                           upstream='retry = { on = ["broken"], backoff = "0ms" }')))

    def test_upstream_failure_is_counted_but_not_retried_if_the_client_has_left(self):
        for early in (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2):
            with self.subTest(early=early):
                self.start_servers(early)
                self.ask_and_leave(head=False)
                self.goes_on.set()
                self.await_metric(self.weir, 1, "weir_client_errors_total", kind="left")
                self.await_metric(self.weir, 0, "weir_connections_open")
                self.assertEqual(self.weir.metric("weir_upstream_failures_total"), 1)
                self.assertEqual(sum(len(server.exchanges) for server in self.servers), 1)

    def test_upstream_failure_is_retried_if_the_client_still_waits(self):
        self.start_servers()
        self.goes_on.set()
        self.assertEqual(self.weir.get("/").status, 502)
        self.assertEqual(self.weir.metric("weir_upstream_failures_total"), 2)


if __name__ == "__main__":
    main()
