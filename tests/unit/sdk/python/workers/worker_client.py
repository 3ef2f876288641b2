# SPDX-License-Identifier: Apache-2.0
"""A worker that makes a group, and calls it."""

import cadre


class Caller:
    def make(self):
        self.client = cadre.connect()
        self.child = self.client.Group("accumulator:Accumulator", name="child")

    def ask(self, x):
        return self.child.add(x)
