#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker of cadre.ray, without processes around it: which task does cancel() interrupt, what does the worker answer, and
what waits for a late argument?
"""

import asyncio
import os
import signal
import threading
import time
import unittest
import unittest.mock

from cadre import _value
from cadre.ray import _packing, _refs, _session, _worker
from python_case import main


def hold_signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def release_signals():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())


class TasksCase(unittest.TestCase):
    def setUp(self):
        with unittest.mock.patch.object(_worker, "_enter"):
            self.tasks = _worker.Tasks()
        self.tasks.is_first = False
        self.number = 0
        self.addCleanup(release_signals)

    def run_task(self, function):
        self.number += 1
        self.tasks.functions["function"] = function
        answer = self.tasks.call(self.number, "function", None, [])
        if type(answer) is not _value.Body:
            return answer
        return _value.decode(bytearray(b"".join(map(bytes, answer.parts))), True)


class Answers(TasksCase):
    def test_a_result_that_does_not_pickle_is_an_exception_of_the_task(self):
        raised = self.run_task(threading.Lock)
        self.assertIs(type(raised), _packing.Raised)
        self.assertIsInstance(raised.error(), TypeError)
        self.assertRegex(raised.text, r"the result .* cannot be sent: it\[0\].* \(a lock\)")
        self.assertEqual(self.run_task(lambda: "next"), ["next"])


class Async(unittest.TestCase):
    def setUp(self):
        with unittest.mock.patch.dict(_worker._SAID, actor="actor", group="g"), unittest.mock.patch.object(_worker, "_enter"):
            self.actor = _worker.Actor()
        self.actor.is_made, self.actor.object = True, self

    async def twice(self, x):
        return 2 * x

    def test_an_argument_that_is_late_does_not_stop_the_loop(self):
        late = [_refs.ObjectRef(_refs.Promise()) for _ in range(2)]

        async def run():
            waiting = [asyncio.create_task(self.actor._run_async("a-1", "twice", _packing.Packed(((args, kwargs),)), list))
                       for args, kwargs in (([late[0]], {}), ([], {"x": late[1]}))]
            for value, ref in enumerate(late, 1):
                asyncio.get_running_loop().call_later(0.01, ref._promise.settle, [value])
            return await asyncio.gather(*waiting)

        for ref in late:  # a loop that stands still goes on after this time
            timer = threading.Timer(60, ref._promise.settle, [[None]])
            timer.start()
            self.addCleanup(timer.cancel)
        self.assertEqual(asyncio.run(run()), [[1, 1], [2, 2]])


    def test_a_reference_in_a_result_is_held_before_the_answer_and_does_not_stop_the_loop(self):
        asked, session = [], unittest.mock.Mock()

        def start(*message):
            asked.append(message)
            future = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_later(0.01, future.set_result, None)
            return future

        async def run():
            answer = asyncio.create_task(self.actor._run_async("p.a-1", "twice", _packing.Packed((([[reference]], {}),))))
            while not asked:
                await asyncio.sleep(0)
            self.assertFalse(answer.done())
            return await answer

        reference = _refs.ObjectRef(_refs.Promise(), "name", session)
        session.start, session.closed = start, True
        with unittest.mock.patch.object(_session, "_current", session):
            self.assertIs(type(asyncio.run(run())), _value.Body)
        self.assertEqual(asked, [("hold", ["name"])])
        session.ask.assert_not_called()

    def test_it_says_which_calls_have_begun_and_how_many_of_a_process_run(self):
        said = []

        async def look(_):
            said.append((self.actor.calls_of("p.a"), self.actor.calls_of("p.b"), self.actor.calls_of("q.c")))

        self.look = look
        for number in "p.a-1", "p.a-2", "p.b-1", "q.c-1":
            asyncio.run(self.actor._run_async(number, "look", [number], list))
        self.assertEqual(said, [([1, 1], [0, 1], [0, 0]), ([2, 1], [0, 1], [0, 0]), ([2, 1], [1, 1], [0, 0]),
                                ([2, 0], [1, 0], [1, 1])])
        self.assertEqual(self.actor.calls_of("p.a"), [2, 0])


class Canceling(TasksCase):
    def interrupts(self, function):
        raised = self.run_task(function)
        self.assertIs(type(raised), _packing.Raised)
        self.assertEqual(raised.kind, "KeyboardInterrupt")
        self.assertEqual(self.run_task(lambda: "next"), ["next"])

    def cancel(self):
        self.tasks.cancel(self.number)

    def test_a_task_that_runs_is_interrupted(self):
        def sleeps():
            self.cancel()
            time.sleep(3600)

        self.interrupts(sleeps)

    def test_a_task_that_is_about_to_run_is_interrupted(self):
        begin = self.tasks._begin

        def canceled(*args):
            token = begin(*args)
            self.cancel()
            return token

        with unittest.mock.patch.object(self.tasks, "_begin", canceled):
            raised = self.run_task(lambda: "too late")
        self.assertEqual(raised.kind, "KeyboardInterrupt")

    def test_a_signal_that_comes_after_its_task_interrupts_nothing(self):
        def ends():
            hold_signals()
            self.cancel()
            return 1

        def goes_on():
            release_signals()
            return 2

        self.assertEqual(self.run_task(ends), [1])
        release_signals()  # between two tasks
        self.assertEqual(self.run_task(ends), [1])
        self.assertEqual(self.run_task(goes_on), [2])

    def test_a_task_that_ends_before_the_signal_is_sent_is_not_interrupted(self):
        stops = []
        self.run_task(lambda: stops.append(self.tasks.running[self.number]))
        stops[0]()
        self.assertEqual(self.run_task(lambda: stops[0]() or "next"), ["next"])

    def test_sigint_from_elsewhere_interrupts_any_task(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

        def sleeps():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(3600)

        self.interrupts(sleeps)


if __name__ == "__main__":
    main()
