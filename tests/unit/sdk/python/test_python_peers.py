#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that wait for each other in torch.distributed, with stand-ins for torch and for the host."""

import asyncio
import os
import queue
import sys
import threading
import time
import types
import unittest
import unittest.mock

from cadre.worker import _load, _peers, _serve
from python_case import main

WORDS = "rank 1 was lost: its process has ended, or its node"
C10D = "torch.distributed.distributed_c10d"


class Host:
    """The ranks meet at once, the first time. A test says when one is lost, and when they may meet again."""

    def __init__(self):
        self.finished, self.losses = [], queue.SimpleQueue()
        self.meetings, self.may_meet = [], threading.Semaphore(1)

    def meet(self, ranks, n, limit_ms):
        self.may_meet.acquire()
        self.meetings.append(list(ranks))

    def watch(self):
        return self.losses.get()

    def finish(self, handle):
        self.finished.append(handle)


class Group:
    """torch's default group."""


class Store:
    """torch's, where the other rank has said already who it is."""

    def __init__(self, **said):
        self.said = {f"cadre/rank/{name[1:]}": words.encode() for name, words in said.items()}
        self.asked = threading.Event()

    def set(self, key, value):
        self.said[key] = value.encode()

    def check(self, keys):
        self.asked.set()
        return all(key in self.said for key in keys)

    def get(self, key):
        return self.said[key]


class Left(Exception):
    """The process has ended, with that code."""


def leave(code):
    raise Left(code)


def function_of(module, text):
    """f(), whose frame is in that module."""
    made = types.ModuleType(module)
    exec(f"def f(a):\n    {text}", made.__dict__)
    return made.f


def raised(e, module):
    try:
        function_of(module, "raise a")(e)
    except Exception as got:
        return got


class PeersCase(unittest.TestCase):
    def c10d(self, **more):
        return types.SimpleNamespace(_get_default_store=lambda: self.store, **more)

    def setUp(self):
        self.store = Store(_1="1 actor")
        self.dist = types.SimpleNamespace(is_initialized=lambda: True, get_rank=lambda: 0, get_world_size=lambda: 2,
                                          get_backend=lambda: "gloo", distributed_c10d=self.c10d(),
                                          group=types.SimpleNamespace(WORLD=Group()))
        self.host, self.said = Host(), []
        for patch in (unittest.mock.patch.dict(sys.modules, {"torch.distributed": self.dist}),
                      unittest.mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "2", "GROUP_NAME": "actor"}),
                      unittest.mock.patch.object(_peers, "_exit", leave)):
            patch.start()
            self.addCleanup(patch.stop)
        self.server = _serve.Server(self.host, [])
        self.peers = self.server.peers
        self.peers._say = self.said.append
        self.addCleanup(self.end)

    def end(self):
        self.dist.is_initialized, self.dist.group.WORLD = bool, None  # no call waits for the lost rank any more
        self.peers.calls.clear()
        self.host.may_meet.release()
        self.host.losses.put(None)
        for name in "peers", "abort":  # the second is begun by the first
            for thread in self.threads(name):
                thread.join()

    def threads(self, name):
        return [thread for thread in threading.enumerate() if thread.name.startswith(name)]

    def watching(self):
        return self.threads("peers")

    def method(self, function):
        return types.SimpleNamespace(name=function.__name__, function=function, is_async=asyncio.iscoroutinefunction(function))


class Looking(PeersCase):
    def run_call(self):
        """One that does nothing, and is then looked at."""
        self.server._method = lambda c: self.method(self.run_call)
        self.server._run_method = lambda *args: None
        self.server._run(types.SimpleNamespace(call=7, code=0))

    def test_a_call_is_finished_when_another_thread_ends_the_group(self):
        self.dist.get_rank = unittest.mock.Mock(side_effect=ValueError("Default process group has not been initialized"))
        self.run_call()
        self.assertEqual(self.host.finished, [7])
        self.assertEqual((self.watching(), self.said), ([], []))
        self.dist.get_rank = lambda: 0
        self.run_call()
        self.assertEqual(len(self.watching()), 1)  # of the next group

    def test_a_call_is_finished_when_there_are_too_many_threads(self):
        with unittest.mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
            self.run_call()
        self.assertEqual(self.host.finished, [7])
        self.assertEqual(self.said, ["the ranks of torch's group do not watch each other: can't start new thread"])

    def test_two_calls_that_end_together_begin_one_watch(self):
        both = threading.Barrier(2)
        self.dist.is_initialized = lambda: both.wait() >= 0
        lanes = [threading.Thread(target=self.peers.look) for _ in range(2)]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        self.assertEqual(len(self.watching()), 1)

    def test_async_methods_are_looked_at_too(self):
        async def sees():
            seen.extend(method.name for _, method in self.peers.calls.values())

        seen = []
        self.server._answer = lambda *args: None
        asyncio.run(self.server._run_async(7, False, self.method(sees), (), {}))
        self.assertEqual((seen, self.peers.calls, self.host.finished), (["sees"], {}, [7]))
        self.assertEqual(len(self.watching()), 1)


