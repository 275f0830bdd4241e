#!/usr/bin/env python3
"""The admin listener: health, readiness, metrics, rules, and access control."""

import subprocess

from harness import WEIR, Client, TestCase, Upstream, Weir, closed_port, config, eventually, get, main, rule


class Admin(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())
        self.weir = self.start(Weir(config(self.upstream.port, rules=rule(limit="1/day", burst=3, key='["ip"]'))))

    def test_health_and_readiness_pages_answer_200(self):
        self.assertEqual(get(self.weir.admin, "/healthz").status, 200)
        self.assertEqual(get(self.weir.admin, "/readyz").status, 200)

    def test_metrics_count_requests_decisions_and_keys(self):
        self.statuses(self.weir.port, 5, "/some/secret/path", x_api_key="secret-key")
        self.await_metric(self.weir, 3, "weir_requests_total", code="200")
        self.await_metric(self.weir, 2, "weir_requests_total", code="429")
        self.await_metric(self.weir, 3, "weir_decisions_total", rule="per-ip", outcome="admitted")
        self.await_metric(self.weir, 2, "weir_decisions_total", rule="per-ip", outcome="refused")
        self.assertEqual([self.weir.metric("weir_verdicts_total", verdict=verdict) for verdict in ("admitted", "delayed", "refused")], [3, 0, 2])
        self.await_metric(self.weir, 3, "weir_request_seconds_count")
        self.await_metric(self.weir, 2, "weir_local_reply_seconds_count")
        self.await_metric(self.weir, 1, "weir_keys")

    def test_metric_labels_never_contain_data_of_clients(self):
        self.statuses(self.weir.port, 2, "/some/secret/path", x_api_key="secret-key")
        page = get(self.weir.admin, "/metrics")
        self.assertTrue(page["content-type"].startswith("text/plain"))
        self.assertNotIn(b"secret", page.body)

    def test_rules_page_lists_the_rules_as_json(self):
        rules = get(self.weir.admin, "/api/rules")
        self.assertEqual((rules.status, rules["content-type"]), (200, "application/json"))
        self.assertIn("per-ip", rules.body.decode())

    def test_unknown_page_gets_404_and_wrong_method_gets_405(self):
        with Client(self.weir.admin) as client:
            self.assertEqual(client.get("/nowhere").status, 404)
        with Client(self.weir.admin) as client:
            self.assertEqual(client.request("POST", "/metrics").status, 405)

    def test_host_field_of_another_site_is_rejected_if_no_token_is_configured(self):
        self.assertEqual(get(self.weir.admin, "/metrics", host="evil.example").status, 403)
        self.assertEqual(get(self.weir.admin, "/metrics", host=f"localhost:{self.weir.admin}").status, 200)
        self.assertEqual(get(self.weir.admin, "/healthz", host="evil.example").status, 200)

    def test_responses_forbid_caching_embedding_in_frames_and_content_type_sniffing(self):
        answer = get(self.weir.admin, "/api/rules")
        self.assertEqual(answer["cache-control"], "no-store")
        self.assertEqual(answer["x-content-type-options"], "nosniff")
        self.assertEqual(answer["x-frame-options"], "DENY")
        self.assertEqual(answer["referrer-policy"], "no-referrer")
        self.assertTrue(answer["content-security-policy"].startswith("default-src 'none'"))

    def test_changes_made_on_the_admin_page_are_logged_with_their_client_at_every_log_level(self):
        file = self.weir.folder / "weir.toml"
        file.write_text(file.read_text().replace('access = "off"', 'access = "off"\nlevel = "off"'))

        def ask(method, target):
            with Client(self.weir.admin) as client:
                return client.request(method, target).status

        self.weir.get("/")
        self.assertEqual(ask("POST", "/api/reload"), 200)
        self.assertEqual(ask("DELETE", "/api/keys?rule=per-ip&key=127.0.0.1"), 200)
        file.write_text("nonsense")
        self.assertEqual(ask("POST", "/api/upgrade"), 409)
        who = r"warning admin: 127\.0\.0\.1:\d+ "
        self.weir.wait_for(who + "requests a reload")
        self.weir.wait_for(who + "reset a key of rule per-ip: ")
        self.weir.wait_for(who + "requests an upgrade")

    def test_health_command_succeeds_only_if_the_admin_listener_answers(self):
        for port, status in ((self.weir.admin, 0), (closed_port(), 1)):
            done = subprocess.run([WEIR, "health", "--admin", f"127.0.0.1:{port}"], capture_output=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)

    def test_health_command_tells_whether_weir_is_ready(self):
        """weir works but is not ready while it waits for Redis. Without the token it does not say why Redis fails."""
        state = f'redis = {{ url = "redis://127.0.0.1:{closed_port()}", start_wait = "5min" }}'
        waiting = self.start(Weir(config(self.upstream.port, state=state, rules=rule(store='"redis"'))))
        eventually(lambda: "cause" in get(waiting.admin, "/readyz").json(), "weir knows why Redis fails")
        reason = "not ready: waiting for redis before accepting requests (Connection refused)\n"
        for weir, words, status, why in ((self.weir, ["--ready"], 0, ""), (waiting, [], 0, ""), (waiting, ["--ready"], 1, reason)):
            address = f"127.0.0.1:{weir.admin}"
            done = subprocess.run([WEIR, "health", *words, "--admin", address], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (status, why and f"weir: {address}: {why}"))


class AdminToken(TestCase):
    def test_pages_with_data_need_the_token_but_health_and_readiness_pages_do_not(self):
        upstream = self.start(Upstream())
        text = config(upstream.port).replace("[admin]", '[admin]\ntoken = "${TEST_TOKEN}"')
        weir = self.start(Weir(text, environment={"TEST_TOKEN": "right"}))
        self.assertEqual([get(weir.admin, path).status for path in ("/healthz", "/readyz")], [200, 200])
        for path in ("/metrics", "/api/rules", "/nothing"):
            self.assertEqual(get(weir.admin, path).status, 401)
            self.assertEqual(get(weir.admin, path, authorization="Bearer wrong").status, 401)
        self.assertEqual(get(weir.admin, "/metrics", authorization="Bearer right").status, 200)
        said = [get(weir.admin, "/api/access", **sent).body for sent in ({}, {"authorization": "Bearer wrong"},
                                                                         {"authorization": "Bearer right"})]
        self.assertEqual(said, [b'{"admitted":false}', b'{"admitted":false}', b'{"admitted":true}'])
        self.assertEqual(get(weir.admin, "/metrics", host="weir:9900", authorization="Bearer right").status, 200)


if __name__ == "__main__":
    main()
