# SPDX-License-Identifier: Apache-2.0
"""A line on the terminal, or in the notebook, while a group starts: how many ranks are there, and why not all."""

import sys
import time

from . import _errors

_QUIET_S, _STEP_S, _ASK_S = 2, 0.5, 2  # a group that starts at once shows nothing
_WIDTH = 160


def wanted():
    """Whether standard error is a terminal or a notebook."""
    try:
        return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def text(name, info, seconds):
    """The line for an answer of info()."""
    why = " ".join((info.get("message") or "").split())
    line = f"cadre: {name}: {info['connected']} of {info['worldSize']} ranks are connected after {seconds} s"
    return (f"{line}: {why}" if why else line)[:_WIDTH]


class Line:
    """A line that is shown again and again in the same place, and disappears at the end."""

    def __init__(self, name):
        self._name, self._begin, self._len = name, time.monotonic(), 0

    def show(self, info):
        seconds = int(time.monotonic() - self._begin)
        if seconds < _QUIET_S or not wanted():
            return
        line = text(self._name, info, seconds)
        print("\r" + line.ljust(self._len), end="", file=sys.stderr, flush=True)
        self._len = len(line)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self._len:
            print("\r" + " " * self._len + "\r", end="", file=sys.stderr, flush=True)


def result(future, group):
    """Returns future.result(). Shows the line while the group is not ready."""
    if not wanted():
        return future.result()
    with Line(group.name) as line:
        while not _is_answered(future):
            try:
                info = group.info(timeout=_ASK_S)
            except (_errors.Error, TimeoutError):  # the call itself reports what is wrong
                break
            if info["ready"]:
                break
            line.show(info)
    return future.result()


def _is_answered(future):
    try:
        future.exception(_STEP_S)
    except TimeoutError:
        return future.done()
    return True
