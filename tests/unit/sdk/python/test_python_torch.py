#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers in Python that use torch.distributed, which finds its peers by what Cadre sets.

Exit status 77 (skipped) if deploy/python.sh cannot bring torch.
"""

import os
import re
import subprocess
import sys

from python_case import EXAMPLES, PRELOADED, ROOT, GroupCase, RunCase, environment, main
from safetensors_case import with_packages


class DataParallel(GroupCase):
    module = {"python": "data_parallel", "workingDir": os.path.join(ROOT, "examples/python"), "init": {"lr": 0.1}}
    ranks = 2

    def test_gradients_are_those_of_one_process_with_all_rows(self):
        import torch

        sys.path.insert(0, self.module["workingDir"])
        from data_parallel import model

        torch.manual_seed(1)
        x, y = torch.randn(6, 8), torch.randn(6, 1)
        losses = self.group.call("train_step", x.chunk(2), y.chunk(2), timeout=120)
        grads = self.group.call("sample_grads")
        self.assertEqual(grads[0], grads[1])

        alone = model()
        loss = torch.nn.functional.mse_loss(alone(x), y)
        loss.backward()
        self.assertAlmostEqual(sum(losses) / 2, loss.item(), places=5)
        for got, want in zip(grads[0], alone[0].bias.grad.tolist()):
            self.assertAlmostEqual(got, want, places=5)


class Forked(GroupCase):
    module = {"python": "multiplied", "workingDir": os.path.join(os.path.dirname(__file__), "workers"), "preload": ["torch"]}
    ranks = 2

    def test_torch_works_in_ranks_that_are_forked_from_a_template(self):
        numbers, right, threads = zip(*self.group.call("multiply", 300, timeout=120))
        self.assertNotEqual(*numbers)  # of numpy
        self.assertEqual((right, threads), ((True, True), (2, 2)))
        self.assertNotIn("without its template", self.local.read_log())


class Programs(RunCase):
    def printed(self, example):
        preload = {PRELOADED: os.environ[PRELOADED]} if PRELOADED in os.environ else {}
        done = subprocess.run(["python3", example], cwd=EXAMPLES, capture_output=True, text=True, timeout=400,
                              env={**environment(), **preload, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_a_loop_of_reinforcement_learning_learns(self):
        steps = [re.fullmatch(r"step (\d+): (\d+)% of the answers are right", line)
                 for line in self.printed("rl_loop.py") if "[rank" not in line]
        self.assertEqual([int(s[1]) for s in steps], [1, 10, 20, 30, 40])
        self.assertLess(int(steps[0][2]), 30)
        self.assertGreater(int(steps[-1][2]), 90)  # the rollout has what the actor has learned

    def test_two_groups_on_one_pool_train_at_the_same_time(self):
        lines = self.printed("two_groups.py")
        self.assertEqual([line for line in lines if "[rank" not in line], [
            "different ports: True", "losses: [2, 2]",
            "group-a: gradients of module.heads.in_proj_weight agree: True",
            "group-b: gradients of module.weight agree: True"])
        for group, model in (("group-a", "Attention"), ("group-b", "Linear")):
            for rank in range(2):
                self.assertIn(f"{group} [rank {rank}] Rank {rank}/2 in group '{group}' initialized model: {model}", lines)


if __name__ == "__main__":
    with_packages("large")
    main()
