#!/usr/bin/env python3
"""Clients that use too many resources: too many connections, connections while no file descriptor is free, and large bodies."""

import contextlib
import http.client
import os
import pathlib
import resource
import threading
import time
import unittest

from harness import (PATIENCE, SANITIZED, Client, TestCase, Upstream, Weir, answer, chunked, config, eventually, main,
                     request_bytes, rule)

MIB = 1 << 20
UBSAN_OPENS = "to look at memory a sanitizer opens a pipe, and reports a fault where it cannot"
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: weir.test\r\n"
UPLOAD = b"POST /upload HTTP/1.1\r\nHost: weir.test\r\nContent-Length: 1000000\r\n\r\n"


def one_worker(text):
    return text.replace("workers = 2", "workers = 1")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class ConnectionBounds(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def client(self, weir, source="127.0.0.1"):
        return self.enterContext(Client(weir.port, source=source))

    def test_connections_of_one_address_are_bounded_over_all_workers(self):
        weir = self.start(Weir(config(self.upstream.port, server="max_connections_per_ip = 3")))
        mine = [self.client(weir, "127.0.0.2") for _ in range(3)]
        self.assertEqual([client.get("/").status for client in mine], [200] * 3)
        self.assertTrue(self.client(weir, "127.0.0.2").closed(), "a fourth connection is closed without a response")
        self.assertEqual([client.get("/").status for client in mine], [200] * 3, "the three open connections still work")
        self.assertEqual(self.client(weir, "127.0.0.3").get("/").status, 200, "another address can connect")
        self.await_metric(weir, 1, "weir_connections_crowded_total")
        mine[0].sock.close()

        def there_is_a_place():
            with Client(weir.port, source="127.0.0.2") as client, contextlib.suppress(OSError, EOFError):
                return client.get("/").status == 200

        eventually(there_is_a_place, "the place of the closed connection is free")

    def test_connections_of_trusted_proxies_are_not_bounded_per_address(self):
        weir = self.start(Weir(config(self.upstream.port, server="max_connections_per_ip = 1",
                                      client='trusted_proxies = ["127.0.0.1"]')))
        self.assertEqual([self.client(weir).get("/").status for _ in range(5)], [200] * 5)

    def test_idle_connections_are_closed_first_at_max_connections(self):
        going = threading.Event()

        def answer_late(exchange):
            if exchange.target == "/wait":
                going.wait(PATIENCE)
            exchange.send(answer())

        self.upstream.reply = answer_late
        weir = self.start(Weir(one_worker(config(self.upstream.port, server="max_connections = 4"))))
        busy = self.client(weir)
        busy.send(request_bytes("GET", "/wait"))
        half = self.client(weir)
        half.send(HALF_A_HEAD)
        idle = [self.client(weir) for _ in range(2)]
        self.assertEqual([client.get("/").status for client in idle], [200] * 2)
        for _ in range(2):
            self.assertEqual(self.client(weir).get("/").status, 200, "a new client is served")
        self.assertTrue(all(client.closed() for client in idle))
        self.assertGreaterEqual(weir.metric("weir_connections_evicted_total"), 2)
        self.assertEqual(weir.metric("weir_connections_evicted_total", was="begun"), 0)
        half.send(b"\r\n")
        going.set()
        self.assertEqual((half.read().status, busy.read().status), (200, 200), "requests in progress are answered")

    def test_connection_with_an_incomplete_head_is_closed_at_max_connections_if_none_is_idle(self):
        weir = self.start(Weir(one_worker(config(self.upstream.port, server='max_connections = 4\nhead_timeout = "60s"'))))
        halves = [self.client(weir) for _ in range(4)]
        for half in halves:
            half.send(HALF_A_HEAD)
        self.assertEqual(self.client(weir).get("/").status, 200, "a new client is served")
        self.assertGreaterEqual(weir.metric("weir_connections_evicted_total", was="begun"), 1)
        eventually(lambda: weir.metric("weir_client_errors_total", kind="head_timeout") >= 1,
                   "the closed connection counts as a head timeout")

    def test_new_connection_waits_at_max_connections_if_all_connections_are_busy(self):
        going = threading.Event()
        self.upstream.reply = lambda exchange: (going.wait(PATIENCE), exchange.send(answer()))
        weir = self.start(Weir(one_worker(config(self.upstream.port, server="max_connections = 2"))))
        busy = [self.client(weir) for _ in range(2)]
        for client in busy:
            client.send(request_bytes("GET", "/"))
        eventually(lambda: len(self.upstream.exchanges) == 2, "both requests are at the upstream")
        newcomer = self.client(weir)
        newcomer.send(request_bytes("GET", "/"))
        busy[0].sock.settimeout(PATIENCE)
        going.set()
        self.assertEqual([client.read().status for client in (*busy, newcomer)], [200] * 3)


class Descriptors(TestCase):
    def limit(self, weir, more):
        """Limits weir to `more` file descriptors in addition to the descriptors that are open."""
        used = len(os.listdir(f"/proc/{weir.pid}/fd"))
        hard = resource.prlimit(weir.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(weir.pid, resource.RLIMIT_NOFILE, (used + more, hard))

    @unittest.skipIf(SANITIZED, UBSAN_OPENS)
    def test_weir_does_not_spin_while_no_descriptors_are_free(self):
        upstream = self.start(Upstream())
        here = '[[route]]\nmatch = { path = "/here" }\nrespond = { status = 200 }\n[[route]]\nupstream = "api"'
        weir = self.start(Weir(config(upstream.port, server='head_timeout = "60s"', routes=here)))
        served = self.enterContext(weir.connect())
        self.assertEqual(served.get("/here").status, 200)
        served.send(HALF_A_HEAD)  # the connection is in use
        self.limit(weir, 8)
        crowd = [self.enterContext(weir.connect()) for _ in range(40)]
        for client in crowd:
            client.send(HALF_A_HEAD)
        weir.wait_for("cannot accept connections: Too many open files")
        before = cpu_seconds(weir.pid)
        time.sleep(1)
        self.assertLess(cpu_seconds(weir.pid) - before, 0.2, "seconds of CPU in one second")
        served.send(b"\r\n")
        self.assert_own_error(served.read(), 503)  # no descriptor is left for a connection to the upstream
        self.limit(weir, 200)
        for client in crowd:
            client.send(b"\r\n")
        self.assertEqual([client.read().status for client in crowd], [200] * 40, "all clients are served when descriptors are free")
        self.assertGreater(weir.metric("weir_accept_failures_total"), 0)

    @unittest.skipIf(SANITIZED, UBSAN_OPENS)
    def test_idle_connections_are_closed_to_free_descriptors(self):
        upstream = self.start(Upstream())
        weir = self.start(Weir(one_worker(config(upstream.port))))
        self.assertEqual(weir.get("/").status, 200)  # a connection to the upstream is now idle
        self.limit(weir, 4)
        for _ in range(12):
            client = self.enterContext(weir.connect())
            self.assertEqual(client.get("/").status, 200)
        self.assertGreater(weir.metric("weir_connections_evicted_total"), 0)

    @unittest.skipIf(SANITIZED, UBSAN_OPENS)
    def test_idle_connections_to_one_server_are_closed_for_a_connection_to_another_server(self):
        together = threading.Barrier(5)
        busy = self.start(Upstream(lambda exchange: (together.wait(PATIENCE), exchange.send(answer()))))
        other = self.start(Upstream())
        routes = f"""[[upstream]]
name = "other"
servers = ["127.0.0.1:{other.port}"]
[[route]]
match = {{ path = "/other" }}
upstream = "other"
[[route]]
upstream = "api"
"""
        weir = self.start(Weir(one_worker(config(busy.port, routes=routes))))
        clients = [self.enterContext(weir.connect()) for _ in range(5)]
        for client in clients:
            client.send(request_bytes("GET", "/"))
        self.assertEqual([client.read().status for client in clients], [200] * 5)
        taken = {int(each) for each in os.listdir(f"/proc/{weir.pid}/fd")}
        first_free = next(number for number in range(len(taken) + 1) if number not in taken)
        hard = resource.prlimit(weir.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(weir.pid, resource.RLIMIT_NOFILE, (first_free, hard))
        self.assertEqual(clients[0].get("/other").status, 200)

    def test_low_descriptor_limit_bounds_the_number_of_connections(self):
        upstream = self.start(Upstream())
        text = one_worker(config(upstream.port))
        with Weir(text, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (84, 84))) as weir:
            weir.wait_for("max_connections = 16384 needs up to 32832 file descriptors, but the system allows 84; weir accepts at most 10 connections")
            for _ in range(30):
                self.enterContext(weir.connect()).send(HALF_A_HEAD)
            eventually(lambda: weir.metric("weir_connections_open") == 10, "ten connections are open")
            self.assertEqual(weir.metric("weir_accept_failures_total"), 0)


class RefusedBodies(TestCase):
    """A client that sends its whole body before it reads must still receive the refusal."""

    def setUp(self):
        self.upstream = self.start(Upstream())

    def post(self, weir, size):
        connection = http.client.HTTPConnection("127.0.0.1", weir.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("POST", "/", b"x" * size)
            return connection.getresponse().status

    def test_large_body_of_a_refused_request_is_read_before_the_connection_closes(self):
        for expected, more in ((429, {"rules": rule("once", "1/day", key="[]")}), (413, {"server": 'max_body = "1MB"'})):
            weir = self.start(Weir(config(self.upstream.port, **more)))
            self.assertEqual(weir.get("/").status, 200)
            self.assertEqual([self.post(weir, 8 * MIB) for _ in range(5)], [expected] * 5)

    def refused(self, fields, server=""):
        """Returns a client that has sent the head of a request that weir refuses, and no part of its body."""
        weir = self.start(Weir(config(self.upstream.port, rules=rule("once", "1/day", match='{ path = "/few" }'), server=server)))
        self.assertEqual(weir.get("/few").status, 200)
        client = self.enterContext(weir.connect())
        client.send(b"POST /few HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n\r\n")
        return client

    def test_request_after_a_refused_request_with_a_body_is_served(self):
        smuggled = request_bytes("GET", "/smuggled")
        for fields, parts in ((b"Content-Length: %d" % len(3 * smuggled), [smuggled] * 3),
                              (b"Transfer-Encoding: chunked", [b"%x\r\n" % len(smuggled), smuggled, b"\r\n0\r\n", b"\r\n"])):
            with self.subTest(fields):
                client = self.refused(fields, 'head_timeout = "60s"')
                refusal = client.read()  # the refusal arrives before the body was sent
                self.assert_own_error(refusal, 429)
                self.assertNotIn("connection", refusal)
                for part in parts:
                    client.send(part)
                    time.sleep(0.05)
                self.assertEqual(client.get("/next").status, 200)
                self.assertEqual(self.upstream.exchanges[-1].target, "/next")
                self.assertNotIn("/smuggled", [exchange.target for exchange in self.upstream.exchanges])

    def test_refused_request_with_a_large_body_closes_the_connection(self):
        for fields, goes_on in ((b"Content-Length: 65536", True), (b"Content-Length: 65537", False),
                                (b"Content-Length: 9\r\nExpect: 100-continue", False)):
            refusal = self.refused(fields).read()
            self.assertEqual((refusal.status, refusal["connection"]), (429, None if goes_on else "close"))
        client = self.refused(b"Transfer-Encoding: chunked")
        self.assertEqual(client.read().status, 429)
        client.send(b"10000\r\n" + 0x10000 * b"x" + b"\r\n1\r\nx\r\n0\r\n\r\n" + request_bytes("GET", "/smuggled"))
        self.assertTrue(client.closed())
        self.assertNotIn("/smuggled", [exchange.target for exchange in self.upstream.exchanges])

    def test_skipping_the_body_of_a_refused_request_has_a_deadline(self):
        client = self.refused(b"Content-Length: 9", 'head_timeout = "300ms"')
        self.assertEqual(client.read().status, 429)
        client.send(b"slow")
        self.assertTrue(client.closed())

    def test_connection_whose_refused_body_is_being_skipped_is_closed_at_max_connections(self):
        weir = self.start(Weir(one_worker(config(self.upstream.port, server='max_connections = 1\nmax_body = "1KiB"'))))
        refused = self.enterContext(weir.connect())
        refused.send(UPLOAD)
        self.assertEqual(refused.read().status, 413)
        self.assertEqual(weir.get("/").status, 200)
        self.assertEqual(weir.metric("weir_connections_evicted_total"), 1)


class RouteSizes(TestCase):
    def test_route_can_have_its_own_head_and_body_bounds(self):
        upstream = self.start(Upstream())
        routes = "\n".join(f'[[route]]\nmatch = {{ path = "{path}" }}\nupstream = "api"\n{more}' for path, more in (
            ("/small", 'max_body = "1KiB"\nmax_head = "1KiB"'), ("/large", 'max_body = "1MiB"'), ("/*", "")))
        weir = self.start(Weir(config(upstream.port, server='max_body = "64KiB"', routes=routes)))

        def post(path, size, framing="length"):
            with weir.connect() as client:
                if framing == "length":
                    client.send(request_bytes("POST", path, body=b"x" * size))
                else:
                    client.send(request_bytes("POST", path, {"Transfer-Encoding": "chunked"}) + chunked(b"x" * size))
                return client.read().status

        for framing in ("length", "chunks"):
            with self.subTest(framing):
                self.assertEqual([post("/small", 1024, framing), post("/small", 1025, framing)], [200, 413])
                self.assertEqual([post("/large", MIB, framing), post("/large", MIB + 1, framing)], [200, 413])
                self.assertEqual([post("/other", 65536, framing), post("/other", 65537, framing)], [200, 413])
        heads = [weir.get(path, x_large="x" * 1000) for path in ("/small", "/large")]
        self.assert_own_error(heads[0], 431)
        self.assertEqual(heads[1].status, 200)


if __name__ == "__main__":
    main()
