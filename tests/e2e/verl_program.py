# SPDX-License-Identifier: Apache-2.0
"""A program of verl, without changes: groups of workers on one pool, their dispatch modes, and colocated classes.
test_programs.sh runs it outside the cluster, and its workers in pods."""

import ray
import torch
from verl import DataProto
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, Execute, collect_all_to_all, register
from verl.single_controller.ray.base import (RayClassWithInitArgs, RayResourcePool, RayWorkerGroup, ResourcePoolManager,
                                             create_colocated_worker_cls, split_resource_pool)


def two_to_all_dispatch_fn(worker_group, *args, **kwargs):
    for values in (*args, *kwargs.values()):
        for i in range(worker_group.world_size - 2):
            values.append(values[i % 2])
    return args, kwargs


@ray.remote
class GPUAccumulator(Worker):
    def __init__(self, x=0):
        super().__init__()
        self.value, self._x = torch.zeros(size=(1,)) + self.rank, x

    def add(self, x):
        self.value += x
        return self.value.cpu()

    @register(Dispatch.ONE_TO_ALL)
    def add_to_all(self, x):
        self.value += x
        return self.value.cpu()

    @register(dispatch_mode={"dispatch_fn": two_to_all_dispatch_fn, "collect_fn": collect_all_to_all})
    def foo_custom(self, x, y):
        return self._x + y + x

    @register(dispatch_mode=Dispatch.ALL_TO_ALL, execute_mode=Execute.RANK_ZERO)
    def foo_rank_zero(self, x, y):
        return self._x + y + x


@ray.remote
class Actor(Worker):
    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
    def add(self, data: DataProto):
        data.batch["a"] += self.rank
        return data


@ray.remote
class Critic(Worker):
    def __init__(self, config):
        super().__init__()
        self.config = config

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
    def sub(self, data: DataProto):
        data.batch["a"] -= self.config["b"]
        return data


def group(pool, cls, **init):
    return RayWorkerGroup(resource_pool=pool, ray_cls_with_init=RayClassWithInitArgs(cls=cls, **init))


ray.init()
manager = ResourcePoolManager(resource_pool_spec={"pool": [4]}, mapping={"worker": "pool"})
manager.create_resource_pool()  # asks the cluster how many GPUs it has
pool = manager.get_resource_pool("worker")
workers = group(pool, GPUAccumulator, x=2)
print("S1-3", [t.item() for t in workers.execute_all_sync("add", x=[1, 1, 1, 1])])
print("S1-4", pool.local_rank_list(), pool.local_world_size_list())
print("S1-9", [t.item() for t in workers.add_to_all(10)])
print("S1-10", workers.foo_custom(x=[1, 2], y=[5, 6]))
print("S1-11", workers.foo_rank_zero(x=1, y=2))
classes = {"actor": RayClassWithInitArgs(cls=Actor), "critic": RayClassWithInitArgs(cls=Critic, config={"b": 10})}
half, _ = split_resource_pool(pool, 2)
both = RayWorkerGroup(resource_pool=half, ray_cls_with_init=create_colocated_worker_cls(classes))
spawned = both.spawn(prefix_set=classes.keys())
data = DataProto.from_dict({"a": torch.zeros(10)})
print("S2-10", spawned["actor"].add(data).batch["a"].tolist(), spawned["critic"].sub(data).batch["a"].tolist())
ray.shutdown()
