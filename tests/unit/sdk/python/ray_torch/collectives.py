# SPDX-License-Identifier: Apache-2.0
"""ray.util.collective, between actors that torch.distributed does not know of."""

import numpy as np
import torch

import ray
import ray.util.collective as collective

ray.init(num_cpus=4)


@ray.remote
class Member:
    def join(self, world_size, rank, name):
        collective.init_collective_group(world_size, rank, "gloo", name)
        self.rank = rank
        return collective.is_group_initialized(name), collective.get_rank(name), collective.get_collective_group_size(name)

    def allreduce(self, name):
        tensor = torch.full((3,), float(self.rank + 1))
        collective.allreduce(tensor, name)
        return tensor.tolist()

    def broadcast(self, name):
        tensor = torch.full((2,), float(self.rank))
        collective.broadcast(tensor, 1, name)
        return tensor.tolist()

    def send(self, name):
        collective.send(torch.arange(4, dtype=torch.float32) * 4, 1, name)

    def recv(self, name):
        tensor = torch.zeros(4)
        collective.recv(tensor, 0, name)
        return tensor.sum().item()

    def gather(self, name):
        tensors = [torch.zeros(1) for _ in range(2)]
        collective.allgather(tensors, torch.tensor([float(self.rank)]), name)
        return [t.item() for t in tensors]

    def numbers(self, name):
        array = np.ones(2, dtype=np.float32) * (self.rank + 1)
        collective.allreduce(array, name)
        return array.tolist()

    def leave(self, name):
        collective.barrier(name)
        collective.destroy_collective_group(name)
        return collective.is_group_initialized(name)


members = [Member.remote() for _ in range(2)]
print(ray.get([m.join.remote(2, i, "weights") for i, m in enumerate(members)]))
print(ray.get([m.allreduce.remote("weights") for m in members]))
print(ray.get([m.broadcast.remote("weights") for m in members]))
sent = members[0].send.remote("weights")
print(ray.get(members[1].recv.remote("weights")), ray.get(sent))
print(ray.get([m.gather.remote("weights") for m in members]))
print(ray.get([m.numbers.remote("weights") for m in members]))
print(ray.get([m.leave.remote("weights") for m in members]))
ray.shutdown()
