#!/usr/bin/env python3
"""The limits of docs/guides/behind-envoy.md and behind-istio.md. The tests ask weir as Envoy does, and check which rule limits each
descriptor. They also check the limits that the guide has translated from envoyproxy/ratelimit."""

import re

import yaml

from documents import SECRETS, TREE, blocks, is_whole, on_free_ports
from harness import Redis, TestCase, Weir, main, run_weir, together
from rls_client import DAY, MINUTE, OK, OVER_LIMIT, RlsClient, fields_of, insecure

PAGE = TREE / "docs/guides/behind-envoy.md"


def configurations():
    """Returns the complete configurations of the guide: its main one, the one for token budgets, and the one that replaces
    envoyproxy/ratelimit."""
    return [block.text for block in blocks(PAGE, "toml") if is_whole(block) and "[[rule]]" in block.text]


class Guide(TestCase):
    def client(self, text, change=lambda text: text, **more):
        redis = self.start(Redis()) if 'store = "redis"' in text else None
        self.weir = self.start(Weir(change(on_free_ports(text, "", redis)), environment=SECRETS))
        return RlsClient(self.start(insecure(f"127.0.0.1:{self.weir.port}")), **more)

    def codes(self, client, count, *descriptors):
        return [client.code("edge", *descriptors) for _ in range(count)]

    def names(self, answer):
        """Returns the rule that limits each descriptor; empty: none."""
        return [status.current_limit.name for status in answer.statuses]


class Limits(Guide):
    report = {"kind": "report", "api_key": "ann-1"}
    address = {"remote_address": "203.0.113.7"}

    def setUp(self):
        self.edge = self.client(configurations()[0])

    def test_each_descriptor_is_decided_by_its_own_rule(self):
        answer = self.edge.ask("edge", self.address, self.report)
        self.assertEqual((answer.overall_code, self.names(answer)), (OK, ["per-address", "reports"]))
        limit = answer.statuses[1].current_limit
        self.assertEqual((limit.requests_per_unit, limit.unit, answer.statuses[1].limit_remaining), (5, DAY, 4))

    def test_refusal_names_the_descriptor_and_says_when_to_retry(self):
        self.assertEqual(self.codes(self.edge, 5, self.address, self.report), [OK] * 5)
        refused = self.edge.ask("edge", self.address, self.report)
        self.assertEqual((refused.overall_code, [status.code for status in refused.statuses]), (OVER_LIMIT, [OK, OVER_LIMIT]))
        fields = fields_of(refused)
        self.assertTrue(1 <= int(fields["retry-after"]) <= 86400, fields)
        self.assertEqual((fields["x-ratelimit-limit"], fields["x-ratelimit-remaining"]), ("5", "0"))
        self.assertIn(b"rate_limit_exceeded", refused.raw_body)

    def test_admitted_answer_has_the_rate_limit_fields(self):
        fields = fields_of(self.edge.ask("edge", self.address, self.report))
        self.assertEqual((fields["x-ratelimit-limit"], fields["x-ratelimit-remaining"]), ("5", "4"))

    def test_parallel_calls_get_exactly_the_limit(self):
        codes = together(12, lambda _: self.edge.code("edge", self.address, self.report))
        self.assertEqual(sorted(codes), [OK] * 5 + [OVER_LIMIT] * 7)

    def test_order_of_the_entries_does_not_matter(self):
        turned = dict(reversed(self.report.items()))
        self.assertEqual(self.codes(self.edge, 3, self.report) + self.codes(self.edge, 3, turned), [OK] * 5 + [OVER_LIMIT])

    def test_rule_applies_only_to_descriptors_with_exactly_its_keys(self):
        self.assertEqual(self.names(self.edge.ask("edge", {**self.report, "plan": "free"}, {"kind": "report"}, {"kind": "page", "api_key": "a"})),
                         ["", "", ""])
        self.assertEqual(self.names(self.edge.ask("edge", {**self.address, "path": "/"})), [""])

    def test_other_domains_have_no_limit(self):
        self.assertEqual(self.names(self.edge.ask("other", self.address, self.report)), ["", ""])

    def test_refused_call_charges_nothing(self):
        self.codes(self.edge, 20, self.address, self.report)
        left = self.edge.ask("edge", self.address).statuses[0].limit_remaining
        self.assertGreaterEqual(left, 100 - 6, "5 calls that were admitted, and this one")

    def test_call_is_charged_its_cost(self):
        self.assertEqual(self.edge.code("edge", self.report, hits=4), OK)
        self.assertEqual(self.edge.code("edge", self.report, hits=2), OVER_LIMIT)
        self.assertEqual(self.edge.code("edge", {**self.report, "hits": 1}), OK)

    def test_command_of_the_guide_explains_a_call(self):
        command = re.search(r"^    (weir explain .*)$", PAGE.read_text(), re.M)[1]
        words = command.replace("--config /etc/weir/weir.toml", f"--admin 127.0.0.1:{self.weir.admin}").split()[1:]
        self.assertRegex(run_weir(*words)[1], "(?s)per-address .*admits.*answer +200")

    def test_refused_call_charges_its_other_descriptors_if_descriptors_is_each(self):
        """descriptors = "each": refused calls charge the other descriptors, as with Envoy's own service."""
        each = self.client(configurations()[0], lambda text: text.replace('serves = "rls"', 'serves = "rls"\ndescriptors = "each"'))
        self.assertEqual(self.codes(each, 50, self.address, self.report), [OK] * 5 + [OVER_LIMIT] * 45)
        self.assertLess(each.ask("edge", self.address).statuses[0].limit_remaining, 90)


