#!/usr/bin/env python3
"""weir forwards the client's certificate to servers in the field Client-Cert (RFC 9440). Tests the form of the field, forged fields,
and every kind of connection to a server."""

import base64
import pathlib
import socket
import ssl
import subprocess
import tempfile

from harness import (PATIENCE, WEIR, Client, Upstream, Weir, client_tls, config, main, make_authority, make_certificate,
                     make_client_certificate)
from http2_client import Http2Client, Http2TestCase
from http2_server import Http2Server
from http2_websocket_test import WebSocket, echo
from lineage import Lineage, adopt_orphans

SECURE = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }], client_ca = "ca.crt", client_auth = "optional" }\n'
SET = 'headers.request = { set = { Client-Cert = "{cert_der}" } }\n'
FORGED = ":Zm9yZ2Vk:"


def byte_sequence(certificate):
    """Returns the value that RFC 9440 demands for a PEM file."""
    der = subprocess.run(["openssl", "x509", "-in", certificate, "-outform", "DER"], check=True, capture_output=True).stdout
    return ":" + base64.b64encode(der).decode() + ":"


class ClientCertTestCase(Http2TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.files = {**make_certificate(cls.folder), **make_authority(cls.folder)}
        make_client_certificate(cls.folder, "billing", "/O=Example, Inc./CN=billing")
        cls.shown = byte_sequence(cls.folder / "billing.crt")

    def text(self, ports, listener=SECURE, edits=SET, **more):
        return config(*ports, listener=listener, routes=f'[[route]]\nupstream = "api"\n{edits}', **more)

    def begin(self, *ports, **more):
        return self.start(Weir(self.text(ports or [self.upstream.port], **more), self.files))

    def tls(self, name="billing", alpn=None):
        return client_tls(self.files["edge.crt"], alpn, shown=self.folder / name if name else None)

    def curl(self, weir, *options, name="billing", port=None):
        shown = ["--cert", self.folder / f"{name}.crt", "--key", self.folder / f"{name}.key"] if name else []
        command = ["curl", "-sS", "--max-time", str(PATIENCE), "--cacert", weir.folder / "edge.crt", "--resolve", f"localhost:{weir.port}:127.0.0.1",
                   *shown, *options, "-o", "/dev/null", "-w", "%{http_code}", f"https://localhost:{weir.port}/"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def said(self, name="client-cert"):
        return self.upstream.exchanges[-1].head.all(name)


class Form(ClientCertTestCase):
    def test_server_gets_the_certificate_as_a_byte_sequence(self):
        weir = self.begin()
        for options in (["--http1.1"], ["--http2"], ["--tls-max", "1.2"]):
            self.assertEqual(self.curl(weir, *options), "200")
            self.assertEqual(self.said(), [self.shown])

    def test_server_gets_the_certificate_of_each_client_even_if_the_certificate_is_large(self):
        subprocess.run(["openssl", "req", "-newkey", "rsa:4096", "-nodes", "-subj", "/CN=large/OU=" + "x" * 60, "-keyout", self.folder / "large.key",
                        "-out", self.folder / "large.csr"], check=True, capture_output=True)
        names = ",".join(f"DNS:{number}.client.example" for number in range(200))
        (self.folder / "names").write_text(f"subjectAltName={names}")
        subprocess.run(["openssl", "x509", "-req", "-in", self.folder / "large.csr", "-days", "2", "-CAcreateserial", "-CA", self.folder / "ca.crt",
                        "-CAkey", self.folder / "ca.key", "-extfile", self.folder / "names", "-out", self.folder / "large.crt"],
                       check=True, capture_output=True)
        large = byte_sequence(self.folder / "large.crt")
        self.assertGreater(len(large), 4000)
        weir = self.begin()
        for name, shown in (("large", large), ("billing", self.shown), ("large", large)):
            self.assertEqual(self.curl(weir, name=name), "200")
            self.assertEqual(self.said(), [shown])

    def test_requests_of_a_connection_and_of_a_resumed_session_have_the_certificate(self):
        weir = self.begin()
        tls = self.tls()
        tls.maximum_version = ssl.TLSVersion.TLSv1_2  # the session is known right after the handshake
        with Client(weir.port, tls=tls) as client:
            for _ in range(3):
                self.assertEqual(client.get("/").status, 200)
                self.assertEqual(self.said(), [self.shown])
            session = client.wire.sock.session
        with self.resumed(weir, tls, session) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while sock.recv(4096):
                pass
            self.assertTrue(sock.session_reused)
        self.assertEqual((len(self.upstream.exchanges), self.said()), (4, [self.shown]))

    def resumed(self, weir, tls, session):
        return tls.wrap_socket(socket.create_connection(("127.0.0.1", weir.port), PATIENCE), server_hostname="localhost", session=session)

    def test_route_without_client_cert_sends_no_certificate(self):
        weir = self.begin(edits='headers.request = { set = { X-Subject = "{cert_subject}" } }\n')
        self.curl(weir)
        self.assertEqual((self.said(), self.said("x-subject")), ([], ["CN=billing%2CO=Example%5C%2C%20Inc."]))

    def test_reload_that_adds_client_cert_applies_to_open_connections(self):
        weir = self.begin(edits="")
        with Client(weir.port, tls=self.tls()) as client:
            client.get("/")
            self.assertEqual(self.said(), [])
            (weir.folder / "weir.toml").write_text(self.text([self.upstream.port]))
            subprocess.run([WEIR, "reload", "--admin", f"127.0.0.1:{weir.admin}"], check=True, capture_output=True)
            client.get("/")
            self.assertEqual(self.said(), [self.shown])


class Forged(ClientCertTestCase):
    NAMES = ("Client-Cert", "client_cert", "Client.Cert", "Client-Cert-Chain", "CLIENT_CERT_CHAIN")

    def test_client_cert_fields_that_clients_forge_are_dropped(self):
        for client in ("", "trusted_fields = []\n", 'trusted_proxies = ["127.0.0.1"]\n'):
            weir = self.begin(client=client, server="underscores_in_headers = true\n")
            for name, shown in (("billing", [self.shown]), (None, [])):
                self.curl(weir, *(word for field in self.NAMES for word in ("-H", f"{field}: {FORGED}")), name=name)
                with self.subTest(client=client, name=name):
                    self.assertEqual(self.said(), shown)
                    self.assertEqual([value for _, value in self.fields() if value == FORGED], [])

    def fields(self):
        lines = self.upstream.exchanges[-1].head.raw.split(b"\r\n")[1:]
        return [tuple(part.strip().decode() for part in line.split(b":", 1)) for line in lines if b":" in line]

    def test_server_gets_no_certificate_for_a_client_without_tls(self):
        weir = self.begin(listener=SECURE + '[[listener]]\naddress = "127.0.0.1:0"\n')
        with Client(weir.ports[1]) as client:
            client.get("/", **{"Client-Cert": FORGED})
        self.assertEqual(self.said(), [])

    def test_tls_handshake_with_an_untrusted_certificate_fails(self):
        make_authority(self.folder, "other")
        make_client_certificate(self.folder, "stranger", "/CN=stranger", authority="other")
        weir = self.begin()
        with self.assertRaises(subprocess.CalledProcessError):
            self.curl(weir, name="stranger")
        self.assertEqual(self.upstream.exchanges, [])

    def test_configuration_that_would_forward_a_forged_certificate_field_is_rejected(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**self.files, "weir.toml": self.text([1], edits='headers.request.add = { Client-Cert = "{cert_der}" }\n')}.items():
                (pathlib.Path(folder) / name).write_text(text)
            done = subprocess.run([WEIR, "check", "--config", f"{folder}/weir.toml"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("headers.request.add.Client-Cert: found {cert_der} in add, which keeps a field of this name that the client sent; "
                      "write it in set", done.stderr)


class OtherWays(ClientCertTestCase):
    def test_http2_server_gets_the_certificate(self):
        server = self.start(Http2Server(lambda request: request.answer(b"ok")))
        weir = self.begin(server.port, upstream='protocol = "h2c"\n')
        for options in (["--http1.1"], ["--http2"]):
            self.assertEqual(self.curl(weir, *options, "-H", f"Client-Cert: {FORGED}"), "200")
            self.assertEqual([value for name, value in server.requests[-1].fields if name == "client-cert"], [self.shown])

    def test_retried_request_has_the_certificate_field_once(self):
        broken = self.start(Upstream(lambda exchange: exchange.close()))
        weir = self.begin(broken.port, self.upstream.port, upstream='retry = { attempts = 2, budget = "100%" }\nbalance = "round_robin"\n')
        self.assertEqual([self.curl(weir) for _ in range(4)], ["200"] * 4)
        self.assertTrue(broken.exchanges)
        self.assertEqual([exchange.head.all("client-cert") for exchange in self.upstream.exchanges + broken.exchanges],
                         [[self.shown]] * (4 + len(broken.exchanges)))

    def test_websocket_requests_have_the_certificate(self):
        self.upstream.reply = echo
        weir = self.begin()
        with Client(weir.port, tls=self.tls()) as client:
            client.send(b"GET /chat HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            self.assertTrue(client.wire.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 101"))
        self.assertEqual(self.said(), [self.shown])
        client = self.start(Http2Client(weir.port, tls=self.tls(alpn=["h2"])))
        self.assertEqual(WebSocket(client).answer.status, 200)
        self.assertEqual((len(self.upstream.exchanges), self.said()), (2, [self.shown]))

    def test_open_connection_keeps_its_certificate_over_an_upgrade(self):
        """The new process decides the next request of the old process's TLS connection."""
        adopt_orphans()
        weir = self.start(Lineage(self.text([self.upstream.port]), self.files))
        with Client(weir.port, tls=self.tls()) as client:
            client.get("/")
            weir.upgrade()
            self.assertEqual(client.get("/", **{"Client-Cert": FORGED}).status, 200)
        self.assertEqual((len(self.upstream.exchanges), self.said()), (2, [self.shown]))
        weir.wait_for("upgrade: requests decided by the old process since the new one took over: 0$")

    def test_open_connection_keeps_its_certificate_over_two_upgrades(self):
        """The first process relays the connection to the second process, which passes it on to the third one."""
        adopt_orphans()
        weir = self.start(Lineage(self.text([self.upstream.port]), self.files))
        with Client(weir.port, tls=self.tls()) as client:
            client.get("/")
            weir.upgrade()
            client.send(b"GET / HTTP/1.1\r\n")  # the second process waits for the rest
            weir.upgrade()
            client.send(b"Host: weir\r\n\r\n")
            self.assertEqual(client.read().status, 200)
        self.assertEqual((len(self.upstream.exchanges), self.said()), (2, [self.shown]))


if __name__ == "__main__":
    main()
