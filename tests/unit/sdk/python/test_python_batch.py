#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches of the Python package against local runs, with the dtypes of safetensors.

    test_python_batch.py           needs the standard library only
    test_python_batch.py --numpy   with numpy; 77 if deploy/python.sh cannot bring it
"""

import array
import os
import sys

import cadre
from python_case import GroupCase, main
from safetensors_case import BITS, with_packages

WITH_NUMPY = sys.argv[1:2] == ["--numpy"]
NUMPY = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "F16": "float16", "I32": "int32",
         "U32": "uint32", "F32": "float32", "C64": "complex64", "F64": "float64", "I64": "int64", "U64": "uint64"}


def floats(*values):
    return array.array("f", values)


class Echoes(GroupCase):
    """One rank sends back what it gets."""

    def echo(self, batch):
        return self.group.call("echo", batch, rank=0)

    def test_every_dtype_comes_back_as_it_was(self):
        data = bytes(range(192))
        tensors = {d: cadre.Tensor(d, (8, 192 // bits), data) for d, bits in BITS.items()}
        back = self.echo(cadre.Batch(tensors))
        self.assertEqual((set(back), "BF16" in back), (set(BITS), True))
        for dtype, t in back.tensors.items():
            self.assertEqual((t.dtype, t.shape, bytes(t.data)), (dtype, tensors[dtype].shape, data))
        self.assertEqual(back.rows, 8)

    def test_columns_and_meta_go_along(self):
        columns, meta = {"p": ["ä", None], "q": [{"a": 1}, []]}, {"k": [1.5]}
        back = self.echo(cadre.Batch({"x": floats(1, 2)}, columns=columns, meta=meta))
        self.assertEqual((back.columns, back.meta), (columns, meta))
        self.assertRegex(repr(back), r"<cadre.Batch of 2 rows: x: F32\[2\], p: column, q: column>")

    def test_no_tensors_and_no_rows(self):
        self.assertEqual(self.echo(cadre.Batch(columns={"p": [1, 2, 3]})).rows, 3)
        back = self.echo(cadre.Batch({"x": cadre.Tensor("F32", (0, 4), b"")}))
        self.assertEqual((back.rows, back.tensors["x"].shape, len(back.tensors["x"].data)), (0, (0, 4), 0))

    def test_long_ones(self):
        data = os.urandom(8 << 20)
        self.assertEqual(bytes(self.echo(cadre.Batch({"x": data})).tensors["x"].data), data)
        self.assertEqual(self.group.call("echo", "x" * (1 << 20), rank=0), ["x" * (1 << 20)])

    def test_the_memory_of_results_may_be_written(self):
        back = self.echo(cadre.Batch({"x": floats(1, 2)}))
        back.tensors["x"].data[:4] = b"\0\0\0\0"
        again = self.echo(back)
        self.assertEqual(again.tensors["x"].data.cast("f").tolist(), [0, 2])

    def test_names_are_any_text(self):
        back = self.echo(cadre.Batch({"ä漢\"\\\n": floats(1)}))
        self.assertEqual(list(back.tensors), ["ä漢\"\\\n"])

    def test_what_is_no_batch_is_refused(self):
        for error, pattern, tensors in (
                (TypeError, "'x' is a list", {"x": [1, 2]}),
                (TypeError, "format 'w'|format 'u'", {"x": array.array("u", "ab")}),
                (ValueError, r"F32\[3\] has 12 bytes, not 4", {"x": lambda: cadre.Tensor("F32", [3], b"1234")}),
                (ValueError, "'F31' is none of safetensors", {"x": lambda: cadre.Tensor("F31", [1], b"")}),
                (cadre.Invalid, "'y' of a batch has 1 rows, and tensor 'x' has 2", {"x": floats(1, 2), "y": floats(1)}),
                (cadre.Invalid, "1 to 8 dimensions", {"x": cadre.Tensor("F32", (), b"1234")}),
                (TypeError, "shape 4: a shape is a list", {"x": lambda: cadre.Tensor("F32", 4, b"")}),
                (TypeError, "list of whole numbers", {"x": lambda: cadre.Tensor("U8", [1.0], b"1")}),
                (ValueError, r"U8\[-2, -1\]: a dimension is 0 to", {"x": lambda: cadre.Tensor("U8", (-2, -1), b"12")}),
                (ValueError, "a dimension is 0 to", {"x": lambda: cadre.Tensor("U8", (0, 1 << 64), b"")}),
                (TypeError, "tensor 7: a name is text", {7: floats(1)}),
                (ValueError, "has no NUL", {"x\0y": floats(1)}),
                (ValueError, "9 dimensions", {"x": cadre.Tensor("U8", (1,) * 9, b"1")})):
            self.fails(error, pattern, lambda: self.echo(
                cadre.Batch({k: t() if callable(t) else t for k, t in tensors.items()})))

    def test_a_reference_to_a_batch(self):
        with self.group.put(cadre.Batch({"x": floats(1, 2)})) as ref:
            self.assertEqual(ref.get().tensors["x"].data.cast("f").tolist(), [1, 2])
            self.assertEqual(self.group.call("echo", ref, rank=0).rows, 2)

    if WITH_NUMPY:
        def test_arrays_of_numpy(self):
            import numpy

            for dtype, name in NUMPY.items():
                x = numpy.arange(12).reshape(4, 3).astype(name)
                back = self.echo(cadre.Batch({"x": x}))
                self.assertEqual((back.tensors["x"].dtype, back["x"].dtype, back["x"].shape), (dtype, x.dtype, x.shape))
                numpy.testing.assert_array_equal(back["x"], x)

        def test_arrays_may_lie_in_memory_as_they_like(self):
            import numpy

            x = numpy.arange(24).reshape(4, 6)
            fixed = x.copy()
            fixed.flags.writeable = False
            for array_ in (x, x.T, x[:, ::2], x[::-1], fixed, x[:, :0], x.astype("complex64")[:, ::-1]):
                back = self.echo(cadre.Batch({"x": array_}))["x"]
                numpy.testing.assert_array_equal(back, array_)
                self.assertEqual(back.shape, array_.shape)

        def test_arrays_are_views_of_the_result(self):
            import numpy

            back = self.echo(cadre.Batch({"x": numpy.zeros(4, "f4")}))
            back["x"][1] = 7
            self.assertEqual(back["x"].tolist(), [0, 7, 0, 0])
            self.assertTrue(back["x"].flags.aligned)

        def test_numpy_without_such_a_dtype(self):
            back = self.echo(cadre.Batch({"x": cadre.Tensor("BF16", (2,), b"1234")}))
            self.fails(TypeError, "numpy has no dtype BF16", lambda: back["x"])

        def test_numbers_of_numpy_are_json(self):
            import numpy

            self.assertEqual(self.group.call("echo", numpy.int64(3), numpy.float32(0.5), rank=0), [3, 0.5])
            self.fails(TypeError, "tensor 'x' shows no buffer", cadre.Batch, {"x": numpy.zeros(2, "M8[s]")})
            self.fails(TypeError, "format '>i'", cadre.Batch, {"x": numpy.zeros(2, ">i4")})
    else:
        def test_without_numpy_the_bytes_are_there(self):
            back = self.echo(cadre.Batch({"x": floats(1, 2)}))
            self.assertEqual(back.tensors["x"].data.cast("f").tolist(), [1, 2])


class Actors(GroupCase):
    """Split for two ranks, and joined; a rank adds its number to "a"."""

    module, ranks, of = "TENSOR_SO", 2, "Actor"

    def test_rows_are_split_and_joined(self):
        back = self.group.call("add", cadre.Batch({"a": floats(0, 0, 0, 0)}, columns={"row": [0, 1, 2, 3]}))
        self.assertEqual(back.tensors["a"].data.cast("f").tolist(), [0, 0, 1, 1])
        self.assertEqual(back.columns, {"row": [0, 1, 2, 3]})

    def test_padding_is_taken_off_again(self):
        batch = cadre.Batch({"a": floats(0, 0, 0)})
        self.fails(cadre.Invalid, "3 rows cannot be split into 2 equal pieces", self.group.call, "add", batch)
        back = self.group.call("add", batch, pad=True)
        self.assertEqual(back.tensors["a"].data.cast("f").tolist(), [0, 0, 1])

    def test_a_mode_that_does_not_join_gives_a_list(self):
        parts = self.group.call("add", cadre.Batch({"a": floats(0, 0)}), dispatch="DP_COMPUTE_METRIC")
        self.assertEqual([p.tensors["a"].data.cast("f").tolist() for p in parts], [[0], [1]])

    def test_a_batch_for_each_rank(self):
        parts = self.group.call("add", per_rank=[cadre.Batch({"a": floats(5)}), cadre.Batch({"a": floats(6, 7)})])
        self.assertEqual([p.tensors["a"].data.cast("f").tolist() for p in parts], [[5], [7, 8]])
        mixed = self.group.call("add", per_rank=[cadre.Batch({"a": floats(5)}), {"a": [1]}])
        self.assertEqual(mixed[1], {"a": [2]})

    def test_what_has_no_rows_is_refused_before_it_is_sent(self):
        self.fails(TypeError, r"add\(\) is DP_COMPUTE_PROTO, and none of its arguments has rows", self.group.call, "add",
                   {1, 2})
        self.fails(cadre.Invalid, "argument 0 of add.* has 3 rows, which cannot be split into 2", self.group.call, "add",
                   [{1}, {2}, {3}])
        self.fails(cadre.Invalid, "a pickled object of Python", self.group.call, "add", [{1}, {2}])

    def test_a_batch_as_json(self):
        self.assertEqual(self.group.call("add", args={"a": [1, 2]}), {"a": [1, 3]})

    def test_pieces_go_from_rank_to_rank(self):
        ref = self.group.call("add", cadre.Batch({"a": floats(0, 0)}), keep=True)
        back = self.group.call("add", ref)
        self.assertEqual(back.tensors["a"].data.cast("f").tolist(), [0, 2])


class Roles(GroupCase):
    """Two objects in each process, each called as a group."""

    module, ranks = "TENSOR_SO", 2
    of = [{"name": "actor", "class": "Actor"}, {"name": "critic", "class": "Critic", "init": {"b": 10}}]

    def test_a_role_is_called_as_a_group(self):
        actor, critic = self.client.group("g", role="actor"), self.client.group("g", role="critic")
        self.assertEqual(actor.call("add", args={"a": [0, 0]}), {"a": [0, 1]})
        self.assertEqual(critic.call("sub", args={"a": [0, 0]}), {"a": [-10, -10]})
        with actor.call("add", cadre.Batch({"a": floats(0, 0)}), keep=True) as ref:  # not by way of this program
            self.assertEqual(critic.call("sub", ref).tensors["a"].data.cast("f").tolist(), [-10, -9])
        self.assertEqual([r["name"] for r in actor.info()["roles"]], ["actor", "critic"])
        self.fails(cadre.Invalid, "roles", self.group.call, "add", args={"a": [0, 0]})
        self.fails(cadre.NotFound, "nobody", self.client.group("g", role="nobody").call, "add")


if __name__ == "__main__":
    if WITH_NUMPY:
        with_packages("small")
    main()
