#!/usr/bin/env python3
"""HTTP/2 clients that attack: they send frames and resets that cost weir work. weir sends a GOAWAY with ENHANCE_YOUR_CALM, closes
the connection and counts it. Memory stays bounded, and another client gets its answers during the attack."""

import contextlib
import fcntl
import pathlib
import re
import struct
import termios
import threading
import time

from harness import PATIENCE, SANITIZED, Client, Weir, answer, eventually, main, rss_kib
from http2_client import (CALM, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS,
                          WINDOW_UPDATE, Attacker, Http2Client, Http2TestCase, frame, head_block)

MOST_MEMORY = (512 if SANITIZED else 16) << 10  # KiB that an attack may take; a sanitizer keeps 256 MiB of freed memory
WHOLE = END_STREAM | END_HEADERS


class Witness:
    """Another HTTP/2 client, which sends requests during an attack."""

    def __init__(self, port):
        self.port, self.ending, self.statuses, self.slowest, self.fault = port, threading.Event(), [], 0, None
        self.thread = threading.Thread(target=self.ask, daemon=True)
        self.thread.start()
        eventually(lambda: self.statuses, "the witness gets an answer")

    def ask(self):
        try:
            with Http2Client(self.port) as client:
                while not self.ending.is_set():
                    began = time.monotonic()
                    self.statuses.append(client.get("/").status)
                    self.slowest = max(self.slowest, time.monotonic() - began)
        except Exception as fault:  # stop() raises it
            self.fault = fault

    def stop(self):
        seen = len(self.statuses)
        eventually(lambda: self.fault or len(self.statuses) > seen, "the witness goes on")
        self.ending.set()
        self.thread.join(PATIENCE)
        if self.fault:
            raise self.fault
        return set(self.statuses)


class Flood(Http2TestCase):
    SERVER = ""  # values of [server]

    def setUp(self):
        super().setUp()
        self.release = threading.Event()
        self.addCleanup(self.release.set)
        self.upstream.reply = self.reply
        self.edge = self.weir(server=self.SERVER)
        self.assert_answers(self.client(self.edge))
        self.before = rss_kib(self.edge.pid)
        self.witness = Witness(self.edge.port)
        self.attacker = self.start(Attacker(self.edge.port))

    def reply(self, exchange):
        """Attackers request /held. The upstream does not answer this request before the end of the test."""
        if exchange.target == "/held":
            self.release.wait(PATIENCE)
        exchange.read_body()
        exchange.send(answer())

    def forwarded(self):
        return sum(exchange.target == "/held" for exchange in list(self.upstream.exchanges))

    def assert_calmed(self, reason):
        """Checks that weir has sent the attacker a GOAWAY with ENHANCE_YOUR_CALM, has closed the connection, and has counted the
        reason."""
        self.assertEqual((self.attacker.ended, self.attacker.goaways), (True, [CALM]))
        self.await_metric(self.edge, 1, "weir_http2_goaways_total", reason=reason)
        self.assert_unharmed()

    def assert_unharmed(self):
        """Checks that weir's memory has stayed bounded, and that the other client got all its answers."""
        self.assertEqual(self.witness.stop(), {200})
        grown = rss_kib(self.edge.pid) - self.before
        print(f"\n{grown} KiB more resident; the witness had {len(self.witness.statuses)} answers, the slowest after "
              f"{1000 * self.witness.slowest:.0f} ms", flush=True)
        self.assertLess(grown, MOST_MEMORY)


