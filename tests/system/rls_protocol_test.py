#!/usr/bin/env python3
"""Listeners with serves = "rls" as gRPC servers: who may ask, malformed calls, deadlines, health checks, reflection, Redis and
reloads."""

import gzip
import pathlib
import signal
import tempfile

import grpc
from harness import (PATIENCE, Redis, eventually, main, make_authority, make_certificate, make_client_certificate, rule)
from http2_client import Http2Client
from rls_client import (HEALTH, OK, OVER_LIMIT, REFLECTION, REFLECTION_ALPHA, RLS, SHOULD_RATE_LIMIT, Messages, RlsClient, insecure,
                        rls_request, text_field)
from rls_test import WINDOW, RlsTestCase, by, rls_config

SERVING, NOT_SERVING = 1, 2
LOGINS = rule("logins", "3/day", key=by("path"), **WINDOW)
SERVICES = {"envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection"}


def framed(message, flag=0):
    return bytes([flag]) + len(message).to_bytes(4, "big") + message


class ProtocolTestCase(RlsTestCase):
    def refused(self, status, call):
        """Checks that a call fails with this status. Returns its message."""
        with self.assertRaises(grpc.RpcError) as raised:
            call()
        self.assertEqual(raised.exception.code(), status, raised.exception)
        return raised.exception.details()

    def octets(self, weir, body, path=SHOULD_RATE_LIMIT, fields=(), kind="application/grpc"):
        """Sends a call with these octets as its body. Returns the answer, and the fields of its status."""
        with Http2Client(weir.port) as client:
            stream = client.open("POST", path, [("content-type", kind), ("te", "trailers"), *fields], end=False)
            client.send_body(stream, body)
            answer = client.read(stream)
        return answer, dict(answer.trailers or answer.fields)

    def status(self, *arguments, **options):
        return self.octets(*arguments, **options)[1]["grpc-status"]


class Access(ProtocolTestCase):
    def test_token_is_required(self):
        weir = self.weir(LOGINS, more='token = "secret"')
        channel = self.start(insecure(f"127.0.0.1:{weir.port}"))
        good = [("authorization", "Bearer secret")]
        client = RlsClient(channel, metadata=good)
        self.assertEqual(client.code("edge", {"path": "/"}), OK)
        denied = weir.metric("weir_decide_denied_total")
        for bad in ([], [("authorization", "Bearer secreT")], [("authorization", "secret")]):
            details = self.refused(grpc.StatusCode.UNAUTHENTICATED,
                                   lambda metadata=bad: client.ask("edge", {"path": "/"}, metadata=metadata))
            self.assertEqual(details, 'this listener needs its token; send "Authorization: Bearer TOKEN"')
        self.refused(grpc.StatusCode.UNAUTHENTICATED, lambda: Messages(channel))
        self.assertEqual(weir.metric("weir_decide_denied_total"), denied + 4)
        self.assertEqual(client.ask("edge", {"path": "/"}).statuses[0].limit_remaining, 1)

    def test_client_certificate_is_required(self):
        folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-rls-")))
        files = {**make_certificate(folder), **make_authority(folder)}
        make_client_certificate(folder, "asker", "/CN=envoy")
        more = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }], client_ca = "ca.crt" }'
        weir = self.weir(LOGINS, more=more, files=files)
        names = [("grpc.ssl_target_name_override", "localhost"), ("grpc.enable_retries", 0)]
        root, shown = files["edge.crt"].encode(), [(folder / name).read_bytes() for name in ("asker.key", "asker.crt")]
        target = f"127.0.0.1:{weir.port}"
        known = grpc.secure_channel(target, grpc.ssl_channel_credentials(root, *shown), names)
        self.assertEqual(RlsClient(self.start(known)).code("edge", {"path": "/"}), OK)
        nobody = self.start(grpc.secure_channel(target, grpc.ssl_channel_credentials(root), names))
        self.refused(grpc.StatusCode.UNAVAILABLE, lambda: nobody.unary_unary(HEALTH)(b"", timeout=PATIENCE))

    def test_calls_over_a_unix_socket_are_served(self):
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-rls-"))
        # the blanks keep Weir from waiting for the port of this listener
        weir = self.weir(LOGINS, listeners=f'[[ listener ]]\naddress = "unix:{folder}/rls"\nserves = "rls"')
        weir.wait_for("listening on unix:")
        client = RlsClient(self.start(insecure(f"unix:{folder}/rls")))
        self.assertEqual(self.codes(client, 4, "edge", {"path": "/"}), [OK] * 3 + [OVER_LIMIT])


