# SPDX-License-Identifier: Apache-2.0
"""A module that ends the process while it is imported."""

import os

print("crashing: its last words", flush=True)
os._exit(23)
