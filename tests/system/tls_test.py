#!/usr/bin/env python3
"""TLS from a client's view: versions, ALPN, certificates by name, client certificates, and bytes that are not TLS."""

import contextlib
import pathlib
import random
import re
import socket
import ssl
import struct
import subprocess
import tempfile
import time

from harness import (PATIENCE, Client, TestCase, Upstream, Weir, answer, chunked, client_tls, config, eventually, main,
                     make_authority, make_certificate, make_client_certificate, request_bytes, rule, together)


class TlsConnections(TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.files = make_certificate(folder) | make_certificate(folder, "other", "other.test")

    def setUp(self):
        self.upstream = self.start(Upstream())
        tls = ('tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }, { cert = "other.crt", key = "other.key" }],'
               ' min_version = "1.2" }')
        self.weir = self.start(Weir(config(self.upstream.port, listener=tls), self.files))
        self.trust = client_tls(self.files["edge.crt"])

    def curl(self, *options):
        certificate = self.weir.folder / "edge.crt"
        return subprocess.run(["curl", "-sS", "--cacert", certificate, "--max-time", str(PATIENCE), "-w", "%{http_code}",
                               "--resolve", f"localhost:{self.weir.port}:127.0.0.1", *options,
                               f"https://localhost:{self.weir.port}/"], capture_output=True, text=True, check=False)

    def test_curl_verifies_the_certificate_and_gets_a_response(self):
        self.assertEqual(self.curl().stdout, "ok200")
        self.assertEqual(self.upstream.exchanges[0].head["x-forwarded-proto"], "https")

    def test_tls_1_2_and_1_3_are_supported(self):
        for version in ("1.2", "1.3"):
            with self.subTest(version):
                self.assertEqual(self.curl(f"--tlsv{version}", "--tls-max", version).stdout, "ok200")

    def test_tls_1_1_is_rejected(self):
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{self.weir.port}", "-tls1_1",
                               "-cipher", "ALL:@SECLEVEL=0"], input="", capture_output=True, text=True, check=False)
        self.assertIn("alert protocol version", done.stderr)

    def test_tls_handshakes_are_counted_by_result(self):
        def count(outcome):
            self.await_metric(self.weir, 1, "weir_tls_handshakes_total", outcome=outcome)

        context = client_tls(self.files["edge.crt"])
        # in TLS 1.2, unlike in TLS 1.3, the client has its ticket when the handshake ends
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        sessions = [None]
        for outcome in ("full", "resumed"):
            with socket.create_connection(("127.0.0.1", self.weir.port), PATIENCE) as wire:
                with context.wrap_socket(wire, server_hostname="localhost", session=sessions[-1]) as client:
                    sessions.append(client.session)
            count(outcome)
        with socket.create_connection(("127.0.0.1", self.weir.port), PATIENCE):
            pass
        count("left")
        with socket.create_connection(("127.0.0.1", self.weir.port), PATIENCE) as wire:
            wire.sendall(request_bytes("GET", "/"))
            while wire.recv(1000):
                pass
        count("failed")
        with socket.create_connection(("127.0.0.1", self.weir.port), PATIENCE) as wire, self.assertRaises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(wire, server_hostname="localhost")
        count("alerted")
        self.assertEqual([self.weir.metric("weir_tls_handshakes_total", outcome=outcome) for outcome in ("late", "untrusted")], [0, 0])

    def test_client_that_uses_each_tls_1_3_ticket_once_always_resumes(self):
        offered, session, resumed = set(), None, []
        for _ in range(6):
            with socket.create_connection(("127.0.0.1", self.weir.port), PATIENCE) as wire:
                with self.trust.wrap_socket(wire, server_hostname="localhost", session=session) as client:
                    self.assertEqual(client.version(), "TLSv1.3")
                    resumed.append(client.session_reused)
                    client.sendall(request_bytes("GET", "/"))
                    self.assertTrue(client.recv(65536).startswith(b"HTTP/1.1 200"))  # the tickets precede the response
                    session = client.session if client.session.id not in offered else None
            if session:
                offered.add(session.id)
        self.assertEqual(resumed, [False] + [True] * 5)

    def test_both_tickets_of_a_tls_1_3_client_arrive_in_one_segment(self):
        with Client(self.weir.port, self.trust) as client:
            self.assertEqual(client.get("/").status, 200)
            # tcpi_data_segs_in of struct tcp_info, see tcp(7): at most one segment for the handshake, the tickets, the response
            info = client.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
            self.assertLessEqual(struct.unpack_from("=I", info, 152)[0], 3)

    def test_tls_record_may_arrive_in_two_parts_with_a_pause(self):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self.trust.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", self.weir.port), PATIENCE) as wire:
            def until(work):
                while True:
                    try:
                        return work()
                    except ssl.SSLWantReadError:
                        wire.sendall(outgoing.read())
                        incoming.write(wire.recv(65536) or self.fail("the connection ended"))
            until(client.do_handshake)
            client.write(request_bytes("GET", "/"))
            record = outgoing.read()
            wire.sendall(record[:-10])
            time.sleep(1.5)  # weir has freed the buffer of the silent connection by now
            wire.sendall(record[-10:])
            self.assertTrue(until(lambda: client.read(65536)).startswith(b"HTTP/1.1 200"))

    def test_alpn_chooses_http_1_1(self):
        weir = self.without_http_2()
        for offered in (["h2", "http/1.1"], ["http/1.1"]):
            with Client(weir.port, client_tls(self.files["edge.crt"], offered)) as client:
                self.assertEqual(client.sock.selected_alpn_protocol(), "http/1.1")
                self.assertEqual(client.get("/").status, 200)

    def without_http_2(self):
        """Starts a weir whose listener accepts HTTP/1.1 only."""
        tls = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }\nprotocols = ["http/1.1"]'
        return self.start(Weir(config(self.upstream.port, listener=tls), self.files))

    def offering(self, weir, *protocols):
        """Returns the output of openssl s_client that offers these protocols, sends HTTP/1.0 and waits for the end of the
        connection."""
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{weir.port}", "-alpn", ",".join(protocols),
                               "-ign_eof"], input="GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", capture_output=True, text=True,
                              check=False, timeout=PATIENCE)
        return done.stdout + done.stderr

    def test_alpn_chooses_http_1_0_if_a_client_offers_only_http_1_0(self):
        plain = self.without_http_2()
        for weir, protocols, chosen in ((plain, ["http/1.0"], "http/1.0"), (plain, ["h2", "http/1.0"], "http/1.0"),
                                        (plain, ["http/1.0", "http/1.1"], "http/1.1"), (self.weir, ["http/1.0"], "http/1.0")):
            with self.subTest(protocols):
                said = self.offering(weir, *protocols)
                self.assertIn(f"ALPN protocol: {chosen}\n", said)
                self.assertRegex(said, r"HTTP/1\.[01] 200")

    def test_alpn_rejects_clients_that_offer_only_other_protocols(self):
        plain = self.without_http_2()
        for weir, protocols in ((plain, ["h2"]), (plain, ["http/0.9", "spdy/3"]), (self.weir, ["http/0.9", "spdy/3"])):
            with self.subTest(protocols):
                self.assertIn("alert no application protocol", self.offering(weir, *protocols))

    def test_certificate_is_chosen_by_the_server_name(self):
        with Client(self.weir.port, client_tls(self.files["other.crt"]), "other.test") as client:
            self.assertEqual(client.get("/").status, 200)
        with self.assertRaises(ssl.SSLCertVerificationError):
            Client(self.weir.port, client_tls(self.files["other.crt"]), "localhost")

    def test_request_whose_host_differs_from_the_sni_name_is_served(self):
        for name, host in (("other.test", "localhost"), ("other.test", "nobody.test"), ("localhost", "other.test")):
            with self.subTest(name=name, host=host):
                trust = client_tls(self.files["other.crt" if name == "other.test" else "edge.crt"])
                with Client(self.weir.port, trust, name) as client:
                    self.assertEqual(client.get("/", host=host).status, 200)
                self.assertEqual(self.upstream.exchanges[-1].head["host"], host)

    def test_keep_alive_pipelining_and_large_bodies_work_over_tls(self):
        body = random.randbytes(3_000_001)
        self.upstream.reply = lambda exchange: exchange.send(answer(exchange.read_body()))
        with Client(self.weir.port, self.trust) as client:
            self.assertEqual(client.request("POST", "/", body=body).body, body)
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body[:100_000]))
            self.assertEqual(client.read().body, body[:100_000])
            client.send(request_bytes("GET", "/") * 20)
            self.assertEqual([client.read().status for _ in range(20)], [200] * 20)
        self.assertEqual(self.upstream.connections, 1)

    def test_weir_ends_a_tls_connection_with_close_notify(self):
        with Client(self.weir.port, self.trust) as client:
            self.assertEqual(client.get("/", connection="close").status, 200)
            self.assertTrue(client.closed(), "an end without close_notify raises ssl.SSLEOFError")

    def test_response_truncated_by_the_upstream_is_not_ended_with_close_notify(self):
        def cut(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            exchange.close()

        self.upstream.reply = cut
        with self.assertRaises((EOFError, OSError)), Client(self.weir.port, self.trust) as client:
            client.get("/")

    def test_bytes_that_are_not_tls_close_the_connection(self):
        for garbage in (request_bytes("GET", "/"), b"\0" * 1000, b"\x16\x03\x01\xff\xff" + random.randbytes(5000)):
            with Client(self.weir.port) as client:
                client.send(garbage)
                try:
                    while client.wire.fill():
                        pass
                except ConnectionResetError:
                    pass
        self.assertEqual(self.upstream.exchanges, [])
        self.assertEqual(self.curl().stdout, "ok200")

    def test_tls_handshake_that_stalls_is_ended(self):
        listener = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }'
        weir = self.start(Weir(config(self.upstream.port, listener=listener, server='head_timeout = "300ms"'), self.files))
        with Client(weir.port) as client:
            client.send(b"\x16\x03\x01")
            self.assertTrue(client.closed())
        self.await_metric(weir, 1, "weir_tls_handshakes_total", outcome="late")


    def test_client_that_sends_only_key_updates_is_disconnected(self):
        """Each key update costs as much CPU time as a request. s_client sends one for each line "k"."""
        with subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{self.weir.port}", "-tls1_3"], bufsize=0,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
            eventually(lambda: self.weir.metric("weir_connections_open") == 1, "weir has accepted the connection")
            sent = 0
            while self.weir.metric("weir_client_errors_total", kind="idle_records") == 0:
                self.assertLess(sent, 200, "the connection is never closed")
                client.stdin.write(b"k\n")
                sent += 1
                time.sleep(0.02)
            self.assertGreater(sent, 32)
            self.assertIn(b"KEYUPDATE", client.communicate()[0])
        self.assertEqual(self.curl().stdout, "ok200")


