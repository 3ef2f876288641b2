# SPDX-License-Identifier: Apache-2.0
"""Values on a GPU, used in place of a memoryview: the memory of a CUDA tensor, and arguments that stay on the GPU."""

import ctypes
import sys

from .. import _library, _method


class OnGpu:
    """Bytes of a GPU. `owner` holds their memory, which stays as long as the owner."""

    __slots__ = ("address", "nbytes", "owner")

    def __init__(self, address, nbytes, owner):
        self.address, self.nbytes, self.owner = address, nbytes, owner

    def __getitem__(self, part):
        first, end, step = part.indices(self.nbytes)
        if step != 1:
            raise ValueError("bytes on a GPU are sliced without a step")
        return OnGpu(self.address + first, max(end - first, 0), self.owner)

    def host(self):
        """Copies the bytes to host memory. Returns a memoryview."""
        own = bytearray(self.nbytes)
        if self.nbytes:
            running = _method.call.get(None)
            why = _download()(running.here() if running else None, ctypes.addressof(ctypes.c_char.from_buffer(own)),
                              self.address, self.nbytes, stream())
            if why:
                raise RuntimeError(f"values on a GPU do not come to the host: {why.decode()}")
        return memoryview(own)

    def __bytes__(self):
        return bytes(self.host())

    @property
    def __cuda_array_interface__(self):
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False), "strides": None, "version": 2}


def _download():
    try:
        f = _library.library.cadre_host_download
    except AttributeError:
        raise RuntimeError("values on a GPU come to the host in workers only: copy them there first") from None
    f.restype = ctypes.c_char_p
    f.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    return f


def on_host(part):
    """Returns the same bytes as a memoryview of host memory."""
    return part.host() if type(part) is OnGpu else memoryview(part)


def size(part):
    return part.nbytes if type(part) is OnGpu else memoryview(part).nbytes


def stays():
    """Whether a method of a worker with a GPU runs. Then tensors of CUDA are used in place, and are not copied to the
    host first.
    """
    return _method.call.get(None) is not None and _method.device() != "cpu"


def of_array(value):
    """Returns (address, shape, typestr) of an array in CUDA's own form, such as one of cupy. None: it is not such an
    array, or is not contiguous.
    """
    try:
        said = value.__cuda_array_interface__
    except (AttributeError, RuntimeError, TypeError):
        return None
    return None if said.get("strides") else (said["data"][0] or 0, said["shape"], said["typestr"])


def stream():
    """The stream that torch uses on this thread, if it uses CUDA; 0: the default stream."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda.current_stream().cuda_stream if cuda and cuda.is_initialized() else 0
