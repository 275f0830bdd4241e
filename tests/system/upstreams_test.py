#!/usr/bin/env python3
"""Several servers behind one upstream: who gets what, and what becomes of requests when some of them fail."""

import itertools
import signal
import socket
import tempfile
import threading
import time

from harness import (PATIENCE, SANITIZED, WEIR, Client, Echo, Process, TestCase, Upstream, Weir, answer, chunked, closed_port, config, eventually, main,
                     request_bytes, rule, together)


def named(name):
    return answer(name.encode())


def servers(*entries):
    """The `servers` of an upstream, with the ports of Upstreams and Echos in place of addresses."""
    return ", ".join(entries)


def entry(port, more=""):
    return f'{{ address = "127.0.0.1:{port}"{", " + more if more else ""} }}'


def several(*entries, more="", **sections):
    """A weir before servers that are tables."""
    return config(upstream=more, **sections).replace("servers = []", f"servers = [{servers(*entries)}]")


class Balance(TestCase):
    def upstreams(self, count):
        return [self.start(Upstream(named(str(number)))) for number in range(count)]

    def ask(self, weir, count, **headers):
        with weir.connect() as client:
            return [client.get("/", **headers).body.decode() for _ in range(count)]

    def test_weights_share_what_comes(self):
        one, three = self.upstreams(2)
        for balance in ("round_robin", "least_in_flight"):
            with self.subTest(balance):
                weir = self.start(Weir(several(entry(one.port), entry(three.port, "weight = 3"),
                                               more=f'balance = "{balance}"')))
                answers = self.ask(weir, 80)
                self.assertEqual((answers.count("0"), answers.count("1")), (20, 60))

    def test_a_client_stays_on_its_server_and_moves_minimally(self):
        upstreams = self.upstreams(4)
        homes = {}
        for gone in (None, 2):
            kept = [entry(upstream.port) for number, upstream in enumerate(upstreams) if number != gone]
            weir = self.start(Weir(several(*kept, more='balance = "hash"\nhash_key = ["api_key"]')))
            for key in range(60):
                answers = set(self.ask(weir, 2, x_api_key=f"k{key}") + self.ask(weir, 1, x_api_key=f"k{key}"))
                self.assertEqual(len(answers), 1, "one client, one server, whatever the connection and the worker")
                home = answers.pop()
                if gone is None:
                    homes[key] = home
                elif homes[key] != str(gone):
                    self.assertEqual(home, homes[key], "its server is still there")
        self.assertEqual(set(homes.values()), {"0", "1", "2", "3"})

    def test_a_unix_socket_whose_queue_is_full_is_left_out_and_not_put_out(self):
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-unix-"))
        full = self.enterContext(socket.socket(socket.AF_UNIX))
        full.bind(f"{folder}/full")
        full.listen(0)
        with self.assertRaises(BlockingIOError):  # nobody accepts: what is not in the queue is turned away
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

    def test_a_unix_socket_is_a_server_like_others(self):
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-unix-"))
        process = Process([WEIR, "echo", "--listen", f"unix:{folder}/echo"])
        self.addCleanup(process.stop)
        process.wait_for("listening on")
        weir = self.start(Weir(several(f'"unix:{folder}/echo"')))
        self.assertEqual([weir.get("/").status for _ in range(3)], [200] * 3)


