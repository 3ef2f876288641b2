# SPDX-License-Identifier: Apache-2.0
"""Where ranks are, by themselves and by their group, on PlacementGroups of two kinds: `python3 whereabouts.py` here.
Beside examples/whereabouts, which is in C."""

import os
import socket

import cadre


class Whereabouts:
    def get_actor_info(self):
        host = socket.gethostname()
        return {"ip_address": socket.gethostbyname(host), "host": host, "gpus": os.environ.get("CUDA_VISIBLE_DEVICES")}


if __name__ == "__main__":
    with cadre.local(gpus=5, nodes=4) as client:
        packed, spread = client.Pool([4], strategy="StrictPack"), client.Pool([4], strategy="StrictSpread")
        for pool in (packed, spread):
            pool.wait_ready()
            group = client.Group("whereabouts:Whereabouts", pool=pool, name=f"on-{len(set(pool.nodes))}")
            print([f"{group.name}:{local}" for local in group.local_ranks], "on", len(set(group.nodes)), "nodes")
        print([info["gpus"] is None for info in group.get_actor_info()])  # each rank tells of itself
        print(group.info()["workers"][3]["node"] == group.nodes[3])  # and the group of all
