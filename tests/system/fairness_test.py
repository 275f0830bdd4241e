#!/usr/bin/env python3
"""A client that sends very many requests does not harm the other clients of its worker: weir serves them at the same time, and
continues to run."""

import pathlib
import resource
import signal
import tempfile
import threading

from harness import SANITIZED, Client, TestCase, Upstream, Weir, answer, config, eventually, main, request_bytes, rule

KEYS = "".join(f'[[key]]\nkey = "{name}"\n' for name in ("greedy", "modest", "third", "leaving"))
ANSWER_ITSELF = '[[route]]\nrespond = { status = 204 }'


class WorkerFairness(TestCase):
    def test_pipelining_client_does_not_delay_other_clients(self):
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-test-"))
        log = pathlib.Path(folder) / "access.log"
        text = config(1, routes=ANSWER_ITSELF).replace('access = "off"', f'access = "{log}"').replace("workers = 2", "workers = 1")
        weir = self.start(Weir(text))
        count = 2000
        with weir.connect() as greedy, weir.connect() as modest:
            for client in (greedy, modest):
                self.assertEqual(client.get("/warm").status, 204)
            weir.signal(signal.SIGSTOP)  # so that weir finds the requests of both clients when it continues
            greedy.send(request_bytes("GET", "/greedy") * count)
            modest.send(request_bytes("GET", "/modest"))
            weir.signal(signal.SIGCONT)
            self.assertEqual(modest.read().status, 204)
            for _ in range(count):
                greedy.read()
        eventually(lambda: log.read_text().count("\n") == count + 3, "every request is in the log")
        lines = log.read_text().splitlines()
        place = next(number for number, line in enumerate(lines) if "/modest" in line)
        self.assertLess(place, 200)

    def test_client_that_sends_only_empty_lines_gets_400(self):
        weir = self.start(Weir(config(1, routes=ANSWER_ITSELF)))
        with weir.connect() as client:
            client.send(b"\r\n" * 8 + request_bytes("GET", "/"))
            self.assertEqual(client.read().status, 204)
        with weir.connect() as client:
            client.send(b"\r\n" * 10)
            self.assertEqual(client.read().status, 400)


class SharedQueue(TestCase):
    """One client fills a queue that it shares with other clients. No place in the queue is reserved for a client."""

    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, limit="1/60s", queue=6, more="", client='keys = "keys.toml"', **options):
        text = rule("queue", limit, algorithm='"leaky_bucket"', key="[]", queue=queue, **options) + more
        weir = self.start(Weir(config(self.upstream.port, client=client, rules=text), {"keys.toml": KEYS}))
        self.assertEqual(weir.get("/").status, 200)
        return weir

    def send(self, weir, name, source="127.0.0.1", **headers):
        client = self.start(Client(weir.port, source=source))
        client.send(request_bytes("GET", "/", {"X-API-Key": name, **headers}))
        return client

    def enqueue(self, weir, name, **headers):
        depth = weir.metric("weir_queue_depth")
        client = self.send(weir, name, **headers)
        eventually(lambda: weir.metric("weir_queue_depth") == depth + 1, f"{name} waits")
        return client

    def test_new_client_displaces_a_request_of_the_client_with_most_queued_requests(self):
        weir = self.weir(more=rule("spent", "100/day", key='["api_key"]'))
        greedy = [self.enqueue(weir, "greedy") for _ in range(6)]
        self.assertEqual(weir.get("/", X_API_Key="greedy").status, 429)
        for number in range(3):
            self.send(weir, "modest")
            loser = greedy.pop().read()
            self.assertEqual((loser.status, loser.json()["rule"]), (429, "queue"))
            self.assertIn(int(loser["retry-after"]), range(1, 61))
            self.await_metric(weir, number + 1, "weir_queue_refused_total", reason="levelled")
        self.assertEqual(weir.get("/", X_API_Key="modest").status, 429, "the client would have more places than the other client")
        self.assertEqual(weir.get("/", X_API_Key="greedy").status, 429, "the displaced client gets no place again")
        self.send(weir, "third")  # of equal requests, the request with the latest departure is displaced
        self.await_metric(weir, 4, "weir_queue_refused_total", reason="levelled")
        self.assertEqual(weir.metric("weir_queue_depth"), 6)
        for client in greedy:
            client.leave()
        eventually(lambda: weir.metric("weir_queue_depth") == 3, "three requests have left the queue")
        self.assertEqual(len(self.upstream.exchanges), 1)

    def test_displaced_request_is_not_charged_by_other_rules(self):
        weir = self.weir("1/2s", queue=2, more=rule("two", "2/day", key='["api_key"]'))
        greedy = [self.enqueue(weir, "greedy") for _ in range(2)]
        modest = self.send(weir, "modest")
        self.assertEqual(greedy[1].read().json()["rule"], "queue")
        self.assertEqual([greedy[0].read().status, modest.read().status], [200, 200])
        again = [weir.get("/", X_API_Key="greedy") for _ in range(2)]
        self.assertEqual([again[0].status, again[1].status, again[1].json()["rule"]], [200, 429, "two"])

    def test_client_that_leaves_stays_charged_for_a_request_that_displaced_another_request(self):
        """Without the charge, a client could displace all other clients one after another for free."""
        weir = self.weir(queue=2, more=rule("two", "2/day", key='["api_key"]'))
        greedy = [self.enqueue(weir, "greedy") for _ in range(2)]
        leaving = self.send(weir, "leaving")
        self.assertEqual(greedy[1].read().json()["rule"], "queue")
        self.await_metric(weir, 1, "weir_requests_total", code="429")  # the displaced request has left the queue
        self.await_metric(weir, 2, "weir_queue_depth")  # the new request has joined the queue
        leaving.leave()
        eventually(lambda: weir.metric("weir_queue_depth") == 1, "the request has left the queue")
        self.enqueue(weir, "leaving").leave()  # this request displaced no other request
        eventually(lambda: weir.metric("weir_queue_depth") == 1, "the request has left the queue")
        self.enqueue(weir, "leaving")
        self.assertEqual(weir.get("/", X_API_Key="leaving").json()["rule"], "two")

    def test_retry_after_of_a_displaced_request_is_the_time_when_the_queue_has_room(self):
        """Two requests that cost two units (200 s) each wait. After 100 s the first request has been sent, and the queue has room
        for another request."""
        weir = self.weir("1/100s", queue=2, cost='{ header = "X-Cost" }')
        greedy = [self.enqueue(weir, "greedy", **{"X-Cost": "2"}) for _ in range(2)]
        self.send(weir, "modest", **{"X-Cost": "2"})
        self.assertIn(int(greedy[1].read()["retry-after"]), range(11, 101))


    def test_client_that_invents_api_keys_counts_as_one_client_in_a_queue(self):
        """weir does not verify these API keys. A client that invents keys must not get several places in the queue, whatever
        unknown_keys is set to."""
        for client in ("", 'keys = "keys.toml"', 'keys = "keys.toml"\nunknown_keys = "accept"'):
            with self.subTest(client):
                weir = self.weir(client=client)
                inventive = [self.enqueue(weir, f"invented-{number}") for number in range(6)]
                self.assertEqual(weir.get("/", X_API_Key="invented-6").status, 429, "a seventh invented key gets no place")
                for _ in range(3):
                    self.send(weir, "also-invented", source="127.0.0.5")
                    self.assertEqual(inventive.pop().read().status, 429)
                self.await_metric(weir, 3, "weir_queue_refused_total", reason="levelled")
                self.assertEqual(weir.get("/", X_API_Key="once-more").status, 429, "an invented key displaces no request")
                self.await_metric(weir, 3, "weir_queue_refused_total", reason="levelled")


