# SPDX-License-Identifier: Apache-2.0
"""Safetensors documents: their heads are made and read here, their values stay where they are."""

import json

from .. import _errors
from ._tensor import DTYPES, Tensor

PREFIX = 8  # bytes that say how long the head is
DIMS_MAX = 8


def write(tensors, metadata):
    """The parts of the document in their order, the head first: the widest values first, so that all lie aligned."""
    for name, t in tensors.items():
        _check(name, t)
    order = sorted(tensors.items(), key=lambda item: -DTYPES[item[1].dtype][0])
    head, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, t in order:
        head[name] = {"dtype": t.dtype, "shape": t.shape, "data_offsets": [at, at + t.data.nbytes]}
        at += t.data.nbytes
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % PREFIX)
    return [len(text).to_bytes(PREFIX, "little") + text, *(t.data for _, t in order if t.data.nbytes)]


def _check(name, t):
    if not isinstance(name, str):
        raise TypeError(f"tensor {name!r}: a name is text")
    if not name or "\0" in name or name == "__metadata__":
        raise ValueError(f"tensor {name!r}: a name is any text, has no NUL, and is not __metadata__")
    if len(t.shape) > DIMS_MAX:
        raise ValueError(f"tensor {name!r} has {len(t.shape)} dimensions, at most {DIMS_MAX} travel")


def is_document(view):
    """A document begins with 8 bytes of length, and the last are 0: JSON has no such byte."""
    return 0 in bytes(view[:PREFIX])


def read(view, values=None):
    """(tensors, metadata); the tensors lie in the memory of `view`, or in `values`, if that has only the head."""
    start = PREFIX + int.from_bytes(view[:PREFIX], "little")
    try:
        head = json.loads(bytes(view[PREFIX:start]))
        metadata = head.pop("__metadata__", {})
        values = view[start:] if values is None else values
        return {name: _tensor(t, values) for name, t in head.items()}, metadata
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise _errors.Proto(f"a body of {len(view)} bytes is not a safetensors document: {e}") from None


def _tensor(t, values):
    begin, end = t["data_offsets"]
    return Tensor(t["dtype"], t["shape"], values[begin:end])
