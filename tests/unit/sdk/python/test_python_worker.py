#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers in Python against local runs: methods, lanes, errors, ends, forks, and what bad input gets."""

import builtins
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import zipfile

import cadre
from python_case import ROOT, SLOW_S, GroupCase, Local, main, worker_environment

WORKERS = os.path.join(os.path.dirname(__file__), "workers")


def of(name, folder=WORKERS, **more):
    return {"python": name, "workingDir": folder, **more}


class Methods(GroupCase):
    module, ranks = of("trials", init={"start": 10}), 2

    def test_methods_get_arguments_by_position_and_by_name(self):
        self.assertEqual(self.group.call("add", 5), [16, 16])
        self.assertEqual(self.group.call("add", 5, 2), [17, 17])
        self.assertEqual(self.group.call("add", args={"x": 5, "y": 3}), [18, 18])
        self.assertEqual(self.group.call("add", per_rank=[1, {"x": 2, "y": 0}]), [12, 12])
        self.assertEqual(self.group.call("static", 4), [4, 4])
        self.assertEqual(self.group.call("inherited"), ["from Base"] * 2)

    def test_a_worker_knows_its_place(self):
        self.assertEqual(self.group.call("place"), [[0, 2, 0, "cpu"], [1, 2, 1, "cpu"]])

    def test_all_public_methods_are_described_and_nothing_else(self):
        methods = {m["name"]: m for m in self.group.info()["methods"]}
        self.assertIn("inherited", methods)
        self.assertFalse({"hidden", "constant", "gate", "__init__"} & set(methods))
        self.assertEqual(methods["beside"]["concurrency"], {"group": "beside", "limit": 2})

    def test_values_that_are_no_json_travel_too(self):
        with self.local.connect(trust=True) as client:
            group = client.group("g")
            self.assertEqual(group.call("echo", {1, 2}, rank=0), ({1, 2},))
            self.assertEqual(group.call("echo", args={"a": b"bytes", "b": 1 + 2j}, rank=0), {"a": b"bytes", "b": 1 + 2j})
            self.assertEqual(group.call("not_json"), [{1, 2, 3}] * 2)
            kept = group.call("not_json", rank=0, keep=True)
            self.assertEqual(group.call("echo", kept), [({1, 2, 3},)] * 2)
        self.fails(cadre.Forbidden, "trust=True", self.group.call, "not_json")
        self.assertRegex(str(self.fails_as(self.group.call, "lock")), "cannot be sent")

    def test_what_a_method_keeps_of_its_arguments_lives_on(self):
        batch = cadre.Batch({"x": memoryview(bytearray(range(8))).cast("B", (4, 2))}, columns={"name": list("abcd")})
        at = self.group.call("keep", batch)
        self.assertEqual(at[0], at[1])
        for _ in range(20):
            self.group.call("echo", "x" * 100000)
        kept = self.group.call("kept_as", at[1] - 1, rank=1)
        self.assertEqual((bytes(kept.tensors["x"].data), kept.columns), (bytes(range(8)), {"name": list("abcd")}))

    def test_methods_run_on_the_main_thread_and_groups_on_their_own(self):
        self.assertEqual(self.group.call("thread"), [True, True])
        self.assertTrue(all(name.startswith("beside-") for name in self.group.call("beside")))
        waiting = self.group.start("wait_for_gate")
        self.group.call("open_gate")
        self.assertEqual(waiting.result(timeout=SLOW_S), [True, True])

    def test_async_methods_run_on_one_loop_at_a_time(self):
        futures = [self.group.start("nap", 0.05) for _ in range(200)]
        self.assertEqual({tuple(f.result(timeout=SLOW_S)) for f in futures}, {("asyncio", "asyncio")})
        with self.assertRaisesRegex(KeyError, "later") as caught:
            self.group.call("fail_later")
        self.assertEqual(caught.exception.name, "KeyError")

    def test_errors_have_the_method_s_own_name_its_place_and_rank(self):
        e = self.fails_as(self.group.call, "fail")
        self.assertRegex(str(e), r"(?s)^rank .: ValueError: no such luck\nfail\(\) failed at .*trials.py:\d+ in fail")
        self.assertIsInstance(e, ValueError)
        self.assertEqual(vars(pickle.loads(pickle.dumps(e))), vars(e))
        for kind in ("KeyError", "FileNotFoundError", "UnicodeDecodeError", "StopIteration", "AssertionError"):
            caught = self.fails_as(self.group.call, "fail", kind)
            self.assertEqual(caught.name, kind if kind != "UnicodeDecodeError" else "TypeError")
            self.assertIsInstance(caught, getattr(builtins, caught.name))
        self.assertEqual((e.name, e.rank in (0, 1), e.may_have_run), ("ValueError", True, True))
        e = self.fails(cadre.Failed, "OutOfTokens: of tokens", self.group.call, "fail_own")
        self.assertEqual(e.name, "OutOfTokens")
        self.assertRegex(str(self.fails_as(self.group.call, "fail", "ValueError", "x" * 5000)), "ValueError: xxx+[.]{3}\n")
        self.fails(cadre.Failed, r"leave\(\) called sys.exit\(3\): a method cannot end its worker", self.group.call,
                   "leave")
        e = self.fails(cadre.Failed, "SystemExit: it cannot be described: ValueError: no words", self.group.call,
                       "leave_without_words")
        self.assertTrue(e.may_have_run)
        self.assertEqual(self.group.call("add", 0), [11, 11])

    def fails_as(self, f, *args):
        """Returns the exception of f(), which is a cadre.Failed and, perhaps, something else."""
        with self.assertRaises(cadre.Failed) as caught:
            f(*args)
        return caught.exception

    def test_wrong_arguments_are_the_client_s_fault(self):
        self.fails(cadre.Invalid, r"missing 1 required positional argument: 'x'; add\(\) takes \(x, y=1\)",
                   self.group.call, "add")
        self.fails(cadre.Invalid, r"unexpected keyword argument 'zz'; add\(\) takes", self.group.call, "add",
                   args={"x": 1, "zz": 2})
        self.fails(cadre.Invalid, r"takes from 2 to 3 positional arguments but 4 were given", self.group.call, "add", 1, 2, 3)
        self.fails(cadre.NotFound, "no method 'hidden'", self.group.call, "hidden")

    def test_a_method_sees_that_nobody_waits(self):
        self.group.call("add", 0, timeout=SLOW_S)
        said = r'is past its deadline.*File ".*trials.py", line \d+ in until_canceled'
        while not re.search(said, self.local.read_log(), re.DOTALL):  # at most once in ten seconds
            self.fails(cadre.Timeout, "until_canceled", self.group.call, "until_canceled", timeout=1)
        self.group.call("has_seen", timeout=SLOW_S)
        with self.local.connect() as client:  # the rank is free again
            self.assertIn("was canceled", client.group("g").call("kept_as", -1, timeout=SLOW_S)[0])

    def test_who_holds_python_s_lock_loses_no_connection(self):
        held = self.group.start("hold_the_lock", 3)
        self.assertEqual(held.result(timeout=SLOW_S), [True, True])
        self.assertEqual(self.local.read_log().count("ready for calls"), 2)

    def test_stacks_of_all_threads_also_of_one_that_holds_the_lock(self):
        held, beside = self.group.start("hold_until_released", rank=0), self.group.start("wait_beside", rank=1)
        self.addCleanup(self.group.call, "release", timeout=SLOW_S)
        for rank, name in enumerate(("hold_until_released", "wait_beside")):
            while f"in {name}" not in self.group.stacks(rank, timeout=SLOW_S):
                pass
        first, second = self.group.stacks(timeout=SLOW_S)
        self.assertRegex(first, r'File ".*trials\.py", line \d+ in hold_until_released\n')
        self.assertRegex(second, r"(?s)in wait_beside\n.*Current thread")
        # Whether rank 1 or the proxy sees the deadline first, the places of both ranks follow in lines of their own.
        places = r"(?s)^[^\n]+\nrank 0 is at .*\.py:\d+ in \w+\nrank 1 is at .*\.py:\d+ in \w+$"
        with unittest.mock.patch("cadre._late._ASK_S", SLOW_S):
            for timeout in 0.3, 3, 30, 300:  # on a busy machine, rank 1 may not have begun
                e = self.fails(cadre.Timeout, ".", self.group.call, "hold_until_released", timeout=timeout)
                if re.search(places, str(e)):
                    break
        self.assertRegex(str(e), places)
        for _ in range(20):  # a busy rank may not answer within the five seconds that it has
            command = [os.environ["CADRE_KUBECTL"], "stack", "g", "-n", "lab", "--server", self.local.address]
            shown = subprocess.run(command, capture_output=True, text=True, timeout=SLOW_S, check=False)
            if " in wait_beside\n" in shown.stdout:
                break
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"(?s)^rank 0.*:\n.*\nrank 1.*:\n.* in wait_beside\n")
        self.assertNotIn("in wait_beside", shown.stdout.split("rank 1")[0])
        self.group.call("release", timeout=SLOW_S)
        self.assertTrue(held.result(timeout=SLOW_S) and beside.result(timeout=SLOW_S))

    def test_a_breakpoint_waits_for_a_terminal(self):
        self.group.call("add", 0, timeout=SLOW_S)
        stopped = self.group.start("stop_here", 5, rank=1)
        done = self.debug("p x * 100\n")
        self.assertRegex(done.stdout, r"(?s)trials\.py\(\d+\)stop_here\(\)\n-> (return x|breakpoint\(\))\n\(Pdb\) 500\n\(Pdb\) $")
        self.assertIn("rank 1:", done.stderr)
        self.assertEqual(stopped.result(timeout=SLOW_S), 5)
        self.assertRegex(self.local.read_log(), r"rank 1: a breakpoint waits at .*trials.py:\d+: python -m cadre debug g --rank 1")

    def debug(self, text):
        done = subprocess.run([sys.executable, "-m", "cadre", "debug", "g", "-n", "lab", "--address", self.local.address],
                              input=text, capture_output=True, text=True, timeout=SLOW_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_what_is_typed_ahead_is_for_this_breakpoint_and_not_for_the_next(self):
        for x in (5, 6):
            stopped = self.group.start("stop_here", x, rank=1)
            self.assertRegex(self.debug("p x * 100\ncontinue\n").stdout, rf"\(Pdb\) {x}00\n\(Pdb\) ")
            self.assertEqual(stopped.result(timeout=SLOW_S), x)

    def test_a_breakpoint_goes_on_when_nobody_waits_for_the_call(self):
        self.fails(cadre.Timeout, "stop_here", self.group.call, "stop_here", 1, timeout=0.2)
        self.assertEqual(self.group.call("add", 0, timeout=SLOW_S), [11, 11])

    def test_calls_come_in_the_order_in_which_they_were_sent(self):
        self.group.start("keep", "begin")
        futures = [self.group.start("keep", i) for i in range(500)]
        numbers = [f.result(timeout=SLOW_S)[0] for f in futures]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 500)))