class Faults(ProtocolTestCase):
    def setUp(self):
        self.server = self.weir(LOGINS)
        self.asker = self.client(self.server)
        self.good = rls_request(self.asker.messages, "edge", {"path": "/"}).SerializeToString()

    def test_malformed_call_gets_invalid_argument_and_the_reason(self):
        cases = {b"\x0a\xff": "the message is no valid RateLimitRequest", b"": "the call has no domain",
                 text_field(1, "edge"): "the call has no descriptors",
                 rls_request(self.asker.messages, "", {"a": "b"}).SerializeToString(): "the call has no domain",
                 rls_request(self.asker.messages, "edge", {}).SerializeToString(): "a descriptor has no entries",
                 rls_request(self.asker.messages, "edge", *[{"a": "b"}] * 33).SerializeToString(): "the call has more than 32 descriptors"}
        errors = self.server.metric("weir_decide_questions_total", api="rls", result="error")
        for octets, reason in cases.items():
            self.assertEqual(self.refused(grpc.StatusCode.INVALID_ARGUMENT, lambda octets=octets: self.asker.send(octets)), reason)
        self.assertEqual(self.server.metric("weir_decide_questions_total", api="rls", result="error"), errors + len(cases))

    def test_fields_that_weir_does_not_know_are_skipped(self):
        limit = text_field(2, b"\x08\x01\x10\x01")  # a descriptor's own limit: 1 per second
        more = text_field(2, text_field(1, text_field(1, "path") + text_field(2, "/") + text_field(9, "new")) + limit)
        octets = text_field(1, "edge") + more + text_field(15, "new") + b"\x50\x07"
        self.assertEqual([self.asker.send(octets).overall_code for _ in range(4)], [OK] * 3 + [OVER_LIMIT])

    def test_body_that_is_not_exactly_one_message_gets_invalid_argument(self):
        self.assertEqual(self.status(self.server, framed(self.good)), "0")
        for body in (b"", b"\0", framed(self.good)[:-1], framed(self.good) * 2, framed(self.good) + b"\0"):
            self.assertEqual(self.status(self.server, body), "3", body)
        self.assertEqual(self.server.metric("weir_decide_questions_total", api="rls", result="error"), 5)

    def test_compressed_message_gets_unimplemented(self):
        answer, status = self.octets(self.server, framed(gzip.compress(self.good), 1), fields=[("grpc-encoding", "gzip")])
        self.assertEqual((status["grpc-status"], answer["grpc-accept-encoding"]), ("12", "identity"))
        channel = self.start(insecure(f"127.0.0.1:{self.server.port}"))
        call = channel.unary_unary(SHOULD_RATE_LIMIT)
        large = rls_request(self.asker.messages, "edge", {"path": "/" * 1000}).SerializeToString()
        self.refused(grpc.StatusCode.UNIMPLEMENTED, lambda: call(large, timeout=PATIENCE, compression=grpc.Compression.Gzip))

    def test_message_above_a_mebibyte_gets_resource_exhausted(self):
        large = rls_request(self.asker.messages, "edge", {"path": "/" * (1 << 20)}).SerializeToString()
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: self.asker.send(large))
        self.assertEqual(self.status(self.server, framed(b"")[:1] + b"\xff" * 4), "8")

    def test_malformed_deadline_gets_an_internal_error(self):
        errors = self.server.metric("weir_decide_questions_total", api="rls", result="error")
        for timeout in ("1", "1x", "-1S", "123456789S"):
            self.assertEqual(self.status(self.server, framed(self.good), fields=[("grpc-timeout", timeout)]), "13", timeout)
        self.assertEqual(self.server.metric("weir_decide_questions_total", api="rls", result="error"), errors + 4)
        self.assertEqual(self.status(self.server, framed(self.good), fields=[("grpc-timeout", "20S")]), "0")
        self.assertEqual(self.status(self.server, framed(self.good), fields=[("grpc-timeout", "0S")]), "4")

    def test_unknown_method_gets_unimplemented(self):
        channel = self.start(insecure(f"127.0.0.1:{self.server.port}"))
        for path in ("/x.Y/Z", "/envoy.service.ratelimit.v3.RateLimitService/Other", "/grpc.health.v1.Health/Watch"):
            self.refused(grpc.StatusCode.UNIMPLEMENTED, lambda path=path: channel.unary_unary(path)(b"", timeout=PATIENCE))

    def test_requests_other_than_grpc_get_415(self):
        answer, _ = self.octets(self.server, b"{}", path="/v1/decide", kind="application/json")
        self.assertEqual((answer.status, answer["content-type"]), (415, "application/json"))

    def test_call_with_json_messages_gets_unimplemented(self):
        errors = self.server.metric("weir_decide_questions_total", api="rls", result="error")
        _, status = self.octets(self.server, framed(self.good), kind="application/grpc+json")
        self.assertEqual(status["grpc-status"], "12")
        self.assertIn("application/grpc+proto", status["grpc-message"])
        self.assertEqual(self.server.metric("weir_decide_questions_total", api="rls", result="error"), errors + 1)
        for kind in ("application/grpc+proto", "application/grpc; charset=utf-8"):
            self.assertEqual(self.octets(self.server, framed(self.good), kind=kind)[1]["grpc-status"], "0", kind)

    def test_call_that_is_no_post_gets_405(self):
        with Http2Client(self.server.port) as client:
            stream = client.open("GET", SHOULD_RATE_LIMIT, [("content-type", "application/grpc")])
            self.assertEqual(client.read(stream)["grpc-message"], "a gRPC call is a POST request")

    def test_connection_serves_further_calls_after_faults(self):
        with Http2Client(self.server.port) as client:
            fields = [("content-type", "application/grpc")]
            for body in (framed(b"\x0a\xff"), framed(self.good, 1), framed(self.good)):
                stream = client.open("POST", SHOULD_RATE_LIMIT, fields, end=False)
                client.send_body(stream, body)
                answer = client.read(stream)
            self.assertEqual(dict(answer.trailers)["grpc-status"], "0")


