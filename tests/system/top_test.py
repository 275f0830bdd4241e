#!/usr/bin/env python3
"""The clients with the most admitted and the most refused units, on the page /api/top and in weir top."""

import fcntl
import json
import os
import pty
import random
import select
import signal
import struct
import subprocess
import termios
import threading
import time

from harness import BELOW_EPHEMERAL, PATIENCE, WEIR, TestCase, Upstream, Weir, closed_port, config, eventually, get, main, rule, run_weir

RULES = rule("per-key", "1000/s", key='["api_key|ip"]') + rule("login", "3/day", key='["ip"]', match='{ path = "/login" }') \
    + rule("trial", "1/day", key='["ip"]', match='{ path = "/login" }', mode='"shadow"')


class Screen:
    """weir top in a pseudo-terminal."""

    def __init__(self, *arguments, size=None):
        self.shown = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execv(WEIR, [WEIR, "top", *arguments])
        if size:
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def read(self, deadline):
        """Returns the next output; empty after the end of the program."""
        ready, _, _ = select.select([self.terminal], [], [], max(0.0, deadline - time.monotonic()))
        try:
            more = os.read(self.terminal, 65536).decode(errors="replace") if ready else ""
        except OSError:
            more = ""
        self.shown += more
        return more

    def see(self, text):
        """Waits until the text appears in later output."""
        self.shown, deadline = "", time.monotonic() + PATIENCE
        while text not in self.shown:
            if not self.read(deadline):
                raise AssertionError(f"weir top does not show {text!r} but {self.shown!r}")

    def end(self):
        """Waits for the end of the program. Returns its wait status."""
        deadline = time.monotonic() + PATIENCE
        while self.read(deadline):
            pass
        pid, self.pid = self.pid, 0
        return os.waitpid(pid, 0)[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)


class TopOnce(TestCase):
    """A single frame (weir top --once), as scripts use it."""

    LONG = "a-rule-" + "whose-name-is-long-" * 3

    def setUp(self):
        upstream = self.start(Upstream())
        self.weir = self.start(Weir(config(upstream.port, client='trusted_proxies = ["127.0.0.1"]', rules=rule("per-ip", "1/day", key='["ip"]')
                                           + rule(self.LONG, "9/day", key='["header:x-tenant", "path"]'))))
        for client in ("2001:db8:1111:2222::", "203.0.113.7"):
            self.statuses(self.weir.port, 3, "/a-path-that-is-long-as-well", x_forwarded_for=client, x_tenant="acme")

    def once(self, *arguments, **environment):
        quiet = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        done = subprocess.run([WEIR, "top", "--admin", f"127.0.0.1:{self.weir.admin}", *arguments], capture_output=True, text=True,
                              check=True, env={**quiet, **environment})
        return done.stdout

    def test_output_to_a_pipe_is_not_truncated(self):
        for environment in ({}, {"COLUMNS": ""}, {"COLUMNS": "0"}, {"COLUMNS": "wide"}):
            frame = self.once("--once", **environment)
            self.assertIn(f"\n{self.LONG}   admitted 0/s   delayed 0/s   refused 0/s\n", frame)
            self.assertIn("2001:db8:1111:2222::", frame)
            self.assertNotIn("~", frame)
            self.assertLess(max(map(len, frame.splitlines())), 250)

    def test_environment_variable_columns_sets_the_width(self):
        for columns in (60, 100):
            frame = self.once("--once", COLUMNS=str(columns))
            self.assertLessEqual(max(map(len, frame.splitlines())), columns)
            self.assertIn("~", frame)
        self.assertEqual(self.once("--once", COLUMNS="1000").count("~"), 0)

    def test_json_option_prints_one_json_document(self):
        said = json.loads(self.once("--json"))
        self.assertEqual((said["address"], said["queued"], said["clients_counted"]), (f"127.0.0.1:{self.weir.admin}", 0, True))
        self.assertEqual([server["healthy"] for server in said["servers"]], [True])
        self.assertEqual([each["rule"] for each in said["rules"]], ["per-ip", self.LONG])
        refused = {client["client"]: (client["cost"], client["error"]) for client in said["rules"][0]["refused"]}
        self.assertEqual(refused, {"2001:db8:1111:2222::": (2, 0), "203.0.113.7": (2, 0)})
        self.assertNotIn("E", self.once("--json").replace(self.LONG, ""))


