# SPDX-License-Identifier: Apache-2.0
"""A worker that test_python_bad_input.py hurts."""

import os
import re
import resource
import signal
import sys
import threading

import cadre

ENDLESS = re.compile("(a|a)*b")


class Hurt:
    def __init__(self):
        self.n = 0
        self.gate = threading.Event()

    def add(self, x):
        self.n += x
        return self.n

    def size(self, x):
        return len(x)

    def take(self, n):
        """n bytes, of a process that may have only little more than it has."""
        with open("/proc/self/statm", encoding="utf-8") as f:
            has = int(f.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (has + (64 << 20), resource.RLIM_INFINITY))
        try:
            return len(bytearray(n))
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def killed(self):
        """As the kernel does it where a cgroup has no memory left."""
        os.kill(os.getpid(), signal.SIGKILL)

    def forks(self, how):
        """The exit code of a child that leaves this method in some way."""
        pid = os.fork()
        if pid == 0:
            if how == "raises":
                raise ValueError("of the child")
            if how == "exits":
                sys.exit(3)
            return "from the child"
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    async def forks_later(self, how):
        return self.forks(how)

    def waits(self):
        return self.gate.wait(1200)

    def holds_for_ever(self):
        """In C, with Python's lock: as an expression that takes longer than anybody lives."""
        return ENDLESS.fullmatch("a" * 100)

    def calls(self, method, x):
        with cadre.connect() as client:
            return client.find("g").call(method, x, rank=cadre.rank(), timeout=1200)

    @cadre.register(concurrency="beside")
    def beside(self, x):
        return x + cadre.rank()

    @cadre.register(concurrency="beside")
    def open(self):
        self.gate.set()
