# SPDX-License-Identifier: Apache-2.0
"""Splits arguments that the proxy cannot split, because they are pickles, and joins their results: jagged tensors, columns
of objects, several batches in one call.
"""

import math

from . import _errors
from . import _library as lib
from ._value import DTYPES, Batch, Tensor
from ._value._tensor import module_of


def goes_whole(mode):
    """Whether each rank gets all arguments."""
    return lib.DISPATCH_MODES[mode].pieces == "WHOLE"


def split(mode, args, kwargs, n, what):
    """Returns [(args, kwargs)] for n ranks."""
    of = lib.DISPATCH_MODES[mode]
    if of.rule == "each" and of.pieces == "ELEMENTS":
        check = _check_each
    elif of.rule == "each" and of.pieces == "ROWS":
        check = _check_rows
        if not any(_rows_of(v) is not None for v in (*args, *kwargs.values())):
            raise TypeError(f"{what} is {mode}, and none of its arguments has rows")
    else:
        raise TypeError(f"{what} is {mode}, and its arguments are neither JSON nor one batch, which the proxy splits: "
                        "give the arguments of each rank, per_rank=[...]")
    by_position = [check(v, f"argument {i} of {what}", n) for i, v in enumerate(args)]
    by_name = {name: check(v, f"argument {name!r} of {what}", n) for name, v in kwargs.items()}
    return [(tuple(v[i] for v in by_position), {name: v[i] for name, v in by_name.items()}) for i in range(n)]


def joins(mode):
    of = lib.DISPATCH_MODES[mode]
    return of.rule == "each" and of.results == "JOINED"


def _check_each(value, name, n):
    if not isinstance(value, (list, tuple)) or len(value) != n:
        size = f" of {len(value)}" if hasattr(value, "__len__") else ""
        raise _errors.Invalid(f"{name} must be a list with one element for each of the {n} ranks, and is a "
                              f"{type(value).__name__}{size}")
    return value


def _check_rows(value, name, n):
    rows = _rows_of(value)
    if rows is None:
        return [value] * n  # the same for all
    if rows % n:
        raise _errors.Invalid(f"{name} has {rows} rows, which cannot be split into {n} equal pieces: send a multiple")
    each = rows // n
    return [_rows(value, i * each, (i + 1) * each) for i in range(n)]


def _is(value, package, name):
    return module_of(value) == package and type(value).__name__ == name


def _is_tensor(value):
    return module_of(value) == "torch" and hasattr(value, "data_ptr")


def _rows_of(value):
    if isinstance(value, Batch):
        return value.rows
    if _is(value, "verl", "DataProto"):
        columns = list(value.non_tensor_batch.values())
        return value.batch.batch_size[0] if value.batch is not None else len(columns[0]) if columns else None
    if _is(value, "tensordict", "TensorDict"):
        return value.batch_size[0] if value.batch_size else None
    if _is_tensor(value):
        return value.size(0) if value.dim() else None
    if isinstance(value, Tensor) or _is(value, "numpy", "ndarray"):
        return value.shape[0] if value.shape else None
    return len(value) if isinstance(value, list) else None


def _rows(value, a, b):
    if isinstance(value, Batch):
        return Batch({name: _rows(t, a, b) for name, t in value.tensors.items()},
                     columns={name: c[a:b] for name, c in value.columns.items()}, meta=value.meta)
    if isinstance(value, Tensor):
        row = _row_size(value)
        return Tensor(value.dtype, (b - a, *value.shape[1:]), value.data[a * row:b * row])
    if _is(value, "verl", "DataProto"):
        return type(value)(None if value.batch is None else _rows(value.batch, a, b),
                           {name: c[a:b] for name, c in value.non_tensor_batch.items()}, value.meta_info)
    if _is(value, "tensordict", "TensorDict"):
        return type(value)({name: _rows(t, a, b) for name, t in value.items()}, batch_size=[b - a])
    if _is_tensor(value) and value.is_nested:
        return _nested(value.unbind()[a:b], value)
    return value[a:b]


