# SPDX-License-Identifier: Apache-2.0
"""Functions that are tasks; counter.py calls them."""

import cadre

tries = {}


@cadre.task
def add(x, y):
    return x + y


@cadre.task(workers=1, max_retries=3, retry_on=ConnectionError)
def fails(times):
    tries[times] = tries.get(times, 0) + 1
    if tries[times] <= times:
        raise ConnectionError(f"try {tries[times]}")
    return tries[times]
