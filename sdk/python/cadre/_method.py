# SPDX-License-Identifier: Apache-2.0
"""Modes that a class registers for its methods, and questions that a method may ask about its process."""

import os
from collections import namedtuple
from contextvars import ContextVar

_LIMIT_MAX = 10000  # threads, or calls of asyncio
NAME = "__cadre__"  # the attribute of a function that was registered
call = ContextVar("cadre call")  # the call for which a method runs; set by cadre.worker
ANSWERED = object()  # the result of a method whose call the C library has answered


class Registered(namedtuple("Registered", ("dispatch", "execute", "blocking", "concurrency", "limit", "split", "collect",
                                           "idempotent", "at_caller"),
                            defaults=("ONE_TO_ALL", "ALL", True, None, 1, None, None, False, None))):
    """The arguments of register(); docs/calls.md explains the modes. at_caller: (split, collect), functions that the
    client runs.
    """

    __slots__ = ()


def register(function=None, *, dispatch="ONE_TO_ALL", execute="ALL", blocking=True, concurrency=None, split=None,
             collect=None, idempotent=False):
    """Says how a method is called if its client does not say otherwise: @cadre.register(dispatch="DP_COMPUTE_PROTO").

    dispatch, execute, split, collect   the modes, by name, and rules for pieces (docs/calls.md)
    dispatch     or a function split(group, *args, **named), which the client runs: it returns the arguments of each rank,
                 a tuple or a dict. Or (split, collect): collect(group, results) makes the result
    blocking     False: the client gets a future
    concurrency  the name of a concurrency group, or (name, how many run at a time): they run beside other methods
    idempotent   it may run again for the same call: max_retries alone sends it again if a rank died
    """
    name, limit = concurrency if isinstance(concurrency, tuple) else (concurrency, 1)
    if name is not None and not (isinstance(name, str) and isinstance(limit, int) and 1 <= limit <= _LIMIT_MAX):
        raise TypeError(f"concurrency={concurrency!r}: it is the name of a group, or (name, how many run at a time), 1 to "
                        f"{_LIMIT_MAX}")
    at_caller = None
    if not isinstance(dispatch, str):
        at_caller = tuple(dispatch) if isinstance(dispatch, (tuple, list)) else (dispatch, None)
        if len(at_caller) != 2 or not callable(at_caller[0]) or not (at_caller[1] is None or callable(at_caller[1])):
            raise TypeError(f"dispatch={dispatch!r}: it is the name of a mode, a function, or two functions (split, collect)")
        dispatch = "ALL_TO_ALL"
    said = Registered(dispatch, execute, blocking, name, limit, split, collect, bool(idempotent), at_caller)

    def mark(f):
        target = f.__func__ if isinstance(f, (staticmethod, classmethod)) else f
        setattr(target, NAME, said)
        return f

    return mark if function is None else mark(function)


def registered(function):
    """Returns the arguments with which a function was registered, or the defaults."""
    return getattr(function, NAME, None) or Registered()


def _number(name, fallback):
    try:
        return int(os.environ.get(name) or fallback)
    except ValueError:
        raise RuntimeError(f"the environment variable {name} is {os.environ[name]!r}: it is not a number") from None


def rank():
    """The rank of this worker in its group, from 0."""
    return _number("RANK", 0)


def world_size():
    """The number of workers of the group."""
    return _number("WORLD_SIZE", 1)


def local_rank():
    """The number of this worker in its pod."""
    return _number("LOCAL_RANK", 0)


def device():
    """The GPU as torch names it: "cuda:0"; "cpu" if there is none."""
    number = _number("CADRE_DEVICE", -1)
    return f"cuda:{number}" if number >= 0 else "cpu"


def canceled():
    """Whether nobody waits any more for the call for which this method runs: it was canceled, or its deadline has
    passed.
    """
    current = call.get(None)
    return current is not None and current.canceled()
