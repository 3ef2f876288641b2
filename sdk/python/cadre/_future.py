# SPDX-License-Identifier: Apache-2.0
"""Calls that were started, and whose results come later."""

import ctypes
import json
import sys
import threading
import time
from ctypes import byref
from operator import index
from queue import Empty, SimpleQueue

from . import _errors, _late, _raised
from . import _library as lib
from ._reference import Ref
from ._unsent import Unsent, is_over, slice_of
from ._value import copy, decode

_SHORT = 1 << 16  # bytes; the arrays of a longer result use the only copy
_SLICE_MS = 100  # so long Python's own signal handlers (Ctrl-C) have to wait at most
_take, _give_back, _done, _cancel, _forget, _wait_for = (
    lib.functions.take, lib.functions.give_back, lib.functions.done, lib.functions.cancel, lib.functions.forget,
    lib.functions.wait_for)


class Future:
    """A call that was started with Group.start(). `await` waits for it, too. If it is dropped, the call continues,
    and its result is thrown away.
    """

    __slots__ = ("_client", "_method", "_id", "_lock", "_taking", "_answer", "_taken", "_result", "_error", "_unsent",
                 "_join", "__weakref__")

    def __init__(self, client, method, call_id):
        self._client = client
        self._method = method
        self._id = call_id
        self._lock = threading.RLock()  # held by the thread that takes the answer; its signal handlers may ask, too
        self._taking = None  # memory into which that thread lets the library write the answer
        self._answer = None  # as the library gave it: (the error or None, the body), until it is opened
        self._taken = False
        self._result = self._error = None
        self._unsent = None  # while it waits for its arguments
        self._join = None  # joins the results of the ranks into one

    @classmethod
    def behind(cls, client, method, others, send):
        """Makes the Future of a call that send() sends as soon as other calls are answered: their results are its
        arguments.
        """
        future = cls(client, method, 0)
        future._unsent = unsent = Unsent(future, others, send)
        unsent.begin()
        return future

    def result(self, timeout=None):
        """Waits for the result, `timeout` seconds at most. Raises the call's Error, or TimeoutError: the call
        continues.
        """
        if not self._taken:
            self._wait(timeout)
        if self._error is not None:
            raise self._error
        return self._result

    def exception(self, timeout=None):
        """Returns the Error of the call, or None if it has a result. Waits like result()."""
        if not self._taken:
            self._wait(timeout)
        return self._error

    def done(self):
        """Whether the call is answered."""
        if self._unsent is not None:
            return False
        return self._is_here() or bool(_done(self._client._any_handle(), self._id))

    def _is_here(self):
        return self._taken or self._answer is not None

    def cancel(self):
        """Cancels the call. It ends with Canceled, or with its result if that was faster. Ranks that run it may
        continue. Returns False if it was answered already.
        """
        unsent = self._unsent
        if unsent is not None and unsent.cancel():
            return True
        if self._taken or not self._id:
            return False
        return _cancel(self._client._any_handle(), self._id) == lib.OK

    def add_done_callback(self, f):
        """Calls f(self) when the call is answered, on a thread of the client. If it is answered already, calls it at
        once.
        """
        unsent = self._unsent
        if unsent is not None and unsent.add_done_callback(f):
            return
        if self._taken or not self._client._watch(self, f):
            f(self)

    def _remove_done_callback(self, f):
        unsent = self._unsent
        if unsent is not None:
            unsent.remove_done_callback(f)
        self._client._unwatch(self, f)

    def __await__(self):
        import asyncio

        loop = asyncio.get_running_loop()
        waiter = loop.create_future()

        def wake():
            if not waiter.done():
                waiter.set_result(None)

        def answered(_):
            try:
                loop.call_soon_threadsafe(wake)
            except RuntimeError:  # the loop is closed, so nobody waits any more
                pass

        if not self._taken:
            self.add_done_callback(answered)
            try:
                yield from waiter
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self.result()

    # Waiting and taking

    def _wait(self, timeout):
        client = self._client
        client._check()
        end = None if timeout is None else time.monotonic() + max(timeout, 0)
        unsent = self._unsent
        if unsent is not None and not unsent.wait(timeout):
            self._still_waits(timeout)
        if not self._lock.acquire(timeout=-1 if end is None else max(end - time.monotonic(), 0)):
            self._still_waits(timeout)
        try:
            while not self._taken:
                ms = _SLICE_MS if end is None else min(max(round((end - time.monotonic()) * 1000), 0), _SLICE_MS)
                self._try_to_take(ms)
                self._open()
                client._raise_of_callbacks()
                if not self._taken and end is not None and time.monotonic() >= end:
                    self._still_waits(timeout)
        finally:
            self._lock.release()

    def _still_waits(self, timeout):
        raise TimeoutError(f"{self._method.name}() of {self._method.group} is not answered after {timeout} s, and goes "
                           "on: ask again, or cancel() it")

    def _try_to_take(self, ms):
        if self._answer is not None:
            return
        outer = self._taking
        if outer is not None and _has_come(outer):  # this is a signal handler, and the library has no other copy
            self._copy(outer)
            return
        answer, handle = lib.Scratch.get(), self._client._any_handle()
        answer.memory.value = None
        answer.error.code = lib.OK
        self._taking = answer
        try:
            _take(handle, self._id, ms, answer.json_ref, answer.memory_ref, answer.error_ref)
        finally:  # even if a signal handler raises after the lock was taken
            try:
                if _has_come(answer):
                    self._copy(answer)
            finally:
                self._taking = outer
                if answer.memory.value:
                    _give_back(handle, answer.memory)
                answer.give_back()

    def _copy(self, answer):
        raised = None
        while self._answer is None and not self._taken:
            try:
                self._answer = _copied(answer)
            except Exception as e:  # there is no memory
                self._error, self._taken = e, True
            except BaseException as e:  # Ctrl-C. The library has no other copy, so this one is made all the same
                raised = e
        if raised is not None:
            raise raised

    def _open(self):
        """Makes the result, or the Error. If Ctrl-C interrupts this, the next one who waits does it again."""
        answer, result, raised = self._answer, None, None
        if answer is None:
            return
        error, body = answer
        try:
            if error is None:
                result = self._result_of(body)
            else:
                raised = self._error_of(error, body)
        except Exception as e:
            raised = e
        if not self._taken:  # a signal handler may have been faster
            self._result, self._error = result, raised
        self._taken, self._answer = True, None

    def _error_of(self, error, body):
        if body is None:
            return _errors.of_struct(error)
        try:
            said = json.loads(bytes(body))
        except ValueError:
            said = {}
        e = _raised.error(error, said, self._method.trust)
        return _late.explain(e, self, said["late"]) if said.get("late") else e

    def _result_of(self, body):
        result = decode(body, self._method.trust)
        if self._method.by_reference:
            return Ref(result["$ref"], self._client, self._method.group)
        return self._join(result) if self._join else result

    def _result_or_give_up(self, wait=None, *args):
        """result() of a blocking call: what ends the waiting, such as Ctrl-C, also cancels the call."""
        try:
            return wait(self, *args) if wait else self.result()
        except BaseException:
            self._give_up()
            raise

    def _give_up(self):
        self.cancel()
        self._drop()

    def _drop(self):
        if not self._taken and self._id:
            self._taken = True
            self._error = _errors.Canceled(f"{self._method.name}() of {self._method.group} was given up",
                                           may_have_run=True)
            _forget(self._client._any_handle(), self._id)

    def __del__(self):
        if not getattr(self, "_taken", True) and not sys.is_finalizing() and self._client._is_mine():
            self._drop()

    def __reduce_ex__(self, protocol):
        raise TypeError("a Future is not copied: the first of the two to be dropped would take the result away from the "
                        "other. It can be an argument of a call itself, but not be part of one: send its result()")

    def __repr__(self):
        state = "waiting" if not self._taken else "failed" if self._error is not None else "done"
        return f"<cadre.Future {self._method.name}() of {self._method.group} {state}>"


