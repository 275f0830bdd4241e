#!/usr/bin/env python3
"""A client whose requests a rule has refused too often is refused for longer (docs/limiters.md, "Penalties"). The state is in the
key table or in Redis, and outlasts reloads, upgrades and restarts."""

import json
import os
import pathlib
import signal
import tempfile

from harness import Client, Redis, TestCase, Upstream, Weir, config, eventually, get, main, rule
from lineage import Lineage, adopt_orphans

# The limiter admits one request in five minutes, so that the tests do not depend on speed. The second refusal starts a penalty.
PENALTY = '{ after = 2, for = "1h", grows = 2, most = "1day" }'
HOUR = 3600


def guesses(limit="1/5min", penalty=PENALTY, **more):
    return rule("guesses", limit, key='["ip"]', **({"penalty": penalty} if penalty else {}), **more)


class PenaltyTestCase(TestCase):
    state = ""

    def setUp(self):
        self.upstream = self.start(Upstream())

    def text(self, *rules, state=""):
        return config(self.upstream.port, rules="".join(rules), state=self.state + state)

    def weir(self, *rules):
        weir = self.start(Weir(self.text(*rules)))
        eventually(weir.is_ready, "weir is ready")
        return weir

    def refused_for(self, weir, path="/"):
        answer = weir.get(path)
        self.assertEqual(answer.status, 429)
        return int(answer["retry-after"])

    def punish(self, weir):
        """Sends requests until a penalty begins."""
        self.assertEqual(weir.get("/").status, 200)
        self.assertLessEqual(self.refused_for(weir), 300)
        self.is_punished(weir)

    def is_punished(self, weir):
        seconds = self.refused_for(weir)
        self.assertGreater(seconds, HOUR - 600)
        self.assertLessEqual(seconds, HOUR)

    def keys(self, weir, method="GET"):
        with Client(weir.admin) as client:
            answer = client.request(method, "/api/keys?rule=guesses&key=127.0.0.1")
        self.assertEqual(answer.status, 200, answer.body)
        return json.loads(answer.body)["limits"][0]


class Penalty(PenaltyTestCase):
    def test_second_refusal_starts_a_penalty_which_every_page_shows(self):
        weir = self.weir(guesses())
        self.assertEqual(weir.get("/").status, 200)
        self.assertLessEqual(self.refused_for(weir), 300)
        self.assertEqual(self.keys(weir)["violations"], 1)
        answer = weir.get("/")
        self.assertEqual((answer.status, answer["x-ratelimit-remaining"]), (429, "0"))
        self.assertAlmostEqual(int(answer["retry-after"]), HOUR, delta=60)
        for _ in range(3):
            self.is_punished(weir)
        shown = self.keys(weir)
        self.assertEqual((shown["says"], "violations" in shown), ("refuse", False))
        self.assertAlmostEqual(shown["penalty_seconds"], HOUR, delta=60)
        self.assertEqual(weir.metric("weir_penalties_total", rule="guesses"), 1)
        with Client(weir.admin) as client:
            said = json.loads(client.request("POST", "/api/explain", {"Content-Type": "application/json"},
                                             b'{"host": "localhost", "ip": "127.0.0.1"}').body)
        self.assertEqual(said["verdict"]["verdict"], "refuse")
        self.assertIn("its key has a penalty", said["verdict"]["why"])
        self.assertGreater(int(said["verdict"]["headers"]["Retry-After"]), HOUR - 60)

    def test_reset_lifts_the_penalty(self):
        weir = self.weir(guesses())
        self.punish(weir)
        self.assertIn("penalty_seconds", self.keys(weir, "DELETE"))
        shown = self.keys(weir) if weir.get("/").status == 200 else None
        self.assertIsNotNone(shown, "the client may send requests again")
        self.assertNotIn("violations", shown)

    def test_refusals_by_another_rule_do_not_count_towards_a_penalty(self):
        weir = self.weir(guesses("2/5min"), rule("other", "1/day", key='["ip"]', match='{ path = "/other" }'))
        self.assertEqual(weir.get("/other").status, 200)
        for _ in range(3):
            self.assertGreater(self.refused_for(weir, "/other"), 80_000)
        self.punish(weir)

    def test_shadow_rule_counts_penalties_and_refuses_nothing(self):
        weir = self.weir(guesses(mode='"shadow"'))
        self.assertEqual(self.statuses(weir.port, 5), [200] * 5)
        self.assertEqual(weir.metric("weir_penalties_total", rule="guesses"), 1)
        self.assertEqual(weir.metric("weir_decisions_total", rule="guesses", outcome="shadow_refused"), 4)

    def test_penalty_continues_after_a_reload_unless_the_reload_removes_it_from_the_rule(self):
        weir = self.weir(guesses())
        self.punish(weir)
        for reloads, (text, status) in enumerate(((guesses("1000/s"), 429), (guesses("1000/s", penalty=None), 200))):
            (weir.folder / "weir.toml.new").write_text(self.text(text))
            (weir.folder / "weir.toml.new").rename(weir.folder / "weir.toml")
            weir.signal(signal.SIGHUP)
            eventually(lambda: weir.metric("weir_reloads_total", result="ok") == reloads + 1, "weir has reloaded")
            self.assertEqual(weir.get("/").status, status)


class PenaltyInRedis(Penalty):
    def setUp(self):
        super().setUp()
        self.redis = self.start(Redis())
        redis = f'redis = {{ url = "{self.redis.url}", timeout = "10s", start_wait = "20s" }}'
        self.state = f'store = "redis"\nkey_secret = "{os.urandom(8).hex()}"\n{redis}\n'

    def test_two_instances_share_penalties_and_resets(self):
        one, other = self.weir(guesses()), self.weir(guesses())
        self.assertEqual(one.get("/").status, 200)
        self.assertLessEqual(self.refused_for(other), 300)
        self.is_punished(one)
        self.is_punished(other)
        self.assertEqual(one.metric("weir_penalties_total") + other.metric("weir_penalties_total"), 1)
        self.keys(other, "DELETE")
        eventually(lambda: one.get("/").status == 200, "the other weir hears of the reset within a second")

    def test_flood_of_a_client_with_a_penalty_does_not_reach_redis(self):
        weir = self.weir(guesses())
        self.punish(weir)
        self.assertEqual(weir.metric("weir_redis_denied_here_total"), 0, "Redis counted every violation")
        eventually(lambda: self.refused_for(weir) > 300 and weir.metric("weir_redis_denied_here_total") > 0, "weir refuses by itself")

    # A reload does not convert the buckets that Redis stores.
    test_penalty_continues_after_a_reload_unless_the_reload_removes_it_from_the_rule = None


class PenaltyOverRestarts(PenaltyTestCase):
    def test_penalty_continues_after_a_restart_with_a_snapshot(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-state-")))
        text = self.text(guesses(), state=f'memory = {{ snapshot = "{folder / "weir.state"}" }}\n')
        with Weir(text) as weir:
            self.punish(weir)
            weir.signal(signal.SIGTERM)
            self.assertEqual(weir.wait(), 0)
        with Weir(text) as weir:
            self.is_punished(weir)

    def test_penalty_continues_after_an_upgrade(self):
        adopt_orphans()
        weir = self.start(Lineage(self.text(guesses())))
        statuses = [get(weir.port, "/").status for _ in range(3)]
        self.assertEqual(statuses, [200, 429, 429])
        weir.upgrade()
        answer = get(weir.port, "/")
        self.assertEqual(answer.status, 429)
        self.assertGreater(int(answer["retry-after"]), HOUR - 600)


if __name__ == "__main__":
    main()
