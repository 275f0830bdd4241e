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
        text = config(upstream.port, state=f'redis = {{ url = "{redis.url}" }}\nkey_secret = "s"',
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

    def test_dashboard_panels_use_only_existing_metrics(self):
        board = json.loads(BOARD.read_text())
        asked = list(expressions(board["panels"]))
        self.assertGreater(len(asked), 30)
        for title, expression in asked:
            self.assert_told(expression, title)
        for variable in board["templating"]["list"]:
            self.assert_told(variable["query"], variable["name"])

    def test_dashboard_panels_have_valid_promql(self):
        groups = [{"record": f"panel:{number}:check", "expr": expression.replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$rule", ".*")}
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
        said = (DOCKER.parent / "docs" / "metrics.md").read_text()
        self.assertEqual([name for name in sorted(self.names) if f"`{name}" not in said], [])


if __name__ == "__main__":
    main()
