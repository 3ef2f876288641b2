# SPDX-License-Identifier: Apache-2.0
"""How a class says who runs a method with what; dispatch.py calls it."""

import cadre


def two_to_all(group, x, y):
    """Lists of two: even ranks get the first elements, odd ranks the second ones."""
    return [(x[rank % 2], y[rank % 2]) for rank in range(group.world_size)]


class TestActor:
    def __init__(self, x):
        self.x = x

    @cadre.register(dispatch="ALL_TO_ALL")
    def foo_all(self, x, y):
        return self.x + x + y

    @cadre.register(execute="RANK_ZERO")
    def foo_rank_zero(self, x, y):
        return self.x + x + y

    @cadre.register(dispatch=two_to_all)
    def foo_custom(self, x, y):
        return self.x + x + y

    @cadre.register(dispatch=(two_to_all, lambda group, results: sum(results)), blocking=False)
    def foo_sum(self, x, y):
        return self.x + x + y

    @cadre.register(dispatch="DP_COMPUTE")
    def rows(self, x):
        return cadre.rank(), x
