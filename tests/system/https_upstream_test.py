#!/usr/bin/env python3
"""Upstream servers with TLS: which certificates weir trusts, how weir reports untrusted certificates, and which connections and
sessions weir reuses."""

import contextlib
import pathlib
import socket
import ssl
import subprocess
import struct
import tempfile
import threading

from harness import (TestCase, Upstream, Weir, answer, config, eventually, get, main, make_authority, make_certificate,
                     make_client_certificate, request_bytes, rule)


class Plain:
    """A server without TLS that responds to the handshake with plain text."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                sock.recv(1 << 16)
                sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class HttpsUpstream(TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-https-")))
        self.names, self.resumed = [], []
        make_certificate(self.folder, "server", "api.test")

    def context(self, name="server", clients=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        context.sni_callback = lambda sock, asked, _: self.names.append(asked)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.folder / f"{clients}.crt")
        return context

    def serve(self, reply=None, **options):
        return self.start(Upstream(reply or self.reply, tls=self.context(**options)))

    def reply(self, exchange):
        exchange.read_body()
        self.resumed.append(exchange.wire.sock.session_reused)
        exchange.send(answer(b"secret"))

    def weir(self, *upstreams, tls='ca = "server.crt", server_name = "api.test"', more="", **sections):
        addresses = ", ".join(f'"https://127.0.0.1:{upstream.port}"' for upstream in upstreams)
        text = config(upstream=f"tls = {{ {tls} }}\n{more}", **sections).replace("servers = []", f"servers = [{addresses}]")
        files = {file.name: file.read_text() for file in self.folder.iterdir()}
        return self.start(Weir(text, files))

    def refused(self, weir, why):
        self.assert_own_error(weir.get("/"), 502)
        weir.wait_for(rf"is ejected for .*: its TLS handshake failed: {why}")

    def test_certificate_of_a_server_is_verified_by_ca_and_name(self):
        upstream = self.serve()
        weir = self.weir(upstream)
        with weir.connect() as client:
            self.assertEqual([client.get("/").body for _ in range(5)], [b"secret"] * 5)
        self.assertEqual(self.names, ["api.test"])
        self.assertEqual(upstream.connections, 1, "connections are kept alive")
        self.assertEqual(upstream.exchanges[0].head["x-forwarded-proto"], "http")

    def test_large_bodies_pass_in_both_directions(self):
        upstream = self.serve(lambda exchange: exchange.send(answer(exchange.read_body())))
        body = bytes(range(256)) * (1 << 15)
        held = rule("words", "100/s", key="[]", match='{ body_contains = "never", max_body = "16MiB" }')
        for rules in ("", held):
            with self.weir(upstream, rules=rules).connect() as client:
                self.assertTrue(client.request("POST", "/", body=body).body == body)

    def test_untrusted_server_receives_no_request_and_the_log_gives_the_reason(self):
        upstream = self.serve()
        make_certificate(self.folder, "stranger", "api.test")
        plain = self.start(Plain())
        for tls, server, why in (('ca = "server.crt", server_name = "other.test"', upstream, "hostname mismatch"),
                                 ('ca = "server.crt"', upstream, "IP address mismatch"),
                                 ('ca = "stranger.crt", server_name = "api.test"', upstream, "self-signed certificate"),
                                 ('server_name = "api.test"', upstream, "self-signed certificate"),
                                 ('ca = "server.crt"', plain, "wrong version number")):
            with self.subTest(tls):
                self.refused(self.weir(server, tls=tls), why)
        self.assertEqual(upstream.exchanges, [], "the server received no request")
        weir = self.weir(upstream, tls="verify = false")
        self.assertEqual(weir.get("/").body, b"secret")
        weir.wait_for('warning.*upstream "api" accepts any certificate')

    def test_requests_go_to_another_server_if_the_handshake_fails(self):
        good, bad = self.serve(), self.start(Plain())
        weir = self.weir(bad, good, more='balance = "round_robin"', rules=rule("few", "6/day"))
        self.assertEqual(self.statuses(weir.port, 7), [200] * 6 + [429])
        self.assertEqual(weir.metric("weir_upstream_healthy", server=bad.address), 0)
        self.assertEqual(len(weir.wait_for("its TLS handshake failed")), 1)

    def test_weir_presents_its_client_certificate_if_the_server_requests_it(self):
        make_authority(self.folder, "clients")
        make_client_certificate(self.folder, "edge", "/CN=edge", authority="clients")
        upstream = self.serve(clients="clients")
        trusted = 'ca = "server.crt", server_name = "api.test"'
        weir = self.weir(upstream, tls=trusted + ', cert = "edge.crt", key = "edge.key"')
        self.assertEqual(weir.get("/").status, 200)
        self.assert_own_error(self.weir(upstream, tls=trusted).get("/"), 502)

    def test_rejected_client_certificate_of_weir_is_reported_as_a_tls_failure(self):
        """In TLS 1.3 weir's handshake ends before the server rejects the certificate. weir reads the rejection when it expects a
        response."""
        make_authority(self.folder, "clients")
        upstream = self.serve(clients="clients")
        trusted = 'ca = "server.crt", server_name = "api.test"'
        probes = 'health = { path = "/well", interval = "50ms", unhealthy_after = 1 }'
        self.weir(upstream, tls=trusted, more=probes).wait_for("is down: its TLS handshake failed: .*certificate required")
        weir = self.weir(upstream, tls=trusted)
        self.assert_own_error(weir.get("/"), 502)
        weir.wait_for("is ejected for .*: its TLS handshake failed: .*certificate required")

    def test_certificate_chain_of_any_size_is_read(self):
        """Large chains arrive in several pieces, and weir lets other tasks run between them."""
        names = ",".join(f"DNS:name-{number}.of.a.certificate.that.is.fat.test" for number in range(130))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=fat", "-addext", f"subjectAltName={names}", "-keyout", self.folder / "fat.key",
                        "-out", self.folder / "fat.crt"], check=True, capture_output=True)
        leaf, fat = ((self.folder / f"{name}.crt").read_text() for name in ("server", "fat"))
        for count in (5, 8, 9, 10, 11, 12):
            context = self.context()
            (self.folder / "chain.crt").write_text(leaf + fat * count)
            context.load_cert_chain(self.folder / "chain.crt", self.folder / "server.key")
            weir = self.weir(self.start(Upstream(self.reply, tls=context)))
            self.assertEqual(weir.get("/").status, 200, count)

    def test_tls_session_with_a_server_is_resumed(self):
        upstream = self.serve(lambda exchange: (self.reply(exchange), exchange.wire.sock.unwrap()))
        weir = self.weir(upstream, server="", more="max_idle = 0").port
        eventually(lambda: get(weir).status == 200 and any(self.resumed), "a later connection resumes an earlier one")

    def test_response_without_a_length_counts_as_truncated_if_close_notify_is_missing(self):
        def cut(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
            if exchange.target == "/whole":
                exchange.wire.sock.unwrap()
            else:
                exchange.wire.sock.shutdown(socket.SHUT_RDWR)
        weir = self.weir(self.serve(cut))
        self.assertEqual(weir.get("/whole").body, b"all of it")
        with self.assertRaises((EOFError, ConnectionError)):
            weir.get("/cut")

    def test_unrequested_data_from_a_server_is_not_used_as_a_response(self):
        def twice(exchange):
            exchange.wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)  # makes two TLS records arrive together
            exchange.send(answer(b"first"))
            exchange.send(answer(b"unasked"))
            exchange.wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
            exchange.read_body()
        weir = self.weir(self.serve(twice))
        with weir.connect() as client:
            self.assertEqual([client.get("/").body for _ in range(6)], [b"first"] * 6)

    def test_health_checks_of_an_https_upstream_use_tls(self):
        upstream = self.serve()
        probes = 'health = { path = "/well", interval = "50ms", unhealthy_after = 1 }'
        weir = self.weir(upstream, more=probes)
        eventually(lambda: "/well" in [exchange.target for exchange in upstream.exchanges], "the health check is sent")
        self.assertEqual(weir.metric("weir_upstream_healthy"), 1)
        self.weir(upstream, tls='ca = "server.crt"', more=probes).wait_for("is down: its TLS handshake failed: IP address mismatch")

    def test_proxy_header_is_sent_before_the_tls_handshake(self):
        heard = []

        def hear(sock):
            head = sock.recv(16, socket.MSG_WAITALL)
            ends = sock.recv(int.from_bytes(head[14:], "big"), socket.MSG_WAITALL)
            heard.append((head[12], socket.inet_ntoa(ends[:4]), *struct.unpack("!2H", ends[8:])) if ends else (head[12],))

        upstream = self.start(Upstream(self.reply, tls=self.context(), ahead=hear))
        weir = self.weir(upstream, more="proxy_protocol = true")
        with weir.connect(source="127.0.0.9") as client:
            port = client.sock.getsockname()[1]
            self.assertEqual([client.get("/").body for _ in range(2)], [b"secret"] * 2)
        self.assertEqual(heard, [(0x21, "127.0.0.9", port, weir.port)] * 2, "each connection has a PROXY header and serves one request")
        probed = self.weir(upstream, more='proxy_protocol = true\nhealth = { path = "/health", interval = "50ms" }')
        eventually(lambda: len(heard) >= 4, "health checks reach the upstream")
        self.assertEqual(set(heard[2:]), {(0x20,)}, "health checks send the command LOCAL")
        self.assertEqual(probed.metric("weir_upstream_healthy"), 1)

    def test_websocket_works_over_tls_to_the_server(self):
        def switch(exchange):
            exchange.send(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
            exchange.send(exchange.wire.read_exactly(5))
        weir = self.weir(self.serve(switch))
        with weir.connect() as client:
            client.send(request_bytes("GET", "/", {"Connection": "upgrade", "Upgrade": "websocket"}))
            self.assertEqual(client.read().status, 101)
            client.send(b"hello")
            self.assertEqual(client.wire.read_exactly(5), b"hello")


if __name__ == "__main__":
    main()
