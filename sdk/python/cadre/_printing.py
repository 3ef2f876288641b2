# SPDX-License-Identifier: Apache-2.0
"""Prints the output of ranks on the standard output of the program, or in its notebook: "actor [rank 0-3] loss 0.3".
Equal lines that several ranks print at about the same time become one line.
"""

import os
import re
import selectors
import sys
import threading
import time

from . import _errors

_FOLD_S = 0.05
_LAST_S = 0.7  # the proxy looks for equal lines of other ranks for half a second
HIDDEN = re.compile(r"(^|\] )cadre-worker: rank \d+: ready for calls$")
_LINE = re.compile(r"(\S+ )\[rank (\d+)\] (.*)", re.DOTALL)


def ranges(ranks):
    """{0, 1, 2, 7} -> "0-2,7"."""
    found, ranks = [], sorted(ranks)
    for rank in ranks:
        if found and rank == found[-1][1] + 1:
            found[-1][1] = rank
        else:
            found.append([rank, rank])
    return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in found)


def show(stream, text):
    """Prints to the current sys.stdout or sys.stderr: a notebook or a test may have replaced it, or closed it."""
    try:
        out = getattr(sys, stream)
        out.write(text + "\n")  # print() writes the end of the line separately, and other output may come between
        out.flush()
    except (AttributeError, ValueError, OSError):  # it is None, closed, or has no reader
        pass


class Fold:
    """Lines go in, and come out in the order of each rank, after a short wait for equal lines of other ranks."""

    def __init__(self, out):
        self._out = out
        self._waiting = []  # [due, prefix, text, ranks], the oldest first

    def add(self, line, now):
        found = _LINE.fullmatch(line)
        if not found:
            self.flush()
            self._out(line)
            return
        prefix, rank, text = found[1], int(found[2]), found[3]
        for entry in reversed(self._waiting):
            if entry[1] == prefix and rank in entry[3]:
                break  # otherwise the order of this rank's lines would be lost
            if entry[1] == prefix and entry[2] == text:
                entry[3].add(rank)
                return
        self._waiting.append([now + _FOLD_S, prefix, text, {rank}])

    def flush(self, now=None):
        """Prints the lines that are due; now None: all lines."""
        while self._waiting and (now is None or self._waiting[0][0] <= now):
            _, prefix, text, ranks = self._waiting.pop(0)
            self._out(f"{prefix}[rank {ranges(ranks)}] {text}")

    def wait_s(self, now):
        """Returns the time until a line is due. None: no line waits."""
        return max(self._waiting[0][0] - now, 0) if self._waiting else None


class Shown:
    """The groups of a client whose output it prints, as the proxy sends it. Its callbacks run on the thread of the
    client.
    """

    def __init__(self):
        self._listen = {}  # name -> function that asks the proxy for the output of the group, and returns a Future
        self._may_come = False  # lines, also of groups that are closed by now

    def add(self, name, listen):
        self._listen[name], self._may_come = listen, True
        listen()

    def connected(self, up):
        """Asks again, because a new proxy does not know which groups another proxy was asked about."""
        for name, listen in list(self._listen.items()) if up else ():
            listen().add_done_callback(lambda future, name=name: self._answered(name, future))

    def _answered(self, name, future):
        if isinstance(future.exception(), (_errors.NotFound, _errors.Gone)):
            self.remove(name)

    def remove(self, name):
        """The group is no longer there. Lines that are on their way are still printed."""
        self._listen.pop(name, None)

    def line(self, line):
        """Takes an Output of the client."""
        name = line.group.partition("/")[2]
        if line.dropped:
            show("stderr", f"{name}: {line.dropped} lines came too fast, and are not shown")
        if line.text is not None and not HIDDEN.search(line.text):
            show("stderr" if line.text.startswith("cadre-worker: ") else "stdout", f"{name} [rank {line.ranks}] {line.text}")

    def wait(self):
        """Waits at the end for lines that are on their way."""
        if self._may_come:
            time.sleep(_LAST_S)


class Printer:
    """Prints the output of a process from its two pipes, on its own thread, until the process closes both. `hides`: a
    pattern for lines that are not printed.
    """

    def __init__(self, out, err, hides):
        self._hides = re.compile(f"{HIDDEN.pattern}|{hides}")
        self._pipes = {pipe.fileno(): (pipe, stream, self._fold(stream)) for pipe, stream in ((out, "stdout"), (err, "stderr"))}
        self._partial = dict.fromkeys(self._pipes, b"")
        self._thread = threading.Thread(target=self._run, daemon=True, name="cadre-output")
        self._thread.start()

    def _fold(self, stream):
        return Fold(lambda line: self._hides.search(line) or show(stream, line))

    def _run(self):
        with selectors.DefaultSelector() as selector:
            for fd in self._pipes:
                selector.register(fd, selectors.EVENT_READ)
            while selector.get_map():
                now = time.monotonic()
                waits = [w for w in (fold.wait_s(now) for _, _, fold in self._pipes.values()) if w is not None]
                for key, _ in selector.select(min(waits, default=None)):
                    if not self._read(key.fd):
                        selector.unregister(key.fd)
                now = time.monotonic()
                for _, _, fold in self._pipes.values():
                    fold.flush(now)
        for pipe, _, fold in self._pipes.values():
            fold.flush()
            pipe.close()

    def _read(self, fd):
        data = os.read(fd, 1 << 16)
        *lines, self._partial[fd] = (self._partial[fd] + data).split(b"\n") if data else (self._partial[fd], b"")
        for line in lines:
            if data or line:
                self._pipes[fd][2].add(line.decode("utf-8", "replace"), time.monotonic())
        return bool(data)

    def join(self, timeout):
        """Waits until all that the process has written is printed."""
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)