class InC(GroupCase):
    module, ranks = of("in_c"), 1

    def test_wrong_arguments_of_methods_in_c_are_errors_and_no_end(self):
        pid = self.group.call("pid")
        for method, *args in (["pop"], ["update", 5], ["pop_beside"]):
            with self.subTest(method), self.assertRaisesRegex(cadre.Failed, "TypeError: ") as caught:
                self.group.call(method, *args, timeout=SLOW_S)
            self.assertTrue(caught.exception.may_have_run)  # update() may have taken some of them
            self.assertEqual(self.group.call("pop_beside", "x", 7, timeout=SLOW_S), [7])
            self.assertEqual(self.group.call("pid", timeout=SLOW_S), pid)


class Forks(GroupCase):
    module, ranks = of("parent"), 2

    def test_a_forked_child_has_no_connection_and_its_own_end(self):
        pids = self.group.call("get")
        self.assertEqual(self.group.call("forked"), [[0, -signal.SIGTERM]] * 2)
        self.assertEqual(self.group.call("get"), pids)


class Ends(GroupCase):
    module, ranks = of("trials"), 2

    def until_ready(self):
        return self.group.call("add", 0, timeout=SLOW_S)

    def test_a_process_that_exits_or_dies_says_where(self):
        for method, code, line in (
                ("leave_at_once", 7, r"os\._exit\(7\) was called at .*trials.py:\d+ in leave_at_once"),
                ("crash", None, r"died of SIGSEGV \(invalid memory access\) while it ran Trials.crash")):
            with self.subTest(method):
                e = self.fails(cadre.Unavailable, "rank 1 of lab/g ", self.group.call, method, rank=1)
                self.assertTrue(e.may_have_run)
                self.assertIn(e.exit_code, (code, 139, 11, 1))
                self.assertEqual(self.until_ready(), [1, 1])
                self.assertRegex(self.local.read_log(), line)
        self.assertIn("in crash", self.local.read_log())  # its line, of faulthandler


