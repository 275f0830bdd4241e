#!/usr/bin/env python3
"""weir asks the name servers of [server] nameservers (a real dnsmasq) for the names of servers, and again when the TTL ends."""

import pathlib
import signal
import subprocess
import tempfile
import time

from dnsmasq import Dnsmasq
from harness import PATIENCE, WEIR, TestCase, Upstream, Weir, answer, config, eventually, main
from upstream import at_one_port


class Dns(TestCase):
    def two(self):
        """Returns two servers, at 127.0.0.2 and 127.0.0.3, that use the same port."""
        return [self.start(server) for server in at_one_port(Upstream, answer(b"first"), answer(b"second"))]

    def weir(self, dns, port, more="", server=""):
        """Starts a weir whose server is api.test. Without a TTL, it would look the name up once an hour."""
        text = config(server=f"{dns.setting}\n{server}", upstream=f'slow_start = "0s"\n{more or self.ONCE_AN_HOUR}')
        return self.start(Weir(text.replace("servers = []", f'servers = ["api.test:{port}"]')))

    ONCE_AN_HOUR = 'resolve = "1h"'

    def resolves(self, weir, outcome):
        return weir.metric("weir_resolves_total", upstream="api", outcome=outcome)

    def test_requests_go_to_the_new_address_when_the_ttl_of_the_old_one_ends(self):
        first, _ = self.two()
        dns = self.start(Dnsmasq(api="127.0.0.2"))
        weir = self.weir(dns, first.port)
        self.assertEqual(weir.get("/").body, b"first")
        eventually(lambda: self.resolves(weir, "same") >= 1, "weir has seen the TTL")
        dns.say(api="127.0.0.3")
        eventually(lambda: weir.get("/").body == b"second", "requests go to the new address")
        self.assertEqual(self.resolves(weir, "changed"), 1)
        weir.wait_for(rf'upstream "api": server api.test:{first.port} now resolves to 127.0.0.3; before: 127.0.0.2$')

    def test_name_is_looked_up_after_the_resolve_interval_even_if_its_ttl_is_longer(self):
        first, _ = self.two()
        dns = self.start(Dnsmasq(api="127.0.0.2", ttl=3600))
        weir = self.weir(dns, first.port, 'resolve = "200ms"')
        eventually(lambda: self.resolves(weir, "same") >= 2, "the name is looked up again")
        dns.say(api="127.0.0.3")
        eventually(lambda: weir.get("/").body == b"second", "requests go to the new address")

    def test_short_ttl_does_not_flood_the_name_server(self):
        first, _ = self.two()
        dns = self.start(Dnsmasq(api="127.0.0.2", ttl=0))
        began = time.monotonic()
        weir = self.weir(dns, first.port, 'resolve = "1h"\nresolve_least = "300ms"')
        eventually(lambda: dns.questions("api.test") >= 8, "the name is looked up again")
        self.assertGreater(time.monotonic() - began, 7 * 0.3, "one look-up at the start, then one in 300 ms")
        self.assertEqual(weir.get("/").body, b"first")

    def test_name_that_no_longer_exists_keeps_its_address(self):
        first, _ = self.two()
        dns = self.start(Dnsmasq(api="127.0.0.2"))
        weir = self.weir(dns, first.port, 'resolve = "200ms"')
        dns.say()
        eventually(lambda: self.resolves(weir, "failed") >= 3, "the look-ups fail")
        self.assertEqual(self.statuses(weir.port, 3), [200] * 3)
        dns.say(api="127.0.0.3")
        eventually(lambda: weir.get("/").body == b"second", "requests go to the new address")
        weir.wait_for(r"api.test:\d+ resolves again")
        self.assertEqual(len([line for line in weir.lines if 'keeps its addresses 127.0.0.2: cannot resolve "api.test": ' in line]), 1)

    def test_addresses_are_kept_while_the_name_server_does_not_answer(self):
        first, _ = self.two()
        dns = self.start(Dnsmasq(api="127.0.0.2"))
        weir = self.weir(dns, first.port)
        dns.stop()
        eventually(lambda: self.resolves(weir, "failed") >= 2, "the look-ups fail")
        self.assertEqual(weir.get("/").body, b"first")
        dns.write(api="127.0.0.3")
        self.assertTrue(dns.start())
        eventually(lambda: weir.get("/").body == b"second", "requests go to the new address")
        weir.wait_for(r"api.test:\d+ keeps its addresses 127.0.0.2: cannot resolve")
        weir.wait_for(r"api.test:\d+ resolves again")

    def test_weir_starts_without_a_name_server_and_looks_up_the_name_later(self):
        first, _ = self.two()
        dns = self.start(Dnsmasq(api="127.0.0.2"))
        dns.stop()
        weir = self.weir(dns, first.port)
        weir.wait_for(r'weir.toml:\d+: upstream "api": cannot resolve "api.test": .*; the server is down until the lookup succeeds')
        self.assert_own_error(weir.get("/"), 502)
        self.assertTrue(dns.start())
        weir.wait_for(r"server api.test:\d+ resolves now, to 127.0.0.2")
        eventually(lambda: weir.get("/").body == b"first", "the server answers")

    def test_reload_changes_the_name_servers(self):
        first, _ = self.two()
        one, other = self.start(Dnsmasq(api="127.0.0.2")), self.start(Dnsmasq(api="127.0.0.3"))
        weir = self.weir(one, first.port)
        file = weir.folder / "weir.toml"
        file.write_text(file.read_text().replace(one.setting, other.setting))
        weir.signal(signal.SIGHUP)
        weir.wait_for("reload: the configuration was reloaded")
        eventually(lambda: weir.get("/").body == b"second", "requests go to the address that the other name server has")
        one.stop()
        looked_up = self.resolves(weir, "same")
        eventually(lambda: self.resolves(weir, "same") >= looked_up + 2, "look-ups ask the other name server")
        self.assertEqual(self.resolves(weir, "failed"), 0)

    def test_weir_check_with_resolve_asks_the_configured_name_servers(self):
        dns = self.start(Dnsmasq(api="127.0.0.2"))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "weir.toml"
            file.write_text(config(server=dns.setting).replace("servers = []", 'servers = ["api.test:1", "gone.test:1"]'))
            done = subprocess.run([WEIR, "check", "--config", str(file), "--resolve"], capture_output=True, text=True,
                                  timeout=4 * PATIENCE, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r'weir.toml:\d+: upstream "api": cannot resolve "gone.test"')
        self.assertNotIn('"api.test"', done.stderr)
        self.assertIn(f"names of servers: asked of 127.0.0.1:{dns.port}", done.stdout)


if __name__ == "__main__":
    main()
