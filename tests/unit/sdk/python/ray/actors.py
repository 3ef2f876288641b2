# SPDX-License-Identifier: Apache-2.0
"""Names, handles as arguments, asynchronous and threaded actors, errors, references in references."""

import asyncio
import os
import threading
import time

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError, TaskCancelledError

ray.init(num_cpus=4, namespace="lab")


@ray.remote
class Store:
    def __init__(self, first=None):
        self.items = [first]

    def add(self, item):
        self.items.append(item)
        return len(self.items)

    def all(self):
        return self.items


store = Store.options(name="store").remote("a")
print(ray.get(ray.get_actor("store").all.remote()))
try:
    Store.options(name="store").remote()
except ValueError as e:
    print("taken" in str(e))
same = Store.options(name="store", get_if_exists=True).remote()
print(ray.get(same.add.remote(("b", 2))), ray.get(store.all.remote()))
try:
    ray.get_actor("nobody")
except ValueError as e:
    print("nobody" in str(e))


@ray.remote
class Writer:
    def __init__(self, to):
        self.to = to

    def write(self, item):
        return ray.get(self.to.add.remote(item))

    def late(self, refs):
        return sum(ray.get(refs["list"])) + ray.get(refs["one"])

    def give(self):
        return [self.to.add.remote("given")]


@ray.remote
def slow(x, seconds=0.2):
    time.sleep(seconds)
    return x


writer = Writer.remote(store)
print(ray.get(writer.write.remote(slow.remote("late"))))
print(ray.get(writer.late.remote({"list": [slow.remote(1), slow.remote(2)], "one": ray.put(4)})))
print(ray.get(ray.get(writer.give.remote())[0]))
print(ray.get(store.all.remote()))

# Calls keep their order, also behind an argument that is late.
store.add.remote(slow.remote("first"))
print(ray.get(store.add.remote("second")), ray.get(store.all.remote())[-2:])


@ray.remote
class Waiter:
    def __init__(self):
        self.event = asyncio.Event()

    async def wait(self):
        await self.event.wait()
        return "woken"

    async def wake(self):
        self.event.set()


waiter = Waiter.remote()
waits = [waiter.wait.remote() for _ in range(100)]
print(ray.wait(waits, timeout=0.3)[0])
try:
    ray.get(waits[0], timeout=0.1)
except GetTimeoutError:
    print("not yet")
ray.get(waiter.wake.remote())
print(set(ray.get(waits)))


@ray.remote(max_concurrency=4)
class Meeting:
    def __init__(self):
        self.barrier = threading.Barrier(4)

    def meet(self):
        self.barrier.wait()
        return True


meeting = Meeting.remote()
print(ray.get([meeting.meet.remote() for _ in range(4)]))


@ray.remote
class Fails:
    def __init__(self, how):
        if how == "at once":
            raise RuntimeError("no way to begin")

    def method(self):
        return {}["missing"]

    def leave(self):
        os._exit(3)

    @ray.method(num_returns=2)
    def two(self):
        return 1, 2


fails = Fails.remote("later")
try:
    ray.get(fails.method.remote())
except KeyError as e:
    print(isinstance(e, RayTaskError), "missing" in str(e))
print(ray.get(fails.two.remote()))
try:
    ray.get(slow.remote(fails.method.remote()))
except KeyError:
    print("the error of an argument")
try:
    ray.get(fails.leave.remote())
except RayActorError:
    print("died")
try:
    ray.get(Fails.remote("at once").method.remote())
except RayActorError as e:
    print("no way to begin" in str(e))
try:
    fails.nothing
except AttributeError as e:
    print("nothing" in str(e))


@ray.remote(max_restarts=1)
class Comes:
    def __init__(self, start):
        self.value = start

    def add(self):
        self.value += 1
        return self.value

    def crash(self):
        os._exit(1)


comes = Comes.remote(5)
print(ray.get([comes.add.remote(), comes.add.remote()]))
comes.crash.remote()
while True:
    try:
        print(ray.get(comes.add.remote()))
        break
    except RayActorError:
        time.sleep(0.05)

canceled = slow.remote(1, 60)
time.sleep(1)
ray.cancel(canceled)
try:
    ray.get(canceled)
except TaskCancelledError:
    print("cancelled")


@ray.remote
def environment():
    return os.environ.get("COLOR")


print(ray.get(environment.options(runtime_env={"env_vars": {"COLOR": "blue"}}).remote()), ray.get(environment.remote()))


@ray.remote(num_returns=3)
def three(x):
    return x, x + 1, x + 2


print(ray.get(three.remote(5)))


@ray.remote
def fib(n):
    return n if n < 2 else sum(ray.get([fib.remote(n - 1), fib.remote(n - 2)]))


print(ray.get(fib.remote(4)))


async def main():
    return await slow.remote(1), await asyncio.gather(store.add.remote(1), store.add.remote(2))


print(asyncio.run(main())[0])
ray.shutdown()
