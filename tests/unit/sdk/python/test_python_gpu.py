#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers in Python whose arrays are on a GPU: over the stand-in for the driver, without torch."""

import os
import struct
import tempfile
import time
import unittest
import unittest.mock

import cadre
from cadre import _method, _value
from python_case import RunCase, main, program



class Tensor:
    """The part that Cadre sees of a torch tensor on a GPU, with 2 x 3 numbers of 2 bytes at that address."""

    __module__ = "torch"
    dtype, layout, shape, is_cuda = "torch.bfloat16", "torch.strided", (2, 3), True
    is_nested = is_quantized = requires_grad = False

    def data_ptr(self):
        return 4096

    def cpu(self):
        raise NotImplementedError("it was to stay")

    def itself(self):
        return self

    detach = resolve_conj = resolve_neg = contiguous = itself
    numel, element_size = (lambda self: 6), (lambda self: 2)


class OfTorch(unittest.TestCase):
    def test_a_tensor_of_cuda_stays_where_it_is_while_a_method_runs(self):
        token = _method.call.set(self)
        self.addCleanup(_method.call.reset, token)
        self.assertRaises(NotImplementedError, cadre.Batch, {"x": Tensor()})  # of a worker that has no GPU
        with unittest.mock.patch.dict(os.environ, CADRE_DEVICE="0"):
            self.stays()

    def stays(self):
        for value in (cadre.Batch({"x": Tensor()}), [1, {"also": Tensor()}]):
            body = _value.encode_result(value, "f")
            on_gpu = [p for p in body.parts if type(p) is _value.OnGpu]
            self.assertEqual([(p.address, p.nbytes) for p in on_gpu], [(4096, 12)])
            self.assertIn(b"BF16", bytes(body.parts[0]))


WORKERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers")


class Gpu(RunCase):
    modules = (WORKERS,)

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.control("")
        driver = program("STAND_IN")
        os.environ.update(GPU_STAND_IN=self.folder.name, LD_LIBRARY_PATH=driver)
        self.client = cadre.local(gpus=2)
        self.addCleanup(self.client.close)
        self.group = self.client.Group("on_gpu:OnGpu", replicas=2, gpus=1, name="two")

    def control(self, lines):
        with open(f"{self.folder.name}/part", "w", encoding="utf-8") as f:
            f.write(lines)
        os.rename(f"{self.folder.name}/part", f"{self.folder.name}/control")

    def imports(self):
        try:
            with open(f"{self.folder.name}/imports", encoding="utf-8") as f:
                return len(f.readlines())
        except FileNotFoundError:
            return 0

    def memories(self):
        return len([name for name in os.listdir(self.folder.name) if name.startswith("memory.")])

    def wait_for(self, memories):
        while self.memories() != memories:
            time.sleep(0.01)

    def keep(self, method, *args):
        return getattr(self.group, method).options(rank=0, keep=True)(*args)

    def test_a_result_comes_to_the_host(self):
        batch = self.group.ramp.options(rank=0)(1000)
        self.assertEqual(batch.meta, {"made": "here"})
        self.assertEqual(list(struct.unpack("<1000f", bytes(batch.tensors["x"].data))), list(range(1000)))
        self.wait_for(memories=0)

    def test_a_kept_result_stays_and_goes_from_gpu_to_gpu(self):
        ref = self.keep("ramp", 1000)
        self.wait_for(memories=1)
        said = "<cadre.Tensor F32[1000] on a GPU>"
        self.assertEqual(self.group.sum(ref), [[said, 499500.0], [said, 499500.0]])
        self.assertEqual(self.imports(), 1)
        self.assertEqual(list(struct.unpack("<1000f", bytes(ref.get().tensors["x"].data))), list(range(1000)))
        self.wait_for(memories=1)
        ref.free()
        self.wait_for(memories=0)

    def test_what_a_method_does_to_its_arguments_is_its_own_affair(self):
        ref = self.keep("ramp", 100)
        self.group.spoil(ref)
        self.assertEqual(self.group.look(), [-4950.0, -4950.0])
        self.assertEqual([total for _, total in self.group.sum(ref)], [4950.0, 4950.0])
        self.group.forget()
        self.wait_for(memories=1)
        twin = self.group.again.options(keep=True)(ref)
        ref.free()
        self.assertEqual([total for _, total in self.group.sum.options(dispatch="ALL_TO_ALL")(twin)], [4950.0, 4950.0])

    def test_other_values_stay_beside_them(self):
        ref = self.keep("mixed", 3)
        self.wait_for(memories=1)
        self.assertEqual(self.group.unmix(ref), [[[0.0, 2.0, 4.0], [1.0, 2.0], [3]]] * 2)
        self.assertEqual(self.imports(), 1)
        value = ref.get()
        self.assertEqual(struct.unpack("<3f", bytes(value["on"].data)), (0, 2, 4))

    def test_memory_that_is_short_fails_the_call(self):
        self.control("memory 7000\n")
        with self.assertRaisesRegex(cadre.Failed, "the GPU has no room for 4000 bytes: 3000 of its 7000 bytes are free"):
            self.keep("ramp", 1000)
        self.assertEqual(self.group.sum.options(rank=0)(self.keep("ramp", 100))[1], 4950.0)

    def test_a_method_that_is_past_its_deadline_does_not_wait_for_the_gpu(self):
        self.group.spoil.options(rank=0)(self.keep("ramp", 10))
        self.control("hang\n")
        for timeout in 0.5, 5, 50, 500:  # on a busy machine, it may not have begun
            with self.assertRaises(cadre.Timeout):
                self.group.look_and_note.options(rank=0, timeout=timeout)()
            noted = self.group.note.options(rank=0)()
            if noted:
                break
        self.assertIn("canceled while the device worked", noted)
        self.control("")

    def test_an_illegal_address_ends_the_process(self):
        attempt = self.group.info()["attempt"]
        with self.assertRaisesRegex(cadre.Failed, "CUDA error 700"):
            self.group.stray.options(rank=1)()
        while self.group.info()["attempt"] == attempt:  # the other process is not stopped yet
            time.sleep(0.01)
        while True:  # until new processes answer
            try:
                self.assertEqual([total for _, total in self.group.sum(self.keep("ramp", 10))], [45.0, 45.0])
                return
            except cadre.Gone:
                time.sleep(0.01)


if __name__ == "__main__":
    main()
