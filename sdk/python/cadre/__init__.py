# SPDX-License-Identifier: Apache-2.0
"""Call the workers of a group of Cadre, on all ranks at once or on one; docs/python.md has examples.

    with cadre.connect("unix:/run/user/1000/cadre/accumulator.default.sock", namespace="default") as client:
        group = client.group("accumulator")
        group.call("add", 5)                # returns one result per rank
        future = group.start("add", 5)      # sends the call, and does not wait
        future.result(timeout=10)           # or `await future`

Threads may share a client. A child of fork() opens its own.
"""

import importlib

from ._errors import (Canceled, Conflict, Error, Exists, Failed, Forbidden, Gone, Internal, Invalid, Io, Limit, NotFound,
                      Proto, Throttled, Timeout, Unauthorized, Unavailable)
from ._method import canceled, device, local_rank, rank, register, world_size
from ._reference import Ref
from ._value import Batch, Tensor
from ._version import VERSION
from . import worker

TYPE_CHECKING = False  # type checkers know the name; importing it from typing takes 0.4 MiB of each rank
if TYPE_CHECKING:
    from ._client import Client, Output, connect
    from ._future import Future, as_completed, wait
    from ._group import Group
    from ._kept import Kept
    from ._local import local
    from ._pool import Pool
    from ._task import Task, task
    from ._transfer import transfer
    from ._weights import Sharded, Weights

# Names that only some programs use. They are imported at the first use, so a rank needs less time and memory.
_LATER = {"Client": "_client", "Output": "_client", "connect": "_client", "Future": "_future", "as_completed": "_future",
          "wait": "_future", "Group": "_group", "Kept": "_kept", "local": "_local", "Pool": "_pool", "Task": "_task",
          "task": "_task", "transfer": "_transfer", "Sharded": "_weights", "Weights": "_weights"}

__version__ = VERSION
__all__ = ["Batch", "Canceled", "Client", "Conflict", "Error", "Exists", "Failed", "Forbidden", "Future", "Gone", "Group",
           "Internal", "Invalid", "Io", "Kept", "Limit", "NotFound", "Output", "Pool", "Proto", "Ref", "Sharded", "Task", "Tensor",
           "Throttled", "Timeout", "Unauthorized", "Unavailable", "Weights", "as_completed", "canceled", "connect", "device", "local", "local_rank",
           "rank", "register", "task", "transfer", "wait", "worker", "world_size"]


def __getattr__(name):
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f".{module}", __name__), name)
    return found


def __dir__():
    return sorted({*globals(), *__all__})