class Introducing(PeersCase):
    def watch(self, rank, store, world):
        """As that rank of a Cadre group of six, until it has met others or has given up."""
        self.store, self.dist.get_world_size = store, lambda: world
        with unittest.mock.patch.dict(os.environ, {"RANK": rank, "WORLD_SIZE": "6"}):
            self.peers.look()
            while (thread := next(iter(self.watching()), None)) and thread.name != _peers.WATCHES:
                thread.join(0.01)
        return self.host.meetings

    def test_ranks_of_a_smaller_group_meet_in_its_order(self):
        store = Store(_1="2 actor", _2="0 actor")
        self.assertEqual(self.watch("5", store, 3), [[5, 2, 0]])
        self.assertEqual(store.said["cadre/rank/0"], b"5 actor")

    def test_ranks_of_another_cadre_group_are_not_watched(self):
        self.assertEqual(self.watch("5", Store(_1="1 critic", _2="0 actor", _3="0 critic"), 4), [[5, 0]])

    def test_nor_is_one_that_is_alone_with_them(self):
        self.assertEqual((self.watch("5", Store(_1="1 critic"), 2), self.said), ([], []))

    def test_a_group_that_ends_before_all_have_joined_is_forgotten(self):
        self.store = Store()
        self.peers.look()
        self.store.asked.wait()
        self.dist.group.WORLD = None
        for thread in self.watching():
            thread.join()
        self.assertEqual((self.host.meetings, self.said), ([], []))

    def test_who_does_not_join_is_not_waited_for_for_ever(self):
        with unittest.mock.patch.object(_peers, "_MEET_S", 0):
            self.assertEqual(self.watch("5", Store(), 2), [])
        self.assertEqual(self.said, ["the ranks of torch's group do not watch each other: the others did not join it within 0 s"])

    def test_what_the_store_says_against_it_is_said(self):
        store = Store()
        store.check = unittest.mock.Mock(side_effect=RuntimeError("Connection reset by peer\nframe #0: c10d"))
        self.assertEqual(self.watch("5", store, 2), [])
        self.assertEqual(self.said, ["the ranks of torch's group do not watch each other: torch's store says: Connection reset "
                                     "by peer"])


class Explaining(PeersCase):
    def lose(self, *running):
        self.peers.look()
        for call in running:
            self.peers.begin(call, self.method(self.lose))
        self.host.losses.put(WORDS.encode())
        self.peers.known.wait()

    def explain(self, call, e, module):
        return self.peers.explain(call, raised(e, module), True)

    def test_errors_that_are_not_of_the_group_are_as_before(self):
        self.peers.look()
        with unittest.mock.patch.object(self.peers.known, "wait") as wait:
            for module in "torch.autograd.graph", "trainer", "torch.distributed.checkpoint.utils":
                self.assertEqual(self.explain("call", RuntimeError("does not require grad"), module), "")
            self.assertEqual(self.explain("call", ValueError("not initialized"), C10D), "")
            wait.assert_not_called()
        self.lose("call")
        for module in "torch.autograd.graph", "trainer":
            self.assertEqual(self.explain("call", RuntimeError("does not require grad"), module), "")

    def test_errors_of_the_group_name_who_was_lost(self):
        self.lose("call")
        closed = RuntimeError("[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer")
        for e, module in (RuntimeError("broken"), C10D), (closed, "torch.autograd.graph"), (closed, "trainer"):
            self.assertEqual(self.explain("call", e, module), WORDS)

    def test_a_later_call_is_concerned_while_the_group_is_the_same(self):
        self.lose("call")
        self.assertEqual(self.explain("later", RuntimeError("broken"), C10D), WORDS)
        self.dist.group.WORLD = Group()
        self.assertEqual(self.explain("later", RuntimeError("broken"), C10D), "")
        self.assertEqual(self.explain("call", RuntimeError("broken"), C10D), WORDS)

    def test_a_group_that_is_made_again_is_watched_again(self):
        self.lose("call")
        self.dist.group.WORLD = None  # the call ends it, and makes the next one
        for thread in self.watching():
            thread.join()
        self.dist.group.WORLD = Group()
        self.peers.look()
        self.assertEqual(len(self.watching()), 1)
        self.assertEqual(self.explain("call", RuntimeError("broken"), C10D), WORDS)  # the ranks have not met yet
        self.host.may_meet.release()
        while self.watching()[0].name != _peers.WATCHES:
            time.sleep(0.01)
        self.assertEqual(self.peers.explain("call", raised(RuntimeError("broken"), C10D), False), "")
        self.lose("call", "later")
        self.assertEqual(self.explain("later", RuntimeError("broken"), C10D), WORDS)
        self.assertEqual(self.host.meetings, [[0, 1]] * 2)

    def test_a_group_whose_ranks_did_not_meet_is_not_tried_again_but_the_next_one_is(self):
        with unittest.mock.patch.object(self.host, "meet", return_value=b"rank 1 did not arrive within 600000 ms") as meet:
            for _ in range(2):
                self.peers.look()
                for thread in self.watching():
                    thread.join()
            meet.assert_called_once()
        self.assertEqual(self.said, ["the ranks of torch's group do not watch each other: rank 1 did not arrive within 600000 ms"])
        self.dist.group.WORLD = Group()
        self.lose("call")

    def test_a_loop_does_not_wait_for_the_verdict(self):
        self.peers.look()
        with unittest.mock.patch.object(self.peers.known, "wait") as wait:
            self.assertEqual(self.peers.explain("call", raised(RuntimeError("broken"), C10D), False), "")
            wait.assert_not_called()


