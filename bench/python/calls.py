#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same programs in Python on Cadre and on Ray, Python at both ends; prints a table of Markdown.

    calls.py SECONDS ROUNDS
"""

import os
import statistics
import sys
import time

import numpy

import cadre

IN_FLIGHT = 1000
RAY = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}  # before Ray is imported


class Echo:
    def echo(self, x):
        return x

    async def later(self, x):
        return x


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


MIB, LONG = numpy.zeros(1 << 20, numpy.uint8), numpy.zeros(64 << 20, numpy.uint8)
LINES = [("one call at a time", lambda p: p.one_at_a_time(1), 1, 8),
         ("1,000 calls in flight", lambda p: p.in_flight("echo", 1), IN_FLIGHT, 15),
         ("1,000 calls of an async method in flight", lambda p: p.in_flight("later", 1), IN_FLIGHT, 10),
         ("all of a group of four, at a time", lambda p: p.all_of_four(1), 1, 10),
         ("1,000 tasks that do nothing", lambda p: p.tasks(), IN_FLIGHT, 8),
         ("an array of 1 MiB, there and back", lambda p: p.one_at_a_time(MIB), 1, 5),
         ("an array of 64 MiB, there and back", lambda p: p.one_at_a_time(LONG), 1, 1)]


def measure(kind, seconds):
    peer = kind()
    try:
        return [rate(seconds, lambda f=f: f(peer), n) for _, f, n, _ in LINES]
    finally:
        peer.end()


def main():
    seconds, rounds = float(sys.argv[1]), int(sys.argv[2])
    found = {kind: [] for kind in (Cadre, Ray)}
    for _ in range(rounds):
        for kind, rates in found.items():  # in turn, so that a busy moment of the machine meets both
            rates.append(measure(kind, seconds))
    print("| a second | Cadre | Ray | ratio | target |\n|---|---:|---:|---:|---:|")
    for i, (name, _, _, target) in enumerate(LINES):
        ours, rays = (statistics.median(r[i] for r in found[kind]) for kind in (Cadre, Ray))
        print(f"| {name} | {ours:,.0f} | {rays:,.0f} | {ours / rays:.1f}x | {target}x |", flush=True)


if __name__ == "__main__":
    main()
