# SPDX-License-Identifier: Apache-2.0
"""Functions that are tasks."""

import os

import cadre


@cadre.task
def square(x):
    return x * x


@cadre.task(gpus=1)
def seen():
    return os.environ.get("CUDA_VISIBLE_DEVICES")


@cadre.task(max_retries=3, retry_on=Exception)
def fails(file):
    with open(file, "a", encoding="utf-8") as f:
        f.write(".")
    raise KeyError("never")


@cadre.task(max_retries=3)
def dies_once(file):
    if not os.path.exists(file):
        with open(file, "w", encoding="utf-8") as f:
            f.write(str(os.getpid()))
        os.abort()
    return "alive"


@cadre.task
def add(x, y=0, *, z=0):
    return x + y + z


@cadre.task
def meets(folder, name, others):
    """Returns once all of them run."""
    with open(f"{folder}/{name}", "w", encoding="utf-8"):
        pass
    while not all(os.path.exists(f"{folder}/{other}") for other in others):
        if cadre.canceled():
            raise RuntimeError("the others do not run")
    return name
