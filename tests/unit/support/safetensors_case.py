# SPDX-License-Identifier: Apache-2.0
"""What the tests of batches and safetensors documents share: the dtypes, and packages that the machine may not have."""

import importlib.util
import os
import subprocess
import sys

from python_case import environment

BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
        "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
        "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}


def with_package(name, folder, version="", more=()):
    """Goes on in an interpreter that has the package, and more, which pip may have to bring into the folder; 77 if it
    cannot.
    """
    if all(map(importlib.util.find_spec, (name, *more))):
        return
    venv = os.path.join(folder, "venv")
    python = os.path.join(venv, "bin", "python")
    if os.path.realpath(sys.prefix) != os.path.realpath(venv):
        made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True, env=environment())
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "--timeout", "15", "install",
               "--quiet", name + version, *more]
        if made.returncode == 0:
            made = subprocess.run(pip, capture_output=True, text=True, env=environment())
        if made.returncode == 0:
            os.execv(python, [python] + sys.argv)
        print(f"1..0 # SKIP the Python package {name} cannot be had:", made.stderr.strip()[-300:])
    sys.exit(77)
