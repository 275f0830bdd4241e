#!/usr/bin/env python3
"""Client addresses from proxies: the PROXY protocol at listeners and upstreams, the Forwarded field, and listeners on unix
sockets."""

import contextlib
import os
import socket
import subprocess
import tempfile

from harness import PATIENCE, Client, TestCase, Upstream, Weir, answer, client_tls, config, eventually, main, make_certificate, request_bytes, rule
from wire import Wire, read_response

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
PROXIED = "proxy_protocol = true"
TRUSTED = 'trusted_proxies = ["127.0.0.1"]'


def first(source="203.0.113.7", family="TCP4", destination="198.51.100.1"):
    return f"PROXY {family} {source} {destination} 51234 443\r\n".encode()


def second(source="203.0.113.7", destination="198.51.100.1", tlvs=b""):
    kind = socket.AF_INET6 if ":" in source else socket.AF_INET
    body = socket.inet_pton(kind, source) + socket.inet_pton(kind, destination) + b"\xc8\x22\x01\xbb" + tlvs
    return SIGNATURE + (b"\x21\x21" if kind == socket.AF_INET6 else b"\x21\x11") + len(body).to_bytes(2, "big") + body


class ProxyProtocolListener(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, *rules, listener=PROXIED, client=TRUSTED, **more):
        files = more.pop("files", None)
        return self.start(Weir(config(self.upstream.port, listener=listener, client=client, rules="\n".join(rules), **more), files))

    def asked(self, weir, preamble, source="127.0.0.1"):
        """Sends a request. Returns the status, and the client address that weir told the upstream."""
        with Client(weir.port, source=source) as client:
            client.send(preamble + request_bytes("GET", "/"))
            status = client.read().status
        return status, self.upstream.exchanges[-1].head["x-forwarded-for"]

    def test_proxy_headers_of_both_versions_give_the_client_address(self):
        weir = self.weir()
        for preamble in (first(), second(), second(tlvs=b"\x04\0\x02hi")):
            self.assertEqual(self.asked(weir, preamble), (200, "203.0.113.7"))
        for preamble in (first("2001:db8::7", "TCP6", "::1"), second("2001:db8::7", "::1")):
            self.assertEqual(self.asked(weir, preamble), (200, "2001:db8::7"))

    def test_proxy_header_without_addresses_keeps_the_address_of_the_proxy(self):
        weir = self.weir()
        for preamble in (b"PROXY UNKNOWN\r\n", SIGNATURE + b"\x20\0\0\0", SIGNATURE + b"\x21\0\0\0"):
            self.assertEqual(self.asked(weir, preamble), (200, "127.0.0.1"))

    def test_rules_count_by_the_address_in_the_proxy_header(self):
        weir = self.weir(rule(limit="1/day", key='["ip"]'))
        self.assertEqual([self.asked(weir, first(source))[0] for source in ("203.0.113.7", "203.0.113.8", "203.0.113.7")],
                         [200, 200, 429])

    def test_proxy_header_may_arrive_byte_by_byte(self):
        weir = self.weir()
        for preamble in (first(), second()):
            with weir.connect() as client:
                for octet in preamble + request_bytes("GET", "/"):
                    client.send(bytes([octet]))
                self.assertEqual(client.read().status, 200)
            self.assertEqual(self.upstream.exchanges[-1].head["x-forwarded-for"], "203.0.113.7")

    def test_proxy_header_is_used_only_from_trusted_proxies(self):
        self.assertEqual(self.asked(self.weir(), first(), source="127.0.0.2"), (200, "127.0.0.2"))

    def test_x_forwarded_for_is_kept_if_the_address_in_the_proxy_header_is_a_trusted_proxy(self):
        weir = self.weir(client='trusted_proxies = ["127.0.0.1", "10.0.0.0/8"]')
        with weir.connect() as client:
            client.send(first("10.0.0.1") + request_bytes("GET", "/", {"X-Forwarded-For": "203.0.113.9"}))
            self.assertEqual(client.read().status, 200)
        self.assertEqual(self.upstream.exchanges[-1].head["x-forwarded-for"], "203.0.113.9, 10.0.0.1")

    def test_connection_without_a_proxy_header_is_closed_and_counted(self):
        weir = self.weir()
        bad = (request_bytes("GET", "/"), b"PROXY TCP4 1.2.3.4\r\n", b"proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n", first()[:-2] + b"\n\n",
               b"PROXY UNKNOWN " + 200 * b"x", SIGNATURE + b"\x31\x11\0\x0c" + 12 * b"x", SIGNATURE + b"\x21\x11\0\x04abcd",
               SIGNATURE + b"\x21\x11\xff\xff", second()[:14] + b"\x08\x01")
        for preamble in bad:
            with self.subTest(preamble), weir.connect() as client:
                client.send(preamble + request_bytes("GET", "/"))
                self.assertTrue(client.closed(), "the connection is closed without a response")
        with weir.connect() as client:
            client.send(first()[:20])
            client.sock.shutdown(socket.SHUT_WR)
            self.assertTrue(client.closed())
        self.await_metric(weir, len(bad) + 1, "weir_client_errors_total", kind="preamble")
        self.assertEqual(self.upstream.exchanges, [])

    def test_proxy_header_must_arrive_within_head_timeout(self):
        weir = self.weir(server='head_timeout = "300ms"')
        for begun in (b"", first()[:10], second()[:20]):
            with weir.connect() as client:
                client.send(begun)
                self.assertTrue(client.closed())
        self.await_metric(weir, 3, "weir_client_errors_total", kind="preamble")

    def test_tls_handshake_follows_the_proxy_header(self):
        files = make_certificate(self.enterContext(tempfile.TemporaryDirectory()))
        weir = self.weir(listener=PROXIED + '\ntls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }', files=files)
        for preamble in (first(), second()):
            plain = socket.create_connection(("127.0.0.1", weir.port), PATIENCE)
            plain.sendall(preamble)
            with client_tls(files["edge.crt"]).wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(request_bytes("GET", "/"))
                self.assertEqual(read_response(Wire(secure)).status, 200)
            self.assertEqual(self.upstream.exchanges[-1].head["x-forwarded-for"], "203.0.113.7")

    def test_connections_are_bounded_by_the_address_in_the_proxy_header(self):
        weir = self.weir(server="max_connections_per_ip = 2")

        def enter(source, family):
            client = self.enterContext(weir.connect())
            client.send(first(source, family, "::1" if family == "TCP6" else "1.2.3.4") + request_bytes("GET", "/"))
            with contextlib.suppress(EOFError, ConnectionError):
                return client.read().status
            return None

        self.assertEqual([enter("203.0.113.7", "TCP4") for _ in range(3)], [200, 200, None])
        self.assertEqual([enter(f"2001:db8:1:{net}::{host}", "TCP6") for net, host in ((1, 1), (1, 2), (1, 3), (2, 1))],
                         [200, 200, None, 200], "IPv6 connections are counted by prefix")

    def test_proxy_header_of_curl_is_accepted(self):
        weir = self.weir()
        done = subprocess.run(["curl", "-sS", "--haproxy-protocol", "--max-time", str(PATIENCE), "-w", "%{http_code}",
                               f"http://127.0.0.1:{weir.port}/"], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "ok200", done.stderr)


