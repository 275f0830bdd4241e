#!/usr/bin/env python3
"""Several certificates for one name, with keys of different types. Each client gets a certificate that it can verify."""

import pathlib
import re
import subprocess
import tempfile

from harness import PATIENCE, WEIR, TestCase, Upstream, Weir, config, eventually, main

KEYS = {"rsa": ["rsa:2048"], "ecdsa": ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"], "ed25519": ["ed25519"]}
RSA, ECDSA = "rsa_pss_rsae_sha256:RSA+SHA256", "ECDSA+SHA256"


def make(folder, name, kind, *hosts, days=30):
    names = ["-addext", "subjectAltName=" + ",".join(f"DNS:{host}" for host in hosts)] if hosts else []
    subprocess.run(["openssl", "req", "-x509", "-newkey", *KEYS[kind], "-nodes", "-days", str(days), "-subj", f"/O={name}", *names,
                    "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"], check=True, capture_output=True)


class CertificateKeyTypes(TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-keys-")))
        self.upstream = self.start(Upstream())

    def text(self, *names, server=""):
        pairs = ", ".join(f'{{ cert = "{name}.crt", key = "{name}.key"' +
                          (f', ocsp = "{name}.ocsp"' if (self.folder / f"{name}.ocsp").exists() else "") + " }" for name in names)
        return config(self.upstream.port, listener=f"tls = {{ certificates = [{pairs}] }}", server=server)

    def weir(self, *names, server=""):
        return self.start(Weir(self.text(*names, server=server), {file.name: file.read_bytes() for file in self.folder.iterdir()}))

    def client(self, weir, *options, sni=None):
        asked = ["-servername", sni] if sni else ["-noservername"]
        return subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{weir.port}", *asked, *options], input="",
                              capture_output=True, text=True, timeout=PATIENCE, check=False).stdout

    def shown(self, weir, *options, sni=None):
        """Returns the organization in the certificate that a client with these options gets; None if the handshake fails."""
        found = re.search(r"^subject=O = (\S+)", self.client(weir, *options, sni=sni), re.MULTILINE)
        return found and found[1]

    def assert_each_gets_its_own(self, weir, sni, rsa, ecdsa):
        for options, expected in ((("-tls1_3", "-sigalgs", RSA), rsa), (("-tls1_3", "-sigalgs", ECDSA), ecdsa),
                                  (("-tls1_2", "-sigalgs", RSA), rsa), (("-tls1_2", "-sigalgs", ECDSA), ecdsa),
                                  (("-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"), rsa),
                                  (("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"), ecdsa)):
            self.assertEqual(self.shown(weir, *options, sni=sni), expected, (sni, options))

    def test_each_client_gets_a_certificate_of_a_key_type_that_it_can_verify(self):
        make(self.folder, "old", "rsa", "edge.test", "*.wild.test")
        make(self.folder, "new", "ecdsa", "edge.test", "*.wild.test")
        for order in (("old", "new"), ("new", "old")):
            weir = self.weir(*order)
            for sni in ("edge.test", "EDGE.test", "a.wild.test", "stranger.test", None):
                self.assert_each_gets_its_own(weir, sni, "old", "new")
            for version in ("-tls1_2", "-tls1_3"):
                self.assertEqual(self.shown(weir, version, sni="edge.test"), "new",
                                 "the ECDSA certificate is preferred if the client accepts both")

    def test_certificate_is_chosen_by_the_server_name_before_the_key_type(self):
        make(self.folder, "first", "rsa", "edge.a.test")
        make(self.folder, "other", "ecdsa", "other.a.test")
        make(self.folder, "both", "ecdsa", "*.a.test")
        weir = self.weir("first", "other", "both")
        self.assert_each_gets_its_own(weir, "edge.a.test", "first", "both")
        self.assertEqual(self.shown(weir, sni="other.a.test"), "other")
        self.assertIsNone(self.shown(weir, "-sigalgs", RSA, sni="other.a.test"), "no certificate of another name is presented")
        self.assert_each_gets_its_own(weir, None, "first", "both")

    def test_certificates_of_three_key_types_can_be_combined(self):
        for kind in KEYS:
            make(self.folder, kind, kind, "edge.test")
        weir = self.weir(*KEYS)
        self.assert_each_gets_its_own(weir, "edge.test", "rsa", "ecdsa")
        self.assertEqual(self.shown(weir, "-sigalgs", "ed25519", sni="edge.test"), "ed25519")

    def test_each_certificate_is_renewed_and_has_its_own_expiry_metric(self):
        make(self.folder, "old", "rsa", "edge.test", days=30)
        make(self.folder, "new", "ecdsa", "edge.test", days=40)
        weir = self.weir("old", "new", server='certificate_check = "20ms"')

        def good_until(name):
            return weir.metric("weir_tls_certificate_not_after_seconds", certificate=str(weir.folder / f"{name}.crt"))

        self.assertGreater(good_until("new"), good_until("old") + 8 * 86_400)
        for name, kind in (("old", "rsa"), ("new", "ecdsa")):
            before = good_until(name)
            make(self.folder, name, kind, "edge.test", days=90)
            for file in (f"{name}.key", f"{name}.crt"):
                (weir.folder / file).write_bytes((self.folder / file).read_bytes())
            eventually(lambda name=name, before=before: good_until(name) > before + 40 * 86_400, "the renewed certificate is used")
        self.assert_each_gets_its_own(weir, "edge.test", "old", "new")

    def test_each_certificate_has_its_own_ocsp_response(self):
        for name, kind in (("old", "rsa"), ("new", "ecdsa")):
            make(self.folder, name, kind, "edge.test")
            self.respond(name)
        weir = self.weir("old", "new")
        for options, name in ((("-sigalgs", RSA), "old"), (("-sigalgs", ECDSA), "new")):
            for version in ("-tls1_2", "-tls1_3"):
                said = self.client(weir, version, "-status", *options, sni="edge.test")
                stapled = re.search(r"Serial Number: (\w+)", said)
                self.assertEqual(stapled and int(stapled[1], 16), self.serial(name), (version, name))

    def serial(self, name):
        text = subprocess.run(["openssl", "x509", "-noout", "-serial", "-in", self.folder / f"{name}.crt"], text=True, check=True,
                              capture_output=True).stdout
        return int(text.strip().partition("=")[2], 16)

    def respond(self, name):
        """Makes NAME.ocsp: an OCSP response about the certificate, signed with the certificate's own key."""
        crt, key, index, asked = (self.folder / f"{name}.{ending}" for ending in ("crt", "key", "index", "asked"))
        index.write_text(f"V\t491231235959Z\t\t{self.serial(name):X}\tunknown\t/O={name}\n")
        for arguments in (["-issuer", crt, "-cert", crt, "-reqout", asked, "-no_nonce"],
                          ["-index", index, "-rsigner", crt, "-rkey", key, "-CA", crt, "-reqin", asked, "-respout",
                           self.folder / f"{name}.ocsp", "-ndays", "3"]):
            subprocess.run(["openssl", "ocsp", *arguments], check=True, capture_output=True)

    def test_certificate_that_is_never_presented_causes_a_warning(self):
        make(self.folder, "first", "rsa", "*.edge.test")
        make(self.folder, "behind", "rsa", "a.edge.test")
        make(self.folder, "nameless", "ecdsa")
        make(self.folder, "good", "ecdsa", "a.edge.test")
        weir = self.weir("first", "behind", "nameless", "good")
        checked = subprocess.run([WEIR, "check", "--strict", "--config", weir.folder / "weir.toml"], capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 1, checked.stderr)
        for warning in ('the certificate ".*behind.crt" can never be used: ".*first.crt" before it has the same names and key type',
                        'the certificate ".*nameless.crt" can never be used: it contains no host name'):
            weir.wait_for("warning " + warning)
            self.assertRegex(checked.stderr, warning)
        self.assertNotRegex(checked.stderr, "(first|good).crt\" can never")


if __name__ == "__main__":
    main()
