# SPDX-License-Identifier: Apache-2.0
"""Arrays on a GPU, over the stand-in for the driver: what cupy or torch would have, as far as Cadre sees it."""

import ctypes
import struct

import cadre

_driver = ctypes.CDLL("libcuda.so.1")
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_float), ctypes.c_size_t, ctypes.c_double)


def _check(code):
    if code:
        raise RuntimeError(f"CUDA error {code}")


class Array:
    """n floats on the GPU."""

    def __init__(self, n):
        self.n, self.address = n, ctypes.c_uint64()
        _check(_driver.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(4 * n)))

    def __del__(self):
        _driver.cuMemFree_v2(self.address)

    @property
    def __cuda_array_interface__(self):
        return {"shape": (self.n,), "typestr": "<f4", "data": (self.address.value, False), "strides": None, "version": 3}


@_KERNEL
def _ramp(memory, n, x):
    for i in range(n):
        memory[i] = i * x


@_KERNEL
def _multiply(memory, n, x):
    for i in range(n):
        memory[i] *= x


def _launch(kernel, array, x):
    said = array.__cuda_array_interface__
    _driver.stand_in_launch(kernel, ctypes.c_void_p(said["data"][0]), ctypes.c_size_t(said["shape"][0]),
                            ctypes.c_double(x), None)


def _numbers(tensor):
    return list(struct.unpack(f"<{tensor.shape[0]}f", bytes(tensor.data)))


class OnGpu:
    def __init__(self):
        _driver.cuCtxSetCurrent(ctypes.c_void_p(1))  # as the runtime of CUDA does
        self.kept = self.noted = None

    def ramp(self, n):
        array = Array(n)
        _launch(_ramp, array, 1)
        return cadre.Batch({"x": array}, meta={"made": "here"})

    def sum(self, batch):
        return [repr(batch.tensors["x"]), sum(_numbers(batch.tensors["x"]))]

    def spoil(self, batch):
        """It may write to what it gets, and keeps it."""
        self.kept = batch.tensors["x"]
        _launch(_multiply, self.kept, -1)

    def look(self):
        return sum(_numbers(self.kept))

    def look_and_note(self):
        try:
            return self.look()
        except RuntimeError as e:
            self.noted = str(e)
            raise

    def note(self):
        return getattr(self, "noted", None)

    def forget(self):
        self.kept = None

    def again(self, batch):
        return batch

    def mixed(self, n):
        array = Array(n)
        _launch(_ramp, array, 2)
        return {"on": cadre.Tensor.of(array), "off": cadre.Tensor("F32", (2,), struct.pack("<2f", 1, 2)), "what": {3}}

    def unmix(self, value):
        return [_numbers(value["on"]), _numbers(value["off"]), sorted(value["what"])]

    def stray(self):
        _driver.stand_in_launch(_ramp, ctypes.c_void_p(16), ctypes.c_size_t(1), ctypes.c_double(1), None)
        code = 600
        while code == 600:
            code = _driver.cuStreamQuery(None)
        _check(code)
