# SPDX-License-Identifier: Apache-2.0
"""Code by value: a class that the ranks cannot import travels in the group's object, spec.worker.code.

The code is a line of JSON with the versions that made it, and a pickle of cloudpickle. Who opens it compares hash and
versions before the first byte of the pickle.
"""

from . import _culprit, _pickles, _versions
from ._pickles import cloudpickle
from ._spec import MAX, check, of_environment, spec_of

__all__ = ["MAX", "check", "cloudpickle", "goes_by_value", "of_environment", "pack", "spec_of", "unpack"]


def goes_by_value(thing):
    """Whether no other program can import a class or function: it belongs to the main program, or to a function."""
    return thing.__module__ == "__main__" or "<" in thing.__qualname__


def pack(thing, what):
    """The code of a class, or of several by name. what: for messages, "Counter". TypeError names the part that cannot
    be pickled.
    """
    pickler = cloudpickle()
    if pickler is None:
        raise TypeError(f"{what}: the ranks cannot import what is of the program itself, and without the package cloudpickle "
                        "it cannot be sent: install that (the wheel cadre-sdk has it), or put the class into a "
                        "module of its own, at its top level")
    try:
        stream = pickler.dumps(thing, protocol=5)
    except Exception as e:
        raise TypeError(f"{what} cannot be sent to the ranks: {_culprit.of(thing, pickler) or what}: {e}; make such things "
                        "in the constructor, which runs on the ranks") from e
    return _versions.head() + stream


def unpack(code):
    """The class. ValueError says which version differs."""
    stream = _versions.compare(code)
    return _pickles.load(stream)
