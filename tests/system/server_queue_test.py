#!/usr/bin/env python3
"""Requests that wait for a free server of an upstream (max_in_flight, limit)."""

import signal
import threading
import time

from harness import PATIENCE, Client, TestCase, Upstream, Weir, answer, eventually, main, request_bytes, rule
from upstreams_test import entry, several

BY_PATH = '[[route]]\nmatch = {{ path = "/{0}" }}\nupstream = "api"\npriority = {0}\n'


class ServerQueue(TestCase):
    def setUp(self):
        self.tokens = threading.Semaphore(0)
        self.upstream = self.start(Upstream(self.reply))

    def reply(self, exchange):
        if exchange.target == "/health":
            return exchange.send(answer())
        self.tokens.acquire(timeout=PATIENCE)
        return exchange.send(answer(exchange.target.encode()))

    def asked(self):
        return [exchange.target for exchange in self.upstream.exchanges if exchange.target != "/health"]

    def weir(self, *entries, more="", bound="max_in_flight = 1", **sections):
        """Starts a weir with these servers, or with one server that has the bound `bound`. No request waits long enough to be
        refused."""
        return self.start(Weir(several(*(entries or [entry(self.upstream.port, bound)]), more=f'max_wait = "{PATIENCE}s"\n{more}', **sections)))

    def begin(self, weir, path="/"):
        client = self.start(Client(weir.port))
        client.send(request_bytes("GET", path))
        return client

    def hold(self, weir, waiting, paths=None):
        """Starts one request that uses the server, and this number of requests that wait for the server."""
        clients = [self.begin(weir)]
        eventually(lambda: self.upstream.exchanges, "the upstream has the request")
        for path in paths or ["/"] * waiting:
            clients.append(self.begin(weir, path))
            self.await_metric(weir, len(clients) - 1, "weir_upstream_queue_depth")
        return clients

    def test_queued_requests_of_all_workers_are_served_in_order_of_arrival(self):
        weir = self.weir(rules=rule(limit="100/day"))
        clients = self.hold(weir, 6)
        for client in clients:
            self.assertEqual(len(self.upstream.exchanges), clients.index(client) + 1)
            self.tokens.release()
            self.assertEqual(client.read().status, 200)
            if client is not clients[-1]:
                eventually(lambda: len(self.upstream.exchanges) == clients.index(client) + 2, "the next request is at the server")
        self.assertEqual(weir.metric("weir_upstream_queued_total"), 6)
        self.assertEqual([weir.metric(name) for name in ("weir_upstream_queue_depth", "weir_upstream_crowded_total")], [0, 0])

    def test_queued_request_with_a_higher_priority_is_served_first(self):
        weir = self.weir(routes="".join(BY_PATH.format(number) for number in (1, 4, 7)) + '[[route]]\nupstream = "api"')
        paths = ["/7", "/4", "/1", "/7", "/1"]
        self.hold(weir, 5, paths)
        for done in range(1, 6):
            self.tokens.release()
            eventually(lambda: len(self.upstream.exchanges) == done + 1, "the next request is at the server")
        self.assertEqual([exchange.target for exchange in self.upstream.exchanges[1:]], ["/1", "/1", "/4", "/7", "/7"])
        self.tokens.release()

    def test_new_requests_do_not_overtake_waiting_requests(self):
        weir = self.weir()
        first, waiting = self.hold(weir, 1)
        statuses = []
        threads = [threading.Thread(target=lambda: statuses.append(weir.get("/new").status)) for _ in range(4)]
        for thread in threads:
            thread.start()
        self.await_metric(weir, 5, "weir_upstream_queue_depth")
        self.tokens.release(6)
        self.assertEqual([first.read().body, waiting.read().body], [b"/", b"/"])
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(statuses, [200] * 4)
        self.assertEqual(self.upstream.exchanges[1].target, "/")

    def test_full_server_queue_refuses_at_once_without_a_charge(self):
        weir = self.weir(more="queue = 2", rules=rule("once", "4/day"))
        clients = self.hold(weir, 2)
        refused = weir.get("/")
        self.assert_own_error(refused, 503)
        self.assertEqual(refused["retry-after"], "1")
        self.await_metric(weir, 1, "weir_upstream_crowded_total")
        self.tokens.release(4)
        self.assertEqual([client.read().status for client in clients], [200] * 3)
        self.assertEqual([weir.get("/").status for _ in range(2)], [200, 429])

    def test_queued_request_is_refused_after_max_wait(self):
        text = several(entry(self.upstream.port, "max_in_flight = 1"), more='max_wait = "300ms"', rules=rule("once", "3/day"))
        weir = self.start(Weir(text))
        first = self.begin(weir)
        eventually(lambda: self.upstream.exchanges, "the upstream has the request")
        began = time.monotonic()
        self.assert_own_error(weir.get("/"), 503)
        self.assertGreaterEqual(time.monotonic() - began, 0.3)
        self.await_metric(weir, 1, "weir_upstream_crowded_total")
        self.tokens.release(3)
        self.assertEqual(first.read().status, 200)
        self.assertEqual([weir.get("/").status for _ in range(3)], [200, 200, 429])

    def test_wait_in_a_server_queue_is_bounded_by_timeouts_total(self):
        weir = self.weir(more='timeouts = { total = "200ms", response = "10s" }')
        held = self.begin(weir)
        eventually(lambda: self.upstream.exchanges, "the upstream has the request")
        self.assertIn(weir.get("/").status, (503, 504))
        self.assertIn(held.read().status, (503, 504))

    def test_next_queued_request_is_sent_if_the_client_of_the_first_request_leaves(self):
        weir = self.weir()
        first, leaving, last = self.hold(weir, 2)
        leaving.leave()
        self.await_metric(weir, 1, "weir_upstream_queue_depth")
        self.await_metric(weir, 1, "weir_client_errors_total", kind="left")
        self.tokens.release(2)
        self.assertEqual([first.read().status, last.read().status], [200, 200])
        self.assertEqual(len(self.upstream.exchanges), 2)

    def test_waiting_request_is_sent_to_whichever_server_is_free_first(self):
        other = self.start(Upstream(self.reply))
        weir = self.weir(entry(self.upstream.port, "max_in_flight = 1"), entry(other.port, "max_in_flight = 1"))
        held = [self.begin(weir), self.begin(weir)]
        eventually(lambda: self.upstream.exchanges and other.exchanges, "both servers have a request")
        waiting = self.begin(weir)
        self.await_metric(weir, 1, "weir_upstream_queue_depth")
        self.tokens.release()
        eventually(lambda: len(self.upstream.exchanges) + len(other.exchanges) == 3, "the next request is at a server")
        self.tokens.release(2)
        self.assertEqual([client.read().status for client in (*held, waiting)], [200] * 3)

    def test_queued_requests_get_the_units_of_a_server_limit_in_order(self):
        self.tokens.release(100)
        weir = self.weir(bound='limit = "5/s"')
        began = time.monotonic()
        clients = [self.begin(weir) for _ in range(8)]
        self.assertEqual([client.read().status for client in clients], [200] * 8)
        self.assertGreaterEqual(time.monotonic() - began, 0.55, "five requests at once, then one every fifth of a second")

    def test_request_whose_server_limit_refills_after_max_wait_is_refused_at_once(self):
        self.tokens.release(100)
        weir = self.start(Weir(several(entry(self.upstream.port, 'limit = "2/h"'))))
        self.assertEqual(self.statuses(weir.port, 2), [200, 200])
        refused = weir.get("/")
        self.assert_own_error(refused, 503)
        self.assertIn(int(refused["retry-after"]), range(1700, 1801))
        self.assertEqual(weir.metric("weir_upstream_queued_total"), 0)

    def test_waiting_request_is_sent_to_a_server_that_has_recovered(self):
        """The other server is full, and none of its requests ends."""
        well = threading.Event()

        def reply(exchange):
            exchange.send(answer(b"back", "200 OK" if well.is_set() else "500 No"))

        other = self.start(Upstream(reply))
        weir = self.weir(entry(self.upstream.port, "max_in_flight = 1"), entry(other.port),
                         more='health = { path = "/health", interval = "50ms", unhealthy_after = 1, healthy_after = 1 }')
        self.await_metric(weir, 0, "weir_upstream_healthy", server=other.address)
        self.begin(weir)
        eventually(lambda: self.asked(), "the upstream has the request")
        waiting = self.begin(weir)
        self.await_metric(weir, 1, "weir_upstream_queue_depth")
        well.set()
        self.assertEqual(waiting.read().body, b"back")
        self.assertEqual(weir.metric("weir_upstream_crowded_total"), 0)

    def test_reload_keeps_waiting_requests_and_their_order(self):
        text = several(entry(self.upstream.port, "max_in_flight = 1"), more=f'max_wait = "{PATIENCE}s"\nqueue = 9')
        weir = self.start(Weir(text))
        first, before = self.hold(weir, 1)
        (weir.folder / "weir.toml").write_text(text.replace("queue = 9", "queue = 10"))
        weir.signal(signal.SIGHUP)
        self.await_metric(weir, 1, "weir_reloads_total", result="ok")
        after = self.begin(weir, "/after")
        self.await_metric(weir, 2, "weir_upstream_queue_depth")
        self.tokens.release(3)
        self.assertEqual([client.read().body for client in (first, before, after)], [b"/", b"/", b"/after"])
        self.assertEqual(self.asked(), ["/", "/", "/after"])

    def test_request_that_waits_in_a_server_queue_is_not_served_after_the_drain_has_ended(self):
        weir = self.weir()
        _, waiting = self.hold(weir, 1)
        weir.process.terminate()
        weir.process.wait(PATIENCE)
        with self.assertRaises((OSError, EOFError, AssertionError)):
            self.assertEqual(waiting.read().status, 200)


if __name__ == "__main__":
    main()
