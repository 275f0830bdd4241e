#!/usr/bin/env python3
"""TLS certificates that are renewed while weir runs, OCSP stapling, and TLS sessions that continue after a renewal."""

import pathlib
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import time

from harness import (PATIENCE, WEIR, Client, TestCase, Upstream, Weir, client_tls, config, eventually, main, make_authority,
                     make_certificate, make_client_certificate, make_revocation_list)

QUICK = 'certificate_check = "20ms"'


class CertificateRenewal(TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.files = make_certificate(self.folder)
        self.upstream = self.start(Upstream())

    def weir(self, server=QUICK, certificate='cert = "edge.crt", key = "edge.key"', more=""):
        listener = f"tls = {{ certificates = [{{ {certificate} }}]{more} }}"
        return self.start(Weir(config(self.upstream.port, listener=listener, server=server), self.files))

    def shown(self, weir):
        return ssl.get_server_certificate(("127.0.0.1", weir.port), timeout=PATIENCE)

    def renew(self, weir, key_first=True):
        """Replaces the certificate and its key by a new pair for the same name. Each file is replaced as a whole, one after the
        other."""
        fresh = make_certificate(self.folder)
        for name in sorted(fresh, key=lambda name: name.endswith(".key") != key_first):
            (weir.folder / f"{name}.new").write_text(fresh[name])
            (weir.folder / f"{name}.new").rename(weir.folder / name)
        return fresh["edge.crt"]

    def test_new_connections_get_the_new_certificate_and_open_connections_continue(self):
        weir = self.weir()
        self.assertEqual(self.shown(weir), self.files["edge.crt"])
        with Client(weir.port, client_tls(self.files["edge.crt"])) as old:
            self.assertEqual(old.get("/").status, 200)
            fresh = self.renew(weir)
            eventually(lambda: self.shown(weir) == fresh, "the renewed certificate is used")
            weir.wait_for("info TLS on 127.0.0.1:0: reloaded the certificates")
            self.assertEqual(old.get("/").status, 200)
        self.assertGreaterEqual(weir.metric("weir_tls_renewals_total", result="ok"), 1)

    def test_faulty_new_certificate_files_are_reported_once_and_not_used(self):
        weir = self.weir()
        (weir.folder / "edge.crt").write_text("no certificate")
        weir.wait_for('warning TLS on 127.0.0.1:0: cannot load the changed files; weir keeps the previous certificates: '
                      'the certificate ".*edge.crt" is not a PEM file; expected one with -----BEGIN CERTIFICATE-----')
        self.assertEqual(self.shown(weir), self.files["edge.crt"])
        self.await_metric(weir, 1, "weir_tls_renewals_total", result="faulty")
        fresh = self.renew(weir)
        eventually(lambda: self.shown(weir) == fresh, "the renewed certificate is used")

    def test_sighup_reads_changed_certificates_if_files_are_not_watched(self):
        weir = self.weir(server='certificate_check = "0s"')
        fresh = self.renew(weir)
        self.assertEqual(self.shown(weir), self.files["edge.crt"])
        weir.process.send_signal(signal.SIGHUP)
        eventually(lambda: self.shown(weir) == fresh, "the renewed certificate is used")

    def test_metric_and_warning_tell_when_a_certificate_expires(self):
        weir = self.weir()
        text = subprocess.run(["openssl", "x509", "-noout", "-enddate"], input=self.files["edge.crt"], text=True,
                              capture_output=True, check=True).stdout
        ends = ssl.cert_time_to_seconds(text.strip().partition("=")[2])
        self.assertEqual(weir.metric("weir_tls_certificate_not_after_seconds"), ends)
        date = time.strftime("%Y-%m-%d", time.gmtime(ends))
        weir.wait_for(f'warning the certificate ".*edge.crt" expires on {date} ')

    def resumes(self, weir, trust, session):
        with socket.create_connection(("127.0.0.1", weir.port), PATIENCE) as wire:
            with trust.wrap_socket(wire, server_hostname="localhost", session=session) as tls:
                return tls.session_reused, tls.session

    def test_tls_sessions_are_resumed_after_a_certificate_renewal(self):
        weir = self.weir()
        trust = client_tls(self.files["edge.crt"])
        # in TLS 1.2, unlike in TLS 1.3, the client has its session when the handshake ends
        trust.maximum_version = ssl.TLSVersion.TLSv1_2
        _, session = self.resumes(weir, trust, None)
        fresh = self.renew(weir)
        eventually(lambda: self.shown(weir) == fresh, "the renewed certificate is used")
        self.assertEqual(self.resumes(weir, trust, session)[0], True)

    def test_tls_session_from_before_a_change_of_the_client_ca_is_not_resumed(self):
        self.files |= make_authority(self.folder)
        make_client_certificate(self.folder, "alice", "/CN=alice")
        weir = self.weir(more=', client_ca = "ca.crt"')
        trust = client_tls(self.files["edge.crt"], shown=self.folder / "alice")
        trust.maximum_version = ssl.TLSVersion.TLSv1_2
        _, session = self.resumes(weir, trust, None)
        self.assertEqual(self.resumes(weir, trust, session)[0], True)
        (weir.folder / "ca.crt").write_text(make_authority(self.folder, "other")["other.crt"])
        weir.wait_for("info TLS on 127.0.0.1:0: reloaded the certificates")
        with self.assertRaises((OSError, EOFError)):
            self.resumes(weir, trust, session)

    def test_revoked_client_certificate_is_refused_once_the_file_of_revocation_lists_has_changed(self):
        """weir reads the changed file without a reload. The session from before the revocation is not resumed."""
        self.files |= make_authority(self.folder)
        for name in ("alice", "bob"):
            make_client_certificate(self.folder, name, f"/CN={name}")
        self.files["ca.crl"] = make_revocation_list(self.folder)
        weir = self.weir(more=', client_ca = "ca.crt", client_crl = "ca.crl"')
        alice, bob = (client_tls(self.files["edge.crt"], shown=self.folder / name) for name in ("alice", "bob"))
        for trust in (alice, bob):
            trust.maximum_version = ssl.TLSVersion.TLSv1_2
        _, session = self.resumes(weir, alice, None)
        self.assertEqual(self.resumes(weir, alice, session)[0], True)
        self.assertGreater(weir.metric("weir_tls_client_crl_not_after_seconds", file=str(weir.folder / "ca.crl")), time.time())
        replacement = weir.folder / "new.crl"
        replacement.write_text(make_revocation_list(self.folder, ["alice"]))
        replacement.rename(weir.folder / "ca.crl")
        weir.wait_for("info TLS on 127.0.0.1:0: reloaded the certificates")
        for offered in (session, None):
            with self.assertRaises((OSError, EOFError)):
                self.resumes(weir, alice, offered)
        weir.wait_for("refused the client 127.0.0.1: certificate revoked")
        self.assertEqual(self.resumes(weir, bob, None)[0], False)

    def test_faulty_file_of_revocation_lists_changes_nothing(self):
        self.files |= make_authority(self.folder)
        make_client_certificate(self.folder, "alice", "/CN=alice")
        self.files["ca.crl"] = make_revocation_list(self.folder)
        weir = self.weir(more=', client_ca = "ca.crt", client_crl = "ca.crl"')
        (weir.folder / "ca.crl").write_text("no list")
        weir.wait_for("cannot load the changed files; weir keeps the previous certificates: the file of revocation lists")
        trust = client_tls(self.files["edge.crt"], shown=self.folder / "alice")
        trust.maximum_version = ssl.TLSVersion.TLSv1_2
        self.assertEqual(self.resumes(weir, trust, None)[0], False)

    def test_tls_session_without_a_client_certificate_is_not_resumed_once_certificates_are_required(self):
        self.files |= make_authority(self.folder)
        weir = self.weir(more=', client_ca = "ca.crt", client_auth = "optional"')
        trust = client_tls(self.files["edge.crt"])
        trust.maximum_version = ssl.TLSVersion.TLSv1_2
        _, session = self.resumes(weir, trust, None)
        self.assertEqual(self.resumes(weir, trust, session)[0], True)
        path = weir.folder / "weir.toml"
        path.write_text(path.read_text().replace("optional", "require"))
        weir.process.send_signal(signal.SIGHUP)
        eventually(lambda: weir.metric("weir_reloads_total", result="ok") == 1, "the configuration is reloaded")
        with self.assertRaises((OSError, EOFError)):
            self.resumes(weir, trust, session)
        weir.wait_for("refused the client 127.0.0.1: it presents no certificate")


class Stapling(TestCase):
    """OCSP responses that weir staples. The openssl program makes them, and signs each with the certificate's own key."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        make_authority(self.folder)
        make_client_certificate(self.folder, "edge", "/CN=localhost")
        make_client_certificate(self.folder, "other", "/CN=other")

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def respond(self, name, days):
        serial = subprocess.run(["openssl", "x509", "-noout", "-serial", "-in", f"{name}.crt"], cwd=self.folder, text=True,
                                check=True, capture_output=True).stdout.strip().partition("=")[2]
        (self.folder / "index.txt").write_text(f"V\t491231235959Z\t\t{serial}\tunknown\t/CN={name}\n")
        self.openssl("ocsp", "-issuer", "ca.crt", "-cert", f"{name}.crt", "-reqout", "request.der", "-no_nonce")
        self.openssl("ocsp", "-index", "index.txt", "-rsigner", "ca.crt", "-rkey", "ca.key", "-CA", "ca.crt",
                     "-reqin", "request.der", "-respout", "edge.ocsp", "-ndays", str(days))

    def weir(self):
        listener = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key", ocsp = "edge.ocsp" }] }'
        names = ("edge.crt", "edge.key", "edge.ocsp")
        files = {name: (self.folder / name).read_bytes() for name in names}
        return self.start(Weir(config(self.start(Upstream()).port, listener=listener, server=QUICK), files))

    def stapled(self, weir):
        said = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{weir.port}", "-status", "-CAfile",
                               self.folder / "ca.crt"], input="", capture_output=True, text=True, check=False).stdout
        found = re.search(r"OCSP Response Status: (\w+)|OCSP response: (no response sent)", said)
        return found[1] or found[2]

    def test_ocsp_response_is_stapled_and_read_again_when_it_changes(self):
        self.respond("edge", 3)
        weir = self.weir()
        self.assertEqual(self.stapled(weir), "successful")
        until = weir.metric("weir_tls_staple_not_after_seconds")
        self.respond("edge", 5)
        (weir.folder / "edge.ocsp").write_bytes((self.folder / "edge.ocsp").read_bytes())
        eventually(lambda: weir.metric("weir_tls_staple_not_after_seconds") >= until + 86_400, "the renewed OCSP response is stapled")
        self.assertEqual(self.stapled(weir), "successful")

    def test_ocsp_response_for_another_certificate_is_not_stapled_and_causes_a_warning(self):
        self.respond("other", 3)
        weir = self.weir()
        weir.wait_for('warning the OCSP response ".*edge.ocsp" is for another certificate and is not stapled')
        self.assertEqual(self.stapled(weir), "no response sent")
        self.assertEqual(weir.metric("weir_tls_staple_not_after_seconds"), 0)
        checked = subprocess.run([WEIR, "check", "--config", weir.folder / "weir.toml"], capture_output=True, text=True, check=True)
        self.assertIn("is for another certificate and is not stapled", checked.stderr)

    def test_renewed_certificate_is_used_even_if_its_ocsp_response_is_missing(self):
        self.respond("edge", 3)
        weir = self.weir()
        self.assertEqual(self.stapled(weir), "successful")
        make_client_certificate(self.folder, "edge", "/CN=localhost")
        for name in ("edge.key", "edge.crt"):
            (weir.folder / name).write_bytes((self.folder / name).read_bytes())
        renewed = (self.folder / "edge.crt").read_text()
        eventually(lambda: ssl.get_server_certificate(("127.0.0.1", weir.port), timeout=PATIENCE) == renewed,
                   "the renewed certificate is used")
        self.assertEqual(self.stapled(weir), "no response sent")
        self.respond("edge", 3)
        (weir.folder / "edge.ocsp").write_bytes((self.folder / "edge.ocsp").read_bytes())
        eventually(lambda: self.stapled(weir) == "successful", "the OCSP response is stapled")


if __name__ == "__main__":
    main()