class TopLive(TestCase):
    BACK = "\x1b[?25h\x1b[?1049l"  # restores the cursor and the former screen

    def test_terminal_is_restored_after_every_kind_of_end(self):
        weir = self.start(Weir(config(self.start(Upstream()).port, rules=RULES)))
        for sent, status in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGHUP, signal.SIGHUP), (signal.SIGINT, signal.SIGINT), (b"q", 0)):
            screen = self.start(Screen("--admin", f"127.0.0.1:{weir.admin}"))
            screen.see("requests ")
            if isinstance(sent, bytes):
                os.write(screen.terminal, sent)
            else:
                os.kill(screen.pid, sent)
            self.assertEqual(screen.end(), status)
            self.assertTrue(screen.shown.endswith(self.BACK), screen.shown[-80:])

    def test_top_continues_after_a_restart_of_weir(self):
        port = random.randrange(*BELOW_EPHEMERAL)
        text = config(self.start(Upstream()).port, rules=RULES).replace('[admin]\naddress = "127.0.0.1:0"', f'[admin]\naddress = "127.0.0.1:{port}"')
        with Weir(text):
            screen = self.start(Screen("--admin", f"127.0.0.1:{port}"))
            screen.see("requests ")
        screen.see("has not answered for")
        screen.see("cannot connect: Connection refused")
        self.start(Weir(text))
        screen.see("requests 0/s")
        os.write(screen.terminal, b"q")
        self.assertEqual(screen.end(), 0)

    def test_small_terminal_shows_the_rule_that_refuses_requests(self):
        quiet = "".join(rule(f"quiet-{i}", "1000/s", key='["ip"]') for i in range(30))
        weir = self.start(Weir(config(self.start(Upstream()).port, rules=quiet + rule("flooded", "1/day", key='["ip"]'))))
        ended = threading.Event()

        def flood():
            with weir.connect() as client:
                while not ended.wait(0.01):
                    client.get("/")

        thread = threading.Thread(target=flood, daemon=True)
        thread.start()
        try:
            screen = self.start(Screen("--admin", f"127.0.0.1:{weir.admin}", size=(24, 80)))
            screen.see("\x1b[31mflooded   admitted 0/s   delayed 0/s   refused ")
            screen.see("more rules, none refuses")
        finally:
            ended.set()
            thread.join()

    def test_terminal_is_not_changed_if_the_first_request_of_weir_top_fails(self):
        screen = self.start(Screen("--admin", f"127.0.0.1:{closed_port()}"))
        self.assertEqual(os.waitstatus_to_exitcode(screen.end()), 1)
        self.assertIn("cannot connect", screen.shown)
        self.assertNotIn("\x1b", screen.shown)