class Bounds(TestCase):
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

    def test_a_server_has_no_more_than_it_may(self):
        first, second = (self.start(Upstream(self.reply)) for _ in range(2))
        once = rule("once", "3/day")
        weir = self.start(Weir(several(entry(first.port, "max_in_flight = 1"), entry(second.port, "max_in_flight = 1"),
                                       more='queue = 0', rules=once)))
        clients = [self.begin(weir) for _ in range(2)]
        eventually(lambda: len(first.exchanges) == len(second.exchanges) == 1, "each server has one")
        refused = weir.get("/")
        self.assert_own_error(refused, 503)
        self.assertEqual(refused["retry-after"], "1")
        self.await_metric(weir, 1, "weir_upstream_crowded_total")
        self.gate.set()
        self.assertEqual([client.read().status for client in clients], [200, 200])
        self.assertEqual(weir.get("/").status, 200, "what no server got is not charged")
        self.assertEqual(weir.get("/").status, 429)

    def test_a_limited_server_leaves_it_to_the_other(self):
        self.gate.set()
        first, second = (self.start(Upstream(self.reply)) for _ in range(2))
        weir = self.start(Weir(several(entry(first.port, 'limit = "2/h"'), entry(second.port, 'limit = "3/h"'))))
        self.assertEqual(self.statuses(weir.port, 5), [200] * 5)
        self.assertEqual((len(first.exchanges), len(second.exchanges)), (2, 3))
        refused = weir.get("/")
        self.assert_own_error(refused, 503)
        self.assertIn(int(refused["retry-after"]), range(1100, 1201), "a third of an hour, less what has passed")


class Asked(TestCase):
    """Health checks, and what they change."""

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

    def test_a_server_that_is_not_well_gets_nothing_until_it_is(self):
        self.assertEqual(self.names(), {b"it", b"other"})
        self.assertEqual(self.healthy(), 1)
        for number, (ill, why) in enumerate(((False, "it answers 500"), (None, "it does not answer in time")), 1):
            self.well = ill
            self.weir.wait_for(rf"server {self.upstream.address} is down: {why}")
            self.assertEqual(self.healthy(), 0)
            self.assertEqual(self.names(), {b"other"})
            self.well = True
            self.weir.wait_for(rf"server {self.upstream.address} is back", number)
            self.assertEqual(self.names(), {b"it", b"other"})
        self.assertEqual(self.weir.metric("weir_upstream_ejections_total", server=self.upstream.address), 2)
        self.assertEqual(self.weir.metric("weir_upstream_ejections_total", server=self.other.address), 0)

    def test_what_is_asked(self):
        asked = eventually(lambda: [each for each in self.upstream.exchanges if each.target == "/health?deep"], "it is asked")
        self.assertEqual((asked[0].method, asked[0].head["host"], asked[0].head["connection"]),
                         ("GET", self.upstream.address, "close"))

    def test_a_change_is_told_once(self):
        self.well = False
        self.weir.wait_for(rf"server {self.upstream.address} is down")
        seen = len(self.upstream.exchanges)
        eventually(lambda: len(self.upstream.exchanges) > seen + 5, "it is asked on")
        self.assertEqual(sum("is down" in line for line in self.weir.lines), 1)


