#!/usr/bin/env python3
"""weir accepts every configuration in the documents. The complete configurations serve requests, and the commands of the guides
print the output that their page shows."""

import os
import pathlib
import re
import shlex
import ssl
import subprocess
import tempfile

from documents import (PAGES, SECRETS, TREE, blocks, commands, completed, files_of, in_its_folder, is_keys_file, is_whole, keys_of,
                       on_free_ports, place)
from harness import PATIENCE, WEIR, Client, Redis, TestCase, Upstream, Weir, answer, main

MARK = "--- next command ---"


def service(exchange):
    """A server that rejects wrong passwords, and otherwise returns the body that it received."""
    body = exchange.read_body()
    if b"wrong" in body:
        return exchange.send(answer(status="401 Unauthorized"))
    kind = "application/json" if body.startswith(b"{") else "text/plain"
    return exchange.send(answer(body, headers=f"Content-Type: {kind}\r\n"))


class Page:
    """The configurations of a page, each with the console blocks that follow it."""

    def __init__(self, page):
        self.keys, self.wholes = keys_of(page), []
        for block in blocks(page, "toml", "console"):
            if block.language == "toml" and is_whole(block) and "[[route]]" in block.text and "upstream" in block.text:
                self.wholes.append((block, []))
            elif block.language == "console" and self.wholes and page.parent.name == "guides":
                self.wholes[-1][1].extend(commands(block))


class Documents(TestCase):
    def check(self, text, keys, *options):
        """Runs `weir check` on a configuration and the files that it names. Returns the exit code and the messages."""
        with tempfile.TemporaryDirectory(prefix="weir-documents-") as folder:
            text = in_its_folder(text)
            for name, content in {"weir.toml": text, **files_of(text, keys, folder)}.items():
                pathlib.Path(folder, name).write_bytes(content if isinstance(content, bytes) else content.encode())
            done = subprocess.run([WEIR, "check", *options, pathlib.Path(folder, "weir.toml")], capture_output=True, text=True,
                                  timeout=2 * PATIENCE, env={**os.environ, **SECRETS})
        return done.returncode, done.stderr

    def test_every_configuration_in_the_documents_is_accepted(self):
        seen = 0
        for page in PAGES:
            for block in blocks(page, "toml"):
                if is_keys_file(block):
                    continue
                seen += 1
                with self.subTest(place(block)):
                    status, errors = self.check(completed(block.text), keys_of(page))
                    self.assertEqual(status, 0, errors)
        self.assertGreater(seen, 40)

    def test_configurations_to_copy_cause_no_warning(self):
        for page in (page for page in PAGES if page.name == "README.md" or page.parent.name == "guides"):
            for block, _ in Page(page).wholes:
                with self.subTest(place(block)):
                    self.assertEqual(self.check(block.text, keys_of(page), "--strict"), (0, ""))

    def test_invalid_configuration_fails_the_check_of_the_documents(self):
        self.assertEqual(self.check(completed('[[rule]]\nname = "x"\nlimits = "1/s"\n'), "")[0], 2)
        self.assertEqual(self.check(completed('[[alert]]\nrule = "x"\n'), "")[0], 2)

    def test_complete_configurations_start_and_their_commands_print_the_shown_output(self):
        seen = 0
        for page in PAGES:
            read = Page(page)
            for block, shown in read.wholes:
                with self.subTest(place(block)):
                    self.serve(block, read.keys, shown)
                seen += 1
        self.assertGreater(seen, 10)

    def serve(self, block, keys, shown):
        with Upstream(service) as upstream, tempfile.TemporaryDirectory(prefix="weir-documents-") as folder:
            text, redis = in_its_folder(block.text), None
            if 'store = "redis"' in text:
                redis = self.start(Redis())
                redis.command("ACL", "SETUSER", "weir", "on", f">{SECRETS['REDIS_PASSWORD']}", "~*", "&*", "+@all")
            files = files_of(text, keys, folder)
            with Weir(on_free_ports(text, upstream.address, redis), files, SECRETS) as weir:
                if shown:
                    self.run_commands(weir, text, folder, shown)
                self.assertLess(self.one_request(weir, text), 500)

    @staticmethod
    def one_request(weir, text):
        tls = ssl._create_unverified_context() if "[listener.tls" in text else None
        host = re.search(r'host = "(.*?)"', text)
        with Client(weir.port, tls=tls) as client:
            return client.get("/", host=host[1] if host else "localhost").status

    def run_commands(self, weir, text, folder, shown):
        """Runs the commands in one shell. In this shell, `curl` replaces the page's ports by the ports of the running weir."""
        named = re.findall(r'^\[(\[listener\]|admin)\][^\n]*\naddress = "[^"]*:(\d+)"', text, re.M)
        ports = iter(weir.ports)
        reach = [f"--connect-to ':{port}:127.0.0.1:{weir.admin if table == 'admin' else next(ports)}'" for table, port in named]
        lines = [f"curl() {{ command curl --insecure {' '.join(reach)} \"$@\"; }}"]
        for command, _ in shown:
            lines += [f"echo {shlex.quote(MARK)}", command]
        done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=4 * PATIENCE,
                              env={**os.environ, **SECRETS}, cwd=folder)
        printed = [part.strip("\n").replace("\r", "") for part in done.stdout.split(MARK)[1:]]
        for (command, wanted), got in zip(shown, printed, strict=True):
            pattern = re.escape("\n".join(wanted)).replace("…", ".*")
            self.assertRegex(got.rstrip(), f"^{pattern}$", f"$ {command}\n{done.stderr}")


if __name__ == "__main__":
    main()
