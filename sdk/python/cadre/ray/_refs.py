# SPDX-License-Identifier: Apache-2.0
"""References to the results of calls and put(): in the process that made them, and in others that got them."""

import contextlib
import functools
import secrets
import sys
import threading
import time
from queue import Empty, SimpleQueue

from .. import _errors
from .._unsent import is_watcher
from . import _packing, _session
from .exceptions import (GetTimeoutError, ObjectStoreFullError, ReferenceCountingAssertionError)

_SLICE_S = 0.1  # how long Ctrl-C has to wait at most
_ask = threading.local()  # the references that the pickle of this thread takes along


class Promise:
    """The state of a reference in this process: not known, a value, or an exception."""

    __slots__ = ("_lock", "_settled", "_future", "_translate", "_value", "_error", "_callbacks", "_watched", "_attempt",
                 "keeps", "stop", "__weakref__")

    def __init__(self):
        self._lock = threading.Lock()
        self._settled = False
        self._future = self._translate = self._value = self._error = None
        self._callbacks = []
        self._watched = False  # what it waits for calls _tell()
        self._attempt = None  # (future, answered) of a call that may be sent again
        self.keeps = ()  # references that its call took along
        self.stop = None  # cancels parts that were not sent

    def follow(self, future, translate):
        """The call is sent. translate(future) returns (value, error) when the future is answered."""
        with self._lock:
            self._translate, self._future = translate, future
            source = self._unwatched()
        if source is not None:
            source.add_done_callback(self._tell)

    def try_with(self, future, answered):
        """The call is sent, maybe not for the last time. answered(future) settles the promise, or sends the call again."""
        self._attempt = future, answered
        future.add_done_callback(self._end_attempt)

    def _end_attempt(self, future):
        with self._lock:
            attempt, ends = self._attempt, self._attempt is not None and self._attempt[0] is future
            if ends:
                self._attempt = None
        if ends:
            attempt[1](future)

    def settle(self, value=None, error=None):
        if self._store(value, error):
            self._call_back()

    def _store(self, value, error):
        """Like settle(), without the callbacks: those run on the thread that _tell() runs on, which holds no lock."""
        with self._lock:
            if self._settled:
                return False
            self._value, self._error, self._settled = value, error, True
            self._future = self._translate = self._attempt = self.stop = None
            self.keeps = ()
            return True

    def _call_back(self):
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for f in callbacks:
            _call(f)

    def done(self):
        future = self._future
        return self._settled or future is not None and future.done()

    def add_done_callback(self, f):
        """Calls f() on any thread when the value is there; at once if it is there already."""
        with self._lock:
            settled, source = self._settled, None
            if not settled:
                self._callbacks.append(f)
                source = self._unwatched()
        if settled:
            _call(f)
        elif source is not None:
            source.add_done_callback(self._tell)

    def awaited(self):
        """Whether somebody has asked to be called."""
        return bool(self._callbacks)

    def remove_done_callback(self, f):
        with self._lock:
            if f in self._callbacks:
                self._callbacks.remove(f)

    def _source(self):
        """Returns the future that it waits for."""
        return self._future

    def _unwatched(self):
        """Returns what has to call _tell(), once. The lock is held."""
        source = self._source() if self._callbacks and not self._watched else None
        self._watched = self._watched or source is not None
        return source

    def _tell(self, _=None):
        self._take()
        self._call_back()

    def wait(self, timeout=None):
        """Whether the value is there."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._settled:
            future, take = self._sent()
            if future is not None:
                try:
                    future.exception(timeout if end is None else max(end - time.monotonic(), 0))
                except TimeoutError:
                    if not future.done():
                        return False
                take()
                continue
            woken = threading.Event()
            self.add_done_callback(woken.set)
            with self._lock:
                sent = self._settled or self._sent()[0] is not None
            while not sent and not woken.wait(_SLICE_S if end is None else min(_SLICE_S, max(end - time.monotonic(), 0))):
                if end is not None and time.monotonic() >= end:
                    self.remove_done_callback(woken.set)
                    return False
                sent = self._settled or self._sent()[0] is not None
        return True

    def _sent(self):
        """Returns (the future to wait for, what to do then). The future is None if another thread does it all."""
        attempt = self._attempt
        if attempt is not None and is_watcher():  # no other thread calls back
            return attempt[0], functools.partial(self._end_attempt, attempt[0])
        return self._future, self._take

    def _take(self):
        future, translate = self._future, self._translate
        if future is not None and not self._settled:
            self._store(*translate(future))

    def cancel(self):
        future, stop = self._future, self.stop
        if self._settled:
            return
        if future is not None:
            future.cancel()
        elif stop is not None:
            stop()

    def outcome(self):
        """Returns (value, error) of a result that is there."""
        self._take()
        return self._value, self._error


def _call(f):
    try:
        f()
    except Exception:
        sys.excepthook(*sys.exc_info())


class _Stored(Promise):
    """A value of put(), as bytes. Each reader gets its own copy."""

    __slots__ = ("_bytes",)

    def __init__(self, value):
        super().__init__()
        with taking() as refs:
            self._bytes = _packing.to_bytes(value, "the value of put()")
        self.settle(self._bytes)
        self.keeps = refs

    def outcome(self):
        return _packing.of_bytes(self._bytes), None

    def argument(self):
        """Returns the argument that stands for it in a call. References in it are counted for the receiver."""
        return self.outcome()[0] if self.keeps else _packing.Enclosed(self._bytes)

    def body(self):
        return "value", _packing.as_tensor(self._bytes), _ids_of(self.keeps)


class _Part(Promise):
    """One result of a call with num_returns."""

    __slots__ = ("_whole", "_i", "_n", "_name")

    def __init__(self, whole, i, n, name):
        super().__init__()
        self._whole, self._i, self._n, self._name = whole, i, n, name
        whole.add_done_callback(self._split)

    def _split(self):
        part, (value, error) = None, self._whole.outcome()
        try:
            if error is None and len(value) != self._n:
                error = ValueError(f"Task {self._name} returned {len(value)} objects, but num_returns={self._n}.")
            if error is None:
                part = value[self._i]
        except Exception:  # it has no parts: None, a set
            error = TypeError(f"Task {self._name} returned a {type(value).__name__}, but num_returns={self._n}: return a list "
                              "or a tuple.")
        self._whole = None  # it has the other parts, too
        self.settle(part, error)

    def cancel(self):
        whole = self._whole
        if whole is not None:
            whole.cancel()


class _Elsewhere(Promise):
    """The state of a reference from another process: the directory has the value, or will have it."""

    __slots__ = ("_session", "_name", "_asked")

    def __init__(self, session, name):
        super().__init__()
        self._session, self._name, self._asked = session, name, False

    def done(self):
        return self._settled or bool(self._session.ask("look", [self._name], 0))

    def wait(self, timeout=None):
        end = None if timeout is None else time.monotonic() + timeout
        while not self._settled:
            left = 60 if end is None else max(end - time.monotonic(), 0)
            found = self._session.ask("fetch", self._name, left)
            if found is not None:
                self._found(found)
            elif end is not None and time.monotonic() >= end:
                return False
        return True

    def add_done_callback(self, f):
        with self._lock:
            ask = not self._asked and not self._settled
            self._asked = True
        super().add_done_callback(f)
        if ask:
            self._look()

    def _look(self):
        asked = self._session.start("fetch", self._name, 60)
        if asked is None:
            self.settle(error=RuntimeError("shutdown() came before the value of this reference: get() it before"))
        else:
            asked.add_done_callback(self._told)

    def _told(self, future):
        error = future.exception()
        if error is not None:
            self.settle(error=error)
        elif future.result() is None:
            self._session.later(self._look)
        else:
            self._found(future.result())

    def _found(self, found):
        kind, body = found
        value = error = None
        try:
            if kind == "value":
                value = _packing.of_bytes(body.data)
            elif kind == "error":
                error = _packing.loads(bytes(body.data))
            else:
                error = (ObjectStoreFullError if kind == "full" else ReferenceCountingAssertionError)(body)
        except Exception as e:  # it cannot be opened here, for example because this process lacks a module
            error = e
        self.settle(value, error)

    def outcome(self):
        self.wait()
        return self._value, self._error

    def cancel(self):
        pass


@contextlib.contextmanager
def taking(hand_over=False):
    """Returns a list of the references that pickles of this thread take along. hand_over: the process that opens the
    pickle, once, becomes their holder. Otherwise the caller keeps them until the other side has them.
    """
    before, refs = getattr(_ask, "refs", None), []
    _ask.refs = hand_over, refs
    try:
        yield refs
    finally:
        _ask.refs = before
    if hand_over and refs:  # the new holder may drop them as soon as it has the pickle
        later = getattr(_ask, "later", None)
        if later is None:
            _session.current().ask("hold", _ids_of(refs))
        else:
            later += refs


@contextlib.contextmanager
def holding_later():
    """For a loop of asyncio, which must not wait: returns a list of the references that taking(hand_over=True) hands over on
    this thread meanwhile. Before a pickle with them is sent, hold() has to be awaited.
    """
    _ask.later = refs = []
    try:
        yield refs
    finally:
        _ask.later = None


async def hold(refs):
    asked = _session.current().start("hold", _ids_of(refs)) if refs else None
    if asked is not None:
        await asked


def _ids_of(refs):
    return [ref._id for ref in refs]


def _take_along(ref):
    """Returns whether the copy is a holder already. The directory counts it."""
    hand_over, refs = getattr(_ask, "refs", None) or (None, None)
    if refs is None:  # nobody reports when the other side has it
        _session.current().tell("hold", [ref._id])
    else:
        refs.append(ref)
    return bool(hand_over)


class Held:
    """A reference or a handle that the directory counts for this process."""

    def _share(self):
        """Returns the data with which another process gets it."""
        return _take_along(self)

    @staticmethod
    def _got(name, is_holder):
        session = _session.current()
        if not is_holder:
            session.ask("hold", [name])
        return session


class ObjectRef(Held):
    """Stands for the result of a call. Use get(), pass it to another call, or `await` it."""

    def __init__(self, promise, name=None, session=None):
        self._id = name or secrets.token_hex(28)
        self._promise = promise
        self._session = session  # in this session, the directory counts the reference
        self._shared = session is not None

    def __reduce__(self):
        if not self._shared:
            self._shared = True
            self._session = session = _session.current()
            session.tell("hold", [self._id])
            _push(session, self._id, self._promise)
        return _ref_from, (self._id, self._share())

    def __del__(self):
        session = getattr(self, "_session", None)
        if session is not None and not session.closed and not sys.is_finalizing():
            session.later(session.tell, "drop", [self._id])

    def __await__(self):
        import asyncio

        return asyncio.wrap_future(self.future()).__await__()

    def future(self):
        """Returns a concurrent.futures.Future."""
        import concurrent.futures

        made = concurrent.futures.Future()

        def answer():  # it keeps the reference, without which the directory drops the value
            if made.set_running_or_notify_cancel():
                value, error = self._promise.outcome()
                if error is not None:
                    made.set_exception(error)
                else:
                    made.set_result(value)

        self._promise.add_done_callback(answer)
        return made

    def hex(self):
        return self._id

    def binary(self):
        return bytes.fromhex(self._id)

    def task_id(self):
        return self._id[:48]

    def __class_getitem__(cls, item):
        return cls

    def __eq__(self, other):
        return isinstance(other, ObjectRef) and other._id == self._id

    def __hash__(self):
        return hash(self._id)

    def __repr__(self):
        return f"ObjectRef({self._id})"


def _ref_from(name, is_holder):
    session = Held._got(name, is_holder)
    return ObjectRef(_Elsewhere(session, name), name, session)


def _push(session, name, promise):
    """Others may ask for the value: the directory gets it as soon as it is there."""

    def push():
        if isinstance(promise, _Stored):
            session.tell("put", name, *promise.body(), keeps=promise.keeps)
            return
        value, error = promise.outcome()
        if error is None:
            try:
                with taking() as refs:
                    body = _packing.as_tensor(_packing.to_bytes(value))
                session.tell("put", name, "value", body, _ids_of(refs), keeps=refs)
                return
            except (TypeError, _errors.Error) as e:  # it does not pickle, or is too long
                error = e
        session.tell("put", name, "error", _packing.as_tensor(_packing.dumps(error, "an exception")))

    promise.add_done_callback(push)


# Functions that programs call

def put(value, *, _owner=None, _tensor_transport=None):
    """Keeps a value as it is now, and returns a reference to it."""
    if isinstance(value, ObjectRef):
        raise TypeError("Calling 'put' on an ray.ObjectRef is not allowed. If you really want to do this, you can wrap the "
                        "ray.ObjectRef in a list and call 'put' on it.")
    _session.current()
    return ObjectRef(_Stored(value))


def get(refs, *, timeout=None, _use_object_store=None):
    """Returns the value of a reference, or a list of values for a list. Raises the exception of the call."""
    if isinstance(refs, ObjectRef):
        return _value_of(refs, timeout)
    if not isinstance(refs, (list, tuple)):
        raise ValueError(f"Invalid type of object refs, {type(refs)}, is given. 'object_refs' must either be an ObjectRef or a "
                         "list of ObjectRefs.")
    for ref in refs:
        if not isinstance(ref, ObjectRef):
            raise ValueError(f"Invalid type of object refs, {type(ref)}, is given. 'object_refs' must either be an ObjectRef "
                             "or a list of ObjectRefs.")
    end = None if timeout is None else time.monotonic() + timeout
    return [_value_of(ref, None if end is None else max(end - time.monotonic(), 0)) for ref in refs]


def _value_of(ref, timeout):
    if timeout is not None and timeout < 0:
        timeout = None
    if not ref._promise.wait(timeout):
        raise GetTimeoutError(f"Get timed out: some object(s) not ready: {ref!r} after {timeout} s; the call goes on")
    value, error = ref._promise.outcome()
    if error is not None:
        raise error
    return value


def wait(refs, *, num_returns=1, timeout=None, fetch_local=True):
    """Returns (ready, rest), both in the given order. `ready` has num_returns references, or fewer if the time is
    over.
    """
    if isinstance(refs, ObjectRef):
        raise TypeError("wait() expected a list of ray.ObjectRef, got a single ray.ObjectRef")
    refs = list(refs)
    for ref in refs:
        if not isinstance(ref, ObjectRef):
            raise TypeError(f"wait() expected a list of ray.ObjectRef, got list containing {type(ref)}")
    if len(set(refs)) != len(refs):
        raise ValueError("Wait requires a list of unique object refs.")
    if not refs:
        return [], []
    if num_returns <= 0:
        raise ValueError(f"Invalid number of objects to return {num_returns}.")
    if num_returns > len(refs):
        raise ValueError("num_returns cannot be greater than the number of ray_waitables provided to ray.wait")
    ready = [r for r in refs if r._promise.done()] if timeout == 0 else _first(refs, num_returns, timeout)
    ready = ready[:num_returns]
    chosen = set(ready)
    return ready, [r for r in refs if r not in chosen]


def _first(refs, n, timeout):
    answered, end = SimpleQueue(), None if timeout is None else time.monotonic() + timeout
    done, told = set(), [(ref._promise, functools.partial(answered.put, ref)) for ref in refs]
    for promise, f in told:
        promise.add_done_callback(f)
    while len(done) < n and (end is None or time.monotonic() < end):
        try:
            done.add(answered.get(timeout=_SLICE_S if end is None else min(_SLICE_S, max(end - time.monotonic(), 0))))
        except Empty:
            pass
    for promise, f in told:
        promise.remove_done_callback(f)
    while not answered.empty():
        done.add(answered.get())
    return [r for r in refs if r in done]
