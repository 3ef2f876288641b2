# SPDX-License-Identifier: Apache-2.0
"""The two models of examples/ddp in torch, trained by groups of their own; two_groups.py runs them. Each rank has the whole
model (DDP), or, with `shard`, a part of each parameter (FSDP2)."""

import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import cadre


class Attention(torch.nn.Module):
    """on batches (rows, 128, 1024)"""

    def __init__(self):
        super().__init__()
        self.heads = torch.nn.MultiheadAttention(1024, 8, bias=False, batch_first=True)

    def forward(self, x):
        return self.heads(x, x, x)[0]


class MLP(torch.nn.Module):
    """on batches (rows, 512)"""

    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(512, 32, bias=False)
        self.out = torch.nn.Linear(32, 1, bias=False)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


MODELS = {"Attention": Attention, "MLP": MLP}


def loss_of(model, x):
    """how far the model is from the mean: of a row's tokens, or of its values"""
    return (model(x) - x.mean(1, keepdim=True)).square().sum(-1).mean()


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
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        print(f"Rank {cadre.rank()}/{cadre.world_size()} in group {os.environ['GROUP_NAME']!r} initialized model: {model}")

    @cadre.register(dispatch="ALL_TO_ALL")
    def train_step(self, x):
        """a step on this rank's part; returns its loss"""
        self.optimizer.zero_grad()
        loss = loss_of(self.model, x.to(cadre.device()))
        loss.backward()
        self.optimizer.step()
        return loss.cpu().detach()

    def sample_grads(self):
        """the first parameter's name, and its gradient in the last step, averaged over all ranks"""
        name, parameter = next(self.model.named_parameters())
        grad = parameter.grad
        return name, (grad.full_tensor() if hasattr(grad, "full_tensor") else grad).cpu()

    def master_port(self):
        return int(os.environ["MASTER_PORT"])
