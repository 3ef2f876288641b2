#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks, functions that run on workers; and values that the client keeps."""

import os
import shutil
import sys
import tempfile
import time
import unittest.mock

import cadre
from python_case import SLOW_S, RunCase, main

WORKERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers")
sys.path.insert(0, WORKERS)
import chores



class TaskCase(RunCase):
    modules = (WORKERS,)

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)


class Tasks(TaskCase):
    def test_ten_tasks_on_four_workers(self):
        with cadre.local(cpus=4) as client:
            futures = [chores.square.start(i) for i in range(10)]
            self.assertEqual(client.get(futures), [0, 1, 4, 9, 16, 25, 36, 49, 64, 81])
            self.assertEqual(chores.square(7), 49)
            names = ["a", "b", "c", "d"]
            together = [chores.meets.options(timeout=SLOW_S).start(self.folder, name, names) for name in names]
            self.assertEqual(client.get(together), names)

    def test_what_ends_the_waiting_for_a_task_cancels_it(self):
        with cadre.local() as client:
            self.assertEqual(chores.square(2), 4)
            with unittest.mock.patch("cadre._future.Future.result", side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    cadre.task(time.sleep)(600)
            while client.pending:
                time.sleep(0.01)

    def test_arguments_are_those_of_the_function(self):
        with cadre.local() as client:
            self.assertEqual(chores.add(1, 2, z=3), 6)
            self.assertEqual(chores.add(x=1), 1)
            self.assertEqual(chores.add([1], [2], z=[3]), [1, 2, 3])
            self.assertEqual(chores.add(chores.square.start(3), client.put(1)), 10)
            with self.assertRaisesRegex(cadre.Error, "unexpected keyword argument"):
                chores.add(1, w=2)

    def test_resources_are_those_of_the_decorator_or_of_the_call(self):
        with cadre.local(gpus=3, cpus=4):
            self.assertEqual(chores.seen(), "0")
            self.assertEqual(chores.seen.options(cpus=2, gpus=2)(), "1,2")
            with self.assertRaisesRegex(cadre.Limit, "nvidia.com/gpu"):
                chores.seen.options(gpus=4)()

    def test_it_runs_again_where_it_raises_what_retry_on_says(self):
        file = f"{self.folder}/tries"
        with cadre.local():
            with self.assertRaises(KeyError):
                chores.fails(file)
            self.assertEqual(os.path.getsize(file), 4)
            with self.assertRaises(KeyError):
                chores.fails.options(retry_on=[ValueError])(file)
            self.assertEqual(os.path.getsize(file), 5)
            with self.assertRaises(KeyError):
                chores.fails.options(retry_on=[ValueError, "KeyError"], max_retries=1)(file)
            self.assertEqual(os.path.getsize(file), 7)

    def test_it_runs_again_where_its_worker_dies(self):
        with cadre.local(cpus=1):
            self.assertEqual(chores.dies_once(f"{self.folder}/pid"), "alive")

    def test_wrong_use_says_so(self):
        with self.assertRaisesRegex(RuntimeError, "no client for the task"):
            chores.square(1)
        with self.assertRaisesRegex(TypeError, "no option 'num_gpus'; there are cpus, gpus"):
            cadre.task(num_gpus=1)(print)
        with cadre.local() as client:
            self.assertEqual(chores.square.using(client)(2), 4)


class Values(TaskCase):
    def test_a_value_is_kept_as_it_was(self):
        with cadre.local() as client:
            value = {"a": [1, 2], "b": {3, 4}}
            kept = client.put(value)
            value["a"].append(3)
            self.assertEqual(client.get(kept), {"a": [1, 2], "b": {3, 4}})
            client.get(kept)["a"].append(4)
            self.assertEqual(kept.get(), {"a": [1, 2], "b": {3, 4}})

    def test_it_is_an_argument_of_any_group(self):
        with cadre.local() as client:
            one, two = (client.Group("accumulator:Accumulator", replicas=2) for _ in range(2))
            kept = client.put(5)
            self.assertEqual(one.add(kept), [5, 6])
            self.assertEqual(two.add(x=kept), [5, 6])
            self.assertEqual(two.add.each([kept, 1]), [10, 7])
            self.assertEqual(client.get([kept, one.get_value.start()], timeout=SLOW_S), [5, [5, 6]])
            with self.assertRaisesRegex(TypeError, "not be part of one"):
                one.add([kept])
            kept.free()
            with self.assertRaisesRegex(ValueError, "was freed"):
                one.add(kept)
            with self.assertRaisesRegex(TypeError, "references and futures"):
                client.get(5)


if __name__ == "__main__":
    main()
