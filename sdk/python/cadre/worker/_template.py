# SPDX-License-Identifier: Apache-2.0
"""The template of a group's ranks: imports what spec.worker.preload names, once, and is forked for each rank.

cadre-agent starts it, with a socket as standard input. It asks for each rank with a packet that carries files: the
rank's own socket, its standard output and error, its directory and environment. docs/protocol.md ("Template")
describes both.
"""

import array
import atexit
import ctypes
import faulthandler
import gc
import importlib
import importlib.machinery
import itertools
import os
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import warnings
import weakref

from . import _load

_libc = ctypes.CDLL(None)
_imported = set()  # the names of the modules that a rank has from its template
_TASKS = "/proc/self/task"
_PR_SET_PDEATHSIG = 1
_EXIT_MAX_S = 60
_NOT_RUNNABLE, _DIRECTORY = 126, 0  # the exit code, and the step that failed, as in the agent
_WORDS_MAX = 900
_HUGE, _MADV_COLLAPSE = 2 << 20, 25
_FILES, _REQUESTS_MAX, _INT = 4, 16, array.array("i").itemsize
_PATIENCE = 100  # looks at threads that are ending, 10 ms apart


class _Witness:
    """Notes for each thread the innermost import after which it existed. Loaders report their modules."""

    def __init__(self):
        self.seen = {}  # thread -> name of a module
        self._links = 0  # of the folder of threads, at the last look
        self._loaders = {loader: loader.exec_module for loader in (importlib.machinery.SourceFileLoader,
                                                                   importlib.machinery.ExtensionFileLoader)}

    def __enter__(self):
        for loader, load in self._loaders.items():
            loader.exec_module = self._telling(load)

    def __exit__(self, *exc):
        for loader, load in self._loaders.items():
            loader.exec_module = load

    def _telling(self, load):
        def exec_module(loader, module):
            load(loader, module)
            links = os.stat(_TASKS).st_nlink  # the number of threads, plus two
            if links != self._links:
                self._links = links
                for thread in _threads():
                    self.seen.setdefault(thread, module.__name__)

        return exec_module


_witness = _Witness()


def _threads():
    """All threads except the main one, also threads that Python does not know."""
    return {int(task) for task in os.listdir(_TASKS)} - {os.getpid()}


def _name_of(thread, what):
    """The name of a thread, and since which import it exists, if that says more than `what`."""
    names, since = {t.native_id: t.name for t in threading.enumerate()}, _witness.seen.get(thread)
    try:
        with open(f"{_TASKS}/{thread}/comm", encoding="utf-8", errors="replace") as f:
            name = names.get(thread) or f.read().strip()
    except OSError:
        name = "which has ended"
    return name + (f", since the import of {since}" if since and not what.endswith(f" {since}") else "")


