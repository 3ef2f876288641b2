# SPDX-License-Identifier: Apache-2.0
"""The accumulator of the examples, with a method that stops at a breakpoint. test_roles.sh debugs it."""

import accumulator


class Debugged(accumulator.Accumulator):
    def stops(self):
        breakpoint()
        return f"went on at {self.value}"