class CheapFrames(Flood):
    def assert_flood_ends(self, reason, frames):
        self.attacker.flood(lambda _: frames)
        self.assert_calmed(reason)

    def test_flood_of_settings_frames_ends_the_connection(self):
        self.assert_flood_ends("settings", frame(SETTINGS, 0, 0))

    def test_flood_of_settings_frames_with_values_ends_the_connection(self):
        self.assert_flood_ends("settings", frame(SETTINGS, 0, 0, b"\0\1\0\0\x10\0" * 30))

    def test_flood_of_pings_ends_the_connection(self):
        self.assert_flood_ends("ping", frame(PING, 0, 0, bytes(8)))

    def test_flood_of_priority_frames_ends_the_connection(self):
        self.assert_flood_ends("priority", frame(PRIORITY, 0, 1001, b"\0\0\0\0\x10"))

    def test_flood_of_window_updates_ends_the_connection(self):
        self.assert_flood_ends("window_update", frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1"))

    def test_flood_of_frames_of_unknown_types_ends_the_connection(self):
        self.assert_flood_ends("other", frame(0xbe, 0, 0, b"x" * 100) + frame(0x0a, 0, 0))

    def test_client_may_send_a_few_frames_of_unknown_types(self):
        """Clients that follow RFC 8701 (GREASE) or later extensions send such frames."""
        for number in range(100):
            self.attacker.send(frame(0xbe, 0xff, 0, b"x" * 100) + frame(HEADERS, WHOLE, 2 * number + 1, head_block()))
            self.assertTrue(self.attacker.wait(lambda: self.attacker.frames[HEADERS] == number + 1))  # noqa: B023
        self.assertEqual((self.attacker.ended, self.attacker.goaways), (False, []))
        self.assert_unharmed()

    def test_client_that_requests_an_answer_octet_by_octet_is_disconnected(self):
        """A stream's window begins at 0. Each WINDOW_UPDATE makes weir send one DATA frame of one octet (CVE-2019-9511)."""
        self.upstream.reply = lambda exchange: exchange.send(answer(b"x" * 100_000 if exchange.target == "/long" else b"ok"))
        dribble = self.start(Attacker(self.edge.port, settings=b"\0\4\0\0\0\0"))
        dribble.send(frame(HEADERS, WHOLE, 1, head_block(path="/long")))
        dribble.wait(lambda: dribble.frames[HEADERS])
        sent = dribble.flood(lambda _: frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\1"), batch=1,
                             ready=lambda number: dribble.frames[DATA] >= number)
        self.assertLess(sent, 1_000)
        self.assertEqual(dribble.goaways, [CALM])

    def test_client_may_send_window_updates_after_each_small_message(self):
        """gRPC libraries send window updates in this way while a server streams small messages."""
        go_on = threading.Semaphore(0)

        def stream(exchange):
            if exchange.target != "/stream":
                return self.reply(exchange)
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while go_on.acquire(timeout=PATIENCE):
                exchange.send(b"7\r\nmessage\r\n")
            return None

        self.upstream.reply = stream
        self.attacker.send(frame(HEADERS, WHOLE, 1, head_block(path="/stream")))
        for number in range(1, 801):
            go_on.release()
            self.assertTrue(self.attacker.wait(lambda: self.attacker.frames[DATA] >= number), number)  # noqa: B023
            self.attacker.sock.sendall(frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\7") + frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\7"))
        self.assert_unharmed()
        self.assertEqual(self.attacker.goaways, [])

    def test_flood_of_unrequested_ping_acknowledgements_ends_the_connection(self):
        self.assert_flood_ends("ping", frame(PING, 1, 0, bytes(8)))

    def test_flood_of_unrequested_settings_acknowledgements_ends_the_connection(self):
        self.attacker.flood(lambda _: frame(SETTINGS, 1, 0))
        self.assert_unharmed()

    def test_flood_of_empty_data_frames_ends_the_connection(self):
        self.attacker.send(frame(HEADERS, END_HEADERS, 1, head_block(method="POST")))
        self.assert_flood_ends("empty_data", frame(DATA, 0, 1))

    def test_flood_of_data_frames_with_only_padding_ends_the_connection(self):
        self.attacker.send(frame(HEADERS, END_HEADERS, 1, head_block(method="POST")))
        self.assert_flood_ends("empty_data", frame(DATA, 8, 1, b"\3\0\0\0"))

    def test_flood_of_data_for_a_closed_stream_ends_the_connection(self):
        self.attacker.send(frame(HEADERS, END_HEADERS, 1, head_block(method="POST")) + frame(RST_STREAM, 0, 1, b"\0\0\0\x08"))
        self.attacker.flood(lambda _: frame(DATA, 0, 1, b"x"))
        self.assertEqual(len(self.attacker.goaways), 1)
        self.assert_unharmed()

    def test_flood_of_window_updates_for_a_closed_stream_ends_the_connection(self):
        self.attacker.send(frame(HEADERS, WHOLE, 1, head_block()))
        self.attacker.wait(lambda: self.attacker.frames[DATA])
        self.assert_flood_ends("window_update", frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\1"))

    def test_client_that_sends_many_requests_may_send_many_pings(self):
        client = self.client(self.edge)
        for _ in range(600):
            client.ping()
            self.assertEqual(client.request("POST", body=b"x").status, 200)
        self.assertEqual((client.ended, client.goaways), (False, []))
        self.assert_unharmed()


class Resets(Flood):
    HEAD = head_block(path="/held")

    def test_client_that_opens_and_resets_many_streams_is_disconnected(self):
        """Rapid reset, CVE-2023-44487."""
        self.attacker.flood(lambda number: frame(HEADERS, WHOLE, 2 * number + 1, self.HEAD) +
                            frame(RST_STREAM, 0, 2 * number + 1, b"\0\0\0\x08"))
        self.assertLessEqual(self.forwarded(), 101)
        self.assert_calmed("resets")
        self.await_metric(self.edge, 101, "weir_http2_resets_total", by="client")

    def assert_faults_are_bounded(self, fault, head=HEAD, flags=END_HEADERS):
        """Opens requests. A faulty frame follows each request, and weir answers the frame with a reset (CVE-2025-8671). Waits for
        the resets, so that the number of open streams stays below the maximum."""
        sent = self.attacker.flood(lambda number: frame(HEADERS, flags, 2 * number + 1, head) + fault(2 * number + 1), batch=50,
                                   ready=lambda sent: len(self.attacker.resets) == sent)
        self.assertLess(sent, 2_000)
        self.assertLessEqual(self.forwarded(), 101)
        self.assert_calmed("resets")
        self.await_metric(self.edge, 101, "weir_http2_resets_total", by="fault")

    def test_client_that_provokes_resets_by_window_overflows_is_disconnected(self):
        self.assert_faults_are_bounded(lambda stream: frame(WINDOW_UPDATE, 0, stream, b"\x7f\xff\xff\xff"))

    def test_client_that_provokes_resets_by_too_long_bodies_is_disconnected(self):
        head = head_block(("content-length", "1"), path="/held", method="POST")
        self.assert_faults_are_bounded(lambda stream: frame(DATA, END_STREAM, stream, b"too long"), head)

    def test_client_that_provokes_resets_by_too_short_bodies_is_disconnected(self):
        head = head_block(("content-length", "100"), path="/held", method="POST")
        self.assert_faults_are_bounded(lambda stream: frame(DATA, END_STREAM, stream, b"too short"), head)

    def test_client_that_sends_many_malformed_requests_is_disconnected(self):
        self.assert_faults_are_bounded(lambda _: b"", head_block(("connection", "close")), WHOLE)

    def test_goaway_has_the_error_code_of_the_fault_that_ends_the_connection(self):
        for name, fault, error in (("a window update of 0", frame(WINDOW_UPDATE, 0, 1, bytes(4)), 1),
                                   ("a priority of 3 octets", frame(PRIORITY, 0, 1, bytes(3)), 6),
                                   ("a window overflow", frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), 3),
                                   ("data after the end", frame(DATA, END_STREAM, 1, b"x") * 2, 5),
                                   ("data on stream 0", frame(DATA, 0, 0, b"x"), 1),
                                   ("a head that is no HPACK", frame(HEADERS, WHOLE, 3, b"\xff\xff\xff\xff\xff\xff"), 9)):
            with self.subTest(name), Attacker(self.edge.port) as attacker:
                attacker.send(frame(HEADERS, END_HEADERS, 1, self.HEAD))
                attacker.flood(lambda _: fault)  # noqa: B023
                self.assertEqual(attacker.goaways, [error])
        self.await_metric(self.edge, 6, "weir_http2_goaways_total", reason="fault")
        self.assert_unharmed()

    def test_client_that_keeps_opening_streams_above_the_maximum_is_disconnected(self):
        """The client does not acknowledge weir's SETTINGS, so weir refuses each stream with a reset."""
        self.attacker = self.start(Attacker(self.edge.port, acknowledges=False))
        self.attacker.flood(lambda number: frame(HEADERS, WHOLE, 2 * number + 1, self.HEAD))
        self.assertLessEqual(self.forwarded(), 100)
        self.assert_calmed("other")

    def test_maximum_number_of_resets_is_configurable(self):
        weir = self.weir('resets = "5/1h"')
        for name, breaks in (("cancelled", lambda client: client.reset(client.open(path="/held"))),
                             ("malformed", lambda client: client.read(client.open(fields=[("connection", "close")])))):
            with self.subTest(name):
                client = self.client(weir)
                for _ in range(5):
                    breaks(client)
                self.assert_answers(client)
                breaks(client)
                self.assertTrue(client.closed())
                self.assertEqual([code for code, _ in client.goaways], [CALM])
        self.assert_unharmed()


