# SPDX-License-Identifier: Apache-2.0
"""python -m cadre debug GROUP: the terminal of a breakpoint() in a method."""

import argparse
import queue
import sys
import threading
import time

from . import _errors, connect

_METHOD, _PROMPT, _LOOK_S, _ASK_S = "worker.debug", "(Pdb) ", 0.1, 30
_PATIENCE_S = 2  # for the debugger's answer to the last line of the input


def _said(group, rank, text=""):
    return group.call(_METHOD, text, rank=rank, timeout=_ASK_S)["output"]


def _find(group, rank):
    """Returns the first rank that waits at a breakpoint, and the output of its debugger so far."""
    print(f"waiting for a breakpoint of {group.name}; Ctrl-C ends", file=sys.stderr)
    while True:
        ranks = [w["rank"] for w in group.info(timeout=_ASK_S)["workers"] if w["connected"]] if rank is None else [rank]
        for one in ranks:
            said = _said(group, one)
            if said.endswith(_PROMPT):
                return one, said
            print(said, end="", flush=True)  # output of an earlier breakpoint
        time.sleep(_LOOK_S)


def _typed():
    """Yields the lines of standard input as they are typed, and "" at the end."""
    lines = queue.SimpleQueue()

    def read():
        line = None
        while line != "":
            line = sys.stdin.readline()
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _next(lines, timeout):
    try:
        return lines.get(timeout=timeout)
    except queue.Empty:
        return None


def _debug(group, rank):
    rank, said = _find(group, rank)
    print(f"rank {rank}:", file=sys.stderr)
    lines, line, end = _typed(), None, None  # end: when to stop waiting after the last line
    while True:
        print(said, end="", flush=True)
        asks = said.endswith(_PROMPT)
        if line is None:
            line = _next(lines, None if asks else _LOOK_S)
        elif not asks:
            time.sleep(_LOOK_S)
        if line == "":
            end = end or time.monotonic() + _PATIENCE_S
            if asks or time.monotonic() > end:  # later breakpoints get no input: the rank continues
                _said(group, rank, "continue\n")
                return
        said = _said(group, rank, line if asks else "")
        line = None if asks else line


def main():
    parser = argparse.ArgumentParser("python -m cadre", description="Tools for groups with workers in Python.")
    debug = parser.add_subparsers(dest="tool", required=True).add_parser(
        "debug", help="wait for a breakpoint() in a method, and debug it; the end of the input continues the method")
    debug.add_argument("group")
    debug.add_argument("--rank", type=int, help="default: the first one that waits")
    debug.add_argument("-n", "--namespace", help="of the group")
    debug.add_argument("--address", help="of the proxy, such as unix:/PATH of a local run; default: as cadre.connect()")
    given = parser.parse_args()
    options = {"namespace": given.namespace} if given.namespace else {"namespace": "default"} if given.address else {}
    try:
        with connect(given.address, **options) as client:
            _debug(client.group(given.group), given.rank)
    except KeyboardInterrupt:
        return 130
    except (_errors.Error, TimeoutError) as e:
        print(f"python -m cadre: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
