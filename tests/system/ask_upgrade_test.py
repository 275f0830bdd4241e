#!/usr/bin/env python3
"""Questions that an upgrade finds undecided, because the old process is still reading their body: they get 503 or UNAVAILABLE, and the
asker's next attempt reaches the new process. So the limit is exact. A question that awaits Redis is decided."""

import json
import os
import signal

from ask_client import TAKES_OVER, Asker, AskTestCase
from harness import PATIENCE, Redis, config, eventually, get, logged_requests, main, request_bytes, rule
from http2_client import Http2Client
from lineage import Lineage, adopt_orphans
from processes import metric
from rls_client import SHOULD_RATE_LIMIT, text_field
from rls_test import by, rls_config

ADDRESS = "203.0.113.7"
LIMIT = rule("all", "3/1000day", key="[]", algorithm='"fixed_window"')
# A new process that claims to be ready, hears that the old process has stopped deciding, and ends once a file exists.
IMPOSTOR = """exec python3 -c '
import os, socket, time
channel = socket.socket(fileno=int(os.environ["WEIR_UPGRADE_FD"]))
channel.send(b"ready")
while channel.recv(65536).split(b"\\n")[0] != b"state": pass
open("%(paused)s", "w").close()
while not os.path.exists("%(end)s"): time.sleep(0.01)
'"""


class UndecidedQuestions(AskTestCase):
    @classmethod
    def setUpClass(cls):
        adopt_orphans()

    def lineage(self, *rules, state=""):
        text = config(1, rules="".join(rules), state=state).replace('access = "off"', 'access = "access.log"')
        weir = self.start(Lineage(text.replace("[[listener]]", '[[listener]]\nserves = "decide"')))
        eventually(lambda: get(weir.admin, "/readyz").status == 200, "weir is ready, so it may upgrade")
        return weir

    def begin(self, weir, question=None):
        """Returns an asker whose call weir reads, and the rest of the body of that call."""
        asker = self.start(Asker(weir.port))
        body = json.dumps(question or {"ip": ADDRESS}).encode()
        call = request_bytes("POST", "/v1/decide", {"Expect": "100-continue"}, body)
        asker.send(call[:-len(body)])
        self.assertEqual(asker.read().status, 100, "weir waits for the body")
        return asker, body

    def assert_retryable(self, asker, rest):
        asker.send(rest)
        response = asker.read()
        self.assertEqual((response.status, response.json()["error"]), (503, TAKES_OVER))
        self.assertEqual((response.json()["allowed"], response.json()["status"]), (False, 503))

    def test_old_process_answers_503_and_the_new_process_decides_the_repeated_questions(self):
        weir = self.lineage(LIMIT)
        begun = [self.begin(weir) for _ in range(5)]
        weir.upgrade()
        with Asker(weir.port) as asker:
            self.assertEqual([asker.decide()["allowed"] for _ in range(2)], [True, True])
        for asker, rest in begun:
            self.assert_retryable(asker, rest)
        self.assertEqual([asker.decide()["allowed"] for asker, _ in begun], [True] + [False] * 4, "3 of 7 questions are allowed")
        log = weir.folder / "access.log"
        eventually(lambda: len(logged_requests(log)) == 12, "every line is written")
        self.assertEqual([line["error"] for line in logged_requests(log) if line["status"] == 503], ["taken_over"] * 5)
        weir.wait_for("upgrade: requests decided by the old process since the new one took over: 0$")

    def test_overdraft_is_charged_once_if_the_asker_asks_again(self):
        redis = self.start(Redis())
        budget = rule("budget", "100/1000day", key='["descriptor:user"]', algorithm='"fixed_window"', overdraft="true", store='"redis"')
        weir = self.lineage(budget, state=f'redis = {{ url = "redis://127.0.0.1:{redis.port}" }}')
        question = {"cost": 30, "attributes": {"user": "ann"}}
        asker, rest = self.begin(weir, question)
        weir.upgrade()
        self.assert_retryable(asker, rest)
        self.assertTrue(asker.decide(question)["allowed"])
        eventually(lambda: asker.decide({**question, "cost": 0})["remaining"] == 70, "the overdraft is charged")

    def test_each_question_of_an_array_gets_503_from_the_old_process(self):
        weir = self.lineage(LIMIT)
        asker, rest = self.begin(weir, [{"ip": ADDRESS}] * 2)
        weir.upgrade()
        asker.send(rest)
        response = asker.read()
        self.assertEqual((response.status, [(each["status"], each["error"]) for each in response.json()]), (200, [(503, TAKES_OVER)] * 2))
        self.assertEqual(asker.decide()["remaining"], 2)

    def test_old_process_decides_again_after_a_failed_upgrade(self):
        weir = self.lineage(LIMIT)
        paused, end = weir.folder / "paused", weir.folder / "end"
        asker, rest = self.begin(weir)
        weir.install(IMPOSTOR % {"paused": paused, "end": end})
        weir.signal(signal.SIGUSR2)
        eventually(paused.exists, "the old process has stopped deciding")
        self.assert_retryable(asker, rest)
        end.touch()
        weir.wait_for("this process continues")
        self.assertEqual(asker.decide()["remaining"], 2)

    def test_question_that_awaits_redis_is_decided_and_later_questions_of_the_call_get_503(self):
        redis = self.start(Redis())
        shared = LIMIT.replace('name = "all"', 'name = "all"\nstore = "redis"')
        weir = self.lineage(shared, state=f'redis = {{ url = "redis://127.0.0.1:{redis.port}", timeout = "{PATIENCE}s" }}')
        paused, end = weir.folder / "paused", weir.folder / "end"
        weir.install(IMPOSTOR % {"paused": paused, "end": end})
        redis.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, redis.process.pid, os.WSTOPPED)
        asker, rest = self.begin(weir, [{"ip": ADDRESS}] * 3)
        asker.send(rest)
        eventually(lambda: metric(weir.admin, "weir_redis_calls_total") == 1, "the first question awaits Redis")
        weir.signal(signal.SIGUSR2)
        eventually(paused.exists, "the old process has stopped deciding")
        redis.process.send_signal(signal.SIGCONT)
        answers = asker.read().json()
        self.assertEqual([(each["allowed"], each.get("error")) for each in answers], [(True, None)] + [(False, TAKES_OVER)] * 2)
        end.touch()
        weir.wait_for("this process continues")
        self.assertEqual(asker.decide()["remaining"], 1)

    def test_calls_of_envoy_get_unavailable_from_the_old_process(self):
        tokens = rule("logins", "3/1000day", key=by("path"), algorithm='"fixed_window"')
        weir = self.start(Lineage(rls_config(tokens)))
        message = text_field(1, "edge") + text_field(2, text_field(1, text_field(1, "path") + text_field(2, "/")))
        call = bytes([0]) + len(message).to_bytes(4, "big") + message
        client = self.start(Http2Client(weir.port))
        streams = [client.open("POST", SHOULD_RATE_LIMIT, [("content-type", "application/grpc"), ("te", "trailers")], end=False)
                   for _ in range(4)]
        for stream in streams:
            client.send_body(stream, call[:9], end=False)
        client.ping()
        weir.upgrade()
        for stream in streams:
            client.send_body(stream, call[9:])
            answer = client.read(stream)
            self.assertEqual((answer["grpc-status"], answer["grpc-message"]), ("14", TAKES_OVER))
        weir.wait_for("upgrade: requests decided by the old process since the new one took over: 0$")


if __name__ == "__main__":
    main()
