#!/usr/bin/env python3
"""The access log: a line of JSON for every request, with what was decided and why, and no credential in it."""

import json
import pathlib
import tempfile

from harness import TestCase, Upstream, Weir, closed_port, config, eventually, main, rule

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class AccessLog(TestCase):
    def start_weir(self, *ports, **more):
        """A weir that logs into a file, and that file."""
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-test-"))
        path = pathlib.Path(folder) / "access.log"
        return self.start(Weir(config(*ports, **more).replace('access = "off"', f'access = "{path}"'))), path

    def lines(self, path, count):
        eventually(lambda: path.exists() and path.read_text().count("\n") >= count, f"{count} lines in the log")
        return [json.loads(line) for line in path.read_text().splitlines()]

    def test_what_was_decided_and_for_whom(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port, client='api_key = { header = "X-API-Key" }',
                                     rules=rule(key='["api_key|ip"]', burst=1))
        with weir.connect() as client:  # one connection: each worker hands on lines of its own
            for _ in range(2):
                client.get("/a?b=c", X_API_Key="secret", User_Agent="test/1", traceparent=TRACE)
        admitted, refused = self.lines(path, 2)
        self.assertEqual((admitted["status"], admitted["verdict"], admitted["rule"]), (200, "forward", "per-ip"))
        self.assertEqual((refused["status"], refused["verdict"], refused["rule"]), (429, "reject", "per-ip"))
        self.assertEqual(admitted["key"], refused["key"])
        self.assertRegex(admitted["key"], "^[0-9a-f]{32}$")
        self.assertEqual((admitted["method"], admitted["target"], admitted["user_agent"]), ("GET", "/a?b=c", "test/1"))
        self.assertNotIn("traceparent", admitted)  # the peer is not trusted
        self.assertNotIn("secret", path.read_text())

    def test_a_key_in_the_query_stays_out_of_it(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port, client='api_key = { query = "api_key" }')
        with weir.connect() as client:
            client.get("/a?api_key=secret&b=1")
            client.get("/a?b=1&api%5Fkey=secret")
        self.assertEqual([line["target"] for line in self.lines(path, 2)],
                         ["/a?api_key=***&b=1", "/a?b=1&api%5Fkey=***"])

    def test_traces_of_trusted_peers_are_named(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port, client='trusted_proxies = ["127.0.0.1/32"]')
        weir.get("/", traceparent=TRACE)
        self.assertEqual(self.lines(path, 1)[0]["traceparent"], TRACE)

    def test_a_request_that_came_to_no_decision_has_no_verdict(self):
        weir, path = self.start_weir(closed_port(), rules=rule(key='["user"]', on_missing='"reject"'))
        self.assertEqual(weir.get("/").status, 401)
        line = self.lines(path, 1)[0]
        self.assertEqual(line["status"], 401)
        self.assertFalse({"verdict", "rule", "key"} & line.keys(), line)

    def test_failures_name_the_server_and_bad_heads_their_sender(self):
        port = closed_port()
        weir, path = self.start_weir(port)
        self.assertEqual(weir.get("/").status, 502)
        self.lines(path, 1)
        with weir.connect() as client:
            client.send(b"GET nonsense\r\n\r\n")
            self.assertEqual(client.read().status, 400)
        failed, bad = self.lines(path, 2)
        self.assertEqual((failed["server"], failed["error"]), (f"127.0.0.1:{port}", "upstream_failed"))
        self.assertEqual((bad["client"], bad["status"], bad["error"]), ("127.0.0.1", 400, "bad_head"))


if __name__ == "__main__":
    main()
