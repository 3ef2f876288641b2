# SPDX-License-Identifier: Apache-2.0
"""The worker that runs tasks (@cadre.task): functions of modules that it imports, or that come by value."""

import functools
import importlib

from .. import _code, _method
from .._task import Task


@functools.lru_cache(maxsize=1024)
def _find(name):
    if isinstance(name, bytes):
        return _code.unpack(name)
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found.function if isinstance(found, Task) else found


class Tasks:
    @_method.register(execute="ANY")
    def run(self, task, /, *args, **named):
        """runs a function: "module:name", or its code; and its arguments"""
        return _find(task)(*args, **named)