class ResourceShortage(TestCase):
    def test_soft_descriptor_limit_is_raised_to_the_hard_limit(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            weir = self.start(Weir(config(1, routes=ANSWER_ITSELF, server="max_connections = 10_000_000")))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.assertEqual(resource.prlimit(weir.pid, resource.RLIMIT_NOFILE), (hard, hard))
        if hard != resource.RLIM_INFINITY and hard < 20_000_000:  # otherwise the system's limit is high enough
            weir.wait_for(r"warning max_connections = 10000000 needs up to \d+ file descriptors, but the system allows")

    def test_lack_of_descriptors_is_not_counted_as_an_upstream_failure(self):
        if SANITIZED:
            return  # UndefinedBehaviorSanitizer opens a pipe to test memory; without descriptors it would report bad memory
        upstream = self.start(Upstream())
        weir = self.start(Weir(config(upstream.port).replace("workers = 2", "workers = 1")))
        with weir.connect() as client:
            client.send(b"GET / HT")  # accepted, but not forwarded yet
            eventually(lambda: weir.metric("weir_connections_open") == 1, "the connection is accepted")
            used = len(list(pathlib.Path(f"/proc/{weir.pid}/fd").iterdir()))
            before = resource.prlimit(weir.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(weir.pid, resource.RLIMIT_NOFILE, (3, before[1]))
            self.assertGreater(used, 3)
            client.send(b"TP/1.1\r\nHost: a\r\n\r\n")
            response = client.read()
            resource.prlimit(weir.pid, resource.RLIMIT_NOFILE, before)
            self.assert_own_error(response, 503)
            self.assertEqual(client.get("/").status, 200)
        self.assertEqual(weir.metric("weir_upstream_failures_total"), 0)

    def test_lack_of_memory_ends_only_the_upload_that_needs_memory(self):
        if SANITIZED:
            return  # the shadow memory of sanitizers exceeds the limit of the address space
        for spare in range(4):  # the number of free buffers decides which step of a request fails
            with self.subTest(spare=spare):
                self.run_out_of_memory(spare)

    def run_out_of_memory(self, spare):
        bodies = threading.Event()
        upstream = self.start(Upstream(lambda exchange: (bodies.wait(15), exchange.send(answer()))))
        weir = self.start(Weir(config(upstream.port).replace("workers = 2", "workers = 1")))
        with weir.connect() as witness:
            witness.send(b"GET / HT")
            for client in [weir.connect() for _ in range(spare)]:
                client.send(b"GET / HT")
                eventually(lambda: weir.metric("weir_received_bytes_total") % 8 == 0, "the data was received")
                client.leave()
            eventually(lambda: weir.metric("weir_connections_accepted_total") == 1 + spare
                       and weir.metric("weir_connections_open") == 1, "the connections are closed")
            size = int(pathlib.Path(f"/proc/{weir.pid}/statm").read_text().split()[0]) * resource.getpagesize()
            before = resource.prlimit(weir.pid, resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
            uploads = [weir.connect() for _ in range(40)]
            for client in uploads:
                client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc")
            eventually(lambda: "dropped" in weir.log() or "cannot accept" in weir.log(), "memory has run out")
            for client in uploads:
                client.leave()
            resource.prlimit(weir.pid, resource.RLIMIT_AS, before)
            bodies.set()
            eventually(lambda: weir.metric("weir_connections_open") == 1, "the connections are closed")
            witness.send(b"TP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(witness.read().status, 200)


if __name__ == "__main__":
    main()
