# SPDX-License-Identifier: Apache-2.0
"""Groups whose weights move: each has tensors that a mesh splits in its own way, numbered element by element."""

import os

import numpy
import offspring

import cadre

SHAPES = {"w": ((8, 6), "float32"), "odd": ((5, 3), "int64"), "bias": ((4,), "float16"), "scale": ((), "float64")}


def whole(name):
    shape, dtype = SHAPES[name]
    return numpy.arange(1, 1 + numpy.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def part(array, dim, i, n):
    """As torch.chunk() splits it."""
    step = -(-array.shape[dim] // n)
    return numpy.take(array, range(min(i * step, array.shape[dim]), min((i + 1) * step, array.shape[dim])), dim)


class Holder(cadre.Weights):
    """mesh {"dp": 2, "tp": 2} and split {"w": {"tp": 0}} say who has what; `empty` ones have zeros. `strange`: blocks do
    not lie in a row. fault: [rank, file]: that rank dies when the file says so (worker/transfer/transfer_fault.h).
    """

    def __init__(self, mesh=None, split=None, names=None, empty=False, strange=False, fault=None):
        self.mesh, self.split = mesh or {"rank": cadre.world_size()}, split or {}
        if fault and fault[0] == cadre.rank():
            os.environ["CADRE_TRANSFER_FAULT"] = fault[1]
        self.arrived, self.told_in = [], None
        at, rest = {}, cadre.rank()
        for dim, size in reversed(list(self.mesh.items())):
            rest, at[dim] = divmod(rest, size)
        self.blocks = {}
        for name in names or SHAPES:
            block = whole(name)
            for dim in self.mesh:
                if dim in self.split.get(name, {}):
                    block = part(block, self.split[name][dim], at[dim], self.mesh[dim])
            block = numpy.zeros_like(block) if empty else numpy.array(block)
            self.blocks[name] = numpy.repeat(block, 2, -1)[..., ::2] if strange and block.ndim else block

    def weights(self):
        return {name: cadre.Sharded(block, self.mesh, self.split[name], SHAPES[name][0]) if name in self.split else block
                for name, block in self.blocks.items()}

    def weights_arrived(self, version):
        self.arrived.append(version)
        if self.told_in:
            with open(f"{self.told_in}/arrived-{cadre.rank()}", "w", encoding="utf-8") as f:
                f.write(str(all(found is True for found in self.is_whole().values())))

    def tell_arrival(self, folder):
        """From now on, a file there says of each rank that weights have come, and whether they are whole."""
        self.told_in = folder

    def is_whole(self, names=None):
        """Returns for each tensor: True if all of it came, False if nothing did, else the block itself."""
        found = {}
        full = Holder(self.mesh, self.split, list(self.blocks))
        for name in names or self.blocks:
            block, want = self.blocks[name], full.blocks[name]
            found[name] = True if (block == want).all() else False if not block.any() else block.tolist()
        return found

    def times(self):
        return len(self.arrived)

    def pid(self):
        return os.getpid()

    def sockets_of_child(self):
        return offspring.sockets_of_child()


class Differing(Holder):
    def weights(self):
        return {"w": whole("w")[:, :cadre.rank() + 1]}


class Other(Holder):
    def weights(self):
        return {"w": numpy.zeros((8, 7), "float32"), "bias": numpy.zeros(4, "float32"), "more": numpy.zeros(1)}


class Many(Holder):
    def weights(self):
        return {f"layers.{i}": numpy.zeros(1, "float32") for i in range(200)}


class Short(Holder):
    def weights(self):
        return {"w": cadre.Sharded(whole("w")[:, :3][:6], {"tp": 2}, {"tp": 1}, (8, 6))}


class Unchecked(cadre.Sharded):
    def row(self):
        return list(self.split_as)


class Wild(cadre.Weights):
    """Has a split or a mesh that cannot be, and says so only to the library."""

    def __init__(self, split=0, tp=None):
        self.split, self.tp = split, tp

    def weights(self):
        block = Unchecked(whole("w"), {"tp": cadre.world_size()}, {"tp": 0}, (8, 6))
        block.split_as = [self.split]
        return {"w": block}

    def _blocks(self, names=None):
        blocks = super()._blocks(names)
        if self.tp is not None:
            blocks["w"].mesh = {"tp": self.tp}
        return blocks


class Mirror(cadre.Weights):
    """The weights of examples/weights, split by columns."""

    def __init__(self):
        self.matrix = numpy.zeros((256, 1024 // cadre.world_size()), "float32")
        self.vector = numpy.zeros(10, "float32")

    def weights(self):
        return {"matrix": cadre.Sharded(self.matrix, {"tp": cadre.world_size()}, {"tp": 1}), "vector": self.vector}

    def add(self, x):
        self.matrix += x
        self.vector += x

    def total(self):
        return float(self.matrix.sum() + self.vector.sum())

    def version(self):
        return self.weights_version
