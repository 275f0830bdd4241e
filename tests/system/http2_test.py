#!/usr/bin/env python3
"""Clients that speak HTTP/2: which protocol a connection gets, bodies, heads, interim answers, and malformed requests."""

import hashlib
import json
import pathlib
import random
import re
import socket
import ssl
import subprocess
import tempfile
import threading

from harness import PATIENCE, Client, Weir, answer, chunked, client_tls, config, eventually, main, request_bytes, rule
from http2_client import SETTINGS, Http2Client, Http2TestCase, frame
from proxy_test import MIB, describe_body

SIZES = (0, 1, 16_384, 65_535, 65_536, 300_000, 3 * MIB)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def digest(body):
    return f"{len(body)} {hashlib.sha256(body).hexdigest()}".encode()


def unread_by(weir, client):
    """Returns the number of octets from the client that weir has not read yet, as the kernel shows it (proc(5): /proc/net/tcp)."""
    ends = [f"{socket.inet_aton(host)[::-1].hex().upper()}:{port:04X}"
            for host, port in (client.sock.getpeername(), client.sock.getsockname())]
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1:3] == ends:
            return int(fields[4].split(":")[1], 16)
    raise AssertionError(f"the kernel knows no connection {ends} to {weir.port}")


class Clients(Http2TestCase):
    def setUp(self):
        super().setUp()
        self.edge = self.weir()
        self.plain, self.secure = (f"{scheme}://127.0.0.1:{port}/" for scheme, port in zip(("http", "https"), self.edge.ports))

    def run_client(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def curl(self, url, *options):
        return self.run_client("curl", "-sS", "--cacert", self.edge.folder / "edge.crt", "--max-time", str(PATIENCE),
                               "--connect-to", "localhost::127.0.0.1:", "-w", " %{http_version} %{http_code}", *options,
                               url.replace("127.0.0.1", "localhost"))

    def test_curl_gets_the_protocol_that_it_asks_for(self):
        for url, option, version in ((self.secure, "--http2", "2"), (self.secure, "--http1.1", "1.1"),
                                     (self.plain, "--http2-prior-knowledge", "2"), (self.plain, "--http1.1", "1.1"),
                                     (self.plain, "--http2", "1.1")):  # this curl requests "Upgrade: h2c"
            with self.subTest(url=url, option=option):
                self.assertEqual(self.curl(url, option), f"ok {version} 200")

    def test_curl_uploads_and_downloads_over_http_2(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(exchange.read_body()))
        body = random.randbytes(MIB)
        with tempfile.NamedTemporaryFile() as source, tempfile.NamedTemporaryFile() as target:
            source.write(body)
            source.flush()
            for url, option in ((self.secure, "--http2"), (self.plain, "--http2-prior-knowledge")):
                with self.subTest(url=url):
                    told = self.curl(url, option, "--data-binary", f"@{source.name}", "-o", target.name)
                    self.assertEqual(told, " 2 200")
                    with open(target.name, "rb") as file:
                        self.assertEqual(file.read(), body)

    def test_nghttp_gets_every_answer(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(f"<{exchange.target}>".encode()))
        for url in (self.plain, self.secure):
            told = self.run_client("nghttp", "--no-verify-peer", *(f"{url}{number}" for number in range(20)))
            self.assertEqual(sorted(re.findall(r"<.*?>", told)), sorted(f"</{number}>" for number in range(20)))

    def test_h2load_loses_no_request(self):
        for url in (self.plain, self.secure):
            told = self.run_client("h2load", "-n", "2000", "-c", "5", "-m", "20", url)
            self.assertIn("2000 total, 2000 started, 2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout", told)
            self.assertIn("status codes: 2000 2xx", told)
        self.await_metric(self.edge, 4000, "weir_requests_total", code="200")

    def chosen(self, port, offered):
        context = client_tls(self.files["edge.crt"], offered)
        with Client(port, tls=context) as client:
            return client.sock.selected_alpn_protocol()

    def test_alpn_chooses_the_protocol(self):
        for offered, expected in ((["h2", "http/1.1"], "h2"), (["http/1.1", "h2"], "h2"), (["h2"], "h2"),
                                  (["http/1.1"], "http/1.1"), (None, None)):
            with self.subTest(offered):
                self.assertEqual(self.chosen(self.edge.ports[1], offered), expected)
        for offered in (["http/1.1"], None):
            with Client(self.edge.ports[1], tls=client_tls(self.files["edge.crt"], offered)) as client:
                self.assertEqual(client.get("/").status, 200)

    def test_listener_serves_only_its_configured_protocols(self):
        tls = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }\nprotocols = '
        weir = self.start(Weir(config(self.upstream.port, listener=tls + '["http/1.1"]'), self.files))
        self.assertEqual(self.chosen(weir.port, ["h2", "http/1.1"]), "http/1.1")
        weir = self.start(Weir(config(self.upstream.port, listener=tls + '["h2"]'), self.files))
        self.assertEqual(self.chosen(weir.port, ["http/1.1", "h2"]), "h2")
        with self.assertRaises(ssl.SSLError):
            self.chosen(weir.port, ["http/1.1"])

    def test_plain_listener_speaks_http_2_only_if_configured(self):
        weir = self.start(Weir(config(self.upstream.port)))
        with weir.connect() as client:
            client.send(PREFACE + bytes(9))
            self.assertGreaterEqual(client.read().status, 400)
            self.assertTrue(client.closed())

    def test_preface_may_arrive_in_two_parts(self):
        for at in range(1, len(PREFACE)):
            with self.subTest(first=PREFACE[:at]), self.edge.connect() as client:
                client.send(PREFACE[:at])
                eventually(lambda: not unread_by(self.edge, client), "weir has read the first part")
                client.send(PREFACE[at:] + frame(SETTINGS, 0, 0))
                self.assertEqual(client.wire.read_exactly(9)[3], SETTINGS)

    def test_http_1_and_http_2_share_a_listener_and_a_limit(self):
        weir = self.weir(rules=rule("both", "3/day", key='["ip"]', algorithm='"fixed_window"'))
        self.assertEqual([weir.get("/").status, self.client(weir).get("/").status, self.client(weir, secure=True).get("/").status,
                          weir.get("/").status, self.client(weir).get("/").status], [200, 200, 200, 429, 429])