class Repetitions(TestCase):
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

    def test_a_status_can_ask_for_another_server(self):
        bad = self.bad()
        self.assertEqual(self.weir(bad).get("/").status, 503)
        weir = self.weir(bad, 'on = ["503"]')
        self.assertEqual(weir.get("/").body, b"good")
        self.await_metric(weir, 1, "weir_upstream_retries_total")
        with weir.connect() as client:
            self.assertEqual(client.request("POST", "/", body=b"x").status, 503, "it is not idempotent")
            self.assertEqual(client.request("PUT", "/", body=b"x").body, b"good")

    def test_a_client_that_leaves_while_weir_pauses_harms_nobody(self):
        def busy(exchange):  # an answer whose body is still on its way
            exchange.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 100000\r\n\r\nfirst")
            exchange.wait_for_close()

        bad = self.start(Upstream(busy))
        weir = self.weir(bad, 'on = ["503"], backoff = "2s", budget = "100%"')
        for gone in range(1, 5):  # how long the pause is, chance decides
            with weir.connect() as client:
                client.send(request_bytes("GET", "/"))
                eventually(lambda: len(bad.exchanges) == gone, "the first server was asked")
        self.await_metric(weir, 0, "weir_connections_open")
        self.assertEqual(weir.get("/").body, b"good")

    def test_an_answer_stays_where_nobody_else_could_give_another(self):
        bad = self.bad()
        away = closed_port()
        weir = self.start(Weir(several(entry(bad.port), entry(away), more='balance = "round_robin"\nretry = { on = ["503"] }\n')))
        weir.get("/")  # one of these finds that the other is away
        weir.get("/")
        eventually(lambda: weir.metric("weir_upstream_ejections_total") >= 1, "the one that is away is out")
        self.assertEqual({weir.get("/").status for _ in range(4)}, {503})

    def test_a_connection_that_died_of_age_needs_no_second_place(self):
        served = set()

        def once(exchange):  # the second request of a connection finds it closed
            if exchange.connection in served:
                exchange.close()
            else:
                served.add(exchange.connection)
                exchange.send(answer(b"fresh"))

        weir = self.start(Weir(several(entry(self.start(Upstream(once)).port, "max_in_flight = 1"))))
        with weir.connect() as client:
            self.assertEqual([client.get("/").status for _ in range(6)], [200] * 6)

    def test_a_connection_that_died_of_age_spends_no_unit(self):
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

    def test_a_request_that_may_have_been_carried_out_is_not_repeated(self):
        bad = self.silent()
        weir = self.weir(bad)
        with weir.connect() as client:
            self.assert_own_error(client.request("POST", "/", body=b"x"), 502)
        self.assertEqual(len(bad.exchanges) + len(self.good.exchanges), 1)

    def test_one_attempt_is_none_more(self):
        weir = self.weir(self.silent(), "attempts = 1")
        self.assert_own_error(weir.get("/"), 502)

    def test_the_budget_bounds_repetitions(self):
        bad = self.silent()
        weir = self.start(Weir(several(entry(bad.port, "weight = 100"), entry(self.good.port, "weight = 1"),
                                       more='balance = "round_robin"\neject = { failures = 1000 }\n'
                                            'retry = { budget = "10%", backoff = "0s" }', server="").replace("workers = 2", "workers = 1")))
        statuses = [weir.get("/").status for _ in range(101)]  # one of them goes to the good server first
        self.assertEqual(statuses.count(200), 20 + 1, "ten at first, and a tenth of all")
        self.await_metric(weir, 80, "weir_upstream_retries_denied_total")

    def test_all_attempts_together_have_a_deadline(self):
        never = [self.start(Upstream(lambda exchange: exchange.wait_for_close())) for _ in range(3)]
        weir = self.start(Weir(several(*(entry(each.port) for each in never),
                                       more='timeouts = { response = "30s", total = "300ms" }\nretry = { attempts = 3 }')))
        head, in_chunks = b"PUT / HTTP/1.1\r\nHost: a\r\n", b"Transfer-Encoding: chunked\r\n\r\n"
        for number, parts in enumerate(((head + b"\r\n",), (head + b"Content-Length: 1\r\n\r\nx",), (head + in_chunks + chunked(b"x"),),
                                        (head + b"Content-Length: 1\r\n\r\n", b"x"), (head + in_chunks, chunked(b"x"))), 1):
            with self.subTest(parts), weir.connect() as client:
                for part in parts:
                    client.send(part)
                    eventually(lambda: sum(len(each.exchanges) for each in never) == number, "a server has it")
                began = time.monotonic()
                self.assert_own_error(client.read(), 504)
                self.assertLess(time.monotonic() - began, PATIENCE / 3)
        self.assertEqual(sum(len(each.exchanges) for each in never), number, "and no other")

    def test_its_clock_stands_while_the_client_sends(self):
        weir = self.start(Weir(config(self.good.port, upstream='timeouts = { total = "300ms" }')))
        with weir.connect() as client:
            client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx")
            time.sleep(0.6)
            client.send(b"y")
            self.assertEqual(client.read().body, b"good")


