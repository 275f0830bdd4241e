#!/usr/bin/env python3
"""weir reads only a bounded number of parameters, cookies and header lines. A request that takes long to decide delays no other
request."""

import json
import pathlib
import random
import signal
import tempfile

from harness import Client, TestCase, Upstream, Weir, config, eventually, logged_requests, main, request_bytes, rule

MANY = "/x?" + "&".join(["a"] * 7800)
ANSWER_ITSELF = "[[route]]\nrespond = { status = 204 }"


def costly(count=30):
    """Returns rules that each have ten conditions on parameters."""
    conditions = ", ".join(f'p{number} = "~^x"' for number in range(9))
    return "".join(rule(f"r{number}", "1000/s", key="[]", match=f'{{ query = {{ a = "~b", {conditions} }} }}') for number in range(count))


class Bounds(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, rules="", **sections):
        return self.start(Weir(config(self.upstream.port, rules=rules, **sections)))

    def refuses(self, weir, path, what, number=1, **headers):
        refused = weir.get(path, **headers)
        self.assert_own_error(refused, 400)
        self.assertIn(what, refused.json()["message"])
        self.await_metric(weir, number, "weir_client_errors_total", kind="too_many_parameters")
        self.assertEqual(self.upstream.exchanges, [])

    def test_query_with_too_many_parameters_is_rejected_if_a_rule_reads_it(self):
        self.refuses(self.weir(costly()), MANY, "the query of the request has too many parameters")

    def test_bound_of_query_parameters_is_configurable(self):
        weir = self.weir(costly(1), server="max_parameters = 3")
        self.refuses(weir, "/?a&b&c&d", "too many parameters")
        self.assertEqual(weir.get("/?a&b&c").status, 200)

    def test_parameters_read_by_keys_costs_routes_and_identities_are_bounded(self):
        routes = '[[route]]\nmatch = { query = { debug = "1" } }\nrespond = { status = 204 }\n[[route]]\nupstream = "api"'
        for sections in ({"rules": rule(key='["query:k"]')}, {"rules": rule(key="[]", cost='{ query = "n" }')},
                         {"routes": routes}, {"client": 'api_key = { query = "k" }'}):
            with self.subTest(sections):
                self.refuses(self.weir(**sections), MANY, "too many parameters")

    def test_long_query_that_nothing_reads_is_forwarded(self):
        weir = self.weir(rule("posts", key="[]", match='{ methods = ["POST"], query = { a = "b" } }'))
        self.assertEqual(weir.get(MANY).status, 200)
        self.assertEqual(self.upstream.exchanges[0].target, MANY)

    def test_repetitions_of_a_parameter_are_bounded(self):
        weir = self.weir(costly(1))
        self.refuses(weir, "/?" + "&".join(["a=b"] * 17), "repeats the query parameter a too often")
        self.assertEqual(weir.get("/?" + "&".join(["a=b"] * 16)).status, 200)
        self.assertEqual(weir.get("/?" + "&".join(["other=b"] * 500)).status, 200, "no rule reads the parameter")

    def test_client_cannot_evade_a_route_by_repeating_a_parameter(self):
        routes = '[[route]]\nmatch = { query = { debug = "1" } }\nrespond = { status = 403 }\n[[route]]\nupstream = "api"'
        weir = self.weir(routes=routes)
        self.assertEqual(weir.get("/?debug=0&debug=1").status, 403)
        self.refuses(weir, "/?" + "debug=0&" * 16 + "debug=1", "repeats the query parameter debug too often")

    def test_number_of_cookies_and_of_lines_of_a_header_is_bounded(self):
        weir = self.weir(rule("session", key='["cookie:sid"]') + rule("tagged", key="[]", match='{ headers = { X-Tag = "a" } }'))
        self.refuses(weir, "/", "too many cookies", Cookie="a;" * 1001)
        with weir.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X-Tag: a\r\n" * 17 + b"\r\n")
            self.assertIn("repeats the header X-Tag too often", client.read().json()["message"])

    def test_header_lines_read_by_a_key_a_cost_and_an_identity_are_bounded(self):
        for sections in ({"rules": rule(key='["header:X-Tag"]')}, {"rules": rule(key="[]", cost='{ header = "X-Tag" }')},
                         {"client": 'api_key = { header = "X-Tag" }'}):
            with self.subTest(sections):
                weir = self.weir(**sections)
                for lines, status in ((100, 400), (17, 400), (16, 200)):
                    with weir.connect() as client:
                        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X-Tag: 1\r\n" * lines + b"\r\n")
                        answer = client.read()
                        self.assertEqual(answer.status, status, lines)
                        if status == 400:
                            self.assertIn("repeats the header x-tag too often", answer.json()["message"].lower())

    def test_access_log_has_the_reason_of_the_rejection(self):
        folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-test-")))
        text = config(self.upstream.port, rules=costly(1)).replace('access = "off"', f'access = "{folder}/access.log"')
        weir = self.start(Weir(text))
        self.assertEqual(weir.get(MANY).status, 400)
        (line,) = eventually(lambda: logged_requests(folder / "access.log"), "the request is in the log")
        self.assertEqual(line["error"], "too_many_parameters")

    def test_explanation_has_the_reason_of_the_rejection(self):
        weir = self.weir(costly(1))
        inquiry = json.dumps({"method": "GET", "path": MANY}).encode()
        with Client(weir.admin) as client:
            told = client.request("POST", "/api/explain", {"Content-Type": "application/json"}, inquiry).json()
        self.assertIn("too many parameters", json.dumps(told))


class ParameterCosts(TestCase):
    def test_requests_with_slow_decisions_do_not_delay_other_clients(self):
        """Each of the sixteen requests takes milliseconds to decide. They must not be decided in one turn of the worker's event
        loop."""
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-test-"))
        log = pathlib.Path(folder) / "access.log"
        slow = "~x[xy]{14}z"  # a regular expression with more states than RE2 caches
        rules = "".join(rule(f"r{number}", "1000/s", key="[]", match=f'{{ headers = {{ X-Long = "{slow}{number}" }} }}') for number in range(10))
        text = config(1, routes=ANSWER_ITSELF, rules=rules)
        seed = random.randrange(1 << 32)
        print("seed", seed)
        long = "".join(random.Random(seed).choices("xy", k=15_000))
        weir = self.start(Weir(text.replace('access = "off"', f'access = "{log}"').replace("workers = 2", "workers = 1")))
        count = 16
        with weir.connect() as greedy, weir.connect() as modest:
            for client in (greedy, modest):
                self.assertEqual(client.get("/warm").status, 204)
            weir.signal(signal.SIGSTOP)  # so that weir finds the requests of both clients when it continues
            greedy.send(request_bytes("GET", "/greedy", {"X-Long": long}) * count)
            modest.send(request_bytes("GET", "/modest"))
            weir.signal(signal.SIGCONT)
            self.assertEqual(modest.read().status, 204)
            for _ in range(count):
                greedy.read()
        eventually(lambda: log.read_text().count("\n") == count + 3, "every request is in the log")
        lines = log.read_text().splitlines()
        place = next(number for number, line in enumerate(lines) if "/modest" in line)
        self.assertLess(place, 2 + 5)  # two requests came before, to warm up


if __name__ == "__main__":
    main()