class Roles(GroupCase):
    module, ranks = of("several", roles=[{"name": "actor", "class": "Actor", "init": {"a": 1}},
                                         {"name": "critic", "class": "Critic"},
                                         {"name": "other", "class": "Actor", "init": {"a": 3}}]), 1

    def test_roles_are_objects_in_one_process(self):
        self.assertEqual([self.client.group("g", role=r).call("get") for r in ("actor", "critic", "other")],
                         [[1], [2], [3]])


class ClusterCase(GroupCase):
    module, ranks = of("trials"), 1

    @classmethod
    def setUpClass(cls):
        with unittest.mock.patch.dict(os.environ, CADRE_OPERATOR="wss://nowhere.invalid:1"):
            super().setUpClass()


class InACluster(ClusterCase):
    module = of("trials", env=[{"name": "CADRE_TRUST_CALLERS", "value": "0"}])

    def test_pickles_are_not_opened_for_clients(self):
        e = self.fails(cadre.Forbidden, "the arguments are pickled", self.group.call, "keep", {1, 2})
        self.assertFalse(e.may_have_run)
        self.assertEqual(self.group.call("keep", [1, 2]), [1])

    def test_a_breakpoint_that_nobody_may_reach_ends_at_once(self):
        self.fails(cadre.Failed, "BdbQuit", self.group.call, "stop_here", 5, timeout=SLOW_S)


