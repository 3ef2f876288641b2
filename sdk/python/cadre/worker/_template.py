# SPDX-License-Identifier: Apache-2.0
"""The template of a group's ranks: imports what spec.worker.preload names, once, and is forked for each rank.

cadre-agent starts it, with a socket as standard input, and asks for each rank with a packet that carries files: the rank's own
socket, its standard output and error, its directory and environment. docs/protocol.md ("Template") describes both.
"""

import ctypes
import gc
import importlib
import os
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import warnings

from . import _load

_PR_SET_PDEATHSIG = 1
_NOT_RUNNABLE, _DIRECTORY = 126, 0  # the exit code, and the step that failed, as the agent knows them
_WORDS_MAX = 900
_PATIENCE = 100  # looks at threads that are about to end, 10 ms apart


def _threads():
    """The names of all but the main one, also of those that Python does not know."""
    names, known = [], {str(t.native_id): t.name for t in threading.enumerate()}
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm", encoding="utf-8", errors="replace") as f:
                names += [] if int(task) == os.getpid() else [known.get(task) or f.read().strip()]
        except OSError:  # it has ended
            pass
    return names


def _lasting_threads():
    """Those that a fork would lose. Some libraries, such as OpenBLAS, end theirs before a fork, and start them again when they
    need them: a fork for nothing shows it.
    """
    if not _threads():
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fork beside threads, whose child does nothing here
        child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    for _ in range(_PATIENCE):
        if not _threads():
            break
        time.sleep(0.01)
    return _threads()


def _gpu():
    """The file of a GPU that is open, or None: CUDA has been set up."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if path.startswith("/dev/nvidia"):
            return path
    return None


def _why_not(what):
    """Why this process cannot be forked any more, or None."""
    gpu, threads = _gpu(), _lasting_threads()
    if gpu:
        return f"{what} has opened {gpu}, and CUDA does not work in the child of a fork"
    if threads:
        names = ", ".join(sorted(set(threads))[:4])
        return f"{what} has left {len(threads)} thread{'s' if len(threads) > 1 else ''} running ({names}), which a fork loses"
    return None


def _import(names):
    """Imports them all. Why the template is of no use, or None."""
    for name in names:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as e:
            traceback.print_exc()
            return f"worker.preload: the import of {name} failed: {_load.said(e)}"
        why = _why_not(f"the import of {name}")
        if why:
            return f"worker.preload: {why}: take it out of the list"
    return None


def _send(to, text):
    try:
        to.send(text.encode("utf-8", "replace")[:_WORDS_MAX])
    except OSError:
        pass  # nobody waits any more


def _become(rank, agent, files):
    """In the rank: all that differs from the template."""
    out, err, described = files
    os.setsid()
    if not rank.recv(1):  # the agent watches it now, or does not want it any more
        os._exit(1)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != agent:  # died before it could take us along
        os._exit(128 + signal.SIGKILL)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    with os.fdopen(described, "rb") as f:
        directory, *variables = f.read().split(b"\0")[:-1]
    os.environb.clear()
    os.environb.update(v.split(b"=", 1) for v in variables)
    try:
        os.chdir(directory or b".")
    except OSError as e:
        rank.send(struct.pack("ii", _DIRECTORY, e.errno))
        os._exit(_NOT_RUNNABLE)
    if "numpy.random" in sys.modules:  # its state would be the same in all ranks; random sees to itself
        sys.modules["numpy.random"].seed()
    rank.close()


def _split(control, writing):
    """In the middle one of three: forks the rank, and ends, so that the agent becomes the rank's parent."""
    try:
        pid = os.fork()
    except OSError as e:
        os.write(writing, f"N{e}".encode())
        os._exit(1)
    if pid:
        os.write(writing, b"P%d" % pid)
        os._exit(0)
    os.close(writing)
    control.close()


def _fork(control):
    """Forks a rank. Its answer for the agent; None in the rank."""
    why = _why_not("something in the template")
    if why:
        return "N" + why
    reading, writing = os.pipe()
    try:
        middle = os.fork()
    except OSError as e:
        os.close(reading)
        os.close(writing)
        return f"N{e}"
    if middle == 0:
        os.close(reading)
        _split(control, writing)
        return None
    os.close(writing)
    with os.fdopen(reading, "rb") as f:
        answer = f.read().decode()
    os.waitpid(middle, 0)
    return answer or "Nits parent was killed while it was forked"


def serve():
    """Until the agent ends it. Returns in a rank."""
    agent = os.getppid()
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    why = _import(os.environ["CADRE_PRELOAD"].split())
    if why:
        _send(control, "N" + why)
        sys.exit(0)
    gc.collect()
    gc.freeze()  # else the first collection in a rank would copy all that was imported
    _send(control, "R")
    while True:
        word, files, _, _ = socket.recv_fds(control, 1, 4)
        if not word:  # the agent has ended
            sys.exit(0)
        sys.stdout.flush()
        sys.stderr.flush()
        rank = socket.socket(fileno=files[0])
        answer = _fork(control)
        if answer is None:
            _become(rank, agent, files[1:])
            return
        _send(rank, answer)
        rank.close()
        for fd in files[1:]:
            os.close(fd)
