# SPDX-License-Identifier: Apache-2.0
"""Methods whose arguments only their client can split."""

import cadre


class ClientSplit:
    @cadre.register(dispatch="ALL_TO_ALL")
    def each(self, x, y):
        return x | y

    @cadre.register(dispatch="DP_COMPUTE_PROTO")
    def rows(self, rows, more=None):
        return [(cadre.rank(), row, more) for row in rows]

    @cadre.register(dispatch="DP_COMPUTE_METRIC")
    def count(self, tensor, names):
        return tensor.shape[0], len(names)

    def echo(self, *args, **kwargs):
        return args, kwargs
