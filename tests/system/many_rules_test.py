#!/usr/bin/env python3
"""A configuration with as many rules as are possible, of which few apply to a request."""

import json
import signal
import tempfile

from harness import TestCase, Upstream, Weir, config, eventually, main, rule, run_weir
from lineage import Upgrade
from upgrade_test import Clients

MOST = 1000
MOST_AT_ONCE = 32


def many(limit="2/day", others=None, **more):
    """Returns a rule for each tenant, each with its own path. `others`: maps a tenant to another limit."""
    return "".join(rule(f"tenant-{i}", (others or {}).get(i, limit), key='["ip"]', match=f'{{ path = "/tenants/{i}/*" }}', **more)
                   for i in range(MOST))


class ManyRules(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, rules):
        return self.start(Weir(config(self.upstream.port, rules=rules)))

    def test_each_of_many_rules_limits_its_own_requests(self):
        weir = self.weir(many())
        for tenant in (0, 1, 10, 255, 256, 999):
            self.assertEqual(self.statuses(weir.port, 3, f"/tenants/{tenant}/a"), [200, 200, 429], tenant)
        self.assertEqual(self.statuses(weir.port, 3, "/tenants"), [200] * 3, "no rule applies")
        self.assertEqual(weir.metric("weir_decisions_total", rule="tenant-256", outcome="refused"), 1)

    def test_a_reload_that_changes_many_rules_keeps_their_counts(self):
        weir = self.weir(many())
        self.assertEqual(self.statuses(weir.port, 1, "/tenants/777/a"), [200])
        (weir.folder / "weir.toml").write_text(config(self.upstream.port, rules=many("4/day")))
        weir.signal(signal.SIGHUP)
        self.await_metric(weir, 1, "weir_reloads_total", result="ok")
        self.assertEqual(self.statuses(weir.port, 3, "/tenants/777/a"), [200, 200, 429], "half of the limit was used before")
        self.assertEqual(self.statuses(weir.port, 5, "/tenants/778/a"), [200] * 4 + [429])

    def test_restart_with_a_snapshot_keeps_the_counts_of_a_thousand_rules(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="weir-state-"))
        text = config(self.upstream.port, rules=many(), state=f'memory = {{ snapshot = "{folder}/weir.state" }}')
        with Weir(text) as weir:
            for tenant in (0, 255, 256, 999):
                self.assertEqual(self.statuses(weir.port, 2, f"/tenants/{tenant}/a"), [200, 200], tenant)
            weir.signal(signal.SIGTERM)
            self.assertEqual(weir.wait(), 0)
        weir = self.start(Weir(text))
        for tenant in (0, 255, 256, 999):
            self.assertEqual(self.statuses(weir.port, 1, f"/tenants/{tenant}/a"), [429], tenant)
        self.assertEqual(self.statuses(weir.port, 1, "/tenants/998/a"), [200])

    def test_weir_top_shows_the_rule_that_refuses_among_a_thousand(self):
        weir = self.weir(many())
        self.statuses(weir.port, 3, "/tenants/999/a")
        _, shown, _ = run_weir("top", "--json", "--admin", f"127.0.0.1:{weir.admin}")
        rules = json.loads(shown)["rules"]
        self.assertEqual(len(rules), MOST)
        self.assertEqual([each["rule"] for each in rules if each["refused"]], ["tenant-999"])

    def test_request_to_which_too_many_rules_apply_gets_503(self):
        headers = "".join(rule(f"rule-{i}", key='["ip"]', match=f'{{ headers = {{ X-Kind = "~{i % 2}" }} }}') for i in range(2 * MOST_AT_ONCE + 2))
        weir = self.weir(headers)
        self.assertEqual(self.statuses(weir.port, 2, "/", **{"X-Kind": "0"}), [503, 503])
        self.assertEqual(weir.metric("weir_rules_exceeded_total"), 2)
        self.assertEqual(weir.metric("weir_keys"), 0, "a refused request is charged to no rule")

    def test_shadow_rule_never_causes_503(self):
        shadow = rule("shadow", key='["ip"]', match='{ headers = { X-Kind = "a" } }', mode='"shadow"')
        weir = self.weir(shadow + "".join(rule(f"rule-{i}", "3/day", key='["ip"]') for i in range(MOST_AT_ONCE)))
        self.assertEqual(self.statuses(weir.port, 2, "/", **{"X-Kind": "a"}), [200, 200])
        self.assertEqual(weir.metric("weir_rules_exceeded_total"), 0)
        self.assertEqual(weir.metric("weir_decisions_total", rule="rule-31", outcome="admitted"), 2)
        self.assertEqual(weir.metric("weir_decisions_total", rule="shadow"), 0, "no place was left for it")


class ManyRulesUnderLoad(Upgrade):
    def test_upgrades_and_a_reload_under_load_keep_the_counts_of_a_thousand_rules(self):
        def reload():
            weir.write(config(self.upstream.port, rules=many("500/day", dict.fromkeys(range(200, 800), "1000/day"), **window),
                              routes=self.FREE))
            weir.signal(signal.SIGHUP)
            weir.wait_for("was reloaded")

        window = {"algorithm": '"fixed_window"'}
        weir = self.weir(rules=many("500/day", **window), routes=self.FREE)
        quiet = {0: 498, 255: 997, 256: 997, 999: 498}  # for each tenant, the units of its limit that two requests leave
        for tenant in quiet:
            self.assertEqual(weir.get(f"/tenants/{tenant}/a").status, 200)
        busy = [Clients(weir.port, kept=2, fresh=1, path=f"/tenants/{tenant}/a") for tenant in (1, 998)]
        for step in (weir.upgrade, reload, weir.upgrade):
            for each in busy:
                each.went_on(50)
            step()
        for each in busy:
            eventually(lambda: 429 in each.statuses, "the limit is reached")  # noqa: B023
            each.went_on(20)
        for each in busy:
            each.stop()
            self.assertEqual((each.faults, each.closed, set(each.statuses)), ([], 0, {200, 429}))
            self.assertEqual(each.statuses.count(200), 500)
        left = {tenant: int(weir.get(f"/tenants/{tenant}/a")["x-ratelimit-remaining"]) for tenant in quiet}
        self.assertEqual(left, quiet)
        self.assertEqual(weir.metric("weir_upgrades_total", result="ok"), 2)


if __name__ == "__main__":
    main()
