# SPDX-License-Identifier: Apache-2.0
"""The accumulator with its number on the rank's GPU, or on the CPU where there is none: `python3 gpu_accumulator.py` in this
folder, with torch. Beside examples/gpu_accumulator, which is in CUDA."""

import torch

import cadre


class GPUAccumulator:
    def __init__(self):
        self.value = torch.zeros(1, device=cadre.device()) + cadre.rank()

    def add(self, x):
        self.value += x
        print(f"rank {cadre.rank()}, value: {self.value.item()}")
        return self.value


if __name__ == "__main__":
    with cadre.local(gpus=torch.cuda.device_count(), cpus=2) as client:
        pool = client.Pool([2], gpus=min(torch.cuda.device_count() // 2, 1), cpus=1)
        print(client.Group("gpu_accumulator:GPUAccumulator", pool=pool).add.each([1, 3]))
        print(client.Group("gpu_accumulator:GPUAccumulator", pool=pool).add(10))
