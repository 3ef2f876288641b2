# SPDX-License-Identifier: Apache-2.0
"""A module that prints while it is imported: by Python, and by C, whose text is not written yet at the end."""

import ctypes
import sys

print("noisy: in python")
print("noisy: to stderr", file=sys.stderr)
ctypes.CDLL(None).printf(b"noisy: in c\n")
