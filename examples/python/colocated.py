# SPDX-License-Identifier: Apache-2.0
"""An actor and a critic in the same processes, each with methods and a state of its own: `python3 colocated.py` in this
folder, with numpy. Beside examples/roles.yaml, which has them in C."""

import numpy

import cadre
from tensor import Actor, Critic

with cadre.local(gpus=2) as client:
    both = client.Group({"actor": Actor, "critic": Critic}, init={"critic": {"b": 10}}, pool=client.Pool([2]))
    data = cadre.Batch({"a": numpy.zeros(10)})
    print(both["actor"].add(data)["a"].tolist())
    print(both["critic"].sub(data)["a"].tolist())  # of the same rows: they have not changed
