#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which objects a client renews after it has connected again, and until when. test_python_bad_input.py does it over a real
connection.
"""

import queue
import sys
import threading
import unittest
import unittest.mock
import warnings

from cadre import _errors, _renewal
from python_case import SLOW_S, main


def error(cls):
    return cls.__new__(cls)


class Operator:
    """Answers what the test says, in place of a Client. A request waits for its answer."""

    closed = False

    def __init__(self):
        self.asked, self.answers = queue.Queue(), queue.Queue()

    def _ask_first(self, method, name, args, timeout):
        self.asked.put((method, name, args))
        answer = self.answers.get(timeout=SLOW_S)
        if answer is not None:
            raise answer

    def hears(self, name, uid, answer=None, kind="group"):
        asked = self.asked.get(timeout=SLOW_S)
        assert asked == ("group.renew", name, {kind: name, "uid": uid}), asked
        self.answers.put(answer)


class Renewing(unittest.TestCase):
    def setUp(self):
        again = unittest.mock.patch.object(_renewal, "_AGAIN_S", 0.001)
        again.start()
        self.addCleanup(again.stop)
        self.operator = Operator()
        self.renewal = _renewal.Renewal(self.operator)
        self.renewal.connected()

    def made(self, *names):
        for name in names:
            self.renewal.add("group", name, f"uid-of-{name}", self.renewal.session)

    def hears(self, name, answer=None):
        self.operator.hears(name, f"uid-of-{name}", answer)

    def rests(self):
        """Waits until nothing is left to renew."""
        while thread := self.renewal.thread:
            thread.join(SLOW_S)
        self.assertTrue(self.operator.asked.empty())
        self.assertFalse(self.renewal._late())

    def test_the_first_session_renews_nothing(self):
        self.made("a")
        self.rests()

    def test_every_later_session_renews_all_that_is_there(self):
        self.made("a", "b")
        self.renewal.add("placementGroup", "p", "u", self.renewal.session)
        for _ in range(2):
            self.renewal.remove("group", "b")
            self.renewal.connected()
            self.operator.hears("p", "u", kind="placementGroup")
            self.hears("a")
            self.rests()

    def test_what_an_ended_session_has_renewed_is_renewed_again(self):
        self.made("a", "b")
        self.renewal.connected()
        self.hears("b")
        asked = self.operator.asked.get(timeout=SLOW_S)  # "a" waits for its answer
        self.renewal.connected()
        self.operator.answers.put(error(_errors.Unavailable))
        self.assertEqual(asked[1], "a")
        self.hears("b")
        self.hears("a")
        self.rests()

    def test_what_was_requested_in_an_earlier_session_is_renewed(self):
        session = self.renewal.session
        self.renewal.connected()
        self.renewal.add("group", "a", "uid-of-a", session)  # its answer came over the old connection
        self.hears("a")
        self.rests()

    def test_it_is_tried_again_unless_the_object_is_deleted(self):
        self.made("a", "b", "c")
        self.renewal.connected()
        self.hears("c")
        with self.assertWarnsRegex(RuntimeWarning, "the group b cannot be renewed, so the operator deletes it .*: another user"):
            self.hears("b", _errors.Forbidden("another user created it"))
            self.hears("a", error(_errors.Unavailable))
            self.hears("a", error(_errors.NotFound))  # it is new, so a replica may not know it yet
        self.assertEqual(self.operator.asked.get(timeout=SLOW_S)[1], "a")
        with unittest.mock.patch.object(_renewal, "_UNKNOWN_S", 0):
            self.operator.answers.put(error(_errors.NotFound))
            self.rests()
        self.renewal.connected()
        self.hears("c")
        self.hears("b")  # this session may have the right
        self.rests()

    def test_what_has_long_been_deleted_is_asked_for_once(self):
        self.made("a", "b")
        with unittest.mock.patch.object(_renewal, "_UNKNOWN_S", 0):
            self.renewal.connected()
            self.hears("b", error(_errors.NotFound))
            self.hears("a")
            self.rests()
        self.renewal.connected()
        self.hears("a")
        self.rests()

    def test_one_that_is_made_again_is_new(self):
        self.made("a", "b", "a")
        self.renewal.connected()
        self.hears("a")
        self.hears("b")
        self.rests()

    def test_a_refusal_ends_no_other_renewal_if_warnings_are_errors(self):
        self.made("a", "b")
        with warnings.catch_warnings(), unittest.mock.patch.object(sys, "excepthook") as shown:
            warnings.simplefilter("error")
            self.renewal.connected()
            self.hears("b", _errors.Invalid("it is detached"))
            self.hears("a")
            self.rests()
        self.assertIn("the group b cannot be renewed", str(shown.call_args.args[1]))

    def test_a_thread_that_cannot_start_is_started_later(self):
        self.made("a")
        with unittest.mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("no thread")):
            with self.assertRaises(RuntimeError):
                self.renewal.connected()
        self.renewal.connected()
        self.hears("a")
        self.rests()

    def test_a_closed_client_renews_nothing(self):
        self.made("a")
        self.operator.closed = True
        self.renewal.connected()
        thread = self.renewal.thread
        if thread:
            thread.join(SLOW_S)
        self.assertTrue(self.operator.asked.empty())


if __name__ == "__main__":
    main()