class Bodies(Http2TestCase):
    def test_uploads_arrive_unchanged(self):
        self.upstream.reply = describe_body
        weir = self.weir()
        for secure in (False, True):
            client = self.client(weir, secure)
            for size in SIZES:
                body = random.randbytes(size)
                for fields in ([], [("content-length", str(size))]):
                    with self.subTest(size=size, fields=fields, secure=secure):
                        self.assertEqual(client.request("POST", fields=fields, body=body).body, digest(body))
        self.assertEqual(self.upstream.failures, [])

    def test_downloads_arrive_unchanged(self):
        def by_close(exchange):
            exchange.send(answer(body, length=False))
            exchange.close()

        weir = self.weir()
        for secure in (False, True):
            client = self.client(weir, secure)
            for size in SIZES:
                body = random.randbytes(size)
                ways = {"length": answer(body), "close": by_close,
                        "chunks": answer(chunked(body, 5000), headers="Transfer-Encoding: chunked\r\n", length=False)}
                for way, reply in ways.items():
                    with self.subTest(size=size, way=way, secure=secure):
                        self.upstream.reply = reply
                        response = client.get("/")
                        self.assertEqual((response.status, response.error, response.body == body), (200, None, True))
                        self.assertEqual(response["content-length"], str(size) if way == "length" else None)
                        self.assertNotIn("transfer-encoding", response)

    def test_bodies_of_many_streams_of_one_connection_do_not_mix(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(exchange.read_body()))
        client = self.client(self.weir())
        bodies = {client.open("POST", end=False): bytes([number]) * 50_000 for number in range(40)}
        for at in range(0, 50_000, 10_000):
            for stream, body in bodies.items():
                client.send_body(stream, body[at:at + 10_000], end=at == 40_000)
        for stream, body in bodies.items():
            self.assertEqual(client.read(stream).body, body)

    def test_truncated_answer_of_the_server_resets_the_stream(self):
        def cut(exchange):
            exchange.send(answer(b"", headers="Content-Length: 1000\r\n", length=False) + b"x" * 10)
            exchange.close()

        self.upstream.reply = cut
        client = self.client(self.weir())
        response = client.get("/")
        self.assertEqual((response.status, response.ended, response.error is not None), (200, False, True))
        self.upstream.reply = answer()
        self.assert_answers(client)

    def test_answer_before_the_end_of_an_upload_reaches_the_client(self):
        self.upstream.reply = lambda exchange: (exchange.send(answer(b"no", "403 Forbidden", "Connection: close\r\n")),
                                                exchange.wait_for_close())
        client = self.client(self.weir())
        stream = client.open("POST", end=False)
        client.send_body(stream, b"x" * 3 * MIB)
        response = client.read(stream)
        self.assertEqual((response.status, response.body), (403, b"no"))
        self.upstream.reply = answer()
        self.assert_answers(client)

    def test_body_above_max_body_gets_413_and_the_connection_stays_usable(self):
        self.upstream.reply = describe_body
        client = self.client(self.weir(server='max_body = "64KiB"'))
        for fields in ([], [("content-length", "65537")]):
            self.assertEqual(client.request("POST", fields=fields, body=b"x" * 65_537).status, 413)
            self.assertEqual(client.request("POST", body=b"x" * 65_536).status, 200)


