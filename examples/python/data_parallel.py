# SPDX-License-Identifier: Apache-2.0
"""Data parallel training in torch: each rank trains on its part of the rows, and the gradients are averaged over all
ranks. Over NCCL where the ranks have GPUs, else over gloo."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import cadre


def model():
    torch.manual_seed(0)  # the same on every rank
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


class Trainer:
    def __init__(self, lr=0.1):
        dist.init_process_group(backend="nccl" if cadre.device() != "cpu" else "gloo")
        self.model = DistributedDataParallel(model().to(cadre.device()))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)

    @cadre.register(dispatch="ALL_TO_ALL")
    def train_step(self, x, y):
        """a step on this rank's rows; returns its loss"""
        self.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self.model(x.to(cadre.device())), y.to(cadre.device()))
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def sample_grads(self):
        """the gradient of the first layer's bias, which is the same on all ranks"""
        return self.model.module[0].bias.grad.tolist()
