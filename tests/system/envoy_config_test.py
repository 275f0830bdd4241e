#!/usr/bin/env python3
"""The configurations for Envoy and Istio in docs/guides/behind-envoy.md and behind-istio.md have only names and values that Envoy's
own interface definitions know.

The definitions are part of a package of the npm registry (tests/schemas), which `./dev test` installs into build/schemas. Without
the registry these tests are skipped."""

import copy
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from documents import TREE, blocks
from harness import PATIENCE, TestCase, main

DEFINITIONS = TREE / "build/schemas/node_modules/@grpc/grpc-js-xds/deps"
BOOTSTRAP, HTTP_FILTER = "envoy.config.bootstrap.v3.Bootstrap", "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter"
GRPC_SERVICE = "envoy.config.core.v3.GrpcService"
PATCHED = {"HTTP_FILTER": HTTP_FILTER, "VIRTUAL_HOST": "envoy.config.route.v3.VirtualHost", "HTTP_ROUTE": "envoy.config.route.v3.Route"}
FILES = ("config/bootstrap/v3/bootstrap", "extensions/filters/network/http_connection_manager/v3/http_connection_manager",
         "extensions/filters/http/ratelimit/v3/rate_limit", "extensions/filters/http/router/v3/router",
         "extensions/upstreams/http/v3/http_protocol_options")


def documents_in(name):
    """Returns the YAML documents of a guide."""
    return [document for block in blocks(TREE / "docs/guides" / name, "yaml") for document in yaml.safe_load_all(block.text)]


@unittest.skipUnless(DEFINITIONS.is_dir(), f"{DEFINITIONS} is not there: ./dev test installs it if npm reaches its registry")
class EnvoyConfigurations(TestCase):
    @classmethod
    def setUpClass(cls):
        """Compiles the definitions. Their options for validation need a field that the package's validate.proto lacks."""
        with tempfile.TemporaryDirectory(prefix="weir-envoy-") as folder:
            own = pathlib.Path(folder, "validate/validate.proto")
            own.parent.mkdir()
            text = (DEFINITIONS / "protoc-gen-validate/validate/validate.proto").read_text()
            own.write_text(re.sub(r"(?<=message )(\w+Rules \{)", r"\1 optional bool ignore_empty = 999;", text))
            roots = [folder, *(DEFINITIONS / name for name in ("envoy-api", "xds", "googleapis"))]
            compiled = pathlib.Path(folder, "definitions")
            subprocess.run(["protoc", "--include_imports", "-o", compiled, *(f"-I{root}" for root in roots),
                            *(f"envoy/{name}.proto" for name in FILES)], check=True, timeout=4 * PATIENCE)
            cls.pool = descriptor_pool.DescriptorPool()
            for file in descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes()).file:
                cls.pool.Add(file)

    def read(self, kind, value):
        """Reads a value as the message of this kind. Throws json_format.ParseError if Envoy would not know a name or a value."""
        message = message_factory.MessageFactory(self.pool).GetPrototype(self.pool.FindMessageTypeByName(kind))()
        return json_format.ParseDict(value, message, descriptor_pool=self.pool)

    def test_envoy_accepts_the_configuration_of_the_guide(self):
        configuration = next(document for document in documents_in("behind-envoy.md") if "static_resources" in document)
        read = self.read(BOOTSTRAP, configuration)
        self.assertEqual([cluster.name for cluster in read.static_resources.clusters], ["weir", "app"])

    def test_envoy_accepts_the_token_setting_of_the_guide(self):
        fragment = next(document for document in documents_in("behind-envoy.md") if "grpc_service" in document)
        self.assertEqual(self.read(GRPC_SERVICE, fragment["grpc_service"]).initial_metadata[0].key, "authorization")

    def test_envoy_accepts_the_istio_patches_of_the_guide(self):
        filters = [document for document in documents_in("behind-istio.md") if document["kind"] == "EnvoyFilter"]
        patches = [patch for one in filters for patch in one["spec"]["configPatches"]]
        self.assertEqual({patch["applyTo"] for patch in patches}, set(PATCHED))
        for patch in patches:
            with self.subTest(patch["applyTo"]):
                self.read(PATCHED[patch["applyTo"]], patch["patch"]["value"])

    def test_message_definitions_of_envoy_reject_a_misspelt_name(self):
        configuration = next(document for document in documents_in("behind-envoy.md") if "static_resources" in document)
        for old, new in (("failure_mode_deny", "failure_mode_denied"), ("remote_address", "remote_adress"), ("http2_protocol_options", "h2")):
            changed = yaml.safe_load(yaml.safe_dump(copy.deepcopy(configuration)).replace(f"{old}:", f"{new}:"))
            with self.subTest(new), self.assertRaisesRegex(json_format.ParseError, new):
                self.read(BOOTSTRAP, changed)

    def test_message_definitions_of_envoy_reject_a_value_of_a_wrong_type(self):
        with self.assertRaises(json_format.ParseError):
            self.read(GRPC_SERVICE, {"envoy_grpc": {"cluster_name": 5}})

    def test_envoy_has_each_action_that_the_guide_names(self):
        """Reads each action in the first column of the guide's table, which says what becomes of a descriptor."""
        page = (TREE / "docs/guides/behind-envoy.md").read_text()
        actions = re.findall(r"^\| `(\w+: \{.*?\})` \|", page, re.M)
        self.assertGreater(len(actions), 5)
        for action in actions:
            text = action.replace("headers: […]", "headers: [{name: ':method', string_match: {exact: POST}}]")
            text = text.replace("user, …", "user, metadata_key: {key: jwt, path: [{key: sub}]}")
            with self.subTest(action):
                self.read("envoy.config.route.v3.RateLimit", {"actions": [yaml.safe_load(f"{{{text}}}")]})


if __name__ == "__main__":
    main()
