# SPDX-License-Identifier: Apache-2.0
"""Batches: tensors whose first dimension is the row, and columns of JSON values, as safetensors documents."""

import ctypes
import json
import math
from operator import index

from . import _errors
from . import _library as lib

# dtype of safetensors -> bits of a value, and what numpy calls it, which does not have all of them.
DTYPES = {"BOOL": (8, "?"), "F4": (4, None), "F6_E2M3": (6, None), "F6_E3M2": (6, None), "U8": (8, "u1"),
          "I8": (8, "i1"), "F8_E5M2": (8, None), "F8_E4M3": (8, None), "F8_E8M0": (8, None), "F8_E4M3FNUZ": (8, None),
          "F8_E5M2FNUZ": (8, None), "I16": (16, "<i2"), "U16": (16, "<u2"), "F16": (16, "<f2"), "BF16": (16, None),
          "I32": (32, "<i4"), "U32": (32, "<u4"), "F32": (32, "<f4"), "C64": (64, "<c8"), "F64": (64, "<f8"),
          "I64": (64, "<i8"), "U64": (64, "<u8")}
_DIM_MAX = (1 << 63) - 1
# The format of a buffer (module struct), less its size -> the kind of dtype.
KINDS = {"?": "BOOL", "Zf": "C64", **dict.fromkeys("bhilqn", "I"), **dict.fromkeys("BHILQN", "U"),
         **dict.fromkeys("efd", "F")}


class Tensor:
    """Values of one dtype, as safetensors names it, and shape; `data` has their bytes, row-major, little endian. For
    dtypes that numpy does not have, such as "BF16": torch.frombuffer(t.data, dtype=torch.bfloat16).reshape(t.shape).
    """

    __slots__ = ("dtype", "shape", "data")

    def __init__(self, dtype, shape, data):
        if dtype not in DTYPES:
            raise ValueError(f"dtype {dtype!r} is none of safetensors: {', '.join(DTYPES)}")
        self.dtype = dtype
        try:
            self.shape = tuple(index(n) for n in shape)
        except TypeError:
            raise TypeError(f"a tensor of {dtype} with the shape {shape!r}: a shape is a list of whole numbers") from None
        if not all(0 <= n <= _DIM_MAX for n in self.shape):
            raise ValueError(f"a tensor of {dtype}{list(self.shape)}: a dimension is 0 to 2**63 - 1")
        self.data = _flat(memoryview(data))
        need = (math.prod(self.shape) * DTYPES[dtype][0] + 7) // 8
        if self.data.nbytes != need:
            raise ValueError(f"a tensor of {dtype}{list(self.shape)} has {need} bytes, not {self.data.nbytes}")

    @classmethod
    def of(cls, value, name="a tensor"):
        """Of an array of numpy, or anything else that has a buffer with a shape."""
        if isinstance(value, cls):
            return value
        try:
            view = memoryview(value)
        except TypeError:
            raise TypeError(f"{name} is a {type(value).__name__}: give an array of numpy, something else with a buffer "
                            "(torch: t.numpy()), or a cadre.Tensor") from None
        except (ValueError, BufferError) as e:  # numpy's datetime64
            raise TypeError(f"{name} shows no buffer: {e}") from None
        kind = KINDS.get(view.format.lstrip("<=@"))
        if not kind:
            raise TypeError(f"{name} has values of the format {view.format!r}, for which safetensors has no dtype")
        return cls(f"{kind}{8 * view.itemsize}" if len(kind) == 1 else kind, view.shape, view)

    def numpy(self):
        """An array of numpy on the same memory."""
        import numpy

        name = DTYPES[self.dtype][1]
        if not name:
            raise TypeError(f"numpy has no dtype {self.dtype}: .data has the bytes")
        return numpy.frombuffer(self.data, name).reshape(self.shape)

    def __repr__(self):
        return f"<cadre.Tensor {self.dtype}{list(self.shape)}>"


def _flat(view):
    """The bytes; on the same memory where they lie in a row and memoryview knows the format."""
    if not view.nbytes:
        return memoryview(b"")
    return view.cast("B") if view.c_contiguous and len(view.format) == 1 else memoryview(view.tobytes())


class Batch:
    """Rows: `tensors` {name: array}, all with the same first dimension; `columns` {name: list}, one JSON value a row;
    `meta`, a JSON object that every rank gets whole. batch["x"] is an array of numpy, batch.tensors["x"] a Tensor.
    """

    __slots__ = ("tensors", "columns", "meta")

    def __init__(self, tensors=None, *, columns=None, meta=None):
        self.tensors = {name: Tensor.of(value, f"tensor {name!r}") for name, value in (tensors or {}).items()}
        self.columns = dict(columns or {})
        self.meta = dict(meta or {})

    @property
    def rows(self):
        for t in self.tensors.values():
            return t.shape[0] if t.shape else 0
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name):
        return self.tensors[name].numpy()

    def __iter__(self):
        return iter(self.tensors)

    def __contains__(self, name):
        return name in self.tensors

    def __repr__(self):
        parts = [f"{name}: {t.dtype}{list(t.shape)}" for name, t in self.tensors.items()]
        parts += [f"{name}: column" for name in self.columns]
        return f"<cadre.Batch of {self.rows} rows: {', '.join(parts) or 'empty'}>"


def write(batch, encode, handle=None):
    """(address, length) of the document, for lib.free(); with a client's handle where it is sent from, for
    lib.functions.batch_free().
    """
    tensors, keep = (lib.Tensor * max(len(batch.tensors), 1))(), []
    for out, (name, t) in zip(tensors, batch.tensors.items()):
        if len(t.shape) > lib.DIMS_MAX:
            raise ValueError(f"tensor {name!r} has {len(t.shape)} dimensions, at most {lib.DIMS_MAX} travel")
        if not isinstance(name, str):
            raise TypeError(f"tensor {name!r}: a name is text")
        out.name, out.dtype = name.encode(), t.dtype.encode()
        if "\0" in name:
            raise ValueError(f"tensor {name!r}: a name has no NUL")
        out.shape[: len(t.shape)], out.n_dims = t.shape, len(t.shape)
        keep.append(_pointer(t.data))
        out.data, out.len = ctypes.cast(keep[-1], ctypes.c_void_p), t.data.nbytes
    made, size, error = ctypes.c_void_p(), ctypes.c_size_t(), lib.ClientError()
    given = (tensors, len(batch.tensors), encode(batch.columns) if batch.columns else None,
             encode(batch.meta) if batch.meta else None, ctypes.byref(made), ctypes.byref(size), ctypes.byref(error))
    code = lib.functions.batch_write(*given) if handle is None else lib.functions.batch_new(handle, *given)
    if code != lib.OK:
        raise _errors.of_struct(error)
    return made.value, size.value


def _pointer(view):
    """Something that ctypes can cast, and that keeps the memory."""
    if view.readonly or not view.nbytes:
        return ctypes.c_char_p(view.tobytes())  # ctypes shows no address of what must not be written
    return (ctypes.c_char * view.nbytes).from_buffer(view)


def read(view):
    """The batch in a document; its tensors lie in the memory of `view`."""
    start = 8 + int.from_bytes(view[:8], "little")
    head = json.loads(bytes(view[8:start]))
    meta = head.pop("__metadata__", {})
    batch = Batch(columns=json.loads(meta.get("cadre.columns", "{}")), meta=json.loads(meta.get("cadre.meta", "{}")))
    for name, t in head.items():
        begin, end = t["data_offsets"]
        batch.tensors[name] = Tensor(t["dtype"], t["shape"], view[start + begin:start + end])
    return batch
