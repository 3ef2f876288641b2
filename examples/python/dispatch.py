# SPDX-License-Identifier: Apache-2.0
"""Shows which ranks get which arguments, and whose results come back: `python3 dispatch.py` in this folder."""

import cadre
from modes import TestActor

if __name__ == "__main__":
    with cadre.local() as client:
        group = client.Group(TestActor, replicas=4, init={"x": 2})
        print(group.foo_all(x=[1, 2, 3, 4], y=[5, 6, 7, 8]))  # element i for rank i
        print(group.foo_all.options(dispatch="ONE_TO_ALL")(1, 2))  # the client chooses another mode
        print(group.foo_rank_zero(x=1, y=2))  # one result, not a list
        print(group.foo_custom(x=[1, 2], y=[5, 6]))  # the class's own rule: rank i gets element i % 2
        print(group.foo_sum([1, 2], [5, 6]).result())  # ... and its own rule for the results
        print(group.rows(["a", "b", "c", "d"]))  # a part of the rows for each rank
