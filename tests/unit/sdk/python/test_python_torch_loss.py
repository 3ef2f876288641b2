#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that wait in torch.distributed for one that was lost: whatever they do, they are freed, and the lost rank is named.

Exit status 77 (skipped) if deploy/python.sh cannot bring torch.
"""

import os
import signal
import subprocess
import tempfile
import time
import unittest

import cadre
from python_case import Local, RunCase, main, program, worker_environment
from safetensors_case import with_packages

WORKERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers")
ENDED = "rank 1 was lost: its process has ended, or its node"
STOPPED = "rank 1 was lost: it does not answer: its process is stopped, or it cannot be reached"
SILENCE_S = 8
SILENCE = {"CADRE_SILENCE_SECONDS": str(SILENCE_S)}
COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "send", "recv",
               "barrier")


class Loss(RunCase):
    modules = (WORKERS,)

    def test_the_death_of_a_rank_ends_the_waits_of_all_others(self):
        with cadre.local() as client:
            group = client.Group("joined:Joined", replicas=3)
            self.assertEqual(group.sum(), [3.0] * 3)
            pids = group.pid()
            waits = self.begin(group, (0, "sum"), (2, "wait_for_nothing"))
            os.kill(pids[1], signal.SIGKILL)
            for wait in waits:  # of an hour, if torch alone decides
                with self.assertRaises(cadre.Error):
                    wait.result()
            self.assertEqual(group.sum(), [3.0] * 3)
            self.assertFalse(set(pids) & set(group.pid()))

    def begin(self, group, *calls):
        """Their futures, as soon as they wait."""
        with tempfile.TemporaryDirectory() as folder:
            marks = [os.path.join(folder, str(i)) for i in range(len(calls))]
            waits = [group.start(method, *args, mark, rank=rank) for (rank, method, *args), mark in zip(calls, marks)]
            while not all(map(os.path.exists, marks)):  # else they would wait for the restart, and run then
                time.sleep(0.02)
            return waits

    def watched(self, client, name="Joined", **options):
        """A group whose ranks have met, and its processes."""
        group = client.Group(f"joined:{name}", preload=["torch"], **options)
        while not all(group.is_watching()):
            time.sleep(0.02)
        return group, group.pid()

    def kill_among(self, restart, ranks, *calls):
        """Rank 1 dies while the others are in these calls: the errors of all, then what the group says."""
        with cadre.local() as client:
            group, pids = self.watched(client, replicas=ranks, restart=restart)
            waits = self.begin(group, *calls)
            os.kill(pids[1], signal.SIGKILL)
            for wait in waits:
                with self.assertRaisesRegex(cadre.Error, ENDED):
                    wait.result()
            return self.after(group, ranks, restart)

    def after(self, group, ranks, restart):
        if restart == "Never":
            with self.assertRaisesRegex(cadre.Unavailable, "it failed: rank 1 .*; it is not restarted: restartPolicy is Never"):
                group.sum()
        else:
            self.assertEqual(group.sum(), [float(ranks)] * ranks)

    def test_a_rank_that_dies_in_a_collective_is_named_by_all_others(self):
        for restart in "Group", "Worker", "Never":
            with self.subTest(restart):
                self.kill_among(restart, 4, (0, "sum"), (2, "sum"), (3, "sum"))

    def test_ranks_that_wait_for_each_other_learn_that_another_one_died(self):
        for restart in "Worker", "Never":
            with self.subTest(restart):
                self.kill_among(restart, 3, (0, "receive", 2), (2, "receive", 0))

    def test_a_rank_of_a_torch_group_smaller_than_the_cadre_group_is_named(self):
        with cadre.local() as client:
            group = client.Group("joined:Some", replicas=4, restart="Never", preload=["torch"])
            while not all(group.call("is_watching", rank=rank) for rank in (1, 3)):
                time.sleep(0.02)
            wait, = self.begin(group, (3, "sum"))
            os.kill(group.call("pid", rank=1), signal.SIGKILL)
            with self.assertRaisesRegex(cadre.Error, ENDED):
                wait.result()

    def lose_in_each(self, sign, words, **options):
        """Rank 1 gets a signal while each of the others waits for it alone, in a collective of its own."""
        with cadre.local() as client:
            group, pids = self.watched(client, "Paired", replicas=len(COLLECTIVES) + 1, restart="Never", **options)
            ranks = [rank for rank in range(len(pids)) if rank != 1]
            waits = self.begin(group, *((rank, "collect", name) for rank, name in zip(ranks, COLLECTIVES)))
            os.kill(pids[1], sign)
            for name, wait in zip(COLLECTIVES, waits):
                with self.subTest(name):
                    with self.assertRaisesRegex((cadre.Failed, cadre.Unavailable), words) as raised:
                        wait.result()
                    e = raised.exception
                    self.assertTrue(isinstance(e, RuntimeError) if isinstance(e, cadre.Failed) else e.exit_code == 68, repr(e))

    def test_a_rank_that_dies_in_any_collective_is_named(self):
        self.lose_in_each(signal.SIGKILL, ENDED)

    def test_a_rank_that_is_stopped_in_any_collective_is_named(self):
        self.lose_in_each(signal.SIGSTOP, STOPPED, env=SILENCE)

    def test_a_rank_that_is_stopped_starts_again_with_its_group(self):
        with cadre.local() as client:
            group, pids = self.watched(client, replicas=3, env=SILENCE)
            waits = self.begin(group, (0, "sum"), (2, "wait_for_nothing"))
            os.kill(pids[1], signal.SIGSTOP)
            for wait in waits:
                with self.assertRaisesRegex(cadre.Error, STOPPED):
                    wait.result()
            self.assertEqual(group.sum(), [3.0] * 3)
            self.assertFalse(set(pids) & set(group.pid()))

    def test_a_rank_that_holds_python_s_lock_for_longer_than_the_limit_is_not_lost(self):
        with cadre.local() as client:
            group, pids = self.watched(client, replicas=3, env=SILENCE)
            group.call("hold_the_lock", SILENCE_S + 2, rank=1)
            self.assertEqual((group.sum(), group.pid()), ([3.0] * 3, pids))


class PlainCommands(unittest.TestCase):
    """Programs for torchrun, without Cadre's package: the agent ends what waits for a rank that died."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.command = ["python3", f"{WORKERS}/plain.py", self.folder]

    def kill_one(self, check):
        """As soon as all are there, and as long as nobody says that it has ended: the processes."""
        paths = [os.path.join(self.folder, str(rank)) for rank in range(3)]
        while not all(map(os.path.exists, paths)):
            check()
            time.sleep(0.02)
        pids = [self.read(path) for path in paths]
        with open(os.path.join(self.folder, "come"), "w", encoding="utf-8"):
            pass
        os.kill(pids[1], signal.SIGKILL)
        return paths, pids

    def read(self, path):
        with open(path, encoding="utf-8") as f:
            return int(f.read())

    def test_a_group_starts_again_at_once(self):
        local = Local({"command": self.command}, 3)
        self.addCleanup(local.stop)
        paths, old = self.kill_one(lambda: self.assertIsNone(local.process.poll(), local.read_log()))
        self.assertEqual(local.process.wait(), 0, local.read_log())  # an hour later, if torch alone decides
        self.assertFalse(set(old) & set(map(self.read, paths)))

    def test_an_agent_without_an_operator_ends_with_its_exit_code(self):
        agent = subprocess.Popen([program("CADRE_AGENT"), "run", "--processes", "3", "--", *self.command], env=worker_environment())
        self.addCleanup(agent.wait)
        _, pids = self.kill_one(lambda: self.assertIsNone(agent.poll()))
        self.assertEqual(agent.wait(), 137)
        for pid in pids:
            with self.assertRaises(ProcessLookupError):
                os.kill(pid, 0)


if __name__ == "__main__":
    with_packages("large")
    main()
