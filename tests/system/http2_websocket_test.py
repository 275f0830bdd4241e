#!/usr/bin/env python3
"""WebSockets of HTTP/2 clients to HTTP/1.1 servers (RFC 8441): the handshake, octets both ways, limits, and every kind of end."""

import base64
import contextlib
import hashlib
import json
import pathlib
import signal
import socket
import subprocess
import threading
import time

import h2.settings
from harness import PATIENCE, Upstream, Weir, answer, eventually, main, rule
from http2_client import CANCEL, Http2TestCase
from lineage import Lineage, adopt_orphans
from tunnel_test import DEBIANS_PYTHON, frame, read_frame

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MIB = 1 << 20


def switch(exchange, more=b"", key=None):
    """Answers the handshake as a server must. `key`: the key to confirm instead of the right one."""
    digest = hashlib.sha1(((key or exchange.head["sec-websocket-key"]) + GUID).encode()).digest()
    exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
                  base64.b64encode(digest) + b"\r\nSec-WebSocket-Protocol: chat\r\nX-Kept: yes\r\n\r\n" + more)


def echo(exchange):
    """Opens the WebSocket and echoes all octets until the other side closes its sending side. Answers other requests."""
    if "upgrade" not in exchange.head:
        return exchange.send(answer(exchange.target.encode()))
    switch(exchange)
    while exchange.wire.buffer or exchange.wire.fill():
        exchange.send(exchange.wire.take(len(exchange.wire.buffer)))
    exchange.close()
    return None


def reset(exchange):
    exchange.wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    exchange.wire.sock.close()


class WebSocket:
    """A stream of an HTTP/2 connection that carries a WebSocket."""

    def __init__(self, client, path="/chat", fields=(), protocol="websocket"):
        pseudo = [(":method", "CONNECT"), (":protocol", protocol), (":scheme", client.scheme), (":path", path),
                  (":authority", "localhost")]
        self.client, self.buffer = client, bytearray()
        self.stream = client.open(fields=[("sec-websocket-version", "13"), *fields], end=False, pseudo=pseudo)
        self.answer = client.answers[self.stream]
        client.wait(lambda: self.answer.status is not None or self.answer.error is not None)

    def fill(self):
        self.buffer += self.answer.body
        self.answer.pieces.clear()
        return len(self.buffer)

    def is_over(self):
        return self.answer.ended or self.answer.error is not None

    def read_exactly(self, size):
        self.client.wait(lambda: self.fill() >= size or self.is_over())
        if self.fill() < size:
            raise EOFError(f"the stream ended: {self.answer.error}")
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    def send(self, data):
        self.client.send_body(self.stream, data, end=False)

    def end(self):
        self.client.send_body(self.stream, b"")

    def through(self, data):
        self.send(data)
        return self.read_exactly(len(data))

    def wait_for_end(self):
        """Returns the error of a reset; None: the stream ended with END_STREAM."""
        self.client.wait(self.is_over)
        return self.answer.error

    def close_code(self):
        opcode, payload = read_frame(self)
        return int.from_bytes(payload[:2], "big") if opcode == CLOSE else None


class WebSocketTestCase(Http2TestCase):
    def setUp(self):
        super().setUp()
        self.upstream.reply = echo

    def opened(self, client, **more):
        websocket = WebSocket(client, **more)
        self.assertEqual(websocket.answer.status, 200)
        self.assertFalse(websocket.is_over())
        return websocket


