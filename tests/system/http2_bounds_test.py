#!/usr/bin/env python3
"""Bounds on a single HTTP/2 request: its head, body, pace and deadlines. If a request exceeds a bound, only its stream ends."""

import threading

from harness import PATIENCE, Upstream, answer, eventually, main, rule
from protocol_pair import Ask, PairTestCase
from proxy_test import MIB

WORDS = rule("words", "1000/day", key="[]", match='{ path = "/words", body_contains = "transfer", max_body = "1MiB" }')


class Heads(PairTestCase):
    def test_heads_and_targets_have_the_same_bounds_as_in_http_1_1(self):
        routes = '[[route]]\nmatch = { path = "/small" }\nupstream = "api"\nmax_head = "1KiB"\n[[route]]\nupstream = "api"\n'
        pair = self.pair(routes=routes, server='max_head = "8KiB"')
        large = {"x_large": "x" * 2000}
        asks = [Ask("/small", fields=large), Ask("/", fields=large), Ask("/", fields={"x_large": "x" * 9000}),
                Ask(fields=[(f"x-{number}", "1") for number in range(130)])]
        self.assertEqual(self.statuses_of(pair, asks), [431, 200, 431, 431])
        self.assert_own_error(self.client(pair[1]).get("/" + "a" * 9000), 431)

    def test_max_forwards_and_unusual_methods_get_the_same_answers_as_in_http_1_1(self):
        pair = self.pair(rule("many", "1000/day"))
        asks = [Ask("/", method, {"max_forwards": "0"}) for method in ("OPTIONS", "TRACE")]
        asks += [Ask("/", "OPTIONS", {"max_forwards": "1"}), Ask("/", "OPTIONS"), Ask("/", "BREW"), Ask("/", "DELETE")]
        self.assertEqual(self.statuses_of(pair, asks), [200, 501, 200, 200, 200, 200])

    def test_cors_fields_are_forwarded_in_both_directions(self):
        said = "Access-Control-Allow-Origin: https://app.test\r\nAccess-Control-Expose-Headers: X-One\r\nVary: Origin\r\nX-One: 1\r\n"
        self.upstream.reply = answer(headers=said)
        asked = {"origin": "https://app.test", "access_control_request_method": "PUT", "access_control_request_headers": "x-one"}
        preflight, = self.same(self.pair(rule("day", "9/day")), [Ask("/", "OPTIONS", asked)])
        self.assertEqual([preflight[name] for name in ("access-control-allow-origin", "access-control-expose-headers", "vary", "x-one")],
                         ["https://app.test", "X-One", "Origin", "1"])
        for exchange in self.upstream.exchanges:
            self.assertEqual([exchange.head[name.replace("_", "-")] for name in asked], list(asked.values()))


