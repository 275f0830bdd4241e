#!/usr/bin/env python3
"""Connections that change their protocol: which requests may change it, what passes through the tunnel, how the tunnel ends, and
how weir counts it."""

import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import (PATIENCE, Client, TestCase, Upstream, Weir, answer, config, eventually, main, make_certificate,
                     request_bytes, rule)

SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Kept: yes\r\n\r\n"
ASK = {"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
       "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
DEBIANS_PYTHON = "/usr/bin/python3"  # has python3-websockets


def echo(exchange):
    """Switches the protocol, and echoes all bytes until the other side closes its sending side."""
    exchange.send(SWITCH)
    while exchange.wire.buffer or exchange.wire.fill():
        exchange.send(exchange.wire.take(len(exchange.wire.buffer)))
    exchange.close()


class Tunnels(TestCase):
    def open(self, weir, fields=None, **options):
        client = self.start(weir.connect(**options))
        client.send(request_bytes("GET", "/chat", fields or ASK))
        return client

    def opened(self, weir, **options):
        client = self.open(weir, **options)
        self.assertEqual(client.read().status, 101)
        return client

    def through(self, client, data):
        client.send(data)
        return client.wire.read_exactly(len(data))


class ProtocolUpgrade(Tunnels):
    def test_bytes_pass_in_both_directions_and_each_end_of_stream_is_forwarded(self):
        upstream = self.start(Upstream(echo))
        weir = self.start(Weir(config(upstream.port, rules=rule("all", "100/s"))))
        client = self.open(weir)
        head = client.read()
        self.assertEqual((head.status, head["x-kept"], head["upgrade"], head["connection"]), (101, "yes", "websocket", "upgrade"))
        self.assertEqual(head["x-ratelimit-limit"], "100")
        asked = upstream.exchanges[0].head
        self.assertEqual((asked.all("upgrade"), asked.all("connection")), (["websocket"], ["upgrade"]))
        self.assertEqual(asked["sec-websocket-key"], ASK["Sec-WebSocket-Key"])
        for data in (b"\x00", b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 4096):
            self.assertEqual(self.through(client, data), data)
        self.await_metric(weir, 1, "weir_tunnels_open")
        client.sock.shutdown(socket.SHUT_WR)
        self.assertTrue(client.closed(), "the end of stream was forwarded in both directions")
        self.await_metric(weir, 0, "weir_tunnels_open")
        self.await_metric(weir, 1, "weir_tunnels_total", end="closed")
        self.await_metric(weir, 1, "weir_requests_total", code="101")

    def test_bytes_sent_right_after_the_upgrade_are_part_of_the_tunnel(self):
        def reply(exchange):
            exchange.send(SWITCH + b"hello")
            exchange.send(exchange.wire.read_exactly(5))
        upstream = self.start(Upstream(reply))
        weir = self.start(Weir(config(upstream.port)))
        client = self.start(weir.connect())
        client.send(request_bytes("GET", "/", ASK) + b"GET /")
        self.assertEqual(client.read().status, 101)
        self.assertEqual(client.wire.read_exactly(10), b"helloGET /")
        self.assertEqual(len(upstream.exchanges), 1)

    def test_server_that_switches_protocols_too_early_gets_no_bytes_of_the_tunnel(self):
        """The server switches before weir has sent the whole head. If weir relayed the client's later bytes, the server would
        read them as part of the request."""
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-test-"))
        got = []

        def serve():
            server = listener.accept()[0]
            server.settimeout(PATIENCE)
            with server, contextlib.suppress(OSError):
                got.append(server.recv(500))
                server.sendall(SWITCH)
                answered.wait(PATIENCE)
                while data := server.recv(1 << 20):
                    got.append(data)
            ended.set()

        answered, ended = threading.Event(), threading.Event()
        listener = self.start(socket.socket(socket.AF_UNIX))  # a unix socket takes no more than its buffer before the server reads
        listener.bind(f"{folder}/server")
        listener.listen()
        threading.Thread(target=serve, daemon=True).start()
        weir = self.start(Weir(config(1, server='max_head = "1MiB"').replace('"127.0.0.1:1"', f'"unix:{folder}/server"')))
        client = self.open(weir, {**ASK, **{f"X-{number}": "a" * 9000 for number in range(100)}})
        self.assert_own_error(client.read(), 502)
        with contextlib.suppress(OSError):
            client.send(b"a frame")
        answered.set()
        self.assertTrue(ended.wait(PATIENCE))
        self.assertNotIn(b"a frame", b"".join(got))

    def test_rules_apply_to_requests_on_a_connection_whose_upgrade_the_server_declined(self):
        """The server has declined the change of the protocol. The next requests on the connection must not evade the rules."""
        upstream = self.start(Upstream(answer(b"no", "426 Upgrade Required", "Upgrade: websocket\r\nConnection: upgrade\r\n")))
        weir = self.start(Weir(config(upstream.port, rules=rule("few", "2/day"))))
        client = self.start(weir.connect())
        client.send(request_bytes("GET", "/chat", ASK) + 2 * request_bytes("GET", "/admin"))
        answers = [client.read() for _ in range(3)]
        self.assertEqual([each.status for each in answers], [426, 426, 429])
        offers = [(each["upgrade"], each["connection"]) for each in answers]
        self.assertEqual(offers, [("websocket", "upgrade"), ("websocket", "upgrade"), (None, None)], "RFC 9110 §15.5.22")
        self.assertEqual([exchange.target for exchange in upstream.exchanges], ["/chat", "/admin"])

    def test_upgrade_field_is_removed_if_the_route_does_not_allow_the_protocol(self):
        upstream = self.start(Upstream(SWITCH))
        weir = self.start(Weir(config(upstream.port, routes="""
[[route]]
match = { path = "/none" }
upgrade = []
upstream = "api"
[[route]]
upgrade = ["websocket", "chat/2"]
upstream = "api"
""")))
        old = b"GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        asks = {
            "not allowed here": request_bytes("GET", "/none", ASK),
            "h2c": request_bytes("GET", "/", {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"}),
            "no option": request_bytes("GET", "/", {"Upgrade": "websocket"}),
            "no protocol": request_bytes("GET", "/", {"Connection": "upgrade"}),
            "version 1.0": old,
            "a body": request_bytes("POST", "/", ASK, b"body"),
            "another version": request_bytes("GET", "/", {"Connection": "upgrade", "Upgrade": "chat/3"}),
        }
        for what, request in asks.items():
            with self.subTest(what):
                client = self.start(weir.connect())
                client.send(request)
                self.assert_own_error(client.read(), 502)
                asked = upstream.exchanges[-1].head
                self.assertNotIn("upgrade", asked)
                self.assertNotIn("connection", asked)
        client = self.open(weir, {"Connection": "upgrade", "Upgrade": "h2c, Chat/2, websocket"})
        self.assert_own_error(client.read(), 502)  # the server switches to websocket, which the client did not request
        self.assertEqual(upstream.exchanges[-1].head.all("upgrade"), ["chat/2"])

    def test_websocket_client_library_works_over_tls(self):
        folder = pathlib.Path(__file__).parent
        peer = subprocess.Popen([DEBIANS_PYTHON, folder / "websocket_peer.py", "serve"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(peer.stdout.close)
        self.addCleanup(peer.wait)
        self.addCleanup(peer.kill)
        port = int(peer.stdout.readline())
        scratch = self.start(tempfile.TemporaryDirectory())
        files = make_certificate(scratch, address="127.0.0.1")
        weir = self.start(Weir(config(port, listener='tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }'), files))
        said = subprocess.run([DEBIANS_PYTHON, folder / "websocket_peer.py", "talk", f"wss://127.0.0.1:{weir.port}/", f"{scratch}/edge.crt"],
                              capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.await_metric(weir, 1, "weir_tunnels_total", end="closed")


class TunnelBounds(Tunnels):
    def test_weir_stops_reading_from_one_side_of_a_tunnel_if_the_other_side_does_not_read(self):
        received = []

        def swallow(exchange):
            exchange.send(SWITCH)
            self.gate.wait(PATIENCE)
            while piece := exchange.wire.sock.recv(1 << 20):
                received.append(len(piece))
            exchange.close()
        self.gate = threading.Event()
        self.addCleanup(self.gate.set)
        weir = self.start(Weir(config(self.start(Upstream(swallow)).port)))
        client = self.opened(weir)
        client.sock.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 200 << 20:
                sent += client.sock.send(bytes(1 << 16))
        self.assertLess(sent, 100 << 20, "the amount of buffered data is bounded")
        client.sock.settimeout(PATIENCE)
        self.gate.set()
        client.sock.shutdown(socket.SHUT_WR)
        self.assertTrue(client.closed())
        self.assertEqual(sum(received), sent)

    def test_tunnel_ends_if_no_bytes_pass_for_the_tunnel_timeout(self):
        upstream = self.start(Upstream(echo))
        weir = self.start(Weir(config(upstream.port, upstream='timeouts = { tunnel = "600ms" }')))
        client = self.opened(weir)
        began = time.monotonic()
        while time.monotonic() < began + 1.5:
            self.assertEqual(self.through(client, b"x"), b"x")
            time.sleep(0.1)
        self.assertTrue(client.closed())
        self.await_metric(weir, 1, "weir_tunnels_total", end="idle")

    def test_tunnel_counts_as_a_request_in_flight(self):
        upstream = self.start(Upstream(echo))
        servers = f'[{{ address = "127.0.0.1:{upstream.port}", max_in_flight = 2 }}]'
        weir = self.start(Weir(config(rules=rule("two", "2", algorithm='"concurrency"', match='{ path = "/chat" }').replace('"2"', "2"))
                               .replace("servers = []", f"servers = {servers}")))
        first, _ = self.opened(weir), self.opened(weir)
        self.assert_own_error(weir.get("/chat"), 429)
        self.assert_own_error(weir.get("/other"), 503)  # the server's max_in_flight is used up
        first.leave()
        eventually(lambda: weir.get("/none", **{k.replace("-", "_"): v for k, v in ASK.items()}).status == 101, "the tunnel has ended")

    def test_drain_waits_for_tunnels(self):
        upstream = self.start(Upstream(echo))
        weir = Weir(config(upstream.port).replace('drain = "5s"', 'drain = "700ms"'), output=subprocess.DEVNULL)
        with weir:
            client = self.opened(weir)
            weir.signal(signal.SIGTERM)
            weir.wait_for("draining")
            self.assertEqual(self.through(client, b"still here"), b"still here")
            self.assertTrue(client.closed())
            self.assertEqual(weir.wait(), 0)

    def test_access_log_has_the_bytes_of_a_tunnel_and_the_reason_of_its_end(self):
        def cut(exchange):
            exchange.send(SWITCH + b"abc")
            exchange.wire.read_exactly(5)
            exchange.wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            exchange.wire.sock.close()
        upstream = self.start(Upstream(cut))
        weir = Weir(config(upstream.port).replace('access = "off"', 'access = "access.log"'))
        with weir:
            client = self.opened(weir)
            client.send(b"12345")
            self.assertEqual(client.wire.read_exactly(3), b"abc")
            self.assertTrue(client.closed())
            self.await_metric(weir, 1, "weir_tunnels_total", end="server_broke")
            log = weir.folder / "access.log"
            line = json.loads(eventually(log.read_text, "the line is written"))
        self.assertEqual((line["status"], line["bytes_in"], line["bytes_out"], line["error"]), (101, 5, 3, "upstream_truncated"))
        self.assertGreater(line["total_us"], line["upstream_us"])


def frame(opcode, payload=b"", final=True, masked=True):
    """Returns a WebSocket frame (RFC 6455 §5.2), masked as by a client, or unmasked as by a server."""
    first, mask = opcode | (0x80 if final else 0), b"\x11\x22\x33\x44" if masked else b""
    size = len(payload)
    length = bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2, "big") if size < 1 << 16 else b"\x7f" + size.to_bytes(8, "big")
    length = bytes([length[0] | (0x80 if masked else 0)]) + length[1:]
    if masked:
        payload = bytes(octet ^ mask[at % 4] for at, octet in enumerate(payload))
    return bytes([first]) + length + mask + payload


def read_frame(wire):
    """Reads one WebSocket frame. Returns its opcode and its unmasked payload."""
    first, second = wire.read_exactly(2)
    size = second & 0x7F
    if size >= 126:
        size = int.from_bytes(wire.read_exactly(2 if size == 126 else 8), "big")
    mask = wire.read_exactly(4) if second & 0x80 else bytes(4)
    return first & 0x0F, bytes(octet ^ mask[at % 4] for at, octet in enumerate(wire.read_exactly(size)))


class MessageLimits(Tunnels):
    TEXT, PING, CLOSE = 1, 9, 8

    def setUp(self):
        self.got, self.faults = [], []
        self.upstream = self.start(Upstream(self.serve))

    def serve(self, exchange):
        exchange.send(SWITCH)
        with contextlib.suppress(EOFError):
            while True:
                opcode, payload = read_frame(exchange.wire)
                self.got.append((opcode, payload))
                exchange.send(frame(opcode, payload, masked=False))
                if opcode == self.CLOSE:
                    return exchange.close()

    def weir(self, messages, routes="", **more):
        options = {"messages": f'"{messages}"', "key": '["ip"]', **more}
        return self.start(Weir(config(self.upstream.port, rules=rule("chat", "100/s", **options), routes=routes)))

    def close_code(self, wire):
        opcode, payload = read_frame(wire)
        self.assertEqual(opcode, self.CLOSE)
        return int.from_bytes(payload[:2], "big")

    def test_websocket_message_above_the_limit_is_delayed_and_not_lost(self):
        weir = self.weir("20/s", messages_burst=2)
        client = self.opened(weir)
        began = time.monotonic()
        client.send(b"".join(frame(self.TEXT, b"%d" % number) for number in range(8)) + frame(self.CLOSE))
        self.assertEqual([read_frame(client.wire) for _ in range(9)], [(self.TEXT, b"%d" % n) for n in range(8)] + [(self.CLOSE, b"")])
        self.assertGreaterEqual(time.monotonic() - began, 6 / 20 - 0.001, "two messages at once, then one every 50 ms")
        self.await_metric(weir, 8, "weir_messages_total", rule="chat")
        self.assertGreater(weir.metric("weir_messages_total", outcome="delayed"), 0)

    def test_no_part_of_a_delayed_websocket_message_is_forwarded(self):
        weir = self.weir("3/day")
        client = self.opened(weir)
        parts = frame(self.TEXT, b"a", final=False) + frame(self.PING) + frame(0, b"b", final=False) + frame(0, b"c")
        client.send(parts + frame(2, bytes(70_000)) + frame(self.TEXT, b"late") + frame(self.PING))
        self.assertEqual([read_frame(client.wire)[0] for _ in range(5)], [1, 9, 0, 0, 2])
        other = self.opened(weir)
        other.send(frame(self.TEXT, b"the same client"))
        client.sock.shutdown(socket.SHUT_WR)  # the client leaves while its message is delayed
        self.assertTrue(client.closed())
        self.assertEqual(len(self.got), 5)
        self.await_metric(weir, 3, "weir_messages_total")
        self.await_metric(weir, 1, "weir_tunnels_total", end="client_broke")

    def test_messages_are_limited_for_every_spelling_of_websocket(self):
        routes = '[[route]]\nupgrade = ["WebSocket"]\nupstream = "api"'
        client = self.opened(self.weir("1/day", messages_over='"close"', routes=routes))
        client.send(frame(self.TEXT, b"x"))
        self.assertEqual(read_frame(client.wire), (self.TEXT, b"x"))
        client.send(frame(self.TEXT, b"x"))
        self.assertEqual(self.close_code(client.wire), 1008)

    def test_websocket_message_above_the_limit_closes_the_connection_if_configured(self):
        weir = self.weir("2/day", messages_over='"close"')
        client = self.opened(weir)
        client.send(2 * frame(self.TEXT, b"x"))
        self.assertEqual([read_frame(client.wire) for _ in range(2)], 2 * [(self.TEXT, b"x")])
        client.send(frame(self.TEXT, b"x"))
        self.assertEqual(self.close_code(client.wire), 1008)
        self.assertTrue(client.closed())
        eventually(lambda: len(self.got) == 3, "the server gets the close frame as well")
        self.assertEqual((self.got[2][0], self.got[2][1][:2]), (self.CLOSE, (1008).to_bytes(2, "big")))
        self.await_metric(weir, 1, "weir_messages_total", outcome="refused")
        self.await_metric(weir, 1, "weir_tunnels_total", end="refused")

    def test_weir_sends_its_close_frame_only_after_the_end_of_the_servers_frame(self):
        said = threading.Event()

        def half(exchange):
            whole = frame(self.TEXT, b"0123456789", masked=False)
            exchange.send(SWITCH + whole[:5])
            self.assertEqual(read_frame(exchange.wire), (self.PING, b""))
            self.assertEqual(self.close_code(exchange.wire), 1008)
            exchange.send(whole[5:] + frame(self.TEXT, b"no more", masked=False))
            said.set()
            exchange.wait_for_close()
        self.upstream.reply = half
        client = self.opened(self.weir("1/day", messages_over='"close"'))
        both = 2 * frame(self.PING)
        client.send(both[:1])  # the header of the frame arrives in pieces
        client.send(both[1:9])
        client.send(both[9:])
        self.assertTrue(said.wait(PATIENCE))
        self.assertEqual(read_frame(client.wire), (self.TEXT, b"0123456789"))
        self.assertEqual(self.close_code(client.wire), 1008)

    def test_malformed_websocket_frames_close_the_connection(self):
        weir = self.weir("100/s")
        client = self.opened(weir)
        client.send(frame(self.TEXT, b"x"))
        self.assertEqual(read_frame(client.wire), (self.TEXT, b"x"))
        client.send(frame(self.TEXT, b"y", masked=False))
        self.assertEqual(self.close_code(client.wire), 1002)
        self.await_metric(weir, 1, "weir_tunnels_total", end="faulty")
        free = self.start(Weir(config(self.upstream.port)))
        self.upstream.reply = echo
        self.assertEqual(self.through(self.opened(free), b"\x01 whatever"), b"\x01 whatever",
                         "messages are not inspected without a message limit")

    def test_nothing_is_forwarded_after_a_close_frame(self):
        weir = self.weir("100/s")
        client = self.opened(weir)
        client.send(frame(self.CLOSE) + frame(self.TEXT, b"uncounted") + 3 * frame(self.CLOSE))
        self.assertEqual(read_frame(client.wire)[0], self.CLOSE)
        self.await_metric(weir, 1, "weir_tunnels_total", end="faulty")
        eventually(lambda: self.got, "the first message is forwarded")
        self.assertTrue(client.closed())
        self.assertEqual(self.got, [(self.CLOSE, b"")])

    def test_shadow_rule_counts_messages_without_delaying_them(self):
        weir = self.weir("1/day", mode='"shadow"', messages_over='"close"')
        client = self.opened(weir)
        client.send(3 * frame(self.TEXT, b"x"))
        self.assertEqual([read_frame(client.wire)[0] for _ in range(3)], [1, 1, 1])
        self.await_metric(weir, 2, "weir_messages_total", outcome="shadow_refused")

    def test_drain_deadline_sends_a_close_frame_with_going_away(self):
        counted = config(self.upstream.port, rules=rule("chat", "100/s", messages='"100/s"'))
        with Weir(counted.replace('drain = "5s"', 'drain = "300ms"')) as weir:
            client = self.opened(weir)
            weir.signal(signal.SIGTERM)
            self.assertEqual(self.close_code(client.wire), 1001)
            eventually(lambda: self.got, "the server gets the close frame as well")
            self.assertEqual(int.from_bytes(self.got[0][1][:2], "big"), 1001)


if __name__ == "__main__":
    main()
