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


class Clock:
    """In place of the module `time`. Only sleeping takes time."""

    def __init__(self):
        self.now = 1000

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Operator:
    """Answers what the test says, in place of a Client. A request waits for its answer."""

    closed = False

    def __init__(self, clock):
        self.asked, self.answers, self.clock = queue.Queue(), queue.Queue(), clock
        self.times = []  # of all requests

    def _ask_first(self, method, name, args, timeout):
        self.times.append(self.clock.now)
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
        self.clock = Clock()
        patched = unittest.mock.patch.object(_renewal, "time", self.clock)
        patched.start()
        self.addCleanup(patched.stop)
        self.operator = Operator(self.clock)
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

    def test_it_is_tried_again_unless_it_is_refused(self):
        self.made("a", "b", "c")
        self.renewal.connected()
        self.hears("c")
        with self.assertWarns(RuntimeWarning) as warned:
            self.hears("b", _errors.Forbidden("another user created it"))
            self.hears("a", error(_errors.Unavailable))
            self.hears("a")
            self.rests()
        self.assertEqual(str(warned.warning), "the connection was lost, and the group b cannot be renewed, so the operator "
                                              "deletes it within two minutes: another user created it")
        self.renewal.connected()
        self.hears("c")
        self.hears("b")  # this session may have the right
        self.hears("a")
        self.rests()

    def test_what_needs_no_session_any_more_is_told_once(self):
        self.made("a", "b")
        self.renewal.connected()
        with self.assertWarns(RuntimeWarning) as warned:
            self.hears("b", _errors.Invalid("it is detached, so it needs no session"))
            self.hears("a")
            self.rests()
        self.assertEqual(str(warned.warning), "the connection was lost, and the group b cannot be renewed: it is detached, so "
                                              "it needs no session")
        self.renewal.connected()
        self.hears("a")
        self.rests()

    def test_a_replica_may_learn_about_an_object_a_minute_late(self):
        self.made("a")
        self.clock.now += 35
        self.renewal.connected()
        for _ in range(5):
            self.hears("a", error(_errors.NotFound))
        self.hears("a")
        self.rests()
        self.assertGreater(self.operator.times[-1] - self.operator.times[0], 60)
        self.renewal.connected()
        self.hears("a")
        self.rests()

    def test_what_is_deleted_is_asked_for_seldom_and_not_for_long(self):
        self.made("a")
        self.clock.now += 1000
        start = self.clock.now
        self.renewal.connected()
        for _ in range(7):
            self.hears("a", error(_errors.NotFound))
        self.rests()
        self.assertEqual([at - start for at in self.operator.times], [0, 5, 15, 35, 55, 75, 90])
        self.renewal.connected()
        self.rests()

    def test_every_session_may_reach_a_replica_that_learns_late(self):
        self.made("a")
        self.renewal.connected()
        for _ in range(6):
            self.hears("a", error(_errors.NotFound))
        self.operator.asked.get(timeout=SLOW_S)
        self.renewal.connected()
        start = self.clock.now
        self.operator.answers.put(error(_errors.Unavailable))
        for _ in range(6):
            self.hears("a", error(_errors.NotFound))
        self.rests()
        self.assertEqual(self.operator.times[-1] - start, 90)

    def test_what_is_made_late_has_its_own_time(self):
        self.made("a")
        self.renewal.connected()
        self.hears("a")
        self.rests()
        self.clock.now += 1000
        start = self.clock.now
        self.renewal.add("group", "b", "uid-of-b", 0)
        for _ in range(7):
            self.hears("b", error(_errors.NotFound))
        self.rests()
        self.assertEqual(self.operator.times[-1] - start, 90)

    def test_what_was_not_found_comes_last(self):
        self.made("a", "b")
        self.renewal.connected()
        self.hears("b", error(_errors.NotFound))
        self.hears("a")
        self.operator.asked.get(timeout=SLOW_S)  # "b" waits for its answer
        self.renewal.connected()
        self.operator.answers.put(error(_errors.NotFound))
        self.hears("a")
        self.hears("b")
        self.rests()

    def test_many_that_were_not_found_hold_up_no_other(self):
        self.made("a", "b")
        with unittest.mock.patch.object(_renewal, "_MISSING_AT_ONCE", 1):
            self.renewal.connected()
            self.hears("b", error(_errors.NotFound))
            self.hears("a", error(_errors.NotFound))
            self.operator.asked.get(timeout=SLOW_S)  # "b" waits for its answer
            self.renewal.add("group", "c", "uid-of-c", 0)
            self.operator.answers.put(None)
            self.hears("c")
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