class Bodies(PairTestCase):
    def test_bodies_have_the_same_bounds_as_in_http_1_1(self):
        routes = '[[route]]\nmatch = { path = "/small" }\nupstream = "api"\nmax_body = "1KiB"\n[[route]]\nupstream = "api"\n'
        pair = self.pair(rule("word", "9/day", match='{ path = "/word", body_contains = "x", max_body = "2KiB" }'), routes=routes,
                         server='max_body = "4KiB"')
        sizes = (("/small", 1024), ("/small", 1025), ("/word", 2048), ("/word", 2049), ("/", 4096), ("/", 4097))
        asks = [Ask(path, "POST", body=b"y" * size) for path, size in sizes]
        self.assertEqual(self.statuses_of(pair, asks), [200, 413, 200, 413, 200, 413])
        client = self.client(pair[1])
        statuses = [client.request("POST", ask.path, body=ask.body).status for ask in asks]
        self.assertEqual(statuses, [200, 413, 200, 413, 200, 413], "no length is announced")

    def test_refusal_does_not_wait_for_the_body_and_the_connection_stays_open(self):
        """In HTTP/1.1 weir closes the connection after a large body. In HTTP/2 it ends only the stream."""
        client = self.client(self.plain_weir(rule("few", "1/day", match='{ path = "/few" }'), WORDS))
        self.assertEqual(client.get("/few").status, 200)
        for path in ("/few", "/few?"):
            stream = client.open("POST", path, [("content-length", str(3 * MIB))], end=False)
            self.assert_own_error(client.read(stream), 429)
            client.send_body(stream, b"x" * 200_000, end=False)
        self.assert_answers(client)
        self.assertEqual(len(self.upstream.exchanges), 2)

    def test_streams_share_the_body_memory(self):
        weir = self.plain_weir(WORDS, server='max_body_memory = "256KiB"')
        client = self.client(weir)
        first = client.open("POST", "/words", end=False)
        client.send_body(first, b"x" * 90_000, end=False)
        eventually(lambda: weir.metric("weir_body_memory_bytes") >= 90_000, "the first body is read")
        others = [client.open("POST", "/words", end=False) for _ in range(4)]
        for stream in others:
            client.send_body(stream, b"x" * 90_000, end=False)
        client.wait(lambda: any(client.answers[stream].status for stream in others))
        self.assertIn(503, [client.answers[stream].status for stream in others])
        self.assertLessEqual(weir.metric("weir_body_memory_bytes"), 256 << 10)
        client.send_body(first, b"x" * 10_000)
        self.assertEqual(client.read(first).status, 200)
        for stream in others:
            if not client.answers[stream].ended:
                client.reset(stream)
        eventually(lambda: weir.metric("weir_body_memory_bytes") == 0, "no memory is held for streams that were reset")
        whole = client.request("POST", "/words", body=b"x" * ((256 << 10) + 1))
        self.assertEqual((whole.status, b"longer than max_body_memory" in whole.body), (413, True))

    def test_request_whose_body_a_rule_reads_is_charged_when_the_body_is_complete(self):
        weir = self.plain_weir(rule("words", "1/day", key="[]", match='{ path = "/words", body_contains = "free" }'))
        client = self.client(weir)
        stream = client.open("POST", "/words", end=False)
        client.send_body(stream, b"fr", end=False)
        self.assertEqual(client.request("POST", "/words", body=b"free").status, 200)
        client.send_body(stream, b"ee")
        self.assertEqual(client.read(stream).status, 429)
        self.assertEqual([exchange.body for exchange in self.upstream.exchanges], [b"free"])

    def test_word_in_a_body_is_found_across_padded_frames(self):
        words = rule("words", "1/day", key="[]", match='{ path = "/words", body_contains = "wire transfer" }')
        client = self.client(self.plain_weir(words))
        for status in (200, 429):
            stream = client.open("POST", "/words", end=False)
            for piece in (b"a wi", b"r", b"", b"e tran", b"sfer"):
                client.h2.send_data(stream, piece, pad_length=200)
                client.push()
            client.send_body(stream, b" now")
            self.assertEqual(client.read(stream).status, status)
        self.assertEqual([exchange.body for exchange in self.upstream.exchanges], [b"a wire transfer now"])

    def test_client_that_expects_100_continue_gets_it_only_if_the_rules_do_not_refuse(self):
        client = self.client(self.plain_weir(rule("few", "1/day", match='{ path = "/few" }'), WORDS))
        expecting = [("expect", "100-continue"), ("content-length", "4")]
        stream = client.open("POST", "/words", expecting, end=False)
        self.assertTrue(client.wait(lambda: client.answers[stream].interim))
        client.send_body(stream, b"word")
        self.assertEqual(client.read(stream).status, 200)
        self.assertEqual(client.get("/few").status, 200)
        refused = client.read(client.open("POST", "/few", expecting, end=False))
        self.assertEqual((refused.status, refused.interim), (429, []))
        self.assert_answers(client)


