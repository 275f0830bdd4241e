#!/usr/bin/env python3
"""weir repeats the look-ups of server names while it runs, using the system's resolver.

The resolver reads /etc/hosts, so each weir here has an /etc folder of its own in a mount namespace (own_etc.py). The tests are
skipped if a mount namespace cannot be made, as in many containers. tests/unit/upstream/resolver_test.cpp tests weir's part
alone."""

import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from harness import (PATIENCE, WEIR, Redis, TestCase, Upstream, Weir, answer, config, eventually, main, request_bytes, rule)
from http2_client import Http2Client
from http2_server import Http2Server
from own_etc import WAY, Names, NameServer
from upstream import at_one_port


class Silent:
    """An address with a full backlog, so connection attempts get no answer."""

    def __init__(self, host, port):
        self.sockets = [socket.create_server((host, port), backlog=0)]
        self.port = port = self.sockets[0].getsockname()[1]
        for _ in range(4):
            self.sockets.append(socket.socket())
            self.sockets[-1].setblocking(False)
            self.sockets[-1].connect_ex((host, port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self.sockets:
            each.close()


class Mute(Silent):
    """An address where the kernel accepts connections but no program reads from them."""

    def __init__(self, host, port):
        self.sockets = [socket.create_server((host, port))]


@unittest.skipUnless(WAY, "unshare(1) may give no mount namespace here, so weir cannot have an /etc/hosts of its own")
class Resolve(TestCase):
    def two(self, kind=Upstream, first=answer(b"first"), second=answer(b"second")):
        """Returns two servers, at 127.0.0.2 and 127.0.0.3, that use the same port."""
        return [self.start(server) for server in at_one_port(kind, first, second)]

    def weir(self, names, port, more="", others=(), **sections):
        servers = ", ".join(f'"{address}"' for address in (f"api.test:{port}", *others))
        more = f'resolve = "100ms"\nslow_start = "0s"\nbalance = "round_robin"\n{more}'
        text = config(upstream=more, **sections).replace("servers = []", f"servers = [{servers}]")
        return self.start(Weir(text, within=names.within()))

    def resolves(self, weir, outcome):
        return weir.metric("weir_resolves_total", upstream="api", outcome=outcome)

    def test_requests_follow_the_present_address_of_a_server_name(self):
        first, second = self.two()
        steady = self.start(Upstream(answer(b"steady")))
        names = self.start(Names(api="127.0.0.2"))
        weir = self.weir(names, first.port, others=[steady.address], rules=rule("few", "1000/day"))
        with weir.connect() as client:
            left = [int(client.get("/")["x-ratelimit-remaining"]) for _ in range(4)]
            self.assertEqual((len(first.exchanges), len(steady.exchanges)), (2, 2))
            eventually(lambda: self.resolves(weir, "same") >= 2, "the name is resolved again")
            names.say(api="127.0.0.3")
            eventually(lambda: not first.open, "the idle connection to the old address is closed")
            bodies = [client.get("/") for _ in range(4)]
        self.assertEqual(sorted(reply.body for reply in bodies), [b"second"] * 2 + [b"steady"] * 2)
        left += [int(reply["x-ratelimit-remaining"]) for reply in bodies]
        self.assertEqual(left, list(range(999, 991, -1)), "the limits keep their counts")
        self.assertEqual(steady.connections, 1, "the connection of the other server is kept")
        self.assertEqual(self.resolves(weir, "changed"), 1)
        self.assertEqual(self.resolves(weir, "failed"), 0)
        weir.wait_for(rf'upstream "api": server api.test:{first.port} now resolves to 127.0.0.3; before: 127.0.0.2$')

    def test_repeated_look_ups_of_a_name_with_many_addresses_choose_the_same_addresses(self):
        first, _ = self.two()
        names = self.start(Names(api=" ".join(["127.0.0.2", *(f"127.0.1.{n}" for n in range(1, 80))])))
        weir = self.weir(names, first.port)
        eventually(lambda: self.resolves(weir, "same") >= 2, "the name is resolved again")
        self.assertEqual(self.resolves(weir, "changed"), 0)

    def test_unknown_server_name_at_start_does_not_stop_other_servers(self):
        first, _ = self.two()
        steady = self.start(Upstream(answer(b"steady")))
        names = self.start(Names())
        weir = self.weir(names, first.port, others=[steady.address])
        weir.wait_for(r'weir.toml:\d+: upstream "api": cannot resolve "api.test": .*; the server is down until the lookup succeeds')
        self.assertEqual([weir.get("/").body for _ in range(4)], [b"steady"] * 4)
        self.assertEqual(weir.metric("weir_upstream_healthy", server=f"api.test:{first.port}"), 0)
        names.say(api="127.0.0.2")
        weir.wait_for(r'server api.test:\d+ resolves now, to 127.0.0.2')
        eventually(lambda: weir.get("/").body == b"first", "the server answers")

    def test_requests_get_502_until_the_name_of_the_only_server_is_resolved(self):
        first, _ = self.two()
        names = self.start(Names())
        weir = self.weir(names, first.port)
        self.assert_own_error(weir.get("/"), 502)
        names.say(api="127.0.0.2")
        eventually(lambda: weir.get("/").body == b"first", "the server answers")

    def test_reload_keeps_known_addresses_if_a_look_up_fails(self):
        first, _ = self.two()
        names = self.start(Names(api="127.0.0.2"))
        weir = self.weir(names, first.port)
        names.say()
        file = weir.folder / "weir.toml"
        file.write_text(file.read_text() + rule("few", "1000/day"))
        weir.signal(signal.SIGHUP)
        weir.wait_for("reload: the configuration was reloaded")
        weir.wait_for(r'reload: .*cannot resolve "api.test"')
        reply = weir.get("/")
        self.assertEqual((reply.body, reply["x-ratelimit-limit"]), (b"first", "1000"))

    def test_weir_check_with_resolve_reports_unknown_names(self):
        names = self.start(Names(api="127.0.0.2"))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "weir.toml"
            file.write_text(config().replace("servers = []", 'servers = ["api.test:1", "gone.test:1"]'))
            command = [*names.within(), WEIR, "check", "--config", str(file)]
            plain, asked = (subprocess.run([*command, *more], capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
                            for more in ([], ["--resolve"]))
        self.assertEqual((plain.returncode, asked.returncode), (0, 1), asked.stderr)
        self.assertRegex(asked.stderr, r'weir.toml:\d+: upstream "api": cannot resolve "gone.test"')
        self.assertNotIn('"api.test"', asked.stderr)

    def test_request_in_progress_is_finished_by_the_server_at_the_old_address(self):
        first, second = self.two()
        release = threading.Event()

        def slowly(exchange):
            release.wait(PATIENCE)
            exchange.send(answer(b"first"))

        first.reply = slowly
        names = self.start(Names(api="127.0.0.2"))
        weir = self.weir(names, first.port)
        with weir.connect() as early, weir.connect() as late:
            early.send(request_bytes("GET", "/"))
            eventually(lambda: first.exchanges, "the first server has the request")
            names.say(api="127.0.0.3")
            eventually(lambda: self.resolves(weir, "changed"), "the new address is found")
            self.assertEqual(late.get("/").body, b"second")
            release.set()
            self.assertEqual(early.read().body, b"first")
            eventually(lambda: not first.open, "the connection to the old address is not kept")
            self.assertEqual([late.get("/").body for _ in range(3)], [b"second"] * 3)

    def test_new_http2_requests_use_the_new_address_and_open_requests_finish_at_the_old_address(self):
        """An open HTTP/2 connection to the old address finishes its requests, gets no further requests, and ends."""
        release = threading.Event()
        self.addCleanup(release.set)

        def slowly(request):
            if request.path == "/held":
                request.head(200)
                request.send(b"fir")
                release.wait(PATIENCE)
                request.send(b"st", end=True)
            else:
                request.answer(b"first")

        first, second = self.two(Http2Server, slowly, lambda request: request.answer(b"second"))
        names = self.start(Names(api="127.0.0.2"))
        weir = self.weir(names, first.port, more='protocol = "h2c"', listener='protocols = ["http/1.1", "h2c"]')
        with Http2Client(weir.port) as client:
            held = client.open(path="/held")
            eventually(lambda: first.requests, "the first server has the request")
            self.assertEqual(client.get("/").body, b"first")
            self.assertEqual(len(first.sessions), 1)
            names.say(api="127.0.0.3")
            eventually(lambda: self.resolves(weir, "changed"), "the new address is found")
            eventually(lambda: client.get("/").body == b"second", "requests go to the new address")
            self.assertEqual([client.get("/").body for _ in range(8)], [b"second"] * 8)
            self.assertEqual((first.sessions[0].ended, len(first.sessions)), (False, 1))
            release.set()
            answered = client.read(held)
            self.assertEqual((answered.status, answered.body), (200, b"first"))
            first.sessions[0].wait(lambda: first.sessions[0].ended)
            self.assertEqual(first.sessions[0].goaways, [0], "the old connection ends with a GOAWAY")
        self.assertEqual(self.resolves(weir, "changed"), 1)
        self.assertEqual(weir.metric("weir_upstream_ejections_total"), 0)

    def test_server_name_that_becomes_unknown_keeps_its_address(self):
        first, _ = self.two()
        names = self.start(Names(api="127.0.0.2"))
        weir = self.weir(names, first.port)
        names.say()
        eventually(lambda: self.resolves(weir, "failed") >= 3, "the look-ups fail")
        self.assertEqual(self.statuses(weir.port, 3), [200] * 3)
        names.say(api="127.0.0.3 127.0.0.2")
        weir.wait_for(r"api.test:\d+ resolves again")
        weir.wait_for(r"now resolves to 127.0.0.2, 127.0.0.3; before")
        self.assertEqual(len([line for line in weir.lines if 'keeps its addresses 127.0.0.2: cannot resolve "api.test"' in line]), 1)

    def test_ejected_server_is_readmitted_if_its_address_changes(self):
        first, second = self.two()
        first.__exit__()
        names = self.start(Names(api="127.0.0.2"))
        weir = self.weir(names, first.port, more='eject = { least = "60s", most = "60s" }')
        self.assertEqual(weir.get("/").status, 502)
        self.assertEqual(weir.metric("weir_upstream_healthy"), 0)
        names.say(api="127.0.0.3")
        eventually(lambda: weir.metric("weir_upstream_healthy"), "the server is readmitted")
        self.assertEqual(weir.get("/").body, b"second")

    def test_address_that_does_not_respond_does_not_block_other_addresses(self):
        silent, good = self.two()
        silent.__exit__()
        self.start(Silent("127.0.0.2", good.port))
        names = self.start(Names(api="127.0.0.2 127.0.0.3"))
        for health in ("", 'health = { path = "/", interval = "100ms", unhealthy_after = 1 }'):
            with self.subTest(health):
                weir = self.weir(names, good.port, more=f"max_idle = 0\n{health}")
                self.assertEqual(self.statuses(weir.port, 3), [200] * 3)
                began = time.monotonic()
                self.assertEqual(self.statuses(weir.port, 5), [200] * 5)
                self.assertLess(time.monotonic() - began, 1, "each connect begins with the address that worked last")
                self.assertEqual(weir.metric("weir_upstream_ejections_total"), 0)
                self.assertEqual(weir.metric("weir_upstream_healthy"), 1)

    def test_faulty_address_of_redis_does_not_block_other_addresses(self):
        """One address of Redis does not respond, or accepts connections and sends nothing, like a stopped process."""
        redis = self.start(Redis("--bind", "127.0.0.1", "127.0.0.3"))
        names = self.start(Names(api="127.0.0.3", redis="127.0.0.2 127.0.0.3"))
        for other in (Silent, Mute):
            with self.subTest(other.__name__), other("127.0.0.2", redis.port):
                weir = self.weir(names, 9, state=f'key_secret = "0123456789abcdef"\nredis = {{ url = "redis://redis.test:{redis.port}" }}',
                                 rules=rule("few", "1000/day", store='"redis"'))
                eventually(lambda weir=weir: weir.metric("weir_redis_up") == 2, "weir is connected to Redis")

    def test_unresponsive_name_servers_delay_neither_requests_nor_the_end_of_weir(self):
        first, _ = self.two()
        names, server = self.start(Names(api="127.0.0.2")), self.start(NameServer())
        names.ask(server)
        weir = self.weir(names, first.port)
        names.say()
        server.await_question()
        self.assertEqual(self.statuses(weir.port, 20), [200] * 20)
        began = time.monotonic()
        self.assertEqual(weir.stop(), 0)
        self.assertLess(time.monotonic() - began, PATIENCE / 3)


if __name__ == "__main__":
    main()
