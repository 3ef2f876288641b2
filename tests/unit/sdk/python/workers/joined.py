# SPDX-License-Identifier: Apache-2.0
"""Ranks that torch.distributed joins: they wait for one another."""

import ctypes
import datetime
import os
import threading

import torch
import torch.distributed as dist

import cadre

HOUR = datetime.timedelta(hours=1)


class Joined:
    def __init__(self):
        dist.init_process_group("gloo", timeout=HOUR)

    def sum(self, mark=None):
        """mark: a file that says that it has begun"""
        if mark:
            open(mark, "w", encoding="utf-8").close()
        x = torch.ones(1)
        dist.all_reduce(x)
        return x.item()

    def hold_the_lock(self, seconds):
        """In C, with Python's lock."""
        ctypes.PyDLL(None).sleep(seconds)

    def wait_for_nothing(self, mark):
        """In the store of rank 0, whose connection another rank's death does not end."""
        open(mark, "w", encoding="utf-8").close()
        dist.distributed_c10d._get_default_store().wait(["nothing"], HOUR)

    def receive(self, source, mark):
        """From a rank that sends nothing."""
        open(mark, "w", encoding="utf-8").close()
        dist.recv(torch.ones(1), src=source)

    def is_watching(self):
        """All ranks have met, and learn of each other's death."""
        return any(thread.name == "peers, met" for thread in threading.enumerate())

    def pid(self):
        return os.getpid()


class Some(Joined):
    """Torch's group has ranks 3 and 1, in this order; the other ranks have none."""

    def __init__(self):
        ranks = [3, 1]
        if cadre.rank() in ranks:
            dist.init_process_group("gloo", timeout=HOUR, rank=ranks.index(cadre.rank()), world_size=len(ranks),
                                    init_method=f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")


class Paired(Joined):
    """Each rank has a group of its own with rank 1, beside the one of all."""

    def __init__(self):
        super().__init__()
        own = dist.get_rank()
        pairs = {rank: dist.new_group([rank, 1]) for rank in range(dist.get_world_size()) if rank != 1}
        self.pair = pairs.get(own)

    def collect(self, name, mark):
        """Waits for rank 1."""
        x, all_of_them, own, pair = torch.ones(2), [torch.ones(1), torch.ones(1)], dist.get_rank(), self.pair
        open(mark, "w", encoding="utf-8").close()
        {
            "all_reduce": lambda: dist.all_reduce(x, group=pair),
            "reduce": lambda: dist.reduce(x, dst=own, group=pair),
            "broadcast": lambda: dist.broadcast(x, src=1, group=pair),
            "all_gather": lambda: dist.all_gather(all_of_them, x[:1], group=pair),
            "gather": lambda: dist.gather(x[:1], all_of_them, dst=own, group=pair),
            "scatter": lambda: dist.scatter(x[:1], src=1, group=pair),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(x[:1], torch.ones(2), group=pair),
            "all_to_all": lambda: dist.all_to_all_single(torch.ones(2), x, group=pair),
            "send": lambda: [dist.send(torch.ones(1 << 22), dst=1, group=pair) for _ in range(100)],  # more than a socket takes
            "recv": lambda: dist.recv(x, src=1, group=pair),
            "barrier": lambda: dist.barrier(group=pair),
        }[name]()
