#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package against local runs: calls, errors, futures, references, threads, fork, Ctrl-C."""

import asyncio
import copy
import ctypes
import fcntl
import gc
import os
import pickle
import queue
import signal
import stat
import sys
import termios
import threading
import time
import types
import unittest.mock
import warnings

import cadre
from cadre import _library
from cadre._group import Group
from python_case import SLOW_S, GroupCase, main


class Accumulators(GroupCase):
    module, ranks = "ACCUMULATOR_SO", 4

    def setUp(self):
        super().setUp()
        values = self.group.call("get_value")
        self.group.call("add", per_rank=[r - v for r, v in enumerate(values)])  # as they began

    def test_a_call_has_one_result_a_rank(self):
        self.assertEqual(self.group.call("add", 5), [5, 6, 7, 8])

    def test_arguments_go_by_position_by_name_or_by_rank(self):
        self.assertEqual(self.group.call("add", args={"x": 1}), [1, 2, 3, 4])
        self.assertEqual(self.group.call("add", args=[1]), [2, 3, 4, 5])
        self.assertEqual(self.group.call("add", per_rank=[{"x": 1}, [2], 3, 4]), [3, 5, 7, 9])
        self.assertEqual(self.group.call("add", 1), [4, 6, 8, 10])

    def test_one_rank_or_as_the_modes_say(self):
        self.assertEqual(self.group.call("get_value", rank=2), 2)
        self.assertEqual(self.group.call("get_value", execute="RANK_ZERO"), 0)
        self.assertIn(self.group.call("get_value", execute="ANY"), range(4))
        self.assertEqual(self.group.call("add", args=[1, 1, 1, 1], dispatch="ALL_TO_ALL"), [1, 2, 3, 4])
        self.assertEqual(self.group.call("add", [1, 1, 1, 1], dispatch="ALL_TO_ALL"), [2, 3, 4, 5])  # as by name
        self.assertEqual(self.group.call("add", args={"x": [-1, -1, -1, -1]}, dispatch="ALL_TO_ALL"), [1, 2, 3, 4])
        self.fails(cadre.Invalid, r"add\(\): the argument at position 0 must be a list with one element per rank",
                   self.group.call, "add", 1, dispatch="ALL_TO_ALL")
        self.fails(cadre.Invalid, "position 0 has 2 elements", self.group.call, "add", [1, 2], dispatch="ALL_TO_ALL")
        self.assertEqual(self.group.call("add", args=[1, 2], dispatch="SPLIT",
                                         split={"index": [0, 1, 0, 1], "elements": True}), [2, 4, 4, 6])

    def test_no_result_is_none_once_all_have_run_it(self):
        self.assertIsNone(self.group.call("add", 1, no_result=True))
        self.assertEqual(self.group.call("get_value"), [1, 2, 3, 4])

    def test_info_tells_ranks_and_methods(self):
        info = self.group.info(timeout=SLOW_S)
        self.assertEqual((info["name"], info["worldSize"], info["ready"]), ("g", 4, True))
        self.assertIn("add", [m["name"] for m in info["methods"]])

    def test_options_that_do_not_exist_are_refused_with_those_that_do(self):
        self.fails(TypeError, r"add\(\) has no option 'x'; there are rank, .*args=\{\.\.\.\}",
                   self.group.call, "add", x=5)
        self.fails(ValueError, "no mode 'NOTHING'; there are ONE_TO_ALL, ", self.group.call, "add", dispatch="NOTHING")
        self.fails(ValueError, "a time of -1 s", self.group.call, "add", timeout=-1)
        self.fails(TypeError, "only one", self.group.call, "add", 1, args=[1])
        self.fails(TypeError, "only one", self.group.call, "add", args=[1], per_rank=[1])
        self.fails(TypeError, "per_rank is a list .* not a dict", self.group.call, "add", per_rank={"x": [1, 2]})
        self.fails(TypeError, "cannot be interpreted as an integer", self.group.call, "add", rank=0.5)
        self.fails(TypeError, r"connect\(\) has no option 'spins'; there are .*max_bytes, spin", self.local.connect,
                   spins=False)
        with self.local.connect(spin=False) as client:
            self.assertEqual(client.group("g").call("get_value"), [0, 1, 2, 3])
        self.fails(ValueError, "-1 is negative", self.group.call, "add", 1, rank=-1)
        self.fails(ValueError, "-1 is negative", self.group.kill, -1)
        self.fails(TypeError, "a method's name is text, not None", self.group.call, None)
        self.fails(ValueError, "max_retries -1 is out of its range", self.group.call, "add", max_retries=-1)
        self.fails(ValueError, "has a NUL", self.group.call, "add\0or not")
        self.fails(TypeError, "connect.. has no option 'ns'", cadre.connect, "unix:/x", ns="lab")
        self.fails(TypeError, r"group\(\) needs a name, because the client was not connected for one", self.client.group)
        self.fails(TypeError, "a group's name is text, not 7", self.client.group, 7)
        self.fails(TypeError, r"get\(\) takes references and futures; 7 is neither", self.client.get, 7)
        self.fails(TypeError, "@cadre.worker is for classes; 7 is not a class", cadre.worker, 7)
        self.fails(TypeError, "@cadre.task is for functions; 7 is not a function", cadre.task, 7)
        self.fails(TypeError, "a role's name is text, not 7", self.client.group, "g", role=7)

    def test_errors_have_a_class_a_code_and_a_message(self):
        e = self.fails(cadre.NotFound, "no method 'nothing'", self.group.call, "nothing")
        self.assertEqual((e.code, e.name, e.may_have_run, e.rank), (7, "NOT_FOUND", False, None))
        self.assertRegex(repr(e), r"^cadre.NotFound\(\".*\", name='NOT_FOUND', may_have_run=False\)$")
        self.fails(cadre.Invalid, "add", self.group.call, "add", "five")
        self.fails(cadre.Invalid, "one element", self.group.call, "add", per_rank=[1])
        self.fails(cadre.Invalid, "no rank 7", self.group.call, "add", 1, rank=7)
        self.fails(cadre.NotFound, "nobody", self.client.group("nobody").call, "add", 1)
        self.fails(cadre.Forbidden, "other", self.client.group("other/g").call, "add", 1)
        self.assertTrue(issubclass(cadre.Timeout, TimeoutError) and issubclass(cadre.Timeout, cadre.Error))

    def test_what_cannot_be_sent_is_refused_here(self):
        self.fails(TypeError, r"the arguments of add\(\) cannot be sent: it.* \(a lock\)", self.group.call, "add",
                   threading.Lock())
        self.fails(UnicodeEncodeError, "surrogates", self.group.call, "add", "\ud800")
        future = self.group.start("get_value", rank=0)
        for holder in [future], {"x": future}:
            self.fails(TypeError, r"add\(\) cannot be sent: .* \(a Future\): .* can be an argument of a call itself, but not be "
                       r"part of one: send its result\(\)", self.group.call, "add", holder)
        self.assertEqual(self.group.call("add", future, rank=1), 1)
        self.assertEqual(self.group.call("add", 0), [0, 1, 2, 3])

    def test_what_only_python_reads_is_refused_by_a_worker_in_c(self):
        deep = 1
        for _ in range(150):
            deep = [deep]
        self.fails(cadre.Invalid, r"add\(\): a pickled object of Python: only workers in Python read it.*; send JSON or a batch",
                   self.group.call, "add", deep)

    def test_futures_run_in_the_order_of_their_starts(self):
        futures = [self.group.start("add", 1, rank=0) for _ in range(5)]
        self.assertEqual([f.result(timeout=SLOW_S) for f in futures], [1, 2, 3, 4, 5])
        self.assertTrue(all(f.done() for f in futures))
        self.assertIsNone(futures[0].exception())
        self.assertFalse(futures[0].cancel())
        self.assertRegex(repr(futures[0]), r"add\(\) of g done")

    def test_a_failed_future_raises_each_time(self):
        f = self.group.start("nothing")
        for _ in range(2):
            self.fails(cadre.NotFound, "no method", f.result)
        self.assertIs(type(f.exception()), cadre.NotFound)

    def test_a_result_or_an_error_outlives_ctrl_c_while_it_is_opened(self):
        answered, failed = self.group.start("get_value"), self.group.start("nothing")
        for f, opens in (answered, "decode"), (failed, "_raised.error"):
            with unittest.mock.patch(f"cadre._future.{opens}", side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    f.result()
            self.assertEqual((f.done(), cadre.wait([f])), (True, ([f], [])))
        self.assertEqual(answered.result(), [0, 1, 2, 3])
        self.fails(cadre.NotFound, "no method", failed.result)

    def test_wait_parts_what_is_answered_from_the_rest(self):
        futures = [self.group.start("add", 1, rank=0) for _ in range(4)]
        ready, rest = cadre.wait(futures, num_returns=3, timeout=SLOW_S)
        self.assertEqual((len(ready), len(rest)), (3, 1))
        self.assertEqual(sorted(f.result() for f in ready + rest), [1, 2, 3, 4])
        ready, rest = cadre.wait(futures, num_returns=2)  # taken ones are answered ones
        self.assertEqual((ready, rest), (futures[:2], futures[2:]))
        self.assertEqual(cadre.wait([]), ([], []))
        self.fails(ValueError, "num_returns must be 1 to 4, the number of futures, not 5", cadre.wait, futures,
                   num_returns=5)
        self.fails(ValueError, "given twice", cadre.wait, [futures[0], futures[0]])
        self.fails(TypeError, "takes a list of futures; None is not a future", cadre.wait, [None])
        self.fails(TypeError, "num_returns is a whole number, not 1.5", cadre.wait, futures, num_returns=1.5)
        self.fails(ValueError, "num_returns must be 1 to 4, the number of futures, not -1", cadre.wait, futures,
                   num_returns=-1)

    def test_futures_of_several_clients_are_waited_for_together(self):
        with self.local.connect() as other:
            futures = [self.group.start("get_value"), other.group("g").start("get_value")]
            self.assertEqual(cadre.wait(futures, num_returns=2, timeout=SLOW_S), (futures, []))
            self.assertEqual([f.result() for f in cadre.as_completed(futures, timeout=SLOW_S)], [[0, 1, 2, 3]] * 2)
        self.assertEqual(list(cadre.as_completed([])), [])

    def test_a_start_is_sent_although_nobody_waits(self):
        with self.local.connect() as other:
            futures = [self.group.start("add", 1) for _ in range(3)]
            while other.group("g").call("get_value") != [3, 4, 5, 6]:
                pass
            self.assertEqual([f.result()[0] for f in futures], [1, 2, 3])

    def test_a_block_that_only_starts_calls_sends_them(self):
        with self.local.connect() as client:
            for _ in range(100):
                client.group("g").start("add", 1)
        self.assertEqual(self.group.call("get_value"), [100, 101, 102, 103])

    def test_a_block_waits_for_calls_that_wait_for_their_arguments(self):
        with self.local.connect() as client:
            group = client.group("g")
            first = group.start("add", 1, rank=0)
            first.add_done_callback(lambda _: time.sleep(0.3))  # so the next ones are sent when no other call is open
            last = group.start("add", group.start("add", first, rank=1), rank=2)
        self.assertEqual(last.result(), 4)

    def test_a_block_waits_for_its_callbacks_and_for_what_they_start(self):
        told = []

        def next_one(_):
            time.sleep(0.3)
            group.start("get_value").add_done_callback(lambda f: told.append(f.result()))

        with self.local.connect() as client:
            group = client.group("g")
            group.start("get_value").add_done_callback(next_one)
        self.assertEqual(told, [[0, 1, 2, 3]])

    def test_futures_that_nobody_holds_free_themselves(self):
        for _ in range(10001):
            self.group.start("get_value", rank=0)
        self.assertEqual(self.group.call("get_value"), [0, 1, 2, 3])
        held = [self.group.start("add", 0, rank=0) for _ in range(10001)]
        self.assertEqual(self.group.call("get_value"), [0, 1, 2, 3])
        self.assertEqual({f.result() for f in held}, {0})

    def test_futures_are_arguments(self):
        first = self.group.start("add", 1, rank=0)
        second = self.group.start("add", first, rank=1)
        third = self.group.start("add", args={"x": second}, rank=2)
        self.assertEqual(third.result(timeout=SLOW_S), 4)
        self.assertEqual(self.group.call("add", third, rank=3), 7)
        self.assertEqual(cadre.wait([third, second], num_returns=2, timeout=SLOW_S), ([third, second], []))
        wrong = self.group.start("add", self.group.start("nothing"), rank=0)
        self.fails(cadre.NotFound, "no method", wrong.result, timeout=SLOW_S)
        self.fails(TypeError, "It can be an argument of a call itself", self.group.call, "add", [first])

    def test_futures_are_awaited(self):
        async def run():
            results = await asyncio.gather(*(self.group.start("add", 1, rank=0) for _ in range(50)))
            future = self.group.start("nothing")
            try:
                await future
            except cadre.NotFound:
                return results

        self.assertEqual(asyncio.run(run()), list(range(1, 51)))

    def test_calls_go_on_while_nobody_else_gets_the_interpreter(self):
        holding = ctypes.PyDLL(_library.functions.path)  # whose functions are called without giving it away
        holding.cadre_client_done.argtypes = [ctypes.c_size_t, ctypes.c_uint64]
        usleep = ctypes.PyDLL(None).usleep
        with self.local.connect(on_connection=lambda up, why: None) as client:
            old = sys.getswitchinterval()
            sys.setswitchinterval(600)
            try:
                future = client.group("g").start("get_value")
                for _ in range(SLOW_S * 200):
                    done = holding.cadre_client_done(client._handle, future._id)
                    if done:
                        break
                    usleep(5000)
            finally:
                sys.setswitchinterval(old)
            self.assertTrue(done)
            self.assertEqual(future.result(), [0, 1, 2, 3])

    def test_what_is_called_when_it_is_answered(self):
        told = queue.SimpleQueue()
        future = self.group.start("get_value")
        future.add_done_callback(told.put)
        self.assertIs(told.get(timeout=SLOW_S), future)
        self.assertEqual(future.result(), [0, 1, 2, 3])
        future.add_done_callback(told.put)
        self.assertIs(told.get(timeout=SLOW_S), future)

    def test_a_callback_calls_with_the_future_that_it_gets(self):
        told = queue.SimpleQueue()
        future = self.group.start("add", 1, rank=0)
        future.add_done_callback(lambda f: told.put(self.group.call("add", f, rank=3)))
        self.assertEqual(told.get(timeout=SLOW_S), 4)

    def test_callbacks_are_called_also_if_the_result_is_taken_first(self):
        told = queue.SimpleQueue()
        for i in range(100):
            future = self.group.start("get_value")
            taker = threading.Thread(target=future.result)
            taker.start()
            for n in range(20):  # before and after the answer comes
                future.add_done_callback(lambda _, n=n: told.put((i, n)))
            taker.join()
            self.assertEqual({told.get(timeout=SLOW_S) for _ in range(20)}, {(i, n) for n in range(20)})
        self.assertTrue(told.empty())
        self.assertEqual(self.client._watched, {})

    def test_threads_share_a_client(self):
        def work(results):
            for i in range(50):
                results.append(self.group.call("add", 1, rank=0))
                results.append(self.group.start("add", 1, rank=0).result(timeout=SLOW_S))

        threads, results = [], []
        for _ in range(4):
            threads.append(threading.Thread(target=work, args=(results,)))
            threads[-1].start()
        shared = self.group.start("get_value", rank=1)
        waiting = [threading.Thread(target=lambda: results.append(shared.result(timeout=SLOW_S))) for _ in range(3)]
        for t in waiting:
            t.start()
        for t in threads + waiting:
            t.join()
        self.assertEqual(sorted(results), sorted([1, 1, 1, *range(1, 401)]))

    def test_what_can_be_taken_once_is_not_copied(self):
        f = self.group.start("get_value", rank=0)
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            self.fails(TypeError, "a Future is not copied", copied, f)
            self.fails(TypeError, "a Client is one connection", copied, self.client)
        self.assertEqual(f.result(), 0)

    def test_a_thousand_at_a_time(self):
        futures = [self.group.start("add", 1, rank=0) for _ in range(1000)]
        self.assertEqual([f.result() for f in futures], list(range(1, 1001)))
        self.assertEqual(self.client.pending, 0)

    def test_too_many_at_a_time_wait_for_room(self):
        with self.local.connect(max_calls=10) as client:
            futures = [client.group("g").start("get_value") for _ in range(50)]
            self.assertEqual([f.result() for f in futures], [[0, 1, 2, 3]] * 50)

    def test_there_is_room_if_all_calls_end_while_one_finds_none(self):
        with self.local.connect(max_calls=1) as client:
            first, make_room = client.group("g").start("get_value"), client._make_room

            def late(*error):
                cadre.wait([first])
                return make_room(*error)

            client._make_room = late
            self.assertEqual(client.group("g").call("get_value"), [0, 1, 2, 3])

    def test_references_stay_with_the_workers(self):
        ref = self.group.call("get_value", keep=True, execute="RANK_ZERO")
        self.assertIsInstance(ref, cadre.Ref)
        self.assertEqual(ref.get(timeout=SLOW_S), 0)
        self.assertEqual(self.group.call("add", ref, rank=3), 3)
        ref.pin()
        ref.free()
        self.fails(cadre.NotFound, "freed", ref.get)
        with self.group.put(7, rank=1) as ref:
            self.assertEqual(self.group.call("add", ref), [7, 8, 9, 10])
            self.assertEqual(self.group.call("add", args={"x": ref}), [14, 15, 16, 17])
            again = self.group.ref(ref.text)
            self.assertEqual((again, again.get()), (ref, 7))
        self.fails(cadre.NotFound, "freed", again.get)
        self.fails(ValueError, "'rubbish' is not a reference, which begins with cadre:", self.group.ref, "rubbish")

    def test_the_end_of_a_block_does_not_hide_why_it_ended(self):
        with self.assertRaises(KeyError):
            with self.group.ref("cadre:1:x:o:0.1.0000000000000001.1.j:0"):
                raise KeyError("why")
        with self.assertRaises(cadre.Error):
            with self.group.ref("cadre:1:x:o:0.1.0000000000000001.1.j:0"):
                pass

    def test_a_reference_of_all_ranks_gives_each_its_part(self):
        ref = self.group.start("get_value", keep=True).result()
        self.assertEqual(ref.get(), [0, 1, 2, 3])
        self.assertEqual(self.group.call("add", ref, dispatch="ALL_TO_ALL"), [0, 2, 4, 6])
        self.fails(cadre.Invalid, "keep", self.group.call, "get_value", keep=True, no_result=True)

    def test_a_client_of_a_group_need_not_name_it(self):
        with self.local.connect(group="g") as client:
            self.assertEqual(client.group().call("get_value"), [0, 1, 2, 3])

    def test_a_closed_client_says_so(self):
        f = self.group.start("get_value")
        self.assertEqual(f.result(), [0, 1, 2, 3])
        answered = self.group.start("get_value")
        cadre.wait([answered])
        self.client.close()
        self.client.close()
        self.assertEqual(f.result(), [0, 1, 2, 3])
        self.assertEqual(answered.result(), [0, 1, 2, 3])
        self.fails(RuntimeError, "closed", self.group.call, "get_value")
        self.assertEqual((self.client.closed, self.client.connected, self.client.pending), (True, False, 0))
        self.assertRegex(repr(self.group), r"cadre.Group g of <cadre.Client unix:.* namespace=lab closed>")

    def test_what_was_not_sent_before_the_client_was_closed_has_not_run(self):
        with cadre.connect(f"unix:{self.local.folder}/nobody", namespace="lab") as client:
            f = client.group("g").start("get_value")
            client.close()
        self.assertFalse(self.fails(cadre.Canceled, "the client was closed", f.result).may_have_run)

    def test_a_client_that_is_dropped_warns_and_closes(self):
        client = self.local.connect()
        client.group("g").call("get_value")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del client
            gc.collect()
        self.assertRegex(str(caught[0].message), "was not closed")

    def test_connections_are_told_of(self):
        told = []
        with self.local.connect(on_connection=lambda up, why: told.append((up, why))) as client:
            client.group("g").call("get_value")
            self.assertTrue(client.connected)
        self.assertEqual(told[0], (True, None))


class Split:
    @cadre.register(dispatch=lambda group: [(), ()])
    def hold(self):
        pass


class Watched(GroupCase):
    module, ranks = "WATCHED_SO", 2

    def test_a_deadline_ends_the_call(self):
        for timeout in 0.3, 3, 30, 300:  # a busy machine may not even have sent it
            e = self.fails(cadre.Timeout, "hold", self.group.call, "hold", timeout=timeout)
            if e.may_have_run:
                return
        self.fail("it was never sent")

    def test_a_wait_that_is_over_leaves_the_call_alone(self):
        f = self.group.start("hold")
        with self.assertRaises(TimeoutError) as caught:
            f.result(timeout=0.3)
        self.assertNotIsInstance(caught.exception, cadre.Error)
        self.assertFalse(f.done())
        self.assertEqual(cadre.wait([f], timeout=0.05), ([], [f]))
        self.assertTrue(f.cancel())
        self.fails(cadre.Canceled, "hold", f.result)

    def test_a_call_that_waits_for_its_arguments_is_canceled_before_it_is_sent(self):
        told, held = [], self.group.start("hold")
        waiting = self.group.start("say", held)
        waiting.add_done_callback(told.append)
        self.assertEqual((self.client.pending, waiting.done()), (2, False))
        self.assertTrue(waiting.cancel())
        self.assertEqual((self.client.pending, waiting.done(), told, waiting.cancel()), (1, True, [waiting], False))
        e = self.fails(cadre.Canceled, r"say\(\) of g was not sent: it was canceled", waiting.result)
        self.assertFalse(e.may_have_run)
        self.assertTrue(held.cancel())

    def test_waiting_again_and_again_leaves_nothing_behind(self):
        held = self.group.start("hold")
        waiting = self.group.start("say", held)
        threads = threading.active_count()
        for _ in range(3):
            self.assertEqual(cadre.wait([held, waiting], timeout=0.001), ([], [held, waiting]))
            self.fails(TimeoutError, "2 of 2 calls are not answered", list, cadre.as_completed([held, waiting], timeout=0.001))
        self.assertLessEqual(threading.active_count(), threads)  # one of another test may have ended
        self.assertEqual((len(self.client._watched[held._id][1]), waiting._unsent._callbacks), (1, []))
        self.assertTrue(held.cancel())

    def test_what_the_method_says_is_failed(self):
        e = self.fails(cadre.Failed, "rank 0: no", self.group.call, "fail")
        self.assertEqual((e.code, e.may_have_run, e.rank), (100, True, 0))

    def test_a_trace_goes_along(self):
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        self.assertEqual(self.group.call("trace", traceparent=parent), parent)
        self.fails(cadre.Invalid, "traceparent", self.group.call, "trace", traceparent="x")

    def test_lines_of_ranks_come_as_they_print_them(self):
        lines = []
        with self.local.connect(group="g", on_output=lines.append) as client:
            client.group().call("say", "grüße")
            f = client.group().start("hold")
            while not lines:
                cadre.wait([f], timeout=0.1)
            f.cancel()
        self.assertEqual((lines[0].group, lines[0].text), ("lab/g", "grüße"))

    def test_what_a_callback_raises_comes_out_of_what_waits(self):
        used = []

        def refuse(up, why):
            used.append(client.group("g").call("trace"))
            raise KeyError("of the callback")

        with self.local.connect(on_connection=refuse) as client:
            with self.assertRaisesRegex(KeyError, "of the callback"):
                while True:
                    client.group("g").call("trace")
        self.assertEqual(used, ["none"])

    def test_what_a_callback_raises_comes_out_of_no_thread_of_the_client(self):
        def refuse(up, why):
            raise KeyError("of the callback")

        with self.local.connect(on_connection=refuse) as client:
            while not client._raised:
                time.sleep(0.01)
            told, future = queue.SimpleQueue(), client.group("g").start("trace")
            future.add_done_callback(lambda f: told.put(f.result()))
            client._supply("g", types.SimpleNamespace(sha256="none"))
            supply = client._supplies._of["g"]
            while not supply.look_at and client._supplies.thread.is_alive():
                time.sleep(0.01)
            self.assertTrue(client._supplies.thread.is_alive())
            self.assertEqual(told.get(timeout=SLOW_S), "none")
            self.fails(KeyError, "of the callback", client.group("g").call, "trace")

    def test_a_callback_that_takes_its_time_holds_up_no_call(self):
        goes_on = threading.Event()
        with self.local.connect(group="g", on_output=lambda line: goes_on.wait(600)) as client:
            for _ in range(20):
                client.group().call("say", "line")
            goes_on.set()

    def test_a_callback_cannot_wait_for_a_call_that_its_own_thread_sends_later(self):
        told = queue.SimpleQueue()

        def wait(_):
            held = self.group.start("hold")
            try:
                told.put(self.group.call("say", held))
            except RuntimeError as e:
                told.put(str(e))
            held.cancel()

        self.group.start("trace").add_done_callback(wait)
        self.assertRegex(told.get(timeout=SLOW_S),
                         r"a callback cannot wait for say\(\), because its arguments are not answered yet")

    def test_closing_ends_calls_that_are_open(self):
        client = self.local.connect()
        f = client.group("g").start("hold")
        waiting = client.group("g").start("say", f)
        client.group("g").info()
        self.assertEqual(client.pending, 2)
        client.close()
        self.assertFalse(self.fails(cadre.Canceled, "closed", waiting.result).may_have_run)
        self.assertTrue(self.fails(cadre.Canceled, "closed", f.result).may_have_run)
        with self.assertRaises(KeyError):
            with self.local.connect() as client:
                client.group("g").start("hold")
                raise KeyError("ends the block at once")

    def test_a_thread_closes_it_while_another_waits(self):
        client = self.local.connect()
        f = client.group("g").start("hold")
        client.group("g").info()
        thread = threading.Thread(target=client.close)
        thread.start()
        self.fails(cadre.Canceled, "closed", f.result)
        thread.join()

    def test_one_thread_after_the_other_may_use_it(self):
        got = []
        thread = threading.Thread(target=lambda: got.append(self.group.call("trace")))
        thread.start()
        thread.join()
        self.assertEqual(got, ["none"])
        self.assertEqual(self.group.call("trace"), "none")

    def test_what_keeps_objects_waits_for_no_call(self):
        with self.local.connect(max_calls=1) as client:
            held = client.group("g").start("hold")
            answer = "no cluster"  # of a run that makes no groups
            self.fails(cadre.Invalid, answer, client._ask_first, "group.renew", "g", {"group": "g", "uid": "u"}, SLOW_S)
            self.assertEqual(client.pending, 1)
            held.cancel()

    def signal_to_who_waits(self, signo):
        """A thread that sends this signal once the main thread is in the package, and had time to wait there."""
        folder, main_thread = os.path.dirname(cadre.__file__), threading.main_thread().ident

        def is_in_the_package():
            frame = sys._current_frames()[main_thread]
            while frame and not frame.f_code.co_filename.startswith(folder):
                frame = frame.f_back
            return frame

        def send():
            while not is_in_the_package():
                time.sleep(0.01)
            time.sleep(0.2)
            os.kill(os.getpid(), signo)

        sender = threading.Thread(target=send)
        sender.start()
        return sender

    def test_ctrl_c_ends_the_waiting(self):
        old = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, old)
        f = self.group.start("hold")
        split = Group(self.client, "g", cls=Split)
        for wait in (lambda: self.group.call("hold"), split.hold, f.result, lambda: cadre.wait([f]), lambda: self.group.call("say", f)):
            sender = self.signal_to_who_waits(signal.SIGINT)
            with self.assertRaises(KeyboardInterrupt):
                wait()
            sender.join()
        while self.client.pending > 1:
            time.sleep(0.01)
        self.assertTrue(f.cancel())  # the future went on; the calls were canceled
        self.fails(cadre.Canceled, "hold", f.result)
        self.assertEqual(self.client.pending, 0)
        self.assertEqual(self.group.call("trace"), "none")

    def test_a_signal_handler_uses_a_client_that_waits(self):
        told = []
        old = signal.signal(signal.SIGUSR1, lambda *_: told.append((f.cancel(), self.group.call("trace"))))
        self.addCleanup(signal.signal, signal.SIGUSR1, old)
        f = self.group.start("hold")
        sender = self.signal_to_who_waits(signal.SIGUSR1)
        self.fails(cadre.Canceled, "hold", f.result)
        sender.join()
        self.assertEqual(told, [(True, "none")])

    def test_an_await_that_is_canceled_cancels_the_call(self):
        async def run(f):
            try:
                await asyncio.wait_for(f, 0.2)
            except asyncio.TimeoutError:
                return f

        held = self.group.start("hold")
        self.fails(cadre.Canceled, "not sent", asyncio.run(run(self.group.start("say", held))).result)
        self.fails(cadre.Canceled, "hold", asyncio.run(run(held)).result)


