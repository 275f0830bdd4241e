#!/usr/bin/env python3
"""Keys of tokens that weir fetches from a URL: unknown keys, an unreachable issuer, reloads, and the bounds on waiting requests."""

import json
import pathlib
import random
import signal
import tempfile
import threading
import time

from ask_client import TAKES_OVER, Asker
from harness import BELOW_EPHEMERAL, PATIENCE, Client, TestCase, Upstream, Weir, config, eventually, get, logged_requests, main, request_bytes, \
    rule, run_weir, together
from http2_client import Http2Client
from key_issuer import Ed25519Issuer, KeyServer, server_tls
from lineage import Lineage, adopt_orphans
from processes import metric

INSIST = rule("claim", "10000/day", key='["claim:sub"]', on_missing='"reject"', match='{ path = "/api" }')


class TokenKeys(TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-test-")))
        self.issuer = Ed25519Issuer(self.folder, "login")
        self.keys = self.start(KeyServer(self.folder, self.issuer, port=random.randrange(*BELOW_EPHEMERAL)))
        self.upstream = self.start(Upstream())

    def text(self, *, rules=INSIST, url=None, **fetch):
        bounds = {"cooldown": "100ms", "wait": f"{PATIENCE}s", "ca": str(self.folder / "login.crt"), **fetch}
        table = ", ".join(f'{key} = {value}' if isinstance(value, int) else f'{key} = "{value}"' for key, value in bounds.items())
        text = config(self.upstream.port, rules=rules,
                      client=f'jwt = {{ issuer = "login", jwks = "{url or self.keys.url}", fetch = {{ {table} }} }}')
        return text.replace("workers = 2", "workers = 1").replace('access = "off"', f'access = "{self.folder / "access.log"}"')

    def begin(self, **fetch):
        self.weir = self.start(Weir(self.text(**fetch)))
        return self.weir

    def await_keys(self, count=1):
        self.await_metric(self.weir, count, "weir_token_keys", url=self.keys.url)

    def ask(self, kid, **claims):
        return get(self.weir.port, "/api", authorization=f"Bearer {self.issuer.token(kid, **claims)}")

    def fetches(self, outcome="ok"):
        return self.weir.metric("weir_token_key_fetches_total", url=self.keys.url, outcome=outcome)

    def restart_keys(self, *kids):
        self.keys = self.start(KeyServer(self.folder, self.issuer, kids, port=self.keys.port, tls=self.keys.tls))

    def assert_unavailable(self, answer, seconds="1"):
        self.assert_own_error(answer, 503)
        self.assertEqual(answer["retry-after"], seconds)
        self.assertIsNone(answer["www-authenticate"])
        self.assertEqual(answer.json()["message"],
                         "the bearer token cannot be verified: the keys of the issuer of the token cannot be fetched now; please retry")

    def test_request_with_an_unknown_kid_waits_for_a_fetch(self):
        self.begin()
        self.await_keys()
        self.assertEqual(self.ask("1").status, 200)
        self.keys.rotate("1", "2")
        self.assertEqual([self.ask(kid).status for kid in ("2", "1", "2")], [200, 200, 200])
        self.keys.rotate("2")
        denied = self.ask("3")
        self.assert_own_error(denied, 401)
        self.assertEqual(denied["www-authenticate"],
                         'Bearer error="invalid_token", error_description="the token is signed with a key that is not known"')
        self.assertEqual([self.ask(kid).status for kid in ("2", "1")], [200, 401], "the issuer has withdrawn key 1")
        waits = {outcome: self.weir.metric("weir_token_key_waits_total", outcome=outcome) for outcome in ("found", "unknown", "unavailable")}
        self.assertEqual(waits, {"found": 1, "unknown": 2, "unavailable": 0})
        self.assertEqual(self.weir.metric("weir_token_faults_total", reason="key"), 2)
        log = self.folder / "access.log"
        eventually(lambda: [line.get("error") for line in logged_requests(log)] == [None] * 4 + ["token_key", None, "token_key"],
                   "the log has the reasons")

    def test_many_unknown_kids_cause_one_fetch_in_each_cooldown(self):
        self.begin(cooldown="1s")
        self.await_keys()
        tokens = [self.issuer.token(f"unknown{number}") for number in range(3)]
        began = time.monotonic()
        statuses = together(20, lambda number: get(self.weir.port, "/api", authorization=f"Bearer {tokens[number % 3]}").status)
        took = time.monotonic() - began
        self.assertEqual(statuses, [401] * 20)
        self.assertLessEqual(len(self.keys.exchanges), 2 + took, "the first fetch, and one in each second that has begun")

    def test_weir_starts_without_the_issuer_and_answers_503_until_it_has_keys(self):
        self.keys.__exit__()
        weir = self.begin()
        weir.wait_for(r"tokens: cannot fetch the keys at https://localhost:\d+/jwks: .*; weir answers 503 to requests that need them")
        self.assert_unavailable(self.ask("1"))
        self.assertEqual(get(weir.port, "/other").status, 200, "no rule needs the token")
        self.assertIn("keys of tokens are not fetched yet", get(weir.admin, "/readyz").body.decode())
        self.assertTrue(weir.is_ready())
        self.assertGreaterEqual(self.fetches("failed"), 1)
        self.restart_keys("1")
        weir.wait_for(r"tokens: fetched 1 key from https://localhost")
        self.assertEqual(self.ask("1").status, 200)
        self.assertNotIn("keys of tokens", get(weir.admin, "/readyz").body.decode())
        self.assertEqual(weir.metric("weir_token_faults_total", reason="unavailable"), 1)
        log = self.folder / "access.log"
        eventually(lambda: [line.get("error") for line in logged_requests(log)] == ["token_unavailable", None, None], "the log has the reason")

    def test_old_keys_are_kept_while_the_issuer_is_unreachable(self):
        weir = self.begin(refresh="200ms")
        self.await_keys()
        self.keys.__exit__()
        weir.wait_for(r"tokens: cannot fetch the keys at .*; weir keeps the previous keys")
        self.assertEqual(self.ask("1").status, 200)
        self.assert_unavailable(self.ask("2"))
        eventually(lambda: weir.metric("weir_token_keys_age_seconds", url=self.keys.url) > 0.5, "the age of the keys grows")
        self.restart_keys("2")
        eventually(lambda: self.ask("2").status == 200, "the new key is known")
        self.assertEqual(self.ask("1").status, 401)
        weir.wait_for(r"tokens: fetched 1 key", 2)

    def test_keys_are_kept_if_the_issuers_answer_is_no_key_set(self):
        weir = self.begin(refresh="200ms", max_size="1KiB")
        self.await_keys()
        for kids, fault in ([], "the answer has no public key for signatures"), (["1"] * 30, "the answer has more than 1024 bytes"):
            self.keys.rotate(*kids)
            weir.wait_for(f"cannot fetch the keys at .*: {fault}.*; weir keeps the previous keys")
            self.assertEqual(self.ask("1").status, 200)
            self.keys.rotate("1")
            eventually(lambda: get(weir.admin, "/readyz").status == 200 and self.recovered(), "a fetch succeeds again")

    def recovered(self):
        before = self.fetches()
        return eventually(lambda: self.fetches() > before, "fetches succeed")

    def test_keys_are_not_fetched_from_a_server_with_a_certificate_of_another_authority(self):
        other = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-test-")))
        keys = self.start(KeyServer(self.folder, self.issuer, tls=server_tls(other)))
        weir = self.begin(url=keys.url)
        weir.wait_for(f"cannot fetch the keys at {keys.url}: .*certificate")
        self.assertEqual(weir.metric("weir_token_keys", url=keys.url), 0)
        self.assertEqual(keys.exchanges, [])

    def test_requests_wait_for_keys_no_longer_than_the_bound_and_delay_no_others(self):
        answers = threading.Event()
        self.addCleanup(answers.set)
        self.keys.gate = lambda: answers.wait(2 * PATIENCE)
        weir = self.begin(wait="1s", max_waiting=2, timeout="1min")
        began = time.monotonic()
        with Client(weir.port) as first, Client(weir.port) as second:
            for client in (first, second):
                client.send(b"GET /api HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n" % self.issuer.token("1").encode())
            self.await_metric(weir, 2, "weir_token_key_waiting")
            self.assert_unavailable(self.ask("1"))  # a third does not wait
            self.assertEqual(get(weir.port, "/other").status, 200)
            for client in (first, second):
                self.assert_unavailable(client.read())
        self.assertGreater(time.monotonic() - began, 0.9)
        self.assertEqual(weir.metric("weir_token_key_waiting"), 0)
        self.assertEqual(weir.metric("weir_token_key_waits_total", outcome="unavailable"), 3)

    def test_requests_that_wait_for_keys_end_when_their_client_leaves_or_weir_stops(self):
        answers = threading.Event()
        self.addCleanup(answers.set)
        self.keys.gate = lambda: answers.wait(4 * PATIENCE)
        weir = self.begin(timeout="1min", wait="1min")
        request = b"GET /api HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n" % self.issuer.token("1").encode()
        with Client(weir.port) as client, Client(weir.port) as other:
            client.send(request)
            other.send(request)
            self.await_metric(weir, 2, "weir_token_key_waiting")
            client.leave()
            self.await_metric(weir, 1, "weir_token_key_waiting")
            weir.signal(signal.SIGTERM)
            weir.wait_for("draining")
            weir.signal(signal.SIGTERM)
            weir.wait_for("stopping at once")
            self.assert_own_error(other.read(), 503)
        self.assertEqual(weir.wait(), 0)
        self.assertEqual({line.get("error") for line in logged_requests(self.folder / "access.log")}, {"client_left", "stopped"})

    def test_reload_keeps_the_keys_and_fetches_nothing(self):
        weir = self.begin(refresh="1h")
        self.await_keys()
        self.keys.__exit__()

        def reload(text):
            (weir.folder / "weir.toml").write_text(text)
            done = weir.metric("weir_reloads_total", result="ok")
            weir.signal(signal.SIGHUP)
            eventually(lambda: weir.metric("weir_reloads_total", result="ok") == done + 1, "the reload is done")

        reload(self.text(refresh="2h").replace("10000/day", "20000/day"))
        self.assertEqual(self.ask("1").status, 200)
        self.assertEqual((self.fetches(), self.fetches("failed")), (1, 0))
        self.assertEqual(len(self.keys.exchanges), 1)
        reload(self.text(rules=rule("ip", "1000/day", key='["ip"]')))
        self.assertEqual(weir.metric("weir_token_keys"), 0, "nothing needs the keys any more")

    def test_new_process_of_an_upgrade_fetches_the_keys_again(self):
        adopt_orphans()
        lineage = self.start(Lineage(self.text()))
        eventually(lambda: metric(lineage.admin, "weir_token_keys") == 1, "the old process has the keys")
        lineage.upgrade()
        self.assertEqual(get(lineage.port, "/api", authorization=f"Bearer {self.issuer.token('1')}").status, 200)
        self.assertEqual(metric(lineage.admin, "weir_token_key_fetches_total", outcome="ok"), 1)
        self.assertEqual(len(self.keys.exchanges), 2)

    def test_question_that_waits_for_keys_in_an_upgrade_gets_503(self):
        adopt_orphans()
        answers = threading.Event()
        self.addCleanup(answers.set)
        self.keys.gate = lambda: answers.wait(2 * PATIENCE)
        text = self.text(timeout="1min").replace("[[listener]]", '[[listener]]\nserves = "decide"')
        lineage = self.start(Lineage(text))
        with Asker(lineage.port) as asker:
            question = {"path": "/api", "headers": {"Authorization": f"Bearer {self.issuer.token('1')}"}}
            asker.send(request_bytes("POST", "/v1/decide", {}, json.dumps(question).encode()))
            eventually(lambda: metric(lineage.admin, "weir_token_key_waiting") == 1, "the question waits")
            lineage.upgrade()
            answers.set()
            response = asker.read()
            self.assertEqual((response.status, response.json()["status"], response.json()["error"]), (503, 503, TAKES_OVER))
            self.assertTrue(asker.decide(question)["allowed"], "the new process decides")
        log = self.folder / "access.log"
        eventually(lambda: len(logged_requests(log)) == 2, "every line is written")
        self.assertEqual([line.get("error") for line in logged_requests(log) if line["status"] == 503], ["taken_over"])

    def test_check_command_shows_the_url_and_fetches_no_keys(self):
        status, output, errors = run_weir("check", config=self.text())
        self.assertEqual((status, errors), (0, ""))
        self.assertIn(f"keys from {self.keys.url}, fetched every 10min", output)
        self.assertEqual(self.keys.connections, 0)

    def test_http2_streams_wait_for_keys_independently_of_each_other(self):
        answers = threading.Event()
        self.addCleanup(answers.set)
        self.keys.gate = lambda: answers.wait(2 * PATIENCE)
        weir = self.weir = self.start(Weir(self.text(timeout="1min").replace(
            'address = "127.0.0.1:0"', 'address = "127.0.0.1:0"\nprotocols = ["http/1.1", "h2c"]', 1)))
        token = [("authorization", f"Bearer {self.issuer.token('1')}")]
        with Http2Client(weir.port) as client:
            waiting, leaving = client.open(path="/api", fields=token), client.open(path="/api", fields=token)
            self.await_metric(weir, 2, "weir_token_key_waiting")
            self.assertEqual(client.request(path="/other", fields=token).status, 200)
            client.reset(leaving)
            self.await_metric(weir, 1, "weir_token_key_waiting")
            answers.set()
            self.assertEqual(client.read(waiting).status, 200)
            self.keys.__exit__()
            unknown = [("authorization", f"Bearer {self.issuer.token('2')}"), ("content-type", "application/grpc"), ("te", "trailers")]
            refused = client.request("POST", "/api", unknown)
            self.assertEqual((refused.status, refused["grpc-status"]), (200, "14"), "a gRPC client gets UNAVAILABLE")

    def test_request_whose_route_forwards_the_user_waits_for_keys(self):
        answers = threading.Event()
        self.keys.gate = lambda: answers.wait(2 * PATIENCE)
        text = self.text(rules="").replace("[client]\n", '[client]\nuser = { claim = "sub" }\n').replace(
            '[[route]]\nupstream = "api"', '[[route]]\nupstream = "api"\nheaders = { request = { set = { "X-User" = "{user}" } } }')
        weir = self.weir = self.start(Weir(text))
        with Client(weir.port) as client:
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n" % self.issuer.token("1").encode())
            self.await_metric(weir, 1, "weir_token_key_waiting")
            answers.set()
            self.assertEqual(client.read().status, 200)
        self.assertEqual(self.upstream.exchanges[0].head["x-user"], "ann")


if __name__ == "__main__":
    main()
