#!/usr/bin/env python3
"""Envoy's rate limit service (serves = "rls"), asked with the gRPC library for Node.js, with and without TLS."""

import pathlib
import tempfile

from harness import eventually, main, make_certificate, rule, together
from js_client import JsClient
from rls_client import HEALTH, OK, OVER_LIMIT, REFLECTION, RLS, SHOULD_RATE_LIMIT, Messages, fields_of, insecure, rls_request, text_field
from rls_test import WINDOW, RlsTestCase, by

DONE, INVALID_ARGUMENT, DEADLINE_EXCEEDED, UNIMPLEMENTED, UNAUTHENTICATED = 0, 3, 4, 12, 16  # statuses of calls
GZIP = {"grpc.default_compression_algorithm": 2}
TLS = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }'


class RlsOfJs(RlsTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="weir-rls-js-")))
        cls.files = make_certificate(cls.folder)
        cls.node = cls.enterClassContext(JsClient(cls.files["edge.crt"]))

    def secured(self, *rules, **more):
        """Starts a weir with two listeners, the last of which uses TLS."""
        listener = f'[[listener]]\naddress = "127.0.0.1:0"\nserves = "rls"\n{TLS}'
        weir = self.weir(*rules, listeners=listener, files=self.files, **more)
        self.messages = Messages(self.start(insecure(f"127.0.0.1:{weir.port}")))
        return weir

    def ask(self, weir, *descriptors, hits=0, **options):
        """Returns the RateLimitResponse."""
        request = rls_request(self.messages, "edge", *descriptors, hits=hits).SerializeToString()
        call, answers = self.node.call(weir, SHOULD_RATE_LIMIT, request, **options)
        self.assertEqual((call.code, len(answers)), (DONE, 1), call.details)
        return self.messages[RLS + "RateLimitResponse"].FromString(answers[0])

    def code(self, *arguments, **options):
        return self.node.call(*arguments, **options)[0].code

    def test_limits_are_the_same_with_and_without_tls(self):
        weir = self.secured(rule("logins", "4/day", key=by("path"), **WINDOW))
        for remaining, secure in ((3, False), (2, True), (1, False), (0, True)):
            answer = self.ask(weir, {"path": "/"}, secure=secure)
            self.assertEqual((answer.overall_code, answer.statuses[0].limit_remaining), (OK, remaining))
        for secure in (False, True):
            answer = self.ask(weir, {"path": "/"}, secure=secure)
            self.assertEqual(answer.overall_code, OVER_LIMIT)
            self.assertGreater(int(fields_of(answer)["retry-after"]), 0)

    def test_each_descriptor_is_charged_its_cost(self):
        weir = self.secured(rule("wide", "9/day", key=by("path"), **WINDOW), rule("tight", "2/day", key=by("user"), **WINDOW))
        self.assertEqual([status.limit_remaining for status in self.ask(weir, {"path": "/", "hits": 5}, {"user": "ann"}).statuses], [4, 1])
        answer = self.ask(weir, {"path": "/"}, {"user": "ann"}, hits=2)
        self.assertEqual((answer.overall_code, [status.code for status in answer.statuses]), (OVER_LIMIT, [OK, OVER_LIMIT]))
        self.assertEqual(self.ask(weir, {"path": "/"}).statuses[0].limit_remaining, 3)

    def test_many_calls_at_once_are_charged_exactly(self):
        weir = self.secured(rule("all", "137/3000day", key=by("path"), **WINDOW))
        request = rls_request(self.messages, "edge", {"path": "/"}).SerializeToString()
        calls = [self.node.begin(weir, SHOULD_RATE_LIMIT, request, secure=number % 2 == 0) for number in range(400)]
        answers = [self.messages[RLS + "RateLimitResponse"].FromString(call.finish()[0]) for call in calls]
        codes = [answer.overall_code for answer in answers]
        self.assertEqual((codes.count(OK), codes.count(OVER_LIMIT)), (137, 400 - 137))

    def test_errors_are_statuses_of_the_call(self):
        weir = self.secured(rule("logins", "4/day", key=by("path")))
        cases = {"malformed": (INVALID_ARGUMENT, SHOULD_RATE_LIMIT, b"\x0a\xff", {}), "unknown": (UNIMPLEMENTED, "/x.Y/Z", b"", {}),
                 "compressed": (UNIMPLEMENTED, SHOULD_RATE_LIMIT, b"x" * 1000, {"options": GZIP}),
                 "watch": (UNIMPLEMENTED, "/grpc.health.v1.Health/Watch", b"", {"kind": "server"})}
        for name, (code, method, message, options) in cases.items():
            with self.subTest(name):
                self.assertEqual(self.code(weir, method, message, **options), code)

    def test_token_is_required(self):
        weir = self.weir(rule("logins", "4/day", key=by("path")), more='token = "secret"')
        self.assertEqual(self.code(weir, HEALTH, b""), UNAUTHENTICATED)
        self.assertEqual(self.code(weir, HEALTH, b"", metadata=[("authorization", "Bearer secret")]), DONE)

    def test_call_that_would_wait_in_the_queue_beyond_its_deadline_gets_deadline_exceeded(self):
        weir = self.secured(rule("spaced", "1/min", key=by("user"), algorithm='"leaky_bucket"', queue=3))
        self.assertEqual(self.ask(weir, {"user": "ann"}).overall_code, OK)
        request = rls_request(self.messages, "edge", {"user": "ann"}).SerializeToString()
        codes = together(4, lambda _: self.code(weir, SHOULD_RATE_LIMIT, request, timeout=10))
        self.assertEqual(codes, [DEADLINE_EXCEEDED] * 4)
        eventually(lambda: weir.metric("weir_decide_questions_total", api="rls", result="error") == 4, "weir has refused by the deadline")

    def test_call_that_its_client_cancels_while_it_waits_is_not_charged(self):
        weir = self.secured(rule("spaced", "1/min", key=by("user"), algorithm='"leaky_bucket"', queue=1))
        request = rls_request(self.messages, "edge", {"user": "ann"}).SerializeToString()
        self.assertEqual(self.ask(weir, {"user": "ann"}).overall_code, OK)
        waiting = self.node.begin(weir, SHOULD_RATE_LIMIT, request, timeout=100)
        eventually(lambda: weir.metric("weir_decide_questions_total", api="rls", result="allowed") == 2, "the call waits for its departure")
        self.assertEqual(self.ask(weir, {"user": "ann"}).overall_code, OVER_LIMIT)
        waiting.tell(cancel=True)
        eventually(lambda: self.code(weir, SHOULD_RATE_LIMIT, request, timeout=10) == DEADLINE_EXCEEDED,
                   "the place in the queue is free again")

    def test_health_and_reflection_are_served(self):
        weir = self.secured(rule("logins", "4/day", key=by("path")))
        for secure in (False, True):
            self.assertEqual(self.node.call(weir, HEALTH, b"", secure=secure)[1], [b"\x08\x01"])
            call = self.node.begin(weir, REFLECTION, kind="both", stays_open=True, secure=secure)
            for symbol in (RLS + "RateLimitService", "grpc.health.v1.Health"):
                call.send(text_field(4, symbol))
                self.assertIn(symbol.rpartition(".")[2].encode(), call.receive())
            call.tell(end=True)
            self.assertEqual((call.finish(), call.code), ([], DONE))


if __name__ == "__main__":
    main()
