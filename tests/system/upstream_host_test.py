#!/usr/bin/env python3
"""The field Host of requests to servers (`host` of an upstream), for both protocols of clients and servers, and for every kind of
connection to a server."""

import signal
import tempfile

import grpc

from edge_test import LISTENERS, PROTOCOLS, curl
from harness import PATIENCE, Upstream, Weir, config, eventually, logged_requests, main, make_certificate, rule
from http2_client import Http2TestCase
from http2_server import Http2Server, server_tls
from http2_websocket_test import WebSocket, echo

HOST = 'host = "api.internal:8080"\n'
INTERNAL = "api.internal:8080"


class HostTestCase(Http2TestCase):
    def begin(self, *ports, upstream=HOST, **more):
        return self.start(Weir(config(*ports or [self.upstream.port], listener=LISTENERS, upstream=upstream, **more), self.files))

    def hosts(self):
        return [(exchange.head.all("host"), exchange.head.all("x-forwarded-host")) for exchange in self.upstream.exchanges]


class Requests(HostTestCase):
    def test_http1_server_gets_the_configured_host_and_the_clients_host_in_forwarding_fields(self):
        weir = self.begin(server="forwarded = true\n")
        for options, tls in PROTOCOLS:
            self.upstream.exchanges.clear()
            self.assertEqual(curl(weir, host="shop.example", options=options, tls=tls).status, 200)
            client = f"shop.example:{weir.ports[tls]}"
            self.assertEqual(self.hosts(), [([INTERNAL], [client])])
            self.assertIn(f'host="{client}"', self.upstream.exchanges[0].head["forwarded"])

    def test_http2_server_gets_the_configured_host_as_authority(self):
        server = self.start(Http2Server(lambda request: request.answer(b"ok")))
        weir = self.begin(server.port, upstream=HOST + 'protocol = "h2c"\n')
        for options, tls in PROTOCOLS:
            self.assertEqual(curl(weir, host="shop.example", options=options, tls=tls).status, 200)
            asked = server.requests[-1]
            self.assertEqual((asked[":authority"], asked["host"], asked["x-forwarded-host"]), (INTERNAL, None, f"shop.example:{weir.ports[tls]}"))

    def test_host_of_the_client_is_forwarded_by_default(self):
        for upstream in ("", 'host = "{host}"\n'):
            weir = self.begin(upstream=upstream)
            self.upstream.exchanges.clear()
            curl(weir, host="Shop.example")
            self.assertEqual(self.hosts(), [([f"Shop.example:{weir.port}"],) * 2])

    def test_request_without_a_host_is_forwarded_with_the_configured_host(self):
        for upstream, host in ((HOST, INTERNAL), ("", self.upstream.address)):
            weir = self.begin(upstream=upstream)
            self.upstream.exchanges.clear()
            with weir.connect() as client:
                client.send(b"GET / HTTP/1.0\r\n\r\n")
                self.assertEqual(client.read().status, 200)
            self.assertEqual(self.upstream.exchanges[0].head.all("host"), [host])

    def test_rules_routes_and_the_access_log_use_the_host_of_the_client(self):
        text = config(self.upstream.port, listener=LISTENERS, upstream=HOST, rules=rule(limit="1/1000day", key='["host"]'),
                      routes='[[route]]\nmatch = { host = "*.example" }\nupstream = "api"\nheaders.request.set = { X-Host = "{host}" }\n')
        weir = self.start(Weir(text.replace('access = "off"', 'access = "access.log"'), self.files))
        self.assertEqual([curl(weir, host=host).status for host in ("a.example", "a.example", "b.example", "api.internal")], [200, 429, 200, 404])
        self.assertEqual([exchange.head["x-host"] for exchange in self.upstream.exchanges], ["a.example", "b.example"])
        lines = eventually(lambda: (read := logged_requests(weir.folder / "access.log"))[3:] and read, "the requests are logged")
        self.assertEqual(sorted({line["host"] for line in lines}), sorted(f"{host}:{weir.port}" for host in ("a.example", "b.example", "api.internal")))

    def test_request_that_is_retried_at_another_server_has_the_configured_host(self):
        broken = self.start(Upstream(lambda exchange: exchange.close()))
        weir = self.begin(broken.port, self.upstream.port, upstream=HOST + 'retry = { attempts = 2, budget = "100%" }\nbalance = "round_robin"\n')
        self.assertEqual([curl(weir, "/repeated").status for _ in range(4)], [200] * 4)
        self.assertTrue(broken.exchanges)
        self.assertEqual({exchange.head["host"] for exchange in broken.exchanges + self.upstream.exchanges}, {INTERNAL})

    def test_reload_changes_the_host(self):
        weir = self.begin()
        curl(weir)
        file = weir.folder / "weir.toml"
        file.write_text(file.read_text().replace(INTERNAL, "other.internal"))
        weir.signal(signal.SIGHUP)
        weir.wait_for("the configuration was reloaded")
        curl(weir)
        self.assertEqual([host for (host,), _ in self.hosts()], [INTERNAL, "other.internal"])


class OtherWays(HostTestCase):
    def test_websockets_of_both_protocols_have_the_configured_host(self):
        self.upstream.reply = echo
        weir = self.begin()
        with weir.connect() as client:
            client.send(b"GET /chat HTTP/1.1\r\nHost: shop.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            self.assertTrue(client.wire.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 101"))
        self.assertEqual(WebSocket(self.client(weir)).answer.status, 200)
        self.assertEqual(self.hosts(), [([INTERNAL], ["shop.example"]), ([INTERNAL], ["localhost"])])

    def test_grpc_calls_have_the_configured_host(self):
        def reply(request):
            request.answer(request.read_body(), fields=[("content-type", "application/grpc")], length=False, trailers=[("grpc-status", "0")])

        server = self.start(Http2Server(reply))
        weir = self.begin(server.port, upstream=HOST + 'protocol = "h2c"\n')
        channel = self.start(grpc.insecure_channel(f"127.0.0.1:{weir.port}"))
        self.assertEqual(channel.unary_unary("/shop.Cart/Echo")(b"a", timeout=PATIENCE), b"a")
        self.assertEqual(server.requests[0][":authority"], INTERNAL)

    def test_health_checks_have_the_configured_host(self):
        probe = 'health = { path = "/healthz", interval = "50ms" }\n'
        for upstream, host in ((HOST, INTERNAL), ("", None)):
            server = self.start(Upstream())
            self.begin(server.port, upstream=upstream + probe)
            eventually(lambda: server.exchanges, "a probe arrives")
            self.assertEqual(server.exchanges[0].head.all("host"), [host or server.address])

    def test_certificate_of_the_server_is_verified_for_the_tls_name(self):
        names = []
        with tempfile.TemporaryDirectory() as folder:
            files = make_certificate(folder, "server")
            context = server_tls(f"{folder}/server.crt", f"{folder}/server.key", alpn=())
        context.sni_callback = lambda sock, name, context: names.append(name)
        server = self.start(Upstream(tls=context))
        text = config(server.port, listener=LISTENERS, upstream=HOST + 'tls = { ca = "server.crt", server_name = "localhost" }\n')
        weir = self.start(Weir(text.replace('servers = ["', 'servers = ["https://'), {**self.files, **files}))
        self.assertEqual(curl(weir).status, 200)
        self.assertEqual((names, server.exchanges[0].head["host"]), (["localhost"], INTERNAL))


if __name__ == "__main__":
    main()
