# SPDX-License-Identifier: Apache-2.0
"""The options of calls and of connections: one table each, from the name in Python to the member of the C struct."""

from operator import index, not_

from . import _library as lib
from ._value._json import encode

_MS_MAX = 7 * 24 * 3600 * 1000


def _text(value):
    return str(value).encode()


def _seconds(value):
    """Milliseconds; never 0, which would mean no limit."""
    if not 0 <= value <= _MS_MAX / 1000:
        raise ValueError(f"a time of {value} s: 0 to 7 days, in seconds; None: without a limit")
    return max(1, round(value * 1000))


def _natural(value):
    """In C, a negative number means all ranks. Here, the caller may mean a number from the end, so it is refused."""
    number = index(value)
    if number < 0:
        raise ValueError(f"{number} is negative: ranks and attempts count from 0; None is as if it was not given")
    return number


def _mode(table):
    def number(value):
        if value not in table:
            raise ValueError(f"there is no mode {value!r}; there are {', '.join(table)}")
        return table[value]

    return number


def _names(value):
    return _text(value if isinstance(value, str) else ",".join(value))


# All options but `args` and `per_rank`, which are the arguments themselves. None counts as not given.
CALL = {
    "rank": ("rank", _natural),
    "dispatch": ("dispatch", _mode(lib.DISPATCH)),
    "execute": ("execute", _mode(lib.EXECUTE)),
    "split": ("split", encode),
    "collect": ("collect", encode),
    "pad": ("pad", bool),
    "timeout": ("timeout_ms", _seconds),
    "attempt": ("attempt", _natural),
    "refuse_when_not_ready": ("refuse_when_not_ready", bool),
    "max_retries": ("max_retries", index),
    "retry_on": ("retry_on", _names),
    "idempotent": ("idempotent", bool),
    "no_result": ("no_result", bool),
    "keep": ("by_reference", bool),
    "pin": ("pin", bool),
    "traceparent": ("traceparent", _text),
}

CONNECT = {
    "namespace": ("ns", _text),
    "group": ("group", _text),
    "path_prefix": ("path_prefix", _text),
    "token": ("token", _text),
    "token_file": ("token_file", _text),
    "token_in_hello": ("token_in_hello", bool),
    "ca_pem": ("ca_pem", _text),
    "ca_file": ("ca_file", _text),
    "server_name": ("server_name", _text),
    "connect_timeout": ("connect_timeout_ms", _seconds),
    "unreachable": ("unreachable_ms", _seconds),
    "max_calls": ("max_calls", index),
    "max_body": ("max_body", index),
    "max_bytes": ("max_bytes", index),
    "spin": ("no_spin", not_),
}


def put(struct, member, value, what):
    """Sets a member. ctypes would silently cut a value that does not fit: the upper bits of a number, or the text
    after a NUL.
    """
    setattr(struct, member, value)
    if getattr(struct, member) != value:
        raise ValueError(f"{what} {value!r} is out of its range, or has a NUL in it")


def fill(struct, table, options, what, hint=""):
    """Writes `options` to the members of a C struct."""
    for name, value in options.items():
        if name not in table:
            raise TypeError(f"{what} has no option {name!r}; there are {', '.join(table)}{hint}")
        member, convert = table[name]
        if value is not None:
            put(struct, member, convert(value), f"{what}: {name}")
