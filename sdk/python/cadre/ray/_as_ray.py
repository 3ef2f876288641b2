# SPDX-License-Identifier: Apache-2.0
"""`import ray` means cadre.ray from here on, in this process and in the workers that it makes."""

import importlib
import importlib.abc
import importlib.machinery
import sys

from . import _session

_OURS = "cadre.ray"
MIXED = ("this program {} as well as cadre.ray: actors and references of one are nothing to the other. Import only cadre.ray; "
         "or start the program by `python -m cadre.ray program.py`, which makes `import ray` mean cadre.ray everywhere")


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


class _Guard(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Prevents the import of Ray itself while there is a session. find_spec() finds it, and the import raises an
    exception.
    """

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name == "ray" and _session.existing() else None

    def create_module(self, spec):
        raise ImportError(MIXED.format("imports ray itself"), name="ray")

    def exec_module(self, module):
        pass


def guard():
    """For a process whose `import ray` does not mean cadre.ray."""
    if "ray" not in sys.modules and not any(isinstance(f, (_Finder, _Guard)) for f in sys.meta_path):
        sys.meta_path.insert(0, _Guard())


def install():
    """Raises RuntimeError if the program has imported Ray itself already."""
    there = sys.modules.get("ray")
    if there is not None and not getattr(there, "__cadre__", False):
        raise RuntimeError(f"ray was imported already ({getattr(there, '__file__', '?')}): `import ray` can mean cadre.ray only "
                           "from the start: run the program by `python -m cadre.ray program.py`")
    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    importlib.import_module("ray")
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{_OURS}.util."):  # a second import of placement_group would replace the function of that name
            sys.modules.setdefault("ray" + name[len(_OURS):], module)
