#!/usr/bin/env python3
"""Listeners, TLS, servers and routes change while weir runs. No connection and no request is lost."""

import os
import socket
import ssl
import tempfile
import threading
import time

from harness import (PATIENCE, SANITIZED, Client, Upstream, Weir, answer, client_tls, config, eventually, get, main,
                     make_certificate, rule)
from reload_test import ReloadTestCase

RELOADS = int(os.environ.get("WEIR_RELOADS", "20"))


class ReloadedConnections(ReloadTestCase):
    def test_listeners_are_added_and_removed_by_a_reload(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/weir.sock"
            weir = self.weir()
            more = f'[[listener]]\naddress = "unix:{path}"\n'
            self.change(weir, routes=more + '[[route]]\nupstream = "api"')
            weir.wait_for("info reload: listener unix:.* added")
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                client.settimeout(PATIENCE)
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 200"))
                self.change(weir)
                client.settimeout(PATIENCE)
                while client.recv(1000):  # the rest of the response, and the end of the connection, because it was idle
                    pass
            self.assertFalse(os.path.exists(path))
            self.assertEqual(weir.get().status, 200)

    def test_reload_is_rejected_if_a_new_port_is_in_use(self):
        weir = self.weir()
        path = f"{weir.folder}/new.sock"
        more = "".join(f'[[listener]]\naddress = "{address}"\n' for address in (f"unix:{path}", f"127.0.0.1:{self.upstream.port}"))
        self.reload(weir, config(self.upstream.port, routes=more + '[[route]]\nupstream = "api"'), "failed")
        weir.wait_for(rf"error reload: \S+weir\.toml:\d+: cannot listen on 127\.0\.0\.1:{self.upstream.port}: ")
        self.assertEqual(weir.get().status, 200)
        self.assertFalse(os.path.exists(path), "the rejected listener leaves no file")

    def test_reloaded_tls_settings_apply_only_to_new_connections(self):
        with tempfile.TemporaryDirectory() as folder:
            files = make_certificate(folder, "one") | make_certificate(folder, "two")

            def listener(name):
                return f'tls = {{ certificates = [{{ cert = "{name}.crt", key = "{name}.key" }}] }}'
            weir = self.weir(files, listener=listener("one"))
            with Client(weir.port, client_tls(files["one.crt"])) as old:
                self.assertEqual(old.get().status, 200)
                self.change(weir, listener=listener("two"))
                self.assertEqual(ssl.get_server_certificate(("127.0.0.1", weir.port), timeout=PATIENCE), files["two.crt"])
                self.assertEqual(old.get().status, 200)
            self.change(weir, listener="")
            self.assertEqual(get(weir.port).status, 200, "the listener no longer uses TLS")

    def test_servers_can_change_while_requests_are_in_progress(self):
        arrived, gate = threading.Event(), threading.Event()

        def reply(exchange):
            arrived.set()
            gate.wait(PATIENCE)
            exchange.send(answer(b"old"))

        self.upstream.reply = reply
        weir = self.weir()
        answers = []
        thread = threading.Thread(target=lambda: answers.append(weir.get()))
        thread.start()
        self.assertTrue(arrived.wait(PATIENCE))
        other = self.start(Upstream(answer(b"new")))
        self.reload(weir, config(other.port))
        weir.wait_for('info reload: upstream "api" changed')
        self.assertEqual(weir.get().body, b"new")
        gate.set()
        thread.join(PATIENCE)
        self.assertEqual([each.body for each in answers], [b"old"])

    def test_reload_keeps_the_connections_to_an_unchanged_upstream(self):
        weir = self.weir()
        with Client(weir.port) as client:
            client.get()
            self.change(weir, rules=rule())
            client.get()
        self.assertEqual(self.upstream.connections, 1)
        self.await_metric(weir, 1, "weir_upstream_reused_total", upstream="api")

    def test_route_can_be_removed_by_a_reload(self):
        def route(name, path):
            return f'[[route]]\nname = "{name}"\nmatch = {{ path = "{path}" }}\nupstream = "api"\n'
        weir = self.weir(routes=route("a", "/a") + route("b", "/b"))
        with Client(weir.port) as client:
            self.assertEqual([client.get("/a").status, client.get("/b").status], [200, 200])
            self.change(weir, routes=route("b", "/b"))
            self.assertEqual([client.get("/a").status, client.get("/b").status], [404, 200])
        self.await_metric(weir, 2, "weir_requests_total", route="b", code="200")
        self.assertEqual(weir.metric("weir_requests_total", route="a"), 0)


class ReloadUnderLoad(ReloadTestCase):
    def test_reloads_under_load_fail_no_request_and_keep_limits_exact(self):
        """Clients that keep their connections and clients with new connections share one limit during the whole test."""
        most = 300
        other = self.start(Upstream())

        def text(number):
            limit = rule("all", "1/day", burst=most, key="[]")
            extra = rule(f"x{number % 3}", "1000000/s", burst=1_000_000)
            upstream = f'max_idle = {100 + number % 2}' if number % 4 == 3 else ""
            return config(*[self.upstream.port, other.port][:1 + number % 2],
                          rules=limit + extra if number % 2 else extra + limit, upstream=upstream)

        weir = self.start(Weir(text(0)))
        statuses, faults, ending = [], [], threading.Event()

        def stay():
            with Client(weir.port) as client:
                while not ending.is_set():
                    statuses.append(client.get().status)

        def come_anew():
            while not ending.is_set():
                statuses.append(get(weir.port).status)
                time.sleep(0.001)

        def watch(work):
            try:
                work()
            except Exception as fault:  # the test reports the exception at its end
                faults.append(repr(fault))

        threads = [threading.Thread(target=watch, args=(work,)) for work in (stay, stay, come_anew)]
        for thread in threads:
            thread.start()
        for number in range(1, (5 if SANITIZED else RELOADS) + 1):
            seen = len(statuses)
            self.reload(weir, text(number))
            eventually(lambda seen=seen: len(statuses) > seen + 20 or faults, "more requests are answered")
        eventually(lambda: statuses.count(429) > 20 or faults, "the limit is reached")
        ending.set()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(faults, [])
        self.assertEqual(set(statuses), {200, 429})
        self.assertEqual(statuses.count(200), most)
        self.await_metric(weir, most, "weir_decisions_total", rule="all", outcome="admitted")
        self.assertEqual(weir.metric("weir_reloads_total", result="failed"), 0)


if __name__ == "__main__":
    main()
