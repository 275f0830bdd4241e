#!/usr/bin/env python3
"""Connections to HTTP/2 servers: how many requests share a connection, when connections end, and TLS."""

import pathlib
import signal
import ssl
import tempfile
import threading

from harness import PATIENCE, Upstream, answer, closed_port, eventually, main, make_certificate
from http2_client import CANCEL
from http2_server import MOST_STREAMS, Http2Server, hello, server_tls
from http2_upstream import BOTH, Http2UpstreamTestCase, ask


class Held:
    """A reply that answers no request until `release` is set."""

    def __init__(self):
        self.release = threading.Event()

    def __call__(self, request):
        request.read_body()
        self.release.wait(PATIENCE)
        request.answer(request.path.encode())


def counts(server):
    """Returns how many requests each connection has had."""
    return sorted(len(session.requests) for session in server.sessions)


class Sharing(Http2UpstreamTestCase):
    def at_once(self, weir, server, count, held):
        """Opens `count` requests by clients of both versions, waits until the server has all, and lets it answer."""
        before = len(server.requests)
        http2 = self.client(weir)
        streams = {f"/{number}": http2.open(path=f"/{number}") for number in range(0, count, 2)}
        others = {f"/{number}": self.client(weir, "HTTP/1.1") for number in range(1, count, 2)}
        for path, client in others.items():
            client.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        self.await_requests(server, before + count)
        held.release.set()
        bodies = {path: http2.read(stream).body for path, stream in streams.items()}
        bodies |= {path: client.read().body for path, client in others.items()}
        self.assertEqual(bodies, {f"/{number}": f"/{number}".encode() for number in range(count)})

    def test_requests_share_one_connection_even_while_it_is_being_opened(self):
        held = Held()
        server = self.serve(held)
        self.at_once(self.weir(server), server, 40, held)
        self.assertEqual(counts(server), [40])

    def test_many_requests_that_wait_for_one_connection_count_as_a_single_connect(self):
        go_on = threading.Event()
        server = self.serve(ahead=lambda sock: go_on.wait(PATIENCE))
        weir = self.weir(server, upstream='timeouts = { connect = "20s" }')
        client = self.client(weir)
        streams = [client.open() for _ in range(10)]
        self.await_metric(weir, 10, "weir_http2_streams")
        go_on.set()
        self.assertEqual([client.read(stream).status for stream in streams], [200] * 10)
        self.assertEqual(client.get().status, 200)
        self.assertEqual(server.connections, 1)
        self.await_metric(weir, 1, "weir_upstream_connects_total", upstream="api")
        self.await_metric(weir, 1, "weir_upstream_reused_total", upstream="api")

    def test_max_streams_bounds_the_requests_of_a_connection(self):
        held = Held()
        server = self.serve(held)
        weir = self.weir(server, upstream="max_streams = 3")
        self.at_once(weir, server, 8, held)
        self.assertEqual(counts(server), [2, 3, 3])
        self.at_once(weir, server, 1, held)
        self.assertEqual(server.connections, 3)

    def test_open_requests_never_exceed_the_servers_bound_on_streams(self):
        held = Held()
        server = self.serve(held, settings={MOST_STREAMS: 2})
        weir = self.weir(server)
        held.release.set()
        self.assertEqual(self.client(weir).get().status, 200)
        held.release.clear()
        self.at_once(weir, server, 5, held)
        self.assertEqual([len(session.requests) for session in server.sessions[:1]], [3])
        self.assertLessEqual(max(counts(server)), 3)

    def test_requests_that_waited_for_the_connection_never_exceed_the_servers_bound_on_streams(self):
        """weir learns the server's bound only after it has connected."""
        sent = threading.Event()
        server = self.serve(settings={MOST_STREAMS: 2}, ahead=lambda _: sent.wait(PATIENCE))
        client = self.client(self.weir(server))
        with client.one_write():
            streams = [client.open() for _ in range(60)]
        client.ping()
        sent.set()
        self.assertEqual({client.read(stream).status for stream in streams}, {200})

    def test_weir_obeys_a_server_that_lowers_its_bound_on_streams(self):
        held = Held()
        server = self.serve(held)
        weir = self.weir(server)
        held.release.set()
        self.assertEqual(self.client(weir).get().status, 200)
        session = server.sessions[0]
        session.announce({MOST_STREAMS: 1})
        session.wait(lambda: session.h2.local_settings.max_concurrent_streams == 1)
        held.release.clear()
        self.at_once(weir, server, 2, held)
        self.assertEqual(counts(server), [1, 2])

    def test_two_workers_open_at_most_one_connection_each(self):
        server = self.serve()
        weir = self.weir(server, workers=2)
        for _ in range(20):
            self.assertEqual(self.client(weir, "HTTP/1.1").get().status, 200)
        self.assertLessEqual(server.connections, 2)

    def test_cancelled_request_makes_room_for_a_waiting_request(self):
        server = self.serve(lambda request: request.wait_for_reset() if request.path == "/held" else request.answer())
        client = self.client(self.weir(server, upstream="max_streams = 1"))
        stream = client.open(path="/held")
        request = self.await_requests(server, 1)
        client.reset(stream)
        self.await_error(request, CANCEL)
        self.assertEqual([client.get().status for _ in range(3)], [200] * 3)
        self.assertEqual(server.connections, 1)