class DeafClients(Flood):
    """An attacker that reads nothing, so weir can send nothing. The attacker sends frames that weir must answer."""

    SERVER = 'write_timeout = "3s"'

    def setUp(self):
        super().setUp()
        self.upstream.reply = lambda exchange: exchange.send(answer(b"x" * (60 << 20) if exchange.target == "/large" else b"ok"))
        windows = b"\0\4\x7f\xff\xff\xff"  # weir may send 2 GiB on each stream
        self.attacker = self.start(Attacker(self.edge.port, windows, buffer=4096, acknowledges=False))
        self.attacker.sock.sendall(frame(WINDOW_UPDATE, 0, 0, b"\x7f\0\0\0") + frame(HEADERS, WHOLE, 1, head_block(path="/large")))
        held, count = None, 0
        while held != count or not count:  # until nothing more arrives in this socket's buffer
            threading.Event().wait(0.2)
            held, count = count, struct.unpack("i", fcntl.ioctl(self.attacker.sock, termios.FIONREAD, bytes(4)))[0]

    def assert_memory_is_bounded(self, next_frames):
        with contextlib.suppress(OSError):  # weir stops reading, or closes the connection
            for first in range(0, 1_000_000, 1000):
                self.attacker.sock.sendall(b"".join(next_frames(2 * number + 3) for number in range(first, first + 1000)))
        self.await_metric(self.edge, 0, "weir_http2_streams")
        text = pathlib.Path(f"/proc/{self.edge.pid}/status").read_text()
        peak = int(re.search(r"VmHWM:\s+(\d+)", text)[1]) - self.before
        print(f"\n{peak} KiB more resident at most", flush=True)
        self.assertLess(peak, 2 * MOST_MEMORY)
        self.assert_unharmed()

    def test_pings_of_a_client_that_reads_nothing_take_bounded_memory(self):
        self.assert_memory_is_bounded(lambda _: frame(PING, 0, 0, bytes(8)))

    def test_settings_frames_of_a_client_that_reads_nothing_take_bounded_memory(self):
        self.assert_memory_is_bounded(lambda _: frame(SETTINGS, 0, 0))

    def test_malformed_requests_of_a_client_that_reads_nothing_take_bounded_memory(self):
        head = head_block(("connection", "close"))
        self.assert_memory_is_bounded(lambda stream: frame(HEADERS, WHOLE, stream, head))

    def test_malformed_field_names_of_a_client_that_reads_nothing_take_bounded_memory(self):
        head = head_block(("x y", "z"))
        self.assert_memory_is_bounded(lambda stream: frame(HEADERS, WHOLE, stream, head))

    def test_too_long_bodies_of_a_client_that_reads_nothing_take_bounded_memory(self):
        head = head_block(("content-length", "1"), method="POST")
        self.assert_memory_is_bounded(lambda stream: frame(HEADERS, END_HEADERS, stream, head) + frame(DATA, END_STREAM, stream, b"long"))

    def test_requests_of_a_client_that_reads_nothing_take_bounded_memory(self):
        head = head_block()
        self.assert_memory_is_bounded(lambda stream: frame(HEADERS, WHOLE, stream, head))


