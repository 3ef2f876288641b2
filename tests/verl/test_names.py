# SPDX-License-Identifier: Apache-2.0
"""cadre.ray has the names of Ray that verl and its tests use, but for those that docs/coming-from-ray.md calls missing."""

import glob
import os
import sys

import verl

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [f"{ROOT}/tests/unit/sdk/python", f"{ROOT}/tests/unit/support"]

from test_python_ray_names import MISSING, NAMES, used_in  # noqa: E402


def test_names_that_verl_uses():
    source = os.path.dirname(os.path.dirname(verl.__file__))
    files = glob.glob(f"{source}/verl/**/*.py", recursive=True) + glob.glob(f"{source}/tests/**/*.py", recursive=True)
    used = set().union(*map(used_in, files))
    modules = {".".join(name.split(".")[:i]) for name in NAMES for i in range(1, name.count(".") + 1)}
    unknown = {name for name in used if name not in NAMES and name not in modules
               and not any(name.startswith(f"{known}.") for known in NAMES)}
    assert len(used) > 30 and unknown == {"timeline"} and "timeline" in MISSING
