# SPDX-License-Identifier: Apache-2.0
"""Arguments and results: JSON, batches, and lists of both (docs/protocol.md)."""

import ctypes
import json

from . import _batch
from . import _library as lib
from ._reference import Ref

_LIST_MAGIC, _LIST_HEAD = b"\xff\xff\xff\xff", 8
_SHORT = 1 << 16  # bytes; a longer result is looked at before it is copied


def _default(value):
    if isinstance(value, Ref):
        return {"$ref": value.text}
    if getattr(value, "ndim", None) == 0:
        number = value.item()  # a number of numpy
        if type(number) is not type(value):  # as of longdouble, which Python has none for
            return number
    name = type(value).__name__
    if isinstance(value, _batch.Batch):
        raise TypeError("a Batch must be the only argument of its call")
    if hasattr(value, "result"):
        raise TypeError(f"a {name} cannot be an argument: send its result()")
    raise TypeError(f"a {name} cannot be sent as JSON: send lists, dicts, numbers and strings, or arrays in a "
                    "cadre.Batch, which must be the only argument of its call")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default).encode
_decode, _raw_decode = json.JSONDecoder().decode, json.JSONDecoder().raw_decode


def encode(value):
    """JSON in UTF-8."""
    return _encode(value).encode()


def decode(result):
    """What a struct cadre_client_json holds, copied."""
    size = result.len
    if size <= _SHORT or _kind_of(ctypes.string_at(result.text, 8)) == lib.CONTENT_JSON:
        data = ctypes.string_at(result.text, size)
        try:
            text = data.decode()
            value, end = _raw_decode(text)
            return value if end == len(text) else _decode(text)
        except ValueError:
            if _kind_of(data) == lib.CONTENT_JSON:
                return _decode(data.decode())  # blanks in front, or no JSON
    view = memoryview(bytearray((ctypes.c_char * size).from_address(result.text)))
    return _decode_as(_kind_of(view), view)


def _decode_as(kind, view):
    if kind == lib.CONTENT_BATCH:
        return _batch.read(view)
    return _items(view) if kind == lib.CONTENT_LIST else json.loads(bytes(view))


def _kind_of(view):
    """A list begins with its magic, a document with 8 bytes of length, of which the last are 0: no JSON has those."""
    head = bytes(view[:8])
    if head[:4] == _LIST_MAGIC:
        return lib.CONTENT_LIST
    return lib.CONTENT_BATCH if 0 in head else lib.CONTENT_JSON


def _items(view):
    at, items = _LIST_HEAD, []
    for _ in range(int.from_bytes(view[4:8], "little")):
        size = int.from_bytes(view[at:at + 8], "little")
        body = view[at + 8:at + 8 + size]
        items.append(_decode_as(_kind_of(body), body))
        at += 8 + (size + 7) // 8 * 8
    return items
