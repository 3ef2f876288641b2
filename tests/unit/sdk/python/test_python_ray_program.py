#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The part of cadre.ray that runs in the program: its calls, its tasks, and what it tells the directory."""

import concurrent.futures
import gc
import io
import os
import queue
import sys
import threading
import time
import types
import unittest
import unittest.mock
import weakref

from python_case import RunCase, main
from safetensors_case import with_packages


def work(_):
    """A task that no worker gets."""


class Messages(RunCase):
    """The messages that the processes of a program send to the directory."""

    def setUp(self):
        super().setUp()
        import cadre.ray
        from cadre.ray import _packing, _refs, _session

        self.cadre, self.ray, self.body, self.refs, self.existing = cadre, cadre.ray, _packing.as_tensor, _refs, _session.existing
        self.addCleanup(self.ray.shutdown)

    def test_a_message_that_finds_the_directory_full_is_sent_again(self):
        self.ray.init(num_cpus=1)
        session = self.existing()
        session.ask("hold", ["never", "told"])
        with self.cadre.connect(session.client.address, namespace="default", trust=True) as other:
            directory = other.group(session.said["directory"])
            waiting = [directory.start("fetch", "never", 1, rank=0) for _ in range(1000)]
            waiting += [session.start("fetch", "never", 1) for _ in range(100)]  # it takes 1,024
            session.tell("put", "told", "value", self.body(b"told"))
            self.assertEqual(session.ask("fetch", "told")[0], "value")

    def test_a_value_that_is_too_long_is_an_error_for_those_who_wait_for_it(self):
        told, promise = [], self.refs.Promise()

        def tell(*message, **_):
            if message[2] == "value":
                raise self.cadre.Limit("2 GiB at most")
            told.append(message)

        self.refs._push(types.SimpleNamespace(tell=tell), "name", promise)
        promise.settle(1)
        self.assertEqual([message[:3] for message in told], [("put", "name", "error")])

    def test_a_value_that_does_not_open_here_is_an_error_for_those_who_wait_for_it(self):
        found = types.SimpleNamespace(exception=lambda: None, result=lambda: ("value", types.SimpleNamespace(data=b"rubbish")))
        found.add_done_callback = lambda f: f(found)
        promise, told = self.refs._Elsewhere(types.SimpleNamespace(start=lambda *_: found), "name"), []
        promise.add_done_callback(lambda: told.append(promise.outcome()[1]))
        self.assertIsInstance(told[0], Exception)

    def test_a_call_that_cannot_be_sent_leaves_its_worker_to_the_next_task(self):
        ray = self.ray
        ray.init(num_cpus=1)
        here = ray.remote(os.getpid)
        worker = ray.get(here.remote())
        with unittest.mock.patch("cadre.ray._remote.packed_arguments", side_effect=self.cadre.Limit("2 GiB at most")):
            with self.assertRaisesRegex(self.cadre.Limit, "2 GiB at most"):
                ray.get(here.remote())
        self.assertEqual(ray.get(here.remote()), worker)

    def test_an_actor_whose_connection_was_lost_may_live(self):
        from cadre.ray import exceptions

        for error, kind in ((self.cadre.Unavailable("lost", may_have_run=True), exceptions.ActorUnavailableError),
                            (self.cadre.Unavailable("rank 0", may_have_run=True, rank=0), exceptions.ActorDiedError),
                            (self.cadre.Unavailable("nobody is there"), exceptions.ActorDiedError)):
            self.assertIs(type(exceptions.of_actor(error, "Actor")), kind)

    def test_a_message_that_does_not_arrive_is_reported(self):
        self.ray.init(num_cpus=1)
        with unittest.mock.patch("sys.stderr", io.StringIO()) as printed:
            self.existing().tell("hold")
            while "do not learn of hold(): " not in printed.getvalue():
                time.sleep(0.01)


