# SPDX-License-Identifier: Apache-2.0
"""Two groups on the bundles of one pool, each with a model of its own, train at the same time, first with DDP, then with
FSDP2: `python3 two_groups.py` in this folder. With GPUs, leave gpus= and cpus= out: each bundle has one."""

import torch

import cadre

with cadre.local(cpus=4) as client:
    pool = client.Pool([4], gpus=0, cpus=1, name="two-groups")
    pool.wait_ready()
    first, second = pool.split(2)
    for way in ("ddp", "fsdp2"):
        shard = way == "fsdp2"
        a = client.Group("networks:Network", pool=first, init={"model": "Attention", "shard": shard}, name=f"{way}-a")
        b = client.Group("networks:Network", pool=second, init={"model": "MLP", "shard": shard}, name=f"{way}-b")
        print("different ports:", a.master_port()[0] != b.master_port()[0])

        steps = [a.train_step.start(torch.randn(4, 128, 1024).chunk(2)), b.train_step.start(torch.randn(4, 512).chunk(2))]
        print("losses:", [len(losses) for losses in client.get(steps)])
        for group in (a, b):
            (name, grad), (_, other) = group.sample_grads()
            print(f"{group.name}: gradients of {name} agree:", torch.allclose(grad, other))
            group.close()
