# SPDX-License-Identifier: Apache-2.0
"""Brings the archives of a program's groups to the pods that wait for them, while the program is connected.

A rank that waits says so in group.info ("awaits"), and is called in the bootstrap group, NAME.code. One rank of each
pod gets the archive, and the others find it there. A rank that gets it from another pod takes nothing from programs.
"""

import threading
import time
import weakref

from . import _errors

_PIECE = 8 << 20
_ANSWER_S = 60
_STARTING_S, _READY_S, _FAILED_S, _FAILED_MAX_S = 0.1, 1, 1, 30  # pauses before it looks again
_EACH_S = 0.05  # with many groups: 20 looks a second


def awaiting(info, sha256):
    """Returns one rank of each pod that waits for this archive, from group.info."""
    found = {}
    for worker in info["workers"]:
        if worker.get("awaits") == sha256:
            found.setdefault(worker.get("pod") or worker.get("node"), worker["rank"])
    return sorted(found.values())


class _Supply:
    """Supplies one group."""

    def __init__(self, name, archive):
        self.name, self.archive = name, archive
        self.look_at, self.failed_s = 0, _FAILED_S
        self.known_until = time.monotonic() + _ANSWER_S  # the group may not exist yet

    def turn(self, client, now, n):
        """Looks for waiting ranks, and sends to them. n: the number of groups. Returns True if nothing is left to
        send.
        """
        try:
            info = client.group(self.name).info(timeout=_ANSWER_S)
            self.known_until = now
            for rank in awaiting(info, self.archive.sha256):
                self._send(client, rank)
            self.look_at, self.failed_s = now + max(_READY_S if info["ready"] else _STARTING_S, n * _EACH_S), _FAILED_S
        except (_errors.NotFound, _errors.Gone):
            return now >= self.known_until
        except _errors.Forbidden as e:
            client._raised = client._raised or e  # the thread that waits for a call gets it
            return True
        except (_errors.Error, TimeoutError):  # the rank is gone, or has no room for it, and reports this itself
            self.look_at, self.failed_s = now + self.failed_s, min(2 * self.failed_s, _FAILED_MAX_S)
        return False

    def _send(self, client, rank):
        bootstrap, archive, at = client.group(f"{self.name}.code"), self.archive, 0
        size = 0  # the first call only asks
        while at is not None and at < archive.size:
            at = bootstrap.call("receive", archive.sha256, at, archive.read(at, size), rank=rank, timeout=_ANSWER_S,
                            refuse_when_not_ready=True)
            size = _PIECE


class Supplies:
    """Supplies the groups of one client, on another thread."""

    def __init__(self, client):
        self._client = weakref.ref(client)
        self._lock = threading.Lock()
        self._of = {}
        self.thread = None

    def add(self, name, archive):
        with self._lock:
            self._of[name] = _Supply(name, archive)
            if not self.thread:
                self.thread = threading.Thread(target=self._run, daemon=True, name="cadre-archives")
                self.thread.start()

    def _run(self):
        while True:
            client, now = self._client(), time.monotonic()
            if client is None or client.closed:
                return
            with self._lock:
                n, due = len(self._of), [supply for supply in self._of.values() if supply.look_at <= now]
            for supply in due:
                self._turn(client, supply, now, n)
            client = None  # this may be the last reference, which then ends the client
            time.sleep(_STARTING_S)

    def _turn(self, client, supply, now, n):
        try:
            over = supply.turn(client, now, n)
        except RuntimeError:  # the client was closed meanwhile
            return
        with self._lock:
            if over and self._of.get(supply.name) is supply:
                del self._of[supply.name]
