# SPDX-License-Identifier: Apache-2.0
"""Tensors: values of one dtype and shape, of numpy, of torch, or of anything that has a buffer."""

import ctypes
import math
from operator import index

from . import _gpu
from ._gpu import OnGpu

# dtype of safetensors -> bits of a value, its name in numpy, its name in torch. None: that library does not have it.
DTYPES = {"BOOL": (8, "?", "bool"), "F4": (4, None, None), "F6_E2M3": (6, None, None), "F6_E3M2": (6, None, None),
          "U8": (8, "u1", "uint8"), "I8": (8, "i1", "int8"), "F8_E5M2": (8, None, "float8_e5m2"),
          "F8_E4M3": (8, None, "float8_e4m3fn"), "F8_E8M0": (8, None, "float8_e8m0fnu"),
          "F8_E4M3FNUZ": (8, None, "float8_e4m3fnuz"), "F8_E5M2FNUZ": (8, None, "float8_e5m2fnuz"),
          "I16": (16, "<i2", "int16"), "U16": (16, "<u2", "uint16"), "F16": (16, "<f2", "float16"),
          "BF16": (16, None, "bfloat16"), "I32": (32, "<i4", "int32"), "U32": (32, "<u4", "uint32"),
          "F32": (32, "<f4", "float32"), "C64": (64, "<c8", "complex64"), "F64": (64, "<f8", "float64"),
          "I64": (64, "<i8", "int64"), "U64": (64, "<u8", "uint64")}
_OF_TORCH = {name: dtype for dtype, (_, _, name) in DTYPES.items() if name}
# The typestr of an array: "<f4", "|u1", "|b1".
_OF_TYPESTR = {name if name[0] == "<" else f"|{'b1' if name == '?' else name}": dtype
               for dtype, (_, name, _) in DTYPES.items() if name}
# dtypes of ml_dtypes, which numpy knows by name only.
_OF_NUMPY_NAME = {"bfloat16": "BF16", "float8_e5m2": "F8_E5M2", "float8_e4m3fn": "F8_E4M3", "float8_e8m0fnu": "F8_E8M0",
                  "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ"}
_DIM_MAX = (1 << 63) - 1
# The format of a buffer (module struct), less its size -> the kind of dtype.
_KINDS = {"?": "BOOL", "Zf": "C64", **dict.fromkeys("bhilqn", "I"), **dict.fromkeys("BHILQN", "U"),
          **dict.fromkeys("efd", "F")}


def module_of(value):
    """The package that a value's type comes from. Nothing is imported to find out."""
    return type(value).__module__.partition(".")[0]


