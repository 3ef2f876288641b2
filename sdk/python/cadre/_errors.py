# SPDX-License-Identifier: Apache-2.0
"""The errors of calls: a class for each code of docs/calls.md."""

import builtins
import inspect


class Error(Exception):
    """A call, or another operation of a client, failed. str() is a message for people: what happened, to which
    object.

    code          number, as in cadre/client.h
    name          the code as it was sent: "UNAVAILABLE", or the name that the method gives the error
    may_have_run  False: certainly no rank has begun to run the call
    rank          the rank that caused it, with pod, node and exit_code of its process if they are known; else None
    retry_after   the pause in seconds that the server asks for; else None
    """

    code = 0
    _classes = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Error._classes.setdefault(cls.code, cls)

    def __init__(self, message, name="", may_have_run=False, rank=None, pod=None, node=None, exit_code=None,
                 retry_after=None):
        Exception.__init__(self, message)  # not the constructor of another base, such as the method's own exception
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
    """The server is not a proxy of Cadre, or one of another version."""

    code = 4


class Limit(Error):
    """Too long, or too many at a time."""

    code = 5


class Canceled(Error):
    """The call was canceled, or the client was closed."""

    code = 6


class NotFound(Error):
    """No such group, method or object."""

    code = 7


class Exists(Error):
    """A group or a PlacementGroup of that name exists already."""

    code = 8


class Conflict(Error):
    """The attempt for which the call was made is over, or the call would wait for itself."""

    code = 9


class Gone(Error):
    """The group was deleted, or the process that had the object is gone."""

    code = 10


class Unauthorized(Error):
    """No token, or not a valid one (any more)."""

    code = 11


class Forbidden(Error):
    """The token lacks the right, or the server is not the expected one."""

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
    """The method raised an exception. `name` is its name. This exception also has the type that the method raised:
    `except ValueError`, or a class of the program, catches it, and `cause` is the method's exception. That needs
    trust in the worker. Without it, only Python's own exceptions have their type.

    traceback  of the method, as text; None if the worker is in C
    """

    code = 100
    cause = traceback = None
    _named = {}

    def __reduce__(self):
        return _failed, (self.name, self.message, self.cause), vars(self)

    def __str__(self):
        return self.message

    @classmethod
    def _class(cls, name):
        base = getattr(builtins, name, None)
        if not (isinstance(base, type) and issubclass(base, Exception)) or base in (Exception, Warning):
            return Failed
        return cls._with(base)

    @classmethod
    def _with(cls, base):
        """Returns the class of the exceptions that are also of another type."""
        if issubclass(base, Failed):  # from a call that the method made
            return base
        if base not in cls._named:
            if len(cls._named) >= _NAMED_MAX:
                cls._named.clear()
            try:
                made = type("Failed", (Failed, base), {"__doc__": Failed.__doc__, "__module__": Failed.__module__,
                                                       "__new__": _empty})
                made("")
                cls._named[base] = made
            except Exception:  # Python cannot make a class of both, or needs more arguments
                cls._named[base] = Failed
        return cls._named[base]

    def _adopt(self, cause):
        """Copies the attributes of the method's exception. Attributes of Failed stay."""
        self.cause = cause
        self.args = cause.args
        for name in dir(type(cause)):
            if isinstance(inspect.getattr_static(type(cause), name), _SLOTS) and name not in _NOT_TAKEN:
                try:
                    setattr(self, name, getattr(cause, name))
                except (AttributeError, TypeError):
                    pass
        for name, value in vars(cause).items():
            vars(self).setdefault(name, value)


def _empty(cls, *args, **named):
    """Makes the object without calling the constructor of the method's exception."""
    base = cls
    while base.__flags__ & _IN_PYTHON:
        base = base.__base__
    return base.__new__(cls)


_NAMED_MAX = 1000
_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_SLOTS = type(OSError.errno), type(BaseException.args)  # attributes that are not in vars()
_NOT_TAKEN = {"args", "with_traceback", "name"} | {name for name in dir(BaseException) if name.startswith("__")}


def _failed(name, message, cause=None):
    return (Failed._with(type(cause)) if cause is not None else Failed._class(name))(message, name)


def _text(value):
    return value.decode("utf-8", "replace")


def of_struct(e, cause=None):
    """The exception for a cadre_client_error. cause: the exception that the method raised, if it is known."""
    name = _text(e.name)
    cls = Error._classes.get(e.code) if e.code != Failed.code else Failed._class(name)
    if cause is not None and cls is not None and issubclass(cls, Failed):
        cls = Failed._with(type(cause))
    return (cls or Failed)(_text(e.message), name, bool(e.may_have_run), e.rank if e.rank >= 0 else None,
               _text(e.pod) or None, _text(e.node) or None, e.exit_code if e.exit_code >= 0 else None,
               e.retry_after_ms / 1000 if e.retry_after_ms > 0 else None)
