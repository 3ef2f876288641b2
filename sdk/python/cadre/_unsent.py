# SPDX-License-Identifier: Apache-2.0
"""Calls that wait for their arguments, which are the results of other calls."""

import sys
import threading
import time
from collections import deque

from . import _errors

_SLICE_S = 0.1  # how long what a callback raised has to wait at most


class Watcher(threading.Thread):
    """The thread of a client that calls back. Nothing may hold it up for long, because all callbacks wait for it."""


class Sender(threading.Thread):
    """A thread of a client that sends the calls which wait for a group to start."""


def is_watcher():
    """Whether this thread is a Watcher."""
    return isinstance(threading.current_thread(), Watcher)


class HoldsUp(Exception):
    """Sending this call may take long, and a Watcher has tried it."""


def call_back(f, future):
    """Calls f(future). What it raises is shown, because nobody waits for it."""
    try:
        f(future)
    except Exception:
        sys.excepthook(*sys.exc_info())


def slice_of(end):
    """How long to wait before the next look at what callbacks raised. end: of the whole time, or None."""
    return _SLICE_S if end is None else min(max(end - time.monotonic(), 0), _SLICE_S)


def is_over(end, clients):
    """Whether the time is over. Raises what a callback of these clients raised: perhaps no answer comes any more.
    """
    for client in clients:
        client._raise_of_callbacks()
    return end is not None and time.monotonic() >= end


class Unsent:
    """The part of a Future whose call is not sent yet. Its client counts it. send(future) sends the call, and returns its
    id.
    """

    __slots__ = ("_future", "_others", "_send", "_lock", "_left", "_callbacks", "_taken", "canceled", "_over")

    def __init__(self, future, others, send):
        self._future = future
        self._others = others
        self._send = send
        self._lock = threading.RLock()  # a signal handler may use the future, too
        self._left = len(others)  # those that are not answered
        self._callbacks = []
        self._taken = False  # a thread sends it, or has canceled it
        self.canceled = None  # the error, if nobody wants it any more
        self._over = threading.Event()

    def begin(self):
        """Sends the call as soon as the others are answered: at once, if they are."""
        answered = all([other.done() for other in self._others])
        self._future._client._unsent.add(self)
        if answered:
            error = self._send_now()
            if error is not None and not isinstance(error, Exception):
                raise error  # Ctrl-C
            return
        try:
            for other in self._others:
                other.add_done_callback(self._one_more)
        except BaseException:  # Ctrl-C: nobody gets the future
            self.cancel()
            raise

    def _one_more(self, _):
        with self._lock:
            self._left -= 1
            if self._left:
                return
        self._send_now()

    def _send_now(self):
        """Returns the exception that it raises."""
        if not self._take():
            return None
        call_id, error = 0, None
        try:
            if self._future._method.group in self._future._client._held_up and is_watcher():
                raise HoldsUp  # earlier calls of the group come first
            call_id = self._send(self._future)
        except HoldsUp:
            return self._hand_over()
        except BaseException as e:
            error = e
        self._end(call_id, error)
        return error

    def _hand_over(self):
        """Another thread sends it, after earlier calls of its group."""
        client, group = self._future._client, self._future._method.group
        self._taken = False
        if self.canceled:  # perhaps while it was taken
            self._fail(self.canceled)
            return None
        try:
            with client._lock:
                if group in client._held_up:
                    client._held_up[group].append(self)
                else:
                    queue = deque([self])
                    Sender(target=_send_all, args=(client, group, queue), daemon=True, name="cadre-calls").start()
                    client._held_up[group] = queue
        except RuntimeError as e:  # there are too many threads
            self._fail(e)
        return None

    def _take(self):
        with self._lock:
            taken, self._taken = self._taken, True
            return not taken

    def cancel(self, why="it was canceled"):
        """The call is not sent, or is canceled as soon as it is sent. Returns False if it was sent before."""
        future = self._future
        with self._lock:
            if future._unsent is None:
                return False
            self.canceled = _errors.Canceled(f"{future._method.name}() of {future._method.group} was not sent: {why}")
        self._fail(self.canceled)
        return True

    def _fail(self, error):
        """Does not send it, unless another thread does or has done so."""
        if self._take():
            self._end(0, error)

    def _end(self, call_id, error):
        """From here on, it is the future of a call that was sent, or that has failed."""
        future = self._future
        with self._lock:
            canceled = self.canceled
            if error is not None and canceled:
                error = canceled
            future._id, future._error, future._taken = call_id, error, error is not None
            future._unsent = self._send = None
        if canceled:
            future.cancel()
        due = [f for f in self._callbacks if future._taken or not future._client._watch(future, f)]
        future._client._unsent.discard(self)
        self._over.set()
        for f in due:
            call_back(f, future)

    def add_done_callback(self, f):
        """Keeps f until the call is sent. Returns False if it is not kept, because the call was sent meanwhile."""
        with self._lock:
            if self._future._unsent is None:
                return False
            self._callbacks.append(f)
            return True

    def remove_done_callback(self, f):
        with self._lock:
            if self._future._unsent is not None and f in self._callbacks:
                self._callbacks.remove(f)

    def wait(self, timeout):
        """Waits until it is sent, or has failed. Returns False if the time is over."""
        clients = {f._client for f in (self._future, *self._others)}
        end = None if timeout is None else time.monotonic() + timeout
        if any(other._client._watcher is threading.current_thread() for other in self._others) and not self._over.is_set():
            name = self._future._method.name
            raise RuntimeError(f"a callback cannot wait for {name}(), because its arguments are not answered yet, and the "
                               f"thread that runs this callback sends it: start {name}(), and give its future a callback")
        while not self._over.wait(slice_of(end)):
            if is_over(end, clients):
                return False
        return True


def _send_all(client, group, queue):
    """Sends the calls that wait for a group to start, in their order."""
    while True:
        queue[0]._send_now()
        with client._lock:
            queue.popleft()
            if not queue:
                del client._held_up[group]
                return
