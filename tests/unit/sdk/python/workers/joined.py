# SPDX-License-Identifier: Apache-2.0
"""Ranks that torch.distributed joins: they wait for one another."""

import datetime
import os
import threading

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

    def receive(self, mark, source):
        """From a rank that sends nothing."""
        open(mark, "w", encoding="utf-8").close()
        dist.recv(torch.ones(1), src=source)

    def is_watching(self):
        """All ranks have met, and learn of each other's death."""
        return any(thread.name == "peers, met" for thread in threading.enumerate())

    def pid(self):
        return os.getpid()
