#!/usr/bin/env python3
"""weir import translates Ingresses with annotations of ingress-nginx. A weir with the translation answers as ingress-nginx does."""

import json
import pathlib
import re
import tempfile
import textwrap

from harness import TestCase, Upstream, Weir, main, run_weir

GUIDE = pathlib.Path(__file__).parents[2] / "docs/guides/from-ingress-nginx.md"
PREFIX = "nginx.ingress.kubernetes.io/"


def path(text, kind="Prefix", service="web"):
    return {"path": text, "pathType": kind, "backend": {"service": {"name": service, "port": {"number": 80}}}}


def ingress(name, paths, host="shop.example.com", **annotations):
    """Returns an Ingress. Names of annotations have _ for -."""
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": name, "namespace": "store", "annotations": {PREFIX + key.replace("_", "-"): value for key, value in annotations.items()}},
            "spec": {"ingressClassName": "nginx", "rules": [{"host": host, "http": {"paths": paths}}]}}


class IngressImport(TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="weir-ingress-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.upstream = self.start(Upstream())

    def translated(self, text, name="ingress.yaml"):
        file = self.folder / name
        file.write_text(text)
        status, toml, report = run_weir("import", str(file))
        self.assertEqual(status, 0, report)
        return toml.replace(f"{self.folder}/", ""), report.replace(f"{self.folder}/", "")

    def weir(self, *ingresses):
        """Starts weir with the translation. All Services are the one upstream; 127.0.0.0/8 names clients in X-Forwarded-For."""
        toml, _ = self.translated(json.dumps({"kind": "List", "items": ingresses}), "ingress.json")
        toml = re.sub(r'"[a-z]+\.store\.svc:80"', f'"{self.upstream.address}"', toml).replace("0.0.0.0:80", "127.0.0.1:0")
        toml = toml.replace("127.0.0.1:9900", "127.0.0.1:0")
        client = 'trusted_proxies = ["127.0.0.0/8"]\n'
        toml = toml.replace("[client]\n", "[client]\n" + client) if "[client]" in toml else toml + "\n[client]\n" + client
        return self.start(Weir(toml))

    def ask(self, weir, target, host="shop.example.com", ip="192.0.2.1"):
        with weir.connect() as client:
            return client.request("GET", target, {"Host": host, "X-Forwarded-For": ip})

    def statuses(self, weir, *targets, **more):
        return [self.ask(weir, target, **more).status for target in targets]

    def test_guide_shows_the_translation_of_its_ingress(self):
        page = GUIDE.read_text()
        text, shown = (re.search(rf"^```{kind}\n(.*?)^```", page, re.M | re.S)[1] for kind in ("yaml", "toml"))
        toml, report = self.translated(text)
        self.assertEqual((toml, report), (shown, ""))

    def test_limits_apply_to_each_address_except_listed_addresses(self):
        weir = self.weir(ingress("shop", [path("/")], limit_rpm="1", limit_burst_multiplier="2", limit_whitelist="198.51.100.0/24"))
        self.assertEqual(self.statuses(weir, *"////"), [200, 200, 200, 503])
        self.assertEqual(self.statuses(weir, "/", ip="192.0.2.2"), [200])
        self.assertEqual(self.statuses(weir, *"/////", ip="198.51.100.7"), [200] * 5)

    def test_paths_and_hosts_that_no_ingress_has_get_404(self):
        weir = self.weir(ingress("shop", [path("/api"), path("/only", "Exact")]))
        self.assertEqual(self.statuses(weir, "/api", "/api/x", "/apis", "/only", "/only/x", "/"), [200, 200, 404, 200, 404, 404])
        self.assertEqual(self.statuses(weir, "/api", host="other.example.com"), [404])

    def test_rewritten_path_reaches_the_server(self):
        weir = self.weir(ingress("shop", [path("/api(/|$)(.*)", "ImplementationSpecific")], rewrite_target="/app/$2"))
        self.assertEqual(self.statuses(weir, "/api/a/b?c=d", "/API/x", "/api", "/else"), [200, 200, 200, 404])
        self.assertEqual([exchange.target for exchange in self.upstream.exchanges], ["/app/a/b?c=d", "/app/x", "/app/"])

    def test_only_addresses_in_the_listed_ranges_are_admitted(self):
        weir = self.weir(ingress("shop", [path("/")], whitelist_source_range="192.0.2.0/24", denylist_source_range="192.0.2.9"))
        self.assertEqual([self.statuses(weir, "/", ip=ip)[0] for ip in ("192.0.2.1", "192.0.2.9", "198.51.100.1")], [200, 403, 403])

    def test_requests_to_an_ingress_that_demands_credentials_get_403_and_other_ingresses_work(self):
        weir = self.weir(ingress("inner", [path("/inner")], auth_url="https://auth.example"), ingress("outer", [path("/outer")]))
        self.assertEqual(self.statuses(weir, "/inner", "/inner/x", "/outer"), [403, 403, 200])

    def test_pages_of_another_origin_may_read_answers_and_preflights_are_answered(self):
        weir = self.weir(ingress("shop", [path("/")], enable_cors="true", cors_allow_origin="https://app.example"))
        with weir.connect() as client:
            response = client.request("OPTIONS", "/a", {"Host": "shop.example.com", "Origin": "https://app.example", "Access-Control-Request-Method": "PUT"})
        self.assertEqual((response.status, response["access-control-allow-origin"]), (204, "https://app.example"))
        self.assertIn("PUT", response["access-control-allow-methods"])
        self.assertEqual(self.upstream.exchanges, [])
        self.assertEqual(self.ask(weir, "/a")["access-control-allow-origin"], "https://app.example")

    def test_redirect_annotations_redirect_to_https_and_to_other_urls(self):
        weir = self.weir(ingress("shop", [path("/")], force_ssl_redirect="true"),
                         ingress("old", [path("/")], host="old.example.com", permanent_redirect="https://new.example$request_uri"))
        response = self.ask(weir, "/a?b")
        self.assertEqual((response.status, response["location"]), (308, "https://shop.example.com/a?b"))
        response = self.ask(weir, "/a?b", host="old.example.com")
        self.assertEqual((response.status, response["location"]), (301, "https://new.example/a?b"))

    def test_error_names_the_file_and_the_line(self):
        for text, sentence in (("a: [1\n", r"ingress\.yaml:[0-9]+: is no YAML"), ("a: &x 1\n", r"ingress\.yaml:1: found an anchor"),
                               ("kind: Service\n", r"ingress\.yaml: there is no Ingress")):
            (self.folder / "ingress.yaml").write_text(textwrap.dedent(text))
            status, output, errors = run_weir("import", str(self.folder / "ingress.yaml"))
            self.assertEqual((status, output), (2, ""))
            self.assertRegex(errors, sentence)
        self.assertIn("cannot be read", run_weir("import", str(self.folder / "none.yaml"))[2])


if __name__ == "__main__":
    main()
