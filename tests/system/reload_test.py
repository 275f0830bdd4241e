#!/usr/bin/env python3
"""Reloads of the configuration while weir runs. Counts and positions in a queue are kept."""

import signal
import threading
import time

from harness import PATIENCE, Client, TestCase, Upstream, Weir, answer, closed_port, config, eventually, get, main, rule

MANY = 1000  # the maximum number of rules; weir distinguishes 2048 rules, including former rules


class ReloadTestCase(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, files=None, **given):
        return self.start(Weir(config(self.upstream.port, **given), files))

    def write(self, weir, text):
        """Replaces the file as a whole."""
        (weir.folder / "weir.toml.new").write_text(text)
        (weir.folder / "weir.toml.new").rename(weir.folder / "weir.toml")

    def reload(self, weir, text, result="ok"):
        before = weir.metric("weir_reloads_total", result=result)
        self.write(weir, text)
        weir.signal(signal.SIGHUP)
        eventually(lambda: weir.metric("weir_reloads_total", result=result) == before + 1, f"the reload is {result}")

    def change(self, weir, **given):
        self.reload(weir, config(self.upstream.port, **given))

    def remaining(self, response):
        return int(response["x-ratelimit-remaining"])


class ReloadedRules(ReloadTestCase):
    def test_faulty_file_changes_nothing_and_all_its_mistakes_are_reported(self):
        weir = self.weir(rules=rule(limit="1/day", burst=5))
        self.assertEqual(self.remaining(weir.get()), 4)
        self.reload(weir, config(self.upstream.port, rules=rule(limit="lots") + rule("other", colour="1")), "failed")
        weir.wait_for(r'error reload: .*weir\.toml:\d+: rule\[per-ip\]\.limit: .*lots')
        weir.wait_for(r'error reload: .*weir\.toml:\d+: rule\[other\]\.colour: ')
        weir.wait_for("error reload: failed; the running configuration is unchanged")
        self.assertEqual(self.remaining(weir.get()), 3)
        self.assertEqual(weir.metric("weir_config_last_reload_successful"), 0)
        self.change(weir, rules=rule(limit="1/day", burst=5))
        self.assertEqual(weir.metric("weir_config_last_reload_successful"), 1)
        self.assertAlmostEqual(weir.metric("weir_config_last_reload_timestamp_seconds"), time.time(), delta=60)

    def test_file_with_a_change_that_needs_a_restart_is_rejected(self):
        weir = self.weir(rules=rule(limit="1/day", burst=5))
        text = config(self.upstream.port, rules=rule(limit="1/day", burst=9), state="memory = { max_keys = 77 }")
        self.reload(weir, text, "failed")
        weir.wait_for(r"weir\.toml: state\.memory\.max_keys: found 77; weir runs with 1000000, "
                      "but this cannot change while weir runs; restart weir to change it")
        self.assertEqual(self.remaining(weir.get()), 4)

    def test_reload_that_is_rejected_for_too_many_rules_in_use_changes_nothing(self):
        def renamed(prefix):
            """Returns a configuration with as many rules as are possible, with other names. Only the first one applies to "/"."""
            return config(self.upstream.port, rules="".join(
                rule(f"{prefix}{i}", limit="1/day", burst=5, key='["ip"]', match=f'{{ path = "/{i or ""}" }}') for i in range(MANY)))

        weir = self.start(Weir(renamed("a")))
        for before, after in zip("ab", "bc"):  # an open request keeps each earlier configuration in use
            client = self.enterContext(weir.connect())
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
            eventually(lambda name=f"{before}0": weir.metric("weir_decisions_total", rule=name, outcome="admitted") == 1,
                       "the request is under way")
            self.reload(weir, renamed(after), "failed" if after == "c" else "ok")
        with Client(weir.admin) as client:
            told = client.request("POST", "/api/reload")
        self.assertEqual(told.status, 422)
        self.assertIn(b"too many rules", told.body)
        self.assertEqual(weir.get().status, 200)

    def test_counters_of_a_removed_rule_are_not_shown_for_another_rule(self):
        weir = self.weir(rules=rule(limit="1/day", burst=5))
        other = f'\n[[upstream]]\nname = "{{}}"\nservers = ["127.0.0.1:{closed_port()}"]\n' \
                '[[route]]\nmatch = {{ path = "/other" }}\nupstream = "{}"\n'
        text = config(self.upstream.port, rules=rule(limit="1/day", burst=5))
        head, route, rest = text.partition("[[route]]")
        self.reload(weir, head + other.format("old", "old") + route + rest)
        self.assertEqual(weir.get("/other").status, 502)
        self.assertGreater(weir.metric("weir_upstream_failures_total", upstream="old"), 0)
        self.reload(weir, text)
        self.reload(weir, head + other.format("new", "new") + route + rest)
        self.assertEqual(weir.metric("weir_upstream_failures_total", upstream="new"), 0)
        self.assertEqual(weir.metric("weir_upstream_errors_total", upstream="new"), 0)

    def test_admin_page_returns_the_result_of_a_reload(self):
        weir = self.weir()

        def ask(method="POST"):
            with Client(weir.admin) as client:
                return client.request(method, "/api/reload")
        self.assertEqual(ask("GET").status, 405)
        self.write(weir, config(self.upstream.port, rules=rule("fresh")))
        self.assertEqual((ask().status, weir.metric("weir_reloads_total", result="ok")), (200, 1))
        self.write(weir, config(self.upstream.port, rules=rule("fresh", "2/day")))
        changes = ask().json()["changes"]
        self.assertEqual(changes[0], 'rule "fresh" has other limits: its clients keep the share that they have used')
        self.assertTrue(any(line.startswith("now: ") and "2/day" in line for line in changes), changes)
        self.write(weir, config(self.upstream.port, rules=rule("fresh", "2/day", mode='"shadow"')))
        self.assertIn("shadow", "".join(ask().json()["changes"]))
        answers = "".join(f'[[route]]\nmatch = {{ path = "/{name}" }}\nrespond = {{ status = 200 }}\n' for name in "abc")
        self.write(weir, config(self.upstream.port, routes=answers, rules=rule("fresh", "3/day")))
        self.assertEqual(ask().status, 200)
        self.write(weir, config(self.upstream.port, routes=answers, rules=rule("fresh", "4/day")))
        changes = ask().json()["changes"]
        self.assertEqual([len([line for line in changes if limit in line]) for limit in ("3/day", "4/day")], [1, 1], changes)
        self.write(weir, config(self.upstream.port, rules=rule(limit="lots")))
        refusal = ask()
        self.assertEqual(refusal.status, 422)
        self.assertIn("rule[per-ip].limit", refusal.json()["mistakes"][0])

    def test_reordered_rules_keep_their_counts(self):
        a, b = rule("a", "1/day", burst=5, key='["ip"]'), rule("b", "1/day", burst=50, key='["ip"]')
        weir = self.weir(rules=a + b)
        self.statuses(weir.port, 3)
        self.change(weir, rules=b + rule("c", "1/day", burst=100) + a)
        response = weir.get()
        self.assertEqual(self.remaining(response), 1)
        self.assertIn('"a";q=5', response["ratelimit-policy"])
        for name, seen in (("a", 4), ("b", 4), ("c", 1)):
            self.await_metric(weir, seen, "weir_decisions_total", rule=name, outcome="admitted")

    def test_changed_limit_keeps_the_percentage_that_is_used(self):
        weir = self.weir(rules=rule("r", "1/day", burst=10, key='["ip"]')
                         + rule("w", "100/day", algorithm='"fixed_window"', key="[]"))
        self.statuses(weir.port, 6)
        self.change(weir, rules=rule("r", "1/day", burst=20, key='["ip"]')
                    + rule("w", "100/day", algorithm='"fixed_window"', key="[]"))
        weir.wait_for('info reload: rule "r" has other limits: its clients keep the share')
        self.assertEqual(self.remaining(weir.get()), 7)
        self.change(weir, rules=rule("r", "1/day", burst=10, key='["ip"]'))
        self.assertEqual(self.statuses(weir.port, 5), [200, 200, 200, 429, 429])

    def test_limit_that_is_changed_and_changed_back_costs_a_client_at_most_one_unit(self):
        def rules(limit):
            return (rule("window", f"{limit}/3000day", key='["ip"]', algorithm='"fixed_window"')
                    + rule("log", f"{limit}/day", key='["ip"]', algorithm='"sliding_log"')
                    + rule("bucket", "1/day", key='["ip"]', burst=limit))

        def used(weir, limit):
            return [limit - get(weir.admin, f"/api/keys?rule={name}&key=127.0.0.1").json()["limits"][0]["remaining"]
                    for name in ("window", "log", "bucket")]

        for count, back in ((60, [60, 60, 60]), (61, [62, 62, 61]), (1, [2, 2, 1])):
            weir = self.weir(rules=rules(100))
            self.statuses(weir.port, count)
            self.change(weir, rules=rules(50))
            self.assertEqual(used(weir, 50), [(count + 1) // 2] * 3)
            self.change(weir, rules=rules(100))
            self.assertEqual(used(weir, 100), back)

    def test_changed_tier_leaves_other_tiers_unchanged(self):
        def rules(pro):
            return rule("r", "1/day", burst=10, key='["api_key"]',
                        tiers=f'{{ pro = {{ limit = "1/day", burst = {pro} }} }}')
        keys = '[[key]]\nkey = "p"\ntier = "pro"\n[[key]]\nkey = "f"\n'
        weir = self.weir({"keys.toml": keys}, client='keys = "keys.toml"', rules=rules(20))
        self.assertEqual(self.remaining(weir.get("/", x_api_key="f")), 9)
        self.assertEqual(self.remaining(weir.get("/", x_api_key="p")), 19)
        self.change(weir, client='keys = "keys.toml"', rules=rules(40))
        self.assertEqual(self.remaining(weir.get("/", x_api_key="f")), 8)
        self.assertEqual(self.remaining(weir.get("/", x_api_key="p")), 37)

    def test_changes_of_the_keys_file_are_logged(self):
        key = '[[key]]\nkey = "p"\nuser = "paula"\n'
        weir = self.weir({"keys.toml": key + '[[key]]\nkey = "q"\n'}, client='keys = "keys.toml"', rules=rule())
        for keys, told in (
            (key, ["info reload: no longer: keys file with 2 keys, unknown keys are anonymous",
                   "info reload: now: keys file with 1 key, unknown keys are anonymous"]),
            (key.replace("paula", "pia"), ["info reload: now: the keys file has other keys, or says other things of them"]),
            ("# all comments\n", ["info reload: now: keys file with 0 keys, unknown keys are anonymous",
                                  r"warn.* \[client\] keys names a file without any \[\[key\]\]: no API key is known"]),
        ):
            (weir.folder / "keys.toml").write_text(keys)
            self.change(weir, client='keys = "keys.toml"', rules=rule())
            for line in told:
                weir.wait_for(line)

    def test_overrides_keep_their_counts_if_another_override_is_added_before_them(self):
        def overrides(*paths):
            return "[" + ", ".join(f'{{ match = {{ path = "{path}" }}, limit = "5/day", burst = 5 }}' for path in paths) + "]"

        weir = self.weir(rules=rule(limit="9/day", burst=9, overrides=overrides("/a", "/b")))
        self.assertEqual([self.remaining(weir.get(path)) for path in ("/a", "/a", "/b")], [4, 3, 4])
        self.change(weir, rules=rule(limit="9/day", burst=9, overrides=overrides("/new", "/b", "/a")))
        self.assertEqual([self.remaining(weir.get(path)) for path in ("/a", "/b", "/new", "/other")], [2, 3, 4, 8])

    def test_rule_with_a_new_name_does_not_get_the_counts_of_a_removed_rule(self):
        weir = self.weir(rules=rule("old", "1/day", burst=5))
        self.statuses(weir.port, 3)
        self.change(weir)
        weir.wait_for('info reload: rule "old" removed')
        eventually(lambda: weir.metric("weir_keys") == 0, "the key is forgotten")
        self.change(weir, rules=rule("new", "1/day", burst=5))
        self.assertEqual(weir.metric("weir_decisions_total", rule="new"), 0)
        self.assertEqual(self.remaining(weir.get()), 4)
        self.change(weir, rules=rule("old", "1/day", burst=5))
        self.assertEqual(self.remaining(weir.get()), 4)
        self.await_metric(weir, 1, "weir_decisions_total", rule="old")

    def test_rule_with_a_changed_algorithm_starts_with_an_empty_count_and_is_logged(self):
        weir = self.weir(rules=rule("r", "1/day", burst=5))
        self.statuses(weir.port, 5)
        self.change(weir, rules=rule("r", "7/day", algorithm='"sliding_log"'))
        weir.wait_for('info reload: rule "r" has another algorithm: its clients start with an empty counter')
        self.assertEqual(self.remaining(weir.get()), 6)

    def test_queued_requests_keep_their_places_over_a_reload(self):
        queue = rule("q", "5/s", algorithm='"leaky_bucket"', queue=50, key="[]")
        weir = self.weir(rules=queue)
        order, threads = [], []

        def ask(number):
            self.assertEqual(weir.get(f"/{number}").status, 200)
            order.append(number)

        for number in range(6):
            threads.append(threading.Thread(target=ask, args=(number,)))
            threads[-1].start()
            self.await_metric(weir, number + 1, "weir_decisions_total", rule="q")
        self.change(weir, rules=rule("other", "100/s") + queue)
        ask(6)
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(order, list(range(7)))

    def test_permits_are_released_after_the_concurrency_limit_changed(self):
        held, gate = threading.Semaphore(0), threading.Event()

        def concurrency(limit):
            return f'[[rule]]\nname = "c"\nalgorithm = "concurrency"\nlimit = {limit}\n'

        def reply(exchange):
            if exchange.target == "/held":
                held.release()
                gate.wait(PATIENCE)
            exchange.send(answer())

        self.upstream.reply = reply
        weir = self.weir(rules=concurrency(2))
        threads = [threading.Thread(target=weir.get, args=("/held",)) for _ in range(2)]
        for thread in threads:
            thread.start()
            held.acquire(timeout=PATIENCE)
        self.assertEqual(weir.get().status, 429)
        self.change(weir, rules=concurrency(3))
        self.assertEqual(weir.get().status, 200)
        self.change(weir, rules=concurrency(1))
        self.assertEqual(weir.get().status, 429)
        gate.set()
        for thread in threads:
            thread.join(PATIENCE)
        eventually(lambda: weir.get().status == 200, "both permits are released")


class ReloadedAlgorithms(ReloadTestCase):
    """A rule changes its algorithm while requests are in progress."""

    def setUp(self):
        super().setUp()
        self.held, self.gates, self.upstream.reply = threading.Semaphore(0), {}, self.reply

    def reply(self, exchange):
        """Responds to /hold/WAVE when the test releases WAVE, and to /fail with an error."""
        if exchange.target.startswith("/hold/"):
            self.held.release()
            self.gates[exchange.target].wait(PATIENCE)
        exchange.send(answer(status="401 Unauthorized") if exchange.target == "/fail" else answer())

    def hold(self, weir, wave, count):
        """Starts this number of requests, which the upstream does not answer yet. Returns a function that ends all of them."""
        path = f"/hold/{wave}"
        gate = self.gates.setdefault(path, threading.Event())
        threads = [threading.Thread(target=weir.get, args=(path,), daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
            self.assertTrue(self.held.acquire(timeout=PATIENCE), "admitted")

        def end():
            before = weir.metric("weir_requests_total", code="200")
            gate.set()
            for thread in threads:
                thread.join(PATIENCE)
            eventually(lambda: weir.metric("weir_requests_total", code="200") >= before + count, "the requests have ended")
        return end

    def concurrency(self, limit=4):
        return f'[[rule]]\nname = "c"\nkey = ["ip"]\nalgorithm = "concurrency"\nlimit = {limit}\n'

    def test_refund_of_a_charge_by_the_former_algorithm_does_not_change_the_new_count(self):
        def failures(algorithm):
            return rule("login", "5/3000day", algorithm=f'"{algorithm}"', key='["ip"]', charge='{ status = ["401"] }')

        weir = self.weir(rules=failures("fixed_window"))
        end = self.hold(weir, "first", 4)
        self.change(weir, rules=failures("sliding_log"))
        self.change(weir, rules=failures("fixed_window"))
        self.assertEqual(self.statuses(weir.port, 6, "/fail"), [401] * 5 + [429])
        end()
        self.assertEqual(self.statuses(weir.port, 2, "/fail"), [429] * 2)

    def places_after(self, *between, last):
        """Starts four requests, reloads once or twice, and starts four more requests. When the first four requests end, they must
        release no permits of the later four."""
        weir = self.weir(rules=self.concurrency())
        end_old = self.hold(weir, "old", 4)
        self.assertEqual(weir.get().status, 429)
        for rules in (*between, last):
            self.change(weir, rules=rules)
        end_new = self.hold(weir, "new", 4)
        self.assertEqual(weir.get().status, 429, "four permits of the new limit are in use")
        end_old()
        self.assertEqual(weir.get().status, 429, "the four permits are still in use")
        end_new()
        self.hold(weir, "last", 4)()
        self.assertEqual(weir.get().status, 200)

    def test_permit_of_the_former_algorithm_releases_no_permit_of_the_new_algorithm(self):
        self.places_after(last=self.concurrency().replace('"concurrency"', '"adaptive_concurrency"').replace("limit = 4", "min = 4\nmax = 4"))

    def test_permit_taken_before_the_algorithm_was_changed_and_changed_back_releases_no_new_permit(self):
        self.places_after(rule("c", "1000/s", key='["ip"]'), last=self.concurrency())


if __name__ == "__main__":
    main()
