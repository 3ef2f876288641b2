# SPDX-License-Identifier: Apache-2.0
"""Dispatch modes, and one of a program's own: `python3 dispatch.py` in this folder."""

import cadre
from modes import TestActor

with cadre.local() as client:
    group = client.Group(TestActor, replicas=4, init={"x": 2})
    print(group.foo_all(x=[1, 2, 3, 4], y=[5, 6, 7, 8]))
    print(group.foo_rank_zero(x=1, y=2))
    print(group.foo_custom(x=[1, 2], y=[5, 6]))
    print(group.foo_sum([1, 2], [5, 6]).result())
