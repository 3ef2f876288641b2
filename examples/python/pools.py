# SPDX-License-Identifier: Apache-2.0
"""Two pools, groups that share GPUs, and one group on both pools: `python3 pools.py` in this folder."""

import cadre

with cadre.local(gpus=4, nodes=2) as client:
    a, b = client.Pool([4], name="a"), client.Pool([4], name="b")
    print(a.local_ranks, a.local_world_sizes)
    group = client.Group("accumulator:Accumulator", pool=a)
    print(group.add.each([1, 1, 1, 1]))
    second = client.Group("accumulator:Accumulator", pool=a)  # on the same GPUs, with a state of its own
    print(second.add.each([2, 2, 2, 2]))

    both = a + b
    print(both.local_ranks)
    large = client.Group("accumulator:Accumulator", pool=both)
    print(large.add.each([3] * 8))
    print(client.Group("accumulator:Accumulator", pool=both).add(x=10))
    half, _ = both.split(2)
    print(client.Group("accumulator:Accumulator", pool=half).add(10))
