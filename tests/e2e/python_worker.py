# SPDX-License-Identifier: Apache-2.0
"""The steps of test_roles.sh that call workers in Python from a program outside of the cluster; each prints one line."""

import sys
import traceback

import cadre


def values(group):
    print(group.call("add", 10), group.call("add", per_rank=[1, 2]), group.call("get_value_rank_zero"))


def in_flight(group):
    futures = [group.start("add", 1) for _ in range(500)]
    print(futures[-1].result(60))


def fails(group):
    try:
        group.call("add", "ten", rank=1)
    except TypeError as e:
        print(type(e).__name__, e.rank, e.pod, e.node, "accumulator.py" in "".join(traceback.format_exception(e)))


def pickled(group):
    try:
        group.call("add", {1, 2})
    except cadre.Error as e:
        print(type(e).__name__, e)


def killed(group):
    group.kill(rank=1)
    print(group.call("add", 1, timeout=60))


with cadre.connect(unreachable=20) as client:
    globals()[sys.argv[1]](client.find("python"))