class TokenBudgets(Guide):
    def test_request_that_exceeds_the_budget_is_completed_and_the_next_one_is_refused(self):
        client = self.client(configurations()[1])
        check = {"user": "ann", "hits": 0}
        for tokens in (60_000, 70_000):
            self.assertEqual(self.codes(client, 3, check), [OK] * 3)
            self.assertEqual(client.code("edge", {"user": "ann", "hits": tokens}), OK)
        refused = client.ask("edge", check)
        self.assertEqual((refused.overall_code, self.names(refused)), (OVER_LIMIT, ["tokens"]))
        self.assertTrue(1 <= int(fields_of(refused)["retry-after"]) <= 86400)


class FromRatelimit(Guide):
    def setUp(self):
        self.edge = self.client(configurations()[2])

    def test_named_address_has_its_own_limit(self):
        for address, limit in (("198.51.100.1", 100), ("203.0.113.7", 1000)):
            status = self.edge.ask("edge", {"remote_address": address}).statuses[0]
            self.assertEqual((status.current_limit.requests_per_unit, status.current_limit.unit), (limit, MINUTE))
            self.assertEqual(status.limit_remaining, limit - 1)

    def test_nested_descriptors_limit_each_combination_of_values(self):
        marketing = {"message_type": "marketing", "to_number": "2061111111"}
        self.assertEqual(self.codes(self.edge, 6, marketing), [OK] * 5 + [OVER_LIMIT])
        self.assertEqual(self.codes(self.edge, 1, {**marketing, "to_number": "2062222222"}), [OK])
        self.assertEqual(self.codes(self.edge, 9, {**marketing, "message_type": "alarm"}), [OK] * 9)

    def test_shadow_rule_refuses_nothing_and_counts_what_it_would_refuse(self):
        self.assertEqual(self.codes(self.edge, 60, {"path": "/files/a"}), [OK] * 60)
        self.assertGreater(self.weir.metric("weir_decisions_total", rule="files", outcome="shadow_refused"), 0)

    def test_configurations_of_ratelimit_and_of_weir_name_the_same_descriptors(self):
        """The example of the old service in the guide names the keys and limits of the rules."""
        text = re.search(r"^This configuration of envoyproxy/ratelimit\n\n(.*?)\n\n(?=is this)", PAGE.read_text(), re.M | re.S)[1]
        old = yaml.safe_load(re.sub(r"^    ", "", text, flags=re.M))
        self.assertEqual(old["domain"], "edge")
        for descriptor in old["descriptors"]:
            key = descriptor["key"]
            with self.subTest(key):
                self.assertTrue(f"descriptor:{key}" in configurations()[2] or f"{key} = " in configurations()[2])


class Token(Guide):
    def test_asker_without_the_token_is_refused(self):
        token = SECRETS["WEIR_ASK_TOKEN"]
        client = self.client(configurations()[0], lambda text: text.replace('serves = "rls"', f'serves = "rls"\ntoken = "{token}"'),
                             metadata=[("authorization", f"Bearer {token}")])
        self.assertEqual(client.code("edge", {"remote_address": "203.0.113.7"}), OK)
        with self.assertRaisesRegex(Exception, "UNAUTHENTICATED"):
            client.ask("edge", {"remote_address": "203.0.113.7"}, metadata=[("authorization", "Bearer wrong")])
        self.assertEqual(self.weir.metric("weir_decide_denied_total"), 1)


class Istio(Guide):
    def test_weir_decides_calls_with_the_configuration_of_the_istio_guide(self):
        page = (TREE / "docs/guides/behind-istio.md").read_text()
        manifest = next(document for block in re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S) for document in yaml.safe_load_all(block)
                        if document["kind"] == "ConfigMap")
        client = self.client(manifest["data"]["weir.toml"], metadata=[("authorization", f"Bearer {SECRETS['WEIR_ASK_TOKEN']}")])
        answer = client.ask("gateway", {"remote_address": "203.0.113.7"}, {"kind": "report", "api_key": "ann-1"})
        self.assertEqual((answer.overall_code, self.names(answer)), (OK, ["per-address", "reports"]))


if __name__ == "__main__":
    main()