def _has_come(answer):
    return answer.error.code != lib.OK or bool(answer.memory.value)


def _copied(answer):
    """Returns the error of an answer, or None, and its body, which may be None."""
    error = None if answer.error.code == lib.OK else lib.ClientError.from_buffer_copy(answer.error)
    if not answer.memory.value:
        return error, None
    size = answer.json.len
    if size <= _SHORT:
        return error, ctypes.string_at(answer.json.text, size)
    return error, copy((ctypes.c_char * size).from_address(answer.json.text))


def _checked(futures, what):
    futures = list(futures)
    for f in futures:
        if not isinstance(f, Future):
            raise TypeError(f"{what}() takes a list of futures; {f!r} is not a future")
    if len(set(map(id, futures))) < len(futures):
        raise ValueError(f"{what}(): a future is given twice")
    return futures


def as_completed(futures, timeout=None):
    """Yields the futures as they are answered, the first one first. They may belong to several clients. TimeoutError:
    not all were answered within `timeout` seconds.
    """
    futures = _checked(futures, "as_completed")
    end = None if timeout is None else time.monotonic() + timeout
    return _yielded(futures, _answered(futures), len(futures), end)


def _answered(futures):
    """Returns a queue which gets the futures as they are answered, until _yielded() ends."""
    answered = SimpleQueue()
    for f in futures:
        f.add_done_callback(answered.put)
    return answered


