# SPDX-License-Identifier: Apache-2.0
"""The worker that runs tasks (@cadre.task): functions of modules that it imports."""

import functools
import importlib

from .. import _method
from .._task import Task


@functools.lru_cache(maxsize=1024)
def _find(name):
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found.function if isinstance(found, Task) else found


class Tasks:
    @_method.register(execute="ANY")
    def run(self, task, /, *args, **named):
        """runs a function: "module:name", and its arguments"""
        return _find(task)(*args, **named)
