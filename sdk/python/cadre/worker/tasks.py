# SPDX-License-Identifier: Apache-2.0
"""The worker that runs tasks (@cadre.task): functions of modules that it imports, or that came by value."""

import functools
import hashlib
import importlib
import os
import sys

from .. import _code, _method
from .._task import Task


@functools.lru_cache(maxsize=1024)
def _find(name):
    if isinstance(name, bytes):
        function = _code.unpack(name)
        _log(function, name)
        return function
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found.function if isinstance(found, Task) else found


def _log(function, code):
    """In a cluster, logs once for each function: the group's object and its Events do not show code that a call
    brings.
    """
    if os.environ.get("CADRE_OPERATOR"):
        print(f"cadre-worker: rank {_method.rank()}: a call brought the code of {function.__qualname__}(): SHA-256 "
              f"{hashlib.sha256(code).hexdigest()}, {len(code)} bytes", file=sys.stderr, flush=True)


class Tasks:
    @_method.register(execute="ANY")
    def run(self, task, /, *args, **named):
        """runs a function: "module:name", or its code; and its arguments"""
        return _find(task)(*args, **named)