class Expectations(TestCase):
    """Of clients that wait for the server's word, 100, before they send their body."""

    HEAD = " / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    TIMEOUTS = 'timeouts = { response = "300ms" }\n'
    PATIENT = 'body_timeout = "5s"\n'  # with clients; PATIENCE lasts longer

    def weir(self, *replies, more="", server=PATIENT):
        self.upstreams = [self.start(Upstream(reply)) for reply in replies]
        return self.start(Weir(several(*(entry(each.port) for each in self.upstreams), server=server,
                                       more='balance = "round_robin"\n' + self.TIMEOUTS + more)))

    @staticmethod
    def silent(exchange):
        exchange.wait_for_close()

    @staticmethod
    def well(exchange):
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        exchange.send(answer(exchange.read_body()))

    def ask(self, weir, method="POST"):
        """The last answer; the body is sent when a server asks for it."""
        with weir.connect() as client:
            client.send((method + self.HEAD).encode())
            answered = client.read()
            if answered.status == 100:
                client.send(b"abc")
                answered = client.read()
            return answered

    def assert_no_client_was_blamed(self, weir):
        self.assertEqual(weir.metric("weir_client_errors_total"), 0)

    def test_a_server_that_says_nothing_is_late_and_not_its_client(self):
        weir = self.weir(self.silent)
        for _ in range(2):
            self.assert_own_error(self.ask(weir), 504)
        self.await_metric(weir, 2, "weir_upstream_failures_total")
        self.assert_no_client_was_blamed(weir)

    def test_all_attempts_together_have_a_deadline_there_as_well(self):
        self.TIMEOUTS = 'timeouts = { response = "60s", total = "300ms" }\n'
        weir = self.weir(self.silent)
        self.assert_own_error(self.ask(weir), 504)
        self.assert_no_client_was_blamed(weir)

    def test_such_a_server_is_put_out(self):
        weir = self.weir(self.silent, self.well, more='eject = { failures = 1, least = "1h", most = "1h" }')
        answers = [self.ask(weir) for _ in range(6)]
        self.assertEqual(sorted(each.status for each in answers), [200] * 5 + [504])
        weir.wait_for(rf"server {self.upstreams[0].address} is out for .*: its answers fail")
        self.assert_no_client_was_blamed(weir)

    def test_a_body_that_has_not_come_yet_can_go_to_another_server(self):
        for silent in (self.silent, lambda exchange: exchange.close()):
            weir = self.weir(silent, self.well, more='retry = { budget = "100%" }\neject = { failures = 1000 }')
            answers = [self.ask(weir, "PUT") for _ in range(4)]
            self.assertEqual([(each.status, each.body) for each in answers], [(200, b"abc")] * 4)
            self.assertGreaterEqual(len(self.upstreams[0].exchanges), 1)
            self.assert_no_client_was_blamed(weir)

    def test_one_that_was_asked_for_by_a_server_that_dies_then_too(self):
        def dies(exchange):
            exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            exchange.close()

        weir = self.weir(dies, self.well, more='eject = { failures = 1000 }')
        for number in range(1, 5):
            with weir.connect() as client:
                client.send(("PUT" + self.HEAD).encode())
                self.assertEqual(client.read().status, 100)
                eventually(lambda: len(self.upstreams[1].exchanges) == number, "the other server has it")
                client.send(b"abc")
                while (answered := client.read()).status == 100:
                    pass
                self.assertEqual((answered.status, answered.body), (200, b"abc"))
        self.assertGreaterEqual(len(self.upstreams[0].exchanges), 1)

    def test_the_wait_for_the_word_is_no_slowness_of_the_client(self):
        def late(exchange):
            time.sleep(0.8)
            self.well(exchange)

        self.TIMEOUTS = ""
        weir = self.weir(late, server='min_rate = "1KiB"\nmin_rate_grace = "300ms"\n')
        self.assertEqual(self.ask(weir).body, b"abc")
        self.assert_no_client_was_blamed(weir)

    def test_after_the_word_it_is_the_clients_turn(self):
        weir = self.weir(self.well, server='body_timeout = "300ms"\n')
        with weir.connect() as client:
            client.send(("POST" + self.HEAD).encode())
            self.assertEqual(client.read().status, 100)
            self.assert_own_error(client.read(), 408)
        self.await_metric(weir, 1, "weir_client_errors_total", kind="body_timeout")
        self.assertEqual(weir.metric("weir_upstream_failures_total"), 0)


