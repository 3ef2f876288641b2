# SPDX-License-Identifier: Apache-2.0
"""Pools, groups, dispatch modes and colocated classes in verl's own words: what people write first."""

import pytest
import ray
import torch
from verl import DataProto
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, Execute, collect_all_to_all, register
from verl.single_controller.ray.base import (RayClassWithInitArgs, RayResourcePool, RayWorkerGroup, create_colocated_worker_cls,
                                             merge_resource_pool)


@pytest.fixture(scope="module", autouse=True)
def program():
    ray.init(num_cpus=100)
    yield
    ray.shutdown()


@pytest.fixture
def pool():
    """Makes pools, whose bundles are given back after the test."""
    made = []

    def make(*args, **kwargs):
        made.append(RayResourcePool(*args, **kwargs))
        return made[-1]

    yield make
    for each in made:
        for group in each.pgs or ():
            ray.util.remove_placement_group(group)


@ray.remote
class GPUAccumulator(Worker):
    def __init__(self):
        super().__init__()
        self.value = torch.zeros(size=(1,)) + self.rank

    def add(self, x):
        self.value += x
        return self.value.cpu()


@ray.remote
class GPUAccumulatorDecorator(Worker):
    def __init__(self):
        super().__init__()
        self.value = torch.zeros(size=(1,)) + self.rank

    @register(Dispatch.ONE_TO_ALL)
    def add(self, x):
        self.value += x
        return self.value.cpu()


def two_to_all_dispatch_fn(worker_group, *args, **kwargs):
    for arg in args:
        for i in range(worker_group.world_size - 2):
            arg.append(arg[i % 2])
    for v in kwargs.values():
        for i in range(worker_group.world_size - 2):
            v.append(v[i % 2])
    return args, kwargs


@ray.remote
class TestActor(Worker):
    def __init__(self, x):
        super().__init__()
        self._x = x

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


def numbers(tensors):
    return [t.item() for t in tensors]


def test_a_pool_of_two(pool):
    two = pool([2], use_gpu=True)
    workers = group(two, GPUAccumulator)
    assert len(workers.workers) == workers.world_size == 2
    assert numbers(workers.execute_all_sync("add", x=[1, 3])) == [1, 4]
    assert numbers(group(two, GPUAccumulatorDecorator).add(10)) == [10, 11]


def test_pools_that_groups_share_and_that_are_merged(pool):
    one, two = pool([4], use_gpu=True), pool([4], use_gpu=True, name_prefix="a")
    first = group(one, GPUAccumulator)
    assert (one.local_rank_list(), one.local_world_size_list()) == ([0, 1, 2, 3], [4, 4, 4, 4])
    assert [name.rpartition("GPUAccumulator")[2] for name in first.worker_names] == [f"_0:{i}" for i in range(4)]
    assert numbers(first.execute_all_sync("add", x=[1, 1, 1, 1])) == [1, 2, 3, 4]
    assert numbers(group(one, GPUAccumulator).execute_all_sync("add", x=[2, 2, 2, 2])) == [2, 3, 4, 5]
    both = merge_resource_pool(one, two)
    assert both.local_rank_list() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert numbers(group(both, GPUAccumulator).execute_all_sync("add", x=[3] * 8)) == [3, 4, 5, 6, 7, 8, 9, 10]
    assert numbers(group(both, GPUAccumulatorDecorator).add(x=10)) == [10, 11, 12, 13, 14, 15, 16, 17]


def test_modes_of_dispatch_and_of_execution(pool):
    workers = group(pool([4], use_gpu=False), TestActor, x=2)
    assert workers.foo_custom(x=[1, 2], y=[5, 6]) == [8, 10, 8, 10]
    assert workers.foo_rank_zero(x=1, y=2) == 5


def test_colocated_classes(pool):
    classes = {"actor": RayClassWithInitArgs(cls=Actor), "critic": RayClassWithInitArgs(cls=Critic, config={"b": 10})}
    workers = RayWorkerGroup(resource_pool=pool([2], use_gpu=False), ray_cls_with_init=create_colocated_worker_cls(classes))
    spawned = workers.spawn(prefix_set=classes.keys())
    data = DataProto.from_dict({"a": torch.zeros(10)})
    assert spawned["actor"].add(data).batch["a"].tolist() == [0] * 5 + [1] * 5
    assert spawned["critic"].sub(data).batch["a"].tolist() == [-10] * 10
