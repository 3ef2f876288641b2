# SPDX-License-Identifier: Apache-2.0
"""Calls on their way into the library: a request without its arguments, and the arguments."""

import ctypes
import time
from ctypes import byref
from typing import NamedTuple

from . import _errors, _options, _split
from . import _library as lib
from ._future import Future
from ._kept import Kept
from ._method import call as running_call
from ._method import registered
from ._reference import Ref
from ._unsent import AGAIN_S, READY_S, HoldsUp, is_watcher, not_told
from ._value import Batch, encode_call, encode_result, list_of

_PREPARED_MAX = 256  # methods with options that one group remembers
_HINT = "; arguments of the method that have names go into args={...}"
_start, _room, _free = lib.functions.start, lib.functions.batch_room, lib.functions.batch_free


class Method:
    """The part that all calls of one method with the same options share. Threads may use it at the same time, because
    nothing is written.
    """

    __slots__ = ("group", "role", "name", "request", "by_reference", "trust", "said")

    def __init__(self, group, role, name, options, trust=False, said=None):
        if not isinstance(name, str):
            raise TypeError(f"a method's name is text, not {name!r}")
        r = self.request = lib.Request(size=ctypes.sizeof(lib.Request), rank=-1, keep=1, lend=1)
        _options.put(r, "method", name.encode(), "method")
        _options.put(r, "group", group.encode(), "group")
        if role is not None and "." not in name:
            _options.put(r, "role", role.encode(), "role")
        _options.fill(r, _options.CALL, options, f"{name}()", _HINT)
        self.group = group
        self.role = role
        self.name = name
        self.by_reference = bool(r.by_reference)
        self.trust = trust
        self.said = said  # (dispatch, execute) of its class, if the group was made from the class itself


class Methods:
    """The Methods of one group or role. Each one is made once for the same options."""

    def __init__(self, group, role, trust, cls=None):
        self._of = group, role
        self._class = cls if isinstance(cls, type) else None
        self.trust = trust
        self._known = {}

    def get(self, name, options):
        try:
            key = (name, *options.items()) if options else name
            found = self._known.get(key)
        except TypeError:  # an option that cannot be a key, such as `split`
            return self._made(name, options)
        if not found:
            if len(self._known) >= _PREPARED_MAX:
                self._known.clear()
            found = self._known[key] = self._made(name, options)
        return found

    def _made(self, name, options):
        function = getattr(self._class, name, None) if self._class and isinstance(name, str) else None
        said = registered(function) if function else None
        return Method(*self._of, name, options, self.trust, said and (said.dispatch, said.execute))


class Both(NamedTuple):
    """Arguments by position and by name in one call. Only Python workers take them."""

    args: tuple
    kwargs: dict


def start(client, method, args, given=None, lazy=0, kwargs=None):
    """Returns the Future of a call. args: by position; kwargs: by name; given: the arguments among `args` and
    `per_rank` that the client has given by name instead.
    """
    if kwargs:
        args = Both(args, kwargs) if args else kwargs
    if given:
        if bool(args) + len(given) > 1:
            raise TypeError(f"{method.name}() gets its arguments by position, as args=, or as per_rank=: only one of "
                            "them")
        if "per_rank" in given:
            return Future(client, method, _send_per_rank(client, method, given["per_rank"]))
        args = given["args"]
    args = _with_kept(args)
    futures = _futures_in(args)
    if futures:
        return Future.behind(client, method, futures, lambda future: _send(future, _resolved(args), 0))
    future = Future(client, method, 0)
    future._id = _send(future, args, lazy)
    return future


def start_list(client, method, bodies):
    """The Future of a call that gives each rank its own body: one for each piece of its mode."""
    return Future(client, method, _send_document(client, lib.Request.from_buffer_copy(method.request), list_of(bodies)))


def _with_kept(args):
    """The arguments, with the values that the client keeps instead of the references to them."""
    if type(args) is Both:
        return Both(_with_kept(args.args), _with_kept(args.kwargs))
    if type(args) in (tuple, list):
        return type(args)(a._argument() if type(a) is Kept else a for a in args) if Kept in map(type, args) else args
    if type(args) is dict:
        return {name: a._argument() if type(a) is Kept else a for name, a in args.items()}
    return args._argument() if type(args) is Kept else args


def _futures_in(args):
    if type(args) is Both:
        return _futures_in(args.args) + _futures_in(args.kwargs)
    if type(args) is tuple or type(args) is list:
        return [a for a in args if type(a) is Future]
    return [a for a in args.values() if type(a) is Future] if type(args) is dict else []


def _resolved(args):
    if type(args) is Both:
        return Both(_resolved(args.args), _resolved(args.kwargs))
    if isinstance(args, dict):
        return {name: a.result() if type(a) is Future else a for name, a in args.items()}
    return tuple(a.result() if type(a) is Future else a for a in args)


def _send(future, args, lazy):
    """Starts the call and returns its id."""
    client, method = future._client, future._method
    body = _body_of(args, method.name)
    request = lib.Request.from_buffer_copy(method.request)
    if future._unsent is not None:
        future._unsent.count_wait(request)
    if body.kind == "pickle":
        mode = _mode_of(future, request)
        if mode is not None and not _split.goes_whole(mode):
            return _send_split(future, args, mode, request)
    request.lazy = lazy
    request.positional = type(args) is tuple
    if body.kind != "json":
        return _send_document(client, request, body)
    text, = body.parts
    request.lend = 0
    request.args.text = text
    request.args.len = len(text)
    return _begin(client, request)


