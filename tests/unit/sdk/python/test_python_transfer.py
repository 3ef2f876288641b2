#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights that move from one group to another, whose mesh splits them otherwise.

    test_python_transfer.py --with FOLDER numpy   with numpy, which pip may have to bring into FOLDER; 77 where it cannot
"""

import os
import sys

import cadre
from python_case import RunCase, main
from safetensors_case import with_packages

HOLDER = "weighty:Holder"
ROWS = {"w": {"tp": 0}, "odd": {"tp": 0}, "bias": {"tp": 0}}
COLUMNS = {"w": {"tp": 1}, "odd": {"tp": 1}}
GRID = {"w": {"dp": 0, "tp": 1}, "odd": {"tp": 0}}


class Transfers(RunCase):
    modules = (os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers"),)

    def both(self, client, ranks, mesh, split, to_ranks, to_mesh, to_split, **more):
        source = client.Group(HOLDER, name="actor", replicas=ranks, init=dict(mesh=mesh, split=split, **more))
        target = client.Group(HOLDER, name="rollout", replicas=to_ranks, init=dict(mesh=to_mesh, split=to_split, empty=True))
        return source, target

    def check_moves(self, *sides):
        with cadre.local() as client:
            source, target = self.both(client, *sides)
            done = cadre.transfer(source, target)
            whole = {"w": True, "odd": True, "bias": True, "scale": True}
            self.assertEqual(target.is_whole(), [whole] * target.world_size)
            self.assertEqual(target.times(), [1] * target.world_size)
            self.assertGreater(done["bytes"], 0)
            self.assertEqual(source.is_whole(), [whole] * source.world_size)

    def test_from_four_ranks_to_two(self):
        self.check_moves(4, {"tp": 4}, ROWS, 2, {"tp": 2}, COLUMNS)

    def test_from_two_ranks_to_a_mesh_of_four(self):
        self.check_moves(2, {"tp": 2}, COLUMNS, 4, {"dp": 2, "tp": 2}, GRID)

    def test_what_all_have_alike(self):
        self.check_moves(2, None, None, 3, {"tp": 3}, ROWS)

    def test_some_of_them_as_often_as_wanted(self):
        with cadre.local() as client:
            source, target = self.both(client, 1, None, None, 2, {"tp": 2}, ROWS)
            self.assertEqual(cadre.transfer(source, target, ["bias"])["bytes"], 8)
            self.assertEqual(target.is_whole()[1], {"w": False, "odd": False, "bias": True, "scale": False})
            cadre.transfer(source, target, ["w", "odd"])
            self.assertEqual(target.is_whole()[0], {"w": True, "odd": True, "bias": True, "scale": False})
            with self.assertRaisesRegex(cadre.Invalid, "actor has no weights nothing; it has bias, odd, scale, w"):
                cadre.transfer(source, target, ["w", "nothing"])

    def test_all_that_does_not_fit_is_said_and_nothing_moves(self):
        with cadre.local() as client:
            source = client.Group(HOLDER, name="actor", replicas=2, init=dict(mesh={"tp": 2}, split=ROWS))
            target = client.Group("weighty:Other", name="rollout")
            with self.assertRaises(cadre.Invalid) as e:
                cadre.transfer(source, target)
            for name in ("w", "odd", "bias", "scale", "more"):
                self.assertRegex(str(e.exception), rf"\b{name}\b")
            differing = client.Group("weighty:Differing", name="differing", replicas=2)
            with self.assertRaisesRegex(cadre.Invalid, "rank 1 of differing says other weights than rank 0"):
                cadre.transfer(differing, target)

    def test_blocks_that_the_mesh_does_not_have_are_refused(self):
        with cadre.local() as client:
            target = client.Group(HOLDER, name="rollout", replicas=2)
            wrong = client.Group(HOLDER, name="wrong", replicas=2, init=dict(mesh={"tp": 3}, split=ROWS))
            with self.assertRaisesRegex(cadre.Failed, "has 3 ranks, and the group has 2"):
                cadre.transfer(wrong, target)

    def test_a_sender_that_dies_leaves_the_old_weights_whole(self):
        with cadre.local() as client:
            source, target = self.both(client, 2, {"tp": 2}, ROWS, 2, {"tp": 2}, COLUMNS, dies=1)
            with self.assertRaises(cadre.Unavailable):
                cadre.transfer(source, target, timeout=60)
            nothing = {"w": False, "odd": False, "bias": False, "scale": False}
            self.assertEqual(target.is_whole(), [nothing] * 2)
            self.assertEqual(target.times(), [0, 0])
            healthy = client.Group(HOLDER, name="healthy", replicas=2, init=dict(mesh={"tp": 2}, split=ROWS))
            cadre.transfer(healthy, target)
            self.assertEqual(target.times(), [1, 1])

    def test_a_group_without_weights_says_so(self):
        with cadre.local() as client:
            source = client.Group(HOLDER, name="actor")
            target = client.Group("accumulator:Accumulator", name="counter")
            with self.assertRaisesRegex(cadre.Error, "transfer_describe"):
                cadre.transfer(source, target)


if __name__ == "__main__":
    with_packages("small")
    main()