class Heads(Flood):
    def assert_head_ends(self, next_frames):
        """Begins a head that does not end. The codec rejects the connection as a whole, so weir may send no GOAWAY."""
        self.attacker.send(frame(HEADERS, END_STREAM, 1, head_block()))
        self.attacker.flood(next_frames)
        eventually(lambda: sum(self.edge.metric("weir_http2_goaways_total", reason=reason) for reason in ("fault", "head")) == 1,
                   "weir counts the end of the connection")
        self.assert_unharmed()

    def test_endless_continuation_frames_end_the_connection(self):
        """CONTINUATION flood, CVE-2024-27316."""
        field = head_block(("x-field", "x" * 300))[len(head_block()):]
        self.assert_head_ends(lambda _: frame(CONTINUATION, 0, 1, field * 40))

    def test_endless_empty_continuation_frames_end_the_connection(self):
        self.assert_head_ends(lambda _: frame(CONTINUATION, 0, 1))

    def test_many_references_to_a_large_hpack_entry_end_the_connection(self):
        """CVE-2016-6581, "HPACK bomb": one octet of the head decodes to 4,000 octets."""
        size = 4000 - 127
        entry = b"\x40\x07x-large\x7f" + bytes([size & 0x7f | 0x80, size >> 7]) + b"x" * 4000  # stored in the decoder's table
        self.attacker.send(frame(HEADERS, WHOLE, 1, head_block() + entry))
        self.attacker.flood(lambda number: frame(HEADERS, WHOLE, 2 * number + 3, head_block() + b"\xbe" * 16_000), batch=2)
        self.assert_calmed("head")

    def test_cookies_count_towards_the_maximum_head_size(self):
        crumbs = head_block(*[("cookie", "a" * 40)] * 300)  # more than max_head
        self.attacker.send(frame(HEADERS, WHOLE, 1, crumbs))
        self.attacker.wait(lambda: self.attacker.frames[HEADERS])
        self.assertEqual([each for each in self.upstream.exchanges if "cookie" in each.head], [])
        self.await_metric(self.edge, 1, "weir_requests_total", code="431")
        self.assert_unharmed()


