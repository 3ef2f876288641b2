#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers in Python that use torch.distributed, which finds its peers by what Cadre sets.

    test_python_torch.py --with FOLDER torch   with torch, which pip may have to bring into FOLDER; 77 where it cannot
"""
import os
import sys

from python_case import ROOT, GroupCase, main
from safetensors_case import with_package


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


if __name__ == "__main__":
    with_package(sys.argv[3], sys.argv[2], more=("numpy", "tensordict"))
    main()
