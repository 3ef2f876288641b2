# SPDX-License-Identifier: Apache-2.0
"""Do the ranks find each other? `kubectl cadre run --processes 4 -- python3 rendezvous.py`, with torch. A program of its own,
as torchrun starts it: it needs nothing of Cadre. Beside examples/rendezvous, which is in C."""

import os
import socket

import torch.distributed as dist

dist.init_process_group("gloo")
here = [None] * dist.get_world_size()
dist.all_gather_object(here, f"rank {dist.get_rank()} on {socket.gethostname()}, local rank {os.environ['LOCAL_RANK']}")
if dist.get_rank() == 0:
    print(f"roll-call: {len(here)} ranks", *here, sep="\n", flush=True)
dist.barrier()
dist.destroy_process_group()
