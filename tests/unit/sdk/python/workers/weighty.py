# SPDX-License-Identifier: Apache-2.0
"""Groups whose weights move: each has tensors that a mesh splits in its own way, numbered element by element."""

import os

import numpy

import cadre

SHAPES = {"w": ((8, 6), "float32"), "odd": ((5, 3), "int64"), "bias": ((4,), "float16"), "scale": ((), "float64")}


def whole(name):
    shape, dtype = SHAPES[name]
    return numpy.arange(1, 1 + numpy.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def part(array, dim, i, n):
    """As torch.chunk() cuts it."""
    step = -(-array.shape[dim] // n)
    return numpy.take(array, range(min(i * step, array.shape[dim]), min((i + 1) * step, array.shape[dim])), dim)


class Holder(cadre.Weights):
    """mesh {"dp": 2, "tp": 2} and split {"w": {"tp": 0}} say who has what; `empty` ones have zeros."""

    def __init__(self, mesh=None, split=None, names=None, empty=False, dies=None):
        self.mesh, self.split, self.dies = mesh or {"rank": cadre.world_size()}, split or {}, dies
        self.arrived = []
        at, rest = {}, cadre.rank()
        for dim, size in reversed(list(self.mesh.items())):
            rest, at[dim] = divmod(rest, size)
        self.blocks = {}
        for name in names or SHAPES:
            block = whole(name)
            for dim in self.mesh:
                if dim in self.split.get(name, {}):
                    block = part(block, self.split[name][dim], at[dim], self.mesh[dim])
            self.blocks[name] = numpy.zeros_like(block) if empty else numpy.array(block)

    def weights(self):
        return {name: cadre.Sharded(block, self.mesh, self.split[name], SHAPES[name][0]) if name in self.split else block
                for name, block in self.blocks.items()}

    def weights_arrived(self, version):
        self.arrived.append(version)

    def transfer_send(self, version, to, number):
        if self.dies == cadre.rank():
            os._exit(7)
        return super().transfer_send(version, to, number)

    def is_whole(self, names=None):
        """Of each tensor: True where all of it came, False where nothing did; else the block itself."""
        found = {}
        full = Holder(self.mesh, self.split, list(self.blocks))
        for name in names or self.blocks:
            block, want = self.blocks[name], full.blocks[name]
            found[name] = True if (block == want).all() else False if not block.any() else block.tolist()
        return found

    def times(self):
        return len(self.arrived)


class Differing(Holder):
    def weights(self):
        return {"w": whole("w")[:, :cadre.rank() + 1]}


class Other(Holder):
    def weights(self):
        return {"w": numpy.zeros((8, 7), "float32"), "bias": numpy.zeros(4, "float32"), "more": numpy.zeros(1)}
