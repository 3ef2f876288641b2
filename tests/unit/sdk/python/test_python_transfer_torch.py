#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights of torch that move: DTensors, and parameters.

Exit status 77 (skipped) if deploy/python.sh cannot bring torch.
"""

import os
import sys

import cadre
from cadre import _weights
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

    def test_a_placement_whose_blocks_lie_in_another_order_is_refused(self):
        import torch
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Replicate, Shard
        from torch.distributed.tensor.placement_types import _StridedShard

        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        self.addCleanup(dist.destroy_process_group)
        mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))

        def row(*placements):
            return _weights._of_dtensor(DTensor.from_local(torch.zeros(4, 2), mesh, placements, run_check=False)).row()

        self.assertEqual(row(Replicate(), Shard(0)), [-1, 0])
        with self.assertRaisesRegex(TypeError, r"_StridedShard.* does not move"):
            row(_StridedShard(0, split_factor=1), Shard(0))


if __name__ == "__main__":
    with_packages("large")
    main()