class ProxyProtocolUpstream(TestCase):
    def test_every_upstream_connection_has_a_proxy_header_and_serves_one_request(self):
        upstream = self.start(Upstream())
        inner = self.start(Weir(config(upstream.port, listener=PROXIED, client=TRUSTED)))
        outer = self.start(Weir(config(inner.port, listener=PROXIED, client=TRUSTED, upstream=PROXIED)))
        for number in range(6):
            source = f"203.0.113.{number}" if number % 2 else f"2001:db8::{number + 1}"
            with outer.connect() as client:
                client.send(first(source, "TCP4" if number % 2 else "TCP6", "1.2.3.4" if number % 2 else "::1"))
                for _ in range(2):
                    self.assertEqual(client.get("/").status, 200)
                    self.assertEqual(upstream.exchanges[-1].head["x-forwarded-for"], source)
        self.assertEqual(outer.metric("weir_upstream_connects_total"), 12)
        self.assertEqual(outer.metric("weir_upstream_reused_total"), 0)

    def test_health_checks_send_a_proxy_header_of_type_local(self):
        upstream = self.start(Upstream())
        inner = self.start(Weir(config(upstream.port, listener=PROXIED, client=TRUSTED)))
        outer = self.start(Weir(config(inner.port, upstream=PROXIED + '\nhealth = { path = "/health", interval = "50ms" }')))
        eventually(lambda: len(upstream.exchanges) >= 3, "health checks reach the upstream")
        self.assertEqual(outer.metric("weir_upstream_healthy"), 1)
        self.assertEqual(inner.metric("weir_client_errors_total", kind="preamble"), 0)


