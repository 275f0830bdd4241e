#!/usr/bin/env python3
"""One of several servers fails under load: which requests are lost or late, and which server is ejected."""

import itertools
import signal
import socket
import threading
import time

from harness import (PATIENCE, SANITIZED, Client, Echo, TestCase, Upstream, Weir, closed_port, config, eventually, main,
                     request_bytes)
from upstreams_test import entry, several


def gets(client):
    return client.get("/")


def puts(client):
    return client.request("PUT", "/", body=b"x" * 1000)


def uploads(client):
    """Sends a body in pieces, so that weir must forward the body while it arrives."""
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
    time.sleep(0.05)  # if the body arrived together with the head, weir could send it to another server
    client.send(b"def")
    return client.read()


class Load:
    """Several clients that send requests without pauses, until they are stopped. Records the results. `asks`: the requests,
    which the clients send in turn."""

    def __init__(self, weir, *asks, clients=4):
        self.weir, self.asks, self.stopped = weir, asks or (gets, puts), threading.Event()
        self.results = []  # (status or exception, seconds)
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
        """Waits until this number of further requests was answered."""
        end = len(self.results) + count
        eventually(lambda: len(self.results) >= end, f"{count} more requests are over", 2 * PATIENCE)

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(2 * PATIENCE)
        return self.results

    def lost(self):
        return [status for status, _ in self.stop() if status != 200]


