# SPDX-License-Identifier: Apache-2.0
"""Functions that are tasks; tasks.py calls them."""

import os

import cadre


@cadre.task(max_retries=3)
def square(x):
    return x * x


@cadre.task(gpus=1)
def gpus():
    return os.environ["CUDA_VISIBLE_DEVICES"]
