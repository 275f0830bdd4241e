#!/usr/bin/env python3
"""A wrong configuration or a port in use gives a clear error and an exit code, and weir serves nothing."""

import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile

from harness import PATIENCE, WEIR, TestCase, Upstream, Weir, config, main, make_certificate, rule


class ConfigErrors(TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def weir(self, command, text, *more):
        file = self.folder / "weir.toml"
        file.write_text(text)
        return subprocess.run([WEIR, command, "--config", file, *more], capture_output=True, text=True, timeout=PATIENCE, check=False)

    def assert_refused(self, text, *expected):
        """Checks that `check` and `run` both exit with 2 and print the same errors."""
        for command in ("check", "run"):
            done = self.weir(command, text)
            self.assertEqual(done.returncode, 2, done.stderr)
            for part in expected:
                self.assertRegex(done.stderr, part)

    def line_of(self, text, part):
        return text[:text.index(part)].count("\n") + 1

    def test_check_command_describes_a_valid_configuration(self):
        done = self.weir("check", config(1, rules=rule("per-key", "10/s")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("per-key", done.stdout)

    def test_unknown_key_is_reported_with_its_line_and_the_most_similar_key(self):
        text = config(1, rules=rule(limt='"5/s"'))
        self.assert_refused(text, rf"weir\.toml:{self.line_of(text, 'limt')}: .*limt", "limit")

    def test_all_mistakes_of_a_configuration_are_reported_at_once(self):
        self.assert_refused(config(1, rules=rule(limit="many"), server="wrokers = 3"), "wrokers", "many")

    def test_toml_syntax_error_is_reported_with_its_line(self):
        text = config(1) + "\n[[rule]\n"
        self.assert_refused(text, r"weir\.toml:\d+")

    def naming(self, file):
        """Returns configurations, each of which names the file under another key."""
        pair = f'{{ cert = "{file}", key = "{file}" }}'
        return [config(1, **given) for given in (
            {"client": f'jwt = {{ algorithm = "RS256", public_key = "{file}" }}'},
            {"client": f'keys = "{file}"'},
            {"client": f'geo = "{file}"', "rules": rule(match='{ country = "CH" }')},
            {"listener": f'tls = {{ certificates = [{pair}] }}'},
            {"listener": f'tls = {{ client_ca = "{file}", certificates = [{pair}] }}'},
            {"upstream": f'tls = {{ ca = "{file}", cert = "{file}", key = "{file}" }}\n'},
            {"state": f'redis = {{ url = "rediss://127.0.0.1", tls = {{ ca = "{file}" }} }}'},
            {"rules": rule() + f'[[alert]]\nrule = "per-ip"\nrefused_above = "1/s"\nwebhook = "https://127.0.0.1/"\nca = "{file}"\n'})]

    def test_configuration_that_is_no_regular_file_is_rejected_without_waiting(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for file, kind in (pipe, "pipe"), ("/dev/zero", "device"), (self.folder, "directory"):
            for text in self.naming(file):
                with self.subTest(text):
                    self.assert_refused(text, rf'weir\.toml:\d+: .*"{file}" cannot be read: it is a {kind}, not a regular file; expected a')
        for file, kind in (pipe, "pipe"), ("/dev/zero", "device"):
            for command in ("check", "run", "redis-check"):
                done = subprocess.run([WEIR, command, file], capture_output=True, text=True, timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{file}: cannot be read: it is a {kind}, not a regular file; expected a TOML file", done.stderr)

    def test_configuration_file_above_the_maximum_size_is_rejected(self):
        large = self.folder / "large"
        for size in (16, 256):
            with open(large, "wb") as file:
                file.truncate((size << 20) + 1)
            texts = [text for text in self.naming(large) if "geo = " not in text and (size == 256) == ("keys = " in text)]
            for text in texts:
                with self.subTest(text):
                    self.assertIn(f'large" cannot be read: it is larger than {size} MiB', self.weir("check", text).stderr)
        done = subprocess.run([WEIR, "check", large], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertIn("large: cannot be read: it is larger than 256 MiB", done.stderr)

    def test_configuration_can_be_read_from_a_pipe_of_the_shell(self):
        (self.folder / "weir.toml").write_text(config(1, rules=rule(key='["ip"]')))
        for line in ('cat weir.toml | "$0" check /dev/stdin', '"$0" check <(cat weir.toml)', '"$0" check /dev/stdin < weir.toml'):
            with self.subTest(line):
                done = subprocess.run(["bash", "-c", line, pathlib.Path(WEIR).resolve()], cwd=self.folder, capture_output=True, text=True,
                                      timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("per-ip", done.stdout)

    def test_missing_certificate_file_is_named_in_the_error(self):
        tls = 'tls = { certificates = [{ cert = "gone.crt", key = "gone.key" }] }'
        self.assert_refused(config(1, listener=tls), re.escape("gone.crt"))

    def test_file_that_is_not_a_certificate_is_named_in_the_error(self):
        (self.folder / "bad.crt").write_text("not a certificate")
        (self.folder / "bad.key").write_text("not a key")
        done = self.weir("run", config(1, listener='tls = { certificates = [{ cert = "bad.crt", key = "bad.key" }] }'))
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("bad.crt", done.stderr)

    def test_each_kind_of_unusable_certificate_or_key_has_its_own_message(self):
        for name in ("edge", "other"):
            make_certificate(self.folder, name)
        for cert, key, said in (
                ("edge.crt", "other.key", r'\.key: the key ".*other\.key" does not belong to the certificate ".*edge\.crt"; expected'),
                ("edge.key", "edge.crt", r'\.cert: the certificate ".*edge\.key" contains a private key, not a certificate; are'),
                ("edge.crt", "gone.key", r'\.key: ".*gone\.key" cannot be read: No such file or directory; expected a PEM file')):
            with self.subTest(cert=cert, key=key):
                self.assert_refused(config(1, listener=f'tls = {{ certificates = [{{ cert = "{cert}", key = "{key}" }}] }}'), said)

    def test_encrypted_key_is_rejected_without_asking_for_its_pass_phrase(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-keyout", self.folder / "locked.key", "-passout", "pass:x",
                        "-out", self.folder / "edge.crt", "-subj", "/CN=edge"], check=True, capture_output=True)
        tls = 'tls = { certificates = [{ cert = "edge.crt", key = "locked.key" }] }'
        self.assert_refused(config(1, listener=tls), r'the key ".*locked\.key" is encrypted; store it without a pass phrase')

    def test_unset_environment_variable_is_named_in_the_error(self):
        os.environ.pop("WEIR_TEST_UNSET", None)
        self.assert_refused(config(1, state='key_secret = "${WEIR_TEST_UNSET}"'), "WEIR_TEST_UNSET")

    def test_route_to_a_missing_upstream_is_named_in_the_error(self):
        self.assert_refused(config(1, routes='[[route]]\nupstream = "apj"'), "apj", "api")

    def test_missing_configuration_file_is_named_in_the_error(self):
        done = subprocess.run([WEIR, "run", "--config", self.folder / "none.toml"], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("none.toml", done.stderr)

    def test_port_in_use_prevents_the_start(self):
        with socket.create_server(("127.0.0.1", 0)) as lent:
            free = lent.getsockname()[1]
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            text = config(1).replace("127.0.0.1:0", f"127.0.0.1:{free}", 1) + f'\n[[listener]]\naddress = "127.0.0.1:{port}"\n'
            done = self.weir("run", text)
        self.assertEqual(done.returncode, 1, done.stderr)
        line = self.line_of(text, f'"127.0.0.1:{port}"')
        self.assertIn(f"weir.toml:{line}: cannot listen on 127.0.0.1:{port}: Address already in use", done.stderr)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", free)).close()

    def test_short_admin_token_is_rejected_on_a_public_address(self):
        public, short = config(1).replace('[admin]\naddress = "127.0.0.1:0"', '[admin]\naddress = "0.0.0.0:0"\ntoken = "TOKEN"'), "x" * 15
        self.assert_refused(public.replace("TOKEN", short), "admin.token: found 15 characters, .*; expected 16 characters or more")
        self.assertNotIn(short, self.weir("check", public.replace("TOKEN", short)).stderr)
        self.assertEqual(self.weir("check", public.replace("TOKEN", "x" * 16)).returncode, 0)

    def test_listener_address_of_another_machine_is_rejected_with_advice(self):
        done = self.weir("run", config(1).replace("127.0.0.1:0", "203.0.113.7:8080", 1))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("cannot listen on 203.0.113.7:8080: Cannot assign requested address; no interface of this machine", done.stderr)

    def test_admin_port_in_use_is_reported_with_its_line(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            text = config(1).replace('[admin]\naddress = "127.0.0.1:0"', f'[admin]\naddress = "127.0.0.1:{port}"')
            done = self.weir("run", text)
        self.assertEqual(done.returncode, 1, done.stderr)
        line = self.line_of(text, f'"127.0.0.1:{port}"')
        self.assertIn(f"weir.toml:{line}: admin: cannot listen on 127.0.0.1:{port}: Address already in use", done.stderr)

    def test_servers_with_unknown_names_are_reported_with_their_lines(self):
        name = "a" * 64 + ".invalid"  # too long for a host name, so no name server is asked
        servers = f'servers = [\n  "127.0.0.1:1",\n  "{name}:80",\n  {{ address = "{name}:81" }},\n]'
        text = config(1).replace("servers = [\"127.0.0.1:1\"]", servers)
        self.assertIn(servers, text)
        self.assertEqual(self.weir("check", text).returncode, 0)
        done = self.weir("check", text, "--resolve")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f'weir.toml:{self.line_of(text, name)}: upstream "api": cannot resolve "{name}": ', done.stderr)
        self.assertEqual(done.stderr.count("cannot resolve"), 2, done.stderr)

    def test_unknown_names_of_redis_and_webhooks_are_reported_with_their_lines(self):
        name = "a" * 64 + ".invalid"  # too long for a host name, so no name server is asked
        sentinels = f'redis = {{ url = "redis://:s3cret@127.0.0.1", topology = "sentinel", master = "m", sentinels = ["{name}:1", "127.0.0.1:1"] }}'
        nodes = f'redis = {{ url = "redis://:s3cret@127.0.0.1", topology = "cluster", nodes = ["127.0.0.1:1", "{name}:1"] }}'
        alert = f'\n[[alert]]\nname = "many"\nrule = "per-ip"\nrefused_above = "1/s"\nwebhook = "https://{name}/"\n'
        for given, key in (({"state": f'redis = {{ url = "redis://:s3cret@{name}" }}'}, "state.redis"), ({"state": sentinels}, "state.redis"),
                           ({"state": nodes}, "state.redis"), ({"rules": rule() + alert}, 'alert "many": webhook')):
            with self.subTest(given):
                text = config(1, **given)
                self.assertEqual(self.weir("check", text).returncode, 0)
                done = self.weir("check", text, "--resolve")
                self.assertEqual(done.returncode, 1, done.stderr)
                line = self.line_of(text, "[[alert]]" if "alert" in key else "redis = ")
                self.assertIn(f'weir.toml:{line}: {key}: cannot resolve "{name}": ', done.stderr)
                self.assertEqual(done.stderr.count("cannot resolve"), 1, done.stderr)
                self.assertNotIn("s3cret", done.stderr)

    def test_weir_check_with_json_says_ok_only_if_its_exit_status_is_0(self):
        name = "a" * 64 + ".invalid"
        text = config(1, rules=rule("x", key='["method"]'))
        self.assertIn('servers = ["127.0.0.1:1"]', text)
        away = text.replace('servers = ["127.0.0.1:1"]', f'servers = ["{name}:80"]')
        for given, arguments, status in ((text, [], 0), (text, ["--resolve"], 0), (text, ["--strict"], 1), (away, [], 0),
                                         (away, ["--resolve"], 1), (away, ["--resolve", "--strict"], 1)):
            with self.subTest(arguments, away=given == away):
                done = self.weir("check", given, "--json", *arguments)
                told = json.loads(done.stdout)
                self.assertEqual((done.returncode, told["ok"]), (status, status == 0), done.stderr)
                unknown = [line for line in done.stderr.splitlines() if "cannot resolve" in line]
                self.assertEqual(told["mistakes"], unknown)
                self.assertEqual(len(unknown), int("--resolve" in arguments and given == away))

    def test_server_with_an_unknown_name_does_not_prevent_the_start(self):
        upstream, name = self.start(Upstream()), "a" * 64 + ".invalid"
        text = config(upstream.port).replace("servers = [", f'servers = ["{name}:80", ')
        weir = self.start(Weir(text))
        weir.wait_for(rf'weir.toml:{self.line_of(text, name)}: upstream "api": cannot resolve "{name}": .*; the server is down until the lookup')
        self.assertEqual({weir.get("/").status for _ in range(6)}, {200})
        self.assertEqual(weir.metric("weir_upstream_healthy", server=f"{name}:80"), 0)

    def test_invalid_command_lines_are_rejected(self):
        for arguments in (["run"], ["nonsense"], ["run", "--config"], ["echo", "--listen", "nowhere"]):
            done = subprocess.run([WEIR, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr + done.stdout)

    def test_configuration_file_can_be_given_without_an_option(self):
        file = self.folder / "weir.toml"
        file.write_text(config(1, rules=rule(limt='"5/s"')))
        for command in ("check", "run", "redis-check", "reload", "upgrade", "top"):
            done = subprocess.run([WEIR, command, file], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertIn("weir.toml:", done.stderr)
            self.assertIn('did you mean "limit"?', done.stderr, command)
        file.write_text(config(1, rules=rule(key='["ip"]')))
        self.assertEqual(subprocess.run([WEIR, "check", file], capture_output=True, timeout=PATIENCE, check=False).returncode, 0)

    def test_error_about_a_common_syntax_error_shows_the_correct_line(self):
        for line, said in (('limit = "10/s', 'write limit = "10/s"'), ("limit = 10/s", 'write limit = "10/s"'),
                           ("key = [ip]", 'write "ip"'), ("[rule", r"write \[\[rule\]\]")):
            with self.subTest(line):
                text = config(1) + f"\n[[rule]]\n{line}\n"
                self.assert_refused(text, rf"weir\.toml:{self.line_of(text, chr(10) + line + chr(10)) + 1}: found .*{said}")
                self.assertNotIn("Error while", self.weir("check", text).stderr)

    def test_version_command_prints_the_version(self):
        done = subprocess.run([WEIR, "version"], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\d+\.\d+\.\d+")


if __name__ == "__main__":
    main()
