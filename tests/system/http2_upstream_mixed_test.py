#!/usr/bin/env python3
"""Random requests to an HTTP/2 server that cancels, refuses, ends connections and goes away at random. Each answer belongs to its
request, and weir works afterwards."""

import collections
import random

from harness import main, together
from http2_client import REFUSED, Http2Client
from http2_upstream import BOTH, Http2UpstreamTestCase, ask
from wire import request_bytes

SIZES = (0, 1, 100, 9_000, 40_000, 150_000)
WORKERS, TURNS = 8, 100


def body_of(path, size):
    return (path.encode() * (size // len(path) + 1))[:size]


class Mixed(Http2UpstreamTestCase):
    def reply(self, request):
        size = int(request.path.rsplit("-")[-1])
        fate = self.random.random()
        if fate < 0.05:
            request.reset(random.choice((1, 2, REFUSED)))
            return
        body = request.read_body()
        if body != body_of(request.path, len(body)) or (request["content-length"] or str(len(body))) != str(len(body)):
            self.mixed.append(f"{request.path} had the body of another: {body[:50]}")
        if fate < 0.08:
            request.connection.goaway()
        elif fate < 0.10:
            request.connection.close()
            return
        request.head(fields=[("x-path", request.path)] + ([("content-length", str(size))] if fate < 0.6 else []))
        answer = body_of(request.path, size)
        if fate < 0.15:
            request.send(answer[:size // 2])
            request.reset(2)
        elif 0.6 < fate < 0.8:
            request.send(answer)
            request.send_trailers([("x-path", request.path)])
        else:
            request.send(answer, end=True)

    def cancel(self, client, path, body):
        """Sends a request, and gives it up before its answer is complete."""
        if isinstance(client, Http2Client):
            stream = client.open("POST", path, end=False)
            client.send_body(stream, body[:len(body) // 2], end=False)
            if not client.answers[stream].was_reset:
                client.reset(stream)
            return client
        client.send(request_bytes("POST", path, body=body))
        client.leave()
        return self.client(self.weir_, "HTTP/1.1")

    def judge(self, path, size, got):
        """Returns how the request ended. Appends to `mixed` if the answer belongs to another request."""
        if got.status != 200:
            return got.status
        expected = body_of(path, size)
        if got.answer["x-path"] != path or not expected.startswith(got.body) or (got.is_whole and got.body != expected):
            self.mixed.append(f"{path} had another's answer: {got.answer.raw} {got.body[:50]}")
        return "whole" if got.is_whole else "cut"

    def work(self, number):
        chance, version = random.Random(self.seed + number), BOTH[number % 2]
        client, results = self.client(self.weir_, version), []
        for turn in range(TURNS):
            size, sent = chance.choice(SIZES), chance.choice(SIZES)
            path = f"/{number}-{turn}-{size}"
            if chance.random() < 0.1:
                client = self.cancel(client, path, body_of(path, sent))
                continue
            method = chance.choice(("GET", "POST", "PUT"))
            body = None if method == "GET" else body_of(path, sent)
            try:
                got = ask(client, method, path, body=body, streamed=body is not None and chance.random() < 0.5)
            except (EOFError, ConnectionError):  # the previous answer was complete by its length, but its connection had ended
                results.append("closed")
                client = self.client(self.weir_, version)
                continue
            results.append(self.judge(path, size, got))
            if version == "HTTP/1.1" and (not got.is_whole or got.answer["connection"] == "close"):
                client = self.client(self.weir_, version)
        return results

    def test_each_request_gets_its_own_answer_under_mixed_load(self):
        self.seed = random.randrange(1 << 32)
        self.random = random.Random(self.seed)
        self.mixed = []
        with self.subTest(seed=self.seed):
            server = self.serve(self.reply)
            self.weir_ = self.weir(server, workers=2, upstream="max_streams = 5\neject = { failures = 1000 }\n"
                                                              'retry = { attempts = 1 }\ntimeouts = { response = "10s" }')
            results = collections.Counter(sum(together(WORKERS, self.work), []))
            print(f"\nseed {self.seed}: {dict(results)}, {server.connections} connections", flush=True)
            self.assertEqual(self.mixed, [])
            self.assertLessEqual(set(results), {"whole", "cut", "closed", 502, 503})
            self.assertGreater(results["whole"], sum(results.values()) / 2)
            self.await_metric(self.weir_, 0, "weir_http2_streams")
            server.reply = lambda request: request.answer()
            self.assertEqual([ask(self.client(self.weir_, version)).status for version in BOTH], [200] * 2)


if __name__ == "__main__":
    main()
