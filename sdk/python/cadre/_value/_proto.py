# SPDX-License-Identifier: Apache-2.0
"""Batches of other packages: DataProto of verl and TensorDict. They are found by the name of their type's module,
which is never imported first.

The receiver gets the same type again if its package is installed, else a cadre.Batch.
"""

import importlib

from . import _json
from ._batch import Batch
from ._tensor import is_plain_torch, module_of

TYPE = "cadre.type"  # in the batch's meta
_PLACES = {"DataProto": ("verl", ("verl", "verl.protocol")), "TensorDict": ("tensordict", ("tensordict",))}


def is_foreign(value):
    name = type(value).__name__
    return name in _PLACES and module_of(value) == _PLACES[name][0]


def to_batch(value):
    """The value as a Batch. None if it has something that batches do not have: jagged tensors, columns of objects."""
    if type(value).__name__ == "DataProto":
        return _of_proto(value)
    batch = _of_tensordict(value)
    if batch:
        batch.meta[TYPE] = "TensorDict"
    return batch


def _of_tensordict(value):
    items = dict(value.items()) if value is not None else {}
    if not all(isinstance(name, str) and name and module_of(t) == "torch" and hasattr(t, "data_ptr") and t.dim()
               and is_plain_torch(t) for name, t in items.items()):
        return None
    if value is not None and len(value.batch_size) != 1:
        return None
    return Batch(items)


def _of_proto(value):
    batch = _of_tensordict(value.batch)
    columns = {name: list(column) for name, column in value.non_tensor_batch.items()}
    if batch is None or not _json.is_exact(columns) or not _json.is_exact(value.meta_info) or TYPE in value.meta_info:
        return None
    batch.columns = columns
    batch.meta = {**value.meta_info, TYPE: "DataProto"}
    return batch


def of_batch(batch):
    """Returns the value that was sent as this batch: the batch itself, or one of the types above."""
    name = batch.meta.get(TYPE)
    if name not in _PLACES:
        return batch
    cls = _class(name)
    if cls is None:
        return batch
    tensors = {key: t.torch() for key, t in batch.tensors.items()}
    if name == "TensorDict":
        return cls(tensors, batch_size=[batch.rows])
    import numpy

    others = {}
    for key, column in batch.columns.items():
        others[key] = numpy.empty(len(column), dtype=object)
        others[key][:] = column
    meta = {key: value for key, value in batch.meta.items() if key != TYPE}
    return cls.from_dict(tensors=tensors, non_tensors=others, meta_info=meta)


def _class(name):
    for module in _PLACES[name][1]:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    return None
