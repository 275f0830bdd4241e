#!/usr/bin/env python3
"""Kubernetes and Compose accept the manifests and Compose files in the documents, and weir accepts the configurations in them.

The schemas are packages of the npm registry (tests/schemas), which `./dev test` installs into build/schemas. Without the registry,
the tests that need the schemas are skipped."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import tomllib
import unittest

import jsonschema
import yaml

from documents import PAGES, SECRETS, TREE, blocks, place
from harness import PATIENCE, WEIR, TestCase, main

PACKAGES = TREE / "build/schemas/node_modules"
# The package that has the types of each API group. kubernetes-models has the types of all other groups.
TYPES = {"networking.istio.io": "@kubernetes-models/istio", "traefik.io": "@kubernetes-models/traefik"}
needs_schemas = unittest.skipUnless(PACKAGES.is_dir(), f"{PACKAGES} is not there: ./dev test installs it if npm reaches its registry")


def files():
    """Returns (place, documents) for each YAML text in the documents and in the package."""
    found = [(place(block), block.text) for page in PAGES for block in blocks(page, "yaml")]
    found += [(f"docker/{file.name}", file.read_text()) for file in sorted((TREE / "docker").glob("compose*.yaml"))]
    return [(name, [document for document in yaml.safe_load_all(text) if document]) for name, text in found]


def manifests():
    return [(name, document) for name, documents in files() for document in documents if "apiVersion" in document]


def compose_files():
    return [(name, document) for name, documents in files() for document in documents if "services" in document]


def deployments():
    return [document for _, document in manifests() if document["kind"] == "Deployment"]


def weir_of(deployment):
    """Returns the container of weir."""
    return next(one for one in deployment["spec"]["template"]["spec"]["containers"] if one["name"] == "weir")


def configuration_of(deployment):
    """Returns the weir.toml that the container of weir mounts."""
    volume = next(one for one in deployment["spec"]["template"]["spec"]["volumes"] if one["name"] == "config")
    maps = [document for _, document in manifests() if document["kind"] == "ConfigMap"]
    return tomllib.loads(next(one["data"]["weir.toml"] for one in maps if one["metadata"]["name"] == volume["configMap"]["name"]))


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", text)[1])


class KubernetesManifests(TestCase):
    def test_documents_contain_the_expected_kinds_of_manifests(self):
        self.assertGreaterEqual({document["kind"] for _, document in manifests()},
                                {"ConfigMap", "Deployment", "EnvoyFilter", "Middleware", "PodDisruptionBudget", "Service"})

    @needs_schemas
    def test_each_manifest_has_the_fields_of_its_kind_and_no_others(self):
        for name, document in manifests():
            with self.subTest(f"{name} {document['kind']}"):
                self.assertEqual(self.faults(document), "")

    @needs_schemas
    def test_middlewares_in_files_of_traefik_have_the_fields_of_the_manifest(self):
        """A file of Traefik's dynamic configuration names the fields of a middleware as a manifest of the kind Middleware does."""
        found = [(name, spec) for name, documents in files() for document in documents for spec in document.get("http", {}).get("middlewares", {}).values()]
        self.assertGreater(len(found), 0)
        for name, spec in found:
            with self.subTest(name):
                manifest = {"apiVersion": "traefik.io/v1alpha1", "kind": "Middleware", "metadata": {"name": "file"}, "spec": spec}
                self.assertEqual(self.faults(manifest), "")

    @needs_schemas
    def test_misspelt_field_of_a_manifest_is_detected(self):
        deployment, container = self.weir_container()
        container["livenessProb"] = container.pop("livenessProbe")
        self.assertRegex(self.faults(deployment), "livenessProb.* does not exist")

    @needs_schemas
    def test_value_of_a_wrong_type_is_detected(self):
        deployment, container = self.weir_container()
        container["ports"][0]["containerPort"] = "8080"
        self.assertIn("Type 'string' is not assignable to type 'number'", self.faults(deployment))

    @staticmethod
    def weir_container():
        deployment = deployments()[0]
        return deployment, weir_of(deployment)

    def faults(self, document):
        """Checks the manifest against the TypeScript type of its kind. Returns TypeScript's messages: unknown fields, wrong
        types, missing fields."""
        kind, group = document["kind"], document["apiVersion"].partition("/")[0]
        module = f"{TYPES.get(group, 'kubernetes-models')}/{document['apiVersion']}/{kind}"
        with tempfile.TemporaryDirectory(dir=PACKAGES.parent) as folder:
            source = pathlib.Path(folder, "manifest.ts")
            source.write_text(f'import {{ I{kind} }} from "{module}";\n'
                              f"export const manifest: I{kind} = {json.dumps(document, indent=1)};\n")
            done = subprocess.run(["node", PACKAGES / "typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext",
                                   "--moduleResolution", "nodenext", "--target", "es2022", source],
                                  capture_output=True, text=True, timeout=4 * PATIENCE)
        return done.stdout + done.stderr

    def test_weir_configurations_in_manifests_are_valid(self):
        texts = [text for _, document in manifests() if document["kind"] == "ConfigMap" for text in document["data"].values()]
        self.assertGreater(len(texts), 0)
        for text in texts:
            with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
                file.write(text)
                file.flush()
                done = subprocess.run([WEIR, "check", "--strict", file.name], capture_output=True, text=True, timeout=2 * PATIENCE,
                                      env={**os.environ, **SECRETS})
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_pod_has_time_for_the_drain_delay_and_the_drain(self):
        """The pod's grace period, and the preStop hook of a service beside weir, must be longer than drain_delay and drain
        together. weir needs no hook."""
        self.assertGreaterEqual(len(deployments()), 2)
        for deployment in deployments():
            with self.subTest(deployment["metadata"]["name"]):
                server = configuration_of(deployment)["server"]
                stop = seconds(server["drain_delay"]) + seconds(server["drain"])
                self.assertGreater(seconds(server["drain_delay"]), 0)
                self.assertNotIn("lifecycle", weir_of(deployment))
                pod = deployment["spec"]["template"]["spec"]
                hooks = [int(one["lifecycle"]["preStop"]["exec"]["command"][1]) for one in pod["containers"] if "lifecycle" in one]
                self.assertEqual(len(hooks), len(pod["containers"]) - 1)
                for hook in hooks:
                    self.assertGreater(hook, stop)
                self.assertGreater(pod["terminationGracePeriodSeconds"], max([stop, *hooks]))

    def test_probes_reach_the_admin_listener(self):
        """The kubelet asks from outside the pod (httpGet), so the admin listener must not be on loopback only. `weir health` asks
        127.0.0.1:9900 inside the pod."""
        expected = {"startupProbe": ("/healthz", []), "readinessProbe": ("/readyz", ["--ready"]), "livenessProbe": ("/healthz", [])}
        for deployment in deployments():
            weir, (host, _, port) = weir_of(deployment), configuration_of(deployment)["admin"]["address"].rpartition(":")
            for name, (path, options) in expected.items():
                with self.subTest(deployment=deployment["metadata"]["name"], probe=name):
                    if "exec" in weir[name]:
                        self.assertEqual(weir[name]["exec"]["command"], ["weir", "health", *options])
                        self.assertEqual((port, weir[name]["timeoutSeconds"]), ("9900", 3))  # weir health waits for two seconds
                        self.assertIn(host, ("127.0.0.1", "0.0.0.0"))
                    else:
                        asked = weir[name]["httpGet"]
                        self.assertEqual((asked["path"], host), (path, "0.0.0.0"))
                        self.assertIn({"name": asked["port"], "containerPort": int(port)}, weir["ports"])


class ComposeFiles(TestCase):
    @needs_schemas
    def test_each_compose_file_is_valid(self):
        self.assertGreaterEqual(len(compose_files()), 4)
        for name, document in compose_files():
            with self.subTest(name):
                self.assertEqual(self.faults(document), [])

    @needs_schemas
    def test_misspelt_field_of_a_compose_file_is_detected(self):
        document = next(document for _, document in compose_files() if "weir" in document["services"])
        document["services"]["weir"]["stop_grace"] = "35s"
        self.assertNotEqual(self.faults(document), [])

    @staticmethod
    def faults(document):
        schema = json.loads((PACKAGES / "dclint/schemas/compose.schema.json").read_text())
        validator = jsonschema.Draft7Validator(schema)
        return [f"{fault.json_path}: {fault.message}" for fault in validator.iter_errors(document)]


if __name__ == "__main__":
    main()
