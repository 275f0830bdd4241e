#!/usr/bin/env python3
"""weir replay: under the same rules, recorded requests get the recorded decisions. Under other rules they get other decisions."""

import gzip
import json
import pathlib
import random
import tempfile
import threading

from harness import Client, TestCase, Upstream, Weir, answer, config, eventually, main, rule, run_weir

FIELDS = 'fields = ["usual", "replay"]'

# One rule for each kind of limiter. Clients share the keys, so that several workers charge one key at the same time.
RULES = "".join([
    rule("bucket", "40/s", key='["ip"]', burst=30),
    rule("stepped", "60/s", key='["api_key|ip"]', algorithm='"token_bucket"', refill='"stepwise"'),
    rule("spaced", "90/s", key='["path"]', algorithm='"gcra"', burst=15),
    rule("window", "35/s", key='["api_key"]', algorithm='"fixed_window"', match='{ methods = ["GET"] }'),
    rule("sliding", "70/s", key="[]", algorithm='"sliding_window"', mode='"shadow"'),
    rule("log", "50/s", key='["header:X-Tenant"]', algorithm='"sliding_log"'),
    rule("failures", "10/s", key='["ip", "path"]', algorithm='"sliding_log"', charge='{ status = ["404"] }'),
    rule("tokens", "300/s", key='["api_key"]', cost='{ response_header = "X-Tokens", reserve = 3 }'),
]) + """
[[rule]]
name = "together"
limit = 9
algorithm = "concurrency"
key = ["ip"]
"""


