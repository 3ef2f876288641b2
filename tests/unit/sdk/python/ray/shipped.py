# SPDX-License-Identifier: Apache-2.0
"""A program with a folder of its own: its workers run on this machine, or in the pods of a cluster, without a change."""

import os
import sys

import ray

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shipped")
sys.path.insert(0, folder)
import shapes

ray.init(runtime_env={"working_dir": folder, "env_vars": {"COLOR": "green"}})


@ray.remote
def area(side):
    return shapes.Square(side).area()


print(ray.get([area.remote(i) for i in (1, 2, 3)]))
try:
    ray.get(area.remote(-1))
except shapes.TooSmall as e:
    print("too small:", e.side)


@ray.remote
class Child:
    def work(self):
        return f"{os.environ['COLOR']} work"


@ray.remote
class Counter:
    def __init__(self, start):
        self.value = start
        self.child = None

    def add(self, x):
        self.value += x
        return self.value

    def has(self, square):
        return square.area()

    def found(self, name):
        return ray.get(ray.get_actor(name).add.remote(0))

    def nested(self):
        self.child = Child.remote()
        return ray.get(self.child.work.remote())


first, second = Counter.options(name="first").remote(10), Counter.remote(20)
print(ray.get([first.add.remote(1), first.add.remote(1), second.add.remote(1)]))
print(ray.get(second.has.remote(ray.put(shapes.Square(4)))))
print(ray.get(second.found.remote("first")))
print(ray.get(second.nested.remote()))
ready, rest = ray.wait([first.add.remote(1), second.add.remote(1)], num_returns=2)
print(len(ready), len(rest))
group = ray.util.placement_group([{"CPU": 1}], strategy="PACK")
ray.get(group.ready())
strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(placement_group=group)
print(ray.get(Counter.options(num_cpus=1, scheduling_strategy=strategy).remote(1).add.remote(1)))
ray.kill(first)
try:
    while True:  # it ends a moment after kill has returned
        ray.get(first.add.remote(1))
except ray.exceptions.RayActorError:
    print("killed")
ray.shutdown()
