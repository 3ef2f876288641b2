# SPDX-License-Identifier: Apache-2.0
"""A module that prints while it is imported."""

import os
import sys

print("imported, and no end of line", end="")
os.write(1, b"bytes: \xff\x00\n")
sys.stderr.write("{" * 100000 + "\n")


class Chatty:
    def work(self):
        return 1