class Handshake(WebSocketTestCase):
    def test_server_gets_the_handshake_of_http1_and_the_client_gets_200(self):
        weir = self.weir(rules=rule("all", "100/s"))
        client = self.client(weir)
        offers = [("sec-websocket-protocol", "chat, other"), ("origin", "http://localhost"), ("sec-websocket-key", "a false one")]
        websocket = self.opened(client, path="/chat?room=1", fields=offers)
        self.assertEqual(client.h2.remote_settings[h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL], 1)
        asked = self.upstream.exchanges[0]
        self.assertEqual((asked.method, asked.target), ("GET", "/chat?room=1"))
        self.assertEqual((asked.head["upgrade"], asked.head["connection"].lower()), ("websocket", "upgrade"))
        self.assertEqual((asked.head["sec-websocket-version"], asked.head["sec-websocket-protocol"]), ("13", "chat, other"))
        self.assertEqual((asked.head["host"], asked.head["via"]), ("localhost", "2 weir"))
        keys = asked.head.all("sec-websocket-key")
        self.assertEqual([len(base64.b64decode(key, validate=True)) for key in keys], [16])
        self.assertNotIn("transfer-encoding", asked.head)
        got = websocket.answer
        self.assertEqual((got["sec-websocket-protocol"], got["x-kept"], got["x-ratelimit-limit"]), ("chat", "yes", "100"))
        for name in ("sec-websocket-accept", "connection", "upgrade", "content-length"):
            self.assertNotIn(name, got)
        self.opened(client)
        self.assertNotEqual(self.upstream.exchanges[1].head["sec-websocket-key"], keys[0], "each handshake has a key of its own")

    def test_answer_that_opens_no_websocket_reaches_the_client(self):
        self.upstream.reply = answer(b"no", "403 Forbidden")
        client = self.client(self.weir())
        websocket = WebSocket(client)
        self.assertIsNone(websocket.wait_for_end())
        self.assertEqual((websocket.answer.status, websocket.answer.body), (403, b"no"))
        self.upstream.reply = echo
        self.assert_answers(client)

    def test_client_gets_502_if_the_server_does_not_open_the_websocket_with_101(self):
        """To the client, any 2xx status would mean that the WebSocket is open."""
        replies = {"200": answer(b"a page"), "another key": lambda exchange: switch(exchange, key="another"),
                   "no key": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"}
        weir = self.weir()
        client = self.client(weir)
        for what, reply in replies.items():
            with self.subTest(what):
                self.upstream.reply = reply
                websocket = WebSocket(client)
                websocket.wait_for_end()
                self.assert_own_error(websocket.answer, 502)
        self.assertEqual(weir.metric("weir_tunnels_total"), 0)

    def test_websocket_handshake_gets_502_if_the_server_speaks_http2(self):
        inner = self.weir()
        outer = self.start(Weir(self.text(upstream='protocol = "h2c"').replace(f":{self.upstream.port}", f":{inner.port}"), self.files))
        client = self.client(outer)
        websocket = WebSocket(client)
        websocket.wait_for_end()
        self.assert_own_error(websocket.answer, 502)
        self.assertNotIn("upgrade", self.upstream.exchanges[0].head)
        self.assert_answers(client)

    def test_rule_refuses_a_websocket_with_429(self):
        client = self.client(self.weir(rules=rule("two", "2/day", algorithm='"fixed_window"', key='["ip"]')))
        first, second = self.opened(client), self.opened(client)
        third = WebSocket(client)
        third.wait_for_end()
        self.assert_own_error(third.answer, 429)
        self.assertEqual(len(self.upstream.exchanges), 2)
        self.assertEqual([each.through(b"on") for each in (first, second)], [b"on", b"on"])

    def test_websocket_that_the_route_does_not_permit_is_refused_without_a_charge(self):
        routes = ('[[route]]\nmatch = { path = "/none" }\nupgrade = []\nupstream = "api"\n'
                  '[[route]]\nmatch = { path = "/weir" }\nrespond = { status = 200 }\n[[route]]\nupstream = "api"\n')
        client = self.client(self.weir(rules=rule("one", "1/day", algorithm='"fixed_window"', key='["ip"]'), routes=routes))
        for path in ("/none", "/weir"):
            websocket = WebSocket(client, path=path)
            websocket.wait_for_end()
            self.assert_own_error(websocket.answer, 501)
        self.assertEqual(len(self.upstream.exchanges), 0)
        self.opened(client)

    def test_extended_connect_with_another_protocol_or_a_body_is_refused(self):
        client = self.client(self.weir())
        for options, status in (({"protocol": "connect-udp"}, 405), ({"fields": [("content-length", "5")]}, 400)):
            with self.subTest(options):
                websocket = WebSocket(client, **options)
                websocket.wait_for_end()
                self.assert_own_error(websocket.answer, status)
        self.assertEqual(len(self.upstream.exchanges), 0)
        self.assert_answers(client)


class Relaying(WebSocketTestCase):
    def test_websocket_server_library_gets_and_sends_messages_over_tls(self):
        peer = subprocess.Popen([DEBIANS_PYTHON, pathlib.Path(__file__).parent / "websocket_peer.py", "serve"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(peer.stdout.close)
        self.addCleanup(peer.wait)
        self.addCleanup(peer.kill)
        port = int(peer.stdout.readline())
        weir = self.start(Weir(self.text().replace(str(self.upstream.port), str(port)), self.files))
        client = self.client(weir, secure=True)
        websocket = self.opened(client)
        for size in (0, 125, 126, 70_000, MIB):
            message = b"m" * size
            websocket.send(frame(TEXT, message))
            self.assertEqual(read_frame(websocket), (TEXT, message))
        websocket.send(frame(PING, b"are you there?"))
        self.assertEqual(read_frame(websocket), (PONG, b"are you there?"))
        websocket.send(frame(CLOSE, (1000).to_bytes(2, "big")))
        self.assertEqual(websocket.close_code(), 1000)
        self.assertIsNone(websocket.wait_for_end(), "the server closes the connection")
        websocket.end()
        self.await_metric(weir, 1, "weir_tunnels_total", end="closed")
        self.await_metric(weir, 0, "weir_tunnels_open")

    def test_octets_sent_right_after_each_head_are_part_of_the_websocket(self):
        def reply(exchange):
            switch(exchange, b"hello")
            exchange.send(exchange.wire.read_exactly(5))
            exchange.close()
        self.upstream.reply = reply
        client = self.client(self.weir())
        pseudo = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/"), (":authority", "localhost")]
        stream = client.open(end=False, pseudo=pseudo)
        client.send_body(stream, b"early")
        got = client.read(stream)
        self.assertEqual((got.status, got.body, got.error), (200, b"helloearly", None))

    def test_each_side_can_send_after_the_other_side_has_ended(self):
        def talk_last(exchange):
            switch(exchange)
            while exchange.wire.fill():
                pass
            exchange.send(b"last words")
            exchange.close()

        def listen_last(exchange):
            switch(exchange)
            exchange.wire.sock.shutdown(socket.SHUT_WR)
            got.append(exchange.wire.read_exactly(10))
            heard.set()
        got, heard = [], threading.Event()
        weir = self.weir()
        client = self.client(weir)
        self.upstream.reply = talk_last
        websocket = self.opened(client)
        websocket.end()
        self.assertEqual(websocket.read_exactly(10), b"last words")
        self.assertIsNone(websocket.wait_for_end())
        self.upstream.reply = listen_last
        websocket = WebSocket(client)
        self.assertIsNone(websocket.wait_for_end())
        websocket.send(b"last words")
        self.assertTrue(heard.wait(PATIENCE))
        self.assertEqual(got, [b"last words"])
        websocket.end()
        self.await_metric(weir, 2, "weir_tunnels_total", end="closed")

    def test_last_octets_wait_for_a_window_after_both_sides_have_ended(self):
        closed = threading.Event()

        def reply(exchange):
            switch(exchange)
            while exchange.wire.fill():
                pass
            exchange.send(bytes(20_000))
            exchange.close()
            closed.set()
        self.upstream.reply = reply
        weir = self.weir()
        client = self.client(weir, window=1000)
        websocket = self.opened(client)
        websocket.end()
        client.wait(lambda: websocket.answer.size == 1000)
        self.assertTrue(closed.wait(PATIENCE))
        for _ in range(10):
            client.ping()  # gives a faulty weir time to end the stream
        client.permit(30_000, websocket.stream)
        self.assertIsNone(websocket.wait_for_end())
        self.assertEqual(websocket.answer.size, 20_000)
        self.await_metric(weir, 1, "weir_tunnels_total", end="closed")

    def test_websockets_and_requests_share_a_connection(self):
        weir = self.weir("max_streams = 100", rules=rule("all", "10000/s"))
        client = self.client(weir)
        websockets = [self.opened(client) for _ in range(60)]
        self.await_metric(weir, 60, "weir_tunnels_open")
        for round_ in range(3):
            for number, websocket in enumerate(websockets):
                websocket.send(b"%04d" % (100 * round_ + number))
            self.assertEqual(client.get("/page").body, b"/page")
            for number, websocket in enumerate(websockets):
                self.assertEqual(websocket.read_exactly(4), b"%04d" % (100 * round_ + number))
        for websocket in websockets:
            websocket.end()
        self.assertEqual([websocket.wait_for_end() for websocket in websockets], [None] * 60)
        self.await_metric(weir, 60, "weir_tunnels_total", end="closed")
        self.assert_answers(client)

    def test_server_that_does_not_read_stops_only_its_own_client(self):
        received, gate = [], threading.Event()
        self.addCleanup(gate.set)

        def swallow(exchange):
            if "upgrade" not in exchange.head:
                return echo(exchange)
            switch(exchange)
            gate.wait(PATIENCE)
            while piece := exchange.wire.sock.recv(MIB):
                received.append(len(piece))
            return exchange.close()
        self.upstream.reply = swallow
        client = self.client(self.weir())
        websocket = self.opened(client)
        sent = 0
        with client.patience(0.5):  # until no window opens within this time
            while sent < 100 * MIB:
                websocket.send(bytes(1 << 14))
                sent += 1 << 14
        self.assertLess(sent, 50 * MIB, "the amount of buffered data is bounded")
        self.assert_answers(client)
        gate.set()
        websocket.send(b"rest")
        websocket.end()
        self.assertIsNone(websocket.wait_for_end())
        self.assertGreaterEqual(sum(received), sent + 4)

    def test_client_that_opens_no_window_stops_only_its_own_server(self):
        sent = []

        def pour(exchange):
            if "upgrade" not in exchange.head:
                return echo(exchange)
            switch(exchange)
            for _ in range(1000):
                exchange.send(bytes(1 << 16))
                sent.append(1 << 16)
            return exchange.close()
        self.upstream.reply = pour
        client = self.client(self.weir(), window=1000)
        websocket = self.opened(client)
        client.wait(lambda: websocket.answer.size == 1000)
        for _ in range(5):
            self.assert_answers(client)
        self.assertEqual(websocket.answer.size, 1000)
        self.assertLess(sum(sent), 50 * MIB)
        client.permit(80 * MIB, websocket.stream)
        client.permit(80 * MIB)
        client.wait(lambda: websocket.answer.ended)
        self.assertEqual(websocket.answer.size, 1000 << 16)
        websocket.end()


class Ends(WebSocketTestCase):
    def test_reset_by_the_client_closes_the_connection_to_the_server(self):
        closed = threading.Event()

        def serve(exchange):
            switch(exchange)
            exchange.wait_for_close()
            closed.set()
        self.upstream.reply = serve
        weir = self.weir()
        client = self.client(weir)
        websocket = self.opened(client)
        client.reset(websocket.stream)
        self.assertTrue(closed.wait(PATIENCE))
        self.await_metric(weir, 1, "weir_tunnels_total", end="client_broke")
        self.await_metric(weir, 0, "weir_tunnels_open")
        self.upstream.reply = echo
        self.assert_answers(client)

    def test_end_of_the_clients_connection_closes_the_connections_to_the_server(self):
        weir = self.weir()
        client = self.client(weir)
        for _ in range(3):
            self.opened(client)
        client.sock.close()
        self.await_metric(weir, 3, "weir_tunnels_total", end="client_broke")
        eventually(lambda: not self.upstream.open, "weir closes the connections")

    def test_broken_connection_to_the_server_resets_the_stream(self):
        def cut(exchange):
            switch(exchange, b"abc")
            exchange.wire.read_exactly(5)
            reset(exchange)
        self.upstream.reply = cut
        weir = Weir(self.text().replace('access = "off"', 'access = "access.log"'), self.files)
        with weir:
            client = self.client(weir)
            websocket = self.opened(client)
            websocket.send(b"12345")
            self.assertEqual(websocket.read_exactly(3), b"abc")
            self.assertEqual(websocket.wait_for_end(), CANCEL)
            self.await_metric(weir, 1, "weir_tunnels_total", end="server_broke")
            log = weir.folder / "access.log"
            line = json.loads(eventually(log.read_text, "the line is written"))
            self.upstream.reply = echo
            self.assert_answers(client)
        self.assertEqual((line["protocol"], line["method"], line["status"], line["bytes_in"], line["bytes_out"], line["error"]),
                         ("HTTP/2", "GET", 101, 5, 3, "upstream_truncated"))

    def test_websocket_is_reset_when_no_octets_pass_for_the_tunnel_timeout(self):
        weir = self.weir(upstream='timeouts = { tunnel = "2s" }')
        client = self.client(weir)
        websocket = self.opened(client)
        began = time.monotonic()
        while time.monotonic() < began + 3:
            self.assertEqual(websocket.through(b"x"), b"x")
            time.sleep(0.1)
        self.assertEqual(websocket.wait_for_end(), CANCEL)
        self.await_metric(weir, 1, "weir_tunnels_total", end="idle")
        self.assert_answers(client)

    def test_websocket_whose_client_opens_no_window_is_reset_after_the_tunnel_timeout(self):
        self.upstream.reply = lambda exchange: (switch(exchange, bytes(1 << 20)), exchange.wait_for_close())
        weir = self.weir(upstream='timeouts = { tunnel = "500ms" }')
        client = self.client(weir, window=1000)
        websocket = self.opened(client)
        self.assertEqual(websocket.wait_for_end(), CANCEL)
        self.assertEqual(websocket.answer.size, 1000)
        self.await_metric(weir, 1, "weir_tunnels_total", end="idle")
        eventually(lambda: not self.upstream.open, "weir closes the server's connection")

    def test_drain_announces_the_end_and_waits_for_websockets(self):
        weir = Weir(self.text().replace('drain = "5s"', 'drain = "4s"'), self.files, output=subprocess.DEVNULL)
        with weir:
            client = self.client(weir)
            staying, leaving = self.opened(client), self.opened(client)
            weir.signal(signal.SIGTERM)
            client.wait(lambda: client.goaways)
            self.assertEqual(leaving.through(b"still here"), b"still here")
            leaving.end()
            self.assertIsNone(leaving.wait_for_end())
            self.assertNotEqual(staying.wait_for_end(), None)
            self.assertEqual(weir.wait(), 0)


class Upgrade(WebSocketTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        adopt_orphans()

    def test_websocket_stays_with_the_old_process_until_it_ends(self):
        weir = self.start(Lineage(self.text(), self.files))
        client = self.client(weir)
        websocket = self.opened(client)
        weir.upgrade()
        client.wait(lambda: client.goaways)
        self.assertEqual(websocket.through(b"still here"), b"still here")
        self.assert_answers(self.client(weir))
        websocket.end()
        self.assertIsNone(websocket.wait_for_end())
        self.assertTrue(client.closed())


class MessageLimits(WebSocketTestCase):
    def setUp(self):
        super().setUp()
        self.got = []
        self.upstream.reply = self.serve

    def serve(self, exchange):
        switch(exchange)
        with contextlib.suppress(EOFError):
            while True:
                opcode, payload = read_frame(exchange.wire)
                self.got.append((opcode, payload))
                exchange.send(frame(opcode, payload, masked=False))
                if opcode == CLOSE:
                    return exchange.close()

    def limited(self, messages, **more):
        return self.weir(rules=rule("chat", "100/s", messages=f'"{messages}"', key='["ip"]', **more))

    def test_websocket_message_above_the_limit_is_delayed_and_not_lost(self):
        weir = self.limited("20/s", messages_burst=2)
        websocket = self.opened(self.client(weir))
        began = time.monotonic()
        websocket.send(b"".join(frame(TEXT, b"%d" % number) for number in range(8)) + frame(CLOSE))
        self.assertEqual([read_frame(websocket) for _ in range(9)], [(TEXT, b"%d" % n) for n in range(8)] + [(CLOSE, b"")])
        self.assertGreaterEqual(time.monotonic() - began, 6 / 20 - 0.001, "two messages at once, then one every 50 ms")
        self.await_metric(weir, 8, "weir_messages_total", rule="chat")

    def test_websocket_message_above_the_limit_closes_the_websocket_if_configured(self):
        weir = self.limited("2/day", messages_over='"close"')
        client = self.client(weir)
        websocket = self.opened(client)
        websocket.send(2 * frame(TEXT, b"x"))
        self.assertEqual([read_frame(websocket) for _ in range(2)], 2 * [(TEXT, b"x")])
        websocket.send(frame(TEXT, b"x"))
        self.assertEqual(websocket.close_code(), 1008)
        self.assertIsNone(websocket.wait_for_end(), "END_STREAM follows the Close frame")
        eventually(lambda: len(self.got) == 3, "the server gets the close frame as well")
        self.assertEqual((self.got[2][0], self.got[2][1][:2]), (CLOSE, (1008).to_bytes(2, "big")))
        self.await_metric(weir, 1, "weir_messages_total", outcome="refused")
        self.await_metric(weir, 1, "weir_tunnels_total", end="refused")
        self.upstream.reply = echo
        self.assert_answers(client)

    def test_client_that_leaves_while_its_message_is_delayed_ends_the_websocket(self):
        weir = self.limited("1/day")
        client = self.client(weir)
        websocket = self.opened(client)
        websocket.send(2 * frame(TEXT, b"x"))
        self.assertEqual(read_frame(websocket), (TEXT, b"x"))
        client.ping()
        client.reset(websocket.stream)
        self.await_metric(weir, 1, "weir_tunnels_total", end="client_broke")
        self.assertEqual(self.got, [(TEXT, b"x")])

    def test_drain_deadline_sends_a_close_frame_with_going_away(self):
        counted = self.text(rules=rule("chat", "100/s", messages='"100/s"'))
        with Weir(counted.replace('drain = "5s"', 'drain = "300ms"'), self.files) as weir:
            websocket = self.opened(self.client(weir))
            weir.signal(signal.SIGTERM)
            self.assertEqual(websocket.close_code(), 1001)


if __name__ == "__main__":
    main()