class ManyConnections(Http2TestCase):
    def test_number_of_http2_connections_of_one_address_is_bounded(self):
        weir = self.weir(server="max_connections_per_ip = 3")
        clients = [self.client(weir, source="127.0.0.2") for _ in range(3)]
        for client in clients:
            self.assert_answers(client)
        with Client(weir.port, source="127.0.0.2") as fourth:
            self.assertTrue(fourth.closed())
        self.assert_answers(self.client(weir, source="127.0.0.3"))

    def test_new_connection_replaces_an_idle_connection_at_max_connections(self):
        text = self.text(server="max_connections = 4").replace("workers = 2", "workers = 1")
        weir = self.start(Weir(text, self.files))
        idle = [self.client(weir) for _ in range(4)]
        for client in idle:
            self.assert_answers(client)
        self.assert_answers(self.client(weir))
        self.assertGreaterEqual(weir.metric("weir_connections_evicted_total"), 1)

    def test_each_stream_counts_as_a_request_in_flight(self):
        release = threading.Event()
        self.addCleanup(release.set)
        self.upstream.reply = lambda exchange: (release.wait(PATIENCE), exchange.send(answer()))
        weir = self.weir(server="max_in_flight = 5", routes='[[route]]\nupstream = "api"\npriority = 0')
        client = self.client(weir)
        streams = [client.open() for _ in range(5)]
        eventually(lambda: len(self.upstream.exchanges) == 5, "five requests reach the upstream")
        self.assert_own_error(client.get("/"), 503)
        release.set()
        self.assertEqual({client.read(stream).status for stream in streams}, {200})


if __name__ == "__main__":
    main()