class Windows(PairTestCase):
    """However an upload ends, weir returns its octets to the flow-control window of the connection (1
    MiB)."""

    def setUp(self):
        super().setUp()
        self.upstream.reply = self.reply

    def reply(self, exchange):
        if exchange.target == "/early":
            exchange.send(answer(b"no", "403 Forbidden", "Connection: close\r\n"))
        if exchange.target in ("/early", "/stuck"):
            return exchange.wait_for_close()
        exchange.read_body()
        return exchange.send(answer())

    def upload(self, client, path, is_reset):
        stream = client.open("POST", path, end=False)
        with client.corked():
            client.send_body(stream, b"x" * 60_000, end=False)
        if not is_reset:
            return client.read(stream).status
        client.ping()
        if not client.answers[stream].was_reset:
            client.reset(stream)
        return client.answers[stream].status

    def test_ended_uploads_return_their_octets_to_the_window_of_the_connection(self):
        queue = rule("queue", "1/day", key="[]", algorithm='"leaky_bucket"', queue=99, match='{ path = "/queue" }')
        words = rule("words", "1000/day", key="[]", match='{ path = "/words", body_contains = "never", max_body = "32KiB" }')
        routes = '[[route]]\nmatch = { path = "/own" }\nrespond = { status = 200 }\n[[route]]\nupstream = "api"\n'
        weir = self.plain_weir(queue, words, rule("limited", "1/day", key="[]", match='{ path = "/limited" }'), routes=routes,
                               http2='resets = "1000000/s"', upstream='timeouts = { abandoned = "0s" }')
        client = self.client(weir)
        self.assertEqual([client.get(path).status for path in ("/queue", "/limited")], [200, 200])
        ways = (("/limited", False, 429), ("/own", False, 200), ("/words", False, 413), ("/early", False, 403),
                ("/queue", True, None), ("/stuck", True, None), ("/free", True, None))
        for path, is_reset, status in ways:
            self.assertEqual({self.upload(client, path, is_reset) for _ in range(20)}, {status}, path)
        self.assertEqual(client.request("POST", "/free", body=b"x" * 2 * MIB).status, 200)
        self.await_metric(weir, 0, "weir_http2_streams")


