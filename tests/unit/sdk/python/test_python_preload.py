#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that are forked from a template (spec.worker.preload), in local runs; and what cannot be preloaded."""

import os

import cadre
from python_case import GroupCase, RunCase, main

RESTARTS = 50  # bench/python/restarts.py has many more
WORKERS = os.path.join(os.path.dirname(__file__), "workers")


def of(*preload, **more):
    return {"python": "forked", "workingDir": WORKERS, "preload": list(preload), **more}


def files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return len(f.read().split())


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


class Restarted(RunCase):
    """One process after the other, all from one template."""

    modules = (WORKERS,)

    def setUp(self):
        super().setUp()
        self.client = cadre.local()
        self.addCleanup(self.client.close)
        self.group = self.client.Group("forked:Forked", replicas=2, preload=["heavy"], max_restarts=10)

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

    def test_nothing_is_left_behind_by_many_restarts(self):
        def left():
            p = self.group.place()[0]  # once all ranks are there, nobody forks
            return {"rank": self.group.call("files", rank=0), "agent": files(p["parent"]), "template": files(p["imported_by"]),
                    "children": children(p["parent"]), "imported_by": p["imported_by"]}
        self.group.restart()
        before = left()
        for _ in range(RESTARTS):
            self.group.restart()
            self.group.draw()
        self.assertEqual(left(), before)


class Refused(GroupCase):
    module = of("heavy", "threaded", "json")

    def test_the_import_that_leaves_a_thread_is_named_and_ranks_start_by_themselves(self):
        self.assertIsNone(self.group.call("place", rank=0)["imported_by"])
        self.assertRegex(self.local.read_log(), r"rank 0: started without its template: worker.preload: the import of threaded "
                                                r"has left 1 thread running \(poller\), which a fork loses")


class Missing(GroupCase):
    module = of("heavy", "nowhere.at_all")

    def test_a_module_that_is_not_there_is_named_and_ranks_start_by_themselves(self):
        self.assertIsNone(self.group.call("place", rank=0)["imported_by"])
        self.assertRegex(self.local.read_log(), r"rank 0: started without its template: worker.preload: the import of "
                                                r"nowhere.at_all failed: ModuleNotFoundError: No module named 'nowhere'")


if __name__ == "__main__":
    main()
