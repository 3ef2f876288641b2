# SPDX-License-Identifier: Apache-2.0
"""A folder of code, and a package of another folder, for ranks that have neither: `python3 shipping.py` in this folder."""

import cadre

with cadre.local() as client:  # cadre.connect() and image=: the same in a cluster, once for each pod
    group = client.Group("train:Trainer", replicas=2, working_dir="project", py_modules=["libs/helper"])
    print(group.work())