class TopClients(TestCase):
    def start_weir(self, **more):
        return self.start(Weir(config(self.start(Upstream()).port, rules=RULES, **more)))

    def top(self, weir, query=""):
        answer = get(weir.admin, f"/api/top{query}")
        self.assertEqual(answer.status, 200, answer.body)
        return {one["rule"]: one for one in answer.json()["top"]}

    def ask(self, weir):
        with weir.connect() as client:
            for _ in range(5):
                client.get("/login")
            for _ in range(3):
                client.get("/", x_api_key="secret")
        # Each worker counts its own clients, and the page shows the sum.
        self.start(weir.connect()).get("/", x_api_key="other")

    def test_clients_are_ranked_by_admitted_and_refused_cost(self):
        weir = self.start_weir()
        self.ask(weir)
        top = eventually(lambda: (told := self.top(weir))["per-key"]["admitted_cost"] >= 9 - 2 and told, "all requests are counted")
        login = top["login"]
        self.assertEqual((login["capacity"], login["admitted_cost"], login["refused_cost"]), (64, 3, 2))
        self.assertLessEqual(login["seconds"], 120)
        [one] = login["admitted"]
        self.assertEqual((one["client"], one["cost"], one["error"]), ("127.0.0.1", 3, 0))
        self.assertEqual([(one["client"], one["cost"]) for one in login["refused"]], [("127.0.0.1", 2)])
        keys = top["per-key"]["admitted"]
        self.assertEqual(sorted((one["client"], one["cost"]) for one in keys), [("127.0.0.1", 3), ("api_key", 1), ("api_key", 3)])
        self.assertEqual(len({one["digest"] for one in keys}), 3)
        self.assertEqual([top[name]["mode"] for name in ("login", "per-key", "trial")], ["enforce", "enforce", "shadow"])
        self.assertNotIn("secret", json.dumps(top))

    def test_parameters_of_the_top_page_select_a_rule_and_the_number_of_clients(self):
        weir = self.start_weir()
        self.ask(weir)
        eventually(lambda: len(self.top(weir)["per-key"]["admitted"]) == 3, "all requests are counted")
        top = self.top(weir, "?rule=per-key&n=1")
        self.assertEqual(list(top), ["per-key"])
        self.assertEqual([one["cost"] for one in top["per-key"]["admitted"]], [3])
        for query, status, code in [("?rule=none", 404, "no_such_rule"), ("?n=0", 400, "bad_query"), ("?m=1", 400, "bad_query")]:
            answer = get(weir.admin, f"/api/top{query}")
            self.assertEqual((answer.status, answer.json()["error"]), (status, code))

    def test_no_clients_are_counted_if_top_is_0(self):
        weir = self.start(Weir(config(self.start(Upstream()).port, rules=RULES)
                               .replace('[admin]\naddress = "127.0.0.1:0"', '[admin]\naddress = "127.0.0.1:0"\ntop = 0')))
        weir.get("/login")
        self.assertEqual(get(weir.admin, "/api/top").status, 404)
        self.assertEqual(weir.metric("weir_top_memory_bytes"), 0)
        status, out, _ = run_weir("top", "--once", "--admin", f"127.0.0.1:{weir.admin}")
        self.assertEqual(status, 0)
        self.assertIn("[admin] top is 0", out)
        self.assertRegex(out, r"(?m)^trial \(shadow\) +admitted 0/s +delayed 0/s +would refuse 0/s$")

    def test_once_option_prints_one_frame(self):
        weir = self.start_weir()
        self.ask(weir)
        eventually(lambda: len(self.top(weir)["per-key"]["admitted"]) == 3, "all requests are counted")
        status, out, errors = run_weir("top", "--once", "--admin", f"127.0.0.1:{weir.admin}")
        self.assertEqual((status, errors), (0, ""))
        self.assertRegex(out, r"(?m)^weir at 127\.0\.0\.1:\d+ +requests \d")
        self.assertRegex(out, r"(?m)^servers +api 127\.0\.0\.1:\d+ up$")
        self.assertRegex(out, r"(?m)^login +admitted 0/s +delayed 0/s +refused 0/s")
        self.assertRegex(out, r"(?m)^  127\.0\.0\.1 +3 +127\.0\.0\.1 +2$")
        self.assertRegex(out, r"(?m)^trial \(shadow\) +admitted .*would refuse 0/s\n +most admitted in .*would be refused most in \d+ s$")
        self.assertRegex(out, r"(?m)^  api_key [0-9a-f]{8} +3")
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        self.assertNotIn("\x1b", out)

    def test_top_command_reports_that_weir_does_not_answer(self):
        status, out, errors = run_weir("top", "--once", "--admin", f"127.0.0.1:{closed_port()}")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("cannot connect", errors)

    def test_view_needs_a_terminal_for_input_and_output(self):
        weir = self.start_weir()
        ours, theirs = pty.openpty()
        try:
            for name, streams in (("output", {"stdin": theirs, "stdout": subprocess.PIPE}), ("input", {"stdin": subprocess.DEVNULL, "stdout": theirs})):
                done = subprocess.run([WEIR, "top", "--admin", f"127.0.0.1:{weir.admin}"], **streams, stderr=subprocess.PIPE, text=True,
                                      check=False, timeout=PATIENCE)
                self.assertEqual(done.returncode, 1)
                self.assertFalse(done.stdout)
                self.assertIn(f"standard {name} is not a terminal", done.stderr)
                self.assertIn("write --once for one frame", done.stderr)
        finally:
            os.close(ours)
            os.close(theirs)

    def test_top_command_takes_the_token_from_the_configuration_or_an_option(self):
        text = config(self.start(Upstream()).port, rules=RULES).replace(
            '[admin]\naddress = "127.0.0.1:0"', '[admin]\naddress = "127.0.0.1:0"\ntoken = "open-sesame"')
        weir = self.start(Weir(text))
        address = f"127.0.0.1:{weir.admin}"
        status, _, errors = run_weir("top", "--once", "--admin", address)
        self.assertEqual(status, 1)
        self.assertIn("--token", errors)
        with_address = text.replace('[admin]\naddress = "127.0.0.1:0"', f'[admin]\naddress = "{address}"')
        self.assertEqual(run_weir("top", "--once", config=with_address)[0], 0)


if __name__ == "__main__":
    main()
