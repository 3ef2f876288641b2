# SPDX-License-Identifier: Apache-2.0
"""Two models train at the same time, each in a process group of its own, on the bundles of one placement group."""

import os
import socket

import torch
import torch.distributed as dist
from torch import nn

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

WORLD_SIZE = 2


class DummyAttn(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(64, 64)

    def forward(self, x):
        return torch.softmax(self.proj(x), dim=-1) * x


class NewDummyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(32, 8)

    def forward(self, x):
        return torch.relu(self.fc(x))


@ray.remote
class Worker:
    def find_free_port(self):
        with socket.socket() as s:
            s.bind(("", 0))
            return s.getsockname()[1]

    def get_actor_info(self):
        return {"ip_address": ray.util.get_node_ip_address()}

    def init_model(self, cls):
        torch.set_num_threads(1)
        torch.manual_seed(42)
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group("gloo", init_method=f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
                                rank=rank, world_size=world_size)
        self.model = nn.parallel.DistributedDataParallel(cls())
        return f"Rank {rank}/{world_size} in group '{os.environ['GROUP_NAME']}' initialized model: {cls.__name__}"

    def train_step(self, x):
        self.model.zero_grad()
        loss = self.model(x).sum()
        loss.backward()
        return loss.detach().cpu()

    def sample_grads(self):
        name, parameter = next(iter(self.model.module.named_parameters()))
        return name, parameter.grad.cpu()


class MultiGroup:
    def __init__(self, pg, group_name, model, start_index):
        def on(i):
            return PlacementGroupSchedulingStrategy(placement_group=pg, placement_group_bundle_index=i)

        temp = Worker.options(num_gpus=1, scheduling_strategy=on(start_index)).remote()
        address, port = ray.get(temp.get_actor_info.remote())["ip_address"], ray.get(temp.find_free_port.remote())
        ray.kill(temp)
        self.workers = [Worker.options(
            name=f"{group_name}_rank_{rank}", num_gpus=1, scheduling_strategy=on(start_index + rank),
            runtime_env={"env_vars": {"WORLD_SIZE": str(WORLD_SIZE), "RANK": str(rank), "MASTER_ADDR": address,
                                      "MASTER_PORT": str(port), "GROUP_NAME": group_name}}).remote()
            for rank in range(WORLD_SIZE)]
        self.started = [w.init_model.remote(model) for w in self.workers]

    def train(self, x):
        return [w.train_step.remote(chunk) for w, chunk in zip(self.workers, x.chunk(WORLD_SIZE))]

    def grads_agree(self):
        (name, first), *others = ray.get([w.sample_grads.remote() for w in self.workers])
        return all(n == name and torch.allclose(g, first) for n, g in others)


ray.init(num_cpus=4, num_gpus=4)
pg = placement_group([{"CPU": 1, "GPU": 1}] * 4, strategy="STRICT_PACK", name="ray_multi_group_comm")
ray.get(pg.ready())
a, b = MultiGroup(pg, "GroupA_DummyAttn", DummyAttn, 0), MultiGroup(pg, "GroupB_NewDummyModel", NewDummyModel, 2)
for line in ray.get(a.started + b.started):
    print(line)
torch.manual_seed(1)
losses_a, losses_b = a.train(torch.randn(4, 16, 64)), b.train(torch.randn(4, 32))
for losses in (losses_a, losses_b):
    print([f"{loss.item():.4f}" for loss in ray.get(losses)])
print("the gradients of A agree:", a.grads_agree())
print("the gradients of B agree:", b.grads_agree())
remove_placement_group(pg)
ray.shutdown()
