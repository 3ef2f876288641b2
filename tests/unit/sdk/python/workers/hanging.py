# SPDX-License-Identifier: Apache-2.0
"""A module whose import never ends."""

import time

print("hanging: begins", flush=True)
while True:
    time.sleep(1)
