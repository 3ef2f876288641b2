# SPDX-License-Identifier: Apache-2.0
"""Weights of a group, in its ranks: what they have of each tensor, and how they send and take blocks of it."""

import math

from . import _errors, _method, _plan
from ._value import DTYPES, Batch, Tensor, on_host, room
from ._value._tensor import module_of


class Sharded:
    """A rank's block of a tensor that a mesh of all ranks of the group splits.

    mesh    {"dp": 2, "tp": 2}: the ranks as a grid, the first dimension varies slowest
    split   {"tp": 0}: that dimension of the mesh splits dimension 0 of the tensor. Ranks along the other dimensions have
            the same
    shape   of the whole tensor; by default, all blocks are as long as this one
    """

    def __init__(self, block, mesh, split, shape=None):
        self.block, self.mesh, self.split = block, dict(mesh), dict(split)
        unknown = set(self.split) - set(self.mesh)
        if unknown:
            raise ValueError(f"split={split!r}: the mesh has no {', '.join(sorted(unknown))}; it has {', '.join(self.mesh)}")
        self.shape = tuple(shape) if shape is not None else self._whole()

    def _whole(self):
        shape = list(self.block.shape)
        for name, dim in self.split.items():
            shape[dim] *= self.mesh[name]
        return tuple(shape)

    def row(self):
        return [self.split.get(name, -1) for name in self.mesh]


def _of_dtensor(value):
    mesh = value.device_mesh
    if mesh.mesh.flatten().tolist() != list(range(_method.world_size())):
        raise TypeError(f"a DTensor on the ranks {mesh.mesh.tolist()} does not move: its mesh must have all ranks of the group, "
                        "in their order")
    names = mesh.mesh_dim_names or [str(i) for i in range(mesh.ndim)]
    split = {}
    for name, placement in zip(names, value.placements):
        if placement.is_partial():
            raise TypeError("a DTensor that is not reduced yet (Partial) cannot be a weight: redistribute() it first")
        if placement.is_shard():
            split[name] = placement.dim
    return Sharded(value.to_local(), dict(zip(names, mesh.shape)), split, value.shape)


def _sharded(value, mesh):
    if isinstance(value, Sharded):
        return value
    data = getattr(value, "data", value) if module_of(value) == "torch" else value
    if type(data).__name__ == "DTensor":
        return _of_dtensor(data)
    return Sharded(value, mesh, {})


def _write(value, piece, first, dtype, memory):
    """Into the weight itself, wherever it lies."""
    cells = _cells(value, piece, first)
    if module_of(value) == "torch":
        import torch

        with torch.no_grad():
            cells.copy_(Tensor(dtype, cells.shape, memory).torch())
    else:  # also dtypes that numpy has from another package
        cells.view(_number(dtype))[...] = memory.view(_number(dtype)).reshape(cells.shape)


def _cells(array, piece, first):
    slices = [slice(a - f, b - f) for a, b, f in zip(piece.first, piece.end, first)]
    return array[(*slices, Ellipsis)]  # also a view where there are no dimensions


class _Version:
    """A transfer that has begun: nobody sees anything of it before it is whole."""

    def __init__(self, said, messages, sends, rank):
        self.said, self.sends, self.rank = said, sends, rank
        self.messages = {pair: m for pair, m in messages.items() if pair[0 if sends else 1] == rank}
        self.first = [_plan.block(said, i, rank)[0] for i in range(len(said["tensors"]))]
        self.taken = {}  # (sender, number) -> the bytes of the message


