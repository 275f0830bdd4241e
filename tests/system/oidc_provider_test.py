#!/usr/bin/env python3
"""weir and the issuer oidc-provider from npm, which changes its keys under load, is killed and comes back. `./dev test` installs the
library into build/oidc."""

import pathlib
import tempfile

from harness import Load, TestCase, Upstream, Weir, config, eventually, get, main, rule
from key_issuer import OidcProvider

INSIST = rule("robots", "10000000/day", key='["claim:client_id"]', on_missing='"reject"')


class TokenLoad(Load):
    """Sends the newest token."""

    def __init__(self, ports, token):
        self.token = token
        super().__init__(ports)

    def get(self, client, number):
        return client.get("/", authorization=f"Bearer {self.token}")


class Provider(TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-test-")))
        self.provider = self.start(OidcProvider(folder))
        self.upstream = self.start(Upstream())
        jwt = f"""
[client.jwt]
issuer = "{self.provider.url}"
jwks = "{self.provider.url}/jwks"
audience = "api"
require_exp = true
fetch = {{ ca = "{folder / 'login.crt'}", cooldown = "500ms", wait = "15s" }}
"""
        self.weir = self.start(Weir(config(self.upstream.port, rules=INSIST, state=jwt)))

    def status(self, token):
        return get(self.weir.port, authorization=f"Bearer {token}").status

    def test_valid_tokens_are_accepted_while_the_issuer_changes_its_keys(self):
        load = TokenLoad([self.weir.port] * 4, self.provider.token())
        tokens = [load.token]
        for algorithm in ("ES256", "RS256", "EdDSA", "ES256"):
            load.goes_on()
            self.provider.tell(rotate=algorithm)
            load.token = self.provider.token()
            tokens.append(load.token)
        load.goes_on()
        self.assertEqual(load.stop(), {200})
        self.assertEqual([self.status(token) for token in tokens], [200] * 5, "old keys are still in the set")
        self.assertLessEqual(self.provider.tell(count=True)["fetches"], 5, "the first fetch, and one for each new key")
        self.provider.tell(forget=True)
        newest = self.provider.token()
        self.provider.tell(rotate="ES256")
        self.assertEqual([self.status(self.provider.token()), self.status(newest), self.status(tokens[0])], [200, 200, 401])

    def test_tokens_are_accepted_while_the_issuer_is_down(self):
        load = TokenLoad([self.weir.port] * 4, self.provider.token())
        load.goes_on()
        self.provider.kill()
        unknown = load.token.replace(load.token.split(".")[0], "eyJhbGciOiJFUzI1NiIsImtpZCI6Im5ldyJ9")  # {"alg":"ES256","kid":"new"}
        eventually(lambda: self.status(unknown) == 503, "weir cannot ask the issuer")
        load.goes_on()
        self.assertEqual(load.stop(), {200})
        before = load.token
        self.assertTrue(self.provider.start(), self.provider.process.log())
        fresh = self.provider.token()
        self.weir.wait_for("tokens: fetched 1 key", 2)
        self.assertEqual([self.status(fresh), self.status(before), self.status(unknown)], [200, 401, 401])


if __name__ == "__main__":
    main()
