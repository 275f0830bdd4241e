"""`./dev demo` starts on free ports, and first checks a port that the user has chosen. The checks that the demo runs itself
pass."""

import os
import pathlib
import re
import socket
import subprocess
import sys

from harness import WEIR, TestCase, main

DEMO = pathlib.Path(os.environ["WEIR_SOURCE"]) / "tools" / "demo.py"
LIMIT_SECONDS = 240  # far more than any step takes


def demo(*arguments):
    return subprocess.run([sys.executable, DEMO, "--weir", WEIR, *arguments], capture_output=True, text=True, check=False,
                          timeout=LIMIT_SECONDS)


def listening(port=0):
    """Returns a socket that listens on the port, or None if another program does."""
    listener = socket.socket()
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        return None
    listener.listen()
    return listener


class DemoTest(TestCase):
    def test_chosen_port_in_use_is_rejected_before_the_build(self):
        with listening() as taken:
            port = taken.getsockname()[1]
            ended = demo("--check-arguments", "--port", str(port))
        self.assertEqual(ended.returncode, 1)
        self.assertIn(f"--port {port}: 127.0.0.1:{port} cannot be used: Address already in use", ended.stderr)
        self.assertEqual(demo("--check-arguments").returncode, 0)

    def test_invalid_port_value_is_named_in_the_error(self):
        ended = demo("--check-arguments", "--port", "http")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("'http' is no port: write a number from 1 to 65535", ended.stderr)

    def test_dev_demo_checks_the_port_before_it_builds(self):
        with listening() as taken:
            port = taken.getsockname()[1]
            ended = subprocess.run([DEMO.parent.parent / "dev", "demo", "--port", str(port)], capture_output=True, text=True,
                                   check=False, timeout=LIMIT_SECONDS)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("Address already in use", ended.stderr)
        self.assertNotIn("== building", ended.stderr)

    def test_smoke_checks_pass_on_other_ports_if_the_usual_ports_are_in_use(self):
        listeners = [listening(port) for port in (8080, 8443, 9900, 9001)]  # None: another program holds the port already
        try:
            ended = demo("--smoke")
        finally:
            for listener in filter(None, listeners):
                listener.close()
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertRegex(ended.stdout, r"demo: port 8080 \(HTTP\) is taken; using \d+")
        passed, failed = map(int, re.search(r"^(\d+) passed, (\d+) failed$", ended.stdout, re.M).groups())
        self.assertEqual((passed, failed), (5, 0))


if __name__ == "__main__":
    main()