class Aborting(PeersCase):
    def setUp(self):
        super().setUp()
        self.abort, self.aborted = unittest.mock.Mock(), threading.Event()
        self.dist.get_backend = lambda: "cpu:gloo,cuda:nccl"
        self.dist.distributed_c10d = self.c10d(_abort_process_group=self.abort)
        really = self.peers._abort
        self.peers._abort = lambda: (really(), self.aborted.set())

    def lose(self):
        self.peers.look()
        self.host.losses.put(WORDS.encode())
        self.aborted.wait()

    def test_a_group_over_nccl_is_aborted_once(self):
        self.lose()
        self.abort.assert_called_once_with()
        self.assertEqual(self.said, [])

    def test_why_it_cannot_be_aborted_is_said(self):
        self.abort.side_effect = RuntimeError("NCCL is busy")
        self.lose()
        self.abort.assert_called_once_with()
        self.assertEqual(self.said, ["torch's group cannot be aborted: NCCL is busy"])

    def test_a_group_over_gloo_is_not(self):
        self.dist.get_backend = lambda: "gloo"
        self.lose()
        self.abort.assert_not_called()

    def test_nor_is_one_that_was_made_again_meanwhile(self):
        self.peers.look()
        with unittest.mock.patch.object(_peers, "_is_same", lambda remembered: False):  # since the loss
            self.lose()
        self.abort.assert_not_called()

    def test_a_torch_that_has_no_abort_is_as_before(self):
        self.dist.distributed_c10d = self.c10d()
        self.lose()
        self.assertEqual(self.said, [])


class Freeing(PeersCase):
    def setUp(self):
        super().setUp()
        self.looks, self.at_look = 0, {}  # number of the look -> what happens before it
        patch = unittest.mock.patch.object(_peers, "time", types.SimpleNamespace(sleep=self.look))
        patch.start()
        self.addCleanup(patch.stop)
        self.peers.lost, self.peers.group = WORDS, _peers.weakref.ref(self.dist.group.WORLD)

    def look(self, seconds):
        self.looks += 1
        self.at_look.get(self.looks, lambda: None)()
        if self.looks == 10:
            self.dist.group.WORLD = None

    def wait_in(self, module):
        """A call that does so until the end of the test."""
        def run():
            self.peers.begin("call", self.method(self.wait_in))
            function_of(module, "a[0].release(); a[1].acquire()")(locks)  # no frame of another module

        locks = threading.Lock(), threading.Lock()
        for lock in locks:
            lock.acquire()
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(locks[1].release)
        locks[0].acquire()

    def test_a_call_that_begins_after_the_loss_does_not_wait_for_ever(self):
        self.at_look[3] = lambda: self.wait_in(C10D)
        with self.assertRaisesRegex(Left, str(_load.EXIT_LOST)):
            self.peers._free({})
        self.assertEqual(self.said, [WORDS + "; wait_in() waits for it in torch, which only the end of this process ends"])
        self.assertEqual(self.looks, 4)

    def test_who_writes_a_checkpoint_does_not_wait(self):
        self.wait_in("torch.distributed.checkpoint.filesystem")
        self.peers._free({})
        self.assertEqual((self.looks, self.said), (10, []))

    def test_a_call_of_a_new_group_may_wait(self):
        self.wait_in(C10D)
        self.at_look[5] = self.remake
        self.looks = 4  # the first look sees the new group
        self.peers._free({})
        self.assertEqual((self.looks, self.said), (5, []))

    def test_a_call_that_left_its_wait_may_wait_in_a_group_that_it_makes(self):
        self.wait_in(C10D)
        waiting = {"call": sys._getframe()}  # of the loss, and gone
        self.remake()
        self.peers.hit = frozenset(["call"])
        self.peers._free(waiting)
        self.assertEqual((self.looks, self.said), (1, []))

    def test_a_call_that_still_waits_does_so_in_the_old_group_whatever_another_one_makes(self):
        self.wait_in(C10D)
        waiting = self.peers._innermost()
        self.remake()
        with self.assertRaisesRegex(Left, str(_load.EXIT_LOST)):
            self.peers._free(waiting)
        self.assertEqual(self.looks, 2)

    def remake(self):
        self.dist.group.WORLD = Group()


if __name__ == "__main__":
    main()
