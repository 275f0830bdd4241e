#!/usr/bin/env python3
"""Operators drain servers and change their weights while weir runs, by the admin API and by `weir servers`. Tests every `balance`,
both protocols to servers, reloads and upgrades."""

import contextlib
import json
import subprocess
import threading

from harness import PATIENCE, WEIR, Client, TestCase, Upstream, Weir, answer, config, eventually, get, logged_requests, main, rule
from http2_server import Http2Server
from lineage import Lineage, adopt_orphans

MANY = 40


class ServersTestCase(TestCase):
    def setUp(self):
        self.upstreams = [self.start(Upstream(answer(name))) for name in (b"a", b"b")]

    def text(self, *servers, upstream="", **more):
        ports = [server.port for server in servers or self.upstreams]
        return config(*ports, upstream=upstream, **more)

    def begin(self, *servers, **more):
        self.weir = self.start(Weir(self.text(*servers, **more)))
        return self.weir

    def run_servers(self, *words, weir=None):
        return subprocess.run([WEIR, "servers", *words, "--admin", f"127.0.0.1:{(weir or self.weir).admin}"], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def command(self, *words, **more):
        done = self.run_servers(*words, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def post(self, body, **headers):
        with Client(self.weir.admin) as client:
            text = body if isinstance(body, str) else json.dumps(body)
            return client.request("POST", "/api/servers", {"Content-Type": "application/json", **headers}, text.encode())

    def change(self, server, **what):
        got = self.post({"upstream": "api", "server": server.address, **what})
        self.assertEqual(got.status, 200, got.body)
        return got.json()["servers"][0]

    def listed(self, server, weir=None):
        servers = get((weir or self.weir).admin, "/api/servers").json()["servers"]
        return next(each for each in servers if each["server"] == server.address)

    def bodies(self, weir=None, count=MANY):
        return [(weir or self.weir).get().body for _ in range(count)]

    def reload(self, text):
        (self.weir.folder / "weir.toml").write_text(text)
        subprocess.run([WEIR, "reload", "--admin", f"127.0.0.1:{self.weir.admin}"], check=True, capture_output=True)


class Drained(ServersTestCase):
    def test_drained_server_gets_no_requests_until_it_is_undrained(self):
        a, b = self.upstreams
        for balance in ("least_in_flight", "round_robin", "random_two", "hash"):
            self.begin(upstream=f'balance = "{balance}"\n' + ('hash_key = ["header:x-name"]\n' if balance == "hash" else ""))
            for drained, left in ((a, b"b"), (b, b"a")):
                self.assertTrue(self.change(drained, drained=True)["drained"])
                got = [self.weir.get("/", **{"X-Name": str(number)}).body for number in range(MANY)]
                self.assertEqual(set(got), {left}, balance)
                self.assertFalse(self.change(drained, drained=False)["drained"])
            got = [self.weir.get("/", **{"X-Name": str(number)}).body for number in range(MANY)]
            self.assertEqual(set(got), {b"a", b"b"}, balance)

    def test_drain_does_not_move_the_hashed_clients_of_other_servers(self):
        servers = [*self.upstreams, self.start(Upstream(answer(b"c")))]
        self.begin(*servers, upstream='balance = "hash"\nhash_key = ["header:x-name"]\n')

        def places():
            return [self.weir.get("/", **{"X-Name": str(number)}).body for number in range(MANY)]

        before = places()
        self.change(servers[2], drained=True)
        for was, now in zip(before, places()):
            self.assertIn(now, (b"a", b"b") if was == b"c" else (was,))
        self.change(servers[2], drained=False)
        self.assertEqual(places(), before)

    def test_open_request_of_a_drained_server_finishes_and_is_counted_until_its_end(self):
        release, arrived = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def reply(exchange):
            arrived.set()
            release.wait(PATIENCE)
            exchange.send(answer(b"slow"))

        slow = self.start(Upstream(reply))
        self.begin(slow)
        with self.weir.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertTrue(arrived.wait(PATIENCE))
            self.assertEqual(self.change(slow, drained=True)["in_flight"], 1)
            self.assertEqual(self.weir.get().status, 503)
            self.reload(self.text(slow, upstream='max_idle = 7\n'))
            self.assertEqual(self.listed(slow)["in_flight"], 1, "the request of the former configuration counts")
            release.set()
            self.assertEqual(client.read().body, b"slow")
        eventually(lambda: self.listed(slow)["in_flight"] == 0, "the request has ended")
        self.assertEqual(len(slow.exchanges), 1)

    def test_open_streams_of_a_drained_http2_server_finish_and_no_new_stream_begins(self):
        release = threading.Event()
        self.addCleanup(release.set)

        def reply(request):
            if request.path == "/slow":
                release.wait(PATIENCE)
            request.answer(request.path.encode())

        servers = [self.start(Http2Server(reply)) for _ in range(2)]
        self.begin(*servers, upstream='protocol = "h2c"\n')
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(self.weir.connect()) for _ in range(8)]
            for client in clients:
                client.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually(lambda: sum(len(server.requests) for server in servers) == 8, "all requests arrive")
            self.assertTrue(all(server.requests for server in servers))
            begun = len(servers[0].requests)
            address = f"127.0.0.1:{servers[0].port}"
            got = self.post({"upstream": "api", "server": address, "drained": True}).json()["servers"][0]
            self.assertEqual(got["in_flight"], begun)
            self.assertEqual({self.weir.get("/quick").body for _ in range(MANY)}, {b"/quick"})
            self.assertEqual(len(servers[0].requests), begun)
            release.set()
            self.assertEqual([client.read().body for client in clients], [b"/slow"] * 8)

    def test_request_is_not_retried_at_a_drained_server(self):
        broken = self.start(Upstream(lambda exchange: exchange.close()))
        good = self.upstreams[0]
        self.begin(broken, good, upstream='balance = "round_robin"\nretry = { budget = "100%" }\neject = { failures = 1000 }\n')
        self.assertEqual([self.weir.get().status for _ in range(4)], [200] * 4)
        self.change(good, drained=True)
        seen = len(good.exchanges)
        self.assertEqual([self.weir.get().status for _ in range(4)], [502] * 4)
        self.assertEqual(len(good.exchanges), seen)

    def test_drained_server_is_not_used_even_if_the_others_are_ejected(self):
        a, b = self.upstreams
        self.begin(upstream='eject = { least = "1min", most = "1min" }\n')
        self.change(b, drained=True)
        a.__exit__()
        self.assertEqual([self.weir.get().status for _ in range(3)], [502] * 3)
        self.assertEqual((self.listed(a)["healthy"], len(b.exchanges)), (False, 0))
        self.assertGreaterEqual(self.listed(a)["failures"], 1)
        self.change(b, drained=False)
        self.assertEqual(self.weir.get().body, b"b")

    def test_health_checks_of_a_drained_server_continue(self):
        probe = 'health = { path = "/healthz", interval = "50ms", unhealthy_after = 1, healthy_after = 1 }\n'
        self.begin(upstream=probe)
        a = self.upstreams[0]
        self.change(a, drained=True)
        seen = len(a.exchanges)
        eventually(lambda: len(a.exchanges) > seen + 2, "probes continue")
        a.reply = answer(status="500 Broken")
        eventually(lambda: not self.listed(a)["healthy"], "the probes find the server down")
        self.assertIn(f"{a.address}  drained, down", self.command())

    def test_waiting_request_is_sent_to_a_server_that_is_undrained(self):
        a, b = self.upstreams
        held = threading.Event()
        self.addCleanup(held.set)
        a.reply = lambda exchange: (held.wait(PATIENCE), exchange.send(answer(b"a")))
        text = self.text(upstream='max_wait = "30s"\n').replace(f'"{a.address}"', f'{{ address = "{a.address}", max_in_flight = 1 }}')
        self.weir = self.start(Weir(text))
        self.change(b, drained=True)
        with self.weir.connect() as first, self.weir.connect() as second:
            first.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually(lambda: a.exchanges, "the only place is taken")
            second.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.await_metric(self.weir, 1, "weir_upstream_queue_depth")
            self.change(b, drained=False)
            self.assertEqual(second.read().body, b"b")
            held.set()
            self.assertEqual(first.read().body, b"a")


class AllDrained(ServersTestCase):
    def test_requests_get_503_without_a_charge_if_all_servers_are_drained(self):
        text = self.text(rules=rule(limit="5/1000day", key="[]"))
        self.weir = self.start(Weir(text.replace('access = "off"', 'access = "access.log"')))
        for server in self.upstreams:
            self.change(server, drained=True)
        got = [self.weir.get() for _ in range(8)]
        self.assertEqual([each.status for each in got], [503] * 8)
        self.assertIn(b"all servers of this upstream are drained; please retry later", got[0].body)
        lines = eventually(lambda: (read := logged_requests(self.weir.folder / "access.log"))[7:] and read, "the requests are logged")
        self.assertEqual({line["error"] for line in lines}, {"upstream_drained"})
        self.weir.wait_for('warning upstream "api": all servers are drained; requests get 503 until one is undrained')
        self.change(self.upstreams[0], drained=False)
        self.assertEqual([self.weir.get().status for _ in range(6)], [200] * 5 + [429])

    def test_waiting_requests_get_503_long_before_max_wait_if_all_servers_are_drained(self):
        held = threading.Event()
        self.addCleanup(held.set)
        only = self.start(Upstream(lambda exchange: (held.wait(PATIENCE), exchange.send(answer(b"ok")))))
        text = self.text(only, upstream='max_wait = "1h"\n').replace(f'"{only.address}"', f'{{ address = "{only.address}", max_in_flight = 1 }}')
        self.weir = self.start(Weir(text))
        with self.weir.connect() as first, contextlib.ExitStack() as stack:
            first.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually(lambda: only.exchanges, "the only place is taken")
            waiting = [stack.enter_context(self.weir.connect()) for _ in range(3)]
            for client in waiting:
                client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.await_metric(self.weir, 3, "weir_upstream_queue_depth")
            self.change(only, drained=True)
            self.assertEqual([client.read().status for client in waiting], [503] * 3)
            held.set()
            self.assertEqual(first.read().status, 200)


class Weights(ServersTestCase):
    def test_changed_weight_changes_the_share_of_a_server_at_once(self):
        self.begin(upstream='balance = "round_robin"\n')
        a, b = self.upstreams
        with self.weir.connect() as client:  # one connection has one worker, so the shares are exact
            for weight, share in ((1, 30), (5, 50), (1, 30)):
                self.assertEqual(self.change(a, weight=weight)["weight"], weight)
                before = len(a.exchanges), len(b.exchanges)
                self.assertEqual({client.get("/").status for _ in range(60)}, {200})
                self.assertEqual((len(a.exchanges) - before[0], len(b.exchanges) - before[1]), (share, 60 - share))

    def test_metrics_show_weight_and_drain(self):
        self.begin()
        a, b = (server.address for server in self.upstreams)
        self.change(self.upstreams[0], weight=7, drained=True)
        for name, server, value in (("weight", a, 7), ("weight", b, 1), ("drained", a, 1), ("drained", b, 0), ("healthy", a, 1)):
            self.assertEqual(self.weir.metric(f"weir_upstream_{name}", server=server, upstream="api"), value)


class AfterReloadOrUpgrade(ServersTestCase):
    def test_reload_keeps_the_changes_of_operators_to_servers_that_stay(self):
        a, b = self.upstreams
        other = self.start(Upstream(answer(b"c")))
        self.begin()
        self.change(a, drained=True)
        self.change(b, weight=9)
        probed = 'health = { path = "/" }\n'
        for text in (self.text(upstream="max_idle = 7\n"), self.text(b, other, a), self.text(a, b, upstream=probed)):
            self.reload(text)
            self.assertEqual((self.listed(a)["drained"], self.listed(b)["weight"]), (True, 9))
            self.assertNotIn(b"a", self.bodies())

    def test_weight_that_changes_in_the_file_replaces_the_weight_of_an_operator(self):
        a, b = self.upstreams
        self.begin()
        self.change(a, weight=9, drained=True)
        heavier = self.text().replace(f'"{a.address}"', f'{{ address = "{a.address}", weight = 2 }}')
        self.reload(heavier)
        self.assertEqual([self.listed(a)[name] for name in ("weight", "configured_weight", "drained")], [2, 2, True])
        self.reload(self.text())
        self.assertEqual([self.listed(a)[name] for name in ("weight", "configured_weight", "drained")], [1, 1, True])

    def test_rejected_reload_keeps_the_weights_of_operators(self):
        a = self.upstreams[0]
        self.begin()
        self.change(a, weight=9)
        (self.weir.folder / "weir.toml").write_text(self.text(upstream="colour = 1\n").replace(f'"{a.address}"', f'{{ address = "{a.address}", weight = 2 }}'))
        done = subprocess.run([WEIR, "reload", "--admin", f"127.0.0.1:{self.weir.admin}"], capture_output=True, check=False)
        self.assertEqual((done.returncode, self.listed(a)["weight"]), (1, 9))

    def test_drain_is_forgotten_if_a_reload_removes_the_server(self):
        a, b = self.upstreams
        self.begin()
        self.change(a, drained=True)
        self.reload(self.text(b))
        self.reload(self.text())
        self.assertFalse(self.listed(a)["drained"])

    def test_upgrade_keeps_the_changes_of_operators_to_servers(self):
        adopt_orphans()
        a, b = self.upstreams
        self.weir = self.start(Lineage(self.text()))
        self.change(a, drained=True)
        self.change(b, weight=9)
        for _ in range(2):
            self.weir.upgrade()
            self.assertEqual((self.listed(a)["drained"], self.listed(b)["weight"]), (True, 9))
            self.assertEqual(set(self.bodies()), {b"b"})
        self.change(a, drained=False)
        self.assertIn(b"a", self.bodies())


class ServersCommand(ServersTestCase):
    def test_servers_command_lists_and_changes_servers(self):
        a, b = (server.address for server in self.upstreams)
        self.begin()
        self.assertEqual(self.rows(self.command()),
                         [["UPSTREAM", "SERVER", "STATE", "WEIGHT", "IN FLIGHT", "FAILURES"], ["api", a, "up", "1", "0", "0"], ["api", b, "up", "1", "0", "0"]])
        self.assertEqual(self.rows(self.command("drain", "api", a))[1], ["api", a, "drained", "1", "0", "0"])
        self.assertEqual(set(self.bodies()), {b"b"})
        self.assertEqual(self.rows(self.command("undrain", "api", a))[1], ["api", a, "up", "1", "0", "0"])
        self.assertEqual(self.rows(self.command("weight", "api", a, "5"))[1], ["api", a, "up", "5 (configured: 1)", "0", "0"])
        self.assertEqual(json.loads(self.command("--json"))["servers"][0]["weight"], 5)
        self.assertEqual(self.command("list"), self.command())
        self.assertEqual(self.command("list", "--json"), self.command("--json"))
        self.weir.wait_for(rf'admin: 127.0.0.1:\d+ drained server {a} of upstream "api"')
        self.weir.wait_for(rf'admin: 127.0.0.1:\d+ ended the drain of server {a} of upstream "api"')
        self.weir.wait_for(rf'admin: 127.0.0.1:\d+ set the weight of server {a} of upstream "api" to 5 \(configured: 1\)')

    @staticmethod
    def rows(text):
        return [[word.strip() for word in line.replace("  ", "\t").split("\t") if word.strip()] for line in text.splitlines()]

    def test_error_of_a_wrong_command_says_what_to_write(self):
        self.begin()
        a, b = (server.address for server in self.upstreams)
        for words, said in ((("drain", "shop", a), 'there is no upstream "shop"; write "api"'),
                            (("drain", "api", "127.0.0.1:1"), f'upstream "api" has no server "127.0.0.1:1"; write "{a}" or "{b}"'),
                            (("weight", "api", a, "0"), "Value 0 not in range 1 to 240"),
                            (("drain", "api"), "ADDRESS is required: address of the server"),
                            (("stop", "api", a), "stop")):
            done = self.run_servers(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr)

    def test_faulty_request_bodies_are_rejected(self):
        self.begin()
        names = {"upstream": "api", "server": self.upstreams[0].address}
        form = 'write {"upstream": "api", "server": "10.0.0.1:9000", "drained": true}'
        for body, status, said in (("", 400, "the body is not a JSON object"), ("[]", 400, "the body is not a JSON object"),
                                   (names, 400, "the body changes nothing"), ({"upstream": "api", "drained": True}, 400, "the body names no upstream and server"),
                                   ({**names, "drained": "yes"}, 400, '"drained" is neither true nor false'),
                                   ({**names, "weight": 0}, 400, '"weight" is not a whole number from 1 to 240 (a drained server gets no requests)'),
                                   ({**names, "weight": 241}, 400, '"weight" is not a whole number from 1 to 240'),
                                   ({**names, "weight": 1.5}, 400, '"weight" is not a whole number from 1 to 240'),
                                   ({**names, "wait": 1}, 400, 'there is no member "wait"'), ({**names, "server": 1}, 400, '"server" is not a string'),
                                   ({**names, "upstream": "shop", "drained": True}, 404, 'there is no upstream "shop"; write "api"')):
            got = self.post(body)
            with self.subTest(body=body):
                self.assertEqual(got.status, status)
                self.assertIn(said, got.json()["message"])
                self.assertEqual(form in got.json()["message"], status == 400)
        self.assertFalse(any(each["drained"] or each["weight"] != 1 for each in get(self.weir.admin, "/api/servers").json()["servers"]))

    def test_only_operators_may_list_and_change_servers(self):
        self.weir = self.start(Weir(self.text().replace("[admin]\n", '[admin]\ntoken = "0123456789abcdef"\n')))
        change = {"upstream": "api", "server": self.upstreams[0].address, "drained": True}
        self.assertEqual([self.post(change).status, get(self.weir.admin, "/api/servers").status], [401, 401])
        token = {"Authorization": "Bearer 0123456789abcdef"}
        self.assertEqual(self.post(change, **token, Origin="https://evil.example").status, 403)
        self.assertEqual(self.post(change, **token).status, 200)
        self.assertEqual(get(self.weir.admin, "/api/servers", **token).json()["servers"][0]["drained"], True)


if __name__ == "__main__":
    main()
