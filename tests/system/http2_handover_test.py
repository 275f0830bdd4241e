#!/usr/bin/env python3
"""HTTP/2 requests during an upgrade or a drain, and rules with their state in Redis, also while Redis is
unreachable."""

import json
import pathlib
import subprocess
import tempfile
import threading

from harness import PATIENCE, WEIR, Client, Redis, Weir, answer, eventually, get, main, request_bytes, rule
from http2_client import Http2Client, Http2TestCase
from lineage import Lineage, adopt_orphans
from protocol_pair import Ask, PairTestCase


class Upgrades(Http2TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        adopt_orphans()

    def setUp(self):
        super().setUp()
        self.release = threading.Event()
        self.addCleanup(self.release.set)
        self.upstream.reply = self.reply

    def reply(self, exchange):
        exchange.read_body()
        if exchange.target.startswith("/held"):
            self.release.wait(PATIENCE)
        exchange.send(answer(exchange.target.encode()))

    def lineage(self, *rules, log=None):
        text = self.text(doors=[False], rules="".join(rules))
        if log:
            text = text.replace('access = "off"', f'access = "{log}"\nfields = ["usual", "replay"]')
        return self.start(Lineage(text, self.files))

    def open(self, client, count, path="/held"):
        """Opens streams, and waits until the server has their requests."""
        seen = len(self.upstream.exchanges)
        streams = [client.open(path=path) for _ in range(count)]
        eventually(lambda: len(self.upstream.exchanges) == seen + count, "the server has the requests")
        return streams

    def test_new_process_of_an_upgrade_continues_the_counts(self):
        weir = self.lineage(rule("ip", "20/3000day", algorithm='"sliding_log"'), rule("all", "50/day", key="[]"))
        client = self.client(weir)
        self.assertEqual([client.get("/")["x-ratelimit-remaining"] for _ in range(5)], ["19", "18", "17", "16", "15"])
        weir.upgrade()
        client.wait(lambda: client.goaways)
        client = self.client(weir)
        streams = [client.open() for _ in range(30)]
        statuses = [client.read(stream).status for stream in streams]
        self.assertEqual((statuses.count(200), statuses.count(429)), (15, 15))

    def test_new_process_counts_the_permits_of_streams_in_the_old_process(self):
        weir = self.lineage('[[rule]]\nname = "five"\nalgorithm = "concurrency"\nlimit = 5\nkey = []\n')
        old = self.client(weir)
        held = self.open(old, 3)
        weir.upgrade()
        weir.wait_for("3 concurrency permits are still held by the old process")
        new = self.client(weir)
        more = self.open(new, 2)
        self.assertEqual(new.get("/").status, 429)
        old.reset(held.pop())
        eventually(lambda: new.get("/").status == 200, "the permit of the reset stream is free in the new process")
        self.release.set()
        self.assertEqual([old.read(stream).status for stream in held] + [new.read(stream).status for stream in more], [200] * 4)
        eventually(lambda: new.get("/")["x-ratelimit-remaining"] == "4", "all permits are free")

    def test_new_requests_wait_behind_the_queued_streams_of_the_old_process(self):
        weir = self.lineage(rule("queue", "1/s", algorithm='"leaky_bucket"', key="[]", queue=9))
        old = self.client(weir)
        with old.corked():
            streams = [old.open(path=f"/{number}") for number in range(4)]
        self.assertEqual(old.read(streams[0]).status, 200)
        weir.upgrade()
        self.assertEqual(self.client(weir).get("/new").status, 200)
        self.assertEqual([old.read(stream).status for stream in streams], [200] * 4)
        self.assertEqual([exchange.target for exchange in self.upstream.exchanges], ["/0", "/1", "/2", "/3", "/new"])

    def test_old_process_of_an_upgrade_decides_a_request_whose_body_it_is_reading(self):
        weir = self.lineage(rule("words", "9/day", match='{ path = "/words", body_contains = "x" }'))
        old = self.client(weir)
        stream = old.open("POST", "/words", end=False)
        old.send_body(stream, b"x" * 1000, end=False)
        old.ping()
        weir.upgrade()
        old.wait(lambda: old.goaways)  # from now on, the old process counts the requests that it decides
        old.send_body(stream, b"x")
        answered = old.read(stream)
        self.assertEqual((answered.status, answered.error), (200, None))
        self.assertTrue(old.closed())
        weir.wait_for("upgrade: requests decided by the old process since the new one took over: 1")

    def test_access_log_written_across_an_upgrade_replays_with_the_same_decisions(self):
        log = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "access.log"
        weir = self.lineage(rule("failures", "3/day", algorithm='"sliding_log"', key="[]", charge='{ status = ["404"] }'), log=log)
        old = self.client(weir)
        held = self.open(old, 1)
        weir.upgrade()
        self.release.set()
        self.assertEqual(old.read(held[0]).status, 200)
        self.upstream.reply = answer(status="404 Not Found")
        new = self.client(weir)
        self.assertEqual([new.get("/").status for _ in range(3)], [404, 404, 429])
        eventually(lambda: log.read_text().count("\n") == 4, "every line is written")
        told = subprocess.run([WEIR, "replay", "--json", "--config", weir.folder / "weir.toml", log], capture_output=True, text=True,
                              timeout=PATIENCE, check=True)
        said = json.loads(told.stdout)
        self.assertEqual((said["requests"], said["refused_now"], said["newly_admitted"], said["left_out"]), (4, 1, 0, {}))


class Drains(PairTestCase):
    def test_queued_requests_get_the_same_status_as_in_http_1_1_when_the_drain_ends(self):
        text = self.text(doors=[False], rules=rule("queue", "1/day", algorithm='"leaky_bucket"', key="[]", queue=9))
        text = text.replace('drain = "5s"', 'drain = "300ms"')
        weir = self.start(Weir(text))
        self.assertEqual(weir.get("/").status, 200)
        old, new = self.start(Client(weir.port)), self.client(weir)
        old.send(request_bytes("GET", "/"))
        streams = [new.open() for _ in range(3)]
        self.await_metric(weir, 4, "weir_queue_depth")
        self.assertEqual(weir.stop(), 0)
        got = old.read()
        self.assertEqual([new.read(stream).status for stream in streams], [got.status] * 3)
        self.assertTrue(new.closed())


class InRedis(PairTestCase):
    def setUp(self):
        super().setUp()
        self.redis = self.start(Redis())
        self.state = f'redis = {{ url = "{self.redis.url}", timeout = "2s" }}'

    def ready(self, *rules, **more):
        weir = self.plain_weir(*rules, state=self.state, **more)
        eventually(weir.is_ready, "weir is connected to Redis")
        return weir

    def test_each_algorithm_counts_a_hundred_streams_exactly(self):
        names = {"token_bucket": {}, "gcra": {"limit": "1/day", "burst": 39}, "fixed_window": {}, "sliding_log": {}, "sliding_window": {}}
        rules = [rule(name, **{"limit": "40/3000day" if name != "token_bucket" else "40/40day", "algorithm": f'"{name}"', "key": "[]",
                               "store": '"redis"', "match": f'{{ path = "/{name}" }}', **more}) for name, more in names.items()]
        pair = [self.ready(*rules) for _ in range(2)]
        for name in names:
            with self.subTest(name):
                clients = [self.client(weir) for weir in pair]
                opened = [(client, client.open(path=f"/{name}")) for client in clients for _ in range(50)]
                statuses = [client.read(stream).status for client, stream in opened]
                self.assertEqual((statuses.count(200), statuses.count(429)), (40, 60))

    def test_instances_share_the_permits_of_streams_and_a_reset_releases_a_permit(self):
        release = threading.Event()
        self.addCleanup(release.set)
        self.upstream.reply = lambda exchange: (release.wait(PATIENCE), exchange.send(answer()))
        ten = '[[rule]]\nname = "ten"\nalgorithm = "concurrency"\nlimit = 10\nkey = []\nstore = "redis"\n'
        pair = [self.ready(ten) for _ in range(2)]
        clients = [self.client(weir) for weir in pair]
        opened = [(client, client.open()) for client in clients for _ in range(50)]
        eventually(lambda: len(self.upstream.exchanges) == 10, "ten requests are at the server")
        for client in clients:
            mine = [client.answers[stream] for owner, stream in opened if owner is client]
            client.wait(lambda: sum(each.status is None for each in mine) <= 10)  # noqa: B023
        waiting = [(client, stream) for client, stream in opened if not client.answers[stream].status]
        self.assertEqual(len(waiting), 10)
        client, stream = waiting.pop()
        client.reset(stream)
        self.await_metric(pair[clients.index(client)], 1, "weir_client_errors_total", kind="left")
        more = clients[0].open()
        eventually(lambda: len(self.upstream.exchanges) == 11, "the permit of the reset stream is used")
        release.set()
        self.assertEqual({client.read(stream).status for client, stream in [*waiting, (clients[0], more)]}, {200})

    def test_queue_place_of_a_reset_stream_becomes_free_in_redis(self):
        weir = self.ready(rule("queue", "1/day", algorithm='"leaky_bucket"', key="[]", queue=2, store='"redis"'))
        client = self.client(weir)
        self.assertEqual(client.get("/").status, 200)
        waiting = [client.open() for _ in range(2)]
        self.await_metric(weir, 2, "weir_queue_depth")
        self.assertEqual(client.get("/").status, 429)
        client.reset(waiting[1])
        self.await_metric(weir, 1, "weir_queue_depth")
        eventually(lambda: get(weir.admin, "/api/keys?rule=queue").json()["limits"][0]["remaining"] == 1, "the departure is free in Redis")

    def test_setting_on_store_failure_has_the_same_effect_as_in_http_1_1_while_redis_is_down(self):
        rules = [rule(name, "4/day", key="[]", store='"redis"', on_store_failure=f'"{name}"', match=f'{{ path = "/{name}" }}')
                 for name in ("local", "open", "closed")]
        pair = self.pair(*rules, state=f'replicas = 2\n{self.state}')
        for weir in pair:
            eventually(weir.is_ready, "weir is connected to Redis")
        self.redis.kill()
        for weir in pair:
            eventually(lambda: weir.metric("weir_redis_up") == 0, "weir has noticed")  # noqa: B023
        for name, statuses in (("local", [200, 200, 429, 429]), ("open", [200] * 4), ("closed", [503] * 4)):
            self.assertEqual(self.statuses_of(pair, [Ask(f"/{name}")] * 4), statuses, name)

    def test_limit_with_prefetched_units_is_exact_for_a_thousand_streams(self):
        leased = rule("leased", "1000/3000day", key="[]", algorithm='"fixed_window"', store='"redis"', lease='"10%"')
        pair = [self.ready(leased) for _ in range(2)]
        admitted = 0
        for _ in range(6):
            clients = [self.client(weir) for weir in pair]
            opened = [(client, client.open()) for client in clients for _ in range(100)]
            admitted += [client.read(stream).status for client, stream in opened].count(200)
        self.assertLessEqual(admitted, 1000)
        eventually(lambda: self.spend(pair) == 0 and len(self.upstream.exchanges) == 1000, "all units have been used")

    def spend(self, pair):
        """Returns how many of a hundred streams at each instance are admitted."""
        admitted = 0
        for weir in pair:
            with Http2Client(weir.port) as client:
                admitted += [client.read(stream).status for stream in [client.open() for _ in range(100)]].count(200)
        return admitted


if __name__ == "__main__":
    main()
