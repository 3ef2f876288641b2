# SPDX-License-Identifier: Apache-2.0
"""Batches: every rank gets some of the rows, and what they return is joined again. Beside examples/tensor, which is in C.
references.py calls it."""

import cadre


class Actor:
    @cadre.register(dispatch="DP_COMPUTE_PROTO")
    def add(self, rows):
        a = rows["a"]  # an array of this rank's own: the client's is not changed
        a += cadre.rank()
        return rows


class Critic:
    def __init__(self, b=10):
        self.b = b

    @cadre.register(dispatch="DP_COMPUTE_PROTO")
    def sub(self, rows):
        a = rows["a"]
        a -= self.b
        return rows