class ClientCertificates(TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.files = make_certificate(cls.folder) | make_certificate(cls.folder, "other", "other.test") | make_authority(cls.folder)
        make_authority(cls.folder, "other-ca")
        make_client_certificate(cls.folder, "alice", "/O=Example/CN=alice")
        make_client_certificate(cls.folder, "alice-anew", "/O=Example/CN=alice")
        make_client_certificate(cls.folder, "bob", "/O=Example/CN=bob")
        make_client_certificate(cls.folder, "stranger", "/O=Example/CN=alice", "other-ca")
        twin = cls.folder / "twin"  # `twin`: another authority with the same name
        twin.mkdir()
        make_authority(twin)
        make_client_certificate(twin, "alice", "/O=Example/CN=alice")
        make_client_certificate(cls.folder, "expired", "/O=Example/CN=alice", days=-1)

    def weir(self, more="", rules="", certificates='{ cert = "edge.crt", key = "edge.key" }'):
        tls = f'tls = {{ certificates = [{certificates}], client_ca = "ca.crt"{more} }}'
        upstream = self.start(Upstream())
        plain = '[[listener]]\naddress = "127.0.0.1:0"\n'
        return self.start(Weir(config(upstream.port, listener=tls + "\n" + plain, rules=rules), self.files))

    def trust(self, shown=None):
        return client_tls(self.files["edge.crt"], shown=shown and self.folder / shown)

    def status(self, weir, shown=None):
        with Client(weir.port, self.trust(shown)) as client:
            return client.get("/").status

    def assert_refused(self, weir, shown, reason):
        with self.assertRaises((OSError, EOFError)):  # in TLS 1.3 the client's handshake ends before the rejection
            self.status(weir, shown)
        weir.wait_for(f"warning TLS: refused the client 127.0.0.1: {reason}$")

    def test_only_valid_client_certificates_of_the_client_ca_are_accepted(self):
        weir = self.weir()
        self.assertEqual(self.status(weir, "alice"), 200)
        self.assert_refused(weir, None, "it presents no certificate")
        self.assert_refused(weir, "stranger", "unable to get local issuer certificate")
        self.assert_refused(weir, "expired", "certificate has expired")
        self.assert_refused(weir, "twin/alice", "certificate signature failure")
        self.await_metric(weir, 4, "weir_client_errors_total", kind="handshake")
        self.await_metric(weir, 4, "weir_tls_handshakes_total", outcome="untrusted")
        self.assertEqual(self.status(weir, "alice"), 200)

    def test_client_certificate_is_required_whatever_sni_name_the_client_sends(self):
        """The client sends the name of another certificate, or an unknown name. With each name weir checks the client's
        certificate, whatever the Host is."""
        weir = self.weir(certificates='{ cert = "edge.crt", key = "edge.key" }, { cert = "other.crt", key = "other.key" }')
        for name, file in (("localhost", "edge.crt"), ("other.test", "other.crt"), ("nobody.test", "edge.crt")):
            for shown in ("alice", None):
                trust = client_tls(self.files[file], shown=shown and self.folder / shown)
                trust.check_hostname = name != "nobody.test"
                with self.subTest(name=name, shown=shown), contextlib.ExitStack() as stack:
                    if shown is None:
                        stack.enter_context(self.assertRaises((OSError, EOFError)))
                    client = stack.enter_context(Client(weir.port, trust, name))
                    self.assertEqual([client.get("/", host=host).status for host in ("localhost", "other.test")], [200] * 2)

    def test_many_rejected_clients_cause_few_log_lines(self):
        weir = self.weir()

        def refused(_):
            with self.assertRaises((OSError, EOFError)):
                self.status(weir)

        def flood():
            together(32, refused)
            return any(re.search(r"it presents no certificate; and \d+ more since$", line) for line in weir.lines)

        eventually(flood, "suppressed lines are counted")
        lines = sum("refused the client" in line for line in weir.lines)
        eventually(lambda: weir.metric("weir_client_errors_total", kind="handshake") > lines, "fewer lines than rejected clients")

    def test_optional_client_certificate_may_be_missing_but_not_invalid(self):
        weir = self.weir(', client_auth = "optional"')
        self.assertEqual([self.status(weir), self.status(weir, "alice")], [200, 200])
        self.assert_refused(weir, "stranger", "unable to get local issuer certificate")

    def test_subject_of_a_client_certificate_can_be_a_key(self):
        """All certificates with the same subject share one limit, also in a resumed session. Without a certificate, the status
        is 401."""
        rules = rule("per-subject", "3/day", key='["cert:subject"]', on_missing='"reject"')
        weir = self.weir(', client_auth = "optional"', rules)
        trust = self.trust("alice")
        # in TLS 1.2, unlike in TLS 1.3, the client has its session when the handshake ends
        trust.maximum_version = ssl.TLSVersion.TLSv1_2
        with Client(weir.port, trust) as client:
            self.assertEqual(client.get("/").status, 200)
            session = client.sock.session
        with socket.create_connection(("127.0.0.1", weir.port), PATIENCE) as wire:
            with trust.wrap_socket(wire, server_hostname="localhost", session=session) as resumed:
                self.assertTrue(resumed.session_reused)
                resumed.sendall(request_bytes("GET", "/"))
                self.assertTrue(resumed.recv(65536).startswith(b"HTTP/1.1 200"))
        self.assertEqual([self.status(weir, name) for name in ("alice-anew", "alice", "bob")], [200, 429, 200])
        with Client(weir.port, self.trust()) as client:
            refused = client.get("/")
        self.assert_own_error(refused, 401)
        with Client(weir.ports[1]) as client:
            self.assert_own_error(client.get("/"), 401)


if __name__ == "__main__":
    main()
