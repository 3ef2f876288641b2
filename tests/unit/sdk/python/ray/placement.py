# SPDX-License-Identifier: Apache-2.0
"""Placement groups: two groups of workers on the bundles of one, each with a rendezvous of its own."""

import os
import socket

import ray
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

ray.init(num_cpus=4, num_gpus=4, namespace="lab")
WORLD_SIZE = 2


@ray.remote
class Worker:
    def __init__(self, model=None):
        self.model = model

    def init_worker(self):
        self.rank = int(os.environ["RANK"])
        return f"Rank {self.rank}/{os.environ['WORLD_SIZE']} in group '{os.environ['GROUP_NAME']}' initialized model: {self.model}"

    def get_actor_info(self):
        context = ray.get_runtime_context()
        return {"ip_address": ray.util.get_node_ip_address(), "node_id": context.get_node_id(),
                "actor_id": context.get_actor_id()}

    def find_free_port(self):
        with socket.socket() as s:
            s.bind(("", 0))
            return s.getsockname()[1]

    def master(self):
        return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])

    def gpus(self):
        return len(ray.get_gpu_ids())

    def step(self, chunk):
        return sum(chunk) + self.rank


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


pg = placement_group([{"CPU": 1, "GPU": 1}] * 4, strategy="STRICT_PACK", name="ray_multi_group_comm")
ray.get(pg.ready())
print(isinstance(pg, PlacementGroup), pg.bundle_specs)
a = create_group(pg, "GroupA_DummyAttn", "DummyAttn", 0)
b = create_group(pg, "GroupB_NewDummyModel", "NewDummyModel", 2)
for line in ray.get([w.init_worker.remote() for w in a + b]):
    print(line)
infos = ray.get([w.get_actor_info.remote() for w in a + b])
print(len({i["node_id"] for i in infos}), len({i["actor_id"] for i in infos}))
masters = ray.get([w.master.remote() for w in a + b])
print(masters[0] == masters[1], masters[2] == masters[3], masters[0] != masters[2])
print(ray.get([w.gpus.remote() for w in a + b]))
chunks = [[1, 2], [3, 4]]
print(ray.get([w.step.remote(c) for group in (a, b) for w, c in zip(group, chunks)]))
print(sorted(ray.util.list_named_actors()))
print(ray.get(ray.get_actor("GroupA_DummyAttn_rank_1").step.remote([1])))
table = placement_group_table(pg)
print(table["name"], table["strategy"], table["state"], len(table["bundles"]))
print(ray.util.get_placement_group("ray_multi_group_comm") == pg)

# A placement group is one thing, and what an actor asks of it another.
none = Worker.options(scheduling_strategy=PlacementGroupSchedulingStrategy(pg, 0)).remote()
print(ray.get(none.gpus.remote()))
try:
    Worker.options(num_gpus=2, scheduling_strategy=PlacementGroupSchedulingStrategy(pg, 0)).remote()
except ValueError as e:
    print("cannot fit" in str(e))

remove_placement_group(pg)
try:
    while True:  # its actors end a moment later
        ray.get(a[0].gpus.remote())
except ray.exceptions.RayActorError:
    print("removed")


@ray.remote(num_gpus=1)
def gpus():
    return len(ray.get_gpu_ids())


print(ray.get([gpus.remote(), gpus.options(num_cpus=2, num_gpus=2).remote()]))


@ray.remote
def threads():
    return os.environ["OMP_NUM_THREADS"]


print(ray.get([threads.remote(), threads.options(num_cpus=2).remote()]))


@ray.remote(num_cpus=0)
def where():
    return ray.get_runtime_context().get_node_id()


node = ray.nodes()[0]["NodeID"]
print(ray.get(where.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node, soft=False)).remote()) == node)

shared = ray.util.placement_group([{"CPU": 2}], strategy="PACK")  # a function and a module
print(shared.wait(600))


@ray.remote(num_cpus=1)
def on_bundle():
    return ray.util.get_current_placement_group() == shared


print(ray.get(on_bundle.options(scheduling_strategy=PlacementGroupSchedulingStrategy(shared)).remote()))
print(ray.cluster_resources()["GPU"], ray.cluster_resources()["CPU"])
for bad in ([], [{}], [{"CPU": 0}]):
    try:
        placement_group(bad)
    except ValueError:
        print("no bundles")
ray.shutdown()
