#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the output that tests/lib/ray_itself.py keeps of a run. Exit status 77 (skipped) if deploy/python.sh
cannot bring Ray.
"""

import os
import subprocess
import sys
import tempfile
import time
import unittest

from python_case import ROOT, environment, main, watch
from safetensors_case import with_packages

RAY_ITSELF = os.path.join(ROOT, "tests/lib/ray_itself.py")
LIMIT_S = 1200  # only for a program that hangs


class KeptOutput(unittest.TestCase):
    """The output of a program with Ray itself is printed again, without a run, until something has changed."""

    def setUp(self):
        watch(LIMIT_S + 60)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_a_program_runs_again_if_it_failed_or_a_file_of_its_folder_changed(self):
        self.write("program.py", "import helper, os, sys; print(os.getpid(), end=' '); sys.exit(helper.STATUS)")
        runs = []
        for status in (1, 0, 0, 0x100):
            self.write("helper.py", f"STATUS = {status}")
            runs.append(self.run_with("--kept"))
        self.assertEqual([done.returncode for done in runs], [1, 0, 0, 0])
        failed, first, again, changed = (done.stdout for done in runs)
        self.assertEqual(again, first)
        self.assertEqual(len({failed, first, changed}), 3)
        self.assertEqual(self.run_with("--forget").stdout, b"")
        self.assertNotEqual(self.run_with("--kept").stdout, changed)

    def test_output_is_the_same_byte_for_byte(self):
        self.write("program.py", "import os; os.write(1, b'\\xff\\r\\n\\xc3'); os.write(2, bytes(range(256)))")
        first, again = self.run_with("--kept"), self.run_with("--kept")
        self.assertEqual(first.stdout, b"\xff\r\n\xc3")
        self.assertIn(bytes(range(256)), first.stderr)
        self.assertEqual((again.stdout, again.stderr), (first.stdout, first.stderr))

    def test_nothing_is_kept_if_a_file_changed_during_the_run(self):
        self.write("program.py", "open('new', 'w').close()")
        self.assertEqual(self.run_with("--kept").returncode, 0)
        self.assertEqual(os.listdir(f"{self.folder}/.cache/cadre/ray-output"), [])

    def test_a_program_ends_if_the_process_that_keeps_its_output_is_killed(self):
        self.write("program.py", "import os, time; open('.pid', 'w').write(f'{os.getpid()} '); time.sleep(600)")
        with subprocess.Popen(self.command("--kept"), cwd=self.folder, env=self.environment()) as process:
            while not (pid := self.read(".pid")).endswith(" "):
                time.sleep(0.05)
            process.kill()
        while self.runs(int(pid)):
            time.sleep(0.05)

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as f:
            f.write(text)

    def read(self, name):
        try:
            with open(f"{self.folder}/{name}", encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def runs(self, pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                return f.read().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def environment(self):
        return {**environment(), "XDG_CACHE_HOME": f"{self.folder}/.cache"}

    def command(self, way):
        return [sys.executable, RAY_ITSELF, way, self.folder, "program.py"]

    def run_with(self, way):
        return subprocess.run(self.command(way), capture_output=True, timeout=LIMIT_S, check=False, cwd=self.folder,
                              env=self.environment())


if __name__ == "__main__":
    with_packages("large")
    main()
