# SPDX-License-Identifier: Apache-2.0
"""The workers of test_python_preload.py, in ranks that are forked from a template."""

import atexit
import ctypes
import gc
import os
import random
import resource
import signal
import sys
import threading
import weakref


class _Last:
    """Says when it ends."""

    def __init__(self, words):
        self.words = words

    def __del__(self):
        print("the end of", self.words)


_THRESHOLD = gc.get_threshold()[0]
_of_module = _Last("the module")
_VARIABLES = ("CADRE_TICKET", "CADRE_PRELOAD", "MASTER_PORT", "PET_MASTER_PORT")  # that differ between groups


class Forked:
    def __init__(self, first=None):
        self.last = None
        if first is not None:
            print("the first word of", first)

    def thresholds(self):
        """Returns the thresholds of the garbage collector: while each module was imported, and now."""
        return sys.modules["heavy"].THRESHOLD, _THRESHOLD, gc.get_threshold()[0]

    def place(self):
        """Returns this process and the process that imported the module. Only in a fork, they differ."""
        heavy = sys.modules.get("heavy")
        return {"rank": int(os.environ["RANK"]), "pid": os.getpid(), "parent": os.getppid(), "session": os.getsid(0),
                "imported_by": heavy and heavy.PID, "with_rank": heavy and heavy.IMPORTED_WITH_RANK,
                "folder": os.path.basename(os.getcwd()), "template": os.environ.get("CADRE_TEMPLATE"),
                "mine": os.environ.get("MINE"), "input": os.readlink("/proc/self/fd/0")}

    def draw(self):
        return random.random()

    def files(self):
        """Open files but not the host's own, as a leak of the template would leave them."""
        return len(os.listdir("/proc/self/fd"))

    def world(self):
        """All that a process has from the one that started it."""
        with open("/proc/self/status", encoding="utf-8") as f:
            signals = [line.split() for line in f if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]
        with open("/proc/self/cgroup", encoding="utf-8") as f:
            cgroup = f.read()
        umask = os.umask(0)
        os.umask(umask)
        return {"environment": {k: v for k, v in os.environ.items() if k not in _VARIABLES}, "folder": os.getcwd(),
                "arguments": sys.argv, "path": sys.path, "signals": signals, "cgroup": cgroup, "umask": umask,
                "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")},
                "nice": os.nice(0), "processors": sorted(os.sched_getaffinity(0)), "groups": os.getgroups(),
                "files": self.files(), "threads": sorted(t.name for t in threading.enumerate()),
                "process": (os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid())}

    def prepare_end(self, path):
        """Prepares what happens when this rank ends as any program does."""
        self.last = _Last("the object")
        self.file = open(path, "w", encoding="utf-8")  # nobody closes it
        self.file.write("written at the end")
        atexit.register(print, "the end by atexit")
        self.finalizer = weakref.finalize(self, print, "the end by a finalizer")
        threading.Thread(target=self._wait, name="patient").start()
        libc = ctypes.CDLL(None)
        libc.printf(b"the end of C's own output\n")

    def _wait(self):
        threading.main_thread().join()
        print("the end of a thread")

    def end(self, code):
        os._exit(code)

    def end_by(self, signo):
        os.kill(os.getpid(), signo)

    def start_thread_of_template(self):
        """As a module may do long after its import."""
        os.kill(sys.modules["heavy"].PID, signal.SIGUSR1)

    def threads_of_template(self):
        return len(os.listdir(f"/proc/{sys.modules['heavy'].PID}/task"))

    def end_template(self):
        os.kill(sys.modules["heavy"].PID, signal.SIGKILL)
