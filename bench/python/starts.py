#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four workers whose class imports torch: the seconds until all have answered, the first time and again, as JSON. Again means
group.restart() on Cadre, and new actors on Ray, which does not start a group again.

    starts.py cadre|preload|ray TIMES
"""

import json
import statistics
import sys
import time

import cadre

RANKS = 4


class Uses:
    def __init__(self):
        import torch

        self.value = torch.zeros(1)

    def ready(self):
        return True


def seconds(f):
    begin = time.perf_counter()
    f()
    return time.perf_counter() - begin


def on_cadre(preload, times):
    """The run is there already, as a cluster is."""
    with cadre.local(cpus=8, on_output=lambda line: None) as client:
        groups = []

        def make():
            groups.append(client.Group(Uses, replicas=RANKS, preload=preload))
            groups[0].ready()

        def restart():
            groups[0].restart()
            groups[0].ready()

        return seconds(make), statistics.median(seconds(restart) for _ in range(times))


def on_ray(times):
    import ray

    ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False)
    actor, actors = ray.remote(num_cpus=0)(Uses), []

    def make():
        for a in actors:
            ray.kill(a)
        actors[:] = [actor.remote() for _ in range(RANKS)]
        ray.get([a.ready.remote() for a in actors])

    found = seconds(make), statistics.median(seconds(make) for _ in range(times))
    ray.shutdown()
    return found


def main():
    kind, times = sys.argv[1], int(sys.argv[2])
    print("seconds:", json.dumps(on_ray(times) if kind == "ray" else on_cadre(["torch"] if kind == "preload" else None, times)))


if __name__ == "__main__":
    main()
