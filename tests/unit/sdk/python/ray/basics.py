# SPDX-License-Identifier: Apache-2.0
"""Tasks, actors and the object store, as an introduction to Ray shows them."""

import os
import tempfile
import time

import ray

ray.init(num_cpus=4)
print(ray.is_initialized())


@ray.remote
def example_task(x, go):
    while not os.path.exists(go):
        time.sleep(0.01)
    return x * x


with tempfile.TemporaryDirectory() as folder:
    go = os.path.join(folder, "go")
    futures = [example_task.remote(i, go) for i in range(10)]
    print(ray.wait(futures, timeout=0)[0])
    open(go, "w").close()
    print(ray.get(futures))


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


parent = ParentActor.remote()
print(ray.get(parent.create_child.remote()))
print(ray.get(parent.get_work.remote()))


@ray.remote
class Accumulator:
    def __init__(self):
        self.value = 0

    def add(self, x):
        self.value += x

    def get_value(self):
        return self.value


accumulator = Accumulator.remote()
print(ray.get(accumulator.get_value.remote()))
accumulator.add.remote(10)
print(ray.get(accumulator.get_value.remote()))


@ray.remote
def add(x, y):
    return x + y


print(ray.get([add.remote(1, 2)]))
print(ray.get(add.remote(add.remote(1, 2), ray.put(4))))


@ray.remote
class Counter:
    def __init__(self, start=0):
        self.value = start

    def increment(self):
        self.value += 1
        return self.value

    def get_value(self):
        return self.value


counter = Counter.remote()
print(ray.get([counter.increment.remote(), counter.increment.remote()]), ray.get(counter.get_value.remote()))
print(ray.get(Counter.options(num_cpus=1, name="from-ten").remote(start=10).increment.remote()))

value = {"weights": [1.5, 2.5], "step": (3, None), 7: b"bytes"}
print(ray.get(ray.put(value)) == value)


@ray.remote
def extended(items, by):
    items.append(by)
    return items


@ray.remote
def inner(box):
    return ray.get(box["ref"])


kept = ray.put([1, 2, 3])
print(ray.get([extended.remote(kept, 4), extended.remote(kept, by=5)]), ray.get(kept))
print(ray.get(inner.remote(ray.put({"ref": ray.put(6)}))))


@ray.remote(max_retries=3)
def fails(x):
    raise ValueError(f"no {x}")


try:
    ray.get(fails.remote("luck"))
except ray.exceptions.RayTaskError as e:
    print(isinstance(e, ValueError), "no luck" in str(e))


@ray.remote(max_retries=3, retry_exceptions=True)
def fails_each_time(tries):
    ray.get(tries.increment.remote())
    raise ValueError("no luck")


tries = Counter.remote()
try:
    ray.get(fails_each_time.remote(tries))
except ValueError:
    print(ray.get(tries.get_value.remote()), "tries")


@ray.remote(num_cpus=1)
def costs():
    return "cheap"


print(ray.get([costs.remote(), costs.options(num_cpus=2).remote()]))

refs = [add.remote(i, i) for i in range(5)]
ready, remaining = ray.wait(refs, num_returns=len(refs))
print(len(ready), remaining, ray.get(ready))

ray.kill(counter)
try:
    while True:  # it ends a moment after kill has returned
        ray.get(counter.increment.remote())
except ray.exceptions.RayActorError as e:
    print("the actor is dead", isinstance(e, ray.exceptions.ActorDiedError))

ray.shutdown()
print(ray.is_initialized())
