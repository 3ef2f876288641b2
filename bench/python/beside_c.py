#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of a worker in Python and of one in C in turn, a few calls at a time, so that other work on the machine meets both.
Prints the times of the faster turns: a quarter of all is faster than the number says.

    beside_c.py SECONDS ROUNDS
"""

import statistics
import sys
import time

from calls import LONG, SHORT, Bound, Cadre

# Name, argument, calls in a turn, the target in C's rate.
LINES = [("one call at a time", 1, 100, 0.6), ("an array of 1 MiB, there and back", SHORT, 1, 0.8),
         ("an array of 64 MiB, there and back", LONG, 1, 0.8)]


def turn(peer, x, calls):
    """Microseconds for a call."""
    begin = time.perf_counter()
    for _ in range(calls):
        peer.one_at_a_time(x)
    return (time.perf_counter() - begin) * 1e6 / calls


def times(peers, x, calls, seconds):
    """Returns the time of a call for each peer, in microseconds."""
    found, end = [[] for _ in peers], time.perf_counter() + seconds
    while time.perf_counter() < end:
        for peer, taken in zip(peers, found):
            taken.append(turn(peer, x, calls))
    return [statistics.quantiles(taken, n=4)[0] for taken in found]


def main():
    seconds, rounds = float(sys.argv[1]), int(sys.argv[2])
    peers = Cadre(), Bound()
    print("| microseconds for a call | in Python | in C | of that rate | target |\n|---|---:|---:|---:|---:|")
    for name, x, calls, target in LINES:
        for peer in peers:
            turn(peer, x, calls)
        found = [times(peers, x, calls, 2 * seconds) for _ in range(rounds)]
        python, c = (statistics.median(f[i] for f in found) for i in range(2))
        print(f"| {name} | {python:,.0f} | {c:,.0f} | {c / python:.2f} | {target} |", flush=True)
    for peer in peers:
        peer.end()


if __name__ == "__main__":
    main()
