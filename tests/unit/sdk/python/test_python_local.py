#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Groups that a program makes in a run of its own: cadre.local()."""

import contextlib
import importlib.util
import io
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest.mock

import cadre
from cadre import _call, _printing, _progress
from python_case import EXAMPLES, SLOW_S, RunCase, main, program

PRELOADED = os.environ.get("LD_PRELOAD")


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Groups(RunCase):
    modules = (os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers"),)

    def test_two_groups_share_the_gpus_of_two_nodes(self):
        with cadre.local(gpus=2, nodes=2) as client:
            one = client.Group("accumulator:Accumulator", replicas=2, gpus=1, init={"start": 10}, strategy="Spread")
            two = client.Group("accumulator:Accumulator", replicas=2, gpus=1)
            self.assertEqual(one.add(1), [11, 12])
            self.assertEqual(two.add.each([1, 2]), [1, 3])
            self.assertEqual(one.add.on(1)(x=1), 13)
            self.assertEqual(two.add.start(1).result(SLOW_S), [2, 4])
            self.assertEqual(one.world_size, 2)
            self.assertEqual(len(set(one.nodes)), 2)
            self.assertEqual(sorted(one.nodes), sorted(two.nodes))
            self.assertEqual(two.local_ranks, [0, 0])

    def test_a_reference_goes_from_one_group_to_another(self):
        with cadre.local() as client:
            one = client.Group("accumulator:Accumulator", replicas=2, init={"start": 5})
            two = client.Group("accumulator:Accumulator", replicas=2)
            with one.get_value.options(keep=True)() as kept:
                self.assertEqual(two.call("add", kept, dispatch="ALL_TO_ALL"), [5, 7])

    def test_a_group_in_c_and_the_end_of_one_group_is_no_others(self):
        with cadre.local() as client:
            fails = client.Group(module=program("MISBEHAVING_SO"), class_name="Misbehaving", restart="Never")
            stays = client.Group(module=program("ACCUMULATOR_SO"), class_name="Accumulator")
            self.assertEqual(stays.add(1), [1])
            with self.assertRaises(cadre.Error):
                fails.crash.options(timeout=SLOW_S)()
            with self.assertRaisesRegex(cadre.Error, "takes no calls: it failed"):
                fails.crash.options(timeout=SLOW_S)()
            self.assertEqual(stays.add(1), [2])

    def test_a_group_that_does_not_fit_waits_and_one_that_never_will_is_refused(self):
        with cadre.local(gpus=1) as client:
            first = client.Group("accumulator:Accumulator", gpus=1)
            self.assertEqual(first.add(1), [1])
            second = client.Group("accumulator:Accumulator", gpus=1)
            waits = second.add.start(1)
            first.close()
            self.assertEqual(waits.result(SLOW_S), [1])
            with self.assertRaisesRegex(cadre.Error, "gpu"):
                client.Group("accumulator:Accumulator", gpus=2).add.options(timeout=5)(1)

    def test_a_pickle_for_a_group_that_has_not_started_holds_up_nobody(self):
        sys.path.insert(0, EXAMPLES)
        self.addCleanup(sys.path.remove, EXAMPLES)
        from accumulator import Accumulator

        told = queue.SimpleQueue()
        with cadre.local(gpus=1) as client:
            first = client.Group("trials:Trials", gpus=1)
            first.add(1)
            by_class, by_name = client.Group(Accumulator, gpus=1), client.Group("trials:Trials", gpus=1)
            waits = by_class.add.start(1j)
            with self.assertRaisesRegex(cadre.Timeout, "no rank of .* has told its methods within 0.5 s"):
                with unittest.mock.patch("cadre._call.READY_S", 0.1):  # holds for calls without a deadline
                    by_name.call("add", 1j, timeout=0.5)
            first.start("wait_for_gate")
            pickled = first.start("not_json", rank=0)
            late = [by_name.start("keep", pickled) for _ in range(5)]
            canceled = late.pop(2)
            first.open_gate()
            first.start("place").add_done_callback(told.put)
            told.get(timeout=SLOW_S)
            canceled.cancel()
            with self.assertRaisesRegex(cadre.Canceled, "was not sent"):
                canceled.result(SLOW_S)
            first.close()
            self.assertEqual(waits.result(SLOW_S), [1j])
            by_class.close()
            self.assertEqual([f.result(SLOW_S) for f in late], [[1], [2], [3], [4]])
            while client._held_up:  # the thread that sent them ends
                time.sleep(0.01)

    @contextlib.contextmanager
    def a_group_that_starts_later(self):
        """Yields a client, a group, the future of a pickle from it, and another group, which starts when the
        first one has ended. The pickle comes after first.open_gate().
        """
        with cadre.local(gpus=1) as client:
            first = client.Group("trials:Trials", gpus=1)
            first.add(1)
            later = client.Group("trials:Trials", gpus=1)
            first.start("wait_for_gate")
            yield client, first, first.start("not_json", rank=0), later

    def test_what_a_callback_raises_is_no_error_of_calls_that_wait_for_a_group(self):
        with self.a_group_that_starts_later() as (client, first, pickled, later):
            waits = later.start("keep", pickled)
            first.open_gate()
            while not client._held_up:
                time.sleep(0.01)
            client._raised = KeyError("of a callback")
            time.sleep(0.5)
            self.assertFalse(waits.done())
            with self.assertRaisesRegex(KeyError, "of a callback"):
                first.place()
            first.close()
            self.assertEqual(waits.result(SLOW_S), [1])

    def test_calls_that_wait_for_a_group_wait_at_the_same_time(self):
        with self.a_group_that_starts_later() as (client, first, pickled, later):
            number = first.start("add", 4, rank=0)
            stays = later.start("keep", pickled)
            late = [later.start("keep", f, timeout=0.5) for f in (pickled, pickled, number)]
            first.open_gate()
            for f in late:
                with self.assertRaisesRegex(cadre.Timeout, r"keep\(\) was not sent: .* within 0.5 s"):
                    f.result(30)
            self.assertFalse(stays.done())
            first.close()
            self.assertEqual(stays.result(SLOW_S), [1])

    def test_a_call_waits_only_for_those_before_it_that_still_wait_for_the_group(self):
        with self.a_group_that_starts_later() as (client, first, pickled, later):
            number = first.start("add", 4, rank=0)
            with unittest.mock.patch("cadre._unsent.READY_S", 2):
                late = [later.start("keep", f) for f in (pickled, number, pickled, pickled)]
                sent = late.pop(1)
                first.open_gate()
                for f in late:
                    with self.assertRaisesRegex(cadre.Unavailable, "no rank of .* has told its methods within 2 s"):
                        f.result(30)
            first.close()
            self.assertEqual((sent.result(SLOW_S), later.kept_as(0)), ([1], [5]))

    def test_the_time_for_which_a_call_waits_for_a_group_is_part_of_its_deadline(self):
        deadlines, begin = [], _call._begin

        def begun(client, request):
            if request.method == b"keep":
                deadlines.append(request.timeout_ms)
            return begin(client, request)

        with self.a_group_that_starts_later() as (client, first, pickled, later):
            number, asked = first.start("add", 4, rank=0), time.monotonic()
            with unittest.mock.patch("cadre._call._begin", begun):
                waits = [later.start("keep", f, timeout=1000) for f in (pickled, number)]
                first.open_gate()
                while sum(map(len, client._held_up.values())) < len(waits):
                    time.sleep(0.01)
                time.sleep(1)
                first.close()
                self.assertEqual([f.result(SLOW_S) for f in waits], [[1], [2]])
            took = (time.monotonic() - asked) * 1000
            for ms in deadlines:
                self.assertTrue(1e6 - took - 1 <= ms <= 1e6 - 1000, f"{ms} ms after {took} ms")

    def test_groups_are_found_by_name(self):
        with cadre.local() as client:
            client.Group("accumulator:Accumulator", name="mine")
            self.assertEqual(client.find("mine").add(2), [2])
            with self.assertRaises(cadre.NotFound):
                client.find("nobody")
            with cadre.connect(client.address, namespace="default") as other:  # such as a second notebook
                with self.assertRaisesRegex(cadre.Exists, "WorkerGroup default/mine exists in this run already"):
                    other.Group("accumulator:Accumulator", name="mine")
            self.assertEqual(client.find("mine").add(2), [4])

    def test_a_run_that_is_asked_to_end_starts_no_group_that_waits(self):
        with cadre.local(gpus=1) as client:
            self.assertEqual(client.Group("accumulator:Accumulator", gpus=1).add(1), [1])
            client.Group("accumulator:Accumulator", gpus=1).add.start(1)
            run = client._run._process
            run.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(SLOW_S), 0)

    def test_a_group_is_restarted_also_one_that_has_failed(self):
        with cadre.local(gpus=1) as client:
            group = client.Group("accumulator:Accumulator", gpus=1, init={"start": 5}, restart="Never")
            self.assertEqual([group.add(1), group.add(1)], [[6], [7]])
            group.restart()
            self.assertEqual(group.add.options(timeout=SLOW_S)(1), [6])
            self.assertEqual(group.info()["attempt"], 2)
            group.kill(0)
            with self.assertRaisesRegex(cadre.Error, "restartPolicy is Never"):
                while group.add.options(timeout=SLOW_S)(1):
                    pass
            group.restart()
            self.assertEqual(group.add.options(timeout=SLOW_S)(1), [6])
            group.close()
            with self.assertRaises(cadre.NotFound):
                group.restart()

    def test_functions_of_a_class_split_arguments_and_join_results(self):
        sys.path.insert(0, EXAMPLES)
        self.addCleanup(sys.path.remove, EXAMPLES)
        from modes import TestActor

        with cadre.local() as client:
            group = client.Group(TestActor, replicas=3, init={"x": 1})
            self.assertEqual(group.foo_custom([1, 2], [5, 6]), [7, 9, 7])
            self.assertEqual(group.foo_custom.on(2)(1, 1), 3)  # as it is
            self.assertEqual(group.foo_custom.options(dispatch="ONE_TO_ALL")(1, 1), [3, 3, 3])
            future = group.foo_sum([1, 2], [5, 6])
            self.assertIsInstance(future, cadre.Future)
            self.assertEqual(future.result(SLOW_S), 23)
            self.assertEqual(group.foo_sum.start([1, 2], [5, 6]).result(SLOW_S), 23)
        for wrong in (5, (None, len), (len, 5), (len,)):
            with self.assertRaisesRegex(TypeError, "the name of a mode, a function, or two functions"):
                cadre.register(dispatch=wrong)

    def test_a_worker_ends_by_itself_when_its_group_is_deleted(self):
        with cadre.local() as client:
            group = client.Group("accumulator:Accumulator", name="mine")
            group.add(1)
            preload = {"LD_PRELOAD": PRELOADED} if PRELOADED else {}
            place = {"CADRE_CONNECT": client.address, "CADRE_GROUP_UID": group.info()["uid"], "GROUP_NAME": "mine",
                     "CADRE_ATTEMPT": "1", "RANK": "0", "WORLD_SIZE": "1"}
            other = subprocess.Popen([sys.executable, "-m", "cadre.worker", "accumulator"], stderr=subprocess.PIPE, text=True,
                                     env={**os.environ, **preload, **place})  # no agent would end it
            while "ready for calls" not in other.stderr.readline():
                self.assertIsNone(other.poll())
            group.close()
            self.assertRegex(other.stderr.read(), "refuses this worker: the (group was deleted|agent has reported the end)")
            self.assertEqual(other.wait(SLOW_S), 0)
            other.stderr.close()

    def test_a_worker_that_says_a_rank_that_is_not_there_is_refused(self):
        with cadre.local() as client:
            group = client.Group("accumulator:Accumulator", name="mine")
            group.add(1)
            preload = {"LD_PRELOAD": PRELOADED} if PRELOADED else {}
            place = {"CADRE_CONNECT": client.address, "CADRE_GROUP_UID": group.info()["uid"], "GROUP_NAME": "mine",
                     "CADRE_ATTEMPT": "1", "RANK": "7", "WORLD_SIZE": "8"}
            with subprocess.Popen([sys.executable, "-m", "cadre.worker", "accumulator"], stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, **preload, **place}) as other:
                self.assertRegex(other.stderr.readline(), "refuses this worker: .*rank 7.*dialing again")
                other.kill()
            self.assertEqual(group.add(1), [2])

    def test_ctrl_c_leaves_no_rank_behind(self):
        text = ("import cadre\n"
                "with cadre.local() as client:\n"
                "    group = client.Group('trials:Trials', replicas=2)\n"
                "    print(*(w['pid'] for w in group.call('pids')), flush=True)\n"
                "    group.call('sleep', 600)\n")
        preloaded = {"LD_PRELOAD": os.environ.get("LD_PRELOAD", "")} if "LD_PRELOAD" in os.environ else {}
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/trials.py", "w", encoding="utf-8") as f:
                f.write("import os, time\nclass Trials:\n    def pids(self):\n        return {'pid': os.getpid()}\n"
                        "    def sleep(self, s):\n        print('sleeps', flush=True)\n        time.sleep(s)\n")
            with subprocess.Popen([os.path.join(os.environ["PATH"].split(os.pathsep)[0], "python3"), "-c", text], cwd=folder,
                                  env={**os.environ, **preloaded}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True, start_new_session=True) as program:
                pids = [int(pid) for pid in next(line for line in program.stdout if line[0].isdigit()).split()]
                next(line for line in program.stdout if "sleeps" in line)
                os.killpg(program.pid, signal.SIGINT)  # as a terminal does
                program.stdout.read()
        self.assertNotEqual(program.returncode, 0)
        self.assertEqual(len(pids), 2)
        self.assertEqual([pid for pid in pids if not is_gone(pid)], [])

    def test_what_ranks_print_is_in_the_notebook_with_equal_lines_as_one(self):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            with cadre.local() as client:
                group = client.Group("printing:Printing", replicas=3, name="p")
                while "p [rank 0-2] for all\n" not in out.getvalue():
                    group.say("for all")
                group.say.each(["one", "two", "three"])
                group.complain.on(1)("of one")
        self.assertLessEqual({"p [rank 0] one", "p [rank 1] two", "p [rank 2] three"}, set(out.getvalue().splitlines()))
        self.assertEqual(err.getvalue(), "p [rank 1] of one\n")

    def test_a_client_prints_what_ranks_of_its_groups_print(self):
        with cadre.local() as run, contextlib.redirect_stdout(io.StringIO()) as out:
            run._run._printer._hides = re.compile("")  # the run's own way
            with cadre.connect(run.address, namespace="default") as client:
                group = client.Group("printing:Printing", replicas=2, name="p", image="none")
                for text in ("one", "two"):
                    while text not in out.getvalue():
                        group.say(text)
                    client._shown.connected(True)  # to another replica, which knows of nothing
            with cadre.connect(run.address, namespace="default", on_output=lambda line: None) as client:
                client.Group("printing:Printing", image="none").say("handled")
        self.assertEqual(list(dict.fromkeys(re.sub(r"p \[rank [01-]+\] ", "", out.getvalue()).split())), ["one", "two"])

    def test_a_client_keeps_nothing_of_groups_that_are_gone(self):
        with cadre.local() as run, cadre.connect(run.address, namespace="default") as client:
            mine, other = (client.Group("accumulator:Accumulator", name=name, image="none") for name in ("mine", "other"))
            mine.call("add", 1j)
            mine.close()
            self.assertEqual((list(client._shown._listen), list(client._made), client._groups), (["other"], ["other"], {}))
            run.find("other").close()
            while client._shown._listen:  # it is gone a moment later
                client._shown.connected(True)
                time.sleep(0.1)

    def test_a_client_remembers_the_last_of_many_groups(self):
        with unittest.mock.patch("cadre._client._MADE_MAX", 2), cadre.local() as client:
            for name in ("one", "two", "one", "three"):
                client.Group("accumulator:Accumulator", name=name)
            self.assertEqual(list(client._made), ["one", "three"])
            client.Group("accumulator:Accumulator", name="one", init={"start": 3})
            with self.assertRaises(cadre.Exists):
                client.Group("accumulator:Accumulator", name="two", init={"start": 3})

    def test_lines_are_one_where_the_order_of_each_rank_stays(self):
        said = []
        fold = _printing.Fold(said.append)
        for line in ("g [rank 0] a", "g [rank 1] a", "g [rank 0] b", "g [rank 2] b", "g [rank 2] a", "h [rank 7] a", "g [rank 1] b",
                     "g [rank 3] a", "g [rank 3] b"):
            fold.add(line, 0)
        fold.flush(0)
        self.assertEqual(said, [])
        fold.flush(1)
        self.assertEqual(said, ["g [rank 0-1] a", "g [rank 0-2] b", "g [rank 2-3] a", "h [rank 7] a", "g [rank 3] b"])
        self.assertEqual(_printing.ranges({7, 0, 2, 1}), "0-2,7")

    def test_a_line_is_written_at_once(self):
        with unittest.mock.patch.object(sys, "stdout") as out:  # its end by itself: what others print would come between
            _printing.show("stdout", "g [rank 0] a")
        out.write.assert_called_once_with("g [rank 0] a\n")

    def test_a_group_shows_itself_in_a_notebook(self):
        with unittest.mock.patch("cadre._group._LOOK_HTML_S", SLOW_S), cadre.local(gpus=1) as client:
            group = client.Group("accumulator:Accumulator", name="shown", gpus=1)
            group.wait_ready()
            self.assertRegex(group._repr_html_(), r"^<b>shown</b>: ready<table>.*<td>0</td><td>connected</td>.*local-0")
            waits = client.Group("accumulator:Accumulator", name="waits", gpus=1)
            self.assertRegex(waits._repr_html_(), r"<b>waits</b>: 0 of 1 ranks are connected: .*<td>not connected</td>")
            client.close()
            self.assertRegex(group._repr_html_(), "<b>shown</b>: the client is closed")

    def test_a_line_says_why_a_group_does_not_start_yet(self):
        with cadre.local(gpus=1) as client:
            first = client.Group("accumulator:Accumulator", name="first", gpus=1)
            first.wait_ready()
            waits = client.Group("accumulator:Accumulator", name="waits", gpus=1)
            shown = io.StringIO()
            shown.isatty = lambda: True
            future = waits.start("add", 1)
            with contextlib.redirect_stderr(shown), unittest.mock.patch("cadre._progress._QUIET_S", 0):
                ended = threading.Thread(target=lambda: self.close_once(shown, r"after \d+ s: .*[Gg][Pp][Uu]", first))
                ended.start()
                self.assertEqual(_progress.result(future, waits), [1])
                ended.join()
        self.assertRegex(shown.getvalue(), r"\rcadre: waits: 0 of 1 ranks are connected after \d+ s: .*[Gg][Pp][Uu]")
        self.assertTrue(shown.getvalue().endswith(" \r"))

    @staticmethod
    def close_once(shown, pattern, group):
        while not re.search(pattern, shown.getvalue()):
            time.sleep(0.02)
        group.close()

    def test_fixtures_of_pytest(self):
        if importlib.util.find_spec("pytest") is None:
            self.skipTest("pytest is not installed")
        preloaded = {"LD_PRELOAD": PRELOADED} if PRELOADED else {}
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/test_it.py", "w", encoding="utf-8") as f:
                f.write("import pytest\n"
                        "@pytest.mark.cadre_local(gpus=2)\n"
                        "def test_run(cadre_run):\n"
                        "    group = cadre_run.Group('accumulator:Accumulator', replicas=2, gpus=1)\n"
                        "    assert group.add(1) == [1, 2]\n"
                        "def test_session(cadre_session):\n"
                        "    assert cadre_session.Group('accumulator:Accumulator').add(1) == [1]\n")
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "cadre.pytest_plugin", "-p",
                                   "no:cacheprovider", "--strict-markers", folder], capture_output=True, text=True, check=False,
                                  env={**os.environ, **preloaded, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, timeout=SLOW_S)
        self.assertIn("2 passed", done.stdout, done.stdout + done.stderr)

    def test_a_program_that_is_the_first_process_of_its_container_makes_a_run(self):
        if os.geteuid() != 0:
            self.skipTest("only root may make a namespace of processes")
        text = ("import cadre, os\n"
                "with cadre.local() as client:\n"
                "    print(os.getpid(), client.Group('accumulator:Accumulator').add(1))\n")
        done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc",
                               os.path.join(os.environ["PATH"].split(os.pathsep)[0], "python3"), "-c", text],
                              capture_output=True, text=True)
        self.assertEqual(done.stdout, "1 [1]\n", done.stderr)

    def test_a_run_ends_with_the_program_that_made_it(self):
        text = ("import cadre, sys, time\n"
                "client = cadre.local()\n"
                "client.Group('accumulator:Accumulator').add(1)\n"
                "print(client._run._process.pid, flush=True)\n"
                "time.sleep(600)\n")
        preloaded = {"LD_PRELOAD": os.environ.get("LD_PRELOAD", "")} if "LD_PRELOAD" in os.environ else {}
        maker = subprocess.Popen([os.path.join(os.environ["PATH"].split(os.pathsep)[0], "python3"), "-c", text],
                                 env={**os.environ, **preloaded}, stdout=subprocess.PIPE, text=True)
        run = int(maker.stdout.readline())
        maker.send_signal(signal.SIGKILL)
        maker.wait()
        maker.stdout.close()
        end = time.monotonic() + SLOW_S
        while not is_gone(run) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertTrue(is_gone(run))


if __name__ == "__main__":
    main()
