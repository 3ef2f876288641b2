# SPDX-License-Identifier: Apache-2.0
"""Keeps the groups and pools of a program when its connection was lost: its next session takes them over. Otherwise,
the operator deletes them two minutes after the old session.
"""

import threading
import time
import weakref

from . import _errors

_ANSWER_S, _AGAIN_S = 10, 1
_UNKNOWN_S = 30  # a replica may learn late about a new object; after this time, one that it does not find is deleted


class Renewal:
    """The objects of one client that end with its session, and the thread that renews them after a reconnection."""

    def __init__(self, client):
        self._client = weakref.ref(client)
        self._lock = threading.Lock()
        self._uids = {}  # (kind, name) -> UID; kind: "group" or "placementGroup", as in the request
        self._due = {}  # what to renew -> when it may count as deleted
        self.thread = None

    def add(self, kind, name, uid):
        """The object ends with the session of the client."""
        with self._lock:
            self._uids[kind, name] = uid

    def remove(self, kind, name):
        """The object is deleted."""
        with self._lock:
            self._uids.pop((kind, name), None)

    def connected(self):
        """The client has a new session. Called on threads that must not wait."""
        with self._lock:
            self._due = dict.fromkeys(self._uids, time.monotonic() + _UNKNOWN_S)
            if self._due and not self.thread:
                self.thread = threading.Thread(target=self._run, daemon=True, name="cadre-renewal")
                self.thread.start()

    def _run(self):
        while True:
            client = self._client()
            with self._lock:
                due = {key: (self._uids[key], until) for key, until in self._due.items() if key in self._uids}
                if not due or client is None or client.closed:
                    self.thread = None
                    return
            done = [key for key, (uid, until) in due.items() if self._renew(client, *key, uid, until)]
            client = None  # this may be the last reference, which then ends the client
            with self._lock:
                for key in done:
                    self._due.pop(key, None)
            if len(done) < len(due):
                time.sleep(_AGAIN_S)

    def _renew(self, client, kind, name, uid, until):
        """Returns True if nothing is left to do for this object."""
        try:
            client._ask("group.renew", name, {kind: name, "uid": uid}, _ANSWER_S)
            return True
        except _errors.NotFound:
            return time.monotonic() >= until
        except (_errors.Invalid, _errors.Forbidden):  # an operator that does not know the request, or another user
            return True
        except (_errors.Error, TimeoutError, RuntimeError):  # the connection is lost again, or the client is closed
            return client.closed
