# SPDX-License-Identifier: Apache-2.0
"""Arguments and results between processes. Plain values travel as JSON. All others travel as one pickled object, so
each arrives with its type: a tuple as a tuple.
"""

import traceback
from math import isfinite

from .. import _value
from .._code import cloudpickle
from .._value import _pickle
from .exceptions import RayTaskError

_SHORT = 16  # items that are all checked
_BIG = 1 << 63


class Packed(tuple):
    """(value,), which travels as a pickle."""

    __slots__ = ()


class Raised:
    """The exception of a method, as the result of the call."""

    def __init__(self, error, name):
        lines = traceback.format_exception(type(error), error, _beyond_ours(error.__traceback__))
        self.name = name
        self.text = f"{name}() raised\n{''.join(lines).rstrip()}"
        self.kind = type(error).__name__
        self.cause = _pickled(error)

    def error(self):
        """Returns the exception for the client."""
        cause = None
        if self.cause is not None:
            try:
                cause = cloudpickle().loads(self.cause)
            except Exception:  # its type is only known to the worker
                pass
        if isinstance(cause, RayTaskError):
            return cause
        return RayTaskError(self.name, self.text, cause).as_instanceof_cause()


def _beyond_ours(tb):
    while tb is not None and (tb.tb_frame.f_globals.get("__package__") or "").startswith("cadre.ray"):
        tb = tb.tb_next
    return tb


def _pickled(error):
    try:
        stream = cloudpickle().dumps(error, protocol=5)
        cloudpickle().loads(stream)
        return stream
    except Exception:
        return None


def _is_atom(value):
    kind = type(value)
    if kind is int:
        return -_BIG <= value < _BIG
    return kind is str or kind is bool or value is None or kind is float and isfinite(value)


def _is_plain(value):
    """Whether JSON gives back an equal value. Long lists are not checked."""
    if type(value) is list:
        return len(value) <= _SHORT and all(map(_is_atom, value))
    if type(value) is dict:
        return len(value) <= _SHORT and all(type(k) is str for k in value) and all(map(_is_atom, value.values()))
    return _is_atom(value)


def pack(values):
    """A list of values."""
    return values if all(map(_is_plain, values)) else Packed((values,))


def unpack(packed):
    return packed[0] if type(packed) is Packed else packed


def to_bytes(value, what="the value"):
    """Returns a value as contiguous bytes. Later changes of the value do not change them."""
    body = _value.Body("pickle", _pickle.write(value, what))
    memory = memoryview(_value.room(body.len)).cast("B")
    body.write(memory)
    return memory


def of_bytes(data):
    """Returns the value. Each call returns its own copy."""
    return _value.decode(_value.copy(data), True)


class Enclosed:
    """The bytes of to_bytes() as an argument: they travel unchanged, and the receiver gets the value."""

    def __init__(self, data):
        self._data = data

    def __reduce__(self):
        return _opened, (as_tensor(self._data),)


def _opened(tensor):
    return _value.decode(_value.on_host(tensor.data), True)


def as_tensor(data):
    """Bytes that travel beside the pickle instead of in it."""
    return _value.Tensor("U8", (len(data),), data)


def dumps(thing, what):
    """The code of a class or a function. Code that only its program can import travels by value."""
    pickler = cloudpickle()
    if pickler is None:
        raise RuntimeError("cadre.ray needs the package cloudpickle: install it (the wheel cadre-sdk has it)")
    try:
        return pickler.dumps(thing, protocol=5)
    except Exception as e:
        raise TypeError(f"Could not serialize {what}: {e}; make such things in the constructor or in the method, which run "
                        "on the worker") from e


def loads(stream):
    return cloudpickle().loads(stream)