class Ends(Http2UpstreamTestCase):
    def test_an_idle_connection_ends_with_goaway(self):
        server = self.serve()
        client = self.client(self.weir(server, upstream='timeouts = { idle = "300ms" }'))
        self.assertEqual(client.get().status, 200)
        session = server.sessions[0]
        session.wait(lambda: session.ended)
        self.assertEqual(session.goaways, [0])
        self.assertEqual(client.get().status, 200)
        self.assertEqual(server.connections, 2)

    def test_a_connection_with_a_request_is_not_idle(self):
        held = Held()
        server = self.serve(held)
        client = self.client(self.weir(server, upstream='timeouts = { idle = "200ms" }'))
        stream = client.open()
        request = self.await_requests(server, 1)
        with self.assertRaises(TimeoutError):
            request.connection.wait(lambda: request.connection.ended or request.connection.goaways, 1)
        held.release.set()
        self.assertEqual(client.read(stream).status, 200)

    def test_a_restarted_server_gets_a_fresh_connection(self):
        with Http2Server() as server:
            weir = self.weir(server, upstream='eject = { least = "10ms", most = "10ms" }')
            clients = [self.client(weir, version) for version in BOTH]
            self.assertEqual([ask(client).status for client in clients], [200] * 2)
            session = server.sessions[0]
        session.wait(lambda: session.ended)
        port = server.port
        server = self.serve(port=port)
        self.assertEqual([ask(client, "POST", body=b"abc").status for client in clients], [200] * 2)
        self.assertEqual([request.body for request in server.requests], [b"abc"] * 2)

    def test_requests_on_a_lost_connection_fail(self):
        server = self.serve(lambda request: None)
        weir = self.weir(server, upstream="eject = { failures = 1000 }\nretry = { attempts = 1 }")
        client = self.client(weir)
        streams = [client.open("POST", path) for path in ("/1", "/2", "/3")]
        self.await_requests(server, 3)
        server.sessions[0].close()
        for stream in streams:
            self.assert_own_error(client.read(stream), 502)
        server.reply = hello
        self.assertEqual(client.get().status, 200)

    def test_open_requests_are_finished_when_weir_stops(self):
        held = Held()
        server = self.serve(held)
        weir = self.weir(server)
        client = self.client(weir)
        stream = client.open()
        self.await_requests(server, 1)
        weir.process.terminate()
        client.wait(lambda: client.goaways)
        held.release.set()
        self.assertEqual(client.read(stream).status, 200)
        weir.wait()
        session = server.sessions[0]
        session.wait(lambda: session.ended)

    def test_unreachable_server_gives_502(self):
        class Away:
            port = closed_port()

        weir = self.weir(Away)
        for version in BOTH:
            self.assert_own_error(ask(self.client(weir, version)).answer, 502)

    def test_requests_that_wait_for_a_connection_all_fail_if_it_cannot_be_opened(self):
        silent = threading.Event()
        self.addCleanup(silent.set)
        server = self.serve(tls=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ahead=lambda _: silent.wait(PATIENCE))
        weir = self.weir(server, protocol="h2", scheme="https://", upstream='tls = { verify = false }\ntimeouts = { connect = "2s" }')
        client = self.client(weir)
        streams = [client.open() for _ in range(20)]
        for stream in streams:
            self.assert_own_error(client.read(stream), 504)
        self.assertEqual(server.connections, 1)

    def test_requests_after_a_reload_go_to_the_new_server(self):
        held = Held()
        old, new = self.serve(held), self.serve()
        weir = self.weir(old)
        client = self.client(weir)
        stream = client.open(path="/held")
        self.await_requests(old, 1)
        (weir.folder / "weir.toml").write_text(self.text(new))
        weir.signal(signal.SIGHUP)
        self.await_metric(weir, 1, "weir_reloads_total", result="ok")
        self.assertEqual([client.get().body for _ in range(5)], [b"ok"] * 5)
        self.assertEqual((len(old.requests), len(new.requests)), (1, 5))
        held.release.set()
        self.assertEqual(client.read(stream).body, b"/held")
        session = old.sessions[0]
        session.wait(lambda: session.ended)

    def test_server_that_speaks_only_http_1_1_gives_502(self):
        weir = self.weir(self.start(Upstream(lambda exchange: exchange.send(answer(status="400 Bad Request")))))
        for version in BOTH:
            self.assert_own_error(ask(self.client(weir, version)).answer, 502)


