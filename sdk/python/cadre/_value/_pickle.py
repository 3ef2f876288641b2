# SPDX-License-Identifier: Apache-2.0
"""Everything that is neither JSON nor a batch: a stream of pickle 5 whose arrays and tensors lie beside it, with their
dtypes, in one safetensors document.
"""

import functools
import io
import pickle

from .. import _errors
from .._code import cloudpickle
from . import _arrays, _document
from ._gpu import on_host
from ._tensor import Tensor, is_plain_numpy, is_plain_torch, module_of

OBJECT = "cadre.object"  # the name of the stream in the document, and of its entry in the metadata
VALUE, CALL = "pickle5", "pickle5-call"  # the value of that entry: any value, or (args, kwargs) of a call
_WRITABLE = bytearray(1)  # stands for values: receivers may write to them, even if they were read-only here


@functools.lru_cache(maxsize=None)
def _pickler():
    """The class. It is made once: a class made for each call would keep its pickles until the next garbage collection.
    With cloudpickle, it can also pickle classes and functions of a notebook.
    """
    found = cloudpickle()
    base = found.Pickler if found else pickle.Pickler

    class Pickler(base):
        writer = None

        def reducer_override(self, obj):
            made = self.writer.reduce(obj)
            if made is NotImplemented and base is not pickle.Pickler:
                return super().reducer_override(obj)
            return made

    return Pickler


def _of_numpy(data, dtype, shape):
    import numpy

    if not data.nbytes:
        return numpy.empty(shape, dtype)
    return numpy.frombuffer(on_host(data), numpy.dtype(dtype)).reshape(shape)


def _of_torch(data, dtype, shape, requires_grad, parameter):
    return _of_cuda(on_host(data), dtype, shape, requires_grad, parameter)


def _of_cuda(data, dtype, shape, requires_grad, parameter):
    """Whether it is a tensor of CUDA that is on a GPU."""
    import torch

    value = Tensor(dtype, shape, data).torch()
    if parameter:
        return torch.nn.Parameter(value, requires_grad)
    return value.requires_grad_() if requires_grad else value


def _of_tensor(data, dtype, shape):
    return Tensor(dtype, shape, data)


def _as_it_was(cls, state):
    value = cls.__new__(cls)
    vars(value).update(state)
    return value


class _Writer:
    def __init__(self):
        self.tensors = {}

    def lay_out(self, t):
        """Returns what stands for the values of a tensor in the stream."""
        whole = t.shape and len(t.shape) <= _document.DIMS_MAX
        self.tensors[str(len(self.tensors))] = t if whole else Tensor("U8", (t.data.nbytes,), t.data)
        return pickle.PickleBuffer(_WRITABLE)

    def reduce(self, value):
        """Returns how to make the value again. NotImplemented: use the way of pickle."""
        package, name = module_of(value), type(value).__name__
        if isinstance(value, Tensor):
            return _of_tensor, (self.lay_out(value), value.dtype, value.shape)
        if package == "verl" and name == "DataProto":  # its own way writes its tensors into the stream
            return _as_it_was, (type(value), vars(value))
        if is_plain_numpy(value):
            try:
                t = Tensor.of(value)
            except (TypeError, ValueError):  # a dtype or a byte order that safetensors does not have
                return NotImplemented
            return _of_numpy, (self.lay_out(t), value.dtype.str, value.shape)
        if package == "torch" and name in ("Tensor", "Parameter") and is_plain_torch(value):
            t = Tensor.of(value)
            make = _of_cuda if value.is_cuda else _of_torch
            return make, (self.lay_out(t), t.dtype, t.shape, value.requires_grad, name == "Parameter")
        return NotImplemented


def write(value, what, form=VALUE):
    """The parts of the document. what: for messages, "the arguments of add()"."""
    writer, stream = _Writer(), io.BytesIO()
    try:
        # Buffers of others, such as subclasses of arrays, stay in the stream: only the tensors that were laid out have
        # a dtype.
        pickler = _pickler()(stream, protocol=5, buffer_callback=_Laid(writer))
        pickler.writer = writer
        pickler.dump(value)
    except Exception as e:
        raise TypeError(f"{what} cannot be sent: {_path_to(value)}: {e}") from e
    tensors = dict(writer.tensors)
    data = stream.getbuffer()
    tensors[OBJECT] = Tensor("U8", (data.nbytes,), data)
    parts = _document.write(tensors, {OBJECT: form})
    _arrays.wrote(value, form == CALL, parts, writer.tensors)
    return parts


class _Laid:
    """Says for each buffer whether it stays in the stream. True, except for the buffer that was laid out last."""

    def __init__(self, writer):
        self.writer = writer
        self.seen = 0

    def __call__(self, buffer):
        if len(self.writer.tensors) == self.seen:
            return True
        self.seen += 1
        return False


def _path_to(value, path="it", depth=8):
    """Finds the part that cannot be pickled: "it['x'].file (a TextIOWrapper)"."""
    inner = vars(value).items() if hasattr(value, "__dict__") and not isinstance(value, type) else ()
    parts = [(f"{path}.{name}", v) for name, v in inner]
    if isinstance(value, dict):
        parts = [(f"{path}[{key!r}]", v) for key, v in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"{path}[{i}]", v) for i, v in enumerate(value)]
    for where, part in parts if depth else ():
        try:
            (cloudpickle() or pickle).dumps(part, protocol=5)
        except Exception:
            return _path_to(part, where, depth - 1)
    return f"{path} (a {type(value).__name__})"


def read(document):
    """Returns the object. The caller trusts the writer: a pickle may run any code."""
    form, size = document.metadata[OBJECT], 0
    try:
        stream = document.part(OBJECT)
        size = stream.nbytes
        again = None
        if type(stream) is memoryview and _arrays.is_short(document.text, stream):
            again = _arrays.Reading(document, stream)
            value = again.value()
            if value is not None:
                return value
        value = pickle.loads(on_host(stream), buffers=[document.part(str(i)) for i in range(len(document.tensors) - 1)])
    except Exception as e:
        raise _errors.Proto(f"a pickled object of {size} bytes cannot be read: {type(e).__name__}: {e}") from e
    if again:
        again.opened(value, form == CALL, lambda value: write(value, "it", form))
    return value