class Answers(Http2TestCase):
    def test_answers_without_a_body_end_their_stream(self):
        client = self.client(self.weir())
        for method, status, fields in (("HEAD", "200 OK", "Content-Length: 500\r\n"), ("GET", "204 No Content", ""),
                                       ("GET", "304 Not Modified", "Content-Length: 500\r\n")):
            with self.subTest(status=status):
                self.upstream.reply = answer(b"", status, fields, length=False)
                response = client.request(method)
                self.assertEqual((response.status, response.body, response.ended), (int(status[:3]), b"", True))
                self.assertEqual(response["content-length"], "500" if fields else None)

    def test_interim_answers_are_forwarded(self):
        self.upstream.reply = (b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n"
                               b"HTTP/1.1 103 Early Hints\r\nLink: </t.css>\r\n\r\n" + answer(b"final"))
        response = self.client(self.weir()).get("/")
        self.assertEqual([(dict(fields)[":status"], dict(fields)["link"]) for fields in response.interim],
                         [("103", "</s.css>"), ("103", "</t.css>")])
        self.assertEqual((response.status, response.body), (200, b"final"))

    def test_client_that_expects_100_continue_gets_status_100(self):
        self.upstream.reply = describe_body
        client = self.client(self.weir())
        stream = client.open("POST", fields=[("expect", "100-continue"), ("content-length", "3")], end=False)
        self.assertTrue(client.wait(lambda: client.answers[stream].interim))
        client.send_body(stream, b"abc")
        response = client.read(stream)
        self.assertEqual(response.body, digest(b"abc"))
        self.assertEqual([dict(fields)[":status"] for fields in response.interim], ["100"])

    def test_trailers_of_a_chunked_answer_are_forwarded(self):
        self.upstream.reply = answer(b"2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n", headers="Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n",
                                     length=False)
        response = self.client(self.weir()).get("/")
        self.assertEqual((response.body, response.trailers), (b"ok", [("x-sum", "7")]))

    def test_connection_fields_of_an_answer_are_not_forwarded(self):
        self.upstream.reply = answer(headers="Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-End: yes\r\n")
        response = self.client(self.weir()).get("/")
        self.assertEqual([response[name] for name in ("connection", "x-hop", "keep-alive", "x-end")], [None, None, None, "yes"])
        self.assertIn("date", response)


