# SPDX-License-Identifier: Apache-2.0
"""Calls that nobody waits for yet."""

from operator import index

from . import _errors
from ._options import _seconds
from ._reference import Ref


class Future:
    """A call that was started; Group.start() makes it. One that is dropped goes on, and its result is thrown away."""

    __slots__ = ("_group", "_prepared", "_id", "_taken", "_result", "_error")

    def __init__(self, group, prepared, call_id):
        self._group = group
        self._prepared = prepared
        self._id = call_id
        self._taken = False
        self._result = self._error = None

    def result(self, timeout=None):
        """Waits for the result, for so many seconds at most. Raises the call's Error; or TimeoutError: it goes on."""
        if not self._taken:
            self._await(timeout)
        if self._error is not None:
            raise self._error
        return self._result

    def exception(self, timeout=None):
        """The Error that it ended with, None if it has a result; waits as result() does."""
        if not self._taken:
            self._await(timeout)
        return self._error

    def done(self):
        """Whether it is answered."""
        if self._taken or self._group.client.closed:
            return True
        client = self._group.client
        client._enter()
        try:
            client._at_work = True
            return client._await_one(self._id, 0) == 1
        finally:
            client._leave()

    def cancel(self):
        """It ends with Canceled, or with its result where that was faster; ranks that run it may go on. False: it was
        answered already.
        """
        client = self._group.client
        if self._taken or client.closed:
            return False
        client._enter()
        try:
            client._at_work = True
            return client._cancel(self._id)
        finally:
            client._leave()

    def _await(self, timeout):
        client = self._group.client
        if client.closed:
            self._taken = True
            self._error = _errors.Canceled(f"{self._prepared.method}() of {self._group.name}: the client was closed "
                                           "before the result was taken", may_have_run=True)
            return
        client._enter()
        try:
            client._at_work = True
            if not (client._is_done(self._id) or client._await_one(self._id, -1 if timeout is None else _ms(timeout))):
                raise TimeoutError(f"{self._prepared.method}() of {self._group.name} is not answered after {timeout} s"
                                   ", and goes on: ask again, or cancel() it")
            try:
                result = client._take(self._id)
                self._result = Ref(result["$ref"], self._group) if self._prepared.by_reference else result
            except Exception as e:
                self._error = e
            self._taken = True
        finally:
            client._leave()

    def __del__(self):
        if not self._taken:
            self._group.client._dropped.append(self._id)

    def __reduce_ex__(self, protocol):
        raise TypeError("a Future is not copied: the first of the two to be dropped would take the result away from the "
                        "other")

    def __repr__(self):
        state = "waiting" if not self._taken else "failed" if self._error is not None else "done"
        return f"<cadre.Future {self._prepared.method}() of {self._group.name} {state}>"


def _ms(timeout):
    return _seconds(timeout) if timeout > 0 else 0


def wait(futures, num_returns=1, timeout=None):
    """Waits until num_returns of the futures are answered, for so many seconds at most: (ready, rest), both in the
    order in which they were given. `ready` has num_returns futures, or fewer where the time was over; some of the rest
    may be answered, too. All are of one client, none is given twice.
    """
    futures = list(futures)
    for f in futures:
        if not isinstance(f, Future):
            raise TypeError(f"wait() takes a list of futures, and {f!r} is none")
    try:
        num_returns = index(num_returns)
    except TypeError:
        raise TypeError(f"wait(): num_returns is a whole number, not {num_returns!r}") from None
    if num_returns < 0:
        raise ValueError(f"wait(): num_returns {num_returns} is negative")
    clients = {f._group.client for f in futures}
    if not clients:
        raise ValueError("wait() needs at least one future")
    if len(clients) > 1:
        raise ValueError(f"wait() takes the futures of one client, and these are of {len(clients)}")
    client = clients.pop()
    by_id = {f._id: f for f in futures}
    client._enter()
    try:
        client._at_work = True
        ready, rest = client._await_some([f._id for f in futures], num_returns, -1 if timeout is None else _ms(timeout))
    finally:
        client._leave()
    return [by_id[i] for i in ready], [by_id[i] for i in rest]
