#!/usr/bin/env python3
"""weir replay of questions. The access log has the values of questions only if its configured fields say so. With them, weir can replay
other rules."""

import json

from ask_client import Asker
from harness import TestCase, Weir, eventually, logged_requests, main, rule, run_weir
from rls_client import OK, OVER_LIMIT, RlsClient, insecure

CONFIG = """
[server]
workers = 2
[[listener]]
address = "127.0.0.1:0"
serves = "decide"
"""
WINDOW = {"algorithm": '"fixed_window"'}
PER_USER = rule("per-user", "100/1000day", key='["descriptor:user"]', **WINDOW)
LOGINS = rule("logins", "2/1000day", key='["descriptor:user"]', match='{ domains = ["edge"], descriptor = { path = "/login" } }', **WINDOW)
ADDRESSES = rule("addresses", "12/1000day", key='["descriptor:place|ip"]', **WINDOW)

BUDGET = rule("budget", "10/1000day", key='["descriptor:user"]', overdraft="true", **WINDOW)
ONCE = rule("once", "6/1000day", key='["descriptor:user"]', match='{ path = "/once" }', **WINDOW)


class QuestionsInTheLog(TestCase):
    def record(self, fields, *rules):
        """Asks 6 times for each of two users. Returns the weir, and its log."""
        weir = self.start(Weir(CONFIG + f'[log]\naccess = "access.log"\nfields = {json.dumps(fields)}\n' + "".join(rules)))
        log = weir.folder / "access.log"
        asker = self.start(Asker(weir.port))
        for number in range(12):
            question = {"ip": "203.0.113.7", "domain": "edge",
                        "attributes": {"user": ("ann", "bob")[number % 2], "path": ("/login", "/a")[number // 6]}}
            asker.decide({**question, "cost": 2} if number == 11 else question)
        eventually(lambda: log.exists() and len(logged_requests(log)) == 12, "every line is written")
        return weir, log

    def replay(self, weir, log, *rules):
        """Returns what a replay under these rules says about each of them."""
        file = weir.folder / "candidate.toml"
        file.write_text(CONFIG + "".join(rules))
        status, out, errors = run_weir("replay", "--config", str(file), "--json", str(log))
        self.assertEqual(status, 0, errors)
        told = json.loads(out)
        return told, {one["rule"]: one for one in told["rules"]}

    def test_values_of_questions_are_logged_only_if_the_field_question_is_configured(self):
        _, log = self.record(["usual", "replay"], PER_USER)
        self.assertFalse(any("question" in line for line in logged_requests(log)))
        self.assertNotIn("ann", log.read_text())

    def test_values_of_keys_are_digests_in_the_log(self):
        _, log = self.record(["question"], PER_USER)
        self.assertNotIn("ann", log.read_text())
        lines = logged_requests(log)
        users = {entry["digest"] for line in lines for entry in line["question"]["descriptors"][0]["entries"] if entry["key"] == "user"}
        paths = {entry["value"] for line in lines for entry in line["question"]["descriptors"][0]["entries"] if entry["key"] == "path"}
        self.assertEqual((len(users), paths, lines[-1]["question"]["cost"]), (2, {"/login", "/a"}, 2))

    def test_replay_applies_new_rules_to_logged_questions(self):
        weir, log = self.record(["replay", "question"], PER_USER)
        told, rules = self.replay(weir, log, PER_USER, LOGINS)
        self.assertEqual((told["requests"], told["newly_refused"]), (12, 2), told)
        self.assertEqual((rules["per-user"]["met"], rules["per-user"]["otherwise"]), (12, 0))
        self.assertEqual((rules["logins"]["met"], rules["logins"]["refused_now"]), (6, 2))
        told, rules = self.replay(weir, log, ADDRESSES)
        self.assertEqual((rules["addresses"]["met"], told["newly_refused"]), (12, 1), "the last question costs 2 units")

    def test_replay_leaves_out_only_rules_that_need_a_hidden_value(self):
        weir, log = self.record(["replay", "question"], PER_USER)
        by_name = rule("ann", "1/1000day", key="[]", match='{ descriptor = { user = "ann" } }', **WINDOW)
        _, rules = self.replay(weir, log, PER_USER, by_name)
        self.assertIn("the value of the descriptor user", rules["ann"]["left_out"])
        self.assertEqual(rules["per-user"]["met"], 12)

    def test_replay_applies_the_same_rules_to_logged_calls_of_envoy_as_weir_does(self):
        text = CONFIG.replace('"decide"', '"rls"')
        weir = self.start(Weir(text + '[log]\naccess = "access.log"\nfields = ["replay", "question"]\n' + PER_USER))
        log = weir.folder / "access.log"
        client = RlsClient(self.start(insecure(f"127.0.0.1:{weir.port}")))
        for _ in range(5):
            self.assertEqual(client.code("edge", {"user": "ann"}, {"user": "ann", "path": "/login"}), OK)
        eventually(lambda: log.exists() and len(logged_requests(log)) == 5, "every line is written")
        told, rules = self.replay(weir, log, PER_USER, LOGINS)
        self.assertEqual((told["newly_refused"], rules["per-user"]["met"], rules["logins"]["met"]), (3, 5, 5), told)
        _, rules = self.replay(weir, log, rule("paths", "9/1000day", key='["descriptor:path"]', **WINDOW))
        self.assertEqual(rules["paths"]["met"], 0, "no descriptor has this key alone")

    def test_replay_leaves_out_new_rules_if_the_log_has_no_values_of_questions(self):
        weir, log = self.record(["replay"], PER_USER)
        _, rules = self.replay(weir, log, PER_USER, LOGINS)
        self.assertIn("the domain", rules["logins"]["left_out"])
        self.assertEqual((rules["per-user"]["met"], rules["per-user"]["otherwise"]), (12, 0))

    def record_overdrafts(self, fields, *rules):
        """Asks three times about 6, 6 and 1 units of a budget of 10. Returns the weir, its log, and what weir has decided."""
        weir = self.start(Weir(CONFIG + f'[log]\naccess = "access.log"\nfields = {json.dumps(fields)}\n' + "".join(rules)))
        log = weir.folder / "access.log"
        asker = self.start(Asker(weir.port))
        allowed = [asker.decide(domain="ai", attributes={"user": "ann"}, path=path, cost=cost)["allowed"]
                   for path, cost in (("/once", 6), ("/once", 6), ("/", 1))]
        eventually(lambda: log.exists() and len(logged_requests(log)) == 3, "every line is written")
        return weir, log, allowed

    def test_replay_charges_refused_questions_to_rules_with_overdraft_as_weir_does(self):
        for fields in (["replay", "question"], ["replay"]):
            with self.subTest(fields):
                weir, log, allowed = self.record_overdrafts(fields, BUDGET, ONCE)
                self.assertEqual(allowed, [True, False, False], "the budget has paid for the second question, too")
                told, rules = self.replay(weir, log, BUDGET, ONCE)
                self.assertEqual((told["newly_admitted"], told["newly_refused"], rules["budget"]["otherwise"]), (0, 0, 0), told)

    def test_replay_charges_an_overdraft_to_its_own_descriptor_if_others_have_none(self):
        weir = self.start(Weir(CONFIG.replace('"decide"', '"rls"') + '[log]\naccess = "access.log"\nfields = ["replay"]\n' + BUDGET))
        log = weir.folder / "access.log"
        client = RlsClient(self.start(insecure(f"127.0.0.1:{weir.port}")))
        for _ in range(2):
            self.assertEqual(client.code("edge", {"user": "ann", "hits": 0}, {"user": "bob", "hits": 5}), OK)
        self.assertEqual([client.code("edge", {"user": user, "hits": 1}) for user in ("ann", "bob")], [OK, OVER_LIMIT])
        eventually(lambda: log.exists() and len(logged_requests(log)) == 4, "every line is written")
        told, rules = self.replay(weir, log, BUDGET)
        self.assertEqual((told["newly_admitted"], told["newly_refused"], rules["budget"]["otherwise"]), (0, 0, 0), told)

    def test_replay_charges_beyond_the_limit_if_the_new_rule_has_overdraft(self):
        weir, log, allowed = self.record_overdrafts(["replay", "question"], BUDGET.replace("overdraft = true", "overdraft = false"))
        self.assertEqual(allowed, [True, False, True])
        told, rules = self.replay(weir, log, BUDGET)
        self.assertEqual((told["newly_admitted"], told["newly_refused"], rules["budget"]["met"]), (1, 1, 3), told)


if __name__ == "__main__":
    main()