class Requests(Http2TestCase):
    def setUp(self):
        super().setUp()
        self.edge = self.weir()

    def seen(self, **more):
        self.assertEqual(self.client(self.edge, more.pop("secure", False)).request(**more).status, 200)
        return self.upstream.exchanges[-1].head

    def test_upstream_receives_an_http_1_request(self):
        head = self.seen(path="/a%2Fb?x=1;y", authority="name.test:81", fields=[("x-end", "to end"), ("te", "trailers")])
        self.assertEqual(head.line, "GET /a%2Fb?x=1;y HTTP/1.1")
        self.assertEqual([head.all(name) for name in ("host", "x-end", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host")],
                         [["name.test:81"], ["to end"], ["127.0.0.1"], ["http"], ["name.test:81"]])
        self.assertEqual(head["via"], "2 weir")
        self.assertEqual([name for name, _ in head.fields if name in ("transfer-encoding", "content-length")], [])
        self.assertEqual(self.seen(secure=True)["x-forwarded-proto"], "https")

    def test_cookie_fields_are_joined_into_one_field(self):
        head = self.seen(fields=[("cookie", "a=1"), ("x-other", "o"), ("cookie", "b=2"), ("cookie", "c=3")])
        self.assertEqual(head.all("cookie"), ["a=1; b=2; c=3"])

    def test_repeated_fields_stay_separate_and_in_order(self):
        head = self.seen(fields=[("x-list", "1"), ("x-list", "2"), ("x-list", "3")])
        self.assertEqual(head.all("x-list"), ["1", "2", "3"])

    def test_host_field_replaces_a_missing_authority(self):
        self.assertEqual(self.seen(authority=None, fields=[("host", "name.test")]).all("host"), ["name.test"])
        self.assertEqual(self.seen(authority="name.test", fields=[("host", "Name.test")])["host"].lower(), "name.test")

    def test_an_authority_that_differs_from_host_is_refused(self):
        client = self.client(self.edge)
        self.assert_own_error(client.request(authority="a.test", fields=[("host", "b.test")]), 400)
        self.assertEqual(self.upstream.exchanges, [])
        self.assert_answers(client)

    def test_connect_method_gets_405(self):
        client = self.client(self.edge)
        refused = client.request(pseudo=[(":method", "CONNECT"), (":authority", "a.test:443")])
        self.assert_own_error(refused, 405)
        self.assertIn("GET", refused["allow"])
        self.assert_answers(client)

    def test_large_head_gets_431_and_other_streams_succeed(self):
        release = threading.Event()
        self.upstream.reply = lambda exchange: (release.wait(PATIENCE), exchange.send(answer()))
        client = self.client(self.edge)
        other = client.open()
        eventually(lambda: self.upstream.exchanges, "the other request reaches the upstream")
        for fields in ([("x-large", "x" * 20_000)], [(f"x-{number}", "x" * 50) for number in range(300)]):
            self.assert_own_error(client.request(fields=fields), 431)
        release.set()
        self.assertEqual(client.read(other).status, 200)
        self.assertEqual(client.request(fields=[("x-large", "x" * 12_000)]).status, 200)
        self.assertEqual(len(self.upstream.exchanges), 2)

    def test_too_many_fields_are_refused(self):
        client = self.client(self.edge)
        self.assert_own_error(client.request(fields=[(f"x-{number}", "1") for number in range(200)]), 431)
        self.assert_answers(client)

    def test_request_that_http_1_cannot_carry_is_not_forwarded(self):
        usual = {":method": "GET", ":scheme": "http", ":path": "/", ":authority": "localhost"}

        def with_pseudo(**changes):
            changed = {**usual, **{f":{key}": value for key, value in changes.items()}}
            return [(name, value) for name, value in changed.items() if value is not None]

        heads = [(with_pseudo(), [field]) for field in (
            ("x-a", "1\r\nX-B: 2"), ("x-a", "1\n2"), ("x-a", "1\0"), ("x-a", "1\r"), ("X-Upper", "1"), ("x a", "1"), ("x-a:", "1"),
            ("", "1"), ("x-a\r\nx-b", "1"), ("connection", "close"), ("transfer-encoding", "chunked"), ("upgrade", "h2c"),
            ("keep-alive", "1"), ("proxy-connection", "close"), ("te", "gzip"), ("content-length", "-1"), ("content-length", "1, 1"),
            ("content-length", "5"), (":path", "/again"), (":unknown", "1"), (":status", "200"))]
        heads += [(with_pseudo(**changes), []) for changes in (
            {"path": "/a b"}, {"path": "/ HTTP/1.1\r\nX: 1\r\n"}, {"path": ""}, {"path": "name"}, {"path": "/\x7f"}, {"path": None},
            {"method": None}, {"scheme": None}, {"method": "G T"}, {"method": "GET\r\n"}, {"authority": "a b"},
            {"authority": "a\r\nX: 1"}, {"authority": "a@b"})]
        client = self.client(self.edge)
        for pseudo, fields in heads:
            with self.subTest(pseudo=pseudo, fields=fields):
                response = client.request(pseudo=pseudo, fields=fields)
                refused = response.error is not None or (response.status == 400 and "error" in response.json())
                self.assertTrue(refused, response.raw)
                self.assertEqual([], self.upstream.exchanges)
                self.assertFalse(client.ended)
        self.assert_answers(client)
        self.assertEqual(self.upstream.failures, [])

    def test_body_whose_length_differs_from_content_length_is_rejected(self):
        self.upstream.reply = describe_body
        client = self.client(self.edge)
        for length, body in (("5", b"abc"), ("2", b"abc"), ("0", b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")):
            with self.subTest(length=length):
                response = client.request("POST", fields=[("content-length", length)], body=body)
                if length != "0":  # weir may answer a request without a body before it sees that a body follows
                    self.assertNotEqual(response.status, 200)
                self.assertIsNotNone(response.error if response.status is None else response.status)
        self.assertEqual(client.request("POST", body=b"abc").body, digest(b"abc"))
        self.assertNotIn("/smuggled", [exchange.target for exchange in self.upstream.exchanges])


class Observation(Http2TestCase):
    def test_access_log_names_the_protocol(self):
        text = self.text()
        with tempfile.NamedTemporaryFile() as log:
            weir = self.start(Weir(text.replace('access = "off"', f'access = "{log.name}"'), self.files))
            self.assertEqual([self.client(weir).get("/two").status, weir.get("/one").status], [200, 200])
            self.client(weir, secure=True).request("POST", "/three", body=b"12345")

            def lines():
                with open(log.name) as file:
                    told = [json.loads(line) for line in file.read().splitlines()]
                return told if len(told) == 3 else None

            told = eventually(lines, "three lines are written")
        self.assertEqual({line["target"]: line["protocol"] for line in told},
                         {"/one": "HTTP/1.1", "/two": "HTTP/2", "/three": "HTTP/2"})
        self.assertEqual({line["target"]: line["bytes_in"] >= 5 for line in told if line["target"] == "/three"}, {"/three": True})
        self.assertTrue(all(line["status"] == 200 for line in told))

    def test_access_log_has_the_body_sizes_of_requests_that_weir_answers_itself(self):
        text = self.text(doors=[False], rules=rule("one", "1/day", key="[]"))
        with tempfile.NamedTemporaryFile() as log:
            client = self.client(self.start(Weir(text.replace('access = "off"', f'access = "{log.name}"'), self.files)))
            self.assertEqual(client.get("/").status, 200)
            with client.corked():
                upload = client.open("POST", end=False)
                client.h2.send_data(upload, b"12345", end_stream=True)
            answers = [client.read(upload), client.request("get"), client.get("/", x_large="x" * 20_000)]
            self.assertEqual([each.status for each in answers], [429, 400, 431])

            def lines():
                with open(log.name) as file:
                    told = [json.loads(line) for line in file.read().splitlines()]
                return told if len(told) == 4 else None

            told = eventually(lines, "four lines are written")[1:]
        self.assertEqual([line["bytes_out"] for line in told], [len(each.body) for each in answers])
        self.assertEqual(told[0]["bytes_in"], 5)

    def test_connections_and_streams_are_counted(self):
        release = threading.Event()
        self.upstream.reply = lambda exchange: (release.wait(PATIENCE), exchange.send(answer()))
        weir = self.weir()
        with Http2Client(weir.port) as client, Http2Client(weir.ports[1], tls=self.tls) as secure, weir.connect() as old:
            streams = [client.open() for _ in range(7)]
            other = secure.open()
            old.send(request_bytes("GET", "/"))
            self.await_metric(weir, 8, "weir_http2_streams")
            self.await_metric(weir, 2, "weir_connections", protocol="HTTP/2")
            release.set()
            self.assertEqual([client.read(stream).status for stream in streams], [200] * 7)
            self.assertEqual((secure.read(other).status, old.read().status), (200, 200))
            self.await_metric(weir, 0, "weir_http2_streams")
        self.await_metric(weir, 0, "weir_connections", protocol="HTTP/2")

    def test_octets_are_counted_in_both_directions(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(exchange.read_body()))
        weir = self.weir()
        client, names = self.client(weir), ("weir_received_bytes_total", "weir_sent_bytes_total")
        self.assert_answers(client)
        before = {name: weir.metric(name) for name in names}
        self.assertEqual(len(client.request("POST", body=b"x" * 500_000).body), 500_000)
        for name in names:
            eventually(lambda: 500_000 < weir.metric(name) - before[name] < 510_000, name)  # noqa: B023


if __name__ == "__main__":
    main()
