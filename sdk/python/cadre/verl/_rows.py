# SPDX-License-Identifier: Apache-2.0
"""Batches of verl that the proxy can split and join: rows of dense tensors on CPUs, with columns and meta that JSON
represents completely. verl itself splits and joins all others.
"""

import json

from .._value import Batch, Body, _batch, _json, _proto

_SAID = "cadre.verl"  # in the meta of a batch: which call it belongs to


def batch_of(value):
    """Returns the Batch, or None."""
    if not _proto.is_foreign(value):
        return None
    is_proto = type(value).__name__ == "DataProto"
    tensors = value.batch if is_proto else value
    if tensors is None or tensors.device not in (None, _cpu()) or not all(_is_plain(t) for t in tensors.values()):
        return None
    if is_proto and not (all(column.dtype == object and column.ndim == 1 for column in value.non_tensor_batch.values())
                         and _comes_back([list(column) for column in value.non_tensor_batch.values()])
                         and _comes_back(value.meta_info)):
        return None
    batch = _proto.to_batch(value)
    return batch if batch and batch.tensors else None


def _cpu():
    import torch

    return torch.device("cpu")


def _is_plain(tensor):
    import torch

    return type(tensor) is torch.Tensor and tensor.device.type == "cpu" and not tensor.requires_grad


def _comes_back(value):
    """Whether JSON gives back an equal value: it has no tuples, no numbers of numpy and no dates."""
    if not _json.is_exact(value):
        return False
    try:
        return _json.decode(json.dumps(value)) == value
    except (TypeError, ValueError):
        return False


def send(batch, number, wanted):
    """Returns the batch of a call, with its number and the ranks whose results are wanted (None: all)."""
    meta = {**batch.meta, _SAID: {"number": number, "wanted": wanted, "type": batch.meta[_proto.TYPE]}}
    del meta[_proto.TYPE]  # the receiver must look at the rest first
    made = Batch(columns=batch.columns, meta=meta)
    made.tensors = batch.tensors
    return made


def receive(batch):
    """Returns (value, number, wanted)."""
    said = batch.meta.pop(_SAID)
    batch.meta[_proto.TYPE] = said["type"]
    return _proto.of_batch(batch), said["number"], said["wanted"]


def body_of(value):
    """Returns (Body, a text that is equal if the proxy can join results like verl) of a result. None: not a batch.
    """
    batch = batch_of(value)
    if batch is None or "metrics" in batch.meta:  # verl gathers metrics in its own way
        return None
    like = [[name, t.dtype, t.shape[1:]] for name, t in batch.tensors.items()]
    return Body("batch", _batch.write(batch)), json.dumps([like, sorted(batch.columns), batch.meta], sort_keys=True)
