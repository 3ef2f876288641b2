#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same calls by Ray, for bench-calls, which asks on standard input: each line is "RANKS BYTES IN_FLIGHT SECONDS", the
answer is calls a second. Ray runs on this machine alone (address="local"), with this program as its driver.
"""

import sys
import time

import numpy
import ray


@ray.remote(num_cpus=0)
class Echo:
    def echo(self, data):
        return data


def rate(actors, data, in_flight, seconds):
    """Calls a second; a call to several actors is one, done when all have answered."""
    ray.get([a.echo.remote(data) for a in actors])
    done, begin = 0, time.perf_counter()
    end = begin + seconds
    while time.perf_counter() < end:
        ray.get([a.echo.remote(data) for _ in range(in_flight) for a in actors])
        done += in_flight
    return done / (time.perf_counter() - begin)


def main():
    ray.init(address="local", include_dashboard=False, logging_level="error", log_to_driver=False)
    actors = [Echo.remote() for _ in range(4)]
    ray.get([a.echo.remote(b"") for a in actors])
    print("ray", ray.__version__, flush=True)
    for line in sys.stdin:
        ranks, size, in_flight, seconds = line.split()
        # An array, which Ray passes through shared memory without a copy for each reader; bytes it would copy.
        data = numpy.full(int(size), ord("x"), numpy.uint8) if int(size) > 1000 else b"x" * int(size)
        print(rate(actors[: int(ranks)], data, int(in_flight), float(seconds)), flush=True)


main()