class InAClusterWithTheRight(ClusterCase):  # which the local proxy gives to all
    def test_pickles_are_opened(self):
        self.assertEqual(self.group.call("keep", {1, 2}), [1])


class InAClusterThatTrusts(ClusterCase):
    module = of("trials", env=[{"name": "CADRE_TRUST_CALLERS", "value": "1"}])

    def test_pickles_are_opened_for_all_clients(self):
        self.assertEqual(self.group.call("keep", {1, 2}), [1])


class Size(unittest.TestCase):
    def test_a_worker_does_not_import_typing(self):  # which would be a twentieth of its memory
        found = subprocess.check_output([sys.executable, "-S", "-c",
                                         "import sys, cadre.worker.__main__; print('typing' in sys.modules)"],
                                        env={**os.environ, **worker_environment()}, text=True)
        self.assertEqual(found, "False\n")


class End(unittest.TestCase):
    def test_a_worker_that_is_told_to_stop_ends_as_python_does(self):
        for name in ("parent", "trials"):  # without threads, and with threads of concurrency groups and asyncio
            with self.subTest(name):
                env = dict(worker_environment(), CADRE_CONNECT="unix:/nowhere/at/all", CADRE_PYTHON=name)
                with subprocess.Popen(["python3", "-m", "cadre.worker"], cwd=WORKERS, env=env, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
                    self.assertTrue(any("cannot connect" in line for line in iter(worker.stderr.readline, "")))  # it serves
                    worker.send_signal(signal.SIGTERM)
                    said = worker.communicate(timeout=SLOW_S)
                self.assertEqual((worker.returncode, "Traceback" in said[1]), (0, False), said)
                self.assertIn("the end" if name == "parent" else "this module prints", said[0])


class BadInput(unittest.TestCase):
    def ends(self, code, pattern, name, *, class_name=None, init=None, **more):
        """The worker ends with this code, and the last line of its output has this."""
        env = dict(worker_environment(), CADRE_CONNECT="unix:/nowhere/at/all", RANK="1", WORLD_SIZE="2", **more)
        for key, value in (("CADRE_PYTHON", name), ("CADRE_CLASS", class_name), ("CADRE_INIT", init)):
            if value is not None:
                env[key] = value
        run = subprocess.run(["python3", "-m", "cadre.worker"], cwd=WORKERS, env=env, capture_output=True, text=True,
                             timeout=SLOW_S)
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertRegex(run.stderr.rstrip("\n").splitlines()[-1], "^cadre-worker: rank 1: .*" + pattern)

    def test_a_module_that_is_not_there(self):
        self.ends(65, "there is no module nowhere in sys.path", "nowhere")
        self.ends(65, "there is no module trials.deep in .*working_dir= and py_modules= of client.Group\\(\\) send", "trials.deep")

    def test_a_module_that_fails_while_it_is_imported(self):
        self.ends(65, r"failed while it was imported: RuntimeError: this module never works \(.*broken.py:3", "broken")

    def test_what_a_module_prints_while_it_is_imported_is_in_the_way_of_nobody(self):
        local = Local(of("chatty"))
        self.addCleanup(local.stop)
        with local.connect() as client:
            self.assertEqual(client.group("g").call("work", timeout=SLOW_S), [1])
        self.assertIn("[rank 0] imported, and no end of line", local.read_log())

    def test_a_class_that_is_not_there_or_one_of_several(self):
        self.ends(65, "module trials has no class Nobody; it has Base, Trials", "trials", class_name="Nobody")
        self.ends(65, r"module several has 3 classes \(Actor, Critic, Fragile\): spec.worker.class says which", "several")

    def test_wrong_arguments_of_a_constructor_and_one_that_fails(self):
        self.ends(66, r"Actor: init: missing a required argument: 'a'; it takes \(a\)", "several", class_name="Actor")
        self.ends(66, "got an unexpected keyword argument 'zz'", "several", class_name="Critic", init='{"zz": 1}')
        self.ends(66, r"Fragile: the constructor failed: ValueError: no weights at /nowhere \(.*several.py:\d+ in __init__",
                  "several", class_name="Fragile")

    def test_the_package_runs_out_of_an_archive(self):  # as cadre-agent brings it
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/cadre.zip"
            with zipfile.PyZipFile(path, "w") as z:
                for where, _, files in os.walk(os.path.join(ROOT, "sdk/python/cadre")):
                    for name in files:
                        if name.endswith(".py"):
                            z.write(f"{where}/{name}", os.path.relpath(f"{where}/{name}", os.path.join(ROOT, "sdk/python")))
            self.ends(65, rf"there is no module nowhere in sys.path .*{path}", "nowhere", PYTHONPATH=path)

    def test_without_a_module(self):
        self.ends(64, "CADRE_PYTHON is not set", None)


class Example(GroupCase):
    module, ranks = of("accumulator", os.path.join(ROOT, "examples/python"), **{"class": "Accumulator"}), 4

    def test_the_example_does_what_the_one_in_c_does(self):
        self.assertEqual(self.group.call("add", 10), [10, 11, 12, 13])
        self.assertEqual(self.group.call("add", per_rank=[1, 1, 1, 1]), [11, 12, 13, 14])
        self.assertEqual(self.group.call("get_value_rank_zero"), 11)


class ClientSplit(GroupCase):
    """The client splits what the proxy cannot split, and joins the results."""

    module, ranks = of("client_split"), 2

    def setUp(self):
        super().setUp()
        self.client = self.local.connect(trust=True)
        self.addCleanup(self.client.close)
        self.group = self.client.group("g")

    def test_each_rank_gets_its_element_of_lists_of_any_objects(self):
        self.assertEqual(self.group.call("each", [{1}, {2}], [{3}, {4}]), [{1, 3}, {2, 4}])
        self.assertEqual(self.group.start("each", args={"x": [{1}, {2}], "y": [{3}, {4}]}).result(), [{1, 3}, {2, 4}])

    def test_rows_of_any_objects_are_split_and_joined(self):
        rows = [{i} for i in range(4)]
        self.assertEqual(self.group.call("rows", rows), [(0, {0}, None), (0, {1}, None), (1, {2}, None), (1, {3}, None)])
        self.assertEqual([row[2] for row in self.group.call("rows", rows, b"more")], [b"more"] * 4)
        tensor = cadre.Tensor("BF16", (4, 3), bytes(24))
        self.assertEqual(self.group.call("count", tensor, list("abcd")), [[2, 2], [2, 2]])

    def test_futures_and_references_stand_for_any_value(self):
        first = self.group.start("echo", {1}, rank=0)
        self.assertEqual(self.group.call("echo", first, rank=1), (((({1},), {}),), {}))
        with self.group.call("echo", {2}, rank=0, keep=True) as ref:
            self.assertEqual(ref.get(), (({2},), {}))


if __name__ == "__main__":
    main()
