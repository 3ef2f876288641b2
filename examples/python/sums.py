# SPDX-License-Identifier: Apache-2.0
"""Functions that are tasks; counter.py calls them."""

import cadre

tries = []


@cadre.task
def add(x, y):
    return x + y


@cadre.task(workers=1, max_retries=3, retry_on=ConnectionError)
def fails_twice():
    tries.append(1)
    if len(tries) < 3:
        raise ConnectionError(f"try {len(tries)}")
    return len(tries)
