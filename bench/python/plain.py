# SPDX-License-Identifier: Apache-2.0
"""A worker that imports nothing large; calls.py asks for its memory."""

import os


class Plain:
    def pid(self):
        return os.getpid()
