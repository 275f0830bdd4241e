#!/usr/bin/env python3
"""Rules with `bandwidth` limit the rate of bodies for each key. The rate applies in both directions, over HTTP/1.1, HTTP/2 and
tunnels. Requests with other keys do not wait."""

import pathlib
import signal
import tempfile
import threading
import time

from harness import PATIENCE, Client, Weir, answer, eventually, logged_requests, main, request_bytes, rss_kib, run_weir
from explain_test import get, post
from http2_client import Http2TestCase
from tunnel_test import ASK, echo

MEBIBYTE = 1 << 20
AHEAD = 0.1 + 16384 / MEBIBYTE  # seconds that a body may be early at 1 MiB/s: 0.1 s are sent at once, and a piece of 16 KiB


def paced(bandwidth, name="pace", key='["header:X-Key"]', more=""):
    return f'[[rule]]\nname = "{name}"\nbandwidth = "{bandwidth}"\nkey = {key}\n{more}\n'


class Bandwidth(Http2TestCase):
    def setUp(self):
        super().setUp()
        self.upstream.reply = self.reply

    @staticmethod
    def reply(exchange):
        """Answers with as many octets as the path says."""
        exchange.read_body()
        exchange.send(answer(b"x" * int(exchange.target[1:] or 0)))


class Duration(Bandwidth):
    def test_bodies_pass_no_faster_than_the_rate_in_each_direction_and_protocol(self):
        weir = self.plain_weir(paced("1MiB/s"))
        took = {}

        def transfer(name, work):
            begun = time.monotonic()
            work()
            took[name] = time.monotonic() - begun

        def old(path, body=b""):
            with Client(weir.port) as client:
                response = client.request("POST", path, {"X-Key": path + str(len(body))}, body)
            self.assertEqual((response.status, len(response.body)), (200, int(path[1:])))

        def new(path, body=b""):
            client = self.client(weir)
            response = client.request("POST", path, [("x-key", "h2" + path + str(len(body)))], body)
            self.assertEqual((response.status, response.size), (200, int(path[1:])))

        def tunnel():
            with Client(tunnels.port) as client:
                client.send(request_bytes("GET", "/", {**ASK, "X-Key": "t"}))
                self.assertEqual(client.read().status, 101)
                sender = threading.Thread(target=client.send, args=(b"y" * MEBIBYTE,))
                sender.start()
                self.assertEqual(client.wire.read_exactly(MEBIBYTE), b"y" * MEBIBYTE)
                sender.join(PATIENCE)

        both = 2 * MEBIBYTE
        works = {"download": lambda: old(f"/{both}"), "upload": lambda: old("/0", b"y" * both),
                 "both": lambda: old(f"/{MEBIBYTE}", b"y" * MEBIBYTE), "h2 download": lambda: new(f"/{both}"),
                 "h2 upload": lambda: new("/0", b"y" * both), "tunnel": tunnel}
        upstream = self.upstream
        upstream.reply = lambda exchange: echo(exchange) if "upgrade" in exchange.head else self.reply(exchange)
        tunnels = weir
        threads = [threading.Thread(target=transfer, args=each, daemon=True) for each in works.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(4 * PATIENCE)
        self.assertEqual(set(took), set(works))
        for name, seconds in took.items():
            self.assertGreaterEqual(seconds, 2 - 2 * AHEAD, name)
        self.assertGreater(weir.metric("weir_bandwidth_waited_seconds_total", rule="pace"), 2)

    def test_two_streams_of_a_key_take_turns_and_share_the_rate(self):
        weir = self.plain_weir(paced("1MiB/s"))
        client = self.client(weir)
        begun = time.monotonic()
        streams = [client.open(path=f"/{MEBIBYTE // 2}", fields=[("x-key", "a")]) for _ in range(2)]
        one, other = (client.answers[stream] for stream in streams)
        client.wait(lambda: one.ended or other.ended)
        self.assertGreaterEqual(min(one.size, other.size), MEBIBYTE // 4, "both got turns")
        client.wait(lambda: one.ended and other.ended)
        self.assertGreaterEqual(time.monotonic() - begun, 1 - AHEAD)
        self.assertEqual((one.size, other.size), (MEBIBYTE // 2, MEBIBYTE // 2))


class OtherKeysAndClients(Bandwidth):
    def test_busy_key_does_not_delay_another_key_on_the_same_connection(self):
        weir = self.plain_weir(paced("1KiB/s"))
        client = self.client(weir)
        slow = client.open(path="/100000", fields=[("x-key", "slow")])
        upload = client.open("POST", fields=[("x-key", "upload")], end=False)
        client.send_body(upload, b"y" * 30_000, end=False)
        client.wait(lambda: client.answers[slow].size)
        for number in range(20):
            self.assertEqual(client.get("/500", x_key=f"quick{number}").size, 500)
        with Client(weir.port) as other:
            self.assertEqual(len(other.get("/100000").body), 100_000, "no key, so no rule applies")
        self.assertFalse(client.answers[slow].ended)
        client.sock.close()
        self.await_metric(weir, 0, "weir_http2_streams")

    def test_wait_of_a_body_ends_if_the_client_leaves(self):
        weir = self.plain_weir(paced("1KiB/s"))
        for work in ("download", "upload"):
            with self.subTest(work):
                client = self.start(weir.connect())
                if work == "download":
                    client.send(request_bytes("GET", "/100000", {"X-Key": work}))
                    client.wire.read_until(b"\r\n\r\n")
                else:
                    client.send(request_bytes("POST", "/0", {"X-Key": work, "Content-Length": "100000"}) + b"y" * 50_000)
                    eventually(lambda: weir.metric("weir_bandwidth_waited_seconds_total") > 0.1, "the upload waits")
                client.leave()
                eventually(lambda: weir.metric("weir_client_errors_total", kind="left") == (1 if work == "download" else 2),
                           "the transfer has ended")

    def test_paced_answer_takes_bounded_memory_and_slows_its_server(self):
        sent = []

        def flood(exchange):
            exchange.send(answer(b"")[:-len("Content-Length: 0\r\n\r\n")] + b"Content-Length: 100000000\r\n\r\n")
            for _ in range(1000):
                exchange.send(b"x" * 100_000)
                sent.append(100_000)

        self.upstream.reply = flood
        weir = self.plain_weir(paced("64KiB/s"))
        before = rss_kib(weir.pid)
        client = self.client(weir)
        stream = client.open(fields=[("x-key", "a")])
        client.wait(lambda: client.answers[stream].size > 32 << 10)
        self.assertLess(sum(sent), 30_000_000, "the server is held back")
        self.assertLess(rss_kib(weir.pid) - before, 20_000)


class AccessLog(Bandwidth):
    def test_log_line_of_a_paced_request_has_the_time_its_bodies_waited(self):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-log-")), "access.log")
        text = self.text(doors=[False], rules=paced("64KiB/s")).replace('access = "off"', f'access = "{path}"')
        weir = self.start(Weir(text))
        with Client(weir.port) as client:
            self.assertEqual(len(client.request("POST", "/32768", {"X-Key": "a"}, b"").body), 32768)
            self.assertEqual(len(client.request("POST", "/1", {"X-Key": "b"}, b"").body), 1)
            self.assertEqual(len(client.request("POST", "/32768", {}, b"").body), 32768)
        eventually(lambda: path.exists() and len(logged_requests(path)) == 3, "all requests are logged")
        slow, short, free = logged_requests(path)
        self.assertGreater(slow["paced_us"], 200_000, "32 KiB take half a second, of which 200 ms pass at once")
        self.assertLessEqual(slow["paced_us"], slow["total_us"])
        self.assertNotIn("paced_us", short, "one octet passes at once")
        self.assertNotIn("paced_us", free, "no rule applies")


class BodiesAtHand(Bandwidth):
    """Bodies that arrive completely together with their heads."""

    def test_request_whose_body_exceeds_the_rate_waits_before_it_is_forwarded(self):
        weir = self.plain_weir(paced("8KiB/s"))
        with Client(weir.port) as client:
            begun = time.monotonic()
            self.assertEqual(client.request("POST", "/0", {"X-Key": "a"}, b"y" * 12_288).status, 200)
            self.assertGreaterEqual(time.monotonic() - begun, 1.3, "12 KiB but for what passes in 100 ms, and a piece")

    def test_waiting_body_does_not_count_towards_max_in_flight(self):
        weir = self.plain_weir(paced("1KiB/s"), server="max_in_flight = 1\n")
        waiting = self.start(weir.connect())
        waiting.send(request_bytes("POST", "/0", {"X-Key": "slow", "Content-Length": "12000"}) + b"y" * 12_000)
        eventually(lambda: weir.metric("weir_bandwidth_waited_seconds_total") > 0, "the body waits")
        self.assertEqual(len(self.upstream.exchanges), 0)
        with Client(weir.port) as quick:  # one connection: a request begins when the last one is no longer in flight
            for _ in range(3):
                self.assertEqual(quick.request("GET", "/10", {"X-Key": "quick"}).status, 200)

    def test_request_whose_body_waited_gets_503_if_max_in_flight_is_reached(self):
        weir = self.plain_weir(paced("8KiB/s"), server="max_in_flight = 1\n")
        asked, release = threading.Event(), threading.Event()

        def hold(exchange):
            asked.set()
            release.wait(PATIENCE)
            self.reply(exchange)

        self.upstream.reply = hold
        with weir.connect() as waiting, weir.connect() as first:
            waiting.send(request_bytes("POST", "/0", {"X-Key": "a", "Content-Length": "12000"}) + b"y" * 12_000)
            eventually(lambda: weir.metric("weir_bandwidth_waited_seconds_total") > 0, "the body waits")
            first.send(request_bytes("GET", "/0"))
            self.assertTrue(asked.wait(PATIENCE))
            self.assertEqual(waiting.read().status, 503)
            self.assertEqual(sum(weir.metric("weir_shed_total", priority=str(each)) for each in range(10)), 1)
            release.set()
            self.assertEqual(first.read().status, 200)

    def test_body_that_a_rule_has_already_read_does_not_wait_but_delays_later_bodies(self):
        reads = '[[rule]]\nname = "account"\nkey = ["json:/email"]\nlimit = "100/day"\n'
        weir = self.plain_weir(paced("1KiB/s") + reads)
        body = b'{"email": "ann", "text": "' + b"y" * 50_000 + b'"}'
        head = {"X-Key": "a", "Content-Type": "application/json", "Content-Length": str(len(body))}
        with weir.connect() as client, weir.connect() as later:
            client.send(request_bytes("POST", "/0", head) + body)
            self.assertEqual(client.read().status, 200)
            self.assertEqual(weir.metric("weir_bandwidth_waited_seconds_total"), 0)
            later.send(request_bytes("GET", "/600", {"X-Key": "a"}))
            eventually(lambda: weir.metric("weir_bandwidth_waited_seconds_total") > 0, "the next body of the key waits")

    def test_client_that_leaves_while_its_body_waits_is_charged_at_most_one_piece_of_the_body(self):
        weir = self.plain_weir(paced("1KiB/s"))
        for number in range(1, 6):
            client = self.start(weir.connect())
            before = weir.metric("weir_bandwidth_waited_seconds_total")
            client.send(request_bytes("POST", "/0", {"X-Key": "a", "Content-Length": "12000"}) + b"y" * 12_000)
            eventually(lambda: weir.metric("weir_bandwidth_waited_seconds_total") > before, "the body waits")
            client.leave()
            eventually(lambda: weir.metric("weir_client_errors_total", kind="left") == number, "the wait has ended")
        show = run_weir("keys", "show", "pace", "a", "--admin", f"127.0.0.1:{weir.admin}")[1]
        self.assertRegex(show, r"bandwidth 1KiB/s: paces bodies, busy for \d+(ms|s), memory")
        limit = get(weir.admin, "/api/keys?rule=pace&key=a").json()["limits"][0]
        self.assertEqual((limit["says"], limit["limiter"]), ("pace", "bandwidth 1KiB/s"))
        self.assertLess(limit["busy_seconds"], 11, "not 60 s")
        self.assertEqual(len(self.upstream.exchanges), 0)

    def test_waiting_body_gets_503_when_weir_stops(self):
        weir = self.plain_weir(paced("1KiB/s"))
        client = self.start(weir.connect())
        client.send(request_bytes("POST", "/0", {"X-Key": "a", "Content-Length": "12000"}) + b"y" * 12_000)
        eventually(lambda: weir.metric("weir_bandwidth_waited_seconds_total") > 0, "the body waits")
        weir.signal(signal.SIGTERM)
        self.assertEqual(client.read().status, 503)


class HalfCloseAndPreflight(Bandwidth):
    def test_wait_of_a_body_ends_if_the_client_closes_and_half_close_is_set_to_end(self):
        weir = self.plain_weir(paced("1KiB/s"), server='half_close = "end"\n')
        client = self.start(weir.connect())
        client.send(request_bytes("GET", "/100000", {"X-Key": "a"}))
        client.wire.read_until(b"\r\n\r\n")
        client.sock.close()
        eventually(lambda: weir.metric("weir_client_errors_total", kind="left") == 1, "the transfer has ended")

    def test_answer_to_a_preflight_is_slowed_to_the_rate(self):
        weir = self.weir(doors=[False], rules=paced("64KiB/s", key="[]"),
                         routes='[cors]\norigins = ["https://app.example.com"]\n[[route]]\nupstream = "api"\n')
        asks = {"Origin": "https://app.example.com", "Access-Control-Request-Method": "PUT"}
        with Client(weir.port) as client:
            begun = time.monotonic()
            self.assertEqual(len(client.request("OPTIONS", "/100000", asks).body), 100_000)
            self.assertGreaterEqual(time.monotonic() - begun, 1.2)
        self.assertEqual(weir.metric("weir_preflights_total"), 1)


class Timeouts(Bandwidth):
    def test_timeouts_do_not_run_while_weir_holds_a_body_back(self):
        weir = self.plain_weir(paced("2KiB/s"), server='write_timeout = "2s"\nbody_timeout = "2s"\n',
                               upstream='timeouts = { response = "2s" }')
        with Client(weir.port) as client:
            begun = time.monotonic()
            response = client.request("POST", "/100", {"X-Key": "a"}, b"y" * 6144)
            self.assertEqual((response.status, len(response.body)), (200, 100))
            self.assertGreaterEqual(time.monotonic() - begun, 2.5, "the answer waited for longer than every timeout")


class ExplanationAndReload(Bandwidth):
    def test_explanation_shows_the_bandwidth_of_a_rule(self):
        weir = self.plain_weir(paced("1MiB/s"))
        rules = post(weir.admin, "/api/explain", {"host": "localhost", "headers": {"X-Key": "a"}}).json()["rules"]
        self.assertEqual([(limit["says"], limit["limiter"], limit["busy_seconds"]) for limit in rules[0]["limits"]],
                         [("pace", "bandwidth 1MiB/s", 0)])

    def test_reload_that_raises_the_rate_shortens_the_wait_of_a_body(self):
        weir = self.plain_weir(paced("1KiB/s"))
        clients = [self.start(weir.connect()) for _ in range(12)]
        for each in clients:
            each.send(request_bytes("GET", "/100000", {"X-Key": "a"}))
        busy = lambda: get(weir.admin, "/api/keys?rule=pace&key=a").json()["limits"][0]["busy_seconds"]
        eventually(lambda: busy() > 4, "pieces of 0.5 s wait")
        for each in clients:
            each.leave()
        eventually(lambda: weir.metric("weir_client_errors_total", kind="left") == len(clients), "they have left")
        path = weir.folder / "weir.toml"
        path.write_text(path.read_text().replace("1KiB/s", "100KiB/s"))
        weir.signal(signal.SIGHUP)
        self.await_metric(weir, 1, "weir_reloads_total", result="ok")
        self.assertLess(busy(), 1)

    def test_reload_changes_the_rate_of_a_bandwidth_rule(self):
        weir = self.plain_weir(paced("1KiB/s"))
        path = weir.folder / "weir.toml"
        path.write_text(path.read_text().replace("1KiB/s", "100MiB/s"))
        weir.signal(signal.SIGHUP)
        self.await_metric(weir, 1, "weir_reloads_total", result="ok")
        self.assertEqual(len(weir.get("/1000000", x_key="a").body), 1_000_000)


if __name__ == "__main__":
    main()
