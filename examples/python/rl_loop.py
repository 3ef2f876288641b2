# SPDX-License-Identifier: Apache-2.0
"""A whole loop of reinforcement learning: `python3 rl_loop.py` in this folder runs all of its groups on this machine.
`python3 rl_loop.py --cluster` drives the groups of rl_loop.yaml."""

import sys

import torch

import cadre
from rl_roles import rows


def make(client):
    """The groups of a laptop: the four roles share a pool of two bundles."""
    pool = client.Pool([2], gpus=0, cpus=1, name="rl")
    ranks = {"actor": 2, "rollout": 2, "reward": 1, "critic": 1}
    return [client.Group(f"rl_roles:{name.title()}", name=name, pool=pool, replicas=n) for name, n in ranks.items()]


def train(client, actor, rollout, reward, critic, steps=40):
    torch.manual_seed(1)
    for step in range(1, steps + 1):
        batch = rollout.generate(rows(prompt=torch.randint(10, (128,))))
        batch.update(reward.score(batch))
        batch["advantage"] = batch["reward"] - critic.values(batch)["value"]
        client.get([actor.update.start(batch), critic.update.start(batch)])  # both at the same time
        cadre.transfer(actor, rollout)
        if step == 1 or step % 10 == 0:
            print(f"step {step}: {batch['reward'].mean().item():.0%} of the answers are right", flush=True)


if "--cluster" in sys.argv:
    with cadre.connect() as client:
        train(client, *map(client.group, ("actor", "rollout", "reward", "critic")))
else:
    with cadre.local(cpus=4) as client:
        train(client, *make(client))
