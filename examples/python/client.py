# SPDX-License-Identifier: Apache-2.0
"""A client of a group that others have made: `python3 client.py [ADDRESS] NAME`. Beside examples/client, which is in C.

In a pod, and with a kubeconfig, it finds the proxy itself. A local run prints its address."""

import sys

import cadre

*address, name = sys.argv[1:]
with cadre.connect(*address, namespace="default") as client:
    group = client.find(name)
    print(group.add(10))
    futures = [group.add.on(rank).start(rank) for rank in range(group.world_size)]
    for future in cadre.as_completed(futures, timeout=30):
        print("one more:", future.result() >= 10)
