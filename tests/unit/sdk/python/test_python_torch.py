#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers in Python that use torch.distributed, which finds its peers by what Cadre sets.

Exit status 77 (skipped) if deploy/python.sh cannot bring torch.
"""

import math
import os
import re
import subprocess
import sys

import cadre
from python_case import EXAMPLES, SLOW_S, GroupCase, Local, RunCase, environment, lines_of, main
from safetensors_case import with_packages


class DataParallel(GroupCase):
    module = {"python": "data_parallel", "workingDir": EXAMPLES, "init": {"lr": 0.1}, "preload": ["torch"]}
    ranks = 2

    def test_gradients_are_those_of_one_process_with_all_rows(self):
        import torch

        sys.path.insert(0, self.module["workingDir"])
        from data_parallel import model

        torch.manual_seed(1)
        x, y = torch.randn(6, 8), torch.randn(6, 1)
        losses = self.group.call("train_step", x.chunk(2), y.chunk(2), timeout=SLOW_S)
        grads = self.group.call("sample_grads")
        self.assertEqual(grads[0], grads[1])

        alone = model()
        loss = torch.nn.functional.mse_loss(alone(x), y)
        loss.backward()
        self.assertAlmostEqual(sum(losses) / 2, loss.item(), places=5)
        for got, want in zip(grads[0], alone[0].bias.grad.tolist()):
            self.assertAlmostEqual(got, want, places=5)


class Example(GroupCase):
    """A model of examples/ddp, in C, against its twin in examples/python/networks.py: loss, gradients and weights after a step
    on a batch of two rows. C has the transposed matrices of torch."""

    module, ranks, of, row = "DDP_SO", 2, "MLP", (512,)

    def test_a_step_is_that_of_torch(self):
        import torch

        sys.path.insert(0, EXAMPLES)
        from networks import MODELS, loss_of

        twin = MODELS[self.of]()
        weights = list(twin.parameters())
        begin = numbers(1, sum(w.numel() for w in weights)) / 16
        for w, values in zip(weights, begin.split([w.numel() for w in weights])):
            w.data = values.view(w.shape[::-1]).T.contiguous()
        rows = [numbers(5 * 1000003 + i, math.prod(self.row)).view(self.row) for i in range(2)]
        loss = loss_of(twin, torch.stack(rows))
        loss.backward()
        grads = torch.cat([w.grad.T.flatten() for w in weights])
        self.close(self.group.call("train_step", 5, 2, timeout=SLOW_S), loss.detach())
        self.close(self.group.call("sample_grads", 16), grads[[i * (len(grads) - 1) // 15 for i in range(16)]])
        self.close(self.group.call("norm"), (begin - 0.05 * grads).double().norm())

    def close(self, ranks, want):
        import torch

        for got in torch.tensor(ranks, dtype=torch.float64):
            torch.testing.assert_close(got, want.double(), rtol=1e-5, atol=1e-5 * want.abs().max().item())


class AttentionExample(Example):
    of, row = "Attention", (128, 1024)


def numbers(state, n):
    """The first n of examples/ddp: x = a x + c, n times at once."""
    import numpy
    import torch

    powers = numpy.full(n, 6364136223846793005, numpy.uint64).cumprod()
    states = powers * numpy.uint64(state) + (numpy.concatenate([[numpy.uint64(1)], powers[:-1]]) * numpy.uint64(1442695040888963407)).cumsum()
    return torch.from_numpy((states >> numpy.uint64(32)).astype(numpy.uint32).view(numpy.int32).astype(numpy.float32)) / 2**31


class Forked(GroupCase):
    module = {"python": "multiplied", "workingDir": os.path.join(os.path.dirname(__file__), "workers"), "preload": ["torch"]}
    ranks = 2

    def test_torch_works_in_ranks_that_are_forked_from_a_template(self):
        numbers, right, threads = zip(*self.group.call("multiply", 300, timeout=SLOW_S))
        self.assertNotEqual(*numbers)  # of numpy
        self.assertEqual((right, threads), ((True, True), (2, 2)))
        self.assertNotIn("without its template", self.local.read_log())

    def test_ranks_that_are_forked_and_used_fsdp2_end_in_order(self):
        import torch

        local = Local({"python": "networks", "class": "Network", "workingDir": EXAMPLES, "preload": ["torch"],
                       "init": {"model": "MLP", "shard": True}}, ranks=2)
        self.addCleanup(local.stop)
        with local.connect(trust=True) as client:
            client.group("g").call("train_step", torch.randn(4, 512).chunk(2), timeout=SLOW_S)
        local.process.terminate()
        local.process.wait()
        self.assertNotRegex(local.read_log(), "Fatal Python error|ended by signal 6|without its template")


class Programs(RunCase):
    def printed(self, example):
        done = subprocess.run(["python3", example], cwd=EXAMPLES, capture_output=True, text=True, timeout=SLOW_S,
                              env={**environment(), "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return lines_of(done.stdout)

    def test_a_loop_of_reinforcement_learning_learns(self):
        steps = [re.fullmatch(r"step (\d+): (\d+)% of the answers are right", line)
                 for line in self.printed("rl_loop.py") if "[rank" not in line]
        self.assertEqual([int(s[1]) for s in steps], [1, 10, 20, 30, 40])
        self.assertLess(int(steps[0][2]), 30)
        self.assertGreater(int(steps[-1][2]), 90)  # the rollout has what the actor has learned

    def test_two_groups_on_one_pool_train_at_the_same_time(self):
        lines = self.printed("two_groups.py")
        self.assertEqual([line for line in lines if "[rank" not in line], [
            line for way, prefix in (("ddp", "module."), ("fsdp2", "")) for line in (
                "different ports: True", "losses: [2, 2]",
                f"{way}-a: gradients of {prefix}heads.in_proj_weight agree: True",
                f"{way}-b: gradients of {prefix}hidden.weight agree: True")])
        for group, model in (("ddp-a", "Attention"), ("ddp-b", "MLP"), ("fsdp2-a", "Attention"), ("fsdp2-b", "MLP")):
            for rank in range(2):
                self.assertIn(f"{group} [rank {rank}] Rank {rank}/2 in group '{group}' initialized model: {model}", lines)

    def check_network(self, model, x):
        import torch
        from networks import MODELS, loss_of

        torch.manual_seed(42)
        alone = MODELS[model]()
        loss = loss_of(alone, x)
        loss.backward()
        want = next(alone.parameters()).grad
        with cadre.local(cpus=4) as client:
            for shard in False, True:
                group = client.Group("networks:Network", replicas=2, init={"model": model, "shard": shard},
                                     name="fsdp2" if shard else "ddp", preload=["torch"])
                losses = group.train_step(x.chunk(2))
                torch.testing.assert_close(sum(losses) / 2, loss, rtol=1e-3, atol=0)
                for _, grad in group.sample_grads():
                    torch.testing.assert_close(grad, want, rtol=1e-3, atol=1e-3 * want.abs().max().item())
                group.close()

    def test_gradients_of_ddp_and_fsdp2_are_those_of_one_process_with_all_rows(self):
        import torch

        sys.path.insert(0, EXAMPLES)
        torch.manual_seed(1)
        self.check_network("MLP", torch.randn(4, 512))
        self.check_network("Attention", torch.randn(4, 128, 1024))


if __name__ == "__main__":
    with_packages("large")
    main()
