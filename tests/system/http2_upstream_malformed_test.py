#!/usr/bin/env python3
"""Responses as broken HTTP/2 servers send them, from the table in http2_raw_responses.py. No client sees malformed octets, and a
fault of one stream harms no other stream."""

import http2_raw_responses
from harness import PATIENCE, eventually, main
from http2_client import Http2Client
from http2_server import hello
from http2_upstream import BOTH, Http2UpstreamTestCase, of_connection, of_stream
from wire import request_bytes


class Malformed(Http2UpstreamTestCase):
    def setUp(self):
        self.server = self.serve(self.reply)
        self.weir = self.weir(self.server, upstream='eject = { failures = 1000, least = "1ms", most = "1ms" }\n'
                                                    'timeouts = { response = "10s" }')
        self.other = self.client(self.weir)
        self.open_neighbour()

    def reply(self, request):
        if request.path == "/neighbour":
            request.wait(lambda: False, 4 * PATIENCE)
        if not request.path[1:].isdigit():
            return hello(request)
        for each in http2_raw_responses.CASES[int(request.path[1:])].frames:
            if isinstance(each, bytes):
                request.connection.raw(each)
            else:
                request.raw(each)
        return None

    def open_neighbour(self):
        """Opens a request that stays open on the connection to the server."""
        before = len(self.server.requests)
        self.other.open(path="/neighbour")
        self.neighbour = self.await_requests(self.server, before + 1)

    def get(self, client, method, path):
        if isinstance(client, Http2Client):
            return of_stream(client.read(client.open(method, path)))
        client.send(request_bytes(method, path))
        return of_connection(client, method)

    def check(self, case, version):
        """Returns what is wrong, or None."""
        client = self.client(self.weir, version)
        try:
            got = self.get(client, case.method, f"/{http2_raw_responses.CASES.index(case)}")
        except (EOFError, OSError) as fault:
            return repr(fault)
        fault = self.judge(case, got)
        if case.ends:  # the client has its answer before the server reads the end of the connection
            eventually(lambda: self.neighbour.error is not None, f"{case.name}: the connection to the server ends")
        is_alone = self.neighbour.error is None and self.get(self.other, "GET", "/").status == 200
        if case.ends is None or not is_alone or self.neighbour.error is not None:
            self.open_neighbour()  # the next case needs an open request on the connection
            return fault or ("the connection to the server ended" if case.ends is False else None)
        return fault

    @staticmethod
    def judge(case, got):
        if got.status != case.status:
            return f"answered {got.status}, {got.body[:100]}"
        trailers = repr(getattr(got.answer, "trailers", "")).encode()
        if any(b"x-evil" in part.lower() for part in (got.answer.raw, got.body, trailers)):
            return f"forwarded: {got.answer.raw} {got.body[:100]} {trailers[:100]}"
        if case.status == 502:
            return None if got.answer["content-type"] == "application/json" else f"not weir's own: {got.answer.raw}"
        if got.is_whole != (case.body is not None) or (got.is_whole and got.body != case.body):
            return f"whole: {got.is_whole}, {got.body[:100]}"
        return None

    def check_all(self, cases):
        faults = {}
        for case in cases:
            for version in BOTH:
                if fault := self.check(case, version):
                    faults[f"{case.name} ({version})"] = fault
        self.assertEqual(faults, {})

    def test_malformed_heads_give_502_and_harm_no_other_stream(self):
        self.check_all(http2_raw_responses.HEADS)

    def test_malformed_bodies_are_cut_off_and_harm_no_other_stream(self):
        self.check_all(http2_raw_responses.BODIES)

    def test_malformed_frame_of_the_server_ends_the_connection_to_it(self):
        self.check_all(http2_raw_responses.CONNECTIONS)

    def test_valid_frames_of_the_server_are_accepted(self):
        self.check_all(http2_raw_responses.WHOLE)
        self.assertEqual(self.server.connections, 1)


if __name__ == "__main__":
    main()
