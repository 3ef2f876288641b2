# SPDX-License-Identifier: Apache-2.0
"""A program for torchrun, without Cadre's package. FOLDER: each rank writes its process there when it is about to wait for the
others. Without a file named "come" they wait for what never comes.
"""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

folder, rank = sys.argv[1], os.environ["RANK"]
dist.init_process_group("gloo", timeout=datetime.timedelta(hours=1))
comes = os.path.exists(f"{folder}/come")
with open(f"{folder}/.{rank}", "w", encoding="utf-8") as f:
    f.write(str(os.getpid()))
os.rename(f"{folder}/.{rank}", f"{folder}/{rank}")
if not comes and rank == "1":
    time.sleep(3600)
if not comes:
    dist.recv(torch.ones(1), src=2 - int(rank))  # whose connection the end of rank 1 does not end
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()  # else a thread of torch may abort the process at its end
