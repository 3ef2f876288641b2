# SPDX-License-Identifier: Apache-2.0
"""The accumulator in Python: each rank adds to a number of its own. Beside examples/accumulator, which is in C."""

import cadre


class Accumulator:
    def __init__(self, start=0):
        self.value = cadre.rank() + start

    @cadre.register(dispatch="ONE_TO_ALL")
    def add(self, x):
        """adds to the value of each rank, and returns it"""
        self.value += x
        return self.value

    @cadre.register(execute="RANK_ZERO")
    def get_value_rank_zero(self):
        return self.value

    def get_value(self):
        return self.value
