"""`.ci/run` on a machine that is too slow for all steps. The script prints one line with the skipped steps, and the next run does
them first.

The tests run the real script with a fake ./dev that only records its calls."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import TestCase, main

SCRIPT = pathlib.Path(os.environ["WEIR_SOURCE"]) / ".ci" / "run"
DEV = """#!/bin/sh
echo "$*" >>called
case "$*" in "$FAILING") exit 1 ;; esac
"""
ALWAYS = ["test", "demo --smoke"]
MAY_BE_LEFT_OUT = ["sanitize address", "sanitize thread --quick", "fuzz pure 4", "lint --quick"]


class CiTest(TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / ".ci").mkdir()
        shutil.copy(SCRIPT, self.folder / ".ci" / "run")
        (self.folder / "dev").write_text(DEV)
        (self.folder / "dev").chmod(0o755)

    def run_ci(self, patience=5200, failing="nothing"):
        """Runs the script. Returns the steps that ran in order, the line about skipped steps, and the exit status."""
        called = self.folder / "called"
        called.unlink(missing_ok=True)
        ended = subprocess.run(["bash", ".ci/run"], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60,
                               env={"PATH": os.environ["PATH"], "WEIR_CI_PATIENCE": str(patience), "FAILING": failing,
                                    "WEIR_CI_LEFT_OUT": str(self.folder / "left-out")})
        lines = [line for line in ended.stdout.splitlines() if line.startswith("left out")]
        self.assertLessEqual(len(lines), 1, ended.stdout)
        self.last_line = ended.stdout.splitlines()[-1]
        return called.read_text().splitlines(), "".join(lines), ended.returncode

    def test_fast_machine_runs_every_step(self):
        ran, left_out, status = self.run_ci()
        self.assertEqual((ran, left_out, status), (ALWAYS + MAY_BE_LEFT_OUT, "", 0))
        self.assertRegex(self.last_line, r"^6 passed, 0 failed in \d+ s$")

    def test_skipped_steps_of_a_slow_machine_are_named_on_one_line(self):
        ran, left_out, status = self.run_ci(patience=650)  # time for a step of 600 s, but not for one of 700 s
        self.assertEqual(ran, ALWAYS + ["fuzz pure 4", "lint --quick"])
        self.assertEqual(status, 0)
        self.assertIn("./dev sanitize address, ./dev sanitize thread --quick", left_out)

    def test_next_run_starts_with_the_skipped_steps(self):
        self.run_ci(patience=650)
        ran, left_out, _ = self.run_ci()
        self.assertEqual(ran, ALWAYS + MAY_BE_LEFT_OUT)
        (self.folder / "left-out").write_text("lint --quick\n")
        ran, left_out, _ = self.run_ci()
        self.assertEqual(ran, ALWAYS + ["lint --quick", "sanitize address", "sanitize thread --quick", "fuzz pure 4"])
        ran, _, _ = self.run_ci()
        self.assertEqual(ran, ALWAYS + MAY_BE_LEFT_OUT, "the record of the skipped steps was used twice")

    def test_failed_step_fails_the_run_without_stopping_other_steps(self):
        ran, _, status = self.run_ci(failing="demo --smoke")
        self.assertEqual((ran, status), (ALWAYS + MAY_BE_LEFT_OUT, 1))
        self.assertRegex(self.last_line, r"^5 passed, 1 failed in \d+ s$")


if __name__ == "__main__":
    main()
