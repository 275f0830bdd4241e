#!/usr/bin/env python3
"""Connections with TLS that weir opens to servers. Their certificate files are renewed while weir runs, with and without a
reload."""

import pathlib
import signal
import ssl
import subprocess
import tempfile
import threading

from alerts_test import Receiver, alert
from harness import (PATIENCE, WEIR, Client, TestCase, Upstream, Weir, answer, config, eventually, main, make_authority,
                     make_certificate, make_client_certificate, rule)

QUICK, NEVER = 'certificate_check = "20ms"', 'certificate_check = "0s"'
TRUST = 'ca = "trust.crt", server_name = "api.test"'
SHOWN = ', cert = "edge.crt", key = "edge.key"'


def put(weir, name, text):
    """Replaces a file in weir's configuration folder as a whole."""
    (weir.folder / f"{name}.new").write_text(text)
    (weir.folder / f"{name}.new").rename(weir.folder / name)


class UpstreamTlsFiles(TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-trust-")))
        self.trust = make_certificate(self.folder, "server", "api.test")["server.crt"]
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        self.upstream = self.start(Upstream(self.reply, tls=self.tls))
        self.may_end = threading.Event()
        self.addCleanup(self.may_end.set)

    def reply(self, exchange):
        if exchange.target == "/slow":
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
            self.may_end.wait(4 * PATIENCE)
            return exchange.send(b"half")
        exchange.read_body()
        return exchange.send(answer(b"secret"))

    def renew_server(self):
        """Gives the server another certificate. Returns the certificate that clients must trust for it."""
        fresh = make_certificate(self.folder, "server", "api.test")["server.crt"]
        self.tls.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        return fresh

    def weir(self, server=NEVER, tls=TRUST, more="", files=None, environment=None, **sections):
        text = config(upstream=f"tls = {{ {tls} }}\n{more}", server=server, **sections).replace(
            "servers = []", f'servers = ["https://{self.upstream.address}"]')
        return self.start(Weir(text, {"trust.crt": self.trust, **(files or {})}, environment))

    def reload(self, weir, result="ok"):
        before = weir.metric("weir_reloads_total", result=result)
        weir.process.send_signal(signal.SIGHUP)
        self.await_metric(weir, before + 1, "weir_reloads_total", result=result)

    def test_reload_reads_a_changed_ca_file_of_an_upstream(self):
        weir = self.weir()
        self.assertEqual(weir.get("/").status, 200)
        put(weir, "trust.crt", self.renew_server())
        self.reload(weir)
        self.assertEqual(weir.get("/").body, b"secret")
        weir.wait_for('info TLS to upstream "api": reloaded the files')
        self.assertEqual(weir.metric("weir_tls_renewals_total", result="ok"), 1)
        self.reload(weir)
        self.assertEqual(weir.metric("weir_tls_renewals_total", result="ok"), 1, "no file has changed since")

    def test_changed_ca_file_of_an_upstream_is_read_without_a_reload(self):
        weir = self.weir(QUICK)
        self.assertEqual(weir.get("/").status, 200)
        put(weir, "trust.crt", self.renew_server())
        weir.wait_for('info TLS to upstream "api": reloaded the files')
        eventually(lambda: weir.get("/").status == 200, "the new CA file is used")

    def test_after_a_changed_ca_file_idle_connections_are_not_reused_and_active_connections_continue(self):
        weir = self.weir()
        self.assertEqual([weir.get("/").status for _ in range(3)], [200] * 3)
        kept = self.upstream.connections
        with Client(weir.port) as client:
            client.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually(lambda: any(exchange.target == "/slow" for exchange in self.upstream.exchanges), "the upstream has the request")
            put(weir, "trust.crt", make_certificate(self.folder, "stranger", "api.test")["stranger.crt"])
            self.reload(weir)
            self.assert_own_error(weir.get("/"), 502)
            self.may_end.set()
            self.assertEqual(client.read().body, b"halfhalf")
            self.assert_own_error(client.get("/"), 502)
        self.assertLessEqual(kept, 2, "connections are kept alive within one configuration")

    def test_faulty_new_tls_files_are_reported_once_and_not_used(self):
        weir = self.weir(QUICK)
        put(weir, "trust.crt", self.trust[:len(self.trust) // 2])
        self.await_metric(weir, 1, "weir_tls_renewals_total", result="faulty")
        weir.wait_for('warning TLS to upstream "api": cannot load the changed files; weir keeps the previous ones: '
                      "the file of authorities \".*trust.crt\" is rejected by OpenSSL: ")
        self.reload(weir, "failed")
        weir.wait_for(r"error reload: .*weir.toml:\d+: upstream.*tls: the file of authorities \".*trust.crt\" is rejected")
        self.assertEqual(weir.get("/").status, 200)
        put(weir, "trust.crt", self.trust)
        self.await_metric(weir, 1, "weir_tls_renewals_total", result="ok")
        self.assertEqual(weir.metric("weir_tls_renewals_total", result="faulty"), 1, "the faulty file is reported once")
        self.assertEqual(len([line for line in weir.lines if "cannot load the changed files" in line]), 1)
        (weir.folder / "trust.crt").unlink()
        weir.wait_for('weir keeps the previous ones: the file of authorities ".*trust.crt" cannot be read: No such file')
        self.assertEqual(weir.get("/").status, 200)

    def test_client_certificate_of_weir_is_renewed_together_with_its_key(self):
        make_authority(self.folder, "clients")
        make_client_certificate(self.folder, "edge", "/CN=first", authority="clients")
        first = {name: (self.folder / name).read_text() for name in ("edge.crt", "edge.key")}
        self.tls.verify_mode = ssl.CERT_REQUIRED
        self.tls.load_verify_locations(self.folder / "clients.crt")
        shown = []
        self.reply = lambda exchange: (shown.append(exchange.wire.sock.getpeercert()["subject"][0][0][1]), exchange.send(answer()))
        self.upstream.reply = self.reply
        weir = self.weir(QUICK, TRUST + SHOWN, files=first)
        self.assertEqual(weir.get("/").status, 200)
        until = weir.metric("weir_tls_client_certificate_not_after_seconds", shown_to='upstream \\"api\\"')
        weir.wait_for('warning the certificate ".*edge.crt" expires on ')
        checked = subprocess.run([WEIR, "check", "--config", weir.folder / "weir.toml"], capture_output=True, text=True, check=True)
        self.assertRegex(checked.stderr, 'the certificate ".*edge.crt" expires on ')
        make_client_certificate(self.folder, "edge", "/CN=second", authority="clients", days=40)
        put(weir, "edge.crt", (self.folder / "edge.crt").read_text())
        weir.wait_for('weir keeps the previous ones: the key ".*edge.key" does not belong to the certificate ".*edge.crt"')
        self.assertEqual(weir.get("/").status, 200)
        put(weir, "edge.key", (self.folder / "edge.key").read_text())
        weir.wait_for('info TLS to upstream "api": reloaded the files')
        eventually(lambda: weir.get("/").status == 200 and shown[-1] == "second", "weir presents the renewed certificate")
        self.assertEqual(shown[:2], ["first"] * 2)
        self.assertGreater(weir.metric("weir_tls_client_certificate_not_after_seconds"), until + 30 * 86_400)
        self.assertEqual(self.upstream.failures, [])

    def test_health_checks_use_the_renewed_tls_files(self):
        weir = self.weir(QUICK, more='health = { path = "/", interval = "50ms", unhealthy_after = 1, healthy_after = 1 }')
        self.await_metric(weir, 1, "weir_upstream_healthy")
        fresh = self.renew_server()
        self.await_metric(weir, 0, "weir_upstream_healthy")
        put(weir, "trust.crt", fresh)
        self.await_metric(weir, 1, "weir_upstream_healthy")

    def test_changed_ca_file_of_the_system_is_read(self):
        (self.folder / "system.crt").write_text(self.trust)
        self.tls.num_tickets = 0  # a resumed session would not verify the certificate
        weir = self.weir(tls='server_name = "api.test"', more="max_idle = 0", environment={"SSL_CERT_FILE": str(self.folder / "system.crt")})
        self.assertEqual(weir.get("/").status, 200)
        (self.folder / "system.crt").write_text(self.renew_server())
        self.reload(weir)
        self.assertEqual(weir.get("/").status, 200)

    def test_upstream_with_unchanged_tls_files_keeps_its_connections(self):
        other = make_certificate(self.folder, "other", "other.test")["other.crt"]
        more = f'[[upstream]]\nname = "b"\nservers = ["https://{self.upstream.address}"]\ntls = {{ ca = "other.crt" }}\n'
        weir = self.weir(QUICK, more=more, files={"other.crt": other})
        self.assertEqual(weir.get("/").status, 200)
        before = self.upstream.connections
        put(weir, "other.crt", make_certificate(self.folder, "other", "other.test")["other.crt"])
        weir.wait_for('info TLS to upstream "b": reloaded the files')
        self.assertEqual(weir.metric("weir_tls_renewals_total", result="ok"), 1)
        eventually(lambda: weir.get("/").status == 200, "requests are answered")
        self.assertLessEqual(self.upstream.connections, before + 1, "each worker opens one new connection")

    def test_certificates_of_webhooks_are_verified_with_the_renewed_ca_file(self):
        first = make_certificate(self.folder, "hook", address="127.0.0.1")["hook.crt"]
        second = make_certificate(self.folder, "moved", address="127.0.0.1")["moved.crt"]
        receiver = self.start(Receiver(certificate=(self.folder / "moved.crt", self.folder / "moved.key")))
        plain = self.start(Upstream())
        rules = rule(limit="1/day", key='["ip"]') + alert(receiver.port, "https", "127.0.0.1", ca='"hook.crt"', posts='"100/min"')
        for server in (QUICK, NEVER):
            told = len(receiver.posts)
            weir = self.start(Weir(config(plain.port, rules=rules, server=server), {"hook.crt": first}))
            self.statuses(weir.port, 6)
            weir.wait_for("did not accept the message: its TLS handshake failed: .*; trying again")
            put(weir, "hook.crt", second)
            if server == NEVER:
                self.reload(weir)
            weir.wait_for("info TLS to webhooks: reloaded the files")
            eventually(lambda told=told: len(receiver.posts) > told, "the alert is posted")


if __name__ == "__main__":
    main()