class Dispatching(GroupCase):
    """Values of verl's own tests of its dispatch modes: foo() of rank i is 2 + x + y."""

    module, ranks = "DISPATCH_SO", 4
    of = [{"name": "actor", "class": "TestActor", "init": {"x": 2}}]

    def setUp(self):
        super().setUp()
        self.actor = self.client.group("g", role="actor")

    def test_lists_by_position_mean_what_they_mean_by_name(self):
        for mode, x, y, result in (("foo_all_to_all", [1, 2, 3, 4], [5, 6, 7, 8], [8, 10, 12, 14]),
                                   ("foo_custom", [1, 2], [5, 6], [8, 10, 8, 10])):
            self.assertEqual(self.actor.call(mode, x, y), result)
            self.assertEqual(self.actor.call(mode, args={"x": x, "y": y}), result)
        self.assertEqual(self.actor.call("foo_all_to_all", per_rank=[[1, 5], [2, 6], [3, 7], {"x": 4, "y": 8}]),
                         [8, 10, 12, 14])

    def test_what_is_not_split_is_the_same_for_all(self):
        self.assertEqual(self.actor.call("foo_one_to_all", 1, 2), [5, 5, 5, 5])
        self.assertEqual(self.actor.call("foo_rank_zero", 1, 2), 5)

    def test_unknown_and_surplus_arguments_are_errors(self):
        self.fails(cadre.Invalid, r"foo_rank_zero\(\) was called with 3 arguments; it takes x, y", self.actor.call,
                   "foo_rank_zero", 1, 2, 3)
        self.fails(cadre.Invalid, "'z'", self.actor.call, "foo_rank_zero", args={"x": 1, "y": 2, "z": 3})


