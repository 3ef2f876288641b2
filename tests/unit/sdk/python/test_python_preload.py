#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that are forked from a template (spec.worker.preload), in local runs; and what cannot be preloaded.

CADRE_RESTARTS: how often test_nothing_is_left_behind_by_many_restarts restarts a group (200)
"""

import gc
import os
import signal
import tempfile
import time
import unittest.mock

import cadre
from cadre.worker import _load, _template
from python_case import PRELOADED, GroupCase, RunCase, main, watch

RESTARTS = int(os.environ.get("CADRE_RESTARTS", 200))
WARM = 20  # restarts, until caches are full
SANITIZED = PRELOADED in os.environ  # what was freed is kept for a while
GROWTH_MAX = 4 << 20  # of the memory of a process, over all restarts: what an allocator may take at its own time
WORKERS = os.path.join(os.path.dirname(__file__), "workers")


def of(*preload, **more):
    return {"python": "forked", "workingDir": WORKERS, "preload": list(preload), **more}


def files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(child) for child in f.read().split()]


def memory(pid):
    """Bytes that are the process's own, or shared with those that were forked from it."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon"))


def is_there(pid):
    """Zombies are not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(f):
    while not f():
        time.sleep(0.02)


class Forked(GroupCase):
    module, ranks = of("heavy", init={"first": "all"}, env=[{"name": "MINE", "value": "yes"}]), 3

    def test_ranks_are_forked_from_one_process_that_has_imported_it(self):
        places = self.group.call("place")
        self.assertEqual(len({p["imported_by"] for p in places}), 1)
        self.assertEqual(len({p["pid"] for p in places}), 3)
        self.assertNotIn(places[0]["imported_by"], [p["pid"] for p in places])
        self.assertEqual({p["with_rank"] for p in places}, {False})

    def test_a_rank_is_the_agent_s_own_child_with_its_own_environment(self):
        for rank, p in enumerate(self.group.call("place")):
            with open(f"/proc/{p['parent']}/comm", encoding="utf-8") as f:
                self.assertEqual(f.read().strip(), "cadre-agent")
            self.assertEqual((p["rank"], p["mine"], p["session"], p["folder"], p["template"], p["input"]),
                             (rank, "yes", p["pid"], "workers", None, "/dev/null"))

    def test_ranks_draw_other_numbers_and_print_with_their_own_names(self):
        self.assertEqual(len(set(self.group.call("draw"))), 3)
        self.assertRegex(self.local.read_log(), r"(?m)^\[rank 2\] the first word of all$")

    def test_the_garbage_collector_rests_while_modules_are_imported(self):
        for heavy, forked, now in self.group.call("thresholds"):
            self.assertGreater(min(heavy, forked), 1_000_000)
            self.assertEqual(now, gc.get_threshold()[0])

    def test_a_module_may_set_the_thresholds_of_the_garbage_collector(self):
        before = gc.get_threshold()
        self.addCleanup(gc.set_threshold, *before)
        with _load.without_collection():
            with _load.without_collection():
                first, *others = gc.get_threshold()
                gc.set_threshold(first * 100, *others)
                gc.set_threshold(first, 20, 30)
            self.assertGreater(gc.get_threshold()[0], 1_000_000)
        self.assertEqual(gc.get_threshold(), (before[0], 20, 30))
        for threshold in (500, 0):
            with _load.without_collection():
                gc.set_threshold(threshold)
            self.assertEqual(gc.get_threshold()[0], threshold)
        with _load.without_collection():
            self.assertEqual(gc.get_threshold()[0], 0)


class Restarted(RunCase):
    """One process after the other, all from one template."""

    modules = (WORKERS,)

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()  # which only this run uses
        self.addCleanup(folder.cleanup)
        os.environ["TMPDIR"] = tempfile.tempdir = folder.name
        self.addCleanup(setattr, tempfile, "tempdir", None)
        self.client = cadre.local()
        self.addCleanup(self.client.close)
        self.group = self.make(preload=["heavy"])

    def make(self, **more):
        return self.client.Group("forked:Forked", **{"replicas": 2, "max_restarts": 10, **more})

    def end_rank(self, rank):
        """The places of the next attempt."""
        with self.assertRaises(cadre.Unavailable):
            self.group.call("end", 3, rank=rank)
        return self.group.place()

    def test_what_failed_is_forked_again_from_the_same_template(self):
        before, after = self.group.place(), self.end_rank(1)
        self.assertEqual({p["imported_by"] for p in after}, {p["imported_by"] for p in before})
        self.assertFalse({p["pid"] for p in after} & {p["pid"] for p in before})

    def test_a_template_that_dies_is_started_again_by_the_next_start(self):
        before = self.group.call("place", rank=0)
        self.group.call("end_template", rank=0)
        self.assertEqual(self.group.call("place", rank=0)["pid"], before["pid"])  # ranks do not need it
        after = self.end_rank(1)
        self.assertNotIn(after[0]["imported_by"], (None, before["imported_by"]))
        self.assertEqual(after[0]["imported_by"], after[1]["imported_by"])

    maxDiff = None

    def test_a_rank_has_the_same_world_as_without_a_template(self):
        plain = self.make().world()
        forked = self.group.world()
        for rank, (a, b) in enumerate(zip(plain, forked)):
            self.assertEqual(a["environment"]["RANK"], str(rank))
            for world in (a, b):
                for name in ("GROUP_NAME", "CADRE_GROUP_UID", "MASTER_ADDR", "PET_MASTER_ADDR"):
                    world["environment"].pop(name, None)
            for part in a:
                self.assertEqual(a[part], b[part])

    def test_more_ranks_than_one_packet_asks_for(self):
        group = self.make(preload=["heavy"], replicas=20)
        self.assertEqual(len({p["imported_by"] for p in group.place()}), 1)
        self.assertEqual(len(set(group.draw())), 20)

    def test_all_ends_with_the_agent(self):
        p = self.group.place()
        pids = {p[0]["imported_by"], *(rank["pid"] for rank in p)}
        os.kill(p[0]["parent"], signal.SIGKILL)
        until(lambda: not any(map(is_there, pids)))

    def test_a_template_that_hangs_ends_with_its_group(self):
        group = self.make(preload=["hanging"])
        agents = [pid for pid in children(self.client._run._process.pid) if pid != self.group.place()[0]["parent"]]
        until(lambda: children(agents[0]))
        template = children(agents[0])[0]
        group.close()
        until(lambda: not is_there(template))

    def test_nothing_is_left_behind_by_many_restarts(self):
        run, folder = self.client._run._process.pid, tempfile.gettempdir()

        def left():
            p = self.group.place()[0]  # once all ranks are there, nobody forks
            places = {"run": run, "agent": p["parent"], "template": p["imported_by"]}
            return ({"ranks": self.group.files(), **{name: files(pid) for name, pid in places.items()},
                     "children": len(children(p["parent"])), "of template": children(p["imported_by"]),
                     "template": p["imported_by"], "folders": sorted(place for place, _, _ in os.walk(folder))},
                    {name: memory(pid) for name, pid in places.items()})

        def restart():
            self.group.restart()
            self.group.draw()

        for _ in range(WARM):
            restart()
        before, had = left()
        for _ in range(RESTARTS):
            restart()
            watch()
        after, has = left()
        self.assertEqual(after, before)
        if not SANITIZED:
            self.assertFalse({name: has[name] - had[name] for name in has if has[name] - had[name] > GROWTH_MAX})


class Ended(GroupCase):
    """The messages of a run about ranks that end, and the output of these ranks."""

    module, ranks, more = of("heavy", "noisy"), 2, {"maxRestarts": 20}

    def end(self, method, *args):
        before = len(self.local.read_log())
        with self.assertRaises(cadre.Unavailable):
            self.group.call(method, *args, rank=1)
        self.group.call("place")
        return self.local.read_log()[before:]

    def test_exit_codes_and_signals_are_the_rank_s_own(self):
        self.assertIn("[agent] rank 1: exit code 23", self.end("end", 23))
        self.assertIn("[agent] rank 1: ended by signal 11 (Segmentation fault)", self.end("end_by", signal.SIGSEGV))
        self.assertIn("[agent] rank 1: ended by signal 9 (Killed)", self.end("end_by", signal.SIGKILL))

    def test_a_rank_can_be_killed_and_is_forked_again(self):
        before = self.group.call("place")
        self.group.kill(1)
        until(lambda: not is_there(before[1]["pid"]))
        after = self.group.call("place")
        self.assertIn("rank 1 was killed by a client (group.kill)", self.local.read_log())
        self.assertEqual({p["imported_by"] for p in after}, {before[0]["imported_by"]})

    def test_what_is_printed_while_it_is_imported_comes_once(self):
        self.group.call("place")
        log = self.local.read_log()
        self.assertEqual([line for line in log.splitlines() if "noisy: in" in line],
                         ["[template] noisy: in python", "[template] noisy: in c"])
        self.assertEqual(log.count("noisy: to stderr"), 1)

    def test_the_end_of_a_rank_is_that_of_any_program(self):
        with tempfile.TemporaryDirectory() as folder:
            self.group.call("prepare_end", f"{folder}/ended", rank=0)
            log = self.end("end", 3)
            for words in ("the object", "the module", "a thread", "by atexit", "by a finalizer", "C's own output"):
                self.assertEqual(log.count(f"[rank 0] the end {'' if words.startswith('by') else 'of '}{words}\n"), 1, words)
            with open(f"{folder}/ended", encoding="utf-8") as f:
                self.assertEqual(f.read(), "written at the end")


class Late(GroupCase):
    module = of("heavy", "late")

    def test_threads_that_start_after_the_import_are_named_when_the_next_rank_starts(self):
        self.assertIsNotNone(self.group.call("place", rank=0)["imported_by"])
        self.group.call("start_thread_of_template", rank=0)
        until(lambda: self.group.call("threads_of_template", rank=0) == 2)
        with self.assertRaises(cadre.Unavailable):
            self.group.call("end", 3, rank=0)
        self.assertIsNone(self.group.call("place", rank=0)["imported_by"])
        self.assertIn("rank 0: started without its template: something in the template has left 1 thread running (latecomer), "
                      "which a fork loses", self.local.read_log())


class Refused(GroupCase):
    module = of("heavy", "threaded", "json")

    def test_the_import_that_leaves_a_thread_is_named_and_ranks_start_by_themselves(self):
        self.assertIsNone(self.group.call("place", rank=0)["imported_by"])
        self.assertRegex(self.local.read_log(), r"rank 0: started without its template: worker.preload: the import of threaded "
                                                r"has left 1 thread running \(poller\), which a fork loses")


class RefusedInside(GroupCase):
    module = of("outer")

    def test_the_import_within_it_that_leaves_the_thread_is_named(self):
        self.assertIsNone(self.group.call("place", rank=0)["imported_by"])
        self.assertRegex(self.local.read_log(), r"the import of outer has left 1 thread running \(poller, since the import of "
                                                r"threaded\), which a fork loses: take it out of the list")


class Missing(GroupCase):
    module = of("heavy", "nowhere.at_all")

    def test_a_module_that_is_not_there_is_named_and_ranks_start_by_themselves(self):
        self.assertIsNone(self.group.call("place", rank=0)["imported_by"])
        self.assertRegex(self.local.read_log(), r"rank 0: started without its template: worker.preload: the import of "
                                                r"nowhere.at_all failed: ModuleNotFoundError: No module named 'nowhere'")


class Crashed(GroupCase):
    module = of("heavy", "crashing")

    def test_a_module_that_ends_the_process_is_heard_and_ranks_start_by_themselves(self):
        self.assertIsNone(self.group.call("place", rank=0)["imported_by"])
        self.assertRegex(self.local.read_log(), r"(?s)\[template\] crashing: its last words\n.*rank 0: started without its "
                                                r"template: it exited with code 23; its output says why")


class Looked(unittest.TestCase):
    def test_a_gpu_that_is_open_is_named(self):
        with unittest.mock.patch("os.readlink", return_value="/dev/nvidiactl"):
            self.assertEqual(_template.why_not("the import of x"),
                             "the import of x has opened /dev/nvidiactl, and CUDA does not work in the child of a fork")


if __name__ == "__main__":
    os.environ.pop("PYTHONUNBUFFERED", None)  # of C's output, too
    main()
