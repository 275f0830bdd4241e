#!/usr/bin/env python3
"""An upstream whose servers are the targets of SRV records of a real dnsmasq: weights, priorities, and changes of the records."""

import signal
import ssl
import subprocess
import tempfile
import threading

from dnsmasq import Dnsmasq
from harness import (WEIR, PATIENCE, TestCase, Upstream, Weir, answer, closed_port, config, eventually, main, make_certificate,
                     rule)

SERVICE = "_http._tcp.api.test"


def srv(target, port, priority=10, weight=1):
    """Returns the option of dnsmasq that adds an SRV record."""
    return f"--srv-host={SERVICE},{target}.test,{port},{priority},{weight}"


class Service(TestCase):
    def server(self, name):
        return self.start(Upstream(answer(name.encode())))

    def dns(self, *records, **options):
        return self.start(Dnsmasq(*records, a="127.0.0.1", b="127.0.0.1", c="127.0.0.1", **options))

    def say(self, dns, *records):
        """Replaces the SRV records. dnsmasq reads them only when it starts."""
        dns.stop()
        dns.records = records
        self.assertTrue(dns.start())

    def weir(self, dns, more="", address=f'"srv:{SERVICE}"', rules="", files=None):
        """Starts a weir that looks names up again only when their TTL ends (after 1 s), or after a failure."""
        text = config(server=dns.setting, rules=rules, upstream=f'slow_start = "0s"\nresolve = "1h"\nresolve_least = "100ms"\n'
                      f'balance = "round_robin"\n{more}')
        return self.start(Weir(text.replace("servers = []", f"servers = [{address}]"), files=files))

    def resolves(self, weir, outcome):
        return weir.metric("weir_resolves_total", upstream="api", outcome=outcome)

    def count(self, weir, requests):
        """Sends requests over one connection, and returns how many each server answered."""
        counts = {}
        with weir.connect() as client:
            for _ in range(requests):
                body = client.get("/").body
                counts[body] = counts.get(body, 0) + 1
        return counts

    def test_servers_share_requests_by_the_weights_of_their_records(self):
        a, b = self.server("a"), self.server("b")
        dns = self.dns(srv("a", a.port, weight=30), srv("b", b.port, weight=10))
        weir = self.weir(dns)
        self.assertEqual(self.count(weir, 40), {b"a": 30, b"b": 10})
        self.assertEqual(weir.metric("weir_upstream_healthy", server=f"a.test:{a.port}"), 1)

    def test_record_of_weight_zero_gets_a_very_small_share(self):
        a, b = self.server("a"), self.server("b")
        weir = self.weir(self.dns(srv("a", a.port, weight=0), srv("b", b.port, weight=10)))
        self.assertEqual(self.count(weir, 241), {b"a": 1, b"b": 240})

    def test_server_of_a_later_priority_serves_only_while_none_of_an_earlier_priority_serves(self):
        a, b, c = (self.server(name) for name in "abc")
        dns = self.dns(srv("a", a.port, 10), srv("b", b.port, 10), srv("c", c.port, 20))
        weir = self.weir(dns, 'eject = { least = "50ms", most = "100ms" }')
        self.assertEqual(self.count(weir, 10), {b"a": 5, b"b": 5})
        a.__exit__()
        eventually(lambda: self.count(weir, 10) == {b"b": 10}, "the other server of the first priority has all requests")
        b.__exit__()
        self.assertEqual(self.count(weir, 10), {b"c": 10}, "no request fails")
        self.start(Upstream(answer(b"b"), port=b.port))
        eventually(lambda: self.count(weir, 10) == {b"b": 10}, "the server of the first priority is back")

    def test_changed_records_change_the_servers_without_a_failed_request(self):
        a, b, c = (self.server(name) for name in "abc")
        away = closed_port()
        dns = self.dns(srv("a", a.port), srv("b", b.port), srv("c", away))
        weir = self.weir(dns, 'eject = { least = "10min", most = "10min" }', rules=rule("few", "100000/day"))
        statuses, stop = [], threading.Event()

        def ask():
            while not stop.is_set():
                statuses.append(weir.get("/").status)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        eventually(lambda: weir.metric("weir_upstream_ejections_total", server=f"c.test:{away}") == 1, "the server that is away is ejected")
        self.say(dns, srv("b", b.port), srv("c", c.port), srv("c", away))
        weir.wait_for(rf'upstream "api": srv:{SERVICE} now has the servers b.test:{b.port} \(priority 10, weight 240\), .*; before: '
                      rf"a.test:{a.port} ")
        eventually(lambda: len(c.exchanges) >= 5 and len(b.exchanges) >= 5, "the new servers get requests from every worker")
        count, later = len(a.exchanges), len(b.exchanges) + 20
        eventually(lambda: len(b.exchanges) >= later, "the load goes on")
        stop.set()
        asking.join(PATIENCE)
        self.assertEqual(set(statuses), {200})
        self.assertLessEqual(len(a.exchanges), count + 1, "only a request that was under way")
        self.assertEqual(weir.metric("weir_upstream_ejections_total", server=f"c.test:{away}"), 1, "a server that remains keeps its state")
        self.assertEqual(weir.metric("weir_upstream_healthy", server=f"c.test:{away}"), 0)
        self.assertEqual(self.resolves(weir, "changed"), 1)
        self.assertEqual(weir.get("/")["x-ratelimit-limit"], "100000", "the rules are the same")

    def test_address_of_a_target_is_looked_up_again_when_its_own_ttl_ends(self):
        first = self.server("first")
        dns = self.start(Dnsmasq(srv("a", first.port), a="127.0.0.1"))
        second = self.start(Upstream(answer(b"second"), host="127.0.0.2", port=first.port))
        weir = self.weir(dns)
        self.assertEqual(weir.get("/").body, b"first")
        eventually(lambda: self.resolves(weir, "same") >= 4, "weir has seen the TTLs of the records and of the address")
        dns.say(a="127.0.0.2")
        eventually(lambda: weir.get("/").body == b"second", "requests go to the new address")
        self.assertEqual(second.failures, [])
        self.assertEqual(self.resolves(weir, "changed"), 1, "the records are the same")

    def test_servers_are_kept_if_their_records_disappear(self):
        a, b = self.server("a"), self.server("b")
        dns = self.dns(srv("a", a.port))
        weir = self.weir(dns)
        self.say(dns)
        weir.wait_for(rf'srv:{SERVICE} keeps its servers a.test:{a.port} \(priority 10, weight 240\): cannot resolve "srv:{SERVICE}"')
        self.assertGreaterEqual(self.resolves(weir, "failed"), 1)
        self.assertEqual(weir.get("/").body, b"a")
        file = weir.folder / "weir.toml"
        file.write_text(file.read_text() + rule("few", "1000/day"))
        weir.signal(signal.SIGHUP)
        weir.wait_for("reload: the configuration was reloaded")
        self.assertEqual((weir.get("/").body, weir.get("/")["x-ratelimit-limit"]), (b"a", "1000"))
        self.say(dns, srv("b", b.port))
        eventually(lambda: weir.get("/").body == b"b", "the new server gets requests")

    def test_reload_with_the_same_records_keeps_the_connections(self):
        a = self.server("a")
        weir = self.weir(self.dns(srv("a", a.port)))
        with weir.connect() as client:
            self.assertEqual(client.get("/").body, b"a")
            weir.signal(signal.SIGHUP)
            weir.wait_for("reload: the configuration was reloaded")
            self.assertEqual(client.get("/").body, b"a")
        self.assertEqual(a.connections, 1)

    def test_weir_starts_without_records_and_finds_them_later(self):
        a = self.server("a")
        dns = self.dns()
        weir = self.weir(dns)
        weir.wait_for(rf'weir.toml:\d+: upstream "api": cannot resolve "srv:{SERVICE}": .*; the server is down until the lookup succeeds')
        self.assert_own_error(weir.get("/"), 502)
        self.assertEqual(weir.metric("weir_upstream_healthy", server=f"srv:{SERVICE}"), 0)
        self.say(dns, srv("a", a.port))
        weir.wait_for(rf"srv:{SERVICE} resolves now, to the servers a.test:{a.port} ")
        eventually(lambda: weir.get("/").body == b"a", "the server answers")

    def test_certificate_of_a_server_must_have_the_domain_of_the_service(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate = make_certificate(folder, host="api.test")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{folder}/edge.crt", f"{folder}/edge.key")
            server = self.start(Upstream(answer(b"secret"), tls=context))
            dns = self.dns(srv("a", server.port))
            weir = self.weir(dns, 'tls = { ca = "edge.crt" }', f'"https+srv:{SERVICE}"', files=certificate)
            self.assertEqual(weir.get("/").body, b"secret")
            other = self.weir(dns, 'tls = { ca = "edge.crt", server_name = "other.test" }', f'"https+srv:{SERVICE}"', files=certificate)
            self.assert_own_error(other.get("/"), 502)

    def test_check_command_shows_the_service_and_looks_it_up(self):
        dns = self.dns()
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(config(server=dns.setting).replace("servers = []", f'servers = ["srv:{SERVICE}"]'))
            file.flush()
            done = subprocess.run([WEIR, "check", "--config", file.name, "--resolve"], capture_output=True, text=True,
                                  timeout=4 * PATIENCE, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f'upstream "api": srv:{SERVICE}', done.stdout)
        self.assertRegex(done.stderr, rf':\d+: upstream "api": cannot resolve "srv:{SERVICE}": ')


if __name__ == "__main__":
    main()
