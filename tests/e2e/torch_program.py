# SPDX-License-Identifier: Apache-2.0
"""Groups with torch on one pool: a number on each of four ranks (examples/python/gpu_accumulator.py). The ranks are in pods;
this program is outside of the cluster: torch_program.py TEMPLATE.

Then two groups on the halves of the pool train at the same time, each its own model of examples/python/networks.py, first
with DDP, then with FSDP2. This program trains each model alone, too."""

import json
import os
import sys

import torch

import cadre

EXAMPLES = os.path.join(os.path.dirname(__file__), "../../examples/python")
sys.path.insert(0, EXAMPLES)
from networks import MODELS, loss_of

BATCHES = {"Attention": torch.randn(4, 128, 1024), "MLP": torch.randn(4, 512)}


def alone(model, batch):
    """(loss, gradient of the first parameter) of one process with the whole batch."""
    torch.manual_seed(42)
    network = MODELS[model]()
    loss = loss_of(network, batch)
    loss.backward()
    return loss.detach(), next(network.parameters()).grad


def close(a, b):
    return torch.allclose(a, b, rtol=1e-3, atol=1e-3 * b.abs().max().item())


def add(group):
    """S0-7 to S0-9, with four ranks."""
    print("S0-8", torch.cat(group.add.options(timeout=600).each([1, 3, 5, 7])).tolist())
    print("S0-9", torch.cat(group.add(10)).tolist())
    group.close()


def train(groups, wanted):
    """S2-3 to S2-9."""
    print("S2-3", len({tuple(group.master_port.options(timeout=600)()) for group in groups.values()}))
    steps = {model: group.train_step.start(BATCHES[model].chunk(2)) for model, group in groups.items()}
    for model, group in groups.items():
        losses, (loss, grad) = steps[model].result(), wanted[model]
        print("S2-8", model, len(losses), close(sum(losses) / 2, loss))
        (name, first), (_, second) = group.sample_grads()
        print("S2-9", name, torch.equal(first, second), close(first, grad))
        group.close()


with open(sys.argv[1], encoding="utf-8") as f:
    template = json.load(f)
with cadre.connect(namespace="ship", unreachable=600, on_output=lambda line: None) as client:
    pool = client.Pool([4], name="multi-group", template=template)
    options = {"gpus": 0, "preload": "torch", "working_dir": EXAMPLES}  # gpus=0: these GPUs are not real
    add(client.Group("gpu_accumulator:GPUAccumulator", pool=pool, **options))
    wanted = {model: alone(model, BATCHES[model]) for model in MODELS}
    for way in "ddp", "fsdp2":
        train({model: client.Group("networks:Network", pool=half, init={"model": model, "shard": way == "fsdp2"},
                                   name=f"{way}-{model.lower()}", **options)
               for model, half in zip(MODELS, pool.split(2))}, wanted)