class Alone(unittest.TestCase):
    """The program's side, without processes around it."""

    def setUp(self):
        import cadre
        from cadre import ray
        from cadre.ray import _remote, _session

        self.cadre, self.ray = cadre, ray
        said = {"local": {"CPU": 1.0, "GPU": 0.0}, "depth": 0}
        self.session = types.SimpleNamespace(said=said, workers={}, closed=False, close=lambda: None, later=None, process="p",
                                             client=unittest.mock.Mock())
        self.enterContext(unittest.mock.patch.object(_session, "_current", self.session))
        self.given, self.worker = [], _remote.Worker(unittest.mock.Mock())
        self.enterContext(unittest.mock.patch.object(_remote.Workers, "_new", lambda workers: self.worker))
        self.enterContext(unittest.mock.patch.object(_remote.Workers, "_give", lambda *given: self.given.append(given)))
        self.task = ray.remote(work)

    def answer(self, result=None, error=None):
        """Ends the task that a worker was given last."""
        workers, task, worker = self.given.pop()
        workers._ended(task, worker, types.SimpleNamespace(exception=lambda: error, result=lambda: result))

    def test_a_task_does_not_run_again_if_its_worker_lives(self):
        for error in self.cadre.Failed("it does not pickle"), self.cadre.Proto("it does not open here"):
            ref = self.task.remote("x")
            self.answer(error=error)
            self.assertEqual(self.given, [])
            with self.assertRaises(type(error)):
                self.ray.get(ref)
        ref = self.task.remote("x")
        self.answer(error=self.cadre.Unavailable("it died", rank=0))
        self.answer([5])
        self.assertEqual(self.ray.get(ref), 5)

    def test_workers_whose_worker_crashes_stay_known_while_its_task_runs_again(self):
        ref = self.task.remote("x")
        known = dict(self.session.workers)
        self.answer(error=self.cadre.Unavailable("it died", rank=0))
        self.assertEqual(self.session.workers, known)
        self.answer([5])
        self.assertEqual((self.ray.get(ref), [workers.all for workers in known.values()]), (5, [1]))

    def test_a_task_that_is_over_keeps_neither_its_arguments_nor_parts_that_nobody_has(self):
        class Thing:
            pass

        def dropped(kept):
            gc.collect()
            return kept() is None

        thing = Thing()
        ref, kept = self.task.remote(thing), weakref.ref(thing)
        del thing
        self.assertFalse(dropped(kept))
        self.answer([5])
        self.assertTrue(dropped(kept))
        self.ray.cancel(ref)
        self.assertEqual(self.ray.get(ref), 5)
        ref, other = self.task.options(num_returns=2).remote("x")
        things = [Thing(), Thing()]
        kept = weakref.ref(things[1])
        self.answer([things])
        del things, other
        self.assertTrue(dropped(kept))
        self.ray.cancel(ref)
        self.assertIsInstance(self.ray.get(ref), Thing)

    def test_ctrl_c_while_a_worker_is_made_loses_no_task(self):
        from cadre.ray import _remote

        later = []
        self.session.later = later.append
        with unittest.mock.patch.object(_remote.Workers, "_new", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.task.remote("x")
        self.assertEqual(self.given, [])
        hand_out, = later
        hand_out()
        workers, task, _ = self.given[-1]
        self.answer([5])
        self.assertEqual((task.promise.outcome(), workers.all), ((5, None), 1))

    def test_a_worker_whose_task_ctrl_c_stops_on_its_way_takes_the_next_one(self):
        from cadre.ray import _remote

        self.session.later = unittest.mock.Mock()
        for before in [], [self.worker]:
            workers = next(iter(self.session.workers.values()), None)
            self.assertEqual(workers.idle if workers else [], before)
            with unittest.mock.patch.object(_remote.Workers, "_give", side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    self.task.remote("x")
        self.assertEqual((workers.idle, workers.all), ([self.worker], 1))

    def test_one_timer_ends_all_idle_workers(self):
        from cadre.ray import _remote

        with unittest.mock.patch.object(threading, "Timer") as timer, unittest.mock.patch.object(time, "monotonic") as now:
            now.return_value = 0
            for _ in range(3):
                self.task.options(num_gpus=0).remote("x")
                self.answer([5])
                now.return_value += 1
            self.assertEqual(timer.call_args_list, [unittest.mock.call(_remote._IDLE_S, unittest.mock.ANY)])
            now.return_value = _remote._IDLE_S
            end_idle = timer.call_args.args[1]
            end_idle()  # too early for the worker that had its last task later
            self.worker.group.start.assert_not_called()
            now.return_value += timer.call_args.args[0]
            end_idle()
            self.worker.group.start.assert_called_once()
            self.assertEqual((timer.call_count, self.session.workers), (2, {}))

    def test_nobody_looks_for_a_placement_group_whose_reference_was_dropped(self):
        from cadre.ray._placement import PlacementGroup

        def looks():
            return [t for t in threading.enumerate() if t.name == "cadre.ray placement group"]

        group, is_ready = PlacementGroup("pg", [{"CPU": 1}]), threading.Event()
        with unittest.mock.patch.object(PlacementGroup, "wait", lambda *_: is_ready.wait(0.01)):
            dropped, awaited = group.ready(), group.ready().future()
            self.assertEqual(len(looks()), 2)
            del dropped
            while len(looks()) > 1:
                time.sleep(0.01)
            self.assertFalse(awaited.done())
            is_ready.set()
            self.assertEqual(awaited.result(), group)

    def test_an_object_may_end_while_another_one_ends(self):
        from cadre.ray import _session

        client, ended = types.SimpleNamespace(group=str, close=lambda: None), queue.SimpleQueue()
        session = _session.Session(client, {"namespace": "n", "directory": "d"}, driver=True)

        def collect(*_):  # as the garbage collector does at any line
            session.later(ended.put, "inner")
            return collect

        def end():
            sys.settrace(collect)
            session.later(ended.put, "outer")
            sys.settrace(None)

        thread = threading.Thread(target=end, daemon=True)
        thread.start()
        thread.join(5)
        self.assertFalse(thread.is_alive())
        while ended.get(timeout=5) != "outer":
            pass
        session.close()

    def test_a_group_that_ended_with_its_last_handle_is_not_renewed(self):
        from cadre.ray import _session

        client, future = unittest.mock.Mock(), concurrent.futures.Future()
        client.group.return_value.start.return_value = future
        session = _session.Session(client, {"namespace": "n", "directory": "d"}, driver=True)
        session.tell("drop", ["actor"])
        future.set_result(["g"])
        client._renewal.remove.assert_called_once_with("group", "g")
        session.close()

    def calls(self, **info):
        """How this process calls an actor. sent: the methods that were called; futures: of these calls."""
        from cadre.ray import _actor

        self.session.client = unittest.mock.Mock()
        calls = _actor.Calls(self.session, "actor", {"group": "g", "class": "C", "ordered": True, "lanes": {}, "restarts": 0, **info})
        self.sent, self.futures = [], []
        self.enterContext(unittest.mock.patch("cadre._call.start", self.start))
        return calls

    def start(self, _client, _method, args):
        future = unittest.mock.Mock()
        future.done.return_value = False
        self.sent.append(args[1])
        self.futures.append(future)
        return future

    def end(self, future, result=None, error=None):
        """Ends a call of an actor."""
        future.done.return_value, future.exception.return_value, future.result.return_value = True, error, [result]
        for call in future.add_done_callback.call_args_list:
            call.args[0](future)

    def test_a_canceled_call_that_waits_for_an_argument_does_not_stop_later_ones(self):
        from cadre.ray import _refs

        for is_ordered in True, False:
            late = [_refs.ObjectRef(_refs.Promise()) for _ in range(3)]
            calls = self.calls(ordered=is_ordered)
            calls.submit("f", (late[0],), {}, {})
            canceled, _ = calls.submit("g", (late[1], late[2]), {}, {})
            calls.submit("h", (), {}, {})
            canceled.cancel()
            self.assertTrue(canceled.done())
            for ref in late:
                ref._promise.settle(1)
            self.assertEqual(self.sent, ["f", "h"] if is_ordered else ["h", "f"])
            self.assertFalse(calls.waits())

        never = _refs.ObjectRef(_refs.Promise())
        calls = self.calls()
        canceled, _ = calls.submit("f", (never,), {}, {})
        calls.submit("g", (), {}, {})
        canceled.cancel()
        self.assertEqual((self.sent, calls.waits()), (["g"], False))

    def test_a_call_that_ctrl_c_interrupts_does_not_wait_for_ever(self):
        for interrupted in KeyboardInterrupt, SystemError:
            calls = self.calls()
            with unittest.mock.patch("cadre._call.start", side_effect=interrupted), self.assertRaises(interrupted):
                calls.submit("f", (), {}, {}, most=1)
            again, _ = calls.submit("f", (), {}, {"max_task_retries": 1}, most=1)
            with unittest.mock.patch("cadre._call.start", side_effect=interrupted):
                with unittest.mock.patch.object(calls, "_explained", return_value=self.ray.exceptions.ActorUnavailableError("it died")):
                    self.end(self.futures[-1], error=self.cadre.Unavailable("it died", rank=0))
            self.assertIsInstance(again.outcome()[1], interrupted)

    def test_a_callback_may_wait_for_a_call_that_may_be_sent_again(self):
        from cadre.ray import _packing, _refs

        calls = self.calls()
        promise, _ = calls.submit("f", (), {}, {"max_task_retries": 1, "retry_exceptions": True})
        raised, value = _packing.Raised(KeyError("once"), "f"), [7]
        self.futures[0].exception.return_value, self.futures[0].result.return_value = None, raised
        start = self.start

        def start_answered(*call):
            future = start(*call)
            future.exception.return_value, future.result.return_value = None, value
            return future

        with unittest.mock.patch.object(_refs, "is_watcher", return_value=True), unittest.mock.patch("cadre._call.start", start_answered):
            self.assertTrue(promise.wait(5))
        self.assertEqual((promise.outcome(), self.sent), ((7, None), ["f", "f"]))
        for future in self.futures:  # the thread that calls back comes later
            self.end(future, 8)
        self.assertEqual((promise.outcome(), self.sent), ((7, None), ["f", "f"]))

    def test_an_actor_without_handles_is_asked_until_all_of_its_calls_are_over(self):
        from cadre.ray import _actor, _refs

        later, told = [], []
        self.session.later, self.session.tell = lambda *call: later.append(call), lambda *message: told.append(message)
        calls, late = self.calls(ordered=False), _refs.ObjectRef(_refs.Promise())
        calls.submit("f", (late,), {}, {})
        calls.submit("g", (), {}, {})

        def look(begun=None, running=None):
            """The actor says this when it is asked. Returns what was asked."""
            f, *args = later.pop()
            calls.group.start.reset_mock()
            f(*args)
            if begun is not None:
                asked = calls.group.start.return_value
                asked.exception.return_value, asked.result.return_value = None, [begun, running]
                asked.add_done_callback.call_args.args[0](asked)
            return calls.group.start.call_args

        with unittest.mock.patch.object(threading, "Timer") as timer, unittest.mock.patch.object(time, "monotonic") as now:
            timer.side_effect = lambda _, f, args: later.append(args) or unittest.mock.Mock()
            now.return_value = 0
            later.append((calls._fence,))
            self.assertIsNone(look())  # an argument is late
            late._promise.settle(1)
            self.assertEqual(later, [])  # the actor is not asked before the answer
            self.end(self.futures[1])
            for said in (1, 1), (2, 1), (2, 0):
                self.assertEqual(look(*said).args[0], "calls_of")
                self.assertEqual(told, [])
            look(2, 0)
            self.assertEqual(told, [("drop", ["actor"])])
            later.append((calls._fence,))  # once more, with a call that was canceled before it began
            for now.return_value in 0, _actor._LOST_S - 1:
                look(1, 0)
            self.assertEqual(len(told), 1)
            now.return_value = _actor._LOST_S
            look(1, 0)
            self.assertEqual(len(told), 2)

    def test_an_actor_without_handles_does_not_end_before_its_answers_are_here(self):
        self.session.later, self.session.tell = lambda f, *args: f(*args), unittest.mock.Mock()
        for is_ordered in True, False:
            calls = self.calls(ordered=is_ordered)
            start, waiting = calls.group.start, [calls.submit("f", (), {}, {})[0] for _ in range(2)]
            calls.submit("f", (), {}, {})  # nobody waits for this one
            calls._fence()
            for future in self.futures[1::-1]:
                start.assert_not_called()
                self.end(future)
            start.assert_called_once()
            del waiting

    def test_an_actor_that_cannot_be_asked_now_is_asked_again(self):
        self.session.tell, asked = unittest.mock.Mock(), unittest.mock.Mock()
        errors = self.cadre.Throttled("too many calls"), self.cadre.Unavailable("lost", may_have_run=True)
        for is_ordered in True, False:
            calls = self.calls(ordered=is_ordered)
            with unittest.mock.patch.object(threading, "Timer") as timer:
                for asked.exception.return_value in errors:
                    calls._told(None, 0, 1, asked)
                self.session.tell.assert_not_called()
                self.assertEqual(timer.call_count, 2)
            asked.exception.return_value = self.cadre.Unavailable("it died", rank=0, may_have_run=True)
            calls._told(None, 0, 1, asked)
            self.session.tell.assert_called_once_with("drop", ["actor"])
            self.session.tell.reset_mock()

    def test_the_group_of_a_detached_actor_that_has_crashed_is_deleted(self):
        from cadre.ray import _names

        group = unittest.mock.Mock()
        group.info.return_value, group.call.side_effect = {"ready": False}, self.cadre.Unavailable("it has failed")
        self.session.client = types.SimpleNamespace(group=lambda _: group)
        for is_last, is_detached in (True, False), (False, True), (True, True):
            group.close.assert_not_called()
            self.session.ask = lambda *_: is_last
            record = {"state": "ALIVE", "group": "g", "detached": is_detached, "restarts": 0}
            self.assertTrue(_names.has_crashed(self.session, "actor", record))
        group.close.assert_called_once()

    def test_a_result_without_the_parts_of_num_returns_is_an_error(self):
        for result, kind in (None, TypeError), ({1, 2}, TypeError), ({"a": 1, "b": 2}, TypeError), ([1], ValueError):
            refs = self.task.options(num_returns=2).remote("x")
            self.answer([result])
            for ref in refs:
                with self.assertRaisesRegex(kind, "Task work returned .* but num_returns=2"):
                    self.ray.get(ref, timeout=5)


if __name__ == "__main__":
    with_packages("small")
    main()
