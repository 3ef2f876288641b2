# SPDX-License-Identifier: Apache-2.0
"""Arguments and results of calls: references among the arguments are replaced by their values."""

import functools

from . import _packing, _refs
from ._refs import ObjectRef


class ArgumentFailed(Exception):
    """A reference among the arguments stands for an exception."""

    def __init__(self, error):
        super().__init__(error)
        self.error = error


def is_ours(value):
    """Whether it is a reference whose value this process gets anyway."""
    return isinstance(value, ObjectRef) and not isinstance(value._promise, _refs._Elsewhere)


def packed_arguments(args, kwargs):
    args = [value_of(a) for a in args]
    if kwargs:
        return _packing.Packed(((args, {k: value_of(a) for k, a in kwargs.items()}),))
    packed = _packing.pack(args)
    return packed if type(packed) is list else _packing.Packed(((args, {}),))


def value_of(a):
    if not is_ours(a):
        return a
    if isinstance(a._promise, _refs._Stored):
        return a._promise.argument()
    value, error = a._promise.outcome()
    if error is not None:
        raise ArgumentFailed(error)
    return value


def opened(result):
    """Returns (value, error) from the result of a worker."""
    if type(result) is _packing.Raised:
        return None, result.error()
    return _packing.unpack(result)[0], None


def refs_of(promise, number, n, name, cancel):
    """Returns the references that .remote() returns."""
    if n == 0:
        return None
    if n == 1:
        made = [ObjectRef(promise)]
    else:
        made = [ObjectRef(_refs._Part(promise, i, n, name)) for i in range(n)]
    for ref in made:
        ref._cancel = functools.partial(cancel, number)
    return made[0] if n == 1 else made
