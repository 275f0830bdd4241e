#!/usr/bin/env python3
"""With the configurations that people copy from the documents, clients cannot evade limits, neither by inventing API keys nor
by omitting them."""

import itertools
import os
import pathlib
import re

from harness import Client, TestCase, Upstream, Weir, answer, config, main, request_bytes, rule, run_weir

TREE = pathlib.Path(os.environ.get("WEIR_SOURCE", "."))
KEYS = {"keys.toml": '[[key]]\nkey = "known"\ntier = "pro"\n'}


def readme_sample():
    blocks = re.findall(r"^```toml\n(.*?)^```", (TREE / "README.md").read_text(), re.M | re.S)
    return next(block for block in blocks if "[[listener]]" in block)


COPIED = {
    "README.md": readme_sample,
    "config/weir.toml": (TREE / "config/weir.toml").read_text,
    "docker/weir.toml": (TREE / "docker/weir.toml").read_text,
}


class CopiedConfigurations(TestCase):
    def setUp(self):
        self.number = itertools.count()
        self.upstream = self.start(Upstream(self.reply))

    @staticmethod
    def reply(exchange):
        exchange.read_body()
        exchange.send(answer(status="401 Unauthorized" if "log" in exchange.target.lower() else "200 OK"))

    def weir(self, text):
        """Starts a weir with the configuration text, in which only addresses are changed."""
        text = re.sub(r'(\[\[listener\]\][^\n]*\naddress = )"[^"]*"', r'\1"127.0.0.1:0"', text)
        text = re.sub(r'(\[admin\][^\n]*\naddress = )"[^"]*"', r'\1"127.0.0.1:0"', text)
        text = re.sub(r'"10\.0\.0\.[12]:9000"(, )?', lambda found: "" if found[1] else f'"{self.upstream.address}"', text)
        text = text.replace("127.0.0.1:9001", self.upstream.address)
        return self.start(Weir(text))

    def invent(self):
        return {"X-API-Key": f"invented-{next(self.number)}"}

    def is_refused(self, weir, method="GET", path="/", fields=dict, most=20):
        """Sends some hundreds of requests from one address, each with different header fields. Returns true if weir refuses any of these
        requests."""
        for _ in range(most):
            with Client(weir.port) as client:
                client.send(b"".join(request_bytes(method, path, fields()) for _ in range(100)))
                if 429 in {client.read(method).status for _ in range(100)}:
                    return True
        return False

    def test_weir_check_with_strict_accepts_the_configurations_to_copy(self):
        for name, text in COPIED.items():
            with self.subTest(name):
                status, _, errors = run_weir("check", "--strict", config=text())
                self.assertEqual((status, errors), (0, ""))

    def test_client_that_invents_or_omits_keys_is_refused(self):
        for name, text in COPIED.items():
            for fields in (self.invent, dict):
                with self.subTest(name, fields=fields.__name__):
                    self.assertTrue(self.is_refused(self.weir(text()), fields=fields))

    def test_wrong_passwords_are_counted_in_every_spelling_of_the_login_path(self):
        weir = self.weir(readme_sample())
        with Client(weir.port) as client:
            for path in ("/login", "/Login", "/login/", "/LOGIN", "/log%69n"):
                self.assertEqual(client.request("POST", path, self.invent()).status, 401, path)
            self.assertEqual(client.request("POST", "/login", self.invent()).status, 429)


class UnknownKeys(TestCase):
    """Tests a rule keyed by API keys, with requests whose keys are not in the keys file."""

    def weir(self, text, **more):
        return self.start(Weir(config(self.start(Upstream()).port, rules=text, **more), KEYS))

    def test_client_with_an_unknown_key_is_counted_by_its_address(self):
        weir = self.weir(rule(limit="2/day", key='["api_key|ip"]'), client='keys = "keys.toml"')
        with weir.connect() as client:
            statuses = [client.get("/", x_api_key=f"invented-{number}").status for number in range(4)]
            self.assertEqual(statuses, [200, 200, 429, 429])
            self.assertEqual(client.get("/").status, 429, "a request without a key counts for the same address")
            self.assertEqual(client.get("/", x_api_key="known").status, 200)

    def test_missing_limit_per_address_is_a_warning_of_weir_check_and_an_error_with_strict(self):
        for key, text in (('["api_key"]', "leaves it out avoids"), ('["api_key|ip"]', "invents keys gets a new limit"),
                          (None, "invents keys gets a new limit")):
            rules = rule(limit="2/day", **({"key": key} if key else {}))
            for arguments, expected in (((), 0), (("--strict",), 1)):
                with self.subTest(key=key, arguments=arguments):
                    status, _, errors = run_weir("check", *arguments, config=config(1, rules=rules))
                    self.assertEqual(status, expected, errors)
                    self.assertIn(text, errors)


if __name__ == "__main__":
    main()