class Tensor:
    """Values of one dtype, as safetensors names it, and shape; `data` has their bytes, row-major, little endian.
    numpy() and torch() are on the same memory. On a GPU, so is torch(), and numpy() copies.
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
        self.data = data if type(data) is OnGpu else flat(memoryview(data))
        need = (math.prod(self.shape) * DTYPES[dtype][0] + 7) // 8
        if self.data.nbytes != need:
            raise ValueError(f"a tensor of {dtype}{list(self.shape)} has {need} bytes, not {self.data.nbytes}")

    @classmethod
    def of(cls, value, name="a tensor"):
        """Makes a Tensor from a tensor of torch, an array of numpy or of CUDA, or any other object that has a buffer
        with a shape.
        """
        if isinstance(value, cls):
            return value
        if module_of(value) == "torch" and hasattr(value, "data_ptr"):
            return _of_torch(value, name)
        array = _gpu.of_array(value) if _gpu.stays() else None
        if array:
            return _of_array(array, value, name)
        named = _OF_NUMPY_NAME.get(getattr(getattr(value, "dtype", None), "name", None))
        if named:
            import numpy

            return cls(named, value.shape, numpy.ascontiguousarray(value).reshape(-1).view("u1"))
        try:
            view = memoryview(value)
        except TypeError:
            raise TypeError(f"{name} is a {type(value).__name__}: give a tensor of torch, an array of numpy, something "
                            "else with a buffer, or a cadre.Tensor") from None
        except (ValueError, BufferError) as e:  # numpy's datetime64
            raise TypeError(f"{name} shows no buffer: {e}") from None
        kind = _KINDS.get(view.format.lstrip("<=@"))
        if not kind:
            raise TypeError(f"{name} has values of the format {view.format!r}, for which safetensors has no dtype")
        return cls(f"{kind}{8 * view.itemsize}" if len(kind) == 1 else kind, view.shape, view)

    def numpy(self):
        """Returns an array of numpy on the same memory."""
        import numpy

        name = DTYPES[self.dtype][1]
        if not name:
            raise TypeError(f"numpy has no dtype {self.dtype}: .torch() has it, and .data has the bytes")
        return numpy.frombuffer(_gpu.on_host(self.data), name).reshape(self.shape)

    def torch(self):
        """Returns a tensor of torch on the same memory. It is a copy if the memory is read-only or unaligned, or if
        torch cannot use the GPU.
        """
        import torch

        dtype = getattr(torch, DTYPES[self.dtype][2] or "", None)
        if dtype is None:
            raise TypeError(f"this torch has no dtype {self.dtype}: .data has the bytes")
        gpu = type(self.data) is OnGpu and torch.cuda.is_available()
        if not self.data.nbytes:
            return torch.empty(self.shape, dtype=dtype, device="cuda" if gpu else None)
        if gpu:
            return torch.as_tensor(self.data).view(dtype).reshape(self.shape)
        data, width = _gpu.on_host(self.data), max(DTYPES[self.dtype][0] // 8, 1)
        if data.readonly or _address(data) % width:
            data = bytearray(data)
        return torch.frombuffer(data, dtype=dtype).reshape(self.shape)

    @property
    def __cuda_array_interface__(self):
        """For cupy and others, if the tensor is on a GPU and numpy has the dtype."""
        name = DTYPES[self.dtype][1]
        if type(self.data) is not OnGpu or not name:
            raise AttributeError(f"a tensor of {self.dtype} in memory of the host")
        return {**self.data.__cuda_array_interface__, "shape": self.shape,
                "typestr": name if name[0] == "<" else f"|{'b1' if name == '?' else name}"}

    def __repr__(self):
        return f"<cadre.Tensor {self.dtype}{list(self.shape)}{' on a GPU' if type(self.data) is OnGpu else ''}>"


def _address(view):
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


def flat(view):
    """Returns the bytes. They are on the same memory if they are contiguous and memoryview knows the format."""
    if not view.nbytes:
        return memoryview(b"")
    if view.c_contiguous and len(view.format.lstrip("<=@")) == 1:
        return view.cast("B")
    return memoryview(view.tobytes())


def _of_array(array, value, name):
    address, shape, typestr = array
    kind = _OF_TYPESTR.get(typestr)
    if kind is None:
        raise TypeError(f"{name} has values of the type {typestr!r}, for which safetensors has no dtype")
    return Tensor(kind, shape, OnGpu(address, math.prod(shape) * DTYPES[kind][0] // 8, value))


def in_place(value):
    """Returns (dtype, size, address) of an array of numpy or a tensor of torch that is contiguous in host memory and
    writable. None: it is not, or it is another value.
    """
    module = module_of(value)
    array = getattr(value, "__array_interface__", None) if module == "numpy" else None
    if array:
        flags = value.flags
        dtype = _OF_TYPESTR.get(array["typestr"]) or _OF_NUMPY_NAME.get(value.dtype.name)
        return (dtype, value.nbytes, array["data"][0]) if dtype and flags.c_contiguous and flags.writeable else None
    if module != "torch" or not hasattr(value, "data_ptr") or value.device.type != "cpu" or not is_plain_torch(value) or (
            not value.is_contiguous() or value.is_conj() or value.is_neg()):
        return None
    return _OF_TORCH[str(value.dtype).rpartition(".")[2]], value.nbytes, value.data_ptr()


def is_plain_numpy(value):
    """Whether it is a plain array of numpy: no class of its own, no objects, no structures."""
    return type(value).__name__ == "ndarray" and module_of(value) == "numpy" and value.dtype.kind in "biufc"


def is_plain_torch(value):
    """Whether it is a plain tensor of torch: not jagged, not sparse, not quantized."""
    return str(value.layout) == "torch.strided" and not value.is_nested and not value.is_quantized and (
        str(value.dtype).rpartition(".")[2] in _OF_TORCH)


def _of_torch(value, name):
    if not is_plain_torch(value):
        raise TypeError(f"{name} is a tensor of torch with the layout {value.layout} and the dtype {value.dtype}: "
                        "safetensors has dense tensors only")
    dense = value.detach().resolve_conj().resolve_neg()
    if value.is_cuda and _gpu.stays():
        dense = dense.contiguous()
        memory = OnGpu(dense.data_ptr(), dense.numel() * dense.element_size(), dense)
        return Tensor(_OF_TORCH[str(value.dtype).rpartition(".")[2]], value.shape, memory)
    dense = dense.cpu().contiguous()  # from a GPU: this is the only copy
    size = dense.numel() * dense.element_size()
    if size:
        memory = (ctypes.c_char * size).from_address(dense.data_ptr())
        memory.owner = dense
    else:
        memory = b""
    return Tensor(_OF_TORCH[str(value.dtype).rpartition(".")[2]], value.shape, memory)
