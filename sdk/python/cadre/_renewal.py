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
# A replica whose watch broke silently notices it within a minute (operator/kube/http.c). So long, it does not know what is
# new. What it does not find after this time is deleted.
_UNKNOWN_S = 90
_PAUSE_S, _PAUSE_MAX_S = 5, 20  # before what was not found is asked for again
_MISSING_AT_ONCE = 100  # most objects that were not found may have been deleted long ago: they do not hold up the others
_WORDS = {"group": "group", "placementGroup": "PlacementGroup"}


def _warn(text):
    """Also if warnings are errors in this program, the thread goes on with the other objects."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        sys.excepthook(*sys.exc_info())


class _Kept:
    """An object that ends with a session. Times are of time.monotonic()."""

    __slots__ = ("uid", "session", "made", "pause", "due")

    def __init__(self, uid, session):
        self.uid = uid
        self.session = session  # the number of the session that has it
        self.made = time.monotonic()
        self.pause = 0  # the last one, if it was not found
        self.due = 0  # when it is asked for again


class Renewal:
    """The objects of one client that end with its session, and the thread that renews them after a reconnection."""

    def __init__(self, client):
        self._client = weakref.ref(client)
        self._lock = threading.RLock()  # a signal handler may delete a group, too
        self._of = {}  # (kind, name) -> _Kept, newest last; kind as in the request
        self._began = 0  # when the present session began
        self.session = -1  # the number of the present session: 0 is the first one
        self.thread = None

    def add(self, kind, name, uid, session):
        """The object ends with that session. The request for it may have been on its way for longer."""
        with self._lock:
            self._of.pop((kind, name), None)  # it is the newest one now
            kept = self._of[kind, name] = _Kept(uid, max(session, 0))  # it may be here before connected() is called
            if kept.session < self.session:
                self._renew_late()

    def remove(self, kind, name):
        """The object is deleted."""
        with self._lock:
            self._of.pop((kind, name), None)

    def connected(self):
        """The client has a new session. Called on threads that must not wait."""
        with self._lock:
            self.session += 1
            self._began = time.monotonic()
            for kept in list(self._of.values()):
                kept.due = 0  # another replica may know it
            self._renew_late()

    def _late(self):
        """The objects that an earlier session has. The newest ones come first: of a program that makes many, another
        one may have deleted the old ones.
        """
        newest_first = list(self._of.items())[::-1]
        return [(key, kept) for key, kept in newest_first if kept.session < self.session]

    def _due(self, late):
        """Returns the keys to ask for in this turn. Keys that were not found before come last."""
        now = time.monotonic()
        missing = [(key, kept) for key, kept in late if kept.pause and kept.due <= now]
        missing.sort(key=lambda item: item[1].due)
        return [(key, kept) for key, kept in late if not kept.pause] + missing[:_MISSING_AT_ONCE]

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
            session, began, late = self.session, self._began, self._late()
            if not late or client is None or client.closed:
                self.thread = None  # with the lock: what is late from now on gets another thread
                return False
            due = self._due(late)
        for key, kept in due:
            if session == self.session and not client.closed:
                self._renew(client, key, kept, session, max(kept.made, began) + _UNKNOWN_S)
        return True

    def _renewed(self, kept, session):
        with self._lock:
            kept.session, kept.pause = session, 0

    def _forget(self, key, kept):
        with self._lock:
            if self._of.get(key) is kept:
                del self._of[key]

    def _missing(self, key, kept, session, asked, until):
        """A replica did not know the object at `asked`. From `until` on, this means that the object is deleted."""
        with self._lock:
            if asked >= until:
                self._forget(key, kept)
                return
            kept.pause = min(2 * kept.pause or _PAUSE_S, _PAUSE_MAX_S)
            if session == self.session:
                kept.due = min(asked + kept.pause, until)

    def _renew(self, client, key, kept, session, until):
        kind, name = key
        lost = f"the connection was lost, and the {_WORDS[kind]} {name} cannot be renewed"
        asked = time.monotonic()
        try:
            client._ask_first("group.renew", name, {kind: name, "uid": kept.uid}, _ANSWER_S)
            self._renewed(kept, session)
        except _errors.NotFound:  # an older operator says this, too
            self._missing(key, kept, session, asked, until)
        except _errors.Forbidden as e:
            self._renewed(kept, session)  # the next session may reach a replica that allows it
            _warn(f"{lost}, so the operator deletes it within two minutes: {e}")
        except _errors.Invalid as e:  # for example, somebody has made it Detached to keep it
            self._forget(key, kept)
            _warn(f"{lost}: {e}")
        except (_errors.Error, TimeoutError, RuntimeError):  # the connection is lost again, or the client is closed
            pass
