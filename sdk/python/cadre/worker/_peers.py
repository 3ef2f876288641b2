# SPDX-License-Identifier: Apache-2.0
"""Ranks that wait for each other in torch.distributed: when one is lost, the others stop waiting.

torch notices a death late: over gloo only ranks that exchange data with the dead one see its connection end, and NCCL waits
for minutes. So ranks that have made torch's default group keep connections of their own, which end with a process. They
learn from each other by torch's store which rank of the Cadre group has which rank of torch's group.
"""

import ctypes
import os
import sys
import threading
import time
import traceback
import weakref

from .. import _method
from . import _load

_MEET_S = 600
_LOOK_S, _LOOKS = 0.25, 2  # a call that is in torch at each of these looks waits there
_VERDICT_S = 1  # torch may notice the loss this much earlier
WATCHES = "peers, met"  # name of the thread, for tests
_exit = os._exit  # the one that says nothing


def _is_in(frame, *modules):
    name = frame.f_globals.get("__name__", "") if frame else ""
    return name.startswith(modules) and not name.startswith("torch.distributed.checkpoint")  # which writes files


def _is_of_group(e):
    """Errors of gloo name its source files. If backward() or a work of torch waits, these errors come from outside
    torch.distributed.
    """
    return isinstance(e, RuntimeError) and (
        type(e).__module__.startswith("torch.distributed") or "gloo/" in _load.words_of(e)
        or any(_is_in(frame, "torch.distributed") for frame, _ in traceback.walk_tb(e.__traceback__)))


def _group():
    """Returns torch's default group, or None."""
    return sys.modules["torch.distributed"].group.WORLD


def _remember():
    """Returns a weak reference to torch's default group, or None."""
    group = _group()
    return group and weakref.ref(group)


def _is_same(remembered):
    group = remembered and remembered()
    return group is not None and group is _group()


def _is_joined():
    """Whether this rank is in a default group with others."""
    dist = sys.modules.get("torch.distributed")
    try:
        return (getattr(dist, "is_initialized", bool)()  # torch without torch.distributed does not have it
                and _method.world_size() > 1 and dist.get_world_size() > 1 and dist.get_rank() >= 0 and _group() is not None)
    except Exception:  # another thread has just ended the group
        return False


def _introduce(goes_on):
    """Returns the ranks of this Cadre group that are in torch's default group, in torch's order. Each rank writes its
    number to torch's store. Waits for them as long as goes_on() returns true.
    """
    dist = sys.modules["torch.distributed"]
    store, group = dist.distributed_c10d._get_default_store(), os.environ.get("GROUP_NAME", "")
    keys = [f"cadre/rank/{i}" for i in range(dist.get_world_size())]
    store.set(keys[dist.get_rank()], f"{_method.rank()} {group}")
    while not store.check(keys):  # wait() would keep other threads from the store
        if not goes_on():
            return []
        time.sleep(_LOOK_S)
    said = [store.get(key).decode().partition(" ") for key in keys]
    return [int(rank) for rank, _, its_group in said if its_group == group]


