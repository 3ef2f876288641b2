#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arguments in shared memory, which methods get where they lie: they are as good as the method's own."""

import os
import socket

import cadre
from python_case import GroupCase, main

MIB = 1 << 20
IN_PLACE = ["/memfd:cadre (deleted)", "rw-p"]


def batch(value, size=MIB):
    return cadre.Batch({"x": bytearray([value]) * size})


def cut(path):
    """Ends all connections of this process to a socket."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(fd))) as s:
                if s.getpeername() == path:
                    s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # none, or gone


class InPlace(GroupCase):
    module = {"python": "keeping", "workingDir": os.path.join(os.path.dirname(__file__), "workers")}

    def setUp(self):
        super().setUp()
        self.group.call("forget")

    def test_long_arguments_are_not_copied(self):
        self.assertEqual(self.group.call("where", batch(1)), [IN_PLACE])
        (path, access), = self.group.call("where", batch(1, 1000))
        self.assertNotEqual([path, access], IN_PLACE)

    def test_what_a_method_keeps_stays_as_it_was(self):
        for value, method in enumerate(["keep", "keep_later", "keep_beside", "keep"]):
            self.group.call(method, batch(value))
            for other in range(100, 110):
                self.group.call("where", batch(other))
        with self.assertRaises(cadre.Failed):
            self.group.call("fail_and_keep", batch(4))
        for other in range(100, 200):
            self.group.call("where", batch(other, 2 * MIB))
        self.assertEqual(self.group.call("values"), [[0, 1, 2, 3, 4]])
        self.group.call("write", 9)  # also after its call
        self.group.call("where", batch(100))
        self.assertEqual(self.group.call("values"), [[9] * 5])

    def test_what_a_method_writes_nobody_else_sees(self):
        for value in range(1, 8):
            x = batch(value)
            self.assertEqual(self.group.call("look_and_write", x, 99), [[value, MIB]])
            self.assertEqual(bytes(x.tensors["x"].data), bytes([value]) * MIB)

    def test_others_are_copied_while_one_is_kept_in_their_place(self):
        for value in range(3):
            self.group.call("keep", batch(value))
        place, = self.group.call("where", batch(7))
        self.assertNotEqual(place, IN_PLACE)
        self.assertEqual(self.group.call("values"), [[0, 1, 2]])
        self.group.call("forget")
        self.assertEqual(self.group.call("where", batch(8)), [IN_PLACE])

    def test_memory_of_what_is_kept_no_longer_is_given_back(self):
        def keep_and_forget(times):
            for value in range(times):
                self.group.call("keep", batch(value, 8 * MIB))
                self.group.call("forget")
            return self.group.call("anonymous")[0]

        before = keep_and_forget(2)
        self.assertLess(keep_and_forget(30), before + 32 * 1024)

    def test_many_are_kept(self):
        for value in range(40):
            self.group.call("keep", batch(value, 4 * MIB))  # beyond what is kept without a copy
        self.assertEqual(self.group.call("values"), [list(range(40))])

    def test_a_child_of_a_fork_sees_what_its_parent_saw(self):
        self.group.call("fork", batch(5))
        for other in range(100, 110):
            self.group.call("look_and_write", batch(other), 77)
        self.assertEqual(self.group.call("child_saw"), [5])

    def test_what_a_method_reads_stays_after_its_connection(self):
        future = self.group.start("read_later", batch(5))
        self.group.call("wait_for_reader")
        cut(f"{self.local.folder}/socket")
        with self.assertRaises(cadre.Unavailable):
            future.result()
        for other in range(100, 104):
            self.group.call("keep_beside", batch(other))
        self.assertEqual(self.group.call("reader_saw"), [[5, MIB]])

    def test_what_a_gone_client_has_sent_stays(self):
        with self.local.connect() as client:
            client.group("g").call("keep", batch(3))
        self.group.call("where", batch(8))
        self.assertEqual(self.group.call("values"), [[3]])
        self.group.call("forget")
        self.assertEqual(self.group.call("where", batch(8)), [IN_PLACE])


if __name__ == "__main__":
    main()
