# SPDX-License-Identifier: Apache-2.0
"""Takes four fifths of the time of one CPU, before all other processes, until its parent ends:  busy_cpu.py NUMBER

It works for 80 ms and rests for 20 ms, like a virtual machine whose CPU time is stolen. Shares of cgroups do not do that: beside
a load with four times their shares, tests got half of the time of Linux 6.18.
"""

import os
import sys
import time

BUSY_S, REST_S = 0.08, 0.02


def main():
    parent = os.getppid()
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    while os.getppid() == parent:
        end = time.monotonic() + BUSY_S
        while time.monotonic() < end:
            pass
        time.sleep(REST_S)


main()
