#!/usr/bin/env python3
"""HTTP/2 streams that end in every phase of a request, in any order: weir holds nothing for them afterwards, and its counts are right."""

import contextlib
import random
import threading

from harness import PATIENCE, Redis, Weir, answer, eventually, get, main, rule
from http2_client import Http2Client
from protocol_pair import PairTestCase

RULES = "".join([
    rule("queue", "20/s", key='["ip"]', algorithm='"leaky_bucket"', queue=50, match='{ path = "/queue" }'),
    rule("words", "100000/day", key="[]", match='{ path = "/words", body_contains = "never", max_body = "256KiB" }'),
    rule("failures", "100000/3000day", key="[]", algorithm='"sliding_window"', charge='{ status = ["404"] }'),
    rule("tokens", "100000/3000day", key="[]", algorithm='"fixed_window"', cost='{ response_header = "X-Tokens", reserve = 1 }'),
    rule("shared", "1000000/3000day", key="[]", algorithm='"fixed_window"', store='"redis"', match='{ path = "/redis" }'),
]) + '[[rule]]\nname = "at-once"\nalgorithm = "concurrency"\nlimit = 9000\nkey = []\n'
MOST = 60  # requests at the server


class Chaos(PairTestCase):
    PATHS = ("/", "/queue", "/words", "/redis", "/held", "/half", "/large", "/404", "/none")

    def setUp(self):
        super().setUp()
        self.release = threading.Event()
        self.addCleanup(self.release.set)
        self.upstream.reply = self.reply

    def reply(self, exchange):
        if exchange.target == "/held":
            self.release.wait(PATIENCE)
        elif exchange.target == "/half":
            exchange.send(answer(b"", headers="Content-Length: 10\r\n", length=False) + b"half")
            exchange.wait_for_close()
            return
        exchange.read_body()
        status = "404 Not Found" if exchange.target == "/404" else "200 OK"
        exchange.send(answer(b"x" * (400_000 if exchange.target == "/large" else 10), status, "X-Tokens: 1\r\n"))

    def disturb(self, weir, seed):
        """Opens streams, sends parts of bodies, and resets some of the streams. Closes the connection while other streams are open."""
        chance, tls = random.Random(seed), self.tls if seed % 2 else None
        for _ in range(20):
            with contextlib.suppress(OSError), Http2Client(weir.ports[seed % 2], tls=tls, window=70_000) as client:
                for _ in range(4):
                    with client.corked():
                        opened = [self.open(client, chance) for _ in range(20)]
                    with client.patience(chance.choice((0.001, 0.01, 0.05))):
                        client.receive()
                    for stream in chance.sample(opened, 12):
                        if not client.answers[stream].ended and not client.answers[stream].was_reset:
                            client.reset(stream, chance.choice((0, 8)))

    def open(self, client, chance):
        path = chance.choice(self.PATHS)
        if chance.random() < 0.5:
            return client.open(path=path)
        stream = client.open("POST", path, end=False)
        with contextlib.suppress(OSError):
            client.h2.send_data(stream, b"x" * min(chance.choice((1, 1000, 10_000)), client.h2.local_flow_control_window(stream)),
                                end_stream=chance.random() < 0.5)
        return stream

    def test_streams_that_end_in_every_phase_leave_no_permit_queue_place_or_memory_in_use(self):
        seed = random.randrange(1 << 30)
        print("seed", seed, flush=True)
        redis = self.start(Redis())
        routes = '[[route]]\nmatch = { path = "/none" }\nrespond = { status = 204 }\n[[route]]\nupstream = "api"\npriority = 0\n'
        text = self.text('resets = "1000000/s"', rules=RULES, routes=routes, state=f'redis = {{ url = "{redis.url}", timeout = "2s" }}',
                         server=f"max_in_flight = {MOST}", upstream='timeouts = { abandoned = "200ms" }\nqueue = 10')
        servers = f'"127.0.0.1:{self.upstream.port}"'
        weir = self.start(Weir(text.replace(servers, f"{{ address = {servers}, max_in_flight = {MOST} }}"), self.files))
        eventually(weir.is_ready, "weir is connected to Redis")
        threads = [threading.Thread(target=self.disturb, args=(weir, seed + number), daemon=True) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * PATIENCE)
        self.release.set()
        for name in ("weir_http2_streams", "weir_queue_depth", "weir_upstream_queue_depth", "weir_body_memory_bytes"):
            self.await_metric(weir, 0, name)
        self.await_metric(weir, 0, "weir_connections", protocol="HTTP/2")
        client = self.client(weir)
        eventually(lambda: client.get("/")["ratelimit-policy"] and
                   get(weir.admin, "/api/keys?rule=at-once").json()["limits"][0]["remaining"] == 9000, "all permits are free")
        self.assert_answers(client)
        self.assert_places(client)
        ended = {code: int(weir.metric("weir_requests_total", code=code)) for code in ("200", "404", "429", "none")}
        print(f"requests by status: {ended}", flush=True)
        for code in ("200", "404", "none"):
            self.assertGreater(ended[code], 0, code)

    def assert_places(self, client):
        """Checks that weir does not count requests that have left the server: the upstream admits MOST new requests."""
        self.release.clear()
        before = len(self.upstream.exchanges)
        streams = [client.open(path="/held") for _ in range(MOST)]
        eventually(lambda: len(self.upstream.exchanges) == before + MOST, "the server has as many requests as it may")
        self.assert_own_error(client.get("/held"), 503)
        self.release.set()
        self.assertEqual({client.read(stream).status for stream in streams}, {200})


if __name__ == "__main__":
    main()