class LeftAlone(TestCase):
    """honor_upstream_retry_after."""

    ROUTES = """
[[route]]
match = { path = "/honors" }
upstream = "api"
honor_upstream_retry_after = true
[[route]]
upstream = "api"
"""

    def test_a_429_of_the_upstreams_stands_for_all(self):
        upstream = self.start(Upstream(answer(b"slow down", "429 Too Many", "Retry-After: 1000\r\n")))
        weir = self.start(Weir(config(upstream.port, routes=self.ROUTES, rules=rule("few", "3/day"))))
        passed = weir.get("/other")
        self.assertEqual((passed.status, passed["retry-after"], passed.body), (429, "1000", b"slow down"))
        self.assertEqual(weir.get("/honors").body, b"slow down", "the first that honours it")
        for _ in range(3):
            answered = weir.get("/honors")
            self.assert_own_error(answered, 429)
            self.assertIn(int(answered["retry-after"]), range(900, 1001))
        self.assertEqual(len(upstream.exchanges), 2)
        self.await_metric(weir, 3, "weir_upstream_paused_total")
        self.assertEqual(weir.get("/other").body, b"slow down", "routes that do not honour it go on; nothing was charged")


def gets(client):
    return client.get("/")


def puts(client):
    return client.request("PUT", "/", body=b"x" * 1000)


def uploads(client):
    """A body that weir has to pass on as it comes."""
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
    time.sleep(0.005)
    client.send(b"def")
    return client.read()


class Load:
    """Requests without pause by several clients, until they are stopped; what each came to. `asks`: what they do by turns."""

    def __init__(self, weir, *asks, clients=4):
        self.weir, self.asks, self.stopped = weir, asks or (gets, puts), threading.Event()
        self.results = []  # (status or the fault, seconds)
        self.clients = clients
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self):
        client, asks = None, itertools.cycle(self.asks)
        while not self.stopped.is_set():
            began = time.monotonic()
            try:
                client = client or Client(self.weir.port)
                answered = next(asks)(client)
                status, ends = answered.status, answered["connection"] == "close"
            except (OSError, EOFError) as fault:
                status, ends = fault, True
            self.results.append((status, time.monotonic() - began))
            if client and (ends or self.stopped.is_set()):
                client.sock.close()
                client = None

    def pass_on(self, count=200):
        """Until so many more were answered."""
        end = len(self.results) + count
        eventually(lambda: len(self.results) >= end, f"{count} more requests are over", 2 * PATIENCE)

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(2 * PATIENCE)
        return self.results

    def lost(self):
        return [status for status, _ in self.stop() if status != 200]


