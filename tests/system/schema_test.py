#!/usr/bin/env python3
"""config/weir.schema.json for editors. The file equals the schema that weir prints, and accepts whatever weir accepts. The schema
and weir both reject common mistakes. The documents made from the schema are tested, too."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

from harness import WEIR, main, run_weir

try:
    import jsonschema
except ImportError:  # the package is only installed for Debian's Python
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

TREE = pathlib.Path(os.environ.get("WEIR_SOURCE", "."))
LEAST = """
[[listener]]
address = "127.0.0.1:0"
[[upstream]]
name = "api"
servers = ["127.0.0.1:9001"]
[[route]]
upstream = "api"
"""
RULE = '[[rule]]\nname = "x"\nlimit = "10/s"\n'

GOOD = [
    '[server]\ndrain = "1min"\nidle_timeout = "2hour"\nmax_head = 4096\nmin_rate = "0B"\nmax_body = "10MB"',
    '[server]\nratelimit_headers = []\nworkers = 256\nretry_after_jitter = "10%"',
    '[cors]\norigins = ["https://app.example.com", "http://localhost:3000", "http://[::1]:8080"]\ncredentials = true\nmax_age = "1h"\npreflight = "answer"',
    '[cors]\norigins = ["*"]',
    '[acme]\naccept_terms = true\ndirectory = "https://ca.example/dir"\nchallenge = "tls-alpn-01"\nretry = "1h"\n[[listener]]\naddress = "127.0.0.1:0"\ntls = { certificates = [{ acme = ["a.example"] }] }',
    '[[route]]\nname = "r"\nmatch = { path = "/usage" }\nrespond = "usage"',
    '[server]\ndrain = "${WEIR_NOWHERE:-5s}"\nratelimit_headers = ["${WEIR_NOWHERE:-ietf}"]',
    '[log]\nlevel = "${WEIR_NOWHERE:-warn}"\naccess = "off"',
    '[[listener]]\naddress = "[::1]:0"\nproxy_protocol = true',
    '[[listener]]\naddress = "unix:/tmp/weir-schema-test.sock"',
    '[[listener]]\naddress = "localhost:0"',
    '[client]\ntrusted_proxies = ["10.0.0.0/8", "unix:"]\napi_key = { bearer = true }\nuser = { cookie = "u" }',
    '[client.jwt]\nalgorithm = "HS256"\nsecret = "0123456789abcdef0123456789abcdef"',
    '[state]\nredis = { url = "redis://user:p%40ss@cache:6379/2", timeout = "5ms" }',
    '[state]\nredis = { url = "unix:///run/redis.sock?db=1" }',
    '[state]\nredis = { url = "redis://:x@a", topology = "sentinel", sentinels = ["a:26379"], master = "m" }',
    '[[upstream]]\nname = "b"\nservers = ["unix:/run/app.sock", "https://api.example.com", { address = "https://[::1]:8443", weight = 2, limit = "500/s" }]',
    '[[upstream]]\nname = "b"\nservers = ["a:1"]\nbalance = "hash"\nhash_key = ["header:X-Shard|ip"]\nretry = { budget = "0%", on = ["late", "503", "5xx", "502-504"] }\nhealth = { path = "/up", status = ["200", "3xx"] }',
    '[[route]]\nname = "r"\nmatch = { path = "/a*", methods = "GET", headers = { X-A = true, X-B = "~^a" }, not = { ip = "10.0.0.1" } }\nrespond = { status = 204 }',
    '[[route]]\nname = "hours"\nmatch = { path = "~^/v[0-9]?/", hours = "22:00-06:00", days = ["fri", "sat"], timezone = "Europe/Zurich" }\nupstream = "api"',
    RULE + 'key = []',
    RULE + 'key = ["api_key|ip", "header:X-Tenant", "path"]',
    RULE + 'key = ["json:/email|form:email", "path:2"]\nmax_body = "1KiB"',
    RULE + 'match = { json = { "/model" = "~^gpt-4", "/stream" = true }, max_body = "1MiB" }',
    RULE + 'cost = 5\nsoft = "10%"',
    RULE + 'body = "{}"\ncontent_type = "application/json"\nheaders = { X-Reason = "quota" }\nretry_after_jitter = "100%"',
    '[[rule]]\nname = "x"\nalgorithm = "fixed_window"\nalign = "week"\nlimit = "700/week"',
    RULE + 'cost = { header = "X-Cost", scale = 100 }',
    RULE + 'burst = 1000\ncost = { response_json = "/usage/total_tokens", reserve = 1000 }',
    RULE + 'cost = { response_json = "/usage/total_tokens|/response/usage/total_tokens", reserve = 1 }',
    RULE + 'cost = { response_json = "/a", reserve = 2, stream = { per_event = 2, cut = true } }',
    RULE + 'cost = { response_json = ["/a", "/b|/c"], reserve = { json = "/n", default = 2, most = 3 } }',
    RULE + 'cost = { response_json = { "/a" = 0.15, "/b" = 4 }, reserve = { json = { "/n" = 4 }, default = 2 } }',
    RULE + 'adapt = { upstream = "api", latency_above = "500ms" }',
    RULE + 'adapt = { upstream = "api", latency_above = "2s", errors_above = "5%", floor = "35%" }',
    RULE + 'cost = { bytes = "response" }',
    RULE + 'cost = { bytes = "both", per = "1MiB", reserve = 5 }',
    '[[rule]]\nname = "x"\nbandwidth = "1MiB/s"',
    '[[rule]]\nname = "x"\nbandwidth = "65536/100ms"\nkey = ["ip"]\non_missing = "reject"\nstore = "memory"',
    RULE + 'penalty = { for = "10min" }',
    RULE + 'key = ["descriptor:user"]\noverdraft = true',
    RULE + 'penalty = { after = 3, for = "10min", grows = 2, most = "1day", forget = "7day" }',
    RULE + '[[alert]]\nrule = "x"\nkey_refused_above = "100/min"\nmax_clients = 100\nwebhook = "https://a/b"',
    RULE + 'elastic = { limit = "20/s", while_load_below = 0.7 }',
    RULE + 'elastic = { limit = "20/s", while_load_below = 1 }',
    RULE + 'tiers = { free = { limit = "1/s", priority = 9 } }\noverrides = [{ match = { path = "/a" }, limit = "2/s" }]',
    RULE + 'charge = { status = "4xx" }',
    RULE + 'messages = "20/s"\nmessages_over = "close"',
    '[[rule]]\nname = "x"\nalgorithm = "concurrency"\nlimit = 20',
    '[[rule]]\nname = "x"\nalgorithm = "fixed_window"\nalign = "month"\nlimit = "10000/month"',
    '[[rule]]\nname = "x"\nalgorithm = "adaptive_concurrency"\nmin = 2\nmax = 20',
    '[[rule]]\nname = "x"\nlimit = "3/7s"\nstore = "redis"\nlease = "25%"\nburst = 100\n[state]\nredis = { url = "redis://a" }',
    '[[rule]]\nname = "x"\nlimit = "1000/min"\nstore = "redis"\nlease = 100\n[state]\nredis = { url = "redis://a" }',
]

# Common mistakes: a misspelt word, a wrong type or unit, a value out of bounds, a table in place of a list.
BAD = [
    'rules = []',
    '[server]\nworker = 2',
    '[server]\nworkers = "2"',
    '[server]\nworkers = 257',
    '[server]\ndrain = 30',
    '[server]\ndrain = "30"',
    '[server]\ndrain = "30 s"',
    '[server]\ndrain = "1.5s"',
    '[server]\nmax_head = "16K"',
    '[server]\nmax_head = -1',
    '[server]\nforwarded = "yes"',
    '[server]\nratelimit_headers = "x"',
    '[server]\nretry_after_jitter = 10',
    '[server]\nretry_after_jitter = "101%"',
    '[cors]\ncredentials = true',
    '[acme]\nemail = "a@b.example"',
    '[acme]\naccept_terms = true\nchallenge = "dns-01"',
    '[cors]\norigins = "https://app.example.com"',
    '[cors]\norigins = ["https://app.example.com/"]',
    '[cors]\norigins = ["https://a.example"]\npreflight = "pass"',
    '[[route]]\nname = "r"\nrespond = "use"',
    '[server]\nratelimit_headers = ["X"]',
    '[log]\nlevel = "verbose"',
    '[admin]\ntoken = "secret"',
    '[admin]\naddress = "9900"',
    '[admin]\naddress = "localhost"',
    '[admin]\naddress = "127.0.0.1:70000"',
    '[admin]\naddress = "::1:9900"',
    '[[listener]]\nadress = "127.0.0.1:0"',
    '[[listener]]\naddress = "127.0.0.1:0"\ntls = { cert = "a", key = "b" }',
    '[client]\napi_key = "X-API-Key"',
    '[client]\nipv6_prefix = 0',
    '[client]\nunknown_keys = "deny"',
    '[state]\nstore = "disk"',
    '[state]\nredis = { timeout = "20ms" }',
    '[state]\nredis = { url = "localhost:6379" }',
    '[state]\nredis = { url = "redis://a", nodes = ["a"] , topology = "cluster" }',
    '[[upstream]]\nname = "b"\nservers = "127.0.0.1:1"',
    '[[upstream]]\nname = "b"\nservers = ["127.0.0.1"]',
    '[[upstream]]\nname = "b"\nservers = ["http://a/path"]',
    '[[upstream]]\nname = "b"\nservers = [1]',
    '[[upstream]]\nname = "b"\nservers = [{ weight = 2 }]',
    '[[upstream]]\nname = "b"\nservers = ["a:1"]\nbalance = "roundrobin"',
    '[[upstream]]\nname = "b"\nservers = ["a:1"]\nretry = { budget = "120%" }',
    '[[upstream]]\nname = "b"\nservers = ["a:1"]\nretry = { on = ["timeout"] }',
    '[[upstream]]\nname = "b"\nservers = ["a:1"]\nhealth = { path = "up" }',
    RULE + '[[alert]]\nrule = "x"\nkey_refused_above = "often"\nwebhook = "https://a/b"',
    RULE + '[[alert]]\nrule = "x"\nkey_refused_above = "1/s"\nmax_clients = 101\nwebhook = "https://a/b"',
    RULE + 'headers = { X-Reason = 1 }',
    RULE + 'retry_after_jitter = "10"',
    RULE + 'overdraft = 1',
    '[[route]]\nname = "r"\nmatch = { path = "login" }\nupstream = "api"',
    '[[route]]\nname = "r"\nmatch = { path = "/a?b=c" }\nupstream = "api"',
    '[[route]]\nname = "r"\nmatch = { methods = true }\nupstream = "api"',
    '[[route]]\nname = "r"\nmatch = { headers = { X-A = false } }\nupstream = "api"',
    '[[route]]\nname = "r"\nmatch = { hours = "22-6" }\nupstream = "api"',
    '[[route]]\nname = "r"\nmatch = { days = ["Friday"] }\nupstream = "api"',
    '[[route]]\nname = "r"\nrespond = "gone"',
    '[[route]]\nname = "r"\nupstream = "api"\npriority = 10',
    '[[rule]]\nlimit = "10/s"',
    '[[rule]]\nname = ""\nlimit = "10/s"',
    '[[rule]]\nname = "x"\nlimit = "10"',
    '[[rule]]\nname = "x"\nlimit = "10/sec/ip"',
    '[[rule]]\nname = "x"\nlimit = "0/s"',
    '[[rule]]\nname = "x"\nlimit = "1000000001/s"',
    '[[rule]]\nname = "x"\nlimit = "10/year"',
    '[[rule]]\nname = "x"\nlimit = "10 / s"',
    RULE + 'algorithm = "tokenbucket"',
    RULE + 'burst = "100"',
    RULE + 'key = "ip"',
    RULE + 'key = ["apikey"]',
    RULE + 'key = ["header"]',
    RULE + 'key = ["ip|"]',
    RULE + 'cost = 0',
    RULE + 'cost = "5"',
    RULE + 'cost = { json = "amount" }',
    RULE + 'cost = { json = "/amount", max = 1 }',
    RULE + 'cost = { response_json = ["/a", 5], reserve = 2 }',
    RULE + 'cost = { response_json = "/a", reserve = 2, stream = true }',
    RULE + 'cost = { response_json = "/a", reserve = 2, stream = { per_event = 0 } }',
    RULE + 'cost = { response_json = { "/a" = "4" }, reserve = 2 }',
    RULE + 'cost = { response_json = { "/a" = 1000001 }, reserve = 2 }',
    RULE + 'cost = { response_json = "/a", reserve = { json = "/n" } }',
    RULE + 'cost = { response_json = "/a", reserve = { json = "/n", default = 2, least = 1 } }',
    RULE + 'cost = { bytes = "all" }',
    '[[rule]]\nname = "x"\nbandwidth = "1MiB"',
    RULE + 'soft = 10',
    RULE + 'soft = "10"',
    RULE + 'elastic = { limit = "20/s", while_load_below = 70 }',
    RULE + 'adapt = "api"',
    RULE + 'adapt = { latency_above = "500ms" }',
    RULE + 'adapt = { upstream = "api", errors_above = "100%" }',
    RULE + 'adapt = { upstream = "api", errors_above = "5%", floor = "22%" }',
    RULE + 'penalty = "10min"',
    RULE + 'penalty = { after = 3 }',
    RULE + 'penalty = { after = 101, for = "10min" }',
    RULE + 'penalty = { for = 600 }',
    RULE + 'elastic = { limit = "20/s" }',
    RULE + 'charge = ["401"]',
    RULE + 'charge = { status = 401 }',
    RULE + 'charge = { status = "40x" }',
    RULE + 'tiers = ["free"]',
    RULE + 'tiers = { free = "1/s" }',
    RULE + 'mode = "dry_run"',
    RULE + 'status = 200',
    RULE + 'lease = "30%"',
    RULE + 'priority = 1',
]


def uncommented(text):
    return re.sub(r"^#: ", "", text, flags=re.M)


class Schema(unittest.TestCase):
    def setUp(self):
        self.schema = json.loads((TREE / "config/weir.schema.json").read_text())
        self.validator = jsonschema.Draft4Validator(self.schema)

    def faults(self, text):
        found = self.validator.iter_errors(tomllib.loads(text))
        return [f"{'.'.join(map(str, fault.absolute_path))}: {fault.message}" for fault in found]

    def test_checked_in_schema_equals_the_schema_that_weir_prints(self):
        done = subprocess.run([sys.executable, TREE / "tools/reference.py", "--check", "--weir", WEIR],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_schema_is_valid_json_schema_draft_4(self):
        jsonschema.Draft4Validator.check_schema(self.schema)
        self.assertEqual(self.schema["$schema"], jsonschema.Draft4Validator.META_SCHEMA["id"])

    def test_every_default_is_valid_by_the_schema(self):
        count = 0
        for table in self.schema["definitions"].values():
            for name, key in table.get("properties", {}).items():
                if "default" in key:
                    jsonschema.Draft4Validator({**key, "definitions": self.schema["definitions"]}).validate(key["default"])
                    self.assertTrue(key["description"], name)
                    count += 1
        self.assertGreater(count, 70)

    def test_shipped_configurations_are_valid_by_the_schema(self):
        files = [*(TREE / "config").glob("*.toml"), *(TREE / "config/examples").glob("*.toml"), TREE / "docker/weir.toml",
                 TREE / "packaging/weir.toml"]
        for file in files:
            if file.name == "keys.toml":  # the keys file has another format
                continue
            with self.subTest(file=file.name):
                self.assertEqual(self.faults(file.read_text()), [])
        self.assertGreater(len(files), 12)
        self.assertEqual(self.faults(uncommented((TREE / "config/weir.toml").read_text())), [])
        for name in ("config/weir.toml", "packaging/weir.toml"):
            self.assertTrue((TREE / name).read_text().startswith("#:schema "), name)

    def test_configurations_in_the_documents_are_valid_by_the_schema(self):
        whole = 0
        for file in [TREE / "README.md", *(TREE / "docs").glob("*.md")]:
            for block in re.findall(r"^```toml\n(.*?)^```", file.read_text(), re.M | re.S):
                if "[[listener]]" in block and "[[route]]" in block:
                    self.assertEqual(self.faults(block), [], file.name)
                    whole += 1
        self.assertGreater(whole, 0)

    def test_configurations_that_weir_accepts_are_valid_by_the_schema(self):
        for text in GOOD:
            with self.subTest(text):
                status, _, errors = run_weir("check", config=LEAST + text)
                self.assertEqual(status, 0, errors)
                self.assertEqual(self.faults(LEAST + text), [])

    def test_mistakes_are_rejected_by_schema_and_weir(self):
        for text in BAD:
            with self.subTest(text):
                self.assertNotEqual(self.faults(text if text.startswith("rules") else LEAST + text), [])
                self.assertEqual(run_weir("check", config=text if text.startswith("rules") else LEAST + text)[0], 2)


if __name__ == "__main__":
    main()
