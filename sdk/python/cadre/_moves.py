# SPDX-License-Identifier: Apache-2.0
"""The weights of this rank for libcadre.so: the structs and functions of cadre/transfer.h."""

import ctypes
import functools
from ctypes import POINTER, Structure, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p

from . import _library

OK = 0


class Weight(Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_char_p), ("n_dims", c_size_t), ("shape", POINTER(c_uint64)),
                ("split", POINTER(c_int)), ("data", c_void_p), ("len", c_size_t), ("on_device", c_int)]


class WeightList(Structure):
    _fields_ = [("size", c_size_t), ("mesh", POINTER(c_uint32)), ("n_mesh", c_size_t), ("weights", POINTER(Weight)),
                ("n", c_size_t), ("stream", c_void_p)]


# Each struct's name in the header, for the test that compares the layouts.
STRUCTS = {"cadre_weight": Weight, "cadre_weight_list": WeightList}

FUNCTIONS = {
    "weights_new": (c_void_p, []),
    "weights_free": (None, [c_void_p]),
    "weights_move": (c_int, [c_void_p, c_size_t, POINTER(WeightList)]),
    "weights_arrived": (c_int, [c_void_p]),
    "weights_version": (c_char_p, [c_void_p]),
    "host_answered": (None, [c_size_t, c_int]),
}


@functools.cache
def _function(name):
    result, arguments = FUNCTIONS[name]
    try:
        f = getattr(_library.library, "cadre_" + name)
    except AttributeError:
        raise ImportError(f"{_library.functions.path} has no cadre_{name}(): weights move in workers, with libcadre.so of "
                          "this version") from None
    f.restype, f.argtypes = result, arguments
    return f


class Handle:
    """The state that an object keeps from one transfer to the next."""

    def __init__(self):
        self._free = _function("weights_free")
        self._handle = _function("weights_new")()
        self._told, self._list = None, None  # mesh and blocks of the last transfer: they are mostly the same again

    def __del__(self):
        if getattr(self, "_handle", None):
            self._free(self._handle)

    def move(self, call, mesh, blocks, stream=0):
        """Does what the call asks for, and answers it. blocks: (name, dtype, shape, split, address, size, on_device)
        of each tensor. stream: a stream of CUDA; its work comes first. Returns the version of the weights that
        have arrived, or None.
        """
        if (mesh, blocks) != self._told:
            self._told, self._list = (mesh, blocks), self._list_of(mesh, blocks)
        self._list.stream = stream
        result = _function("weights_move")(self._handle, call, ctypes.byref(self._list))
        _function("host_answered")(call, result)
        arrived = result == OK and _function("weights_arrived")(self._handle)
        return _function("weights_version")(self._handle).decode() if arrived else None

    def begin(self, call):
        """Does the same for a step in which nothing moves."""
        _function("host_answered")(call, _function("weights_move")(self._handle, call, None))

    def _list_of(self, mesh, blocks):
        return WeightList(ctypes.sizeof(WeightList), _array(c_uint32, mesh), len(mesh),
                          _array(Weight, [self._weight(*b) for b in blocks]), len(blocks))

    @staticmethod
    def _weight(name, dtype, shape, split, address, size, on_device):
        return Weight(name.encode(), dtype.encode(), len(shape), _array(c_uint64, shape), _array(c_int, split), address, size,
                      on_device)


def _array(kind, items):
    return (kind * max(len(items), 1))(*items)
