#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of verl, in Ray's words: a DataProto through four ranks and back, and the steps of PPO without their compute: what
moves between actor, rollout, reward and critic, and the calls that move it. Prints the seconds that each took, as JSON.

    python verl_program.py SECONDS                  on Ray
    python -m cadre.ray verl_program.py SECONDS     on Cadre
"""

import json
import sys
import time

import numpy
import ray
import torch
from verl import DataProto
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, register
from verl.single_controller.ray.base import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup, create_colocated_worker_cls

ROWS = register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
PROMPTS, TOKENS = 128, 512  # of a prompt, and of its answer
WEIGHTS = 4 << 20  # numbers of the tiny model


def answer_of(data, **tensors):
    return DataProto.from_dict(tensors, meta_info=data.meta_info)


class Echo(Worker):
    @ROWS
    def echo(self, data):
        return data


class Rollout(Worker):
    def __init__(self):
        super().__init__()
        self.weights = {"tiny": torch.zeros(WEIGHTS)}

    @ROWS
    def generate_sequences(self, data):
        n, long = len(data), torch.zeros(len(data), 2 * TOKENS, dtype=torch.int64)
        return answer_of(data, responses=torch.ones(n, TOKENS, dtype=torch.int64), input_ids=long, attention_mask=long,
                         position_ids=long, rollout_log_probs=torch.zeros(n, TOKENS))

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def load(self, weights):
        self.weights["tiny"].copy_(weights["tiny"])


class Reward(Worker):
    @ROWS
    def compute_rm_score(self, data):
        return answer_of(data, rm_scores=torch.ones(len(data), TOKENS))


class Critic(Worker):
    @ROWS
    def compute_values(self, data):
        return answer_of(data, values=torch.zeros(len(data), TOKENS))

    @ROWS
    def update_critic(self, data):
        return DataProto(meta_info={"metrics": {"loss": [0.0]}})


class Actor(Worker):
    def __init__(self):
        super().__init__()
        self.state = {"tiny": torch.ones(WEIGHTS)}

    @ROWS
    def compute_log_prob(self, data):
        return answer_of(data, old_log_probs=torch.zeros(len(data), TOKENS))

    @ROWS
    def update_actor(self, data):
        return DataProto(meta_info={"metrics": {"loss": [0.0]}})

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def weights(self):
        return self.state if self.rank == 0 else None


def roles():
    """All in the same four processes, as in verl's trainers."""
    classes = {cls.__name__.lower(): RayClassWithInitArgs(cls=ray.remote(cls)) for cls in (Echo, Rollout, Reward, Critic, Actor)}
    pool = RayResourcePool([4], use_gpu=False, max_colocate_count=1)
    workers = RayWorkerGroup(pool, create_colocated_worker_cls(classes), use_gpu=False)
    return workers.spawn(prefix_set=classes.keys())


def prompts():
    ids = torch.zeros(PROMPTS, TOKENS, dtype=torch.int64)
    return DataProto.from_dict({"prompts": ids, "prompt_mask": ids},
                               non_tensors={"uid": numpy.array([f"prompt {i}" for i in range(PROMPTS)], dtype=object)},
                               meta_info={"temperature": 1.0})


def step(rollout, reward, critic, actor):
    """As a trainer of verl takes it."""
    batch = prompts()
    batch = batch.union(rollout.generate_sequences(batch))
    for more in (reward.compute_rm_score, actor.compute_log_prob, critic.compute_values):
        batch = batch.union(more(batch))
    batch.batch["advantages"] = batch.batch["rm_scores"] - batch.batch["values"]
    batch.batch["returns"] = batch.batch["rm_scores"]
    critic.update_critic(batch)
    actor.update_actor(batch)
    rollout.load(ray.put(actor.weights()[0]))


def mean(seconds, f):
    """The seconds of a call of f()."""
    f()
    n, begin = 0, time.perf_counter()
    while time.perf_counter() < begin + seconds:
        f()
        n += 1
    return (time.perf_counter() - begin) / n


def main():
    seconds = float(sys.argv[1])
    ray.init(num_cpus=32)
    groups = roles()
    echo = groups.pop("echo")
    data = DataProto.from_dict({name: torch.zeros(1024, 2048, dtype=torch.int64) for name in ("a", "b", "c", "d")})
    print("seconds:", json.dumps([mean(seconds, lambda: echo.echo(data)), mean(seconds, lambda: step(**groups))]))
    ray.shutdown()


if __name__ == "__main__":
    main()
