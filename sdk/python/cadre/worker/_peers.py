# SPDX-License-Identifier: Apache-2.0
"""Ranks that wait for each other in torch.distributed: when one is lost, the others stop waiting.

torch notices a death late: over gloo only ranks that exchange data with the dead one see its connection end, and NCCL waits
for minutes. So ranks that have made torch's default group keep connections of their own, which end with a process.
"""

import os
import sys
import threading
import time
import traceback

from .. import _method
from . import _load

_MEET_MS = 600 * 1000
_LOOK_S, _LOOKS = 0.25, 2  # a call that is in torch at each look waits there
_VERDICT_S = 1  # torch may notice so much earlier
_WAITS = ("torch.distributed", "torch.autograd")
WATCHES = "peers, met"  # name of the thread, for tests
_exit = os._exit  # the one that says nothing


def _is_torch(frame):
    return frame is not None and frame.f_globals.get("__name__", "").startswith(_WAITS)


class Peers:
    def __init__(self, host):
        self.host = host
        self.calls = {}  # thread -> what it runs: (call, method)
        self.lost, self.known, self.watches = "", threading.Event(), False

    def look(self):
        """After code of the program has run: has it made the default group?"""
        dist = sys.modules.get("torch.distributed")
        if self.watches or not getattr(dist, "is_initialized", bool)():  # which a torch without it has not
            return
        self.watches = True
        world = _method.world_size()
        if world > 1 and (dist.get_rank(), dist.get_world_size()) == (_method.rank(), world):
            threading.Thread(target=self._watch, daemon=True, name="peers").start()

    def explain(self, e):
        """Who was lost, where that may be why torch raised this; else ""."""
        if not self.watches or not isinstance(e, RuntimeError):
            return ""
        if any(_is_torch(frame) for frame, _ in traceback.walk_tb(e.__traceback__)):
            self.known.wait(_VERDICT_S)
        return self.lost

    def _watch(self):
        why = self.host.meet(_MEET_MS)
        if why is not None:
            if why:
                self._say(f"the ranks of torch's group do not watch each other: {why.decode(errors='replace')}")
            return
        threading.current_thread().name = WATCHES
        lost = self.host.watch()
        if lost is None:
            return
        self.lost = lost.decode(errors="replace")
        self.known.set()
        threading.Thread(target=self._abort, daemon=True, name="abort").start()
        self._free(dict(self.calls))

    def _abort(self):
        """Ends what NCCL does. gloo has nothing like it: who waits in it goes on to wait."""
        dist = sys.modules["torch.distributed"]
        abort = getattr(dist.distributed_c10d, "_abort_process_group", None)  # since torch 2.6
        try:
            if abort and dist.is_initialized() and "nccl" in dist.get_backend():
                abort()
        except Exception as e:
            self._say(f"torch's group cannot be aborted: {e}")

    def _free(self, calls):
        """Until each of these has ended, or waits in torch."""
        looks = dict.fromkeys(calls, 0)
        while looks:
            time.sleep(_LOOK_S)
            frames = sys._current_frames()
            for thread in list(looks):
                if self.calls.get(thread) is not calls[thread]:
                    del looks[thread]
                    continue
                looks[thread] = looks[thread] + 1 if _is_torch(frames.get(thread)) else 0
                if looks[thread] == _LOOKS:
                    self._leave(calls[thread][1])

    def _leave(self, method):
        sys.stdout.flush()
        self._say(f"{self.lost}; {method.name}() waits for it in torch, which only the end of this process ends")
        _exit(_load.EXIT_LOST)

    def _say(self, words):
        print(f"cadre-worker: rank {_method.rank()}: {words}", file=sys.stderr, flush=True)
