# SPDX-License-Identifier: Apache-2.0
"""The steps of test_roles.sh that call workers in Python from a program outside of the cluster; each prints one line."""

import os
import subprocess
import sys
import tempfile
import time
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


def again(group, pods):
    """Its answer once none of these pods has part in it."""
    while True:
        try:
            said = group.call("work", timeout=120)
            if not {w["pod"] for w in group.info()["workers"]} & pods:
                return said
        except cadre.Unavailable:
            pass
        time.sleep(0.2)


def shipped():
    with tempfile.TemporaryDirectory() as folder, cadre.connect(unreachable=20, namespace="ship") as client:
        with open(f"{folder}/train.py", "w", encoding="utf-8") as f:
            f.write("import data\nclass Trainer:\n    def work(self):\n        return data.NAME\n")
        with open(f"{folder}/data.py", "w", encoding="utf-8") as f:
            f.write("NAME = 'shipped'\n")
        with open(f"{folder}/large.bin", "wb") as f:
            f.write(os.urandom(20 << 20))
        group = client.Group("train:Trainer", replicas=2, image="localhost/cadre-python:dev", working_dir=folder)
        first = group.call("work", timeout=120)
        pods = {w["pod"] for w in group.info()["workers"]}
        subprocess.run(["kubectl", "-n", "ship", "delete", "pod", "--wait=false", *pods], check=True, stdout=subprocess.DEVNULL)
        print(first, again(group, pods), len(pods) == 2)


if sys.argv[1] == "shipped":
    shipped()
else:
    with cadre.connect(unreachable=20) as its_client:
        globals()[sys.argv[1]](its_client.find("python"))
