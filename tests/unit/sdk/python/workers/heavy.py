# SPDX-License-Identifier: Apache-2.0
"""Stands for a module that takes long to import."""

import gc
import os

PID = os.getpid()
THRESHOLD = gc.get_threshold()[0]
IMPORTED_WITH_RANK = "RANK" in os.environ