def _send_document(client, request, body):
    size, room, handle, error = body.len, ctypes.c_void_p(), client._open_handle(), lib.ClientError()
    again = True
    while _room(handle, size, byref(room), byref(error)) != lib.OK:
        again = client._make_room(error, again)
    try:
        body.write(memoryview((ctypes.c_char * size).from_address(room.value)).cast("B"))
        request.batch, request.batch_len = room, size
        return _begin(client, request)
    finally:
        _free(handle, room)  # the call owns it from now on


_MODES = {number: name for name, number in lib.DISPATCH.items()}
_ONE_RANK = (lib.EXECUTE["RANK_ZERO"], lib.EXECUTE["ANY"])


def _ask(future, request, look):
    """Returns look(info) as soon as it finds something in the group's info. The time for that counts for the call."""
    client, method, unsent = future._client, future._method, future._unsent
    if unsent is not None and is_watcher():
        found = look(unsent.info) if unsent.info else None
        if found is None:
            raise HoldsUp(look)
        return found
    begun, has_end = time.monotonic(), bool(request.timeout_ms)
    limit = request.timeout_ms / 1000 if has_end else READY_S
    while True:
        left = begun + limit - time.monotonic()
        info = client.group(method.group).info(timeout=max(left, AGAIN_S) if has_end else None)
        found, took = look(info), time.monotonic() - begun
        if found is not None:
            if has_end:
                request.timeout_ms = max(request.timeout_ms - round(took * 1000), 1)
            return found
        if unsent is not None and unsent.canceled:
            raise unsent.canceled
        if took >= limit:
            raise not_told(method, info)
        time.sleep(AGAIN_S)  # the group is starting


def _modes_of(future, request):
    """Returns (dispatch, execute) of the method."""
    client, method = future._client, future._method
    if method.said:
        return method.said
    key = method.group, method.role
    known = client._groups.get(key)
    if known is None:
        known = client._groups[key] = _ask(future, request, lambda info: _methods_in(info, method.role))
    return known.get(method.name, ("ONE_TO_ALL", "ALL"))


def _methods_in(info, role):
    """Returns {method: (dispatch, execute)} from the group's info. None: no rank has told its methods yet."""
    roles = {r["name"]: r["methods"] for r in info.get("roles", ())}
    methods = roles.get(role, info.get("methods", ()))
    if not methods and not roles:  # the proxy refuses a role that does not exist
        return None
    return {m["name"]: (m["dispatch"], m["execute"]) for m in methods}


def _mode_of(future, request):
    """The dispatch mode that splits the call. None: one rank gets all of it."""
    if request.rank >= 0 or request.execute in _ONE_RANK or future._method.name.startswith(("group.", "object.")):
        return None
    if request.dispatch:
        return _MODES[request.dispatch]
    dispatch, execute = _modes_of(future, request)
    return None if not request.execute and lib.EXECUTE[execute] in _ONE_RANK else dispatch


def _send_split(future, args, mode, request):
    """Sends a call with arguments that only this program can split."""
    client, method = future._client, future._method
    by_position, by_name = args if type(args) is Both else ((), args) if isinstance(args, dict) else (tuple(args), {})
    if request.pad:
        raise TypeError(f"{method.name}(): only a batch that the proxy splits can be padded")
    ranks = _ask(future, request, lambda info: info["worldSize"])
    pieces = _split.split(mode, by_position, by_name, ranks, f"{method.name}()")
    if _split.joins(mode):
        future._join = _split.join
    values = [Both(*one) if all(one) else one[1] or list(one[0]) for one in pieces]
    return _send_per_rank(client, method, values, request)


def _send_per_rank(client, method, values, request=None):
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{method.name}(): per_rank is a list with one element per rank, not a {type(values).__name__}")
    request = request or lib.Request.from_buffer_copy(method.request)
    values = [_with_kept(v) for v in values]
    made = [_body_of(v if isinstance(v, (list, dict, Both)) else (v,), method.name) for v in values]
    if any(body.kind != "json" for body in made):
        request.dispatch = lib.DISPATCH["ALL_TO_ALL"]
        return _send_document(client, request, list_of(made))
    bodies, keep = (lib.Json * max(len(values), 1))(), []
    for body, one in zip(bodies, made):
        keep.append(one.parts[0])
        body.text, body.len = ctypes.cast(keep[-1], ctypes.c_void_p), len(keep[-1])
    request.per_rank, request.n_per_rank, request.lend = bodies, len(values), 0
    return _begin(client, request)


def _say_who_waits(request):
    """For a call that a method makes. The proxy and the ranks then refuse a call that would wait for itself."""
    running = running_call.get(None)
    if running is None or running.over:
        return
    request.via, left = running.calls()
    request.timeout_ms = min(request.timeout_ms or left, left)


def _begin(client, request):
    if client.of_worker:
        _say_who_waits(request)
    scratch, ref, again = lib.Scratch.get(), byref(request), True
    try:
        while _start(client._open_handle(), ref, scratch.id_ref, scratch.error_ref) != lib.OK:
            if request.urgent:  # it waits for no other call
                raise _errors.of_struct(scratch.error)
            again = client._make_room(scratch.error, again)
        return scratch.id.value
    finally:
        scratch.give_back()


def _body_of(args, method):
    """args: a tuple or a list by position, or a dict by name; or one value that is all arguments."""
    if type(args) is Both:
        return encode_call(*args, method)
    if isinstance(args, dict):
        return encode_call((), args, method)
    if isinstance(args, (Batch, Ref)) or method.startswith("object."):
        return encode_result(args, method)
    if len(args) == 1 and isinstance(args[0], Ref) and args[0].stands_for_all():
        return encode_result(args[0], method)
    return encode_call(args, {}, method)
