#!/usr/bin/env python3
"""`./dev ask` compares all contestants and prints its tables."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from harness import SANITIZED, WEIR, TestCase, main

ASK = pathlib.Path(os.environ["WEIR_SOURCE"]) / "loadtest" / "ask.py"
TOOLS = ("nginx", "redis-server", "wrk", "h2load", "g++", "openssl")
LUA = pathlib.Path("/usr/lib/nginx/modules/ngx_http_lua_module.so")
LIMIT_SECONDS = 200  # far more than the run takes


def ask(*arguments):
    return subprocess.run([sys.executable, ASK, "--weir", WEIR, *arguments], capture_output=True, text=True, check=False,
                          timeout=LIMIT_SECONDS)


def rows_of(text):
    """Returns the rows of all printed tables, in order: (name, numbers)."""
    found = re.findall(r"^\| ([a-z-]+) \|((?: [-\d.]+ \|)+)$", text, re.M)
    return [(name, [float(number) for number in numbers.split("|")[:-1]]) for name, numbers in found]


class AskLoad(TestCase):
    def test_help_names_the_options(self):
        ended = ask("--help")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for option in ("--rounds", "--seconds", "--only", "--realtime"):
            self.assertIn(option, ended.stdout)

    @unittest.skipIf(SANITIZED, "measures nothing")
    @unittest.skipUnless(all(map(shutil.which, TOOLS)) and LUA.exists(), f"needs {', '.join(TOOLS)} and nginx's Lua module")
    def test_run_measures_every_contestant(self):
        ended = ask("--rounds", "1", "--seconds", "1")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        rows = rows_of(ended.stdout)
        self.assertEqual([name for name, _ in rows], ["nginx", "decide", "rls", "decide-redis", "rls-redis", "proxy", "decide", "rls"])
        for name, numbers in rows[:5]:
            own, redis, _, usual, high = numbers
            self.assertGreater(own, 0, name)
            self.assertLessEqual(usual, high, name)
            if name in ("nginx", "decide-redis", "rls-redis"):
                self.assertGreater(redis, 0, name)
        for name, (rate, usual, high, _) in rows[5:]:
            self.assertGreater(rate, 0, name)
            self.assertLessEqual(usual, high, name)


if __name__ == "__main__":
    main()
