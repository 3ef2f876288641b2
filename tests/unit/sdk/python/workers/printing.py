# SPDX-License-Identifier: Apache-2.0
"""A worker that prints."""

import sys


class Printing:
    def say(self, text):
        print(text)

    def complain(self, text):
        print(text, file=sys.stderr)
