#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same programs in Python on Cadre and on Ray, Python at both ends, and calls of a worker in C as the upper bound; then
what a second start of a program with a working_dir takes, and the memory of a rank. Prints tables of Markdown.

    calls.py SECONDS ROUNDS
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import cadre
import plain

IN_FLIGHT = 1000
RAY = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}  # before Ray is imported
MIB = 1 << 20


class Echo:
    def echo(self, x):
        return x

    async def later(self, x):
        return x

    def pid(self):
        return os.getpid()


def nothing():
    pass


def rate(seconds, f, n=1):
    """How many a second; f() does n of them."""
    f()
    done, begin = 0, time.perf_counter()
    while time.perf_counter() < begin + seconds:
        f()
        done += n
    return done / (time.perf_counter() - begin)


class Cadre:
    def __init__(self):
        self.client = cadre.local(cpus=8)
        self.one, self.four = self.client.Group(Echo, name="one"), self.client.Group(Echo, name="four", replicas=4)
        self.task = cadre.task(nothing, workers=os.cpu_count()).using(self.client)

    def one_at_a_time(self, x):
        self.one.call("echo", x, rank=0)

    def all_of_four(self, x):
        self.four.call("echo", x)

    def in_flight(self, method, x):
        for future in [self.one.start(method, x, rank=0) for _ in range(IN_FLIGHT)]:
            future.result()

    def tasks(self):
        self.client.get([self.task.start() for _ in range(IN_FLIGHT)])

    def end(self):
        self.client.close()


class Bound(Cadre):
    """The same client and proxy, and a worker in C, which copies nothing but bytes."""

    def __init__(self):
        self.client = cadre.local(cpus=8)
        self.one = self.client.Group(module=os.environ["ECHO_SO"], class_name="Echo", name="one")
        self.four = self.client.Group(module=os.environ["ECHO_SO"], class_name="Echo", name="four", replicas=4)

    def one_at_a_time(self, x):
        self.one.call("echo", cadre.Batch({"x": x}) if isinstance(x, numpy.ndarray) else x, rank=0)


class Ray:
    def __init__(self):
        os.environ.update(RAY)
        import ray

        self.ray = ray
        ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False)
        actor = ray.remote(num_cpus=0)(Echo)
        self.one, self.four = actor.remote(), [actor.remote() for _ in range(4)]
        self.task = ray.remote(nothing)

    def one_at_a_time(self, x):
        self.ray.get(self.one.echo.remote(x))

    def all_of_four(self, x):
        self.ray.get([a.echo.remote(x) for a in self.four])

    def in_flight(self, method, x):
        f = getattr(self.one, method)
        self.ray.get([f.remote(x) for _ in range(IN_FLIGHT)])

    def tasks(self):
        self.ray.get([self.task.remote() for _ in range(IN_FLIGHT)])

    def end(self):
        self.ray.shutdown()


SHORT, LONG = numpy.zeros(MIB, numpy.uint8), numpy.zeros(64 * MIB, numpy.uint8)
# Name, function, calls at a time, the target in Ray's rate, and whether C has it, too (beside_c.py has C's targets).
LINES = [("one call at a time", lambda p: p.one_at_a_time(1), 1, 8, True),
         ("1,000 calls in flight", lambda p: p.in_flight("echo", 1), IN_FLIGHT, 15, True),
         ("1,000 calls of an async method in flight", lambda p: p.in_flight("later", 1), IN_FLIGHT, 10, False),
         ("calls to all four ranks, one at a time", lambda p: p.all_of_four(1), 1, 10, True),
         ("1,000 tasks that do nothing", lambda p: p.tasks(), IN_FLIGHT, 8, False),
         ("an array of 1 MiB, there and back", lambda p: p.one_at_a_time(SHORT), 1, 5, True),
         ("an array of 64 MiB, there and back", lambda p: p.one_at_a_time(LONG), 1, 1, True)]


def measure(kind, seconds):
    peer = kind()
    try:
        return [None if kind is Bound and not in_c else rate(seconds, lambda f=f: f(peer), n) for _, f, n, _, in_c in LINES]
    finally:
        peer.end()


def compare(seconds, rounds):
    found = {kind: [] for kind in (Cadre, Bound, Ray)}
    for _ in range(rounds):
        for kind, rates in found.items():  # in turn, so that a busy moment of the machine meets all
            rates.append(measure(kind, seconds))
    print("| per second | Cadre | Ray | ratio | target | a worker in C |\n|---|---:|---:|---:|---:|---:|")
    for i, (name, _, _, target, in_c) in enumerate(LINES):
        ours, rays = (statistics.median(r[i] for r in found[kind]) for kind in (Cadre, Ray))
        c = f"{statistics.median(r[i] for r in found[Bound]):,.0f} " if in_c else ""
        print(f"| {name} | {ours:,.0f} | {rays:,.0f} | {ours / rays:.1f}x | {target}x | {c}|", flush=True)


# Cases that do not repeat within a second

FILES, FOLDER_BYTES = 400, 14_375_000  # 13.71 MiB


def fill(folder):
    for i in range(FILES):
        with open(f"{folder}/module_{i}.py", "wb") as f:
            f.write(os.urandom(FOLDER_BYTES // FILES))
    shutil.copy(plain.__file__, folder)


def starts(rounds):
    """Seconds until client.Group() returns: without a working_dir; with one that was sent before, whose files this program
    has not read yet; and with one that it has.
    """
    def start(**more):
        begin = time.perf_counter()
        group = client.Group("plain:Plain", **more)
        taken = time.perf_counter() - begin
        group.close()
        return taken

    with tempfile.TemporaryDirectory() as folder, cadre.local(cpus=8) as client:
        fill(folder)
        start(working_dir=folder)
        found = [], [], []
        for _ in range(rounds):
            found[0].append(start())
            os.utime(f"{folder}/plain.py")
            found[1].append(start(working_dir=folder))
        time.sleep(3)  # files that have changed just now are read again
        start(working_dir=folder)
        found[2].extend(start(working_dir=folder) for _ in range(rounds))
    return map(statistics.median, found)


def resident(pid):
    """KiB of its own, and its part of what it shares."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def memory():
    """KiB of a bare interpreter, and of a rank that has been called."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bare, cadre.local() as client:
        rank = client.Group("plain:Plain").pid.on(0)()
        found = resident(bare.pid), resident(rank)
        bare.communicate(b"\n")
    return found


def main():
    seconds, rounds = float(sys.argv[1]), int(sys.argv[2])
    compare(seconds, rounds)
    without, anew, again = starts(10 * rounds)
    bare, rank = memory()
    print("\n| | | target |\n|---|---:|---:|")
    print(f"| client.Group() with a working_dir of 13.7 MiB that was sent before | {anew * 1000:.0f} ms | 50 ms |")
    print(f"| ... again in the same program | {again * 1000:.0f} ms | 50 ms |")
    print(f"| ... without one | {without * 1000:.1f} ms | |")
    print(f"| memory of a rank without torch, above a bare python3 ({bare / 1024:.1f} MiB) | {(rank - bare) / 1024:.1f} MiB | "
          "8 MiB |")


if __name__ == "__main__":
    main()