class ForwardedField(TestCase):
    def test_forwarded_field_gives_the_client_address(self):
        upstream = self.start(Upstream())
        weir = self.start(Weir(config(upstream.port, server="forwarded = true", rules=rule(limit="1/day", key='["ip"]'),
                                      client=TRUSTED + '\naddress_from = "forwarded"')))

        def ask(value, **more):
            return weir.get("/", forwarded=value, **more).status

        self.assertEqual([ask("for=203.0.113.7;proto=https"), ask('for="203.0.113.8:4711"'), ask('FOR="[2001:db8::1]:80"')], [200] * 3)
        self.assertEqual([ask('for=198.51.100.1, for="203.0.113.7:1"'), ask('host="a,for=198.51.100.2;x";for=203.0.113.8'),
                          ask('for=203.0.113.7;host="a;for=198.51.100.3"')], [429] * 3, "an element after quotes is found")
        self.assertEqual(ask("for=198.51.100.9", x_forwarded_for="203.0.113.7"), 200, "X-Forwarded-For is ignored")
        self.assertEqual(ask("for=198.51.100.9", x_forwarded_for="203.0.113.10"), 429)
        self.assertEqual([ask("for=unknown"), ask("for=_hidden")], [200, 429], "unknown and obfuscated clients count as the proxy")
        self.assertEqual(upstream.exchanges[0].head.all("forwarded"),
                         ["for=203.0.113.7;proto=https", 'for=127.0.0.1;proto=http;host="localhost"'])


class UnixListener(TestCase):
    def test_unix_socket_can_be_a_listener(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        upstream = self.start(Upstream())
        path = f"{folder}/weir"
        # The harness waits for the port of each "[[listener]]". The spaces hide these listeners, which have no port, from the
        # harness.
        more = f'[[ listener ]]\naddress = "unix:{path}"\n[[ listener ]]\naddress = "unix:{path}-proxied"\nproxy_protocol = true'
        weir = self.start(Weir(config(upstream.port, listener=more, client='trusted_proxies = ["unix:"]')))

        def ask(name, data, **headers):
            with socket.socket(socket.AF_UNIX) as wire:
                wire.settimeout(PATIENCE)
                wire.connect(name)
                wire.sendall(data + request_bytes("GET", "/", headers))
                status = read_response(Wire(wire)).status
            return status, upstream.exchanges[-1].head["x-forwarded-for"].split(",")[0]

        self.assertEqual(ask(path, b"", **{"X-Forwarded-For": "203.0.113.7"}), (200, "203.0.113.7"), "trusted")
        self.assertEqual(ask(path + "-proxied", first()), (200, "203.0.113.7"))
        self.assertEqual(weir.get("/", x_forwarded_for="203.0.113.7").status, 200)
        self.assertEqual(upstream.exchanges[-1].head["x-forwarded-for"], "127.0.0.1", "X-Forwarded-For from untrusted peers is replaced")
        done = subprocess.run(["curl", "-sS", "--unix-socket", path, "--max-time", str(PATIENCE), "http://weir.test/"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "ok", done.stderr)
        self.assertNotIn("x-forwarded-for", upstream.exchanges[-1].head, "weir invents no address")
        self.assertEqual(weir.stop(), 0)
        self.assertEqual(os.listdir(folder), [], "the socket file is removed")


if __name__ == "__main__":
    main()
