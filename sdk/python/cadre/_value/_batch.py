# SPDX-License-Identifier: Apache-2.0
"""Batches: tensors whose first dimension is the row, and columns of JSON values, as safetensors documents."""

from .. import _errors
from . import _document, _json
from ._tensor import Tensor


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


def _check_rows(batch):
    first = None
    for what, names in (("tensor", batch.tensors), ("column", batch.columns)):
        for name in names:
            if what == "tensor" and not batch.tensors[name].shape:
                raise _errors.Invalid(f"tensor {name!r} of a batch has no dimension: 1 to {_document.DIMS_MAX} "
                                      "dimensions travel, and the first is the row")
            rows = batch.tensors[name].shape[0] if what == "tensor" else len(batch.columns[name])
            if first is None:
                first = (what, name, rows)
            elif rows != first[2]:
                raise _errors.Invalid(f"{what} {name!r} of a batch has {rows} rows, and {first[0]} {first[1]!r} has "
                                      f"{first[2]}")


def write(batch):
    """Returns the parts of the document."""
    _check_rows(batch)
    metadata = {}
    if batch.columns:
        metadata["cadre.columns"] = _json.encode(batch.columns).decode()
    if batch.meta:
        metadata["cadre.meta"] = _json.encode(batch.meta).decode()
    return _document.write(batch.tensors, metadata)


def of_document(tensors, metadata):
    """Returns the batch of a document."""
    batch = Batch(columns=_json.decode(metadata.get("cadre.columns", "{}")),
                  meta=_json.decode(metadata.get("cadre.meta", "{}")))
    batch.tensors.update(tensors)
    return batch
