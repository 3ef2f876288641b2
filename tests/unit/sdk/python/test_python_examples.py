#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of examples/python, as people run them, and what they print."""

from python_case import RunCase, main

PRINTED = {
    "basics.py": ["0 10", "2 [0, 1]", "[1, 4]", "[10, 11]", "[1, 4] 10"],
    "dispatch.py": ["[8, 10, 12, 14]", "[5, 5, 5, 5]", "5", "[8, 10, 8, 10]", "36",
                    "[[0, 'a'], [1, 'b'], [2, 'c'], [3, 'd']]"],
    "counter.py": ["[3]", "{'a': 1}", "3 tries", "[1, 2] [] 2", "Unavailable"],
    "pools.py": ["[0, 1, 2, 3] [4, 4, 4, 4]", "[1, 2, 3, 4]", "[2, 3, 4, 5]", "[0, 1, 2, 3, 0, 1, 2, 3]",
                 "[3, 4, 5, 6, 7, 8, 9, 10]", "[10, 11, 12, 13]"],
    "nested.py": ["None", "Work done by child"],
    "tasks.py": ["[0, 1, 4, 9, 16, 25, 36, 49, 64, 81] []", "49", "0 1,2"],
}


class Examples(RunCase):
    def prints(self, name):
        self.assertEqual(self.printed(name), PRINTED[name])

    def test_order_and_a_group_on_a_pool(self):
        self.prints("basics.py")

    def test_dispatch_modes(self):
        self.prints("dispatch.py")

    def test_futures_retries_and_the_end_of_a_worker(self):
        self.prints("counter.py")

    def test_pools(self):
        self.prints("pools.py")

    def test_a_method_that_makes_a_group(self):
        self.prints("nested.py")

    def test_tasks(self):
        self.prints("tasks.py")


if __name__ == "__main__":
    main()
