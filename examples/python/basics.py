# SPDX-License-Identifier: Apache-2.0
"""One worker, then a worker for each GPU of a pool: `python3 basics.py` in this folder."""

import cadre

with cadre.local(gpus=2) as client:
    one = client.Group("accumulator:Accumulator")
    before = one.get_value.on(0).start()  # does not wait
    one.add.start(10)  # nobody waits for it; calls of one program run in the order that it sent them
    print(before.result(), one.get_value.on(0)())

    pool = client.Pool([2])  # two GPUs of one node
    group = client.Group("accumulator:Accumulator", pool=pool)
    print(group.world_size, group.local_ranks)
    print(group.add.each([1, 3]))  # an argument for each rank
    second = client.Group("accumulator:Accumulator", pool=pool)  # shares the GPUs
    print(second.add(10))  # one argument for all
    print(group.get_value(), second.get_value_rank_zero())
