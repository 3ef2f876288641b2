# SPDX-License-Identifier: Apache-2.0
"""What must be the same at both ends: a pickle of code is the bytecode of one version of Python."""

import json
import sys

from .._version import VERSION
from ._pickles import cloudpickle

_LINE_MAX = 4096


def ours():
    pickler = cloudpickle()
    return {"python": f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}", "cadre": VERSION,
            "cloudpickle": f"{pickler.__name__} {pickler.__version__}" if pickler else "none"}


def head():
    return json.dumps(ours()).encode() + b"\n"


def compare(code):
    """What is behind the head."""
    line, newline, stream = bytes(code[:_LINE_MAX]).partition(b"\n")
    try:
        theirs = json.loads(line) if newline else None
    except ValueError:
        theirs = None
    if not isinstance(theirs, dict):
        raise ValueError("the code does not begin with the versions that it needs: it is cut, or no code of Cadre's")
    for name, here in ours().items():
        if theirs.get(name) != here:
            raise ValueError(f"the program that sent it has {name} {theirs.get(name)}, and this rank {here}: use the same "
                             "version at both ends, or a class of a module that the image has")
    return code[len(line) + 1:]
