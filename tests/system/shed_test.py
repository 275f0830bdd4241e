#!/usr/bin/env python3
"""Under load weir rejects requests, beginning with those of the lowest priority. It never rejects health checks."""

import threading

from harness import Client, TestCase, Upstream, Weir, config, eventually, get, main, request_bytes

ROUTES = """
[[route]]
match = { path = "/health" }
respond = { status = 200, body = "well" }
priority = 9
[[route]]
match = { path = "/batch" }
upstream = "api"
priority = 9
[[route]]
match = { path = "/urgent" }
upstream = "api"
priority = 0
[[route]]
upstream = "api"
"""


class LoadShedding(TestCase):
    def setUp(self):
        self.gate = threading.Event()
        self.upstream = self.start(Upstream(self.reply))
        self.addCleanup(self.gate.set)

    def reply(self, exchange):
        self.gate.wait(60)
        exchange.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    def occupy(self, weir, path, count):
        """Sends this number of further requests, and waits until they have reached the upstream."""
        clients = []
        before = len(self.upstream.exchanges)
        for _ in range(count):
            client = Client(weir.port)
            self.addCleanup(client.sock.close)
            client.send(request_bytes("GET", path))
            clients.append(client)
        eventually(lambda: len(self.upstream.exchanges) == before + count, f"{count} requests of {path} are under way")
        return clients

    def assert_shed(self, weir, path):
        response = weir.get(path)
        self.assert_own_error(response, 503)
        self.assertEqual(response["retry-after"], "1")

    def test_requests_of_the_lowest_priority_are_rejected_first(self):
        weir = self.start(Weir(config(self.upstream.port, server="max_in_flight = 20", routes=ROUTES)))
        clients = self.occupy(weir, "/batch", 11)
        self.assert_shed(weir, "/batch")
        clients += self.occupy(weir, "/", 4)
        self.assert_shed(weir, "/")
        clients += self.occupy(weir, "/urgent", 5)
        self.assert_shed(weir, "/urgent")
        self.assertEqual(weir.get("/health").status, 200, "responses by weir itself are not shed")
        self.assertEqual(get(weir.admin, "/healthz").status, 200)
        self.assertEqual(get(weir.admin, "/readyz").status, 200)
        self.assertEqual([weir.metric("weir_shed_total", priority=priority) for priority in (0, 5, 9)], [1, 1, 1])
        self.gate.set()
        self.assertEqual([client.read().status for client in clients], [204] * 20)
        self.assertEqual(weir.get("/batch").status, 204, "requests are admitted again")
        self.assertEqual(weir.metric("weir_shed_total"), 3)


if __name__ == "__main__":
    main()
