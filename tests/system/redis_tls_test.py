#!/usr/bin/env python3
"""TLS to Redis and to Sentinels: which certificates weir trusts, and what weir does and logs if it does not trust a certificate."""

import pathlib
import random
import re
import subprocess
import tempfile

from harness import (BELOW_EPHEMERAL, Redis, TestCase, Upstream, Weir, config, eventually, main, make_authority, rule,
                     run_weir)


def make_certificate_of(folder, name, names, authority="ca", days=2):
    """Makes NAME.crt and NAME.key for the names `names`, signed by an authority of make_authority()."""
    folder = pathlib.Path(folder)
    request = subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                              "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key"], check=True, capture_output=True).stdout
    (folder / "names").write_text(f"subjectAltName={names}\n")
    subprocess.run(["openssl", "x509", "-req", "-days", str(days), "-CA", folder / f"{authority}.crt", "-CAkey",
                    folder / f"{authority}.key", "-CAcreateserial", "-extfile", folder / "names",
                    "-out", folder / f"{name}.crt"], input=request, check=True, capture_output=True)


class TlsRedis(Redis):
    """A Redis that uses TLS on `tls_port`, and plain TCP for the test's own commands."""

    def __init__(self, folder, name, *options):
        self.tls = ["--tls-cert-file", f"{folder}/{name}.crt", "--tls-key-file", f"{folder}/{name}.key",
                    "--tls-ca-cert-file", f"{folder}/ca.crt"]
        self.own = options
        super().__init__()

    def start(self):
        self.tls_port = random.randrange(*BELOW_EPHEMERAL)
        return self.start_again()

    def start_again(self):
        self.options = [*self.tls, "--tls-port", str(self.tls_port), *self.own]
        return super().start()

    @property
    def url(self):
        return f"rediss://127.0.0.1:{self.tls_port}"


class TlsSentinel(TlsRedis):
    def __init__(self, folder, master):
        self.master = master
        super().__init__(folder, "server", "--tls-replication", "yes")

    def start(self):
        self.tls_port = random.randrange(*BELOW_EPHEMERAL)
        path = pathlib.Path(self.folder.name) / "sentinel.conf"
        path.write_text(f"port {self.port}\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 {self.master.tls_port} 1\n")
        self.process = subprocess.Popen(
            ["redis-server", str(path), "--sentinel", *self.tls, "--tls-port", str(self.tls_port), *self.own],
            stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd=self.folder.name)
        return self.answers()


