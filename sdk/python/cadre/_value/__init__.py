# SPDX-License-Identifier: Apache-2.0
"""Arguments and results as they travel: JSON, batches, and all other values as pickles with their tensors beside
them.

JSON values travel as JSON, which workers in every language read. Rows travel as a safetensors document that the proxy
splits and joins. All other values travel as a safetensors document, too, with the entry `cadre.object` in its
metadata. Only receivers that trust the writer read it.
"""

from collections import namedtuple  # not typing, which takes 0.4 MiB of each rank

from .. import _errors
from . import _arrays, _batch, _document, _json, _pickle, _proto
from ._batch import Batch
from ._gpu import OnGpu, on_host, size, stream
from ._room import copy, room
from ._tensor import DTYPES, Tensor, in_place

__all__ = ["Batch", "Body", "DTYPES", "OnGpu", "Tensor", "copy", "decode", "decode_call", "encode_call", "encode_result",
           "in_place", "list_of", "on_host", "room", "size", "stream"]

_LIST_MAGIC, _LIST_HEAD = b"\xff\xff\xff\xff", 8


class Body(namedtuple("Body", ("kind", "parts"))):
    """A body to send. `parts` are bytes-like, or OnGpu, in this order and without anything in between. They are the
    memory of the values, so the values must not change until the body is sent. `kind`: "json", "batch", "pickle"
    or "list".
    """

    __slots__ = ()

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
    parts = _arrays.write_again((args, kwargs), True)
    if parts:
        return Body("pickle", parts)
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
    """Returns the body for the result of a method. In the worker, parts on a GPU are OnGpu. A Body is returned as it
    is.
    """
    if type(value) is Body:
        return value
    if type(value) in _json.ATOMS and _json.is_exact(value):
        return Body("json", [_json.encode(value)])
    parts = _arrays.write_again(value)
    if parts:
        return Body("pickle", parts)
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


def decode_call(buffer, trust, values=None):
    """Returns (args, kwargs). The values are in the memory of the buffer. Read-only memory is copied if it must be
    writable. trust: opens pickles. values: OnGpu, the values after the head, if the buffer has only the head of
    the document.
    """
    form, value = _decode(buffer, trust, _refuse_call, values)
    if form == _pickle.CALL:
        return value
    if form == "json":
        return ((), value) if isinstance(value, dict) else (tuple(value), {})
    return (value,), {}


def decode(buffer, trust):
    """Returns the value of a body of any kind. trust: opens pickles."""
    return _decode(buffer, trust, _refuse_result)[1]


def _refuse_call():
    raise _errors.Forbidden("the arguments are pickled, and opening them runs code of yours, which you may not send to this "
                            "group: it needs create on workergroups/code (group cadre.dev); bind the chart's ClusterRole that "
                            "ends in -code to you, or send JSON or a cadre.Batch")


def _refuse_result():
    raise _errors.Forbidden("the result is pickled, and opening it may run code of its writer: connect with "
                            "trust=True if you trust the workers of this group", may_have_run=True)


def _decode(buffer, trust, refuse, values=None):
    """Returns (kind, value). For a pickle, its form replaces the kind."""
    begin = bytes(buffer[:_document.PREFIX])
    if begin[:4] == _LIST_MAGIC:
        return "list", [_decode(body, trust, refuse)[1] for body in _items(memoryview(buffer))]
    if 0 not in begin:  # a document begins with 8 bytes of length, and the last are 0: JSON has no such byte
        return "json", _json.decode(str(buffer, "utf-8"))
    view = memoryview(buffer)
    document = _document.parse(view, values)
    form = document.metadata.get(_pickle.OBJECT)
    if form and not trust:
        refuse()
    if view.readonly:
        document = _document.parse(copy(view), values)  # torch and methods write where they get tensors
    if form:
        return form, _pickle.read(document)
    return "batch", _proto.of_batch(_batch.of_document(document.read(), document.metadata))


def _items(view):
    at = _LIST_HEAD
    for _ in range(int.from_bytes(view[4:8], "little")):
        size = int.from_bytes(view[at:at + 8], "little")
        yield view[at + 8:at + 8 + size]
        at += 8 + (size + 7) // 8 * 8
