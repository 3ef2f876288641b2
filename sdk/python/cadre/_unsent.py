# SPDX-License-Identifier: Apache-2.0
"""Calls that wait for their arguments, which are the results of other calls, or for their group to start."""

import sys
import threading
import time
from collections import deque

from . import _errors

READY_S = 600  # how long calls without a deadline wait for their group
AGAIN_S = 0.05
_SLICE_S = 0.1  # how long what a callback raised has to wait at most


class Watcher(threading.Thread):
    """The thread of a client that calls back. Nothing may hold it up for long, because all callbacks wait for it."""


def is_watcher():
    """Whether this thread is a Watcher."""
    return isinstance(threading.current_thread(), Watcher)


class HoldsUp(Exception):
    """Sending this call may take long, and a Watcher has tried it. look(info) finds what it needs in the group's info, once
    that says so.
    """

    def __init__(self, look):
        super().__init__()
        self.look = look


def call_back(f, future):
    """Calls f(future). What it raises is shown, because nobody waits for it. A Watcher does not end by it."""
    try:
        f(future)
    except BaseException as e:
        if not isinstance(e, Exception) and not is_watcher():
            raise  # Ctrl-C
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

    __slots__ = ("_future", "_others", "_send", "_lock", "_left", "_callbacks", "taken", "canceled", "_over", "since", "end",
                 "look", "info")

    def __init__(self, future, others, send):
        self._future = future
        self._others = others
        self._send = send
        self._lock = threading.RLock()  # a signal handler may use the future, too
        self._left = len(others)  # those that are not answered
        self._callbacks = []
        self.taken = False  # a thread sends it, or has canceled it
        self.canceled = None  # the error, if nobody wants it any more
        self._over = threading.Event()
        self.since = self.end = None  # when its wait for the group began, and its deadline
        self.look = None  # of HoldsUp, after the first attempt
        self.info = None  # what the group says about itself, as a Sender knows it

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
        future = self._future
        if is_watcher() and future._method.group in future._client._held_up:
            self._hand_over()  # earlier calls of the group come first
            return None
        error = self.send()
        if not isinstance(error, HoldsUp):
            return error
        self._hand_over()
        return None

    def send(self):
        """Returns the exception that it raises. After HoldsUp, it still has to be sent."""
        if not self._take():
            return None
        call_id, error = 0, None
        try:
            call_id = self._send(self._future)
        except HoldsUp as e:
            self.look, self.taken = e.look, False
            if self.canceled:  # perhaps while it was taken
                self.fail(self.canceled)
            return e
        except BaseException as e:
            error = e
        self._end(call_id, error)
        return error

    def _hand_over(self):
        """Another thread sends it, after earlier calls of its group."""
        client, method = self._future._client, self._future._method
        self.since, timeout_ms = time.monotonic(), method.request.timeout_ms
        self.end = self.since + timeout_ms / 1000 if timeout_ms else None
        try:
            with client._lock:
                if method.group in client._held_up:
                    client._held_up[method.group].append(self)
                else:
                    queue = deque([self])
                    Sender(client, method.group, queue).start()
                    client._held_up[method.group] = queue
        except RuntimeError as e:  # there are too many threads
            self.fail(e)

    def count_wait(self, request):
        """The time for which it has waited for the group counts for the call."""
        if self.end is not None:
            request.timeout_ms = max(round((self.end - time.monotonic()) * 1000), 1)

    def _take(self):
        with self._lock:
            taken, self.taken = self.taken, True
            return not taken

    def cancel(self, why="it was canceled"):
        """The call is not sent, or is canceled as soon as it is sent. Returns False if it was sent before."""
        future = self._future
        with self._lock:
            if future._unsent is None:
                return False
            self.canceled = _errors.Canceled(f"{future._method.name}() of {future._method.group} was not sent: {why}")
        self.fail(self.canceled)
        return True

    def fail(self, error):
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


class Sender(Watcher):
    """The thread of a client that sends the calls which wait for one group to start, in their order. It asks the group once
    for all of them. If it calls back, nothing may hold it up either.
    """

    def __init__(self, client, group, queue):
        super().__init__(daemon=True, name="cadre-calls")
        self._client = client
        self._group = group
        self._queue = queue
        self._asked = None  # the future of the group's info
        self._said = {}  # the last one

    def run(self):
        info = error = None
        while self._send(info, error):
            if info or error:
                time.sleep(AGAIN_S)  # the group is starting
            info, error = self._look()

    def _look(self):
        """Waits a moment at most. Returns the group's info, or the error instead; neither, if they come later."""
        try:
            if self._asked is None:
                self._asked = self._client.group(self._group).start("group.info")
            error = self._asked.exception(AGAIN_S)
        except TimeoutError:
            return None, None
        except RuntimeError as e:  # the client was closed
            return None, e
        asked, self._asked = self._asked, None
        if error is not None:
            return None, error
        self._said = asked.result()
        return self._said, None

    def _send(self, info, error):
        """Sends the calls that can be sent. Those behind the first one that cannot be sent wait for it, and end if they are
        late. Returns False if no call is left.
        """
        for call in self._late():
            call.fail(not_told(call._future._method, self._said))
        while True:
            first = self._first()
            if first is None:
                return False
            if first.look is None or info and first.look(info) is not None:
                first.info = info
                first.send()
            elif error is not None and not (first.end and isinstance(error, _errors.Unavailable)):
                first.fail(error)
            elif first.end is None and time.monotonic() >= first.since + READY_S:
                first.fail(not_told(first._future._method, self._said))
            else:
                return True

    def _late(self):
        now = time.monotonic()
        with self._client._lock:
            return [call for call in self._queue if call.end is not None and now >= call.end]

    def _first(self):
        """Returns the first call that is not sent. If there is none, later calls get another thread."""
        with self._client._lock:
            while self._queue and self._queue[0].taken:
                self._queue.popleft()
            if self._queue:
                return self._queue[0]
            del self._client._held_up[self._group]
            return None


def not_told(method, info):
    """The error of a call that was not sent, because it has waited too long for its group."""
    timeout = method.request.timeout_ms / 1000
    return (_errors.Timeout if timeout else _errors.Unavailable)(
        f"{method.name}() was not sent: no rank of {method.group} has told its methods within {timeout or READY_S:g} s: "
        f"{info.get('message', 'none is connected')}")
