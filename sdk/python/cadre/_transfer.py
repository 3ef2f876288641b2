# SPDX-License-Identifier: Apache-2.0
"""Weights from one group to another, from rank to rank: the C library tells the ranks, and waits for them."""

import ctypes
import threading
import time

from . import _errors
from . import _library as lib
from ._method import call as running_call

_MAX_S = 7 * 24 * 3600
_SLICE_S = 0.1


def transfer(source, target, names=None, *, timeout=600):
    """Moves the weights of one group to another, whose mesh may split them differently. The classes of both are
    cadre.Weights, or modules in C that move weights. Each rank of the target gets exactly its own blocks from the
    ranks that have them. All of its ranks take the new weights, or all keep their old ones.

    names    only these tensors; by default all tensors of both groups
    timeout  seconds for the whole transfer

    Returns {"bytes", "direct", "nccl", "seconds", "version"}. "direct" is the part of the bytes that went from the
    memory or GPU of one rank to another one in the same pod, and "nccl" the part that went by NCCL; the rest used
    connections. Raises Invalid with everything that does not match, and nothing was moved. Other errors say which rank
    was lost, or is late.
    """
    if source.client is not target.client:
        raise TypeError(f"transfer({source.name}, {target.name}): both groups must be of one client")
    if names is not None and not (names := list(names)):
        raise ValueError("transfer(): names is empty; None stands for all weights")
    if not 0 < timeout <= _MAX_S:
        raise ValueError(f"transfer(): timeout={timeout!r}: it is a number of seconds, up to 7 days")
    began, moved, error = time.monotonic(), lib.Transferred(), lib.ClientError()
    code = _run(source.client, _options(source, target, names, timeout), moved, error)
    if moved.problems:
        raise _errors.Invalid(_taken(moved.problems))
    if code != lib.OK:
        raise _errors.of_struct(error)
    return {"bytes": moved.bytes, "direct": moved.direct, "nccl": moved.nccl, "seconds": time.monotonic() - began,
            "version": moved.version.decode()}


def _run(client, options, moved, error):
    """Runs the transfer on a thread. Python's signal handlers run here meanwhile, and an exception from one ends the
    transfer.
    """
    codes, over, canceled = [], threading.Event(), []
    options.canceled = asked = lib.CANCELED(lambda _: bool(canceled))

    def run(handle):
        try:
            codes.append(lib.functions.transfer(handle, *map(ctypes.byref, (options, moved, error))))
        finally:
            over.set()

    thread = threading.Thread(target=run, args=(client._open_handle(),), name="cadre.transfer")
    thread.start()
    try:
        while not over.wait(_SLICE_S):
            client._raise_of_callbacks()
    except BaseException:
        canceled.append(True)
        raise
    finally:
        thread.join()
        del asked
    return codes[0]


def _text(value):
    return None if value is None else value.encode()


def _options(source, target, names, timeout):
    options = lib.TransferOptions(size=ctypes.sizeof(lib.TransferOptions), source=_text(source.name),
                                  target=_text(target.name), source_role=_text(source.role),
                                  target_role=_text(target.role), timeout_ms=max(int(timeout * 1000), 1))
    if names:
        options.names, options.n_names = (ctypes.c_char_p * len(names))(*map(_text, names)), len(names)
    running = running_call.get(None) if source.client.of_worker else None
    if running is not None and not running.over:
        options.via, left = running.calls()
        options.timeout_ms = min(options.timeout_ms, left)
    return options


def _taken(text):
    """Takes a string that the library has allocated."""
    try:
        return ctypes.string_at(text).decode("utf-8", "replace")
    finally:
        _free(text)


_free = ctypes.CDLL(None).free
_free.restype, _free.argtypes = None, [ctypes.c_void_p]
