# SPDX-License-Identifier: Apache-2.0
"""The plan of a transfer of weights, by libcadre.so: the structs and functions of cadre/transfer.h."""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import NamedTuple

from . import _errors, _library

DIMS_MAX = 8
PIECE_MAX = 32 << 20  # bytes of a message between two ranks


class CTensor(Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_char_p), ("n_dims", c_size_t), ("shape", POINTER(c_uint64)),
                ("split", POINTER(c_int))]


class CSide(Structure):
    _fields_ = [("name", c_char_p), ("n_dims", c_size_t), ("mesh", POINTER(c_uint32)), ("n", c_size_t),
                ("tensors", POINTER(CTensor))]


class CPiece(Structure):
    _fields_ = [("sender", c_uint32), ("receiver", c_uint32), ("source", c_uint32), ("destination", c_uint32),
                ("first", c_uint64 * DIMS_MAX), ("end", c_uint64 * DIMS_MAX), ("bytes", c_uint64)]


# Each struct's name in the header, for the test that compares the layouts.
STRUCTS = {"cadre_transfer_tensor": CTensor, "cadre_transfer_side": CSide, "cadre_transfer_piece": CPiece}

FUNCTIONS = {
    "plan": (c_void_p, [POINTER(CSide), POINTER(CSide), c_uint64]),
    "problem": (c_char_p, [c_void_p, c_size_t]),
    "pieces": (POINTER(CPiece), [c_void_p, POINTER(c_size_t)]),
    "block": (None, [POINTER(CSide), c_size_t, c_uint32, POINTER(c_uint64), POINTER(c_uint64)]),
    "free": (None, [c_void_p]),
}


class Piece(NamedTuple):
    source: int       # the tensor's number on each side
    destination: int
    first: tuple      # elements of the whole tensor
    end: tuple
    bytes: int


def _function(name):
    result, arguments = FUNCTIONS[name]
    try:
        f = getattr(_library.library, "cadre_transfer_" + name)
    except AttributeError:
        raise ImportError(f"{_library.functions.path} has no cadre_transfer_{name}(): a transfer needs libcadre.so of this "
                          "version, beside the package cadre, or where CADRE_CLIENT_LIBRARY says") from None
    f.restype, f.argtypes = result, arguments
    return f


def _side(name, said):
    """said: as Weights.transfer_describe() returns it."""
    tensors = (CTensor * len(said["tensors"]))()
    mesh = said["mesh"]
    for to, (tensor, dtype, shape, split) in zip(tensors, said["tensors"]):
        to.name, to.dtype, to.n_dims = tensor.encode(), dtype.encode(), len(shape)
        to.shape, to.split = (c_uint64 * max(len(shape), 1))(*shape), (c_int * max(len(mesh), 1))(*split)
    return CSide(name.encode(), len(mesh), (c_uint32 * max(len(mesh), 1))(*(n for _, n in mesh)), len(tensors), tensors)


def block(said, tensor, rank):
    """(first, end) of each dimension: what a rank has of a tensor."""
    first, end = (c_uint64 * DIMS_MAX)(), (c_uint64 * DIMS_MAX)()
    _function("block")(ctypes.byref(_side("", said)), tensor, rank, first, end)
    n = len(said["tensors"][tensor][2])
    return tuple(first[:n]), tuple(end[:n])


def messages(source, target, names):
    """What goes from rank to rank: {(rank, rank): [[Piece, ...] of each message]}. The same arguments give the same in
    every process. Raises Invalid with all that does not fit. names: of both sides, for that.
    """
    said = [_side(name, s) for name, s in zip(names, (source, target))]
    plan = _function("plan")(ctypes.byref(said[0]), ctypes.byref(said[1]), PIECE_MAX)
    try:
        problems = []
        while problem := _function("problem")(plan, len(problems)):
            problems.append(problem.decode())
        if problems:
            raise _errors.Invalid(f"the weights of {names[0]} do not fit {names[1]}: " + "; ".join(problems))
        n = c_size_t()
        pieces = _function("pieces")(plan, ctypes.byref(n))
        return _grouped(pieces[:n.value], source)
    finally:
        _function("free")(plan)


def _grouped(pieces, source):
    found, room = {}, {}
    for p in pieces:
        pair = p.sender, p.receiver
        if p.bytes > room.get(pair, 0):
            found.setdefault(pair, []).append([])
            room[pair] = PIECE_MAX
        room[pair] -= min(p.bytes, room[pair])
        n = len(source["tensors"][p.source][2])
        found[pair][-1].append(Piece(p.source, p.destination, tuple(p.first[:n]), tuple(p.end[:n]), p.bytes))
    return found
