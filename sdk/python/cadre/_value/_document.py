# SPDX-License-Identifier: Apache-2.0
"""Safetensors documents. Heads are made and read here; values stay where they are."""

import functools
import json
from collections import namedtuple

from .. import _errors
from ._tensor import DTYPES, Tensor

PREFIX = 8  # bytes that say how long the head is
DIMS_MAX = 8
SHORT = 4 << 10  # bytes of a head: short heads are often repeated


def write(tensors, metadata):
    """Returns the parts of the document in their order, the head first. The widest values come first, so all are
    aligned.
    """
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


def _parse(text):
    head = json.loads(text)
    metadata = head.pop("__metadata__", {})
    return {name: (t["dtype"], t["shape"], *t["data_offsets"]) for name, t in head.items()}, metadata


_parse_short = functools.lru_cache(maxsize=256)(_parse)


class Document(namedtuple("Document", ("tensors", "metadata", "text", "values"))):
    """The contents of the head, which nobody changes, and the values. tensors: name -> (dtype, shape, begin, end);
    text: the head itself, bytes; values: a memoryview, or OnGpu.
    """

    __slots__ = ()

    def part(self, name):
        """Returns the bytes of a tensor without a copy."""
        _, _, begin, end = self.tensors[name]
        return self.values[begin:end]

    def read(self):
        """Returns {name: Tensor}, without copies."""
        try:
            return {name: Tensor(t[0], t[1], self.part(name)) for name, t in self.tensors.items()}
        except (ValueError, TypeError) as e:
            raise _no_document(PREFIX + len(self.text) + self.values.nbytes, e) from None


def _no_document(size, e):
    return _errors.Proto(f"a body of {size} bytes is not a safetensors document: {e}")


def parse(view, values=None):
    """Returns a Document. `view` has all of it, or only the head."""
    start = PREFIX + int.from_bytes(view[:PREFIX], "little")
    try:
        text = bytes(view[PREFIX:start])
        tensors, metadata = (_parse_short if len(text) <= SHORT else _parse)(text)
        return Document(tensors, metadata, text, view[start:] if values is None else values)
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise _no_document(len(view), e) from None
