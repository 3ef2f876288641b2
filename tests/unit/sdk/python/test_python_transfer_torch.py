#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights of torch that move: a DTensor, and parameters.

Exit status 77 (skipped) if deploy/python.sh cannot bring torch.
"""

import os
import sys

import cadre
from python_case import RunCase, main
from safetensors_case import with_packages


class Torch(RunCase):
    modules = (os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers"),)

    def test_what_torch_splits_and_parameters(self):
        with cadre.local() as client:
            source = client.Group("weighty_torch:Trainer", name="trainer", replicas=2)
            target = client.Group("weighty_torch:Generator", name="generator")
            cadre.transfer(source, target)
            self.assertEqual(target.is_whole(), [[True, [1.5, 1.5, 1.5]]])


if __name__ == "__main__":
    with_packages("large")
    main()