class RedisTls(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="weir-tls-"))
        for authority in ("ca", "stranger"):
            make_authority(cls.folder, authority)
        make_certificate_of(cls.folder, "server", "IP:127.0.0.1,DNS:redis.test")
        make_certificate_of(cls.folder, "elsewhere", "IP:127.0.0.2,DNS:elsewhere.test")
        make_certificate_of(cls.folder, "expired", "IP:127.0.0.1", days=-1)
        make_certificate_of(cls.folder, "weir", "DNS:weir.test")

    def state(self, url, ca="ca", shown="weir", more="", topology=""):
        shown = f', cert = "{self.folder}/{shown}.crt", key = "{self.folder}/{shown}.key"' if shown else ""
        return (f'key_secret = "test"\nredis = {{ url = "{url}", timeout = "1s"{topology}, '
                f'tls = {{ ca = "{self.folder}/{ca}.crt"{shown}{more} }} }}')

    def weir(self, url, policy="closed", server="", **how):
        rules = rule("count", "1/day", burst=20, store='"redis"', key='["header:X-Count"]', on_store_failure=f'"{policy}"')
        return self.start(Weir(config(self.start(Upstream()).port, rules=rules, server=server, state=self.state(url, **how))))

    def test_two_instances_share_a_limit_over_tls(self):
        """One instance connects by address, and one by a name that only the certificate and SNI contain. Both show a client
        certificate."""
        redis = self.start(TlsRedis(self.folder, "server"))
        weirs = [self.weir(redis.url), self.weir(redis.url, more=', server_name = "redis.test"')]
        for weir in weirs:
            weir.wait_for(rf"redis 127\.0\.0\.1:{redis.tls_port} is up", 2)  # once for each worker
        statuses = [status for _ in range(3) for weir in weirs for status in self.statuses(weir.port, 5, x_count="a")]
        self.assertEqual((statuses.count(200), statuses.count(429)), (20, 10))
        for connection in redis.command("CLIENT", "LIST").decode().splitlines():
            if "name=weir" in connection:
                self.assertIn(f":{redis.tls_port} ", connection)
        redis.kill()
        eventually(lambda: weirs[0].get("/", x_count="b").status == 503, "requests are refused while Redis is unreachable")
        self.assertTrue(redis.start_again())
        eventually(lambda: weirs[0].get("/", x_count="b").status == 200, "requests are admitted when Redis is reachable again")

    def distrusted(self, server, pattern, **how):
        url = server.url.replace("redis://", "rediss://")
        port = int(re.search(r":(\d+)$", url).group(1))
        weir = self.weir(url, **how)
        weir.wait_for(rf"redis 127\.0\.0\.1:{port} is down: {pattern}")
        self.assertEqual(weir.get("/", x_count="a").status, 503)
        status, _, errors = run_weir("redis-check", config=config(9, state=self.state(url, **how)))
        self.assertEqual(status, 1)
        self.assertRegex(errors, pattern.split(", ", 1)[1])
        return weir

    def test_untrusted_redis_servers_are_rejected_and_reported(self):
        redis = self.start(TlsRedis(self.folder, "server"))
        for certificate, pattern, how in (
                ("server", "no_tls, its certificate is not trusted: .*(issuer|self.signed)", {"ca": "stranger"}),
                ("server", "no_tls, its certificate is not trusted: hostname mismatch", {"more": ', server_name = "a.test"'}),
                ("elsewhere", "no_tls, its certificate is not trusted: IP address mismatch", {}),
                ("expired", "no_tls, its certificate is not trusted: certificate has expired", {}),
                # With TLS 1.3 the server rejects a client after the handshake. If weir has already written data, the server may
                # reset the connection.
                ("server", "connection_lost, (TLS: .*certificate required|.* right after the TLS handshake; does it require a)", {"shown": None})):
            with self.subTest(certificate=certificate, pattern=pattern):
                server = redis if certificate == "server" else self.start(TlsRedis(self.folder, certificate))
                self.distrusted(server, pattern, **how)

    def test_port_without_tls_is_reported(self):
        """A port without TLS may fail at once or stay silent, depending on how the server interprets the bytes of the
        handshake."""
        said = "(the peer does not speak TLS|.* to the TLS handshake; is it a port without TLS|the TLS handshake failed)"
        self.distrusted(self.start(Redis()), f"(no_tls|timeout), {said}")

    def test_setting_on_store_failure_applies_until_a_corrected_ca_file_is_read(self):
        redis = self.start(TlsRedis(self.folder, "server"))
        weir_ca = pathlib.Path(self.folder) / "renewed.crt"
        weir_ca.write_text((pathlib.Path(self.folder) / "stranger.crt").read_text())
        weir = self.weir(redis.url, policy="open", ca="renewed")
        weir.wait_for("is down: no_tls")
        self.assertEqual(self.statuses(weir.port, 30, x_count="a"), [200] * 30)
        self.assertEqual(len([line for line in weir.lines if "is down" in line]), 2, "each worker logs one line")
        weir_ca.write_text((pathlib.Path(self.folder) / "ca.crt").read_text())
        weir.wait_for(rf"redis 127\.0\.0\.1:{redis.tls_port} is up", 2)
        self.assertEqual(self.statuses(weir.port, 30, x_count="a").count(200), 20)

    def test_faulty_new_ca_file_is_not_used(self):
        redis = self.start(TlsRedis(self.folder, "server"))
        good = (pathlib.Path(self.folder) / "ca.crt").read_text()
        weir_ca = pathlib.Path(self.folder) / "half.crt"
        weir_ca.write_text(good)
        weir = self.weir(redis.url, ca="half", server='certificate_check = "20ms"')
        self.assertEqual(weir.get("/", x_count="a").status, 200)
        weir_ca.write_text(good[:len(good) // 2])
        weir.wait_for('warning TLS to redis: cannot load the changed files; weir keeps the previous ones: .*half.crt')
        connects = len(weir.wait_for(rf"redis 127\.0\.0\.1:{redis.tls_port} is up", 2))
        redis.command("CLIENT", "KILL", "TYPE", "normal")
        weir.wait_for(rf"redis 127\.0\.0\.1:{redis.tls_port} is up", connects + 2)
        self.assertEqual(weir.get("/", x_count="b").status, 200)
        weir_ca.write_text(good)
        weir.wait_for("info TLS to redis: reloaded the files")

    def test_any_certificate_of_redis_is_accepted_if_verify_is_set_to_false(self):
        redis = self.start(TlsRedis(self.folder, "expired"))
        weir = self.weir(redis.url, ca="stranger", more=", verify = false")
        self.assertEqual(weir.get("/", x_count="a")["x-ratelimit-remaining"], "19")
        self.assertIn("verify = false", weir.log())

    def test_redis_check_works_over_tls(self):
        redis = self.start(TlsRedis(self.folder, "server"))
        status, said, errors = run_weir("redis-check", config=config(9, state=self.state(redis.url)))
        self.assertEqual((status, errors), (0, ""))
        self.assertRegex(said, r"(?m)^  reachable +yes, as the default user, with TLS$")

    def test_master_named_by_the_sentinels_is_used_over_tls(self):
        master = self.start(TlsRedis(self.folder, "server"))
        sentinel = self.start(TlsSentinel(self.folder, master))
        topology = (f', topology = "sentinel", master = "mymaster", sentinels = ["127.0.0.1:{sentinel.tls_port}"], '
                    'sentinel_tls = true')
        weir = self.weir("rediss://sentinel", topology=topology)
        weir.wait_for(rf"redis mymaster at 127\.0\.0\.1:{master.tls_port} is up", 2)
        self.assertEqual(weir.get("/", x_count="a")["x-ratelimit-remaining"], "19")
        plain = self.weir("rediss://sentinel", topology=topology.replace(str(sentinel.tls_port), str(sentinel.port))
                          .replace("true", "false"))
        plain.wait_for(rf"redis mymaster at 127\.0\.0\.1:{master.tls_port} is up", 2)


if __name__ == "__main__":
    main()