class Tls(Http2UpstreamTestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-h2-")))
        self.files = make_certificate(self.folder, "server", "api.test")

    def context(self, *alpn):
        return server_tls(self.folder / "server.crt", self.folder / "server.key", alpn)

    def secure(self, server, protocol, **more):
        tls = 'tls = { ca = "server.crt", server_name = "api.test" }\n'
        return self.weir(server, protocol=protocol, upstream=tls, scheme="https://", files=self.files, **more)

    def test_protocols_h2_and_auto_use_http2_if_the_server_offers_it(self):
        for protocol in ("h2", "auto"):
            with self.subTest(protocol):
                server = self.serve(lambda request: request.answer(request.read_body()), tls=self.context("h2", "http/1.1"))
                weir = self.secure(server, protocol)
                for version in BOTH:
                    client = self.client(weir, version)
                    self.assertEqual(ask(client, "POST", body=b"x" * 100_000).body, b"x" * 100_000)
                    self.assertEqual(ask(client).status, 200)
                self.assertEqual((counts(server), server.requests[0][":scheme"]), ([4], "https"))

    def test_protocol_auto_uses_http1_if_the_server_offers_nothing_else(self):
        for alpn in (["http/1.1"], []):
            with self.subTest(alpn):
                server = self.start(Upstream(lambda exchange: exchange.send(answer(exchange.read_body())), tls=self.context(*alpn)))
                client = self.client(self.secure(server, "auto"))
                streams = [client.open("POST", end=False) for _ in range(10)]
                for stream in streams:
                    client.send_body(stream, b"x" * 40_000)
                self.assertEqual([client.read(stream).size for stream in streams], [40_000] * 10)
                self.assertEqual({exchange.version for exchange in server.exchanges}, {"HTTP/1.1"})
                connections = server.connections
                self.assertEqual([client.get().status for _ in range(5)], [200] * 5)
                self.assertEqual(server.connections, connections, "connections are kept")

    def test_protocol_auto_follows_a_server_that_changes_its_protocol(self):
        with Upstream(tls=self.context("http/1.1")) as old:
            weir = self.secure(old, "auto")
            client = self.client(weir)
            self.assertEqual([client.get().status for _ in range(3)], [200] * 3)
        eventually(lambda: not old.open, "the server has ended its connections")
        new = self.serve(port=old.port, tls=self.context("h2"))
        eventually(lambda: client.get().status == 200, "the new server answers")
        streams = [client.open() for _ in range(10)]
        self.assertEqual([client.read(stream).status for stream in streams], [200] * 10)
        self.assertEqual(len(new.faults), 0)

    def test_protocol_auto_sends_no_request_to_an_http2_server_that_permits_no_stream(self):
        with Upstream(tls=self.context("http/1.1")) as old:
            weir = self.secure(old, "auto")
            client = self.client(weir)
            self.assertEqual(client.get().status, 200)
        eventually(lambda: not old.open, "the server has ended its connections")
        new = self.serve(port=old.port, tls=self.context("h2"), settings={MOST_STREAMS: 0})
        self.assert_own_error(client.get(), 503)
        self.assertEqual(new.requests, [])

    def test_protocol_h2_gives_502_if_the_server_offers_no_http_2(self):
        for alpn in (["http/1.1"], []):
            with self.subTest(alpn):
                server = self.start(Upstream(tls=self.context(*alpn)))
                weir = self.secure(server, "h2")
                for version in BOTH:
                    self.assert_own_error(ask(self.client(weir, version)).answer, 502)
                weir.wait_for(r"HTTP/2 \(ALPN\)|ALPN|does not speak HTTP/2")
                self.assertEqual(server.exchanges, [])

    def test_weir_speaks_http1_to_a_server_with_tls_by_default(self):
        server = self.start(Upstream(tls=self.context("h2", "http/1.1")))
        self.assertEqual(self.client(self.secure(server, "http/1.1")).get().status, 200)


if __name__ == "__main__":
    main()