def _row_size(tensor, **more):
    """In bytes. more: of the error."""
    bits = math.prod(tensor.shape[1:]) * DTYPES[tensor.dtype][0]
    if bits % 8:
        raise _errors.Invalid(f"the rows of {_words(tensor)} cannot be split or joined: {bits} bits are no whole bytes",
                              **more)
    return bits // 8


def _words(tensor):
    return f"{tensor.dtype}{list(tensor.shape)}"


def _nested(parts, like):
    import torch

    return torch.nested.as_nested_tensor(list(parts), layout=like.layout)


def _misfit(words):
    return _errors.Invalid(f"the results do not fit together: {words}", may_have_run=True)


def _are_alike(a, b):
    """Whether two dtypes are the same. Of text and bytes in numpy, the longest value decides the dtype, so it may differ."""
    kind = getattr(a, "kind", "")
    return a == b or kind in ("U", "S") and kind == getattr(b, "kind", "")


def _check_alike(name, values):
    """All but the rows of tensors must be alike. An error says the same as the proxy, which joins batches."""
    first = values[0]
    for rank, v in enumerate(values):
        if not _are_alike(v.dtype, first.dtype) or len(v.shape) != len(first.shape) or v.shape[1:] != first.shape[1:]:
            raise _misfit(f"{name} is {_words(first)} of rank 0, {_words(v)} of rank {rank}; only the first "
                          "dimension may differ")


def _concatenated(values):
    """One of tensors or arrays that are alike."""
    first = values[0]
    if isinstance(first, Tensor):
        _row_size(first, may_have_run=True)
        rows = sum(v.shape[0] for v in values)
        return Tensor(first.dtype, (rows, *first.shape[1:]), b"".join(v.data for v in values))
    if _is_tensor(first):
        import torch

        return torch.cat(values)
    import numpy

    return numpy.concatenate(values)


def _join_named(what, values):
    """Joins the dicts of ranks: of each name, what they have by it."""
    first = values[0]
    for rank, v in enumerate(values):
        for name in set(first) ^ set(v):
            has, lacks = (0, rank) if name in first else (rank, 0)
            raise _misfit(f"rank {has} has {what} {name!r}, rank {lacks} has not")
    return {name: join([v[name] for v in values], f"{what} {name!r}") for name in first}


def join(values, name="a tensor"):
    """Joins the results of ranks for their rows into one, in their order."""
    first = values[0]
    if any(type(v) is not type(first) for v in values):
        raise _misfit("ranks returned " + ", ".join(sorted({type(v).__name__ for v in values})))
    if _is(first, "verl", "DataProto"):
        return type(first).concat(values)
    if _is(first, "tensordict", "TensorDict"):
        rows = sum(v.batch_size[0] for v in values)
        return type(first)(_join_named("tensor", [dict(v.items()) for v in values]), batch_size=[rows])
    if _is_tensor(first) and first.is_nested:
        return _nested([t for v in values for t in v.unbind()], first)
    is_array = isinstance(first, Tensor) or _is_tensor(first) or _is(first, "numpy", "ndarray")
    if is_array and len(first.shape):
        _check_alike(name, values)
        return _concatenated(values)
    if isinstance(first, Batch):
        if any(v.meta != first.meta for v in values):
            raise _misfit("their batches differ in `meta`")
        return Batch(_join_named("tensor", [v.tensors for v in values]),
                     columns=_join_named("column", [v.columns for v in values]), meta=first.meta)
    if isinstance(first, list):
        return [item for v in values for item in v]
    raise _errors.Invalid(f"a {type(first).__name__} has no rows to join: return a batch, tensors or lists, or call with "
                          'dispatch="DP_COMPUTE_METRIC", which gives the list of all results', may_have_run=True)