class Replay(TestCase):
    def record(self, rules, requests, clients=4, **more):
        """Sends requests from this number of concurrent clients. Returns their log, and the configuration's file."""
        folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-test-")))
        log = folder / "access.log"
        upstream = self.start(Upstream(self.say))
        text = config(upstream.port, rules=rules, **more).replace('access = "off"', f'access = "{log}"\n{FIELDS}')
        weir = self.start(Weir(text))
        threads = [threading.Thread(target=self.ask, args=(weir.port, seed, requests)) for seed in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        eventually(lambda: log.exists() and log.read_text().count("\n") == requests * clients, "every line is written")
        return folder, log, text

    @staticmethod
    def say(exchange):
        number = int(exchange.target[1:])
        status = "404 Not Found" if number == 9 else "200 OK"
        exchange.send(answer(status=status, headers=f"X-Tokens: {number % 5}\r\n"))

    @staticmethod
    def ask(port, seed, requests):
        chance = random.Random(seed)
        with Client(port) as client:
            for _ in range(requests):
                headers = {"X-Tenant": chance.choice("ab")}
                if chance.random() < 0.7:
                    headers["X-API-Key"] = chance.choice(["one", "two"])
                client.request(chance.choice(["GET", "PUT"]), f"/{chance.randrange(12)}", headers)

    def replay(self, folder, text, *logs, code=0):
        file = folder / "candidate.toml"
        file.write_text(text)
        status, out, errors = run_weir("replay", "--config", str(file), "--json", *map(str, logs))
        self.assertEqual(status, code, errors)
        return json.loads(out)

    def test_replay_with_the_same_rules_gives_the_same_decisions(self):
        folder, log, text = self.record(RULES, 600)
        told = self.replay(folder, text, log)
        self.assertEqual((told["lines"], told["requests"], told["left_out"]), (2400, 2400, {}))
        self.assertEqual((told["newly_refused"], told["newly_admitted"]), (0, 0))
        by_name = {one["rule"]: one for one in told["rules"]}
        for name, one in by_name.items():
            self.assertEqual((name, one["otherwise"]), (name, 0))
            self.assertEqual(one["refused_now"], one["refused_then"], name)
            self.assertGreater(one["met"], 0, name)
        self.assertGreater(told["refused_now"], 100)  # the test needs many refusals
        self.assertGreater(by_name["failures"]["refused_now"] + by_name["together"]["met"], 0)

    def test_replay_with_other_rules_lists_newly_refused_and_admitted_clients(self):
        before = rule("per-ip", "20/day", key='["ip"]') + rule("tenant", "4/day", key='["header:X-Tenant"]')
        folder, log, text = self.record(before, 30, clients=1)
        packed = folder / "access.log.1.gz"
        lines = log.read_bytes().splitlines(keepends=True)
        packed.write_bytes(gzip.compress(b"".join(lines[:10])))
        log.write_bytes(b"".join(lines[10:]) + b"torn lin")
        after = text.replace('"20/day"', '"5/day"').replace('"tenant"', '"renamed"')
        told = self.replay(folder, after, log, packed)  # the newer file comes first, because the order must not matter
        self.assertEqual((told["lines"], told["requests"]), (31, 30))
        self.assertEqual(told["left_out"], {"no JSON object, or cut short": 1})
        rules = {one["rule"]: one for one in told["rules"]}
        self.assertEqual(rules["per-ip"]["newly_refused"], told["newly_refused"])
        self.assertEqual([(one["client"], one["newly_refused"]) for one in rules["per-ip"]["clients"]],
                         [("127.0.0.1", rules["per-ip"]["newly_refused"])])
        self.assertIn("the header x-tenant", rules["renamed"]["left_out"])
        self.assertFalse(rules["tenant"]["in_candidate"])
        self.assertEqual(told["admitted_now"], 5)

    def test_missing_parts_of_a_rotated_log_are_reported(self):
        folder, log, text = self.record(rule("all", "5/day", key="[]"), 20, clients=1)
        self.assertFalse(any("does not begin" in note for note in self.replay(folder, text, log)["notes"]))
        lines = log.read_bytes().splitlines(keepends=True)
        self.assertEqual([b'"first":true' in line for line in lines], [True] + 19 * [False])
        earlier, log = log.with_suffix(".1"), log
        earlier.write_bytes(b"".join(lines[:10]))
        log.write_bytes(b"".join(lines[10:]))
        told = self.replay(folder, text, log)
        self.assertEqual(told["newly_admitted"], 5)
        self.assertTrue(any(note.startswith("the log does not start with the start of weir") for note in told["notes"]))
        told = self.replay(folder, text, log, earlier)
        self.assertEqual((told["newly_admitted"], [note for note in told["notes"] if "does not begin" in note]), (0, []))

    def test_logged_resets_of_keys_are_replayed(self):
        folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-test-")))
        log, upstream = folder / "access.log", self.start(Upstream())
        rules = rule("window", "3/day", key='["api_key|ip"]', algorithm='"fixed_window"') \
            + rule("log", "5/day", key='["header:X-Tenant"]', algorithm='"sliding_log"')
        text = config(upstream.port, rules=rules).replace('access = "off"', f'access = "{log}"\n{FIELDS}')
        weir = self.start(Weir(text))
        for _ in range(2):
            self.assertEqual(self.statuses(weir.port, 4, x_api_key="secret", x_tenant="acme"), [200, 200, 200, 429])
            self.assertEqual(self.statuses(weir.port, 1, x_tenant="other"), [200])
            for rule_and_key in ("rule=window&key=api_key:secret", "rule=log&key=acme"):
                with Client(weir.admin) as client:
                    self.assertEqual(client.request("DELETE", f"/api/keys?{rule_and_key}").status, 200)
        eventually(lambda: log.read_text().count("\n") == 14, "every line is written")
        self.assertNotIn("secret", log.read_text())
        self.assertNotIn("acme", log.read_text())
        told = self.replay(folder, text, log)
        self.assertEqual((told["lines"], told["requests"], told["resets"], told["left_out"]), (14, 10, 4, {}))
        self.assertEqual((told["newly_refused"], told["newly_admitted"], told["refused_now"]), (0, 0, 2))
        self.assertEqual([one["otherwise"] for one in told["rules"]], [0, 0])
        told = self.replay(folder, text.replace("X-Tenant", "X-Org"), log)
        self.assertTrue(any('of rule "log" 2 keys were reset' in note for note in told["notes"]), told["notes"])

    def test_log_file_given_twice_is_rejected(self):
        folder, log, text = self.record(RULES, 5)
        (folder / "link.log").symlink_to(log)
        (folder / "hard.log").hardlink_to(log)
        (folder / "copy.log").write_bytes(log.read_bytes())
        for again in (str(log), f"{folder}/./access.log", f"{folder}/link.log", f"{folder}/hard.log"):
            status, out, errors = run_weir("replay", str(log), again, config=text)
            self.assertEqual((status, out, errors),
                             (2, "", f"weir: {log} and {again} are the same file, so each request would be counted twice; name it once\n"))
        self.assertEqual(run_weir("replay", str(log), f"{folder}/copy.log", config=text)[0], 0)

    def test_error_for_a_log_without_the_replay_field_says_which_fields_to_configure(self):
        folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-test-")))
        (folder / "weir.toml").write_text(config(1))
        (folder / "access.log").write_text('{"time":"2026-02-20T10:00:00.000042Z"}\n')
        status, out, errors = run_weir("replay", "--config", str(folder / "weir.toml"), str(folder / "access.log"))
        self.assertEqual(status, 1)
        self.assertIn('fields = ["usual", "replay"]', errors)
        self.assertIn("1 line left out", out)
        self.assertEqual(run_weir("replay", "--config", str(folder / "weir.toml"), str(folder / "none.log"))[0], 1)


if __name__ == "__main__":
    main()
