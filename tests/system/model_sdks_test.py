#!/usr/bin/env python3
"""Calls of the libraries of OpenAI and Anthropic for Node.js through weir to a scripted provider. The charges must be the tokens that the
provider reports, streamed or not. `./dev test` installs the libraries into build/model_sdks."""

import itertools
import json
import os
import subprocess
import threading
import unittest

from documents import TREE
from harness import PATIENCE, Client, Redis, TestCase, Upstream, Weir, config, eventually, main, rule
from language_model import LanguageModel

PACKAGES = TREE / "build/model_sdks/node_modules"
LIMIT, RESERVE = 100_000_000, 1000
RULE_OF = {"chat": "openai", "messages": "anthropic"}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
RULES = "\n".join((
    rule("openai", f"{LIMIT}/1000day", key="[]", algorithm='"fixed_window"', match='{ path = "~^/v1/(chat|responses)" }',
         charge='{ status = ["2xx"] }',
         cost=f'{{ response_json = "/usage/total_tokens|/response/usage/total_tokens", reserve = {RESERVE} }}'),
    rule("anthropic", f"{LIMIT}/1000day", key="[]", algorithm='"fixed_window"', match='{ path = "/v1/messages" }',
         charge='{ status = ["2xx"] }',
         cost=f'{{ response_json = ["/usage/input_tokens|/message/usage/input_tokens", "/usage/output_tokens"], reserve = {RESERVE} }}')))


def node(calls):
    """Makes all calls at the same time, in one process. Returns the results in the order of the calls."""
    numbered = [{"id": number, **call} for number, call in enumerate(calls)]
    run = subprocess.run(["node", TREE / "tests/model_sdks/client.js"], input=json.dumps(numbered) + "\n", capture_output=True, text=True,
                         timeout=4 * PATIENCE, env={**os.environ, "NODE_PATH": str(PACKAGES)})
    results = sorted(map(json.loads, run.stdout.splitlines()), key=lambda result: result["id"])
    if len(results) != len(calls):
        raise AssertionError(run.stderr)
    return results


def call(weir, kind, stream, spent_in, spent_out, **more):
    return {"base": f"http://127.0.0.1:{weir.port}", "kind": kind, "stream": stream, "text": f"{spent_in} {spent_out}", **more}


class Sdks(TestCase):
    @classmethod
    def setUpClass(cls):
        if not PACKAGES.is_dir():
            raise unittest.SkipTest(f"{PACKAGES} is not there: ./dev test installs it if npm reaches its registry")

    def setUp(self):
        self.model = LanguageModel()
        self.upstream = self.start(Upstream(self.model))

    def spent(self, weir, kind):
        """Returns the charged tokens. The settlement refunds the request with which the test asks."""
        path = PATHS[kind]
        body = json.dumps({"model": "m", "messages": [{"content": "0 0"}], "input": "0 0"}).encode()
        with Client(weir.port) as client:
            return LIMIT - RESERVE - int(client.request("POST", path, body=body)["x-ratelimit-remaining"])

    def charges_what_was_told(self, weir):
        told = self.model.told
        for kind, paths in (("chat", ("chat", "responses")), ("messages", ("messages",))):
            expected = sum(told[PATHS[each]] for each in paths)
            eventually(lambda kind=kind, expected=expected: self.spent(weir, kind) == expected,
                       f"{kind} costs {expected}, now {self.spent(weir, kind)}")


class OneInstance(Sdks):
    def test_each_kind_of_call_costs_the_tokens_that_the_library_reports(self):
        weir = self.start(Weir(config(self.upstream.port, rules=RULES)))
        calls = [call(weir, kind, stream, 100 + number, 7 * number)
                 for number, (kind, stream) in enumerate(itertools.product(PATHS, (False, True)))]
        results = node(calls)
        self.assertEqual([result.get("tokens", result) for result in results], [100 + 8 * number for number in range(6)])
        self.charges_what_was_told(weir)

    def leave(self, abandoned, before_end):
        """Leaves a stream of each kind after its first event. Calls `before_end` after that, before the stream ends."""
        left = threading.Event()
        self.addCleanup(left.set)
        self.model.before_end = lambda exchange: (left.wait(2 * PATIENCE), before_end(exchange))
        weir = self.start(Weir(config(self.upstream.port, rules=RULES, upstream=f'timeouts = {{ abandoned = "{abandoned}" }}')))
        results = node([call(weir, kind, True, 50, 90, leaves=True) for kind in ("chat", "messages")])
        self.assertEqual([result.get("left", result) for result in results], [True, True])
        left.set()
        return weir

    def test_client_that_leaves_is_charged_the_tokens_in_the_rest_of_the_stream(self):
        weir = self.leave("1min", lambda _: None)
        self.charges_what_was_told(weir)
        self.assertEqual(sum(self.model.told.values()), 280)

    def test_client_that_leaves_is_charged_the_reserve_if_weir_reads_no_further(self):
        def never_end(exchange):
            while True:  # until weir closes the connection
                exchange.send(b"a\r\n: comment\n\r\n")

        weir = self.leave("0s", never_end)
        for kind in ("chat", "messages"):
            eventually(lambda kind=kind: self.spent(weir, kind) == RESERVE, f"{kind} costs {RESERVE}, now {self.spent(weir, kind)}")
            self.await_metric(weir, 1, "weir_settlements_total", rule=RULE_OF[kind], outcome="unreadable")


class TwoInstancesAndOneRedis(Sdks):
    def test_64_calls_at_once_cost_the_sum_of_the_reported_tokens(self):
        redis = self.start(Redis())
        state = f'store = "redis"\nkey_secret = "0123456789abcdef"\nredis = {{ url = "{redis.url}", timeout = "10s", start_wait = "20s" }}'
        weirs = [self.start(Weir(config(self.upstream.port, rules=RULES, state=state))) for _ in range(2)]
        for weir in weirs:
            eventually(weir.is_ready, "weir is connected to Redis")
        kinds = itertools.cycle(itertools.product(PATHS, (False, True)))
        calls = [call(weirs[number % 2], *next(kinds), 1 + number * 31 % 900, number * 17 % 250) for number in range(64)]
        results = node(calls)
        self.assertEqual([result.get("tokens", result) for result in results],
                         [1 + number * 31 % 900 + number * 17 % 250 for number in range(64)])
        self.charges_what_was_told(weirs[0])
        self.charges_what_was_told(weirs[1])


if __name__ == "__main__":
    main()
