"""`./dev bench` measures in each of its ways: with wrk, h2load, its own client at a constant rate, handshakes, and callgrind. These
measurements are too short to mean anything, but each must end and print figures."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import TestCase, main

SCRIPT = pathlib.Path(os.environ["WEIR_SOURCE"]) / "loadtest" / "bench.py"
LACKING = [name for name in ("nginx", "haproxy", "wrk", "h2load", "nghttp", "nghttpx", "g++", "valgrind") if not shutil.which(name)]


@unittest.skipIf(LACKING, f"these programs are not there: {LACKING}")
@unittest.skipIf(os.environ["WEIR_SANITIZE"], "a benchmark says nothing about a sanitized program")
class Bench(TestCase):
    def measure(self, modes, *options):
        """Runs a measurement. Returns what it printed and its figures."""
        with tempfile.TemporaryDirectory() as folder:
            figures = pathlib.Path(folder) / "figures.json"
            done = subprocess.run([sys.executable, SCRIPT, "--weir", os.environ["WEIR"], "--rounds", "1", "--seconds", "1", "--warm", "0.2",
                                   "--json", figures, "--modes", *modes, *options],
                                  capture_output=True, text=True, check=False, timeout=280)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout, json.loads(figures.read_text())

    def test_every_mode_measures_each_contestant(self):
        modes = ["refused", "paced-8", "h2c-10x100", "routes-1", "routes-500", "tls-resumed"]
        printed, figures = self.measure(modes, "--contestants", "nginx", "haproxy", "weir")
        for mode in modes:
            rows = figures["measurements"][mode]
            self.assertEqual(set(rows), {"nginx", "haproxy", "weir"} | ({"straight"} if mode == "paced-8" else set()))
            for name, (row,) in rows.items():
                self.assertGreater(row["rate"], 0, f"{mode} {name}")
                self.assertTrue(any(row[figure] > 0 for figure in ("p50_us", "mean_us") if figure in row), f"{mode} {name}")
        self.assertRegex(printed, r"routes-500 weir \| [+-]\d", "what a request costs more with 500 routes")

    def test_bench_counts_the_processor_instructions_of_each_contestant(self):
        printed, figures = self.measure(["tenants-30"], "--contestants", "nginx", "weir", "--instructions", "300")
        for name, count in figures["instructions"]["tenants-30"].items():
            self.assertTrue(1_000 < count < 1_000_000, f"{name}: {count}")
        self.assertEqual(len(re.findall(r"^\| (?:nginx|weir) \|", printed, re.M)), 2, printed)


if __name__ == "__main__":
    main()
