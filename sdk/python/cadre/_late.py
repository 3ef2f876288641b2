# SPDX-License-Identifier: Apache-2.0
"""Where the ranks are that miss a deadline. They are asked, and answer whatever their threads do."""

import re
import sys
import time

from . import _errors

_ASK_S = 1
METHOD = "worker.stack"
_RUNS = re.compile(r'^  File ".*[/\\\\]cadre/worker/_serve\.py", line \d+ in _run\w*$')
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


def place(stack, method):
    """Returns the line at which a thread runs the method: "train.py:12 in step". None: no thread runs it."""
    for block in stack.split("\n\n"):
        lines = block.splitlines()[1:]
        ends = [i for i, line in enumerate(lines) if _RUNS.match(line)]
        frames = [m.groups() for m in map(_FRAME.match, lines[:ends[0]] if ends else ()) if m]
        if frames and frames[-1][2] == method:
            return "{}:{} in {}".format(*frames[0])
    return None


def _in_a_coroutine():
    asyncio = sys.modules.get("asyncio")  # without asyncio there is no loop
    try:
        return asyncio is not None and asyncio.get_running_loop() is not None
    except RuntimeError:
        return False


def explain(e, future, ranks):
    """Returns the same error, with a message that says where these ranks are. In a coroutine it does not wait for
    that.
    """
    if _in_a_coroutine():
        return e
    client, name = future._client, future._method
    group = client.group(name.group)
    try:
        asked = [(rank, group.start(METHOD, rank=rank, timeout=_ASK_S)) for rank in sorted(ranks)]
    except (_errors.Error, RuntimeError):
        return e
    said, end = [], time.monotonic() + _ASK_S
    for rank, answer in asked:
        try:
            at = place(answer.result(max(end - time.monotonic(), 0))["stack"], name.name)
        except (_errors.Error, TimeoutError):  # the rank hangs, or is not a Python worker
            continue
        if at:
            said.append(f"\nrank {rank} is at {at}")
    e.message += "".join(said)
    e.args = (e.message,)
    return e
