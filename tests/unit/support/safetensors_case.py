# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of batches and safetensors documents: the dtypes, and interpreters with packages that the machine
may not have.
"""

import gc
import os
import subprocess
import sys

from python_case import ROOT, environment

BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
        "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
        "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}


def with_packages(name):
    """Goes on in an interpreter that has the packages of deploy/python/NAME.txt; 77 if they cannot be had."""
    command = [os.path.join(ROOT, "deploy/python.sh"), name]
    env = dict(environment(), CADRE_PYTHON3=getattr(sys, "_base_executable", sys.executable))
    found = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if found.returncode:
        print(f"1..0 # SKIP deploy/python.sh {name}:", " ".join(found.stderr.strip()[-300:].splitlines()))
        sys.exit(77)
    python = found.stdout.strip()
    if sys.prefix != os.path.dirname(os.path.dirname(python)):
        os.execv(python, [python] + sys.argv)
    gc.set_threshold(100_000, 50, 50)  # torch creates many objects that stay, and Python would look at them again and again