class Health(ProtocolTestCase):
    def test_health_check_reports_every_service_as_serving(self):
        client = self.service(LOGINS)
        for service in ("", *SERVICES):
            self.assertEqual(client.health(service), SERVING, service)
        self.refused(grpc.StatusCode.NOT_FOUND, lambda: client.health("x.Y"))

    def test_weir_reports_not_serving_before_the_drain_but_still_answers_calls(self):
        weir = self.weir(LOGINS, server='drain_delay = "1min"')
        client = self.client(weir)
        weir.signal(signal.SIGTERM)
        eventually(lambda: client.health() == NOT_SERVING, "the health check fails")
        self.assertEqual(client.code("edge", {"path": "/"}), OK)
        weir.signal(signal.SIGTERM)


class Reflection(ProtocolTestCase):
    def test_both_versions_list_and_describe_all_services(self):
        channel = self.start(insecure(f"127.0.0.1:{self.weir(LOGINS).port}"))
        for method in (REFLECTION, REFLECTION_ALPHA):
            messages = Messages(channel, method=method)
            self.assertEqual(set(messages.services), SERVICES)
            method = messages.pool.FindServiceByName(RLS + "RateLimitService").FindMethodByName("ShouldRateLimit")
            self.assertEqual(method.input_type.full_name, RLS + "RateLimitRequest")

    def test_each_request_is_answered_at_once_and_errors_do_not_end_the_stream(self):
        channel = self.start(insecure(f"127.0.0.1:{self.weir(LOGINS).port}"))
        messages = Messages(channel)
        request, response = (messages[f"grpc.reflection.v1.ServerReflection{kind}"] for kind in ("Request", "Response"))

        def requests():
            for symbol in (RLS + "RateLimitRequest", "no.such.Symbol", "google.protobuf.Duration"):
                yield request(file_containing_symbol=symbol).SerializeToString()
                answers.append(response.FromString(next(stream)))

        answers = []
        stream = channel.stream_stream(REFLECTION)(requests(), timeout=PATIENCE)
        eventually(lambda: len(answers) == 3, "each request is answered before the next is sent")
        self.assertEqual([answer.WhichOneof("message_response") for answer in answers],
                         ["file_descriptor_response", "error_response", "file_descriptor_response"])
        self.assertEqual(answers[1].error_response.error_code, 5)
        self.assertEqual(answers[0].original_request.file_containing_symbol, RLS + "RateLimitRequest")

    def test_malformed_request_ends_the_stream(self):
        weir = self.weir(LOGINS)
        self.assertEqual(self.status(weir, framed(b"\x0a\xff"), path=REFLECTION), "3")
        self.assertEqual(self.status(weir, framed(b"")[:4], path=REFLECTION), "3")
        self.assertEqual(self.status(weir, framed(b"\0" * 4097), path=REFLECTION), "8")
        self.assertEqual(self.status(weir, b"", path=REFLECTION), "0")


