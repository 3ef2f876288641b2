# SPDX-License-Identifier: Apache-2.0
"""Results that never come to the program: the critic fetches them from the actor's ranks, and only its own result is
fetched. Beside examples/references, which is in C: `python3 references.py` in this folder, with numpy."""

import numpy

import cadre
from tensor import Actor, Critic

with cadre.local() as client:
    actor, critic = client.Group(Actor, replicas=2), client.Group(Critic, replicas=2)
    kept = actor.add.options(keep=True)(cadre.Batch({"a": numpy.zeros(10)}))  # a reference: the rows stay where they are
    print(critic.sub(kept)["a"].tolist())
    with actor.put(cadre.Batch({"a": numpy.ones(4)}), dispatch="DP_COMPUTE_PROTO") as stored:  # a part on each rank, until here
        print(critic.sub(stored)["a"].tolist())
