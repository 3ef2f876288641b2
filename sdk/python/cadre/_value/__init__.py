# SPDX-License-Identifier: Apache-2.0
"""Arguments and results as they travel: JSON, batches, and all else as pickles with their tensors beside them.

What is JSON goes as JSON, which workers in every language read. What is rows goes as a safetensors document that the
proxy cuts and joins. The rest is a safetensors document, too, with the entry `cadre.object` in its metadata; it is read
only by who trusts its writer.
"""

from typing import NamedTuple

from .. import _errors
from . import _batch, _document, _json, _pickle, _proto
from ._batch import Batch
from ._gpu import OnGpu, on_host, size, stream
from ._room import copy, room
from ._tensor import DTYPES, Tensor

__all__ = ["Batch", "Body", "DTYPES", "OnGpu", "Tensor", "copy", "decode", "decode_call", "decode_result", "encode_call",
           "encode_result", "kind_of", "list_of", "on_host", "room", "size", "stream"]

_LIST_MAGIC, _LIST_HEAD = b"\xff\xff\xff\xff", 8


class Body(NamedTuple):
    """What is sent: `parts` are bytes-like, in this order and without anything in between. They lie where the values
    lie, so those stay as they are until the body is sent.
    """

    kind: str  # "json", "batch", "pickle", "list"
    parts: list  # bytes-like, or OnGpu

    @property
    def len(self):
        return sum(map(size, self.parts))

    def write(self, view):
        """Copies all parts into a writable buffer of self.len bytes."""
        at = 0
        for part in map(on_host, self.parts):
            view[at:at + part.nbytes] = part
            at += part.nbytes


def _of_batch(value):
    """The batch that a value is, or None."""
    if isinstance(value, Batch):
        return value
    return _proto.to_batch(value) if _proto.is_foreign(value) else None


def encode_call(args, kwargs, method="the method"):
    """The body for arguments by position and by name."""
    if len(args) == 1 and not kwargs:
        batch = _of_batch(args[0])
        if batch is not None:
            return Body("batch", _batch.write(batch))
    if not (args and kwargs):
        value = kwargs or args
        if _json.is_exact(value):
            return Body("json", [_json.encode(value)])
    return Body("pickle", _pickle.write((tuple(args), dict(kwargs)), f"the arguments of {method}()", _pickle.CALL))


def encode_result(value, method="the method"):
    """The body for what a method returns; where it runs, parts that are on a GPU are OnGpu. A Body is one already."""
    if type(value) is Body:
        return value
    batch = _of_batch(value)
    if batch is not None:
        return Body("batch", _batch.write(batch))
    if _json.is_exact(value):
        return Body("json", [_json.encode(value)])
    return Body("pickle", _pickle.write(value, f"the result of {method}()"))


def list_of(bodies):
    """Several bodies as one, such as the arguments of each rank."""
    parts = [_LIST_MAGIC + len(bodies).to_bytes(4, "little")]
    for body in bodies:
        size = body.len
        parts += [size.to_bytes(8, "little"), *body.parts, bytes(-size % 8)]
    return Body("list", parts)


def kind_of(buffer, values=None):
    """"json", "batch", "pickle", or "list" of several bodies. values: as for decode_call()."""
    view = memoryview(buffer)
    if bytes(view[:4]) == _LIST_MAGIC:
        return "list"
    if not _document.is_document(view):
        return "json"
    start = _document.PREFIX + int.from_bytes(view[:_document.PREFIX], "little")
    if b'"' + _pickle.OBJECT.encode() + b'"' not in bytes(view[:start]):
        return "batch"
    return "pickle" if _pickle.OBJECT in _document.read(view, values)[1] else "batch"


def decode_call(kind, buffer, trust, values=None):
    """(args, kwargs). The values lie in the memory of the buffer; what cannot be written is copied where it must be.
    trust: pickles are opened. values: OnGpu, what follows the head of a document that is all of the buffer.
    """
    value = _decode(kind, memoryview(buffer), trust, _refuse_call, values)
    if kind == "pickle":
        form, value = value
        return value if form == _pickle.CALL else ((value,), {})  # one that was kept
    if kind == "json":
        return ((), value) if isinstance(value, dict) else (tuple(value), {})
    return (value,), {}


def decode_result(kind, buffer, trust):
    """The value. trust: pickles are opened."""
    return _plain(kind, memoryview(buffer), trust, _refuse_result)


def decode(buffer, trust):
    """The same of a body of any kind."""
    if type(buffer) is bytes and 0 not in buffer[:8] and buffer[:4] != _LIST_MAGIC:
        return _json.decode(buffer.decode())
    return decode_result(kind_of(buffer), buffer, trust)


def _refuse_call():
    raise _errors.Forbidden("the arguments are pickled, and opening them runs code of yours, which you may not send to this "
                            "group: it needs create on workergroups/code (group cadre.dev); bind the chart's ClusterRole that "
                            "ends in -code to you, or send JSON or a cadre.Batch")


def _refuse_result():
    raise _errors.Forbidden("the result is pickled, and opening it may run code of its writer: connect with "
                            "trust=True if you trust the workers of this group", may_have_run=True)


def _plain(kind, view, trust, refuse):
    value = _decode(kind, view, trust, refuse)
    return value[1] if kind == "pickle" else value


def _decode(kind, view, trust, refuse, values=None):
    """The value; of a pickle, its form and its value."""
    if kind == "json":
        return _json.decode(str(view, "utf-8"))
    if kind == "list":
        return [_plain(kind_of(body), body, trust, refuse) for body in _items(view)]
    if kind == "pickle" and not trust:
        refuse()
    if view.readonly:
        view = copy(view)  # torch and methods write where they get tensors
    tensors, metadata = _document.read(view, values)
    if kind == "pickle":
        return metadata[_pickle.OBJECT], _pickle.read(tensors)
    return _proto.of_batch(_batch.of_document(tensors, metadata))


def _items(view):
    at = _LIST_HEAD
    for _ in range(int.from_bytes(view[4:8], "little")):
        size = int.from_bytes(view[at:at + 8], "little")
        yield view[at + 8:at + 8 + size]
        at += 8 + (size + 7) // 8 * 8
