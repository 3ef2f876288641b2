# SPDX-License-Identifier: Apache-2.0
"""Which part of a class cannot be pickled."""

import types

_DEPTH = 4


def of(thing, pickler):
    """Returns a path such as "Counter.add uses log (a TextIOWrapper)". None: it is not known."""
    if isinstance(thing, dict):
        return next(filter(None, (of(part, pickler) for part in thing.values())), None)
    return _of(thing, thing.__qualname__, pickler, set(), _DEPTH)


def _of(thing, path, pickler, seen, depth):
    for where, part in _parts(thing, path):
        if id(part) in seen or _pickles(part, pickler):
            continue
        seen.add(id(part))
        inner = _of(part, where, pickler, seen, depth - 1) if depth else None
        return inner or f"{where} (a {type(part).__name__})"
    return None


def _parts(thing, path):
    if isinstance(thing, (staticmethod, classmethod)):
        thing = thing.__func__
    if isinstance(thing, type):
        return [(f"{path}.{name}", value) for name, value in vars(thing).items()
                if name not in ("__dict__", "__weakref__")]
    if isinstance(thing, types.FunctionType):
        names = thing.__code__.co_names
        cells = [(name, c.cell_contents) for name, c in zip(thing.__code__.co_freevars, thing.__closure__ or ())
                 if name != "__class__"]
        taken = [(name, thing.__globals__[name]) for name in names if name in thing.__globals__]
        return [(f"{path} uses {name}", value) for name, value in cells + taken]
    if isinstance(thing, dict):
        return [(f"{path}[{key!r}]", value) for key, value in thing.items()]
    if isinstance(thing, (list, tuple)):
        return [(f"{path}[{i}]", value) for i, value in enumerate(thing)]
    return [(f"{path}.{name}", value) for name, value in getattr(thing, "__dict__", {}).items()]


def _pickles(value, pickler):
    try:
        pickler.dumps(value)
    except Exception:
        return False
    return True
