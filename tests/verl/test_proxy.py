# SPDX-License-Identifier: Apache-2.0
"""Tests the addition of cadre.verl: the workers of a group are the ranks of one group of Cadre, and one call reaches
all of them. The results are the same as with verl itself.
"""

import os
import sys
import time

import numpy as np
import pytest
import ray
import torch
from cadre.ray import _session
from tensordict import TensorDict
from verl import DataProto
from verl.protocol import DataProtoFuture
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, Execute, make_nd_compute_dataproto_dispatch_fn, register
from verl.single_controller.ray import base

pytestmark = pytest.mark.skipif(base.RayWorkerGroup.__module__ != "cadre.verl._group", reason="cadre.verl is not loaded")
LONG = 1 << 20  # elements of a row


@ray.remote
class Rows(Worker):
    def __init__(self, fails=False):
        super().__init__()
        if fails and self.rank == 1:
            raise RuntimeError("no way to begin")
        self._register_dispatch_collect_info("mesh", dp_rank=self.rank // 2, is_collect=self.rank % 2 == 1)
        self.seen = []

    @register(Dispatch.DP_COMPUTE_PROTO)
    def add(self, data):
        data.batch["a"] += self.rank
        return data

    @register(Dispatch.DP_COMPUTE_PROTO)
    def measure(self, data):
        data.meta_info["metrics"] = {"rank": self.rank}
        return data

    @register(Dispatch.DP_COMPUTE_PROTO)
    def disagree(self, data):
        data.meta_info["rank"] = self.rank
        return data

    @register(Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def add_later(self, data):
        data.batch["a"] += self.rank
        return data

    @register(Dispatch.DP_COMPUTE_METRIC)
    def sum(self, data):
        return data.batch["a"].sum().item()

    @register(make_nd_compute_dataproto_dispatch_fn("mesh"))
    def on_mesh(self, data):
        data["a"] += self.rank
        return data

    @register(Dispatch.ONE_TO_ALL)
    def remember(self, x, by=None):
        self.seen.append(x)
        return self.rank, by, len(self.seen)

    @register(Dispatch.ONE_TO_ALL)
    def long(self, n):
        return torch.full((n,), self.rank)

    @register(Dispatch.ALL_TO_ALL)
    def fail(self, x):
        if self.rank == 2:
            raise KeyError(x)

    @register(Dispatch.ALL_TO_ALL, execute_mode=Execute.RANK_ZERO)
    def leave(self):
        sys.exit(3)

    def environment(self):
        return {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "WG_BACKEND", "COLOR")}


def make(name_prefix=None, **init):
    """A group on a pool of its own."""
    return base.RayWorkerGroup(resource_pool=base.RayResourcePool([4], use_gpu=False), name_prefix=name_prefix,
                               worker_env={"COLOR": "blue"}, ray_cls_with_init=base.RayClassWithInitArgs(Rows, **init))


@pytest.fixture(scope="module", autouse=True)
def program():
    ray.init(num_cpus=1000)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def group(program):
    return make("p")


def calls_of(group):
    """How many calls of each method the proxy has had."""
    info = group.workers[0]._info
    stats = _session.current().client.group(info["group"]).call("group.stats")
    return {m["name"]: m["results"] for m in stats["methods"]}


def proto(rows=4, width=2, **meta):
    return DataProto.from_dict({"a": torch.zeros(rows, width)}, non_tensors={"text": np.array(list("abcdefgh")[:rows], dtype=object)},
                               meta_info=meta)


def test_one_group_has_all_ranks(group):
    assert len({w._info["group"] for w in group.workers}) == 1
    assert [w._info["rank"] for w in group.workers] == [0, 1, 2, 3]
    environments = group.execute_all_sync("environment")
    assert [e.pop("RANK") for e in environments] == ["0", "1", "2", "3"]
    assert environments == [{"WORLD_SIZE": "4", "LOCAL_RANK": "0", "WG_BACKEND": "ray", "COLOR": "blue"}] * 4
    assert group.master_address and int(group.master_port)


def test_the_workers_are_actors_too(group):
    assert group.worker_names == [f"pRows_0:{i}" for i in range(4)]
    third = ray.get_actor("pRows_0:2")
    assert third == group.workers[2] and ray.get(third.environment.remote())["RANK"] == "2"
    again = base.RayWorkerGroup.from_detached(worker_names=group.worker_names, ray_cls_with_init=base.RayClassWithInitArgs(Rows))
    assert again.add(proto()).batch["a"][:, 0].tolist() == [0, 1, 2, 3]


def test_a_name_that_is_taken(group):
    with pytest.raises(ValueError, match="The name pRows_0:0 .* is already taken"):
        make("p")


@pytest.mark.parametrize("width", [2, LONG // 4])
def test_rows_that_the_proxy_splits_and_joins(group, width):
    data = proto(8, width, step=3)
    before = calls_of(group).get("add", 0)
    out = group.add(data)
    assert calls_of(group)["add"] == before + 1
    assert out.batch["a"][:, -1].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert out.non_tensor_batch["text"].tolist() == list("abcdefgh") and out.meta_info == {"step": 3}
    assert data.batch["a"].sum() == 0


@pytest.mark.parametrize("width", [2, LONG // 4])
def test_meta_is_gathered_as_verl_does(group, width):
    assert group.measure(proto(8, width)).meta_info == {"metrics": {"rank": [0, 1, 2, 3]}}
    with pytest.raises(AssertionError, match="Conflicting values for meta_info key 'rank'"):
        group.disagree(proto(8, width))


@pytest.mark.parametrize("meta", [{"shape": (1, 2)}, {"dtype": np.float32(1)}])
def test_what_json_does_not_give_back_arrives_as_it_was(group, meta):
    out = group.add(proto(4, 2, **meta))
    assert out.meta_info == meta and [type(v) for v in out.meta_info.values()] == [type(v) for v in meta.values()]
    assert out.batch["a"][:, 0].tolist() == [0, 1, 2, 3]


def test_rows_that_do_not_divide(group):
    with pytest.raises(AssertionError, match="only support equal chunk. Got size of DataProto 5 and chunk 4"):
        group.add(proto(5))
    padded = DataProto.from_dict({"a": torch.zeros(5, 1)}, auto_padding=True)
    assert group.add(padded).batch["a"][:, 0].tolist() == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("width", [2, LONG // 4])
def test_a_result_that_nobody_waits_for(group, width):
    future = group.add_later(proto(8, width))
    assert isinstance(future, DataProtoFuture)
    assert future.get().batch["a"][:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert group.add(group.add_later(proto(4))).batch["a"][:, 0].tolist() == [0, 2, 4, 6]


def test_a_list_of_results(group):
    assert group.sum(proto(4)) == [0, 0, 0, 0]
    assert [v.tolist() for v in (group.long(3)[1], group.long(LONG)[2][-2:])] == [[1, 1, 1], [2, 2]]


@pytest.mark.parametrize("width", [2, LONG // 2])
def test_a_mesh(group, width):
    data = TensorDict({"a": torch.zeros(4, width)}, batch_size=[4])
    assert group.on_mesh(data)["a"][:, -1].tolist() == [1, 1, 3, 3]
    jagged = torch.nested.as_nested_tensor([torch.zeros(n) for n in (2, 3, 4, 5)], layout=torch.jagged)
    out = group.on_mesh(TensorDict({"a": jagged}, batch_size=[4]))["a"]
    assert [t.tolist() for t in out.unbind()] == [[1] * 2, [1] * 3, [3] * 4, [3] * 5]
    assert all(w._calls().group.call("take", "nothing", rank=r) is None for r, w in enumerate(group.workers))


def test_arguments_that_go_once(group):
    long = torch.ones(16 * LONG)  # 64 MiB, and four times that would be too long for a list
    assert group.remember(long) == [(r, None, 1) for r in range(4)]
    assert group.remember("x", by=[1, 2, 3, 4]) == [(r, [1, 2, 3, 4], 2) for r in range(4)]
    assert group.execute_all_sync("remember", [long[:LONG * 8 + i] for i in range(4)]) == [(r, None, 3) for r in range(4)]
    assert ray.get(group.execute_all_async("remember", x=[1, 2, 3, 4], by=list("abcd"))) == [(r, "abcd"[r], 4) for r in range(4)]


def test_the_order_of_calls_stays(group):
    @ray.remote
    def late():
        import time

        time.sleep(0.5)
        return "late"

    counts = [count for _, _, count in group.remember("now")]
    later = group.execute_all_async("remember", late.remote())
    assert [count for _, _, count in group.remember("after")] == [count + 2 for count in counts]
    assert [count for _, _, count in ray.get(later)] == [count + 1 for count in counts]


def test_what_one_rank_raises(group):
    with pytest.raises(KeyError, match="missing") as caught:
        group.fail("missing")
    assert isinstance(caught.value, ray.exceptions.RayTaskError) and "in fail" in str(caught.value)


def test_a_constructor_that_fails():
    made = make(fails=True)
    with pytest.raises(ray.exceptions.ActorDiedError, match="no way to begin"):
        made.remember(1)
    with pytest.raises(ray.exceptions.ActorDiedError, match="(?s)rank 1 of its group died: .*no way to begin"):
        for _ in range(1200):  # rank 3 answers until the agent has stopped it
            ray.get(made.workers[3].environment.remote())
            time.sleep(0.1)


def test_a_rank_that_dies_takes_the_group_along(group):
    with pytest.raises(ray.exceptions.ActorDiedError, match="exited with code 3"):
        group.leave()
    with pytest.raises(ray.exceptions.ActorDiedError):
        group.remember(1)
    for worker in group.workers:
        ray.kill(worker)
    assert make("p").add(proto()).batch["a"][:, 0].tolist() == [0, 1, 2, 3]  # the names are free again
