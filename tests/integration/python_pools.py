# SPDX-License-Identifier: Apache-2.0
"""The steps of test_python_pools.sh. Each step is its own program. No rank starts, because the nodes are fake."""

import sys

import cadre

WAIT_S = 600


def pool(client):
    a, b = client.Pool([4]), client.Pool([2])
    both = a + b
    nodes = both.wait_ready(WAIT_S)
    print("world", both.world_size, "local", both.local_ranks, "nodes", len(set(nodes)), "same", len(set(nodes[:4])) == 1,
          len(set(nodes[4:])) == 1)


def group(client):
    made = client.Pool([4, 2], name="mine")
    made.wait_ready(WAIT_S)
    info = client.Group("train:Trainer", pool=made).info()
    print(f"on {'+'.join('{name}[{bundles}]'.format(**r) for r in made._refs())}: {info['connected']} of "
          f"{info['worldSize']}")


def taken(client):
    client.Pool([1], name="taken")
    with cadre.connect() as other:
        try:
            other.Pool([1], name="taken")
        except cadre.Error as e:
            print(type(e).__name__)


def detached(client):
    client.Pool([2], name="kept", detached=True)
    client.Group("train:Trainer", pool=client.find_pool("kept"), name="stays", detached=True)
    print("found", client.find("stays").world_size)


def restart(client):
    client.find("stays").restart()


def remove(client):
    client.find("stays").close()
    client.find_pool("kept").close()


with cadre.connect(unreachable=600) as connected:
    globals()[sys.argv[1]](connected)