def _lasting_threads():
    """Returns the threads that a fork would lose. Some libraries, such as OpenBLAS, end their threads before a fork,
    and start them again when they need them: a fork shows this.
    """
    if not _threads():
        return set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a fork beside threads; this child does nothing
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
    """Returns the open device file of a GPU, or None. If there is one, CUDA has been set up."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if path.startswith("/dev/nvidia"):
            return path
    return None


def why_not(what):
    """Returns why this process cannot be forked any more, or None."""
    gpu, threads = _gpu(), _lasting_threads()
    if gpu:
        return f"{what} has opened {gpu}, and CUDA does not work in the child of a fork"
    if threads:
        names = "; ".join(sorted({_name_of(thread, what) for thread in threads})[:4])
        return f"{what} has left {len(threads)} thread{'s' if len(threads) > 1 else ''} running ({names}), which a fork loses"
    return None


def leave(code):
    """Ends a rank that was forked; does nothing in other processes. The rank cleans up what it has imported and
    registered itself. What the template has imported is not cleaned up: that would copy all of its memory, and
    take longer than the rest of a restart.
    """
    if not _imported:
        return
    threading._shutdown()
    atexit._run_exitfuncs()
    for name in list(itertools.takewhile(lambda name: name not in _imported, reversed(sys.modules))):
        del sys.modules[name]
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    faulthandler.dump_traceback_later(_EXIT_MAX_S, exit=True)  # a handler may wait for a thread that needs the GIL
    ctypes.PyDLL(None).exit(code)  # with the GIL: torch has handlers that free Python objects


def _import(names):
    """Imports all modules. Returns why the template is of no use, or None."""
    for name in names:
        try:
            with _witness, _load.without_collection():
                importlib.import_module(name)
        except (Exception, SystemExit) as e:
            traceback.print_exc()
            return f"worker.preload: the import of {name} failed: {_load.said(e)}"
        why = why_not(f"the import of {name}")
        if why:
            return f"worker.preload: {why}: take it out of the list"
    return None


def say(to, text):
    """Sends text over a socket. The other end may have gone."""
    try:
        to.send(text.encode("utf-8", "replace")[:_WORDS_MAX])
    except OSError:
        pass  # nobody waits any more


def follow(parent, signo):
    """Makes this process, just forked, end with its parent."""
    _libc.prctl(_PR_SET_PDEATHSIG, signo, 0, 0, 0)
    if os.getppid() != parent:  # the parent died before prctl() was called
        os._exit(128 + signo)


def _become(agent, home, rank, out, err, described):
    """Sets, in the rank, everything that differs from the template."""
    rank = socket.socket(fileno=rank)
    os.setsid()
    if not rank.recv(1):  # the agent watches it now, or does not want it any more
        os._exit(1)
    follow(agent, signal.SIGKILL)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    with os.fdopen(described, "rb") as f:
        directory, *changes = f.read().split(b"\0")[:-1]
    for change in changes:
        name, is_set, value = change.partition(b"=")
        if is_set:
            os.environb[name] = value
        else:
            os.environb.pop(name, None)
    try:
        os.chdir(directory or home)
    except OSError as e:
        rank.send(struct.pack("ii", _DIRECTORY, e.errno))
        os._exit(_NOT_RUNNABLE)
    if "numpy.random" in sys.modules:  # its state would be the same in all ranks; random reseeds itself
        sys.modules["numpy.random"].seed()
    rank.close()


def _fork_all(requests):
    """Forks all ranks, in the process between the template and its ranks. Returns a request in a rank, and the answers
    to all requests here.
    """
    answers = []
    for request in requests:
        try:
            pid = os.fork()
        except OSError as e:
            answers.append(f"N{e}")
            continue
        if pid == 0:
            return request, None
        answers.append(f"P{pid}")
    return None, answers


def _fork(control, requests):
    """Forks ranks, with a process in between that ends, so the agent becomes their parent. Returns a request in a rank,
    and the answers to all requests in the template.
    """
    why = why_not("something in the template")
    if why:
        return None, ["N" + why] * len(requests)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as told:
        try:
            middle = os.fork()
        except OSError as e:
            os.close(writing)
            return None, [f"N{e}"] * len(requests)
        if middle == 0:
            request, answers = _fork_all(requests)
            if not request:
                _say_and_end(writing, "\0".join(answers))
            os.close(writing)
            control.close()
            return request, None
        os.close(writing)
        answers = told.read().decode()
    os.waitpid(middle, 0)
    return None, answers.split("\0") if answers else ["Nits parent was killed while it was forked"] * len(requests)


def _say_and_end(to, words):
    try:
        os.write(to, words.encode())
    finally:
        os._exit(0)


def _asked(control):
    """Waits until the agent asks for ranks. Returns the files of each. Empty: the agent has ended."""
    words, carried, _, _ = control.recvmsg(_REQUESTS_MAX, socket.CMSG_LEN(_REQUESTS_MAX * _FILES * _INT), socket.MSG_CMSG_CLOEXEC)
    files = array.array("i", carried[0][2] if words else b"")
    return [files[i:i + _FILES] for i in range(0, len(files), _FILES)]


def _use_huge_pages():
    """A fork copies the table of all pages. With huge pages, the table is short: forks and ends of ranks take half of
    the time when this has copied the memory. It is for memory that is almost completely in use. Kernels before 6.1
    ignore it.
    """
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as f:
        lines = f.read().splitlines()
    memory = None
    for line in lines:
        first, *rest = line.split()
        if first[-1] != ":":
            is_ours = rest[0] == "rw-p" and rest[4:] in ([], ["[heap]"])
            memory = [int(end, 16) for end in first.split("-")] if is_ours else None
        elif memory and first == "Anonymous:":
            low, high = -(-memory[0] // _HUGE) * _HUGE, memory[1] // _HUGE * _HUGE
            if low < high and int(rest[0]) * 1024 > (memory[1] - memory[0]) * 7 // 8:
                _libc.madvise(ctypes.c_void_p(low), ctypes.c_size_t(high - low), _MADV_COLLAPSE)


def prepare(names):
    """Makes this process the template. Returns why it cannot be one, or None."""
    why = _import(names)
    if why:
        return why
    for finalizer in weakref.finalize._registry:
        finalizer.atexit = False
    _libc.on_exit(_libc._exit, None)  # in a rank: runs last, and skips the destructors
    _libc.__cxa_atexit(_libc.fflush, None, None)
    _imported.update(sys.modules)
    gc.collect()
    gc.freeze()  # otherwise the first collection in a rank would copy all imported objects
    _use_huge_pages()
    return None


def serve():
    """Serves until the agent ends the template. Returns in a rank."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    why = prepare(os.environ["CADRE_PRELOAD"].split())
    say(control, "N" + why if why else "R")
    if why:
        os._exit(0)
    tend(control)


def tend(control):
    """Forks ranks for the agent, the parent of this process, until it ends. Returns in a rank."""
    agent, home = os.getppid(), os.getcwdb()
    requests = _asked(control)
    while requests:
        sys.stdout.flush()
        sys.stderr.flush()
        _libc.fflush(None)  # otherwise each rank would print the buffered output, too
        request, answers = _fork(control, requests)
        if request:
            for fd in (fd for other in requests if other is not request for fd in other):
                os.close(fd)
            _become(agent, home, *request)
            return
        for files, answer in zip(requests, answers):
            with socket.socket(fileno=files[0]) as rank:
                say(rank, answer)
            for fd in files[1:]:
                os.close(fd)
        requests = _asked(control)
    os._exit(0)
