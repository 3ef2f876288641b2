# SPDX-License-Identifier: Apache-2.0
"""Keeps the groups and pools of a program when its connection was lost: its next session takes them over. Otherwise,
the operator deletes them two minutes after the old session.
"""

import sys
import threading
import time
import warnings
import weakref

from . import _errors

_ANSWER_S, _AGAIN_S = 10, 1
_UNKNOWN_S = 30  # a replica may learn late about a new object; an older one that it does not find is deleted
_WORDS = {"group": "group", "placementGroup": "pool"}


def _warn(text):
    """Also if warnings are errors in this program, the thread goes on with the other objects."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        sys.excepthook(*sys.exc_info())


class Renewal:
    """The objects of one client that end with its session, and the thread that renews them after a reconnection."""

    def __init__(self, client):
        self._client = weakref.ref(client)
        self._lock = threading.RLock()  # a signal handler may delete a group, too
        # (kind, name) -> (UID, when it was made, the number of the session that has it), newest last; kind as in the request
        self._of = {}
        self.session = -1  # the number of the present session: 0 is the first one
        self.thread = None

    def add(self, kind, name, uid, session):
        """The object ends with that session. The request for it may have been on its way for longer."""
        with self._lock:
            self._of.pop((kind, name), None)  # it is the newest one now
            self._of[kind, name] = uid, time.monotonic(), max(session, 0)  # it may be here before connected() is called
            self._renew_late()

    def remove(self, kind, name):
        """The object is deleted."""
        with self._lock:
            self._of.pop((kind, name), None)

    def connected(self):
        """The client has a new session. Called on threads that must not wait."""
        with self._lock:
            self.session += 1
            self._renew_late()

    def _late(self):
        """The objects that an earlier session has. The newest ones come first: of a program that makes many, another
        one may have deleted the old ones.
        """
        newest_first = list(self._of.items())[::-1]
        return [(key, uid, made) for key, (uid, made, session) in newest_first if session < self.session]

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
        for key, uid, made in late:
            if session == self.session and not client.closed:
                self._note(key, uid, self._renew(client, *key, uid, made) and session)
        return True

    def _note(self, key, uid, session):
        """session: the one that has the object now; False: none yet; None: the object is deleted."""
        with self._lock:
            there, made, _ = self._of.get(key, (None, 0, 0))
            if there != uid or session is False:
                return
            if session is None:
                del self._of[key]
            else:
                self._of[key] = uid, made, session

    def _renew(self, client, kind, name, uid, made):
        """Returns True, False if it has to be tried again, or None if the object is deleted."""
        try:
            client._ask_first("group.renew", name, {kind: name, "uid": uid}, _ANSWER_S)
            return True
        except _errors.NotFound:
            return None if time.monotonic() >= made + _UNKNOWN_S else False  # an older operator says this, too
        except (_errors.Invalid, _errors.Forbidden) as e:  # the next session may reach a replica that allows it
            _warn(f"the connection was lost, and the {_WORDS[kind]} {name} cannot be renewed, so the operator deletes "
                  f"it within two minutes: {e}")
            return True
        except (_errors.Error, TimeoutError, RuntimeError):  # the connection is lost again, or the client is closed
            return False