class Failures(TestCase):
    """Of three servers one fails under load: the others have an answer for every request that can be sent again."""

    # A request that waits for another deadline than that of 300 ms is late, whatever else a busy machine is about.
    LATE = 6 if SANITIZED else 3  # seconds
    TIMEOUTS = 'timeouts = { connect = "300ms", response = "300ms" }\nslow_start = "0s"\n'
    FOR_GOOD = 'eject = { failures = 3, least = "1h", most = "1h" }'

    def setUp(self):
        self.echoes = [self.start(Echo()) for _ in range(2)]
        self.over = threading.Event()
        self.addCleanup(self.over.set)

    def weir(self, port, more=""):
        return self.start(Weir(several(*(entry(echo.port) for echo in self.echoes), entry(port),
                                       more=self.TIMEOUTS + more)))

    def load(self, weir, *asks, **options):
        """It ends with the test, before its weir does: else it would find others at that port."""
        load = Load(weir, *asks, **options)
        self.addCleanup(load.stop)
        return load

    def assert_none_late(self, load):
        self.assertLess(max(seconds for _, seconds in load.stop()), self.LATE)

    def assert_none_lost_or_late(self, load):
        self.assertEqual(load.lost(), [])
        self.assert_none_late(load)

    def assert_put_out(self, weir, upstream):
        weir.wait_for(rf"server 127\.0\.0\.1:{upstream.port} is out for .*: its answers fail")

    def assert_few_lost(self, load):
        """As many as put a server out for good, and what was under way at it."""
        lost = load.lost()
        self.assertIn(len(lost), range(3, 3 + load.clients), lost)
        self.assert_none_late(load)
        return lost

    def test_a_server_that_is_killed_and_restarted(self):
        upstream = Upstream()
        weir = self.weir(upstream.port, 'eject = { least = "100ms", most = "200ms" }')
        load = self.load(weir)
        load.pass_on()
        upstream.__exit__()
        weir.wait_for(rf"server 127\.0\.0\.1:{upstream.port} is out for .*: it cannot be reached")
        load.pass_on()
        again = self.start(Upstream(port=upstream.port))
        weir.wait_for(rf"server 127\.0\.0\.1:{upstream.port} is back")
        eventually(lambda: len(again.exchanges) > 20, "it has its share again")
        self.assert_none_lost_or_late(load)

    def test_a_server_that_answers_garbage(self):
        for garbage in (b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"HTTP/1.1 20", b"",
                        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with self.subTest(garbage):
                upstream = self.start(Upstream(lambda exchange: (exchange.send(garbage), exchange.close())))
                weir = self.weir(upstream.port)
                load = self.load(weir)
                self.assert_put_out(weir, upstream)
                load.pass_on()
                self.assert_none_lost_or_late(load)

    def test_a_server_whose_answers_break_off_or_stop(self):
        """What went to a client cannot be taken back, but it is few of them that come upon such a server."""
        for begun, ends in ((b"Content-Length: 10\r\n\r\n", True), (b"Content-Length: 10\r\n\r\nabc", True),
                            (b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", True),
                            (b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n", True),
                            (b"Content-Length: 10\r\n\r\n", False), (b"Content-Length: 10\r\n\r\nabc", False)):
            def reply(exchange):
                exchange.send(b"HTTP/1.1 200 OK\r\n" + begun)
                exchange.close() if ends else exchange.wait_for_close()

            with self.subTest(begun, ends=ends):
                upstream = self.start(Upstream(reply))
                weir = self.weir(upstream.port, self.FOR_GOOD)
                load = self.load(weir)
                self.assert_put_out(weir, upstream)
                load.pass_on()
                self.assertTrue(all(isinstance(each, (EOFError, OSError)) for each in self.assert_few_lost(load)), "cut off")
                self.await_metric(weir, len(load.lost()), "weir_upstream_failures_total")

    def test_a_server_that_is_frozen_under_uploads(self):
        upstream = self.start(Upstream(lambda exchange: (exchange.wire.read_exactly(3), self.over.wait(4 * PATIENCE))))
        weir = self.weir(upstream.port, self.FOR_GOOD)
        load = self.load(weir, uploads)
        self.assert_put_out(weir, upstream)
        load.pass_on()
        self.assertEqual(set(self.assert_few_lost(load)), {504})
        self.assertEqual(weir.metric("weir_client_errors_total"), 0)

    def test_an_answer_that_lasts_brings_a_server_back(self):
        """A stream of events has no end to be waited for."""
        well, stream = threading.Event(), threading.Event()

        def reply(exchange):
            if not well.is_set():
                exchange.close()
                return
            exchange.send(b"HTTP/1.1 200 OK\r\n\r\nfirst")
            while not stream.wait(0.05):
                exchange.send(b"more")
            exchange.close()

        self.addCleanup(stream.set)
        upstream = self.start(Upstream(reply))
        weir = self.weir(upstream.port, 'eject = { failures = 1, least = "100ms", most = "100ms" }')
        load = self.load(weir, gets, clients=2)
        self.assert_put_out(weir, upstream)
        well.set()
        weir.wait_for(rf"server {upstream.address} is back")
        stream.set()
        load.stop()

    def test_who_leaves_an_answer_says_nothing_of_its_server(self):
        def endless(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nfirst")
            exchange.wait_for_close()

        upstream = self.start(Upstream(endless))
        weir = self.start(Weir(config(upstream.port, upstream='timeouts = { response = "60s" }\neject = { failures = 1 }')))
        for _ in range(3):
            with weir.connect() as client:
                client.send(request_bytes("GET", "/"))
                client.wire.read_until(b"first")
        self.await_metric(weir, 3, "weir_client_errors_total", kind="left")
        self.assertEqual((weir.metric("weir_upstream_failures_total"), weir.metric("weir_upstream_ejections_total")), (0, 0))

    def test_a_clients_bad_body_beside_an_answer_is_not_its_servers(self):
        def early(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nfirst")
            self.over.wait(4 * PATIENCE)

        upstream = self.start(Upstream(early))
        weir = self.start(Weir(config(upstream.port, server='body_timeout = "300ms"',
                                      upstream='timeouts = { response = "300ms" }\neject = { failures = 1 }')))
        for wrong in (b"zz\r\n", b""):  # no chunk; nothing in time, which the server may be waiting for
            with weir.connect() as client:
                client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
                client.wire.read_until(b"first")
                client.send(wrong)
                with self.assertRaises((EOFError, ConnectionResetError)):
                    client.wire.read_exactly(1_000_000)
        self.await_metric(weir, 1, "weir_client_errors_total", kind="body_timeout")
        self.assertEqual((weir.metric("weir_upstream_failures_total"), weir.metric("weir_upstream_ejections_total")), (0, 0))

    def test_a_server_that_is_frozen(self):
        frozen = self.start(Echo())
        weir = self.weir(frozen.port)
        load = self.load(weir)
        load.pass_on()
        frozen.signal(signal.SIGSTOP)
        try:
            self.assert_put_out(weir, frozen)
            load.pass_on()
        finally:
            frozen.signal(signal.SIGCONT)
        self.assert_none_lost_or_late(load)

    def test_no_request_that_cannot_be_sent_again_is_spent_on_one_that_is_frozen(self):
        frozen = self.start(Upstream(lambda exchange: exchange.wait_for_close()))
        eject = 'eject = { least = "50ms", most = "20s" }\n'
        for more in (eject, eject + 'health = { path = "/", interval = "100ms", unhealthy_after = 1000 }\n'):
            with self.subTest(more):
                weir = self.weir(frozen.port, more)
                load = self.load(weir)
                weir.wait_for(rf"server 127\.0\.0\.1:{frozen.port} is out for .*: its answers fail")
                load.lost()
                seen = len(frozen.exchanges)
                with weir.connect() as client:
                    for _ in range(20):
                        self.assertEqual(client.request("POST", "/", body=b"x").status, 200)
                        time.sleep(0.05)
                self.assertNotIn("POST", [each.method for each in frozen.exchanges[seen:]])

    def test_connecting_is_bounded_for_all_servers_together(self):
        """A listener whose backlog is full lets a connection hang, as a host that is away does."""
        full = [socket.create_server(("127.0.0.1", 0), backlog=0) for _ in range(4)]
        for listener in full:
            self.addCleanup(listener.close)
            for _ in range(2):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
                self.addCleanup(filler.close)
        weir = self.start(Weir(several(*(entry(listener.getsockname()[1]) for listener in full),
                                       more='timeouts = { connect = "400ms", connect_total = "400ms" }')))
        self.assert_own_error(weir.get("/"), 504)
        self.await_metric(weir, 1, "weir_upstream_failures_total")

    def test_a_unit_that_a_failed_connection_took_is_given_back(self):
        port = closed_port()
        weir = self.start(Weir(several(entry(port, 'limit = "1/day"'))))
        for _ in range(3):
            self.assert_own_error(weir.get("/"), 502)

    def test_where_all_fail_all_are_tried(self):
        upstream = Upstream()
        weir = self.start(Weir(several(entry(closed_port()), entry(upstream.port), entry(closed_port()),
                                       more='eject = { least = "1h", most = "1h" }')))
        upstream.__exit__()
        for _ in range(3):
            self.assert_own_error(weir.get("/"), 502)
        self.start(Upstream(port=upstream.port))
        self.assertEqual(weir.get("/").status, 200, "at once, though it is out for an hour")


if __name__ == "__main__":
    main()
