#!/usr/bin/env python3
"""promtool accepts the metrics and rules. The rules and the Grafana panels use only metrics that exist."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

from harness import Client, Redis, TestCase, Upstream, Weir, config, get, main, make_certificate, rule

DOCKER = pathlib.Path(os.environ.get("WEIR_SOURCE", ".")) / "docker"
METRICS = DOCKER.parent / "docs" / "metrics.md"
BOARD = DOCKER / "grafana" / "dashboards" / "weir.json"
RULES = DOCKER / "prometheus" / "weir.rules.yml"
NAME = re.compile(r"\b(?:weir|process)_[a-z0-9_]+\b")
HISTOGRAM_PARTS = re.compile(r"_(bucket|sum|count)$")


def expressions(panels):
    for panel in panels:
        yield from ((panel["title"], target["expr"]) for target in panel.get("targets", ()))
        yield from expressions(panel.get("panels", ()))


class Monitoring(TestCase):
    """Tests a weir whose configuration produces all metrics."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            files = make_certificate(folder)
        redis, upstream = cls.enterClassContext(Redis()), cls.enterClassContext(Upstream())
        jwt = 'user = { claim = "sub" }\njwt = { jwks = "http://127.0.0.1:9/keys", fetch = { allow_http = true } }'
        text = config(upstream.port, client=jwt, state=f'redis = {{ url = "{redis.url}" }}\nkey_secret = "s"',
                      listener='tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }',
                      rules=rule("local", key='["ip"]', messages='"9/s"') + rule("shared", store='"redis"', limit="1000/s", lease='"1%"')
                      + rule("settled", limit="9/s", charge='{ status = "401" }')
                      + '[[alert]]\nrule = "local"\nrefused_above = "9/s"\nwebhook = "http://127.0.0.1:9"\n')
        cls.weir = cls.enterClassContext(Weir(text + '[[listener]]\naddress = "127.0.0.1:0"\n', files))
        with Client(cls.weir.ports[1]) as client:
            cls.status = [client.get("/").status for _ in range(3)]
        cls.page = get(cls.weir.admin, "/metrics").body.decode()
        cls.names = set(re.findall(r"^# TYPE (\S+)", cls.page, re.M))

    def promtool(self, *arguments, **options):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def assert_told(self, expression, where):
        for name in NAME.findall(expression):
            self.assertIn(HISTOGRAM_PARTS.sub("", name) if name not in self.names else name, self.names, where)

    def test_promtool_accepts_the_metrics_page(self):
        self.promtool("check", "metrics", input=self.page)

    def test_promtool_accepts_the_alert_rules(self):
        self.promtool("check", "rules", str(RULES))

    def test_alert_rules_use_only_existing_metrics(self):
        asked = "\n".join(line for line in RULES.read_text().splitlines() if not line.lstrip().startswith(("#", "annotations")))
        self.assertGreater(len(NAME.findall(asked)), 15)
        self.assert_told(asked, RULES.name)

    def test_route_alerts_fire_for_failures_slowness_and_rejected_clients_only(self):
        """Each route has 600 requests a minute. The route "busy" refuses nearly all of them, and no alert may fire for it."""
        asked = {"fine": {"200": 600}, "busy": {"200": 10, "429": 590}, "failing": {"200": 540, "429": 10, "502": 50}, "locked": {"200": 300, "401": 300},
                 "slow": {"200": 600}}
        forwarded = {"fine": 600, "busy": 10, "failing": 590, "locked": 600, "slow": 580}  # for each route, the forwarded requests that end within a second
        series = [(f'weir_requests_total{{instance="a",route="{route}",code="{code}"}}', count) for route, codes in asked.items() for code, count in codes.items()]
        for route, quick in forwarded.items():
            whole = 600 if route == "slow" else quick
            series += [(f'weir_request_seconds_bucket{{instance="a",route="{route}",le="{bound}"}}', count) for bound, count in (("1", quick), ("2.5", whole), ("+Inf", whole))]
            series.append((f'weir_request_seconds_count{{instance="a",route="{route}"}}', whole))
        firing = [{"labels": f'{{alertname="{name}", route="{route}"}}', "value": 1}
                  for name, route in (("WeirRouteFails", "failing"), ("WeirRouteSlow", "slow"), ("WeirRouteUnauthorized", "locked"))]
        self.run_promtool_tests([{"interval": "1m", "input_series": [{"series": name, "values": f"0+{count}x20"} for name, count in series], "promql_expr_test": [
            {"expr": 'count by (alertname, route) (ALERTS{alertname=~"WeirRoute.*",alertstate="firing"})', "eval_time": "18m", "exp_samples": firing}]}])

    def test_alert_on_keys_of_tokens_fires_only_while_no_fetch_succeeds(self):
        counts = {("away", "failed"): 30, ("away", "ok"): 0, ("flaky", "failed"): 1, ("flaky", "ok"): 1, ("fine", "failed"): 0, ("fine", "ok"): 1}
        series = [(f'weir_token_key_fetches_total{{instance="a",url="{url}",outcome="{outcome}"}}', count) for (url, outcome), count in counts.items()]
        self.run_promtool_tests([{"interval": "1m", "input_series": [{"series": name, "values": f"0+{count}x30"} for name, count in series], "promql_expr_test": [
            {"expr": 'count by (url) (ALERTS{alertname="WeirTokenKeysNotFetched",alertstate="firing"})', "eval_time": "28m",
             "exp_samples": [{"labels": '{url="away"}', "value": 1}]}]}])

    def run_promtool_tests(self, tests, rules=RULES):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tests.yml"
            path.write_text(json.dumps({"rule_files": [str(rules.resolve())], "evaluation_interval": "1m", "tests": tests}))
            self.promtool("test", "rules", str(path))

    def test_documented_objective_counts_failed_and_slow_requests(self):
        """The rules in docs/metrics.md: 99.9 % of requests do not fail, and 99 % of forwarded requests end within 250 ms."""
        text = re.search(r"```yaml\n(groups:.*?)```", METRICS.read_text(), re.S).group(1)
        self.assert_told(re.sub(r"route:\S+", "", text), METRICS.name)
        counts = {'weir_requests_total{route="api",code="200"}': 940, 'weir_requests_total{route="api",code="429"}': 5000, 'weir_requests_total{route="api",code="503"}': 60,
                  'weir_request_seconds_bucket{route="api",le="0.25"}': 800, 'weir_request_seconds_bucket{route="api",le="+Inf"}': 1000, 'weir_request_seconds_count{route="api"}': 1000}
        firing = [{"labels": f'{{alertname="{name}", route="api"}}', "value": 1} for name in ("ApiFailsTooOften", "ApiTooSlow")]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "objective.yml"
            path.write_text(text)
            self.run_promtool_tests([{"interval": "1m", "input_series": [{"series": name, "values": f"0+{count}x70"} for name, count in counts.items()], "promql_expr_test": [
                {"expr": "round(route:weir_failed:ratio_rate1h, 0.001)", "eval_time": "65m", "exp_samples": [{"labels": '{route="api"}', "value": 0.06}]},
                {"expr": "round(route:weir_slow:ratio_rate1h, 0.001)", "eval_time": "65m", "exp_samples": [{"labels": '{route="api"}', "value": 0.2}]},
                {"expr": 'count by (alertname, route) (ALERTS{alertstate="firing"})', "eval_time": "65m", "exp_samples": firing}]}], path)

    def test_dashboard_has_panels_of_both_histograms_and_a_route_variable(self):
        board = json.loads(BOARD.read_text())
        asked = "\n".join(expression for _, expression in expressions(board["panels"]))
        self.assertRegex(asked, r'weir_request_seconds_bucket\{instance=~"\$instance",route=~"\$route"\}')
        self.assertIn("by (upstream, le) (rate(weir_upstream_seconds_bucket", asked)
        variables = {variable["name"]: variable["query"] for variable in board["templating"]["list"]}
        self.assertIn('route="', next(line for line in self.page.splitlines() if line.startswith("weir_requests_total{")))
        self.assertEqual(variables["route"], "label_values(weir_requests_total, route)")

    def test_dashboard_panels_use_only_existing_metrics(self):
        board = json.loads(BOARD.read_text())
        asked = list(expressions(board["panels"]))
        self.assertGreater(len(asked), 30)
        for title, expression in asked:
            self.assert_told(expression, title)
        for variable in board["templating"]["list"]:
            self.assert_told(variable["query"], variable["name"])

    def test_dashboard_panels_have_valid_promql(self):
        groups = [{"record": f"panel:{number}:check", "expr": expression.replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$route", ".*").replace("$rule", ".*")}
                  for number, (_, expression) in enumerate(expressions(json.loads(BOARD.read_text())["panels"]))]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "panels.yml"
            path.write_text(json.dumps({"groups": [{"name": "panels", "rules": groups}]}))  # promtool reads YAML; JSON is YAML, too
            self.promtool("check", "rules", str(path))

    def test_dashboard_panels_do_not_overlap(self):
        taken = set()
        for panel in json.loads(BOARD.read_text())["panels"]:
            place = panel["gridPos"]
            cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
            self.assertFalse(taken & cells, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            taken |= cells

    def test_every_metric_is_documented(self):
        said = METRICS.read_text()
        self.assertEqual([name for name in sorted(self.names) if f"`{name}" not in said], [])


if __name__ == "__main__":
    main()
