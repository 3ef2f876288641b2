# SPDX-License-Identifier: Apache-2.0
"""A rank whose archive of code is not in its pod yet. It waits in the bootstrap group, NAME.code, until another pod
of the namespace gives the archive, a program brings it, or another rank of the pod has it. Then the worker begins
again.
"""

import ctypes
import errno
import fcntl
import os
import signal
import sys
import tempfile
import threading
import time

from .. import _errors, _method
from .._code import _archive
from . import _load

# How often to look whether another rank of the pod has unpacked it; how often to ask whether another pod has it.
_LOOK_S, _ASK_S = 0.1, 1
_PIECE, _SLICE_MS = 512 << 10, 1000  # of another pod; how long the thread cannot notice the end
_PIECE_S, _SILENT_S = 30, 60  # a sender without a further piece for this time has gone: another pod, a program
_WAIT_S = 300
_WAIT = "CADRE_ARCHIVE_WAIT"  # the variable that sets another limit


class _Incoming:
    """The archive on its way into this pod, by one rank, from one sender. The file of a lock says which."""

    def __init__(self, wanted):
        self._wanted = wanted
        os.makedirs(wanted.folder, exist_ok=True)
        self._lock = open(os.path.join(wanted.folder, f".{wanted.sha256}.lock"), "ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.file = tempfile.TemporaryFile(dir=wanted.folder)
        except OSError:
            self._lock.close()
            raise
        self.size, self.heard = 0, time.monotonic()

    def add(self, data):
        """Returns True when the archive is unpacked."""
        self.file.write(data)
        self.size += memoryview(data).nbytes
        self.heard = time.monotonic()
        if self.size < self._wanted.size:
            return False
        self.file.flush()
        _archive.unpack(self.file, self._wanted.sha256, self._wanted.folder)
        return True

    def close(self):
        try:
            self.file.close()
        except OSError:  # its bytes did not fit on the disk; they are thrown away in any case
            pass
        self._lock.close()


def _begin(wanted):
    """Returns None if another rank of the pod gets the archive already."""
    try:
        return _Incoming(wanted)
    except BlockingIOError:
        return None


class Bootstrap:
    """The methods that can be called meanwhile. `wanted`: a Wanted of cadre._code."""

    def __init__(self, wanted):
        self._wanted, self._incoming, self.failed = wanted, None, None

    @_method.register(execute="RANK_ZERO")
    def receive(self, sha256, offset, data):
        """takes the next piece of the archive and returns how much of it is there: bytes from clients that may send code;
        None: it comes from another pod, or to another rank of this one"""
        running = _method.call.get()
        if not running.code:
            raise _errors.Forbidden("the client may not send code: it needs the right to create workergroups/code, or "
                                    "WorkerGroups, in the namespace")
        wanted = self._wanted
        if sha256 != wanted.sha256:
            raise ValueError(f"rank {_method.rank()} waits for the archive {wanted.sha256[:12]}, and this is {sha256[:12]}")
        if offset == 0:
            self._give_up()
            self._incoming = self._begin()
            if not self._incoming:
                return None
        incoming = self._incoming
        size = incoming.size if incoming else 0
        if not incoming or offset != size or offset + len(data) > wanted.size:
            raise ValueError(f"{len(data)} bytes from {offset} do not follow the {size} of {wanted.size} bytes that are "
                             "there: begin again with the first")
        self._add(incoming, data)
        return size + len(data)

    def _begin(self):
        try:
            return _begin(self._wanted)
        except OSError as e:
            self.failed = f"the archive cannot be written below {self._wanted.folder}: {e.strerror}: make it a folder that " \
                f"this process can write to, or name another one in {_archive.FOLDER}"
            raise

    def _add(self, incoming, data):
        over = True
        try:
            over = incoming.add(data)
        except (OSError, ValueError) as e:
            self.failed = f"{e}: make room, or mount a larger volume and name it in {_archive.FOLDER}" \
                if getattr(e, "errno", None) in (errno.ENOSPC, errno.EDQUOT) else str(e)
            raise
        finally:
            if over and incoming is self._incoming:
                self._give_up()

    def _give_up(self):
        incoming, self._incoming = self._incoming, None
        if incoming:
            incoming.close()

    def _fetch(self, host, over):
        """Fetches the archive from another pod, if one has it. On the thread that waits."""
        sent = self._incoming  # calls may change it meanwhile
        if sent and time.monotonic() - sent.heard > _SILENT_S:
            self._give_up()
        piece = ctypes.create_string_buffer(_PIECE)
        n = host.fetch(0, piece, _PIECE, _SLICE_MS)
        incoming = None
        try:
            incoming = self._begin() if n > 0 else None
            while incoming and time.monotonic() - incoming.heard < _PIECE_S and not over.is_set():
                if n > 0:
                    self._add(incoming, memoryview(piece)[:n])
                if n == 0 or incoming.size == self._wanted.size:
                    return
                n = host.fetch(incoming.size, piece, _PIECE, _SLICE_MS)
        except (OSError, ValueError):
            pass  # `failed` reports it
        finally:
            if incoming:
                incoming.close()


def _seconds():
    try:
        return float(os.environ.get(_WAIT) or _WAIT_S)
    except ValueError:
        raise _load.Stop(f"{_WAIT} is {os.environ[_WAIT]!r}: it is a number of seconds", _load.EXIT_USAGE) from None
def _watch(bootstrap, host, over):
    """Ends the wait: the archive is there, or the time is over."""
    wanted = bootstrap._wanted
    begun = asked = time.monotonic()
    while not os.path.isdir(wanted.place) and time.monotonic() < begun + _seconds():
        if time.monotonic() >= asked:
            bootstrap._fetch(host, over)
            asked = time.monotonic() + _ASK_S
        if over.wait(_LOOK_S):
            return
    os.kill(os.getpid(), signal.SIGTERM)  # the host finishes the call that runs


def wait(wanted, server_of):
    """Returns the exit code, or None once the archive is there. server_of(roles, awaits): a Server that has begun."""
    bootstrap = Bootstrap(wanted)
    _seconds()
    print(f"cadre-worker: rank {_method.rank()}: waits for the archive {wanted.sha256[:12]} of its code, {wanted.size} bytes",
          file=sys.stderr, flush=True)
    server = server_of([_load.Role(None, Bootstrap, _load.methods_of(Bootstrap, bootstrap))], wanted.sha256)
    over = threading.Event()
    watching = threading.Thread(target=_watch, args=(bootstrap, server.host, over), daemon=True)
    begun = time.monotonic()
    watching.start()
    server.serve(0)
    over.set()
    watching.join()  # the thread may be in the host
    code = server.host.end()
    if os.path.isdir(wanted.place):
        return None
    if time.monotonic() - begun < _seconds():
        return code
    raise _load.Stop("CodeMissing: run the program that made the group again, or put the code into the image: no other pod "
                     f"has the archive {wanted.sha256[:12]}, and it did not come within {_seconds():g} s"
                     f"{': ' + bootstrap.failed if bootstrap.failed else ''}", _load.EXIT_MODULE)
