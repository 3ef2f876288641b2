# SPDX-License-Identifier: Apache-2.0
"""Weights of torch: one that torch.distributed splits, and a parameter in bfloat16."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import cadre


def whole():
    return torch.arange(40, dtype=torch.float32).reshape(8, 5)


class Trainer(cadre.Weights):
    def __init__(self):
        dist.init_process_group()  # needs no argument
        mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
        self.split = torch.nn.Parameter(distribute_tensor(whole(), mesh, [Shard(0)]))
        self.half = torch.nn.Parameter(torch.full((3,), 1.5, dtype=torch.bfloat16))

    def weights(self):
        return {"split": self.split, "half": self.half}


class Generator(cadre.Weights):
    def __init__(self):
        self.split, self.half = torch.zeros(8, 5), torch.zeros(3, dtype=torch.bfloat16)

    def weights(self):
        return {"split": self.split, "half": self.half}

    def is_whole(self):
        return [torch.equal(self.split, whole()), self.half.tolist()]
