#!/usr/bin/env python3
"""Tests the HTTP/2 server that other tests use, with the HTTP/2 client that other tests use. weir does not run."""

import pathlib
import tempfile

from harness import TestCase, client_tls, eventually, main, make_certificate
from http2_client import CANCEL, DATA, END_HEADERS, END_STREAM, HEADERS, PING, REFUSED, SETTINGS, Http2Client, frame
from http2_server import MOST_STREAMS, WINDOW, Http2Server, literal, server_tls

SIZES = (0, 1, 16384, 65536, 1 << 20)


class Server(TestCase):
    def serve(self, *arguments, **options):
        server = self.start(Http2Server(*arguments, **options))
        self.addCleanup(lambda: self.assertEqual(server.faults, []))
        return server

    def connect(self, server, **options):
        return self.start(Http2Client(server.port, **options))

    def test_bodies_pass_in_both_directions(self):
        server = self.serve(lambda request: request.answer(request.read_body(), length=request.path == "/known"))
        client = self.connect(server)
        for size in SIZES:
            for path in ("/known", "/any"):
                answer = client.request("POST", path, body=b"x" * size)
                self.assertEqual((answer.status, answer.body, answer.ended), (200, b"x" * size, True))
        self.assertEqual(len(server.requests), 2 * len(SIZES))
        self.assertEqual(server.connections, 1)

    def test_tls_connection_chooses_http_2_by_alpn(self):
        with tempfile.TemporaryDirectory() as folder:
            files = make_certificate(folder)
            server = self.serve(tls=server_tls(pathlib.Path(folder, "edge.crt"), pathlib.Path(folder, "edge.key")))
        client = self.connect(server, tls=client_tls(files["edge.crt"], ["h2"]))
        self.assertEqual(client.sock.selected_alpn_protocol(), "h2")
        self.assertEqual([client.get().status for _ in range(3)], [200] * 3)
        self.assertEqual(server.requests[0][":scheme"], "https")

    def test_interim_answers_and_trailers_arrive(self):
        def reply(request):
            request.interim(103, [("link", "</a>")])
            request.answer(b"body", length=False, trailers=[("x-sum", "1")])

        answer = self.connect(self.serve(reply)).get()
        self.assertEqual([dict(each)[":status"] for each in answer.interim], ["103"])
        self.assertEqual((answer.body, answer.trailers), (b"body", [("x-sum", "1")]))

    def test_resets_arrive_in_both_directions(self):
        server = self.serve(lambda request: request.reset(REFUSED) if request.path == "/no" else request.wait_for_reset())
        client = self.connect(server)
        self.assertEqual(client.get("/no").error, REFUSED)
        stream = client.open()
        client.ping()
        client.reset(stream)
        eventually(lambda: server.requests[1].error == CANCEL, "the server sees the reset")

    def test_a_server_refuses_streams_above_its_bound(self):
        server = self.serve(lambda request: request.wait_for_reset(), settings={MOST_STREAMS: 2})
        client = self.connect(server)
        client.ping()
        client.allow_streams(10)
        streams = [client.open() for _ in range(3)]
        self.assertEqual(client.read(streams[2]).error, REFUSED)
        self.assertEqual((len(server.requests), server.refused), (2, [5]))

    def test_a_server_ignores_streams_after_its_goaway(self):
        server = self.serve()
        client = self.connect(server)
        client.get()
        server.sessions[0].goaway()
        client.wait(lambda: client.goaways)
        self.assertEqual(client.goaways, [(0, 1)])
        client.open()
        client.ping()
        self.assertEqual((len(server.requests), server.ignored), (1, [3]))
        server.sessions[0].close()
        self.assertTrue(client.closed())

    def test_bodies_in_both_directions_stop_when_the_window_is_used_up(self):
        server = self.serve(lambda request: request.send_some(b"x" * 100_000) if request.head() is None else None,
                            settings={WINDOW: 1000}, permits=False)
        client = self.connect(server, window=3000)
        client.ping()
        stream = client.open("POST", end=False)
        self.assertEqual(client.h2.local_flow_control_window(stream), 1000)
        client.wait(lambda: client.answers[stream].size == 3000)
        self.assertEqual(server.requests[0].sent, 3000)
        server.sessions[0].permit(500, stream)
        client.wait(lambda: client.h2.local_flow_control_window(stream) == 1500)

    def test_server_can_be_set_to_acknowledge_nothing_and_read_nothing(self):
        server = self.serve(quiet={SETTINGS, PING})
        client = self.connect(server)
        client.send(frame(PING, 0, 0, b"01234567"))
        self.assertEqual(client.get().status, 200)
        self.assertEqual((client.acknowledged, client.pings_answered, server.sessions[0].pings), (0, 0, 1))
        server.sessions[0].reads.clear()
        client.open()
        with client.patience(0.1):
            client.receive()
        server.sessions[0].reads.set()
        client.wait(lambda: 3 in client.answers and client.answers[3].status)

    def test_server_can_send_raw_frames(self):
        server = self.serve(lambda request: request.raw(
            (HEADERS, END_HEADERS, literal((":status", "200"), ("x-a", "1"))), (DATA, END_STREAM, b"raw")))
        answer = self.connect(server).get()
        self.assertEqual((answer.fields, answer.body), ([("x-a", "1")], b"raw"))


if __name__ == "__main__":
    main()
