#!/usr/bin/env python3
"""Certificates that weir orders and renews by itself, from a real ACME authority (pebble)."""

import base64
import re
import resource
import socket
import ssl
import stat
import subprocess
import threading
import time

from acme_authority import Authority, RenewalFront
from harness import PATIENCE, Client, TestCase, Upstream, Weir, config, eventually, get, main, rule, run_weir

NAMES = ("www.weir.example", "weir.example")
LIST = ", ".join(f'"{name}"' for name in NAMES)


class Balancer:
    """Passes each connection on to the next of the ports, in turn."""

    def __init__(self, ports):
        self.ports, self.turn, self.wires = ports, 0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for wire in self.wires:
            wire.close()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.ports[self.turn % len(self.ports)]), PATIENCE)
            self.turn += 1
            self.wires += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def pump(source, sink):
        try:
            while octets := source.recv(65536):
                sink.sendall(octets)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Acme(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def authority(self, **options):
        return self.start(Authority(**options))

    def configuration(self, authority, more="", listener="", rules="", names=LIST, tls="", retry="1s"):
        text = config(self.upstream.port, rules=rules)
        return text.replace("[[listener]]", f"""[acme]
directory = "{authority.directory}"
accept_terms = true
email = "admin@weir.example"
folder = "acme"
ca = "directory.crt"
retry = "{retry}"
{more}
[[listener]]
name = "https"
address = "127.0.0.1:0"
tls = {{ certificates = [{{ acme = [{names}] }}]{tls} }}
{listener}
[[listener]]""", 1)

    def weir(self, authority, folder=None, **options):
        text = self.configuration(authority, **options)
        if folder is not None:
            text = text.replace('folder = "acme"', f'folder = "{folder}"')
        weir = self.start(Weir(text, {"directory.crt": authority.files["edge.crt"], "edge.crt": authority.files["edge.crt"]}))
        weir.tls, weir.plain = weir.ports
        return weir

    def shown(self, weir, name=NAMES[0]):
        """Returns the certificate that a client of this name gets, whoever signed it."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", weir.tls), PATIENCE) as wire:
            with context.wrap_socket(wire, server_hostname=name) as tls:
                return ssl.DER_cert_to_PEM_cert(tls.getpeercert(True))

    def subject(self, certificate, field="subject"):
        return subprocess.run(["openssl", "x509", "-noout", f"-{field}"], input=certificate, text=True, capture_output=True,
                              check=True).stdout

    def is_placeholder(self, weir):
        return "weir placeholder" in self.subject(self.shown(weir))

    def await_certificate(self, weir, authority):
        """Waits until clients that trust the authority get a good certificate for each name."""
        weir.wait_for("info acme: has a new certificate for www.weir.example, weir.example, valid for ")
        eventually(lambda: not self.is_placeholder(weir), "weir serves the new certificate")
        trust = authority.trust()
        for name in NAMES:
            with socket.create_connection(("127.0.0.1", weir.tls), PATIENCE) as wire:
                with trust.wrap_socket(wire, server_hostname=name) as tls:
                    tls.sendall(b"GET /x HTTP/1.1\r\nHost: " + name.encode() + b"\r\nConnection: close\r\n\r\n")
                    self.assertIn(b" 200 ", tls.recv(65536).split(b"\r\n")[0])

    def test_weir_gets_a_certificate_by_http_01_from_an_authority_that_was_unreachable_at_first(self):
        authority = self.authority()
        # the rule refuses every request after the first, but no rule applies to the authority's check
        weir = self.weir(authority, rules=rule("checks", key='["ip"]', match='{ path = "~^/.well-known/" }'))
        self.assertTrue(self.is_placeholder(weir))
        self.assertEqual(weir.metric("weir_acme_placeholders"), 1)
        self.assertEqual(get(weir.plain, "/.well-known/acme-challenge/other").status, 200)
        weir.wait_for(r"warning acme: cannot order a certificate for www.weir.example, weir.example: https://localhost:\d+/dir: .*; weir "
                      "keeps the present one and tries again in [12]s")
        authority.start(http=weir.plain)
        self.await_certificate(weir, authority)
        self.await_metric(weir, 1, "weir_acme_orders_total", result="ok")
        self.assertGreaterEqual(weir.metric("weir_acme_orders_total", result="failed"), 1)
        self.await_metric(weir, 0, "weir_acme_placeholders")
        self.assertEqual(authority.orders(), 1)
        self.check_files(weir.folder / "acme")

    def check_files(self, folder):
        """Only the owner may read the folder and each file in it. No challenge is left."""
        found = sorted(re.sub(r"\.[\w-]{12}\.retry$", ".HASH.retry", path.name) for path in folder.iterdir())
        self.assertEqual(found, ["account.pem", "challenges", "lock", "www.weir.example.HASH.retry", "www.weir.example.pem"])
        self.assertEqual(list((folder / "challenges").iterdir()), [])
        for path in (folder, *folder.rglob("*")):
            self.assertEqual(oct(stat.S_IMODE(path.stat().st_mode)), oct(0o700 if path.is_dir() else 0o600), path)

    def test_weir_gets_a_certificate_by_tls_alpn_01_for_a_listener_that_requires_client_certificates(self):
        authority = self.authority()
        # edge.crt stands for an authority of clients: any certificate will do
        weir = self.weir(authority, more='challenge = "tls-alpn-01"', tls=', client_ca = "edge.crt"')
        authority.start(tls=weir.tls)
        weir.wait_for("info acme: has a new certificate for www.weir.example, weir.example, valid for ")
        self.assertEqual(authority.orders(), 1)
        self.await_metric(weir, 1, "weir_acme_orders_total", result="ok")

    def test_connection_for_a_check_by_tls_alpn_01_serves_no_request(self):
        """While a challenge is pending, a connection with the ALPN protocol of the check (acme-tls/1) needs no client certificate. So
        this connection must serve no request. Without a challenge, the handshake fails."""
        authority = self.authority()
        weir = self.weir(authority, more='challenge = "tls-alpn-01"', tls=', client_ca = "edge.crt"', retry="1h")
        weir.wait_for("warning acme: cannot order")  # another attempt to order would withdraw the challenge below
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["acme-tls/1"])
        with socket.create_connection(("127.0.0.1", weir.tls), PATIENCE) as wire:
            with self.assertRaises(OSError):
                context.wrap_socket(wire, server_hostname=NAMES[0])
        (weir.folder / "acme/challenges/token").write_text(f"tls-alpn-01 {NAMES[0]} token.thumbprint\n")
        eventually(lambda: self.answer_to_check(weir, context) == b"", "the check's connection ends without an answer")
        self.assertEqual(self.upstream.exchanges, [])

    def answer_to_check(self, weir, context):
        """Returns what weir sends after the handshake of a check; None if there is no handshake yet."""
        with socket.create_connection(("127.0.0.1", weir.tls), PATIENCE) as wire:
            try:
                tls = context.wrap_socket(wire, server_hostname=NAMES[0])
            except OSError:
                return None
            with tls:
                self.assertEqual(tls.selected_alpn_protocol(), "acme-tls/1")
                try:
                    tls.sendall(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
                    return tls.recv(65536)
                except OSError:
                    return b""

    def test_certificate_is_renewed_before_it_expires_and_open_connections_continue(self):
        authority = self.authority(valid=45)
        weir = self.weir(authority)
        authority.start(http=weir.plain)
        self.await_certificate(weir, authority)
        first = self.shown(weir)
        context = authority.trust()
        with Client(weir.tls, context, name=NAMES[0]) as old:
            self.assertEqual(old.get("/").status, 200)
            eventually(lambda: self.shown(weir) != first, "weir serves a renewed certificate", 4 * PATIENCE)  # due after 30 s
            self.assertEqual(old.get("/").status, 200)
        ends = ssl.cert_time_to_seconds(self.subject(first, "enddate").strip().partition("=")[2])
        begins = ssl.cert_time_to_seconds(self.subject(self.shown(weir), "startdate").strip().partition("=")[2])
        self.assertLess(begins, ends)
        self.assertGreaterEqual(weir.metric("weir_acme_orders_total", result="ok"), 2)

    def test_certificate_is_renewed_in_the_period_that_the_authority_names(self):
        """Without the authority's period, weir would renew after 120 seconds. With the period, weir renews after the pause of
        30 seconds that follows each order."""
        authority = self.authority(valid=180)
        ago = time.time() - 3600
        front = self.start(RenewalFront(authority, (ago, ago + 60)))
        authority.directory = front.directory
        weir = self.weir(authority)
        authority.start(http=weir.plain)
        self.await_certificate(weir, authority)
        first = self.shown(weir)
        eventually(lambda: self.shown(weir) != first, "weir serves a renewed certificate", 75)
        named = self.name_for_renewal(first)
        self.assertEqual(front.asked[0], named)
        self.assertEqual(front.replaced[:2], [None, named])

    def name_for_renewal(self, certificate):
        """Returns the name of a certificate in requests about its renewal: issuer's key and serial number (RFC 9773)."""
        text = self.subject(certificate, "text")
        issuer = re.search(r"Authority Key Identifier: \s*([0-9A-F:]+)", text).group(1).replace(":", "")
        serial = self.subject(certificate, "serial").strip().partition("=")[2]
        if serial[0] in "89ABCDEF":
            serial = "00" + serial
        return ".".join(base64.urlsafe_b64encode(bytes.fromhex(part)).decode().rstrip("=") for part in (issuer, serial))

    def test_external_account_is_bound_if_the_authority_demands_one(self):
        authority = self.authority()
        secret = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
        bound = self.weir(authority, more=f'external_account = {{ kid = "ours", hmac_key = "{secret}" }}')
        other = self.weir(authority)
        authority.start(http=bound.plain, accounts={"ours": secret})
        self.await_certificate(bound, authority)
        other.wait_for("the authority takes only accounts that were made at its web site; expected external_account = ")
        self.assertTrue(self.is_placeholder(other))

    def test_order_succeeds_although_the_authority_rejects_most_nonces(self):
        authority = self.authority()
        weir = self.weir(authority)
        authority.start(http=weir.plain, PEBBLE_WFE_NONCEREJECT="40")
        self.await_certificate(weir, authority)

    def test_instances_that_share_a_folder_place_a_single_order_and_answer_each_others_checks(self):
        authority = self.authority()
        shared = self.start(Weir(config(self.upstream.port))).folder / "acme"
        weirs = [self.weir(authority, folder=shared) for _ in range(3)]
        balancer = self.start(Balancer([weir.plain for weir in weirs]))
        authority.start(http=balancer.port)
        for weir in weirs:
            eventually(lambda weir=weir: not self.is_placeholder(weir), "each weir serves the certificate")
        self.assertEqual(len({self.shown(weir) for weir in weirs}), 1)
        # no weir withdrew the challenges of another one
        failures = [line for weir in weirs for line in weir.lines if "cannot order" in line]
        self.assertEqual([line for line in failures if f"{authority.directory}: " not in line], [])
        self.assertEqual(authority.orders(), 1)
        self.assertEqual(sum(weir.metric("weir_acme_orders_total", result="ok") for weir in weirs), 1)
        self.check_files(shared)

    def test_failed_check_by_the_authority_is_logged_and_unknown_challenges_go_to_the_upstream(self):
        authority = self.authority()
        weir = self.weir(authority)
        authority.start(http=self.upstream.port)  # answers the check with another text
        line = weir.wait_for("warning acme: cannot order .*: the authority could not check (www.)?weir.example: .*unauthorized")[0].string
        self.assertIn("tries again in", line)
        self.assertTrue(self.is_placeholder(weir))
        self.assertEqual(get(weir.plain, "/.well-known/acme-challenge/other").status, 200)

    def test_reload_that_adds_names_orders_another_certificate(self):
        authority = self.authority()
        weir = self.weir(authority)
        authority.start(http=weir.plain)
        self.await_certificate(weir, authority)
        path = weir.folder / "weir.toml"
        path.write_text(path.read_text().replace(LIST, LIST + ', "api.weir.example"'))
        weir.signal(1)
        weir.wait_for("info acme: has a new certificate for www.weir.example, weir.example, api.weir.example, valid for ")
        eventually(lambda: "api.weir.example" in self.subject(self.shown(weir), "text"),
                   "weir serves the certificate with the new name")

    def test_certificate_in_the_folder_is_used_after_a_restart(self):
        authority = self.authority()
        shared = self.start(Weir(config(self.upstream.port))).folder / "acme"
        weir = self.weir(authority, folder=shared)
        authority.start(http=weir.plain)
        self.await_certificate(weir, authority)
        first = self.shown(weir)
        weir.stop()
        again = self.weir(authority, folder=shared)
        self.assertEqual(self.shown(again), first)
        self.assertEqual(authority.orders(), 1)

    def test_full_disk_costs_no_certificate_and_the_pauses_double_until_there_is_room(self):
        authority = self.authority()
        weir = self.weir(authority)
        _, most = resource.prlimit(weir.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(weir.pid, resource.RLIMIT_FSIZE, (0, most))  # the system refuses each octet, as on a full disk
        authority.start(http=weir.plain)
        full = (r"warning acme: cannot order a certificate for .*: cannot write a file in the folder \S+/acme.: File too large; "
                r"weir keeps the present one and tries again in (\d+)s")
        pauses = [int(found.group(1)) for found in weir.wait_for(full, 2)]
        self.assertEqual(pauses[1], 2 * pauses[0])
        self.assertGreaterEqual(weir.metric("weir_acme_orders_total", result="failed"), 2)
        self.assertTrue(self.is_placeholder(weir))
        resource.prlimit(weir.pid, resource.RLIMIT_FSIZE, (most, most))
        self.await_certificate(weir, authority)
        self.assertEqual(authority.orders(), 1)

    def test_certificate_folder_that_cannot_be_made_is_an_error_at_the_start(self):
        authority = self.authority()
        text = self.configuration(authority).replace('folder = "acme"', 'folder = "/proc/acme"').replace(
            'ca = "directory.crt"', "")
        status, _, errors = run_weir("run", config=text)
        self.assertEqual(status, 1)
        self.assertRegex(errors, r'weir.toml:\d+: .*cannot make the folder "/proc/acme": No such file or directory')


if __name__ == "__main__":
    main()
