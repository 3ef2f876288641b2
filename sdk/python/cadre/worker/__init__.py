# SPDX-License-Identifier: Apache-2.0
"""Workers in Python: `python3 -m cadre.worker` serves one rank of a group; @cadre.worker marks its class."""

import sys
from types import ModuleType

MARK = "__cadre_worker__"


class _Decorator(ModuleType):
    def __call__(self, cls):
        """Marks the class that is served if a module has several, and spec.worker.class names none."""
        if not isinstance(cls, type):
            raise TypeError(f"@cadre.worker is for classes; {cls!r} is not a class")
        setattr(cls, MARK, cls.__qualname__)  # not inherited: its subclasses have other names
        return cls


sys.modules[__name__].__class__ = _Decorator
