#!/usr/bin/env python3
"""The files that the package installs in addition to the binary: the service's configuration and unit, manual pages,
completion. `./dev package --smoke` builds the package and installs it on a minimal Debian."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE, WEIR, TestCase, Weir, main

PACKAGING = pathlib.Path(os.environ.get("WEIR_SOURCE", ".")) / "packaging"


class Terminal:
    """An interactive bash in a pseudo-terminal, started in a given folder."""

    def __init__(self, folder):
        environment = {"PATH": f"{pathlib.Path(WEIR).resolve().parent}:{os.environ['PATH']}", "TERM": "dumb", "HOME": folder,
                       "PS1": "$ ", "INPUTRC": "/dev/null"}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        self.shown = ""

    def type(self, keys):
        self.shown = ""
        os.write(self.terminal, keys.encode())

    def see(self, text):
        """Waits until the terminal shows the text."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            ready, _, _ = select.select([self.terminal], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"bash does not show {text!r} but {self.shown!r}")
            self.shown += os.read(self.terminal, 4096).decode(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


class Packaging(TestCase):
    def test_licence_is_the_unmodified_apache_2_licence_and_is_shipped(self):
        ours = (PACKAGING.parent / "LICENSE").read_text()
        self.assertEqual(ours, pathlib.Path("/usr/share/common-licenses/Apache-2.0").read_text())
        self.assertRegex((PACKAGING / "debian/copyright").read_text(), r"(?m)^Copyright: .* the authors of weir\nLicense: Apache-2.0$")
        self.assertRegex((PACKAGING.parent / "docker/Dockerfile").read_text(), r"(?m)^COPY LICENSE /usr/share/doc/weir/LICENSE$")

    def test_licences_of_linked_libraries_are_shipped(self):
        shipped = " ".join((PACKAGING / "debian/copyright").read_text().replace("\n .", "\n").split())
        theirs = pathlib.Path("/usr/share/doc/libjs-dygraphs/copyright").read_text()
        for holder in re.findall(r"(?m)(\w+) <\S+@\S+>$", theirs.partition("Some tests additionally")[0]):
            self.assertIn(holder, shipped, "the authors of dygraphs")
        self.assertIn("Permission is hereby granted, free of charge, to any person obtaining a copy of this software", shipped, "dygraphs'")
        self.assertIn("Neither the name of the University nor the names of its contributors", shipped, "CLI11's")
        self.assertRegex((PACKAGING.parent / "docker/Dockerfile").read_text(), r"(?m)^COPY packaging/debian/copyright /usr/share/doc/weir/")

    def test_bash_completes_commands_and_options(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="weir-bash-"))
        (pathlib.Path(folder) / "edge one.toml").touch()
        bash = self.start(Terminal(folder))
        bash.see("$ ")
        bash.type(f". {(PACKAGING / 'completions/weir.bash').resolve()}; echo re''ady\n")
        bash.see("ready")
        for typed, completed in (("weir ch\t", "weir check "), ("--c\t", "--config "), ("ed\t", "edge\\ one.toml ")):
            bash.type(typed)
            bash.see(completed.removeprefix("weir "))
        bash.type("\x15weir red\t")
        bash.see("weir redis-check ")
        for command in ("explain", "top", "replay", "keys show"):
            bash.type(f"\x15weir {command} --\t\t")
            for option in re.findall(r"^ {2,8}(?:-\w,)?(--[a-z-]+)", subprocess.check_output([WEIR, *command.split(), "--help"], text=True), re.M):
                bash.see(option)
        bash.type("\x15weir keys \t\t")
        bash.see("reset")
        bash.type("\x15weir replay -c x edge\t")
        bash.see("edge\\ one.toml ")
        bash.type("\x15weir \t\t")
        for command in re.findall(r"^  ([a-z][a-z-]*) ", subprocess.check_output([WEIR, "--help"], text=True), re.M):
            bash.see(command)

    @unittest.skipUnless(shutil.which("mandoc"), "./dev deps test installs mandoc")
    def test_manual_pages_have_no_formatting_errors(self):
        for page in sorted(PACKAGING.glob("man/*")):
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""))

    @unittest.skipUnless(shutil.which("mandoc"), "./dev deps test installs mandoc")
    def test_manual_pages_describe_every_option_and_argument(self):
        shown = subprocess.check_output(["mandoc", "-T", "utf8", PACKAGING / "man/weir.8"], text=True)
        page = re.sub(r"-\s+", "-", " ".join(re.sub(r".\x08", "", shown).split()))
        for command, typed in (("replay", "LOG ..."), ("explain", "[[METHOD] URL]"), ("keys show", "RULE [PART ...]"), ("keys reset", "RULE [PART ...]")):
            self.assertRegex(page, rf"weir {command} \[?--config FILE\]? [^.]*{re.escape(typed)} weir ")
            self.assertRegex(page, rf"weir {command} {re.escape(typed)} [A-Z]")
            text = subprocess.check_output([WEIR, *command.split(), "--help"], text=True)
            for about in re.findall(r"^  [a-z]+ [^ ].*?\s{2,}(.*)$", text.partition("Positionals:")[2].partition("\n\n")[0], re.M):
                self.assertIn(re.sub(r"-\s+", "-", about), page)

    def test_package_upgrade_upgrades_or_restarts_the_service(self):
        """Runs the package's scripts. Fake commands record how the scripts call them."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-deb-")))
        script = (PACKAGING / "debian/postinst").read_text()
        for path in ("/run/systemd/system", "/usr/sbin/policy-rc.d"):
            script = script.replace(path, str(folder / path.rpartition("/")[2]))
        (folder / "system").mkdir()
        for name in ("adduser", "deb-systemd-helper", "deb-systemd-invoke", "systemctl", "systemd-run"):
            (folder / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{folder}/called\n[ "$FAILS" != {name} ] || exit "$STATUS"\n')
            (folder / name).chmod(0o755)

        def called(before, fails="", status=1):
            (folder / "called").write_text("")
            done = subprocess.run(["sh", "-c", script, "postinst", "configure", *before], check=True, capture_output=True, text=True,
                                  env={"PATH": f"{folder}:{os.environ['PATH']}", "FAILS": fails, "STATUS": str(status)})
            return (folder / "called").read_text() + done.stderr

        upgrade, restart = "/usr/bin/weir upgrade --config /etc/weir/weir.toml\n", "deb-systemd-invoke restart weir.service\n"
        told = called(["0.1.0"])
        self.assertIn(upgrade, told)
        self.assertNotIn(restart, told)
        told = called(["0.1.0"], fails="systemd-run")
        self.assertLess(told.index(upgrade), told.index(restart))
        told = called(["0.1.0"], fails="systemd-run", status=2)  # the configuration file has a mistake
        self.assertIn("the running process continues; correct /etc/weir/weir.toml", told)
        self.assertNotIn(restart, told)
        for fails in ("systemctl", ""):
            told = called(["0.1.0"], fails)  # first round: no service runs; second round: a policy forbids starts
            self.assertNotIn(upgrade, told)
            self.assertIn(restart, told)
            (folder / "policy-rc.d").touch()

    @unittest.skipUnless(shutil.which("systemd-analyze"), "./dev deps test installs systemd")
    def test_systemd_analyze_security_rates_the_unit_ok_or_better(self):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", PACKAGING / "weir.service"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"exposure level for weir.service: [01]\.\d OK")

    def test_shipped_configuration_serves_only_loopback_and_its_answer_names_the_file_to_edit(self):
        with tempfile.TemporaryDirectory(prefix="weir-state-") as folder:
            text = re.sub(r"^#.*\n", "", (PACKAGING / "weir.toml").read_text(), flags=re.M)
            listeners = re.findall(r'^address = "([^"]*):\d+"', text, re.M)
            self.assertEqual(listeners, ["127.0.0.1", "127.0.0.1"])  # reachable only from this machine
            ours = re.sub(r'^address = "127.0.0.1:\d+"', 'address = "127.0.0.1:0"', text, flags=re.M)
            weir = self.start(Weir(ours, environment={"STATE_DIRECTORY": folder, "LOGS_DIRECTORY": folder}))
            answer = weir.get("/anything")
            self.assertEqual(answer.status, 503)
            self.assertIn(b"/etc/weir/weir.toml", answer.body)
            self.assertTrue(weir.is_ready())


if __name__ == "__main__":
    main()
