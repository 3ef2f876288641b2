# SPDX-License-Identifier: Apache-2.0
"""Stands for a module that takes long to import."""

import os

PID = os.getpid()
IMPORTED_WITH_RANK = "RANK" in os.environ
