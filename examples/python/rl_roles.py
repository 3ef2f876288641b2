# SPDX-License-Identifier: Apache-2.0
"""The roles of reinforcement learning with a tiny policy: a prompt is a digit, an answer is a digit, and 3 * prompt + 1
(modulo 10) is right."""

import torch
import torch.distributed as dist
from tensordict import TensorDict
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel

import cadre

ROWS = cadre.register(dispatch="DP_COMPUTE_PROTO")      # each rank gets some rows; the results become one batch
METRIC = cadre.register(dispatch="DP_COMPUTE_METRIC")   # the same, and the results are a list


def rows(**tensors):
    return TensorDict(tensors, batch_size=len(next(iter(tensors.values()))))


def network(width, outputs):
    torch.manual_seed(0)  # the same on every rank
    return torch.nn.Sequential(torch.nn.Embedding(10, width), torch.nn.Tanh(), torch.nn.Linear(width, outputs))


class Actor(cadre.Weights):
    """Trains the policy, data parallel."""

    def __init__(self, lr=0.05):
        dist.init_process_group("nccl" if cadre.device() != "cpu" else "gloo")
        self.policy = network(32, 10).to(cadre.device())
        self.parallel = DistributedDataParallel(self.policy)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr)

    def weights(self):
        return dict(self.policy.named_parameters())

    @METRIC
    def update(self, batch):
        answers = Categorical(logits=self.parallel(batch["prompt"]))
        loss = -(batch["advantage"] * answers.log_prob(batch["answer"])).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


class Rollout(cadre.Weights):
    """Answers prompts with the weights that it got last."""

    def __init__(self):
        self.policy = network(32, 10).to(cadre.device())
        self.versions = 0
        torch.manual_seed(cadre.rank())

    def weights(self):
        return dict(self.policy.named_parameters())

    def weights_arrived(self, version):
        self.versions += 1

    @ROWS
    def generate(self, batch):
        with torch.no_grad():
            answers = Categorical(logits=self.policy(batch["prompt"])).sample()
        return rows(prompt=batch["prompt"], answer=answers)


class Reward:
    @ROWS
    def score(self, batch):
        return rows(reward=(batch["answer"] == (3 * batch["prompt"] + 1) % 10).float())


class Critic:
    """Learns what reward a prompt may expect."""

    def __init__(self, lr=0.05):
        self.model = network(16, 1).to(cadre.device())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    @ROWS
    def values(self, batch):
        with torch.no_grad():
            return rows(value=self.model(batch["prompt"]).squeeze(-1))

    @METRIC
    def update(self, batch):
        loss = torch.nn.functional.mse_loss(self.model(batch["prompt"]).squeeze(-1), batch["reward"])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()