class Crashing(GroupCase):
    module, ranks, of = "MISBEHAVING_SO", 2, "Misbehaving"

    def test_a_rank_that_dies_is_named(self):
        e = self.fails(cadre.Unavailable, "rank 1 of lab/g (exited|lost its connection)",
                       self.group.call, "crash", rank=1)
        self.assertEqual((e.rank, e.may_have_run), (1, True))

    def test_a_method_that_declared_itself_idempotent_is_called_again_after_a_crash(self):
        for method in "crash_once", "crash_first":
            path = f"{self.local.folder}/{method}"
            run = (self.group.call, method, path)
            options = {"rank": 1, "max_retries": 3, "timeout": SLOW_S}
            if method == "crash_first":
                self.fails(cadre.Unavailable, "rank 1 of lab/g", *run, **options)
            else:
                self.assertIsNone(run[0](*run[1:], **options))
            self.assertTrue(os.path.exists(path))


class Killed(GroupCase):
    module, ranks = "ACCUMULATOR_SO", 2

    def test_a_rank_is_killed_and_started_again(self):
        self.assertEqual(self.group.call("add", 5), [5, 6])
        self.group.kill(1, timeout=SLOW_S)
        self.assertEqual(self.group.call("get_value", timeout=SLOW_S, max_retries=3, idempotent=True), [0, 1])
        self.fails(cadre.Conflict, "attempt", self.group.call, "get_value", attempt=1)


