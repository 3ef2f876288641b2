# SPDX-License-Identifier: Apache-2.0
"""Ranks that torch.distributed joins: they wait for one another."""

import datetime
import os

import torch
import torch.distributed as dist

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

    def wait_for_nothing(self, mark):
        """In the store of rank 0, whose connection another rank's death does not end."""
        open(mark, "w", encoding="utf-8").close()
        dist.distributed_c10d._get_default_store().wait(["nothing"], HOUR)

    def pid(self):
        return os.getpid()
