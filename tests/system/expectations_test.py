#!/usr/bin/env python3
"""Clients that wait for 100 Continue before they send their body: which side causes a delay, and which servers are tried."""

import signal
import socket
import threading
import time

from harness import Client, TestCase, Upstream, Weir, answer, eventually, main
from upstreams_test import entry, several


class Expectations(TestCase):
    HEAD = " / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    TIMEOUTS = 'timeouts = { response = "300ms" }\n'
    NEVER_AGAIN = 'eject = { failures = 1, least = "1h", most = "1h" }'
    PATIENT = 'body_timeout = "5s"\n'  # shorter than PATIENCE, the time that a test waits

    def weir(self, *replies, more="", server=PATIENT, workers=2):
        self.upstreams = [self.start(Upstream(reply)) for reply in replies]
        text = several(*(entry(each.port) for each in self.upstreams), server=server,
                       more='balance = "round_robin"\n' + self.TIMEOUTS + more)
        return self.start(Weir(text.replace("workers = 2", f"workers = {workers}")))

    @staticmethod
    def silent(exchange):
        exchange.wait_for_close()

    @staticmethod
    def well(exchange):
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        exchange.send(answer(exchange.read_body()))

    def ask(self, weir, method="POST"):
        """Sends a request, and its body when the server asks for the body. Returns the last response."""
        with weir.connect() as client:
            client.send((method + self.HEAD).encode())
            answered = client.read()
            if answered.status == 100:
                client.send(b"abc")
                answered = client.read()
            return answered

    def assert_no_client_was_blamed(self, weir):
        self.assertEqual(weir.metric("weir_client_errors_total"), 0)

    def test_timeout_of_an_unresponsive_server_is_not_attributed_to_the_client(self):
        weir = self.weir(self.silent)
        for _ in range(2):
            self.assert_own_error(self.ask(weir), 504)
        self.await_metric(weir, 2, "weir_upstream_failures_total")
        self.assert_no_client_was_blamed(weir)

    def test_expect_field_listed_in_connection_is_not_forwarded_and_no_100_continue_is_awaited(self):
        """weir removes fields that `Connection` lists, so no server sends 100 Continue. If the client then withholds its body,
        the client causes the delay."""
        def polite(exchange):
            if exchange.head["expect"]:
                return self.well(exchange)
            return exchange.send(answer(exchange.read_body()))

        weir = self.weir(polite, server='body_timeout = "200ms"', more=self.NEVER_AGAIN)
        with weir.connect() as client:
            client.send(("POST" + self.HEAD).replace("Expect:", "Connection: Expect\r\nExpect:").encode())
            self.assertEqual(client.read().status, 408)
        self.assertEqual([weir.metric(name) for name in ("weir_upstream_failures_total", "weir_upstream_ejections_total")], [0, 0])
        self.assertEqual(self.ask(weir).status, 200)

    def test_all_attempts_of_a_request_share_one_deadline(self):
        self.TIMEOUTS = 'timeouts = { response = "60s", total = "300ms", expect_continue = "60s" }\n'
        weir = self.weir(self.silent)
        self.assert_own_error(self.ask(weir), 504)
        self.assert_no_client_was_blamed(weir)

    def test_server_that_sends_no_100_continue_and_no_response_is_ejected(self):
        weir = self.weir(self.silent, self.well, more=self.NEVER_AGAIN)
        answers = [self.ask(weir) for _ in range(6)]
        self.assertEqual(sorted(each.status for each in answers), [200] * 5 + [504])
        weir.wait_for(rf"server {self.upstreams[0].address} is ejected for .*: too many failed responses")
        self.assert_no_client_was_blamed(weir)

    @staticmethod
    def knows_no_expectation(exchange):
        exchange.send(answer(exchange.read_body()))

    def test_weir_sends_100_continue_for_a_server_that_never_sends_it(self):
        """A client that waits for 100 Continue gets its response, and no failure of the server is counted."""
        weir = self.weir(self.knows_no_expectation, more=self.NEVER_AGAIN)
        for method in ("POST", "PUT"):
            with weir.connect() as client:
                for _ in range(2):
                    client.send((method + self.HEAD).encode())
                    self.assertEqual(client.read().status, 100)
                    client.send(b"abc")
                    self.assertEqual((each := client.read()).status, 200)
                    self.assertEqual(each.body, b"abc")
        self.assertEqual(weir.metric("weir_upstream_unanswered_expectations_total"), 4)
        self.assertEqual(weir.metric("weir_upstream_failures_total"), 0)
        self.assert_no_client_was_blamed(weir)

    def test_clients_that_withhold_the_body_cannot_eject_a_server(self):
        weir = self.weir(self.knows_no_expectation, server='body_timeout = "200ms"\n', more=self.NEVER_AGAIN)
        for _ in range(3):
            with weir.connect() as client:
                client.send(("POST" + self.HEAD).encode())
                self.assertEqual(client.read().status, 100)
                self.assert_own_error(client.read(), 408)
        self.await_metric(weir, 3, "weir_client_errors_total", kind="body_timeout")
        self.assertEqual([weir.metric(name) for name in ("weir_upstream_failures_total", "weir_upstream_ejections_total")], [0, 0])
        self.assertEqual(self.ask(weir).body, b"abc")

    def test_late_100_continue_of_the_server_is_also_forwarded(self):
        asked = threading.Event()

        def slow(exchange):
            asked.wait()
            self.well(exchange)

        self.TIMEOUTS = 'timeouts = { response = "60s", expect_continue = "100ms" }\n'
        weir = self.weir(slow)
        with weir.connect() as client:
            client.send(("POST" + self.HEAD).encode())
            self.assertEqual(client.read().status, 100)
            asked.set()
            self.assertEqual(client.read().status, 100)
            client.send(b"abc")
            self.assertEqual(client.read().body, b"abc")
        self.assertEqual(weir.metric("weir_upstream_unanswered_expectations_total"), 1)

    def test_request_succeeds_if_the_body_or_100_continue_or_the_response_arrives_just_as_the_wait_ends(self):
        """Clients have similar timers: curl sends the body after a second. The test stops the weir process. So weir finds
        all events at once when it continues."""
        on = threading.Event()

        def replies(exchange):
            if exchange.target == "/body":
                return self.knows_no_expectation(exchange)
            on.wait()
            return self.well(exchange) if exchange.target == "/word" else exchange.send(answer(b"no", status="403 Forbidden"))

        self.TIMEOUTS = 'timeouts = { response = "60s", expect_continue = "1ms" }\n'  # the wait ends after two 50 ms ticks
        weir = self.weir(replies, more=self.NEVER_AGAIN)
        for spell in range(6):
            on.clear()
            seen = len(self.upstreams[0].exchanges)
            clients = {name: self.start(Client(weir.port)) for name in ("body", "word", "answer")}
            for name, client in clients.items():
                client.send(("POST" + self.HEAD.replace("/", "/" + name, 1)).encode())
            eventually(lambda seen=seen: len(self.upstreams[0].exchanges) == seen + 3, "the requests wait for 100 Continue")
            time.sleep(0.045 + spell * 0.008)  # so that each round begins at a different time between two ticks
            weir.signal(signal.SIGSTOP)
            clients["body"].send(b"abc")
            on.set()
            time.sleep(0.1)  # waits until the next tick is due and the server has responded
            weir.signal(signal.SIGCONT)
            for name, client in clients.items():
                answered = client.read()
                if name == "word":
                    self.assertEqual(answered.status, 100)
                    client.send(b"abc")
                while answered.status == 100:
                    answered = client.read()
                self.assertEqual(answered.status, 403 if name == "answer" else 200, name)
        self.assertEqual(weir.metric("weir_upstream_failures_total"), 0)
        self.assert_no_client_was_blamed(weir)

    def test_request_whose_body_was_not_sent_yet_can_be_retried(self):
        # so weir itself never sends 100 Continue
        self.TIMEOUTS = 'timeouts = { response = "300ms", expect_continue = "300ms" }\n'
        for silent in (self.silent, lambda exchange: exchange.close()):
            weir = self.weir(silent, self.well, more='retry = { budget = "100%" }\neject = { failures = 1000 }')
            answers = [self.ask(weir, "PUT") for _ in range(4)]
            self.assertEqual([(each.status, each.body) for each in answers], [(200, b"abc")] * 4)
            self.assertGreaterEqual(len(self.upstreams[0].exchanges), 1)
            self.assert_no_client_was_blamed(weir)

    def test_request_can_be_retried_if_the_server_dies_after_its_100_continue(self):
        def dies(exchange):
            exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            exchange.close()

        weir = self.weir(dies, self.well, more='eject = { failures = 1000 }')
        for number in range(1, 5):
            with weir.connect() as client:
                client.send(("PUT" + self.HEAD).encode())
                self.assertEqual(client.read().status, 100)
                eventually(lambda: len(self.upstreams[1].exchanges) == number, "the other server has the request")
                client.send(b"abc")
                while (answered := client.read()).status == 100:
                    pass
                self.assertEqual((answered.status, answered.body), (200, b"abc"))
        self.assertGreaterEqual(len(self.upstreams[0].exchanges), 1)

    def test_client_that_withholds_its_body_does_not_keep_a_server_ejected(self):
        """The client's request may be the only trial of an ejected server. Other requests must not have to wait until twice
        the ejection time has passed."""
        well = threading.Event()
        weir = self.weir(lambda exchange: self.well(exchange) if well.is_set() else exchange.close(), self.well,
                         server='body_timeout = "300ms"\n', more='eject = { failures = 1, least = "100ms", most = "100ms" }')
        while not any("is ejected for" in line for line in weir.lines):
            weir.get("/")
        well.set()
        time.sleep(0.25)  # twice the ejection time; before that, no POST is used as a trial
        with weir.connect() as client:
            client.send(("PUT" + self.HEAD).encode())
            self.assertEqual([client.read().status for _ in range(2)], [100, 408])
        weir.wait_for(rf"server {self.upstreams[0].address} is back")
        self.assertEqual(len([each for each in self.upstreams[0].exchanges if each.method == "PUT"]), 1,
                         "one PUT was the trial of the ejected server")

    def test_ejected_server_is_readmitted_even_if_a_request_waits_for_its_100_continue(self):
        """Other requests try the server at the same time, because the silence may be the fault of the client."""
        well = threading.Event()
        weir = self.weir(lambda exchange: self.knows_no_expectation(exchange) if well.is_set() else exchange.close(), self.well,
                         more='eject = { failures = 1, least = "1s", most = "1h" }')
        while not any("is ejected for" in line for line in weir.lines):
            weir.get("/")
        well.set()
        first = self.upstreams[0].exchanges
        keeps = []
        while not any(each.method == "PUT" for each in first):  # no request is sent before the ejection time has passed
            keeps.append(self.start(Client(weir.port)))
            keeps[-1].send(("PUT" + self.HEAD).encode())
            time.sleep(0.05)
        weir.get("/")
        weir.wait_for(rf"server {self.upstreams[0].address} is back")

    STOLEN = b"GET /stolen HTTP/1.1\r\nHost: a\r\n\r\n"  # a body that looks like a request

    @staticmethod
    def rejects(exchange):
        """Responds to a request with `Expect` as soon as its body begins to arrive, and does not read the body (RFC 9110
        §10.1.1)."""
        if exchange.head["expect"]:
            if not exchange.wire.buffer:
                exchange.wire.sock.recv(1, socket.MSG_PEEK)
            return exchange.send(answer(b"no", "401 Unauthorized"))
        if exchange.target == "/stolen":
            exchange.wire.fill()  # waits for the next request or for the end of the connection
            return exchange.send(answer(b"stolen"))
        exchange.read_body()
        return exchange.send(answer())

    def assert_the_next_request_gets_a_new_connection(self, weir):
        """The server may still read the rest of the body as a request. No client may get the response to it."""
        answered = weir.get("/next")
        self.assertEqual((answered.status, answered.body), (200, b"ok"))
        connections = {each.target: each.connection for each in self.upstreams[0].exchanges}
        self.assertEqual((connections["/first"], connections["/next"]), (1, 2))

    def head(self, target="/first"):
        return f"PUT {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(self.STOLEN)}\r\nExpect: 100-continue\r\n\r\n".encode()

    def test_expect_is_not_forwarded_if_the_body_has_begun_to_arrive(self):
        for begun in (self.STOLEN, self.STOLEN[:10]):
            weir = self.weir(self.rejects, workers=1)
            with weir.connect() as client:
                client.send(self.head() + begun)
                eventually(lambda: self.upstreams[0].exchanges, "the server has the request")
                client.send(self.STOLEN[len(begun):])
                self.assertEqual(client.read().status, 200)
                client.send(self.head("/second") + self.STOLEN + b"GET /third HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertEqual([client.read().status for _ in range(2)], [200, 200])
            self.assertEqual([(each.target, each.connection) for each in self.upstreams[0].exchanges],
                             [("/first", 1), ("/second", 1), ("/third", 1)])

    def test_upstream_connection_is_not_kept_if_the_server_may_have_left_the_body_unread(self):
        weir = self.weir(self.rejects, workers=1)
        with weir.connect() as client:
            client.send(self.head())
            eventually(lambda: self.upstreams[0].exchanges, "the server has the request")
            client.send(self.STOLEN)  # the client does not wait for 100 Continue
            self.assertEqual(client.read().status, 401)
        self.assert_the_next_request_gets_a_new_connection(weir)

    def test_upstream_connection_is_not_kept_if_weir_sent_100_continue_and_the_server_did_not(self):
        weir = self.weir(self.rejects, workers=1)
        with weir.connect() as client:
            client.send(self.head())
            self.assertEqual(client.read().status, 100)
            client.send(self.STOLEN)
            self.assertEqual(client.read().status, 401)
        self.assert_the_next_request_gets_a_new_connection(weir)

    def test_upstream_connection_is_kept_if_the_server_sent_100_continue(self):
        weir = self.weir(self.well, workers=1)
        for _ in range(2):
            self.assertEqual(self.ask(weir).status, 200)
        self.assertEqual({each.connection for each in self.upstreams[0].exchanges}, {1})

    def test_server_that_closes_while_the_client_withholds_the_body_is_not_ejected(self):
        def begins(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
            exchange.wait_for_close()

        self.TIMEOUTS = 'timeouts = { response = "300ms", expect_continue = "60s" }\n'
        for kept_waiting in (lambda exchange: exchange.close(), begins):
            weir = self.weir(kept_waiting, more=self.NEVER_AGAIN)
            with weir.connect() as client:
                client.send(("POST" + self.HEAD).encode())
                client.wire.read_to_end()
            self.assertEqual([weir.metric(name) for name in ("weir_upstream_failures_total", "weir_upstream_ejections_total")], [0, 0])

    def test_weir_does_not_wait_for_an_empty_body(self):
        def thoughtful(exchange):
            exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.5)  # longer than body_timeout
            exchange.send(answer())

        for reply, status in ((self.silent, 504), (thoughtful, 200)):
            self.TIMEOUTS = f'timeouts = {{ response = "{"300ms" if status == 504 else "60s"}" }}\n'
            weir = self.weir(reply, server='body_timeout = "200ms"\n')
            with weir.connect() as client:
                client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n0\r\n\r\n")
                while (answered := client.read()).status == 100:
                    pass
                self.assertEqual(answered.status, status)
            self.assertEqual(weir.metric("weir_upstream_unanswered_expectations_total"), 0)

    def test_client_that_reads_interim_responses_slowly_is_not_disconnected(self):
        early = b"HTTP/1.1 103 Early Hints\r\nLink: <" + 8000 * b"a" + b">\r\n\r\n"

        def talkative(exchange):
            for _ in range(1500):
                exchange.send(early)
            self.knows_no_expectation(exchange)

        self.TIMEOUTS = 'timeouts = { response = "60s", expect_continue = "100ms" }\n'
        weir = self.weir(talkative)
        with weir.connect() as client:
            client.send(("POST" + self.HEAD).encode())
            time.sleep(0.5)  # the server reads nothing for longer than the wait for 100 Continue
            seen = []
            while (answered := client.read()).status < 200:
                seen.append(answered.status)
                if answered.status == 100:
                    client.send(b"abc")
        self.assertEqual((answered.status, answered.body), (200, b"abc"))
        self.assertEqual((seen.count(103), seen.count(100)), (1500, 1))
        self.assert_no_client_was_blamed(weir)

    def test_request_is_not_sent_to_another_server_after_weir_sent_100_continue(self):
        weir = self.weir(self.silent, self.well, more='retry = { budget = "100%" }\neject = { failures = 1000 }')
        answers = [self.ask(weir, "PUT").status for _ in range(8)]
        self.assertEqual(answers.count(504), len(self.upstreams[0].exchanges))
        self.assertEqual(answers.count(200), len(self.upstreams[1].exchanges))
        self.assertGreaterEqual(answers.count(504), 1)

    def test_body_timeout_of_the_client_does_not_run_while_weir_waits_for_100_continue(self):
        def late(exchange):
            time.sleep(0.8)
            self.well(exchange)

        self.TIMEOUTS = ""
        weir = self.weir(late, server='min_rate = "1KiB"\nmin_rate_grace = "300ms"\n')
        self.assertEqual(self.ask(weir).body, b"abc")
        self.assert_no_client_was_blamed(weir)

    def test_body_timeout_applies_after_100_continue(self):
        weir = self.weir(self.well, server='body_timeout = "300ms"\n')
        with weir.connect() as client:
            client.send(("POST" + self.HEAD).encode())
            self.assertEqual(client.read().status, 100)
            self.assert_own_error(client.read(), 408)
        self.await_metric(weir, 1, "weir_client_errors_total", kind="body_timeout")
        self.assertEqual(weir.metric("weir_upstream_failures_total"), 0)


if __name__ == "__main__":
    main()
