# SPDX-License-Identifier: Apache-2.0
"""JSON, and whether JSON can represent a value completely."""

import json
from math import isfinite

from .._reference import Ref

_BIG = 1 << 63


def _is_short(number):
    return -_BIG <= number < 2 * _BIG


def _always(value):
    return True


ATOMS = {int: _is_short, float: isfinite, str: _always, bool: _always, type(None): _always}  # and whether JSON has all of it
_NUMBERS = frozenset((int, float, bool))
_LISTS = frozenset((list, tuple))
_DEEP = 100  # levels; deeper values are not JSON to workers in C


def _default(value):
    if isinstance(value, Ref):
        return {"$ref": value.text}
    if is_number(value):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not JSON")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default).encode
_decoder = json.JSONDecoder()


def encode(value):
    """JSON in UTF-8."""
    return b"%d" % value if type(value) is int else _encode(value).encode()


def decode(text):
    """Decodes a str. Text without spaces around it, as programs write it, takes half the time."""
    try:
        value, end = _decoder.scan_once(text, 0)
    except StopIteration:
        end = -1
    return value if end == len(text) else _decoder.decode(text)


def is_number(value):
    """Whether it is one of numpy's scalars that Python has, too. Arrays are not, nor are times, whose item() may lose
    the unit.
    """
    return type(value).__module__ == "numpy" and hasattr(value, "item") and not hasattr(value, "__setitem__") and (
        value.dtype.kind not in "mM" and type(value.item()) in ATOMS)


def is_exact(value, depth=_DEEP):
    """Whether JSON represents the value completely. Tuples count: they become lists."""
    kind = type(value)
    if kind in ATOMS:
        return ATOMS[kind](value)
    if kind is dict:
        return all(type(key) is str for key in value) and are_exact(value.values(), depth)
    if kind in _LISTS:
        return are_exact(value, depth)
    return isinstance(value, Ref) or (is_number(value) and is_exact(value.item()))


def are_exact(values, depth=_DEEP):
    """The same for each element. Long lists of numbers are checked without a loop in Python."""
    types = set(map(type, values))
    others = types.difference(ATOMS)
    if int in types and not _are_short(values, types):
        return False
    if float in types and not all(map(isfinite, values if types <= _NUMBERS else
                                      [v for v in values if type(v) is float])):
        return False
    for value in values if others else ():
        kind = type(value)
        if kind in ATOMS:
            continue
        if not depth and (kind is dict or kind in _LISTS) or not is_exact(value, depth - 1):
            return False
    return True


def _are_short(values, types):
    numbers = values if types <= _NUMBERS else [v for v in values if type(v) is int]
    return -_BIG <= min(numbers) and max(numbers) < 2 * _BIG
