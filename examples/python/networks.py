# SPDX-License-Identifier: Apache-2.0
"""Two models in torch, trained by groups of their own; two_groups.py runs them. Each rank has the whole model (DDP), or, with
`shard`, a part of each parameter (FSDP2)."""

import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import cadre


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = torch.nn.MultiheadAttention(1024, 8, batch_first=True)

    def forward(self, x):
        return self.heads(x, x, x)[0]


MODELS = {"Attention": Attention, "Linear": lambda: torch.nn.Linear(512, 512)}


class Network:
    def __init__(self, model, shard=False):
        device = torch.device(cadre.device())
        torch.manual_seed(42)
        dist.init_process_group(backend="gloo" if device.type == "cpu" else "nccl")
        network = MODELS[model]().to(device)
        if shard:
            self.model = fully_shard(network, mesh=init_device_mesh(device.type, (cadre.world_size(),)))
        else:
            self.model = DistributedDataParallel(network)
        print(f"Rank {cadre.rank()}/{cadre.world_size()} in group {os.environ['GROUP_NAME']!r} initialized model: {model}")

    @cadre.register(dispatch="ALL_TO_ALL")
    def train_step(self, x):
        """a step on this rank's part; returns its loss"""
        loss = self.model(x.to(cadre.device())).sum()
        loss.backward()
        return loss.cpu().detach()

    def sample_grad(self):
        """the first parameter's name, and its gradient, averaged over all ranks"""
        name, parameter = next(self.model.named_parameters())
        grad = parameter.grad
        return name, (grad.full_tensor() if hasattr(grad, "full_tensor") else grad).cpu()

    def master_port(self):
        return int(os.environ["MASTER_PORT"])
