#!/usr/bin/env python3
"""Bearer tokens that the openssl program signs. If weir rejects a token, the response, the log and a metric contain the
reason. weir verifies a signature only if a rule needs the token."""

import base64
import json
import pathlib
import signal
import subprocess
import tempfile
import time

from explain_test import ExplainTestCase
from harness import Upstream, Weir, config, eventually, get, main, rule, run_weir

INSIST = rule("claim", "1000/day", key='["claim:sub"]', on_missing='"reject"')
FIELDS = 'fields = ["usual", "user", "replay"]'


def base64url(octets):
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def openssl(*arguments, stdin=b""):
    return subprocess.run(["openssl", *map(str, arguments)], input=stdin, check=True, capture_output=True).stdout


def pair_of(der, size):
    """Returns r and s of an ECDSA signature, each with this number of bytes."""
    at, numbers = 2 if der[1] < 0x80 else 3, b""
    for _ in range(2):
        length = der[at + 1]
        numbers += der[at + 2:at + 2 + length].lstrip(b"\0").rjust(size, b"\0")
        at += 2 + length
    return numbers


class TokenIssuer:
    KEYS = {"RS256": ("RSA", "rsa_keygen_bits:2048", 0), "RS512": ("RSA", "rsa_keygen_bits:2048", 0),
            "ES256": ("EC", "ec_paramgen_curve:P-256", 32), "ES384": ("EC", "ec_paramgen_curve:P-384", 48),
            "ES512": ("EC", "ec_paramgen_curve:P-521", 66)}

    def __init__(self, folder, algorithm="ES256"):
        self.algorithm = algorithm
        kind, option, self.size = self.KEYS[algorithm]
        self.key = pathlib.Path(folder) / f"{algorithm}.key"
        openssl("genpkey", "-algorithm", kind, "-pkeyopt", option, "-out", self.key)
        self.public = openssl("pkey", "-in", self.key, "-pubout").decode()

    def token(self, header=None, **claims):
        header = {"alg": self.algorithm, "typ": "JWT"} if header is None else header
        text = ".".join(base64url(json.dumps(part).encode()) for part in (header, claims))
        signature = openssl("dgst", "-sha" + self.algorithm[2:], "-sign", self.key, stdin=text.encode())
        return text + "." + base64url(pair_of(signature, self.size) if self.size else signature)


