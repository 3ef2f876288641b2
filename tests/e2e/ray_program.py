# SPDX-License-Identifier: Apache-2.0
"""A program for a Ray cluster, without changes: actors, tasks, values, names, and two groups of actors on one placement group.
test_programs.sh runs it outside the cluster, and all of its workers in pods."""

import os
import socket

import ray
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ray.init(namespace="lab")
HERE = socket.gethostname()


@ray.remote
def example_task(x):
    return x * x, socket.gethostname() != HERE


print("S0-2", ray.get([example_task.remote(i) for i in range(3)]))


@ray.remote
class ChildActor:
    def do_work(self):
        return "Work done by child"


@ray.remote
class ParentActor:
    def create_child(self):
        self.child_actor = ChildActor.remote()

    def get_work(self):
        return ray.get(self.child_actor.do_work.remote())


@ray.remote
class Accumulator:
    def __init__(self, value=0):
        self.value = value

    def add(self, x):
        self.value += x
        return self.value

    def get_value(self):
        return self.value

    def where(self):
        return socket.gethostname()


parent, accumulator = ParentActor.remote(), Accumulator.options(name="accumulator").remote()
print("S0-4", ray.get(parent.create_child.remote()), ray.get(parent.get_work.remote()))
before = accumulator.get_value.remote()
accumulator.add.remote(10)
print("S0-5", ray.get(before), ray.get(ray.get_actor("accumulator").get_value.remote()))
print("in a pod of its own", ray.get(accumulator.where.remote()).startswith("accumulator-"))
value = {"weights": [1.5, 2.5], "step": (3, None), 7: b"bytes"}
print("S3-5", ray.get(ray.put(value)) == value, ray.get(accumulator.add.remote(ray.put(5))))
ray.kill(accumulator)
try:
    while True:  # it ends a moment after kill has returned
        ray.get(accumulator.get_value.remote())
except ray.exceptions.RayActorError:
    print("S3-8 the actor is dead")


@ray.remote
class Worker:
    def __init__(self, model=None):
        self.model = model

    def init_worker(self):
        self.rank = int(os.environ["RANK"])
        return f"Rank {self.rank}/{os.environ['WORLD_SIZE']} in group '{os.environ['GROUP_NAME']}' initialized model: {self.model}"

    def get_actor_info(self):
        return {"ip_address": ray.util.get_node_ip_address(), "actor_id": ray.get_runtime_context().get_actor_id()}

    def find_free_port(self):
        with socket.socket() as s:
            s.bind(("", 0))
            return s.getsockname()[1]

    def gpus(self):
        return ray.get_gpu_ids(), os.environ["CUDA_VISIBLE_DEVICES"]

    def train_step(self, chunk):
        return sum(chunk) + self.rank


WORLD_SIZE = 2


def create_group(pg, group_name, model, start_index):
    def on(i):
        return PlacementGroupSchedulingStrategy(placement_group=pg, placement_group_bundle_index=i)

    temp = Worker.options(name=f"{group_name}_temp_init", num_gpus=1, scheduling_strategy=on(start_index)).remote()
    address, port = ray.get(temp.get_actor_info.remote())["ip_address"], ray.get(temp.find_free_port.remote())
    ray.kill(temp)
    workers = []
    for rank in range(WORLD_SIZE):
        env_vars = {"WORLD_SIZE": str(WORLD_SIZE), "RANK": str(rank), "MASTER_ADDR": address, "MASTER_PORT": str(port),
                    "GROUP_NAME": group_name}
        workers.append(Worker.options(name=f"{group_name}_rank_{rank}", num_gpus=1, scheduling_strategy=on(start_index + rank),
                                      runtime_env={"env_vars": env_vars}).remote(model))
    return workers


pg = placement_group([{"CPU": 0.1, "GPU": 1}] * 4, strategy="STRICT_PACK", name="ray_multi_group_comm")
ray.get(pg.ready())
print("S2-2", placement_group_table(pg)["state"], ray.cluster_resources()["GPU"], ray.available_resources().get("GPU"))
a = create_group(pg, "GroupA_DummyAttn", "DummyAttn", 0)
b = create_group(pg, "GroupB_NewDummyModel", "NewDummyModel", 2)
for line in ray.get([w.init_worker.remote() for w in a + b]):
    print("S2-5", line)
infos = ray.get([w.get_actor_info.remote() for w in a + b])
print("S2-6", len({i["ip_address"] for i in infos}), len({i["actor_id"] for i in infos}))
print("S2-8", ray.get([w.train_step.remote(c) for group in (a, b) for w, c in zip(group, [[1, 2], [3, 4]])]))
print("S2-11", ray.get([w.gpus.remote() for w in a + b]))
print(sorted(ray.util.list_named_actors()))
remove_placement_group(pg)
try:
    while True:  # its actors end a moment later
        ray.get(a[0].gpus.remote())
except ray.exceptions.RayActorError:
    print("S1-12 removed")
ray.shutdown()
