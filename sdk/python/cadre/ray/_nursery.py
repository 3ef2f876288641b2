# SPDX-License-Identifier: Apache-2.0
"""Workers of a local run that do not wait for imports. A process of this program, the nursery, imports slow modules
once. The agents of all groups are forked from it, together with the templates of their ranks.
"""

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

from .. import _local
from . import _runtime_env

ENV = "RAY_ON_CADRE_NURSERY"
# Modules that take seconds to import, and begin no threads. If a program has imported one of them, its workers will,
# too.
_SLOW = ("torch", "tensordict", "transformers")
# Prefixes of names of variables that none of these modules reads while it is imported.
_HARMLESS = ("WG_", "RAY_", "PYTEST_CURRENT_TEST")
_LINE_MAX, _THREADS = 1024, "1"
_lock, _here = threading.Lock(), None


class _Nursery:
    """A nursery that this process has started. It forks workers with the modules and variables with which it was made.
    """

    def __init__(self, made_of, variables):
        self.made_of = made_of
        names, counts = made_of[0], _runtime_env.THREADS not in variables
        self._folder = tempfile.mkdtemp(prefix="cadre-")
        self.said = {"path": f"{self._folder}/nursery", "preload": names, "counts": counts}
        python = os.environ.get("CADRE_PYTHON3") or sys.executable
        life, self._life = os.pipe()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.said["path"])
            listener.listen(_LINE_MAX)
            env = {_runtime_env.THREADS: _THREADS, **variables, "PYTHONPATH": _local._modules(), "CADRE_TEMPLATE": "1",
                   "CADRE_PRELOAD": " ".join(names), "CADRE_NURSERY": f"{listener.fileno()} {life}"}
            self._process = subprocess.Popen([python, "-m", "cadre.worker"], env=env, pass_fds=(listener.fileno(), life),
                                             stdin=subprocess.DEVNULL, start_new_session=True)
        os.close(life)

    def is_alive(self):
        return self._process.poll() is None

    def was_killed(self):
        return (self._process.poll() or 0) < 0

    def forget(self):
        """For a child of fork(): the nursery belongs to the parent, and ends when the parent ends."""
        os.close(self._life)

    def leave(self):
        """The nursery ends with the last agent that it has forked."""
        os.close(self._life)
        shutil.rmtree(self._folder, ignore_errors=True)


def _wanted(session, variables):
    """Returns the modules and the variables of the nursery of this program. None: the program needs no nursery."""
    names = tuple(name for name in _SLOW if name in sys.modules)
    return (names, {name: v for name, v in variables.items() if not name.startswith(_HARMLESS)}) if names else None


def _own(session):
    """Describes the nursery of this process."""
    global _here
    variables = {**session.begun_with, **_runtime_env.variables_of(session.said["env"])}
    wanted = _wanted(session, variables)
    with _lock:
        if wanted and (_here is None or _here.made_of != wanted or _here.was_killed()):
            if _here:
                _here.leave()
            _here = _Nursery(wanted, variables)
        return _here.said if _here and _here.is_alive() else None


def of(session):
    """Describes the nursery that forks the agents of this process, or returns None."""
    if not session.said["local"]:
        return None
    return _own(session) if session.driver else session.said.get("nursery")


def place(said, runtime_env, threads, preload=()):
    """(variables, modules to preload) of a group. Variables that differ from the program's must be set before an
    import. This is also true for the number of OpenMP threads, unless the program itself sets it.
    """
    own = [name for name in _runtime_env.variables_of(runtime_env)
           if name not in _runtime_env._OF_RANKS and not name.startswith(_HARMLESS)]
    if not said or own or said["counts"] and threads != int(_THREADS):
        return {}, list(preload)
    return {ENV: said["path"]}, said["preload"]


@atexit.register
def _leave():
    if _here:
        _here.leave()


def _forget():
    global _lock, _here
    _lock = threading.Lock()  # another thread may have held it
    if _here:
        _here.forget()
        _here = None


os.register_at_fork(after_in_child=_forget)