class Ed25519Issuer:
    """Signs tokens with keys that are made when they are first named."""

    def __init__(self, folder, name):
        self.folder, self.name = pathlib.Path(folder), name

    def key(self, kid):
        path = self.folder / f"{self.name}-{kid}.key"
        if not path.exists():
            openssl("genpkey", "-algorithm", "ed25519", "-out", path)
        return path

    def key_set(self, *kids):
        """Returns the public keys as a JWK set. The last 32 bytes of their DER form are the key (RFC 8410, section 4)."""
        publics = ((kid, openssl("pkey", "-in", self.key(kid), "-pubout", "-outform", "DER")[-32:]) for kid in kids)
        return json.dumps({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": base64url(x)} for kid, x in publics]})

    def token(self, kid, **claims):
        parts = {"alg": "EdDSA", "kid": kid}, {"sub": "ann", "iss": self.name, **claims}
        text = ".".join(base64url(json.dumps(part).encode()) for part in parts)
        with tempfile.NamedTemporaryFile(dir=self.folder) as message:  # Ed25519 reads the whole text at once
            message.write(text.encode())
            message.flush()
            return f"{text}.{base64url(openssl('pkeyutl', '-sign', '-rawin', '-inkey', self.key(kid), '-in', message.name))}"


class Tokens(ExplainTestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-test-")))
        self.log = self.folder / "access.log"
        self.issuer = TokenIssuer(self.folder)
        self.now = int(time.time())
        self.upstream = self.start(Upstream())

    def begin(self, *rules, jwt="", client="", issuer=None, upstream=""):
        issuer = issuer or self.issuer
        table = f'jwt = {{ algorithm = "{issuer.algorithm}", public_key = "jwt.pem"{jwt} }}\n{client}'
        self.text = config(self.upstream.port, rules="".join(rules), client=table, upstream=upstream) \
            .replace('access = "off"', f'access = "{self.log}"\n{FIELDS}').replace("workers = 2", "workers = 1")  # keeps log lines in order
        self.weir = self.start(Weir(self.text, {"jwt.pem": issuer.public}))
        return self.weir

    def ask(self, token=None, **headers):
        return get(self.weir.port, **({} if token is None else {"authorization": f"Bearer {token}"}), **headers)

    def lines(self, count):
        eventually(lambda: self.log.exists() and self.log.read_text().count("\n") >= count, "every line is written")
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def faults(self):
        names = "malformed algorithm signature expired not_yet issuer audience missing claim key extension unavailable".split()
        counts = {name: int(self.weir.metric("weir_token_faults_total", reason=name)) for name in names}
        return {name: count for name, count in counts.items() if count}

    def test_reason_for_a_rejected_token_is_in_response_log_explanation_and_metric(self):
        self.begin(INSIST, jwt=', issuer = "me", audience = "api", leeway = "1s", require_exp = true')
        good = {"sub": "ann", "iss": "me", "aud": "api", "exp": self.now + 3600}
        sign = self.issuer.token
        head, claims, signature = sign(**good).split(".")
        cases = [("malformed", "rubbish", "the token is malformed"),
                 ("malformed", f"{head}.{claims}.{signature}=", "the token is malformed"),
                 ("algorithm", sign({"alg": "none"}, **good), "the token is not signed with the algorithm that is expected"),
                 ("extension", sign({"alg": "ES256", "crit": ["exp"]}, **good),
                  "the token requires an extension that weir does not support"),
                 ("signature", f"{head}.{claims}.{base64url(bytes(64))}", "the signature of the token is wrong"),
                 ("expired", sign(**{**good, "exp": self.now - 60}), "the token has expired"),
                 ("not_yet", sign(**good, nbf=self.now + 1800), "the token is not valid yet"),
                 ("issuer", sign(**{**good, "iss": "you"}), "the token is of another issuer"),
                 ("audience", sign(**{**good, "aud": ["web"]}), "the token is for another audience"),
                 ("claim", sign(sub="ann", iss="me", aud="api"), "the token lacks a claim that is required"),
                 ("claim", sign(iss="me", aud="api", exp=self.now + 60), "the token lacks a claim that is required")]
        expected = {}
        for reason, token, sentence in cases:
            answer = self.ask(token)
            self.assert_own_error(answer, 401)
            self.assertEqual(answer["www-authenticate"], f'Bearer error="invalid_token", error_description="{sentence}"')
            self.assertEqual(answer.json()["message"], f"the bearer token is invalid: {sentence}")
            said = self.explain(headers={"Authorization": f"Bearer {token}"})
            self.assertEqual((said["verdict"]["status"], said["verdict"]["headers"]["WWW-Authenticate"]),
                             (401, answer["www-authenticate"]))
            self.assertIn(sentence, said["verdict"]["why"])
            expected[reason] = expected.get(reason, 0) + 1
        answer = self.ask()
        self.assert_own_error(answer, 401)
        self.assertEqual(answer["www-authenticate"], "Bearer", "RFC 6750, section 3: no error without a token")
        expected["missing"] = 1
        self.assertEqual(self.ask(sign(**good)).status, 200)
        self.assertEqual([line.get("error") for line in self.lines(len(cases) + 2)],
                         [f"token_{reason}" for reason, _, _ in cases] + ["token_missing", None])
        self.assertEqual(self.faults(), expected)
        self.assertEqual(len(self.upstream.exchanges), 1)

    def test_every_algorithm_verifies_signatures_made_by_openssl(self):
        for algorithm in TokenIssuer.KEYS:
            issuer = TokenIssuer(self.folder, algorithm)
            self.begin(INSIST, issuer=issuer)
            token = issuer.token(sub="ann")
            self.assertEqual((algorithm, self.ask(token).status), (algorithm, 200))
            self.assertEqual((algorithm, self.ask(token[:-8] + "AAAAAAAA").status), (algorithm, 401))

    def test_changed_key_set_verifies_tokens_of_the_new_key_after_a_reload(self):
        """Each issuer has a set of Ed25519 keys. The token's `iss` chooses the set, and its `kid` the key."""
        ours, theirs = (Ed25519Issuer(self.folder, name) for name in ("ours", "theirs"))
        jwt = "".join(f'[[client.jwt]]\nissuer = "{each.name}"\njwks = "{each.name}.json"\n' for each in (ours, theirs))
        text = config(self.upstream.port, rules=INSIST + jwt)
        weir = self.start(Weir(text, {f"{each.name}.json": each.key_set("1") for each in (ours, theirs)}))

        def statuses(*tokens):
            return [get(weir.port, authorization=f"Bearer {token}").status for token in tokens]

        self.assertEqual(statuses(ours.token("1"), theirs.token("1"), ours.token("2")), [200, 200, 401])
        self.assertEqual(weir.metric("weir_token_faults_total", reason="key"), 1)
        self.assertEqual(statuses(ours.token("1", iss="theirs"), ours.token("1", iss="others")), [401, 401])

        def reload(key_set, result):
            (weir.folder / "ours.json").write_text(key_set)
            weir.signal(signal.SIGHUP)
            eventually(lambda: weir.metric("weir_reloads_total", result=result) == 1, f"the reload is {result}")

        reload(ours.key_set("1", "2"), "ok")
        self.assertEqual(statuses(ours.token("1"), ours.token("2"), theirs.token("2")), [200, 200, 401])
        reload('{"keys": []}', "failed")
        weir.wait_for("has no public key for signatures that weir knows")
        self.assertEqual(statuses(ours.token("2")), [200], "a faulty file changes nothing")

    def test_token_is_not_verified_if_another_rule_refuses_the_client(self):
        self.begin(INSIST, rule("per-ip", "2/day", key='["ip"]'))  # the rules may be in either order in the file
        forged = self.issuer.token(sub="ann").rsplit(".", 1)[0] + "." + base64url(bytes(64))
        good = self.issuer.token(sub="ann")
        self.assertEqual([self.ask(token).status for token in (forged, good, good)], [401, 200, 200])
        self.assertEqual(self.faults(), {"signature": 1})
        for token in (forged, "rubbish", good):
            said = self.explain(headers={"Authorization": f"Bearer {token}"})
            answer = self.ask(token)
            self.assertEqual((answer.status, answer["x-ratelimit-limit"]), (429, "2"))
            self.assertEqual((said["verdict"]["status"], said["verdict"]["rule"]), (429, "per-ip"))
        self.assertEqual(self.faults(), {"signature": 1}, "tokens of refused requests are not verified")

    def test_token_that_no_rule_needs_is_not_verified(self):
        self.begin(rule("elsewhere", "9/day", key='["claim:sub"]', on_missing='"reject"', match='{ path = "/elsewhere" }'),
                   rule("by-key", "9/day", key='["api_key|user"]'), client='user = { claim = "sub" }')
        self.assertEqual(self.ask("rubbish", x_api_key="k").status, 200)
        self.assertEqual(self.faults(), {})
        self.assertEqual(self.ask("rubbish").status, 200, "the rule does not apply without a user")
        self.assertEqual(self.faults(), {"malformed": 1})

    def test_access_log_names_the_user_of_a_verified_token(self):
        self.begin(rule("per-ip", "1/day", key='["ip"]', match='{ path = "/b" }'),
                   rule("per-user", "9/day", key='["user"]', match='{ not = { path = "/c" } }'), client='user = { claim = "sub" }')
        bearer = {"authorization": "Bearer " + self.issuer.token(sub="ann")}
        self.assertEqual([get(self.weir.port, path, **bearer).status for path in ("/a", "/b", "/b", "/c")], [200, 200, 429, 200])
        self.assertEqual([line.get("user") for line in self.lines(4)], ["ann", "ann", None, None])

    def test_requests_refused_before_token_verification_replay_with_the_same_result(self):
        self.begin(rule("per-ip", "3/day", key='["ip"]'), rule("per-user", "2/day", key='["user"]', on_missing='"reject"'),
                   client='user = { claim = "sub" }')
        good, other = self.issuer.token(sub="ann"), self.issuer.token(sub="bob")
        tokens = (good, "rubbish", good, good, other, good, other, "rubbish")
        self.assertEqual([self.ask(token).status for token in tokens], [200, 401, 200, 429, 200, 429, 429, 429])
        lines = self.lines(len(tokens))
        self.assertEqual([line["replay"].get("unverified", False) for line in lines], [False] * 5 + [True] * 3)
        key = self.folder / "jwt.pem"
        key.write_text(self.issuer.public)
        status, out, errors = run_weir("replay", "--json", str(self.log), config=self.text.replace("jwt.pem", str(key)))
        self.assertEqual(status, 0, errors)
        told = json.loads(out)
        self.assertEqual((told["requests"], told["newly_refused"], told["newly_admitted"]), (8, 0, 0))
        self.assertEqual([(one["rule"], one["otherwise"]) for one in told["rules"]], [("per-ip", 0), ("per-user", 0)])

    def test_claim_can_be_the_hash_key_that_chooses_the_server(self):
        self.begin(client='user = { claim = "sub" }', upstream='balance = "hash"\nhash_key = ["user|ip"]')
        self.assertEqual([self.ask(token).status for token in (self.issuer.token(sub="ann"), "rubbish")], [200, 200])
        self.assertEqual(self.faults(), {"malformed": 1})
        self.assertEqual([line.get("user") for line in self.lines(2)], ["ann", None])


if __name__ == "__main__":
    main()
