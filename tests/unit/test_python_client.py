#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package against local runs: calls, errors, futures, references, threads, fork, Ctrl-C."""

import copy
import gc
import os
import pickle
import signal
import threading
import warnings

import cadre
from python_case import GroupCase, main


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
        self.assertEqual(self.group.call("add", args=[1, 2], dispatch="SPLIT",
                                         split={"index": [0, 1, 0, 1], "elements": True}), [2, 4, 4, 6])

    def test_no_result_is_none_once_all_have_run_it(self):
        self.assertIsNone(self.group.call("add", 1, no_result=True))
        self.assertEqual(self.group.call("get_value"), [1, 2, 3, 4])

    def test_info_tells_ranks_and_methods(self):
        info = self.group.info(timeout=30)
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
        self.fails(TypeError, "needs a name", self.client.group)
        self.fails(TypeError, "a group's name is text, not 7", self.client.group, 7)
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
        self.assertEqual(self.group.call("add", 0), [0, 1, 2, 3])

    def test_futures_run_in_the_order_of_their_starts(self):
        futures = [self.group.start("add", 1, rank=0) for _ in range(5)]
        self.assertEqual([f.result(timeout=30) for f in futures], [1, 2, 3, 4, 5])
        self.assertTrue(all(f.done() for f in futures))
        self.assertIsNone(futures[0].exception())
        self.assertFalse(futures[0].cancel())
        self.assertRegex(repr(futures[0]), r"add\(\) of g done")

    def test_a_failed_future_raises_each_time(self):
        f = self.group.start("nothing")
        for _ in range(2):
            self.fails(cadre.NotFound, "no method", f.result)
        self.assertIs(type(f.exception()), cadre.NotFound)

    def test_wait_parts_what_is_answered_from_the_rest(self):
        futures = [self.group.start("add", 1, rank=0) for _ in range(4)]
        ready, rest = cadre.wait(futures, num_returns=3, timeout=30)
        self.assertEqual((len(ready), len(rest)), (3, 1))
        self.assertEqual(sorted(f.result() for f in ready + rest), [1, 2, 3, 4])
        ready, rest = cadre.wait(futures, num_returns=2)  # taken ones are answered ones
        self.assertEqual((ready, rest), (futures[:2], futures[2:]))
        self.fails(cadre.Invalid, "must be 1 at least", cadre.wait, futures, num_returns=5)
        self.fails(cadre.Invalid, "given twice", cadre.wait, [futures[0], futures[0]])
        self.fails(ValueError, "needs at least one future", cadre.wait, [])
        self.fails(TypeError, "a list of futures, and None is none", cadre.wait, [None])
        self.fails(TypeError, "num_returns is a whole number, not 1.5", cadre.wait, futures, num_returns=1.5)
        self.fails(ValueError, "num_returns -1 is negative", cadre.wait, futures, num_returns=-1)
        with self.local.connect() as other:
            mixed = [futures[0], other.group("g").start("get_value")]
            self.fails(ValueError, "these are of 2", cadre.wait, mixed)

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

    def test_too_many_at_a_time_are_refused(self):
        with self.local.connect(max_calls=10) as client:
            group = client.group("g")
            futures = [group.start("get_value") for _ in range(10)]
            self.fails(cadre.Limit, "10", group.start, "get_value")
            cadre.wait(futures, num_returns=10)
            self.fails(cadre.Limit, "10", group.start, "get_value")  # nobody has taken the results
            del futures
            gc.collect()
            self.assertEqual(group.call("get_value"), [0, 1, 2, 3])  # dropped ones make room

    def test_references_stay_with_the_workers(self):
        ref = self.group.call("get_value", keep=True, execute="RANK_ZERO")
        self.assertIsInstance(ref, cadre.Ref)
        self.assertEqual(ref.get(timeout=30), 0)
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
        self.fails(ValueError, "'rubbish' is no reference, which begins with cadre:", self.group.ref, "rubbish")

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
        late = self.group.start("get_value")
        self.client.close()
        self.client.close()
        self.assertEqual(f.result(), [0, 1, 2, 3])
        self.fails(cadre.Canceled, "the client was closed", late.result)
        self.assertTrue(late.done())
        self.fails(RuntimeError, "closed", self.group.call, "get_value")
        self.assertEqual((self.client.closed, self.client.connected, self.client.pending), (True, False, 0))
        self.assertRegex(repr(self.group), r"cadre.Group g of <cadre.Client unix:.* namespace=lab closed>")

    def test_a_client_that_is_dropped_warns_and_closes(self):
        client = self.local.connect()
        client.group("g").call("get_value")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del client
            gc.collect()
        self.assertRegex(str(caught[0].message), "was not closed")

    def test_a_child_of_fork_opens_its_own(self):
        self.group.call("get_value")
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                self.client.close()
                try:
                    self.group.call("get_value")
                except RuntimeError as e:
                    with self.local.connect() as own:
                        code = 0 if "fork" in str(e) and own.group("g").call("get_value") == [0, 1, 2, 3] else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(self.group.call("get_value"), [0, 1, 2, 3])  # the child has not touched it

    def test_connections_are_told_of(self):
        told = []
        with self.local.connect(on_connection=lambda up, why: told.append((up, why))) as client:
            client.group("g").call("get_value")
            self.assertTrue(client.connected)
        self.assertEqual(told[0], (True, None))


