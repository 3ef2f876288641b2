#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arguments and results as they travel: what becomes JSON, a batch or a pickle, and what comes out of it again.

    test_python_value.py                  needs the standard library only
    test_python_value.py --with PACKAGE   with numpy or torch; 77 if deploy/python.sh cannot bring it
"""

import array
import collections
import ctypes
import dataclasses
import gc
import sys
import threading
import types
import unittest
import unittest.mock
import weakref

import cadre
from cadre import _library, _split, _value
from cadre._value import _room
from python_case import main
from safetensors_case import with_packages

PACKAGE = sys.argv[2] if sys.argv[1:2] == ["--with"] else None


@dataclasses.dataclass
class Point:
    x: int
    more: object = None


Pair = collections.namedtuple("Pair", "a b")


class Unpicklable:
    def __init__(self):
        self.name, self.lock = "log", threading.Lock()


def joined(body):
    data = bytearray(body.len)
    body.write(memoryview(data))
    return data


def sent(*args, **kwargs):
    """(kind, args, kwargs) as the called worker gets them."""
    body = _value.encode_call(args, kwargs, "f")
    return (body.kind, *_value.decode_call(joined(body), True))


def returned(value):
    body = _value.encode_result(value, "f")
    return body.kind, _value.decode(joined(body), True)


class Kinds(unittest.TestCase):
    def test_what_json_has_is_json(self):
        self.assertEqual(sent(1, "ä\0b", [None, True, 2.5], {"a": {"b": []}}),
                         ("json", (1, "ä\0b", [None, True, 2.5], {"a": {"b": []}}), {}))
        self.assertEqual(sent(x=1, y=[2]), ("json", (), {"x": 1, "y": [2]}))
        self.assertEqual(sent(), ("json", (), {}))
        self.assertEqual(sent((1, (2,)))[:2], ("json", ([1, [2]],)))

    def test_what_json_would_change_is_a_pickle(self):
        for value in ({1: 2}, {"a": {None: 1}}, [float("inf")], b"\0\1", {1, 2}, 1 << 64, -(1 << 63) - 1, 1j, Point(3),
                      collections.OrderedDict(a=1), Pair(1, 2)):
            self.assertEqual(returned(value), ("pickle", value))
        kind, (value,), _ = sent(float("nan"))
        self.assertEqual((kind, value != value), ("pickle", True))
        self.assertEqual(sent(1, x=2), ("pickle", (1,), {"x": 2}))
        self.assertEqual(returned((1 << 64) - 1), ("json", (1 << 64) - 1))

    def test_what_is_too_deep_for_json_is_a_pickle(self):
        value = []
        for _ in range(200):
            value = [value]
        self.assertEqual(returned(value), ("pickle", value))

    def test_tensors_lie_beside_the_pickle_with_their_dtypes(self):
        x = cadre.Tensor("BF16", (2, 3), bytes(range(12)))
        scalar = cadre.Tensor("F32", (), b"\0\0\x80\x3f")
        body = _value.encode_result({"x": x, "same": x, "scalar": scalar, "p": Point(1, x)}, "f")
        self.assertEqual(sum(memoryview(p).obj is x.data.obj for p in body.parts), 1)  # where it lies
        data = joined(body)
        document = _value._document.parse(memoryview(data))
        tensors = document.read()
        self.assertEqual(document.metadata, {"cadre.object": "pickle5"})
        self.assertEqual({(t.dtype, t.shape) for name, t in tensors.items() if name != "cadre.object"},
                         {("BF16", (2, 3)), ("U8", (4,))})
        back = _value.decode(data, True)
        self.assertIs(back["x"], back["same"])
        self.assertIs(back["x"], back["p"].more)
        self.assertEqual((back["x"].dtype, back["x"].shape, bytes(back["x"].data)), ("BF16", (2, 3), bytes(range(12))))
        self.assertIs(back["x"].data.obj, data)  # read where it lies
        self.assertEqual((back["scalar"].shape, bytes(back["scalar"].data)), ((), b"\0\0\x80\x3f"))

    def test_buffers_of_others_stay_in_the_stream(self):
        value = [array.array("f", [1, 2]), cadre.Tensor("U8", (2,), b"ab"), bytearray(b"xyz"), array.array("b", b"1")]
        kind, back = returned(value)
        self.assertEqual((kind, back[0], bytes(back[1].data), back[2:]), ("pickle", value[0], b"ab", value[2:]))

    def test_what_does_not_pickle_is_named(self):
        with self.assertRaisesRegex(TypeError, r"the arguments of f\(\) cannot be sent: it\[0\]\[0\]\['a'\]\.lock \(a lock\)"):
            sent({"a": Unpicklable()})
        with self.assertRaisesRegex(TypeError, r"the result of f\(\) cannot be sent: it\[1\] \(a lock\)"):
            _value.encode_result([{1}, threading.Lock()], "f")

    def test_several_bodies_are_one(self):
        bodies = [_value.encode_result(v, "f") for v in ([1], {1}, cadre.Batch({"x": array.array("f", [1])}))]
        back = _value.decode(joined(_value.list_of(bodies)), True)
        self.assertEqual((back[:2], back[2].rows), ([[1], {1}], 1))

    def test_without_trust_nothing_is_unpickled(self):
        data = joined(_value.encode_result({1, 2}, "f"))
        for decode in _value.decode, _value.decode_call:
            with self.assertRaisesRegex(cadre.Forbidden, "pickled"):
                decode(data, False)
        self.assertEqual(_value.decode(joined(_value.encode_result([1], "f")), False), [1])

    def test_a_mangled_document_is_an_error(self):
        data = joined(_value.encode_result({1, 2}, "f"))
        for change, length in ((8, 9), (9, len(data)), (0, 20)):
            bad = bytearray(data[:length])
            bad[change] ^= 0x55
            with self.assertRaises(cadre.Proto):
                _value.decode(bad, True)

    def test_what_may_not_be_written_is_copied(self):
        data = bytes(joined(_value.encode_result(cadre.Batch({"x": array.array("f", [1, 2])}), "f")))
        back = _value.decode(data, False)
        back.tensors["x"].data[0] = 7
        self.assertEqual(_value.decode(data, False).tensors["x"].data[0], 0)

    def test_memory_of_long_values_is_used_again(self):
        size = 5 << 20
        first = _value.room(size)
        at = ctypes.addressof(first)
        view = memoryview(first).cast("B")
        del first
        other = _value.room(size)
        self.assertNotEqual(ctypes.addressof(other), at)  # the view still needs it
        del view
        again = _value.room(size)
        self.assertEqual(ctypes.addressof(again), at)
        self.assertEqual(len(memoryview(again)), size)
        copy = _value.copy(bytes(size - 1) + b"x")
        self.assertEqual((len(copy), copy[-1:], copy.readonly), (size, b"x", False))

    def test_little_memory_is_kept(self):
        many = [_value.room(40 << 20) for _ in range(5)]
        many.clear()
        self.assertLessEqual(sum(map(len, _room._kept)), 128 << 20)

    def test_batches_are_checked_before_they_are_sent(self):
        for error, pattern, batch in (
                (cadre.Invalid, "column 'p' of a batch has 1 rows, and tensor 'x' has 2",
                 cadre.Batch({"x": array.array("f", [1, 2])}, columns={"p": [1]})),
                (ValueError, "not __metadata__", cadre.Batch({"__metadata__": array.array("f", [1])}))):
            with self.assertRaisesRegex(error, pattern):
                _value.encode_result(batch, "f")


class Splitting(unittest.TestCase):
    """The program splits what the proxy cannot split, and joins the results."""

    def test_each_rank_gets_its_element_of_each_list(self):
        pieces = _split.split("ALL_TO_ALL", ([{1}, {2}],), {"y": (3, 4)}, 2, "f()")
        self.assertEqual(pieces, [(({1},), {"y": 3}), (({2},), {"y": 4})])
        for mode in "ALL_TO_ALL", "DP_COMPUTE":
            with self.assertRaisesRegex(cadre.Invalid, r"argument 0 of f\(\) must be a list with one element for each of "
                                                       r"the 2 ranks, and is a list of 3"):
                _split.split(mode, ([{1}, {2}, {3}],), {}, 2, "f()")

    def test_rows_are_cut_and_all_else_goes_to_all(self):
        batch = cadre.Batch({"x": array.array("f", [1, 2, 3, 4])}, columns={"p": list("abcd")}, meta={"m": 1})
        pieces = _split.split("DP_COMPUTE_PROTO", (batch, {7}), {"z": [{1}, {2}]}, 2, "f()")
        self.assertEqual([(a[1], k) for a, k in pieces], [({7}, {"z": [{1}]}), ({7}, {"z": [{2}]})])
        back = _split.join([a[0] for a, _ in pieces])
        self.assertEqual((bytes(back.tensors["x"].data), back.meta), (bytes(batch.tensors["x"].data), {"m": 1}))
        self.assertEqual([a[0].columns["p"] for a, _ in pieces], [["a", "b"], ["c", "d"]])
        for error, pattern, mode, args in (
                (cadre.Invalid, "3 rows, which cannot be split into 2 equal", "DP_COMPUTE_PROTO", ([{1}, {2}, {3}],)),
                (TypeError, "none of its arguments has rows", "DP_COMPUTE_METRIC", ({1},)),
                (TypeError, r"f\(\) is 3D_PROTO, .* per_rank", "3D_PROTO", ([{1}, {2}],))):
            with self.assertRaisesRegex(error, pattern):
                _split.split(mode, args, {}, 2, "f()")

    def test_every_mode_is_served_as_its_row_in_the_table_says(self):
        for mode, row in _library.DISPATCH_MODES.items():
            batch = cadre.Batch({"x": array.array("f", [1, 2])}, columns={"p": ["a", "b"]})
            args = batch if row.pieces == "ROWS" else [{1}, {2}]
            self.assertEqual(_split.goes_whole(mode), row.pieces == "WHOLE")
            if row.rule == "each":
                self.assertEqual(len(_split.split(mode, (args,), {}, 2, "f()")), 2)
                self.assertEqual(_split.joins(mode), row.results == "JOINED")
            else:
                self.assertFalse(_split.joins(mode))
                with self.assertRaisesRegex(TypeError, mode):
                    _split.split(mode, (args,), {}, 2, "f()")

    def test_results_that_do_not_fit_are_refused(self):
        with self.assertRaisesRegex(cadre.Invalid, "ranks returned int, list"):
            _split.join([[1], 2])
        with self.assertRaisesRegex(cadre.Invalid, "a int has no rows to join"):
            _split.join([1, 2])
        with self.assertRaisesRegex(cadre.Invalid, "a Tensor has no rows to join"):
            _split.join([cadre.Tensor("U8", (), b"1")] * 2)
        floats, doubles = array.array("f", [1, 2]), array.array("d", [1])
        for pattern, batches in (
                (r"tensor 'x' is F32\[2\] of rank 0, F64\[1\] of rank 1", [{"x": floats}, {"x": doubles}]),
                (r"tensor 'x' is U8\[2, 2\] of rank 0, U8\[1, 4\] of rank 2",
                 [{"x": cadre.Tensor("U8", shape, b"abcd")} for shape in ((2, 2), (2, 2), (1, 4))]),
                ("rank 1 has tensor 'y', rank 0 has not", [{"x": floats}, {"x": floats, "y": floats}]),
                ("rank 0 has tensor 'y', rank 1 has not", [{"x": floats, "y": floats}, {"x": floats}])):
            with self.assertRaisesRegex(cadre.Invalid, f"do not fit together: {pattern}") as e:
                _split.join([cadre.Batch(tensors, columns={"set": [{1}] * 2}) for tensors in batches])
            self.assertTrue(e.exception.may_have_run)
        with self.assertRaisesRegex(cadre.Invalid, "rank 0 has column 'p', rank 1 has not"):
            _split.join([cadre.Batch(columns={"p": [{1}]}), cadre.Batch()])

    def test_a_batch_without_rows_is_split_too(self):
        batch = cadre.Batch({"x": cadre.Tensor("F32", (0, 4), b"")}, columns={"p": []}, meta={"set": {1}})
        pieces = [args[0] for args, _ in _split.split("DP_COMPUTE_PROTO", (batch,), {}, 2, "f()")]
        self.assertEqual([(p.tensors["x"].dtype, p.tensors["x"].shape) for p in pieces], [("F32", (0, 4))] * 2)
        self.assertEqual(_split.join(pieces).tensors["x"].shape, (0, 4))

    def test_rows_that_are_no_whole_bytes_are_refused(self):
        batch = cadre.Batch({"x": cadre.Tensor("F4", (4, 3), bytes(6))})
        with self.assertRaisesRegex(cadre.Invalid, r"the rows of F4\[4, 3\] cannot be split or joined: 12 bits") as e:
            _split.split("DP_COMPUTE_PROTO", (batch,), {}, 2, "f()")
        self.assertFalse(e.exception.may_have_run)
        with self.assertRaisesRegex(cadre.Invalid, "12 bits are no whole bytes"):  # 2 + 3 bytes, as many as 3 rows have
            _split.join([cadre.Tensor("F4", (1, 3), bytes(2)), cadre.Tensor("F4", (2, 3), bytes(3))])


if PACKAGE == "numpy":
    class Numpy(unittest.TestCase):
        def test_arrays_anywhere_in_a_value_come_back_as_they_were(self):
            import numpy

            arrays = [numpy.arange(6).reshape(2, 3), numpy.zeros((), "f4"), numpy.ones((0, 2), "i1"), numpy.array([1j], "c8"),
                      numpy.arange(6, dtype=">i4"), numpy.array(["a", "bc"]), numpy.array([{1}, None], object),
                      numpy.arange(8, dtype="f2")[::2], numpy.asfortranarray(numpy.eye(3)), numpy.array([True, False])]
            kind, back = returned({"a": arrays})
            self.assertEqual(kind, "pickle")
            for a, b in zip(arrays, back["a"]):
                self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
                self.assertEqual(a.tolist(), b.tolist())
                b[...] = b  # may be written

        def test_arrays_that_do_not_fit_are_not_joined(self):
            import numpy

            for pattern, arrays in (
                    (r"x is int64\[2\] of rank 0, float32\[1\] of rank 1", (numpy.zeros(2, "i8"), numpy.zeros(1, "f4"))),
                    (r"x is int64\[1, 2\] of rank 0, int64\[1, 3\] of rank 1", (numpy.zeros((1, 2), "i8"), numpy.zeros((1, 3), "i8"))),
                    (r"x is int64\[2\] of rank 0, int64\[2, 1\] of rank 1", (numpy.zeros(2, "i8"), numpy.zeros((2, 1), "i8"))),
                    (r"x is <U1\[1\] of rank 0, \|S1\[1\] of rank 1", (numpy.array(["a"]), numpy.array([b"a"])))):
                with self.assertRaisesRegex(cadre.Invalid, f"do not fit together: {pattern}") as e:
                    _split.join(arrays, "x")
                self.assertTrue(e.exception.may_have_run)
            with self.assertRaisesRegex(cadre.Invalid, "a ndarray has no rows to join") as e:
                _split.join([numpy.array(1), numpy.array(2)])
            self.assertTrue(e.exception.may_have_run)
            self.assertEqual(_split.join([numpy.array(["a"]), numpy.array(["bcd"])]).tolist(), ["a", "bcd"])
            self.assertEqual(_split.join([numpy.ones((1, 2)), numpy.ones((0, 2))]).tolist(), [[1, 1]])

        def test_a_long_array_is_not_copied_on_its_way(self):
            import numpy

            x = numpy.arange(1 << 20)
            body = _value.encode_call((x, 1), {}, "f")
            self.assertTrue(any(numpy.shares_memory(numpy.frombuffer(p, "u1"), x) for p in body.parts))
            data = joined(body)
            (back, _), _ = _value.decode_call(data, True)
            self.assertTrue(numpy.shares_memory(back, numpy.frombuffer(data, "u1")))

        def test_arrays_alone_are_as_good_each_time(self):
            import numpy

            def calls(seed):
                a = numpy.arange(6, dtype="f8").reshape(2, 3) + seed
                b, c = (a[0] > seed).astype("i1"), numpy.full((), seed, "i2")
                empty, strange = numpy.zeros((0, 2), "f4"), numpy.arange(3, dtype=">i4") + seed
                return [((a,), {}), ((b, a, c), {}), ((a, b), {}), ((a,), {"b": b}), ((), {"b": b, "a": a}), ((a, a), {}),
                        ((a.T, empty), {}), ((a[:, ::2],), {}), ((strange,), {}), ((a, strange), {}), ((strange.view(">u4"),), {}),
                        ((a.astype("f4"),), {}), ((c,), {}), ((a.astype("c16"),), {}), ((numpy.array([seed], object), a), {})]

            for seed in range(5):
                for args, kwargs in calls(seed):
                    kind, back, named = sent(*args, **kwargs)
                    self.assertEqual((kind, len(back), list(named)), ("pickle", len(args), list(kwargs)))
                    for x, y in zip((*args, *kwargs.values()), (*back, *named.values())):
                        self.assertIs(type(y), numpy.ndarray)
                        self.assertEqual((x.dtype, x.shape, x.tolist()), (y.dtype, y.shape, y.tolist()))
                        y[...] = y  # may be written
                    if len(args) == 2 and args[0] is args[1]:
                        self.assertIs(back[0], back[1])
                    if args and not kwargs:
                        y = returned(args[0])[1]
                        self.assertEqual((args[0].dtype, args[0].tolist()), (y.dtype, y.tolist()))

        def test_what_comes_again_and_again_is_the_same_each_time(self):
            import numpy

            class Sub(numpy.ndarray):
                pass

            class Named:  # is an array by its name only
                def __init__(self, dtype):
                    self.dtype, self.shape = numpy.dtype(dtype), (1,)

                def __reduce__(self):
                    return list, ((1, 2),)

            Named.__name__ = "ndarray"
            base = numpy.arange(24, dtype="f4").reshape(4, 6)
            fixed = numpy.arange(5)
            fixed.flags.writeable = False
            pair = numpy.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
            inside = numpy.empty(2, object)
            inside[:] = [base, None]
            both = numpy.empty(2, object)
            both[:] = [base, fixed]
            alone = [numpy.array([1j, 2]), numpy.array(["a", "bc"]), numpy.array([b"xy"]), numpy.array(["2026-01-02"], "M8[D]"),
                     numpy.array([3], "m8[s]"), numpy.arange(3, dtype=">i4"), numpy.array([1.5], ">f8"), pair,
                     pair.view(numpy.recarray), numpy.arange(3, dtype="g"), numpy.array([{1}, None], object), inside, both,
                     base, base.T, base[:, ::2], base[1], base[::-1], numpy.asfortranarray(base), fixed, base.view(Sub),
                     numpy.zeros((0, 2)), numpy.zeros(()), numpy.ones((1,) * 9), numpy.array([True]), numpy.array([1j], "c8"),
                     numpy.ma.array([1, 2], mask=[0, 1])]
            mixed = [(base, 1), (1.5, base), (base, None, fixed), (base[:2], base[2:]), (base, base), (fixed, base.T, fixed),
                     (base, numpy.float32(2)), (fixed, numpy.array([1j])), (numpy.zeros((0, 3)), fixed), ([base], fixed),
                     (inside, base), (base.view(Sub), base), (numpy.arange(3, dtype=">i4"), fixed)]

            def same(x, y):
                self.assertIs(type(y), type(x))
                if isinstance(x, numpy.ndarray):
                    self.assertEqual((x.dtype, x.shape), (y.dtype, y.shape))
                    x, y = x.tolist(), y.tolist()
                if isinstance(x, (list, tuple)):
                    self.assertEqual(len(x), len(y))
                    for a, b in zip(x, y):
                        same(a, b)
                else:
                    self.assertEqual(x, y)

            for _ in range(5):
                for value in alone:
                    same(value, returned(value)[1])
                    same((value,), sent(value)[1])
                    same(value, sent(x=value)[2]["x"])
                for args in mixed:
                    back = sent(*args)[1]
                    same(args, back)
                    if args[0] is args[-1]:
                        self.assertIs(back[0], back[-1])
                for dtype in "f4", "f8":
                    self.assertEqual(returned(Named(dtype))[1], [1, 2])

        def test_what_lies_in_the_stream_is_not_pickled_where_it_comes(self):
            import numpy

            for value in numpy.array([{1}, None], object), numpy.array([1j, 2]):
                data = joined(_value.encode_result(value))
                with unittest.mock.patch.object(_value._pickle, "write") as write:
                    for _ in range(4):
                        self.assertEqual(_value.decode(bytearray(data), True).tolist(), value.tolist())
                write.assert_not_called()

        def test_a_pickle_is_not_taken_for_another_one_with_the_same_head(self):
            import numpy

            x = numpy.arange(4)
            for _ in range(4):
                self.assertEqual(returned(x)[1].tolist(), [0, 1, 2, 3])
            head, *values, stream = _value._pickle.write(x, "it")
            other = bytes(stream).replace(b"_of_numpy", b"_of_torch")
            self.assertEqual(len(other), len(stream))
            with self.assertRaisesRegex(cadre.Proto, "_of_torch"):
                _value.decode(bytearray(b"".join([head, *map(bytes, values), other])), True)

        def test_no_more_are_remembered_than_needed(self):
            import numpy

            for n in range(600):
                for _ in range(3):
                    returned(numpy.zeros(n))
            self.assertLessEqual(max(len(_value._arrays._written), len(_value._arrays._came)), 256)
            _value._arrays._written.clear()
            sent(**{"x" * 5000: numpy.zeros(1)})
            sent(*(numpy.zeros(n) for n in range(200)))
            self.assertEqual(len(_value._arrays._written), 0)

        def test_what_was_sent_is_free_at_once(self):  # not at the next collection of garbage: it may be long
            import numpy

            x = numpy.arange(1 << 20)
            kept = weakref.ref(x)
            gc.disable()
            try:
                body = _value.encode_result([x, Point(1)])
                _value.decode(joined(body), True)
                del x, body
                self.assertIsNone(kept())
            finally:
                gc.enable()

        def test_numbers_are_json_and_arrays_are_not(self):
            import numpy

            self.assertEqual(sent(numpy.int64(3), [numpy.float32(0.5), numpy.float64(1)]), ("json", (3, [0.5, 1]), {}))
            self.assertEqual(returned(numpy.float32("nan"))[0], "pickle")
            self.assertEqual(sent(numpy.zeros(2))[0], "pickle")
            for value in (numpy.datetime64("2026-01-02T03", "ns"), numpy.datetime64("NaT"), numpy.timedelta64(3),
                          numpy.timedelta64(3, "ns"), numpy.timedelta64("NaT")):  # item() of them is a number or None
                for whole in value, [value]:
                    kind, back = returned(whole)
                    self.assertEqual((kind, repr(back)), ("pickle", repr(whole)))  # NaT does not equal itself
            with self.assertRaisesRegex(TypeError, "datetime64 is not JSON"):
                _value.encode_result(cadre.Batch(columns={"p": [numpy.datetime64("NaT")]}), "f")

        def test_strided_arrays_of_dtypes_that_numpy_knows_by_name_only(self):
            import numpy

            class Named(numpy.ndarray):  # as ml_dtypes has them
                name = "bfloat16"
                dtype = property(lambda self: types.SimpleNamespace(name=self.name), numpy.ndarray.dtype.__set__)

            class Byte(Named):
                name = "float8_e5m2"

            whole = numpy.arange(12, dtype="<u2").reshape(3, 4)
            for x in whole, whole.view("u1"):
                for part in (x, x[0, ::2], x[::-1], x[1, ::-1], x[:, ::2], x.T, x[:0], x[1, 1:2].reshape(())):
                    tensor = cadre.Tensor.of(part.view(Byte if x.itemsize == 1 else Named))
                    dtype = "F8_E5M2" if x.itemsize == 1 else "BF16"
                    self.assertEqual((tensor.dtype, tensor.shape), (dtype, part.shape))
                    self.assertEqual(bytes(tensor.data), part.tobytes())
            self.assertTrue(numpy.shares_memory(numpy.frombuffer(cadre.Tensor.of(whole.view(Named)).data, "u1"), whole))


if PACKAGE == "torch":
    class Torch(unittest.TestCase):
        def test_tensors_anywhere_in_a_value_come_back_as_they_were(self):
            import torch

            tensors = [torch.arange(6).reshape(2, 3), torch.tensor(1.5), torch.zeros(0, 2), torch.ones(3, dtype=torch.bfloat16),
                       torch.arange(4.).to(torch.float8_e4m3fn), torch.arange(6.).reshape(2, 3).T, torch.tensor([True]),
                       torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2)), torch.tensor([1j]).conj(),
                       torch.eye(2).to_sparse(), torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])]
            kind, back = returned({"a": tensors})
            self.assertEqual(kind, "pickle")
            for a, b in zip(tensors, back["a"]):
                self.assertIs(type(b), type(a))
                self.assertEqual((a.dtype, a.requires_grad, str(a.layout)), (b.dtype, b.requires_grad, str(b.layout)))
                self.assertEqual(str(a), str(b))

        def test_a_batch_has_tensors_of_torch(self):
            import torch

            kind, back = returned(cadre.Batch({"x": torch.ones(2, dtype=torch.bfloat16), "y": torch.arange(2)}))
            self.assertEqual((kind, back.tensors["x"].dtype), ("batch", "BF16"))
            self.assertTrue(torch.equal(back.tensors["x"].torch(), torch.ones(2, dtype=torch.bfloat16)))

        def test_a_dict_of_tensors_becomes_a_batch_and_is_one_again(self):
            import tensordict
            import torch

            value = tensordict.TensorDict({"x": torch.arange(6).reshape(3, 2), "y": torch.ones(3)}, batch_size=[3])
            for kind, back in (returned(value), (sent(value)[0], sent(value)[1][0])):
                self.assertEqual((kind, type(back), back.batch_size), ("batch", tensordict.TensorDict, value.batch_size))
                self.assertTrue(torch.equal(back["x"], value["x"]))
            nested = tensordict.TensorDict({"a": {"b": torch.ones(3)}}, batch_size=[3])
            kind, back = returned(nested)
            self.assertEqual((kind, back["a", "b"].tolist()), ("pickle", [1, 1, 1]))

        def test_a_dataproto_becomes_a_batch_and_is_one_again(self):
            import numpy
            import tensordict
            import torch

            module = types.ModuleType("verl")
            sys.modules["verl"] = module
            self.addCleanup(sys.modules.pop, "verl")

            class DataProto:  # the part of verl's own that is used
                def __init__(self, batch, non_tensor_batch, meta_info):
                    self.batch, self.non_tensor_batch, self.meta_info = batch, non_tensor_batch, meta_info

                @classmethod
                def from_dict(cls, tensors, non_tensors, meta_info):
                    rows = len(next(iter(tensors.values())))
                    return cls(tensordict.TensorDict(tensors, batch_size=[rows]), non_tensors, meta_info)

            DataProto.__module__, DataProto.__qualname__, module.DataProto = "verl", "DataProto", DataProto
            names = numpy.array(["a", {"b": [1]}], dtype=object)
            data = DataProto.from_dict({"x": torch.ones(2, 3, dtype=torch.bfloat16)}, {"names": names}, {"t": 0.5})
            kind, back = returned(data)
            self.assertEqual((kind, type(back), back.meta_info), ("batch", DataProto, {"t": 0.5}))
            self.assertEqual((back.non_tensor_batch["names"].tolist(), back.batch["x"].dtype),
                             (names.tolist(), torch.bfloat16))
            data.non_tensor_batch["names"] = numpy.array([{1}, None], dtype=object)  # no JSON
            kind, back = returned(data)
            self.assertEqual((kind, type(back), back.non_tensor_batch["names"].tolist()),
                             ("pickle", DataProto, [{1}, None]))
            self.assertTrue(torch.equal(back.batch["x"], data.batch["x"]))

        def test_jagged_tensors_are_split_and_joined(self):
            import tensordict
            import torch

            rows = [torch.arange(n) for n in (1, 3, 2, 4)]
            jagged = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
            value = tensordict.TensorDict({"ids": jagged, "x": torch.arange(8).reshape(4, 2)}, batch_size=[4])
            pieces = [args[0] for args, _ in _split.split("DP_COMPUTE_PROTO", (value,), {}, 2, "f()")]
            pieces = [sent(piece)[1][0] for piece in pieces]  # as ranks get them
            self.assertEqual([t.tolist() for t in pieces[1]["ids"].unbind()], [[0, 1], [0, 1, 2, 3]])
            back = _split.join(pieces)
            self.assertEqual([t.tolist() for t in back["ids"].unbind()], [t.tolist() for t in rows])
            self.assertTrue(torch.equal(back["x"], value["x"]))

        def test_tensors_that_do_not_fit_are_not_joined(self):
            import torch

            with self.assertRaisesRegex(cadre.Invalid, r"x is torch.int64\[1\] of rank 0, torch.float32\[1\] of rank 1"):
                _split.join([torch.tensor([1]), torch.tensor([1.0])], "x")
            with self.assertRaisesRegex(cadre.Invalid, "a Tensor has no rows to join"):
                _split.join([torch.tensor(1), torch.tensor(2)])

        def test_no_copy_is_made(self):
            import torch

            x = torch.arange(1 << 20)
            body = _value.encode_call((x, 1), {}, "f")
            self.assertTrue(any(_value._tensor._address(p) == x.data_ptr() for p in body.parts[1:] if not p.readonly))
            data = joined(body)
            (back, _), _ = _value.decode_call(data, True)
            at = back.data_ptr() - _value._tensor._address(memoryview(data))
            self.assertTrue(0 < at < len(data))


if __name__ == "__main__":
    if PACKAGE:
        with_packages("large" if PACKAGE == "torch" else "small")
    main()
