#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long arrays there and back, of a worker in Python and of one in C in turn, call by call, so that other work on the machine
meets both. Prints the times of the faster calls: a quarter of all is faster than the number says.

    arrays.py SECONDS ROUNDS
"""

import statistics
import sys
import time

from calls import LONG, SHORT, Bound, Cadre


def times(peers, x, seconds):
    """Of each peer, in microseconds."""
    found, end = [[] for _ in peers], time.perf_counter() + seconds
    while time.perf_counter() < end:
        for peer, taken in zip(peers, found):
            begin = time.perf_counter()
            peer.one_at_a_time(x)
            taken.append((time.perf_counter() - begin) * 1e6)
    return [statistics.quantiles(taken, n=4)[0] for taken in found]


def main():
    seconds, rounds = float(sys.argv[1]), int(sys.argv[2])
    peers = Cadre(), Bound()
    print("| microseconds for an array, there and back | in Python | in C | of that rate | target |\n|---|---:|---:|---:|---:|")
    for name, x in (("1 MiB", SHORT), ("64 MiB", LONG)):
        for peer in peers:
            peer.one_at_a_time(x)
        found = [times(peers, x, 2 * seconds) for _ in range(rounds)]
        python, c = (statistics.median(f[i] for f in found) for i in range(2))
        print(f"| {name} | {python:,.0f} | {c:,.0f} | {c / python:.2f} | 0.8 |", flush=True)
    for peer in peers:
        peer.end()


if __name__ == "__main__":
    main()
