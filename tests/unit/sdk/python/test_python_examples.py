#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of examples/python, as people run them, and what they print."""

import os
import subprocess

from python_case import EXAMPLES, PRELOADED, RunCase, environment, main

PRINTED = {
    "pools.py": ["[0, 1, 2, 3] [4, 4, 4, 4]", "[1, 2, 3, 4]", "[2, 3, 4, 5]", "[0, 1, 2, 3, 0, 1, 2, 3]",
                 "[3, 4, 5, 6, 7, 8, 9, 10]", "[10, 11, 12, 13]"],
    "dispatch.py": ["[8, 10, 12, 14]", "5", "[8, 10, 8, 10]", "36"],
    "nested.py": ["None", "Work done by child"],
    "tasks.py": ["[0, 1, 4, 9, 16, 25, 36, 49, 64, 81] []", "49", "0 1,2"],
}


class Examples(RunCase):
    def prints(self, name):
        preload = {PRELOADED: os.environ[PRELOADED]} if PRELOADED in os.environ else {}
        done = subprocess.run(["python3", name], cwd=EXAMPLES, env={**environment(), **preload}, capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), PRINTED[name])

    def test_pools(self):
        self.prints("pools.py")

    def test_a_method_that_makes_a_group(self):
        self.prints("nested.py")

    def test_dispatch_modes(self):
        self.prints("dispatch.py")

    def test_tasks(self):
        self.prints("tasks.py")


if __name__ == "__main__":
    main()
