#!/usr/bin/env python3
"""Several servers of one upstream: how requests are distributed, and what happens to them when servers fail."""

import socket
import tempfile
import threading
import time

from harness import (PATIENCE, WEIR, Client, Process, TestCase, Upstream, Weir, answer, chunked, closed_port, config,
                     eventually, main, request_bytes, rule)


def named(name):
    return answer(name.encode())


def servers(*entries):
    """Returns the setting `servers` of an upstream, with the ports of these Upstream and Echo objects as addresses."""
    return ", ".join(entries)


def entry(port, more=""):
    return f'{{ address = "127.0.0.1:{port}"{", " + more if more else ""} }}'


def several(*entries, more="", **sections):
    """Returns a configuration whose upstream has several servers, each written as a table."""
    return config(upstream=more, **sections).replace("servers = []", f"servers = [{servers(*entries)}]")


class Balance(TestCase):
    def upstreams(self, count):
        return [self.start(Upstream(named(str(number)))) for number in range(count)]

    def ask(self, weir, count, **headers):
        with weir.connect() as client:
            return [client.get("/", **headers).body.decode() for _ in range(count)]

    def test_requests_are_divided_by_the_weights_of_servers(self):
        one, three = self.upstreams(2)
        for balance in ("round_robin", "least_in_flight"):
            with self.subTest(balance):
                weir = self.start(Weir(several(entry(one.port), entry(three.port, "weight = 3"),
                                               more=f'balance = "{balance}"')))
                answers = self.ask(weir, 80)
                self.assertEqual((answers.count("0"), answers.count("1")), (20, 60))

    def test_hash_balance_sends_a_client_always_to_the_same_server(self):
        upstreams = self.upstreams(4)
        homes = {}
        for gone in (None, 2):
            kept = [entry(upstream.port) for number, upstream in enumerate(upstreams) if number != gone]
            weir = self.start(Weir(several(*kept, more='balance = "hash"\nhash_key = ["api_key"]')))
            for key in range(60):
                answers = set(self.ask(weir, 2, x_api_key=f"k{key}") + self.ask(weir, 1, x_api_key=f"k{key}"))
                self.assertEqual(len(answers), 1, "each client is answered by one server")
                home = answers.pop()
                if gone is None:
                    homes[key] = home
                elif homes[key] != str(gone):
                    self.assertEqual(home, homes[key], "the client is answered by its former server")
        self.assertEqual(set(homes.values()), {"0", "1", "2", "3"})

    def test_server_whose_unix_socket_queue_is_full_is_skipped_but_not_ejected(self):
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-unix-"))
        full = self.enterContext(socket.socket(socket.AF_UNIX))
        full.bind(f"{folder}/full")
        full.listen(0)
        with self.assertRaises(BlockingIOError):  # the kernel refuses connections when the queue is full
            while True:
                waiting = self.enterContext(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                waiting.connect(f"{folder}/full")
        other, = self.upstreams(1)
        weir = self.start(Weir(several(f'"unix:{folder}/full"', entry(other.port), more='balance = "round_robin"')))
        self.assertEqual(self.ask(weir, 10), ["0"] * 10)
        self.assertEqual(weir.metric("weir_upstream_ejections_total"), 0)
        alone = self.start(Weir(several(f'"unix:{folder}/full"')))
        self.assertEqual(self.statuses(alone.port, 3), [503] * 3)

    def test_unix_socket_can_be_a_server(self):
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-unix-"))
        process = Process([WEIR, "echo", "--listen", f"unix:{folder}/echo"])
        self.addCleanup(process.stop)
        process.wait_for("listening on")
        weir = self.start(Weir(several(f'"unix:{folder}/echo"')))
        self.assertEqual([weir.get("/").status for _ in range(3)], [200] * 3)


class ServerBounds(TestCase):
    def setUp(self):
        self.gate = threading.Event()
        self.addCleanup(self.gate.set)

    def reply(self, exchange):
        self.gate.wait(60)
        exchange.send(answer())

    def begin(self, weir):
        client = Client(weir.port)
        self.addCleanup(client.sock.close)
        client.send(request_bytes("GET", "/"))
        return client

    def test_max_in_flight_bounds_the_requests_of_a_server(self):
        first, second = (self.start(Upstream(self.reply)) for _ in range(2))
        once = rule("once", "3/day")
        weir = self.start(Weir(several(entry(first.port, "max_in_flight = 1"), entry(second.port, "max_in_flight = 1"),
                                       more='queue = 0', rules=once)))
        clients = [self.begin(weir) for _ in range(2)]
        eventually(lambda: len(first.exchanges) == len(second.exchanges) == 1, "each server has one request")
        refused = weir.get("/")
        self.assert_own_error(refused, 503)
        self.assertEqual(refused["retry-after"], "1")
        self.await_metric(weir, 1, "weir_upstream_crowded_total")
        self.gate.set()
        self.assertEqual([client.read().status for client in clients], [200, 200])
        self.assertEqual(weir.get("/").status, 200, "requests that reached no server are not charged")
        self.assertEqual(weir.get("/").status, 429)

    def test_requests_above_the_rate_limit_of_a_server_go_to_other_servers(self):
        self.gate.set()
        first, second = (self.start(Upstream(self.reply)) for _ in range(2))
        weir = self.start(Weir(several(entry(first.port, 'limit = "2/h"'), entry(second.port, 'limit = "3/h"'))))
        self.assertEqual(self.statuses(weir.port, 5), [200] * 5)
        self.assertEqual((len(first.exchanges), len(second.exchanges)), (2, 3))
        refused = weir.get("/")
        self.assert_own_error(refused, 503)
        self.assertIn(int(refused["retry-after"]), range(1100, 1201), "retry_after is a third of an hour, less the elapsed time")


class HealthChecks(TestCase):
    """Health checks, and their effects on servers."""

    HEALTH = 'health = { path = "/health?deep", interval = "50ms", timeout = "200ms", unhealthy_after = 2, healthy_after = 2 }\n'

    def setUp(self):
        self.well = True
        self.upstream = self.start(Upstream(self.reply))
        self.other = self.start(Upstream(named("other")))
        self.weir = self.start(Weir(several(entry(self.upstream.port), entry(self.other.port),
                                            more=self.HEALTH + 'slow_start = "0s"')))

    def reply(self, exchange):
        if exchange.target != "/health?deep":
            exchange.send(named("it"))
        elif self.well:
            exchange.send(answer())
        elif self.well is None:
            exchange.wait_for_close()
        else:
            exchange.send(answer(status="500 No"))

    def names(self):
        with self.weir.connect() as client:
            return {client.get("/").body for _ in range(6)}

    def healthy(self):
        return self.weir.metric("weir_upstream_healthy", server=self.upstream.address)

    def test_server_that_fails_health_checks_gets_no_requests(self):
        self.assertEqual(self.names(), {b"it", b"other"})
        self.assertEqual(self.healthy(), 1)
        for number, (ill, why) in enumerate(((False, "it returns 500"), (None, "no response in time")), 1):
            self.well = ill
            self.weir.wait_for(rf"server {self.upstream.address} is down: {why}")
            self.assertEqual(self.healthy(), 0)
            self.assertEqual(self.names(), {b"other"})
            self.well = True
            self.weir.wait_for(rf"server {self.upstream.address} is back", number)
            self.assertEqual(self.names(), {b"it", b"other"})
        self.assertEqual(self.weir.metric("weir_upstream_ejections_total", server=self.upstream.address), 2)
        self.assertEqual(self.weir.metric("weir_upstream_ejections_total", server=self.other.address), 0)

    def test_health_checks_send_the_configured_request(self):
        asked = eventually(lambda: [each for each in self.upstream.exchanges if each.target == "/health?deep"], "the health check is sent")
        self.assertEqual((asked[0].method, asked[0].head["host"], asked[0].head["connection"]),
                         ("GET", self.upstream.address, "close"))

    def test_change_of_health_is_logged_once(self):
        self.well = False
        self.weir.wait_for(rf"server {self.upstream.address} is down")
        seen = len(self.upstream.exchanges)
        eventually(lambda: len(self.upstream.exchanges) > seen + 5, "health checks continue")
        self.assertEqual(sum("is down" in line for line in self.weir.lines), 1)


class Retries(TestCase):
    def setUp(self):
        self.good = self.start(Upstream(named("good")))

    def weir(self, bad, retry="", more=""):
        balance = 'balance = "round_robin"\neject = { failures = 1000 }\n'
        return self.start(Weir(several(entry(bad.port, "weight = 100"), entry(self.good.port),
                                       more=f"{balance}retry = {{ {retry} }}\n{more}")))

    def bad(self, status="503 Busy"):
        return self.start(Upstream(answer(status=status)))

    def silent(self):
        return self.start(Upstream(lambda exchange: exchange.close()))

    def test_configured_status_causes_a_retry(self):
        bad = self.bad()
        self.assertEqual(self.weir(bad).get("/").status, 503)
        weir = self.weir(bad, 'on = ["503"]')
        self.assertEqual(weir.get("/").body, b"good")
        self.await_metric(weir, 1, "weir_upstream_retries_total")
        with weir.connect() as client:
            self.assertEqual(client.request("POST", "/", body=b"x").status, 503, "POST is not idempotent")
            self.assertEqual(client.request("PUT", "/", body=b"x").body, b"good")

    def test_request_ends_if_the_client_leaves_during_the_pause_before_a_retry(self):
        def busy(exchange):  # sends a response whose body is not complete yet
            exchange.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 100000\r\n\r\nfirst")
            exchange.wait_for_close()

        bad = self.start(Upstream(busy))
        weir = self.weir(bad, 'on = ["503"], backoff = "2s", budget = "100%"')
        for gone in range(1, 5):  # several rounds, because weir's pause before a retry is random
            with weir.connect() as client:
                client.send(request_bytes("GET", "/"))
                eventually(lambda: len(bad.exchanges) == gone, "the first server was tried")
        self.await_metric(weir, 0, "weir_connections_open")
        self.assertEqual(weir.get("/").body, b"good")

    def test_response_with_a_retried_status_is_forwarded_if_no_other_server_is_left(self):
        bad = self.bad()
        away = closed_port()
        weir = self.start(Weir(several(entry(bad.port), entry(away), more='balance = "round_robin"\nretry = { on = ["503"] }\n')))
        weir.get("/")  # one of these two requests finds that the other server is down
        weir.get("/")
        eventually(lambda: weir.metric("weir_upstream_ejections_total") >= 1, "the unreachable server is ejected")
        self.assertEqual({weir.get("/").status for _ in range(4)}, {503})

    def test_request_retried_because_of_a_stale_connection_counts_once_towards_max_in_flight(self):
        served = set()

        def once(exchange):  # the server closes the connection before its second request
            if exchange.connection in served:
                exchange.close()
            else:
                served.add(exchange.connection)
                exchange.send(answer(b"fresh"))

        weir = self.start(Weir(several(entry(self.start(Upstream(once)).port, "max_in_flight = 1"))))
        with weir.connect() as client:
            self.assertEqual([client.get("/").status for _ in range(6)], [200] * 6)

    def test_request_retried_because_of_a_stale_connection_uses_one_unit_of_the_server_limit(self):
        served = set()

        def once(exchange):
            if exchange.connection in served:
                exchange.close()
            else:
                served.add(exchange.connection)
                exchange.send(answer(b"fresh"))

        weir = self.start(Weir(several(entry(self.start(Upstream(once)).port, 'limit = "4/day"'))))
        with weir.connect() as client:
            self.assertEqual([client.get("/").status for _ in range(5)], [200] * 4 + [503])

    def test_request_that_was_not_sent_is_retried_with_any_method(self):
        """The server has closed its reading side of a unix socket. weir notices this only when it writes."""
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-unix-"))
        listener = self.start(socket.socket(socket.AF_UNIX))
        listener.bind(f"{folder}/server")
        listener.listen()
        got, asked = [], threading.Event()

        def serve():
            for _ in range(2):
                server = listener.accept()[0]
                with server:
                    got.append(server.recv(1000).split(b" ")[0])
                    server.shutdown(socket.SHUT_RD)
                    server.sendall(answer())
                    asked.wait(PATIENCE)

        threading.Thread(target=serve, daemon=True).start()
        weir = self.start(Weir(several(f'"unix:{folder}/server"')))
        with weir.connect() as client:
            self.assertEqual(client.get("/").status, 200)
            client.send(request_bytes("POST", "/", body=b"x"))
            time.sleep(0.2)  # time for weir to write to the server
            asked.set()
            self.assertEqual(client.read().status, 200)
        self.assertEqual(got, [b"GET", b"POST"])

    def test_request_that_may_have_been_executed_is_not_retried(self):
        bad = self.silent()
        weir = self.weir(bad)
        with weir.connect() as client:
            self.assert_own_error(client.request("POST", "/", body=b"x"), 502)
        self.assertEqual(len(bad.exchanges) + len(self.good.exchanges), 1)

    def test_retry_attempts_set_to_one_disables_retries(self):
        weir = self.weir(self.silent(), "attempts = 1")
        self.assert_own_error(weir.get("/"), 502)

    def test_retry_budget_bounds_the_retries(self):
        bad = self.silent()
        weir = self.start(Weir(several(entry(bad.port, "weight = 100"), entry(self.good.port, "weight = 1"),
                                       more='balance = "round_robin"\neject = { failures = 1000 }\n'
                                            'retry = { budget = "10%", backoff = "0s" }', server="").replace("workers = 2", "workers = 1")))
        statuses = [weir.get("/").status for _ in range(101)]  # one of these requests is sent to the good server first
        self.assertEqual(statuses.count(200), 20 + 1, "the reserve of ten retries, and ten percent of the requests")
        self.await_metric(weir, 80, "weir_upstream_retries_denied_total")

    def test_all_attempts_of_a_request_share_one_deadline(self):
        never = [self.start(Upstream(lambda exchange: exchange.wait_for_close())) for _ in range(3)]
        weir = self.start(Weir(several(*(entry(each.port) for each in never),
                                       more='timeouts = { response = "30s", total = "300ms" }\nretry = { attempts = 3 }')))
        head, in_chunks = b"PUT / HTTP/1.1\r\nHost: a\r\n", b"Transfer-Encoding: chunked\r\n\r\n"
        for number, parts in enumerate(((head + b"\r\n",), (head + b"Content-Length: 1\r\n\r\nx",), (head + in_chunks + chunked(b"x"),),
                                        (head + b"Content-Length: 1\r\n\r\n", b"x"), (head + in_chunks, chunked(b"x"))), 1):
            with self.subTest(parts), weir.connect() as client:
                for part in parts:
                    client.send(part)
                    eventually(lambda: sum(len(each.exchanges) for each in never) == number, "a server has the request")
                began = time.monotonic()
                self.assert_own_error(client.read(), 504)
                self.assertLess(time.monotonic() - began, PATIENCE / 3)
        self.assertEqual(sum(len(each.exchanges) for each in never), number, "no other server has the request")

    def test_total_timeout_does_not_run_while_the_client_sends_its_body(self):
        weir = self.start(Weir(config(self.good.port, upstream='timeouts = { total = "300ms" }')))
        with weir.connect() as client:
            client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx")
            time.sleep(0.6)
            client.send(b"y")
            self.assertEqual(client.read().body, b"good")


class HonorUpstreamRetryAfter(TestCase):
    """The setting honor_upstream_retry_after."""

    ROUTES = """
[[route]]
match = { path = "/honors" }
upstream = "api"
honor_upstream_retry_after = true
[[route]]
upstream = "api"
"""

    def test_retry_after_of_an_upstream_429_applies_to_all_clients(self):
        upstream = self.start(Upstream(answer(b"slow down", "429 Too Many", "Retry-After: 1000\r\n")))
        weir = self.start(Weir(config(upstream.port, routes=self.ROUTES, rules=rule("few", "3/day"))))
        passed = weir.get("/other")
        self.assertEqual((passed.status, passed["retry-after"], passed.body), (429, "1000", b"slow down"))
        self.assertEqual(weir.get("/honors").body, b"slow down", "the first request gets the response of the upstream")
        for _ in range(3):
            answered = weir.get("/honors")
            self.assert_own_error(answered, 429)
            self.assertIn(int(answered["retry-after"]), range(900, 1001))
        self.assertEqual(len(upstream.exchanges), 2)
        self.await_metric(weir, 3, "weir_upstream_paused_total")
        self.assertEqual(weir.get("/other").body, b"slow down",
                         "routes without honor_upstream_retry_after are not paused, and no request was charged")

    def test_retry_after_may_be_a_date_in_any_of_three_forms(self):
        """See RFC 9110 §5.6.7."""
        for form in ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"):
            date = time.strftime(form, time.gmtime(time.time() + 1800))
            upstream = self.start(Upstream(answer(b"slow down", "429 Too Many", f"Retry-After: {date}\r\n")))
            weir = self.start(Weir(config(upstream.port, routes=self.ROUTES)))
            self.assertEqual(weir.get("/honors")["retry-after"], date, "retry_after is forwarded unchanged")
            answered = weir.get("/honors")
            self.assert_own_error(answered, 429)
            self.assertIn(int(answered["retry-after"]), range(1200, 1801), date)


if __name__ == "__main__":
    main()