class Stores(ProtocolTestCase):
    def setUp(self):
        self.redis = self.start(Redis())

    def state(self, timeout="20s"):
        return f'key_secret = "test"\nredis = {{ url = "{self.redis.url}", timeout = "{timeout}", start_wait = "20s" }}'

    def service_with_redis(self, policy, timeout="20s"):
        self.server = self.weir(rule("shared", "3/day", key=by("user"), store='"redis"', on_store_failure=f'"{policy}"', **WINDOW),
                                state=self.state(timeout))
        return self.client(self.server)

    def test_counts_are_shared_in_redis(self):
        client = self.service_with_redis("closed")
        self.assertEqual(self.codes(client, 4, "edge", {"user": "ann"}), [OK] * 3 + [OVER_LIMIT])
        other = self.service_with_redis("closed")
        self.assertEqual(other.code("edge", {"user": "ann"}), OVER_LIMIT)
        self.assertEqual(other.ask("edge", {"user": "bob"}).statuses[0].limit_remaining, 2)

    def test_statuses_say_which_descriptor_redis_has_refused(self):
        stored = {**WINDOW, "store": '"redis"'}
        client = self.service(rule("wide", "5/day", key=by("path"), **stored), rule("tight", "2/day", key=by("user"), **stored),
                              state=self.state())
        pair = {"path": "/"}, {"user": "ann"}
        self.assertEqual(self.codes(client, 2, "edge", *pair), [OK, OK])
        for _ in range(3):  # Redis refuses the first call, and weir's cached refusal the others
            answer = client.ask("edge", *pair)
            self.assertEqual((answer.overall_code, [status.code for status in answer.statuses]), (OVER_LIMIT, [OK, OVER_LIMIT]))
            self.assertEqual([status.current_limit.name for status in answer.statuses], ["wide", "tight"])
        self.assertEqual(client.ask("edge", {"path": "/"}).statuses[0].limit_remaining, 2)

    def test_call_gets_unavailable_without_redis_if_on_store_failure_is_closed(self):
        client = self.service_with_redis("closed")
        self.redis.kill()
        details = self.refused(grpc.StatusCode.UNAVAILABLE, lambda: client.ask("edge", {"user": "ann"}))
        self.assertEqual(details, "the limiter's store cannot be reached; please retry")

    def test_failed_call_keeps_its_earlier_charges_if_descriptors_is_each(self):
        weir = self.weir(rule("paths", "3/day", key=by("path"), **WINDOW), descriptors="each", state=self.state(),
                         more=rule("shared", "3/day", key=by("user"), store='"redis"', on_store_failure='"closed"', **WINDOW))
        client = self.client(weir)
        self.assertEqual(client.code("edge", {"path": "/"}, {"user": "ann"}), OK)
        self.redis.kill()
        self.refused(grpc.StatusCode.UNAVAILABLE, lambda: client.ask("edge", {"path": "/"}, {"user": "ann"}))
        self.assertEqual(client.ask("edge", {"path": "/"}).statuses[0].limit_remaining, 0)

    def test_rule_with_local_fallback_counts_in_this_process_after_redis_is_lost(self):
        client = self.service_with_redis("local")
        self.redis.kill()
        self.assertEqual(self.codes(client, 4, "edge", {"user": "ann"}), [OK] * 3 + [OVER_LIMIT])

    def test_call_ends_at_its_deadline_and_is_not_charged(self):
        client = self.service_with_redis("closed", timeout="1s")
        message = framed(rls_request(client.messages, "edge", {"user": "ann"}).SerializeToString())
        self.redis.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.redis.process.send_signal, signal.SIGCONT)
        self.assertEqual(self.status(self.server, message, fields=[("grpc-timeout", "200m")]), "4")
        self.redis.process.send_signal(signal.SIGCONT)
        eventually(lambda: client.ask("edge", {"user": "bob"}).overall_code == OK, "Redis answers again")
        eventually(lambda: client.ask("edge", {"user": "ann"}).statuses[0].limit_remaining == 2, "the late charge was refunded", 1)


class Reloads(ProtocolTestCase):
    def test_reload_changes_limits_and_the_meaning_of_several_descriptors(self):
        weir = self.weir(rule("wide", "5/day", key=by("path"), **WINDOW), rule("tight", "1/day", key=by("user"), **WINDOW))
        client = self.client(weir)
        pair = {"path": "/"}, {"user": "ann"}
        self.assertEqual(self.codes(client, 2, "edge", *pair), [OK, OVER_LIMIT])
        text = rls_config(rule("wide", "10/day", key=by("path"), **WINDOW), rule("tight", "1/day", key=by("user"), **WINDOW),
                          descriptors="each")
        (weir.folder / "weir.toml").write_text(text)
        weir.signal(signal.SIGHUP)
        eventually(lambda: weir.metric("weir_reloads_total", result="ok") == 1, "the reload is ok")
        self.assertEqual([status.limit_remaining for status in client.ask("edge", *pair).statuses], [7, 0])
        self.assertEqual([status.limit_remaining for status in client.ask("edge", *pair).statuses], [6, 0])


if __name__ == "__main__":
    main()
