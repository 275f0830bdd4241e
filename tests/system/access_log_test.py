#!/usr/bin/env python3
"""The access log: one line of JSON for every request, with the decision and its reason, and without credentials."""

import json
import pathlib
import resource
import signal
import tempfile

from harness import Load, TestCase, Upstream, Weir, closed_port, config, eventually, main, rule

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class AccessLog(TestCase):
    def start_weir(self, *ports, **more):
        """Returns a weir that writes its access log into a file, and the file's path."""
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-test-"))
        path = pathlib.Path(folder) / "access.log"
        return self.start(Weir(config(*ports, **more).replace('access = "off"', f'access = "{path}"'))), path

    def lines(self, path, count):
        eventually(lambda: path.exists() and path.read_text().count("\n") >= count, f"{count} lines in the log")
        return [json.loads(line) for line in path.read_text().splitlines()]

    def test_log_line_has_the_decision_and_the_client(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port, client='api_key = { header = "X-API-Key" }',
                                     rules=rule(key='["api_key|ip"]', burst=1))
        with weir.connect() as client:  # one connection, so that one worker writes all lines in order
            for _ in range(2):
                client.get("/a?b=c", X_API_Key="secret", User_Agent="test/1", traceparent=TRACE)
        admitted, refused = self.lines(path, 2)
        self.assertEqual((admitted["status"], admitted["verdict"], admitted["rule"]), (200, "forward", "per-ip"))
        self.assertEqual((refused["status"], refused["verdict"], refused["rule"]), (429, "reject", "per-ip"))
        self.assertEqual(admitted["key"], refused["key"])
        self.assertRegex(admitted["key"], "^[0-9a-f]{32}$")
        self.assertEqual((admitted["method"], admitted["target"], admitted["user_agent"]), ("GET", "/a?b=c", "test/1"))
        self.assertEqual(admitted["trace_id"], TRACE[3:35])
        self.assertNotIn("secret", path.read_text())

    def test_only_owner_and_group_may_read_the_log(self):
        _, path = self.start_weir(self.start(Upstream()).port)
        self.assertEqual(path.stat().st_mode & 0o027, 0)

    def test_refused_request_keeps_the_request_id_of_a_trusted_proxy(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port, client='trusted_proxies = ["127.0.0.1"]', rules=rule(burst=1))
        with weir.connect() as client:
            self.assertEqual([client.get("/", X_Request_ID=f"edge-{number}").status for number in range(2)], [200, 429])
        self.assertEqual([line["request_id"] for line in self.lines(path, 2)], ["edge-0", "edge-1"])

    def test_response_by_weir_itself_has_the_request_id_of_its_log_line(self):
        routes = "".join(f'[[route]]\nmatch = {{ path = "{path}" }}\n{target}\n' for path, target in (
            ("/own", 'respond = { status = 200, body = "pong" }'), ("/away", 'upstream = "away"'), ("/api/*", 'upstream = "api"')))
        away = f'[[upstream]]\nname = "away"\nservers = ["127.0.0.1:{closed_port()}"]\n'
        weir, path = self.start_weir(self.start(Upstream()).port, routes=away + routes, server='max_head = "1KiB"',
                                     rules=rule("per-ip", "1/day", burst=1, match='{ path = "/api/*" }') +
                                     rule("users", "1/day", key='["user"]', on_missing='"reject"', match='{ path = "/api/users" }'))
        asked = (("GET", "/api/x", {}), ("GET", "/api/x", {}), ("HEAD", "/api/x", {}), ("GET", "/api/users", {}), ("GET", "/own", {}),
                 ("GET", "/none", {}), ("GET", "/away", {}), ("GET", "/own", {"X-Large": "x" * 2000}), ("GET /", "/", {}))
        told = []
        for method, target, headers in asked:
            with weir.connect() as client:
                got = client.request(method, target, headers)
            told.append((got.status, got["x-request-id"]))
        lines = self.lines(path, len(asked))  # the lines of two workers, in any order
        self.assertEqual([status for status, _ in told], [200, 429, 429, 401, 200, 404, 502, 431, 400])
        logged = [(line["status"], line["request_id"]) for line in lines]
        for answer in told[1:]:
            self.assertIn(answer, logged)
        self.assertEqual(len({number for _, number in told[1:]}), len(asked) - 1)

    def test_malformed_head_is_logged_with_the_size_of_its_response(self):
        weir, path = self.start_weir(self.start(Upstream()).port)
        with weir.connect() as client:
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            self.assertEqual(client.read().status, 400)
        self.assertGreater(self.lines(path, 1)[0]["bytes_out"], 0)

    def test_api_key_in_the_query_is_not_logged(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port, client='api_key = { query = "api_key" }')
        with weir.connect() as client:
            client.get("/a?api_key=secret&b=1")
            client.get("/a?b=1&api%5Fkey=secret")
        self.assertEqual([line["target"] for line in self.lines(path, 2)],
                         ["/a?api_key=***&b=1", "/a?b=1&api%5Fkey=***"])

    def test_query_values_used_as_keys_of_rules_or_of_hash_balance_are_not_logged(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port, rules=rule(key='["query:tenant"]', limit="9/s"),
                                     upstream='balance = "hash"\nhash_key = ["query:session"]')
        with weir.connect() as client:
            client.get("/a?tenant=acme&b=1&session=s1&access_token=t1")
        self.assertEqual([line["target"] for line in self.lines(path, 1)],
                         ["/a?tenant=***&b=1&session=***&access_token=***"])

    def test_trace_headers_are_forwarded_unchanged_and_logged_if_valid(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port)
        with weir.connect() as client:
            client.get("/", traceparent=TRACE, tracestate="a=1")
            client.get("/", traceparent="00-none")
            client.get("/")
        lines = self.lines(path, 3)
        self.assertEqual([line.get("trace_id") for line in lines], [TRACE[3:35], None, None])
        heads = [exchange.head for exchange in upstream.exchanges]
        self.assertEqual([head["traceparent"] for head in heads], [TRACE, "00-none", None])
        self.assertEqual(heads[0]["tracestate"], "a=1")

    def test_log_line_has_only_the_configured_fields(self):
        upstream = self.start(Upstream())
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-test-"))
        path = pathlib.Path(folder) / "access.log"
        fields = f'access = "{path}"\nfields = ["status", "api_key", "rule", "key"]'
        weir = self.start(Weir(config(upstream.port, rules=rule(key='["api_key|ip"]', limit="9/s"))
                               .replace('access = "off"', fields)))
        with weir.connect() as client:
            client.get("/?a=b", X_API_Key="secret")
            client.get("/", X_API_Key="secret")
            client.get("/", X_API_Key="other")
        lines = self.lines(path, 3)
        self.assertEqual({key for line in lines for key in line}, {"time", "status", "api_key", "rule", "key"})
        self.assertEqual(lines[0]["api_key"], lines[1]["api_key"])
        self.assertNotEqual(lines[0]["api_key"], lines[2]["api_key"])
        self.assertNotIn("secret", path.read_text())

    def test_no_line_is_lost_while_the_log_is_rotated(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port)
        load = Load([weir.port] * 4)
        for number in range(5):
            load.goes_on(50)
            path.rename(path.with_suffix(f".{number}"))  # renames the log as logrotate does
            weir.signal(signal.SIGUSR1)
            eventually(path.exists, "the log file is opened again")
        load.goes_on(50)
        load.stop()
        logs = [path, *(path.with_suffix(f".{number}") for number in range(5))]
        asked = len(load.results)
        eventually(lambda: sum(log.read_text().count("\n") for log in logs) >= asked, f"{asked} lines in all files")
        ids = [json.loads(line)["request_id"] for log in logs for line in log.read_text().splitlines()]
        self.assertEqual(len(set(ids)), asked)
        self.assertEqual(len(ids), asked)
        self.assertEqual(weir.metric("weir_access_log_dropped_total"), 0)

    def test_access_log_that_cannot_be_reopened_stays_open(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port)
        weir.get("/")
        self.lines(path, 1)
        gone = path.parent.rename(path.parent.with_name(path.parent.name + "-gone"))
        weir.signal(signal.SIGUSR1)
        weir.wait_for("keeping the old file")
        weir.get("/")
        eventually(lambda: (gone / path.name).read_text().count("\n") == 2, "the lines are in the old file")
        gone.rename(path.parent)

    def test_full_disk_is_reported_with_the_number_of_lost_lines_and_logging_resumes(self):
        upstream = self.start(Upstream())
        weir, path = self.start_weir(upstream.port)
        weir.get("/before")
        self.lines(path, 1)
        _, most = resource.prlimit(weir.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(weir.pid, resource.RLIMIT_FSIZE, (path.stat().st_size + 100, most))  # only part of a line fits
        for number in range(1, 4):
            weir.get("/lost")
            self.await_metric(weir, number, "weir_access_log_dropped_total")
        weir.wait_for("access log: cannot write .*: File too large")
        resource.prlimit(weir.pid, resource.RLIMIT_FSIZE, (most, most))
        weir.get("/after")
        weir.wait_for("access log: writing again to .*; 3 lines were dropped")
        self.assertEqual(len([line for line in weir.lines if "access log" in line]), 2)
        before, torn, after = path.read_text().splitlines()
        self.assertEqual([json.loads(line)["target"] for line in (before, after)], ["/before", "/after"])
        self.assertEqual(len(torn), 100)

    def test_log_line_of_a_request_without_a_decision_has_no_verdict(self):
        weir, path = self.start_weir(closed_port(), rules=rule(key='["user"]', on_missing='"reject"'))
        self.assertEqual(weir.get("/").status, 401)
        line = self.lines(path, 1)[0]
        self.assertEqual(line["status"], 401)
        self.assertFalse({"verdict", "rule", "key"} & line.keys(), line)

    def test_log_line_of_a_failure_names_the_server_and_log_line_of_a_malformed_head_names_the_client(self):
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

    def test_every_response_400_is_logged_with_method_host_and_target(self):
        weir, path = self.start_weir(self.start(Upstream()).port, client='api_key = { query = "api_key" }',
                                     rules=rule("a", "9/s", key='["query:q"]') + rule("b", match='{ path = "/login" }') +
                                     rule("c", match='{ query = { big = "x" } }'), server="max_parameters = 5")
        asked = (("GET /x?q=1&q=2 HTTP/1.1", "/x?q=***&q=***"), ("GET /x/..;/login HTTP/1.1", "/x/..;/login"),
                 ("GET /?api_key=s1&api_key=s2 HTTP/1.1", "/?api_key=***&api_key=***"), ("GET /%00 HTTP/1.1", "/%00"),
                 ("GET /?1&2&3&4&5&6 HTTP/1.1", "/?1&2&3&4&5&6"), ("GET /a b HTTP/1.1", "/a b"), ("GET /a#b HTTP/1.1", "/a#b"),
                 ("GET /a HTTP/1.1\r\n folded: x", "/a"), ("GET /?api_key=s1 HTTP/1.1\r\nbad name: x", "/?api_key=***"),
                 ("GET /a HTTP/1.1\r\nContent-Length: x", "/a"), ("GET /a\\b HTTP/1.1", "/a\\b"))
        for head, _ in asked:
            with weir.connect() as client:
                first, *rest = head.split("\r\n")
                client.send("\r\n".join([first, "Host: shop.example", *rest, "", ""]).encode())
                self.assertEqual(client.read().status, 400, head)
        lines = self.lines(path, len(asked))  # the lines of two workers, in any order
        self.assertCountEqual([(line["status"], line["method"], line["target"]) for line in lines],
                              [(400, "GET", target) for _, target in asked])
        for line in lines:
            if line["target"] != "/a b":
                self.assertEqual(line["host"], "shop.example", line)
        self.assertEqual([line["error"] for line in lines if line["target"] == "/x/..;/login"], ["ambiguous_path"])
        self.assertNotIn("s1", path.read_text())

    def test_log_line_of_a_rejected_request_hides_user_and_password_in_its_url(self):
        weir, path = self.start_weir(self.start(Upstream()).port)
        for head in ("GET / HTTP/1.1\r\nHost: ann:s1@shop.example", "GET http://ann:s1@shop.example/ HTTP/1.1\r\nHost: shop.example",
                     "CONNECT ann:s1@shop.example:443 HTTP/1.1\r\nHost: shop.example:443"):
            with weir.connect() as client:
                client.send(head.encode() + b"\r\n\r\n")
                self.assertIn(client.read().status, (400, 405), head)
        self.assertEqual({line["host"].split(":")[0] for line in self.lines(path, 3)}, {"shop.example"})
        self.assertNotIn("s1", path.read_text())


if __name__ == "__main__":
    main()
