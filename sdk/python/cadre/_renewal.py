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
        self._lock = threading.RLock()  # a signal handler may delete a group, too
        self._of = {}  # (kind, name) -> (UID, the number of the session that has it); kind as in the request
        self._known_by = 0  # when a replica must know all objects
        self.session = -1  # the number of the present session: 0 is the first one
        self.thread = None

    def add(self, kind, name, uid, session):
        """The object ends with that session. The request for it may have been on its way for longer."""
        with self._lock:
            self._of[kind, name] = uid, max(session, 0)  # it may be here before connected() is called
            self._renew_late()

    def remove(self, kind, name):
        """The object is deleted."""
        with self._lock:
            self._of.pop((kind, name), None)

    def connected(self):
        """The client has a new session. Called on threads that must not wait."""
        with self._lock:
            self.session += 1
            self._known_by = time.monotonic() + _UNKNOWN_S
            self._renew_late()

    def _late(self):
        """The objects that an earlier session has."""
        return [(key, uid) for key, (uid, session) in list(self._of.items()) if session < self.session]

    def _renew_late(self):
        if self._late() and not self.thread:
            thread = threading.Thread(target=self._run, daemon=True, name="cadre-renewal")
            thread.start()  # it waits for the lock
            self.thread = thread

    def _run(self):
        try:
            while self._turn():
                time.sleep(_AGAIN_S)
        finally:
            with self._lock:
                if self.thread is threading.current_thread():
                    self.thread = None

    def _turn(self):
        """Renews what is late. Returns False if nothing is left."""
        client = self._client()
        with self._lock:
            session, late = self.session, self._late()
            if not late or client is None or client.closed:
                self.thread = None  # with the lock: what is late from now on gets another thread
                return False
        for key, uid in late:
            if session == self.session and not client.closed:
                self._note(key, uid, self._renew(client, *key, uid) and session)
        return True

    def _note(self, key, uid, session):
        """session: the one that has the object now; False: none yet; None: the object is deleted."""
        with self._lock:
            if session is not False and self._of.get(key, (None,))[0] == uid:
                self._of.pop(key)
                if session is not None:
                    self._of[key] = uid, session

    def _renew(self, client, kind, name, uid):
        """Returns True, False if it has to be tried again, or None if the object is deleted."""
        try:
            client._ask_first("group.renew", name, {kind: name, "uid": uid}, _ANSWER_S)
            return True
        except _errors.NotFound:
            return None if time.monotonic() >= self._known_by else False
        except (_errors.Invalid, _errors.Forbidden):  # the next session may reach a replica that allows or knows it
            return True
        except (_errors.Error, TimeoutError, RuntimeError):  # the connection is lost again, or the client is closed
            return False
