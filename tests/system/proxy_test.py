#!/usr/bin/env python3
"""HTTP/1.1 through weir: connections, bodies and heads."""

import contextlib
import email.utils
import hashlib
import pathlib
import random
import signal
import threading
import time

from harness import PATIENCE, TestCase, Upstream, Weir, answer, chunked, config, eventually, main, request_bytes, rss_kib

MIB = 1 << 20
BLOCK = 32 << 10  # size of weir's read buffer


def describe_body(exchange):
    """Responds with the length and digest of the body. Sends 100 Continue first if the client waits for it."""
    if "expect" in exchange.head:
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = exchange.read_body()
    exchange.send(answer(f"{len(body)} {hashlib.sha256(body).hexdigest()}".encode()))


class Connections(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())
        self.weir = self.start(Weir(config(self.upstream.port)))

    def test_connect_method_is_rejected_with_the_allowed_methods(self):
        with self.weir.connect() as client:
            client.send(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n")
            refused = client.read()
            self.assert_own_error(refused, 405)
            self.assertIn("GET", refused["allow"])

    def test_connections_to_clients_and_servers_are_kept_alive(self):
        with self.weir.connect() as client:
            for _ in range(20):
                self.assertEqual(client.get("/").status, 200)
        self.assertEqual(self.upstream.connections, 1)

    def test_pipelined_requests_are_answered_in_order(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(exchange.target.encode()))
        with self.weir.connect() as client:
            client.send(b"".join(request_bytes("GET", f"/{number}") for number in range(50)))
            self.assertEqual([client.read().body for _ in range(50)], [b"/%d" % number for number in range(50)])

    def test_pipelined_requests_after_a_body_are_answered(self):
        self.upstream.reply = describe_body
        with self.weir.connect() as client:
            client.send(request_bytes("POST", "/", body=b"abc") + request_bytes("GET", "/"))
            self.assertTrue(client.read().body.startswith(b"3 "))
            self.assertTrue(client.read().body.startswith(b"0 "))

    def test_request_head_may_arrive_byte_by_byte(self):
        with self.weir.connect() as client:
            for byte in request_bytes("GET", "/slowly"):
                client.send(bytes([byte]))
            self.assertEqual(client.read().status, 200)
        self.assertEqual(self.upstream.exchanges[0].target, "/slowly")

    def test_connection_is_closed_if_the_client_sends_connection_close(self):
        with self.weir.connect() as client:
            response = client.get("/", connection="close")
            self.assertEqual((response.status, response["connection"]), (200, "close"))
            self.assertTrue(client.closed())

    def test_http_1_0_request_is_answered_and_its_connection_closed(self):
        with self.weir.connect() as client:
            client.send(b"GET / HTTP/1.0\r\n\r\n")
            response = client.read()
            self.assertEqual((response.status, response.body), (200, b"ok"))
            self.assertTrue(client.closed())
        asked = self.upstream.exchanges[0]
        self.assertEqual((asked.version, asked.head.all("host")), ("HTTP/1.1", [self.upstream.address]))

    def test_request_without_host_is_forwarded_with_the_servers_address_as_host(self):
        silent = self.start(Upstream(lambda exchange: exchange.close()))
        weir = self.start(Weir(config(silent.port, self.upstream.port, upstream='balance = "round_robin"')))
        for _ in range(2):  # one of the two requests is sent to the silent server first
            with weir.connect() as client:
                client.send(b"GET / HTTP/1.0\r\n\r\n")
                self.assertEqual(client.read().status, 200)
        for each in (silent, self.upstream):
            self.assertEqual({exchange.head["host"] for exchange in each.exchanges}, {each.address})

    def test_http_1_0_client_gets_a_chunked_response_without_chunks(self):
        self.upstream.reply = answer(chunked(b"abc" * 1000, 100), headers="Transfer-Encoding: chunked\r\n", length=False)
        with self.weir.connect() as client:
            client.send(b"GET / HTTP/1.0\r\nHost: weir.test\r\n\r\n")
            response = client.read()
        self.assertNotIn("transfer-encoding", response)
        self.assertEqual(response.body, b"abc" * 1000)

    def test_stale_upstream_connection_loses_no_request(self):
        def answer_and_close(exchange):
            exchange.send(answer())
            exchange.close()

        self.upstream.reply = answer_and_close
        with self.weir.connect() as client:
            self.assertEqual([client.get("/").status for _ in range(50)], [200] * 50)

    def test_upstream_connection_is_closed_when_the_client_leaves(self):
        waiting = threading.Event()

        def never_answer(exchange):
            waiting.set()
            exchange.wait_for_close()
            exchange.close()

        self.upstream.reply = never_answer
        client = self.weir.connect()
        client.send(request_bytes("GET", "/"))
        self.assertTrue(waiting.wait(PATIENCE))
        client.leave()
        eventually(lambda: not self.upstream.open, "the upstream's connection is closed")


class Bodies(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream(describe_body))
        self.weir = self.start(Weir(config(self.upstream.port)))

    def upload(self, body, framing):
        head = f"POST / HTTP/1.1\r\nHost: weir.test\r\n{framing}\r\n\r\n".encode()
        with self.weir.connect() as client:
            client.send(head + (chunked(body) if "chunked" in framing else body))
            return client.read()

    def test_uploads_arrive_completely(self):
        for size in (0, 1, 1000, 65_537, 3 * MIB + 1):
            body = random.randbytes(size)
            expected = f"{size} {hashlib.sha256(body).hexdigest()}".encode()
            for framing in (f"Content-Length: {size}", "Transfer-Encoding: chunked"):
                with self.subTest(size=size, framing=framing):
                    self.assertEqual(self.upload(body, framing).body, expected)

    def test_downloads_arrive_completely(self):
        for size in (0, 1, 1000, 65_537, 3 * MIB + 1):
            body = random.randbytes(size)
            for headers, text in (("", body), ("Transfer-Encoding: chunked\r\n", chunked(body, 5000))):
                with self.subTest(size=size, headers=headers), self.weir.connect() as client:
                    self.upstream.reply = answer(text, headers=headers, length=not headers)
                    self.assertEqual(client.get("/").body, body)
                    self.assertEqual(client.get("/").body, body)

    def test_response_body_delimited_by_close_arrives_completely(self):
        body = random.randbytes(100_000)

        def send_and_close(exchange):
            exchange.send(answer(body, length=False))
            exchange.close()

        self.upstream.reply = send_and_close
        with self.weir.connect() as client:
            self.assertEqual(client.get("/").body, body)

    def test_fifty_megabytes_are_forwarded_without_being_buffered(self):
        self.weir.get("/")
        before = rss_kib(self.weir.pid)
        body = random.randbytes(MIB) * 50
        self.assertTrue(self.upload(body, f"Content-Length: {len(body)}").body.startswith(b"%d " % len(body)))
        self.assertTrue(self.upload(body, "Transfer-Encoding: chunked").body.startswith(b"%d " % len(body)))
        self.upstream.reply = answer(body)
        self.assertEqual(len(self.weir.get("/").body), len(body))
        grown = rss_kib(self.weir.pid) - before
        self.assertLess(grown, 20 * 1024, "KiB more resident than before")

    def test_weir_stops_reading_from_the_upstream_if_the_client_does_not_read(self):
        sent = []

        def pour(exchange):
            exchange.send(answer(b"", headers=f"Content-Length: {200 * MIB}\r\n", length=False))
            with contextlib.suppress(OSError):
                for _ in range(200):
                    exchange.send(b"x" * MIB)
                    sent.append(MIB)

        self.upstream.reply = pour
        with self.weir.connect() as client:
            client.send(request_bytes("GET", "/"))
            eventually(lambda: sent, "the first megabyte is sent")
            count = -1
            while count != len(sent):  # until the upstream has sent nothing more for a while
                count = len(sent)
                threading.Event().wait(0.5)
            self.assertLess(len(sent), 60)
            self.assertLess(rss_kib(self.weir.pid), 300 * 1024)

    def test_early_response_to_an_upload_reaches_the_client(self):
        self.upstream.reply = lambda exchange: (exchange.send(answer(b"no", "403 Forbidden", "Connection: close\r\n")),
                                                exchange.wait_for_close())
        with self.weir.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: weir.test\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)
            self.assertEqual(client.read().status, 403)

    def is_stopped(self):
        tasks = pathlib.Path(f"/proc/{self.weir.pid}/task").iterdir()
        return all((task / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for task in tasks)

    def test_connections_stay_open_if_a_response_is_sent_before_the_end_of_its_request(self):
        half, answers, answered = threading.Event(), threading.Event(), threading.Event()

        def reply(exchange):
            exchange.wire.read_exactly(1000)
            half.set()
            answers.wait(PATIENCE)
            exchange.send(answer())
            answered.set()
            exchange.wire.read_exactly(1000)

        self.upstream.reply = reply
        with self.weir.connect() as client:
            for _ in range(5):
                for event in half, answers, answered:
                    event.clear()
                client.send(b"PUT / HTTP/1.1\r\nHost: weir.test\r\nContent-Length: 2000\r\n\r\n" + b"x" * 1000)
                self.assertTrue(half.wait(PATIENCE))
                self.weir.signal(signal.SIGSTOP)  # so that weir finds the response and the rest of the body when it continues
                eventually(self.is_stopped, "every thread has stopped")
                answers.set()
                self.assertTrue(answered.wait(PATIENCE))
                client.send(b"x" * 1000)
                self.weir.signal(signal.SIGCONT)
                self.assertNotIn("connection", client.read())
        self.assertEqual(self.upstream.connections, 1)

    def test_client_that_expects_100_continue_gets_it_and_its_response(self):
        with self.weir.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: weir.test\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
            self.assertEqual(client.read().status, 100)
            client.send(b"abc")
            self.assertTrue(client.read().body.startswith(b"3 "))


def block_of(*heads):
    """Returns request heads that together fill a buffer to its last byte. Padding replaces the %s in each head."""
    share, more = divmod(BLOCK - sum(len(head % b"") for head in heads), len(heads))
    return b"".join(head % (share * b"a") for head in heads[:-1]) + heads[-1] % ((share + more) * b"a")


class FullBuffers(TestCase):
    """Earlier messages end exactly at the end of a buffer. The next message must still find room in it."""

    GET = b"GET / HTTP/1.1\r\nHost: weir.test\r\nX: %s\r\n\r\n"
    EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: %s\r\n\r\n"

    def setUp(self):
        self.upstream = self.start(Upstream())
        self.weir = self.start(Weir(config(self.upstream.port)))
        self.client = self.start(self.weir.connect())

    def passed_on(self, *heads):
        """Sends requests. The upstream responds to all of them except the last."""
        self.client.send(block_of(*heads))
        self.assertEqual([self.client.read().status for _ in heads[1:]], [200] * (len(heads) - 1))
        eventually(lambda: len(self.upstream.exchanges) == len(heads), "the last head is forwarded")

    def test_body_after_pipelined_requests_is_received_completely(self):
        self.upstream.reply = describe_body
        self.passed_on(self.GET, self.GET, b"POST / HTTP/1.1\r\nHost: weir.test\r\nContent-Length: 5\r\nX: %s\r\n\r\n")
        self.client.send(b"hello")
        self.assertEqual(self.client.read().body.split()[0], b"5")
        self.assertEqual(self.upstream.failures, [])

    def test_tunnel_opens_after_pipelined_requests(self):
        def reply(exchange):
            if "upgrade" not in exchange.head:
                return exchange.send(answer())
            exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
            return exchange.send(exchange.wire.read_exactly(5).upper())

        self.upstream.reply = reply
        self.passed_on(self.GET, self.GET, self.GET.replace(b"X:", b"Connection: upgrade\r\nUpgrade: websocket\r\nX:"))
        self.assertEqual(self.client.read().status, 101)
        self.client.send(b"hello")
        self.assertEqual(self.client.wire.read_exactly(5), b"HELLO")

    def answered(self, fields):
        """Returns the response to a request whose response body arrives late, after interim responses."""
        came = threading.Event()

        def reply(exchange):
            exchange.send(block_of(self.EARLY, self.EARLY, b"HTTP/1.1 200 OK\r\n" + fields + b"X: %s\r\n\r\n"))
            came.wait(PATIENCE)
            exchange.send(b"hello")
            exchange.close()

        self.upstream.reply = reply
        self.client.send(request_bytes("GET", "/"))
        heads = [self.client.wire.read_until(b"\r\n\r\n").split(b" ")[1] for _ in range(3)]
        self.assertEqual(heads, [b"103", b"103", b"200"])
        came.set()
        return self.client.wire

    def test_response_after_interim_responses_is_received_completely(self):
        self.assertEqual(self.answered(b"Content-Length: 5\r\n").read_exactly(5), b"hello")

    def test_response_delimited_by_close_after_interim_responses_is_received_completely(self):
        self.assertEqual(self.answered(b"").read_chunked(), b"hello")


class Heads(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())
        self.weir = self.start(Weir(config(self.upstream.port)))

    def seen(self, headers):
        self.assertEqual(self.weir.connect().request("GET", "/a%2Fb?x=1;y", headers).status, 200)
        return self.upstream.exchanges[-1].head

    def test_hop_by_hop_fields_of_the_request_are_not_forwarded(self):
        head = self.seen({"Connection": "keep-alive, X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=5", "TE": "gzip",
                          "Proxy-Connection": "keep-alive", "Upgrade": "h2c", "X-End": "to end"})
        for name in ("x-hop", "keep-alive", "te", "proxy-connection", "upgrade"):
            self.assertNotIn(name, head)
        self.assertEqual(head["x-end"], "to end")

    def test_connection_field_cannot_remove_fields_that_weir_adds(self):
        head = self.seen({"Connection": "X-Forwarded-For, Host, X-Request-ID"})
        self.assertEqual((head["x-forwarded-for"], head["host"]), ("127.0.0.1", "localhost"))
        self.assertTrue(head["x-request-id"])

    def test_x_forwarded_fields_and_via_are_added(self):
        head = self.seen({"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "spoofed"})
        self.assertEqual(head.all("x-forwarded-for"), ["127.0.0.1"])
        self.assertEqual(head.all("x-forwarded-proto"), ["http"])
        self.assertEqual(head.all("x-forwarded-host"), ["localhost"])
        self.assertIn("1.1", head["via"])
        self.assertEqual(len(head.all("x-request-id")), 1)

    def test_request_target_is_forwarded_unchanged(self):
        self.assertEqual(self.seen({}).line, "GET /a%2Fb?x=1;y HTTP/1.1")

    def test_hop_by_hop_fields_of_the_response_are_not_forwarded(self):
        self.upstream.reply = answer(headers="Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-End: yes\r\n")
        response = self.weir.get("/")
        self.assertEqual(("x-hop" in response, "keep-alive" in response, response["x-end"]), (False, False, "yes"))

    def test_response_without_date_gets_a_date_field(self):
        came = email.utils.parsedate_to_datetime(self.weir.get("/")["date"]).timestamp()
        self.assertLess(abs(time.time() - came), PATIENCE)
        self.upstream.reply = answer(headers="Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n")
        self.assertEqual(self.weir.get("/").all("date"), ["Thu, 01 Jan 1970 00:00:00 GMT"])

    def test_responses_without_a_body_keep_the_connection_usable(self):
        for method, status, headers in (("HEAD", "200 OK", "Content-Length: 500\r\n"), ("GET", "204 No Content", ""),
                                        ("GET", "304 Not Modified", "Content-Length: 500\r\n")):
            with self.subTest(status=status), self.weir.connect() as client:
                self.upstream.reply = answer(b"", status, headers, length=False)
                self.assertEqual(client.request(method, "/").status, int(status[:3]))
                self.upstream.reply = answer(b"next")
                self.assertEqual(client.get("/").body, b"next")

    def test_interim_responses_are_forwarded_before_the_final_response(self):
        self.upstream.reply = b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n" + answer(b"final")
        with self.weir.connect() as client:
            response = client.get("/")
            while response.status < 200:
                response = client.read()
        self.assertEqual(response.body, b"final")


if __name__ == "__main__":
    main()