class Pace(PairTestCase):
    """A client has several streams, one of which is slow."""

    def setUp(self):
        super().setUp()
        self.release = threading.Event()
        self.addCleanup(self.release.set)

    def drip(self, client, stream):
        """Sends an octet again and again until the stream has an answer."""
        while not client.answers[stream].status and not client.ended:
            client.send_body(stream, b"x", end=False)
            with client.patience(0.02):
                client.receive()
        return client.read(stream)

    def test_upload_below_min_rate_ends_but_its_connection_stays_open(self):
        weir = self.plain_weir(WORDS, server='min_rate = "10KiB"\nmin_rate_grace = "300ms"')
        client = self.client(weir)
        for count, path in enumerate(("/", "/words"), 1):
            slow = self.drip(client, client.open("POST", path, end=False))
            self.assert_own_error(slow, 408)
            self.assertIn("too slowly", slow.json()["message"])
            self.await_metric(weir, count, "weir_client_errors_total", kind="slow_body")
        self.assert_answers(client)
        self.assertEqual([exchange.body for exchange in self.upstream.exchanges if exchange.method == "POST"], [None])

    def test_answer_that_is_read_below_min_rate_ends_but_its_connection_stays_open(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(b"x" * (MIB if exchange.target == "/large" else 10)))
        weir = self.plain_weir(server='min_rate = "100KiB"\nmin_rate_grace = "300ms"')
        client, pause = self.client(weir, window=100), threading.Event()
        slow = client.open(path="/large")
        while client.answers[slow].error is None:
            client.permit(10, slow)
            pause.wait(0.02)
            with client.patience(0.001):
                client.receive()
        self.await_metric(weir, 1, "weir_client_errors_total", kind="slow_read")
        self.assertEqual((client.answers[slow].status, client.answers[slow].ended, client.ended), (200, False, False))
        self.assertEqual(client.get("/").size, 10)

    def test_answer_whose_window_stays_empty_ends_after_write_timeout_but_its_connection_stays_open(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(b"x" * (MIB if exchange.target == "/large" else 10)))
        weir = self.plain_weir(server='write_timeout = "300ms"\nmin_rate = "0B"')
        client = self.client(weir, window=100)
        stuck = client.open(path="/large")
        client.wait(lambda: client.answers[stuck].error is not None)
        self.await_metric(weir, 1, "weir_client_errors_total", kind="write_timeout")
        self.assertEqual((client.answers[stuck].ended, client.ended, client.get("/").size), (False, False, 10))

    def test_timeout_of_a_server_ends_only_the_stream_that_waits_for_the_server(self):
        silent = self.start(Upstream(lambda exchange: exchange.wait_for_close()))
        half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
        halves = self.start(Upstream(lambda exchange: (exchange.send(half), exchange.wait_for_close())))
        table = '[[upstream]]\nname = "{}"\nservers = ["127.0.0.1:{}"]\ntimeouts = {{ {} }}\n'
        tables = "".join(table.format(*each) for each in (
            ("late", silent.port, 'response = "200ms"'), ("total", silent.port, 'response = "60s", total = "200ms"'),
            ("half", halves.port, 'response = "2s"')))
        routes = "".join(f'[[route]]\nmatch = {{ path = "/{name}" }}\nupstream = "{name}"\n' for name in ("late", "total", "half"))
        self.upstream.reply = lambda exchange: (self.release.wait(PATIENCE), exchange.send(answer()))
        client = self.client(self.plain_weir(routes=tables + routes + '[[route]]\nupstream = "api"\n'))
        held = client.open()
        streams = {name: client.open(path=f"/{name}") for name in ("late", "total", "half")}
        self.assert_own_error(client.read(streams["late"]), 504)
        self.assert_own_error(client.read(streams["total"]), 504)
        cut = client.read(streams["half"])
        self.assertEqual((cut.status, cut.body, cut.ended), (200, b"half", False))
        self.release.set()
        self.assertEqual(client.read(held).status, 200)

    def test_request_stays_charged_if_its_upload_stops(self):
        weir = self.plain_weir(rule("day", "9/3000day", algorithm='"fixed_window"'), server='body_timeout = "200ms"')
        client = self.client(weir)
        stream = client.open("POST", end=False)
        client.send_body(stream, b"x", end=False)
        self.assert_own_error(client.read(stream), 408)
        self.assertEqual(client.get("/")["x-ratelimit-remaining"], "7")


class Upgrades(PairTestCase):
    SOCKET = '[[route]]\nmatch = { path = "/chat" }\nupstream = "api"\nupgrade = ["websocket"]\n[[route]]\nupstream = "api"\n'

    SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

    def test_stream_cannot_request_an_upgrade_from_the_server(self):
        self.upstream.reply = lambda exchange: exchange.send(self.SWITCH if exchange.target == "/chat" else answer())
        client = self.client(self.plain_weir(routes=self.SOCKET))
        forced = client.get("/chat", sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==", sec_websocket_version="13")
        self.assertEqual(forced.status, 502)
        head = self.upstream.exchanges[0].head
        self.assertEqual((head["upgrade"], "upgrade" in (head["connection"] or "").lower()), (None, False))
        self.assert_answers(client)

    def test_http_1_1_client_can_upgrade_while_streams_are_open(self):
        self.upstream.reply = lambda exchange: exchange.send(self.SWITCH if exchange.head["upgrade"] else answer())
        weir = self.plain_weir(rule("day", "2/day"), routes=self.SOCKET)
        with weir.connect() as old:
            fields = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
                      "Sec-WebSocket-Version": "13"}
            self.assertEqual(old.request("GET", "/chat", fields).status, 101)
            client = self.client(weir)
            self.assertEqual([client.get("/").status for _ in range(2)], [200, 429])


if __name__ == "__main__":
    main()
