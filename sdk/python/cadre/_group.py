# SPDX-License-Identifier: Apache-2.0
"""A group as one object: calls of its methods."""

import ctypes
from ctypes import byref

from . import _errors, _options
from . import _library as lib
from ._future import Future
from ._reference import Ref
from ._value import Batch, encode_call, encode_result

_PREPARED_MAX = 256  # methods with options that one Group remembers
_HINT = "; arguments of the method that have names go into args={...}"


class _Prepared:
    """A request that lacks nothing but its arguments, to be used again."""

    __slots__ = ("request", "ref", "args", "by_reference", "method")

    def __init__(self, group, role, method, options):
        if not isinstance(method, str):
            raise TypeError(f"a method's name is text, not {method!r}")
        r = self.request = lib.Request(size=ctypes.sizeof(lib.Request), rank=-1, keep=1)
        _options.put(r, "method", method.encode(), "method")
        _options.put(r, "group", group.encode(), "group")
        if role is not None and not method.startswith(("group.", "object.")):
            _options.put(r, "role", role.encode(), "role")
        _options.fill(r, _options.CALL, options, f"{method}()", _HINT)
        self.ref = byref(r)
        self.args = r.args  # a view, not a copy
        self.by_reference = bool(r.by_reference)
        self.method = method


class Group:
    """A WorkerGroup, or one of its roles; Client.group() makes it."""

    def __init__(self, client, name, role=None):
        self.client = client
        self.name = name
        self.role = role
        self._prepared = {}

    def call(self, method, /, *args, **options):
        """Calls a method of the workers and returns its result: a list with one element a rank, or what the dispatch
        and execute modes say (docs/calls.md). `args` are its arguments by position; or one Batch.

        args      instead: arguments by name, a dict (or a list); or a Ref to all of them
        per_rank  instead: a list with the arguments of each rank: a list, a dict, a Batch, or one value
        rank      only this one, with the arguments as they are
        dispatch  "ONE_TO_ALL", "DP_COMPUTE_PROTO", ...; execute: "ALL", "RANK_ZERO", "ANY"
        split, collect, pad   of a batch, or of a list with {"elements": True}
        timeout   seconds
        keep      results stay on the workers, and this is a Ref; pin: also when the client is closed
        max_retries, retry_on, idempotent   whether it may be sent again: never, by default
        no_result ranks need not send theirs: it is None once all have run it
        attempt, refuse_when_not_ready, traceparent   as in docs/calls.md
        """
        client = self.client
        client._enter()
        try:
            client._at_work = True
            prepared = self._prepare(method, options)
            call_id = self._send(prepared, args, options)
            try:
                client._await_one(call_id)
            except BaseException:
                client._give_up(call_id)
                raise
            result = client._take(call_id)
        finally:
            client._leave()
        return Ref(result["$ref"], self) if prepared.by_reference else result

    def start(self, method, /, *args, **options):
        """As call(), but does not wait: returns a Future. The call is sent when something waits."""
        client = self.client
        client._enter()
        try:
            client._at_work = True
            prepared = self._prepare(method, options)
            return Future(self, prepared, self._send(prepared, args, options))
        finally:
            client._leave()

    def put(self, value, **options):
        """Puts JSON, or a Batch, to the workers and returns a Ref to it: to the least busy rank, to `rank`, or dealt
        out by a `dispatch` mode.
        """
        options["args"] = value
        return Ref(self.call("object.put", **options)["$ref"], self)

    def ref(self, text):
        """The Ref of a text that another program got (Ref.text)."""
        if not str(text).startswith("cadre:"):  # the proxy would take it for JSON of the caller's own
            raise ValueError(f"{text!r} is no reference, which begins with cadre: as Ref.text does")
        return Ref(text, self)

    def info(self, timeout=None):
        """What the proxy knows of the group: its ranks, where they run, its methods (docs/calls.md)."""
        return self.call("group.info", timeout=timeout)

    def kill(self, rank, *, attempt=None, timeout=None):
        """Ends the process of a rank as if it had crashed. Returns once it is gone."""
        self.call("group.kill", rank=rank, attempt=attempt, timeout=timeout)

    def __repr__(self):
        role = f" role={self.role}" if self.role else ""
        return f"<cadre.Group {self.name}{role} of {self.client!r}>"

    def _prepare(self, method, options):
        if "args" in options or "per_rank" in options:
            options = {k: v for k, v in options.items() if k != "args" and k != "per_rank"}
        try:
            key = (method, *options.items()) if options else method
            found = self._prepared.get(key)
        except TypeError:  # an option that cannot be a key, such as `split`
            return _Prepared(self.name, self.role, method, options)
        if not found:
            if len(self._prepared) >= _PREPARED_MAX:
                self._prepared.clear()
            found = self._prepared[key] = _Prepared(self.name, self.role, method, options)
        return found

    def _send(self, prepared, args, options):
        client = self.client
        if options:
            given = bool(args) + ("args" in options) + ("per_rank" in options)
            if given > 1:
                raise TypeError(f"{prepared.method}() gets its arguments by position, as args=, or as per_rank=: only "
                                "one of them")
            if "per_rank" in options:
                return self._send_per_rank(prepared, options["per_rank"])
            args = options.get("args", args)
        body = _body_of(args, prepared.method)
        if body.kind != "json":
            return self._send_document(prepared, body)
        text, = body.parts
        view = prepared.args
        view.text = text
        view.len = len(text)
        return client._send(prepared.ref)

    def _send_document(self, prepared, body):
        client, request, size, room = self.client, prepared.request, body.len, ctypes.c_void_p()
        prepared.args.text = None  # of an earlier call
        if lib.functions.batch_room(client._handle, size, byref(room), client._error_ref) != lib.OK:
            raise _errors.of_struct(client._error)
        body.write(memoryview((ctypes.c_char * size).from_address(room.value)).cast("B"))
        request.batch, request.batch_len = room, size
        request.lend = 1  # it is the call's from now on
        try:
            return client._send(prepared.ref)
        finally:
            lib.functions.batch_free(client._handle, room)
            request.batch, request.batch_len, request.lend = None, 0, 0

    def _send_per_rank(self, prepared, values):
        if not isinstance(values, (list, tuple)):
            raise TypeError(f"{prepared.method}(): per_rank is a list with one element a rank, not a "
                            f"{type(values).__name__}")
        bodies, keep = (lib.Json * max(len(values), 1))(), []
        request = prepared.request
        prepared.args.text = None  # of an earlier call
        try:
            for body, value in zip(bodies, values):
                keep.append(b"".join(_body_of(value if isinstance(value, (list, dict)) else (value,),
                                              prepared.method).parts))
                body.text, body.len = ctypes.cast(keep[-1], ctypes.c_void_p), len(keep[-1])
            request.per_rank, request.n_per_rank = bodies, len(values)
            return self.client._send(prepared.ref)
        finally:
            request.per_rank, request.n_per_rank = None, 0

    def _object_call(self, method, reference, timeout):
        return self.call(method, args=reference, timeout=timeout)


def _body_of(args, method):
    """args: a tuple by position; a list likewise, or a dict by name; or one value that is all arguments."""
    if isinstance(args, dict):
        return encode_call((), args, method)
    if isinstance(args, (Batch, Ref)) or method == "object.put":
        return encode_result(args, method)
    if len(args) == 1 and isinstance(args[0], Ref) and args[0].stands_for_all():
        return encode_result(args[0], method)
    return encode_call(args, {}, method)
