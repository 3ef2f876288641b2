# SPDX-License-Identifier: Apache-2.0
"""A method that makes a group, and calls it: `python3 nested.py` in this folder."""

import cadre


class Child:
    def work(self):
        return "Work done by child"


class Parent:
    def create_child(self):
        self.child = cadre.connect().Group("nested:Child")  # in the run, or the cluster, of this worker

    def get_work(self):
        return self.child.work.on(0)()


if __name__ == "__main__":
    with cadre.local() as client:
        parent = client.Group("nested:Parent")
        print(parent.create_child.on(0)())
        print(parent.get_work.on(0)())