class Weights:
    """Of a class whose weights move between groups, cadre.transfer(): it has a method weights()."""

    def weights(self):
        """{name: this rank's block}: a tensor of torch or an array of numpy that all ranks have alike, a cadre.Sharded, or
        a DTensor. Those that are taken are written into the same memory.
        """
        raise NotImplementedError(f"{type(self).__name__} has no weights(): it returns a dict of tensors")

    def weights_arrived(self, version):
        """New weights were written. For what follows from them, such as a cache."""

    def _blocks(self, names=None):
        plain = {"rank": _method.world_size()}
        blocks = {name: _sharded(value, plain) for name, value in self.weights().items()}
        meshes = {tuple(b.mesh.items()) for b in blocks.values() if b.split}
        if len(meshes) > 1:
            raise ValueError(f"weights() has tensors of different meshes, {' and '.join(map(str, map(dict, meshes)))}: "
                             "all of a group are split by one")
        mesh = dict(meshes.pop()) if meshes else plain
        if math.prod(mesh.values()) != _method.world_size():
            raise ValueError(f"the mesh {mesh} has {math.prod(mesh.values())} ranks, and the group has "
                             f"{_method.world_size()}")
        for b in blocks.values():
            b.mesh = mesh
        return {name: blocks[name] for name in sorted(blocks) if names is None or name in names}

    def transfer_describe(self):
        """For cadre.transfer(), as the methods below."""
        blocks = self._blocks()
        said = {"mesh": [], "tensors": []}
        for name, b in blocks.items():
            said["mesh"] = list(map(list, b.mesh.items()))
            said["tensors"].append([name, _dtype_of(b.block), list(b.shape), b.row()])
        for i, (name, b) in enumerate(blocks.items()):
            first, end = _plan.block(said, i, _method.rank())
            has, ought = list(b.block.shape), [e - f for f, e in zip(first, end)]
            if has != ought:
                raise ValueError(f"{name}: rank {_method.rank()} has a block {has} of {list(b.shape)}, and by its mesh it "
                                 f"has {ought}")
        return said

    def transfer_begin(self, version, sends, source, target, names):
        """[{receiver: messages}, bytes] of a sender; a text where the two sides do not fit."""
        try:
            messages = _plan.messages(source, target, names)
        except _errors.Invalid as e:
            return str(e)
        t = _Version(source if sends else target, messages, sends, _method.rank())
        self._transfers = {version: t}
        if not sends:
            return None
        return [{str(to): len(ms) for (_, to), ms in t.messages.items()},
                sum(p.bytes for ms in t.messages.values() for m in ms for p in m)]

    def _transfer(self, version):
        found = getattr(self, "_transfers", {}).get(version)
        if found is None:
            raise _errors.Conflict(f"rank {_method.rank()} knows nothing of the transfer {version}: it has started again, or "
                                   "another transfer has begun; start it again")
        return found

    def transfer_send(self, version, to, number):
        t = self._transfer(version)
        blocks = list(self._blocks({name for name, *_ in t.said["tensors"]}).values())
        pieces = t.messages[t.rank, to][number]
        data, at = _bytes(sum(p.bytes for p in pieces)), 0
        for piece in pieces:
            whole = _numbers(blocks[piece.source].block, t, piece.source)
            cells = _cells(whole, piece, t.first[piece.source])
            data[at:at + piece.bytes].view(whole.dtype).reshape(cells.shape)[...] = cells
            at += piece.bytes
        return Batch({"data": data}, meta={"version": version, "from": t.rank, "number": number})

    def transfer_take(self, batch):
        sender, number = batch.meta["from"], batch.meta["number"]
        t = self._transfer(batch.meta["version"])
        t.taken[sender, number] = batch["data"]

    def transfer_check(self, version):
        t = self._transfer(version)
        missing = {(pair[0], i) for pair, ms in t.messages.items() for i in range(len(ms))} - set(t.taken)
        if missing:
            raise _errors.Conflict(f"rank {t.rank} has not got {len(missing)} messages of the transfer {version}")

    def transfer_commit(self, version):
        t = self._transfer(version)
        blocks = self._blocks()
        while t.taken:
            (sender, number), data = t.taken.popitem()
            at = 0
            for piece in t.messages[sender, t.rank][number]:
                name, dtype, *_ = t.said["tensors"][piece.destination]
                _write(blocks[name].block, piece, t.first[piece.destination], dtype, data[at:at + piece.bytes])
                at += piece.bytes
        self._transfers.clear()
        self.weights_version = version
        self.weights_arrived(version)

    def transfer_end(self):
        """Nothing of a transfer is kept."""
        self._transfers = {}


def _bytes(size):
    import numpy

    return numpy.frombuffer(room(size), "u1") if size else numpy.empty(0, "u1")


def _number(dtype):
    """The type of numpy that is as long: values are moved, not looked at."""
    bits = DTYPES[dtype][0]
    if bits not in (8, 16, 32, 64):
        raise TypeError(f"tensors of {dtype} do not move: values of 8, 16, 32 or 64 bits do")
    return f"u{bits // 8}"


def _dtype_of(block):
    dtype = Tensor.of(block[:0] if len(block.shape) else block).dtype
    _number(dtype)
    return dtype


def _numbers(block, transfer, i):
    """The values of this rank's block, of the plan's shape."""
    import numpy

    t = Tensor.of(block)
    return numpy.frombuffer(on_host(t.data), _number(transfer.said["tensors"][i][1])).reshape(t.shape)
