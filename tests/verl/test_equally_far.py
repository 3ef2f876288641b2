#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which lines count as printed only on Ray."""

import unittest

from equally_far import only_on_ray

WHOLE = "rank 0: loaded the model in 3 shards"


class OnlyOnRay(unittest.TestCase):
    def check(self, ray, wrong, cadre=(WHOLE, "ready")):
        self.assertEqual(list(only_on_ray(list(cadre), ray)), wrong)

    def test_equal_lines_are_good(self):
        self.check([WHOLE, "ready"], [])

    def test_ray_may_print_less(self):
        self.check(["ready"], [])

    def test_a_line_in_two_or_more_pieces_is_good(self):
        self.check(["rank 0: loaded", "the model in 3 shards"], [])
        self.check(["rank 0: loaded", "ready", "the mo", "del in 3 ", "shards"], [])

    def test_a_piece_that_ray_printed_before_may_be_missing(self):
        cadre = [WHOLE, WHOLE, "rank 1: loaded the model in 3 shards"]
        self.check(["rank 0: loaded", "the model in 3 shards", "rank 0: loaded the model ", "in 3 shards"], [], cadre)
        self.check(["rank 0: loaded", "the model in 3 shards", "rank 1: loaded the mo", "del in 3 shards"], [], cadre)

    def test_a_line_that_comes_twice_may_come_once_in_pieces(self):
        self.check([WHOLE, "rank 0: loaded", "the model in 3 shards"], [], [WHOLE, WHOLE])

    def test_a_piece_of_a_line_that_ray_printed_as_often_is_wrong(self):
        self.check([WHOLE, "rank 0: loaded", "the model in 3 shards"], ["rank 0: loaded", "the model in 3 shards"])

    def test_a_piece_without_the_others_is_wrong(self):
        self.check(["model"], ["model"])
        self.check(["rank 0: loaded"], ["rank 0: loaded"])
        self.check(["in 3 shards"], ["in 3 shards"])
        self.check(["rank 0: loaded", "in 3 shards"], ["rank 0: loaded", "in 3 shards"])

    def test_another_number_is_wrong(self):
        self.check(["rank 0: loaded", "the model in 4 shards"], ["rank 0: loaded", "the model in 4 shards"][1:])

    def test_progress_on_the_way_does_not_count(self):
        self.check(["Loading: 50% RATE"], [])
        self.check(["Loading: 100% of", "it, RATE"], [], ["Loading: 100% of it, RATE"])


if __name__ == "__main__":
    unittest.main()
