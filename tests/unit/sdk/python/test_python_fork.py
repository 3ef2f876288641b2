# SPDX-License-Identifier: Apache-2.0
"""A client and a child of fork(), which ThreadSanitizer cannot follow."""

import os

from python_case import GroupCase, main


class Forking(GroupCase):
    module, ranks = "ACCUMULATOR_SO", 4

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


if __name__ == "__main__":
    main()