class UpstreamFailures(TestCase):
    """One of three servers fails under load. Every request that can be retried is answered by the other servers."""

    # Even on a busy machine, the time limits of 300 ms below cannot delay a request for this long. So a later
    # response shows that weir has waited for another time limit.
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
        """Starts a load that ends before the weir ends. Otherwise the load would reach other programs on weir's port."""
        load = Load(weir, *asks, **options)
        self.addCleanup(load.stop)
        return load

    def assert_none_late(self, load):
        self.assertLess(max(seconds for _, seconds in load.stop()), self.LATE)

    def assert_none_lost_or_late(self, load):
        self.assertEqual(load.lost(), [])
        self.assert_none_late(load)

    def assert_put_out(self, weir, upstream):
        weir.wait_for(rf"server 127\.0\.0\.1:{upstream.port} is ejected for .*: too many failed responses")

    def assert_few_lost(self, load):
        """Checks that few requests were lost: at most the requests that caused the ejection of the server, and the requests that
        the server had at that time."""
        lost = load.lost()
        self.assertIn(len(lost), range(3, 3 + load.clients), lost)
        self.assert_none_late(load)
        return lost

    def test_killed_server_is_ejected_and_used_again_after_its_restart(self):
        upstream = Upstream()
        weir = self.weir(upstream.port, 'eject = { least = "100ms", most = "200ms" }')
        load = self.load(weir)
        load.pass_on()
        upstream.__exit__()
        weir.wait_for(rf"server 127\.0\.0\.1:{upstream.port} is ejected for .*: no connection")
        load.pass_on()
        again = self.start(Upstream(port=upstream.port))
        weir.wait_for(rf"server 127\.0\.0\.1:{upstream.port} is back")
        eventually(lambda: len(again.exchanges) > 20, "the server gets its share again")
        self.assert_none_lost_or_late(load)

    def test_every_ejection_is_counted_but_logged_only_once_a_minute(self):
        weir = self.weir(closed_port(), 'eject = { least = "20ms", most = "50ms" }')
        began = time.monotonic()
        load = self.load(weir)
        eventually(lambda: weir.metric("weir_upstream_ejections_total") >= 20, "the server is ejected again and again")
        load.stop()
        lines = [line for line in weir.lines if "ejected" in line and "server 127" in line]
        self.assertIn("is ejected for", lines[0])
        self.assertLessEqual(len(lines), 1 + (time.monotonic() - began) / 60, lines)

    def test_ejections_are_counted_if_the_only_server_or_all_servers_fail(self):
        for ports in ([closed_port()], [closed_port(), closed_port()]):
            with self.subTest(ports):
                weir = self.start(Weir(config(*ports, upstream='eject = { least = "20ms", most = "50ms" }')))
                load = Load(weir, gets)
                eventually(lambda: weir.metric("weir_upstream_ejections_total") >= 10, "the servers are ejected again and again")
                load.stop()

    def test_server_that_sends_bytes_that_are_not_http_is_ejected(self):
        for garbage in (b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"HTTP/1.1 20", b"",
                        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with self.subTest(garbage):
                upstream = self.start(Upstream(lambda exchange: (exchange.send(garbage), exchange.close())))
                weir = self.weir(upstream.port)
                load = self.load(weir)
                self.assert_put_out(weir, upstream)
                load.pass_on()
                self.assert_none_lost_or_late(load)

    def test_server_with_truncated_responses_is_ejected(self):
        """A response that was partly forwarded cannot be retried. Only a few requests may reach a server that truncates
        responses."""
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
                self.assertTrue(all(isinstance(each, (EOFError, OSError)) for each in self.assert_few_lost(load)),
                                "the responses are truncated")
                self.await_metric(weir, len(load.lost()), "weir_upstream_failures_total")

    def test_server_that_stops_reading_uploads_is_ejected(self):
        upstream = self.start(Upstream(lambda exchange: (exchange.wire.read_exactly(3), self.over.wait(4 * PATIENCE))))
        weir = self.weir(upstream.port, self.FOR_GOOD)
        load = self.load(weir, uploads)
        self.assert_put_out(weir, upstream)
        load.pass_on()
        self.assertEqual(set(self.assert_few_lost(load)), {504})
        self.assertEqual(weir.metric("weir_client_errors_total"), 0)

    def test_ejected_server_is_readmitted_by_the_head_of_an_endless_response(self):
        """An event stream never ends, so the response head must be enough to readmit the server."""
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

    def test_response_head_that_is_too_large_is_not_counted_as_a_server_failure(self):
        large = self.start(Upstream())
        weir = self.start(Weir(several(entry(large.port), entry(closed_port()), more=self.FOR_GOOD.replace("3", "1"))))
        too_much = (b"X: " + 40_000 * b"a" + b"\r\n", 130 * b"Set-Cookie: a=b\r\n", b"Connection: " + 33 * b"x, " + b"\r\n")
        for number, lines in enumerate(too_much, 1):
            large.reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + lines + b"\r\n"
            for _ in range(3):
                with weir.connect() as client:
                    self.assert_own_error(client.get("/"), 502)
            self.await_metric(weir, 3 * number, "weir_upstream_oversized_heads_total", upstream="api")
            self.assertEqual(weir.metric("weir_upstream_healthy", server=f"127.0.0.1:{large.port}"), 1)
            self.assertEqual(len(large.exchanges), 3 * number, "the request is not sent to another server")

    def test_response_bytes_that_are_not_http_are_counted_as_a_server_failure(self):
        for garbage in (900 * b"<p>this is no HTTP</p>\n", 40_000 * b"x", b"HTTP/1.1 2OO OK\r\n" + 40_000 * b"a", b"SSH-2.0-x\r\n"):
            with self.subTest(garbage[:20]):
                wrong = self.start(Upstream())
                wrong.reply = lambda exchange, said=garbage: exchange.send(said)
                good = self.start(Upstream())
                weir = self.start(Weir(several(entry(wrong.port), entry(good.port), more=self.FOR_GOOD.replace("3", "1"))))
                for _ in range(3):
                    with weir.connect() as client:
                        self.assertEqual(client.get("/").status, 200)
                self.assertEqual(len(wrong.exchanges), 1, "the server is ejected")
                self.assertEqual(weir.metric("weir_upstream_oversized_heads_total", upstream="api"), 0)

    def test_server_that_stops_waiting_for_a_slow_body_is_not_counted_as_failed(self):
        upstream = self.start(Upstream(lambda exchange: exchange.close()))
        weir = self.start(Weir(config(upstream.port, upstream="eject = { failures = 1 }")))
        for _ in range(3):
            with weir.connect() as client:
                client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1")
                self.assert_own_error(client.read(), 502)
        self.assertEqual((weir.metric("weir_upstream_failures_total"), weir.metric("weir_upstream_ejections_total")), (0, 0))

    def test_client_that_leaves_during_the_response_does_not_eject_the_server(self):
        def endless(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nfirst")
            exchange.wait_for_close()

        upstream = self.start(Upstream(endless))
        weir = self.start(Weir(config(upstream.port, upstream='timeouts = { response = "60s" }\neject = { failures = 1 }')))
        for _ in range(3):
            with weir.connect() as client:
                client.send(request_bytes("GET", "/"))
                client.wire.read_until(b"first")
                client.leave()
        self.await_metric(weir, 3, "weir_client_errors_total", kind="left")
        self.assertEqual((weir.metric("weir_upstream_failures_total"), weir.metric("weir_upstream_ejections_total")), (0, 0))

    def test_invalid_body_of_a_client_is_not_counted_as_a_server_failure(self):
        def early(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nfirst")
            self.over.wait(4 * PATIENCE)

        upstream = self.start(Upstream(early))
        weir = self.start(Weir(config(upstream.port, server='body_timeout = "300ms"',
                                      upstream='timeouts = { response = "300ms" }\neject = { failures = 1 }')))
        for wrong in (b"zz\r\n", b""):  # an invalid chunk; or no bytes in time, which weir itself could have caused
            with weir.connect() as client:
                client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
                client.wire.read_until(b"first")
                client.send(wrong)
                with self.assertRaises((EOFError, ConnectionResetError)):
                    client.wire.read_exactly(1_000_000)
        self.await_metric(weir, 1, "weir_client_errors_total", kind="body_timeout")
        self.assertEqual((weir.metric("weir_upstream_failures_total"), weir.metric("weir_upstream_ejections_total")), (0, 0))

    def test_server_that_does_not_respond_is_ejected(self):
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

    def test_only_requests_that_can_be_retried_try_an_ejected_unresponsive_server(self):
        frozen = self.start(Upstream(lambda exchange: exchange.wait_for_close()))
        eject = 'eject = { least = "50ms", most = "20s" }\n'
        for more in (eject, eject + 'health = { path = "/", interval = "100ms", unhealthy_after = 1000 }\n'):
            with self.subTest(more):
                weir = self.weir(frozen.port, more)
                load = self.load(weir)
                weir.wait_for(rf"server 127\.0\.0\.1:{frozen.port} is ejected for .*: too many failed responses")
                load.lost()
                seen = len(frozen.exchanges)
                with weir.connect() as client:
                    for _ in range(20):
                        self.assertEqual(client.request("POST", "/", body=b"x").status, 200)
                        time.sleep(0.05)
                self.assertNotIn("POST", [each.method for each in frozen.exchanges[seen:]])

    def test_connect_attempts_of_a_request_share_one_deadline(self):
        """Connections to a listener with a full backlog get no answer, as with a host that is down."""
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

    def test_unit_of_the_server_limit_is_refunded_if_the_connection_fails(self):
        port = closed_port()
        weir = self.start(Weir(several(entry(port, 'limit = "1/day"'))))
        for _ in range(3):
            self.assert_own_error(weir.get("/"), 502)

    def test_all_servers_are_tried_if_all_servers_are_ejected(self):
        upstream = Upstream()
        weir = self.start(Weir(several(entry(closed_port()), entry(upstream.port), entry(closed_port()),
                                       more='eject = { least = "1h", most = "1h" }')))
        upstream.__exit__()
        for _ in range(3):
            self.assert_own_error(weir.get("/"), 502)
        self.start(Upstream(port=upstream.port))
        self.assertEqual(weir.get("/").status, 200, "the server is tried at once, though it is ejected for an hour")


if __name__ == "__main__":
    main()
