# SPDX-License-Identifier: Apache-2.0
"""A rank whose archive of code is not in its pod yet: it waits in the lobby of its group, NAME.code, until a program brings
the archive, or another rank of the pod has got it; then the worker begins anew.
"""

import errno
import os
import signal
import sys
import tempfile
import threading
import time

from .. import _errors, _method
from .._code import _archive
from . import _load

_LOOK_S = 0.1  # for what another rank of the pod has unpacked
_WAIT_S = 300
_WAIT = "CADRE_ARCHIVE_WAIT"  # the variable that says otherwise


class Lobby:
    """What can be called meanwhile. `wanted`: a Wanted of cadre._code."""

    def __init__(self, wanted):
        self._wanted, self._file, self._size, self.failed = wanted, None, 0, None

    @_method.register(execute="RANK_ZERO")
    def receive(self, sha256, offset, data):
        """takes the next piece of the archive and returns how much of it is there: bytes from callers that may send code"""
        running = _method.call.get()
        if not running.code:
            raise _errors.Forbidden("the caller may not send code: it needs the right to create workergroups/code, or "
                                    "WorkerGroups, in the namespace")
        wanted = self._wanted
        if sha256 != wanted.sha256:
            raise ValueError(f"rank {_method.rank()} waits for the archive {wanted.sha256[:12]}, and this is {sha256[:12]}")
        if offset == 0:
            self._begin()
        if offset != self._size or self._file is None or offset + len(data) > wanted.size:
            raise ValueError(f"{len(data)} bytes from {offset} do not follow the {self._size} of {wanted.size} bytes that are "
                             "there: begin again with the first")
        self._file.write(data)
        self._size += len(data)
        if self._size == wanted.size:
            self._unpack()
        return self._size

    def _begin(self):
        os.makedirs(self._wanted.folder, exist_ok=True)
        self._file, self._size = tempfile.TemporaryFile(dir=self._wanted.folder), 0

    def _unpack(self):
        try:
            self._file.flush()
            _archive.unpack(self._file, self._wanted.sha256, self._wanted.folder)
        except (OSError, ValueError) as e:
            self.failed = f"{e}: make room, or mount a larger volume and name it in {_archive.FOLDER}" \
                if getattr(e, "errno", None) in (errno.ENOSPC, errno.EDQUOT) else str(e)
            raise
        finally:
            self._file.close()
            self._file = None


def _seconds():
    try:
        return float(os.environ.get(_WAIT) or _WAIT_S)
    except ValueError:
        raise _load.Stop(f"{_WAIT} is {os.environ[_WAIT]!r}: it is a number of seconds", _load.EXIT_USAGE) from None


def _watch(wanted, over):
    """Ends the wait: the archive is there, or it takes too long."""
    end = time.monotonic() + _seconds()
    while not os.path.isdir(wanted.place) and time.monotonic() < end:
        if over.wait(_LOOK_S):
            return
    os.kill(os.getpid(), signal.SIGTERM)  # the host finishes the call that runs


def wait(wanted, server_of):
    """Returns the exit code, or None once the archive is there. server_of(roles, awaits): a Server that has begun."""
    lobby = Lobby(wanted)
    _seconds()
    print(f"cadre-worker: rank {_method.rank()}: waits for the archive {wanted.sha256[:12]} of its code, {wanted.size} bytes",
          file=sys.stderr, flush=True)
    server = server_of([_load.Role(None, Lobby, _load.methods_of(Lobby, lobby))], wanted.sha256)
    over = threading.Event()
    watching = threading.Thread(target=_watch, args=(wanted, over), daemon=True)
    begun = time.monotonic()
    watching.start()
    server.serve(0)
    over.set()
    code = server.host.end()
    if os.path.isdir(wanted.place):
        return None
    if time.monotonic() - begun < _seconds():
        return code
    raise _load.Stop(f"CodeMissing: the archive {wanted.sha256[:12]} of working_dir and py_modules did not come within "
                     f"{_seconds():g} s{': ' + lobby.failed if lobby.failed else ''}: the program "
                     "that made the group sends it while it is connected; run that program again, or put the code into the image",
                     _load.EXIT_MODULE)
