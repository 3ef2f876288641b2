# SPDX-License-Identifier: Apache-2.0
"""What test_python_preload.py runs in ranks that are forked from a template."""

import os
import random
import signal
import sys


class Forked:
    def __init__(self, first=None):
        if first is not None:
            print("the first word of", first)

    def place(self):
        """Who this is, and who imported the module: another process, where it was forked."""
        heavy = sys.modules.get("heavy")
        return {"rank": int(os.environ["RANK"]), "pid": os.getpid(), "parent": os.getppid(), "session": os.getsid(0),
                "imported_by": heavy and heavy.PID, "with_rank": heavy and heavy.IMPORTED_WITH_RANK,
                "folder": os.path.basename(os.getcwd()), "template": os.environ.get("CADRE_TEMPLATE"),
                "mine": os.environ.get("MINE"), "input": os.readlink("/proc/self/fd/0")}

    def draw(self):
        return random.random()

    def files(self):
        """Open files but those of the host, as a leak of the template would leave them."""
        return len(os.listdir("/proc/self/fd"))

    def end(self, code):
        os._exit(code)

    def end_template(self):
        os.kill(sys.modules["heavy"].PID, signal.SIGKILL)
