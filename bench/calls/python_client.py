#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same calls by the Python package, for bench-calls, which asks as it asks ray_peer.py: each line on standard input
is "RANKS BYTES IN_FLIGHT SECONDS", the answer is calls a second. The argument is the address of the proxy.
"""

import platform
import sys
import time

import cadre


def rate(group, data, in_flight, seconds):
    """Calls a second; as Ray's: so many are started, then all results are taken."""
    group.call("echo", data)
    done, begin = 0, time.perf_counter()
    end = begin + seconds
    while time.perf_counter() < end:
        if in_flight == 1:
            group.call("echo", data)
        else:
            for future in [group.start("echo", data) for _ in range(in_flight)]:
                future.result()
        done += in_flight
    return done / (time.perf_counter() - begin)


def main():
    print(f"cadre {cadre.__version__} (Python {platform.python_version()})", flush=True)
    for line in sys.stdin:
        ranks, size, in_flight, seconds = line.split()
        with cadre.connect(sys.argv[1], namespace="bench", token="bench") as client:
            group = client.group({"1": "one", "4": "four"}[ranks])
            print(rate(group, "x" * int(size), int(in_flight), float(seconds)), flush=True)


main()
