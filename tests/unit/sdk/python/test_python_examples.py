#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of examples/python, as people run them, and what they print.

    test_python_examples.py [--numpy | --torch]      those that need that; 77 if deploy/python.sh cannot bring it
"""

import ctypes
import os
import re
import socket
import subprocess
import sys
import unittest

import cadre
from python_case import EXAMPLES, ROOT, SLOW_S, RunCase, main, program
from safetensors_case import with_packages

PR_SET_CHILD_SUBREAPER = 36
PRINTED = {
    "basics.py": ["0 10", "2 [0, 1]", "[1, 4]", "[10, 11]", "[1, 4] 10"],
    "dispatch.py": ["[8, 10, 12, 14]", "[5, 5, 5, 5]", "5", "[8, 10, 8, 10]", "36",
                    "[[0, 'a'], [1, 'b'], [2, 'c'], [3, 'd']]"],
    "counter.py": ["[3]", "{'a': 1}", "3 tries", "try 4", "[1, 2] [] 2", "Unavailable"],
    "echo.py": ["[[1, 'two', None]] [{3, 4}] [b'bytes'] [inf]"],
    "meshes.py": ["{'x': [1, 3]} {'x': [11, 16]}", "['stage 0', 'stage 1']",
                  "{'x': ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'], 'rank': [0, 4, 1, 5, 2, 6, 3, 7]}"],
    "nested.py": ["None", "Work done by child"],
    "pools.py": ["[0, 1, 2, 3] [4, 4, 4, 4]", "[1, 2, 3, 4]", "[2, 3, 4, 5]", "[0, 1, 2, 3, 0, 1, 2, 3]",
                 "[3, 4, 5, 6, 7, 8, 9, 10]", "[10, 11, 12, 13, 14, 15, 16, 17]", "[10, 11, 12, 13]"],
    "routes.py": ["[2] ['small'] ['large']", "route 0: weight is 0: 1 to 1000"],
    "shipping.py": ["['trained with a small step', 'trained with a small step']"],
    "tasks.py": ["[0, 1, 4, 9, 16, 25, 36, 49, 64, 81] []", "49", "0 1,2"],
    "whereabouts.py": ["['on-1:0', 'on-1:1', 'on-1:2', 'on-1:3'] on 1 nodes",
                       "['on-4:0', 'on-4:0', 'on-4:0', 'on-4:0'] on 4 nodes", "[False, False, False, False]", "True"],
}
PRINTED_WITH_NUMPY = {
    "colocated.py": [str([0.0] * 5 + [1.0] * 5), str([-10.0] * 10)],
    "references.py": [str([-10.0] * 5 + [-9.0] * 5), str([-9.0] * 4)],
}
# Programs that Ray, verl and the tutorials about them show, each with the values that they show. The rows have the
# numbers of our notes about them (S1-8 is six modes).
WITH_TORCH = {"test_python_examples_torch": {"gpu_accumulator.py", "rendezvous.py"}, "test_python_torch": {"two_groups.py", "rl_loop.py"}}
STEP = re.compile(r"\| (S\d-\d+) \| .* \| \[`(\w+\.py)`\]\(\.\./examples/python/\2\) \| `(\w+)` \|")


class Examples(RunCase):
    """Each prints what it should, and leaves no process behind."""

    def setUp(self):
        super().setUp()
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what they leave behind becomes our child

    def prints(self, name, lines):
        self.assertEqual([line for line in self.printed(name) if " [rank " not in line], lines)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass  # it had ended
            self.fail(f"{name} has left processes behind")
        except ChildProcessError:
            pass


def add(name, lines):
    setattr(Examples, f"test_{os.path.splitext(name)[0]}", lambda self: self.prints(name, lines))


class Client(RunCase):
    def test_a_program_calls_a_group_of_another_one(self):
        with cadre.local() as run:
            run.Group("accumulator:Accumulator", replicas=2, name="shared")
            self.assertEqual(self.printed("client.py", run.address, "shared"), ["[10, 11]"] + ["one more: True"] * 2)


class Steps(unittest.TestCase):
    def test_each_step_of_the_programs_that_we_learn_from_has_an_example_that_a_test_runs(self):
        with open(os.path.join(ROOT, "docs/testing.md"), encoding="utf-8") as f:
            found = [m.groups() for m in map(STEP.fullmatch, f.read().splitlines()) if m]
        self.assertEqual([step for step, _, _ in found],
                         [f"{program}-{i + 1}" for program, n in (("S0", 11), ("S1", 12), ("S2", 11), ("S3", 9)) for i in range(n)])
        run = {"test_python_examples": set(PRINTED), "test_python_examples_numpy": set(PRINTED_WITH_NUMPY), **WITH_TORCH}
        self.assertEqual([row for row in found if row[1] not in run.get(row[2], ())], [])


class Torch(RunCase):
    def test_a_number_on_each_gpu(self):
        lines = self.printed("gpu_accumulator.py")
        self.assertEqual([line for line in lines if "[rank" not in line],
                         ["[tensor([1.]), tensor([4.])]", "[tensor([10.]), tensor([11.])]"])
        printed = sorted(re.sub("^gpuaccumulator-[0-9a-f]{6} ", "", line) for line in lines if "[rank" in line)
        self.assertEqual(printed, [f"[rank {r}] rank {r}, value: {v}" for r, v in ((0, "1.0"), (0, "10.0"), (1, "11.0"), (1, "4.0"))])

    def test_a_number_on_four_ranks(self):
        with cadre.local() as run:
            group = run.Group("gpu_accumulator:GPUAccumulator", replicas=4)
            self.assertEqual([x.item() for x in group.add.each([1, 3, 5, 7])], [1, 4, 7, 10])
            self.assertEqual([x.item() for x in group.add(10)], [11, 14, 17, 20])

    def test_ranks_of_a_plain_program_find_each_other(self):
        done = subprocess.run([program("CADRE_LOCAL"), "--agent", program("CADRE_AGENT"), "--processes", "3", "--", "python3",
                               "rendezvous.py"], cwd=EXAMPLES, capture_output=True, text=True, timeout=SLOW_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), ["[rank 0] roll-call: 3 ranks"] + [
            f"[rank 0] rank {rank} on {socket.gethostname()}, local rank {rank}" for rank in range(3)])


if __name__ == "__main__":
    chosen = {"--numpy": PRINTED_WITH_NUMPY, "--torch": {}}.get("".join(sys.argv[1:]), PRINTED)
    if chosen is not PRINTED:
        with_packages("small" if chosen else "large")
        del Client, Steps
    if chosen:
        del Torch
    for example in chosen:
        add(example, chosen[example])
    main()