def _next_of(answered, clients, end):
    while True:
        try:
            return answered.get(timeout=slice_of(end))
        except Empty:
            if is_over(end, clients):
                raise


def _yielded(futures, answered, n, end):
    clients = {f._client for f in futures}
    try:
        for i in range(n):
            try:
                yield _next_of(answered, clients, end)
            except Empty:
                raise TimeoutError(f"{n - i} of {n} calls are not answered") from None
    finally:
        for f in futures:
            f._remove_done_callback(answered.put)


def wait(futures, num_returns=1, timeout=None):
    """Waits until num_returns of the futures are answered, `timeout` seconds at most. Returns (ready, rest), both in
    the given order. `ready` has num_returns futures, or fewer if the time is over. Some futures of `rest` may be
    answered, too. No future is in both. They may belong to several clients. Without futures, both lists are empty.
    """
    futures = _checked(futures, "wait")
    try:
        num_returns = index(num_returns)
    except TypeError:
        raise TypeError(f"wait(): num_returns is a whole number, not {num_returns!r}") from None
    if not futures:
        return [], []
    if not 1 <= num_returns <= len(futures):
        raise ValueError(f"wait(): num_returns must be 1 to {len(futures)}, the number of futures, not {num_returns}")
    end = None if timeout is None else time.monotonic() + max(timeout, 0)
    if len({f._client for f in futures}) == 1 and all(f._unsent is None for f in futures):
        _wait_for_one_client(futures, num_returns, end)
    else:
        try:
            for _ in _yielded(futures, _answered(futures), num_returns, end):
                pass
        except TimeoutError:
            pass
    ready = [f for f in futures if f.done()][:num_returns]
    chosen = set(map(id, ready))
    return ready, [f for f in futures if id(f) not in chosen]


def _wait_for_one_client(futures, num_returns, end):
    client = futures[0]._client
    client._check()
    open_ids = [f._id for f in futures if not f._is_here()]
    missing = num_returns - (len(futures) - len(open_ids))
    if missing <= 0:
        return
    n, error, ids = ctypes.c_size_t(), lib.ClientError(), (ctypes.c_uint64 * len(open_ids))(*open_ids)
    while n.value < missing:
        ms = _SLICE_MS if end is None else min(max(round((end - time.monotonic()) * 1000), 0), _SLICE_MS)
        if _wait_for(client._any_handle(), ids, len(open_ids), missing, ms, byref(n), byref(error)) != lib.OK:
            raise _errors.of_struct(error)
        client._raise_of_callbacks()
        if end is not None and time.monotonic() >= end:
            return
