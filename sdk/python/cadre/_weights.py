# SPDX-License-Identifier: Apache-2.0
"""The weights of a group in its ranks: the block of each tensor that a rank has."""

import ctypes
import math

from . import _method, _moves
from ._value import DTYPES, OnGpu, Tensor, in_place, on_host, room, stream
from ._value._tensor import module_of


class Sharded:
    """A rank's block of a tensor that a mesh of all ranks of the group splits.

    mesh    {"dp": 2, "tp": 2}: the ranks as a grid, the first dimension varies slowest
    split   {"tp": 0}: that dimension of the mesh splits dimension 0 of the tensor, and {"tp": -1} the last one. Ranks along
            the other dimensions have the same
    shape   of the whole tensor; by default, all blocks are as long as this one
    """

    def __init__(self, block, mesh, split, shape=None):
        self.block, self.mesh, self.split = block, dict(mesh), dict(split)
        unknown = set(self.split) - set(self.mesh)
        if unknown:
            raise ValueError(f"split={split!r}: the mesh has no {', '.join(sorted(unknown))}; it has {', '.join(self.mesh)}")
        n_dims = len(block.shape if shape is None else shape)
        self.split = {name: self._number(name, dim, n_dims) for name, dim in self.split.items()}
        self.shape = tuple(shape) if shape is not None else self._whole()

    @staticmethod
    def _number(name, dim, n_dims):
        """A negative dimension counts from the end."""
        if not -n_dims <= dim < n_dims:
            raise ValueError(f"split={{{name!r}: {dim}}}: the tensor has {n_dims} dimensions")
        return dim % n_dims

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
        if placement.is_replicate():
            continue
        if type(placement).__name__ != "Shard":  # such as _StridedShard, whose blocks lie in another order
            raise TypeError(f"a DTensor with the placement {placement!r} does not move, only Shard and Replicate do: "
                            "give what redistribute() returns; fully_shard() places it so if tensor parallelism splits "
                            "the same dimension")
        split[name] = placement.dim
    return Sharded(value.to_local(), dict(zip(names, mesh.shape)), split, value.shape)


def _sharded(value, mesh):
    if isinstance(value, Sharded):
        return value
    data = getattr(value, "data", value) if module_of(value) == "torch" else value
    if type(data).__name__ == "DTensor":
        return _of_dtensor(data)
    return Sharded(value, mesh, {})


class _Block:
    """Where a block of this rank is: in its own memory, or in a copy that is written back if the rank receives."""

    def __init__(self, value, sends):
        self.value, self.owner, self.copy, self.on_device = value, value, None, False
        found = in_place(value)
        if found:
            self.dtype, self.size, self.address = found
        else:
            self._find(Tensor.of(value), sends)
        _check_dtype(self.dtype)

    def _find(self, tensor, sends):
        self.dtype, self.size = tensor.dtype, tensor.data.nbytes
        self.on_device = type(tensor.data) is OnGpu and _is_in_a_row(self.value)
        if self.on_device:
            self.address = tensor.data.address
        elif sends:
            self.owner, self.address = _readable(tensor)
        else:
            self.copy = room(max(self.size, 1))
            self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.copy))

    def write_back(self):
        if self.copy is None or not self.size:
            return
        data = memoryview(self.copy)[:self.size]
        if module_of(self.value) == "torch":
            import torch

            with torch.no_grad():
                self.value.copy_(Tensor(self.dtype, tuple(self.value.shape), data).torch())
        else:  # also for dtypes that numpy has from another package
            import numpy

            self.value[...] = numpy.frombuffer(data, self.value.dtype).reshape(self.value.shape)


def _is_in_a_row(value):
    return module_of(value) != "torch" or value.is_contiguous()


def _readable(tensor):
    """Returns (owner, address) of a copy, or of the memory of the tensor."""
    data = on_host(tensor.data)
    if data.readonly or not data.nbytes:
        data = memoryview(bytearray(data) or bytearray(1))
    return data, ctypes.addressof(ctypes.c_char.from_buffer(data))


class Weights:
    """For a class whose weights move between groups with cadre.transfer(). It must have a method weights()."""

    def weights(self):
        """Returns {name: this rank's block}. A block is a tensor of torch or an array of numpy that all ranks have
        alike, a cadre.Sharded, or a DTensor. Received blocks are written into the same memory.
        """
        raise NotImplementedError(f"{type(self).__name__} has no weights(): it returns a dict of tensors")

    def weights_arrived(self, version):
        """Called after new weights were written, for work that depends on them, such as clearing a cache."""

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

    def move_weights(self, **step):
        """For cadre.transfer(), which calls this on all ranks of both groups."""
        if not hasattr(self, "_cadre_moves"):
            self._cadre_moves = _moves.Handle()
        handle = self._cadre_moves
        call = _method.call.get().handle
        if step.get("step") != "move":
            handle.begin(call)
            return _method.ANSWERED
        names = step.get("names")
        given = self._blocks(None if names is None else set(names))
        mesh = next((list(b.mesh.values()) for b in given.values()), ())
        blocks = {name: _Block(b.block, step.get("sends")) for name, b in given.items()}
        said = [(name, b.dtype, tuple(given[name].shape), given[name].row(), b.address, b.size, b.on_device)
                for name, b in blocks.items()]
        version = handle.move(call, mesh, said, stream())
        if version is not None:
            for b in blocks.values():
                b.write_back()
            self.weights_version = version
            self.weights_arrived(version)
        return _method.ANSWERED


def _check_dtype(dtype):
    if DTYPES[dtype][0] % 8:
        raise TypeError(f"tensors of {dtype} do not move: their values have no whole bytes")
