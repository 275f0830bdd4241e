#!/usr/bin/env python3
"""The command weir reload requests a reload and prints the result."""

import os
import pathlib
import random
import re
import subprocess

from harness import BELOW_EPHEMERAL, PATIENCE, WEIR, TestCase, Upstream, Weir, closed_port, config, eventually, main, rule, run_weir

UNIT = pathlib.Path(os.environ.get("WEIR_SOURCE", ".")) / "packaging/weir.service"
TOKEN = '[admin]\ntoken = "open-sesame"'


class ReloadCommand(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def text(self, limit="1/day", burst=5, **more):
        return config(self.upstream.port, rules=rule("fresh", limit, burst=burst), **more)

    def weir(self, text=None):
        return self.start(Weir(text or self.text()))

    def write(self, weir, text):
        (weir.folder / "weir.toml").write_text(text)

    def reload(self, weir, *more):
        return run_weir("reload", "--admin", f"127.0.0.1:{weir.admin}", *more)

    def test_reload_command_prints_the_changes(self):
        weir = self.weir()
        weir.get()
        self.write(weir, self.text(burst=10))
        status, out, errors = self.reload(weir)
        self.assertEqual(status, 0, errors)
        self.assertNotIn("is unchanged", errors)
        self.assertIn('rule "fresh" has other limits: its clients keep the share that they have used\n', out)
        self.assertRegex(out, r"(?m)^now: .*burst 10")
        self.assertTrue(out.endswith("\nthe configuration was reloaded\n"), out)
        self.assertEqual(weir.get()["x-ratelimit-limit"], "10")
        self.assertEqual(self.reload(weir)[:2], (0, "the configuration was reloaded; weir check prints the same as before\n"))

    def test_reload_command_prints_warnings_about_the_new_configuration(self):
        """The new configuration file was cut off between two tables and has no rules."""
        weir = self.weir()
        self.write(weir, self.text().split("[[rule]]")[0])
        status, out, errors = self.reload(weir)
        self.assertEqual(status, 0)
        self.assertIn('rule "fresh" removed\n', out)
        self.assertRegex(errors, r"weir\.toml(:\d+)?: warning: there is no \[\[rule\]\], so every request is admitted\n")

    def test_reload_rejects_a_keys_file_that_became_a_pipe(self):
        weir = self.weir()
        pipe = weir.folder / "keys.toml"
        os.mkfifo(pipe)
        self.write(weir, self.text(client='keys = "keys.toml"'))
        status, _, errors = self.reload(weir)
        self.assertEqual(status, 1, errors)
        self.assertIn('client.keys: "' + str(pipe) + '" cannot be read: it is a pipe, not a regular file', errors)
        (weir.folder / "weir.toml").unlink()
        os.mkfifo(weir.folder / "weir.toml")
        status, _, errors = self.reload(weir)
        self.assertEqual(status, 1, errors)
        self.assertIn("weir.toml: cannot be read: it is a pipe, not a regular file; expected a TOML file", errors)
        self.assertEqual(weir.get().status, 200)

    def test_metric_weir_limits_counts_the_different_limits_of_all_reloads(self):
        weir = self.weir()
        self.assertEqual((weir.metric("weir_limits"), weir.metric("weir_limits_most")), (1, 65536))
        for burst, had in ((10, 2), (5, 2), (11, 3)):
            self.write(weir, self.text(burst=burst))
            self.assertEqual(self.reload(weir)[0], 0)
            self.assertEqual(weir.metric("weir_limits"), had)

    def test_reload_command_prints_each_mistake_with_its_line(self):
        weir = self.weir()
        self.write(weir, self.text(limit="lots"))
        line = self.text(limit="lots").split("\n").index('limit = "lots"') + 1
        mistake = rf'^{weir.folder}/weir\.toml:{line}: rule\[fresh\]\.limit: .*lots'
        asked = self.reload(weir)
        ours = self.reload(weir, "--config", str(weir.folder / "weir.toml"))
        for status, out, errors in (asked, ours):
            self.assertEqual((status, out), (1, ""))
            self.assertRegex(errors, mistake)
            self.assertTrue(errors.endswith("weir: the running configuration is unchanged\n"), errors)
        self.assertEqual(weir.get()["x-ratelimit-limit"], "5")

    def test_reload_rejects_mistakes_outside_the_configuration_file(self):
        weir = self.weir()
        self.write(weir, self.text(state="memory = { max_keys = 77 }"))
        status, out, errors = self.reload(weir)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("state.memory.max_keys: found 77; weir runs with 1000000", errors)

    def test_reload_command_takes_address_and_token_from_the_file_or_from_options(self):
        weir = self.weir(self.text().replace("[admin]", TOKEN))
        status, _, errors = self.reload(weir)
        self.assertEqual(status, 1)
        self.assertIn("no reload: it requires its token; write --token TOKEN or --config FILE", errors)
        self.assertIn("no reload: it has another token; write its own with --token TOKEN or --config FILE",
                      self.reload(weir, "--token", "open-sesami")[2])
        self.assertEqual(self.reload(weir, "--token", "open-sesame")[0], 0)
        self.assertEqual(self.reload(weir, "--config", str(weir.folder / "weir.toml"))[0], 0)

    def test_reload_command_reports_that_weir_does_not_answer(self):
        status, out, errors = run_weir("reload", "--admin", f"127.0.0.1:{closed_port()}")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("no reload: cannot connect: Connection refused", errors)
        self.assertIn("write --admin ADDR", errors)

    def test_reload_command_sends_sighup_if_there_is_no_admin_listener(self):
        bare = self.text().replace('[admin]\naddress = "127.0.0.1:0"\n', "")
        self.assertNotIn("[admin]", bare)
        weir = self.weir(bare)
        status, out, errors = run_weir("reload", "--pid", str(weir.pid), config=bare)
        self.assertEqual((status, errors), (0, ""))
        self.assertIn(f"sent SIGHUP to process {weir.pid}", out)
        weir.wait_for("info reload: the configuration was reloaded")
        with subprocess.Popen(["sleep", "60"]) as bystander:
            eventually(lambda: pathlib.Path(f"/proc/{bystander.pid}/comm").read_text() == "sleep\n",
                       "the other process runs another program")
            status, _, errors = run_weir("reload", "--pid", str(bystander.pid), config=bare)
            self.assertEqual(status, 1)
            self.assertIn("does not handle SIGHUP and would be killed by it; write the process id of a running weir", errors)
            self.assertIsNone(bystander.poll())
            bystander.kill()
        status, _, errors = run_weir("reload", config=bare)
        self.assertEqual(status, 2)
        self.assertIn("has no [admin] address; write --admin ADDR, or --pid PID to send SIGHUP", errors)

    def test_systemd_reload_fails_if_the_reload_of_weir_fails(self):
        address = f'[admin]\naddress = "127.0.0.1:{random.randrange(*BELOW_EPHEMERAL)}"'

        def text(**given):
            return self.text(**given).replace('[admin]\naddress = "127.0.0.1:0"', address)

        def reload():
            for command in re.findall(r"^ExecReload=(.*)$", UNIT.read_text(), re.M):
                command = command.replace("/usr/bin/weir", WEIR).replace("/etc/weir", str(weir.folder)).replace("$MAINPID", str(weir.pid))
                if (status := subprocess.run(command.split(), capture_output=True, timeout=PATIENCE, check=False).returncode) != 0:
                    return status
            return 0

        weir = self.weir(text())
        self.assertEqual(reload(), 0)
        self.write(weir, text(state="memory = { max_keys = 77 }"))
        self.assertEqual(reload(), 1)
        self.write(weir, text(burst=9))
        self.assertEqual(reload(), 0)
        self.assertEqual(weir.get()["x-ratelimit-limit"], "9")


if __name__ == "__main__":
    main()