class Watched(GroupCase):
    module, ranks = "WATCHED_SO", 2

    def test_a_deadline_ends_the_call(self):
        for timeout in 0.3, 3, 30:  # a busy machine may not even have sent it
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
        self.assertEqual((lines[0].group, lines[0].text), ("lab/g", "grüße"))

    def test_what_a_callback_raises_comes_out_of_what_waits(self):
        def refuse(up, why):
            self.fails(RuntimeError, "callback", client.group("g").call, "trace")
            raise KeyError("of the callback")

        with self.local.connect(on_connection=refuse) as client:
            self.fails(KeyError, "of the callback", client.group("g").call, "trace")

    def test_closing_ends_calls_that_are_open(self):
        with self.local.connect() as client:
            f = client.group("g").start("hold")
            client.group("g").info()
            self.assertEqual(client.pending, 1)
        self.fails(cadre.Canceled, "closed", f.result)

    def test_a_second_thread_is_refused_while_one_waits(self):
        waits = threading.Event()
        with self.local.connect(on_connection=lambda up, why: waits.set()) as client:
            hold = (cadre.Timeout, "hold", client.group("g").call, "hold")
            thread = threading.Thread(target=self.fails, args=hold, kwargs={"timeout": 1})
            thread.start()
            waits.wait()
            self.fails(RuntimeError, "in use by another thread", client.group("g").start, "trace")
            thread.join()
            self.assertEqual(client.group("g").call("trace"), "none")

    def test_one_thread_after_the_other_may_use_it(self):
        got = []
        thread = threading.Thread(target=lambda: got.append(self.group.call("trace")))
        thread.start()
        thread.join()
        self.assertEqual(got, ["none"])
        self.assertEqual(self.group.call("trace"), "none")

    def test_ctrl_c_ends_the_waiting(self):
        old = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, old)
        f = self.group.start("hold")
        for wait in (lambda: self.group.call("hold"), f.result, lambda: cadre.wait([f])):
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                wait()
            timer.join()
        self.assertTrue(f.cancel())  # the future went on; the call was canceled
        self.fails(cadre.Canceled, "hold", f.result)
        self.assertEqual(self.client.pending, 0)
        self.assertEqual(self.group.call("trace"), "none")

    def test_a_signal_handler_cannot_take_the_client_away_from_what_waits(self):
        told = []

        def handler(*_):
            for use in (self.client.close, lambda: self.group.call("trace"), f.cancel):
                told.append(str(self.fails(RuntimeError, "a signal handler cannot use a client that waits", use)))

        old = signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, old)
        f = self.group.start("hold")
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        self.fails(TimeoutError, "goes on", f.result, timeout=1)
        timer.join()
        self.assertEqual(len(told), 3)
        self.assertTrue(f.cancel())
        self.fails(cadre.Canceled, "hold", f.result)


class Crashing(GroupCase):
    module, ranks, of = "MISBEHAVING_SO", 2, "Misbehaving"

    def test_a_rank_that_dies_is_named(self):
        e = self.fails(cadre.Unavailable, "rank 1 of lab/g (exited|lost its connection)",
                       self.group.call, "crash", rank=1)
        self.assertEqual((e.rank, e.may_have_run), (1, True))


class Killed(GroupCase):
    module, ranks = "ACCUMULATOR_SO", 2

    def test_a_rank_is_killed_and_started_again(self):
        self.assertEqual(self.group.call("add", 5), [5, 6])
        self.group.kill(1, timeout=30)
        self.assertEqual(self.group.call("get_value", timeout=60, max_retries=3, idempotent=True), [0, 1])
        self.fails(cadre.Conflict, "attempt", self.group.call, "get_value", attempt=1)


class Echoes(GroupCase):
    def test_values_come_back_as_they_were(self):
        for value in ([], [1, 2.5, -3, 1 << 62], [None, True, False], [{"a": {"b": []}}], ["ä漢😀\"\\\n"],
                      ["x" * (1 << 20)]):
            self.assertEqual(self.group.call("echo", args=value, rank=0), value)

    def test_a_signal_handler_cannot_change_the_arguments_of_a_call_that_is_being_made(self):
        send, told = self.client._send, []

        def interrupted(request):
            signal.raise_signal(signal.SIGUSR1)
            return send(request)

        def handler(*_):
            self.client._send = send
            told.append(self.fails(RuntimeError, "waits or sends", self.group.call, "echo", "other", rank=0))

        old = signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, old)
        self.addCleanup(setattr, self.client, "_send", send)
        for value, result in (("mine", ["mine"]), (cadre.Batch(columns={"p": [1, 2]}), {"p": [1, 2]})):
            self.client._send = interrupted
            back = self.group.call("echo", value, rank=0)
            self.assertEqual(getattr(back, "columns", back), result)
        self.assertEqual(len(told), 2)

    def test_a_body_that_is_too_long_is_refused(self):
        with self.local.connect(max_body=1000) as client:
            self.fails(cadre.Limit, "1000", client.group("g").call, "echo", "x" * 1000)


class MovedOver(GroupCase):
    def test_a_client_moves_over_and_says_of_which_call_it_does_not_know(self):
        self.assertEqual(self.group.call("echo", 1, rank=0), [1])
        os.kill(self.local.process.pid, signal.SIGSTOP)
        future = self.group.start("echo", 2, rank=0)
        self.assertFalse(future.done())  # which sends it
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
        self.fails(cadre.Invalid, "is no address", cadre.connect, "nowhere", namespace="lab")
        self.fails(cadre.Invalid, "no namespace", cadre.connect, "unix:/x")
        for path in ("", "/" + "x" * 107, "/" + "x" * 5000):
            self.fails(cadre.Invalid, f"1 to 107 bytes, and this one has {len(path)}", cadre.connect, "unix:" + path,
                       namespace="lab")
        self.fails(cadre.Invalid, "which", cadre.connect, "unix:/x", namespace="lab", token="a", token_file="b")
        self.fails(cadre.Io, "cannot read the CA file", cadre.connect, "wss://x:1", namespace="lab", ca_file="/nothing")


if __name__ == "__main__":
    main()
