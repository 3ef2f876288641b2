# SPDX-License-Identifier: Apache-2.0
"""A worker that makes a group, and calls it."""

import time

import cadre


class Caller:
    def make(self):
        self.client = cadre.connect()
        self.child = self.client.Group("accumulator:Accumulator", name="child")

    def wait_for_itself(self):
        return self.client.find("parent").call("ask", 1, rank=0)

    def ask(self, x):
        return self.child.add(x)

    def call_until_that_is_refused(self):
        self.refused = ""
        while not self.refused.startswith("not sent"):
            try:
                self.child.add(0)
            except (cadre.Canceled, cadre.Timeout) as e:
                self.refused = str(e)
        while not cadre.canceled():  # an answer soon after the deadline is still an answer
            time.sleep(0.01)

    def what_was_refused(self):
        return self.refused