class Echoes(GroupCase):
    def test_long_lists_of_ids_and_every_character_come_back(self):
        ids = [[row * 977 % 150000] * 1024 for row in range(2048)]
        self.assertEqual(self.group.call("echo", ids, rank=0), [ids])
        back = self.group.call("echo", cadre.Batch(columns={"ids": ids, "t": ["a\0b"] * 2048}, meta={"m": "\0"}), rank=0)
        self.assertEqual((back.columns["ids"], back.columns["t"][7], back.meta), (ids, "a\0b", {"m": "\0"}))
        self.assertEqual(self.group.call("echo", "a\0b", rank=0), ["a\0b"])

    def test_workers_in_c_refuse_pickles(self):
        e = self.fails(cadre.Invalid, "a pickled object of Python: only workers in Python", self.group.call, "echo",
                       {1, 2})
        self.assertFalse(e.may_have_run)

    def test_lists_by_position_are_split_as_those_by_name(self):
        for args, result in (([1], [5]), [[1, 5]]), (([[1]], ["a"]), [[[1], "a"]]), ((), [{}]):
            self.assertEqual(self.group.call("echo", *args, dispatch="ALL_TO_ALL"), result)

    def test_values_come_back_as_they_were(self):
        for value in ([], [1, 2.5, -3, 1 << 62], [None, True, False], [{"a": {"b": []}}], ["ä漢😀\"\\\n"],
                      ["x" * (1 << 20)]):
            self.assertEqual(self.group.call("echo", args=value, rank=0), value)

    def test_a_body_that_is_too_long_is_refused(self):
        with self.local.connect(max_body=1000) as client:
            self.fails(cadre.Limit, "1000", client.group("g").call, "echo", "x" * 1000)


