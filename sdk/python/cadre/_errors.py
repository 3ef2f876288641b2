# SPDX-License-Identifier: Apache-2.0
"""What a call may end with: a class for each code of docs/calls.md."""

import builtins


class Error(Exception):
    """A call, or another operation of a client, failed. str() is a message for people: what happened, to which object.

    code          number, as in cadre/client.h
    name          the code as it was sent: "UNAVAILABLE", or what the method calls it
    may_have_run  False: certainly no rank has begun to run the call
    rank          that is to blame; with pod, node and exit_code of its process where they are known; else None
    retry_after   seconds, what the server asks for; else None
    """

    code = 0
    _classes = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Error._classes.setdefault(cls.code, cls)

    def __init__(self, message, name="", may_have_run=False, rank=None, pod=None, node=None, exit_code=None,
                 retry_after=None):
        super().__init__(message)
        self.message = message
        self.name = name or _name_of(type(self))
        self.may_have_run = may_have_run
        self.rank = rank
        self.pod = pod
        self.node = node
        self.exit_code = exit_code
        self.retry_after = retry_after

    def __repr__(self):
        more = "".join(f", {k}={v!r}" for k, v in vars(self).items() if k not in ("name", "message") and v is not None)
        return f"cadre.{type(self).__name__}({self.message!r}, name={self.name!r}{more})"

    def __reduce__(self):
        return type(self), (self.message,), vars(self)


def _name_of(cls):
    return "".join("_" + c if c.isupper() else c for c in cls.__name__).strip("_").upper() if cls.code else "ERROR"


class Io(Error):
    """A file, such as ca_file, cannot be read."""

    code = 2


class Timeout(Error, TimeoutError):
    """The call's deadline has passed; the message names the ranks that are late, or missing."""

    code = 3


class Proto(Error):
    """The server is no proxy of Cadre, or one of another version."""

    code = 4


class Limit(Error):
    """Too long, or too many at a time."""

    code = 5


class Canceled(Error):
    """It was canceled, or the client was closed."""

    code = 6


class NotFound(Error):
    """No such group, method or object."""

    code = 7


class Exists(Error):
    """There is a group or a PlacementGroup of that name already."""

    code = 8


class Conflict(Error):
    """The attempt that the call was for is over, or it would wait for itself."""

    code = 9


class Gone(Error):
    """The group was deleted, or the process that had the object is gone."""

    code = 10


class Unauthorized(Error):
    """No token, or not a valid one (any more)."""

    code = 11


class Forbidden(Error):
    """The token is not allowed to, or the server is not who it should be."""

    code = 12


class Throttled(Error):
    """The proxy or a rank has too much to do; try again."""

    code = 13


class Invalid(Error):
    """Wrong arguments, of this library or of the method."""

    code = 14


class Unavailable(Error):
    """Not connected, not ready, or a worker died (then with its rank)."""

    code = 15


class Internal(Error):
    """A defect of Cadre."""

    code = 16


class Failed(Error):
    """The method said so. `name` is what it calls the error. Where that is an exception of Python's own, this is one of
    that type, too: `except ValueError` catches it.
    """

    code = 100
    _named = {}

    def __reduce__(self):
        return _failed, (self.name, self.message), vars(self)

    @classmethod
    def _class(cls, name):
        if name not in cls._named:
            cls._named[name] = _with_builtin(name)
        return cls._named[name]


def _with_builtin(name):
    base = getattr(builtins, name, None)
    if not (isinstance(base, type) and issubclass(base, Exception)) or base in (Exception, Warning):
        return Failed
    try:
        cls = type("Failed", (Failed, base), {"__doc__": Failed.__doc__, "__module__": Failed.__module__})
        cls("")
    except TypeError:  # one that is not made of a message alone, such as UnicodeDecodeError
        return Failed
    return cls


def _failed(name, message):
    return Failed._class(name)(message, name)


def _text(value):
    return value.decode("utf-8", "replace")


def of_struct(e):
    """The exception for a cadre_client_error."""
    name = _text(e.name)
    cls = Error._classes.get(e.code) if e.code != Failed.code else Failed._class(name)
    return (cls or Failed)(_text(e.message), name, bool(e.may_have_run), e.rank if e.rank >= 0 else None,
               _text(e.pod) or None, _text(e.node) or None, e.exit_code if e.exit_code >= 0 else None,
               e.retry_after_ms / 1000 if e.retry_after_ms > 0 else None)
