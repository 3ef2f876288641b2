# SPDX-License-Identifier: Apache-2.0
"""The versions that must be the same at both ends: a pickle of code is the bytecode of one version of Python."""

import json
import sys

from .._version import VERSION
from ._pickles import cloudpickle

_LINE_MAX = 4096


def ours():
    pickler = cloudpickle()
    return {"python": f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}", "cadre": VERSION,
            "cloudpickle": f"{pickler.__name__} {pickler.__version__}" if pickler else "none"}


def _brief(version):
    """2.5.1+cpu and 2.5.0+cu121 both become 2.5."""
    return ".".join(str(version).split("+")[0].split(".")[:2])


def _torch_here():
    """The version of torch, found without importing anything. None: it is not installed, which matters only to code
    that imports it.
    """
    if "torch" in sys.modules:
        return _brief(sys.modules["torch"].__version__)
    import importlib.metadata

    try:
        return _brief(importlib.metadata.version("torch"))
    except importlib.metadata.PackageNotFoundError:
        return None


def head():
    said = ours()
    if "torch" in sys.modules:
        said["torch"] = _torch_here()
    return json.dumps(said).encode() + b"\n"


def compare(code):
    """Compares the versions in the head with the versions here. Returns the bytes after the head."""
    line, newline, stream = bytes(code[:_LINE_MAX]).partition(b"\n")
    try:
        theirs = json.loads(line) if newline else None
    except ValueError:
        theirs = None
    if not isinstance(theirs, dict):
        raise ValueError("the code does not begin with the versions that it needs: it is cut, or no code of Cadre's")
    known = ours()
    if theirs.get("torch"):
        known["torch"] = _torch_here() or theirs["torch"]
    for name, here in known.items():
        if theirs.get(name) != here:
            raise ValueError(f"the program that sent it has {name} {theirs.get(name)}, and this rank {here}: use the same "
                             "version at both ends, or a class of a module that the image has")
    return code[len(line) + 1:]
