# SPDX-License-Identifier: Apache-2.0
"""From spec.worker to objects: the module, its class or the classes of all roles, and their methods."""

import contextlib
import gc
import importlib
import inspect
import json
import os
import sys
import traceback
from collections import namedtuple

from .. import _code, _library, _method
from . import MARK, _host

EXIT_USAGE, EXIT_MODULE, EXIT_CONSTRUCTOR, EXIT_LOST = 64, 65, 66, 68
ASYNC, ASYNC_LIMIT = "asyncio", 64  # the concurrency group of `async def` methods without one
_SELDOM = 1_000_003  # as a threshold of the garbage collector, which no module sets; a module may multiply it: it is a C int


class Stop(Exception):
    """This worker ends, with a message, which becomes the last line of its output, and the exit code."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


class Method(namedtuple("Method", ("name", "function", "said", "lane", "limit", "is_async"))):
    """function: bound to the object; said: a _method.Registered; lane: the name of its concurrency group, or None."""

    __slots__ = ()


class Role(namedtuple("Role", ("name", "cls", "methods"))):
    """An object and its methods, in the order of their numbers. name: None without roles."""

    __slots__ = ()

    def lanes(self):
        """Returns name -> (limit, methods), in their order."""
        lanes = {}
        for m in self.methods:
            if m.lane is not None:
                limit, methods = lanes.setdefault(m.lane, (m.limit, []))
                if limit != m.limit or methods and methods[0].is_async != m.is_async:
                    raise Stop(f"{self.cls.__name__}: the concurrency group {m.lane} has methods that differ in their "
                               "limit, or some of them are async: give them one limit, and async ones a group of their "
                               "own", EXIT_MODULE)
                methods.append(m)
        return lanes


def _line(e):
    """Where an exception was raised: "train.py:12 in step"."""
    if isinstance(e, SyntaxError) and e.filename:
        return f"{e.filename}:{e.lineno}"
    frames = traceback.extract_tb(e.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else "?"


def words_of(e):
    """The text of an exception; "" if making it fails."""
    try:
        return str(e)
    except Exception:
        return ""


def said(e):
    """One line: the type, the message, and where it was raised."""
    words = " ".join(words_of(e).split())
    return f"{type(e).__name__}{': ' if words else ''}{words} ({_line(e)})"


@contextlib.contextmanager
def without_collection():
    """The garbage collector rests while modules are imported, unless a module sets its threshold. Modules create many
    objects that stay: otherwise, Python would look for garbage among them for a fifth of the time of `import torch`.
    It still looks once in a million objects, because a module may do all of its work while it is imported.
    """
    before = gc.get_threshold()[0]
    if before:  # 0: it is off
        gc.set_threshold(_SELDOM, *gc.get_threshold()[1:])
    try:
        yield
    finally:
        now, *others = gc.get_threshold()
        if now == _SELDOM:
            gc.set_threshold(before, *others)


def import_module(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name and (name == e.name or name.startswith(e.name + ".")):
            raise Stop(f"module {name}: there is no module {e.name} in sys.path ({', '.join(p or '.' for p in sys.path)}): "
                       "is it in the image? working_dir= and py_modules= of client.Group() send what the program has", EXIT_MODULE) from None
        traceback.print_exc()
        raise Stop(f"module {name}: {said(e)}: it imports what is not installed here", EXIT_MODULE) from None
    except (Exception, SystemExit) as e:
        traceback.print_exc()
        raise Stop(f"module {name}: it failed while it was imported: {said(e)}", EXIT_MODULE) from None


def _classes(module):
    """Returns the classes that a module defines, by name; if it defines none, all classes in it."""
    found = {name: c for name, c in vars(module).items() if isinstance(c, type) and not name.startswith("_")}
    return {name: c for name, c in found.items() if c.__module__ == module.__name__} or found


def find_class(module, name):
    classes = _classes(module)
    names = ", ".join(classes) or "none"
    if name:
        found = module
        for part in name.split("."):  # for a class inside a class
            found = getattr(found, part, None)
        if not isinstance(found, type):
            raise Stop(f"module {module.__name__} has no class {name}; it has {names}", EXIT_MODULE)
        return found
    marked = [c for c in classes.values() if vars(c).get(MARK) == c.__qualname__]
    several = marked or list(classes.values())
    if len(several) != 1:
        raise Stop(f"module {module.__name__} has {len(several) or 'no'} classes ({names}): spec.worker.class says which, "
                   "or @cadre.worker in front of one of them", EXIT_MODULE)
    return several[0]


def make(cls, init):
    """Creates the object. `init` is the JSON object of spec.worker.init."""
    try:
        try:
            inspect.signature(cls).bind(**init)
        except ValueError:
            pass  # it has no signature, for example a class in C
    except TypeError as e:
        raise Stop(f"{cls.__name__}: init: {e}; it takes {inspect.signature(cls)}", EXIT_CONSTRUCTOR) from None
    try:
        return cls(**init)
    except (Exception, SystemExit) as e:
        traceback.print_exc()
        raise Stop(f"{cls.__name__}: the constructor failed: {said(e)}", EXIT_CONSTRUCTOR) from None


def methods_of(cls, made):
    """Returns all public methods, also inherited ones."""
    methods = []
    for name in dir(cls):
        plain = inspect.getattr_static(cls, name)
        plain = plain.__func__ if isinstance(plain, (staticmethod, classmethod)) else plain
        if name.startswith("_") or not inspect.isroutine(plain):
            continue
        said_of = _method.registered(plain)
        is_async = inspect.iscoroutinefunction(plain)
        lane, limit = said_of.concurrency, said_of.limit
        if lane is None and is_async:
            lane, limit = ASYNC, ASYNC_LIMIT
        methods.append(Method(name, getattr(made, name), said_of, lane, limit, is_async))
    if not methods:
        raise Stop(f"{cls.__name__} has no methods that could be called: names that begin with _ cannot be", EXIT_MODULE)
    return methods


def _class_of(sent, role):
    found = sent.get(role.get("class")) if isinstance(sent, dict) else sent
    if not isinstance(found, type):
        raise Stop(f"spec.worker.code has no class {role.get('class')}", EXIT_MODULE)
    return found


def _sent(module):
    """Returns the class that came by value, or several by name; or None."""
    try:
        code = _code.of_environment()
        return _code.unpack(code) if code else None
    except ValueError as e:
        raise Stop(f"spec.worker.code: {e}", EXIT_MODULE) from None
    except (Exception, SystemExit) as e:
        traceback.print_exc()
        raise Stop(f"spec.worker.code, a class of {module}: it cannot be opened: {said(e)}", EXIT_MODULE) from None


def _enter_archive():
    """Sets from where the workers import, besides the image."""
    wanted = archive()
    if wanted:
        from .._code import _archive

        _archive.enter(wanted.place)


def archive():
    """Returns the archive that this worker wants, or None."""
    if not os.environ.get("CADRE_ARCHIVE"):
        return None
    from .._code import _archive  # and everything that it needs

    try:
        return _archive.of_environment()
    except (OSError, ValueError) as e:
        raise Stop(f"spec.worker.archive: {e}", EXIT_MODULE) from None


def roles():
    """Returns all roles of this process, from the environment that the agent sets, and the JSON of the roles, or
    None.
    """
    name = os.environ.get("CADRE_PYTHON")
    if not name:
        raise Stop("CADRE_PYTHON is not set: which module? spec.worker.python, or the first argument, says it", EXIT_USAGE)
    text = os.environ.get("CADRE_ROLES")
    try:
        wanted = json.loads(text) if text else [{"class": os.environ.get("CADRE_CLASS"),
                                                 "init": json.loads(os.environ.get("CADRE_INIT") or "{}")}]
    except ValueError as e:
        raise Stop(f"CADRE_ROLES and CADRE_INIT are JSON: {e}", EXIT_USAGE) from None
    _enter_archive()
    with without_collection():
        sent = _sent(name)
        module = None if sent else import_module(name)
    found = [(role, _class_of(sent, role) if sent else find_class(module, role.get("class"))) for role in wanted]
    return [Role(role.get("name"), cls, methods_of(cls, make(cls, role.get("init") or {}))) for role, cls in found], text


def _mode(modes, name, what, method):
    try:
        return modes[name]
    except KeyError:
        raise Stop(f"method {method} has {what}={name!r}: there are {', '.join(modes)}", EXIT_MODULE) from None


def _rule(value):
    return None if value is None else (value if isinstance(value, str) else json.dumps(value)).encode()


def _doc(function):
    lines = (inspect.getdoc(function) or "").splitlines()
    return lines[0][:200].encode() if lines else None


def describe(role):
    """Describes a class for the host."""
    methods = [_host.Method(m.name.encode(), _mode(_library.DISPATCH, m.said.dispatch, "dispatch", m.name),
                            _mode(_library.EXECUTE, m.said.execute, "execute", m.name), None, _doc(m.function))
               for m in role.methods]
    lanes = [_host.Lane(name.encode(), min(limit, _host.LIMIT_MAX), _host.array(_host.c_char_p, [m.name.encode() for m in members]),
                        len(members)) for name, (limit, members) in role.lanes().items()]
    rules = [_host.Rule(m.name.encode(), _rule(m.said.split), _rule(m.said.collect), m.said.idempotent)
             for m in role.methods
             if m.said.idempotent or m.said.split is not None or m.said.collect is not None]
    return _host.Class(role.cls.__name__.encode(), _host.array(_host.Method, methods), len(methods),
                       _host.array(_host.Lane, lanes), len(lanes), _host.array(_host.Rule, rules), len(rules))
