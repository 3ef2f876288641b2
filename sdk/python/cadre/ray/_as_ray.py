# SPDX-License-Identifier: Apache-2.0
"""`import ray` means cadre.ray from here on, in this process and in the workers that it makes."""

import importlib
import importlib.abc
import importlib.machinery
import sys

_OURS = "cadre.ray"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self):
        self._specs = {}

    def find_spec(self, name, path=None, target=None):
        if name != "ray" and not name.startswith("ray."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        ours = _OURS + spec.name[len("ray"):]
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as e:
            if e.name == ours:
                from . import _missing

                raise ModuleNotFoundError(_missing.explain(spec.name[len("ray."):]), name=spec.name) from None
            raise
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = next(s for s in self._specs.values() if s.name == module.__name__)


def install():
    """RuntimeError where the program has imported Ray itself already."""
    there = sys.modules.get("ray")
    if there is not None and not getattr(there, "__cadre__", False):
        raise RuntimeError(f"ray was imported already ({getattr(there, '__file__', '?')}): `import ray` can mean cadre.ray only "
                           "from the start: run the program by `python -m cadre.ray program.py`")
    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    importlib.import_module("ray")