class MovedOver(GroupCase):
    def unread(self):
        """Bytes in all sockets of this process that the other ends have not read."""
        total = 0
        for fd in map(int, os.listdir("/proc/self/fd")):
            try:
                if stat.S_ISSOCK(os.fstat(fd).st_mode):
                    total += int.from_bytes(fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
            except OSError:
                pass  # it is closed, or listens
        return total

    def test_a_client_moves_over_and_says_of_which_call_it_does_not_know(self):
        self.assertEqual(self.group.call("echo", 1, rank=0), [1])
        os.kill(self.local.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.local.process.pid, os.WSTOPPED)
        before = self.unread()
        future = self.group.start("echo", 2, rank=0)
        while self.unread() == before:  # the call has not left this process
            time.sleep(0.01)
        self.assertFalse(future.done())
        self.local.kill()
        e = self.fails(cadre.Unavailable, r"while echo\(\) was pending: it may have run", future.result)
        self.assertTrue(e.may_have_run)
        self.local.start()
        self.assertEqual(self.group.call("echo", 3, rank=0), [3])


class Unreachable(GroupCase):
    def test_nobody_there(self):
        with cadre.connect(f"unix:{self.local.folder}/nobody", namespace="lab") as client:
            e = self.fails(cadre.Timeout, "no connection", client.group("g").call, "echo", timeout=0.3)
            self.assertFalse(e.may_have_run)
        with cadre.connect(f"unix:{self.local.folder}/nobody", namespace="lab", unreachable=0.3) as client:
            self.fails(cadre.Unavailable, "no connection", client.group("g").call, "echo", max_retries=0)

    def test_settings_that_make_no_sense(self):
        self.fails(cadre.Invalid, "is not an address", cadre.connect, "nowhere", namespace="lab")
        self.fails(cadre.Invalid, "no namespace", cadre.connect, "unix:/x")
        for path in ("", "/" + "x" * 107, "/" + "x" * 5000):
            self.fails(cadre.Invalid, f"1 to 107 bytes, and this one has {len(path)}", cadre.connect, "unix:" + path,
                       namespace="lab")
        self.fails(cadre.Invalid, "only one of token and token_file", cadre.connect, "unix:/x", namespace="lab", token="a", token_file="b")
        self.fails(cadre.Io, "the CA file: cannot read", cadre.connect, "wss://x:1", namespace="lab", ca_file="/nothing")


if __name__ == "__main__":
    main()
