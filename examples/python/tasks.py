# SPDX-License-Identifier: Apache-2.0
"""Ten tasks, four at a time, and tasks on GPUs: `python3 tasks.py` in this folder."""

import cadre
from squares import gpus, square

with cadre.local(cpus=4, gpus=3) as client:
    futures = [square.start(x) for x in range(10)]
    ready, rest = cadre.wait(futures, num_returns=10)
    print(client.get(ready), rest)
    print(square(client.put(7)))  # waits
    print(gpus(), gpus.options(gpus=2)())