class Peers:
    def __init__(self, host):
        self.host = host
        self.calls = {}  # running calls: call -> (thread, method)
        self.lost, self.known = "", threading.Event()
        self.hit, self.group = frozenset(), None  # the calls that ran when the rank was lost, and their group
        self.lock, self.watches = threading.Lock(), False
        self.tried = None  # the group that the last watch began with

    def begin(self, call, method):
        self.calls[call] = (threading.get_ident(), method)

    def end(self, call):
        self.calls.pop(call, None)
        self.look()

    def look(self):
        """Call this after code of the program has run. Checks whether the program has made the default group, or made
        it again after a loss. Raises nothing.
        """
        if self.watches or not _is_joined() or _is_same(self.tried):
            return
        with self.lock:
            first, self.watches = not self.watches, True
        try:
            if first:
                threading.Thread(target=self._watch, daemon=True, name="peers").start()
        except RuntimeError as e:  # too many threads
            self._say_blind(e)

    def explain(self, call, e, may_wait):
        """The rank that was lost, if torch may have raised the exception because of that; otherwise ""."""
        if not (self.watches or self.lost) or not _is_of_group(e):
            return ""
        if may_wait:
            self.known.wait(_VERDICT_S)
        return self.lost if self._concerns(call) else ""

    def _concerns(self, call):
        """Whether the call needs the lost rank."""
        return call in self.hit or _is_same(self.group)

    def _watch(self):
        self.tried = _remember()
        self._watch_once()
        self.watches = False
        self.look()  # the program may have made a new group meanwhile

    def _meet(self):
        """Returns whether the ranks of torch's group watch each other from now on."""
        end = time.monotonic() + _MEET_S
        try:
            ranks = _introduce(lambda: time.monotonic() < end and _is_same(self.tried))
        except Exception as e:
            if _is_same(self.tried):  # otherwise the program has ended the group meanwhile
                self._say_blind("torch's store says: " + _load.words_of(e).partition("\n")[0])  # frames of C++ follow
            return False
        if not ranks and _is_same(self.tried):
            self._say_blind(f"the others did not join it within {_MEET_S} s")
        if len(ranks) < 2:
            return False
        why = self.host.meet((ctypes.c_int * len(ranks))(*ranks), len(ranks), _MEET_S * 1000)
        if why:
            self._say_blind(why.decode(errors="replace"))
        return why is None

    def _watch_once(self):
        if not self._meet():
            return
        self.known.clear()
        self.lost, self.hit, self.group = "", frozenset(), None
        threading.current_thread().name = WATCHES
        lost = self.host.watch()
        threading.current_thread().name = "peers"
        if lost is None:
            return
        waiting = self._innermost()
        self.hit, self.group = frozenset(self.calls), _remember()
        self.lost = lost.decode(errors="replace")
        self.known.set()
        threading.Thread(target=self._abort, daemon=True, name="abort").start()
        self._free(waiting if self.group else {})  # a method that has ended the group may wait for the next one

    def _abort(self):
        """Aborts NCCL's work. gloo cannot do this: threads that wait in it continue to wait."""
        dist = sys.modules["torch.distributed"]
        abort = getattr(dist.distributed_c10d, "_abort_process_group", None)  # since torch 2.6
        try:
            if abort and dist.is_initialized() and "nccl" in dist.get_backend() and _is_same(self.group):
                abort()
        except Exception as e:
            self._say(f"torch's group cannot be aborted: {e}")

    def _innermost(self):
        """Returns the calls that are in torch: call -> the frame."""
        frames = sys._current_frames()
        return {call: frames[thread] for call, (thread, _) in list(self.calls.items())
                if _is_in(frames.get(thread), "torch.distributed", "torch.autograd")}

    def _free(self, waiting):
        """Continues until no call can wait for the lost rank any more: no call is in the same group, and none has
        stayed in the frame in `waiting` since the loss. Other calls may wait in a new group.
        """
        looks = {}
        while waiting or _is_same(self.group):
            time.sleep(_LOOK_S)
            now = self._innermost()
            waiting = {call: frame for call, frame in waiting.items() if now.get(call) is frame}
            looks = {call: looks.get(call, 0) + 1 for call in (now if _is_same(self.group) else waiting)}
            del now  # frames keep the variables of methods alive
            waits = [self.calls[call][1] for call, n in looks.items() if n == _LOOKS and call in self.calls]
            if waits:
                self._leave(waits)

    def _leave(self, methods):
        sys.stdout.flush()
        which = " or ".join(dict.fromkeys(f"{method.name}()" for method in methods))  # if they share a loop, any of them
        self._say(f"{self.lost}; {which} waits for it in torch, which only the end of this process ends")
        _exit(_load.EXIT_LOST)

    def _say_blind(self, why):
        self._say(f"the ranks of torch's group do not watch each other: {why}")

    def _say(self, words):
        print(f"cadre-worker: rank {_method.rank()}: {words}", file=sys.stderr, flush=True)
